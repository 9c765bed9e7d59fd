//! What the file systems are made on.

mod block;
pub mod guard;
mod image;
mod loop_device;
#[cfg(test)]
mod loop_tests;
pub mod partition;
mod ram;
mod undo;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fsverdict_core::model::{Bed, BedKind, Device, Unit};
use thiserror::Error;

use block::Machine;
pub use block::Use;
pub use guard::{Consent, Refusal, check};
pub use image::Image;
pub use image::with_margin;
pub use image::write_out;
pub use loop_device::LoopDevice;
pub use undo::Undo;

/// A bed that could not be made or cleared away.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum BedError {
    #[error(
        "{} has {} free, the image needs {}: choose another --dir, a smaller --size or, \
         for a study, a smaller --scale",
        folder.display(), bytes(*free_bytes), bytes(*size_bytes)
    )]
    Space { folder: PathBuf, free_bytes: u64, size_bytes: u64 },
    #[error(
        "the machine has {} of memory to spare, the bed needs {}: choose a smaller --size or \
         --bed loop",
        bytes(*free_bytes), bytes(*size_bytes)
    )]
    Memory { free_bytes: u64, size_bytes: u64 },
    #[error("an image of {size_bytes} bytes: its size must be a multiple of 4 KiB")]
    Size { size_bytes: u64 },
    #[error("this kernel has no zram (modprobe zram): leave it out for a loop device on tmpfs")]
    NoZram,
    #[error("{what}: {source}{}", rights(source))]
    Io { what: String, source: io::Error },
    #[error("{device} is still held: something has it mounted or open (see lsof {device})")]
    Held { device: String },
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("{one} and {other} share bytes: name each disk once")]
    Overlap { one: String, other: String },
    #[error("{}", listed(.0))]
    Several(Vec<BedError>),
    #[error("{cause}; clearing up failed too: {cleanup}")]
    Cleanup { cause: Box<BedError>, cleanup: Box<BedError> },
}

impl BedError {
    /// This error, and that of clearing up after it if there was one.
    fn after(self, cleanup: Result<(), BedError>) -> BedError {
        match cleanup {
            Ok(()) => self,
            Err(cleanup) => BedError::Cleanup { cause: self.into(), cleanup: cleanup.into() },
        }
    }
}

/// What was tried, for an error of the system.
fn failed<T: Into<String>>(what: impl FnOnce() -> T) -> impl FnOnce(io::Error) -> BedError {
    |source| BedError::Io { what: what().into(), source }
}

fn rights(error: &io::Error) -> &'static str {
    if error.kind() == io::ErrorKind::PermissionDenied { " (this bed needs root)" } else { "" }
}

