//! A bed that has been made: lent to trials, taken back, and cleared away.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fsverdict_core::model::{Device, Probed};

use super::error::{BedError, failed};
use super::hold::{self, Hold};
use super::own::{self, Own};
use super::refusal::Refusal;
use super::undo::{self, Undo};
use super::{Before, Identity, Like, LoopDevice, guard, loop_device, ram, says};
use crate::machine::folder;
use crate::machine::settings::Change;
use crate::machine::token::Token;

#[derive(Debug)]
pub(super) enum Part {
    /// A folder with images, or for trials.
    Own(Own),
    Loop(LoopDevice),
    Zram(u32),
    /// What a device said of itself before it was set to be like another.
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
    /// What it says of itself, if it was set to say that.
    pub like: Option<Like>,
    /// The user's disks.
    pub(super) holds: Vec<Hold>,
    pub(super) parts: Vec<Part>,
}

impl Made {
    pub(super) fn nothing() -> Made {
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

    /// For the report: which disk it stands for, if it was set to be like another.
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
        if !self.own().any(|own| own.path() == path) {
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
        let own = self.own().find(|own| own.path() == Path::new(path));
        own.map_or(Err(io::ErrorKind::NotFound.into()), Own::identity)
    }

    /// The path to one of its images for the processes that we start ([`Own::held`]); for anything
    /// else its own path.
    pub fn held(&self, image: &Path) -> PathBuf {
        let of = |own: &Own| Some(own.held().join(image.strip_prefix(own.path()).ok()?));
        self.own().find_map(of).unwrap_or_else(|| image.into())
    }

    /// The folders of ours that it lies in.
    pub fn own(&self) -> impl Iterator<Item = &Own> {
        self.parts.iter().filter_map(|part| match part {
            Part::Own(own) => Some(own),
            _ => None,
        })
    }

    /// Lends the devices to a trial, if they are what they were and nobody else uses them. Returns
    /// which devices they are, for its process to compare.
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
    /// As far as possible: nobody is left to report errors to, and the journal still knows.
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
