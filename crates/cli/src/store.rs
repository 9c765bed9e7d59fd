//! A run's folder: what is written when. FORMAT.md describes it.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use fsverdict_core::model::{Plan, Record, Run};
use fsverdict_core::render::{self, Report};

use fsverdict_host::folder::Folder;

use crate::source::{Loaded, Source};

/// What a run writes into its folder, besides `run.json`, which identifies it.
const WRITTEN: [&str; 5] = ["plan.toml", "trials", "samples.csv", "report.md", "report.html"];

/// The folder of a run's trials.
const TRIALS: &str = "trials";

/// A run's folder. It is held open: the owner of a folder above can put another in its place, and
/// root would write there.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    /// None where it is only talked about.
    held: Option<Folder>,
}

impl Store {
    /// Makes the folder; it must not hold anything yet that a run writes.
    pub fn create(folder: &Path) -> Result<Store> {
        let shown = folder.display();
        if folder.join("run.json").exists() {
            bail!("{shown} holds a run already: --resume it, or give another --output");
        }
        if let Some(name) = WRITTEN.iter().find(|name| folder.join(name).exists()) {
            bail!("{shown} holds {name} already: give another --output");
        }
        let making = || format!("making the run's folder {shown}");
        fs::create_dir_all(folder).with_context(making)?;
        let store = Store::at(folder.canonicalize()?).with_context(making)?;
        store.held()?.make(Path::new(TRIALS)).with_context(making)?;
        Ok(store)
    }

    fn at(folder: PathBuf) -> std::io::Result<Store> {
        let held = Some(Folder::open(&folder)?);
        Ok(Store { folder, held })
    }

    fn held(&self) -> Result<&Folder> {
        self.held.as_ref().with_context(|| format!("{} is not made", self.folder.display()))
    }

    /// A folder that is only talked about: of a dry run.
    pub fn imagined(folder: &str) -> Store {
        Store { folder: folder.into(), held: None }
    }

    /// The folder of a run that was begun, to go on with it.
    pub fn open(path: &Path) -> Result<Store> {
        match Source::open(path)? {
            Source::Folder(folder) => {
                let of = || folder.display().to_string();
                let store = Store::at(folder.clone()).with_context(of)?;
                // A run that somebody else has packed may hold a link there.
                let trials = folder.join(TRIALS);
                match fs::symlink_metadata(&trials) {
                    Ok(data) if !data.is_dir() => bail!(
                        "{} is not a folder, but a link or a file: no run has made it",
                        trials.display()
                    ),
                    _ => Ok(store),
                }
            }
            Source::Packed(file) => {
                let file = file.display();
                bail!("{file} is a packed run: tar -xzf {file} makes a folder that can be resumed")
            }
        }
    }

    /// Reads the run back.
    pub fn load(&self) -> Result<Loaded> {
        self.source().load()
    }

    fn source(&self) -> Source {
        Source::Folder(self.folder.clone())
    }

    /// Removes what a run that measured nothing has written, and its folder if that was all in it:
    /// the folder may have been there before, with files of others. What is still to be undone is
    /// not known from here. Records that are there but could not be read back stay.
    pub fn discard(&self) {
        if self.may_hold_records() {
            return;
        }
        let Ok(held) = self.held() else { return };
        // What stays is only untidy. `create` has found none of these in the folder.
        let _ = held.remove(TRIALS);
        for name in WRITTEN.iter().chain(&["run.json"]) {
            let _ = fs::remove_file(held.path().join(name));
        }
        let _ = fs::remove_dir(&self.folder);
    }

