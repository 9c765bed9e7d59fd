//! `fsverdict report`: a run's report, remade from its folder; or that of several, side by side.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::ValueEnum;
use fsverdict_core::judge::{self, Judge, Side};
use fsverdict_core::model::{Comparison, Timeline};
use fsverdict_core::render::{self, Figure, Kept, Painted, Report};
use fsverdict_host::tool;

use crate::exit;
use crate::say::{self, Look, remark};
use crate::source::{Judged, Loaded, Source};
use crate::store::write_whole;

/// Remake a run's report from its folder, or join several.
///
/// Several runs, of other kernels, machines or times, become one report: what is not the same for
/// all on top, then each run's verdicts against its own reference, side by side. Nothing is
/// calculated over runs; `fsverdict compare` does that where two are alike.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The runs: their folders, or files of fsverdict pack.
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    #[command(flatten)]
    output: Output,
}

/// How a report is written.
#[derive(clap::Args)]
pub struct Output {
    /// What to write on standard output.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Write every figure into this folder too, as SVG and as PNG; a Markdown report shows them.
    #[arg(long, value_name = "DIR")]
    figures: Option<PathBuf>,
    #[command(flatten)]
    look: Look,
}

/// What goes to standard output.
enum Text {
    Painted(Vec<Painted>),
    Plain(String),
}

const EXAMPLES: &str = "\
Examples:
  fsverdict report runs/20260101-120000-cp --format csv
  fsverdict report runs/20260101-120000-cp --format html > cp.html
  fsverdict report runs/20260101-120000-cp --figures figures --format markdown > cp.md
  fsverdict report runs/kernel-6.1 runs/kernel-6.12 --format html > kernels.html";

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Markdown,
    Html,
    Csv,
    Json,
}

/// Judges each run anew from its records and prints the report.
pub fn run(arguments: &Arguments) -> Result<u8> {
    let output = &arguments.output;
    let (text, figures) = match arguments.runs.as_slice() {
        [run] => single(output, run)?,
        runs => joined(output, runs)?,
    };
    output.print(&text, &figures)?;
    Ok(exit::DONE)
}

impl Output {
    /// It is for a terminal.
    pub fn is_text(&self) -> bool {
        matches!(self.format, Format::Text)
    }

    /// Writes the report of results that are kept nowhere.
    pub fn write(&self, report: &Report) -> Result<()> {
        let kept = Kept { path: "", is_packed: true };
        let (text, figures) = self.rendered(report, kept, || Ok(Vec::new()))?;
        self.print(&text, &figures)
    }

    /// A run's report, and its figures where they are wanted; `timelines` gives those that it may
    /// show.
    fn rendered(
        &self,
        report: &Report,
        kept: Kept,
        timelines: impl FnOnce() -> Result<Vec<Timeline>>,
    ) -> Result<(Text, Vec<Figure>)> {
        let timelines = match (self.format, &self.figures) {
            (Format::Html, _) | (_, Some(_)) => timelines()?,
            _ => Vec::new(),
        };
        let figures = match &self.figures {
            Some(_) => render::figures(report, &timelines),
            None => Vec::new(),
        };
        let at = self.figures.as_deref().map(Path::to_string_lossy);
        let shown = at.as_ref().map(|at| (figures.as_slice(), at.as_ref()));
        let text = match self.format {
            Format::Text => self.painted(report, kept),
            Format::Markdown => Text::Plain(render::markdown(report, shown)),
            Format::Html => Text::Plain(render::html(report, &timelines)),
            Format::Csv => Text::Plain(render::samples_csv(report.records)),
            Format::Json => Text::Plain(render::json(report)),
        };
        Ok((text, figures))
    }

    fn painted(&self, report: &Report, kept: Kept) -> Text {
        let all = self.look.verbose;
        let answer = render::answered(report, kept, all);
        let details = all.then(|| render::details(report));
        Text::Painted([answer].into_iter().chain(details).collect())
    }

    fn print(&self, text: &Text, figures: &[Figure]) -> Result<()> {
        match text {
            Text::Painted(parts) => {
                for (place, part) in parts.iter().enumerate() {
                    say::print(if place > 0 { "\n" } else { "" })?;
                    say::show(part, self.look)?;
                }
            }
            Text::Plain(text) => say::print(text)?,
        }
        match &self.figures {
            Some(folder) => write_figures(figures, folder),
            None => Ok(()),
        }
    }
}

/// One run's report, and its figures.
fn single(output: &Output, run: &Path) -> Result<(Text, Vec<Figure>)> {
    let source = Source::open(run)?;
    let loaded = source.load_for(output.is_text())?;
    let judged = loaded.judged(&Judge::new(&loaded.plan));
    let path = run.display().to_string();
    let kept = Kept { path: &path, is_packed: matches!(source, Source::Packed(_)) };
    output.rendered(&loaded.report(&judged), kept, || source.timelines(&loaded.records))
}

/// Several runs in one report, and its figure.
fn joined(output: &Output, runs: &[PathBuf]) -> Result<(Text, Vec<Figure>)> {
    let load = |run: &PathBuf| Source::open(run)?.load_for(output.is_text());
    let runs: Vec<Loaded> = runs.iter().map(load).collect::<Result<_>>()?;
    let judged: Vec<Judged> = runs.iter().map(|run| run.judged(&Judge::new(&run.plan))).collect();
    let sides: Vec<Side> = runs.iter().map(Loaded::side).collect();
    let verdicts: Vec<&[Comparison]> = judged.iter().map(|it| it.comparisons.as_slice()).collect();
    let joined = judge::joined(&sides, &verdicts);
    let reports: Vec<Report> = runs.iter().zip(&judged).map(|(run, it)| run.report(it)).collect();
    let figures: Vec<Figure> = render::joined_figure(&joined, &reports).into_iter().collect();
    let at = output.figures.as_deref().map(Path::to_string_lossy);
    let shown = at.as_ref().map(|at| (figures.as_slice(), at.as_ref()));
    let text = match output.format {
        Format::Text => render::joined(&joined, &reports),
        Format::Markdown => render::joined_markdown(&joined, &reports, shown),
        Format::Html => render::joined_html(&joined, &reports),
        Format::Csv => {
            let named = joined.names.iter().zip(&runs);
            let named: Vec<_> = named.map(|(name, run)| (&**name, &*run.records)).collect();
            render::joined_csv(&named)
        }
        Format::Json => render::joined_json(&joined, &reports),
    };
    Ok((Text::Plain(text), figures))
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
    let s = if figures.len() == 1 { "" } else { "s" };
    remark!("{} figure{s} in {}", figures.len(), folder.display());
    Ok(())
}
