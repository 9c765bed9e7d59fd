//! The native small-file workload: one operation over all files.
//!
//! They lie in directories as `directories.rs` says.
//!
//! - *create*: openat, write, fsync where each file is synced, close.
//! - *stat*: fstatat. *read*: openat, read to the end, close. Both check the size.
//! - *rename*: to `r00000000` and so on, in the same directory.
//! - *delete*: unlinkat, under whichever name the files have by then.
//!
//! A latency is one file's, all of its calls together. The end of one is the start of the next, so
//! that the clock is read once a file. Making, opening and removing the directories is part of the
//! work's time, but no operation: it is neither counted nor in a histogram. A directory is opened
//! when its turn comes: open beforehand, many would exceed the limit on descriptors, and a cold one
//! would be read before the clock starts.
//!
//! Files are visited in name order, which is the order they were made in: so does `cat *`, and
//! hence the openEuler study that this test comes from. It suits file systems that place files in
//! order of creation; random access is another workload, and fio's.
//!
//! Contents are those of `random_bytes.rs`: no two blocks of 4 KiB are alike.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use fsverdict_core::model::{
    Bytes, Device, FILE_SIZE_MAX, FILES_MAX, Operation, Phase, SmallFiles, Sync,
};
use fsverdict_core::run::{HostError, Step};
use thiserror::Error;

use super::directories::{self, Directories, Names, Stretch, directory_name};
use super::engine::{Act, Done, Engine, Scene, TimedPart, native, no_phase};
use super::random_bytes::RandomBytes;
use super::relay::{self, Counts, GoneOver, Relay, Undone};
use crate::sys;
use crate::timing::Latencies;
use crate::timing::threads::Failed;

/// A read asks for no more than this at once, as `cat` does.
const READ_BYTES_MAX: usize = 128 << 10;

/// Why the operation could not be done.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum SmallFilesError {
    #[error("small files need at least one file, one directory and one thread")]
    Nothing,
    #[error("{count} small files are too many: at most {FILES_MAX}")]
    TooMany { count: u64 },
    #[error("small files of {size} are too large: at most {FILE_SIZE_MAX}")]
    TooLarge { size: Bytes },
    #[error(
        "{threads} threads need as many directories, and there are {directories}: a directory \
         belongs to one thread"
    )]
    TooFewDirectories { threads: u32, directories: u32 },
    #[error("{action} directory {}: {source}", path.display())]
    Directory { action: &'static str, path: PathBuf, source: io::Error },
    #[error("{} small file {number} in {}: {source}", operation.name(), directory.display())]
    File { operation: Operation, number: u64, directory: PathBuf, source: io::Error },
    #[error(
        "{} small file {number} in {}: {found_bytes} bytes instead of {expected_bytes}",
        operation.name(), directory.display()
    )]
    Size {
        operation: Operation,
        number: u64,
        directory: PathBuf,
        expected_bytes: u64,
        found_bytes: u64,
    },
    #[error("start a thread for small files: {0}")]
    Thread(io::Error),
    #[error("its turns: {0}")]
    InTurns(io::Error),
}

impl Engine for SmallFiles {
    fn prepare<'a>(
        &'a self,
        phase: Phase,
        scene: &'a Scene,
    ) -> Result<Box<dyn TimedPart + 'a>, HostError> {
        let Phase::SmallFiles(operation) = phase else { return Err(no_phase(phase)) };
        let turns = scene.relay.map_or(1, |_| relay::shares(self.count));
        let prepared = prepare(self, operation, &scene.directory, scene.seed, turns)?;
        native(|| prepared.run_in(scene.relay, scene.devices))
    }

    fn dry(&self, step: Step, _scene: &Scene) -> Result<Vec<Act>, HostError> {
        let Step::Work(phase) = step else { return Ok(Vec::new()) };
        let Phase::SmallFiles(_) = phase else { return Err(no_phase(phase)) };
        Ok(vec![Act::Within(format!(
            "{} files of {} in {} directories, {} threads",
            self.count, self.size, self.directories, self.threads
        ))])
    }
}

/// One operation over all files, with everything it needs in memory.
pub struct Prepared {
    files: SmallFiles,
    operation: Operation,
    path: PathBuf,
    work_directory: OwnedFd,
    turns: u32,
    workers: Vec<Worker>,
}

