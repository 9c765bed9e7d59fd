//! Why the guard leaves a device alone.

use std::io;

use thiserror::Error;

use super::block::Use;
use crate::tool::ToolError;

/// Why a device is not touched, and what to do.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Refusal {
    #[error("{path} can't be found: {source} (lsblk shows the disks of this machine)")]
    Missing { path: String, source: io::Error },
    #[error("{path} is not a block device: give a disk or a partition, or --bed directory:{path}")]
    NotBlock { path: String },
    #[error("{path} is a block device, but /sys does not show it: it can't be checked")]
    Unknown { path: String },
    #[error("{path} is read-only: choose another, or see blockdev --setrw")]
    ReadOnly { path: String },
    #[error("{path} has no size: no medium or no file is behind it")]
    Empty { path: String },
    #[error("{path} carries this machine's root file system ({node}): it is never erased")]
    System { path: String, node: String },
    #[error("{path} is in use: {}", listed(uses, "; "))]
    InUse { path: String, uses: Vec<Use> },
    #[error("{path} would be erased: if that is meant, say so by --erase {path}")]
    NotNamed { path: String },
    #[error(
        "{path} is held by the kernel, by something that neither /proc nor /sys shows: a mount in \
         another container, perhaps, or ZFS (lsblk -f may tell)"
    )]
    Busy { path: String },
    #[error("{path} can't be opened to see what it carries: {source}{}", rights(source))]
    Unreadable { path: String, source: io::Error },
    #[error("it is unknown what {path} carries, so it is not touched: {source}")]
    Probe { path: String, source: ToolError },
    #[error("it is unknown what {path} carries, so it is not touched: wipefs says {text:?}")]
    Answer { path: String, text: String },
    #[error("{}: to erase it all the same say --erase {path}={kinds}", listed(found, ", "))]
    Carries { path: String, found: Vec<Signature>, kinds: String },
    #[error(
        "{path} holds data without a signature (at byte {at_bytes}), such as an archive, a \
         database or an encrypted disk: to erase them all the same add --erase-data"
    )]
    Data { path: String, at_bytes: u64 },
    #[error("{one} and {other} share bytes: name each disk once")]
    Overlap { one: String, other: String },
    #[error("{path} is another run's: wait for its end")]
    AnotherRun { path: String },
    #[error("{path} is locked: a program that partitions it, perhaps, is at work on it")]
    Locked { path: String },
    #[error("{path} is no longer the device that this run may erase: it is left alone")]
    Changed { path: String },
    #[error("{0}: it is left alone")]
    Document(String),
}

fn rights(error: &io::Error) -> &'static str {
    if error.kind() == io::ErrorKind::PermissionDenied { " (run it as root)" } else { "" }
}

fn listed(things: &[impl ToString], separator: &str) -> String {
    things.iter().map(ToString::to_string).collect::<Vec<_>>().join(separator)
}

/// A file system, partition table or the like, known by its magic number.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{node} carries {kind}{}", shown(label))]
pub struct Signature {
    /// Where it was found: the device itself, or one of its partitions.
    pub node: String,
    /// What blkid calls it: `ext4`, `gpt`, `LVM2_member`.
    pub kind: String,
    /// Its label, if it has one.
    pub label: Option<String>,
}

fn shown(label: &Option<String>) -> String {
    label.as_ref().map(|label| format!(" (label {label})")).unwrap_or_default()
}
