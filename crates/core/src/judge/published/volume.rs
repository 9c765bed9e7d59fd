//! A1: rate, time and amount of one piece of work, where each follows from the other two; and
//! processor time, which is its share of the time.

use super::agree::slip;
use super::cells::{Cell, Cells, shown};
use super::found::found;
use super::reach::Reach;
use crate::model::{Audit, Column, Finding, Quantity, Severity, Statistic, Test, Unit};

/// So far may figures be apart that are of slightly other stretches of time.
const APART: f64 = 0.02;
/// Amounts of rows that are further apart than this are not of the same work.
const OTHER_WORK: f64 = 0.05;
/// Words that don't tell which part of the work a figure is of.
const GENERIC: [&str; 12] = [
    "bandwidth",
    "throughput",
    "rate",
    "speed",
    "time",
    "wall",
    "elapsed",
    "real",
    "total",
    "runtime",
    "duration",
    "all",
];

/// What they find in one test.
pub fn findings(test: &Test) -> Vec<Finding> {
    let kind = (Audit::A1, Severity::Warning);
    let advice = "take rate, time and amount from the tool's own output again: two of them give \
                  the third";
    let mut findings = Vec::new();
    let mut implied: Vec<(Cells, [Cell; 2], Reach)> = Vec::new();
    for cells in Cells::of(test) {
        let mut evidence: Vec<String> = processor_share(cells).into_iter().collect();
        for (rate, time) in pairs(cells) {
            let amount = rate.reach() * time.reach();
            match known(cells, rate) {
                Some(known) if apart(amount, known, APART) => {
                    let slip = slip(amount.middle() / known.middle());
                    evidence.push(format!(
                        "{} make {}, and the work is {}{}",
                        shown(&[rate, time]),
                        words(rate, amount),
                        words(rate, known),
                        slip.map_or(String::new(), |unit| format!(": {unit}"))
                    ));
                }
                Some(_) => {}
                // How many requests it takes is the file system's own.
                None if rate.column.quantity == Quantity::Iops => {}
                None => implied.push((cells, [rate, time], amount)),
            }
        }
        let row = &cells.row.contender;
        findings.extend(evidence.into_iter().map(|it| found(test, row, kind, it, advice)));
    }
    let evidence = other_work(test, &implied);
    findings.extend(evidence.map(|it| found(test, "", kind, it, advice)));
    findings
}

/// It can find something in the row.
pub fn fits(cells: Cells) -> bool {
    !pairs(cells).is_empty() || shares(cells).is_some()
}

/// Nothing is in both, and their middles are apart by more than that.
fn apart(one: Reach, other: Reach, share: f64) -> bool {
    one.misses(other) && (one.middle() / other.middle() - 1.0).abs() > share
}

/// Rates and times of the same part of the work.
fn pairs<'a>(cells: Cells<'a>) -> Vec<(Cell<'a>, Cell<'a>)> {
    let is_plain = |it: &Cell| matches!(it.column.statistic, None | Some(Statistic::Mean));
    let is_rate = |it: &Cell| {
        matches!(it.column.quantity, Quantity::Bandwidth | Quantity::Rate | Quantity::Iops)
    };
    let is_time = |it: &Cell| it.column.quantity == Quantity::Time && !it.column.is_processor();
    let rates: Vec<Cell> = cells.all().filter(is_plain).filter(is_rate).collect();
    let times: Vec<Cell> = cells.all().filter(is_plain).filter(is_time).collect();
    let alone = rates.len() == 1 && times.len() == 1;
    let matches = |rate: &Cell, time: &Cell| alone || part(rate.column) == part(time.column);
    let of = |rate: &Cell<'a>| {
        let time = times.iter().find(|time| matches(rate, time))?;
        Some((*rate, *time))
    };
    // What fio says of itself is held against its own amounts (A5).
    if cells.test.clock_s.is_some() {
        return Vec::new();
    }
    rates.iter().filter_map(of).collect()
}

