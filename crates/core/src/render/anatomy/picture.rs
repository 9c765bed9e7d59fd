//! One operation as a picture of letters, and its requests.

use unicode_width::UnicodeWidthStr;

use super::lanes::{Lane, lanes};
use super::words::{blocks, lines, name, time};
use super::{BLOCK_BYTES, WIDTH};
use crate::model::trace::{Entry, Op, Operation};

/// Requests that are listed each; of more only the picture is shown.
const LISTED_MAX: usize = 24;

/// The rows, and what each request is.
pub fn picture(operation: &Operation) -> String {
    if operation.entries.is_empty() {
        return "  The device was given nothing.\n".into();
    }
    let lanes = lanes(operation);
    let width = lanes.iter().map(|lane| lane.name.width()).max().unwrap_or(0);
    let room = WIDTH - width - 6;
    // Requests that share a column, where there are more than columns.
    let each = operation.entries.len().div_ceil(room);
    let columns = operation.entries.len().div_ceil(each);
    let mut text = String::new();
    for lane in &lanes {
        text += &format!("  {:width$} |{}|\n", lane.name, row(lane, each, columns));
    }
    let key = "digits are blocks of 4 KiB, + is more than nine, . less than one, F a flush";
    let share = if each > 1 { format!("; a column is {each} requests") } else { String::new() };
    text += &lines(&format!("{key}{share}"), 2);
    if operation.entries.len() <= LISTED_MAX {
        text += &format!("\n  {:>9}  {:>9}\n", "given at", "took");
        text += &operation.entries.iter().map(|entry| listed(operation, entry)).collect::<String>();
        if operation.latency_ns() > 0 {
            text += &format!("  {:>9}  returned\n", time(operation.latency_ns()));
        }
    }
    text
}

fn row(lane: &Lane, each: usize, columns: usize) -> String {
    let mut bytes: Vec<Option<u64>> = vec![None; columns];
    for mark in &lane.marks {
        if let Some(cell) = bytes.get_mut(mark.request / each) {
            *cell = Some(cell.unwrap_or(0) + mark.bytes);
        }
    }
    let letter = |bytes: Option<u64>| match bytes {
        None => ' ',
        Some(0) => 'F',
        Some(bytes) => match bytes / BLOCK_BYTES {
            0 => '.',
            count @ 1..=9 => char::from_digit(count as u32, 10).unwrap_or('+'),
            _ => '+',
        },
    };
    bytes.into_iter().map(letter).collect()
}

/// When it was given to the device, how long it took, and what it is.
fn listed(operation: &Operation, entry: &Entry) -> String {
    let since = entry.issue_ns.map(|at| at.saturating_sub(operation.begin_ns));
    let took = entry.complete_ns.zip(entry.issue_ns).map(|(end, begin)| end.saturating_sub(begin));
    let shown = |time_ns: Option<u64>| time_ns.map_or("-".into(), time);
    let head = format!("  {:>9}  {:>9}  ", shown(since), shown(took));
    let text = lines(&what(operation, entry), head.width());
    format!("{head}{}", text.trim_start())
}

fn what(operation: &Operation, entry: &Entry) -> String {
    match entry.op {
        Op::Flush => "flush".into(),
        Op::Discard => format!("discard of {} blocks", blocks(entry.bytes())),
        Op::Other => "another request".into(),
        // Logs of earlier programs name no reads.
        Op::Read if entry.parts.is_empty() => format!("read of {} blocks", blocks(entry.bytes())),
        Op::Read => format!("read: {}", parts(operation, entry)),
        Op::Write => {
            let fua = if entry.flags.fua { ", FUA" } else { "" };
            format!("write: {}{fua}", parts(operation, entry))
        }
    }
}

/// "1 journal descriptor, 2 journal copy: inodes".
fn parts(operation: &Operation, entry: &Entry) -> String {
    let mut parts: Vec<(String, u64)> = Vec::new();
    for (row, bytes) in operation.parts(entry) {
        let name = name(&row).replace("blocks: ", "");
        match parts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => *sum += bytes,
            None => parts.push((name, bytes)),
        }
    }
    let parts: Vec<String> =
        parts.iter().map(|(name, bytes)| format!("{} {name}", blocks(*bytes))).collect();
    parts.join(", ")
}
