//! Namespaces, and the mounts that make up a new root.

use std::ffi::{CStr, CString};
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use libc::c_int;

use super::children::Claim;
use super::landlock::obey;
use super::open_files::close_files;

fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(io::Error::other)
}

fn checked(answer: c_int) -> io::Result<()> {
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// mount(2) of a file system that needs no device: tmpfs, devpts, overlay.
pub fn mount_virtual(kind: &CStr, at: &Path, options: &str) -> io::Result<()> {
    let (at, options) = (c_path(at)?, CString::new(options)?);
    let (kind, at, options) = (kind.as_ptr(), at.as_ptr(), options.as_ptr());
    let flags = libc::MS_NOSUID | libc::MS_NODEV;
    // SAFETY: all texts end in NUL and outlive the call.
    checked(unsafe { libc::mount(kind, at, kind, flags, options.cast()) })
}

/// Shows `from`, without what is mounted below it, at `to` too: mount(2), MS_BIND.
pub fn bind(from: &Path, to: &Path) -> io::Result<()> {
    let (from, to) = (c_path(from)?, c_path(to)?);
    let nothing = std::ptr::null();
    // SAFETY: both paths end in NUL and outlive the call; a bind takes no type and no data.
    checked(unsafe {
        libc::mount(from.as_ptr(), to.as_ptr(), nothing, libc::MS_BIND, nothing.cast())
    })
}

/// Shows the folders `layers`, an overlay's option `lowerdir`, at `to` to be read alone, without
/// devices, and with what the mount that holds `like` forbids.
pub fn mount_layers(layers: &str, like: &Path, to: &Path) -> io::Result<()> {
    let flags = flags_of(&c_path(like)?)? | libc::MS_RDONLY | libc::MS_NODEV;
    let (to, options) = (c_path(to)?, CString::new(format!("lowerdir={layers}"))?);
    let kind = c"overlay".as_ptr();
    // SAFETY: all texts end in NUL and outlive the call.
    checked(unsafe { libc::mount(kind, to.as_ptr(), kind, flags, options.as_ptr().cast()) })
}

/// What the mount that holds `path` forbids, as flags of mount(2).
fn flags_of(path: &CStr) -> io::Result<libc::c_ulong> {
    const KEPT: [(libc::c_ulong, libc::c_ulong); 4] = [
        (libc::ST_RDONLY, libc::MS_RDONLY),
        (libc::ST_NOSUID, libc::MS_NOSUID),
        (libc::ST_NODEV, libc::MS_NODEV),
        (libc::ST_NOEXEC, libc::MS_NOEXEC),
    ];
    let mut status = std::mem::MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: the path ends in NUL, and there is room for the one statvfs that is written.
    checked(unsafe { libc::statvfs(path.as_ptr(), status.as_mut_ptr()) })?;
    // SAFETY: the call has succeeded, and all zeros were a value before it.
    let has = unsafe { status.assume_init() }.f_flag;
    let kept = KEPT.iter().filter(|(shown, _)| has & shown != 0).map(|(_, flag)| flag);
    Ok(kept.fold(0, |sum, flag| sum | flag))
}

/// Adds `flags` to those that the mount at `at` has: mount(2), MS_REMOUNT | MS_BIND. Flags of
/// access times stay where none is given.
fn add_flags(at: &Path, flags: libc::c_ulong) -> io::Result<()> {
    let at = c_path(at)?;
    let flags = flags_of(&at)? | flags | libc::MS_REMOUNT | libc::MS_BIND;
    let nothing = std::ptr::null();
    // SAFETY: the path ends in NUL; a remount of this kind takes no source, type or data.
    checked(unsafe { libc::mount(nothing, at.as_ptr(), nothing, flags, nothing.cast()) })
}

/// So long a file may be held by a process that is only about to become another program.
const HELD: Duration = Duration::from_secs(10);

/// Makes the mount at `at` read-only, once no file of it is open for writing (fs/namespace.c,
/// `mnt_hold_writers`). A process that another thread of ours starts has our open files until its
/// exec, also a file that we have closed meanwhile: we wait for that.
pub fn make_read_only(at: &Path) -> io::Result<()> {
    let start = Instant::now();
    loop {
        let made = add_flags(at, libc::MS_RDONLY);
        let is_held = made.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::EBUSY));
        if !is_held {
            return made;
        }
        if start.elapsed() > HELD {
            let why = "a program that goes on running has a file there open to be written";
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, why));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Makes the mounts below `at` read-only; the one at `at` stays as it is. False: not at once
/// (mount_setattr(2), Linux 5.12), and nothing is changed.
pub fn make_read_only_below(at: &Path) -> io::Result<bool> {
    let at = c_path(at)?;
    let set = |flags: c_int, attributes: libc::mount_attr| {
        let size = size_of::<libc::mount_attr>();
        // SAFETY: the path ends in NUL, and the kernel reads one struct of that size.
        let call = unsafe {
            libc::syscall(
                libc::SYS_mount_setattr,
                libc::AT_FDCWD,
                at.as_ptr(),
                flags,
                &attributes,
                size,
            )
        };
        checked(call as c_int)
    };
    let unchanged = libc::mount_attr { attr_set: 0, attr_clr: 0, propagation: 0, userns_fd: 0 };
    let read_only = libc::MOUNT_ATTR_RDONLY;
    let was_read_only = flags_of(&at)? & libc::MS_RDONLY != 0;
    // A container's filter may refuse it with any error.
    if set(libc::AT_RECURSIVE, libc::mount_attr { attr_set: read_only, ..unchanged }).is_err() {
        return Ok(false);
    }
    if !was_read_only {
        set(0, libc::mount_attr { attr_clr: read_only, ..unchanged })?;
    }
    Ok(true)
}

