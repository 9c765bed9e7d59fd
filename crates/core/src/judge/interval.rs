//! From differences, round by round, to an interval and a verdict.

use crate::model::Verdict;

use super::estimate::{Estimate, Paired};
use super::stopping::Rule;
use super::student::two_sided_quantile;

/// No figure is known better than to a billionth: each interval is wider by this on either side,
/// so that the rounding of logarithms never looks like an effect, or like one that moved.
const RESOLUTION: f64 = 1e-9;

/// Where a difference of ln(goodness) lies; infinite ends while nothing is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end, in ln units.
    pub low: f64,
    /// Upper end, in ln units.
    pub high: f64,
}

impl Interval {
    /// Anywhere.
    pub const UNBOUNDED: Interval = Interval { low: f64::NEG_INFINITY, high: f64::INFINITY };

    /// Both ends are known.
    pub fn is_bounded(self) -> bool {
        self.low.is_finite() && self.high.is_finite()
    }

    /// The verdict for a margin in ln units (METHODOLOGY, "The verdicts").
    pub fn verdict(self, margin: f64) -> Verdict {
        let Interval { low, high } = self;
        if high < 0.0 {
            return Interval { low: -high, high: -low }.verdict(margin).mirrored();
        }
        if low > margin {
            Verdict::Faster
        } else if low > 0.0 && high < margin {
            Verdict::TriviallyFaster
        } else if low > 0.0 {
            Verdict::FasterSizeOpen
        } else if -margin < low && high < margin {
            Verdict::Equivalent
        } else {
            Verdict::Undecided
        }
    }

    /// `middle` give or take `half_width` and the precision of figures.
    pub(super) fn around(middle: f64, half_width: f64) -> Interval {
        let half_width = half_width + RESOLUTION;
        Interval { low: middle - half_width, high: middle + half_width }
    }

    /// The higher lower end and the lower upper end: out of order where nothing is in both.
    fn ends_of_both(self, other: Interval) -> Interval {
        Interval { low: self.low.max(other.low), high: self.high.min(other.high) }
    }

    pub(super) fn hull(self, other: Interval) -> Interval {
        Interval { low: self.low.min(other.low), high: self.high.max(other.high) }
    }
}

/// What the rounds so far say about one difference.
///
/// Estimate, interval and verdict are of the last look alone, and one follows from the other: the
/// interval is the estimate give or take so many standard errors, the verdict is what the interval
/// says of the margin. That is sound whenever a run ends, because the intervals of all looks hold
/// the truth at once with the declared confidence ([`Rule`]). It is a function of the rounds and
/// not of when one looked; and where there is no memory, not of their order either.
///
/// So a verdict that was settled may open again while rounds go on. Two intervals without a point
/// in common mean that there was no one truth to find: `moved`, a reservation about the answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Course {
    /// Where the differences lie, in ln units: NaN before the first round, else in the interval.
    pub estimate: f64,
    /// Where the difference lies.
    pub interval: Interval,
    /// What that means for the margin.
    pub verdict: Verdict,
    /// Two looks had no point in common.
    pub moved: bool,
    /// Rounds so far.
    pub rounds: u32,
    /// Of the estimate, in ln units.
    pub standard_error: f64,
    /// How many times as wide the interval is as it would be if rounds were independent.
    pub widened: f64,
    /// The highest lower and the lowest upper end of all looks.
    common: Interval,
}

/// The means of several contenders and the standard error of a difference of any two, of rounds
/// that hold the ln(goodness) of all: with the variance that is left when rounds and contenders are
/// taken off.
#[derive(Clone, Debug)]
pub struct Pooled {
    n: f64,
    squares: f64,
    means: Vec<f64>,
}

impl Pooled {
    /// Of so many contenders, before the first round.
    pub fn new(contenders: usize) -> Pooled {
        Pooled { n: 0.0, squares: 0.0, means: vec![0.0; contenders] }
    }

