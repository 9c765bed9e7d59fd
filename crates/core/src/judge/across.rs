//! Two runs that were measured apart: how the ratio to a common reference has changed.
//!
//! Rates of two runs are never compared: the effect of another hour, kernel or neighbour would be
//! taken for the contender's. In each run the contender's ratio to the reference is a mean of
//! paired differences, as always, and the two means are independent: [`apart`](super::apart) judges
//! them.
//!
//! Whatever could not be compared is reported: contenders that failed, that have too few rounds,
//! what was left out. A gate decides by that, too.

use std::collections::BTreeMap;

use super::apart::{Apart, Rounds, chance_of_each};
use super::audit::{Audited, Promise};
use super::compare::{Judge, alpha, noticed, shared, voids};
use super::fold::Fold;
use super::in_both::{Both, Task, known};
use super::interval::Course;
use super::lane::Lane;
use super::not_measured::{failed, too_few};
use super::pairs::{Which, unit_of};
use super::shared::Sharing;
use super::terms::{self, Side};
use crate::model::claim::Answered;
use crate::model::{
    Across, Audit, Change, ClaimChange, Family, Finding, Incomparable, Measured, OtherTerms,
    Percent, Plan, Record, ReferenceChange, Severity, Stop, Term, Verdict, Voided, median,
};

/// What is asked of two runs.
#[derive(Clone, Debug)]
pub struct Asked {
    /// In these metrics; in the baseline's primary ones where there are none.
    pub metrics: Vec<String>,
    /// Differences below it are trivial.
    pub margin: Percent,
    /// The smallest regression that had better be found.
    pub regression: Percent,
    /// Runs of two machines are compared.
    pub across_machines: bool,
}

/// Compares the runs, which were measured apart.
///
/// Fails where the runs are not alike, hold no reference together, or nothing at all can be
/// compared.
pub fn across(baseline: Side, run: Side, asked: &Asked) -> Result<Across, Incomparable> {
    if !asked.across_machines {
        one_machine(baseline, run)?;
    }
    alike(baseline, run)?;
    let judged = run.plan.judged_as(baseline.plan);
    let (own, run) = (run.plan, Side { plan: &judged, ..run });
    let reference = run.plan.reference();
    if !run.plan.has_same(baseline.plan, reference) {
        return Err(Incomparable::Reference { reference: reference.into() });
    }
    let sides = [baseline, run];
    known(&sides, &asked.metrics)?;
    let noticed = sides.map(|it| noticed(it.plan, it.records));
    let both = Both { baseline, run, own, metrics: &asked.metrics, noticed: &noticed[0] };
    let (tasks, left_out) = both.tasks();
    if tasks.is_empty() {
        return Err(Incomparable::Nothing { left_out });
    }
    let bench = Bench::new(sides, &tasks, asked, &noticed);
    let of_one = |one: &Task, other: &Task| {
        (&one.workload.name, one.contender) == (&other.workload.name, other.contender)
    };
    let changes: Vec<Change> = tasks.chunk_by(of_one).flat_map(|its| bench.changes(its)).collect();
    let mut not_measured = failed(baseline, run);
    not_measured.extend(changes.iter().filter_map(too_few));
    Ok(Across {
        not_measured,
        left_out,
        references: bench.references(&tasks),
        claims: claims(baseline, Side { plan: own, ..run }),
        changes,
        ..uncompared(baseline, Side { plan: own, ..run }, asked, Measured::Apart, &noticed)
    })
}

/// The comparison of two runs before any change between them is known, for callers that measure
/// again: whole workloads and contenders that the run lacks are listed all the same.
pub fn before_changes(baseline: Side, run: Side, asked: &Asked) -> Across {
    let noticed = [baseline, run].map(|it| noticed(it.plan, it.records));
    let judged = run.plan.judged_as(baseline.plan);
    let (metrics, own) = (&asked.metrics, run.plan);
    let of_run = Side { plan: &judged, ..run };
    let both = Both { baseline, run: of_run, own, metrics, noticed: &noticed[0] };
    let (_, mut left_out) = both.tasks();
    // Other work is measured anew with both.
    let is_gone = |name: &String| own.workloads.iter().all(|it| it.name != *name);
    left_out.retain(|it| {
        it.lost && it.metric.is_none() && (it.contender.is_some() || is_gone(&it.workload))
    });
    let across = uncompared(baseline, run, asked, Measured::Together, &noticed);
    Across { left_out, ..across }
}

