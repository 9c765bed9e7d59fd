//! A process that releases the threads that are stopped for us, if we are gone. A filter of system
//! calls can't be removed, and without a listener the calls fail: a database would fail in the
//! middle of its work, only because the program that watched it was killed.

use std::io::{self, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::ptr;

use libc::pid_t;

use super::file::retried;
use super::listener::{Listener, Shared, answer, process_descriptor, receive};

/// The process. It takes over when this is dropped, or when we are killed.
#[derive(Debug)]
pub struct Heir {
    process: pid_t,
    /// Closed, it tells that we are gone; a byte, that the heir is needed no more.
    tells: UnixStream,
}

impl Heir {
    /// Waits for our end, and no longer than for that of `command`.
    pub fn of(listener: &Listener, command: u32) -> io::Result<Heir> {
        let (tells, hears) = UnixStream::pair()?;
        let ended = process_descriptor(command, 0)?;
        let kept = [listener.descriptor(), hears.as_raw_fd(), ended.as_raw_fd()];
        let heard = listener.heard();
        // SAFETY: the child only makes system calls that are safe after a fork, with memory that it
        // has by then, and ends without a return.
        match retried(|| unsafe { libc::fork() })? {
            // SAFETY: this is the child.
            0 => unsafe { inherit(kept, tells.as_raw_fd(), heard) },
            process => Ok(Heir { process, tells }),
        }
    }

    /// It is needed no more.
    pub fn dismiss(mut self) -> io::Result<()> {
        // It may have ended with the command, and hear no more.
        let _ = self.tells.write_all(&[0]);
        // SAFETY: it takes numbers, and no place for a status.
        retried(|| unsafe { libc::waitpid(self.process, ptr::null_mut(), 0) }).map(drop)
    }
}

const LISTENER: RawFd = 0;
const HEARS: RawFd = 1;
const ENDED: RawFd = 2;

/// The life of an heir.
///
/// SAFETY: this must be the child of a fork that needs no other descriptor or memory.
unsafe fn inherit(kept: [RawFd; 3], tells: RawFd, heard: Shared) -> ! {
    // SAFETY: these take numbers; the descriptors are this process's own. Ctrl-C at the terminal
    // does not reach a session of its own.
    unsafe {
        libc::setsid();
        let above = kept.map(|fd| libc::fcntl(fd, libc::F_DUPFD, 10));
        for (fd, to) in above.into_iter().zip([LISTENER, HEARS, ENDED]) {
            libc::dup2(fd, to);
        }
        // Before Linux 5.9 the one end of ours that must not stay open, at the least.
        if libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) != 0 {
            libc::close(tells);
        }
    }
    let mut are_gone = false;
    loop {
        let of = |fd: RawFd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // A number below 0 is passed over.
        let mut all = [
            of(if are_gone { LISTENER } else { -1 }),
            of(if are_gone { -1 } else { HEARS }),
            of(ENDED),
        ];
        // SAFETY: the kernel reads and writes the three pollfds that there are.
        if unsafe { libc::poll(all.as_mut_ptr(), 3, -1) } < 0 {
            continue;
        }
        let [listener, hears, ended] = all.map(|one| one.revents);
        if ended != 0 || listener & !libc::POLLIN != 0 || hears != 0 && !has_closed(&mut are_gone) {
            // SAFETY: it takes a number, and runs nothing of ours.
            unsafe { libc::_exit(0) };
        }
        if hears != 0 {
            // The call heard of last, which may have no answer yet.
            let _ = answer(LISTENER, heard.id());
        } else if listener != 0 && receive(LISTENER, heard).is_ok() {
            let _ = answer(LISTENER, heard.id());
        }
    }
}

/// Whether the other end was closed without a byte: then they are gone.
fn has_closed(are_gone: &mut bool) -> bool {
    let mut byte = 0_u8;
    // SAFETY: the kernel writes one byte at most.
    *are_gone = unsafe { libc::read(HEARS, (&raw mut byte).cast(), 1) } == 0;
    *are_gone
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;
    use std::time::{Duration, Instant};

    use super::super::listener::{Heard, Meets, listen};
    use crate::tool::users;

    use super::*;

    /// A command that asks for a niceness two times, and who hears of it.
    fn asking() -> Option<(std::process::Child, Listener)> {
        let script = "renice -n 0 -p 1; renice -n 0 -p 1";
        let mut command = users(&["sh", "-c", script].map(String::from));
        let calls = [(libc::SYS_getpriority, Meets::UsUnlessZero(1))];
        let coming = listen(&mut command, &calls).unwrap();
        let (out, err) = (Stdio::null(), Stdio::null());
        let mut child = command.stdout(out).stderr(err).spawn().unwrap();
        match coming.listener() {
            Some(listener) => Some((child, listener)),
            None => {
                child.wait().unwrap();
                None
            }
        }
    }

    fn stops(listener: &Listener) {
        while !matches!(listener.hear(1000).unwrap(), Heard::Stopped(_)) {}
    }

    #[test]
    fn who_stands_still_goes_on_when_we_are_gone() {
        // Where nobody can listen there is nothing to inherit.
        let Some((mut child, listener)) = asking() else { return };
        let heir = Heir::of(&listener, child.id()).unwrap();
        // Heard, and never answered by us, nor is what comes after it.
        stops(&listener);
        assert!(child.try_wait().unwrap().is_none());
        let process = heir.process;
        drop(heir);
        let begun = Instant::now();
        while child.try_wait().unwrap().is_none() {
            // Far more than it takes; without an heir it never ends.
            if begun.elapsed() > Duration::from_secs(120) {
                child.kill().unwrap();
                panic!("it stands still");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        // SAFETY: it takes numbers, and no place for a status. It ends with the command.
        let ended = unsafe { libc::waitpid(process, ptr::null_mut(), 0) };
        assert_eq!(ended, process);
    }

    #[test]
    fn an_heir_that_is_dismissed_leaves_all_to_us() {
        let Some((mut child, listener)) = asking() else { return };
        let heir = Heir::of(&listener, child.id()).unwrap();
        stops(&listener);
        heir.dismiss().unwrap();
        assert!(child.try_wait().unwrap().is_none());
        // Nobody listens any more: the calls fail.
        drop(listener);
        child.wait().unwrap();
    }

    #[test]
    fn an_heir_ends_with_the_command() {
        let Some((mut child, listener)) = asking() else { return };
        let heir = Heir::of(&listener, child.id()).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let state = || std::fs::read_to_string(format!("/proc/{}/stat", heir.process)).unwrap();
        // It has ended, and has not been waited for yet (proc_pid_stat(5)).
        while !state().contains(") Z ") {
            std::thread::sleep(Duration::from_millis(5));
        }
        heir.dismiss().unwrap();
    }
}
