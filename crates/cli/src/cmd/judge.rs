//! `fsverdict judge`: verdicts on results that other programs measured.

use std::collections::BTreeMap;
use std::fs::File as Opened;
use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context, Result};
use clap::ValueEnum;
use fsverdict_core::judge::{Judge, table_findings};
use fsverdict_core::model::{
    Audit, Better, Finding, Judgement, Percent, Place, Run, SCHEMA, Table, Verdict,
};
use fsverdict_core::published::{self, Columns, File, Wanted};

use crate::cmd::report::Output;
use crate::cmd::run::typed;
use crate::exit;
use crate::source::{self, Loaded};

/// Judge results of other programs: verdicts with intervals, findings and reports, as for a run.
///
/// Reads a CSV of runs, the JSON of fio, hyperfine, Criterion (sample.json, or the messages of
/// cargo-criterion), Google Benchmark and MMTests, or the composite.xml of the Phoronix Test Suite;
/// what a file holds tells which. Only these files are read. The report begins with how each part
/// of them was understood, and why. Runs that have rounds are paired by round; others are compared
/// by Welch's interval. The error is shared over all that is compared.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The files, each alone or as CONTENDER=FILE. Without names, contenders are told apart by the
    /// rows of a file, else by the files' paths: ext4-1.json, xfs-1.json, ext4-2.json, ...
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// The column of a CSV with the contender; else contender, file_system, filesystem or fs, or
    /// the only one whose names repeat.
    #[arg(long, value_name = "COLUMN")]
    contender: Option<String>,
    /// The column to judge; may be given again [default: all rates, or all times].
    #[arg(long, value_name = "METRIC")]
    metric: Vec<String>,
    /// The column of a CSV with the round; else round, run, repetition, iteration or the like.
    #[arg(long, value_name = "COLUMN")]
    round: Option<String>,
    /// Which direction is better [default: by the file, or by the unit].
    #[arg(long, value_enum, value_name = "DIRECTION")]
    better: Option<Direction>,
    /// The contender that the others are compared with; else the first.
    #[arg(long, value_name = "CONTENDER")]
    reference: Option<String>,
    /// Differences smaller than this are trivial: 5% where none is given.
    #[arg(long, value_name = "PERCENT")]
    margin: Option<Percent>,
    /// Chance that all intervals hold the truth: 95% where none is given.
    #[arg(long, value_name = "PERCENT")]
    confidence: Option<Percent>,
    #[command(flatten)]
    output: Output,
}

#[derive(Clone, Copy, ValueEnum)]
enum Direction {
    Higher,
    Lower,
}

const EXAMPLES: &str = "\
Examples:
  fsverdict judge rounds.csv
  fsverdict judge results/ext4-*.json results/xfs-*.json --metric 'write clat p99 ns'
  hyperfine --export-json times.json ... && fsverdict judge times.json --format html > times.html
  fsverdict judge ext4=a/composite.xml xfs=b/composite.xml

Exit status: 0 done, whatever was found; 5 every workload is void; 1 could not be read; 2 usage: a
file is none of these, has a mistake, or there is nothing to compare.";

/// Judges the files and prints the report.
pub fn run(arguments: &Arguments) -> Result<u8> {
    let files = arguments.files.iter().map(|it| named(it)).collect::<Result<Vec<_>>>()?;
    let each: Vec<File> = files.iter().map(Named::file).collect();
    let measured = published::measured(&each, &wanted(arguments))?;
    let mut read: Vec<(String, String)> =
        files.iter().map(|it| ("file".into(), it.path.clone())).collect();
    read.extend(measured.taken);
    let loaded = Loaded { run: facts(read), plan: measured.plan, records: measured.records };
    let loaded = if arguments.output.is_text() { loaded.on_one_line() } else { loaded };
    let mut judged = loaded.judged(&Judge::new(&loaded.plan));
    judged.findings.extend(measured.findings);
    judged.findings.extend(of_rows(&measured.table));
    arguments.output.write(&loaded.report(&judged))?;
    let verdicts = &judged.comparisons;
    let is_void = !verdicts.is_empty() && verdicts.iter().all(|it| it.verdict == Verdict::Void);
    Ok(if is_void { exit::VOID } else { exit::DONE })
}

fn wanted(arguments: &Arguments) -> Wanted {
    let default = Judgement::default();
    Wanted {
        columns: Columns {
            contender: arguments.contender.clone(),
            round: arguments.round.clone(),
            metrics: arguments.metric.clone(),
        },
        better: arguments.better.map(|direction| match direction {
            Direction::Higher => Better::Higher,
            Direction::Lower => Better::Lower,
        }),
        reference: arguments.reference.clone(),
        margin: arguments.margin.unwrap_or(default.margin),
        confidence: arguments.confidence.unwrap_or(default.confidence),
    }
}

/// A file that was read, and whose it is.
struct Named {
    contender: Option<String>,
    path: String,
    text: String,
}

impl Named {
    fn file(&self) -> File<'_> {
        File { contender: self.contender.as_deref(), path: &self.path, text: &self.text }
    }
}

/// Reads `FILE`, or `CONTENDER=FILE` where no file is called so as a whole.
fn named(argument: &str) -> Result<Named> {
    let split = argument.split_once('=').filter(|_| !Path::new(argument).exists());
    let (contender, path) = match split {
        Some((contender, path)) => (Some(contender.to_string()), path),
        None => (None, argument),
    };
    // A pipe of one's own shell is as good as a file.
    let bytes = Opened::open(path).and_then(source::bytes).with_context(|| path.to_string())?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(Named { contender, path: path.into(), text })
}

/// What the audits of published figures notice in the rows, one of each kind and contender. How
/// often each was measured is the judge's matter.
fn of_rows(table: &Table) -> Vec<Finding> {
    let mut kinds: Vec<(Finding, usize)> = Vec::new();
    for finding in table_findings(table).into_iter().filter(|it| it.audit != Audit::A18) {
        let key = |it: &Finding| (it.audit, it.severity, it.workload.clone(), it.contender.clone());
        match kinds.iter_mut().find(|(known, _)| key(known) == key(&finding)) {
            Some((_, more)) => *more += 1,
            None => kinds.push((finding, 0)),
        }
    }
    let said = |(mut finding, more): (Finding, usize)| {
        if more > 0 {
            finding.evidence += &format!("; and {more} more like this");
        }
        finding
    };
    kinds.into_iter().map(said).collect()
}

/// The facts of what was no run of ours.
fn facts(read: Vec<(String, String)>) -> Run {
    Run {
        schema: SCHEMA,
        program_version: env!("CARGO_PKG_VERSION").into(),
        name: "results of others".into(),
        command: typed(),
        started: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        seed: 0,
        place: Place::Local,
        host: BTreeMap::new(),
        memory_bytes: None,
        tools: BTreeMap::new(),
        left_out: Vec::new(),
        read,
        stop: None,
        elapsed_s: 0.0,
    }
}
