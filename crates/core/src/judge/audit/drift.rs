//! A12: a machine that becomes slower or faster from round to round, or all at once.

use std::collections::BTreeMap;

use crate::judge::student::two_sided_tail;
use crate::judge::trials::Trials;
use crate::model::{Audit, Finding, Plan, Severity, Workload};

use super::series;

/// A change over the whole run that is worth a word.
const LEAST_CHANGE: f64 = 0.05;

/// The chance of such an order of figures without any trend.
const LEVEL: f64 = 0.01;

/// Fewer rounds than this on either side of a step are no state of their own.
const FEWEST_BESIDE: usize = 2;

/// The share of the variation that the best step explains, in one of a hundred series of `n`
/// independent normal values, for n = 6 to 20. Beyond that it falls; the last one stands for more.
const EXPLAINED: [f64; 15] = [
    0.9081, 0.8639, 0.8200, 0.7752, 0.7359, 0.6977, 0.6622, 0.6303, 0.6000, 0.5758, 0.5527, 0.5285,
    0.5108, 0.4902, 0.4713,
];
const FEWEST: usize = 6;

/// No slope is known better than this, in ln units a round.
const SLOPE_ERROR: f64 = 1e-10;

/// A12 of one workload: at most one finding for each contender or arm, of the metric that changed
/// most.
pub fn findings<'a>(
    plan: &'a Plan,
    workload: &'a Workload,
    trials: &'a Trials,
) -> impl Iterator<Item = Finding> + 'a {
    let arms = plan.arms(workload).into_iter().map(|arm| arm.name);
    let names = plan.contenders.iter().map(|contender| contender.name.clone()).chain(arms);
    names.filter_map(move |name| {
        let changed = workload.primary().into_iter().filter_map(|metric| {
            let series = series::goodness(trials, &workload.name, &name, &metric);
            Some((change(&series)?, series.len(), metric))
        });
        let most = changed.max_by(|one, other| one.0.by.abs().total_cmp(&other.0.by.abs()));
        most.map(|(change, rounds, metric)| finding(workload, &name, &change, rounds, &metric))
    })
}

fn finding(
    workload: &Workload,
    name: &str,
    change: &Change,
    rounds: usize,
    metric: &str,
) -> Finding {
    let way = if change.by < 0.0 { "worse" } else { "better" };
    // In goodness: below 1 for a longer time.
    let times = format!("{:.2} times as good", change.by.exp());
    let how = match change.after {
        Some(round) => format!("at once after round {round}, {times}"),
        None => format!("steadily, {times} over {rounds} rounds"),
    };
    Finding {
        audit: Audit::A12,
        severity: Severity::Warning,
        workload: Some(workload.name.clone()),
        contender: Some(name.into()),
        evidence: format!("{metric} became {way} {how}"),
        advice: "a change that all share cancels within a round; but if it wears off (burst \
                 credits, a device that fills up or heats up), the figures hold only for this \
                 hour: let the device rest, or measure until it is steady"
            .into(),
    }
}

/// A change over the rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Change {
    /// Of ln(goodness).
    by: f64,
    /// The round after which it came, where it came at once.
    after: Option<u32>,
}

/// The change that explains the series better, of a trend and a step.
fn change(series: &BTreeMap<u32, f64>) -> Option<Change> {
    let values: Vec<f64> = series.values().copied().collect();
    let trend = trend(series).map(|by| Change { by, after: None });
    let step = best_step(&values).filter(|step| step.is_sure(values.len()));
    let Some(step) = step else { return trend };
    let after = series.keys().nth(step.before - 1).copied();
    match trend {
        Some(trend) if explained_by_line(&values) >= step.explained => Some(trend),
        _ => Some(Change { by: step.by, after }),
    }
}

/// A step from one level to another.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    /// Values before it.
    before: usize,
    /// The mean after it less that before.
    by: f64,
    /// The share of the variation that it explains.
    explained: f64,
}

