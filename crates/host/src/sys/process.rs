//! Processes: who we are, dying with our parent, ending those we started.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The effective user's number.
pub fn user_id() -> u32 {
    // SAFETY: geteuid takes nothing and can't fail.
    unsafe { libc::geteuid() }
}

/// The effective group's number.
pub fn group_id() -> u32 {
    // SAFETY: getegid takes nothing and can't fail.
    unsafe { libc::getegid() }
}

/// Lets this process have `count` files open at once, as far as its hard limit allows; gives how
/// many it may have then (getrlimit(2), RLIMIT_NOFILE).
pub fn raise_open_files(count: u64) -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes one rlimit where there is one.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if limit.rlim_cur < count {
        limit.rlim_cur = count.min(limit.rlim_max);
        // SAFETY: the kernel reads one rlimit where there is one.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(limit.rlim_cur)
}

/// The effective user is root.
pub fn is_root() -> bool {
    user_id() == 0
}

/// Leaves the keys of the session that we were started in, for an empty session (keyctl(2),
/// KEYCTL_JOIN_SESSION_KEYRING). A kernel without keys has none to leave, and where the call is
/// forbidden, as in containers, it is so for all that we start.
///
/// # Errors
/// When there is no room for another session: the keys are still within reach.
pub fn leave_session_keys() -> io::Result<()> {
    const JOIN_SESSION_KEYRING: libc::c_long = 1;
    let nothing = std::ptr::null::<libc::c_char>();
    // SAFETY: without a name the call reads no memory.
    if unsafe { libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, nothing) } != -1 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        error if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => Ok(()),
        error => Err(error),
    }
}

/// Puts `command`, once started, into a process group of its own, so that Ctrl-C at the terminal
/// reaches us alone, and has the kernel kill it when the thread that started it dies. Comes after
/// [`start_within`](super::start_within), which begins a session.
pub fn bind_to_us(command: &mut Command) {
    bind(command, true);
}

/// Has the kernel kill `command`, once started, when the thread that started it dies. It stays in
/// our process group, and so may read from our terminal.
pub fn die_with_us(command: &mut Command) {
    bind(command, false);
}

fn bind(command: &mut Command, has_own_group: bool) {
    let us = std::process::id();
    let die_with_parent = move || {
        if has_own_group {
            // Not by Command::process_group, which comes before all closures: a group leader can't
            // begin a session (setsid(2)).
            // SAFETY: setpgid takes two numbers. It fails for a session leader, which leads a group
            // already.
            unsafe { libc::setpgid(0, 0) };
        }
        // SAFETY: prctl with these arguments touches no memory.
        if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: getppid takes nothing and can't fail.
        let parent = unsafe { libc::getppid() };
        // We may have died between the fork and the prctl: nobody would send the signal then.
        if parent.cast_unsigned() == us {
            Ok(())
        } else {
            Err(io::Error::other("the parent is gone"))
        }
    };
    // SAFETY: the closure only makes system calls that are safe after a fork; it allocates nothing
    // but on the way out with an error that the standard library turns into a number.
    unsafe { command.pre_exec(die_with_parent) };
}

/// Makes `command` move itself, before it starts, into the cgroups whose `cgroup.procs` are open as
/// `doors`: 0 stands for the writer (cgroups(7)). If it may not, it stays in ours.
pub fn start_in_cgroups(command: &mut Command, doors: &[File]) -> io::Result<()> {
    let doors = doors.iter().map(File::try_clone).collect::<io::Result<Vec<File>>>()?;
    let enter = move || {
        for door in &doors {
            // SAFETY: the descriptor is open, and the pointer is valid for reads of one byte.
            unsafe { libc::write(door.as_raw_fd(), c"0".as_ptr().cast(), 1) };
        }
        Ok(())
    };
    // SAFETY: the closure only makes system calls that are safe after a fork; it allocates nothing.
    unsafe { command.pre_exec(enter) };
    Ok(())
}

