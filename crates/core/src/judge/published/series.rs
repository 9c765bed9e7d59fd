//! A5: a figure that breaks a series. In a series, rows or tests differ in one number only, and all
//! figures but this one rise or fall throughout.

use super::cells::Cells;
use crate::model::{Audit, Bytes, Column, Finding, Job, Severity, Test};

/// A series has so many points, itself counted.
const LEAST: usize = 5;
/// A point is out of line where it is so far beyond both of its neighbours: less is noise.
const BEYOND: f64 = 0.1;

/// A point of a series.
struct Point {
    at: f64,
    value: f64,
    /// Its figure, and where it stands, as printed.
    figure: String,
    place: String,
}

/// What they find in all tests.
pub fn findings(tests: &[Test]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = tests.iter().flat_map(within).collect();
    for vary in [Vary::Block, Vary::Jobs, Vary::Depth] {
        findings.extend(across(tests, vary));
    }
    findings
}

fn finding(test: &str, contender: Option<&str>, evidence: String) -> Finding {
    Finding {
        audit: Audit::A5,
        severity: Severity::Warning,
        workload: Some(test.into()),
        contender: contender.map(String::from),
        evidence,
        advice: "look for a figure that was copied wrong, or a run that was another".into(),
    }
}

fn judged(columns: &[Column]) -> impl Iterator<Item = &Column> {
    columns.iter().filter(|column| column.better().is_some() && column.is_figure())
}

fn point(cells: Cells, column: &Column, at: f64, place: &str) -> Option<Point> {
    let cell = cells.all().find(|it| it.column.heading == column.heading)?;
    let (value, figure) = (cell.reach().middle(), cell.figure.text.clone());
    Some(Point { at, value, figure, place: place.into() })
}

/// Rows that are called by numbers: 1, 2, 4, ... threads.
fn within(test: &Test) -> Vec<Finding> {
    let number = |text: &str| -> Option<f64> {
        let size = || text.parse::<Bytes>().ok().map(|it| it.0 as f64);
        text.parse().ok().or_else(size)
    };
    let row = |cells: Cells<'_>| number(&cells.row.contender);
    if !Cells::of(test).all(|cells| row(cells).is_some()) {
        return Vec::new();
    }
    let of = |column: &Column| {
        let points = Cells::of(test)
            .filter_map(|cells| point(cells, column, row(cells)?, &cells.row.contender));
        let evidence = broken(&column.heading, points.collect())?;
        Some(finding(&test.name, None, evidence))
    };
    judged(&test.columns).filter_map(of).collect()
}

/// The one parameter in which tests differ.
#[derive(Clone, Copy)]
enum Vary {
    Block,
    Jobs,
    Depth,
}

impl Vary {
    /// Its value, in words too, and the job without it.
    fn of(self, job: &Job) -> Option<(f64, String, Job)> {
        let mut rest = job.clone();
        let (at, place) = match self {
            Vary::Block => {
                let bytes = rest.block_bytes.take()?;
                (bytes as f64, format!("blocks of {}", Bytes(bytes)))
            }
            Vary::Jobs => {
                let jobs = rest.jobs.take()?;
                (f64::from(jobs), format!("{jobs} tasks"))
            }
            Vary::Depth => {
                let depth = rest.depth.take()?;
                (f64::from(depth), format!("depth {depth}"))
            }
        };
        Some((at, place, rest))
    }
}

/// Tests that differ in one parameter alone.
struct Sweep<'a> {
    rest: Job,
    points: Vec<(f64, String, &'a Test)>,
}

fn across(tests: &[Test], vary: Vary) -> Vec<Finding> {
    let mut sweeps: Vec<Sweep> = Vec::new();
    for test in tests {
        let Some((at, place, rest)) = vary.of(&test.job) else { continue };
        let is_its = |it: &&mut Sweep| it.rest == rest && it.points[0].2.columns == test.columns;
        match sweeps.iter_mut().find(is_its) {
            Some(sweep) => sweep.points.push((at, place, test)),
            None => sweeps.push(Sweep { rest, points: vec![(at, place, test)] }),
        }
    }
    sweeps.iter().filter(|it| it.points.len() >= LEAST).flat_map(of_sweep).collect()
}

fn of_sweep(sweep: &Sweep) -> Vec<Finding> {
    let mut names: Vec<&str> = Vec::new();
    for row in sweep.points.iter().flat_map(|(_, _, test)| &test.rows) {
        if !names.contains(&row.contender.as_str()) {
            names.push(&row.contender);
        }
    }
    let first = sweep.points[0].2;
    let mut findings = Vec::new();
    for column in judged(&first.columns) {
        for name in &names {
            let of = |(at, place, test): &(f64, String, &Test)| {
                let mut rows = Cells::of(test).filter(|it| it.row.contender == *name);
                let (Some(cells), None) = (rows.next(), rows.next()) else { return None };
                point(cells, column, *at, place)
            };
            let points = sweep.points.iter().filter_map(of).collect();
            let evidence = broken(&column.heading, points);
            findings.extend(evidence.map(|it| finding(&first.name, Some(name), it)));
        }
    }
    findings
}

/// The one point within the series that lies far beyond both of its neighbours, where the others
/// rise, or fall, throughout.
fn broken(heading: &str, mut points: Vec<Point>) -> Option<String> {
    points.sort_by(|one, other| one.at.total_cmp(&other.at));
    // Two points at one place have no order.
    if points.len() < LEAST || points.windows(2).any(|two| two[0].at >= two[1].at) {
        return None;
    }
    let is_far = |at: &usize| {
        let [before, own, after] = [at - 1, *at, at + 1].map(|place| points[place].value);
        let (low, high) = (before.min(after), before.max(after));
        own < low * (1.0 - BEYOND) || own > high * (1.0 + BEYOND)
    };
    let is_steady = |left_out: &usize| {
        let rest = points.iter().enumerate().filter(|(at, _)| at != left_out);
        let rest: Vec<f64> = rest.map(|(_, point)| point.value).collect();
        let rises = rest.windows(2).all(|two| two[0] < two[1]);
        rises || rest.windows(2).all(|two| two[0] > two[1])
    };
    let mut found = (1..points.len() - 1).filter(is_far).filter(is_steady);
    let (at, None) = (found.next()?, found.next()) else { return None };
    let [before, own, after] = [at - 1, at, at + 1].map(|place| &points[place]);
    Some(format!(
        "{heading} {} at {} breaks its series: {} at {}, {} at {}",
        own.figure, own.place, before.figure, before.place, after.figure, after.place
    ))
}
