//! The CPU time of the trial's own processes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use fsverdict_core::model::CpuClock;

use crate::machine::cgroup::Hierarchy;
use crate::machine::processes::{Stat, descends, name_and_parent, numbers_in};
use crate::sys;

/// A file of the trial's own cgroup that tells the time of all that ran in it, and how it does so.
#[derive(Debug, PartialEq, Eq)]
enum Cgroup {
    /// `cpuacct.usage`, in nanoseconds (Documentation/admin-guide/cgroup-v1/cpuacct.rst).
    First(PathBuf),
    /// `cpu.stat`, in microseconds (Documentation/admin-guide/cgroup-v2.rst).
    Second(PathBuf),
}

impl Cgroup {
    /// The trial's own, if it has been put into one: the finer clock, if it has both.
    fn find(root: &Path) -> Option<Cgroup> {
        let first =
            || Some(Cgroup::First(Hierarchy::First("cpuacct").own(root)?.join("cpuacct.usage")));
        let second = || {
            let own = Hierarchy::Unified.own(root)?;
            // Where devices are held down in it, threads of the kernel are, too.
            let limited = fs::read_to_string(own.join("io.max")).is_ok_and(|it| !it.is_empty());
            (!limited).then(|| Cgroup::Second(own.join("cpu.stat")))
        };
        let found = first().filter(|found| found.read().is_some());
        found.or_else(second).filter(|found| found.read().is_some())
    }

    fn read(&self) -> Option<u64> {
        match self {
            Cgroup::First(file) => fs::read_to_string(file).ok()?.trim().parse().ok(),
            Cgroup::Second(file) => {
                let text = fs::read_to_string(file).ok()?;
                let usage = text.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
                Some(usage.trim().parse::<u64>().ok()? * 1000)
            }
        }
    }
}

/// The clock of the trial's processes.
#[derive(Debug)]
pub(super) struct WorkClock {
    cgroup: Option<Cgroup>,
    root: PathBuf,
    tick_ns: u64,
}

impl WorkClock {
    /// The best there is.
    pub fn open(root: &Path) -> WorkClock {
        let tick_ns = 1_000_000_000 / sys::ticks_per_second();
        WorkClock { cgroup: Cgroup::find(root), root: root.into(), tick_ns }
    }

    /// What it is.
    pub fn kind(&self) -> CpuClock {
        if self.cgroup.is_some() { CpuClock::Cgroup } else { CpuClock::Processes }
    }

    /// Before the work: what takes long is read first, ourselves last.
    pub fn read_first(&self) -> u64 {
        self.of_cgroup().unwrap_or_else(|| {
            let others_ns = self.others_ns();
            others_ns + own_ns()
        })
    }

    /// After the work: the other way round.
    pub fn read_last(&self) -> u64 {
        self.of_cgroup().unwrap_or_else(|| {
            let own_ns = own_ns();
            own_ns + self.others_ns()
        })
    }

    /// Reading our own clock charges what we have run so far to our cgroup, too
    /// (task_sched_runtime in kernel/sched/core.c).
    fn of_cgroup(&self) -> Option<u64> {
        sys::process_cpu_ns();
        self.cgroup.as_ref()?.read()
    }

    /// That of the processes that we have started and that still run, and of their ended children.
    fn others_ns(&self) -> u64 {
        others(&self.root).map(|process| self.of_process_ns(process)).sum()
    }

    fn of_process_ns(&self, process: u32) -> u64 {
        let own_ns = sys::cpu_ns_of(process).unwrap_or(0);
        own_ns + children_ticks(&self.root, process).unwrap_or(0) * self.tick_ns
    }
}

/// Our own time, and that of our children that have ended.
fn own_ns() -> u64 {
    sys::process_cpu_ns() + sys::children_cpu_ns()
}

/// In a PID namespace of our own all processes but the first, which is us; elsewhere our
/// descendants, which may leave out orphans.
fn others(root: &Path) -> impl Iterator<Item = u32> + use<> {
    let us = std::process::id();
    let (proc, root) = (root.join("proc"), root.to_owned());
    let parent = move |process| Some(name_and_parent(&root, process)?.1);
    let all = numbers_in(&proc).filter(move |&process| process != us);
    all.filter(move |&process| us == 1 || descends(process, &parent, &BTreeSet::from([us])))
}

