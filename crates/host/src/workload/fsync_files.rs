//! The fsync-anatomy study's test program: many files written, the last of them synced.
//!
//! The files are laid out before the caches are dropped, those of each repetition in a directory of
//! its own: empty for the allocating case, whole for the others: one overwrites, one appends. So in
//! all cases the files exist and are durable, and besides data an fsync only has to commit what the
//! *writes* changed, not the creation of files.
//!
//! A repetition opens its files, writes to each, syncs the last one, closes them and has the whole
//! file system synced (syncfs), so that the next one begins with nothing dirty. Latencies are those
//! of the calls write, fsync and syncfs; the last shows what the fsync left to be written. The
//! probes see the whole phase, with the cost of all other files. Therefore the devices' counters
//! are also read right before and after each fsync: what completed in between counts as its work.
//!
//! In place of the fsync the plan may have another operation measured, under the same names: what
//! it leaves for the closing syncfs tells how much of the work it did.
//!
//! Where requests are recorded, each write and both ends of each fsync are marks in the record.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fsverdict_core::model::{
    Bytes, Device, DeviceTotals, FsyncCase, FsyncFiles, FsyncOperation, Operation, Phase, Sample,
    SmallFiles, Sync, Turns, Unit,
};
use fsverdict_core::run::{HostError, Step};
use thiserror::Error;

use super::PathError;
use super::directories::{self, Directories, Names};
use super::engine::{Act, Done, Engine, Scene, TimedPart, native, only_whole};
use super::random_bytes::RandomBytes;
use super::relay::{self, Relay};
use super::small_files::{self, SmallFilesError};
use crate::machine::marks::Marks;
use crate::probe::{DeviceReader, DeviceReading, ProbeError};
use crate::sys::{self, ChangedRoot};
use crate::timing::Latencies;

/// Descriptors there are besides the files': standard ones, the probes', the directories'.
const OTHER_DESCRIPTORS: u64 = 64;

/// Requests under way: where there seem to be more, the kernel has counted below zero.
const IN_FLIGHT: Range<u64> = 1..1 << 31;
/// So long it takes at most until the kernel no longer counts a request that is done.
const PAUSE: Duration = Duration::from_micros(100);
/// So many fsyncs tell whether they return early: others' requests may be there by chance.
const FSYNCS_MIN: u64 = 8;

/// What the name of a file begins with that was not laid out.
const FRESH: char = 'n';

/// Why it could not be done.
#[derive(Debug, Error)]
enum FsyncFilesError {
    #[error("lay the files out: {0}")]
    LayOut(#[from] SmallFilesError),
    #[error(
        "{files} files can't be open at once: this process may have {allowed} (ulimit -Hn), and \
         needs {OTHER_DESCRIPTORS} for itself"
    )]
    OpenFiles { files: u32, allowed: u64 },
    #[error("raise the limit on open files: {0}")]
    Limit(io::Error),
    #[error("{0}")]
    Path(#[from] PathError),
    #[error("{0}")]
    Probe(#[from] ProbeError),
    #[error("its folder or its turns: {0}")]
    InTurns(#[from] io::Error),
}

impl Engine for FsyncFiles {
    fn lay_out(&self, scene: &Scene) -> Result<(), HostError> {
        Ok(lay_out(self, &scene.directory, scene.seed)?)
    }

    fn prepare<'a>(
        &'a self,
        phase: Phase,
        scene: &'a Scene,
    ) -> Result<Box<dyn TimedPart + 'a>, HostError> {
        only_whole(phase)?;
        let prepared = prepare(self, &scene.directory, scene.devices, scene.seed)?;
        native(|| match scene.relay {
            Some(relay) => prepared.run_in_turns(relay, scene.devices),
            None => prepared.run(scene.marks),
        })
    }

    fn dry(&self, step: Step, _scene: &Scene) -> Result<Vec<Act>, HostError> {
        Ok(match step {
            Step::Fill => {
                let size = size_before(self);
                let size = if size.0 == 0 { "nothing".into() } else { size.to_string() };
                let (count, directories) = (self.all_files(), self.repetitions);
                vec![Act::Within(format!("{count} files of {size} in {directories} directories"))]
            }
            Step::Work(phase) => {
                only_whole(phase)?;
                vec![Act::Within(format!(
                    "{} times: open {} files, write {} to each, {}, close, syncfs",
                    self.repetitions,
                    self.files,
                    self.size,
                    said(self.operation)
                ))]
            }
            _ => Vec::new(),
        })
    }
}

