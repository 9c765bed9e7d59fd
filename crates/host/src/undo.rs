//! The undo journal: what a run changes is written down before it is changed.
//!
//! A journal is a file of [`registry()`], a folder that nobody else may write to, because a process
//! that plays it back, perhaps as root, does what it says. Its first line names the run, each other
//! one is an [`Undo`], synced before its change is made. A run holds a lock on its journal while it
//! lives, so that `clean` and the next run find what a killed run left. After a reboot only folders
//! of our own are left to undo, and these identify themselves: [`bed::own`].

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use fsverdict_core::model::Device;
use serde::{Deserialize, Serialize};

use crate::bed;
use crate::file_system::zfs;
use crate::layer::{self, Names};
use crate::machine::cgroup::{self, Controller};
use crate::machine::registry;
pub use crate::machine::registry::registry;
use crate::machine::settings::{self, Change};
use crate::machine::token::Token;
use crate::machine::tracing;
use crate::sys;

const JOURNALS: &str = "journals";
const ENDING: &str = ".jsonl";

/// One thing to undo. Undoing what is undone already does nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Undo {
    /// Part of a bed is to be removed.
    Bed(bed::Undo),
    /// Settings are to have their former values again, in this order.
    Settings(Vec<Change>),
    /// The kernel holds the bed's devices by this pool: ZFS.
    Pool(zfs::Pool),
    /// Layers are to be taken down.
    Layers {
        /// The token in their names.
        run: Token,
        /// Devices that the run has made, and nobody else can have taken since: all that is stacked
        /// on them goes. By now others may be in their place.
        own: Vec<(Device, bed::Identity)>,
    },
    /// Cgroups of trials are to be removed.
    Cgroups(cgroup::Places),
    /// Controllers are to be taken back from the cgroups in the root.
    Controllers(Vec<Controller>),
    /// The kernel records for a trial of the run of that token.
    Tracing(Token),
}

impl Undo {
    /// It changes what other runs may have changed, too: undoing it needs the lock on settings.
    fn is_shared(&self) -> bool {
        match self {
            Undo::Settings(_) | Undo::Controllers(_) => true,
            Undo::Bed(part) => matches!(part, bed::Undo::Queue { image: None, .. }),
            Undo::Pool(_) | Undo::Layers { .. } | Undo::Cgroups(_) | Undo::Tracing(_) => false,
        }
    }

    /// Undoes it.
    pub fn apply(&self) -> Result<(), String> {
        match self {
            Undo::Bed(part) => part.apply().map_err(|error| error.to_string()),
            Undo::Pool(pool) => pool.release().map_err(|error| error.to_string()),
            Undo::Layers { run, own } => {
                let is_same = |(device, its): &&(Device, bed::Identity)| {
                    bed::Identity::of(device).as_ref() == Some(its)
                };
                let own: Vec<Device> =
                    own.iter().filter(is_same).map(|(device, _)| device.clone()).collect();
                // The clean-up of another run waits only for brief users.
                layer::host::take_down(&Names::of_run(run), &own, &AtomicBool::new(true))
                    .map_err(|error| format!("taking layers down: {error}"))
            }
            Undo::Cgroups(places) => places.clear().map_err(|error| error.to_string()),
            Undo::Tracing(run) => {
                tracing::remove(run).map_err(|error| format!("removing a trace instance: {error}"))
            }
            Undo::Controllers(given) => given
                .iter()
                .try_for_each(|controller| controller.take_back(Path::new("/")))
                .map_err(|error| error.to_string()),
            Undo::Settings(changes) => {
                let errors = settings::put_back(Path::new("/"), changes);
                let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
                if errors.is_empty() { Ok(()) } else { Err(errors.join("; ")) }
            }
        }
    }
}

/// The first line of a journal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    /// The run's folder; `check` has none.
    run: Option<PathBuf>,
}

/// The journal of a living run.
#[derive(Debug)]
pub struct Journal {
    file: File,
    token: Token,
    written: Vec<Undo>,
}

