//! The judge by its definitions: each answer from all records again. Slow and short; the folds are
//! tested against it.

use std::collections::{BTreeMap, BTreeSet};

use super::audit::case::{Case, Seen};
use super::audit::trial::{AUDITS, TrialAudit};
use super::compare::{Judge, voids};
use super::estimate::{Estimate, Paired};
use super::interval::{Course, Interval, Pooled};
use super::lane::remembering;
use super::pairs::{Figure, Pair, pairs, unit_of};
use super::shared::{RECENT, Recent, Shared};
use crate::model::{
    Arm, Audit, Comparison, Contender, Finding, Key, Plan, Record, Severity, Verdict, Workload,
    Zeros, median,
};

/// The trials of one contender that ran whole, by round; the later one counts.
fn latest<'r>(records: &'r [Record], workload: &str, name: &str) -> BTreeMap<u32, &'r Record> {
    let is_of = |key: &Key| key.workload == workload && key.contender == name;
    let its = records.iter().filter(|record| record.is_measured() && is_of(&record.key));
    its.map(|record| (record.key.round, record)).collect()
}

/// The records without the trials that were run again.
fn first_trials(records: &[Record]) -> Vec<Record> {
    let mut seen = BTreeSet::new();
    let mut first: Vec<&Record> = records.iter().collect();
    first.retain(|record| !record.is_measured() || seen.insert(&record.key));
    first.into_iter().cloned().collect()
}

/// The audits that saw something in one trial, and what.
fn seen(
    plan: &Plan,
    workload: &Workload,
    contender: &Contender,
    record: &Record,
) -> Vec<(&'static TrialAudit, Seen)> {
    let case = Case::new(plan, workload, contender, record);
    AUDITS.iter().filter_map(|audit| Some((audit, (audit.test)(&case)?))).collect()
}

fn void_of(
    plan: &Plan,
    workload: &Workload,
    contender: &Contender,
    record: &Record,
) -> Option<(&'static TrialAudit, Seen)> {
    let mut seen = seen(plan, workload, contender, record).into_iter();
    seen.find(|(_, seen)| seen.severity == Severity::Void)
}

/// The rounds, each with a workload's name, in which a trial was void by itself.
pub fn void_rounds(plan: &Plan, records: &[Record]) -> BTreeSet<(u32, String)> {
    let mut rounds = BTreeSet::new();
    for workload in &plan.workloads {
        for contender in &plan.contenders {
            for (round, record) in latest(records, &workload.name, &contender.name) {
                if void_of(plan, workload, contender, record).is_some() {
                    rounds.insert((round, workload.name.clone()));
                }
            }
        }
    }
    rounds
}

/// What can make a workload void.
pub fn voiding(judge: &Judge, records: &[Record]) -> Vec<Finding> {
    let plan = judge.plan();
    let mut findings = Vec::new();
    for workload in &plan.workloads {
        for contender in &plan.contenders {
            findings.extend(over_trials(plan, workload, contender, records));
            findings.extend(repeated(plan, workload, contender, records));
        }
        findings.extend(duplicate_differs(judge, workload, records));
    }
    findings
}

fn finding(
    (audit, severity): (&TrialAudit, Severity),
    workload: &Workload,
    contender: &Contender,
    evidence: String,
    advice: &str,
) -> Finding {
    Finding {
        audit: audit.audit,
        severity,
        workload: Some(workload.name.clone()),
        contender: Some(contender.name.clone()),
        evidence,
        advice: advice.into(),
    }
}

fn over_trials(
    plan: &Plan,
    workload: &Workload,
    contender: &Contender,
    records: &[Record],
) -> Vec<Finding> {
    let trials = latest(records, &workload.name, &contender.name);
    let one = |audit: &TrialAudit| {
        let test = |record: &&Record| (audit.test)(&Case::new(plan, workload, contender, record));
        let mut seen: Vec<Seen> = trials.values().filter_map(test).collect();
        seen.sort_by(|one, other| one.figure.total_cmp(&other.figure));
        let median = seen.get(seen.len() / 2)?;
        let mostly = seen.len() * 2 > trials.len();
        let severity =
            if mostly { median.severity } else { median.severity.min(Severity::Warning) };
        let evidence = format!("{}; in {} of {} trials", median.evidence, seen.len(), trials.len());
        Some(finding((audit, severity), workload, contender, evidence, audit.advice))
    };
    AUDITS.iter().filter_map(one).collect()
}