/// What is measured, in words.
fn said(operation: FsyncOperation) -> &'static str {
    match operation {
        FsyncOperation::Fsync => "fsync the last",
        FsyncOperation::Fdatasync => "fdatasync the last",
        FsyncOperation::ODsync => "the last with O_DSYNC",
        FsyncOperation::SyncFileRange => "sync_file_range the last",
        FsyncOperation::Rename => "rename the last over the first",
        FsyncOperation::Create => "the last a new one, fsync it and its directory",
        FsyncOperation::Syncfs => "syncfs",
    }
}

/// What a file holds before it is written to.
fn size_before(files: &FsyncFiles) -> Bytes {
    match files.case {
        FsyncCase::Allocating => Bytes(0),
        FsyncCase::Overwriting | FsyncCase::Extending => files.size,
    }
}

/// How its files are opened (open(2)).
fn open_flags(case: FsyncCase) -> libc::c_int {
    match case {
        FsyncCase::Allocating | FsyncCase::Overwriting => libc::O_WRONLY,
        FsyncCase::Extending => libc::O_WRONLY | libc::O_APPEND,
    }
}

/// Makes the files of all repetitions in `directory`.
fn lay_out(files: &FsyncFiles, directory: &Path, seed: u64) -> Result<(), FsyncFilesError> {
    let made = SmallFiles {
        count: files.all_files(),
        size: size_before(files),
        directories: files.repetitions,
        threads: 1,
        sync: Sync::End,
    };
    // Another seed: what is written over them must not be what they hold.
    small_files::run(&made, Operation::Create, directory, !seed)?;
    Ok(())
}

/// All repetitions, with everything they need in memory.
struct Prepared {
    files: FsyncFiles,
    path: PathBuf,
    work_directory: OwnedFd,
    repetitions: Vec<Repetition>,
    operator: Operator,
}

/// The files of one repetition.
struct Repetition {
    number: u32,
    directory: CString,
    names: Names,
    /// The last file's, where it is not there before.
    fresh: Names,
}

impl Repetition {
    fn new(number: u32, all: Directories, operation: FsyncOperation) -> Repetition {
        let directory = directories::directory_name(number);
        let numbers = all.numbers(number);
        let names =
            |prefix, numbers| Names::new(format!("{directory}/{prefix}").as_bytes(), numbers);
        let fresh = match operation {
            FsyncOperation::Create => names(FRESH, numbers.end - 1..numbers.end),
            _ => Names::none(),
        };
        Repetition {
            number,
            directory: directories::directory_c_name(number),
            names: names('f', numbers),
            fresh,
        }
    }

    fn last(&self) -> &CStr {
        // From the end: it is asked for while an operation is timed.
        self.fresh.iter().chain(self.names.iter().next_back()).next().unwrap_or_default()
    }
}

/// Makes everything ready; `devices` are those whose counters are read around each fsync.
fn prepare(
    files: &FsyncFiles,
    directory: &Path,
    devices: &[Device],
    seed: u64,
) -> Result<Prepared, FsyncFilesError> {
    let needed = u64::from(files.files) + OTHER_DESCRIPTORS;
    let allowed = sys::raise_open_files(needed).map_err(FsyncFilesError::Limit)?;
    if allowed < needed {
        return Err(FsyncFilesError::OpenFiles { files: files.files, allowed });
    }
    let work_directory = File::open(directory).map_err(PathError::of("open", directory))?;
    let directories = Directories { files: files.all_files(), directories: files.repetitions };
    let repetition = |number| Repetition::new(number, directories, files.operation);
    let counters = match devices {
        [] => None,
        devices => Some(DeviceReader::open(Path::new("/"), devices)?),
    };
    Ok(Prepared {
        files: files.clone(),
        path: directory.into(),
        work_directory: work_directory.into(),
        repetitions: (0..files.repetitions).map(repetition).collect(),
        operator: Operator {
            operation: files.operation,
            open_flags: open_flags(files.case),
            content: RandomBytes::new(files.size.0 as usize, seed),
            open: Vec::with_capacity(files.files as usize),
            counters,
            counted: DeviceTotals::default(),
            early: 0,
            writes: Latencies::new(),
            fsyncs: Latencies::new(),
            syncs: Latencies::new(),
        },
    })
}

