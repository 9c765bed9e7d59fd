//! The kernel's threads: `/proc/PID/schedstat` of each, whose first number is the time it has run
//! in nanoseconds (Documentation/scheduler/sched-stats.rst).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::machine::processes::{Stat, numbers_in};

/// How often they are looked at meanwhile. A worker ends after five minutes without work
/// (IDLE_WORKER_TIMEOUT in kernel/workqueue.c), and so has been looked at since its last.
const PERIOD: Duration = Duration::from_secs(60);

/// What a thread had run at the start, and when it was looked at last.
#[derive(Clone, Copy, Debug)]
struct Ran {
    first_ns: u64,
    last_ns: u64,
}

/// All threads of the kernel. The kernel does not tell which of them works for which file system:
/// shared workers do write-back, I/O completion and most of the work of Btrfs and XFS.
#[derive(Debug)]
pub(in crate::probe) struct KernelThreads {
    proc: PathBuf,
    threads: BTreeMap<u32, Ran>,
    /// Processes, which are not looked at again.
    others: BTreeSet<u32>,
    looked: Instant,
}

impl KernelThreads {
    /// Those in `proc`; `None` where there are none to be seen, as in a container, or the kernel
    /// doesn't tell their time.
    pub fn open(proc: &Path) -> Option<KernelThreads> {
        let (threads, others) = (BTreeMap::new(), BTreeSet::new());
        let mut all = KernelThreads { proc: proc.into(), threads, others, looked: Instant::now() };
        all.look();
        (!all.threads.is_empty()).then_some(all)
    }

    /// Counts from now on.
    pub fn start(&mut self) {
        self.look();
        for ran in self.threads.values_mut() {
            ran.first_ns = ran.last_ns;
        }
    }

    /// Looks at them when it is time for it.
    pub fn look_now_and_then(&mut self) {
        if self.looked.elapsed() >= PERIOD {
            self.look();
        }
    }

    /// What they have run since the start, including those that have ended.
    pub fn worked_ns(&mut self) -> u64 {
        self.look();
        self.threads.values().map(|ran| ran.last_ns - ran.first_ns).sum()
    }

    fn look(&mut self) {
        self.looked = Instant::now();
        let present: BTreeSet<u32> = numbers_in(&self.proc).collect();
        self.others.retain(|process| present.contains(process));
        for &number in &present {
            if self.others.contains(&number) {
                continue;
            }
            let known = self.threads.contains_key(&number);
            match (known || self.is_kernel_thread(number)).then(|| self.ran_ns(number)) {
                Some(Some(now_ns)) => {
                    let ran = self.threads.entry(number);
                    let ran = ran.or_insert(Ran { first_ns: 0, last_ns: 0 });
                    ran.last_ns = ran.last_ns.max(now_ns);
                }
                // It has ended meanwhile.
                Some(None) => {}
                None => {
                    self.others.insert(number);
                }
            }
        }
    }

    fn is_kernel_thread(&self, number: u32) -> bool {
        Stat::read(&self.proc.join(number.to_string())).is_some_and(|stat| stat.is_kernels())
    }

    fn ran_ns(&self, number: u32) -> Option<u64> {
        let text = fs::read_to_string(self.proc.join(format!("{number}/schedstat"))).ok()?;
        text.split_whitespace().next()?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::fake;
    use super::*;

    fn thread(tree: &tempfile::TempDir, number: u32, flags: u64, ran_ns: u64) {
        let stat = format!("{number} (kworker/u8:1-) (x) I 2 0 0 0 -1 {flags} 0 0 0 0\n");
        fake::write(tree, &format!("{number}/stat"), &stat);
        fake::write(tree, &format!("{number}/schedstat"), &format!("{ran_ns} 77 3\n"));
    }

    #[test]
    fn threads_of_the_kernel_are_added_up_and_processes_left_out() {
        let tree = fake::tree(&[("stat", "cpu 1 2 3 4\n")]);
        thread(&tree, 12, 0x0420_8060, 1_000);
        thread(&tree, 13, 0x0420_8060, 50);
        thread(&tree, 700, 0x0040_0100, 9_000);
        let mut threads = KernelThreads::open(tree.path()).unwrap();
        thread(&tree, 12, 0x0420_8060, 1_500);
        threads.start();
        thread(&tree, 12, 0x0420_8060, 2_500);
        thread(&tree, 700, 0x0040_0100, 19_000);
        assert_eq!(threads.worked_ns(), 1_000);
        // One begins; another ends, and what it did stays done.
        thread(&tree, 14, 0x0020_0040, 30);
        fs::remove_dir_all(tree.path().join("12")).unwrap();
        assert_eq!(threads.worked_ns(), 1_030);
    }

    #[test]
    fn a_container_shows_none() {
        let tree = fake::tree(&[]);
        thread(&tree, 1, 0x0040_0100, 9_000);
        assert!(KernelThreads::open(tree.path()).is_none());
        assert!(KernelThreads::open(&tree.path().join("nowhere")).is_none());
    }
}
