//! What was slowed down because of heat, as far as the machine tells.
//!
//! Processors: Intel's count how often the thermal monitor stepped in
//! (Documentation/admin-guide/thermal/intel_thermal_throttle.rst); others have no counter that can
//! be read. Drives: NVMe's count that too, but the kernel shows only whether the temperature is
//! beyond the drive's own threshold and what it is (`temp1_alarm` and `temp1_input` of
//! Documentation/hwmon/sysfs-interface.rst, drivers/nvme/host/hwmon.c). Each reading of those is a
//! command to the drive: they are read before the work and after it, and not meanwhile.

use std::fs;
use std::path::{Path, PathBuf};

use fsverdict_core::model::{Device, HeatTotals};

use crate::machine::folder::entries;

/// The files to read. They are opened again each time: there are two for each processor.
#[derive(Debug)]
pub(super) struct HeatReader {
    counters: Vec<PathBuf>,
    alarms: Vec<PathBuf>,
}

/// One reading.
#[derive(Debug)]
pub(super) struct HeatReading {
    /// By the reader's counters; `None` where one could not be read.
    throttles: Vec<Option<u64>>,
    alarm: Option<bool>,
    celsius: Option<i64>,
}

impl HeatReader {
    /// `None` where neither the processors nor any of `devices` tell.
    pub fn open(root: &Path, devices: &[Device]) -> Option<HeatReader> {
        let counters = throttle_counters(root);
        let controllers = devices.iter().filter_map(|device| controller(root, device));
        let mut alarms: Vec<PathBuf> = controllers.flat_map(|it| drive_alarms(&it)).collect();
        alarms.sort();
        alarms.dedup();
        (!counters.is_empty() || !alarms.is_empty()).then_some(HeatReader { counters, alarms })
    }

    pub fn read(&self) -> HeatReading {
        let inputs = self.alarms.iter().map(|alarm| alarm.with_file_name("temp1_input"));
        HeatReading {
            throttles: self.counters.iter().map(|path| number(path)).collect(),
            alarm: self.alarms.iter().filter_map(|path| number(path)).map(|it: u8| it != 0).max(),
            celsius: inputs.filter_map(|path| number(&path)).map(|milli: i64| milli / 1000).max(),
        }
    }
}

impl HeatReading {
    /// What came about between `first` and this one.
    pub fn since(&self, first: &HeatReading) -> HeatTotals {
        let pairs = self.throttles.iter().zip(&first.throttles);
        let rises = pairs.filter_map(|(now, then)| Some((*now)?.saturating_sub((*then)?)));
        HeatTotals {
            cpu_throttles: rises.max(),
            drive_alarm: self.alarm.max(first.alarm),
            drive_celsius: self.celsius.max(first.celsius),
        }
    }
}

/// The counters of all processors.
pub(crate) fn throttle_counters(root: &Path) -> Vec<PathBuf> {
    let processors = entries(root.join("sys/devices/system/cpu"));
    let counters = processors.flat_map(|processor| {
        ["core", "package"]
            .map(|what| processor.join("thermal_throttle").join(format!("{what}_throttle_count")))
    });
    counters.filter(|path| path.exists()).collect()
}

/// The alarms of an NVMe controller, or of the controllers of a subsystem with several: the kernel
/// has put hwmon's folder into the controller's since 5.12, into the PCI device's before.
pub(crate) fn drive_alarms(controller: &Path) -> Vec<PathBuf> {
    let several = entries(controller).filter(|it| is_named(it, "nvme"));
    let controllers = std::iter::once(controller.to_path_buf()).chain(several);
    let folders = controllers.flat_map(|it| [it.clone(), it.join("device/hwmon")]);
    let sensors = folders.flat_map(entries);
    let alarms = sensors.filter(|it| is_named(it, "hwmon")).map(|it| it.join("temp1_alarm"));
    alarms.filter(|path| path.exists()).collect()
}

/// What serves a disk or a partition of it.
fn controller(root: &Path, device: &Device) -> Option<PathBuf> {
    let [major, minor] = device.number;
    let folder = fs::canonicalize(root.join(format!("sys/dev/block/{major}:{minor}"))).ok()?;
    let disk: &Path = if folder.join("partition").exists() { folder.parent()? } else { &folder };
    fs::canonicalize(disk.join("device")).ok()
}

