//! When to look and how wide the interval must be then, so that looking after every round does not
//! raise the chance of a false verdict (METHODOLOGY, "When to stop").

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use crate::estimate::{Estimate, FEW_ROUNDS, Paired};
use crate::student::{two_sided_quantile, two_sided_tail};

/// The first round after which a capped run is looked at; three differences give a t interval that
/// excludes next to nothing.
pub const FIRST_LOOK: u32 = 4;

/// g, the precision of the anytime-valid interval's prior: wide enough that at 95% there is an
/// interval from the fourth round on; a larger one starts later and is tighter after some ten.
const PRIOR_PRECISION: f64 = 0.3;

/// What the standard error of a difference is estimated from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// The differences of the two themselves, in n rounds: n - 1 degrees of freedom.
    Paired,
    /// What is left of the figures of so many contenders in n complete rounds when rounds and
    /// contenders are taken off: (n - 1)(contenders - 1) degrees of freedom.
    Pooled(u32),
}

impl Layout {
    /// Degrees of freedom after `n` rounds.
    pub fn freedom(self, n: u32) -> f64 {
        let of_contenders = match self {
            Layout::Paired => 1,
            Layout::Pooled(contenders) => contenders.saturating_sub(1),
        };
        f64::from(n.saturating_sub(1)) * f64::from(of_contenders)
    }

    /// How many times the square of the standard error goes into the variance that it is estimated
    /// from: that of a difference, n; that of a figure, n / 2, because a difference has two.
    fn precision(self, n: u32) -> f64 {
        match self {
            Layout::Paired => f64::from(n),
            Layout::Pooled(_) => f64::from(n) / 2.0,
        }
    }

    /// How many squares each round adds to the variance's besides those of the two compared.
    fn others(self) -> u32 {
        match self {
            Layout::Paired => 0,
            Layout::Pooled(contenders) => contenders.saturating_sub(2),
        }
    }
}

/// The rule a run declared before its first trial, for one comparison.
#[derive(Clone, Debug, PartialEq)]
pub enum Rule {
    /// Looks after each round from [`FIRST_LOOK`] to a last one.
    Capped(Capped),
    /// Looks after each round, without end.
    OpenEnded {
        /// Chance of ever missing the truth.
        alpha: f64,
        /// What the standard error is of.
        layout: Layout,
    },
}

/// Looks after each round up to a last one.
///
/// What takes part of a second to find, because campaigns are simulated, is found once, at the
/// first look: many runs never get to one.
#[derive(Clone, Debug)]
pub struct Capped {
    /// Chance that any of the intervals misses the truth.
    alpha: f64,
    /// The largest chance of those that are simulated together.
    largest: f64,
    rounds: u32,
    /// What the standard error is of.
    layout: Layout,
    /// The layouts whose smallest level is taken.
    simulated: [Layout; 2],
    /// Standard errors on either side, for each look in order.
    multipliers: OnceLock<Vec<f64>>,
}

impl PartialEq for Capped {
    fn eq(&self, other: &Capped) -> bool {
        let of = |it: &Capped| (it.alpha, it.largest, it.rounds, it.layout, it.simulated);
        of(self) == of(other)
    }
}

impl Capped {
    fn new(alpha: f64, largest: f64, rounds: u32, layout: Layout) -> Capped {
        let multipliers = OnceLock::new();
        Capped { alpha, largest, rounds, layout, simulated: [layout; 2], multipliers }
    }

    /// Standard errors on either side for the look after `n` rounds.
    fn multiplier(&self, n: u32) -> Option<f64> {
        let look = n.checked_sub(FIRST_LOOK)? as usize;
        self.multipliers.get_or_init(|| self.multipliers()).get(look).copied()
    }

    fn multipliers(&self) -> Vec<f64> {
        let levels = self.simulated.map(|layout| Levels::of(layout, self.largest, self.rounds));
        let [one, other] = levels.map(|levels| levels.at(self.alpha));
        let level = one.min(other);
        let of = |n| two_sided_quantile(level * share(n, self.rounds), self.layout.freedom(n));
        (FIRST_LOOK..=self.rounds).map(of).collect()
    }
}