fn repeated(
    plan: &Plan,
    workload: &Workload,
    contender: &Contender,
    records: &[Record],
) -> Vec<Finding> {
    let latest = latest(records, &workload.name, &contender.name);
    let is_superseded = |record: &&Record| {
        let (key, later) = (&record.key, latest.get(&record.key.round));
        let is_of = key.workload == workload.name && key.contender == contender.name;
        is_of && record.is_measured() && later.is_some_and(|it| !std::ptr::eq(*it, *record))
    };
    let note = |record: &Record| {
        let (audit, seen) = void_of(plan, workload, contender, record)?;
        let evidence = format!("round {} was run again: {}", record.key.round, seen.evidence);
        let advice = "no action: the verdict holds with the first trials and with the later ones";
        Some(finding((audit, Severity::Note), workload, contender, evidence, advice))
    };
    records.iter().filter(is_superseded).filter_map(note).collect()
}

fn duplicate_differs(judge: &Judge, workload: &Workload, records: &[Record]) -> Option<Finding> {
    let (plan, reference) = (judge.plan(), judge.plan().reference());
    let again = plan.arm(Arm::Duplicate)?.name;
    let metrics = workload.primary();
    let rules = judge.duplicate_rules().get(&metrics.len())?;
    let names = [again.as_str(), reference];
    let courses = metrics.iter().zip(courses(records, workload, names, rules, 0.0));
    let excludes_1 = |it: &(_, Course)| it.1.interval.low > 0.0 || it.1.interval.high < 0.0;
    let (metric, course) = courses.into_iter().find(excludes_1)?;
    let Interval { low, high } = course.interval;
    Some(Finding {
        audit: Audit::A15,
        severity: Severity::Void,
        workload: Some(workload.name.clone()),
        contender: None,
        evidence: format!(
            "{again} and {reference} are the same and differ in {metric}: {:.3} times (99.5% \
             interval {:.3} to {:.3}, {} rounds)",
            course.estimate.exp(),
            low.exp(),
            high.exp(),
            course.rounds
        ),
        advice: "look for what else changes from trial to trial: the order (A14), a device that \
                 remembers what was written before, settings that are not put back, another \
                 program"
            .into(),
    })
}

/// All comparisons.
pub fn comparisons(judge: &Judge, records: &[Record]) -> Vec<Comparison> {
    let (plan, reference) = (judge.plan(), judge.plan().reference());
    let findings = voiding(judge, records);
    let mut comparisons = Vec::new();
    for workload in &plan.workloads {
        for metric in workload.primary() {
            let phase = workload.phase_of(&metric);
            let refuses = |name: &str| {
                let is_of = |key: &Key| key.workload == workload.name && key.contender == name;
                records.iter().any(|record| is_of(&record.key) && record.refuses(phase))
            };
            for contender in plan.contenders.iter().filter(|it| it.name != reference) {
                if refuses(&contender.name) || refuses(reference) {
                    continue;
                }
                let mut comparison = compare(judge, workload, &metric, &contender.name, records);
                let both = [contender.name.as_str(), reference];
                if findings.iter().any(|finding| voids(finding, &workload.name, both)) {
                    comparison.verdict = Verdict::Void;
                    comparison.visible = None;
                    (comparison.rounds_to_settle, comparison.seconds_to_settle) = (None, None);
                }
                if !comparison.verdict.is_settled() {
                    let by = beaten_by(judge, workload, &contender.name, &findings, records);
                    comparison.beaten_by = by;
                }
                comparisons.push(comparison);
            }
        }
    }
    comparisons
}

fn beaten_by(
    judge: &Judge,
    workload: &Workload,
    contender: &str,
    findings: &[Finding],
    records: &[Record],
) -> Option<String> {
    let rules = judge.race_rule()?;
    let beats = |other: &str| {
        workload.primary().iter().all(|metric| {
            let names = [other, contender].map(|it| (workload.name.as_str(), it));
            if Zeros::of(records, metric, names).is_some() {
                return false;
            }
            let course = |records: &[Record]| {
                let pairs = pairs(records, &workload.name, metric, other, contender);
                let differences: Vec<f64> = pairs.iter().map(|pair| pair.difference).collect();
                Course::of(&differences, rules.apart(), judge.margin())
            };
            let both = course(records).or(&course(&first_trials(records)), judge.margin());
            both.verdict == Verdict::Faster
        })
    };
    let is_void =
        |other: &str| findings.iter().any(|it| voids(it, &workload.name, [other, contender]));
    let mut others = judge.plan().contenders.iter().map(|it| &it.name);
    others.find(|it| **it != contender && beats(it) && !is_void(it)).cloned()
}

