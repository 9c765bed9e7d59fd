//! The run as one JSON document.

use serde::Serialize;

use super::Report;
use super::text::visible;
use crate::model::claim::Answered;
use crate::model::{Beside, Cause, Comparison, Finding, Plan, Record, Run, SCHEMA};

#[derive(Serialize)]
struct Document<'a> {
    run: &'a Run,
    plan: &'a Plan,
    trials: &'a [Record],
    findings: &'a [Finding],
    verdicts: &'a [Comparison],
    #[serde(skip_serializing_if = "<[Cause]>::is_empty")]
    causes: &'a [Cause],
    #[serde(skip_serializing_if = "<[Beside]>::is_empty")]
    published: &'a [Beside],
    #[serde(skip_serializing_if = "<[Answered]>::is_empty")]
    claims: &'a [Answered],
}

/// `schema`, `run`, `plan`, `trials[]`, `findings[]`, `verdicts[]`, and where there are any
/// `causes[]`, `published[]` and `claims[]`; ends with a line break.
pub fn document(report: &Report) -> String {
    let Report { run, plan, records: trials, comparisons: verdicts, .. } = *report;
    let Report { causes, findings, published, claims, .. } = *report;
    stamped(&Document { run, plan, trials, findings, verdicts, causes, published, claims })
}

#[derive(Serialize)]
struct Stamped<'a, T> {
    schema: u32,
    #[serde(flatten)]
    document: &'a T,
}

/// A document of ours, with the schema that every one of them carries; ends with a line break.
pub(super) fn stamped<T: Serialize>(document: &T) -> String {
    // Every type that is given serialises: there are no maps with keys other than text.
    let text = serde_json::to_string_pretty(&Stamped { schema: SCHEMA, document });
    visible(&text.unwrap_or_default()).into_owned() + "\n"
}
