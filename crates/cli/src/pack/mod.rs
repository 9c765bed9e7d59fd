//! A packed run: the files of its folder as one, a tar through gzip. FORMAT.md describes it.
//!
//! Nothing is unpacked: names only decide which reader gets a text. So a forged pack can't write
//! anywhere, and only the cost of reading it has to be bounded.

mod places;
mod read;
mod write;

pub use places::Places;
pub use read::{is_gzip, is_pack, read};
pub use write::write;

/// The longest file, and by that what reading one holds in memory.
pub const FILE_BYTES_MAX: u64 = 256 << 20;
/// A run of 10,000 trials has some 50,000 files, and their tools' output on top.
const FILES_MAX: usize = 200_000;
/// How many times longer than itself a pack may be unpacked, from some length on. The published
/// runs are up to 8 times longer, and deflate makes up to 1,032 of one.
const TIMES_MAX: u64 = 256;
const SHORT_BYTES: u64 = 64 << 20;

/// The place of a file in the order of a pack. Each comes after the one before it, so that no name
/// comes twice. The run's own come first, and of the trials' the same kind stand together: what is
/// alike packs better (the published runs by a ninth). Shorter names first, that is 9 before 10.
fn place(name: &str) -> (usize, &str, usize, &str) {
    let file = name.rsplit('/').next().unwrap_or(name);
    (name.split('/').count(), file, name.len(), name)
}

/// The folder at the top, and the file's name below it; `None` where the path may lead elsewhere.
fn below_top(path: &str) -> Option<(&str, &str)> {
    let is_plain =
        |part: &str| !["", ".", ".."].contains(&part) && !part.contains(char::is_control);
    path.split('/').all(is_plain).then(|| path.split_once('/')).flatten()
}

#[cfg(test)]
mod tests;
