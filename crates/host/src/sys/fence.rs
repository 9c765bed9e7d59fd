//! Restricts the system's own tools to their work when a stranger chose their arguments.

use std::io;
use std::os::fd::AsFd;

use libc::{c_int, c_long, sock_filter};

use super::children;
use super::filter::{X32, end, filtered, is, load, step};
use super::landlock::{obey, rules_of_sockets_and_signals};
use super::open_files::close_as_programs_start;

/// linux/capability.h: what making a file system takes of root's powers: any file, owners and
/// modes, memory that stays, the kernel's settings of a device, and limits of one's own.
const KEPT: [u32; 7] = [
    0,  // CAP_CHOWN
    1,  // CAP_DAC_OVERRIDE
    3,  // CAP_FOWNER
    4,  // CAP_FSETID
    14, // CAP_IPC_LOCK
    21, // CAP_SYS_ADMIN
    24, // CAP_SYS_RESOURCE
];
/// Versions of capset(2) with two words for each set.
const VERSION_3: u32 = 0x2008_0522;

/// Whose numbers [`REFUSED`] are: linux/audit.h, AUDIT_ARCH_*.
#[cfg(target_arch = "x86_64")]
const OWN: Option<u32> = Some(0xc000_003e);
#[cfg(target_arch = "aarch64")]
const OWN: Option<u32> = Some(0xc000_00b7);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const OWN: Option<u32> = None;

/// open_tree_attr(2), of Linux 6.15.
const OPEN_TREE_ATTR: c_long = 467;
/// What CAP_SYS_ADMIN opens besides settings of devices: mounts, namespaces, other processes, keys,
/// and what the kernel tells of all.
const REFUSED: [c_long; 32] = [
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_open_tree,
    OPEN_TREE_ATTR,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
];
/// FIFREEZE and FITHAW (linux/fs.h), and the shutdown that ext4, XFS and F2FS share
/// (XFS_IOC_GOINGDOWN): on any file system with a file that can be opened.
const FREEZING: [u32; 3] = [0xc004_5877, 0xc004_5878, 0x8004_587d];
/// The namespaces that clone(2) makes.
const NAMESPACES: c_int = libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET;
/// Of `struct seccomp_data`: the first argument's lower half, and the second's.
const FLAGS: u32 = 16;
const REQUEST: u32 = FLAGS + 8;

/// Hides our open files, and those that our starter left us, from what this thread starts from now
/// on.
///
/// # Errors
/// Where the thread can't have a table of open files of its own.
pub fn keep_open_files() -> io::Result<()> {
    // SAFETY: unshare with this flag takes nothing but a number. It holds for this thread alone.
    let unshare = || checked(unsafe { libc::unshare(libc::CLONE_FILES) });
    children::between_starts(unshare)?;
    close_as_programs_start()
}

/// Takes from this thread, and from all that it starts from now on, what tools need not: powers of
/// root, and ways to mounts, namespaces, keys and processes of others. Of these, signals are kept
/// from Linux 6.12 on.
///
/// # Errors
/// Where the kernel refuses a part of it that it has.
pub fn fence() -> io::Result<()> {
    // SAFETY: unshare with this flag takes nothing but a number. It holds for this thread alone.
    match checked(unsafe { libc::unshare(libc::CLONE_NEWIPC) }) {
        // A kernel without such namespaces (CONFIG_IPC_NS).
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
        done => done?,
    }
    // Not every kernel has them.
    if let Ok(rules) = rules_of_sockets_and_signals() {
        obey(rules.as_fd())?;
    }
    if let Some(program) = OWN.map(refusing) {
        filtered(&program, 0)?;
    }
    drop_powers()
}

fn checked(answer: c_int) -> io::Result<()> {
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Leaves [`KEPT`] to this thread, and to whatever program it starts: capabilities(7),
/// "Transformation of capabilities during execve()".
fn drop_powers() -> io::Result<()> {
    // What the kernel does not know ends them.
    for power in 0..64_u32 {
        if KEPT.contains(&power) {
            continue;
        }
        // One that is gone already may not be dropped without CAP_SETPCAP.
        // SAFETY: prctl with these arguments touches no memory.
        if unsafe { libc::prctl(libc::PR_CAPBSET_READ, power, 0, 0, 0) } == 0 {
            continue;
        }
        // SAFETY: the same.
        let dropped = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, power, 0, 0, 0) };
        match checked(dropped) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => break,
            done => done?,
        }
    }
    let header = [VERSION_3, 0];
    let mut sets = [[0_u32; 3]; 2];
    let call = |number, sets: *mut [u32; 3]| {
        // SAFETY: the kernel reads the header, and reads or writes two times three words.
        checked(unsafe { libc::syscall(number, header.as_ptr(), sets) } as c_int)
    };
    call(libc::SYS_capget, sets.as_mut_ptr())?;
    let kept = KEPT.iter().fold(0, |sum, power| sum | 1 << power);
    // Effective, permitted, and those that a program inherits whatever it is.
    let [[effective, permitted, _], _] = sets;
    sets = [[effective & kept, permitted & kept, 0], [0; 3]];
    call(libc::SYS_capset, sets.as_mut_ptr())
}

