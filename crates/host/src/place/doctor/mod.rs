//! What this machine answers to each need, and what to install for the rest.
//!
//! An answer leaves no change: if looking is not enough, as with loop devices and KVM, it tries the
//! thing itself with a nameless file, so that nothing is left even if it is killed. `/proc` and
//! `/sys` are read below an injected root.

mod devices;
mod network;
mod room;
mod summary;
#[cfg(test)]
mod tests;

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use fsverdict_core::model::need::{Answer, Asked, ProbeKind, Remedy};
use fsverdict_core::model::{Bed, Need};

use super::vm::kvm::{self, QEMU};
use super::vm::{kernel, uml};
use crate::file_system::{self, FileSystem};
use crate::layer;
use crate::machine::answers::{OUTSIDE, closed, not_installed};
use crate::machine::cgroup::{Hierarchy, Places};
use crate::machine::{cell, mount};
use crate::probe::{LOG, offered};
use crate::{sys, tool};
pub use summary::{beds, conclusion};

/// Programs that tell their version when they are asked by `--version`.
const TELL_VERSION: [&str; 8] =
    ["curl", "fio", "parted", QEMU, "rsvg-convert", "rsync", "strace", "sysbench"];

/// All that is asked of a machine, in the order it is shown: first what a run can't do without.
/// Sizes are those of a bed that is not told any.
pub fn needs() -> Vec<Need> {
    let bytes = Bed::default().size.0;
    let program = |name: &str| Need::Program {
        name: name.into(),
        package: tool::package(name).map(Into::into),
    };
    let first = [
        Need::Root,
        Need::Namespaces,
        Need::LoopDevices,
        Need::Disk,
        Need::Zram,
        Need::Images { bytes },
        Need::Memory { bytes },
        Need::DropCaches,
    ];
    let file_systems = file_system::ALL.map(|it| Need::FileSystem(it.name.into()));
    let programs = [
        Need::Partitions,
        Need::Tool("fio"),
        Need::Tool("sysbench"),
        program("rsync"),
        program("curl"),
        program("vsftpd"),
        Need::Link,
        Need::Tool("strace"),
    ];
    let last = [
        Need::BlockEvents,
        Need::Limits,
        Need::Qemu,
        Need::Kernel(None),
        Need::Kvm,
        Need::Uml,
        Need::Png,
    ];
    let own = [Need::Cgroups, Need::KernelLog];
    let probes = ProbeKind::ALL.map(Need::Probe);
    first
        .into_iter()
        .chain(file_systems)
        .chain(programs)
        .chain(probes)
        .chain(own)
        .chain(last)
        .collect()
}

/// This machine.
#[derive(Clone, Debug)]
pub struct Machine {
    /// `/` but in tests.
    root: PathBuf,
    /// Where images would go.
    folder: PathBuf,
}

impl Machine {
    /// This machine, with images in `folder`, or in the one that will hold it.
    pub fn new(folder: &Path) -> Machine {
        let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.into());
        let there = absolute.ancestors().find(|it| it.is_dir()).unwrap_or(Path::new("/"));
        Machine { root: "/".into(), folder: there.into() }
    }

    /// It, ready to be asked.
    pub fn asked(&self) -> Asked<'_> {
        Asked::new(|need| self.answer(need))
    }

    /// Its answer, which may take seconds.
    pub fn answer(&self, need: &Need) -> Answer {
        let root = &self.root;
        match need {
            Need::Root => rights(),
            Need::Namespaces => namespaces(),
            Need::LoopDevices => devices::loop_devices(&self.folder),
            Need::Disk => devices::disk(&self.folder),
            Need::Zram => devices::zram(root),
            Need::Images { bytes } => room::images(&self.folder, *bytes),
            Need::Space { at, bytes } => room::space(Path::new(at), *bytes),
            Need::Memory { bytes } => room::memory(root, *bytes),
            Need::DropCaches => drop_caches(root),
            Need::FileSystem(name) => file_system(root, name),
            Need::Partitions => partitions(),
            Need::Layer(name) => match layer::find(name) {
                Some(kind) => layer::host::answer(root, kind),
                None => Answer::unknown(format!("no layer is called {name}")),
            },
            Need::Limits => devices::limits(root),
            Need::OwnLimits => devices::own_limits(root),
            Need::Link => network::links(),
            Need::Interface(name) => network::interface(root, name),
            Need::Tool(name) => program(name),
            Need::Program { name, package } => users_program(name, package.as_deref()),
            Need::Directory(path) => directory(path),
            Need::Probe(kind) => probe(root, *kind),
            Need::BlockEvents => block_events(root),
            Need::Cgroups => cgroups(root),
            Need::KernelLog => kernel_log(root),
            Need::Qemu => program(QEMU),
            Need::Kernel(name) => kernels(name.as_deref()),
            Need::Kvm => kvm::check(root),
            Need::Uml => uml::check(),
            Need::Png => program("rsvg-convert"),
        }
    }
}

