//! iozone: its table of one process, and the sums of several. Its kB are 1024 bytes (iozone.c,
//! KILOBYTE). Operations a second (`-O`) and times (`-N`) are not read.

use super::Program;
use super::text::{KIB, bandwidth, groups, number};
use super::typed::{has, values};
use crate::model::{Sample, as_metric};

pub const PROGRAM: Program = Program {
    prefix: "iozone",
    names: &["iozone", "iozone3"],
    marks: &["utput is in "],
    read,
    judged,
    advice: "iozone prints it for the tests that it is told to do (-i 0 -i 1 -i 2)",
};

/// The table's columns with their widths, after those of size and record.
const COLUMNS: [(&str, usize); 13] = [
    ("write", 9),
    ("rewrite", 9),
    ("read", 9),
    ("reread", 9),
    ("random_read", 9),
    ("random_write", 9),
    ("backward_read", 9),
    ("record_rewrite", 10),
    ("stride_read", 10),
    ("fwrite", 9),
    ("frewrite", 9),
    ("fread", 9),
    ("freread", 9),
];
const BEFORE: usize = 16 + 8;

/// By the tests that are asked for; a run over many sizes by its time.
fn judged(words: &[String]) -> Vec<String> {
    let is_one = |option| values(words, option).len() == 1;
    let tests = values(words, "-i");
    if has(words, &["-O", "-N"]) || tests.is_empty() || !is_one("-s") || !is_one("-r") {
        return Vec::new();
    }
    let several = !values(words, "-t").is_empty();
    let of = |test: &&str| -> &[&str] {
        match (*test, several) {
            ("0", false) => &["write", "rewrite"],
            ("1", false) => &["read", "reread"],
            ("2", false) => &["random_read", "random_write"],
            ("0", true) => &["initial_writers", "rewriters"],
            ("1", true) => &["readers", "re_readers"],
            ("2", true) => &["random_readers", "random_writers"],
            _ => &[],
        }
    };
    tests.iter().flat_map(of).map(|name| format!("iozone_{name}_bandwidth")).collect()
}

fn read(text: &str) -> Vec<Sample> {
    if !text.to_lowercase().contains("output is in kbytes/sec") {
        return Vec::new();
    }
    let mut figures = table(text);
    const SUM: &str = r"Children see throughput for +\d+ ([a-z -]+?)\s*= +([\d.]+) [kK]B/sec";
    figures.extend(groups::<2>(text, SUM).into_iter().filter_map(|[who, kib]| {
        Some(bandwidth(format!("iozone_{}_bandwidth", as_metric(who)), number(kib)? * KIB))
    }));
    figures
}

/// The table's rows. Where there are several, size and record are part of the names.
fn table(text: &str) -> Vec<Sample> {
    let mut lines = text.lines().skip_while(|line| !line.contains("reclen    write  rewrite"));
    lines.next();
    let is_row = |line: &&str| line.trim_start().starts_with(|c: char| c.is_ascii_digit());
    let rows: Vec<&str> = lines.take_while(is_row).filter(|row| row.is_ascii()).collect();
    let mut figures = Vec::new();
    for row in &rows {
        let Some((head, mut rest)) = row.split_at_checked(BEFORE) else { continue };
        let size = match rows.len() {
            1 => String::new(),
            _ => head.split_whitespace().map(|it| format!("{it}k_")).collect(),
        };
        for (name, width) in COLUMNS {
            let (field, after) = rest.split_at(width.min(rest.len()));
            rest = after;
            let metric = format!("iozone_{size}{name}_bandwidth");
            figures.extend(number(field).map(|kib| bandwidth(metric, kib * KIB)));
        }
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::super::text::{figure, words};
    use super::*;

    #[test]
    fn iozone_3_492() {
        let read = read(include_str!("kept/iozone.txt"));
        assert_eq!(figure(&read, "iozone_write_bandwidth"), Some(1_196_302.0 * KIB));
        assert_eq!(figure(&read, "iozone_reread_bandwidth"), Some(3_743_865.0 * KIB));
        assert_eq!(figure(&read, "iozone_random_write_bandwidth"), Some(1_642_308.0 * KIB));
        assert_eq!(read.len(), 6);
    }

    /// Rows of other runs: reads left out, and all tests over two records.
    #[test]
    fn a_column_is_where_its_heading_is() {
        let of = |rows: &str| {
            let head = "kB  reclen    write  rewrite    read    reread\n";
            read(&format!("Output is in kBytes/sec\n              {head}{rows}\n\n"))
        };
        let rows = "          102400    1024   360823   362512                     378122   364339";
        let found = of(rows);
        assert_eq!(found.len(), 4);
        assert_eq!(figure(&found, "iozone_random_read_bandwidth"), Some(378_122.0 * KIB));
        let [short, long] = [
            [
                "           16384       4    55907    68813    43361    42502    34044    64746",
                "    33578     61774     30137   235263   233180  3905668  3824589",
            ],
            [
                "           16384       8    81221   100104    69678    70623    59293    90806",
                "    56909    106010     54285   239120   245316  5734840  5483605",
            ],
        ];
        let rows = [short.concat(), long.concat()].join("\n");
        let found = of(&rows);
        assert_eq!(found.len(), 26);
        assert_eq!(figure(&found, "iozone_16384k_8k_freread_bandwidth"), Some(5_483_605.0 * KIB));
        assert_eq!(
            figure(&found, "iozone_16384k_4k_record_rewrite_bandwidth"),
            Some(61_774.0 * KIB)
        );
    }

    #[test]
    fn several_processes_have_their_sum() {
        let text = "\tOutput is in kBytes/sec\n\
                    \tChildren see throughput for  4 initial writers \t=  302980.50 kB/sec\n\
                    \tParent sees throughput for  4 initial writers \t=  302805.03 kB/sec\n\
                    \tChildren see throughput for 4 re-readers \t=  8256.41 kB/sec\n";
        let found = read(text);
        assert_eq!(found.len(), 2);
        assert_eq!(figure(&found, "iozone_initial_writers_bandwidth"), Some(302_980.5 * KIB));
        assert_eq!(figure(&found, "iozone_re_readers_bandwidth"), Some(8256.41 * KIB));
        let of = |line: &str| judged(&words(line));
        assert_eq!(of("-t 4 -s 4m -r 4k -i 0")[0], "iozone_initial_writers_bandwidth");
        assert_eq!(of("-a -i 0"), [""; 0]);
    }
}
