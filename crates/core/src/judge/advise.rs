//! Which contender is the best for a use, by what a run has measured and by nothing else.
//!
//! In every round where two contenders were measured in all that counts, their differences of
//! ln(goodness) are added up by the weights: one figure a round, from trials close in time. These
//! figures are judged like those of a single metric, for every two contenders, with the error
//! shared over the pairs. So the intervals hold together, and the best is among those that none was
//! found to beat. Intervals of single metrics are not added up: what two metrics of one trial have
//! in common would be counted twice, or not at all.

use std::collections::{BTreeMap, BTreeSet};

use super::audit::{Audited, guests};
use super::compare::{alpha, duplicate_rules, rule};
use super::durability::durability;
use super::estimate::Paired;
use super::interval::Course;
use super::pairs::Which;
use crate::model::{
    Advice, Answer, Audit, Below, Condition, Feature, Finding, Lever, Missing, Percent, Plan,
    Purpose, Record, Scalar, Severity, Standing, Turn, Verdict, Want, Weighed, Work, Workload,
};

/// The advice for `purpose` by the run's records, among its contenders on these layers, one of its
/// [`Plan::stacks`]. `documented` has what is known of its contenders without measuring, for every
/// feature that the use needs but durability.
pub fn advise(
    run: &str,
    plan: &Plan,
    records: &[Record],
    purpose: &Purpose,
    documented: Vec<Condition>,
    margin: Percent,
    layers: &str,
) -> Advice {
    let is_asked = |name: &str| plan.contender(name).is_some_and(|it| it.stack() == layers);
    let mut conditions = documented;
    if purpose.needs.contains(&Feature::Durability) {
        conditions.extend(durability(plan, records, &in_question(plan, purpose)));
    }
    conditions.retain(|it| is_asked(&it.contender));
    let fails = |name: &str| conditions.iter().any(|it| it.contender == name && !it.met);
    let names = plan.contenders.iter().map(|it| it.name.as_str()).filter(|it| is_asked(it));
    let candidates: Vec<&str> = names.filter(|name| !fails(name)).collect();
    let (counted, missing) = counted(plan, records, purpose, &candidates);
    let mut audited = Audited::of(plan, records);
    let findings = audited.voiding(plan, &duplicate_rules(plan));
    let (candidates, left_out) = fit(candidates, &counted, &findings, records);
    let scores = [Which::Latest, Which::First].map(|which| {
        let of = |name: &&str| Scores::of(name, &counted, records, which);
        candidates.iter().map(|name| (*name, of(name))).collect::<BTreeMap<&str, Scores>>()
    });
    let standings = standings(plan, &candidates, &counted, &scores, margin);
    let answer = match candidates.as_slice() {
        [] => Answer::Nobody,
        _ if counted.is_empty() || missing.iter().any(|it| it.decides) => Answer::Unmeasured,
        [only] => Answer::Only(only.to_string()),
        _ => answer(&candidates, &standings),
    };
    let leader = match &answer {
        Answer::Best(name) => candidates.iter().copied().find(|it| it == name),
        _ => leader(&candidates, &standings),
    };
    let gaps: Vec<Gap> = candidates
        .iter()
        .filter(|name| Some(**name) != leader)
        .filter_map(|name| Gap::of(leader?, name, &scores[0]))
        .collect();
    let weighed = weighed(&counted, leader, &gaps);
    let answer = match answer {
        Answer::Equivalent(names) if !are_alike(&names, &weighed, margin) => Answer::Even(names),
        answer => answer,
    };
    Advice {
        purpose: purpose.name.clone(),
        about: purpose.about.clone(),
        run: run.into(),
        layers: below(plan, layers),
        turns: match &answer {
            Answer::Best(_) => gaps.iter().flat_map(|gap| turns(gap, &counted, &missing)).collect(),
            _ => Vec::new(),
        },
        answer,
        conditions,
        left_out,
        weighed,
        missing,
        standings,
        findings: flags(&audited, plan, records, &candidates, &counted, layers),
        margin,
        confidence: plan.judgement.confidence,
    }
}

/// What to say of layers, if contenders differ in them.
fn below(plan: &Plan, layers: &str) -> Option<Below> {
    let mut others = plan.stacks();
    others.retain(|stack| stack != layers);
    (!others.is_empty()).then(|| Below { compared: layers.into(), others })
}

/// The findings on what disks say of themselves: on a disk that says something else another
/// contender may be the best. That times which count hold in the virtual machine alone. And those
/// on the terms of `candidates`: who takes one of these takes its terms, too.
fn flags(
    audited: &Audited,
    plan: &Plan,
    records: &[Record],
    candidates: &[&str],
    counted: &[Counted],
    layers: &str,
) -> Vec<Finding> {
    let of_times = counted.iter().find_map(|Counted { want, workloads }| {
        let pairs = candidates.iter().flat_map(|name| workloads.iter().map(move |it| (*it, *name)));
        let entrants: Vec<(&str, &str)> = pairs.collect();
        guests::of_times(plan, audited.trials(), &entrants, &want.metric)
    });
    let severity = Severity::Warning;
    let of_times = of_times.map(|it| Finding { severity, ..it });
    of_times.into_iter().chain(of_stack(plan, records, candidates, layers)).collect()
}

