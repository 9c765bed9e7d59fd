//! Which probes this machine has something to read for.

use std::fs;
use std::io;
use std::path::Path;

use fsverdict_core::model::NO_FLUSHES_COUNTED;
use fsverdict_core::model::need::Answer;

use super::heat::{drive_alarms, throttle_counters};
use super::page_cache::{PageCache, PageCacheError};
use crate::machine::answers::closed;
use crate::sys;

/// How many fields a device has in /proc/diskstats after its number and name, if there is one: 11,
/// 15 with discards (Linux 4.18), 17 with flushes (5.5; Documentation/admin-guide/iostats.rst).
fn fields(root: &Path) -> io::Result<Option<usize>> {
    let text = fs::read_to_string(root.join("proc/diskstats"))?;
    Ok(text.lines().map(|line| line.split_whitespace().count().saturating_sub(3)).min())
}

/// This kernel counts flushes, as far as it shows.
pub fn counts_flushes(root: &Path) -> bool {
    !matches!(fields(root), Ok(Some(..17)))
}

/// What the kernel counts of a device.
pub fn counters(root: &Path) -> Answer {
    let fields = match fields(root) {
        Ok(fields) => fields,
        Err(error) => return closed("/proc/diskstats", &error, "run it where /proc is"),
    };
    match fields {
        None => Answer::yes("/proc/diskstats, which has no device yet"),
        Some(17..) => Answer::yes("/proc/diskstats, with discards and flushes"),
        Some(15..) => Answer::partly(NO_FLUSHES_COUNTED[0]),
        Some(_) => Answer::partly(NO_FLUSHES_COUNTED[1]),
    }
}

/// Documentation/accounting/psi.rst. Where it is switched off the files are there, unreadable.
pub fn pressure(root: &Path) -> Answer {
    let paths = ["cpu", "io", "memory"].map(|name| root.join("proc/pressure").join(name));
    match paths.iter().all(|path| fs::read(path).is_ok()) {
        true => Answer::yes("/proc/pressure"),
        false => Answer::no("this kernel keeps no pressure stall information")
            .but("boot with psi=1, or a kernel with CONFIG_PSI; runs work without"),
    }
}

/// Intel's processors and NVMe drives; a virtual machine has neither's sensors.
pub fn heat(root: &Path) -> Answer {
    let controllers = fs::read_dir(root.join("sys/class/nvme")).into_iter().flatten().flatten();
    let alarms = controllers.flat_map(|controller| drive_alarms(&controller.path()));
    let processors = !throttle_counters(root).is_empty();
    let told = match (processors, alarms.count() > 0) {
        (true, true) => "throttle counters of the processors, alarms of the NVMe drives",
        (true, false) => "throttle counters of the processors; no NVMe drive has an alarm",
        (false, true) => "alarms of the NVMe drives; the processors count no throttling",
        (false, false) => {
            return Answer::no("processors and NVMe drives tell nothing")
                .but("use real hardware; runs work without it");
        }
    };
    Answer::yes(told)
}

/// Tries it for a moment, with a file system that there is not.
pub fn page_cache(root: &Path) -> Answer {
    match PageCache::watch(root, [0, 0]) {
        Ok(_) => Answer::yes("for --probe page-cache"),
        Err(PageCacheError::Refused(_)) if !sys::is_root() => {
            Answer::no("this user may give the kernel no programs").but_root()
        }
        Err(error) => Answer::no(error.to_string())
            .but("boot Linux 6.13 or newer, with CONFIG_DEBUG_INFO_BTF; runs work without"),
    }
}
