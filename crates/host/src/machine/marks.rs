//! Marks of what the work does, for the recorders of its requests: in the kernel's trace, and on a
//! disk that shares a log of writes with the device under test.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// Longer is no mark.
const TEXT_BYTES: usize = 64;

/// A block of any disk, as direct I/O asks for it (open(2), O_DIRECT).
#[repr(align(4096))]
struct Block([u8; 4096]);

/// Where it is said.
#[derive(Debug, Default)]
pub struct Marks {
    trace: Option<File>,
    disk: Option<File>,
}

impl Marks {
    /// In the kernel's trace, by its file `trace_marker`, and on that disk, where there are such.
    pub fn new(trace: Option<File>, disk: Option<&Path>) -> io::Result<Marks> {
        let open =
            |path: &Path| OpenOptions::new().write(true).custom_flags(libc::O_DIRECT).open(path);
        Ok(Marks { trace, disk: disk.map(open).transpose()? })
    }

    /// A word, and the inode of the file that it is about.
    pub fn mark(&self, word: &str, inode: u64) -> io::Result<()> {
        let mut text = [0; TEXT_BYTES];
        let mut rest = &mut text[..];
        writeln!(rest, "{word} {inode}")?;
        let length = TEXT_BYTES - rest.len();
        // In one call: each is an event.
        self.trace.as_ref().map_or(Ok(0), |mut trace| trace.write(&text[..length]))?;
        self.on_disk(&text[..length])
    }

    /// Something that only a log of the disk has to be told: where timed parts begin and end.
    pub fn on_disk(&self, text: &[u8]) -> io::Result<()> {
        let Some(disk) = &self.disk else { return Ok(()) };
        let mut block = Block([0; 4096]);
        let length = text.len().min(block.0.len());
        block.0[..length].copy_from_slice(&text[..length]);
        // Past the page cache: when it returns it is in the log, before all that follows.
        disk.write_all_at(&block.0, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_the_beginning_of_a_block() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("marks");
        File::create(&path).unwrap();
        // Not every file system takes direct I/O, as a disk does.
        let disk = OpenOptions::new().write(true).open(&path).unwrap();
        let marks = Marks { trace: None, disk: Some(disk) };
        marks.mark("fsync", 4_294_967_295).unwrap();
        marks.mark("synced", 12).unwrap();
        let block = std::fs::read(&path).unwrap();
        assert_eq!(block.len(), 4096);
        assert!(block.starts_with(b"synced 12\n\0\0"), "{:?}", &block[..32]);
        Marks::default().mark("fsync", 1).unwrap();
    }
}
