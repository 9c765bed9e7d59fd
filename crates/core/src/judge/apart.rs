//! What two runs that were measured apart tell of a change: two samples of rounds. Each run may
//! have ended when it looked settled.
//!
//! The change is the difference of the estimates that the two runs print, and its interval Welch's
//! (Biometrika 34, 1947), with Satterthwaite's degrees of freedom (Biometrics Bulletin 2, 1946),
//! from their standard errors. That takes the numbers of rounds as given. A run that stops as soon
//! as its own verdict is settled stops more often when its rounds happen to agree; with plain means
//! the interval then misses up to twice as often as declared. The errors that allow for outlying
//! rounds and for memory are wide enough for that: a test below simulates such runs.
//!
//! Metrics share the error as in one run, as those that they count as. The runs are independent, so
//! that the covariances of a change are the sums of theirs.
//!
//! A change is *equivalent* if two one-sided tests rule out the margin on either side (Schuirmann,
//! Journal of Pharmacokinetics and Biopharmaceutics 15, 1987), that is, if the interval at twice
//! the level is within it. Only one of the two can be false.

use super::interval::{Course, Interval};
use super::lane::Lane;
use super::shared::{Sharing, correlation};
use super::stopping::FIRST_LOOK;
use super::student::{two_sided_quantile, two_sided_tail, welch};
use crate::model::Verdict;

/// The normal quantile that nine in ten stay under: eight in ten are within it on both sides.
const EIGHT_IN_TEN: f64 = 1.281_55;

/// No run has more rounds.
const ROUNDS_MAX: u32 = 1_000;

/// What the rounds of one run say of the difference of ln(goodness) to the reference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rounds {
    /// Their mean.
    pub mean: f64,
    /// That of one round; with `count` it gives the mean's error.
    pub variance: f64,
    /// How many they are.
    pub count: u32,
}

impl Rounds {
    /// As the last look has them: outlying rounds aside, memory included.
    pub fn of(course: &Course) -> Rounds {
        Rounds { mean: course.estimate, variance: course.of_a_round(), count: course.rounds }
    }

    /// The square of the mean's standard error.
    fn squared_error(&self) -> f64 {
        self.variance / f64::from(self.count)
    }
}

/// The chance that the interval of each change of one contender may miss it, in so many metrics
/// that two runs hold and that share the error.
pub fn chance_of_each(runs: &[Lane; 2], metrics: usize, sharing: Sharing) -> f64 {
    let recent = runs.each_ref().map(Lane::recent);
    sharing.each(metrics, |both| {
        let (mut covariance, mut variances) = (0.0, [0.0; 2]);
        for (run, recent) in runs.iter().zip(&recent) {
            let squared = both.map(|it| Rounds::of(&run.course(it)).squared_error());
            let errors = (squared[0] * squared[1]).sqrt();
            covariance += correlation(&recent[both[0]], &recent[both[1]]) * errors;
            variances = [variances[0] + squared[0], variances[1] + squared[1]];
        }
        let errors = (variances[0] * variances[1]).sqrt();
        if errors > 0.0 { covariance / errors } else { 0.0 }
    })
}

/// A change from one run to another, in ln units.
#[derive(Clone, Copy, Debug)]
pub struct Apart {
    runs: [Rounds; 2],
    /// The chance that the interval misses.
    level: f64,
    /// The standard error of the change, and its degrees of freedom.
    error: f64,
    freedom: f64,
}

/// What is said of a change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Said {
    /// By the interval.
    pub verdict: Verdict,
    /// Where the change lies.
    pub interval: Interval,
    /// It is the interval of two one-sided tests, and misses twice as often as declared.
    pub is_one_sided: bool,
}

impl Apart {
    /// The change between two runs; `alpha` is the chance that its interval misses it.
    pub fn of(runs: [Rounds; 2], alpha: f64) -> Apart {
        let squared = runs.map(|run| run.squared_error());
        let (error, freedom) = welch(squared, runs.map(|run| run.count));
        Apart { runs, level: alpha, error, freedom }
    }

