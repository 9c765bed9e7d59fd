//! sysbench: its tests of files and of databases. MiB are 2^20 bytes, and latencies milliseconds.

use super::Program;
use super::text::{MIB, MS_NS, bandwidth, groups, last_number, latency, number, rate};
use super::typed::{has, metrics, values};
use crate::model::Sample;

pub const PROGRAM: Program = Program {
    prefix: "sysbench",
    names: &["sysbench"],
    marks: &["reads/s:", "IOPS=", "per sec.)"],
    read: samples,
    judged,
    advice: "sysbench prints it at the end of its run",
};

/// By what the test of files does, or by the transactions of a database. `sysbench oltp_read_write
/// run`, `sysbench --test=fileio run`, `sysbench --test=/usr/share/.../oltp.lua run`.
fn judged(words: &[String]) -> Vec<String> {
    if !has(words, &["run"]) {
        return Vec::new();
    }
    let old = values(words, "--test");
    let named = words.iter().map(String::as_str).filter(|word| !word.starts_with('-'));
    let tests: Vec<&str> = named.chain(old).collect();
    let modes = values(words, "--file-test-mode");
    let is_test = |wanted: &str| tests.iter().any(|test| test.contains(wanted));
    metrics(match modes.last().copied() {
        _ if is_test("oltp") || is_test("tpcc") => &["sysbench_transactions"],
        _ if !is_test("fileio") => &[],
        Some("seqrd" | "rndrd") => &["sysbench_reads"],
        Some("seqwr" | "seqrewr" | "rndwr") => &["sysbench_writes"],
        _ => &["sysbench_reads", "sysbench_writes"],
    })
}

/// All figures that a run printed.
pub fn samples(text: &str) -> Vec<Sample> {
    // "reads/s: 4.02" is version 1.0's, and "read:  IOPS=4.02 0.06 MiB/s (0.07 MB/s)" 1.1's.
    let of_files = |name: &str, short: &str| {
        let plain = last_number(text, &format!(r"^ +{name}/s: +([\d.]+)$"));
        plain.or_else(|| last_number(text, &format!(r"^ +{short}: +IOPS=([\d.]+)")))
    };
    let of_bytes = |name: &str, short: &str| {
        let plain = last_number(text, &format!(r"^ +{name}, MiB/s: +([\d.]+)$"));
        plain.or_else(|| last_number(text, &format!(r"^ +{short}: +IOPS=[\d.]+ ([\d.]+) MiB/s")))
    };
    let of_database =
        |name: &str| last_number(text, &format!(r"^ +{name}: +\d+ +\(([\d.]+) per sec\.\)"));
    let rates = [
        ("sysbench_reads", of_files("reads", "read")),
        ("sysbench_writes", of_files("writes", "write")),
        ("sysbench_fsyncs", of_files("fsyncs", "fsync")),
        ("sysbench_transactions", of_database("transactions")),
        ("sysbench_queries", of_database("queries")),
    ];
    let bandwidths = [
        ("sysbench_read_bandwidth", of_bytes("read", "read")),
        ("sysbench_write_bandwidth", of_bytes("written", "write")),
    ];
    let rates = rates.into_iter().filter_map(|(name, value)| Some(rate(name, value?)));
    let mib = |(name, value): (_, Option<f64>)| Some(bandwidth(name, value? * MIB));
    let mut samples: Vec<Sample> = rates.chain(bandwidths.into_iter().filter_map(mib)).collect();
    if samples.is_empty() {
        return samples;
    }
    for (printed, name) in [("avg", "mean"), ("max", "max")] {
        let ms = last_number(text, &format!(r"^ +{printed}: +([\d.]+)$"));
        samples.extend(ms.map(|ms| latency(format!("sysbench_latency_{name}"), ms, MS_NS)));
    }
    // `--percentile=0` leaves it out.
    if let Some([share, ms]) = groups::<2>(text, r"^ +(\d+)th percentile: +([\d.]+)$").pop() {
        let metric = format!("sysbench_latency_p{share}");
        samples.extend(number(ms).map(|ms| latency(metric, ms, MS_NS)));
    }
    samples
}

#[cfg(test)]
mod tests {
    use super::super::text::{figure, words};
    use super::*;

    #[test]
    fn sysbench_1_0_20_of_files() {
        let read = samples(include_str!("kept/sysbench-fileio.txt"));
        assert_eq!(figure(&read, "sysbench_writes"), Some(39_532.36));
        assert_eq!(figure(&read, "sysbench_fsyncs"), Some(3954.23));
        assert_eq!(figure(&read, "sysbench_write_bandwidth"), Some(617.69 * MIB));
        assert_eq!(figure(&read, "sysbench_latency_max"), Some(3_000_000.0));
        assert_eq!(figure(&read, "sysbench_latency_p95"), Some(0.0));
        assert_eq!(read.len(), 8);
    }

    #[test]
    fn sysbench_1_0_20_of_a_database() {
        let read = samples(include_str!("kept/sysbench-oltp.txt"));
        assert_eq!(figure(&read, "sysbench_transactions"), Some(1791.73));
        assert_eq!(figure(&read, "sysbench_queries"), Some(35_834.63));
        assert_eq!(figure(&read, "sysbench_latency_mean"), Some(560_000.0));
        assert_eq!(read.len(), 5);
    }

    /// sb_fileio.c of version 1.1 has its lines so.
    #[test]
    fn sysbench_1_1_of_files() {
        let text = "Throughput:\n         read:  IOPS=257.03 4.02 MiB/s (4.21 MB/s)\n         \
                    write: IOPS=171.52 2.68 MiB/s (2.81 MB/s)\n         fsync: IOPS=548.28\n";
        let read = samples(text);
        assert_eq!(figure(&read, "sysbench_reads"), Some(257.03));
        assert_eq!(figure(&read, "sysbench_write_bandwidth"), Some(2.68 * MIB));
        assert_eq!(figure(&read, "sysbench_fsyncs"), Some(548.28));
    }

    #[test]
    fn what_the_test_does_is_judged() {
        let of = |line: &str| judged(&words(line));
        assert_eq!(of("--test=fileio --file-test-mode=rndrd run"), ["sysbench_reads"]);
        assert_eq!(of("fileio --file-test-mode=rndrw run").len(), 2);
        assert_eq!(of("--test=/usr/share/sysbench/oltp.lua run"), ["sysbench_transactions"]);
        assert_eq!(of("fileio --file-test-mode=rndrd prepare"), [""; 0]);
        assert_eq!(of("cpu run"), [""; 0]);
    }
}
