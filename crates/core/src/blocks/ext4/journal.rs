//! ext4's journal, as jbd2 writes it.
//!
//! Layout: `journal_header_t` and what follows it in include/linux/jbd2.h, `do_one_pass` in
//! fs/jbd2/recovery.c; Documentation/filesystems/ext4/journal.rst. Numbers are big-endian. A block
//! of the file system that begins like a header is escaped in its copy, so only headers begin like
//! one.

use std::collections::BTreeMap;

use super::fast_commit::{UNTOLD, fast_commit};
use super::inode::Extent;
use crate::blocks::Piece;
use crate::blocks::bytes::{ReadAt, be16, be32, part, read};
use crate::blocks::error::Error;
use crate::blocks::what::{Journal, What};

const MAGIC: u32 = 0xc03b_3998;
/// Magic, type, transaction.
const HEADER_BYTES: usize = 12;
/// How much of the journal is read at once.
const CHUNK_BYTES: u64 = 1 << 20;
/// JBD2_MIN_JOURNAL_BLOCKS: a ring that would be shorter has no area for fast commits behind it.
const RING_BLOCKS_MIN: u64 = 1024;

/// s_feature_incompat of the journal's superblock.
mod incompat {
    pub const BITS_64: u32 = 0x2;
    pub const CHECKSUM_V2: u32 = 0x8;
    pub const CHECKSUM_V3: u32 = 0x10;
    pub const FAST_COMMIT: u32 = 0x20;
}

/// How the tags of a descriptor are laid out (`journal_tag_bytes`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tags {
    bytes: usize,
    is_v3: bool,
    has_64_bits: bool,
    /// The size of the checksum at the end of a descriptor.
    tail_bytes: usize,
}

impl Tags {
    fn of(incompat: u32) -> Tags {
        let has = |feature| incompat & feature != 0;
        let (is_v3, is_v2) = (has(incompat::CHECKSUM_V3), has(incompat::CHECKSUM_V2));
        let has_64_bits = has(incompat::BITS_64);
        let short = 8 + if is_v2 { 2 } else { 0 } + if has_64_bits { 4 } else { 0 };
        Tags {
            bytes: if is_v3 { 16 } else { short },
            is_v3,
            has_64_bits,
            tail_bytes: if is_v2 || is_v3 { 4 } else { 0 },
        }
    }

    /// The blocks that a descriptor announces.
    fn blocks(self, descriptor: &[u8]) -> Vec<u64> {
        const SAME_UUID: u32 = 0x2;
        const LAST: u32 = 0x8;
        let mut blocks = Vec::new();
        let mut at = HEADER_BYTES;
        while at + self.bytes <= descriptor.len().saturating_sub(self.tail_bytes) {
            let flags = match self.is_v3 {
                true => be32(descriptor, at + 4),
                false => u32::from(be16(descriptor, at + 6)),
            };
            let high = if self.has_64_bits { be32(descriptor, at + 8) } else { 0 };
            blocks.push(u64::from(high) << 32 | u64::from(be32(descriptor, at)));
            if flags & LAST != 0 {
                break;
            }
            at += self.bytes + if flags & SAME_UUID == 0 { 16 } else { 0 };
        }
        blocks
    }
}

/// A header block of the journal.
struct Head {
    transaction: u32,
    what: Journal,
    /// The blocks whose copies follow.
    announced: Vec<u64>,
}

/// A journal: where it lies, and what its blocks hold as far as is known.
#[derive(Clone, Debug)]
pub struct Log {
    runs: Vec<Extent>,
    block_bytes: u64,
    tags: Tags,
    /// The ring of transactions: its first block, and the one behind its last.
    ring: [u64; 2],
    contents: BTreeMap<u64, Journal>,
}

