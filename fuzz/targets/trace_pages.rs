//! Pages of the kernel's ring buffer, of two processors, decoded by this kernel's formats or by
//! those that stand before a NUL; what comes out is kept, read back and taken apart.
#![no_main]

use std::io::Cursor;

use fsverdict_core::model::trace::{Account, Anatomy, Traced};
use fsverdict_core::render;
use fsverdict_core::trace::file::{self, Head, Line, Recorder, VERSION, Writer};
use fsverdict_core::trace::{self, Assembler, Between, Formats, Operations};
use libfuzzer_sys::fuzz_target;

const FORMATS: [&str; 6] = [
    include_str!("../../crates/core/tests/trace/block_bio_queue.format"),
    include_str!("../../crates/core/tests/trace/block_rq_issue.format"),
    include_str!("../../crates/core/tests/trace/block_rq_complete.format"),
    include_str!("../../crates/core/tests/trace/ext4_sync_file_enter.format"),
    include_str!("../../crates/core/tests/trace/jbd2_start_commit.format"),
    include_str!("../../crates/core/tests/trace/print.format"),
];

fuzz_target!(|bytes: &[u8]| {
    let (formats, pages) = match bytes.strip_prefix(b"name:") {
        None => (Formats::of(FORMATS), bytes),
        Some(_) => {
            let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
            let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
            (Formats::of([text.as_str()]), &bytes[end..])
        }
    };
    let Ok(formats) = formats else { return };
    let (one, other) = pages.split_at(pages.len() / 2);
    let mut assembler = Assembler::new(&[[7, 1]]);
    let mut items = Vec::new();
    let readers = [Cursor::new(one), Cursor::new(other)];
    trace::merge(readers, 4096, &formats, &mut |event| {
        items.extend(assembler.take(event));
        Ok(())
    })
    .expect("memory is read");
    items.extend(assembler.finish());
    let head = Head {
        trace: VERSION,
        recorder: Recorder::Tracefs,
        phase: "whole".into(),
        file_system: "ext4".into(),
        devices: Vec::new(),
        unnamed: None,
    };
    let mut text = Vec::new();
    let mut writer = Writer::new(&mut text, &head).expect("memory takes it");
    items.iter().for_each(|item| writer.item(item).expect("memory takes it"));
    writer.finish(0).expect("memory takes it");
    let mut back = Vec::new();
    file::read(text.as_slice(), &mut |line| {
        back.extend(if let Line::Item(item) = line { Some(item) } else { None });
        Ok(())
    })
    .expect("what was written is read");
    assert_eq!(items, back);
    let (mut account, mut fsyncs) = (Account::default(), Anatomy::default());
    let mut operations = Operations::new(Between::EXT4_FSYNC);
    for item in items {
        if let fsverdict_core::model::trace::Item::Entry(entry) = &item {
            account.take(entry);
        }
        operations.take(item).into_iter().for_each(|it| fsyncs.take(it));
    }
    let traced = Traced { account, fsyncs, ..Traced::default() };
    let _ = (render::anatomy(std::slice::from_ref(&traced)), render::order_figure(&traced));
});
