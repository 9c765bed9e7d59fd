//! A full disk of the host: a guest's writes go there, and fail in the guest with an I/O error, or
//! it falls silent.

use std::path::Path;

use crate::sys;

/// With so little left writes fail.
pub const FULL_BYTES: u64 = 16 << 20;

/// `error`, and before it that the disk with `folder` is full, where it is.
pub fn explained(error: String, folder: &Path) -> String {
    explained_by(error, folder, sys::free_bytes(folder).unwrap_or(u64::MAX))
}

fn explained_by(error: String, folder: &Path, free_bytes: u64) -> String {
    match free_bytes < FULL_BYTES {
        true => format!("the disk with {} is full: {error}", folder.display()),
        false => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_stands_before_what_came_of_it() {
        let of = |free_bytes| explained_by("the guest hangs".into(), Path::new("/run"), free_bytes);
        assert_eq!(of(4096), "the disk with /run is full: the guest hangs");
        assert_eq!(of(FULL_BYTES), "the guest hangs");
    }
}
