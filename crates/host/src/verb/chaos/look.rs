//! What a run leaves on the machine: looked for before and after it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::ground::Ground;
use super::promise::Promise;
use crate::bed::own;
use crate::machine::folder::entries;
use crate::machine::tracing;
use crate::{machine, sys, undo};

/// How long something that is about to go is waited for: udev, the kernel's own clean-up, and other
/// programs of the machine that come and go.
const PATIENCE: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(20);
/// Said of a zram device that has no size yet: whose it is can't be known.
const NEW: &str = ", just added";

/// All there is, one text for each thing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    processes: BTreeSet<String>,
    mounts: BTreeSet<String>,
    devices: BTreeSet<String>,
    files: BTreeSet<String>,
    settings: BTreeSet<String>,
    open: BTreeSet<String>,
}

impl Seen {
    /// Looks.
    pub fn now(ground: &Ground) -> Seen {
        sys::reap_all();
        Seen {
            processes: processes(),
            mounts: lines("/proc/self/mounts"),
            devices: devices(ground),
            files: files(ground),
            settings: settings(ground),
            open: open(),
        }
    }

    /// What is new since `before`, or gone, by the promise that it breaks.
    fn beyond(&self, before: &Seen) -> Vec<(Promise, String)> {
        let pairs = [
            (Promise::Processes, &self.processes, &before.processes),
            (Promise::Mounts, &self.mounts, &before.mounts),
            (Promise::Devices, &self.devices, &before.devices),
            (Promise::Files, &self.files, &before.files),
            (Promise::Settings, &self.settings, &before.settings),
            (Promise::Open, &self.open, &before.open),
        ];
        let differs = |(promise, now, then): &(Promise, &BTreeSet<String>, &BTreeSet<String>)| {
            let texts: Vec<&str> = now.symmetric_difference(then).map(String::as_str).collect();
            let texts: Vec<&str> = texts.into_iter().filter(|it| !is_anothers(it, now)).collect();
            (!texts.is_empty()).then(|| (*promise, texts.join("; ")))
        };
        pairs.iter().filter_map(differs).collect()
    }

