//! The matrix: tests down, contenders across, one cell for each comparison. It is the answer of a
//! run, and every format draws this one.

use super::ways::{Ways, ways};
use super::words::{self, Test};
use super::{Report, table};
use crate::model::{Comparison, Percent, Plan, Verdict};

/// So many rows fit a first screen; beyond that tests are folded by workload.
const ROWS_MAX: usize = 12;

/// A run's answer.
#[derive(Debug)]
pub(super) struct Matrix<'a> {
    /// What all are compared with.
    pub reference: &'a str,
    /// Differences smaller than this are trivial.
    pub margin: Percent,
    /// All tests, in the plan's order.
    pub tests: Vec<Test<'a>>,
    /// What stands above the first column: what its rows are.
    pub corner: String,
    /// What stands above each column of cells.
    pub columns: Vec<String>,
    /// The rows, those together that are of one workload.
    pub groups: Vec<Group<'a>>,
    /// Contenders differ in two ways, which are the rows of a group and the columns.
    pub ways: Option<Ways>,
}

/// Rows that stand together.
#[derive(Debug)]
pub(super) struct Group<'a> {
    /// What they are of, where that is not their only row's own name.
    pub title: Option<String>,
    /// The reference's figure, where it is one for all of them.
    pub reference: Option<String>,
    pub rows: Vec<Row<'a>>,
}

/// One test, or of a test that is done in two ways one level of the first.
#[derive(Debug)]
pub(super) struct Row<'a> {
    pub name: String,
    /// Its test's place in [`Matrix::tests`].
    pub test: usize,
    /// The reference's median.
    pub reference: Option<String>,
    pub cells: Vec<Cell<'a>>,
}

/// What is said of one contender at one test.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cell<'a> {
    /// It was compared.
    Judged(&'a Comparison),
    /// It is what the others are compared with.
    Reference,
    /// There is nothing to compare: the reason in a word or two.
    Empty(&'static str),
}

/// A comparison, with its test's place.
pub(super) type Compared<'a> = (usize, &'a Comparison);

/// How a verdict looks: each has a sign of its own, so that no colour is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Tone {
    Better,
    Worse,
    Alike,
    Open,
    Void,
}

impl Tone {
    /// The class of a page's cell.
    pub fn name(self) -> &'static str {
        match self {
            Tone::Better => "better",
            Tone::Worse => "worse",
            Tone::Alike => "alike",
            Tone::Open => "open",
            Tone::Void => "void",
        }
    }
}

/// A verdict's sign and tone.
pub(super) fn sign(verdict: Verdict) -> (char, Tone) {
    match verdict {
        Verdict::Faster => ('▲', Tone::Better),
        Verdict::Slower => ('▼', Tone::Worse),
        Verdict::FasterSizeOpen => ('△', Tone::Better),
        Verdict::SlowerSizeOpen => ('▽', Tone::Worse),
        Verdict::TriviallyFaster => ('≳', Tone::Alike),
        Verdict::TriviallySlower => ('≲', Tone::Alike),
        Verdict::Equivalent => ('≈', Tone::Alike),
        Verdict::Undecided => ('?', Tone::Open),
        Verdict::Void => ('∅', Tone::Void),
    }
}

impl<'a> Cell<'a> {
    /// The comparison, where there is one.
    pub fn comparison(&self) -> Option<&'a Comparison> {
        match self {
            Cell::Judged(comparison) => Some(comparison),
            _ => None,
        }
    }
}

impl<'a> Matrix<'a> {
    /// The matrix of a report.
    pub fn of(report: &Report<'a>) -> Matrix<'a> {
        let plan = report.plan;
        let ways = ways(plan);
        let tests = words::tests(plan);
        let columns = match &ways {
            Some(ways) => ways.columns.clone(),
            None => others(plan).map(String::from).collect(),
        };
        let groups = match &ways {
            Some(ways) => {
                (0..tests.len()).map(|at| in_two_ways(report, &tests, at, ways)).collect()
            }
            None => by_workload(report, &tests),
        };
        Matrix {
            reference: plan.reference(),
            margin: plan.judgement.margin,
            corner: ways.as_ref().map_or("test".into(), |ways| ways.first.to_string()),
            tests,
            columns,
            groups,
            ways,
        }
    }

    /// All cells with a comparison, each with its test's place.
    pub fn judged(&self) -> impl Iterator<Item = Compared<'a>> {
        self.rows().flat_map(|row| {
            row.cells.iter().filter_map(|cell| Some((row.test, cell.comparison()?)))
        })
    }

