//! The document that goes into `fsverdict trial`.

use serde::{Deserialize, Serialize};

use super::{BedKind, Contender, Counted, ExtraProbe, Limits, Probed, Timeouts, Workload};

/// Which trial of a run: its place in the rounds.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Key {
    /// The round, from 1.
    pub round: u32,
    /// The workload's name.
    pub workload: String,
    /// The contender's name.
    pub contender: String,
}

/// A block device under test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// Its node: `/dev/loop3`.
    pub path: String,
    /// `[major, minor]`, as `/proc/diskstats` counts it.
    pub number: [u32; 2],
    /// Its size.
    pub size_bytes: u64,
}

/// What a trial needs to know of the bed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialBed {
    /// What kind of bed.
    pub kind: BedKind,
    /// The devices to make the file system on; on bed `directory` those it lies on, if known.
    pub devices: Vec<Device>,
    /// What its devices are held down to while the work is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// What limits count, on a bed that may have some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits_count: Option<Counted>,
    /// What was found out of its disk before the first trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probed: Option<Probed>,
    /// The living run's own name: by it the trial's process finds what the run allows.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub lab: String,
    /// A disk that the work writes its marks to, if a log of writes has these, too; empty: none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub marks: String,
}

/// One trial, complete: `fsverdict trial` needs nothing else to run it but a run that lives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// [`super::SCHEMA`].
    pub schema: u32,
    /// Its number within the run, from 1: its folder's name.
    pub number: u32,
    /// Where it belongs.
    #[serde(flatten)]
    pub key: Key,
    /// Its place among the trials of its round, from 1.
    pub position: u32,
    /// Seed of the work: the same for every contender of a round, another in the next. Under 2^53,
    /// so that every JSON reader keeps it exact.
    pub seed: u64,
    /// The work, whole.
    #[serde(rename = "work")]
    pub workload: Workload,
    /// The contender, whole.
    #[serde(rename = "settings")]
    pub contender: Contender,
    /// What it runs on.
    pub bed: TrialBed,
    /// Its work takes turns with that of the other trials of its round: standard input says when it
    /// goes on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_turns: bool,
    /// What is read during the timed parts besides what always is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<ExtraProbe>,
    /// Folders outside the file system under test that the work may write to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writable: Vec<String>,
    /// How long it and its steps may take.
    #[serde(default, rename = "timeout", skip_serializing_if = "Timeouts::is_empty")]
    pub timeouts: Timeouts,
    /// The folder where the file system is mounted; on bed `directory` one of the run's own, in
    /// which the trial makes its folder.
    pub directory: String,
    /// The folder for the tools' own output.
    pub raw: String,
    /// The file for the timelines.
    pub series: String,
}

impl Trial {
    /// What its devices are held down to while the work is done.
    pub fn limits(&self) -> Option<Limits> {
        self.contender.limits.or(self.bed.limits)
    }
}
