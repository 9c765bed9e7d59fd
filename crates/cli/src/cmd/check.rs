//! `fsverdict check`: are these settings valid, effective, safe?

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use fsverdict_core::model::{Bytes, Checked, Judged};
use fsverdict_core::{render, script};
use fsverdict_host::verb::check::{self, Stripe, Target};

use crate::exit;
use crate::say;

/// Try mkfs, mount, tune, queue and sysctl settings, and say which are valid, effective and safe.
///
/// Reads settings as people write them: a shell script, an fstab, a sysctl.conf, a limits.conf,
/// udev rules, units of systemd, a profile of tuned or a plan. No line is run. Each option is
/// tried on an image file instead of the device it names, and judged by what the tool and the
/// kernel answer; the image has 4 GiB, or the size that --for or --size gives.
/// Queue settings are tried on a loop device of its own, whose limits may differ from your disk's;
/// as root, sysctls of vm.dirty*, vm.swappiness and vm.vfs_cache_pressure are set on this machine
/// for a moment and put back. Mounts and queues need root.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The file, or - for standard input.
    file: PathBuf,
    /// The disk of this machine that the settings are for: images have its size, and stripes are
    /// compared with its own. Only /sys is read for it.
    #[arg(long = "for", value_name = "DEVICE")]
    device: Option<PathBuf>,
    /// The size of the disk that the settings are for.
    #[arg(long, value_name = "SIZE", conflicts_with = "device")]
    size: Option<Bytes>,
    /// The stripe of the disk that the settings are for, as mkfs.xfs has it: su=64k,sw=4.
    #[arg(long, value_name = "STRIPE", conflicts_with = "device")]
    stripe: Option<Stripe>,
    /// Print the findings as JSON.
    #[arg(long)]
    json: bool,
    /// The folder for images; they have no name and are gone when the program ends.
    #[arg(long, value_name = "FOLDER", default_value = "/var/tmp")]
    dir: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  sudo fsverdict check tune.sh
  sudo fsverdict check /etc/fstab
  echo 'mkfs.xfs -l logbsize=256k DEV' | fsverdict check -
  fsverdict check --size 4T --stripe su=64k,sw=4 mkfs.sh

Exit status: 0 all was judged, and nothing is invalid or unsafe; 1 something is, or could not be
done; 2 usage; 6 nothing is wrong, but not all could be judged, or no setting was found.";

/// Tries the settings of the file and prints what came of it.
pub fn run(arguments: &Arguments) -> Result<u8> {
    let text = read(&arguments.file)?;
    script::check_size(&text)
        .map_err(|why| exit::Usage(format!("{}: {why}", arguments.file.display())))?;
    let script = script::read(&text);
    let target = target(arguments)?;
    let checked = check::check(&script, &arguments.dir, target).map_err(anyhow::Error::msg)?;
    let text = match arguments.json {
        true => render::checked_json(&checked, script.other_lines),
        false => render::checked(&checked, script.other_lines),
    };
    say::print(&text)?;
    Ok(status(&checked))
}

fn target(arguments: &Arguments) -> Result<Target> {
    match &arguments.device {
        Some(device) => Ok(Target::of(device).map_err(exit::Usage)?),
        None => {
            Ok(Target { size_bytes: arguments.size.map(|size| size.0), stripe: arguments.stripe })
        }
    }
}

/// A setting that could not be judged does not count as right.
fn status(checked: &[Checked]) -> u8 {
    let any = |states: &[Judged]| checked.iter().any(|it| states.contains(&it.state));
    match () {
        () if any(&[Judged::Invalid, Judged::Unsafe]) => exit::FAILED,
        () if checked.is_empty() || any(&[Judged::NotTried]) => exit::UNJUDGED,
        () => exit::DONE,
    }
}

/// One byte more than can be right is enough to refuse it.
fn read(file: &Path) -> Result<String> {
    let mut bytes = Vec::new();
    let most = script::TEXT_BYTES_MAX as u64 + 1;
    if file == Path::new("-") {
        std::io::stdin().take(most).read_to_end(&mut bytes).context("standard input")?;
    } else {
        let read = File::open(file).and_then(|file| file.take(most).read_to_end(&mut bytes));
        read.with_context(|| file.display().to_string())?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
