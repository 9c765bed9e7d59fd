//! This machine as the host of one trial: the inside of `fsverdict trial`.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::BufWriter;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fsverdict_core::model::{
    self, BedKind, CacheState, Command, Device, ExtraProbe, Fio, Phase, PhaseRecord, Refused,
    Sysbench, Trial, Work, Workload,
};
use fsverdict_core::run::{Effect, Host, HostError, Step};

use super::lease::Lease;
use super::link;
use crate::bed::{self, partition};
use crate::file_system::{self, daemon};
use crate::file_system::{FileSystem, Site};
use crate::machine::processes::{Io, Processes};
use crate::machine::settings::{self, Setting};
use crate::machine::{cache, mount, settle};
use crate::probe::{Applications, PageCache, Probe, Shares, Timeline};
use crate::tool::Argv;
use crate::workload::command::{self, Scene};
use crate::workload::{Done, file_tree, fio, fsync_files, metadata, replay, small_files, sysbench};
use crate::{sys, tool};

/// How often a busy file system is tried to be unmounted, and how long between.
const UNMOUNT_TRIES: u32 = 20;
const UNMOUNT_PAUSE: Duration = Duration::from_millis(50);

/// The folder of the work, in the file system or in the run's own folder.
const WORK: &str = "work";

/// A timed part up to this long keeps its timeline at full resolution; a longer one halves it.
const TIMELINE: Duration = Duration::from_secs(3600);

/// This machine, during one trial.
#[derive(Debug)]
pub struct Here {
    start: Instant,
    environment: BTreeMap<String, String>,
    series_begun: bool,
    /// None on bed `directory`.
    file_system: Option<&'static FileSystem>,
    lease: Lease,
    processes: Processes,
}

/// The folder the work happens in: its own, so that `lost+found` is not part of it. On the bare
/// device there is none, and the tool works beside its output.
pub fn work_directory(trial: &Trial) -> PathBuf {
    let directory = Path::new(&trial.directory);
    match trial.bed.kind {
        _ if trial.contender.is_raw() => PathBuf::from(&trial.raw),
        _ => directory.join(WORK),
    }
}

/// Where a command leaves figures of its own.
fn figures_file(trial: &Trial) -> PathBuf {
    Path::new(&trial.raw).join("figures")
}

/// The command of the workload that a step runs, if it has one.
pub fn command_of(step: Step, workload: &Workload) -> Option<&Command> {
    match step {
        Step::Setup => workload.setup.as_ref(),
        Step::Prepare => workload.prepare.as_ref(),
        Step::Check => workload.check.as_ref(),
        Step::Cleanup => workload.cleanup.as_ref(),
        _ => None,
    }
}

/// The commands that make, mount or unmount the trial's file system.
pub fn commands(file_system: &FileSystem, step: Step, trial: &Trial) -> Vec<Argv> {
    with_site(trial, |site| match step {
        Step::MakeFileSystem => file_system.make(&trial.contender.mkfs, site),
        Step::Mount => file_system.mount(&trial.contender.mount, site),
        Step::Unmount => file_system.unmount(site),
        _ => Vec::new(),
    })
}

/// Where the trial's file system is.
pub fn with_site<T>(trial: &Trial, use_it: impl FnOnce(&Site) -> T) -> T {
    let on = |disk: &Device| match trial.contender.partition.is_empty() {
        true => disk.path.clone(),
        false => partition::node(&disk.path),
    };
    let devices: Vec<String> = trial.bed.devices.iter().map(on).collect();
    use_it(&Site { devices: &devices, at: &trial.directory })
}

