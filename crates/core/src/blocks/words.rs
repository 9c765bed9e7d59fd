//! What is said of a block.

use std::fmt;

use super::what::{BtrfsTree, GroupTree, Header, Journal, Pool, What};

impl What {
    /// Its kind in words, without numbers: what an account has a row for.
    pub fn name(self) -> &'static str {
        match self {
            What::Padding => "padding",
            What::Superblock { copy: 0 } => "superblock",
            What::Superblock { .. } => "copy of the superblock",
            What::Descriptors => "group descriptors",
            What::ReservedDescriptors => "room for group descriptors",
            What::BlockBitmap { .. } => "block bitmap",
            What::InodeBitmap { .. } => "inode bitmap",
            What::Inodes { .. } => "inodes",
            What::Directory { .. } => "directory",
            What::Mapping { .. } => "map of a file's blocks",
            What::Data { .. } => "data",
            What::Symlink { .. } => "symbolic link",
            What::Attributes { .. } => "extended attributes",
            What::Quota { .. } => "quotas",
            What::Orphans => "orphans",
            What::MountGuard => "mount guard",
            What::Bad => "bad blocks",
            What::SpaceCache { .. } => "free space cache",
            What::Realtime { .. } => "realtime bitmaps",
            What::Journal(part) => part.name(),
            What::Header { header, .. } => header.name(),
            What::GroupTree { tree, .. } => tree.name(),
            What::Reserve { .. } => "reserve of a group",
            What::Node { tree, .. } => tree.name(),
            What::Pool(part) => part.name(),
            What::Free => "free",
            What::Unknown => "unknown",
        }
    }
}

impl Journal {
    fn name(self) -> &'static str {
        match self {
            Journal::Superblock => "journal superblock",
            Journal::Descriptor { .. } => "journal descriptor",
            Journal::Copy { .. } => "journal copy",
            Journal::Commit { .. } => "journal commit",
            Journal::Revoke { .. } => "journal revoke",
            Journal::FastCommit { .. } => "fast commit",
            Journal::RecordHeader { .. } => "log record header",
            Journal::RecordBody { .. } => "log record",
            Journal::IntentLog { .. } => "intent log",
            Journal::Other => "journal",
        }
    }
}

impl Header {
    fn name(self) -> &'static str {
        match self {
            Header::Space => "AGF",
            Header::Inodes => "AGI",
            Header::Reserve => "AGFL",
        }
    }
}

impl GroupTree {
    fn name(self) -> &'static str {
        match self {
            GroupTree::FreeByPlace => "free space by place",
            GroupTree::FreeByLength => "free space by length",
            GroupTree::Inodes => "inode tree",
            GroupTree::FreeInodes => "free inode tree",
            GroupTree::Owners => "reverse map",
            GroupTree::References => "reference counts",
        }
    }
}

impl BtrfsTree {
    fn name(self) -> &'static str {
        match self {
            BtrfsTree::Root => "root tree",
            BtrfsTree::Chunk => "chunk tree",
            BtrfsTree::Extent => "extent tree",
            BtrfsTree::Device => "device tree",
            BtrfsTree::Subvolume(_) => "subvolume tree",
            BtrfsTree::Checksum => "checksum tree",
            BtrfsTree::Log => "log tree",
            BtrfsTree::Uuid => "uuid tree",
            BtrfsTree::FreeSpace => "free space tree",
            BtrfsTree::Quota => "quota tree",
            BtrfsTree::BlockGroups => "block group tree",
            BtrfsTree::Other(_) => "other tree",
        }
    }
}

impl Pool {
    fn name(self) -> &'static str {
        match self {
            Pool::Label { .. } => "label",
            Pool::Uberblock { .. } => "uberblock",
            Pool::ObjectSet { set: 0 } => "MOS object set",
            Pool::ObjectSet { .. } => "object set",
            Pool::Dnodes { set: 0, .. } => "MOS dnodes",
            Pool::Dnodes { .. } => "dnodes",
            Pool::Object { set: 0, level: 1.., .. } => "MOS indirect block",
            Pool::Object { level: 1.., .. } => "indirect block",
            Pool::Object { set: 0, kind, .. } => of_the_pool(kind),
            Pool::Object { kind, .. } => of_a_data_set(kind),
            Pool::Gang => "gang header",
        }
    }

    /// What stands behind its name.
    fn fmt_rest(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pool::Label { copy } => write!(f, " {copy}"),
            Pool::Uberblock { copy, slot } => write!(f, " {slot} of label {copy}"),
            Pool::ObjectSet { set } => write!(f, " {set}"),
            Pool::Dnodes { set, first } => write!(f, " of set {set} from {first}"),
            Pool::Object { set, object, kind, level } => {
                write!(f, " of object {set}/{object}, type {kind}, level {level}")
            }
            Pool::Gang => Ok(()),
        }
    }
}

