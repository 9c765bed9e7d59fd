//! From the differences of the rounds so far to their mean and its standard error, where some of
//! them outlie, or where the noise remembers (METHODOLOGY, "The effect is a ratio").

use std::sync::LazyLock;

use crate::student::{two_sided_quantile, two_sided_tail};

/// The chance that normal noise has any round outlie.
const OUTLYING: f64 = 0.005;

/// At most one round of so many outlies: what is more frequent is how it is.
const ROUNDS_FOR_EACH: usize = 6;

/// At most so many rounds outlie, so that a look at them costs the same however many there are.
const OUTLYING_MOST: usize = 20;

/// In few rounds the factor for noise that remembers is the ratio of variances to this power.
const MEMORY_POWER: i32 = 2;

/// The least and the largest that the factor is.
const MEMORY: [f64; 2] = [0.7, 2.5];

/// Up to so many rounds it is; with more the power falls, as the ratio is known better.
pub const FEW_ROUNDS: f64 = 12.0;

/// What some rounds say of a difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Mean of the differences that do not outlie, in ln units.
    pub mean: f64,
    /// Its standard error, in ln units.
    pub standard_error: f64,
    /// How many times as large that is as it would be if rounds were independent: less than once
    /// where they go to and fro.
    pub widened: f64,
    /// So many rounds outlie.
    pub outlying: usize,
}

impl Estimate {
    /// For rounds that are taken as independent, without outliers.
    pub fn plain(mean: f64, standard_error: f64) -> Estimate {
        Estimate { mean, standard_error, widened: 1.0, outlying: 0 }
    }
}

/// Differences that come one by one.
///
/// Whatever estimates a difference round by round stands here: a course asks for no more than an
/// [`Estimate`] after each. A round costs what those that outlie cost, and its place among the
/// others.
#[derive(Clone, Debug, Default)]
pub struct Paired {
    /// In the order of the rounds.
    differences: Vec<f64>,
    /// By size, with their places in that order: those up to the last look.
    sorted: Vec<(f64, usize)>,
    /// The smallest and the largest.
    ends: [f64; 2],
    /// About the first difference, so that what all have in common takes no digits.
    all: Sums,
    /// Squares of what changes from each round to the next.
    steps: f64,
}

/// How many values, their sum and the sum of their squares.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    n: f64,
    sum: f64,
    squares: f64,
}

impl Sums {
    fn add(&mut self, value: f64, times: f64) {
        self.n += times;
        self.sum += times * value;
        self.squares += times * value * value;
    }

    fn mean(&self) -> f64 {
        self.sum / self.n
    }

    /// Squares about the mean.
    fn scatter(&self) -> f64 {
        (self.squares - self.sum * self.sum / self.n).max(0.0)
    }
}

/// What is left when the outlying differences are set aside: the places in `sorted` of the others,
/// and their sums.
#[derive(Clone, Copy, Debug)]
struct Kept {
    from: usize,
    to: usize,
    sums: Sums,
}

impl Paired {
    /// Before the first round.
    pub fn clear(&mut self) {
        self.differences.clear();
        self.sorted.clear();
        (self.ends, self.all, self.steps) = Default::default();
    }

    /// Takes the difference of one more round; gives what all so far say.
    pub fn take(&mut self, difference: f64) -> Estimate {
        self.push(difference);
        self.estimate()
    }

    /// Takes the difference of one more round, after which nobody looks.
    pub fn push(&mut self, difference: f64) {
        self.append(difference);
        self.sort();
    }

    /// Takes the difference of one more round; gives what all so far say where the mean may lie
    /// more than so many standard errors from 0.
    pub(crate) fn take_beyond(
        &mut self,
        difference: f64,
        standard_errors: f64,
    ) -> Option<Estimate> {
        self.append(difference);
        self.may_lie_beyond(standard_errors).then(|| {
            self.sort();
            self.estimate()
        })
    }

    fn append(&mut self, difference: f64) {
        if let Some(before) = self.differences.last() {
            self.steps += (difference - before).powi(2);
        }
        let [low, high] = match self.differences.is_empty() {
            true => [difference; 2],
            false => self.ends,
        };
        self.ends = [low.min(difference), high.max(difference)];
        self.differences.push(difference);
        self.all.add(difference - self.differences[0], 1.0);
    }

    /// Puts those that were not looked at into their places.
    fn sort(&mut self) {
        for place in self.sorted.len()..self.differences.len() {
            let difference = self.differences[place];
            let at = self.sorted.partition_point(|(value, _)| value.total_cmp(&difference).is_le());
            self.sorted.insert(at, (difference, place));
        }
    }

