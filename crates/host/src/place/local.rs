//! This machine as the place of a run: the bed, the settings, and each trial as a process.

mod duet;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use fsverdict_core::model::{
    self, Bed, BedKind, Contender, Counted, Device, ExtraProbe, Outcome, Overdue, Plan, Record,
    Trial, TrialBed,
};
use fsverdict_core::run::{HostError, Place};

use super::lease::{Folders, Grant};
use super::shut::Shut;
use super::trial_process::{
    self, Event, Patience, TICK, Watch, machines_proc, mount_point, trial_argv, trial_point,
};
use crate::bed::{self, Consents, Identity, partition};
use crate::file_system::Site;
use crate::file_system::zfs::Pool;
use crate::layer::{self, Names};
use crate::machine::cell;
use crate::machine::cgroup::{self, Controller, Places};
use crate::machine::folder::Folder;
use crate::machine::settings::{self, Change};
use crate::machine::throttle::{self, Means};
use crate::place::trial::site::{WORK, devices, run_of};
use crate::undo::{self, Journal, SettingsLock, Undo};
use crate::{file_system, sys, tool};

/// This machine, during one run.
pub struct Lab<'a> {
    folder: PathBuf,
    /// That one, whatever is called so by now.
    held: Folder,
    consents: Consents,
    interrupted: Arc<AtomicBool>,
    watch: Watch<'a>,
    journal: Option<Journal>,
    made: Option<bed::Made>,
    /// Part of a bed that could not be made could not be taken away either: the journal has it.
    is_half_made: bool,
    /// The settings under which the trial runs.
    changed: Vec<Change>,
    /// Held from the first change of a setting to the end of the run.
    settings_lock: Option<SettingsLock>,
    /// Where trials have cgroups of their own.
    cgroups: Option<Places>,
    /// What the cgroups in the root were given.
    given: Vec<Controller>,
    /// What limits count, where trials are held down.
    limits_count: Option<Counted>,
    /// A trial may have made layers that are not taken down yet.
    has_layers: bool,
    /// Held open, so that trials that drop the kernel's caches don't wait for them.
    _private_folders: Vec<OwnedFd>,
}

impl<'a> Lab<'a> {
    /// The lab of the run in `folder`. Fails when another process runs it.
    pub fn new(
        folder: &Path,
        consents: Consents,
        interrupted: Arc<AtomicBool>,
        watch: Watch<'a>,
    ) -> std::io::Result<Self> {
        let journal = Some(Journal::open(Some(folder))?);
        let folder = folder.canonicalize()?;
        Ok(Lab {
            held: Folder::open(&folder)?,
            folder,
            consents,
            interrupted,
            watch,
            journal,
            made: None,
            is_half_made: false,
            changed: Vec::new(),
            settings_lock: None,
            cgroups: None,
            given: Vec::new(),
            limits_count: None,
            has_layers: false,
            _private_folders: cell::private_folders(),
        })
    }

    fn journal(&mut self) -> Result<&mut Journal, HostError> {
        self.journal.as_mut().ok_or_else(|| "the journal is closed".into())
    }

    /// Makes the run's own folder in the directory of a trial, unless there it is.
    fn make_own_folder(&mut self, trial: &Trial) -> Result<(), HostError> {
        let Lab { journal, made, .. } = self;
        let (journal, made) = journal.as_mut().zip(made.as_mut()).ok_or("the bed is not made")?;
        let dir = Path::new(&trial.directory).parent().ok_or("the trial has no directory")?;
        let token = journal.token().clone();
        let mut before = |undo: &bed::Undo| journal.before(&Undo::Bed(undo.clone()));
        Ok(made.own_folder(dir, &token, &mut before)?)
    }

    /// Lends the trial the bed's devices, and says so to its process.
    fn grant(&mut self, trial: &Trial, own: &Folder) -> Result<Grant, HostError> {
        let Lab { journal, made, .. } = self;
        let (journal, made) = journal.as_ref().zip(made.as_mut()).ok_or("the bed is not made")?;
        let directories = trial.bed.kind == BedKind::Directory;
        let lent = if directories { Vec::new() } else { made.lend()? };
        // In a duet each trial has some of them.
        let of_all = made.devices.iter().zip(lent);
        let its = of_all.filter(|(device, _)| trial.bed.devices.contains(device));
        let devices: Vec<Identity> = its.map(|(_, identity)| identity).collect();
        let count = if directories { 0 } else { trial.bed.devices.len() };
        assert_eq!(devices.len(), count, "a trial is lent devices of the bed");
        let of_work = directories.then(|| made.own_identity(&trial.directory)).transpose()?;
        let folders = Folders { of_trial: own.identity()?, of_work };
        Grant::new(journal, trial, devices, Some(folders))
    }

