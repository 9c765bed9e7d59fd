//! What is found in a published table.

use crate::model::{Audit, Finding, Severity, Test};

/// A finding of one test, and of one of its rows where `contender` says which.
pub fn found(
    test: &Test,
    contender: &str,
    (audit, severity): (Audit, Severity),
    evidence: String,
    advice: &str,
) -> Finding {
    Finding {
        audit,
        severity,
        workload: Some(test.name.clone()),
        contender: (!contender.is_empty()).then(|| contender.to_string()),
        evidence,
        advice: advice.into(),
    }
}
