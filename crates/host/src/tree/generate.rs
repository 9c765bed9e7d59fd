//! Making a tree of a [`Shape`].
//!
//! Operations are *create* (openat, write, close), *mkdir* (mkdirat, openat), *link* and *symlink*.
//! Content is made beforehand; if it does not fit into one write, the rest between the writes, as
//! part of the operation.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use fsverdict_core::model::{Histogram, Tree};

use super::content::{CHUNK_BYTES, Contents, key};
use super::shape::{Files, Made, Shape};
use super::traverse::{Below, Child, Fault, Traversal, Work};
use super::walk::{DIRECTORY, open_top};
use super::{Counts, Sums, Timings, TreeError, UnderWay};
use crate::sys;

const OPERATIONS: [&str; 4] = ["create", "mkdir", "link", "symlink"];
const CREATE: usize = 0;
const MKDIR: usize = 1;
const LINK: usize = 2;
const SYMLINK: usize = 3;

/// Makes the tree of `shape` in `directory`, which is there. The same `tree` and `seed` give the
/// same names and contents.
pub fn generating<'a>(
    tree: &Tree,
    shape: &'a Shape,
    directory: &Path,
    seed: u64,
) -> Result<impl UnderWay + use<'a>, TreeError> {
    let top = Place { directory: open_top(directory)?, number: 0 };
    let worker = |_| Maker {
        shape,
        seed,
        files: Files::default(),
        name: Vec::new(),
        contents: Contents::new(tree.content, tree.compression),
        timings: Timings::new(),
    };
    let workers = (0..tree.threads.max(1)).map(worker).collect();
    Ok(Traversal::new(top, workers, directory))
}

/// A directory of the tree that is there.
struct Place {
    directory: OwnedFd,
    number: u32,
}

struct Maker<'a> {
    shape: &'a Shape,
    seed: u64,
    files: Files,
    name: Vec<u8>,
    contents: Contents,
    timings: Timings<4>,
}

impl Sums for Maker<'_> {
    fn summed(all: &[Maker<'_>]) -> (Counts, BTreeMap<String, Histogram>) {
        let counts = all.first().map_or_else(Counts::default, |one| one.shape.counts());
        (counts, Timings::merged(OPERATIONS, all, |one| &one.timings))
    }
}

impl Work for Maker<'_> {
    type Place = Place;

    fn entries(&self) -> u64 {
        self.timings.count()
    }

    fn enter(&mut self, parent: &Place, child: Child<'_>) -> Result<Place, Fault> {
        let (fd, start_ns) = (parent.directory.as_fd(), sys::monotonic_ns());
        sys::make_directory_at(fd, child.name).map_err(Fault::of_directory("make"))?;
        let directory =
            sys::open_at(fd, child.name, DIRECTORY).map_err(Fault::of_directory("open"))?;
        self.timings.0[MKDIR].record(sys::monotonic_ns() - start_ns);
        Ok(Place { directory, number: child.number as u32 })
    }

    fn go_over(&mut self, place: &Place, below: &mut Below) -> Result<(), Fault> {
        self.shape.files(place.number, &mut self.files);
        let directory = place.directory.as_fd();
        for number in 0..self.files.len() {
            let (made, name) = self.files.get(number);
            let start = match made {
                Made::File(size_bytes) => {
                    let file = key([self.seed, place.number.into(), number as u64]);
                    create(&mut self.contents, directory, name, size_bytes, file)
                        .map(|start_ns| (CREATE, start_ns))
                }
                Made::HardLink(to) => {
                    let (to, start_ns) = (self.files.name(to as usize), sys::monotonic_ns());
                    sys::link_at(directory, to, directory, name).map(|()| (LINK, start_ns))
                }
                Made::Symlink(to) => {
                    let (to, start_ns) = (self.files.name(to as usize), sys::monotonic_ns());
                    sys::symbolic_link_at(to, directory, name).map(|()| (SYMLINK, start_ns))
                }
            };
            let (operation, start_ns) = start.map_err(Fault::of("make", name))?;
            self.timings.0[operation].record(sys::monotonic_ns() - start_ns);
        }
        for number in self.shape.below(place.number) {
            self.shape.name(number, &mut self.name);
            let name = CStr::from_bytes_with_nul(&self.name).expect("it was written with its NUL");
            below.note(Child { name, number: number.into() });
        }
        Ok(())
    }
}

/// Makes a file; gives when that began, which is after its first bytes were made.
fn create(
    contents: &mut Contents,
    directory: BorrowedFd<'_>,
    name: &CStr,
    size_bytes: u64,
    file: u64,
) -> io::Result<u64> {
    let chunk = |at: u64| (size_bytes - at).min(CHUNK_BYTES as u64);
    let mut bytes = contents.of(file, chunk(0) as usize);
    let start_ns = sys::monotonic_ns();
    let made = sys::create_at(directory, name, 0o644)?;
    let mut at = 0;
    loop {
        sys::write_all(made.as_fd(), bytes)?;
        at += bytes.len() as u64;
        if at == size_bytes {
            break;
        }
        bytes = contents.of(key([file, at, 0]), chunk(at) as usize);
    }
    sys::close(made)?;
    Ok(start_ns)
}
