//! Settings as people write them: scripts, fstab, sysctl.conf, udev rules.
#![no_main]

use fsverdict_core::script;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = script::read(text);
});