    /// Takes the figures of one more round, one of each contender.
    pub fn take(&mut self, figures: &[f64]) {
        assert_eq!(figures.len(), self.means.len(), "a pooled round is complete");
        self.n += 1.0;
        let of_round = figures.iter().sum::<f64>() / figures.len() as f64;
        for (mean, figure) in self.means.iter_mut().zip(figures) {
            let step = figure - of_round - *mean;
            *mean += step / self.n;
            self.squares += step * (figure - of_round - *mean);
        }
    }

    /// The difference of two contenders by place, the first less the second.
    pub fn difference(&self, [one, other]: [usize; 2]) -> Estimate {
        let freedom = (self.n - 1.0).max(1.0) * (self.means.len() as f64 - 1.0);
        let error = (2.0 * self.squares / freedom / self.n).sqrt();
        Estimate::plain(self.means[one] - self.means[other], error)
    }
}

impl Course {
    /// Before the first round.
    pub const BEGIN: Course = Course {
        estimate: f64::NAN,
        interval: Interval::UNBOUNDED,
        verdict: Verdict::Undecided,
        moved: false,
        rounds: 0,
        standard_error: f64::INFINITY,
        widened: 1.0,
        common: Interval::UNBOUNDED,
    };

    /// The course of `differences` of ln(goodness), contender less reference, in the order of the
    /// rounds, under `rule` with `margin` in ln units.
    pub fn of(differences: &[f64], rule: &Rule, margin: f64) -> Course {
        let (mut course, mut paired) = (Course::BEGIN, Paired::default());
        differences.iter().for_each(|it| course.take(paired.take(*it), rule, margin));
        course
    }

    /// Of one look, at the end of so many runs of each.
    pub fn at_once(
        estimate: f64,
        standard_error: f64,
        interval: Interval,
        rounds: u32,
        margin: f64,
    ) -> Course {
        let verdict = interval.verdict(margin);
        Course { estimate, standard_error, interval, verdict, rounds, ..Course::BEGIN }
    }

    /// Takes one more round: the estimate of all so far.
    pub fn take(&mut self, estimate: Estimate, rule: &Rule, margin: f64) {
        let Estimate { mean, standard_error, widened, .. } = estimate;
        self.rounds += 1;
        (self.estimate, self.standard_error, self.widened) = (mean, standard_error, widened);
        let half_width = rule.half_width_of(self.rounds, &estimate);
        self.interval = match half_width.is_finite() {
            true => Interval::around(mean, half_width),
            false => Interval::UNBOUNDED,
        };
        self.common = self.common.ends_of_both(self.interval);
        self.moved = self.common.low > self.common.high;
        self.verdict = self.interval.verdict(margin);
        assert!(self.interval.low <= mean && mean <= self.interval.high, "it holds its estimate");
    }

    /// What both courses say: the interval holds both of theirs, and a verdict counts only if
    /// both give it. The estimate is this one's.
    pub fn or(self, other: &Course, margin: f64) -> Course {
        let interval = self.interval.hull(other.interval);
        let verdict = interval.verdict(margin);
        Course { interval, verdict, moved: self.moved || other.moved, ..self }
    }

    /// The variance of one round's difference, by what the estimate errs by: for noise that
    /// remembers it is larger, and never smaller than rounds scatter.
    pub(super) fn of_a_round(&self) -> f64 {
        (self.standard_error / self.widened.min(1.0)).powi(2) * f64::from(self.rounds)
    }

    /// Half the width of the interval; `None` while it is unbounded.
    fn half_width(&self) -> Option<f64> {
        let Interval { low, high } = self.interval;
        self.interval.is_bounded().then_some((high - low) / 2.0)
    }

    /// The smallest difference, in ln units, that rounds like these would have shown in four of
    /// five runs: its estimate then exceeds half the width of the interval with a chance of 80%.
    /// `None` while the interval is unbounded.
    pub fn visible(&self) -> Option<f64> {
        Some(self.half_width()? + self.usual_error())
    }

    /// What an estimate errs by in one direction in one run of five at most, in ln units.
    fn usual_error(&self) -> f64 {
        let freedom = f64::from(self.rounds.max(2) - 1);
        two_sided_quantile(0.4, freedom) * self.standard_error
    }

