//! What must be there before a run begins, so that it fails at once and not after the image has
//! been written.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Seek, SeekFrom};
use std::path::Path;

use fsverdict_core::model::{BedKind, Bytes, LeftOut, Need, Plan, Unit, Work, Workload, meant};
use thiserror::Error;

use super::doctor;
use crate::machine::ability::State;
use crate::machine::mount::mountable;
use crate::machine::settings;
use crate::machine::settings::SettingError;
use crate::tool::{self, ToolError};
use crate::workload::fio::{self, FioError};
use crate::workload::replay::{self, ReplayError};
use crate::{bed, file_system, sys, workload};

/// Why a plan can't be run here, and what to do about it.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum PreflightError {
    #[error("contender {contender:?}: no file system is called {name:?}; {}", meant_by(name))]
    UnknownFileSystem { contender: String, name: String },
    #[error("workload {workload:?}: {source}")]
    Fio { workload: String, source: FioError },
    #[error(
        "bed {bed} needs root: run it with sudo, or compare directories that are mounted already \
         with --bed directory:PATH,PATH"
    )]
    Root { bed: &'static str },
    #[error("workload {workload:?}: fio refuses the job: {said}")]
    Job { workload: String, said: String },
    #[error("bed {bed} can't be made: {lack}")]
    Lacking { bed: &'static str, lack: String },
    #[error("{0}")]
    Tool(#[from] ToolError),
    #[error("{0}")]
    Limits(#[from] SettingError),
    #[error(
        "contender {contender:?} partitions the bed's device, and {path} is a partition itself: \
         give the whole disk"
    )]
    Nested { contender: String, path: String },
    #[error("workload {workload:?}: the source {path} is no directory")]
    Source { workload: String, path: String },
    #[error("workload {workload:?}: {source}")]
    Recording { workload: String, source: ReplayError },
    #[error("this kernel has no {name}, and modprobe brings none")]
    Kernel { name: String },
    #[error("a network link can't be made: {0}")]
    Link(String),
    #[error("workload {workload:?}: there is no network interface {name}; {meant}")]
    Interface { workload: String, name: String, meant: String },
    #[error("workload {workload:?} needs {}", listed(missing))]
    Needs { workload: String, missing: Vec<(String, Option<String>)> },
    #[error(
        "workload {workload:?} needs {}, {path} has {}", Unit::Bytes.format(*needed_bytes as f64),
        Unit::Bytes.format(*there_bytes as f64)
    )]
    Room { workload: String, path: String, needed_bytes: u64, there_bytes: u64 },
}

/// The programs that are missing, and what installs them.
fn listed(missing: &[(String, Option<String>)]) -> String {
    let names: Vec<&str> = missing.iter().map(|(program, _)| program.as_str()).collect();
    let packages: BTreeSet<&str> =
        missing.iter().filter_map(|(_, package)| package.as_deref()).collect();
    let packages: String = packages.iter().map(|package| format!(" {package}")).collect();
    let names = names.join(", ");
    match packages.as_str() {
        "" => format!("{names}, which is not there"),
        packages => format!("{names}: apt-get install{packages}"),
    }
}

fn meant_by(name: &str) -> String {
    meant(name, file_system::ALL.map(|known| known.name))
}

impl PreflightError {
    /// The plan is wrong, whatever the machine.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::UnknownFileSystem { .. }
            | Self::Fio { .. }
            | Self::Job { .. }
            | Self::Recording { .. }
            | Self::Nested { .. } => true,
            Self::Root { .. }
            | Self::Tool(_)
            | Self::Limits(_)
            | Self::Kernel { .. }
            | Self::Lacking { .. }
            | Self::Link(_)
            | Self::Interface { .. }
            | Self::Needs { .. }
            | Self::Room { .. }
            | Self::Source { .. } => false,
        }
    }
}

/// Checks the plan against what fsverdict knows, without asking anything of the machine.
pub fn check_plan(plan: &Plan) -> Result<(), PreflightError> {
    for contender in plan.contenders.iter().filter(|_| plan.bed.kind != BedKind::Directory) {
        if file_system::ALL.iter().all(|known| known.name != contender.file_system) {
            return Err(PreflightError::UnknownFileSystem {
                contender: contender.name.clone(),
                name: contender.file_system.clone(),
            });
        }
    }
    for workload in &plan.workloads {
        if let Ok(Work::Fio(job)) = workload.work() {
            fio::check(job).map_err(|source| PreflightError::Fio {
                workload: workload.name.clone(),
                source,
            })?;
        }
        if let Some(Err(source)) = workload.replay.as_ref().map(replay::head) {
            return Err(PreflightError::Recording { workload: workload.name.clone(), source });
        }
    }
    Ok(())
}

