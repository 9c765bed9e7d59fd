//! `fsverdict compare`: a run against an earlier one.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Error, Result};
use clap::ValueEnum;
use fsverdict_core::judge::{self, Asked, Judge};
use fsverdict_core::model::claim::Claim;
use fsverdict_core::model::{Across, Change, Contender, Incomparable, Percent, Stop};
use fsverdict_core::render;
use fsverdict_host::bed::{Consent, Consents};

use super::arguments::{self, PlaceName};
use super::gate::{self, FailOn};
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
    /// Metrics to compare [default: what the baseline judges].
    #[arg(long, value_delimiter = ',', value_name = "METRIC,...")]
    metric: Vec<String>,
    /// Changes smaller than this are trivial [default: the baseline's].
    #[arg(long)]
    margin: Option<Percent>,
    /// What shuts the gate: the exit status is then 4, or 1 for `failed`.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "WHAT,...",
        default_value = "slower,failed,lost,terms"
    )]
    fail_on: Vec<FailOn>,
    /// The smallest regression that you want to find. The report says how often these runs would
    /// miss it [default: twice the margin].
    #[arg(long, value_name = "PERCENT")]
    regression: Option<Percent>,
    /// Compare runs of two machines. Their processors may favour one contender.
    #[arg(long)]
    across_machines: bool,
    /// What to write on standard output.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Show every figure, however many there are.
    #[arg(short, long)]
    verbose: bool,
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
    /// With --rerun: the runs' place, if that was uml.
    #[arg(long, value_parser = consent::uml_alone, requires = "rerun")]
    place: Option<PlaceName>,
    /// With --rerun: the folder for the new runs [default: runs/TIME-compare].
    #[arg(long, value_name = "DIR", requires = "rerun")]
    output: Option<PathBuf>,
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

Exit status: 0 nothing that --fail-on names; 4 something that it names; 1 a contender failed, or
something could not be done; 2 the runs can't be compared; 5 all that was compared is void; 130
interrupted.";

/// Compares the runs and prints how the second has changed.
pub fn run(arguments: &Arguments) -> Result<u8> {
    // A run that is repeated keeps its names.
    let is_text = matches!(arguments.format, Format::Text) && !arguments.rerun;
    let baseline = Source::open(&arguments.baseline)?.load_for(is_text)?;
    let run = Source::open(&arguments.run)?.load_for(is_text)?;
    // Anew, a machine is measured against itself.
    if !arguments.rerun && run.run.identity() == baseline.run.identity() {
        let (name, started, seed) = run.run.identity();
        let text = format!("both are one run: {name}, started {started}, seed {seed}");
        return Err(Usage(text).into());
    }
    may_fail_on(arguments, &baseline)?;
    let asked = asked(arguments, &baseline)?;
    let (mut across, broken) = match arguments.rerun {
        true => match rerun(arguments, &baseline, &run, &asked)? {
            Some(done) => done,
            None => return Ok(exit::INTERRUPTED),
        },
        false => (judge::across(baseline.side(), run.side(), &asked)?, None),
    };
    let mut gate = gate::gate(&across, &arguments.fail_on);
    if let Some(error) = &broken {
        gate.status = exit::FAILED;
        gate.fails.push(format!("{error:#}"));
    }
    let status = gate.status;
    across.gate = Some(gate);
    let text = match arguments.format {
        Format::Text => render::across(&across, arguments.verbose),
        Format::Markdown => render::across_markdown(&across, arguments.verbose),
        Format::Json => render::across_json(&across),
    };
    say::print(&text)?;
    warn(&across);
    broken.map_or(Ok(status), Err)
}

/// Refuses a gate that nothing could shut.
fn may_fail_on(arguments: &Arguments, baseline: &Loaded) -> Result<(), Usage> {
    let is_on = |what: FailOn| arguments.fail_on.contains(&what);
    let refused = match arguments.rerun {
        true if is_on(FailOn::Reference) => {
            "--fail-on reference: measured anew, each is its own reference"
        }
        true if is_on(FailOn::Claim) => {
            "--fail-on claim: measured anew, there is no earlier answer; report --fail-on claim \
             asks one run"
        }
        false if is_on(FailOn::Claim) && !baseline.plan.claims.iter().any(Claim::is_asked) => {
            "--fail-on claim needs claims, and the baseline's plan has none that a run can answer: \
             write them there as [[claim]]"
        }
        _ => return Ok(()),
    };
    Err(Usage(refused.into()))
}

/// Says on standard error what shuts the gate, and what one that opens might hide.
fn warn(across: &Across) {
    let fails = across.gate.iter().flat_map(|it| &it.fails);
    fails.for_each(|it| remark!("fails: {}", render::one_line(it)));
    for it in across.references_moved() {
        remark!("warning: {}", render::reference_moved(it));
    }
    across.notes.iter().for_each(|it| remark!("warning: {it}"));
    let blind = across.count(|it| across.is_blind(it));
    if 2 * blind > across.changes.len() {
        let (all, regression) = (across.changes.len(), across.regression);
        remark!(
            "warning: at {blind} of {all} figures a regression of {regression} would probably \
             have been missed: --fail-on possible fails there, more rounds tell more"
        );
    }
}

fn asked(arguments: &Arguments, baseline: &Loaded) -> Result<Asked> {
    let margin = arguments.margin.unwrap_or(baseline.plan.judgement.margin);
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

/// The folder of one of `changed`; several may have the same short name.
fn folder_of(place: usize, changed: &[&Contender]) -> String {
    let short = run::slug(&changed[place].name);
    match changed[..place].iter().filter(|it| run::slug(&it.name) == short).count() {
        0 => short,
        before => format!("{short}-{}", before + 1),
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
    let mut across = judge::before_changes(baseline.side(), run.side(), asked);
    let judged = run.plan.judged_as(&baseline.plan);
    let mut broken = None;
    for (place, contender) in changed.iter().enumerate() {
        let name = &contender.name;
        let plan = judged.against_baseline(&baseline.plan, name, changed.len());
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
            // What was measured before is still reported.
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