/// A process that another thread has just forked has the file open, too, until its execve(2).
/// Closing it alone would leave the lock to that process (flock(2)).
impl Drop for Journal {
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

/// The folder of the journals, locked: meanwhile no process makes one, or takes one for a dead
/// run's.
pub(crate) fn journals() -> io::Result<File> {
    let folder = registry::private_folder(&registry::open()?, Path::new(JOURNALS), 0o700)?;
    folder.lock()?;
    Ok(folder)
}

fn file_name(token: &Token) -> PathBuf {
    format!("{token}{ENDING}").into()
}

fn path_of(token: &Token) -> PathBuf {
    registry().join(JOURNALS).join(file_name(token))
}

/// The file beside a journal while a trial is under way.
pub(crate) fn trial_name(token: &Token) -> PathBuf {
    format!("{token}.trial").into()
}

/// The journal of that token, open for reading and writing.
fn opened(journals: &File, token: &Token) -> io::Result<File> {
    let file = sys::open_beneath(journals.as_fd(), &file_name(token), libc::O_RDWR, 0)?;
    let data = file.metadata()?;
    match data.is_file() && data.uid() == sys::user_id() {
        true => Ok(file),
        false => Err(io::Error::other("it is not ours")),
    }
}

fn is_alive(journal: &File) -> bool {
    journal.try_lock_shared().is_err()
}

impl Journal {
    /// Opens the journal of the run in `folder`, or of none: an error says that another process
    /// runs it.
    pub fn open(folder: Option<&Path>) -> io::Result<Journal> {
        let run = folder.map(Path::canonicalize).transpose()?;
        let journals = journals()?;
        let of_it = |other: &Found| run.is_some() && other.head().is_ok_and(|it| it.run == run);
        if all(&journals)?.iter().any(|other| of_it(other) && is_alive(&other.file)) {
            return Err(io::Error::other("another process is running this run"));
        }
        let token = Token::random()?;
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_APPEND;
        let file = sys::open_beneath(journals.as_fd(), &file_name(&token), flags, 0o600)?;
        file.lock()?;
        let mut journal = Journal { file, token, written: Vec::new() };
        journal.write(&Head { run })?;
        Ok(journal)
    }

    fn write(&mut self, line: &impl Serialize) -> io::Result<()> {
        let line = serde_json::to_string(line).map_err(io::Error::other)?;
        // In one call: a line that is not whole was being written when the run was killed.
        self.file.write_all(format!("{line}\n").as_bytes())?;
        self.file.sync_data()
    }

    /// Writes `undo` down, unless it is written already.
    pub fn before(&mut self, undo: &Undo) -> io::Result<()> {
        if self.written.contains(undo) {
            return Ok(());
        }
        self.write(undo)?;
        self.written.push(undo.clone());
        Ok(())
    }

    /// Everything has been undone: the journal is removed.
    pub fn close(self) -> io::Result<()> {
        let journals = journals()?;
        // Its trial takes it away; where that failed it would stay.
        let _ = sys::unlink_at(journals.as_fd(), &sys::c_path(&trial_name(&self.token))?);
        sys::unlink_at(journals.as_fd(), &sys::c_path(&file_name(&self.token))?)
    }

    /// The run's own name.
    pub fn token(&self) -> &Token {
        &self.token
    }

    /// Where it stands.
    pub fn path(&self) -> PathBuf {
        path_of(&self.token)
    }
}

/// A journal, of any user.
#[derive(Debug)]
struct Found {
    file: File,
    token: Token,
}

/// As a journal's.
impl Drop for Found {
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

impl Found {
    fn lines(&self) -> io::Result<Vec<String>> {
        let mut text = String::new();
        let mut file = &self.file;
        io::Seek::rewind(&mut file)?;
        file.read_to_string(&mut text)?;
        // The last line may not be whole: its change was not made then.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        Ok(whole.lines().map(String::from).collect())
    }

