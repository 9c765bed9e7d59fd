//! The figures of one metric over the rounds, as the audits of whole workloads take them.

use std::collections::BTreeMap;

use crate::model::Record;

use super::case::measured;

/// ln(goodness) of `metric` by round, of one contender in one workload.
pub fn goodness(
    records: &[Record],
    workload: &str,
    contender: &str,
    metric: &str,
) -> BTreeMap<u32, f64> {
    let trials = measured(records, workload, contender);
    let figure = |record: &Record| record.sample(metric)?.goodness();
    trials.into_iter().filter_map(|(round, record)| Some((round, figure(record)?))).collect()
}
