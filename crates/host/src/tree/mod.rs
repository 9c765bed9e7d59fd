//! Trees of files: made from a seed, walked, copied and deleted by one or more threads.
//!
//! Everything is reached from its parent's descriptor, so that no path is looked up and none can be
//! too long. The directories above those under way are open at once, and the limit on descriptors
//! is raised as far as possible.

mod content;
mod copy;
mod delete;
mod digest;
mod generate;
mod listing;
mod shape;
mod traverse;
mod walk;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use fsverdict_core::model::{Histogram, Reflink, Tree};
use thiserror::Error;

pub(crate) use content::{CHUNK_BYTES, Contents, key as content_key};
pub use copy::copying;
pub use delete::deleting;
pub use digest::{Difference, compare, digest};
pub use generate::generating;
pub use shape::Shape;
pub use walk::walking;

use crate::timing::Latencies;

/// Why a tree could not be worked on.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum TreeError {
    #[error("{action} {}: {source}{}", path.display(), advice(source))]
    Path { action: &'static str, path: PathBuf, source: io::Error },
    #[error("start a thread for the tree: {0}")]
    Thread(io::Error),
    #[error("copy {}: it holds {}, and a tree can't be copied into itself", from.display(),
        to.display())]
    Within { from: PathBuf, to: PathBuf },
}

fn advice(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EMFILE) => "; a descriptor is kept for each directory above: raise ulimit -Hn",
        _ => "",
    }
}

/// What there is in a tree. Its uppermost directory is not counted: it was there before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Regular files, by their names: one with two names counts twice.
    pub files: u64,
    /// Directories.
    pub directories: u64,
    /// Symbolic links.
    pub links: u64,
    /// Devices, pipes and sockets.
    pub specials: u64,
    /// Bytes of content, a file with two names counted once; 0 if they were not asked for.
    pub bytes: u64,
}

impl Counts {
    /// All names.
    pub fn entries(&self) -> u64 {
        self.files + self.directories + self.links + self.specials
    }

    fn sum<'a>(all: impl Iterator<Item = &'a Counts>) -> Counts {
        all.fold(Counts::default(), |sum, one| Counts {
            files: sum.files + one.files,
            directories: sum.directories + one.directories,
            links: sum.links + one.links,
            specials: sum.specials + one.specials,
            bytes: sum.bytes + one.bytes,
        })
    }
}

/// What was done to a tree.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Done {
    /// What there was, or is now.
    pub counts: Counts,
    /// Latencies by operation.
    pub histograms: BTreeMap<String, Histogram>,
    /// From the first thread's start to the last one's end.
    pub work_ns: u64,
}

/// Work on a tree that can stand still between two directories.
pub trait UnderWay {
    /// Goes on until there were so many entries in all, or there are no more: a directory is done
    /// whole.
    fn go_on(&mut self, pause: u64) -> Result<(), TreeError>;

    /// Entries so far.
    fn entries(&self) -> u64;

    /// What was done.
    fn done(self: Box<Self>) -> Done;
}

/// Without a pause.
pub const TO_THE_END: u64 = u64::MAX;

fn whole<'a>(under_way: impl UnderWay + 'a) -> Result<Done, TreeError> {
    let mut under_way: Box<dyn UnderWay + 'a> = Box::new(under_way);
    under_way.go_on(TO_THE_END)?;
    Ok(under_way.done())
}

/// All of [`walking`].
pub fn walk(directory: &Path, with_status: bool, threads: u32) -> Result<Done, TreeError> {
    whole(walking(directory, with_status, threads)?)
}

/// All of [`copying`].
pub fn copy(from: &Path, to: &Path, reflink: Reflink, threads: u32) -> Result<Done, TreeError> {
    whole(copying(from, to, reflink, threads)?)
}

/// All of [`deleting`].
pub fn delete(directory: &Path, threads: u32) -> Result<Done, TreeError> {
    whole(deleting(directory, threads)?)
}

/// All of [`generating`].
pub fn generate(
    tree: &Tree,
    shape: &Shape,
    directory: &Path,
    seed: u64,
) -> Result<Done, TreeError> {
    whole(generating(tree, shape, directory, seed)?)
}

/// Work whose threads' shares are summed up.
trait Sums: traverse::Work + Sized {
    /// What there was, or is now, and latencies by operation.
    fn summed(all: &[Self]) -> (Counts, BTreeMap<String, Histogram>);
}

/// Latencies by operation, as one thread meets them; `N` operations are known by their place.
struct Timings<const N: usize>([Latencies; N]);

impl<const N: usize> Timings<N> {
    fn new() -> Self {
        Timings(std::array::from_fn(|_| Latencies::new()))
    }

    /// Operations so far.
    fn count(&self) -> u64 {
        self.0.iter().map(Latencies::count).sum()
    }

    /// Those of all threads, by name; without operations that never happened.
    fn merged<Worker>(
        names: [&str; N],
        all: &[Worker],
        its: impl Fn(&Worker) -> &Self,
    ) -> BTreeMap<String, Histogram> {
        let of = |place: usize| Latencies::merged(all.iter().map(|one| &its(one).0[place]));
        let named = names.iter().enumerate().map(|(place, name)| (name.to_string(), of(place)));
        named.filter(|(_, taken)| taken.count() > 0).collect()
    }
}

#[cfg(test)]
mod tests;
