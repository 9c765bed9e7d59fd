//! What a trial's document means on this machine: its folders, its devices and its commands.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fsverdict_core::model::{BedKind, Command, Device, Trial, Workload};
use fsverdict_core::run::{HostError, Step};

use crate::bed::partition;
use crate::file_system::{self, FileSystem, Site};
use crate::layer::{self, Names};
use crate::machine::cell::{Cells, Ground, Mapped};
use crate::machine::mount::Mount;
use crate::machine::token::Token;
use crate::machine::within;
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

/// Which of a trial's devices its file system is made on: partitions, or what layers provide.
pub fn devices(trial: &Trial) -> Vec<String> {
    let on = |disk: &Device| match trial.contender.partition.is_empty() {
        true => disk.path.clone(),
        false => partition::node(&disk.path),
    };
    layer::top(&trial.contender.layers, trial.bed.devices.iter().map(on).collect(), &names(trial))
}

/// What devices of its layers are called. A host has others, too.
pub fn names(trial: &Trial) -> Names {
    run_of(trial).map_or_else(Names::alone, |run| Names::of_run(&run))
}

/// The token in the names of what a trial leaves if it is killed. A guest goes as a whole.
pub fn run_of(trial: &Trial) -> Option<Token> {
    Token::parse(&trial.bed.lab).filter(|_| !within::is_guest())
}

/// One of the file systems that a trial mounts, each on the one below.
#[derive(Debug)]
pub struct Level<'a> {
    /// Which it is.
    pub file_system: &'static FileSystem,
    mkfs: &'a [String],
    /// The user's mount options.
    pub options: &'a [String],
    devices: Vec<String>,
    zoned: bool,
    run: String,
    /// Where it is mounted.
    pub at: String,
    below: String,
}

/// The file systems of `trial`, the one on its devices first, which is `lowest`. The last is
/// mounted where the work is.
pub fn levels<'a>(
    trial: &'a Trial,
    lowest: Option<&'static FileSystem>,
) -> Result<Vec<Level<'a>>, HostError> {
    let contender = &trial.contender;
    let unknown = |name: &str| HostError::from(format!("no file system is called {name:?}"));
    let at = |level: usize| match level == contender.above.len() {
        true => trial.directory.clone(),
        false => format!("{}-{level}", trial.directory),
    };
    let run = run_of(trial).map_or_else(String::new, String::from);
    let mut levels = vec![Level {
        file_system: lowest.ok_or_else(|| unknown(&contender.file_system))?,
        mkfs: &contender.mkfs,
        options: &contender.mount,
        devices: devices(trial),
        zoned: layer::is_zoned(&contender.layers),
        run: run.clone(),
        at: at(0),
        below: String::new(),
    }];
    for (level, above) in (1..).zip(&contender.above) {
        levels.push(Level {
            file_system: file_system::find(&above.name).ok_or_else(|| unknown(&above.name))?,
            mkfs: &above.options,
            options: &above.options,
            devices: Vec::new(),
            zoned: false,
            run: run.clone(),
            at: at(level),
            below: at(level - 1),
        });
    }
    Ok(levels)
}

/// A path on the file system whose inodes hold the work's cached pages: an overlay opens files of
/// the file system below; one of a program or a server has inodes of its own.
pub fn cached(trial: &Trial) -> String {
    let above = levels(trial, file_system::find(&trial.contender.file_system)).unwrap_or_default();
    let level = above.into_iter().rev().find(|level| level.file_system.has_inodes());
    level.map_or_else(|| trial.directory.clone(), |level| level.at)
}

impl Level<'_> {
    fn site(&self, again: bool) -> Site<'_> {
        let (zoned, devices, run) = (self.zoned, &self.devices, &self.run);
        Site { devices, at: &self.at, below: &self.below, again, zoned, run }
    }

    /// The commands that make, mount or unmount it, which may have been mounted before.
    pub fn commands(&self, step: Step, again: bool) -> Vec<Argv> {
        let site = &self.site(again);
        match step {
            Step::MakeFileSystem => self.file_system.make(self.mkfs, site),
            Step::Mount => self.file_system.mount(self.options, site),
            Step::Unmount => self.file_system.unmount(site),
            _ => Vec::new(),
        }
    }

    /// The mount is of its own devices, and of the whole: mount(8) reads words of the plan, and
    /// some make it mount something else. Btrfs mounts one of its subvolumes. Stacked file systems
    /// and pools have no device to compare.
    pub fn check_is_its_own(&self, mount: &Mount) -> Result<(), HostError> {
        let known = self.file_system;
        if self.devices.is_empty() || known.makes_pools() {
            return Ok(());
        }
        let number = |path: &str| std::fs::metadata(path).map(|it| it.rdev()).ok();
        let own: Vec<u64> = self.devices.iter().filter_map(|path| number(path)).collect();
        // bcachefs joins its devices: /dev/sda:/dev/sdb.
        let mut sources = mount.source.split(':');
        let is_of_its_devices = sources.any(|it| number(it).is_some_and(|it| own.contains(&it)));
        if is_of_its_devices && (mount.root == "/" || known.name == "btrfs") {
            return Ok(());
        }
        let (source, root, at) = (&mount.source, &mount.root, &self.at);
        Err(format!("{root} of {source} is mounted at {at}, which is not what was made there")
            .into())
    }

    /// Nobody has told it to have the machine panic: that is for guests.
    pub fn check_goes_on(&self) -> Result<(), HostError> {
        if within::is_guest() {
            return Ok(());
        }
        for device in &self.devices {
            if (self.file_system.has_panic)(Path::new(device))? {
                return Err("an error in what mkfs has made would have this machine panic: that \
                            takes a machine of its own, --place vm"
                    .into());
            }
        }
        Ok(())
    }

    /// The commands that end what has served it, once it is unmounted.
    pub fn take_down(&self) -> Vec<Argv> {
        self.file_system.take_down(&self.site(true))
    }

    /// The command that makes it of what was laid out, if that is how it is made.
    pub fn pack(&self) -> Option<Argv> {
        self.file_system.pack(self.mkfs, &self.site(false))
    }

    /// The program that gives it out to its mount, if one does, and its port.
    pub fn listener(&self) -> Option<(Argv, u16)> {
        self.file_system.listener(self.options, &self.site(true))
    }

    /// The program that mounts it, if one does.
    pub fn server(&self) -> Option<Argv> {
        self.file_system.server(self.options, &self.site(true))
    }

    /// What brings everything to the devices, where syncfs does not.
    pub fn commit(&self) -> Option<Argv> {
        self.file_system.commit(&self.site(true))
    }

    /// The kernel shows all mount options but defaults. It does not know a program's; and a file
    /// system above another may be there only from the second mount on.
    pub fn tells_all(&self, again: bool) -> bool {
        let begins_otherwise = self.file_system.is_upon || self.file_system.is_read_only();
        !self.file_system.is_programs() && (again || !begins_otherwise)
    }

    /// Syncfs on it does not reach what it is on.
    pub fn keeps_syncfs(&self) -> bool {
        self.file_system.keeps_syncfs(self.options)
    }
}

