//! What speaks against a measurement: the audits of METHODOLOGY, section 7, that follow from a plan
//! and its records.
//!
//! The audits of single trials are in [`trial`], [`queue`], [`steady`], [`foreign`], [`heat`],
//! [`cpu`], [`network`] and [`figures`]; those of the terms on which contenders are compared are in
//! [`terms`]; those that look at all rounds in [`drift`], [`order`] and [`modes`]; what the
//! duplicate and the bare device show is in [`arms`]; how long the work had better run in
//! [`length`]. Each is one function.

mod arms;
mod cpu;
mod drift;
mod figures;
mod foreign;
mod heat;
mod length;
mod modes;
mod network;
mod order;
mod queue;
mod series;
mod steady;
mod terms;
mod trial;

use std::collections::{BTreeMap, BTreeSet};

use crate::judge::stopping::Rule;
use crate::model::{Contender, Finding, Plan, Record, Severity, Workload};

pub use arms::DUPLICATE_ALPHA;
pub use drift::trend;
pub(super) use terms::without_flush;
pub use terms::{DEPTH_ADVICE, WITHOUT_FLUSH, depth_ignored_by, durability_advice};
pub use trial::{CACHE_ADVICE, HARNESS_ADVICE, PROCESS_S, SYNC_ADVICE};

use trial::{AUDITS, Case, Seen, TrialAudit};

/// How wide the intervals of the audits are.
pub struct Rules<'a> {
    /// For the duplicate, by the number of metrics that share its error.
    pub duplicate: &'a BTreeMap<usize, Rule>,
    /// For the bare device: that of the workload's comparisons.
    pub device: &'a dyn Fn(&Workload) -> &'a Rule,
}

/// Everything the audits notice in `records`, the trials of `plan`.
pub fn findings(plan: &Plan, rules: &Rules, records: &[Record]) -> Vec<Finding> {
    let mut findings = terms::findings(plan, records);
    findings.extend(voiding(plan, rules.duplicate, records));
    for workload in &plan.workloads {
        findings.extend(drift::findings(plan, workload, records));
        findings.extend(order::findings(plan, workload, records));
        findings.extend(modes::findings(plan, workload, records));
        let rule = (rules.device)(workload);
        findings.extend(arms::against_the_device(plan, workload, rule, records));
    }
    let lengths = plan.workloads.iter().filter_map(|it| length::finding(plan, it, records));
    findings.extend(lengths);
    findings
}

/// What the audits notice that can make a workload void.
///
/// Of those of single trials that is one finding at most for each audit of each workload and
/// contender, with the trial of the median figure as its evidence. It voids where more than half
/// of the trials show it; where fewer do it is a warning: one trial out of many that went wrong
/// widens the interval, it does not make the verdict false.
pub fn voiding(plan: &Plan, duplicate: &BTreeMap<usize, Rule>, records: &[Record]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for workload in &plan.workloads {
        for contender in &plan.contenders {
            let trials = measured(records, &workload.name, &contender.name);
            let found =
                AUDITS.iter().filter_map(|it| over_trials(plan, it, workload, contender, &trials));
            findings.extend(found);
            findings.extend(repeated(plan, workload, contender, records));
        }
        findings.extend(arms::duplicate_differs(plan, workload, duplicate, records));
    }
    findings
}

/// The rounds of a workload in which a trial was void by itself.
pub fn void_rounds(plan: &Plan, records: &[Record]) -> BTreeSet<(u32, String)> {
    let mut rounds = BTreeSet::new();
    for workload in &plan.workloads {
        for contender in &plan.contenders {
            for (round, record) in measured(records, &workload.name, &contender.name) {
                if void_of(plan, workload, contender, record).is_some() {
                    rounds.insert((round, workload.name.clone()));
                }
            }
        }
    }
    rounds
}

/// The audit that makes a single trial void, and what it saw.
fn void_of(
    plan: &Plan,
    workload: &Workload,
    contender: &Contender,
    record: &Record,
) -> Option<(&'static TrialAudit, Seen)> {
    let case = Case::new(plan, workload, contender, record);
    let seen = AUDITS.iter().filter_map(|audit| Some((audit, (audit.test)(&case)?)));
    seen.into_iter().find(|(_, seen)| seen.severity == Severity::Void)
}

/// A note on each trial that was void and was run again.
fn repeated<'a>(
    plan: &'a Plan,
    workload: &'a Workload,
    contender: &'a Contender,
    records: &'a [Record],
) -> impl Iterator<Item = Finding> + 'a {
    let latest = measured(records, &workload.name, &contender.name);
    let superseded = records.iter().filter(move |record| {
        let later = latest.get(&record.key.round).is_some_and(|it| !std::ptr::eq(*it, *record));
        later && is_of(record, &workload.name, &contender.name)
    });
    superseded.filter_map(move |record| {
        let (audit, seen) = void_of(plan, workload, contender, record)?;
        Some(Finding {
            audit: audit.audit,
            severity: Severity::Note,
            workload: Some(workload.name.clone()),
            contender: Some(contender.name.clone()),
            evidence: format!("round {} was run again: {}", record.key.round, seen.evidence),
            advice: "nothing: the verdict holds with the first trials and with the later ones"
                .into(),
        })
    })
}

