//! What a file system is to be used for: what counts there, how much, and what must be.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{Plan, Scalar, Workload};

/// What a file system may be required to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Feature {
    /// fsync flushes the device's cache.
    Durability,
    /// The state of the whole, or of a tree, can be kept beside the living one.
    Snapshots,
    /// Data that comes back changed is noticed.
    DataChecksums,
    /// The same of the file system's own structures.
    MetadataChecksums,
    /// Data is stored smaller.
    Compression,
    /// It grows while it is mounted.
    OnlineGrowth,
    /// Copies of files share their blocks.
    Reflink,
    /// It spreads its data over several devices.
    SeveralDevices,
}

impl Feature {
    /// All of them.
    pub const ALL: [Feature; 8] = [
        Feature::Durability,
        Feature::Snapshots,
        Feature::DataChecksums,
        Feature::MetadataChecksums,
        Feature::Compression,
        Feature::OnlineGrowth,
        Feature::Reflink,
        Feature::SeveralDevices,
    ];

    /// Its name in a use and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Feature::Durability => "durability",
            Feature::Snapshots => "snapshots",
            Feature::DataChecksums => "data_checksums",
            Feature::MetadataChecksums => "metadata_checksums",
            Feature::Compression => "compression",
            Feature::OnlineGrowth => "online_growth",
            Feature::Reflink => "reflink",
            Feature::SeveralDevices => "several_devices",
        }
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Feature {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = || Feature::ALL.map(Feature::name).join(", ");
        let found = Feature::ALL.into_iter().find(|feature| feature.name() == text);
        found.ok_or_else(|| format!("there are {}", names()))
    }
}

/// One thing that counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Want {
    /// What, in the words of the use.
    pub what: String,
    /// The use's workload that measures it.
    pub workload: String,
    /// The metric of that workload.
    pub metric: String,
    /// How much it counts beside the others.
    pub weight: f64,
    /// Without it there is no advice, whatever else was measured.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub decides: bool,
    /// Options by which other workloads of the same kind measure it too: all of one table. Empty:
    /// any workload of that kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub like: Vec<BTreeMap<String, Scalar>>,
}

/// A use: weighted metrics, and conditions that no speed makes up for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Purpose {
    /// Its name.
    pub name: String,
    /// What it is, as a sentence.
    #[serde(default)]
    pub about: String,
    /// What must be.
    #[serde(default)]
    pub needs: Vec<Feature>,
    /// What counts.
    #[serde(default, rename = "want")]
    pub wants: Vec<Want>,
    /// Workloads that measure it.
    #[serde(default, rename = "workload")]
    pub workloads: Vec<Workload>,
}

/// A use that can't be followed.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum PurposeError {
    #[error("{0}")]
    Syntax(#[from] toml::de::Error),
    #[error("{0}")]
    Invalid(String),
}

impl Purpose {
    /// Reads a use, and checks it.
    pub fn parse(text: &str) -> Result<Purpose, PurposeError> {
        let purpose: Purpose = toml::from_str(text)?;
        purpose.check().map_err(PurposeError::Invalid)?;
        Ok(purpose)
    }

    fn check(&self) -> Result<(), String> {
        if self.wants.is_empty() {
            return Err(format!("use {:?} wants nothing: give it a [[want]]", self.name));
        }
        let mut names = BTreeSet::new();
        for workload in &self.workloads {
            workload.work()?;
            if !names.insert(&workload.name) {
                return Err(format!("two workloads are named {:?}", workload.name));
            }
        }
        for Want { what, workload, weight, .. } in &self.wants {
            if !names.contains(workload) {
                return Err(format!(
                    "want {what:?} names workload {workload:?}, which is not here"
                ));
            }
            if !(weight.is_finite() && *weight > 0.0) {
                return Err(format!("want {what:?} has weight {weight}: give it one above 0"));
            }
        }
        Ok(())
    }

    /// The use that a plan asks about: all that it judges, alike; the first decides. `words` tells
    /// what a workload's metric is called.
    pub fn of_plan(name: &str, plan: &Plan, words: impl Fn(&Workload, &str) -> String) -> Purpose {
        let mut wants = Vec::new();
        for workload in &plan.workloads {
            let of_this_name =
                BTreeMap::from([("name".into(), Scalar::Text(workload.name.clone()))]);
            wants.extend(workload.primary().into_iter().map(|metric| Want {
                what: words(workload, &metric),
                workload: workload.name.clone(),
                metric,
                weight: 1.0,
                decides: false,
                like: vec![of_this_name.clone()],
            }));
        }
        if let Some(first) = wants.first_mut() {
            first.decides = true;
        }
        Purpose {
            name: name.into(),
            about: plan.question.clone(),
            needs: vec![Feature::Durability],
            wants,
            workloads: plan.workloads.clone(),
        }
    }

    /// All that measures what is wanted, in a plan without contenders.
    pub fn plan(&self) -> Plan {
        let mut workloads: Vec<Workload> = Vec::new();
        for workload in self.wants.iter().filter_map(|want| self.workload_of(want)) {
            if workloads.iter().all(|known| known.name != workload.name) {
                workloads.push(workload);
            }
        }
        Plan { question: self.about.clone(), workloads, ..Plan::default() }
    }