impl Here {
    /// This machine, about to run `trial`.
    ///
    /// # Errors
    /// When no living run has given this trial out.
    pub fn new(trial: &Trial) -> Result<Self, HostError> {
        let lease = Lease::of(trial)?;
        let value = |text: &dyn ToString| text.to_string();
        let environment = [
            ("FSVERDICT_SEED", value(&trial.seed)),
            ("FSVERDICT_ROUND", value(&trial.key.round)),
            ("FSVERDICT_CONTENDER", value(&trial.contender.name)),
            ("FSVERDICT_FILE_SYSTEM", value(&trial.contender.file_system)),
            ("FSVERDICT_RAW", value(&trial.raw)),
            ("FSVERDICT_FIGURES", value(&figures_file(trial).display())),
        ]
        .map(|(name, value)| (name.to_string(), value));
        let mut environment = BTreeMap::from(environment);
        if let Ok(program) = std::env::current_exe() {
            environment.insert("FSVERDICT".into(), program.display().to_string());
        }
        let workload = &trial.workload;
        if workload.link().is_some() {
            environment.insert("FSVERDICT_SERVER".into(), link::SERVER_ADDRESS.into());
            environment.insert("FSVERDICT_CLIENTS".into(), value(&link::clients().display()));
        }
        let operations = workload.operations.map(|operations| ("FSVERDICT_OPERATIONS", operations));
        let bytes = workload.bytes.map(|bytes| ("FSVERDICT_BYTES", bytes.0));
        for (name, size) in operations.into_iter().chain(bytes) {
            environment.insert(name.into(), size.to_string());
        }
        for (name, value) in workload.environment.iter().chain(&trial.contender.environment) {
            environment.insert(name.clone(), value.to_string());
        }
        let file_system = file_system::find(&trial.contender.file_system);
        let (start, processes) = (Instant::now(), Processes::default());
        Ok(Here { start, environment, series_begun: false, file_system, lease, processes })
    }

