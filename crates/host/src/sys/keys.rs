//! Keys that the kernel keeps (keyrings(7)).

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use libc::{c_long, sock_filter};

use super::filter::{X32, end, filtered, is, load, step};

/// What user `user` reads at `path`, without our power over files.
pub fn read_as(user: u32, path: &Path) -> io::Result<String> {
    let read = || {
        // SAFETY: setfsuid takes a number. It holds for this thread alone, which ends here.
        unsafe { libc::syscall(libc::SYS_setfsuid, c_long::from(user)) };
        let mut text = String::new();
        File::open(path)?.read_to_string(&mut text)?;
        Ok(text)
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, read)?;
        thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread did not end well")))
    })
}

/// linux/audit.h, AUDIT_ARCH_*: callers by the numbers of this program, and by those of 32-bit
/// ones, with the numbers of add_key, request_key and keyctl there.
#[cfg(target_arch = "x86_64")]
const CALLERS: [(u32, [c_long; 3]); 2] = [
    (0xc000_003e, [libc::SYS_add_key, libc::SYS_request_key, libc::SYS_keyctl]),
    (0x4000_0003, [286, 287, 288]),
];
#[cfg(target_arch = "aarch64")]
const CALLERS: [(u32, [c_long; 3]); 2] = [
    (0xc000_00b7, [libc::SYS_add_key, libc::SYS_request_key, libc::SYS_keyctl]),
    (0x4000_0028, [309, 310, 311]),
];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const CALLERS: [(u32, [c_long; 3]); 0] = [];

/// Refuses `command`, once started, and all that it starts the system calls for keys. It takes
/// power in its user namespace, and comes after
/// [`start_within`](super::start_within). Every other call takes some 40 ns longer by it.
pub fn start_without_keys(command: &mut Command) {
    if cfg!(not(any(target_arch = "x86_64", target_arch = "aarch64"))) {
        // What the calls are numbered there is not known here.
        return;
    }
    let program = refusing();
    let refuse = move || filtered(&program, 0).map(drop);
    // SAFETY: the closure only makes system calls that are safe after a fork; it allocates nothing.
    unsafe { command.pre_exec(refuse) };
}

/// The program of the filter, for seccomp(2): `struct seccomp_data` has the number first, and then
/// the caller's architecture. Callers by numbers unknown here can't call at all.
fn refusing() -> Vec<sock_filter> {
    let refusal = libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned();
    let mut program = vec![load(4)];
    for (caller, calls) in CALLERS {
        // Past what follows where it is another.
        program.extend([is(caller, 0, 7), load(0)]);
        program.push(step(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, !X32));
        let after = [2, 1, 0].into_iter();
        program.extend(calls.iter().zip(after).map(|(call, left)| {
            let otherwise = u8::from(left == 0);
            is(*call as u32, left, otherwise)
        }));
        program.extend([end(refusal), end(libc::SECCOMP_RET_ALLOW)]);
    }
    program.push(end(refusal));
    program
}

#[cfg(test)]
mod tests {
    use super::super::filter::answer;
    use super::*;
    use crate::tool::users;

    #[test]
    fn calls_for_keys_are_refused_by_any_number_and_no_others() {
        let program = refusing();
        for (caller, calls) in CALLERS {
            for call in 0..600 {
                let is_of_keys = calls.contains(&c_long::from(call));
                for number in [call, call | X32] {
                    let is_let =
                        answer(&program, caller, number, [0; 6]) == libc::SECCOMP_RET_ALLOW;
                    assert_eq!(is_let, !is_of_keys, "{caller:x}: {number}");
                }
            }
        }
        assert_ne!(answer(&program, 0x1234, 0, [0; 6]), libc::SECCOMP_RET_ALLOW);
    }

    #[test]
    fn a_command_without_keys_starts() {
        let mut command = users(&["true".into()]);
        // Without power, and without no_new_privs, the filter is refused; the kernel has read it.
        start_without_keys(&mut command);
        match command.status() {
            Ok(status) => assert!(status.success()),
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EACCES)),
        }
    }
}