    fn head(&self) -> io::Result<Head> {
        match self.lines()?.first() {
            Some(line) => Ok(serde_json::from_str(line)?),
            None => Ok(Head { run: None }),
        }
    }
}

fn all(journals: &File) -> io::Result<Vec<Found>> {
    let mut tokens = Vec::new();
    for entry in fs::read_dir(bed::own::held(journals))? {
        let name = entry?.file_name();
        tokens.extend(name.to_str().and_then(|it| Token::parse(it.strip_suffix(ENDING)?)));
    }
    those_of(journals, tokens)
}

/// The journals of these. One that is there no more was closed meanwhile.
fn those_of(journals: &File, tokens: Vec<Token>) -> io::Result<Vec<Found>> {
    let mut found = Vec::new();
    for token in tokens {
        match opened(journals, &token) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            file => found.push(Found { file: file?, token }),
        }
    }
    Ok(found)
}

/// What the journal of a dead run says to undo. No other process plays it back meanwhile.
#[derive(Debug)]
pub struct Stale {
    /// The folder of that run, if it had one.
    pub run: Option<PathBuf>,
    journal: Found,
}

impl Stale {
    /// The run that left it, for a person.
    pub fn whose(&self) -> String {
        let none = || "a check of settings".to_string();
        self.run.as_ref().map_or_else(none, |run| format!("the run of {}", run.display()))
    }
}

/// The journals whose runs have ended without closing them.
pub fn stale() -> io::Result<Vec<Stale>> {
    stale_in(&journals()?)
}

fn stale_in(journals: &File) -> io::Result<Vec<Stale>> {
    let mut stale = Vec::new();
    for journal in all(journals)? {
        if journal.file.try_lock().is_ok() {
            // One that can't be read says so when it is played back.
            let run = journal.head().ok().and_then(|head| head.run);
            stale.push(Stale { run, journal });
        }
    }
    Ok(stale)
}

/// A run that is not over and done with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unended {
    /// It is under way.
    Alive,
    /// It was killed, and has left something to undo.
    Killed,
}

/// How it stands with the run in `folder`, unless it is over and done with.
pub fn unended(folder: &Path) -> io::Result<Option<Unended>> {
    let run = Some(folder.canonicalize()?);
    // Held to the end: another process that looks for dead ones would take one that we examine for
    // alive.
    let held = journals()?;
    let journals = all(&held)?;
    let its = journals.iter().find(|journal| journal.head().is_ok_and(|head| head.run == run));
    Ok(its.map(|journal| match is_alive(&journal.file) {
        true => Unended::Alive,
        false => Unended::Killed,
    }))
}

/// The right to change settings of the kernel, for as long as it is held: two runs that changed the
/// same one would each take the other's value for the original.
#[derive(Debug)]
pub struct SettingsLock {
    _file: File,
}

impl SettingsLock {
    fn now() -> io::Result<SettingsLock> {
        let file = registry::lock_file("settings.lock")?;
        file.try_lock().map_err(|_| {
            let why = "another run that changes kernel settings is under way: wait for its end";
            io::Error::other(why)
        })?;
        Ok(SettingsLock { _file: file })
    }

    /// A check or a clean-up may hold it, for a moment.
    pub(crate) fn patiently() -> io::Result<SettingsLock> {
        let start = Instant::now();
        loop {
            match SettingsLock::now() {
                Err(_) if start.elapsed() < LOCK_PATIENCE => {
                    std::thread::sleep(Duration::from_millis(50));
                }
                done => return done,
            }
        }
    }

    /// What killed runs have left of their settings goes back first: it is nobody's original.
    fn after_the_killed(self) -> io::Result<SettingsLock> {
        for stale in stale()?.into_iter().filter(Stale::is_shared).collect::<Vec<_>>() {
            // What can't be undone stays in its journal, as it does when a run begins.
            let _ = stale.play_back();
        }
        Ok(self)
    }
}

/// How long a run that changes settings is waited for.
const LOCK_PATIENCE: Duration = Duration::from_secs(20);

/// The right to change settings. Another process that has it is waited for a while.
pub fn lock_settings() -> io::Result<SettingsLock> {
    SettingsLock::patiently()?.after_the_killed()
}

/// What killed runs have left.
#[derive(Debug)]
pub struct Left {
    /// What can be undone, as long as this is held.
    pub stale: Vec<Stale>,
    /// Whose changes are of settings that a living run may have changed since.
    pub later: Vec<String>,
    _lock: Option<SettingsLock>,
}

/// What killed runs have left; a run that changes settings is waited for a while, where that are
/// settings.
pub fn left() -> io::Result<Left> {
    let journals = journals()?;
    let stale = stale_in(&journals)?;
    if !stale.iter().any(Stale::is_shared) {
        return Ok(Left { stale, later: Vec::new(), _lock: None });
    }
    // The process that gets the lock first looks for these, and a locked one looks like a living
    // run's.
    drop(stale);
    drop(journals);
    left_under(SettingsLock::patiently().ok())
}

