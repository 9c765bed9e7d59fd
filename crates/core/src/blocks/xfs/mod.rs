//! XFS, versions 4 and 5.

mod directory;
mod inode;
mod log;
mod named;
mod superblock;
mod trees;

pub use log::Log;
pub use named::named;
pub use superblock::Superblock;

use super::bytes::{ReadAt, be16, be32, be64, part, read};
use super::error::Error;
use super::names::Names;
use super::spans::Spans;
use super::what::{GroupTree, Header, Inode, Journal, What};
use super::{Map, Written};
use inode::{Kind, OnDisk};
use trees::{Extent, Walk};

/// Inodes are allocated by so many (XFS_INODES_PER_CHUNK).
const CHUNK: u64 = 64;
/// A bit of a record's mask of holes stands for so many inodes (XFS_INODES_PER_HOLEMASK_BIT).
const HOLE: u64 = 4;

/// The superblock, where `disk` has one.
pub fn superblock(disk: &dyn ReadAt) -> Result<Option<Superblock>, Error> {
    Superblock::read(disk)
}

/// Reads all there is.
pub fn map(disk: &dyn ReadAt, superblock: Superblock) -> Result<Map, Error> {
    let names = Names::new(Inode::of(superblock.root));
    let spans = Spans::default();
    let mut reader = Reader { disk, superblock: &superblock, spans, names, free: Vec::new() };
    let mut log = None;
    if let Some([place, length]) = superblock.log {
        reader.spans.claim(place, length, What::Journal(Journal::Other));
        log = Some(Log::read(disk, [place, length], superblock.log_uuid)?);
    }
    for group in 0..superblock.groups {
        reader.group(group)?;
    }
    for (place, length) in std::mem::take(&mut reader.free) {
        reader.spans.claim(place, length, What::Free);
    }
    Ok(Map {
        file_system: "xfs",
        block_bytes: superblock.block_bytes as u32,
        spans: reader.spans,
        names: reader.names,
        written: Written::Xfs(log, Box::new(superblock)),
    })
}

struct Reader<'a> {
    disk: &'a dyn ReadAt,
    superblock: &'a Superblock,
    spans: Spans,
    names: Names,
    /// Where free space is, and how many bytes: claimed last.
    free: Vec<(u64, u64)>,
}