fn uncompared(
    baseline: Side,
    run: Side,
    asked: &Asked,
    measured: Measured,
    noticed: &[Vec<Finding>; 2],
) -> Across {
    Across {
        baseline: baseline.run.name.clone(),
        run: run.run.name.clone(),
        measured,
        margin: asked.margin,
        regression: asked.regression,
        confidence: baseline.plan.judgement.confidence,
        gate: None,
        notes: notes(baseline, run, asked).into_iter().chain(of_guests(noticed)).collect(),
        terms: other_terms(baseline, run),
        differences: terms::differences(baseline, run),
        not_measured: Vec::new(),
        left_out: Vec::new(),
        references: Vec::new(),
        claims: Vec::new(),
        changes: Vec::new(),
    }
}

/// What to know of the two before anything else.
fn notes(baseline: Side, run: Side, asked: &Asked) -> Vec<String> {
    let mut notes = judged_otherwise(baseline.plan, run.plan, asked);
    for (which, side) in [("baseline", baseline), ("run", run)] {
        if matches!(side.run.stop, None | Some(Stop::Interrupted)) {
            notes.push(format!("The {which} was interrupted, or still goes on."));
        }
    }
    if baseline.run.started > run.run.started {
        notes.push("The baseline started later than the run: are the two swapped?".into());
    }
    notes
}

/// So many works with other metrics are named; more are counted.
const WORKS_NAMED: usize = 3;

/// What the run's plan declares of its judgement, where it is judged by the baseline's.
fn judged_otherwise(baseline: &Plan, own: &Plan, asked: &Asked) -> Vec<String> {
    let judged = own.judged_as(baseline);
    let (before, now) = (&baseline.judgement, &own.judgement);
    let mut ways = Vec::new();
    let mut way = |what: &str, by: String, own: String| {
        if by != own {
            ways.push(format!("{what} {by} ({own} in the run's)"));
        }
    };
    if asked.margin == before.margin {
        way("a margin of", before.margin.to_string(), now.margin.to_string());
    }
    way("a confidence of", before.confidence.to_string(), now.confidence.to_string());
    let family = |family: Family| if family == Family::Run { "the run" } else { "each workload" };
    way("an error shared over", family(before.family).into(), family(now.family).into());
    way("ratios to", judged.reference().into(), own.reference().into());
    let works = judged.workloads.iter().zip(&own.workloads);
    let other = works.filter(|(judged, own)| judged.primary() != own.primary());
    let other: Vec<_> = other.filter(|_| asked.metrics.is_empty()).collect();
    for (judged, own) in other.iter().take(WORKS_NAMED) {
        let what = format!("at {}", judged.name);
        way(&what, judged.primary().join(", "), own.primary().join(", "));
    }
    if other.len() > WORKS_NAMED {
        ways.push(format!("other metrics at {} more workloads", other.len() - WORKS_NAMED));
    }
    match ways.is_empty() {
        true => Vec::new(),
        false => vec![format!("Judged by the baseline's plan: {}.", ways.join("; "))],
    }
}

/// The terms that changed for contenders of both plans: what each gives up itself in one run and
/// not in the other, whichever contenders it was measured with.
fn other_terms(baseline: Side, run: Side) -> OtherTerms {
    let sides = [baseline, run];
    let is_held = |name: &String| sides.iter().all(|it| it.plan.contender(name).is_some());
    let [before, now] = sides.map(|it| Audited::of(it.plan, it.records).own_terms(it.plan));
    let only = |one: &[(Promise, Finding)], other: &[(Promise, Finding)]| -> Vec<Finding> {
        let is_known = |(promise, finding): &&(Promise, Finding)| {
            other.iter().any(|(its, it)| its == promise && it.contender == finding.contender)
        };
        let its = one.iter().filter(|it| !is_known(it)).map(|(_, it)| it);
        its.filter(|it| it.contender.as_ref().is_some_and(is_held)).cloned().collect()
    };
    OtherTerms { now: only(&now, &before), before: only(&before, &now) }
}

/// That times of a run are those of its virtual machine alone.
fn of_guests(noticed: &[Vec<Finding>; 2]) -> Option<String> {
    let is_such = |it: &&Finding| {
        matches!(it.audit, Audit::A22 | Audit::A28) && it.severity == Severity::Warning
    };
    let finding = noticed.iter().flatten().find(is_such)?;
    Some(format!("Times are those of virtual machines alone: {}.", finding.evidence))
}

/// Refuses runs of two machines: a processor or an architecture may be kinder to one contender than
/// to another.
fn one_machine(baseline: Side, run: Side) -> Result<(), Incomparable> {
    let Some(what) = terms::other_machine(baseline.run, run.run) else { return Ok(()) };
    let value = |side: Side| side.run.host.get(what).cloned().unwrap_or_default();
    Err(Incomparable::Machines { what: what.into(), baseline: value(baseline), run: value(run) })
}

