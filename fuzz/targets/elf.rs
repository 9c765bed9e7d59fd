//! Modules of kernels, programs and libraries: what is asked of each, and what is left of it without
//! what is for debuggers.
#![no_main]
#![allow(dead_code, missing_docs, reason = "the product's own file")]

use std::io::Write;

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/host/src/place/vm/elf.rs"]
mod elf;

fuzz_target!(|bytes: &[u8]| {
    let mut file = tempfile::tempfile_in("/dev/shm").expect("memory");
    file.write_all(bytes).expect("memory takes it");
    let _ = elf::section(&file, ".modinfo");
    let _ = elf::needed(&file);
    let short = elf::without_debug(bytes.to_vec());
    // The sections, which may grow to twice the file, and their headers.
    assert!(short.len() <= 3 * bytes.len() + 8);
});
