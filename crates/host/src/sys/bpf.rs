//! Small programs that the kernel runs at its tracepoints: bpf(2).
//!
//! Everything is held by descriptors: a program goes with the process that loaded it, even if that
//! is killed.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Commands, program and attach types of include/uapi/linux/bpf.h.
const MAP_CREATE: libc::c_int = 0;
const MAP_LOOKUP_ELEM: libc::c_int = 1;
const PROG_LOAD: libc::c_int = 5;
const RAW_TRACEPOINT_OPEN: libc::c_int = 17;
const PROG_TYPE_TRACING: u32 = 26;
const TRACE_RAW_TP: u32 = 23;

/// Kinds of maps.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub enum MapKind {
    /// Values by number, each processor with its own.
    PerCpuArray = 6,
    /// Values by key; the longest unused one makes room for a new one.
    LruHash = 9,
}

#[repr(C)]
struct MapCreate {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
    flags: u32,
}

#[repr(C)]
struct MapElement {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// Of `union bpf_attr` what loading takes, up to `attach_btf_obj_fd`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct ProgLoad {
    kind: u32,
    instruction_count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    attach_kind: u32,
    btf: u32,
    function_record_bytes: u32,
    functions: u64,
    function_count: u32,
    line_record_bytes: u32,
    lines: u64,
    line_count: u32,
    attach_btf_id: u32,
    attach_btf_object: u32,
    padding: u32,
}

#[repr(C)]
struct RawTracepoint {
    name: u64,
    program: u32,
    padding: u32,
}

/// bpf(2) with an attribute of its command's.
///
/// SAFETY: every pointer within `attribute` must be good for what the command does with it.
unsafe fn bpf<T>(command: libc::c_int, attribute: &T) -> io::Result<libc::c_long> {
    let bytes = size_of::<T>();
    // SAFETY: the kernel reads the attribute, which is as long as we say; the caller answers for
    // the pointers in it.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, &raw const *attribute, bytes) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// The same for a command that makes a descriptor.
///
/// SAFETY: as for [`bpf`], and `command` must be such a one.
unsafe fn bpf_made<T>(command: libc::c_int, attribute: &T) -> io::Result<OwnedFd> {
    // SAFETY: as the caller says.
    let made = unsafe { bpf(command, attribute) }?;
    let fd = i32::try_from(made).map_err(io::Error::other)?;
    // SAFETY: the descriptor was made just now, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn number(fd: &OwnedFd) -> u32 {
    fd.as_raw_fd().cast_unsigned()
}

/// Makes a map of `entries` values of `value_bytes` with keys of four bytes.
pub fn bpf_map(kind: MapKind, value_bytes: u32, entries: u32) -> io::Result<OwnedFd> {
    let attribute = MapCreate { kind: kind as u32, key_bytes: 4, value_bytes, entries, flags: 0 };
    // SAFETY: there is no pointer in it.
    unsafe { bpf_made(MAP_CREATE, &attribute) }
}

/// The value of entry `key` of a per-processor array: `values` has room for each processor's, one
/// after another (include/uapi/linux/bpf.h, "BPF_MAP_LOOKUP_ELEM").
///
/// # Panics
/// Where `values` is shorter than `value_words` for each of `processors`.
pub fn bpf_lookup_each(
    map: &OwnedFd,
    key: u32,
    values: &mut [u64],
    value_words: usize,
    processors: usize,
) -> io::Result<()> {
    assert!(values.len() >= value_words * processors, "the kernel would write beyond them");
    let attribute = MapElement {
        map: number(map),
        padding: 0,
        key: (&raw const key) as u64,
        value: values.as_mut_ptr() as u64,
        flags: 0,
    };
    // SAFETY: the kernel reads a key of four bytes, as all our maps have, and writes a value for
    // each possible processor, for which there is room.
    unsafe { bpf(MAP_LOOKUP_ELEM, &attribute) }.map(|_| ())
}

/// Asks again, for what the kernel's check says of the program: the end of it.
fn why_refused(error: io::Error, attribute: &ProgLoad) -> io::Error {
    let mut log = vec![0_u8; 1 << 16];
    let (log_bytes, place) = (log.len() as u32, log.as_mut_ptr() as u64);
    let attribute = ProgLoad { log_level: 1, log_bytes, log: place, ..*attribute };
    // SAFETY: what the first attempt was given is there still, and the kernel writes no more to
    // the log than it has room for.
    let _ = unsafe { bpf_made(PROG_LOAD, &attribute) };
    let said = String::from_utf8_lossy(log.split(|&byte| byte == 0).next().unwrap_or_default());
    match said.lines().rfind(|line| !line.starts_with("processed ")) {
        Some(line) => io::Error::other(format!("{error}: {line}")),
        None => error,
    }
}

/// Loads a program for the tracepoint whose type has the number `attach_btf_id`, and lets the
/// kernel run it there as long as the returned descriptors are open.
///
/// The kernel checks the program before it takes it: one that could read or write where it should
/// not is refused. It asks for the GPL where a program reads the kernel's structures.
pub fn bpf_attach(program: &[u64], attach_btf_id: u32) -> io::Result<(OwnedFd, OwnedFd)> {
    let attribute = ProgLoad {
        kind: PROG_TYPE_TRACING,
        instruction_count: u32::try_from(program.len()).map_err(io::Error::other)?,
        instructions: program.as_ptr() as u64,
        license: c"Dual MIT/GPL".as_ptr() as u64,
        attach_kind: TRACE_RAW_TP,
        attach_btf_id,
        ..ProgLoad::default()
    };
    // SAFETY: the kernel reads so many instructions, and a text that ends in NUL.
    let loaded = unsafe { bpf_made(PROG_LOAD, &attribute) };
    let loaded = loaded.map_err(|error| why_refused(error, &attribute))?;
    let attribute = RawTracepoint { name: 0, program: number(&loaded), padding: 0 };
    // SAFETY: the kernel knows the tracepoint from the program: there is no name.
    let attached = unsafe { bpf_made(RAW_TRACEPOINT_OPEN, &attribute) }?;
    Ok((loaded, attached))
}
