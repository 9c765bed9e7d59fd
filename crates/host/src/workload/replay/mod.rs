//! The replay workload: an application's calls, recorded by `fsverdict record`, made again.
//!
//! What was there before the first call is laid out beforehand. Each thread of the recording is one
//! of ours, and makes its calls one after the other; before a call it waits for the calls of other
//! threads that the recording names, and, if the replay is paced, as long as the application
//! waited.
//!
//! A latency is one call's, without what it has waited for. Every call must give the recorded
//! result: as many bytes, the same place, the same error. Results that just differ between file
//! systems are not compared: how many bytes of a directory come at once, attributes that were there
//! before.
//!
//! - A program's page faults are copies between the mapping and a buffer, which the kernel makes.
//! - A vector of buffers is one buffer of the same size, and `sync` a syncfs of the file system
//!   under test.
//! - Owners become nobody (65534), or stay where the process is not root, which may not give files
//!   away; times become the start of 2001; attributes are called `user.` and as long as they were,
//!   but for access control lists.

mod beneath;
mod buffers;
mod ended;
mod lay_out;
mod mapped;
mod perform;
mod progress;
mod room;
mod words;

use std::collections::BTreeMap;
use std::ffi::{CString, NulError};
use std::fs::File;
use std::io::{self, BufReader};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::RwLock;

use fsverdict_core::model::{
    Action, Call, Device, FILE_SIZE_MAX, Gave, Head, On, Phase, PhaseRecord, Recording, Replay,
    Replayed, Sample, Turns, Unit, Workload,
};
use fsverdict_core::recording::{self, RecordingError};
use fsverdict_core::run::{HostError, Step};
use thiserror::Error;

use super::PathError;
use super::engine::{Act, Done, Engine, OVER, Scene, TimedPart, only_whole};
use super::relay::{self, Relay};
use crate::sys::{self, Mapped};
use crate::timing::Latencies;
use crate::timing::threads::{self, Failed};
use beneath::{Beneath, Folder, Name};
use buffers::{Buffer, Pool};
use perform::{Expected, PreparedCall, Worker};
use progress::Progress;
use room::Part;

/// Descriptors there are besides the recording's: standard ones, the probes', the directory's.
const OTHER_DESCRIPTORS: u64 = 64;

/// Why it could not be done, or was not what was recorded.
#[derive(Debug, Error)]
enum ReplayError {
    #[error("recording {}: {source}", path.display())]
    Recording { path: PathBuf, source: RecordingError },
    #[error("{0}")]
    Path(#[from] PathError),
    #[error("call {call}: this fsverdict knows no {word} for such a call")]
    Word { call: usize, word: String },
    #[error("call {call} is of {bytes} bytes: at most {FILE_SIZE_MAX} are replayed at once")]
    TooLarge { call: usize, bytes: u64 },
    #[error(
        "its calls take buffers of {} at once, and {} of memory are available",
        Unit::Bytes.format(*needed_bytes as f64), Unit::Bytes.format(*available_bytes as f64)
    )]
    Memory { needed_bytes: u64, available_bytes: u64 },
    #[error(
        "it begins with files of {}, and {} are free: use a larger bed",
        Unit::Bytes.format(*needed_bytes as f64), Unit::Bytes.format(*free_bytes as f64)
    )]
    Room { needed_bytes: u64, free_bytes: u64 },
    #[error("ask for the free space: {0}")]
    Free(io::Error),
    #[error("call {call}: {source}")]
    Name { call: usize, source: NulError },
    #[error(
        "{needed} files can't be open at once: this process may have {allowed} (ulimit -Hn), of \
         which it needs {OTHER_DESCRIPTORS} for itself"
    )]
    OpenFiles { needed: u64, allowed: u64 },
    #[error("raise the limit on open files: {0}")]
    Limit(io::Error),
    #[error(
        "keep the replay in its folder: {0}; it needs the right to change the root \
         (CAP_SYS_CHROOT), or openat2 (Linux 5.6)"
    )]
    Keep(io::Error),
    #[error("start a thread for the replay: {0}")]
    Thread(io::Error),
    #[error("its turns: {0}")]
    InTurns(#[from] io::Error),
    #[error(
        "{count} of {calls} calls gave something else than when they were recorded; the first: \
         {first}"
    )]
    Differs { count: u64, calls: usize, first: String },
}

