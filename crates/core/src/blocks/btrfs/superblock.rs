//! The superblock of Btrfs, and the chunks by which its logical addresses lead to the device.
//!
//! Layout: `struct btrfs_super_block`, `struct btrfs_chunk` and `struct btrfs_stripe` in
//! include/uapi/linux/btrfs_tree.h; btrfs.readthedocs.io, "On-disk Format". Numbers are
//! little-endian.

use std::collections::BTreeMap;

use crate::blocks::bytes::{DEVICE_BYTES_MAX, ReadAt, le16, le32, le64, part, read, u8_at};
use crate::blocks::error::Error;

/// Where the superblock and its copies are (BTRFS_SUPER_INFO_OFFSET, `btrfs_sb_offset`).
pub const PLACES: [u64; 3] = [64 << 10, 64 << 20, 256 << 30];
/// Their size.
pub const LENGTH: usize = 4096;
const MAGIC: &[u8] = b"_BHRfS_M";

/// incompat_flags.
mod incompat {
    pub const METADATA_UUID: u64 = 1 << 10;
    pub const EXTENT_TREE_V2: u64 = 1 << 13;
    pub const STRIPE_TREE: u64 = 1 << 14;
}

/// The profiles that put a chunk on one device: none, or DUP; all others have bits of these.
const SPREAD: u64 = 0x7d8;

/// A key of an item (`struct btrfs_disk_key`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    pub object: u64,
    pub kind: u8,
    pub offset: u64,
}

impl Key {
    /// How many bytes one has.
    pub const BYTES: usize = 17;

    pub fn parse(bytes: &[u8]) -> Key {
        Key { object: le64(bytes, 0), kind: u8_at(bytes, 8), offset: le64(bytes, 9) }
    }
}

/// The root of a tree: its logical address and level.
pub type Root = (u64, u8);

/// What the superblock says.
#[derive(Clone, Debug)]
pub struct Superblock {
    pub node_bytes: u64,
    pub sector_bytes: u64,
    pub total_bytes: u64,
    pub root: Root,
    pub chunk_root: Root,
    pub log_root: Root,
    /// The unique name in the headers of nodes.
    pub uuid: [u8; 16],
    device: u64,
    system_chunks: Vec<u8>,
}

fn damaged(what: &'static str) -> Error {
    Error::Damaged { file_system: "Btrfs", what }
}

fn unsupported(why: &str) -> Error {
    Error::Unsupported { file_system: "Btrfs", why: why.into() }
}

impl Superblock {
    /// Reads it; `None`: this is no such file system.
    pub fn read(disk: &dyn ReadAt) -> Result<Option<Superblock>, Error> {
        let Ok(bytes) = read(disk, PLACES[0], LENGTH) else { return Ok(None) };
        if part(&bytes, 64, 8) != MAGIC {
            return Ok(None);
        }
        Superblock::parse(&bytes).map(Some)
    }

    fn parse(bytes: &[u8]) -> Result<Superblock, Error> {
        let incompat = le64(bytes, 188);
        if incompat & (incompat::EXTENT_TREE_V2 | incompat::STRIPE_TREE) != 0 {
            return Err(unsupported("its trees are of a newer form (extent-tree-v2, raid-stripe)"));
        }
        if le64(bytes, 136) != 1 {
            return Err(unsupported("it has several devices; make it on one"));
        }
        let uuid = if incompat & incompat::METADATA_UUID != 0 { 571 } else { 32 };
        let root = |at, level| (le64(bytes, at), u8_at(bytes, level));
        let superblock = Superblock {
            node_bytes: u64::from(le32(bytes, 148)),
            sector_bytes: u64::from(le32(bytes, 144)),
            // Of this device.
            total_bytes: le64(bytes, 201 + 8),
            root: root(80, 198),
            chunk_root: root(88, 199),
            log_root: root(96, 200),
            uuid: part(bytes, uuid, 16).try_into().unwrap_or_default(),
            device: le64(bytes, 201),
            system_chunks: part(bytes, 811, (le32(bytes, 160) as usize).min(2048)).to_vec(),
        };
        let is_size = |bytes: u64| bytes.is_power_of_two() && (4096..=65536).contains(&bytes);
        if !is_size(superblock.node_bytes) || !is_size(superblock.sector_bytes) {
            return Err(damaged("the size of its nodes or sectors"));
        }
        if superblock.total_bytes > DEVICE_BYTES_MAX {
            return Err(damaged("the size of its device"));
        }
        Ok(superblock)
    }

    /// The chunks that the superblock itself has: those with the tree of all the others.
    pub fn chunks(&self) -> Result<Chunks, Error> {
        let mut chunks = Chunks::default();
        let mut at = 0;
        while at + Key::BYTES + STRIPES < self.system_chunks.len() {
            let key = Key::parse(&self.system_chunks[at..]);
            let item = &self.system_chunks[at + Key::BYTES..];
            let stripes = usize::from(le16(item, 44)).max(1);
            chunks.add(self, key.offset, item)?;
            at += Key::BYTES + STRIPES + stripes * STRIPE;
        }
        Ok(chunks)
    }
}

/// Where the stripes of a chunk item begin, and the size of each.
const STRIPES: usize = 48;
const STRIPE: usize = 32;

/// Which logical addresses lie where: length and places, one or two, by logical address.
#[derive(Clone, Debug, Default)]
pub struct Chunks(BTreeMap<u64, (u64, Vec<u64>)>);

impl Chunks {
    /// Takes a chunk item at a logical address.
    pub fn add(&mut self, superblock: &Superblock, logical: u64, item: &[u8]) -> Result<(), Error> {
        let (length, profile) = (le64(item, 0), le64(item, 24));
        if profile & SPREAD != 0 {
            return Err(unsupported(
                "it spreads chunks over devices (RAID); make it single or DUP",
            ));
        }
        let stripes = (0..usize::from(le16(item, 44)).min(2)).map(|number| {
            let stripe = part(item, STRIPES + number * STRIPE, STRIPE);
            (le64(stripe, 0), le64(stripe, 8))
        });
        let is_inside = |place: u64| place < DEVICE_BYTES_MAX && length < DEVICE_BYTES_MAX;
        let on_device =
            stripes.filter(|(device, place)| *device == superblock.device && is_inside(*place));
        let places: Vec<u64> = on_device.map(|(_, place)| place).collect();
        if !places.is_empty() && logical.checked_add(length).is_some() {
            self.0.insert(logical, (length, places));
        }
        Ok(())
    }

    /// Where `length` bytes at a logical address are: once, or twice.
    pub fn places(&self, logical: u64, length: u64) -> Vec<u64> {
        let Some((begin, (of_chunk, places))) = self.0.range(..=logical).next_back() else {
            return Vec::new();
        };
        let skip = logical - begin;
        let is_inside = skip.checked_add(length).is_some_and(|end| end <= *of_chunk);
        let places = if is_inside { &places[..] } else { &[] };
        places.iter().map(|place| place + skip).collect()
    }
}
