//! System calls at which other programs stop until we have looked: seccomp(2), seccomp_unotify(2).
//! The programs then go on as if nothing had happened.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr::{self, NonNull};

use libc::{c_int, c_long, c_ulong, seccomp_notif, sock_filter};

use super::file::retried;
use super::filter::{X32, end, filtered, is, load, step};

/// linux/audit.h, AUDIT_ARCH_*: callers by the numbers of this program. Others are let through.
#[cfg(target_arch = "x86_64")]
const CALLER: Option<u32> = Some(0xc000_003e);
#[cfg(target_arch = "aarch64")]
const CALLER: Option<u32> = Some(0xc000_00b7);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const CALLER: Option<u32> = None;

/// What becomes of a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meets {
    /// The caller stops until we let it go on.
    Us,
    /// The same, where this argument is not 0.
    UsUnlessZero(u32),
}

/// A thread that stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    id: u64,
    /// The thread.
    pub thread: u32,
    /// Its call.
    pub call: c_long,
    /// The call's arguments.
    pub arguments: [u64; 6],
}

/// What a listener hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// A thread stands still.
    Stopped(Stopped),
    /// Nothing within the time.
    Nothing,
    /// There is nobody left to listen to.
    Nobody,
}

/// Where the listener of a command comes from, once it has been started.
#[derive(Debug)]
pub struct Coming(UnixStream);

/// Hears of the calls of a command and of all that it starts. When it is gone, and it has no
/// [`Heir`](super::Heir), the calls at which they would stand still fail with ENOSYS.
#[derive(Debug)]
pub struct Listener {
    fd: OwnedFd,
    heard: Page,
}

/// Memory that a process which we fork has with us.
#[derive(Debug)]
struct Page(Shared);

/// The call heard of last, as the kernel has written it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shared(NonNull<seccomp_notif>);

// SAFETY: nothing but the kernel writes there, for the one who listens.
unsafe impl Send for Page {}

impl Page {
    fn new() -> io::Result<Page> {
        let (access, bytes) = (libc::PROT_READ | libc::PROT_WRITE, size_of::<seccomp_notif>());
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping of no file at a place of the kernel's choice, and all zeros.
        let page = unsafe { libc::mmap(ptr::null_mut(), bytes, access, flags, -1, 0) };
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let page = NonNull::new(page.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Page(Shared(page)))
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, has this length, and nothing points into it.
        unsafe { libc::munmap(self.0.0.as_ptr().cast(), size_of::<seccomp_notif>()) };
    }
}

impl Shared {
    /// By what it is answered.
    pub(super) fn id(self) -> u64 {
        // SAFETY: the page is there as long as its listener, and in every fork of it.
        unsafe { self.0.as_ptr().read_volatile() }.id
    }
}

/// Takes a stopped call from the listener: `heard` has it before the kernel counts it as taken.
pub(super) fn receive(listener: RawFd, heard: Shared) -> io::Result<seccomp_notif> {
    let heard = heard.0.as_ptr();
    // SAFETY: the kernel wants zeros, and writes one of these.
    unsafe {
        heard.write_volatile(std::mem::zeroed());
        retried(|| libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_RECV, heard))?;
        Ok(heard.read_volatile())
    }
}

/// Lets a stopped thread make its call. One that is gone, or restarts the call, needs no answer.
pub(super) fn answer(listener: RawFd, id: u64) -> io::Result<()> {
    let flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
    let mut answer = libc::seccomp_notif_resp { id, val: 0, error: 0, flags };
    // SAFETY: the kernel reads one of these.
    let gone = retried(|| unsafe {
        libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut answer)
    });
    match gone {
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(()),
        gone => gone.map(drop),
    }
}