impl Engine for Replay {
    fn check(&self, _workload: &Workload) -> Result<(), HostError> {
        Ok(head(self).map(drop)?)
    }

    fn files(&self) -> Vec<String> {
        vec![self.recording.clone()]
    }

    fn lay_out(&self, scene: &Scene) -> Result<(), HostError> {
        Ok(lay_out(self, &folder(&scene.directory)?, scene.seed)?)
    }

    fn prepare<'a>(
        &'a self,
        phase: Phase,
        scene: &'a Scene,
    ) -> Result<Box<dyn TimedPart + 'a>, HostError> {
        only_whole(phase)?;
        let ready = Some(prepare(self, folder(&scene.directory)?, scene.seed)?);
        let Scene { relay, devices, .. } = *scene;
        Ok(Box::new(Whole { ready, over: None, relay, devices }))
    }

    fn dry(&self, step: Step, _scene: &Scene) -> Result<Vec<Act>, HostError> {
        let (head, from) = (head(self)?, &self.recording);
        let said = match step {
            Step::Fill => format!("the {} files and directories of {from}", head.entries),
            Step::Work(phase) => {
                only_whole(phase)?;
                let pace = if self.paced { "with their pauses" } else { "without a pause" };
                format!("the {} calls of {from}, {} threads, {pace}", head.calls, head.threads)
            }
            _ => return Ok(Vec::new()),
        };
        Ok(vec![Act::Within(said)])
    }
}

/// All calls, and what became of them.
struct Whole<'a> {
    ready: Option<Prepared>,
    over: Option<(Prepared, Done)>,
    relay: Option<&'a Relay>,
    devices: &'a [Device],
}

impl TimedPart for Whole<'_> {
    fn run(&mut self) -> Result<(), HostError> {
        let mut prepared = self.ready.take().ok_or(OVER)?;
        let done = match self.relay {
            Some(relay) => prepared.run_in_turns(relay, self.devices)?,
            None => prepared.run()?,
        };
        self.over = Some((prepared, done));
        Ok(())
    }

    fn figures(&mut self, record: &mut PhaseRecord) -> Result<(), HostError> {
        let (Prepared { recording, folder, workers, .. }, done) = self.over.take().ok_or(OVER)?;
        done.enter(record);
        let copied = workers.iter().map(|worker| worker.copied).sum();
        let compared = ended::compare(&recording, &folder.path);
        record.replayed = Some(Replayed { copied, ..compared });
        Ok(())
    }
}

/// The recording's first line: whether there is one, and what is in it.
fn head(replay: &Replay) -> Result<Head, ReplayError> {
    opened(replay, recording::read_head)
}

fn opened<T>(
    replay: &Replay,
    read: impl FnOnce(BufReader<File>) -> Result<T, RecordingError>,
) -> Result<T, ReplayError> {
    let path = PathBuf::from(&replay.recording);
    let file = File::open(&path).map_err(RecordingError::from);
    let read = file.and_then(|file| read(BufReader::new(file)));
    read.map_err(|source| ReplayError::Recording { path, source })
}

/// The folder of the work, which no path of the recording leads out of.
fn folder(path: &Path) -> Result<Folder, ReplayError> {
    Folder::open(path).map_err(ReplayError::Keep)
}

/// Lays out what was there before the first call.
fn lay_out(replay: &Replay, folder: &Folder, seed: u64) -> Result<(), ReplayError> {
    let recording = opened(replay, recording::read)?;
    room::in_folder(&recording, replay, folder)?;
    // Another seed: what is written over it must not be what it holds.
    let all = |beneath: &Beneath<'_>| lay_out::lay_out(&recording, replay, beneath, !seed);
    Ok(folder.keep(all).map_err(ReplayError::Keep)??)
}

