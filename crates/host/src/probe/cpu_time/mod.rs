//! CPU time by the scheduler's clocks, in nanoseconds: of the trial's processes, and of the
//! kernel's threads, which do a file system's work outside any process.
//!
//! The clock of a task is brought up to date when it is switched out and at each tick (update_curr
//! in kernel/sched/fair.c), and when it reads its own. The trial takes both readings while its work
//! does not run: the time of a task that runs then, a server or a worker, is known to a tick.
//!
//! Not included: interrupts while a processor was idle, which are charged to no task.

mod kernel;
mod work;

use std::path::Path;

use fsverdict_core::model::CpuTime;

pub(super) use kernel::KernelThreads;
use work::WorkClock;

/// The clocks. The sampler has the kernel's threads meanwhile, because some may end.
#[derive(Debug)]
pub(super) struct CpuClocks {
    work: WorkClock,
    kernel: KernelThreads,
}

impl CpuClocks {
    /// Those there are under `root` (`/`, but for tests), the kernel's threads in `machines_proc`,
    /// the `/proc` of the whole machine. `None` where no thread of the kernel is to be seen.
    pub fn open(root: &Path, machines_proc: &Path) -> Option<CpuClocks> {
        let kernel = KernelThreads::open(machines_proc)?;
        Some(CpuClocks { work: WorkClock::open(root), kernel })
    }

    /// The first reading: the work's last, because it costs the work's process time itself.
    pub fn start(self) -> (Started, KernelThreads) {
        let CpuClocks { work, mut kernel } = self;
        kernel.start();
        let first_ns = work.read_first();
        (Started { work, first_ns }, kernel)
    }
}

/// The work's clock, and what it showed at first.
#[derive(Debug)]
pub(super) struct Started {
    work: WorkClock,
    first_ns: u64,
}

impl Started {
    /// The work's time since the start.
    pub fn work_ns(&self) -> u64 {
        self.work.read_last().saturating_sub(self.first_ns)
    }

    /// Both, with what the kernel's threads have worked.
    pub fn time(&self, work_ns: u64, kernel: &mut KernelThreads) -> CpuTime {
        CpuTime { work_ns, kernel_ns: kernel.worked_ns(), clock: self.work.kind() }
    }
}