    /// No only where no difference outlies, and the mean is within the bound however little the
    /// standard error is widened.
    fn may_lie_beyond(&self, standard_errors: f64) -> bool {
        /// What rounding may take off.
        const ROUNDING: f64 = 1.0 - 1e-9;
        let Sums { n, sum, squares } = self.all;
        let least = standard_errors * MEMORY[0] * ROUNDING;
        // The mean n times, and the squares about it.
        let (all, scatter) = (sum + n * self.differences[0], n * squares - sum * sum);
        all * all * (n - 1.0) >= least * least * scatter || self.may_outlie()
    }

    /// Whether any difference may outlie. Where three or more may, from 18 rounds on, it says yes
    /// without a look. The second to be taken off lies no further out than the ends of all do.
    fn may_outlie(&self) -> bool {
        let most = self.differences.len() / ROUNDS_FOR_EACH;
        let [low, high] = self.ends.map(|end| end - self.differences[0]);
        let mut left = self.all;
        let mut is_next_too_far = || {
            let mean = left.mean();
            let (below, above) = (mean - low, high - mean);
            let is_it = is_too_far(left, below.max(above));
            left.add(if below > above { low } else { high }, -1.0);
            is_it
        };
        most > 2 || (0..most).any(|_| is_next_too_far())
    }

    /// The places of the differences that outlie, in the order of the rounds, from 0.
    pub fn outlying(&self) -> Vec<usize> {
        let kept = self.kept();
        let mut places: Vec<usize> = self.outside(kept).map(|(_, place)| *place).collect();
        places.sort_unstable();
        places
    }

    /// The last differences, so many at most; those that outlie are moved to the nearest that does
    /// not.
    pub fn recent(&self, most: usize) -> Vec<f64> {
        if self.differences.is_empty() {
            return Vec::new();
        }
        let [low, high] = self.ends(self.kept());
        let from = self.differences.len().saturating_sub(most);
        self.differences[from..].iter().map(|it| it.clamp(low, high)).collect()
    }

    /// The mean is that of the differences that do not outlie. Its standard error is that of a
    /// trimmed mean: of all differences, those that outlie being moved to the nearest that does
    /// not, times n / h where h do not (Tukey and McLaughlin, Sankhya A 25, 1963).
    fn estimate(&self) -> Estimate {
        let kept = self.kept();
        let (first, n) = (self.differences[0], self.all.n);
        let [low, high] = self.ends(kept);
        let mut moved = kept.sums;
        moved.add(low - first, kept.from as f64);
        moved.add(high - first, (self.sorted.len() - kept.to) as f64);
        let scatter = moved.scatter();
        let error = (scatter / (n - 1.0).max(1.0) / n).sqrt() * n / kept.sums.n;
        let widened = widening(n, scatter, self.steps_within(kept));
        Estimate {
            mean: first + kept.sums.mean(),
            standard_error: error * widened,
            widened,
            outlying: self.sorted.len() - (kept.to - kept.from),
        }
    }

    /// The differences that do not outlie: the generalized extreme studentized deviate test
    /// (Rosner, Technometrics 25, 1983). The one that lies furthest out is taken off, as often as
    /// some may outlie; all those outlie that were taken off up to the last one that lay too far.
    fn kept(&self) -> Kept {
        let count = self.sorted.len();
        let mut left = Kept { from: 0, to: count, sums: self.all };
        let mut kept = left;
        let Some(&first) = self.differences.first() else { return kept };
        for _ in 0..(count / ROUNDS_FOR_EACH).min(OUTLYING_MOST) {
            let [low, high] = self.ends(left).map(|end| end - first);
            let mean = left.sums.mean();
            let (below, above) = (mean - low, high - mean);
            // Of two that are equally far out neither is the outlier.
            if below == above {
                break;
            }
            let deviation = below.max(above);
            let lies_out = is_too_far(left.sums, deviation);
            if below > above {
                left.from += 1;
                left.sums.add(low, -1.0);
            } else {
                left.to -= 1;
                left.sums.add(high, -1.0);
            }
            if lies_out {
                kept = left;
            }
        }
        kept
    }

    /// The smallest and the largest of those kept.
    fn ends(&self, kept: Kept) -> [f64; 2] {
        [kept.from, kept.to - 1].map(|place| self.sorted[place].0)
    }

    fn outside(&self, kept: Kept) -> impl Iterator<Item = &(f64, usize)> {
        self.sorted[..kept.from].iter().chain(&self.sorted[kept.to..])
    }