/// Refuses runs whose ratios don't even mean the same.
fn alike(baseline: Side, run: Side) -> Result<(), Incomparable> {
    match terms::conditions(&[baseline, run]).into_iter().find(|it| !it.equal) {
        None => Ok(()),
        Some(Term { what, values, .. }) => {
            let [baseline, run] = terms::both(values);
            Err(Incomparable::Unlike {
                what,
                baseline,
                run,
                remedy: "measure both on equal terms, or give --rerun, which measures the \
                         baseline's contenders again on the run's terms",
            })
        }
    }
}

/// What both say of the claims in the baseline's plan: a change that brings its own claims can't be
/// the judge of itself.
fn claims(baseline: Side, run: Side) -> Vec<ClaimChange> {
    let mut judged = run.plan.judged_as(baseline.plan);
    judged.claims.clone_from(&baseline.plan.claims);
    judged.give_up_claims(&run.run.left_out);
    give_up_other_work(&mut judged, baseline.plan);
    let [before, now] = [baseline, Side { plan: &judged, ..run }].map(answered);
    before.iter().zip(now).map(|(before, now)| ClaimChange::of(before, now)).collect()
}

fn answered(side: Side) -> Vec<Answered> {
    if side.plan.claims.is_empty() {
        return Vec::new();
    }
    let judge = Judge::new(side.plan);
    let mut fold = Fold::of(&judge, side.records);
    let (comparisons, findings) = (fold.comparisons(), fold.findings());
    fold.claims(side, &comparisons, &findings)
}

/// Gives up the plan's claims about works that are others in `asked`, which claims it.
pub fn give_up_other_work(plan: &mut Plan, asked: &Plan) {
    let difference = |name: &String| {
        let find = |plan: &'_ Plan| plan.workloads.iter().find(|it| it.name == *name).cloned();
        let (claimed, run) = (find(asked)?, find(plan)?);
        let differing = terms::of_work(&[Some(&claimed), Some(&run)]);
        let Term { what, values, .. } = differing.into_iter().find(|it| !it.equal)?;
        let [claimed, run] = terms::both(values);
        Some(format!("the run's {name} is other work: {what} is {run}, and {claimed} in the claim"))
    };
    let missing: Vec<Option<String>> = plan
        .claims
        .iter()
        .map(|it| it.workload.iter().chain(&it.than).chain(&it.growth).find_map(difference))
        .collect();
    for (claim, difference) in plan.claims.iter_mut().zip(missing) {
        claim.not_measurable = claim.not_measurable.take().or(difference);
    }
}

/// What all comparisons of two runs need.
struct Bench<'a> {
    baseline: Side<'a>,
    run: Side<'a>,
    margin: f64,
    regression: f64,
    sharing: BTreeMap<&'a str, usize>,
    /// In the baseline, and in the run.
    noticed: &'a [Vec<Finding>; 2],
}

