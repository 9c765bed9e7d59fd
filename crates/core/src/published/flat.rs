//! The rows of files as runs: each with its test, its contender, its round and its figures.

use std::collections::BTreeSet;

use super::error::{TableError, wrong};
use super::labels::Label;
use super::{heading, options};
use crate::model::{Column, Job, Row, Table};

/// One run.
#[derive(Clone, Debug)]
pub struct Run {
    /// The test it is of.
    pub test: String,
    /// What was run.
    pub job: Job,
    /// Whose it is.
    pub contender: String,
    /// Its round, if known.
    pub round: Option<u32>,
    /// What it gave, in the units of [`Column::unit`].
    pub figures: Vec<(Column, f64)>,
}

/// What distinguishes contenders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// The rows.
    Rows,
    /// The files they are in.
    Files,
    /// The names of the tests.
    Tests,
}

/// What tests are called where their names are the contenders'.
const WORK: &str = "work";

/// The runs of all files, and what distinguished their contenders.
pub fn runs(files: &[(Label, Table)]) -> (Told, Vec<Run>) {
    let rows = || files.iter().flat_map(|(_, it)| &it.tests).flat_map(|it| &it.rows);
    let in_rows: BTreeSet<&str> = rows().map(|row| row.contender.as_str()).collect();
    let labels: BTreeSet<&str> = files.iter().map(|(it, _)| it.contender.as_str()).collect();
    let told = match (in_rows.len() > 1, labels.len() > 1) {
        (true, _) => Told::Rows,
        (_, true) => Told::Files,
        _ => Told::Tests,
    };
    let mut runs = Vec::new();
    for (label, table) in files {
        let names = names(table, told, label);
        for (test, (name, contender)) in table.tests.iter().zip(names) {
            for row in &test.rows {
                let contender = match told {
                    Told::Rows => row.contender.clone(),
                    Told::Files => label.contender.clone(),
                    Told::Tests => contender.clone(),
                };
                let round = row.round.or(label.round);
                let run = |figures| Run {
                    test: name.clone(),
                    job: test.job.clone(),
                    contender: contender.clone(),
                    round,
                    figures,
                };
                runs.extend(figures(row, &test.columns).into_iter().map(run));
            }
        }
    }
    (told, runs)
}

/// The rows of all files as one table.
pub fn together(told: Told, files: Vec<(Label, Table)>) -> Table {
    let mut all = Table::default();
    for (label, table) in files {
        let names = names(&table, told, &label);
        for (mut test, (name, contender)) in table.tests.into_iter().zip(names) {
            let whose = if told == Told::Files { &label.contender } else { &contender };
            let rows = test.rows.iter_mut().filter(|_| told != Told::Rows);
            rows.for_each(|row| row.contender.clone_from(whose));
            let alike =
                all.tests.iter_mut().find(|it| it.name == name && it.columns == test.columns);
            match alike {
                Some(known) => known.rows.append(&mut test.rows),
                None => all.tests.push(crate::model::Test { name, ..test }),
            }
        }
    }
    all
}

/// The name of each test of the table, and its contender by that name: `write/ext4` is ext4's
/// `write`.
fn names(table: &Table, told: Told, label: &Label) -> Vec<(String, String)> {
    let names: Vec<&str> = table.tests.iter().map(|test| test.name.as_str()).collect();
    let split: Option<Vec<(&str, &str)>> = names.iter().map(|it| it.rsplit_once('/')).collect();
    let whose: BTreeSet<&str> = split.iter().flatten().map(|(_, whose)| *whose).collect();
    match split.filter(|_| told == Told::Tests && whose.len() > 1) {
        Some(split) => split.into_iter().map(|(test, it)| (test.into(), it.into())).collect(),
        None if told == Told::Tests => names.iter().map(|it| (WORK.into(), (*it).into())).collect(),
        None => {
            let name = |test| match (&label.test, named(table, test)) {
                (Some(file), _) if table.tests.len() == 1 => file.clone(),
                (Some(file), name) => format!("{file}: {name}"),
                (None, name) => name,
            };
            table.tests.iter().map(|test| (name(test), String::new())).collect()
        }
    }
}

/// A test's name: with what was run, where tests of the table share it.
fn named(table: &Table, test: &crate::model::Test) -> String {
    let alike = table.tests.iter().filter(|other| other.name == test.name).count();
    let name = if test.name.is_empty() { WORK } else { &test.name };
    match options::described(&test.job).filter(|_| alike > 1) {
        Some(job) => format!("{name}: {job}"),
        None => name.to_string(),
    }
}

/// The figures of a row's runs: of one, or of all whose times it holds.
fn figures(row: &Row, columns: &[Column]) -> Vec<Vec<(Column, f64)>> {
    if row.times_s.is_empty() {
        let cells = columns.iter().zip(&row.cells);
        let figure = |(column, cell): (&Column, &Option<crate::model::Printed>)| {
            let value = cell.as_ref()?.in_unit_of(column);
            column.is_figure().then(|| (column.clone(), value))
        };
        return vec![cells.filter_map(figure).collect()];
    }
    let column = Column { heading: "time".into(), ..heading::column("time s") };
    row.times_s.iter().map(|time_s| vec![(column.clone(), *time_s)]).collect()
}

/// The same was asked for. Whether the loop was closed, and how many tasks were behind one report,
/// is in part told by how long a run took.
fn is_same(one: &Job, other: &Job) -> bool {
    let jobs = one.jobs.filter(|_| other.jobs.is_some());
    let asked = |job: &Job| Job { closed_loop: false, jobs: job.jobs.and(jobs), ..job.clone() };
    let known = one.jobs.is_none() || other.jobs.is_none() || one.jobs == other.jobs;
    known && asked(one) == asked(other)
}

/// Refuses tests of one name that are other work.
pub fn check_jobs(runs: &[Run]) -> Result<(), TableError> {
    for (place, run) in runs.iter().enumerate() {
        let first = runs[..place].iter().find(|it| it.test == run.test);
        if let Some(first) = first.filter(|first| !is_same(&first.job, &run.job)) {
            let of = |run: &Run| options::described(&run.job).unwrap_or("unknown".into());
            return Err(wrong(format!(
                "{} is not the same work for all: {} for {}, {} for {}",
                run.test,
                of(first),
                first.contender,
                of(run),
                run.contender
            )));
        }
    }
    Ok(())
}
