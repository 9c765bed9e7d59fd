//! In what pattern requests reached the device: how long, how far apart, how many at once.

use comfy_table::presets::NOTHING;

use super::super::grid::Grid;
use super::{WIDTH, bytes, lines, time, trimmed};
use crate::model::trace::{Access, Op, Origin, Queue};

/// What the names of the rows take, and their frame.
const BESIDE: usize = 13;

/// The table of their lengths and distances; empty where there were none.
pub fn pattern(access: &Access) -> String {
    let header = ["length and distance", "requests", "median", "90% within", "largest"];
    let mut grid = Grid::new(NOTHING, header);
    let rows = [
        ("reads: length", &access.read_bytes),
        ("writes: length", &access.write_bytes),
        ("seeks: distance", &access.seek_bytes),
    ];
    let mut is_empty = true;
    for (name, values) in rows.into_iter().filter(|(_, values)| values.count() > 0) {
        is_empty = false;
        let shown = [values.within(0.5), values.within(0.9), values.largest].map(bytes);
        grid.add([name.to_string(), values.count().to_string()].into_iter().chain(shown));
    }
    grid.right(1..5);
    if is_empty { String::new() } else { trimmed(&grid.to_string()) + "\n" }
}

/// How many requests the device had, over time; empty where the recorder told no times.
pub fn queue(queue: &Queue, origin: Origin) -> String {
    let Some(mean) = queue.mean() else { return String::new() };
    let (course, elapsed_ns) = queue.course(WIDTH - BESIDE);
    let of = match origin {
        Origin::Trials(1) | Origin::Others | Origin::Model => "",
        Origin::Trials(_) => " of the first trial",
    };
    let text = format!(
        "Requests at the device: {mean:.2} at once on average while it had any, which was {:.0}% \
         of the time, and {} at most. Over the {}{of}:",
        queue.busy_share() * 100.0,
        queue.most,
        time(elapsed_ns),
    );
    let mut text = lines(&text, 0);
    for (op, depths) in course {
        let row: String = depths.into_iter().map(letter).collect();
        text += &format!("  {:8} |{row}|\n", op_name(op));
    }
    text + &lines("digits are requests at once, + is more than nine, . less than a half", 2) + "\n"
}

fn letter(depth: f64) -> char {
    match depth.round() as u32 {
        _ if depth <= 0.0 => ' ',
        0 => '.',
        count => char::from_digit(count, 10).unwrap_or('+'),
    }
}

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
