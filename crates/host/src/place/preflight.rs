//! What is found wrong with a plan before anything is written: what no place could run, and work
//! that its tool refuses.

use std::path::Path;

use fsverdict_core::model::{Bed, BedKind, Bytes, Contender, Plan, PlanError, Workload, meant};
use fsverdict_core::run::{HostError, check_metrics};
use thiserror::Error;

use crate::tool::ToolError;
use crate::workload::engine::{Reading, Taken};
use crate::{bed, file_system, layer, workload};

/// Why a plan can't be run anywhere, and what to do about it.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum PreflightError {
    #[error("contender {contender:?}: no file system is called {name:?}; {}", meant_by(name))]
    UnknownFileSystem { contender: String, name: String },
    #[error("contender {contender:?}: {said}")]
    Words { contender: String, said: String },
    #[error("contender {contender:?}: {said}")]
    Layers { contender: String, said: String },
    #[error("workload {workload:?}: {source}")]
    Work { workload: String, source: HostError },
    #[error("workload {workload:?}: {said}")]
    Job { workload: String, said: String },
    #[error("workload {workload:?} {said}")]
    Metric { workload: String, said: String },
    #[error("{source}")]
    Claims { source: PlanError },
    #[error("contender {contender:?} can't be made on {size}: {said}: give a larger --size")]
    TooSmall { contender: String, size: Bytes, said: String },
    #[error(
        "workload {workload:?} does not fit on contender {contender:?}, which is to hold {lack}: \
         give a larger --size, or less work"
    )]
    Room { workload: String, contender: String, lack: String },
    #[error(
        "contender {contender:?} can only be read, and workload {workload:?} writes: give it a \
         command or a fio job that reads what setup or fio lays out"
    )]
    ReadOnly { workload: String, contender: String },
    #[error("{0}")]
    Tool(#[from] ToolError),
    #[error(
        "contender {contender:?} partitions the bed's device, and {path} is a partition itself: \
         give the whole disk"
    )]
    Nested { contender: String, path: String },
}

fn meant_by(name: &str) -> String {
    meant(name, file_system::ALL.map(|known| known.name))
}

impl PreflightError {
    /// The plan is wrong, whatever the machine.
    pub fn is_usage(&self) -> bool {
        !matches!(self, Self::Tool(_))
    }
}

/// Checks the plan against what fsverdict knows, without asking anything of the machine.
pub fn check_plan(plan: &Plan) -> Result<(), PreflightError> {
    for contender in plan.contenders.iter().filter(|_| plan.bed.kind != BedKind::Directory) {
        let mut all = file_system::ALL.iter();
        let Some(known) = all.find(|known| known.name == contender.file_system) else {
            return Err(PreflightError::UnknownFileSystem {
                contender: contender.name.clone(),
                name: contender.file_system.clone(),
            });
        };
        let named = |said| PreflightError::Words { contender: contender.name.clone(), said };
        known.check_words(&contender.mkfs, &contender.mount).map_err(named)?;
        known.check_below(&contender.above).map_err(named)?;
        check_above(contender)?;
        if let Some(workload) = plan.workloads.iter().find(|it| known.is_read_only() && writes(it))
        {
            let (workload, name) = (workload.name.clone(), contender.name.clone());
            return Err(PreflightError::ReadOnly { workload, contender: name });
        }
    }
    for contender in &plan.contenders {
        let devices = contender.devices_of(plan.bed.devices as usize);
        layer::check(&contender.layers, devices)
            .map_err(|said| PreflightError::Layers { contender: contender.name.clone(), said })?;
    }
    for workload in &plan.workloads {
        let Ok(work) = workload.work() else { continue };
        workload::engine(work)
            .check(workload)
            .map_err(|source| PreflightError::Work { workload: workload.name.clone(), source })?;
        let named = |said| PreflightError::Metric { workload: workload.name.clone(), said };
        check_metrics(workload, &plan.probes, false).map_err(named)?;
        check_claimed(plan, workload, false)?;
    }
    Ok(())
}

/// It does more than to read what lies there, as far as that shows before.
fn writes(workload: &Workload) -> bool {
    workload.work().is_ok_and(|work| !workload::engine(work).only_reads())
}