impl Rule {
    /// Looks after each round from [`FIRST_LOOK`] to `rounds`; `alpha` (0 to 1) is the chance that
    /// any of the intervals misses the truth. With fewer rounds than the first look there is none.
    pub fn capped(alpha: f64, rounds: u32) -> Rule {
        Rule::Capped(Capped::new(alpha, alpha, rounds, Layout::Paired))
    }

    /// Looks after each round, without end; `alpha` (0 to 1) is the chance that any of the
    /// intervals misses the truth.
    pub fn open_ended(alpha: f64) -> Rule {
        Rule::OpenEnded { alpha, layout: Layout::Paired }
    }

    /// A rule for each of these chances; none is above the first. Without `rounds` there are looks
    /// without end.
    pub fn several(alphas: &[f64], rounds: Option<u32>) -> Vec<Rule> {
        let Some(rounds) = rounds else {
            return alphas.iter().map(|alpha| Rule::open_ended(*alpha)).collect();
        };
        let rule = |alpha: &f64| Capped::new(*alpha, alphas[0], rounds, Layout::Paired);
        alphas.iter().map(|alpha| Rule::Capped(rule(alpha))).collect()
    }

    /// The same for a pooled layout in which `measured` of so many contenders could be measured,
    /// two or more. The level for fewer than all is the smaller of those for two and for all,
    /// between which theirs lie: so a run's simulation serves it whichever contender fails.
    pub fn pooled(
        alphas: &[f64],
        rounds: Option<u32>,
        [measured, contenders]: [u32; 2],
    ) -> Vec<Rule> {
        let layout = Layout::Pooled(measured);
        let Some(rounds) = rounds else {
            return alphas.iter().map(|alpha| Rule::OpenEnded { alpha: *alpha, layout }).collect();
        };
        let all = Layout::Pooled(contenders);
        let fewest = if measured < contenders { Layout::Pooled(2) } else { all };
        let rule = |alpha: &f64| Capped {
            simulated: [all, fewest],
            ..Capped::new(*alpha, alphas[0], rounds, layout)
        };
        alphas.iter().map(|alpha| Rule::Capped(rule(alpha))).collect()
    }

    /// Half the width of the interval after `n` rounds, in the unit of `standard_error`; infinite
    /// where the rule gives no interval after that round.
    pub fn half_width(&self, n: u32, standard_error: f64) -> f64 {
        match self.multiplier(n) {
            Some(multiplier) => multiplier * standard_error,
            None => f64::INFINITY,
        }
    }

    /// Half the width of the interval of that estimate after `n` rounds. That it is narrower where
    /// rounds go to and fro is part of what multipliers are simulated with, and of nothing else.
    pub fn half_width_of(&self, n: u32, estimate: &Estimate) -> f64 {
        let narrowed = match self {
            Rule::Capped(_) => 1.0,
            Rule::OpenEnded { .. } => estimate.widened.min(1.0),
        };
        self.half_width(n, estimate.standard_error / narrowed)
    }

    /// Standard errors on either side after `n` rounds.
    fn multiplier(&self, n: u32) -> Option<f64> {
        match self {
            Rule::Capped(capped) => capped.multiplier(n),
            Rule::OpenEnded { alpha, layout } => anytime_multiplier(*alpha, n, *layout),
        }
    }
}

/// The anytime-valid t interval (Wang and Ramdas, "Anytime-valid t-tests and confidence sequences
/// for Gaussian means with unknown variance", arXiv 2310.03722; Lindon et al. for the shape with a
/// g-prior): z2 = n paired, n / 2 pooled. `None` while the data are too few for any interval.
fn anytime_multiplier(alpha: f64, n: u32, layout: Layout) -> Option<f64> {
    if n < 2 {
        return None;
    }
    let df = layout.freedom(n);
    let r = PRIOR_PRECISION / (PRIOR_PRECISION + layout.precision(n));
    let a = (r * alpha * alpha).powf(1.0 / (df + 1.0));
    (a > r).then(|| (df * (1.0 - a) / (a - r)).sqrt())
}

