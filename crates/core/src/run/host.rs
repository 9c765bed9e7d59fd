//! One trial, from its steps to its record.

use super::{Step, sample, steps};
use crate::model::{
    CacheState, Failure, Mounted, Outcome, PhaseRecord, Quiet, Record, SCHEMA, StepTime, Trial,
};

/// Why a host could not do a step; its message is whole.
pub type HostError = Box<dyn std::error::Error + Send + Sync>;

/// What a step brought to light.
#[derive(Debug)]
pub enum Effect {
    /// It is done; there is nothing to say of it.
    Done,
    /// The file system is mounted like this.
    Mounted(Mounted),
    /// The caches around their drop.
    Dropped(CacheState),
    /// Whether the device came to rest.
    Settled(Quiet),
    /// A timed part is over.
    Worked(Box<PhaseRecord>),
}

/// The machine a trial runs on: the real one, the simulated one, or the one that only says what
/// it would do.
pub trait Host {
    /// Does one step.
    fn perform(&mut self, step: Step, trial: &Trial) -> Result<Effect, HostError>;

    /// Undoes whatever of the steps so far still stands: mounts, folders, processes. Called after
    /// a step has failed. Gives what could not be undone.
    fn clean_up(&mut self, trial: &Trial) -> Vec<String>;

    /// Nanoseconds of a steady clock.
    fn clock_ns(&mut self) -> u64;
}

/// Runs `trial` on `host`. A step that fails ends the trial, not the program: the record says
/// which step and why, and what could not be cleaned up after it.
pub fn trial(host: &mut dyn Host, trial: &Trial) -> Record {
    let mut record = empty(trial);
    for step in steps(trial) {
        let start_ns = host.clock_ns();
        let effect = host.perform(step, trial);
        let duration_ns = host.clock_ns() - start_ns;
        record.steps.push(StepTime { step: step.to_string(), duration_ns });
        match effect {
            Ok(effect) => note(&mut record, effect),
            Err(error) => {
                let cleanup_errors = host.clean_up(trial);
                let (step, error) = (step.to_string(), error.to_string());
                fail(&mut record, Failure { step, error, cleanup_errors });
                return record;
            }
        }
    }
    record.samples = sample::samples(&trial.workload, &record.phases);
    record
}

/// The record of a trial that has not begun.
fn empty(trial: &Trial) -> Record {
    Record {
        schema: SCHEMA,
        number: trial.number,
        key: trial.key.clone(),
        position: trial.position,
        seed: trial.seed,
        outcome: Outcome::Measured,
        guest: None,
        steps: Vec::new(),
        mounted: None,
        caches: Vec::new(),
        settled: Vec::new(),
        phases: Vec::new(),
        samples: Vec::new(),
    }
}

/// The record of a trial that failed before or beside its steps.
pub(super) fn failed(trial: &Trial, failure: Failure) -> Record {
    let mut record = empty(trial);
    fail(&mut record, failure);
    record
}

/// A failed trial has no figures: half a measurement is none.
pub(super) fn fail(record: &mut Record, failure: Failure) {
    record.outcome = Outcome::Failed(failure);
    record.samples.clear();
}

fn note(record: &mut Record, effect: Effect) {
    match effect {
        Effect::Done => {}
        Effect::Mounted(mounted) => record.mounted = Some(mounted),
        Effect::Dropped(state) => record.caches.push(state),
        Effect::Settled(quiet) => record.settled.push(quiet),
        Effect::Worked(phase) => record.phases.push(*phase),
    }
}
