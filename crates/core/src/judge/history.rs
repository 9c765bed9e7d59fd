//! Many runs over time: how each figure went, and with which run it changed.
//!
//! Of a contender the ratio to the reference is followed, as between two runs: what the machine
//! was like on that day divides out. Of the reference its own median is: where that changes, the
//! machine did, or the reference.
//!
//! How much one run differs from the next without any cause is not known beforehand, so that a
//! change shows only among several runs. Looked for is the stretch of runs, one from an end
//! included, that stands out most from the others by its standardised rank sum (Wilcoxon,
//! Biometrics Bulletin 1, 1945). Its chance is the share of random orders of the same runs in which
//! any stretch stands out as much. Under 1% and beyond the margin its ends are shifts, and each
//! part is looked at again (circular binary segmentation: Olshen and others, Biostatistics 5,
//! 2004). Six runs on either side can show a shift, fewer can not.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Serialize;

use super::audit::trend;
use super::compare::{alpha, rule, sharing, void, voids};
use super::interval::Course;
use super::pairs::{pairs, unit_of};
use super::stopping::Rule;
use super::terms::{Side, other_facts};
use crate::model::{
    Bed, Draws, Finding, History, Past, Plan, Point, Record, Series, Shift, Verdict, Workload,
    median,
};

/// The chance of a stretch that stands out among runs in which nothing changed.
const LEVEL: f64 = 0.01;

/// Random orders that a stretch is compared with.
const ORDERS: usize = 9_999;

/// Runs in a stretch, and before or after it if there are any, at least.
const RUNS_MIN: usize = 2;

/// The history of `runs`, which are in order of time, in `metrics`, or in what each run judges
/// where none are given.
pub fn history(runs: &[Side], metrics: &[String]) -> History {
    let mut rules = Rules::default();
    let mut series: Vec<(Identity, Series)> = Vec::new();
    for (run, side) in runs.iter().enumerate() {
        let findings = void(side.plan, side.records);
        for workload in &side.plan.workloads {
            let of_metrics = if metrics.is_empty() { workload.primary() } else { metrics.to_vec() };
            for metric in of_metrics {
                let rule = rules.of(side.plan, workload);
                let bench = Bench { side, workload, metric: &metric, rule, findings: &findings };
                bench.points(run).for_each(|(contender, point)| {
                    add(&mut series, &bench, contender, point);
                });
            }
        }
    }
    let mut all: Vec<Series> = series.into_iter().map(|(_, series)| series).collect();
    all.iter_mut().for_each(|series| find_shifts(series, runs));
    let past = |place: usize| past(place.checked_sub(1).map(|it| runs[it]), runs[place]);
    History { runs: (0..runs.len()).map(past).collect(), series: all }
}

fn past(before: Option<Side>, side: Side) -> Past {
    Past {
        run: side.run.name.clone(),
        started: side.run.started.clone(),
        kernel: side.run.host.get("kernel").cloned(),
        processor: side.run.host.get("processor").cloned(),
        program_version: side.run.program_version.clone(),
        place: side.run.place,
        differences: before.map_or(Vec::new(), |before| other_facts(before, side)),
    }
}

/// What makes figures those of the same work on the same terms, as text.
#[derive(PartialEq)]
struct Identity(Vec<String>);

/// The rules for intervals; one may take a while to make.
#[derive(Default)]
struct Rules(BTreeMap<(u64, Option<u32>), Rule>);

impl Rules {
    fn of(&mut self, plan: &Plan, workload: &Workload) -> Rule {
        let alpha = alpha(plan) / sharing(plan, workload) as f64;
        let key = (alpha.to_bits(), plan.judgement.rounds());
        self.0.entry(key).or_insert_with(|| rule(plan, alpha)).clone()
    }
}

/// One metric of one workload in one run.
struct Bench<'a> {
    side: &'a Side<'a>,
    workload: &'a Workload,
    metric: &'a str,
    rule: Rule,
    findings: &'a [Finding],
}

impl<'a> Bench<'a> {
    /// What the run says of each contender, of those it measured.
    fn points(&self, run: usize) -> impl Iterator<Item = (&'a str, Point)> {
        let contenders = self.side.plan.contenders.iter().map(|it| it.name.as_str());
        contenders.filter_map(move |name| Some((name, self.point(run, name)?)))
    }

