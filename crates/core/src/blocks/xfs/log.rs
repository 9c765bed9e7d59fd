//! XFS' log: where its records are.
//!
//! Layout: `struct xlog_rec_header` in fs/xfs/libxfs/xfs_log_format.h; "XFS Algorithms & Data
//! Structures", chapter "Journaling Log". The headers are big-endian. The log is a ring of sectors
//! of 512 bytes; the first four bytes of each hold the cycle number, which is never the magic of a
//! header.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::blocks::Piece;
use crate::blocks::bytes::{ReadAt, be32, be64, part, read};
use crate::blocks::error::Error;
use crate::blocks::what::{Journal, What};

const MAGIC: u32 = 0xfeed_babe;
/// BBSIZE.
const SECTOR: u64 = 512;
/// A header of version 2 has one sector for each of these (XLOG_HEADER_CYCLE_SIZE).
const HEADER_COVERS: u32 = 32 * 1024;
const CHUNK_BYTES: u64 = 1 << 20;

/// A record, as its header has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LogRecord {
    header_sectors: u64,
    sectors: u64,
    sequence: u64,
    operations: u32,
}

/// What is being written: the log's sectors it covers, and the records in it.
struct Now {
    sectors: Range<u64>,
    records: BTreeMap<u64, LogRecord>,
}

/// A log: where it is, and the records it holds as far as is known, by their first sector.
#[derive(Clone, Debug)]
pub struct Log {
    place: u64,
    sectors: u64,
    uuid: [u8; 16],
    records: BTreeMap<u64, LogRecord>,
}

impl Log {
    /// Reads the log of `length` bytes at `place`.
    pub fn read(
        disk: &dyn ReadAt,
        [place, length]: [u64; 2],
        uuid: [u8; 16],
    ) -> Result<Log, Error> {
        let mut log = Log { place, sectors: length / SECTOR, uuid, records: BTreeMap::new() };
        let mut at = 0;
        while at < length {
            let bytes = read(disk, place + at, CHUNK_BYTES.min(length - at) as usize)?;
            log.records.extend(log.found(place + at, &bytes));
            at += CHUNK_BYTES;
        }
        Ok(log)
    }

    /// The records whose headers are in bytes from `offset`.
    fn found(&self, offset: u64, bytes: &[u8]) -> Vec<(u64, LogRecord)> {
        let end = self.place + self.sectors * SECTOR;
        let first = offset.max(self.place).next_multiple_of(SECTOR);
        let sectors = (first..end).step_by(SECTOR as usize).map_while(|place| {
            let sector = part(bytes, (place - offset) as usize, SECTOR as usize);
            (sector.len() == SECTOR as usize).then_some((place, sector))
        });
        let records = sectors.filter_map(|(place, sector)| {
            Some(((place - self.place) / SECTOR, self.record(sector)?))
        });
        records.collect()
    }

    fn record(&self, sector: &[u8]) -> Option<LogRecord> {
        let is_header = be32(sector, 0) == MAGIC && part(sector, 304, 16) == self.uuid;
        if !is_header {
            return None;
        }
        // `xlog_logrec_hblks`: version 1 has one sector; no iclog is greater than 256 KiB.
        let header_sectors = match be32(sector, 8) & 2 {
            0 => 1,
            _ => be32(sector, 320).div_ceil(HEADER_COVERS).clamp(1, 8),
        };
        let body = u64::from(be32(sector, 12)).div_ceil(SECTOR);
        Some(LogRecord {
            header_sectors: u64::from(header_sectors),
            sectors: u64::from(header_sectors) + body.min(self.sectors),
            sequence: be64(sector, 16),
            operations: be32(sector, 40),
        })
    }

    /// Takes into account what was written at `offset`.
    pub fn note(&mut self, offset: u64, written: &[u8]) {
        let found = self.found(offset, written);
        let sectors = self.sectors_of(offset, written.len() as u64);
        let over: Vec<u64> = self.records.range(sectors).map(|(at, _)| *at).collect();
        over.iter().for_each(|at| {
            self.records.remove(at);
        });
        self.records.extend(found);
    }

