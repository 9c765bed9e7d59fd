//! A machine for each trial, without root or a spare disk: a QEMU microVM with any kernel
//! (`qemu.rs`), or a User Mode Linux ([`uml`]). Only how these are started differs, what they call
//! their disks, and what they can't have.
//!
//! The guest is fsverdict itself, as the first process ([`guest`]), in an initial file system that
//! is made of the host's own files (`host_files.rs`), or for other processors of what was fetched
//! for these ([`userland`]), and the kernel's modules (`modules.rs`). A trial goes in and its
//! record comes out as the same documents as everywhere, in archives on a disk of their own: that
//! needs no file system, no network and no serial console.

mod answers;
mod apt;
pub mod arch;
mod archive;
mod boot;
mod bootable;
mod bring;
mod built;
mod console;
mod disks;
mod elf;
mod error;
mod facts;
pub mod fetch;
mod full;
pub mod guest;
mod heard;
mod host_files;
mod hung;
mod image;
mod imagined;
pub mod kernel;
pub mod kvm;
mod loading;
mod logged;
pub mod modules;
mod nodes;
pub mod openzfs;
mod own_files;
mod prepared;
mod qemu;
mod release;
mod runner;
mod shell;
pub mod toolbox;
pub mod uml;
pub mod userland;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use fsverdict_core::model::{
    self, Bed, Contender, Device, Guest, Outcome, Overdue, Plan, Record, Trial, TrialBed,
};
use fsverdict_core::run::{HostError, Place};

use crate::bed::{self, Own};
use crate::machine::folder::Folder;
use crate::machine::token::Token;
use crate::place::shut::Shut;
use crate::place::trial_process::{Event, Watch};
use crate::undo::{Journal, Undo};
pub use answers::answer;
use arch::Arch;
use bootable::Asked;
use bring::Brought;
pub use error::VmError;
pub use facts::{BUILD_OF, EMULATED, Facts, MACHINES, MODULES_OF, PROGRAMS_FOR};
use guest::Answer;
use host_files::HostFiles;
pub use imagined::imagined;
use logged::Log;
pub use modules::CONTENTS;
use prepared::Prepared;
pub use prepared::{check, file_system, file_systems_by_host, hint};
use runner::{Runner, processors};
pub use shell::Terminal;
use userland::Userland;

/// Virtual machines as the place of a run.
pub struct Vm<'a> {
    folder: PathBuf,
    /// That folder: root's trials write in it, whatever its path leads to by now.
    held: Folder,
    plan: Plan,
    interrupted: Arc<AtomicBool>,
    watch: Watch<'a>,
    journal: Option<Journal>,
    prepared: Prepared,
    made: Option<bed::Made>,
    /// The bed could neither be made nor taken back whole: the journal knows of the rest.
    is_half_made: bool,
    /// The folder for what the machines need, which goes when the run is over.
    own: Option<Own>,
    brought: BTreeMap<Asked, Brought>,
    runner: Runner,
}

impl<'a> Vm<'a> {
    /// The machines of the run in `folder`, with the kernels that it `had` where it goes on. Fails
    /// when another process runs it, and when the plan can't be run in machines here.
    pub fn new(
        folder: &Path,
        plan: &Plan,
        had: &Facts,
        interrupted: Arc<AtomicBool>,
        watch: Watch<'a>,
    ) -> Result<Self, HostError> {
        Vm::with(folder, plan, Prepared::of(plan, had, &[])?, interrupted, watch)
    }

    /// [`Vm::new`], in whose machines one can look around.
    pub fn to_look_around(
        folder: &Path,
        plan: &Plan,
        had: &Facts,
        interrupted: Arc<AtomicBool>,
        watch: Watch<'a>,
    ) -> Result<Self, HostError> {
        let prepared = Prepared::of(plan, had, &shell::PROGRAMS)?;
        Vm::with(folder, plan, prepared, interrupted, watch)
    }

