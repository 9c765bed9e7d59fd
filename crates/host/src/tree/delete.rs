//! Deleting: what is in a directory, then the directory.
//!
//! *unlink* and *rmdir* are one call each. Entries go in the order of their inodes, as far as one
//! call gave them: so the blocks of inodes are changed one after the other.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use fsverdict_core::model::Histogram;

use super::listing::Listing;
use super::traverse::{Below, Child, Fault, Traversal, Work};
use super::walk::{DIRECTORY, open_top};
use super::{Counts, Sums, Timings, TreeError, UnderWay};
use crate::sys::{self, Kind};

const UNLINK: usize = 0;
const RMDIR: usize = 1;

/// Deletes all that is in `directory`, which itself stays. Gives what there was.
pub fn deleting(directory: &Path, threads: u32) -> Result<impl UnderWay + use<>, TreeError> {
    let top = open_top(directory)?;
    let worker =
        |_| Deleter { listing: Listing::new(), counts: Counts::default(), timings: Timings::new() };
    let workers = (0..threads.max(1)).map(worker).collect();
    Ok(Traversal::new(top, workers, directory))
}

struct Deleter {
    listing: Listing,
    counts: Counts,
    timings: Timings<2>,
}

impl Sums for Deleter {
    fn summed(all: &[Deleter]) -> (Counts, BTreeMap<String, Histogram>) {
        let counts = Counts::sum(all.iter().map(|one| &one.counts));
        (counts, Timings::merged(["unlink", "rmdir"], all, |one| &one.timings))
    }
}

impl Work for Deleter {
    type Place = OwnedFd;

    fn entries(&self) -> u64 {
        self.counts.entries()
    }

    fn enter(&mut self, parent: &OwnedFd, child: Child<'_>) -> Result<OwnedFd, Fault> {
        sys::open_at(parent.as_fd(), child.name, DIRECTORY).map_err(Fault::of_directory("open"))
    }

    fn go_over(&mut self, place: &OwnedFd, below: &mut Below) -> Result<(), Fault> {
        while self.listing.read(place.as_fd()).map_err(Fault::of_directory("read"))? {
            self.listing.sort();
            let mut start_ns = sys::monotonic_ns();
            for number in 0..self.listing.len() {
                let (entry, name) = self.listing.get(number);
                let kind = match entry.kind {
                    Kind::Unknown => {
                        let status = sys::status_at(place.as_fd(), name);
                        status.map_err(Fault::of("stat", name))?.kind
                    }
                    known => known,
                };
                if kind == Kind::Directory {
                    below.note(Child { name, number: entry.inode });
                    continue;
                }
                sys::unlink_at(place.as_fd(), name).map_err(Fault::of("delete", name))?;
                self.counts.count(kind);
                let end_ns = sys::monotonic_ns();
                self.timings.0[UNLINK].record(end_ns - start_ns);
                start_ns = end_ns;
            }
        }
        Ok(())
    }

    fn leave(
        &mut self,
        place: OwnedFd,
        within: Option<(&OwnedFd, Child<'_>)>,
    ) -> Result<(), Fault> {
        // Held open, a removed directory would live on until after the clock has stopped.
        drop(place);
        let Some((parent, child)) = within else { return Ok(()) };
        let start_ns = sys::monotonic_ns();
        sys::remove_directory_at(parent.as_fd(), child.name)
            .map_err(Fault::of_directory("delete"))?;
        self.timings.0[RMDIR].record(sys::monotonic_ns() - start_ns);
        self.counts.directories += 1;
        Ok(())
    }
}
