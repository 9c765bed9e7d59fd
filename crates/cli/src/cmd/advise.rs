//! `fsverdict advise`: the best contender of a run for a use, with its evidence.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter};
use fsverdict_core::model::{
    Answer, Basis, Condition, Contender, Feature, Layer, Mounted, Percent, Plan, Purpose, Record,
};
use fsverdict_core::{judge, render};
use fsverdict_host::file_system;

use super::arguments::Stack;
use super::compare::Format;
use super::plan::text_of;
use crate::exit::{self, Usage};
use crate::offers;
use crate::say;
use crate::source::{Loaded, Source};
use crate::store::write_whole;
use crate::uses;

/// Which contender of a run is the best for a use?
///
/// A use is a set of metrics with weights, and conditions that no speed makes up for. Only what
/// the run has measured counts; what it has not is listed, and --plan writes a plan that
/// measures it too.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The run: its folder, or a file of fsverdict pack.
    #[arg(add = ArgValueCompleter::new(offers::runs_and_files))]
    run: PathBuf,
    /// The use: fsverdict list uses.
    #[arg(
        long = "for",
        value_name = "USE",
        required_unless_present = "purpose",
        add = ArgValueCandidates::new(offers::uses)
    )]
    name: Option<String>,
    /// A use of your own in TOML.
    #[arg(long = "use", value_name = "FILE", conflicts_with = "name")]
    purpose: Option<PathBuf>,
    /// Further conditions: durability, snapshots, data_checksums, metadata_checksums, compression,
    /// online_growth, reflink, several_devices.
    #[arg(long, value_delimiter = ',', value_name = "FEATURE,...")]
    need: Vec<Feature>,
    /// Choose among the contenders on these layers [default: the bare disk, or the first there is].
    #[arg(long, value_name = "LAYER+...", value_parser = Layer::parse_stack)]
    layers: Option<Stack>,
    /// Differences smaller than this are trivial [default: the run's].
    #[arg(long)]
    margin: Option<Percent>,
    /// What to write on standard output.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Write the run's plan, with the workloads that it lacks for this use.
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  fsverdict advise runs/20260101-120000-mail --for mail
  fsverdict advise RUN --for database --need snapshots
  fsverdict advise RUN --for web --plan web.toml

Exit status: 0 done, whatever the answer; 1 something could not be done; 2 usage.";

/// Prints the advice; a use that is wrong is an error.
pub fn run(arguments: &Arguments) -> Result<u8> {
    let purpose = purpose(arguments)?;
    let loaded = Source::open(&arguments.run)?.load()?;
    let documented = documented(&loaded.plan, &loaded.records, &purpose);
    let margin = arguments.margin.unwrap_or(loaded.plan.judgement.margin);
    let Loaded { run: of, plan, records, .. } = &loaded;
    let layers = stack(plan, arguments.layers.as_ref())?;
    let advice = judge::advise(&of.name, plan, records, &purpose, documented, margin, &layers);
    let written = arguments.plan.as_ref().map(|it| it.display().to_string());
    if let Some(file) = &arguments.plan {
        write_plan(file, &purpose.completed(plan, &advice.missing))?;
    }
    let [run, file] = [Some(&arguments.run), arguments.purpose.as_ref()]
        .map(|path| path.map(|it| it.display().to_string()).unwrap_or_default());
    let asked = match &arguments.purpose {
        Some(_) => ["--use", &file],
        None => ["--for", arguments.name.as_deref().unwrap_or_default()],
    };
    let mut words = vec!["fsverdict", "advise", &run, asked[0], asked[1]];
    if arguments.layers.is_some() {
        words.extend(["--layers", &layers]);
    }
    let program = render::program(of, plan);
    let typed = render::Typed { words: &words, program, written: written.as_deref() };
    let text = match arguments.format {
        Format::Text => render::advice(&advice, &typed),
        Format::Markdown => render::advice_markdown(&advice, &typed),
        Format::Json => render::advice_json(&advice),
    };
    say::print(&text)?;
    Ok(exit::DONE)
}

