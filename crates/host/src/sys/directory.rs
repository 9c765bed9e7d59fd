//! Directories and what lies in them: reading them without the C library's buffer, and all that a
//! faithful copy sets.

use std::ffi::CStr;
use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};

use libc::c_int;

use super::file::retried;

/// FICLONE: ioctl_ficlonerange(2).
const FICLONE: libc::Ioctl = 0x4004_9409;

/// Where things lie in a `linux_dirent64` (getdents(2)): inode, offset, length, type, name.
const RECORD_LENGTH_AT: usize = 16;
const RECORD_TYPE_AT: usize = 18;
const RECORD_NAME_AT: usize = 19;

/// What an entry of a directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A device, a pipe or a socket.
    Special,
    /// The file system does not say in the directory: ask for the status.
    Unknown,
}

impl Kind {
    fn of_record(kind: u8) -> Kind {
        match kind {
            libc::DT_REG => Kind::File,
            libc::DT_DIR => Kind::Directory,
            libc::DT_LNK => Kind::Link,
            libc::DT_UNKNOWN => Kind::Unknown,
            _ => Kind::Special,
        }
    }

    fn of_mode(mode: u32) -> Kind {
        match mode & libc::S_IFMT {
            libc::S_IFREG => Kind::File,
            libc::S_IFDIR => Kind::Directory,
            libc::S_IFLNK => Kind::Link,
            _ => Kind::Special,
        }
    }
}

/// One entry of a directory.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// Its name.
    pub name: &'a CStr,
    /// Its inode, by which file systems place its metadata.
    pub inode: u64,
    /// What it is.
    pub kind: Kind,
}

/// getdents64(2): the entries that fit into `buffer`; none at the end of the directory.
#[inline]
pub fn read_directory<'b>(
    directory: BorrowedFd<'_>,
    buffer: &'b mut [u8],
) -> io::Result<Entries<'b>> {
    let (fd, start, len) = (directory.as_raw_fd(), buffer.as_mut_ptr(), buffer.len());
    // SAFETY: the pointer is valid for writes of the length, and nobody else sees the buffer.
    let got = retried(|| unsafe { libc::syscall(libc::SYS_getdents64, fd, start, len) })?;
    Ok(Entries { rest: &buffer[..got as usize], read_bytes: got as usize })
}

/// Entries as the kernel wrote them, without `.` and `..`.
#[derive(Clone, Copy, Debug)]
pub struct Entries<'b> {
    rest: &'b [u8],
    read_bytes: usize,
}

impl Entries<'_> {
    /// The directory has been read to its end.
    pub fn is_end(&self) -> bool {
        self.read_bytes == 0
    }
}

impl<'b> Iterator for Entries<'b> {
    type Item = Entry<'b>;

    #[inline]
    fn next(&mut self) -> Option<Entry<'b>> {
        loop {
            let length = self.rest.get(RECORD_LENGTH_AT..RECORD_LENGTH_AT + 2)?;
            let length = usize::from(u16::from_ne_bytes(length.try_into().ok()?));
            let (record, rest) = self.rest.split_at_checked(length)?;
            self.rest = rest;
            let name = CStr::from_bytes_until_nul(record.get(RECORD_NAME_AT..)?).ok()?;
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let inode = u64::from_ne_bytes(record[..8].try_into().ok()?);
            return Some(Entry { name, inode, kind: Kind::of_record(record[RECORD_TYPE_AT]) });
        }
    }
}

/// What is known of a file besides its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Status {
    /// What it is; never unknown.
    pub kind: Kind,
    /// Type and permissions, as `st_mode`.
    pub mode: u32,
    pub owner: (u32, u32),
    pub size_bytes: u64,
    pub allocated_bytes: u64,
    /// How many names it has.
    pub links: u64,
    /// Which it is: the device it is on, and its inode there.
    pub identity: (u64, u64),
    /// Which device it stands for, if it is one.
    pub device: u64,
    /// Last access and last change of content: seconds since 1970, and nanoseconds.
    pub times: [(i64, i64); 2],
}

impl Status {
    #[allow(clippy::unnecessary_cast, reason = "nlink_t has 32 bits on arm64")]
    fn of(stat: &libc::stat) -> Status {
        Status {
            kind: Kind::of_mode(stat.st_mode),
            mode: stat.st_mode,
            owner: (stat.st_uid, stat.st_gid),
            size_bytes: stat.st_size as u64,
            allocated_bytes: stat.st_blocks as u64 * 512,
            links: stat.st_nlink as u64,
            identity: (stat.st_dev, stat.st_ino),
            device: stat.st_rdev,
            times: [(stat.st_atime, stat.st_atime_nsec), (stat.st_mtime, stat.st_mtime_nsec)],
        }
    }
}

