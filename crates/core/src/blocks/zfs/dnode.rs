//! Dnodes, which are what inodes are elsewhere: where an object's blocks are.
//!
//! Layout: `dnode_phys_t` in include/sys/dnode.h of OpenZFS, `dsl_dataset_phys_t` and
//! `dsl_dir_phys_t` in include/sys/dsl_dataset.h and dsl_dir.h; types in include/sys/dmu.h.

use super::pointer::Pointer;
use crate::blocks::bytes::{le16, le64, part, u8_at};

/// DNODE_MIN_SIZE: a dnode has a multiple of it.
pub const DNODE_BYTES: usize = 512;
const POINTERS: usize = 64;
/// DNODE_FLAG_SPILL_BLKPTR: the last bytes are a pointer to more of its attributes.
const SPILL: u8 = 1 << 2;

/// `enum dmu_object_type`, as far as somebody asks.
pub mod kind {
    pub const NONE: u8 = 0;
    pub const DNODE: u8 = 10;
    pub const DSL_DIRECTORY: u8 = 12;
    pub const DSL_DATASET: u8 = 16;
    pub const FILE: u8 = 19;
    pub const DIRECTORY: u8 = 20;
    pub const MASTER: u8 = 21;
    pub const VOLUME: u8 = 23;
}

/// A data set, as its dnode tells.
#[derive(Clone, Copy, Debug)]
pub struct DataSet<'a> {
    /// The number of the snapshot before it.
    pub snapshot: u64,
    /// The transaction group of that one: what is older is the snapshot's.
    pub since: u64,
    /// The pointer to its objects.
    pub objects: &'a [u8],
}

/// One dnode.
#[derive(Clone, Copy, Debug)]
pub struct Dnode<'a>(&'a [u8]);

impl<'a> Dnode<'a> {
    /// The dnode at the beginning of `bytes`; `None`: nothing has the place.
    pub fn of(bytes: &'a [u8]) -> Option<Dnode<'a>> {
        let slots = usize::from(u8_at(bytes, 12)) + 1;
        (u8_at(bytes, 0) != kind::NONE).then(|| Dnode(part(bytes, 0, slots * DNODE_BYTES)))
    }

    /// How many places it takes.
    pub fn slots(self) -> usize {
        (self.0.len() / DNODE_BYTES).max(1)
    }

    /// The type of its object.
    pub fn kind(self) -> u8 {
        self.0[0]
    }

    /// The level of the blocks that it points to, if it is one.
    pub fn top_level(self) -> Option<u8> {
        u8_at(self.0, 2).checked_sub(1)
    }

    /// The size of the object's blocks.
    pub fn block_bytes(self) -> u64 {
        u64::from(le16(self.0, 8)) * 512
    }

    fn pointer_count(self) -> usize {
        usize::from(u8_at(self.0, 3))
    }

    /// The pointers to its blocks.
    pub fn pointers(self) -> impl Iterator<Item = &'a [u8]> {
        part(self.0, POINTERS, self.pointer_count() * Pointer::BYTES).chunks_exact(Pointer::BYTES)
    }

    /// The pointer to what of its attributes had no room.
    pub fn spill(self) -> Option<&'a [u8]> {
        let at = self.0.len().checked_sub(Pointer::BYTES)?;
        (u8_at(self.0, 7) & SPILL != 0).then(|| &self.0[at..])
    }

    /// The bytes behind the pointers.
    fn bonus(self) -> &'a [u8] {
        let at = POINTERS + self.pointer_count() * Pointer::BYTES;
        part(self.0, at, le16(self.0, 10).into())
    }

    /// What it says of a data set, if it is one's.
    pub fn data_set(self) -> Option<DataSet<'a>> {
        let bonus = self.bonus();
        (u8_at(self.0, 4) == kind::DSL_DATASET).then(|| DataSet {
            snapshot: le64(bonus, 8),
            since: le64(bonus, 16),
            objects: part(bonus, 128, Pointer::BYTES),
        })
    }

    /// For the directory of all data sets: the number of the first.
    pub fn root_set(self) -> Option<u64> {
        let bonus = self.bonus();
        let is_root = u8_at(self.0, 4) == kind::DSL_DIRECTORY && le64(bonus, 16) == 0;
        is_root.then(|| le64(bonus, 8))
    }
}