/// The findings on contenders with `layers` only; those about unequal terms against others are left
/// out.
fn of_stack(plan: &Plan, records: &[Record], candidates: &[&str], layers: &str) -> Vec<Finding> {
    let mut alone = plan.clone();
    alone.contenders.retain(|it| it.stack() == layers);
    alone.judgement.reference = None;
    if alone.contenders.is_empty() {
        return Vec::new();
    }
    let mut findings = Audited::of(&alone, records).of_terms(&alone);
    findings.retain(|finding| {
        let contender = finding.contender.as_deref();
        let is_candidate = contender.is_some_and(|it| candidates.contains(&it));
        finding.audit == Audit::DiskFlag || finding.is_of_terms() && is_candidate
    });
    findings
}

/// A want with the run's workloads that measure it.
struct Counted<'a> {
    want: &'a Want,
    workloads: Vec<&'a str>,
}

/// The wants that were measured, of one candidate at least, and those that were not.
fn counted<'a>(
    plan: &'a Plan,
    records: &[Record],
    purpose: &'a Purpose,
    candidates: &[&str],
) -> (Vec<Counted<'a>>, Vec<Missing>) {
    let mut counted = Vec::new();
    let mut missing = Vec::new();
    for want in &purpose.wants {
        let measures = |workload: &&Workload| measures(workload, want, purpose);
        let alike: Vec<&str> =
            plan.workloads.iter().filter(measures).map(|it| it.name.as_str()).collect();
        let has = |workload: &&str| {
            records.iter().any(|record| {
                candidates.contains(&record.key.contender.as_str())
                    && figure(record, workload, &want.metric).is_some()
            })
        };
        let workloads: Vec<&str> = alike.iter().copied().filter(|it| has(it)).collect();
        if !workloads.is_empty() {
            counted.push(Counted { want, workloads });
            continue;
        }
        missing.push(Missing {
            what: want.what.clone(),
            workload: want.workload.clone(),
            metric: want.metric.clone(),
            weight: want.weight,
            decides: want.decides,
            why: match alike.as_slice() {
                [] => "no workload of the run measures it".into(),
                some => format!("no trial of {} has {}", some.join(", "), want.metric),
            },
        });
    }
    (counted, missing)
}

/// Whether a workload of the run measures what is wanted: the use's own, or one of its kind with
/// the options that matter.
fn measures(workload: &Workload, want: &Want, purpose: &Purpose) -> bool {
    let own = purpose.workloads.iter().find(|it| it.name == want.workload);
    let Some(Ok(own)) = own.map(Workload::work) else { return false };
    let Ok(work) = workload.work() else { return false };
    if std::mem::discriminant(&own) != std::mem::discriminant(&work) {
        return false;
    }
    let has = |(option, value): (&String, &Scalar)| {
        values(workload, work, option).contains(&value.to_string())
    };
    // Two commands have nothing in common but perhaps their name, nor have two recordings.
    let any = want.like.is_empty() && !matches!(work, Work::Command(_) | Work::Replay(_));
    workload.name == want.workload || any || want.like.iter().any(|all| all.iter().all(has))
}

/// The values of an option of the work, as text.
fn values(workload: &Workload, work: Work, option: &str) -> Vec<String> {
    let of_table = |table: Result<toml::Table, _>| {
        let value = table.ok().and_then(|table: toml::Table| table.get(option).cloned());
        let text = value.map(|value| match value {
            toml::Value::String(text) => text,
            other => other.to_string(),
        });
        Vec::from_iter(text)
    };
    match work {
        Work::Command(_) | Work::Replay(_) => Vec::new(),
        Work::Fio(_) => workload.fio_values(option).unwrap_or_default(),
        Work::SmallFiles(files) => of_table(toml::Table::try_from(files)),
        Work::FsyncFiles(files) => of_table(toml::Table::try_from(files)),
        Work::Metadata(metadata) => of_table(toml::Table::try_from(metadata)),
        Work::Tree(tree) => of_table(toml::Table::try_from(tree)),
        Work::Sysbench(test) => {
            let begin = format!("--{option}=");
            let arguments = test.arguments();
            arguments.iter().filter_map(|it| it.strip_prefix(&begin)).map(String::from).collect()
        }
    }
}

/// ln(goodness) of the record, if it is one of `workload` and has the metric.
fn figure(record: &Record, workload: &str, metric: &str) -> Option<f64> {
    let counts = record.is_measured() && record.key.workload == workload;
    record.sample(metric).filter(|_| counts)?.goodness()
}

/// Those of the candidates that can be compared, and why the others can't.
fn fit<'a>(
    candidates: Vec<&'a str>,
    counted: &[Counted],
    findings: &[Finding],
    records: &[Record],
) -> (Vec<&'a str>, Vec<(String, String)>) {
    let why = |name: &str| unfit(name, counted, findings, records);
    let (fit, others) = candidates.into_iter().partition(|name| why(name).is_none());
    let others: Vec<&str> = others;
    let told = others.into_iter().filter_map(|name| Some((name.to_string(), why(name)?)));
    (fit, told.collect())
}

