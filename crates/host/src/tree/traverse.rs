//! Going through a tree with one or more threads.
//!
//! A thread takes a directory, does all that is in it, and keeps its subdirectories on a stack of
//! its own: the deepest come first, so that few directories are open at once. Only while another
//! thread waits does it give away half of its stack, the older half, with directories that are
//! higher and hold more. So a lone thread shares nothing and pays nothing, and several take the one
//! lock only when one of them has run out of work. A directory is not divided among threads: its
//! own lock in the kernel would serialise them again.
//!
//! Between two directories the traversal can be paused, and resumed where it was.

use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use super::{Done, Sums, TreeError, UnderWay};
use crate::sys;
use crate::timing::threads::{self, Failed};

/// Descriptors that are asked for: a directory is kept open for each level, and each thread.
const DESCRIPTORS: u64 = 1 << 20;

/// What one thread does with each directory.
pub trait Work: Send {
    /// What is kept of a directory until all below it is done: its descriptor, and more.
    type Place: Send + Sync;

    /// Enters a subdirectory, or makes it.
    fn enter(&mut self, parent: &Self::Place, child: Child<'_>) -> Result<Self::Place, Fault>;

    /// Does all that is in a directory but its subdirectories, which are noted in `below`.
    fn go_over(&mut self, place: &Self::Place, below: &mut Below) -> Result<(), Fault>;

    /// Entries so far. Work that never stands still need not count them.
    fn entries(&self) -> u64 {
        0
    }

    /// Everything below is done. The uppermost directory has no parent.
    fn leave(
        &mut self,
        _place: Self::Place,
        _within: Option<(&Self::Place, Child<'_>)>,
    ) -> Result<(), Fault> {
        Ok(())
    }
}

/// A subdirectory, as its parent knows it.
#[derive(Clone, Copy, Debug)]
pub struct Child<'a> {
    /// Its name.
    pub name: &'a CStr,
    /// Its inode, or its number among those to be made. They are entered in this order.
    pub number: u64,
}

/// What a thread could not do in the directory it was in.
#[derive(Debug)]
pub struct Fault {
    /// As a verb.
    pub action: &'static str,
    /// To what in it; `None`: to the directory itself.
    pub name: Option<CString>,
    /// What the kernel said.
    pub source: io::Error,
}

impl Fault {
    /// That `action` on the directory itself failed, once it has.
    pub fn of_directory(action: &'static str) -> impl FnOnce(io::Error) -> Fault {
        move |source| Fault { action, name: None, source }
    }

    /// That `action` on `name` in it failed, once it has.
    pub fn of(action: &'static str, name: &CStr) -> impl FnOnce(io::Error) -> Fault {
        move |source| Fault { action, name: Some(name.into()), source }
    }
}

/// Subdirectories of the directory under way.
#[derive(Default)]
pub struct Below {
    names: Vec<u8>,
    children: Vec<(u64, u32)>,
}

impl Below {
    /// Notes one.
    pub fn note(&mut self, child: Child<'_>) {
        self.children.push((child.number, self.names.len() as u32));
        self.names.extend_from_slice(child.name.to_bytes_with_nul());
    }
}

/// A directory with subdirectories that are not done yet.
struct Node<P> {
    place: P,
    within: Option<Origin<P>>,
    /// The subdirectories' names, each with its NUL.
    names: Box<[u8]>,
}

/// Where a directory is: one of the children of a node.
struct Origin<P> {
    parent: Arc<Node<P>>,
    number: u64,
    name_at: u32,
}

impl<P> Origin<P> {
    fn child(&self) -> Child<'_> {
        let name = CStr::from_bytes_until_nul(&self.parent.names[self.name_at as usize..]);
        Child { name: name.expect("each was noted with its NUL"), number: self.number }
    }

    /// Path below the uppermost directory.
    fn path(&self) -> PathBuf {
        let mut names = vec![self.child().name];
        let mut above = &self.parent.within;
        while let Some(origin) = above {
            names.push(origin.child().name);
            above = &origin.parent.within;
        }
        names.iter().rev().map(|name| OsStr::from_bytes(name.to_bytes())).collect()
    }
}

