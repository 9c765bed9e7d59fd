//! Landlock: what a process of a user without power may write to (landlock(7)).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use super::open_files::{close_files, open_any_place};

/// linux/landlock.h, LANDLOCK_ACCESS_FS_*: writing, removing, making, moving between folders, and
/// truncating, as kernels know them one after the other.
const WRITE_FILE: u64 = 1 << 1;
const TRUNCATE: u64 = 1 << 14;
const CHANGES_OF_V2: u64 = WRITE_FILE | (0b11_1111_1111 << 4);
const CREATE_RULESET_VERSION: u32 = 1;
/// LANDLOCK_SCOPE_*, the third word of struct landlock_ruleset_attr after files and network.
const ABSTRACT_SOCKETS: u64 = 1;
const SIGNALS: u64 = 1 << 1;
const RULE_PATH_BENEATH: u32 = 1;

#[repr(C, packed)]
struct PathBeneath {
    allowed_access: u64,
    parent_fd: i32,
}

/// The kernel's version of Landlock. The first would forbid every move between folders.
fn version() -> io::Result<u32> {
    let nothing = std::ptr::null::<u64>();
    // SAFETY: this way to ask takes no memory.
    let version = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, nothing, 0usize, CREATE_RULESET_VERSION)
    };
    match u32::try_from(version) {
        Ok(version) if version >= 2 => Ok(version),
        Ok(_) => Err(io::Error::other("Landlock needs Linux 5.19")),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// What may be written to in `/dev`, being nobody's hardware: null and its like, random, terminals,
/// and FUSE. A user may have access to others: a group's disks, sound, KVM.
const DEVICES: [&str; 9] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/fuse",
];

/// Rules that allow only changes below `folders`, making shared memory, and writing to some devices
/// and to processes' own settings.
pub fn rules(folders: &[&Path]) -> io::Result<OwnedFd> {
    let handled = CHANGES_OF_V2 | if version()? >= 3 { TRUNCATE } else { 0 };
    let rules = ruleset(&[handled])?;
    for folder in folders {
        allow(&rules, folder, handled)?;
    }
    // Other rights can't be given on anything but a folder.
    let writes = handled & (WRITE_FILE | TRUNCATE);
    for device in DEVICES.map(Path::new).into_iter().filter(|it| it.exists()) {
        allow(&rules, device, writes)?;
    }
    if Path::new("/dev/shm").is_dir() {
        allow(&rules, Path::new("/dev/shm"), handled)?;
    }
    allow(&rules, Path::new("/proc"), writes)?;
    Ok(rules)
}

fn allow(rules: &OwnedFd, at: &Path, access: u64) -> io::Result<()> {
    let place = open_any_place(at)?;
    let rule = PathBeneath { allowed_access: access, parent_fd: place.as_raw_fd() };
    let (call, rules) = (libc::SYS_landlock_add_rule, rules.as_raw_fd());
    // SAFETY: the kernel reads the rule, whose layout is its own; the descriptors are open.
    match unsafe { libc::syscall(call, rules, RULE_PATH_BENEATH, &raw const rule, 0u32) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Rules that allow connections only to abstract sockets of processes under the same rules (Linux
/// 6.12, LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET). Mounts and namespaces are left alone.
pub fn rules_of_sockets() -> io::Result<OwnedFd> {
    ruleset(&[0, 0, ABSTRACT_SOCKETS])
}

/// [`rules_of_sockets`], and signals only reach processes under them (LANDLOCK_SCOPE_SIGNAL).
pub fn rules_of_sockets_and_signals() -> io::Result<OwnedFd> {
    ruleset(&[0, 0, ABSTRACT_SOCKETS | SIGNALS])
}

fn ruleset(handled: &[u64]) -> io::Result<OwnedFd> {
    let (call, bytes) = (libc::SYS_landlock_create_ruleset, size_of_val(handled));
    // SAFETY: the kernel reads so many bytes, which are there.
    let rules = unsafe { libc::syscall(call, handled.as_ptr(), bytes, 0u32) };
    let rules = i32::try_from(rules).ok().filter(|&fd| fd >= 0);
    let rules = rules.ok_or_else(io::Error::last_os_error)?;
    // SAFETY: the kernel has just made this descriptor, so nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(rules) })
}

/// Has `rules` hold for this thread, and for all that it starts from now on. It takes power in its
/// user namespace; without that, no_new_privs.
pub fn obey(rules: BorrowedFd<'_>) -> io::Result<()> {
    let (call, rules) = (libc::SYS_landlock_restrict_self, rules.as_raw_fd());
    // SAFETY: the call takes a descriptor, which is borrowed for it, and a number.
    match unsafe { libc::syscall(call, rules, 0u32) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Has `command` start under `rules`. They hold for all that it starts, and it gets no more rights
/// by set-user-ID programs.
pub fn start_under(command: &mut Command, rules: BorrowedFd<'_>) -> io::Result<()> {
    let rules = rules.try_clone_to_owned()?;
    let obey = move || {
        // Rules are asked when a file is opened.
        close_files([rules.as_raw_fd(), -1, -1])?;
        // SAFETY: prctl with these arguments touches no memory.
        match unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } {
            0 => obey(rules.as_fd()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    // SAFETY: the closure only makes system calls that are safe after a fork; it allocates nothing.
    unsafe { command.pre_exec(obey) };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::users;

    #[test]
    #[ignore = "needs root: run ./test"]
    fn no_device_is_opened_for_writing_but_those_that_are_nobodys() {
        let folder = tempfile::tempdir().unwrap();
        let rules = rules(&[folder.path()]).unwrap();
        let opens = |path: &str| {
            let line = format!("exec 3<>{path}");
            let mut command = users(&["sh".into(), "-c".into(), line]);
            start_under(&mut command, rules.as_fd()).unwrap();
            command.stderr(std::process::Stdio::null()).status().unwrap().success()
        };
        assert!(!opens("/dev/loop-control"), "loop devices can be made");
        assert!(!opens("/dev/kmsg"));
        for path in ["/dev/null", "/dev/zero", "/dev/urandom", "/dev/ptmx", "/dev/shm/fsverdict-x"]
        {
            assert!(opens(path), "{path}");
        }
        std::fs::remove_file("/dev/shm/fsverdict-x").unwrap();
        assert!(opens(&folder.path().join("file").display().to_string()));
    }
}
