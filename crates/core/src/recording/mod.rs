//! From what strace(1) says about a command to a recording that can be replayed.
//!
//! [`Watch`] gets what there was before the command began, and then each line of the trace, and the
//! page faults before it. It follows the processes with their descriptors and working directories,
//! and the names below the watched folders; turns calls on these into [`Call`]s; and finds out
//! which calls have to wait for which. It counts what it can't take into the recording.

mod attributes;
mod calls;
mod follow;
pub mod iolog;
mod line;
mod mapped;
mod memory;
mod names;
mod on_path;
mod order;
mod processes;
mod rings;
mod space;
mod submitted;
#[cfg(test)]
mod tests;
mod text;

use std::collections::{BTreeMap, HashMap};

pub use calls::{ADVICE, ALLOCATE_FLAGS, ERRORS, SETTABLE_FLAGS};
pub use line::{text_of, time_ns};
pub use text::{RecordingError, read, read_head, write};

use crate::model::{Action, Call, Entry, Gave, Head, Laid, RECORDING, Recording};
use line::{Ended, Event, Lines};
use names::Names;
use order::{Key, Need, Order};
use processes::{Births, Open, Processes};
use space::{Laying, Space};

/// Something that was there before the command began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its absolute path, no part of which is a symbolic link.
    pub path: String,
    /// What it is; a link with its target as it is.
    pub what: Laid,
    /// Device and inode of a file that has several names.
    pub identity: Option<(u64, u64)>,
}

/// What is to be recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Absolute paths of the watched folders, each with its number; a folder may have several.
    pub folders: Vec<(String, usize)>,
    /// Where the command begins.
    pub working_directory: String,
    /// The umask with which it begins.
    pub umask: u32,
    /// Files keep their names.
    pub keep_names: bool,
    /// What the tracer adds between two calls of a thread.
    pub tracer_ns: u64,
    /// Which page faults [`Watch::fault`] gets.
    pub faults: Faults,
    /// The machine's pages of memory.
    pub page_bytes: u64,
}

/// Which page faults are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Faults {
    /// None.
    #[default]
    Unseen,
    /// All, and not whether a page was to be read or written.
    Seen,
    /// All, with that.
    Told,
}

/// A thread met a page that was not in its memory, or could not be written there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Who.
    pub thread: u32,
    /// When, by the clock of the trace.
    pub at_ns: u64,
    /// Where.
    pub address: u64,
    /// To write there; `None` where nobody knows.
    pub writes: Option<bool>,
}

/// PATH_MAX of linux/limits.h, which counts the byte that ends a path.
const PATH_BYTES_MAX: usize = 4096;

/// Calls that are counted and not recorded. They begin with what they are in the plural.
mod why {
    pub const ELSEWHERE: &str = "calls on files elsewhere";
    pub const PIPES: &str = "calls on pipes, sockets and devices";
    pub const PASSED: &str = "calls on files that were open before, or were opened by others";
    pub const LONG: &str = "calls on files whose paths are longer than the kernel takes";
    pub const TOO_LONG: &str = "calls that were refused for the length of a path";
    pub const PATH_END: &str = "calls that were refused for how a path ends";
    pub const OF_LINKS: &str = "calls that ask for attributes of symbolic links";
    pub const OTHERS: &str = "calls that met what others had changed";
    pub const RIGHTS: &str = "calls that were refused for want of rights";
    pub const ROOM: &str = "calls that failed for want of room";
    pub const UNSUPPORTED: &str = "calls that the file system did not support";
    pub const INTERRUPTED: &str = "calls that were interrupted";
    pub const UNKNOWN: &str = "calls of a kind that can't be replayed";
    pub const MAPPED: &str = "mappings of files for writing";
    pub const MAPPED_BYTES: &str = "bytes of files mapped for writing";
    /// Page faults were not seen.
    pub const MAPPED_WHOLE: &str = "mappings of files for reading, all of which a replay reads";
    pub const FAULTS: &str = "page faults that there was no room for in the kernel's buffers";
    /// In older recordings.
    pub const MAPPED_READS: &str = "mappings of files for reading";
    pub const RINGS: &str = "operations of io_uring that can't be seen";
    /// In older recordings.
    pub const RINGS_AT_ALL: &str = "operations of io_uring, which strace does not show";
    pub const REQUESTS: &str = "requests of io_submit beyond those that strace shows";
    /// In older recordings.
    pub const CALLS_OF_BOTH: &str = "calls of io_uring and io_submit";
    pub const LINES: &str = "lines of the trace that can't be read";

    /// A replay without these does not do all that the application did below the folders. Failed
    /// calls don't count: what was done instead is in the recording.
    pub const LACKING: [&str; 12] = [
        PASSED,
        LONG,
        OTHERS,
        UNKNOWN,
        MAPPED,
        MAPPED_WHOLE,
        MAPPED_READS,
        FAULTS,
        RINGS,
        RINGS_AT_ALL,
        REQUESTS,
        CALLS_OF_BOTH,
    ];
}