/// Applies that to these calls of `command`, once started, and of all that it starts. None of them
/// gains privileges by what it executes, unless we are root. If we can't listen (before Linux 5.6,
/// in a container that forbids it, or if there is a listener already) the calls are made as usual.
pub fn listen(command: &mut Command, calls: &[(c_long, Meets)]) -> io::Result<Coming> {
    let (ours, theirs) = UnixStream::pair()?;
    let Some(caller) = CALLER.filter(|_| can_look()) else { return Ok(Coming(ours)) };
    let program = stopping(caller, calls);
    let begin = move || {
        // Without a handler's run in between, which would end the call; Linux 5.19.
        let unbroken = libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
        let begun = [unbroken, 0]
            .into_iter()
            .find_map(|flags| bound(&program, flags | libc::SECCOMP_FILTER_FLAG_NEW_LISTENER).ok());
        // Both are closed by exec.
        begun.map_or(Ok(()), |listener| send(theirs.as_raw_fd(), listener))
    };
    // SAFETY: the closure only makes system calls that are safe after a fork; it allocates nothing.
    unsafe { command.pre_exec(begin) };
    Ok(Coming(ours))
}

/// Makes these calls fail with ENOSYS for `command` and its children, as where the kernel does not
/// know them. Their numbers must be the same on all architectures, as those of newer calls are.
/// Unless we are root, none of them gains rights by what it executes.
pub fn refuse(command: &mut Command, calls: &[c_long]) {
    let program = refusing(calls);
    let begin = move || bound(&program, 0).map(drop);
    // SAFETY: the closure only makes system calls that are safe after a fork; it allocates nothing.
    unsafe { command.pre_exec(begin) };
}

/// The kernel lets us take a descriptor of another: all that it does without, it does by Linux 5.6.
fn can_look() -> bool {
    let nobodys = -1;
    // SAFETY: it takes numbers.
    let none = retried(|| unsafe { libc::syscall(libc::SYS_pidfd_getfd, nobodys, 0, 0) });
    none.is_err_and(|error| error.raw_os_error() == Some(libc::EBADF))
}

/// [`filtered`], also without privileges: that is allowed once we can gain none (no_new_privs).
fn bound(program: &[sock_filter], flags: c_ulong) -> io::Result<RawFd> {
    match filtered(program, flags) {
        Err(error) if error.raw_os_error() == Some(libc::EACCES) => {
            // SAFETY: it takes numbers.
            unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
            filtered(program, flags)
        }
        begun => begun,
    }
}

/// Room for a control message with one descriptor, aligned as the kernel wants it.
#[repr(C, align(8))]
struct Control([u8; 64]);

/// Makes a message of one byte, and of one descriptor beside it (unix(7), SCM_RIGHTS).
fn message(byte: &mut libc::iovec, control: &mut Control) -> libc::msghdr {
    // SAFETY: all zeros is a message of nothing.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut *byte;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    // SAFETY: it is a sum.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(size_of::<c_int>() as u32) } as _;
    message
}

fn send(socket: RawFd, descriptor: RawFd) -> io::Result<()> {
    let mut byte = [0_u8];
    let mut one = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    let mut control = Control([0; 64]);
    let message = message(&mut one, &mut control);
    // SAFETY: the message has room for the one header that is written, and a number behind it.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(size_of::<c_int>() as u32) as _;
        libc::CMSG_DATA(header).cast::<c_int>().write_unaligned(descriptor);
    }
    // SAFETY: the kernel reads the message and what it points to, which live until then.
    retried(|| unsafe { libc::sendmsg(socket, &raw const message, 0) as i64 }).map(drop)
}

impl Coming {
    /// The listener, when the command has been started; `None` where there can be none.
    pub fn listener(self) -> Option<Listener> {
        let mut byte = [0_u8];
        let mut one = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
        let mut control = Control([0; 64]);
        let mut message = message(&mut one, &mut control);
        let flags = libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT;
        // SAFETY: the kernel writes to what the message points to, which has the room it says.
        let read = unsafe { libc::recvmsg(self.0.as_raw_fd(), &raw mut message, flags) };
        if read != 1 {
            return None;
        }
        // SAFETY: the kernel has written headers as long as the message says now.
        let header = unsafe { libc::CMSG_FIRSTHDR(&raw const message).as_ref() }?;
        let is_ours = header.cmsg_level == libc::SOL_SOCKET && header.cmsg_type == libc::SCM_RIGHTS;
        // SAFETY: behind such a header are descriptors that are ours from now on: one.
        let fd = is_ours.then(|| unsafe {
            let its = libc::CMSG_DATA(header).cast::<c_int>().read_unaligned();
            OwnedFd::from_raw_fd(its)
        })?;
        Some(Listener { fd, heard: Page::new().ok()? })
    }
}

