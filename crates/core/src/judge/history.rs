//! Many runs over time: how each figure went, and with which run it changed.
//!
//! For a contender we follow the ratio to the reference, as between two runs: the state of the
//! machine on that day cancels. For the reference we follow its own median: if that changes, the
//! machine did, or the reference. [`steps`] finds what a figure did; a run is a night there. This
//! module decides which figures belong together, and what came with a change.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::compare::{alpha, shared, sharing, void, voids};
use super::hosts::{self, Seen, Together};
use super::in_both::known;
use super::interval::Course;
use super::lane::Lane;
use super::nights::Night;
use super::pairs::{Which, unit_of};
use super::shared::Shared;
use super::steps::{self, Courses, Step};
use super::terms::{Side, cpu_by, machine, other_facts};
use crate::model::{
    Bed, Difference, Finding, Fleet, FleetChange, History, Incomparable, Past, Plan, Point, Record,
    Sample, Series, Shift, Verdict, Workload, Zeros, median,
};

/// The history of `runs`, which are in order of time, in `metrics`, or in what each run judges
/// where none are given. Fails where no run has one of them.
pub fn history(runs: &[Side], metrics: &[String]) -> Result<History, Incomparable> {
    known(runs, metrics)?;
    let mut rules = Rules::default();
    let mut tracks: Vec<Track> = Vec::new();
    for (run, side) in runs.iter().enumerate() {
        let findings = void(side.plan, side.records);
        for workload in &side.plan.workloads {
            let of_metrics = if metrics.is_empty() { workload.primary() } else { metrics.to_vec() };
            let lanes =
                lanes(side, workload, &of_metrics, rules.of(side.plan, workload, &of_metrics));
            for (place, metric) in of_metrics.iter().enumerate() {
                let margin = side.plan.judgement.margin.0.ln_1p();
                let course = |[latest, first]: &[Lane; 2]| {
                    latest.course(place).or(&first.course(place), margin)
                };
                let courses = lanes.iter().map(|(name, both)| (*name, course(both))).collect();
                let bench = Bench { side, workload, metric, courses, findings: &findings };
                bench.points(run).for_each(|(contender, point, night)| {
                    add(&mut tracks, &bench, contender, point, night);
                });
            }
        }
    }
    let mut courses = Courses::default();
    tracks.iter_mut().for_each(|track| track.find(runs, &mut courses));
    let gaps: Vec<Vec<usize>> =
        (0..tracks.len()).map(|place| gaps(&tracks, place, runs, metrics)).collect();
    tracks.iter_mut().zip(gaps).for_each(|(track, gaps)| track.series.gaps = gaps);
    let fleets = fleets(&tracks, runs, &mut courses);
    let several = runs.iter().any(|side| machine(side.run) != machine(runs[0].run));
    let named = |Track { series, machine, .. }: Track| Series {
        machine: several.then_some(machine),
        ..series
    };
    Ok(History {
        runs: (0..runs.len()).map(|place| past(runs, place)).collect(),
        series: tracks.into_iter().map(named).collect(),
        fleets,
    })
}

fn past(runs: &[Side], place: usize) -> Past {
    let side = runs[place];
    let on_it = |before: &&Side| machine(before.run) == machine(side.run);
    let before = runs[..place].iter().rev().find(on_it);
    Past {
        run: side.run.name.clone(),
        started: side.run.started.clone(),
        kernel: side.run.host.get("kernel").cloned(),
        processor: side.run.host.get("processor").cloned(),
        program_version: side.run.program_version.clone(),
        place: side.run.place,
        differences: before.map_or(Vec::new(), |before| other_facts(*before, side)),
    }
}

fn name_of_machine(side: Side) -> String {
    let [architecture, processor] = machine(side.run);
    processor.or(architecture).map_or("not known", String::as_str).into()
}

/// What makes figures those of the same work on the same terms, as text; the machine aside.
#[derive(PartialEq)]
struct Identity(Vec<String>);

/// A series with what each of its points says as a night; `None` where it says nothing.
struct Track {
    identity: Identity,
    machine: String,
    series: Series,
    nights: Vec<Option<Night>>,
}