    /// Sees to it before the first trial that no other run changes what a contender of `plan` will.
    pub fn reserve(&mut self, plan: &Plan) -> Result<(), HostError> {
        let changes = |it: &Contender| {
            let shared = !it.sysctl.is_empty() || !it.module.is_empty();
            let of_devices = !it.queue.is_empty() || it.limits.or(plan.bed.limits).is_some();
            shared || (of_devices && !is_of_our_own(plan.bed.kind))
        };
        match plan.contenders.iter().any(changes) {
            true => self.lock_settings(),
            false => Ok(()),
        }
    }

    /// Two runs that changed the same setting would each take the other's value for the original.
    fn lock_settings(&mut self) -> Result<(), HostError> {
        if self.settings_lock.is_none() {
            self.settings_lock = Some(undo::lock_settings()?);
        }
        Ok(())
    }

    /// Gives the cgroups in the root what limits need of them, where it is the trial's own cgroup
    /// that holds the devices down.
    fn give_controllers(&mut self) -> Result<(), HostError> {
        let root = Path::new("/");
        if Means::of(root)? == Means::Root {
            return Ok(());
        }
        // The run that ends first would take them from the other.
        self.lock_settings()?;
        let missing = Controller::missing(root);
        if missing.is_empty() {
            return Ok(());
        }
        self.journal()?.before(&Undo::Controllers(missing.clone()))?;
        for controller in missing {
            controller.give(root)?;
            self.given.push(controller);
        }
        Ok(())
    }

    /// What takes the trial's tracing back, once the journal has it. Only root has any.
    fn tracing_of(&mut self, trial: &Trial) -> Result<Option<Undo>, HostError> {
        if !trial.probes.contains(&ExtraProbe::Trace) || !sys::is_root() {
            return Ok(None);
        }
        let journal = self.journal()?;
        let undo = Undo::Tracing(journal.token().clone());
        journal.before(&undo)?;
        Ok(Some(undo))
    }

    /// The cgroups of `trial`.
    fn cgroups_of(&self, trial: &Trial) -> cgroup::Made {
        let Some(places) = &self.cgroups else { return cgroup::Made::default() };
        let limited =
            trial.limits().is_some() && Means::of(Path::new("/")).ok() == Some(Means::Own);
        match limited {
            true => places.make_limited(trial.number, &trial.bed.devices),
            false => places.make(trial.number),
        }
    }

    /// Notes the trial's layers in the journal: a later process takes them down after a kill.
    fn note_layers(&mut self, trial: &Trial) -> Result<(), HostError> {
        if trial.contender.layers.is_empty() {
            return Ok(());
        }
        self.has_layers = true;
        // A disk of the user's may be in use for something else by then. All of the run's are noted
        // at once: it is one line, which stands before those of pools upon layers.
        let made = self.made.iter().filter(|_| is_of_our_own(trial.bed.kind));
        let known = |it: &Device| Some((it.clone(), Identity::of(it)?));
        let own = made.flat_map(|made| &made.devices).filter_map(known).collect();
        let journal = self.journal()?;
        let run = journal.token().clone();
        Ok(journal.before(&Undo::Layers { run, own })?)
    }

    /// Notes settings in the journal; those of our loop devices by their owner.
    fn note_changes(&mut self, changes: &[Change]) -> Result<(), HostError> {
        let Lab { journal, made, .. } = self;
        let journal = journal.as_mut().ok_or("the journal is closed")?;
        let loop_of = |it: &Change| made.as_ref()?.loop_of(it.back.knob.device()?);
        let mut by_loop: BTreeMap<Option<u32>, Vec<Change>> = BTreeMap::new();
        for change in changes {
            by_loop.entry(loop_of(change)).or_default().push(change.clone());
        }
        for (number, changes) in by_loop {
            journal.before(&match number {
                Some(number) => {
                    let image = Some((number, journal.token().clone()));
                    Undo::Bed(bed::Undo::queue(image, changes))
                }
                None => Undo::Settings(changes),
            })?;
        }
        Ok(())
    }

