//! `fsverdict report`: a run's report, remade from its folder.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::ValueEnum;
use fsverdict_core::judge::Judge;
use fsverdict_core::render;

use crate::exit;
use crate::store::Store;

/// Remake a run's report from its folder.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  fsverdict report runs/20260101-120000-cp --format csv")]
pub struct Arguments {
    /// The runs' folders.
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// What to write on standard output.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Markdown,
    Csv,
    Json,
}

/// Judges each run anew from its records and prints its report.
pub fn run(arguments: &Arguments) -> Result<u8> {
    for folder in &arguments.runs {
        let loaded = Store::open(folder)?.load()?;
        let judged = loaded.judged(&Judge::new(&loaded.plan));
        let report = loaded.report(&judged);
        let text = match arguments.format {
            Format::Text => render::terminal(&report),
            Format::Markdown => render::markdown(&report),
            Format::Csv => render::samples_csv(report.records),
            Format::Json => render::json(&report),
        };
        std::io::stdout().write_all(text.as_bytes())?;
    }
    Ok(exit::DONE)
}