impl Listener {
    /// The next stopped call; waits for at most `most_ms`.
    pub fn hear(&self, most_ms: u16) -> io::Result<Heard> {
        let fd = self.descriptor();
        let mut one = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: the kernel reads and writes the one pollfd that there is.
        retried(|| unsafe { libc::poll(&raw mut one, 1, most_ms.into()) })?;
        if one.revents & libc::POLLIN == 0 {
            let is_over = one.revents & (libc::POLLHUP | libc::POLLERR) != 0;
            return Ok(if is_over { Heard::Nobody } else { Heard::Nothing });
        }
        match receive(fd, self.heard.0) {
            // It was killed, or interrupted and begins again.
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(Heard::Nothing),
            Err(error) => Err(error),
            Ok(heard) => Ok(Heard::Stopped(Stopped {
                id: heard.id,
                thread: heard.pid,
                call: heard.data.nr.into(),
                arguments: heard.data.args,
            })),
        }
    }

    /// Lets it make its call.
    pub fn go_on(&self, stopped: &Stopped) -> io::Result<()> {
        answer(self.descriptor(), stopped.id)
    }

    pub(super) fn descriptor(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    pub(super) fn heard(&self) -> Shared {
        self.heard.0
    }
}

/// pidfd_open(2).
pub(super) fn process_descriptor(number: u32, flags: c_int) -> io::Result<OwnedFd> {
    // SAFETY: it takes numbers, and makes a descriptor that nobody else has.
    let its = retried(|| unsafe { libc::syscall(libc::SYS_pidfd_open, number, flags) })?;
    // SAFETY: the same.
    Ok(unsafe { OwnedFd::from_raw_fd(its as RawFd) })
}

/// One of a thread's descriptors, as long as we may trace it: pidfd_getfd(2), Linux 5.6. Before
/// Linux 6.9 it has to be the process's first thread, or has to share its descriptors.
pub fn descriptor_of(process: u32, thread: u32, descriptor: i32) -> io::Result<OwnedFd> {
    /// include/uapi/linux/pidfd.h: PIDFD_THREAD.
    const THREAD: c_int = libc::O_EXCL;
    let of = process_descriptor(thread, THREAD).or_else(|_| process_descriptor(process, 0))?;
    let fd = of.as_raw_fd();
    // SAFETY: it takes numbers, and makes a descriptor that nobody else has.
    let its = retried(|| unsafe { libc::syscall(libc::SYS_pidfd_getfd, fd, descriptor, 0) })?;
    // SAFETY: the same.
    Ok(unsafe { OwnedFd::from_raw_fd(its as RawFd) })
}

/// Reads the memory of a process from an address on: how much of `buffer` was filled
/// (process_vm_readv(2)).
pub fn memory_of(process: u32, address: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let remote = libc::iovec { iov_base: address as *mut _, iov_len: buffer.len() };
    let process = libc::pid_t::try_from(process).map_err(io::Error::other)?;
    // SAFETY: the kernel writes to the buffer, and only reads the other's memory.
    let read = retried(|| unsafe {
        let (local, remote) = (&raw const local, &raw const remote);
        libc::process_vm_readv(process, local, 1, remote, 1, 0) as i64
    })?;
    Ok(read as usize)
}

/// The program of a filter: `struct seccomp_data` has the call's number first, then the caller's
/// architecture, and the arguments from byte 16 on.
fn stopping(caller: u32, calls: &[(c_long, Meets)]) -> Vec<sock_filter> {
    let [us, let_go] = [libc::SECCOMP_RET_USER_NOTIF, libc::SECCOMP_RET_ALLOW].map(end);
    let mut program = vec![load(4), is(caller, 1, 0), let_go, load(0)];
    for (call, meets) in calls {
        let then = match meets {
            Meets::Us => vec![us],
            // Its lower half, which is first here.
            Meets::UsUnlessZero(argument) => {
                vec![load(16 + 8 * argument), is(0, 1, 0), us, let_go]
            }
        };
        program.push(is(*call as u32, 0, then.len() as u8));
        program.extend(then);
    }
    program.push(let_go);
    program
}

/// The same, for any caller.
fn refusing(calls: &[c_long]) -> Vec<sock_filter> {
    let mut program = vec![load(0), step(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, !X32)];
    for call in calls {
        let refusal = end(libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned());
        program.extend([is(*call as u32, 0, 1), refusal]);
    }
    program.push(end(libc::SECCOMP_RET_ALLOW));
    program
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::super::filter::answer;
    use super::*;
    use crate::tool::users;

    #[test]
    fn calls_stop_or_are_refused_and_no_others() {
        let (us, let_go) = (libc::SECCOMP_RET_USER_NOTIF, libc::SECCOMP_RET_ALLOW);
        let program = stopping(7, &[(425, Meets::Us), (426, Meets::UsUnlessZero(1))]);
        for call in 420..430 {
            for (arguments, sends) in [([9, 0, 9, 9, 9, 9], false), ([0, 3, 0, 0, 0, 0], true)] {
                let stops = call == 425 || call == 426 && sends;
                let expected = if stops { us } else { let_go };
                assert_eq!(answer(&program, 7, call, arguments), expected, "{call}");
                assert_eq!(answer(&program, 8, call, arguments), let_go, "by other numbers");
            }
        }
        let refusing = refusing(&[425]);
        let refusal = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();
        for call in 420..430 {
            let expected = if call == 425 { refusal } else { let_go };
            assert_eq!(answer(&refusing, 7, call, [0; 6]), expected, "{call}");
            assert_eq!(answer(&refusing, 8, call | X32, [0; 6]), expected, "{call}");
        }
    }

    /// renice(1) asks for the niceness of the process that it is given.
    #[test]
    fn a_thread_stands_still_until_it_is_let_go() {
        let mut command = users(&["renice", "-n", "0", "-p", "1"].map(String::from));
        let coming = listen(&mut command, &[(libc::SYS_getpriority, Meets::UsUnlessZero(1))]);
        let mut child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
        // Where nobody can listen there is nothing to hear.
        let Some(listener) = coming.unwrap().listener() else { return drop(child.wait()) };
        let mut heard = Vec::new();
        loop {
            match listener.hear(1000).unwrap() {
                Heard::Stopped(stopped) => {
                    assert!(child.try_wait().unwrap().is_none(), "it stands still");
                    heard.push((stopped.thread, stopped.call, stopped.arguments[1]));
                    listener.go_on(&stopped).unwrap();
                }
                // Before Linux 5.9 the kernel does not say that nobody is left.
                Heard::Nothing if child.try_wait().unwrap().is_some() => break,
                Heard::Nothing => {}
                Heard::Nobody => break,
            }
        }
        child.wait().unwrap();
        assert!(heard.contains(&(child.id(), libc::SYS_getpriority, 1)), "{heard:?}");
    }

    #[test]
    fn memory_and_descriptors_of_others_are_read() {
        let own = std::process::id();
        let word = *b"a word of ours";
        let mut read = [0; 14];
        assert_eq!(memory_of(own, word.as_ptr() as u64, &mut read).unwrap(), 14);
        assert_eq!(read, word);
        assert!(memory_of(own, 8, &mut read).is_err());
        assert!(descriptor_of(own, own, 1 << 20).is_err());
        let (one, mut other) = UnixStream::pair().unwrap();
        // A container may forbid it.
        let Ok(same) = descriptor_of(own, own, one.as_raw_fd()) else { return };
        std::io::Write::write_all(&mut UnixStream::from(same), b"x").unwrap();
        let mut byte = [0];
        other.read_exact(&mut byte).unwrap();
        assert_eq!(&byte, b"x");
    }
}
