//! This machine as the host of one trial: the inside of `fsverdict trial`.
//!
//! What a trial's document means here is in `site.rs`, what is done to its file system in
//! `mounting.rs`, and how its work is timed in `timed.rs`. The work itself is an engine's
//! ([`crate::workload`]).

mod environment;
mod held;
mod mounting;
pub mod site;
mod timed;
mod traced;
mod watched;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Instant;

use fsverdict_core::model::{self, BedKind, Phase, Refused, Sample, Trial, Trouble};
use fsverdict_core::run::{Effect, Host, HostError, Step};

use super::lease::Lease;
use super::link;
use crate::bed::{self, partition};
use crate::layer;
use crate::machine::cell::{self, Cells};
use crate::machine::folder::Folder;
use crate::machine::processes::Processes;
use crate::machine::within;
use crate::machine::{settle, throttle};
use crate::probe::Troubles;
use crate::sys;
use crate::workload::engine::Scene;
use crate::workload::printed::Outputs;
use crate::workload::relay::Relay;
use crate::workload::{self, command};
use mounting::Mounting;
use site::{WORK, command_of, figures_file, ground, names, scene, work_directory};
use timed::{Part, Timing};
use traced::Traces;
use watched::Watched;

/// This machine, during one trial.
#[derive(Debug)]
pub struct TrialHost {
    start: Instant,
    environment: BTreeMap<String, String>,
    lease: Lease,
    mounting: Mounting,
    processes: Processes,
    /// None where the work runs as we do.
    cells: Option<Cells>,
    timing: Timing,
    /// What commands have printed.
    outputs: Outputs,
    troubles: Troubles,
    relay: Relay,
    traces: Traces,
    watched: Watched,
}

impl TrialHost {
    /// This machine, about to run `trial`, and the trial by paths that nobody else can change.
    ///
    /// # Errors
    /// When no living run has given this trial out.
    pub fn new(trial: Trial) -> Result<(Self, Trial), HostError> {
        let lease = Lease::of(&trial)?;
        let trial = held::held(trial, &lease)?;
        let environment = environment::environment(&trial);
        let cells = cells(&trial, &environment)?;
        if let (None, Some(path)) = (&cells, trial.workload.map.keys().next()) {
            return Err(format!("{path} can't be mapped here: the work can't be confined").into());
        }
        if cells.is_some() && sys::is_root() {
            sys::leave_session_keys().map_err(|it| format!("leave the session's keys: {it}"))?;
        }
        let host = TrialHost {
            start: Instant::now(),
            cells,
            environment,
            lease,
            mounting: Mounting::of(&trial),
            processes: Processes::default(),
            timing: Timing::default(),
            outputs: Outputs::default(),
            troubles: Troubles::of(Path::new("/"), &trial.bed.devices, within::is_guest()),
            relay: Relay::default(),
            traces: Traces::default(),
            watched: Watched::begin(&trial),
        };
        Ok((host, trial))
    }

    fn scene<'a>(&'a self, trial: &'a Trial) -> Result<Scene<'a>, HostError> {
        scene(trial, &self.environment, self.cells.as_ref(), &self.outputs, &self.relay)
    }

    /// Runs the command that the workload has for `step`.
    fn command(&self, step: Step, trial: &Trial) -> Result<(), HostError> {
        if let Some(command) = command_of(step, &trial.workload) {
            let scene = self.scene(trial)?;
            command::ready(&command.argv(), &step.to_string(), &scene)?.run()?;
        }
        Ok(())
    }

    /// What setup and prepare leave running serves the work: a database's server.
    fn with_servers(&mut self, step: Step, trial: &Trial) -> Result<(), HostError> {
        self.command(step, trial)?;
        self.processes.settle_servers();
        if step == Step::Setup {
            self.cells.as_mut().map_or(Ok(()), Cells::seal)?;
        }
        Ok(())
    }

    fn figures(&self, trial: &Trial) -> Result<Effect, HostError> {
        let (raw, written) = (Path::new(&trial.raw), figures_file(trial));
        Ok(Effect::Figures(command::figures(&trial.workload, raw, &written, &self.outputs)?))
    }

    fn link(&self, trial: &Trial) -> Result<(), HostError> {
        let user = self.cells.as_ref().map(Cells::user).transpose()?;
        trial.workload.link().map_or(Ok(()), |network| link::make(network, user))
    }

