//! What fio says of its jobs: its json+ output, and its log of the rate over time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fsverdict_core::model::{
    Histogram, JobRecord, Jobs, PhaseRecord, Queue, RateOverTime, Sample, Unit,
};
use serde::Deserialize;
use thiserror::Error;

use super::super::left;
use super::jobs::{self, Job};
use super::rates::rates;

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
    jobs: Vec<Reported>,
}

/// A job, or all that group_reporting makes one.
#[derive(Default, Deserialize)]
struct Reported {
    jobname: String,
    #[serde(default)]
    groupid: u32,
    error: i64,
    #[serde(default)]
    read: Direction,
    #[serde(default)]
    write: Direction,
    #[serde(default)]
    trim: Direction,
    /// All three as one, with unified_rw_reporting.
    #[serde(default)]
    mixed: Direction,
    #[serde(default)]
    sync: Option<SyncStatistics>,
    /// Where it looked for a depth (latency_target).
    #[serde(default)]
    latency_depth: u64,
    #[serde(default)]
    latency_target: u64,
    #[serde(default)]
    steadystate: Option<SteadyState>,
    /// Milliseconds, of all its threads together.
    #[serde(default)]
    job_runtime: u64,
    /// How many threads it has: that is not in the report.
    #[serde(skip)]
    threads: u64,
}

impl Reported {
    fn apart(&self) -> [(&'static str, &Direction); 3] {
        [("read", &self.read), ("write", &self.write), ("trim", &self.trim)]
    }

    /// Each direction, or all as one: `unified_rw_reporting=both` tells of the same operations
    /// twice.
    fn directions(&self) -> impl Iterator<Item = (&'static str, &Direction)> {
        let is_apart = self.apart().iter().any(|(_, it)| it.total_ios > 0);
        let mixed = (!is_apart).then_some(("mixed", &self.mixed));
        self.apart().into_iter().chain(mixed)
    }

    /// How long it took. Directions run in parallel, but a job verifies what it wrote after the
    /// writes, which counts as time of its reads only (fio's backend.c, `thread_main`). A thread's
    /// whole time is in a sum over all (stat.c, `sum_thread_stats`), so we take the mean.
    fn runtime_ms(&self) -> u64 {
        let longest = self.directions().map(|(_, it)| it.runtime).max().unwrap_or(0);
        longest.max(self.job_runtime / self.threads.max(1))
    }
}

/// Counts the threads of each report: it is of one clone, or with group_reporting of all of them.
fn count_threads(reported: &mut [Reported], jobs: &[Job]) {
    let key = |it: &Reported| (it.groupid, it.jobname.clone());
    let keys: Vec<_> = reported.iter().map(key).collect();
    for (it, (group, name)) in reported.iter_mut().zip(&keys) {
        let of_it = jobs.iter().filter(|job| job.group == *group && job.reported == *name);
        let threads: u64 = of_it.filter(|job| job.is_reported()).map(Job::clones).sum();
        let reports = keys.iter().filter(|key| (key.0, &key.1) == (*group, name)).count();
        it.threads = threads / reports as u64;
    }
}

#[derive(Default, Deserialize)]
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

/// What ended the job (fio(1), "steadystate").
#[derive(Deserialize)]
struct SteadyState {
    attained: u8,
    data: SteadyMeans,
}

#[derive(Deserialize)]
struct SteadyMeans {
    bw_mean: f64,
    iops_mean: f64,
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

/// What a job did, or several that ran at once.
#[derive(Debug, Default)]
pub struct Figures {
    /// Reads, writes and trims; `None` of jobs that did not run at once.
    pub operations: Option<u64>,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// fio's own time: the longest of its jobs.
    pub tool_ns: Option<u64>,
    /// The requests under way; `None` where fio keeps no latencies.
    pub queue: Option<Queue>,
    /// The rate window by window, where all jobs are time-based and have no logs of their own.
    pub rate_over_time: Option<RateOverTime>,
    /// Completion latency (fio's clat) of reads, writes and trims, and the latency of fsyncs,
    /// which fio's `lat` leaves out.
    pub histograms: BTreeMap<String, Histogram>,
    /// fio's own figures, added up.
    pub samples: Vec<Sample>,
    /// Each job by itself, where there are several.
    pub jobs: Vec<JobRecord>,
}

impl Figures {
    /// Enters them into the record of the timed part.
    pub fn enter(self, record: &mut PhaseRecord) {
        record.tool_ns = self.tool_ns;
        record.operations = self.operations;
        record.application_read_bytes = Some(self.read_bytes);
        record.application_write_bytes = Some(self.write_bytes);
        record.queue = self.queue;
        record.rate_over_time = self.rate_over_time;
        record.histograms = self.histograms;
        record.samples = self.samples;
        record.jobs = self.jobs;
    }

