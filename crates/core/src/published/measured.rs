//! Others' files as a plan and records: the same input for the judge as a run of our own.

use std::collections::{BTreeMap, BTreeSet};

use super::error::{TableError, wrong};
use super::flat::{Run, Told};
use super::labels::{Label, labels, of_tests};
use super::places::Columns;
use super::{csv, fio, flat, read_as};
use crate::model::{
    Audit, Better, Cache, Column, Contender, Family, Finding, Intervals, Judgement, Key, Percent,
    Plan, Quantity, Record, Sample, Severity, Table, Workload, guess,
};

/// So many runs of one contender are taken.
const RUNS_MAX: usize = 10_000;

/// A file with figures.
#[derive(Clone, Copy, Debug)]
pub struct File<'a> {
    /// Whose it is, where that is said.
    pub contender: Option<&'a str>,
    /// Its path.
    pub path: &'a str,
    /// What it holds.
    pub text: &'a str,
}

/// What somebody wants to have judged, where the files don't tell.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// Columns by their names, and metrics.
    pub columns: Columns,
    /// Which direction is better.
    pub better: Option<Better>,
    /// The contender that the others are compared with.
    pub reference: Option<String>,
    /// Differences smaller than this are trivial.
    pub margin: Percent,
    /// Chance that all intervals hold the truth.
    pub confidence: Percent,
}

/// The result of reading the files.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Which contenders to compare, in what and how.
    pub plan: Plan,
    /// The runs.
    pub records: Vec<Record>,
    /// What was taken for what, and why.
    pub taken: Vec<(String, String)>,
    /// What speaks against such figures before they are looked at.
    pub findings: Vec<Finding>,
    /// All rows in one table, for the audits of published figures.
    pub table: Table,
}

/// Makes of `files` what the judge takes.
///
/// # Errors
/// When a file can't be understood, or nothing in them can be compared.
pub fn measured(files: &[File], wanted: &Wanted) -> Result<Measured, TableError> {
    let tables = tables(files, &wanted.columns)?;
    let (told, all) = flat::runs(&tables);
    let (runs, left_out) = compared(all)?;
    flat::check_jobs(&runs)?;
    let contenders = in_order(runs.iter().map(|run| run.contender.as_str()));
    if contenders.contains(&"") {
        return Err(wrong(
            "some runs name no contender: fill in its column, or leave those rows out",
        ));
    }
    let unpaired = without_rounds(&runs);
    let is_paired = unpaired.is_none();
    let mut judged: BTreeMap<&str, Vec<Column>> = BTreeMap::new();
    let tests = in_order(runs.iter().map(|run| run.test.as_str()));
    for test in &tests {
        judged.insert(test, metrics(test, &runs, wanted)?);
    }
    let mut taken: Vec<(String, String)> = Vec::new();
    taken.extend(tables.iter().flat_map(|(_, table)| table.taken.clone()));
    taken.extend(of_contenders(told, files, &tables));
    taken.sort();
    taken.extend(of_rounds(unpaired, &tables));
    taken.extend(judged.values().flatten().map(|column| of_metric(column, wanted)));
    taken.extend(left_out);
    taken.extend(without_ratio(&runs, &judged));
    taken.extend(without_figure(&runs, &judged));
    let mut known = BTreeSet::new();
    taken.retain(|it| known.insert(it.clone()));
    let records = records(&runs, &judged, is_paired)?;
    let plan = plan(&contenders, &tests, &judged, (wanted, is_paired, &records))?;
    let findings = findings(&tables, is_paired);
    Ok(Measured { plan, records, taken, findings, table: flat::together(told, tables) })
}

/// What was taken for what, or left out, and why.
type Said = Vec<(String, String)>;

/// The runs of tests that two contenders or more have, and the tests that are left out.
fn compared(mut runs: Vec<Run>) -> Result<(Vec<Run>, Said), TableError> {
    let mut whose: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for run in &runs {
        whose.entry(run.test.clone()).or_default().insert(run.contender.clone());
    }
    if whose.values().all(|contenders| contenders.len() < 2) {
        let contenders = in_order(runs.iter().map(|run| run.contender.as_str()));
        return Err(alone(&contenders));
    }
    runs.retain(|run| whose[&run.test].len() > 1);
    whose.retain(|_, contenders| contenders.len() < 2);
    let only = |(test, contenders): (String, BTreeSet<String>)| {
        let name = contenders.first().map_or("nobody", String::as_str);
        ("left out".to_string(), format!("{test}: only {name} has runs of it"))
    };
    Ok((runs, whose.into_iter().map(only).collect()))
}

