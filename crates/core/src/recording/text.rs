//! A recording as text: a line of JSON for its head, one for each path, entry and call.

use std::io::{self, BufRead, Write};

use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::model::{Action, Head, Laid, On, RECORDING, Recording};

/// Why a file is no recording that can be replayed.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum RecordingError {
    #[error("{0}")]
    Read(#[from] io::Error),
    #[error("it is no recording of fsverdict record: {0}")]
    Head(serde_json::Error),
    #[error("it is of version {found}, and this fsverdict reads {RECORDING}: record again")]
    Version { found: u32 },
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
    let Recording { head, paths, entries, calls } = recording;
    line(&mut out, head)?;
    paths.iter().try_for_each(|path| line(&mut out, path))?;
    entries.iter().try_for_each(|entry| line(&mut out, entry))?;
    calls.iter().try_for_each(|call| line(&mut out, call))?;
    out.flush()
}

/// Reads the first line alone: is it a recording?
pub fn read_head(mut text: impl BufRead) -> Result<Head, RecordingError> {
    let mut line = String::new();
    text.read_line(&mut line)?;
    let head: Head = serde_json::from_str(&line).map_err(RecordingError::Head)?;
    match head.recording {
        RECORDING => Ok(head),
        found => Err(RecordingError::Version { found }),
    }
}

/// Reads it, and sees to it that a replay can rely on it.
pub fn read(mut text: impl BufRead) -> Result<Recording, RecordingError> {
    let head = read_head(&mut text)?;
    let mut lines = Numbered { text, line: 1, buffer: String::new() };
    let recording = Recording {
        paths: lines.several(head.paths)?,
        entries: lines.several(head.entries)?,
        calls: lines.several(head.calls)?,
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
        if self.text.read_line(&mut self.buffer)? == 0 {
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
    let Recording { head, paths, entries, calls } = recording;
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
        let depth = paths[path as usize].matches('/').count();
        let up = target.split('/').filter(|part| *part == "..").count();
        target.is_empty() || target.starts_with('/') || target.contains('\0') || up > depth
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
            return wrong(line, "a call has no path or no open file");
        }
        if matches!(&call.action, Action::Symlink { target, path } if leads_out(*path, target)) {
            return wrong(line, "a link leads out of the folder");
        }
    }
    Ok(())
}

/// All paths and open files that a call names are there.
fn in_bounds(action: &Action, head: &Head) -> bool {
    let mut all = true;
    action.each(|on| {
        all &= match on {
            On::Path(path) => u64::from(path) < head.paths,
            On::Handle(handle) => handle < head.handles,
        };
    });
    all
}
