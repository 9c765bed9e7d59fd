//! The native small-file workload: one operation over all files.
//!
//! Directories `d0000`, `d0001` and so on in the work directory hold files `f00000000`, `f00000001`
//! and so on, numbered through; each directory has a run of numbers and belongs to one thread, so
//! that threads share the file system and not a directory's lock.
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
//! Files are visited in name order, which is the order they were made in: so does `cat *`, hence
//! the openEuler study whose test this is. It suits file systems that place files in order of
//! creation; access at random is another workload, and fio's.
//!
//! Contents are pseudo-random, and no two blocks of 4 KiB are alike: neither compression nor
//! deduplication finds anything.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::RwLock;
use std::thread;

use fsverdict_core::model::{self, Bytes, Operation, SmallFiles, Sync};
use thiserror::Error;

use super::Latencies;
use crate::sys;

/// Random bytes there are beyond one file's, for files to begin at different places of them.
const SPARE_BYTES: usize = 1 << 20;

/// Files there can be: their numbers have eight digits.
const COUNT_MAX: u64 = 100_000_000;

/// A name: one letter, eight digits and the NUL.
const NAME_BYTES: usize = 10;

/// Bytes a file can have: each thread holds one in memory.
const SIZE_BYTES_MAX: u64 = 1 << 30;

/// How far apart stamps are: the smallest block that anything deduplicates.
const BLOCK_BYTES: usize = 4096;

/// A read asks for no more than this at once, as `cat` does.
const READ_BYTES_MAX: usize = 128 << 10;

/// Why the operation could not be done.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum SmallFilesError {
    #[error("small files need at least one file, one directory and one thread")]
    Nothing,
    #[error("{count} small files are too many: at most {COUNT_MAX}")]
    TooMany { count: u64 },
    #[error("small files of {size} are too large: at most {}", Bytes(SIZE_BYTES_MAX))]
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
}

/// What was done.
#[derive(Clone, Debug, PartialEq)]
pub struct Done {
    /// Files operated on.
    pub operations: u64,
    /// Bytes read from files.
    pub application_read_bytes: u64,
    /// Bytes written to files.
    pub application_write_bytes: u64,
    /// Latencies, by the operation's name.
    pub histograms: BTreeMap<String, model::Histogram>,
    /// From the first thread's start to the last one's end.
    pub work_ns: u64,
}

/// One operation over all files, with everything it needs in memory.
pub struct Prepared {
    files: SmallFiles,
    operation: Operation,
    path: PathBuf,
    work_directory: OwnedFd,
    workers: Vec<Worker>,
}