/// How many calls below the folders a replay of this recording lacks.
pub fn missing(head: &Head) -> u64 {
    why::LACKING.iter().filter_map(|what| head.left_out.get(*what)).sum()
}

/// Among them are operations of io_uring.
pub fn is_without_rings(head: &Head) -> bool {
    head.left_out.contains_key(why::RINGS)
}

/// What a tracer adds between two calls of a thread, by the trace of one that does nothing but read
/// and write: the median; `None` where there are too few.
pub fn tracer_ns<'a>(trace: impl Iterator<Item = &'a str>) -> Option<u64> {
    const FEWEST: usize = 100;
    let mut lines = Lines::default();
    let mut gaps_ns = Vec::new();
    let mut last_ns = None;
    for line in trace {
        let Some((_, _, Event::Ended(text, start_ns))) = lines.read(line) else { continue };
        let Some(call) = line::call(&text, start_ns) else { continue };
        let counts = ["read", "write"].contains(&call.name);
        let gap_ns = last_ns.map(|last_ns| start_ns.saturating_sub(last_ns));
        gaps_ns.extend(gap_ns.filter(|_| counts));
        last_ns = counts.then_some(call.end_ns);
    }
    gaps_ns.sort_unstable();
    gaps_ns.get(gaps_ns.len() / 2).copied().filter(|_| gaps_ns.len() >= FEWEST)
}

/// An open file: from its open to the close of its last descriptor.
#[derive(Debug)]
struct Handle {
    node: usize,
    /// Its name when it was opened.
    real: String,
    descriptors: u32,
    /// Its flags that fcntl(2) can change.
    flags: String,
}

/// A file in the memory of processes, until none has a piece of it.
#[derive(Debug)]
struct Mapping {
    node: usize,
    /// What is written to it is the file's.
    is_shared: bool,
    /// Whether a page is read or written is not known, and it may be either.
    is_unclear: bool,
    /// How long it has been.
    bytes: u64,
    /// In how many pieces it is mapped, in all processes.
    pieces: i64,
    /// Its call.
    call: usize,
}

/// A call as it goes into the recording, with what it has in common with others.
struct Translated {
    action: Action,
    gave: Gave,
    keys: Vec<(Key, bool)>,
}

/// Watches a command through the lines of its trace.
#[derive(Debug)]
pub struct Watch {
    wanted: Wanted,
    lines: Lines,
    births: Births,
    processes: Processes,
    space: Space,
    order: Order,
    handles: Vec<Handle>,
    mappings: Vec<Mapping>,
    paths: Vec<String>,
    places: HashMap<String, u32>,
    calls: Vec<Call>,
    left_out: BTreeMap<String, u64>,
    /// Requests of io_submit and io_uring that are recorded.
    one_by_one: u64,
    /// Times of the first and the last line.
    times_ns: Option<[u64; 2]>,
}

impl Watch {
    /// Ready for the first line; `found` is the content of the folders, parents first.
    pub fn new(wanted: Wanted, found: Vec<Found>) -> Watch {
        Watch {
            space: Space::new(wanted.folders.clone(), found),
            processes: Processes::new(&wanted.working_directory, wanted.umask),
            wanted,
            lines: Lines::default(),
            births: Births::default(),
            order: Order::default(),
            handles: Vec::new(),
            mappings: Vec::new(),
            paths: Vec::new(),
            places: HashMap::new(),
            calls: Vec::new(),
            left_out: BTreeMap::new(),
            one_by_one: 0,
            times_ns: None,
        }
    }

    /// A first look at a line, for the parents of processes. A child may appear before the end of
    /// the call that made it, so all lines have to be shown here before the first is read.
    pub fn foresee(&mut self, line: &str) {
        self.births.foresee(line);
    }

    /// Reads a line.
    pub fn read(&mut self, line: &str) {
        let Some((thread, at_ns, event)) = self.lines.read(line) else {
            self.leave_out(why::LINES);
            return;
        };
        let [begin_ns, end_ns] = self.times_ns.get_or_insert([at_ns; 2]);
        *end_ns = at_ns.max(*end_ns);
        let begin_ns = *begin_ns;
        self.order.begin(begin_ns);
        if event != Event::Gone {
            self.meet(thread);
        }
        match event {
            Event::Ended(text, start_ns) => match line::call(&text, start_ns) {
                Some(call) => self.ended(thread, &call),
                None => self.leave_out(why::LINES),
            },
            Event::Gone => self.gone(thread, at_ns),
            Event::Superseded(other) => {
                self.gone(thread, at_ns);
                self.processes.supersede(thread, other);
            }
            Event::Begun | Event::Nothing => {}
        }
    }

    fn meet(&mut self, thread: u32) {
        let Watch { processes, births, handles, mappings, order, .. } = self;
        processes.meet(thread, births, &mut Open { handles, mappings }, order);
    }

    fn leave_out(&mut self, what: &str) {
        self.leave_out_several(what, 1);
    }

    fn leave_out_several(&mut self, what: &str, count: u64) {
        let all = self.left_out.entry(what.into()).or_default();
        *all = all.saturating_add(count);
    }

