//! `fsverdict anatomy`: what one fsync asks of the disk, request by request.

use std::fs;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use fsverdict_core::generations::{Modelled, Options, Version};
use fsverdict_core::model::trace::{Item, Origin, Traced};
use fsverdict_core::model::{
    Attachment, Bed, Bytes, Command, Contender, ExtraProbe, FsyncCase, FsyncFiles, FsyncOperation,
    Judgement, Place, Plan, Record, Stop, Workload,
};
use fsverdict_core::render::{self, Figure};
use fsverdict_core::trace::file::{self, Line};
use fsverdict_core::trace::{Between, Operations};
use fsverdict_host::bed::Consents;
use fsverdict_host::plain;
use fsverdict_host::probe::trace::blktrace;

use super::arguments::Arguments as RunArguments;
use super::plan::shortened;
use super::run::{self, dated_folder};
use crate::exit::{self, Usage};
use crate::say;
use crate::source::{self, Loaded, Source};
use crate::store::write_whole;

/// Show what one fsync asks of the disk: every request, in order, and what it writes.
///
/// Writes files and syncs the last of them, again and again, on a new file system on an image.
/// Records the kernel's block events meanwhile, and looks up each block in the unmounted file
/// system. Shows how the fsyncs differ, and one in full. Finds a command's fsyncs only on ext4.
/// Needs root or a virtual machine; QEMU logs its writes if its kernel has no such events.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// A run that was recorded before, here or by fsverdict run --probe trace.
    #[arg(value_name = "RUN", conflicts_with_all = OF_A_RUN)]
    run: Option<PathBuf>,
    /// A recording by blktrace: NAME, if its files are NAME.blktrace.0, NAME.blktrace.1, ...
    #[arg(long, value_name = "NAME", conflicts_with = "run", conflicts_with_all = OF_A_RUN)]
    blktrace: Option<PathBuf>,
    /// With --blktrace, to name the blocks: the file system's device, or an image of it, not
    /// mounted.
    #[arg(long, value_name = "PATH", requires = "blktrace")]
    disk: Option<PathBuf>,
    /// The file systems.
    #[arg(long, value_delimiter = ',', value_name = "NAME,...", default_value = "ext4")]
    fs: Vec<String>,
    /// Mount options, as mount(8) takes them after -o: each that is given is tried by itself.
    #[arg(long, value_name = "OPTIONS")]
    mount: Vec<String>,
    /// Options of mkfs.
    #[arg(long, value_name = "OPTIONS", allow_hyphen_values = true)]
    mkfs: Option<String>,
    /// How many files are dirty when the last one is synced.
    #[arg(long, value_delimiter = ',', value_name = "N,...", default_value = "10")]
    files: Vec<u32>,
    /// Whether the write allocates a new block, overwrites data, or extends the file.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "allocating")]
    case: Vec<Case>,
    /// The operation on the last file that is shown. rename: it replaces the first, with no sync;
    /// create: it is a new file, synced with its directory.
    #[arg(long, value_delimiter = ',', default_value = "fsync", value_parser = operations())]
    operation: Vec<FsyncOperation>,
    /// Bytes written to each file.
    #[arg(long, value_name = "SIZE", default_value = "2k")]
    bytes: Bytes,
    /// How many fsyncs, each with files of its own.
    #[arg(long, value_name = "N", default_value_t = 30)]
    repetitions: u32,
    /// Where trials run; vm: in virtual machines, without root.
    #[arg(long, value_enum, default_value = "local")]
    place: At,
    /// In virtual machines: each kernel that is named, as run takes it.
    #[arg(long, value_name = "NAME")]
    kernel: Vec<String>,
    /// In virtual machines: how their disks are attached, as run takes it.
    #[arg(long, value_delimiter = ',', value_name = "NAME,...")]
    disks: Vec<Attachment>,
    /// Run nothing: show what these kernels write by a model of ext4 and its journal, from 3.2 on.
    #[arg(long, value_delimiter = ',', value_name = "VERSION,...", conflicts_with_all = OF_A_TRIAL)]
    model: Vec<Version>,
    /// Size of the image.
    #[arg(long, value_name = "SIZE", default_value = "512M")]
    size: Bytes,
    /// Where the image is made [default: the run's folder].
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// The run's folder [default: runs/TIME-anatomy].
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Write SVGs into this folder: the requests of one fsync each, in order, how many requests the
    /// device had over time, and, of several, what each wrote.
    #[arg(long, value_name = "DIR")]
    figures: Option<PathBuf>,
    /// What to write on standard output.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// The work, instead of the files.
    #[arg(
        last = true,
        value_name = "COMMAND",
        conflicts_with_all = ["files", "case", "operation", "bytes", "repetitions"]
    )]
    command: Vec<String>,
}

