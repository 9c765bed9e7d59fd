//! A CSV: a row for each run or each contender, the columns named with their units.

use std::collections::BTreeMap;

use csv::{ReaderBuilder, StringRecord, Trim};

use super::error::{TableError, wrong};
use super::{figure, heading, hyperfine, options};
use crate::model::{Job, Quantity, Row, Table, Test};

const CONTENDER: [&str; 4] = ["contender", "file_system", "filesystem", "fs"];
const TEST: [&str; 4] = ["test", "workload", "command", "job"];
/// Parameters of the job, by fio's name and others'.
const PARAMETERS: [(&str, &[&str]); 8] = [
    ("bs", &["bs", "block_size", "blocksize"]),
    ("numjobs", &["jobs", "numjobs", "threads"]),
    ("iodepth", &["depth", "iodepth", "queue_depth"]),
    ("ioengine", &["engine", "ioengine"]),
    ("direct", &["direct"]),
    ("rw", &["rw", "mode"]),
    ("size", &["size"]),
    ("end_fsync", &["end_fsync", "fsync"]),
];
/// hyperfine's own `--export-csv`, whose times are seconds.
const HYPERFINE: [&str; 4] = ["command", "mean", "stddev", "median"];

/// Reads the text.
pub fn read(text: &str) -> Result<Table, TableError> {
    let mut reader =
        ReaderBuilder::new().trim(Trim::All).flexible(false).from_reader(text.as_bytes());
    let header = reader.headers().map_err(|_| TableError::Unknown)?.clone();
    let is_hyperfine = header.iter().take(4).eq(HYPERFINE);
    let named = |name: &str| match is_hyperfine && name != "command" {
        true => format!("{name} s"),
        false => name.to_string(),
    };
    let places = Places::of(&header, named);
    if !places.figures.iter().any(|(_, column)| column.quantity != Quantity::Other) {
        return Err(TableError::Unknown);
    }
    let mut tests: Vec<Test> = Vec::new();
    for (number, record) in (2..).zip(reader.records()) {
        let record = record.map_err(|error| wrong(format!("the CSV's line {number}: {error}")))?;
        places.add(&mut tests, &record, number)?;
    }
    if tests.is_empty() {
        return Err(wrong("the CSV has a heading and no rows"));
    }
    tests.iter_mut().for_each(|test| settle(test, is_hyperfine));
    let kind = if is_hyperfine { "CSV of hyperfine" } else { "a CSV" }.to_string();
    Ok(Table { title: kind.clone(), kind, tests, ..Table::default() })
}

/// Which column holds what.
struct Places {
    contender: Option<usize>,
    test: Option<usize>,
    runs: Option<usize>,
    parameters: Vec<(usize, &'static str)>,
    figures: Vec<(usize, crate::model::Column)>,
}

impl Places {
    fn of(header: &StringRecord, named: impl Fn(&str) -> String) -> Places {
        let find = |names: &[&str]| {
            header.iter().position(|it| names.contains(&it.to_lowercase().as_str()))
        };
        let [contender, test, runs] = [find(&CONTENDER), find(&TEST), find(&["runs"])];
        let number = find(&["run", "round"]);
        let parameters: Vec<(usize, &str)> =
            PARAMETERS.iter().filter_map(|(option, names)| Some((find(names)?, *option))).collect();
        let known = |place: usize| {
            [contender, test, runs, number].contains(&Some(place))
                || parameters.iter().any(|(other, _)| *other == place)
        };
        let others = header.iter().enumerate().filter(|(place, _)| !known(*place));
        let figures = others.map(|(at, name)| (at, heading::column(&named(name)))).collect();
        Places { contender, test, runs, parameters, figures }
    }

    /// Adds a row to the test it belongs to: rows of one name and of the same parameters.
    fn add(
        &self,
        tests: &mut Vec<Test>,
        record: &StringRecord,
        line: u64,
    ) -> Result<(), TableError> {
        let text = |place: Option<usize>| place.and_then(|at| record.get(at)).unwrap_or_default();
        let given = self.parameters.iter().map(|(at, option)| (option, text(Some(*at))));
        let given = given.filter(|(_, value)| !value.is_empty());
        let job = job(&given.map(|(option, value)| (option.to_string(), value.into())).collect());
        let name = match text(self.test) {
            "" => "all rows".to_string(),
            name => name.to_string(),
        };
        let runs = match text(self.runs) {
            "" => None,
            runs => Some(runs.parse().map_err(|_| {
                wrong(format!("the CSV's line {line}: runs is {runs:?}, no whole number"))
            })?),
        };
        let cells = self.figures.iter().map(|(at, _)| figure::printed(text(Some(*at)))).collect();
        let row = Row { contender: text(self.contender).into(), cells, times_s: Vec::new() };
        match tests.iter_mut().find(|test| test.name == name && test.job == job) {
            Some(test) => test.rows.push(row),
            None => {
                let columns = self.figures.iter().map(|(_, column)| column.clone()).collect();
                let rows = vec![row];
                tests.push(Test { name, job, columns, rows, runs, ..Test::default() });
            }
        }
        Ok(())
    }
}

/// The job of the given options: of what is not given nothing is known, for no program is named
/// that would have defaults.
fn job(given: &BTreeMap<String, String>) -> Job {
    let fio = options::job(given);
    let has = |option: &str| given.contains_key(option);
    Job {
        is_fio: false,
        block_bytes: fio.block_bytes.filter(|_| has("bs")),
        jobs: fio.jobs.filter(|_| has("numjobs")),
        depth: fio.depth.filter(|_| has("iodepth")),
        direct: fio.direct.filter(|_| has("direct")),
        synced: fio.synced.filter(|_| has("end_fsync")),
        ..fio
    }
}

/// Rows of the same contender are runs.
fn settle(test: &mut Test, is_hyperfine: bool) {
    let count = |row: &Row| test.rows.iter().filter(|it| it.contender == row.contender).count();
    let most = test.rows.iter().map(count).max().unwrap_or(0);
    if most > 1 {
        test.runs = u32::try_from(most).ok();
    }
    test.clock_s = is_hyperfine.then_some(hyperfine::CLOCK_S);
}