/// The level of the look after `n` of `rounds` rounds, as a share of the last look's: a power of
/// the time that has passed, so that the first look has a 125th.
///
/// What is spent on early looks is missing at the last, by which most campaigns are decided; what
/// is kept from them has quiet campaigns take a round more (as in Wang and Tsiatis' family of
/// boundaries, Biometrics 43, 1987). Early looks know least of noise that remembers.
fn share(n: u32, rounds: u32) -> f64 {
    const FIRST: f64 = 1.0 / 125.0;
    if n >= rounds {
        return 1.0;
    }
    let passed = f64::from(n) / f64::from(rounds);
    let at_first = f64::from(FIRST_LOOK) / f64::from(rounds);
    FIRST.powf(passed.ln() / at_first.ln())
}

/// The level of the last look's interval for which the chance that any of them misses the truth is
/// `alpha`, less what is kept for noise that remembers (Jennison and Turnbull's repeated confidence
/// intervals, "Group Sequential Methods", 1999, chapter 9; with t intervals for the unknown
/// variance).
pub fn level_of_last_look(alpha: f64, rounds: u32) -> f64 {
    Levels::of(Layout::Paired, alpha, rounds).at(alpha)
}

/// The part of the error that is for independent rounds. The rest is kept for noise that remembers,
/// which few rounds don't show: by calibration, so that in noise that is AR(1) of 0.5 at most 6% of
/// verdicts are false where 5% is declared, however many rounds there are (docs/validation.md). A
/// wider factor for what does show (a higher power, another floor) cost as much or more.
fn for_independent_rounds(rounds: u32) -> f64 {
    /// In twelve rounds; with more it falls with their number.
    const KEPT: f64 = 0.35;
    /// For each round fewer, up to a most.
    const MORE: f64 = 0.0625;
    const MOST: f64 = 0.72;
    let fewer = FEW_ROUNDS - f64::from(rounds);
    match fewer > 0.0 {
        true => 1.0 - (KEPT + MORE * fewer).min(MOST),
        false => 1.0 - KEPT * FEW_ROUNDS / f64::from(rounds),
    }
}

/// How far from the truth the looks of a run stray by chance, by Monte Carlo with a fixed seed: the
/// same plan always gives the same thresholds.
#[derive(Debug)]
struct Levels {
    layout: Layout,
    alpha: f64,
    rounds: u32,
    /// So many campaigns were simulated.
    paths: f64,
    /// The smallest two-sided p values over the looks of each, over the look's share, in order;
    /// those of `alpha` and above are left out where those below are enough.
    smallest: Vec<f64>,
}

impl Levels {
    /// For chances up to `alpha`. It is always the same, takes a fraction of a second, and a run
    /// asks more than once: so the result is kept, and a thread that asks meanwhile waits for it.
    fn of(layout: Layout, alpha: f64, rounds: u32) -> Arc<Levels> {
        static FOUND: Mutex<Vec<Arc<Levels>>> = Mutex::new(Vec::new());
        let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |it: &&Arc<Levels>| (it.layout, it.alpha, it.rounds) == (layout, alpha, rounds);
        if let Some(known) = found.iter().find(same) {
            return Arc::clone(known);
        }
        let levels = Arc::new(Levels::simulated(layout, alpha, rounds));
        found.push(Arc::clone(&levels));
        levels
    }

    fn simulated(layout: Layout, alpha: f64, rounds: u32) -> Levels {
        let paths = if rounds < FIRST_LOOK { 0 } else { paths(layout, alpha, rounds) };
        // However small the chance, so many paths stay that the tail has a place to begin.
        let below = alpha.max((4.0 * FEWEST / f64::from(paths.max(1))).min(0.5));
        let mut smallest = match layout {
            Layout::Paired => smallest_p_values(below, rounds, paths),
            Layout::Pooled(_) => smallest_pooled_p_values(layout, below, rounds, paths),
        };
        smallest.sort_unstable_by(f64::total_cmp);
        Levels { layout, alpha, rounds, paths: f64::from(paths), smallest }
    }