/// The rules for intervals; they may take a while to make.
#[derive(Default)]
struct Rules(BTreeMap<(u64, usize, Option<u32>), Shared>);

impl Rules {
    /// Those of a workload in these metrics, which share the error as in the run's own report.
    fn of(&mut self, plan: &Plan, workload: &Workload, metrics: &[String]) -> &Shared {
        let (count, sharing) = (metrics.len(), sharing(plan, workload));
        let its = workload.primary().len().clamp(1, sharing);
        let alpha = alpha(plan) * count.min(its) as f64 / sharing as f64;
        let key = (alpha.to_bits(), count, plan.judgement.rounds());
        self.0.entry(key).or_insert_with(|| shared(plan, alpha, count))
    }
}

/// What a run tells of each contender against the reference, in these metrics: by its latest trials
/// and by its first. If rounds were run again, the result must also hold as if they had not been.
fn lanes<'a>(
    side: &Side<'a>,
    workload: &Workload,
    metrics: &[String],
    rules: &Shared,
) -> Vec<(&'a str, [Lane; 2])> {
    let metrics: Vec<&str> = metrics.iter().map(String::as_str).collect();
    let Side { plan, records, .. } = *side;
    let margin = plan.judgement.margin.0.ln_1p();
    let lanes = |name: &str| {
        let names = [name, plan.reference()];
        [Which::Latest, Which::First]
            .map(|which| Lane::of(records, &workload.name, &metrics, names, (rules, margin), which))
    };
    let names = plan.contenders.iter().map(|it| it.name.as_str());
    let names = names.filter(|name| *name != plan.reference());
    names.map(|name| (name, lanes(name))).collect()
}

/// One metric of one workload in one run.
struct Bench<'a> {
    side: &'a Side<'a>,
    workload: &'a Workload,
    metric: &'a str,
    /// Of each contender against the reference.
    courses: BTreeMap<&'a str, Course>,
    findings: &'a [Finding],
}

impl<'a> Bench<'a> {
    /// What the run says of each contender, of those it measured.
    fn points(&self, run: usize) -> impl Iterator<Item = (&'a str, Point, Option<Night>)> {
        let contenders = self.side.plan.contenders.iter().map(|it| it.name.as_str());
        contenders.filter_map(move |name| {
            let (point, night) = self.point(run, name)?;
            Some((name, point, night))
        })
    }

    fn point(&self, run: usize, contender: &str) -> Option<(Point, Option<Night>)> {
        let its = |record: &&Record| {
            let key = &record.key;
            record.is_measured() && key.workload == self.workload.name && key.contender == contender
        };
        let of_round = |it: &'a Record| Some((it.key.round, it.sample(self.metric)?));
        let samples = self.side.records.iter().filter(its).filter_map(of_round);
        let samples: Vec<&Sample> = Which::Latest.of(samples).into_values().collect();
        let median = median(samples.iter().map(|sample| sample.value))?;
        let reference = self.side.plan.reference();
        if contender == reference {
            let rounds = samples.len() as u32;
            let (ratio, low, high, verdict) = (None, 0.0, None, None);
            let goodness: Vec<f64> = samples.iter().filter_map(|it| it.goodness()).collect();
            let whole = goodness.len() == samples.len();
            let night = whole.then(|| night(&goodness)).flatten();
            let night = night.zip(middle(&goodness)).map(|(it, value)| Night { value, ..it });
            return Some((Point { run, median, ratio, low, high, rounds, verdict }, night));
        }
        let both = [contender, reference];
        let of_both = both.map(|name| (self.workload.name.as_str(), name));
        let course = match Zeros::of(self.side.records, self.metric, of_both) {
            Some(_) => Course::BEGIN,
            None => self.courses[contender],
        };
        let is_void = self.findings.iter().any(|it| voids(it, &self.workload.name, both));
        let high = course.interval.high.exp();
        let point = Point {
            run,
            median,
            ratio: (course.rounds > 0).then(|| course.estimate.exp()),
            low: course.interval.low.exp(),
            high: high.is_finite().then_some(high),
            rounds: course.rounds,
            verdict: Some(if is_void { Verdict::Void } else { course.verdict }),
        };
        let rounds = course.rounds;
        // One round alone says nothing of how rounds vary.
        let of_a_round = match rounds {
            0 | 1 => 0.0,
            _ => course.of_a_round(),
        };
        let night = Night { value: course.estimate, of_a_round, rounds };
        Some((point, (rounds > 0 && !is_void).then_some(night)))
    }

