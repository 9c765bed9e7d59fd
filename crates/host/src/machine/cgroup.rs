//! A cgroup for each trial: exactly the trial's processes run in it.
//!
//! One is made in each hierarchy that counts something of the trial: cgroup v2 (CPU time, pressure,
//! and limits, [`super::throttle`]), and of v1 cpuacct and memory. It lies within our own cgroup,
//! so that limits on us hold for the trial, too. In v2 a cgroup that has processes can give its
//! children no controllers (Documentation/admin-guide/cgroup-v2.rst, "No Internal Process
//! Constraint"): the trial's lies beside ours where that counts memory and nothing limits ours, and
//! within the root if it gets limits. The v1 hierarchy of blkio is left alone: there a rule of the
//! root binds processes in the root itself (block/blk-throttle.c, `throtl_pd_init`), and these are
//! our limits.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use fsverdict_core::model::Device;
use serde::{Deserialize, Serialize};

use super::mount::{self, Mount};
use super::processes::{Stat, numbers_in, uptime_ns};
use super::token::Token;
use crate::sys;

/// What the name of a cgroup begins with that holds one trial and nothing else.
const OWN: &str = "fsverdict-trial-";

/// A cgroup's processes; writing a number there moves one in.
const PROCESSES: &str = "cgroup.procs";

/// The controllers of the cgroups within one; `+io` and `-io` change them.
const CONTROLLERS: &str = "cgroup.subtree_control";

/// What a process that is killed takes to be gone, and a thread of the kernel that goes with a
/// mount.
const PATIENCE: Duration = Duration::from_secs(10);

/// A hierarchy of cgroups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hierarchy {
    /// Version 2, which has all controllers that no hierarchy of version 1 has.
    Unified,
    /// The one of version 1 with this controller.
    First(&'static str),
}

/// Those in which a trial has one.
const HIERARCHIES: [Hierarchy; 3] =
    [Hierarchy::Unified, Hierarchy::First("cpuacct"), Hierarchy::First("memory")];

impl Hierarchy {
    /// In words.
    pub fn name(self) -> String {
        match self {
            Hierarchy::Unified => "cgroup v2".into(),
            Hierarchy::First(controller) => format!("{controller} of v1"),
        }
    }

    /// Where it is mounted, and what of it.
    fn mount(self, root: &Path) -> Option<Mount> {
        let is_it = |mount: &Mount| match self {
            Hierarchy::Unified => mount.file_system == "cgroup2",
            Hierarchy::First(controller) => {
                mount.file_system == "cgroup" && mount.options.iter().any(|it| it == controller)
            }
        };
        mount::all(&root.join("proc")).ok()?.into_iter().find(is_it)
    }

    /// Where it is mounted.
    pub fn at(self, root: &Path) -> Option<PathBuf> {
        Some(root.join(self.mount(root)?.at.trim_start_matches('/')))
    }

    /// The cgroup of it that we are in: cgroups(7), "/proc/pid/cgroup".
    fn ours(self, root: &Path) -> Option<PathBuf> {
        let mount = self.mount(root)?;
        let text = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
        let path = text.lines().find_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            let is_it = match self {
                Hierarchy::Unified => controllers.is_empty(),
                Hierarchy::First(controller) => controllers.split(',').any(|it| it == controller),
            };
            is_it.then_some(path)
        })?;
        let below = Path::new(path).strip_prefix(&mount.root).ok()?;
        let folder = root.join(mount.at.trim_start_matches('/')).join(below);
        folder.is_dir().then_some(folder)
    }

    /// Where those of trials are made: in ours, or beside it if memory is counted there alone and
    /// ours limits nothing.
    fn home(self, root: &Path) -> Option<PathBuf> {
        let ours = self.ours(root)?;
        let top = self.at(root)?;
        let above = ours.parent().filter(|_| self == Hierarchy::Unified && ours != top);
        // Ours has that file where the cgroup above counts memory, and the kernel the most of it.
        let is_better = |above: &&Path| {
            ours.join(MEMORY_PEAK).exists() && !is_limited(&ours, above) && can_enter(above)
        };
        Some(above.filter(is_better).map(PathBuf::from).unwrap_or(ours))
    }

    /// The same, if it is the trial's own.
    pub fn own(self, root: &Path) -> Option<PathBuf> {
        let ours = self.ours(root)?;
        ours.file_name()?.to_str()?.starts_with(OWN).then_some(ours)
    }
}

