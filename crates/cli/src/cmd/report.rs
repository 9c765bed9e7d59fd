//! `fsverdict report`: a run's report, remade from its folder; or that of several, side by side.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::ValueEnum;
use fsverdict_core::judge::{self, Judge, Side};
use fsverdict_core::model::claim::Answered;
use fsverdict_core::model::{Comparison, Plan, Timeline, meant};
use fsverdict_core::render::{self, Figure, Kept, Painted, Report};
use fsverdict_host::tool;

use super::plan;
use crate::exit::{self, Usage};
use crate::say::{self, Look, remark};
use crate::shipped;
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
    /// Answer these claims, not those of the runs' own plans: a plan file's, or a study's by its
    /// name. Runs from before a claim was written answer it, too.
    #[arg(long, value_name = "PLAN")]
    claims: Option<PathBuf>,
    /// What fails: a `claim` that does not hold, or not by its size; `undecided`: one that is open,
    /// void, or can't be measured here. To require that claims be shown, give both:
    /// claim,undecided.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT,...")]
    fail_on: Vec<FailOn>,
    #[command(flatten)]
    output: Output,
}

/// What makes a gate of it.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FailOn {
    Claim,
    Undecided,
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
  fsverdict report runs/kernel-6.1 runs/kernel-6.12 --format html > kernels.html
  fsverdict report runs/change --fail-on claim,undecided
  fsverdict report --claims cloud-disk record/2026-11-23-cloud-disk/run.tar.gz

Exit status: 0 nothing that --fail-on names; 4 a claim does not hold, or is undecided where
--fail-on says so; 1 something could not be done; 2 the command line or the claims are wrong.";

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
    let claims = arguments.claims.as_deref().map(claims_of).transpose()?;
    let load = |path: &PathBuf| Read::of(path, claims.as_ref(), output.is_text());
    let runs: Vec<Read> = arguments.runs.iter().map(load).collect::<Result<_>>()?;
    if let (Some(path), [_, _, ..]) = (&arguments.claims, arguments.runs.as_slice()) {
        let text =
            format!("--claims answers for one run: name one with --claims {}", path.display());
        return Err(Usage(text).into());
    }
    let claimed = || runs.iter().flat_map(|run| &run.judged.claims);
    if !arguments.fail_on.is_empty() && claimed().next().is_none() {
        let text = "--fail-on needs claims, and there are none: write them as [[claim]] in the \
                    run's plan, or name a plan that has some with --claims";
        return Err(Usage(text.into()).into());
    }
    let (text, figures) = match runs.as_slice() {
        [run] => single(output, run)?,
        runs => joined(output, runs),
    };
    output.print(&text, &figures)?;
    Ok(gate(claimed(), &arguments.fail_on))
}

/// The plan with the claims: a study by its name, or a plan file.
fn claims_of(path: &Path) -> Result<Plan> {
    let name = path.to_string_lossy();
    let is_study = !path.is_file() && shipped::STUDIES.iter().any(|(known, _)| *known == name);
    let mut plan = match is_study {
        true => shipped::study(&name)?,
        false if path.exists() || shipped::plan(path).is_some() => plan::read(path)?,
        false => {
            let known = shipped::STUDIES.iter().chain(&shipped::PLANS).map(|(known, _)| *known);
            let meant = meant(&name, known);
            let text = format!("no study, no plan and no file is called {name:?}; {meant}");
            return Err(Usage(text).into());
        }
    };
    plan.name_references();
    plan::recognise(&mut plan);
    match plan.claims.is_empty() {
        true => Err(Usage(format!("{name} claims nothing: write claims as [[claim]]")).into()),
        false => Ok(plan),
    }
}

/// Says which claims shut the gate, if any do, and gives the exit status.
fn gate<'a>(claims: impl Iterator<Item = &'a Answered>, fail_on: &[FailOn]) -> u8 {
    let on = |what: FailOn| fail_on.contains(&what);
    let shut = |it: &&Answered| {
        it.is_refuted() && on(FailOn::Claim) || it.is_unanswered() && on(FailOn::Undecided)
    };
    let mut code = exit::DONE;
    for it in claims.filter(shut) {
        remark!("fails: {}: {}", it.answer.label(), render::one_line(&it.claim.text));
        code = exit::WORSE;
    }
    code
}

/// A run, to be judged by this plan's claims.
pub(super) fn read_with(path: &Path, claims: &Plan) -> Result<Loaded> {
    Ok(Read::of(path, Some(claims), true)?.loaded)
}

/// A run that was read, and judged anew.
struct Read {
    path: PathBuf,
    source: Source,
    loaded: Loaded,
    judged: Judged,
}

impl Read {
    /// The claims of `asked` take the place of its own.
    fn of(path: &Path, asked: Option<&Plan>, is_text: bool) -> Result<Read> {
        let source = Source::open(path)?;
        let mut loaded = source.load()?;
        if let Some(asked) = asked {
            let mut asked = asked.clone();
            asked.take_jobs(&loaded.plan);
            asked.name_metrics();
            loaded.plan.claims.clone_from(&asked.claims);
            loaded.plan.give_up_claims(&loaded.run.left_out);
            let scaled = loaded.plan.scale.filter(|_| asked.scale.is_none());
            let scaled = scaled.and_then(|scale| asked.clone().scaled(scale).ok());
            judge::give_up_other_work(&mut loaded.plan, scaled.as_ref().unwrap_or(&asked));
            loaded.plan.check()?;
        }
        let loaded = if is_text { loaded.on_one_line() } else { loaded };
        let judged = loaded.judged(&Judge::new(&loaded.plan));
        Ok(Read { path: path.into(), source, loaded, judged })
    }
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
        let report = &Report { is_packed: kept.is_packed, ..*report };
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
fn single(output: &Output, run: &Read) -> Result<(Text, Vec<Figure>)> {
    let Read { path, source, loaded, judged } = run;
    let path = path.display().to_string();
    let kept = Kept { path: &path, is_packed: matches!(source, Source::Packed(_)) };
    output.rendered(&loaded.report(judged), kept, || source.timelines(&loaded.records))
}

/// Several runs in one report, and its figure.
fn joined(output: &Output, runs: &[Read]) -> (Text, Vec<Figure>) {
    let sides: Vec<Side> = runs.iter().map(|run| run.loaded.side()).collect();
    let verdicts: Vec<&[Comparison]> =
        runs.iter().map(|run| run.judged.comparisons.as_slice()).collect();
    let joined = judge::joined(&sides, &verdicts);
    let reports: Vec<Report> = runs.iter().map(|run| run.loaded.report(&run.judged)).collect();
    let figures: Vec<Figure> = render::joined_figure(&joined, &reports).into_iter().collect();
    let at = output.figures.as_deref().map(Path::to_string_lossy);
    let shown = at.as_ref().map(|at| (figures.as_slice(), at.as_ref()));
    let text = match output.format {
        Format::Text => render::joined(&joined, &reports),
        Format::Markdown => render::joined_markdown(&joined, &reports, shown),
        Format::Html => render::joined_html(&joined, &reports),
        Format::Csv => {
            let named = joined.names.iter().zip(runs);
            let named: Vec<_> = named.map(|(name, run)| (&**name, &*run.loaded.records)).collect();
            render::joined_csv(&named)
        }
        Format::Json => render::joined_json(&joined, &reports),
    };
    (Text::Plain(text), figures)
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
