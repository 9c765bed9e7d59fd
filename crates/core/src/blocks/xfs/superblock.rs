//! The superblock of XFS, and what follows from it: where numbers of blocks and inodes lead.
//!
//! Layout: `struct xfs_dsb` in fs/xfs/libxfs/xfs_format.h; "XFS Algorithms & Data Structures",
//! chapter "Superblocks". Numbers are big-endian. The versions 4 and 5 are read.

use crate::blocks::bytes::{DEVICE_BYTES_MAX, ReadAt, be16, be32, be64, part, read, u8_at};
use crate::blocks::error::Error;

const MAGIC: u32 = 0x5846_5342;
/// sb_features_incompat.
mod incompat {
    pub const FILE_TYPE: u32 = 0x1;
    pub const META_UUID: u32 = 0x4;
    pub const META_DIRECTORY: u32 = 0x100;
}

/// sb_features2 of version 4.
const FILE_TYPE_2: u32 = 0x200;
/// sb_features_ro_compat.
const FREE_INODES: u32 = 0x1;
const REVERSE_MAP: u32 = 0x2;
const REFLINK: u32 = 0x4;

/// What the superblock says.
#[derive(Clone, Debug)]
pub struct Superblock {
    pub block_bytes: u64,
    pub sector_bytes: u64,
    pub inode_bytes: u64,
    pub blocks: u64,
    pub group_blocks: u64,
    pub groups: u64,
    pub is_v5: bool,
    pub has_file_types: bool,
    pub has_free_inodes: bool,
    pub has_owners: bool,
    pub has_references: bool,
    pub directory_bytes: u64,
    pub root: u64,
    /// The inodes of quotas of users, groups and projects.
    pub quotas: [u64; 3],
    /// The inodes of the realtime section's bitmap and summary.
    pub realtime: [u64; 2],
    /// Where the log begins and how many bytes it has; `None`: it is on another device.
    pub log: Option<[u64; 2]>,
    /// In what metadata names itself by.
    pub uuid: [u8; 16],
    /// In the records of the log.
    pub log_uuid: [u8; 16],
    group_log: u32,
    inodes_of_block_log: u32,
}

fn damaged(what: &'static str) -> Error {
    Error::Damaged { file_system: "XFS", what }
}

fn uuid(bytes: &[u8], at: usize) -> [u8; 16] {
    part(bytes, at, 16).try_into().unwrap_or_default()
}

impl Superblock {
    /// Reads it; `None`: this is no such file system.
    pub fn read(disk: &dyn ReadAt) -> Result<Option<Superblock>, Error> {
        let Ok(bytes) = read(disk, 0, 512) else { return Ok(None) };
        if be32(&bytes, 0) != MAGIC {
            return Ok(None);
        }
        Superblock::parse(&bytes).map(Some)
    }

