//! The run as one JSON document.

use serde::Serialize;

use super::Report;
use crate::model::{Beside, Comparison, Finding, Plan, Record, Run, SCHEMA};

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    run: &'a Run,
    plan: &'a Plan,
    trials: &'a [Record],
    findings: &'a [Finding],
    verdicts: &'a [Comparison],
    #[serde(skip_serializing_if = "<[Beside]>::is_empty")]
    published: &'a [Beside],
}

/// `schema`, `run`, `plan`, `trials[]`, `findings[]` and `verdicts[]`; ends with a line break.
pub fn document(report: &Report) -> String {
    let Report { run, plan, records: trials, comparisons: verdicts, findings, published } = *report;
    let document = Document { schema: SCHEMA, run, plan, trials, findings, verdicts, published };
    // Every type in it serialises: there are no maps with keys other than text.
    serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
}