impl<'a> Bench<'a> {
    fn new(
        [baseline, run]: [Side<'a>; 2],
        tasks: &[Task<'a>],
        asked: &Asked,
        noticed: &'a [Vec<Finding>; 2],
    ) -> Bench<'a> {
        let mut sharing: BTreeMap<&str, usize> = BTreeMap::new();
        for task in tasks {
            *sharing.entry(&task.workload.name).or_default() += 1;
        }
        if run.plan.judgement.family == Family::Run {
            sharing.values_mut().for_each(|sharing| *sharing = tasks.len());
        }
        let [margin, regression] = [asked.margin, asked.regression].map(|it| it.0.ln_1p());
        Bench { baseline, run, margin, regression, sharing, noticed }
    }

    /// What takes the ground from a comparison, in the baseline or in the run.
    fn voided(&self, workload: &str, both: [&str; 2]) -> Option<Voided> {
        let of = |by_run: bool| {
            let finding = self.noticed[usize::from(by_run)].iter();
            let finding = finding.clone().find(|it| voids(it, workload, both))?.clone();
            Some(Voided { by_run, finding })
        };
        of(false).or_else(|| of(true))
    }

    /// Those of one contender at one work.
    fn changes(&self, tasks: &[Task]) -> Vec<Change> {
        let Task { workload, contender, .. } = tasks[0];
        let name = workload.name.as_str();
        let share = tasks.len() as f64 / self.sharing[name] as f64;
        let alpha = alpha(self.run.plan) * share;
        let metrics: Vec<&str> = tasks.iter().map(|it| it.metric.as_str()).collect();
        let sides = [self.baseline, self.run];
        let rules = sides.map(|side| shared(side.plan, alpha, metrics.len()));
        let both = [contender, self.run.plan.reference()];
        let [latest, first] = [Which::Latest, Which::First].map(|which| {
            [0, 1].map(|it| {
                let rules = (&rules[it], self.margin);
                Lane::of(sides[it].records, name, &metrics, both, rules, which)
            })
        });
        let sharing = Sharing::new(alpha, metrics.len());
        let chance = chance_of_each(&latest, metrics.len(), sharing);
        let courses = |place: usize| {
            [&latest, &first].map(|lanes| lanes.each_ref().map(|lane| lane.course(place)))
        };
        let all = tasks.iter().enumerate();
        all.map(|(place, task)| self.change(task, courses(place), chance)).collect()
    }

    /// One of them, by the courses of the latest trials in each run, and by those of the first;
    /// `alpha` is the chance that its interval misses it.
    fn change(&self, task: &Task, courses: [[Course; 2]; 2], alpha: f64) -> Change {
        let Task { workload, metric, contender } = task;
        let reference = self.run.plan.reference();
        let [runs, first] = courses.each_ref().map(|it| it.each_ref().map(Rounds::of));
        let apart = Apart::of(runs, alpha);
        let said = apart.said(&Apart::of(first, alpha), self.margin);
        let both = [contender, reference];
        let voided = self.voided(&workload.name, both);
        let (unit, better) = unit_of(self.run.records, &workload.name, metric);
        let high = said.interval.high.exp();
        let done = runs[0].count.min(runs[1].count);
        let is_open = !said.verdict.is_settled();
        let needed = apart.rounds_needed(self.margin);
        Change {
            workload: workload.name.clone(),
            metric: metric.clone(),
            unit,
            better,
            contender: contender.to_string(),
            reference: reference.into(),
            medians: self.middles(&workload.name, metric, contender),
            baseline_ratio: Some(runs[0].mean.exp()),
            run_ratio: Some(runs[1].mean.exp()),
            ratio: Some(apart.change().exp()),
            low: said.interval.low.exp(),
            high: high.is_finite().then_some(high),
            is_one_sided: said.is_one_sided,
            baseline_rounds: runs[0].count,
            rounds: runs[1].count,
            sharing: self.sharing[workload.name.as_str()] as u32,
            verdict: if voided.is_some() { Verdict::Void } else { said.verdict },
            voided,
            missed: Some(apart.missed(self.regression, self.margin)),
            rounds_needed: needed.filter(|rounds| is_open && *rounds > done),
            moved: courses.iter().flatten().any(|course| course.moved),
        }
    }

    /// What the reference itself took in each run, once for each metric of each workload.
    fn references(&self, tasks: &[Task]) -> Vec<ReferenceChange> {
        let mut all: Vec<ReferenceChange> = Vec::new();
        for Task { workload, metric, .. } in tasks {
            if all.iter().any(|it| it.workload == workload.name && it.metric == *metric) {
                continue;
            }
            let reference = self.run.plan.reference();
            let Some([baseline, run]) = self.middles(&workload.name, metric, reference) else {
                continue;
            };
            let (unit, better) = unit_of(self.run.records, &workload.name, metric);
            all.push(ReferenceChange {
                workload: workload.name.clone(),
                metric: metric.clone(),
                unit,
                better,
                reference: reference.into(),
                baseline,
                run,
                ratio: better.ratio(run, baseline),
            });
        }
        all
    }

    /// The medians of what a contender's trials measured in the baseline and in the run.
    fn middles(&self, workload: &str, metric: &str, contender: &str) -> Option<[f64; 2]> {
        let of = |side: Side| middle(side.records, workload, metric, contender);
        Some([of(self.baseline)?, of(self.run)?])
    }
}

/// The median of what a contender's trials measured.
fn middle(records: &[Record], workload: &str, metric: &str, contender: &str) -> Option<f64> {
    let its = records.iter().filter(|record| {
        record.is_measured() && record.key.workload == workload && record.key.contender == contender
    });
    let value = |record: &Record| Some((record.key.round, record.sample(metric)?.value));
    median(Which::Latest.of(its.filter_map(value)).into_values())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::{phase, plan, record, run};
    use super::*;
    use crate::model::{CpuTime, Failure, Guest, Key, Outcome, Phase, Run, Sample, Unit};

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

    fn asked() -> Asked {
        Asked {
            metrics: Vec::new(),
            margin: Percent(0.05),
            regression: Percent(0.1),
            across_machines: false,
        }
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
        across(side(0), side(1), &asked())
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
        let left_out: Vec<(&str, bool)> =
            found.left_out.iter().map(|it| (it.contender.as_deref().unwrap(), it.lost)).collect();
        assert_eq!(left_out, [("d", false), ("c", true)]);
    }

    fn lost(across: &Across) -> Vec<String> {
        across.left_out.iter().filter(|it| it.lost).map(ToString::to_string).collect()
    }

    #[test]
    fn what_the_baseline_judged_and_the_run_has_not_is_lost() {
        let before = plan(PLAN);
        let deleted = plan(&PLAN.replace("[[contender]]\n        name = \"c\"\n", ""));
        let found = compared([&before, &deleted], [BEFORE, BEFORE]).unwrap();
        assert_eq!(lost(&found), ["unpack, c: the run does not hold it"]);
        // None of its trials is there, and no failure.
        let (all, mut now) = (records(BEFORE, 0), records(BEFORE, 1));
        now.retain(|it| it.key.contender != "c");
        let found = pair(&before, &all, &now).unwrap();
        let why = "no round of the run has it for both c and a";
        assert_eq!(lost(&found), [format!("unpack, c, wall_time: {why}")]);
        assert_eq!(lost(&pair(&before, &now, &all).unwrap()), [""; 0], "nor did the baseline");
        let works = |names: &[&str]| {
            let work = |name: &&str| format!("[[workload]]\nname = \"{name}\"\ncommand = \"x\"\n");
            let works: String = names.iter().map(work).collect();
            plan(&PLAN.replace("[judgement]", &format!("{works}[judgement]")))
        };
        let more = |records: Vec<Record>| {
            let mut all = records.clone();
            let other = |it: Record| Record { key: Key { workload: "w".into(), ..it.key }, ..it };
            all.extend(records.into_iter().map(other));
            all
        };
        let (plans, all) = ([works(&["w"]), works(&[])], more(records(BEFORE, 0)));
        let runs = [facts("6.1"), facts("6.12")];
        let side = |it: usize| Side { run: &runs[it], plan: &plans[it], records: &all };
        let found = across(side(0), side(1), &asked()).unwrap();
        assert_eq!(lost(&found), ["w: the run does not hold it"]);
        assert_eq!(found.left_out[0].figures, 2, "of two contenders");
    }

    #[test]
    fn the_run_does_not_choose_by_what_it_is_judged() {
        let before = plan(PLAN);
        let slower = [("a", 1.0), ("b", 2.4), ("c", 0.5)];
        let [margin, confidence, family, primary, reference] = [
            ("[judgement]", "[judgement]\nmargin = \"50%\""),
            ("[judgement]", "[judgement]\nconfidence = \"80%\""),
            ("[judgement]", "[judgement]\nfamily = \"run\""),
            ("cache = \"warm\"", "cache = \"warm\"\nprimary = [\"cpu_time\"]"),
            ("reference = \"a\"", "reference = \"c\""),
        ]
        .map(|(from, to)| {
            let now = plan(&PLAN.replace(from, to));
            let found = compared([&before, &now], [BEFORE, slower]).unwrap();
            assert_eq!(verdicts(&found)["b"], Verdict::Slower, "{to}");
            assert_eq!(found.confidence, Percent(0.95));
            found
        });
        let note = |across: &Across| across.notes[0].clone();
        let by = |what: &str| format!("Judged by the baseline's plan: {what}.");
        assert_eq!(note(&margin), by("a margin of 5% (50% in the run's)"));
        assert_eq!(note(&confidence), by("a confidence of 95% (80% in the run's)"));
        let of = "an error shared over each workload (the run in the run's)";
        assert_eq!(note(&family), by(of));
        assert_eq!(note(&primary), by("at unpack wall_time (cpu_time in the run's)"));
        assert_eq!(note(&reference), by("ratios to a (c in the run's)"));
        let why = "unpack, cpu_time: the baseline does not judge it; --metric compares it";
        assert_eq!(primary.left_out[0].to_string(), why);
        assert!(!primary.left_out[0].lost);
    }

    #[test]
    fn who_is_on_other_terms_than_before_is_named() {
        let ext4 = PLAN.replace("[[contender]]", "[[contender]]\nfile_system = \"ext4\"");
        let bare = "name = \"b\"\nmkfs = [\"-O\", \"^has_journal\"]";
        let (with, without) = (plan(&ext4), plan(&ext4.replace("name = \"b\"", bare)));
        let of = |plans: [&Plan; 2]| {
            let terms = compared(plans, [BEFORE, BEFORE]).unwrap().terms;
            let names = |its: Vec<Finding>| {
                its.into_iter().filter_map(|it| it.contender).collect::<Vec<_>>()
            };
            [names(terms.now), names(terms.before)]
        };
        assert_eq!(of([&with, &without]), [vec!["b".to_string()], vec![]]);
        assert_eq!(of([&without, &with]), [vec![], vec!["b".to_string()]]);
        assert_eq!(of([&without, &without]), [[""; 0], [""; 0]]);
        // The company says nothing: a reference that was spared flushes all along, or a neighbour
        // that keeps its promise.
        let spared = |names: &[&str]| {
            let of = |text: String, name: &&str| {
                let bare = format!("name = \"{name}\"\nmount = [\"nobarrier\"]");
                text.replace(&format!("name = \"{name}\""), &bare)
            };
            plan(&names.iter().fold(ext4.clone(), of))
        };
        let (reference, both, all) =
            (spared(&["a"]), spared(&["a", "b"]), spared(&["a", "b", "c"]));
        assert_eq!(of([&reference, &both]), [vec!["b".to_string()], vec![]]);
        assert_eq!(of([&all, &both]), [vec![], vec!["c".to_string()]]);
    }

    #[test]
    fn times_of_virtual_machines_alone_are_told() {
        let (plan, runs) = (plan(PLAN), [facts("6.1"), facts("6.12")]);
        let of = |emulated| {
            let guest = Some(Guest { emulated, ..Guest::default() });
            let all = [0, 1].map(|seed| {
                let its = records(BEFORE, seed).into_iter();
                its.map(|it| Record { guest: guest.clone(), ..it }).collect::<Vec<_>>()
            });
            let side = |it: usize| Side { run: &runs[it], plan: &plan, records: &all[it] };
            across(side(0), side(1), &asked()).unwrap().notes.concat()
        };
        assert!(of(true).contains("Times are those of virtual machines alone: "), "{}", of(true));
        assert!(!of(false).contains("virtual machines"), "{}", of(false));
    }

    #[test]
    fn what_a_new_contender_has_is_counted_once() {
        let before = plan(PLAN);
        let extra = "[[contender]]\n        name = \"e\"\n        [[workload]]";
        let now = PLAN.replace("[[workload]]", extra);
        let judged = "cache = \"warm\"\nprimary = [\"wall_time\", \"cpu_time\"]";
        let now = plan(&now.replace("cache = \"warm\"", judged));
        let found = compared([&before, &now], [BEFORE, BEFORE]).unwrap();
        // Its one of wall time, and of CPU time those of b and c.
        let figures = found.left_out.iter().map(|it| (it.contender.as_deref(), it.figures));
        assert_eq!(figures.collect::<Vec<_>>(), [(Some("e"), 2), (None, 2)]);
    }

    #[test]
    fn what_the_run_does_not_hold_is_lost_also_where_the_rest_is_measured_anew() {
        let before = plan(PLAN);
        let deleted = plan(&PLAN.replace("[[contender]]\n        name = \"c\"\n", ""));
        let (runs, all) = ([facts("6.1"), facts("6.12")], records(BEFORE, 0));
        let of = |now: &Plan| {
            let side = |it: usize, plan| Side { run: &runs[it], plan, records: &all };
            lost(&before_changes(side(0, &before), side(1, now), &asked()))
        };
        assert_eq!(of(&deleted), ["unpack, c: the run does not hold it"]);
        let other = plan(&PLAN.replace("source.tar", "other.tar"));
        assert_eq!(of(&other), [""; 0], "the baseline's contenders do that work, too");
    }

    #[test]
    fn a_metric_that_no_run_has_is_no_reason_to_leave_it_out() {
        let (plan, runs) = (plan(PLAN), [facts("6.1"), facts("6.12")]);
        let all = [records(BEFORE, 0), records(BEFORE, 1)];
        let side = |it: usize| Side { run: &runs[it], plan: &plan, records: &all[it] };
        let asked = Asked { metrics: vec!["wall_time".into(), "wal_time".into()], ..asked() };
        let refused = across(side(0), side(1), &asked).unwrap_err().to_string();
        assert_eq!(refused, "no run measured \"wal_time\": did you mean wall_time?");
    }

    #[test]
    fn the_wrong_order_and_a_run_that_was_interrupted_are_said() {
        let plan = plan(PLAN);
        let all = [records(BEFORE, 0), records(BEFORE, 1)];
        let of = |starts: [&str; 2], stop| {
            let run = |started: &str| Run {
                started: started.into(),
                stop: Some(Stop::Settled),
                ..facts(started)
            };
            let runs = [run(starts[0]), Run { stop, ..run(starts[1]) }];
            let side = |it: usize| Side { run: &runs[it], plan: &plan, records: &all[it] };
            across(side(0), side(1), &asked()).unwrap().notes
        };
        assert_eq!(of(["1", "2"], Some(Stop::Settled)), [""; 0]);
        assert!(of(["2", "1"], Some(Stop::Settled))[0].starts_with("The baseline started later"));
        assert!(of(["1", "2"], Some(Stop::Interrupted))[0].starts_with("The run was interrupted"));
    }

    #[test]
    fn a_claim_about_other_work_of_the_same_name_is_given_up() {
        let claim = "[[claim]]\ntext = \"so\"\ncontender = \"b\"\nworkload = \"unpack\"\n\
                     is = \"better\"\n";
        let asked = plan(&format!("{claim}{PLAN}"));
        let given_up = |from: &str, to: &str| {
            let mut run = plan(&format!("{claim}{}", PLAN.replace(from, to)));
            give_up_other_work(&mut run, &asked);
            run.claims[0].not_measurable.clone()
        };
        assert_eq!(given_up("x", "x"), None);
        assert_eq!(given_up("cache =", "primary = [\"cpu_time\"]\ncache ="), None);
        let other = given_up("source.tar", "other.tar").unwrap();
        assert!(other.starts_with("the run's unpack is other work: unpack: command is"), "{other}");
    }

    #[test]
    fn what_is_zero_is_left_out_as_such() {
        let plan = plan(PLAN);
        let zero = [("a", 1.0), ("b", 0.0), ("c", 0.5)];
        let found = compared([&plan, &plan], [BEFORE, zero]).unwrap();
        let why = "there is no ratio in the run: b was 0 in 8 of 8 rounds, a in none";
        assert_eq!(found.left_out[0].why, why);
        assert!(found.left_out[0].lost, "the baseline had a ratio");
        let back = compared([&plan, &plan], [zero, BEFORE]).unwrap();
        assert!(!back.left_out[0].lost);
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
            let found = across(side(before), side(now), &asked()).unwrap();
            assert_eq!(verdicts(&found)["b"], Verdict::Void);
            assert_ne!(verdicts(&found)["c"], Verdict::Void);
            let change = &found.changes[0];
            assert_eq!(change.is_lost(), std::ptr::eq(now, &bad), "the baseline judged it");
            let finding = &change.voided.as_ref().unwrap().finding;
            assert_eq!(finding.contender.as_deref(), Some("b"));
        }
    }