    fn may_hold_records(&self) -> bool {
        let may_hold = |folder: std::io::Result<fs::DirEntry>| {
            folder.and_then(|it| fs::exists(it.path().join("record.json"))).unwrap_or(true)
        };
        // Its path leads there for as long as it is held.
        let trials = self.held().and_then(|held| Ok(held.below(Path::new(TRIALS))?));
        let Ok(trials) = trials else { return true };
        fs::read_dir(trials.path()).map_or(true, |mut folders| folders.any(may_hold))
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder of trial `number`.
    pub fn trial(&self, number: u32) -> PathBuf {
        self.folder.join(TRIALS).join(number.to_string())
    }

    /// Removes the folder of trial `number`, if there is one.
    pub fn empty(&self, number: u32) -> Result<()> {
        let removed = match self.held()?.below(Path::new(TRIALS)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            trials => trials.and_then(|trials| trials.remove(&number.to_string())),
        };
        removed.with_context(|| self.trial(number).display().to_string())
    }

    /// Trial `number` has a record.
    pub fn has_record(&self, number: u32) -> bool {
        let name = format!("{TRIALS}/{number}");
        let folder = self.held().ok().and_then(|held| held.below(Path::new(&name)).ok());
        folder.is_some_and(|folder| folder.path().join("record.json").exists())
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        let of = || format!("writing {}", self.folder.join(name).display());
        self.held()?.write_whole(name, text.as_bytes()).with_context(of)
    }

    /// Writes the plan and the run's facts.
    pub fn write_head(&self, run: &Run, plan: &Plan) -> Result<()> {
        self.write("plan.toml", &toml::to_string(plan)?)?;
        self.write_run(run)
    }

    /// Writes the run's facts.
    pub fn write_run(&self, run: &Run) -> Result<()> {
        self.write("run.json", &(serde_json::to_string_pretty(run)? + "\n"))
    }

    /// Writes a record where the trial's own process has not: of a trial that failed around it.
    pub fn write_record(&self, record: &Record) -> Result<()> {
        let name = format!("{TRIALS}/{}", record.number);
        let text = serde_json::to_string(record)? + "\n";
        let folder = self.held()?.make(Path::new(&name));
        folder
            .and_then(|folder| folder.write_whole("record.json", text.as_bytes()))
            .with_context(|| self.trial(record.number).display().to_string())
    }

    /// Writes `samples.csv`, `report.md` and `report.html`.
    pub fn write_report(&self, report: &Report) -> Result<()> {
        self.write("samples.csv", &render::samples_csv(report.records))?;
        self.write("report.md", &render::markdown(report, None))?;
        let timelines = self.source().timelines(report.records)?;
        self.write("report.html", &render::html(report, &timelines))
    }
}

/// Writes a record so that it is there whole or not at all, even after a power cut. On one line:
/// spread out, its histograms take six times as much.
pub fn write_record(path: &Path, record: &Record) -> Result<()> {
    write_whole(path, &(serde_json::to_string(record)? + "\n"))
}

/// Writes to what a user has named: a file that is there, or not yet, is written whole; a pipe, a
/// terminal or another device is written to, and stays what it is.
pub fn write_out(path: &Path, text: &str) -> Result<()> {
    match fs::metadata(path) {
        Ok(data) if !data.is_file() => {
            let mut file = File::options().write(true).open(path)?;
            file.write_all(text.as_bytes()).with_context(|| format!("writing {}", path.display()))
        }
        // What a link leads to, and not the link.
        Ok(_) => write_whole(&path.canonicalize()?, text),
        Err(_) => write_whole(path, text),
    }
}

/// Whether [`write_out`] will be able to, as far as can be told without writing.
pub fn check_out(path: &Path) -> Result<()> {
    let folder = path.parent().filter(|it| *it != Path::new("")).unwrap_or(Path::new("."));
    let checked = match fs::metadata(path) {
        Ok(data) if data.is_dir() => Err(ErrorKind::IsADirectory.into()),
        // Opening a pipe would wait for a reader.
        Ok(data) if !data.is_file() => Ok(()),
        Ok(_) => File::options().append(true).open(path).map(drop),
        Err(_) => fs::metadata(folder).and_then(|data| match data.is_dir() {
            true => Ok(()),
            false => Err(ErrorKind::NotADirectory.into()),
        }),
    };
    checked.with_context(|| format!("writing {}", path.display()))
}

/// Written beside, synced, renamed; where that fails, nothing is left beside.
pub fn write_whole(path: &Path, text: &str) -> Result<()> {
    let beside = path.with_extension("new");
    let write = || {
        // The folder may be another's, and the name a link to somewhere else.
        let made = File::options().write(true).create_new(true).open(&beside);
        let mut file = match made {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                fs::remove_file(&beside)?;
                File::options().write(true).create_new(true).open(&beside)?
            }
            made => made?,
        };
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, path)
    };
    write()
        .inspect_err(|_| {
            let _ = fs::remove_file(&beside);
        })
        .with_context(|| format!("writing {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_whose_trials_lie_elsewhere_is_not_gone_on_with() {
        let scene = tempfile::tempdir().unwrap();
        let (run, elsewhere) = (scene.path().join("run"), scene.path().join("elsewhere"));
        let store = Store::create(&run).unwrap();
        fs::write(store.folder().join("run.json"), "{}").unwrap();
        Store::open(&run).unwrap();
        fs::rename(run.join("trials"), &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, run.join("trials")).unwrap();
        let refused = Store::open(&run).unwrap_err().to_string();
        assert!(refused.ends_with("no run has made it"), "{refused}");
    }

    #[test]
    fn a_folder_is_discarded_unless_it_holds_a_record() {
        let scene = tempfile::tempdir().unwrap();
        let begun = |name: &str| {
            let store = Store::create(&scene.path().join(name)).unwrap();
            fs::create_dir(store.trial(1)).unwrap();
            store
        };
        let (nothing, something) = (begun("nothing"), begun("something"));
        // Nobody can read it, which is why the run knows of none.
        fs::write(something.trial(1).join("record.json"), "cut o").unwrap();
        [&nothing, &something].into_iter().for_each(Store::discard);
        assert_eq!([&nothing, &something].map(|it| it.folder().exists()), [false, true]);
        let shared = begun("shared");
        fs::write(shared.folder().join("thesis"), "").unwrap();
        fs::write(shared.folder().join("run.json"), "{}").unwrap();
        shared.discard();
        let left: Vec<_> = fs::read_dir(shared.folder()).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }
}
