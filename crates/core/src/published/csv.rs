//! A CSV: a row for each run or each contender, the columns named with their units; or a row for
//! each figure, with columns `metric` and `value`, as our own samples.csv.

use std::collections::BTreeMap;

use csv::{ReaderBuilder, StringRecord, Trim};

use super::error::{TableError, wrong};
use super::places::{Columns, Long, Places};
use super::{figure, heading, hyperfine, options};
use crate::model::{Better, Column, Job, NAMELESS, Row, Table, Test};

/// hyperfine's own `--export-csv`, whose times are seconds.
const HYPERFINE: [&str; 4] = ["command", "mean", "stddev", "median"];
/// What it is read as.
pub const OF_HYPERFINE: &str = "CSV of hyperfine";

/// Reads the text.
pub fn read(text: &str, columns: &Columns) -> Result<Table, TableError> {
    let mut reader =
        ReaderBuilder::new().trim(Trim::All).flexible(false).from_reader(text.as_bytes());
    let header = reader.headers().map_err(|_| TableError::Unknown)?.clone();
    let is_hyperfine = header.iter().take(4).eq(HYPERFINE);
    let named = |name: &str| match is_hyperfine && name != "command" {
        true => format!("{name} s"),
        false => name.to_string(),
    };
    let is_known = Places::of(&header, &[], columns, named)?.has_figures(columns);
    let mut records = Vec::new();
    for (number, record) in (2..).zip(reader.records()) {
        match record {
            Ok(record) => records.push(record),
            Err(error) if is_known => {
                return Err(wrong(format!("the CSV's line {number}: {error}")));
            }
            Err(_) => return Err(TableError::Unknown),
        }
    }
    let places = Places::of(&header, &records, columns, named)?;
    if !places.has_figures(columns) {
        return Err(TableError::Unknown);
    }
    let mut rows = Rows { places: &places, rounds: rounds(&places, &records), tests: Vec::new() };
    for (number, record) in (2..).zip(&records) {
        rows.add(record, number)?;
    }
    let mut tests = rows.tests;
    if tests.is_empty() {
        return Err(wrong("the CSV has a heading and no rows"));
    }
    tests.iter_mut().for_each(|test| settle(test, is_hyperfine));
    let kind = if is_hyperfine { OF_HYPERFINE } else { "a CSV" }.to_string();
    Ok(Table { title: kind.clone(), kind, tests, taken: places.taken, ..Table::default() })
}

/// The rounds by what the file calls them: by its own numbers, else counted as they come.
fn rounds(places: &Places, records: &[StringRecord]) -> BTreeMap<String, u32> {
    let names = records.iter().filter_map(|record| record.get(places.round?));
    let mut rounds: BTreeMap<String, u32> = BTreeMap::new();
    for name in names.filter(|name| !name.is_empty()) {
        let next = rounds.len() as u32 + 1;
        rounds.entry(name.to_string()).or_insert(next);
    }
    let numbers: Option<Vec<u32>> = rounds.keys().map(|name| name.parse().ok()).collect();
    match numbers {
        Some(numbers) => rounds.into_keys().zip(numbers).collect(),
        None => rounds,
    }
}

/// The tests so far.
struct Rows<'a> {
    places: &'a Places,
    rounds: BTreeMap<String, u32>,
    tests: Vec<Test>,
}

impl Rows<'_> {
    /// Adds a row to the test it belongs to: rows of one name and of the same parameters.
    fn add(&mut self, record: &StringRecord, line: u64) -> Result<(), TableError> {
        let places = self.places;
        let text = |place: Option<usize>| place.and_then(|at| record.get(at)).unwrap_or_default();
        let given = places.parameters.iter().map(|(at, option)| (option, text(Some(*at))));
        let given = given.filter(|(_, value)| !value.is_empty());
        let job = job(&given.map(|(option, value)| (option.to_string(), value.into())).collect());
        let name = match text(places.test) {
            "" => NAMELESS.to_string(),
            name => name.to_string(),
        };
        let runs = match text(places.runs) {
            "" => None,
            runs => Some(runs.parse().map_err(|_| {
                wrong(format!("the CSV's line {line}: runs is {runs:?}, no whole number"))
            })?),
        };
        let place = self.tests.iter().position(|test| test.name == name && test.job == job);
        let place = place.unwrap_or_else(|| {
            let columns = match places.long {
                Some(_) => Vec::new(),
                None => places.figures.iter().map(|(_, column)| column.clone()).collect(),
            };
            self.tests.push(Test { name, job, columns, runs, ..Test::default() });
            self.tests.len() - 1
        });
        let test = &mut self.tests[place];
        let contender = text(places.contender).to_string();
        let round = self.rounds.get(text(places.round)).copied();
        match places.long {
            Some(long) => {
                add_figure(test, Row { contender, round, ..Row::default() }, record, long);
            }
            None => {
                let cells = places.figures.iter();
                let cells = cells.map(|(at, _)| figure::printed(text(Some(*at)))).collect();
                test.rows.push(Row { contender, round, cells, ..Row::default() });
            }
        }
        Ok(())
    }
}

/// Adds one figure to its row: that of its contender and round.
fn add_figure(test: &mut Test, row: Row, record: &StringRecord, long: Long) {
    let text = |place: Option<usize>| place.and_then(|at| record.get(at)).unwrap_or_default();
    let metric = text(Some(long.metric));
    let place = test.columns.iter().position(|column| column.heading == metric);
    let place = place.unwrap_or_else(|| {
        let read = heading::column(&format!("{metric} {}", text(long.unit)));
        let better = match text(long.better) {
            "higher" => Some(Better::Higher),
            "lower" => Some(Better::Lower),
            _ => None,
        };
        test.columns.push(Column { heading: metric.into(), better, ..read });
        test.columns.len() - 1
    });
    let is_its = |it: &Row| {
        let has_none = it.cells.get(place).is_none_or(Option::is_none);
        it.contender == row.contender && it.round == row.round && has_none
    };
    let at = test.rows.iter().rposition(is_its).unwrap_or_else(|| {
        test.rows.push(row);
        test.rows.len() - 1
    });
    let cells = &mut test.rows[at].cells;
    cells.resize(cells.len().max(place + 1), None);
    cells[place] = figure::printed(text(Some(long.value)));
}

/// The job of the given options: what is not given is unknown, because no program is named that
/// would have defaults.
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
    let columns = test.columns.len();
    test.rows.iter_mut().for_each(|row| row.cells.resize(columns, None));
    let count = |row: &Row| test.rows.iter().filter(|it| it.contender == row.contender).count();
    let most = test.rows.iter().map(count).max().unwrap_or(0);
    if most > 1 {
        test.runs = u32::try_from(most).ok();
    }
    test.clock_s = is_hyperfine.then_some(hyperfine::CLOCK_S);
}