    fn pair(plan: &Plan, before: &[Record], now: &[Record]) -> Result<Across, Incomparable> {
        let runs = [facts("6.1"), facts("6.12")];
        let side = |it: usize, records| Side { run: &runs[it], plan, records };
        across(side(0, before), side(1, now), &asked())
    }

    #[test]
    fn the_reference_that_moved_and_what_each_took_itself_are_told() {
        let plan = plan(PLAN);
        let faster = [("a", 0.5), ("b", 1.5), ("c", 0.25)];
        let found = compared([&plan, &plan], [BEFORE, faster]).unwrap();
        assert_eq!(verdicts(&found)["b"], Verdict::Slower);
        let [before, now] = found.changes[0].medians.unwrap();
        assert!((before - 2.0).abs() < 0.02 && (now - 1.5).abs() < 0.02, "{before} {now}");
        let moved: Vec<f64> = found.references_moved().filter_map(|it| it.ratio).collect();
        assert!(moved.len() == 1 && (moved[0] - 2.0).abs() < 0.02, "{moved:?}");
        let same = compared([&plan, &plan], [BEFORE, BEFORE]).unwrap();
        assert_eq!(same.references_moved().count(), 0);
    }

    #[test]
    fn no_fewer_rounds_are_asked_for_than_were_done() {
        let plan = plan(PLAN);
        let near = compared([&plan, &plan], [BEFORE, [("a", 1.0), ("b", 2.0 * 1.05), ("c", 0.5)]]);
        let change = &near.unwrap().changes[0];
        assert!(!change.verdict.is_settled(), "{change:?}");
        assert_eq!(change.rounds_needed, None);
    }