/// All calls, with everything they need in memory.
struct Prepared {
    recording: Recording,
    folder: Folder,
    shared: Shared,
    workers: Vec<Worker>,
}

/// What all threads use.
struct Shared {
    paths: Vec<Name>,
    /// The open files: closed by a call, and read by those that use them.
    handles: Vec<RwLock<Option<OwnedFd>>>,
    /// The files in memory: mapped, made longer and unmapped by a call.
    maps: Vec<RwLock<Option<Mapped>>>,
    /// What these take of the addresses.
    taken: mapped::Taken,
    progress: Vec<Progress>,
    owner: (u32, u32),
    paced: bool,
}

/// Makes everything ready in `folder`. The same seed gives the same contents.
fn prepare(replay: &Replay, folder: Folder, seed: u64) -> Result<Prepared, ReplayError> {
    let recording = opened(replay, recording::read)?;
    let needed =
        most_open(&recording.calls) + OTHER_DESCRIPTORS + u64::from(recording.head.threads);
    let allowed = sys::raise_open_files(needed).map_err(ReplayError::Limit)?;
    if allowed < needed {
        return Err(ReplayError::OpenFiles { needed, allowed });
    }
    let threads = recording.head.threads;
    let parts = (0..).zip(room::parts(&recording)?);
    let workers = parts.map(|(thread, part)| worker(replay, thread, &part, seed));
    let workers = workers.collect::<Result<_, _>>()?;
    let shared = Shared {
        paths: names(&recording),
        handles: (0..recording.head.handles).map(|_| RwLock::default()).collect(),
        maps: (0..recording.head.maps).map(|_| RwLock::default()).collect(),
        taken: mapped::Taken::default(),
        progress: (0..threads).map(|_| Progress::default()).collect(),
        owner: if sys::is_root() { super::NOBODY } else { (sys::user_id(), sys::group_id()) },
        paced: replay.paced,
    };
    Ok(Prepared { recording, folder, shared, workers })
}

/// The paths of a recording that has been checked.
fn names(recording: &Recording) -> Vec<Name> {
    let name = |path: &String| Name::new(path).expect("a path is read without NUL");
    recording.paths.iter().map(name).collect()
}

/// How many files are open at once, in the order of the recording.
fn most_open(calls: &[Call]) -> u64 {
    let (mut open, mut most) = (0_u64, 0);
    for call in calls {
        match call.action {
            Action::Open { handle: Some(_), .. } => open += 1,
            Action::Close { .. } => open = open.saturating_sub(1),
            _ => {}
        }
        most = most.max(open);
    }
    most
}

/// One thread's calls with all they need.
fn worker(replay: &Replay, thread: u32, part: &Part, seed: u64) -> Result<Worker, ReplayError> {
    let (mut prepared, mut latencies) = (Vec::new(), Vec::<(&str, Latencies)>::new());
    for &(number, call) in &part.calls {
        let name = call.action.name();
        let operation = latencies.iter().position(|(known, _)| *known == name);
        let operation = operation.unwrap_or_else(|| {
            latencies.push((name, Latencies::new()));
            latencies.len() - 1
        });
        prepared.push(prepared_call(number, call, operation)?);
    }
    let [most_read, most_written] = part.most;
    Ok(Worker {
        thread: thread as usize,
        calls: prepared,
        latencies,
        pool: Pool::new(replay, most_written, [seed, thread.into()]),
        buffer: Buffer::new(most_read),
        read_bytes: 0,
        written_bytes: 0,
        copied: 0,
        differences: 0,
        first_difference: None,
        late_ns: 0,
        next: 0,
    })
}

