//! What the page cache holds of a device or of files, and emptying it.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use fsverdict_core::model::{CacheState, Device};

use super::below;
use crate::sys::{self, Cached};

/// Files of a tree that are looked at, largest first: looking at a file brings its inode back
/// into the cache, so that only a few may be.
const FILES_LOOKED_AT: usize = 16;

/// Drops the caches, and says what they held of `paths` before and after.
///
/// Writing 3 to drop_caches drops clean pages, dentries and inodes
/// (Documentation/admin-guide/sysctl/vm.rst); dirty pages stay, which is why they are counted.
pub fn drop_of(paths: &[PathBuf]) -> CacheState {
    let before = of(paths);
    let dropped = fs::write("/proc/sys/vm/drop_caches", "3").is_ok();
    CacheState {
        dirty_bytes_before: before.dirty_bytes,
        cached_bytes_before: before.cached_bytes,
        cached_bytes_after: of(paths).cached_bytes,
        dropped,
    }
}

/// The nodes of `devices`.
pub fn nodes(devices: &[Device]) -> Vec<PathBuf> {
    devices.iter().map(|device| PathBuf::from(&device.path)).collect()
}

/// The files behind those of `devices` that are loop devices.
pub fn images(devices: &[Device]) -> Vec<PathBuf> {
    let root = Path::new("/");
    let image = |device: &Device| below::backing_file(root, below::lowest(root, device).number);
    devices.iter().filter_map(image).collect()
}

/// The largest files below `directory`.
pub fn largest_files(directory: &Path) -> Vec<PathBuf> {
    let mut files: Vec<(u64, PathBuf)> = Vec::new();
    let mut folders = vec![directory.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                files.push((entry.metadata().map_or(0, |data| data.len()), entry.path()));
            }
        }
    }
    files.sort_by(|a, b| b.cmp(a));
    files.into_iter().take(FILES_LOOKED_AT).map(|(_, path)| path).collect()
}

/// A file that can't be opened holds nothing that could be seen.
fn of(paths: &[PathBuf]) -> Cached {
    let mut sum = Cached::default();
    for file in paths.iter().filter_map(|path| File::open(path).ok()) {
        let seen = sys::cached(file.as_raw_fd());
        sum.cached_bytes += seen.cached_bytes;
        sum.dirty_bytes += seen.dirty_bytes;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn what_was_just_written_is_cached_and_dirty() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mut file = File::create(&path).unwrap();
        file.write_all(&vec![7; 1 << 20]).unwrap();
        let seen = of(std::slice::from_ref(&path));
        assert_eq!(seen.cached_bytes, 1 << 20);
        assert!(seen.dirty_bytes <= seen.cached_bytes);
        assert_eq!(largest_files(folder.path()), [path]);
    }
}
