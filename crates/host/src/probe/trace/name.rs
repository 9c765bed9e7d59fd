//! What the parts of a disk are, for the requests that wrote or read them.
//!
//! They are looked up in the unmounted file system. A journal is written in circles, and Btrfs and
//! ZFS write anything anywhere, so a place that was written again holds only its last content: the
//! earlier one is told by its place alone, or on ZFS by what the recorder has of it. A read finds
//! what the last write before it wrote.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use fsverdict_core::blocks::{Group, Journal, Map, Piece, Pool, ReadAt, What};
use fsverdict_core::model::Device;
use fsverdict_core::model::trace::{Entry, Kind, Op, Part, SECTOR_BYTES};

use crate::sys;

/// A block that says what it is has no more than this, and what is longer is data.
const NAMED_BYTES_MAX: u64 = 1 << 20;

/// A device, read as it is on the disk.
struct Disk(File);

impl ReadAt for Disk {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(into, offset)
    }
}

impl Disk {
    /// Without what the page cache has of it from before the file system was mounted.
    fn open(path: &str) -> io::Result<Disk> {
        let file = File::open(path)?;
        sys::advise(file.as_fd(), 0, 0, libc::POSIX_FADV_DONTNEED)?;
        Ok(Disk(file))
    }
}

/// What is known of a file system's device.
pub struct Names {
    found: Result<(Disk, Map), String>,
    /// Which request wrote a place last that is not for one thing alone.
    last: Latest,
    requests: u64,
    /// Where in the ring of ZFS's uberblocks the last was written.
    uberblock: Option<u32>,
}

/// By place: up to where, and the number of the request that wrote it last.
#[derive(Default)]
struct Latest(BTreeMap<u64, (u64, u64)>);

impl Latest {
    /// Takes what a later request wrote.
    fn write(&mut self, begin: u64, end: u64, number: u64) {
        let over: Vec<u64> = self.over(begin, end).map(|(from, ..)| from).collect();
        for from in over {
            let Some((to, before)) = self.0.remove(&from) else { continue };
            if from < begin {
                self.0.insert(from, (begin, before));
            }
            if end < to {
                self.0.insert(end, (to, before));
            }
        }
        self.0.insert(begin, (end, number));
    }

    /// What lies between, whole: from, to, and the number.
    fn over(&self, begin: u64, end: u64) -> impl Iterator<Item = (u64, u64, u64)> {
        let first = self.0.range(..=begin).next_back().map_or(begin, |(from, _)| *from);
        let all = self.0.range(first..end.max(first)).map(|(from, it)| (*from, it.0, it.1));
        all.filter(move |(_, to, _)| *to > begin)
    }

    /// Cuts a piece where a request later than `number` wrote it; says of each that none did.
    fn cut(&self, piece: Piece, number: u64) -> Vec<(Piece, bool)> {
        let end = piece.offset.saturating_add(piece.length);
        let (mut at, mut pieces) = (piece.offset, Vec::new());
        let mut push = |from: u64, to: u64, is_last: bool| {
            let part = piece.part(from - piece.offset, to - from);
            pieces.extend((from < to).then_some((part, is_last)));
        };
        for (from, to, _) in self.over(at, end).filter(|(.., last)| *last > number) {
            let [from, to] = [from, to].map(|place| place.clamp(at, end));
            push(at, from, true);
            push(from, to, false);
            at = to;
        }
        push(at, end, true);
        pieces
    }
}

impl Names {
    /// Those of `file_system`, which is not mounted now; its name is empty where it can't be read.
    pub fn of(file_system: &str, devices: &[Device]) -> Names {
        Names::with(found(file_system, devices))
    }

    /// Those of the file system on `disk`, whichever it is.
    pub fn on(disk: &str) -> Names {
        Names::with(mapped(disk))
    }

    /// None, for this reason.
    pub fn none(why: &str) -> Names {
        Names::with(Err(why.into()))
    }

    fn with(found: Result<(Disk, Map), String>) -> Names {
        Names { found, last: Latest::default(), requests: 0, uberblock: None }
    }

    /// Why nothing is known.
    pub fn why_none(&self) -> Option<String> {
        self.found.as_ref().err().cloned()
    }

    /// Hears of each request once, in order, before the first is named.
    pub fn hear(&mut self, entry: &Entry) {
        let number = self.requests;
        self.requests += 1;
        let Ok((_, map)) = &self.found else { return };
        if entry.op == Op::Write {
            for piece in map.what(entry.sector.saturating_mul(SECTOR_BYTES), entry.bytes()) {
                if let What::Pool(Pool::Uberblock { slot, .. }) = piece.what {
                    self.uberblock = Some(slot);
                }
                if is_reused(map, piece.what) {
                    self.last.write(piece.offset, piece.offset + piece.length, number);
                }
            }
        }
    }

    /// All requests have been heard of.
    pub fn begin(&mut self) {
        self.requests = 0;
        if let (Ok((_, map)), Some(slot)) = (&mut self.found, self.uberblock) {
            map.end_with_uberblock(slot);
        }
    }

    /// Says of each part of the next request what it is; `written` is what it wrote, where the
    /// recorder has it.
    pub fn name(&mut self, entry: &mut Entry, written: Option<&[u8]>) {
        let number = self.requests;
        self.requests += 1;
        let Ok((disk, map)) = &self.found else { return };
        if !matches!(entry.op, Op::Write | Op::Read) || entry.device > 0 {
            return;
        }
        for piece in pieces(disk, map, entry) {
            for (piece, is_last) in self.last.cut(piece, number) {
                let by_itself = written.filter(|_| !is_last && map.file_system() == "zfs");
                for (piece, is_told) in told(map, piece, entry, by_itself) {
                    let is_told = is_told || is_last || !is_reused(map, piece.what);
                    entry.parts.push(part(map, entry.op, &piece, is_told));
                }
            }
        }
        entry.parts.dedup_by(|next, part| {
            let is_like = part.is_like(next);
            part.sectors += if is_like { next.sectors } else { 0 };
            is_like
        });
    }
}

