//! `fsverdict history`: many runs over time.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::ValueEnum;
use fsverdict_core::judge::{self, Side};
use fsverdict_core::render;

use crate::exit::{self, Usage};
use crate::pack;
use crate::say::{self, remark};
use crate::source::{Loaded, Source};

/// Show how each figure went over many runs, and with which run it changed.
///
/// Takes the runs below a folder, packed ones too, in the order of time. It follows each
/// contender's ratio to the reference, which cancels the machine's state on that day, and the
/// reference's own median. It says with which runs a change may have come, and what else changed
/// with each of these: a kernel, a tool's version. Other machines have rows of their own.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// A folder with runs in it, or a packed run.
    dir: PathBuf,
    /// Metrics to follow [default: what each run judges].
    #[arg(long, value_delimiter = ',', value_name = "METRIC,...")]
    metric: Vec<String>,
    /// What to write on standard output.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Html,
    Json,
}

const EXAMPLES: &str = "\
Examples:
  fsverdict history runs
  fsverdict history runs --format html > history.html
  fsverdict history runs --metric create_rate,create_latency_p99 --format json";

/// How deep below the folder runs are looked for: nightly/2026/RUN.
const DEPTH_MAX: usize = 4;

/// Judges the runs together and prints their history.
pub fn run(arguments: &Arguments) -> Result<u8> {
    let dir = &arguments.dir;
    let runs = load(dir, matches!(arguments.format, Format::Text))?;
    if runs.is_empty() {
        let text = format!("{} holds no run that measured something", dir.display());
        return Err(Usage(text).into());
    }
    let sides: Vec<Side> = runs.iter().map(Loaded::side).collect();
    let history = judge::history(&sides, &arguments.metric)?;
    let text = match arguments.format {
        Format::Text => render::history(&history),
        Format::Html => render::history_html(&history),
        Format::Json => render::history_json(&history),
    };
    say::print(&text)?;
    Ok(exit::DONE)
}

/// The runs at or below a folder that have measured something, in the order of time. One that is
/// there as a folder and packed too is the same run.
fn load(dir: &Path, is_text: bool) -> Result<Vec<Loaded>> {
    let mut found = Vec::new();
    find(dir, DEPTH_MAX, &mut found).with_context(|| dir.display().to_string())?;
    let mut runs: Vec<Loaded> = Vec::new();
    for path in &found {
        match Source::open(path).and_then(|source| source.load_for(is_text)) {
            Ok(loaded) if loaded.records.is_empty() => {}
            Ok(loaded) => runs.push(loaded),
            Err(error) => remark!("left out: {error:#}"),
        }
    }
    runs.sort_by(|one, other| one.run.started.cmp(&other.run.started));
    let mut seen = HashSet::new();
    runs.retain(|Loaded { run, .. }| {
        let (name, started, seed) = run.identity();
        seen.insert((name.to_string(), started.to_string(), seed))
    });
    Ok(runs)
}

/// Adds the folders of runs and the packed runs at or below `folder`. Links are not followed.
fn find(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if folder.is_file() || folder.join("run.json").exists() {
        found.push(folder.into());
        return Ok(());
    }
    let mut entries = fs::read_dir(folder)?.collect::<std::io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::path);
    for entry in entries {
        let (path, kind) = (entry.path(), entry.file_type()?);
        if kind.is_dir() && depth > 0 {
            if let Err(error) = find(&path, depth - 1, found) {
                remark!("left out: {}: {error}", path.display());
            }
        } else if kind.is_file() && is_packed_run(&path) {
            found.push(path);
        }
    }
    Ok(())
}

/// By its name a run may be in it, and by what it begins with one is.
fn is_packed_run(path: &Path) -> bool {
    let may_be = path.as_os_str().as_encoded_bytes().ends_with(b".tar.gz");
    may_be
        && pack::is_pack(path).unwrap_or_else(|error| {
            remark!("left out: {error:#}");
            false
        })
}