impl Prepared {
    /// Does it, and marks what it does.
    fn run(mut self, marks: Option<&Marks>) -> Result<Done, FsyncFilesError> {
        let start_ns = sys::monotonic_ns();
        self.repeat(0..self.repetitions.len(), marks)?;
        Ok(self.done(sys::monotonic_ns() - start_ns, None))
    }

    /// Works in turns; a turn has as many repetitions as the turn of that number in the others'
    /// work.
    fn run_in_turns(mut self, relay: &Relay, devices: &[Device]) -> Result<Done, FsyncFilesError> {
        let all = self.repetitions.len();
        let turns = relay::shares(all as u64);
        relay.share_out(turns, devices, |turn| {
            let (turn, turns) = (turn as usize, turns as usize);
            self.repeat(all * turn / turns..all * (turn + 1) / turns, None)
        })?;
        let turns = relay.taken().turns;
        Ok(self.done(turns.all_ns(), Some(turns)))
    }

    fn repeat(
        &mut self,
        which: Range<usize>,
        marks: Option<&Marks>,
    ) -> Result<(), FsyncFilesError> {
        // No link leads out of it.
        let _inside = ChangedRoot::enter_if_allowed(self.work_directory.as_fd())?;
        for repetition in &self.repetitions[which] {
            let done = self.operator.repeat(&self.work_directory, repetition, marks);
            done.map_err(|fault| self.explained(repetition, fault))?;
        }
        Ok(())
    }

    fn done(self, work_ns: u64, turns: Option<Turns>) -> Done {
        let Operator { writes, fsyncs, syncs, .. } = &self.operator;
        let latencies = [("write", writes), ("fsync", fsyncs), ("syncfs", syncs)];
        Done {
            application_write_bytes: self.files.all_files() * self.files.size.0,
            histograms: latencies.map(|(name, taken)| (name.into(), taken.to_model())).into(),
            samples: self.operator.device_samples(),
            work_ns,
            turns,
            // A rate of fsyncs would divide by the time of all that is not one.
            ..Done::default()
        }
    }

    fn explained(&self, repetition: &Repetition, fault: Fault) -> FsyncFilesError {
        match fault {
            Fault::Probe(error) => error.into(),
            Fault::File { action, number, source } => {
                let directory = directories::directory_name(repetition.number);
                let first = u64::from(repetition.number) * u64::from(self.files.files);
                let is_last = number + 1 == u64::from(self.files.files);
                let is_fresh = is_last && self.files.operation == FsyncOperation::Create;
                let prefix = if is_fresh { FRESH } else { 'f' };
                let file = directories::file_name(prefix, first + number);
                let path = self.path.join(directory).join(file);
                PathError { action, path, source }.into()
            }
            Fault::FileSystem(source) => {
                PathError { action: "syncfs", path: self.path.clone(), source }.into()
            }
        }
    }
}

/// What went wrong, as the loop knows it.
enum Fault {
    /// `number` counts within the repetition.
    File {
        action: &'static str,
        number: u64,
        source: io::Error,
    },
    FileSystem(io::Error),
    Probe(ProbeError),
}

impl Fault {
    fn of(action: &'static str, number: u64) -> impl FnOnce(io::Error) -> Fault {
        move |source| Fault::File { action, number, source }
    }
}

/// What does the work, one repetition at a time.
struct Operator {
    operation: FsyncOperation,
    open_flags: libc::c_int,
    content: RandomBytes,
    /// Files that are open; there is room for all of a repetition.
    open: Vec<OwnedFd>,
    counters: Option<DeviceReader>,
    /// What the devices did during the fsyncs.
    counted: DeviceTotals,
    /// After how many fsyncs they had requests under way.
    early: u64,
    writes: Latencies,
    fsyncs: Latencies,
    syncs: Latencies,
}

