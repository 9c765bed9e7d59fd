//! What was there before the first call of a recording, laid out again.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::Path;

use fsverdict_core::model::{Entry, Laid, Recording, Replay};

use crate::sys;
use crate::tree::{CHUNK_BYTES, Contents, content_key};
use crate::workload::PathError;

/// Lays it out in `directory`. The same seed gives the same contents.
pub fn lay_out(
    recording: &Recording,
    replay: &Replay,
    directory: &Path,
    seed: u64,
) -> Result<(), PathError> {
    let mut contents = Contents::new(replay.content, replay.compression);
    for (Entry { path, what }, number) in recording.entries.iter().zip(0..) {
        let path = directory.join(&recording.paths[*path as usize]);
        let made = match what {
            Laid::Directory { mode } => fs::create_dir(&path)
                .and_then(|()| fs::set_permissions(&path, Permissions::from_mode(mode | 0o700))),
            Laid::File { bytes, mode, data } => {
                let whole = [(0, *bytes)];
                let data = if data.is_empty() { &whole[..] } else { data };
                let key = [seed, number];
                fill(&path, mode | 0o600, *bytes, data, &mut contents, key)
            }
            Laid::Link { target } => symlink(target, &path),
            Laid::NameOf { path: other } => {
                fs::hard_link(directory.join(&recording.paths[*other as usize]), &path)
            }
            Laid::Special {} => make_pipe(&path),
        };
        made.map_err(PathError::of("lay out", &path))?;
    }
    Ok(())
}

/// A pipe: sockets have no way to be made without a server, and neither is opened.
fn make_pipe(path: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let name = CString::new(name.as_bytes())?;
    sys::make_node_at(File::open(parent)?.as_fd(), &name, libc::S_IFIFO | 0o600, 0)
}

/// A file of `bytes` with content from beginning to end of each of `data`, and holes between.
fn fill(
    path: &Path,
    mode: u32,
    bytes: u64,
    data: &[(u64, u64)],
    contents: &mut Contents,
    [seed, number]: [u64; 2],
) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(mode).open(path)?;
    file.set_permissions(Permissions::from_mode(mode))?;
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
