//! dbench: a file server's calls, for a time.
//!
//! Its MB are 10^6 bytes (dbench.c: `1.0e-6 * total_bytes / t`), and its latencies milliseconds.

use super::Program;
use super::text::{MB, MS_NS, bandwidth, groups, last_number, latency, number};
use super::typed::metrics;
use crate::model::{Sample, as_metric};

pub const PROGRAM: Program = Program {
    prefix: "dbench",
    names: &["dbench"],
    marks: &["MB/sec"],
    read,
    judged: |_| metrics(&["dbench_throughput"]),
    advice: "dbench knows it after a second of its time: give it -t 2 or more",
};

fn read(text: &str) -> Vec<Sample> {
    let throughput = last_number(text, r"^Throughput ([\d.e+]+) MB/sec\b.* procs");
    // It is worked out every second (sig_alarm), and 0 before: `-t 1` may end so.
    let Some(throughput) = throughput.filter(|mb| *mb > 0.0) else { return Vec::new() };
    let mut figures = vec![bandwidth("dbench_throughput", throughput * MB)];
    let most = last_number(text, r"^Throughput .*max_latency=([\d.]+) ms");
    figures.extend(most.map(|ms| latency("dbench_latency_max", ms, MS_NS)));
    for [name, mean] in groups::<2>(text, r"^ (\w+) +\d+ +([\d.]+) +[\d.]+$") {
        let name = format!("dbench_{}_latency_mean", as_metric(name));
        figures.extend(number(mean).map(|mean| latency(name, mean, MS_NS)));
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::super::text::figure;
    use super::*;

    #[test]
    fn dbench_4_00() {
        let read = read(include_str!("kept/dbench.txt"));
        assert_eq!(figure(&read, "dbench_throughput"), Some(357.259e6));
        assert_eq!(figure(&read, "dbench_latency_max"), Some(36_734_000.0));
        assert_eq!(figure(&read, "dbench_flush_latency_mean"), Some(976_000.0));
        assert_eq!(read.len(), 2 + 16);
    }

    #[test]
    fn a_run_of_a_second_knows_none() {
        let line = "Throughput 0 MB/sec  2 clients  2 procs  max_latency=36.7 ms\n";
        assert_eq!(read(line), []);
    }

    /// As dbench 3.04 ended.
    #[test]
    fn an_older_one_says_no_latency() {
        let read = read("Throughput 1.2e+03 MB/sec 4 procs\n");
        assert_eq!(figure(&read, "dbench_throughput"), Some(1.2e9));
        assert_eq!(read.len(), 1);
    }
}
