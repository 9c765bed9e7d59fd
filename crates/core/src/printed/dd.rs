//! GNU dd: how fast it copied.
//!
//! It copies a given amount, so its time, with the closing sync, is judged: its own rate also
//! counts what it has only handed to the kernel, unless it was given `conv=fsync`.

use super::Program;
use super::text::{bandwidth, groups, number};
use crate::model::Sample;

pub const PROGRAM: Program = Program {
    prefix: "dd",
    names: &["dd"],
    marks: &["records out"],
    read,
    judged: |_| Vec::new(),
    advice: "dd prints its rate unless it is told status=none or status=noxfer",
};

/// The lines of `status=progress` are no end: that comes after `records out`.
fn read(text: &str) -> Vec<Sample> {
    const END: &str = r"^\d+\+\d+ records out\n(\d+) bytes .*copied, ([\d.e-]+) s, ";
    let copied = groups::<2>(text, END);
    let rate = |[bytes, seconds]: [&str; 2]| Some(number(bytes)? / number(seconds)?);
    copied.into_iter().filter_map(rate).map(|rate| bandwidth("dd_bandwidth", rate)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coreutils_9_1() {
        let read = read(include_str!("kept/dd.txt"));
        assert_eq!(read, [bandwidth("dd_bandwidth", 16_777_216.0 / 0.018_540_1)]);
    }

    #[test]
    fn progress_is_no_figure() {
        let progress = "1000 bytes (1.0 kB) copied, 1 s, 1.0 kB/s\n";
        assert_eq!(read(progress), []);
        let whole = format!("{progress}5+0 records in\n5+0 records out\n{progress}");
        assert_eq!(read(&whole), [bandwidth("dd_bandwidth", 1000.0)]);
    }
}