    fn file_system(&self, trial: &Trial) -> Result<&'static FileSystem, HostError> {
        let name = &trial.contender.file_system;
        self.file_system.ok_or_else(|| format!("no file system is called {name:?}").into())
    }

    /// Its daemon, if it has one, is started for making it and for each mount, so that nothing of
    /// the one before is cached in it.
    fn with_daemon(&self, step: Step, trial: &Trial) -> Result<String, HostError> {
        let file_system = self.file_system(trial)?;
        if let Some(daemon) = file_system.daemon {
            daemon::start(daemon, &Path::new(&trial.raw).join("daemon.log"))?;
        }
        Ok(tool::run_all(&commands(file_system, step, trial))?)
    }

    fn make_file_system(&mut self, trial: &Trial) -> Result<Effect, HostError> {
        self.lease.check_devices(trial)?;
        let said = self.with_daemon(Step::MakeFileSystem, trial)?;
        fs::write(Path::new(&trial.raw).join("mkfs.stdout"), said)?;
        self.processes.end_all();
        if trial.bed.kind == BedKind::Loop {
            for device in &trial.bed.devices {
                bed::write_out(device).map_err(|error| format!("{}: {error}", device.path))?;
            }
        }
        Ok(Effect::Done)
    }

    fn mount(&mut self, trial: &Trial) -> Result<Effect, HostError> {
        self.with_daemon(Step::Mount, trial)?;
        self.processes.settle_in();
        let mount = mount::at(&trial.directory)?.ok_or("the mount is not to be seen")?;
        let mounted = mount::effective(&mount, &trial.contender.mount);
        if let Some(lost) = mounted.unseen.iter().find(|option| mount::must_show(option)) {
            return Err(format!("mount option {lost} did not take").into());
        }
        fs::create_dir_all(work_directory(trial))?;
        Ok(Effect::Mounted(mounted))
    }

    /// Runs the command that the workload has for `step`.
    fn command(&self, step: Step, trial: &Trial) -> Result<Effect, HostError> {
        if let Some(command) = command_of(step, &trial.workload) {
            self.ready(&step.to_string(), &command.argv(), trial)?.run()?;
        }
        Ok(Effect::Done)
    }

    /// What setup and prepare leave running serves the work: a database's server.
    fn with_servers(&mut self, step: Step, trial: &Trial) -> Result<Effect, HostError> {
        let done = self.command(step, trial)?;
        self.processes.settle_servers();
        Ok(done)
    }

    fn figures(&self, trial: &Trial) -> Result<Effect, HostError> {
        let path = figures_file(trial);
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            text => text.map_err(|error| format!("{}: {error}", path.display()))?,
        };
        let figures = model::figures(&text);
        Ok(Effect::Figures(figures.map_err(|error| format!("{}: {error}", path.display()))?))
    }

    fn ready(
        &self,
        name: &str,
        argv: &[String],
        trial: &Trial,
    ) -> Result<command::Ready, HostError> {
        let directory = work_directory(trial);
        let raw = Path::new(&trial.raw);
        let scene = Scene { directory: &directory, raw, environment: &self.environment };
        Ok(command::ready(argv, name, scene)?)
    }

    /// Files that the work finds there are laid out here, where that is not part of the
    /// measurement; fio would do so itself, before it reads them.
    fn fill(&self, trial: &Trial) -> Result<Effect, HostError> {
        match trial.workload.work()? {
            Work::Fio(job) => {
                fio::check(job)?;
                if fio::reads(job)? {
                    let output = Path::new(&trial.raw).join("fill.json");
                    let name = &trial.workload.name;
                    let argv = fio::fill_argv(job, name, trial.seed, &output);
                    self.ready("fill", &argv, trial)?.run()?;
                }
            }
            Work::Sysbench(test) => {
                let argv = sysbench::argv(test, "prepare", trial.seed);
                self.ready("fill", &argv, trial)?.run()?;
            }
            Work::FsyncFiles(files) => {
                fsync_files::lay_out(files, &work_directory(trial), trial.seed)?;
            }
            Work::Tree(tree) => file_tree::lay_out(tree, &work_directory(trial), trial.seed)?,
            Work::Replay(wanted) => {
                replay::lay_out(wanted, &work_directory(trial), trial.seed)?;
            }
            Work::Command(_) | Work::SmallFiles(_) | Work::Metadata(_) => {}
        }
        Ok(Effect::Done)
    }

    fn cleanup(&self, trial: &Trial) -> Result<Effect, HostError> {
        self.command(Step::Cleanup, trial)?;
        if let Work::Sysbench(test) = trial.workload.work()? {
            let argv = sysbench::argv(test, "cleanup", trial.seed);
            self.ready("sysbench-cleanup", &argv, trial)?.run()?;
        }
        Ok(Effect::Done)
    }

    fn work(&mut self, phase: Phase, trial: &Trial) -> Result<Effect, HostError> {
        let place = work_directory(trial);
        // What is synced at the end: the file system of this folder, or the bare device.
        let directory = match trial.contender.is_raw() {
            true => {
                self.lease.check_devices(trial)?;
                File::open(raw_device(trial)?)?
            }
            false => File::open(&place)?,
        };
        let mut record = match (trial.workload.work()?, phase) {
            (Work::SmallFiles(files), Phase::SmallFiles(operation)) => {
                let prepared = small_files::prepare(files, operation, &place, trial.seed)?;
                self.native(phase, &directory, trial, || Ok(prepared.run()?))?
            }
            (Work::Metadata(wanted), Phase::Metadata(operation)) => {
                let prepared = metadata::prepare(wanted, operation, &place)?;
                match self.native(phase, &directory, trial, || Ok(prepared.run()?)) {
                    Err(error) if metadata::is_refusal(&*error) => {
                        return Ok(Effect::Refused(Refused { phase, why: error.to_string() }));
                    }
                    done => done?,
                }
            }
            (Work::Tree(tree), Phase::Tree(pass)) => {
                let prepared = file_tree::prepare(tree, pass, &place, trial.seed)?;
                let record = self.native(phase, &directory, trial, || Ok(prepared.run()?))?;
                prepared.check_result()?;
                record
            }
            (Work::FsyncFiles(files), Phase::Whole) => {
                let devices = &trial.bed.devices;
                let prepared = fsync_files::prepare(files, &place, devices, trial.seed)?;
                self.native(phase, &directory, trial, || Ok(prepared.run()?))?
            }
            (Work::Replay(wanted), Phase::Whole) => {
                let prepared = replay::prepare(wanted, &place, trial.seed)?;
                self.native(phase, &directory, trial, || Ok(prepared.run()?))?
            }
            (Work::Fio(job), Phase::Whole) => self.fio(job, &directory, trial)?,
            (Work::Sysbench(test), Phase::Whole) => self.sysbench(test, &directory, trial)?,
            (Work::Command(command), Phase::Whole) => {
                self.whole_command(command, &directory, trial)?
            }
            (_, phase) => return Err(format!("the work has no phase {phase:?}").into()),
        };
        record.processes_left = self.processes.strangers();
        Ok(Effect::Worked(Box::new(record)))
    }

    fn whole_command(
        &mut self,
        command: &Command,
        directory: &File,
        trial: &Trial,
    ) -> Result<PhaseRecord, HostError> {
        let ready = self.ready("command", &command.argv(), trial)?;
        // Of this process and its ended and awaited children.
        let so_far = || Io::read(Path::new("/proc/self/io"));
        let before = so_far();
        let run = || {
            ready.run()?;
            Ok(so_far())
        };
        let (mut record, after) = self.timed(Phase::Whole, directory, trial, run)?;
        record.operations = trial.workload.operations;
        // What a server reads and writes for it is not its processes'.
        if let (Some(before), Some(after), false) = (before, after, self.processes.has_servers()) {
            let read_bytes = after.passed_read_bytes - before.passed_read_bytes;
            record.application_read_bytes = Some(read_bytes);
            record.application_write_bytes = Some(after.written_since(&before));
        }
        Ok(record)
    }

    fn fio(
        &mut self,
        job: &Fio,
        directory: &File,
        trial: &Trial,
    ) -> Result<PhaseRecord, HostError> {
        fio::check(job)?;
        let output = Path::new(&trial.raw).join("fio.json");
        let argv = fio_argv(job, &output, trial)?;
        let ready = self.ready("fio", &argv, trial)?;
        let mut record = self.timed(Phase::Whole, directory, trial, || Ok(ready.run()?))?.0;
        let result = fio::parse(&output, fio::window_ms(job))?;
        record.tool_ns = Some(result.tool_ns);
        record.operations = Some(result.operations);
        record.application_read_bytes = Some(result.read_bytes);
        record.application_write_bytes = Some(result.write_bytes);
        record.queue = result.queue;
        record.rate_over_time = result.rate_over_time;
        record.histograms = result.histograms;
        record.samples = result.samples;
        Ok(record)
    }

    fn sysbench(
        &mut self,
        test: &Sysbench,
        directory: &File,
        trial: &Trial,
    ) -> Result<PhaseRecord, HostError> {
        let argv = sysbench::argv(test, "run", trial.seed);
        let ready = self.ready("sysbench", &argv, trial)?;
        let mut record = self.timed(Phase::Whole, directory, trial, || Ok(ready.run()?))?.0;
        let result = sysbench::parse(&Path::new(&trial.raw).join("sysbench.stdout"))?;
        record.tool_ns = Some(result.tool_ns);
        record.operations = Some(result.operations);
        record.application_read_bytes = Some(result.read_bytes);
        record.application_write_bytes = Some(result.write_bytes);
        record.histograms = result.histograms;
        record.samples = result.samples;
        Ok(record)
    }

    /// A timed part that fsverdict does by itself.
    fn native(
        &mut self,
        phase: Phase,
        directory: &File,
        trial: &Trial,
        run: impl FnOnce() -> Result<Done, HostError>,
    ) -> Result<PhaseRecord, HostError> {
        let (mut record, done) = self.timed(phase, directory, trial, run)?;
        done.enter(&mut record);
        Ok(record)
    }

    /// The timed part: `work` and a closing sync of `directory`'s file system, between the first
    /// and the last reading of the probes.
    fn timed<T>(
        &mut self,
        phase: Phase,
        directory: &File,
        trial: &Trial,
        work: impl FnOnce() -> Result<T, HostError>,
    ) -> Result<(PhaseRecord, T), HostError> {
        let commit = self.commit_argv(trial);
        let close = if trial.contender.is_raw() { sync_device } else { sync_file_system };
        let root = Path::new("/");
        let interface = link::interface(root, &trial.workload);
        let probe = Probe::open(root, &trial.bed.devices, TIMELINE)?;
        let probe = probe.with_page_cache(page_cache(trial));
        let disks = bed::disks_beneath(&trial.bed.devices);
        let probe = probe.with_beneath(root, &disks)?;
        let probe = probe.with_network(root, interface.as_ref())?;
        let servers = self.processes.has_servers().then(|| self.processes.servers());
        let watching = servers.map(|servers| Applications::watch(root, servers)).transpose()?;
        let running = probe.start()?;
        let residents = self.processes.resident_threads();
        let last_pid = last_pid();
        let start_ns = sys::monotonic_ns();
        let result = work();
        let worked_ns = sys::monotonic_ns();
        let synced = sync(directory, close, commit.as_ref());
        let end_ns = sys::monotonic_ns();
        let own = own_processes(last_pid);
        let (mut totals, timeline) = running.stop()?;
        let applications = watching.map(Applications::stop);
        if let Some((own, of)) = own {
            // The one that commits is ours and not the work's, and so are threads of a daemon.
            let grown = self.processes.resident_threads().difference(&residents).count() as u64;
            let own = own.saturating_sub(grown + u64::from(commit.is_some()));
            totals.processes_started = unwrapped(own, of, totals.processes_started);
        }
        self.write_series(phase, &timeline, applications.as_ref(), trial)?;
        let result = result?;
        synced?;
        let record = PhaseRecord {
            peaks: timeline.peaks(),
            applications: applications.map(|shares| shares.last()).unwrap_or_default(),
            totals,
            ..PhaseRecord::new(phase, worked_ns - start_ns, end_ns - worked_ns)
        };
        Ok((record, result))
    }

    fn commit_argv(&self, trial: &Trial) -> Option<Argv> {
        with_site(trial, |site| self.file_system?.commit(site))
    }

    fn write_series(
        &mut self,
        phase: Phase,
        timeline: &Timeline,
        applications: Option<&Shares>,
        trial: &Trial,
    ) -> Result<(), HostError> {
        let series = Path::new(&trial.series);
        let appended = |path: &Path| -> std::io::Result<BufWriter<File>> {
            Ok(BufWriter::new(OpenOptions::new().create(true).append(true).open(path)?))
        };
        let header = !self.series_begun;
        timeline.write_csv(&mut appended(series)?, phase.name(), header)?;
        let mut seconds = appended(&series.with_file_name("per_second.csv"))?;
        timeline.write_seconds(&mut seconds, phase.name(), header)?;
        if let Some(applications) = applications {
            let mut rows = appended(&series.with_file_name("applications.csv"))?;
            applications.write_csv(&mut rows, phase.name(), header)?;
        }
        self.series_begun = true;
        Ok(())
    }

    /// Unmounting while the device is held by a straggler is tried again for a second; whatever
    /// the work left running is killed first, for it would hold the file system. With the file
    /// system go those who belonged to it.
    fn unmount(&mut self, trial: &Trial) -> Result<Effect, HostError> {
        let commands = commands(self.file_system(trial)?, Step::Unmount, trial);
        for tries_left in (0..UNMOUNT_TRIES).rev() {
            self.processes.end_strangers();
            match tool::run_all(&commands) {
                Ok(_) => break,
                Err(error) if tries_left == 0 => return Err(error.into()),
                Err(_) => std::thread::sleep(UNMOUNT_PAUSE),
            }
        }
        self.processes.end_all();
        Ok(Effect::Done)
    }

    /// Caches are dropped while the file system is not mounted, so that only the device itself can
    /// be cached; on bed `directory` the largest files of the work stand for it.
    fn drop_caches(&self, trial: &Trial) -> Result<CacheState, HostError> {
        let mut looked_at = match trial.bed.kind {
            BedKind::Directory => cache::largest_files(&work_directory(trial)),
            _ => cache::nodes(&trial.bed.devices),
        };
        let partitions = trial.bed.devices.iter().map(|disk| partition::node(&disk.path).into());
        looked_at.extend(partitions.filter(|_| !trial.contender.partition.is_empty()));
        if trial.bed.kind == BedKind::Loop {
            // Without direct I/O the host caches the image, and what is dirty can't be dropped.
            for image in cache::images(&trial.bed.devices) {
                File::open(&image)?.sync_all()?;
                looked_at.push(image);
            }
        }
        Ok(cache::drop_of(&looked_at))
    }
}