/// What the written data tells of a piece of a request: blocks that say themselves what they were,
/// even if something else is there by now.
fn told(map: &Map, piece: Piece, entry: &Entry, written: Option<&[u8]>) -> Vec<(Piece, bool)> {
    let offset = entry.sector.saturating_mul(SECTOR_BYTES);
    let Some(written) = written else { return vec![(piece, false)] };
    let (begin, end) = (piece.offset, piece.offset + piece.length);
    let by_place = map.what(begin, piece.length);
    let all = map.what_with(offset, written).into_iter().filter_map(|found| {
        let from = found.offset.clamp(begin, end);
        let to = (found.offset + found.length).clamp(begin, end);
        (from < to).then(|| found.part(from - found.offset, to - from))
    });
    all.map(|found| (found, !by_place.contains(&found))).collect()
}

/// The current content says nothing of the former.
fn is_reused(map: &Map, what: What) -> bool {
    match what.group() {
        // Their place says what they are.
        _ if matches!(what, What::Journal(Journal::Superblock | Journal::FastCommit { .. })) => {
            false
        }
        Group::Journal => true,
        Group::Superblock => false,
        _ => writes_anywhere(map),
    }
}

/// Nothing is written in place.
fn writes_anywhere(map: &Map) -> bool {
    ["btrfs", "zfs"].contains(&map.file_system())
}

fn found(file_system: &str, devices: &[Device]) -> Result<(Disk, Map), String> {
    let [device] = devices else {
        return Err(format!(
            "with {} devices, which file a request is of is not found out",
            devices.len()
        ));
    };
    if file_system.is_empty() {
        return Err("there is no file system of our own on the whole device".into());
    }
    mapped(&device.path)
}

fn mapped(path: &str) -> Result<(Disk, Map), String> {
    let disk = Disk::open(path).map_err(|error| format!("{path}: {error}"))?;
    let map = Map::of(&disk).map_err(|error| error.to_string())?;
    Ok((disk, map))
}

/// The parts of a request; a block that no structure has may say itself what it is.
fn pieces(disk: &Disk, map: &Map, entry: &Entry) -> Vec<Piece> {
    let offset = entry.sector.saturating_mul(SECTOR_BYTES);
    let pieces = map.what(offset, entry.bytes());
    let is_unknown = |piece: &Piece| matches!(piece.what, What::Free | What::Unknown);
    if !pieces.iter().any(is_unknown) || entry.bytes() > NAMED_BYTES_MAX {
        return pieces;
    }
    let mut bytes = vec![0; entry.bytes() as usize];
    match disk.read_at(offset, &mut bytes) {
        Ok(()) => map.what_with(offset, &bytes),
        Err(_) => pieces,
    }
}

fn part(map: &Map, op: Op, piece: &Piece, is_last: bool) -> Part {
    let what = piece.what;
    let kind = match what.group() {
        _ if !is_last && writes_anywhere(map) => Kind::Unknown,
        Group::Data => Kind::Data,
        Group::Journal => Kind::Journal,
        // Around a superblock, for one.
        _ if what == What::Padding => Kind::Metadata,
        Group::Metadata | Group::Superblock => Kind::Metadata,
        Group::Free | Group::Unknown => Kind::Unknown,
    };
    let name = match what {
        _ if !is_last && kind == Kind::Unknown => "written again since".into(),
        What::Free if op == Op::Read => "freed since".into(),
        _ if !is_last => "journal, written again since".into(),
        What::Journal(Journal::Copy { of, .. }) => {
            let of = map.what(of, map.block_bytes().into());
            let of = of.iter().find(|piece| piece.what != What::Padding);
            format!("journal copy: {}", of.map_or("padding", |piece| piece.what.name()))
        }
        what => what.name().to_string(),
    };
    let inode = match what {
        What::Data { inode, .. } if kind == Kind::Data => Some(inode.number),
        _ => None,
    };
    let sectors = u32::try_from(piece.length / SECTOR_BYTES).unwrap_or(u32::MAX);
    Part { sectors, kind, what: name, inode }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_cut_where_another_request_wrote_it_later() {
        let mut last = Latest::default();
        last.write(0, 100, 1);
        last.write(40, 60, 2);
        last.write(90, 120, 3);
        let cut = |offset, length, number| {
            let piece = Piece { offset, length, what: What::Free };
            let parts = last.cut(piece, number).into_iter();
            parts.map(|(it, is_last)| (it.offset, it.length, is_last)).collect::<Vec<_>>()
        };
        let first = [(0, 40, true), (40, 20, false), (60, 30, true), (90, 10, false)];
        assert_eq!(cut(0, 100, 1), first);
        assert_eq!(cut(40, 20, 2), [(40, 20, true)]);
        assert_eq!(cut(90, 30, 3), [(90, 30, true)]);
        assert_eq!(cut(50, 5, 1), [(50, 5, false)]);
        assert_eq!(
            cut(50, 60, 2),
            [(50, 40, true), (90, 20, false)],
            "it reads what 1 and 2 wrote"
        );
        assert_eq!(cut(200, 8, 9), [(200, 8, true)]);
    }
}
