//! The kernel's files of counters, twice, parted by NULs: what rises, falls, is missing or no number.
#![no_main]

use std::fs;
use std::path::Path;
use std::time::Duration;

use fsverdict_core::model::Device;
use fsverdict_host::probe::Probe;
use libfuzzer_sys::fuzz_target;

const FILES: [&str; 6] = [
    "proc/stat",
    "proc/meminfo",
    "sys/dev/block/7:3/stat",
    "proc/pressure/cpu",
    "proc/pressure/io",
    "proc/pressure/memory",
];

fuzz_target!(|bytes: &[u8]| {
    let root = tempfile::tempdir_in("/dev/shm").expect("memory");
    let mut texts = bytes.split(|byte| *byte == 0);
    let mut write = |root: &Path| {
        for file in FILES {
            let Some(text) = texts.next() else { return };
            let path = root.join(file);
            fs::create_dir_all(path.parent().expect("a folder")).expect("memory takes it");
            fs::write(path, text).expect("memory takes it");
        }
    };
    write(root.path());
    let devices = [Device { path: "/dev/loop3".into(), number: [7, 3], size_bytes: 1 << 30 }];
    let Ok(probe) = Probe::open(root.path(), &devices, Duration::from_millis(1)) else { return };
    let Ok(running) = probe.start() else { return };
    write(root.path());
    let _ = running.stop();
});
