//! Loop devices, and files as images.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

// The numbers and layouts of loop devices: include/uapi/linux/loop.h.
const LOOP_CLR_FD: u64 = 0x4C01;
const LOOP_GET_STATUS64: u64 = 0x4C05;
const LOOP_CONFIGURE: u64 = 0x4C0A;
const LOOP_CTL_REMOVE: u64 = 0x4C81;
const LOOP_CTL_GET_FREE: u64 = 0x4C82;
const LO_FLAGS_AUTOCLEAR: u32 = 4;
const LO_FLAGS_PARTSCAN: u32 = 8;
const LO_FLAGS_DIRECT_IO: u32 = 16;

#[repr(C)]
struct LoopInfo64 {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo64,
    reserved: [u64; 8],
}

const _: () = assert!(mem::size_of::<LoopInfo64>() == 232);
const _: () = assert!(mem::size_of::<LoopConfig>() == 304);

fn checked(result: libc::c_int) -> io::Result<u32> {
    u32::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// The number of a loop device that is free now; another process may take it first.
pub fn loop_free_number(control: &File) -> io::Result<u32> {
    // SAFETY: LOOP_CTL_GET_FREE takes no argument; the descriptor is open while `control` lives.
    checked(unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE as _) })
}

/// Removes a loop device that nobody uses.
pub fn loop_remove(control: &File, number: u32) -> io::Result<()> {
    let number = libc::c_ulong::from(number);
    // SAFETY: plain integers; the descriptor is open while `control` lives.
    checked(unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_REMOVE as _, number) })?;
    Ok(())
}

/// Puts `backing` behind the loop device. It detaches itself when its last user is gone.
/// Partitions of it go with it: without a scan the kernel would leave them upon a device that has
/// no file any more. EBUSY: another process was faster.
///
/// `block_bytes` is its smallest request; 0: the smallest with which it can do direct I/O.
pub fn loop_configure(
    device: &File,
    backing: &File,
    direct_io: bool,
    block_bytes: u32,
) -> io::Result<()> {
    // SAFETY: the structure holds integers only, for which zero is a value.
    let mut config: LoopConfig = unsafe { mem::zeroed() };
    config.fd = backing.as_raw_fd().cast_unsigned();
    config.block_size = block_bytes;
    config.info.flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_PARTSCAN;
    if direct_io {
        config.info.flags |= LO_FLAGS_DIRECT_IO;
    }
    // SAFETY: the kernel reads one `struct loop_config`, whose size is asserted above.
    checked(unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE as _, &raw const config) })?;
    Ok(())
}

/// What is behind a loop device, by numbers that no name changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopBacking {
    /// The file: the device that it is on, and its inode there.
    pub file: (u64, u64),
    /// Which block device it stands for, if it is one; else 0.
    pub device: u64,
}

/// What is behind the loop device; `None` where nothing is.
pub fn loop_backing(device: &File) -> io::Result<Option<LoopBacking>> {
    // SAFETY: the structure holds integers only, for which zero is a value.
    let mut info: LoopInfo64 = unsafe { mem::zeroed() };
    let request = LOOP_GET_STATUS64 as _;
    // SAFETY: the kernel writes one `struct loop_info64`, whose size is asserted above.
    match checked(unsafe { libc::ioctl(device.as_raw_fd(), request, &raw mut info) }) {
        Ok(_) => {
            let (file, device) = ((info.device, info.inode), info.rdevice);
            Ok(Some(LoopBacking { file, device }))
        }
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Detaches the loop device; while others have it open, the kernel does so when they are gone.
pub fn loop_clear(device: &File) -> io::Result<()> {
    // SAFETY: LOOP_CLR_FD takes no argument; the descriptor is open while `device` lives.
    checked(unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CLR_FD as _, 0) })?;
    Ok(())
}

