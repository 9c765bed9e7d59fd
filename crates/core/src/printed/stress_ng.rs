//! stress-ng: stressors, for a time. It prints their rates with `--metrics` or `--metrics-brief`.
//! Bogo operations of different stressors are of different kinds.

use super::Program;
use super::text::{groups, number, rate};
use super::typed::has;
use crate::model::{Sample, as_metric};

pub const PROGRAM: Program = Program {
    prefix: "stress_ng",
    names: &["stress-ng"],
    marks: &["stress-ng: "],
    read,
    judged,
    advice: "stress-ng prints it with --metrics-brief",
};

/// Options with a number that start no stressor.
const NO_STRESSORS: [&str; 30] = [
    "all",
    "backoff",
    "cache-level",
    "cache-size",
    "cache-ways",
    "dentries",
    "interval",
    "ionice-class",
    "ionice-level",
    "iostat",
    "log-file",
    "max-fd",
    "mbind",
    "oom-avoid-bytes",
    "parallel",
    "random",
    "raplstat",
    "sched-deadline",
    "sched-period",
    "sched-prio",
    "sched-runtime",
    "seed",
    "seq",
    "sequential",
    "status",
    "taskset",
    "thermalstat",
    "timeout",
    "timer-slack",
    "vmstat",
];

/// Stressors that are called like options of others (`stress-ng --stressors`).
const NO_OPTIONS: [&str; 12] = [
    "cpu-online",
    "dev-shm",
    "fp-error",
    "io-uring",
    "matrix-3d",
    "sem-sysv",
    "shm-sysv",
    "udp-flood",
    "vm-addr",
    "vm-rw",
    "vm-segv",
    "vm-splice",
];

/// By the rates of the stressors that the options start: `--hdd 2`, `-d 2`.
fn judged(words: &[String]) -> Vec<String> {
    if !has(words, &["-M", "--metrics", "--metrics-brief"]) {
        return Vec::new();
    }
    let mut stressors: Vec<&str> = Vec::new();
    for (place, word) in words.iter().enumerate() {
        let name = match word.as_str() {
            "-d" => "hdd",
            "-i" => "io",
            word => word.strip_prefix("--").unwrap_or_default(),
        };
        let (name, value) = match name.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (name, words.get(place + 1).map(String::as_str)),
        };
        let counts = value.is_some_and(|value| value.parse::<u32>().is_ok());
        if counts && !name.is_empty() && !NO_STRESSORS.contains(&name) {
            stressors.push(name);
        }
    }
    // `--hdd-ops 100` is an option of the stressor hdd, wherever that is named.
    let is_option = |name: &&str| {
        let of = |it: &&str| name.strip_prefix(*it).is_some_and(|rest| rest.starts_with('-'));
        !NO_OPTIONS.contains(name) && stressors.iter().any(of)
    };
    let own = stressors.iter().filter(|name| !is_option(name));
    own.map(|name| metric(name)).collect()
}

fn metric(stressor: &str) -> String {
    format!("stress_ng_{}_rate", as_metric(stressor))
}

/// Operations by the wall clock: the first of the two rates.
fn read(text: &str) -> Vec<Sample> {
    // Name, operations, three times, two rates.
    const BEGIN: &str = r"^stress-ng: (?:info|metrc): +\[\d+\] (\S+) +\d+";
    let row = format!("{BEGIN}{} +([\\d.]+) +[\\d.]+", r" +[\d.]+".repeat(3));
    let rows = groups::<2>(text, &row).into_iter();
    rows.filter_map(|[name, value]| Some(rate(metric(name), number(value)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::text::words;
    use super::*;

    #[test]
    fn stress_ng_0_15_06() {
        let read = read(include_str!("kept/stress-ng.txt"));
        assert_eq!(read, [rate("stress_ng_hdd_rate", 21_111.14)]);
    }

    #[test]
    fn stressors_are_told_from_other_options() {
        let of = |line: &str| judged(&words(line));
        let line = "--hdd 2 --hdd-bytes 1G --hdd-ops 9 --timeout 60 --metrics-brief --sync-file=1";
        assert_eq!(of(line), ["stress_ng_hdd_rate", "stress_ng_sync_file_rate"]);
        assert_eq!(of("-d 1 -t 5 --metrics"), ["stress_ng_hdd_rate"]);
        assert_eq!(of("--hdd 2 --timeout 60"), [""; 0], "it prints no rate");
        let general = "--taskset 1 --ionice-level 3 --cache-level 2 --timer-slack 9 --metrics";
        let line = format!("{general} --hdd-bytes 100 --hdd 2");
        assert_eq!(of(&line), ["stress_ng_hdd_rate"], "an option before its stressor");
        let two = "-i 1 --io-uring 2 --io-uring-ops 9 -M";
        assert_eq!(of(two), ["stress_ng_io_rate", "stress_ng_io_uring_rate"]);
    }
}
