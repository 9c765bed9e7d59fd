//! The metadata workload: one operation over all directories or files.
//!
//! The files are empty and lie in directories as `directories.rs` says.
//!
//! - *mkdir*: mkdirat of every directory. *create*: openat and close of every file.
//! - *rename*: renameat within their directory of the files in the first half of the directories,
//!   as the openEuler study's `mv` has it.
//! - *chmod* to 0600, *utimes* to the second of 2001 that is the file's number.
//! - *chown*: to nobody (65534); to the same owner where the process is not root, which may not
//!   give files away: that changes the ctime alone.
//! - *setxattr*: `user.fsverdict` of 32 bytes, which fits into the inode of ext4 and XFS.
//! - *delete*: unlinkat of the files of each directory and of the directory, told apart in the
//!   latencies as *unlink* and *rmdir*.
//!
//! A latency is one call's (create: both). The end of one is the start of the next within a
//! directory, so that the clock is read once a file. Opening a directory is part of the work's
//! time, but no operation.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use fsverdict_core::model::{Device, Histogram, Metadata, MetadataOperation, Phase};
use fsverdict_core::run::{HostError, Step};
use thiserror::Error;

use super::directories::{self, Directories, Names, Stretch};
use super::engine::{Act, Done, Engine, Scene, TimedPart, native, no_phase};
use super::relay::{self, Counts, GoneOver, Relay, Undone};
use super::{NOBODY, PathError, YEAR_2001_S};
use crate::sys;
use crate::timing::Latencies;
use crate::timing::threads::Failed;

const MODE: libc::mode_t = 0o600;
const ATTRIBUTE: &CStr = c"user.fsverdict";
const ATTRIBUTE_VALUE: &[u8; 32] = b"thirty-two bytes of an attribute";

/// Why it could not be done.
#[derive(Debug, Error)]
enum MetadataError {
    #[error("{0}")]
    Path(#[from] PathError),
    #[error("start a thread for metadata: {0}")]
    Thread(io::Error),
    #[error("its turns: {0}")]
    InTurns(io::Error),
}

/// The file system has no such operation: setxattr(2) says ENOTSUP where it has no attributes of
/// users, or is mounted without them.
fn is_refusal(error: &(dyn std::error::Error + 'static)) -> bool {
    matches!(error.downcast_ref(), Some(MetadataError::Path(PathError { action, source, .. }))
        if *action == MetadataOperation::Setxattr.name()
            && source.raw_os_error() == Some(libc::ENOTSUP))
}

impl Engine for Metadata {
    fn prepare<'a>(
        &'a self,
        phase: Phase,
        scene: &'a Scene,
    ) -> Result<Box<dyn TimedPart + 'a>, HostError> {
        let Phase::Metadata(operation) = phase else { return Err(no_phase(phase)) };
        let turns = scene.relay.map_or(1, |_| relay::shares(self.count(operation)));
        let prepared = prepare(self, operation, &scene.directory, turns)?;
        native(|| prepared.run(scene.relay, scene.devices))
    }