/// Each file read, with its label.
fn tables(files: &[File], columns: &Columns) -> Result<Vec<(Label, Table)>, TableError> {
    let paths: Vec<&str> = files.iter().map(|file| file.path).collect();
    let mut tables = Vec::new();
    for file in files {
        let said = |what: String| wrong(format!("{}: {what}", file.path));
        let table = read_as(file.text, columns).map_err(|error| said(error.to_string()))?;
        if table.kind == csv::OF_HYPERFINE {
            return Err(said("it has no single runs: give hyperfine's --export-json".into()));
        }
        if table.is_written {
            return Err(said(
                "this is a table of means: fsverdict audit holds its claims against mean, spread \
                 and number of runs"
                    .into(),
            ));
        }
        tables.push(table);
    }
    let of_fio = tables.iter().all(fio::is_of);
    let by_path = of_tests(&paths).filter(|_| of_fio).unwrap_or_else(|| labels(&paths));
    let whose = |(file, by_path): (&File, Label)| match file.contender {
        Some(name) => Label { contender: name.into(), ..Label::default() },
        None => by_path,
    };
    Ok(files.iter().zip(by_path).map(whose).zip(tables).collect())
}

/// Runs whose judged figure has no logarithm, and so no ratio.
fn without_ratio(runs: &[Run], judged: &BTreeMap<&str, Vec<Column>>) -> Vec<(String, String)> {
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for run in runs {
        let is_judged =
            |it: &Column| judged[&*run.test].iter().any(|own| own.heading == it.heading);
        if run.figures.iter().any(|(column, value)| is_judged(column) && *value <= 0.0) {
            *counts.entry((&run.test, &run.contender)).or_default() += 1;
        }
    }
    let line = |((test, contender), count): ((&str, &str), usize)| {
        let s = if count == 1 { " of" } else { "s of" };
        let are = if count == 1 { "is" } else { "are" };
        ("left out".into(), format!("{test}: {count} run{s} {contender} {are} not above zero"))
    };
    counts.into_iter().map(line).collect()
}

/// Runs that have none of what is judged: an empty cell, or a text that is no figure.
fn without_figure(runs: &[Run], judged: &BTreeMap<&str, Vec<Column>>) -> Said {
    let mut counts: BTreeMap<[&str; 3], usize> = BTreeMap::new();
    for run in runs {
        for column in &judged[&*run.test] {
            if run.figures.iter().all(|(own, _)| own.heading != column.heading) {
                *counts.entry([&run.test, &run.contender, &column.heading]).or_default() += 1;
            }
        }
    }
    let line = |([test, contender, heading], count): ([&str; 3], usize)| {
        let runs = if count == 1 { "run" } else { "runs" };
        let what = format!("{test}: {count} {runs} of {contender} without a figure of {heading}");
        ("left out".into(), what)
    };
    counts.into_iter().map(line).collect()
}

fn alone(contenders: &[&str]) -> TableError {
    let what = match contenders {
        [] => "there are no runs".to_string(),
        [""] => "no contenders are told apart".to_string(),
        [only] => format!("all runs are of one contender, {only}"),
        [..] => format!("no test has runs of two of the contenders {}", contenders.join(", ")),
    };
    wrong(format!(
        "nothing to compare: {what}; give the file of each, as CONTENDER=FILE where its path does \
         not say whose it is, or name the column of a CSV: --contender COLUMN"
    ))
}

fn in_order<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut known: Vec<&str> = Vec::new();
    for name in names {
        if !known.contains(&name) {
            known.push(name);
        }
    }
    known
}

/// Why runs can't be paired by their rounds; `None` where every run has its round, and no two of a
/// contender have the same.
fn without_rounds(runs: &[Run]) -> Option<String> {
    if runs.iter().all(|run| run.round.is_none()) {
        return Some("none".into());
    }
    let mut seen = BTreeSet::new();
    runs.iter().find_map(|run| match run.round {
        None => Some("not used, some runs have none".into()),
        Some(round) => (!seen.insert((&run.test, &run.contender, round)))
            .then(|| format!("not used, {} has two runs of round {round}", run.contender)),
    })
}

