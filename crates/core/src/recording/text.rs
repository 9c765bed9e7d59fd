//! A recording as text: a line of JSON for its head, one for each path, entry and call.

use std::io::{self, BufRead, Read, Write};

use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::model::{Action, Head, Laid, On, RECORDING, Recording};

/// More threads than any application has that is worth a replay; each costs memory of its own.
const THREADS_MAX: u32 = 4096;

/// The longest line that is read: a sparse file may have very many pieces.
const LINE_BYTES_MAX: u64 = 64 << 20;

/// The longest first line.
const HEAD_BYTES_MAX: u64 = 1 << 20;

/// Why a file is no recording that can be replayed.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum RecordingError {
    #[error("{0}")]
    Read(#[from] io::Error),
    #[error("it is not a recording of fsverdict record: {0}")]
    Head(serde_json::Error),
    #[error("it is of version {found}, and this fsverdict reads {RECORDING}: record again")]
    Version { found: u32 },
    #[error("its first line claims {0}: such a recording is not replayed")]
    Claims(String),
    #[error("it ends too early, at line {0}: record again")]
    Short(u64),
    #[error("line {line}: {error}")]
    Line { line: u64, error: String },
}

/// Writes it.
pub fn write(recording: &Recording, mut out: impl Write) -> io::Result<()> {
    fn line(out: &mut impl Write, value: &impl serde::Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut *out, value)?;
        out.write_all(b"\n")
    }
    let Recording { head, paths, entries, calls, ends } = recording;
    line(&mut out, head)?;
    paths.iter().try_for_each(|path| line(&mut out, path))?;
    entries.iter().try_for_each(|entry| line(&mut out, entry))?;
    calls.iter().try_for_each(|call| line(&mut out, call))?;
    ends.iter().try_for_each(|entry| line(&mut out, entry))?;
    out.flush()
}

/// Reads the first line alone: is it a recording?
pub fn read_head(text: impl BufRead) -> Result<Head, RecordingError> {
    let mut line = String::new();
    text.take(HEAD_BYTES_MAX).read_line(&mut line)?;
    let head: Head = serde_json::from_str(&line).map_err(RecordingError::Head)?;
    if head.recording != RECORDING {
        return Err(RecordingError::Version { found: head.recording });
    }
    absurd(&head).map_or(Ok(head), |claim| Err(RecordingError::Claims(claim)))
}

/// Counts in a first line that no recording has. A replay allocates for the given numbers of
/// threads and open files; for lines it allocates only as they are read.
fn absurd(head: &Head) -> Option<String> {
    let &Head { threads, handles, maps, paths, entries, calls, ends, .. } = head;
    [
        (threads > THREADS_MAX, format!("{threads} threads, and {THREADS_MAX} is the most")),
        (u64::from(threads) > calls, format!("{threads} threads for {calls} calls")),
        (u64::from(handles) > calls, format!("{handles} open files for {calls} calls")),
        (u64::from(maps) > calls, format!("{maps} mappings for {calls} calls")),
        (paths > u64::from(u32::MAX), format!("{paths} paths, which have numbers of 32 bits")),
        (entries > paths, format!("{entries} files and directories with {paths} paths")),
        (ends > paths, format!("{ends} files and directories at its end with {paths} paths")),
    ]
    .into_iter()
    .find_map(|(is_absurd, claim)| is_absurd.then_some(claim))
}

/// Reads it, and sees to it that a replay can rely on it.
pub fn read(mut text: impl BufRead) -> Result<Recording, RecordingError> {
    let head = read_head(&mut text)?;
    let mut lines = Numbered { text, line: 1, buffer: String::new() };
    let recording = Recording {
        paths: lines.several(head.paths)?,
        entries: lines.several(head.entries)?,
        calls: lines.several(head.calls)?,
        ends: lines.several(head.ends)?,
        head,
    };
    check(&recording)?;
    Ok(recording)
}

struct Numbered<R> {
    text: R,
    line: u64,
    buffer: String,
}

impl<R: BufRead> Numbered<R> {
    fn several<T: DeserializeOwned>(&mut self, count: u64) -> Result<Vec<T>, RecordingError> {
        (0..count).map(|_| self.one()).collect()
    }

