//! What a trial does, in order.

use std::fmt;

use crate::model::{BedKind, Cache, Phase, Trial, Work};

/// One step of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Make the file system afresh.
    MakeFileSystem,
    /// Make the trial's own folder: bed `directory`.
    MakeDirectory,
    /// Mount it, and make the folder the work happens in.
    Mount,
    /// The workload's `setup`.
    Setup,
    /// Lay out the files the work finds there.
    Fill,
    /// Write everything out (syncfs).
    Sync,
    /// Unmount it.
    Unmount,
    /// Drop the caches, and look whether they are.
    DropCaches,
    /// The workload's `prepare`.
    Prepare,
    /// Wait until the device is at rest.
    Settle,
    /// A timed part: the work, closed by syncfs, watched by the probes.
    Work(Phase),
    /// The tool's own removal of its files: sysbench has one.
    Cleanup,
    /// Remove the trial's own folder: bed `directory`.
    RemoveDirectory,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Step::MakeFileSystem => "mkfs",
            Step::MakeDirectory => "make directory",
            Step::Mount => "mount",
            Step::Setup => "setup",
            Step::Fill => "fill",
            Step::Sync => "sync",
            Step::Unmount => "unmount",
            Step::DropCaches => "drop caches",
            Step::Prepare => "prepare",
            Step::Settle => "settle",
            Step::Work(Phase::Whole) => "work",
            Step::Work(phase) => return write!(f, "work: {}", phase.name()),
            Step::Cleanup => "cleanup",
            Step::RemoveDirectory => "remove directory",
        })
    }
}

/// The steps of `trial`: fresh file system, fill, remount, empty caches, rest, work.
///
/// Caches are dropped while the file system is unmounted. Nothing of it can be cached then but
/// pages of the device itself, and those can be counted without touching the file system.
///
/// The bare device has no file system to make, to fill or to mount.
pub fn steps(trial: &Trial) -> Vec<Step> {
    if trial.contender.is_raw() {
        let cold = trial.workload.cache == Cache::Cold;
        let dropped = cold.then_some(Step::DropCaches);
        return dropped.into_iter().chain([Step::Settle, Step::Work(Phase::Whole)]).collect();
    }
    let formatted = trial.bed.kind != BedKind::Directory;
    let mut steps = match formatted {
        true => vec![Step::MakeFileSystem, Step::Mount],
        false => vec![Step::MakeDirectory],
    };
    let workload = &trial.workload;
    steps.extend(workload.setup.is_some().then_some(Step::Setup));
    let work = workload.work();
    steps.extend(matches!(work, Ok(work) if work.is_filled()).then_some(Step::Fill));
    steps.extend(remount(formatted, workload.cache));
    if workload.prepare.is_some() {
        steps.extend([Step::Prepare, Step::Sync]);
    }
    for (place, phase) in workload.phases().into_iter().enumerate() {
        if place > 0 && workload.cache == Cache::Cold && wants_cold(phase) {
            steps.extend(remount(formatted, Cache::Cold));
        }
        steps.extend([Step::Settle, Step::Work(phase)]);
    }
    steps.extend(matches!(work, Ok(Work::Sysbench(_))).then_some(Step::Cleanup));
    steps.push(if formatted { Step::Unmount } else { Step::RemoveDirectory });
    steps
}

fn remount(formatted: bool, cache: Cache) -> impl Iterator<Item = Step> {
    let cold = cache == Cache::Cold;
    [
        Some(Step::Sync),
        formatted.then_some(Step::Unmount),
        cold.then_some(Step::DropCaches),
        formatted.then_some(Step::Mount),
    ]
    .into_iter()
    .flatten()
}

fn wants_cold(phase: Phase) -> bool {
    matches!(phase, Phase::SmallFiles(operation) if operation.is_read())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Command, FsyncFiles, Metadata, SmallFiles, Sysbench, Workload};

    fn named(kind: BedKind, workload: Workload) -> String {
        let trial = crate::run::sim::example_trial(kind, workload);
        let names: Vec<String> = steps(&trial).iter().map(Step::to_string).collect();
        names.join(", ")
    }

    #[test]
    fn a_command_runs_on_a_fresh_remounted_cold_file_system() {
        let workload = Workload {
            setup: Some(Command::Shell("seq 9 > in".into())),
            prepare: Some(Command::Shell("sleep 1".into())),
            command: Some(Command::Shell("cat in".into())),
            ..Workload::default()
        };
        assert_eq!(
            named(BedKind::Loop, workload.clone()),
            "mkfs, mount, setup, sync, unmount, drop caches, mount, prepare, sync, settle, work, \
             unmount"
        );
        assert_eq!(
            named(BedKind::Directory, workload.clone()),
            "make directory, setup, sync, drop caches, prepare, sync, settle, work, \
             remove directory"
        );
        let warm = Workload { cache: Cache::Warm, ..workload };
        assert!(!named(BedKind::Loop, warm).contains("drop caches"));
    }

    #[test]
    fn the_bare_device_is_not_made_and_not_mounted() {
        let fio = Some(crate::model::Fio::Arguments(vec!["--rw=randread".into()]));
        let workload = Workload { fio, ..Workload::default() };
        let mut trial = crate::run::sim::example_trial(BedKind::Loop, workload);
        trial.contender.file_system = crate::model::Contender::RAW.into();
        assert_eq!(steps(&trial), [Step::DropCaches, Step::Settle, Step::Work(Phase::Whole)]);
    }

    #[test]
    fn small_files_are_cold_again_before_they_are_looked_at() {
        let workload = Workload { small_files: Some(SmallFiles::default()), ..Workload::default() };
        assert_eq!(
            named(BedKind::Ram, workload),
            "mkfs, mount, sync, unmount, drop caches, mount, settle, work: create, sync, unmount, \
             drop caches, mount, settle, work: stat, sync, unmount, drop caches, mount, settle, \
             work: read, settle, work: rename, settle, work: delete, unmount"
        );
    }

    #[test]
    fn files_that_are_found_there_are_laid_out_before_the_remount() {
        let fsync = Workload { fsync_files: Some(FsyncFiles::default()), ..Workload::default() };
        let filled = "mkfs, mount, fill, sync, unmount, drop caches, mount, settle, work";
        assert_eq!(named(BedKind::Loop, fsync), format!("{filled}, unmount"));
        let test = Sysbench::Arguments(vec!["--file-test-mode=rndrw".into()]);
        let sysbench = Workload { sysbench: Some(test), ..Workload::default() };
        assert_eq!(named(BedKind::Loop, sysbench), format!("{filled}, cleanup, unmount"));
    }

    #[test]
    fn metadata_is_changed_operation_by_operation() {
        let metadata = Workload { metadata: Some(Metadata::default()), ..Workload::default() };
        assert_eq!(
            named(BedKind::Directory, Workload { cache: Cache::Warm, ..metadata }),
            "make directory, sync, settle, work: mkdir, settle, work: create, settle, \
             work: rename, settle, work: chmod, settle, work: chown, settle, work: utimes, settle, \
             work: setxattr, settle, work: delete, remove directory"
        );
    }
}