impl Host for Here {
    fn perform(&mut self, step: Step, trial: &Trial) -> Result<Effect, HostError> {
        match step {
            Step::Partition => {
                self.lease.check_devices(trial)?;
                let words = &trial.contender.partition;
                Ok(Effect::Partitioned(partition::make(words, &trial.bed.devices)?))
            }
            Step::RemovePartition => {
                self.lease.check_devices(trial)?;
                partition::remove(&trial.bed.devices)?;
                Ok(Effect::Done)
            }
            Step::MakeFileSystem => self.make_file_system(trial),
            Step::MakeDirectory => {
                fs::create_dir(work_directory(trial))?;
                Ok(Effect::Done)
            }
            Step::Mount => self.mount(trial),
            Step::Link => {
                trial.workload.link().map_or(Ok(()), link::make)?;
                Ok(Effect::Done)
            }
            Step::Setup | Step::Prepare => self.with_servers(step, trial),
            Step::Check => self.command(step, trial),
            Step::Figures => self.figures(trial),
            Step::Fill => self.fill(trial),
            Step::Sync => {
                let directory = File::open(work_directory(trial))?;
                sync(&directory, sync_file_system, self.commit_argv(trial).as_ref())?;
                Ok(Effect::Done)
            }
            Step::Unmount => self.unmount(trial),
            Step::DropCaches => Ok(Effect::Dropped(self.drop_caches(trial)?)),
            Step::Limit => {
                let rules = settings::rules(Path::new("/"), trial.limits(), &trial.bed.devices)?;
                rules.iter().try_for_each(|rule: &Setting| rule.set(Path::new("/")))?;
                Ok(Effect::Done)
            }
            Step::Settle => Ok(Effect::Settled(settle::settle(&trial.bed.devices))),
            Step::Work(phase) => self.work(phase, trial),
            Step::Cleanup => self.cleanup(trial),
            Step::RemoveDirectory => {
                self.processes.end_strangers();
                bed::own::clear(Path::new(&trial.directory), WORK)?;
                Ok(Effect::Done)
            }
        }
    }

