//! The inside of a virtual machine: fsverdict as its first process. It mounts what every machine
//! has, loads modules, runs one trial, writes what came out of it to the disk on which the trial
//! came in, and ends the machine.

use std::ffi::{CStr, CString};
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fsverdict_core::model::need::State;
use fsverdict_core::model::{Device, Guest, Layer, Record, Trial};
use fsverdict_core::run::HostError;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::archive::{self, Archive};
use super::disks;
use super::hung;
use super::loading::{self, Unloaded};
use super::nodes;
use super::shell::{self, Terminal};
use crate::bed::{Identity, Like};
use crate::machine::knob::Knob;
use crate::machine::processes::uptime_ns;
use crate::machine::settings::{self, Setting};
use crate::place::lease::Grant;
use crate::place::trial_process::{bare_trial_argv, machines_proc, trial_argv};
use crate::probe::offered;
use crate::sys::Awaited;
use crate::undo::Journal;
use crate::{file_system, layer, sys, tool};

/// What the kernel starts, a link to the program: by this name we know that we are the first
/// process of a machine, and not of a container.
pub const INIT: &str = "/init";
/// The folder of the modules; [`FIRST_MODULES`] names those that disks need, a line each.
pub const MODULES: &str = "/fsverdict/modules";
/// See [`MODULES`].
pub const FIRST_MODULES: &str = "/fsverdict/first-modules";
/// The name of the document that goes in.
pub const JOB: &str = "job.json";
/// The name of the document with what this file adds to the record.
pub const ANSWER: &str = "guest.json";
/// How often a guest says on its console that it lives.
const BEAT: Duration = Duration::from_secs(10);

const OUT: &str = "/fsverdict/out";
/// The trial as it is run here.
const TRIAL: &str = "/fsverdict/trial.json";
/// Somebody types at the console: [`beat`] says nothing.
static IS_TYPED_AT: AtomicBool = AtomicBool::new(false);
const MOUNT_POINT: &str = "/fsverdict/mnt";
/// Links that programs count on: mkfs.nilfs2, among others, looks in the first whether a device is
/// mounted, and zfs-fuse has its lock and its socket below the others.
const LINKS: [(&str, &str); 3] =
    [("/etc/mtab", "/proc/self/mounts"), ("/var/lock", "/run/lock"), ("/var/run", "/run")];
/// Servers look up their clients' names: without the file they would ask a network that is not
/// there.
const HOSTS: (&str, &str) = ("/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n");
/// Disks on a bus that is searched beside the boot take a moment to appear.
const DISK_PATIENCE: Duration = Duration::from_secs(60);
/// Those of drivers that are built in are there before the first process (init/main.c,
/// `kernel_init`, async_synchronize_full): where none is, another bus is to be tried.
const NO_DISK_PATIENCE: Duration = Duration::from_secs(5);
/// `newc`'s first bytes.
const MAGIC: &[u8; 6] = b"070701";
const MOUNTS: [(&CStr, &CStr); 2] = [(c"proc", c"/proc"), (c"sysfs", c"/sys")];
/// The second is where older kernels (before 4.1) have the first.
const TRACING: [(&CStr, &CStr); 2] =
    [(c"tracefs", c"/sys/kernel/tracing"), (c"debugfs", c"/sys/kernel/debug")];

/// This program's: a guest for other processors has another file of it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What goes in.
#[derive(Debug, Serialize, Deserialize)]
pub struct Job {
    /// The host's [`VERSION`].
    pub version: String,
    /// The trial, with the host's paths.
    pub trial: Trial,
    /// Modules to load for it, in order; paths below [`MODULES`].
    pub modules: Vec<String>,
    /// The module that has the driver of its file system, as the host expects it to be made.
    pub driver: String,
    /// `PATH` of its work.
    pub path: String,
    /// Disks to be tested.
    pub disks: usize,
    /// Every instruction is emulated.
    pub emulated: bool,
    /// The kernel is a process of the host's.
    pub user_mode: bool,
    /// Behind them there is one for marks, in the log of their writes.
    pub has_marks: bool,
    /// The disk that they are to be like.
    pub like: Option<Like>,
    /// Where somebody wants to look around when the trial is over.
    pub shell: Option<Terminal>,
}

/// See [`has_namespaces`].
const WITHOUT_NAMESPACES: &str =
    "namespaces of processes: what the work leaves running is not seen";

/// What comes out, besides the trial's own files.
#[derive(Debug, Serialize, Deserialize)]
pub struct Answer {
    /// The machine.
    pub guest: Guest,
    /// Why there is no record, where there is none.
    pub error: Option<String>,
}

