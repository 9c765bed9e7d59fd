//! The trial's file system: made, mounted, synced, unmounted, and its caches dropped.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fsverdict_core::model::{BedKind, CacheState, Mounted, Trial};
use fsverdict_core::run::{HostError, Step};

use super::site::{Level, devices, levels, raw_device, work_directory};
use crate::bed;
use crate::file_system::{self, FileSystem, daemon};
use crate::machine::processes::Processes;
use crate::machine::within;
use crate::machine::{cache, cell, mount};
use crate::tool::Argv;
use crate::workload::command::created_anew;
use crate::{sys, tool};

/// How often a busy file system is tried to be unmounted, and how long between.
const UNMOUNT_TRIES: u32 = 200;
const UNMOUNT_PAUSE: Duration = Duration::from_millis(50);

/// What is done to the trial's file system, and to those stacked on it.
#[derive(Clone, Copy, Debug)]
pub struct Mounting {
    /// The one on the devices; none on bed `directory`.
    file_system: Option<&'static FileSystem>,
    /// How often it has been mounted.
    mounts: u32,
    /// The trial has failed: nothing is made any more.
    is_over: bool,
}

impl Mounting {
    /// That of `trial`.
    pub fn of(trial: &Trial) -> Mounting {
        let file_system = file_system::find(&trial.contender.file_system);
        Mounting { file_system, mounts: 0, is_over: false }
    }

    /// It has been mounted before: the folder of the work is there.
    fn has_work(self) -> bool {
        self.mounts > 0
    }

    /// The trial has failed.
    pub fn give_up(&mut self) {
        self.is_over = true;
    }

