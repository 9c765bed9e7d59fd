//! A trial's folder while it runs. The owner of a folder above can put another in its place, and
//! what root's work leaves in it could run as root.

use std::path::Path;

use fsverdict_core::model::Trial;
use fsverdict_core::run::HostError;

use crate::machine::folder::{Folder, entries};
use crate::sys;

/// A trial's folder. Nobody else looks into root's while its work writes there.
#[derive(Debug)]
pub struct Shut {
    /// It, held.
    pub folder: Folder,
    /// What the work leaves.
    pub raw: Folder,
    /// What the folder's was, and will be.
    pub mode: u32,
    /// The name of its record.
    pub record: &'static str,
}

impl Shut {
    /// Makes it, `below` the run's. Root's work may leave there what others could run as root.
    pub fn make(run: &Folder, below: &Path, trial: &Trial) -> Result<Shut, HostError> {
        let folder = run.make(below)?;
        // A user's work has no powers to leave, and not every file system has modes.
        let mode = if sys::is_root() { folder.shut()? } else { folder.mode()? };
        // After that nobody else puts anything in it, unless it was another's before; and what an
        // earlier trial of root's has left in it may be a link.
        if !folder.is_own()? || entries(folder.path()).next().is_some() {
            let at = below.display();
            return Err(format!(
                "{at}, a trial's folder, is another user's or has files already: give another \
                 --output"
            )
            .into());
        }
        let raw = folder.make(Path::new("raw"))?;
        // The record of one in turns is whole only beside the others'.
        let record = if trial.in_turns { "alone.json" } else { "record.json" };
        Ok(Shut { folder, raw, mode, record })
    }

    /// Opens it to others again, once nothing is left in it that would run as root. A folder that
    /// could not be searched stays shut.
    pub fn open(&self) -> Result<(), HostError> {
        if !sys::is_root() {
            return Ok(());
        }
        let failed = |error| format!("what the work has left in its folder raw: {error}");
        self.raw.tame().map_err(failed)?;
        Ok(self.folder.set_mode(self.mode)?)
    }
}
