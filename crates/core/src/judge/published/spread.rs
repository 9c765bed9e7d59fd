//! What a difference is worth by mean, spread and number of runs, for what a text claims (A5), and
//! for what a table shows side by side (A18).
//!
//! The interval is Welch's, of the logarithms ([`Summary`]). A figure after `±` is taken for the
//! standard deviation of the runs: were it the error of the mean, or half an interval, the
//! difference would be known less well. Two runs are enough: a printed table is looked at once, and
//! not after each round. If one of two has no spread, that of the other is taken for both, in
//! proportion.

use super::cells::{Cell, Cells};
use super::found::found;
use crate::judge::interval::Interval;
use crate::judge::unpaired::Summary;
use crate::model::{Audit, Column, Finding, Severity, Statistic, Test};

/// The chance that any interval of a claim, or of a test, misses the truth.
const ALPHA: f64 = 0.05;

/// The figures of two rows below one heading.
#[derive(Clone, Copy)]
pub struct Pair<'a> {
    pub test: &'a Test,
    pub heading: &'a str,
    pub rows: [Cells<'a>; 2],
    /// How many pairs share the error.
    pub sharing: usize,
}

impl Pair<'_> {
    /// Where ln of their ratio lies; `None`: no spread is known, or no two runs.
    pub fn interval(self) -> Option<Interval> {
        let runs = self.test.runs.filter(|runs| *runs > 1)?;
        let [one, other] = self.rows.map(|cells| spread(cells, self.heading));
        let share = |it: Option<Spread>| it.and_then(|it| Some(it.deviation? / it.mean));
        let known = share(one).or(share(other))?;
        let [one, other] = [one, other].map(|it| {
            let it = it.filter(|it| it.mean > 0.0)?;
            let deviation = it.deviation.unwrap_or(known * it.mean);
            Some(Summary::of_logarithm(runs, it.mean, deviation))
        });
        Some(one?.less(other?, ALPHA / self.sharing as f64))
    }

    /// What the spread hides: `1.017 times 11.9 ± 1.3 (95% interval 0.927 to 1.117, 10 runs each)`.
    pub fn words(self, interval: Interval) -> String {
        let figure = |cells: Cells| Some(cell(cells, self.heading)?.figure.text.clone());
        let [one, other] = self
            .rows
            .map(|cells| format!("{} {}", cells.row.contender, figure(cells).unwrap_or_default()));
        let runs = self.test.runs.unwrap_or(0);
        let together = match self.sharing {
            1 => String::new(),
            sharing => format!(" for all {sharing} together"),
        };
        let [low, high] = [interval.low, interval.high].map(f64::exp);
        let has_none =
            |it: &&Cells| spread(**it, self.heading).is_some_and(|it| it.deviation.is_none());
        let taken = self.rows.iter().find(has_none).map_or(String::new(), |it| {
            format!(", with the other's spread for {}, which has none", it.row.contender)
        });
        format!(
            "{} of {one} against {other}, {runs} runs each: 95% interval of the ratio{together} \
             {low:.3} to {high:.3}{taken}",
            self.heading
        )
    }
}

fn cell<'a>(cells: Cells<'a>, heading: &str) -> Option<Cell<'a>> {
    cells.all().find(|cell| cell.column.heading == heading)
}

/// A mean and how it scatters, in the unit of the quantity.
#[derive(Clone, Copy)]
pub struct Spread {
    pub mean: f64,
    pub deviation: Option<f64>,
    /// It stands behind the mean's own `±`, and not in a column of its own.
    pub is_own: bool,
}

/// The figure of a row below a heading.
pub fn spread(cells: Cells, heading: &str) -> Option<Spread> {
    let cell = cell(cells, heading)?;
    let column = cell.column;
    let own = cell.figure.deviation.map(|it| it * cell.figure.scale.unwrap_or(column.scale));
    let is_its = |other: &Cell| {
        let Column { statistic, subject, quantity, .. } = other.column;
        *statistic == Some(Statistic::Deviation)
            && *subject == column.subject
            && *quantity == column.quantity
    };
    let beside = || cells.all().find(is_its).map(|it| it.figure.in_unit_of(it.column));
    let mean = cell.figure.in_unit_of(column);
    Some(Spread { mean, deviation: own.or_else(beside), is_own: own.is_some() })
}

/// The columns that are judged.
fn judged(test: &Test) -> impl Iterator<Item = &Column> {
    test.columns.iter().filter(|it| it.better().is_some() && it.is_figure() && !it.is_processor())
}

/// A18: figures without a spread, where others have one.
fn uneven(test: &Test) -> Option<Finding> {
    let mut has_some = false;
    let mut missing = Vec::new();
    for Column { heading, .. } in judged(test) {
        let figures = Cells::of(test).filter_map(|it| Some((it, spread(it, heading)?)));
        let (with, without): (Vec<_>, Vec<_>) = figures.partition(|(_, it)| it.deviation.is_some());
        has_some |= !with.is_empty();
        let names: Vec<&str> = without.iter().map(|(it, _)| it.row.contender.as_str()).collect();
        match (with.is_empty(), names.is_empty()) {
            (_, true) => {}
            (true, false) => missing.push(heading.clone()),
            (false, false) => missing.push(format!("{heading} of {}", names.join(", "))),
        }
    }
    let runs = test.runs.filter(|runs| *runs > 1 && has_some && !missing.is_empty())?;
    let evidence = format!("of {runs} runs no spread is given for {}", missing.join("; "));
    let advice = "give the spread of each figure: nothing follows from one without it";
    Some(found(test, "", (Audit::A18, Severity::Warning), evidence, advice))
}

/// A18: columns in which no two contenders differ by more than their printed spread.
pub fn findings(test: &Test) -> Vec<Finding> {
    let rows: Vec<Cells> = Cells::of(test).collect();
    let mut names: Vec<&str> = rows.iter().map(|it| it.row.contender.as_str()).collect();
    names.sort_unstable();
    // Several rows of one contender are its runs: that is for the judge.
    if names.windows(2).any(|two| two[0] == two[1]) {
        return Vec::new();
    }
    let of = |column: &Column| {
        let sharing = rows.len() * rows.len().saturating_sub(1) / 2;
        let pairs = (0..rows.len()).flat_map(|one| (one + 1..rows.len()).map(move |it| [one, it]));
        let seen = pairs.filter_map(|at| {
            let rows = at.map(|place| rows[place]);
            let pair = Pair { test, heading: &column.heading, rows, sharing };
            Some((pair.interval()?, pair.words(pair.interval()?)))
        });
        let seen: Vec<(Interval, String)> = seen.collect();
        let differ = seen.iter().any(|(it, _)| it.low > 0.0 || it.high < 0.0);
        let (_, first) = seen.first().filter(|_| !differ)?;
        let evidence = match seen.len() {
            1 => format!("no difference is shown: {first}"),
            _ => format!("no two of them differ: {first}, and the others alike"),
        };
        let advice = "measure more runs, in interleaved rounds; until then say that no difference \
                      was seen";
        Some(found(test, "", (Audit::A18, Severity::Note), evidence, advice))
    };
    let hidden = test.columns.iter().filter(|it| it.better().is_some() && it.is_figure());
    hidden.filter_map(of).chain(uneven(test)).collect()
}
