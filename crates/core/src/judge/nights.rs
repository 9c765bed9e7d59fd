//! The figures of nights, with what each of them counts, and how steps and lines fit them.
//!
//! How much nights differ without any cause is unknown beforehand, so it is estimated from the
//! nights themselves; the uncertainty within a night decides how much it counts against the others:
//! its weight is 1 / (tau^2 + v), with v the variance of its figure and tau^2 that between nights.

use std::ops::Range;

/// Nights in a stretch, and before or after it if there are any, at least.
pub const NIGHTS_MIN: usize = 2;

/// No figure is known better: the squares of nights that are all the same.
pub const SQUARES_MIN: f64 = 1e-18;

/// What one night says.
#[derive(Clone, Copy, Debug)]
pub struct Night {
    /// ln(goodness), or its difference to the reference's.
    pub value: f64,
    /// The variance of what it is the mean of, round by round.
    pub of_a_round: f64,
    /// So many rounds.
    pub rounds: u32,
}

/// How much better steps explain nights than a line does: ln of the squares that the line leaves
/// over those that are left by the stretch that explains most, and by two steps of any size.
#[derive(Clone, Copy, Debug)]
pub struct ForSteps {
    /// By the one stretch.
    pub by_a_stretch: f64,
    /// By the two steps.
    pub by_two: f64,
}

/// A straight line over the places.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    middle: f64,
    mean: f64,
    /// The change per place.
    pub slope: f64,
}

impl Line {
    /// Its height at a place.
    pub fn at(self, place: usize) -> f64 {
        self.mean + self.slope * (place as f64 - self.middle)
    }
}

/// Values with weights, and the sums over the first so many of them.
#[derive(Clone, Debug)]
pub struct Weighted {
    /// About a middle.
    pub values: Vec<f64>,
    /// 1 on average.
    pub weights: Vec<f64>,
    /// Of weights, weighted values and weighted squares.
    sums: Vec<[f64; 3]>,
}

impl Weighted {
    /// The nights, about their mean; the weights are 1 on average.
    pub fn of(nights: &[Night]) -> Weighted {
        let variances = variances(nights);
        let between = between(nights, &variances);
        let weights: Vec<f64> =
            variances.iter().map(|it| 1.0 / (between + it).max(SQUARES_MIN)).collect();
        let mean = weights.iter().sum::<f64>() / weights.len() as f64;
        let weights = weights.iter().map(|it| it / mean).collect();
        let values: Vec<f64> = nights.iter().map(|night| night.value).collect();
        Weighted::new(&values, weights)
    }

    /// Values that count alike.
    pub fn alike(values: &[f64]) -> Weighted {
        Weighted::new(values, vec![1.0; values.len()])
    }

    /// Values with these weights.
    pub fn new(values: &[f64], weights: Vec<f64>) -> Weighted {
        // About a middle, so that no digits are lost.
        let middle = values.iter().sum::<f64>() / values.len().max(1) as f64;
        let values: Vec<f64> = values.iter().map(|value| value - middle).collect();
        let mut sum = [0.0; 3];
        let mut sums = vec![sum];
        for (value, w) in values.iter().zip(&weights) {
            sum = [sum[0] + w, sum[1] + w * value, sum[2] + w * value * value];
            sums.push(sum);
        }
        Weighted { values, weights, sums }
    }

    /// How many they are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Some of them.
    pub fn part(&self, range: Range<usize>) -> Weighted {
        Weighted::new(&self.values[range.clone()], self.weights[range].to_vec())
    }

    /// In another order.
    pub fn in_order(&self, order: &[usize]) -> Weighted {
        let of = |all: &[f64]| order.iter().map(|&place| all[place]).collect::<Vec<f64>>();
        Weighted::new(&of(&self.values), of(&self.weights))
    }

    fn sum(&self, range: &Range<usize>) -> [f64; 3] {
        let (from, to) = (self.sums[range.start], self.sums[range.end]);
        [to[0] - from[0], to[1] - from[1], to[2] - from[2]]
    }

    /// The weights of a stretch together.
    pub fn weight(&self, range: Range<usize>) -> f64 {
        self.sum(&range)[0]
    }

    /// The weighted mean of a stretch.
    pub fn mean(&self, range: &Range<usize>) -> f64 {
        let [weight, values, _] = self.sum(range);
        values / weight
    }

    /// Weighted squares about the mean.
    pub fn squares_of(&self, range: Range<usize>) -> f64 {
        let [weight, values, squares] = self.sum(&range);
        (squares - values * values / weight).max(0.0)
    }

    /// Weighted squares of all about their mean.
    pub fn squares(&self) -> f64 {
        self.squares_of(0..self.len())
    }

    /// The mean of a stretch less that of all others.
    pub fn stands_out_by(&self, stretch: &Range<usize>) -> f64 {
        let [weight, values, _] = self.sum(stretch);
        let [all, of_all, _] = self.sums[self.len()];
        values / weight - (of_all - values) / (all - weight)
    }

