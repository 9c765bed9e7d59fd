//! What surrounds the trials: the bed they run on and the settings they run under.

use super::{HostError, duet, host};
use crate::model::{Bed, Contender, Failure, Outcome, Overdue, Record, Trial, TrialBed};

/// Who runs the trials.
pub trait Place {
    /// Makes the bed. What it makes is written to the undo journal first.
    fn make_bed(&mut self, bed: &Bed) -> Result<TrialBed, HostError>;

    /// Sets what `contender` asks of the devices and the kernel, and reads it back.
    fn apply(&mut self, contender: &Contender, bed: &TrialBed) -> Result<(), HostError>;

    /// Runs one trial, as a process of its own where the place has processes. One that takes longer
    /// than it may is ended, with the error [`Overdue`].
    fn run_trial(&mut self, trial: &Trial) -> Result<Record, HostError>;

    /// Runs the trials of a duet at once, their work in turns: returns a record for each, as
    /// [`Place::run_trial`] does. A place that can't has refused the plan.
    fn run_duet(&mut self, trials: &[Trial]) -> Vec<Result<Record, HostError>> {
        trials.iter().map(|_| Err("this place has no duets: write --place local".into())).collect()
    }

    /// Puts back every setting that [`Place::apply`] changed since it was asked last.
    fn restore(&mut self) -> Result<(), HostError>;

    /// Removes the bed.
    fn remove_bed(&mut self) -> Result<(), HostError>;

    /// What the report must say of the bed once it is made: names and values.
    fn bed_facts(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// What the run made or changed and that still stands, for a person; empty once the bed is
    /// removed, unless something went wrong.
    fn left(&self) -> Vec<String>;
}

/// One trial under its contender's settings. Whatever happens, the settings are put back; where
/// they can't be, the failure's `cleanup_errors` say so and the run must not go on, because the
/// next contender would be measured under settings that are not its own.
pub fn settled_trial(place: &mut dyn Place, trial: &Trial) -> Record {
    let mut record = match place.apply(&trial.contender, &trial.bed) {
        Ok(()) => place.run_trial(trial).unwrap_or_else(|error| failed(trial, "trial", &error)),
        Err(error) => failed(trial, "settings", &error),
    };
    restore(place, std::slice::from_mut(&mut record));
    record
}

/// The trials of a duet, each under its contender's settings of its own devices; likewise.
pub fn settled_duet(place: &mut dyn Place, trials: &[Trial]) -> Vec<Record> {
    let applied = trials.iter().try_for_each(|it| place.apply(&it.contender, &it.bed));
    let mut records: Vec<Record> = match applied {
        Ok(()) => {
            let run = place.run_duet(trials).into_iter().zip(trials);
            let record = |(it, trial): (Result<Record, HostError>, _)| {
                it.unwrap_or_else(|error| failed(trial, "trial", &error))
            };
            run.map(record).collect()
        }
        Err(error) => trials.iter().map(|it| failed(it, "settings", &error)).collect(),
    };
    assert_eq!(records.len(), trials.len(), "each trial of a duet has a record");
    duet::pair(trials, &mut records);
    restore(place, &mut records);
    records
}

/// The record of a trial that failed at `step`, or at the one that took too long.
fn failed(trial: &Trial, step: &str, error: &HostError) -> Record {
    let overdue = error.downcast_ref::<Overdue>();
    let step = overdue.map_or(step, |overdue| &overdue.step).to_string();
    let cleanup_errors = overdue.map(|overdue| overdue.left.clone()).unwrap_or_default();
    host::failed(trial, Failure { step, error: error.to_string(), cleanup_errors })
}

/// Puts the settings back. Where that fails the trials have failed, too.
fn restore(place: &mut dyn Place, records: &mut [Record]) {
    let Err(error) = place.restore() else { return };
    let error = error.to_string();
    for record in records {
        let mut failure = match record.outcome.clone() {
            Outcome::Failed(failure) => failure,
            Outcome::Measured => Failure {
                step: "restore settings".into(),
                error: error.clone(),
                cleanup_errors: Vec::new(),
            },
        };
        failure.cleanup_errors.push(error.clone());
        host::fail(record, failure);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::model::{BedKind, Timeouts, Workload};
    use crate::run::sim::example_trial;

    /// A place where each trial takes too long.
    struct Slow;

    impl Place for Slow {
        fn make_bed(&mut self, _bed: &Bed) -> Result<TrialBed, HostError> {
            Err("it has none".into())
        }

        fn apply(&mut self, _contender: &Contender, _bed: &TrialBed) -> Result<(), HostError> {
            Ok(())
        }

        fn run_trial(&mut self, _trial: &Trial) -> Result<Record, HostError> {
            let day = Duration::from_secs(86_400);
            let mut overdue = Timeouts::default().check_time("mkfs", day, day).unwrap_err();
            overdue.left.push("a mount".into());
            Err(overdue.into())
        }

        fn restore(&mut self) -> Result<(), HostError> {
            Ok(())
        }

        fn remove_bed(&mut self) -> Result<(), HostError> {
            Ok(())
        }

        fn left(&self) -> Vec<String> {
            Vec::new()
        }
    }

    #[test]
    fn a_trial_that_takes_too_long_has_failed_at_its_step() {
        let record = settled_trial(&mut Slow, &example_trial(BedKind::Loop, Workload::default()));
        let Outcome::Failed(failure) = record.outcome else { panic!("it was measured") };
        assert_eq!(failure.step, "mkfs");
        assert!(failure.error.starts_with("not done after 1h"), "{}", failure.error);
        assert_eq!(failure.cleanup_errors, ["a mount"]);
    }
}
