//! Whether there is room for a replay: looked at before anything is laid out, allocated or started,
//! because a recording may claim anything.

use std::fs;

use fsverdict_core::model::{Action, Call, FILE_SIZE_MAX, Laid, Recording, Replay, TreeContent};

use super::ReplayError;
use super::beneath::Folder;
use super::mapped::TOUCHED_BYTES;
use crate::machine::memory::available_bytes;
use crate::sys;

/// How much smaller than itself a file system may store the text that is written.
const TEXT_COMPRESSION: f64 = 10.0;

/// What one thread of a replay does.
#[derive(Clone, Debug, Default)]
pub struct Part<'a> {
    /// Its calls, each with its place in the recording.
    pub calls: Vec<(usize, &'a Call)>,
    /// The most that one of them reads, and writes.
    pub most: [usize; 2],
}

/// Each thread's part. All their buffers together must fit into memory.
pub fn parts(recording: &Recording) -> Result<Vec<Part<'_>>, ReplayError> {
    let mut parts = vec![Part::default(); recording.head.threads as usize];
    for (number, call) in recording.calls.iter().enumerate() {
        let sizes = sizes(&call.action);
        if let Some(bytes) = sizes.into_iter().find(|bytes| *bytes > FILE_SIZE_MAX.0) {
            return Err(ReplayError::TooLarge { call: number + 1, bytes });
        }
        let Part { calls, most } = &mut parts[call.thread as usize];
        calls.push((number, call));
        *most = [0, 1].map(|of| most[of].max(sizes[of] as usize));
    }
    let needed: u64 = parts.iter().flat_map(|part| part.most).map(|bytes| bytes as u64).sum();
    let available =
        fs::read_to_string("/proc/meminfo").ok().and_then(|text| available_bytes(&text));
    match available {
        Some(available) if available < needed => {
            Err(ReplayError::Memory { needed_bytes: needed, available_bytes: available })
        }
        _ => Ok(parts),
    }
}

/// What is laid out must fit into the folder.
pub fn in_folder(
    recording: &Recording,
    replay: &Replay,
    folder: &Folder,
) -> Result<(), ReplayError> {
    let all = recording.entries.iter().map(|entry| match &entry.what {
        Laid::File { bytes, data, .. } if data.is_empty() => u128::from(*bytes),
        Laid::File { data, .. } => data.iter().map(|(begin, end)| u128::from(end - begin)).sum(),
        _ => 0,
    });
    let needed = all.sum::<u128>() as f64;
    let stored = match replay.content {
        TreeContent::Random => needed,
        TreeContent::Compressible => needed / replay.compression,
        TreeContent::Text => needed / TEXT_COMPRESSION,
    };
    let free = sys::free_bytes(&folder.path).map_err(ReplayError::Free)?;
    if stored <= free as f64 {
        return Ok(());
    }
    Err(ReplayError::Room { needed_bytes: needed as u64, free_bytes: free })
}

/// How many bytes a call may put into a buffer, and take from one.
fn sizes(action: &Action) -> [u64; 2] {
    /// PATH_MAX, for the target of a link.
    const LINK_BYTES: u64 = 4096;
    match *action {
        Action::Read { bytes, .. }
        | Action::Pread { bytes, .. }
        | Action::List { bytes, .. }
        | Action::Getxattr { bytes, .. }
        | Action::Listxattr { bytes, .. } => [bytes, 0],
        Action::Write { bytes, .. }
        | Action::Pwrite { bytes, .. }
        | Action::Setxattr { bytes, .. } => [0, bytes],
        Action::Readlink { .. } => [LINK_BYTES, 0],
        Action::Touch { bytes, writes: false, .. } => [bytes.min(TOUCHED_BYTES), 0],
        Action::Touch { bytes, writes: true, .. } => [0, bytes.min(TOUCHED_BYTES)],
        _ => [0, 0],
    }
}