    fn with(
        folder: &Path,
        plan: &Plan,
        prepared: Prepared,
        interrupted: Arc<AtomicBool>,
        watch: Watch<'a>,
    ) -> Result<Self, HostError> {
        let journal = Some(Journal::open(Some(folder))?);
        let folder = folder.canonicalize()?;
        Ok(Vm {
            held: Folder::open(&folder)?,
            folder,
            plan: plan.clone(),
            interrupted,
            watch,
            journal,
            prepared,
            made: None,
            is_half_made: false,
            own: None,
            brought: BTreeMap::new(),
            runner: Runner::of(plan),
        })
    }

    /// The way to the run's own folder, for us and for the machines.
    fn own_folder(&self) -> Result<&Path, HostError> {
        Ok(self.own.as_ref().map(Own::held).ok_or("the bed is not made")?)
    }

    /// The way to the image that is such a device of a machine's.
    fn image_of(&self, device: &Device) -> PathBuf {
        let path = Path::new(&device.path);
        self.made.as_ref().map_or_else(|| path.into(), |made| made.held(path))
    }

    /// `said`, with files by their names instead of their paths.
    fn named(&self, said: String) -> String {
        let images = self.made.iter().flat_map(bed::Made::own);
        self.own.iter().chain(images).fold(said, |said, own| {
            said.replace(&own.held().display().to_string(), &own.path().display().to_string())
        })
    }

    /// Runs a trial with what comes out of it in its folder.
    fn run_in(&mut self, own: &Shut, trial: &Trial) -> Result<Record, HostError> {
        let document = serde_json::to_string_pretty(trial)?;
        own.folder.create("trial.json")?.write_all(document.as_bytes())?;
        let log = match self.runner {
            Runner::Qemu { .. } => Log::of(trial, self.own_folder()?, |it| self.image_of(it))?,
            Runner::Uml => None,
        };
        let booted = self.boot(trial, &own.raw.path(), log.as_ref());
        let (mut files, panicked) = booted.map_err(|error| self.explained(error))?;
        let answer = files.remove(guest::ANSWER).unwrap_or_default();
        let Answer { guest, error } = serde_json::from_slice(&answer)?;
        let record = files.remove("record.json");
        archive::unpack(&files, &own.folder)?;
        if let Some(error) = error {
            return Err(format!("Linux {}: {error}", guest.kernel).into());
        }
        let record = record.ok_or("the guest brought no record")?;
        let processor = self.booted_by(trial)?.0.processor;
        let mut guest = Guest { panicked, processor: processor.map(String::from), ..guest };
        guest.untold.extend(processor.map(|plain| {
            format!("its processor is QEMU's {plain}, because the kernel panicked on the usual one")
        }));
        let mut record =
            Record { guest: Some(guest), ..model::from_json(str::from_utf8(&record)?)? };
        if let Outcome::Failed(failure) = &mut record.outcome {
            failure.error = full::explained(mem::take(&mut failure.error), &self.folder);
        }
        log.map_or(Ok(()), |log| log.write(trial, &own.folder.path(), &mut record))?;
        let line = format!("{}\n", serde_json::to_string(&record)?);
        own.folder.write_whole("record.json", line.as_bytes())?;
        Ok(record)
    }

    /// Why there is no answer. How long a step took is known by its own kind of error.
    fn explained(&self, error: HostError) -> HostError {
        match error.is::<Overdue>() {
            true => error,
            false => full::explained(self.named(error.to_string()), &self.folder).into(),
        }
    }
}

