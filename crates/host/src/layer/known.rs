//! The layers that can be made.

use super::Kind;
use super::{bcache, cache, delay, integrity, luks, lvm, md, null_blk, vdo};

/// All layers, in the order `list` shows them.
pub const ALL: [&Kind; 18] = [
    &null_blk::NULL_BLK,
    &null_blk::ZONED,
    &delay::DELAY,
    &luks::LUKS,
    &integrity::INTEGRITY,
    &md::RAID0,
    &md::RAID1,
    &md::RAID5,
    &md::RAID6,
    &md::RAID10,
    &lvm::LINEAR,
    &lvm::STRIPED,
    &lvm::THIN,
    &lvm::SNAPSHOT,
    &cache::CACHE,
    &cache::WRITECACHE,
    &bcache::BCACHE,
    &vdo::VDO,
];

/// The layer of that name.
pub fn find(name: &str) -> Option<&'static Kind> {
    ALL.into_iter().find(|kind| kind.name == name)
}