/// Leaves out of a study what this machine lacks something for. A plan of the user's own stays as
/// it is, for [`check`] to refuse; so does all without root, which is what is lacking then.
pub fn fit(plan: &mut Plan) -> Vec<LeftOut> {
    if plan.study.is_none() || (plan.bed.kind != BedKind::Directory && !sys::is_root()) {
        return Vec::new();
    }
    plan.fit(|need| lack(need).map(|error| error.to_string()))
}

fn lack(need: Need) -> Option<PreflightError> {
    match need {
        Need::FileSystem(name) => check_file_system(name).err(),
        Need::Program(program) => tool::command(program).err().map(PreflightError::from),
        Need::Limits => settings::check_throttle(Path::new("/")).err().map(PreflightError::from),
        Need::Link => doctor::links().lack().map(PreflightError::Link),
    }
}

/// Checks the plan, and that the machine has what it takes.
pub fn check(plan: &Plan) -> Result<(), PreflightError> {
    check_plan(plan)?;
    if plan.bed.kind != BedKind::Directory {
        if !sys::is_root() {
            return Err(PreflightError::Root { bed: plan.bed.kind.name() });
        }
        for program in ["unshare", "mount", "umount"] {
            tool::command(program)?;
        }
        check_bed(plan)?;
        for contender in &plan.contenders {
            check_file_system(&contender.file_system)?;
        }
        check_partitions(plan)?;
        if plan.bed.limits.is_some() || plan.contenders.iter().any(|it| it.limits.is_some()) {
            settings::check_throttle(Path::new("/"))?;
        }
    }
    for workload in &plan.workloads {
        if let Some(path) = workload.tree.as_ref().and_then(|tree| tree.source.as_ref())
            && !Path::new(path).is_dir()
        {
            let (workload, path) = (workload.name.clone(), path.clone());
            return Err(PreflightError::Source { workload, path });
        }
    }
    for program in workload::programs(plan) {
        tool::command(program)?;
    }
    plan.workloads.iter().try_for_each(|workload| {
        check_job(workload)?;
        check_needs(workload)?;
        check_network(Path::new("/"), workload)?;
        check_room(workload, plan)
    })
}

/// What fio does not understand it says before anything is written, once and not in every trial.
fn check_job(workload: &Workload) -> Result<(), PreflightError> {
    let Ok(Work::Fio(job)) = workload.work() else { return Ok(()) };
    match fio::refused(job)? {
        Some(said) => Err(PreflightError::Job { workload: workload.name.clone(), said }),
        None => Ok(()),
    }
}

/// A contender can partition a disk, and not a part of one.
fn check_partitions(plan: &Plan) -> Result<(), PreflightError> {
    let Some(one) = plan.contenders.iter().find(|it| !it.partition.is_empty()) else {
        return Ok(());
    };
    for program in ["parted", "wipefs"] {
        tool::command(program)?;
    }
    match plan.bed.paths.iter().find(|path| bed::is_partition(Path::new(path))) {
        Some(path) => {
            Err(PreflightError::Nested { contender: one.name.clone(), path: path.clone() })
        }
        None => Ok(()),
    }
}

fn check_needs(workload: &Workload) -> Result<(), PreflightError> {
    let owned =
        |(program, package): (&str, Option<&str>)| (program.into(), package.map(Into::into));
    let missing: Vec<_> =
        workload.needed().filter(|(program, _)| !tool::is_there(program)).map(owned).collect();
    match missing.is_empty() {
        true => Ok(()),
        false => Err(PreflightError::Needs { workload: workload.name.clone(), missing }),
    }
}

/// A link can be made, or the interface is there.
fn check_network(root: &Path, workload: &Workload) -> Result<(), PreflightError> {
    if workload.link().is_some() {
        return lack(Need::Link).map_or(Ok(()), Err);
    }
    let Some(name) = workload.network.as_ref().and_then(|it| it.interface.clone()) else {
        return Ok(());
    };
    let text = fs::read_to_string(root.join("proc/net/dev")).unwrap_or_default();
    let known: Vec<&str> =
        text.lines().filter_map(|line| Some(line.split_once(':')?.0.trim())).collect();
    match known.contains(&name.as_str()) {
        true => Ok(()),
        false => {
            let (workload, meant) = (workload.name.clone(), meant(&name, known));
            Err(PreflightError::Interface { workload, name, meant })
        }
    }
}

