//! Several runs side by side.

use serde::Serialize;

use super::{Better, Comparison, Unit, Verdict};

/// One of the terms on which runs were measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Term {
    /// What: `kernel`, `xfs: mkfs`.
    pub what: String,
    /// What it is in each run; `None` where there is no such thing.
    pub values: Vec<Option<String>>,
    /// It is the same in all runs that can have it: a contender's settings in those that hold it.
    pub equal: bool,
}

/// What several runs say, each of its own contenders against its own reference.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Joined {
    /// What the runs are called here: each name once.
    pub names: Vec<String>,
    /// Machine, tools, version and plan.
    pub terms: Vec<Term>,
    /// Those that make even a ratio mean something else in another run.
    pub unlike: Vec<Term>,
    /// As far as is known all are of one machine, and its device.
    pub one_machine: bool,
    /// The comparisons, in the order of the first plan that holds each.
    pub verdicts: Vec<Abreast>,
}

/// One comparison in each of the runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Abreast {
    /// The workload's name.
    pub workload: String,
    /// The metric's name.
    pub metric: String,
    /// The metric's unit, in the first run that holds it.
    pub unit: Unit,
    /// Which direction of the metric is better; every ratio is of goodness all the same.
    pub better: Better,
    /// The contender.
    pub contender: String,
    /// What it was compared with, in each run that has the comparison.
    pub reference: String,
    /// What of the work, and of the settings of the two, is not the same in these runs:
    /// `unpack: command`.
    pub unlike: Vec<String>,
    /// What each run says of it; `None` where it says nothing.
    pub runs: Vec<Option<Comparison>>,
    /// What they say together.
    pub accord: Accord,
}

/// Whether the verdicts of several runs go together. Void ones have no say, nor have those that are
/// none yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accord {
    /// Fewer than two say anything.
    Alone,
    /// All say the same.
    Same,
    /// Not all say the same, but none says better where another says worse.
    Mixed,
    /// One says better, another worse.
    Opposed,
}

impl Accord {
    /// Of these verdicts.
    pub fn of(verdicts: impl IntoIterator<Item = Verdict>) -> Accord {
        let says = |it: &Verdict| ![Verdict::Void, Verdict::Undecided].contains(it);
        let said: Vec<Verdict> = verdicts.into_iter().filter(says).collect();
        let better = said.iter().any(|it| it.is_better());
        let worse = said.iter().any(|it| it.is_worse());
        match said.as_slice() {
            [] | [_] => Accord::Alone,
            [first, others @ ..] if others.iter().all(|it| it == first) => Accord::Same,
            _ if better && worse => Accord::Opposed,
            _ => Accord::Mixed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_agree_or_oppose_each_other() {
        use Verdict::{Equivalent, Faster, Slower, SlowerSizeOpen, Undecided, Void};
        for (verdicts, accord) in [
            (vec![], Accord::Alone),
            (vec![Faster, Void], Accord::Alone),
            (vec![Faster, Void, Faster], Accord::Same),
            (vec![Undecided, Undecided], Accord::Alone),
            (vec![Undecided, Faster], Accord::Alone),
            (vec![Undecided, Faster, Faster], Accord::Same),
            (vec![Faster, Undecided, Equivalent], Accord::Mixed),
            (vec![Faster, Undecided, SlowerSizeOpen], Accord::Opposed),
            (vec![Slower, SlowerSizeOpen], Accord::Mixed),
        ] {
            assert_eq!(Accord::of(verdicts.clone()), accord, "{verdicts:?}");
        }
    }
}