/// Makes everything ready for `operation` over all of `files` in `directory`, in so many `turns`,
/// and touches no file.
///
/// The same seed gives the same contents.
pub fn prepare(
    files: &SmallFiles,
    operation: Operation,
    directory: &Path,
    seed: u64,
    turns: u32,
) -> Result<Prepared, SmallFilesError> {
    check(files)?;
    let opened = File::open(directory).map_err(|source| SmallFilesError::Directory {
        action: "open",
        path: directory.into(),
        source,
    })?;
    let work_directory = OwnedFd::from(opened);
    let shares = Shares {
        files,
        operation,
        renamed: operation == Operation::Delete && is_renamed(&work_directory),
        seed,
        turns,
    };
    let workers = (0..files.threads).map(|thread| shares.worker(thread)).collect();
    Ok(Prepared {
        files: files.clone(),
        operation,
        path: directory.into(),
        work_directory,
        turns,
        workers,
    })
}

/// [`prepare`] and [`Prepared::run`] at once.
pub fn run(
    files: &SmallFiles,
    operation: Operation,
    directory: &Path,
    seed: u64,
) -> Result<Done, SmallFilesError> {
    prepare(files, operation, directory, seed, 1)?.run()
}

fn check(files: &SmallFiles) -> Result<(), SmallFilesError> {
    let (threads, directories) = (files.threads, files.directories);
    if files.count == 0 || threads == 0 || directories == 0 {
        return Err(SmallFilesError::Nothing);
    }
    if files.count > FILES_MAX {
        return Err(SmallFilesError::TooMany { count: files.count });
    }
    if files.size > FILE_SIZE_MAX {
        return Err(SmallFilesError::TooLarge { size: files.size });
    }
    // A thread without a directory would have nothing to do, and the plan would claim it had.
    if threads > directories {
        return Err(SmallFilesError::TooFewDirectories { threads, directories });
    }
    Ok(())
}

/// The files go by the names that renaming gave them: the first one does.
fn is_renamed(work_directory: &OwnedFd) -> bool {
    let first = format!("{}/{}", directory_name(0), directories::file_name('r', 0));
    let first = CString::new(first).expect("the name holds no NUL");
    sys::size_at(work_directory.as_fd(), &first).is_ok()
}

impl Prepared {
    /// Does it: all at once, or in its turns.
    fn run_in(
        mut self,
        relay: Option<&Relay>,
        devices: &[Device],
    ) -> Result<Done, SmallFilesError> {
        let workers = std::mem::take(&mut self.workers);
        let directory = self.work_directory.as_fd();
        let work = |worker: &mut Worker, turn| worker.run(turn, directory);
        match relay::gone_over(relay, devices, directory, workers, self.turns, work) {
            Ok(gone_over) => Ok(self.summed(gone_over)),
            Err(Undone::Failed(Failed::Thread(error))) => Err(SmallFilesError::Thread(error)),
            Err(Undone::Turns(error)) => Err(SmallFilesError::InTurns(error)),
            Err(Undone::Failed(Failed::Work(fault))) => Err(self.explained(fault)),
        }
    }

    /// Does it all at once.
    pub fn run(self) -> Result<Done, SmallFilesError> {
        self.run_in(None, &[])
    }

    fn summed(&self, gone_over: GoneOver<Worker>) -> Done {
        let GoneOver { workers, work_ns, turns } = gone_over;
        let histogram = Latencies::merged(workers.iter().map(|worker| &worker.latencies));
        let operations = histogram.count();
        let bytes_if = |does| if does { operations * self.files.size.0 } else { 0 };
        Done {
            operations: Some(operations),
            application_read_bytes: bytes_if(self.operation == Operation::Read),
            application_write_bytes: bytes_if(self.operation == Operation::Create),
            histograms: [(self.operation.name().into(), histogram)].into(),
            work_ns,
            turns,
            ..Done::default()
        }
    }

    fn explained(&self, fault: Fault) -> SmallFilesError {
        let (operation, path) = (self.operation, |number| self.path.join(directory_name(number)));
        match fault {
            Fault::Directory { action, directory, source } => {
                SmallFilesError::Directory { action, path: path(directory), source }
            }
            Fault::File { directory, number, why: Why::System(source) } => {
                SmallFilesError::File { operation, number, directory: path(directory), source }
            }
            Fault::File { directory, number, why: Why::Size(found_bytes) } => {
                let expected_bytes = self.files.size.0;
                let directory = path(directory);
                SmallFilesError::Size { operation, number, directory, expected_bytes, found_bytes }
            }
        }
    }
}