/// What a run that was recorded has already.
const OF_A_RUN: [&str; 16] = [
    "fs",
    "mount",
    "mkfs",
    "files",
    "case",
    "operation",
    "bytes",
    "repetitions",
    "place",
    "kernel",
    "disks",
    "model",
    "size",
    "dir",
    "output",
    "command",
];

/// What a model has nothing of.
const OF_A_TRIAL: [&str; 9] =
    ["fs", "operation", "repetitions", "place", "kernel", "disks", "size", "dir", "output"];

const EXAMPLES: &str = "\
Examples:
  sudo fsverdict anatomy
  sudo fsverdict anatomy --fs ext4,xfs,btrfs --files 1,10,100,1000
  sudo fsverdict anatomy --mount data=journal --mount nodelalloc --case overwriting
  sudo fsverdict anatomy --fs ext4,xfs --operation fdatasync,rename,create
  fsverdict anatomy --kernel 5.10 --kernel 6.12
  fsverdict anatomy --kernel 6.12 --disks virtio-blk,nvme
  fsverdict anatomy --model 3.4,3.8,4.6.2 --files 1,10,100,1000 --case extending
  sudo fsverdict anatomy -- sqlite3 test.db 'create table t(x)'
  fsverdict anatomy runs/20260131-235959-anatomy --figures figures
  fsverdict anatomy runs/20260131-235959-anatomy --format html > anatomy.html
  sudo fsverdict anatomy --blktrace sda --disk /dev/sda1";

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum At {
    Local,
    Vm,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Html,
}

#[derive(Clone, Copy, ValueEnum)]
enum Case {
    Allocating,
    Overwriting,
    Extending,
}

impl Case {
    fn to_model(self) -> FsyncCase {
        match self {
            Case::Allocating => FsyncCase::Allocating,
            Case::Overwriting => FsyncCase::Overwriting,
            Case::Extending => FsyncCase::Extending,
        }
    }
}

/// By the names that plans have.
fn operations() -> impl TypedValueParser<Value = FsyncOperation> {
    let named = |name: String| FsyncOperation::ALL.into_iter().find(|it| it.name() == name);
    let names = FsyncOperation::ALL.map(FsyncOperation::name);
    PossibleValuesParser::new(names).map(move |name| named(name).expect("it is one of them"))
}

/// Records as asked, or reads a recording, and shows it.
pub fn run(arguments: &Arguments) -> Result<u8> {
    if !arguments.model.is_empty() {
        show(&modelled(arguments)?, arguments)?;
        return Ok(exit::DONE);
    }
    let (all, code) = match &arguments.blktrace {
        Some(name) => (vec![of_blktrace(name, arguments.disk.as_deref())?], exit::DONE),
        None => {
            let Some((folder, loaded)) = of_run(arguments)? else { return Ok(exit::INTERRUPTED) };
            let failed = loaded.records.iter().any(|record| !record.is_measured());
            let code = if failed { exit::FAILED } else { exit::DONE };
            (traced(&folder, &loaded)?, code)
        }
    };
    show(&all, arguments)?;
    Ok(code)
}

/// The run that was named, or a new one; `None` where it was interrupted.
fn of_run(arguments: &Arguments) -> Result<Option<(PathBuf, Loaded)>> {
    let (folder, loaded) = match &arguments.run {
        Some(run) => match Source::open(run)? {
            Source::Folder(folder) => {
                let loaded = Source::Folder(folder.clone()).load()?;
                (folder, loaded)
            }
            Source::Packed(file) => {
                bail!("{}: a packed run holds no recorded requests", file.display())
            }
        },
        None => {
            let folder = arguments.output.clone();
            let folder = folder.unwrap_or_else(|| dated_folder(SystemTime::now(), "anatomy"));
            let typed = |file: &Path| RunArguments::of_plan(file, &folder, &Consents::default());
            let (loaded, stop) = run::anew(&plan(arguments)?, &folder, typed)?;
            if stop == Stop::Interrupted {
                return Ok(None);
            }
            (folder, loaded)
        }
    };
    Ok(Some((folder, loaded.on_one_line())))
}

/// What blktrace recorded. Messages that mark fsyncs as our own work does tell them apart.
fn of_blktrace(name: &Path, disk: Option<&Path>) -> Result<Traced> {
    let mut traced = Traced {
        workload: render::one_line(&name.display().to_string()),
        contender: "recorded by blktrace".into(),
        origin: Origin::Others,
        ..Traced::default()
    };
    let mut operations = Operations::new(Between::FSYNC);
    let told = blktrace::read(name, disk, &mut |item| {
        take(item, &mut operations, &mut traced);
        Ok(())
    })?;
    traced.lost_events = told.missing.records;
    traced.cut_off = told.missing.ends;
    traced.unnamed = told.unnamed;
    Ok(traced)
}