    fn point(&self, run: usize, contender: &str) -> Option<Point> {
        let its = |record: &&Record| {
            let key = &record.key;
            record.is_measured() && key.workload == self.workload.name && key.contender == contender
        };
        let values = self.side.records.iter().filter(its).filter_map(|it| it.sample(self.metric));
        let values: Vec<f64> = values.map(|sample| sample.value).collect();
        let median = median(values.iter().copied())?;
        let reference = self.side.plan.reference();
        if contender == reference {
            let rounds = values.len() as u32;
            let (ratio, low, high, verdict) = (None, 0.0, None, None);
            return Some(Point { run, median, ratio, low, high, rounds, verdict });
        }
        let pairs =
            pairs(self.side.records, &self.workload.name, self.metric, contender, reference);
        let differences: Vec<f64> = pairs.iter().map(|pair| pair.difference).collect();
        let margin = self.side.plan.judgement.margin.0.ln_1p();
        let course = Course::of(&differences, &self.rule, margin);
        let both = [contender, reference];
        let is_void = self.findings.iter().any(|it| voids(it, &self.workload.name, both));
        let high = course.interval.high.exp();
        Some(Point {
            run,
            median,
            ratio: (course.rounds > 0).then(|| course.estimate.exp()),
            low: course.interval.low.exp(),
            high: high.is_finite().then_some(high),
            rounds: course.rounds,
            verdict: Some(if is_void { Verdict::Void } else { course.verdict }),
        })
    }

    fn identity(&self, contender: &str) -> Identity {
        let plan = self.side.plan;
        let unjudged = Workload { primary: Vec::new(), ..self.workload.clone() };
        let settings = [contender, plan.reference()].map(|name| text(&plan.contender(name)));
        // Where image files lie is a fact of the machine, and told with a shift.
        let bed = Bed { dir: None, ..plan.bed.clone() };
        let place = text(&self.side.run.place);
        let terms = [text(&unjudged), text(&bed), place, self.metric.to_string()];
        Identity(terms.into_iter().chain(settings).collect())
    }
}

fn text<T: Serialize>(it: &T) -> String {
    serde_json::to_string(it).unwrap_or_default()
}

fn add(series: &mut Vec<(Identity, Series)>, bench: &Bench, contender: &str, point: Point) {
    let identity = bench.identity(contender);
    if let Some((_, known)) = series.iter_mut().find(|(known, _)| *known == identity) {
        known.points.push(point);
        return;
    }
    let (unit, better) = unit_of(bench.side.records, &bench.workload.name, bench.metric);
    let named = |it: &Series| {
        it.workload == bench.workload.name && it.metric == bench.metric && it.contender == contender
    };
    let variant = series.iter().filter(|(_, it)| named(it)).count() as u32 + 1;
    let new = Series {
        workload: bench.workload.name.clone(),
        metric: bench.metric.into(),
        unit,
        better,
        contender: contender.into(),
        reference: bench.side.plan.reference().into(),
        variant,
        points: vec![point],
        shifts: Vec::new(),
        trend: None,
    };
    series.push((identity, new));
}

/// Finds the shifts, or where there are none the trend. Void points say nothing.
fn find_shifts(series: &mut Series, runs: &[Side]) {
    let figure = |point: &Point| -> Option<(usize, f64)> {
        let goodness = match point.verdict {
            Some(Verdict::Void) => None,
            Some(_) => point.ratio.map(f64::ln),
            None => goodness(series, point.median),
        };
        goodness.map(|value| (point.run, value))
    };
    let figures: Vec<(usize, f64)> = series.points.iter().filter_map(figure).collect();
    let values: Vec<f64> = figures.iter().map(|(_, value)| *value).collect();
    let Some(margin) = figures.last().map(|(run, _)| runs[*run].plan.judgement.margin) else {
        return;
    };
    let margin = margin.0.ln_1p();
    let mut ends = vec![(values.len(), 0.0)];
    split(&values, 0, margin, &mut ends);
    ends.sort_by_key(|(place, _)| *place);
    let mut begin = 0;
    for (&(place, chance), &(end, _)) in ends.iter().zip(&ends[1..]) {
        let middle = |range: Range<usize>| median(values[range].iter().copied());
        let change = middle(place..end).zip(middle(begin..place)).map(|(after, it)| after - it);
        let Some(change) = change.filter(|change| change.abs() > margin) else { continue };
        let (before, run) = (figures[place - 1].0, figures[place].0);
        series.shifts.push(Shift {
            run,
            ratio: change.exp(),
            runs_before: (place - begin) as u32,
            runs_after: (end - place) as u32,
            chance,
            differences: other_facts(runs[before], runs[run]),
        });
        begin = place;
    }
    if series.shifts.is_empty() {
        let by_place = (1..).zip(values).collect();
        series.trend = trend(&by_place).map(f64::exp);
    }
}

fn goodness(series: &Series, value: f64) -> Option<f64> {
    let sample = crate::model::Sample {
        metric: String::new(),
        value,
        unit: series.unit,
        better: series.better,
    };
    sample.goodness()
}

/// Adds the places from which on `values` are others, with their chances; `offset` is where these
/// values begin in the whole series.
fn split(values: &[f64], offset: usize, margin: f64, places: &mut Vec<(usize, f64)>) {
    let Some((stretch, chance)) = outstanding(values) else { return };
    let Range { start, end } = stretch;
    let middle = |parts: [&[f64]; 2]| median(parts.concat()).unwrap_or(0.0);
    let others = middle([&values[..start], &values[end..]]);
    if (middle([&values[start..end], &[]]) - others).abs() <= margin {
        return;
    }
    let inner = [start, end].into_iter().filter(|place| (1..values.len()).contains(place));
    places.extend(inner.map(|place| (offset + place, chance)));
    for part in [0..start, start..end, end..values.len()] {
        split(&values[part.clone()], offset + part.start, margin, places);
    }
}