impl Step {
    /// It is over 5%, and of a series of `n` that chance gives in under 1%.
    ///
    /// By the size of the values (Worsley, "On the likelihood ratio test for a shift in location
    /// of normal populations", JASA 74, 1979), with the points found by simulation, and not by
    /// their ranks alone as Pettitt's test has it (Applied Statistics 28, 1979): ranks of nine
    /// rounds have no order that chance gives in under 1%. Intervals rest on normal values too.
    fn is_sure(&self, n: usize) -> bool {
        let point = n.checked_sub(FEWEST).map(|place| EXPLAINED[place.min(EXPLAINED.len() - 1)]);
        self.by.abs() > LEAST_CHANGE.ln_1p() && point.is_some_and(|point| self.explained > point)
    }
}

/// The step that explains most: the sum of squares between its sides over the whole.
fn best_step(values: &[f64]) -> Option<Step> {
    let n = values.len() as f64;
    let total: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|value| (value - total / n).powi(2)).sum();
    let last = values.len().checked_sub(FEWEST_BESIDE)?;
    let sums: Vec<f64> = values
        .iter()
        .scan(0.0, |sum, value| {
            *sum += value;
            Some(*sum)
        })
        .collect();
    let step = |before: usize| {
        let sum = sums[before - 1];
        let (early, late) = (before as f64, n - before as f64);
        let by = (total - sum) / late - sum / early;
        Step { before, by, explained: by * by * early * late / n / squares }
    };
    let steps = (FEWEST_BESIDE..=last).map(step);
    steps.max_by(|one, other| one.explained.total_cmp(&other.explained)).filter(|_| squares > 0.0)
}

/// The share of the variation that a straight line explains.
fn explained_by_line(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let (middle, mean) = ((n - 1.0) / 2.0, values.iter().sum::<f64>() / n);
    let of = |(place, value): (usize, &f64)| (place as f64 - middle, value - mean);
    let places = || values.iter().enumerate().map(of);
    let both: f64 = places().map(|(x, y)| x * y).sum();
    let [x, y] =
        [places().map(|it| it.0 * it.0).sum::<f64>(), places().map(|it| it.1 * it.1).sum()];
    both * both / (x * y)
}

/// The change of ln(goodness) from the first round to the last, where it is a trend: the Theil-Sen
/// slope (Sen, 1968) is over 5%, and the order of the figures is one that chance gives in under 1%
/// (Mann, 1945; Kendall, "Rank Correlation Methods").
fn trend(series: &BTreeMap<u32, f64>) -> Option<f64> {
    let points: Vec<(f64, f64)> =
        series.iter().map(|(&round, &value)| (f64::from(round), value)).collect();
    let rounds = points.last()?.0 - points.first()?.0;
    let mut values: Vec<f64> = series.values().copied().collect();
    let mut backwards: Vec<f64> = values.iter().rev().copied().collect();
    let (rises, falls) = (falls(&mut backwards), falls(&mut values));
    if chance(points.len(), rises, falls) >= LEVEL {
        return None;
    }
    let whole = median_slope(&points)? * rounds;
    (whole.abs() > LEAST_CHANGE.ln_1p()).then_some(whole)
}

/// How many pairs of `values` fall: the later one is less. Sorts them, because merging counts that
/// (Knuth, TAOCP 3, 5.1.1, exercise 21).
fn falls(values: &mut [f64]) -> usize {
    if values.len() < 2 {
        return 0;
    }
    let (early, late) = values.split_at_mut(values.len() / 2);
    let mut count = falls(early) + falls(late);
    let mut merged = Vec::with_capacity(early.len() + late.len());
    let (mut one, mut other) = (0, 0);
    while one < early.len() && other < late.len() {
        if late[other] < early[one] {
            count += early.len() - one;
            merged.push(late[other]);
            other += 1;
        } else {
            merged.push(early[one]);
            one += 1;
        }
    }
    merged.extend_from_slice(&early[one..]);
    merged.extend_from_slice(&late[other..]);
    values.copy_from_slice(&merged);
    count
}