    /// The stretch that explains most of the squares, and the share that it explains. `None` of too
    /// few nights, or of nights that are all the same.
    pub fn clearest(&self) -> Option<(Range<usize>, f64)> {
        let count = self.len();
        let squares = self.squares();
        if squares <= SQUARES_MIN {
            return None;
        }
        let all = self.sums[count];
        let is_end = |place: usize| {
            place == 0
                || place == count
                || (NIGHTS_MIN..=count.saturating_sub(NIGHTS_MIN)).contains(&place)
        };
        let mut best: Option<(Range<usize>, f64)> = None;
        for start in (0..count).filter(|&start| is_end(start)) {
            let from = self.sums[start];
            let most = count.min(start + count.saturating_sub(NIGHTS_MIN));
            for end in (start + NIGHTS_MIN..=most).filter(|&end| is_end(end)) {
                let (weight, values) = (self.sums[end][0] - from[0], self.sums[end][1] - from[1]);
                let out_by = values / weight - (all[1] - values) / (all[0] - weight);
                let explained = out_by * out_by * weight * (all[0] - weight) / all[0] / squares;
                if best.as_ref().is_none_or(|(_, other)| explained > *other) {
                    best = Some((start..end, explained));
                }
            }
        }
        best
    }

    /// See [`ForSteps`].
    pub fn for_steps(&self) -> ForSteps {
        let of_line = self.squares_about(self.line()).max(SQUARES_MIN).ln();
        let mut of_two = f64::INFINITY;
        let last = self.len() - NIGHTS_MIN;
        for one in NIGHTS_MIN..=last {
            let before = self.squares_of(0..one);
            of_two = of_two.min(before + self.squares_of(one..self.len()));
            for other in one + NIGHTS_MIN..=last {
                let inner = self.squares_of(one..other);
                of_two = of_two.min(before + inner + self.squares_of(other..self.len()));
            }
        }
        let explained = self.clearest().map_or(0.0, |(_, explained)| explained);
        let of_stretch = self.squares() * (1.0 - explained);
        ForSteps {
            by_a_stretch: of_line - of_stretch.max(SQUARES_MIN).ln(),
            by_two: of_line - of_two.max(SQUARES_MIN).ln(),
        }
    }

    /// The straight line with the least weighted squares.
    pub fn line(&self) -> Line {
        let weight = self.sums[self.len()][0];
        let places = || self.weights.iter().zip(0..).map(|(w, place)| (w, f64::from(place)));
        let middle = places().map(|(w, place)| w * place).sum::<f64>() / weight;
        let mean = self.mean(&(0..self.len()));
        let spread: f64 = places().map(|(w, place)| w * (place - middle).powi(2)).sum();
        let along = places().zip(&self.values);
        let along: f64 = along.map(|((w, place), value)| w * (place - middle) * value).sum();
        Line { middle, mean, slope: along / spread }
    }

    /// Weighted squares about a line.
    pub fn squares_about(&self, line: Line) -> f64 {
        let left = |place: usize| self.values[place] - line.at(place);
        (0..self.len()).map(|place| self.weights[place] * left(place).powi(2)).sum()
    }
}

/// The variance of each night's figure. That of few rounds is badly known, so that all nights lend
/// each other some (Smyth, Statistical Applications in Genetics and Molecular Biology 3, 2004; with
/// the weight of the others declared).
fn variances(nights: &[Night]) -> Vec<f64> {
    const OTHERS: f64 = 4.0;
    let known = nights.iter().filter(|night| night.rounds > 1);
    let common = middle(known.map(|night| night.of_a_round).collect());
    let variance = |night: &Night| {
        let freedom = f64::from(night.rounds.saturating_sub(1));
        let of_a_round = (OTHERS * common + freedom * night.of_a_round) / (OTHERS + freedom);
        of_a_round / f64::from(night.rounds.max(1))
    };
    nights.iter().map(variance).collect()
}

/// The variance between nights: by the median of the squares of successive differences, in which a
/// change counts once, less what the nights' own variances explain.
fn between(nights: &[Night], variances: &[f64]) -> f64 {
    /// The median of chi squared with one degree of freedom.
    const MEDIAN: f64 = 0.454_94;
    let squares = nights.windows(2).map(|pair| (pair[1].value - pair[0].value).powi(2));
    let of_both = middle(squares.collect()) / MEDIAN;
    (of_both / 2.0 - middle(variances.to_vec())).max(0.0)
}

fn middle(values: Vec<f64>) -> f64 {
    crate::model::median(values).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_night_that_is_badly_known_counts_less() {
        let quiet = Night { value: 0.0, of_a_round: 1e-4, rounds: 12 };
        let mut nights = vec![quiet; 11];
        nights.push(Night { of_a_round: 0.04, rounds: 2, ..quiet });
        let weights = Weighted::of(&nights).weights;
        assert!(weights[11] < 0.3 && weights[0] > 1.0, "{weights:?}");
        assert!((weights.iter().sum::<f64>() - 12.0).abs() < 1e-9);
    }
}