/// The file system that the work sees is a program's, or what one gives out.
fn is_served(trial: &Trial) -> bool {
    let lowest = file_system::find(&trial.contender.file_system);
    let levels = levels(trial, lowest).unwrap_or_default();
    let serves = |level: &Level| level.file_system.is_programs() || level.listener().is_some();
    levels.last().is_some_and(serves)
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
        is_served: is_served(trial),
        relay: trial.in_turns.then_some(relay),
        marks: None,
    })
}

/// What the work of `trial` may see and write.
pub fn ground(trial: &Trial, environment: &BTreeMap<String, String>) -> Ground {
    let is_raw = trial.contender.is_raw();
    let workload = &trial.workload;
    let mut texts: Vec<String> = workload.commands().flat_map(Command::argv).collect();
    texts.extend(workload.work().map(|work| engine(work).files()).unwrap_or_default());
    texts.extend(environment.values().chain(&workload.needs).chain(&workload.reads).cloned());
    texts.extend(std::env::var("PATH"));
    let folder = std::env::current_dir().map(|folder| folder.display().to_string());
    let named = texts.iter().chain(&folder).flat_map(|text| paths_in(text)).collect();
    let device = is_raw.then(|| raw_device(trial).ok()).flatten();
    let networks = workload.link().map(|_| link::clients());
    let opened = trial.writable.iter().map(PathBuf::from);
    let cache = environment.get(CACHE).map(PathBuf::from);
    // Others could run what root's work leaves there, as root.
    let shut = [Path::new(&trial.raw).parent(), cache.as_deref().and_then(Path::parent)];
    let mut shut: Vec<PathBuf> = shut.into_iter().flatten().map(PathBuf::from).collect();
    if trial.bed.kind == BedKind::Directory {
        shut.push(PathBuf::from(&trial.directory));
    }
    // Not more of the file system: the folder itself is not to become a link to somewhere else.
    let own = [work_directory(trial), PathBuf::from(&trial.raw)].into_iter();
    let mapped = workload.map.iter().map(|(at, place)| Mapped {
        at: at.into(),
        to: Some([work_directory(trial), place.into()]),
    });
    let bed = trial.bed.kind != BedKind::Directory && !is_raw;
    Ground {
        bed: bed.then(|| PathBuf::from(&trial.directory)),
        writable: own.chain(opened).collect(),
        named,
        kept: networks.into_iter().collect(),
        devices: device.into_iter().map(PathBuf::from).collect(),
        mapped: mapped.collect(),
        shut,
        kept_back: cache,
        ..Ground::default()
    }
}

/// The absolute paths that a text may hold: words, and what quotes, equals signs and colons part,
/// which may have blanks in it.
fn paths_in(text: &str) -> impl Iterator<Item = PathBuf> {
    let parts = |c: char| ":='\"".contains(c);
    let ends = move |c: char| c.is_whitespace() || parts(c) || ",;<>()&|".contains(c);
    let all = text.split(ends).chain(text.split(parts));
    all.filter(|word| word.len() > 1 && word.starts_with('/')).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_path_is_a_word_or_what_is_quoted() {
        let found = |text: &str| {
            let all = paths_in(text).map(|it| it.display().to_string());
            all.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>()
        };
        assert_eq!(found("PATH=/usr/bin:/bin"), ["/bin", "/usr/bin"]);
        assert_eq!(found("/home/a b/tool"), ["/home/a", "/home/a b/tool"]);
        let quoted = found("x '/tmp/my tools/run' --file=/tmp/f;");
        assert!(["/tmp/my tools/run", "/tmp/f"].iter().all(|it| quoted.contains(&(*it).into())));
        assert_eq!(found("a / b"), [""; 0]);
    }
}
