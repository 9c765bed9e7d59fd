//! A file of `/proc` or `/sys` that stays open and is read again and again.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::ProbeError;

/// What a buffer holds at least: most files are far shorter.
const BUFFER_BYTES_MIN: usize = 4096;

/// An open file and the buffer it is read into.
#[derive(Debug)]
pub(super) struct ProcFile {
    path: PathBuf,
    file: File,
    buffer: Vec<u8>,
    filled_bytes: usize,
}

impl ProcFile {
    /// Opens the file and reads it once, so that the buffer has its size before anything is timed.
    pub fn open(path: &Path) -> Result<Self, ProbeError> {
        let read = |source| ProbeError::Read { path: path.into(), source };
        let file = File::open(path).map_err(read)?;
        let buffer = vec![0; BUFFER_BYTES_MIN];
        let mut opened = ProcFile { path: path.into(), file, buffer, filled_bytes: 0 };
        opened.read()?;
        // The counters gain digits with time: twice the length is room enough.
        let room_bytes = (2 * opened.filled_bytes).max(BUFFER_BYTES_MIN);
        opened.buffer.resize(room_bytes, 0);
        Ok(opened)
    }

    /// The file as it is now; [`ProcFile::text`] has it.
    ///
    /// A read at offset 0 makes the kernel write the text anew. One read may give less than the
    /// whole: `/proc/diskstats` comes by pages.
    pub fn read(&mut self) -> Result<(), ProbeError> {
        self.filled_bytes = 0;
        loop {
            if self.filled_bytes == self.buffer.len() {
                self.buffer.resize(2 * self.buffer.len(), 0);
            }
            let (into, offset) = (&mut self.buffer[self.filled_bytes..], self.filled_bytes as u64);
            match self.file.read_at(into, offset) {
                Ok(0) => return Ok(()),
                Ok(read_bytes) => self.filled_bytes += read_bytes,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(source) => return Err(self.unreadable(source)),
            }
        }
    }

    /// What the last [`ProcFile::read`] read.
    pub fn text(&self) -> &[u8] {
        &self.buffer[..self.filled_bytes]
    }

    /// The error that the file lacks `missing`.
    pub fn without(&self, missing: &'static str) -> ProbeError {
        ProbeError::Format { path: self.path.clone(), missing }
    }

    fn unreadable(&self, source: io::Error) -> ProbeError {
        ProbeError::Read { path: self.path.clone(), source }
    }
}

/// The lines of `text`.
pub(super) fn lines(text: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    text.split(|&byte| byte == b'\n')
}

/// The numbers that `text` begins with, up to the first word that is none.
pub(super) fn numbers(text: &[u8]) -> impl Iterator<Item = u64> {
    text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).map_while(number)
}

/// The number that `word` is. It wraps rather than fail where it is longer than the kernel's own.
fn number(word: &[u8]) -> Option<u64> {
    word.iter().try_fold(0_u64, |value, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        Some(value.wrapping_mul(10).wrapping_add(digit))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn numbers_end_at_the_first_word() {
        assert_eq!(numbers(b"  12  0 7 kB 9").collect::<Vec<_>>(), [12, 0, 7]);
        assert_eq!(numbers(b"kB").count(), 0);
        assert_eq!(numbers(b"18446744073709551615").next(), Some(u64::MAX));
    }

    #[test]
    fn a_file_that_grew_is_read_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("stat");
        fs::write(&path, "1\n").unwrap();
        let mut file = ProcFile::open(&path).unwrap();
        let long = "1234567 ".repeat(10_000);
        fs::write(&path, &long).unwrap();
        file.read().unwrap();
        assert_eq!(file.text(), long.as_bytes());
        fs::write(&path, "2").unwrap();
        file.read().unwrap();
        assert_eq!(file.text(), b"2");
    }
}