    /// The level of the last look for a chance of `alpha`, which is none above the one simulated.
    fn at(&self, alpha: f64) -> f64 {
        /// Beyond the campaigns that are enough the level falls with this power of the chance.
        /// Tails are heavier than those of t where a round was set aside (6 rounds: 5/4) or the
        /// interval is narrower since rounds go to and fro: 1.47 was the most that a tail needed
        /// of 4 to 40 rounds (a test holds 4 to 12 to their chance).
        const TAIL: f64 = 1.5;
        let independent = alpha * for_independent_rounds(self.rounds);
        let expected = (independent * self.paths).max(FEWEST);
        // Two standard errors of the count towards the safe side: where few paths decide, as for an
        // error shared over many comparisons, the interval becomes wider and not narrower.
        let rank = (expected - 2.0 * expected.sqrt()) as usize;
        let beyond = (independent * self.paths / expected).min(1.0).powf(TAIL);
        self.smallest.get(rank).map_or(independent, |level| level * beyond).min(independent)
    }
}

/// Fewer campaigns that miss say nothing of how many there are.
const FEWEST: f64 = 25.0;

/// How many campaigns to simulate: enough that ten thousand of them miss (1% standard error of the
/// level), as long as the draws stay within a fraction of a second.
fn paths(layout: Layout, alpha: f64, rounds: u32) -> u32 {
    const MISSES: f64 = 10_000.0;
    let draws = if layout == Layout::Paired { 3_000_000 } else { 10_000_000 };
    ((MISSES / alpha) as u32).min(draws / rounds)
}

/// The smallest p value over the looks, each over its share, of each of `paths` simulated campaigns
/// without an effect, by the estimate that a run makes of its differences; those of `alpha` and
/// above are left out, because no look's level is higher.
fn smallest_p_values(alpha: f64, rounds: u32, paths: u32) -> Vec<f64> {
    let looks = Looks::new(Layout::Paired, alpha, rounds);
    let (mut normals, mut paired) = (Normals::seeded(0), Paired::default());
    let mut campaign = || {
        paired.clear();
        let mut smallest = alpha;
        for n in 1..=rounds {
            let looked = paired.take_beyond(normals.draw(), looks.bound(n));
            if let Some(Estimate { mean, standard_error, .. }) = looked {
                smallest = looks.p_value(n, (mean / standard_error).abs()).min(smallest);
            }
        }
        smallest
    };
    (0..paths).map(|_| campaign()).filter(|smallest| *smallest < alpha).collect()
}

/// The looks of a capped run.
struct Looks {
    layout: Layout,
    alpha: f64,
    rounds: u32,
    /// The t of each that has a p value of `alpha`, over its share.
    bounds: Vec<f64>,
}

impl Looks {
    fn new(layout: Layout, alpha: f64, rounds: u32) -> Looks {
        let bound = |n| two_sided_quantile(alpha * share(n, rounds), layout.freedom(n));
        let bounds = (FIRST_LOOK..=rounds).map(bound).collect();
        Looks { layout, alpha, rounds, bounds }
    }

    /// The t from which on a look after `n` rounds counts.
    fn bound(&self, n: u32) -> f64 {
        n.checked_sub(FIRST_LOOK).map_or(f64::INFINITY, |look| self.bounds[look as usize])
    }

    /// The p value of `t` after `n` rounds, over the look's share, where it is below `alpha`:
    /// otherwise `alpha`.
    fn p_value(&self, n: u32, t: f64) -> f64 {
        match t > self.bound(n) {
            true => two_sided_tail(t, self.layout.freedom(n)) / share(n, self.rounds),
            false => self.alpha,
        }
    }
}

/// The same of pooled intervals.
///
/// With S the sum and Q the sum of squares, t^2 = df u / (1-u) where u = S^2 / (n Q). Every round
/// from the second on adds to Q the squares of the other contrasts about their means, which are
/// independent of the one looked at (Helmert).
fn smallest_pooled_p_values(layout: Layout, alpha: f64, rounds: u32, paths: u32) -> Vec<f64> {
    let looks = Looks::new(layout, alpha, rounds);
    let others = layout.others();
    let mut normals = Normals::seeded(0);
    let mut campaign = || {
        let (mut sum, mut squares, mut smallest) = (0.0, 0.0, alpha);
        for n in 1..=rounds {
            let draw = normals.draw();
            sum += draw;
            squares += draw * draw;
            if n > 1 && others > 0 {
                squares += normals.chi_square(others);
            }
            let share = (sum * sum / (f64::from(n) * squares)).min(1.0);
            let t = (layout.freedom(n) * share / (1.0 - share)).sqrt();
            smallest = looks.p_value(n, t).min(smallest);
        }
        smallest
    };
    (0..paths).map(|_| campaign()).filter(|smallest| *smallest < alpha).collect()
}

