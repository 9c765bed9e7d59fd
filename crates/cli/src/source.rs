//! A run read back, from its folder or from the one file that `fsverdict pack` makes of it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use fsverdict_core::campaign::Campaign;
use fsverdict_core::judge::{self, Fold, Judge, Side, Undecided};
use fsverdict_core::model::claim::Answered;
use fsverdict_core::model::{
    Beside, Cause, Comparison, Finding, Plan, Record, Run, SCHEMA, Timeline, from_json,
};
use fsverdict_core::render::Report;
use fsverdict_host::plain;

use crate::{pack, say};

/// The files of a run itself.
const OF_RUN: [&str; 5] = ["plan.toml", "report.html", "report.md", "run.json", "samples.csv"];
/// Those of each trial, but for its tools' own output.
const OF_TRIAL: [&str; 5] =
    ["applications.csv", "per_second.csv", "record.json", "series.csv", "trial.json"];

/// Where a run is read from.
#[derive(Debug)]
pub enum Source {
    /// Its folder.
    Folder(PathBuf),
    /// The file it was packed into.
    Packed(PathBuf),
}

impl Source {
    /// The folder of a run that was begun, or a packed run.
    pub fn open(path: &Path) -> Result<Source> {
        if path.is_file() {
            if !pack::is_gzip(path).with_context(|| path.display().to_string())? {
                bail!("{} is neither the folder of a run nor a packed run", path.display());
            }
            return Ok(Source::Packed(path.into()));
        }
        if !path.join("run.json").exists() {
            bail!("{} is not the folder of a run: it holds no run.json", path.display());
        }
        Ok(Source::Folder(path.canonicalize()?))
    }

    /// The names of a run's files in a folder, whether they are there or not.
    pub fn names(folder: &Path) -> Result<Vec<String>> {
        let mut names: Vec<String> = OF_RUN.map(String::from).into();
        let trials = folder.join("trials");
        let entries = match fs::read_dir(&trials) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(names),
            entries => entries.with_context(|| trials.display().to_string())?,
        };
        for entry in entries {
            let trial = entry?.file_name().display().to_string();
            names.extend(OF_TRIAL.map(|name| format!("trials/{trial}/{name}")));
        }
        Ok(names)
    }

    /// Hands over the name and text of each file that is there and wanted. What was handed over
    /// counts only once this has returned: a packed run may turn out to be damaged at its end.
    pub fn read(
        &self,
        wanted: &dyn Fn(&str) -> bool,
        each: &mut dyn FnMut(&str, String) -> Result<()>,
    ) -> Result<()> {
        let folder = match self {
            Source::Folder(folder) => folder,
            Source::Packed(file) => return pack::read(file, wanted, each),
        };
        for name in Source::names(folder)?.iter().filter(|name| wanted(name)) {
            let path = folder.join(name);
            let of = || path.display().to_string();
            match text(&path) {
                Ok(text) => each(name, text).with_context(of)?,
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) if error.kind() == ErrorKind::NotADirectory => {}
                // A trial of root's under way is shut to others (`place/shut.rs`).
                Err(error) if error.kind() == ErrorKind::PermissionDenied && is_of_trial(name) => {
                    leave_out(&path);
                }
                Err(error) => return Err(error).with_context(of),
            }
        }
        Ok(())
    }

    /// [`Source::load`], for text on a terminal where `is_text`.
    pub fn load_for(&self, is_text: bool) -> Result<Loaded> {
        let loaded = self.load()?;
        Ok(if is_text { loaded.on_one_line() } else { loaded })
    }

    /// Reads the run back: every trial that has a whole record.
    pub fn load(&self) -> Result<Loaded> {
        let (mut run, mut plan, mut records) = (None, None, Vec::new());
        let is_wanted = |name: &str| {
            ["run.json", "plan.toml"].contains(&name) || of_trial(name, "record.json").is_some()
        };
        self.read(&is_wanted, &mut |name, text| {
            match name {
                "run.json" => run = Some(known(&text)?),
                "plan.toml" => plan = Some(Plan::parse(&text)?),
                _ => records.push(from_json(&text)?),
            }
            Ok(())
        })?;
        records.sort_by_key(|record: &Record| record.number);
        let (Source::Folder(path) | Source::Packed(path)) = self;
        let holds_no = |name: &str| format!("{} holds no {name}", path.display());
        Ok(Loaded {
            run: run.with_context(|| holds_no("run.json"))?,
            plan: plan.with_context(|| holds_no("plan.toml"))?,
            records,
        })
    }

    /// The timelines of trials that ran whole; a simulated trial has none.
    pub fn timelines(&self, records: &[Record]) -> Result<Vec<Timeline>> {
        let measured = records.iter().filter(|record| record.is_measured());
        let keys: BTreeMap<u32, _> = measured.map(|record| (record.number, &record.key)).collect();
        let key = |name: &str| {
            let number = of_trial(name, "series.csv")?.parse().ok()?;
            Some((number, *keys.get(&number)?))
        };
        let mut timelines = BTreeMap::new();
        self.read(&|name| key(name).is_some(), &mut |name, text| {
            let (number, key) = key(name).context("only these are wanted")?;
            timelines.insert(number, Timeline::parse(key, &text)?);
            Ok(())
        })?;
        Ok(timelines.into_values().flatten().collect())
    }
}

