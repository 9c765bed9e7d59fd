//! The figures of one metric over the rounds, as the audits of whole workloads take them.

use std::collections::BTreeMap;

use crate::judge::trials::Trials;

/// ln(goodness) of `metric` by round, of one contender in one workload.
pub fn goodness(
    trials: &Trials,
    workload: &str,
    contender: &str,
    metric: &str,
) -> BTreeMap<u32, f64> {
    let latest = trials.latest(workload, contender).iter();
    latest.filter_map(|(round, kept)| Some((*round, kept.figure(metric)?.goodness?))).collect()
}