    /// Squares of what changes from each round to the next, differences that outlie being moved to
    /// the nearest that does not.
    fn steps_within(&self, kept: Kept) -> f64 {
        // Mostly none outlies, and then this costs most of a look.
        if kept.to - kept.from == self.sorted.len() {
            return self.steps;
        }
        let [low, high] = self.ends(kept);
        let ends = |(_, place): &(f64, usize)| [*place, *place + 1];
        let mut steps: Vec<usize> = self.outside(kept).flat_map(ends).collect();
        steps.sort_unstable();
        steps.dedup();
        let is_step = |end: &usize| (1..self.differences.len()).contains(end);
        let of = |end: usize| [self.differences[end - 1], self.differences[end]];
        let less = steps.into_iter().filter(is_step).map(|end| {
            let [before, now] = of(end);
            (now - before).powi(2) - (now.clamp(low, high) - before.clamp(low, high)).powi(2)
        });
        (self.steps - less.sum::<f64>()).max(0.0)
    }
}

/// Whether, of normal values with these sums, the one that lies furthest out lies too far: by t of
/// the deviation over that of the others, at [`OUTLYING`] for all of them together.
fn is_too_far(sums: Sums, deviation: f64) -> bool {
    /// From how many values on the point is not kept.
    const KEPT: usize = 128;
    static SQUARES: LazyLock<Vec<f64>> = LazyLock::new(|| {
        let square = |n: usize| two_sided_quantile(OUTLYING / n as f64, n as f64 - 2.0).powi(2);
        (0..KEPT).map(|n| if n < 3 { f64::INFINITY } else { square(n) }).collect()
    });
    let n = sums.n;
    let own = deviation * deviation * n / (n - 1.0);
    let of_others = (sums.scatter() - own).max(0.0) / (n - 2.0);
    match SQUARES.get(n as usize) {
        Some(square) => own > square * of_others,
        // Below four standard deviations none of so many is too far out.
        None => {
            let square = own / of_others;
            square > 16.0 && two_sided_tail(square.sqrt(), n - 2.0) * n < OUTLYING
        }
    }
}

