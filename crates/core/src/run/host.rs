//! One trial, from its steps to its record.

use std::collections::BTreeMap;

use super::step::wants_cleanup;
use super::{Step, sample, steps};
use crate::model::{
    Astray, CacheState, Disk, Failure, Forbidden, Mounted, Outcome, Partition, PhaseRecord, Quiet,
    Record, Refused, Sample, StepTime, Trial, TrialBed, Trouble,
};

/// Why a host could not do a step; its message is whole.
pub type HostError = Box<dyn std::error::Error + Send + Sync>;

/// What a step brought to light.
#[derive(Debug)]
pub enum Effect {
    /// It is done; there is nothing to say of it.
    Done,
    /// The devices are partitioned like this.
    Partitioned(Vec<Partition>),
    /// The layers are these, as their tools describe them.
    Layered(Vec<String>),
    /// The file system is mounted like this.
    Mounted(Mounted),
    /// The caches around their drop.
    Dropped(CacheState),
    /// Whether the device came to rest.
    Settled(Quiet),
    /// The work has left something outside its folder.
    Astray(Astray),
    /// Writes that the work was refused, since the last time.
    Forbidden(Forbidden),
    /// The file system has nothing for this timed part.
    Refused(Refused),
    /// A timed part is over.
    Worked(Box<PhaseRecord>),
    /// Figures that belong to the timed part before: the work's own, or of its requests.
    Figures(Vec<Sample>),
    /// Both of them.
    Both(Box<[Effect; 2]>),
}

/// The machine a trial runs on: the real one, the simulated one, or the one that only says what
/// it would do.
pub trait Host {
    /// Does one step.
    fn perform(&mut self, step: Step, trial: &Trial) -> Result<Effect, HostError>;

    /// Undoes whatever of the steps so far still stands: mounts, folders, processes. Called after
    /// a step has failed. Gives what could not be undone.
    fn clean_up(&mut self, trial: &Trial) -> Vec<String>;

    /// What went wrong so far beneath the work, whether that has noticed or not.
    fn trouble(&mut self) -> Trouble {
        Trouble::default()
    }

    /// How many bytes of commands' output were not kept, by the output's file.
    fn unkept_bytes(&mut self) -> BTreeMap<String, u64> {
        BTreeMap::new()
    }

    /// What the disk under test says of itself now, if it can be read; the first of several.
    fn disk(&mut self, _trial: &Trial) -> Option<Disk> {
        None
    }

    /// Nanoseconds of a steady clock.
    fn clock_ns(&mut self) -> u64;
}

/// Runs `trial` on `host`. A step that fails ends the trial, not the program: the record says
/// which step and why, and what could not be cleaned up after it.
pub fn trial(host: &mut dyn Host, trial: &Trial) -> Record {
    let mut record = taken_through(host, trial);
    record.trouble = host.trouble();
    record.unkept_bytes = host.unkept_bytes();
    if let (Outcome::Failed(failure), Some(line)) =
        (&mut record.outcome, record.trouble.kernel.first())
    {
        failure.error += &format!("; the kernel says: {line}");
    }
    record
}

fn taken_through(host: &mut dyn Host, trial: &Trial) -> Record {
    let mut record = Record { disk: host.disk(trial), ..empty(trial) };
    let steps = steps(trial);
    for (place, &step) in steps.iter().enumerate() {
        if let Err(error) = perform(host, step, trial, &mut record) {
            let mut error = error.to_string();
            if trial.workload.cleanup.is_some() && wants_cleanup(&steps[..=place]) {
                let cleaned = perform(host, Step::Cleanup, trial, &mut record);
                error += &cleaned.map_or_else(|also| format!("; and then: {also}"), |()| "".into());
            }
            let cleanup_errors = host.clean_up(trial);
            fail(&mut record, Failure { step: step.to_string(), error, cleanup_errors });
            return record;
        }
    }
    record.samples = sample::samples(&trial.workload, &record.phases);
    if let Some(error) = sample::wrong(&trial.workload, &record.samples) {
        let (step, cleanup_errors) = (Step::Figures.to_string(), Vec::new());
        fail(&mut record, Failure { step, error, cleanup_errors });
    }
    record
}

/// Does one step, and notes its time and what it brought to light.
fn perform(
    host: &mut dyn Host,
    step: Step,
    trial: &Trial,
    record: &mut Record,
) -> Result<(), HostError> {
    let start_ns = host.clock_ns();
    let effect = host.perform(step, trial);
    let duration_ns = host.clock_ns() - start_ns;
    record.steps.push(StepTime { step: step.to_string(), duration_ns });
    note(record, effect?);
    Ok(())
}

/// The record of a trial that has not begun.
fn empty(trial: &Trial) -> Record {
    let record = Record::new(trial.number, trial.key.clone(), trial.position, trial.seed);
    let TrialBed { limits_count, probed, .. } = &trial.bed;
    Record { limits_count: *limits_count, probed: probed.clone(), ..record }
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
        Effect::Partitioned(partitions) => record.partitions = partitions,
        Effect::Layered(layers) => record.layers = layers,
        Effect::Mounted(mounted) => record.mounted = Some(mounted),
        Effect::Dropped(state) => record.caches.push(state),
        Effect::Settled(quiet) => record.settled.push(quiet),
        Effect::Astray(astray) => record.astray.get_or_insert_default().append(astray),
        Effect::Forbidden(more) => record.forbidden.get_or_insert_default().append(more),
        Effect::Refused(refused) => record.refused.push(refused),
        Effect::Worked(phase) => record.phases.push(*phase),
        Effect::Both(effects) => effects.into_iter().for_each(|effect| note(record, effect)),
        Effect::Figures(figures) => {
            record.phases.last_mut().into_iter().for_each(|phase| {
                phase.samples.extend(figures.iter().cloned());
            });
        }
    }
}