/// What went wrong, as a thread knows it.
enum Fault {
    Directory { action: &'static str, directory: u32, source: io::Error },
    File { directory: u32, number: u64, why: Why },
}

/// What went wrong with a file.
enum Why {
    System(io::Error),
    Size(u64),
}

impl From<io::Error> for Why {
    fn from(error: io::Error) -> Self {
        Why::System(error)
    }
}

/// What the threads are to share.
struct Shares<'a> {
    files: &'a SmallFiles,
    operation: Operation,
    /// The files go by the names that renaming gave them.
    renamed: bool,
    seed: u64,
    turns: u32,
}

impl Shares<'_> {
    fn worker(&self, thread: u32) -> Worker {
        let directories =
            Directories { files: self.files.count, directories: self.files.directories };
        let turns = directories.stretches(thread, self.files.threads, self.turns).into_iter();
        let named = |turn: Vec<Stretch>| turn.into_iter().map(|it| self.named(it)).collect();
        Worker {
            operation: self.operation,
            latencies: Latencies::new(),
            turns: turns.map(named).collect(),
            operator: Operator::new(self.files, self.operation, self.seed),
        }
    }

    fn named(&self, stretch: Stretch) -> Directory {
        let numbers = stretch.files.clone();
        let renames = self.operation == Operation::Rename;
        Directory {
            name: directories::directory_c_name(stretch.directory),
            names: Names::new(if self.renamed { b"r" } else { b"f" }, numbers.clone()),
            new_names: if renames { Names::new(b"r", numbers) } else { Names::none() },
            stretch,
        }
    }
}

/// One thread's share.
struct Worker {
    operation: Operation,
    latencies: Latencies,
    /// What it goes over in each turn.
    turns: Vec<Vec<Directory>>,
    operator: Operator,
}

impl Counts for Worker {
    fn operations(&self) -> u64 {
        self.latencies.count()
    }
}

impl Worker {
    fn run(&mut self, turn: u32, work_directory: BorrowedFd<'_>) -> Result<(), Fault> {
        for directory in &self.turns[turn as usize] {
            let entered = directory.entered(work_directory, self.operation)?;
            self.operator.go_over(directory, entered.as_fd(), &mut self.latencies)?;
            // Held open, a removed directory would live on until after the clock has stopped.
            drop(entered);
            directory.left(work_directory, self.operation)?;
        }
        Ok(())
    }
}

/// A stretch of a directory, and the names in it.
struct Directory {
    stretch: Stretch,
    name: CString,
    names: Names,
    /// What they are renamed to; none for any other operation.
    new_names: Names,
}

impl Directory {
    fn entered(&self, parent: BorrowedFd<'_>, operation: Operation) -> Result<OwnedFd, Fault> {
        if operation == Operation::Create && self.stretch.is_first {
            sys::make_directory_at(parent, &self.name).map_err(self.fault("create"))?;
        }
        let flags = libc::O_RDONLY | libc::O_DIRECTORY;
        sys::open_at(parent, &self.name, flags).map_err(self.fault("open"))
    }

    fn left(&self, parent: BorrowedFd<'_>, operation: Operation) -> Result<(), Fault> {
        if operation == Operation::Delete && self.stretch.is_last {
            sys::remove_directory_at(parent, &self.name).map_err(self.fault("delete"))?;
        }
        Ok(())
    }

    fn fault(&self, action: &'static str) -> impl Fn(io::Error) -> Fault {
        let directory = self.stretch.directory;
        move |source| Fault::Directory { action, directory, source }
    }
}

/// What does the work, one file at a time.
struct Operator {
    operation: Operation,
    size_bytes: u64,
    sync_each: bool,
    content: RandomBytes,
    read_buffer: Vec<u8>,
}

