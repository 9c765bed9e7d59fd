//! A log of dm-log-writes.
#![no_main]

use fsverdict_core::model::trace::Item;
use fsverdict_core::trace::LogWrites;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut log) = LogWrites::new(bytes) else { return };
    let mut data = Vec::new();
    let mut items = 0_u64;
    while let Ok(Some(item)) = log.next(&mut data) {
        items += 1;
        if let Item::Entry(entry) = item {
            assert!(data.is_empty() || data.len() as u64 == entry.bytes());
        }
    }
    assert!(items <= bytes.len() as u64 / 512, "each has a sector of its own");
});