/// Why the contender can't be compared, if so, as the end of a sentence.
fn unfit(
    name: &str,
    counted: &[Counted],
    findings: &[Finding],
    records: &[Record],
) -> Option<String> {
    let workloads: BTreeSet<&str> =
        counted.iter().flat_map(|it| it.workloads.iter().copied()).collect();
    let void = findings.iter().find(|it| {
        it.severity == Severity::Void
            && it.contender.as_ref().is_none_or(|it| it == name)
            && it.workload.as_ref().is_none_or(|it| workloads.contains(it.as_str()))
    });
    if let Some(void) = void {
        let workload = void.workload.as_deref().unwrap_or("every workload");
        return Some(format!("void at {workload} ({:?}: {})", void.audit, void.evidence));
    }
    let zero = |it: &&Counted| it.workloads.iter().any(|work| is_zero(records, name, work, it));
    if let Some(zero) = counted.iter().find(zero) {
        let metric = &zero.want.metric;
        return Some(format!("its {metric} was 0 in some rounds, so there is no ratio"));
    }
    let whole = Scores::of(name, counted, records, Which::Latest);
    (!counted.is_empty() && whole.rounds.is_empty())
        .then(|| "no round has all of its figures".into())
}

/// Some trial of the contender at `workload` has 0 for what is wanted.
fn is_zero(records: &[Record], name: &str, workload: &str, it: &Counted) -> bool {
    let is_its = |record: &&Record| {
        record.is_measured() && record.key.workload == workload && record.key.contender == name
    };
    let zero = |record: &Record| record.sample(&it.want.metric).is_some_and(|it| it.value == 0.0);
    records.iter().filter(is_its).any(zero)
}

/// What one contender was measured to be.
struct Scores {
    /// The weights of the wants that count.
    weights: Vec<f64>,
    /// By round: ln(goodness) in each of these wants; only rounds that are whole.
    rounds: BTreeMap<u32, Vec<f64>>,
}

impl Scores {
    fn of(name: &str, counted: &[Counted], records: &[Record], which: Which) -> Scores {
        let is_its = |it: &&Record| it.is_measured() && it.key.contender == name;
        let its = records.iter().filter(is_its);
        let trials = which.of(its.map(|it| ((it.key.round, it.key.workload.as_str()), it)));
        let rounds: BTreeSet<u32> = trials.keys().map(|(round, _)| *round).collect();
        let score = |round: u32, it: &Counted| {
            let metric = &it.want.metric;
            let of = |workload: &&str| figure(trials.get(&(round, *workload))?, workload, metric);
            let figures: Option<Vec<f64>> = it.workloads.iter().map(of).collect();
            let figures = figures?;
            Some(figures.iter().sum::<f64>() / figures.len() as f64)
        };
        let whole = |round: u32| {
            let scores: Option<Vec<_>> = counted.iter().map(|it| score(round, it)).collect();
            Some((round, scores?))
        };
        Scores {
            weights: counted.iter().map(|it| it.want.weight).collect(),
            rounds: rounds.into_iter().filter_map(whole).collect(),
        }
    }

    /// Round by round the weighted differences to `other`.
    fn differences(&self, other: &Scores) -> Vec<f64> {
        let mean = |scores: &[f64]| {
            let weighted = self.weights.iter().zip(scores).map(|(weight, score)| weight * score);
            weighted.sum::<f64>() / self.weights.iter().sum::<f64>()
        };
        self.shared(other).map(|(_, ours, theirs)| mean(ours) - mean(theirs)).collect()
    }

    /// The rounds of both.
    fn shared<'a>(
        &'a self,
        other: &'a Scores,
    ) -> impl Iterator<Item = (u32, &'a [f64], &'a [f64])> {
        let both = |(round, ours): (&u32, &'a Vec<f64>)| {
            other.rounds.get(round).map(|theirs| (*round, ours.as_slice(), theirs.as_slice()))
        };
        self.rounds.iter().filter_map(both)
    }

    /// The rounds of both whose weighted differences outlie.
    fn outlying(&self, other: &Scores) -> Vec<u32> {
        let mut paired = Paired::default();
        self.differences(other).iter().for_each(|it| paired.push(*it));
        let rounds: Vec<u32> = self.shared(other).map(|(round, ..)| round).collect();
        paired.outlying().iter().map(|place| rounds[*place]).collect()
    }
}

/// Every two candidates, the better one first. Where rounds were run again, what is said has to
/// hold for both `scores`, of the latest trials and of the first.
fn standings(
    plan: &Plan,
    candidates: &[&str],
    counted: &[Counted],
    scores: &[BTreeMap<&str, Scores>; 2],
    margin: Percent,
) -> Vec<Standing> {
    let count = candidates.len();
    if count < 2 || counted.is_empty() {
        return Vec::new();
    }
    let pairs = count * (count - 1) / 2;
    let rule = rule(plan, alpha(plan) / pairs as f64);
    let mut standings = Vec::new();
    for (place, one) in candidates.iter().enumerate() {
        for other in &candidates[place + 1..] {
            let of = |one: &&str, other: &&str| {
                let [latest, first] = scores.each_ref().map(|scores| {
                    let differences = scores[*one].differences(&scores[*other]);
                    Course::of(&differences, &rule, margin.0.ln_1p())
                });
                latest.or(&first, margin.0.ln_1p())
            };
            let behind = of(one, other).estimate < 0.0;
            let (first, second) = if behind { (other, one) } else { (one, other) };
            let course = of(first, second);
            let high = course.interval.high.exp();
            standings.push(Standing {
                contender: first.to_string(),
                reference: second.to_string(),
                ratio: (course.rounds > 0).then(|| course.estimate.exp()),
                low: course.interval.low.exp(),
                high: high.is_finite().then_some(high),
                rounds: course.rounds,
                outlying: scores[0][*first].outlying(&scores[0][*second]),
                verdict: course.verdict,
            });
        }
    }
    standings
}