/// We are the first process of a guest.
pub fn is_guest() -> bool {
    std::process::id() == 1 && std::env::args_os().next().is_some_and(|name| name == INIT)
}

/// The guest's whole life. It ends with the machine.
pub fn live() -> ! {
    if let Err(error) = serve() {
        say(&format!("fsverdict: {error}\n"));
    }
    let error = sys::restart();
    // The kernel panics when its first process ends, which ends the machine as well.
    panic!("the machine could not be ended: {error:?}");
}

fn serve() -> Result<(), HostError> {
    for (kind, at) in MOUNTS {
        fs::create_dir_all(path(at))?;
        sys::mount_kernel(kind, at).map_err(|error| format!("{kind:?}: {error}"))?;
    }
    let has_devtmpfs = sys::mount_kernel(c"devtmpfs", c"/dev").is_ok();
    // Not every kernel has either.
    let _ = TRACING.iter().find(|(kind, at)| sys::mount_kernel(kind, at).is_ok());
    // Nothing is mounted there: what the trial brings along may be below them.
    for folder in ["/etc", "/run/lock", "/tmp", "/var", MOUNT_POINT] {
        fs::create_dir_all(folder)?;
    }
    for (link, to) in LINKS.into_iter().filter(|(link, _)| fs::symlink_metadata(link).is_err()) {
        symlink(to, link)?;
    }
    if !fs::exists(HOSTS.0)? {
        fs::write(HOSTS.0, HOSTS.1)?;
    }
    // Servers of the work's are reached by it, as on any machine. A kernel may have no network.
    let _ = sys::loopback_up();
    fs::create_dir_all(Path::new(OUT).join("raw"))?;
    std::thread::Builder::new().spawn(beat)?;
    let first = fs::read_to_string(FIRST_MODULES)?;
    load(first.lines());
    let (disk, job) = find_job(first.is_empty())?;
    let unloaded = load(job.modules.iter().map(String::as_str));
    if !has_devtmpfs {
        nodes::make(Path::new("/"))?;
    }
    let mut guest = Guest {
        kernel: sys::kernel_release(),
        emulated: job.emulated,
        user_mode: job.user_mode,
        ..Guest::default()
    };
    guest.boot_ns = uptime_ns();
    guest.disks = disks::attached(&folder_of(&disk));
    guest.untold = missing_facts(Path::new("/"));
    guest.flushes_counted = Some(offered::counts_flushes(Path::new("/")));
    if !has_namespaces() {
        guest.untold.push(WITHOUT_NAMESPACES.into());
    }
    let (trial, terminal) = (job.trial.clone(), job.shell.clone());
    if terminal.is_none() {
        hung::panics(Path::new("/"));
    }
    // Otherwise a daemon would take the place of a file system whose module does not load.
    let error = match loading::why_missing(&job.driver, &unloaded) {
        Some(why) => Some(why),
        None => run(job, &disk).err().map(|error| error.to_string()),
    };
    if let Some(terminal) = terminal {
        IS_TYPED_AT.store(true, Ordering::Relaxed);
        let record: Option<Record> = document(&Path::new(OUT).join("record.json"));
        let trial = document(Path::new(TRIAL)).unwrap_or(trial);
        let console = if guest.user_mode { shell::uml() } else { shell::qemu() };
        return shell::look_around(&console, &terminal, &trial, record.as_ref(), error.as_deref());
    }
    let answer = serde_json::to_vec(&Answer { guest, error })?;
    fs::write(Path::new(OUT).join(ANSWER), answer)?;
    let mut out = Archive::new(BufWriter::new(File::create(&disk)?));
    out.folder("", Path::new(OUT))?;
    let file = out.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
    Ok(file.sync_all()?)
}

/// A document that is there.
fn document<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_str(&fs::read_to_string(path).ok()?).ok()
}

fn path(text: &CStr) -> &str {
    text.to_str().unwrap_or_default()
}

/// Whether the console took it: there may be none behind it, where `println` would panic.
fn say(text: &str) -> bool {
    let mut out = io::stdout();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_ok()
}

/// A carriage return now and then: it shows nothing, and says that we live.
fn beat() {
    loop {
        std::thread::sleep(BEAT);
        if !IS_TYPED_AT.load(Ordering::Relaxed) {
            say("\r");
        }
    }
}

/// Loads modules, and says on the console which did not.
fn load<'a>(files: impl Iterator<Item = &'a str>) -> Vec<Unloaded> {
    let unloaded = loading::load(Path::new(MODULES), files);
    for failed in &unloaded {
        say(&format!("fsverdict: {failed}\n"));
    }
    unloaded
}

