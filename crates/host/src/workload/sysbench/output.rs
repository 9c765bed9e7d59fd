//! What sysbench's `run` prints.
//!
//! sysbench 1.0 writes its figures for people only. Rates have two decimals and the time four; the
//! latencies come from the histogram that `--histogram=on` prints, in buckets 2% apart and to a
//! microsecond. It keeps one histogram for reads, writes and fsyncs together.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fsverdict_core::model::{Histogram, Sample};
use fsverdict_core::printed;
use thiserror::Error;

use crate::workload::left;

const MIB: f64 = 1_048_576.0;
const NS_PER_MS: f64 = 1e6;
const NS_PER_S: f64 = 1e9;

/// Output that can't be read.
#[derive(Debug, Error)]
pub enum SysbenchError {
    #[error("sysbench's output {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("sysbench's output {} has no {missing:?}: is it sysbench 1.0?", path.display())]
    Unknown { path: PathBuf, missing: &'static str },
}

/// What a run did.
#[derive(Debug, Default)]
pub struct SysbenchResult {
    /// Reads and writes.
    pub operations: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// sysbench's own time.
    pub tool_ns: u64,
    /// Latencies of reads, writes and fsyncs together.
    pub histograms: BTreeMap<String, Histogram>,
    /// sysbench's own figures.
    pub samples: Vec<Sample>,
}

/// Reads what `run` printed to `path`.
pub fn parse(path: &Path) -> Result<SysbenchResult, SysbenchError> {
    let text = left::text(path, left::TEXT_BYTES)
        .map_err(|source| SysbenchError::Unreadable { path: path.into(), source })?;
    let output = Output { text: &text, path };
    let seconds = output.figure("total time:")?;
    let [reads, writes] = [output.figure("reads/s:")?, output.figure("writes/s:")?];
    let [read, written] = [output.figure("read, MiB/s:")?, output.figure("written, MiB/s:")?];
    let bytes = |rate, mib_per_s| (output.bytes_per_s(rate, mib_per_s) * seconds).round() as u64;
    Ok(SysbenchResult {
        operations: ((reads + writes) * seconds).round() as u64,
        read_bytes: bytes(reads, read),
        write_bytes: bytes(writes, written),
        tool_ns: (seconds * NS_PER_S).round() as u64,
        histograms: output.histogram()?.map(|found| ("event".into(), found)).into_iter().collect(),
        samples: printed::sysbench(&text),
    })
}

/// What `run` printed, and where it is.
struct Output<'a> {
    text: &'a str,
    path: &'a Path,
}

