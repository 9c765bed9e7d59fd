//! What a trial does, in order.

use std::fmt;

use crate::model::{BedKind, Cache, Phase, Trial, Work};

/// One step of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Partition the devices as the contender asks.
    Partition,
    /// Make the contender's layers on them.
    Layers,
    /// Make the file system afresh.
    MakeFileSystem,
    /// Make the trial's own folder: bed `directory`.
    MakeDirectory,
    /// Mount it, and make the folder the work happens in.
    Mount,
    /// Make the link between the work's server and its clients.
    Link,
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
    /// Hold the devices down to the limits: making and filling the file system went without.
    Limit,
    /// The workload's `prepare`.
    Prepare,
    /// Wait until the device is at rest.
    Settle,
    /// A timed part: the work, closed by syncfs, watched by the probes.
    Work(Phase),
    /// The workload's `check`: whether the work's result is right.
    Check,
    /// Take in the figures that a command has given of its own work.
    Figures,
    /// The workload's `cleanup`, and the tool's own removal of its files: sysbench has one.
    Cleanup,
    /// Take the contender's partitions away.
    RemovePartition,
    /// Remove the trial's own folder: bed `directory`.
    RemoveDirectory,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Step::Partition => "partition",
            Step::Layers => "layers",
            Step::MakeFileSystem => "mkfs",
            Step::MakeDirectory => "make directory",
            Step::Mount => "mount",
            Step::Link => "link",
            Step::Setup => "setup",
            Step::Fill => "fill",
            Step::Sync => "sync",
            Step::Unmount => "unmount",
            Step::DropCaches => "drop caches",
            Step::Limit => "limit",
            Step::Prepare => "prepare",
            Step::Settle => "settle",
            Step::Work(Phase::Whole) => "work",
            Step::Work(phase) => return write!(f, "work: {}", phase.name()),
            Step::Check => "check",
            Step::Figures => "figures",
            Step::Cleanup => "cleanup",
            Step::RemovePartition => "remove partition",
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
        let limit = trial.limits().is_some().then_some(Step::Limit);
        let work = [Step::Settle, Step::Work(Phase::Whole)];
        return dropped.into_iter().chain(limit).chain(work).collect();
    }
    let formatted = trial.bed.kind != BedKind::Directory;
    let partitioned = !trial.contender.partition.is_empty();
    let mut steps = Vec::new();
    steps.extend(partitioned.then_some(Step::Partition));
    steps.extend((!trial.contender.layers.is_empty()).then_some(Step::Layers));
    match formatted {
        true => steps.extend([Step::MakeFileSystem, Step::Mount]),
        false => steps.push(Step::MakeDirectory),
    }
    let workload = &trial.workload;
    steps.extend(workload.link().is_some().then_some(Step::Link));
    steps.extend(workload.setup.is_some().then_some(Step::Setup));
    let work = workload.work();
    steps.extend(matches!(work, Ok(work) if work.is_filled()).then_some(Step::Fill));
    steps.extend(remount(formatted, workload.cache));
    steps.extend(trial.limits().is_some().then_some(Step::Limit));
    if workload.prepare.is_some() {
        steps.extend([Step::Prepare, Step::Sync]);
    }
    for (place, phase) in workload.phases().into_iter().enumerate() {
        if place > 0 && workload.cache == Cache::Cold && wants_cold(phase) {
            steps.extend(remount(formatted, Cache::Cold));
        }
        steps.extend([Step::Settle, Step::Work(phase)]);
    }
    steps.extend(workload.check.is_some().then_some(Step::Check));
    steps.extend(matches!(work, Ok(Work::Command(_))).then_some(Step::Figures));
    let cleaned = workload.cleanup.is_some() || matches!(work, Ok(Work::Sysbench(_)));
    steps.extend(cleaned.then_some(Step::Cleanup));
    steps.push(if formatted { Step::Unmount } else { Step::RemoveDirectory });
    steps.extend(partitioned.then_some(Step::RemovePartition));
    let count = |step| steps.iter().filter(|it| **it == step).count();
    assert_eq!(count(Step::Mount), count(Step::Unmount), "what is mounted is unmounted");
    steps
}