/// Makes everything ready for `operation` over all of `files` in `directory`, and touches no file.
///
/// The same seed gives the same contents.
pub fn prepare(
    files: &SmallFiles,
    operation: Operation,
    directory: &Path,
    seed: u64,
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
    };
    let workers = (0..files.threads).map(|thread| shares.worker(thread)).collect();
    Ok(Prepared {
        files: files.clone(),
        operation,
        path: directory.into(),
        work_directory,
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
    prepare(files, operation, directory, seed)?.run()
}

fn check(files: &SmallFiles) -> Result<(), SmallFilesError> {
    let (threads, directories) = (files.threads, files.directories);
    if files.count == 0 || threads == 0 || directories == 0 {
        return Err(SmallFilesError::Nothing);
    }
    if files.count > COUNT_MAX {
        return Err(SmallFilesError::TooMany { count: files.count });
    }
    if files.size.0 > SIZE_BYTES_MAX {
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
    let first = CString::new(format!("{}/{}", directory_name(0), file_name('r', 0)));
    let first = first.expect("the name holds no NUL");
    sys::size_at(work_directory.as_fd(), &first).is_ok()
}

fn directory_name(number: u32) -> String {
    format!("d{number:04}")
}

fn file_name(prefix: char, number: u64) -> String {
    format!("{prefix}{number:08}")
}

impl Prepared {
    /// Does it.
    pub fn run(mut self) -> Result<Done, SmallFilesError> {
        let workers = std::mem::take(&mut self.workers);
        // Held until every thread exists. If one can't be started, those that were find it closed.
        let gate = RwLock::new(false);
        let stints = thread::scope(|scope| {
            let mut open = gate.write().expect("nobody else holds it yet");
            let mut threads = Vec::new();
            for worker in workers {
                let work = || worker.run(&gate, self.work_directory.as_fd());
                let builder = thread::Builder::new().name("small-files".into());
                threads.push(builder.spawn_scoped(scope, work).map_err(SmallFilesError::Thread)?);
            }
            *open = true;
            drop(open);
            let stints = threads.into_iter().map(|thread| match thread.join() {
                Ok(stint) => stint.map_err(|fault| self.explained(fault)),
                Err(panic) => std::panic::resume_unwind(panic),
            });
            stints.collect::<Result<Vec<_>, _>>()
        })?;
        Ok(self.summed(&stints))
    }

    fn summed(&self, stints: &[Stint]) -> Done {
        let start_ns = stints.iter().map(|stint| stint.start_ns).min().unwrap_or(0);
        let end_ns = stints.iter().map(|stint| stint.end_ns).max().unwrap_or(0);
        let mut latencies = Latencies::new();
        for stint in stints {
            latencies.merge(&stint.latencies);
        }
        let histogram = latencies.to_model();
        let operations = histogram.count();
        let bytes_if = |does| if does { operations * self.files.size.0 } else { 0 };
        Done {
            operations,
            application_read_bytes: bytes_if(self.operation == Operation::Read),
            application_write_bytes: bytes_if(self.operation == Operation::Create),
            histograms: [(self.operation.name().into(), histogram)].into(),
            work_ns: end_ns - start_ns,
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

/// What one thread did.
struct Stint {
    start_ns: u64,
    end_ns: u64,
    latencies: Latencies,
}

/// What the threads are to share.
struct Shares<'a> {
    files: &'a SmallFiles,
    operation: Operation,
    /// The files go by the names that renaming gave them.
    renamed: bool,
    seed: u64,
}

impl Shares<'_> {
    fn worker(&self, thread: u32) -> Worker {
        let (directories, threads) = (self.files.directories.into(), self.files.threads);
        let first = |thread| share_start(directories, thread, threads) as u32;
        Worker {
            operation: self.operation,
            latencies: Latencies::new(),
            directories: (first(thread)..first(thread + 1)).map(|at| self.directory(at)).collect(),
            hand: Hand::new(self.files, self.operation, self.seed),
        }
    }

    fn directory(&self, number: u32) -> Directory {
        let first = |number| share_start(self.files.count, number, self.files.directories);
        let numbers = first(number)..first(number + 1);
        let renames = self.operation == Operation::Rename;
        Directory {
            number,
            name: CString::new(directory_name(number)).expect("the name holds no NUL"),
            first_file: numbers.start,
            names: Names::new(if self.renamed { 'r' } else { 'f' }, numbers.clone()),
            new_names: if renames { Names::new('r', numbers) } else { Names(Vec::new()) },
        }
    }
}

/// Where the share of `part` begins when `whole` is dealt out in `parts` runs of equal length.
fn share_start(whole: u64, part: u32, parts: u32) -> u64 {
    (u128::from(whole) * u128::from(part) / u128::from(parts)) as u64
}

/// One thread's share.
struct Worker {
    operation: Operation,
    latencies: Latencies,
    directories: Vec<Directory>,
    hand: Hand,
}

impl Worker {
    fn run(mut self, gate: &RwLock<bool>, work_directory: BorrowedFd<'_>) -> Result<Stint, Fault> {
        let start_ns = if gate.read().is_ok_and(|open| *open) {
            sys::monotonic_ns()
        } else {
            return Ok(Stint { start_ns: 0, end_ns: 0, latencies: self.latencies });
        };
        for directory in &self.directories {
            let entered = directory.entered(work_directory, self.operation)?;
            self.hand.go_over(directory, entered.as_fd(), &mut self.latencies)?;
            // Held open, a removed directory would live on until after the clock has stopped.
            drop(entered);
            directory.left(work_directory, self.operation)?;
        }
        Ok(Stint { start_ns, end_ns: sys::monotonic_ns(), latencies: self.latencies })
    }
}

/// One directory and the names in it.
struct Directory {
    number: u32,
    name: CString,
    first_file: u64,
    names: Names,
    /// What they are renamed to; none for any other operation.
    new_names: Names,
}

impl Directory {
    fn entered(&self, parent: BorrowedFd<'_>, operation: Operation) -> Result<OwnedFd, Fault> {
        if operation == Operation::Create {
            sys::make_directory_at(parent, &self.name).map_err(self.fault("create"))?;
        }
        let flags = libc::O_RDONLY | libc::O_DIRECTORY;
        sys::open_at(parent, &self.name, flags).map_err(self.fault("open"))
    }

    fn left(&self, parent: BorrowedFd<'_>, operation: Operation) -> Result<(), Fault> {
        if operation == Operation::Delete {
            sys::remove_directory_at(parent, &self.name).map_err(self.fault("delete"))?;
        }
        Ok(())
    }

    fn fault(&self, action: &'static str) -> impl Fn(io::Error) -> Fault {
        let directory = self.number;
        move |source| Fault::Directory { action, directory, source }
    }
}

/// Names as the kernel takes them, one after another in one piece of memory.
struct Names(Vec<u8>);

impl Names {
    fn new(prefix: char, numbers: Range<u64>) -> Names {
        let mut bytes = Vec::with_capacity((numbers.end - numbers.start) as usize * NAME_BYTES);
        for number in numbers {
            bytes.extend_from_slice(file_name(prefix, number).as_bytes());
            bytes.push(0);
        }
        Names(bytes)
    }

    fn iter(&self) -> impl Iterator<Item = &CStr> {
        let names = self.0.chunks_exact(NAME_BYTES);
        names.map(|name| CStr::from_bytes_with_nul(name).expect("each was written with its NUL"))
    }
}

/// What does the work, one file at a time.
struct Hand {
    operation: Operation,
    size_bytes: u64,
    sync_each: bool,
    content: Content,
    read_buffer: Vec<u8>,
}

impl Hand {
    fn new(files: &SmallFiles, operation: Operation, seed: u64) -> Hand {
        let size_bytes = files.size.0 as usize;
        let (mut content, mut read_buffer) = (Content::default(), Vec::new());
        match operation {
            Operation::Create => content = Content::new(size_bytes, seed),
            Operation::Read => read_buffer = vec![1; size_bytes.clamp(1, READ_BYTES_MAX)],
            Operation::Stat | Operation::Rename | Operation::Delete => {}
        }
        let sync_each = files.sync == Sync::Each;
        Hand { operation, size_bytes: files.size.0, sync_each, content, read_buffer }
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
        for (number, name) in (directory.first_file..).zip(directory.names.iter()) {
            let new_name = new_names.next().unwrap_or_default();
            self.operate(fd, number, name, new_name).map_err(|why| Fault::File {
                directory: directory.number,
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
        let mut left = self.content.of(number);
        while !left.is_empty() {
            match sys::write(file.as_fd(), left)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written => left = &left[written..],
            }
        }
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

/// Where the files' contents come from: random bytes, from each file's own place in them.
#[derive(Default)]
struct Content {
    pool: Vec<u8>,
    size_bytes: usize,
    salt: u64,
}

impl Content {
    fn new(size_bytes: usize, seed: u64) -> Content {
        let mut state = seed;
        let salt = split_mix(&mut state);
        let mut pool = vec![0; size_bytes + SPARE_BYTES];
        for bytes in pool.chunks_mut(8) {
            bytes.copy_from_slice(&split_mix(&mut state).to_le_bytes()[..bytes.len()]);
        }
        Content { pool, size_bytes, salt }
    }

    /// What file `number` holds. Its place would be enough against compression; the stamps see to
    /// it that blocks differ even where the places of two files lie whole blocks apart.
    fn of(&mut self, number: u64) -> &[u8] {
        // Odd, hence different for each number; and neighbours end up far apart.
        let stamp = (number ^ self.salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let start = (stamp >> 32) as usize % SPARE_BYTES;
        let content = &mut self.pool[start..start + self.size_bytes];
        for block in content.chunks_mut(BLOCK_BYTES) {
            let bytes = block.len().min(8);
            block[..bytes].copy_from_slice(&stamp.to_le_bytes()[..bytes]);
        }
        content
    }
}

/// SplitMix64 (Steele, Lea and Flood, 2014): as random as a compressor needs, without a crate.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use std::fs;

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
            assert_eq!(done.operations, files.count);
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
    fn contents_are_as_random_as_they_look() {
        let mut content = Content::new(1 << 16, 3);
        let mut seen = [0u32; 256];
        content.of(5).iter().for_each(|&byte| seen[usize::from(byte)] += 1);
        // 256 expected of each, with a standard deviation of 16.
        assert!(seen.iter().all(|count| (160..352).contains(count)), "{seen:?}");
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
                assert_eq!(run(&files, operation, dir.path(), 7).unwrap().operations, 9);
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