impl Operator {
    /// The timed loop: nothing is allocated, formatted or logged in it until something fails.
    fn repeat(
        &mut self,
        work_directory: &OwnedFd,
        repetition: &Repetition,
        marks: Option<&Marks>,
    ) -> Result<(), Fault> {
        let directory = self.open_all(work_directory, repetition)?;
        self.write_all(repetition, marks)?;
        self.sync_last(&Around {
            work_directory,
            directory: directory.as_ref(),
            repetition,
            marks,
        })?;
        for (number, file) in (0..).zip(self.open.drain(..)) {
            sys::close(file).map_err(Fault::of("close", number))?;
        }
        drop(directory);
        let start_ns = sys::monotonic_ns();
        sys::sync_fs(work_directory.as_fd()).map_err(Fault::FileSystem)?;
        self.syncs.record(sys::monotonic_ns() - start_ns);
        Ok(())
    }

    /// Opens the files; and their directory, where that is to be synced, too.
    fn open_all(
        &mut self,
        work_directory: &OwnedFd,
        repetition: &Repetition,
    ) -> Result<Option<OwnedFd>, Fault> {
        let at = work_directory.as_fd();
        let mut names = repetition.names.iter().peekable();
        while let Some(name) = names.next() {
            let is_last = names.peek().is_none();
            let file = match self.operation {
                FsyncOperation::Create if is_last => sys::create_at(at, repetition.last(), 0o644),
                FsyncOperation::ODsync if is_last => {
                    sys::open_at(at, name, self.open_flags | libc::O_DSYNC)
                }
                _ => sys::open_at(at, name, self.open_flags),
            };
            self.open.push(file.map_err(Fault::of("open", self.open.len() as u64))?);
        }
        if self.operation != FsyncOperation::Create {
            return Ok(None);
        }
        let flags = libc::O_RDONLY | libc::O_DIRECTORY;
        let directory = sys::open_at(at, &repetition.directory, flags);
        directory.map(Some).map_err(Fault::of("open the directory of", 0))
    }

    /// Writes to each, except to the one whose write is measured.
    fn write_all(&mut self, repetition: &Repetition, marks: Option<&Marks>) -> Result<(), Fault> {
        let left = usize::from(self.operation == FsyncOperation::ODsync);
        let written = self.open.len() - left;
        for (number, file) in (0..).zip(&self.open[..written]) {
            let content = self.content.of(content_number(repetition, number));
            mark(marks, "write", file).map_err(Fault::of("mark", number))?;
            let start_ns = sys::monotonic_ns();
            sys::write_all(file.as_fd(), content).map_err(Fault::of("write", number))?;
            self.writes.record(sys::monotonic_ns() - start_ns);
        }
        Ok(())
    }

    /// The fsync that is measured, or what is instead: its marks lie closest around it.
    fn sync_last(&mut self, around: &Around) -> Result<(), Fault> {
        let Some(last) = self.open.last() else { return Ok(()) };
        let (operation, marks) = (self.operation, around.marks);
        let number = self.open.len() as u64 - 1;
        let content = self.content.of(content_number(around.repetition, number));
        let counters = &mut self.counters;
        let mut read = || counters.as_mut().map(DeviceReader::read).transpose();
        if operation == FsyncOperation::ODsync {
            mark(marks, "write", last).map_err(Fault::of("mark", number))?;
        }
        let before = read().map_err(Fault::Probe)?;
        mark(marks, "fsync", last).map_err(Fault::of("mark", number))?;
        let start_ns = sys::monotonic_ns();
        around.call(operation, last, content).map_err(Fault::of(operation.name(), number))?;
        let end_ns = sys::monotonic_ns();
        mark(marks, "synced", last).map_err(Fault::of("mark", number))?;
        let after = read().map_err(Fault::Probe)?;
        self.fsyncs.record(end_ns - start_ns);
        if let (Some(before), Some(after)) = (before, after) {
            self.early += u64::from(self.is_early(&after).map_err(Fault::Probe)?);
            let done = after.since(&before).totals;
            self.counted.writes += done.writes;
            self.counted.write_bytes += done.write_bytes;
            if let Some(flushes) = done.flushes {
                *self.counted.flushes.get_or_insert_default() += flushes;
            }
        }
        Ok(())
    }