/// The verdict on `one` against `other`.
fn verdict(standings: &[Standing], one: &str, other: &str) -> Verdict {
    let found = standings.iter().find_map(|it| match (it.contender == one, it.reference == one) {
        (true, _) if it.reference == other => Some(it.verdict),
        (_, true) if it.contender == other => Some(it.verdict.mirrored()),
        _ => None,
    });
    found.unwrap_or(Verdict::Undecided)
}

/// If all intervals hold, none beats the best contender: it is among those that none was found to
/// beat by more than the margin. If they are all as good as one another, any of them will do.
fn answer(candidates: &[&str], standings: &[Standing]) -> Answer {
    let beats = |one: &str, other: &str| verdict(standings, one, other) == Verdict::Faster;
    let alike = |one: &str, other: &str| {
        let small = [Verdict::Equivalent, Verdict::TriviallyFaster, Verdict::TriviallySlower];
        one == other || small.contains(&verdict(standings, one, other))
    };
    let unbeaten = |it: &&&str| !candidates.iter().any(|other| beats(other, it));
    let best: Vec<&str> = candidates.iter().filter(unbeaten).copied().collect();
    let names = || best.iter().map(ToString::to_string).collect();
    match best.as_slice() {
        [one] => Answer::Best(one.to_string()),
        // Effects that moved can contradict one another.
        [] => Answer::Undecided(candidates.iter().map(ToString::to_string).collect()),
        all if all.iter().all(|one| all.iter().all(|other| alike(one, other))) => {
            Answer::Equivalent(names())
        }
        _ => Answer::Undecided(names()),
    }
}

/// The candidate that is ahead of the most others.
fn leader<'a>(candidates: &[&'a str], standings: &[Standing]) -> Option<&'a str> {
    let ahead = |name: &str| standings.iter().filter(|it| it.contender == name).count();
    candidates.iter().copied().max_by_key(|name| ahead(name))
}

/// What the leader has over another, want by want.
struct Gap<'a> {
    rival: &'a str,
    /// Means over the rounds of both that do not outlie, as in their standing; in ln units: above
    /// 0, the leader is better.
    means: Vec<f64>,
}