    /// Rounds of the run were run again, in which b was slower or no longer was.
    #[test]
    fn a_change_holds_with_the_first_trials_and_with_the_later_ones() {
        let (plan, before) = (plan(PLAN), records(BEFORE, 0));
        let of = |now: &[Record]| {
            let change = pair(&plan, &before, now).unwrap().changes.remove(0);
            [change.low, change.high.unwrap()]
        };
        let fast = records(BEFORE, 1);
        let of_slow = |it: &Record| (3..=5).contains(&it.key.round);
        let slow = records([("a", 1.0), ("b", 2.2), ("c", 0.5)], 1);
        let slow: Vec<Record> = slow.into_iter().filter(of_slow).collect();
        let mut slowed: Vec<Record> = fast.iter().filter(|it| !of_slow(it)).cloned().collect();
        slowed.extend(slow.iter().cloned());
        slowed.sort_by_key(|it| it.key.round);
        let [one, other] = [of(&fast), of(&slowed)];
        let again = fast.iter().filter(|it| of_slow(it)).cloned();
        let hull = [one[0].min(other[0]), one[1].max(other[1])];
        assert_ne!(one, other);
        assert_eq!(of(&[fast.clone(), slow].concat()), hull);
        assert_eq!(of(&slowed.iter().cloned().chain(again).collect::<Vec<_>>()), hull);
    }

