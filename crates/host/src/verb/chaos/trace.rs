//! What strace(1) does for the campaign: it lists the system calls of an undisturbed run, by step,
//! and makes one of them fail in another run.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// The calls that we make fail: those by which a run changes something, or learns what it must
/// know. strace leaves out calls that it or the processor does not have.
pub const CALLS: &str = "?open,?openat,?openat2,?read,?pread64,?write,?pwrite64,?fsync,?fdatasync,\
    ?syncfs,?ioctl,?mount,?umount2,?mkdir,?mkdirat,?unlink,?unlinkat,?rmdir,?rename,?renameat,\
    ?renameat2,?fallocate,?ftruncate,?flock,?clone,?clone3,?vfork,?fork,?execve,?unshare,?setns,\
    ?pivot_root,?chroot,?getdents64,?chown,?fchown,?fchownat,?chmod,?fchmod,?symlink,?symlinkat,\
    ?pipe2,?socket,?socketpair,?kill,?wait4,?waitid";

/// Before the first trial, between trials, and after the last.
pub const BETWEEN: &str = "outside the trials";

/// The system calls of a run. A call is known by its name and its number among those that its
/// process makes of that name: so strace counts (`when=`).
#[derive(Debug, Default)]
pub struct Calls(BTreeMap<String, Vec<(String, u32)>>);

impl Calls {
    /// Each call with its number, at the step in which any process comes so far first. `steps` are
    /// the names that trials say.
    pub fn read(trace: &str, steps: &BTreeSet<String>) -> Calls {
        let mut lab = None;
        let mut step = BETWEEN.to_string();
        let mut counts: BTreeMap<(u32, &str), u32> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        let mut calls: BTreeMap<String, Vec<(String, u32)>> = BTreeMap::new();
        for line in trace.lines() {
            let Some((process, name, arguments)) = call(line) else { continue };
            let lab = *lab.get_or_insert(process);
            let count = counts.entry((process, name)).or_default();
            *count += 1;
            if let Some(said) = announced(name, arguments).filter(|said| steps.contains(*said)) {
                step = said.into();
            }
            if seen.insert((name, *count)) {
                let of = if process == lab { BETWEEN } else { &step };
                calls.entry(of.into()).or_default().push((name.into(), *count));
            }
        }
        Calls(calls)
    }

    /// The steps with their calls.
    pub fn by_step(&self) -> impl Iterator<Item = (&String, &Vec<(String, u32)>)> {
        self.0.iter()
    }
}

/// Process, name and arguments of a line that begins a call: `12 openat(AT_FDCWD, ...`. strace
/// does not know again the names that it makes up for calls unknown to it.
fn call(line: &str) -> Option<(u32, &str, &str)> {
    let (process, rest) = line.split_once(' ')?;
    let (name, arguments) = rest.trim_start().split_once('(')?;
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_name = !name.is_empty() && !name.starts_with("syscall_") && name.bytes().all(is_letter);
    is_name.then_some((process.parse().ok()?, name, arguments))
}

/// The line that a call writes to standard output.
fn announced<'a>(name: &str, arguments: &'a str) -> Option<&'a str> {
    let text = arguments.strip_prefix("1, \"").filter(|_| name == "write")?;
    text.split_once("\\n\"").map(|(said, _)| said)
}

/// The calls of a run as strace writes them down, counted as far as it has come.
#[derive(Debug, Default)]
pub struct Counted {
    /// How much of the file has been read, and what of it is no whole line yet.
    bytes: u64,
    rest: String,
    counts: BTreeMap<u32, u32>,
    most: u32,
}

