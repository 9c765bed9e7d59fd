//! Two runs that were measured apart: how the ratio to a reference that both hold has changed.
//!
//! Rates of two runs are never compared: another hour, kernel or neighbour would be taken for the
//! contender. In each run the contender's ratio to the reference is a mean of paired differences,
//! as ever, and the two means are independent. Their difference is known within
//!
//! ```text
//! sqrt(h1^2 + h2^2)
//! ```
//!
//! where h1 and h2 are the half-widths of each run's own interval, by its own rule. Where the
//! number of rounds is fixed, these are t intervals, and the combined one holds with at least the
//! declared confidence, whatever the two variances are (Banerjee, "Approximate confidence interval
//! for linear functions of means of k populations when the population variances are not equal",
//! Sankhya 22, 1960). Runs that stop early have intervals that are wider accordingly; a test below
//! simulates that. Welch's interval (Biometrika 34, 1947), which does not know that the runs were
//! stopped when they looked settled, misses up to twice as often as declared: another test.

use std::collections::BTreeMap;

use super::compare::{alpha, rule, void, voids};
use super::interval::{Course, Interval};
use super::pairs::{pairs, unit_of};
use super::stopping::Rule;
use super::terms::{self, Side};
use crate::model::{
    Across, Change, Family, Finding, Incomparable, Measured, NotCompared, Percent, Plan, Term,
    Verdict, Workload,
};

/// Compares the runs, which were measured apart: in `metrics`, or in the run's primary ones where
/// none are given, with differences below `margin` trivial.
///
/// Fails where the runs are not alike, hold no reference together, or nothing at all can be
/// compared.
pub fn across(
    baseline: Side,
    run: Side,
    metrics: &[String],
    margin: Percent,
) -> Result<Across, Incomparable> {
    alike(baseline, run)?;
    let reference = run.plan.reference();
    if !run.plan.has_same(baseline.plan, reference) {
        return Err(Incomparable::Reference { reference: reference.into() });
    }
    let (tasks, left_out) = tasks(baseline, run, metrics);
    if tasks.is_empty() {
        return Err(Incomparable::Nothing { left_out });
    }
    let bench = Bench::new(baseline, run, &tasks, margin);
    Ok(Across {
        baseline: baseline.run.name.clone(),
        run: run.run.name.clone(),
        measured: Measured::Apart,
        margin,
        confidence: run.plan.judgement.confidence,
        differences: terms::differences(baseline, run),
        left_out,
        changes: tasks.iter().map(|task| bench.change(task)).collect(),
    })
}

/// Refuses runs of which not even the ratios mean the same.
fn alike(baseline: Side, run: Side) -> Result<(), Incomparable> {
    match terms::conditions(&[baseline, run]).into_iter().find(|it| !it.equal) {
        None => Ok(()),
        Some(Term { what, values, .. }) => {
            let [baseline, run] = terms::both(values);
            Err(Incomparable::Unlike {
                what,
                baseline,
                run,
                remedy: "measure both on the same, or give --rerun, which measures the baseline's \
                         contenders anew on the run's",
            })
        }
    }
}

/// One comparison that can be made.
struct Task<'a> {
    workload: &'a Workload,
    metric: String,
    contender: &'a str,
}

