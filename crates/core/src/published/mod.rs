//! Tables as people publish them, read: a TOML file made from an article, what benchmark programs
//! write, a CSV. Nothing is judged here, only understood; [`measured()`] turns them into the
//! judge's input.

mod criterion;
mod csv;
mod dd;
mod error;
mod figure;
mod fio;
mod flat;
mod google;
mod heading;
mod hyperfine;
mod labels;
mod measured;
mod mmtests;
mod options;
mod phoronix;
mod places;
mod runs;
mod written;

use serde_json::Value;

use crate::model::Table;
use error::wrong;

pub use error::TableError;
pub use heading::meaning;
pub use measured::{File, Measured, Wanted, measured};
pub use options::described;
pub use places::Columns;

/// Reads `text`; its format shows in its content, whatever its file is called.
///
/// # Errors
/// When it is none of the kinds, or one with a mistake in it.
pub fn read(text: &str) -> Result<Table, TableError> {
    read_as(text, &Columns::default())
}

/// The same, where columns of a CSV are named.
pub fn read_as(text: &str, columns: &Columns) -> Result<Table, TableError> {
    if text.trim_start().starts_with("<?xml") || text.contains("<PhoronixTestSuite") {
        return phoronix::read(text);
    }
    if let Some(table) = criterion::messages(text) {
        return table;
    }
    // fio writes its notes ("fio: ...") into the same file, before the document.
    let start = if text.starts_with('{') { Some(0) } else { text.find("\n{").map(|at| at + 1) };
    if let Some(Ok(document)) = start.map(|at| serde_json::from_str::<Value>(&text[at..])) {
        return json(&document);
    }
    let keys = toml::from_str::<toml::Table>(text);
    match keys {
        Ok(table) if table.contains_key("test") => written::read(text),
        Ok(table) if table.contains_key("workload") || table.contains_key("contender") => {
            Err(TableError::Plan)
        }
        Err(error) if text.contains("[[test]]") => Err(wrong(error.to_string().trim_end())),
        _ => csv::read(text, columns),
    }
}

fn json(document: &Value) -> Result<Table, TableError> {
    if document["fio version"].is_string() {
        fio::read(document)
    } else if document["results"].is_array() {
        hyperfine::read(document)
    } else if document["benchmarks"].is_array() && document["context"].is_object() {
        google::read(document)
    } else if criterion::is_sample(document) {
        criterion::read(document)
    } else if document["_ResultData"].is_object() {
        mmtests::read(document)
    } else if document["schema"].is_number() && document["findings"].is_array() {
        Err(wrong("this is the result of a run: give the run's folder"))
    } else {
        Err(TableError::Unknown)
    }
}

#[cfg(test)]
mod tests;
