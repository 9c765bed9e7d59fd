//! `fsverdict check`: are these settings valid, effective, safe?

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use fsverdict_core::model::Judged;
use fsverdict_core::{render, script};

use crate::exit;
use crate::say;

/// Try mkfs, mount, tune, queue and sysctl settings, and say which are valid, effective and safe.
///
/// Reads settings as people write them: a shell script, an fstab, a sysctl.conf, udev rules or a
/// plan. No line is run. Each option is tried on an image file instead of the device it names, and
/// judged by what the tool and the kernel answer. Queue settings are tried on a loop device of its
/// own, whose limits may differ from your disk's; sysctls of writeback are set and put back at
/// once. Mounts and queues need root.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The file, or - for standard input.
    file: PathBuf,
    /// Print the findings as JSON.
    #[arg(long)]
    json: bool,
    /// The folder for images; they have no name and go with the program.
    #[arg(long, value_name = "FOLDER", default_value = "/var/tmp")]
    dir: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  sudo fsverdict check tune.sh
  sudo fsverdict check /etc/fstab
  echo 'mkfs.xfs -l logbsize=256k DEV' | fsverdict check -

Exit status: 0 nothing invalid and nothing unsafe; 1 something is, or could not be done; 2 usage.";

/// Tries the settings of the file and prints what came of it.
pub fn run(arguments: &Arguments) -> Result<u8> {
    let text = read(&arguments.file)?;
    let script = script::read(&text);
    let checked =
        fsverdict_host::verb::check::check(&script, &arguments.dir).map_err(anyhow::Error::msg)?;
    let text = match arguments.json {
        true => render::checked_json(&checked, script.other_lines),
        false => render::checked(&checked, script.other_lines),
    };
    say::print(&text)?;
    let bad = checked.iter().any(|it| matches!(it.state, Judged::Invalid | Judged::Unsafe));
    Ok(if bad { exit::FAILED } else { exit::DONE })
}

fn read(file: &Path) -> Result<String> {
    let mut bytes = Vec::new();
    if file == Path::new("-") {
        std::io::stdin().read_to_end(&mut bytes).context("standard input")?;
    } else {
        bytes = std::fs::read(file).with_context(|| file.display().to_string())?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
