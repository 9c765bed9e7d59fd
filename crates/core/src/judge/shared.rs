//! What sharing an error costs comparisons. Figures of the same trials are often nearly the same
//! figure, and then err together (METHODOLOGY, "Several comparisons share the error").

use super::stopping::{FIRST_LOOK, Rule};
use super::student::two_sided_quantile;

/// How many rules there are from all counting as one to each counting for itself.
const STEPS: usize = 8;

/// A correlation is taken from so many rounds at most, the last ones, so that a look costs the same
/// however many there are.
pub const RECENT: usize = 64;

/// So many of its standard errors are taken off a correlation. By simulation: with none, six
/// independent metrics miss in up to 3% more runs than declared; with half of one, in no more.
const TAKEN_OFF: f64 = 0.5;

/// Metrics that share an error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sharing {
    metrics: usize,
    /// The chance that each would have if it counted for itself, and the normal deviation that has
    /// it.
    alpha: f64,
    deviation: f64,
}

/// The rules of the metrics in which two contenders are compared. With the declared chance any of
/// their intervals ever misses the truth, however many metrics they count as.
#[derive(Clone, Debug, PartialEq)]
pub struct Shared {
    sharing: Sharing,
    /// From all counting as one to each counting for itself, in equal ratios.
    rules: Vec<Rule>,
}

/// The rules of such metrics with pooled intervals, made once for a run: for all of its contenders,
/// and for those that are left when some of them can't be measured.
#[derive(Clone, Debug, PartialEq)]
pub struct PooledRules {
    /// For two contenders, three, up to all.
    rules: Vec<Shared>,
}

impl PooledRules {
    /// `alpha` (0 to 1) is the chance that any of the intervals of so many metrics misses the
    /// truth; without `rounds` there are looks without end.
    pub fn new(alpha: f64, metrics: usize, rounds: Option<u32>, contenders: u32) -> PooledRules {
        let of = |measured| {
            let rules = |alphas: &[f64]| Rule::pooled(alphas, rounds, [measured, contenders]);
            Shared::of(alpha, metrics, rules)
        };
        PooledRules { rules: (2..=contenders).map(of).collect() }
    }

    /// The rules where so many contenders could be measured: two or more.
    pub fn of(&self, contenders: usize) -> &Shared {
        &self.rules[contenders - 2]
    }
}

/// The last rounds of a metric and its differences in them, outlying ones moved to the nearest that
/// does not outlie.
pub struct Recent<'a> {
    /// The rounds, in order.
    pub rounds: &'a [u32],
    /// The differences.
    pub differences: Vec<f64>,
}

impl Shared {
    /// `alpha` (0 to 1) is the chance that any of the intervals of so many metrics misses the
    /// truth; without `rounds` there are looks without end.
    pub fn new(alpha: f64, metrics: usize, rounds: Option<u32>) -> Shared {
        Shared::of(alpha, metrics, |alphas| Rule::several(alphas, rounds))
    }

    /// The same with rules of another kind: one for each of the chances given, the largest first.
    pub fn of(alpha: f64, metrics: usize, rules: impl Fn(&[f64]) -> Vec<Rule>) -> Shared {
        let sharing = Sharing::new(alpha, metrics);
        let steps = if sharing.metrics == 1 { 0 } else { STEPS };
        let count = |step: usize| (sharing.metrics as f64).powf(step as f64 / STEPS as f64);
        let alphas: Vec<f64> = (0..=steps).map(|step| alpha / count(step)).collect();
        Shared { sharing, rules: rules(&alphas) }
    }

    /// The rule of each where nothing is known of the others.
    pub fn apart(&self) -> &Rule {
        self.rules.last().expect("there is one at least")
    }