/// What is made for the run has its size in the plan; what is the user's is looked at. What can't
/// be looked at is refused where the bed is made of it.
fn check_room(workload: &Workload, plan: &Plan) -> Result<(), PreflightError> {
    let Some(Bytes(needed_bytes)) = workload.needs_bytes else { return Ok(()) };
    let own = plan.contenders.iter().filter_map(|contender| contender.path.as_ref());
    let is_disk = plan.bed.kind == BedKind::Device;
    let paths = match plan.bed.kind {
        BedKind::Loop | BedKind::Ram => return Ok(()),
        BedKind::Device | BedKind::Directory => plan.bed.paths.iter().chain(own),
    };
    for path in paths {
        let at = Path::new(path);
        let looked = if is_disk { node_bytes(at) } else { sys::free_bytes(at) };
        let Ok(there_bytes) = looked else { continue };
        if there_bytes < needed_bytes {
            let (workload, path) = (workload.name.clone(), path.clone());
            return Err(PreflightError::Room { workload, path, needed_bytes, there_bytes });
        }
    }
    Ok(())
}

fn node_bytes(path: &Path) -> std::io::Result<u64> {
    File::open(path)?.seek(SeekFrom::End(0))
}

/// Whether the bed can be made, by trying: root of a container often may neither mount nor attach.
fn check_bed(plan: &Plan) -> Result<(), PreflightError> {
    let bed = if plan.bed.zram { "ram:zram" } else { plan.bed.kind.name() };
    let needs = doctor::BEDS.iter().find(|(known, _)| *known == bed);
    let needs = needs.map_or(&[][..], |(_, needs)| needs).iter().map(ToString::to_string);
    let abilities = doctor::ask(&needs.collect());
    match abilities.iter().find(|it| it.answer.state == State::No).and_then(|it| it.answer.lack()) {
        Some(lack) => Err(PreflightError::Lacking { bed, lack }),
        None => Ok(()),
    }
}

/// The kernel first: where it lacks the file system its tools are of no use.
fn check_file_system(name: &str) -> Result<(), PreflightError> {
    let Some(file_system) = file_system::find(name) else { return Ok(()) };
    if !mountable(file_system.driver()) {
        return Err(PreflightError::Kernel { name: file_system.driver().into() });
    }
    tool::command(file_system.program)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use fsverdict_core::model;

    use super::*;

    fn workload(needs: &[&str]) -> Workload {
        let needs = needs.iter().map(ToString::to_string).collect();
        Workload { name: "work".into(), needs, ..Workload::default() }
    }

    #[test]
    fn all_that_is_missing_is_said_at_once_with_its_packages() {
        check_needs(&workload(&["sh", "mount:mount", "/etc/passwd:base-passwd"])).unwrap();
        let needs = ["sh", "no-bench:no-db", "/no/server:no-db", "no-tool:no-tools"];
        let error = check_needs(&workload(&needs)).unwrap_err().to_string();
        let says = "no-bench, /no/server, no-tool: apt-get install no-db no-tools";
        assert_eq!(error, format!("workload \"work\" needs {says}"));
        let error = check_needs(&workload(&["no-bench"])).unwrap_err().to_string();
        assert!(error.ends_with("needs no-bench, which is not there"), "{error}");
    }

    #[test]
    fn an_interface_must_be_there() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("proc/net")).unwrap();
        let text = " face |bytes\n  eth0: 1 2\n    lo: 3 4\n";
        fs::write(root.path().join("proc/net/dev"), text).unwrap();
        let over = |name: &str| {
            let interface = Some(name.to_string());
            let network = Some(model::Network { interface, ..model::Network::default() });
            check_network(root.path(), &Workload { network, ..workload(&[]) })
        };
        over("eth0").unwrap();
        let error = over("eth1").unwrap_err().to_string();
        assert!(error.ends_with("no network interface eth1; did you mean eth0?"), "{error}");
    }

    #[test]
    fn a_directory_must_have_the_room() {
        let folder = tempfile::tempdir().unwrap();
        let mut plan = Plan::default();
        plan.bed.kind = BedKind::Directory;
        plan.bed.paths = vec![folder.path().display().to_string()];
        let needs = |bytes| Workload { needs_bytes: Some(Bytes(bytes)), ..workload(&[]) };
        check_room(&needs(1), &plan).unwrap();
        let error = check_room(&needs(1 << 60), &plan).unwrap_err().to_string();
        assert!(error.contains("needs 1024 PiB") && error.contains(&plan.bed.paths[0]), "{error}");
    }
}
