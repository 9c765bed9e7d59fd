//! The superblock of ext2, ext3 and ext4, and what follows from it: where groups keep their
//! metadata.
//!
//! Layout: `struct ext4_super_block` and `struct ext4_group_desc` in fs/ext4/ext4.h, and
//! Documentation/filesystems/ext4/super.rst and group_descr.rst. Numbers are little-endian.

use crate::blocks::bytes::{DEVICE_BYTES_MAX, ReadAt, halves, le16, le32, le64, read, u8_at};
use crate::blocks::error::Error;

/// Where the superblock is, and its size.
pub const PLACE: u64 = 1024;
const LENGTH: usize = 1024;
const MAGIC: u16 = 0xef53;

/// s_feature_compat.
mod compat {
    pub const JOURNAL: u32 = 0x4;
    pub const SPARSE_SUPER2: u32 = 0x200;
    pub const FAST_COMMIT: u32 = 0x400;
    pub const ORPHAN_FILE: u32 = 0x1000;
}

/// s_feature_incompat.
mod incompat {
    pub const FILE_TYPE: u32 = 0x2;
    pub const JOURNAL_DEVICE: u32 = 0x8;
    pub const META_BG: u32 = 0x10;
    pub const BITS_64: u32 = 0x80;
    pub const MOUNT_GUARD: u32 = 0x100;
}

/// s_feature_ro_compat.
mod ro_compat {
    pub const SPARSE_SUPER: u32 = 0x1;
    pub const GROUP_CHECKSUM: u32 = 0x10;
    pub const BIG_ALLOC: u32 = 0x200;
    pub const METADATA_CHECKSUM: u32 = 0x400;
}

/// What the superblock says.
#[derive(Clone, Debug)]
pub struct Superblock {
    pub block_bytes: u64,
    pub blocks: u64,
    /// 1 where blocks have 1024 bytes: the superblock is in it.
    pub first_block: u64,
    pub group_blocks: u64,
    /// Blocks for each bit of a bitmap: more than one with bigalloc.
    pub cluster_blocks: u64,
    pub groups: u64,
    pub group_inodes: u64,
    pub inode_bytes: u64,
    pub descriptor_bytes: u64,
    pub has_fast_commits: bool,
    pub has_file_types: bool,
    pub has_checksums: bool,
    /// The inode of the journal, unless it is on another device.
    pub journal: Option<u64>,
    /// The inodes of quotas of users, groups and projects.
    pub quotas: [u64; 3],
    pub orphans: Option<u64>,
    pub mount_guard: Option<u64>,
    reserved_descriptor_blocks: u64,
    /// The first metagroup that has its descriptors in itself.
    first_meta_group: Option<u64>,
    is_sparse: bool,
    /// The only two groups with a copy, with sparse_super2.
    copies: Option<[u64; 2]>,
}

fn damaged(what: &'static str) -> Error {
    Error::Damaged { file_system: "ext4", what }
}

impl Superblock {
    /// Reads it; `None`: this is no such file system.
    pub fn read(disk: &dyn ReadAt) -> Result<Option<Superblock>, Error> {
        let Ok(bytes) = read(disk, PLACE, LENGTH) else { return Ok(None) };
        if le16(&bytes, 0x38) != MAGIC {
            return Ok(None);
        }
        Superblock::parse(&bytes).map(Some)
    }

