//! One figure of one trial.

use serde::{Deserialize, Serialize};

use super::Unit;

/// Which direction is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// More is better, as of a rate.
    Higher,
    /// Less is better, as of a time.
    Lower,
}

impl Better {
    /// How many times as good one figure is as another; `None` where one is not above zero.
    pub fn ratio(self, one: f64, other: f64) -> Option<f64> {
        (one > 0.0 && other > 0.0).then_some(match self {
            Better::Higher => one / other,
            Better::Lower => other / one,
        })
    }
}

/// A figure with its unit and which direction is better.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// What was measured: `wall_time`, `create_rate`, `read_latency_p99`.
    pub metric: String,
    /// The figure, in `unit`.
    pub value: f64,
    /// What the figure counts.
    pub unit: Unit,
    /// Which direction is better.
    pub better: Better,
}

impl Sample {
    /// A figure where less is better.
    pub fn lower(metric: impl Into<String>, value: f64, unit: Unit) -> Self {
        Sample { metric: metric.into(), value, unit, better: Better::Lower }
    }

    /// A figure where more is better.
    pub fn higher(metric: impl Into<String>, value: f64, unit: Unit) -> Self {
        Sample { metric: metric.into(), value, unit, better: Better::Higher }
    }

    /// The logarithm of goodness: ln(rate) or -ln(time), so that more is always better
    /// (METHODOLOGY, "The effect is a ratio"). `None` where there is no logarithm: of zero, of a
    /// negative, of what is not a number.
    pub fn goodness(&self) -> Option<f64> {
        let ln = (self.value > 0.0 && self.value.is_finite()).then(|| self.value.ln())?;
        Some(match self.better {
            Better::Higher => ln,
            Better::Lower => -ln,
        })
    }
}

/// A program's own words as part of a metric's name: `Initial writers` is `initial_writers`.
pub fn as_metric(words: &str) -> String {
    let words = words.split(|c: char| !c.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join("_").to_ascii_lowercase()
}

/// The middle value, or the mean of the two in the middle; `None` of nothing.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    Some(f64::midpoint(sorted[last / 2], sorted[last.div_ceil(2)]))
}

/// An interval of the median of what the values are drawn from, at `confidence` or more: from the
/// value at place k from below to that from above, where fewer than k of n lie below a median with
/// a small enough binomial chance (Conover, Practical Nonparametric Statistics, 1999, section 3.2).
/// `None` of values too few for it: five at 95%.
pub fn median_interval(values: impl IntoIterator<Item = f64>, confidence: f64) -> Option<[f64; 2]> {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let allowed = (1.0 - confidence) / 2.0;
    // The chance that so many of n lie below the median, and that so many or fewer do.
    let (mut chance, mut tail, mut below) = (0.5_f64.powi(i32::try_from(n).ok()?), 0.0, 0);
    while below < n && tail + chance <= allowed {
        tail += chance;
        chance *= (n - below) as f64 / (below + 1) as f64;
        below += 1;
    }
    (below > 0).then(|| [sorted[below - 1], sorted[n - below]])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ranks are those of printed tables (Conover's table A3; Dixon and Massey, table A-25).
    #[test]
    fn the_interval_of_a_median_goes_by_ranks() {
        let ranks = |n: u32, confidence| median_interval((1..=n).rev().map(f64::from), confidence);
        for (n, low) in [(6, 1.0), (8, 1.0), (9, 2.0), (12, 3.0), (20, 6.0)] {
            assert_eq!(ranks(n, 0.95), Some([low, f64::from(n) + 1.0 - low]), "{n}");
        }
        assert_eq!(ranks(5, 0.95), None);
        assert_eq!(ranks(0, 0.95), None);
        assert_eq!(ranks(12, 0.99), Some([2.0, 11.0]));
    }

    #[test]
    fn the_median_of_an_even_number_is_between_the_two() {
        assert_eq!(median([3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median([4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median([]), None);
    }
}
