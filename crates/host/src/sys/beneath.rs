//! Opening what lies below a directory and nothing else, whatever others do to the names meanwhile.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use libc::c_int;

use super::calls::open_as;
use super::file::retried;

/// How often a rename beside us is outlived: openat2(2) gives EAGAIN then.
const ATTEMPTS: u32 = 16;

/// Opens `path`, which is relative and leads below `directory` without a single symbolic link:
/// openat2(2) with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS, before Linux 5.6 part by part.
/// Close-on-exec; what it creates has `mode`, less the umask.
pub fn open_beneath(
    directory: BorrowedFd<'_>,
    path: &Path,
    flags: c_int,
    mode: u32,
) -> io::Result<File> {
    let name = c_path(path)?;
    for _ in 0..ATTEMPTS {
        match open_resolved(directory, &name, flags, mode) {
            Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => {}
            Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
                return open_by_parts(directory, path, flags, mode);
            }
            opened => return opened,
        }
    }
    Err(io::Error::from_raw_os_error(libc::EAGAIN))
}

/// [`open_beneath`] of an absolute path: one without symbolic links.
pub fn open_without_links(path: &Path, flags: c_int) -> io::Result<File> {
    let below = path.strip_prefix("/").map_err(io::Error::other)?;
    let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
    open_beneath(File::open("/")?.as_fd(), below, flags, 0)
}

/// The path as system calls take it.
pub fn c_path(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

fn open_resolved(
    directory: BorrowedFd<'_>,
    name: &CStr,
    flags: c_int,
    mode: u32,
) -> io::Result<File> {
    let resolve = libc::RESOLVE_BENEATH | libc::RESOLVE_NO_SYMLINKS;
    open_how(directory, name, flags, mode, resolve).map(File::from)
}

/// openat2(2) with `flags` and `mode`, and with `resolve` of what a path may lead to;
/// close-on-exec. It refuses a mode where nothing may be created, which openat(2) ignores: that is
/// left out.
pub(super) fn open_how(
    directory: BorrowedFd<'_>,
    path: &CStr,
    flags: c_int,
    mode: u32,
    resolve: u64,
) -> io::Result<OwnedFd> {
    let creates = flags & libc::O_CREAT != 0 || flags & libc::O_TMPFILE == libc::O_TMPFILE;
    // SAFETY: the structure holds integers only, for which zero is a value.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = u64::from((flags | libc::O_CLOEXEC).cast_unsigned());
    how.mode = if creates { u64::from(mode & 0o7777) } else { 0 };
    how.resolve = resolve;
    let (fd, bytes) = (directory.as_raw_fd(), size_of::<libc::open_how>());
    // SAFETY: the descriptor is borrowed for the whole call, the path ends in NUL, and the kernel
    // reads one structure of the given size.
    let fd = retried(|| unsafe {
        libc::syscall(libc::SYS_openat2, fd, path.as_ptr(), &raw const how, bytes)
    })?;
    // SAFETY: the kernel has just made this descriptor, so nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as c_int) })
}

/// What openat2 does, by a call for each part of the path.
fn open_by_parts(
    directory: BorrowedFd<'_>,
    path: &Path,
    flags: c_int,
    mode: u32,
) -> io::Result<File> {
    let mut parts = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => parts.push(CString::new(name.as_bytes())?),
            Component::CurDir => {}
            _ => return Err(io::Error::from_raw_os_error(libc::EXDEV)),
        }
    }
    let last = parts.pop().unwrap_or_else(|| c".".into());
    let mut at: OwnedFd = directory.try_clone_to_owned()?;
    for part in parts {
        let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW;
        at = open_as(at.as_fd(), &part, flags, 0)?;
    }
    open_as(at.as_fd(), &last, flags | libc::O_NOFOLLOW, mode).map(File::from)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// `deep/file`, a link to it, a link to its folder, and one that leads out.
    fn tree() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("deep")).unwrap();
        fs::write(at("deep/file"), "text").unwrap();
        symlink("deep/file", at("link")).unwrap();
        symlink("deep", at("to-deep")).unwrap();
        symlink("/etc", at("out")).unwrap();
        folder
    }

    type Open = fn(BorrowedFd<'_>, &Path, c_int, u32) -> io::Result<File>;

    #[test]
    fn only_what_lies_below_is_opened_and_no_link_is_followed() {
        let folder = tree();
        let directory = File::open(folder.path()).unwrap();
        let ways: [Open; 2] = [open_beneath, open_by_parts];
        for open in ways {
            let open = |path: &str, flags: c_int| {
                open(directory.as_fd(), Path::new(path), flags, 0o600).map(drop)
            };
            open("deep/file", libc::O_RDONLY).unwrap();
            open(".", libc::O_DIRECTORY).unwrap();
            open("deep/new", libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL).unwrap();
            fs::remove_file(folder.path().join("deep/new")).unwrap();
            for odd in ["link", "to-deep/file", "out/hostname", "out", "..", "../x", "/etc"] {
                let error = open(odd, libc::O_RDONLY).unwrap_err().raw_os_error().unwrap();
                let refused = [libc::ELOOP, libc::EXDEV, libc::ENOTDIR].contains(&error);
                assert!(refused, "{odd}: {error}");
            }
        }
    }

    #[test]
    fn a_whole_path_has_no_link_in_it() {
        let folder = tree();
        let path = folder.path().canonicalize().unwrap();
        open_without_links(&path.join("deep/file"), libc::O_RDONLY).unwrap();
        open_without_links(Path::new("/"), libc::O_DIRECTORY).unwrap();
        open_without_links(&path.join("to-deep/file"), libc::O_RDONLY).unwrap_err();
        open_without_links(Path::new("deep"), libc::O_RDONLY).unwrap_err();
    }
}