fn compare(
    judge: &Judge,
    workload: &Workload,
    metric: &str,
    contender: &str,
    records: &[Record],
) -> Comparison {
    let reference = judge.plan().reference();
    let figures = pairs(records, &workload.name, metric, contender, reference);
    let (unit, better) = unit_of(records, &workload.name, metric);
    let of = |records: &[Record]| course(judge, workload, metric, contender, records);
    // Zeros have no ratio, and what the other rounds say is not said of all.
    let both = [contender, reference].map(|it| (workload.name.as_str(), it));
    let (figures, course) = match Zeros::of(records, metric, both) {
        Some(_) => (Vec::new(), Course::BEGIN),
        None => (figures, of(records).or(&of(&first_trials(records)), judge.margin())),
    };
    let high = course.interval.high.exp();
    let is_settled = course.verdict.is_settled();
    let rounds_to_settle = course.rounds_to_settle(judge.margin()).filter(|_| !is_settled);
    let pair = [contender, reference];
    let seconds = pair.iter().map(|it| seconds_of(records, workload, it));
    let seconds: Option<f64> = seconds.sum();
    let visible = course.visible().filter(|_| course.verdict == Verdict::Undecided);
    Comparison {
        workload: workload.name.clone(),
        metric: metric.into(),
        unit,
        better,
        contender: contender.into(),
        reference: reference.into(),
        ratio: (course.rounds > 0).then(|| course.estimate.exp()),
        low: course.interval.low.exp(),
        high: high.is_finite().then_some(high),
        rounds: course.rounds,
        verdict: course.verdict,
        median: median(figures.iter().map(|pair| pair.contender)),
        reference_median: median(figures.iter().map(|pair| pair.reference)),
        moved: course.moved,
        sharing: judge.sharing(workload) as u32,
        exact: course.rounds >= 4
            && figures.iter().all(|it| {
                (it.contender, it.reference) == (figures[0].contender, figures[0].reference)
            }),
        outlying: outlying(judge, workload, &figures),
        widened: Some(course.widened).filter(|it| *it > 1.0),
        rounds_to_settle,
        seconds_to_settle: rounds_to_settle.and_then(|it| Some(f64::from(it) * seconds?)),
        visible: visible.map(f64::exp),
        beaten_by: None,
        runs: None,
    }
}

/// The rounds that outlie; where intervals are pooled, all count.
fn outlying(judge: &Judge, workload: &Workload, figures: &[Pair]) -> Vec<u32> {
    if judge.pooled_rules(workload).is_some() {
        return Vec::new();
    }
    let mut paired = Paired::default();
    for pair in figures {
        paired.take(pair.difference);
    }
    paired.outlying().into_iter().map(|place| figures[place].round).collect()
}

/// What a trial takes on average.
fn seconds_of(records: &[Record], workload: &Workload, contender: &str) -> Option<f64> {
    let is_of = |key: &Key| key.workload == workload.name && key.contender == contender;
    let its: Vec<f64> = records
        .iter()
        .filter(|record| record.is_measured() && is_of(&record.key))
        .map(|record| record.took_ns() as f64 / 1e9)
        .collect();
    let took_s: f64 = its.iter().sum();
    (took_s > 0.0).then(|| took_s / its.len() as f64)
}

fn course(
    judge: &Judge,
    workload: &Workload,
    metric: &str,
    contender: &str,
    records: &[Record],
) -> Course {
    let (plan, reference) = (judge.plan(), judge.plan().reference());
    let Some(rules) = judge.pooled_rules(workload) else {
        let at = workload.primary().iter().position(|it| it == metric).expect("it is judged");
        let (rules, names) = (judge.rules_of(workload), [contender, reference]);
        return courses(records, workload, names, rules, judge.margin()).swap_remove(at);
    };
    let (names, its) = complete(plan, records, &workload.name, metric);
    let place = |name: &str| names.iter().position(|it| *it == name);
    let (Some(one), Some(other)) = (place(contender), place(reference)) else {
        return Course::BEGIN;
    };
    let metrics = workload.primary();
    let all = metrics.iter().map(|it| complete(plan, records, &workload.name, it));
    let all: Vec<Rounds> = all.filter(|it| it.0 == names).map(|it| it.1).collect();
    let mut course = Course::BEGIN;
    for &round in its.keys() {
        let looks = all.iter().map(|rounds| pooled(rounds, round, [one, other]));
        let looks: Vec<_> = looks.collect();
        let recent = looks.iter().map(|(rounds, paired, _)| Recent {
            rounds: &rounds[rounds.len().saturating_sub(RECENT)..],
            differences: paired.recent(RECENT),
        });
        let rule = rules.of(names.len()).rule(&recent.collect::<Vec<_>>());
        let (_, _, estimate) = pooled(&its, round, [one, other]);
        course.take(estimate.expect("it has that round"), rule, judge.margin());
    }
    course
}