    fn levels(self, trial: &Trial) -> Result<Vec<Level<'_>>, HostError> {
        levels(trial, self.file_system)
    }

    /// Its daemon, if it has one, is started for making it and for each mount, so that nothing of
    /// the one before is cached in it.
    fn with_daemon(self, step: Step, level: &Level, log: &Path) -> Result<String, HostError> {
        if let Some(daemon) = level.file_system.daemon {
            daemon::start(daemon, log)?;
        }
        Ok(tool::run_all(&level.commands(step, self.has_work()))?)
    }

    /// mkfs gets words of the plan, and finds only the trial's devices. A guest has no others; the
    /// words for a pool, which a kernel or a daemon makes, are checked before (`zfs.rs`).
    fn made(self, trial: &Trial) -> Result<String, HostError> {
        let lowest = &self.levels(trial)?[0];
        if within::is_guest() || lowest.file_system.makes_pools() {
            return self.with_daemon(Step::MakeFileSystem, lowest, &log(trial));
        }
        let commands = lowest.commands(Step::MakeFileSystem, false);
        Ok(cell::among(&devices(trial), || tool::run_all(&commands))??)
    }

    /// Makes it, and writes its images out. File systems above it are made when it is mounted.
    pub fn make(self, processes: &mut Processes, trial: &Trial) -> Result<(), HostError> {
        assert_eq!(self.mounts, 0, "nothing is formatted that has been mounted");
        let said = self.made(trial)?;
        keep_said(trial, &said)?;
        processes.end_all();
        if trial.bed.kind == BedKind::Loop {
            for device in &trial.bed.devices {
                bed::write_out(device).map_err(|error| format!("{}: {error}", device.path))?;
            }
        }
        Ok(())
    }

    /// Mounts it and what stands on it, and makes the folder of the work: mkfs may have been told
    /// to put something in its place.
    pub fn mount(
        &mut self,
        processes: &mut Processes,
        trial: &Trial,
    ) -> Result<Mounted, HostError> {
        let levels = self.levels(trial)?;
        let mut mounted = levels.iter().map(|level| self.mount_level(level, trial));
        let lowest = mounted.next().ok_or("nothing to mount")??;
        let mounted = Mounted { above: mounted.collect::<Result<_, _>>()?, ..lowest };
        processes.settle_in();
        self.make_work(&work_directory(trial))?;
        Ok(mounted)
    }

    fn mount_level(self, level: &Level, trial: &Trial) -> Result<Mounted, HostError> {
        fs::create_dir_all(&level.at)?;
        if level.file_system.by_loopback && !within::is_guest() {
            let name = level.file_system.name;
            return Err(format!("{name} is served in virtual machines alone: --place vm").into());
        }
        level.check_goes_on()?;
        if level.file_system.is_upon && !self.has_work() {
            tool::run_all(&level.commands(Step::MakeFileSystem, false))?;
        }
        if let Some((argv, port)) = level.listener() {
            daemon::listen(&argv, port, &log(trial))?;
        }
        self.with_daemon(Step::Mount, level, &log(trial))?;
        if let Some(server) = level.server() {
            daemon::serve(&server, level.file_system.server_says, &level.at, &log(trial))?;
        }
        let mount = mount::at(&level.at)?.ok_or("the mount is not to be seen")?;
        let version = mount::module_version(&mount.file_system);
        let mut mounted = mount::effective(&mount, &level.file_system.told(level.options));
        match level.tells_all(self.has_work()) {
            true => level.check_is_its_own(&mount)?,
            false => mounted.unseen.clear(),
        }
        if let Some(lost) = mounted.unseen.iter().find(|option| mount::must_show(option)) {
            return Err(format!("mount option {lost} did not take").into());
        }
        Ok(Mounted { version, ..mounted })
    }

    fn make_work(&mut self, directory: &Path) -> Result<(), HostError> {
        self.mounts += 1;
        if self.mounts == 1 {
            let made = fs::create_dir(directory);
            return Ok(made.map_err(|error| format!("{}: {error}", directory.display()))?);
        }
        match fs::symlink_metadata(directory)?.is_dir() {
            true => Ok(()),
            false => Err(format!("{} is no longer a folder", directory.display()).into()),
        }
    }

    /// A folder on each file system that is mounted for writing: that of the work, and those on the
    /// file systems below.
    pub fn directories(self, trial: &Trial) -> Vec<PathBuf> {
        let levels = self.levels(trial).unwrap_or_default();
        if levels.first().is_some_and(|level| level.file_system.is_read_only()) {
            return Vec::new();
        }
        let lower = levels.iter().rev().skip(1).map(|level| PathBuf::from(&level.at));
        [work_directory(trial)].into_iter().chain(lower).collect()
    }

    /// Something of it is mounted.
    pub fn is_mounted(self, trial: &Trial) -> bool {
        let is_mounted = |level: &Level| matches!(mount::at(&level.at), Ok(Some(_)));
        self.levels(trial).is_ok_and(|levels| levels.iter().any(is_mounted))
    }

    /// Kills what the work left running, because it would hold the file system, and retries for ten
    /// seconds while something else holds the device. A program that served a file system holds the
    /// one below until it learns of the unmount; a server of the kernel's is ended. The file
    /// system's own processes end with it.
    pub fn unmount(self, processes: &mut Processes, trial: &Trial) -> Result<(), HostError> {
        self.pack(processes, trial)?;
        for level in self.levels(trial)?.iter().rev() {
            if !level.file_system.is_upon || mount::at(&level.at)?.is_some() {
                unmount(processes, &level.commands(Step::Unmount, self.has_work()))?;
            }
            if level.file_system.by_loopback && !within::is_guest() {
                continue; // It was refused: a server that runs is this machine's own.
            }
            let taken_down = tool::run_all(&level.take_down());
            // In a failed trial it may never have begun.
            taken_down.map(drop).or_else(|error| if self.is_over { Ok(()) } else { Err(error) })?;
        }
        processes.end_all();
        Ok(())
    }

    /// For a file system that is made from a tree: makes it from what was laid out.
    fn pack(self, processes: &mut Processes, trial: &Trial) -> Result<(), HostError> {
        let packed = self.levels(trial)?.first().and_then(Level::pack);
        let Some(argv) = packed.filter(|_| self.mounts == 1 && !self.is_over) else {
            return Ok(());
        };
        processes.end_strangers();
        keep_said(trial, &tool::run(&argv)?)?;
        devices(trial).iter().try_for_each(|device| File::open(device)?.sync_all())?;
        Ok(())
    }

    /// How the trial's writes reach its devices: from the top down, where syncfs on one file system
    /// does not reach what is below.
    pub fn closing(self, trial: &Trial) -> Result<Closing, HostError> {
        if trial.contender.is_raw() {
            return Ok(Closing::of(raw_device(trial)?, File::sync_all)?);
        }
        if trial.bed.kind == BedKind::Directory {
            return Ok(Closing::of(work_directory(trial), sync_file_system)?);
        }
        let mut closing = Closing::default();
        let mut reached = false;
        for level in self.levels(trial)?.iter().rev() {
            if !reached {
                let is_served = level.server().is_some();
                closing.add(&level.at, if is_served { sync_served } else { sync_file_system })?;
            }
            closing.commits.extend(level.commit());
            reached = !level.keeps_syncfs();
        }
        if !reached {
            for device in devices(trial) {
                // fsync(2) on a device writes it out and flushes its cache (block/fops.c,
                // blkdev_fsync).
                closing.add(device, File::sync_all)?;
            }
        }
        Ok(closing)
    }
}