    fn parse(bytes: &[u8]) -> Result<Superblock, Error> {
        let features = [le32(bytes, 0x5c), le32(bytes, 0x60), le32(bytes, 0x64)];
        let [compat, incompat, ro_compat] = features;
        if incompat & incompat::JOURNAL_DEVICE != 0 {
            let why = "it is the journal of another file system: name that one".into();
            return Err(Error::Unsupported { file_system: "ext4 device", why });
        }
        let log_block = le32(bytes, 0x18);
        if log_block > 6 {
            return Err(damaged("its block size"));
        }
        let block_bytes = 1024 << log_block;
        let log_cluster = le32(bytes, 0x1c).checked_sub(log_block).unwrap_or(99);
        let cluster_blocks = match ro_compat & ro_compat::BIG_ALLOC {
            0 => 1,
            _ if log_cluster <= 16 => 1 << log_cluster,
            _ => return Err(damaged("its cluster size")),
        };
        let has_64_bits = incompat & incompat::BITS_64 != 0;
        let high = if has_64_bits { le32(bytes, 0x150) } else { 0 };
        let is_old = le32(bytes, 0x4c) == 0;
        let journal = u64::from(le32(bytes, 0xe0));
        let has_journal = compat & compat::JOURNAL != 0;
        let has = |set: u32, feature: u32, at: usize| {
            (set & feature != 0).then(|| u64::from(le32(bytes, at)))
        };
        let of_group_two = |at| u64::from(le32(bytes, at));
        let superblock = Superblock {
            block_bytes,
            blocks: u64::from(high) << 32 | u64::from(le32(bytes, 0x4)),
            first_block: u64::from(le32(bytes, 0x14)),
            group_blocks: u64::from(le32(bytes, 0x20)),
            cluster_blocks,
            groups: 0,
            group_inodes: u64::from(le32(bytes, 0x28)),
            inode_bytes: if is_old { 128 } else { u64::from(le16(bytes, 0x58)) },
            descriptor_bytes: if has_64_bits { u64::from(le16(bytes, 0xfe)) } else { 32 },
            has_fast_commits: compat & compat::FAST_COMMIT != 0,
            has_file_types: incompat & incompat::FILE_TYPE != 0,
            has_checksums: ro_compat & (ro_compat::GROUP_CHECKSUM | ro_compat::METADATA_CHECKSUM)
                != 0,
            journal: (has_journal && journal != 0).then_some(journal),
            quotas: [0x240, 0x244, 0x26c].map(|at| u64::from(le32(bytes, at))),
            orphans: has(compat, compat::ORPHAN_FILE, 0x280),
            mount_guard: (incompat & incompat::MOUNT_GUARD != 0).then(|| le64(bytes, 0x168)),
            reserved_descriptor_blocks: u64::from(le16(bytes, 0xce)),
            first_meta_group: has(incompat, incompat::META_BG, 0x104),
            is_sparse: ro_compat & ro_compat::SPARSE_SUPER != 0,
            copies: (compat & compat::SPARSE_SUPER2 != 0)
                .then(|| [of_group_two(0x24c), of_group_two(0x250)]),
        };
        superblock.checked(u64::from(le32(bytes, 0)))
    }

    /// Refuses what no mkfs makes, as `ext4_fill_super` does.
    fn checked(mut self, inodes: u64) -> Result<Superblock, Error> {
        let bits = 8 * self.block_bytes;
        // EXT2_MIN_BLOCKS_PER_GROUP of mke2fs
        if self.group_blocks < 256 || self.group_blocks > bits * self.cluster_blocks {
            return Err(damaged("the size of its groups"));
        }
        if self.group_inodes == 0 || self.group_inodes > bits {
            return Err(damaged("the number of inodes of a group"));
        }
        let power =
            |bytes: u64, least, most| bytes.is_power_of_two() && bytes >= least && bytes <= most;
        if !power(self.inode_bytes, 128, self.block_bytes) {
            return Err(damaged("the size of its inodes"));
        }
        if !power(self.descriptor_bytes, 32, 1024) {
            return Err(damaged("the size of its group descriptors"));
        }
        let bytes = self.blocks.checked_mul(self.block_bytes);
        if self.first_block > 1
            || self.blocks <= self.first_block
            || bytes.is_none_or(|bytes| bytes > DEVICE_BYTES_MAX)
        {
            return Err(damaged("the number of its blocks"));
        }
        self.groups = (self.blocks - self.first_block).div_ceil(self.group_blocks);
        if self.groups.checked_mul(self.group_inodes) != Some(inodes) {
            return Err(damaged("the number of its inodes"));
        }
        Ok(self)
    }

    /// The first block of a group.
    pub fn group_begins(&self, group: u64) -> u64 {
        self.first_block + group * self.group_blocks
    }

    /// How many blocks a group has: the last may have fewer.
    pub fn blocks_of(&self, group: u64) -> u64 {
        (self.blocks - self.group_begins(group)).min(self.group_blocks)
    }

