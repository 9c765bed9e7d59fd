//! What speaks against a published table: those audits of docs/audits.md, "Published figures", that
//! follow from what was printed.
//!
//! A printed figure stands for anything within one unit of its last digit
//! ([`Reach`](reach::Reach)), and a rule is broken only when nothing within reach of its figures
//! keeps it. So figures that were rounded or cut from true ones that agree are never found to
//! disagree.

mod agree;
mod cells;
mod claim;
mod conditions;
mod data;
mod found;
mod queue;
mod reach;
mod scope;
mod series;
mod spread;
mod summary;
mod volume;

use crate::model::{Finding, Table};

/// Everything the audits notice in `table`, test by test, then what concerns all of it.
pub fn table_findings(table: &Table) -> Vec<Finding> {
    let mut findings = Vec::new();
    for test in &table.tests {
        findings.extend(agree::findings(test));
        findings.extend(volume::findings(test));
        findings.extend(queue::findings(test, &table.machine));
        findings.extend(summary::findings(test));
        findings.extend(spread::findings(test));
        findings.extend(data::findings(test, &table.machine));
        findings.extend(conditions::of_test(test));
    }
    findings.extend(series::findings(&table.tests));
    findings.extend(conditions::of_table(table));
    findings.extend(table.claims.iter().filter_map(|claim| claim::finding(claim, &table.tests)));
    findings
}

/// What can't be audited for want of something that the table does not say; one sentence each.
pub fn table_missing(table: &Table) -> Vec<String> {
    scope::missing(table)
}
