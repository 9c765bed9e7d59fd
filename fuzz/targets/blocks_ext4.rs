//! Devices with ext2, ext3 and ext4 on them: each byte is something, and no walk goes on for ever.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../sparse.rs"]
mod sparse;

fuzz_target!(|bytes: &[u8]| {
    if let Some(device) = sparse::Sparse::of(bytes, (1024 + 0x38, &[0x53, 0xef])) {
        device.ask();
    }
});
