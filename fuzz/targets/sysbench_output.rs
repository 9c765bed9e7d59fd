//! What sysbench's own test of files prints when it has run.
#![no_main]
#![allow(dead_code, missing_docs, reason = "the product's own files")]

use std::fs;

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/host/src/workload"]
mod workload {
    pub mod left;
    pub mod sysbench {
        pub mod output;
    }
    pub mod printed {
        pub const KEPT_BYTES: u64 = 1 << 20;
    }
}

mod machine {
    pub use fsverdict_host::plain;
}

use workload::sysbench::output;

fuzz_target!(|text: &str| {
    let folder = tempfile::tempdir_in("/dev/shm").expect("memory");
    let path = folder.path().join("sysbench.stdout");
    fs::write(&path, text).expect("memory takes it");
    let Ok(result) = output::parse(&path) else { return };
    for sample in &result.samples {
        assert!(sample.value.is_finite(), "{}", sample.metric);
    }
    for histogram in result.histograms.values() {
        let _ = (histogram.mean_ns(), histogram.quantile_ns(0.99));
    }
});
