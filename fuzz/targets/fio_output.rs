//! What fio says of its own job, and behind NULs its log of the rate over time and what it says of
//! its jobs while it reads them.
#![no_main]
#![allow(dead_code, missing_docs, reason = "the product's own files")]

use std::fs;

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/host/src/workload"]
mod workload {
    pub mod fio {
        pub mod jobs;
        pub mod output;
        pub mod rates;
    }
    pub mod left;
    pub mod printed {
        pub const KEPT_BYTES: u64 = 1 << 20;
    }
}

mod machine {
    pub use fsverdict_host::plain;
}

use workload::fio::{jobs, output};

fuzz_target!(|text: &str| {
    let folder = tempfile::tempdir_in("/dev/shm").expect("memory");
    let path = folder.path().join("fio.json");
    let mut texts = text.split('\0');
    let mut next = || texts.next().unwrap_or_default();
    fs::write(&path, next()).expect("memory takes it");
    fs::write(folder.path().join("fio_iops.log"), next()).expect("memory takes it");
    let jobs = jobs::read(next(), &[]).unwrap_or_default();
    let _ = output::parse(&path, &jobs, Some(100));
});
