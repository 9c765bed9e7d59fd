//! What a guest hands back: an archive with its answer, its record and a trial's files, which are
//! unpacked.
#![no_main]
#![allow(dead_code, missing_docs, reason = "the product's own file")]

use std::fs;

use fsverdict_core::model::{Record, from_json};
use fsverdict_host::place::vm::guest::{ANSWER, Answer};
use libfuzzer_sys::fuzz_target;

#[path = "../../crates/host/src/place/vm/archive.rs"]
mod archive;
mod machine {
    pub use fsverdict_host::folder;
}

use archive::Archive;
use machine::folder::Folder;

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut files) = archive::files(bytes) else { return };
    let mut again = Archive::new(Vec::new());
    for (name, content) in &files {
        again.bytes(name, 0o644, content).expect("memory takes it");
    }
    let again = again.finish().expect("memory takes it");
    assert_eq!(archive::files(again.as_slice()).expect("what was written is read"), files);
    let answer = files.remove(ANSWER).unwrap_or_default();
    let _ = serde_json::from_slice::<Answer>(&answer);
    let record = files.remove("record.json").unwrap_or_default();
    let _ = str::from_utf8(&record).map(from_json::<Record>);
    let scene = tempfile::tempdir_in("/dev/shm").expect("memory");
    let within = scene.path().join("within");
    fs::create_dir(&within).expect("memory takes it");
    let _ = archive::unpack(&files, &Folder::open(&within).expect("it is there"));
    let beside = fs::read_dir(scene.path()).expect("it is there").count();
    assert_eq!(beside, 1, "all of it is within");
});