/// The stretch that stands out most, and the chance of one in a random order. `None` where that is
/// not under [`LEVEL`].
fn outstanding(values: &[f64]) -> Option<(Range<usize>, f64)> {
    let mut ranks = ranks(values);
    let (stretch, clearness) = clearest(&ranks)?;
    // The same runs have the same shifts whenever they are asked for.
    let mut draws = Draws::new(values.len() as u64);
    let mut as_clear = 1;
    for _ in 0..ORDERS {
        draws.shuffle(&mut ranks);
        let other = clearest(&ranks).map_or(0.0, |(_, other)| other);
        as_clear += usize::from(other >= clearness - 1e-9);
        if as_clear as f64 >= LEVEL * (1 + ORDERS) as f64 {
            return None;
        }
    }
    Some((stretch, as_clear as f64 / (1 + ORDERS) as f64))
}

/// Each value's rank, the mean of their ranks for equal ones.
fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |value: &f64| {
        let smaller = values.iter().filter(|other| *other < value).count() as f64;
        let equal = values.iter().filter(|other| *other == value).count() as f64;
        smaller + (equal + 1.0) / 2.0
    };
    values.iter().map(rank).collect()
}

/// The stretch with the largest standardised rank sum, and that sum. `None` of too few runs.
fn clearest(ranks: &[f64]) -> Option<(Range<usize>, f64)> {
    let count = ranks.len();
    let n = count as f64;
    let can_end = |place: usize| {
        place == 0 || place == count || {
            (RUNS_MIN..=count.saturating_sub(RUNS_MIN)).contains(&place)
        }
    };
    let mut best: Option<(Range<usize>, f64)> = None;
    for start in (0..count).filter(|&start| can_end(start)) {
        let mut sum = 0.0;
        for end in start + 1..=count {
            sum += ranks[end - 1];
            let length = end - start;
            if !can_end(end) || length < RUNS_MIN || length + RUNS_MIN > count {
                continue;
            }
            let k = length as f64;
            let deviation = (sum - k * (n + 1.0) / 2.0).abs();
            let clearness = deviation / (k * (n - k) * (n + 1.0) / 12.0).sqrt();
            if best.as_ref().is_none_or(|(_, other)| clearness > *other) {
                best = Some((start..end, clearness));
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::super::testing::{plan, record, run};
    use super::*;
    use crate::model::{Run, Sample, Unit};

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
        history(&sides, &[])
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
        assert!((shift.ratio - 0.8).abs() < 0.01 && shift.chance < 0.002, "{shift:?}");
        assert_eq!(shift.differences[0].what, "kernel");
        assert_eq!(shift.differences[0].run.as_deref(), Some("6.12"));
        assert_eq!(contender.trend, None);
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
        let few = of(&plans(8), |number| (1.0, if number < 4 { 1.0 } else { 2.0 }));
        assert_eq!(few.series[1].shifts, [], "four and four may be chance");
    }

    #[test]
    fn what_creeps_is_a_trend() {
        let creeping = |number: usize| (1.0, 1.0 + 0.01 * number as f64);
        let history = of(&plans(9), creeping);
        let contender = &history.series[1];
        assert!(contender.shifts.is_empty() || contender.trend.is_none());
        let change = contender.trend.or(contender.shifts.first().map(|it| it.ratio)).unwrap();
        assert!(change < 0.97, "{contender:?}");
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

    /// With nothing to find, one series in a hundred may show a shift: some of 200, not many.
    #[test]
    fn chance_is_taken_for_a_shift_as_seldom_as_it_says() {
        let mut draws = Draws::new(5);
        let mut found = 0;
        for _ in 0..200 {
            let values: Vec<f64> = (0..14).map(|_| 0.2 * draws.normal()).collect();
            let mut splits = Vec::new();
            split(&values, 0, 0.0, &mut splits);
            found += usize::from(!splits.is_empty());
        }
        assert!(found <= 8, "{found} of 200");
    }

    #[test]
    fn equal_values_share_their_rank_and_none_stands_out() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0]), [2.5, 1.0, 2.5]);
        assert_eq!(outstanding(&[1.0; 12]), None);
        assert_eq!(clearest(&[1.0, 2.0, 3.0]), None);
    }

    #[test]
    fn six_and_six_show_a_shift_and_five_and_five_do_not() {
        let values =
            |each: u8| -> Vec<f64> { (0..2 * each).map(|it| f64::from(it / each)).collect() };
        assert_eq!(outstanding(&values(6)).unwrap().0, 0..6);
        assert_eq!(outstanding(&values(5)), None);
    }
}
