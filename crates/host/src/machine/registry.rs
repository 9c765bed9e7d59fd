//! The folder with what is known of the runs of this machine, or of this user. Nobody else may
//! write there. It is gone after a reboot.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::sys;

/// Root's.
pub const OF_ROOT: &str = "/run/fsverdict";

/// Its path.
pub fn registry() -> PathBuf {
    if sys::is_root() {
        return OF_ROOT.into();
    }
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(folder) if Path::new(&folder).is_dir() => PathBuf::from(folder).join("fsverdict"),
        _ => std::env::temp_dir().join(format!("fsverdict-{}", sys::user_id())),
    }
}

/// It, open, and made if need be.
pub fn open() -> io::Result<File> {
    let path = registry();
    let parent = path.parent().unwrap_or(Path::new("/")).canonicalize()?;
    let parent = sys::open_without_links(&parent, libc::O_DIRECTORY | libc::O_RDONLY)?;
    let name = path.file_name().unwrap_or_default();
    // Root's mount point is in it, and the work may be another user's.
    let mode = if sys::is_root() { 0o755 } else { 0o700 };
    private_folder(&parent, Path::new(name), mode)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

/// The folder `name` in `parent`, made if need be, into which nobody else may write.
pub fn private_folder(parent: &File, name: &Path, mode: u32) -> io::Result<File> {
    match sys::make_directory_as(parent.as_fd(), &sys::c_path(name)?, mode) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let flags = libc::O_DIRECTORY | libc::O_RDONLY;
    let folder = sys::open_beneath(parent.as_fd(), name, flags, 0)?;
    let data = folder.metadata()?;
    if data.uid() != sys::user_id() {
        return Err(io::Error::other("it belongs to another user"));
    }
    if data.mode() & 0o022 != 0 {
        return Err(io::Error::other("others may write there: remove it, or chmod go-w"));
    }
    Ok(folder)
}

/// The file `name` in it, to be locked: runs keep out of each other's way by such.
pub fn lock_file(name: &str) -> io::Result<File> {
    let flags = libc::O_RDWR | libc::O_CREAT;
    sys::open_beneath(open()?.as_fd(), Path::new(name), flags, 0o600)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_folder_that_others_may_write_to_is_not_used() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("registry");
        let open = || private_folder(&File::open(parent.path())?, Path::new("registry"), 0o700);
        open().unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(open().unwrap_err().to_string().contains("others may write"));
        fs::remove_dir(&path).unwrap();
        symlink("/etc", &path).unwrap();
        open().unwrap_err();
    }
}