/// The median of the slopes between all pairs of `points`, in order of their places, to a
/// billionth, by bisection: the pairs with a slope below some value are those that fall once it is
/// subtracted. So the pairs, millions in a long run, are never listed.
fn median_slope(points: &[(f64, f64)]) -> Option<f64> {
    let pairs = points.len() * points.len().saturating_sub(1) / 2;
    let slope = |pair: &[(f64, f64)]| (pair[1].1 - pair[0].1) / (pair[1].0 - pair[0].0);
    // No two are joined by a steeper line than all of their neighbours.
    let steepest = points.windows(2).map(|pair| slope(pair).abs()).fold(0.0, f64::max);
    let below = |slope: f64| {
        let mut left: Vec<f64> = points.iter().map(|(place, it)| it - slope * place).collect();
        falls(&mut left)
    };
    let at_rank = |rank: usize| {
        let (mut low, mut high) = (-steepest - SLOPE_ERROR, steepest + SLOPE_ERROR);
        while high - low > SLOPE_ERROR {
            let middle = f64::midpoint(low, high);
            if below(middle) > rank { high = middle } else { low = middle }
        }
        f64::midpoint(low, high)
    };
    let last = pairs.checked_sub(1)?;
    let lower = at_rank(last / 2);
    Some(if last % 2 == 0 { lower } else { f64::midpoint(lower, at_rank(last / 2 + 1)) })
}