    /// Takes layers down, where a trial had some, and whatever else stands on the bed, which is the
    /// run's while it lives.
    fn without_layers(&mut self) -> Result<(), HostError> {
        if !self.has_layers {
            return Ok(());
        }
        let made = self.made.as_ref().ok_or("the bed is not made")?;
        made.check_same()?;
        let run = self.journal.as_ref().ok_or("the journal is closed")?.token();
        layer::host::take_down(&Names::of_run(run), &made.devices, &self.interrupted)
            .map_err(|error| format!("taking layers down: {error}"))?;
        self.has_layers = false;
        Ok(())
    }

    /// Starts the process of `trial`.
    fn start(&mut self, trial: &Trial, stdin: impl Into<Stdio>) -> Result<Started, HostError> {
        if trial.bed.kind == BedKind::Directory {
            self.make_own_folder(trial)?;
        }
        let at = Path::new(&trial.raw).parent().ok_or("the trial has no folder")?;
        let own = Shut::make(&self.held, at.strip_prefix(&self.folder)?, trial)?;
        // Nobody's work has begun that could have left something there.
        let again = |_: &HostError| drop(own.folder.set_mode(own.mode));
        let (child, cgroups, granted, left, errors) =
            self.spawn(trial, stdin.into(), at, &own).inspect_err(again)?;
        Ok(Started { child, cgroups, granted, left, errors, own })
    }

    /// The process of `trial`, whose folder is `own` and was made `at` that path.
    fn spawn(
        &mut self,
        trial: &Trial,
        stdin: Stdio,
        at: &Path,
        own: &Shut,
    ) -> Result<Spawned, HostError> {
        let document = serde_json::to_string_pretty(trial)?;
        own.folder.create("trial.json")?.write_all(document.as_bytes())?;
        let argv = trial_argv(&at.join("trial.json"), &at.join(own.record));
        let mut command = match sys::is_root() {
            true => tool::command(&argv[0])?,
            false => tool::users(&argv[..1]),
        };
        command.args(&argv[1..]).stdin(stdin).stdout(Stdio::piped());
        // Read by what is opened here: the work can put something else in its place.
        let errors = own.raw.create("trial.stderr")?;
        command.stderr(errors.try_clone()?);
        sys::bind_to_us(&mut command);
        let cgroups = self.cgroups_of(trial);
        cgroups.enter(&mut command)?;
        // Noted first, undone last: a pool lies on its layers.
        self.note_layers(trial)?;
        let pool = held_pool(trial).map(Undo::Pool);
        pool.iter().try_for_each(|undo| self.journal()?.before(undo).map_err(HostError::from))?;
        let tracing = self.tracing_of(trial)?;
        if !trial.contender.layers.is_empty() {
            command.envs(layer::WITHOUT_UDEV);
        }
        let granted = Some(self.grant(trial, &own.folder)?);
        let child = command.spawn()?;
        Ok((child, cgroups, granted, pool.into_iter().chain(tracing).collect(), errors))
    }

    /// Clears away after a trial that has `ended`, and reads its record.
    fn finish(
        &mut self,
        trial: &Trial,
        started: Started,
        ended: Result<(), HostError>,
    ) -> Result<Record, HostError> {
        let Started { mut child, cgroups, granted, left, errors, own } = started;
        let ended = ended.map_err(|error| {
            let said = beginning(&errors);
            match said.is_empty() || error.is::<Overdue>() {
                true => error,
                false => by_own_paths(&format!("{error}: {}", said.trim()), trial).into(),
            }
        });
        drop((granted, cgroups));
        // One that was killed in the midst of it could not let go of its devices itself.
        let cleared = left.iter().map(Undo::apply).fold(Ok(()), Result::and);
        let cleared = cleared.map_err(HostError::from);
        let layers = match &ended {
            // It was waited for already.
            Err(error) if error.is::<Overdue>() => Ok(()),
            _ => self.without_layers(),
        };
        let cleared = cleared.and(layers);
        let cleared = cleared.and_then(|()| match &ended {
            Ok(()) => Ok(()),
            // The kernel takes the mounts of a trial that was killed away when it has written them
            // out: the next one would find its devices in use.
            Err(error) if !error.is::<Overdue>() && trial.bed.kind != BedKind::Directory => {
                self.wait_until_unused(DEAD).and_then(|()| self.without_partitions(trial))
            }
            Err(_) => self.without_partitions(trial),
        });
        let taken_back = self.made.as_mut().map_or(Ok(()), bed::Made::take_back);
        // What could not be ended may still write there.
        let has_ended = matches!(child.try_wait(), Ok(Some(_)));
        let opened = if has_ended { own.open() } else { Ok(()) };
        let record = own.folder.read(own.record);
        if trial.in_turns {
            // It counts together with the others alone, and is written with them.
            let _ = own.folder.remove_file(own.record);
        }
        both(ended, cleared)?;
        taken_back?;
        opened?;
        let mut record: Record = model::from_json(&record?)?;
        if let Outcome::Failed(failure) = &mut record.outcome {
            failure.error = by_own_paths(&failure.error, trial);
        }
        Ok(record)
    }

