//! What the slower of two pays more of.

use serde::{Deserialize, Serialize};

use super::Unit;

/// What work costs besides its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cost {
    /// Bytes that the device was given to write.
    WrittenBytes,
    /// Bytes that were read from it.
    ReadBytes,
    /// Its requests that write.
    Writes,
    /// Its requests that read.
    Reads,
    /// Its flushes.
    Flushes,
    /// CPU time of the work and of the kernel for it.
    CpuTime,
}

impl Cost {
    /// What it counts.
    pub fn unit(self) -> Unit {
        match self {
            Cost::WrittenBytes | Cost::ReadBytes => Unit::Bytes,
            Cost::Writes | Cost::Reads | Cost::Flushes => Unit::Count,
            Cost::CpuTime => Unit::Nanoseconds,
        }
    }
}

/// What a cost is divided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Per {
    /// A byte that the application asked to have read or written.
    Byte,
    /// A file.
    File,
    /// An fsync.
    Fsync,
    /// An operation of another kind.
    Operation,
    /// Nothing: it is of a whole timed part, whose work is the same for all.
    Trial,
}

/// A cost in which the slower of two is ahead, beyond its interval and in the direction of their
/// verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cause {
    /// The workload's name.
    pub workload: String,
    /// The metric that was compared.
    pub metric: String,
    /// The contender's name.
    pub contender: String,
    /// The name of the contender it was compared with.
    pub reference: String,
    /// Which of the two is slower.
    pub slower: String,
    /// What it pays more of.
    pub cost: Cost,
    /// For what.
    pub per: Per,
    /// Medians of the slower and the faster, in the unit of the cost.
    pub medians: [f64; 2],
    /// How many times as much it is; `None` where the other has none of it in some trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// Where this ratio lies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// For bytes and requests that read or write, if the blocks are known: the kinds it has more
    /// of, most first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<CausePart>,
}

/// Blocks of a kind that the slower of two reads or writes more of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CausePart {
    /// The kind, as a log of requests names it.
    pub what: String,
    /// Medians of the slower and the faster, in the unit of the whole and for the same.
    pub medians: [f64; 2],
}
