//! `fsverdict man`: the manual pages, from the definition of the options.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::exit;

/// Write the manual pages into a folder: one for the program, one for each command.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  fsverdict man /usr/local/share/man/man1")]
pub struct Arguments {
    /// The folder; it is made where there is none.
    dir: PathBuf,
}

/// Writes the pages of `program`.
pub fn run(arguments: &Arguments, program: clap::Command) -> Result<u8> {
    let folder = &arguments.dir;
    fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(program, folder))
        .with_context(|| format!("writing manual pages into {}", folder.display()))?;
    Ok(exit::DONE)
}
