//! From differences, round by round, to an interval and a verdict.

use crate::model::Verdict;

use super::stopping::Rule;

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

    /// `middle` give or take `half_width`, and what no figure is known better than.
    pub(super) fn around(middle: f64, half_width: f64) -> Interval {
        let half_width = half_width + RESOLUTION;
        Interval { low: middle - half_width, high: middle + half_width }
    }

    fn intersection(self, other: Interval) -> Option<Interval> {
        let both = Interval { low: self.low.max(other.low), high: self.high.min(other.high) };
        (both.low <= both.high).then_some(both)
    }

    fn hull(self, other: Interval) -> Interval {
        Interval { low: self.low.min(other.low), high: self.high.max(other.high) }
    }
}

/// What the rounds so far say about one difference.
///
/// The intervals of successive looks are intersected: all of them hold the truth at once with the
/// declared confidence, so that a settled verdict stays settled. *Faster* stays *faster*;
/// *equivalent* can only sharpen to a trivial difference, which is as small.
///
/// An empty intersection means that there was no one truth to find: `moved`. A verdict settled
/// before that is kept with its interval, under this reservation. One that was open stays open for
/// good: its interval becomes the hull of the last intersection and all later intervals, and what
/// contains an interval without a settled verdict has none either.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Course {
    /// Mean of the differences in ln units: NaN before the first round. Where late rounds pull,
    /// it may lie outside the interval.
    pub estimate: f64,
    /// Where the difference lies.
    pub interval: Interval,
    /// What that means for the margin.
    pub verdict: Verdict,
    /// Rounds after which the verdict was settled first.
    pub settled_after: Option<u32>,
    /// Some interval had no point in common with those before it.
    pub moved: bool,
    /// Rounds so far.
    pub rounds: u32,
}

/// Mean and standard error of differences that come one by one: Welford's recurrences (Knuth,
/// TAOCP 2, 4.2.2).
///
/// Whatever estimates a difference round by round stands here: a [`Course`] asks for no more than
/// the estimate and its standard error after each.
#[derive(Clone, Copy, Debug, Default)]
pub struct Paired {
    n: f64,
    mean: f64,
    squares: f64,
}

impl Paired {
    /// Takes the difference of one more round; gives mean and standard error of all so far.
    pub fn take(&mut self, difference: f64) -> (f64, f64) {
        self.n += 1.0;
        let step = difference - self.mean;
        self.mean += step / self.n;
        self.squares += step * (difference - self.mean);
        (self.mean, (self.squares / (self.n - 1.0).max(1.0) / self.n).sqrt())
    }
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

    /// The difference of two contenders by place, the first less the second, and its standard
    /// error.
    pub fn difference(&self, [one, other]: [usize; 2]) -> (f64, f64) {
        let freedom = (self.n - 1.0).max(1.0) * (self.means.len() as f64 - 1.0);
        let error = (2.0 * self.squares / freedom / self.n).sqrt();
        (self.means[one] - self.means[other], error)
    }
}

impl Course {
    /// Before the first round.
    pub const BEGIN: Course = Course {
        estimate: f64::NAN,
        interval: Interval::UNBOUNDED,
        verdict: Verdict::Undecided,
        settled_after: None,
        moved: false,
        rounds: 0,
    };

    /// The course of `differences` of ln(goodness), contender less reference, in the order of the
    /// rounds, under `rule` with `margin` in ln units.
    pub fn of(differences: &[f64], rule: &Rule, margin: f64) -> Course {
        let (mut course, mut paired) = (Course::BEGIN, Paired::default());
        differences.iter().for_each(|it| course.take(paired.take(*it), rule, margin));
        course
    }

    /// Takes one more round: the estimate of all so far and its standard error.
    pub fn take(&mut self, (estimate, standard_error): (f64, f64), rule: &Rule, margin: f64) {
        self.rounds += 1;
        self.estimate = estimate;
        let half_width = rule.half_width(self.rounds, standard_error);
        if half_width.is_finite() {
            self.look(Interval::around(estimate, half_width));
            self.verdict = self.interval.verdict(margin);
        }
        assert!(self.interval.low <= self.interval.high, "an interval has its ends in order");
        if self.verdict.is_settled() {
            self.settled_after.get_or_insert(self.rounds);
        }
    }

    /// What both courses say: the interval holds both of theirs, and a verdict that only one of
    /// them gives is none. The estimate is this one's.
    pub fn or(self, other: &Course, margin: f64) -> Course {
        let interval = self.interval.hull(other.interval);
        Course {
            interval,
            verdict: interval.verdict(margin),
            settled_after: self.settled_after.and(other.settled_after),
            moved: self.moved || other.moved,
            ..self
        }
    }

    /// The smallest difference, in ln units, that data as these could have shown: half the width
    /// of the interval. `None` while it is unbounded.
    pub fn visible(&self) -> Option<f64> {
        let Interval { low, high } = self.interval;
        self.interval.is_bounded().then_some((high - low) / 2.0)
    }

