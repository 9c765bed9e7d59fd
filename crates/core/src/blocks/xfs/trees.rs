//! The trees of XFS: those of an allocation group, and those that map a file's blocks.
//!
//! Layout: `struct xfs_btree_block` and the records in fs/xfs/libxfs/xfs_format.h; "XFS Algorithms
//! & Data Structures", chapters "AG Free Space Management", "AG Inode Management", "Reverse
//! Mapping", "Sharing Data Blocks" and "Data Extents". Numbers are big-endian.

use super::superblock::Superblock;
use crate::blocks::bytes::{ReadAt, be16, be32, be64, read};
use crate::blocks::error::Error;
use crate::blocks::spans::Spans;
use crate::blocks::what::{GroupTree, Inode, What};

/// No tree is deeper, because each node has several children: a header that says more is damaged.
const LEVELS_MAX: u32 = 32;

/// The size of keys and records of a tree, and its magic in versions 4 and 5.
#[derive(Clone, Copy)]
struct Shape {
    magics: [u32; 2],
    key_bytes: usize,
    record_bytes: usize,
}

fn shape(tree: GroupTree) -> Shape {
    let of = |magics: [&[u8; 4]; 2], key_bytes, record_bytes| {
        let magics = magics.map(|magic| u32::from_be_bytes(*magic));
        Shape { magics, key_bytes, record_bytes }
    };
    match tree {
        GroupTree::FreeByPlace => of([b"ABTB", b"AB3B"], 8, 8),
        GroupTree::FreeByLength => of([b"ABTC", b"AB3C"], 8, 8),
        GroupTree::Inodes => of([b"IABT", b"IAB3"], 4, 16),
        GroupTree::FreeInodes => of([b"FIBT", b"FIB3"], 4, 16),
        // Its inner nodes keep the lowest and the highest key of each child.
        GroupTree::Owners => of([b"RMB3", b"RMB3"], 40, 24),
        GroupTree::References => of([b"R3FC", b"R3FC"], 4, 12),
    }
}

/// The tree of a group whose blocks begin with this magic.
pub fn tree_of(magic: u32) -> Option<GroupTree> {
    let all = [
        GroupTree::FreeByPlace,
        GroupTree::FreeByLength,
        GroupTree::Inodes,
        GroupTree::FreeInodes,
        GroupTree::Owners,
        GroupTree::References,
    ];
    all.into_iter().find(|tree| shape(*tree).magics.contains(&magic))
}

/// A run of blocks of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Its first block in the file.
    pub logical: u64,
    /// Where it is, in bytes.
    pub place: u64,
    /// How many blocks.
    pub blocks: u64,
}

/// Walks trees and claims their blocks.
pub struct Walk<'a> {
    pub disk: &'a dyn ReadAt,
    pub superblock: &'a Superblock,
    pub spans: &'a mut Spans,
}

impl Walk<'_> {
    /// Claims a block and reads it, unless it was claimed before: no circle has an end.
    fn block(&mut self, place: u64, what: What) -> Result<Option<Vec<u8>>, Error> {
        let length = self.superblock.block_bytes;
        if self.spans.claim(place, length, what) < length {
            return Ok(None);
        }
        read(self.disk, place, length as usize).map(Some)
    }

    /// Walks a tree of a group down from `root`, which has `levels`; calls `leaf` with each record.
    pub fn group_tree(
        &mut self,
        tree: GroupTree,
        group: u64,
        (root, levels): (u32, u32),
        leaf: &mut dyn FnMut(&[u8]),
    ) -> Result<(), Error> {
        if levels > LEVELS_MAX {
            return Ok(());
        }
        let (superblock, shape) = (self.superblock, shape(tree));
        let Some(place) = superblock.place(group, u64::from(root), 1) else { return Ok(()) };
        let what = What::GroupTree { tree, group };
        let Some(node) = self.block(place, what)? else { return Ok(()) };
        let level = u32::from(be16(&node, 4));
        if !shape.magics.contains(&be32(&node, 0)) || level + 1 != levels {
            return Ok(());
        }
        let head = if superblock.is_v5 { 56 } else { 16 };
        let room = node.len().saturating_sub(head);
        let records = usize::from(be16(&node, 6));
        if level == 0 {
            let records = records.min(room / shape.record_bytes);
            node[head..].chunks_exact(shape.record_bytes).take(records).for_each(leaf);
            return Ok(());
        }
        let most = room / (shape.key_bytes + 4);
        let pointers = head + most * shape.key_bytes;
        for number in 0..records.min(most) {
            let child = be32(&node, pointers + number * 4);
            self.group_tree(tree, group, (child, levels - 1), leaf)?;
        }
        Ok(())
    }

    /// The runs in records of 16 bytes (`xfs_bmbt_disk_get_all`).
    pub fn runs(&self, records: &[u8], count: u64, found: &mut Vec<Extent>) {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        for record in records.chunks_exact(16).take(count) {
            let (high, low) = (be64(record, 0), be64(record, 8));
            // The highest bit: preallocated, not written yet.
            let logical = (high & !(1 << 63)) >> 9;
            let block = (high & 0x1ff) << 43 | low >> 21;
            let blocks = low & 0x1f_ffff;
            let place = self.superblock.run(block, blocks);
            found.extend(place.map(|place| Extent { logical, place, blocks }));
        }
    }

    /// The runs of a tree whose root is in the inode: `fork` (`struct xfs_bmdr_block`).
    pub fn file_root(
        &mut self,
        inode: u64,
        fork: &[u8],
        found: &mut Vec<Extent>,
    ) -> Result<(), Error> {
        let (level, records) = (be16(fork, 0), usize::from(be16(fork, 2)));
        if u32::from(level) >= LEVELS_MAX {
            return Ok(());
        }
        let most = fork.len().saturating_sub(4) / 16;
        for number in 0..records.min(most) {
            let child = be64(fork, 4 + most * 8 + number * 8);
            if let Some(below) = level.checked_sub(1) {
                self.file_tree(inode, child, below, found)?;
            }
        }
        Ok(())
    }

    fn file_tree(
        &mut self,
        inode: u64,
        block: u64,
        level: u16,
        found: &mut Vec<Extent>,
    ) -> Result<(), Error> {
        let Some(place) = self.superblock.run(block, 1) else { return Ok(()) };
        let what = What::Mapping { inode: Inode::of(inode) };
        let Some(node) = self.block(place, what)? else { return Ok(()) };
        let magics = [b"BMAP", b"BMA3"].map(|magic| u32::from_be_bytes(*magic));
        if !magics.contains(&be32(&node, 0)) || be16(&node, 4) != level {
            return Ok(());
        }
        let head = if self.superblock.is_v5 { 72 } else { 24 };
        let most = node.len().saturating_sub(head) / 16;
        let records = usize::from(be16(&node, 6)).min(most);
        if level == 0 {
            self.runs(&node[head..], records as u64, found);
            return Ok(());
        }
        for number in 0..records {
            let child = be64(&node, head + most * 8 + number * 8);
            self.file_tree(inode, child, level - 1, found)?;
        }
        Ok(())
    }
}
