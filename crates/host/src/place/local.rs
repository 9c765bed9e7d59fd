//! This machine as the place of a run: the bed, the settings, and each trial as a process.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};

use fsverdict_core::model::{Bed, BedKind, Contender, Overdue, Record, Trial, TrialBed};
use fsverdict_core::run::{HostError, Place};

use super::lease::Grant;
use super::trial_process::{
    self, Event, Patience, TICK, Watch, machines_proc, mount_point, trial_argv,
};
use crate::bed::{self, Consents, partition};
use crate::file_system::zfs::Pool;
use crate::machine::settings::{self, Change, Setting};
use crate::place::trial::site::{WORK, with_site};
use crate::undo::{self, Journal, Undo};
use crate::{file_system, sys, tool};

/// This machine, during one run.
pub struct Lab<'a> {
    folder: PathBuf,
    consents: Consents,
    interrupted: Arc<AtomicBool>,
    watch: Watch<'a>,
    journal: Option<Journal>,
    made: Option<bed::Made>,
    /// The settings under which the trial runs.
    changed: Vec<Change>,
    /// Held from the first change of a setting to the end of the run.
    settings_lock: Option<File>,
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
        let (made, changed, settings_lock) = (None, Vec::new(), None);
        Ok(Lab { folder, consents, interrupted, watch, journal, made, changed, settings_lock })
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
    fn grant(&mut self, trial: &Trial) -> Result<Grant, HostError> {
        let Lab { journal, made, .. } = self;
        let (journal, made) = journal.as_ref().zip(made.as_mut()).ok_or("the bed is not made")?;
        let directories = trial.bed.kind == BedKind::Directory;
        let devices = if directories { Vec::new() } else { made.lend()? };
        Grant::new(journal, trial.number, devices)
    }

    /// Waits for the trial's end. It prints a line at each step, and its end closes the pipe.
    fn wait(&mut self, child: &mut Child, trial: &Trial) -> Result<(), HostError> {
        let stdout = child.stdout.take().ok_or("the trial has no output")?;
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut patience = Patience::new(&trial.timeouts);
        loop {
            match lines.recv_timeout(TICK) {
                Ok(step) => {
                    patience.step(&step);
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
        let status = child.wait()?;
        match status.success() {
            true => Ok(()),
            false => Err(format!("the trial's process {}", tool::ended(status)).into()),
        }
    }

    /// Ends a trial that takes too long, and what it would have taken back itself.
    fn cut_short(
        &self,
        child: &mut Child,
        trial: &Trial,
        mut overdue: Overdue,
    ) -> Result<Overdue, HostError> {
        if !trial_process::end(child)? {
            overdue.left.push("the kernel does not let go of its processes".into());
        } else if trial.bed.kind == BedKind::Directory {
            let cleared = bed::own::clear(Path::new(&trial.directory), WORK);
            overdue.left.extend(cleared.err().map(|error| error.to_string()));
        } else {
            // A pool that the kernel keeps would hold them for ever.
            held_pool(trial).map(Undo::Pool).map_or(Ok(()), |pool| pool.apply())?;
            let made = self.made.as_ref().ok_or("the bed is not made")?;
            let unused = made.wait_until_unused(&self.interrupted);
            overdue.left.extend(unused.err().map(|error| error.to_string()));
        }
        Ok(overdue)
    }
}

/// The pool by which the kernel may hold the devices when the trial is over.
fn held_pool(trial: &Trial) -> Option<Pool> {
    let file_system = file_system::find(&trial.contender.file_system)?;
    with_site(trial, |site| file_system.held_pool(site))
}

impl Place for Lab<'_> {
    fn make_bed(&mut self, bed: &Bed) -> Result<TrialBed, HostError> {
        fs::create_dir_all(mount_point())?;
        let Lab { folder, consents, interrupted, watch, journal, .. } = self;
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
        let made = bed::make(bed, folder, &token, consents, &mut before, &mut progress)?;
        let devices = made.devices.clone();
        self.made = Some(made);
        Ok(TrialBed { kind: bed.kind, devices, limits: bed.limits, lab: token.to_string() })
    }

    fn apply(&mut self, contender: &Contender, bed: &TrialBed) -> Result<(), HostError> {
        let root = Path::new("/");
        let wanted = settings::wanted(contender, &bed.devices);
        let rules = settings::rules(root, contender.limits.or(bed.limits), &bed.devices)?;
        let all = [wanted.as_slice(), &rules].concat();
        if !all.is_empty() && self.settings_lock.is_none() {
            self.settings_lock = Some(undo::lock_settings()?);
        }
        let changes = settings::before(root, &all)?;
        if !changes.is_empty() {
            self.journal()?.before(&Undo::Settings(changes.clone()))?;
        }
        self.changed = changes;
        // The rules are the trial's to set, when it has made and filled its file system.
        wanted.iter().try_for_each(|setting: &Setting| setting.set(root))?;
        Ok(())
    }

    fn run_trial(&mut self, trial: &Trial) -> Result<Record, HostError> {
        if trial.bed.kind == BedKind::Directory {
            self.make_own_folder(trial)?;
        }
        let folder = Path::new(&trial.raw).parent().ok_or("the trial has no folder")?.to_owned();
        fs::create_dir_all(&trial.raw)?;
        let (input, output) = (folder.join("trial.json"), folder.join("record.json"));
        fs::write(&input, serde_json::to_string_pretty(trial)?)?;
        let argv = trial_argv(&input, &output);
        let mut command = match sys::is_root() {
            true => tool::command(&argv[0])?,
            false => tool::users(&argv[..1]),
        };
        let errors = Path::new(&trial.raw).join("trial.stderr");
        command.args(&argv[1..]).stdin(machines_proc()?).stdout(Stdio::piped());
        command.stderr(File::create(&errors)?);
        sys::bind_to_us(&mut command);
        let pool = held_pool(trial).map(Undo::Pool);
        pool.iter().try_for_each(|undo| self.journal()?.before(undo).map_err(HostError::from))?;
        let granted = self.grant(trial)?;
        let mut child = command.spawn()?;
        let ended = self.wait(&mut child, trial).map_err(|error| {
            let said = fs::read_to_string(&errors).unwrap_or_default();
            match said.is_empty() || error.is::<Overdue>() {
                true => error,
                false => format!("{error}: {}", said.trim()).into(),
            }
        });
        drop(granted);
        // One that was killed in the midst of it could not let go of its devices itself.
        pool.iter().try_for_each(Undo::apply)?;
        if ended.is_err() && !trial.contender.partition.is_empty() {
            self.made.as_ref().map_or(Ok(()), bed::Made::check_same)?;
            partition::remove(&trial.bed.devices)?;
        }
        let taken_back = self.made.as_mut().map_or(Ok(()), bed::Made::take_back);
        ended?;
        taken_back?;
        Ok(serde_json::from_str(&fs::read_to_string(output)?)?)
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
        if let Some(made) = self.made.take() {
            made.remove()?;
        }
        if self.changed.is_empty()
            && let Some(journal) = self.journal.take()
        {
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