impl Log {
    /// Reads the journal that lies in `runs`, of a file system that may have fast commits; `None`
    /// where there is none.
    pub fn read(
        disk: &dyn ReadAt,
        runs: Vec<Extent>,
        block_bytes: u64,
        has_fast_commits: bool,
    ) -> Result<Option<Log>, Error> {
        let Some(first) = runs.first().filter(|run| run.logical == 0) else { return Ok(None) };
        let superblock = read(disk, first.physical * block_bytes, 1024)?;
        let log = Log::of(&superblock, runs, block_bytes, has_fast_commits);
        let Some(mut log) = log else { return Ok(None) };
        let (mut heads, mut contents) = (Vec::new(), BTreeMap::new());
        for run in &log.runs {
            let mut at = 0;
            while at < run.blocks {
                let blocks = (CHUNK_BYTES / block_bytes).max(1).min(run.blocks - at);
                let place = (run.physical + at) * block_bytes;
                let bytes = read(disk, place, (blocks * block_bytes) as usize)?;
                heads.extend(log.heads(run.logical + at, &bytes));
                contents.extend(log.fast(run.logical + at, &bytes));
                at += blocks;
            }
        }
        // If two transactions had a block, the newer one has it now.
        heads.sort_by_key(|(_, head)| head.transaction);
        heads.iter().for_each(|(logical, head)| log.announce(*logical, head, &mut contents));
        contents.extend(heads.iter().map(|(logical, head)| (*logical, head.what)));
        log.contents = contents;
        Ok(Some(log))
    }

    /// By the journal's superblock (`journal_superblock_t`).
    fn of(
        superblock: &[u8],
        runs: Vec<Extent>,
        block_bytes: u64,
        has_fast_commits: bool,
    ) -> Option<Log> {
        let is_one = be32(superblock, 0) == MAGIC && [3, 4].contains(&be32(superblock, 4));
        if !is_one || u64::from(be32(superblock, 0xc)) != block_bytes {
            return None;
        }
        // The first version has no features.
        let incompat = if be32(superblock, 4) == 4 { be32(superblock, 0x28) } else { 0 };
        let mapped = runs.last().map_or(0, |run| run.logical + run.blocks);
        let blocks = u64::from(be32(superblock, 0x10)).min(mapped);
        let fast = match be32(superblock, 0x54) {
            // JBD2_DEFAULT_FAST_COMMIT_BLOCKS
            0 => 256,
            count => u64::from(count),
        };
        // A journal that was closed says nothing of it (`jbd2_mark_journal_empty`).
        let is_open = incompat & incompat::FAST_COMMIT != 0;
        let is_known = has_fast_commits && blocks.saturating_sub(fast) >= RING_BLOCKS_MIN;
        let fast = if is_open || is_known { fast } else { 0 };
        let first = u64::from(be32(superblock, 0x14)).max(1);
        let ring = [first, blocks.saturating_sub(fast).max(first)];
        let tags = Tags::of(incompat);
        Some(Log { runs, block_bytes, tags, ring, contents: BTreeMap::new() })
    }

    /// The headers among the blocks in `bytes`; the first block is `logical`.
    fn heads(&self, logical: u64, bytes: &[u8]) -> Vec<(u64, Head)> {
        let blocks = (logical..).zip(bytes.chunks(self.block_bytes as usize));
        let ring = self.ring[0]..self.ring[1];
        let inside = blocks.filter(|(logical, _)| ring.contains(logical));
        inside.filter_map(|(logical, block)| Some((logical, self.head(block)?))).collect()
    }

    /// What the blocks of fast commits hold among those in `bytes`, `logical` being the first.
    fn fast(&self, logical: u64, bytes: &[u8]) -> Vec<(u64, Journal)> {
        let blocks = (logical..).zip(bytes.chunks(self.block_bytes as usize));
        let behind = blocks.filter(|(logical, _)| *logical >= self.ring[1]);
        behind.filter_map(|(logical, block)| Some((logical, fast_commit(block)?))).collect()
    }

    fn head(&self, block: &[u8]) -> Option<Head> {
        if block.len() < HEADER_BYTES || be32(block, 0) != MAGIC {
            return None;
        }
        let number = be32(block, 8);
        let transaction = u64::from(number);
        let mut announced = Vec::new();
        let what = match be32(block, 4) {
            1 => {
                announced = self.tags.blocks(block);
                Journal::Descriptor { transaction, copies: announced.len() as u32 }
            }
            2 => Journal::Commit { transaction },
            5 => {
                // r_count counts bytes, the header's 16 among them.
                let each = if self.tags.has_64_bits { 8 } else { 4 };
                let blocks = be32(block, HEADER_BYTES).saturating_sub(16) / each;
                Journal::Revoke { transaction, blocks }
            }
            _ => return None,
        };
        Some(Head { transaction: number, what, announced })
    }

    /// Says which blocks behind a descriptor are copies of what. The ring has no end.
    fn announce(&self, logical: u64, head: &Head, contents: &mut BTreeMap<u64, Journal>) {
        let [first, end] = self.ring;
        let behind = (logical + 1..end).chain(first..logical);
        for (at, block) in behind.zip(&head.announced) {
            let of = block.saturating_mul(self.block_bytes);
            contents.insert(at, Journal::Copy { transaction: u64::from(head.transaction), of });
        }
    }

