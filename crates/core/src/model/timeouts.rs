//! How long a trial and each of its steps may take.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{Span, near::meant};

const TEN_MINUTES: Option<Duration> = Some(Duration::from_secs(600));
const HOUR: Option<Duration> = Some(Duration::from_secs(3600));

/// A trial's limit where no budget says how long a run is to take, and where one does, at least.
const TRIAL: Duration = Duration::from_secs(2 * 3600);
const TRIAL_MIN: Duration = Duration::from_secs(10 * 60);

/// A guest reports every ten seconds: one that has reported and is silent for this long hangs. One
/// that never reports may have a kernel without a serial console: it has the limit of its boot.
const SILENCE: Duration = Duration::from_secs(180);

/// What can be limited, with its default; without one the trial's limit is its own. A step that
/// writes out others' dirty data gets an hour.
const STEPS: [(&str, Option<Duration>); 23] = [
    ("trial", None),
    ("boot", TEN_MINUTES),
    ("silence", Some(SILENCE)),
    ("partition", TEN_MINUTES),
    ("layers", HOUR),
    ("mkfs", HOUR),
    ("make_directory", TEN_MINUTES),
    ("mount", TEN_MINUTES),
    ("link", TEN_MINUTES),
    ("setup", None),
    ("fill", None),
    ("sync", HOUR),
    ("unmount", HOUR),
    ("drop_caches", TEN_MINUTES),
    ("limit", TEN_MINUTES),
    ("prepare", None),
    ("settle", TEN_MINUTES),
    ("work", None),
    ("check", None),
    ("figures", TEN_MINUTES),
    ("cleanup", None),
    ("remove_partition", TEN_MINUTES),
    ("remove_directory", HOUR),
];

/// What may take how long, where it is not the default: `trial`, which is all of it, and steps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timeouts(BTreeMap<String, Span>);

impl Timeouts {
    /// Nothing differs from the defaults.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of a trial may take that long.
    pub fn set_trial(&mut self, limit: Span) {
        self.set("trial", limit);
    }

    /// That step may take that long.
    pub fn set(&mut self, step: &str, limit: Span) {
        self.0.insert(step.into(), limit);
    }

    /// What is wrong with them.
    pub fn check(&self) -> Result<(), String> {
        let known = || STEPS.iter().map(|(step, _)| *step);
        for (step, limit) in &self.0 {
            if !known().any(|it| it == step) {
                return Err(format!("timeout {step:?}: no such step; {}", meant(step, known())));
            }
            if limit.0.is_zero() {
                return Err(format!("timeout {step} = \"{limit}\" leaves no time"));
            }
        }
        Ok(())
    }

    /// With the trial's limit, where none is named: a trial takes no longer than the whole run may,
    /// unless that is a matter of seconds.
    pub fn within(&self, budget: Option<Span>) -> Timeouts {
        let limit = budget.map_or(TRIAL, |budget| budget.0.max(TRIAL_MIN));
        let mut all = self.clone();
        all.0.entry("trial".into()).or_insert(Span(limit));
        all
    }

    /// Those of one of `times` trials that take turns: its clock runs while the others are made,
    /// and have theirs.
    pub fn in_turns(&self, times: u32) -> Timeouts {
        let longer = |limit: Span| Span(limit.0.saturating_mul(times));
        let mut all = self.clone();
        all.0.insert("trial".into(), longer(self.of_trial()));
        if let Some(limit) = self.of_step("work") {
            all.0.insert("work".into(), longer(limit));
        }
        all
    }

    /// How long a guest may say nothing.
    pub fn silence(&self) -> Duration {
        self.of_step("silence").map_or(SILENCE, |limit| limit.0)
    }

    fn of_trial(&self) -> Span {
        self.0.get("trial").copied().unwrap_or(Span(TRIAL))
    }

    fn of_step(&self, key: &str) -> Option<Span> {
        let default = STEPS.iter().find(|(step, _)| *step == key).and_then(|(_, limit)| *limit);
        self.0.get(key).copied().or(default.map(Span))
    }

    /// Whether a trial that has gone on for `in_trial`, and for `in_step` at this step, may go on.
    pub fn check_time(
        &self,
        step: &str,
        in_step: Duration,
        in_trial: Duration,
    ) -> Result<(), Overdue> {
        let key = key(step);
        let of_step = self.of_step(&key).filter(|limit| in_step >= limit.0);
        let of_trial = Some(self.of_trial()).filter(|limit| in_trial >= limit.0);
        let (what, limit, option) = match (of_step, of_trial) {
            (Some(limit), _) => ("", limit, format!("--step-timeout {key}=TIME")),
            (None, Some(limit)) => ("the trial was ", limit, "--trial-timeout TIME".into()),
            (None, None) => return Ok(()),
        };
        let step = step.to_string();
        Err(Overdue { step, what, limit, option, left: Vec::new() })
    }
}

