//! Writes that the cell refused the work: on what is mounted read-only the kernel answers EROFS
//! (open(2), rename(2) and so on).
//!
//! There is no tracepoint for refusals only, so a small program checks the result of every system
//! call of the machine (`sys_exit`, include/trace/events/syscalls.h), which lengthens each by some
//! 60 ns. It goes on only at EROFS, and there within the trial's PID namespace, outside its mounts.

mod program;

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use fsverdict_core::model::Forbidden;
use thiserror::Error;

use super::btf::{Btf, TYPES};
use super::page_cache::processors;
use crate::sys::{self, MapKind};
use program::{COUNT_BYTES, EXAMPLE_BYTES, EXAMPLES, NAME_AT, NAME_BYTES, TEXT_BYTES, TEXTS_AT};

const MOUNTS: &str = "/proc/self/ns/mnt";
const PROCESSES: &str = "/proc/self/ns/pid";

/// Calls that ask whether one might write: access, faccessat and faccessat2
/// (arch/x86/entry/syscalls/syscall_64.tbl).
const ASKING: [i32; 3] = [21, 269, 439];

/// By what they are called with, calls that write by a path: the number of the argument, and the
/// calls' numbers in the same table.
const PATHS: [(usize, &[u64]); 4] = [
    // truncate, rename, mkdir, rmdir, creat, unlink, chmod, chown, lchown, utime, mknod, utimes,
    // setxattr, lsetxattr, removexattr, lremovexattr; open
    (0, &[76, 82, 83, 84, 85, 87, 90, 92, 94, 132, 133, 235, 188, 189, 197, 198, 2]),
    // link, symlink; openat, mkdirat, mknodat, fchownat, futimesat, unlinkat, renameat, fchmodat,
    // utimensat, renameat2, openat2, fchmodat2
    (1, &[86, 88, 257, 258, 259, 260, 261, 263, 264, 268, 280, 316, 437, 452]),
    // symlinkat
    (2, &[266]),
    // linkat
    (3, &[265]),
];

/// Why refused writes can't be told.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum RefusalsError {
    #[error("the kernel does not describe its types: /{TYPES}: {0}")]
    Types(io::Error),
    #[error("this kernel has no {0}")]
    Missing(&'static str),
    #[error("the kernel takes no program for its tracepoint: {0}")]
    Refused(io::Error),
}

/// Where the kernel keeps what a call was made with and whose namespaces a process is in, and the
/// number of the tracepoint.
#[derive(Debug, PartialEq)]
struct Layout {
    call: i16,
    arguments: [i16; program::TEXTS],
    /// Of a process.
    namespaces: i16,
    /// Of its namespaces.
    mounts: i16,
    processes: i16,
    /// Of each.
    mounts_inode: i16,
    processes_inode: i16,
    /// In a PID namespace: its parent.
    holder: i16,
    ended: u32,
}

impl Layout {
    fn read(root: &Path) -> Result<Layout, RefusalsError> {
        const ENDED: &str = "btf_trace_sys_exit";
        const REGISTERS: &str = "pt_regs";
        const NAMESPACES: [&str; 5] =
            ["task_struct", "nsproxy", "mnt_namespace", "pid_namespace", "ns_common"];
        let data = fs::read(root.join(TYPES)).map_err(RefusalsError::Types)?;
        let btf = Btf::parse(data, &[&[ENDED, REGISTERS][..], &NAMESPACES].concat());
        let btf = btf.ok_or(RefusalsError::Missing("readable BTF"))?;
        let register = |name| {
            let missing = RefusalsError::Missing("registers of an x86-64");
            btf.offset(REGISTERS, name).ok_or(missing)
        };
        let offset = |structure, member| {
            let missing = RefusalsError::Missing("namespaces as Linux 5.11 has them");
            btf.offset(structure, member).ok_or(missing)
        };
        let inode = offset("ns_common", "inum")?;
        Ok(Layout {
            call: register("orig_ax")?,
            arguments: [register("di")?, register("si")?, register("dx")?, register("r10")?],
            namespaces: offset("task_struct", "nsproxy")?,
            mounts: offset("nsproxy", "mnt_ns")?,
            processes: offset("nsproxy", "pid_ns_for_children")?,
            mounts_inode: offset("mnt_namespace", "ns")? + inode,
            processes_inode: offset("pid_namespace", "ns")? + inode,
            holder: offset("pid_namespace", "parent")?,
            ended: btf.typedef(ENDED).ok_or(RefusalsError::Missing("tracepoint sys_exit"))?,
        })
    }
}

/// Refused writes of what is in this process's PID namespace and has other mounts, counted since
/// [`Refusals::watch`].
#[derive(Debug)]
pub struct Refusals {
    counts: OwnedFd,
    examples: OwnedFd,
    processors: usize,
    /// How many were reported.
    told: u64,
    _program: (OwnedFd, OwnedFd),
}

