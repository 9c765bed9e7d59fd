//! Which bytes of a file were written.

use std::collections::BTreeMap;

/// Ranges of bytes that don't touch each other: their ends, by their begins.
#[derive(Debug, Default)]
pub struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    /// Adds the bytes from `begin` to `end`.
    pub fn add(&mut self, mut begin: u64, mut end: u64) {
        if begin >= end {
            return;
        }
        while let Some((&start, &stop)) = self.0.range(..=end).next_back() {
            if stop < begin {
                break;
            }
            self.0.remove(&start);
            (begin, end) = (begin.min(start), end.max(stop));
        }
        self.0.insert(begin, end);
    }

    /// All bytes from `begin` to `end` are there.
    pub fn cover(&self, begin: u64, end: u64) -> bool {
        let before = self.0.range(..=begin).next_back();
        begin >= end || before.is_some_and(|(_, stop)| *stop >= end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_become_one() {
        let mut ranges = Ranges::default();
        for (begin, end) in [(10, 20), (40, 50), (20, 25), (60, 60), (24, 41)] {
            ranges.add(begin, end);
        }
        assert_eq!(ranges.0, BTreeMap::from([(10, 50)]));
        ranges.add(5, 100);
        assert_eq!(ranges.0, BTreeMap::from([(5, 100)]));
        ranges.add(200, 300);
        assert!(ranges.cover(5, 100) && ranges.cover(7, 7) && ranges.cover(150, 150));
        assert!(!ranges.cover(90, 101) && !ranges.cover(150, 250) && !ranges.cover(0, 6));
    }
}
