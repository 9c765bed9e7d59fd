//! What this machine can do, and what to install for the rest.
//!
//! Each [`Check`] looks at one thing and changes nothing that stays: where a look is not enough, as
//! with loop devices and KVM, it tries the thing itself with a file that has no name, so that
//! nothing is left even if it is killed. `/proc` and `/sys` are read below an injected root.

mod kvm;
mod network;
mod summary;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fsverdict_core::model::{Bed, Unit};

use crate::file_system::{self, FileSystem};
use crate::probe::{PageCache, PageCacheError, drive_alarms, throttle_counters};
use crate::{facts, mount, preflight, sys, tool, vm};
pub use summary::{BEDS, conclusion};

/// Names of checks that others are told by.
pub const ROOT: &str = "root";
/// Mount and PID namespaces, in which every trial runs.
pub const NAMESPACES: &str = "namespaces";
/// Loop devices.
pub const LOOP: &str = "loop devices";
/// Compressed memory as a disk.
pub const ZRAM: &str = "zram";
/// Memory that is free.
pub const MEMORY: &str = "memory";
/// The fio program.
pub const FIO: &str = "fio";
/// The sysbench program.
pub const SYSBENCH: &str = "sysbench";
/// The rsync program, which the study backup-tree runs.
pub const RSYNC: &str = "rsync";
/// The strace program, which records what is replayed.
pub const STRACE: &str = "strace";
/// CPU time.
pub const CPU_TIME: &str = "CPU time";
/// Dirty memory.
pub const DIRTY: &str = "dirty memory";
/// Counters of the block devices.
pub const COUNTERS: &str = "device counters";
/// Pressure stall information.
pub const PRESSURE: &str = "pressure";
/// Who is slowed down for heat.
pub const HEAT: &str = "heat";
/// What reads find in the page cache.
pub const PAGE_CACHE: &str = "page cache";
/// Counters of the network interfaces.
pub const NETWORK: &str = "network counters";
/// Links between the server and the clients of a trial.
pub const LINK: &str = "network links";
/// The vsftpd program, to which the uploads go.
pub const VSFTPD: &str = "vsftpd";
/// The curl program, which uploads.
pub const CURL: &str = "curl";

/// The virtual machine of place vm.
pub const QEMU_NAME: &str = "QEMU";
/// Kernels for it.
pub const KERNELS: &str = "kernels to boot";

const AS_ROOT: &str = "run it with sudo";
const QEMU: &str = vm::QEMU;
/// How long the kernel may take to let go of a loop device; udev opens each new one for a moment.
const DETACH_PATIENCE: Duration = Duration::from_secs(30);

/// Whether the machine can do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It can.
    Yes,
    /// It can't.
    No,
    /// It could not be found out.
    Unknown,
}

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whether the machine can do it.
    pub state: State,
    /// What it has, or what is in the way.
    pub detail: String,
    /// What to do about it.
    pub advice: Option<String>,
    /// The Debian package that would help.
    pub package: Option<&'static str>,
}

impl Answer {
    fn new(state: State, detail: impl Into<String>) -> Answer {
        Answer { state, detail: detail.into(), advice: None, package: None }
    }

    fn yes(detail: impl Into<String>) -> Answer {
        Answer::new(State::Yes, detail)
    }

    fn no(detail: impl Into<String>, advice: impl Into<String>) -> Answer {
        Answer { advice: Some(advice.into()), ..Answer::new(State::No, detail) }
    }

    fn unknown(detail: impl Into<String>) -> Answer {
        Answer::new(State::Unknown, detail)
    }

    fn not_installed(program: &str) -> Answer {
        let package = tool::package(program);
        let advice = package.map(install);
        let no = Answer::new(State::No, format!("{program} is not installed"));
        Answer { advice, package, ..no }
    }

    /// `no`, with what an error of opening `path` means for the user.
    fn closed(path: &str, error: &io::Error, absent: &str) -> Answer {
        match error.kind() {
            io::ErrorKind::NotFound => Answer::no(format!("there is no {path}"), absent),
            io::ErrorKind::PermissionDenied => {
                Answer::no(format!("{path} is not for this user"), AS_ROOT)
            }
            _ => Answer::new(State::No, format!("{path}: {error}")),
        }
    }

