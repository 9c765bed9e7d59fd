//! `fsverdict audit`: what speaks against a run, or against figures that somebody published.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use fsverdict_core::judge::{Judge, table_findings, table_missing};
use fsverdict_core::model::{
    Audited, Bytes, Limit, Machine, Part, Quantity, Severity, Table, Test, Verdict,
};
use fsverdict_core::{published, render};

use crate::say;
use crate::source::{self, Source};
use crate::{exit, pack};

/// Say what speaks against a run, or against published figures.
///
/// Reads a run, from its folder or packed, or a file with figures: a table written down from an
/// article (FORMAT.md, "A table"), the JSON of fio or hyperfine, or a CSV; what the file holds
/// tells which. Nothing is measured: the audits look for figures that contradict each other, and
/// for terms on which they say nothing about a file system.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// A run, a file with figures, or - for standard input.
    #[arg(value_name = "TABLE")]
    path: PathBuf,
    /// What to write on standard output.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// The memory of the machine, instead of what the file states.
    #[arg(long, value_name = "SIZE")]
    memory: Option<Bytes>,
    /// Operations a second that the device is specified for, likewise: all, or reads and writes.
    #[arg(long, value_name = "N[,N]", value_delimiter = ',')]
    device_iops: Vec<u64>,
    /// Bytes a second that it is specified for, likewise.
    #[arg(long, value_name = "SIZE[,SIZE]", value_delimiter = ',')]
    device_bandwidth: Vec<Bytes>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Markdown,
    Json,
}

const EXAMPLES: &str = "\
Examples:
  fsverdict audit studies/cloud-disk.table.toml
  fio --output-format=json ... | fsverdict audit - --memory 16G
  hyperfine --export-json times.json ... && fsverdict audit times.json
  fsverdict audit runs/20260101-120000-cp

Exit status: 0 done, whatever was found; 5 every workload is void; 1 could not be read; 2 usage: the
file is none of these, or has a mistake.";

/// Audits and prints the findings.
pub fn run(arguments: &Arguments) -> Result<u8> {
    let path = &arguments.path;
    let (audited, is_void) = match path.is_dir() || pack::is_gzip(path).unwrap_or(false) {
        true => of_run(path, matches!(arguments.format, Format::Text))?,
        false => of_table(arguments)?,
    };
    let text = match arguments.format {
        Format::Text => render::audited(&audited),
        Format::Markdown => render::audited_markdown(&audited),
        Format::Json => render::audited_json(&audited),
    };
    say::print(&text)?;
    Ok(if is_void { exit::VOID } else { exit::DONE })
}

fn of_run(run: &Path, is_text: bool) -> Result<(Audited, bool)> {
    let loaded = Source::open(run)?.load_for(is_text)?;
    let judged = loaded.judged(&Judge::new(&loaded.plan));
    let trials = loaded.records.len();
    let audited = Audited {
        title: loaded.run.name.clone(),
        kind: format!("a run of {trials} {}", if trials == 1 { "trial" } else { "trials" }),
        findings: judged.findings,
        ..Audited::default()
    };
    let verdicts = &judged.comparisons;
    let is_void = !verdicts.is_empty() && verdicts.iter().all(|it| it.verdict == Verdict::Void);
    Ok((audited, is_void))
}

fn of_table(arguments: &Arguments) -> Result<(Audited, bool)> {
    let text = read(&arguments.path)?;
    let shown = arguments.path.display().to_string();
    let mut table = published::read(&text).with_context(|| shown)?;
    let machine = &mut table.machine;
    machine.memory = arguments.memory.or(machine.memory);
    let bytes: Vec<u64> = arguments.device_bandwidth.iter().map(|it| it.0).collect();
    limit(machine, "--device-iops", Quantity::Iops, &arguments.device_iops)?;
    limit(machine, "--device-bandwidth", Quantity::Bandwidth, &bytes)?;
    let findings = table_findings(&table);
    let is_void = table.tests.iter().all(|test| {
        let concerns = |name: &Option<String>| name.as_ref().is_none_or(|it| *it == test.name);
        findings.iter().any(|it| it.severity == Severity::Void && concerns(&it.workload))
    });
    let named = |test: &Test| Some((test.name.clone(), published::described(&test.job)?));
    let audited = Audited {
        kind: taken_for(&table),
        jobs: table.tests.iter().filter_map(named).collect(),
        columns: columns(&table),
        missing: table_missing(&table),
        title: table.title,
        findings,
    };
    Ok((audited, is_void))
}

/// Sets what the device is specified for in the file's place: one figure for all, or two for reads
/// and writes.
fn limit(machine: &mut Machine, option: &str, quantity: Quantity, given: &[u64]) -> Result<()> {
    let parts: &[Part] = match given {
        [] => return Ok(()),
        [_] => &[Part::All],
        [_, _] => &[Part::Read, Part::Write],
        _ => bail!(exit::Usage(format!("{option} takes one figure, or reads and writes"))),
    };
    machine.limits.retain(|limit| limit.quantity != quantity);
    let given = parts.iter().zip(given);
    machine.limits.extend(given.map(|(part, value)| Limit {
        quantity,
        part: *part,
        value: *value as f64,
    }));
    Ok(())
}

fn taken_for(table: &Table) -> String {
    let count = |count: usize, noun: &str| match count {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    };
    let rows = table.tests.iter().flat_map(|test| &test.rows);
    let figures = rows.clone().flat_map(|row| &row.cells).flatten().count();
    let [tests, rows] = [count(table.tests.len(), "test"), count(rows.count(), "row")];
    let claims = match table.claims.len() {
        0 => String::new(),
        claims => format!(", and {}", count(claims, "claim")),
    };
    format!("{}: {tests}, {rows}, {}{claims}", table.kind, count(figures, "figure"))
}

/// Each heading once, with what it was taken for; those of a tool's own output are known.
fn columns(table: &Table) -> Vec<(String, String)> {
    let mut columns: Vec<(String, String)> = Vec::new();
    let written = table.tests.iter().filter(|test| test.clock_s.is_none());
    for column in written.flat_map(|test| &test.columns) {
        if !columns.iter().any(|(heading, _)| *heading == column.heading) {
            columns.push((column.heading.clone(), published::meaning(column)));
        }
    }
    columns
}

fn read(path: &Path) -> Result<String> {
    let bytes = match path == Path::new("-") {
        true => source::bytes(std::io::stdin()).context("standard input")?,
        false => {
            File::open(path).and_then(source::bytes).with_context(|| path.display().to_string())?
        }
    };
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
