//! Inodes of ext4 and the blocks they lead to, by extents or indirect blocks.
//!
//! Layout: `struct ext4_inode` in fs/ext4/ext4.h, `struct ext4_extent_header` and the others in
//! fs/ext4/ext4_extents.h; Documentation/filesystems/ext4/inodes.rst, ifork.rst.

use super::superblock::Superblock;
use crate::blocks::bytes::{ReadAt, halves, le16, le32, part, read};
use crate::blocks::error::Error;
use crate::blocks::spans::Spans;
use crate::blocks::what::{Inode, What};

const EXTENTS: u32 = 0x0008_0000;
const INLINE_DATA: u32 = 0x1000_0000;
const VALUE: u32 = 0x0020_0000;

/// The longest extent that is no preallocation (`EXT_INIT_MAX_LEN`).
const WRITTEN_MAX: u64 = 1 << 15;
const EXTENT_MAGIC: u16 = 0xf30a;

/// What the file type bits of a mode say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    File,
    Directory,
    Symlink,
    /// A device, a pipe or a socket: it has no blocks.
    Special,
    /// Reserved inodes have no mode.
    None,
}

impl Kind {
    /// Of a mode (inode(7)).
    pub fn of(mode: u16) -> Kind {
        match mode & 0xf000 {
            0x8000 => Kind::File,
            0x4000 => Kind::Directory,
            0xa000 => Kind::Symlink,
            0 => Kind::None,
            _ => Kind::Special,
        }
    }
}

/// An inode as it is on the disk.
#[derive(Clone, Copy, Debug)]
pub struct OnDisk<'a> {
    pub number: u64,
    pub bytes: &'a [u8],
}

impl OnDisk<'_> {
    pub fn kind(&self) -> Kind {
        Kind::of(le16(self.bytes, 0))
    }

    fn flags(&self) -> u32 {
        le32(self.bytes, 0x20)
    }

    fn size_bytes(&self) -> u64 {
        halves(self.bytes, 0x4, 0x6c)
    }

    /// The 60 bytes that hold extents, block numbers or data.
    pub fn block_field(&self) -> &[u8] {
        part(self.bytes, 0x28, 60)
    }

    /// Its data is in the inode.
    pub fn is_inline(&self) -> bool {
        self.flags() & INLINE_DATA != 0
    }

    /// It holds the value of an extended attribute of another inode.
    pub fn is_value(&self) -> bool {
        self.flags() & VALUE != 0
    }

    /// The block with its extended attributes, or 0.
    pub fn attributes_block(&self) -> u64 {
        u64::from(le16(self.bytes, 0x76)) << 32 | u64::from(le32(self.bytes, 0x68))
    }

    /// `ext4_inode_is_fast_symlink`, without the extended attributes it counts.
    fn is_short_link(&self) -> bool {
        self.kind() == Kind::Symlink && self.flags() & EXTENTS == 0 && self.size_bytes() < 60
    }
}

/// A run of blocks of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Its first block in the file.
    pub logical: u64,
    /// Its first block in the file system.
    pub physical: u64,
    /// How many.
    pub blocks: u64,
}

/// Finds the blocks of one inode and claims those that map it.
pub struct Walk<'a> {
    pub disk: &'a dyn ReadAt,
    pub superblock: &'a Superblock,
    pub spans: &'a mut Spans,
}

