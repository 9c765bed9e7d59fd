//! Room for what is made and written: on disks, in directories, in memory.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use fsverdict_core::model::Bytes;
use fsverdict_core::model::need::Answer;

use crate::bed::{needed, with_margin};
use crate::machine::memory::available_bytes;
use crate::machine::mount;
use crate::sys;

/// Room for images in `folder`.
pub(super) fn images(folder: &Path, bytes: u64) -> Answer {
    let path = folder.display();
    let free_bytes = match sys::free_bytes(folder) {
        Ok(free_bytes) => free_bytes,
        Err(error) => return Answer::unknown(format!("{path}: {error}")),
    };
    if free_bytes < with_margin(bytes) {
        let (free, needed) = (Bytes(free_bytes).rounded(), needed(bytes));
        return Answer::no(format!("{path} has {free} free, the image needs {needed}"))
            .but("choose another --dir, a smaller --size or, for a study, a smaller --scale");
    }
    let on = mount::holding(folder).ok().flatten();
    let kind = on.map_or(String::new(), |on| format!(", on {}", on.file_system));
    Answer::yes(format!("{} free in {path}{kind}", Bytes(free_bytes).rounded()))
}

/// Room on a disk, or in a directory, of the user's.
pub(super) fn space(at: &Path, bytes: u64) -> Answer {
    let path = at.display();
    match room_bytes(at) {
        Ok(there_bytes) if there_bytes < bytes => {
            let (needed, there) = (Bytes(bytes).rounded(), Bytes(there_bytes).rounded());
            Answer::no(format!("{needed} are needed, {path} has {there}"))
        }
        Ok(there_bytes) => Answer::yes(format!("{path} has {}", Bytes(there_bytes).rounded())),
        Err(error) => Answer::unknown(format!("{path}: {error}")),
    }
}

fn room_bytes(at: &Path) -> io::Result<u64> {
    match fs::metadata(at)?.file_type().is_block_device() {
        true => File::open(at)?.seek(SeekFrom::End(0)),
        false => sys::free_bytes(at),
    }
}

/// Memory that is free.
pub(super) fn memory(root: &Path, bytes: u64) -> Answer {
    let text = fs::read_to_string(root.join("proc/meminfo")).unwrap_or_default();
    let Some(free_bytes) = available_bytes(&text) else {
        return Answer::unknown("/proc/meminfo has no line MemAvailable");
    };
    let free = Bytes(free_bytes).rounded();
    match free_bytes >= with_margin(bytes) {
        true => Answer::yes(format!("{free} available")),
        false => Answer::no(format!("{free} available, a bed in memory needs {}", needed(bytes)))
            .but("choose a smaller --size or --bed loop"),
    }
}
