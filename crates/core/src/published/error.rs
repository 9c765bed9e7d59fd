//! What is wrong with a file that is no table.

use thiserror::Error;

/// A file that is no table, or a wrong one. The messages say what to do.
#[derive(Debug, Error, PartialEq, Eq)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum TableError {
    #[error("{0}")]
    Wrong(String),
    #[error(
        "this is a plan, which holds no tables: to repeat its study give it to fsverdict run; to \
         audit figures write them as a table (FORMAT.md, \"A table\")"
    )]
    Plan,
    #[error(
        "this is neither a table in TOML with [[test]], nor the JSON of fio, hyperfine, Criterion \
         (sample.json), Google Benchmark or MMTests, nor the composite.xml of the Phoronix Test \
         Suite, nor a CSV with a heading such as iops or wall_s (FORMAT.md, \"A table\")"
    )]
    Unknown,
}

/// A mistake in the file, in words.
pub(super) fn wrong(text: impl Into<String>) -> TableError {
    TableError::Wrong(text.into())
}