    #[test]
    fn a_contender_that_failed_or_has_one_round_is_named() {
        let (plan, before) = (plan(PLAN), records(BEFORE, 0));
        let mut now = records(BEFORE, 1);
        let failure = Failure {
            step: "mount".into(),
            error: "mount: wrong fs type\nsee dmesg".into(),
            cleanup_errors: Vec::new(),
        };
        for record in now.iter_mut().filter(|it| it.key.contender == "c") {
            record.outcome = Outcome::Failed(failure.clone());
        }
        now.retain(|it| it.key.contender != "b" || it.key.round == 1);
        let found = pair(&plan, &before, &now).unwrap();
        let named: Vec<(&str, &str)> =
            found.not_measured.iter().map(|it| (it.contender.as_str(), it.why.as_str())).collect();
        let of_c = "8 of its 8 trials failed in the run: mount: wrong fs type";
        let of_b = "8 rounds of the baseline and 1 of the run have wall_time: 4 are needed of each";
        assert_eq!(named, [("c", of_c), ("b", of_b)]);
        assert_eq!(found.changes[0].verdict, Verdict::Undecided);
        // Made good by a later trial, it has not failed.
        now.extend(records(BEFORE, 1));
        assert_eq!(pair(&plan, &before, &now).unwrap().not_measured, []);
    }

