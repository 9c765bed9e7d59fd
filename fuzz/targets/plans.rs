//! Plans, uses, and the figures that a command gives: what is read is written and read the same.
#![no_main]

use fsverdict_core::model::{Plan, Purpose, figures};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = Purpose::parse(text);
    let _ = figures(text);
    let Ok(plan) = Plan::parse(text) else { return };
    if plan.check().is_ok() {
        let written = toml::to_string(&plan).expect("a plan is TOML");
        let again = Plan::parse(&written).expect("what was written is read");
        assert_eq!(toml::to_string(&again).expect("and written again"), written);
    }
});