    fn clean_up(&mut self, trial: &Trial) -> Vec<String> {
        self.processes.end_strangers();
        let mut errors = Vec::new();
        if trial.bed.kind == BedKind::Directory {
            let cleared = bed::own::clear(Path::new(&trial.directory), WORK);
            errors.extend(cleared.err().map(|error| error.to_string()));
        } else if let Ok(Some(_)) = mount::at(&trial.directory) {
            errors.extend(self.unmount(trial).err().map(|error| error.to_string()));
        }
        if !trial.contender.partition.is_empty() {
            let removed = self.perform(Step::RemovePartition, trial);
            errors.extend(removed.err().map(|error| error.to_string()));
        }
        errors
    }

    fn clock_ns(&mut self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }
}

/// The page cache of what the trial has mounted now, if that is asked for. Where it can't be
/// watched, the record has none, and the trial's standard error the reason.
fn page_cache(trial: &Trial) -> Option<PageCache> {
    trial.probes.contains(&ExtraProbe::PageCache).then_some(())?;
    let mount = mount::holding(Path::new(&trial.directory)).ok()??;
    let watched = PageCache::watch(Path::new("/"), mount.number);
    watched.inspect_err(|error| eprintln!("the page cache can't be watched: {error}")).ok()
}

/// The number of the process or thread that was started last in our PID namespace, which is the
/// last field of proc_loadavg(5); `None` where we share a namespace with the whole machine.
fn last_pid() -> Option<u64> {
    let text = (std::process::id() == 1).then(|| fs::read_to_string("/proc/loadavg").ok())??;
    text.split_whitespace().last()?.parse().ok()
}

