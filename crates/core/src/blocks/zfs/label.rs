//! The labels of a pool's device: what it belongs to, and the ring of uberblocks.
//!
//! Layout: `vdev_label_t` in include/sys/vdev_impl.h of OpenZFS, `struct uberblock` in
//! include/sys/uberblock_impl.h; lists of names and values in XDR as module/nvpair/nvpair.c
//! (`nvs_xdr`) writes them.

use std::collections::BTreeMap;

use super::pointer::Pointer;
use crate::blocks::bytes::{DEVICE_BYTES_MAX, ReadAt, be32, be64, le32, le64, part, read};
use crate::blocks::error::Error;

/// The size of a label; two stand at the beginning of a device, two at its end.
pub const LABEL_BYTES: u64 = 256 << 10;
/// Where the ring of uberblocks is in a label; it goes to the end.
pub const RING: u64 = 128 << 10;
/// Where blocks begin: behind two labels and room for a boot block (VDEV_LABEL_START_SIZE).
pub const START_BYTES: u64 = 4 << 20;
/// `vl_vdev_phys`.
const CONFIGURATION: u64 = 16 << 10;
const CONFIGURATION_BYTES: usize = 112 << 10;
/// UBERBLOCK_MAGIC.
const MAGIC: u64 = 0x00ba_b10c;
/// From version 23 on the log of intents has the form that is known here ("Slim ZIL").
const VERSION_MIN: u64 = 23;

/// A device of a pool, which has one alone.
#[derive(Clone, Debug)]
pub struct Label {
    /// Where its first label is: 0, or where a partition begins.
    pub base: u64,
    /// The number of the virtual device.
    pub vdev: u64,
    /// The smallest block is 1 << this.
    pub shift: u32,
    /// How many bytes there are for blocks.
    pub allocatable_bytes: u64,
    /// Where its labels are that can be read.
    pub places: Vec<u64>,
}

fn unsupported(why: &str) -> Error {
    Error::Unsupported { file_system: "ZFS", why: why.into() }
}

impl Label {
    /// Finds the device of a pool, on the whole of `disk` or in a partition.
    pub fn read(disk: &dyn ReadAt) -> Result<Option<Label>, Error> {
        for base in std::iter::once(0).chain(partitions(disk)) {
            let first = (0..2).find_map(|copy| configuration(disk, base + copy * LABEL_BYTES));
            let Some(bytes) = first else { continue };
            let label = Label::parse(base, &bytes)?;
            return Ok(Some(label.with_places(disk, &bytes)));
        }
        Ok(None)
    }

    fn parse(base: u64, bytes: &[u8]) -> Result<Label, Error> {
        let all = List(part(bytes, 4, bytes.len()));
        let vdev = all.list("vdev_tree").unwrap_or(List(&[]));
        let label = Label {
            base,
            vdev: vdev.number("id").unwrap_or(0),
            shift: vdev.number("ashift").unwrap_or(9) as u32,
            allocatable_bytes: vdev.number("asize").unwrap_or(0),
            places: Vec::new(),
        };
        // A mirror's devices are all the same; so is one that is being filled in another's place.
        let is_whole = matches!(
            vdev.text("type"),
            Some(b"disk" | b"file" | b"mirror" | b"replacing" | b"spare")
        );
        if all.number("vdev_children").unwrap_or(1) > 1 {
            return Err(unsupported("it has several devices; make it on one"));
        }
        if !is_whole {
            return Err(unsupported("it spreads blocks over devices (RAID-Z); make it on one"));
        }
        if all.number("version").is_some_and(|version| version < VERSION_MIN) {
            return Err(unsupported("its version is older than 23; see zpool upgrade"));
        }
        if label.allocatable_bytes > DEVICE_BYTES_MAX / 2 || !(9..=16).contains(&label.shift) {
            return Err(Error::Damaged { file_system: "ZFS", what: "the size of its device" });
        }
        Ok(label)
    }

    /// The last two labels are behind the blocks, unless the device has grown.
    fn with_places(mut self, disk: &dyn ReadAt, first: &[u8]) -> Label {
        let end = self.base + START_BYTES + self.allocatable_bytes;
        let guid = |bytes: &[u8]| List(part(bytes, 4, bytes.len())).number("guid");
        let places = [0, LABEL_BYTES].map(|skip| self.base + skip);
        self.places = places.into_iter().chain([end, end + LABEL_BYTES]).collect();
        let is_one = |place: &u64| {
            let found = configuration(disk, *place);
            found.is_some_and(|bytes| guid(&bytes) == guid(first))
        };
        self.places.retain(is_one);
        self
    }

