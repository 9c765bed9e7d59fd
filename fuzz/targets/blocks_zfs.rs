//! Devices with ZFS on them: each byte is something, and no walk goes on for ever. Checksums are not
//! looked at here.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../sparse.rs"]
mod sparse;

// What the list of names and values in a label begins with.
fuzz_target!(|bytes: &[u8]| {
    if let Some(device) = sparse::Sparse::of(bytes, (16 << 10, &[1, 1, 0, 0])) {
        device.ask();
    }
});
