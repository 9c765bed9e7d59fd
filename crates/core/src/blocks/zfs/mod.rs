//! ZFS on one device, or on one of the devices of a mirror.
//!
//! Everything is reached from the newest uberblock: the object set of the whole pool (MOS), from it
//! the data sets, from these the files. An uberblock counts if the block that it points to has the
//! checksum that it gives. Each data set points to its intent log.

mod dnode;
mod former;
mod intent_log;
mod label;
mod packed;
mod paths;
mod pointer;
mod walk;
mod zap;

pub use label::Label;

use std::collections::BTreeMap;

use super::bytes::ReadAt;
use super::error::Error;
use super::spans::Spans;
use super::what::{Inode, Pool, What};
use super::{Map, Piece, Written};
use former::Former;
use intent_log::LogBlock;
use label::{LABEL_BYTES, RING, START_BYTES};
use walk::Walk;

/// The device of a pool, where `disk` is one.
pub fn label(disk: &dyn ReadAt) -> Result<Option<Label>, Error> {
    Label::read(disk)
}

/// Reads all there is.
pub fn map(disk: &dyn ReadAt, label: &Label) -> Result<Map, Error> {
    let mut uberblocks = label.uberblocks(disk);
    let groups = uberblocks.iter().map(|uberblock| (uberblock.slot, uberblock.group)).collect();
    let mut walk = Walk::new(disk, label);
    claim_labels(label, &mut walk.spans);
    loop {
        let newest = uberblocks.pop();
        let newest = newest.ok_or(Error::Damaged { file_system: "ZFS", what: "no uberblock" })?;
        if walk.pool(&newest) {
            break;
        }
    }
    walk.claim_free();
    let (names, first) = walk.names();
    while let Some(earlier) = uberblocks.pop() {
        walk.earlier(&earlier);
    }
    Ok(Map {
        file_system: "zfs",
        block_bytes: 1 << label.shift,
        spans: walk.spans,
        names,
        written: Written::Zfs(Past {
            first,
            groups,
            former: walk.former,
            births: walk.births,
            until: None,
        }),
    })
}

fn claim_labels(label: &Label, spans: &mut Spans) {
    for (copy, place) in (0..).zip(&label.places) {
        spans.claim(*place, RING, What::Pool(Pool::Label { copy }));
        let slots = (LABEL_BYTES - RING) / label.slot_bytes();
        for slot in 0..slots {
            let at = place + RING + slot * label.slot_bytes();
            let what = What::Pool(Pool::Uberblock { copy, slot: slot as u32 });
            spans.claim(at, label.slot_bytes(), what);
        }
    }
    let boot = label.base + 2 * LABEL_BYTES;
    spans.claim(boot, START_BYTES - 2 * LABEL_BYTES, What::Padding);
}

/// What is known of blocks that have been freed, and of when others were written.
#[derive(Clone, Debug)]
pub struct Past {
    /// The transaction groups in the ring of uberblocks, by their places.
    groups: BTreeMap<u32, u64>,
    former: Former,
    births: Births,
    until: Option<u64>,
    /// The first data set, and its snapshots, which have its files by the same numbers.
    first: Vec<u64>,
}

impl Past {
    /// A file of a snapshot of the first data set, as the file of that one.
    pub fn in_first_set(&self, inode: Inode) -> Inode {
        let is_one = self.first.contains(&inode.subvolume);
        Inode { subvolume: if is_one { self.first[0] } else { inode.subvolume }, ..inode }
    }

    /// Claims what written bytes are by themselves.
    pub fn claim(&self, offset: u64, written: &[u8], spans: &mut Spans) {
        let mut at = offset.next_multiple_of(512);
        while let Some(rest) = written.get((at - offset) as usize..).filter(|it| it.len() >= 4096) {
            let block = LogBlock::of(rest);
            if let Some(block) = block {
                spans.claim(at, block.length as u64, block.what());
            }
            at += block.map_or(512, |block| block.length as u64);
        }
        self.former.claim(offset, written, spans);
    }

    /// Leaves out all that was written after the transaction group whose uberblock is there.
    pub fn end(&mut self, slot: u32) {
        self.until = self.groups.get(&slot).copied();
    }

    /// Pieces that were written later are cut out: their place does not tell what was there before.
    pub fn before_end(&self, pieces: Vec<Piece>) -> Vec<Piece> {
        let Some(until) = self.until else { return pieces };
        pieces.into_iter().flat_map(|piece| self.births.cut(piece, until)).collect()
    }
}

/// When what the newest transaction groups wrote was written, by place: the length, and the group.
#[derive(Clone, Debug, Default)]
struct Births(BTreeMap<u64, (u64, u64)>);

impl Births {
    /// Blocks don't overlap, but where a pool is damaged.
    fn add(&mut self, place: u64, length: u64, group: u64) {
        if let Some((begin, last)) = self.0.range_mut(..=place).next_back()
            && begin + last.0 >= place
            && last.1 == group
        {
            last.0 = last.0.max(place + length - begin);
            return;
        }
        self.0.insert(place, (length, group));
    }

    fn cut(&self, piece: Piece, until: u64) -> Vec<Piece> {
        let (mut at, end) = (piece.offset, piece.offset.saturating_add(piece.length));
        let mut pieces = Vec::new();
        let mut push = |from: u64, to: u64, is_later: bool| {
            let part = piece.what.part(from - piece.offset, to - from);
            let what = if is_later { What::Free } else { part };
            pieces.extend((from < to).then_some(Piece { offset: from, length: to - from, what }));
        };
        let first = self.0.range(..=at).next_back().map_or(at, |(place, _)| *place);
        for (place, (length, group)) in self.0.range(first..end) {
            let [from, to] = [*place, place + length].map(|it| it.clamp(at, end));
            if *group > until && from < to {
                push(at, from, false);
                push(from, to, true);
                at = to;
            }
        }
        push(at, end, false);
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_after_the_end_is_cut_out() {
        let mut births = Births::default();
        births.add(100, 10, 7);
        births.add(110, 10, 7);
        births.add(130, 10, 9);
        births.add(150, 10, 8);
        assert_eq!(births.0.len(), 3);
        let piece = |offset, length, what| Piece { offset, length, what };
        let whole = piece(105, 50, What::Descriptors);
        assert_eq!(births.cut(whole, 9), [whole]);
        assert_eq!(
            births.cut(whole, 7),
            [
                piece(105, 25, What::Descriptors),
                piece(130, 10, What::Free),
                piece(140, 10, What::Descriptors),
                piece(150, 5, What::Free),
            ]
        );
        assert_eq!(births.cut(whole, 6)[0], piece(105, 15, What::Free));
        assert_eq!(births.cut(piece(125, 5, What::Padding), 6), [piece(125, 5, What::Padding)]);
        let bytes = [0; 8192];
        let mut spans = Spans::default();
        let (groups, former) = (BTreeMap::new(), Former::default());
        let past = Past { groups, former, births, until: None, first: vec![0] };
        past.claim(100, &bytes, &mut spans);
        assert_eq!(spans.pieces(100, 8192).len(), 1);
    }
}
