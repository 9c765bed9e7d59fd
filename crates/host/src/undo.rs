//! The undo journal: what a run changes is written down before it is changed.
//!
//! The journal is `undo.jsonl` in the run's folder, one [`Undo`] a line, each synced before its
//! change is made. A run holds a lock on its journal while it lives; a link to it stands in
//! [`registry`], so that `clean` and the next run find what a killed run left. Everything but
//! image files is gone after a reboot, and so is the registry.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::bed;
use crate::file_system::zfs;
use crate::machine::settings::{self, Change};
use crate::sys;

/// One thing to undo. Undoing what is undone already does nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Undo {
    /// Part of a bed is to be removed.
    Bed(bed::Undo),
    /// Settings are to have their former values again, in this order.
    Settings(Vec<Change>),
    /// The kernel holds the bed's devices by this pool: ZFS.
    Pool(String),
    /// A trial's own folder on bed `directory` is to be removed.
    Directory(PathBuf),
}

impl Undo {
    /// Undoes it.
    pub fn apply(&self) -> Result<(), String> {
        match self {
            Undo::Bed(part) => part.apply().map_err(|error| error.to_string()),
            Undo::Pool(pool) => zfs::release(pool).map_err(|error| error.to_string()),
            Undo::Settings(changes) => {
                let errors: Vec<String> = settings::put_back(Path::new("/"), changes)
                    .iter()
                    .map(ToString::to_string)
                    .collect();
                if errors.is_empty() { Ok(()) } else { Err(errors.join("; ")) }
            }
            Undo::Directory(path) => match fs::remove_dir_all(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    Err(format!("{}: {error}", path.display()))
                }
                _ => Ok(()),
            },
        }
    }
}

/// The journal of a living run.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    link: PathBuf,
    written: Vec<Undo>,
}

/// Where links to the journals of living runs stand.
pub fn registry() -> PathBuf {
    if sys::is_root() {
        return "/run/fsverdict".into();
    }
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(folder) => PathBuf::from(folder).join("fsverdict"),
        None => std::env::temp_dir().join(format!("fsverdict-{}", sys::user_id())),
    }
}

/// It belongs to us. Playing back a journal writes and removes what it says: one that somebody else
/// wrote, in a folder of his or in a temporary folder for all, is not to be trusted.
fn is_ours(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|data| data.uid() == sys::user_id())
}

impl Journal {
    /// Opens the journal of the run in `folder`, and takes its lock: an error says that another
    /// process runs it.
    pub fn open(folder: &Path) -> io::Result<Journal> {
        let path = folder.canonicalize()?.join("undo.jsonl");
        let file = File::options().create(true).append(true).open(&path)?;
        file.try_lock().map_err(|_| io::Error::other("another process is running this run"))?;
        let registry = registry();
        fs::create_dir_all(&registry)?;
        if !is_ours(&registry) {
            let text = format!("{} belongs to another user", registry.display());
            return Err(io::Error::other(text));
        }
        let name = folder.canonicalize()?.display().to_string().replace('/', "_");
        let link = registry.join(format!("{name}.jsonl"));
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(&path, &link)?;
        Ok(Journal { file, path, link, written: Vec::new() })
    }

    /// Writes `undo` down, unless it is written already.
    pub fn before(&mut self, undo: &Undo) -> io::Result<()> {
        if self.written.contains(undo) {
            return Ok(());
        }
        let line = serde_json::to_string(undo).map_err(io::Error::other)?;
        writeln!(self.file, "{line}")?;
        self.file.sync_data()?;
        self.written.push(undo.clone());
        Ok(())
    }

    /// Everything has been undone: the journal is emptied and its link removed.
    pub fn close(self) -> io::Result<()> {
        fs::remove_file(&self.link)?;
        self.file.set_len(0)?;
        Ok(())
    }

