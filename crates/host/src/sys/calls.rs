//! The calls that an application makes on its files and that a replay makes again.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use libc::c_int;

use super::file::retried;

/// openat(2) with `flags` and, for what it creates, `mode` less the umask; close-on-exec.
#[inline]
pub fn open_as(
    directory: BorrowedFd<'_>,
    name: &CStr,
    flags: c_int,
    mode: u32,
) -> io::Result<OwnedFd> {
    let (fd, flags) = (directory.as_raw_fd(), flags | libc::O_CLOEXEC);
    // SAFETY: both arguments are borrowed for the whole call, and the name ends in NUL.
    let fd = retried(|| unsafe { libc::openat(fd, name.as_ptr(), flags, mode) })?;
    // SAFETY: the kernel has just made this descriptor, so nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// fcntl(2), F_SETFL.
#[inline]
pub fn set_status_flags(file: BorrowedFd<'_>, flags: c_int) -> io::Result<()> {
    // SAFETY: fcntl with this command takes a number, and the descriptor is borrowed.
    retried(|| unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags) }).map(drop)
}

/// pread(2): how much of `buffer` was filled.
#[inline]
pub fn read_at(file: BorrowedFd<'_>, buffer: &mut [u8], place: u64) -> io::Result<usize> {
    let (fd, start, len) = (file.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len());
    let place = place.cast_signed();
    // SAFETY: the pointer is valid for writes of the length, and nobody else sees the buffer.
    retried(|| unsafe { libc::pread(fd, start, len, place) as i64 }).map(|got| got as usize)
}

/// pwrite(2): how much of `bytes` was taken.
#[inline]
pub fn write_at(file: BorrowedFd<'_>, bytes: &[u8], place: u64) -> io::Result<usize> {
    let (fd, start, len) = (file.as_raw_fd(), bytes.as_ptr().cast(), bytes.len());
    let place = place.cast_signed();
    // SAFETY: the pointer is valid for reads of the length, which is that of the slice.
    retried(|| unsafe { libc::pwrite(fd, start, len, place) as i64 }).map(|taken| taken as usize)
}

/// fdatasync(2).
#[inline]
pub fn data_sync(file: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the descriptor is borrowed for the whole call.
    retried(|| unsafe { libc::fdatasync(file.as_raw_fd()) }).map(drop)
}

/// sync_file_range(2).
#[inline]
pub fn sync_range(file: BorrowedFd<'_>, place: u64, bytes: u64, flags: c_int) -> io::Result<()> {
    let (fd, place, bytes) = (file.as_raw_fd(), place.cast_signed(), bytes.cast_signed());
    let flags = flags.cast_unsigned();
    // SAFETY: the descriptor is borrowed for the whole call.
    retried(|| unsafe { libc::sync_file_range(fd, place, bytes, flags) }).map(drop)
}

/// fallocate(2).
#[inline]
pub fn allocate_range(
    file: BorrowedFd<'_>,
    flags: c_int,
    place: u64,
    bytes: u64,
) -> io::Result<()> {
    let (fd, place, bytes) = (file.as_raw_fd(), place.cast_signed(), bytes.cast_signed());
    // SAFETY: the descriptor is borrowed for the whole call.
    retried(|| unsafe { libc::fallocate(fd, flags, place, bytes) }).map(drop)
}