fn take(item: Item, operations: &mut Operations, traced: &mut Traced) {
    if let Item::Entry(entry) = &item {
        traced.account.take(entry);
        traced.stages.take(entry);
    }
    operations.take(item).into_iter().for_each(|it| traced.fsyncs.take(it));
}

/// Prints it, and draws it where it is to be drawn.
fn show(traced: &[Traced], arguments: &Arguments) -> Result<()> {
    say::print(&match arguments.format {
        Format::Text => render::anatomy(traced),
        Format::Html => render::anatomy_html(traced),
    })?;
    let Some(at) = &arguments.figures else { return Ok(()) };
    fs::create_dir_all(at).with_context(|| at.display().to_string())?;
    let draw =
        |figure: Figure| write_whole(&at.join(format!("{}.svg", figure.name)), &figure.svg());
    let of = |it| [render::order_figure(it), render::queue_figure(it)];
    let each = traced.iter().flat_map(of).flatten();
    render::blocks_figure(traced).into_iter().chain(each).try_for_each(draw)
}

/// What the model tells of each workload on each kernel.
fn modelled(arguments: &Arguments) -> Result<Vec<Traced>> {
    let of = |version: Version, contender: &Contender, workload: &Workload| -> Result<Traced> {
        let Some(FsyncFiles { files, size, case, .. }) = workload.fsync_files else {
            return Err(Usage("the model knows fsyncs of files alone".into()).into());
        };
        let mount = contender.mount.join(",");
        let options = Options::of(&mount, &contender.mkfs.join(" "));
        let fsyncs =
            options.and_then(|options| Modelled { version, options, case, files, size }.fsyncs());
        let name = contender.name.strip_prefix("ext4").unwrap_or_default();
        Ok(Traced {
            workload: workload.name.clone(),
            contender: format!("Linux {version}{name}"),
            origin: Origin::Model,
            ..fsyncs.map_err(|wrong| Usage(wrong.to_string()))?
        })
    };
    let contenders = contenders(arguments);
    let mut all = Vec::new();
    for workload in &workloads(arguments) {
        for contender in &contenders {
            for version in &arguments.model {
                all.push(of(*version, contender, workload)?);
            }
        }
    }
    Ok(all)
}

/// One round of each workload on each contender, with every request recorded.
fn plan(arguments: &Arguments) -> Result<Plan> {
    let plan = Plan {
        bed: Bed {
            size: arguments.size,
            dir: arguments.dir.as_ref().map(|dir| dir.display().to_string()),
            ..Bed::default()
        },
        judgement: Judgement { rounds: Some(1), ..Judgement::default() },
        place: Some(match arguments.place {
            At::Local if arguments.kernel.is_empty() && arguments.disks.is_empty() => Place::Local,
            _ => Place::Vm,
        }),
        contenders: contenders(arguments),
        workloads: workloads(arguments),
        probes: vec![ExtraProbe::Trace],
        ..Plan::default()
    };
    plan.check().map_err(|wrong| Usage(wrong.to_string()))?;
    Ok(plan)
}

fn contenders(arguments: &Arguments) -> Vec<Contender> {
    let mounts: Vec<Option<&String>> = match arguments.mount.as_slice() {
        [] => vec![None],
        mounts => mounts.iter().map(Some).collect(),
    };
    let mkfs: Vec<String> = arguments
        .mkfs
        .iter()
        .flat_map(|options| options.split_whitespace().map(String::from))
        .collect();
    let kernels: Vec<Option<&String>> = match arguments.kernel.as_slice() {
        [] => vec![None],
        kernels => kernels.iter().map(Some).collect(),
    };
    let disks: Vec<Option<Attachment>> = match arguments.disks.as_slice() {
        [] => vec![None],
        disks => disks.iter().copied().map(Some).collect(),
    };
    let machines = || kernels.iter().flat_map(|it| disks.iter().map(move |disks| (*it, *disks)));
    type Machine<'a> = (Option<&'a String>, Option<Attachment>);
    let of = |name: &String, mount: Option<&String>, (kernel, disks): Machine<'_>| {
        let attached = disks.map(|it| it.to_string());
        let words = [Some(name), mount, arguments.mkfs.as_ref(), kernel, attached.as_ref()];
        Contender {
            name: words.into_iter().flatten().cloned().collect::<Vec<_>>().join(" "),
            disks,
            file_system: name.clone(),
            mkfs: mkfs.clone(),
            kernel: kernel.cloned(),
            mount: mount.into_iter().flat_map(|it| it.split(',').map(String::from)).collect(),
            ..Contender::default()
        }
    };
    let mut all = Vec::new();
    for name in &arguments.fs {
        for mount in &mounts {
            all.extend(machines().map(|machine| of(name, *mount, machine)));
        }
    }
    all
}