/// Processes and threads started in our PID namespace since `before`, modulo the second number:
/// numbers begin again at 300 when they reach pid_max (kernel/pid.c, RESERVED_PIDS).
fn own_processes(before: Option<u64>) -> Option<(u64, u64)> {
    let (before, after) = (before?, last_pid()?);
    let limit = fs::read_to_string("/proc/sys/kernel/pid_max").ok()?.trim().parse::<u64>().ok()?;
    let numbers = limit.checked_sub(300).filter(|&numbers| numbers > 0)?;
    Some(((after + numbers - before) % numbers, numbers))
}

/// Our own count, known modulo `of`: the largest that the whole system's count allows. What other
/// programs start meanwhile is thereby left out, unless it is as much as `of`.
fn unwrapped(own: u64, of: u64, of_system: u64) -> u64 {
    own + of_system.saturating_sub(own) / of * of
}

/// The device on which a trial without a file system works: one of its bed, and nothing else.
pub fn raw_device(trial: &Trial) -> Result<&str, HostError> {
    let device = trial.bed.devices.first().filter(|_| trial.bed.kind != BedKind::Directory);
    Ok(device.map(|it| it.path.as_str()).ok_or("this bed has no device of its own")?)
}

/// The command of a fio job: in the file system, or on the bare device.
pub fn fio_argv(job: &Fio, output: &Path, trial: &Trial) -> Result<Argv, HostError> {
    let name = &trial.workload.name;
    Ok(match trial.contender.is_raw() {
        true => fio::raw_argv(job, name, trial.seed, output, raw_device(trial)?),
        false => fio::argv(job, name, trial.seed, output),
    })
}

/// Brings all of a file system to its devices.
fn sync_file_system(directory: &File) -> std::io::Result<()> {
    sys::sync_fs(directory.as_fd())
}

/// Brings what was written to a device there, and flushes its cache: fsync(2) on it does both
/// (block/fops.c, blkdev_fsync).
fn sync_device(device: &File) -> std::io::Result<()> {
    device.sync_all()
}

/// Brings all of what `directory` is on to its devices by `close`, and by `commit` where that is
/// not enough.
fn sync(
    directory: &File,
    close: fn(&File) -> std::io::Result<()>,
    commit: Option<&Argv>,
) -> Result<(), HostError> {
    close(directory)?;
    if let Some(commit) = commit {
        tool::run(commit)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_programs_processes_are_left_out_and_a_wrap_is_not() {
        assert_eq!(unwrapped(10_001, 32_468, 10_254), 10_001);
        assert_eq!(unwrapped(5_000, 32_468, 37_500), 37_468);
        assert_eq!(unwrapped(3, 32_468, 1), 3);
        assert_eq!(last_pid(), None, "a test shares its PID namespace");
    }
}
