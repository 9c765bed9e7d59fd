//! In what pattern requests reached the device: how long, how far apart, how many at once.

use comfy_table::presets::NOTHING;

use super::super::grid::Grid;
use super::WIDTH;
use super::words::{bytes, lines, time, trimmed};
use crate::model::trace::{Access, Columns, Op, Queue, SECTOR_BYTES};

/// What the names of the rows take, and their frame.
const BESIDE: usize = 13;

/// The table of their lengths and distances; empty where there were none.
pub fn pattern(access: &Access) -> String {
    let header = ["length and distance", "requests", "median", "90% within", "largest"];
    let mut grid = Grid::new(NOTHING, header);
    let rows = [
        ("reads: length", &access.read_sectors),
        ("writes: length", &access.write_sectors),
        ("seeks: distance", &access.seek_sectors),
    ];
    let mut is_empty = true;
    for (name, values) in rows.into_iter().filter(|(_, values)| values.count() > 0) {
        is_empty = false;
        let sectors = [values.within(0.5), values.within(0.9), values.largest];
        let shown = sectors.map(|it| bytes(it.saturating_mul(SECTOR_BYTES)));
        grid.add([name.to_string(), values.count().to_string()].into_iter().chain(shown));
    }
    grid.right(1..5);
    if is_empty { String::new() } else { trimmed(&grid.to_string()) + "\n" }
}

/// How many requests the device had, over time; empty where the recorder told no times.
pub fn queue(queue: &Queue) -> String {
    let Some(mean) = queue.mean() else { return String::new() };
    let Columns { depths, elapsed_ns, .. } = queue.course(WIDTH - BESIDE);
    let of = match queue.parts() {
        1 => String::new(),
        parts => format!(", the first of {parts} timed parts"),
    };
    let text = format!(
        "Requests at the device: {mean:.2} at once on average while it had any ({:.0}% of the \
         time from the first request to the end of the last), and {} at most. Over these {}{of}:",
        queue.busy_share() * 100.0,
        queue.most,
        time(elapsed_ns),
    );
    let mut text = lines(&text, 0);
    for (op, depths) in depths {
        let row: String = depths.into_iter().map(letter).collect();
        text += &format!("  {:8} |{row}|\n", op_name(op));
    }
    let key = "digits are requests at once, + is more than nine, . less than a half";
    text + &lines(key, 2) + "\n"
}

fn letter(depth: f64) -> char {
    match depth.round() as u32 {
        _ if depth <= 0.0 => ' ',
        0 => '.',
        count => char::from_digit(count, 10).unwrap_or('+'),
    }
}

/// What requests are called by what they do.
pub fn op_name(op: Op) -> &'static str {
    match op {
        Op::Read => "reads",
        Op::Write => "writes",
        Op::Flush => "flushes",
        Op::Discard => "discards",
        Op::Other => "others",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_is_a_count_of_requests() {
        let depths = [0.0, 0.01, 0.5, 1.4, 8.6, 9.5, 1e12, f64::NAN];
        assert_eq!(depths.map(letter).iter().collect::<String>(), " .119++.");
    }
}