    fn is_refusal(&self, error: &(dyn std::error::Error + 'static)) -> bool {
        is_refusal(error)
    }

    fn dry(&self, step: Step, _scene: &Scene) -> Result<Vec<Act>, HostError> {
        let Step::Work(phase) = step else { return Ok(Vec::new()) };
        let Phase::Metadata(_) = phase else { return Err(no_phase(phase)) };
        Ok(vec![Act::Within(format!(
            "{} directories with {} files each, {} threads",
            self.directories, self.files_per_directory, self.threads
        ))])
    }
}

/// One operation over everything, with all it needs in memory.
struct Prepared {
    operation: MetadataOperation,
    path: PathBuf,
    work_directory: OwnedFd,
    turns: u32,
    workers: Vec<Worker>,
}

/// Makes everything ready for `operation` in `directory`, in so many `turns`, and touches no file.
fn prepare(
    metadata: &Metadata,
    operation: MetadataOperation,
    directory: &Path,
    turns: u32,
) -> Result<Prepared, MetadataError> {
    let work_directory = File::open(directory).map_err(PathError::of("open", directory))?;
    let shares = Shares { metadata, operation, turns };
    Ok(Prepared {
        operation,
        path: directory.into(),
        work_directory: work_directory.into(),
        turns,
        workers: (0..metadata.threads).map(|thread| shares.worker(thread)).collect(),
    })
}

impl Prepared {
    /// Does it: all at once, or in its turns.
    fn run(mut self, relay: Option<&Relay>, devices: &[Device]) -> Result<Done, MetadataError> {
        let workers = std::mem::take(&mut self.workers);
        let directory = self.work_directory.as_fd();
        let work = |worker: &mut Worker, turn| worker.run(turn, directory);
        match relay::gone_over(relay, devices, directory, workers, self.turns, work) {
            Ok(gone_over) => Ok(self.summed(gone_over)),
            Err(Undone::Failed(Failed::Thread(error))) => Err(MetadataError::Thread(error)),
            Err(Undone::Turns(error)) => Err(MetadataError::InTurns(error)),
            Err(Undone::Failed(Failed::Work(fault))) => Err(self.explained(fault).into()),
        }
    }

    fn summed(&self, gone_over: GoneOver<Worker>) -> Done {
        let GoneOver { workers, work_ns, turns } = gone_over;
        let (of_files, of_directories) = match self.operation {
            MetadataOperation::Delete => ("unlink", "rmdir"),
            operation => (operation.name(), operation.name()),
        };
        let files = Latencies::merged(workers.iter().map(|worker| &worker.files));
        let directories = Latencies::merged(workers.iter().map(|worker| &worker.directories));
        let histograms = [(of_files, files), (of_directories, directories)];
        let histograms = histograms.into_iter().filter(|(_, taken)| taken.count() > 0);
        let histograms: std::collections::BTreeMap<_, _> =
            histograms.map(|(name, taken)| (name.to_string(), taken)).collect();
        Done {
            operations: Some(histograms.values().map(Histogram::count).sum()),
            histograms,
            work_ns,
            turns,
            ..Done::default()
        }
    }

    fn explained(&self, fault: Fault) -> PathError {
        let Fault { action, directory, file, source } = fault;
        let mut path = self.path.join(directories::directory_name(directory));
        path.extend(file);
        PathError { action, path, source }
    }
}

/// What went wrong, as a thread knows it.
struct Fault {
    action: &'static str,
    directory: u32,
    /// The file's name.
    file: Option<String>,
    source: io::Error,
}

/// What the threads are to share.
struct Shares<'a> {
    metadata: &'a Metadata,
    operation: MetadataOperation,
    turns: u32,
}

impl Shares<'_> {
    fn worker(&self, thread: u32) -> Worker {
        let turns = self.all().stretches(thread, self.metadata.threads, self.turns).into_iter();
        let named = |turn: Vec<Stretch>| turn.into_iter().map(|it| self.named(it)).collect();
        Worker {
            operation: self.operation,
            owner: if sys::is_root() { NOBODY } else { (sys::user_id(), sys::group_id()) },
            turns: turns.map(named).collect(),
            files: Latencies::new(),
            directories: Latencies::new(),
        }
    }

    /// What the operation is done to. Of directories that are made each counts as its only file.
    fn all(&self) -> Directories {
        let Metadata { directories, files_per_directory, .. } = *self.metadata;
        let (directories, files) = match self.operation {
            MetadataOperation::Mkdir => (directories, 1),
            MetadataOperation::Rename => (self.metadata.renamed_directories(), files_per_directory),
            _ => (directories, files_per_directory),
        };
        Directories { files: u64::from(directories) * u64::from(files), directories }
    }

    /// A stretch of a directory with the names that its files have when their turn comes.
    fn named(&self, stretch: Stretch) -> Directory {
        let number = stretch.directory;
        let among_renamed = number < self.metadata.renamed_directories();
        let was_renamed = among_renamed && self.comes_after(MetadataOperation::Rename);
        let numbers = || stretch.files.clone();
        let prefix: &[u8] = if was_renamed { b"r" } else { b"f" };
        let second = match self.operation {
            MetadataOperation::Rename => Names::new(b"r", numbers()),
            MetadataOperation::Setxattr => {
                // From the working directory, which is the work's.
                let directory = directories::directory_name(number);
                Names::new(&[directory.as_bytes(), b"/", prefix].concat(), numbers())
            }
            _ => Names::none(),
        };
        let name = directories::directory_c_name(number);
        let names = Names::new(prefix, numbers());
        Directory { stretch, name, names, second }
    }

    /// This operation comes after `other`, which is done too.
    fn comes_after(&self, other: MetadataOperation) -> bool {
        let done = &self.metadata.operations;
        let place = |wanted| done.iter().position(|operation| *operation == wanted);
        place(other).is_some_and(|place_of_other| place(self.operation) > Some(place_of_other))
    }
}

