//! What reached a disk, request by request, and what of it belongs to one operation.

mod access;
mod account;
mod anatomy;
mod operation;
mod quantiles;
mod queue;
mod times;

use serde::{Deserialize, Serialize};

pub use access::Access;
pub use account::{Account, Parts, Share, bytes_of};
pub use anatomy::{Anatomy, Origin, Spread, Traced};
pub use operation::{Operation, Row};
pub use quantiles::Quantiles;
pub use queue::{Columns, Queue};
pub use times::{Layer, Stage, Stages};

/// Bytes of a sector, as the kernel counts (include/linux/blk_types.h, `SECTOR_SHIFT`).
pub const SECTOR_BYTES: u64 = 512;

/// What a request has the device do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Op {
    Read,
    Write,
    Flush,
    Discard,
    Other,
}

/// How a request is to be done: what `rwbs` says of it (block/blktrace.c, `blk_fill_rwbs`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Flags {
    /// What is in the device's cache must be durable before it.
    #[serde(skip_serializing_if = "is_false")]
    pub preflush: bool,
    /// It is to be durable when it completes.
    #[serde(skip_serializing_if = "is_false")]
    pub fua: bool,
    /// Somebody waits for it.
    #[serde(skip_serializing_if = "is_false")]
    pub sync: bool,
    /// The file system says that it is metadata.
    #[serde(skip_serializing_if = "is_false")]
    pub meta: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it so")]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl Flags {
    fn is_none(&self) -> bool {
        *self == Flags::default()
    }
}

/// A request of a device, as it was given to the device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// What it does.
    pub op: Op,
    /// Which device of the bed, from 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub device: u32,
    /// Where it begins; 0 of a flush.
    #[serde(default)]
    pub sector: u64,
    /// How long it is; 0 of a flush.
    #[serde(default)]
    pub sectors: u32,
    /// How the device was asked.
    #[serde(default, skip_serializing_if = "Flags::is_none")]
    pub flags: Flags,
    /// How the file system asked: the kernel makes flushes of a preflush, and of a FUA where the
    /// device has none.
    #[serde(default, skip_serializing_if = "Flags::is_none")]
    pub asked: Flags,
    /// The process that asked for it, if known: a name of at most 15 letters.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub process: String,
    /// When the file system asked for the first part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submit_ns: Option<u64>,
    /// When the device was given it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issue_ns: Option<u64>,
    /// When the device had done it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete_ns: Option<u64>,
    /// How many requests of the file system's (bios) became part of it, where that is known.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bios: u32,
    /// Where its data begin in the file that they are kept in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<u64>,
    /// What it writes or reads, part after part, where that has been looked up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Entry {
    /// One without further details yet.
    pub fn of(op: Op) -> Entry {
        Entry {
            op,
            device: 0,
            sector: 0,
            sectors: 0,
            flags: Flags::default(),
            asked: Flags::default(),
            process: String::new(),
            submit_ns: None,
            issue_ns: None,
            complete_ns: None,
            bios: 0,
            data: None,
            parts: Vec::new(),
        }
    }

    /// Its length.
    pub fn bytes(&self) -> u64 {
        u64::from(self.sectors) * SECTOR_BYTES
    }
}

/// What kind of thing a part of the disk is.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// What a file holds.
    Data,
    /// What is written ahead, and again in its own place later.
    Journal,
    /// Everything else of the file system, in its own place.
    Metadata,
    /// Nobody can tell.
    #[default]
    Unknown,
}

/// What a part of a request is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Its length.
    pub sectors: u32,
    /// What kind of thing it is.
    pub kind: Kind,
    /// Which, in the file system's own words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub what: String,
    /// The inode whose data it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inode: Option<u64>,
}

impl Part {
    /// It goes on with the same thing.
    pub fn is_like(&self, next: &Part) -> bool {
        (self.kind, &self.what, self.inode) == (next.kind, &next.what, next.inode)
    }
}

/// What the work or the file system was doing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    /// When.
    pub at_ns: u64,
    /// What, and with which inode: `fsync 12`.
    pub mark: String,
}

/// Something that happened and is not in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lost {
    /// Before when.
    pub at_ns: u64,
    /// How many events; 0 where that is not known.
    pub lost: u64,
}

/// A line of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Item {
    /// A request.
    Entry(Entry),
    /// A mark.
    Mark(Mark),
    /// A gap.
    Lost(Lost),
}