/// posix_fadvise(2), which gives its error as its result.
#[inline]
pub fn advise(file: BorrowedFd<'_>, place: u64, bytes: u64, advice: c_int) -> io::Result<()> {
    let (fd, place, bytes) = (file.as_raw_fd(), place.cast_signed(), bytes.cast_signed());
    // SAFETY: the descriptor is borrowed for the whole call.
    match unsafe { libc::posix_fadvise(fd, place, bytes, advice) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// renameat2(2), which not every C library has.
#[inline]
pub fn rename_as(
    (from, old): (BorrowedFd<'_>, &CStr),
    (to, new): (BorrowedFd<'_>, &CStr),
    flags: c_int,
) -> io::Result<()> {
    let (from, to, flags) = (from.as_raw_fd(), to.as_raw_fd(), flags.cast_unsigned());
    // SAFETY: descriptors and names are borrowed for the whole call; the names end in NUL.
    let call = || unsafe {
        libc::syscall(libc::SYS_renameat2, from, old.as_ptr(), to, new.as_ptr(), flags)
    };
    retried(call).map(drop)
}

/// mkdirat(2) with `mode` less the umask.
#[inline]
pub fn make_directory_as(directory: BorrowedFd<'_>, name: &CStr, mode: u32) -> io::Result<()> {
    // SAFETY: both arguments are borrowed for the whole call, and the name ends in NUL.
    retried(|| unsafe { libc::mkdirat(directory.as_raw_fd(), name.as_ptr(), mode) }).map(drop)
}

/// faccessat(2): may this process's real user do what `mode` says?
#[inline]
pub fn access_at(directory: BorrowedFd<'_>, name: &CStr, mode: c_int) -> io::Result<()> {
    // SAFETY: both arguments are borrowed for the whole call, and the name ends in NUL.
    retried(|| unsafe { libc::faccessat(directory.as_raw_fd(), name.as_ptr(), mode, 0) }).map(drop)
}

/// statx(2) of what a name or a link leads to: only that it is there.
#[inline]
pub fn look_at(directory: BorrowedFd<'_>, name: &CStr, follow: bool) -> io::Result<()> {
    let flags = if follow { 0 } else { libc::AT_SYMLINK_NOFOLLOW };
    let mut stat = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the name ends in NUL, and the kernel writes one stat where there is room for one.
    retried(|| unsafe {
        libc::fstatat(directory.as_raw_fd(), name.as_ptr(), stat.as_mut_ptr(), flags)
    })
    .map(drop)
}

/// lseek(2) to a place in bytes: the place.
#[inline]
pub fn seek_from_start(file: BorrowedFd<'_>, place: u64) -> io::Result<u64> {
    let place = place.cast_signed();
    // SAFETY: the descriptor is borrowed for the whole call.
    retried(|| unsafe { libc::lseek(file.as_raw_fd(), place, libc::SEEK_SET) })
        .map(i64::cast_unsigned)
}

/// truncate(2).
#[inline]
pub fn truncate_path(path: &CStr, bytes: u64) -> io::Result<()> {
    // SAFETY: the path is borrowed for the whole call and ends in NUL.
    retried(|| unsafe { libc::truncate(path.as_ptr(), bytes.cast_signed()) }).map(drop)
}

/// What an extended attribute is of.
#[derive(Clone, Copy, Debug)]
pub enum Attributed<'a> {
    /// What a path leads to: there is no call by directory before Linux 6.13.
    Path(&'a CStr),
    /// An open file.
    File(BorrowedFd<'a>),
}

/// setxattr(2) or fsetxattr(2).
#[inline]
pub fn give_attribute(on: Attributed<'_>, name: &CStr, value: &[u8]) -> io::Result<()> {
    let (start, len, name) = (value.as_ptr().cast(), value.len(), name.as_ptr());
    // SAFETY: path and name end in NUL, and the value is valid for reads of its length.
    retried(|| unsafe {
        match on {
            Attributed::Path(path) => libc::setxattr(path.as_ptr(), name, start, len, 0),
            Attributed::File(file) => libc::fsetxattr(file.as_raw_fd(), name, start, len, 0),
        }
    })
    .map(drop)
}

/// getxattr(2) or fgetxattr(2): the value's length.
#[inline]
pub fn attribute(on: Attributed<'_>, name: &CStr, buffer: &mut [u8]) -> io::Result<usize> {
    let (start, len, name) = (buffer.as_mut_ptr().cast(), buffer.len(), name.as_ptr());
    // SAFETY: path and name end in NUL, and the buffer is valid for writes of its length.
    retried(|| unsafe {
        match on {
            Attributed::Path(path) => libc::getxattr(path.as_ptr(), name, start, len) as i64,
            Attributed::File(file) => libc::fgetxattr(file.as_raw_fd(), name, start, len) as i64,
        }
    })
    .map(|got| got as usize)
}

/// listxattr(2) or flistxattr(2): how long all names are.
#[inline]
pub fn attributes(on: Attributed<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    let (start, len) = (buffer.as_mut_ptr().cast(), buffer.len());
    // SAFETY: the path ends in NUL, and the buffer is valid for writes of its length.
    retried(|| unsafe {
        match on {
            Attributed::Path(path) => libc::listxattr(path.as_ptr(), start, len) as i64,
            Attributed::File(file) => libc::flistxattr(file.as_raw_fd(), start, len) as i64,
        }
    })
    .map(|got| got as usize)
}

/// removexattr(2) or fremovexattr(2).
#[inline]
pub fn remove_attribute(on: Attributed<'_>, name: &CStr) -> io::Result<()> {
    // SAFETY: path and name end in NUL.
    retried(|| unsafe {
        match on {
            Attributed::Path(path) => libc::removexattr(path.as_ptr(), name.as_ptr()),
            Attributed::File(file) => libc::fremovexattr(file.as_raw_fd(), name.as_ptr()),
        }
    })
    .map(drop)
}

fn pointer(place: &mut Option<i64>) -> *mut i64 {
    place.as_mut().map_or(std::ptr::null_mut(), |place| place)
}

/// copy_file_range(2) at the places, or where there are none at the files' own offsets.
#[inline]
pub fn copy_range_at(
    (from, from_place): (BorrowedFd<'_>, Option<u64>),
    (to, to_place): (BorrowedFd<'_>, Option<u64>),
    bytes: usize,
) -> io::Result<usize> {
    let mut places = [from_place, to_place].map(|place| place.map(u64::cast_signed));
    let [from_place, to_place] = &mut places;
    let (from_place, to_place) = (pointer(from_place), pointer(to_place));
    let (from, to) = (from.as_raw_fd(), to.as_raw_fd());
    // SAFETY: each pointer is null or leads to a number of ours that outlives the call.
    retried(|| unsafe { libc::copy_file_range(from, from_place, to, to_place, bytes, 0) as i64 })
        .map(|copied| copied as usize)
}

/// sendfile(2) from a place, or from the file's own offset.
#[inline]
pub fn send_file(
    from: BorrowedFd<'_>,
    place: Option<u64>,
    to: BorrowedFd<'_>,
    bytes: usize,
) -> io::Result<usize> {
    let mut place = place.map(u64::cast_signed);
    let (from, to, place) = (from.as_raw_fd(), to.as_raw_fd(), pointer(&mut place));
    // SAFETY: the pointer is null or leads to a number of ours that outlives the call.
    retried(|| unsafe { libc::sendfile(to, from, place, bytes) as i64 }).map(|sent| sent as usize)
}