fn left_under(lock: Option<SettingsLock>) -> io::Result<Left> {
    let journals = journals()?;
    let is_later = |it: &Stale| lock.is_none() && it.is_shared();
    let (later, stale): (Vec<Stale>, _) = stale_in(&journals)?.into_iter().partition(is_later);
    let later = later.iter().map(Stale::whose).collect();
    Ok(Left { stale, later, _lock: lock })
}

/// How many runs are under way on this machine, as far as we may see them.
pub fn runs_under_way() -> usize {
    let count = || -> io::Result<usize> {
        let held = journals()?;
        Ok(all(&held)?.iter().filter(|journal| is_alive(&journal.file)).count())
    };
    count().unwrap_or(0)
}

/// The run of that token lives: it holds its journal, which is given, open.
pub(crate) fn living(token: &Token) -> io::Result<Option<File>> {
    let held = journals()?;
    let file = match opened(&held, token) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    if is_alive(&file) {
        return Ok(Some(file));
    }
    // Our lock must not make it look like a living run's.
    file.unlock()?;
    Ok(None)
}

impl Stale {
    /// What there is to undo, in the order in which it must be undone: the last change first.
    pub fn undos(&self) -> io::Result<Vec<Undo>> {
        let lines = self.journal.lines()?;
        let undos = lines.iter().skip(1).rev().map(|line| serde_json::from_str(line));
        undos.collect::<Result<_, serde_json::Error>>().map_err(|error| {
            let path = path_of(&self.journal.token);
            io::Error::other(format!(
                "its journal {} is damaged ({error}): undo by hand what it lists, and remove it",
                path.display()
            ))
        })
    }

    /// There are settings in it that other runs may change, too. One that can't be read undoes
    /// nothing.
    fn is_shared(&self) -> bool {
        self.undos().is_ok_and(|undos| undos.iter().any(Undo::is_shared))
    }

