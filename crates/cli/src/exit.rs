//! Exit statuses, and which errors lead to which.

use std::process::ExitCode;

use crate::say::remark;
use fsverdict_core::model::{Incomparable, PlanError, PurposeError};
use fsverdict_core::published::TableError;
use fsverdict_core::run::HostError;
use fsverdict_host::bed::{BedError, Refusal};
use fsverdict_host::place::preflight::PreflightError;

/// Done.
pub const DONE: u8 = 0;
/// Something could not be done: a contender failed, a file could not be written.
pub const FAILED: u8 = 1;
/// The command line, the plan or the table is wrong. clap uses the same.
pub const USAGE: u8 = 2;
/// Refused, so that nothing is lost.
pub const REFUSED: u8 = 3;
/// `compare` found something slower, or `report` a claim that does not hold.
pub const WORSE: u8 = 4;
/// Every workload is void.
pub const VOID: u8 = 5;
/// `check` found nothing wrong, but could not judge all.
pub const UNJUDGED: u8 = 6;
/// Interrupted by the user: 128 and the number of SIGINT, as shells have it.
pub const INTERRUPTED: u8 = 130;

/// A wrong command line that clap could not see.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

/// An error of a place. In a box alone anyhow would hide its type, which decides the exit status.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct PlaceError(pub HostError);

/// Says what went wrong, if anything did, and gives the exit status for it.
pub fn code(result: anyhow::Result<u8>) -> ExitCode {
    match result {
        Ok(code) => code.into(),
        Err(error) if is_broken_pipe(&error) => DONE.into(),
        Err(error) => {
            remark!("{}", whole(&error));
            status(&error).into()
        }
    }
}

/// The error with its causes. Most of our messages hold their cause already: it is said once.
fn whole(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        // TOML's errors end with a newline.
        if !text.contains(cause.trim_end()) {
            let colon = if text.is_empty() { "" } else { ": " };
            text += &format!("{colon}{cause}");
        }
    }
    text
}

fn status(error: &anyhow::Error) -> u8 {
    for cause in error.chain() {
        let cause = match cause.downcast_ref() {
            Some(PlaceError(inner)) => &**inner,
            None => cause,
        };
        if cause.is::<Refusal>() || matches!(cause.downcast_ref(), Some(BedError::Refused(_))) {
            return REFUSED;
        }
        let is_wrong_plan = cause.downcast_ref().is_some_and(PreflightError::is_usage);
        if is_wrong_plan
            || cause.is::<PlanError>()
            || cause.is::<TableError>()
            || cause.is::<Usage>()
            || cause.is::<PurposeError>()
            || cause.is::<Incomparable>()
        {
            return USAGE;
        }
    }
    FAILED
}

/// The reader of our output has seen enough: that is no failure.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
    })
}

#[cfg(test)]
mod tests {
    use fsverdict_core::model::Plan;

    use super::*;

    #[test]
    fn what_is_wrong_with_a_plan_is_said_once() {
        let error = Plan::parse("bed = { kind = \"ram\", foo = 1 }").unwrap_err();
        let said = whole(&anyhow::Error::new(error).context("plan.toml"));
        assert!(said.starts_with("plan.toml: TOML parse error at line 1"), "{said}");
        assert_eq!(said.matches("unknown field").count(), 1, "{said}");
    }
}
