//! hyperfine's `--export-json`: a test for each command, with the times of its runs.

use serde_json::Value;

use super::error::{TableError, wrong};
use super::{figure, heading};
use crate::model::{Command, Row, Table, Test};
use crate::printed::programs;

/// hyperfine takes the time of starting a shell off each run, and calls what is shorter than 5 ms
/// inaccurate for that (`MIN_EXECUTION_TIME` in its source); a hundredth of it is its clock here.
pub const CLOCK_S: f64 = 5e-3 / 100.0;

const SUMMARIES: [(&str, &str); 5] = [
    ("mean", "mean s"),
    ("median", "median s"),
    ("min", "min s"),
    ("max", "max s"),
    ("stddev", "stddev s"),
];

/// Reads the document.
pub fn read(document: &Value) -> Result<Table, TableError> {
    let results = document["results"].as_array().filter(|results| !results.is_empty());
    let results = results.ok_or_else(|| wrong("hyperfine's document holds no results"))?;
    let tests = results.iter().map(test).collect::<Result<Vec<Test>, _>>()?;
    let kind = "JSON of hyperfine".to_string();
    Ok(Table { title: kind.clone(), kind, tests, ..Table::default() })
}

fn test(result: &Value) -> Result<Test, TableError> {
    let command = result["command"].as_str();
    let command = command.ok_or_else(|| wrong("a result of hyperfine's names no command"))?;
    let given =
        SUMMARIES.iter().filter_map(|(key, heading)| Some((heading, result[*key].as_f64()?)));
    let (headings, cells): (Vec<_>, Vec<_>) = given
        .map(|(heading, value)| (heading::column(heading), Some(figure::whole(value))))
        .unzip();
    let times = result["times"].as_array().into_iter().flatten();
    let times_s: Vec<f64> = times.filter_map(Value::as_f64).collect();
    let runs = u32::try_from(times_s.len()).ok().filter(|runs| *runs > 0);
    let row = Row { cells, times_s, ..Row::default() };
    let started = programs(&Command::Shell(command.into()));
    Ok(Test {
        name: command.into(),
        words: vec![command.into()],
        programs: started.into_iter().filter_map(|words| words.into_iter().next()).collect(),
        columns: headings,
        rows: vec![row],
        runs,
        clock_s: Some(CLOCK_S),
        ..Test::default()
    })
}
