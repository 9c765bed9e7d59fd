//! `fsverdict record`: an application's own work as a plan.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter};
use std::path::{Component, Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Error, Result};
use fsverdict_core::model::{Action, Bytes, Command, Gave, Laid, Recording, Unit};
use fsverdict_core::recording::{self, iolog};
use fsverdict_host::tool;
use fsverdict_host::verb::recording::{self as host, Rings, Wanted};

use super::plan::{read, shortened};
use crate::exit::{self, Usage};
use crate::say::{self, remark};

/// Watch a command, and write a plan that makes the same calls on files without it.
///
/// strace traces the command and all that it starts. Its calls on files below the watched folders
/// go into a recording beside the plan: with their sizes, places, threads, syncs and pauses, and
/// without any data; files get other names of the same length. What can't be replayed is counted
/// and said. The command does its work where it is, and more slowly than by itself. The trace is
/// kept among the temporary files (TMPDIR) until it has been read. Programs in the command gain no
/// rights: what needs root, record as root.
///
/// Reads and writes of mapped files are seen by page faults, which root may see. What the command
/// hands over by io_uring is read from its rings while it is stopped.
///
/// fio's iologs (versions 2 and 3) become recordings, and recordings iologs: the one that is made,
/// or an earlier one.
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
    /// Refuse io_uring to the command, as a kernel without it does: what it does instead is seen.
    #[arg(long, conflicts_with = "from_iolog")]
    no_io_uring: bool,
    /// Write an iolog of fio's, too, and beside it NAME.fio, the job that replays it.
    #[arg(long, value_name = "NAME.iolog")]
    iolog: Option<PathBuf>,
    /// Take this iolog of fio's instead of a command: what it names is in the --below folders.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["command", "paced", "iolog"])]
    from_iolog: Option<PathBuf>,
    /// Take this recording, or the one of this plan, instead of a command: only the iolog is
    /// written.
    #[arg(
        long,
        value_name = "NAME.calls",
        requires = "iolog",
        conflicts_with_all = [
            "command", "paced", "from_iolog", "output", "below", "keep_names", "no_io_uring"
        ]
    )]
    from_recording: Option<PathBuf>,
    /// The command.
    #[arg(
        last = true,
        value_name = "COMMAND",
        required_unless_present_any = ["from_iolog", "from_recording"]
    )]
    command: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  fsverdict record --output git.toml -- git gc
  fsverdict record --output mine.toml --below /srv/data --paced -- ./start --once
  fsverdict record --output job.toml --below /srv/data --from-iolog job.iolog
  fsverdict record --from-recording git.toml --iolog git.iolog
  sudo fsverdict run git.toml --fs ext4,xfs,btrfs";

/// Runs the command, and writes the plan and the recording.
pub fn run(arguments: &Arguments) -> Result<u8> {
    let log = arguments.iolog.as_deref().map(|path| (path, path.with_extension("fio")));
    let is_log = |path: &Path| path.extension().is_some_and(|ending| ending == "iolog");
    if let Some(path) = arguments.iolog.as_deref().filter(|path| !is_log(path)) {
        return Err(Usage(format!("--iolog {}: write NAME.iolog", path.display())).into());
    }
    if let (Some(from), Some((path, job))) = (&arguments.from_recording, &log) {
        refuse_there(&[path, job])?;
        let recording = existing(from)?;
        say::tell(to_iolog(&recording, path, job)?.trim_end());
        return Ok(exit::DONE);
    }
    let output = &arguments.output;
    if output.extension().is_none_or(|ending| ending != "toml") {
        return Err(Usage(format!("--output {}: write NAME.toml", output.display())).into());
    }
    let calls = output.with_extension("calls");
    refuse_there(&[output, &calls])?;
    if let Some((path, job)) = &log {
        refuse_there(&[path, job])?;
    }
    let (recording, status) = match &arguments.from_iolog {
        Some(log) => (from_iolog(log, arguments)?, exit::DONE),
        None => recorded(arguments)?,
    };
    let file = File::create(&calls).with_context(|| shown(&calls))?;
    recording::write(&recording, BufWriter::new(file)).with_context(|| shown(&calls))?;
    fs::write(output, plan(arguments, &recording, &calls)).with_context(|| shown(output))?;
    let mut text = said(&recording, &calls);
    if recording::is_without_rings(&recording.head) && !arguments.no_io_uring {
        text += "io_uring hid some calls. If the command can do without io_uring, record it with \
                 --no-io-uring.\n";
    }
    if let Some((path, job)) = log {
        text += &to_iolog(&recording, path, &job)?;
    }
    text += &format!("Compare: sudo fsverdict run {} --fs ext4,xfs,btrfs", output.display());
    // Standard output is the command's.
    say::tell(&text);
    Ok(status)
}

/// None of what is to be written may be there.
fn refuse_there(paths: &[&Path]) -> Result<()> {
    match paths.iter().find(|path| path.exists()) {
        Some(there) => {
            let there = there.display();
            Err(Usage(format!("{there} is there already: give another name")).into())
        }
        None => Ok(()),
    }
}

