//! Latencies of one kind of operation in one trial.

use serde::{Deserialize, Serialize};

/// A latency histogram: how many operations took at most so long.
///
/// The buckets come from an HDR histogram of three significant figures, so that a quantile is
/// within 0.1% of the value recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    /// The largest latency recorded, exact.
    pub max_ns: u64,
    /// Sum of all latencies, for the mean.
    pub sum_ns: u64,
    /// `[highest latency of the bucket in ns, operations in it]`, ascending, without empty ones.
    pub buckets: Vec<(u64, u64)>,
}

impl Histogram {
    /// Operations recorded.
    pub fn count(&self) -> u64 {
        self.buckets.iter().fold(0, |all, (_, count)| all.saturating_add(*count))
    }

    /// Mean latency in ns; `None` when empty.
    pub fn mean_ns(&self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| self.sum_ns as f64 / count as f64)
    }

    /// So many operations have that quantile: 30 or more lie beyond it.
    pub fn holds(quantile: f64, count: u64) -> bool {
        count as f64 * (1.0 - quantile) >= 30.0
    }

    /// The latency in ns that the share `quantile` of all operations did not exceed. `None` where
    /// fewer than 30 operations lie beyond it: such a tail is an anecdote (METHODOLOGY,
    /// "Latency, CPU, device").
    pub fn quantile_ns(&self, quantile: f64) -> Option<u64> {
        let count = self.count();
        if !Self::holds(quantile, count) {
            return None;
        }
        let rank = ((quantile * count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for &(upper_ns, operations) in &self.buckets {
            seen = operations.saturating_add(seen);
            if seen >= rank {
                return Some(upper_ns.min(self.max_ns));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_needs_thirty_operations_beyond_it() {
        let histogram = Histogram { max_ns: 500, sum_ns: 0, buckets: vec![(100, 2970), (500, 30)] };
        assert_eq!(histogram.count(), 3000);
        assert_eq!(histogram.quantile_ns(0.5), Some(100));
        assert_eq!(histogram.quantile_ns(0.99), Some(100));
        assert_eq!(histogram.quantile_ns(0.999), None);
        assert_eq!(Histogram::default().quantile_ns(0.5), None);
        assert_eq!(Histogram::default().mean_ns(), None);
    }
}