    /// The rule of each after these rounds.
    pub fn rule(&self, metrics: &[Recent]) -> &Rule {
        let steps = self.rules.len() - 1;
        if steps == 0 {
            return self.apart();
        }
        let correlation = |[one, other]: [usize; 2]| correlation(&metrics[one], &metrics[other]);
        let counted = self.sharing.counted(metrics.len(), correlation);
        let share = counted.ln() / (self.sharing.metrics as f64).ln();
        // A count that equals a rule's up to rounding gets that rule, any other the next wider one.
        let place = (share * steps as f64 - 1e-9).ceil().max(0.0) as usize;
        &self.rules[place.min(steps)]
    }
}

impl Sharing {
    /// `alpha` (0 to 1) is the chance that any of the intervals of so many metrics misses the
    /// truth.
    pub fn new(alpha: f64, metrics: usize) -> Sharing {
        let metrics = metrics.max(1);
        let alpha = alpha / metrics as f64;
        // Of so many degrees of freedom t is normal.
        Sharing { metrics, alpha, deviation: two_sided_quantile(alpha, 1e5) }
    }

    /// The chance that each may have, where so many of them are `known` to correlate like that.
    pub fn each(&self, known: usize, correlation: impl Fn([usize; 2]) -> f64) -> f64 {
        self.alpha * self.metrics as f64 / self.counted(known, correlation)
    }

    /// As how many independent metrics all of them count: the sum of the chances that each of them
    /// misses, less the chances that two neighbours of a tree miss both. With whatever tree that is
    /// at least the chance that any misses (Hunter, Journal of Applied Probability 13, 1976;
    /// Worsley, Biometrika 69, 1982); the tree is the one that says least, by Prim's algorithm.
    fn counted(&self, known: usize, correlation: impl Fn([usize; 2]) -> f64) -> f64 {
        let both = |pair: [usize; 2]| self.both_of_one(correlation(pair));
        let mut counted = self.metrics as f64;
        // For each metric outside the tree, what it shares with the nearest inside.
        let mut outside: Vec<(usize, f64)> = (1..known).map(|it| (it, both([0, it]))).collect();
        while let Some(at) =
            (0..outside.len()).max_by(|a, b| outside[*a].1.total_cmp(&outside[*b].1))
        {
            let (inside, shared) = outside.swap_remove(at);
            counted -= shared;
            for (it, nearest) in &mut outside {
                *nearest = nearest.max(both([inside, *it]));
            }
        }
        counted
    }

    /// Given that one of two misses, the chance that both do: of normal deviations with that
    /// correlation beyond the same point on either side.
    ///
    /// The chance of a quadrant grows with the correlation by the density in its corner (Plackett,
    /// Biometrika 41, 1954); put as the sine of an angle, that is integrated by Simpson's rule.
    fn both_of_one(&self, correlation: f64) -> f64 {
        const PARTS: usize = 32;
        let square = self.deviation * self.deviation;
        let step = correlation.asin() / PARTS as f64;
        let density = |part: usize| {
            let sine = (step * part as f64).sin();
            let times = match part {
                0 | PARTS => 1.0,
                odd if odd % 2 == 1 => 4.0,
                _ => 2.0,
            };
            times * ((-square / (1.0 + sine)).exp() - (-square / (1.0 - sine)).exp())
        };
        let grown = (0..=PARTS).map(density).sum::<f64>() * step / 3.0 / std::f64::consts::PI;
        (self.alpha + grown / self.alpha).min(1.0)
    }
}

/// How two metrics vary together: their correlation, minus its possible error (Fisher, Metron 1,
/// 1921). 0 if they were not measured in the same rounds.
pub fn correlation(one: &Recent, other: &Recent) -> f64 {
    let n = one.differences.len();
    if n < FIRST_LOOK as usize || one.rounds != other.rounds {
        return 0.0;
    }
    let centred = |of: &[f64]| {
        let mean = of.iter().sum::<f64>() / n as f64;
        of.iter().map(|it| it - mean).collect::<Vec<f64>>()
    };
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let [a, b] = [one, other].map(|it| centred(&it.differences));
    let scatter = (product(&a, &a) * product(&b, &b)).sqrt();
    if scatter == 0.0 {
        return 0.0;
    }
    let found = product(&a, &b) / scatter;
    let size = found.abs().min(1.0 - 1e-9).atanh() - TAKEN_OFF / (n as f64 - 3.0).sqrt();
    size.max(0.0).tanh().copysign(found)
}

