//! blktrace's output: a file for each processor, with the records that the kernel made
//! (kernel/trace/blktrace.c, `__blk_add_trace` and `trace_note`).
//!
//! Records of a partition's sectors are of its whole disk. A message that was written to
//! `/sys/kernel/debug/block/DISK/msg` is a mark. How many records were lost is nowhere in the
//! files: blktrace prints it.

mod event;

use std::collections::BTreeMap;
use std::io::{self, Read};

use super::events::{Block, Event, EventKind, OWN_FLUSH_SECTOR, Process};
use super::merge::in_order;
use crate::model::trace::{Flags, Op, SECTOR_BYTES};
pub use event::BlktraceError;
use event::{IoTrace, IoTraces, category};

/// Names of so many processes are kept.
const NAMES_MAX: usize = 1 << 16;

/// What is missing from a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// Records, by their numbers.
    pub records: u64,
    /// Files that end within a record.
    pub ends: u32,
}

/// Hands over the events that the files of all processors have, in the order of time.
pub fn blktrace<R: Read>(
    files: impl IntoIterator<Item = R>,
    each: &mut dyn FnMut(Event) -> io::Result<()>,
) -> Result<Missing, BlktraceError> {
    let mut streams: Vec<IoTraces<R>> = files.into_iter().map(IoTraces::new).collect();
    let (mut told, mut missing) = (Told::default(), Missing::default());
    in_order(&mut streams, &mut |record: IoTrace| {
        let at_ns = record.at_ns;
        if let Some(lost) = told.lost_before(&record) {
            missing.records += lost;
            each(Event { at_ns, kind: EventKind::Lost(lost) })?;
        }
        if let Some(kind) = told.event(&record) {
            each(Event { at_ns, kind })?;
        }
        Ok::<(), BlktraceError>(())
    })?;
    missing.ends = streams.iter().map(|stream| u32::from(stream.is_cut_off)).sum();
    Ok(missing)
}

/// What the records before have told.
#[derive(Default)]
struct Told {
    names: BTreeMap<u32, Process>,
    /// The number of the last record of each device on each processor: these are counted apart
    /// (kernel/trace/blktrace.c, `__blk_add_trace`).
    numbers: BTreeMap<[u32; 2], u32>,
}

impl Told {
    /// How many records of the same device and processor are missing before this one. Notes have
    /// no number.
    fn lost_before(&mut self, record: &IoTrace) -> Option<u64> {
        if record.has(category::NOTE) {
            return None;
        }
        let before = self.numbers.insert([record.dev, record.processor], record.number)?;
        let gap = record.number.checked_sub(before)?.checked_sub(1)?;
        (gap > 0).then_some(gap.into())
    }

    fn event(&mut self, record: &IoTrace) -> Option<EventKind> {
        // enum blktrace_notify and blktrace_act.
        match (record.has(category::NOTE), record.what()) {
            (true, 0) => {
                self.name(record);
                None
            }
            (true, 2) => {
                let text = String::from_utf8_lossy(record.text());
                Some(EventKind::Mark(text.trim_end_matches(['\n', '\0']).into()))
            }
            (false, 1) => Some(EventKind::Queue(self.block(record))),
            (false, 7) => Some(EventKind::Issue(self.block(record))),
            (false, 8) => Some(EventKind::Complete(self.block(record))),
            _ => None,
        }
    }

    fn name(&mut self, record: &IoTrace) {
        let mut name = Process::default();
        name.iter_mut().zip(record.text()).for_each(|(to, from)| *to = *from);
        if self.names.len() < NAMES_MAX || self.names.contains_key(&record.process) {
            self.names.insert(record.process, name);
        }
    }

    fn block(&self, record: &IoTrace) -> Block {
        let op = op(record);
        Block {
            dev: record.dev,
            sector: if op == Op::Flush { 0 } else { record.sector },
            sectors: record.bytes.div_ceil(SECTOR_BYTES as u32),
            op,
            flags: Flags {
                preflush: record.has(category::FLUSH) && op != Op::Flush,
                fua: record.has(category::FUA),
                sync: record.has(category::SYNC),
                meta: record.has(category::META),
            },
            process: self.names.get(&record.process).copied().unwrap_or_default(),
        }
    }
}

/// As blkparse tells them apart (`fill_rwbs`), but for the kernel's own flushes.
fn op(record: &IoTrace) -> Op {
    let has = |category| record.has(category);
    let is_own = record.bytes == 0 && (!has(category::WRITE) || record.sector == OWN_FLUSH_SECTOR);
    if has(category::COMMAND) || has(category::ZONES) {
        Op::Other
    } else if has(category::DISCARD) {
        Op::Discard
    } else if has(category::FLUSH) && is_own {
        Op::Flush
    } else if has(category::WRITE) {
        Op::Write
    } else if record.bytes > 0 {
        Op::Read
    } else {
        Op::Other
    }
}

#[cfg(test)]
mod tests;
