//! How a run is judged, as its plan declares it.

use serde::{Deserialize, Serialize};

use super::{Percent, Span};

/// Over which comparisons the error is shared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// Those of one workload.
    #[default]
    Workload,
    /// All of the run.
    Run,
}

/// How wide the interval of a comparison is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Intervals {
    /// By how the differences of the two scatter.
    #[default]
    Paired,
    /// By how all contenders scatter, when rounds and contenders are taken off.
    Pooled,
    /// By how the runs of each scatter, because they have no rounds: only for others' files, never
    /// for a run of our own.
    Unpaired,
}

impl Intervals {
    fn is_paired(&self) -> bool {
        *self == Intervals::Paired
    }
}

/// What is measured beside the contenders, to judge the measurement by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arm {
    /// The reference once more: a difference between the two shows that something else was
    /// measured.
    Duplicate,
    /// The fio jobs on the bed's bare device, without a file system: what the device can do.
    Raw,
}

/// How the run is judged, declared before its first trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Judgement {
    /// Differences smaller than this are trivial.
    pub margin: Percent,
    /// Chance that all intervals of a family hold the truth.
    pub confidence: Percent,
    /// Rounds at most. With `budget` alone the run is open-ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u32>,
    /// Time at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Span>,
    /// The contender the others are compared with; the first where none is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// Over which comparisons the error is shared.
    pub family: Family,
    /// How wide the intervals are.
    #[serde(skip_serializing_if = "Intervals::is_paired")]
    pub interval: Intervals,
    /// A contender that some other beats by more than the margin gets no more trials.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub race: bool,
    /// Each round holds all workloads and contenders until every comparison and claim is settled:
    /// figures that are weighed together have to be measured together.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub whole: bool,
    /// What is measured beside the contenders.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arms: Vec<Arm>,
}

/// Beyond it a run has been extended often enough: few rounds say nothing there.
const EXTENDED_MOST: f64 = 0.999;

impl Judgement {
    /// Rounds at most where the plan names neither rounds nor a budget.
    pub const DEFAULT_ROUNDS: u32 = 12;

    /// The declared number of rounds; `None` where the run is open-ended.
    pub fn rounds(&self) -> Option<u32> {
        match (self.rounds, self.budget) {
            (None, None) => Some(Self::DEFAULT_ROUNDS),
            (rounds, _) => rounds,
        }
    }

    /// Declares more rounds, or more time, for a run that was begun. An error is the end of a
    /// sentence; the cost, if any, a whole one.
    ///
    /// More rounds are another look at the same data that the declared rule did not know of: half
    /// of the error is left for it. More time is no further look.
    pub fn extend(
        &mut self,
        rounds: Option<u32>,
        budget: Option<Span>,
    ) -> Result<Option<String>, String> {
        let Some(declared) = self.rounds() else {
            if rounds.is_some() {
                return Err("is open-ended: give it a longer --budget".into());
            }
            self.budget = budget.or(self.budget);
            return Ok(None);
        };
        let rounds = rounds.unwrap_or(declared);
        if rounds < declared {
            return Err(format!("was declared with {declared} rounds: give it more"));
        }
        let confidence = match rounds == declared {
            true => self.confidence,
            false => Percent(f64::midpoint(1.0, self.confidence.0)),
        };
        if rounds > declared && confidence.0 > EXTENDED_MOST {
            return Err(format!("is judged at {} already: begin another", self.confidence));
        }
        // Where there was no budget the run is still capped by its rounds.
        self.rounds = Some(rounds);
        self.budget = budget.or(self.budget);
        if rounds == declared {
            return Ok(None);
        }
        self.confidence = confidence;
        Ok(Some(format!(
            "rounds raised from {declared} to {rounds} after a look: half of the error is left, \
             confidence {}",
            self.confidence
        )))
    }
}

impl Default for Judgement {
    fn default() -> Self {
        Judgement {
            margin: Percent(0.05),
            confidence: Percent(0.95),
            rounds: None,
            budget: None,
            reference: None,
            family: Family::Workload,
            interval: Intervals::Paired,
            race: false,
            whole: false,
            arms: Vec::new(),
        }
    }
}