fn prepared_call(
    number: usize,
    call: &Call,
    operation: usize,
) -> Result<PreparedCall, ReplayError> {
    let word = |word| ReplayError::Word { call: number + 1, word };
    let text = match &call.action {
        Action::Symlink { target, .. } => target.clone(),
        Action::Setxattr { name_bytes, .. }
        | Action::Getxattr { name_bytes, .. }
        | Action::Removexattr { name_bytes, .. } => attribute_name(*name_bytes),
        Action::SetAcl { default: true, .. } => "system.posix_acl_default".into(),
        Action::SetAcl { .. } => "system.posix_acl_access".into(),
        _ => String::new(),
    };
    let value = match &call.action {
        Action::SetAcl { entries, .. } => acl(entries),
        _ => Box::default(),
    };
    let name = |source| ReplayError::Name { call: number + 1, source };
    Ok(PreparedCall {
        number,
        flags: words::number(&call.action).map_err(word)?,
        text: CString::new(text).map_err(name)?,
        value,
        expected: expected(call).map_err(word)?,
        waits: call.waits.iter().map(|&(thread, calls)| (thread as usize, calls)).collect(),
        pause_ns: call.pause_ns,
        action: call.action.clone(),
        operation,
    })
}

/// A name of an attribute that any user may set (xattr(7)), as long as that, if it can be so short.
fn attribute_name(bytes: u64) -> String {
    let rest = (bytes as usize).clamp(6, 255) - "user.".len();
    format!("user.{}", "a".repeat(rest))
}

/// An access control list as the kernel takes it: linux/posix_acl_xattr.h.
fn acl(entries: &[[u32; 3]]) -> Box<[u8]> {
    let mut value = 2_u32.to_le_bytes().to_vec();
    for [tag, rights, number] in entries {
        value.extend([tag, rights].iter().flat_map(|it| (**it as u16).to_le_bytes()));
        value.extend(number.to_le_bytes());
    }
    value.into()
}

/// What the call must give.
fn expected(call: &Call) -> Result<Expected, String> {
    Ok(match (&call.action, &call.gave) {
        (
            Action::Getxattr { .. }
            | Action::Listxattr { .. }
            | Action::Removexattr { .. }
            | Action::Advise { .. }
            | Action::AdviseMap { .. },
            _,
        ) => Expected::Anything,
        // For one that was there before the result is unknown.
        (Action::SetAcl { entries, .. }, _) if entries.is_empty() => Expected::Anything,
        (_, Gave::Error(name)) => Expected::Error(words::error(name)?),
        (
            Action::Read { .. }
            | Action::Pread { .. }
            | Action::Write { .. }
            | Action::Pwrite { .. }
            | Action::Seek { .. }
            | Action::CopyRange { .. }
            | Action::Sendfile { .. },
            Gave::Value(value),
        ) => Expected::Value(*value),
        (_, Gave::Value(_) | Gave::Unseen) => Expected::Success,
    })
}

impl Prepared {
    /// Does it. Calls with other results than in the recording are an error: something else was
    /// measured.
    fn run(&mut self) -> Result<Done, ReplayError> {
        let work_ns = self.go_on(self.recording.calls.len())?;
        self.check()?;
        Ok(self.summed(work_ns, None))
    }

    /// Works in turns of equally many calls, in the order in which they ended when recorded: a call
    /// waits only for earlier ones, so that none waits for a later turn.
    fn run_in_turns(&mut self, relay: &Relay, devices: &[Device]) -> Result<Done, ReplayError> {
        let all = self.recording.calls.len();
        let turns = relay::shares(all as u64);
        let end = |turn: u32| all * (turn as usize + 1) / turns as usize;
        relay.share_out(turns, devices, |turn| self.go_on(end(turn)).map(drop))?;
        self.check()?;
        let calls = |turn: u32| (end(turn) - turn.checked_sub(1).map_or(0, end)) as u64;
        let turns = relay.taken().turns.of_whole_cycles((0..turns).map(calls).collect());
        Ok(self.summed(turns.all_ns(), Some(turns)))
    }