    /// A group begins with a superblock (`ext4_bg_has_super`).
    pub fn has_superblock(&self, group: u64) -> bool {
        let is_power = |base: u64| {
            let mut power = base;
            while power < group {
                power *= base;
            }
            power == group
        };
        match self.copies {
            _ if group == 0 => true,
            Some(copies) => copies.contains(&group),
            None if group == 1 || !self.is_sparse => true,
            None => is_power(3) || is_power(5) || is_power(7),
        }
    }

    fn descriptors_of_block(&self) -> u64 {
        self.block_bytes / self.descriptor_bytes
    }

    /// Blocks with descriptors that a group has behind its superblock, and blocks kept for more
    /// (`ext4_num_base_meta_blocks`).
    pub fn descriptor_blocks(&self, group: u64) -> (u64, u64) {
        let each = self.descriptors_of_block();
        let has_superblock = u64::from(self.has_superblock(group));
        match self.first_meta_group {
            Some(first) if group / each >= first => {
                (u64::from([0, 1, each - 1].contains(&(group % each))), 0)
            }
            first => {
                let blocks = first.unwrap_or_else(|| self.groups.div_ceil(each));
                (has_superblock * blocks, has_superblock * self.reserved_descriptor_blocks)
            }
        }
    }

    /// The block with the descriptor of a group (`descriptor_loc`).
    fn descriptor_block(&self, group: u64) -> u64 {
        let number = group / self.descriptors_of_block();
        if self.first_meta_group.is_none_or(|first| number < first) {
            // The superblock's own block is 0, or 1 with blocks of 1024 bytes.
            return PLACE / self.block_bytes + 1 + number;
        }
        let first_of_meta = number * self.descriptors_of_block();
        let superblock = u64::from(self.has_superblock(first_of_meta));
        let in_second = self.block_bytes == 1024 && number == 0 && self.first_block == 0;
        self.group_begins(first_of_meta) + superblock + u64::from(in_second)
    }

    /// The blocks of descriptors, each with its place and how many groups it describes.
    pub fn descriptors(&self) -> impl Iterator<Item = (u64, u64)> {
        let each = self.descriptors_of_block();
        (0..self.groups.div_ceil(each)).map(move |number| {
            let first = number * each;
            (self.descriptor_block(first) * self.block_bytes, each.min(self.groups - first))
        })
    }

    /// A block's place in bytes, if the file system has it.
    pub fn place(&self, block: u64) -> Option<u64> {
        (block != 0 && block < self.blocks).then(|| block * self.block_bytes)
    }
}

/// Where a group has its bitmaps and inodes.
#[derive(Clone, Copy, Debug)]
pub struct Descriptor {
    pub block_bitmap: u64,
    pub inode_bitmap: u64,
    pub inode_table: u64,
    /// Its inodes were never written.
    pub has_no_inodes: bool,
    /// Its block bitmap was never written: nothing but metadata is allocated.
    pub has_no_bitmap: bool,
    /// How many inodes at the end were never used.
    pub inodes_unused: u64,
}

impl Descriptor {
    /// Reads one (`struct ext4_group_desc`).
    pub fn parse(bytes: &[u8], superblock: &Superblock) -> Descriptor {
        let is_long = superblock.descriptor_bytes >= 64;
        let block = |low, high| match is_long {
            true => halves(bytes, low, high),
            false => u64::from(le32(bytes, low)),
        };
        let flag = |bit| superblock.has_checksums && u8_at(bytes, 0x12) & bit != 0;
        let unused_high = if is_long { le16(bytes, 0x32) } else { 0 };
        let unused = u64::from(unused_high) << 16 | u64::from(le16(bytes, 0x1c));
        Descriptor {
            block_bitmap: block(0x0, 0x20),
            inode_bitmap: block(0x4, 0x24),
            inode_table: block(0x8, 0x28),
            has_no_inodes: flag(0x1),
            has_no_bitmap: flag(0x2),
            inodes_unused: if superblock.has_checksums { unused } else { 0 },
        }
    }
}
