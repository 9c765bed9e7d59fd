//! What fio says of a job: its json+ output, and its log of the rate over time.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use fsverdict_core::model::{
    Histogram, PhaseRecord, Queue, RateOverTime, Sample, Unit, is_synchronous_engine,
};
use serde::Deserialize;
use thiserror::Error;

/// More windows than any job has: a day of those of 100 ms.
const WINDOWS_MAX: u64 = 864_000;

/// Output that can't be read, or tells of a failure.
#[derive(Debug, Error)]
pub enum OutputError {
    #[error("fio's output {path}: {source}")]
    Unreadable { path: String, source: std::io::Error },
    #[error("fio's output {path} is not the json+ of fio: {reason}")]
    Unknown { path: String, reason: String },
    #[error("fio job {job} ended with error {error}")]
    Job { job: String, error: i64 },
}

#[derive(Deserialize)]
struct Output {
    jobs: Vec<Job>,
    #[serde(default, rename = "global options")]
    global: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Job {
    jobname: String,
    error: i64,
    read: Direction,
    write: Direction,
    #[serde(default)]
    trim: Option<Direction>,
    #[serde(default)]
    sync: Option<SyncStatistics>,
    #[serde(default, rename = "job options")]
    options: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Direction {
    io_bytes: u64,
    total_ios: u64,
    /// Milliseconds.
    runtime: u64,
    bw_bytes: f64,
    iops: f64,
    clat_ns: Latency,
    /// From the beginning of a request to its completion.
    #[serde(default)]
    lat_ns: Latency,
}

#[derive(Deserialize)]
struct SyncStatistics {
    lat_ns: Latency,
}

#[derive(Default, Deserialize)]
struct Latency {
    #[serde(default)]
    max: u64,
    #[serde(default)]
    mean: f64,
    #[serde(default, rename = "N")]
    count: u64,
    #[serde(default)]
    bins: BTreeMap<String, u64>,
}

/// What a job did.
#[derive(Debug, Default)]
pub struct Figures {
    /// Reads, writes and trims.
    pub operations: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// fio's own time: the longest of its jobs.
    pub tool_ns: u64,
    /// The requests under way; `None` where fio keeps no latencies.
    pub queue: Option<Queue>,
    /// The rate window by window, where all jobs are time-based and have no logs of their own.
    pub rate_over_time: Option<RateOverTime>,
    /// Completion latency (fio's clat) of reads and writes, and the latency of fsyncs, which
    /// fio's `lat` leaves out.
    pub histograms: BTreeMap<String, Histogram>,
    /// fio's own figures, added up over its jobs.
    pub samples: Vec<Sample>,
}

impl Figures {
    /// Enters them into the record of the timed part.
    pub fn enter(self, record: &mut PhaseRecord) {
        record.tool_ns = Some(self.tool_ns);
        record.operations = Some(self.operations);
        record.application_read_bytes = Some(self.read_bytes);
        record.application_write_bytes = Some(self.write_bytes);
        record.queue = self.queue;
        record.rate_over_time = self.rate_over_time;
        record.histograms = self.histograms;
        record.samples = self.samples;
    }
}

/// Reads what fio wrote to `path` and beside it; `window_ms` is that of its job.
pub fn parse(path: &Path, window_ms: Option<u64>) -> Result<Figures, OutputError> {
    let shown = || path.display().to_string();
    let text = fs::read_to_string(path)
        .map_err(|source| OutputError::Unreadable { path: shown(), source })?;
    // fio writes its notes ("fio: ...") into the same file, before the document.
    let start = text.find("{\n").unwrap_or(0);
    let output: Output = serde_json::from_str(&text[start..])
        .map_err(|error| OutputError::Unknown { path: shown(), reason: error.to_string() })?;
    let mut result = Figures::default();
    for job in &output.jobs {
        if job.error != 0 {
            return Err(OutputError::Job { job: job.jobname.clone(), error: job.error });
        }
        add(&mut result, job);
    }
    own_figures(&mut result.samples, &output.jobs);
    result.queue = queue(&output);
    if let Some(window_ms) = window_ms {
        let text = fs::read_to_string(log(path, "iops")).unwrap_or_default();
        result.rate_over_time = RateOverTime::new(window_ms * 1_000_000, rates(&text, window_ms));
    }
    Ok(result)
}

/// Operations a second in windows of `window_ms`, all jobs and directions added up, from a log of
/// averages (fio(1), "LOG FILE FORMATS": time in milliseconds, value, direction), one job after the
/// other.
///
/// A line tells of the time since the one before it, or of its own window where that is further
/// away: of a window without an operation fio writes no line (stat.c, `__add_samples`). Lines come
/// when fio's thread gets to it, so that they are laid out over windows of their own.
fn rates(log: &str, window_ms: u64) -> Vec<f64> {
    let mut spans: Vec<(u64, u64, u64)> = Vec::new();
    let (mut last_ms, mut of_direction) = (0, BTreeMap::new());
    for line in log.lines() {
        let mut fields = line.split(',').map(|field| field.trim().parse::<u64>().ok());
        let mut next = || fields.next().flatten();
        let (Some(to_ms), Some(rate), Some(direction)) = (next(), next(), next()) else { continue };
        if to_ms < last_ms {
            of_direction.clear();
        }
        last_ms = to_ms;
        let before = of_direction.insert(direction, to_ms).unwrap_or(0);
        let near = (to_ms - before).saturating_mul(2) <= 3 * window_ms;
        spans.push((if near { before } else { to_ms.saturating_sub(window_ms) }, to_ms, rate));
    }
    let begin_ms = spans.iter().map(|span| span.0).min().unwrap_or(0);
    let end_ms = spans.iter().map(|span| span.1).max().unwrap_or(0);
    // The last window may end a moment early.
    let windows = (end_ms - begin_ms + window_ms / 20) / window_ms;
    // The work may have written there.
    if windows > WINDOWS_MAX {
        return Vec::new();
    }
    let mut operations = vec![0.0; windows as usize];
    for (from_ms, to_ms, rate) in spans {
        let [first, last] = [from_ms, to_ms].map(|ms| (ms - begin_ms) / window_ms);
        for (place, sum) in (first..=last).zip(operations.iter_mut().skip(first as usize)) {
            let start_ms = begin_ms + place * window_ms;
            let shared_ms = to_ms.min(start_ms + window_ms).saturating_sub(from_ms.max(start_ms));
            *sum += rate as f64 * shared_ms as f64;
        }
    }
    operations.into_iter().map(|sum| sum / window_ms as f64).collect()
}

/// The requests that fio had under way, by its own figures and the options it was given.
fn queue(output: &Output) -> Option<Queue> {
    let mut queue = Queue { closed: true, direct: true, ..Queue::default() };
    for job in &output.jobs {
        let option = |name: &str| job.options.get(name).or_else(|| output.global.get(name));
        let number = |name: &str| option(name).and_then(|value| value.parse().ok()).unwrap_or(1.0);
        let is_on = |name: &str| option(name).is_some_and(|value| value != "0");
        // The default on Linux is psync.
        let synchronous = option("ioengine").is_none_or(|engine| is_synchronous_engine(engine));
        // Clones are reported one by one, or all as one: group_reporting, which need not be among
        // the options that fio's output repeats.
        let alike = output.jobs.iter().filter(|it| it.jobname == job.jobname).count();
        let jobs = f64::max(number("numjobs"), 1.0) / alike as f64;
        queue.declared += jobs * if synchronous { 1.0 } else { number("iodepth") };
        let directions = [Some(&job.read), Some(&job.write), job.trim.as_ref()];
        let runtime_ms = directions.iter().flatten().map(|it| it.runtime).max().unwrap_or(0);
        for direction in directions.into_iter().flatten().filter(|it| it.total_ios > 0) {
            if direction.lat_ns.count == 0 {
                return None;
            }
            queue.requests += direction.iops * direction.lat_ns.mean / 1e9;
        }
        if let Some(SyncStatistics { lat_ns }) = job.sync.as_ref().filter(|_| runtime_ms > 0) {
            queue.syncs += lat_ns.mean * lat_ns.count as f64 / (runtime_ms as f64 * 1e6);
        }
        let mut names = job.options.keys().chain(output.global.keys());
        let paced = names.any(|name| name.starts_with("rate") || name.starts_with("think"));
        // Of a sync at the end fio tells no latency.
        queue.closed &= !paced && !is_on("end_fsync") && !is_on("fsync_on_close");
        queue.direct &= is_on("direct");
    }
    Some(queue)
}

fn add(result: &mut Figures, job: &Job) {
    for (name, direction) in [("read", &job.read), ("write", &job.write)] {
        result.operations += direction.total_ios;
        result.tool_ns = result.tool_ns.max(direction.runtime * 1_000_000);
        merge(&mut result.histograms, name, &direction.clat_ns);
    }
    if let Some(trim) = &job.trim {
        result.operations += trim.total_ios;
        result.tool_ns = result.tool_ns.max(trim.runtime * 1_000_000);
    }
    result.read_bytes += job.read.io_bytes;
    result.write_bytes += job.write.io_bytes;
    if let Some(sync) = &job.sync {
        merge(&mut result.histograms, "fsync", &sync.lat_ns);
    }
}

fn merge(histograms: &mut BTreeMap<String, Histogram>, name: &str, latency: &Latency) {
    if latency.bins.is_empty() {
        return;
    }
    let mut buckets: BTreeMap<u64, u64> = BTreeMap::new();
    let histogram = histograms.entry(name.into()).or_default();
    buckets.extend(histogram.buckets.iter().copied());
    for (ns, count) in &latency.bins {
        *buckets.entry(ns.parse().unwrap_or(0)).or_default() += count;
    }
    histogram.buckets = buckets.into_iter().collect();
    histogram.max_ns = histogram.max_ns.max(latency.max);
    histogram.sum_ns += (latency.mean * latency.count as f64) as u64;
}

fn own_figures(samples: &mut Vec<Sample>, jobs: &[Job]) {
    let reads: Vec<&Direction> = jobs.iter().map(|job| &job.read).collect();
    let writes: Vec<&Direction> = jobs.iter().map(|job| &job.write).collect();
    for (name, directions) in [("read", reads), ("write", writes)] {
        if directions.iter().all(|direction| direction.total_ios == 0) {
            continue;
        }
        let iops = directions.iter().map(|direction| direction.iops).sum();
        let bytes = directions.iter().map(|direction| direction.bw_bytes).sum();
        samples.push(Sample::higher(format!("fio_{name}_iops"), iops, Unit::PerSecond));
        let metric = format!("fio_{name}_bandwidth");
        samples.push(Sample::higher(metric, bytes, Unit::BytesPerSecond));
    }
}

/// The log of `what` that belongs to `output` (fio(1), "write_bw_log": it is named after what is
/// logged).
pub fn log(output: &Path, what: &str) -> PathBuf {
    let stem = output.file_stem().unwrap_or_default().to_string_lossy();
    output.with_file_name(format!("{stem}_{what}.log"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_and_directions_are_added_up_in_windows() {
        let log = |lines: &[(u64, u64, u64)]| {
            let line = |&(ms, rate, direction): &(u64, u64, u64)| {
                format!("{}, {rate}, {direction}, 0, 0, 0\n", 1_795_000_000_000 + ms)
            };
            rates(&lines.iter().map(line).collect::<String>(), 100)
        };
        let first = [(100, 30, 0), (100, 10, 1), (200, 50, 0), (200, 10, 1)];
        assert_eq!(log(&first), [40.0, 60.0]);
        let second = [(100, 5, 0), (199, 5, 0)];
        let both = log(&[first.as_slice(), &second].concat());
        assert!((both[0] - 45.0).abs() < 0.1 && (both[1] - 65.0).abs() < 0.1, "{both:?}");
        assert_eq!(log(&[(100, 30, 0), (400, 30, 0)]), [30.0, 0.0, 0.0, 30.0], "it stood still");
        assert_eq!(log(&[(100, 30, 0), (240, 10, 0)]), [30.0, 10.0], "fio was late");
        assert_eq!(log(&[(100, 30, 0), (250, 20, 0), (350, 20, 0)]), [30.0, 20.0, 20.0]);
        assert_eq!(rates("", 100), [0.0; 0]);
        assert_eq!(rates("100, 7, 0, 0, 0\n200, 8, 0, 0, 0\n", 100), [7.0, 8.0]);
    }

    #[test]
    fn the_queue_is_what_the_options_and_the_latencies_say() {
        let direction = |ios: u64, iops: f64| Direction {
            io_bytes: 0,
            total_ios: ios,
            runtime: 1000,
            bw_bytes: 0.0,
            iops,
            clat_ns: Latency::default(),
            lat_ns: Latency { mean: 2e6, count: ios, ..Latency::default() },
        };
        let options = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
        };
        let output = |global: &[(&str, &str)], job: &[(&str, &str)]| Output {
            jobs: vec![Job {
                jobname: "a".into(),
                error: 0,
                read: direction(0, 0.0),
                write: direction(1000, 1000.0),
                trim: None,
                sync: None,
                options: options(job),
            }],
            global: options(global),
        };
        let deep = [("ioengine", "libaio"), ("iodepth", "8"), ("direct", "1")];
        let many = [("numjobs", "4"), ("group_reporting", "1")];
        let both = queue(&output(&deep, &many)).unwrap();
        assert_eq!(
            (both.declared, both.requests, both.direct, both.closed),
            (32.0, 2.0, true, true)
        );
        let paced = queue(&output(&[("iodepth", "8")], &[("rate_iops", "50")])).unwrap();
        assert_eq!((paced.declared, paced.direct, paced.closed), (1.0, false, false));
        assert!(!queue(&output(&deep, &[("end_fsync", "1")])).unwrap().closed);
        let mut silent = output(&deep, &many);
        silent.jobs[0].write.lat_ns = Latency::default();
        assert_eq!(queue(&silent), None);
    }

    #[test]
    fn jobs_are_added_up_and_notes_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fio.json");
        let direction = |ios: u64| {
            format!(
                r#"{{"io_bytes":{0},"total_ios":{ios},"runtime":250,"bw_bytes":100,"iops":10.5,
                   "clat_ns":{{"max":900,"mean":500,"N":{ios},"bins":{{"400":{ios}}}}}}}"#,
                ios * 4096
            )
        };
        let idle = r#"{"io_bytes":0,"total_ios":0,"runtime":0,"bw_bytes":0,"iops":0,
            "clat_ns":{"max":0,"mean":0,"N":0}}"#;
        let job = |error: u8| {
            let write = direction(100);
            format!(r#"{{"jobname":"a","error":{error},"read":{idle},"write":{write}}}"#)
        };
        let document = |error| format!("note: x\n{{\n\"jobs\":[{},{}]}}", job(0), job(error));
        fs::write(&path, document(0)).unwrap();
        let result = parse(&path, None).unwrap();
        assert_eq!((result.operations, result.write_bytes), (200, 200 * 4096));
        assert_eq!(result.tool_ns, 250_000_000);
        assert_eq!(result.histograms["write"].buckets, [(400, 200)]);
        assert_eq!(result.histograms["write"].sum_ns, 100_000);
        assert_eq!(result.samples[0].value, 21.0);
        assert_eq!(result.samples.len(), 2);
        fs::write(&path, document(5)).unwrap();
        assert!(matches!(parse(&path, None), Err(OutputError::Job { error: 5, .. })));
        fs::write(&path, "nonsense").unwrap();
        assert!(matches!(parse(&path, None), Err(OutputError::Unknown { .. })));
    }
}
