//! What a block may be, in plain names.

use std::fmt;

/// A file: its inode number, and on Btrfs the subvolume, on ZFS the data set, that numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Inode {
    /// The number of the subvolume's tree or of the data set; 0 where a file system numbers its
    /// files once.
    pub subvolume: u64,
    /// The inode number.
    pub number: u64,
}

impl Inode {
    /// An inode of a file system without subvolumes.
    pub(super) const fn of(number: u64) -> Inode {
        Inode { subvolume: 0, number }
    }
}

impl fmt::Display for Inode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.subvolume {
            0 => write!(f, "{}", self.number),
            subvolume => write!(f, "{subvolume}/{}", self.number),
        }
    }
}

/// For accounts: the kinds of blocks that have sums of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// What files hold.
    Data,
    /// The journal or log, Btrfs' log trees, ZFS's log of intents.
    Journal,
    /// Whatever else the file system keeps about files and space.
    Metadata,
    /// Superblocks and their copies, labels and uberblocks.
    Superblock,
    /// Space that nothing has.
    Free,
    /// Nobody can tell.
    Unknown,
}

impl Group {
    /// All, in the order of reports.
    pub const ALL: [Group; 6] = [
        Group::Data,
        Group::Journal,
        Group::Metadata,
        Group::Superblock,
        Group::Free,
        Group::Unknown,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Group::Data => "data",
            Group::Journal => "journal",
            Group::Metadata => "metadata",
            Group::Superblock => "superblock",
            Group::Free => "free",
            Group::Unknown => "unknown",
        }
    }
}

/// A part of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Journal {
    /// Its own superblock.
    Superblock,
    /// Says which blocks follow, as copies.
    Descriptor {
        /// The transaction's number.
        transaction: u64,
        /// How many copies it announces.
        copies: u32,
    },
    /// The copy of a block, on its way to its place.
    Copy {
        /// The transaction's number.
        transaction: u64,
        /// Where its place is, in bytes from the file system's beginning.
        of: u64,
    },
    /// Ends a transaction.
    Commit {
        /// The transaction's number.
        transaction: u64,
    },
    /// Blocks whose earlier copies no longer count.
    Revoke {
        /// The transaction's number.
        transaction: u64,
        /// How many blocks it names.
        blocks: u32,
    },
    /// In the area of ext4's fast commits.
    FastCommit {
        /// The number of the transaction that it is of, where the block says it.
        transaction: Option<u32>,
        /// How many inodes it has.
        inodes: u32,
        /// How many ranges of files that were added or removed.
        ranges: u32,
        /// How many names that were made or removed.
        names: u32,
    },
    /// The header of a record of XFS' log.
    RecordHeader {
        /// The record's log sequence number: the cycle above, the 512-byte block below 32 bits.
        sequence: u64,
        /// How many log operations it holds.
        operations: u32,
    },
    /// Log operations of a record of XFS' log.
    RecordBody {
        /// The record's log sequence number.
        sequence: u64,
    },
    /// A block of the log of intents of a data set of ZFS (ZIL).
    IntentLog {
        /// The number of the data set.
        set: u64,
        /// Its place in the log.
        sequence: u64,
        /// How many records it holds: writes, names that were made, and the like.
        records: u32,
    },
    /// Never written, or what is left of something that was overwritten in part.
    Other,
}

/// A part of a pool of ZFS that is no file's. Object sets are numbered as zdb(8) does: 0 is that of
/// the whole pool, the MOS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pool {
    /// What a device says of itself and its pool, four times.
    Label {
        /// Which one.
        copy: u8,
    },
    /// A place in a label's ring of uberblocks; each of them ends a transaction group.
    Uberblock {
        /// The label's number.
        copy: u8,
        /// Which place.
        slot: u32,
    },
    /// The beginning of an object set.
    ObjectSet {
        /// Its number.
        set: u64,
    },
    /// Dnodes: what inodes are elsewhere.
    Dnodes {
        /// Of which object set.
        set: u64,
        /// The number of the first object.
        first: u64,
    },
    /// A block of another object.
    Object {
        /// Of which object set.
        set: u64,
        /// Its number.
        object: u64,
        /// Its type, by the number in `enum dmu_object_type`.
        kind: u8,
        /// How far above the data.
        level: u8,
    },
    /// Leads to the parts of a block for which there was no room in one piece.
    Gang,
}

/// The three headers of an allocation group of XFS beside the superblock's copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Header {
    /// AGF: where the free space is.
    Space,
    /// AGI: where the inodes are.
    Inodes,
    /// AGFL: the blocks set aside for the group's own trees.
    Reserve,
}

/// The trees of an allocation group of XFS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupTree {
    /// Free space by place (bnobt).
    FreeByPlace,
    /// Free space by length (cntbt).
    FreeByLength,
    /// Chunks of inodes (inobt).
    Inodes,
    /// Chunks with free inodes (finobt).
    FreeInodes,
    /// The owners of blocks (rmapbt).
    Owners,
    /// How often shared blocks are referred to (refcountbt).
    References,
}