fn unmount(processes: &mut Processes, commands: &[Argv]) -> Result<(), HostError> {
    for tries_left in (0..UNMOUNT_TRIES).rev() {
        processes.end_strangers();
        match tool::run_all(commands) {
            Ok(_) => break,
            Err(error) if tries_left == 0 => return Err(error.into()),
            Err(_) => std::thread::sleep(UNMOUNT_PAUSE),
        }
    }
    Ok(())
}

/// Keeps what mkfs said, where the work may write by then.
fn keep_said(trial: &Trial, said: &str) -> io::Result<()> {
    created_anew(&Path::new(&trial.raw).join("mkfs.stdout"))?.write_all(said.as_bytes())
}

fn log(trial: &Trial) -> PathBuf {
    Path::new(&trial.raw).join("daemon.log")
}

/// Caches are dropped while the file system is not mounted, so that only the device itself can be
/// cached; on bed `directory` the largest files of the work stand for it.
pub fn drop_caches(trial: &Trial) -> Result<CacheState, HostError> {
    let mut looked_at = match trial.bed.kind {
        BedKind::Directory => cache::largest_files(&work_directory(trial)),
        _ => {
            let mut nodes = cache::nodes(&trial.bed.devices);
            // What the file system is made on: a partition, or what layers provide.
            nodes.extend(devices(trial).iter().map(PathBuf::from));
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

/// One way of bringing to the devices what was written: syncfs, fsync.
type Way = fn(&File) -> io::Result<()>;

/// How what was written comes to the devices.
#[derive(Debug, Default)]
pub struct Closing {
    /// What is synced, in order: the work's folder, the file systems below; or a bare device.
    syncs: Vec<(File, Way)>,
    /// What file systems need besides.
    commits: Vec<Argv>,
}

impl Closing {
    fn of(path: impl AsRef<Path>, sync: Way) -> io::Result<Closing> {
        let mut closing = Closing::default();
        closing.add(path, sync)?;
        Ok(closing)
    }

    fn add(&mut self, path: impl AsRef<Path>, sync: Way) -> io::Result<()> {
        self.syncs.push((File::open(path)?, sync));
        Ok(())
    }

    /// Brings all of it there.
    pub fn sync(&self) -> Result<(), HostError> {
        self.syncs.iter().try_for_each(|(on, sync)| sync(on))?;
        tool::run_all(&self.commits)?;
        Ok(())
    }

    /// How many programs that starts.
    pub fn programs(&self) -> u64 {
        self.commits.len() as u64
    }
}

/// The same for a file system that a program serves: once it answers, it has seen all that was sent
/// before, closes included, whose answers nobody awaits.
fn sync_served(directory: &File) -> io::Result<()> {
    sys::room(Path::new(&format!("/proc/self/fd/{}", directory.as_raw_fd())))?;
    sync_file_system(directory)
}

/// Brings all of a file system to its devices.
fn sync_file_system(directory: &File) -> io::Result<()> {
    sys::sync_fs(directory.as_fd())
}
