//! A trial's folders, where nobody else can put others in their place.
//!
//! A run is in a folder of its user, who need not be root, and root must write there. So root's
//! trial opens its folders without following links, compares them with those that its run means,
//! and mounts them once more in the registry, within its own mounts: it and its work use those
//! paths.

use std::path::Path;

use fsverdict_core::model::Trial;
use fsverdict_core::run::HostError;

use crate::bed::Refusal;
use crate::machine::folder::{Folder, Identity};
use crate::place::lease::Lease;
use crate::place::trial_process::{mount_point, trial_point};
use crate::sys;

/// `trial`, with paths that lead to what its run means.
pub fn held(mut trial: Trial, lease: &Lease) -> Result<Trial, HostError> {
    let Some(folders) = lease.folders() else { return Ok(trial) };
    let own = Path::new(&trial.raw).parent().ok_or("the trial has no folder")?;
    let own = opened(own, folders.of_trial)?;
    let work = folders.of_work.map(|it| opened(Path::new(&trial.directory), it)).transpose()?;
    if !sys::is_root() {
        // Only the user, or root, could exchange a user's folders.
        return Ok(trial);
    }
    let at = trial_point();
    show(&own, &at)?;
    for path in [&mut trial.raw, &mut trial.series] {
        let name = Path::new(path.as_str()).file_name().ok_or("a file has no name")?;
        *path = at.join(name).display().to_string();
    }
    if let Some(work) = work {
        show(&work, &mount_point())?;
        trial.directory = mount_point().display().to_string();
    }
    Ok(trial)
}

fn opened(path: &Path, means: Identity) -> Result<Folder, HostError> {
    let exchanged = || Refusal::Document(format!("{} was exchanged", path.display()));
    let folder = Folder::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    match folder.identity()? == means {
        true => Ok(folder),
        false => Err(exchanged().into()),
    }
}

fn show(folder: &Folder, at: &Path) -> Result<(), HostError> {
    sys::bind(&folder.path(), at).map_err(|error| format!("{}: {error}", at.display()).into())
}
