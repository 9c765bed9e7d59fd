//! `fsverdict record`: an application's own work as a plan.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use fsverdict_core::model::{Action, Bytes, Command, Gave, Laid, Recording, Unit};
use fsverdict_core::recording;
use fsverdict_host::tool;
use fsverdict_host::verb::recording::{self as host, Wanted};

use super::plan::shortened;
use crate::exit::{self, Usage};
use crate::say::{self, remark};

/// Watch a command, and write a plan that makes the same calls on files without it.
///
/// strace traces the command and all that it starts. Its calls on files below the watched folders
/// go into a recording beside the plan: with their sizes, places, threads, syncs and pauses, and
/// without any data; files get other names of the same length. What can't be replayed is counted
/// and said. The command does its work where it is, and more slowly than by itself. The trace is
/// kept among the temporary files (TMPDIR) until it has been read. No program in the command gains
/// rights that it is started without: what needs root is recorded as root.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// A folder whose files count; may be given again [default: the working directory].
    #[arg(long, value_name = "DIR")]
    below: Vec<PathBuf>,
    /// The plan; the recording is put beside it, as NAME.calls.
    #[arg(long, value_name = "NAME.toml", default_value = "recorded.toml")]
    output: PathBuf,
    /// Keep the pauses between calls; otherwise a replay goes as fast as it can.
    #[arg(long)]
    paced: bool,
    /// Keep the names of files.
    #[arg(long)]
    keep_names: bool,
    /// The command.
    #[arg(last = true, value_name = "COMMAND", required = true)]
    command: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  fsverdict record --output git.toml -- git gc
  fsverdict record --output mine.toml --below /srv/data --paced -- ./start --once
  sudo fsverdict run git.toml --fs ext4,xfs,btrfs";

/// Runs the command, and writes the plan and the recording.
pub fn run(arguments: &Arguments) -> Result<u8> {
    let output = &arguments.output;
    if output.extension().is_none_or(|ending| ending != "toml") {
        return Err(Usage(format!("--output {}: write NAME.toml", output.display())).into());
    }
    let calls = output.with_extension("calls");
    if let Some(there) = [output, &calls].into_iter().find(|path| path.exists()) {
        let there = there.display();
        return Err(Usage(format!("{there} is there already: name another by --output")).into());
    }
    // Ctrl-C is for the command: what it did until then is recorded.
    let interrupted = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGINT, interrupted)?;
    let here = [PathBuf::from(".")];
    let wanted = Wanted {
        argv: &arguments.command,
        below: if arguments.below.is_empty() { &here } else { &arguments.below },
        keep_names: arguments.keep_names,
    };
    let (recording, status) = host::record(&wanted)?;
    let shown = |path: &Path| path.display().to_string();
    let file = File::create(&calls).with_context(|| shown(&calls))?;
    recording::write(&recording, BufWriter::new(file)).with_context(|| shown(&calls))?;
    fs::write(output, plan(arguments, &recording, &calls)).with_context(|| shown(output))?;
    // Standard output is the command's.
    say::tell(said(&recording, output, &calls).trim_end());
    Ok(ended(&arguments.command, status))
}

/// A command that fails is recorded all the same, and the user told.
fn ended(command: &[String], status: ExitStatus) -> u8 {
    if status.success() {
        return exit::DONE;
    }
    let command = Command::Argv(command.to_vec());
    let ended = tool::ended(status);
    remark!("{command} {ended}; what it did until then is recorded");
    exit::FAILED
}

/// What was recorded, and what was not.
fn said(recording: &Recording, output: &Path, calls: &Path) -> String {
    let shown = |bytes: u64| Unit::Bytes.format(bytes as f64);
    let head = &recording.head;
    let Sums { read_bytes, written_bytes, syncs, .. } = Sums::of(recording);
    let mut text = format!(
        "{}: {} calls of {} threads in {}, {} read, {} written, {syncs} syncs\n",
        calls.display(),
        head.calls,
        head.threads,
        Unit::Nanoseconds.format(head.elapsed_ns as f64),
        shown(read_bytes),
        shown(written_bytes)
    );
    if !head.left_out.is_empty() {
        text += "Not in it:\n";
    }
    for (what, count) in &head.left_out {
        text += &match what.strip_prefix("bytes ") {
            Some(rest) => format!("  {} {rest}\n", shown(*count)),
            None => format!("  {count} {what}\n"),
        };
    }
    let lacking = recording::lacking(head);
    if lacking > 0 {
        let all = head.calls + lacking;
        text += &format!("A replay lacks {lacking} of {all} calls on these files.\n");
    }
    text + &format!("Compare: sudo fsverdict run {} --fs ext4,xfs,btrfs\n", output.display())
}

/// What a recording adds up to.
struct Sums {
    read_bytes: u64,
    written_bytes: u64,
    laid_bytes: u64,
    syncs: usize,
}

impl Sums {
    fn of(recording: &Recording) -> Sums {
        let mut sums = Sums { read_bytes: 0, written_bytes: 0, laid_bytes: 0, syncs: 0 };
        for call in &recording.calls {
            let Gave::Value(bytes) = call.gave else { continue };
            match call.action {
                Action::Read { .. } | Action::Pread { .. } => sums.read_bytes += bytes,
                Action::Write { .. } | Action::Pwrite { .. } => sums.written_bytes += bytes,
                Action::CopyRange { .. } | Action::Sendfile { .. } => {
                    sums.read_bytes += bytes;
                    sums.written_bytes += bytes;
                }
                _ => {}
            }
            sums.syncs += usize::from(call.action.is_sync());
        }
        let sizes = recording.entries.iter().map(|entry| match &entry.what {
            Laid::File { bytes, .. } => *bytes,
            _ => 0,
        });
        sums.laid_bytes = sizes.sum();
        sums
    }

    /// Images with room to spare: file systems slow down as they fill up.
    fn bed(&self) -> Bytes {
        const LEAST_BYTES: u64 = 1 << 30;
        let wanted = 4 * (self.laid_bytes + self.written_bytes);
        Bytes(wanted.max(LEAST_BYTES).next_multiple_of(1 << 20))
    }
}

/// The plan's text.
fn plan(arguments: &Arguments, recording: &Recording, calls: &Path) -> String {
    let quoted = |text: &str| toml::Value::String(text.into()).to_string();
    let command = Command::Argv(arguments.command.clone()).to_string();
    let beside = calls.file_name().unwrap_or_default().to_string_lossy();
    let mut text = format!("question = {}\n", quoted("Which file system for this work?"));
    if !recording.head.left_out.is_empty() {
        text += "\n# Not in the recording:\n";
    }
    for (what, count) in &recording.head.left_out {
        text += &format!("# {count} {what}\n");
    }
    text += &format!("\n[bed]\nsize = \"{}\"\n", Sums::of(recording).bed());
    for name in ["ext4", "xfs", "btrfs"] {
        text += &format!("\n[[contender]]\nname = \"{name}\"\nfile_system = \"{name}\"\n");
    }
    text + &format!(
        "\n[[workload]]\nname = {}\nreplay = {{ recording = {}, paced = {} }}\n",
        quoted(&shortened(&format!("replay of {command}"))),
        quoted(&beside),
        arguments.paced
    )
}