    /// What the blocks in `bytes` tell, `logical` being the first.
    fn tell(&self, logical: u64, bytes: &[u8], contents: &mut BTreeMap<u64, Journal>) {
        for (logical, head) in self.heads(logical, bytes) {
            self.announce(logical, &head, contents);
            contents.insert(logical, head.what);
        }
        contents.extend(self.fast(logical, bytes));
    }

    /// Takes into account what was written at `offset`.
    pub fn note(&mut self, offset: u64, written: &[u8]) {
        let mut contents = std::mem::take(&mut self.contents);
        for (logical, bytes) in self.inside(offset, written) {
            let blocks = bytes.len() as u64 / self.block_bytes;
            // Headers are gone, and copies may be those that a descriptor has announced.
            let inside = contents.range(logical..logical + blocks);
            let headers = inside.filter(|(_, part)| !matches!(part, Journal::Copy { .. }));
            for at in headers.map(|(at, _)| *at).collect::<Vec<_>>() {
                contents.remove(&at);
            }
            self.tell(logical, bytes, &mut contents);
        }
        self.contents = contents;
    }

    /// The parts of what was written at `offset` that lie in the journal, from whole block on, each
    /// with its first block.
    fn inside<'a>(&self, offset: u64, written: &'a [u8]) -> Vec<(u64, &'a [u8])> {
        let end = offset.saturating_add(written.len() as u64);
        let runs = self.runs.iter().filter_map(|run| {
            let place = run.physical * self.block_bytes;
            let begin = offset.max(place).next_multiple_of(self.block_bytes);
            let stop = end.min(place + run.blocks * self.block_bytes);
            let bytes = part(written, (begin - offset) as usize, stop.checked_sub(begin)? as usize);
            Some((run.logical + (begin - place) / self.block_bytes, bytes))
        });
        runs.collect()
    }

    /// The journal's block at a place.
    fn logical(&self, place: u64) -> Option<u64> {
        let block = place / self.block_bytes;
        let run = self
            .runs
            .iter()
            .find(|run| (run.physical..run.physical + run.blocks).contains(&block))?;
        Some(run.logical + block - run.physical)
    }

    /// Says of pieces of the journal which part they are, by what was written there if that is at
    /// hand.
    pub fn refine(&self, pieces: &[Piece], written: Option<(u64, &[u8])>) -> Vec<Piece> {
        let mut now = BTreeMap::new();
        if let Some((offset, bytes)) = written {
            for (logical, bytes) in self.inside(offset, bytes) {
                self.tell(logical, bytes, &mut now);
            }
        }
        let mut refined: Vec<Piece> = Vec::new();
        for piece in pieces {
            match piece.what {
                What::Journal(_) => self.split(*piece, written.map(|_| &now), &mut refined),
                _ => refined.push(*piece),
            }
        }
        refined
    }

    fn split(&self, piece: Piece, now: Option<&BTreeMap<u64, Journal>>, refined: &mut Vec<Piece>) {
        let mut offset = piece.offset;
        let end = piece.offset + piece.length;
        while offset < end {
            let next = (offset / self.block_bytes + 1) * self.block_bytes;
            let length = next.min(end) - offset;
            let part = self.logical(offset).map_or(Journal::Other, |at| self.part(at, now));
            let what = What::Journal(part);
            match refined.last_mut() {
                Some(before)
                    if before.what == what
                        && [Journal::Other, UNTOLD].contains(&part)
                        && before.offset + before.length == offset =>
                {
                    before.length += length;
                }
                _ => refined.push(Piece { offset, length, what }),
            }
            offset += length;
        }
    }

    /// What a block of the journal is; `now` has what was found in the data written there.
    fn part(&self, logical: u64, now: Option<&BTreeMap<u64, Journal>>) -> Journal {
        if logical == 0 {
            return Journal::Superblock;
        }
        if logical >= self.ring[1] {
            return now.unwrap_or(&self.contents).get(&logical).copied().unwrap_or(UNTOLD);
        }
        let known = self.contents.get(&logical).copied();
        match now.map(|now| now.get(&logical).copied()) {
            Some(Some(told)) => told,
            // A block without a header now is no header, whatever was there before.
            Some(None) => {
                known.filter(|part| matches!(part, Journal::Copy { .. })).unwrap_or(Journal::Other)
            }
            None => known.unwrap_or(Journal::Other),
        }
    }
}
