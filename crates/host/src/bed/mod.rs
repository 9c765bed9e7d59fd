//! What the file systems are made on.

mod block;
mod contents;
mod disk;
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
pub mod own;
pub mod partition;
mod ram;
mod refusal;
mod tables;
mod undo;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fsverdict_core::model::{Bed, BedKind, Device, Probed, Unit};
use thiserror::Error;

use block::Machine;
pub use block::Use;
pub use disk::{Seen, says};
pub use guard::{Consent, Consents, check};
use hold::Hold;
pub use identity::Identity;
pub use image::with_margin;
pub use image::write_out;
pub use like::{Flushes, Like};
pub use loop_device::LoopDevice;
pub use own::Own;
pub use refusal::Refusal;
pub use undo::Undo;

use crate::machine::folder;
use crate::machine::settings::{self, Change, SettingError};
use crate::machine::token::Token;
use crate::sys;

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
    #[error(
        "like = {path:?}: no disk is there (lsblk shows those of this machine): name one, or write \
         nvme, ssd, hdd or virtio"
    )]
    NoLike { path: String },
    #[error(
        "like = {path:?}: it takes each zone's blocks only in their order, as no image does: \
         measure on it, by --bed device:{path}"
    )]
    Zoned { path: String },
    #[error(transparent)]
    Setting(SettingError),
    #[error("{what}: {source}{}", rights(source))]
    Io { what: String, source: io::Error },
    #[error("{device} is still held: something has it mounted or open (see lsof {device})")]
    Held { device: String },
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("{}", listed(.0))]
    Several(Vec<BedError>),
    #[error("{cause}; clearing up failed too: {cleanup}")]
    Cleanup { cause: Box<BedError>, cleanup: Box<BedError> },
}

impl BedError {
    /// Something of the bed that could not be made is still there.
    pub fn is_half_made(&self) -> bool {
        matches!(self, BedError::Cleanup { .. })
    }

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
    /// A folder with images, or for trials.
    Own(Own),
    Loop(LoopDevice),
    Zram(u32),
    /// What a device said of itself before it was told to be like another.
    Queue(Vec<Change>),
}

