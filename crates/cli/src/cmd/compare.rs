//! `fsverdict compare`: a run against an earlier one.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result};
use clap::ValueEnum;
use fsverdict_core::judge::{self, Judge};
use fsverdict_core::model::{Across, Change, Incomparable, Measured, Percent, Plan, Stop, Verdict};
use fsverdict_core::render;
use fsverdict_host::bed::{Consent, Consents};

use super::{arguments, run};
use crate::exit;
use crate::say::{self, remark};
use crate::source::{Loaded, Source};
use crate::store::write_whole;

/// Compare a run with an earlier one.
///
/// Has a contender become slower? The two runs were measured apart, so only ratios to a reference
/// that both hold are compared. With --rerun the baseline's contenders are measured anew,
/// interleaved with the run's.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The earlier run: its folder, or a file of fsverdict pack.
    baseline: PathBuf,
    /// The run, likewise.
    run: PathBuf,
    /// Metrics to compare [default: what the run judges].
    #[arg(long, value_delimiter = ',', value_name = "METRIC,...")]
    metric: Vec<String>,
    /// Changes smaller than this are trivial [default: the run's].
    #[arg(long)]
    margin: Option<Percent>,
    /// What ends with status 4: slower by more than the margin, or slower at all.
    #[arg(long, value_enum, default_value = "slower")]
    fail_on: FailOn,
    /// What to write on standard output.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Measure anew: a run for each contender that has changed, against what it was
    /// (baseline:NAME), by the run's plan.
    #[arg(long)]
    rerun: bool,
    /// As for run, with --rerun on bed `device`.
    #[arg(long, value_name = "PATH[=SIGNATURE,...]", requires = "rerun")]
    erase: Vec<Consent>,
    /// As for run, with --rerun on bed `device`.
    #[arg(long, requires = "rerun")]
    erase_data: bool,
    /// With --rerun: the folder for the new runs [default: runs/TIME-compare].
    #[arg(long, value_name = "DIR", requires = "rerun")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum FailOn {
    Slower,
    Any,
}

/// What an answer can be written as.
#[derive(Clone, Copy, ValueEnum)]
pub enum Format {
    /// For a terminal.
    Text,
    /// For the summary of a CI job.
    Markdown,
    /// For programs.
    Json,
}

const EXAMPLES: &str = "\
Examples:
  fsverdict compare runs/main runs/change
  fsverdict compare runs/main runs/change --format markdown >> $GITHUB_STEP_SUMMARY
  sudo fsverdict compare runs/main runs/change --rerun

Exit status: 0 nothing is slower; 4 something is; 1 something could not be done; 2 the runs can't
be compared; 5 all that was compared is void; 130 interrupted.";

/// Compares the runs and prints how the second has changed.
pub fn run(arguments: &Arguments) -> Result<u8> {
    // What is run again keeps its names.
    let is_text = matches!(arguments.format, Format::Text) && !arguments.rerun;
    let baseline = Source::open(&arguments.baseline)?.load_for(is_text)?;
    let run = Source::open(&arguments.run)?.load_for(is_text)?;
    let margin = arguments.margin.unwrap_or(run.plan.judgement.margin);
    let (across, failed) = match arguments.rerun {
        true => match rerun(arguments, &baseline, &run, margin)? {
            Rerun::Done(across, failed) => (across, failed),
            Rerun::Interrupted => return Ok(exit::INTERRUPTED),
        },
        false => {
            let (before, now) = (baseline.side(), run.side());
            (judge::across(before, now, &arguments.metric, margin)?, false)
        }
    };
    let text = match arguments.format {
        Format::Text => render::across(&across),
        Format::Markdown => render::across_markdown(&across),
        Format::Json => render::across_json(&across),
    };
    say::print(&text)?;
    Ok(match across.changes.iter().any(|change| fails(change, arguments.fail_on)) {
        _ if failed => exit::FAILED,
        true => exit::WORSE,
        false if across.changes.iter().all(|it| it.verdict == Verdict::Void) => exit::VOID,
        false => exit::DONE,
    })
}

fn fails(change: &Change, on: FailOn) -> bool {
    match change.verdict {
        Verdict::Slower => true,
        Verdict::TriviallySlower | Verdict::SlowerSizeOpen => matches!(on, FailOn::Any),
        _ => false,
    }
}

enum Rerun {
    /// The changes, and whether a trial has failed.
    Done(Across, bool),
    Interrupted,
}

/// A run of its own for each contender that has changed, so that each is interleaved with what it
/// was, and none waits for another's verdict.
fn rerun(arguments: &Arguments, baseline: &Loaded, run: &Loaded, margin: Percent) -> Result<Rerun> {
    let changed = run.plan.changed_since(&baseline.plan);
    if changed.is_empty() {
        return Err(Incomparable::NoContender.into());
    }
    if changed.iter().all(|it| run.plan.has_same(&baseline.plan, &it.name)) {
        remark!(
            "all contenders have the settings they had in the baseline: this measures \
             the machine against itself"
        );
    }
    let folder = arguments.output.clone();
    let folder = folder.unwrap_or_else(|| run::dated_folder(SystemTime::now(), "compare"));
    let mut failed = false;
    let mut across = Across {
        baseline: baseline.run.name.clone(),
        run: run.run.name.clone(),
        measured: Measured::Together,
        margin,
        confidence: run.plan.judgement.confidence,
        differences: judge::differences(baseline.side(), run.side()),
        left_out: Vec::new(),
        changes: Vec::new(),
    };
    for contender in &changed {
        let name = &contender.name;
        let plan = run.plan.against_baseline(&baseline.plan, name, changed.len());
        let mut plan = plan.context("a contender that both plans name")?;
        plan.judgement.margin = margin;
        if !arguments.metric.is_empty() {
            plan.workloads.iter_mut().for_each(|it| it.primary.clone_from(&arguments.metric));
        }
        let consents = Consents { named: arguments.erase.clone(), data: arguments.erase_data };
        let (loaded, stop) = anew(&plan, &folder.join(run::slug(name)), &consents)?;
        if stop == Stop::Interrupted {
            return Ok(Rerun::Interrupted);
        }
        failed |= loaded.records.iter().any(|record| !record.is_measured());
        let comparisons = Judge::new(&loaded.plan).comparisons(&loaded.records);
        across.changes.extend(comparisons.iter().map(Change::from));
    }
    // Workload by workload, as in the plan.
    let place = |change: &Change| {
        run.plan.workloads.iter().position(|workload| workload.name == change.workload)
    };
    across.changes.sort_by_key(place);
    Ok(Rerun::Done(across, failed))
}

/// Runs `plan` in `folder`, as `fsverdict run` would, and keeps its report there.
fn anew(plan: &Plan, folder: &Path, erase: &Consents) -> Result<(Loaded, Stop)> {
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let file = folder.join("plan.toml");
    write_whole(&file, &toml::to_string(plan)?)?;
    let arguments = arguments::Arguments::of_plan(&file, folder, erase)?;
    let (store, mut loaded, result) = run::conduct(&arguments)?;
    if !loaded.records.is_empty() {
        run::keep_report(&store, &mut loaded, &result)?;
    }
    Ok((loaded, result?))
}
