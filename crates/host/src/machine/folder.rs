//! What lies in a folder.

use std::fs;
use std::path::{Path, PathBuf};

/// The paths of its entries, in no order; none where there is no such folder.
pub fn entries<P: AsRef<Path>>(folder: P) -> impl Iterator<Item = PathBuf> + use<P> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}
