//! A16: trials that fall into two groups. No trial is near their mean.

use crate::judge::trials::Trials;
use crate::model::{Audit, Finding, Plan, Severity, Workload};

use super::series;

/// The share of the variation that the best split of `n` normal values into two groups explains in
/// one case of a hundred, for n = 4 to 20. From there on it falls; the last one stands for more.
const EXPLAINED: [f64; 17] = [
    0.9972, 0.9865, 0.9708, 0.9538, 0.9368, 0.9220, 0.9087, 0.8972, 0.8863, 0.8767, 0.8680, 0.8610,
    0.8543, 0.8469, 0.8407, 0.8360, 0.8306,
];
const FEWEST: usize = 4;

/// A16 of one workload: a finding for each contender's metric.
pub fn findings<'a>(
    plan: &'a Plan,
    workload: &'a Workload,
    trials: &'a Trials,
) -> impl Iterator<Item = Finding> + 'a {
    let margin = plan.judgement.margin.0.ln_1p();
    let metrics = workload.primary();
    plan.contenders.iter().flat_map(move |contender| {
        let of = |metric: &String| {
            let series = series::goodness(trials, &workload.name, &contender.name, metric);
            let modes = modes(series.into_values().collect(), margin)?;
            Some(finding(workload, &contender.name, metric, &modes))
        };
        metrics.iter().filter_map(of).collect::<Vec<_>>()
    })
}

/// Two groups of figures.
#[derive(Debug, PartialEq)]
struct Modes {
    /// Figures in the worse group, and in the better.
    counts: [usize; 2],
    /// Distance of their means, in ln units.
    gap: f64,
}

fn finding(workload: &Workload, contender: &str, metric: &str, modes: &Modes) -> Finding {
    let advice = advice(modes.counts);
    Finding {
        audit: Audit::A16,
        severity: Severity::Warning,
        workload: Some(workload.name.clone()),
        contender: Some(contender.into()),
        evidence: evidence(metric, modes),
        advice: advice.into(),
    }
}

fn advice(counts: [usize; 2]) -> &'static str {
    match counts {
        [1, _] => {
            "look for what happened during it: a chance stall is no property of the contender; \
             one that recurs in another run is"
        }
        [_, 1] => {
            "look for what spared it work: a cache that was warm, or a neighbour that had stopped"
        }
        _ => {
            "look for what the trials of a group share (the order, the device's state, where the \
             files lie): the mean of both groups describes neither"
        }
    }
}

fn evidence(metric: &str, modes: &Modes) -> String {
    let times = modes.gap.exp();
    match modes.counts {
        [1, others] => {
            format!(
                "{metric} of one trial stands alone: the other {others} were {times:.2} times as \
                 good"
            )
        }
        [others, 1] => {
            format!(
                "{metric} of one trial stands alone: {times:.2} times as good as the other {others}"
            )
        }
        [worse, better] => format!(
            "{metric} has two modes: {better} of {} trials were {times:.2} times as good as the \
             other {worse}",
            worse + better
        ),
    }
}

/// The two groups of `values`, if they are groups: they explain more than one normal distribution
/// would, and their means are further apart than `margin`.
fn modes(mut values: Vec<f64>, margin: f64) -> Option<Modes> {
    values.sort_by(f64::total_cmp);
    let threshold = EXPLAINED.get(values.len().checked_sub(FEWEST)?).or(EXPLAINED.last())?;
    let (explained, modes) = best_split(&values)?;
    (explained > *threshold && modes.gap > margin).then_some(modes)
}

/// The split of ascending values that explains most, and the share that it explains: the sum of
/// squares between the groups over the whole.
fn best_split(values: &[f64]) -> Option<(f64, Modes)> {
    let n = values.len() as f64;
    let total: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|value| (value - total / n).powi(2)).sum();
    let mut sum = 0.0;
    let split = |(below, value): (usize, &f64)| {
        sum += value;
        let (low, high) = (below as f64, n - below as f64);
        let gap = (total - sum) / high - sum / low;
        let explained = gap * gap * low * high / n / squares;
        (explained, Modes { counts: [below, values.len() - below], gap })
    };
    let splits = (1..values.len()).zip(values).map(split);
    splits.max_by(|one, other| one.0.total_cmp(&other.0)).filter(|_| squares > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::stopping::Normals;

    /// 40,000 draws leave the 99% point a standard error of some 0.001.
    #[test]
    fn the_thresholds_are_those_of_one_normal() {
        let mut normals = Normals::seeded(0);
        for (n, stated) in (FEWEST..).zip(EXPLAINED) {
            let mut explained: Vec<f64> = (0..40_000)
                .map(|_| {
                    let mut values: Vec<f64> = (0..n).map(|_| normals.draw()).collect();
                    values.sort_by(f64::total_cmp);
                    best_split(&values).unwrap().0
                })
                .collect();
            explained.sort_by(f64::total_cmp);
            let got = explained[39_600];
            assert!((got - stated).abs() < 0.004, "{n}: {got}, stated {stated}");
        }
    }

    #[test]
    fn a16_two_groups_are_far_apart_and_tight() {
        let margin = 1.05_f64.ln();
        let groups = [0.0, 0.001, 0.002, 0.3, 0.301, 0.302, 0.303, 0.003];
        let found = modes(groups.to_vec(), margin).unwrap();
        assert_eq!(found.counts, [4, 4]);
        assert!((found.gap - 0.3).abs() < 1e-9);
        let near = groups.map(|value| value / 10.0);
        assert_eq!(modes(near.to_vec(), margin), None, "too near to matter");
        let spread: Vec<f64> = (0..12).map(|place| f64::from(place) / 10.0).collect();
        assert_eq!(modes(spread, margin), None);
        assert_eq!(modes(vec![0.0, 0.0, 1.0], margin), None, "three tell nothing");
        assert_eq!(modes(vec![0.0; 8], margin), None);
    }

    #[test]
    fn one_trial_is_no_mode() {
        let of = |counts| evidence("iops", &Modes { counts, gap: 2_f64.ln() });
        let modes = "iops has two modes: 4 of 7 trials were 2.00 times as good as the other 3";
        assert_eq!(of([3, 4]), modes);
        let worse = "iops of one trial stands alone: the other 11 were 2.00 times as good";
        assert_eq!(of([1, 11]), worse);
        let better = "iops of one trial stands alone: 2.00 times as good as the other 11";
        assert_eq!(of([11, 1]), better);
        assert!(advice([1, 11]).contains("a chance stall"));
        assert!(advice([11, 1]).contains("what spared it work"));
        assert!(advice([3, 4]).contains("the mean of both"));
    }
}
