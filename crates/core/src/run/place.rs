//! What surrounds the trials: the bed they run on and the settings they run under.

use super::{HostError, host};
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

    /// Puts back every setting that [`Place::apply`] changed.
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
/// they can't be, the failure's `cleanup_errors` say so and the run must not go on, for the next
/// contender would be measured under settings that are not its own.
pub fn settled_trial(place: &mut dyn Place, trial: &Trial) -> Record {
    let failed = |step: &str, error: HostError| {
        let overdue = error.downcast_ref::<Overdue>();
        let step = overdue.map_or(step, |overdue| &overdue.step).to_string();
        let cleanup_errors = overdue.map(|overdue| overdue.left.clone()).unwrap_or_default();
        host::failed(trial, Failure { step, error: error.to_string(), cleanup_errors })
    };
    let mut record = match place.apply(&trial.contender, &trial.bed) {
        Ok(()) => place.run_trial(trial).unwrap_or_else(|error| failed("trial", error)),
        Err(error) => failed("settings", error),
    };
    if let Err(error) = place.restore() {
        let error = error.to_string();
        let mut failure = match record.outcome.clone() {
            Outcome::Failed(failure) => failure,
            Outcome::Measured => Failure {
                step: "restore settings".into(),
                error: error.clone(),
                cleanup_errors: Vec::new(),
            },
        };
        failure.cleanup_errors.push(error);
        host::fail(&mut record, failure);
    }
    record
}