/// What can be compared, in the order of the run's plan, and what can't.
fn tasks<'a>(
    baseline: Side,
    run: Side<'a>,
    metrics: &[String],
) -> (Vec<Task<'a>>, Vec<NotCompared>) {
    let mut tasks = Vec::new();
    let mut left_out = Vec::new();
    for workload in &run.plan.workloads {
        let mut leave = |contender: Option<&str>, metric: Option<&str>, why: String| {
            left_out.push(NotCompared {
                workload: workload.name.clone(),
                contender: contender.map(String::from),
                metric: metric.map(String::from),
                why,
            });
        };
        if let Some(why) = other_work(baseline.plan, workload) {
            leave(None, None, why);
            continue;
        }
        let wanted = if metrics.is_empty() { workload.primary() } else { metrics.to_vec() };
        let reference = run.plan.reference();
        for contender in run.plan.contenders.iter().filter(|it| it.name != reference) {
            let name = contender.name.as_str();
            if baseline.plan.contender(name).is_none() {
                leave(Some(name), None, "the baseline does not hold it".into());
                continue;
            }
            for metric in &wanted {
                let none = |side: &Side| {
                    pairs(side.records, &workload.name, metric, name, reference).is_empty()
                };
                match (none(&baseline), none(&run)) {
                    (false, false) => {
                        tasks.push(Task { workload, metric: metric.clone(), contender: name });
                    }
                    (missing, _) => {
                        let which = if missing { "baseline" } else { "run" };
                        let why = format!("no round of the {which} has it for both");
                        leave(Some(name), Some(metric), format!("{why} {name} and {reference}"));
                    }
                }
            }
        }
    }
    let gone = baseline.plan.workloads.iter();
    let gone = gone.filter(|it| run.plan.workloads.iter().all(|now| now.name != it.name));
    left_out.extend(gone.map(|workload| NotCompared {
        workload: workload.name.clone(),
        contender: None,
        metric: None,
        why: "the run does not hold it".into(),
    }));
    (tasks, left_out)
}

/// Why the baseline holds no such work, if it does not. What is judged of it may differ.
fn other_work(baseline: &Plan, workload: &Workload) -> Option<String> {
    let Some(before) = baseline.workloads.iter().find(|it| it.name == workload.name) else {
        return Some("the baseline does not hold it".into());
    };
    let terms = terms::of_work(&[Some(before), Some(workload)]);
    let Term { what, values, .. } = terms.into_iter().find(|it| !it.equal)?;
    let [before, now] = terms::both(values);
    Some(format!("it is other work: {what} was {before}, and is {now}"))
}

/// What all comparisons of two runs need.
struct Bench<'a> {
    baseline: Side<'a>,
    run: Side<'a>,
    margin: f64,
    /// Of the baseline and of the run, by the number of comparisons that share the error.
    rules: BTreeMap<usize, [Rule; 2]>,
    sharing: BTreeMap<&'a str, usize>,
    findings: Vec<Finding>,
}