    /// Waits for the trial's end. It prints a line at each step, and its end closes the pipe.
    fn wait(
        &mut self,
        child: &mut Child,
        trial: &Trial,
        cgroups: &cgroup::Made,
    ) -> Result<(), HostError> {
        let lines = match lines_of(child) {
            Ok(lines) => lines,
            Err(error) => {
                trial_process::end(child)?;
                return Err(error);
            }
        };
        let mut patience = Patience::new(&trial.timeouts);
        loop {
            match lines.recv_timeout(TICK) {
                Ok(step) => {
                    patience.step(&step);
                    cgroups.bring_in_threads();
                    (self.watch)(Event::Step(&step));
                }
                Err(RecvTimeoutError::Timeout) => (self.watch)(Event::Tick),
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if self.interrupted.load(Ordering::Relaxed) {
                trial_process::end(child)?;
                return Err("interrupted".into());
            }
            if let Err(overdue) = patience.check() {
                return Err(self.cut_short(child, trial, overdue)?.into());
            }
        }
        succeeded(child)
    }

    /// Removes what a failed trial may have left of its partitions.
    fn without_partitions(&self, trial: &Trial) -> Result<(), HostError> {
        if trial.contender.partition.is_empty() {
            return Ok(());
        }
        self.made.as_ref().map_or(Ok(()), bed::Made::check_same)?;
        Ok(partition::remove(&trial.bed.devices)?)
    }

    /// Waits until nothing of a trial that was killed has the bed's devices.
    fn wait_until_unused(&self, patience: Duration) -> Result<(), HostError> {
        let made = self.made.as_ref().ok_or("the bed is not made")?;
        Ok(made.wait_until_unused(&self.interrupted, patience)?)
    }

    /// Ends a trial that takes too long, and what it would have taken back itself.
    fn cut_short(
        &mut self,
        child: &mut Child,
        trial: &Trial,
        mut overdue: Overdue,
    ) -> Result<Overdue, HostError> {
        if !trial_process::end(child)? {
            overdue.left.push("the kernel does not let go of its processes".into());
        } else if trial.bed.kind == BedKind::Directory {
            let cleared = bed::own::clear(Path::new(&trial.directory), &trial.bed.lab, WORK);
            overdue.left.extend(cleared.err().map(|error| error.to_string()));
        } else {
            // What the kernel keeps would hold them for ever.
            let released = held_pool(trial).map(Undo::Pool).map_or(Ok(()), |pool| pool.apply());
            overdue.left.extend(released.err().map(|error| error.to_string()));
            let unused = self.without_layers().and_then(|()| self.wait_until_unused(OVERDUE));
            overdue.left.extend(unused.err().map(|error| error.to_string()));
        }
        Ok(overdue)
    }
}

/// A trial that has been started.
struct Started {
    child: Child,
    cgroups: cgroup::Made,
    granted: Option<Grant>,
    /// What one that is killed does not let go of: its pool, its tracing.
    left: Vec<Undo>,
    /// Its messages about errors.
    errors: File,
    own: Shut,
}

/// A trial's process, its cgroups, what it was granted, what it may leave, and its messages about
/// errors.
type Spawned = (Child, cgroup::Made, Option<Grant>, Vec<Undo>, File);

/// What a trial of root's says, with the path of its folder that is there after it, too.
fn by_own_paths(said: &str, trial: &Trial) -> String {
    let own = Path::new(&trial.raw).parent().unwrap_or(Path::new(""));
    said.replace(&trial_point().display().to_string(), &own.display().to_string())
}

/// Why a trial has failed comes before what could not be cleared away after it.
fn both(ended: Result<(), HostError>, cleared: Result<(), HostError>) -> Result<(), HostError> {
    let Err(error) = ended else { return cleared };
    Err(match (error.downcast::<Overdue>(), cleared) {
        (Ok(mut overdue), Err(why)) => {
            overdue.left.push(why.to_string());
            overdue
        }
        (Ok(overdue), Ok(())) => overdue,
        (Err(error), _) => error,
    })
}

/// The trial's process has ended as it should.
fn succeeded(child: &mut Child) -> Result<(), HostError> {
    let status = child.wait()?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("the trial's process {}", tool::ended(status)).into()),
    }
}