/// Writes the plan to a file that is not there yet.
fn write_plan(file: &Path, plan: &Plan) -> Result<()> {
    let is_there = file.symlink_metadata().is_ok();
    ensure!(!is_there, "{} is there already: name another by --plan", file.display());
    plan.check()?;
    write_whole(file, &toml::to_string(plan)?)
}

/// The contenders' layers that the advice chooses among: those asked for, or the first.
pub(super) fn stack(plan: &Plan, asked: Option<&Stack>) -> Result<String> {
    let mut stacks = plan.stacks();
    let Some(asked) = asked else { return Ok(stacks.swap_remove(0)) };
    let name = Contender { layers: asked.clone(), ..Contender::default() }.stack();
    if stacks.contains(&name) {
        return Ok(name);
    }
    let there = stacks.join(" or --layers ");
    Err(Usage(format!("no contender is on layers {name}: write --layers {there}")).into())
}

fn purpose(arguments: &Arguments) -> Result<Purpose> {
    let mut purpose = match (&arguments.name, &arguments.purpose) {
        (_, Some(path)) => {
            let file = path.display().to_string();
            let text = text_of(path).with_context(|| file.clone())?;
            Purpose::parse(&text).with_context(|| file)?
        }
        (name, None) => uses::purpose(name.as_deref().unwrap_or_default())
            .map_err(|error| Usage(format!("{error}; give your own with --use FILE")))?,
    };
    purpose.needs.extend(&arguments.need);
    purpose.needs.sort();
    purpose.needs.dedup();
    Ok(purpose)
}

/// Whether more rounds could only make the figures finer: nothing that counts is missing, nobody is
/// left out, and one is the best, or all are alike. Its intervals hold whenever one looks, as the
/// rounds of such a run have no declared end (METHODOLOGY, "When to stop").
pub(super) fn is_decided(loaded: &Loaded, purpose: &Purpose) -> bool {
    let Loaded { run, plan, records, .. } = loaded;
    let (known, margin) = (documented(plan, records, purpose), plan.judgement.margin);
    let Some(layers) = plan.stacks().into_iter().next() else { return false };
    let advice = judge::advise(&run.name, plan, records, purpose, known, margin, &layers);
    let is_whole = advice.missing.is_empty() && advice.left_out.is_empty();
    is_whole && matches!(advice.answer, Answer::Best(_) | Answer::Equivalent(_))
}

/// What the documentation says of every contender and every need but durability, which the judge
/// sees to.
pub(super) fn documented(plan: &Plan, records: &[Record], purpose: &Purpose) -> Vec<Condition> {
    let needs = purpose.needs.iter().filter(|feature| **feature != Feature::Durability);
    let all = needs.flat_map(|feature| plan.contenders.iter().map(move |it| (it, *feature)));
    all.map(|(contender, feature)| {
        let mounted = mounted(contender, records);
        let kernels = mounted.map(|it| it.file_system.as_str());
        let version = mounted.and_then(|it| it.version.as_deref());
        // The plan's word, or on bed `directory` the kernel's.
        let name = match contender.file_system.as_str() {
            "" => kernels.unwrap_or_default(),
            typed => typed,
        };
        let found = match kernels {
            Some(kernels) => file_system::mounted_as(name, kernels),
            None => file_system::find(name),
        };
        let set = contender.module.iter().map(|(name, value)| format!("{name}={value}"));
        let made = contender.mkfs.iter().chain(&contender.mount).chain(&contender.parameters);
        let options: Vec<String> = made.cloned().chain(set).collect();
        let (met, basis, evidence) = match found {
            Some(it) => {
                let (met, evidence) = it.promises_of(version).keeps(feature, &options);
                let name = [Some(name), version].into_iter().flatten().collect::<Vec<_>>();
                (met, Basis::Documented, format!("{}: {evidence}", name.join(" ")))
            }
            None => {
                let unknown = format!("nothing is known of the file system {name:?}");
                (false, Basis::Unknown, unknown)
            }
        };
        Condition { contender: contender.name.clone(), feature, met, basis, evidence }
    })
    .collect()
}

/// How it was mounted.
fn mounted<'a>(contender: &Contender, records: &'a [Record]) -> Option<&'a Mounted> {
    let mut its = records.iter().filter(|record| record.key.contender == contender.name);
    its.find_map(|record| record.mounted.as_ref())
}
