//! What the device that a file names says of itself, if this machine has it. Only read.

use std::fs;
use std::path::PathBuf;

/// A device's own wishes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// For sentences: `/dev/nvme0n1`, or a plain disk.
    pub name: String,
    /// `queue/optimal_io_size`: a stripe, where there is one; else 0.
    pub optimal_bytes: u64,
    /// `queue/minimum_io_size`: what one disk holds of a stripe.
    pub minimum_bytes: u64,
    /// `queue/physical_block_size`.
    pub physical_bytes: u64,
}

/// That of the device at `word`, or of a plain disk if this machine has no such device.
pub fn of(word: &str) -> Topology {
    let read = |file: &str| queue(word).and_then(|q| fs::read_to_string(q.join(file)).ok());
    let number = |file: &str| read(file).and_then(|text| text.trim().parse().ok());
    match number("optimal_io_size") {
        Some(optimal_bytes) => {
            let physical_bytes = number("physical_block_size").unwrap_or(4096);
            let minimum_bytes = number("minimum_io_size").unwrap_or(0);
            Topology { name: word.into(), optimal_bytes, minimum_bytes, physical_bytes }
        }
        None => Topology {
            name: "a plain disk".into(),
            optimal_bytes: 0,
            minimum_bytes: 0,
            physical_bytes: 4096,
        },
    }
}

/// The queue's folder of the device that `word`, a name or a path, stands for. A partition has
/// its disk's.
pub fn queue(word: &str) -> Option<PathBuf> {
    let name = word.strip_prefix("/dev/").unwrap_or(word);
    if name.is_empty() || name.contains(['/', '$', '*']) || name.starts_with('.') {
        return None;
    }
    let folder = fs::canonicalize(format!("/sys/class/block/{name}")).ok()?;
    let whole = if folder.join("partition").exists() { folder.parent()?.into() } else { folder };
    Some(whole.join("queue")).filter(|queue| queue.exists())
}
