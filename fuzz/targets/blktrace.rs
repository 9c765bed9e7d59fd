//! Two files of blktrace's, of two processors; what comes out is counted and shown.
#![no_main]

use fsverdict_core::model::trace::{Account, Item, Stages, Traced};
use fsverdict_core::render;
use fsverdict_core::trace::{self, Assembler};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let (one, other) = bytes.split_at(bytes.len() / 2);
    let mut assembler = Assembler::new(&[[8, 0]]);
    let (mut account, mut stages) = (Account::default(), Stages::default());
    let (mut events, mut items) = (0_usize, Vec::new());
    let read = trace::blktrace([one, other], &mut |event| {
        events += 1;
        items.extend(assembler.take(event));
        Ok(())
    });
    items.extend(assembler.finish());
    // Before each record some may be missing.
    assert!(events <= 2 * (bytes.len() / 48), "each has a record of its own");
    assert!(items.len() <= events, "nothing comes of nothing");
    for item in items {
        if let Item::Entry(entry) = item {
            account.take(&entry);
            stages.take(&entry);
        }
    }
    let ends = read.map_or(0, |missing| missing.ends);
    assert!(ends <= 2);
    let traced = Traced { account, stages, cut_off: ends, ..Traced::default() };
    let _ = render::anatomy(&[traced]);
});
