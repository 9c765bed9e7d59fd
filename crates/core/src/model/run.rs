//! What is known of a run besides its plan and its records: `run.json`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Place, Stop};

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
    /// Versions of the tools used.
    pub tools: BTreeMap<String, String>,
    /// Why it ended; `None` while it runs, or when it was killed.
    #[serde(default)]
    pub stop: Option<Stop>,
    /// Seconds it took, resumed parts added.
    #[serde(default)]
    pub elapsed_s: f64,
}
