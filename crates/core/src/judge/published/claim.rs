//! A5: what a conclusion says that the tables don't hold.

use super::cells::{Cell, Cells};
use super::queue::{SLACK, STARVED, in_flight};
use super::reach::Reach;
use super::spread::Pair;
use crate::model::{
    Audit, Better, Column, Conclusion, Finding, Printed, Quantity, Severity, Statistic, Test,
};

/// How many figures are shown instead.
const SHOWN: usize = 3;

const FOUNDLESS_ADVICE: &str =
    "ask where the figure comes from: it does not follow from what was measured";
const ROUNDED_ADVICE: &str = "give it as the table has it, or say that it is about so much";

/// What of `claim` the tests do not hold; one finding for all of it.
pub fn finding(claim: &Conclusion, tests: &[Test]) -> Option<Finding> {
    let figures = claim.figures.iter();
    let mut missing: Vec<String> =
        figures.filter_map(|(heading, figure)| figure_gap(claim, tests, heading, figure)).collect();
    let mut rounded = Vec::new();
    for (heading, change) in &claim.changes {
        let gap = |ratios| change_gap(claim, tests, heading, (&change.text, ratios));
        let Some(words) = gap(change.ratios) else { continue };
        match change.of_tens.is_some_and(|ratios| gap(ratios).is_none()) {
            true => rounded.push(format!("{words}, unless it is rounded to tens")),
            false => missing.push(words),
        }
    }
    missing.extend(claim.better.iter().filter_map(|it| better_gap(claim, tests, it)));
    let (severity, advice) = match missing.is_empty() {
        false => (Severity::Warning, FOUNDLESS_ADVICE),
        true => (Severity::Note, ROUNDED_ADVICE),
    };
    missing.extend(rounded);
    (!missing.is_empty()).then(|| Finding {
        audit: Audit::A5,
        severity,
        workload: claim.test.clone(),
        contender: claim.contender.clone(),
        evidence: format!("\"{}\": {}", claim.text, missing.join("; ")),
        advice: advice.into(),
    })
}

fn tests_about<'a>(claim: &'a Conclusion, tests: &'a [Test]) -> impl Iterator<Item = &'a Test> {
    tests.iter().filter(|test| claim.test.as_ref().is_none_or(|name| *name == test.name))
}

/// The rows below `heading` that the claim may be about, test by test.
fn columns<'a>(
    claim: &'a Conclusion,
    tests: &'a [Test],
    heading: &str,
) -> Vec<Vec<(Cells<'a>, Cell<'a>)>> {
    let below = |test: &'a Test| {
        let cell =
            |cells: Cells<'a>| Some((cells, cells.all().find(|it| it.column.heading == heading)?));
        Cells::of(test).filter_map(cell).collect::<Vec<_>>()
    };
    tests_about(claim, tests).map(below).filter(|cells| !cells.is_empty()).collect()
}

fn is_about(claim: &Conclusion, cells: Cells) -> bool {
    claim.contender.as_ref().is_none_or(|name| *name == cells.row.contender)
}

/// What the claim compares those rows with.
fn is_other(claim: &Conclusion, cells: Cells, other: Cells) -> bool {
    let name = &other.row.contender;
    claim.against.as_ref().map_or(*name != cells.row.contender, |it| it == name)
}

fn figure_gap(
    claim: &Conclusion,
    tests: &[Test],
    heading: &str,
    figure: &Printed,
) -> Option<String> {
    let columns = columns(claim, tests, heading);
    let cells = || columns.iter().flatten().filter(|(cells, _)| is_about(claim, *cells));
    let holds = |(_, cell): &(Cells, Cell)| !Reach::of(figure, cell.column).misses(cell.reach());
    if cells().any(holds) || follows(claim, tests, heading, figure) {
        return None;
    }
    let instead: Vec<String> =
        cells().take(SHOWN).map(|(_, cell)| cell.figure.text.clone()).collect();
    let dots = if cells().count() > SHOWN { ", ..." } else { "" };
    Some(match instead.is_empty() {
        true => format!("no table has {heading}"),
        false => format!(
            "{heading} {} is in no table, which {} {}{dots}",
            figure.text,
            if instead.len() == 1 { "has" } else { "have" },
            instead.join(", ")
        ),
    })
}

/// The column, where it is a mean latency that no table has: it may follow from what has one.
fn latency<'a>(claim: &'a Conclusion, tests: &[Test], heading: &str) -> Option<&'a Column> {
    let is_absent = columns(claim, tests, heading).is_empty();
    claim.columns.get(heading).filter(|column| {
        let is_mean = matches!(column.statistic, None | Some(Statistic::Mean));
        is_absent && is_mean && column.quantity == Quantity::Latency
    })
}