impl<'a> Gap<'a> {
    fn of(leader: &str, rival: &'a str, scores: &BTreeMap<&str, Scores>) -> Option<Gap<'a>> {
        let (ours, theirs) = (scores.get(leader)?, scores.get(rival)?);
        let outlying = ours.outlying(theirs);
        let mut rounds = 0.0;
        let mut sums: Vec<f64> = Vec::new();
        let kept = ours.shared(theirs).filter(|(round, ..)| !outlying.contains(round));
        for (_, ours, theirs) in kept {
            rounds += 1.0;
            sums.resize(ours.len(), 0.0);
            let steps = ours.iter().zip(theirs).map(|(ours, theirs)| ours - theirs);
            sums.iter_mut().zip(steps).for_each(|(sum, step)| *sum += step);
        }
        let means = sums.iter().map(|sum| sum / rounds).collect();
        (rounds > 0.0).then_some(Gap { rival, means })
    }
}

/// In nothing that counts one of them is ahead of another by more than the margin, by the means.
fn are_alike(names: &[String], weighed: &[Weighed], margin: Percent) -> bool {
    weighed.iter().all(|it| {
        let ratios = || names.iter().filter_map(|name| it.ratios.get(name)).copied();
        let (most, least) = (ratios().fold(0.0, f64::max), ratios().fold(f64::INFINITY, f64::min));
        most <= least * (1.0 + margin.0)
    })
}

/// A lever that is so many times away moves nobody.
const FAR: f64 = 20.0;

/// What would put the rival in front.
fn turns(gap: &Gap, counted: &[Counted], missing: &[Missing]) -> Vec<Turn> {
    let parts = || counted.iter().zip(&gap.means).map(|(it, mean)| it.want.weight * mean);
    let lead: f64 = parts().sum();
    let turn = |what: &str, lever| Turn { contender: gap.rival.into(), what: what.into(), lever };
    let mut turns = Vec::new();
    for (it, (mean, part)) in counted.iter().zip(gap.means.iter().zip(parts())) {
        let others = lead - part;
        let weight = others / -mean;
        if *mean < 0.0 && others > 0.0 && weight < FAR * it.want.weight {
            turns.push(turn(&it.want.what, Lever::WeightAbove(weight)));
        } else if *mean > 0.0 && others < 0.0 && weight > it.want.weight / FAR {
            turns.push(turn(&it.want.what, Lever::WeightBelow(weight)));
        }
    }
    let ratios = missing.iter().map(|it| (it, (lead / it.weight).exp()));
    let near = ratios.filter(|(_, ratio)| *ratio < FAR);
    turns.extend(near.map(|(it, ratio)| turn(&it.what, Lever::RatioAbove(ratio))));
    turns
}

fn weighed(counted: &[Counted], leader: Option<&str>, gaps: &[Gap]) -> Vec<Weighed> {
    let ratios = |place: usize| {
        let others = gaps.iter().map(|gap| (gap.rival.to_string(), (-gap.means[place]).exp()));
        leader.map(|name| (name.to_string(), 1.0)).into_iter().chain(others).collect()
    };
    let weighed = |(place, it): (usize, &Counted)| Weighed {
        what: it.want.what.clone(),
        metric: it.want.metric.clone(),
        workloads: it.workloads.iter().map(ToString::to_string).collect(),
        weight: it.want.weight,
        ratios: ratios(place),
    };
    counted.iter().enumerate().map(weighed).collect()
}

/// The workloads that measure what is wanted; where none does, all of them.
fn in_question<'a>(plan: &'a Plan, purpose: &Purpose) -> Vec<&'a str> {
    let wanted = |work: &&Workload| purpose.wants.iter().any(|want| measures(work, want, purpose));
    let all = || plan.workloads.iter();
    let is_any = all().any(|it| wanted(&it));
    all().filter(|it| !is_any || wanted(it)).map(|it| it.name.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::{phase, plan, record};
    use super::*;
    use crate::model::{Basis, DeviceTotals, Layer, Phase, Sample, Totals, Unit};

    const PLAN: &str = r#"
        [[contender]]
        name = "a"
        [[contender]]
        name = "b"
        [[contender]]
        name = "c"
        [[workload]]
        name = "reads"
        fio = { rw = "randread" }
        [[workload]]
        name = "writes"
        fio = { rw = "randwrite", fsync = 1 }
        [judgement]
        budget = "1h"
    "#;

    const USE: &str = r#"
        name = "test"
        [[workload]]
        name = "r"
        fio = { rw = "randread" }
        [[workload]]
        name = "w"
        fio = { rw = "randwrite", fdatasync = 1 }
        [[workload]]
        name = "f"
        small_files = {}
        [[want]]
        what = "reading"
        workload = "r"
        metric = "iops"
        weight = 1
        like = [{ rw = "randread" }]
        [[want]]
        what = "writing"
        workload = "w"
        metric = "iops"
        weight = 2
        like = [{ rw = "randwrite", fdatasync = 1 }, { rw = "randwrite", fsync = 1 }]
        [[want]]
        what = "files"
        workload = "f"
        metric = "create_rate"
        weight = 4
    "#;

    fn purpose(text: &str) -> Purpose {
        Purpose::parse(text).unwrap()
    }

    /// Rates of reading and writing.
    type Rates = [(&'static str, f64, f64); 3];
    const RATES: Rates = [("a", 1.0, 1.0), ("b", 2.0, 0.9), ("c", 0.5, 0.5)];

    fn records(rates: Rates, noise: f64) -> Vec<Record> {
        let mut records = Vec::new();
        for round in 1..=12u32 {
            for (place, (name, reads, writes)) in rates.iter().enumerate() {
                let wave = f64::from((round * 7 + place as u32 * 3) % 11) - 5.0;
                for (workload, rate) in [("reads", reads), ("writes", writes)] {
                    let rate = rate * (noise * wave / 5.0).exp();
                    let samples = vec![Sample::higher("iops", rate, Unit::PerSecond)];
                    records.push(Record { samples, ..record(round, workload, name) });
                }
            }
        }
        records
    }

    fn advised(records: &[Record], text: &str) -> Advice {
        advise("run", &plan(PLAN), records, &purpose(text), Vec::new(), Percent(0.05), Layer::NONE)
    }

    fn best(advice: &Advice) -> &str {
        match &advice.answer {
            Answer::Best(name) => name,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn weights_decide_and_the_turning_point_is_right() {
        let records = records(RATES, 0.01);
        let advice = advised(&records, USE);
        assert_eq!(best(&advice), "b");
        assert_eq!(advice.missing.len(), 1);
        assert_eq!(advice.weighed[0].workloads, ["reads"]);
        let turn = advice.turns.iter().find(|it| it.contender == "a" && it.what == "writing");
        let Some(Turn { lever: Lever::WeightAbove(weight), .. }) = turn else {
            panic!("{:?}", advice.turns)
        };
        // ln 2 of reading against ln 0.9 of writing.
        assert!((weight / (2f64.ln() / -(0.9f64.ln())) - 1.0).abs() < 0.05, "{weight}");
        let heavier = USE.replace("weight = 2", &format!("weight = {}", weight * 10.0));
        assert_eq!(best(&advised(&records, &heavier)), "a");
        let ratio = |want: usize, name| advice.weighed[want].ratios[name];
        assert_eq!(ratio(0, "b"), 1.0);
        assert!((ratio(0, "a") - 0.5).abs() < 0.02);
    }

    /// Better by an open size is not taken for better by more than the margin.
    #[test]
    fn better_by_an_open_size_is_not_the_best() {
        let close = [("a", 1.03, 1.03), ("b", 1.0, 1.0), ("c", 0.5, 0.5)];
        let advice = advised(&records(close, 0.02), USE);
        let is_it = |it: &&Standing| (&*it.contender, &*it.reference) == ("a", "b");
        let verdict = advice.standings.iter().find(is_it).map(|it| it.verdict);
        assert_eq!(verdict, Some(Verdict::FasterSizeOpen), "{:?}", advice.standings);
        assert_eq!(advice.answer, Answer::Undecided(vec!["a".into(), "b".into()]));
    }

    #[test]
    fn a_stalled_trial_plays_no_part_in_what_stands_beside_the_verdict() {
        let mut records = records([("a", 1.1, 1.1), ("b", 1.0, 1.0), ("c", 0.5, 0.5)], 0.005);
        let stalled = |it: &&mut Record| it.key.round == 5 && it.key.contender == "a";
        records.iter_mut().filter(stalled).for_each(|it| it.samples[0].value /= 20.0);
        let advice = advised(&records, USE);
        assert_eq!(best(&advice), "a");
        let ratio = advice.weighed[0].ratios["b"];
        assert!((ratio * 1.1 - 1.0).abs() < 0.02, "{ratio}");
        let standing = advice.standings.iter().find(|it| it.reference == "b").unwrap();
        assert_eq!(standing.outlying, [5]);
        let lever = advice.turns.iter().find(|it| it.contender == "b").map(|it| it.lever);
        assert!(matches!(lever, Some(Lever::RatioAbove(ratio)) if ratio > 1.0), "{lever:?}");
    }

    #[test]
    fn what_is_run_again_has_to_hold_with_the_first_trials_too() {
        let of = |records: &[Record]| {
            let all = advised(records, USE).standings;
            let found = all.iter().find(|it| (&*it.contender, &*it.reference) == ("b", "a"));
            found.map(|it| [it.low, it.high.unwrap()]).unwrap()
        };
        let plain = records(RATES, 0.01);
        let faster = |record: &Record| {
            let mut record = record.clone();
            let is_its = record.key.contender == "b" && (3..=5).contains(&record.key.round);
            record.samples[0].value *= if is_its { 1.1 } else { 1.0 };
            record
        };
        let quick: Vec<Record> = plain.iter().map(faster).collect();
        let [one, other] = [of(&plain), of(&quick)];
        let hull = [one[0].min(other[0]), one[1].max(other[1])];
        assert_ne!(one, other);
        let again = |all: &[Record]| {
            let is_again = |it: &&Record| (3..=5).contains(&it.key.round);
            all.iter().filter(is_again).cloned().collect::<Vec<_>>()
        };
        assert_eq!(of(&[plain.clone(), again(&quick)].concat()), hull);
        assert_eq!(of(&[quick.clone(), again(&plain)].concat()), hull);
    }

    #[test]
    fn what_is_missing_could_turn_it_too() {
        let advice = advised(&records(RATES, 0.01), USE);
        let lever = |name| {
            let found = advice.turns.iter().find(|it| it.contender == name && it.what == "files");
            found.unwrap().lever
        };
        // ln(lead) = 1 ln 2 + 2 ln 0.9, over a weight of 4.
        let expected = ((2f64.ln() + 2.0 * 0.9f64.ln()) / 4.0).exp();
        assert!(matches!(lever("a"), Lever::RatioAbove(it) if (it / expected - 1.0).abs() < 0.02));
        assert!(matches!(lever("c"), Lever::RatioAbove(it) if it > expected));
    }

    #[test]
    fn equals_are_equivalent_and_noise_is_no_verdict() {
        let same = [("a", 1.0, 1.0), ("b", 1.01, 0.995), ("c", 0.5, 0.5)];
        let answer = advised(&records(same, 0.002), USE).answer;
        assert_eq!(answer, Answer::Equivalent(vec!["a".into(), "b".into()]));
        let answer = advised(&records(RATES, 2.0), USE).answer;
        assert_eq!(answer, Answer::Undecided(vec!["a".into(), "b".into(), "c".into()]));
        let none = USE.replace("randread", "read").replace("randwrite", "write");
        let advice = advised(&records(RATES, 0.01), &none);
        assert_eq!((advice.answer, advice.missing.len()), (Answer::Unmeasured, 3));
    }

    #[test]
    fn who_fulfils_no_condition_or_was_not_measured_whole_is_not_advised() {
        let needs = format!("needs = [\"durability\"]\n{USE}");
        let mut records = records(RATES, 0.01);
        for record in &mut records {
            let flushes = if record.key.contender == "b" { 0 } else { 90 };
            *record = with_device(record.clone(), flushes, 4096);
        }
        records.retain(|it| it.key.contender != "c" || it.key.workload == "reads");
        let advice = advised(&records, &needs);
        assert_eq!(advice.answer, Answer::Only("a".into()));
        let b = advice.conditions.iter().find(|it| it.contender == "b").unwrap();
        assert_eq!((b.met, b.basis), (false, Basis::Measured));
        assert_eq!(advice.left_out[0].0, "c");
        assert_eq!(best(&advised(&records, USE)), "b");
    }

    #[test]
    fn durability_is_that_of_the_work_in_question() {
        let needs = format!("needs = [\"durability\"]\n{USE}");
        let mut records = records(RATES, 0.01);
        for record in &mut records {
            let flushes = if record.key.workload == "writes" { 900 } else { 2 };
            *record = with_device(record.clone(), flushes, 4096);
        }
        let evidence = &advised(&records, &needs).conditions[0].evidence;
        assert_eq!(evidence, "900 flushes in the median trial of writes");
    }

    #[test]
    fn what_spares_flushes_is_known_wherever_it_is_said() {
        for spares in [
            "mount = [\"nobarrier\"]",
            "file_system = \"zfs\"\nmkfs = [\"-O\", \"sync=disabled\"]",
            "above = [\"overlay:volatile\"]",
            "queue = { write_cache = \"write through\" }",
            "module = { \"zfs.zfs_nocacheflush\" = 1 }",
        ] {
            let plan = plan(&PLAN.replace("name = \"b\"", &format!("name = \"b\"\n{spares}")));
            let needs = purpose(&format!("needs = [\"durability\"]\n{USE}"));
            let records = records(RATES, 0.01);
            let flushed: Vec<_> =
                records.into_iter().map(|record| with_device(record, 9, 4096)).collect();
            let advice =
                advise("run", &plan, &flushed, &needs, Vec::new(), Percent(0.05), Layer::NONE);
            let met =
                |name: &str| advice.conditions.iter().any(|it| it.contender == name && it.met);
            assert!(met("a") && !met("b"), "{spares}: {:?}", advice.conditions);
        }
    }

    #[test]
    fn who_all_lie_on_one_layer_are_on_equal_terms() {
        let on = |name: &str| format!("name = \"{name}\"\nlayers = [\"writecache\"]");
        let on_both = PLAN.replace("name = \"a\"", &on("a")).replace("name = \"b\"", &on("b"));
        let plan =
            plan(&format!("bed = {{ kind = \"loop\", size = \"1G\", devices = 2 }}\n{on_both}"));
        let told = |layers, candidates: &[&str]| of_stack(&plan, &[], candidates, layers);
        assert_eq!(told("writecache", &["a", "b"]), [], "the one beside them is left out");
        assert_eq!(told("luks", &[]), [], "nobody is on it");
    }

    #[test]
    fn what_lies_on_other_layers_is_another_question() {
        let text = PLAN.replace("name = \"b\"", "name = \"b\"\nlayers = [\"luks\"]");
        let of = |layers: &str| {
            let (plan, records) = (plan(&text), records(RATES, 0.01));
            let purpose = purpose(&format!("needs = [\"durability\"]\n{USE}"));
            advise("run", &plan, &records, &purpose, Vec::new(), Percent(0.05), layers)
        };
        let bare = of(Layer::NONE);
        assert_eq!(best(&bare), "a", "b would be, and is on another disk");
        let known: Vec<&str> = bare.conditions.iter().map(|it| it.contender.as_str()).collect();
        assert_eq!((known, bare.left_out.len()), (vec!["a", "c"], 0));
        let below = |compared: &str, other: &str| {
            Some(Below { compared: compared.into(), others: vec![other.into()] })
        };
        assert_eq!(bare.layers, below("none", "luks"));
        let luks = of("luks");
        assert_eq!((luks.answer, luks.layers), (Answer::Only("b".into()), below("luks", "none")));
        assert_eq!(advised(&records(RATES, 0.01), USE).layers, None);
    }

    #[test]
    fn few_flushes_where_another_made_many_are_none() {
        let needs = format!("needs = [\"durability\"]\n{USE}");
        let of = |few: u64, many: u64| {
            let mut records = records(RATES, 0.01);
            for record in &mut records {
                let flushes = if record.key.contender == "b" { few } else { many };
                *record = with_device(record.clone(), flushes, 4096);
            }
            let conditions = advised(&records, &needs).conditions;
            let b = conditions.into_iter().find(|it| it.contender == "b").unwrap();
            (b.met, b.basis, b.evidence)
        };
        let told = "3 flushes in the median trial of writes, and 2000 on another".to_string();
        assert_eq!(of(3, 2000), (false, Basis::Measured, told));
        assert_eq!((of(3, 30).0, of(3, 30).1), (true, Basis::Documented), "a tenth may be merged");
        assert_eq!((of(1, 19).0, of(1, 19).1), (true, Basis::Documented));
        assert_eq!((of(20, 2000).0, of(20, 2000).1), (true, Basis::Measured));
    }

    #[test]
    fn work_that_only_read_proves_nothing_about_fsync() {
        // The use asks for nothing but reading.
        let reading = USE.replace("rw = \"randwrite\"", "rw = \"write\"");
        let needs = format!("needs = [\"durability\"]\n{reading}");
        let seen = |flushes_of_writes: u64| {
            let mut records = records(RATES, 0.01);
            for record in &mut records {
                let (flushes, bytes) = match record.key.workload.as_str() {
                    "writes" => (flushes_of_writes, 4096),
                    _ if record.key.contender == "b" => (0, 0),
                    _ => (1, 512),
                };
                *record = with_device(record.clone(), flushes, bytes);
            }
            let conditions = advised(&records, &needs).conditions;
            conditions.into_iter().find(|it| it.contender == "b").unwrap()
        };
        let told = seen(30);
        assert_eq!((told.met, told.basis), (true, Basis::Measured));
        assert_eq!(told.evidence, "30 flushes in the median trial of writes");
        assert!(seen(0).met, "none flushed at what wrote");
        // A trial's own sync at its end.
        assert_eq!((seen(2).met, seen(2).basis), (true, Basis::Documented));
    }

    #[test]
    fn who_keeps_no_journal_is_not_durable_and_its_terms_are_told_where_nothing_needs_that() {
        let text = PLAN
            .replace("name = \"a\"", "name = \"a\"\nfile_system = \"xfs\"")
            .replace("name = \"b\"", "name = \"b\"\nfile_system = \"ext2\"");
        let of = |needs: &str| {
            let records = records(RATES, 0.01);
            let its: Vec<_> = records.into_iter().map(|it| with_device(it, 30, 4096)).collect();
            advise(
                "run",
                &plan(&text),
                &its,
                &purpose(needs),
                Vec::new(),
                Percent(0.05),
                Layer::NONE,
            )
        };
        let needy = of(&format!("needs = [\"durability\"]\n{USE}"));
        let b = needy.conditions.iter().find(|it| it.contender == "b").unwrap();
        assert!(!b.met && b.evidence.starts_with("no journal"), "{b:?}");
        assert_eq!(needy.findings.len(), 0, "it is no candidate: {:?}", needy.findings);
        let free = of(USE);
        let [only] = &free.findings[..] else { panic!("{:?}", free.findings) };
        assert_eq!((only.audit, only.contender.as_deref()), (Audit::A19, Some("b")));
    }

    #[test]
    fn a_kernel_that_counts_no_flushes_is_no_lie() {
        let needs = purpose(&format!("needs = [\"durability\"]\n{USE}"));
        let mut records = records(RATES, 0.01);
        for record in &mut records {
            let is_old = record.key.contender == "b";
            let untold = vec![crate::model::NO_FLUSHES_COUNTED[1].to_string()];
            let guest = is_old.then(|| crate::model::Guest { untold, ..Default::default() });
            let flushes = if is_old { 0 } else { 900 };
            *record = Record { guest, ..with_device(record.clone(), flushes, 4096) };
        }
        let advice =
            advise("run", &plan(PLAN), &records, &needs, Vec::new(), Percent(0.05), Layer::NONE);
        let b = advice.conditions.iter().find(|it| it.contender == "b").unwrap();
        assert!(b.met && b.evidence.contains("flushes were not measured on it"), "{b:?}");
    }

    fn with_device(record: Record, flushes: u64, write_bytes: u64) -> Record {
        let flushes = Some(flushes);
        let device = Some(DeviceTotals { flushes, write_bytes, ..Default::default() });
        let totals = Totals { device, ..Default::default() };
        let phases = vec![crate::model::PhaseRecord { totals, ..phase(Phase::Whole) }];
        Record { phases, ..record }
    }

    #[test]
    fn without_what_decides_there_is_no_advice() {
        let decides = USE.replace("weight = 4", "weight = 4\ndecides = true");
        let advice = advised(&records(RATES, 0.01), &decides);
        assert_eq!(advice.answer, Answer::Unmeasured);
        assert!(advice.missing[0].decides && !advice.weighed.is_empty());
    }

    #[test]
    fn who_is_ahead_in_one_and_behind_in_another_is_not_equivalent() {
        // ln 1.5 of reading and twice ln 0.8165 of writing add up to nothing.
        let even = [("a", 1.5, 0.8165), ("b", 1.0, 1.0), ("c", 0.5, 0.5)];
        let advice = advised(&records(even, 0.002), USE);
        assert_eq!(advice.answer, Answer::Even(vec!["a".into(), "b".into()]));
    }

    #[test]
    fn a_lever_that_nobody_would_pull_is_not_told() {
        let barely = [("a", 1.0, 1.0), ("b", 2.0, 0.999), ("c", 0.5, 0.5)];
        let turns = advised(&records(barely, 0.001), USE).turns;
        assert!(turns.iter().all(|it| it.what != "writing"), "{turns:?}");
    }

    #[test]
    fn void_measurements_advise_nothing() {
        let mut records = records(RATES, 0.01);
        let reads_b = |it: &&mut Record| it.key.contender == "b" && it.key.workload == "reads";
        for record in records.iter_mut().filter(reads_b) {
            record.caches = vec![Default::default()];
        }
        let advice = advised(&records, USE);
        assert_eq!(best(&advice), "a");
        assert!(advice.left_out[0].1.starts_with("void at reads (A7"), "{:?}", advice.left_out);
    }

    #[test]
    fn the_plan_is_completed_with_what_is_missing() {
        let advice = advised(&records(RATES, 0.01), USE);
        let plan = purpose(USE).completed(&plan(PLAN), &advice.missing);
        plan.check().unwrap();
        assert_eq!(plan.workloads[2].name, "f");
        assert_eq!(plan.workloads[2].primary(), ["create_rate"]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn neither_order_nor_scale_of_weights_plays_a_part(
            order in Just(vec![0, 1, 2]).prop_shuffle(),
            scale in 0.01..100.0f64,
            reads in 0.2..4.0f64,
            noise in prop::sample::select(vec![0.002, 0.05, 0.5]),
        ) {
            let rates = [("a", 1.0, 1.0), ("b", reads, 0.9), ("c", 0.5, 0.5)];
            let records = records(rates, noise);
            let first = plan(PLAN);
            let mut permuted = first.clone();
            permuted.contenders = order.iter().map(|&it| first.contenders[it].clone()).collect();
            let wanted = purpose(USE);
            let mut scaled = wanted.clone();
            scaled.wants.iter_mut().for_each(|want| want.weight *= scale);
            let of = |plan: &Plan, purpose: &Purpose| {
                advise("run", plan, &records, purpose, Vec::new(), Percent(0.05), Layer::NONE)
            };
            let (one, other) = (of(&first, &wanted), of(&permuted, &scaled));
            let sorted = |answer: &Answer| match answer.clone() {
                Answer::Equivalent(mut names)
                | Answer::Even(mut names)
                | Answer::Undecided(mut names) => {
                    names.sort();
                    names
                }
                Answer::Best(name) => vec![name],
                other => panic!("{other:?}"),
            };
            prop_assert_eq!(sorted(&one.answer), sorted(&other.answer));
            for standing in &one.standings {
                let same = other.standings.iter().find(|it| {
                    it.contender == standing.contender && it.reference == standing.reference
                });
                prop_assert!((same.unwrap().low - standing.low).abs() < 1e-9);
                prop_assert_eq!(same.unwrap().verdict, standing.verdict);
            }
        }
    }
}