/// Lets no device be opened by way of the mount at `at`.
pub fn forbid_devices(at: &Path) -> io::Result<()> {
    add_flags(at, libc::MS_NODEV)
}

/// Makes the mount at `root` the root of this thread's mount namespace, and of this thread; what
/// was there before is gone (pivot_root(2), "pivot_root(".", ".")"). The root that a kernel
/// unpacks for itself can't be put away: it is covered.
pub fn enter_root(root: &Path) -> io::Result<()> {
    let root = c_path(root)?;
    let (dot, nothing) = (c".".as_ptr(), std::ptr::null());
    // SAFETY: the path ends in NUL.
    checked(unsafe { libc::chdir(root.as_ptr()) })?;
    // SAFETY: both paths end in NUL.
    if unsafe { libc::syscall(libc::SYS_pivot_root, dot, dot) } == 0 {
        // SAFETY: the path ends in NUL.
        checked(unsafe { libc::umount2(dot, libc::MNT_DETACH) })?;
    } else {
        // SAFETY: the paths end in NUL; a move takes no type and no data.
        checked(unsafe {
            libc::mount(dot, c"/".as_ptr(), nothing, libc::MS_MOVE, nothing.cast())
        })?;
        // SAFETY: the path ends in NUL.
        checked(unsafe { libc::chroot(dot) })?;
    }
    // SAFETY: the path ends in NUL.
    checked(unsafe { libc::chdir(c"/".as_ptr()) })
}

/// What a holder is to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewNamespace {
    /// A user namespace.
    User,
    /// A copy of this thread's mounts.
    Mounts,
    /// A network without anything in it.
    Network,
}

impl NewNamespace {
    fn flag(self) -> c_int {
        match self {
            NewNamespace::User => libc::CLONE_NEWUSER,
            NewNamespace::Mounts => libc::CLONE_NEWNS,
            NewNamespace::Network => libc::CLONE_NEWNET,
        }
    }

    /// Its file in /proc/PID/ns (namespaces(7)).
    pub fn file(self) -> &'static str {
        match self {
            NewNamespace::User => "user",
            NewNamespace::Mounts => "mnt",
            NewNamespace::Network => "net",
        }
    }
}

/// A process that does nothing but be in namespaces of its own, until it is dropped.
#[derive(Debug)]
pub struct Holder {
    process: libc::pid_t,
    _claim: Claim,
}