fn is_of(record: &Record, workload: &str, contender: &str) -> bool {
    record.is_measured() && record.key.workload == workload && record.key.contender == contender
}

/// The trials of one contender in one workload that ran whole, by round; where one was run again
/// the later record counts.
fn measured<'a>(
    records: &'a [Record],
    workload: &str,
    contender: &str,
) -> BTreeMap<u32, &'a Record> {
    let of_it = |record: &&Record| is_of(record, workload, contender);
    records.iter().filter(of_it).map(|record| (record.key.round, record)).collect()
}

/// What one audit says about all trials of one contender in one workload.
fn over_trials(
    plan: &Plan,
    audit: &TrialAudit,
    workload: &Workload,
    contender: &Contender,
    trials: &BTreeMap<u32, &Record>,
) -> Option<Finding> {
    let case = |&record| Case::new(plan, workload, contender, record);
    let mut seen: Vec<Seen> =
        trials.values().filter_map(|record| (audit.test)(&case(record))).collect();
    seen.sort_by(|one, other| one.figure.total_cmp(&other.figure));
    let median = seen.get(seen.len() / 2)?;
    let mostly = seen.len() * 2 > trials.len();
    Some(Finding {
        audit: audit.audit,
        severity: if mostly { median.severity } else { median.severity.min(Severity::Warning) },
        workload: Some(workload.name.clone()),
        contender: Some(contender.name.clone()),
        evidence: format!("{}; in {} of {} trials", median.evidence, seen.len(), trials.len()),
        advice: audit.advice.into(),
    })
}

/// The mount options of a contender one by one: both `["a", "b"]` and `["a,b"]` are written.
fn options(contender: &Contender) -> impl Iterator<Item = &str> {
    contender.mount.iter().flat_map(|options| options.split(','))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{plan, record};
    use super::*;
    use crate::model::{Audit, CacheState};

    const PLAN: &str = r#"
        [[contender]]
        name = "a"
        [[contender]]
        name = "b"
        [[workload]]
        name = "unpack"
        command = "tar xf source.tar"
    "#;

    /// Trials of a, with `cached_bytes` still cached after the drop.
    fn trials(cached_bytes: &[u64]) -> Vec<Record> {
        let state = |&cached_bytes_after| {
            vec![CacheState { dropped: true, cached_bytes_after, ..CacheState::default() }]
        };
        (1..)
            .zip(cached_bytes)
            .map(|(round, bytes)| Record { caches: state(bytes), ..record(round, "unpack", "a") })
            .collect()
    }

    fn seen(records: &[Record]) -> Vec<Finding> {
        let mut findings = voiding(&plan(PLAN), &BTreeMap::new(), records);
        findings.retain(|finding| finding.audit != Audit::A18);
        findings
    }

    #[test]
    fn most_trials_void_and_a_few_warn() {
        assert_eq!(seen(&trials(&[0, 4096, 1 << 20])), []);
        let few = seen(&trials(&[8 << 20, 8 << 20, 0, 0]));
        assert_eq!((few.len(), few[0].severity), (1, Severity::Warning));
        let most = seen(&trials(&[9 << 20, 8 << 20, 0, 7 << 20]));
        assert_eq!((most.len(), most[0].severity), (1, Severity::Void));
        assert_eq!(most[0].contender.as_deref(), Some("a"));
        assert!(most[0].evidence.ends_with("8.00 MiB cached after it; in 3 of 4 trials"));
    }

    #[test]
    fn a_trial_run_again_is_judged_by_its_later_record() {
        let again = [trials(&[8 << 20]), trials(&[0])].concat();
        let found = seen(&again);
        assert_eq!((found.len(), found[0].severity), (1, Severity::Note));
        assert!(found[0].evidence.starts_with("round 1 was run again: "), "{found:?}");
    }

    #[test]
    fn fio_options_are_found_however_they_are_written() {
        let workload = |fio: &str| {
            plan(&PLAN.replace("command = \"tar xf source.tar\"", fio)).workloads[0].clone()
        };
        let direct = |fio: &str| workload(fio).fio_values("direct");
        let one = Some(vec!["1".to_string()]);
        assert_eq!(direct("fio = { rw = \"read\", direct = 1 }"), one);
        assert_eq!(direct("fio = { direct = true, rw = \"read\" }"), one);
        assert_eq!(direct("fio = [\"--name=x\", \"--direct\", \"1\", \"--rw=read\"]"), one);
        assert_eq!(direct("fio = [\"--direct\", \"--rw=read\"]"), one);
        assert_eq!(direct("fio = [\"--rw=read\"]"), Some(vec![]));
        assert_eq!(direct("fio = \"/srv/job.fio\""), None);
        assert_eq!(direct("command = \"true\""), None);
    }
}
