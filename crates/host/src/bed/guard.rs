//! What stands between `--bed device:/dev/sdb` and somebody's data. It only reads.
//!
//! A device passes when the user named it twice, when nothing uses it, and when every signature on
//! it and on its partitions was named as well. It judges the device as it is now: whoever mounts
//! it a second later is stopped by the exclusive open of mkfs.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::str::FromStr;

use fsverdict_core::model::Device;
use serde::Deserialize;
use thiserror::Error;

use super::block::{Block, Machine, Use};
use crate::tool::{self, ToolError};

/// What the user agreed to lose: `--erase /dev/sdb`, or `--erase /dev/sdb=gpt,ext4`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consent {
    path: String,
    signatures: Vec<String>,
}

/// An `--erase` that could not be read.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("--erase {0}: give a device and, where it carries something, what: /dev/sdb=gpt,ext4")]
pub struct ConsentError(String);

impl FromStr for Consent {
    type Err = ConsentError;

    /// The last `=` parts, as `/dev/disk/by-partlabel/a=b` is a path too: to give that one without
    /// a signature, end it in `=`.
    fn from_str(text: &str) -> Result<Self, ConsentError> {
        let (path, signatures) = text.rsplit_once('=').unwrap_or((text, ""));
        let signatures: Vec<String> =
            signatures.split(',').filter(|kind| !kind.is_empty()).map(str::to_lowercase).collect();
        let odd = |kind: &String| kind.contains('/') || kind.contains(char::is_whitespace);
        if !path.starts_with('/') || signatures.iter().any(odd) {
            return Err(ConsentError(text.into()));
        }
        Ok(Consent { path: path.into(), signatures })
    }
}

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
    #[error("what {path} carries can't be told, so it is not touched: {source}")]
    Probe { path: String, source: ToolError },
    #[error("what {path} carries can't be told, so it is not touched: wipefs says {text:?}")]
    Answer { path: String, text: String },
    #[error("{}: to erase it all the same say --erase {path}={kinds}", listed(found, ", "))]
    Carries { path: String, found: Vec<Signature>, kinds: String },
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

/// Whether `path` may be erased: the device, or why not.
pub fn check(path: &str, consents: &[Consent]) -> Result<Device, Refusal> {
    let (target, named) = Machine::real().examine(path, consents)?;
    claim(path, &target)?;
    let mut found = Vec::new();
    for block in std::iter::once(&target).chain(&target.partitions()) {
        found.extend(signatures(path, &block.node)?);
    }
    unnamed(path, found, &named)?;
    Ok(target.device())
}

impl Machine {
    /// All that can be seen without opening the device; gives the signatures that were named.
    fn examine(&self, path: &str, consents: &[Consent]) -> Result<(Block, Vec<String>), Refusal> {
        let target = self.target(path)?;
        let path = || path.to_string();
        if target.read_only() {
            return Err(Refusal::ReadOnly { path: path() });
        }
        if target.size_bytes() == 0 {
            return Err(Refusal::Empty { path: path() });
        }
        let overlapping = target.overlapping();
        let numbers: Vec<_> = overlapping.iter().map(|block| block.number).collect();
        if let Some(root) = self.system().into_iter().find(|root| numbers.contains(&root.number)) {
            return Err(Refusal::System { path: path(), node: root.node });
        }
        let uses = self.uses(&overlapping);
        if !uses.is_empty() {
            return Err(Refusal::InUse { path: path(), uses });
        }
        // The path as it was typed: /dev/disk/by-id/X does not stand for /dev/sdb here, as the
        // one who types a name twice is to mean that name.
        let of_path: Vec<&Consent> =
            consents.iter().filter(|consent| consent.path == path()).collect();
        if of_path.is_empty() {
            return Err(Refusal::NotNamed { path: path() });
        }
        Ok((target, of_path.iter().flat_map(|consent| consent.signatures.clone()).collect()))
    }

    fn target(&self, path: &str) -> Result<Block, Refusal> {
        let missing = |source| Refusal::Missing { path: path.into(), source };
        // From here on it is the node that counts: a link may point elsewhere a moment later.
        let node = fs::canonicalize(path).map_err(missing)?;
        let not_block = || Refusal::NotBlock { path: path.into() };
        let number = (self.number_of)(&node).ok_or_else(not_block)?;
        let mut block = self.block(number).ok_or_else(|| Refusal::Unknown { path: path.into() })?;
        block.node = node.to_string_lossy().into_owned();
        Ok(block)
    }
}

/// Opens the device as mkfs would, and closes it again. For a block device O_EXCL fails with EBUSY
/// while the kernel holds it or a part of it (open(2)), whoever's mount namespace that is in.
fn claim(path: &str, target: &Block) -> Result<(), Refusal> {
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(&target.node);
    match opened {
        Ok(_) => Ok(()),
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
            Err(Refusal::Busy { path: path.into() })
        }
        Err(source) => Err(Refusal::Unreadable { path: path.into(), source }),
    }
}

#[derive(Deserialize)]
struct Listing {
    signatures: Vec<Found>,
}

#[derive(Deserialize)]
struct Found {
    #[serde(rename = "type")]
    kind: String,
    label: Option<String>,
}

/// What `node` carries. wipefs, not blkid: it lists all signatures, also those that contradict
/// each other, where blkid reports an ambivalent device as an empty one.
fn signatures(path: &str, node: &str) -> Result<Vec<Signature>, Refusal> {
    let probe = |source| Refusal::Probe { path: path.into(), source };
    // Without --all it opens the device for reading alone; --no-act says so twice.
    let text = tool::run_words(&["wipefs", "--no-act", "--json", node]).map_err(probe)?;
    parse_signatures(node, &text).ok_or_else(|| Refusal::Answer { path: path.into(), text })
}

fn parse_signatures(node: &str, text: &str) -> Option<Vec<Signature>> {
    if text.trim().is_empty() {
        return Some(Vec::new());
    }
    let listing: Listing = serde_json::from_str(text).ok()?;
    let mut signatures: Vec<Signature> = Vec::new();
    for Found { kind, label } in listing.signatures {
        let signature = Signature { node: node.into(), kind, label };
        // GPT and ZFS lie on the disk more than once.
        if !signatures.contains(&signature) {
            signatures.push(signature);
        }
    }
    // The protective MBR is part of GPT: nobody would think of naming it.
    if signatures.iter().any(|signature| signature.kind == "gpt") {
        signatures.retain(|signature| signature.kind != "PMBR");
    }
    Some(signatures)
}

/// Refuses when something was found that was not named. More may be named than is found: the next
/// run starts where this one left, with the file system of any of its contenders.
fn unnamed(path: &str, found: Vec<Signature>, named: &[String]) -> Result<(), Refusal> {
    let mut kinds: Vec<String> = Vec::new();
    for signature in &found {
        let kind = signature.kind.to_lowercase();
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    if kinds.iter().all(|kind| named.contains(kind)) {
        return Ok(());
    }
    Err(Refusal::Carries { path: path.into(), found, kinds: kinds.join(",") })
}

#[cfg(test)]
mod tests;