    fn identity(&self, contender: &str) -> Identity {
        let plan = self.side.plan;
        let settings = [contender, plan.reference()].map(|name| text(&plan.contender(name)));
        // Where image files lie is a fact of the machine, and told with a shift.
        let bed = Bed { dir: None, ..plan.bed.clone() };
        let place = text(&self.side.run.place);
        let counted = cpu_by(self.side.records, &self.workload.name, self.metric);
        let counted = counted.map_or(String::new(), |by| by.to_string());
        let limits = text(&plan.limits_counted(self.side.records));
        let terms =
            [text(&self.workload.alone()), text(&bed), limits, place, self.metric.into(), counted];
        Identity(terms.into_iter().chain(settings).collect())
    }
}

/// What rounds say as a night; `None` of none.
fn night(figures: &[f64]) -> Option<Night> {
    let count = figures.len();
    let value = figures.iter().sum::<f64>() / count as f64;
    let squares: f64 = figures.iter().map(|it| (it - value).powi(2)).sum();
    let of_a_round = squares / (count.max(2) - 1) as f64;
    (count > 0).then_some(Night { value, of_a_round, rounds: count as u32 })
}

fn middle(values: &[f64]) -> Option<f64> {
    median(values.iter().copied())
}

fn text<T: Serialize>(it: &T) -> String {
    serde_json::to_string(it).unwrap_or_default()
}

fn add(
    tracks: &mut Vec<Track>,
    bench: &Bench,
    contender: &str,
    point: Point,
    night: Option<Night>,
) {
    let identity = bench.identity(contender);
    let machine = name_of_machine(*bench.side);
    let is_its = |known: &&mut Track| known.identity == identity && known.machine == machine;
    if let Some(known) = tracks.iter_mut().find(is_its) {
        known.series.points.push(point);
        known.nights.push(night);
        return;
    }
    let (unit, better) = unit_of(bench.side.records, &bench.workload.name, bench.metric);
    let named = |it: &Series| {
        it.workload == bench.workload.name && it.metric == bench.metric && it.contender == contender
    };
    let variant = tracks.iter().filter(|it| named(&it.series) && it.machine == machine).count();
    let series = Series {
        workload: bench.workload.name.clone(),
        metric: bench.metric.into(),
        unit,
        better,
        contender: contender.into(),
        reference: bench.side.plan.reference().into(),
        variant: variant as u32 + 1,
        machine: None,
        points: vec![point],
        silent: 0,
        gaps: Vec::new(),
        stands_out: None,
        shifts: Vec::new(),
        trend: None,
        unclear: None,
        visible: None,
    };
    tracks.push(Track { identity, machine, series, nights: vec![night] });
}

impl Track {
    /// Finds what the figure did. Void points say nothing.
    fn find(&mut self, runs: &[Side], courses: &mut Courses) {
        let points = self.series.points.iter().zip(&self.nights);
        let said: Vec<(usize, Night)> =
            points.filter_map(|(point, night)| Some((point.run, (*night)?))).collect();
        self.series.silent = (self.series.points.len() - said.len()) as u32;
        let Some(margin) = said.last().map(|(run, _)| runs[*run].plan.judgement.margin) else {
            return;
        };
        let (of, nights): (Vec<usize>, Vec<Night>) = said.into_iter().unzip();
        let (series, margin) = (&mut self.series, margin.0.ln_1p());
        match courses.of(&nights, margin) {
            steps::Course::Still(visible) => {
                let out = courses.last_stands_out(&nights, margin);
                series.stands_out = out.map(f64::exp);
                // What the others would have shown: one run far out makes all look unsteady.
                let others = out.map(|_| courses.of(&nights[..nights.len() - 1], margin));
                series.visible = match others {
                    Some(steps::Course::Still(visible)) => visible.map(f64::exp),
                    _ => visible.map(f64::exp),
                };
            }
            steps::Course::Steadily(whole) => series.trend = Some(whole.exp()),
            steps::Course::Unclear(whole) => series.unclear = Some(whole.exp()),
            steps::Course::Stepped(steps) => {
                series.shifts = steps.iter().map(|step| shift(step, &of, runs)).collect();
            }
        }
    }
}

