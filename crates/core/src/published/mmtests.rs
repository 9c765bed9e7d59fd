//! What `extract-mmtests.pl --print-json` of MMTests writes: `_ResultData` has, by operation, the
//! `Values` of each iteration (bin/lib/MMTests/Extract.pm), `_DataType` their unit.

use serde_json::Value;

use super::error::{TableError, wrong};
use super::runs;
use crate::model::{Better, Table, Test};

/// Units by their numbers in bin/lib/MMTests/DataTypes.pm, and which direction is better where the
/// unit does not tell.
fn unit(number: i64) -> Option<(&'static str, Option<Better>)> {
    Some(match number {
        1 => ("time s", None),
        2 => ("time ns", None),
        3 => ("time us", None),
        4 => ("time ms", None),
        5 => ("cycles", Some(Better::Lower)),
        6 => ("bad actions", Some(Better::Lower)),
        7 => ("actions", Some(Better::Higher)),
        8 => ("actions/s", None),
        9 => ("actions a minute", Some(Better::Higher)),
        10 => ("operations/s", None),
        11 => ("operations a minute", Some(Better::Higher)),
        13 => ("bandwidth KB/s", None),
        14 => ("bandwidth MB/s", None),
        15 => ("bandwidth Mbit/s", None),
        16 | 17 => ("transactions", Some(Better::Higher)),
        18 => ("success %", Some(Better::Higher)),
        19 => ("speedup", Some(Better::Higher)),
        20 => ("requests/s", None),
        _ => return None,
    })
}

/// Reads the document.
pub fn read(document: &Value) -> Result<Table, TableError> {
    let number = document["_DataType"].as_i64().unwrap_or(-1);
    let (heading, better) = unit(number).ok_or_else(|| {
        wrong(format!("MMTests' _DataType is {}, no unit that is known", document["_DataType"]))
    })?;
    let operations = document["_ResultData"].as_object().into_iter().flatten();
    let tests: Vec<Test> = operations
        .map(|(operation, iterations)| {
            let each = iterations.as_array().into_iter().flatten().filter_map(mean);
            runs::test(operation, heading, better, each.map(|mean| (String::new(), mean)))
        })
        .filter(|test| !test.rows.is_empty())
        .collect();
    if tests.is_empty() {
        return Err(wrong("MMTests' document holds no values in _ResultData"));
    }
    let module = document["_ModuleName"].as_str().unwrap_or_default().replace("Extract", "");
    let kind = format!("JSON of MMTests {}", module.to_lowercase());
    Ok(Table { title: kind.clone(), kind, tests, ..Table::default() })
}

/// An iteration is a run; what it sampled meanwhile is no run of its own.
fn mean(iteration: &Value) -> Option<f64> {
    let values = iteration["Values"].as_array()?.iter();
    // Perl writes numbers that it has read as text.
    let number = |it: &Value| it.as_f64().or_else(|| it.as_str()?.trim().parse().ok());
    let values: Vec<f64> = values.filter_map(number).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
