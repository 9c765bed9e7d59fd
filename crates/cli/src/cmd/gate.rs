//! What makes a gate of `compare`: which changes shut it, and with what exit status.

use clap::ValueEnum;
use fsverdict_core::model::claim::Answer;
use fsverdict_core::model::{Across, Change, ClaimChange, Gate, ReferenceChange, Verdict};
use fsverdict_core::render;

use crate::exit;

/// What shuts the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Worse by more than the margin.
    Slower,
    /// Worse at all.
    Any,
    /// A contender failed, or has too few rounds.
    Failed,
    /// What the baseline judged has no comparison now, or is void.
    Lost,
    /// A contender is on other terms than before: it has no journal, or is spared flushes.
    Terms,
    /// A claim of the baseline's plan is refuted, and was not before.
    Claim,
    /// The reference itself is worse by more than the margin. Perhaps only the machine was slower.
    Reference,
    /// A regression of --regression is not ruled out.
    Possible,
    /// A verdict is open or void, or there is none; a claim has no answer any more.
    Undecided,
}

impl FailOn {
    fn name(self) -> String {
        self.to_possible_value().map_or(String::new(), |it| it.get_name().into())
    }
}

/// What the gate makes of a comparison. `on`: what shuts it.
pub fn gate(across: &Across, on: &[FailOn]) -> Gate {
    let is_on = |what: FailOn| on.contains(&what);
    let (mut fails, mut has_more_than_void) = (Vec::new(), false);
    for change in &across.changes {
        if let Some(why) = why(across, change, on) {
            has_more_than_void |= change.verdict != Verdict::Void;
            fails.push(why);
        }
    }
    let void_ones = fails.len();
    let left_out = across.left_out.iter();
    let its = left_out.filter(|it| is_on(FailOn::Undecided) || it.lost && is_on(FailOn::Lost));
    fails.extend(its.map(ToString::to_string));
    if let Some(terms) = render::on_other_terms(across).filter(|_| is_on(FailOn::Terms)) {
        fails.push(terms);
    }
    if is_on(FailOn::Reference) {
        let worse = across.references_moved().filter(|it| is_worse(it));
        fails.extend(worse.map(render::reference_moved));
    }
    let is_shut_by = |it: &&ClaimChange| {
        it.refuted && is_on(FailOn::Claim) || it.unanswered && is_on(FailOn::Undecided)
    };
    let claims = || across.claims.iter().filter(is_shut_by);
    has_more_than_void |= fails.len() > void_ones;
    has_more_than_void |= claims().any(|it| it.run != Answer::MeasuredSomethingElse);
    fails.extend(claims().map(render::answered_anew));
    let failed = across.not_measured.iter().filter(|_| is_on(FailOn::Failed));
    let failed: Vec<String> = failed.map(ToString::to_string).collect();
    let status = match (failed.is_empty(), has_more_than_void) {
        (false, _) => exit::FAILED,
        (true, true) => exit::WORSE,
        (true, false) if across.changes.iter().all(|it| it.verdict == Verdict::Void) => exit::VOID,
        (true, false) if !fails.is_empty() => exit::WORSE,
        (true, false) => exit::DONE,
    };
    fails.extend(failed);
    Gate { status, on: on.iter().map(|it| it.name()).collect(), fails }
}

/// Why a change shuts the gate, if it does.
fn why(across: &Across, change: &Change, on: &[FailOn]) -> Option<String> {
    use FailOn::{Any, Lost, Possible, Slower, Undecided};
    let is_on = |its: &[FailOn]| its.iter().any(|it| on.contains(it));
    let is_shut = match change.verdict {
        Verdict::Slower => is_on(&[Slower, Any]),
        Verdict::TriviallySlower => is_on(&[Any]),
        Verdict::SlowerSizeOpen => is_on(&[Any, Undecided]),
        Verdict::Undecided => is_on(&[Undecided]),
        Verdict::Void => is_on(&[Undecided, Possible]) || change.is_lost() && is_on(&[Lost]),
        _ => false,
    };
    let is_possible = is_on(&[Possible]) && !change.excludes(across.regression);
    match is_shut {
        true => Some(render::failing(across, change)),
        false => is_possible.then(|| render::perhaps(across, change)),
    }
}

