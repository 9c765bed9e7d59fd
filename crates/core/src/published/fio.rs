//! fio's output, json or json+: a test for each job, with the parameters fio repeats in it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::error::{TableError, wrong};
use super::{figure, heading, options};
use crate::model::{Job, Printed, Row, Table, Test};

/// fio counts its own time in whole milliseconds (`runtime`), and its rates follow from that.
const CLOCK_MS: f64 = 1.0;
/// It prints fractions to six places.
const FRACTION: f64 = 1e-6;

/// Reads the document.
pub fn read(document: &Value) -> Result<Table, TableError> {
    let version = document["fio version"].as_str().unwrap_or("fio");
    let jobs = document["jobs"].as_array().filter(|jobs| !jobs.is_empty());
    let jobs = jobs.ok_or_else(|| wrong("fio's document holds no jobs: the run was cut short"))?;
    let common = texts(&document["global options"]);
    let mut tests: Vec<Test> = Vec::new();
    for job in jobs {
        let mut options = common.clone();
        options.extend(texts(&job["job options"]));
        let name = job["jobname"].as_str().unwrap_or("job").to_string();
        if job["error"].as_i64().is_some_and(|error| error != 0) {
            let error = &job["error"];
            return Err(wrong(format!(
                "fio's job {name} ended with error {error}: its figures are of a part"
            )));
        }
        let alike = jobs.iter().filter(|other| other["jobname"] == job["jobname"]).count();
        let mut test = test(job, &options, alike);
        let same = tests.iter().filter(|other| other.name.split(" #").next() == Some(&name));
        test.name = match (alike, same.count() + 1) {
            (1, _) => name,
            (_, number) => format!("{name} #{number}"),
        };
        tests.push(test);
    }
    let kind = format!("JSON of {version}");
    Ok(Table { title: kind.clone(), kind, tests, ..Table::default() })
}

/// The table was made of fio's JSON.
pub fn is_of(table: &Table) -> bool {
    table.kind.starts_with("JSON of fio")
}

fn texts(options: &Value) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), String::from);
    let pairs = options.as_object().into_iter().flatten();
    pairs.map(|(name, value)| (name.clone(), text(value))).collect()
}

fn test(job: &Value, options: &BTreeMap<String, String>, alike: usize) -> Test {
    let mut columns = Vec::new();
    let mut cells = Vec::new();
    let mut directions = Vec::new();
    let mut longest_ms: f64 = 0.0;
    for name in ["read", "write"] {
        let direction = &job[name];
        if direction["total_ios"].as_f64().is_some_and(|count| count > 0.0) {
            directions.push(name);
            longest_ms = longest_ms.max(number(&direction["runtime"]));
            for (heading, figure) in figures(name, direction) {
                columns.push(heading::column(&heading));
                cells.push(Some(figure));
            }
        }
    }
    let job = parameters(job, options, (alike, longest_ms, &directions));
    let row = Row { cells, ..Row::default() };
    Test {
        job,
        columns,
        rows: vec![row],
        runs: Some(1),
        clock_s: Some(CLOCK_MS / 1e3),
        ..Test::default()
    }
}

/// fio's own figures of one direction, with the headings they would have in a table.
fn figures(name: &str, direction: &Value) -> Vec<(String, Printed)> {
    let runtime_ms = number(&direction["runtime"]);
    let mut found = vec![(format!("{name} runtime ms"), figure::exact(runtime_ms, CLOCK_MS))];
    let by_clock = |value: f64| value * CLOCK_MS / runtime_ms.max(CLOCK_MS) + 1.0;
    for (key, heading) in [("iops", "IOPS"), ("bw_bytes", "bandwidth B/s")] {
        let value = number(&direction[key]);
        found.push((format!("{name} {heading}"), figure::exact(value, by_clock(value))));
    }
    for (key, heading) in [("total_ios", "operations"), ("io_bytes", "amount B")] {
        found.push((format!("{name} {heading}"), figure::exact(number(&direction[key]), 1.0)));
    }
    for kind in ["lat", "clat"] {
        let latency = &direction[format!("{kind}_ns")];
        // Switched off by disable_lat or gtod_reduce.
        if number(&latency["N"]) == 0.0 {
            continue;
        }
        for (key, step) in [("min", 1.0), ("max", 1.0), ("mean", FRACTION), ("stddev", FRACTION)] {
            let figure = figure::exact(number(&latency[key]), step);
            found.push((format!("{name} {kind} {key} ns"), figure));
        }
        for (share, value) in latency["percentile"].as_object().into_iter().flatten() {
            let share = share.trim_end_matches('0').trim_end_matches('.');
            // fio's buckets are up to 1/64 wide (FIO_IO_U_PLAT_BITS in its stat.h).
            let value = number(value);
            let figure = figure::exact(value, 1.0 + value / 64.0);
            found.push((format!("{name} {kind} p{share} ns"), figure));
        }
    }
    found
}

fn parameters(
    job: &Value,
    options: &BTreeMap<String, String>,
    (alike, longest_ms, directions): (usize, f64, &[&str]),
) -> Job {
    let mut parameters = options::job(options);
    parameters.mode.get_or_insert_with(|| match directions {
        ["read"] => "read".into(),
        ["write"] => "write".into(),
        _ => "rw".into(),
    });
    // Without group_reporting each of numjobs has an entry of its own.
    if alike > 1 {
        parameters.jobs = Some(1);
    }
    // With it several jobs, whose options are not shown, may be one entry: the total time of all
    // tasks says how many there were.
    let tasks = number(&job["job_runtime"]) / longest_ms.max(CLOCK_MS);
    if parameters.jobs.is_some_and(|jobs| longest_ms >= 100.0 && tasks > f64::from(jobs) + 0.5) {
        parameters.jobs = None;
    }
    // The flag time_based is not among the options fio repeats: a job that ran for its full
    // runtime, or the only one of its kind, was never short of work.
    let told_s = options.get("runtime").and_then(|text| text.trim_end_matches('s').parse().ok());
    let in_time = told_s.is_some_and(|told: f64| longest_ms >= told * 1e3 - 10.0);
    let alone = parameters.jobs == Some(1) && longest_ms >= 100.0;
    parameters.closed_loop = (in_time || alone) && !options::is_open(options);
    parameters
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(0.0)
}
