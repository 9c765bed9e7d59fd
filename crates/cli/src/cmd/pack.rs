//! `fsverdict pack`: a run as one file.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anyhow::{Context, Result, bail, ensure};
use fsverdict_core::model::Unit;
use fsverdict_host::undo::{self, Unended};

use crate::exit;
use crate::pack::{self, Places};
use crate::say::{self, remark};
use crate::source::{Loaded, Source};

/// Make one file of a run, to keep it or send it.
///
/// Commands that only read a run take the file in place of the folder, and unpack nothing. It is a
/// tar.gz with a checksum: tar -xzf makes the folder again, to resume the run. Home folders, caches
/// and the run's own folder are written as ~, CACHE and RUN in it. The tools' own output stays
/// behind unless --raw is given.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The run's folder.
    run: PathBuf,
    /// The file to make [default: the run's name and .tar.gz, here].
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Pack the tools' own output too: whatever they said of the machine.
    #[arg(long)]
    raw: bool,
}

const EXAMPLES: &str = "\
Examples:
  fsverdict pack runs/20260101-120000-cp
  fsverdict report 20260101-120000-cp.tar.gz --format html > cp.html
  fsverdict pack runs/20260101-120000-cp --output nightly/2026-01-01.tar.gz

A run that is under way or has left something to undo is refused; one that was interrupted is packed
as far as it went.";

/// Packs the run; nothing is overwritten, and the file is there whole or not at all.
pub fn run(arguments: &Arguments) -> Result<u8> {
    let folder = match Source::open(&arguments.run)? {
        Source::Folder(folder) => folder,
        Source::Packed(file) => bail!("{} is a packed run already", file.display()),
    };
    check_ended(&folder)?;
    let loaded = Source::Folder(folder.clone()).load()?;
    let name = &loaded.run.name;
    ensure!(!loaded.records.is_empty(), "{name} has measured nothing: there is nothing to pack");
    let is_plain = Path::new(name).file_name().is_some_and(|it| it == name.as_str());
    ensure!(is_plain, "{name:?} in run.json can't be the name of a folder");
    let output = arguments.output.clone().unwrap_or_else(|| format!("{name}.tar.gz").into());
    let bytes = make(&folder, &loaded, &output, arguments.raw)?;
    let (trials, size) = (loaded.records.len(), Unit::Bytes.format(bytes as f64));
    say::print(&format!("{}: {trials} trials, {size}\n", output.display()))?;
    if loaded.run.stop.is_none() {
        remark!("{name} never ended: packed is what it has measured");
    }
    Ok(exit::DONE)
}

/// What a living run measures next would be missing, and what a killed one has left may lie in its
/// folder.
fn check_ended(folder: &Path) -> Result<()> {
    let shown = folder.display();
    match undo::unended(folder)? {
        None => Ok(()),
        Some(Unended::Alive) => bail!("the run in {shown} is under way: wait for its end"),
        Some(Unended::Killed) => {
            bail!("{shown} has left something to undo: fsverdict clean {shown} first")
        }
    }
}

/// Written beside under another name, read back, and only then given its own. Gives the length.
fn make(folder: &Path, loaded: &Loaded, output: &Path, raw: bool) -> Result<u64> {
    let shown = output.display();
    ensure!(fs::symlink_metadata(output).is_err(), "{shown} is there already");
    let mut beside = output.as_os_str().to_owned();
    beside.push(format!(".{}.new", std::process::id()));
    let beside = PathBuf::from(beside);
    let file = File::create_new(&beside).with_context(|| format!("making {shown}"))?;
    let made = write(&file, folder, loaded, raw).and_then(|()| {
        let back = Source::Packed(beside.clone()).load()?;
        ensure!(back.records.len() == loaded.records.len(), "trials are missing in the pack");
        ensure!(fs::symlink_metadata(output).is_err(), "{shown} is there already");
        fs::rename(&beside, output)?;
        Ok(file.metadata()?.len())
    });
    if made.is_err() {
        // What stays is only untidy.
        let _ = fs::remove_file(&beside);
    }
    made.with_context(|| format!("packing {shown}"))
}

fn write(file: &File, folder: &Path, loaded: &Loaded, raw: bool) -> Result<()> {
    let mut names = Source::names(folder)?;
    let mut places = Places::of_user(&|name| std::env::var(name).ok());
    places.add_folder(folder);
    places.add_facts(&loaded.run);
    for name in names.iter().filter(|name| name.ends_with("/trial.json")) {
        if let Some(text) = bytes_of(&folder.join(name))? {
            places.add_trial(&text).with_context(|| name.clone())?;
        }
    }
    if raw {
        for record in &loaded.records {
            let raw = format!("trials/{}/raw", record.number);
            below(folder, &raw, &mut names).with_context(|| raw)?;
        }
    }
    let started = humantime::parse_rfc3339(&loaded.run.started).unwrap_or(UNIX_EPOCH);
    let time_s = started.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    pack::write(file, &loaded.run.name, time_s, names, &mut |name| {
        let bytes = bytes_of(&folder.join(name)).with_context(|| name.to_string())?;
        Ok(bytes.map(|bytes| places.taken_out(&bytes)))
    })
}

/// What a plain file holds; `None` where there is none. A link may lead out of the run.
fn bytes_of(path: &Path) -> Result<Option<Vec<u8>>> {
    match fs::symlink_metadata(path) {
        Ok(data) if data.len() > pack::FILE_BYTES_MAX => {
            bail!("it has {} bytes; a packed run's files have 256 MiB at most", data.len())
        }
        Ok(data) if data.is_file() => Ok(Some(fs::read(path)?)),
        Ok(_) => Ok(None),
        Err(error) if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind()) => {
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// Adds the names of the plain files below a folder, if it is there.
fn below(run: &Path, name: &str, names: &mut Vec<String>) -> Result<()> {
    let path = run.join(name);
    if !fs::symlink_metadata(&path).is_ok_and(|data| data.is_dir()) {
        return Ok(());
    }
    for entry in fs::read_dir(&path)? {
        let entry = entry?;
        let file = entry.file_name();
        let file = file.to_str().with_context(|| format!("{file:?} is not text"))?;
        let name = format!("{name}/{file}");
        match entry.file_type()? {
            kind if kind.is_dir() => below(run, &name, names)?,
            kind if kind.is_file() => names.push(name),
            _ => {}
        }
    }
    Ok(())
}