    /// A call has ended: processes follow from it, or it goes into the recording, or it is counted.
    fn ended(&mut self, thread: u32, call: &Ended) {
        if self.follow(thread, call) {
            return;
        }
        // A replay goes step by step where a path is long, and is not refused.
        let is_long = call.arguments.iter().any(|argument| argument.len() >= PATH_BYTES_MAX);
        if is_long && call.failed_with("ENAMETOOLONG") {
            self.leave_out(why::TOO_LONG);
            return;
        }
        match self.translated(thread, call) {
            Ok(Some(translated)) => self.enter(thread, [call.start_ns, call.end_ns], translated),
            Ok(None) => {}
            // strace shows no path for a closed descriptor, either.
            Err(_) if call.failed_with("EBADF") => self.leave_out(why::PIPES),
            Err(what) => self.leave_out(what),
        }
    }

    /// Puts a call into the recording.
    fn enter(&mut self, thread: u32, times_ns: [u64; 2], translated: Translated) {
        let Translated { action, gave, keys } = translated;
        let lane = self.processes.lane(thread, times_ns[0], &mut self.order);
        let needs: Vec<Need> = self.processes.take_needs(thread);
        let entered = self.order.enter(lane, times_ns, &keys, &needs);
        // No tracer stops a thread at a fault.
        let is_traced = !matches!(action, Action::Touch { .. });
        let tracer_ns = if is_traced { self.wanted.tracer_ns } else { 0 };
        let pause_ns = entered.pause_ns.saturating_sub(tracer_ns);
        self.calls.push(Call { thread: lane, pause_ns, waits: entered.waits, action, gave });
    }

    /// Files whose last descriptor is closed: a call of the thread that did it.
    fn close(&mut self, thread: u32, times_ns: [u64; 2], closed: Vec<u32>) {
        for handle in closed {
            let of = &mut self.handles[handle as usize];
            of.descriptors -= 1;
            if of.descriptors == 0 {
                let keys = vec![(Key::Handle(handle), true), (Key::Content(of.node), false)];
                let (action, gave) = (Action::Close { handle }, Gave::default());
                self.enter(thread, times_ns, Translated { action, gave, keys });
            }
        }
    }

    /// The thread is gone; with the last of its process its files are closed.
    fn gone(&mut self, thread: u32, at_ns: u64) {
        let open = self.processes.open_files_of_last(thread);
        self.close(thread, [at_ns; 2], open);
        let unmapped = self.processes.leave_memory(thread);
        self.let_go(thread, [at_ns; 2], unmapped);
        self.processes.end(thread, &mut self.order);
    }

    /// The place of a path in the recording.
    fn path(&mut self, written: &str) -> u32 {
        if let Some(&place) = self.places.get(written) {
            return place;
        }
        let place = self.paths.len() as u32;
        self.paths.push(written.into());
        self.places.insert(written.into(), place);
        place
    }

    fn entered(&mut self, layings: Vec<Laying>) -> Vec<Entry> {
        let entry = |Laying { name, what, same_as }: Laying| {
            let path = self.path(&name);
            let what = same_as.map_or(what, |first| Laid::NameOf { path: self.path(&first) });
            Entry { path, what }
        };
        layings.into_iter().map(entry).collect()
    }

    /// The recording, when there are no more lines, and `found` is in the folders.
    pub fn finish(mut self, found: Vec<Found>) -> Recording {
        let laid = self.space.entries();
        let ends = self.space.ends(found, &laid);
        let [mut entries, mut ends] = [laid, ends].map(|layings| self.entered(layings));
        let mut names = Names::new(self.wanted.keep_names);
        let paths: Vec<String> = self.paths.iter().map(|path| names.path(path)).collect();
        let links = entries.iter_mut().chain(&mut ends).filter_map(|entry| match &mut entry.what {
            Laid::Link { target } => Some((entry.path, target)),
            _ => None,
        });
        let made = self.calls.iter_mut().filter_map(|call| match &mut call.action {
            Action::Symlink { target, path } => Some((*path, target)),
            _ => None,
        });
        for (path, target) in links.chain(made) {
            // As far up as there are directories: then down again from the folder of all.
            let depth = self.paths[path as usize].matches('/').count();
            let up = target.split('/').take_while(|part| *part == "..").count();
            *target = names.target(target, up >= depth && up > 0);
        }
        let [begin_ns, end_ns] = self.times_ns.unwrap_or_default();
        let head = Head {
            recording: RECORDING,
            names_kept: self.wanted.keep_names,
            threads: self.order.lanes(),
            handles: self.handles.len() as u32,
            maps: self.mappings.len() as u32,
            paths: paths.len() as u64,
            entries: entries.len() as u64,
            calls: self.calls.len() as u64,
            ends: ends.len() as u64,
            elapsed_ns: end_ns - begin_ns,
            tracer_ns: self.wanted.tracer_ns,
            one_by_one: self.one_by_one,
            left_out: self.left_out,
        };
        Recording { head, paths, entries, calls: self.calls, ends }
    }
}
