//! A device out of a few bytes: where something is, and what; all else is zero.
//!
//! The first four bytes are the device's length; then come parts: place, length and bytes. Places
//! and the device's length are in sectors of 512 bytes, numbers little-endian.

use std::collections::BTreeMap;
use std::io;

use fsverdict_core::blocks::{Map, ReadAt, What};

const SECTOR: u64 = 512;

/// The device.
pub struct Sparse {
    sectors: u64,
    written: BTreeMap<u64, Vec<u8>>,
}

impl ReadAt for Sparse {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(into.len() as u64);
        let end = end.filter(|end| *end <= self.sectors * SECTOR);
        let end = end.ok_or(io::ErrorKind::UnexpectedEof)?;
        into.fill(0);
        for (sector, bytes) in self.written.range(offset / SECTOR..end.div_ceil(SECTOR)) {
            for (place, byte) in (sector * SECTOR..).zip(bytes) {
                if (offset..end).contains(&place) {
                    into[(place - offset) as usize] = *byte;
                }
            }
        }
        Ok(())
    }
}

impl Sparse {
    /// Reads it; `magic` is written where it belongs, whatever the bytes say.
    pub fn of(bytes: &[u8], (place, magic): (u64, &[u8])) -> Option<Sparse> {
        let (length, mut rest) = bytes.split_first_chunk::<4>()?;
        // No more than a gigabyte: a read takes time, also of zeros.
        let sectors = u64::from(u32::from_le_bytes(*length)).min(1 << 21);
        let mut device = Sparse { sectors, written: BTreeMap::new() };
        while let Some((head, after)) = rest.split_first_chunk::<6>() {
            let sector = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
            let length = usize::from(u16::from_le_bytes([head[4], head[5]]));
            let (bytes, after) = after.split_at(length.min(after.len()));
            for (sector, bytes) in (u64::from(sector)..).zip(bytes.chunks(SECTOR as usize)) {
                let mut whole = bytes.to_vec();
                whole.resize(SECTOR as usize, 0);
                device.written.insert(sector, whole);
            }
            rest = after;
        }
        let sector = device.written.entry(place / SECTOR).or_insert(vec![0; SECTOR as usize]);
        let at = (place % SECTOR) as usize;
        sector[at..at + magic.len()].copy_from_slice(magic);
        Some(device)
    }

    /// Asks all there is to ask, and fails where the answers have gaps.
    pub fn ask(&self) {
        let Ok(mut map) = Map::of(self) else { return };
        let length = self.sectors * SECTOR;
        let covered = |pieces: &[fsverdict_core::blocks::Piece]| {
            pieces.iter().map(|piece| piece.length).sum::<u64>()
        };
        let pieces = map.what(0, length);
        assert_eq!(covered(&pieces), length);
        for piece in pieces.iter().take(1000) {
            let _ = piece.what.to_string();
            if let What::Data { inode, .. } | What::Directory { inode, .. } = piece.what {
                let _ = map.path(inode);
            }
        }
        for (sector, bytes) in self.written.iter().take(1000) {
            let offset = sector * SECTOR;
            assert_eq!(covered(&map.what_with(offset, bytes)), SECTOR);
            let mut more = vec![0; 4096];
            if self.read_at(offset, &mut more).is_ok() {
                assert_eq!(covered(&map.what_with(offset, &more)), 4096);
                map.note(offset, &more);
            }
        }
        assert_eq!(covered(&map.what(0, length)), length);
    }
}