impl Operator {
    fn new(files: &SmallFiles, operation: Operation, seed: u64) -> Operator {
        let size_bytes = files.size.0 as usize;
        let (mut content, mut read_buffer) = (RandomBytes::default(), Vec::new());
        match operation {
            Operation::Create => content = RandomBytes::new(size_bytes, seed),
            Operation::Read => read_buffer = vec![1; size_bytes.clamp(1, READ_BYTES_MAX)],
            Operation::Stat | Operation::Rename | Operation::Delete => {}
        }
        let sync_each = files.sync == Sync::Each;
        Operator { operation, size_bytes: files.size.0, sync_each, content, read_buffer }
    }

    /// The timed loop: nothing is allocated, formatted or logged in it until something fails.
    fn go_over(
        &mut self,
        directory: &Directory,
        fd: BorrowedFd<'_>,
        latencies: &mut Latencies,
    ) -> Result<(), Fault> {
        let mut new_names = directory.new_names.iter();
        let mut start_ns = sys::monotonic_ns();
        for (number, name) in (directory.stretch.files.start..).zip(directory.names.iter()) {
            let new_name = new_names.next().unwrap_or_default();
            self.operate(fd, number, name, new_name).map_err(|why| Fault::File {
                directory: directory.stretch.directory,
                number,
                why,
            })?;
            let end_ns = sys::monotonic_ns();
            latencies.record(end_ns - start_ns);
            start_ns = end_ns;
        }
        Ok(())
    }

    #[inline]
    fn operate(
        &mut self,
        directory: BorrowedFd<'_>,
        number: u64,
        name: &CStr,
        new_name: &CStr,
    ) -> Result<(), Why> {
        match self.operation {
            Operation::Create => self.create(directory, number, name)?,
            Operation::Stat => self.expect_size(sys::size_at(directory, name)?)?,
            Operation::Read => self.read(directory, name)?,
            Operation::Rename => sys::rename_at(directory, name, new_name)?,
            Operation::Delete => sys::unlink_at(directory, name)?,
        }
        Ok(())
    }

    fn create(&mut self, directory: BorrowedFd<'_>, number: u64, name: &CStr) -> io::Result<()> {
        let flags = libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY;
        let file = sys::open_at(directory, name, flags)?;
        sys::write_all(file.as_fd(), self.content.of(number))?;
        if self.sync_each {
            sys::fsync(file.as_fd())?;
        }
        sys::close(file)
    }

    fn read(&mut self, directory: BorrowedFd<'_>, name: &CStr) -> Result<(), Why> {
        let file = sys::open_at(directory, name, libc::O_RDONLY)?;
        let mut found_bytes = 0;
        loop {
            match sys::read(file.as_fd(), &mut self.read_buffer)? {
                0 => break,
                read => found_bytes += read as u64,
            }
        }
        sys::close(file)?;
        self.expect_size(found_bytes)
    }

