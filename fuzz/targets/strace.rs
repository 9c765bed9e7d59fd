//! The text of strace: whatever it says, a recording comes out that can be read.
#![no_main]

use fsverdict_core::model::Laid;
use fsverdict_core::recording::{self, Fault, Faults, Found, Wanted, Watch};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = recording::tracer_ns(text.lines());
    let wanted = Wanted {
        folders: vec![("/w".into(), 0)],
        working_directory: "/w".into(),
        umask: 0o022,
        keep_names: false,
        tracer_ns: 100,
        faults: Faults::Told,
        page_bytes: 4096,
    };
    let link = Laid::Link { target: "a".into() };
    let link = Found { path: "/w/link".into(), what: link, identity: None };
    let mut watch = Watch::new(wanted, vec![link.clone()]);
    text.lines().for_each(|line| watch.foresee(line));
    for line in text.lines() {
        watch.read(line);
        // Where the first mapping of a thread may well be.
        let thread = line.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(7);
        let at_ns = recording::time_ns(line).unwrap_or(0);
        watch.fault(&Fault { thread, at_ns, address: 0x1000, writes: Some(at_ns % 2 == 0) });
    }
    let recorded = watch.finish(vec![link]);
    let mut written = Vec::new();
    recording::write(&recorded, &mut written).expect("memory takes it");
    recording::read(written.as_slice()).expect("a recording of ours is read");
});
