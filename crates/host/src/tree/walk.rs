//! Walking: every directory is read, and where asked every entry's status.
//!
//! A *list* is one directory, opened, read to its end and closed. A *stat* is one entry's fstatat.
//! If a directory does not tell the kind of its entries, each gets an fstatat in any case. A walk
//! goes on below mounts, as find does.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use fsverdict_core::model::Histogram;

use super::listing::Listing;
use super::traverse::{Below, Child, Fault, Traversal, Work};
use super::{Counts, Sums, Timings, TreeError, UnderWay};
use crate::sys::{self, Kind, Status};

const LIST: usize = 0;
const STAT: usize = 1;

/// How a directory is opened: never through a symbolic link.
pub const DIRECTORY: i32 = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW;

/// Opens the uppermost directory, which must not be a symbolic link: a caller that may be given one
/// resolves it first.
pub fn open_top(directory: &Path) -> Result<OwnedFd, TreeError> {
    let mut options = File::options();
    std::os::unix::fs::OpenOptionsExt::custom_flags(options.read(true), DIRECTORY)
        .open(directory)
        .map(OwnedFd::from)
        .map_err(|source| TreeError::Path { action: "open", path: directory.into(), source })
}

/// Walks through all below `directory`, and asks for every entry's status if `with_status`.
///
/// Without it `bytes` is 0; with it, a file with several names has its bytes divided among them and
/// counted once.
pub fn walking(
    directory: &Path,
    with_status: bool,
    threads: u32,
) -> Result<impl UnderWay + use<>, TreeError> {
    let top = open_top(directory)?;
    let worker = |_| Walker {
        with_status,
        listing: Listing::new(),
        counts: Counts::default(),
        shared_bytes: 0.0,
        timings: Timings::new(),
        start_ns: 0,
    };
    let workers = (0..threads.max(1)).map(worker).collect();
    Ok(Traversal::new(top, workers, directory))
}

struct Walker {
    with_status: bool,
    listing: Listing,
    counts: Counts,
    /// Bytes of files that have several names, each name's share.
    shared_bytes: f64,
    timings: Timings<2>,
    /// When the directory under way was opened.
    start_ns: u64,
}

impl Sums for Walker {
    fn summed(all: &[Walker]) -> (Counts, BTreeMap<String, Histogram>) {
        let mut counts = Counts::sum(all.iter().map(|one| &one.counts));
        counts.bytes += all.iter().map(|one| one.shared_bytes).sum::<f64>().round() as u64;
        (counts, Timings::merged(["list", "stat"], all, |one| &one.timings))
    }
}

impl Work for Walker {
    type Place = OwnedFd;

    fn entries(&self) -> u64 {
        self.counts.entries()
    }

    fn enter(&mut self, parent: &OwnedFd, child: Child<'_>) -> Result<OwnedFd, Fault> {
        self.start_ns = sys::monotonic_ns();
        sys::open_at(parent.as_fd(), child.name, DIRECTORY).map_err(Fault::of_directory("open"))
    }

    fn go_over(&mut self, place: &OwnedFd, below: &mut Below) -> Result<(), Fault> {
        if self.start_ns == 0 {
            self.start_ns = sys::monotonic_ns();
        }
        let mut list_ns = 0;
        while self.listing.read(place.as_fd()).map_err(Fault::of_directory("read"))? {
            let mut start_ns = sys::monotonic_ns();
            list_ns += start_ns - self.start_ns;
            if self.with_status {
                self.listing.sort();
            }
            for number in 0..self.listing.len() {
                let (entry, name) = self.listing.get(number);
                let mut kind = entry.kind;
                if self.with_status || kind == Kind::Unknown {
                    let status =
                        sys::status_at(place.as_fd(), name).map_err(Fault::of("stat", name))?;
                    let end_ns = sys::monotonic_ns();
                    self.timings.0[STAT].record(end_ns - start_ns);
                    start_ns = end_ns;
                    kind = status.kind;
                    if self.with_status {
                        count_bytes(&status, &mut self.counts, &mut self.shared_bytes);
                    }
                }
                self.counts.count(kind);
                if kind == Kind::Directory {
                    below.note(Child { name, number: entry.inode });
                }
            }
            self.start_ns = sys::monotonic_ns();
        }
        let end_ns = sys::monotonic_ns();
        self.timings.0[LIST].record(list_ns + end_ns - self.start_ns);
        Ok(())
    }
}

fn count_bytes(status: &Status, counts: &mut Counts, shared_bytes: &mut f64) {
    match (status.kind, status.links) {
        (Kind::File, 0 | 1) => counts.bytes += status.size_bytes,
        (Kind::File, links) => *shared_bytes += status.size_bytes as f64 / links as f64,
        _ => {}
    }
}

impl Counts {
    /// Counts one entry.
    pub(super) fn count(&mut self, kind: Kind) {
        match kind {
            Kind::File => self.files += 1,
            Kind::Directory => self.directories += 1,
            Kind::Link => self.links += 1,
            Kind::Special | Kind::Unknown => self.specials += 1,
        }
    }
}
