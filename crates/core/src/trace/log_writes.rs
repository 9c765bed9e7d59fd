//! The log of dm-log-writes, which QEMU's `blklogwrites` writes, too: a sector that says what it
//! is, and for each request a sector with what it asks, followed by its data
//! (Documentation/admin-guide/device-mapper/log-writes.rst, "Log Ordering" and "Target interface";
//! drivers/md/dm-log-writes.c, `struct log_write_super`, `struct log_write_entry`).
//!
//! Requests are in the order of their completion; when they were given to the device is not
//! recorded. Reads are not logged.

use std::io::{self, Read};

use thiserror::Error;

use crate::model::trace::{Entry, Flags, Item, Mark, Op, SECTOR_BYTES};

const MAGIC: u64 = 0x006a_7366_7773_6872;
const VERSION: u64 = 1;
/// The largest sector of any device, and more than a mark has.
const SECTOR_BYTES_MAX: u32 = 1 << 16;

const FLUSH: u64 = 1;
const FUA: u64 = 1 << 1;
const DISCARD: u64 = 1 << 2;
const MARK: u64 = 1 << 3;
const METADATA: u64 = 1 << 4;
/// Where a mark's text begins: after the words of its entry.
const MARK_TEXT: usize = 32;

/// Why a log can't be read.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum LogWritesError {
    #[error("{0}")]
    Read(#[from] io::Error),
    #[error("it is not a log of dm-log-writes or blklogwrites")]
    Magic,
    #[error("it is of version {0}, this fsverdict reads {VERSION}")]
    Version(u64),
    #[error("its sectors have {0} bytes, which no device has")]
    Sector(u32),
    #[error("entry {0} is longer than a disk can be")]
    Length(u64),
}

/// A log, read from its beginning.
#[derive(Debug)]
pub struct LogWrites<R> {
    reader: R,
    sector_bytes: u32,
    entries: u64,
    read: u64,
    /// Where the reader is.
    at: u64,
    /// What begins there or behind it is no request of the device, but a mark.
    marks_from: u64,
}

fn word(bytes: &[u8], number: usize) -> u64 {
    let word = bytes.get(8 * number..8 * number + 8).and_then(|word| word.try_into().ok());
    word.map_or(0, u64::from_le_bytes)
}

impl<R: Read> LogWrites<R> {
    /// Reads what the log says of itself.
    pub fn new(mut reader: R) -> Result<LogWrites<R>, LogWritesError> {
        let mut head = [0; 32];
        reader.read_exact(&mut head)?;
        if word(&head, 0) != MAGIC {
            return Err(LogWritesError::Magic);
        }
        if word(&head, 1) != VERSION {
            return Err(LogWritesError::Version(word(&head, 1)));
        }
        let sector_bytes = word(&head, 3) as u32;
        let is_usual = sector_bytes.is_power_of_two()
            && (SECTOR_BYTES as u32..=SECTOR_BYTES_MAX).contains(&sector_bytes);
        if !is_usual {
            return Err(LogWritesError::Sector(sector_bytes));
        }
        let mut log = LogWrites {
            reader,
            sector_bytes,
            entries: word(&head, 2),
            read: 0,
            at: 32,
            marks_from: u64::MAX,
        };
        log.skip(u64::from(sector_bytes) - 32, None)?;
        Ok(log)
    }

    /// The same, where the device has so many bytes, and the rest of the log's disk is for marks:
    /// of a write there its text counts, up to the end of its first line.
    pub fn with_marks_behind(self, bytes: u64) -> LogWrites<R> {
        LogWrites { marks_from: bytes / SECTOR_BYTES, ..self }
    }