fn is_named(path: &Path, kind: &str) -> bool {
    let digits = path.file_name().and_then(|name| name.to_str()?.strip_prefix(kind));
    digits.is_some_and(|digits| digits.parse::<u32>().is_ok())
}

fn number<T: std::str::FromStr>(path: &Path) -> Option<T> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::super::fake;
    use super::*;

    const CORE: &str = "sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count";
    const PACKAGE: &str = "sys/devices/system/cpu/cpu1/thermal_throttle/package_throttle_count";

    /// A partition of a drive with its sensors in `hwmon`, beside a disk that has none.
    fn machine(hwmon: &str) -> TempDir {
        let tree = fake::tree(&[
            ("sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "5\n"),
            (CORE, "7\n"),
            (PACKAGE, "9\n"),
            ("sys/devices/system/cpu/cpufreq/thermal_throttle/core_throttle_count", "no\n"),
            ("sys/pci/nvme/nvme0/nvme0n1/nvme0n1p2/partition", "2\n"),
            (&format!("{hwmon}/temp1_alarm"), "0\n"),
            (&format!("{hwmon}/temp1_input"), "41850\n"),
            ("sys/pci/ata/sda/size", "1\n"),
        ]);
        let at = |path: &str| tree.path().join(path);
        fs::create_dir_all(at("sys/dev/block")).unwrap();
        symlink(at("sys/pci/nvme/nvme0"), at("sys/pci/nvme/nvme0/nvme0n1/device")).unwrap();
        symlink(at("sys/pci"), at("sys/pci/nvme/nvme0/device")).unwrap();
        symlink(at("sys/pci/nvme/nvme0/nvme0n1/nvme0n1p2"), at("sys/dev/block/259:2")).unwrap();
        symlink(at("sys/pci/ata/sda"), at("sys/dev/block/8:0")).unwrap();
        tree
    }

    #[test]
    fn counters_that_rise_and_alarms_are_told_wherever_the_kernel_keeps_them() {
        for hwmon in ["sys/pci/nvme/nvme0/hwmon3", "sys/pci/hwmon/hwmon3"] {
            let tree = machine(hwmon);
            let devices = fake::devices(&[[259, 2], [8, 0], [7, 0]]);
            let reader = HeatReader::open(tree.path(), &devices).unwrap();
            let first = reader.read();
            let cool = HeatTotals {
                cpu_throttles: Some(0),
                drive_alarm: Some(false),
                drive_celsius: Some(41),
            };
            assert_eq!(reader.read().since(&first), cool, "{hwmon}");
            fake::write(&tree, CORE, "10\n");
            fake::write(&tree, PACKAGE, "11\n");
            fake::write(&tree, &format!("{hwmon}/temp1_alarm"), "1\n");
            fake::write(&tree, &format!("{hwmon}/temp1_input"), "84850\n");
            let hot = HeatTotals {
                cpu_throttles: Some(3),
                drive_alarm: Some(true),
                drive_celsius: Some(84),
            };
            assert_eq!(reader.read().since(&first), hot, "{hwmon}");
            let cooled = first.since(&reader.read());
            assert_eq!((cooled.drive_alarm, cooled.drive_celsius), (Some(true), Some(84)));
        }
    }

    #[test]
    fn drives_of_a_subsystem_with_several_controllers_are_found() {
        let tree = fake::tree(&[("sys/ctl/hwmon1/temp1_alarm", "1\n")]);
        fs::create_dir_all(tree.path().join("sys/subsystem")).unwrap();
        symlink(tree.path().join("sys/ctl"), tree.path().join("sys/subsystem/nvme0")).unwrap();
        assert_eq!(drive_alarms(&tree.path().join("sys/subsystem")).len(), 1);
    }

    #[test]
    fn what_is_not_told_is_not_made_up() {
        let nothing = fake::tree(&[("sys/devices/system/cpu/cpu0/cpufreq/x", "1\n")]);
        assert!(HeatReader::open(nothing.path(), &fake::devices(&[[8, 0]])).is_none());
        let tree = machine("sys/pci/nvme/nvme0/hwmon3");
        let reader = HeatReader::open(tree.path(), &fake::devices(&[[8, 0]])).unwrap();
        let totals = reader.read().since(&reader.read());
        assert_eq!((totals.drive_alarm, totals.drive_celsius), (None, None));
    }
}