impl Walk<'_> {
    /// The runs of blocks of a file.
    pub fn extents(&mut self, inode: OnDisk<'_>) -> Result<Vec<Extent>, Error> {
        let mut found = Vec::new();
        if inode.is_inline() || inode.kind() == Kind::Special || inode.is_short_link() {
            return Ok(found);
        }
        if inode.flags() & EXTENTS != 0 {
            self.tree(inode.number, inode.block_field(), None, &mut found)?;
            return Ok(found);
        }
        for number in 0..15 {
            let block = u64::from(le32(inode.block_field(), number * 4));
            let each = self.superblock.block_bytes / 4;
            match number {
                0..12 => self.add(&mut found, number as u64, block, 1),
                12 => self.indirect(inode.number, block, 1, 12, &mut found)?,
                13 => self.indirect(inode.number, block, 2, 12 + each, &mut found)?,
                _ => {
                    let first = 12 + each + each * each;
                    self.indirect(inode.number, block, 3, first, &mut found)?;
                }
            }
        }
        Ok(found)
    }

    /// Adds a run, to the one before where it goes on.
    fn add(&self, found: &mut Vec<Extent>, logical: u64, physical: u64, blocks: u64) {
        let last = physical.saturating_add(blocks).saturating_sub(1);
        let is_there = |block| self.superblock.place(block).is_some();
        if blocks == 0 || !is_there(physical) || !is_there(last) {
            return;
        }
        match found.last_mut() {
            Some(before)
                if before.logical + before.blocks == logical
                    && before.physical + before.blocks == physical =>
            {
                before.blocks += blocks;
            }
            _ => found.push(Extent { logical, physical, blocks }),
        }
    }

    /// Claims a block that maps `inode` and reads it, unless it was claimed before: the block of
    /// descriptors that the resize inode has as indirect ones, or a circle.
    fn mapping(&mut self, inode: u64, block: u64) -> Result<Option<Vec<u8>>, Error> {
        let length = self.superblock.block_bytes;
        let Some(place) = self.superblock.place(block) else { return Ok(None) };
        let what = What::Mapping { inode: Inode::of(inode) };
        if self.spans.claim(place, length, what) < length {
            return Ok(None);
        }
        read(self.disk, place, length as usize).map(Some)
    }

    /// A node of an extent tree. Below the root, `depth` is what its parent leads one to expect.
    fn tree(
        &mut self,
        inode: u64,
        node: &[u8],
        depth: Option<u16>,
        found: &mut Vec<Extent>,
    ) -> Result<(), Error> {
        let is_expected = match depth {
            Some(depth) => le16(node, 6) == depth,
            // EXT4_MAX_EXTENT_DEPTH
            None => le16(node, 6) <= 5,
        };
        if le16(node, 0) != EXTENT_MAGIC || !is_expected {
            return Ok(());
        }
        let depth = le16(node, 6);
        let entries = usize::from(le16(node, 2)).min(node.len().saturating_sub(12) / 12);
        for entry in node[12..].chunks_exact(12).take(entries) {
            if depth == 0 {
                let length = u64::from(le16(entry, 4));
                let blocks = if length > WRITTEN_MAX { length - WRITTEN_MAX } else { length };
                let physical = u64::from(le16(entry, 6)) << 32 | u64::from(le32(entry, 8));
                self.add(found, u64::from(le32(entry, 0)), physical, blocks);
                continue;
            }
            let child = u64::from(le16(entry, 8)) << 32 | u64::from(le32(entry, 4));
            if let Some(node) = self.mapping(inode, child)? {
                self.tree(inode, &node, Some(depth - 1), found)?;
            }
        }
        Ok(())
    }

    /// An indirect block, `level` above the data, whose first block in the file is `logical`.
    fn indirect(
        &mut self,
        inode: u64,
        block: u64,
        level: u32,
        logical: u64,
        found: &mut Vec<Extent>,
    ) -> Result<(), Error> {
        let Some(bytes) = self.mapping(inode, block)? else { return Ok(()) };
        let below = (self.superblock.block_bytes / 4).pow(level - 1);
        for (number, entry) in bytes.chunks_exact(4).enumerate() {
            let block = u64::from(le32(entry, 0));
            let logical = logical + number as u64 * below;
            match level {
                1 => self.add(found, logical, block, 1),
                _ if block != 0 => self.indirect(inode, block, level - 1, logical, found)?,
                _ => {}
            }
        }
        Ok(())
    }
}
