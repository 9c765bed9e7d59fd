//! Partition tables: where the region begins that they are of, in sectors, and the device from its
//! beginning. Behind its bytes there are four gigabytes of zeros.
#![no_main]
#![allow(dead_code, missing_docs, reason = "the product's own file")]

use std::io::Write;

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/host/src/bed/tables.rs"]
mod tables;

use tables::{Region, SECTOR_BYTES};

fuzz_target!(|bytes: &[u8]| {
    let Some((first, device)) = bytes.split_first() else { return };
    let mut file = tempfile::tempfile_in("/dev/shm").expect("memory");
    file.write_all(device).expect("memory takes it");
    file.set_len(4 << 30).expect("holes take nothing");
    let start_bytes = u64::from(*first) * SECTOR_BYTES;
    for size_bytes in [(3 << 30), u64::MAX] {
        let region = Region { start_bytes, size_bytes };
        let table = tables::within(&file, region);
        assert!(table.parts.len() <= 1024, "there is an end");
        for part in table.parts.iter().chain(&table.own) {
            assert!(part.size_bytes > 0 && (region.holds(*part) || *part == region));
        }
    }
});