    /// The second mean less the first.
    pub fn change(&self) -> f64 {
        self.runs[1].mean - self.runs[0].mean
    }

    /// The verdict for a margin, in ln units. It has to hold for the change by the first trials,
    /// too, where rounds were run again.
    pub fn said(&self, first: &Apart, margin: f64) -> Said {
        let of_both = |level: f64| self.interval(level).hull(first.interval(level));
        let interval = of_both(self.level);
        let said = Said { verdict: interval.verdict(margin), interval, is_one_sided: false };
        let one_sided = of_both(2.0 * self.level);
        let is_within = -margin < one_sided.low && one_sided.high < margin;
        match said.verdict {
            Verdict::Undecided if is_within => {
                Said { verdict: Verdict::Equivalent, interval: one_sided, is_one_sided: true }
            }
            _ => said,
        }
    }

    fn interval(&self, level: f64) -> Interval {
        let half_width = self.half_width(level);
        match half_width.is_finite() {
            true => Interval::around(self.change(), half_width),
            false => Interval::UNBOUNDED,
        }
    }

    /// Infinite where one of the runs has fewer rounds than a first look takes.
    fn half_width(&self, level: f64) -> f64 {
        match self.runs.iter().any(|run| run.count < FIRST_LOOK) {
            true => f64::INFINITY,
            false => two_sided_quantile(level, self.freedom) * self.error,
        }
    }

    /// The chance that two such runs don't show a `regression` to be one of more than `margin`,
    /// both in ln units.
    pub fn missed(&self, regression: f64, margin: f64) -> f64 {
        let beyond = regression - margin - self.half_width(self.level);
        if beyond.is_infinite() || self.error == 0.0 {
            return if beyond > 0.0 { 0.0 } else { 1.0 };
        }
        let tail = two_sided_tail((beyond / self.error).abs(), self.freedom) / 2.0;
        if beyond > 0.0 { tail } else { 1.0 - tail }
    }