/// fstatat(2). A symbolic link is not followed.
#[inline]
pub fn status_at(directory: BorrowedFd<'_>, name: &CStr) -> io::Result<Status> {
    let (fd, flags) = (directory.as_raw_fd(), libc::AT_SYMLINK_NOFOLLOW);
    let mut stat = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the name ends in NUL, and the kernel writes one stat where there is room for one.
    retried(|| unsafe { libc::fstatat(fd, name.as_ptr(), stat.as_mut_ptr(), flags) })?;
    // SAFETY: the call succeeded, so that it has filled the whole of it.
    Ok(Status::of(unsafe { stat.assume_init_ref() }))
}

/// fstat(2).
#[inline]
pub fn status(file: BorrowedFd<'_>) -> io::Result<Status> {
    let mut stat = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the kernel writes one stat where there is room for one.
    retried(|| unsafe { libc::fstat(file.as_raw_fd(), stat.as_mut_ptr()) })?;
    // SAFETY: the call succeeded, so that it has filled the whole of it.
    Ok(Status::of(unsafe { stat.assume_init_ref() }))
}

/// linkat(2): another name for a file. A symbolic link is not followed.
pub fn link_at(
    from: BorrowedFd<'_>,
    old: &CStr,
    directory: BorrowedFd<'_>,
    new: &CStr,
) -> io::Result<()> {
    let (from, to) = (from.as_raw_fd(), directory.as_raw_fd());
    // SAFETY: descriptors and names are borrowed for the whole call; the names end in NUL.
    retried(|| unsafe { libc::linkat(from, old.as_ptr(), to, new.as_ptr(), 0) }).map(drop)
}

/// linkat(2) of an open file that may have no name yet: AT_EMPTY_PATH, which takes
/// CAP_DAC_READ_SEARCH before Linux 6.10; without, by its descriptor's name in /proc.
pub fn link_open(file: BorrowedFd<'_>, at: BorrowedFd<'_>, new: &CStr) -> io::Result<()> {
    let (from, to) = (file.as_raw_fd(), at.as_raw_fd());
    // SAFETY: descriptors and names are borrowed for the whole call; the names end in NUL.
    let linked = retried(|| unsafe {
        libc::linkat(from, c"".as_ptr(), to, new.as_ptr(), libc::AT_EMPTY_PATH)
    });
    let Err(error) = linked else { return Ok(()) };
    if error.raw_os_error() != Some(libc::ENOENT) {
        return Err(error);
    }
    let mut path = [0; 32];
    write!(&mut path[..], "/proc/self/fd/{from}")?;
    let path = CStr::from_bytes_until_nul(&path).map_err(io::Error::other)?;
    // SAFETY: as before.
    retried(|| unsafe {
        libc::linkat(libc::AT_FDCWD, path.as_ptr(), to, new.as_ptr(), libc::AT_SYMLINK_FOLLOW)
    })
    .map(drop)
}

/// symlinkat(2).
pub fn symbolic_link_at(target: &CStr, directory: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    let fd = directory.as_raw_fd();
    // SAFETY: the descriptor and both names are borrowed for the whole call; the names end in NUL.
    retried(|| unsafe { libc::symlinkat(target.as_ptr(), fd, name.as_ptr()) }).map(drop)
}

/// readlinkat(2): how many bytes of `buffer` the target takes, without a NUL.
pub fn read_link_at(
    directory: BorrowedFd<'_>,
    name: &CStr,
    buffer: &mut [u8],
) -> io::Result<usize> {
    let (fd, start, len) = (directory.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len());
    // SAFETY: the name ends in NUL, and the pointer is valid for writes of the length.
    retried(|| unsafe { libc::readlinkat(fd, name.as_ptr(), start, len) as i64 })
        .map(|got| got as usize)
}

/// mknodat(2): a device, a pipe or a socket.
pub fn make_node_at(
    directory: BorrowedFd<'_>,
    name: &CStr,
    mode: u32,
    device: u64,
) -> io::Result<()> {
    let fd = directory.as_raw_fd();
    // SAFETY: both arguments are borrowed for the whole call, and the name ends in NUL.
    retried(|| unsafe { libc::mknodat(fd, name.as_ptr(), mode, device) }).map(drop)
}

