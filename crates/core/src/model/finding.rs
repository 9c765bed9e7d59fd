//! What an audit noticed.

use serde::{Deserialize, Serialize};

/// How grave a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// The verdict holds with a reservation.
    Warning,
    /// The measurement is not of the file system: the verdict is void.
    Void,
}

/// The audits, by their numbers in docs/audits.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[expect(
    missing_docs,
    reason = "docs/audits.md describes them; each is documented where it is made"
)]
pub enum Audit {
    A1,
    A2,
    A3,
    A4,
    A5,
    A6,
    A7,
    A8,
    A9,
    A10,
    A11,
    A12,
    A13,
    A14,
    A15,
    A16,
    A17,
    A18,
    A19,
    A20,
    A21,
    A22,
    A23,
    A24,
    A25,
    A26,
    A27,
    /// The disk says of itself what it is not, or the bed what the disk does not say.
    DiskFlag,
    /// The device is the limit, whichever the file system.
    DeviceBound,
    /// The depth of the work is the limit: at twice of it the bare device does more.
    DepthBound,
    /// The work runs for a time, whatever the file system does in it.
    FixedTime,
    /// How long the work had better run.
    RunLength,
    /// The link, or the processors at its ends, are the limit, whichever the file system.
    NetworkBound,
    /// Limits bound a part of what moved.
    PastLimits,
    /// A limit counted pieces that the device got as few requests.
    LimitedBios,
    /// A device was at work between its contender's turns.
    Leak,
    /// A replay lacks some of what was recorded.
    ReplayGap,
}

/// What an audit noticed, with its evidence and what to do about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Which audit.
    pub audit: Audit,
    /// How grave.
    pub severity: Severity,
    /// The workload it concerns; `None`: all.
    pub workload: Option<String>,
    /// The contender it concerns; `None`: all.
    pub contender: Option<String>,
    /// What was seen, with its figures.
    pub evidence: String,
    /// What to do about it.
    pub advice: String,
}
