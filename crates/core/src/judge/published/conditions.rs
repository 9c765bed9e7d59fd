//! What was measured at all, and on which terms: A9, A10, A18 and A19.

use std::collections::BTreeMap;

use super::cells::{Cell, Cells};
use super::found::found;
use super::reach::Reach;
use crate::judge::audit::{HARNESS_ADVICE, PROCESS_S, SYNC_ADVICE, durability_advice, spared_by};
use crate::judge::stopping::FIRST_LOOK;
use crate::model::{
    Audit, Finding, Given, Loses, Machine, Quantity, Severity, Statistic, Table, Test, Unit,
};

/// Mount options that every file system knows (mount(8), "filesystem-independent"), and that change
/// what is measured.
const GENERAL: [&str; 8] =
    ["noatime", "relatime", "strictatime", "nodiratime", "lazytime", "sync", "dirsync", "discard"];

/// What they find in one test.
pub fn of_test(test: &Test) -> Vec<Finding> {
    [not_durable(test), harness(test)].into_iter().flatten().collect()
}

/// What they find in all of them.
pub fn of_table(table: &Table) -> Vec<Finding> {
    let mut findings = one_run(table);
    findings.extend(unequal_durability(&table.machine));
    findings.extend(unequal_mounts(&table.machine));
    findings.extend(unequal_kernels(&table.machine));
    findings
}

/// A9: buffered writes that nothing brings to the device within the timed part.
fn not_durable(test: &Test) -> Option<Finding> {
    let job = &test.job;
    let unsynced = job.writes() && job.direct != Some(true) && job.synced == Some(false);
    let evidence = "what was written may still be in memory when the clock stops: no fsync, no \
                    final sync"
        .to_string();
    let kind = (Audit::A9, Severity::Warning);
    unsynced.then(|| found(test, "", kind, evidence, SYNC_ADVICE))
}

/// A10: a process or more for each operation.
fn harness(test: &Test) -> Option<Finding> {
    let seen = |(heading, processes): (&String, &u64)| {
        let operations = *test.operations.get(heading)?;
        let cells = Cells::of(test)
            .filter_map(|cells| cells.all().find(|cell| cell.column.heading == *heading));
        let times: Vec<f64> = cells
            .filter_map(|cell| taken(cell, operations))
            .map(|all| all / *processes as f64)
            .collect();
        let longest_s = times.iter().copied().reduce(f64::max)?;
        let shortest_s = times.iter().copied().reduce(f64::min)?;
        let is_harness = *processes >= operations && operations > 0 && longest_s < PROCESS_S;
        is_harness.then(|| {
            let [one, other] = [shortest_s, longest_s].map(|it| Unit::Seconds.format(it));
            let every = if one == other { one } else { format!("{one} to {other}") };
            let [processes, operations] =
                [*processes, operations].map(|it| Unit::Count.format(it as f64));
            format!(
                "{heading}: {processes} processes for {operations} operations, one every {every}"
            )
        })
    };
    let seen: Vec<String> = test.processes.iter().filter_map(seen).collect();
    let kind = (Audit::A10, Severity::Void);
    (!seen.is_empty()).then(|| found(test, "", kind, seen.join("; "), HARNESS_ADVICE))
}

/// The seconds that `operations` took, by a rate or a time.
fn taken(cell: Cell, operations: u64) -> Option<f64> {
    let Reach { low, high } = cell.reach();
    let middle = (low + high) / 2.0;
    match cell.column.quantity {
        Quantity::Time => Some(middle),
        Quantity::Rate | Quantity::Iops if middle > 0.0 => Some(operations as f64 / middle),
        _ => None,
    }
}

