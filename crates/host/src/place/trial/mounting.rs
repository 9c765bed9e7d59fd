//! The trial's file system: made, mounted, synced, unmounted, and its caches dropped.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fsverdict_core::model::{BedKind, CacheState, Mounted, Trial};
use fsverdict_core::run::{HostError, Step};

use super::site::{commands, raw_device, with_site, work_directory};
use crate::bed;
use crate::file_system::{self, FileSystem, daemon};
use crate::machine::processes::Processes;
use crate::machine::{cache, cell, mount};
use crate::place::vm::guest;
use crate::tool::Argv;
use crate::{sys, tool};

/// How often a busy file system is tried to be unmounted, and how long between.
const UNMOUNT_TRIES: u32 = 200;
const UNMOUNT_PAUSE: Duration = Duration::from_millis(50);

/// What is done to the trial's file system.
#[derive(Clone, Copy, Debug)]
pub struct Mounting {
    /// None on bed `directory`.
    file_system: Option<&'static FileSystem>,
    /// The folder of the work has been made.
    has_work: bool,
}

impl Mounting {
    /// That of `trial`.
    pub fn of(trial: &Trial) -> Mounting {
        let file_system = file_system::find(&trial.contender.file_system);
        Mounting { file_system, has_work: false }
    }

    fn file_system(self, trial: &Trial) -> Result<&'static FileSystem, HostError> {
        let name = &trial.contender.file_system;
        self.file_system.ok_or_else(|| format!("no file system is called {name:?}").into())
    }

    /// Its daemon, if it has one, is started for making it and for each mount, so that nothing of
    /// the one before is cached in it.
    fn with_daemon(self, step: Step, trial: &Trial) -> Result<String, HostError> {
        let file_system = self.file_system(trial)?;
        if let Some(daemon) = file_system.daemon {
            daemon::start(daemon, &Path::new(&trial.raw).join("daemon.log"))?;
        }
        Ok(tool::run_all(&commands(file_system, step, trial))?)
    }

    /// mkfs gets words of the plan's, and finds the trial's devices alone. A guest has no others;
    /// of a pool, which a kernel or a daemon makes, the words are looked at before (`zfs.rs`).
    fn made(self, trial: &Trial) -> Result<String, HostError> {
        let file_system = self.file_system(trial)?;
        if guest::is_within() || file_system.makes_pools() {
            return self.with_daemon(Step::MakeFileSystem, trial);
        }
        let commands = commands(file_system, Step::MakeFileSystem, trial);
        let devices = with_site(trial, |site| site.devices.to_vec());
        Ok(cell::among(&devices, || tool::run_all(&commands))??)
    }

    /// Makes it, and writes its images out.
    pub fn make(self, processes: &mut Processes, trial: &Trial) -> Result<(), HostError> {
        let said = self.made(trial)?;
        fs::write(Path::new(&trial.raw).join("mkfs.stdout"), said)?;
        processes.end_all();
        if trial.bed.kind == BedKind::Loop {
            for device in &trial.bed.devices {
                bed::write_out(device).map_err(|error| format!("{}: {error}", device.path))?;
            }
        }
        Ok(())
    }

    /// Mounts it, and makes the folder of the work: mkfs may have been told to put something in its
    /// place.
    pub fn mount(
        &mut self,
        processes: &mut Processes,
        trial: &Trial,
    ) -> Result<Mounted, HostError> {
        self.with_daemon(Step::Mount, trial)?;
        processes.settle_in();
        let mount = mount::at(&trial.directory)?.ok_or("the mount is not to be seen")?;
        let version = mount::module_version(&mount.file_system);
        let mounted = mount::effective(&mount, &trial.contender.mount);
        let mounted = Mounted { version, ..mounted };
        if let Some(lost) = mounted.unseen.iter().find(|option| mount::must_show(option)) {
            return Err(format!("mount option {lost} did not take").into());
        }
        self.make_work(&work_directory(trial))?;
        Ok(mounted)
    }

    fn make_work(&mut self, directory: &Path) -> Result<(), HostError> {
        if !std::mem::replace(&mut self.has_work, true) {
            let made = fs::create_dir(directory);
            return Ok(made.map_err(|error| format!("{}: {error}", directory.display()))?);
        }
        match fs::symlink_metadata(directory)?.is_dir() {
            true => Ok(()),
            false => Err(format!("{} is no folder any more", directory.display()).into()),
        }
    }

    /// Unmounting while the device is held by a straggler is tried again for ten seconds; whatever
    /// the work left running is killed first, for it would hold the file system. With the file
    /// system go those who belonged to it.
    pub fn unmount(self, processes: &mut Processes, trial: &Trial) -> Result<(), HostError> {
        let commands = commands(self.file_system(trial)?, Step::Unmount, trial);
        for tries_left in (0..UNMOUNT_TRIES).rev() {
            processes.end_strangers();
            match tool::run_all(&commands) {
                Ok(_) => break,
                Err(error) if tries_left == 0 => return Err(error.into()),
                Err(_) => std::thread::sleep(UNMOUNT_PAUSE),
            }
        }
        processes.end_all();
        Ok(())
    }

    /// How what the trial writes comes to its devices.
    pub fn closing(self, trial: &Trial) -> Result<Closing, HostError> {
        let (on, sync): (_, fn(&File) -> io::Result<()>) = match trial.contender.is_raw() {
            true => (File::open(raw_device(trial)?)?, sync_device),
            false => (File::open(work_directory(trial))?, sync_file_system),
        };
        let commit = with_site(trial, |site| self.file_system?.commit(site));
        Ok(Closing { on, sync, commit })
    }
}

/// Caches are dropped while the file system is not mounted, so that only the device itself can be
/// cached; on bed `directory` the largest files of the work stand for it.
pub fn drop_caches(trial: &Trial) -> Result<CacheState, HostError> {
    let mut looked_at = match trial.bed.kind {
        BedKind::Directory => cache::largest_files(&work_directory(trial)),
        _ => {
            let mut nodes = cache::nodes(&trial.bed.devices);
            // What the file system is made on: a partition, or what layers give.
            with_site(trial, |site| nodes.extend(site.devices.iter().map(PathBuf::from)));
            nodes.sort();
            nodes.dedup();
            nodes
        }
    };
    if trial.bed.kind == BedKind::Loop {
        // Without direct I/O the host caches the image, and what is dirty can't be dropped.
        for image in cache::images(&trial.bed.devices) {
            File::open(&image)?.sync_all()?;
            looked_at.push(image);
        }
    }
    Ok(cache::drop_of(&looked_at))
}

/// How what was written comes to the devices.
#[derive(Debug)]
pub struct Closing {
    /// The work's folder, or the bare device.
    on: File,
    /// syncfs, or fsync of the device.
    sync: fn(&File) -> io::Result<()>,
    /// What a file system needs besides.
    commit: Option<Argv>,
}

impl Closing {
    /// Brings all of it there.
    pub fn sync(&self) -> Result<(), HostError> {
        (self.sync)(&self.on)?;
        if let Some(commit) = &self.commit {
            tool::run_all(std::slice::from_ref(commit))?;
        }
        Ok(())
    }

    /// How many programs that starts.
    pub fn programs(&self) -> u64 {
        self.commit.is_some().into()
    }
}

/// Brings all of a file system to its devices.
fn sync_file_system(directory: &File) -> io::Result<()> {
    sys::sync_fs(directory.as_fd())
}

/// Brings what was written to a device there, and flushes its cache: fsync(2) on it does both
/// (block/fops.c, blkdev_fsync).
fn sync_device(device: &File) -> io::Result<()> {
    device.sync_all()
}
