//! A file system that is mounted nowhere: reached by a descriptor, and gone with it.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

use super::file::retried;

// include/uapi/linux/mount.h.
const FSOPEN_CLOEXEC: libc::c_uint = 1;
const FSCONFIG_CMD_CREATE: libc::c_uint = 6;
const FSMOUNT_CLOEXEC: libc::c_uint = 1;

fn owned(descriptor: libc::c_long) -> OwnedFd {
    // SAFETY: the kernel has just made this descriptor, so nobody else owns it; it is an int.
    unsafe { OwnedFd::from_raw_fd(descriptor as i32) }
}

/// The root of a file system of the kernel's own, `kind`, without a mount point: fsopen(2),
/// fsconfig(2) and fsmount(2), since Linux 5.2.
pub fn detached_mount(kind: &CStr) -> io::Result<OwnedFd> {
    // SAFETY: the name ends in NUL and is borrowed for the whole call.
    let opened =
        retried(|| unsafe { libc::syscall(libc::SYS_fsopen, kind.as_ptr(), FSOPEN_CLOEXEC) })?;
    let context = owned(opened);
    let (fd, none) = (context.as_raw_fd(), ptr::null::<libc::c_char>());
    // SAFETY: this command takes neither key nor value.
    retried(|| unsafe {
        libc::syscall(libc::SYS_fsconfig, fd, FSCONFIG_CMD_CREATE, none, none, 0)
    })?;
    // SAFETY: the arguments are numbers.
    let mounted = retried(|| unsafe { libc::syscall(libc::SYS_fsmount, fd, FSMOUNT_CLOEXEC, 0) })?;
    Ok(owned(mounted))
}