    /// Undoes everything it can and gives what could not be undone. When nothing is left, the
    /// journal is removed.
    pub fn play_back(&self) -> io::Result<Vec<String>> {
        let errors: Vec<String> =
            self.undos()?.iter().filter_map(|undo| undo.apply().err()).collect();
        if errors.is_empty() {
            let (journals, token) = (journals()?, &self.journal.token);
            let _ = sys::unlink_at(journals.as_fd(), &sys::c_path(&trial_name(token))?);
            sys::unlink_at(journals.as_fd(), &sys::c_path(&file_name(token))?)?;
        }
        Ok(errors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stale_of(folder: &Path) -> Option<Stale> {
        let run = folder.canonicalize().ok();
        stale().unwrap().into_iter().find(|stale| stale.run == run)
    }

    fn own_folder(journal: &mut Journal, dir: &Path) -> PathBuf {
        let token = journal.token().clone();
        let mut before = |undo: &bed::Undo| journal.before(&Undo::Bed(undo.clone()));
        bed::own_folder(dir, &token, 0o700, &mut before).unwrap().path().into()
    }

    #[test]
    fn a_killed_run_is_undone_from_its_journal_and_a_living_one_is_not() {
        let _alone = lock_settings().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(Some(folder.path())).unwrap();
        let own = own_folder(&mut journal, folder.path());
        fs::write(own.join("1.img"), "image").unwrap();
        let again = Undo::Bed(bed::Undo::DetachLoop { folder: journal.token().clone() });
        journal.before(&again).unwrap();
        journal.before(&again).unwrap();
        assert!(stale_of(folder.path()).is_none(), "it lives");
        assert!(Journal::open(Some(folder.path())).is_err(), "two processes would run one run");
        assert!(living(journal.token()).unwrap().is_some());
        write!(journal.file, "{{\"settings\":[{{\"ba").unwrap();
        let (token, path) = (journal.token().clone(), journal.path());
        drop(journal);

        assert!(living(&token).unwrap().is_none());
        let stale = stale_of(folder.path()).expect("a journal is left");
        assert_eq!(stale.undos().unwrap().len(), 2);
        assert!(stale.play_back().unwrap().is_empty());
        assert!(!own.exists() && !path.exists());
        assert!(stale_of(folder.path()).is_none());
    }

    #[test]
    fn settings_of_a_killed_run_wait_for_who_may_change_them() {
        // The holder of the lock undoes what this test leaves, and a process that examines a
        // journal has it locked.
        let _alone = lock_settings().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(Some(folder.path())).unwrap();
        journal.before(&Undo::Settings(Vec::new())).unwrap();
        drop(journal);
        let whose = stale_of(folder.path()).expect("a journal is left").whose();
        let is_its = |stale: &Stale| stale.whose() == whose;
        let left = left_under(None).unwrap();
        assert!(left.later.contains(&whose) && !left.stale.iter().any(is_its));
        // Nobody has it: the holder of the lock on settings finds it.
        assert!(stale_of(folder.path()).is_some());
        let lock = SettingsLock { _file: tempfile::tempfile().unwrap() };
        let left = left_under(Some(lock)).unwrap();
        assert!(!left.later.contains(&whose));
        let its = left.stale.iter().find(|it| is_its(it)).expect("it can be undone");
        assert!(its.play_back().unwrap().is_empty());
    }

    #[test]
    fn what_is_a_loop_devices_of_ours_is_no_other_runs() {
        let queue = |image| Undo::Bed(bed::Undo::queue(image, Vec::new()));
        assert!(queue(None).is_shared());
        assert!(!queue(Some((7, Token::random().unwrap()))).is_shared());
        assert!(Undo::Controllers(Vec::new()).is_shared());
    }

    #[test]
    fn a_run_that_ends_well_leaves_no_journal() {
        let _alone = lock_settings().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(Some(folder.path())).unwrap();
        let path = journal.path();
        assert!(path.exists());
        journal.close().unwrap();
        assert!(!path.exists() && stale_of(folder.path()).is_none());
    }

    #[test]
    fn a_damaged_journal_says_where_it_is_and_undoes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(Some(folder.path())).unwrap();
        journal.write(&"nothing that can be undone").unwrap();
        let path = journal.path();
        drop(journal);
        let said = stale_of(folder.path()).unwrap().play_back().unwrap_err().to_string();
        assert!(said.contains(&path.display().to_string()) && path.exists(), "{said}");
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_journal_that_is_closed_while_one_looks_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(Some(folder.path())).unwrap();
        let tokens = vec![Token::random().unwrap(), journal.token().clone()];
        let there = those_of(&journals().unwrap(), tokens).unwrap();
        assert!(there.len() == 1 && there[0].token == *journal.token());
        journal.close().unwrap();
    }

    #[test]
    fn what_is_not_on_the_list_is_not_undone() {
        let folder = tempfile::tempdir().unwrap();
        let victim = folder.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        let victim = victim.to_str().unwrap();
        let up = format!("../../..{victim}");
        let own = r#"{"bed":{"undo":"folder","parent":"/home","folder":"0123456789abcdef"}}"#;
        serde_json::from_str::<Undo>(own).unwrap();
        for line in [
            format!(r#"{{"directory":"{victim}"}}"#),
            format!(r#"{{"bed":{{"undo":"remove_image","path":"{victim}"}}}}"#),
            r#"{"bed":{"undo":"folder","parent":"/","folder":"home"}}"#.to_string(),
            r#"{"bed":{"undo":"folder","parent":"/","folder":"../3456789abcdef"}}"#.into(),
            r#"{"pool":"rpool"}"#.into(),
            r#"{"pool":"fsverdict-a b"}"#.into(),
            format!(r#"{{"settings":[{{"path":"{victim}","value":"1"}}]}}"#),
        ] {
            assert!(serde_json::from_str::<Undo>(&line).is_err(), "{line}");
        }
        let setting = |knob: &str, value: &str| format!(r#"{{"knob":{knob},"value":"{value}"}}"#);
        for knob in [
            format!(r#"{{"sysctl":"{up}"}}"#),
            format!(r#"{{"queue":{{"device":[7,0],"file":"{up}"}}}}"#),
        ] {
            let (back, ours) = (setting(&knob, "EVIL"), setting(&knob, "precious"));
            let line = format!(r#"{{"settings":[{{"back":{back},"ours":{ours}}}]}}"#);
            let undo: Undo = serde_json::from_str(&line).unwrap();
            let odd = line.replace("EVIL", r"1\nEVIL");
            assert!(serde_json::from_str::<Undo>(&odd).is_err(), "{odd}");
            let _ = undo.apply();
            assert_eq!(fs::read_to_string(victim).unwrap(), "precious", "{line}");
        }
    }
}
