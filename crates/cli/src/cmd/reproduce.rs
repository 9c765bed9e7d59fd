//! `fsverdict reproduce`: a published study on a machine of one's own.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Result;
use clap_complete::engine::ArgValueCandidates;
use fsverdict_core::judge::Judge;
use fsverdict_core::model::{Bytes, Limits, Plan, Precedent, Span, Stop};
use fsverdict_core::render;

use super::arguments::{Arguments as RunArguments, PlaceName};
use super::{plan, report, run};
use crate::exit::{self, Usage};
use crate::say::{self, Look};
use crate::source::Loaded;
use crate::watch::Wish;
use crate::{offers, shipped};

/// Run a published study here, and check its claims.
///
/// Says first how long it will take, then runs it, and ends with every claim: what the study says,
/// what the run in record/ answered, and what this machine answers.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// A study: fsverdict list studies.
    #[arg(value_name = "STUDY", add = ArgValueCandidates::new(offers::studies))]
    name: String,
    /// Run nothing: show how this run of the study answers.
    #[arg(
        long,
        value_name = "RUN",
        conflicts_with_all = [
            "only", "scale", "rounds", "budget", "bed", "like", "limits", "dir", "size", "place",
            "output", "dry_run"
        ],
        add = ArgValueCandidates::new(offers::runs)
    )]
    from: Option<PathBuf>,
    /// Run this work of the study alone; give it again for each further one.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Multiply every size, count and time.
    #[arg(long, value_name = "FACTOR", value_parser = super::arguments::scale)]
    scale: Option<f64>,
    /// Rounds at most [default: the study's plan].
    #[arg(long, value_name = "N")]
    rounds: Option<u32>,
    /// Time at most.
    #[arg(long, value_name = "TIME")]
    budget: Option<Span>,
    /// The target: loop, ram, ram:zram or directory:PATH [default: the study's plan].
    #[arg(long)]
    bed: Option<String>,
    /// The disk whose flags the bed has: nvme, ssd, hdd, virtio, or a path such as /dev/nvme0n1
    /// [default: the disk that holds the images].
    #[arg(long, value_name = "DISK")]
    like: Option<String>,
    /// Limits of the bed: iops=3000,bandwidth=125M, or by direction: read-iops, write-iops,
    /// read-bandwidth, write-bandwidth.
    #[arg(long, value_name = "LIMIT,...")]
    limits: Option<Limits>,
    /// Where image files are made [default: the run's folder].
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Size of each image [default: the study's plan].
    #[arg(long)]
    size: Option<Bytes>,
    /// Who runs the trials: this machine, a virtual one for each, or a simulated one.
    #[arg(long, value_enum)]
    place: Option<PlaceName>,
    /// The run's folder [default: runs/TIME-STUDY].
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Only say what it would do, and how long it would take.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    look: Look,
    #[command(flatten)]
    watching: Wish,
}

const EXAMPLES: &str = "\
Examples:
  fsverdict reproduce backup-tree --scale 1/16 --dry-run
  sudo fsverdict reproduce backup-tree --scale 1/16 --dir /srv
  fsverdict reproduce cloud-disk --from record/2026-11-23-cloud-disk/run.tar.gz";

/// Runs the study, and shows its claims.
pub fn run(arguments: &Arguments) -> Result<u8> {
    let precedent = shipped::precedent(&arguments.name);
    if let Some(from) = &arguments.from {
        return shown(arguments, made(&arguments.name, from)?, precedent.as_ref());
    }
    let typed = arguments.typed()?;
    let plan = plan::plan(&typed)?;
    say::tell(&render::reproduced_soon(&arguments.name, &plan, precedent.as_ref()));
    if arguments.dry_run {
        return Ok(exit::DONE);
    }
    let (store, mut loaded, result) = run::conduct(&typed)?;
    if loaded.records.is_empty() {
        return run::without_records(&store, true, result);
    }
    run::keep_report(&store, &mut loaded, &result)?;
    let folder = store.folder().display().to_string();
    let next = format!(
        "\n  fsverdict report {folder}   # the figures, and why\n  {} run --resume {folder} {}\
         --rounds N   # go on, then: fsverdict reproduce {} --from {folder}\n",
        render::program(&loaded.run, &loaded.plan),
        render::consents(&loaded.plan).iter().map(|it| format!("{it} ")).collect::<String>(),
        arguments.name
    );
    let said = shown(arguments, loaded, precedent.as_ref())
        .and_then(|status| Ok(say::print(&next).map(|()| status)?));
    if result? == Stop::Interrupted {
        // If the terminal was closed, nothing is read there any more.
        return Ok(exit::INTERRUPTED);
    }
    said
}

/// A run of the study of that name, with the claims that the study has now.
fn made(name: &str, from: &Path) -> Result<Loaded> {
    let mut plan = shipped::study(name)?;
    plan.name_references();
    plan::recognise(&mut plan);
    let loaded = report::read_with(from, &plan)?;
    let title = |plan: &Plan| plan.study.as_ref().map(|it| it.title.clone());
    if title(&loaded.plan) != title(&plan) {
        let from = from.display();
        let text = format!(
            "{from} is not a run of {name}: fsverdict report --claims {name} {from} answers its \
             claims by any run"
        );
        return Err(Usage(text).into());
    }
    Ok(loaded)
}

/// Prints the claims; the exit status is that of a run.
fn shown(arguments: &Arguments, loaded: Loaded, precedent: Option<&Precedent>) -> Result<u8> {
    let loaded = loaded.on_one_line();
    let judged = loaded.judged(&Judge::new(&loaded.plan));
    say::print("\n")?;
    say::show(&render::reproduced(&judged.claims, precedent), arguments.look)?;
    Ok(run::status(&loaded.report(&judged)))
}

impl Arguments {
    /// What `fsverdict run --study` would be told.
    fn typed(&self) -> Result<RunArguments> {
        let folder = self.output.clone();
        let folder = folder.unwrap_or_else(|| run::dated_folder(SystemTime::now(), &self.name));
        Ok(RunArguments {
            only: self.only.clone(),
            scale: self.scale,
            rounds: self.rounds,
            budget: self.budget,
            bed: self.bed.clone(),
            like: self.like.clone(),
            limits: self.limits,
            dir: self.dir.clone(),
            size: self.size,
            place: self.place,
            watching: self.watching.clone(),
            ..RunArguments::of_study(&self.name, &folder)?
        })
    }
}
