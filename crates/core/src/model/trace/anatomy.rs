//! What a workload's operations on a contender add up to, and how they differ.

use std::collections::BTreeMap;

use super::account::Account;
use super::operation::{Operation, Row};
use super::quantiles::Quantiles;
use super::times::Stages;
use crate::model::FsyncOperation;

/// So many different patterns of operations are distinguished.
const PATTERNS_MAX: usize = 4096;
/// Of operations that wrote the same so many are kept whole.
const KEPT_MAX: usize = 33;

/// How a figure is spread over operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// The value that most operations have.
    pub most: u64,
    /// How many have it.
    pub operations: u64,
    /// The smallest.
    pub least: u64,
    /// The largest.
    pub largest: u64,
}

/// Operations that wrote the same: how many, and the first of them.
#[derive(Clone, Debug, Default)]
struct Pattern {
    operations: u64,
    kept: Vec<Operation>,
}

/// Many operations of one kind.
#[derive(Clone, Debug, Default)]
pub struct Anatomy {
    /// How many are whole.
    pub operations: u64,
    /// How many are not, because events were lost: they count for nothing else.
    pub partial: u64,
    /// How many returned before what they wrote was durable ([`Operation::is_early`]).
    pub early: u64,
    rows: BTreeMap<Row, BTreeMap<u64, u64>>,
    latencies_ns: Vec<u64>,
    layers: [Quantiles; 4],
    patterns: BTreeMap<Vec<(Row, u64)>, Pattern>,
}

impl Anatomy {
    /// Adds an operation.
    pub fn take(&mut self, operation: Operation) {
        if !operation.is_whole {
            self.partial += 1;
            return;
        }
        self.operations += 1;
        self.early += u64::from(operation.is_early());
        self.latencies_ns.push(operation.latency_ns());
        let layers_ns = operation.layers_ns();
        self.layers.iter_mut().zip(layers_ns).for_each(|(times, time_ns)| times.take(time_ns));
        let rows = operation.rows();
        for (row, count) in &rows {
            *self.rows.entry(row.clone()).or_default().entry(*count).or_default() += 1;
        }
        // What was read from a cold disk is not how it writes.
        let pattern: Vec<_> = rows.into_iter().filter(|(row, _)| *row != Row::Reads).collect();
        let is_full = self.patterns.len() >= PATTERNS_MAX;
        if is_full && !self.patterns.contains_key(&pattern) {
            return;
        }
        let pattern = self.patterns.entry(pattern).or_default();
        pattern.operations += 1;
        if pattern.kept.len() < KEPT_MAX {
            pattern.kept.push(operation);
        }
    }

    /// Each figure that an operation had.
    pub fn rows(&self) -> impl Iterator<Item = (&Row, Spread)> {
        self.rows.iter().map(|(row, counts)| {
            let mut counts = counts.clone();
            let having: u64 = counts.values().sum();
            if having < self.operations {
                *counts.entry(0).or_default() += self.operations - having;
            }
            (row, spread(&counts))
        })
    }

    /// The latency that this share of them does not exceed.
    pub fn latency_ns(&self, share: f64) -> Option<u64> {
        let mut sorted = self.latencies_ns.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() as f64 * share).ceil() as usize;
        sorted.get(rank.max(1) - 1).copied()
    }

    /// How long each of [`super::Layer::ALL`] had them.
    pub fn layers(&self) -> &[Quantiles; 4] {
        &self.layers
    }

    /// Of the operations that wrote the most frequent pattern, one of middle latency; and how many
    /// there are. Patterns whose blocks are all known come first.
    pub fn typical(&self) -> Option<(&Operation, u64)> {
        // Of two equally frequent ones the later: the first after a mount also writes superblocks.
        let begin_ns = |it: &Pattern| it.kept.first().map(|first| first.begin_ns);
        let rank = |(rows, it): &(&Vec<(Row, u64)>, &Pattern)| {
            let is_named = rows.iter().all(|(row, _)| *row != Row::Unknown);
            (is_named, it.operations, begin_ns(it))
        };
        let (_, pattern) = self.patterns.iter().max_by_key(rank)?;
        let mut kept: Vec<&Operation> = pattern.kept.iter().collect();
        kept.sort_by_key(|operation| operation.latency_ns());
        Some((kept.get((kept.len() - 1) / 2)?, pattern.operations))
    }
}

/// Whose figures an account has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// So many trials of ours.
    Trials(u32),
    /// Others recorded it.
    Others,
    /// A model's, that ran nothing.
    Model,
}

impl Default for Origin {
    fn default() -> Origin {
        Origin::Trials(0)
    }
}

/// What was recorded of a workload on a contender, over all of its trials.
#[derive(Clone, Debug, Default)]
pub struct Traced {
    /// The workload.
    pub workload: String,
    /// The contender.
    pub contender: String,
    /// Whose figures these are.
    pub origin: Origin,
    /// All of their timed parts.
    pub account: Account,
    /// How long the requests took.
    pub stages: Stages,
    /// What was measured.
    pub operation: FsyncOperation,
    /// Each of them promises that its file is durable, and the disks are the run's own.
    pub promises: bool,
    /// Their fsyncs, or whatever was measured.
    pub fsyncs: Anatomy,
    /// Events that the kernel had no room for.
    pub lost_events: u64,
    /// Logs that were cut off.
    pub cut_off: u32,
    /// Why nobody looked up what blocks are.
    pub unnamed: Option<String>,
}

fn spread(counts: &BTreeMap<u64, u64>) -> Spread {
    let most = counts.iter().max_by_key(|(value, count)| (**count, std::cmp::Reverse(**value)));
    let (most, operations) = most.map_or((0, 0), |(value, count)| (*value, *count));
    let [least, largest] = [counts.keys().next(), counts.keys().next_back()];
    Spread {
        most,
        operations,
        least: least.copied().unwrap_or(0),
        largest: largest.copied().unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Entry;
    use super::*;

    fn operation(begin_ns: u64, flushes: usize) -> Operation {
        let flush: Entry = serde_json::from_str(r#"{"op":"flush"}"#).unwrap();
        Operation {
            inode: 1,
            begin_ns,
            end_ns: begin_ns + 10 * begin_ns,
            files: Vec::new(),
            entries: vec![flush; flushes],
            is_whole: true,
        }
    }

    #[test]
    fn no_mean_hides_that_operations_differ() {
        let mut anatomy = Anatomy::default();
        for (begin_ns, flushes) in [(1, 2), (2, 0), (3, 2), (4, 3)] {
            anatomy.take(operation(begin_ns, flushes));
        }
        anatomy.take(Operation { is_whole: false, ..operation(5, 9) });
        assert_eq!((anatomy.operations, anatomy.partial), (4, 1));
        let rows: Vec<_> = anatomy.rows().collect();
        let spread = Spread { most: 2, operations: 2, least: 0, largest: 3 };
        assert_eq!(rows, [(&Row::Flushes, spread)]);
        let (first, like_it) = anatomy.typical().unwrap();
        assert_eq!((first.begin_ns, like_it), (1, 2));
        assert_eq!([0.5, 1.0].map(|share| anatomy.latency_ns(share)), [Some(20), Some(40)]);
        assert_eq!(Anatomy::default().latency_ns(0.5), None);
        let mut each_its_own = Anatomy::default();
        for (begin_ns, flushes) in [(1, 9), (2, 3), (3, 2)] {
            each_its_own.take(operation(begin_ns, flushes));
        }
        assert_eq!(each_its_own.typical().unwrap().0.begin_ns, 3, "not the first after a mount");
    }
}
