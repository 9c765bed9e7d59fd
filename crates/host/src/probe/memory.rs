//! Dirty and write-back memory: `/proc/meminfo`, by proc_meminfo(5).

use std::path::Path;

use super::ProbeError;
use super::file::{ProcFile, lines, numbers};

/// What the file calls kB.
const KB_BYTES: u64 = 1024;

/// The reader.
#[derive(Debug)]
pub(super) struct MemoryReader {
    meminfo: ProcFile,
}

/// Memory of the whole system, as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryReading {
    /// Waiting to be written.
    pub dirty_bytes: u64,
    /// Being written.
    pub writeback_bytes: u64,
}

impl MemoryReading {
    /// The larger of each.
    pub(super) fn max(self, other: MemoryReading) -> MemoryReading {
        MemoryReading {
            dirty_bytes: self.dirty_bytes.max(other.dirty_bytes),
            writeback_bytes: self.writeback_bytes.max(other.writeback_bytes),
        }
    }
}

impl MemoryReader {
    pub fn open(root: &Path) -> Result<Self, ProbeError> {
        Ok(MemoryReader { meminfo: ProcFile::open(&root.join("proc/meminfo"))? })
    }

    pub fn read(&mut self) -> Result<MemoryReading, ProbeError> {
        self.meminfo.read()?;
        // Writeback follows upon Dirty, so that the rest is not looked at.
        let mut lines = lines(self.meminfo.text());
        let mut bytes = |label: &[u8]| {
            let kb = lines.find_map(|line| numbers(line.strip_prefix(label)?).next());
            kb.map(|kb| kb.saturating_mul(KB_BYTES))
        };
        let dirty = bytes(b"Dirty:").ok_or_else(|| self.meminfo.without("a `Dirty` line"))?;
        let writeback =
            bytes(b"Writeback:").ok_or_else(|| self.meminfo.without("a `Writeback` line"))?;
        Ok(MemoryReading { dirty_bytes: dirty, writeback_bytes: writeback })
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake;
    use super::*;

    fn read(meminfo: &str) -> Result<MemoryReading, ProbeError> {
        let tree = fake::tree(&[("proc/meminfo", meminfo)]);
        MemoryReader::open(tree.path()).unwrap().read()
    }

    #[test]
    fn kilobytes_become_bytes() {
        let reading =
            read("MemTotal:  8 kB\nDirty:   192 kB\nWriteback:   3 kB\nWritebackTmp:  77 kB\n");
        let expected = MemoryReading { dirty_bytes: 196_608, writeback_bytes: 3072 };
        assert_eq!(reading.unwrap(), expected);
    }

    #[test]
    fn a_missing_line_is_an_error() {
        let error = read("Dirty: 1 kB\nWritebackTmp: 2 kB\n").unwrap_err().to_string();
        assert!(error.ends_with("proc/meminfo lacks a `Writeback` line"), "{error}");
    }
}
