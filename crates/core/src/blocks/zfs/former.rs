//! Freed blocks: those that earlier transaction groups had, by the uberblocks that are still in the
//! ring.
//!
//! A freed block stays as it is until something else is written there. A pointer has a checksum of
//! its block: only bytes that match it are what the pointer was for.

use std::collections::BTreeMap;

use super::pointer::Checksum;
use crate::blocks::bytes::part;
use crate::blocks::spans::Spans;
use crate::blocks::what::What;

/// A block that was allocated once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    pub physical_bytes: u64,
    pub allocated_bytes: u64,
    pub checksum: Checksum,
    pub what: What,
}

/// They, by their places.
#[derive(Clone, Debug, Default)]
pub struct Former(BTreeMap<u64, Vec<Block>>);

impl Former {
    /// A place has had no more blocks than there are uberblocks in a ring.
    const AT_A_PLACE_MAX: usize = 128;

    /// Takes a block at a place.
    pub fn add(&mut self, place: u64, block: Block) {
        let blocks = self.0.entry(place).or_default();
        let is_new = !blocks.contains(&block) && blocks.len() < Former::AT_A_PLACE_MAX;
        if is_new && block.checksum.is_known() {
            blocks.push(block);
        }
    }

    /// Claims those blocks that the bytes `written` at `offset` hold.
    pub fn claim(&self, offset: u64, written: &[u8], spans: &mut Spans) {
        for (place, blocks) in self.0.range(offset..offset.saturating_add(written.len() as u64)) {
            let rest = part(written, (place - offset) as usize, written.len());
            let is_there = |block: &&Block| {
                let bytes = rest.get(..block.physical_bytes as usize);
                bytes.is_some_and(|bytes| block.checksum.fits(bytes) == Some(true))
            };
            if let Some(block) = blocks.iter().find(is_there) {
                spans.claim(*place, block.allocated_bytes, block.what);
            }
        }
    }
}
