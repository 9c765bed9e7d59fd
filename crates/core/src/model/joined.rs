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
    /// All say better, or all worse, and two intervals have no point in common: not by as much.
    OtherSize,
    /// Not all say the same, but none says better where another says worse.
    Mixed,
    /// One says better, another worse.
    Opposed,
}

impl Accord {
    /// Of these comparisons.
    pub fn of<'a>(comparisons: impl IntoIterator<Item = &'a Comparison>) -> Accord {
        let says = |it: &&Comparison| ![Verdict::Void, Verdict::Undecided].contains(&it.verdict);
        let said: Vec<&Comparison> = comparisons.into_iter().filter(says).collect();
        let better = said.iter().any(|it| it.verdict.is_better());
        let worse = said.iter().any(|it| it.verdict.is_worse());
        let low = said.iter().map(|it| it.low).fold(0.0, f64::max);
        let high = said.iter().filter_map(|it| it.high).fold(f64::INFINITY, f64::min);
        match said.as_slice() {
            [] | [_] => Accord::Alone,
            [first, others @ ..] if others.iter().all(|it| it.verdict == first.verdict) => {
                match low > high && (better || worse) {
                    true => Accord::OtherSize,
                    false => Accord::Same,
                }
            }
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
            let its = verdicts.iter().map(|it| said(*it, [0.9, 1.1])).collect::<Vec<_>>();
            assert_eq!(Accord::of(&its), accord, "{verdicts:?}");
        }
    }

    #[test]
    fn the_same_way_by_another_size_is_not_the_same() {
        let of = |verdict, all: &[[f64; 2]]| {
            let its = all.iter().map(|it| said(verdict, *it)).collect::<Vec<_>>();
            Accord::of(&its)
        };
        let apart = [[1.356, 1.656], [1.107, 1.311]];
        assert_eq!(of(Verdict::Faster, &apart), Accord::OtherSize);
        assert_eq!(of(Verdict::Faster, &[[1.3, 1.656], [1.107, 1.311]]), Accord::Same);
        assert_eq!(of(Verdict::Undecided, &apart), Accord::Alone);
        let trifles = [[0.97, 0.98], [1.01, 1.02]];
        assert_eq!(of(Verdict::Equivalent, &trifles), Accord::Same, "none has a way");
    }

    fn said(verdict: Verdict, [low, high]: [f64; 2]) -> Comparison {
        let document = serde_json::json!({
            "workload": "w", "metric": "wall_time", "unit": Unit::Seconds,
            "better": Better::Lower, "contender": "b", "reference": "a", "ratio": null,
            "low": low, "high": high, "rounds": 6, "verdict": verdict, "median": null,
            "reference_median": null, "moved": false,
        });
        serde_json::from_value(document).unwrap()
    }
}
