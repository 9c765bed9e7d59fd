//! Packed runs. What does not begin as a gzip is packed into one first, so that what is fuzzed is
//! the tar within.
#![no_main]
#![allow(dead_code, unused_imports, missing_docs, reason = "the product's own files")]

use std::fs;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use libfuzzer_sys::fuzz_target;

#[path = "../../crates/cli/src/pack/mod.rs"]
mod pack;

fuzz_target!(|bytes: &[u8]| {
    let file = tempfile::NamedTempFile::new_in("/dev/shm").expect("memory");
    let packed = match bytes.starts_with(&[0x1f, 0x8b]) {
        true => bytes.to_vec(),
        false => {
            let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
            gzip.write_all(bytes).expect("memory takes it");
            gzip.finish().expect("memory takes it")
        }
    };
    fs::write(file.path(), packed).expect("memory takes it");
    let _ = pack::is_pack(file.path());
    let _ = pack::read(file.path(), &|_| true, &mut |_, _| Ok(()));
});