/// Gives this thread, and what it starts, a mount namespace of its own; no mount propagates out of
/// it. The namespace and its mounts end with the last thread or process in it.
pub fn private_mounts() -> io::Result<()> {
    // SAFETY: unshare takes a number. Of CLONE_NEWNS it touches this thread alone.
    if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let (root, flags) = (c"/".as_ptr(), libc::MS_REC | libc::MS_PRIVATE);
    let nothing = std::ptr::null();
    // SAFETY: the path ends in NUL; for a change of propagation the other pointers may be null.
    match unsafe { libc::mount(nothing, root, nothing, flags, nothing.cast()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Kills the process group of `leader`, a child of ours that has not been waited for.
pub fn kill_group(leader: u32) {
    let Ok(group) = i32::try_from(leader) else { return };
    // SAFETY: kill takes two numbers. The group is our child's own: it is still there, at least
    // as the child that has not been waited for, so the number can't belong to anybody else.
    unsafe { libc::kill(-group, libc::SIGKILL) };
}

/// Kills every other process of this PID namespace. Only its first process may ask for that: from
/// any other place it would reach the whole machine.
pub fn kill_all_others() -> io::Result<()> {
    if std::process::id() != 1 {
        return Err(io::Error::other("not the first process of a PID namespace"));
    }
    // SAFETY: kill takes two numbers. -1 means every process we may signal but ourselves and the
    // first of the namespace, and the namespace holds only what the trial has started.
    unsafe { libc::kill(-1, libc::SIGKILL) };
    Ok(())
}

/// Kills another process of this PID namespace, under the same condition. One that is gone is gone.
pub fn kill_other(process: u32) {
    let Ok(process) = i32::try_from(process) else { return };
    if std::process::id() == 1 && process > 1 {
        // SAFETY: kill takes two numbers. The process is one other than us, and the namespace holds
        // only what the trial has started.
        unsafe { libc::kill(process, libc::SIGKILL) };
    }
}

/// Sends another process of this PID namespace a signal, under the same condition.
pub fn signal_other(process: u32, signal: i32) -> io::Result<()> {
    let process = libc::pid_t::try_from(process).map_err(io::Error::other)?;
    if std::process::id() != 1 || process <= 1 {
        return Err(io::Error::other("not the first process of a PID namespace"));
    }
    // SAFETY: kill takes two numbers. The process is one other than us, and the namespace holds
    // only what we have started.
    match unsafe { libc::kill(process, signal) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The time this process has run, all its threads together, those that have ended too: up to now,
/// in nanoseconds (clock_gettime(2), CLOCK_PROCESS_CPUTIME_ID).
pub fn process_cpu_ns() -> u64 {
    clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID).unwrap_or(0)
}

/// The same for this thread alone.
#[cfg(test)]
pub fn thread_cpu_ns() -> u64 {
    clock_ns(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0)
}

/// The time another process of this PID namespace has run; `None` where it is gone.
pub fn cpu_ns_of(process: u32) -> Option<u64> {
    let process = libc::pid_t::try_from(process).ok()?;
    let mut clock = libc::CLOCK_PROCESS_CPUTIME_ID;
    // SAFETY: the number of a clock is written where there is one.
    let error = unsafe { libc::clock_getcpuclockid(process, &mut clock) };
    (error == 0).then(|| clock_ns(clock))?
}

fn clock_ns(clock: libc::clockid_t) -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec where there is one.
    match unsafe { libc::clock_gettime(clock, &mut time) } {
        0 => Some(time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()),
        _ => None,
    }
}

/// The time of our children that have ended and were waited for, and of theirs: getrusage(2), in
/// microseconds. The two parts are guessed by ticks, their sum is the scheduler's (cputime_adjust
/// in kernel/sched/cputime.c).
pub fn children_cpu_ns() -> u64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel writes one rusage where there is room for one; all zero is a value, too.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr());
        usage.assume_init()
    };
    let ns = |time: libc::timeval| {
        time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_usec.cast_unsigned() * 1000
    };
    ns(usage.ru_utime) + ns(usage.ru_stime)
}

/// Clock ticks a second, the unit of /proc/stat.
pub fn ticks_per_second() -> u64 {
    // SAFETY: sysconf takes a number.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).unwrap_or(100)
}
