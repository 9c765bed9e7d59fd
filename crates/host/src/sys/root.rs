//! Paths that can't lead out of a directory, whatever links lie in it: the thread's root is changed
//! to it, or each path is resolved as if it were.

use std::ffi::CStr;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use libc::c_int;

use super::beneath::open_how;
use super::calls::open_as;
use super::file::retried;

/// The exit status of a process whose root is lost: that of any that can't go on.
const LOST: c_int = 1;

/// While it lives, a directory is the root and the working directory of the thread that made it,
/// and of those that it starts meanwhile: all paths, links and `..` end there (chroot(2)). Threads
/// that were there before keep theirs.
///
/// The way back is two descriptors, which nothing but the drop uses.
#[derive(Debug)]
pub struct ChangedRoot {
    /// `None`: the root is what it was.
    root: Option<OwnedFd>,
    working: OwnedFd,
    /// It belongs to its thread.
    thread: PhantomData<*const ()>,
}

impl ChangedRoot {
    /// EPERM without CAP_SYS_CHROOT.
    pub fn enter(directory: BorrowedFd<'_>) -> io::Result<ChangedRoot> {
        let changed = ChangedRoot::enter_if_allowed(directory)?;
        match changed.root.is_some() {
            true => Ok(changed),
            false => Err(io::Error::from_raw_os_error(libc::EPERM)),
        }
    }

    /// Without CAP_SYS_CHROOT only the working directory is changed: a link gives such a process no
    /// more than the path that it stands for. If a container's filter forbids unshare(2) too, it is
    /// changed for all threads.
    pub fn enter_if_allowed(directory: BorrowedFd<'_>) -> io::Result<ChangedRoot> {
        // SAFETY: AT_FDCWD is no descriptor that could be closed meanwhile.
        let working_directory = unsafe { BorrowedFd::borrow_raw(libc::AT_FDCWD) };
        let way_back = |path| open_as(working_directory, path, libc::O_PATH | libc::O_DIRECTORY, 0);
        let (root, working) = (way_back(c"/")?, way_back(c".")?);
        // SAFETY: unshare takes a number. CLONE_FS gives this thread a root, a working directory
        // and an umask of its own, with the values that they have.
        let own = retried(|| unsafe { libc::unshare(libc::CLONE_FS) }).map(drop);
        let mut changed = ChangedRoot { root: None, working, thread: PhantomData };
        change_directory(directory)?;
        match own.and_then(|()| change_root(directory)) {
            Ok(()) => changed.root = Some(root),
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => {}
            Err(error) => return Err(error),
        }
        Ok(changed)
    }
}

impl Drop for ChangedRoot {
    fn drop(&mut self) {
        let back = self.root.as_ref().map_or(Ok(()), |root| change_root(root.as_fd()));
        if back.and_then(|()| change_directory(self.working.as_fd())).is_err() {
            // Every path would mean something else from now on. Not abort(3): a trial is the first
            // process of a namespace, which survives a signal of its own (pid_namespaces(7)).
            eprintln!("the way back to the root is lost");
            // SAFETY: _exit takes a number, and ends all threads.
            unsafe { libc::_exit(LOST) };
        }
    }
}

/// chroot(2) to a directory, which becomes the working directory.
fn change_root(directory: BorrowedFd<'_>) -> io::Result<()> {
    change_directory(directory)?;
    // SAFETY: the path ends in NUL.
    retried(|| unsafe { libc::chroot(c".".as_ptr()) }).map(drop)
}

fn change_directory(directory: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the descriptor is borrowed for the whole call.
    retried(|| unsafe { libc::fchdir(directory.as_raw_fd()) }).map(drop)
}

/// While it lives, files that its thread makes get exactly the given mode, as do those of threads
/// that it starts meanwhile: umask(2).
#[derive(Debug)]
pub struct NoUmask {
    before: libc::mode_t,
    /// It belongs to its thread.
    thread: PhantomData<*const ()>,
}

impl NoUmask {
    /// The umask is none. Where a container's filter forbids unshare(2), it is that of all threads.
    pub fn enter() -> io::Result<NoUmask> {
        // SAFETY: unshare takes a number. CLONE_FS gives this thread an umask of its own.
        match retried(|| unsafe { libc::unshare(libc::CLONE_FS) }) {
            Err(error) if error.raw_os_error() != Some(libc::EPERM) => return Err(error),
            _ => {}
        }
        // SAFETY: umask takes a number.
        let before = unsafe { libc::umask(0) };
        Ok(NoUmask { before, thread: PhantomData })
    }
}

impl Drop for NoUmask {
    fn drop(&mut self) {
        // SAFETY: umask takes a number.
        unsafe { libc::umask(self.before) };
    }
}

/// openat2(2) with `directory` as the root of all that the path and its links lead to; otherwise as
/// [`open_as`]. Since Linux 5.6.
pub fn open_in_root(
    directory: BorrowedFd<'_>,
    path: &CStr,
    flags: c_int,
    mode: u32,
) -> io::Result<OwnedFd> {
    // It refuses flags beside O_PATH, which openat(2) ignores.
    const BESIDE_PATH: c_int = libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let flags = if flags & libc::O_PATH == 0 { flags } else { flags & BESIDE_PATH };
    loop {
        match open_how(directory, path, flags, mode, libc::RESOLVE_IN_ROOT) {
            // Somebody renamed or mounted something while it went up a `..`.
            Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => {}
            opened => return opened,
        }
    }
}
