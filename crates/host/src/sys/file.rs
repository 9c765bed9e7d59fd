//! Files by their directory, as the native workloads need them; callers see owned or borrowed
//! descriptors and [`io::Result`].

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use libc::c_int;

/// Makes `call` again while a signal interrupts it; a negative answer becomes its errno.
#[inline]
pub(super) fn retried<T: Copy + Into<i64>>(mut call: impl FnMut() -> T) -> io::Result<T> {
    loop {
        let answer = call();
        if answer.into() >= 0 {
            return Ok(answer);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// The file at `path`, made where there is none, to write at its end; no link is followed there,
/// and no pipe waited for.
pub fn append(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    File::options().append(true).create(true).custom_flags(flags).open(path)
}

/// openat(2), close-on-exec; ELOOP for a symbolic link. What it creates has mode 0644, less the
/// umask.
#[inline]
pub fn open_at(directory: BorrowedFd<'_>, name: &CStr, flags: c_int) -> io::Result<OwnedFd> {
    open_with_mode(directory, name, flags | libc::O_NOFOLLOW, 0o644)
}

/// openat(2) of a file that is not there yet, for writing, with `mode` less the umask.
#[inline]
pub fn create_at(directory: BorrowedFd<'_>, name: &CStr, mode: u32) -> io::Result<OwnedFd> {
    open_with_mode(directory, name, libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY, mode)
}

#[inline]
fn open_with_mode(
    directory: BorrowedFd<'_>,
    name: &CStr,
    flags: c_int,
    mode: libc::c_uint,
) -> io::Result<OwnedFd> {
    let flags = flags | libc::O_CLOEXEC;
    // SAFETY: both arguments are borrowed for the whole call, and the name ends in NUL.
    let fd =
        retried(|| unsafe { libc::openat(directory.as_raw_fd(), name.as_ptr(), flags, mode) })?;
    // SAFETY: the kernel has just made this descriptor, so nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// write(2): how much of `bytes` was taken.
#[inline]
pub fn write(file: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: the pointer is valid for reads of the length, which is that of the slice.
    retried(|| unsafe { libc::write(file.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) as i64 })
        .map(|taken| taken as usize)
}

/// write(2) until all of `bytes` is taken.
#[inline]
pub fn write_all(file: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match write(file, bytes)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            taken => bytes = &bytes[taken..],
        }
    }
    Ok(())
}

/// read(2): how much of `buffer` was filled; 0 at the end of the file.
#[inline]
pub fn read(file: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    let (start, len) = (buffer.as_mut_ptr().cast(), buffer.len());
    // SAFETY: the pointer is valid for writes of the length, and nobody else sees the buffer.
    retried(|| unsafe { libc::read(file.as_raw_fd(), start, len) as i64 }).map(|got| got as usize)
}

/// close(2) with its error, which dropping the descriptor would swallow: some file systems say
/// only here that a write failed.
#[inline]
pub fn close(file: OwnedFd) -> io::Result<()> {
    // SAFETY: the descriptor was owned and is given up here. It is gone whatever the answer is
    // (on Linux even after EINTR), so the call is made once.
    match unsafe { libc::close(file.into_raw_fd()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// fsync(2).
#[inline]
pub fn fsync(file: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the descriptor is borrowed for the whole call.
    retried(|| unsafe { libc::fsync(file.as_raw_fd()) }).map(drop)
}

/// syncfs(2) of the file system that `file` is on.
pub fn sync_fs(file: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the descriptor is borrowed for the whole call.
    retried(|| unsafe { libc::syncfs(file.as_raw_fd()) }).map(drop)
}

/// fstatat(2): the size in bytes. A symbolic link is not followed.
#[inline]
pub fn size_at(directory: BorrowedFd<'_>, name: &CStr) -> io::Result<u64> {
    let (fd, flags) = (directory.as_raw_fd(), libc::AT_SYMLINK_NOFOLLOW);
    let mut stat = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the name ends in NUL, and the kernel writes one stat where there is room for one.
    retried(|| unsafe { libc::fstatat(fd, name.as_ptr(), stat.as_mut_ptr(), flags) })?;
    // SAFETY: the call succeeded, so that it has filled the whole of it.
    Ok(unsafe { stat.assume_init() }.st_size as u64)
}

/// renameat(2) within one directory.
#[inline]
pub fn rename_at(directory: BorrowedFd<'_>, from: &CStr, to: &CStr) -> io::Result<()> {
    let fd = directory.as_raw_fd();
    // SAFETY: the descriptor and both names are borrowed for the whole call; the names end in NUL.
    retried(|| unsafe { libc::renameat(fd, from.as_ptr(), fd, to.as_ptr()) }).map(drop)
}

/// unlinkat(2) of a file.
#[inline]
pub fn unlink_at(directory: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    // SAFETY: both arguments are borrowed for the whole call, and the name ends in NUL.
    retried(|| unsafe { libc::unlinkat(directory.as_raw_fd(), name.as_ptr(), 0) }).map(drop)
}

/// unlinkat(2) of an empty directory.
pub fn remove_directory_at(directory: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    let (fd, flags) = (directory.as_raw_fd(), libc::AT_REMOVEDIR);
    // SAFETY: both arguments are borrowed for the whole call, and the name ends in NUL.
    retried(|| unsafe { libc::unlinkat(fd, name.as_ptr(), flags) }).map(drop)
}

/// mkdirat(2) with mode 0755, less the umask.
pub fn make_directory_at(directory: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    // SAFETY: both arguments are borrowed for the whole call, and the name ends in NUL.
    retried(|| unsafe { libc::mkdirat(directory.as_raw_fd(), name.as_ptr(), 0o755) }).map(drop)
}

/// fchmodat(2) of a file.
#[inline]
pub fn chmod_at(directory: BorrowedFd<'_>, name: &CStr, mode: libc::mode_t) -> io::Result<()> {
    // SAFETY: both arguments are borrowed for the whole call, and the name ends in NUL.
    retried(|| unsafe { libc::fchmodat(directory.as_raw_fd(), name.as_ptr(), mode, 0) }).map(drop)
}

/// fchownat(2). A symbolic link is not followed.
#[inline]
pub fn chown_at(
    directory: BorrowedFd<'_>,
    name: &CStr,
    (user, group): (libc::uid_t, libc::gid_t),
) -> io::Result<()> {
    let (fd, flags) = (directory.as_raw_fd(), libc::AT_SYMLINK_NOFOLLOW);
    // SAFETY: the descriptor and the name are borrowed for the whole call; the name ends in NUL.
    retried(|| unsafe { libc::fchownat(fd, name.as_ptr(), user, group, flags) }).map(drop)
}

/// utimensat(2): both times, in seconds since 1970. A symbolic link is not followed.
#[inline]
pub fn set_times_at(directory: BorrowedFd<'_>, name: &CStr, time_s: i64) -> io::Result<()> {
    let (fd, flags) = (directory.as_raw_fd(), libc::AT_SYMLINK_NOFOLLOW);
    let times = [libc::timespec { tv_sec: time_s, tv_nsec: 0 }; 2];
    // SAFETY: the name ends in NUL, and the kernel reads two timespecs where there are two.
    retried(|| unsafe { libc::utimensat(fd, name.as_ptr(), times.as_ptr(), flags) }).map(drop)
}

/// lsetxattr(2): makes or replaces one attribute. There is no call by directory before Linux 6.13.
#[inline]
pub fn set_attribute(path: &CStr, name: &CStr, value: &[u8]) -> io::Result<()> {
    let (start, len) = (value.as_ptr().cast(), value.len());
    // SAFETY: path and name end in NUL, and the value is valid for reads of its length.
    retried(|| unsafe { libc::lsetxattr(path.as_ptr(), name.as_ptr(), start, len, 0) }).map(drop)
}

/// The monotonic clock in nanoseconds.
#[inline]
pub fn monotonic_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec where there is one. The call can't fail: every Linux
    // has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