/// A mean latency is the operations in flight over their rate (Little's law).
fn follows(claim: &Conclusion, tests: &[Test], heading: &str, figure: &Printed) -> bool {
    let Some(column) = latency(claim, tests, heading) else { return false };
    let claimed = Reach::of(figure, column);
    let rows = tests_about(claim, tests).flat_map(Cells::of).filter(|it| is_about(claim, *it));
    rows.into_iter().any(|cells| {
        let implied =
            in_flight(&cells.test.job).zip(cells.total_iops()).map(|(many, (iops, _))| {
                let Reach { low, high } = Reach::exactly(many).over(iops);
                Reach { low: low * STARVED, high: high * SLACK }
            });
        implied.is_some_and(|implied| !implied.misses(claimed))
    })
}

fn change_gap(
    claim: &Conclusion,
    tests: &[Test],
    heading: &str,
    (text, (low, high)): (&str, (f64, f64)),
) -> Option<String> {
    let allows = |ratio: Reach| ratio.low <= high && low <= ratio.high;
    let mut instead = Vec::new();
    let mut hidden = None;
    for column in columns(claim, tests, heading) {
        for (cells, cell) in column.iter().filter(|(cells, _)| is_about(claim, *cells)) {
            let others = column.iter().filter(|(other, _)| is_other(claim, *cells, *other));
            for (other, base) in others {
                let rows = [*cells, *other];
                match allows(cell.reach().over(base.reach())) {
                    true => match hides(Pair { test: cells.test, heading, rows, sharing: 1 }) {
                        Some(words) => hidden = Some(words),
                        None => return None,
                    },
                    false => {
                        let of = |it: &Cell| it.figure.in_unit_of(it.column);
                        let more = (of(cell) / of(base) - 1.0) * 1e2;
                        instead.push(format!("{more:+.1}% over {}", other.row.contender));
                    }
                }
            }
        }
    }
    if hidden.is_some() || change_follows(claim, tests, heading, allows) {
        return hidden;
    }
    let dots = if instead.len() > SHOWN { ", ..." } else { "" };
    instead.truncate(SHOWN);
    Some(match instead.is_empty() {
        true => format!("no table has {heading}"),
        false => {
            format!("{text} of {heading} follows from no table; {}{dots}", instead.join(", "))
        }
    })
}

/// The spread is known, and hides that the two differ at all.
fn hides(pair: Pair) -> Option<String> {
    let interval = pair.interval()?;
    (interval.low <= 0.0 && 0.0 <= interval.high).then(|| pair.words(interval))
}

/// With as many operations in flight, latencies are to each other as the rates, turned around.
fn change_follows(
    claim: &Conclusion,
    tests: &[Test],
    heading: &str,
    allows: impl Fn(Reach) -> bool,
) -> bool {
    latency(claim, tests, heading).is_some()
        && tests_about(claim, tests).any(|test| {
            let rows: Vec<Cells> = Cells::of(test).collect();
            let ratio = |cells: Cells, other: Cells| {
                in_flight(&test.job)?;
                Some(other.total_iops()?.0.over(cells.total_iops()?.0))
            };
            let pairs = rows.iter().flat_map(|cells| rows.iter().map(|other| (*cells, *other)));
            let mut compared = pairs
                .filter(|(cells, other)| is_about(claim, *cells) && is_other(claim, *cells, *other))
                .filter_map(|(cells, other)| ratio(cells, other));
            compared.any(&allows)
        })
}

/// Why the contender is not shown to be better: the first of the others that it does not beat.
fn better_gap(claim: &Conclusion, tests: &[Test], heading: &str) -> Option<String> {
    let better = claim.columns.get(heading).and_then(Column::better)?;
    let columns = columns(claim, tests, heading);
    if columns.is_empty() {
        return Some(format!("no table has {heading}"));
    }
    for column in &columns {
        for (cells, cell) in column.iter().filter(|(cells, _)| is_about(claim, *cells)) {
            let others: Vec<_> =
                column.iter().filter(|(other, _)| is_other(claim, *cells, *other)).collect();
            for (other, base) in &others {
                let (rows, sharing) = ([*cells, *other], others.len());
                let pair = Pair { test: cells.test, heading, rows, sharing };
                let holds = match (pair.interval(), better) {
                    (Some(interval), Better::Higher) => interval.low > 0.0,
                    (Some(interval), Better::Lower) => interval.high < 0.0,
                    (None, Better::Higher) => base.reach().is_below(cell.reach()),
                    (None, Better::Lower) => cell.reach().is_below(base.reach()),
                };
                if !holds {
                    return Some(match pair.interval() {
                        Some(interval) => pair.words(interval),
                        None => {
                            let (one, two) = (&cell.figure.text, &base.figure.text);
                            let name = &other.row.contender;
                            format!("{heading} {one} is not better than the {two} of {name}")
                        }
                    });
                }
            }
        }
    }
    None
}