/// The most memory that a cgroup of version 2 has had, since Linux 5.19. It counts from its making.
pub const MEMORY_PEAK: &str = "memory.peak";

/// What limits a cgroup of version 2 or favours others, and what each says where it does not.
const LIMITS: [(&str, &str); 10] = [
    ("cpu.idle", "0"),
    ("cpu.max", "max 100000"),
    ("cpu.weight", "100"),
    ("io.latency", ""),
    ("io.max", ""),
    ("io.weight", "default 100"),
    ("memory.high", "max"),
    ("memory.max", "max"),
    ("memory.swap.max", "max"),
    ("memory.zswap.max", "max"),
];

/// How many tasks there may be. systemd limits them in every service and scope but a login's, and
/// one beside ours gets the same limit.
const TASKS: &str = "pids.max";

/// Something limits this cgroup that one beside it would not have. Where the one above gives
/// processors, moving a process may undo taskset(1). Programs of BPF can't be seen.
fn is_limited(folder: &Path, above: &Path) -> bool {
    let limits = |(file, unlimited): &(&str, &str)| {
        fs::read_to_string(folder.join(file)).is_ok_and(|text| text.trim() != *unlimited)
    };
    gives("cpuset", above) || LIMITS.iter().any(limits)
}

/// The cgroups within this one of version 2 have that controller.
fn gives(controller: &str, folder: &Path) -> bool {
    let text = fs::read_to_string(folder.join(CONTROLLERS)).unwrap_or_default();
    text.split_whitespace().any(|it| it == controller)
}

/// We may move a process into it, or into one within it.
fn can_enter(folder: &Path) -> bool {
    File::options().write(true).open(folder.join(PROCESSES)).is_ok()
}

/// Where a run makes the cgroups of its trials: what stands in its journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Places {
    run: Token,
    /// Within our own cgroups, or beside one of them.
    within: Vec<PathBuf>,
    /// How many tasks ours of version 2 may have, for one beside it.
    #[serde(skip)]
    tasks: Option<String>,
    /// The root of version 2, for trials with limits of their own.
    root: Option<PathBuf>,
}

impl Places {
    /// Those of the run of that token.
    pub fn find(root: &Path, run: &Token) -> Places {
        let within = HIERARCHIES.iter().filter_map(|hierarchy| hierarchy.home(root)).collect();
        let ours = Hierarchy::Unified.ours(root);
        let beside = ours.filter(|ours| Hierarchy::Unified.home(root).as_ref() != Some(ours));
        let tasks = beside.and_then(|ours| fs::read_to_string(ours.join(TASKS)).ok());
        Places { run: run.clone(), within, tasks, root: Hierarchy::Unified.at(root) }
    }

    fn prefix(&self) -> String {
        format!("{OWN}{}-", self.run)
    }

    /// The hierarchies in which a trial of ours can have one.
    pub fn offered(root: &Path) -> Vec<Hierarchy> {
        let is_open = |it: &Hierarchy| it.home(root).is_some_and(|home| can_enter(&home));
        HIERARCHIES.into_iter().filter(is_open).collect()
    }

    /// How much memory a trial takes is counted in one of those.
    pub fn count_memory(root: &Path) -> bool {
        let has_peak = |home: PathBuf| {
            let within = fs::read_dir(home).into_iter().flatten().flatten();
            within.into_iter().any(|it| it.path().join(MEMORY_PEAK).exists())
        };
        Places::offered(root).iter().any(|it| match it {
            Hierarchy::Unified => it.home(root).is_some_and(has_peak),
            Hierarchy::First(controller) => *controller == Controller::Memory.name(),
        })
    }

