//! Records of the ring buffer as events: of the block layer, of file systems, and marks.

use super::format::{Field, Format, FormatError};
use crate::model::trace::{Flags, Op};

/// The name of a process, as the kernel keeps it: at most 15 letters and a NUL (`TASK_COMM_LEN`).
pub type Process = [u8; 16];

/// Where a flush is that the kernel makes itself: before Linux 4.8 it is a write of no length there
/// (block/blk-core.c, `blk_rq_init`; block/blk-flush.c, `WRITE_FLUSH`).
pub const OWN_FLUSH_SECTOR: u64 = u64::MAX;

/// What an event says of a request or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The device's number within the kernel (include/linux/kdev_t.h).
    pub dev: u32,
    /// Where.
    pub sector: u64,
    /// How long.
    pub sectors: u32,
    /// What.
    pub op: Op,
    /// How.
    pub flags: Flags,
    /// Who; all zeros where the event does not say.
    pub process: Process,
}

/// What has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The file system has asked for this.
    Queue(Block),
    /// The device has been given it.
    Issue(Block),
    /// The device has done it, or a part of it.
    Complete(Block),
    /// A mark, of the work or of the file system.
    Mark(String),
    /// Events are missing; how many, or 0.
    Lost(u64),
}

/// Something that has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub at_ns: u64,
    /// What.
    pub kind: EventKind,
}

/// Where an event has what is needed of it.
#[derive(Clone, Debug)]
enum Layout {
    Queue(BlockFields),
    Issue(BlockFields),
    Complete(BlockFields),
    /// A text.
    Text(Field),
    /// An event that is a mark by its name, with a number.
    Named(String, Field),
}

#[derive(Clone, Copy, Debug)]
struct BlockFields {
    dev: Field,
    sector: Field,
    sectors: Field,
    rwbs: Field,
    process: Option<Field>,
}

impl BlockFields {
    fn of(format: &Format) -> Result<BlockFields, FormatError> {
        Ok(BlockFields {
            dev: format.field("dev")?,
            sector: format.field("sector")?,
            sectors: format.field("nr_sector")?,
            rwbs: format.field("rwbs")?,
            process: format.field("comm").ok(),
        })
    }

    fn read(&self, record: &[u8]) -> Option<Block> {
        let (sector, sectors) = (self.sector.number(record)?, self.sectors.number(record)? as u32);
        let (op, flags) = at(sector, sectors, meaning(self.rwbs.text(record)?));
        let mut process = Process::default();
        let name = self.process.and_then(|field| field.text(record)).unwrap_or_default();
        process.iter_mut().zip(name).for_each(|(to, from)| *to = *from);
        Some(Block {
            dev: self.dev.number(record)? as u32,
            sector: if op == Op::Flush { 0 } else { sector },
            sectors,
            op,
            flags,
            process,
        })
    }
}

/// Before Linux 4.8 had an operation for it ("block, drivers, fs: rename REQ_FLUSH to
/// REQ_PREFLUSH", "block, drivers: add REQ_OP_FLUSH operation") a request that flushes writes
/// nothing, nowhere: `FWS`.
fn at(sector: u64, sectors: u32, (op, flags): (Op, Flags)) -> (Op, Flags) {
    match op == Op::Write && sectors == 0 && sector == OWN_FLUSH_SECTOR {
        true => (Op::Flush, Flags { preflush: false, ..flags }),
        false => (op, flags),
    }
}

/// `FWFSM`: block/blktrace.c, `blk_fill_rwbs`. A preflush comes before the operation; a request
/// with one and without an operation of its own is a flush, as a write of no length is.
fn meaning(rwbs: &[u8]) -> (Op, Flags) {
    let mut flags = Flags::default();
    let rest = match rwbs {
        [b'F', rest @ ..] if !rest.is_empty() => {
            flags.preflush = true;
            rest
        }
        rest => rest,
    };
    let (op, rest) = match rest {
        [b'R', rest @ ..] => (Op::Read, rest),
        [b'W', rest @ ..] => (Op::Write, rest),
        [b'D', b'E', rest @ ..] | [b'D', rest @ ..] => (Op::Discard, rest),
        [b'F', rest @ ..] => (Op::Flush, rest),
        [b'N', rest @ ..] if flags.preflush => (Op::Flush, rest),
        [_, rest @ ..] => (Op::Other, rest),
        [] => (Op::Other, rest),
    };
    flags.preflush &= op != Op::Flush;
    flags.fua = rest.contains(&b'F');
    flags.sync = rest.contains(&b'S');
    flags.meta = rest.contains(&b'M');
    (op, flags)
}