    /// What is lacking and what to do about it, in one line; nothing where nothing is.
    pub fn lack(&self) -> Option<String> {
        let advice = self.advice.as_ref().map(|advice| format!(": {advice}")).unwrap_or_default();
        (self.state != State::Yes).then(|| format!("{}{advice}", self.detail))
    }
}

/// The command that installs a package, or several.
pub fn install(packages: &str) -> String {
    format!("apt-get install {packages}")
}

/// Something the machine can do, or can't.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ability {
    /// What it is.
    pub name: String,
    /// Whether the machine can do it.
    pub answer: Answer,
}

/// A question to the machine that has not been asked yet: the answer may take seconds.
pub struct Check<'a> {
    /// What it looks for.
    pub name: String,
    ask: Box<dyn FnOnce() -> Answer + 'a>,
}

impl<'a> Check<'a> {
    fn new(name: impl Into<String>, ask: impl FnOnce() -> Answer + 'a) -> Self {
        Check { name: name.into(), ask: Box::new(ask) }
    }

    /// Asks.
    pub fn run(self) -> Ability {
        Ability { name: self.name, answer: (self.ask)() }
    }
}

/// The name of the check for a file system's tools.
pub fn mkfs_check(file_system: &FileSystem) -> String {
    file_system.program.into()
}

/// The name of the check for a file system in the kernel.
pub fn mount_check(file_system: &FileSystem) -> String {
    format!("mount {}", file_system.name)
}

/// Everything there is to ask, in the order it is shown: first what a run can't do without. `root`
/// is `/` but in tests; images would go to `folder`.
pub fn checks<'a>(root: &'a Path, folder: &'a Path) -> Vec<Check<'a>> {
    let mut checks = vec![
        Check::new(ROOT, rights),
        Check::new(NAMESPACES, namespaces),
        Check::new(LOOP, || loop_devices(folder)),
        Check::new(ZRAM, || zram(root)),
        Check::new("space for images", || space(folder)),
        Check::new(MEMORY, || memory(root)),
        Check::new("drop caches", || drop_caches(root)),
    ];
    for file_system in file_system::ALL.map(FileSystem::here) {
        checks.push(Check::new(mount_check(file_system), || mounting(root, file_system)));
        checks.push(Check::new(mkfs_check(file_system), || tools(root, file_system)));
    }
    checks.extend([
        Check::new(FIO, || program("fio", &["fio", "--version"])),
        Check::new(SYSBENCH, || program("sysbench", &["sysbench", "--version"])),
        Check::new(RSYNC, || program("rsync", &["rsync", "--version"])),
        Check::new(CURL, || program("curl", &["curl", "--version"])),
        Check::new(VSFTPD, network::vsftpd),
        Check::new(LINK, network::links),
        Check::new(STRACE, || program("strace", &["strace", "--version"])),
        Check::new(CPU_TIME, || readable(root, &["proc/stat"])),
        Check::new(DIRTY, || readable(root, &["proc/meminfo"])),
        Check::new(COUNTERS, || counters(root)),
        Check::new(PRESSURE, || pressure(root)),
        Check::new(NETWORK, || network::counters(root)),
        Check::new(HEAT, || heat(root)),
        Check::new(PAGE_CACHE, || page_cache(root)),
        Check::new("tracefs", || tracefs(root)),
        Check::new("throttling", || throttling(root)),
        Check::new(QEMU_NAME, || program(QEMU, &[QEMU, "--version"])),
        Check::new(KERNELS, kernels),
        Check::new("KVM", || kvm::check(root)),
        Check::new("figures as PNG", || program("rsvg-convert", &["rsvg-convert", "--version"])),
    ]);
    checks
}

/// Asks those of the checks that are named.
pub fn ask(names: &BTreeSet<String>) -> Vec<Ability> {
    let folder = std::env::current_dir().unwrap_or_else(|_| "/".into());
    let checks = checks(Path::new("/"), &folder);
    checks.into_iter().filter(|check| names.contains(&check.name)).map(Check::run).collect()
}

/// Whether a trial can have a network of its own, found out by making one.
pub fn links() -> Answer {
    network::links()
}

/// Whether KVM works, found out by booting: seconds, where it does not.
pub fn kvm() -> Answer {
    kvm::check(Path::new("/"))
}

fn rights() -> Answer {
    match sys::is_root() {
        true => Answer::yes("file systems can be made and mounted"),
        false => Answer::no(format!("this is user {}, not root", sys::user_id()), AS_ROOT),
    }
}