/// A stretch of a directory, and the names in it.
struct Directory {
    stretch: Stretch,
    name: CString,
    names: Names,
    /// What the files are renamed to, or their paths where the call takes no directory.
    second: Names,
}

impl Directory {
    fn fault(&self, action: &'static str) -> impl FnOnce(io::Error) -> Fault {
        let directory = self.stretch.directory;
        move |source| Fault { action, directory, file: None, source }
    }
}

/// One thread's share.
struct Worker {
    operation: MetadataOperation,
    owner: (u32, u32),
    /// What it goes over in each turn.
    turns: Vec<Vec<Directory>>,
    /// Of operations on files.
    files: Latencies,
    /// Of operations on directories.
    directories: Latencies,
}

impl Counts for Worker {
    fn operations(&self) -> u64 {
        self.files.count() + self.directories.count()
    }
}

impl Worker {
    /// The timed loop: nothing is allocated, formatted or logged in it until something fails.
    fn run(&mut self, turn: u32, work_directory: BorrowedFd<'_>) -> Result<(), Fault> {
        let share = std::mem::take(&mut self.turns[turn as usize]);
        share.iter().try_for_each(|directory| match self.operation {
            MetadataOperation::Mkdir => {
                let start_ns = sys::monotonic_ns();
                sys::make_directory_at(work_directory, &directory.name)
                    .map_err(directory.fault("mkdir"))?;
                self.directories.record(sys::monotonic_ns() - start_ns);
                Ok(())
            }
            MetadataOperation::Delete => {
                self.go_over(work_directory, directory)?;
                if !directory.stretch.is_last {
                    return Ok(());
                }
                let start_ns = sys::monotonic_ns();
                sys::remove_directory_at(work_directory, &directory.name)
                    .map_err(directory.fault("rmdir"))?;
                self.directories.record(sys::monotonic_ns() - start_ns);
                Ok(())
            }
            _ => self.go_over(work_directory, directory),
        })
    }

    fn go_over(
        &mut self,
        work_directory: BorrowedFd<'_>,
        directory: &Directory,
    ) -> Result<(), Fault> {
        let flags = libc::O_RDONLY | libc::O_DIRECTORY;
        let entered = sys::open_at(work_directory, &directory.name, flags)
            .map_err(directory.fault("open"))?;
        let mut second = directory.second.iter();
        let mut start_ns = sys::monotonic_ns();
        for (number, name) in (directory.stretch.files.start..).zip(directory.names.iter()) {
            let second = second.next().unwrap_or_default();
            self.operate(entered.as_fd(), number, name, second).map_err(|source| Fault {
                action: self.operation.name(),
                directory: directory.stretch.directory,
                file: Some(name.to_string_lossy().into_owned()),
                source,
            })?;
            let end_ns = sys::monotonic_ns();
            self.files.record(end_ns - start_ns);
            start_ns = end_ns;
        }
        // Held open, a removed directory would live on until after the clock has stopped.
        drop(entered);
        Ok(())
    }