/// The runs that should have measured a figure and did not: their plans have it, and their machine
/// is its own. Of series of one name it is the one that was measured last before.
fn gaps(tracks: &[Track], place: usize, runs: &[Side], metrics: &[String]) -> Vec<usize> {
    let Track { machine, series, .. } = &tracks[place];
    let key = |it: &Track| {
        let Series { workload, metric, contender, .. } = &it.series;
        (workload.clone(), metric.clone(), contender.clone(), it.machine.clone())
    };
    let own = key(&tracks[place]);
    let named: Vec<&Track> = tracks.iter().filter(|it| key(it) == own).collect();
    let last_before = |track: &Track, run: usize| {
        track.series.points.iter().map(|it| it.run).filter(|it| *it < run).max()
    };
    let is_planned = |run: &usize| {
        let (side, metric) = (&runs[*run], &series.metric);
        let work = side.plan.workloads.iter().find(|it| it.name == series.workload);
        let judged =
            work.map(|it| if metrics.is_empty() { it.primary() } else { metrics.to_vec() });
        judged.is_some_and(|it| it.contains(metric))
            && side.plan.contender(&series.contender).is_some()
            && name_of_machine(*side) == *machine
    };
    let is_gap = |run: &usize| {
        let measured = named.iter().flat_map(|it| &it.series.points).any(|it| it.run == *run);
        let last = named.iter().filter_map(|it| last_before(it, *run)).max();
        !measured && last.is_some() && last == last_before(&tracks[place], *run)
    };
    (0..runs.len()).filter(|run| is_planned(run) && is_gap(run)).collect()
}

/// A change with what came with it; `of` has the run of each night.
fn shift(step: &Step, of: &[usize], runs: &[Side]) -> Shift {
    let high = step.high.exp();
    let came = |&place: &usize| other_facts(runs[of[place - 1]], runs[of[place]]);
    Shift {
        run: of[step.place],
        runs: step.places.iter().map(|place| of[*place]).collect(),
        ratio: step.size.exp(),
        low: step.low.exp(),
        high: high.is_finite().then_some(high),
        runs_before: step.before as u32,
        runs_after: step.after as u32,
        chance: step.chance,
        differences: common(step.places.iter().map(came)),
    }
}

/// What the machines say together of each figure that several of them have.
fn fleets(tracks: &[Track], runs: &[Side], courses: &mut Courses) -> Vec<Fleet> {
    let mut fleets = Vec::new();
    for (place, track) in tracks.iter().enumerate() {
        let is_its = |it: &&Track| it.identity == track.identity;
        if tracks[..place].iter().any(|it| is_its(&it)) {
            continue;
        }
        let its: Vec<&Track> = tracks.iter().filter(is_its).collect();
        fleets.extend(fleet(&its, runs, courses));
    }
    fleets
}