fn namespaces() -> Answer {
    if let Err(error) = tool::command("unshare") {
        return Answer::no(error.to_string(), install("util-linux"));
    }
    match tool::run_words(&["unshare", "--mount", "--pid", "--fork", "true"]) {
        Ok(_) => Answer::yes("a trial's mounts and processes go with it"),
        Err(_) if !sys::is_root() => Answer::no("this user may not unshare", AS_ROOT),
        Err(error) => {
            Answer::no(error.to_string(), "run it outside the container, or in a privileged one")
        }
    }
}

fn loop_devices(folder: &Path) -> Answer {
    const CONTROL: &str = "/dev/loop-control";
    let control = match OpenOptions::new().read(true).write(true).open(CONTROL) {
        Ok(control) => control,
        Err(error) => return Answer::closed(CONTROL, &error, "modprobe loop"),
    };
    let file = match nameless_file(folder) {
        Ok(file) => file,
        Err(error) => {
            let path = folder.display();
            return Answer::unknown(format!("no file to try them with in {path}: {error}"));
        }
    };
    match attach_for_a_moment(&control, &file) {
        Ok(true) => Answer::yes("with direct I/O to files of this folder"),
        Ok(false) => Answer {
            advice: Some("for images that go past the page cache choose another --dir".into()),
            ..Answer::yes("but without direct I/O to files of this folder")
        },
        // Another process took the device between the kernel's answer and our use of it.
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
            Answer::unknown("another process was faster to take the free one: ask again")
        }
        Err(error) => Answer::no(
            format!("a file can't be attached: {error}"),
            "run it outside the container, or give the container the devices",
        ),
    }
}

/// A file that is gone as soon as it is closed (open(2), O_TMPFILE).
fn nameless_file(folder: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600).custom_flags(libc::O_TMPFILE);
    options.open(folder)
}

/// Whether `file` could be attached with direct I/O. Asking the kernel for a free device makes one
/// where there is none: that one is removed again.
fn attach_for_a_moment(control: &File, file: &File) -> io::Result<bool> {
    const FILE_BYTES: u64 = 1 << 20;
    file.set_len(FILE_BYTES)?;
    let before = loop_names();
    let number = sys::loop_free_number(control)?;
    let result = attached_directly(number, file);
    if !before.contains(&format!("loop{number}")) {
        // Whoever has taken it meanwhile keeps it: the kernel removes none that is in use.
        let _ = sys::loop_remove(control, number);
    }
    result
}

