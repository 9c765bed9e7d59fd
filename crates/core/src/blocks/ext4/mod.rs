//! ext2, ext3 and ext4.

mod directory;
mod fast_commit;
mod inode;
mod journal;
mod superblock;
#[cfg(test)]
mod tests;

pub use journal::Log;
pub use superblock::Superblock;

use super::bytes::{ReadAt, le32, read, u8_at};
use super::error::Error;
use super::names::Names;
use super::spans::Spans;
use super::what::{Inode, Journal, What};
use super::{Map, Written};
use inode::{Extent, Kind, OnDisk, Walk};
use superblock::{Descriptor, PLACE};

const ROOT: u64 = 2;
/// EXT4_BAD_INO.
const BAD: u64 = 1;

/// The superblock, where `disk` has one.
pub fn superblock(disk: &dyn ReadAt) -> Result<Option<Superblock>, Error> {
    Superblock::read(disk)
}

/// Reads all there is.
pub fn map(disk: &dyn ReadAt, superblock: &Superblock) -> Result<Map, Error> {
    let names = Names::new(Inode::of(ROOT));
    let mut reader = Reader { disk, superblock, spans: Spans::default(), names, log: None };
    let groups = reader.groups()?;
    reader.claim_groups(&groups);
    // First what others might claim by mistake.
    let special = [superblock.journal, superblock.orphans].into_iter().flatten();
    for number in special.chain(superblock.quotas) {
        reader.one_inode(&groups, number)?;
    }
    for (group, descriptor) in (0..).zip(&groups) {
        reader.inodes(group, descriptor)?;
    }
    for (group, descriptor) in (0..).zip(&groups) {
        reader.free(group, descriptor)?;
    }
    Ok(Map {
        file_system: "ext4",
        block_bytes: superblock.block_bytes as u32,
        spans: reader.spans,
        names: reader.names,
        written: Written::Ext4(reader.log),
    })
}

struct Reader<'a> {
    disk: &'a dyn ReadAt,
    superblock: &'a Superblock,
    spans: Spans,
    names: Names,
    log: Option<Log>,
}

