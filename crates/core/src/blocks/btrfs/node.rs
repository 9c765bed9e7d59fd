//! Nodes of Btrfs' trees, which say whose they are.
//!
//! Layout: `struct btrfs_header`, `struct btrfs_item` and `struct btrfs_key_ptr` in
//! include/uapi/linux/btrfs_tree.h. Numbers are little-endian.

use super::superblock::{Chunks, Key, Superblock};
use crate::blocks::bytes::{le32, le64, part, u8_at};
use crate::blocks::what::{BtrfsTree, What};

/// The size of a header.
const HEADER: usize = 101;
const ITEM: usize = Key::BYTES + 8;
const POINTER: usize = Key::BYTES + 16;

/// BTRFS_TREE_LOG_OBJECTID.
const LOG: u64 = 6_u64.wrapping_neg();
/// BTRFS_FIRST_FREE_OBJECTID and BTRFS_LAST_FREE_OBJECTID.
const SUBVOLUMES: std::ops::RangeInclusive<u64> = 256..=256_u64.wrapping_neg();

/// The tree with a number.
pub fn tree(number: u64) -> BtrfsTree {
    match number {
        1 => BtrfsTree::Root,
        2 => BtrfsTree::Extent,
        3 => BtrfsTree::Chunk,
        4 => BtrfsTree::Device,
        5 => BtrfsTree::Subvolume(5),
        7 => BtrfsTree::Checksum,
        8 => BtrfsTree::Quota,
        9 => BtrfsTree::Uuid,
        10 => BtrfsTree::FreeSpace,
        11 => BtrfsTree::BlockGroups,
        LOG => BtrfsTree::Log,
        number if SUBVOLUMES.contains(&number) => BtrfsTree::Subvolume(number),
        number => BtrfsTree::Other(number),
    }
}

/// A node of a tree.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a>(&'a [u8]);

impl<'a> Node<'a> {
    /// `None`: these bytes are no node of this file system.
    pub fn of(bytes: &'a [u8], superblock: &Superblock) -> Option<Node<'a>> {
        (bytes.len() >= HEADER && part(bytes, 32, 16) == superblock.uuid).then_some(Node(bytes))
    }

    /// Its logical address.
    pub fn logical(self) -> u64 {
        le64(self.0, 48)
    }

    /// How far above the leaves it is.
    pub fn level(self) -> u8 {
        u8_at(self.0, 100)
    }

    /// What it is by its owner.
    pub fn what(self) -> What {
        What::Node { tree: tree(le64(self.0, 88)), level: self.level() }
    }

    fn count(self) -> usize {
        le32(self.0, 96) as usize
    }

    /// The logical addresses of its children.
    pub fn children(self) -> impl Iterator<Item = u64> {
        let pointers = self.0[HEADER..].chunks_exact(POINTER).take(self.count());
        pointers.map(|pointer| le64(pointer, Key::BYTES))
    }

    /// The items of a leaf.
    pub fn items(self) -> impl Iterator<Item = (Key, &'a [u8])> {
        let items = self.0[HEADER..].chunks_exact(ITEM).take(self.count());
        items.map(move |item| {
            let at = HEADER.saturating_add(le32(item, Key::BYTES) as usize);
            (Key::parse(item), part(self.0, at, le32(item, Key::BYTES + 4) as usize))
        })
    }
}

/// What was written at `place`, if it is the beginning of a node that belongs there.
pub fn named(superblock: &Superblock, chunks: &Chunks, place: u64, bytes: &[u8]) -> Option<What> {
    let node = Node::of(bytes, superblock)?;
    chunks.places(node.logical(), superblock.node_bytes).contains(&place).then(|| node.what())
}