impl<'a> Bench<'a> {
    fn new(baseline: Side<'a>, run: Side<'a>, tasks: &[Task<'a>], margin: Percent) -> Bench<'a> {
        let mut sharing: BTreeMap<&str, usize> = BTreeMap::new();
        for task in tasks {
            *sharing.entry(&task.workload.name).or_default() += 1;
        }
        if run.plan.judgement.family == Family::Run {
            sharing.values_mut().for_each(|sharing| *sharing = tasks.len());
        }
        let mut rules = BTreeMap::new();
        for sharing in sharing.values() {
            let alpha = alpha(run.plan) / *sharing as f64;
            rules.entry(*sharing).or_insert_with(|| {
                let now = rule(run.plan, alpha);
                // A rule may take a while to make.
                match baseline.plan.judgement.rounds() == run.plan.judgement.rounds() {
                    true => [now.clone(), now],
                    false => [rule(baseline.plan, alpha), now],
                }
            });
        }
        let mut findings = void(baseline.plan, baseline.records);
        findings.extend(void(run.plan, run.records));
        let margin = margin.0.ln_1p();
        Bench { baseline, run, margin, rules, sharing, findings }
    }

    fn change(&self, task: &Task) -> Change {
        let Task { workload, metric, contender } = task;
        let reference = self.run.plan.reference();
        let [rule_before, rule_now] = &self.rules[&self.sharing[workload.name.as_str()]];
        let estimate = |side: Side, rule| {
            let pairs = pairs(side.records, &workload.name, metric, contender, reference);
            let differences: Vec<f64> = pairs.iter().map(|pair| pair.difference).collect();
            Estimate::of(&differences, rule, self.margin)
        };
        let before = estimate(self.baseline, rule_before);
        let now = estimate(self.run, rule_now);
        let interval = now.less(&before);
        let both = [contender, reference];
        let void = self.findings.iter().any(|finding| voids(finding, &workload.name, both));
        let verdict = if void { Verdict::Void } else { interval.verdict(self.margin) };
        let (unit, better) = unit_of(self.run.records, &workload.name, metric);
        let high = interval.high.exp();
        Change {
            workload: workload.name.clone(),
            metric: metric.clone(),
            unit,
            better,
            contender: contender.to_string(),
            reference: reference.into(),
            baseline_ratio: Some(before.mean.exp()),
            run_ratio: Some(now.mean.exp()),
            ratio: Some((now.mean - before.mean).exp()),
            low: interval.low.exp(),
            high: high.is_finite().then_some(high),
            baseline_rounds: before.rounds,
            rounds: now.rounds,
            sharing: self.sharing[workload.name.as_str()] as u32,
            verdict,
            moved: before.moved || now.moved,
        }
    }
}

/// What one run knows of a difference of ln(goodness).
struct Estimate {
    /// In ln units.
    mean: f64,
    /// Of its interval, in ln units; infinite before the first look.
    half_width: f64,
    rounds: u32,
    moved: bool,
}

impl Estimate {
    /// Of some differences, one at least.
    fn of(differences: &[f64], rule: &Rule, margin: f64) -> Estimate {
        let course = Course::of(differences, rule, margin);
        let half_width = rule.half_width(course.rounds, course.standard_error);
        let (mean, rounds, moved) = (course.estimate, course.rounds, course.moved);
        Estimate { mean, half_width, rounds, moved }
    }

    /// Where this less `other` lies: see the head of this file.
    fn less(&self, other: &Estimate) -> Interval {
        let half_width = self.half_width.hypot(other.half_width);
        Interval::around(self.mean - other.mean, half_width)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::super::stopping::Normals;
    use super::super::student::two_sided_quantile;
    use super::super::testing::{plan, record, run};
    use super::*;
    use crate::model::{Record, Run, Sample, Unit};

    const PLAN: &str = r#"
        [[contender]]
        name = "a"
        [[contender]]
        name = "b"
        [[contender]]
        name = "c"
        [[workload]]
        name = "unpack"
        command = "tar xf source.tar"
        cache = "warm"
        [judgement]
        reference = "a"
    "#;

    fn facts(kernel: &str) -> Run {
        run(kernel, &[("kernel", kernel), ("devices", kernel)])
    }

    /// Eight rounds, in which each takes its time, with some noise.
    fn records(times: [(&str, f64); 3], seed: usize) -> Vec<Record> {
        let noise = |round: u32, place: usize| {
            1.0 + ((round as usize * 7 + place * 3 + seed * 5) % 11) as f64 / 2000.0
        };
        (1..=8)
            .flat_map(|round| times.iter().enumerate().map(move |it| (round, it)))
            .map(|(round, (place, (name, seconds)))| {
                let seconds = seconds * noise(round, place);
                let samples = vec![Sample::lower("wall_time", seconds, Unit::Seconds)];
                Record { samples, ..record(round, "unpack", name) }
            })
            .collect()
    }

    const BEFORE: [(&str, f64); 3] = [("a", 1.0), ("b", 2.0), ("c", 0.5)];

    /// Open-ended rules are made in no time.
    fn open_ended() -> Plan {
        plan(&format!("{PLAN}budget = \"1h\""))
    }

    fn compared(plans: [&Plan; 2], times: [[(&str, f64); 3]; 2]) -> Result<Across, Incomparable> {
        let (runs, all) =
            ([facts("6.1"), facts("6.12")], [records(times[0], 0), records(times[1], 1)]);
        let side = |it: usize| Side { run: &runs[it], plan: plans[it], records: &all[it] };
        across(side(0), side(1), &[], Percent(0.05))
    }

    fn verdicts(across: &Across) -> BTreeMap<&str, Verdict> {
        across.changes.iter().map(|it| (it.contender.as_str(), it.verdict)).collect()
    }

    #[test]
    fn only_the_ratio_to_the_reference_counts() {
        let plan = plan(PLAN);
        let slow_hour = BEFORE.map(|(name, seconds)| (name, 3.0 * seconds));
        let same = compared([&plan, &plan], [BEFORE, slow_hour]).unwrap();
        assert!(verdicts(&same).values().all(|it| *it == Verdict::Equivalent), "{same:?}");
        let slower = [("a", 3.0), ("b", 7.5), ("c", 1.5)];
        let found = compared([&plan, &plan], [BEFORE, slower]).unwrap();
        assert_eq!(verdicts(&found)["b"], Verdict::Slower);
        assert_eq!(verdicts(&found)["c"], Verdict::Equivalent);
        let change = &found.changes[0];
        assert!((change.ratio.unwrap() - 0.8).abs() < 0.01, "{change:?}");
        assert!((change.baseline_ratio.unwrap() - 0.5).abs() < 0.01);
        assert!(change.low > 0.78 && change.high.unwrap() < 0.82);
    }

    #[test]
    fn differences_are_said_and_which_loop_device_was_free_is_none() {
        let (before, now) = (
            plan(PLAN),
            plan(&PLAN.replace("name = \"b\"", "name = \"b\"\nmount = [\"noatime\"]")),
        );
        let found = compared([&before, &now], [BEFORE, BEFORE]).unwrap();
        let said: Vec<&str> = found.differences.iter().map(|it| it.what.as_str()).collect();
        assert_eq!(said, ["kernel", "b: mount"]);
        assert_eq!(found.differences[1].run.as_deref(), Some("[\"noatime\"]"));
    }

    #[test]
    fn what_is_not_alike_is_refused_or_left_out() {
        let before = plan(PLAN);
        let refused = |from: &str, to: &str| {
            let now = plan(&PLAN.replace(from, to));
            compared([&before, &now], [BEFORE, BEFORE]).unwrap_err().to_string()
        };
        let bed = refused("[judgement]", "[bed]\nsize = \"1G\"\n[judgement]");
        assert!(bed.contains("the bed's size is 4G in the baseline and 1G in the run"), "{bed}");
        let reference = refused("name = \"a\"", "name = \"a\"\nfile_system = \"xfs\"");
        assert!(reference.contains("no contender \"a\" with the run's settings"), "{reference}");
        let work = refused("tar xf source.tar", "tar xf other.tar");
        assert!(work.contains("unpack: it is other work: unpack: command was"), "{work}");
        let now = plan(&PLAN.replace("name = \"c\"", "name = \"d\""));
        let found = compared([&before, &now], [BEFORE, BEFORE]).unwrap();
        assert_eq!(verdicts(&found).into_keys().collect::<Vec<_>>(), ["b"]);
        assert_eq!(found.left_out[0].contender.as_deref(), Some("d"));
    }

    #[test]
    fn a_void_side_voids_the_change() {
        let cold = plan(&PLAN.replace("cache = \"warm\"", ""));
        let (run, good, mut bad) = (facts("6.1"), records(BEFORE, 0), records(BEFORE, 1));
        for record in bad.iter_mut().filter(|record| record.key.contender == "b") {
            record.caches = vec![Default::default()];
        }
        for (before, now) in [(&good, &bad), (&bad, &good)] {
            let side = |records| Side { run: &run, plan: &cold, records };
            let found = across(side(before), side(now), &[], Percent(0.05)).unwrap();
            assert_eq!(verdicts(&found)["b"], Verdict::Void);
            assert_ne!(verdicts(&found)["c"], Verdict::Void);
        }
    }

    const MARGIN: f64 = 0.0488;
    static RULE: LazyLock<Rule> = LazyLock::new(|| Rule::capped(0.05, 12));

    /// A run of a comparison that gets no more rounds once it is settled.
    fn stopped(normals: &mut Normals, effect: f64, noise: f64) -> Vec<f64> {
        let mut differences = Vec::new();
        loop {
            differences.push(effect + noise * normals.next());
            let settled = Course::of(&differences, &RULE, MARGIN).verdict.is_settled();
            if settled || differences.len() == 12 {
                return differences;
            }
        }
    }

    /// Mean, squared standard error and degrees of freedom.
    fn moments(differences: &[f64]) -> [f64; 3] {
        let n = differences.len() as f64;
        let mean = differences.iter().sum::<f64>() / n;
        let squares: f64 = differences.iter().map(|it| (it - mean).powi(2)).sum();
        [mean, squares / (n - 1.0) / n, n - 1.0]
    }

    /// The share of 2,000 pairs of runs in which the truth is missed by the combined interval, and
    /// by Welch's with the degrees of freedom of Satterthwaite (Biometrics Bulletin 2, 1946).
    fn missed(effects: [f64; 2], noises: [f64; 2]) -> [f64; 2] {
        const CAMPAIGNS: u32 = 2000;
        let mut normals = Normals::new();
        // By tenths of a degree of freedom, rounded down: the wider interval.
        let quantile = |tenths: usize| two_sided_quantile(0.05, tenths.max(10) as f64 / 10.0);
        let quantiles: Vec<f64> = (0..=220).map(quantile).collect();
        let mut missed = [0, 0];
        for _ in 0..CAMPAIGNS {
            let runs = [0, 1].map(|it| stopped(&mut normals, effects[it], noises[it]));
            let truth = effects[1] - effects[0];
            let [before, now] = [0, 1].map(|it| Estimate::of(&runs[it], &RULE, MARGIN));
            let interval = now.less(&before);
            missed[0] += u32::from(!(interval.low..=interval.high).contains(&truth));
            let [[one, v, df], [other, w, of_other]] = [0, 1].map(|it| moments(&runs[it]));
            let degrees = (v + w).powi(2) / (v * v / df + w * w / of_other);
            let welch = quantiles[(degrees * 10.0) as usize] * (v + w).sqrt();
            missed[1] += u32::from((other - one - truth).abs() > welch);
        }
        missed.map(|missed| f64::from(missed) / f64::from(CAMPAIGNS))
    }

    #[test]
    fn runs_that_stopped_early_are_compared_as_safely_as_declared() {
        let mut worst_of_welch: f64 = 0.0;
        for effects in [[0.0, 0.0], [0.05, 0.05], [0.1, -0.1], [0.2, 0.05], [0.03, -0.03]] {
            for noises in [[0.02, 0.02], [0.02, 0.1], [0.1, 0.1]] {
                let [ours, welch] = missed(effects, noises);
                assert!(ours < 0.045, "{effects:?} {noises:?}: {ours}");
                worst_of_welch = worst_of_welch.max(welch);
            }
        }
        assert!(worst_of_welch > 0.06, "{worst_of_welch}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        /// Neither the order of the contenders nor the speed of either machine plays a part.
        #[test]
        fn permuting_contenders_and_scaling_times_changes_nothing(
            order in Just(vec![0, 1, 2]).prop_shuffle(),
            scale in 0.01..100.0f64,
            now in 0.2..4.0f64,
        ) {
            let after = [("a", 1.0), ("b", now), ("c", 0.5)];
            let first = open_ended();
            let mut permuted = first.clone();
            permuted.contenders = order.iter().map(|&it| first.contenders[it].clone()).collect();
            let one = compared([&first, &first], [BEFORE, after]).unwrap();
            let scaled = after.map(|(name, seconds)| (name, seconds * scale));
            let other = compared([&first, &permuted], [BEFORE, scaled]).unwrap();
            prop_assert_eq!(verdicts(&one), verdicts(&other));
            for change in &one.changes {
                let same = other.changes.iter().find(|it| it.contender == change.contender);
                let same = same.unwrap();
                prop_assert!((change.low - same.low).abs() < 1e-9);
                prop_assert!((change.high.unwrap() - same.high.unwrap()).abs() < 1e-9);
            }
        }

        /// Exchanging the runs mirrors the change.
        #[test]
        fn exchanging_the_runs_mirrors_the_verdict(now in 0.2..4.0f64) {
            let (plan, after) = (open_ended(), [("a", 1.0), ("b", now), ("c", 0.5)]);
            let runs = [facts("1"), facts("2")];
            let all = [records(BEFORE, 0), records(after, 1)];
            let side = |it: usize| Side { run: &runs[it], plan: &plan, records: &all[it] };
            let there = across(side(0), side(1), &[], Percent(0.05)).unwrap();
            let back = across(side(1), side(0), &[], Percent(0.05)).unwrap();
            for (one, other) in there.changes.iter().zip(&back.changes) {
                prop_assert_eq!(one.verdict, other.verdict.mirrored());
                prop_assert!((one.low * other.high.unwrap() - 1.0).abs() < 1e-9);
            }
        }
    }
}
