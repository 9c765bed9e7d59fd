//! `fsverdict clean`: undo what a killed run left.

use std::path::PathBuf;

use anyhow::Result;
use fsverdict_host::undo::{self, Stale};

use crate::exit;
use crate::say::{self, remark};

/// Undo what killed runs left: images, loop devices, settings.
///
/// Without a folder, every run that registered itself since the machine was booted and is no
/// longer alive. A run that is alive is left alone.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  sudo fsverdict clean\n  sudo fsverdict clean runs/*")]
pub struct Arguments {
    /// Folders of runs to clean up after.
    #[arg(value_name = "RUN")]
    runs: Vec<PathBuf>,
}

/// Plays back the undo journals.
pub fn run(arguments: &Arguments) -> Result<u8> {
    let mut stale = undo::stale();
    stale.extend(arguments.runs.iter().filter_map(|folder| undo::stale_in(folder)));
    if stale.is_empty() {
        say::print("nothing to clean\n")?;
        return Ok(exit::DONE);
    }
    let errors: usize = stale.iter().map(play_back).sum();
    Ok(if errors == 0 { exit::DONE } else { exit::FAILED })
}

/// Plays back one journal, says what it did, and gives the number of things it could not do.
pub fn play_back(stale: &Stale) -> usize {
    let path = stale.path.display();
    match stale.play_back() {
        Ok(errors) if errors.is_empty() => {
            remark!("cleaned up after the run of {path}");
            0
        }
        Ok(errors) => {
            for error in &errors {
                remark!("{path}: {error}");
            }
            errors.len()
        }
        Err(error) => {
            remark!("{path}: {error}");
            1
        }
    }
}
