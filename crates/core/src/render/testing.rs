//! Runs of any verdicts, for tests.

use super::Report;
use crate::model::claim::{Answer, Answered, Claim};
use crate::model::{Better, Comparison, Plan, Run, Unit, Verdict};

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

/// A run of which nothing is known.
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
