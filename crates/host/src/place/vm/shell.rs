//! A shell in a guest, to look around in what a trial has left.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use fsverdict_core::model::{Outcome, Record, Trial};
use fsverdict_core::render::visible;
use fsverdict_core::run::{HostError, Step};
use serde::{Deserialize, Serialize};

use super::arch::Arch;
use crate::file_system;
use crate::place::trial::site::{Level, levels};
use crate::{sys, tool};

/// What one looks around with, as far as the host has it.
pub const PROGRAMS: [&str; 43] = [
    "awk", "bash", "blkid", "blockdev", "cat", "clear", "cp", "date", "dd", "df", "dmesg", "du",
    "env", "file", "find", "findmnt", "free", "grep", "head", "hexdump", "kill", "less", "ln",
    "ls", "lsblk", "mkdir", "mv", "od", "ps", "rm", "sed", "setsid", "sleep", "sort", "stat",
    "strace", "stty", "sync", "tail", "touch", "uname", "vi", "wc",
];

/// The console of a guest.
pub struct Console {
    device: PathBuf,
    /// What ends a machine that hangs.
    last_way_out: &'static str,
}

/// The first serial port.
pub fn qemu() -> Console {
    let device = Path::new("/dev").join(Arch::OWN.console());
    Console { device, last_way_out: "Ctrl-A, then X ends one that hangs." }
}
/// The first terminal: all input goes there.
pub fn uml() -> Console {
    let device = "/dev/tty0".into();
    Console { device, last_way_out: "one that hangs is killed from elsewhere." }
}

/// The terminal that a guest's console is shown at.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Terminal {
    /// Its kind, as in `TERM`.
    pub kind: String,
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

/// Runs a shell on the console until it ends, after it has said what became of the trial.
pub fn look_around(
    its: &Console,
    terminal: &Terminal,
    trial: &Trial,
    record: Option<&Record>,
    error: Option<&str>,
) -> Result<(), HostError> {
    let console = || File::options().read(true).write(true).open(&its.device);
    console()?.write_all(said(its, trial, record, error).as_bytes())?;
    // In a session of its own with this as its terminal: Ctrl-C and jobs need that.
    let line = format!(
        "stty sane rows {} cols {}
         for it in bash sh; do command -v $it > /dev/null && exec $it -i; done",
        terminal.rows, terminal.columns
    );
    let mut shell = tool::command("setsid")?;
    shell.args(["--ctty", "--wait", "sh", "-c", &line]).current_dir("/");
    shell.env("TERM", &terminal.kind).env("PS1", "guest:\\w# ").env("HOME", "/");
    shell.stdin(console()?).stdout(console()?).stderr(console()?);
    sys::Awaited::start(&mut shell)?.wait_and_reap()?;
    Ok(())
}

/// What one types to mount it again.
fn mounting(level: &Level) -> Vec<String> {
    let beside = |argv: &[String]| format!("{} &", tool::shown(argv));
    let first = level.listener().map(|(argv, _)| beside(&argv));
    let commands = level.commands(Step::Mount, true);
    let commands = commands.iter().map(|argv| tool::shown(argv));
    let last = level.server().map(|argv| beside(&argv));
    first.into_iter().chain(commands).chain(last).collect()
}

/// What became of the trial, where things are, and how to end it.
fn said(its: &Console, trial: &Trial, record: Option<&Record>, error: Option<&str>) -> String {
    let became = match (record.map(|it| &it.outcome), error) {
        (Some(Outcome::Measured), _) => "was measured".to_string(),
        (Some(Outcome::Failed(it)), _) => format!("has failed at {}: {}", it.step, it.error),
        (None, why) => format!("has no record: {}", why.unwrap_or("nobody knows why")),
    };
    let devices: Vec<String> = trial.bed.devices.iter().map(|it| it.path.clone()).collect();
    let lowest = file_system::find(&trial.contender.file_system);
    let mount = levels(trial, lowest).unwrap_or_default();
    let mount: Vec<String> = mount.iter().flat_map(mounting).collect();
    let lines = [
        format!("Trial {} {became}", trial.number),
        format!("Its disks: {}", devices.join(", ")),
        format!("To mount them again: {}", mount.join("; ")),
        format!("What it printed: {}", trial.raw),
        format!("exit ends the machine; {}", its.last_way_out),
    ];
    visible(&format!("\n{}\n\n", lines.join("\n"))).into_owned()
}