    #[test]
    fn what_the_reference_took_is_told() {
        let plan = plan(PLAN);
        let slow = BEFORE.map(|(name, seconds)| (name, 4.0 * seconds));
        let found = pair(&plan, &records(BEFORE, 0), &records(slow, 1)).unwrap();
        let [reference] = &found.references[..] else { panic!("{:?}", found.references) };
        assert_eq!((reference.reference.as_str(), reference.metric.as_str()), ("a", "wall_time"));
        assert!((reference.ratio.unwrap() - 0.25).abs() < 0.01, "{reference:?}");
        assert!(reference.run > 3.9 && reference.baseline < 1.1, "{reference:?}");
    }

    #[test]
    fn another_machine_is_refused_unless_asked_for() {
        let (plan, all) = (plan(PLAN), [records(BEFORE, 0), records(BEFORE, 1)]);
        let on = |processor: &str| run("r", &[("machine", "x86_64"), ("processor", processor)]);
        let runs = [on("one"), on("other")];
        let side = |it: usize| Side { run: &runs[it], plan: &plan, records: &all[it] };
        let refused = across(side(0), side(1), &asked()).unwrap_err().to_string();
        assert!(refused.contains("processor is one in the baseline and other"), "{refused}");
        assert!(refused.contains("--across-machines"), "{refused}");
        let asked = Asked { across_machines: true, ..asked() };
        assert_eq!(across(side(0), side(1), &asked).unwrap().differences[0].what, "processor");
    }

    #[test]
    fn cpu_time_in_ticks_is_not_held_against_clocks() {
        let plan = plan(PLAN);
        let counted = |clocks: bool| {
            let mut records = records(BEFORE, 0);
            for record in &mut records {
                let mut phase = phase(Phase::Whole);
                phase.totals.cpu_time = clocks.then(CpuTime::default);
                record.phases = vec![phase];
                record.samples.push(Sample::lower("cpu_time", 1.0, Unit::Seconds));
            }
            records
        };
        let runs = [facts("6.1"), facts("6.12")];
        let asked = Asked { metrics: vec!["wall_time".into(), "cpu_time".into()], ..asked() };
        let metrics = |clocks: [bool; 2]| {
            let all = clocks.map(counted);
            let side = |it: usize| Side { run: &runs[it], plan: &plan, records: &all[it] };
            let found = across(side(0), side(1), &asked).unwrap();
            (found.changes.len(), found.left_out.into_iter().map(|it| it.why).next())
        };
        let why = "the baseline counts it by ticks of the whole machine, the run by the clocks of \
                   the work and of the kernel's threads";
        assert_eq!(metrics([false, true]), (2, Some(why.into())));
        assert_eq!(metrics([false, false]), (4, None));
        assert_eq!(metrics([true, true]), (4, None));
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
            let there = across(side(0), side(1), &asked()).unwrap();
            let back = across(side(1), side(0), &asked()).unwrap();
            for (one, other) in there.changes.iter().zip(&back.changes) {
                prop_assert_eq!(one.verdict, other.verdict.mirrored());
                prop_assert!((one.low * other.high.unwrap() - 1.0).abs() < 1e-9);
            }
        }
    }
}
