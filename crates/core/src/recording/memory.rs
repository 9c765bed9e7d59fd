//! Where in a process's memory files of the watched folders are mapped.

use std::collections::BTreeMap;

/// How many pieces more or fewer there are of each mapping.
pub type Pieces = BTreeMap<u32, i64>;

/// Successive addresses of one mapping, up to `end`; the first is at `place` of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    end: u64,
    map: u32,
    place: u64,
}

/// A part of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub map: u32,
    /// From its beginning.
    pub place: u64,
    pub bytes: u64,
}

/// The addresses of a process: by the first of each piece.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    pieces: BTreeMap<u64, Piece>,
}

impl Memory {
    /// The mapping that has an address, and the place in it.
    pub fn at(&self, address: u64) -> Option<(u32, u64)> {
        let (start, piece) = self.pieces.range(..=address).next_back()?;
        (address < piece.end).then(|| (piece.map, piece.place.saturating_add(address - start)))
    }

    /// What of mappings is between two addresses.
    pub fn within(&self, begin: u64, end: u64) -> Vec<Part> {
        let before = self.pieces.range(..begin).next_back();
        let parts = before.into_iter().chain(self.pieces.range(begin..end.max(begin)));
        let parts = parts.filter_map(|(&start, piece)| {
            let (from, to) = (start.max(begin), piece.end.min(end));
            let bytes = to.checked_sub(from).filter(|bytes| *bytes > 0)?;
            let place = piece.place.saturating_add(from - start);
            Some(Part { map: piece.map, place, bytes })
        });
        parts.collect()
    }

    /// A mapping comes to lie between two addresses, where nothing is; a piece more of it.
    pub fn enter(&mut self, begin: u64, end: u64, map: u32, place: u64) {
        if begin < end {
            self.pieces.insert(begin, Piece { end, map, place });
        }
    }

    /// Nothing is between two addresses any more.
    pub fn clear(&mut self, begin: u64, end: u64) -> Pieces {
        let mut change = Pieces::new();
        let before = self.pieces.range(..begin).next_back().filter(|(_, it)| it.end > begin);
        let touched = before.into_iter().chain(self.pieces.range(begin..end.max(begin)));
        let touched: Vec<(u64, Piece)> = touched.map(|(start, piece)| (*start, *piece)).collect();
        for (start, piece) in touched {
            let Piece { map, place, .. } = piece;
            self.pieces.remove(&start);
            let rest = [(start, begin.min(piece.end)), (end.max(start), piece.end)];
            let rest = rest.into_iter().filter(|(from, to)| from < to);
            let mut more = -1;
            for (from, to) in rest {
                self.enter(from, to, map, place.saturating_add(from - start));
                more += 1;
            }
            *change.entry(map).or_default() += more;
        }
        change
    }

    /// How many pieces there are of each mapping.
    pub fn all(&self) -> Pieces {
        let mut all = Pieces::new();
        for piece in self.pieces.values() {
            *all.entry(piece.map).or_default() += 1;
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_is_cut_and_goes_with_its_last_piece() {
        let mut memory = Memory::default();
        memory.enter(100, 200, 1, 0);
        memory.enter(200, 300, 2, 50);
        let at = |memory: &Memory, address| memory.at(address);
        assert_eq!(at(&memory, 99), None);
        assert_eq!(at(&memory, 199), Some((1, 99)));
        assert_eq!(at(&memory, 200), Some((2, 50)));
        assert_eq!(at(&memory, 300), None);
        let part = |map, place, bytes| Part { map, place, bytes };
        assert_eq!(memory.within(150, 250), [part(1, 50, 50), part(2, 50, 50)]);
        assert_eq!(memory.within(300, 400), []);
        assert_eq!(memory.within(250, 240), []);
        assert_eq!(memory.clear(120, 140), [(1, 1)].into(), "a hole makes two of one");
        assert_eq!(at(&memory, 130), None);
        assert_eq!(at(&memory, 140), Some((1, 40)));
        assert_eq!(memory.clear(140, 250), [(1, -1), (2, 0)].into());
        assert_eq!(at(&memory, 250), Some((2, 100)));
        assert_eq!(memory.all(), [(1, 1), (2, 1)].into());
        assert_eq!(memory.clear(0, u64::MAX), [(1, -1), (2, -1)].into());
        assert_eq!(memory.within(0, u64::MAX), []);
    }
}