    /// Makes those of trial `number`. Where one can't be made the trial does without it.
    pub fn make(&self, number: u32) -> Made {
        let mut made = Made::default();
        self.within.iter().for_each(|within| made.add(&self.named(within, number)));
        for (folder, tasks) in made.folders.iter().zip(self.tasks.iter().cycle()) {
            // Version 1 has no such file there.
            let limit = folder.join(TASKS);
            let _ = limit.exists().then(|| fs::write(limit, tasks));
        }
        made
    }

    /// Makes that of trial `number` in which `devices` are to be held down.
    pub fn make_limited(&self, number: u32, devices: &[Device]) -> Made {
        let mut made = Made::default();
        made.guarded = Guarded::of(devices);
        self.root.iter().for_each(|root| made.add(&self.named(root, number)));
        made
    }

    fn named(&self, within: &Path, number: u32) -> PathBuf {
        within.join(format!("{}{number}", self.prefix()))
    }

    /// Removes what is left of all of them, with the processes in them. Only cgroups are touched,
    /// and of these the run's alone.
    pub fn clear(&self) -> io::Result<()> {
        let prefix = self.prefix();
        let is_cgroup = |within: &&PathBuf| {
            let mount = mount::holding(within).ok().flatten();
            mount.is_some_and(|mount| mount.file_system.starts_with("cgroup"))
        };
        for within in self.within.iter().chain(&self.root).filter(is_cgroup) {
            for entry in fs::read_dir(within).into_iter().flatten().flatten() {
                if entry.file_name().to_str().is_some_and(|name| name.starts_with(&prefix)) {
                    remove(&entry.path())?;
                }
            }
        }
        Ok(())
    }
}

/// The cgroups of one trial. They are removed, with whatever still runs in them, when this is gone.
#[derive(Debug, Default)]
pub struct Made {
    folders: Vec<PathBuf>,
    doors: Vec<File>,
    guarded: Guarded,
}

impl Made {
    fn add(&mut self, folder: &Path) {
        if fs::create_dir(folder).is_ok() {
            self.doors.extend(File::options().write(true).open(folder.join(PROCESSES)));
            self.folders.push(folder.into());
        }
    }

    /// Has `command` start in them, as far as it may.
    pub fn enter(&self, command: &mut Command) -> io::Result<()> {
        sys::start_in_cgroups(command, &self.doors)
    }

    /// Brings the threads of the trial's file system in, where devices are held down: a journal is
    /// written by one. Those of a mount are new, so this is asked again and again.
    pub fn bring_in_threads(&self) {
        for thread in self.guarded.threads(Path::new("/proc")) {
            for mut door in &self.doors {
                // The kernel refuses a thread that can't be moved, and one may end meanwhile.
                let _ = door.write_all(thread.to_string().as_bytes());
            }
        }
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        for folder in &self.folders {
            // One that can't be removed stands in the journal.
            let _ = remove(folder);
        }
    }
}

/// Whose threads belong to the trial: those of a file system on these disks, by their names.
#[derive(Debug, Default)]
struct Guarded {
    /// `loop3`, `7:3`.
    names: Vec<String>,
    /// Threads that do not say whose they are are the trial's if they began after it.
    since_ticks: u64,
}

/// Threads of Btrfs and NILFS2, whose names say nothing of a disk. A name of more than 15 letters
/// is cut (TASK_COMM_LEN).
const NAMELESS: [&str; 3] = ["btrfs-cleaner", "btrfs-transacti", "segctord"];

