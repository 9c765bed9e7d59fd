//! What is compared: the figures of two contenders, round by round.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Better, Record, Sample, Unit};

/// One round in which both were measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// The contender's raw value.
    pub contender: f64,
    /// The reference's raw value.
    pub reference: f64,
    /// ln(goodness) of the contender less that of the reference.
    pub difference: f64,
}

/// The rounds that hold a figure of `metric` of both, in order. Where a trial was run again the
/// later record counts.
pub fn pairs(
    records: &[Record],
    workload: &str,
    metric: &str,
    contender: &str,
    reference: &str,
) -> Vec<Pair> {
    let figures = |name: &str| figures(records, workload, metric, name);
    let references = figures(reference);
    let pair = |(round, (contender, goodness)): (u32, (f64, f64))| {
        let &(reference, reference_goodness) = references.get(&round)?;
        Some(Pair { contender, reference, difference: goodness - reference_goodness })
    };
    figures(contender).into_iter().filter_map(pair).collect()
}

/// By round the value of `metric` and its ln(goodness), of one contender.
fn figures(
    records: &[Record],
    workload: &str,
    metric: &str,
    contender: &str,
) -> BTreeMap<u32, (f64, f64)> {
    let of_it = |record: &&Record| {
        record.is_measured() && record.key.workload == workload && record.key.contender == contender
    };
    let figure = |record: &Record| {
        let sample = record.sample(metric)?;
        Some((record.key.round, (sample.value, sample.goodness()?)))
    };
    records.iter().filter(of_it).filter_map(figure).collect()
}

/// The rounds of a pooled layout, in order: those that hold a figure of `metric` of every contender
/// that has one in half of the rounds or more; and these contenders. Who fails more often has no
/// part in it, lest a round never count again.
pub fn complete<'a>(
    records: &[Record],
    workload: &str,
    metric: &str,
    names: impl Iterator<Item = &'a str>,
) -> (Vec<&'a str>, Vec<Vec<f64>>) {
    let of = |name: &'a str| (name, figures(records, workload, metric, name));
    let mut all: Vec<_> = names.map(of).collect();
    let rounds: BTreeSet<u32> =
        all.iter().flat_map(|(_, figures)| figures.keys().copied()).collect();
    all.retain(|(_, figures)| figures.len() * 2 >= rounds.len());
    let whole = |round: u32| {
        all.iter()
            .map(|(_, figures)| figures.get(&round).map(|it| it.1))
            .collect::<Option<Vec<_>>>()
    };
    let figures = rounds.into_iter().filter_map(whole).collect();
    (all.into_iter().map(|(name, _)| name).collect(), figures)
}

/// The records without the trials that were run again; `None` where none was.
pub fn first_trials(records: &[Record]) -> Option<Vec<Record>> {
    let mut seen = BTreeSet::new();
    let mut first: Vec<&Record> = records.iter().collect();
    first.retain(|record| !record.is_measured() || seen.insert(&record.key));
    (first.len() < records.len()).then(|| first.into_iter().cloned().collect())
}

/// What the metric counts, by the first record that has it; a bare number where none has.
pub fn unit_of(records: &[Record], workload: &str, metric: &str) -> (Unit, Better) {
    let mut of_it = records.iter().filter(|record| record.key.workload == workload);
    let known = |sample: &Sample| (sample.unit, sample.better);
    let unknown = (Unit::Ratio, Better::Higher);
    of_it.find_map(|record| record.sample(metric)).map_or(unknown, known)
}