    /// So many rounds more would settle the verdict in four of five runs if the difference is the
    /// one estimated: until the interval no longer reaches the nearer end of the margin. It shrinks
    /// with the square root of the rounds. `None` while there is no interval, and where no number
    /// of rounds is enough because the difference is just the margin.
    pub fn rounds_to_settle(&self, margin: f64) -> Option<u32> {
        /// If more were needed it would be better to change something.
        const MOST: f64 = 10_000.0;
        let reach = self.half_width()? + self.usual_error();
        let room = (self.estimate.abs() - margin).abs();
        let rounds = (f64::from(self.rounds) * (reach / room).powi(2)).ceil();
        (rounds < MOST).then(|| (rounds as u32).saturating_sub(self.rounds).max(1))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;

    const MARGIN: f64 = 0.05;
    static CAPPED: LazyLock<Rule> = LazyLock::new(|| Rule::capped(0.05, 12));

    fn course(differences: &[f64]) -> Course {
        Course::of(differences, &CAPPED, MARGIN)
    }

    #[test]
    fn each_row_of_the_table_has_its_verdict() {
        for (low, high, verdict) in [
            (0.06, 0.09, Verdict::Faster),
            (0.01, 0.04, Verdict::TriviallyFaster),
            (0.01, 0.05, Verdict::FasterSizeOpen),
            (0.05, 0.09, Verdict::FasterSizeOpen),
            (-0.01, 0.04, Verdict::Equivalent),
            (0.0, 0.0, Verdict::Equivalent),
            (-0.05, 0.04, Verdict::Undecided),
            (-0.01, 0.05, Verdict::Undecided),
            (f64::NEG_INFINITY, f64::INFINITY, Verdict::Undecided),
        ] {
            let mirror = Interval { low: -high, high: -low };
            assert_eq!(Interval { low, high }.verdict(MARGIN), verdict, "{low} to {high}");
            assert_eq!(mirror.verdict(MARGIN), verdict.mirrored(), "mirror of {low} to {high}");
        }
    }

    #[test]
    fn nothing_is_said_before_the_first_look() {
        assert!(course(&[]).estimate.is_nan());
        let early = course(&[0.2, 0.2, 0.2]);
        assert_eq!(early.interval, Interval::UNBOUNDED);
        assert_eq!((early.verdict, early.visible()), (Verdict::Undecided, None));
    }

    #[test]
    fn identical_differences_give_a_point() {
        let same = course(&[0.1_f64.ln() - 0.0997_f64.ln(); 7]);
        assert!(same.half_width().unwrap() < 1e-8);
        assert_eq!(same.verdict, Verdict::TriviallyFaster);
        assert!(!same.moved);
        assert_eq!(course(&[0.0; 4]).verdict, Verdict::Equivalent);
    }

    #[test]
    fn looks_without_a_point_in_common_are_reported_and_the_last_one_counts() {
        let mut course = Course::BEGIN;
        let mut take = |mean| course.take(Estimate::plain(mean, 0.001), &CAPPED, MARGIN);
        (0..6).for_each(|_| take(0.1));
        (0..6).for_each(|_| take(0.2));
        assert!(course.moved && course.interval.low > 0.19, "{course:?}");
        assert_eq!(course.verdict, Verdict::Faster);
    }

    #[test]
    fn an_effect_that_moves_is_noise_that_remembers_and_no_verdict() {
        let moving = [0.10, 0.11, 0.09, 0.10, 0.11, 0.09, 0.2, 0.3, 0.2, 0.3, 0.2, 0.3];
        let course = course(&moving);
        assert_eq!((course.verdict, course.widened), (Verdict::Undecided, 2.5), "{course:?}");
    }

    /// As it was found: a stall in the last of twelve rounds had the ratio outside its interval,
    /// and in the first there was no verdict.
    #[test]
    fn one_stalled_trial_neither_decides_nor_hinders_wherever_it_is() {
        let quiet = [0.09, 0.11, 0.10, 0.08, 0.12, 0.10, 0.09, 0.11, 0.10, 0.12, 0.08];
        let verdict = |at: usize, stall: f64| {
            let mut differences = quiet.to_vec();
            differences.insert(at, stall);
            let course = course(&differences);
            assert!((course.estimate - 0.1).abs() < 0.003, "{at}: {course:?}");
            course.verdict
        };
        for stall in [-2.0, 2.0] {
            assert!((0..=11).all(|at| verdict(at, stall) == Verdict::Faster));
        }
    }

    #[test]
    fn what_would_have_been_seen_is_more_than_half_the_interval() {
        let noisy = course(&[0.1, -0.1, 0.05, -0.05, 0.1, -0.12, 0.03, -0.02]);
        assert_eq!(noisy.verdict, Verdict::Undecided);
        let half = noisy.half_width().unwrap();
        let usual = noisy.visible().unwrap() - half;
        // t of seven degrees of freedom has a fifth above 0.896.
        assert!((usual / noisy.standard_error - 0.896).abs() < 1e-3, "{usual}");
        let more = noisy.rounds_to_settle(MARGIN).unwrap();
        let room = MARGIN - noisy.estimate.abs();
        let expected = 8.0 * ((half + usual) / room).powi(2);
        assert!((f64::from(more) + 8.0 - expected).abs() <= 1.0, "{more}");
        assert_eq!(noisy.rounds_to_settle(noisy.estimate.abs()), None, "just the margin");
    }

    fn campaigns() -> impl Strategy<Value = Vec<f64>> {
        let sizes = prop::sample::select(vec![0.0, 0.02, 0.05, 0.1]);
        let noises = prop::sample::select(vec![0.0, 0.003, 0.02, 0.2]);
        let draws = prop::collection::vec(-1.0..1.0f64, 0..12);
        (sizes, noises, draws)
            .prop_map(|(size, noise, draws)| draws.iter().map(|draw| size + noise * draw).collect())
    }

    /// What is asked of it below holds for every rule: this one needs no simulation.
    static POOLED: LazyLock<Rule> = LazyLock::new(|| Rule::pooled(&[0.05], None, [4, 4]).remove(0));

    /// Rounds of four contenders.
    fn layouts() -> impl Strategy<Value = Vec<Vec<f64>>> {
        let sizes = prop::sample::select(vec![0.0, 0.02, 0.05, 0.1]);
        let noises = prop::sample::select(vec![0.0, 0.003, 0.02, 0.2]);
        let draws = prop::collection::vec(prop::collection::vec(-1.0..1.0f64, 4), 0..12);
        (sizes, noises, draws).prop_map(|(size, noise, draws)| {
            let round = |draws: &Vec<f64>| {
                draws
                    .iter()
                    .zip(0..)
                    .map(|(draw, at)| size * f64::from(at) + noise * draw)
                    .collect()
            };
            draws.iter().map(round).collect()
        })
    }

    /// The course of two contenders by place, `rule` being one of a pooled layout.
    fn pooled_course(rounds: &[Vec<f64>], pair: [usize; 2], rule: &Rule) -> Course {
        let mut pooled = Pooled::new(rounds.first().map_or(0, Vec::len));
        let mut course = Course::BEGIN;
        for figures in rounds {
            pooled.take(figures);
            course.take(pooled.difference(pair), rule, MARGIN);
        }
        course
    }

    /// The same interval but for rounding.
    fn near(one: Interval, other: Interval) -> bool {
        let near = |a: f64, b: f64| a == b || (a - b).abs() < 1e-9;
        near(one.low, other.low) && near(one.high, other.high)
    }

    #[test]
    fn two_contenders_pooled_are_a_pair() {
        let differences = [0.11, 0.09, 0.14, 0.08, 0.10, 0.13];
        let rounds: Vec<Vec<f64>> =
            differences.iter().zip(0..).map(|(d, at)| vec![d + f64::from(at), at.into()]).collect();
        let pooled = pooled_course(&rounds, [0, 1], &CAPPED);
        let pair = course(&differences);
        assert!((pooled.estimate - pair.estimate).abs() < 1e-12, "{pooled:?}");
        let independent = pair.standard_error / pair.widened;
        assert!((pooled.standard_error / independent - 1.0).abs() < 1e-9, "{pooled:?}");
    }

    /// One follows from the other.
    fn is_one_answer(course: &Course) -> bool {
        let Interval { low, high } = course.interval;
        let holds = course.rounds == 0 || (low <= course.estimate && course.estimate <= high);
        holds && course.verdict == course.interval.verdict(MARGIN)
    }

    /// Both are claims, and one of them is false. A difference below the margin may still be shown
    /// to be one.
    fn contradict(one: Verdict, other: Verdict) -> bool {
        let is_small = |it| {
            matches!(it, Verdict::Equivalent | Verdict::TriviallyFaster | Verdict::TriviallySlower)
        };
        let both_ways = one.is_better() && other.is_worse() || one.is_worse() && other.is_better();
        let is_large = |it| matches!(it, Verdict::Faster | Verdict::Slower);
        both_ways || is_small(one) && is_large(other) || is_large(one) && is_small(other)
    }

    proptest! {
        #[test]
        fn pooled_swapping_mirrors_and_scaling_and_order_change_nothing(
            rounds in layouts(),
            scale in -7.0..7.0f64,
        ) {
            let pooled = |rounds: &[Vec<f64>], pair| pooled_course(rounds, pair, &POOLED);
            let (one, other) = (pooled(&rounds, [0, 1]), pooled(&rounds, [1, 0]));
            prop_assert_eq!(one.verdict, other.verdict.mirrored());
            prop_assert_eq!(one.interval.low, -other.interval.high);
            let scaled: Vec<Vec<f64>> =
                rounds.iter().map(|round| round.iter().map(|it| it + scale).collect()).collect();
            prop_assert!(near(one.interval, pooled(&scaled, [0, 1]).interval));
            let turned: Vec<Vec<f64>> =
                rounds.iter().map(|round| round.iter().rev().copied().collect()).collect();
            prop_assert!(near(one.interval, pooled(&turned, [3, 2]).interval));
        }

        #[test]
        fn swapping_the_contenders_mirrors_everything(differences in campaigns()) {
            let negated: Vec<f64> = differences.iter().map(|d| -d).collect();
            let (one, other) = (course(&differences), course(&negated));
            prop_assert_eq!(one.verdict, other.verdict.mirrored());
            prop_assert_eq!(one.interval.low, -other.interval.high);
            prop_assert_eq!(one.interval.high, -other.interval.low);
            prop_assert_eq!((one.moved, one.widened), (other.moved, other.widened));
        }

        #[test]
        fn estimate_interval_and_verdict_are_one_answer_after_every_round(
            differences in campaigns(),
            stall in (0..12usize, -3.0..3.0f64),
            open in any::<bool>(),
        ) {
            let rule = if open { Rule::open_ended(0.05) } else { CAPPED.clone() };
            let mut differences = differences;
            if let Some(it) = differences.get_mut(stall.0) {
                *it += stall.1;
            }
            for n in 0..=differences.len() {
                let course = Course::of(&differences[..n], &rule, MARGIN);
                prop_assert!(is_one_answer(&course), "{:?}", course);
            }
        }

        #[test]
        fn the_order_of_rounds_turns_no_verdict_into_its_contrary(
            (differences, shuffled) in campaigns()
                .prop_flat_map(|it| (Just(it.clone()), Just(it).prop_shuffle())),
        ) {
            let (one, other) = (course(&differences), course(&shuffled));
            prop_assert!(!contradict(one.verdict, other.verdict), "{:?} {:?}", one, other);
            if !differences.is_empty() {
                prop_assert!((one.estimate - other.estimate).abs() < 1e-9);
                let scale = one.standard_error / one.widened;
                prop_assert!((other.standard_error / other.widened - scale).abs() < 1e-9);
            }
        }

        #[test]
        fn a_course_together_with_another_is_one_answer(
            differences in campaigns(),
            others in campaigns(),
        ) {
            let both = course(&differences).or(&course(&others), MARGIN);
            prop_assert!(is_one_answer(&both), "{:?}", both);
        }
    }
}
