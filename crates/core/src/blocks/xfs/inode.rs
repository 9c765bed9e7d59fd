//! Inodes of XFS and their two forks.
//!
//! Layout: `struct xfs_dinode` in fs/xfs/libxfs/xfs_format.h; "XFS Algorithms & Data Structures",
//! chapter "On-disk Inode". Numbers are big-endian.

use super::trees::{Extent, Walk};
use crate::blocks::bytes::{be16, be32, be64, part, u8_at};
use crate::blocks::error::Error;

const MAGIC: u16 = 0x494e;
/// di_flags: the data is in the realtime section, which is another device.
const REALTIME: u16 = 0x1;
/// di_flags2: counts of extents have more bits.
const LARGE_COUNTS: u64 = 0x10;

/// What the file type bits of a mode say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    File,
    Directory,
    Symlink,
    Other,
}

/// An inode as it is on the disk.
#[derive(Clone, Copy, Debug)]
pub struct OnDisk<'a> {
    pub number: u64,
    bytes: &'a [u8],
}

/// Where a fork has what it holds (di_format, di_aformat).
enum Format {
    Inside,
    Extents,
    Tree,
}

impl<'a> OnDisk<'a> {
    /// `None`: there is no inode here.
    pub fn of(number: u64, bytes: &'a [u8]) -> Option<OnDisk<'a>> {
        (be16(bytes, 0) == MAGIC).then_some(OnDisk { number, bytes })
    }

    pub fn kind(&self) -> Kind {
        match be16(self.bytes, 2) & 0xf000 {
            0x8000 => Kind::File,
            0x4000 => Kind::Directory,
            0xa000 => Kind::Symlink,
            _ => Kind::Other,
        }
    }

    fn is_v3(&self) -> bool {
        u8_at(self.bytes, 4) >= 3
    }

    fn forks(&self) -> &'a [u8] {
        let begin = if self.is_v3() { 176 } else { 100 };
        part(self.bytes, begin, self.bytes.len())
    }

    /// Where the fork of attributes begins behind that of data; 0: there is none.
    fn fork_offset(&self) -> usize {
        usize::from(u8_at(self.bytes, 82)) * 8
    }

    /// The data fork, whether it is a list of extents or else.
    fn data_fork(&self) -> &'a [u8] {
        match self.fork_offset() {
            0 => self.forks(),
            length => part(self.forks(), 0, length),
        }
    }

    fn format(byte: u8) -> Option<Format> {
        match byte {
            1 => Some(Format::Inside),
            2 => Some(Format::Extents),
            3 => Some(Format::Tree),
            _ => None,
        }
    }

    /// The data fork of a directory or link that is in the inode.
    pub fn inside(&self) -> Option<&'a [u8]> {
        let format = OnDisk::format(u8_at(self.bytes, 5));
        matches!(format, Some(Format::Inside)).then(|| self.data_fork())
    }

    fn counts(&self) -> (u64, u64) {
        let has_large = self.is_v3() && be64(self.bytes, 120) & LARGE_COUNTS != 0;
        match has_large {
            true => (be64(self.bytes, 24), u64::from(be32(self.bytes, 76))),
            false => (u64::from(be32(self.bytes, 76)), u64::from(be16(self.bytes, 80))),
        }
    }

    /// The runs of blocks of its data.
    pub fn data(&self, walk: &mut Walk<'_>) -> Result<Vec<Extent>, Error> {
        if be16(self.bytes, 90) & REALTIME != 0 && self.kind() == Kind::File {
            return Ok(Vec::new());
        }
        self.fork(walk, u8_at(self.bytes, 5), self.data_fork(), self.counts().0)
    }

    /// The runs of blocks of its extended attributes.
    pub fn attributes(&self, walk: &mut Walk<'_>) -> Result<Vec<Extent>, Error> {
        if self.fork_offset() == 0 {
            return Ok(Vec::new());
        }
        let fork = part(self.forks(), self.fork_offset(), self.bytes.len());
        self.fork(walk, u8_at(self.bytes, 83), fork, self.counts().1)
    }

    fn fork(
        &self,
        walk: &mut Walk<'_>,
        format: u8,
        fork: &[u8],
        count: u64,
    ) -> Result<Vec<Extent>, Error> {
        let mut found = Vec::new();
        match OnDisk::format(format) {
            Some(Format::Extents) => walk.runs(fork, count, &mut found),
            Some(Format::Tree) => walk.file_root(self.number, fork, &mut found)?,
            Some(Format::Inside) | None => {}
        }
        Ok(found)
    }
}