    /// Those of one job of several.
    fn of_job(self, name: String, synced: bool) -> JobRecord {
        JobRecord {
            name,
            tool_ns: self.tool_ns.unwrap_or(0),
            synced,
            operations: self.operations.unwrap_or(0),
            application_read_bytes: self.read_bytes,
            application_write_bytes: self.write_bytes,
            queue: self.queue,
            histograms: self.histograms,
            samples: self.samples,
        }
    }
}

/// Reads what fio wrote to `path` and beside it of these jobs; `window_ms` is that of their log.
pub fn parse(path: &Path, jobs: &[Job], window_ms: Option<u64>) -> Result<Figures, OutputError> {
    let shown = || path.display().to_string();
    let text = left::text(path, left::LOG_BYTES)
        .map_err(|source| OutputError::Unreadable { path: shown(), source })?;
    // fio writes its notes ("fio: ...") into the same file, before the document.
    let start = text.find("{\n").unwrap_or(0);
    let output: Output = serde_json::from_str(&text[start..])
        .map_err(|error| OutputError::Unknown { path: shown(), reason: error.to_string() })?;
    // The work can write there, too.
    if output.jobs.is_empty() {
        return Err(OutputError::Unknown { path: shown(), reason: "it tells of no job".into() });
    }
    if let Some(Reported { jobname, error, .. }) = output.jobs.iter().find(|job| job.error != 0) {
        return Err(OutputError::Job { job: jobname.clone(), error: *error });
    }
    let mut figures = of_all(output.jobs, jobs);
    if let Some(window_ms) = window_ms {
        let text = left::text(&log(path, "iops"), left::LOG_BYTES).unwrap_or_default();
        figures.rate_over_time = RateOverTime::new(window_ms * 1_000_000, rates(&text, window_ms));
    }
    Ok(figures)
}

/// The figures of all jobs, and if there are several those of each. Jobs that did not run at once
/// are not added up, except the bytes that the device has to move.
fn of_all(mut reported: Vec<Reported>, jobs: &[Job]) -> Figures {
    count_threads(&mut reported, jobs);
    // Clones of a job (numjobs) are reported one by one, under the same name.
    let mut parts: Vec<(u32, &str)> = Vec::new();
    for it in &reported {
        if !parts.contains(&(it.groupid, &it.jobname)) {
            parts.push((it.groupid, &it.jobname));
        }
    }
    let all: Vec<&Reported> = reported.iter().collect();
    let whole = added_up(&all, &jobs.iter().collect::<Vec<_>>());
    if parts.len() < 2 {
        return whole;
    }
    let last_stage = jobs.iter().map(|job| job.stage).max();
    let names = Jobs::metric_names(parts.iter().map(|(_, name)| *name));
    // One that begins later is done later, whatever its own time is.
    let mut span_ns = 0;
    let part = |(name, (group, reported_as)): (String, (u32, &str))| {
        let is_its = |it: &&&Reported| it.groupid == group && it.jobname == reported_as;
        let its: Vec<&Reported> = all.iter().filter(is_its).copied().collect();
        let of_part = |job: &&Job| job.group == group && job.reported == reported_as;
        let its_jobs: Vec<&Job> = jobs.iter().filter(of_part).collect();
        let figures = added_up(&its, &its_jobs);
        let delay_ns = its_jobs.iter().map(|job| job.delay_ns()).max().unwrap_or(0);
        span_ns = span_ns.max(figures.tool_ns.unwrap_or(0).saturating_add(delay_ns));
        let is_last = its_jobs.iter().all(|job| Some(job.stage) == last_stage);
        let synced = is_last && figures.write_bytes > 0;
        figures.of_job(name, synced)
    };
    let of_each = names.into_iter().zip(parts).map(part).collect();
    match jobs::run_at_once(jobs) {
        true => Figures { jobs: of_each, tool_ns: Some(span_ns), ..whole },
        false => Figures {
            read_bytes: whole.read_bytes,
            write_bytes: whole.write_bytes,
            jobs: of_each,
            ..Figures::default()
        },
    }
}

/// What is `reported` of these jobs together.
fn added_up(reported: &[&Reported], jobs: &[&Job]) -> Figures {
    let mut figures = Figures { queue: queue(reported, jobs), ..Figures::default() };
    let (mut operations, mut runtime_ms) = (0_u64, 0_u64);
    let moves = !jobs.iter().all(|job| job.moves_nothing());
    for job in reported {
        runtime_ms = runtime_ms.max(job.runtime_ms());
        for (name, direction) in job.directions() {
            operations = operations.saturating_add(direction.total_ios);
            merge(&mut figures.histograms, name, &direction.clat_ns);
        }
        if let Some(sync) = &job.sync {
            merge(&mut figures.histograms, "fsync", &sync.lat_ns);
        }
        if moves {
            figures.read_bytes = figures.read_bytes.saturating_add(job.read.io_bytes);
            figures.write_bytes = figures.write_bytes.saturating_add(job.write.io_bytes);
        }
    }
    figures.operations = Some(operations);
    figures.tool_ns = Some(runtime_ms.saturating_mul(1_000_000));
    figures.samples = own_figures(reported, moves);
    figures
}

/// The requests that fio had under way, by its own figures and the options of these jobs.
fn queue(reported: &[&Reported], jobs: &[&Job]) -> Option<Queue> {
    let mut queue = Queue {
        declared: jobs.iter().map(|job| job.declared()).sum(),
        closed: jobs.iter().all(|job| job.is_closed()),
        direct: jobs.iter().all(|job| job.is_on("direct")),
        ..Queue::default()
    };
    for job in reported {
        let runtime_ns = job.runtime_ms() as f64 * 1e6;
        let under_way = |operations: u64, latency: &Latency| match runtime_ns > 0.0 {
            true => latency.mean * operations as f64 / runtime_ns,
            false => 0.0,
        };
        for (_, direction) in job.directions().filter(|(_, it)| it.total_ios > 0) {
            if direction.lat_ns.count == 0 {
                return None;
            }
            queue.requests += under_way(direction.total_ios, &direction.lat_ns);
        }
        let syncs = job.sync.as_ref().map(|it| under_way(it.lat_ns.count, &it.lat_ns));
        queue.syncs += syncs.unwrap_or(0.0);
    }
    (!jobs.is_empty()).then_some(queue)
}

fn merge(histograms: &mut BTreeMap<String, Histogram>, name: &str, latency: &Latency) {
    if latency.bins.is_empty() {
        return;
    }
    let mut buckets: BTreeMap<u64, u64> = BTreeMap::new();
    let histogram = histograms.entry(name.into()).or_default();
    buckets.extend(histogram.buckets.iter().copied());
    for (ns, count) in &latency.bins {
        let sum = buckets.entry(ns.parse().unwrap_or(0)).or_default();
        *sum = sum.saturating_add(*count);
    }
    histogram.buckets = buckets.into_iter().collect();
    histogram.max_ns = histogram.max_ns.max(latency.max);
    let sum_ns = (latency.mean * latency.count as f64) as u64;
    histogram.sum_ns = histogram.sum_ns.saturating_add(sum_ns);
}

fn own_figures(reported: &[&Reported], moves: bool) -> Vec<Sample> {
    let mut samples = Vec::new();
    let each = reported.iter().map(|job| job.apart());
    for place in 0..3 {
        let directions: Vec<_> = each.clone().map(|directions| directions[place]).collect();
        let (name, _) = directions[0];
        let its = || directions.iter().map(|(_, direction)| direction);
        if its().all(|direction| direction.total_ios == 0) {
            continue;
        }
        let iops = its().map(|direction| direction.iops).sum();
        samples.push(Sample::higher(format!("fio_{name}_iops"), iops, Unit::PerSecond));
        let bytes = its().map(|direction| direction.bw_bytes).sum();
        let metric = format!("fio_{name}_bandwidth");
        samples.extend(moves.then(|| Sample::higher(metric, bytes, Unit::BytesPerSecond)));
    }
    if let [job] = reported {
        samples.extend(sought(job));
    }
    samples
}

/// What a job was looking for: the depth that keeps its target, or its steady state.
fn sought(job: &Reported) -> Vec<Sample> {
    let depth = (job.latency_target > 0)
        .then(|| Sample::higher("fio_latency_depth", job.latency_depth as f64, Unit::Count));
    let steady = job.steadystate.as_ref().filter(|it| it.attained > 0).map(|it| &it.data);
    let rates = steady.map(|SteadyMeans { bw_mean, iops_mean }| {
        [
            Sample::higher("fio_steady_iops", *iops_mean, Unit::PerSecond),
            Sample::higher("fio_steady_bandwidth", *bw_mean, Unit::BytesPerSecond),
        ]
    });
    depth.into_iter().chain(rates.into_iter().flatten()).collect()
}

/// The log of `what` that belongs to `output` (fio(1), "write_bw_log": it is named after what is
/// logged).
pub fn log(output: &Path, what: &str) -> PathBuf {
    let stem = output.file_stem().unwrap_or_default().to_string_lossy();
    output.with_file_name(format!("{stem}_{what}.log"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The jobs of what fio says when it reads such a job file.
    fn read(lines: &[&str]) -> Vec<Job> {
        let lines = lines.iter().map(|line| format!("parse    12  {line}\n"));
        jobs::read(&lines.collect::<String>(), &[]).unwrap()
    }

    fn job(name: &str, options: &[&str]) -> Vec<String> {
        let section = [format!("Parsing section [{name}]"), "dup options".into()];
        let options = options.iter().flat_map(|option| {
            let (name, value) = option.split_once('=').unwrap_or((option, "(null)"));
            [format!("handle_option={name}, ptr={value}"), format!("  ret=0, out={value}")]
        });
        section.into_iter().chain(options).collect()
    }

    fn jobs_of(jobs: &[Vec<String>]) -> Vec<Job> {
        read(&jobs.iter().flatten().map(String::as_str).collect::<Vec<_>>())
    }

    fn direction(ios: u64, runtime: u64) -> Direction {
        Direction {
            io_bytes: ios * 4096,
            total_ios: ios,
            runtime,
            bw_bytes: 100.0,
            iops: 1000.0,
            clat_ns: Latency {
                max: 900,
                mean: 500.0,
                count: ios,
                bins: [("400".into(), ios)].into(),
            },
            lat_ns: Latency { mean: 2e6, count: ios, ..Latency::default() },
        }
    }

    #[test]
    fn the_queue_is_what_the_options_and_the_latencies_say() {
        let queue_of = |options: &[&str], lat_ns: Latency| {
            let jobs = jobs_of(&[job("a", options)]);
            let write = Direction { lat_ns, ..direction(1000, 1000) };
            let reported = Reported { jobname: "a".into(), write, ..Reported::default() };
            queue(&[&reported], &jobs.iter().collect::<Vec<_>>())
        };
        let latency = || direction(1000, 1000).lat_ns;
        let deep = ["ioengine=libaio", "iodepth=8", "direct=1", "numjobs=4", "group_reporting"];
        let both = queue_of(&deep, latency()).unwrap();
        assert_eq!(
            (both.declared, both.requests, both.direct, both.closed),
            (32.0, 2.0, true, true)
        );
        let paced = queue_of(&["iodepth=8", "rate_iops=50"], latency()).unwrap();
        assert_eq!((paced.declared, paced.direct, paced.closed), (1.0, false, false));
        assert!(!queue_of(&["end_fsync=1"], latency()).unwrap().closed);
        assert_eq!(queue_of(&deep, Latency::default()), None);
    }

    #[test]
    fn what_ran_one_after_the_other_is_not_added_up() {
        let of = |jobname: &str, groupid, write| Reported {
            jobname: jobname.into(),
            groupid,
            write,
            ..Reported::default()
        };
        let two = || vec![of("a b", 0, direction(5000, 2000)), of("c", 1, direction(1000, 4000))];
        let stages = jobs_of(&[job("a b", &["rw=write"]), job("c", &["rw=write", "stonewall"])]);
        let apart = of_all(two(), &stages);
        let names: Vec<_> = apart.jobs.iter().map(|job| (job.name.as_str(), job.synced)).collect();
        assert_eq!(names, [("a_b", false), ("c", true)], "the syncfs is of what ran last");
        assert_eq!((apart.jobs[0].operations, apart.jobs[0].tool_ns), (5000, 2_000_000_000));
        assert_eq!(apart.jobs[1].queue.unwrap().declared, 1.0);
        assert_eq!(apart.jobs[1].histograms["write"].count(), 1000);
        assert_eq!((apart.operations, apart.queue, apart.tool_ns), (None, None, None));
        assert_eq!((apart.samples.len(), apart.histograms.len()), (0, 0));
        assert_eq!(apart.write_bytes, 6000 * 4096, "bytes are bytes");
        let at_once = jobs_of(&[job("a b", &["rw=write"]), job("c", &["rw=write", "new_group"])]);
        let added = of_all(two(), &at_once);
        assert_eq!((added.operations, added.tool_ns), (Some(6000), Some(4_000_000_000)));
        assert_eq!((added.jobs.len(), added.queue.unwrap().declared), (2, 2.0));
        let later = ["rw=write", "new_group", "startdelay=3000000"];
        let later = of_all(two(), &jobs_of(&[job("a b", &["rw=write"]), job("c", &later)]));
        assert_eq!((later.tool_ns, later.jobs[1].tool_ns), (Some(7_000_000_000), 4_000_000_000));
        let clones = vec![of("a", 0, direction(100, 9)), of("a", 0, direction(100, 9))];
        let one = of_all(clones, &jobs_of(&[job("a", &["rw=write", "numjobs=2"])]));
        assert_eq!((one.operations, one.jobs.len()), (Some(200), 0), "a job with its clones");
        assert_eq!(one.queue.unwrap().declared, 2.0);
        let grouped = [job("r", &["group_reporting"]), job("w", &["group_reporting", "iodepth=9"])];
        let grouped = of_all(vec![of("r", 0, direction(100, 9))], &jobs_of(&grouped));
        assert_eq!((grouped.jobs.len(), grouped.queue.unwrap().declared), (0, 2.0));
    }

    #[test]
    fn a_verification_takes_time_of_its_own() {
        // As fio 3.33 tells of `rw=write verify=crc32c`, and of three clones of it.
        let of = |job_runtime| Reported {
            jobname: "a".into(),
            read: direction(1000, 500),
            write: direction(1000, 430),
            job_runtime,
            ..Reported::default()
        };
        let whole = |reported: Vec<Reported>, options: &[&str]| {
            let figures = of_all(reported, &jobs_of(&[job("a", options)]));
            let queue = figures.queue.unwrap();
            (figures.operations.unwrap(), figures.tool_ns.unwrap() / 1_000_000, queue.requests)
        };
        let one = ["rw=write", "verify=crc32c"];
        assert_eq!(whole(vec![of(2000)], &one), (2000, 2000, 2.0), "2000 of 2 ms in 2 s");
        assert_eq!(whole(vec![of(0)], &one).1, 500, "of an older fio");
        let clones = ["rw=write", "verify=crc32c", "numjobs=3"];
        assert_eq!(whole(vec![of(900), of(930), of(870)], &clones).1, 930);
        let grouped = ["rw=write", "verify=crc32c", "numjobs=3", "group_reporting"];
        assert_eq!(whole(vec![of(2700)], &grouped).1, 900);
    }

    #[test]
    fn what_is_told_apart_and_as_one_is_counted_once() {
        let both = Reported {
            jobname: "a".into(),
            read: direction(400, 100),
            write: direction(600, 100),
            mixed: direction(1000, 100),
            ..Reported::default()
        };
        let as_one =
            Reported { jobname: "a".into(), mixed: direction(1000, 100), ..Reported::default() };
        let figures =
            |it| of_all(vec![it], &jobs_of(&[job("a", &["rw=randrw", "ioengine=libaio"])]));
        let [both, as_one] = [both, as_one].map(figures);
        assert_eq!((both.operations, as_one.operations), (Some(1000), Some(1000)));
        assert_eq!(both.histograms.keys().collect::<Vec<_>>(), ["read", "write"]);
        assert_eq!(as_one.histograms.keys().collect::<Vec<_>>(), ["mixed"]);
        assert_eq!(both.queue, as_one.queue);
    }

    #[test]
    fn engines_that_move_nothing_have_no_bytes() {
        let read = direction(100, 50);
        let reported = vec![Reported { jobname: "a".into(), read, ..Reported::default() }];
        let figures = of_all(reported, &jobs_of(&[job("a", &["ioengine=filestat"])]));
        assert_eq!((figures.operations, figures.read_bytes), (Some(100), 0));
        let names: Vec<_> = figures.samples.into_iter().map(|sample| sample.metric).collect();
        assert_eq!(names, ["fio_read_iops"]);
    }

    #[test]
    fn what_a_job_looked_for_is_its_figure() {
        let document = r#"{"jobname":"a","error":0,"latency_depth":16,"latency_target":500000,
            "trim":{"io_bytes":4096,"total_ios":9,"runtime":3,"bw_bytes":1,"iops":3.0,
                    "clat_ns":{"max":9,"mean":5,"N":9,"bins":{"4":9}}},
            "steadystate":{"ss":"iops:10%","attained":1,"data":{"bw_mean":4096,"iops_mean":7}}}"#;
        let reported: Reported = serde_json::from_str(document).unwrap();
        let jobs = jobs_of(&[job("a", &["rw=trim"])]);
        let figures = of_all(vec![reported], &jobs);
        let value =
            |metric: &str| figures.samples.iter().find(|it| it.metric == metric).map(|it| it.value);
        assert_eq!((value("fio_trim_iops"), value("fio_latency_depth")), (Some(3.0), Some(16.0)));
        assert_eq!(value("fio_steady_iops"), Some(7.0));
        assert_eq!((figures.operations, figures.histograms["trim"].count()), (Some(9), 9));
    }

    #[test]
    fn notes_are_skipped_and_errors_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fio.json");
        let idle = r#"{"io_bytes":0,"total_ios":0,"runtime":0,"bw_bytes":0,"iops":0,
            "clat_ns":{"max":0,"mean":0,"N":0}}"#;
        let write = r#"{"io_bytes":409600,"total_ios":100,"runtime":250,"bw_bytes":100,"iops":10.5,
            "clat_ns":{"max":900,"mean":500,"N":100,"bins":{"400":100}}}"#;
        let reported = |error: u8| {
            format!(r#"{{"jobname":"a","error":{error},"read":{idle},"write":{write}}}"#)
        };
        let document =
            |error| format!("note: x\n{{\n\"jobs\":[{},{}]}}", reported(0), reported(error));
        let jobs = jobs_of(&[job("a", &["rw=write", "numjobs=2"])]);
        fs::write(&path, document(0)).unwrap();
        let result = parse(&path, &jobs, None).unwrap();
        assert_eq!((result.operations, result.write_bytes), (Some(200), 200 * 4096));
        assert_eq!(result.tool_ns, Some(250_000_000));
        assert_eq!(result.histograms["write"].buckets, [(400, 200)]);
        assert_eq!(result.histograms["write"].sum_ns, 100_000);
        assert_eq!((result.samples[0].value, result.samples.len()), (21.0, 2));
        fs::write(&path, document(5)).unwrap();
        assert!(matches!(parse(&path, &jobs, None), Err(OutputError::Job { error: 5, .. })));
        let huge = document(0).replace("100,", "18446744073709551615,");
        fs::write(&path, huge.replace(":100}", ":18446744073709551615}")).unwrap();
        assert_eq!(parse(&path, &jobs, None).unwrap().operations, Some(u64::MAX));
        for none in ["nonsense", "{\"jobs\":[]}", "[[]]"] {
            fs::write(&path, none).unwrap();
            assert!(
                matches!(parse(&path, &jobs, None), Err(OutputError::Unknown { .. })),
                "{none}"
            );
        }
    }
}
