//! The trial's own cgroup: what its processes waited for, how much memory was charged to it, and
//! what it moved on the devices.

use std::fs;
use std::path::{Path, PathBuf};

use fsverdict_core::model::{OwnTotals, WorkIo};

use super::pressure::{self, PressureReader};
use crate::machine::cgroup::{Hierarchy, MEMORY_PEAK};

/// Of version 1 the file with the most that was charged; writing to it begins anew
/// (Documentation/admin-guide/cgroup-v1/memory.rst).
const MEMORY_FIRST: &str = "memory.max_usage_in_bytes";

/// What there is to be read of it.
#[derive(Debug)]
pub(super) struct OwnReader {
    pressure: Option<PressureReader>,
    memory: Option<PathBuf>,
    /// `io.stat`, with the numbers of the devices that are held down, as it has them.
    io: Option<(PathBuf, Vec<String>)>,
}

impl OwnReader {
    /// `None` where the trial has no cgroup of its own. Charges are read for the devices that are
    /// limited in it, which may be below the bed's: all I/O on the devices above counts as charged.
    pub fn open(root: &Path) -> Option<OwnReader> {
        let unified = Hierarchy::Unified.own(root);
        let first = Hierarchy::First("memory").own(root);
        (unified.is_some() || first.is_some()).then_some(())?;
        let file = |folder: &Option<PathBuf>, name: &str| {
            folder.as_ref().map(|folder| folder.join(name)).filter(|file| file.exists())
        };
        let held = file(&unified, "io.max").map_or(Vec::new(), |file| held(&file));
        let stat = file(&unified, "io.stat").filter(|_| !held.is_empty());
        Some(OwnReader {
            pressure: unified.as_ref().and_then(|folder| PressureReader::of_cgroup(folder)),
            memory: file(&first, MEMORY_FIRST).or_else(|| file(&unified, MEMORY_PEAK)),
            io: stat.map(|file| (file, held)),
        })
    }

    /// The first reading; the most of memory is counted from here, where it can be.
    pub fn first(&mut self) -> OwnTotals {
        let of_first = |file: &&PathBuf| file.ends_with(MEMORY_FIRST);
        if let Some(file) = self.memory.as_ref().filter(of_first) {
            // Refused, it tells the most since the trial began.
            let _ = fs::write(file, "0");
        }
        self.read()
    }

    /// What passed since `first`.
    pub fn since(&mut self, first: &OwnTotals) -> OwnTotals {
        let last = self.read();
        let device = last.device.zip(first.device).map(|(now, then)| WorkIo {
            read_bytes: now.read_bytes.saturating_sub(then.read_bytes),
            write_bytes: now.write_bytes.saturating_sub(then.write_bytes),
        });
        let pressure = last.pressure.zip(first.pressure);
        OwnTotals {
            pressure: pressure.map(|(now, then)| pressure::since(&now, &then)),
            device,
            ..last
        }
    }

    fn read(&mut self) -> OwnTotals {
        let number = |file: &PathBuf| fs::read_to_string(file).ok()?.trim().parse().ok();
        OwnTotals {
            pressure: self.pressure.as_mut().and_then(|reader| reader.read().ok()),
            memory_max_bytes: self.memory.as_ref().and_then(number),
            device: self.io.as_ref().and_then(|(file, devices)| charged(file, devices)),
        }
    }
}

/// The devices that `io.max` holds down, by number: `7:0 rbps=max wbps=4096 ...`, a line for each.
fn held(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().filter_map(|line| Some(line.split_once(' ')?.0.into())).collect()
}

/// What `io.stat` tells of some devices: `7:0 rbytes=4096 wbytes=0 rios=1 wios=0 ...`, a line for
/// each (Documentation/admin-guide/cgroup-v2.rst).
fn charged(file: &Path, devices: &[String]) -> Option<WorkIo> {
    let text = fs::read_to_string(file).ok()?;
    let mut sum = WorkIo::default();
    for number in devices {
        let of = |line: &&str| line.split(' ').next() == Some(number);
        let Some(line) = text.lines().find(of) else { continue };
        let field = |name: &str| {
            line.split(' ').find_map(|word| word.strip_prefix(name)?.parse::<u64>().ok())
        };
        sum.read_bytes += field("rbytes=").unwrap_or(0);
        sum.write_bytes += field("wbytes=").unwrap_or(0);
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::super::fake;
    use super::*;

    const MOUNTS: &str = "31 1 0:27 / /cg/memory rw - cgroup cgroup rw,memory\n\
         32 1 0:28 / /cg/unified rw - cgroup2 cgroup2 rw\n";
    const OURS: &str = "4:memory:/fsverdict-trial-7\n0::/fsverdict-trial-7\n";

    fn pressure(cpu_us: u64) -> String {
        format!("some avg10=0.00 avg60=0.00 avg300=0.00 total={cpu_us}\nfull total=0\n")
    }

    #[test]
    fn what_the_kernel_tells_of_it_is_read() {
        let own = |file: &str| format!("cg/unified/fsverdict-trial-7/{file}");
        let memory = "cg/memory/fsverdict-trial-7/memory.max_usage_in_bytes";
        let tree = fake::tree(&[
            ("proc/self/mountinfo", MOUNTS),
            ("proc/self/cgroup", OURS),
            (memory, "900\n"),
            (&own("memory.peak"), "1\n"),
            (&own("io.max"), "7:1 rbps=max wbps=4096 riops=max wiops=max\n7:2 riops=9 wiops=9\n"),
            (&own("io.stat"), "7:1 rbytes=10 wbytes=20 rios=1 wios=2\n7:11 rbytes=9 wbytes=9\n"),
            (&own("cpu.pressure"), &pressure(5)),
            (&own("io.pressure"), &pressure(0)),
            (&own("memory.pressure"), &pressure(0)),
        ]);
        let mut reader = OwnReader::open(tree.path()).unwrap();
        let first = reader.first();
        assert_eq!(first.memory_max_bytes, Some(0), "it begins anew");
        fake::write(&tree, memory, "777\n");
        // The device upon the second one is not held down: there all is charged to the trial.
        let stat = "7:2 rbytes=5 wbytes=0 rios=1 wios=0\n7:1 rbytes=10 wbytes=4116 rios=1 wios=3\n\
                    7:11 rbytes=900 wbytes=900 rios=2 wios=2\n";
        fake::write(&tree, &own("io.stat"), stat);
        fake::write(&tree, &own("cpu.pressure"), &pressure(25));
        let passed = reader.since(&first);
        assert_eq!(passed.device, Some(WorkIo { read_bytes: 5, write_bytes: 4096 }));
        assert_eq!(passed.memory_max_bytes, Some(777));
        assert_eq!(passed.pressure.unwrap().cpu_some_ns, 20_000);
        // Without limits nothing is held down, and nothing goes past them.
        fake::write(&tree, &own("io.max"), "");
        let unlimited = OwnReader::open(tree.path()).unwrap().first();
        assert_eq!(unlimited.device, None);
    }

    #[test]
    fn without_a_cgroup_of_its_own_nothing_is_told() {
        let ours = "4:memory:/a\n0::/user.slice\n";
        let tree = fake::tree(&[("proc/self/mountinfo", MOUNTS), ("proc/self/cgroup", ours)]);
        assert!(OwnReader::open(tree.path()).is_none());
    }
}
