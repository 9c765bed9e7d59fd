//! Google Benchmark's JSON (`--benchmark_out_format=json`): a test for each benchmark, a row for
//! each repetition. Its user guide, "Output Formats"; the keys are those of `json_reporter.cc`.

use serde_json::Value;

use super::error::{TableError, wrong};
use super::runs;
use crate::model::{Table, Test};

/// What a repetition gives, with the heading it would have in a table: the first that is there.
const FIGURES: [(&str, &str); 3] =
    [("items_per_second", "items/s"), ("bytes_per_second", "bandwidth B/s"), ("real_time", "time")];

/// Reads the document.
pub fn read(document: &Value) -> Result<Table, TableError> {
    let all = document["benchmarks"].as_array().into_iter().flatten();
    // Before 1.4.1 there was no run_type, and aggregates had names of their own.
    let is_aggregate = |it: &Value| match it["run_type"].as_str() {
        Some(kind) => kind != "iteration",
        None => ["_mean", "_median", "_stddev"].iter().any(|end| name(it).ends_with(end)),
    };
    let single: Vec<&Value> = all.clone().filter(|it| !is_aggregate(it)).collect();
    if single.is_empty() {
        return Err(wrong(match all.count() {
            0 => "Google Benchmark's document holds no benchmarks",
            _ => {
                "Google Benchmark's document holds aggregates alone: run it without \
                 --benchmark_report_aggregates_only"
            }
        }));
    }
    if let Some(failed) = single.iter().find(|it| it["error_occurred"] == true) {
        let message = failed["error_message"].as_str().unwrap_or("no message");
        return Err(wrong(format!("Google Benchmark's {} failed: {message}", name(failed))));
    }
    let mut names: Vec<&str> = Vec::new();
    for it in &single {
        if !names.contains(&name(it)) {
            names.push(name(it));
        }
    }
    let of = |name_of: &&str| test(name_of, single.iter().filter(|it| name(it) == *name_of));
    let tests = names.iter().map(of).collect::<Result<Vec<Test>, _>>()?;
    let kind = "JSON of Google Benchmark".to_string();
    Ok(Table { title: kind.clone(), kind, one_process: true, tests, ..Table::default() })
}

fn name(benchmark: &Value) -> &str {
    let name = benchmark["run_name"].as_str().or_else(|| benchmark["name"].as_str());
    name.unwrap_or_default()
}

fn test<'a>(
    name: &str,
    repetitions: impl Iterator<Item = &'a &'a Value> + Clone,
) -> Result<Test, TableError> {
    let mut figures = FIGURES.iter();
    let given = |key: &str| repetitions.clone().all(|it| it[key].is_number());
    let (key, what) = figures
        .find(|(key, _)| given(key))
        .ok_or_else(|| wrong(format!("Google Benchmark's {name} has no real_time")))?;
    let unit = repetitions.clone().next().and_then(|it| it["time_unit"].as_str()).unwrap_or("ns");
    let heading = if *key == "real_time" { format!("{what} {unit}") } else { what.to_string() };
    let runs = repetitions.filter_map(|it| Some((String::new(), it[*key].as_f64()?)));
    Ok(runs::test(name, &heading, None, runs))
}