/// A trial can have namespaces of its own. Kernels before 3.8 tell too little of theirs
/// (namespaces(7)), and do without.
fn has_namespaces() -> bool {
    let own = Path::new("/proc/self/ns");
    ["mnt", "pid", "ipc"].iter().all(|kind| own.join(kind).exists())
}

/// What probes of this kernel can't tell, or only in part.
fn missing_facts(root: &Path) -> Vec<String> {
    let answers = [offered::pressure, offered::counters].map(|ask| ask(root));
    answers.into_iter().filter_map(|it| (it.state != State::Yes).then_some(it.detail)).collect()
}

/// The disk on which the job came, and the job.
fn find_job(is_all_built_in: bool) -> Result<(PathBuf, Job), HostError> {
    let begin = Instant::now();
    while begin.elapsed() < DISK_PATIENCE {
        let disks = disks()?;
        if is_all_built_in && disks.is_empty() && begin.elapsed() > NO_DISK_PATIENCE {
            break;
        }
        for (disk, _) in disks {
            let mut magic = [0; MAGIC.len()];
            let Ok(mut file) = File::open(&disk) else { continue };
            if file.read_exact(&mut magic).is_ok() && magic == *MAGIC {
                let files = archive::files(BufReader::new(File::open(&disk)?))?;
                let job = files.get(JOB).ok_or("the disk holds no job")?;
                return Ok((disk, understood(job)?));
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Err(format!("no disk holds a job; this kernel sees {:?}", disks()?).into())
}

/// The job, where the program that has written it is of our version.
fn understood(job: &[u8]) -> Result<Job, HostError> {
    let version = serde_json::from_slice::<serde_json::Value>(job)?["version"].take();
    match version.as_str() {
        Some(VERSION) => Ok(serde_json::from_slice(job)?),
        other => Err(format!(
            "the guest has fsverdict {VERSION}, and the host {}: give it that one (fsverdict \
             kernels tools --arch ... --program FILE)",
            other.unwrap_or("one without a version")
        )
        .into()),
    }
}

/// The disks of this machine, with their folders in /sys, in the order of the buses.
fn disks() -> Result<Vec<(PathBuf, PathBuf)>, HostError> {
    let disks = disks::in_bus_order(Path::new("/sys/block"))?.into_iter().map(|(name, folder)| {
        nodes::make_one(&folder, Path::new("/dev"))?;
        Ok((Path::new("/dev").join(name), folder))
    });
    Ok(disks.collect::<io::Result<_>>()?)
}

/// The folder in `/sys` of the disk with that node.
fn folder_of(node: &Path) -> PathBuf {
    Path::new("/sys/block").join(node.file_name().unwrap_or_default())
}

/// The disks under test, once all of them are there.
fn beds(job_disk: &Path, count: usize) -> Result<Vec<Device>, HostError> {
    let begin = Instant::now();
    loop {
        let mut beds = disks()?;
        beds.retain(|(node, _)| node != job_disk);
        if beds.len() >= count {
            beds.iter().try_for_each(|(_, folder)| disks::without_write_same(folder))?;
            return beds.into_iter().map(device).collect();
        }
        if begin.elapsed() > DISK_PATIENCE {
            return Err(format!("of {count} disks this kernel sees {}", beds.len()).into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn device((node, folder): (PathBuf, PathBuf)) -> Result<Device, HostError> {
    const SECTOR_BYTES: u64 = 512;
    let number = fs::read_to_string(folder.join("dev"))?;
    let (major, minor) = number.trim().split_once(':').ok_or("a device has two numbers")?;
    let sectors: u64 = fs::read_to_string(folder.join("size"))?.trim().parse()?;
    Ok(Device {
        path: node.display().to_string(),
        number: [major.parse()?, minor.parse()?],
        size_bytes: sectors * SECTOR_BYTES,
    })
}

/// The disks that the lowest layer makes in place of `beds`, or these.
fn in_their_place(layers: &[Layer], beds: Vec<Device>) -> Result<Vec<Device>, HostError> {
    let paths: Vec<String> = beds.iter().map(|bed| bed.path.clone()).collect();
    let Some(made) = layer::in_place(layers, &paths) else { return Ok(beds) };
    tool::run_all(&made.commands)?;
    let disks = made.devices.iter().map(|path| {
        let name = path.trim_start_matches("/dev/");
        let folder = Path::new("/sys/block").join(name);
        nodes::make_one(&folder, Path::new("/dev"))?;
        device((path.into(), folder))
    });
    disks.collect()
}

/// Gives the disk another node, with a name of no known kind of disk: zpool partitions what libefi
/// takes for a whole disk by its name (`sd`, `hd`, `vd` and the like: `efi_get_info`), and
/// partitions get no node here, without udev.
fn rename(device: &mut Device, number: usize) -> io::Result<()> {
    let name = CString::new(format!("bed{number}"))?;
    let folder = File::open("/dev")?;
    sys::make_disk_node_at(folder.as_fd(), &name, device.number)?;
    device.path = format!("/dev/bed{number}");
    Ok(())
}

/// A disk of User Mode Linux, or of null_blk, has mq-deadline where those of other guests and loop
/// devices have no scheduler, and so would merge what these don't.
fn without_scheduler(devices: &[Device]) -> Result<(), HostError> {
    for device in devices {
        let (knob, value) = (Knob::queue(device.number, "scheduler"), "none".into());
        Setting { knob, value }.set(Path::new("/"))?;
    }
    Ok(())
}

/// Runs the trial as on any machine, in a process and namespaces of its own. The host holds the
/// disks down to the limits, so that here there are none to set.
fn run(job: Job, job_disk: &Path) -> Result<(), HostError> {
    let mut trial = job.trial;
    let mut beds = beds(job_disk, job.disks + usize::from(job.has_marks))?;
    let marks = beds.split_off(job.disks).pop().filter(|_| job.has_marks);
    trial.bed.marks = marks.map_or(String::new(), |marks| marks.path);
    let is_of_host = !layer::takes_place(&trial.contender.layers);
    trial.bed.devices = in_their_place(&trial.contender.layers, beds)?;
    if file_system::find(&trial.contender.file_system).is_some_and(|it| it.partitions_disks) {
        (0..)
            .zip(&mut trial.bed.devices)
            .try_for_each(|(number, device)| rename(device, number))?;
    }
    let out = Path::new(OUT);
    let file = |name: &str| out.join(name).display().to_string();
    (trial.raw, trial.series) = (file("raw"), file("series.csv"));
    trial.directory = MOUNT_POINT.into();
    trial.contender.limits = None;
    // Devices made here are described by their own settings.
    for (like, device) in job
        .like
        .iter()
        .filter(|_| is_of_host)
        .flat_map(|it| trial.bed.devices.iter().map(move |d| (it, d)))
    {
        like.set_on(device.number)?;
    }
    // A zoned disk needs its own, which keeps the order of writes.
    if (job.user_mode || !is_of_host) && !layer::is_zoned(&trial.contender.layers) {
        without_scheduler(&trial.bed.devices)?;
    }
    let wanted = settings::wanted(&trial.contender, &trial.bed.devices);
    wanted.iter().try_for_each(|setting: &Setting| setting.set(Path::new("/")))?;
    let journal = Journal::open(None)?;
    trial.bed.lab = journal.token().to_string();
    let identities = trial.bed.devices.iter().map(Identity::of).collect::<Option<Vec<_>>>();
    let _granted = Grant::new(&journal, &trial, identities.ok_or("a disk has no node")?, None)?;
    let (input, output) = (Path::new(TRIAL), out.join("record.json"));
    fs::write(input, serde_json::to_vec(&trial)?)?;
    let argv = match has_namespaces() {
        true => trial_argv(input, &output),
        // Its mounts and processes go with the machine.
        false => bare_trial_argv(input, &output),
    };
    let errors = out.join("raw/trial.stderr");
    let mut command = tool::command(&argv[0])?;
    command.args(&argv[1..]).env("PATH", job.path).stdin(machines_proc()?);
    command.stderr(File::create(&errors)?);
    if !trial.contender.layers.is_empty() {
        command.envs(layer::WITHOUT_UDEV);
    }
    if !say("\r") {
        command.stdout(Stdio::null());
    }
    let status = Awaited::start(&mut command)?.wait_and_reap()?;
    if status.success() {
        return Ok(());
    }
    let said = fs::read_to_string(&errors).unwrap_or_default();
    Err(format!("the trial's process {}: {}", tool::ended(status), said.trim()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_counts_in_part_does_not_tell_the_rest() {
        let root = tempfile::tempdir().unwrap();
        let missing_with = |fields: usize| {
            fs::create_dir_all(root.path().join("proc/pressure")).unwrap();
            for name in ["cpu", "io", "memory"] {
                fs::write(root.path().join("proc/pressure").join(name), "some").unwrap();
            }
            let line = format!("7 0 loop0{}\n", " 1".repeat(fields));
            fs::write(root.path().join("proc/diskstats"), line).unwrap();
            missing_facts(root.path())
        };
        assert_eq!(missing_with(17), [""; 0]);
        assert_eq!(missing_with(15), ["/proc/diskstats, with discards; flushes need Linux 5.5"]);
        fs::remove_file(root.path().join("proc/pressure/io")).unwrap();
        fs::remove_file(root.path().join("proc/diskstats")).unwrap();
        assert_eq!(missing_facts(root.path()).len(), 2);
    }
}
