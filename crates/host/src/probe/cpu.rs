//! CPU time, processes started and those that wait for a disk: `/proc/stat`, by proc_stat(5).

use std::path::Path;

use fsverdict_core::model::CpuTotals;

use super::ProbeError;
use super::file::{ProcFile, lines, numbers};

/// The columns of the `cpu` line. The last two, `guest` and `guest_nice`, the kernel has counted
/// into `user` and `nice` already.
const COLUMNS: usize = 10;

/// The reader.
#[derive(Debug)]
pub(super) struct CpuReader {
    stat: ProcFile,
    tick_ns: u64,
}

/// CPU time since the machine's start, and the processes and threads started since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CpuReading {
    pub totals: CpuTotals,
    pub processes_started: u64,
    /// Those that wait for a disk, right now; writers that `balance_dirty_pages` holds up until
    /// less is dirty count, too (io_schedule_timeout in mm/page-writeback.c).
    pub processes_blocked: u64,
}

impl CpuReader {
    pub fn open(root: &Path, ticks_per_second: u64) -> Result<Self, ProbeError> {
        let stat = ProcFile::open(&root.join("proc/stat"))?;
        Ok(CpuReader { stat, tick_ns: 1_000_000_000 / ticks_per_second })
    }

    pub fn read(&mut self) -> Result<CpuReading, ProbeError> {
        self.stat.read()?;
        let totals = self.totals().ok_or_else(|| self.stat.without("a `cpu` line"))?;
        let processes_started =
            self.count(b"processes ").ok_or_else(|| self.stat.without("a `processes` line"))?;
        let processes_blocked = self.count(b"procs_blocked ").unwrap_or(0);
        Ok(CpuReading { totals, processes_started, processes_blocked })
    }

    /// From the end: `intr`, in between, can be tens of kilobytes.
    fn count(&self, label: &[u8]) -> Option<u64> {
        let mut lines = lines(self.stat.text()).rev();
        lines.find_map(|line| numbers(line.strip_prefix(label)?).next())
    }

    fn totals(&self) -> Option<CpuTotals> {
        let line = lines(self.stat.text()).next()?.strip_prefix(b"cpu ")?;
        let mut ns = [0; COLUMNS];
        for (column, ticks) in ns.iter_mut().zip(numbers(line)) {
            *column = ticks.saturating_mul(self.tick_ns);
        }
        let [user, nice, system, idle, iowait, irq, softirq, steal, guest, guest_nice] = ns;
        Some(CpuTotals {
            user_ns: user.saturating_add(nice),
            system_ns: system.saturating_add(irq).saturating_add(softirq),
            iowait_ns: iowait,
            steal_ns: steal,
            idle_ns: idle,
            nice_ns: nice,
            irq_ns: irq,
            softirq_ns: softirq,
            guest_ns: guest,
            guest_nice_ns: guest_nice,
        })
    }
}

/// What passed between two readings. The kernel's idle and iowait times can step back a little
/// (proc_stat(5)): that counts as none.
pub(super) fn since(last: &CpuTotals, first: &CpuTotals) -> CpuTotals {
    CpuTotals {
        user_ns: last.user_ns.saturating_sub(first.user_ns),
        system_ns: last.system_ns.saturating_sub(first.system_ns),
        iowait_ns: last.iowait_ns.saturating_sub(first.iowait_ns),
        steal_ns: last.steal_ns.saturating_sub(first.steal_ns),
        idle_ns: last.idle_ns.saturating_sub(first.idle_ns),
        nice_ns: last.nice_ns.saturating_sub(first.nice_ns),
        irq_ns: last.irq_ns.saturating_sub(first.irq_ns),
        softirq_ns: last.softirq_ns.saturating_sub(first.softirq_ns),
        guest_ns: last.guest_ns.saturating_sub(first.guest_ns),
        guest_nice_ns: last.guest_nice_ns.saturating_sub(first.guest_nice_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake;
    use super::*;

    const TICK_NS: u64 = 10_000_000;

    fn read(stat: &str) -> Result<CpuReading, ProbeError> {
        let tree = fake::tree(&[("proc/stat", stat)]);
        CpuReader::open(tree.path(), 100).unwrap().read()
    }

    #[test]
    fn guests_are_counted_once() {
        let stat = "cpu  100 20 30 4000 50 6 7 8 90 10\ncpu0 1 1 1 1 1 1 1 1 1 1\n\
                    intr 99 1 2 3\nctxt 5\nbtime 6\nprocesses 1234\nprocs_running 2\n\
                    procs_blocked 3\n";
        let reading = read(stat).unwrap();
        let expected = CpuTotals {
            user_ns: 120 * TICK_NS,
            system_ns: 43 * TICK_NS,
            iowait_ns: 50 * TICK_NS,
            steal_ns: 8 * TICK_NS,
            idle_ns: 4000 * TICK_NS,
            nice_ns: 20 * TICK_NS,
            irq_ns: 6 * TICK_NS,
            softirq_ns: 7 * TICK_NS,
            guest_ns: 90 * TICK_NS,
            guest_nice_ns: 10 * TICK_NS,
        };
        let (processes_started, processes_blocked) = (1234, 3);
        let expected = CpuReading { totals: expected, processes_started, processes_blocked };
        assert_eq!(reading, expected);
    }

    /// They read as nearly 2^64.
    #[test]
    fn counts_below_zero_are_borne() {
        let below = u64::MAX - 1;
        let stat = format!("cpu  {below} {below} {below} 4 5 {below}\nprocesses 5\n");
        assert_eq!(read(&stat).unwrap().totals.user_ns, u64::MAX);
    }

    #[test]
    fn columns_an_old_kernel_has_not_are_nought() {
        let totals = read("cpu  1 2 3 4\nprocesses 5\n").unwrap().totals;
        assert_eq!((totals.user_ns, totals.idle_ns), (3 * TICK_NS, 4 * TICK_NS));
        assert_eq!((totals.iowait_ns, totals.steal_ns), (0, 0));
    }

    #[test]
    fn processes_are_found_behind_a_long_interrupt_line() {
        let stat = format!("cpu  1 2 3 4\nintr 9{}\nprocesses 77\n", " 0".repeat(40_000));
        assert_eq!(read(&stat).unwrap().processes_started, 77);
    }

    #[test]
    fn a_file_without_its_lines_is_an_error() {
        let error = read("cpu0 1 2 3 4\nprocesses 5\n").unwrap_err().to_string();
        assert!(error.ends_with("proc/stat lacks a `cpu` line"), "{error}");
        let error = read("cpu  1 2 3 4\n").unwrap_err().to_string();
        assert!(error.ends_with("proc/stat lacks a `processes` line"), "{error}");
    }

    #[test]
    fn time_that_steps_back_counts_as_none() {
        let first = CpuTotals { iowait_ns: 20, idle_ns: 7, ..CpuTotals::default() };
        let last = CpuTotals { iowait_ns: 10, idle_ns: 9, ..CpuTotals::default() };
        assert_eq!(since(&last, &first), CpuTotals { idle_ns: 2, ..CpuTotals::default() });
    }
}
