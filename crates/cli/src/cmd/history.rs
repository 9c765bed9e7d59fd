//! `fsverdict history`: many runs over time.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::ValueEnum;
use fsverdict_core::judge::{self, Side};
use fsverdict_core::render;

use crate::exit::{self, Usage};
use crate::store::{Loaded, Store};

/// Show how each figure went over many runs, and with which run it changed.
///
/// Takes the runs' folders below a folder in the order of time. It follows each contender's ratio
/// to the reference, in which what the machine was like on a day cancels, and the reference's own
/// median. A change needs six runs on either side to show; the kernel or the tool's version that
/// came with it is listed.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// A folder with runs in it.
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
    let mut folders = Vec::new();
    find(dir, DEPTH_MAX, &mut folders).with_context(|| dir.display().to_string())?;
    let mut runs: Vec<Loaded> = Vec::new();
    for folder in &folders {
        match Store::open(folder).and_then(|store| store.load()) {
            Ok(loaded) if loaded.records.is_empty() => {}
            Ok(loaded) => runs.push(loaded),
            Err(error) => eprintln!("fsverdict: left out: {error:#}"),
        }
    }
    if runs.is_empty() {
        let text = format!("{} holds no run that measured something", dir.display());
        return Err(Usage(text).into());
    }
    runs.sort_by(|one, other| one.run.started.cmp(&other.run.started));
    let sides: Vec<Side> = runs.iter().map(Loaded::side).collect();
    let history = judge::history(&sides, &arguments.metric);
    let text = match arguments.format {
        Format::Text => render::history(&history),
        Format::Html => render::history_html(&history),
        Format::Json => render::history_json(&history),
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(exit::DONE)
}

/// Adds the folders of runs at or below `folder`. Links are not followed.
fn find(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if folder.join("run.json").exists() {
        found.push(folder.into());
        return Ok(());
    }
    let mut below = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            below.push(entry.path());
        }
    }
    below.sort();
    if depth == 0 {
        return Ok(());
    }
    below.iter().try_for_each(|path| find(path, depth - 1, found))
}
