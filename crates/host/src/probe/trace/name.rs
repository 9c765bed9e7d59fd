//! What the parts of a disk are, for the requests that wrote them.
//!
//! They are looked up in the file system as it is when it has been unmounted. A journal is written
//! round and round, and Btrfs writes anything anywhere, so that of a place that was written again
//! only the last content is there: what was there before is told from its place alone.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use fsverdict_core::blocks::{Group, Journal, Map, Piece, ReadAt, What};
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
    /// The number of the request that wrote a place last that is not for one thing alone.
    last: BTreeMap<u64, u64>,
    requests: u64,
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
        Names { found, last: BTreeMap::new(), requests: 0 }
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
            let pieces = map.what(entry.sector.saturating_mul(SECTOR_BYTES), entry.bytes());
            let reused = pieces.iter().filter(|piece| is_reused(map, piece.what));
            self.last.extend(reused.map(|piece| (piece.offset, number)));
        }
    }

    /// All requests have been heard of.
    pub fn begin(&mut self) {
        self.requests = 0;
    }

    /// Says of each part of the next request what it is.
    pub fn name(&mut self, entry: &mut Entry) {
        let number = self.requests;
        self.requests += 1;
        let Ok((disk, map)) = &self.found else { return };
        if entry.op != Op::Write || entry.device > 0 {
            return;
        }
        let is_last = |piece: &Piece| {
            let last = self.last.get(&piece.offset);
            !is_reused(map, piece.what) || last.is_none_or(|it| *it == number)
        };
        for piece in pieces(disk, map, entry) {
            let part = part(map, &piece, is_last(&piece));
            match entry.parts.last_mut() {
                Some(last) if last.is_like(&part) => last.sectors += part.sectors,
                _ => entry.parts.push(part),
            }
        }
    }
}

/// What is there now says nothing of what was there before.
fn is_reused(map: &Map, what: What) -> bool {
    match what.group() {
        // Their place says what they are.
        _ if matches!(what, What::Journal(Journal::Superblock | Journal::FastCommit { .. })) => {
            false
        }
        Group::Journal => true,
        Group::Superblock => false,
        _ => map.file_system() == "btrfs",
    }
}

fn found(file_system: &str, devices: &[Device]) -> Result<(Disk, Map), String> {
    let [device] = devices else {
        return Err(format!("of {} devices only requests are told", devices.len()));
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

fn part(map: &Map, piece: &Piece, is_last: bool) -> Part {
    let what = piece.what;
    let kind = match what.group() {
        _ if !is_last && map.file_system() == "btrfs" => Kind::Unknown,
        Group::Data => Kind::Data,
        Group::Journal => Kind::Journal,
        // Around a superblock, for one.
        _ if what == What::Padding => Kind::Metadata,
        Group::Metadata | Group::Superblock => Kind::Metadata,
        Group::Free | Group::Unknown => Kind::Unknown,
    };
    let name = match what {
        _ if !is_last && kind == Kind::Unknown => "written again since".into(),
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