    /// The size of a place of the ring (VDEV_UBERBLOCK_SHIFT).
    pub fn slot_bytes(&self) -> u64 {
        1 << self.shift.clamp(10, 13)
    }

    /// The uberblocks of all rings, the newest last: the transaction group, the place in the ring
    /// and what it points to.
    pub fn uberblocks(&self, disk: &dyn ReadAt) -> Vec<Uberblock> {
        let mut found = BTreeMap::new();
        for place in &self.places {
            let Ok(ring) = read(disk, place + RING, (LABEL_BYTES - RING) as usize) else {
                continue;
            };
            for (slot, bytes) in (0..).zip(ring.chunks(self.slot_bytes() as usize)) {
                if le64(bytes, 0) != MAGIC {
                    continue;
                }
                if let Some(root) = Pointer::parse(part(bytes, 40, Pointer::BYTES)) {
                    let group = le64(bytes, 16);
                    found.insert((group, le64(bytes, 32)), Uberblock { group, slot, root });
                }
            }
        }
        found.into_values().collect()
    }
}

/// What a transaction group ends with.
#[derive(Clone, Debug)]
pub struct Uberblock {
    /// The transaction group.
    pub group: u64,
    /// Its place in the ring.
    pub slot: u32,
    /// Where the object set of the whole pool is.
    pub root: Pointer,
}

/// The list of a label that says what the device is of; `None`: there is none.
fn configuration(disk: &dyn ReadAt, label: u64) -> Option<Vec<u8>> {
    // NV_ENCODE_XDR.
    const XDR: u8 = 1;
    let head = read(disk, label + CONFIGURATION, 4).ok()?;
    if head[0] != XDR {
        return None;
    }
    let bytes = read(disk, label + CONFIGURATION, CONFIGURATION_BYTES).ok()?;
    List(&bytes[4..]).number("pool_guid").is_some().then_some(bytes)
}

/// Where the partitions of a disk begin (UEFI specification, "GUID Partition Table"); zpool makes
/// one of a whole disk.
fn partitions(disk: &dyn ReadAt) -> Vec<u64> {
    const ENTRY: usize = 128;
    let mut found = Vec::new();
    for sector in [512, 4096] {
        let Ok(head) = read(disk, sector, 92) else { continue };
        if part(&head, 0, 8) != b"EFI PART" || le32(&head, 84) as usize != ENTRY {
            continue;
        }
        let place = le64(&head, 72).saturating_mul(sector).min(DEVICE_BYTES_MAX);
        let count = (le32(&head, 80) as usize).min(128);
        let entries = read(disk, place, count * ENTRY).unwrap_or_default();
        let used = entries.chunks_exact(ENTRY).filter(|entry| entry[..16] != [0; 16]);
        found.extend(used.map(|entry| le64(entry, 32).saturating_mul(sector)));
    }
    found.retain(|place| *place < DEVICE_BYTES_MAX / 2);
    found
}

/// A list of names and values, in XDR.
#[derive(Clone, Copy)]
struct List<'a>(&'a [u8]);

/// `data_type_t` in include/sys/nvpair.h.
mod data_type {
    pub const UINT64: u32 = 8;
    pub const STRING: u32 = 9;
    pub const NVLIST: u32 = 19;
}

impl<'a> List<'a> {
    /// The value of a name, if it has this type.
    fn value(self, name: &str, data_type: u32) -> Option<&'a [u8]> {
        // Version and flags, then pairs: size, size in memory, name, type, number of values.
        let mut rest = part(self.0, 8, self.0.len());
        loop {
            let size = be32(rest, 0) as usize;
            let pair = rest.get(..size).filter(|pair| !pair.is_empty())?;
            let length = be32(pair, 8) as usize;
            let behind = 12 + length.checked_next_multiple_of(4)?;
            if part(pair, 12, length) == name.as_bytes() && be32(pair, behind) == data_type {
                return Some(part(pair, behind + 8, pair.len()));
            }
            rest = &rest[size..];
        }
    }

    fn number(self, name: &str) -> Option<u64> {
        self.value(name, data_type::UINT64).map(|value| be64(value, 0))
    }

    fn text(self, name: &str) -> Option<&'a [u8]> {
        let value = self.value(name, data_type::STRING)?;
        Some(part(value, 4, be32(value, 0) as usize))
    }

    fn list(self, name: &str) -> Option<List<'a>> {
        self.value(name, data_type::NVLIST).map(List)
    }
}
