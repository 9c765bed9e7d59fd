//! Whether two trees are the same: name by name, byte by byte.
//!
//! Compared are each entry's path, kind, mode, owner and size, the time of its last change if
//! asked, a file's bytes, a link's target, and, for a file with several names, the first. Names are
//! sorted, so that a file system's order does not matter. SipHash-2-4 of 64 bits guards against
//! accidents, which is all that is needed.

use std::collections::HashMap;
use std::ffi::{CStr, CString, OsStr};
use std::hash::Hasher;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use siphasher::sip::SipHasher24;

use super::listing::Listing;
use super::traverse::{Below, Child, Fault, Traversal, Work};
use super::walk::{DIRECTORY, open_top};
use super::{TO_THE_END, TreeError};
use crate::sys::{self, Kind, Status};

const BUFFER_BYTES: usize = 128 << 10;

/// A number that two trees share when they are the same, but for the times if `with_times` is
/// false.
pub fn digest(directory: &Path, with_times: bool) -> Result<u64, TreeError> {
    let mut whole = SipHasher24::new();
    each(directory, with_times, &mut |_, print| {
        whole.write_u64(print);
        true
    })?;
    Ok(whole.finish())
}

/// Where two trees begin to differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Path below both, of the first name by which they differ; empty if it is in neither, which
    /// means that the first tree has more than the second.
    pub path: PathBuf,
}

/// Looks for the first difference between `one` and `other`, times of change included.
pub fn compare(one: &Path, other: &Path) -> Result<Option<Difference>, TreeError> {
    let mut prints = Vec::new();
    each(one, true, &mut |_, print| {
        prints.push(print);
        true
    })?;
    let (mut expected, mut found) = (prints.iter(), None);
    each(other, true, &mut |path, print| {
        let same = expected.next() == Some(&print);
        found = (!same).then(|| Difference { path: path.into() });
        same
    })?;
    let missing = || expected.next().map(|_| Difference { path: PathBuf::new() });
    Ok(found.or_else(missing))
}

/// Gives the fingerprint of everything in `directory` to `take`, until that says false.
fn each(
    directory: &Path,
    with_times: bool,
    take: &mut (dyn FnMut(&Path, u64) -> bool + Send),
) -> Result<(), TreeError> {
    let top = Place { directory: open_top(directory)?, path: PathBuf::new() };
    let reader = Reader {
        with_times,
        take,
        stopped: false,
        listing: Listing::new(),
        first_names: HashMap::new(),
        buffer: vec![0; BUFFER_BYTES],
    };
    Traversal::new(top, vec![reader], directory).go_on(TO_THE_END)
}

/// A directory, with its path below the uppermost one.
struct Place {
    directory: OwnedFd,
    path: PathBuf,
}

struct Reader<'a> {
    with_times: bool,
    take: &'a mut (dyn FnMut(&Path, u64) -> bool + Send),
    stopped: bool,
    listing: Listing,
    /// Where the first name of a file with several is.
    first_names: HashMap<(u64, u64), PathBuf>,
    buffer: Vec<u8>,
}

impl Work for Reader<'_> {
    type Place = Place;

    fn enter(&mut self, parent: &Place, child: Child<'_>) -> Result<Place, Fault> {
        let directory = sys::open_at(parent.directory.as_fd(), child.name, DIRECTORY);
        let path = parent.path.join(OsStr::from_bytes(child.name.to_bytes()));
        Ok(Place { directory: directory.map_err(Fault::of_directory("open"))?, path })
    }

    fn go_over(&mut self, place: &Place, below: &mut Below) -> Result<(), Fault> {
        if self.stopped {
            return Ok(());
        }
        let names = self.names(place.directory.as_fd()).map_err(Fault::of_directory("read"))?;
        for (number, name) in (0..).zip(&names) {
            let path = place.path.join(OsStr::from_bytes(name.to_bytes()));
            let print = self.print(place.directory.as_fd(), name, &path);
            let (print, kind) = print.map_err(Fault::of("read", name))?;
            if !(self.take)(&path, print) {
                self.stopped = true;
                return Ok(());
            }
            if kind == Kind::Directory {
                below.note(Child { name, number });
            }
        }
        Ok(())
    }
}

impl Reader<'_> {
    /// The names in a directory, in order.
    fn names(&mut self, directory: BorrowedFd<'_>) -> io::Result<Vec<CString>> {
        let mut names = Vec::new();
        while self.listing.read(directory)? {
            let read = (0..self.listing.len()).map(|place| self.listing.get(place).1);
            names.extend(read.map(CString::from));
        }
        names.sort_unstable();
        Ok(names)
    }

    /// The fingerprint of `name`, and what it is.
    fn print(
        &mut self,
        directory: BorrowedFd<'_>,
        name: &CStr,
        path: &Path,
    ) -> io::Result<(u64, Kind)> {
        let status = sys::status_at(directory, name)?;
        let mut print = SipHasher24::new();
        print.write(path.as_os_str().as_bytes());
        print.write_u8(0);
        print.write_u32(status.mode);
        print.write_u32(status.owner.0);
        print.write_u32(status.owner.1);
        if self.with_times {
            print.write_i64(status.times[1].0);
            print.write_i64(status.times[1].1);
        }
        if status.kind != Kind::Directory {
            print.write_u64(status.size_bytes);
            print.write_u64(status.device);
        }
        self.add_content(directory, name, path, &status, &mut print)?;
        Ok((print.finish(), status.kind))
    }

    fn add_content(
        &mut self,
        directory: BorrowedFd<'_>,
        name: &CStr,
        path: &Path,
        status: &Status,
        print: &mut SipHasher24,
    ) -> io::Result<()> {
        if status.kind != Kind::Directory && status.links > 1 {
            if let Some(first) = self.first_names.get(&status.identity) {
                print.write(first.as_os_str().as_bytes());
                return Ok(());
            }
            self.first_names.insert(status.identity, path.into());
        }
        match status.kind {
            Kind::File => {
                let file = sys::open_at(directory, name, libc::O_RDONLY | libc::O_NOFOLLOW)?;
                self.add_bytes(&file, print)
            }
            Kind::Link => {
                let len = sys::read_link_at(directory, name, &mut self.buffer)?;
                print.write(&self.buffer[..len]);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn add_bytes(&mut self, file: &OwnedFd, print: &mut SipHasher24) -> io::Result<()> {
        loop {
            match sys::read(file.as_fd(), &mut self.buffer)? {
                0 => return Ok(()),
                got => print.write(&self.buffer[..got]),
            }
        }
    }
}