/// What may have been meant by `name`, or what there is: a run of ours has hundreds of figures.
fn there(columns: &[&Column], name: &str) -> String {
    const SHOWN: usize = 12;
    let names: Vec<&str> = columns.iter().map(|it| it.heading.as_str()).collect();
    guess(name, names.iter().copied()).unwrap_or_else(|| match names.len() {
        0..=SHOWN => format!("there are {}", names.join(", ")),
        all => format!("there are {} and {} more", names[..SHOWN].join(", "), all - SHOWN),
    })
}

/// The columns of a test that are judged.
fn metrics(test: &str, runs: &[Run], wanted: &Wanted) -> Result<Vec<Column>, TableError> {
    let mut columns: Vec<&Column> = Vec::new();
    for (column, _) in runs.iter().filter(|run| run.test == test).flat_map(|run| &run.figures) {
        if !columns.iter().any(|it| it.heading == column.heading) {
            columns.push(column);
        }
    }
    let asked = &wanted.columns.metrics;
    let chosen: Vec<&Column> = match asked.is_empty() {
        false => columns.iter().filter(|it| asked.contains(&it.heading)).copied().collect(),
        true => by_themselves(&columns),
    };
    let unnamed = asked.iter().find(|name| chosen.iter().all(|it| it.heading != **name));
    if let Some(name) = unnamed {
        return Err(wrong(format!("{test} has no metric {name:?}; {}", there(&columns, name))));
    }
    let no_direction = |it: &&Column| wanted.better.or(it.better()).is_none();
    match (chosen.first(), chosen.iter().find(|it| no_direction(it))) {
        (None, _) => Err(wrong(format!(
            "{test}: by its name no figure is a rate or a time of the whole work; choose one by \
             --metric, and add --better where its unit does not tell; {}",
            there(&columns, "")
        ))),
        (_, Some(column)) => Err(wrong(format!(
            "whether more of {:?} is better does not show: write --better higher or lower",
            column.heading
        ))),
        _ => Ok(chosen
            .into_iter()
            .map(|it| Column { better: wanted.better.or(it.better()), ..it.clone() })
            .collect()),
    }
}

/// The figures of the first kind there is: what follows from them would only share their error.
fn by_themselves<'a>(columns: &[&'a Column]) -> Vec<&'a Column> {
    const KINDS: [Quantity; 5] =
        [Quantity::Iops, Quantity::Rate, Quantity::Bandwidth, Quantity::Time, Quantity::Latency];
    let whole = |it: &&&Column| {
        !it.is_processor() && matches!(it.statistic, None | Some(crate::model::Statistic::Mean))
    };
    let of_kind = |kind: &Quantity| -> Vec<&Column> {
        columns.iter().filter(whole).filter(|it| it.quantity == *kind).copied().collect()
    };
    let known = KINDS.iter().map(of_kind).find(|found| !found.is_empty());
    // A column whose direction the file, or the caller, knows.
    known.unwrap_or_else(|| match columns {
        [only] => vec![*only],
        _ => columns.iter().filter(|it| it.better.is_some()).copied().collect(),
    })
}

fn of_contenders(
    told: Told,
    files: &[File],
    tables: &[(Label, Table)],
) -> Option<(String, String)> {
    let why = match told {
        Told::Rows => return None,
        Told::Files if files.iter().all(|it| it.contender.is_some()) => "as given with each file",
        Told::Files if tables.iter().any(|(label, _)| label.test.is_some()) => {
            "the files' folders; their names, which are the same in all, are the tests'"
        }
        Told::Files => "what differs between the files' paths",
        Told::Tests => "the name of each test",
    };
    Some(("contender".into(), why.into()))
}

fn of_rounds(unpaired: Option<String>, tables: &[(Label, Table)]) -> Option<(String, String)> {
    let why = match (unpaired, by_path(tables)) {
        (Some(why), _) => format!("{why}: runs are compared unpaired (Welch)"),
        (None, true) => "the number in each file's path".into(),
        (None, false) => return None,
    };
    Some(("round".into(), why))
}

fn of_metric(column: &Column, wanted: &Wanted) -> (String, String) {
    let direction = match column.better {
        Some(Better::Higher) => "more is better",
        _ => "less is better",
    };
    let own = Column { better: None, ..column.clone() }.better();
    let why = match () {
        () if wanted.better.is_some() => "as asked",
        () if own == column.better => match own {
            Some(Better::Higher) => "a rate by its unit",
            _ => "a time by its unit",
        },
        () => "as the file says",
    };
    (format!("judged: {}", column.heading), format!("{direction}, {why}"))
}

