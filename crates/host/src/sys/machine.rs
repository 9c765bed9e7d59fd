//! What the first process of a machine does: mounts, kernel modules, the machine's end.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// mount(2) of a file system of the kernel's own, `proc` or `sysfs`, without options.
pub fn mount_kernel(kind: &CStr, at: &CStr) -> io::Result<()> {
    let (kind, at) = (kind.as_ptr(), at.as_ptr());
    // SAFETY: the names end in NUL and are borrowed for the whole call; there is no data.
    match unsafe { libc::mount(kind, at, kind, 0, std::ptr::null()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// init_module(2), which every kernel has; finit_module(2) came with Linux 3.8. One that is loaded
/// already is no error.
pub fn load_module(module: &[u8], parameters: &CStr) -> io::Result<()> {
    let (start, len) = (module.as_ptr(), module.len());
    // SAFETY: the module is valid for reads of its length, and its parameters end in NUL.
    match unsafe { libc::syscall(libc::SYS_init_module, start, len, parameters.as_ptr()) } {
        0 => Ok(()),
        _ => match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::EEXIST) => Ok(()),
            error => Err(error),
        },
    }
}

/// reboot(2): ends the machine at once. Only its first process may ask for that.
pub fn restart() -> io::Result<()> {
    if std::process::id() != 1 {
        return Err(io::Error::other("not the first process of a machine"));
    }
    // SAFETY: sync and reboot take no memory of ours.
    unsafe {
        libc::sync();
        libc::reboot(libc::RB_AUTOBOOT);
    }
    Err(io::Error::last_os_error())
}

/// QEMU emulates this machine's processors: CPUID, leaf 0x4000_0000 (target/i386/cpu.c,
/// `cpu_x86_cpuid`).
pub fn is_emulated() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::__cpuid;
        // A hypervisor is there: bit 31 (the same).
        let is_guest = __cpuid(1).ecx >> 31 == 1;
        let says = __cpuid(0x4000_0000);
        let name = [says.ebx, says.ecx, says.edx].map(u32::to_le_bytes);
        is_guest && name.as_flattened() == b"TCGTCGTCGTCG"
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// The release of the running kernel: uname(2).
pub fn kernel_release() -> String {
    let mut name = std::mem::MaybeUninit::<libc::utsname>::zeroed();
    // SAFETY: the kernel writes one utsname where there is room for one, and every field that it
    // leaves alone is zero, which is a value.
    let name = unsafe {
        libc::uname(name.as_mut_ptr());
        name.assume_init()
    };
    // SAFETY: the field is an array that ends in NUL (it is zero where the kernel wrote nothing).
    unsafe { CStr::from_ptr(name.release.as_ptr()) }.to_string_lossy().into_owned()
}

/// Switches the loopback interface on: netdevice(7), `SIOCSIFFLAGS`.
pub fn loopback_up() -> io::Result<()> {
    // SAFETY: socket takes no memory of ours.
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor, so nobody else owns it.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    // SAFETY: every field of an ifreq may be zero.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as i16;
    let request = std::ptr::from_ref(&request);
    // SAFETY: the request is whole, its name ends in NUL, and the kernel only reads it.
    match unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, request) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