    /// All rows.
    pub fn rows(&self) -> impl Iterator<Item = &Row<'a>> {
        self.groups.iter().flat_map(|group| &group.rows)
    }

    /// A group's rows are more than a first screen has room for.
    pub fn is_folded(&self, group: &Group) -> bool {
        group.rows.len() > 1 && self.rows().count() > ROWS_MAX
    }

    /// What the numbers are where rows are folded, if any are.
    pub fn legend_of_folded(&self) -> Option<String> {
        let is_counted = |group: &Group| {
            let mut cells = group.rows.iter().flat_map(|row| &row.cells);
            self.is_folded(group) && cells.any(|cell| cell.comparison().is_some())
        };
        self.groups.iter().any(is_counted).then(|| match &self.ways {
            Some(ways) => format!("a number after a sign counts {}s", ways.first),
            None => "a number after a sign counts figures of that test".into(),
        })
    }

    /// What a ratio says, and the signs that it has, with what they mean, in their order.
    pub fn legend(&self) -> Vec<String> {
        let margin = self.margin;
        let has = |wanted: &[Verdict]| self.judged().any(|(_, it)| wanted.contains(&it.verdict));
        let meanings = [
            (
                &[Verdict::Faster, Verdict::Slower][..],
                format!("▲ ▼ better, worse by more than {margin}"),
            ),
            (
                &[Verdict::FasterSizeOpen, Verdict::SlowerSizeOpen],
                format!("△ ▽ better, worse, perhaps by less than {margin}"),
            ),
            (&[Verdict::Equivalent], format!("≈ equal within {margin}")),
            (
                &[Verdict::TriviallyFaster, Verdict::TriviallySlower],
                format!("≳ ≲ better, worse by less than {margin}"),
            ),
            (&[Verdict::Undecided], "? open".into()),
            (&[Verdict::Void], "∅ void: something else was measured".into()),
        ];
        let signs = meanings.into_iter().filter(|(wanted, _)| has(wanted)).map(|(_, text)| text);
        let ratio = "a ratio above 1 is better, for times and bytes too".to_string();
        let has_ratio = self.judged().any(|(_, it)| it.ratio.is_some());
        has_ratio.then_some(ratio).into_iter().chain(signs).collect()
    }
}

/// The contenders beside the reference.
pub(super) fn others(plan: &Plan) -> impl Iterator<Item = &str> {
    let names = plan.contenders.iter().map(|contender| contender.name.as_str());
    names.filter(|name| *name != plan.reference())
}

fn by_workload<'a>(report: &Report<'a>, tests: &[Test<'a>]) -> Vec<Group<'a>> {
    let mut place = 0;
    let of = |its: &[Test<'a>]| {
        let is_only = its.len() == 1;
        let rows = its.iter().enumerate().map(|(index, test)| Row {
            name: if is_only { test.full.clone() } else { test.short.clone() },
            test: place + index,
            reference: reference(report, test),
            cells: others(report.plan).map(|name| cell(report, test, name)).collect(),
        });
        let rows = rows.collect();
        place += its.len();
        let title = (!is_only).then(|| its[0].workload.to_string());
        Group { title, reference: None, rows }
    };
    tests.chunk_by(|one, other| one.workload == other.workload).map(of).collect()
}

fn in_two_ways<'a>(report: &Report<'a>, tests: &[Test<'a>], at: usize, ways: &Ways) -> Group<'a> {
    let test = &tests[at];
    let row = |(name, places): (&String, &Vec<usize>)| Row {
        name: name.clone(),
        test: at,
        reference: None,
        cells: places
            .iter()
            .map(|place| cell(report, test, &report.plan.contenders[*place].name))
            .collect(),
    };
    let rows = ways.rows.iter().zip(&ways.places).map(row).collect();
    Group { title: Some(test.full.clone()), reference: reference(report, test), rows }
}

/// The reference's median.
fn reference(report: &Report, test: &Test) -> Option<String> {
    let workload = report.plan.workloads.iter().find(|it| it.name == test.workload)?;
    let records = table::records(report, workload, report.plan.reference());
    let (value, unit) = table::metric_median(&records, &test.metric)?;
    Some(table::shown(&test.metric, unit, value))
}

fn cell<'a>(report: &Report<'a>, test: &Test, contender: &str) -> Cell<'a> {
    if contender == report.plan.reference() {
        return Cell::Reference;
    }
    let its = |it: &&Comparison| {
        (it.workload.as_str(), it.metric.as_str(), it.contender.as_str())
            == (test.workload, test.metric.as_str(), contender)
    };
    match report.comparisons.iter().find(its) {
        Some(comparison) => Cell::Judged(comparison),
        None if refuses(report, test, contender) => Cell::Empty("refused"),
        None => Cell::Empty("no reference"),
    }
}

/// Some trial of the contender was refused the timed part that the test is of.
fn refuses(report: &Report, test: &Test, contender: &str) -> bool {
    let Some(workload) = report.plan.workloads.iter().find(|it| it.name == test.workload) else {
        return false;
    };
    let records = table::records(report, workload, contender);
    records.iter().any(|record| record.refuses(workload.phase_of(&test.metric)))
}