/// A record for each run. Runs that are in no rounds are counted as they come.
fn records(
    runs: &[Run],
    judged: &BTreeMap<&str, Vec<Column>>,
    is_paired: bool,
) -> Result<Vec<Record>, TableError> {
    let mut counts: BTreeMap<(&str, &str), u32> = BTreeMap::new();
    let mut records = Vec::new();
    for (number, run) in (1..).zip(runs) {
        let count = counts.entry((&run.test, &run.contender)).or_default();
        *count += 1;
        if *count as usize > RUNS_MAX {
            let name = &run.contender;
            return Err(wrong(format!("{name} has more than {RUNS_MAX} runs of {}", run.test)));
        }
        let round = run.round.filter(|_| is_paired).unwrap_or(*count);
        let (workload, contender) = (run.test.clone(), run.contender.clone());
        let mut record = Record::new(number, Key { round, workload, contender }, 0, 0);
        let (figures, judged) = (run.figures.iter(), &judged[run.test.as_str()]);
        record.samples =
            figures.filter_map(|(column, value)| sample(column, *value, judged)).collect();
        records.push(record);
    }
    Ok(records)
}

/// The figure, where it is known which direction is better.
fn sample(column: &Column, value: f64, judged: &[Column]) -> Option<Sample> {
    let its = judged.iter().find(|it| it.heading == column.heading);
    let better = its.unwrap_or(column).better()?;
    Some(Sample { metric: column.heading.clone(), value, unit: column.unit(), better })
}

/// What is compared: every contender with the reference, with one error for all of it.
fn plan(
    contenders: &[&str],
    tests: &[&str],
    judged: &BTreeMap<&str, Vec<Column>>,
    (wanted, is_paired, records): (&Wanted, bool, &[Record]),
) -> Result<Plan, TableError> {
    if let Some(name) = wanted.reference.as_deref().filter(|it| !contenders.contains(it)) {
        let names = contenders.join(", ");
        return Err(wrong(format!("no contender is {name:?}: there are {names}")));
    }
    let workload = |test: &&str| Workload {
        name: test.to_string(),
        cache: Cache::Warm,
        primary: judged[test].iter().map(|column| column.heading.clone()).collect(),
        ..Workload::default()
    };
    let rounds: BTreeSet<u32> = records.iter().map(|record| record.key.round).collect();
    let judgement = Judgement {
        margin: wanted.margin,
        confidence: wanted.confidence,
        rounds: u32::try_from(rounds.len()).ok(),
        reference: wanted.reference.clone(),
        family: Family::Run,
        interval: if is_paired { Intervals::Paired } else { Intervals::Unpaired },
        ..Judgement::default()
    };
    let contender = |name: &&str| Contender { name: name.to_string(), ..Contender::default() };
    Ok(Plan {
        contenders: contenders.iter().map(contender).collect(),
        workloads: tests.iter().map(workload).collect(),
        judgement,
        ..Plan::default()
    })
}

/// The files' paths number all runs.
fn by_path(tables: &[(Label, Table)]) -> bool {
    tables.iter().all(|(label, _)| label.round.is_some())
}

/// A14 if there are no rounds, or none known to be interleaved, and A18 if there are no runs.
fn findings(tables: &[(Label, Table)], is_paired: bool) -> Vec<Finding> {
    use Severity::{Note, Warning};
    let finding = |audit, severity, evidence: &str, advice: &str| Finding {
        audit,
        severity,
        workload: None,
        contender: None,
        evidence: evidence.into(),
        advice: advice.into(),
    };
    let mut findings = Vec::new();
    if !is_paired {
        findings.push(finding(
            Audit::A14,
            Warning,
            "the runs were not made in rounds: what changed from one contender's runs to the \
             other's looks like a difference between them",
            "measure in interleaved rounds, and give each run its round",
        ));
    } else if by_path(tables) {
        findings.push(finding(
            Audit::A14,
            Note,
            "the runs are taken for interleaved, because the files' paths number them: if all of \
             one contender's were made before another's, what changed meanwhile looks like a \
             difference",
            "nothing where every round was done before the next one; otherwise CONTENDER=FILE, \
             which pairs no runs",
        ));
    }
    if tables.iter().any(|(_, table)| table.one_process) {
        findings.push(finding(
            Audit::A18,
            Warning,
            "the samples of a contender are of one process, and taken for runs: what a process \
             draws once (where its files and its memory lie) does not scatter among them",
            "start the program anew for each run, four times or more",
        ));
    }
    findings
}