/// Of an object of the MOS, by its type: the names of `dmu_ot` in module/zfs/dmu.c, some of them
/// together.
fn of_the_pool(kind: u8) -> &'static str {
    match kind {
        1 => "MOS object directory",
        2 => "MOS object array",
        3 | 4 => "MOS packed nvlist",
        5 | 6 | 53 => "MOS bpobj",
        7 | 8 => "MOS space map",
        12 | 13 | 52 => "MOS DSL directory",
        14 | 16 | 37 | 41 | 50 | 51 => "MOS DSL dataset",
        15 | 31 | 32 => "MOS properties",
        28 => "MOS error log",
        29 | 30 => "MOS pool history",
        38 | 48 => "MOS scan state",
        42 | 43 => "MOS dedup table",
        // The newer types tell how they are swapped: as a ZAP (`DMU_OT` in include/sys/dmu.h).
        27 | 0x84 | 0xa4 | 0xc4 | 0xe4 => "MOS ZAP",
        _ => "MOS other object",
    }
}

/// The same of an object of a data set.
fn of_a_data_set(kind: u8) -> &'static str {
    match kind {
        18 | 33 | 34 => "ACL",
        21 => "master node",
        22 => "delete queue",
        24 => "volume's properties",
        35 | 36 => "FUID table",
        39 | 40 => "space by user",
        44..=47 => "system attributes",
        _ => "other object",
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            What::Superblock { copy } if *copy > 0 => write!(f, " {copy}"),
            What::BlockBitmap { group }
            | What::InodeBitmap { group }
            | What::Header { group, .. }
            | What::GroupTree { group, .. }
            | What::Reserve { group } => write!(f, " of group {group}"),
            What::Inodes { first, count: 0 | 1, .. } => write!(f, " {first}"),
            What::Inodes { first, count, .. } => {
                write!(f, " {first} to {}", first.saturating_add(count - 1))
            }
            What::Directory { inode, offset_bytes } | What::Data { inode, offset_bytes } => {
                write!(f, " of inode {inode} at {offset_bytes} B")
            }
            What::Mapping { inode }
            | What::Symlink { inode }
            | What::Attributes { inode }
            | What::Quota { inode }
            | What::SpaceCache { inode }
            | What::Realtime { inode } => write!(f, " of inode {inode}"),
            What::Journal(part) => part.fmt_rest(f),
            What::Pool(part) => part.fmt_rest(f),
            What::Node { tree: BtrfsTree::Subvolume(number) | BtrfsTree::Other(number), level } => {
                write!(f, " {number}, level {level}")
            }
            What::Node { level, .. } => write!(f, ", level {level}"),
            _ => Ok(()),
        }
    }
}

impl Journal {
    /// What stands behind its name.
    fn fmt_rest(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Journal::Descriptor { transaction, copies } => {
                write!(f, " of transaction {transaction} for {copies} blocks")
            }
            Journal::Copy { transaction, of } => {
                write!(f, " of byte {of}, transaction {transaction}")
            }
            Journal::Commit { transaction } => write!(f, " of transaction {transaction}"),
            Journal::Revoke { transaction, blocks } => {
                write!(f, " of {blocks} blocks, transaction {transaction}")
            }
            Journal::RecordHeader { sequence, operations } => {
                write!(f, " {}:{}, {operations} operations", sequence >> 32, sequence as u32)
            }
            Journal::RecordBody { sequence } => {
                write!(f, " {}:{}", sequence >> 32, sequence as u32)
            }
            Journal::FastCommit { transaction, inodes, ranges, names } => {
                if let Some(transaction) = transaction {
                    write!(f, " of transaction {transaction}")?;
                }
                match inodes + ranges + names {
                    0 => Ok(()),
                    _ => write!(f, ": {inodes} inodes, {ranges} ranges, {names} names"),
                }
            }
            Journal::IntentLog { set, sequence, records } => {
                write!(f, " of set {set}, block {sequence}, {records} records")
            }
            Journal::Superblock | Journal::Other => Ok(()),
        }
    }
}
