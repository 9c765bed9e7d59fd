//! What a trial's document means on this machine: its folders, its devices and its commands.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fsverdict_core::model::{BedKind, Command, Device, Trial, Workload};
use fsverdict_core::run::{HostError, Step};

use crate::bed::partition;
use crate::file_system::{FileSystem, Site};
use crate::layer;
use crate::machine::cell::{Cells, Ground, Mapped};
use crate::place::link;
use crate::tool::Argv;
use crate::workload::engine;
use crate::workload::engine::Scene;
use crate::workload::printed::Outputs;
use crate::workload::relay::Relay;

/// The folder of the work, in the file system or in the run's own folder.
pub const WORK: &str = "work";

/// The variable that names where the work may keep what its setup makes once.
pub const CACHE: &str = "FSVERDICT_CACHE";

/// The folder the work happens in: its own, so that `lost+found` is not part of it. On the bare
/// device there is none, and the tool works beside its output.
pub fn work_directory(trial: &Trial) -> PathBuf {
    let directory = Path::new(&trial.directory);
    match trial.bed.kind {
        _ if trial.contender.is_raw() => PathBuf::from(&trial.raw),
        _ => directory.join(WORK),
    }
}

/// Where a command leaves figures of its own.
pub fn figures_file(trial: &Trial) -> PathBuf {
    Path::new(&trial.raw).join("figures")
}

/// The device on which a trial without a file system works: one of its bed, and nothing else.
pub fn raw_device(trial: &Trial) -> Result<&str, HostError> {
    let device = trial.bed.devices.first().filter(|_| trial.bed.kind != BedKind::Directory);
    Ok(device.map(|it| it.path.as_str()).ok_or("this bed has no device of its own")?)
}

/// The command of the workload that a step runs, if it has one.
pub fn command_of(step: Step, workload: &Workload) -> Option<&Command> {
    match step {
        Step::Setup => workload.setup.as_ref(),
        Step::Prepare => workload.prepare.as_ref(),
        Step::Check => workload.check.as_ref(),
        Step::Cleanup => workload.cleanup.as_ref(),
        _ => None,
    }
}

/// The commands that make, mount or unmount the trial's file system.
pub fn commands(file_system: &FileSystem, step: Step, trial: &Trial) -> Vec<Argv> {
    with_site(trial, |site| match step {
        Step::MakeFileSystem => file_system.make(&trial.contender.mkfs, site),
        Step::Mount => file_system.mount(&trial.contender.mount, site),
        Step::Unmount => file_system.unmount(site),
        _ => Vec::new(),
    })
}

/// Where the trial's file system is.
pub fn with_site<T>(trial: &Trial, use_it: impl FnOnce(&Site) -> T) -> T {
    let on = |disk: &Device| match trial.contender.partition.is_empty() {
        true => disk.path.clone(),
        false => partition::node(&disk.path),
    };
    let devices = layer::top(&trial.contender.layers, trial.bed.devices.iter().map(on).collect());
    use_it(&Site { devices: &devices, at: &trial.directory })
}

/// Where the trial's work is done, and with what.
pub fn scene<'a>(
    trial: &'a Trial,
    environment: &'a BTreeMap<String, String>,
    cells: Option<&'a Cells>,
    outputs: &'a Outputs,
    relay: &'a Relay,
) -> Result<Scene<'a>, HostError> {
    let device = trial.contender.is_raw().then(|| raw_device(trial)).transpose()?;
    Ok(Scene {
        workload: &trial.workload,
        directory: work_directory(trial),
        device,
        devices: &trial.bed.devices,
        raw: Path::new(&trial.raw),
        cells,
        outputs,
        environment,
        seed: trial.seed,
        has_servers: false,
        relay: trial.in_turns.then_some(relay),
        marks: None,
    })
}

/// What the work of `trial` may see and write.
pub fn ground(trial: &Trial, environment: &BTreeMap<String, String>) -> Ground {
    let is_raw = trial.contender.is_raw();
    let workload = &trial.workload;
    let commands = [&workload.command, &workload.setup, &workload.prepare];
    let commands = commands.into_iter().chain([&workload.check, &workload.cleanup]).flatten();
    let mut texts: Vec<String> = commands.flat_map(Command::argv).collect();
    texts.extend(workload.work().map(|work| engine(work).files()).unwrap_or_default());
    texts.extend(environment.values().chain(&workload.needs).cloned());
    texts.extend(std::env::var("PATH"));
    let here = std::env::current_dir().map(|folder| folder.display().to_string());
    let named = texts.iter().chain(&here).flat_map(|text| paths_in(text)).collect();
    let device = is_raw.then(|| raw_device(trial).ok()).flatten();
    let networks = workload.link().map(|_| link::clients());
    let opened = trial.writable.iter().map(PathBuf::from);
    let cache = environment.get(CACHE).map(PathBuf::from);
    // Not more of the file system: the folder itself is not to become a link to somewhere else.
    let own = [work_directory(trial), PathBuf::from(&trial.raw)].into_iter();
    let mapped = workload.map.iter().map(|(at, place)| Mapped {
        at: at.into(),
        to: Some([work_directory(trial), place.into()]),
    });
    let bed = trial.bed.kind != BedKind::Directory && !is_raw;
    Ground {
        bed: bed.then(|| PathBuf::from(&trial.directory)),
        writable: own.chain(opened).chain(cache).collect(),
        named,
        kept: networks.into_iter().collect(),
        devices: device.into_iter().map(PathBuf::from).collect(),
        mapped: mapped.collect(),
    }
}

/// The absolute paths that a text may hold.
fn paths_in(text: &str) -> impl Iterator<Item = PathBuf> {
    let ends = |c: char| c.is_whitespace() || ":=,;'\"<>()&|".contains(c);
    text.split(ends).filter(|word| word.len() > 1 && word.starts_with('/')).map(PathBuf::from)
}