    /// The devices had requests under way when the fsync had returned, which `after` was read
    /// after. The kernel counts one as under way until after it has woken who waits for it
    /// (block/blk-mq.c, `blk_mq_end_request`), but its bytes before: it is read once more.
    fn is_early(&mut self, after: &DeviceReading) -> Result<bool, ProbeError> {
        let Some(counters) = self.counters.as_mut().filter(|_| is_busy(after)) else {
            return Ok(false);
        };
        std::thread::sleep(PAUSE);
        let later = counters.read()?;
        Ok(is_busy(&later) || later.since(after).totals.write_bytes > 0)
    }

    /// What the devices did for one fsync, on average.
    fn device_samples(&self) -> Vec<Sample> {
        if self.counters.is_none() {
            return Vec::new();
        }
        let fsyncs = self.fsyncs.count() as f64;
        let each = |metric, total: u64, unit| Sample::lower(metric, total as f64 / fsyncs, unit);
        let mut samples = vec![
            each("fsync_device_writes", self.counted.writes, Unit::Count),
            each("fsync_device_write_bytes", self.counted.write_bytes, Unit::Bytes),
        ];
        let flushes = self.counted.flushes;
        samples.extend(flushes.map(|all| each("fsync_device_flushes", all, Unit::Count)));
        if self.operation.keeps_file() && self.fsyncs.count() >= FSYNCS_MIN {
            samples.push(each("fsync_early_share", self.early, Unit::Ratio));
        }
        samples
    }
}

fn is_busy(reading: &DeviceReading) -> bool {
    IN_FLIGHT.contains(&reading.in_flight)
}

/// No two files get the same content.
fn content_number(repetition: &Repetition, number: u64) -> u64 {
    number ^ u64::from(repetition.number) << 32
}

/// What there is around the last file when its turn comes.
struct Around<'a> {
    work_directory: &'a OwnedFd,
    directory: Option<&'a OwnedFd>,
    repetition: &'a Repetition,
    marks: Option<&'a Marks>,
}

impl Around<'_> {
    /// What is measured.
    fn call(&self, operation: FsyncOperation, last: &OwnedFd, content: &[u8]) -> io::Result<()> {
        let file = last.as_fd();
        match operation {
            FsyncOperation::Fsync => sys::fsync(file),
            FsyncOperation::Fdatasync => sys::data_sync(file),
            FsyncOperation::ODsync => sys::write_all(file, content),
            // All three are what waits for the data, as the manual has it; 0: to the file's end.
            FsyncOperation::SyncFileRange => {
                let wait = libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
                let flags = wait | libc::SYNC_FILE_RANGE_WRITE;
                sys::sync_range(file, 0, 0, flags.cast_signed())
            }
            FsyncOperation::Rename => {
                let first = self.repetition.names.iter().next().unwrap_or_default();
                sys::rename_at(self.work_directory.as_fd(), self.repetition.last(), first)
            }
            FsyncOperation::Create => {
                sys::fsync(file)?;
                self.directory.map_or(Ok(()), |directory| sys::fsync(directory.as_fd()))
            }
            FsyncOperation::Syncfs => sys::sync_fs(file),
        }
    }
}