    /// Ends what the work has left running, and then its cell, which would hold the file system:
    /// unmounting it here would not show that. The cell's mounts go at once where we are the last
    /// to leave it, and some time later where a process is (fs/namespace.c, `mntput_no_expire`).
    fn end_work(&mut self) -> Result<Effect, HostError> {
        let is_over = self.processes.end_strangers();
        let left = self.cells.as_mut().map(Cells::leave);
        if !is_over {
            return Err("what the work has left running can't be ended".into());
        }
        let left = match left {
            Some(astray) if astray.files > 0 => Effect::Astray(astray),
            _ => Effect::Done,
        };
        Ok(match self.watched.more() {
            Some(forbidden) => Effect::Both(Box::new([left, Effect::Forbidden(forbidden)])),
            None => left,
        })
    }

    fn unmount(&mut self, trial: &Trial) -> Result<Effect, HostError> {
        let left = self.end_work()?;
        self.mounting.unmount(&mut self.processes, trial)?;
        Ok(with(left, self.traces.write(trial)))
    }

    fn fill(&self, trial: &Trial) -> Result<(), HostError> {
        let scene = self.scene(trial)?;
        workload::engine(trial.workload.work()?).lay_out(&scene)
    }

    fn cleanup(&self, trial: &Trial) -> Result<(), HostError> {
        self.command(Step::Cleanup, trial)?;
        let scene = self.scene(trial)?;
        workload::engine(trial.workload.work()?).clean_up(&scene)
    }

    fn work(&mut self, phase: Phase, trial: &Trial) -> Result<Effect, HostError> {
        if trial.contender.is_raw() {
            self.lease.check_devices(trial)?;
        }
        let closing = self.mounting.closing(trial)?;
        let engine = workload::engine(trial.workload.work()?);
        // Not a method: the timed work borrows other fields.
        let (cells, outputs) = (self.cells.as_ref(), &self.outputs);
        let mut scene = scene(trial, &self.environment, cells, outputs, &self.relay)?;
        scene.has_servers = self.processes.has_servers();
        let tracing = traced::begin(trial, phase);
        scene.marks = tracing.as_ref().map(|tracing| &tracing.marks);
        let mut work = engine.prepare(phase, &scene)?;
        scene.relay.map_or(Ok(()), Relay::ready)?;
        let part = Part { trial, phase, closing: &closing, processes: &self.processes };
        let timed = self.timing.timed(&part, || work.run());
        if timed.is_ok() {
            scene.relay.map_or(Ok(()), Relay::closed)?;
        }
        if !trial.contender.is_raw() {
            let directories = self.mounting.directories(trial);
            directories.iter().for_each(|directory| self.troubles.look(directory));
        }
        let mut record = match timed {
            Err(error) if engine.is_refusal(&*error) => {
                return Ok(Effect::Refused(Refused { phase, why: error.to_string() }));
            }
            timed => timed?,
        };
        work.figures(&mut record)?;
        drop(work);
        self.traces.keep(tracing, phase);
        if trial.contender.is_raw() {
            record.samples.extend(self.traces.write(trial));
        }
        record.processes_left = self.processes.strangers();
        Ok(Effect::Worked(Box::new(record)))
    }
}

/// They outlive the processes that make them: the end of a guest takes them away, and on a host the
/// lab does.
fn layers(trial: &Trial) -> Result<Effect, HostError> {
    if !within::is_guest() {
        layer::host::prepare();
    }
    let devices: Vec<String> = trial.bed.devices.iter().map(|it| it.path.clone()).collect();
    Ok(Effect::Layered(layer::raise(&trial.contender.layers, &devices, &names(trial))?))
}

/// What a step has brought to light, and figures, if there are some.
fn with(effect: Effect, figures: Vec<Sample>) -> Effect {
    match figures.is_empty() {
        true => effect,
        false => Effect::Both(Box::new([effect, Effect::Figures(figures)])),
    }
}

/// Cells for the work of `trial`. A guest whose kernel has none confines its work by itself, and a
/// user's work can do no more than its user.
fn cells(
    trial: &Trial,
    environment: &BTreeMap<String, String>,
) -> Result<Option<Cells>, HostError> {
    let mut cells = Cells::new(ground(trial, environment));
    if let Some(cache) = environment.get(site::CACHE) {
        make_cache(Path::new(cache)).map_err(|error| format!("{cache}: {error}"))?;
    }
    if trial.workload.setup.is_none() {
        // No one else makes what is kept there.
        cells.seal()?;
    }
    let goes_without = cell::is_possible().is_err() && (within::is_guest() || !sys::is_root());
    Ok((!goes_without).then_some(cells))
}

