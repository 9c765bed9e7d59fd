//! `fsverdict compare`: a run against an earlier one.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Error, Result};
use clap::ValueEnum;
use fsverdict_core::judge::{self, Asked, Judge};
use fsverdict_core::model::{
    Across, Change, Contender, Incomparable, Measured, Percent, Stop, Verdict, Words,
};
use fsverdict_core::render;
use fsverdict_host::bed::{Consent, Consents};

use super::arguments::{self, PlaceName};
use super::{consent, run};
use crate::exit::{self, Usage};
use crate::say::{self, remark};
use crate::source::{Loaded, Source};

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
    /// What makes the exit status 1. `slower`: slower by more than the margin. `any`: slower at
    /// all. `failed`: a contender failed or has too few rounds. `undecided`: a verdict is open or
    /// void, perhaps slower by less than the margin, or there is none.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "WHAT,...",
        default_value = "slower,failed"
    )]
    fail_on: Vec<FailOn>,
    /// The smallest regression that you want to find. The report says how often these runs would
    /// miss it [default: twice the margin].
    #[arg(long, value_name = "PERCENT")]
    regression: Option<Percent>,
    /// Compare runs of two machines. Their processors may be kinder to one contender than to
    /// another.
    #[arg(long)]
    across_machines: bool,
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
    /// As for run, with --rerun.
    #[arg(long, value_name = "DIR", requires = "rerun")]
    writable: Vec<PathBuf>,
    /// As for run, with --rerun.
    #[arg(long, value_name = "WORDS", allow_hyphen_values = true, requires = "rerun")]
    vm_qemu: Option<String>,
    /// Where the runs were, with --rerun of some in place uml.
    #[arg(long, value_parser = consent::uml_alone, requires = "rerun")]
    place: Option<PlaceName>,
    /// With --rerun: the folder for the new runs [default: runs/TIME-compare].
    #[arg(long, value_name = "DIR", requires = "rerun")]
    output: Option<PathBuf>,
}

/// What makes a gate of it.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FailOn {
    Slower,
    Any,
    Failed,
    Undecided,
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

Exit status: 0 nothing that --fail-on names; 4 something is slower, or undecided where --fail-on
says so; 1 a contender failed, or something could not be done; 2 the runs can't be compared; 5 all
that was compared is void; 130 interrupted.";

/// Compares the runs and prints how the second has changed.
pub fn run(arguments: &Arguments) -> Result<u8> {
    // What is run again keeps its names.
    let is_text = matches!(arguments.format, Format::Text) && !arguments.rerun;
    let baseline = Source::open(&arguments.baseline)?.load_for(is_text)?;
    let run = Source::open(&arguments.run)?.load_for(is_text)?;
    let asked = asked(arguments, &run)?;
    let (across, broken) = match arguments.rerun {
        true => match rerun(arguments, &baseline, &run, &asked)? {
            Some(done) => done,
            None => return Ok(exit::INTERRUPTED),
        },
        false => (judge::across(baseline.side(), run.side(), &asked)?, None),
    };
    let text = match arguments.format {
        Format::Text => render::across(&across),
        Format::Markdown => render::across_markdown(&across),
        Format::Json => render::across_json(&across),
    };
    say::print(&text)?;
    let status = gate(&across, &arguments.fail_on);
    broken.map_or(Ok(status), Err)
}

fn asked(arguments: &Arguments, run: &Loaded) -> Result<Asked> {
    let margin = arguments.margin.unwrap_or(run.plan.judgement.margin);
    let regression = arguments.regression.unwrap_or(Percent(2.0 * margin.0));
    if regression <= margin {
        let text = format!(
            "a regression of {regression} is a trifle at a margin of {margin}: give a larger \
             --regression, or a smaller --margin"
        );
        return Err(Usage(text).into());
    }
    Ok(Asked {
        metrics: arguments.metric.clone(),
        margin,
        regression,
        across_machines: arguments.across_machines,
    })
}