/// Marks what is done with an open file, where that is recorded.
fn mark(marks: Option<&Marks>, word: &str, file: &OwnedFd) -> io::Result<()> {
    let Some(marks) = marks else { return Ok(()) };
    let (_, inode) = sys::status(file.as_fd())?.identity;
    marks.mark(word, inode)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn files(case: FsyncCase) -> FsyncFiles {
        let operation = FsyncOperation::Fsync;
        FsyncFiles { files: 7, size: Bytes(5000), repetitions: 3, case, operation }
    }

    fn run(files: &FsyncFiles, directory: &Path) -> Result<Done, FsyncFilesError> {
        prepare(files, directory, &[], 7)?.run(None)
    }

    fn contents(directory: &Path) -> Vec<Vec<u8>> {
        let files = |inner: u32| {
            let inner = directory.join(directories::directory_name(inner));
            fs::read_dir(inner).unwrap().map(|file| fs::read(file.unwrap().path()).unwrap())
        };
        let mut contents: Vec<_> = (0..3).flat_map(files).collect();
        contents.sort();
        contents
    }

    #[test]
    fn every_repetition_writes_its_own_files_and_syncs_one() {
        use FsyncCase::{Allocating, Extending, Overwriting};
        for (case, [before, after]) in
            [(Allocating, [0, 5000]), (Overwriting, [5000, 5000]), (Extending, [5000, 10_000])]
        {
            let has = |contents: &[Vec<u8>], size| {
                contents.len() == 21 && contents.iter().all(|content| content.len() == size)
            };
            let dir = tempfile::tempdir().unwrap();
            lay_out(&files(case), dir.path(), 7).unwrap();
            let laid_out = contents(dir.path());
            assert!(has(&laid_out, before));
            let done = run(&files(case), dir.path()).unwrap();
            let written = contents(dir.path());
            assert!(has(&written, after));
            assert!(written.iter().all(|content| !laid_out.contains(content)));
            let count = |name: &str| done.histograms[name].count();
            assert_eq!(["write", "fsync", "syncfs"].map(count), [21, 3, 3]);
            assert_eq!((done.application_write_bytes, done.operations), (21 * 5000, None));
            let timed: u64 = done.histograms.values().map(|histogram| histogram.sum_ns).sum();
            assert!(timed <= done.work_ns);
        }
    }

    #[test]
    fn every_operation_leaves_the_files_written_and_is_timed_once_a_repetition() {
        for operation in FsyncOperation::ALL {
            let dir = tempfile::tempdir().unwrap();
            let files = FsyncFiles { operation, ..files(FsyncCase::Allocating) };
            lay_out(&files, dir.path(), 7).unwrap();
            let done = run(&files, dir.path()).unwrap();
            let count = |name: &str| done.histograms[name].count();
            let writes = if operation == FsyncOperation::ODsync { 18 } else { 21 };
            assert_eq!(["write", "fsync", "syncfs"].map(count), [writes, 3, 3], "{operation:?}");
            let whole = |content: &&Vec<u8>| content.len() == 5000;
            let (all, empty) = match operation {
                FsyncOperation::Rename => (18, 0),
                FsyncOperation::Create => (24, 3),
                _ => (21, 0),
            };
            let contents = contents(dir.path());
            let whole = contents.iter().filter(whole).count();
            assert_eq!((contents.len(), contents.len() - whole), (all, empty), "{operation:?}");
            let is_there = |name: &str| dir.path().join("d0002").join(name).exists();
            let [last, fresh] = ["f00000020", "n00000020"].map(is_there);
            assert_eq!(last, operation != FsyncOperation::Rename);
            assert_eq!(fresh, operation == FsyncOperation::Create);
        }
    }

    #[test]
    fn more_files_are_open_than_a_shell_allows_at_first() {
        let dir = tempfile::tempdir().unwrap();
        let many = FsyncFiles { files: 1500, repetitions: 1, ..files(FsyncCase::Allocating) };
        lay_out(&many, dir.path(), 7).unwrap();
        assert_eq!(run(&many, dir.path()).unwrap().histograms["write"].count(), 1500);
    }

    #[test]
    fn a_file_that_is_gone_is_named() {
        let dir = tempfile::tempdir().unwrap();
        lay_out(&files(FsyncCase::Overwriting), dir.path(), 7).unwrap();
        let victim = dir.path().join("d0002/f00000020");
        fs::remove_file(&victim).unwrap();
        let error = run(&files(FsyncCase::Overwriting), dir.path()).unwrap_err().to_string();
        let says = format!("open {}: No such file or directory (os error 2)", victim.display());
        assert_eq!(error, says);
    }
}