/// The chance of so many more rises than falls, or the reverse, among the pairs of `n` values in
/// random order.
fn chance(n: usize, rises: usize, falls: usize) -> f64 {
    const EXACT_TO: usize = 20;
    let score = rises.abs_diff(falls);
    if n > EXACT_TO {
        // Normal, with the correction for continuity; a t of so many degrees of freedom is one.
        let n = n as f64;
        let variance = n * (n - 1.0) * (2.0 * n + 5.0) / 18.0;
        return two_sided_tail((score as f64 - 1.0).max(0.0) / variance.sqrt(), 1e4);
    }
    // orders[f]: how many orders of the values so far have f falls. The next value, put before k
    // of them, adds k.
    let mut orders = vec![1.0];
    for known in 1..n {
        let mut next = vec![0.0; orders.len() + known];
        for (falls, count) in orders.iter().enumerate() {
            (0..=known).for_each(|more| next[falls + more] += count);
        }
        orders = next;
    }
    let pairs = n * (n - 1) / 2;
    let all: f64 = orders.iter().sum();
    let extreme =
        |(falls, count): (usize, &f64)| (pairs.abs_diff(2 * falls) >= score).then_some(*count);
    orders.iter().enumerate().filter_map(extreme).sum::<f64>() / all
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::judge::audit::Audited;
    use crate::judge::stopping::Normals;
    use crate::judge::testing::{plan, record};
    use crate::model::{Sample, Unit, median};

    /// Kendall's tables: n = 4, S = 6 has a one-sided chance of 0.042; n = 8, S = 20 of 0.0071.
    #[test]
    fn chances_are_those_of_kendall_s_tables() {
        assert!((chance(4, 6, 0) - 2.0 * 0.042).abs() < 1e-3);
        assert!((chance(8, 24, 4) - 2.0 * 0.0071).abs() < 2e-4);
        assert_eq!(chance(5, 5, 5), 1.0);
        let (exact, normal) = (chance(20, 135, 55), chance(21, 146, 64));
        assert!((0.5..2.0).contains(&(exact / normal)), "{exact} {normal}");
    }

    fn changes(values: impl Fn(u32) -> f64) -> Option<f64> {
        trend(&(1..=12).map(|round| (round, values(round))).collect())
    }

    /// 40,000 draws leave the 99% point a standard error of some 0.002.
    #[test]
    fn the_points_of_a_step_are_those_of_normal_values() {
        let mut normals = Normals::seeded(0);
        for (n, stated) in (FEWEST..).zip(EXPLAINED) {
            let mut explained: Vec<f64> = (0..40_000)
                .map(|_| {
                    let values: Vec<f64> = (0..n).map(|_| normals.draw()).collect();
                    best_step(&values).unwrap().explained
                })
                .collect();
            explained.sort_by(f64::total_cmp);
            let got = explained[39_600];
            assert!((got - stated).abs() < 0.008, "{n}: {got}, stated {stated}");
        }
    }

    proptest! {
        #[test]
        fn pairs_that_fall_and_the_median_slope_are_those_of_all_pairs(
            values in prop::collection::vec(-4..4i8, 2..40),
            gaps in prop::collection::vec(1..4u8, 40),
        ) {
            let mut place = 0.0;
            let points: Vec<(f64, f64)> = values
                .iter()
                .zip(gaps)
                .map(|(value, gap)| {
                    place += f64::from(gap);
                    (place, f64::from(*value) / 7.0)
                })
                .collect();
            let mut slopes = Vec::new();
            for (at, one) in points.iter().enumerate() {
                let later = points[at + 1..].iter();
                slopes.extend(later.map(|other| (other.1 - one.1) / (other.0 - one.0)));
            }
            let fallen = slopes.iter().filter(|slope| **slope < 0.0).count();
            prop_assert_eq!(falls(&mut points.iter().map(|it| it.1).collect::<Vec<_>>()), fallen);
            let expected = median(slopes).unwrap();
            let got = median_slope(&points).unwrap();
            prop_assert!((got - expected).abs() < 1e-9, "{} {}", got, expected);
        }
    }

    #[test]
    fn a_step_is_told_from_a_trend() {
        let of = |rounds: u32, values: &dyn Fn(u32) -> f64| {
            let noise = |round: u32| f64::from(round * 7 % 5) * 0.004;
            change(&(1..=rounds).map(|round| (round, values(round) + noise(round))).collect())
        };
        let stepped = of(6, &|round| if round > 3 { -0.5 } else { 0.0 }).unwrap();
        assert_eq!(stepped.after, Some(3));
        assert!((stepped.by + 0.5).abs() < 0.02, "{stepped:?}");
        let stepped = of(12, &|round| if round > 8 { 0.3 } else { 0.0 }).unwrap();
        assert_eq!(stepped.after, Some(8), "though a trend is found as well");
        assert_eq!(of(12, &|round| 0.02 * f64::from(round)).unwrap().after, None);
        assert_eq!(of(12, &|round| if round > 8 { 0.03 } else { 0.0 }), None, "too small");
        assert_eq!(of(12, &|round| if round > 11 { 0.3 } else { 0.0 }), None, "a single outlier");
        assert_eq!(of(5, &|round| if round > 2 { 0.5 } else { 0.0 }), None, "too few rounds");
    }

    #[test]
    fn a_trend_is_large_and_steady() {
        let noise = |round: u32| f64::from(round * 7 % 5) * 0.004;
        let drifted = changes(|round| 0.01 * f64::from(round) + noise(round)).unwrap();
        assert!((drifted - 0.11).abs() < 0.02, "{drifted}");
        assert!(changes(|round| -0.01 * f64::from(round) + noise(round)).unwrap() < -0.09);
        assert_eq!(changes(|round| 0.003 * f64::from(round)), None, "steady, but small");
        assert_eq!(changes(|round| 10.0 * noise(round)), None, "large, but no trend");
    }

    #[test]
    fn a12_is_of_the_contender_that_drifts() {
        let plan = plan(
            "[[contender]]\nname = \"a\"\n[[contender]]\nname = \"b\"\n\
             [[workload]]\nname = \"w\"\ncommand = \"true\"",
        );
        let timed = |round: u32, contender: &str, seconds: f64| {
            let samples = vec![Sample::lower("wall_time", seconds, Unit::Seconds)];
            crate::model::Record { samples, ..record(round, "w", contender) }
        };
        let records: Vec<_> = (1..=8)
            .flat_map(|round| {
                let slower = 1.0 + 0.02 * f64::from(round);
                [timed(round, "a", 1.0), timed(round, "b", slower)]
            })
            .collect();
        let audited = Audited::of(&plan, &records);
        let found: Vec<Finding> = findings(&plan, &plan.workloads[0], audited.trials()).collect();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].contender.as_deref(), Some("b"));
        let evidence = &found[0].evidence;
        assert!(evidence.starts_with("wall_time became worse steadily, 0.8"), "{evidence}");
        assert!(evidence.ends_with(" times as good over 8 rounds"), "{evidence}");
    }
}
