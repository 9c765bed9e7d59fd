//! What ext4 and its journal have the disk write for an fsync, generation by generation: a model,
//! so that no kernel has to be booted.
//!
//! The work is that of [`FsyncCase`]: files are written, the last of them is synced, and nothing
//! was dirty before. Three files say which kernel does what: whose data a commit writes is in
//! `lists.rs`, what it puts into the journal in `commit.rs`, and what a fast commit puts there in
//! `fast_commit.rs`. All else is the same since Linux 3.2: the fsync itself writes the file's own
//! data and waits for it (fs/ext4/fsync.c, `ext4_sync_file`), then a commit begins.
//!
//! Left out are what an fsync does once after a mount, the superblocks of the file system and the
//! journal, and what ext4's timers may do meanwhile. Where recorded runs differ from the model, the
//! runs are right; a test compares it with all published ones.

mod commit;
mod fast_commit;
mod lists;
mod options;
mod request;
mod version;

use thiserror::Error;

use crate::model::trace::{Anatomy, Entry, Kind, Operation, Part, Traced};
use crate::model::{Bytes, FsyncCase};
pub use options::Options;
use request::{part, write};
pub use version::Version;

/// Bytes of an inode, as mke2fs makes them (mke2fs.conf(5), `inode_size`).
const INODE_BYTES: u64 = 256;
/// The first inode of a block of them that is not one of the first ten.
const FIRST_INODE: u64 = 64;

/// More files, and more bytes in each, are nobody's fsync: the model keeps all files of one.
const FILES_MAX: u32 = 1_000_000;
const BYTES_MAX: u64 = 1 << 30;

/// What the model does not know.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum Unmodelled {
    /// No version.
    #[error("{0:?} is not a version of Linux: name one like 3.8 or 4.6.2")]
    NoVersion(String),
    /// Before the first generation.
    #[error("the model begins with Linux 3.2, and {0} is older")]
    TooOld(Version),
    /// A mount option.
    #[error(
        "the model does not know the mount option {0}: it knows delalloc, nodelalloc, \
         data=ordered, data=writeback and commit"
    )]
    Mount(String),
    /// An option of mkfs.
    #[error(
        "the model does not know {0} of mkfs: it knows -b, and of -O fast_commit, metadata_csum \
         and 64bit"
    )]
    Mkfs(String),
    /// Too many files, or none.
    #[error("the model takes 1 to {FILES_MAX} files, and 1 byte to {} in each", Bytes(BYTES_MAX))]
    Amount,
    /// Not yet.
    #[error("fast commits came with Linux 5.10, and {0} is older")]
    NoFastCommits(Version),
    /// Two cases in one.
    #[error("{0} behind {0} need a new block of {1}: write at most half a block to each file")]
    NeedsBlock(Bytes, Bytes),
}

/// An fsync of the last of many files that were written to.
#[derive(Clone, Debug)]
pub struct Modelled {
    /// The kernel.
    pub version: Version,
    /// The file system.
    pub options: Options,
    /// Whether the write needs a new block.
    pub case: FsyncCase,
    /// How many files are written to.
    pub files: u32,
    /// What is written to each.
    pub size: Bytes,
}

impl Modelled {
    /// Fsyncs with files whose inodes begin at each place within a block of inodes.
    pub fn fsyncs(&self) -> Result<Traced, Unmodelled> {
        self.check()?;
        let mut fsyncs = Anatomy::default();
        for first in 0..self.options.block_bytes / INODE_BYTES {
            fsyncs.take(self.fsync(FIRST_INODE + first));
        }
        Ok(Traced { fsyncs, ..Traced::default() })
    }

    fn check(&self) -> Result<(), Unmodelled> {
        let Modelled { version, options, case, size, .. } = *self;
        let block = Bytes(options.block_bytes);
        if !(1..=FILES_MAX).contains(&self.files) || !(1..=BYTES_MAX).contains(&size.0) {
            return Err(Unmodelled::Amount);
        }
        if options.fast_commits && version < fast_commit::SINCE {
            return Err(Unmodelled::NoFastCommits(version));
        }
        if case == FsyncCase::Extending && size.0 * 2 > size.0.next_multiple_of(block.0) {
            return Err(Unmodelled::NeedsBlock(size, block));
        }
        Ok(())
    }

