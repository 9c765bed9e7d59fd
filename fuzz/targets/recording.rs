//! Recordings: what is read is written and read the same, and becomes a log of fio's.
#![no_main]

use fsverdict_core::recording::{self, iolog};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = recording::read_head(bytes);
    let Ok(read) = recording::read(bytes) else { return };
    let mut written = Vec::new();
    recording::write(&read, &mut written).expect("memory takes it");
    let again = recording::read(written.as_slice()).expect("what was written is read");
    assert_eq!(again, read);
    iolog::write(&read, Vec::new()).expect("memory takes it");
});