/// Which part of the work a column is of: `create` of `create files/s`.
fn part(column: &Column) -> Vec<&str> {
    column.subject.split(' ').filter(|word| !GENERIC.contains(word) && !word.is_empty()).collect()
}

/// The amount that the table states.
fn known(cells: Cells, rate: Cell) -> Option<Reach> {
    let test = cells.test;
    let column = |quantity| {
        let its =
            |it: &Cell| it.column.quantity == quantity && part(it.column) == part(rate.column);
        cells.all().find(its).map(Cell::reach)
    };
    match rate.column.quantity {
        Quantity::Bandwidth => {
            column(Quantity::Bytes).or(test.bytes.map(|it| Reach::exactly(it as f64)))
        }
        _ => {
            let operations = test.operations.get(&rate.column.heading);
            column(Quantity::Count).or(operations.map(|it| Reach::exactly(*it as f64)))
        }
    }
}

fn words(rate: Cell, amount: Reach) -> String {
    match rate.column.quantity {
        Quantity::Bandwidth => Unit::Bytes.format(amount.middle()),
        _ => format!("{} operations", Unit::Count.format(amount.middle())),
    }
}

/// Rows of one test are of the same work, unless each worked for the same time.
fn other_work(test: &Test, implied: &[(Cells, [Cell; 2], Reach)]) -> Option<String> {
    let alike = |at: &&(Cells, [Cell; 2], Reach)| {
        let (_, [rate, _], _) = implied[0];
        at.1[0].column.heading == rate.column.heading
    };
    let same: Vec<_> = implied.iter().filter(alike).collect();
    let (first, [rate, time], amount) = same.first()?;
    let in_time =
        |(_, [_, other], _): &&(Cells, [Cell; 2], Reach)| !apart(time.reach(), other.reach(), 0.01);
    if test.job.closed_loop || same.iter().skip(1).all(in_time) {
        return None;
    }
    let (other, _, differs) =
        same.iter().find(|(_, _, other)| apart(*amount, *other, OTHER_WORK))?;
    let [one, two] = [(first, amount), (other, differs)]
        .map(|(cells, amount)| format!("{} for {}", words(*rate, *amount), cells.row.contender));
    let (rate, time) = (&rate.column.heading, &time.column.heading);
    Some(format!("{rate} and {time} imply other amounts of work: {one}, {two}"))
}

/// Processor time and its share: user, system, the time and the share.
fn shares<'a>(cells: Cells<'a>) -> Option<[Cell<'a>; 4]> {
    let says =
        |it: &Cell, word: &[&str]| it.column.subject.split(' ').any(|its| word.contains(&its));
    let is_time = |it: &Cell| it.column.quantity == Quantity::Time;
    let times = || cells.all().filter(is_time);
    let mut walls = times().filter(|it| !it.column.is_processor());
    let (wall, None) = (walls.next()?, walls.next()) else { return None };
    let user = times().find(|it| says(it, &["user"]))?;
    let system = times().find(|it| says(it, &["system", "sys"]))?;
    let share =
        cells.all().find(|it| it.column.quantity == Quantity::Share && says(it, &["cpu"]))?;
    Some([user, system, wall, share])
}

/// The share is that of the times. Some count it of all processors: then it is less.
fn processor_share(cells: Cells) -> Option<String> {
    let [user, system, wall, share] = shares(cells)?;
    let ratio = (user.reach() + system.reach()).over(wall.reach());
    let follows = Reach { low: ratio.low * 1e2, high: ratio.high * 1e2 };
    let of_all = share.reach().middle() * 1.5 < follows.middle();
    (!of_all && apart(share.reach(), follows, APART)).then(|| {
        let middle = follows.middle();
        format!("{} is not {middle:.1}, as {} have it", share.shown(), shown(&[user, system, wall]))
    })
}