impl Counted {
    /// Whether a process has made its `count`-th call of that name, by the trace of a run: then it
    /// has failed, or its signal is on its way.
    pub fn has_reached(&mut self, trace: &Path, name: &str, count: u32) -> bool {
        let mut new = Vec::new();
        let read = File::open(trace).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.bytes))?;
            file.read_to_end(&mut new)
        });
        self.bytes += read.unwrap_or(0) as u64;
        self.rest.push_str(&String::from_utf8_lossy(&new));
        let whole = self.rest.rfind('\n').map_or(0, |end| end + 1);
        let rest = self.rest.split_off(whole);
        for (process, of, _) in self.rest.lines().filter_map(call) {
            if of == name {
                let so_far = self.counts.entry(process).or_default();
                *so_far += 1;
                self.most = self.most.max(*so_far);
            }
        }
        self.rest = rest;
        self.most >= count
    }
}

/// strace's options: to write to `trace`, and to make the `count`-th `call` of each process fail
/// with an error, or send it a signal. As a grandchild (`-D`) it leaves the run our own child.
pub fn options(trace: &Path, fault: Option<(&str, &str, u32)>) -> Vec<String> {
    let mut words: Vec<String> =
        ["strace", "-D", "-f", "--seccomp-bpf", "-s", "32", "-o"].map(String::from).to_vec();
    words.push(trace.display().to_string());
    words.push("-e".into());
    words.push(format!("trace={}", fault.map_or(CALLS, |(call, _, _)| call)));
    if let Some((call, fault, count)) = fault {
        let kind = if fault.starts_with('E') { "error" } else { "signal" };
        words.extend(["-e".into(), format!("inject={call}:{kind}={fault}:when={count}")]);
    }
    words.push("--".into());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_belongs_to_the_step_in_which_it_is_made_first() {
        let trace = "4  openat(AT_FDCWD, \"/x\", O_RDONLY) = 3\n\
                     9  openat(AT_FDCWD, \"/x\", O_RDONLY) = 3\n\
                     9  write(1, \"mkfs\\n\", 5)             = 5\n\
                     9  openat(AT_FDCWD, \"/x\", O_RDONLY <unfinished ...>\n\
                     4  write(1, \"mount\\n\", 6)            = 6\n\
                     9  <... openat resumed>)              = 3\n\
                     12 openat(AT_FDCWD, \"/x\", O_RDONLY) = 3\n\
                     9  write(1, \"mount\\n\", 6)            = 6\n\
                     9  openat(AT_FDCWD, \"/x\", O_RDONLY) = 3\n\
                     9  --- SIGCHLD {si_signo=SIGCHLD} ---\n";
        let steps = ["mkfs", "mount"].map(String::from).into();
        let calls = Calls::read(trace, &steps);
        let of = |step: &str| {
            let found = calls.by_step().find(|(name, _)| *name == step);
            found.map(|(_, calls)| calls.clone()).unwrap_or_default()
        };
        let call = |name: &str, count| (name.to_string(), count);
        assert_eq!(of(BETWEEN), [call("openat", 1),]);
        assert_eq!(of("mkfs"), [call("write", 1), call("openat", 2)]);
        assert_eq!(of("mount"), [call("write", 2), call("openat", 3)]);
    }

    #[test]
    fn a_call_is_reached_when_one_process_has_made_so_many() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let line = |process: u32| format!("{process} mount(\"x\") = 0\n");
        let mut counted = Counted::default();
        let mut text = [line(4), line(5), "4 mou".into()].concat();
        std::fs::write(file.path(), &text).unwrap();
        assert!(!counted.has_reached(file.path(), "mount", 2));
        text += "nt(\"x\") = 0\n";
        std::fs::write(file.path(), &text).unwrap();
        assert!(counted.has_reached(file.path(), "mount", 2));
        assert!(!counted.has_reached(file.path(), "mount", 3));
        assert!(!Counted::default().has_reached(file.path(), "umount2", 1));
    }

    #[test]
    fn strace_is_told_which_call_and_what() {
        let words = options(Path::new("/t"), Some(("mount", "EIO", 3))).join(" ");
        assert!(words.ends_with("-e trace=mount -e inject=mount:error=EIO:when=3 --"), "{words}");
        let words = options(Path::new("/t"), Some(("mount", "KILL", 1))).join(" ");
        assert!(words.contains("inject=mount:signal=KILL:when=1"), "{words}");
    }
}
