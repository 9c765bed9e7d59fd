//! A fio job: its arguments, and what its json+ output says.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fsverdict_core::model::{
    Fio, Histogram, Queue, RateOverTime, Sample, Unit, is_synchronous_engine, meant,
};
use serde::Deserialize;
use thiserror::Error;

use crate::tool::{self, ToolError};

/// fio reads a job in milliseconds.
const PARSE_LIMIT: Duration = Duration::from_secs(60);

/// Into so many windows a time-based run is divided: twelve batches of five.
const WINDOWS: u64 = 60;
/// A shorter window is one in which fio's own thread is late. (It makes up averages of half a
/// second in any case, so that asking for others costs its jobs nothing.)
const WINDOW_MS_LEAST: u64 = 100;
/// Where the job doesn't say how long it runs: fio's own default.
const WINDOW_MS_DEFAULT: u64 = 500;

/// A job that can't be run here, or whose output can't be read.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum FioError {
    #[error("job file {path}: {source}")]
    JobFile { path: String, source: std::io::Error },
    #[error(
        "the fio job names {option}={value}, outside the file system under test: give it a \
         relative path, or leave the line out"
    )]
    Outside { option: String, value: String },
    #[error("fio's output {path}: {source}")]
    Unreadable { path: String, source: std::io::Error },
    #[error("fio's output {path} is not the json+ of fio: {reason}")]
    Unknown { path: String, reason: String },
    #[error("fio job {job} ended with error {error}")]
    Job { job: String, error: i64 },
}

/// The options of a job, as far as they can be seen: those on the command line and those in job
/// files, in order, with several jobs run together. A section of a file begins with its `name`.
pub fn options(fio: &Fio) -> Result<Vec<(String, String)>, FioError> {
    let mut options = Vec::new();
    let mut arguments = fio.arguments("job").into_iter();
    while let Some(argument) = arguments.next() {
        match argument.trim_start_matches('-').split_once('=') {
            Some((option, value)) if argument.starts_with('-') => {
                options.push((option.into(), value.into()));
            }
            _ if argument.starts_with('-') => {
                // `--rw randread`: the value is the next word, unless that is an option too.
                let option = argument.trim_start_matches('-').to_string();
                let takes_value = ["directory", "filename", "rw", "readwrite", "name"];
                let value = takes_value.contains(&option.as_str()).then(|| arguments.next());
                options.push((option, value.flatten().unwrap_or_default()));
            }
            _ => options.extend(job_file(&argument)?),
        }
    }
    Ok(options)
}

fn job_file(path: &str) -> Result<Vec<(String, String)>, FioError> {
    let text = fs::read_to_string(path)
        .map_err(|source| FioError::JobFile { path: path.into(), source })?;
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';']));
    Ok(lines
        .filter(|line| !line.is_empty())
        .map(|line| match line.strip_prefix('[') {
            Some(section) => ("name", section.trim_end_matches(']')),
            None => line.split_once('=').unwrap_or((line, "")),
        })
        .map(|(option, value)| (option.trim().into(), value.trim().into()))
        .collect())
}

/// Refuses a job that would leave the file system under test: an absolute path in it may be a
/// disk with somebody's data.
pub fn check(fio: &Fio) -> Result<(), FioError> {
    for (option, value) in options(fio)? {
        let names_paths = matches!(option.as_str(), "filename" | "directory" | "filename_format");
        let leaves = value.split(':').any(|path| path.starts_with('/') || path.contains(".."));
        if names_paths && leaves {
            return Err(FioError::Outside { option, value });
        }
    }
    Ok(())
}

/// The job reads, so that its files must be there and cold before it starts.
pub fn reads(fio: &Fio) -> Result<bool, FioError> {
    let is_mode = |option: &str| matches!(option, "rw" | "readwrite");
    // Without one, fio reads: "read" is the default of rw.
    let modes: Vec<String> =
        options(fio)?.into_iter().filter(|(o, _)| is_mode(o)).map(|(_, mode)| mode).collect();
    Ok(modes.is_empty() || modes.iter().any(|mode| mode.contains("read") || mode.contains("rw")))
}