/// What several machines say of one figure. `None` of one machine, and of those that have no days
/// in common.
fn fleet(its: &[&Track], runs: &[Side], courses: &mut Courses) -> Option<Fleet> {
    if its.len() < 2 {
        return None;
    }
    let day = |run: usize| runs[run].run.started.split('T').next().unwrap_or_default();
    let said = |(machine, track): (usize, &&Track)| {
        let points = track.series.points.iter().zip(&track.nights);
        let said = points.filter_map(|(point, night)| Some((point.run, (*night)?)));
        said.map(|(run, night)| (machine, run, night)).collect::<Vec<_>>()
    };
    let said: Vec<(usize, usize, Night)> = its.iter().enumerate().flat_map(said).collect();
    let days: BTreeSet<&str> = said.iter().map(|(_, run, _)| day(*run)).collect();
    let days: Vec<&str> = days.into_iter().collect();
    let place = |run: usize| days.binary_search(&day(run)).unwrap_or(0);
    let seen = said.iter().map(|&(machine, run, night)| Seen { machine, day: place(run), night });
    let seen: Vec<Seen> = seen.collect();
    let nights = hosts::days(&seen, its.len(), days.len())?;
    let last = said.iter().map(|(_, run, _)| *run).max()?;
    let series = &its[0].series;
    let mut fleet = Fleet {
        workload: series.workload.clone(),
        metric: series.metric.clone(),
        contender: series.contender.clone(),
        reference: series.reference.clone(),
        machines: its.iter().map(|it| it.machine.clone()).collect(),
        days: days.iter().map(ToString::to_string).collect(),
        changes: Vec::new(),
        trend: None,
        unclear: None,
        visible: None,
    };
    match courses.of(&nights, runs[last].plan.judgement.margin.0.ln_1p()) {
        steps::Course::Still(visible) => fleet.visible = visible.map(f64::exp),
        steps::Course::Steadily(whole) => fleet.trend = Some(whole.exp()),
        steps::Course::Unclear(whole) => fleet.unclear = Some(whole.exp()),
        steps::Course::Stepped(steps) => {
            let change = |step| of_fleet(step, &seen, &fleet);
            fleet.changes = steps.iter().map(change).collect();
        }
    }
    Some(fleet)
}

/// A change of several machines: between the changes before and after it.
fn of_fleet(step: &Step, seen: &[Seen], fleet: &Fleet) -> FleetChange {
    let near = step.place - step.before..step.place + step.after;
    let seen: Vec<Seen> = seen.iter().filter(|it| near.contains(&it.day)).copied().collect();
    let effects = hosts::effects(&seen, fleet.machines.len(), step.place);
    let own = Together { size: step.size, half_width: f64::INFINITY, between: 0.0 };
    let Together { size, half_width, between } = hosts::together(&effects).unwrap_or(own);
    let high = (size + half_width).exp();
    FleetChange {
        day: fleet.days[step.place].clone(),
        days: step.places.iter().map(|place| fleet.days[*place].clone()).collect(),
        ratio: size.exp(),
        low: (size - half_width).exp(),
        high: high.is_finite().then_some(high),
        machines: effects.len() as u32,
        spread: between.exp(),
        chance: step.chance,
    }
}

