//! The middle of values that come one by one.

use std::cmp::Ordering;
use std::collections::BTreeSet;

/// A value, and what tells it from others that are as large.
#[derive(Clone, Copy, Debug)]
struct Placed {
    value: f64,
    tag: u32,
}

impl Ord for Placed {
    fn cmp(&self, other: &Placed) -> Ordering {
        self.value.total_cmp(&other.value).then(self.tag.cmp(&other.tag))
    }
}

impl PartialOrd for Placed {
    fn partial_cmp(&self, other: &Placed) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Placed {
    fn eq(&self, other: &Placed) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Placed {}

/// Values in two halves, so that the middle is known at the cost of a logarithm for each value.
///
/// The lower half holds n / 2 of n values, rounded down, the upper half the others: its first is
/// the value at place n / 2.
#[derive(Debug, Default)]
pub struct Middle {
    lower: BTreeSet<Placed>,
    upper: BTreeSet<Placed>,
}

impl Middle {
    /// How many values there are.
    pub fn len(&self) -> usize {
        self.lower.len() + self.upper.len()
    }

    /// Puts a value; no other may have the same `tag`.
    pub fn put(&mut self, value: f64, tag: u32) {
        let placed = Placed { value, tag };
        let is_low = self.upper.first().is_some_and(|first| placed < *first);
        let half = if is_low { &mut self.lower } else { &mut self.upper };
        assert!(half.insert(placed), "a value is put once");
        self.level();
    }

    /// Takes out a value that was put.
    pub fn remove(&mut self, value: f64, tag: u32) {
        let placed = Placed { value, tag };
        let was_there = self.lower.remove(&placed) || self.upper.remove(&placed);
        assert!(was_there, "only what was put is taken out");
        self.level();
    }

    /// Makes the halves even again.
    fn level(&mut self) {
        if self.lower.len() > self.upper.len() {
            self.upper.extend(self.lower.pop_last());
        } else if self.upper.len() > self.lower.len() + 1 {
            self.lower.extend(self.upper.pop_first());
        }
        assert!((0..=1).contains(&(self.upper.len() - self.lower.len())), "the halves are even");
        debug_assert!(self.lower.last() < self.upper.first() || self.lower.is_empty());
    }

    /// The tag of the middle value, of an even number the upper one.
    pub fn tag(&self) -> Option<u32> {
        self.upper.first().map(|placed| placed.tag)
    }

    /// There is one value only, however often.
    pub fn is_constant(&self) -> bool {
        let ends = [&self.lower, &self.upper].map(|half| [half.first(), half.last()]);
        let mut values = ends.into_iter().flatten().flatten().map(|placed| placed.value);
        values.next().is_some_and(|first| values.all(|value| value == first))
    }

    /// The middle value, or the mean of the two in the middle.
    pub fn median(&self) -> Option<f64> {
        let upper = self.upper.first()?.value;
        let is_even = self.lower.len() == self.upper.len();
        let lower = self.lower.last().filter(|_| is_even).map_or(upper, |placed| placed.value);
        Some(f64::midpoint(lower, upper))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::median;

    proptest! {
        #[test]
        fn it_is_the_middle_whatever_comes_and_goes(
            values in prop::collection::vec(-3..3i8, 0..40),
            gone in prop::collection::vec(any::<bool>(), 40),
        ) {
            let mut middle = Middle::default();
            let mut left: Vec<(f64, u32)> = Vec::new();
            for ((tag, value), gone) in (0..).zip(values).zip(gone) {
                middle.put(value.into(), tag);
                left.push((value.into(), tag));
                if gone {
                    let (value, tag) = left.remove(left.len() / 3);
                    middle.remove(value, tag);
                }
                prop_assert_eq!(middle.median(), median(left.iter().map(|it| it.0)));
                let mut sorted = left.clone();
                sorted.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
                prop_assert_eq!(middle.tag(), sorted.get(left.len() / 2).map(|it| it.1));
                prop_assert_eq!(middle.len(), left.len());
                let is_constant = left.iter().all(|it| it.0 == left[0].0);
                prop_assert_eq!(middle.is_constant(), is_constant && !left.is_empty());
            }
        }
    }
}