/// A recording that was made before, by its own name or that of the plan it lies beside.
fn existing(from: &Path) -> Result<Recording> {
    let calls = match from.extension().is_some_and(|ending| ending == "toml") {
        true => {
            let replays = read(from)?.workloads.into_iter().filter_map(|work| work.replay);
            let all: Vec<String> = replays.map(|replay| replay.recording).collect();
            match &all[..] {
                [one] => PathBuf::from(one),
                [] => return Err(Usage(format!("{} has no replay", from.display())).into()),
                several => {
                    let (from, several) = (from.display(), several.join(", "));
                    let text = format!("{from} has several recordings: name one of {several}");
                    return Err(Usage(text).into());
                }
            }
        }
        false => from.into(),
    };
    let file = File::open(&calls).with_context(|| shown(&calls))?;
    recording::read(BufReader::new(file)).with_context(|| shown(&calls))
}

/// What the command did, and the exit status that says how it ended.
fn recorded(arguments: &Arguments) -> Result<(Recording, u8)> {
    // Ctrl-C is for the command: what it did until then is recorded.
    let interrupted = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGINT, interrupted)?;
    let wanted = Wanted {
        argv: &arguments.command,
        below: &arguments.below(),
        keep_names: arguments.keep_names,
        rings: if arguments.no_io_uring { Rings::Refused } else { Rings::Seen },
    };
    let (recording, status) = host::record(&wanted)?;
    Ok((recording, ended(&arguments.command, status)))
}

/// What a job of fio's did, by its log.
fn from_iolog(log: &Path, arguments: &Arguments) -> Result<Recording> {
    let absolute = |path: &PathBuf| Ok::<_, Error>(shown(&plain(&std::path::absolute(path)?)));
    let folders = arguments.below().iter().map(absolute).collect::<Result<_, _>>()?;
    let source = iolog::Source { folders, keep_names: arguments.keep_names };
    let file = File::open(log).with_context(|| shown(log))?;
    iolog::read(source, BufReader::new(file)).with_context(|| shown(log))
}

/// An absolute path without `..`, as logs have it: links are left as they are.
fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut plain, part| {
        match part {
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
        plain
    })
}

/// Writes the log, and the job that replays it; says so.
fn to_iolog(recording: &Recording, log: &Path, job: &Path) -> Result<String> {
    let file = File::create(log).with_context(|| shown(log))?;
    let written = iolog::write(recording, BufWriter::new(file)).with_context(|| shown(log))?;
    let absolute =
        shown(&std::path::absolute(job)?.with_file_name(log.file_name().unwrap_or_default()));
    fs::write(job, iolog::job(&written, &absolute)).with_context(|| shown(job))?;
    let iolog::Written { calls, left_out, .. } = written;
    let all = calls + left_out;
    Ok(format!("{}: {calls} of {all} calls; fio {} replays it\n", log.display(), job.display()))
}

fn shown(path: &Path) -> String {
    path.display().to_string()
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

impl Arguments {
    /// The folders whose files count.
    fn below(&self) -> Vec<PathBuf> {
        match self.below.is_empty() {
            true => vec![PathBuf::from(".")],
            false => self.below.clone(),
        }
    }
}

/// What was recorded, and what was left out.
fn said(recording: &Recording, calls: &Path) -> String {
    let size = |bytes: u64| Unit::Bytes.format(bytes as f64);
    let head = &recording.head;
    let Sums { read_bytes, written_bytes, syncs, .. } = Sums::of(recording);
    let mut text = format!(
        "{}: {} calls of {} thread{} in {}, {} read, {} written, {syncs} syncs\n",
        calls.display(),
        head.calls,
        head.threads,
        if head.threads == 1 { "" } else { "s" },
        Unit::Nanoseconds.format(head.elapsed_ns as f64),
        size(read_bytes),
        size(written_bytes)
    );
    if !head.left_out.is_empty() {
        text += "Not in it:\n";
    }
    for (what, count) in &head.left_out {
        text += &match what.strip_prefix("bytes ") {
            Some(rest) => format!("  {} {rest}\n", size(*count)),
            None => format!("  {count} {what}\n"),
        };
    }
    let missing = recording::missing(head);
    if missing > 0 {
        let all = head.calls + missing;
        text += &format!("A replay lacks {missing} of {all} calls on these files.\n");
    }
    if head.one_by_one > 0 {
        let count = head.one_by_one;
        text += &format!("A replay makes {count} calls of io_submit or io_uring one by one.\n");
    }
    text
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
            let bytes = match (&call.gave, &call.action) {
                (Gave::Value(bytes), _) => *bytes,
                (
                    Gave::Unseen,
                    Action::Pread { bytes, .. }
                    | Action::Pwrite { bytes, .. }
                    | Action::Touch { bytes, .. },
                ) => *bytes,
                (Gave::Unseen, _) => 0,
                (Gave::Error(_), _) => continue,
            };
            match call.action {
                Action::Read { .. }
                | Action::Pread { .. }
                | Action::Touch { writes: false, .. } => sums.read_bytes += bytes,
                Action::Write { .. }
                | Action::Pwrite { .. }
                | Action::Touch { writes: true, .. } => sums.written_bytes += bytes,
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
    let what = match &arguments.from_iolog {
        Some(log) => shown(log),
        None => Command::Argv(arguments.command.clone()).to_string(),
    };
    let beside = calls.file_name().unwrap_or_default().to_string_lossy();
    let mut text = format!("question = {}\n", quoted("Which file system for this work?"));
    if arguments.no_io_uring {
        text += "\n# io_uring was refused to the command.\n";
    }
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
        quoted(&shortened(&format!("replay of {what}"))),
        quoted(&beside),
        arguments.paced
    )
}