/// The time of a process's ended children, in ticks: cutime and cstime of proc_pid_stat(5).
fn children_ticks(root: &Path, process: u32) -> Option<u64> {
    let stat = Stat::read(&root.join(format!("proc/{process}")))?;
    Some(stat.field(16)? + stat.field(17)?)
}

#[cfg(test)]
mod tests {
    use super::super::super::fake::{self, spin};
    use super::*;

    const MOUNTS: &str = "22 1 0:5 / /proc rw - proc proc rw\n\
         30 1 0:26 / /cg/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
         32 1 0:28 / /cg/unified rw - cgroup2 cgroup2 rw\n";
    const USAGE: &str = "cg/cpu,cpuacct/a/fsverdict-trial-7/cpuacct.usage";
    const STAT: &str = "cg/unified/fsverdict-trial-7/cpu.stat";

    fn found(ours: &str) -> Option<(Option<u64>, Cgroup)> {
        let tree = fake::tree(&[
            ("proc/self/cgroup", ours),
            ("proc/self/mountinfo", MOUNTS),
            (USAGE, "123456789\n"),
            (STAT, "usage_usec 4567\nuser_usec 4000\nsystem_usec 567\n"),
        ]);
        let found = Cgroup::find(tree.path())?;
        Some((found.read(), found))
    }

    #[test]
    fn a_cgroup_of_the_trials_own_tells_its_time() {
        let (ns, first) = found("5:cpu,cpuacct:/a/fsverdict-trial-7\n0::/a\n").unwrap();
        assert!(ns == Some(123_456_789) && matches!(first, Cgroup::First(_)), "{first:?}");
        let (ns, second) = found("5:cpu,cpuacct:/\n0::/fsverdict-trial-7\n").unwrap();
        assert!(ns == Some(4_567_000) && matches!(second, Cgroup::Second(_)), "{second:?}");
    }

    #[test]
    fn a_cgroup_that_holds_others_too_is_not_read() {
        assert_eq!(found("5:cpu,cpuacct:/user.slice\n0::/init.scope\n"), None);
        assert_eq!(found("4:memory:/fsverdict-trial-7\n"), None, "it counts no time");
        assert_eq!(found("0::/fsverdict-trial-8\n"), None, "it is not to be seen");
        assert_eq!(WorkClock::open(Path::new("/nowhere")).kind(), CpuClock::Processes);
    }

    #[test]
    fn what_takes_less_than_a_tick_is_measured() {
        for time_ns in [20_000, 500_000, 3_000_000] {
            let first_ns = own_ns();
            spin(time_ns);
            let ns = own_ns() - first_ns;
            assert!(ns >= time_ns, "{time_ns} ns were {ns}");
            // A thread that has ended counts as well.
            let thread = std::thread::Builder::new().spawn(move || spin(time_ns));
            thread.unwrap().join().unwrap();
            let ns = own_ns() - first_ns;
            assert!(ns >= 2 * time_ns, "twice {time_ns} ns were {ns}");
        }
    }

    #[test]
    fn children_count_while_they_run_and_when_they_have_ended() {
        let clock = WorkClock::open(Path::new("/"));
        let mut shell = crate::tool::command("sh").unwrap();
        let script = "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done; echo; read end";
        shell.args(["-c", script]);
        shell.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut child = shell.spawn().unwrap();
        let mut line = [0];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
        let running_ns = clock.of_process_ns(child.id());
        assert!(running_ns > 0 && clock.others_ns() >= running_ns);
        drop(child.stdin.take());
        let children_ns = sys::children_cpu_ns();
        child.wait().unwrap();
        // getrusage(2) cuts off what is no whole microsecond.
        assert!(sys::children_cpu_ns() - children_ns + 2_000 >= running_ns);
    }

    #[test]
    fn ended_children_of_a_process_are_in_its_stat() {
        let stat = "7 (a (b) c) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 70 8 20 0 1 0\n";
        let tree = fake::tree(&[("proc/7/stat", stat)]);
        assert_eq!(children_ticks(tree.path(), 7), Some(78));
        assert_eq!(children_ticks(tree.path(), 8), None);
    }
}