fn loop_names() -> BTreeSet<String> {
    let entries = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

fn attached_directly(number: u32, file: &File) -> io::Result<bool> {
    let device = OpenOptions::new().read(true).write(true).open(format!("/dev/loop{number}"))?;
    sys::loop_configure(&device, file, true)?;
    let folder = PathBuf::from(format!("/sys/block/loop{number}/loop"));
    // The kernel falls back to buffered I/O without a word when the file can't do direct I/O.
    let direct = fs::read_to_string(folder.join("dio")).unwrap_or_default();
    drop(device);
    let begin = Instant::now();
    while folder.join("backing_file").exists() && begin.elapsed() < DETACH_PATIENCE {
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(direct.trim() == "1")
}

fn zram(root: &Path) -> Answer {
    let control = root.join("sys/class/zram-control/hot_add");
    // Reading it would make a device; opening it does not.
    match File::open(&control) {
        Ok(_) => Answer::yes("for --bed ram:zram"),
        Err(error) if error.kind() == io::ErrorKind::NotFound && has_module("zram") => {
            Answer::no("the kernel's module is not loaded", "modprobe zram")
        }
        Err(error) => Answer::closed(
            "/sys/class/zram-control/hot_add",
            &error,
            "--bed ram works without; zram needs a kernel with CONFIG_ZRAM",
        ),
    }
}

/// modprobe(8) finds it; nothing is loaded.
fn has_module(name: &str) -> bool {
    tool::run_words(&["modprobe", "--dry-run", "--quiet", name]).is_ok()
}

#[expect(clippy::cast_precision_loss, reason = "it is shown to three figures")]
fn bytes(count: u64) -> String {
    Unit::Bytes.format(count as f64)
}

fn space(folder: &Path) -> Answer {
    let size_bytes = Bed::default().size.0;
    let free_bytes = match sys::free_bytes(folder) {
        Ok(free_bytes) => free_bytes,
        Err(error) => return Answer::unknown(format!("{}: {error}", folder.display())),
    };
    let on = mount::holding(folder).ok().flatten();
    let kind = on.map_or(String::new(), |on| format!(", on {}", on.file_system));
    let detail = format!("{} free in {}{kind}", bytes(free_bytes), folder.display());
    match free_bytes > size_bytes {
        true => Answer::yes(detail),
        false => Answer::no(detail, "another --dir or a smaller --size"),
    }
}

fn memory(root: &Path) -> Answer {
    let size_bytes = Bed::default().size.0;
    let text = fs::read_to_string(root.join("proc/meminfo")).unwrap_or_default();
    let Some(free_bytes) = available_bytes(&text) else {
        return Answer::unknown("/proc/meminfo has no line MemAvailable");
    };
    let detail = format!("{} available", bytes(free_bytes));
    match free_bytes > size_bytes {
        true => Answer::yes(detail),
        false => Answer::no(detail, "a smaller --size for bed ram"),
    }
}

/// proc_meminfo(5); its kB are KiB.
fn available_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

fn drop_caches(root: &Path) -> Answer {
    // Opening it drops nothing yet.
    match OpenOptions::new().write(true).open(root.join("proc/sys/vm/drop_caches")) {
        Ok(_) => Answer::yes("trials begin with cold caches"),
        Err(error) => Answer::closed(
            "/proc/sys/vm/drop_caches",
            &error,
            "run it outside the container; without it trials begin with warm caches",
        ),
    }
}

/// Kernels that a virtual machine could boot.
fn kernels() -> Answer {
    let releases: Vec<String> = vm::kernel::all().into_iter().map(|it| it.release).collect();
    match releases.is_empty() {
        true => Answer::no("there is none", "fsverdict kernels get 6.12"),
        false => Answer::yes(releases.join(", ")),
    }
}

/// A program with its version.
fn program(name: &str, version: &[&str]) -> Answer {
    if tool::find(name).is_none() {
        return Answer::not_installed(name);
    }
    match facts::version(version) {
        Some(version) => Answer::yes(version),
        None => Answer::unknown(format!("{name} is installed, but tells no version")),
    }
}

/// The tools of a file system: to be installed only where the kernel has what they are for.
fn tools(root: &Path, file_system: &FileSystem) -> Answer {
    let answer = program(file_system.program, file_system.version);
    match answer.state == State::No && mounting(root, file_system).state == State::No {
        true => Answer { advice: None, package: None, ..answer },
        false => answer,
    }
}

/// The kernel has the file system. As a user, a module is looked for but not loaded.
fn mounting(root: &Path, file_system: &FileSystem) -> Answer {
    let name = file_system.driver();
    let through = match file_system.daemon {
        Some(daemon) => format!("by FUSE and {}, not by the kernel: ", daemon.argv[0]),
        None => String::new(),
    };
    let text = fs::read_to_string(root.join("proc/filesystems")).unwrap_or_default();
    if text.lines().any(|line| line.split_whitespace().last() == Some(name)) {
        return Answer::yes(format!("{through}{name} is in the running kernel"));
    }
    let modular = if sys::is_root() { preflight::mountable(name) } else { has_module(name) };
    match modular {
        true => Answer::yes(format!("{through}{name} is a module of the kernel")),
        false => Answer::no(format!("this kernel has no {name}"), file_system.kernels),
    }
}

fn readable(root: &Path, paths: &[&str]) -> Answer {
    let unreadable = paths.iter().find_map(|path| {
        let error = fs::read(root.join(path)).err()?;
        Some(Answer::closed(&format!("/{path}"), &error, "run it where it is mounted"))
    });
    unreadable.unwrap_or_else(|| Answer::yes(format!("/{}", paths.join(", /"))))
}

/// Documentation/admin-guide/iostats.rst: after number and name 11 fields, 15 with discards
/// (Linux 4.18), 17 with flushes (5.5).
fn counters(root: &Path) -> Answer {
    let text = match fs::read_to_string(root.join("proc/diskstats")) {
        Ok(text) => text,
        Err(error) => return Answer::closed("/proc/diskstats", &error, "run it where /proc is"),
    };
    let fields = text.lines().map(|line| line.split_whitespace().count().saturating_sub(3)).min();
    match fields {
        None => Answer::yes("/proc/diskstats, which has no device yet"),
        Some(17..) => Answer::yes("/proc/diskstats, with discards and flushes"),
        Some(15..) => Answer::yes("/proc/diskstats, with discards; flushes need Linux 5.5"),
        Some(_) => Answer::yes("/proc/diskstats; discards need Linux 4.18, flushes 5.5"),
    }
}

/// Documentation/accounting/psi.rst. Where it is switched off the files are there, unreadable.
fn pressure(root: &Path) -> Answer {
    let paths = ["cpu", "io", "memory"].map(|name| root.join("proc/pressure").join(name));
    match paths.iter().all(|path| fs::read(path).is_ok()) {
        true => Answer::yes("/proc/pressure"),
        false => Answer::no(
            "this kernel keeps no pressure stall information",
            "boot with psi=1, or a kernel with CONFIG_PSI; runs work without",
        ),
    }
}

/// Intel's processors and NVMe drives; a virtual machine has neither's sensors.
fn heat(root: &Path) -> Answer {
    let controllers = fs::read_dir(root.join("sys/class/nvme")).into_iter().flatten().flatten();
    let alarms = controllers.flat_map(|controller| drive_alarms(&controller.path()));
    let processors = !throttle_counters(root).is_empty();
    let told = match (processors, alarms.count() > 0) {
        (true, true) => "throttle counters of the processors, alarms of the NVMe drives",
        (true, false) => "throttle counters of the processors; no NVMe drive has an alarm",
        (false, true) => "alarms of the NVMe drives; the processors count no throttling",
        (false, false) => {
            return Answer::no(
                "processors and NVMe drives tell nothing",
                "run it outside of virtual machines; runs work without",
            );
        }
    };
    Answer::yes(told)
}

/// Tries it for a moment, with a file system that there is not.
fn page_cache(root: &Path) -> Answer {
    match PageCache::watch(root, [0, 0]) {
        Ok(_) => Answer::yes("for --probe page-cache"),
        Err(PageCacheError::Refused(_)) if !sys::is_root() => {
            Answer::no("this user may give the kernel no programs", AS_ROOT)
        }
        Err(error) => Answer::no(
            error.to_string(),
            "boot Linux 6.13 or newer, with CONFIG_DEBUG_INFO_BTF; runs work without",
        ),
    }
}

/// Documentation/trace/ftrace.rst, "The File System".
fn tracefs(root: &Path) -> Answer {
    const USUAL: &str = "/sys/kernel/tracing";
    let mounts = mount::all(&root.join("proc")).unwrap_or_default();
    let Some(mount) = mounts.into_iter().find(|mount| mount.file_system == "tracefs") else {
        return Answer::no("it is not mounted", format!("mount -t tracefs tracefs {USUAL}"));
    };
    let folder = root.join(mount.at.trim_start_matches('/'));
    let event = folder.join("events/block/block_rq_issue/format");
    match fs::read(event) {
        Ok(_) => Answer::yes(format!("{}, with the block events", mount.at)),
        Err(error) => Answer::closed(
            &format!("{}/events/block", mount.at),
            &error,
            "block by block needs a kernel with CONFIG_BLK_DEV_IO_TRACE",
        ),
    }
}

/// Limits are rules of the root group of cgroups v1: those bind the kernel's own threads too,
/// which write most of what a file system writes. The root group of v2 can't have any
/// (Documentation/admin-guide/cgroup-v2.rst, "io.max").
fn throttling(root: &Path) -> Answer {
    let cgroup = root.join("sys/fs/cgroup");
    let rule = cgroup.join("blkio/blkio.throttle.read_iops_device");
    let Err(error) = OpenOptions::new().write(true).open(rule) else {
        return Answer::yes("blkio of cgroups v1");
    };
    let boot = "boot with cgroups v1 for limits; runs without limits need none";
    let has_io = |path: &str| {
        let text = fs::read_to_string(cgroup.join(path)).unwrap_or_default();
        text.split_whitespace().any(|controller| controller == "io")
    };
    match error.kind() {
        io::ErrorKind::NotFound
            if has_io("cgroup.controllers") || has_io("unified/cgroup.controllers") =>
        {
            Answer::no("cgroups v2 has io, but limits are set through blkio of v1", boot)
        }
        io::ErrorKind::NotFound => Answer::no("there is no blkio of cgroups v1", boot),
        _ => Answer::closed("/sys/fs/cgroup/blkio", &error, boot),
    }
}