/// What the threads share.
struct Shared<P> {
    /// The uppermost directory, until one begins with it.
    root: Mutex<Option<P>>,
    queue: Mutex<Queue<P>>,
    wake: Condvar,
    /// How many threads wait, as a hint for those that do not.
    waiting: AtomicUsize,
    stopped: AtomicBool,
    /// Entries so far, of all threads.
    entries: AtomicU64,
    threads: usize,
}

struct Queue<P> {
    items: Vec<Origin<P>>,
    waiting: usize,
}

impl<P> Shared<P> {
    fn queue(&self) -> MutexGuard<'_, Queue<P>> {
        self.queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Gives away the older half of `items`.
    fn give(&self, items: &mut Vec<Origin<P>>) {
        let half = items.len() / 2;
        self.queue().items.extend(items.drain(..half));
        self.wake.notify_all();
    }

    /// Waits for items; false once there will be none before `pause`.
    fn take(&self, items: &mut Vec<Origin<P>>, pause: u64) -> bool {
        let mut queue = self.queue();
        queue.waiting += 1;
        self.waiting.store(queue.waiting, Ordering::Relaxed);
        while queue.items.is_empty() && !self.stands_still(pause) {
            if queue.waiting == self.threads {
                return false;
            }
            queue = self.wake.wait(queue).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        queue.waiting -= 1;
        self.waiting.store(queue.waiting, Ordering::Relaxed);
        if self.stands_still(pause) {
            return false;
        }
        // One at a time: the others that wait get theirs.
        items.extend(queue.items.pop());
        true
    }

    /// Nobody shall go on: all is done, something failed, or it is time for a pause, which is after
    /// so many entries.
    fn stands_still(&self, pause: u64) -> bool {
        self.stopped.load(Ordering::Relaxed) || self.entries.load(Ordering::Relaxed) >= pause
    }

    /// No thread waits any more, not even one that is about to.
    fn wake(&self, forever: bool) {
        let queue = self.queue();
        self.stopped.fetch_or(forever, Ordering::Relaxed);
        drop(queue);
        self.wake.notify_all();
    }
}

/// Stops the others when a thread ends, however it does: for good unless there is a pause, because
/// without one it ends only after the last.
struct StopsOthers<'a, P> {
    shared: &'a Shared<P>,
    pause: u64,
}

impl<P> Drop for StopsOthers<'_, P> {
    fn drop(&mut self) {
        self.shared.wake(self.shared.entries.load(Ordering::Relaxed) < self.pause);
    }
}

/// One thread, with the directories it has still to do.
struct Worker<W: Work> {
    work: W,
    items: Vec<Origin<W::Place>>,
    below: Below,
}

impl<W: Work> Worker<W> {
    fn run(&mut self, shared: &Shared<W::Place>, pause: u64) -> Result<(), (PathBuf, Fault)> {
        let _stops = StopsOthers { shared, pause };
        let root = shared.root.lock().ok().and_then(|mut root| root.take());
        if let Some(place) = root {
            self.count(shared, |it| it.begin(place))?;
        }
        while !shared.stands_still(pause) {
            let Some(item) = self.items.pop() else {
                if !shared.take(&mut self.items, pause) {
                    break;
                }
                continue;
            };
            self.count(shared, |it| it.do_one(item))?;
            if self.items.len() > 1 && shared.waiting.load(Ordering::Relaxed) > 0 {
                shared.give(&mut self.items);
            }
        }
        Ok(())
    }

    /// Does something, and tells all how many entries it had.
    fn count<T>(&mut self, shared: &Shared<W::Place>, work: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.work.entries();
        let done = work(self);
        shared.entries.fetch_add(self.work.entries() - before, Ordering::Relaxed);
        done
    }

    fn begin(&mut self, place: W::Place) -> Result<(), (PathBuf, Fault)> {
        let begun = self.work.go_over(&place, &mut self.below);
        begun.map_err(|fault| (PathBuf::new(), fault))?;
        self.expand(place, None)
    }

    fn do_one(&mut self, origin: Origin<W::Place>) -> Result<(), (PathBuf, Fault)> {
        let fault = |fault| (origin.path(), fault);
        let place = self.work.enter(&origin.parent.place, origin.child()).map_err(fault)?;
        self.work.go_over(&place, &mut self.below).map_err(fault)?;
        self.expand(place, Some(origin))
    }