/// Complete rounds: a figure of each contender that has a part.
type Rounds = BTreeMap<u32, Vec<f64>>;

/// The rounds up to one, for two contenders: their numbers, their differences, and the pooled
/// estimate.
fn pooled(rounds: &Rounds, up_to: u32, pair: [usize; 2]) -> (Vec<u32>, Paired, Option<Estimate>) {
    let (mut pooled, mut paired) = (None, Paired::default());
    let (mut known, mut estimate) = (Vec::new(), None);
    for (round, figures) in rounds.range(..=up_to) {
        let pooled = pooled.get_or_insert_with(|| Pooled::new(figures.len()));
        pooled.take(figures);
        let own = paired.take(figures[pair[0]] - figures[pair[1]]);
        known.push(*round);
        estimate = Some(remembering(pooled.difference(pair), own));
    }
    (known, paired, estimate)
}

/// The courses of all metrics, each look by what is known of all of them then.
fn courses(
    records: &[Record],
    workload: &Workload,
    [contender, reference]: [&str; 2],
    rules: &Shared,
    margin: f64,
) -> Vec<Course> {
    let metrics = workload.primary();
    let of = |metric: &String| pairs(records, &workload.name, metric, contender, reference);
    let all: Vec<Vec<Pair>> = metrics.iter().map(of).collect();
    let rounds: BTreeSet<u32> = all.iter().flatten().map(|pair| pair.round).collect();
    let mut courses = vec![Course::BEGIN; all.len()];
    for round in rounds {
        let (mut estimates, mut looks) = (Vec::new(), Vec::new());
        for pairs in &all {
            let so_far: Vec<&Pair> = pairs.iter().filter(|pair| pair.round <= round).collect();
            let (mut paired, mut estimate) = (Paired::default(), None);
            for pair in &so_far {
                estimate = Some(paired.take(pair.difference));
            }
            let its: Vec<u32> = so_far.iter().map(|pair| pair.round).collect();
            estimates.push(estimate.filter(|_| its.last() == Some(&round)));
            let from = its.len().saturating_sub(RECENT);
            looks.push((its[from..].to_vec(), paired.recent(RECENT)));
        }
        let recent = looks.iter().map(|(rounds, differences)| Recent {
            rounds: rounds.as_slice(),
            differences: differences.clone(),
        });
        let rule = rules.rule(&recent.collect::<Vec<_>>());
        for (course, estimate) in courses.iter_mut().zip(estimates) {
            estimate.into_iter().for_each(|it| course.take(it, rule, margin));
        }
    }
    courses
}

/// The contenders with a figure in half of the rounds or more, and the rounds that hold one of each
/// of them.
fn complete<'p>(
    plan: &'p Plan,
    records: &[Record],
    workload: &str,
    metric: &str,
) -> (Vec<&'p str>, Rounds) {
    let of = |name: &'p str| {
        let its = records.iter().filter(|it| {
            it.is_measured() && it.key.workload == workload && it.key.contender == name
        });
        let figure = |it: &Record| Some((it.key.round, Figure::of(it.sample(metric)?)?.goodness));
        (name, its.filter_map(figure).collect::<BTreeMap<u32, f64>>())
    };
    let mut all: Vec<_> = plan.contenders.iter().map(|it| of(&it.name)).collect();
    let rounds: BTreeSet<u32> = all.iter().flat_map(|(_, it)| it.keys().copied()).collect();
    all.retain(|(_, figures)| figures.len() * 2 >= rounds.len());
    let whole = |round: u32| {
        let figures = all.iter().map(|(_, it)| it.get(&round).copied());
        Some((round, figures.collect::<Option<_>>()?))
    };
    let figures = rounds.into_iter().filter_map(whole).collect();
    (all.into_iter().map(|(name, _)| name).collect(), figures)
}
