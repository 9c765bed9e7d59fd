//! The model's requests: what they write, but not where.

use crate::model::trace::{Entry, Kind, Op, Part, SECTOR_BYTES};

pub(super) fn part(kind: Kind, what: &str, bytes: u64) -> Part {
    let sectors = u32::try_from(bytes / SECTOR_BYTES).unwrap_or(u32::MAX);
    Part { sectors, kind, what: what.into(), inode: None }
}

/// A request that writes this; nothing is said of its place.
pub(super) fn write(parts: Vec<Part>) -> Entry {
    let sectors = parts.iter().map(|part| part.sectors).fold(0, u32::saturating_add);
    Entry { sectors, parts, ..Entry::of(Op::Write) }
}

pub(super) fn flush() -> Entry {
    Entry::of(Op::Flush)
}