impl Output<'_> {
    /// The number after `label`, which begins a line.
    fn figure(&self, label: &'static str) -> Result<f64, SysbenchError> {
        self.number_after(label)
            .ok_or_else(|| SysbenchError::Unknown { path: self.path.into(), missing: label })
    }

    fn number_after(&self, label: &str) -> Option<f64> {
        let value = self.text.lines().find_map(|line| line.trim_start().strip_prefix(label))?;
        value.trim().trim_end_matches('s').parse().ok()
    }

    /// Bytes a second of so many requests: one block each, except the last one of a file, as far as
    /// the printed bandwidth agrees. Its two decimals leave 1% at 1 MiB/s.
    fn bytes_per_s(&self, rate: f64, mib_per_s: f64) -> f64 {
        const ROUNDED: f64 = 0.005;
        let [least, most] = [mib_per_s - ROUNDED, mib_per_s + ROUNDED].map(|it| it.max(0.0) * MIB);
        self.block_bytes().map_or(mib_per_s * MIB, |block| (rate * block).clamp(least, most))
    }

    /// `Block size 16KiB`, with five digits (sb_util.c, `sb_print_value_size`).
    fn block_bytes(&self) -> Option<f64> {
        let mut lines = self.text.lines();
        let size = lines.find_map(|line| line.strip_prefix("Block size "))?.trim();
        let (number, unit) = size.split_at(size.find(|c: char| c.is_ascii_alphabetic())?);
        let power = ["B", "KiB", "MiB", "GiB"].iter().position(|it| *it == unit)?;
        Some(number.parse::<f64>().ok()? * 1024_f64.powi(power as i32))
    }

    /// The histogram; `None` where the test has switched it off, or nothing was done.
    fn histogram(&self) -> Result<Option<Histogram>, SysbenchError> {
        let mut buckets: BTreeMap<u64, u64> = BTreeMap::new();
        for line in self.text.lines() {
            // "       0.154 |******                      369"
            let Some((value, rest)) = line.split_once('|') else { continue };
            let count = rest.trim_start_matches('*').trim().parse::<u64>();
            if let (Ok(ms), Ok(count)) = (value.trim().parse::<f64>(), count) {
                let bucket = buckets.entry((ms * NS_PER_MS).round() as u64).or_default();
                *bucket = bucket.saturating_add(count);
            }
        }
        if buckets.is_empty() {
            return Ok(None);
        }
        let ns = |label| self.figure(label).map(|ms| (ms * NS_PER_MS).round() as u64);
        Ok(Some(Histogram {
            max_ns: ns("max:")?,
            sum_ns: ns("sum:")?,
            buckets: buckets.into_iter().collect(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// What sysbench 1.0.20 prints, shortened.
    const PRINTED: &str = "\
Latency histogram (values are in milliseconds)
       value  ------------- distribution ------------- count
       0.001 |*****                                    332
       0.001 |                                         23
       0.154 |**************************************** 2504
      34.954 |                                         3

File operations:
    reads/s:                      257.03
    writes/s:                     171.52
    fsyncs/s:                     3448.28

Throughput:
    read, MiB/s:                  4.02
    written, MiB/s:               2.68

General statistics:
    total time:                          2.0153s
    total number of events:              7812

Latency (ms):
         min:                                    0.00
         avg:                                    0.09
         max:                                   35.15
         95th percentile:                        1.12
         sum:                                 7960.52
";

    fn parsed(text: &str) -> Result<SysbenchResult, SysbenchError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sysbench.stdout");
        fs::write(&path, text).unwrap();
        parse(&path)
    }

    #[test]
    fn what_it_prints_becomes_figures() {
        let result = parsed(PRINTED).unwrap();
        assert_eq!((result.operations, result.tool_ns), (864, 2_015_300_000));
        assert_eq!(result.read_bytes, (4.02 * MIB * 2.0153).round() as u64);
        let histogram = &result.histograms["event"];
        assert_eq!(histogram.buckets, [(1000, 355), (154_000, 2504), (34_954_000, 3)]);
        assert_eq!((histogram.max_ns, histogram.sum_ns), (35_150_000, 7_960_520_000));
        let figure = |metric: &str| {
            result.samples.iter().find(|sample| sample.metric == metric).map(|sample| sample.value)
        };
        assert_eq!(figure("sysbench_fsyncs"), Some(3448.28));
        assert_eq!(figure("sysbench_latency_p95"), Some(1.12 * NS_PER_MS));
    }

    #[test]
    fn bytes_are_those_of_the_requests_where_the_bandwidth_goes_with_that() {
        let bytes = |head: &str| {
            let result = parsed(&format!("{head}\n{PRINTED}")).unwrap();
            (result.read_bytes, result.write_bytes)
        };
        let of = |mib_per_s: f64| (mib_per_s * MIB * 2.0153).round() as u64;
        assert_eq!(bytes("Block size 16KiB").0, of(257.03 / 64.0), "and not 4.02");
        assert_eq!(bytes("Block size 16KiB").1, of(171.52 / 64.0));
        assert_eq!(bytes("Block size 8KiB"), (of(4.02 - 0.005), of(2.68 - 0.005)));
        assert_eq!(bytes("Block size of 9"), (of(4.02), of(2.68)));
    }

    #[test]
    fn a_run_without_histogram_and_percentile_is_read_too() {
        let begin = PRINTED.find("File operations").unwrap();
        let result = parsed(&PRINTED[begin..].replace("95th percentile: ", "")).unwrap();
        assert!(result.histograms.is_empty());
        assert_eq!(result.samples.len(), 7);
    }

    #[test]
    fn more_events_than_a_count_holds_are_as_many_as_it_holds() {
        let many = PRINTED.replace(" 332\n", " 18446744073709551615\n");
        assert_eq!(parsed(&many).unwrap().histograms["event"].buckets[0], (1000, u64::MAX));
    }

    #[test]
    fn another_programs_output_is_no_result() {
        let error = parsed("nonsense").unwrap_err().to_string();
        assert!(error.ends_with("has no \"total time:\": is it sysbench 1.0?"), "{error}");
    }
}