    fn fsync(&self, first: u64) -> Operation {
        let files: Vec<u64> = (first..first + u64::from(self.files)).collect();
        let inode = *files.last().unwrap_or(&first);
        let mut entries = vec![self.data(inode)];
        if self.options.fast_commits {
            entries.extend(fast_commit::entries(self, &files));
        } else {
            if lists::has_written_files(self) {
                let others = files.iter().filter(|it| **it != inode);
                entries.extend(others.map(|it| self.data(*it)));
            }
            entries.extend(commit::entries(self, &files));
        }
        Operation { inode, begin_ns: 0, end_ns: 0, files, entries, is_whole: true }
    }

    /// The blocks of a file that were written to: whole ones.
    fn data(&self, inode: u64) -> Entry {
        let bytes = self.size.0.next_multiple_of(self.options.block_bytes);
        write(vec![Part { inode: Some(inode), ..part(Kind::Data, "data", bytes) }])
    }

    /// So many blocks of the journal, all of the same kind.
    fn journal(&self, what: &str, blocks: u64) -> Part {
        part(Kind::Journal, what, blocks * self.options.block_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::trace::Row;

    fn modelled(version: &str, case: FsyncCase, files: u32, mount: &str) -> Modelled {
        let options = Options::of(mount, "").unwrap();
        let version = version.parse().unwrap();
        Modelled { version, options, case, files, size: Bytes(2048) }
    }

    /// Own data, others' data and the journal in blocks of 4 KiB, and flushes, of most fsyncs.
    fn most(modelled: &Modelled) -> [u64; 4] {
        let traced = modelled.fsyncs().unwrap();
        let rows = traced.fsyncs.typical().unwrap().0.rows();
        let sum = |of: fn(&Row) -> bool| {
            rows.iter().filter(|(row, _)| of(row)).map(|(_, count)| count).sum::<u64>()
        };
        let blocks = |of| sum(of) / 4096;
        [
            blocks(|row| *row == Row::Own),
            blocks(|row| *row == Row::Others),
            blocks(|row| matches!(row, Row::Journal(_))),
            sum(|row| *row == Row::Flushes),
        ]
    }

    #[test]
    fn before_3_8_a_file_that_grew_within_its_block_is_written_by_the_fsync_of_another() {
        use FsyncCase::{Allocating, Extending, Overwriting};
        for (version, others) in [("3.4.0", 99), ("3.7.10", 99), ("3.8.0", 0), ("4.6.2", 0)] {
            let of = |case| most(&modelled(version, case, 100, ""));
            assert_eq!(of(Extending), [1, others, 9, 2], "{version}");
            assert_eq!(of(Overwriting), [1, 0, 9, 2], "{version}");
            assert_eq!(of(Allocating), [1, 0, 11, 2], "{version}");
        }
    }

    #[test]
    fn from_4_6_2_on_only_an_allocation_lists_a_file() {
        use FsyncCase::{Allocating, Overwriting};
        for (version, overwriting) in [("3.4", 9), ("4.6.1", 9), ("4.6.2", 0), ("6.18", 0)] {
            let of = |case| most(&modelled(version, case, 10, "nodelalloc"));
            assert_eq!(of(Allocating), [1, 9, 6, 2], "{version}");
            assert_eq!(of(Overwriting), [1, overwriting, 4, 2], "{version}");
        }
        let unordered = modelled("3.4", Allocating, 10, "nodelalloc,data=writeback");
        assert_eq!(most(&unordered), [1, 0, 6, 2]);
    }

    #[test]
    fn what_it_does_not_know_it_says() {
        let error = |mount, mkfs| Options::of(mount, mkfs).unwrap_err().to_string();
        assert!(error("data=journal", "").contains("mount option data=journal"));
        assert!(error("", "-O ^has_journal").contains("^has_journal of mkfs"));
        assert!(error("", "-b 3000").contains("-b 3000 of mkfs"));
        let of = |version: &str, mkfs| Modelled {
            options: Options::of("", mkfs).unwrap(),
            ..modelled(version, FsyncCase::Extending, 10, "")
        };
        let said = |modelled: Modelled| modelled.fsyncs().unwrap_err().to_string();
        let early = "fast commits came with Linux 5.10, and 5.9 is older";
        assert_eq!(said(of("5.9", "-O fast_commit")), early);
        assert!(said(of("5.9", "-b 1024")).contains("write at most half a block"));
        let none = Modelled { files: 0, ..of("5.9", "") };
        let vast = Modelled { size: Bytes(u64::MAX), ..of("5.9", "") };
        for wrong in [none, vast] {
            let takes = "the model takes 1 to 1000000 files, and 1 byte to 1G in each";
            assert_eq!(said(wrong), takes);
        }
    }
}