/// Whether the workload's `cleanup` may find something to do when `begun` is how far the trial
/// has come: a command of it has run since the file system was mounted or unmounted last.
pub(super) fn wants_cleanup(begun: &[Step]) -> bool {
    let boundary = |step: &Step| {
        matches!(step, Step::MakeDirectory | Step::Mount | Step::Unmount | Step::Cleanup)
    };
    let since = begun.iter().rposition(boundary).map_or(0, |place| place + 1);
    let commands = |step: &Step| matches!(step, Step::Setup | Step::Prepare | Step::Work(_));
    begun[since..].iter().any(commands)
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
    match phase {
        Phase::SmallFiles(operation) => operation.is_read(),
        Phase::Tree(phase) => phase.is_cold(),
        Phase::Whole | Phase::Metadata(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{
        Command, Each, FsyncFiles, Limits, Metadata, Network, SmallFiles, Sysbench, Tree, Workload,
    };

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
             figures, unmount"
        );
        assert_eq!(
            named(BedKind::Directory, workload.clone()),
            "make directory, setup, sync, drop caches, prepare, sync, settle, work, figures, \
             remove directory"
        );
        let (check, cleanup) = (workload.command.clone(), workload.setup.clone());
        let checked = Workload { check, cleanup, ..workload.clone() };
        let last = "work, check, figures, cleanup, unmount";
        assert!(named(BedKind::Loop, checked).ends_with(last));
        let warm = Workload { cache: Cache::Warm, ..workload };
        assert!(!named(BedKind::Loop, warm).contains("drop caches"));
    }

    #[test]
    fn each_step_may_be_given_a_limit() {
        let work = Workload { tree: Some(Tree::default()), ..Workload::default() };
        let mut trial = crate::run::sim::example_trial(BedKind::Loop, work);
        trial.contender.partition = vec!["mklabel".into()];
        trial.contender.layers = vec!["luks".parse().unwrap()];
        let directories = crate::run::sim::example_trial(BedKind::Directory, Workload::default());
        let untold = [Step::Link, Step::Setup, Step::Fill, Step::Limit, Step::Prepare, Step::Check];
        let last = [Step::Figures, Step::Cleanup];
        let told = [steps(&trial), steps(&directories)].concat();
        for step in told.into_iter().chain(untold).chain(last) {
            let key = step.to_string().split(':').next().unwrap().replace(' ', "_");
            let mut timeouts = crate::model::Timeouts::default();
            timeouts.set(&key, "1s".parse().unwrap());
            timeouts.check().unwrap();
        }
    }

    #[test]
    fn limits_are_for_the_work() {
        let command = Some(Command::Shell("cat in".into()));
        let workload = Workload {
            setup: command.clone(),
            prepare: command.clone(),
            command,
            ..Workload::default()
        };
        let mut trial = crate::run::sim::example_trial(BedKind::Loop, workload);
        trial.bed.limits = Some(Limits { iops: Some(Each::Alike(100)), bandwidth: None });
        let names: Vec<String> = steps(&trial).iter().map(Step::to_string).collect();
        assert_eq!(names[6..9], ["mount", "limit", "prepare"]);
    }

    #[test]
    fn a_link_is_there_for_all_of_the_works_commands() {
        let command = Some(Command::Shell("receive".into()));
        let network = Some(Network::default());
        let workload = Workload { setup: command.clone(), command, network, ..Workload::default() };
        let linked = named(BedKind::Loop, workload.clone());
        assert!(linked.starts_with("mkfs, mount, link, setup, sync, unmount"), "{linked}");
        let network = Some(Network { interface: Some("eth0".into()), ..Network::default() });
        assert!(!named(BedKind::Loop, Workload { network, ..workload }).contains("link"));
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
    fn a_partition_is_made_first_and_taken_away_last() {
        let work = Workload { command: Some(Command::Shell("true".into())), ..Workload::default() };
        let mut trial = crate::run::sim::example_trial(BedKind::Loop, work);
        trial.contender.partition = vec!["mklabel".into()];
        let steps = steps(&trial);
        assert_eq!(steps[..2], [Step::Partition, Step::MakeFileSystem]);
        assert_eq!(steps[steps.len() - 2..], [Step::Unmount, Step::RemovePartition]);
    }

    #[test]
    fn layers_are_made_before_the_file_system_and_not_for_the_bare_device() {
        let work = Workload { command: Some(Command::Shell("true".into())), ..Workload::default() };
        let mut trial = crate::run::sim::example_trial(BedKind::Loop, work);
        trial.contender.layers = vec!["luks".parse().unwrap()];
        assert_eq!(steps(&trial)[..2], [Step::Layers, Step::MakeFileSystem]);
        trial.contender.file_system = crate::model::Contender::RAW.into();
        assert!(!steps(&trial).contains(&Step::Layers));
    }

    #[test]
    fn cleanup_is_for_what_runs_in_the_mounted_file_system() {
        use Step::{Cleanup, MakeFileSystem, Mount, Prepare, Settle, Setup, Sync, Unmount};
        let work = Step::Work(Phase::Whole);
        assert!(!wants_cleanup(&[MakeFileSystem, Mount]));
        assert!(wants_cleanup(&[MakeFileSystem, Mount, Setup]));
        assert!(!wants_cleanup(&[Mount, Setup, Sync, Unmount]), "the unmount has ended it");
        assert!(!wants_cleanup(&[Mount, Setup, Unmount, Mount, Settle]));
        assert!(wants_cleanup(&[Unmount, Mount, Prepare, Settle, work]));
        assert!(!wants_cleanup(&[Mount, work, Cleanup]), "it has had its turn");
    }

    #[test]
    fn a_tree_is_cold_where_it_is_read_and_warm_where_it_is_read_again() {
        let tree = Workload { tree: Some(Tree::default()), ..Workload::default() };
        let cold = "sync, drop caches, settle";
        assert_eq!(
            named(BedKind::Directory, tree),
            format!(
                "make directory, {cold}, work: fill, {cold}, work: copy, {cold}, work: walk, \
                 settle, work: walk_again, {cold}, work: stat, {cold}, work: delete, \
                 remove directory"
            )
        );
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
