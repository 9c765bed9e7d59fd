//! Which bytes of a device are what: the first claim to a byte holds.

use std::collections::BTreeMap;

use super::Piece;
use super::what::What;

/// Claims to parts of a device, in order of place. One entry for each run of blocks that are the
/// same, so that memory follows what is allocated and not the size of the device.
#[derive(Clone, Debug, Default)]
pub struct Spans(BTreeMap<u64, (u64, What)>);

impl Spans {
    /// Claims `length` bytes from `offset` where nothing was claimed before. Returns how many bytes
    /// are new: 0 tells a walk that it has been there.
    pub fn claim(&mut self, offset: u64, length: u64, what: What) -> u64 {
        let end = offset.saturating_add(length);
        let gaps = self.gaps(offset, end);
        for &(begin, end) in &gaps {
            self.insert(begin, end - begin, what.part(begin - offset, end - begin));
        }
        gaps.iter().map(|(begin, end)| end - begin).sum()
    }

    /// Inserts what overlaps nothing, as part of its neighbour where it goes on.
    fn insert(&mut self, offset: u64, length: u64, what: What) {
        if let Some((begin, (before, same))) = self.0.range_mut(..offset).next_back() {
            let is_next = begin + *before == offset;
            if let Some(both) = same.joined(*before, what, length).filter(|_| is_next) {
                (*before, *same) = (*before + length, both);
                return;
            }
        }
        self.0.insert(offset, (length, what));
    }

    /// The parts between `begin` and `end` that nobody has claimed.
    fn gaps(&self, begin: u64, end: u64) -> Vec<(u64, u64)> {
        let mut gaps = Vec::new();
        let mut at = begin;
        for (offset, length, _) in self.within(begin, end) {
            if at < offset {
                gaps.push((at, offset));
            }
            at = at.max(offset.saturating_add(length));
        }
        if at < end {
            gaps.push((at, end));
        }
        gaps
    }

    /// The claims that touch the bytes from `begin` to `end`, whole.
    fn within(&self, begin: u64, end: u64) -> impl Iterator<Item = (u64, u64, What)> {
        let before = self.0.range(..=begin).next_back();
        let first = before.map_or(begin, |(offset, _)| *offset);
        let claims = self.0.range(first..end.max(first)).map(|(at, claim)| (*at, claim.0, claim.1));
        claims.filter(move |(at, length, _)| at.saturating_add(*length) > begin)
    }

    /// What the bytes from `offset` are, without a gap.
    pub fn pieces(&self, offset: u64, length: u64) -> Vec<Piece> {
        let end = offset.saturating_add(length);
        let mut pieces = Vec::new();
        let mut at = offset;
        for (begin, length, what) in self.within(offset, end) {
            if at < begin {
                pieces.push(Piece { offset: at, length: begin - at, what: What::Unknown });
                at = begin;
            }
            let stop = begin.saturating_add(length).min(end);
            let what = what.part(at - begin, stop - at);
            pieces.push(Piece { offset: at, length: stop - at, what });
            at = stop;
        }
        if at < end {
            pieces.push(Piece { offset: at, length: end - at, what: What::Unknown });
        }
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::what::Inode;

    fn data(offset_bytes: u64) -> What {
        What::Data { inode: Inode::of(12), offset_bytes }
    }

    #[test]
    fn the_first_claim_holds_and_the_rest_is_cut_to_what_is_left() {
        let mut spans = Spans::default();
        assert_eq!(spans.claim(10, 10, What::Descriptors), 10);
        assert_eq!(spans.claim(5, 20, data(100)), 10);
        assert_eq!(spans.claim(12, 5, What::Free), 0);
        let piece = |offset, length, what| Piece { offset, length, what };
        assert_eq!(
            spans.pieces(0, 30),
            [
                piece(0, 5, What::Unknown),
                piece(5, 5, data(100)),
                piece(10, 10, What::Descriptors),
                piece(20, 5, data(115)),
                piece(25, 5, What::Unknown),
            ]
        );
        assert_eq!(spans.pieces(22, 2), [piece(22, 2, data(117))]);
        assert_eq!(spans.pieces(40, 0), []);
    }

    #[test]
    fn what_goes_on_is_one_span_and_inodes_are_counted_by_their_place() {
        let mut spans = Spans::default();
        spans.claim(0, 10, data(0));
        spans.claim(10, 10, data(10));
        assert_eq!(spans.pieces(0, 20).len(), 1);
        spans.claim(20, 10, data(0));
        assert_eq!(spans.pieces(0, 30).len(), 2);
        let inodes = |first, count| What::Inodes { first, count, inode_bytes: 256 };
        spans.claim(4096, 4096, inodes(1, 16));
        spans.claim(8192, 4096, inodes(17, 16));
        assert_eq!(spans.pieces(4096, 8192)[0].what, inodes(1, 32));
        assert_eq!(spans.pieces(8192, 4096)[0].what, inodes(17, 16));
        assert_eq!(spans.pieces(4096 + 512, 100)[0].what, inodes(3, 1));
    }
}