/// No other run knows the devices of such a bed: only one run changes their settings. A disk may be
/// known to two runs, by two of its partitions.
fn is_of_our_own(bed: BedKind) -> bool {
    matches!(bed, BedKind::Loop | BedKind::Ram)
}

/// The pool by which the kernel may hold the devices when the trial is over.
fn held_pool(trial: &Trial) -> Option<Pool> {
    let file_system = file_system::find(&trial.contender.file_system)?;
    let (devices, run) = (&devices(trial), &run_of(trial).map_or_else(String::new, String::from));
    file_system.held_pool(&Site { devices, run, ..Site::default() })
}

impl Place for Lab<'_> {
    fn make_bed(&mut self, bed: &Bed) -> Result<TrialBed, HostError> {
        [mount_point(), trial_point()].iter().try_for_each(fs::create_dir_all)?;
        if bed.kind == BedKind::Device && bed.like.is_some() {
            self.lock_settings()?;
        }
        let Lab { folder, consents, interrupted, watch, journal, is_half_made, .. } = self;
        let journal = journal.as_mut().ok_or("the journal is closed")?;
        let token = journal.token().clone();
        let total_bytes = bed.size.0.saturating_mul(bed.devices.into());
        let mut before = |undo: &bed::Undo| journal.before(&Undo::Bed(undo.clone()));
        let mut progress = |bytes: u64| {
            watch(Event::Writing(bytes, total_bytes));
            match interrupted.load(Ordering::Relaxed) {
                true => Err(std::io::Error::other("interrupted")),
                false => Ok(()),
            }
        };
        let made = bed::make(bed, folder, &token, consents, &mut before, &mut progress)
            .inspect_err(|error| *is_half_made = error.is_half_made())?;
        let (devices, probed) = (made.devices.clone(), made.probed.clone());
        (self.made, self.limits_count) = (Some(made), bed.limits_count(model::Place::Local));
        let cgroups = Places::find(Path::new("/"), &token);
        journal.before(&Undo::Cgroups(cgroups.clone()))?;
        self.cgroups = Some(cgroups);
        let (kind, limits, lab) = (bed.kind, bed.limits, token.to_string());
        let limits_count = self.limits_count;
        Ok(TrialBed { kind, devices, limits, limits_count, probed, lab, ..TrialBed::default() })
    }

    fn apply(&mut self, contender: &Contender, bed: &TrialBed) -> Result<(), HostError> {
        let root = Path::new("/");
        let wanted = settings::wanted(contender, &bed.devices);
        let limits = contender.limits.or(bed.limits);
        let held = if limits.is_some() { throttle::held(root, bed)? } else { Vec::new() };
        let rules = throttle::rules(root, limits, &held)?;
        if limits.is_some() {
            self.give_controllers()?;
        }
        let all = [wanted.as_slice(), &rules].concat();
        if all.iter().any(|it| it.knob.device().is_none() || !is_of_our_own(bed.kind)) {
            self.lock_settings()?;
        }
        // Another of the duet may have set the same.
        let changes = settings::before(root, &all, &self.changed)?;
        self.note_changes(&changes)?;
        self.changed.extend(changes);
        // The rules are the trial's to set, when it has made and filled its file system.
        Ok(settings::set_all(root, &wanted, &self.changed)?)
    }

    fn run_trial(&mut self, trial: &Trial) -> Result<Record, HostError> {
        let mut started = self.start(trial, machines_proc()?)?;
        let ended = self.wait(&mut started.child, trial, &started.cgroups);
        self.finish(trial, started, ended)
    }

    fn run_duet(&mut self, trials: &[Trial]) -> Vec<Result<Record, HostError>> {
        self.duet(trials)
    }

    fn restore(&mut self) -> Result<(), HostError> {
        let errors: Vec<String> = settings::put_back(Path::new("/"), &self.changed)
            .iter()
            .map(ToString::to_string)
            .collect();
        if errors.is_empty() {
            self.changed.clear();
            return Ok(());
        }
        Err(errors.join("; ").into())
    }

    fn remove_bed(&mut self) -> Result<(), HostError> {
        // In the journal's order, from its end. What fails keeps nothing else from going.
        let given = self.given.drain(..).filter_map(|it| it.take_back(Path::new("/")).err());
        let mut errors: Vec<String> = given.map(|error| error.to_string()).collect();
        let cleared = self.cgroups.take().and_then(|cgroups| cgroups.clear().err());
        errors.extend(cleared.map(|error| error.to_string()));
        // Those of a trial that could not let go of them.
        errors.extend(self.without_layers().err().map(|error| error.to_string()));
        let removed = self.made.take().and_then(|made| made.remove().err());
        errors.extend(removed.map(|error| error.to_string()));
        if !errors.is_empty() {
            return Err(errors.join("; ").into());
        }
        if self.changed.is_empty()
            && !self.is_half_made
            && let Some(journal) = self.journal.take()
        {
            let is_left = self.has_layers || self.cgroups.is_some() || !self.given.is_empty();
            assert!(!is_left && self.made.is_none(), "a journal goes when all it lists has gone");
            journal.close()?;
        }
        Ok(())
    }

    fn bed_facts(&self) -> Vec<(String, String)> {
        let Some(made) = &self.made else { return Vec::new() };
        let names: Vec<&str> = made.devices.iter().map(|device| device.path.as_str()).collect();
        let mut facts = vec![("devices".to_string(), names.join(", "))];
        if let Some(direct) = made.direct_io {
            let how = if direct { "direct I/O" } else { "through the host's page cache" };
            facts.push(("loop devices".into(), how.into()));
        }
        facts.extend(made.like().map(|like| ("bed is like".into(), like)));
        if let Some(counted) = self.limits_count {
            let by = match (counted, Means::of(Path::new("/"))) {
                (Counted::Bios, _) => "bios, counted before they are merged into requests",
                (_, Ok(Means::Root)) => "requests and flushes, as the device gets them",
                (_, _) => "requests, as the device gets them",
            };
            facts.push(("limits".into(), format!("cgroups: operations are {by}")));
        }
        if made.compresses {
            facts.push(("memory".into(), "zram, which compresses what is written".into()));
        }
        facts
    }

    fn left(&self) -> Vec<String> {
        let knobs = self.changed.iter().map(|change| format!("setting {}", change.back.knob));
        let journal = self.journal.as_ref().map(|journal| journal.path().display().to_string());
        knobs.chain(journal.map(|path| format!("what {path} lists"))).collect()
    }
}

/// What a trial says, line by line: read beside us, until its end closes the pipe.
fn lines_of(child: &mut Child) -> Result<mpsc::Receiver<String>, HostError> {
    let stdout = child.stdout.take().ok_or("the trial has no output")?;
    let (sender, lines) = mpsc::channel();
    std::thread::Builder::new().spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    })?;
    Ok(lines)
}
/// More of a trial's complaints is of no use in a message.
const SAID_BYTES_MAX: usize = 64 << 10;

/// How long what a trial that took too long had mounted may take to write out what is dirty.
const OVERDUE: Duration = Duration::from_secs(3600);
/// The same for one that died: others may hold its devices by now.
const DEAD: Duration = Duration::from_secs(300);

fn beginning(file: &File) -> String {
    let mut bytes = vec![0; SAID_BYTES_MAX];
    let mut len = 0;
    while let Ok(read) = file.read_at(&mut bytes[len..], len as u64) {
        if read == 0 {
            break;
        }
        len += read;
    }
    String::from_utf8_lossy(&bytes[..len]).into_owned()
}
