//! Pressure stall information: `/proc/pressure`, by Documentation/accounting/psi.rst.

use std::path::{Path, PathBuf};

use fsverdict_core::model::PressureTotals;

use super::ProbeError;
use super::file::{ProcFile, lines, numbers};

const NS_PER_US: u64 = 1000;

/// The reader.
#[derive(Debug)]
pub(super) struct PressureReader {
    cpu: ProcFile,
    io: ProcFile,
    memory: ProcFile,
}

impl PressureReader {
    /// `None` where the kernel has no PSI: built without it there are no files, and started with
    /// `psi=0` there may be files that can't be read.
    pub fn open(root: &Path) -> Option<Self> {
        PressureReader::of(|name| root.join("proc/pressure").join(name))
    }

    /// That of a cgroup of version 2 (Documentation/admin-guide/cgroup-v2.rst).
    pub fn of_cgroup(folder: &Path) -> Option<Self> {
        PressureReader::of(|name| folder.join(format!("{name}.pressure")))
    }

    fn of(path: impl Fn(&str) -> PathBuf) -> Option<Self> {
        let open = |name| ProcFile::open(&path(name)).ok();
        Some(PressureReader { cpu: open("cpu")?, io: open("io")?, memory: open("memory")? })
    }

    pub fn read(&mut self) -> Result<PressureTotals, ProbeError> {
        for file in [&mut self.cpu, &mut self.io, &mut self.memory] {
            file.read()?;
        }
        Ok(PressureTotals {
            // `full` is left out: for the CPU of a whole system it is not defined.
            cpu_some_ns: total_ns(&self.cpu, b"some ")?,
            io_some_ns: total_ns(&self.io, b"some ")?,
            io_full_ns: total_ns(&self.io, b"full ")?,
            memory_some_ns: total_ns(&self.memory, b"some ")?,
            memory_full_ns: total_ns(&self.memory, b"full ")?,
        })
    }
}

/// The `total=` of a line: microseconds, unlike the averages before it.
fn total_ns(file: &ProcFile, kind: &[u8]) -> Result<u64, ProbeError> {
    let total_us = lines(file.text()).find_map(|line| {
        let mut words = line.strip_prefix(kind)?.split(|&byte| byte == b' ');
        words.find_map(|word| numbers(word.strip_prefix(b"total=")?).next())
    });
    total_us.map(|us| us.saturating_mul(NS_PER_US)).ok_or_else(|| file.without("its totals"))
}

/// What passed between two readings.
pub(super) fn since(last: &PressureTotals, first: &PressureTotals) -> PressureTotals {
    PressureTotals {
        cpu_some_ns: last.cpu_some_ns.saturating_sub(first.cpu_some_ns),
        io_some_ns: last.io_some_ns.saturating_sub(first.io_some_ns),
        io_full_ns: last.io_full_ns.saturating_sub(first.io_full_ns),
        memory_some_ns: last.memory_some_ns.saturating_sub(first.memory_some_ns),
        memory_full_ns: last.memory_full_ns.saturating_sub(first.memory_full_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake;
    use super::*;

    const BOTH: &str = "some avg10=0.47 avg60=0.39 avg300=0.45 total=6854251\n\
                        full avg10=0.00 avg60=0.00 avg300=0.00 total=17\n";
    // As it was before Linux 5.13.
    const SOME: &str = "some avg10=0.47 avg60=0.39 avg300=0.45 total=5\n";

    #[test]
    fn totals_become_nanoseconds() {
        let tree = fake::tree(&[
            ("proc/pressure/cpu", SOME),
            ("proc/pressure/io", BOTH),
            ("proc/pressure/memory", BOTH),
        ]);
        let expected = PressureTotals {
            cpu_some_ns: 5_000,
            io_some_ns: 6_854_251_000,
            io_full_ns: 17_000,
            memory_some_ns: 6_854_251_000,
            memory_full_ns: 17_000,
        };
        assert_eq!(PressureReader::open(tree.path()).unwrap().read().unwrap(), expected);
    }

    #[test]
    fn a_kernel_without_it_has_none() {
        let tree = fake::tree(&[("proc/pressure/cpu", SOME)]);
        assert!(PressureReader::open(tree.path()).is_none());
    }
}
