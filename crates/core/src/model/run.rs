//! What is known of a run besides its plan and its records: `run.json`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{LeftOut, Place, Stop};

/// Version of every document fsverdict writes: plan, trial, record, run and report.
/// It rises when an old reader would misread a new document; new optional fields leave it alone.
pub const SCHEMA: u32 = 1;

/// A run's own facts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// [`super::SCHEMA`].
    pub schema: u32,
    /// Version of the program that ran it.
    pub program_version: String,
    /// The run's name: its folder's.
    pub name: String,
    /// The command that started it, as it was typed.
    pub command: Vec<String>,
    /// When it began: RFC 3339, UTC.
    pub started: String,
    /// Seed of the order and of the work.
    pub seed: u64,
    /// Who ran the trials.
    pub place: Place,
    /// Facts of the machine: kernel, processor, memory, what the bed lies on.
    pub host: BTreeMap<String, String>,
    /// The machine's memory, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Versions of the tools used.
    pub tools: BTreeMap<String, String>,
    /// What of a study was left out, because the machine lacks something for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// For figures of others: each `file` they were read from, and what of it was taken for what,
    /// with the reason. Empty for a run of our own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<(String, String)>,
    /// Why it ended; `None` while it runs, or when it was killed.
    #[serde(default)]
    pub stop: Option<Stop>,
    /// Seconds it took, resumed parts added.
    #[serde(default)]
    pub elapsed_s: f64,
}

impl Run {
    /// What tells it from all others: its name, when it began, and its seed.
    pub fn identity(&self) -> (&str, &str, u64) {
        (&self.name, &self.started, self.seed)
    }
}