    /// A file of another size is not the work that was asked for, however fast it was.
    fn expect_size(&self, found_bytes: u64) -> Result<(), Why> {
        if found_bytes == self.size_bytes { Ok(()) } else { Err(Why::Size(found_bytes)) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;

    use super::super::random_bytes::BLOCK_BYTES;
    use super::*;

    fn spread() -> SmallFiles {
        SmallFiles { count: 1001, size: Bytes(5000), directories: 5, threads: 3, sync: Sync::End }
    }

    fn failure(files: &SmallFiles, operation: Operation, directory: &Path) -> String {
        run(files, operation, directory, 1).unwrap_err().to_string()
    }

    /// Every file below `directory`, by its path there.
    fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        for inner in fs::read_dir(directory).unwrap() {
            for file in fs::read_dir(inner.unwrap().path()).unwrap() {
                let path = file.unwrap().path();
                let content = fs::read(&path).unwrap();
                found.insert(path.strip_prefix(directory).unwrap().into(), content);
            }
        }
        found
    }

    #[test]
    fn five_phases_over_threads_and_directories_leave_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let files = spread();
        for operation in Operation::ALL {
            let done = run(&files, operation, dir.path(), 7).unwrap();
            assert_eq!(done.operations, Some(files.count));
            let histogram = &done.histograms[operation.name()];
            assert_eq!(done.histograms.len(), 1);
            assert_eq!(histogram.count(), files.count);
            assert!(histogram.max_ns <= done.work_ns);
            assert!(histogram.sum_ns <= done.work_ns * u64::from(files.threads));
            let bytes = |does| if does { files.count * files.size.0 } else { 0 };
            assert_eq!(done.application_write_bytes, bytes(operation == Operation::Create));
            assert_eq!(done.application_read_bytes, bytes(operation == Operation::Read));
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn files_are_dealt_out_evenly_and_renamed_in_place() {
        let dir = tempfile::tempdir().unwrap();
        run(&spread(), Operation::Create, dir.path(), 7).unwrap();
        for number in 0..5 {
            let held = fs::read_dir(dir.path().join(directory_name(number))).unwrap().count();
            assert!((200..=201).contains(&held), "{held} files in directory {number}");
        }
        let before = contents(dir.path());
        run(&spread(), Operation::Rename, dir.path(), 7).unwrap();
        let after = contents(dir.path());
        assert_eq!(before[Path::new("d0000/f00000000")], after[Path::new("d0000/r00000000")]);
        assert!(before.values().eq(after.values()));
    }

    #[test]
    fn files_can_be_deleted_without_having_been_renamed() {
        let dir = tempfile::tempdir().unwrap();
        run(&spread(), Operation::Create, dir.path(), 7).unwrap();
        run(&spread(), Operation::Delete, dir.path(), 7).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn contents_come_from_the_seed_and_no_two_blocks_are_alike() {
        let made = |seed| {
            let dir = tempfile::tempdir().unwrap();
            run(&spread(), Operation::Create, dir.path(), seed).unwrap();
            contents(dir.path())
        };
        let one = made(1);
        assert_eq!(one, made(1));
        assert_ne!(one, made(2));
        let blocks = one.values().flat_map(|content| content.chunks(BLOCK_BYTES));
        let different: std::collections::BTreeSet<_> = blocks.clone().collect();
        assert_eq!(different.len(), blocks.count());
    }

    #[test]
    fn files_may_be_empty_tiny_or_longer_than_a_read() {
        for size in [0, 1, 7, 200_000] {
            let dir = tempfile::tempdir().unwrap();
            let files = SmallFiles {
                count: 9,
                size: Bytes(size),
                sync: Sync::Each,
                ..SmallFiles::default()
            };
            for operation in Operation::ALL {
                assert_eq!(run(&files, operation, dir.path(), 7).unwrap().operations, Some(9));
            }
        }
    }

    #[test]
    fn a_file_of_another_size_fails_stat_and_read() {
        let dir = tempfile::tempdir().unwrap();
        run(&spread(), Operation::Create, dir.path(), 7).unwrap();
        let victim = dir.path().join("d0002/f00000500");
        let told = |operation: &str, bytes| {
            let inner = dir.path().join("d0002");
            let inner = inner.display();
            format!("{operation} small file 500 in {inner}: {bytes} bytes instead of 5000")
        };
        for bytes in [4999, 5001] {
            fs::OpenOptions::new().write(true).open(&victim).unwrap().set_len(bytes).unwrap();
            assert_eq!(failure(&spread(), Operation::Read, dir.path()), told("read", bytes));
            assert_eq!(failure(&spread(), Operation::Stat, dir.path()), told("stat", bytes));
        }
    }

    #[test]
    fn a_failure_names_the_operation_the_file_and_its_directory() {
        let dir = tempfile::tempdir().unwrap();
        let shown = dir.path().display();
        run(&spread(), Operation::Create, dir.path(), 7).unwrap();
        let message = format!("create directory {shown}/d0000: File exists (os error 17)");
        assert_eq!(failure(&spread(), Operation::Create, dir.path()), message);
        fs::remove_file(dir.path().join("d0004/f00001000")).unwrap();
        assert_eq!(
            failure(&spread(), Operation::Delete, dir.path()),
            format!(
                "delete small file 1000 in {shown}/d0004: No such file or directory (os error 2)"
            )
        );
    }

    #[test]
    fn a_full_file_system_is_said_to_be_full() {
        // A descriptor of /dev/full takes nothing: what a write meets when the device is full.
        let full = File::options().write(true).open("/dev/full").unwrap();
        let error = sys::write(full.as_fd(), b"x").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn threads_need_directories() {
        let files = SmallFiles { threads: 4, ..SmallFiles::default() };
        let error = failure(&files, Operation::Create, Path::new("/nowhere"));
        assert_eq!(
            error,
            "4 threads need as many directories, and there are 1: a directory belongs to one thread"
        );
    }
}