impl Place for Vm<'_> {
    fn make_bed(&mut self, bed: &Bed) -> Result<TrialBed, HostError> {
        let (folder, interrupted) = (self.folder.clone(), Arc::clone(&self.interrupted));
        let journal = self.journal.as_mut().ok_or("the journal is closed")?;
        let mut before = |undo: &bed::Undo| journal.before(&Undo::Bed(undo.clone()));
        self.own = Some(bed::own_folder(&folder, &Token::random()?, 0o700, &mut before)?);
        // Before the images, which take minutes, so that the kernels that were found are booted.
        self.bring_kernels()?;
        let Vm { watch, journal, is_half_made, .. } = self;
        let journal = journal.as_mut().ok_or("the journal is closed")?;
        let token = journal.token().clone();
        let total_bytes = bed.size.0.saturating_mul(bed.devices.into());
        let mut before = |undo: &bed::Undo| journal.before(&Undo::Bed(undo.clone()));
        let mut progress = |bytes: u64| {
            watch(Event::Writing(bytes, total_bytes));
            match interrupted.load(std::sync::atomic::Ordering::Relaxed) {
                true => Err(io::Error::other("interrupted")),
                false => Ok(()),
            }
        };
        let made = bed::make_images(bed, &folder, &token, &mut before, &mut progress)
            .inspect_err(|error| *is_half_made = error.is_half_made())?;
        let (devices, probed) = (made.devices.clone(), made.probed.clone());
        self.made = Some(made);
        // QEMU holds the disks down to their limits.
        let (kind, lab) = (bed.kind, token.to_string());
        let limits_count = bed.limits_count(self.plan.place.unwrap_or(model::Place::Vm));
        Ok(TrialBed { kind, devices, limits_count, probed, lab, ..TrialBed::default() })
    }

    /// The guest sets them, before each trial: nothing of the host is changed.
    fn apply(&mut self, _contender: &Contender, _bed: &TrialBed) -> Result<(), HostError> {
        Ok(())
    }

    fn run_trial(&mut self, trial: &Trial) -> Result<Record, HostError> {
        let at = Path::new(&trial.raw).parent().ok_or("the trial has no folder")?;
        let own = Shut::make(&self.held, at.strip_prefix(&self.folder)?, trial)?;
        // Why a trial has failed comes before what could not be cleared away after it.
        let record = self.run_in(&own, trial);
        let opened = own.open();
        let record = record?;
        opened?;
        Ok(record)
    }

    fn restore(&mut self) -> Result<(), HostError> {
        Ok(())
    }

    fn remove_bed(&mut self) -> Result<(), HostError> {
        if let Some(made) = self.made.take() {
            made.remove()?;
        }
        if let Some(own) = self.own.take() {
            own.remove()?;
        }
        if !self.is_half_made
            && let Some(journal) = self.journal.take()
        {
            journal.close()?;
        }
        Ok(())
    }

    fn bed_facts(&self) -> Vec<(String, String)> {
        let config = self.plan.vm.clone().unwrap_or_default();
        let processors = match processors(&self.plan) {
            1 => "1 processor".to_string(),
            several => format!("{several} processors"),
        };
        let (runner, how) = self.runner.shown();
        let machine = format!("{runner}, {processors}, {}{how}", config.memory);
        let mut facts = vec![(MACHINES.to_string(), machine)];
        let mut images = self.made.iter().flat_map(|made| &made.devices);
        let how = match images.all(|device| self.is_direct(device)) {
            true => "direct I/O",
            false => "through the host's page cache",
        };
        facts.push(("disks".into(), how.into()));
        let like = self.made.as_ref().and_then(bed::Made::like);
        facts.extend(like.map(|like| ("bed is like".into(), like)));
        let others = self.prepared.host_files.values().filter_map(HostFiles::userland);
        let of = |its: &Userland| format!("{PROGRAMS_FOR}{}", its.arch().shown());
        facts.extend(others.map(|its| (of(its), its.told())));
        for (asked, bootable) in &self.prepared.kernels {
            let kernel = &bootable.kernel;
            let disks = match bootable.buses.as_slice() {
                [bus] => bus.shown(),
                [] => "",
                // What this kernel has is known when it has been booted.
                [..] => ", virtio disks, or IDE or SATA where it sees none",
            };
            let (release, zfs) = (&kernel.release, kernel.its_zfs());
            let arch = match kernel.arch {
                Arch::OWN => String::new(),
                other => format!(" for {}, emulated", other.shown()),
            };
            let text = format!("Linux {release}{arch}{zfs} ({}){disks}", kernel.image.display());
            facts.push((format!("kernel {}", asked.shown()), text));
            facts.push((asked.build_fact(), kernel.told()));
            let print = self.prepared.prints[asked].clone();
            facts.push((format!("{MODULES_OF}{}", asked.shown()), print));
        }
        facts
    }

    fn left(&self) -> Vec<String> {
        let journal = self.journal.iter();
        journal.map(|journal| format!("what {} lists", journal.path().display())).collect()
    }
}
