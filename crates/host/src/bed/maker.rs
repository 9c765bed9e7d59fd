//! The making of a bed.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use fsverdict_core::model::{Bed, BedKind, Device, Probed};

use super::block::Machine;
use super::error::{BedError, failed};
use super::hold::Hold;
use super::like::{self, Flushes};
use super::made::{Made, Part, own_folder};
use super::{Before, Consents, Like, LoopDevice, Progress, Undo, check, disk, image, ram};
use crate::machine::settings;
use crate::machine::token::Token;
use crate::sys;

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
    maker.end(result, count(bed))
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
    maker.end(result, Some(bed.devices as usize))
}

/// How many devices the bed will have: none but itself knows on what a directory lies.
fn count(bed: &Bed) -> Option<usize> {
    match bed.kind {
        BedKind::Loop | BedKind::Ram => Some(bed.devices as usize),
        BedKind::Device => Some(bed.paths.len()),
        BedKind::Directory => None,
    }
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

    fn end(self, result: Result<(), BedError>, count: Option<usize>) -> Result<Made, BedError> {
        match result {
            Ok(()) => {
                let made = self.made.devices.len();
                assert!(count.is_none_or(|count| count == made), "{made} devices for a bed");
                Ok(self.made)
            }
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
        let first = images.first().map(|(image, _)| self.made.held(image));
        if let Some(image) = first {
            let disk = Machine::real().beneath(&dir).map(|block| block.disk().device().path);
            self.probe(&image, disk);
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
            // Only the device itself tells its number. The expected one is announced before; a
            // process killed in between leaves a device of that number without a size.
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

    /// A folder that can't be made is reported before the first trial.
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
        // With several, each contender has met another.
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