    /// Where it stands.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// What a journal of a run that is no more says to undo.
#[derive(Debug)]
pub struct Stale {
    /// The journal.
    pub path: PathBuf,
    /// The link to it, if it is registered.
    link: Option<PathBuf>,
}

/// The registered journals, by their links.
fn registered() -> Vec<(PathBuf, PathBuf)> {
    let registry = registry();
    if !is_ours(&registry) {
        return Vec::new();
    }
    let links = fs::read_dir(registry).into_iter().flatten().flatten().map(|entry| entry.path());
    links.filter_map(|link| Some((fs::read_link(&link).ok()?, link))).collect()
}

/// The registered journals whose runs have ended without closing them.
pub fn stale() -> Vec<Stale> {
    let dead = registered().into_iter().filter(|(path, _)| !is_alive(path));
    dead.map(|(path, link)| Stale { path, link: Some(link) }).collect()
}

/// The journal of the run in `folder`, if that run has left one and lives no more.
pub fn stale_in(folder: &Path) -> Option<Stale> {
    let path = folder.join("undo.jsonl").canonicalize().ok()?;
    let empty = fs::metadata(&path).is_ok_and(|data| data.len() == 0);
    (!empty && is_ours(&path) && !is_alive(&path)).then_some(Stale { path, link: None })
}

/// The right to change settings of the kernel, for as long as the file is held: two runs that
/// changed the same one would each take the other's value for the original. Fails while another
/// process holds it.
pub fn lock_settings() -> io::Result<File> {
    let registry = registry();
    fs::create_dir_all(&registry)?;
    let file = File::create(registry.join("settings.lock"))?;
    file.try_lock().map_err(|_| {
        io::Error::other("another run that changes kernel settings is under way: wait for its end")
    })?;
    Ok(file)
}

/// How many runs are under way on this machine, as far as we may see them.
pub fn runs_under_way() -> usize {
    registered().iter().filter(|(path, _)| is_alive(path)).count()
}

fn is_alive(journal: &Path) -> bool {
    File::open(journal).is_ok_and(|file| file.try_lock_shared().is_err())
}

impl Stale {
    /// What there is to undo, in the order in which it must be undone: the last change first.
    /// A last line that is not whole was being written when the run was killed, before its change
    /// was made.
    pub fn undos(&self) -> io::Result<Vec<Undo>> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            // The run's folder was deleted: there is nothing to read and nothing to be done.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut undos = Vec::new();
        for line in BufReader::new(file).lines() {
            match serde_json::from_str(&line?) {
                Ok(undo) => undos.push(undo),
                Err(_) => break,
            }
        }
        undos.reverse();
        Ok(undos)
    }

    /// Undoes everything it can and gives what could not be undone. When nothing is left, the
    /// journal is emptied and its link removed.
    pub fn play_back(&self) -> io::Result<Vec<String>> {
        let errors: Vec<String> =
            self.undos()?.iter().filter_map(|undo| undo.apply().err()).collect();
        if errors.is_empty() {
            if let Ok(file) = File::options().write(true).open(&self.path) {
                file.set_len(0)?;
            }
            if let Some(link) = &self.link {
                fs::remove_file(link)?;
            }
        }
        Ok(errors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::settings::{Knob, Setting};

    /// Of a knob that no machine has.
    fn setting(ours: &str, back: &str) -> Undo {
        let setting = |value: &str| Setting { knob: Knob::sysctl("no.such"), value: value.into() };
        Undo::Settings(vec![Change { back: setting(back), ours: setting(ours) }])
    }

    #[test]
    fn a_killed_run_is_undone_from_its_journal_and_a_living_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("own");
        fs::create_dir(&own).unwrap();
        let mut journal = Journal::open(folder.path()).unwrap();
        journal.before(&setting("earlier", "original")).unwrap();
        journal.before(&setting("changed", "original")).unwrap();
        journal.before(&setting("changed", "original")).unwrap();
        journal.before(&Undo::Directory(own.clone())).unwrap();
        assert!(stale_in(folder.path()).is_none(), "it lives");
        assert!(Journal::open(folder.path()).is_err(), "two processes would run one run");
        let link = journal.link.clone();
        writeln!(journal.file, "{{\"setting\":{{\"pa").unwrap();
        drop(journal);

        let stale = stale_in(folder.path()).expect("a journal is left");
        assert_eq!(stale.undos().unwrap().len(), 3);
        assert!(stale.play_back().unwrap().is_empty());
        assert!(!own.exists());
        assert!(stale_in(folder.path()).is_none(), "it is empty now");
        fs::remove_file(link).unwrap();
    }

    #[test]
    fn a_run_that_ends_well_leaves_no_journal() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(folder.path()).unwrap();
        journal.before(&setting("1", "0")).unwrap();
        let link = journal.link.clone();
        journal.close().unwrap();
        assert!(!link.exists());
        assert!(stale_in(folder.path()).is_none());
    }
}
