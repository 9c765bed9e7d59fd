//! Entries of XFS' directories.
//!
//! Layout: fs/xfs/libxfs/xfs_da_format.h; "XFS Algorithms & Data Structures", chapter
//! "Directories". Numbers are big-endian.

use crate::blocks::bytes::{be16, be32, be64, part, u8_at};

/// The first byte of a directory's index: nothing behind it holds entries (XFS_DIR2_LEAF_OFFSET).
pub const INDEX_BEGINS: u64 = 1 << 35;

/// Calls `each` with the names and inodes in a fork that holds them itself (`xfs_dir2_sf_hdr`).
pub fn short(fork: &[u8], has_file_types: bool, mut each: impl FnMut(&[u8], u64)) {
    // One inode number of 64 bits makes all of them so long.
    let is_long = u8_at(fork, 1) > 0;
    let number_bytes = if is_long { 8 } else { 4 };
    let mut at = 2 + number_bytes;
    for _ in 0..u8_at(fork, 0) {
        let length = usize::from(u8_at(fork, at));
        let number = at + 3 + length + usize::from(has_file_types);
        if length == 0 || number + number_bytes > fork.len() {
            return;
        }
        let inode = if is_long { be64(fork, number) } else { u64::from(be32(fork, number)) };
        each(part(fork, at + 3, length), inode);
        at = number + number_bytes;
    }
}

/// Calls `each` with the names and inodes in a block of entries, which has an index at its end if
/// it is the directory's only one.
pub fn block(bytes: &[u8], has_file_types: bool, mut each: impl FnMut(&[u8], u64)) {
    let magic = u8_at(bytes, 0) == b'X' && u8_at(bytes, 1) == b'D';
    let (begin, is_alone) = match (magic, u8_at(bytes, 2), u8_at(bytes, 3)) {
        (true, b'2', b'B') => (16, true),
        (true, b'2', b'D') => (16, false),
        (true, b'B', b'3') => (64, true),
        (true, b'D', b'3') => (64, false),
        _ => return,
    };
    let mut end = bytes.len();
    if is_alone {
        let leaves = be32(bytes, end.saturating_sub(8)) as usize;
        end = end.saturating_sub(8 + leaves.saturating_mul(8));
    }
    let mut at = begin;
    while at + 11 <= end {
        // Free space names itself and its length.
        if be16(bytes, at) == 0xffff {
            let length = usize::from(be16(bytes, at + 2));
            if length < 8 {
                return;
            }
            at += length;
            continue;
        }
        let length = usize::from(u8_at(bytes, at + 8));
        each(part(bytes, at + 9, length), be64(bytes, at));
        at += (9 + length + usize::from(has_file_types) + 2).next_multiple_of(8);
    }
}