/// What differs in every one of several nights, compared from before the first to after the last:
/// only that can explain a change that came with one of them.
fn common(nights: impl Iterator<Item = Vec<Difference>>) -> Vec<Difference> {
    let both = |mut first: Vec<Difference>, mut next: Vec<Difference>| {
        first.retain_mut(|it| {
            let also = next.iter_mut().find(|other| other.what == it.what);
            also.map(|also| it.run = also.run.take()).is_some()
        });
        first
    };
    nights.reduce(both).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{phase, plan, record, run};
    use super::*;
    use crate::model::{CpuTime, Phase, Run, Unit};

    const PLAN: &str = "[[contender]]\nname = \"a\"\n[[contender]]\nname = \"b\"\n\
                        [[workload]]\nname = \"w\"\ncommand = \"true\"\ncache = \"warm\"\n";

    fn facts_of(number: usize, kernel: &str) -> Run {
        let started = format!("2026-01-{:02}T00:00:00Z", number + 1);
        Run { started, ..run(&format!("run {number}"), &[("kernel", kernel)]) }
    }

    /// Four rounds, in which the two take these times, give or take a little.
    fn records(number: usize, a: f64, b: f64) -> Vec<Record> {
        let timed = |round: u32, name: &str, seconds: f64| {
            let noise = 1.0 + ((number * 7 + round as usize * 3) % 5) as f64 / 500.0;
            let samples = vec![Sample::lower("wall_time", seconds * noise, Unit::Seconds)];
            Record { samples, ..record(round, "w", name) }
        };
        (1..=4).flat_map(|round| [timed(round, "a", a), timed(round, "b", b)]).collect()
    }

    /// The history of runs in which the two take the times that `times` gives for each.
    fn of(plans: &[Plan], times: impl Fn(usize) -> (f64, f64)) -> History {
        let kernel = |number: usize| if number < 8 { "6.1" } else { "6.12" };
        let runs: Vec<(Run, Vec<Record>)> = (0..plans.len())
            .map(|number| {
                let (a, b) = times(number);
                (facts_of(number, kernel(number)), records(number, a, b))
            })
            .collect();
        let sides: Vec<Side> = runs
            .iter()
            .zip(plans)
            .map(|((run, records), plan)| Side { run, plan, records })
            .collect();
        history(&sides, &[]).unwrap()
    }

    fn plans(count: usize) -> Vec<Plan> {
        vec![plan(PLAN); count]
    }

    #[test]
    fn a_contender_that_changed_is_found_with_what_came_with_it() {
        let history = of(&plans(16), |number| (1.0, if number < 8 { 1.0 } else { 1.25 }));
        let [reference, contender] = &history.series[..] else { panic!("{:?}", history.series) };
        assert!(reference.is_of_reference() && reference.shifts.is_empty(), "{reference:?}");
        let [shift] = &contender.shifts[..] else { panic!("{contender:?}") };
        assert_eq!((shift.run, shift.runs_before, shift.runs_after), (8, 8, 8));
        assert_eq!(shift.runs, [8]);
        assert!(shift.low < 0.8 && 0.8 < shift.high.unwrap(), "{shift:?}");
        assert!((shift.ratio - 0.8).abs() < 0.01 && shift.chance < 0.002, "{shift:?}");
        assert_eq!(shift.differences[0].what, "kernel");
        assert_eq!(shift.differences[0].run.as_deref(), Some("6.12"));
        assert_eq!(contender.trend, None);
    }

    #[test]
    fn a_round_that_was_run_again_counts_once_and_a_verdict_holds_without_that() {
        let (plan, run) = (plan(PLAN), facts_of(0, "6.1"));
        let said = |first: f64, again: f64| {
            let mut all = records(0, 1.0, first);
            all.extend(records(0, 1.0, again).into_iter().filter(|it| it.key.contender == "b"));
            let side = Side { run: &run, plan: &plan, records: &all };
            history(&[side], &[]).unwrap().series.iter().map(|it| it.points[0]).collect::<Vec<_>>()
        };
        let [reference, contender] = &said(1.25, 1.25)[..] else { panic!() };
        assert_eq!((reference.rounds, contender.rounds), (4, 4));
        assert_eq!(contender.verdict, Some(Verdict::Slower));
        let [_, contender] = &said(0.8, 1.25)[..] else { panic!() };
        assert!(contender.low < 0.81 && contender.high.unwrap() > 1.24, "{contender:?}");
        assert_eq!(contender.verdict, Some(Verdict::Undecided));
        assert!(contender.ratio.unwrap() < 0.81, "by the latest");
    }

    /// A figure that was 0 and is not is no figure that has stayed the same.
    #[test]
    fn runs_that_say_nothing_are_counted() {
        let history = of(&plans(8), |number| (1.0, if number < 5 { 0.0 } else { 3.0 }));
        let [reference, contender] = &history.series[..] else { panic!("{:?}", history.series) };
        assert_eq!((reference.silent, reference.visible.is_some()), (0, true), "{reference:?}");
        assert_eq!((contender.silent, contender.visible), (5, None), "{contender:?}");
        assert_eq!(contender.points[0].ratio, None);
        let reference = &of(&plans(6), |_| (0.0, 1.0)).series[0];
        assert_eq!((reference.silent, reference.visible), (6, None), "{reference:?}");
    }

    /// "Last" would be three nights old, and nothing would say so.
    #[test]
    fn runs_in_which_a_contender_failed_are_gaps() {
        let plans = plans(8);
        let of = |failed: &[usize], plans: &[Plan]| {
            let runs: Vec<(Run, Vec<Record>)> = (0..8)
                .map(|number| {
                    let mut all = records(number, 1.0, 1.0);
                    all.retain(|it| it.key.contender == "a" || !failed.contains(&number));
                    (facts_of(number, "6.1"), all)
                })
                .collect();
            let sides = runs.iter().zip(plans);
            let sides = sides.map(|((run, records), plan)| Side { run, plan, records });
            let series = history(&sides.collect::<Vec<_>>(), &[]).unwrap().series;
            series.into_iter().map(|it| (it.gaps.clone(), it.gone_for())).collect::<Vec<_>>()
        };
        assert_eq!(of(&[2, 5, 6, 7], &plans), [(vec![], 0), (vec![2, 5, 6, 7], 3)]);
        let mut shrunk = plans.clone();
        shrunk[7].contenders.truncate(1);
        assert_eq!(of(&[7], &shrunk), [(vec![], 0), (vec![], 0)], "nobody planned it");
    }

    #[test]
    fn the_last_run_stands_out_and_the_others_show_what_they_showed() {
        let scatter = |number: usize| 1.0 + (number * 7 % 5) as f64 / 200.0;
        let contender = |drop: f64, count: usize| {
            let last = count - 1;
            let times =
                move |number| (1.0, scatter(number) * if number == last { drop } else { 1.0 });
            of(&plans(count), times).series.remove(1)
        };
        let (calm, dropped) = (contender(1.0, 10), contender(1.5, 10));
        assert_eq!((calm.stands_out, calm.has_changed()), (None, false));
        assert!((dropped.stands_out.unwrap() - 1.0 / 1.5).abs() < 0.02, "{dropped:?}");
        assert_eq!(dropped.shifts, [], "one run makes no change");
        assert_eq!(dropped.visible, contender(1.0, 9).visible);
        assert_eq!(contender(1.04, 10).stands_out, None, "a trifle");
    }

    #[test]
    fn a_machine_that_changed_is_the_references_affair() {
        let history = of(&plans(16), |number| if number < 8 { (1.0, 1.0) } else { (1.5, 1.5) });
        assert_eq!(history.series[0].shifts.len(), 1);
        assert_eq!(history.series[1].shifts.len(), 0, "the ratio is what it was");
    }

    #[test]
    fn each_of_two_changes_is_found_and_a_trifle_is_none() {
        let there_and_back = |number| (1.0, if (8..16).contains(&number) { 1.25 } else { 1.0 });
        let history = of(&plans(24), there_and_back);
        let places: Vec<usize> = history.series[1].shifts.iter().map(|it| it.run).collect();
        assert_eq!(places, [8, 16]);
        let trifle = of(&plans(24), |number| (1.0, if number < 12 { 1.0 } else { 1.03 }));
        assert_eq!(trifle.series[1].shifts, []);
    }

    #[test]
    fn among_too_few_nothing_can_show_and_among_more_it_is_said_what_could() {
        let scatter = |number: usize| (1.0, 1.0 + (number * 7 % 5) as f64 / 100.0);
        let still = |count| of(&plans(count), scatter).series.remove(1);
        assert_eq!(still(3).visible, None);
        let [few, more] = [still(6), still(12)].map(|it| it.visible.unwrap());
        assert!(1.02 < more && more < few && few < 1.2, "{more} {few}");
        let few = of(&plans(3), |number| (1.0, if number < 2 { 1.0 } else { 2.0 }));
        assert_eq!((few.series[1].shifts.len(), few.series[1].visible), (0, None));
    }

    #[test]
    fn what_creeps_is_a_trend() {
        let creeping = |number: usize| (1.0, 1.0 + 0.01 * number as f64);
        let contender = of(&plans(12), creeping).series.remove(1);
        assert_eq!((contender.shifts.len(), contender.unclear), (0, None));
        assert!(contender.trend.unwrap() < 0.92, "{contender:?}");
    }

    #[test]
    fn a_cause_is_named_where_every_night_of_the_set_has_it() {
        let kernel = |before: &str, run: &str| Difference {
            what: "kernel".into(),
            baseline: Some(before.into()),
            run: Some(run.into()),
        };
        let tool = Difference { what: "fio".into(), baseline: None, run: Some("3.36".into()) };
        let of = |nights: &[Vec<Difference>]| common(nights.iter().cloned());
        assert_eq!(of(&[vec![kernel("6.1", "6.2"), tool.clone()]]).len(), 2);
        assert_eq!(of(&[vec![kernel("6.1", "6.2")], vec![]]), []);
        let nightly = of(&[vec![kernel("6.1", "6.2"), tool], vec![kernel("6.2", "6.3")]]);
        assert_eq!(nightly, [kernel("6.1", "6.3")]);
    }

    #[test]
    fn machines_and_ways_to_count_cpu_time_are_series_of_their_own() {
        let plan = plan(PLAN);
        let on = |number: usize, processor: &str, clocks: bool| {
            let mut run = facts_of(number, "6.1");
            run.host.insert("processor".into(), processor.into());
            let mut records = records(number, 1.0, 1.0);
            for record in &mut records {
                let mut phase = phase(Phase::Whole);
                phase.totals.cpu_time = clocks.then(CpuTime::default);
                record.phases = vec![phase];
                let cpu = record.samples[0].value;
                record.samples.push(Sample::lower("cpu_time", cpu, Unit::Seconds));
            }
            (run, records)
        };
        let series = |runs: &[(Run, Vec<Record>)], metric: &str| {
            let side = |(run, records)| Side { run, plan: &plan, records };
            let sides: Vec<Side> = runs.iter().map(|(run, records)| side((run, records))).collect();
            let mut history = history(&sides, &[metric.to_string()]).unwrap();
            history.series.retain(|it| !it.is_of_reference());
            history.series.into_iter().map(|it| (it.variant, it.machine)).collect::<Vec<_>>()
        };
        let runs = [on(1, "x", false), on(2, "x", true)];
        assert_eq!(series(&runs, "wall_time"), [(1, None)]);
        assert_eq!(series(&runs, "cpu_time"), [(1, None), (2, None)]);
        let runs = [on(1, "x", true), on(2, "y", true)];
        assert_eq!(series(&runs, "wall_time"), [(1, Some("x".into())), (1, Some("y".into()))]);
    }

    #[test]
    fn several_machines_say_together_what_none_of_them_can() {
        let plan = plan(PLAN);
        let on = |number: usize, processor: &str| {
            let mut run = facts_of(number, "6.1");
            run.host.insert("processor".into(), processor.into());
            let level = if processor == "x" { 1.0 } else { 2.0 };
            let scatter = 1.0 + ((number * 7 + processor.len() * 3) % 5) as f64 / 100.0;
            let change = if number < 6 { 1.0 } else { 1.25 };
            (run, records(number, 1.0, level * scatter * change))
        };
        let runs: Vec<(Run, Vec<Record>)> =
            (0..12).flat_map(|night| ["x", "yy", "zzz"].map(|it| on(night, it))).collect();
        let sides = runs.iter().map(|(run, records)| Side { run, plan: &plan, records });
        let history = history(&sides.collect::<Vec<_>>(), &[]).unwrap();
        let fleet = history.fleets.iter().find(|it| it.contender == "b").unwrap();
        assert_eq!((fleet.machines.len(), fleet.days.len()), (3, 12));
        let [change] = &fleet.changes[..] else { panic!("{fleet:?}") };
        assert_eq!((change.day.as_str(), change.machines), ("2026-01-07", 3));
        assert!(change.low < 0.8 && 0.8 < change.high.unwrap(), "{change:?}");
        assert!((change.ratio - 0.8).abs() < 0.02 && change.days == ["2026-01-07"], "{change:?}");
        assert_eq!(of(&plans(6), |_| (1.0, 1.0)).fleets, [], "of one machine there is none");
    }

    #[test]
    fn other_work_of_the_same_name_is_another_series() {
        let mut plans = plans(4);
        plans[2..].iter_mut().for_each(|it| it.workloads[0].operations = Some(5));
        let history = of(&plans, |_| (1.0, 1.0));
        let variants: Vec<_> =
            history.series.iter().map(|it| (it.contender.as_str(), it.variant)).collect();
        assert_eq!(variants, [("a", 1), ("b", 1), ("a", 2), ("b", 2)]);
        assert!(history.series.iter().all(|it| it.points.len() == 2));
    }
}