fn rights() -> Answer {
    match sys::is_root() {
        true => Answer::yes("file systems can be made and mounted"),
        false => Answer::no(format!("this is user {}, not root", sys::user_id())).but_root(),
    }
}

fn namespaces() -> Answer {
    let needed = ["unshare", "mount", "umount"];
    if let Some(missing) = needed.into_iter().find(|program| tool::find(program).is_none()) {
        return not_installed(missing);
    }
    match tool::run_words(&["unshare", "--mount", "--pid", "--fork", "true"]) {
        Ok(_) => match cell::is_possible() {
            Ok(()) => Answer::yes("a trial's mounts and processes go with it"),
            Err(error) => Answer::no(error.to_string())
                .but("sysctl user.max_user_namespaces=1000, and not within a chroot"),
        },
        Err(_) if !sys::is_root() => Answer::no("this user may not unshare").but_root(),
        Err(error) => Answer::no(error.to_string()).but(OUTSIDE),
    }
}

fn drop_caches(root: &Path) -> Answer {
    // Opening it drops nothing yet.
    match OpenOptions::new().write(true).open(root.join("proc/sys/vm/drop_caches")) {
        Ok(_) => Answer::yes("trials begin with cold caches"),
        Err(error) => closed(
            "/proc/sys/vm/drop_caches",
            &error,
            "run it outside the container; without it trials begin with warm caches",
        ),
    }
}

/// To partition a disk, and to take the partition away.
fn partitions() -> Answer {
    match program("wipefs") {
        answer if answer.is_able() => program("parted"),
        missing => missing,
    }
}

/// Kernels that a virtual machine could boot.
fn kernels(name: Option<&str>) -> Answer {
    match (kernel::named(name), name) {
        (Ok(found), _) => {
            let releases: Vec<String> = found.into_iter().map(|it| it.release).collect();
            Answer::yes(releases.join(", "))
        }
        (Err(_), None) => {
            Answer::no("there is no kernel to boot here").but("fsverdict kernels get 6.12")
        }
        (Err(error), Some(_)) => Answer::no(error.to_string()),
    }
}

/// A program that fsverdict starts, with its version where it tells one.
fn program(name: &str) -> Answer {
    match (tool::find(name), TELL_VERSION.contains(&name)) {
        (None, _) => not_installed(name),
        (Some(_), true) => version(name, &[name, "--version"]),
        (Some(path), false) => Answer::yes(path.display().to_string()),
    }
}

fn version(name: &str, argv: &[&str]) -> Answer {
    match tool::version(argv) {
        Some(version) => Answer::yes(version),
        None => Answer::unknown(format!("{name} is installed, but tells no version")),
    }
}

/// A program that the work's commands start, or a file.
fn users_program(name: &str, package: Option<&str>) -> Answer {
    let Some(found) = tool::needed(name).find(|name| tool::is_there(name)) else {
        let first = name.split('|').next().unwrap_or(name);
        return installed(Answer::not_installed(first, package.or_else(|| tool::package(first))));
    };
    match tool::find(&found) {
        Some(_) => program(&found),
        None => Answer::yes("it is found through PATH"),
    }
}

/// Debian starts the servers that it installs.
fn installed(answer: Answer) -> Answer {
    match answer.remedy {
        Some(Remedy::Install { program, package, .. }) if program == "vsftpd" => {
            let then = ", and then systemctl disable --now vsftpd: a trial starts its own";
            Answer { remedy: Some(Remedy::Install { program, package, then }), ..answer }
        }
        _ => answer,
    }
}

fn directory(path: &str) -> Answer {
    match Path::new(path).is_dir() {
        true => Answer::yes(path),
        false => Answer::no(format!("the source {path} is not a directory")),
    }
}

/// The kernel first: where it lacks the file system its tools are of no use here.
fn file_system(root: &Path, name: &str) -> Answer {
    let Some(known) = file_system::find(name) else {
        return Answer::unknown(format!("no file system is called {name}"));
    };
    if known.by_loopback {
        let why = format!("{name} is served in virtual machines alone, which end its server");
        return Answer::no(why).but(known.kernels);
    }
    let kernel = mounting(root, known);
    match tools(known) {
        _ if !kernel.is_able() => kernel,
        tools if !tools.is_able() => tools,
        tools => Answer { detail: format!("{}; {}", tools.detail, kernel.detail), ..kernel },
    }
}

