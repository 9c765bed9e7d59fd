//! Images of kernels, whole or as if more were there.
#![no_main]
#![allow(dead_code, missing_docs, reason = "the product's own files")]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/host/src/place/vm/arch.rs"]
mod arch;
#[path = "../../crates/host/src/place/vm/image.rs"]
mod image;

fuzz_target!(|bytes: &[u8]| {
    for length in [bytes.len() as u64, u64::MAX] {
        if let Ok(called) = image::called(bytes, length) {
            assert!(called.release.len() + called.build.len() <= bytes.len().saturating_mul(3));
        }
    }
});