    /// Takes in the interval of one more look.
    fn look(&mut self, seen: Interval) {
        match self.interval.intersection(seen) {
            Some(both) if !self.moved => self.interval = both,
            _ => {
                self.moved = true;
                if !self.verdict.is_settled() {
                    self.interval = self.interval.hull(seen);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::super::stopping::PooledRules;
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
        assert!(same.visible().unwrap() < 1e-8);
        assert_eq!(same.verdict, Verdict::TriviallyFaster);
        assert_eq!((same.settled_after, same.moved), (Some(4), false));
        assert_eq!(course(&[0.0; 4]).verdict, Verdict::Equivalent);
    }

    #[test]
    fn an_effect_that_moves_after_it_was_settled_keeps_its_verdict_and_is_reported() {
        let steady = [0.100, 0.101, 0.099, 0.100];
        let one_outlier = course(&[steady.as_slice(), &[0.2]].concat());
        assert!(!one_outlier.moved, "the interval that holds it holds the others too");
        let moved = course(&[steady.as_slice(), &[0.2; 8]].concat());
        assert_eq!(moved.interval.high, course(&steady).interval.high);
        assert_eq!((moved.verdict, moved.moved), (Verdict::Faster, true));
    }

    #[test]
    fn an_effect_that_moves_while_it_is_open_stays_open() {
        let mut course = course(&[]);
        for (low, high) in [(-0.02, 0.06), (0.07, 0.09), (0.08, 0.085)] {
            course.look(Interval { low, high });
            course.verdict = course.interval.verdict(MARGIN);
        }
        assert_eq!(course.interval, Interval { low: -0.02, high: 0.09 });
        assert_eq!((course.verdict, course.moved), (Verdict::Undecided, true));
    }

    fn campaigns() -> impl Strategy<Value = Vec<f64>> {
        let sizes = prop::sample::select(vec![0.0, 0.02, 0.05, 0.1]);
        let noises = prop::sample::select(vec![0.0, 0.003, 0.02, 0.2]);
        let draws = prop::collection::vec(-1.0..1.0f64, 0..12);
        (sizes, noises, draws)
            .prop_map(|(size, noise, draws)| draws.iter().map(|draw| size + noise * draw).collect())
    }

    /// What is asked of it below holds for every rule: this one needs no simulation.
    static POOLED: LazyLock<Rule> = LazyLock::new(|| PooledRules::new(0.05, None, 4).of(4));

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
        assert!(near(pooled.interval, course(&differences).interval), "{pooled:?}");
        assert_eq!(pooled.verdict, course(&differences).verdict);
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
            prop_assert_eq!(one.settled_after, other.settled_after);
            let scaled: Vec<Vec<f64>> =
                rounds.iter().map(|round| round.iter().map(|it| it + scale).collect()).collect();
            prop_assert!(near(one.interval, pooled(&scaled, [0, 1]).interval));
            let turned: Vec<Vec<f64>> =
                rounds.iter().map(|round| round.iter().rev().copied().collect()).collect();
            prop_assert!(near(one.interval, pooled(&turned, [3, 2]).interval));
        }

        #[test]
        fn pooled_more_rounds_never_undo_a_settled_verdict(rounds in layouts()) {
            let mut settled: Option<Verdict> = None;
            for n in 0..=rounds.len() {
                let now = pooled_course(&rounds[..n], [0, 1], &POOLED).verdict;
                let small = [Verdict::TriviallyFaster, Verdict::TriviallySlower];
                match settled {
                    Some(Verdict::Equivalent) if small.contains(&now) => {}
                    Some(before) => prop_assert_eq!(now, before),
                    None => {}
                }
                settled = now.is_settled().then_some(now);
            }
        }

        #[test]
        fn swapping_the_contenders_mirrors_everything(differences in campaigns()) {
            let negated: Vec<f64> = differences.iter().map(|d| -d).collect();
            let (one, other) = (course(&differences), course(&negated));
            prop_assert_eq!(one.verdict, other.verdict.mirrored());
            prop_assert_eq!(one.interval.low, -other.interval.high);
            prop_assert_eq!(one.interval.high, -other.interval.low);
            prop_assert_eq!((one.moved, one.settled_after), (other.moved, other.settled_after));
        }

        #[test]
        fn more_rounds_never_undo_a_settled_verdict(
            differences in campaigns(),
            open in any::<bool>(),
        ) {
            let rule = if open { Rule::open_ended(0.05) } else { CAPPED.clone() };
            let mut settled: Option<Verdict> = None;
            for n in 0..=differences.len() {
                let now = Course::of(&differences[..n], &rule, MARGIN).verdict;
                let small = [Verdict::TriviallyFaster, Verdict::TriviallySlower];
                match settled {
                    Some(Verdict::Equivalent) if small.contains(&now) => {}
                    Some(before) => prop_assert_eq!(now, before),
                    None => {}
                }
                settled = now.is_settled().then_some(now);
            }
        }
    }
}