impl Guarded {
    fn of(devices: &[Device]) -> Guarded {
        let both = |device: &Device| {
            let [major, minor] = device.number;
            let name = Path::new(&device.path).file_name().map(|it| it.to_string_lossy().into());
            [name, Some(format!("{major}:{minor}"))]
        };
        let names = devices.iter().flat_map(both).flatten().collect();
        Guarded { names, since_ticks: uptime_ns() / (1_000_000_000 / sys::ticks_per_second()) }
    }

    /// `jbd2/loop3-8`, `jbd2/loop3p1-8`, `xfsaild/dm-0`, `f2fs_gc-7:3`: the device's name, or a
    /// partition's, between a letter that is part of neither and the end, or another such.
    fn is_named(&self, thread: &str) -> bool {
        let ends = |c: char| c == '/' || c == '-';
        let is_one = |name: &String| {
            let after = thread.split_once(ends).map(|(_, after)| after);
            let rest = after.and_then(|after| after.strip_prefix(name.as_str()));
            rest.is_some_and(|rest| {
                let part = match name.ends_with(|c: char| c.is_ascii_digit()) {
                    true => rest.strip_prefix('p'),
                    false => Some(rest),
                };
                let rest =
                    part.map_or(rest, |it| it.trim_start_matches(|c: char| c.is_ascii_digit()));
                rest.is_empty() || rest.starts_with(ends)
            })
        };
        // The kernel's shared workers are called after what they do last.
        !thread.starts_with("kworker") && self.names.iter().any(is_one)
    }

    fn threads(&self, proc: &Path) -> Vec<u32> {
        if self.names.is_empty() {
            return Vec::new();
        }
        let is_ours = |&number: &u32| {
            let stat = Stat::read(&proc.join(number.to_string())).filter(Stat::is_kernels);
            stat.is_some_and(|stat| {
                let is_new = || stat.began().is_some_and(|began| began >= self.since_ticks);
                let is_nameless = || NAMELESS.iter().any(|name| stat.name.starts_with(name));
                self.is_named(&stat.name) || is_nameless() && is_new()
            })
        };
        numbers_in(proc).filter(is_ours).collect()
    }
}

/// A controller that limits need: without the second no cgroup is charged for writeback
/// (Documentation/admin-guide/cgroup-v2.rst, "Writeback").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Controller {
    /// Limits.
    Io,
    /// Whose page a page is.
    Memory,
}

impl Controller {
    fn name(self) -> &'static str {
        match self {
            Controller::Io => "io",
            Controller::Memory => "memory",
        }
    }

    /// Those that limits need and the cgroups in the root of version 2 do not have.
    pub fn missing(root: &Path) -> Vec<Controller> {
        let file = Hierarchy::Unified.at(root).map(|at| at.join(CONTROLLERS));
        let text = file.and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default();
        let has =
            |controller: &Controller| text.split(' ').any(|it| it.trim() == controller.name());
        [Controller::Io, Controller::Memory].into_iter().filter(|it| !has(it)).collect()
    }

    /// Gives it to them.
    pub fn give(self, root: &Path) -> io::Result<()> {
        self.write(root, '+')
    }

    /// Takes it away from them again, unless cgroups below give it on by now. A kernel that does
    /// not have it has not given it.
    pub fn take_back(self, root: &Path) -> io::Result<()> {
        use io::ErrorKind::{InvalidInput, ResourceBusy};
        match self.write(root, '-') {
            Err(error) if matches!(error.kind(), ResourceBusy | InvalidInput) => Ok(()),
            result => result,
        }
    }

    fn write(self, root: &Path, sign: char) -> io::Result<()> {
        let at = Hierarchy::Unified.at(root).ok_or(io::ErrorKind::NotFound)?;
        fs::write(at.join(CONTROLLERS), format!("{sign}{}", self.name()))
    }
}