/// The content of a file of a run's folder. The folder may be a stranger's: the file may be a pipe
/// that nobody writes to, or an endless device.
pub fn text(path: &Path) -> io::Result<String> {
    String::from_utf8(bytes(plain::open(path)?)?).map_err(io::Error::other)
}

/// What is in `input`, which may be as long as a file of a run: 256 MiB.
pub fn bytes(input: impl Read) -> io::Result<Vec<u8>> {
    plain::all_of(input, pack::FILE_BYTES_MAX)
}

/// Says that a trial is, once: by its record.
fn leave_out(path: &Path) {
    if path.ends_with("record.json") {
        let folder = path.parent().unwrap_or(path).display();
        say::make_remark(&format!(
            "{folder} is left out: only root may look into it while its trial runs, or where that \
             was killed"
        ));
    }
}

fn is_of_trial(name: &str) -> bool {
    name.starts_with("trials/")
}

/// The trial whose file `file` this name is.
fn of_trial<'a>(name: &'a str, file: &str) -> Option<&'a str> {
    name.strip_prefix("trials/")?.strip_suffix(file)?.strip_suffix('/')
}

/// A run's facts, if they are of a schema that we know.
fn known(text: &str) -> Result<Run> {
    let run: Run = serde_json::from_str(text)?;
    if run.schema > SCHEMA {
        bail!("the run is of schema {}, this fsverdict reads up to {SCHEMA}", run.schema);
    }
    Ok(run)
}

/// A run, read back or under way.
#[derive(Debug)]
pub struct Loaded {
    /// Its facts.
    pub run: Run,
    /// Its plan.
    pub plan: Plan,
    /// Its records, by number.
    pub records: Vec<Record>,
}

/// What the judge says of a run.
#[derive(Debug)]
pub struct Judged {
    /// The verdicts.
    pub comparisons: Vec<Comparison>,
    /// The claims that are undecided.
    pub undecided: Vec<Undecided>,
    /// What the slower of two pays more of.
    pub causes: Vec<Cause>,
    /// The findings.
    pub findings: Vec<Finding>,
    /// What the plan's study printed, beside what was measured.
    pub published: Vec<Beside>,
    /// What is claimed in the plan, with the answers.
    pub claims: Vec<Answered>,
}

impl Loaded {
    /// Audits and judges it.
    pub fn judged(&self, judge: &Judge) -> Judged {
        let mut fold = Fold::of(judge, &self.records);
        let comparisons = fold.comparisons();
        let undecided = fold.undecided_claims(&comparisons);
        let judged = self.with_facts(comparisons, undecided, fold.findings());
        let causes = judge::causes(judge, &self.records, &judged.comparisons);
        let claims = fold.claims(self.side(), &judged.comparisons, &judged.findings);
        Judged { causes, claims, ..judged }
    }

    /// The same while the run goes on, by its campaign: causes and claims come at its end.
    pub fn judged_meanwhile(&self, campaign: &mut Campaign) -> Judged {
        let comparisons = campaign.comparisons();
        let undecided = campaign.undecided_claims(&comparisons);
        self.with_facts(comparisons, undecided, campaign.findings_meanwhile())
    }

    /// With each name on one line, because a terminal's output is in lines.
    pub fn on_one_line(self) -> Loaded {
        let records = self.records.into_iter().map(Record::on_one_line).collect();
        Loaded { run: self.run.on_one_line(), plan: self.plan.on_one_line(), records }
    }

    /// Adds what follows from the run's facts and its study.
    fn with_facts(
        &self,
        comparisons: Vec<Comparison>,
        undecided: Vec<Undecided>,
        mut findings: Vec<Finding>,
    ) -> Judged {
        findings.extend(judge::of_memory(&self.plan, &self.run));
        let published = judge::beside(&self.plan, &comparisons);
        let (causes, claims) = (Vec::new(), Vec::new());
        Judged { comparisons, undecided, causes, findings, published, claims }
    }

    /// What is set beside other runs.
    pub fn side(&self) -> Side<'_> {
        Side { run: &self.run, plan: &self.plan, records: &self.records }
    }

    /// What a report is made of.
    pub fn report<'a>(&'a self, judged: &'a Judged) -> Report<'a> {
        Report {
            run: &self.run,
            plan: &self.plan,
            records: &self.records,
            comparisons: &judged.comparisons,
            causes: &judged.causes,
            findings: &judged.findings,
            published: &judged.published,
            claims: &judged.claims,
            is_packed: false,
        }
    }
}