fn listed(errors: &[BedError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

#[expect(clippy::cast_precision_loss, reason = "it is shown to three figures")]
fn bytes(count: u64) -> String {
    Unit::Bytes.format(count as f64)
}

/// Hears of each change before it is made, to write it to the journal.
pub type Before<'a> = &'a mut dyn FnMut(&Undo) -> io::Result<()>;

/// Hears how many bytes of all images are written; an error ends the making.
pub type Progress<'a> = &'a mut dyn FnMut(u64) -> io::Result<()>;

#[derive(Debug)]
enum Part {
    Image(Image),
    Loop(LoopDevice),
    Zram(u32),
}

impl Part {
    fn remove(self) -> Result<(), BedError> {
        match self {
            Part::Image(image) => image.remove(),
            Part::Loop(device) => device.detach(),
            Part::Zram(number) => ram::remove_zram(number),
        }
    }
}

/// A bed, and all that was made for it. What the user brought, disks and directories, stays.
#[derive(Debug)]
pub struct Made {
    /// The devices; on bed `directory` those it lies on, if known.
    pub devices: Vec<Device>,
    /// Whether all loop devices go past the host's page cache; `None` where there are none.
    pub direct_io: Option<bool>,
    /// Whether it compresses what is written: then the data's content is part of the result.
    pub compresses: bool,
    parts: Vec<Part>,
}

impl Made {
    /// Clears away all that was made, the last first, and goes on after an error.
    pub fn remove(mut self) -> Result<(), BedError> {
        let mut errors = self.take_down();
        match errors.len() {
            0 => Ok(()),
            1 => Err(errors.remove(0)),
            _ => Err(BedError::Several(errors)),
        }
    }

    fn take_down(&mut self) -> Vec<BedError> {
        self.devices.clear();
        let mut errors = Vec::new();
        while let Some(part) = self.parts.pop() {
            errors.extend(part.remove().err());
        }
        errors
    }
}

impl Drop for Made {
    /// As well as may be: nobody is left to hear of errors, and the journal still knows.
    fn drop(&mut self) {
        self.take_down();
    }
}

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

/// Makes the bed of a plan. Images lie in the bed's own `dir`, otherwise in `dir`.
pub fn make(
    bed: &Bed,
    dir: &Path,
    consents: &[Consent],
    before: Before<'_>,
    progress: Progress<'_>,
) -> Result<Made, BedError> {
    let empty = Made { devices: Vec::new(), direct_io: None, compresses: false, parts: Vec::new() };
    let mut maker = Maker { made: empty, before, progress, written_bytes: 0 };
    let result = match bed.kind {
        BedKind::Loop => maker.loops(bed, bed.dir.as_deref().map_or(dir, Path::new), true),
        BedKind::Ram if bed.zram => maker.zram(bed),
        BedKind::Ram => maker.ram(bed),
        BedKind::Device => maker.disks(bed, consents),
        BedKind::Directory => {
            maker.directories(bed);
            Ok(())
        }
    };
    match result {
        Ok(()) => Ok(maker.made),
        Err(cause) => Err(cause.after(maker.made.remove())),
    }
}

/// Makes the images of a bed as [`make`] does, on bed `ram` in memory, and leaves it at that: each
/// is a disk to a virtual machine, and its path stands for the device's.
pub fn make_images(
    bed: &Bed,
    dir: &Path,
    before: Before<'_>,
    progress: Progress<'_>,
) -> Result<Made, BedError> {
    let made = Made { devices: Vec::new(), direct_io: None, compresses: false, parts: Vec::new() };
    let mut maker = Maker { made, before, progress, written_bytes: 0 };
    match maker.images(bed, dir) {
        Ok(()) => Ok(maker.made),
        Err(cause) => Err(cause.after(maker.made.remove())),
    }
}

struct Maker<'a> {
    made: Made,
    before: Before<'a>,
    progress: Progress<'a>,
    written_bytes: u64,
}

impl Maker<'_> {
    fn announce(&mut self, undo: &Undo) -> Result<(), BedError> {
        (self.before)(undo).map_err(failed(|| "writing the undo journal"))
    }

    fn loops(&mut self, bed: &Bed, dir: &Path, direct_io: bool) -> Result<(), BedError> {
        let looking = || format!("looking for the folder {}", dir.display());
        // The journal finds a loop device by the path the kernel shows, which has no links.
        let dir = fs::canonicalize(dir).map_err(failed(looking))?;
        image::check_space(&dir, total_bytes(bed))?;
        for _ in 0..bed.devices {
            self.loop_device(&unused_path(&dir), bed.size.0, direct_io)?;
        }
        Ok(())
    }

    fn images(&mut self, bed: &Bed, dir: &Path) -> Result<(), BedError> {
        let dir = match bed.kind {
            BedKind::Ram => Path::new(ram::TMPFS),
            _ => bed.dir.as_deref().map_or(dir, Path::new),
        };
        if bed.kind == BedKind::Ram {
            ram::check_memory(total_bytes(bed))?;
        }
        let looking = || format!("looking for the folder {}", dir.display());
        let dir = fs::canonicalize(dir).map_err(failed(looking))?;
        image::check_space(&dir, total_bytes(bed))?;
        for _ in 0..bed.devices {
            let path = unused_path(&dir);
            self.image(&path, bed.size.0)?;
            let (path, size_bytes) = (path.display().to_string(), bed.size.0);
            self.made.devices.push(Device { path, number: [0, 0], size_bytes });
        }
        Ok(())
    }

    fn image(&mut self, path: &Path, size: u64) -> Result<(), BedError> {
        self.announce(&Undo::RemoveImage { path: path.into() })?;
        let (before_bytes, progress) = (self.written_bytes, &mut self.progress);
        let image = Image::create(path, size, |bytes| progress(before_bytes + bytes))?;
        self.made.parts.push(Part::Image(image));
        self.written_bytes += size;
        Ok(())
    }

    fn loop_device(&mut self, path: &Path, size: u64, direct_io: bool) -> Result<(), BedError> {
        self.image(path, size)?;
        self.announce(&Undo::DetachLoop { path: path.into() })?;
        let device = LoopDevice::attach(path, direct_io)?;
        self.made.devices.push(device.device());
        let all_direct = self.made.direct_io.unwrap_or(true) && device.direct_io();
        self.made.direct_io = Some(all_direct);
        self.made.parts.push(Part::Loop(device));
        Ok(())
    }

    fn ram(&mut self, bed: &Bed) -> Result<(), BedError> {
        ram::check_memory(total_bytes(bed))?;
        // tmpfs is the page cache: there is nothing for direct I/O to go past.
        self.loops(bed, Path::new(ram::TMPFS), false)
    }

    /// Zram is not written full: each write takes its memory anew, first or not.
    fn zram(&mut self, bed: &Bed) -> Result<(), BedError> {
        ram::check_memory(total_bytes(bed))?;
        self.made.compresses = true;
        let boot = ram::boot().map_err(failed(|| "reading the boot id"))?;
        for _ in 0..bed.devices {
            // Only the device itself tells its number, so it comes before the journal's line: one
            // left by a kill in between has no size and takes no memory.
            let number = ram::add_zram()?;
            self.made.parts.push(Part::Zram(number));
            self.announce(&Undo::RemoveZram { number, boot: boot.clone() })?;
            self.made.devices.push(ram::size_zram(number, bed.size.0)?);
        }
        Ok(())
    }

    fn disks(&mut self, bed: &Bed, consents: &[Consent]) -> Result<(), BedError> {
        let machine = Machine::real();
        for path in &bed.paths {
            let device = check(path, consents)?;
            let overlapping = machine.block(device.number).map(|block| block.overlapping());
            let numbers: Vec<_> =
                overlapping.into_iter().flatten().map(|block| block.number).collect();
            let mut others = self.made.devices.iter();
            if let Some(other) = others.find(|other| numbers.contains(&other.number)) {
                let (one, other) = (other.path.clone(), device.path);
                return Err(BedError::Overlap { one, other });
            }
            self.made.devices.push(device);
        }
        Ok(())
    }

    fn directories(&mut self, bed: &Bed) {
        let machine = Machine::real();
        for block in bed.paths.iter().filter_map(|path| machine.beneath(Path::new(path))) {
            if self.made.devices.iter().all(|device| device.number != block.number) {
                self.made.devices.push(block.device());
            }
        }
    }
}

fn total_bytes(bed: &Bed) -> u64 {
    bed.size.0.saturating_mul(bed.devices.into())
}

/// A name that is free: the journal is to remove no file that was there before.
fn unused_path(dir: &Path) -> PathBuf {
    let path = |index: u32| dir.join(format!("fsverdict-{}-{index}.img", std::process::id()));
    (1..).map(path).find(|path| !path.exists()).expect("a folder has fewer files than u32")
}
