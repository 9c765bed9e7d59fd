//! Runs of any verdicts, for tests.

use super::Report;
use crate::model::claim::{Answer, Answered, Claim};
use crate::model::{
    Across, Better, Change, Comparison, Measured, OtherTerms, Percent, Plan, ReferenceChange, Run,
    Unit, Verdict,
};

/// A plan of so many contenders, `c0` the reference, and tests, and its comparisons by verdict.
pub fn grid(verdicts: &[Vec<(Verdict, f64)>]) -> (Plan, Run, Vec<Comparison>) {
    let contenders = verdicts[0].len();
    let mut text: String =
        (0..=contenders).map(|it| format!("[[contender]]\nname = \"c{it}\"\n")).collect();
    for test in 0..verdicts.len() {
        text += &format!("[[workload]]\nname = \"t{test}\"\ncommand = \"x\"\n");
    }
    let mut comparisons = Vec::new();
    for (test, row) in verdicts.iter().enumerate() {
        for (place, (verdict, ratio)) in row.iter().enumerate() {
            let contender = format!("c{}", place + 1);
            comparisons.push(comparison(&format!("t{test}"), &contender, *verdict, *ratio));
        }
    }
    (Plan::parse(&text).unwrap(), run(), comparisons)
}

pub fn comparison(workload: &str, name: &str, verdict: Verdict, ratio: f64) -> Comparison {
    Comparison {
        workload: workload.into(),
        metric: "wall_time".into(),
        unit: Unit::Seconds,
        better: Better::Lower,
        contender: name.into(),
        reference: "c0".into(),
        ratio: Some(ratio),
        low: ratio * 0.9,
        high: Some(ratio * 1.1),
        rounds: 6,
        runs: None,
        verdict,
        median: Some(1.0),
        reference_median: Some(1.0),
        moved: false,
        sharing: 1,
        exact: false,
        outlying: Vec::new(),
        widened: None,
        visible: None,
        rounds_to_settle: (!verdict.is_settled()).then_some(20),
        seconds_to_settle: None,
        beaten_by: None,
    }
}

/// Of `b`, at a metric of less that is better, whose own figure moved as the ratio did.
pub fn change(verdict: Verdict, ratio: f64) -> Change {
    let compared = comparison("w", "b", verdict, ratio);
    Change { reference: "a".into(), medians: Some([3.06, 3.06 / ratio]), ..(&compared).into() }
}

/// Two runs with these changes beside `a`, which is so many times as good as before.
pub fn apart(changes: Vec<Change>, reference: f64) -> Across {
    let Change { workload, metric, unit, better, .. } = changes[0].clone();
    let reference = ReferenceChange {
        workload,
        metric,
        unit,
        better,
        reference: "a".into(),
        baseline: 1.0,
        run: 1.0 / reference,
        ratio: Some(reference),
    };
    Across {
        baseline: "before".into(),
        run: "after".into(),
        measured: Measured::Apart,
        margin: Percent(0.05),
        regression: Percent(0.1),
        confidence: Percent(0.95),
        gate: None,
        notes: Vec::new(),
        terms: OtherTerms::default(),
        differences: Vec::new(),
        not_measured: Vec::new(),
        left_out: Vec::new(),
        references: vec![reference],
        claims: Vec::new(),
        changes,
    }
}

pub fn report<'a>((plan, run, comparisons): &'a (Plan, Run, Vec<Comparison>)) -> Report<'a> {
    Report {
        run,
        plan,
        records: &[],
        comparisons,
        causes: &[],
        findings: &[],
        published: &[],
        claims: &[],
        is_packed: false,
    }
}

/// A run without details.
pub fn run() -> Run {
    let text = r#"{"schema":1,"program_version":"1","name":"r","command":[],"started":"","seed":1,
        "place":"sim","host":{},"tools":{}}"#;
    serde_json::from_str(text).unwrap()
}

/// A claim with an answer that more rounds would not change.
pub fn answered(answer: Answer, text: &str) -> Answered {
    Answered {
        claim: Claim { text: text.into(), at_least: Some(2.0), ..Claim::default() },
        answer,
        open: false,
        claimed: [None, None],
        measured: Some([1.0, 0.00123, 234.5]),
        why: String::new(),
        rounds_to_settle: None,
    }
}
