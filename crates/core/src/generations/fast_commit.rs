//! What a fast commit puts into the journal: the changes of each inode, in tags, one after the
//! other (fs/ext4/fast_commit.c, `ext4_fc_perform_commit`; fs/ext4/fast_commit.h). Every file that
//! was written to since the last commit is in it.

use super::Modelled;
use super::request::{flush, write};
use super::version::Version;
use crate::model::FsyncCase;
use crate::model::trace::Entry;

/// aa75f4d3daae, "ext4: main fast-commit commit path".
pub const SINCE: Version = Version::new(5, 10, 0);

/// A tag's head (`ext4_fc_tl`).
const TAG_BYTES: u64 = 4;
/// `ext4_fc_head` and `ext4_fc_tail` within their tags.
const HEAD_BYTES: u64 = 8;
const TAIL_BYTES: u64 = 8;
/// `ext4_fc_add_range`: an inode and an extent.
const RANGE_BYTES: u64 = 16;
/// `ext4_fc_inode`: a number, and the inode with the fields that mke2fs leaves room for (128 bytes,
/// and `s_want_extra_isize`), without its extended attributes.
const INODE_BYTES: u64 = 4 + 128 + 32;

/// Blocks of tags; before the last, which says that it is the last, a flush, and one after it.
pub fn entries(modelled: &Modelled, files: &[u64]) -> Vec<Entry> {
    let mut tags = vec![HEAD_BYTES];
    for file in files {
        let is_allocated = Some(file) == files.last() || !modelled.options.delays_allocation;
        if is_allocated && modelled.case == FsyncCase::Allocating {
            tags.push(RANGE_BYTES);
        }
        tags.push(INODE_BYTES);
    }
    tags.push(TAIL_BYTES);
    let blocks = blocks(&tags, modelled.options.block_bytes);
    let of = |count| write(vec![modelled.journal("journal fast commit", count)]);
    let first = (blocks > 1).then(|| of(blocks - 1));
    first.into_iter().chain([flush(), of(1), flush()]).collect()
}

/// How many blocks such tags take: none is split, and each leaves room for one that pads
/// (`ext4_fc_reserve_space`).
fn blocks(tags: &[u64], block_bytes: u64) -> u64 {
    let (mut blocks, mut used) = (1, 0);
    for tag in tags {
        let bytes = TAG_BYTES + tag;
        if used + bytes + TAG_BYTES > block_bytes {
            (blocks, used) = (blocks + 1, 0);
        }
        used += bytes;
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_of_4_kib_has_room_for_24_inodes() {
        let of = |files: usize| {
            let inodes = std::iter::repeat_n(INODE_BYTES, files);
            let tags: Vec<u64> = [HEAD_BYTES].into_iter().chain(inodes).collect();
            blocks(&tags, 4096)
        };
        assert_eq!([of(1), of(24), of(25), of(1000)], [1, 1, 2, 42]);
    }
}
