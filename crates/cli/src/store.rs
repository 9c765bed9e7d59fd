//! A run's folder: what is written when, and read back. FORMAT.md describes it.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use fsverdict_core::judge::{self, Judge, Side};
use fsverdict_core::model::{Beside, Comparison, Finding, Plan, Record, Run, SCHEMA, Timeline};
use fsverdict_core::render::{self, Report};

/// A run's folder.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
}

impl Store {
    /// Makes the folder; it must not hold anything yet.
    pub fn create(folder: &Path) -> Result<Store> {
        fs::create_dir_all(folder.join("trials"))
            .with_context(|| format!("making the run's folder {}", folder.display()))?;
        if folder.join("run.json").exists() {
            bail!(
                "{} holds a run already: --resume it, or give another --output",
                folder.display()
            );
        }
        Ok(Store { folder: folder.canonicalize()? })
    }

    /// A folder that is only talked about: of a dry run.
    pub fn imagined(folder: &str) -> Store {
        Store { folder: folder.into() }
    }

    /// The folder of a run that was begun.
    pub fn open(folder: &Path) -> Result<Store> {
        if !folder.join("run.json").exists() {
            bail!("{} is not the folder of a run: it holds no run.json", folder.display());
        }
        Ok(Store { folder: folder.canonicalize()? })
    }

    /// Removes the folder of a run that measured nothing. What is still to be undone is not known
    /// from here.
    pub fn discard(&self) {
        // A folder that stays is only untidy.
        let _ = fs::remove_dir_all(&self.folder);
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder of trial `number`.
    pub fn trial(&self, number: u32) -> PathBuf {
        self.folder.join("trials").join(number.to_string())
    }

    /// Writes the plan and the run's facts.
    pub fn write_head(&self, run: &Run, plan: &Plan) -> Result<()> {
        write_whole(&self.folder.join("plan.toml"), &toml::to_string(plan)?)?;
        self.write_run(run)
    }

    /// Writes the run's facts.
    pub fn write_run(&self, run: &Run) -> Result<()> {
        write_whole(&self.folder.join("run.json"), &(serde_json::to_string_pretty(run)? + "\n"))
    }

    /// Writes a record where the trial's own process has not: of a trial that failed around it.
    pub fn write_record(&self, record: &Record) -> Result<()> {
        let folder = self.trial(record.number);
        fs::create_dir_all(&folder)?;
        write_record(&folder.join("record.json"), record)
    }

    /// Writes `samples.csv`, `report.md` and `report.html`.
    pub fn write_report(&self, report: &Report) -> Result<()> {
        write_whole(&self.folder.join("samples.csv"), &render::samples_csv(report.records))?;
        write_whole(&self.folder.join("report.md"), &render::markdown(report, None))?;
        let timelines = self.timelines(report.records)?;
        write_whole(&self.folder.join("report.html"), &render::html(report, &timelines))
    }

    /// The timelines of trials that ran whole; a simulated trial has none.
    pub fn timelines(&self, records: &[Record]) -> Result<Vec<Timeline>> {
        let mut timelines = Vec::new();
        for record in records.iter().filter(|record| record.is_measured()) {
            let path = self.trial(record.number).join("series.csv");
            let of = || path.display().to_string();
            match fs::read_to_string(&path) {
                Ok(text) => timelines.extend(Timeline::parse(&record.key, &text).with_context(of)?),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error).with_context(of),
            }
        }
        Ok(timelines)
    }

    /// Reads the run back: every trial that has a whole record.
    pub fn load(&self) -> Result<Loaded> {
        let run: Run = read_json(&self.folder.join("run.json"))?;
        if run.schema > SCHEMA {
            bail!("the run is of schema {}, this fsverdict reads up to {SCHEMA}", run.schema);
        }
        let path = self.folder.join("plan.toml");
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let plan = Plan::parse(&text).with_context(|| path.display().to_string())?;
        Ok(Loaded { run, plan, records: self.records()? })
    }

    fn records(&self) -> Result<Vec<Record>> {
        let mut records: Vec<Record> = Vec::new();
        for entry in fs::read_dir(self.folder.join("trials"))? {
            let path = entry?.path().join("record.json");
            if path.exists() {
                records.push(read_json(&path)?);
            }
        }
        records.sort_by_key(|record| record.number);
        Ok(records)
    }
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
    /// The findings.
    pub findings: Vec<Finding>,
    /// What the plan's study printed, beside what was measured.
    pub published: Vec<Beside>,
}

impl Loaded {
    /// Audits and judges it.
    pub fn judged(&self, judge: &Judge) -> Judged {
        let mut findings = judge.findings(&self.records);
        findings.extend(judge::of_memory(&self.plan, &self.run));
        let comparisons = judge.comparisons(&self.records);
        let published = judge::beside(&self.plan, &comparisons);
        Judged { comparisons, findings, published }
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
            findings: &judged.findings,
            published: &judged.published,
        }
    }
}

/// Writes a record so that it is there whole or not at all, even after a power cut. On one line:
/// spread out, its histograms take six times as much.
pub fn write_record(path: &Path, record: &Record) -> Result<()> {
    write_whole(path, &(serde_json::to_string(record)? + "\n"))
}

/// Written beside, synced, renamed.
pub fn write_whole(path: &Path, text: &str) -> Result<()> {
    let beside = path.with_extension("new");
    let write = || {
        let mut file = File::create(&beside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, path)
    };
    write().with_context(|| format!("writing {}", path.display()))
}

fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    serde_json::from_str(&text).with_context(|| path.display().to_string())
}