/// How many times as large the standard error of a mean is for noise that remembers: by the ratio
/// q of the variance to that of the steps from one round to the next, which is 1 where it does not
/// (von Neumann, Annals of Mathematical Statistics 12, 1941) and 1 / (1 - phi) where it is AR(1).
///
/// AR(1) asks for sqrt((1 + phi) / (1 - phi)) = sqrt(2 q - 1). Few rounds show less memory than
/// there is, and less scatter: q^2 bears that, by calibration (docs/validation.md). It is below 1
/// where rounds go to and fro, which speaks against memory.
fn widening(n: f64, scatter: f64, steps: f64) -> f64 {
    let ratio = 2.0 * scatter / steps;
    if !ratio.is_finite() {
        return 1.0;
    }
    let [least, most] = MEMORY;
    let powered = match n <= FEW_ROUNDS {
        true => ratio.powi(MEMORY_POWER),
        false => ratio.powf(f64::from(MEMORY_POWER) * FEW_ROUNDS / n),
    };
    powered.clamp(least, most).max((2.0 * ratio - 1.0).max(0.0).sqrt())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::stopping::Normals;

    fn of(differences: &[f64]) -> (Estimate, Vec<usize>) {
        let mut paired = Paired::default();
        let last = differences.iter().map(|it| paired.take(*it)).last();
        (last.expect("there are rounds"), paired.outlying())
    }

    /// The same by its definition, all rounds at once.
    fn plainly(differences: &[f64]) -> Estimate {
        let (_, outlying) = of(differences);
        let n = differences.len() as f64;
        let is_kept = |place: &usize| !outlying.contains(place);
        let kept: Vec<f64> =
            (0..differences.len()).filter(is_kept).map(|place| differences[place]).collect();
        let low = kept.iter().copied().fold(f64::INFINITY, f64::min);
        let high = kept.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let moved: Vec<f64> = differences.iter().map(|it| it.clamp(low, high)).collect();
        let of_moved = moved.iter().sum::<f64>() / n;
        let scatter: f64 = moved.iter().map(|it| (it - of_moved).powi(2)).sum();
        let steps = moved.windows(2).map(|two| (two[1] - two[0]).powi(2)).sum();
        let widened = widening(n, scatter, steps);
        let error = (scatter / (n - 1.0).max(1.0) / n).sqrt() * n / kept.len() as f64;
        Estimate {
            mean: kept.iter().sum::<f64>() / kept.len() as f64,
            standard_error: error * widened,
            widened,
            outlying: outlying.len(),
        }
    }

    #[test]
    fn a_stall_is_set_aside_and_what_is_frequent_is_not() {
        let quiet = [0.10, 0.11, 0.09, 0.10, 0.12, 0.08, 0.10];
        assert_eq!(of(&quiet).1.len(), 0);
        let (stalled, outlying) = of(&[quiet.as_slice(), &[1.5]].concat());
        assert_eq!((outlying, stalled.outlying), (vec![7], 1));
        assert!((stalled.mean - 0.1).abs() < 1e-12 && stalled.standard_error < 0.01);
        let (early, outlying) = of(&[0.1, 0.1, 5.0, 0.1, 0.1]);
        assert_eq!((outlying.len(), early.outlying), (0, 0), "one of five may be how it is");
        let (_, two) = of(&[quiet.as_slice(), &quiet, &[1.5, 1.6]].concat());
        assert_eq!(two, [14, 15], "neither hides the other");
        let modes = [0.1, 0.9, 0.11, 0.1, 0.91, 0.1, 0.9, 0.1, 0.12, 0.1, 0.9, 0.1];
        assert!(of(&modes).1.is_empty());
    }

    #[test]
    fn normal_noise_seldom_outlies() {
        let mut normals = Normals::seeded(0);
        let mut campaign = || (0..12).map(|_| normals.draw()).collect::<Vec<f64>>();
        let some = (0..10_000).filter(|_| !of(&campaign()).1.is_empty()).count();
        assert!((25..110).contains(&some), "{some} of 10,000");
    }

    #[test]
    fn noise_that_remembers_widens_by_what_it_asks_for() {
        assert_eq!(widening(12.0, 1.0, 2.0), 1.0);
        assert_eq!(widening(12.0, 0.9, 2.0), 0.8_f64.sqrt(), "as AR(1) asks for");
        assert_eq!(widening(12.0, 1.0, 3.0), 0.7, "of four ninths");
        assert_eq!(widening(12.0, 1.25, 2.0), 1.25_f64.powi(2));
        assert_eq!(widening(12.0, 2.0, 2.0), 2.5, "of 4");
        assert_eq!(widening(48.0, 1.25, 2.0), 1.5_f64.sqrt(), "as AR(1) asks for");
        assert_eq!(widening(1000.0, 2.0, 2.0), 3.0_f64.sqrt());
        assert_eq!(widening(4.0, 0.0, 0.0), 1.0);
        let (drifting, _) = of(&[0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]);
        assert!(drifting.widened >= 2.5, "{drifting:?}");
        let (to_and_fro, _) = of(&[0.0, 0.1, 0.0, 0.1, 0.0, 0.1, 0.0, 0.1]);
        assert_eq!(to_and_fro.widened, 0.7);
    }

    proptest! {
        #[test]
        fn one_by_one_is_all_at_once(
            quiet in prop::collection::vec(-0.1..0.1f64, 1..60),
            stalls in prop::collection::vec((0..60usize, -5.0..5.0f64), 0..6),
        ) {
            let mut differences = quiet;
            for (place, stall) in stalls {
                if let Some(it) = differences.get_mut(place) {
                    *it += stall;
                }
            }
            let (one, all) = (of(&differences).0, plainly(&differences));
            prop_assert!((one.mean - all.mean).abs() < 1e-9);
            prop_assert!((one.widened / all.widened - 1.0).abs() < 1e-6);
            let error = all.standard_error;
            prop_assert!((one.standard_error - error).abs() <= 1e-6 * error + 1e-12);
        }

        #[test]
        fn who_looks_beyond_misses_nothing_that_lies_there(
            mut differences in prop::collection::vec(-1.0..1.0f64, 1..30),
            stall in (0..30usize, -50.0..50.0f64),
            standard_errors in 0.0..6.0f64,
        ) {
            if let Some(it) = differences.get_mut(stall.0) {
                *it += stall.1;
            }
            let (mut all, mut some) = (Paired::default(), Paired::default());
            for difference in differences {
                let estimate = all.take(difference);
                match some.take_beyond(difference, standard_errors) {
                    Some(looked) => prop_assert_eq!(looked, estimate),
                    None => {
                        let Estimate { mean, standard_error, .. } = estimate;
                        prop_assert!(mean.abs() <= standard_errors * standard_error);
                    }
                }
            }
        }
    }
}
