//! `fsverdict clean`: undo what a killed run left.

use std::path::{Path, PathBuf};

use anyhow::Result;
use fsverdict_core::model::{BedKind, Plan};
use fsverdict_host::bed;
use fsverdict_host::undo::{self, Left, Stale};

use crate::exit;
use crate::say::{self, remark};

/// Undo what killed runs left: images, loop devices, layers, settings.
///
/// Journals that only you can write tell what is left, until the machine is booted anew. After that
/// name the folders of the runs, or those in which their images lie. Only what has our mark is
/// removed. Runs that are alive are left alone.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  sudo fsverdict clean\n  sudo fsverdict clean runs/*")]
pub struct Arguments {
    /// Folders of runs, or folders in which runs left theirs.
    #[arg(value_name = "FOLDER")]
    folders: Vec<PathBuf>,
}

/// Plays back the undo journals.
pub fn run(arguments: &Arguments) -> Result<u8> {
    let left = undo::left()?;
    let is_nothing = left.stale.is_empty() && left.later.is_empty();
    let (mut errors, mut removed) = (play_back_all(&left), 0);
    drop(left);
    for folder in &arguments.folders {
        let (count, failures) = sweep(folder);
        (removed, errors) = (removed + count, errors + failures);
    }
    if is_nothing && removed == 0 && errors == 0 {
        say::print("nothing to clean\n")?;
    }
    Ok(if errors == 0 { exit::DONE } else { exit::FAILED })
}

/// Removes what killed runs left in this folder and, if it is a run's folder, in those that its
/// plan names; returns how much it removed and how much it could not look at.
pub fn sweep(folder: &Path) -> (usize, usize) {
    let (mut removed, mut errors) = (0, 0);
    for place in places(folder) {
        match bed::own::remove_left(&place) {
            Ok(paths) => {
                removed += paths.len();
                for path in paths {
                    remark!("removed {}, which a killed run left", path.display());
                }
            }
            // What is gone has nothing of ours in it.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                remark!("{}: {error}", place.display());
                errors += 1;
            }
        }
    }
    (removed, errors)
}

fn places(folder: &Path) -> Vec<PathBuf> {
    let mut places = vec![folder.to_path_buf()];
    let text = crate::source::text(&folder.join("plan.toml")).unwrap_or_default();
    if let Ok(Plan { bed, contenders, .. }) = Plan::parse(&text) {
        places.extend(bed.dir.map(PathBuf::from));
        if bed.kind == BedKind::Directory {
            let own = contenders.into_iter().filter_map(|contender| contender.path);
            places.extend(bed.paths.into_iter().chain(own).map(PathBuf::from));
        }
    }
    places
}

/// Plays back the journals of killed runs, and gives the number of things that could not be done.
pub fn play_back_all(left: &Left) -> usize {
    for whose in &left.later {
        remark!(
            "{whose} changed kernel settings, and another run that changes some is under way: run \
             clean when that has ended"
        );
    }
    left.later.len() + left.stale.iter().map(play_back).sum::<usize>()
}

/// Plays back one journal, says what it did, and gives the number of things it could not do.
fn play_back(stale: &Stale) -> usize {
    let whose = stale.whose();
    match stale.play_back() {
        Ok(errors) if errors.is_empty() => {
            remark!("cleaned up after {whose}");
            0
        }
        Ok(errors) => {
            for error in &errors {
                remark!("{whose}: {error}");
            }
            errors.len()
        }
        Err(error) => {
            remark!("{whose}: {error}");
            1
        }
    }
}
