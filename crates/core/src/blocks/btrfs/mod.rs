//! Btrfs on one device.

mod node;
mod superblock;

pub use node::named;
pub use superblock::{Chunks, Superblock};

use std::collections::HashSet;

use super::bytes::{ReadAt, le16, le64, part, read, u8_at};
use super::error::Error;
use super::names::Names;
use super::spans::Spans;
use super::what::{BtrfsTree, Inode, What};
use super::{Map, Written};
use node::{Node, tree};
use superblock::{Key, PLACES, Root};

/// Types of items (include/uapi/linux/btrfs_tree.h, BTRFS_*_KEY).
mod kind {
    pub const INODE: u8 = 1;
    pub const DIRECTORY_INDEX: u8 = 96;
    pub const FILE_EXTENT: u8 = 108;
    pub const ROOT: u8 = 132;
    pub const EXTENT: u8 = 168;
    pub const METADATA: u8 = 169;
    pub const CHUNK: u8 = 228;
}

/// BTRFS_FS_TREE_OBJECTID, BTRFS_FIRST_FREE_OBJECTID: the root directory of a subvolume.
const ROOT: Inode = Inode { subvolume: 5, number: ROOT_DIRECTORY };
const ROOT_DIRECTORY: u64 = 256;
/// No chunk begins before (BTRFS_DEVICE_RANGE_RESERVED).
const RESERVED: u64 = 1 << 20;

/// The superblock, where `disk` has one.
pub fn superblock(disk: &dyn ReadAt) -> Result<Option<Superblock>, Error> {
    Superblock::read(disk)
}

/// Reads all there is.
pub fn map(disk: &dyn ReadAt, superblock: Superblock) -> Result<Map, Error> {
    let mut reader = Reader {
        disk,
        chunks: superblock.chunks()?,
        superblock: &superblock,
        spans: Spans::default(),
        names: Names::new(ROOT),
        roots: Vec::new(),
        extents: Vec::new(),
    };
    for (copy, place) in (0..).zip(PLACES) {
        if place + superblock::LENGTH as u64 <= superblock.total_bytes {
            let length = superblock::LENGTH as u64;
            reader.spans.claim(place, length, What::Superblock { copy });
        }
    }
    reader.tree(3, superblock.chunk_root)?;
    reader.tree(1, superblock.root)?;
    if superblock.log_root.0 != 0 {
        reader.tree(1, superblock.log_root)?;
    }
    while let Some((number, root)) = reader.roots.pop() {
        reader.tree(number, root)?;
    }
    reader.claim_rest();
    Ok(Map {
        file_system: "btrfs",
        block_bytes: superblock.sector_bytes as u32,
        spans: reader.spans,
        names: reader.names,
        written: Written::Btrfs(reader.chunks, Box::new(superblock)),
    })
}

struct Reader<'a> {
    disk: &'a dyn ReadAt,
    superblock: &'a Superblock,
    chunks: Chunks,
    spans: Spans,
    names: Names,
    /// Trees that are to be walked, each with its number.
    roots: Vec<(u64, Root)>,
    /// What is claimed last: logical address, length and what it is.
    extents: Vec<(u64, u64, What)>,
}