/// mknodat(2) of a block device that only root may open, by its two numbers.
pub fn make_disk_node_at(
    directory: BorrowedFd<'_>,
    name: &CStr,
    [major, minor]: [u32; 2],
) -> io::Result<()> {
    make_node_at(directory, name, libc::S_IFBLK | 0o600, libc::makedev(major, minor))
}

/// fchmod(2).
#[inline]
pub fn change_mode(file: BorrowedFd<'_>, mode: u32) -> io::Result<()> {
    // SAFETY: the descriptor is borrowed for the whole call.
    retried(|| unsafe { libc::fchmod(file.as_raw_fd(), mode & 0o7777) }).map(drop)
}

/// fchown(2).
#[inline]
pub fn change_owner(file: BorrowedFd<'_>, (user, group): (u32, u32)) -> io::Result<()> {
    // SAFETY: the descriptor is borrowed for the whole call.
    retried(|| unsafe { libc::fchown(file.as_raw_fd(), user, group) }).map(drop)
}

fn timespecs(times: [(i64, i64); 2]) -> [libc::timespec; 2] {
    times.map(|(tv_sec, tv_nsec)| libc::timespec { tv_sec, tv_nsec })
}

/// futimens(3): last access and last change, to the nanosecond.
#[inline]
pub fn change_times(file: BorrowedFd<'_>, times: [(i64, i64); 2]) -> io::Result<()> {
    let times = timespecs(times);
    // SAFETY: the kernel reads two timespecs where there are two.
    retried(|| unsafe { libc::futimens(file.as_raw_fd(), times.as_ptr()) }).map(drop)
}

/// utimensat(2), as [`change_times`]. A symbolic link is not followed.
pub fn change_times_at(
    directory: BorrowedFd<'_>,
    name: &CStr,
    times: [(i64, i64); 2],
) -> io::Result<()> {
    let (fd, flags) = (directory.as_raw_fd(), libc::AT_SYMLINK_NOFOLLOW);
    let times = timespecs(times);
    // SAFETY: the name ends in NUL, and the kernel reads two timespecs where there are two.
    retried(|| unsafe { libc::utimensat(fd, name.as_ptr(), times.as_ptr(), flags) }).map(drop)
}

/// ftruncate(2).
pub fn truncate(file: BorrowedFd<'_>, size_bytes: u64) -> io::Result<()> {
    let size = size_bytes.cast_signed();
    // SAFETY: the descriptor is borrowed for the whole call.
    retried(|| unsafe { libc::ftruncate(file.as_raw_fd(), size) }).map(drop)
}

/// FICLONE: `to` shares all of `from`'s blocks from now on.
pub fn clone_file(from: BorrowedFd<'_>, to: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: both descriptors are borrowed for the whole call, which takes no pointer.
    retried(|| unsafe { libc::ioctl(to.as_raw_fd(), FICLONE, from.as_raw_fd()) }).map(drop)
}

/// copy_file_range(2) at both files' offsets: how much was copied, 0 at the end of `from`.
pub fn copy_range(from: BorrowedFd<'_>, to: BorrowedFd<'_>, bytes: usize) -> io::Result<usize> {
    let (from, to) = (from.as_raw_fd(), to.as_raw_fd());
    let at_position = || std::ptr::null_mut();
    // SAFETY: without places the kernel uses the descriptors' own, and touches no memory of ours.
    retried(|| unsafe {
        libc::copy_file_range(from, at_position(), to, at_position(), bytes, 0) as i64
    })
    .map(|copied| copied as usize)
}

/// Where the next run of data begins and ends at or after `start`; `None` if only a hole is left.
/// Moves the offset of `file` (lseek(2), SEEK_DATA).
pub fn next_data(file: BorrowedFd<'_>, start: u64) -> io::Result<Option<(u64, u64)>> {
    let begin = match seek(file, start, libc::SEEK_DATA) {
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => return Ok(None),
        begin => begin?,
    };
    Ok(Some((begin, seek(file, begin, libc::SEEK_HOLE)?)))
}

/// lseek(2) to a place in bytes.
pub fn seek_to(file: BorrowedFd<'_>, place: u64) -> io::Result<()> {
    seek(file, place, libc::SEEK_SET).map(drop)
}

fn seek(file: BorrowedFd<'_>, place: u64, whence: c_int) -> io::Result<u64> {
    // SAFETY: the descriptor is borrowed for the whole call.
    let place = retried(|| unsafe { libc::lseek(file.as_raw_fd(), place.cast_signed(), whence) })?;
    Ok(place.cast_unsigned())
}
