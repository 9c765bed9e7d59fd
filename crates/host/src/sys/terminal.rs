//! The terminal.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Sets whether the terminal shows what is typed; returns whether it did. Ctrl-C stays a signal.
pub fn set_echo(terminal: BorrowedFd, on: bool) -> io::Result<bool> {
    let fd = terminal.as_raw_fd();
    let mut modes = std::mem::MaybeUninit::<libc::termios>::zeroed();
    // SAFETY: tcgetattr writes one termios where there is room for one.
    if unsafe { libc::tcgetattr(fd, modes.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it has been written whole, and zeroes are a value of it anyway.
    let mut modes = unsafe { modes.assume_init() };
    let before = modes.c_lflag & libc::ECHO != 0;
    match on {
        true => modes.c_lflag |= libc::ECHO,
        false => modes.c_lflag &= !libc::ECHO,
    }
    // SAFETY: the modes are borrowed for the whole call.
    match unsafe { libc::tcsetattr(fd, libc::TCSANOW, &raw const modes) } {
        0 => Ok(before),
        _ => Err(io::Error::last_os_error()),
    }
}