/// The command that runs the job, with its result in `output`, and beside it the rate over time of
/// time-based ones. A `randseed` of the job's own comes after ours and wins.
pub fn argv(fio: &Fio, name: &str, seed: u64, output: &Path) -> Vec<String> {
    let mut argv = own_arguments(seed, output);
    if let Some(window_ms) = window_ms(fio) {
        argv.extend([
            format!("--write_iops_log={}", output.with_extension("").display()),
            format!("--log_avg_msec={window_ms}"),
            "--per_job_logs=0".into(),
            "--log_unix_epoch=1".into(),
        ]);
    }
    argv.extend(fio.arguments(name));
    argv
}

/// What every job gets.
fn own_arguments(seed: u64, output: &Path) -> Vec<String> {
    vec![
        "fio".to_string(),
        "--output-format=json+".into(),
        format!("--output={}", output.display()),
        format!("--randseed={seed}"),
    ]
}

/// The log of the rate over time that belongs to `output` (fio(1), "write_bw_log": it is named
/// after what is logged).
fn rate_log(output: &Path) -> PathBuf {
    let stem = output.file_stem().unwrap_or_default().to_string_lossy();
    output.with_file_name(format!("{stem}_iops.log"))
}

/// The windows in which the rate of a time-based job is looked at; `None` where not all of it is
/// one, or where it has logs of its own.
pub fn window_ms(fio: &Fio) -> Option<u64> {
    const LOGS: [&str; 5] =
        ["write_iops_log", "log_avg_msec", "per_job_logs", "log_unix_epoch", "iopsavgtime"];
    let options = options(fio).ok()?;
    let has_logs = options.iter().any(|(option, _)| LOGS.contains(&option.as_str()));
    if has_logs || !is_time_based(&options) {
        return None;
    }
    let times = options.iter().filter(|(option, _)| matches!(&**option, "runtime" | "timeout"));
    let longest_ms = times.filter_map(|(_, time)| time_ms(time)).max();
    Some(longest_ms.map_or(WINDOW_MS_DEFAULT, |ms| (ms / WINDOWS).max(WINDOW_MS_LEAST)))
}

/// None of the jobs ends when its work is done. (fio's output does not repeat options without a
/// value, as `time_based` is usually written.)
fn is_time_based(options: &[(String, String)]) -> bool {
    let (mut global, mut jobs) = (false, Vec::new());
    let mut job: Option<usize> = None;
    for (option, value) in options {
        match (option.as_str(), job) {
            ("name", _) if value == "global" => job = None,
            ("name", _) => {
                job = Some(jobs.len());
                jobs.push(global);
            }
            ("time_based", Some(job)) => jobs[job] = value != "0",
            ("time_based", None) => global = value != "0",
            _ => {}
        }
    }
    !jobs.is_empty() && !jobs.contains(&false)
}

/// A time as fio reads it, in seconds where it has no unit (fio(1), "Parameter types").
fn time_ms(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit_ms = match unit {
        "" | "s" => 1000,
        "ms" => 1,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit_ms)
}

/// The command that lays out the job's files and does nothing else.
pub fn fill_argv(fio: &Fio, name: &str, seed: u64, output: &Path) -> Vec<String> {
    let mut argv = own_arguments(seed, output);
    argv.push("--create_only=1".into());
    argv.extend(fio.arguments(name));
    argv
}

/// Has fio read the job and do nothing else; its complaint, if it has one. Where an engine is
/// unknown, with the nearest of those that fio has.
pub fn refused(fio: &Fio) -> Result<Option<String>, ToolError> {
    let ask = |words: &[String]| {
        let argv: Vec<String> = std::iter::once("fio".into()).chain(words.to_vec()).collect();
        tool::ask(&argv, Path::new("/"), PARSE_LIMIT)
    };
    let words: Vec<String> =
        std::iter::once("--parse-only".into()).chain(fio.arguments("job")).collect();
    let answer = ask(&words)?;
    if answer.status.success() {
        return Ok(None);
    }
    // It says most things twice.
    let mut lines: Vec<&str> = answer.stderr.lines().filter(|line| !line.is_empty()).collect();
    lines.dedup();
    let said = lines.into_iter().take(2).collect::<Vec<_>>().join("; ");
    let engine = said.split_once("engine ").and_then(|(_, rest)| rest.split_once(" not loadable"));
    let Some((engine, _)) = engine else { return Ok(Some(said)) };
    let listed = ask(&["--enghelp".into()])?.stdout;
    let meant = meant(engine, listed.lines().skip(1).map(str::trim).filter(|it| !it.is_empty()));
    Ok(Some(format!("{said}; {meant}")))
}