    /// Makes the calls up to that one of the recording: how long it took.
    fn go_on(&mut self, end: usize) -> Result<u64, ReplayError> {
        let workers = std::mem::take(&mut self.workers);
        let all = |beneath: &Beneath<'_>| {
            let work = |worker: &mut Worker| {
                worker.go_on(end, &self.shared, beneath);
                Ok::<(), io::Error>(())
            };
            threads::at_once(workers, work)
        };
        match self.folder.keep(all).map_err(ReplayError::Keep)? {
            Ok((workers, work_ns)) => {
                self.workers = workers;
                Ok(work_ns)
            }
            Err(Failed::Thread(error) | Failed::Work(error)) => Err(ReplayError::Thread(error)),
        }
    }

    fn check(&self) -> Result<(), ReplayError> {
        let count = self.workers.iter().map(|worker| worker.differences).sum();
        let firsts = self.workers.iter().filter_map(|worker| {
            let (place, gave) = worker.first_difference?;
            Some((worker.calls[place].number, gave))
        });
        let Some((number, gave)) = firsts.min() else { return Ok(()) };
        let Recording { calls, .. } = &self.recording;
        Err(ReplayError::Differs { count, calls: calls.len(), first: self.told(number, gave) })
    }

    /// A call that gave something else: `gave` is a negative number of an error, or a value.
    fn told(&self, number: usize, gave: i64) -> String {
        let Recording { paths, calls, .. } = &self.recording;
        let call = &calls[number];
        let mut on = None;
        call.action.each(|it| on = on.or(Some(it)));
        let mapped = call.action.map();
        let maps = calls.iter().find_map(|call| match call.action {
            Action::Map { map, handle, .. } if mapped == Some(map) => Some(On::Handle(handle)),
            _ => None,
        });
        let of = |wanted: u32| {
            calls.iter().find_map(|call| match call.action {
                Action::Open { path, handle: Some(handle), .. } if handle == wanted => Some(path),
                _ => None,
            })
        };
        let path = on.or(maps).and_then(|on| match on {
            On::Path(path) => Some(path),
            On::Handle(handle) => of(handle),
        });
        let path = path.map_or("", |path| paths[path as usize].as_str());
        let gave = match gave {
            ..0 => io::Error::from_raw_os_error(-gave as i32).to_string(),
            value => value.to_string(),
        };
        let instead = match &call.gave {
            Gave::Value(value) => value.to_string(),
            Gave::Error(name) => name.clone(),
            Gave::Unseen => "success".into(),
        };
        format!("call {}, {} {path}: {gave} instead of {instead}", number + 1, call.action.name())
    }

    fn summed(&self, work_ns: u64, turns: Option<Turns>) -> Done {
        let workers = &self.workers;
        let mut merged: BTreeMap<&str, Latencies> = BTreeMap::new();
        for (name, latencies) in workers.iter().flat_map(|worker| &worker.latencies) {
            merged.entry(name).or_default().merge(latencies);
        }
        let histograms: BTreeMap<String, _> =
            merged.into_iter().map(|(name, taken)| (name.to_string(), taken.to_model())).collect();
        let in_calls_ns: u64 = histograms.values().map(|histogram| histogram.sum_ns).sum();
        let calls = &self.recording.calls;
        let syncs = calls.iter().filter(|call| call.action.is_sync()).count();
        let samples = vec![
            Sample::lower("call_time", in_calls_ns as f64 / 1e9, Unit::Seconds),
            Sample::lower("syncs", syncs as f64, Unit::Count),
        ];
        Done {
            operations: Some(calls.len() as u64),
            application_read_bytes: workers.iter().map(|worker| worker.read_bytes).sum(),
            application_write_bytes: workers.iter().map(|worker| worker.written_bytes).sum(),
            histograms,
            samples,
            work_ns,
            turns,
        }
    }
}

#[cfg(test)]
mod escapes;
#[cfg(test)]
mod tests;
