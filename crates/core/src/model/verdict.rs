//! What was decided about one metric of one contender against the reference.

use serde::{Deserialize, Serialize};

use super::{Better, Unit};

/// The five verdicts and void. "Faster" says the contender is better than the reference, whatever
/// the metric: less time, more operations a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Better, by more than the margin.
    Faster,
    /// Worse, by more than the margin.
    Slower,
    /// Better, and by less than the margin.
    TriviallyFaster,
    /// Worse, and by less than the margin.
    TriviallySlower,
    /// Better; whether by more than the margin is open.
    FasterSizeOpen,
    /// Worse; whether by more than the margin is open.
    SlowerSizeOpen,
    /// Any difference is smaller than the margin, and none was found.
    Equivalent,
    /// The data allow no statement.
    Undecided,
    /// The measurement is not one of the file system.
    Void,
}

impl Verdict {
    /// Every one.
    pub const ALL: [Verdict; 9] = [
        Verdict::Faster,
        Verdict::Slower,
        Verdict::TriviallyFaster,
        Verdict::TriviallySlower,
        Verdict::FasterSizeOpen,
        Verdict::SlowerSizeOpen,
        Verdict::Equivalent,
        Verdict::Undecided,
        Verdict::Void,
    ];

    /// Nothing further would change this verdict: no more trials are spent on it.
    pub fn is_settled(self) -> bool {
        !matches!(self, Verdict::FasterSizeOpen | Verdict::SlowerSizeOpen | Verdict::Undecided)
    }

    /// Better than the reference, by whatever amount.
    pub fn is_better(self) -> bool {
        matches!(self, Verdict::Faster | Verdict::TriviallyFaster | Verdict::FasterSizeOpen)
    }

    /// Worse than the reference, by whatever amount.
    pub fn is_worse(self) -> bool {
        self.mirrored().is_better()
    }

    /// The same verdict seen from the other contender.
    pub fn mirrored(self) -> Verdict {
        match self {
            Verdict::Faster => Verdict::Slower,
            Verdict::Slower => Verdict::Faster,
            Verdict::TriviallyFaster => Verdict::TriviallySlower,
            Verdict::TriviallySlower => Verdict::TriviallyFaster,
            Verdict::FasterSizeOpen => Verdict::SlowerSizeOpen,
            Verdict::SlowerSizeOpen => Verdict::FasterSizeOpen,
            same => same,
        }
    }

    /// The verdict in a table's cell.
    pub fn label(self) -> &'static str {
        match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::TriviallyFaster => "trivially faster",
            Verdict::TriviallySlower => "trivially slower",
            Verdict::FasterSizeOpen => "faster, size open",
            Verdict::SlowerSizeOpen => "slower, size open",
            Verdict::Equivalent => "equivalent",
            Verdict::Undecided => "undecided",
            Verdict::Void => "void",
        }
    }
}

/// One contender against the reference in one metric of one workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The workload's name.
    pub workload: String,
    /// The metric's name.
    pub metric: String,
    /// The metric's unit.
    pub unit: Unit,
    /// Which direction of the metric is better; the ratio is of goodness all the same.
    pub better: Better,
    /// The contender's name.
    pub contender: String,
    /// The name of the contender it is compared with.
    pub reference: String,
    /// Goodness of the contender over the reference: above 1, the contender is better. `None`
    /// before the first round that holds both.
    pub ratio: Option<f64>,
    /// Lower end of the interval of `ratio`; 0 while the interval is unbounded.
    pub low: f64,
    /// Upper end of the interval of `ratio`; `None` while the interval is unbounded.
    pub high: Option<f64>,
    /// Rounds in which both were measured.
    pub rounds: u32,
    /// Of runs that are of no rounds: how many of the contender, and of the reference. `rounds` is
    /// the smaller number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<[u32; 2]>,
    /// The verdict.
    pub verdict: Verdict,
    /// Median of the contender's raw values, in `unit`.
    pub median: Option<f64>,
    /// Median of the reference's raw values over the same rounds, in `unit`.
    pub reference_median: Option<f64>,
    /// The intervals of successive rounds had no point in common: the effect moved meanwhile.
    pub moved: bool,
    /// So many comparisons share the error, this one counted: the interval holds with the declared
    /// confidence for all of them together.
    #[serde(default = "one")]
    pub sharing: u32,
    /// A count that never varied: each of the two has the same figure in every trial, so that the
    /// ratio is known and no luck is in it.
    #[serde(default, skip_serializing_if = "is_no")]
    pub exact: bool,
    /// The rounds that outlie, in order: the ratio is that of the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outlying: Vec<u32>,
    /// Where rounds resemble those before them: how many times as wide the interval is as that of
    /// independent rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub widened: Option<f64>,
    /// For an undecided comparison: the smallest ratio (above 1) that four of five such runs would
    /// have shown to differ from 1. `None` while the interval is unbounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visible: Option<f64>,
    /// Of an open comparison: so many rounds more would settle it in four of five such runs, if the
    /// ratio is the one estimated. `None` where no number of rounds would.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds_to_settle: Option<u32>,
    /// What these rounds of the two would take, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_to_settle: Option<f64>,
    /// Of an open comparison in a race: the contender that beats this one by more than the margin
    /// in all that is judged, so that it gets no more trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beaten_by: Option<String>,
}

impl Comparison {
    /// The round after which it is probably settled: see `rounds_to_settle`.
    pub fn settled_after(&self) -> Option<u32> {
        Some(self.rounds + self.rounds_to_settle?)
    }
}

/// The number of a comparison that shares the error with none.
fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_no(yes: &bool) -> bool {
    !yes
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// Every comparison is settled.
    Settled,
    /// The best contender for the intended use is decided.
    Decided,
    /// Every comparison is settled, or its contender out of the race.
    Race,
    /// The declared number of rounds is done.
    Rounds,
    /// The budget is spent.
    Budget,
    /// The user interrupted it.
    Interrupted,
    /// Too few contenders were left to compare.
    Failed,
}

impl Stop {
    /// The reason as the end of a sentence: "the run ended because ...".
    pub fn because(self) -> &'static str {
        match self {
            Stop::Settled => "every comparison was settled",
            Stop::Decided => "what is best for the use was decided",
            Stop::Race => "every comparison was settled or its contender beaten",
            Stop::Rounds => "the declared number of rounds was done",
            Stop::Budget => "the budget was spent",
            Stop::Interrupted => "it was interrupted",
            Stop::Failed => "fewer than two contenders could be measured",
        }
    }
}