/// The program of the filter. Calls by another system's numbers all fail.
fn refusing(own: u32) -> Vec<sock_filter> {
    let refusal = end(libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned());
    let mut program = vec![load(4), is(own, 1, 0), refusal, load(0)];
    program.push(step(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, !X32));
    for call in REFUSED {
        program.extend([is(call as u32, 0, 1), refusal]);
    }
    // clone3's flags lie in memory, which no filter sees: libraries go on with clone.
    let unknown = end(libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned());
    program.extend([is(libc::SYS_clone3 as u32, 0, 1), unknown]);
    program.extend([is(libc::SYS_clone as u32, 0, 5), load(FLAGS)]);
    program.push(step(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, NAMESPACES.cast_unsigned()));
    program.extend([is(0, 0, 1), end(libc::SECCOMP_RET_ALLOW), refusal]);
    program.extend([is(libc::SYS_ioctl as u32, 1, 0), end(libc::SECCOMP_RET_ALLOW), load(REQUEST)]);
    for request in FREEZING {
        program.extend([is(request, 0, 1), refusal]);
    }
    program.push(end(libc::SECCOMP_RET_ALLOW));
    program
}

#[cfg(test)]
mod tests {
    use super::super::filter::answer;
    use super::*;
    use crate::tool;

    #[test]
    fn what_tools_need_not_is_refused_and_nothing_else() {
        let Some(own) = OWN else { return };
        let program = refusing(own);
        let allowed = |call: u32, request: u64| {
            let arguments = [3, request, 0, 0, 0, 0];
            answer(&program, own, call, arguments) == libc::SECCOMP_RET_ALLOW
        };
        for call in 0..600 {
            let call_long = c_long::from(call);
            let is_refused = REFUSED.contains(&call_long) || call_long == libc::SYS_clone3;
            for number in [call, call | X32] {
                assert_eq!(allowed(number, 7), !is_refused, "{number}");
            }
        }
        let clone = |flags: c_int| {
            let arguments = [flags.cast_unsigned().into(), 0, 0, 0, 0, 0];
            answer(&program, own, libc::SYS_clone as u32, arguments) == libc::SECCOMP_RET_ALLOW
        };
        assert!(clone(libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD));
        assert!(!clone(libc::CLONE_NEWUSER | libc::CLONE_NEWNET | libc::SIGCHLD));
        assert!(!clone(libc::CLONE_NEWNS));
        for request in FREEZING {
            assert!(!allowed(libc::SYS_ioctl as u32, request.into()));
            assert!(allowed(libc::SYS_write as u32, request.into()));
        }
        assert_ne!(answer(&program, 0x1234, 0, [0; 6]), libc::SECCOMP_RET_ALLOW);
    }

    #[test]
    #[ignore = "needs root: run ./test"]
    fn a_fenced_thread_and_its_tools_have_few_powers() {
        let powers = || {
            fence().unwrap();
            tool::run_words(&["cat", "/proc/self/status"]).unwrap()
        };
        let thread = std::thread::Builder::new().spawn(powers).unwrap();
        let status = thread.join().unwrap();
        let of = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            u64::from_str_radix(line.trim(), 16).unwrap()
        };
        let kept = KEPT.iter().fold(0, |sum, power| sum | 1 << power);
        assert_eq!(of("CapEff:") & !kept, 0, "{status}");
        assert_eq!(of("CapBnd:") & !kept, 0, "{status}");
        assert_eq!(of("CapInh:"), 0, "{status}");
        // Other threads keep theirs.
        let own = tool::run_words(&["cat", "/proc/self/status"]).unwrap();
        assert_ne!(own.lines().find(|line| line.starts_with("CapBnd:")), None);
        assert!(!own.contains(&format!("CapBnd:\t{kept:016x}")), "{own}");
    }
}
