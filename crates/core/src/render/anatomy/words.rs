//! The words and figures of one operation, and how they stand in a terminal.

use super::super::paint::wrapped;
use super::{BLOCK_BYTES, WIDTH};
use crate::model::FsyncOperation;
use crate::model::Unit;
use crate::model::trace::{Operation, Row, Traced};

/// What an operation wrote, in bytes: data of the synced file and of others, the journal, and the
/// rest in its place.
pub(in crate::render) fn written(operation: &Operation) -> [u64; 4] {
    let rows = operation.rows();
    let sum = |of: fn(&Row) -> bool| rows.iter().filter(|it| of(it.0)).map(|it| it.1).sum();
    [
        sum(|row| *row == Row::Own),
        sum(|row| *row == Row::Others),
        sum(|row| matches!(row, Row::Journal(_))),
        sum(|row| matches!(row, Row::Metadata(_) | Row::Unknown)),
    ]
}

/// All that it wrote, in bytes.
pub(in crate::render) fn all_written(operation: &Operation) -> u64 {
    written(operation).iter().sum()
}

/// How often it flushed.
pub(in crate::render) fn flushes(operation: &Operation) -> u64 {
    operation.rows().get(&Row::Flushes).copied().unwrap_or(0)
}

/// "1 flush", "2 flushes".
pub(in crate::render) fn flushes_shown(count: u64) -> String {
    let es = if count == 1 { "" } else { "es" };
    format!("{count} flush{es}")
}

/// What one of those that were measured is called; the workload's name says which they are.
pub(in crate::render) fn noun(traced: &Traced) -> &'static str {
    match traced.operation {
        FsyncOperation::Fsync => "fsync",
        _ => "operation",
    }
}

/// What a row of the table is called.
pub(in crate::render) fn name(row: &Row) -> String {
    match row {
        Row::Own => "blocks: data of the synced file".into(),
        Row::Others => "blocks: data of other files".into(),
        Row::Journal(what) | Row::Metadata(what) => format!("blocks: {what}"),
        Row::Unknown => "blocks: unknown".into(),
        Row::Writes => "requests that write".into(),
        Row::FuaWrites => "of these with FUA".into(),
        Row::Flushes => "flushes".into(),
        Row::Reads => "requests that read".into(),
    }
}

/// Bytes as blocks: `7`, `0.5`.
pub(in crate::render) fn blocks(bytes: u64) -> String {
    match bytes.is_multiple_of(BLOCK_BYTES) {
        true => (bytes / BLOCK_BYTES).to_string(),
        false => {
            let parts = format!("{:.3}", bytes as f64 / BLOCK_BYTES as f64);
            parts.trim_end_matches('0').to_string()
        }
    }
}

pub(in crate::render) fn time(time_ns: u64) -> String {
    Unit::Nanoseconds.format(time_ns as f64)
}

pub(super) fn bytes(bytes: u64) -> String {
    Unit::Bytes.format(bytes as f64)
}

pub(super) fn lines(text: &str, indent: usize) -> String {
    let indented = |line: &String| format!("{:indent$}{line}\n", "");
    wrapped(text, WIDTH - indent).iter().map(indented).collect()
}

pub(super) fn trimmed(table: &str) -> String {
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}