/// Removes a cgroup. Processes that are still in it are killed first: only the trial's own enter
/// it. The kernel refuses to remove one that is not empty, and version 1 can't kill; but there a
/// trial has a PID namespace, which ends its processes.
fn remove(folder: &Path) -> io::Result<()> {
    const PAUSE: Duration = Duration::from_millis(2);
    let name = folder.file_name().and_then(|name| name.to_str());
    assert!(name.is_some_and(|it| it.starts_with(OWN)), "all processes in a cgroup of ours end");
    let began = Instant::now();
    loop {
        match fs::remove_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if began.elapsed() >= PATIENCE => return Err(error),
            Err(_) => {}
            Ok(()) => return Ok(()),
        }
        // Since Linux 5.14.
        let _ = fs::write(folder.join("cgroup.kill"), "1");
        std::thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "22 1 0:5 / /proc rw - proc proc rw\n\
         30 1 0:26 /docker/7 /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
         31 1 0:27 / /cg/memory rw - cgroup cgroup rw,memory\n\
         32 1 0:28 / /cg/unified rw - cgroup2 cgroup2 rw\n";

    /// A machine on which we are in these cgroups.
    fn machine(ours: &str, folders: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("proc/self")).unwrap();
        fs::write(root.path().join("proc/self/mountinfo"), MOUNTS).unwrap();
        fs::write(root.path().join("proc/self/cgroup"), ours).unwrap();
        for folder in folders {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        root
    }

    #[test]
    fn a_trials_cgroups_lie_in_ours_and_limits_need_the_root() {
        let ours = "4:memory:/a\n3:cpu,cpuacct:/docker/7/b\n0::/user.slice/c\n";
        let folders = ["cg/cpu/b", "cg/unified/user.slice/c"];
        let root = machine(ours, &folders);
        let places = Places::find(root.path(), &Token::random().unwrap());
        let path = |path: &str| root.path().join(path);
        assert_eq!(places.within, [path("cg/unified/user.slice/c"), path("cg/cpu/b")]);
        let names = |within: &str| fs::read_dir(path(within)).unwrap().count();
        let made = places.make(7);
        assert_eq!((names("cg/unified/user.slice/c"), names("cg/cpu/b")), (1, 1));
        // A folder of ours has no door.
        assert!(made.doors.is_empty());
        drop(made);
        assert_eq!((names("cg/unified/user.slice/c"), names("cg/cpu/b")), (0, 0));
        let made = places.make_limited(8, &[]);
        assert_eq!((names("cg/unified"), names("cg/cpu/b")), (2, 0));
        drop(made);
        fs::create_dir(path("cg/cpu/b").join(format!("{}8", places.prefix()))).unwrap();
        places.clear().unwrap();
        assert_eq!(names("cg/cpu/b"), 1, "it is no cgroup");
    }

    #[test]
    fn one_of_version_2_lies_beside_ours_where_memory_is_counted_and_nothing_limits_us() {
        let folders = ["cg/unified/user.slice/c", "cg/cpu/b"];
        let root = machine("0::/user.slice/c\n", &folders);
        let write = |file: &str, text: &str| fs::write(root.path().join(file), text).unwrap();
        let lies_in = || Places::find(root.path(), &Token::random().unwrap()).within;
        let [beside, within] =
            ["cg/unified/user.slice", folders[0]].map(|it| vec![root.path().join(it)]);
        for folder in ["cg/unified", "cg/unified/user.slice", folders[0]] {
            write(&format!("{folder}/{PROCESSES}"), "");
        }
        assert_eq!(lies_in(), within, "nothing is counted above");
        assert!(!Places::count_memory(root.path()));
        for (file, text) in [("memory.peak", "0"), ("cpu.max", "max 100000"), ("io.max", "")] {
            write(&format!("{}/{file}", folders[0]), &format!("{text}\n"));
        }
        assert_eq!(lies_in(), beside);
        assert!(Places::count_memory(root.path()));
        write("cg/unified/user.slice/c/pids.max", "400\n");
        let places = Places::find(root.path(), &Token::random().unwrap());
        assert_eq!((places.within, places.tasks.as_deref()), (beside, Some("400\n")));
        write("cg/unified/user.slice/cgroup.subtree_control", "cpuset memory\n");
        assert_eq!(lies_in(), within, "processors may be ours alone");
        write("cg/unified/user.slice/cgroup.subtree_control", "memory\n");
        write("cg/unified/user.slice/c/memory.high", "9999\n");
        assert_eq!(lies_in(), within, "what limits us limits the trial");
        // The whole hierarchy has nothing beside it.
        let root = machine("0::/\n", &["cg/unified"]);
        let places = Places::find(root.path(), &Token::random().unwrap());
        assert_eq!(places.within, [root.path().join("cg/unified")]);
    }

    fn thread(root: &Path, number: u32, name: &str, (flags, began): (u64, u64)) {
        let folder = root.join(number.to_string());
        fs::create_dir_all(&folder).unwrap();
        let zeros = "0 ".repeat(12);
        let stat = format!("{number} ({name}) I 2 0 0 0 -1 {flags} {zeros}{began} 0\n");
        fs::write(folder.join("stat"), stat).unwrap();
    }

    #[test]
    fn threads_of_the_file_system_are_told_by_their_names() {
        const KERNELS: u64 = 0x0020_0000;
        let device = Device { path: "/dev/loop3".into(), number: [7, 3], size_bytes: 0 };
        let mapped = Device { path: "/dev/dm-0".into(), number: [254, 0], size_bytes: 0 };
        let guarded = Guarded { since_ticks: 100, ..Guarded::of(&[device, mapped]) };
        let proc = tempfile::tempdir().unwrap();
        let all = [
            (1, "jbd2/loop3-8", 5),
            (2, "xfsaild/loop3", 5),
            (3, "f2fs_gc-7:3", 5),
            (4, "btrfs-transaction", 100),
            (5, "jbd2/loop3p1-8", 5),
            (6, "jbd2/dm-0-8", 5),
            (11, "jbd2/loop30-8", 500),
            (12, "jbd2/vda-8", 500),
            (18, "jbd2/dm-01-8", 500),
            (13, "f2fs_gc-7:30", 500),
            (14, "btrfs-transaction", 99),
            (15, "kworker/u8:3-loop3", 500),
            (16, "loop3", 500),
        ];
        for (number, name, began) in all {
            thread(proc.path(), number, name, (KERNELS, began));
        }
        thread(proc.path(), 17, "xfsaild/loop3", (0, 500));
        let mut found = guarded.threads(proc.path());
        found.sort_unstable();
        assert_eq!(found, [1, 2, 3, 4, 5, 6]);
        assert!(Guarded::default().threads(proc.path()).is_empty());
    }

    #[test]
    fn controllers_are_given_where_they_are_missing() {
        let root = machine("0::/\n", &["cg/unified"]);
        let file = root.path().join("cg/unified").join(CONTROLLERS);
        fs::write(&file, "cpu memory pids\n").unwrap();
        assert_eq!(Controller::missing(root.path()), [Controller::Io]);
        Controller::Io.give(root.path()).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "+io");
        Controller::Io.take_back(root.path()).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "-io");
    }

    #[test]
    fn one_that_holds_others_too_is_not_our_own() {
        let own = "fsverdict-trial-0123456789abcdef-7";
        let ours = format!("3:cpu,cpuacct:/docker/7/{own}\n4:memory:/{own}\n0::/user.slice\n");
        let folders = [format!("cg/cpu/{own}"), "cg/unified/user.slice".into()];
        let root = machine(&ours, &folders.each_ref().map(String::as_str));
        let own = |hierarchy: Hierarchy| hierarchy.own(root.path());
        assert_eq!(own(Hierarchy::First("cpuacct")), Some(root.path().join(&folders[0])));
        assert_eq!(own(Hierarchy::First("memory")), None, "it is not to be seen");
        assert_eq!(own(Hierarchy::First("blkio")), None, "it is not mounted");
        assert_eq!(own(Hierarchy::Unified), None, "it is everybody's");
    }
}
