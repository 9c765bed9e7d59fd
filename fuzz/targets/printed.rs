//! What benchmark programs print, and a figure that a pattern finds in it: a record holds numbers.
#![no_main]

use fsverdict_core::model::Pattern;
use fsverdict_core::printed;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let pattern: Pattern = "^(\\S+):GiB/s".parse().expect("a pattern");
    let figures = printed::read(text);
    for figure in figures.into_iter().chain(pattern.read("own", text)) {
        assert!(figure.value.is_finite(), "{}", figure.metric);
    }
});