/// The command that runs the job on the bare `device`, in as many bytes of it as its files would
/// have. Its own file names are left out; ours comes before the first `--name`, where it holds for
/// all jobs (fio(1), "Job file format": options before the first job are global).
pub fn raw_argv(fio: &Fio, name: &str, seed: u64, output: &Path, device: &str) -> Vec<String> {
    const NAMES: [&str; 5] =
        ["filename", "filename_format", "directory", "nrfiles", "file_service_type"];
    let option = |word: &str| {
        let word = word.trim_start_matches('-');
        word.split('=').next().unwrap_or_default().to_string()
    };
    let mut kept = Vec::new();
    let mut words = argv(fio, name, seed, output).into_iter().peekable();
    while let Some(word) = words.next() {
        let names_files = word.starts_with("--") && NAMES.contains(&option(&word).as_str());
        if !names_files {
            kept.push(word);
        } else if !word.contains('=') {
            words.next_if(|next| !next.starts_with("--"));
        }
    }
    let mut ours = vec![format!("--filename={device}")];
    // Jobs that run at once have a file each: here each has a part of the device.
    let size = kept.iter().find_map(|word| word.strip_prefix("--size="));
    ours.extend(size.filter(|it| !it.ends_with('%')).map(|it| format!("--offset_increment={it}")));
    kept.splice(4..4, ours);
    kept
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
pub struct FioResult {
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

/// Reads what fio wrote to `path` and beside it; `window_ms` is that of its job.
pub fn parse(path: &Path, window_ms: Option<u64>) -> Result<FioResult, FioError> {
    let shown = || path.display().to_string();
    let text = fs::read_to_string(path)
        .map_err(|source| FioError::Unreadable { path: shown(), source })?;
    // fio writes its notes ("fio: ...") into the same file, before the document.
    let start = text.find("{\n").unwrap_or(0);
    let output: Output = serde_json::from_str(&text[start..])
        .map_err(|error| FioError::Unknown { path: shown(), reason: error.to_string() })?;
    let mut result = FioResult::default();
    for job in &output.jobs {
        if job.error != 0 {
            return Err(FioError::Job { job: job.jobname.clone(), error: job.error });
        }
        add(&mut result, job);
    }
    own_figures(&mut result.samples, &output.jobs);
    result.queue = queue(&output);
    if let Some(window_ms) = window_ms {
        let log = fs::read_to_string(rate_log(path)).unwrap_or_default();
        result.rate_over_time = RateOverTime::new(window_ms * 1_000_000, rates(&log, window_ms));
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
        let near = 2 * (to_ms - before) <= 3 * window_ms;
        spans.push((if near { before } else { to_ms.saturating_sub(window_ms) }, to_ms, rate));
    }
    let begin_ms = spans.iter().map(|span| span.0).min().unwrap_or(0);
    let end_ms = spans.iter().map(|span| span.1).max().unwrap_or(0);
    // The last window may end a moment early.
    let windows = (end_ms - begin_ms + window_ms / 20) / window_ms;
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

fn add(result: &mut FioResult, job: &Job) {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(arguments: &[&str]) -> Fio {
        Fio::Arguments(arguments.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_job_that_leaves_the_file_system_is_refused() {
        for bad in ["--filename=/dev/sdb", "--directory=/mnt/x", "--filename=a:/b"] {
            assert!(matches!(check(&typed(&["--rw=write", bad])), Err(FioError::Outside { .. })));
        }
        check(&typed(&["--rw=write", "--filename=a:b", "--size=1g"])).unwrap();
        let error = check(&typed(&["--filename", "/dev/sdb"])).unwrap_err();
        assert!(error.to_string().contains("/dev/sdb"));
    }

    #[test]
    fn a_job_file_is_looked_into() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.fio");
        fs::write(&path, "[global]\nbs=4k\n; rw=read\n[a]\nrw = randwrite\n").unwrap();
        let fio = Fio::File(path.display().to_string());
        check(&fio).unwrap();
        assert!(!reads(&fio).unwrap());
        fs::write(&path, "[a]\nrw=randrw\ndirectory=/srv\n").unwrap();
        assert!(reads(&fio).unwrap());
        assert!(check(&fio).is_err());
        assert!(matches!(check(&typed(&["gone.fio"])), Err(FioError::JobFile { .. })));
    }

    #[test]
    fn a_job_on_the_bare_device_names_nothing_else() {
        let raw = |words: &[&str]| {
            let argv = raw_argv(&typed(words), "w", 7, Path::new("out"), "/dev/loop9");
            argv[4..].join(" ")
        };
        assert_eq!(
            raw(&["--name=w", "--filename=a", "--size=1m", "--directory", "d", "--numjobs=2"]),
            "--filename=/dev/loop9 --offset_increment=1m --name=w --size=1m --numjobs=2"
        );
        assert_eq!(raw(&["--name=a", "--rw=read"]), "--filename=/dev/loop9 --name=a --rw=read");
        let two = raw(&["--name=a", "--filename=x", "--name=b", "--filename=y", "--size=50%"]);
        assert_eq!(two, "--filename=/dev/loop9 --name=a --name=b --size=50%");
    }

    #[test]
    fn the_rate_over_time_is_asked_for_where_a_job_is_time_based() {
        let logs = |words: &[&str]| {
            let argv = argv(&typed(words), "w", 7, Path::new("raw/fio.json"));
            argv[4..].iter().take_while(|it| !it.starts_with("--name")).cloned().collect::<Vec<_>>()
        };
        assert_eq!(
            logs(&["--name=w", "--runtime=20", "--time_based"]),
            [
                "--write_iops_log=raw/fio",
                "--log_avg_msec=333",
                "--per_job_logs=0",
                "--log_unix_epoch=1"
            ]
        );
        assert_eq!(rate_log(Path::new("raw/fio.json")), Path::new("raw/fio_iops.log"));
        assert_eq!(logs(&["--name=w", "--runtime=20"]), [""; 0]);
        assert_eq!(logs(&["--name=w", "--time_based=0", "--runtime=20"]), [""; 0]);
        let window = |runtime: &str| {
            window_ms(&typed(&["--name=w", "--time_based=1", &format!("--runtime={runtime}")]))
        };
        let windows = ["1", "12s", "500ms", "2m", "1:00"].map(window);
        assert_eq!(windows, [100, 200, 100, 2000, 500].map(Some));
        assert_eq!(window_ms(&typed(&["--name=w", "--time_based", "--log_avg_msec=5"])), None);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.fio");
        let of_file = |text: &str| {
            fs::write(&path, text).unwrap();
            window_ms(&Fio::File(path.display().to_string()))
        };
        assert_eq!(of_file("[a]\ntime_based\nruntime=12\n"), Some(200));
        assert_eq!(of_file("[global]\ntime_based=1\nruntime=12\n[a]\n[b]\nruntime=1"), Some(200));
        assert_eq!(of_file("[a]\ntime_based\nruntime=12\n[b]\nruntime=12\n"), None);
        let second = ["--name=a", "--time_based", "--runtime=6", "--name=b", "--runtime=6"];
        assert_eq!(window_ms(&typed(&second)), None, "one of the two ends with its work");
    }

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
        assert!(matches!(parse(&path, None), Err(FioError::Job { error: 5, .. })));
        fs::write(&path, "nonsense").unwrap();
        assert!(matches!(parse(&path, None), Err(FioError::Unknown { .. })));
    }
}
