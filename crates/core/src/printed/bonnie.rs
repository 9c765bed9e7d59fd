//! bonnie++: the line for programs that it prints last (bon_csv2txt(1) has its fields). K are KiB,
//! and `+++++` means too fast to be timed.

use super::Program;
use super::text::{KIB, MS_NS, bandwidth, latency, number, rate};
use super::typed::{metrics, values};
use crate::model::Sample;

pub const PROGRAM: Program = Program {
    prefix: "bonnie",
    names: &["bonnie++", "bonnie"],
    marks: &["1.96,", "1.97,", "1.98,"],
    read,
    judged,
    advice: "bonnie++ prints +++++ for what went too fast to be timed: give it more (-s, -n)",
};

/// Figures in KiB a second, and in things a second, in the order of their columns. Each column is
/// followed by the CPU's.
const BANDWIDTHS: [&str; 5] = ["write_char", "write_block", "rewrite", "read_char", "read_block"];
const RATES: [&str; 6] = [
    "create_sequential",
    "stat_sequential",
    "delete_sequential",
    "create_random",
    "stat_random",
    "delete_random",
];

/// By what it does with blocks, or, without files of a size, by what it does with many.
fn judged(words: &[String]) -> Vec<String> {
    if values(words, "-s").last().is_some_and(|size| *size == "0") {
        return RATES[..3].iter().map(|it| format!("bonnie_{it}_rate")).collect();
    }
    metrics(&[
        "bonnie_write_block_bandwidth",
        "bonnie_rewrite_bandwidth",
        "bonnie_read_block_bandwidth",
    ])
}

fn read(text: &str) -> Vec<Sample> {
    text.lines().flat_map(figures).collect()
}

fn figures(line: &str) -> Vec<Sample> {
    let fields: Vec<&str> = line.split(',').collect();
    // Version 1.98 has the chunks and the processes of its seeks before the figures.
    let (first, expected) = match fields[0] {
        "1.96" | "1.97" => (7, 48),
        "1.98" => (9, 50),
        _ => return Vec::new(),
    };
    if fields.len() != expected {
        return Vec::new();
    }
    let value = |place: usize| number(fields[place]);
    let mut found = Vec::new();
    for (place, name) in BANDWIDTHS.iter().enumerate() {
        let metric = format!("bonnie_{name}_bandwidth");
        found.extend(value(first + 2 * place).map(|kib| bandwidth(metric, kib * KIB)));
    }
    let seeks = first + 2 * BANDWIDTHS.len();
    found.extend(value(seeks).map(|seeks| rate("bonnie_seeks_rate", seeks)));
    // Five columns say how many files there are, of what sizes.
    let files = seeks + 7;
    for (place, name) in RATES.iter().enumerate() {
        let metric = format!("bonnie_{name}_rate");
        found.extend(value(files + 2 * place).map(|files| rate(metric, files)));
    }
    let latencies = files + 2 * RATES.len();
    let names = BANDWIDTHS.iter().chain(&["seeks"]).chain(&RATES);
    found.extend(names.zip(&fields[latencies..]).filter_map(|(name, field)| {
        let digits = field.trim_end_matches(|c: char| !c.is_ascii_digit());
        let unit_ns = match &field[digits.len()..] {
            "us" => 1e3,
            "ms" => MS_NS,
            "s" => 1e9,
            _ => return None,
        };
        Some(latency(format!("bonnie_{name}_latency_max"), number(digits)?, unit_ns))
    }));
    found
}

#[cfg(test)]
mod tests {
    use super::super::text::{figure, words};
    use super::*;

    #[test]
    fn bonnie_2_00a() {
        let read = read(include_str!("kept/bonnie.txt"));
        assert_eq!(figure(&read, "bonnie_write_char_bandwidth"), Some(1752.0 * KIB));
        assert_eq!(figure(&read, "bonnie_read_char_bandwidth"), Some(2966.0 * KIB));
        assert_eq!(figure(&read, "bonnie_write_block_bandwidth"), None, "+++++");
        assert_eq!(figure(&read, "bonnie_create_sequential_rate"), Some(219.0));
        assert_eq!(figure(&read, "bonnie_delete_random_rate"), Some(2477.0));
        assert_eq!(figure(&read, "bonnie_write_char_latency_max"), Some(12_270_000.0));
        assert_eq!(figure(&read, "bonnie_delete_random_latency_max"), Some(11_238_000.0));
    }

    /// The fields of bonnie++ 1.97, whose seeks have none for their chunks.
    #[test]
    fn bonnie_1_97() {
        let line = "1.97,1.97,host,1,1340110155,16G,,656,99,231483,32,149022,24,3044,98,399405,27,\
                    554.9,26,16,,,,,24142,67,+++++,+++,+++++,+++,25000,70,+++++,+++,30000,80,\
                    12ms,300ms,400ms,5ms,60ms,100ms,1ms,2ms,3ms,4ms,5ms,6s";
        let read = read(line);
        assert_eq!(figure(&read, "bonnie_write_block_bandwidth"), Some(231_483.0 * KIB));
        assert_eq!(figure(&read, "bonnie_rewrite_bandwidth"), Some(149_022.0 * KIB));
        assert_eq!(figure(&read, "bonnie_read_block_bandwidth"), Some(399_405.0 * KIB));
        assert_eq!(figure(&read, "bonnie_seeks_rate"), Some(554.9));
        assert_eq!(figure(&read, "bonnie_create_random_rate"), Some(25_000.0));
        assert_eq!(figure(&read, "bonnie_delete_random_latency_max"), Some(6e9));
    }

    #[test]
    fn files_alone_are_judged_by_their_rates() {
        let of = |line: &str| judged(&words(line));
        assert_eq!(of("-s 0 -n 16")[0], "bonnie_create_sequential_rate");
        assert_eq!(of("-s0 -n 16").len(), 3);
        assert_eq!(of("-d . -u root")[0], "bonnie_write_block_bandwidth");
    }
}
