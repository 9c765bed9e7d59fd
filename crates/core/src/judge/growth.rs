//! The ratio of two contenders at more operations or files than any trial had, extrapolated from
//! workloads that do the same with fewer.
//!
//! Each contender's figure is assumed to be a power of the count. Then ln(ratio) is a straight line
//! over ln(count), and its value at another count is a weighted sum of what was measured, with
//! weights that depend on the counts only. So a round gives one such sum, as it gives one
//! difference of two contenders, and rounds are judged like any others.
//!
//! A figure that is no power of the count bends the line. So there are two: one through all
//! workloads by least squares, and one through the two largest, which are nearer to the question.
//! And growth may end: a part that does not grow soon vanishes, and the ratio then stays as at the
//! largest workload. An answer has to hold for all three. Whether the line bends is not tested
//! first: noise would decide. No line foresees growth that gets faster and faster.

use std::collections::BTreeMap;

/// The weights of each line, in the order of `counts`, which grow and are two at least; `to` is the
/// count that is asked about.
pub(super) fn lines(counts: &[f64], to: f64) -> [Vec<f64>; 3] {
    assert!(counts.len() > 1 && counts.is_sorted_by(|one, next| one < next), "works that grow");
    let after = |fewer: usize, last: Vec<f64>| [vec![0.0; fewer], last].concat();
    let fewer = counts.len() - 2;
    let of_last = after(fewer, weights(&counts[fewer..], to));
    [weights(counts, to), of_last, after(fewer + 1, vec![1.0])]
}

/// What each figure counts in that of the least-squares line at `to`: 1/k + (x0 - m)(x - m)/S, for
/// k places x with the mean m and S the sum of squares about it (Draper and Smith, *Applied
/// Regression Analysis*, 3rd edition 1998, section 1.4).
fn weights(counts: &[f64], to: f64) -> Vec<f64> {
    let places: Vec<f64> = counts.iter().map(|count| count.ln()).collect();
    let mean = places.iter().sum::<f64>() / places.len() as f64;
    let squares: f64 = places.iter().map(|place| (place - mean).powi(2)).sum();
    let weight =
        |place: &f64| 1.0 / places.len() as f64 + (to.ln() - mean) * (place - mean) / squares;
    places.iter().map(weight).collect()
}

/// What the line with these weights has in each round that holds all works, in order: `works` are
/// their ln(ratio) by round.
pub(super) fn extrapolated(works: &[BTreeMap<u32, f64>], weights: &[f64]) -> Vec<f64> {
    let rounds = works.first().into_iter().flat_map(BTreeMap::keys);
    let sum = |round: &u32| {
        let ratios = works.iter().map(|work| work.get(round));
        ratios.zip(weights).map(|(ratio, weight)| Some(ratio? * weight)).sum()
    };
    rounds.filter_map(sum).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// A power of the count is extrapolated exactly, by each line.
        #[test]
        fn a_power_is_extrapolated_exactly(
            begin in -3.0..3.0f64,
            power in -2.0..2.0f64,
            steps in prop::collection::vec(1.5..50.0f64, 1..5),
            further in 1.5..1e4f64,
        ) {
            let counts = steps.iter().scan(100.0, |count, step| {
                *count *= step;
                Some(*count)
            });
            let counts: Vec<f64> = [100.0].into_iter().chain(counts).collect();
            let to = counts.last().unwrap() * further;
            let at = |count: f64| begin + power * count.ln();
            let works: Vec<BTreeMap<u32, f64>> =
                counts.iter().map(|count| BTreeMap::from([(7, at(*count))])).collect();
            let lines = lines(&counts, to);
            let largest = *counts.last().unwrap();
            for (line, expected) in lines.iter().zip([at(to), at(to), at(largest)]) {
                prop_assert!((line.iter().sum::<f64>() - 1.0).abs() < 1e-6);
                let drawn = extrapolated(&works, line);
                prop_assert!((drawn[0] - expected).abs() < 1e-6, "{drawn:?}, not {expected}");
            }
        }
    }

    #[test]
    fn what_bends_is_extrapolated_by_the_last_two_otherwise() {
        let counts = [1e4, 1e5, 1e6];
        // Ten times as many files: 0.1, then 0.4.
        let works = [0.0, 0.1, 0.5].map(|it| BTreeMap::from([(1, it), (2, it)]));
        let drawn = |line: &Vec<f64>| extrapolated(&works, line);
        let [all, last, stays] = lines(&counts, 1e7).each_ref().map(drawn);
        // The slope is (0.5 - 0.0)/2 = 0.25, through 0.2 in the middle.
        assert!((all[0] - 0.7).abs() < 1e-9, "{all:?}");
        assert!((last[1] - 0.9).abs() < 1e-9, "{last:?}");
        assert_eq!(stays, [0.5, 0.5]);
    }

    #[test]
    fn a_round_without_a_work_is_left_out() {
        let works = [BTreeMap::from([(1, 1.0), (2, 3.0)]), BTreeMap::from([(2, 4.0), (3, 5.0)])];
        assert_eq!(extrapolated(&works, &[0.5, 0.5]), [3.5]);
        assert_eq!(extrapolated(&[], &[]), [0.0; 0]);
    }
}
