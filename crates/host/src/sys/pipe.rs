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

/// Waits until one of them has something to read, and for so long at most (poll(2)).
pub fn wait_for_any(files: &[impl AsFd], most_ms: u16) -> io::Result<()> {
    let of = |file: &_| libc::pollfd { fd: fd_of(file), events: libc::POLLIN, revents: 0 };
    let mut all: Vec<libc::pollfd> = files.iter().map(of).collect();
    let count = all.len() as libc::nfds_t;
    // SAFETY: the kernel reads and writes as many as there are.
    retried(|| unsafe { libc::poll(all.as_mut_ptr(), count, most_ms.into()) }).map(drop)
}

fn fd_of(file: &impl AsFd) -> i32 {
    file.as_fd().as_raw_fd()
}

/// Waits until there is something to read, or no writer is left (poll(2)).
pub fn wait_readable(file: impl AsFd) -> io::Result<()> {
    let mut one = libc::pollfd { fd: file.as_fd().as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: the kernel reads and writes the one pollfd that there is.
    retried(|| unsafe { libc::poll(&mut one, 1, -1) }).map(drop)
}
