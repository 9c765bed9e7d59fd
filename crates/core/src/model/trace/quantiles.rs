//! How values are spread, in room that does not grow with them.

use std::collections::BTreeMap;

/// So many leading bits of a value count: it is known to 0.2%, and exactly below 1024.
const LEADING_BITS: u32 = 10;

/// Many values of one kind: times in ns, lengths in sectors.
#[derive(Clone, Debug, Default)]
pub struct Quantiles {
    counts: BTreeMap<u64, u64>,
    /// The largest, exactly.
    pub largest: u64,
}

impl Quantiles {
    /// Adds one.
    pub fn take(&mut self, value: u64) {
        let bits = u64::BITS - value.leading_zeros();
        let low = (1 << bits.saturating_sub(LEADING_BITS)) - 1;
        *self.counts.entry(value | low).or_default() += 1;
        self.largest = self.largest.max(value);
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.counts.values().sum()
    }

    /// What this share of them does not exceed; 0 of nothing.
    pub fn within(&self, share: f64) -> u64 {
        let rank = (self.count() as f64 * share).ceil().max(1.0) as u64;
        let mut seen = 0;
        let mut reached = self.counts.iter().filter(|(_, count)| {
            seen += **count;
            seen >= rank
        });
        reached.next().map_or(0, |(value, _)| (*value).min(self.largest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_known_to_a_fifth_of_a_percent() {
        let mut times = Quantiles::default();
        assert_eq!((times.count(), times.within(0.5)), (0, 0));
        (1..=100_000).for_each(|time_ns| times.take(time_ns * 10));
        assert_eq!(times.count(), 100_000);
        for share in [0.001, 0.5, 0.9] {
            let error = times.within(share) as f64 / (1e6 * share) - 1.0;
            assert!((0.0..0.002).contains(&error), "{share}: {error}");
        }
        assert_eq!(times.within(1.0), 1_000_000);
        assert!(times.counts.len() < 7000, "{}", times.counts.len());
        times.take(u64::MAX);
        assert_eq!(times.within(1.0), u64::MAX);
    }

    #[test]
    fn what_is_small_is_known_exactly() {
        let mut sizes = Quantiles::default();
        [24, 24, 1023, 2048].into_iter().for_each(|sectors| sizes.take(sectors));
        assert_eq!([0.5, 0.75, 1.0].map(|share| sizes.within(share)), [24, 1023, 2048]);
    }
}
