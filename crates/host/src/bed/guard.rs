//! What stands between `--bed device:/dev/sdb` and somebody's data. It only reads.
//!
//! A device passes when the user named it twice, when nothing uses it, when every signature on it
//! and in its partitions was named as well, and when no data lack a signature, unless that was
//! allowed. It is held before it is examined: `Hold`.

use std::fs;
use std::str::FromStr;
use std::time::{Duration, Instant};

use thiserror::Error;

use super::block::{Block, Machine, Use};
use super::contents::{self, Occupied};
use super::hold::Hold;
use super::refusal::{Refusal, Signature};

/// So long may somebody have a device open who only looks at it: losetup(8) opens each that may be
/// free, to write, and so do other tools that search for one.
const A_LOOK: Duration = Duration::from_secs(2);

/// What the user agreed to lose: `--erase /dev/sdb`, or `--erase /dev/sdb=gpt,ext4`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consent {
    path: String,
    signatures: Vec<String>,
}

/// All that the user agreed to lose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Consents {
    /// Devices, and what they carry.
    pub named: Vec<Consent>,
    /// Data without a signature, too: `--erase-data`.
    pub data: bool,
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

/// Whether all of `paths` may be erased: the disks, held, or why not.
pub fn check(paths: &[String], consents: &Consents) -> Result<Vec<Hold>, Refusal> {
    let machine = Machine::real();
    let mut targets: Vec<(Block, Vec<String>)> = Vec::new();
    for path in paths {
        let target = machine.examine(path, &consents.named)?;
        let numbers: Vec<_> = target.0.overlapping().iter().map(|block| block.number).collect();
        let mut others = targets.iter().map(|(other, _)| other);
        if let Some(other) = others.find(|other| numbers.contains(&other.number)) {
            let (one, other) = (other.node.clone(), path.clone());
            return Err(Refusal::Overlap { one, other });
        }
        targets.push(target);
    }
    let each = paths.iter().zip(targets);
    each.map(|(path, (target, named))| cleared(path, &target, &named, consents.data)).collect()
}

/// The disk, held, once all that is on it may go.
fn cleared(path: &str, target: &Block, named: &[String], data: bool) -> Result<Hold, Refusal> {
    let hold = Hold::take(path, target)?;
    let Occupied { signatures, data_at_bytes } = contents::examine(path, target, hold.file())?;
    unnamed(path, signatures, named)?;
    match data_at_bytes {
        Some(at_bytes) if !data => Err(Refusal::Data { path: path.into(), at_bytes }),
        _ => Ok(hold),
    }
}

/// Whether nothing uses the disk that is held, before it is lent to a trial.
pub(super) fn check_unused(hold: &Hold) -> Result<(), Refusal> {
    let machine = Machine::real();
    let device = hold.device();
    let path = || device.path.clone();
    let block = machine.block(device.number).ok_or_else(|| Refusal::Unknown { path: path() })?;
    let uses = machine.lasting_uses(&block.overlapping());
    if uses.is_empty() { Ok(()) } else { Err(Refusal::InUse { path: path(), uses }) }
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
        let uses = self.lasting_uses(&overlapping);
        if !uses.is_empty() {
            return Err(Refusal::InUse { path: path(), uses });
        }
        // The path as it was typed: /dev/disk/by-id/X does not count as /dev/sdb here, because a
        // user who types a name twice should mean that name.
        let of_path: Vec<&Consent> =
            consents.iter().filter(|consent| consent.path == path()).collect();
        if of_path.is_empty() {
            return Err(Refusal::NotNamed { path: path() });
        }
        Ok((target, of_path.iter().flat_map(|consent| consent.signatures.clone()).collect()))
    }

    /// What uses the blocks, and is not over in a moment.
    fn lasting_uses(&self, blocks: &[Block]) -> Vec<Use> {
        const PAUSE: Duration = Duration::from_millis(20);
        let began = Instant::now();
        loop {
            let uses = self.uses(blocks);
            let is_open_alone = uses.iter().all(|it| matches!(it, Use::Written { .. }));
            if uses.is_empty() || !is_open_alone || began.elapsed() > A_LOOK {
                return uses;
            }
            std::thread::sleep(PAUSE);
        }
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