    /// Passes over data, and keeps them where they are wanted.
    fn skip(&mut self, bytes: u64, kept: Option<&mut Vec<u8>>) -> io::Result<()> {
        let mut part = self.reader.by_ref().take(bytes);
        let passed = match kept {
            Some(kept) => part.read_to_end(kept)? as u64,
            None => io::copy(&mut part, &mut io::sink())?,
        };
        self.at += passed;
        match passed == bytes {
            true => Ok(()),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// The next request or mark, if there is one more, with its data in `data`.
    pub fn next(&mut self, data: &mut Vec<u8>) -> Result<Option<Item>, LogWritesError> {
        data.clear();
        if self.read == self.entries {
            return Ok(None);
        }
        self.read += 1;
        let mut sector = Vec::new();
        self.skip(self.sector_bytes.into(), Some(&mut sector))?;
        let [place, length, flags, mark_bytes] = [0, 1, 2, 3].map(|number| word(&sector, number));
        if flags & MARK != 0 {
            let text = sector.get(MARK_TEXT..).unwrap_or_default();
            let text = &text[..text.len().min(mark_bytes as usize)];
            let mark = String::from_utf8_lossy(text).trim_end_matches('\0').to_string();
            return Ok(Some(Item::Mark(Mark { at_ns: 0, mark })));
        }
        let too_long = || LogWritesError::Length(self.read);
        let unit = u64::from(self.sector_bytes) / SECTOR_BYTES;
        let first = place.checked_mul(unit).ok_or_else(too_long)?;
        let sectors = length.checked_mul(unit).and_then(|it| u32::try_from(it).ok());
        let sectors = sectors.ok_or_else(too_long)?;
        let has_data = flags & DISCARD == 0 && sectors > 0;
        let begin = self.at;
        if has_data {
            self.skip(u64::from(sectors) * SECTOR_BYTES, Some(data))?;
        }
        if has_data && first >= self.marks_from {
            let line = data.split(|byte| matches!(byte, b'\n' | 0)).next().unwrap_or_default();
            let mark = String::from_utf8_lossy(line).into_owned();
            return Ok(Some(Item::Mark(Mark { at_ns: 0, mark })));
        }
        let op = match (flags & DISCARD != 0, sectors) {
            (true, _) => Op::Discard,
            (false, 0) => Op::Flush,
            (false, _) => Op::Write,
        };
        Ok(Some(Item::Entry(Entry {
            sector: if sectors == 0 { 0 } else { first },
            sectors,
            flags: Flags {
                preflush: flags & FLUSH != 0 && sectors > 0,
                fua: flags & FUA != 0,
                sync: false,
                meta: flags & METADATA != 0,
            },
            data: has_data.then_some(begin),
            ..Entry::of(op)
        })))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(words: [u64; 4], sector_bytes: usize, rest: &[u8]) -> Vec<u8> {
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend(rest);
        bytes.resize(sector_bytes, 0);
        bytes
    }

    fn items(log: &[u8]) -> Result<Vec<(Item, Vec<u8>)>, LogWritesError> {
        let mut log = LogWrites::new(log)?;
        let (mut items, mut data) = (Vec::new(), Vec::new());
        while let Some(item) = log.next(&mut data)? {
            items.push((item, data.clone()));
        }
        Ok(items)
    }

    #[test]
    fn an_fsync_is_a_write_a_flush_and_a_commit() {
        let mut log = words([MAGIC, 1, 4, 4096], 4096, &[]);
        log.extend(words([3, 1, 0, 0], 4096, &[]));
        log.extend([7; 4096]);
        log.extend(words([0, 0, MARK, 4], 4096, b"half"));
        log.extend(words([0, 0, FLUSH, 0], 4096, &[]));
        log.extend(words([9, 1, FLUSH | FUA | METADATA, 0], 4096, &[]));
        log.extend([9; 4096]);
        log.extend(words([5, 1, 0, 0], 4096, &[]));
        let items = items(&log).unwrap();
        let told: Vec<String> = items
            .iter()
            .map(|(item, data)| match item {
                Item::Entry(it) => {
                    format!("{:?} {}+{} {}", it.op, it.sector, it.sectors, data.len())
                }
                Item::Mark(mark) => mark.mark.clone(),
                Item::Lost(_) => String::new(),
            })
            .collect();
        assert_eq!(told, ["Write 24+8 4096", "half", "Flush 0+0 0", "Write 72+8 4096"]);
        let Item::Entry(commit) = &items[3].0 else { panic!("a write") };
        let flags = Flags { preflush: true, fua: true, meta: true, sync: false };
        assert_eq!((commit.flags, commit.data), (flags, Some(6 * 4096)));
    }

    #[test]
    fn what_is_written_behind_the_device_is_a_mark() {
        let mut log = words([MAGIC, 1, 3, 512], 512, &[]);
        for (sector, text) in [(7, "data"), (8, "fsync 12\nrest"), (9, "synced 12")] {
            log.extend(words([sector, 1, 0, 0], 512, &[]));
            let mut data = text.as_bytes().to_vec();
            data.resize(512, 0);
            log.extend(data);
        }
        let mut log = LogWrites::new(&log[..]).unwrap().with_marks_behind(8 * 512);
        let mut data = Vec::new();
        assert!(matches!(log.next(&mut data), Ok(Some(Item::Entry(_)))));
        let mut mark = || match log.next(&mut data) {
            Ok(Some(Item::Mark(mark))) => mark.mark,
            other => panic!("{other:?}"),
        };
        assert_eq!([mark(), mark()], ["fsync 12", "synced 12"]);
    }

    proptest! {
        #[test]
        fn no_log_has_more_entries_than_sectors(
            changes in prop::collection::vec((0..17408_usize, any::<u8>()), 0..64),
            length in 0..17408_usize,
        ) {
            let mut damaged = include_bytes!("../../tests/trace/blklogwrites.log").to_vec();
            changes.iter().for_each(|(at, byte)| damaged[*at] = *byte);
            let Ok(mut log) = LogWrites::new(&damaged[..length]) else { return Ok(()) };
            let (mut entries, mut data) = (0, Vec::new());
            while let Ok(Some(_)) = log.next(&mut data) {
                entries += 1;
            }
            prop_assert!(entries <= length / 512);
        }
    }

    /// Written by QEMU 7.2, by `qemu-io` in its monitor: write 4096 4096, flush, write -f 12288
    /// 512, write -z 65536 8192, discard 0 4096 (which is not passed on here), read, write 0 1024.
    #[test]
    fn what_qemu_wrote_is_read() {
        let log = include_bytes!("../../tests/trace/blklogwrites.log");
        let items = items(log).unwrap();
        let told: Vec<_> = items
            .iter()
            .filter_map(|(item, data)| match item {
                Item::Entry(it) => Some((it.op, it.sector, it.sectors, data.first().copied())),
                _ => None,
            })
            .collect();
        let flush = (Op::Flush, 0, 0, None);
        let write = |sector, sectors, first| (Op::Write, sector, sectors, Some(first));
        let [four, half, zeros, one] =
            [write(8, 8, 7), write(24, 1, 9), write(128, 16, 0), write(0, 2, 5)];
        assert_eq!(told, [four, flush, half, zeros, one, flush]);
    }

    #[test]
    fn what_is_no_log_or_cut_off_is_said() {
        let error = |log: &[u8]| items(log).unwrap_err().to_string();
        assert_eq!(error(&[0; 512]), "it is not a log of dm-log-writes or blklogwrites");
        assert!(error(&words([MAGIC, 2, 0, 512], 512, &[])).starts_with("it is of version 2"));
        assert!(error(&words([MAGIC, 1, 0, 7], 512, &[])).starts_with("its sectors have 7 bytes"));
        let mut log = words([MAGIC, 1, 1, 512], 512, &[]);
        log.extend(words([0, 1 << 60, DISCARD, 0], 512, &[]));
        assert_eq!(error(&log), "entry 1 is longer than a disk can be");
        log.truncate(700);
        items(&log).unwrap_err();
    }
}
