//! fio's logs: what is read is a recording, and the log made of it is read.
#![no_main]

use fsverdict_core::recording::{self, iolog};
use libfuzzer_sys::fuzz_target;

fn source() -> iolog::Source {
    iolog::Source { folders: vec!["/w".into(), "/w/d".into()], keep_names: false }
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(read) = iolog::read(source(), bytes) else { return };
    let mut written = Vec::new();
    recording::write(&read, &mut written).expect("memory takes it");
    let again = recording::read(written.as_slice()).expect("a recording of ours is read");
    assert_eq!(again, read);
    let mut log = Vec::new();
    iolog::write(&read, &mut log).expect("memory takes it");
    iolog::read(source(), log.as_slice()).expect("a log of ours is read");
});