#[cfg(test)]
pub mod testing {
    use super::super::stopping::Normals;

    /// A round of metrics that go together so much.
    pub fn round(metrics: usize, correlation: f64, normals: &mut Normals) -> Vec<f64> {
        let common = correlation.sqrt() * normals.draw();
        (0..metrics).map(|_| common + (1.0 - correlation).sqrt() * normals.draw()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::super::estimate::Paired;
    use super::super::stopping::Normals;
    use super::testing::round;
    use super::*;

    /// Three metrics, four to twelve rounds.
    static THREE: LazyLock<Shared> = LazyLock::new(|| Shared::new(0.05, 3, Some(12)));

    /// As how many these series count, each measured in all rounds.
    fn counted(rules: &Shared, series: &[Vec<f64>]) -> f64 {
        let rounds: Vec<u32> = (1..=series[0].len() as u32).collect();
        let of = |it: &Vec<f64>| Recent { rounds: &rounds, differences: it.clone() };
        let all: Vec<Recent> = series.iter().map(of).collect();
        rules.sharing.counted(all.len(), |[one, other]| correlation(&all[one], &all[other]))
    }

    fn series(correlation: f64, rounds: usize) -> Vec<Vec<f64>> {
        let mut normals = Normals::seeded(0);
        let rounds: Vec<_> = (0..rounds).map(|_| round(3, correlation, &mut normals)).collect();
        (0..3).map(|metric| rounds.iter().map(|round| round[metric]).collect()).collect()
    }

    #[test]
    fn what_is_one_figure_counts_as_one_and_what_has_nothing_in_common_as_many() {
        let alike = [1.0, 3.0, 2.0, 5.0, 4.0];
        let mirrored: Vec<f64> = alike.iter().map(|it| -2.0 * it).collect();
        let same = counted(&THREE, &[alike.to_vec(), mirrored, alike.to_vec()]);
        assert!((1.0..1.01).contains(&same), "{same}");
        let apart = counted(&THREE, &series(0.0, 60));
        assert!((2.85..3.0).contains(&apart), "{apart}");
        let near = counted(&THREE, &series(0.95, 60));
        assert!((1.5..2.0).contains(&near), "{near}");
        let still = counted(&THREE, &[alike.to_vec(), vec![0.1; 5], vec![0.1; 5]]);
        assert!((still - 3.0).abs() < 0.1, "what never varies goes with nothing: {still}");
    }

    #[test]
    fn metrics_of_other_rounds_and_of_few_count_for_themselves() {
        let alike = [1.0, 3.0, 2.0, 5.0];
        let of = |rounds| Recent { rounds, differences: alike.to_vec() };
        let (some, others) = ([1, 2, 3, 4], [1, 2, 3, 5]);
        assert_eq!(THREE.rule(&[of(&some), of(&some), of(&some)]), &THREE.rules[1]);
        let mixed = THREE.rule(&[of(&some), of(&others), of(&[1, 2, 3, 6])]);
        assert_eq!(mixed, THREE.apart());
        let none = Recent { rounds: &[], differences: Vec::new() };
        assert_eq!(THREE.rule(&[none, of(&some), of(&others)]), THREE.apart());
    }

    #[test]
    fn one_metric_has_the_rule_of_one_comparison() {
        let one = Shared::new(0.05, 1, Some(12));
        assert_eq!(one.rules, [Rule::capped(0.05, 12)]);
        assert_eq!(one.rule(&[]), one.apart());
        let open = Shared::new(0.05, 2, None);
        assert_eq!(open.rules[0], Rule::open_ended(0.05));
        assert_eq!(open.apart(), &Rule::open_ended(0.025));
    }

    /// Of pairs that were drawn. Standard error of the shares: under two points.
    #[test]
    fn two_miss_together_as_often_as_is_said() {
        let three = THREE.sharing;
        assert!((three.both_of_one(0.0) - three.alpha).abs() < 1e-12);
        assert_eq!(three.both_of_one(-0.5), three.both_of_one(0.5));
        let same = three.both_of_one(1.0 - 1e-12);
        assert!((same - 1.0).abs() < 2e-3, "{same}");
        let mut normals = Normals::seeded(0);
        for correlation in [0.5, 0.9] {
            let (mut misses, mut both) = (0.0, 0.0);
            for _ in 0..100_000 {
                let pair = round(2, correlation, &mut normals);
                let misses_it = |it: &f64| it.abs() > three.deviation;
                misses += f64::from(u8::from(misses_it(&pair[0])));
                both += f64::from(u8::from(pair.iter().all(misses_it)));
            }
            let said = three.both_of_one(correlation);
            assert!((both / misses - said).abs() < 0.05, "{correlation}: {said}");
        }
    }

    /// The share of runs of so many rounds in which any interval of three metrics ever misses, and
    /// the last multiplier as a share of that of metrics that count for themselves.
    fn missed(correlation: f64, rounds: u32, rules: &Shared) -> (f64, f64) {
        const RUNS: u32 = 4_000;
        let mut normals = Normals::seeded(0);
        let (mut missed, mut width) = (0, 0.0);
        for _ in 0..RUNS {
            let mut metrics = vec![Paired::default(); 3];
            let mut misses = false;
            for n in 1..=rounds {
                let drawn = round(3, correlation, &mut normals);
                let estimates: Vec<_> =
                    metrics.iter_mut().zip(drawn).map(|(it, draw)| it.take(draw)).collect();
                let known: Vec<u32> = (1..=n).collect();
                let of = |it: &Paired| Recent { rounds: &known, differences: it.recent(RECENT) };
                let rule = rules.rule(&metrics.iter().map(of).collect::<Vec<_>>());
                misses |= estimates.iter().any(|it| it.mean.abs() > rule.half_width_of(n, it));
                if n == rounds {
                    width += rule.half_width(n, 1.0) / rules.apart().half_width(n, 1.0);
                }
            }
            missed += u32::from(misses);
        }
        (f64::from(missed) / f64::from(RUNS), width / f64::from(RUNS))
    }

    /// Standard error of the shares: 0.3 points. Of 5% a part is kept for noise that remembers, in
    /// few rounds more.
    #[test]
    fn all_intervals_hold_together_whatever_the_metrics_have_in_common() {
        for (rounds, some) in [(4, 0.01..0.028), (12, 0.02..0.042)] {
            let rules = Shared::new(0.05, 3, Some(rounds));
            for (correlation, narrower) in [(0.0, 1.0), (0.95, 0.93)] {
                let (missed, width) = missed(correlation, rounds, &rules);
                assert!(some.contains(&missed), "{rounds}, {correlation}: {missed}");
                assert!(width < narrower, "{rounds}, {correlation}: {width}");
            }
        }
    }

    proptest! {
        #[test]
        fn they_count_as_one_at_least_and_as_many_as_they_are_at_most(
            rounds in prop::collection::vec(prop::collection::vec(-1.0..1.0f64, 3), 1..80),
            scale in 0.01..100.0f64,
        ) {
            let of = |scale: f64| -> Vec<Vec<f64>> {
                (0..3).map(|it| rounds.iter().map(|round| round[it] * scale).collect()).collect()
            };
            let (one, scaled) = (counted(&THREE, &of(1.0)), counted(&THREE, &of(scale)));
            prop_assert!((1.0 - 1e-6..=3.0).contains(&one), "{}", one);
            prop_assert!((one - scaled).abs() < 1e-6, "the unit changes nothing");
            let reversed: Vec<_> = of(1.0).into_iter().rev().collect();
            prop_assert!((one - counted(&THREE, &reversed)).abs() < 1e-9, "nor does the order");
        }
    }
}
