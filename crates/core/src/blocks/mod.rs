//! What each block of a file system is, by its structures on the disk and the block's place.
//!
//! [`Map::of`] finds out which file system a device holds and reads its structures once: what is
//! where, which file has it, and what the journal holds. [`Map::what`] then tells what any bytes
//! are; [`Map::what_with`] also uses the data written there, because a journal, self-describing
//! metadata (XFS, Btrfs), and blocks that ZFS has freed are best recognised by their own bytes.
//! What no structure names is unknown.
//!
//! The device is a [`ReadAt`], so nothing here opens a file. No input makes a reader panic or loop
//! for ever: numbers that lead out of the device are skipped, and no block is walked twice.

mod btrfs;
mod bytes;
mod error;
mod ext4;
mod names;
mod spans;
mod what;
mod words;
mod xfs;
mod zfs;

pub use bytes::ReadAt;
pub use error::Error;
pub use what::{BtrfsTree, Group, GroupTree, Header, Inode, Journal, Pool, What};

use bytes::{DEVICE_BYTES_MAX, part};
use names::Names;
use spans::Spans;

/// A part of a device that is one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where it begins, in bytes.
    pub offset: u64,
    /// How many bytes it has.
    pub length: u64,
    /// What it is.
    pub what: What,
}

impl Piece {
    /// The part that begins `skip` bytes later and has `length` bytes.
    pub fn part(self, skip: u64, length: u64) -> Piece {
        Piece { offset: self.offset + skip, length, what: self.what.part(skip, length) }
    }
}

/// What the blocks of a device are.
#[derive(Clone, Debug)]
pub struct Map {
    file_system: &'static str,
    block_bytes: u32,
    spans: Spans,
    names: Names,
    written: Written,
}

/// What can be told from written bytes, by file system.
#[derive(Clone, Debug)]
enum Written {
    Ext4(Option<ext4::Log>),
    Xfs(Option<xfs::Log>, Box<xfs::Superblock>),
    Btrfs(btrfs::Chunks, Box<btrfs::Superblock>),
    Zfs(zfs::Past),
}

impl Map {
    /// Reads the structures of the file system on `disk`.
    pub fn of(disk: &dyn ReadAt) -> Result<Map, Error> {
        if let Some(superblock) = xfs::superblock(disk)? {
            return xfs::map(disk, superblock);
        }
        if let Some(superblock) = ext4::superblock(disk)? {
            return ext4::map(disk, &superblock);
        }
        if let Some(superblock) = btrfs::superblock(disk)? {
            return btrfs::map(disk, superblock);
        }
        if let Some(label) = zfs::label(disk)? {
            return zfs::map(disk, &label);
        }
        Err(Error::NoFileSystem)
    }

    /// The file system: `ext4`, which stands for ext2 and ext3 as well, `xfs`, `btrfs` or `zfs`.
    pub fn file_system(&self) -> &'static str {
        self.file_system
    }

    /// The size of its blocks.
    pub fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    /// What `length` bytes from `offset` are, in order and without a gap.
    pub fn what(&self, offset: u64, length: u64) -> Vec<Piece> {
        match offset.checked_add(length) {
            Some(0..=DEVICE_BYTES_MAX) => self.refine(&self.placed(offset, length), None),
            _ => vec![Piece { offset, length, what: What::Unknown }],
        }
    }

    /// What bytes are that were written at `offset`, by themselves as well.
    pub fn what_with(&self, offset: u64, written: &[u8]) -> Vec<Piece> {
        let length = written.len() as u64;
        if offset > DEVICE_BYTES_MAX {
            return self.what(offset, length);
        }
        let mut spans = Spans::default();
        self.claim_named(offset, written, &mut spans);
        for piece in self.placed(offset, length) {
            spans.claim(piece.offset, piece.length, piece.what);
        }
        self.refine(&spans.pieces(offset, length), Some((offset, written)))
    }

    /// What bytes are by their place.
    fn placed(&self, offset: u64, length: u64) -> Vec<Piece> {
        let pieces = self.spans.pieces(offset, length);
        match &self.written {
            Written::Zfs(past) => past.before_end(pieces),
            _ => pieces,
        }
    }

    /// The caller saw no writes after the uberblock at place `slot` of a ring of ZFS: writes of a
    /// later transaction group say nothing of what was in their place before.
    pub fn end_with_uberblock(&mut self, slot: u32) {
        if let Written::Zfs(past) = &mut self.written {
            past.end(slot);
        }
    }

    /// Claims the blocks that say what they are. In a journal only copies do.
    fn claim_named(&self, offset: u64, written: &[u8], spans: &mut Spans) {
        if let Written::Zfs(past) = &self.written {
            return past.claim(offset, written, spans);
        }
        let each = u64::from(self.block_bytes);
        let first = offset.next_multiple_of(each);
        let mut blocks = part(written, (first - offset) as usize, written.len());
        let mut place = first;
        while blocks.len() as u64 >= each {
            let named = match &self.written {
                Written::Ext4(_) | Written::Zfs(_) => return,
                Written::Xfs(_, superblock) => {
                    let block = &blocks[..each as usize];
                    let before = self.spans.pieces(place, each)[0].what;
                    let named = xfs::named(superblock, place, block, before);
                    let is_log = matches!(before, What::Journal(_));
                    named.filter(|_| !is_log).map(|what| (what, each))
                }
                Written::Btrfs(chunks, superblock) => {
                    let named = btrfs::named(superblock, chunks, place, blocks);
                    named.map(|what| (what, superblock.node_bytes))
                }
            };
            if let Some((what, length)) = named {
                spans.claim(place, length, what);
            }
            place += each;
            blocks = &blocks[each as usize..];
        }
    }

    /// Tells the parts of the journal apart.
    fn refine(&self, pieces: &[Piece], written: Option<(u64, &[u8])>) -> Vec<Piece> {
        match &self.written {
            Written::Ext4(Some(log)) => log.refine(pieces, written),
            Written::Xfs(Some(log), _) => log.refine(pieces, written),
            Written::Ext4(None) | Written::Xfs(None, _) | Written::Btrfs(..) | Written::Zfs(_) => {
                pieces.to_vec()
            }
        }
    }

    /// Takes into account what was written into the journal: which copies will follow.
    pub fn note(&mut self, offset: u64, written: &[u8]) {
        match &mut self.written {
            _ if offset > DEVICE_BYTES_MAX => {}
            Written::Ext4(Some(log)) => log.note(offset, written),
            Written::Xfs(Some(log), _) => log.note(offset, written),
            Written::Ext4(None) | Written::Xfs(None, _) | Written::Btrfs(..) | Written::Zfs(_) => {}
        }
    }

    /// The path of a file, if a directory tells it.
    pub fn path(&self, inode: Inode) -> Option<String> {
        match &self.written {
            Written::Zfs(past) => self.names.path(past.in_first_set(inode)),
            _ => self.names.path(inode),
        }
    }
}