/// A18: no repetition, or none that could be seen. Said once where it holds for all tests.
fn one_run(table: &Table) -> Vec<Finding> {
    let mut tests_by_evidence: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for test in &table.tests {
        if let Some(evidence) = unrepeated(test) {
            tests_by_evidence.entry(evidence).or_default().push(&test.name);
        }
    }
    let finding = |evidence: &str, workload: Option<String>| Finding {
        audit: Audit::A18,
        severity: Severity::Warning,
        workload,
        contender: None,
        evidence: evidence.into(),
        advice: format!(
            "repeat it in interleaved rounds, {FIRST_LOOK} or more, and give the spread; until \
             then the figures describe, they decide nothing"
        ),
    };
    let mut findings = Vec::new();
    for (evidence, tests) in &tests_by_evidence {
        if tests.len() == table.tests.len() && tests.len() > 1 {
            findings.push(finding(evidence, None));
        } else {
            findings.extend(tests.iter().map(|it| finding(evidence, Some(it.to_string()))));
        }
    }
    findings
}

fn unrepeated(test: &Test) -> Option<String> {
    let column_shows = |statistic| matches!(statistic, Some(Statistic::Deviation));
    let has_spread = test.columns.iter().any(|column| column_shows(column.statistic))
        || test.rows.iter().any(|row| row.times_s.len() > 1)
        || test.rows.iter().flat_map(|row| &row.cells).flatten().any(|it| it.deviation.is_some())
        // A row for each run.
        || test.rows.iter().enumerate().any(|(place, row)| {
            test.rows[..place].iter().any(|other| other.contender == row.contender)
        });
    match test.runs {
        Some(1) => Some("each figure is of one run".into()),
        Some(runs) if runs < FIRST_LOOK => Some(format!("each figure is of {runs} runs only")),
        Some(runs) if !has_spread => Some(format!("of {runs} runs no spread is given")),
        Some(_) => None,
        None if has_spread => None,
        None => Some("neither the number of runs nor a spread is given".into()),
    }
}

/// A19: some are spared what the others pay for, so that fsync keeps its promise.
fn unequal_durability(machine: &Machine) -> Vec<Finding> {
    let spared = |options: &[String]| {
        let given = Given::of_options("", options.iter().map(String::as_str));
        given.into_iter().find(|it| matches!(it.fact.loses, Loses::Flushes | Loses::Synced))
    };
    let mut others = machine.mount.iter().filter(|(_, options)| spared(options).is_none());
    let Some((keeping, _)) = others.next() else { return Vec::new() };
    let finding = |(contender, options): (&String, &Vec<String>)| {
        let given = spared(options)?;
        let advice = durability_advice(&given.setting);
        Some(unequal(contender, spared_by(&given, keeping), advice))
    };
    machine.mount.iter().filter_map(finding).collect()
}

/// A19: an option that any file system could have, and only some were given. An option that a
/// contender is named after does not count: it is what is compared.
fn unequal_mounts(machine: &Machine) -> Vec<Finding> {
    let mut findings = Vec::new();
    for option in GENERAL {
        let has = |options: &[String]| options.iter().any(|it| it == option);
        let missing = machine.mount.iter().find(|(_, options)| !has(options));
        let Some((other, _)) = missing else { continue };
        for (contender, _) in machine.mount.iter().filter(|(_, options)| has(options)) {
            if !contender.contains(option) {
                let evidence = format!("mounted with {option}, and {other} is not");
                let advice = format!("give {option} to all, or to none");
                findings.push(unequal(contender, evidence, advice));
            }
        }
    }
    findings
}

/// A19: contenders on different kernels. One named after its kernel is what is compared.
fn unequal_kernels(machine: &Machine) -> Option<Finding> {
    let (first, kernel) = machine.kernel.first_key_value()?;
    let differs =
        |(name, other): &(&String, &String)| *other != kernel && !name.contains(other.as_str());
    let (contender, other) = machine.kernel.iter().find(differs)?;
    let evidence = format!("measured on kernel {other}, and {first} on {kernel}");
    Some(unequal(contender, evidence, "measure all on one kernel".into()))
}

fn unequal(contender: &str, evidence: String, advice: String) -> Finding {
    Finding {
        audit: Audit::A19,
        severity: Severity::Warning,
        workload: None,
        contender: Some(contender.into()),
        evidence,
        advice,
    }
}
