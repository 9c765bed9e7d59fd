//! The text of strace: whatever it says, a recording comes out that can be read.
#![no_main]

use fsverdict_core::model::Laid;
use fsverdict_core::recording::{self, Found, Wanted, Watch};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = recording::tracer_ns(text.lines());
    let wanted = Wanted {
        folders: vec![("/w".into(), 0)],
        working_directory: "/w".into(),
        umask: 0o022,
        keep_names: false,
        tracer_ns: 100,
    };
    let link = Laid::Link { target: "a".into() };
    let link = Found { path: "/w/link".into(), what: link, identity: None };
    let mut watch = Watch::new(wanted, vec![link.clone()]);
    text.lines().for_each(|line| watch.foresee(line));
    text.lines().for_each(|line| watch.read(line));
    let recorded = watch.finish(vec![link]);
    let mut written = Vec::new();
    recording::write(&recorded, &mut written).expect("memory takes it");
    recording::read(written.as_slice()).expect("a recording of ours is read");
});
