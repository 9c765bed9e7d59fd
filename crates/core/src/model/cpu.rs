//! The processors' time: the whole machine's in the kernel's ticks, and by the scheduler's clocks
//! what the work took, and the kernel's threads for it.

use serde::{Deserialize, Serialize};

/// CPU time of the whole system, all processors added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "proc_stat(5) has the words")]
#[serde(default)]
pub struct CpuTotals {
    /// user and nice, guests included.
    pub user_ns: u64,
    /// system, irq and softirq.
    pub system_ns: u64,
    pub iowait_ns: u64,
    pub steal_ns: u64,
    pub idle_ns: u64,
    /// Of `user_ns`, at a lowered priority; `guest_nice_ns` included.
    pub nice_ns: u64,
    /// Of `system_ns`.
    pub irq_ns: u64,
    /// Of `system_ns`.
    pub softirq_ns: u64,
    /// Of `user_ns`, and not of `nice_ns`: spent by virtual machines.
    pub guest_ns: u64,
    /// Of `nice_ns`.
    pub guest_nice_ns: u64,
}

impl CpuTotals {
    /// Busy time: without idle, iowait and steal.
    pub fn busy_ns(&self) -> u64 {
        self.user_ns.saturating_add(self.system_ns)
    }

    /// All there was, idle or not: the processors' number times the time.
    pub fn all_ns(&self) -> u64 {
        let others = [self.iowait_ns, self.steal_ns, self.idle_ns];
        others.into_iter().fold(self.busy_ns(), u64::saturating_add)
    }
}

/// By what the time of the work's processes was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CpuClock {
    /// The clock of the trial's own cgroup: of every process that was ever in it.
    Cgroup,
    /// The clocks of its processes, added up. For the ended children of a process that still runs,
    /// the kernel gives hundredths of a second.
    #[default]
    Processes,
}

/// CPU time by the scheduler's clocks, which count in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTime {
    /// Of the trial's processes: the work, what it has started, the servers and daemons.
    pub work_ns: u64,
    /// Of all threads of the kernel: journals, write-back, workers. They belong to no process, and
    /// workers are shared: their work for others meanwhile is included.
    pub kernel_ns: u64,
    /// By what `work_ns` was read.
    pub clock: CpuClock,
}

impl CpuTime {
    /// All of it.
    pub fn ns(&self) -> u64 {
        self.work_ns.saturating_add(self.kernel_ns)
    }
}