    fn parse(bytes: &[u8]) -> Result<Superblock, Error> {
        let is_v5 = match be16(bytes, 100) & 0xf {
            4 => false,
            5 => true,
            version => {
                let why = format!("its version is {version}; 4 and 5 are known");
                return Err(Error::Unsupported { file_system: "XFS", why });
            }
        };
        let incompat = if is_v5 { be32(bytes, 216) } else { 0 };
        let ro_compat = if is_v5 { be32(bytes, 212) } else { 0 };
        if incompat & incompat::META_DIRECTORY != 0 {
            let why = "its metadata is in directories (metadir), which are not known yet".into();
            return Err(Error::Unsupported { file_system: "XFS", why });
        }
        let logs = [120, 121, 122, 123, 124].map(|at| u32::from(u8_at(bytes, at)));
        let [block_log, sector_log, inode_log, inodes_of_block_log, group_log] = logs;
        if !(9..=16).contains(&block_log) || !(9..=15).contains(&sector_log) {
            return Err(damaged("the size of its blocks or sectors"));
        }
        if !(8..=11).contains(&inode_log)
            || inode_log > block_log
            || inodes_of_block_log != block_log - inode_log
        {
            return Err(damaged("the size of its inodes"));
        }
        let directory_log = block_log + u32::from(u8_at(bytes, 192));
        if directory_log > 16 {
            return Err(damaged("the size of its directories' blocks"));
        }
        let has_own_uuid = incompat & incompat::META_UUID != 0;
        let is_old_with_types = !is_v5 && be32(bytes, 200) & FILE_TYPE_2 != 0;
        Superblock {
            block_bytes: 1 << block_log,
            sector_bytes: 1 << sector_log,
            inode_bytes: 1 << inode_log,
            blocks: be64(bytes, 8),
            group_blocks: u64::from(be32(bytes, 84)),
            groups: u64::from(be32(bytes, 88)),
            is_v5,
            has_file_types: is_old_with_types || incompat & incompat::FILE_TYPE != 0,
            has_free_inodes: ro_compat & FREE_INODES != 0,
            has_owners: ro_compat & REVERSE_MAP != 0,
            has_references: ro_compat & REFLINK != 0,
            directory_bytes: 1 << directory_log,
            root: be64(bytes, 56),
            quotas: [160, 168, 232].map(|at| be64(bytes, at)),
            realtime: [64, 72].map(|at| be64(bytes, at)),
            log: None,
            uuid: uuid(bytes, if has_own_uuid { 248 } else { 32 }),
            log_uuid: uuid(bytes, 32),
            group_log,
            inodes_of_block_log,
        }
        .checked(be64(bytes, 48), u64::from(be32(bytes, 96)))
    }

    /// Refuses what no mkfs makes (`xfs_validate_sb_common`), and finds the log.
    fn checked(mut self, log_begins: u64, log_blocks: u64) -> Result<Superblock, Error> {
        // The least that mkfs makes are 64 blocks (XFS_MIN_AG_BLOCKS).
        if self.group_blocks < 64 || self.group_log > 32 || self.group_blocks > 1 << self.group_log
        {
            return Err(damaged("the size of its allocation groups"));
        }
        let bytes = self.blocks.checked_mul(self.block_bytes);
        if bytes.is_none_or(|bytes| bytes > DEVICE_BYTES_MAX)
            || self.groups != self.blocks.div_ceil(self.group_blocks)
        {
            return Err(damaged("the number of its blocks"));
        }
        if log_begins != 0 {
            let place = self.run(log_begins, log_blocks).ok_or_else(|| damaged("its log"))?;
            self.log = Some([place, log_blocks * self.block_bytes]);
        }
        Ok(self)
    }

    /// How many blocks a group has: the last may have fewer.
    pub fn blocks_of(&self, group: u64) -> u64 {
        self.blocks.saturating_sub(group * self.group_blocks).min(self.group_blocks)
    }

    /// Where `blocks` blocks of a group are, if it has them.
    pub fn place(&self, group: u64, block: u64, blocks: u64) -> Option<u64> {
        let is_there = group < self.groups
            && blocks > 0
            && block.checked_add(blocks).is_some_and(|end| end <= self.blocks_of(group));
        is_there.then(|| (group * self.group_blocks + block) * self.block_bytes)
    }

    /// Where `blocks` blocks are, from one by its number in the file system.
    pub fn run(&self, block: u64, blocks: u64) -> Option<u64> {
        self.place(block >> self.group_log, block & ((1 << self.group_log) - 1), blocks)
    }

    /// Where an inode is: block of its group, and bytes from there.
    pub fn inode_in_group(&self, inode: u64) -> (u64, u64) {
        let in_block = inode & ((1 << self.inodes_of_block_log) - 1);
        (inode >> self.inodes_of_block_log, in_block * self.inode_bytes)
    }

    /// The number of an inode of a group.
    pub fn inode_number(&self, group: u64, inode: u64) -> u64 {
        (group << (self.group_log + self.inodes_of_block_log)) | inode
    }

    /// The inode at a place.
    pub fn inode_at(&self, place: u64) -> u64 {
        let block = place / self.block_bytes;
        let (group, block) = (block / self.group_blocks, block % self.group_blocks);
        let in_block = place % self.block_bytes / self.inode_bytes;
        self.inode_number(group, (block << self.inodes_of_block_log) | in_block)
    }
}
