//! An iolog as a recording, of one thread that makes the log's calls one after the other.
//!
//! The log does not tell how files were opened and made, nor when calls ended. So files are opened
//! through the page cache, for writing if the log writes to them; data that is read without being
//! written before was there; and there are no pauses.

use std::collections::BTreeSet;
use std::io::{self, BufRead, Read};

use thiserror::Error;

use super::files::{FILE_MODE, Files};
use crate::model::{Action, Call, FILE_SIZE_MAX, Gave, Head, RECORDING, Recording};
use crate::recording::names::Names;
use crate::recording::why;

/// What fio reads a line into.
const LINE_BYTES_MAX: u64 = 4096;

/// The largest file of ext4 with blocks of 4 KiB.
const PLACE_MAX: u64 = 16 << 40;

/// Why a file is no iolog that can be replayed.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum IologError {
    #[error("{0}")]
    Read(#[from] io::Error),
    #[error("it is a blktrace, of a device and not of files: fio replays it itself (read_iolog=)")]
    Blktrace,
    #[error("it is not an iolog of fio: these begin with \"fio version 2 iolog\", or 3")]
    Head,
    #[error("line {line}: {error}")]
    Line { line: u64, error: String },
    #[error("it has no call on a file")]
    Nothing,
}

/// What its names mean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// Absolute paths of folders; a name that is not absolute is one in the first.
    pub folders: Vec<String>,
    /// Files keep their names.
    pub keep_names: bool,
}

/// Reads it.
pub fn read(source: Source, mut text: impl BufRead) -> Result<Recording, IologError> {
    let mut head = Vec::new();
    text.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut head)?;
    let has_times = match head.trim_ascii_end() {
        b"fio version 2 iolog" => false,
        b"fio version 3 iolog" => true,
        other if is_blktrace(other) => return Err(IologError::Blktrace),
        _ => return Err(IologError::Head),
    };
    let mut reader = Reader { files: Files::new(source.folders), ..Reader::default() };
    let mut line = Vec::new();
    for number in 2.. {
        line.clear();
        if text.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let wrong = |error| IologError::Line { line: number, error };
        // Two names that differ in such bytes alone would become one file.
        let said = str::from_utf8(&line).map_err(|_| wrong("it is not UTF-8".into()))?;
        reader.line(said, has_times).map_err(wrong)?;
    }
    if reader.calls.is_empty() {
        return Err(IologError::Nothing);
    }
    Ok(reader.finish(source.keep_names))
}

/// BLK_IO_TRACE_MAGIC of linux/blktrace_api.h in the upper three bytes, in either order of bytes.
fn is_blktrace(begin: &[u8]) -> bool {
    const MAGIC: [u8; 3] = [0x65, 0x61, 0x74];
    let mut other = MAGIC;
    other.reverse();
    begin.starts_with(&MAGIC) || begin.get(1..4) == Some(&other)
}

#[derive(Default)]
struct Reader {
    files: Files,
    calls: Vec<Call>,
    handles: u32,
    left_out: u64,
    end_us: u64,
}

impl Reader {
    /// What is wrong with a line, if something is.
    fn line(&mut self, line: &str, has_times: bool) -> Result<(), String> {
        let mut words: Vec<&str> = line.split_ascii_whitespace().collect();
        if words.is_empty() {
            return Ok(());
        }
        let form = match has_times {
            true => "MICROSECONDS FILE ACTION [OFFSET LENGTH]",
            false => "FILE ACTION [OFFSET LENGTH]",
        };
        let strange = || format!("it is not \"{form}\"");
        let number = |word: &str| word.parse::<u64>().map_err(|_| strange());
        if has_times {
            let time_us = number(words.remove(0))?;
            self.end_us = self.end_us.max(time_us);
        }
        match words[..] {
            [name, "add"] => self.files.add(name),
            [name, "open"] => self.open(name),
            [name, "close"] => self.close(name),
            // A delay, in a version without times.
            [_, "wait", place, bytes] if !has_times => number(place).and(number(bytes)).map(drop),
            [name, action, place, bytes] => {
                self.transfer(name, action, number(place)?, number(bytes)?)
            }
            _ => Err(strange()),
        }
    }

