//! Runs that are of no rounds: the difference of two means, by Welch's interval.
//!
//! With n runs of mean m and variance s^2 each, the difference is known within
//!
//! ```text
//! t sqrt(s1^2/n1 + s2^2/n2)
//! ```
//!
//! with (s1^2/n1 + s2^2/n2)^2 / ((s1^2/n1)^2/(n1-1) + (s2^2/n2)^2/(n2-1)) degrees of freedom
//! (Welch, "The generalization of 'Student's' problem when several different population variances
//! are involved", Biometrika 34, 1947). It assumes that the runs were not stopped when they looked
//! good.

use super::interval::{Course, Interval};
use super::pairs::Series;
use super::stopping::FIRST_LOOK;
use super::student::{two_sided_quantile, welch};
use crate::model::median;

/// Runs by their number, mean and variance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// How many there are.
    pub runs: u32,
    /// Their mean.
    pub mean: f64,
    /// Their variance, with runs - 1 in the denominator.
    pub variance: f64,
}

impl Summary {
    /// Of ln(goodness).
    fn of(series: &Series) -> Summary {
        let values: Vec<f64> = figures(series).map(|(_, goodness)| goodness).collect();
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|it| (it - mean).powi(2)).sum();
        Summary { runs: values.len() as u32, mean, variance: squares / (count - 1.0).max(1.0) }
    }

    /// Of the logarithm of figures with that mean and deviation (the delta method).
    pub fn of_logarithm(runs: u32, mean: f64, deviation: f64) -> Summary {
        Summary { runs, mean: mean.ln(), variance: (deviation / mean).powi(2) }
    }

    /// Of the mean.
    fn error_squared(self) -> f64 {
        self.variance / f64::from(self.runs)
    }

    /// Where `self` less `other` lies, with that chance to miss it; anywhere, where one has a
    /// single run.
    pub fn less(self, other: Summary, alpha: f64) -> Interval {
        if self.runs.min(other.runs) < 2 {
            return Interval::UNBOUNDED;
        }
        let both = [self, other];
        let (error, freedom) = welch(both.map(Summary::error_squared), both.map(|it| it.runs));
        let half_width = two_sided_quantile(alpha, freedom) * error;
        Interval::around(self.mean - other.mean, half_width)
    }
}

/// Raw values with their ln(goodness).
fn figures(series: &Series) -> impl Iterator<Item = (f64, f64)> {
    let figure = |round| series.get(round).map(|it| (it.value, it.goodness));
    series.rounds(..).filter_map(figure)
}

/// What the runs of a contender and of the reference say about their difference. One look is taken,
/// at the end.
pub fn course([contender, reference]: [&Series; 2], alpha: f64, margin: f64) -> Course {
    let (one, other) = (Summary::of(contender), Summary::of(reference));
    let rounds = one.runs.min(other.runs);
    if rounds == 0 {
        return Course::BEGIN;
    }
    let standard_error = (one.error_squared() + other.error_squared()).sqrt();
    let interval = match rounds < FIRST_LOOK {
        true => Interval::UNBOUNDED,
        false => one.less(other, alpha),
    };
    Course::at_once(one.mean - other.mean, standard_error, interval, rounds, margin)
}

/// Medians of the raw values, and how many there are.
pub fn medians(both: [&Series; 2]) -> ([Option<f64>; 2], [u32; 2]) {
    let middle = |series: &Series| median(figures(series).map(|(value, _)| value));
    (both.map(middle), both.map(|series| series.len() as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of NIST/SEMATECH, e-Handbook 7.3.1 has pooled variances; this is Welch's own
    /// shape: unequal variances and numbers. Checked by hand: se^2 = 4/10 + 1/5, so that there are
    /// 0.36 / (0.16/9 + 0.04/4) = 12.96 degrees of freedom.
    #[test]
    fn the_interval_is_that_of_welch() {
        let one = Summary { runs: 10, mean: 5.0, variance: 4.0 };
        let other = Summary { runs: 5, mean: 3.0, variance: 1.0 };
        let Interval { low, high } = one.less(other, 0.05);
        let half_width = two_sided_quantile(0.05, 12.96) * 0.6_f64.sqrt();
        assert!((low - (2.0 - half_width)).abs() < 1e-6, "{low} to {high}");
        assert!((high - (2.0 + half_width)).abs() < 1e-6, "{low} to {high}");
        let mirrored = other.less(one, 0.05);
        assert_eq!((mirrored.low, mirrored.high), (-high, -low));
    }

    #[test]
    fn one_run_says_nothing_and_equal_ones_everything() {
        let of = |runs| Summary { runs, mean: 1.0, variance: 0.0 };
        assert_eq!(of(1).less(of(30), 0.05), Interval::UNBOUNDED);
        assert!(of(2).less(of(2), 0.05).is_bounded());
        let Interval { low, high } = of(4).less(of(4), 0.05);
        assert!(low < 0.0 && 0.0 < high && high < 1e-8);
    }
}