/// Standard normal draws by Marsaglia's polar method.
#[derive(Debug)]
pub struct Normals {
    random: ChaCha8Rng,
    spare: Option<f64>,
}

impl Normals {
    /// Those of a seed, from the beginning.
    pub fn seeded(seed: u64) -> Normals {
        Normals { random: ChaCha8Rng::seed_from_u64(seed), spare: None }
    }

    /// One more.
    pub fn draw(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        loop {
            let (x, y) = (self.symmetric(), self.symmetric());
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                let scale = (-2.0 * square.ln() / square).sqrt();
                self.spare = Some(y * scale);
                return x * scale;
            }
        }
    }

    /// The sum of `count` squared normals: of two it is exponential, and a product of uniforms has
    /// the sum of their logarithms.
    fn chi_square(&mut self, count: u32) -> f64 {
        let product: f64 = (0..count / 2).map(|_| (1.0 - self.symmetric()) / 2.0).product();
        let odd = if count % 2 == 1 { self.draw() } else { 0.0 };
        odd * odd - 2.0 * product.ln()
    }

    /// Uniform from -1 up to 1, which is not reached.
    fn symmetric(&mut self) -> f64 {
        (self.random.next_u64() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The share of `campaigns` without an effect in which some interval missed zero.
    fn ever_missed(rounds: u32, campaigns: u32, rule: &Rule) -> f64 {
        let mut normals = Normals::seeded(7);
        let (mut paired, mut missed) = (Paired::default(), 0);
        for _ in 0..campaigns {
            paired.clear();
            let mut misses = false;
            for n in 1..=rounds {
                let estimate = paired.take(normals.draw());
                misses |= estimate.mean.abs() > rule.half_width_of(n, &estimate);
            }
            missed += u32::from(misses);
        }
        f64::from(missed) / f64::from(campaigns)
    }

    #[test]
    fn the_levels_are_those_of_the_methodology() {
        for (rounds, documented) in [(12, 0.0107), (20, 0.0101)] {
            let level = level_of_last_look(0.05, rounds);
            assert!((level / documented - 1.0).abs() < 0.04, "{rounds} rounds: {level}");
        }
    }

    #[test]
    fn one_look_has_what_is_kept_taken_off_and_none_gives_no_interval() {
        let level = level_of_last_look(0.05, 4);
        assert!((0.011..0.28 * 0.05).contains(&level), "{level}");
        let once = Rule::capped(0.05, 4);
        assert_eq!(once.half_width(4, 1.0), two_sided_quantile(level, 3.0));
        assert_eq!(once.half_width(3, 1.0), f64::INFINITY);
        assert_eq!(once.half_width(5, 0.0), f64::INFINITY);
        assert_eq!(Rule::capped(0.05, 3).half_width(3, 0.0), f64::INFINITY);
    }

    /// An error shared over thirty comparisons. Expected misses: 433, with a standard error of 21;
    /// the level itself errs by some 5% to the safe side.
    #[test]
    fn a_small_error_is_kept_too() {
        let alpha = 0.05 / 30.0;
        let missed = ever_missed(12, 400_000, &Rule::capped(alpha, 12)) / alpha;
        assert!((0.49..0.72).contains(&missed), "{missed}");
    }

    /// In independent rounds it misses as often as is left when something is kept for others.
    /// Standard error of the share over 20,000 campaigns: 0.13 points.
    #[test]
    fn a_capped_rule_misses_as_often_as_declared() {
        for rounds in [6, 12, 20] {
            let missed = ever_missed(rounds, 20_000, &Rule::capped(0.05, rounds));
            let left = 0.05 * for_independent_rounds(rounds);
            assert!((missed - left).abs() < 0.004, "{rounds} rounds: {missed}, and {left} is left");
        }
        let left = [4, 6, 8, 12].map(for_independent_rounds);
        let stated = [0.28, 0.28, 0.4, 0.65];
        assert!(
            left.iter().zip(stated).all(|(it, stated)| (it - stated).abs() < 1e-12),
            "{left:?}"
        );
        assert!((for_independent_rounds(24) - 0.825).abs() < 1e-12);
    }

    /// Noise that is AR(1) of 0.5: what the rest of the error is kept for. Only the last look
    /// counts here, as where nothing settles before. Standard error: 0.2 points.
    #[test]
    fn noise_that_remembers_by_half_is_borne_in_few_rounds_too() {
        for rounds in [4, 6, 8, 12] {
            let rule = Rule::capped(0.05, rounds);
            let mut normals = Normals::seeded(3);
            let mut missed = 0;
            for _ in 0..20_000 {
                let (mut paired, mut noise) = (Paired::default(), normals.draw());
                let mut last = Estimate::plain(0.0, 0.0);
                for _ in 0..rounds {
                    last = paired.take(noise);
                    noise = 0.5 * noise + 0.75_f64.sqrt() * normals.draw();
                }
                missed += u32::from(last.mean.abs() > rule.half_width(rounds, last.standard_error));
            }
            assert!(missed < 1_240, "{rounds} rounds: {missed} of 20,000");
        }
    }

    #[test]
    fn the_level_goes_with_the_chance_however_small_that_is() {
        let levels = Levels::of(Layout::Paired, 0.05, 12);
        let at = [0.05, 0.01, 1e-3, 1e-4, 1e-6, 1e-9].map(|alpha| levels.at(alpha));
        assert!(at.windows(2).all(|two| two[1] < two[0]), "{at:?}");
        assert!((at[5] / at[4] / 1e-3_f64.powf(1.5) - 1.0).abs() < 1e-9, "{at:?}");
        // Of 3,000 campaigns three miss by so little.
        let many_rounds = Levels::of(Layout::Paired, 1e-3, 1000).at(1e-3);
        assert!(many_rounds < 0.5e-3, "{many_rounds}");
    }

    /// The chance that any look misses, at most: the sum of what each does.
    ///
    /// With normal differences the mean is independent of the residuals, and their size of their
    /// shape; the estimate moves with the mean. So for each shape t gives the chance that a look
    /// misses, and no campaign has to be as rare as the chance asked for.
    fn missed_at_most(rule: &Rule, rounds: u32, campaigns: u32) -> f64 {
        let beyond = |t: f64, df: f64| match t > 0.0 {
            true => two_sided_tail(t, df) / 2.0,
            false => 1.0 - two_sided_tail(-t, df) / 2.0,
        };
        let mut normals = Normals::seeded(5);
        let (mut paired, mut chances) = (Paired::default(), 0.0);
        for _ in 0..campaigns {
            paired.clear();
            let (mut mean, mut squares) = (0.0, 0.0);
            for n in 1..=rounds {
                let (draw, count) = (normals.draw(), f64::from(n));
                let step = draw - mean;
                mean += step / count;
                squares += step * (draw - mean);
                let estimate = paired.take(draw);
                if n < FIRST_LOOK {
                    continue;
                }
                let error = (squares / (count - 1.0) / count).sqrt();
                let half_width = rule.half_width_of(n, &estimate) / error;
                let off = (estimate.mean - mean) / error;
                chances += [half_width - off, half_width + off]
                    .map(|t| beyond(t, count - 1.0))
                    .iter()
                    .sum::<f64>();
            }
        }
        chances / f64::from(campaigns)
    }

    /// The most that a plan may ask for, and its share of many comparisons: no simulated campaign
    /// is that rare, and rounds that are set aside make the tail heavier than that of t.
    #[test]
    fn a_chance_of_one_in_a_hundred_thousand_and_less_is_kept() {
        for rounds in [4, 6, 8, 12] {
            for alpha in [1e-5, 1e-7] {
                let missed = missed_at_most(&Rule::capped(alpha, rounds), rounds, 40_000) / alpha;
                assert!(missed < 1.0, "{rounds} rounds at {alpha}: {missed} times that");
            }
        }
    }

    #[test]
    fn an_open_ended_rule_misses_less_than_declared() {
        let rule = Rule::open_ended(0.05);
        let missed = ever_missed(60, 20_000, &rule);
        assert!((0.015..0.04).contains(&missed), "{missed}");
        assert_eq!(rule.half_width(1, 0.0), f64::INFINITY);
        assert!(rule.half_width(60, 1.0) < 4.0);
    }

    /// The share of campaigns of `contenders` that are alike in which some interval of the first
    /// against the second missed zero.
    fn pooled_missed(rule: &Rule, contenders: usize, rounds: u32, campaigns: u32) -> f64 {
        let mut normals = Normals::seeded(9);
        let mut missed = 0;
        for _ in 0..campaigns {
            // For each contender the sum of its residuals without the rounds' effects.
            let (mut sums, mut squares) = (vec![0.0; contenders], 0.0);
            let mut misses = false;
            for n in 1..=rounds {
                let figures: Vec<f64> = (0..contenders).map(|_| normals.draw()).collect();
                let of_round = figures.iter().sum::<f64>() / contenders as f64;
                for (sum, figure) in sums.iter_mut().zip(figures) {
                    *sum += figure - of_round;
                    squares += (figure - of_round).powi(2);
                }
                let count = f64::from(n);
                let of_contenders: f64 = sums.iter().map(|sum| sum * sum / count).sum();
                let freedom = Layout::Pooled(contenders as u32).freedom(n.max(2));
                let error = (2.0 * (squares - of_contenders) / freedom / count).sqrt();
                misses |= (sums[0] - sums[1]).abs() / count > rule.half_width(n, error);
            }
            missed += u32::from(misses);
        }
        f64::from(missed) / f64::from(campaigns)
    }

    /// Standard error of the shares: 0.22 points. Fewer contenders than declared have a level that
    /// errs to the safe side.
    #[test]
    fn a_pooled_rule_misses_as_often_as_declared() {
        let rule = |rounds, measured| Rule::pooled(&[0.05], rounds, [measured, 6]).remove(0);
        let all = pooled_missed(&rule(Some(12), 6), 6, 12, 10_000);
        assert!((0.027..0.038).contains(&all), "{all}");
        let fewer = pooled_missed(&rule(Some(12), 3), 3, 12, 10_000);
        assert!((0.022..0.037).contains(&fewer), "{fewer}");
        let missed = pooled_missed(&rule(None, 6), 6, 24, 2_000);
        assert!((0.005..0.045).contains(&missed), "{missed}");
    }

    #[test]
    fn the_sum_of_squared_normals_has_their_number_as_its_mean() {
        let mut normals = Normals::seeded(0);
        let mean = (0..20_000).map(|_| normals.chi_square(5)).sum::<f64>() / 20_000.0;
        assert!((mean - 5.0).abs() < 0.1, "{mean}");
        assert_eq!(normals.chi_square(0), 0.0);
    }

    /// What the two rules are for.
    #[test]
    fn a_plain_t_interval_looked_at_each_round_misses_far_more() {
        let quantile = |n: u32| two_sided_quantile(0.05, f64::from(n.max(2) - 1));
        let multipliers: Vec<f64> = (0..=20).map(quantile).collect();
        let (mut normals, mut missed) = (Normals::seeded(0), 0);
        for _ in 0..20_000 {
            let (mut mean, mut squares, mut misses) = (0.0_f64, 0.0_f64, false);
            for n in 1..=20_u32 {
                let step = normals.draw() - mean;
                mean += step / f64::from(n);
                squares += step * step * f64::from(n - 1) / f64::from(n);
                let error = (squares / f64::from((n - 1).max(1)) / f64::from(n)).sqrt();
                misses |= n > 1 && mean.abs() > multipliers[n as usize] * error;
            }
            missed += u32::from(misses);
        }
        assert!(missed > 5_000, "{missed} of 20,000");
    }
}