/// Makes the folder of what a setup keeps, in one that is shut to others: what root's setup leaves
/// there may run as root.
fn make_cache(cache: &Path) -> io::Result<()> {
    let inputs = cache.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(inputs)?;
    let inputs = Folder::open(inputs)?;
    let is_own = |folder: &Folder| match folder.is_own()? {
        true => Ok(()),
        false => Err(io::Error::other("it is another user's: remove it, or set XDG_CACHE_HOME")),
    };
    is_own(&inputs)?;
    inputs.shut()?;
    is_own(&inputs.make(Path::new(cache.file_name().ok_or(io::ErrorKind::InvalidInput)?))?)
}

impl Host for TrialHost {
    fn perform(&mut self, step: Step, trial: &Trial) -> Result<Effect, HostError> {
        let writes = [Step::Partition, Step::RemovePartition, Step::Layers, Step::MakeFileSystem];
        if writes.contains(&step) {
            self.lease.check_devices(trial)?;
        }
        let Self { mounting, processes, .. } = self;
        match step {
            Step::Partition => {
                let words = &trial.contender.partition;
                let made = partition::make(words, &trial.bed.devices, !within::is_guest())?;
                return Ok(Effect::Partitioned(made));
            }
            Step::Layers => return layers(trial),
            Step::RemovePartition => partition::remove(&trial.bed.devices)?,
            Step::MakeFileSystem => mounting.make(processes, trial)?,
            Step::MakeDirectory => fs::create_dir(work_directory(trial))?,
            Step::Mount => return Ok(Effect::Mounted(mounting.mount(processes, trial)?)),
            Step::Link => self.link(trial)?,
            Step::Setup | Step::Prepare => self.with_servers(step, trial)?,
            Step::Check => self.command(step, trial)?,
            Step::Figures => return self.figures(trial),
            Step::Fill => self.fill(trial)?,
            Step::Sync => mounting.closing(trial)?.sync()?,
            Step::Unmount => return self.unmount(trial),
            Step::DropCaches => return Ok(Effect::Dropped(mounting::drop_caches(trial)?)),
            Step::Limit => {
                let root = Path::new("/");
                if let Some(limits) = trial.limits() {
                    throttle::hold_down(root, limits, &throttle::held(root, &trial.bed)?)?;
                }
            }
            Step::Settle => return Ok(Effect::Settled(settle::settle(&trial.bed.devices))),
            Step::Work(phase) => return self.work(phase, trial),
            Step::Cleanup => self.cleanup(trial)?,
            Step::RemoveDirectory => {
                let left = self.end_work()?;
                let figures = self.traces.write(trial);
                bed::own::clear(Path::new(&trial.directory), &trial.bed.lab, WORK)?;
                return Ok(with(left, figures));
            }
        }
        Ok(Effect::Done)
    }

    fn clean_up(&mut self, trial: &Trial) -> Vec<String> {
        let ended = self.end_work();
        let mut errors: Vec<String> = ended.err().map(|it| it.to_string()).into_iter().collect();
        if trial.bed.kind == BedKind::Directory {
            let cleared = bed::own::clear(Path::new(&trial.directory), &trial.bed.lab, WORK);
            errors.extend(cleared.err().map(|error| error.to_string()));
        } else if self.mounting.is_mounted(trial) {
            self.mounting.give_up();
            let unmounted = self.unmount(trial);
            errors.extend(unmounted.err().map(|error| error.to_string()));
        }
        if !trial.contender.partition.is_empty() {
            let removed = self.perform(Step::RemovePartition, trial);
            errors.extend(removed.err().map(|error| error.to_string()));
        }
        errors
    }

    fn trouble(&mut self) -> Trouble {
        self.troubles.so_far()
    }

    fn unkept_bytes(&mut self) -> BTreeMap<String, u64> {
        self.outputs.unkept_bytes()
    }

    fn disk(&mut self, trial: &Trial) -> Option<model::Disk> {
        bed::says(trial.bed.devices.first()?.number)
    }

    fn clock_ns(&mut self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }
}
