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
mod found;
mod queue;
mod reach;
mod summary;
mod terms;

use crate::model::{Finding, Table, Test};

use cells::Cells;

/// Everything the audits notice in `table`, test by test, then what concerns all of it.
pub fn table_findings(table: &Table) -> Vec<Finding> {
    let mut findings = Vec::new();
    for test in &table.tests {
        findings.extend(agree::findings(test));
        findings.extend(queue::findings(test, &table.machine));
        findings.extend(summary::findings(test));
        findings.extend(terms::of_test(test, &table.machine));
    }
    findings.extend(terms::of_table(table));
    findings.extend(table.claims.iter().filter_map(|claim| claim::finding(claim, &table.tests)));
    findings
}

/// What can't be audited for want of something that the table does not say; one sentence each.
pub fn table_lacking(table: &Table) -> Vec<String> {
    let tests = || table.tests.iter();
    let mut lacking = Vec::new();
    let machine = &table.machine;
    let buffered = |test: &Test| test.job.reads() && test.job.direct == Some(false);
    if machine.memory.is_none() && tests().any(buffered) {
        lacking.push("A6, reads from cache: the machine's memory is not stated (--memory)".into());
    }
    let is_rated =
        |test: &Test| test.rows.iter().any(|row| Cells { test, row }.total_iops().is_some());
    let specified = machine.device_iops.is_some() || machine.device_bandwidth.is_some();
    if !specified && tests().any(is_rated) {
        let options = "--device-iops, --device-bandwidth";
        lacking.push(format!("A8, the device's limits: they are not stated ({options})"));
    }
    let no_block = |test: &Test| is_rated(test) && test.job.block_bytes.is_none();
    lacking.extend(without("A1, units: no single block size is known", table, no_block));
    let no_queue = |test: &Test| is_rated(test) && queue::in_flight(&test.job).is_none();
    lacking.extend(without("A2, the queue: jobs or depth are not known", table, no_queue));
    lacking
}

fn without(what: &str, table: &Table, lacks: impl Fn(&Test) -> bool) -> Option<String> {
    let names: Vec<&str> =
        table.tests.iter().filter(|test| lacks(test)).map(|test| test.name.as_str()).collect();
    (!names.is_empty()).then(|| format!("{what} ({})", names.join(", ")))
}
