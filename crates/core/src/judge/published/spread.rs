//! What a difference is worth by mean, spread and number of runs: of what a text claims (A5), and
//! of what a table sets side by side (A18).
//!
//! The interval is Welch's, of the logarithms ([`Summary`]). A figure behind `±` is taken for the
//! standard deviation of the runs: were it the error of the mean, or half an interval, the
//! difference would be known less well.

use super::cells::{Cell, Cells};
use super::found::found;
use crate::judge::interval::Interval;
use crate::judge::stopping::FIRST_LOOK;
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
    /// Where ln of their ratio lies; `None`: the spread or the number of runs is not known.
    pub fn interval(self) -> Option<Interval> {
        let runs = self.test.runs?;
        let [one, other] = self.rows.map(|cells| {
            let (mean, deviation) = spread(cells, self.heading)?;
            (mean > 0.0).then(|| Summary::of_logarithm(runs, mean, deviation))
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
        let known = match interval.is_bounded() {
            true => {
                let [low, high] = [interval.low, interval.high].map(f64::exp);
                format!("95% interval of the ratio{together} {low:.3} to {high:.3}")
            }
            false => format!("no interval before {FIRST_LOOK} runs"),
        };
        format!("{} of {one} against {other}, {runs} runs each: {known}", self.heading)
    }
}

fn cell<'a>(cells: Cells<'a>, heading: &str) -> Option<Cell<'a>> {
    cells.all().find(|cell| cell.column.heading == heading)
}

/// Mean and deviation, in the unit of the quantity.
fn spread(cells: Cells, heading: &str) -> Option<(f64, f64)> {
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
    Some((cell.figure.in_unit_of(column), own.or_else(beside)?))
}

/// A18: columns of which no two contenders differ by what is printed of their spread.
pub fn findings(test: &Test) -> Vec<Finding> {
    let rows: Vec<Cells> = Cells::of(test).collect();
    let mut names: Vec<&str> = rows.iter().map(|it| it.row.contender.as_str()).collect();
    names.sort_unstable();
    // Several rows of one contender are its runs: that is for the judge.
    if names.windows(2).any(|two| two[0] == two[1]) {
        return Vec::new();
    }
    let judged = test.columns.iter().filter(|it| it.better().is_some() && it.is_figure());
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
    judged.filter_map(of).collect()
}