/// Says why the gate is shut, if it is, and gives the exit status.
fn gate(across: &Across, fail_on: &[FailOn]) -> u8 {
    let on = |what: FailOn| fail_on.contains(&what);
    let shut = |change: &&Change| match change.verdict {
        Verdict::Slower => on(FailOn::Slower) || on(FailOn::Any),
        Verdict::TriviallySlower => on(FailOn::Any),
        Verdict::SlowerSizeOpen => on(FailOn::Any) || on(FailOn::Undecided),
        Verdict::Undecided | Verdict::Void => on(FailOn::Undecided),
        _ => false,
    };
    let worse: Vec<&Change> = across.changes.iter().filter(shut).collect();
    for it in across.references_moved() {
        remark!("warning: {}", render::reference_moved(it));
    }
    for change in &worse {
        let Change { workload, metric, verdict, unit, better, .. } = change;
        let label = Words::of(metric, *unit, *better).label(*verdict);
        remark!("fails: {} is {label} at {workload}'s {metric}", across.whose(change));
    }
    let missing = on(FailOn::Failed) && !across.not_measured.is_empty();
    for it in across.not_measured.iter().filter(|_| missing) {
        remark!("fails: {it}");
    }
    let open: Vec<_> = across.left_out.iter().filter(|_| on(FailOn::Undecided)).collect();
    open.iter().for_each(|it| remark!("fails: {it}"));
    match worse.is_empty() && open.is_empty() {
        _ if missing => exit::FAILED,
        false => exit::WORSE,
        true if across.changes.iter().all(|it| it.verdict == Verdict::Void) => exit::VOID,
        true => exit::DONE,
    }
}

/// The folder of one of `changed`, of which several may have one short name.
fn folder_of(place: usize, changed: &[&Contender]) -> String {
    let short = run::slug(&changed[place].name);
    match changed[..place].iter().filter(|it| run::slug(&it.name) == short).count() {
        0 => short,
        before => format!("{short}-{}", before + 1),
    }
}

/// The comparison of `baseline` and `run`, measured together, of which nothing is known yet.
fn nothing_yet(baseline: &Loaded, run: &Loaded, asked: &Asked) -> Across {
    Across {
        baseline: baseline.run.name.clone(),
        run: run.run.name.clone(),
        measured: Measured::Together,
        margin: asked.margin,
        regression: asked.regression,
        confidence: run.plan.judgement.confidence,
        differences: judge::differences(baseline.side(), run.side()),
        not_measured: Vec::new(),
        left_out: Vec::new(),
        references: Vec::new(),
        changes: Vec::new(),
    }
}

/// A run of its own for each contender that has changed, so that each is interleaved with what it
/// was, and none waits for another's verdict. Gives the changes, and why not all could be measured;
/// `None` where it was interrupted.
fn rerun(
    arguments: &Arguments,
    baseline: &Loaded,
    run: &Loaded,
    asked: &Asked,
) -> Result<Option<(Across, Option<Error>)>> {
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
    let mut across = nothing_yet(baseline, run, asked);
    let mut broken = None;
    for (place, contender) in changed.iter().enumerate() {
        let name = &contender.name;
        let plan = run.plan.against_baseline(&baseline.plan, name, changed.len());
        let mut plan = plan.context("a contender that both plans name")?;
        plan.judgement.margin = asked.margin;
        plan.check().map_err(|why| {
            let many = changed.len();
            Usage(format!("{why}: {many} contenders share the error, compare runs of fewer"))
        })?;
        if !arguments.metric.is_empty() {
            plan.workloads.iter_mut().for_each(|it| it.primary.clone_from(&arguments.metric));
        }
        let consents = Consents { named: arguments.erase.clone(), data: arguments.erase_data };
        let of_one = folder.join(folder_of(place, &changed));
        let typed = |file: &Path| {
            let mut typed = arguments::Arguments::of_plan(file, &of_one, &consents)?;
            typed.writable.clone_from(&arguments.writable);
            typed.vm_qemu.clone_from(&arguments.vm_qemu);
            typed.place = arguments.place;
            Ok(typed)
        };
        let (loaded, stop) = match run::anew(&plan, &of_one, typed) {
            // What was measured before is told all the same.
            Err(error) if !across.changes.is_empty() => {
                broken = Some(error.context(format!("{name} is not compared")));
                break;
            }
            done => done?,
        };
        if stop == Stop::Interrupted {
            return Ok(None);
        }
        let comparisons = Judge::new(&loaded.plan).comparisons(&loaded.records);
        let changes: Vec<Change> = comparisons.iter().map(Change::from).collect();
        across.not_measured.extend(judge::not_measured(loaded.side(), &changes));
        across.changes.extend(changes);
    }
    // Workload by workload, as in the plan.
    let place = |change: &Change| {
        run.plan.workloads.iter().position(|workload| workload.name == change.workload)
    };
    across.changes.sort_by_key(place);
    Ok(Some((across, broken)))
}