    /// Whatever of a run is still there when it has had its time to go.
    pub fn left(&self, ground: &Ground) -> Vec<(Promise, String)> {
        let start = Instant::now();
        loop {
            let left = Seen::now(ground).beyond(self);
            if left.is_empty() || start.elapsed() > PATIENCE {
                return left;
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// A device in compressed memory that somebody was adding before, and that has its size by now.
fn is_anothers(text: &str, now: &BTreeSet<String>) -> bool {
    text.ends_with(NEW) && !now.contains(text)
}

/// Waits until no process is left but ours, the first of the namespace; false if one stays.
pub fn until_alone() -> bool {
    let start = Instant::now();
    while !processes().is_empty() {
        if start.elapsed() > PATIENCE {
            return false;
        }
        std::thread::sleep(PAUSE);
        sys::reap_all();
    }
    true
}

fn lines(path: &str) -> BTreeSet<String> {
    fs::read_to_string(path).unwrap_or_default().lines().map(String::from).collect()
}

/// Every process of our PID namespace but its first, which we are.
fn processes() -> BTreeSet<String> {
    let others = machine::processes::numbers_in(Path::new("/proc")).filter(|number| *number != 1);
    let shown = |number: u32| {
        let text = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&text).replace('\0', " ");
        format!("process {number} {}", words.trim())
    };
    others.map(shown).collect()
}

/// Loop devices on images of ours, and zram devices that may be. Other programs have such devices
/// too, whose images are elsewhere, or of other sizes.
fn devices(ground: &Ground) -> BTreeSet<String> {
    let (disk, zram_bytes) = (ground.disk(), ground.zram_bytes().to_string());
    let mut found = BTreeSet::new();
    for block in entries("/sys/block") {
        let name = block.file_name().unwrap_or_default().display().to_string();
        let text = |file: &str| fs::read_to_string(block.join(file)).unwrap_or_default();
        let backing = text("loop/backing_file");
        if Path::new(backing.trim()).starts_with(&disk) || is_in_our_memory(&name, &backing) {
            found.insert(format!("{name} on {}", backing.trim()));
        }
        match text("disksize").trim() {
            "0" if name.starts_with("zram") => found.insert(format!("{name}{NEW}")),
            size if size == zram_bytes => found.insert(name),
            _ => false,
        };
    }
    found.extend(upon(&found));
    found
}

/// Loop devices upon those: where limits hold requests down.
fn upon(found: &BTreeSet<String>) -> Vec<String> {
    let ours = |node: &str| found.iter().any(|it| it.split(' ').next() == Some(node));
    let blocks = entries("/sys/block").filter_map(|block| {
        let backing = fs::read_to_string(block.join("loop/backing_file")).ok()?;
        let name = block.file_name()?.display().to_string();
        let node = backing.trim().strip_prefix("/dev/")?;
        ours(node).then(|| format!("{name} upon {node}"))
    });
    blocks.collect()
}

/// Our tmpfs is none of another namespace, though images there are called the same.
fn is_in_our_memory(name: &str, backing: &str) -> bool {
    let memory = Path::new("/dev/shm");
    let is_there = Path::new(backing).starts_with(memory);
    let node = || File::open(format!("/dev/{name}")).ok();
    let behind = || sys::loop_backing(&node()?).ok()?;
    let ours = || memory.metadata().ok().map(|data| data.dev());
    is_there && behind().map(|it| it.file.0) == ours()
}

/// Journals, images, folders of ours; whatever lies where only runs leave something.
fn files(ground: &Ground) -> BTreeSet<String> {
    let disk = ground.disk();
    let journals = entries(undo::registry().join("journals"));
    let memory = entries("/dev/shm");
    let places = ["one", "two", "tmp", "own", "run"].map(|name| disk.join(name));
    let on_disk = places.iter().flat_map(entries).chain(entries(&disk));
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(own::PREFIX) || path.parent() == Some(&disk.join("tmp"))
    };
    let found = journals.chain(memory).chain(on_disk.filter(is_ours));
    found.map(|path| path.display().to_string()).collect()
}

/// The sysctl and the queue that the plans set, limits of our device, and control groups.
fn settings(ground: &Ground) -> BTreeSet<String> {
    let node = ground.device();
    let name = Path::new(&node).file_name().unwrap_or_default().display().to_string();
    let queue = entries(format!("/sys/block/{name}/queue"));
    let files = queue.chain(["/proc/sys/net/core/somaxconn".into()]);
    let shown = |path: PathBuf| {
        let value = fs::read_to_string(&path).ok()?;
        Some(format!("{} = {}", path.display(), value.trim()))
    };
    let mut found: BTreeSet<String> = files.filter_map(shown).collect();
    let tokens = tokens(&ground.run());
    groups(Path::new("/sys/fs/cgroup"), &tokens, &mut found);
    found.extend(rules(ground.iops()));
    // A machine without tracefs has none.
    let traces = tracing::instances().unwrap_or_default().into_iter();
    found.extend(traces.filter(|name| tokens.iter().any(|token| name.contains(token))));
    found
}

/// Rules of version 1's limits that let so many requests through, on whatever device.
fn rules(iops: u64) -> Vec<String> {
    let folder = Path::new("/sys/fs/cgroup/blkio");
    let own = format!(" {iops}");
    let of_way = |way: &str| {
        let name = format!("blkio.throttle.{way}_iops_device");
        let text = fs::read_to_string(folder.join(&name)).unwrap_or_default();
        let its = text.lines().filter(|line| line.ends_with(&own));
        its.map(|line| format!("{name}: {line}")).collect::<Vec<_>>()
    };
    ["read", "write"].into_iter().flat_map(of_way).collect()
}

/// The names under which the labs of the run have made things: other runs of the machine have
/// control groups, too.
fn tokens(run: &Path) -> Vec<String> {
    let text = |trial: PathBuf| fs::read_to_string(trial.join("trial.json")).ok();
    let trials = entries(run.join("trials")).filter_map(text);
    let lab = |text: String| {
        let trial: serde_json::Value = serde_json::from_str(&text).ok()?;
        Some(trial["bed"]["lab"].as_str()?.to_string())
    };
    trials.filter_map(lab).collect()
}

fn groups(folder: &Path, tokens: &[String], found: &mut BTreeSet<String>) {
    for path in entries(folder) {
        let is_folder = path.symlink_metadata().is_ok_and(|data| data.is_dir());
        if is_folder {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if tokens.iter().any(|token| name.contains(token)) {
                found.insert(path.display().to_string());
            }
            groups(&path, tokens, found);
        }
    }
}

/// Sockets, interfaces and shared memory of the namespaces.
fn open() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (file, headings) in
        [("net/tcp", 1), ("net/unix", 1), ("sysvipc/shm", 1), ("sysvipc/sem", 1)]
    {
        let count = lines(&format!("/proc/{file}")).len().saturating_sub(headings);
        found.insert(format!("{count} of {file}"));
    }
    let name = |line: String| line.split_once(':').map(|(name, _)| name.trim().to_string());
    found.extend(lines("/proc/net/dev").into_iter().filter_map(name));
    found
}