/// As a list: `trial 2h, partition 10m, ...`.
impl fmt::Display for Timeouts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "trial {}", self.of_trial())?;
        let steps = STEPS.iter().filter_map(|(step, _)| Some((step, self.of_step(step)?)));
        steps
            .filter(|(step, _)| **step != "trial")
            .try_for_each(|(step, limit)| write!(f, ", {step} {limit}"))
    }
}

/// The key of a step: `work: create` is `work`, `drop caches` is `drop_caches`.
fn key(step: &str) -> String {
    step.split(':').next().unwrap_or_default().replace(' ', "_")
}

/// A trial that took too long, and was ended.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{what}not done after {limit}, and ended with all that it had started: {option} allows more"
)]
pub struct Overdue {
    /// The step it was at.
    pub step: String,
    what: &'static str,
    limit: Span,
    option: String,
    /// What could not be ended or taken back.
    pub left: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_takes_turns_has_the_time_of_all() {
        let timeouts = timeouts(&[("work", "1m"), ("mkfs", "5m")]).within(None).in_turns(3);
        let limit = |step: &str| timeouts.of_step(step).unwrap().to_string();
        assert_eq!(timeouts.of_trial().to_string(), "6h");
        assert_eq!((limit("work"), limit("mkfs")), ("3m".into(), "5m".into()));
        let unnamed = Timeouts::default().in_turns(2);
        assert_eq!((unnamed.of_trial().to_string(), unnamed.of_step("work")), ("4h".into(), None));
    }

    const SECOND: Duration = Duration::from_secs(1);
    const MINUTE: Duration = Duration::from_secs(60);
    const HOUR: Duration = Duration::from_secs(3600);

    fn timeouts(of: &[(&str, &str)]) -> Timeouts {
        let mut timeouts = Timeouts::default();
        of.iter().for_each(|(step, limit)| timeouts.set(step, limit.parse().unwrap()));
        timeouts
    }

    #[test]
    fn each_step_has_a_limit_of_its_own_or_the_trials() {
        let said = |of: &[_], step, in_step: Duration, in_trial: Duration| {
            let checked = timeouts(of).check_time(step, in_step, in_trial);
            checked.err().map(|overdue| overdue.to_string())
        };
        assert_eq!(said(&[], "work", HOUR, HOUR), None);
        let trial = "the trial was not done after 2h, and ended with all that it had started: \
                     --trial-timeout TIME allows more";
        assert_eq!(said(&[], "work", HOUR, 2 * HOUR).as_deref(), Some(trial));
        assert_eq!(said(&[("trial", "3h")], "work", HOUR, 2 * HOUR), None);
        let step = "not done after 10m, and ended with all that it had started: --step-timeout \
                    drop_caches=TIME allows more";
        assert_eq!(said(&[], "drop caches", 10 * MINUTE, HOUR).as_deref(), Some(step));
        let work = said(&[("work", "1s")], "work: create", SECOND, SECOND).unwrap();
        assert!(work.starts_with("not done after 1s") && work.contains(" work=TIME"), "{work}");
        assert_eq!(timeouts(&[]).silence(), 3 * MINUTE);
        assert_eq!(timeouts(&[("silence", "1h")]).silence(), HOUR);
        assert_eq!(said(&[("work", "2s")], "work: create", SECOND, HOUR), None);
    }

    #[test]
    fn a_trial_takes_no_longer_than_the_run_may() {
        let within = |of: &[_], budget: &str| {
            timeouts(of).within(Some(budget.parse().unwrap())).of_trial().to_string()
        };
        assert_eq!(timeouts(&[]).within(None).of_trial().to_string(), "2h");
        assert_eq!(within(&[], "5s"), "10m");
        assert_eq!(within(&[], "5h"), "5h");
        assert_eq!(within(&[("trial", "1s")], "5h"), "1s");
    }

    #[test]
    fn what_is_no_step_is_said() {
        let wrong = |step: &str, limit: &str| timeouts(&[(step, limit)]).check().unwrap_err();
        assert!(wrong("mkfz", "1s").contains("did you mean mkfs?"));
        assert!(wrong("work", "0s").contains("leaves no time"));
        timeouts(&[("trial", "1s"), ("drop_caches", "1s")]).check().unwrap();
    }
}
