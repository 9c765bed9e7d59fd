//! What a living run's lab allows the trial that it starts: which trial it is, and which devices.
//!
//! A trial's document says what to format and what to run, and stays in the run's folder, which may
//! be where another user can exchange it. So that no other is trusted, the lab also writes it
//! beside its journal, with what identifies its devices, and removes that when the trial is over.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use fsverdict_core::model::{BedKind, Trial};
use fsverdict_core::run::HostError;
use serde::{Deserialize, Serialize};

use crate::bed::{self, Identity, Refusal};
use crate::machine::folder;
use crate::machine::token::Token;
use crate::sys;
use crate::undo::{self, Journal};

/// The document beside the journal.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Leased {
    trial: Trial,
    devices: Vec<Identity>,
    /// `None` in a machine that no one else uses.
    #[serde(default)]
    folders: Option<Folders>,
}

/// Which folders a trial means by their paths: others may own those above, and put something else
/// there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Folders {
    /// Its own, in the run's.
    pub of_trial: folder::Identity,
    /// On bed `directory`, where it works.
    pub of_work: Option<folder::Identity>,
}

/// The lab's side: it ends with this value.
#[derive(Debug)]
pub struct Grant {
    folder: File,
    name: PathBuf,
}

impl Grant {
    /// Allows `trial` the devices.
    pub fn new(
        journal: &Journal,
        trial: &Trial,
        devices: Vec<Identity>,
        folders: Option<Folders>,
    ) -> Result<Grant, HostError> {
        let grant = Grant { folder: undo::journals()?, name: undo::trial_name(journal.token()) };
        grant.revoke();
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL;
        let mut file = sys::open_beneath(grant.folder.as_fd(), &grant.name, flags, 0o600)?;
        let leased = Leased { trial: trial.clone(), devices, folders };
        file.write_all(&serde_json::to_vec(&leased)?)?;
        grant.folder.unlock()?;
        Ok(grant)
    }

    fn revoke(&self) {
        // One that stays allows nothing once its run is over.
        let name = sys::c_path(&self.name);
        let _ = name.and_then(|name| sys::unlink_at(self.folder.as_fd(), &name));
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        self.revoke();
    }
}

/// The trial's side.
#[derive(Debug)]
pub struct Lease {
    journal: File,
    devices: Vec<Identity>,
    folders: Option<Folders>,
}

impl Lease {
    /// What the run that `trial` names allows it; a refusal where it lives no more, or has started
    /// another trial.
    pub fn of(trial: &Trial) -> Result<Lease, HostError> {
        let refused = |why: &str| Refusal::Document(format!("trial {}: {why}", trial.number));
        let none = || refused("no running fsverdict has given this document out");
        let token = Token::parse(&trial.bed.lab).ok_or_else(none)?;
        let journal = undo::living(&token)?.ok_or_else(none)?;
        let mut text = Vec::new();
        let folder = undo::journals()?;
        sys::open_beneath(folder.as_fd(), &undo::trial_name(&token), libc::O_RDONLY, 0)
            .map_err(|_| none())?
            .read_to_end(&mut text)?;
        let leased: Leased = serde_json::from_slice(&text)?;
        if leased.trial.number != trial.number {
            return Err(refused("its run is working on another trial").into());
        }
        if leased.trial != *trial {
            return Err(refused("it is not what its run has given out").into());
        }
        let is_own = || {
            let name = Path::new(&trial.directory).file_name();
            name.is_some_and(|name| *name == *bed::own::name(&token))
        };
        if trial.bed.kind == BedKind::Directory && !is_own() {
            return Err(refused("the folder it names is not its run's own").into());
        }
        Ok(Lease { journal, devices: leased.devices, folders: leased.folders })
    }

    /// The folders that its run means, and not what may be there by now.
    pub fn folders(&self) -> Option<Folders> {
        self.folders
    }

    /// The devices of `trial` are the ones that its run means, and the run lives: to be asked
    /// before anything is written to them.
    pub fn check_devices(&self, trial: &Trial) -> Result<(), Refusal> {
        if self.journal.try_lock_shared().is_ok() {
            return Err(Refusal::Document("its run has ended".into()));
        }
        if trial.bed.devices.len() != self.devices.len() {
            return Err(Refusal::Document("its run has other devices".into()));
        }
        for (device, identity) in trial.bed.devices.iter().zip(&self.devices) {
            if Identity::of(device).as_ref() != Some(identity) {
                return Err(Refusal::Changed { path: device.path.clone() });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn trial(lab: &str, number: u32, directory: &str) -> Trial {
        let document = json!({
            "schema": 1, "number": number, "round": 1, "workload": "w", "contender": "c",
            "position": 1, "seed": 7, "work": { "name": "w", "command": ["true"] },
            "settings": { "name": "c" }, "bed": { "kind": "directory", "devices": [], "lab": lab },
            "directory": directory, "raw": "/x/raw", "series": "/x/series.csv",
        });
        serde_json::from_value(document).unwrap()
    }

    #[test]
    fn a_document_is_worth_something_while_its_run_lives_and_is_at_it() {
        let journal = Journal::open(None).unwrap();
        let lab = journal.token().to_string();
        let own = format!("/x/{}", bed::own::name(journal.token()));
        let right = trial(&lab, 3, &own);
        let refused = |trial: &Trial| Lease::of(trial).map(drop).unwrap_err().to_string();
        assert!(refused(&right).contains("no running fsverdict"));
        let granted = Grant::new(&journal, &right, Vec::new(), None).unwrap();
        let lease = Lease::of(&right).unwrap();
        lease.check_devices(&right).unwrap();
        assert!(refused(&trial(&lab, 4, &own)).contains("on another trial"));
        assert!(refused(&Trial { raw: "/etc".into(), ..right.clone() }).contains("given out"));
        for odd in ["", "0123456789abcdef", "../../etc/passwd"] {
            assert!(refused(&trial(odd, 3, &own)).contains("no running fsverdict"), "{odd}");
        }
        let mut more = right.clone();
        let null = fsverdict_core::model::Device {
            path: "/dev/null".into(),
            number: [1, 3],
            size_bytes: 0,
        };
        more.bed.devices.push(null);
        assert!(lease.check_devices(&more).is_err());
        drop(granted);
        let home = trial(&lab, 3, "/home");
        let granted = Grant::new(&journal, &home, Vec::new(), None).unwrap();
        assert!(refused(&home).contains("not its run's own"));
        drop(granted);
        assert!(refused(&right).contains("no running fsverdict"));
        journal.close().unwrap();
        let ended = lease.check_devices(&right).unwrap_err().to_string();
        assert!(ended.contains("has ended"), "{ended}");
    }
}