impl Refusals {
    /// Begins to count. Fails where the kernel has no such tracepoint, and without root.
    pub fn watch(root: &Path) -> Result<Refusals, RefusalsError> {
        let layout = Layout::read(root)?;
        let refused = RefusalsError::Refused;
        let counts = sys::bpf_map(MapKind::PerCpuArray, COUNT_BYTES, 1).map_err(refused)?;
        let examples = sys::bpf_map(MapKind::PerCpuArray, EXAMPLE_BYTES, EXAMPLES);
        let examples = examples.map_err(refused)?;
        let target = program::Target {
            layout: &layout,
            mounts: fs::metadata(MOUNTS).map_err(refused)?.ino(),
            processes: fs::metadata(PROCESSES).map_err(refused)?.ino(),
            counts: counts.as_raw_fd(),
            examples: examples.as_raw_fd(),
        };
        let code = program::ended(&target);
        let program = sys::bpf_attach(&code, layout.ended).map_err(refused)?;
        let processors = processors(root).map_err(refused)?;
        Ok(Refusals { counts, examples, processors, told: 0, _program: program })
    }

    /// Why they can't be told here, as far as that shows without trying.
    pub fn why_not(root: &Path) -> Option<&'static str> {
        match root.join(TYPES).exists() {
            _ if !sys::is_root() => Some("that takes root"),
            false => Some("the kernel does not describe its types"),
            true => None,
        }
    }

    /// Those since the last time.
    pub fn more(&mut self) -> io::Result<Forbidden> {
        let mut counts = vec![0; self.processors];
        sys::bpf_lookup_each(&self.counts, 0, &mut counts, 1, self.processors)?;
        let all: u64 = counts.iter().sum();
        let mut forbidden = Forbidden { writes: all - self.told, ..Forbidden::default() };
        if forbidden.writes > 0 {
            // Those told before come again, and are known by their words.
            for number in 0..EXAMPLES {
                self.read_examples(number, &counts, &mut forbidden)?;
            }
        }
        self.told = all;
        Ok(forbidden)
    }

    /// Adds the example of that number of each processor.
    fn read_examples(&self, number: u32, counts: &[u64], to: &mut Forbidden) -> io::Result<()> {
        const WORDS: usize = EXAMPLE_BYTES as usize / 8;
        let mut values = vec![0; WORDS * self.processors];
        let (map, processors) = (&self.examples, self.processors);
        sys::bpf_lookup_each(map, number, &mut values, WORDS, processors)?;
        let is_there = |(_, count): &(&[u64], &u64)| **count > u64::from(number);
        for (example, _) in values.chunks(WORDS).zip(counts).filter(is_there) {
            to.add_first(shown(example));
        }
        Ok(())
    }
}

/// An example as `touch /etc/motd`; the program alone where the call names no path.
fn shown(example: &[u64]) -> String {
    let bytes: Vec<u8> = example.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let text = |at: usize, most: usize| {
        let text = bytes[at..at + most].split(|&byte| byte == 0).next();
        String::from_utf8_lossy(text.unwrap_or_default()).into_owned()
    };
    let name = text(NAME_AT, NAME_BYTES);
    let argument = PATHS.iter().find(|(_, calls)| calls.contains(&example[0]));
    let path = argument.map(|(place, _)| text(TEXTS_AT + place * TEXT_BYTES, TEXT_BYTES));
    match path.filter(|path| !path.is_empty()) {
        Some(path) => format!("{name} {path}"),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake;
    use super::*;

    fn example(call: u64, name: &str, texts: &[&str]) -> Vec<u64> {
        let mut bytes = vec![0; EXAMPLE_BYTES as usize];
        bytes[..8].copy_from_slice(&call.to_ne_bytes());
        bytes[NAME_AT..NAME_AT + name.len()].copy_from_slice(name.as_bytes());
        for (place, text) in texts.iter().enumerate() {
            let at = TEXTS_AT + place * TEXT_BYTES;
            bytes[at..at + text.len()].copy_from_slice(text.as_bytes());
        }
        let words = bytes.chunks(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap()));
        words.collect()
    }

    #[test]
    fn each_call_has_its_path_in_another_argument() {
        let shown = |call, texts: &[&str]| shown(&example(call, "sh", texts));
        let openat = u64::try_from(libc::SYS_openat).unwrap();
        let linkat = u64::try_from(libc::SYS_linkat).unwrap();
        let mkdir = u64::try_from(libc::SYS_mkdir).unwrap();
        assert_eq!(shown(openat, &["", "/etc/x"]), "sh /etc/x");
        assert_eq!(shown(mkdir, &["/etc/y", "/etc/x"]), "sh /etc/y");
        assert_eq!(shown(linkat, &["", "from", "", "to"]), "sh to");
        assert_eq!(shown(openat, &[]), "sh", "what was not copied");
        assert_eq!(shown(1, &["a", "b"]), "sh", "write names none");
        let whole = "x".repeat(TEXT_BYTES);
        assert_eq!(shown(openat, &["", &whole]), format!("sh {whole}"));
    }

    #[test]
    fn a_kernel_without_types_is_told() {
        let error = Refusals::watch(Path::new("/nonexistent")).unwrap_err().to_string();
        assert!(error.starts_with("the kernel does not describe its types: /sys"), "{error}");
        let tree = fake::tree(&[(TYPES, "nothing of the kind")]);
        let error = Refusals::watch(tree.path()).unwrap_err().to_string();
        assert_eq!(error, "this kernel has no readable BTF");
    }
}