    fn one<T: DeserializeOwned>(&mut self) -> Result<T, RecordingError> {
        self.buffer.clear();
        if self.text.by_ref().take(LINE_BYTES_MAX).read_line(&mut self.buffer)? == 0 {
            return Err(RecordingError::Short(self.line));
        }
        self.line += 1;
        let wrong = |error: serde_json::Error| RecordingError::Line {
            line: self.line,
            error: error.to_string(),
        };
        serde_json::from_str(&self.buffer).map_err(wrong)
    }
}

/// A replay writes where a recording says: within its folder; and a call waits for none that comes
/// later.
fn check(recording: &Recording) -> Result<(), RecordingError> {
    let Recording { head, paths, entries, calls, ends } = recording;
    let wrong = |line: u64, error: &str| {
        // The head is line 1.
        Err(RecordingError::Line { line: line + 2, error: error.into() })
    };
    for (line, path) in (0..).zip(paths) {
        let is_part = |part: &str| !matches!(part, "" | "." | "..") && !part.contains('\0');
        if !path.split('/').all(is_part) {
            return wrong(line, "a path leads out of the folder");
        }
    }
    let known = |path: u32| u64::from(path) < head.paths;
    let leads_out = |path: u32, target: &str| {
        let mut depth = Some(paths[path as usize].matches('/').count());
        for part in target.split('/') {
            depth = match part {
                ".." => depth.and_then(|depth| depth.checked_sub(1)),
                "" | "." => depth,
                _ => depth.map(|depth| depth + 1),
            };
        }
        let is_odd = target.is_empty() || target.starts_with('/') || target.contains('\0');
        is_odd || depth.is_none()
    };
    for (line, entry) in (head.paths..).zip(entries) {
        let is_wrong = !known(entry.path)
            || match &entry.what {
                Laid::Link { target } => leads_out(entry.path, target),
                Laid::NameOf { path } => !known(*path),
                _ => false,
            };
        if is_wrong {
            return wrong(line, "an entry has no path, or leads out of the folder");
        }
        if matches!(&entry.what, Laid::File { bytes, data, .. } if !is_file(*bytes, data)) {
            return wrong(line, "a file's data are out of order, or beyond its end");
        }
    }
    let mut done = vec![0; head.threads as usize];
    for (line, call) in (head.paths + head.entries..).zip(calls) {
        let waits = call.waits.iter();
        let mut known = waits.map(|(thread, calls)| done.get(*thread as usize) >= Some(calls));
        let Some(own) = done.get(call.thread as usize).filter(|_| known.all(|known| known)) else {
            return wrong(line, "a call waits for one that comes later, or has no thread");
        };
        done[call.thread as usize] = own + 1;
        if !in_bounds(&call.action, head) {
            return wrong(line, "a call has no path, no open file or no mapping");
        }
        if matches!(&call.action, Action::Symlink { target, path } if leads_out(*path, target)) {
            return wrong(line, "a link leads out of the folder");
        }
    }
    // They are looked for, and never made.
    for (line, entry) in (head.paths + head.entries + head.calls..).zip(ends) {
        let is_known = match entry.what {
            Laid::NameOf { path } => known(path),
            _ => true,
        };
        if !is_known || !known(entry.path) {
            return wrong(line, "what is there at the end has no path");
        }
    }
    Ok(())
}

/// Pieces of data lie one after the other in a file that can be (off_t has a sign).
fn is_file(bytes: u64, data: &[(u64, u64)]) -> bool {
    let mut last = 0;
    let follows = |&(begin, end): &(u64, u64)| {
        let before = std::mem::replace(&mut last, end);
        before <= begin && begin <= end && end <= bytes
    };
    i64::try_from(bytes).is_ok() && data.iter().all(follows)
}

/// All paths, open files and mappings that a call names are there.
fn in_bounds(action: &Action, head: &Head) -> bool {
    let mut all = action.map().is_none_or(|map| map < head.maps);
    action.each(|on| {
        all &= match on {
            On::Path(path) => u64::from(path) < head.paths,
            On::Handle(handle) => handle < head.handles,
        };
    });
    all
}
