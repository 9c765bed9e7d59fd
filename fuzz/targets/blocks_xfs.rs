//! Devices with XFS on them: each byte is something, and no walk goes on for ever.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../sparse.rs"]
mod sparse;

fuzz_target!(|bytes: &[u8]| {
    if let Some(device) = sparse::Sparse::of(bytes, (0, b"XFSB")) {
        device.ask();
    }
});
