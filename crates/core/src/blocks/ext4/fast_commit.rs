//! ext4's fast commits: what has changed since the last full commit, as tags.
//!
//! Layout: fs/ext4/fast_commit.h, `struct ext4_fc_tl` and the tags' values; `ext4_fc_commit` and
//! `ext4_fc_write_tail` in fs/ext4/fast_commit.c. Numbers are little-endian. A tag with its value
//! lies within a block, and each fast commit begins with a block.

use crate::blocks::bytes::{le16, le32, part};
use crate::blocks::what::Journal;

/// A block of the area without further details.
pub const UNTOLD: Journal =
    Journal::FastCommit { transaction: None, inodes: 0, ranges: 0, names: 0 };

const TAG_BYTES: usize = 4;

/// What a block holds; `None` where it is none of a fast commit.
pub fn fast_commit(block: &[u8]) -> Option<Journal> {
    let (mut transaction, mut inodes, mut ranges, mut names) = (None, 0, 0, 0);
    let mut at = 0;
    while at + TAG_BYTES <= block.len() {
        let (tag, length) = (le16(block, at), usize::from(le16(block, at + 2)));
        at += TAG_BYTES;
        if block.len() - at < length {
            return None;
        }
        let value = part(block, at, length);
        at += length;
        match tag {
            // A range that was added or removed, a name that was made, linked or unlinked.
            1 | 2 => ranges += 1,
            3..=5 => names += 1,
            6 => inodes += 1,
            // Pads the rest of the block.
            7 => break,
            // The tail: nothing of its block follows.
            8 => {
                transaction = Some(le32(value, 0));
                break;
            }
            // The head, of the first one after a full commit.
            9 => transaction = Some(le32(value, 4)),
            _ => return None,
        }
    }
    Some(Journal::FastCommit { transaction, inodes, ranges, names })
}