impl Reader<'_> {
    fn groups(&self) -> Result<Vec<Descriptor>, Error> {
        let mut groups = Vec::new();
        let each = self.superblock.descriptor_bytes as usize;
        for (place, count) in self.superblock.descriptors() {
            let bytes = read(self.disk, place, count as usize * each)?;
            let found = bytes.chunks_exact(each);
            groups.extend(found.map(|bytes| Descriptor::parse(bytes, self.superblock)));
        }
        Ok(groups)
    }

    /// Claims `count` blocks from `block`, if the file system has them; gives how many are new.
    fn claim(&mut self, block: u64, count: u64, what: What) -> u64 {
        let count = count.min(self.superblock.blocks.saturating_sub(block));
        let each = self.superblock.block_bytes;
        self.spans.claim(block.saturating_mul(each), count * each, what) / each
    }

    /// What every group has of its own.
    fn claim_groups(&mut self, groups: &[Descriptor]) {
        let superblock = self.superblock;
        self.spans.claim(0, PLACE, What::Padding);
        self.spans.claim(PLACE, 1024, What::Superblock { copy: 0 });
        self.spans.claim(PLACE + 1024, superblock.block_bytes.saturating_sub(2048), What::Padding);
        let mut copy = 0;
        for (group, descriptor) in (0..).zip(groups) {
            let mut block = superblock.group_begins(group);
            if superblock.has_superblock(group) {
                self.claim(block, 1, What::Superblock { copy });
                copy += 1;
                // Blocks of 1024 bytes that are not counted from 1: bigalloc.
                let is_second = group == 0 && block * superblock.block_bytes < PLACE;
                block += 1 + u64::from(is_second && superblock.block_bytes == 1024);
            }
            let (used, reserved) = superblock.descriptor_blocks(group);
            self.claim(block, used, What::Descriptors);
            self.claim(block + used, reserved, What::ReservedDescriptors);
            self.claim_tables(group, descriptor);
        }
        if let Some(block) = superblock.mount_guard {
            self.claim(block, 1, What::MountGuard);
        }
    }

    fn claim_tables(&mut self, group: u64, descriptor: &Descriptor) {
        let superblock = self.superblock;
        let is_there = |block: &u64| superblock.place(*block).is_some();
        if let Some(block) = Some(descriptor.block_bitmap).filter(is_there) {
            self.claim(block, 1, What::BlockBitmap { group });
        }
        if let Some(block) = Some(descriptor.inode_bitmap).filter(is_there) {
            self.claim(block, 1, What::InodeBitmap { group });
        }
        if let Some(block) = Some(descriptor.inode_table).filter(is_there) {
            let bytes = superblock.group_inodes * superblock.inode_bytes;
            let inodes = What::Inodes {
                first: group * superblock.group_inodes + 1,
                count: superblock.group_inodes,
                inode_bytes: superblock.inode_bytes as u32,
            };
            self.claim(block, bytes.div_ceil(superblock.block_bytes), inodes);
        }
    }

    fn one_inode(&mut self, groups: &[Descriptor], number: u64) -> Result<(), Error> {
        let Some(index) = number.checked_sub(1) else { return Ok(()) };
        let each = self.superblock.group_inodes;
        let descriptor = usize::try_from(index / each).ok().and_then(|group| groups.get(group));
        let table = descriptor.and_then(|it| self.superblock.place(it.inode_table));
        let Some(table) = table else { return Ok(()) };
        let size = self.superblock.inode_bytes;
        let bytes = read(self.disk, table + index % each * size, size as usize)?;
        self.inode(OnDisk { number, bytes: &bytes })
    }

    /// The inodes of a group that are in use, by its bitmap.
    fn inodes(&mut self, group: u64, descriptor: &Descriptor) -> Result<(), Error> {
        let superblock = self.superblock;
        let place = |block| superblock.place(block);
        let (Some(bitmap), Some(table)) =
            (place(descriptor.inode_bitmap), place(descriptor.inode_table))
        else {
            return Ok(());
        };
        if descriptor.has_no_inodes {
            return Ok(());
        }
        let used = superblock.group_inodes.saturating_sub(descriptor.inodes_unused);
        let bitmap = read(self.disk, bitmap, used.div_ceil(8) as usize)?;
        let is_set = |index: u64| u8_at(&bitmap, (index / 8) as usize) >> (index % 8) & 1 == 1;
        let of_block = superblock.block_bytes / superblock.inode_bytes;
        for first in (0..used).step_by(of_block as usize) {
            let inside = first..(first + of_block).min(used);
            if !inside.clone().any(is_set) {
                continue;
            }
            let place = table + first * superblock.inode_bytes;
            let bytes = read(self.disk, place, superblock.block_bytes as usize)?;
            let each = bytes.chunks_exact(superblock.inode_bytes as usize);
            for (index, bytes) in inside.zip(each).filter(|(index, _)| is_set(*index)) {
                let number = group * superblock.group_inodes + index + 1;
                self.inode(OnDisk { number, bytes })?;
            }
        }
        Ok(())
    }

    fn inode(&mut self, inode: OnDisk<'_>) -> Result<(), Error> {
        let superblock = self.superblock;
        let who = Inode::of(inode.number);
        if superblock.place(inode.attributes_block()).is_some() {
            self.claim(inode.attributes_block(), 1, What::Attributes { inode: who });
        }
        let mut walk = Walk { disk: self.disk, superblock, spans: &mut self.spans };
        let extents = walk.extents(inode)?;
        let is_directory = inode.kind() == Kind::Directory;
        let mut owned = Vec::new();
        for extent in extents {
            let offset_bytes = extent.logical.saturating_mul(superblock.block_bytes);
            let what = match inode.number {
                number if Some(number) == superblock.journal => What::Journal(Journal::Other),
                number if Some(number) == superblock.orphans => What::Orphans,
                number if superblock.quotas.contains(&number) => What::Quota { inode: who },
                BAD => What::Bad,
                _ if is_directory => What::Directory { inode: who, offset_bytes },
                _ if inode.is_value() => What::Attributes { inode: who },
                _ if inode.kind() == Kind::Symlink => What::Symlink { inode: who },
                _ => What::Data { inode: who, offset_bytes },
            };
            // What others have is read once.
            if self.claim(extent.physical, extent.blocks, what) == extent.blocks {
                owned.push(extent);
            }
        }
        if is_directory {
            self.names_of(inode, &owned)?;
        }
        if Some(inode.number) == superblock.journal && self.log.is_none() {
            let fast = superblock.has_fast_commits;
            self.log = Log::read(self.disk, owned, superblock.block_bytes, fast)?;
        }
        Ok(())
    }

    fn names_of(&mut self, directory: OnDisk<'_>, extents: &[Extent]) -> Result<(), Error> {
        let (names, types) = (&mut self.names, self.superblock.has_file_types);
        let who = Inode::of(directory.number);
        let mut add = |name: &[u8], inode| names.add(who, name, Inode::of(inode));
        if directory.is_inline() {
            directory::inline(directory.bytes, types, &mut add);
        }
        for extent in extents {
            for block in extent.physical..extent.physical + extent.blocks {
                let length = self.superblock.block_bytes;
                let bytes = read(self.disk, block * length, length as usize)?;
                directory::entries(&bytes, types, &mut add);
            }
        }
        Ok(())
    }

    /// What the block bitmap has as free is so, where nothing else was found.
    fn free(&mut self, group: u64, descriptor: &Descriptor) -> Result<(), Error> {
        let superblock = self.superblock;
        let (begin, blocks) = (superblock.group_begins(group), superblock.blocks_of(group));
        if descriptor.has_no_bitmap {
            self.claim(begin, blocks, What::Free);
            return Ok(());
        }
        let Some(place) = superblock.place(descriptor.block_bitmap) else { return Ok(()) };
        let bits = blocks.div_ceil(superblock.cluster_blocks);
        let bitmap = read(self.disk, place, bits.div_ceil(32) as usize * 4)?;
        let is_set = |bit: u64| le32(&bitmap, (bit / 32) as usize * 4) >> (bit % 32) & 1 == 1;
        let mut bit = 0;
        while bit < bits {
            let stop = (bit..bits).find(|at| is_set(*at)).unwrap_or(bits);
            if stop > bit {
                let each = superblock.cluster_blocks;
                let last = (stop * each).min(blocks);
                self.claim(begin + bit * each, last - bit * each, What::Free);
            }
            bit = stop + 1;
        }
        Ok(())
    }
}
