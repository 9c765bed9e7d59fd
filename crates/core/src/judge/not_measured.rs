//! Contenders that could not be measured in one of two runs: a gate has to know.

use std::collections::BTreeMap;

use super::stopping::FIRST_LOOK;
use super::terms::Side;
use crate::model::{Change, NotMeasured, Outcome, Record};

/// The contenders that failed: in trials of the run that were not made good afterwards; or, of
/// those that both plans hold, in all of the baseline's.
pub fn failed(baseline: Side, run: Side) -> Vec<NotMeasured> {
    let mut all = Vec::new();
    for workload in &run.plan.workloads {
        for name in run.plan.contenders.iter().map(|it| it.name.as_str()) {
            let in_both = baseline.plan.contender(name).is_some()
                && baseline.plan.workloads.iter().any(|it| it.name == workload.name);
            let of = |side: Side| failures(side.records, &workload.name, name);
            let [before, now] = [of(baseline), of(run)];
            let (which, (count, trials, error)) = match (&before, &now) {
                (_, Some(now)) => ("run", now),
                (Some(before), None) if before.0 == before.1 && in_both => ("baseline", before),
                _ => continue,
            };
            all.push(NotMeasured {
                workload: workload.name.clone(),
                contender: name.into(),
                why: format!("{count} of its {trials} trials failed in the {which}: {error}"),
            });
        }
    }
    all
}

/// The contenders with failed trials that were not repeated with success, and the changes of which
/// nothing is known.
pub fn not_measured(run: Side, changes: &[Change]) -> Vec<NotMeasured> {
    let of = |workload: &str, name: &str| {
        let (count, trials, error) = failures(run.records, workload, name)?;
        let why = format!("{count} of its {trials} trials failed: {error}");
        Some(NotMeasured { workload: workload.into(), contender: name.into(), why })
    };
    let names = || run.plan.contenders.iter().map(|it| it.name.as_str());
    let works = run.plan.workloads.iter().map(|it| it.name.as_str());
    let failed = works.flat_map(|work| names().filter_map(move |name| of(work, name)));
    failed.chain(changes.iter().filter_map(too_few)).collect()
}

/// How many slots of a contender have no measured trial, of how many, and why the last one failed.
pub(super) fn failures(
    records: &[Record],
    workload: &str,
    contender: &str,
) -> Option<(u32, u32, String)> {
    let its =
        |record: &&Record| record.key.workload == workload && record.key.contender == contender;
    let mut by_round: BTreeMap<u32, Option<String>> = BTreeMap::new();
    for record in records.iter().filter(its) {
        let failure = match &record.outcome {
            Outcome::Measured => None,
            Outcome::Failed(failure) => Some(failure.error.clone()),
        };
        let known = by_round.entry(record.key.round).or_insert_with(|| failure.clone());
        if failure.is_none() {
            *known = None;
        }
    }
    let trials = by_round.len() as u32;
    let errors: Vec<String> = by_round.into_values().flatten().collect();
    let last = errors.last()?.lines().next().unwrap_or_default().to_string();
    Some((errors.len() as u32, trials, last))
}

/// An unknown change: one of the runs has fewer rounds than an interval takes.
pub fn too_few(change: &Change) -> Option<NotMeasured> {
    let Change { baseline_rounds, rounds, .. } = change;
    let few = *baseline_rounds < FIRST_LOOK || *rounds < FIRST_LOOK;
    few.then(|| NotMeasured {
        workload: change.workload.clone(),
        contender: change.contender.clone(),
        why: format!(
            "{baseline_rounds} rounds of the baseline and {rounds} of the run have {}: \
             {FIRST_LOOK} are needed of each",
            change.metric
        ),
    })
}