/// The number of the block device at `path`; `None` for anything else. Uses cached attributes only:
/// asking a dead server would hang (statx(2), AT_STATX_DONT_SYNC; before Linux 4.11 it is asked:
/// glibc emulates the call there, and refuses that flag with EINVAL).
pub fn block_number(path: &Path) -> io::Result<Option<[u32; 2]>> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the structure holds integers only, for which zero is a value.
    let mut status: libc::statx = unsafe { mem::zeroed() };
    let (flags, mask) = (libc::AT_STATX_DONT_SYNC, libc::STATX_TYPE);
    // SAFETY: the path ends in a zero byte; the kernel fills one `struct statx`.
    let result =
        unsafe { libc::statx(libc::AT_FDCWD, name.as_ptr(), flags, mask, &raw mut status) };
    match checked(result) {
        Ok(_) if u32::from(status.stx_mode) & libc::S_IFMT != libc::S_IFBLK => Ok(None),
        Ok(_) => Ok(Some([status.stx_rdev_major, status.stx_rdev_minor])),
        Err(error) if [libc::ENOSYS, libc::EINVAL].map(Some).contains(&error.raw_os_error()) => {
            let data = std::fs::metadata(path)?;
            let device = data.rdev();
            let is_block = data.file_type().is_block_device();
            Ok(is_block.then(|| [libc::major(device), libc::minor(device)]))
        }
        Err(error) => Err(error),
    }
}

/// Reserves the file's blocks.
pub fn allocate(file: &File, size_bytes: u64) -> io::Result<()> {
    let size = libc::off_t::try_from(size_bytes).map_err(io::Error::other)?;
    let fd: RawFd = file.as_raw_fd();
    // SAFETY: plain integers; the descriptor is open while `file` lives.
    checked(unsafe { libc::fallocate(fd, 0, 0, size) })?;
    Ok(())
}

/// Has the file overwritten in place. Only while it is empty: see FS_NOCOW_FL in
/// ioctl_iflags(2). On file systems that can't or needn't, an error.
pub fn do_not_copy_on_write(file: &File) -> io::Result<()> {
    const FS_NOCOW_FL: libc::c_int = 0x0080_0000;
    let mut flags: libc::c_int = 0;
    let fd = file.as_raw_fd();
    // SAFETY: the kernel writes one int, in spite of the `long` in the request's name.
    checked(unsafe { libc::ioctl(fd, libc::FS_IOC_GETFLAGS as _, &raw mut flags) })?;
    flags |= FS_NOCOW_FL;
    // SAFETY: the kernel reads one int.
    checked(unsafe { libc::ioctl(fd, libc::FS_IOC_SETFLAGS as _, &raw const flags) })?;
    Ok(())
}

/// Whether the file system at `path` keeps the modes that files are given (statfs(2)): FAT and
/// exFAT show the same of all (linux/magic.h). Where it can't be told, it does.
pub fn keeps_modes(path: &Path) -> bool {
    !magic(path).is_ok_and(|magic| matches!(magic, 0x4d44 | 0x2011_bab0))
}

/// Whether what is at `path` lies in memory alone: tmpfs, ramfs (linux/magic.h). Where it can't be
/// told, it does not.
pub fn is_in_memory(path: &Path) -> bool {
    magic(path).is_ok_and(|magic| matches!(magic, 0x0102_1994 | 0x8584_58f6))
}

/// The number of the file system at `path`, which has 32 bits.
fn magic(path: &Path) -> io::Result<u32> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the structure holds integers only, for which zero is a value.
    let mut stat: libc::statfs = unsafe { mem::zeroed() };
    // SAFETY: the path ends in a zero byte; the kernel fills one `struct statfs`.
    checked(unsafe { libc::statfs(path.as_ptr(), &raw mut stat) })?;
    Ok(stat.f_type as u32)
}

/// What an unprivileged process could still write to the file system at `path`.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    Ok(room(path)?.0)
}

/// What an unprivileged process can still use of the file system at `path` (statvfs(3)): free
/// bytes, all bytes, and files that can still be made; file systems without a table of inodes don't
/// count these.
pub fn room(path: &Path) -> io::Result<(u64, u64, Option<u64>)> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the structure holds integers only, for which zero is a value.
    let mut stat: libc::statvfs = unsafe { mem::zeroed() };
    // SAFETY: the path ends in a zero byte; the kernel fills one `struct statvfs`.
    checked(unsafe { libc::statvfs(path.as_ptr(), &raw mut stat) })?;
    // A daemon may claim anything.
    let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
    let free_files = (stat.f_files > 0).then_some(stat.f_favail);
    Ok((bytes(stat.f_bavail), bytes(stat.f_blocks), free_files))
}