/// What stands on the contender's file system is known, and can.
fn check_above(contender: &Contender) -> Result<(), PreflightError> {
    for above in &contender.above {
        let mut all = file_system::ALL.iter();
        let known = all.find(|known| known.name == above.name).ok_or_else(|| {
            let (contender, name) = (contender.name.clone(), above.name.clone());
            PreflightError::UnknownFileSystem { contender, name }
        })?;
        known
            .check_stands(&above.options)
            .map_err(|said| PreflightError::Words { contender: contender.name.clone(), said })?;
    }
    Ok(())
}

/// The metrics by which something is claimed of `workload` are among its own.
fn check_claimed(
    plan: &Plan,
    workload: &Workload,
    jobs_are_known: bool,
) -> Result<(), PreflightError> {
    let named = |said| PreflightError::Metric { workload: workload.name.clone(), said };
    let compared = plan.claims.iter().filter_map(|claim| claim.compared(plan).ok());
    for it in compared.filter(|it| [it.workload, it.than].contains(&workload)) {
        let claimed = Workload { primary: vec![it.metric], ..workload.clone() };
        check_metrics(&claimed, &plan.probes, jobs_are_known).map_err(named)?;
    }
    Ok(())
}

/// Checks what only the machine can tell, once all that the plan needs is there, and enters what
/// tools say of their work.
pub fn check_details(plan: &mut Plan) -> Result<(), PreflightError> {
    check_partitions(plan)?;
    if plan.vm.as_ref().is_some_and(|vm| vm.untrusted) {
        // Its own tool would read a stranger's job here.
        return Ok(());
    }
    // All jobs of a duet take their turns together.
    let in_turns: Vec<bool> = plan.workloads.iter().map(|it| plan.takes_turns(it)).collect();
    for (workload, in_turns) in plan.workloads.iter_mut().zip(in_turns) {
        let taken = read_job(workload)?;
        check_room(&plan.bed, &plan.contenders, workload, taken.least_bytes)?;
        workload.jobs = taken.jobs.filter(|_| !in_turns);
        let named = |said| PreflightError::Metric { workload: workload.name.clone(), said };
        check_metrics(workload, &plan.probes, true).map_err(named)?;
    }
    // Which figures there are to claim something of is known by now.
    plan.check().map_err(|source| PreflightError::Claims { source })?;
    for workload in &plan.workloads {
        check_claimed(plan, workload, true)?;
    }
    Ok(())
}

/// What a tool does not understand it says before anything is written, once and not in every trial.
fn read_job(workload: &Workload) -> Result<Taken, PreflightError> {
    let Ok(work) = workload.work() else { return Ok(Taken::default()) };
    match workload::engine(work).read(workload)? {
        Reading::Taken(taken) => Ok(taken),
        Reading::Refused(said) => {
            Err(PreflightError::Job { workload: workload.name.clone(), said })
        }
    }
}

/// What a tool says that its files take is there on every contender.
fn check_room(
    bed: &Bed,
    contenders: &[Contender],
    workload: &Workload,
    least_bytes: u64,
) -> Result<(), PreflightError> {
    if !matches!(bed.kind, BedKind::Loop | BedKind::Ram) {
        return Ok(());
    }
    let devices = |it: &Contender| it.devices_of(bed.devices.max(1) as usize) as u64;
    let bytes = |it: &Contender| bed.size.0.saturating_mul(devices(it));
    match contenders.iter().find(|it| bytes(it) < least_bytes) {
        Some(contender) => Err(PreflightError::Room {
            workload: workload.name.clone(),
            contender: contender.name.clone(),
            lack: format!("{}, and has {}", Bytes(least_bytes), Bytes(bytes(contender))),
        }),
        None => Ok(()),
    }
}

/// A contender can partition a disk, and not a part of one.
fn check_partitions(plan: &Plan) -> Result<(), PreflightError> {
    let Some(one) = plan.contenders.iter().find(|it| !it.partition.is_empty()) else {
        return Ok(());
    };
    match plan.bed.paths.iter().find(|path| bed::is_partition(Path::new(path))) {
        Some(path) => {
            Err(PreflightError::Nested { contender: one.name.clone(), path: path.clone() })
        }
        None => Ok(()),
    }
}