impl Holder {
    /// In a new namespace, which belongs to the user namespace `owner`.
    pub fn new(owner: Option<BorrowedFd<'_>>, what: NewNamespace) -> io::Result<Holder> {
        let (mut ready, said) = io::pipe()?;
        let (said, owner) = (OwnedFd::from(said), owner.map(|owner| owner.as_raw_fd()));
        let (child, claim) = Claim::on(|| {
            // SAFETY: the child makes nothing but system calls that are safe after a fork.
            match unsafe { libc::fork() } {
                -1 => Err(io::Error::last_os_error()),
                0 => hold(owner, what.flag(), said.as_raw_fd()),
                child => Ok((child, child.cast_unsigned())),
            }
        })?;
        drop(said);
        let holder = Holder { process: child, _claim: claim };
        let mut error = [0; size_of::<c_int>()];
        ready.read_exact(&mut error)?;
        match c_int::from_ne_bytes(error) {
            0 => Ok(holder),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.process.cast_unsigned()
    }

    /// Ends it, and does not wait: that it has ended is waited for when it is dropped.
    pub fn end(&self) {
        // SAFETY: as when it is dropped.
        unsafe { libc::kill(self.process, libc::SIGKILL) };
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // SAFETY: the process is a child of ours that has not been waited for, so that no other has
        // its number; waitpid may be given no place for the status. If it could not be killed it
        // ends with us (PR_SET_PDEATHSIG), and is not waited for till then.
        unsafe {
            if libc::kill(self.process, libc::SIGKILL) == 0 {
                libc::waitpid(self.process, std::ptr::null_mut(), 0);
            }
        }
    }
}

/// No control groups of its own in a new user namespace: with them it could mount those that we are
/// in, and set limits for us and for all that share them (cgroup_namespaces(7), namespaces(7)).
const NO_GROUPS: &CStr = c"/proc/sys/user/max_cgroup_namespaces";

/// The life of a [`Holder`]: says how it went, and waits for its end. It has our memory and all
/// that we have open. Who has power in the user namespace that it enters could look into it, as
/// they could into a command that enters ([`start_within`]).
fn hold(owner: Option<c_int>, flag: c_int, said: c_int) -> ! {
    let mut error: c_int = 0;
    // SAFETY: these calls touch no memory but texts of ours, and the number in `error`.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
        let entered = owner.is_none_or(|owner| libc::setns(owner, libc::CLONE_NEWUSER) == 0);
        if !entered || libc::unshare(flag) != 0 {
            error = *libc::__errno_location();
        } else if flag == libc::CLONE_NEWUSER {
            // Kernels without such namespaces (before Linux 4.6) have no file for them.
            let file = libc::open(NO_GROUPS.as_ptr(), libc::O_WRONLY);
            if file >= 0 && libc::write(file, c"0".as_ptr().cast(), 1) != 1 {
                error = *libc::__errno_location();
            }
        }
        let written = libc::write(said, (&raw const error).cast(), size_of::<c_int>());
        // Nobody could be told, and would be waited for: the end of the pipe says it.
        if usize::try_from(written) != Ok(size_of::<c_int>()) {
            libc::_exit(1);
        }
        loop {
            libc::pause();
        }
    }
}

/// Puts this thread, and what it starts from now on, into `network`.
pub fn enter_network(network: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: setns takes a descriptor, which is borrowed for the call, and a number.
    checked(unsafe { libc::setns(network.as_raw_fd(), libc::CLONE_NEWNET) })
}

/// Puts this thread into the mount namespace `mounts`. The one it leaves is gone at once, if nobody
/// else is in it; with a thread that ends there it would go some time later.
pub fn enter_mounts(mounts: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: setns takes a descriptor, which is borrowed for the call, and a number.
    checked(unsafe { libc::setns(mounts.as_raw_fd(), libc::CLONE_NEWNS) })
}

/// [`enter_mounts`], for a thread that shares its root and directory with others: setns(2) refuses
/// those.
pub fn enter_mounts_alone(mounts: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: unshare with this flag takes nothing but a number.
    checked(unsafe { libc::unshare(libc::CLONE_FS) })?;
    enter_mounts(mounts)
}

/// Has `command` start in those namespaces, in `directory` as it is there, under Landlock's
/// `rules`, and in a session of its own, so that it can't type on our terminal (ioctl_tty(2),
/// TIOCSTI). Powers in the user namespace reach the command from the moment it enters, which is
/// before its exec: until then it can't be looked into (PR_SET_DUMPABLE(2const)), and our open
/// files are closed by that time.
pub fn start_within(
    command: &mut Command,
    user: BorrowedFd<'_>,
    mounts: BorrowedFd<'_>,
    rules: Option<BorrowedFd<'_>>,
    directory: &Path,
) -> io::Result<()> {
    let (user, mounts) = (user.try_clone_to_owned()?, mounts.try_clone_to_owned()?);
    let rules = rules.map(|rules| rules.try_clone_to_owned()).transpose()?;
    let directory = c_path(directory)?;
    let enter = move || {
        // SAFETY: setsid takes nothing. It fails for who leads a group: a command is bound to us
        // after this.
        if unsafe { libc::setsid() } < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: prctl with these arguments touches no memory.
        checked(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) })?;
        let rules_fd = rules.as_ref().map_or(-1, AsRawFd::as_raw_fd);
        close_files([user.as_raw_fd(), mounts.as_raw_fd(), rules_fd])?;
        // SAFETY: the descriptors live as long as this closure.
        checked(unsafe { libc::setns(mounts.as_raw_fd(), libc::CLONE_NEWNS) })?;
        // SAFETY: as before.
        checked(unsafe { libc::setns(user.as_raw_fd(), libc::CLONE_NEWUSER) })?;
        if let Some(rules) = &rules {
            obey(rules.as_fd())?;
        }
        // SAFETY: the path ends in NUL and lives as long as this closure.
        checked(unsafe { libc::chdir(directory.as_ptr()) })
    };
    // SAFETY: the closure only makes system calls that are safe after a fork; it allocates nothing.
    unsafe { command.pre_exec(enter) };
    Ok(())
}

