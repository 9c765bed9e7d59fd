//! What must be there before a run begins, so that it fails at once and not after the image has
//! been written.

use std::fs;

use fsverdict_core::model::{BedKind, Plan, Work};
use thiserror::Error;

use crate::doctor::{self, State};
use crate::tool::{self, ToolError};
use crate::workload::fio::{self, FioError};
use crate::{file_system, sys, workload};

/// Why a plan can't be run here, and what to do about it.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum PreflightError {
    #[error("contender {contender:?}: no file system is called {name:?}; {}", meant(name))]
    UnknownFileSystem { contender: String, name: String },
    #[error("workload {workload:?}: {source}")]
    Fio { workload: String, source: FioError },
    #[error(
        "bed {bed} needs root: run it with sudo, or compare directories that are mounted already \
         with --bed directory:PATH,PATH"
    )]
    Root { bed: &'static str },
    #[error("bed {bed} can't be made: {lack}")]
    Lacking { bed: &'static str, lack: String },
    #[error("{0}")]
    Tool(#[from] ToolError),
    #[error("this kernel has no {name}, and modprobe brings none")]
    Kernel { name: String },
}

/// What may have been meant, otherwise what there is.
fn meant(name: &str) -> String {
    let known = file_system::ALL.map(|known| known.name);
    match file_system::near(name, known).as_slice() {
        [] => format!("there are {}", known.join(", ")),
        near => format!("did you mean {}?", near.join(" or ")),
    }
}

impl PreflightError {
    /// The plan is wrong, whatever the machine.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::UnknownFileSystem { .. } | Self::Fio { .. })
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
    }
    Ok(())
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
    }
    for program in workload::programs(plan) {
        tool::command(program)?;
    }
    Ok(())
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

/// The kernel has the file system, or a module of it.
pub fn mountable(name: &str) -> bool {
    let known = || {
        let text = fs::read_to_string("/proc/filesystems").unwrap_or_default();
        text.lines().any(|line| line.split_whitespace().last() == Some(name))
    };
    known() || (tool::run_words(&["modprobe", "-q", name]).is_ok() && known())
}
