//! How long time-based work should run: what one more second within a trial is worth, and what one
//! more trial.
//!
//! T. Kalibera and R. Jones, "Rigorous Benchmarking in Reasonable Time" (ISMM 2013), with two
//! levels: batches of a run, and trials.

use crate::judge::stopping::FIRST_LOOK;
use crate::judge::trials::Trials;
use crate::model::{Audit, Finding, Plan, Severity, Unit, Workload, median};

use super::batches::{Batches, variance};

/// The metric that the rate over time is of.
const RATE: &str = "iops";

/// The note on the length of one workload's runs, at most one.
pub fn finding(plan: &Plan, workload: &Workload, trials: &Trials) -> Option<Finding> {
    let of = |name: &str| trials.latest(&workload.name, name).values();
    let trials_of = plan.contenders.iter().flat_map(|contender| of(&contender.name));
    let batched: Vec<Batches> = trials_of.filter_map(|kept| kept.batches).collect();
    let mean = |value: fn(&Batches) -> f64| {
        (!batched.is_empty()).then(|| batched.iter().map(value).sum::<f64>() / batched.len() as f64)
    };
    let within = mean(|it| it.variance)?;
    let batches = mean(|it| it.count as f64)?;
    let batch_ns = mean(|it| it.batch_ns)?;
    let beside_ns = median(batched.iter().map(|it| it.beside_ns))?;
    let between = between(plan, workload, trials)?;
    let best = best_batches(within, between - within / batches, beside_ns / batch_ns);
    let time = |ns: f64| Unit::Nanoseconds.format(ns);
    let percent = |variance: f64| format!("{:.1}%", variance.sqrt() * 100.0);
    let advice = match best {
        Some(best) => format!(
            "by this run's scatter, runs of {} tell most for their time",
            time(best * batch_ns)
        ),
        None => "the trials differ by no more than their own runs scatter: longer runs tell more \
                 than more rounds"
            .into(),
    };
    Some(Finding {
        audit: Audit::RunLength,
        severity: Severity::Note,
        workload: Some(workload.name.clone()),
        contender: None,
        evidence: format!(
            "each trial has {} of steady run and {} of other time; {RATE} scatters by {} among \
             parts of {}, and by {} from trial to trial",
            time(batches * batch_ns),
            time(beside_ns),
            percent(within),
            time(batch_ns),
            percent(between)
        ),
        advice,
    })
}

/// r = ceil(sqrt(c2 / c1 * T1^2 / T2^2)), how many batches a run had better have: `within` is T1^2,
/// the variance of batches, `between` T2^2, what trials vary beyond that, and `cost` c2 / c1, what
/// a trial costs besides its batches, in batches. `None` where it has no end.
fn best_batches(within: f64, between: f64, cost: f64) -> Option<f64> {
    (between > 0.0).then(|| (cost * within / between).sqrt().ceil().max(1.0))
}

/// The variance of a trial, as far as it matters: half of that of the differences of ln(rate)
/// within a round, because what changes from round to round cancels. The mean over the contenders.
fn between(plan: &Plan, workload: &Workload, trials: &Trials) -> Option<f64> {
    let reference = plan.reference();
    let others = plan.contenders.iter().filter(|contender| contender.name != reference);
    let variances: Vec<f64> = others
        .filter_map(|contender| {
            let names = [contender.name.as_str(), reference];
            let differences = trials.differences(&workload.name, RATE, names);
            (differences.len() >= FIRST_LOOK as usize).then(|| variance(&differences) / 2.0)
        })
        .collect();
    (!variances.is_empty()).then(|| variances.iter().sum::<f64>() / variances.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::audit::Audited;
    use crate::judge::testing::{phase, plan, record};
    use crate::model::{Draws, Phase, PhaseRecord, RateOverTime, Record, Sample, StepTime};

    /// Twelve rounds of runs of 30 s that take 15 s besides; batches of 2.5 s scatter by `within`
    /// and trials by `between`.
    fn found(within: f64, between: f64) -> Option<Finding> {
        let plan = plan(
            "[[contender]]\nname = \"a\"\n[[contender]]\nname = \"b\"\n\
             [[workload]]\nname = \"w\"\nfio = { rw = \"randread\" }",
        );
        let mut draws = Draws::new(5);
        let mut trial = |round: u32, name: &str| {
            let level = 1000.0 * (between * draws.normal()).exp();
            let batches: Vec<f64> =
                (0..12).map(|_| level * (within * draws.normal()).exp()).collect();
            let iops = batches.iter().sum::<f64>() / 12.0;
            let rates_per_s = batches.into_iter().flat_map(|rate| [rate; 5]).collect();
            let course = RateOverTime { window_ns: 500_000_000, rates_per_s, ..Default::default() };
            let work_ns = 30_000_000_000;
            let rate_over_time = Some(course);
            let phases = vec![PhaseRecord { rate_over_time, work_ns, ..phase(Phase::Whole) }];
            let steps = vec![StepTime { step: "all".into(), duration_ns: 45_000_000_000 }];
            let samples = vec![Sample::higher(RATE, iops, Unit::PerSecond)];
            Record { phases, steps, samples, ..record(round, "w", name) }
        };
        let records: Vec<Record> =
            (1..=12).flat_map(|round| [trial(round, "a"), trial(round, "b")]).collect();
        finding(&plan, &plan.workloads[0], Audited::of(&plan, &records).trials())
    }

    /// The worked relation: quadrupling the cost of a trial, or halving its scatter, doubles the
    /// length.
    #[test]
    fn the_length_follows_the_formula() {
        assert_eq!(best_batches(0.04, 0.01, 1.0), Some(2.0));
        assert_eq!(best_batches(0.04, 0.01, 4.0), Some(4.0));
        assert_eq!(best_batches(0.04, 0.0025, 4.0), Some(8.0));
        assert_eq!(best_batches(0.04, 1.0, 4.0), Some(1.0));
        assert_eq!(best_batches(0.04, 0.0, 4.0), None);
    }

    #[test]
    fn runs_that_scatter_less_than_the_trials_may_be_short() {
        let short = found(0.02, 0.1).unwrap();
        let says = "each trial has 30.0 s of steady run and 15.0 s of other time; ";
        assert!(short.evidence.starts_with(says), "{short:?}");
        assert!(short.advice.contains("runs of 2.50 s tell most"), "{short:?}");
        let long = found(0.3, 0.0).unwrap();
        assert!(long.advice.contains("runs of 45.0 s tell most"), "{long:?}");
    }

    #[test]
    fn without_a_rate_over_time_nothing_is_said() {
        let plan = plan(
            "[[contender]]\nname = \"a\"\n[[contender]]\nname = \"b\"\n\
             [[workload]]\nname = \"w\"\nfio = { rw = \"randread\" }",
        );
        let records = [record(1, "w", "a"), record(1, "w", "b")];
        assert_eq!(finding(&plan, &plan.workloads[0], Audited::of(&plan, &records).trials()), None);
    }
}