fn is_worse(reference: &ReferenceChange) -> bool {
    reference.ratio.is_some_and(|ratio| ratio < 1.0)
}

#[cfg(test)]
mod tests {
    use fsverdict_core::model::{Better, Measured, NotCompared, NotMeasured, Percent, Unit};

    use super::*;

    fn change(verdict: Verdict, low: f64, high: f64) -> Change {
        Change {
            workload: "w".into(),
            metric: "wall_time".into(),
            unit: Unit::Seconds,
            better: Better::Lower,
            contender: "b".into(),
            reference: "a".into(),
            medians: None,
            baseline_ratio: None,
            run_ratio: None,
            ratio: Some(f64::midpoint(low, high)),
            low,
            high: Some(high),
            is_one_sided: false,
            baseline_rounds: 8,
            rounds: 8,
            sharing: 1,
            verdict,
            voided: None,
            missed: Some(0.9),
            rounds_needed: None,
            moved: false,
        }
    }

    fn of(changes: Vec<Change>) -> Across {
        Across {
            baseline: "before".into(),
            run: "after".into(),
            measured: Measured::Apart,
            margin: Percent(0.05),
            regression: Percent(0.1),
            confidence: Percent(0.95),
            gate: None,
            notes: Vec::new(),
            terms: Default::default(),
            differences: Vec::new(),
            not_measured: Vec::new(),
            left_out: Vec::new(),
            references: Vec::new(),
            claims: Vec::new(),
            changes,
        }
    }

    fn status(across: &Across, on: &[FailOn]) -> (u8, usize) {
        let gate = gate(across, on);
        (gate.status, gate.fails.len())
    }

    #[test]
    fn a_regression_that_is_ruled_out_is_no_possible_one() {
        use FailOn::{Possible, Slower, Undecided};
        let excluded = of(vec![change(Verdict::Undecided, 0.993, 1.057)]);
        assert_eq!(status(&excluded, &[Slower, Possible]), (exit::DONE, 0));
        assert_eq!(status(&excluded, &[Undecided]), (exit::WORSE, 1));
        let blind = of(vec![change(Verdict::Undecided, 0.85, 1.2)]);
        assert_eq!(status(&blind, &[Slower]), (exit::DONE, 0));
        let shut = gate(&blind, &[Slower, Possible]);
        let why = "w, wall_time: b may be worse by 10% or more (0.850 to 1.200)";
        assert_eq!((shut.status, shut.fails), (exit::WORSE, vec![why.to_string()]));
        // A slower figure is reported once.
        let slower = of(vec![change(Verdict::Slower, 0.7, 0.8)]);
        assert_eq!(status(&slower, &[Slower, Possible]), (exit::WORSE, 1));
    }

    #[test]
    fn what_is_lost_shuts_the_gate_and_what_is_new_does_not() {
        use FailOn::{Failed, Lost, Slower};
        let mut across = of(vec![change(Verdict::Equivalent, 0.99, 1.01)]);
        across.left_out = [true, false]
            .map(|lost| NotCompared {
                workload: "v".into(),
                contender: None,
                metric: None,
                figures: 1,
                lost,
                why: "it is gone".into(),
            })
            .to_vec();
        assert_eq!(status(&across, &[Slower, Lost]), (exit::WORSE, 1));
        assert_eq!(status(&across, &[Slower]), (exit::DONE, 0));
        across.not_measured = vec![NotMeasured {
            workload: "w".into(),
            contender: "b".into(),
            why: "8 of its 8 trials failed".into(),
        }];
        assert_eq!(status(&across, &[Slower, Lost, Failed]), (exit::FAILED, 2));
    }

    #[test]
    fn all_void_has_a_status_of_its_own() {
        let void = of(vec![change(Verdict::Void, 0.9, 1.1)]);
        assert_eq!(status(&void, &[FailOn::Slower]).0, exit::VOID);
        assert_eq!(status(&void, &[FailOn::Undecided]), (exit::VOID, 1));
        let some = of([void.changes, vec![change(Verdict::Equivalent, 0.99, 1.01)]].concat());
        assert_eq!(status(&some, &[FailOn::Slower]), (exit::DONE, 0));
        assert_eq!(status(&some, &[FailOn::Undecided]), (exit::WORSE, 1));
    }
}
