//! Memory as a disk: tmpfs under a loop device, or zram.

use std::fs;
use std::io;
use std::path::Path;

use fsverdict_core::model::Device;

use super::block::Machine;
use super::error::{BedError, failed};
use super::loop_device::wait_until;
use super::margin::with_margin;
use crate::machine::memory::available_bytes;

/// The tmpfs that every distribution mounts.
pub(super) const TMPFS: &str = "/dev/shm";
const CONTROL: &str = "/sys/class/zram-control";

/// Whether the machine has so much memory to spare. A full tmpfs does not fail: it drives the
/// machine into its swap, or the kernel into ending processes.
pub(super) fn check_memory(size_bytes: u64) -> Result<(), BedError> {
    let text = fs::read_to_string("/proc/meminfo").map_err(failed(|| "reading /proc/meminfo"))?;
    let free_bytes = available_bytes(&text).unwrap_or(0);
    if free_bytes >= with_margin(size_bytes) {
        return Ok(());
    }
    Err(BedError::Memory { free_bytes, size_bytes })
}

/// The start of the machine: a number of a zram device means nothing after the next one.
pub(super) fn boot() -> io::Result<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(text.trim().to_string())
}

/// The number that the next zram device gets: the kernel takes the lowest that is free
/// (drivers/block/zram/zram_drv.c, `zram_add`).
pub(super) fn next_zram() -> u32 {
    let is_free = |number: &u32| !Path::new(&format!("/sys/block/zram{number}")).exists();
    (0..).find(is_free).expect("a machine has fewer devices than u32")
}

/// Which of the disks since the machine's start zram device `number` is (diskseq, Linux 5.15:
/// Documentation/ABI/stable/sysfs-block); 0 where the kernel counts none.
pub(super) fn sequence(number: u32) -> u64 {
    let text = fs::read_to_string(format!("/sys/block/zram{number}/diskseq")).unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

/// The zram device is the one of that sequence; without one, it has no size.
pub(super) fn is_ours(number: u32, known: Option<u64>) -> bool {
    let size = fs::read_to_string(format!("/sys/block/zram{number}/disksize")).unwrap_or_default();
    known.map_or(size.trim() == "0", |known| known == sequence(number))
}

/// A new zram device, without a size: it takes no memory yet.
/// See Documentation/admin-guide/blockdev/zram.rst.
pub(super) fn add_zram() -> Result<u32, BedError> {
    let control = Path::new(CONTROL);
    if !control.exists() {
        return Err(BedError::NoZram);
    }
    let adding = || "adding a zram device";
    // Reading makes the device, and tells its number.
    let text = fs::read_to_string(control.join("hot_add")).map_err(failed(adding))?;
    let number = text.trim().parse().map_err(io::Error::other);
    number.map_err(failed(adding))
}

/// The node of the zram device of that number.
pub(super) fn node(number: u32) -> String {
    format!("/dev/zram{number}")
}

/// Gives the zram device its size.
pub(super) fn size_zram(number: u32, size_bytes: u64) -> Result<Device, BedError> {
    let sizing = || format!("giving /dev/zram{number} its size");
    let folder = format!("/sys/block/zram{number}");
    fs::write(format!("{folder}/disksize"), size_bytes.to_string()).map_err(failed(sizing))?;
    let machine = Machine::real();
    let node = node(number);
    let block = (machine.number_of)(Path::new(&node)).and_then(|number| machine.block(number));
    let unseen = || failed(sizing)(io::Error::other("it does not appear in /dev"));
    Ok(block.ok_or_else(unseen)?.device())
}

/// Removes the zram device; one that is gone already is no error.
pub(super) fn remove_zram(number: u32) -> Result<(), BedError> {
    let folder = format!("/sys/block/zram{number}");
    let mut result = Ok(());
    // While anything has it open the kernel says EBUSY: udev looks at each new device for a moment.
    let _ = wait_until(|| {
        if !Path::new(&folder).exists() {
            result = Ok(());
            return true;
        }
        result = fs::write(format!("{CONTROL}/hot_remove"), number.to_string());
        !matches!(&result, Err(error) if error.raw_os_error() == Some(libc::EBUSY))
    });
    match result {
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
            Err(BedError::Held { device: node(number) })
        }
        // Gone between the look and the removal.
        Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(()),
        result => result.map_err(failed(|| format!("removing /dev/zram{number}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_the_memory_is_refused() {
        assert!(check_memory(1 << 60).unwrap_err().to_string().contains("of memory to spare"));
    }
}
