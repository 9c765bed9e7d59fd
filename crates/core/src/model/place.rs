//! Where trials run, and what a plan says of the machines there.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Bytes;

/// Who runs the trials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// This machine.
    #[default]
    #[serde(alias = "here")]
    Local,
    /// A QEMU microVM for each trial.
    Vm,
    /// A User Mode Linux for each trial: a kernel that is a process of this machine's.
    Uml,
    /// The simulated host.
    Sim,
}

impl Place {
    /// The name in a plan and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Place::Local => "local",
            Place::Vm => "vm",
            Place::Uml => "uml",
            Place::Sim => "sim",
        }
    }

    /// Each trial has a machine of its own there.
    pub fn has_guests(self) -> bool {
        matches!(self, Place::Vm | Place::Uml)
    }
}

/// The virtual machines of places `vm` and `uml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Vm {
    /// Memory for the kernel and the work; what is brought along comes on top.
    pub memory: Bytes,
    /// Processors of each machine, otherwise two; a User Mode Linux has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processors: Option<u32>,
    /// Files and folders of the host that the work needs, at the same paths, besides those that
    /// its commands name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bring: Vec<String>,
    /// Options for QEMU after our own; if one is given twice QEMU takes the last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub qemu: Vec<String>,
    /// A stranger wrote the plan: its machines get only those of the host's files that are in
    /// `bring` or that they need themselves.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub untrusted: bool,
}

impl Vm {
    /// What the machines of a stranger's plan may have of the host.
    pub fn given(&self) -> Option<&[String]> {
        self.untrusted.then_some(&*self.bring)
    }

    /// How many processors a machine of that place has.
    pub fn processors_at(&self, place: Place) -> u32 {
        self.processors.unwrap_or(if place == Place::Uml { 1 } else { 2 })
    }
}

impl Default for Vm {
    fn default() -> Self {
        let (bring, qemu) = (Vec::new(), Vec::new());
        Vm { memory: Bytes(1 << 30), processors: None, bring, qemu, untrusted: false }
    }
}

/// The simulated host: how fast its file systems are and what goes wrong on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sim {
    /// Standard deviation of ln(time) from trial to trial.
    pub noise: f64,
    /// Speed by contender; 1 where none is given.
    pub speed: BTreeMap<String, f64>,
    /// The action that fails, counted from 1 over the whole run; 0: none.
    pub fail_at: u64,
    /// What it lacks: file systems and programs by name, and `limits`.
    #[serde(rename = "lacks", skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Its memory, where it matters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Bytes>,
    /// From `fail_at` on every action of that kind on that contender fails, not this one alone.
    pub fail_for_good: bool,
}

impl Default for Sim {
    fn default() -> Self {
        Sim {
            noise: 0.01,
            speed: Default::default(),
            fail_at: 0,
            missing: Vec::new(),
            memory: None,
            fail_for_good: false,
        }
    }
}