impl Reader<'_> {
    /// An allocation group: four sectors of headers, trees, and what its inodes have.
    fn group(&mut self, group: u64) -> Result<(), Error> {
        let superblock = self.superblock;
        let Some(place) = superblock.place(group, 0, 1) else { return Ok(()) };
        let sector = superblock.sector_bytes;
        let header = |header| What::Header { header, group };
        let headers = [
            What::Superblock { copy: group },
            header(Header::Space),
            header(Header::Inodes),
            header(Header::Reserve),
        ];
        for (number, what) in (0..).zip(headers) {
            self.spans.claim(place + number * sector, sector, what);
        }
        let length = (4 * sector).next_multiple_of(superblock.block_bytes);
        self.spans.claim(place + 4 * sector, length - 4 * sector, What::Padding);
        let bytes = read(self.disk, place, 4 * sector as usize)?;
        let sector_of = |number| part(&bytes, number * sector as usize, sector as usize);
        let (space, inodes, reserve) = (sector_of(1), sector_of(2), sector_of(3));
        self.space(group, space)?;
        self.reserve(group, space, reserve);
        self.inodes(group, inodes)
    }

    fn tree(
        &mut self,
        tree: GroupTree,
        group: u64,
        header: &[u8],
        [root, levels]: [usize; 2],
    ) -> Result<Vec<[u8; 16]>, Error> {
        let Reader { disk, superblock, spans, .. } = self;
        let mut records = Vec::new();
        let mut take = |record: &[u8]| {
            let mut bytes = [0; 16];
            let length = record.len().min(16);
            bytes[..length].copy_from_slice(&record[..length]);
            records.push(bytes);
        };
        let root = (be32(header, root), be32(header, levels));
        let mut walk = Walk { disk: *disk, superblock, spans };
        walk.group_tree(tree, group, root, &mut take)?;
        Ok(records)
    }

    /// What the AGF leads to (`struct xfs_agf`).
    fn space(&mut self, group: u64, header: &[u8]) -> Result<(), Error> {
        if &part(header, 0, 4) != b"XAGF" {
            return Ok(());
        }
        let free = self.tree(GroupTree::FreeByPlace, group, header, [16, 28])?;
        self.tree(GroupTree::FreeByLength, group, header, [20, 32])?;
        if self.superblock.has_owners {
            self.tree(GroupTree::Owners, group, header, [24, 36])?;
        }
        if self.superblock.has_references {
            self.tree(GroupTree::References, group, header, [88, 92])?;
        }
        for record in free {
            let [block, blocks] = [0, 4].map(|at| u64::from(be32(&record, at)));
            let place = self.superblock.place(group, block, blocks);
            self.free.extend(place.map(|place| (place, blocks * self.superblock.block_bytes)));
        }
        Ok(())
    }

    /// The blocks in the ring of the AGFL that the AGF has as in use.
    fn reserve(&mut self, group: u64, space: &[u8], reserve: &[u8]) {
        let begin = if self.superblock.is_v5 { 36 } else { 0 };
        let slots = ((reserve.len() - begin) / 4) as u64;
        let [first, count] = [40, 48].map(|at| u64::from(be32(space, at)));
        for number in 0..count.min(slots) {
            let slot = (first + number) % slots;
            let block = be32(reserve, begin + slot as usize * 4);
            if let Some(place) = self.superblock.place(group, u64::from(block), 1) {
                self.spans.claim(place, self.superblock.block_bytes, What::Reserve { group });
            }
        }
    }

    /// What the AGI leads to (`struct xfs_agi`).
    fn inodes(&mut self, group: u64, header: &[u8]) -> Result<(), Error> {
        if &part(header, 0, 4) != b"XAGI" {
            return Ok(());
        }
        let chunks = self.tree(GroupTree::Inodes, group, header, [20, 24])?;
        if self.superblock.has_free_inodes {
            self.tree(GroupTree::FreeInodes, group, header, [328, 332])?;
        }
        for chunk in &chunks {
            self.chunk(group, chunk)?;
        }
        Ok(())
    }

    /// A chunk of inodes (`struct xfs_inobt_rec`), which may have holes.
    fn chunk(&mut self, group: u64, record: &[u8]) -> Result<(), Error> {
        let superblock = self.superblock;
        let (first, holes, free) = (u64::from(be32(record, 0)), be16(record, 4), be64(record, 8));
        for four in (0..CHUNK).step_by(HOLE as usize) {
            if holes >> (four / HOLE) & 1 == 1 {
                continue;
            }
            let (block, within) = superblock.inode_in_group(first + four);
            let length = HOLE * superblock.inode_bytes;
            let blocks = (within + length).div_ceil(superblock.block_bytes);
            let Some(place) = superblock.place(group, block, blocks) else { continue };
            let number = superblock.inode_number(group, first + four);
            let inode_bytes = superblock.inode_bytes as u32;
            let what = What::Inodes { first: number, count: HOLE, inode_bytes };
            if self.spans.claim(place + within, length, what) < length {
                continue;
            }
            let bytes = read(self.disk, place + within, length as usize)?;
            let each = bytes.chunks_exact(superblock.inode_bytes as usize);
            for (index, bytes) in (0..).zip(each) {
                let is_free = free >> (four + index) & 1 == 1;
                if let Some(inode) = OnDisk::of(number + index, bytes).filter(|_| !is_free) {
                    self.inode(inode)?;
                }
            }
        }
        Ok(())
    }

    fn inode(&mut self, inode: OnDisk<'_>) -> Result<(), Error> {
        let superblock = self.superblock;
        let who = Inode::of(inode.number);
        let mut walk = Walk { disk: self.disk, superblock, spans: &mut self.spans };
        let data = inode.data(&mut walk)?;
        let attributes = inode.attributes(&mut walk)?;
        let kind = inode.kind();
        let mut owned = Vec::new();
        for extent in data {
            let offset_bytes = extent.logical.saturating_mul(superblock.block_bytes);
            let what = match kind {
                Kind::Directory => What::Directory { inode: who, offset_bytes },
                Kind::Symlink => What::Symlink { inode: who },
                _ if superblock.quotas.contains(&inode.number) => What::Quota { inode: who },
                _ if superblock.realtime.contains(&inode.number) => What::Realtime { inode: who },
                _ => What::Data { inode: who, offset_bytes },
            };
            let length = extent.blocks * superblock.block_bytes;
            if self.spans.claim(extent.place, length, what) == length {
                owned.push(extent);
            }
        }
        for extent in attributes {
            let length = extent.blocks * superblock.block_bytes;
            self.spans.claim(extent.place, length, What::Attributes { inode: who });
        }
        if kind == Kind::Directory {
            self.names_of(inode, &owned)?;
        }
        Ok(())
    }

    fn names_of(&mut self, inode: OnDisk<'_>, extents: &[Extent]) -> Result<(), Error> {
        let (names, types) = (&mut self.names, self.superblock.has_file_types);
        let who = Inode::of(inode.number);
        let mut add = |name: &[u8], inode| names.add(who, name, Inode::of(inode));
        if let Some(fork) = inode.inside() {
            directory::short(fork, types, &mut add);
        }
        let (length, each) = (self.superblock.directory_bytes, self.superblock.block_bytes);
        let mut bytes = Vec::new();
        // A forged image may have one where no file reaches.
        let is_of_names = |it: &&Extent| it.logical.saturating_mul(each) < directory::INDEX_BEGINS;
        // A directory's block may lie in several runs, which follow one another in the file.
        for extent in extents.iter().filter(is_of_names) {
            for number in 0..extent.blocks {
                if (extent.logical + number) * each % length == 0 {
                    bytes.clear();
                }
                bytes.extend(read(self.disk, extent.place + number * each, each as usize)?);
                if bytes.len() as u64 == length {
                    directory::block(&bytes, types, &mut add);
                    bytes.clear();
                }
            }
        }
        Ok(())
    }
}