/// The signs of a column of a group, each with its tone and how often it is there.
pub(super) fn tally(group: &Group, column: usize) -> Vec<(char, Tone, usize)> {
    let mut signs: Vec<(char, Tone, usize)> = Vec::new();
    for comparison in group.rows.iter().filter_map(|row| row.cells[column].comparison()) {
        let (its, tone) = sign(comparison.verdict);
        match signs.iter_mut().find(|(known, ..)| *known == its) {
            Some((.., count)) => *count += 1,
            None => signs.push((its, tone, 1)),
        }
    }
    signs.sort_by_key(|(sign, tone, _)| (*tone, *sign));
    signs
}

/// A cell in words: "0.54, 0.38 to 0.77: slower".
pub(super) fn said(comparison: &Comparison) -> String {
    let label = comparison.label();
    match (comparison.ratio, comparison.high) {
        (Some(ratio), Some(high)) => {
            let ends = words::from_to(comparison.low, high, words::ratio);
            format!("{}, {ends}: {label}", words::ratio(ratio))
        }
        (Some(ratio), None) => format!("{}, no interval yet: {label}", words::ratio(ratio)),
        (None, _) => label,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{comparison, grid, report, run};
    use super::*;
    use crate::model::{Key, Phase, Record, Refused};

    #[test]
    fn verdicts_are_told_apart_without_colour() {
        let mut signs: Vec<char> = Verdict::ALL.map(|it| sign(it).0).into();
        signs.sort_unstable();
        signs.dedup();
        assert_eq!(signs.len(), Verdict::ALL.len());
    }

    #[test]
    fn every_comparison_has_a_cell_and_every_sign_a_meaning() {
        let verdicts: Vec<Vec<_>> = Verdict::ALL.map(|it| vec![(it, 1.5), (it, 0.5)]).into();
        let made = grid(&verdicts);
        let report = report(&made);
        let matrix = Matrix::of(&report);
        assert_eq!(matrix.columns, ["c1", "c2"]);
        assert_eq!(matrix.judged().count(), 18);
        let legend = matrix.legend().join(" ");
        assert!(Verdict::ALL.iter().all(|it| legend.contains(sign(*it).0)), "{legend}");
        assert!(!matrix.is_folded(&matrix.groups[0]), "a test by itself can't be folded");
    }

    #[test]
    fn what_the_reference_refuses_the_others_do_not() {
        let mut plan = grid(&[vec![(Verdict::Undecided, 1.0); 2]]).0;
        plan.workloads[0].name = "w".into();
        let key = |name: &str| Key { round: 1, workload: "w".into(), contender: name.into() };
        let refused = vec![Refused { phase: Phase::Whole, why: "no".into() }];
        let made = (plan, run(), Vec::new());
        let of = |name: &str| {
            let records = [Record { refused: refused.clone(), ..Record::new(1, key(name), 0, 0) }];
            let report = Report { records: &records, ..report(&made) };
            let matrix = Matrix::of(&report);
            let cells = &matrix.groups[0].rows[0].cells;
            cells.iter().map(|it| format!("{it:?}")).collect::<Vec<_>>()
        };
        let [refused, no_reference] = ["Empty(\"refused\")", "Empty(\"no reference\")"];
        assert_eq!(of("c0"), [no_reference, no_reference]);
        assert_eq!(of("c1"), [refused, no_reference]);
    }

    #[test]
    fn workloads_of_many_tests_are_folded_where_there_are_too_many() {
        let text = "[[contender]]\nname = \"a\"\n[[contender]]\nname = \"b\"\n[[workload]]\n\
                    name = \"metadata\"\nmetadata = {}\n[[workload]]\nname = \"small files\"\n\
                    small_files = {}\n[[workload]]\nname = \"copy\"\ncommand = \"cp\"\n";
        let run = run();
        let plan = Plan::parse(text).unwrap();
        let made = (plan, run, Vec::new());
        let report = report(&made);
        let matrix = Matrix::of(&report);
        assert_eq!(matrix.rows().count(), 14);
        let folded: Vec<bool> = matrix.groups.iter().map(|it| matrix.is_folded(it)).collect();
        assert_eq!(folded, [true, true, false]);
        assert!(matrix.rows().all(|row| matches!(row.cells[..], [Cell::Empty(_)])));
        assert_eq!(matrix.legend_of_folded(), None, "there are no numbers to explain");
        let mut judged = comparison("metadata", "b", Verdict::Slower, 0.5);
        (judged.reference, judged.metric) = ("a".into(), "create_rate".into());
        let made = (made.0, made.1, vec![judged]);
        let report = super::super::testing::report(&made);
        let said = Matrix::of(&report).legend_of_folded();
        assert_eq!(said.as_deref(), Some("a number after a sign counts figures of that test"));
    }
}
