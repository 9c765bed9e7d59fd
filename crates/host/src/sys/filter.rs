//! Filters of system calls: seccomp(2). Their programs are classic BPF, which sees `struct
//! seccomp_data`: the call's number first, then the caller's architecture (linux/audit.h,
//! AUDIT_ARCH_*), and the arguments from byte 16 on.

use std::io;
use std::os::fd::RawFd;

use libc::{c_ulong, sock_filter};

use super::file::retried;

/// The bit that x32's numbers add to those of x86-64 (asm/unistd.h, __X32_SYSCALL_BIT).
pub(super) const X32: u32 = 0x4000_0000;

/// The filter holds for this process; its listener, if one was asked for.
pub(super) fn filtered(program: &[sock_filter], flags: c_ulong) -> io::Result<RawFd> {
    let told = libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
    let begin = |flags: c_ulong| {
        let (call, how) = (libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER);
        // SAFETY: the kernel reads the program, which its owner keeps meanwhile.
        retried(|| unsafe { libc::syscall(call, how, flags, &raw const told) })
    };
    // Kernels before 4.17 don't know the flag, without which old ones slow down all work.
    let begun = begin(flags | libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW).or_else(|_| begin(flags))?;
    Ok(begun as RawFd)
}

pub(super) fn step(code: u32, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

pub(super) fn is(k: u32, yes: u8, no: u8) -> sock_filter {
    let code = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    sock_filter { code, jt: yes, jf: no, k }
}

pub(super) fn load(offset: u32) -> sock_filter {
    step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset)
}

pub(super) fn end(what: u32) -> sock_filter {
    step(libc::BPF_RET | libc::BPF_K, what)
}

/// What the program answers to a call, as far as it is used.
#[cfg(test)]
pub(super) fn answer(program: &[sock_filter], caller: u32, call: u32, arguments: [u64; 6]) -> u32 {
    let (mut at, mut register) = (0, 0);
    loop {
        let sock_filter { code, jt, jf, k } = program[at];
        at += 1;
        match u32::from(code) & 7 {
            libc::BPF_LD => {
                register = match k {
                    0 => call,
                    4 => caller,
                    k => arguments[(k as usize - 16) / 8] as u32,
                }
            }
            libc::BPF_ALU => register &= k,
            libc::BPF_JMP => at += usize::from(if register == k { jt } else { jf }),
            _ => return k,
        }
    }
}
