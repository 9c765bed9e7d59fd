//! Which device it is: a path may lead to another one a moment later.

use std::fs::{self, File};
use std::path::Path;

use fsverdict_core::model::Device;
use serde::{Deserialize, Serialize};

use super::block::{Block, Machine, Number};
use crate::sys;

/// Where disks tell a serial number of their own, the better source first: SCSI and NVMe
/// (Documentation/ABI/stable/sysfs-block, sysfs-nvme), device mapper, virtio.
const SERIALS: [&str; 5] = ["wwid", "device/wwid", "dm/uuid", "device/serial", "serial"];

/// What one device has and no other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    number: Number,
    size_bytes: u64,
    /// Where it begins on its disk, if it is a partition.
    start: String,
    /// Which of the disks that were there since the machine's start it is, or lies on (diskseq,
    /// Linux 5.15); empty where the kernel counts none. A loop device that gets another file is
    /// another disk.
    sequence: String,
    serial: String,
    /// The file behind a loop device.
    backing: Option<(u64, u64)>,
}

impl Identity {
    /// The one that stands at `device`'s path now; `None` unless it has its number.
    pub fn of(device: &Device) -> Option<Identity> {
        let machine = Machine::real();
        let number = (machine.number_of)(Path::new(&device.path))?;
        (number == device.number).then(|| machine.block(number))?.map(|block| block.identity())
    }
}

impl Block {
    pub(super) fn identity(&self) -> Identity {
        let disk = self.whole().unwrap_or_else(|| self.clone());
        let text = |file: &str| {
            let text = fs::read_to_string(disk.directory.join(file)).unwrap_or_default();
            text.trim().to_string()
        };
        let serials = SERIALS.map(text).into_iter();
        let start = fs::read_to_string(self.directory.join("start")).unwrap_or_default();
        let loops = File::open(&disk.node).and_then(|node| sys::loop_backing(&node));
        Identity {
            number: self.number,
            size_bytes: self.size_bytes(),
            start: start.trim().into(),
            sequence: text("diskseq"),
            serial: serials.into_iter().find(|it| !it.is_empty()).unwrap_or_default(),
            backing: loops.ok().flatten().map(|backing| backing.file),
        }
    }
}
