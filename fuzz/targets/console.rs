//! What a machine says on its console, in pieces parted by NULs: its lines, and what went wrong.
#![no_main]
#![allow(dead_code, missing_docs, reason = "the product's own file")]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/host/src/place/vm/heard.rs"]
mod heard;

use heard::Console;

fuzz_target!(|said: &[u8]| {
    let (mut console, mut lines) = (Console::default(), 0);
    for piece in said.split(|byte| *byte == 0) {
        lines += console.hear(piece).len();
    }
    assert_eq!(lines, said.iter().filter(|byte| **byte == b'\n').count(), "each line once");
    let (end, panic) = (console.end(), console.panic());
    assert_eq!(panic.is_some(), end.starts_with("the kernel panicked: "), "{end}");
    // A byte that is no UTF-8 is shown in three, and lines are parted by as many.
    assert!(end.len() <= 3 * said.len() + 64, "{end}");
});
