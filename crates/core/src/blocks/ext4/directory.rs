//! Entries of ext4's directories.
//!
//! Layout: `struct ext4_dir_entry_2` in fs/ext4/ext4.h; the index of a hashed directory is in
//! entries that look empty, so that all blocks are read alike
//! (Documentation/filesystems/ext4/directory.rst).

use crate::blocks::bytes::{le16, le32, part, u8_at};

/// Calls `each` with the name and inode of every entry of a block.
pub fn entries(block: &[u8], has_file_types: bool, mut each: impl FnMut(&[u8], u64)) {
    let mut at = 0;
    while at + 8 <= block.len() {
        let length = record_length(le16(block, at + 4), block.len());
        // No entry is shorter, so the walk ends.
        if length < 8 {
            return;
        }
        let name_length = match has_file_types {
            true => usize::from(u8_at(block, at + 6)),
            false => usize::from(le16(block, at + 6)),
        };
        let inode = u64::from(le32(block, at));
        if inode != 0 && name_length <= length - 8 {
            each(part(block, at + 8, name_length), inode);
        }
        at += length;
    }
}

/// `ext4_rec_len_from_disk`.
fn record_length(length: u16, block_bytes: usize) -> usize {
    let length = usize::from(length);
    match block_bytes {
        65536.. if length == 0 || length == 65535 => block_bytes,
        65536.. => (length & 65532) | (length & 3) << 16,
        _ => length,
    }
}

/// The entries of a directory that is in its inode: 4 bytes for the parent, then entries, which go
/// on in the attribute `system.data` behind the inode's fields (`struct ext4_xattr_ibody_header`,
/// Documentation/filesystems/ext4/inlinedata.rst, attributes.rst).
pub fn inline(inode: &[u8], has_file_types: bool, mut each: impl FnMut(&[u8], u64)) {
    entries(part(inode, 0x28 + 4, 56), has_file_types, &mut each);
    entries(system_data(inode), has_file_types, &mut each);
}

fn system_data(inode: &[u8]) -> &[u8] {
    const MAGIC: u32 = 0xea02_0000;
    // EXT4_XATTR_INDEX_SYSTEM
    const SYSTEM: u8 = 7;
    let head = 128 + usize::from(le16(inode, 0x80));
    if le32(inode, head) != MAGIC {
        return &[];
    }
    let first = head + 4;
    let mut at = first;
    while le32(inode, at) != 0 {
        let name_length = usize::from(u8_at(inode, at));
        if u8_at(inode, at + 1) == SYSTEM && part(inode, at + 16, name_length) == b"data" {
            let length = le32(inode, at + 8) as usize;
            return part(inode, first + usize::from(le16(inode, at + 2)), length);
        }
        at += (16 + name_length).next_multiple_of(4);
    }
    &[]
}
