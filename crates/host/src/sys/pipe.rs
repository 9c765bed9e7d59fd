//! Pipes: read without waiting, and waited for.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use super::file::retried;

/// Reading from it gives an error, [`io::ErrorKind::WouldBlock`], where it would wait (fcntl(2)).
pub fn never_wait(file: impl AsFd) -> io::Result<()> {
    let fd = file.as_fd().as_raw_fd();
    // SAFETY: fcntl with these commands takes and gives numbers.
    let flags = retried(|| unsafe { libc::fcntl(fd, libc::F_GETFL) })?;
    // SAFETY: as before.
    retried(|| unsafe { libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK) }).map(drop)
}

/// Waits until there is something to read, or nobody is left who would write (poll(2)).
pub fn wait_readable(file: impl AsFd) -> io::Result<()> {
    let mut one = libc::pollfd { fd: file.as_fd().as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: the kernel reads and writes the one pollfd that there is.
    retried(|| unsafe { libc::poll(&mut one, 1, -1) }).map(drop)
}