/// The program without which there is nothing of a file system.
pub(super) fn tools(file_system: &FileSystem) -> Answer {
    match tool::find(file_system.program) {
        None => not_installed(file_system.program),
        Some(_) => version(file_system.program, file_system.version),
    }
}

/// The kernel has the file system, or partly where a daemon stands in for its own. As a user, a
/// module is looked for but not loaded.
fn mounting(root: &Path, file_system: &FileSystem) -> Answer {
    let name = file_system.driver();
    if file_system.is_programs() && !root.join("dev/fuse").exists() {
        return Answer::no("there is no /dev/fuse").but("run it where there is, or --place vm");
    }
    let there = |how: &str| match file_system.stand_in() {
        Some(by) => Answer::partly(format!("{by}: {name} {how}")),
        None => Answer::yes(format!("{name} {how}")),
    };
    let text = fs::read_to_string(root.join("proc/filesystems")).unwrap_or_default();
    if text.lines().any(|line| line.split_whitespace().last() == Some(name)) {
        return there("is in the running kernel");
    }
    let modular = if sys::is_root() { mount::mountable(name) } else { mount::is_module(name) };
    match modular {
        true => there("is a module of the kernel"),
        false => Answer::no(format!("this kernel has no {name}")).but(file_system.kernels),
    }
}

fn probe(root: &Path, kind: ProbeKind) -> Answer {
    match kind {
        ProbeKind::Cpu => readable(root, &["proc/stat"]),
        ProbeKind::Memory => readable(root, &["proc/meminfo"]),
        ProbeKind::Device => offered::counters(root),
        ProbeKind::Pressure => offered::pressure(root),
        ProbeKind::Network => readable(root, &["proc/net/dev"]),
        ProbeKind::Heat => offered::heat(root),
        ProbeKind::PageCache => offered::page_cache(root),
    }
}

fn readable(root: &Path, paths: &[&str]) -> Answer {
    let unreadable = paths.iter().find_map(|path| {
        let error = fs::read(root.join(path)).err()?;
        Some(closed(&format!("/{path}"), &error, "run it where it is mounted"))
    });
    unreadable.unwrap_or_else(|| Answer::yes(format!("/{}", paths.join(", /"))))
}

/// With a cgroup a trial's processes, CPU time and memory are counted apart from those of others.
fn cgroups(root: &Path) -> Answer {
    let offered = Places::offered(root);
    let names: Vec<String> = offered.iter().map(|it| it.name()).collect();
    let names = names.join(", ");
    let counts = "what it left running, CPU time";
    match offered[..] {
        [] if sys::is_root() => Answer::no("none that we can write is mounted")
            .but("mount -t cgroup2 cgroup2 /sys/fs/cgroup"),
        [] => Answer::no("making one needs root").but_root(),
        [Hierarchy::First(_)] => Answer::partly(format!("only {names}")),
        _ if Places::count_memory(root) => Answer::yes(format!("{names}: {counts} and memory")),
        _ => Answer::partly(format!("{names}: {counts}; how much memory it takes is not counted")),
    }
}

/// Without it, trouble shows only in the file system's own counters.
fn kernel_log(root: &Path) -> Answer {
    match fs::File::open(root.join(LOG.trim_start_matches('/'))) {
        Ok(_) => Answer::yes("errors of the trial's devices are quoted from it"),
        Err(error) => closed(LOG, &error, "read it where kernel.dmesg_restrict is 0"),
    }
}

/// Documentation/trace/ftrace.rst, "The File System".
fn block_events(root: &Path) -> Answer {
    let mounts = mount::all(&root.join("proc")).unwrap_or_default();
    let Some(mount) = mounts.into_iter().find(|mount| mount.file_system == "tracefs") else {
        // A trial reaches it without a mount (`machine/tracing.rs`).
        let text = fs::read_to_string(root.join("proc/filesystems")).unwrap_or_default();
        return match text.lines().any(|line| line == "nodev\ttracefs") {
            true if sys::is_root() => Answer::yes("tracefs is in the running kernel"),
            true => Answer::no("tracefs is not for this user").but_root(),
            false => Answer::no("this kernel has no tracefs")
                .but("block by block needs a kernel with CONFIG_BLK_DEV_IO_TRACE"),
        };
    };
    let folder = root.join(mount.at.trim_start_matches('/'));
    let event = folder.join("events/block/block_rq_issue/format");
    match fs::read(event) {
        Ok(_) => Answer::yes(format!("{}, with the block events", mount.at)),
        Err(error) => closed(
            &format!("{}/events/block", mount.at),
            &error,
            "block by block needs a kernel with CONFIG_BLK_DEV_IO_TRACE",
        ),
    }
}