fn workloads(arguments: &Arguments) -> Vec<Workload> {
    if !arguments.command.is_empty() {
        let command = Command::Argv(arguments.command.clone());
        let name = shortened(&command.to_string());
        return vec![Workload { name, command: Some(command), ..Workload::default() }];
    }
    let one = |operation: FsyncOperation, case: Case, files: u32| {
        let case = case.to_model();
        let s = if files == 1 { "" } else { "s" };
        let (size, repetitions) = (arguments.bytes, arguments.repetitions);
        Workload {
            name: format!("{} of 1 of {files} file{s}, {}", operation.name(), case.name()),
            fsync_files: Some(FsyncFiles { files, size, repetitions, case, operation }),
            ..Workload::default()
        }
    };
    let mut all = Vec::new();
    for operation in &arguments.operation {
        for case in &arguments.case {
            all.extend(arguments.files.iter().map(|files| one(*operation, *case, *files)));
        }
    }
    all
}

/// What was recorded, by workload and contender in the plan's order.
fn traced(folder: &Path, loaded: &Loaded) -> Result<Vec<Traced>> {
    let mut all = Vec::new();
    for workload in &loaded.plan.workloads {
        for contender in &loaded.plan.contenders {
            let operation = workload.fsync_files.as_ref().map(|it| it.operation);
            let mut traced = Traced {
                workload: workload.name.clone(),
                contender: contender.name.clone(),
                operation: operation.unwrap_or_default(),
                promises: loaded.plan.owns_disks(contender)
                    && operation.is_some_and(FsyncOperation::keeps_file),
                ..Traced::default()
            };
            let is_its = |record: &&Record| {
                let key = &record.key;
                key.workload == workload.name && key.contender == contender.name
            };
            let own = workload.fsync_files.is_some();
            let between = if own { Between::FSYNC } else { Between::EXT4_FSYNC };
            for record in loaded.records.iter().filter(is_its) {
                read(&folder.join("trials").join(record.number.to_string()), between, &mut traced)?;
            }
            all.extend((traced.origin != Origin::Trials(0)).then_some(traced));
        }
    }
    match all.is_empty() {
        false => Ok(all),
        true => bail!("{}", why_none(folder, &loaded.records)),
    }
}

/// Adds the log in a trial's folder, if it has one: that of the kernel's events, which has times
/// and reads, before that of QEMU.
fn read(trial: &Path, between: Between, traced: &mut Traced) -> Result<()> {
    let logs = ["trace.jsonl", "log_writes.jsonl"].map(|name| trial.join(name));
    let path = logs.iter().find(|path| path.exists()).unwrap_or(&logs[0]);
    let log = match plain::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        log => log.with_context(|| path.display().to_string())?,
    };
    if let Origin::Trials(count) = &mut traced.origin {
        *count += 1;
    }
    let mut operations = Operations::new(between);
    traced.account.begin();
    let mut is_open = false;
    file::read(BufReader::new(log), &mut |line| {
        match line {
            Line::Head(head) => {
                traced.cut_off += u32::from(is_open);
                is_open = true;
                operations = Operations::new(between);
                traced.account.begin();
                traced.unnamed = traced.unnamed.take().or(head.unnamed);
            }
            Line::Item(item) => take(item, &mut operations, traced),
            Line::End(end) => {
                is_open = false;
                traced.lost_events += end.lost_events;
            }
        }
        Ok(())
    })
    .with_context(|| path.display().to_string())?;
    traced.cut_off += u32::from(is_open);
    Ok(())
}

/// What the first trial without a log says.
fn why_none(folder: &Path, records: &[Record]) -> String {
    let said = records.iter().find_map(|record| {
        if let fsverdict_core::model::Outcome::Failed(failure) = &record.outcome {
            return Some(format!("{}: {}", failure.step, failure.error));
        }
        let trial = folder.join("trials").join(record.number.to_string());
        let text = source::text(&trial.join("raw/trial.stderr")).ok()?;
        text.lines().find(|line| line.contains("can't be recorded")).map(String::from)
    });
    let said = said.unwrap_or_else(|| "record one by fsverdict run --probe trace".into());
    format!("{} holds no recorded requests: {said}", folder.display())
}
