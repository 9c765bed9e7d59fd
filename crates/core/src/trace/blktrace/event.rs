//! Records as they stand in the file: `struct blk_io_trace` and, from Linux 6.19 on,
//! `struct blk_io_trace2` of include/uapi/linux/blktrace_api.h, each followed by its payload.
//! Numbers have the byte order of the recording machine.

use std::io::{self, Read};

use thiserror::Error;

use crate::trace::merge::Source;

const MAGIC: u32 = 0x0065_6174;
const BYTES: usize = 48;
/// Those of the second version, which has room for more categories.
const LONG_BYTES: usize = 64;
/// What is said begins with the number of a control group (`__BLK_TA_CGROUP`).
const HAS_GROUP: u64 = 1 << 8;
const GROUP_BYTES: usize = 8;

/// Why a trace can't be read.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum BlktraceError {
    #[error("{0}")]
    Read(#[from] io::Error),
    #[error("at byte {0} there is no record of blktrace")]
    Magic(u64),
    #[error("its records are of version {0}, this fsverdict reads 7 and 8")]
    Version(u8),
    #[error(
        "records of several processors are mixed in it, as blktrace -o - writes them: sort them by \
         blkparse -i FILE -d SORTED"
    )]
    Mixed,
}

/// Categories, `enum blktrace_cat`: the bits of an action above the lower sixteen.
pub mod category {
    pub const WRITE: u64 = 1 << 1;
    pub const FLUSH: u64 = 1 << 2;
    pub const SYNC: u64 = 1 << 3;
    pub const COMMAND: u64 = 1 << 9;
    pub const NOTE: u64 = 1 << 10;
    pub const META: u64 = 1 << 12;
    pub const DISCARD: u64 = 1 << 13;
    pub const FUA: u64 = 1 << 15;
    /// A zone's reset, finish, open and close.
    pub const ZONES: u64 = 0b1_1111 << 17;
}

/// One record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IoTrace {
    /// Its number on its processor.
    pub number: u32,
    pub at_ns: u64,
    pub sector: u64,
    pub bytes: u32,
    action: u64,
    /// The process that did it.
    pub process: u32,
    /// The device's number within the kernel.
    pub dev: u32,
    pub processor: u32,
    /// What a note says; of others it is passed over.
    said: Vec<u8>,
}

impl IoTrace {
    pub fn has(&self, category: u64) -> bool {
        self.action >> 16 & category != 0
    }

    /// What has happened, or what kind of note it is.
    pub fn what(&self) -> u64 {
        self.action & 0xffff & !HAS_GROUP
    }

    pub fn text(&self) -> &[u8] {
        let skipped = if self.action & HAS_GROUP == 0 { 0 } else { GROUP_BYTES };
        self.said.get(skipped..).unwrap_or_default()
    }
}

/// Reads the records of a file.
pub struct IoTraces<R> {
    reader: R,
    /// Where the reader is.
    at: u64,
    buffer: Vec<u8>,
    /// When the last record was made that is no note, and by which processor.
    last: (u64, u32),
    /// The file ends within a record: blktrace was killed, or there was no room.
    pub is_cut_off: bool,
}

impl<R: Read> IoTraces<R> {
    pub fn new(reader: R) -> IoTraces<R> {
        let buffer = Vec::new();
        IoTraces { reader, at: 0, buffer, last: (0, 0), is_cut_off: false }
    }

    /// Reads so many bytes into the buffer, from `from` on; `false`: the file ends.
    fn read(&mut self, from: usize, bytes: usize) -> io::Result<bool> {
        self.buffer.truncate(from);
        let read = self.reader.by_ref().take(bytes as u64).read_to_end(&mut self.buffer)?;
        self.at += read as u64;
        Ok(read == bytes)
    }

    fn record(&mut self) -> Result<Option<IoTrace>, BlktraceError> {
        let begin = self.at;
        if !self.read(0, BYTES)? {
            self.is_cut_off = self.at > begin;
            return Ok(None);
        }
        let (words, version) = Words::of(&self.buffer).ok_or(BlktraceError::Magic(begin))?;
        let is_long = match version {
            7 => false,
            8 => true,
            other => return Err(BlktraceError::Version(other)),
        };
        self.is_cut_off = is_long && !self.read(BYTES, LONG_BYTES - BYTES)?;
        let (mut record, said_bytes) = words.record(&self.buffer, is_long);
        self.is_cut_off = self.is_cut_off || !self.read(0, said_bytes)?;
        if self.is_cut_off {
            return Ok(None);
        }
        if record.has(category::NOTE) {
            record.said.clone_from(&self.buffer);
        }
        Ok(Some(record))
    }
}

impl<R: Read> Source for IoTraces<R> {
    type Item = IoTrace;
    type Error = BlktraceError;

    fn next(&mut self) -> Result<Option<(u64, IoTrace)>, BlktraceError> {
        let Some(record) = self.record()? else { return Ok(None) };
        let (last_ns, processor) = self.last;
        // blkparse -d counts the times of all but notes from the first one on.
        if !record.has(category::NOTE) {
            if record.at_ns < last_ns && record.processor != processor {
                return Err(BlktraceError::Mixed);
            }
            self.last = (record.at_ns, record.processor);
        }
        Ok(Some((record.at_ns, record)))
    }
}

/// How numbers are written.
#[derive(Clone, Copy)]
struct Words {
    is_big_endian: bool,
}

impl Words {
    /// By the magic number, which the version follows.
    fn of(bytes: &[u8]) -> Option<(Words, u8)> {
        [false, true].into_iter().find_map(|is_big_endian| {
            let words = Words { is_big_endian };
            let first = words.u32(bytes, 0);
            (first >> 8 == MAGIC).then_some((words, first as u8))
        })
    }

    fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let word = bytes.get(at..at + 2).and_then(|word| word.try_into().ok()).unwrap_or_default();
        if self.is_big_endian { u16::from_be_bytes(word) } else { u16::from_le_bytes(word) }
    }

    fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let word = bytes.get(at..at + 4).and_then(|word| word.try_into().ok()).unwrap_or_default();
        if self.is_big_endian { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
    }

    fn u64(self, bytes: &[u8], at: usize) -> u64 {
        let word = bytes.get(at..at + 8).and_then(|word| word.try_into().ok()).unwrap_or_default();
        if self.is_big_endian { u64::from_be_bytes(word) } else { u64::from_le_bytes(word) }
    }

    /// The record, and how many bytes of what it says follow.
    fn record(self, bytes: &[u8], is_long: bool) -> (IoTrace, usize) {
        let u32 = |at| self.u32(bytes, at);
        let (process, action, rest) = match is_long {
            true => (u32(28), self.u64(bytes, 32), 40),
            false => (u32(32), u64::from(u32(28)), 36),
        };
        let record = IoTrace {
            number: u32(4),
            at_ns: self.u64(bytes, 8),
            sector: self.u64(bytes, 16),
            bytes: u32(24),
            action,
            process,
            dev: u32(rest),
            processor: u32(rest + 4),
            said: Vec::new(),
        };
        (record, self.u16(bytes, rest + 10).into())
    }
}
