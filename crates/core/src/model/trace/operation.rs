//! One operation of a log, in full.

use std::collections::BTreeMap;

use super::{Entry, Kind, Op};

/// One operation in full.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operation {
    /// The file.
    pub inode: u64,
    /// When it was begun.
    pub begin_ns: u64,
    /// When it had returned.
    pub end_ns: u64,
    /// The files that were written to since the operation before, in that order.
    pub files: Vec<u64>,
    /// What the device was given meanwhile, no matter which process had asked for it.
    pub entries: Vec<Entry>,
    /// No event was lost meanwhile.
    pub is_whole: bool,
}

/// What an operation is counted by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Row {
    /// Bytes of the file that it is about.
    Own,
    /// Bytes of other files.
    Others,
    /// Bytes of the journal, by what they are.
    Journal(String),
    /// Bytes of other metadata, by what they are.
    Metadata(String),
    /// Bytes whose kind is unknown.
    Unknown,
    /// Requests that write.
    Writes,
    /// Those of them that are to be durable when they complete.
    FuaWrites,
    /// Flushes.
    Flushes,
    /// Requests that read.
    Reads,
}

impl Operation {
    /// How long it took.
    pub fn latency_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns)
    }

    /// What the parts of a request count as, with their bytes.
    pub fn parts<'a>(&'a self, entry: &'a Entry) -> impl Iterator<Item = (Row, u64)> + 'a {
        let inodes = entry.parts.iter().map(|part| part.inode).chain(std::iter::repeat(None));
        entry.named().zip(inodes).map(|((kind, what, bytes), inode)| {
            let row = match kind {
                Kind::Data if inode == Some(self.inode) => Row::Own,
                Kind::Data => Row::Others,
                Kind::Journal => Row::Journal(what.into()),
                Kind::Metadata => Row::Metadata(what.into()),
                Kind::Unknown => Row::Unknown,
            };
            (row, bytes)
        })
    }

    /// What it adds up to.
    pub fn rows(&self) -> BTreeMap<Row, u64> {
        let mut rows = BTreeMap::new();
        let mut add = |row, count| *rows.entry(row).or_insert(0) += count;
        for entry in &self.entries {
            match entry.op {
                Op::Write => {
                    add(Row::Writes, 1);
                    if entry.flags.fua {
                        add(Row::FuaWrites, 1);
                    }
                    self.parts(entry).for_each(|(row, bytes)| add(row, bytes));
                }
                Op::Flush => add(Row::Flushes, 1),
                Op::Read => add(Row::Reads, 1),
                Op::Discard | Op::Other => {}
            }
        }
        rows
    }
}
