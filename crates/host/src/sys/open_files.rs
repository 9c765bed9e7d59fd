//! What a process has open, and what it opens without looking into it.

use std::ffi::CString;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use libc::c_int;

/// Closes all that this process has open besides its standard files, those of `kept`, and pipes and
/// sockets of our own: the standard library learns of a failure by one. Files that our own starter
/// left open would go on to the next program. For use after a fork: it allocates no memory.
pub(super) fn close_files(kept: [c_int; 3]) -> io::Result<()> {
    #[repr(align(8))]
    struct Entries([u8; 2048]);
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
    // SAFETY: the path ends in NUL.
    let folder = unsafe { libc::open(c"/proc/self/fd".as_ptr(), flags) };
    if folder < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut entries = Entries([0; 2048]);
    loop {
        let (room, size) = (entries.0.as_mut_ptr(), entries.0.len());
        // SAFETY: there is room for so many bytes.
        let bytes = unsafe { libc::syscall(libc::SYS_getdents64, folder, room, size) };
        let Ok(bytes @ 1..) = usize::try_from(bytes) else { break };
        // struct linux_dirent64 (getdents(2)): its length is after 16 bytes, its name after 19.
        let mut rest = &entries.0[..bytes];
        while !rest.is_empty() {
            let length = usize::from(u16::from_ne_bytes([rest[16], rest[17]]));
            let digits = rest[19..length].iter().take_while(|byte| byte.is_ascii_digit());
            let number = digits.fold(0, |sum, digit| sum * 10 + c_int::from(digit - b'0'));
            if number > 2 && number != folder && !kept.contains(&number) && !is_pipe_of_ours(number)
            {
                // SAFETY: the forked process runs nothing more that uses the descriptor.
                unsafe { libc::close(number) };
            }
            rest = &rest[length..];
        }
    }
    // SAFETY: the descriptor is ours, and not used after this.
    match unsafe { libc::close(folder) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Has `command` start with nothing open but its standard files.
pub fn start_with_nothing_open(command: &mut Command) {
    // SAFETY: the closure only makes system calls that are safe after a fork; it allocates nothing.
    unsafe { command.pre_exec(|| close_files([-1; 3])) };
}

/// Numbers of open files that are tried one by one, where the kernel can't be told all at once.
const TRIED_MAX: c_int = 1 << 16;

/// Has all that this thread has open besides its standard files closed where it starts a program
/// (close_range(2), of Linux 5.11). For a thread whose open files are its own.
pub(super) fn close_as_programs_start() -> io::Result<()> {
    let (first, last, how) = (3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
    // SAFETY: the call takes three numbers.
    match unsafe { libc::syscall(libc::SYS_close_range, first, last, how) } {
        0 => return Ok(()),
        // EPERM is what old filters of containers answer to calls that they don't know.
        _ if [libc::ENOSYS, libc::EINVAL, libc::EPERM].into_iter().any(last_is) => {}
        _ => return Err(io::Error::last_os_error()),
    }
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes one limit.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // There may be no `/proc` that tells which are open. Containers allow a thousand million.
    for number in 3..c_int::try_from(limit.rlim_cur).unwrap_or(TRIED_MAX).min(TRIED_MAX) {
        // SAFETY: fcntl with these arguments touches no memory.
        unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    Ok(())
}

fn last_is(error: c_int) -> bool {
    io::Error::last_os_error().raw_os_error() == Some(error)
}

/// A pipe or a socket that ends with this program, from which no way leads to other files.
fn is_pipe_of_ours(fd: c_int) -> bool {
    let mut status = std::mem::MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: the call takes two numbers.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFD) };
    // SAFETY: there is room for the one stat that is written.
    if flags != libc::FD_CLOEXEC || unsafe { libc::fstat(fd, status.as_mut_ptr()) } != 0 {
        return false;
    }
    // SAFETY: the call has succeeded, and all zeros were a value before it.
    let kind = unsafe { status.assume_init() }.st_mode & libc::S_IFMT;
    kind == libc::S_IFIFO || kind == libc::S_IFSOCK
}

/// Opens a directory to be looked at, not into (open(2), O_PATH).
pub fn open_place(path: &Path) -> io::Result<OwnedFd> {
    open_path(path, libc::O_DIRECTORY)
}

/// [`open_place`] of what may be no directory.
pub(super) fn open_any_place(path: &Path) -> io::Result<OwnedFd> {
    open_path(path, 0)
}

fn open_path(path: &Path, flags: c_int) -> io::Result<OwnedFd> {
    let path = CString::new(path.as_os_str().as_bytes()).map_err(io::Error::other)?;
    let flags = flags | libc::O_PATH | libc::O_CLOEXEC;
    // SAFETY: the path ends in NUL.
    let fd = unsafe { libc::open(path.as_ptr(), flags) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor, so nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::users;

    #[test]
    fn what_was_left_open_is_not_passed_on() {
        let asks = || {
            let mut command = users(&["sh", "-c", "(: >&9) 2>/dev/null"].map(String::from));
            // SAFETY: dup2(2) takes two numbers, and may be called after a fork.
            unsafe {
                command.pre_exec(|| match libc::dup2(1, 9) {
                    9 => Ok(()),
                    _ => Err(io::Error::last_os_error()),
                });
            }
            command
        };
        assert!(asks().status().unwrap().success());
        let mut command = asks();
        start_with_nothing_open(&mut command);
        assert!(!command.status().unwrap().success());
    }
}