    /// How many rounds each run would need to be called equivalent in four cases of five if nothing
    /// has changed. `None` where it would be more than anybody makes, or nothing is known.
    pub fn rounds_needed(&self, margin: f64) -> Option<u32> {
        if self.runs.iter().any(|run| run.count < 2) {
            return None;
        }
        let variance = self.runs.iter().map(|run| run.variance).sum::<f64>();
        let suffices = |n: u32| {
            let error = (variance / f64::from(n)).sqrt();
            let t = two_sided_quantile(2.0 * self.level, 2.0 * f64::from(n) - 2.0);
            (t + EIGHT_IN_TEN) * error < margin
        };
        if !suffices(ROUNDS_MAX) {
            return None;
        }
        // The quantile falls with n, as the error does.
        let (mut few, mut enough) = (FIRST_LOOK - 1, ROUNDS_MAX);
        while enough - few > 1 {
            let middle = u32::midpoint(few, enough);
            if suffices(middle) { enough = middle } else { few = middle }
        }
        Some(enough)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::super::pairs::{Figure, Series};
    use super::super::shared::Shared;
    use super::super::shared::testing::round;
    use super::super::stopping::{Normals, Rule};
    use super::*;

    const MARGIN: f64 = 0.048_79;
    static RULE: LazyLock<Rule> = LazyLock::new(|| Rule::capped(0.05, 12));

    fn rounds(mean: f64, deviation: f64, count: u32) -> Rounds {
        Rounds { mean, variance: deviation.powi(2), count }
    }

    fn apart(one: Rounds, other: Rounds) -> Apart {
        Apart::of([one, other], 0.05)
    }

    /// A run of a comparison that gets no more rounds once it is settled.
    fn stopped(normals: &mut Normals, effect: f64, noise: f64) -> Rounds {
        let mut differences = Vec::new();
        loop {
            differences.push(effect + noise * normals.draw());
            let course = Course::of(&differences, &RULE, MARGIN);
            if course.verdict.is_settled() || differences.len() == 12 {
                return Rounds::of(&course);
            }
        }
    }

    /// Of so many pairs of runs: what is said.
    fn pairs(effects: [f64; 2], noise: [f64; 2], count: u32) -> Vec<Said> {
        let mut normals = Normals::seeded(0);
        let mut pair = || {
            let runs = [0, 1].map(|it| stopped(&mut normals, effects[it], noise[it]));
            let apart = Apart::of(runs, 0.05);
            apart.said(&apart, MARGIN)
        };
        (0..count).map(|_| pair()).collect()
    }

    fn share<T>(all: &[T], is: impl Fn(&T) -> bool) -> f64 {
        all.iter().filter(|it| is(it)).count() as f64 / all.len() as f64
    }

    #[test]
    fn runs_that_stopped_early_are_compared_as_safely_as_declared() {
        for effects in [[0.0, 0.0], [0.05, 0.05], [0.1, -0.1], [0.2, 0.05], [0.03, -0.03]] {
            for noise in [[0.02, 0.02], [0.02, 0.1], [0.1, 0.1]] {
                let pairs = pairs(effects, noise, 2000);
                let truth = effects[1] - effects[0];
                let misses = |it: &Interval| !(it.low..=it.high).contains(&truth);
                let missed = share(&pairs, |said| !said.is_one_sided && misses(&said.interval));
                assert!(missed < 0.06, "{effects:?} {noise:?}: {missed}");
            }
        }
    }

    #[test]
    fn a_change_of_the_margin_is_seldom_called_equivalent_or_more() {
        for noise in [0.02, 0.042, 0.1] {
            for base in [0.0, 0.05, 0.1] {
                let pairs = pairs([base, base - MARGIN], [noise; 2], 2000);
                let falsely = |verdict: Verdict| {
                    use Verdict::{Equivalent, Slower, TriviallyFaster, TriviallySlower};
                    [Equivalent, Slower, TriviallyFaster, TriviallySlower].contains(&verdict)
                };
                let count = share(&pairs, |said| falsely(said.verdict));
                assert!(count < 0.06, "{noise} {base}: {count}");
            }
        }
    }

    /// At 3% from trial to trial nearly all pairs of the same were undecided when the two intervals
    /// of the runs were added up.
    #[test]
    fn the_same_twice_is_often_equivalent_and_seldom_anything_else() {
        let pairs = pairs([0.0, 0.0], [0.042; 2], 2000);
        let undecided = share(&pairs, |said| said.verdict == Verdict::Undecided);
        assert!(undecided < 0.65, "{undecided}");
        let falsely = share(&pairs, |said| said.verdict.is_worse() || said.verdict.is_better());
        assert!(falsely < 0.05, "{falsely}");
    }

    #[test]
    fn power_and_the_rounds_that_equivalence_needs_go_with_the_noise() {
        let of = |deviation: f64| apart(rounds(0.0, deviation, 12), rounds(0.0, deviation, 12));
        let missed = [0.01, 0.042, 0.2].map(|it| of(it).missed(0.0953, MARGIN));
        assert!(missed[0] < 0.01 && missed[2] > 0.85, "{missed:?}");
        assert!((0.15..0.45).contains(&missed[1]), "{missed:?}");
        let needed = [0.01, 0.042].map(|it| of(it).rounds_needed(MARGIN).unwrap());
        assert!(needed[0] <= 6 && (12..30).contains(&needed[1]), "{needed:?}");
        assert_eq!(of(3.0).rounds_needed(MARGIN), None);
        let exact = of(0.0);
        assert_eq!((exact.missed(0.0953, MARGIN), exact.rounds_needed(MARGIN)), (0.0, Some(4)));
    }

    /// A run of three metrics that go together so much, which ends when all of them are settled.
    fn lane(normals: &mut Normals, correlation: f64, rules: &Shared) -> Lane {
        let mut series: [[Series; 2]; 3] = Default::default();
        let mut lane = Lane::default();
        for n in 1..=12 {
            let drawn = round(3, correlation, normals);
            for (both, drawn) in series.iter_mut().zip(drawn) {
                let figure = |goodness: f64| Figure { value: goodness.exp(), goodness };
                both[0].put(n, figure(0.042 * drawn));
                both[1].put(n, figure(0.0));
            }
            let both = series.each_ref().map(|[one, other]| [one, other]);
            let courses = lane.courses(&both, rules, MARGIN);
            if courses.iter().all(|it| it.verdict.is_settled()) {
                break;
            }
        }
        lane
    }

    /// Of pairs of such runs the share in which any of three intervals misses, and the chance that
    /// each may have as a multiple of a third.
    fn shared(correlation: f64) -> (f64, f64) {
        const PAIRS: u32 = 2_000;
        let (rules, sharing) = (Shared::new(0.05, 3, Some(12)), Sharing::new(0.05, 3));
        let (mut normals, mut missed, mut times) = (Normals::seeded(0), 0, 0.0);
        for _ in 0..PAIRS {
            let runs = [0, 1].map(|_| lane(&mut normals, correlation, &rules));
            let chance = chance_of_each(&runs, 3, sharing);
            let change = |metric| {
                let rounds = runs.each_ref().map(|run| Rounds::of(&run.course(metric)));
                Apart::of(rounds, chance).interval(chance)
            };
            missed += u32::from((0..3).map(change).any(|it| it.low > 0.0 || it.high < 0.0));
            times += chance / 0.05 * 3.0;
        }
        (f64::from(missed) / f64::from(PAIRS), times / f64::from(PAIRS))
    }

    /// Standard error of the shares: 0.5 points.
    #[test]
    fn metrics_that_go_together_share_the_error_of_a_change() {
        for (correlation, least) in [(0.0, 1.0), (0.95, 1.4)] {
            let (missed, times) = shared(correlation);
            assert!(missed < 0.06, "{correlation}: {missed}");
            assert!((least..3.0).contains(&times), "{correlation}: {times}");
        }
    }

    /// In one run the two metrics rise together, in the other one rises as the other falls.
    #[test]
    fn what_goes_together_in_one_run_and_apart_in_the_other_counts_for_itself() {
        let rules = Shared::new(0.05, 2, None);
        let lane = |sign: f64| {
            let mut series: [[Series; 2]; 2] = Default::default();
            for n in 1..=8_u32 {
                let goodness = f64::from(n * 5 % 7) / 100.0;
                for (both, sign) in series.iter_mut().zip([1.0, sign]) {
                    both[0].put(n, Figure { value: 1.0, goodness: sign * goodness });
                    both[1].put(n, Figure { value: 1.0, goodness: 0.0 });
                }
            }
            let mut lane = Lane::default();
            lane.courses(&series.each_ref().map(|[one, other]| [one, other]), &rules, MARGIN);
            lane
        };
        let of = |runs| chance_of_each(&runs, 2, Sharing::new(0.05, 2));
        // Two independent ones both miss with the squared chance of one.
        let apart = 0.05 / (2.0 - 0.025);
        assert!((of([lane(1.0), lane(-1.0)]) - apart).abs() < 1e-6);
        assert!(of([lane(1.0), lane(1.0)]) > 0.045);
        assert!(of([lane(-1.0), lane(-1.0)]) > 0.045);
    }

    #[test]
    fn a_single_round_says_nothing() {
        let change = apart(rounds(0.0, 0.01, 12), rounds(-0.5, 0.0, 1));
        assert_eq!(change.said(&change, MARGIN).interval, Interval::UNBOUNDED);
        assert_eq!((change.missed(0.0953, MARGIN), change.rounds_needed(MARGIN)), (1.0, None));
    }
}
