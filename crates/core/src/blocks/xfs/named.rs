//! Self-describing metadata of XFS version 5: every block holds its magic, place, owner and the
//! file system's UUID.
//!
//! Layout: fs/xfs/libxfs/xfs_format.h and xfs_da_format.h; "XFS Algorithms & Data Structures",
//! chapter "Self-Describing Metadata". Numbers are big-endian.

use super::superblock::Superblock;
use super::trees::tree_of;
use crate::blocks::bytes::{be16, be32, be64, part};
use crate::blocks::what::{Inode, What};

/// Where a kind of block has its own place, the unique name and its owner.
struct Fields {
    place: usize,
    uuid: usize,
    owner: usize,
}

/// `struct xfs_btree_block_shdr`.
const GROUP_TREE: Fields = Fields { place: 16, uuid: 32, owner: 48 };
/// `struct xfs_btree_block_lhdr`.
const FILE_TREE: Fields = Fields { place: 24, uuid: 40, owner: 56 };
/// `struct xfs_dir3_blk_hdr`.
const DIRECTORY: Fields = Fields { place: 8, uuid: 24, owner: 40 };
/// `struct xfs_da3_blkinfo`.
const INDEX: Fields = Fields { place: 16, uuid: 32, owner: 48 };
/// `struct xfs_attr3_rmt_hdr` and `struct xfs_dsymlink_hdr`.
const REMOTE: Fields = Fields { place: 40, uuid: 16, owner: 32 };

/// What `block`, written at `place`, says it is; `known` is what the map has there.
pub fn named(superblock: &Superblock, place: u64, block: &[u8], known: What) -> Option<What> {
    if !superblock.is_v5 {
        return None;
    }
    let is_own = |fields: &Fields| {
        be64(block, fields.place).checked_mul(512) == Some(place)
            && part(block, fields.uuid, 16) == superblock.uuid
    };
    let file = |fields: Fields| is_own(&fields).then(|| Inode::of(be64(block, fields.owner)));
    let directory = |inode| match known {
        What::Directory { inode: same, .. } if same == inode => known,
        // Only the map of the file's blocks knows where in it.
        _ => What::Directory { inode, offset_bytes: 0 },
    };
    let magic = be32(block, 0);
    if let Some(tree) = tree_of(magic) {
        let group = u64::from(be32(block, GROUP_TREE.owner));
        return is_own(&GROUP_TREE).then_some(What::GroupTree { tree, group });
    }
    match &magic.to_be_bytes() {
        b"BMA3" => file(FILE_TREE).map(|inode| What::Mapping { inode }),
        b"XDB3" | b"XDD3" | b"XDF3" => file(DIRECTORY).map(directory),
        b"XARM" => file(REMOTE).map(|inode| What::Attributes { inode }),
        b"XSLM" => file(REMOTE).map(|inode| What::Symlink { inode }),
        _ => match be16(block, 8) {
            // XFS_DIR3_LEAF1_MAGIC, XFS_DIR3_LEAFN_MAGIC
            0x3df1 | 0x3dff => file(INDEX).map(directory),
            // XFS_ATTR3_LEAF_MAGIC
            0x3bee => file(INDEX).map(|inode| What::Attributes { inode }),
            // XFS_DA3_NODE_MAGIC, of both
            0x3ebe => file(INDEX).map(|inode| match known {
                What::Attributes { .. } => known,
                _ => directory(inode),
            }),
            _ => inodes(superblock, place, block),
        },
    }
}

/// A block of inodes: the first has its number and the unique name (`struct xfs_dinode`).
fn inodes(superblock: &Superblock, place: u64, block: &[u8]) -> Option<What> {
    let first = be64(block, 152);
    let is_own = &part(block, 0, 2) == b"IN"
        && first == superblock.inode_at(place)
        && part(block, 160, 16) == superblock.uuid;
    is_own.then(|| What::Inodes {
        first,
        count: block.len() as u64 / superblock.inode_bytes,
        inode_bytes: superblock.inode_bytes as u32,
    })
}