    /// The workload that measures `want`, judged by all the metrics that are wanted of it.
    pub fn workload_of(&self, want: &Want) -> Option<Workload> {
        let mut workload = self.workloads.iter().find(|it| it.name == want.workload)?.clone();
        let of_it = self.wants.iter().filter(|other| other.workload == want.workload);
        workload.primary = of_it.map(|other| other.metric.clone()).collect();
        workload.primary.dedup();
        Some(workload)
    }

    /// `plan`, with the workloads that measure `missing` of the wants too.
    pub fn completed(&self, plan: &Plan, missing: &[Missing]) -> Plan {
        let mut plan = plan.clone();
        let is_missing = |want: &&Want| missing.iter().any(|it| it.what == want.what);
        for want in self.wants.iter().filter(is_missing) {
            match plan.workloads.iter_mut().find(|it| it.name == want.workload) {
                Some(known) if known.primary.contains(&want.metric) => {}
                Some(known) => {
                    known.primary = known.primary();
                    known.primary.push(want.metric.clone());
                }
                None => plan.workloads.extend(self.workload_of(want)),
            }
        }
        plan
    }
}

/// By what a condition is known to be fulfilled or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The file system's documentation says so.
    Documented,
    /// The run has seen it.
    Measured,
    /// By nothing.
    Unknown,
}

/// Whether a contender fulfils a condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// The contender.
    pub contender: String,
    /// What must be.
    pub feature: Feature,
    /// It is.
    pub met: bool,
    /// By what that is known.
    pub basis: Basis,
    /// What was seen or read.
    pub evidence: String,
}

/// A want that the run has measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Weighed {
    /// What.
    pub what: String,
    /// Its metric.
    pub metric: String,
    /// The run's workloads that count, alike.
    pub workloads: Vec<String>,
    /// How much it counts.
    pub weight: f64,
    /// Goodness of each contender over the one that leads.
    pub ratios: BTreeMap<String, f64>,
}

/// A want that the run has not measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Missing {
    /// What.
    pub what: String,
    /// The use's workload that would measure it.
    pub workload: String,
    /// Its metric.
    pub metric: String,
    /// How much it counts.
    pub weight: f64,
    /// Without it there is no advice.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub decides: bool,
    /// Why it is missing, as the end of a sentence.
    pub why: String,
}

/// Two contenders, all that was measured taken together by its weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// The contender that leads.
    pub contender: String,
    /// The one it is compared with.
    pub reference: String,
    /// Weighted geometric mean of the ratios of goodness; `None` before the first whole round.
    pub ratio: Option<f64>,
    /// Lower end of its interval; 0 while it is unbounded.
    pub low: f64,
    /// Upper end of its interval; `None` while it is unbounded.
    pub high: Option<f64>,
    /// Rounds in which both were measured in everything.
    pub rounds: u32,
    /// Those that are set aside.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outlying: Vec<u32>,
    /// The verdict.
    pub verdict: super::Verdict,
}

/// What the advice would turn on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lever {
    /// With more than this weight for what was measured.
    WeightAbove(f64),
    /// With less than this weight.
    WeightBelow(f64),
    /// With a ratio above this in what was not measured.
    RatioAbove(f64),
}

/// What would put another contender in front, by the figures without their intervals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// The contender that would lead.
    pub contender: String,
    /// The want that would make it so.
    pub what: String,
    /// And how.
    pub lever: Lever,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// This one.
    Best(String),
    /// Any of these.
    Equivalent(Vec<String>),
    /// These by the weights, and only by these: one is ahead in the one, another in the other.
    Even(Vec<String>),
    /// The best is one of these; which, the data do not say.
    Undecided(Vec<String>),
    /// The only one left that could be advised: nothing had to be compared.
    Only(String),
    /// No contender fulfils the conditions and was measured.
    Nobody,
    /// The run measured nothing that counts for this use, or not what decides.
    Unmeasured,
}

/// Layers are a condition and no choice: who needs them has them on any file system, and a bare
/// disk is always faster than an encrypted one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Below {
    /// Those below all that were compared: `luks`, `none`.
    pub compared: String,
    /// Those below the run's other contenders.
    pub others: Vec<String>,
}

/// Which contender is the best for a use, as far as a run tells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Advice {
    /// Name of the use.
    pub purpose: String,
    /// What it is.
    pub about: String,
    /// Name of the run.
    pub run: String,
    /// What lies below those that were compared, where others of the run are on something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layers: Option<Below>,
    /// The answer.
    pub answer: Answer,
    /// The contenders' conditions.
    pub conditions: Vec<Condition>,
    /// Contenders that could not be compared, and why.
    pub left_out: Vec<(String, String)>,
    /// What was measured of what counts.
    pub weighed: Vec<Weighed>,
    /// What was not.
    pub missing: Vec<Missing>,
    /// Every two contenders, together.
    pub standings: Vec<Standing>,
    /// What the contenders have chosen by what their disk says of itself, and that it is not.
    pub findings: Vec<super::Finding>,
    /// What would change the answer.
    pub turns: Vec<Turn>,
    /// Differences smaller than this are trivial.
    pub margin: super::Percent,
    /// Chance that all intervals hold.
    pub confidence: super::Percent,
}
