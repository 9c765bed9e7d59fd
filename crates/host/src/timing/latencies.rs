//! Latencies as they are recorded: into a histogram that never grows.

use fsverdict_core::model;
use hdrhistogram::Histogram;

/// Above this the histogram no longer tells latencies apart; the largest is kept exactly.
const LONGEST_NS: u64 = 3600 * 1_000_000_000;

/// Latencies of one kind of operation, as one thread meets them.
#[derive(Debug)]
pub struct Latencies {
    buckets: Histogram<u64>,
    max_ns: u64,
    sum_ns: u64,
}

impl Latencies {
    /// None yet. All memory is taken here: [`Latencies::record`] takes none.
    pub fn new() -> Self {
        let mut buckets =
            Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("the bounds are valid");
        // Writes every page, so that none is faulted in by an operation that is timed; the compiler
        // must not notice that they are zero already.
        std::hint::black_box(&mut buckets).reset();
        Latencies { buckets, max_ns: 0, sum_ns: 0 }
    }

    /// Counts one operation.
    #[inline]
    pub fn record(&mut self, latency_ns: u64) {
        self.buckets.saturating_record(latency_ns);
        self.max_ns = self.max_ns.max(latency_ns);
        self.sum_ns += latency_ns;
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.buckets.len()
    }

    /// Adds those of another thread.
    pub fn merge(&mut self, other: &Latencies) {
        self.buckets.add(&other.buckets).expect("all have the same bounds");
        self.max_ns = self.max_ns.max(other.max_ns);
        self.sum_ns += other.sum_ns;
    }

    /// Those of all threads, as the record keeps them.
    pub fn merged<'a>(all: impl Iterator<Item = &'a Latencies>) -> model::Histogram {
        let mut merged = Latencies::new();
        all.for_each(|latencies| merged.merge(latencies));
        merged.to_model()
    }

    /// As the record keeps them.
    pub fn to_model(&self) -> model::Histogram {
        let recorded = self.buckets.iter_recorded();
        model::Histogram {
            max_ns: self.max_ns,
            sum_ns: self.sum_ns,
            buckets: recorded.map(|at| (at.value_iterated_to(), at.count_at_value())).collect(),
        }
    }
}

impl Default for Latencies {
    fn default() -> Self {
        Latencies::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_merge_and_the_extremes_are_exact() {
        let (mut one, mut other) = (Latencies::new(), Latencies::new());
        one.record(0);
        one.record(1_234_567);
        other.record(2 * LONGEST_NS);
        one.merge(&other);
        let model = one.to_model();
        assert_eq!(model.count(), 3);
        assert_eq!(model.max_ns, 2 * LONGEST_NS);
        assert_eq!(model.sum_ns, 1_234_567 + 2 * LONGEST_NS);
    }

    #[test]
    fn a_bucket_is_within_a_thousandth_of_what_was_recorded() {
        for latency_ns in [1, 17, 999, 20_011, 1_234_567, 77_777_777_777] {
            let mut latencies = Latencies::new();
            latencies.record(latency_ns);
            let [(upper_ns, 1)] = latencies.to_model().buckets[..] else { panic!("one bucket") };
            assert!(upper_ns >= latency_ns);
            assert!((upper_ns - latency_ns) as f64 <= latency_ns as f64 * 1e-3);
        }
    }
}