impl Reader<'_> {
    /// Walks a tree by its number. No node is walked twice: snapshots share nodes.
    fn tree(&mut self, number: u64, (root, level): Root) -> Result<(), Error> {
        let length = self.superblock.node_bytes;
        let places = self.chunks.places(root, length);
        for place in &places {
            let bytes = read(self.disk, *place, length as usize)?;
            let node = Node::of(&bytes, self.superblock);
            let node = node.filter(|node| node.logical() == root && node.level() == level);
            let Some(node) = node else { continue };
            let new: u64 = places.iter().map(|at| self.spans.claim(*at, length, node.what())).sum();
            if new == 0 {
                return Ok(());
            }
            let Some(below) = level.checked_sub(1) else { return self.leaf(number, node) };
            for child in node.children() {
                self.tree(number, (child, below))?;
            }
            return Ok(());
        }
        Ok(())
    }

    fn leaf(&mut self, number: u64, node: Node<'_>) -> Result<(), Error> {
        for (key, item) in node.items() {
            match (tree(number), key.kind) {
                (BtrfsTree::Chunk, kind::CHUNK) => {
                    self.chunks.add(self.superblock, key.offset, item)?;
                }
                (BtrfsTree::Root, kind::ROOT) => {
                    // What fsync logged of a subvolume has its files' numbers.
                    let is_log = tree(key.object) == BtrfsTree::Log;
                    let number = if is_log { key.offset } else { key.object };
                    // `struct btrfs_root_item`: bytenr, level.
                    self.roots.push((number, (le64(item, 176), u8_at(item, 238))));
                }
                (BtrfsTree::Extent, kind::EXTENT) => {
                    self.extents.push((key.object, key.offset, What::Unknown));
                }
                (BtrfsTree::Extent, kind::METADATA) => {
                    let length = self.superblock.node_bytes;
                    self.extents.push((key.object, length, What::Unknown));
                }
                (_, kind::FILE_EXTENT) => self.file_extent(number, key, item),
                (BtrfsTree::Subvolume(_), kind::DIRECTORY_INDEX) => self.name(number, key, item),
                _ => {}
            }
        }
        Ok(())
    }

    /// An extent of a file (`struct btrfs_file_extent_item`): what the file has of it at once, the
    /// rest, which other files may have, later.
    fn file_extent(&mut self, number: u64, key: Key, item: &[u8]) {
        const INLINE: u8 = 0;
        let [begin, length, skip, used] = [21, 29, 37, 45].map(|at| le64(item, at));
        if u8_at(item, 20) == INLINE || begin == 0 {
            return;
        }
        let inode = Inode { subvolume: number, number: key.object };
        let whole = match tree(number) {
            // The first form of the space cache, in files of the root tree.
            BtrfsTree::Root => What::SpaceCache { inode },
            _ => What::Data { inode, offset_bytes: key.offset.saturating_sub(skip) },
        };
        let is_compressed = u8_at(item, 16) != 0;
        if !is_compressed && let Some(from) = begin.checked_add(skip) {
            let length = used.min(length.saturating_sub(skip));
            self.claim(from, length, whole.part(skip, length));
        }
        self.extents.push((begin, length, whole));
    }

    /// Claims logical addresses, wherever they are.
    fn claim(&mut self, logical: u64, length: u64, what: What) {
        for place in self.chunks.places(logical, length) {
            self.spans.claim(place, length, what);
        }
    }

    /// An entry of a directory (`struct btrfs_dir_item`).
    fn name(&mut self, subvolume: u64, key: Key, item: &[u8]) {
        let directory = Inode { subvolume, number: key.object };
        let to = Key::parse(item);
        let name = part(item, 30, usize::from(le16(item, 27)));
        let inode = match to.kind {
            kind::INODE => Inode { subvolume, number: to.object },
            kind::ROOT => Inode { subvolume: to.object, number: ROOT_DIRECTORY },
            _ => return,
        };
        self.names.add(directory, name, inode);
    }

    /// The rest of extents that files use in part; what is allocated to no owner that was found;
    /// and what is free.
    fn claim_rest(&mut self) {
        let mut extents = std::mem::take(&mut self.extents);
        extents.sort_by_key(|(_, _, what)| *what == What::Unknown);
        // Each fragment of a file has named its whole extent; the first claim holds.
        let mut seen = HashSet::new();
        extents.retain(|(logical, length, _)| seen.insert((*logical, *length)));
        for (logical, length, what) in extents {
            self.claim(logical, length, what);
        }
        let total_bytes = self.superblock.total_bytes;
        self.spans.claim(0, RESERVED.min(total_bytes), What::Padding);
        self.spans.claim(0, total_bytes, What::Free);
    }
}