    #[inline]
    fn operate(
        &self,
        directory: BorrowedFd<'_>,
        number: u64,
        name: &CStr,
        second: &CStr,
    ) -> io::Result<()> {
        match self.operation {
            MetadataOperation::Mkdir => Ok(()),
            MetadataOperation::Create => {
                let flags = libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY;
                sys::close(sys::open_at(directory, name, flags)?)
            }
            MetadataOperation::Rename => sys::rename_at(directory, name, second),
            MetadataOperation::Chmod => sys::chmod_at(directory, name, MODE),
            MetadataOperation::Chown => sys::chown_at(directory, name, self.owner),
            MetadataOperation::Utimes => {
                sys::set_times_at(directory, name, YEAR_2001_S + number.cast_signed())
            }
            MetadataOperation::Setxattr => sys::set_attribute(second, ATTRIBUTE, ATTRIBUTE_VALUE),
            MetadataOperation::Delete => sys::unlink_at(directory, name),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    fn metadata() -> Metadata {
        let operations = MetadataOperation::ALL.to_vec();
        Metadata { directories: 5, files_per_directory: 3, threads: 2, operations }
    }

    fn run(
        metadata: &Metadata,
        operation: MetadataOperation,
        directory: &Path,
    ) -> Result<Done, MetadataError> {
        prepare(metadata, operation, directory, 1)?.run(None, &[])
    }

    #[test]
    fn every_operation_reaches_every_file_and_nothing_is_left() {
        let dir = tempfile::tempdir().unwrap();
        for operation in MetadataOperation::ALL {
            let done = match run(&metadata(), operation, dir.path()) {
                // On tmpfs before Linux 6.6.
                Err(error) if is_refusal(&error) => continue,
                done => done.unwrap(),
            };
            let counts: Vec<_> = done.histograms.values().map(Histogram::count).collect();
            assert_eq!(done.operations, Some(counts.iter().sum()));
            assert_eq!(done.operations, Some(metadata().count(operation)), "{operation:?}");
            match operation {
                MetadataOperation::Delete => {
                    assert!(done.histograms.keys().eq(["rmdir", "unlink"]));
                    assert_eq!(counts, [5, 15]);
                }
                _ => assert!(done.histograms.keys().eq([operation.name()])),
            }
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn the_first_half_is_renamed_and_attributes_are_what_was_set() {
        let dir = tempfile::tempdir().unwrap();
        for operation in &MetadataOperation::ALL[..6] {
            run(&metadata(), *operation, dir.path()).unwrap();
        }
        for (path, there) in
            [("d0002/r00000008", true), ("d0002/f00000008", false), ("d0003/f00000009", true)]
        {
            let path = dir.path().join(path);
            assert_eq!(path.exists(), there, "{}", path.display());
            if there {
                let seen = fs::metadata(&path).unwrap();
                assert_eq!(seen.mode() & 0o777, MODE);
                assert_eq!(
                    seen.mtime(),
                    YEAR_2001_S + if path.ends_with("r00000008") { 8 } else { 9 }
                );
                assert_eq!(seen.uid() == NOBODY.0, sys::is_root());
            }
        }
    }

    #[test]
    fn operations_may_be_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let mut few = metadata();
        few.operations.retain(|operation| !matches!(operation, MetadataOperation::Rename));
        for operation in few.operations.clone() {
            if operation != MetadataOperation::Setxattr {
                run(&few, operation, dir.path()).unwrap();
            }
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_failure_names_the_call_and_the_path() {
        let dir = tempfile::tempdir().unwrap();
        let told = |operation| run(&metadata(), operation, dir.path()).unwrap_err().to_string();
        run(&metadata(), MetadataOperation::Mkdir, dir.path()).unwrap();
        let shown = dir.path().display();
        let exists = format!("mkdir {shown}/d0000: File exists (os error 17)");
        assert_eq!(told(MetadataOperation::Mkdir), exists);
        let gone = format!("chmod {shown}/d0000/r00000000: No such file or directory (os error 2)");
        assert_eq!(told(MetadataOperation::Chmod), gone);
    }
}