    /// The whole sectors of the log among bytes of the device.
    fn sectors_of(&self, offset: u64, length: u64) -> Range<u64> {
        let first = offset.saturating_sub(self.place).div_ceil(SECTOR).min(self.sectors);
        let end = offset.saturating_add(length).saturating_sub(self.place) / SECTOR;
        first..end.clamp(first, self.sectors)
    }

    /// Says of pieces of the log which part they are, by what was written there if that is at hand.
    pub fn refine(&self, pieces: &[Piece], written: Option<(u64, &[u8])>) -> Vec<Piece> {
        let now = written.map(|(offset, bytes)| Now {
            sectors: self.sectors_of(offset, bytes.len() as u64),
            records: self.found(offset, bytes).into_iter().collect(),
        });
        let mut refined = Vec::new();
        for piece in pieces {
            match piece.what {
                What::Journal(_) => self.split(*piece, now.as_ref(), &mut refined),
                _ => refined.push(*piece),
            }
        }
        refined
    }

    fn split(&self, piece: Piece, now: Option<&Now>, refined: &mut Vec<Piece>) {
        let mut offset = piece.offset;
        let end = piece.offset + piece.length;
        while offset < end {
            let (what, sectors) = self.part((offset - self.place) / SECTOR, now);
            let next = (offset / SECTOR + sectors) * SECTOR;
            let length = next.min(end) - offset;
            refined.push(Piece { offset, length, what: What::Journal(what) });
            offset += length;
        }
    }

    /// The record that begins last before the end of the sectors in `inside`, of those that are not
    /// overwritten now.
    fn last_in(&self, inside: Range<u64>, now: Option<&Now>) -> Option<(u64, LogRecord)> {
        let last = |records: &BTreeMap<u64, LogRecord>, inside: Range<u64>| {
            let mut records = records.range(inside.start..inside.end.max(inside.start));
            records.next_back().map(|(at, record)| (*at, *record))
        };
        let Some(now) = now else { return last(&self.records, inside) };
        let Range { start, end } = now.sectors;
        let behind = inside.start.max(end)..inside.end;
        let before = inside.start..inside.end.min(start);
        last(&self.records, behind)
            .or_else(|| last(&now.records, inside))
            .or_else(|| last(&self.records, before))
    }

    /// Where the next record begins behind a sector.
    fn next_behind(&self, sector: u64, now: Option<&Now>) -> u64 {
        let next = |records: &BTreeMap<u64, LogRecord>, first: u64| {
            records.range(first..).next().map(|(at, _)| *at)
        };
        let found = match now {
            None => next(&self.records, sector + 1),
            Some(now) => next(&now.records, sector + 1)
                .or_else(|| next(&self.records, now.sectors.end.max(sector + 1))),
        };
        found.unwrap_or(self.sectors)
    }

    /// What a sector of the log is, and how many are the same from there.
    fn part(&self, sector: u64, now: Option<&Now>) -> (Journal, u64) {
        let until_next = self.next_behind(sector, now) - sector;
        // The body of the last record goes on where the ring begins.
        let around = || self.last_in(sector + 1..self.sectors, now);
        let found = match self.last_in(0..sector + 1, now) {
            Some((at, record)) => Some((sector - at, record)),
            None => around().map(|(at, record)| (sector + self.sectors - at, record)),
        };
        let Some((behind, record)) = found else { return (Journal::Other, until_next) };
        let LogRecord { header_sectors, sectors, sequence, operations } = record;
        let (what, rest) = if behind < header_sectors {
            (Journal::RecordHeader { sequence, operations }, header_sectors - behind)
        } else if behind < sectors {
            (Journal::RecordBody { sequence }, sectors - behind)
        } else {
            return (Journal::Other, until_next);
        };
        (what, rest.min(until_next))
    }
}
