//! Other programs that ran during a timed part, what waited for them, and figures of the trial's
//! own cgroup.

use serde::{Deserialize, Serialize};

/// What programs outside the run did meanwhile: not the trial, not the lab, and no kernel threads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Strangers {
    /// CPU time of all of them.
    pub cpu_ns: u64,
    /// What they read from any disk.
    pub read_bytes: u64,
    /// What they made dirty in the page cache, and wrote past it.
    pub write_bytes: u64,
    /// Those that did most of any of these, added up by name, the most CPU time first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub most: Vec<Stranger>,
}

/// One of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stranger {
    /// What its processes are called.
    pub name: String,
    /// As above.
    pub cpu_ns: u64,
    /// As above.
    pub read_bytes: u64,
    /// As above.
    pub write_bytes: u64,
}

/// What the trial's processes fetched from disks and stored for them, whichever disks
/// (proc_pid_io(5)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct WorkIo {
    pub read_bytes: u64,
    pub write_bytes: u64,
}

/// Pressure stall time (PSI): some task, or all tasks that were not idle, waited for the resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "Documentation/accounting/psi.rst has the words")]
pub struct PressureTotals {
    pub cpu_some_ns: u64,
    pub io_some_ns: u64,
    pub io_full_ns: u64,
    pub memory_some_ns: u64,
    pub memory_full_ns: u64,
}

/// What the kernel tells of the trial's own cgroup, as far as it does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OwnTotals {
    /// Pressure of its processes alone: of version 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pressure: Option<PressureTotals>,
    /// The most memory charged to it at once, its page cache included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_max_bytes: Option<u64>,
    /// What moved on the devices under test and was charged to it: of version 2, where its devices
    /// are held down. The rest went past the limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<WorkIo>,
}

impl Strangers {
    /// Those who did most by `figure`, the most first, and how much.
    pub fn by(&self, figure: impl Fn(&Stranger) -> u64) -> Vec<(&str, u64)> {
        let mut named: Vec<(&str, u64)> =
            self.most.iter().map(|it| (it.name.as_str(), figure(it))).collect();
        named.retain(|(_, much)| *much > 0);
        named.sort_by_key(|(_, much)| std::cmp::Reverse(*much));
        named
    }
}
