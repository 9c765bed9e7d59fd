//! Criterion's samples: the `sample.json` of a benchmark's folder, and the messages of
//! cargo-criterion.
//!
//! Each sample is the time of some iterations together (`SavedSample` in criterion.rs,
//! src/connection.rs; "External Tools" in its book: `iteration_count` and `measured_values`).

use serde_json::Value;

use super::error::{TableError, wrong};
use super::runs;
use crate::model::{Table, Test};

/// It is a `sample.json`.
pub fn is_sample(document: &Value) -> bool {
    document["iters"].is_array() && document["times"].is_array()
}

/// Reads a `sample.json`: nanoseconds, of a benchmark that its path names.
pub fn read(document: &Value) -> Result<Table, TableError> {
    let test = test("", "ns", &document["iters"], &document["times"])?;
    Ok(table("sample.json of Criterion", vec![test]))
}

/// Reads the messages of cargo-criterion, one a line; `None`: these are none.
pub fn messages(text: &str) -> Option<Result<Table, TableError>> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let messages: Option<Vec<Value>> = lines.map(|line| serde_json::from_str(line).ok()).collect();
    let mut messages = messages?;
    messages.retain(|message| message["reason"] == "benchmark-complete");
    let of = |message: &Value| {
        let name = message["id"].as_str().unwrap_or_default();
        let unit = message["unit"].as_str().unwrap_or("ns");
        test(name, unit, &message["iteration_count"], &message["measured_values"])
    };
    let tests: Result<Vec<Test>, TableError> = messages.iter().map(of).collect();
    (!messages.is_empty()).then(|| Ok(table("messages of cargo-criterion", tests?)))
}

fn table(kind: &str, tests: Vec<Test>) -> Table {
    let kind = kind.to_string();
    Table { title: kind.clone(), kind, one_process: true, tests, ..Table::default() }
}

fn test(name: &str, unit: &str, iterations: &Value, times: &Value) -> Result<Test, TableError> {
    let numbers = |value: &Value| -> Vec<f64> {
        value.as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
    };
    let (iterations, times) = (numbers(iterations), numbers(times));
    if times.is_empty() || iterations.len() != times.len() || iterations.contains(&0.0) {
        return Err(wrong(format!(
            "Criterion's samples of {name:?}: {} times of {} counts of iterations",
            times.len(),
            iterations.len()
        )));
    }
    let each = times.iter().zip(&iterations).map(|(time, count)| (String::new(), time / count));
    Ok(runs::test(name, &format!("time {unit}"), None, each))
}
