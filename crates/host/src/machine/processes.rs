//! The processes of a trial's own PID namespace, in which the trial is the first: those that
//! belong to its file system, those that serve its work, and all others, which its work has
//! started; and what processes have read and written.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::sys;

/// Processes that belong to the file system: a daemon that serves it, the cleaner of NILFS2.
#[derive(Debug, Default)]
pub struct Processes {
    residents: BTreeSet<u32>,
    /// Left running by what goes before the work: a database's server.
    servers: BTreeSet<u32>,
}

impl Processes {
    /// Those that are there now belong to the file system: nothing else has been started yet.
    pub fn settle_in(&mut self) {
        self.residents = others();
    }

    /// The threads of processes that belong to the file system.
    pub fn resident_threads(&self) -> BTreeSet<u32> {
        self.residents
            .iter()
            .flat_map(|process| numbers_in(Path::new(&format!("/proc/{process}/task"))))
            .collect()
    }

    /// Those that are there now, and do not belong to the file system, serve the work.
    pub fn settle_servers(&mut self) {
        self.servers = self.left();
    }

    /// Something serves the work.
    pub fn has_servers(&self) -> bool {
        !self.servers.is_empty()
    }

    /// Those that serve the work.
    pub fn servers(&self) -> &BTreeSet<u32> {
        &self.servers
    }

    /// How many the work has left running, those aside that serve it and what these have started;
    /// none where the trial has no namespace of its own.
    pub fn strangers(&self) -> u32 {
        let left = self.left().into_iter();
        left.filter(|&process| !descends(process, parent, &self.servers)).count() as u32
    }

    fn left(&self) -> BTreeSet<u32> {
        others().difference(&self.residents).copied().collect()
    }

    /// Ends all but those who belong to the file system; whether they are gone.
    pub fn end_strangers(&mut self) -> bool {
        self.servers.clear();
        until_none(|| {
            let left = self.left();
            left.iter().for_each(|&process| sys::kill_other(process));
            left.is_empty()
        })
    }

    /// Ends all there are: what belonged to the file system has nothing to do any more.
    pub fn end_all(&mut self) {
        self.residents.clear();
        until_none(|| {
            let left = !others().is_empty();
            !left || sys::kill_all_others().is_err()
        });
    }
}

/// Killed is not gone: a moment later they hold nothing any more; on a busy machine a long one.
fn until_none(mut none_is_left: impl FnMut() -> bool) -> bool {
    const PAUSE: Duration = Duration::from_millis(1);
    for _ in 0..30_000 {
        if none_is_left() {
            return true;
        }
        std::thread::sleep(PAUSE);
    }
    false
}

/// All processes of the namespace but the first, which we are.
fn others() -> BTreeSet<u32> {
    if std::process::id() != 1 {
        return BTreeSet::new();
    }
    sys::reap_all();
    numbers_in(Path::new("/proc")).filter(|&process| process != 1).collect()
}

/// `process` is one of `ancestors`, or was started by one, or by one that was.
pub fn descends(
    mut process: u32,
    parent: impl Fn(u32) -> Option<u32>,
    ancestors: &BTreeSet<u32>,
) -> bool {
    while !ancestors.contains(&process) {
        match parent(process) {
            Some(above) if above > 1 => process = above,
            _ => return false,
        }
    }
    true
}

/// The parent of `process`.
fn parent(process: u32) -> Option<u32> {
    Some(name_and_parent(Path::new("/"), process)?.1)
}

/// The name of `process`, and its parent.
pub fn name_and_parent(root: &Path, process: u32) -> Option<(String, u32)> {
    let stat = Stat::read(&root.join(format!("proc/{process}")))?;
    let parent = stat.parent()?;
    Some((stat.name, parent))
}

/// What the kernel tells of a process or a thread: proc_pid_stat(5).
#[derive(Debug)]
pub struct Stat {
    /// What it is called, which may hold anything.
    pub name: String,
    rest: String,
}

impl Stat {
    /// The one in `folder` of `/proc`; `None` where it is gone.
    pub fn read(folder: &Path) -> Option<Stat> {
        let text = fs::read_to_string(folder.join("stat")).ok()?;
        let (name, rest) = text.rsplit_once(')')?;
        Some(Stat { name: name.split_once('(')?.1.into(), rest: rest.into() })
    }

    /// A field that is a number, by its number in the manual.
    pub fn field(&self, number: usize) -> Option<u64> {
        // The first after the name is the third.
        self.rest.split_whitespace().nth(number.checked_sub(3)?)?.parse().ok()
    }

    /// Its parent.
    pub fn parent(&self) -> Option<u32> {
        self.field(4)?.try_into().ok()
    }

    /// When it began, in ticks since the machine did: another with its number did at another time.
    pub fn began(&self) -> Option<u64> {
        self.field(22)
    }

    /// It is a thread of the kernel.
    pub fn is_kernels(&self) -> bool {
        // PF_KTHREAD of include/linux/sched.h.
        const KERNEL_THREAD: u64 = 0x0020_0000;
        self.field(9).is_some_and(|flags| flags & KERNEL_THREAD != 0)
    }
}