    /// Puts the subdirectories that were noted on the stack, or leaves if there are none.
    fn expand(
        &mut self,
        place: W::Place,
        within: Option<Origin<W::Place>>,
    ) -> Result<(), (PathBuf, Fault)> {
        let Below { names, children } = &mut self.below;
        if children.is_empty() {
            return self.leave(place, within);
        }
        // The last one on the stack is the first to be done.
        children.sort_unstable_by(|one, other| other.cmp(one));
        let parent = Arc::new(Node { place, within, names: names.as_slice().into() });
        let origins = children.iter().map(|&(number, name_at)| Origin {
            parent: Arc::clone(&parent),
            number,
            name_at,
        });
        self.items.extend(origins);
        drop(parent);
        names.clear();
        children.clear();
        Ok(())
    }

    /// Leaves a directory that is done, and those above it that are done with it.
    fn leave(
        &mut self,
        mut place: W::Place,
        mut within: Option<Origin<W::Place>>,
    ) -> Result<(), (PathBuf, Fault)> {
        while let Some(origin) = within {
            let inside = Some((&origin.parent.place, origin.child()));
            self.work.leave(place, inside).map_err(|fault| (origin.path(), fault))?;
            // Each subdirectory holds on to its parent until it is done: the last one gets it.
            let Some(node) = Arc::into_inner(origin.parent) else { return Ok(()) };
            (place, within) = (node.place, node.within);
        }
        self.work.leave(place, None).map_err(|fault| (PathBuf::new(), fault))
    }
}

/// Workers on their way through all below a directory.
pub struct Traversal<W: Work> {
    path: PathBuf,
    shared: Shared<W::Place>,
    workers: Vec<Worker<W>>,
    /// From the first worker's start to the last one's end, each time.
    work_ns: u64,
}

impl<W: Work> Traversal<W> {
    /// One through all below `root`, which is open at `path`.
    pub fn new(root: W::Place, workers: Vec<W>, path: &Path) -> Traversal<W> {
        // Where it can't be raised, a tree that is deep enough says so.
        let _ = sys::raise_open_files(DESCRIPTORS);
        let shared = Shared {
            root: Mutex::new(Some(root)),
            queue: Mutex::new(Queue { items: Vec::new(), waiting: 0 }),
            wake: Condvar::new(),
            waiting: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
            entries: AtomicU64::new(0),
            threads: workers.len(),
        };
        let worker = |work| Worker { work, items: Vec::new(), below: Below::default() };
        let workers = workers.into_iter().map(worker).collect();
        Traversal { path: path.into(), shared, workers, work_ns: 0 }
    }

    fn explained(&self, failed: Failed<(PathBuf, Fault)>) -> TreeError {
        match failed {
            Failed::Thread(error) => TreeError::Thread(error),
            Failed::Work((below, fault)) => {
                let mut path = self.path.join(below);
                path.extend(fault.name.iter().map(|name| OsStr::from_bytes(name.to_bytes())));
                TreeError::Path { action: fault.action, path, source: fault.source }
            }
        }
    }

    /// Goes on until there were so many entries in all, or there are no more.
    pub fn go_on(&mut self, pause: u64) -> Result<(), TreeError> {
        let (workers, shared) = (std::mem::take(&mut self.workers), &self.shared);
        let gone_on = threads::at_once(workers, |worker| worker.run(shared, pause));
        let (workers, work_ns) = gone_on.map_err(|failed| self.explained(failed))?;
        self.workers = workers;
        self.work_ns += work_ns;
        Ok(())
    }
}

impl<W: Sums> UnderWay for Traversal<W> {
    fn go_on(&mut self, pause: u64) -> Result<(), TreeError> {
        Traversal::go_on(self, pause)
    }

    fn entries(&self) -> u64 {
        self.shared.entries.load(Ordering::Relaxed)
    }

    fn done(self: Box<Self>) -> Done {
        let workers: Vec<W> = self.workers.into_iter().map(|worker| worker.work).collect();
        let (counts, histograms) = W::summed(&workers);
        Done { counts, histograms, work_ns: self.work_ns }
    }
}
