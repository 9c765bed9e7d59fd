//! What the file systems are made on.

mod block;
mod contents;
mod disk;
mod error;
pub mod guard;
mod hold;
mod identity;
mod image;
mod like;
#[cfg(test)]
mod like_loop_tests;
#[cfg(test)]
mod limits_loop_tests;
mod loop_device;
#[cfg(test)]
mod loop_tests;
mod made;
mod maker;
mod margin;
pub mod own;
pub mod partition;
mod ram;
mod refusal;
mod tables;
mod undo;

use std::io;
use std::path::Path;

use fsverdict_core::model::Device;

use block::Machine;
pub use block::Use;
pub use disk::{Seen, says};
pub use error::BedError;
pub use guard::{Consent, Consents, check};
pub use identity::Identity;
pub use image::write_out;
pub use like::{Flushes, Like};
pub use loop_device::LoopDevice;
pub use made::{Made, own_folder};
pub use maker::{make, make_images};
pub use margin::{needed, with_margin};
pub use own::Own;
pub use refusal::Refusal;
pub use undo::Undo;

/// Hears of each change before it is made, to write it to the journal.
pub type Before<'a> = &'a mut dyn FnMut(&Undo) -> io::Result<()>;

/// Hears how many bytes of all images are written; an error ends the making.
pub type Progress<'a> = &'a mut dyn FnMut(u64) -> io::Result<()>;

/// The device that the file system holding `path` lies on, where it can be told.
pub fn beneath(path: &Path) -> Option<Device> {
    Machine::real().beneath(path).map(|block| block.device())
}

/// The whole disks on which `devices` lie as partitions or as uncached images; none where any of
/// them lies on no other, or that is not known.
pub fn disks_beneath(devices: &[Device]) -> Vec<Device> {
    Machine::real().disks_beneath(devices)
}

/// The block device at `path`, if there is one, is a part of another.
pub fn is_partition(path: &Path) -> bool {
    let machine = Machine::real();
    let block = (machine.number_of)(path).and_then(|number| machine.block(number));
    block.is_some_and(|block| block.is_partition())
}