/// `process` is there, and no zombie: the third field of proc_pid_stat(5).
pub fn is_running(root: &Path, process: u32) -> bool {
    let text = fs::read_to_string(root.join(format!("proc/{process}/stat"))).unwrap_or_default();
    let state = text.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| !['Z', 'X'].contains(&state))
}

/// The same, and `parent` has started it.
pub fn is_running_child(root: &Path, process: u32, parent: u32) -> bool {
    let its = name_and_parent(root, process).is_some_and(|(_, above)| above == parent);
    its && is_running(root, process)
}

/// What threads of this process read and write while the work goes on and for none of it:
/// `/proc/self/io` has it, too.
pub struct Aside {
    read_bytes: AtomicU64,
    written_bytes: AtomicU64,
}

/// That of this process.
pub static ASIDE: Aside = Aside { read_bytes: AtomicU64::new(0), written_bytes: AtomicU64::new(0) };

impl Aside {
    /// Adds what was read.
    pub fn read(&self, bytes: usize) {
        self.read_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Adds what was written.
    pub fn written(&self, bytes: usize) {
        self.written_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// All so far: read and written.
    pub fn so_far(&self) -> [u64; 2] {
        [&self.read_bytes, &self.written_bytes].map(|bytes| bytes.load(Ordering::Relaxed))
    }
}

/// What a process and its ended and awaited children have read and written so far:
/// proc_pid_io(5); kernel/exit.c adds a child's to its parent's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Io {
    /// Passed to read(2) and its like, pipes included.
    pub passed_read_bytes: u64,
    /// Passed to write(2) and its like, pipes included.
    pub passed_write_bytes: u64,
    /// Fetched from disks.
    pub fetched_bytes: u64,
    /// Page cache made dirty and direct writes, in whole pages.
    pub stored_bytes: u64,
    /// Of those, thrown away before they were written back.
    pub cancelled_bytes: u64,
}

impl Io {
    /// What `file`, `/proc/PID/io`, tells; `None` where the process is gone.
    pub fn read(file: &Path) -> Option<Io> {
        let text = fs::read_to_string(file).ok()?;
        let field = |name: &str| {
            text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok())
        };
        Some(Io {
            passed_read_bytes: field("rchar:")?,
            passed_write_bytes: field("wchar:")?,
            fetched_bytes: field("read_bytes:")?,
            stored_bytes: field("write_bytes:")?,
            cancelled_bytes: field("cancelled_write_bytes:")?,
        })
    }

    /// Without what this process has read, and written to files on disks or in memory, that is no
    /// part of the work.
    pub fn less(self, read_bytes: u64, written_bytes: u64, in_memory: bool) -> Io {
        let stored_bytes = if in_memory { 0 } else { written_bytes };
        Io {
            passed_read_bytes: self.passed_read_bytes.saturating_sub(read_bytes),
            passed_write_bytes: self.passed_write_bytes.saturating_sub(written_bytes),
            stored_bytes: self.stored_bytes.saturating_sub(stored_bytes),
            ..self
        }
    }

    /// Bytes written to files. `passed` counts pipes and /dev/null, `stored` counts whole pages:
    /// the smaller of the two is closer. What is stored in memory counts as none, so [`Io::less`]
    /// may leave less than there was before.
    pub fn written_since(&self, before: &Io) -> u64 {
        let cancelled = self.cancelled_bytes.saturating_sub(before.cancelled_bytes);
        let stored = self.stored_bytes.saturating_sub(before.stored_bytes);
        let passed = self.passed_write_bytes.saturating_sub(before.passed_write_bytes);
        stored.saturating_sub(cancelled).min(passed)
    }
}

/// The entries of `directory` that are numbers; none where it is gone.
pub fn numbers_in(directory: &Path) -> impl Iterator<Item = u32> + use<> {
    let names = fs::read_dir(directory).into_iter().flatten().flatten().map(|e| e.file_name());
    names.filter_map(|name| name.to_str()?.parse().ok())
}

/// Nanoseconds since the kernel began, to a hundredth of a second: proc_uptime(5).
pub fn uptime_ns() -> u64 {
    let text = fs::read_to_string("/proc/uptime").unwrap_or_default();
    let seconds = text.split(' ').next().and_then(|word| word.parse::<f64>().ok());
    seconds.map_or(0, |seconds| (seconds * 1e9) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_starts_is_the_servers() {
        let parent =
            |process: u32| [None, None, Some(1), Some(2), Some(3), Some(1)][process as usize];
        let of = |server| (2..6).filter(move |&it| descends(it, parent, &BTreeSet::from([server])));
        assert_eq!(of(2).collect::<Vec<_>>(), [2, 3, 4]);
        assert_eq!(of(5).collect::<Vec<_>>(), [5]);
        assert!(!descends(4, |_| None, &BTreeSet::from([2])), "it is gone");
    }

    #[test]
    fn our_parent_is_the_one_the_system_says() {
        assert_eq!(parent(std::process::id()), Some(std::os::unix::process::parent_id()));
    }
}
