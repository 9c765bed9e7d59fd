//! The parameters of a job, by fio's options.

use std::collections::BTreeMap;

use crate::model::{Bytes, Job, counted};

/// Options that make operations begin at other times than when one before them ends, or take time
/// that fio's `lat` leaves out (fio(1)).
const OPEN: [&str; 12] = [
    "rate",
    "rate_iops",
    "rate_min",
    "thinktime",
    "fsync",
    "fdatasync",
    "verify",
    "flow",
    "latency_target",
    "io_submit_mode",
    "iodepth_low",
    "serialize_overlap",
];

/// The job that has `options`, by name.
pub fn job(options: &BTreeMap<String, String>) -> Job {
    let get = |names: &[&str]| names.iter().find_map(|name| options.get(*name));
    let whole = |names: &[&str]| get(names).map_or(Some(1), |text| text.parse().ok());
    let is_on = |name: &str| options.get(name).map(|text| !matches!(text.as_str(), "0" | "false"));
    // `4k,8k` is for reads, writes and trims apart.
    let block = match get(&["bs", "blocksize"]) {
        Some(text) => bytes(text),
        None => Some(4096),
    };
    let one_size = !options.keys().any(|it| it.starts_with("bssplit") || it.starts_with("bsrange"));
    let syncs = ["fsync", "fdatasync", "end_fsync", "fsync_on_close", "sync", "sync_file_range"];
    let synced = syncs.iter().any(|name| is_on(name) == Some(true));
    Job {
        is_fio: true,
        mode: get(&["rw", "readwrite"]).cloned(),
        block_bytes: block.filter(|_| one_size),
        jobs: whole(&["numjobs"]),
        depth: whole(&["iodepth"]),
        engine: get(&["ioengine"]).cloned(),
        direct: Some(is_on("direct").unwrap_or(false)),
        size_bytes: get(&["size", "filesize"]).and_then(|text| bytes(text)),
        synced: Some(synced),
        closed_loop: is_on("time_based") == Some(true) && !is_open(options),
        zeros: is_on("zero_buffers") == Some(true),
    }
}

/// An option says that operations do not just follow one another.
pub fn is_open(options: &BTreeMap<String, String>) -> bool {
    options.keys().any(|name| OPEN.contains(&name.as_str()))
}

/// What is known of the job, in words; `None`: nothing.
pub fn described(job: &Job) -> Option<String> {
    let words = [
        job.mode.clone(),
        job.block_bytes.map(|bytes| format!("blocks of {}", Bytes(bytes))),
        job.jobs.map(|jobs| counted(jobs, "task")),
        job.depth.map(|depth| format!("depth {depth}")),
        job.engine.clone(),
        job.direct.map(|direct| if direct { "direct" } else { "buffered" }.into()),
    ];
    let words: Vec<String> = words.into_iter().flatten().collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// A size as fio and people write it.
pub fn bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let bare = match text.to_ascii_lowercase() {
        lower if lower.ends_with("ib") => lower,
        lower => lower.trim_end_matches('b').to_string(),
    };
    bare.parse::<Bytes>().ok().map(|bytes| bytes.0)
}