/// Events that are marks, each with the number that goes with its name.
const NAMED: [(&str, &str); 4] = [
    ("ext4_sync_file_enter", "ino"),
    ("ext4_sync_file_exit", "ino"),
    ("jbd2_start_commit", "transaction"),
    ("jbd2_end_commit", "transaction"),
];

/// How this kernel writes the events that are decoded.
#[derive(Clone, Debug)]
pub struct Formats {
    layouts: Vec<(u16, Layout)>,
    /// Where the number of an event's kind is: the same in all of them.
    id: Field,
}

impl Formats {
    /// By the texts of their `format` files. Events that mean nothing here are left out.
    pub fn of<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Formats, FormatError> {
        let mut layouts = Vec::new();
        let mut id = Field { offset: 0, size: 2 };
        for text in texts {
            let format = Format::parse(text)?;
            id = format.field("common_type")?;
            let named = NAMED.iter().find(|(name, _)| *name == format.name);
            let layout = match (format.name.as_str(), named) {
                ("block_bio_queue", _) => Layout::Queue(BlockFields::of(&format)?),
                ("block_rq_issue", _) => Layout::Issue(BlockFields::of(&format)?),
                ("block_rq_complete", _) => Layout::Complete(BlockFields::of(&format)?),
                ("print", _) => Layout::Text(format.field("buf")?),
                (name, Some((_, field))) => Layout::Named(name.into(), format.field(field)?),
                _ => continue,
            };
            layouts.push((format.id, layout));
        }
        Ok(Formats { layouts, id })
    }

    /// What the record says; `None` of one that is not known, or is too short.
    pub fn event(&self, at_ns: u64, record: &[u8]) -> Option<Event> {
        let id = self.id.number(record)?;
        let (_, layout) = self.layouts.iter().find(|(known, _)| u64::from(*known) == id)?;
        let kind = match layout {
            Layout::Queue(fields) => EventKind::Queue(fields.read(record)?),
            Layout::Issue(fields) => EventKind::Issue(fields.read(record)?),
            Layout::Complete(fields) => EventKind::Complete(fields.read(record)?),
            Layout::Text(field) => {
                let text = String::from_utf8_lossy(field.text(record)?);
                EventKind::Mark(text.trim_end_matches('\n').into())
            }
            Layout::Named(name, field) => {
                EventKind::Mark(format!("{name} {}", field.number(record)?))
            }
        };
        Some(Event { at_ns, kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_mean_what_the_kernel_means_by_them() {
        let said = |rwbs: &str| {
            let (op, flags) = meaning(rwbs.as_bytes());
            let Flags { preflush, fua, sync, meta } = flags;
            (op, [preflush, fua, sync, meta].map(u8::from))
        };
        assert_eq!(said("WSM"), (Op::Write, [0, 0, 1, 1]));
        assert_eq!(said("FWFSM"), (Op::Write, [1, 1, 1, 1]));
        assert_eq!(said("WFS"), (Op::Write, [0, 1, 1, 0]));
        assert_eq!(said("RAM"), (Op::Read, [0, 0, 0, 1]));
        assert_eq!(said("FF"), (Op::Flush, [0, 0, 0, 0]));
        assert_eq!(said("F"), (Op::Flush, [0, 0, 0, 0]));
        assert_eq!(said("FN"), (Op::Flush, [0, 0, 0, 0]));
        assert_eq!(said("DE"), (Op::Discard, [0, 0, 0, 0]));
        assert_eq!(said("N"), (Op::Other, [0, 0, 0, 0]));
        assert_eq!(said(""), (Op::Other, [0, 0, 0, 0]));
    }

    #[test]
    fn a_write_of_nothing_to_nowhere_is_an_old_kernels_flush() {
        let said = |sector, sectors| at(sector, sectors, meaning(b"FWS"));
        let preflushed = (Op::Write, Flags { preflush: true, sync: true, ..Flags::default() });
        let flush = (Op::Flush, Flags { sync: true, ..Flags::default() });
        assert_eq!(said(u64::MAX, 0), flush);
        assert_eq!([said(64, 8), said(64, 0)], [preflushed, preflushed]);
    }
}