/// Lifts the limits that bind processes without power over the whole machine, as far as we may
/// (setrlimit(2)): memory that stays, priorities, and how many files a process may ask for.
pub fn lift_limits() {
    let infinite = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    for limit in [libc::RLIMIT_MEMLOCK, libc::RLIMIT_NICE, libc::RLIMIT_RTPRIO] {
        // SAFETY: the kernel reads one rlimit where there is one.
        unsafe { libc::setrlimit(limit, &infinite) };
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::tool::users;

    fn namespace(owner: Option<BorrowedFd<'_>>, what: NewNamespace) -> OwnedFd {
        let holder = Holder::new(owner, what).unwrap();
        let path = format!("/proc/{}/ns/{}", holder.id(), what.file());
        std::fs::File::open(path).unwrap().into()
    }

    #[test]
    #[ignore = "needs root: run ./test"]
    fn a_file_that_is_open_for_a_moment_does_not_keep_a_mount_writable() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().to_path_buf();
        let made = std::thread::Builder::new().spawn(move || {
            crate::sys::private_mounts().unwrap();
            mount_virtual(c"tmpfs", &at, "mode=755").unwrap();
            let held = File::create(at.join("file")).unwrap();
            assert_eq!(add_flags(&at, libc::MS_RDONLY).unwrap_err().raw_os_error(), Some(16));
            let close = move || {
                std::thread::sleep(Duration::from_millis(20));
                drop(held);
            };
            let closing = std::thread::Builder::new().spawn(close).unwrap();
            make_read_only(&at).unwrap();
            closing.join().unwrap();
            File::create(at.join("other")).map(drop)
        });
        let error = made.unwrap().join().unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ReadOnlyFilesystem);
    }

    #[test]
    #[ignore = "needs root: run ./test"]
    fn who_holds_a_namespace_can_t_be_looked_into_from_there() {
        // Root there, as in a cell: the user nobody has no powers after an exec.
        let first = Holder::new(None, NewNamespace::User).unwrap();
        let of_first = |file: &str| format!("/proc/{}/{file}", first.id());
        for map in ["uid_map", "gid_map"] {
            std::fs::write(of_first(map), "0 0 1").unwrap();
        }
        let user: OwnedFd = std::fs::File::open(of_first("ns/user")).unwrap().into();
        let holder = Holder::new(Some(user.as_fd()), NewNamespace::Mounts).unwrap();
        // For root in that user namespace, which has all powers there (proc_pid_environ(5):
        // ptrace).
        let file = format!("cat /proc/{0}/environ > /dev/null && ls -l /proc/{0}/fd/", holder.id());
        let mounts = std::fs::File::open("/proc/self/ns/mnt").unwrap().into();
        let looked = |user: &OwnedFd, mounts: &OwnedFd| {
            let mut command = users(&["sh".into(), "-c".into(), file.clone()]);
            let (user, mounts) = (user.as_fd(), mounts.as_fd());
            start_within(&mut command, user, mounts, None, Path::new("/")).unwrap();
            command.stderr(std::process::Stdio::null());
            command.stdout(std::process::Stdio::null()).status().unwrap().success()
        };
        assert!(!looked(&user, &mounts), "what we have open is to be had from within");
    }

    #[test]
    #[ignore = "needs root: run ./test"]
    fn what_enters_a_cell_has_nothing_of_ours_and_can_t_be_looked_into() {
        let (user, own) = (namespace(None, NewNamespace::User), std::env::current_exe().unwrap());
        let mounts = namespace(Some(user.as_fd()), NewNamespace::Mounts);
        let ours = std::fs::File::open(&own).unwrap();
        let mut command = users(&["true".into()]);
        start_within(&mut command, user.as_fd(), mounts.as_fd(), None, Path::new("/")).unwrap();
        let looked = move || {
            let open = |fd: std::fs::DirEntry| std::fs::read_link(fd.path()).ok();
            let mut all = std::fs::read_dir("/proc/self/fd")?.flatten().filter_map(open);
            // SAFETY: prctl with this argument touches no memory.
            let is_seen = unsafe { libc::prctl(libc::PR_GET_DUMPABLE) } != 0;
            match is_seen || all.any(|path| path == own) {
                true => Err(io::Error::from_raw_os_error(libc::EUCLEAN)),
                false => Ok(()),
            }
        };
        // SAFETY: only this thread goes on in the forked process; it is a test.
        unsafe { command.pre_exec(looked) };
        assert!(command.status().unwrap().success());
        // What can't be started says so yet.
        let mut missing = users(&["/no-such-program".into()]);
        start_within(&mut missing, user.as_fd(), mounts.as_fd(), None, Path::new("/")).unwrap();
        assert_eq!(missing.status().unwrap_err().kind(), io::ErrorKind::NotFound);
        drop(ours);
    }
}
