//! `fsverdict report`: a run's report, remade from its folder.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::ValueEnum;
use fsverdict_core::judge::Judge;
use fsverdict_core::render::{self, Figure};
use fsverdict_host::tool;

use crate::exit::{self, Usage};
use crate::store::{Store, write_whole};

/// Remake a run's report from its folder.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The runs' folders.
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// What to write on standard output.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Write every figure into this folder too, as SVG and as PNG; a Markdown report shows them.
    #[arg(long, value_name = "DIR")]
    figures: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  fsverdict report runs/20260101-120000-cp --format csv
  fsverdict report runs/20260101-120000-cp --format html > cp.html
  fsverdict report runs/20260101-120000-cp --figures figures --format markdown > cp.md";

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Markdown,
    Html,
    Csv,
    Json,
}

/// Judges each run anew from its records and prints its report.
pub fn run(arguments: &Arguments) -> Result<u8> {
    if arguments.figures.is_some() && arguments.runs.len() > 1 {
        return Err(Usage("--figures takes one run: figures of several would mix".into()).into());
    }
    for folder in &arguments.runs {
        let store = Store::open(folder)?;
        let loaded = store.load()?;
        let judged = loaded.judged(&Judge::new(&loaded.plan));
        let report = loaded.report(&judged);
        let timelines = match (arguments.format, &arguments.figures) {
            (Format::Html, _) | (_, Some(_)) => store.timelines(&loaded.records)?,
            _ => Vec::new(),
        };
        let figures = match &arguments.figures {
            Some(_) => render::figures(&report, &timelines),
            None => Vec::new(),
        };
        let at = arguments.figures.as_deref().map(Path::to_string_lossy);
        let text = match arguments.format {
            Format::Text => render::terminal(&report),
            Format::Markdown => {
                render::markdown(&report, at.as_ref().map(|at| (figures.as_slice(), at.as_ref())))
            }
            Format::Html => render::html(&report, &timelines),
            Format::Csv => render::samples_csv(report.records),
            Format::Json => render::json(&report),
        };
        std::io::stdout().write_all(text.as_bytes())?;
        if let Some(folder) = &arguments.figures {
            write_figures(&figures, folder)?;
        }
    }
    Ok(exit::DONE)
}

/// What makes PNG of SVG.
const RSVG: &str = "rsvg-convert";
/// Pixels of a PNG for one of a figure: enough for a screen of twice the density, and for paper.
const ZOOM: &str = "2";

fn write_figures(figures: &[Figure], folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let path = |figure: &Figure, ending: &str| folder.join(format!("{}.{ending}", figure.name));
    for figure in figures {
        write_whole(&path(figure, "svg"), &figure.svg())?;
    }
    for figure in figures {
        let [svg, png] = ["svg", "png"].map(|ending| path(figure, ending).display().to_string());
        let words = [RSVG, "--zoom", ZOOM, "--output", &png, &svg];
        tool::run_words(&words).context("the figures are there as SVG, but not as PNG")?;
    }
    eprintln!("fsverdict: {} figures in {}", figures.len(), folder.display());
    Ok(())
}
