//! What was there before the first call of a recording, laid out again.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use fsverdict_core::model::{Entry, Laid, Recording, Replay};

use super::beneath::{Beneath, Name};
use crate::sys;
use crate::tree::{CHUNK_BYTES, Contents, content_key};
use crate::workload::PathError;

/// Lays it out in the directory. The same seed gives the same contents.
pub fn lay_out(
    recording: &Recording,
    replay: &Replay,
    beneath: &Beneath<'_>,
    seed: u64,
) -> Result<(), PathError> {
    let mut contents = Contents::new(replay.content, replay.compression);
    for (entry, number) in recording.entries.iter().zip(0..) {
        let made = make(entry, &recording.paths, beneath, &mut contents, [seed, number]);
        let path = Path::new(&recording.paths[entry.path as usize]);
        made.map_err(PathError::of("lay out", path))?;
    }
    Ok(())
}

fn make(
    entry: &Entry,
    paths: &[String],
    beneath: &Beneath<'_>,
    contents: &mut Contents,
    key: [u64; 2],
) -> io::Result<()> {
    let name = |path: u32| Name::new(&paths[path as usize]);
    let path = name(entry.path)?;
    match &entry.what {
        Laid::Directory { mode } => {
            beneath.at(&path, sys::make_directory_at)?;
            let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
            sys::change_mode(beneath.open(&path, flags, 0)?.as_fd(), mode | 0o700)
        }
        Laid::File { bytes, mode, data } => {
            let (mode, flags) = (mode | 0o600, libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL);
            let file = beneath.open(&path, flags, mode)?;
            sys::change_mode(file.as_fd(), mode)?;
            let whole = [(0, *bytes)];
            let data = if data.is_empty() { &whole[..] } else { data };
            fill(&file.into(), *bytes, data, contents, key)
        }
        Laid::Link { target } => {
            let target = CString::new(target.as_str())?;
            beneath.at(&path, |at, name| sys::symbolic_link_at(&target, at, name))
        }
        Laid::NameOf { path: other } => beneath.at(&name(*other)?, |from, old| {
            beneath.at(&path, |to, new| sys::link_at(from, old, to, new))
        }),
        // A pipe: sockets have no way to be made without a server, and neither is opened.
        Laid::Special {} => {
            let mode = libc::S_IFIFO | 0o600;
            beneath.at(&path, |at, name| sys::make_node_at(at, name, mode, 0))
        }
    }
}

/// A file of `bytes` with content from beginning to end of each of `data`, and holes between.
fn fill(
    file: &File,
    bytes: u64,
    data: &[(u64, u64)],
    contents: &mut Contents,
    [seed, number]: [u64; 2],
) -> io::Result<()> {
    for &(begin, end) in data {
        let mut place = begin;
        while place < end {
            let len = (end - place).min(CHUNK_BYTES as u64) as usize;
            file.write_all_at(contents.of(content_key([seed, number, place]), len), place)?;
            place += len as u64;
        }
    }
    if data.last().is_none_or(|(_, end)| *end < bytes) {
        file.set_len(bytes)?;
    }
    Ok(())
}