impl Part {
    fn remove(self) -> Result<(), BedError> {
        match self {
            Part::Own(own) => own.remove(),
            Part::Loop(device) => device.detach(),
            Part::Zram(number) => ram::remove_zram(number),
            Part::Queue(changes) => undo::put_back(&changes),
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
    /// What was found out of its disk.
    pub probed: Option<Probed>,
    /// What it says of itself, where it was told to say that.
    pub like: Option<Like>,
    /// The user's disks.
    holds: Vec<Hold>,
    parts: Vec<Part>,
}

impl Made {
    fn nothing() -> Made {
        let (devices, holds, parts) = (Vec::new(), Vec::new(), Vec::new());
        let (probed, like) = (None, None);
        Made { devices, direct_io: None, compresses: false, probed, like, holds, parts }
    }

    /// The number in the name of the loop device of ours whose own number that is, the bed's or one
    /// below.
    pub fn loop_of(&self, number: [u32; 2]) -> Option<u32> {
        self.parts.iter().find_map(|part| match part {
            Part::Loop(it) => (it.device().number == number).then(|| it.number()),
            _ => None,
        })
    }

    /// For the report: whose place it takes, where it was told to be like another.
    pub fn like(&self) -> Option<String> {
        let device = self.devices.first().and_then(|device| says(device.number));
        self.like.as_ref().map(|like| like.told(device.as_ref()))
    }

    /// Makes the folder of `token` in `dir`, where trials make theirs, unless there it is.
    pub fn own_folder(
        &mut self,
        dir: &Path,
        token: &Token,
        before: Before<'_>,
    ) -> Result<(), BedError> {
        let looking = || format!("looking for the folder {}", dir.display());
        let path = fs::canonicalize(dir).map_err(failed(looking))?.join(own::name(token));
        let is_it = |part: &Part| matches!(part, Part::Own(own) if own.path() == path);
        if !self.parts.iter().any(is_it) {
            // The cell shows the work's folder in it to whichever user the work is; to others it
            // is shut.
            self.parts.push(Part::Own(own_folder(dir, token, 0o700, before)?));
        }
        Ok(())
    }

    /// Which folder the run's own at `path` is.
    ///
    /// # Errors
    /// Where it has none there.
    pub fn own_identity(&self, path: &str) -> io::Result<folder::Identity> {
        let is_it = |part: &Part| match part {
            Part::Own(own) if own.path() == Path::new(path) => Some(own.identity()),
            _ => None,
        };
        self.parts.iter().find_map(is_it).unwrap_or(Err(io::ErrorKind::NotFound.into()))
    }

    /// Leaves the devices to a trial, if they are what they were and nobody else uses them: which
    /// they are, for its process to compare.
    pub fn lend(&mut self) -> Result<Vec<Identity>, Refusal> {
        self.take_back()?;
        for hold in &mut self.holds {
            guard::check_unused(hold)?;
            hold.lend()?;
        }
        let identity = |device: &Device| {
            let held = self.holds.iter().find(|hold| hold.device() == *device);
            let now = Identity::of(device);
            let known = held.map_or_else(|| now.clone(), |hold| Some(hold.identity().clone()));
            let changed = || Refusal::Changed { path: device.path.clone() };
            known.filter(|known| Some(known) == now.as_ref()).ok_or_else(changed)
        };
        self.devices.iter().map(identity).collect()
    }

    /// The disks that are lent are the ones at their paths.
    pub fn check_same(&self) -> Result<(), Refusal> {
        self.holds.iter().try_for_each(Hold::check_same)
    }

    /// Waits until nothing has the devices mounted any more: the kernel takes the mounts of a trial
    /// that was killed away some time after its processes. An interruption ends the wait.
    pub fn wait_until_unused(
        &self,
        interrupted: &AtomicBool,
        patience: Duration,
    ) -> Result<(), BedError> {
        self.devices.iter().try_for_each(|device| {
            let is_free = || {
                let claimed = hold::claim(&device.path, &device.path);
                !matches!(claimed, Err(Refusal::Busy { .. })) || interrupted.load(Ordering::Relaxed)
            };
            let held = || BedError::Held { device: device.path.clone() };
            loop_device::wait_for(patience, is_free).map_err(|()| held())
        })
    }

    /// Has the devices again, when the trial is over.
    pub fn take_back(&mut self) -> Result<(), Refusal> {
        self.holds.iter_mut().try_for_each(Hold::take_back)
    }

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
        self.holds.clear();
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

/// Makes the folder of `token` in `dir`, told to the journal before. `mode` is less the umask.
pub fn own_folder(
    dir: &Path,
    token: &Token,
    mode: u32,
    before: Before<'_>,
) -> Result<Own, BedError> {
    let making = || format!("making a folder in {}", dir.display());
    Own::make(dir, token, mode, |parent| {
        before(&Undo::Folder { parent: parent.into(), folder: token.clone() })
    })
    .map_err(failed(making))
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

/// Makes the bed of a plan, for the run of `token`. Images lie in the bed's own `dir`, otherwise in
/// `dir`, in a folder of ours.
pub fn make(
    bed: &Bed,
    dir: &Path,
    token: &Token,
    consents: &Consents,
    before: Before<'_>,
    progress: Progress<'_>,
) -> Result<Made, BedError> {
    let dir = bed.dir.as_deref().map_or(dir, Path::new);
    let mut maker = Maker::new(token, before, progress);
    maker.made.like = Like::of(bed, dir)?;
    let result = match bed.kind {
        BedKind::Loop => maker.loops(bed, dir, true),
        BedKind::Ram if bed.zram => maker.zram(bed),
        BedKind::Ram => maker.ram(bed),
        BedKind::Device => maker.disks(bed, consents),
        BedKind::Directory => maker.directories(bed),
    };
    let result = result.and_then(|()| maker.be_like());
    maker.end(result)
}

/// Makes the images of a bed as [`make`] does, on bed `ram` in memory, and leaves it at that: each
/// is a disk to a virtual machine, and its path stands for the device's.
pub fn make_images(
    bed: &Bed,
    dir: &Path,
    token: &Token,
    before: Before<'_>,
    progress: Progress<'_>,
) -> Result<Made, BedError> {
    let mut maker = Maker::new(token, before, progress);
    maker.made.like = Like::of(bed, bed.dir.as_deref().map_or(dir, Path::new))?;
    let result = maker.images(bed, dir);
    maker.end(result)
}

struct Maker<'a> {
    made: Made,
    token: &'a Token,
    before: Before<'a>,
    progress: Progress<'a>,
    written_bytes: u64,
}

impl<'a> Maker<'a> {
    fn new(token: &'a Token, before: Before<'a>, progress: Progress<'a>) -> Self {
        Maker { made: Made::nothing(), token, before, progress, written_bytes: 0 }
    }

    fn end(self, result: Result<(), BedError>) -> Result<Made, BedError> {
        match result {
            Ok(()) => Ok(self.made),
            Err(cause) => Err(cause.after(self.made.remove())),
        }
    }

    fn announce(&mut self, undo: &Undo) -> Result<(), BedError> {
        (self.before)(undo).map_err(failed(|| "writing the undo journal"))
    }

    fn loops(&mut self, bed: &Bed, dir: &Path, direct_io: bool) -> Result<(), BedError> {
        let images = self.filled(bed, dir)?;
        let block_bytes = self.made.like.as_ref().map_or(0, Like::loop_block_bytes);
        self.announce(&Undo::DetachLoop { folder: self.token.clone() })?;
        for (_, image) in images {
            let device = LoopDevice::attach_file(&image, direct_io, block_bytes)?;
            let all_direct = self.made.direct_io.unwrap_or(true) && device.direct_io();
            self.made.direct_io = Some(all_direct);
            let lower = device.device();
            self.made.parts.push(Part::Loop(device));
            self.offer(bed, lower)?;
        }
        Ok(())
    }

    /// Makes `device` one of the bed's, or the one upon it where there are to be limits:
    /// `machine/throttle.rs` says why.
    fn offer(&mut self, bed: &Bed, device: Device) -> Result<(), BedError> {
        if !bed.is_limited() {
            self.made.devices.push(device);
            return Ok(());
        }
        let upper = LoopDevice::upon(&device)?;
        self.made.devices.push(upper.device());
        self.made.parts.push(Part::Loop(upper));
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
        for (path, _) in self.filled(bed, dir)? {
            let (path, size_bytes) = (path.display().to_string(), bed.size.0);
            self.made.devices.push(Device { path, number: [0, 0], size_bytes });
        }
        Ok(())
    }

    /// The bed's images, each with its path, in a folder of ours in `dir`.
    fn filled(&mut self, bed: &Bed, dir: &Path) -> Result<Vec<(PathBuf, File)>, BedError> {
        let looking = || format!("looking for the folder {}", dir.display());
        let dir = fs::canonicalize(dir).map_err(failed(looking))?;
        image::check_space(&dir, total_bytes(bed))?;
        let own = own_folder(&dir, self.token, 0o700, self.before)?;
        self.made.parts.push(Part::Own(own));
        let Some(Part::Own(own)) = self.made.parts.last() else { return Ok(Vec::new()) };
        let mut images = Vec::new();
        for number in 1..=bed.devices {
            let name = format!("{number}.img");
            let c_name = sys::c_path(Path::new(&name)).map_err(failed(looking))?;
            let (before_bytes, progress) = (self.written_bytes, &mut self.progress);
            let hear = |bytes| progress(before_bytes + bytes);
            let image = image::create(own, &c_name, bed.size.0, hear)?;
            self.written_bytes += bed.size.0;
            images.push((own.path().join(name), image));
        }
        if let Some((image, _)) = images.first() {
            let disk = Machine::real().beneath(&dir).map(|block| block.disk().device().path);
            self.probe(image, disk);
        }
        Ok(images)
    }

    /// Sees how the disk answers at `path`, and whether that contradicts what it says.
    fn probe(&mut self, path: &Path, disk: Option<String>) {
        let reads = disk::reads(path);
        let like = self.made.like.take().map(|like| like.mended(reads));
        let mended = like.as_ref().is_some_and(|like| like.mended);
        self.made.probed = reads.map(|reads| Probed { reads, disk, mended });
        self.made.like = like;
    }

    /// Has the devices say what the bed is to be like.
    fn be_like(&mut self) -> Result<(), BedError> {
        let Some(like) = self.made.like.clone() else { return Ok(()) };
        let cache = match self.made.direct_io {
            // A disk of the user's has other partitions perhaps, and an owner after a crash.
            None => Flushes::Own,
            Some(false) => Flushes::Kept,
            Some(true) => Flushes::Like,
        };
        for device in self.made.devices.clone() {
            let settings = like.offered(device.number, cache);
            let changes =
                settings::before(Path::new("/"), &settings, &[]).map_err(BedError::Setting)?;
            let ours = self.made.loop_of(device.number);
            let image = ours.map(|number| (number, self.token.clone()));
            self.announce(&Undo::queue(image, changes.clone()))?;
            self.made.parts.push(Part::Queue(changes));
            like::set(&settings)?;
        }
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
            // Only the device itself tells its number. The one that it should get is told before;
            // who is killed in between leaves a device of that number without a size.
            let undo = |number, sequence| {
                let boot = boot.clone();
                Undo::RemoveZram { number, boot, sequence }
            };
            self.announce(&undo(ram::next_zram(), None))?;
            let number = ram::add_zram()?;
            self.made.parts.push(Part::Zram(number));
            (self.progress)(0).map_err(failed(|| "adding a zram device"))?;
            self.announce(&undo(number, Some(ram::sequence(number))))?;
            let device = ram::size_zram(number, bed.size.0)?;
            self.offer(bed, device)?;
        }
        Ok(())
    }

    fn disks(&mut self, bed: &Bed, consents: &Consents) -> Result<(), BedError> {
        self.made.holds = check(&bed.paths, consents)?;
        self.made.devices = self.made.holds.iter().map(Hold::device).collect();
        if let [device] = self.made.devices.as_slice() {
            let (path, disk) = (device.path.clone(), whole_disk(device));
            self.probe(Path::new(&path), disk);
        }
        Ok(())
    }

    /// Where a folder can't be made is told before the first trial.
    fn directories(&mut self, bed: &Bed) -> Result<(), BedError> {
        for path in &bed.paths {
            self.made.own_folder(Path::new(path), self.token, self.before)?;
        }
        let machine = Machine::real();
        for block in bed.paths.iter().filter_map(|path| machine.beneath(Path::new(path))) {
            if self.made.devices.iter().all(|device| device.number != block.number) {
                self.made.devices.push(block.device());
            }
        }
        // Of several each contender has met another.
        if let [device] = self.made.devices.as_slice() {
            let (path, disk) = (device.path.clone(), whole_disk(device));
            self.probe(Path::new(&path), disk);
        }
        Ok(())
    }
}

/// The whole disk on which the device lies.
fn whole_disk(device: &Device) -> Option<String> {
    Machine::real().block(device.number).map(|block| block.disk().device().path)
}

fn total_bytes(bed: &Bed) -> u64 {
    bed.size.0.saturating_mul(bed.devices.into())
}