    fn enter(&mut self, action: Action, gave: u64) {
        let gave = Gave::Value(gave);
        self.calls.push(Call { thread: 0, pause_ns: 0, waits: Vec::new(), action, gave });
    }

    /// Opens a file; one that is open stays so.
    fn open(&mut self, name: &str) -> Result<(), String> {
        let next = self.handles;
        let file = self.files.get(name)?;
        if file.handle.is_some() {
            return Ok(());
        }
        file.handle = Some(next);
        self.handles += 1;
        // The flags are known when all lines are.
        let (path, flags, mode) = (file.path, String::new(), FILE_MODE);
        self.enter(Action::Open { path, flags, mode, handle: Some(next) }, 0);
        Ok(())
    }

    fn close(&mut self, name: &str) -> Result<(), String> {
        let handle = self.files.get(name)?.handle.take();
        let handle = handle.ok_or_else(|| format!("{name} is not open"))?;
        self.enter(Action::Close { handle }, 0);
        Ok(())
    }

    /// A call on an open file.
    fn transfer(&mut self, name: &str, action: &str, place: u64, bytes: u64) -> Result<(), String> {
        let most = FILE_SIZE_MAX;
        if bytes > most.0 {
            return Err(format!("{bytes} bytes at once: at most {most} are replayed"));
        }
        let end = place.checked_add(bytes).filter(|end| *end <= PLACE_MAX);
        let end = end.ok_or_else(|| format!("{place} is beyond any file of 16 TiB"))?;
        let file = self.files.get(name)?;
        let handle = file.handle.ok_or_else(|| format!("{name} is not open"))?;
        let (action, gave) = match action {
            "read" => {
                file.reads(place, end);
                (Action::Pread { handle, bytes, place }, bytes)
            }
            "write" => {
                file.writes(place, end);
                (Action::Pwrite { handle, bytes, place }, bytes)
            }
            "sync" => (Action::Fsync { handle }, 0),
            "datasync" => (Action::Fdatasync { handle }, 0),
            "syncfs" => (Action::Syncfs { handle }, 0),
            // As fio trims a file; the kernel takes no hole of no bytes.
            "trim" if bytes > 0 => {
                file.is_written = true;
                let flags = "FALLOC_FL_KEEP_SIZE|FALLOC_FL_PUNCH_HOLE".into();
                (Action::Allocate { handle, flags, place, bytes }, 0)
            }
            // The log leaves out some of its arguments.
            "sync_file_range" | "trim" => {
                self.left_out += 1;
                return Ok(());
            }
            _ => return Err(format!("fio has no action {action:?}")),
        };
        self.enter(action, gave);
        Ok(())
    }

    /// The recording, when there are no more lines.
    fn finish(mut self, keep_names: bool) -> Recording {
        let open: Vec<u32> =
            self.files.all.values_mut().filter_map(|it| it.handle.take()).collect();
        for handle in open {
            self.enter(Action::Close { handle }, 0);
        }
        let [entries, ends] = self.files.entries();
        let its = self.files.all.values();
        let written: BTreeSet<u32> = its.filter(|it| it.is_written).map(|it| it.path).collect();
        for call in &mut self.calls {
            if let Action::Open { path, flags, .. } = &mut call.action {
                let known = if written.contains(path) { "O_RDWR|O_CREAT" } else { "O_RDONLY" };
                *flags = known.into();
            }
        }
        let mut names = Names::new(keep_names);
        let paths: Vec<String> = self.files.paths.iter().map(|path| names.path(path)).collect();
        let left_out = (self.left_out > 0).then(|| (why::UNKNOWN.to_string(), self.left_out));
        let head = Head {
            recording: RECORDING,
            names_kept: keep_names,
            threads: 1,
            handles: self.handles,
            paths: paths.len() as u64,
            entries: entries.len() as u64,
            calls: self.calls.len() as u64,
            ends: ends.len() as u64,
            elapsed_ns: self.end_us.saturating_mul(1000),
            left_out: left_out.into_iter().collect(),
            ..Head::default()
        };
        Recording { head, paths, entries, calls: self.calls, ends }
    }
}