/// Btrfs' trees, by the owner in the header of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BtrfsTree {
    /// Where the other trees begin.
    Root,
    /// Which logical addresses lie where on the devices.
    Chunk,
    /// Allocated space, with its owner.
    Extent,
    /// What of the devices is allocated.
    Device,
    /// Files and directories of a subvolume.
    Subvolume(u64),
    /// Checksums of data.
    Checksum,
    /// What fsync wrote for the next mount, should there be a crash.
    Log,
    /// Subvolumes by their unique names.
    Uuid,
    /// Free space.
    FreeSpace,
    /// Quotas.
    Quota,
    /// Block groups.
    BlockGroups,
    /// Another one, by its number.
    Other(u64),
}

/// What a piece of a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum What {
    /// Never used: before the first superblock, after a header that fills no block.
    Padding,
    /// The superblock; copies are counted from 1.
    Superblock {
        /// 0 for the one that is read at a mount.
        copy: u64,
    },
    /// ext4's group descriptors.
    Descriptors,
    /// Kept for more descriptors, should the file system grow.
    ReservedDescriptors,
    /// Which blocks of a group are allocated.
    BlockBitmap {
        /// The group.
        group: u64,
    },
    /// Which inodes of a group are.
    InodeBitmap {
        /// The group.
        group: u64,
    },
    /// A table or chunk of inodes.
    Inodes {
        /// The first of them.
        first: u64,
        /// How many.
        count: u64,
        /// The size of each.
        inode_bytes: u32,
    },
    /// Entries of a directory, or their index.
    Directory {
        /// The directory.
        inode: Inode,
        /// Where in it.
        offset_bytes: u64,
    },
    /// Where a file's blocks are: an extent, indirect or bmbt block.
    Mapping {
        /// The file.
        inode: Inode,
    },
    /// What a file holds.
    Data {
        /// The file.
        inode: Inode,
        /// Where in it.
        offset_bytes: u64,
    },
    /// The target of a symbolic link.
    Symlink {
        /// The link.
        inode: Inode,
    },
    /// Extended attributes of a file, or of several that have the same ones.
    Attributes {
        /// The first file that has them.
        inode: Inode,
    },
    /// Quotas.
    Quota {
        /// The file they are kept in.
        inode: Inode,
    },
    /// ext4's list of orphans.
    Orphans,
    /// ext4's guard against a second mount elsewhere.
    MountGuard,
    /// Blocks that are marked as bad.
    Bad,
    /// Where free space was, in the first form of Btrfs' cache of it.
    SpaceCache {
        /// The file it is kept in.
        inode: Inode,
    },
    /// Bitmap or summary of XFS' realtime section.
    Realtime {
        /// The file they are kept in.
        inode: Inode,
    },
    /// A part of the journal.
    Journal(Journal),
    /// A header of an allocation group.
    Header {
        /// Which one.
        header: Header,
        /// The group.
        group: u64,
    },
    /// A block of a tree of an allocation group.
    GroupTree {
        /// Which one.
        tree: GroupTree,
        /// The group.
        group: u64,
    },
    /// Set aside for the trees of an allocation group.
    Reserve {
        /// The group.
        group: u64,
    },
    /// A block of one of Btrfs' trees.
    Node {
        /// Which one.
        tree: BtrfsTree,
        /// How far above the leaves.
        level: u8,
    },
    /// A part of a pool of ZFS that is no file's.
    Pool(Pool),
    /// Nothing has it.
    Free,
    /// Nobody can tell.
    Unknown,
}

impl What {
    /// For accounts.
    pub fn group(self) -> Group {
        match self {
            What::Data { .. } => Group::Data,
            What::Journal(_) | What::Node { tree: BtrfsTree::Log, .. } => Group::Journal,
            What::Superblock { .. } | What::Pool(Pool::Label { .. } | Pool::Uberblock { .. }) => {
                Group::Superblock
            }
            What::Free | What::Padding => Group::Free,
            What::Unknown => Group::Unknown,
            _ => Group::Metadata,
        }
    }

    /// What the part is that begins `skip` bytes later and has `length` bytes.
    pub(super) fn part(self, skip: u64, length: u64) -> What {
        match self {
            What::Data { inode, offset_bytes } => {
                What::Data { inode, offset_bytes: offset_bytes.saturating_add(skip) }
            }
            What::Directory { inode, offset_bytes } => {
                What::Directory { inode, offset_bytes: offset_bytes.saturating_add(skip) }
            }
            What::Inodes { first, inode_bytes, .. } => {
                let each = u64::from(inode_bytes).max(1);
                let begin = skip / each;
                let count = skip.saturating_add(length).div_ceil(each) - begin;
                What::Inodes { first: first.saturating_add(begin), count, inode_bytes }
            }
            same => same,
        }
    }
    /// What both are that follow one another and have `length` and `next_length` bytes; `None`:
    /// they are not the same.
    pub(super) fn joined(self, length: u64, next: What, next_length: u64) -> Option<What> {
        let (What::Inodes { first, count, inode_bytes }, What::Inodes { count: more, .. }) =
            (self, next)
        else {
            return (self.part(length, next_length) == next).then_some(self);
        };
        let is_whole = count * u64::from(inode_bytes) == length;
        let both = What::Inodes { first, count: count + more, inode_bytes };
        (is_whole && both.part(length, next_length) == next).then_some(both)
    }
}
