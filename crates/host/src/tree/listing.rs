//! A directory's entries, in memory that is used again for the next one.

use std::ffi::CStr;
use std::io;
use std::os::fd::BorrowedFd;

use crate::sys::{self, Kind};

/// How much is asked for at once: some three thousand names. The C library asks for 32 KiB.
const BUFFER_BYTES: usize = 128 << 10;

/// Entries that one call gave.
pub struct Listing {
    buffer: Vec<u8>,
    entries: Vec<Listed>,
}

/// One entry; its name is in the buffer.
#[derive(Clone, Copy, Debug)]
pub struct Listed {
    /// Its inode.
    pub inode: u64,
    /// What it is, as far as the directory says.
    pub kind: Kind,
    name_at: u32,
}

impl Listing {
    /// Room for entries.
    pub fn new() -> Listing {
        Listing { buffer: vec![0; BUFFER_BYTES], entries: Vec::new() }
    }

    /// No room, where there must be one for a moment.
    pub fn none() -> Listing {
        Listing { buffer: Vec::new(), entries: Vec::new() }
    }

    /// Reads on in `directory`; false at its end.
    pub fn read(&mut self, directory: BorrowedFd<'_>) -> io::Result<bool> {
        self.entries.clear();
        let start = self.buffer.as_ptr().addr();
        let entries = sys::read_directory(directory, &mut self.buffer)?;
        let is_end = entries.is_end();
        self.entries.extend(entries.map(|entry| Listed {
            inode: entry.inode,
            kind: entry.kind,
            name_at: (entry.name.as_ptr().addr() - start) as u32,
        }));
        Ok(!is_end)
    }

    /// Puts the entries in the order of their inodes, in which most file systems keep what stat and
    /// unlink need: ext4 and XFS read whole blocks of inodes.
    pub fn sort(&mut self) {
        self.entries.sort_unstable_by_key(|entry| entry.inode);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// One of them.
    pub fn get(&self, place: usize) -> (Listed, &CStr) {
        let entry = self.entries[place];
        let name = CStr::from_bytes_until_nul(&self.buffer[entry.name_at as usize..]);
        (entry, name.expect("the kernel ended it with a NUL"))
    }
}
