//! What is compared: the figures of two contenders, round by round.

use std::collections::BTreeMap;
use std::ops::RangeBounds;

use crate::model::{Better, Record, Sample, Unit};

/// Which trial of a round counts where one was run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Which {
    /// The last.
    Latest,
    /// The first, as if nothing had been run again.
    First,
}

impl Which {
    /// For each key the one that counts.
    pub fn of<K: Ord, V>(self, all: impl Iterator<Item = (K, V)>) -> BTreeMap<K, V> {
        let mut counts = BTreeMap::new();
        match self {
            Which::Latest => counts.extend(all),
            Which::First => all.for_each(|(key, value)| {
                counts.entry(key).or_insert(value);
            }),
        }
        counts
    }
}

/// One figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// As it was measured.
    pub value: f64,
    /// ln(goodness).
    pub goodness: f64,
}

impl Figure {
    /// The figure of a sample; `None` where it has no logarithm.
    pub fn of(sample: &Sample) -> Option<Figure> {
        Some(Figure { value: sample.value, goodness: sample.goodness()? })
    }
}

/// The figures of one metric of one contender, by round.
#[derive(Clone, Debug, Default)]
pub struct Series {
    figures: BTreeMap<u32, Figure>,
    rewrites: u32,
}

impl Series {
    /// Nothing yet.
    pub const EMPTY: &Series = &Series { figures: BTreeMap::new(), rewrites: 0 };

    /// Those of these records.
    pub fn of(
        records: &[Record],
        workload: &str,
        metric: &str,
        contender: &str,
        which: Which,
    ) -> Series {
        let of_it = |record: &&Record| {
            record.is_measured()
                && record.key.workload == workload
                && record.key.contender == contender
        };
        let figure =
            |record: &Record| Some((record.key.round, Figure::of(record.sample(metric)?)?));
        let figures = which.of(records.iter().filter(of_it).filter_map(figure));
        Series { figures, rewrites: 0 }
    }

    /// Puts the figure of a round. Where there was one before, the later one counts.
    pub fn put(&mut self, round: u32, figure: Figure) {
        if self.last_round() >= Some(round) {
            self.rewrites += 1;
        }
        self.figures.insert(round, figure);
    }

    /// Its last round.
    pub fn last_round(&self) -> Option<u32> {
        self.figures.last_key_value().map(|(round, _)| *round)
    }

    /// How often a figure came whose round was not after all those before: readers of the series
    /// have to read it again then.
    pub fn rewrites(&self) -> u32 {
        self.rewrites
    }

    /// How many figures there are.
    pub fn len(&self) -> usize {
        self.figures.len()
    }

    /// The figure of a round.
    pub fn get(&self, round: u32) -> Option<Figure> {
        self.figures.get(&round).copied()
    }

    /// Its rounds within a range, in order.
    pub fn rounds(&self, range: impl RangeBounds<u32>) -> impl Iterator<Item = u32> {
        self.figures.range(range).map(|(round, _)| *round)
    }

    /// The rounds within a range that hold a figure of both, in order.
    pub fn pairs(
        &self,
        reference: &Series,
        range: impl RangeBounds<u32>,
    ) -> impl Iterator<Item = Pair> {
        self.figures.range(range).filter_map(|(&round, contender)| {
            let reference = reference.get(round)?;
            let difference = contender.goodness - reference.goodness;
            Some(Pair { round, contender: contender.value, reference: reference.value, difference })
        })
    }
}

/// One round in which both were measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// The round.
    pub round: u32,
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
    between(records, metric, [(workload, contender), (workload, reference)])
}

/// The same for any two, each a workload and a contender.
pub fn between(records: &[Record], metric: &str, both: [(&str, &str); 2]) -> Vec<Pair> {
    let latest =
        |(workload, name): (&str, &str)| Series::of(records, workload, metric, name, Which::Latest);
    let [one, other] = both.map(latest);
    one.pairs(&other, ..).collect()
}

/// What the metric counts, by the first record that has it; a bare number where none has.
pub fn unit_of(records: &[Record], workload: &str, metric: &str) -> (Unit, Better) {
    let mut of_it = records.iter().filter(|record| record.key.workload == workload);
    let known = |sample: &Sample| (sample.unit, sample.better);
    of_it.find_map(|record| record.sample(metric)).map_or(NO_UNIT, known)
}

/// The unit of a metric without measurements.
pub const NO_UNIT: (Unit, Better) = (Unit::Ratio, Better::Higher);
