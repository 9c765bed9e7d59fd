//! What fio says of its own job, and its log of the rate over time behind a NUL.
#![no_main]
#![allow(dead_code, missing_docs, reason = "the product's own file")]

use std::fs;

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/host/src/workload/fio/output.rs"]
mod output;

fuzz_target!(|text: &str| {
    let folder = tempfile::tempdir_in("/dev/shm").expect("memory");
    let path = folder.path().join("fio.json");
    let (json, log) = text.split_once('\0').unwrap_or((text, ""));
    fs::write(&path, json).expect("memory takes it");
    fs::write(folder.path().join("fio_bw.1.log"), log).expect("memory takes it");
    let _ = output::parse(&path, Some(100));
});
