//! The parameters of a job, by fio's options.

use std::collections::BTreeMap;

use crate::model::{Bytes, Job, counted, near};

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

/// What else of fio's options an audit looks at, and the other half of a mix.
const READ: [&str; 21] = [
    "rw",
    "readwrite",
    "bs",
    "blocksize",
    "bssplit",
    "bsrange",
    "numjobs",
    "iodepth",
    "ioengine",
    "direct",
    "size",
    "filesize",
    "end_fsync",
    "fsync_on_close",
    "sync",
    "sync_file_range",
    "time_based",
    "runtime",
    "timeout",
    "zero_buffers",
    "rwmixread",
];
/// Options of fio's that are nearly spelled as those.
const OTHERS: [&str; 3] = ["ba", "ratemin", "rwmixwrite"];

/// A name that is a slip away from an option that matters: nobody would miss that option.
pub fn slip(name: &str) -> Option<String> {
    let known = || READ.iter().chain(&OPEN).copied();
    let is_known = known().chain(OTHERS).any(|it| it == name);
    let near = if is_known { Vec::new() } else { near(name, known()) };
    // A name that only begins another is one of its own.
    let near: Vec<&str> = near.into_iter().filter(|it| it.len() <= name.len() + 2).collect();
    (!near.is_empty())
        .then(|| format!("{name} is not an option of fio's: did you mean {}?", near.join(" or ")))
}

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
        lasts_s: get(&["runtime", "timeout"])
            .filter(|_| is_on("time_based") == Some(true))
            .and_then(|text| seconds(text)),
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

/// A time as fio has it: seconds, or with a unit.
fn seconds(text: &str) -> Option<f64> {
    let digits = text.trim_end_matches(char::is_alphabetic);
    let unit_s = match &text[digits.len()..] {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    Some(digits.parse::<f64>().ok()? * unit_s)
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
