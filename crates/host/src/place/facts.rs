//! Facts of the machine that a result can't be read without.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use fsverdict_core::model::{BedKind, Plan, Unit, Workload};

use super::vm::toolbox;
use crate::file_system::FileSystem;
use crate::layer;
use crate::machine::{cell, keys, mount};
use crate::probe::Refusals;
use crate::sys;
use crate::tool::{self, version};
use crate::workload;

/// Kernel, processor, memory, distribution, and what the bed lies on.
pub fn host(plan: &Plan, folder: &Path) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    let mut add = |name: &str, value: Option<String>| {
        facts.extend(value.map(|value| (name.to_string(), value)));
    };
    add("kernel", line_of("/proc/sys/kernel/osrelease"));
    add("machine", Some(std::env::consts::ARCH.into()));
    add("processor", field_of("/proc/cpuinfo", "model name", ':'));
    let processors = std::thread::available_parallelism().map(|count| count.to_string());
    add("processors", processors.ok());
    add("memory", memory_bytes().map(|bytes| Unit::Bytes.format(bytes as f64)));
    add("distribution", field_of("/etc/os-release", "PRETTY_NAME", '='));
    if matches!(plan.bed.kind, BedKind::Loop) {
        let dir = plan.bed.dir.as_deref().map_or(folder, Path::new);
        let on = mount::holding(dir).ok().flatten();
        add("image files on", on.map(|m| format!("{} on {}", m.file_system, m.source)));
    }
    facts
}

/// Why the work of trials on this machine can't be confined, where it can't.
pub fn why_unconfined() -> Option<String> {
    cell::is_possible().err().map(|error| error.to_string())
}

/// Why the work of root's trials can reach daemons' sockets by their paths, where it can.
pub fn why_sockets_are_in_reach() -> Option<String> {
    cell::why_sockets_are_in_reach().map(|error| format!("no folder can be overlaid: {error}"))
}

/// What keeps the work of root's trials from keys of the machine's users, where they have some.
pub fn why_calls_are_filtered() -> Option<&'static str> {
    let has_keys = sys::is_root() && keys::are_in_reach();
    has_keys.then_some("users have some: a filter keeps the work from them, at 40 ns a call")
}

/// Why writes that the work is refused can't be told, where they can't.
pub fn why_refusals_untold() -> Option<&'static str> {
    Refusals::why_not(Path::new("/"))
}

/// The machine's memory; `None` where /proc/meminfo does not say.
pub fn memory_bytes() -> Option<u64> {
    // meminfo's kB are KiB.
    let text = field_of("/proc/meminfo", "MemTotal", ':')?;
    Some(text.strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}

/// Versions of the tools that the plan uses, those of `file_systems` among them.
pub fn tools(plan: &Plan, file_systems: &[&FileSystem]) -> BTreeMap<String, String> {
    let mut tools = BTreeMap::new();
    for file_system in file_systems {
        tools.extend(own_or_fetched(file_system.program, file_system.version));
    }
    let parted = plan.contenders.iter().any(|it| !it.partition.is_empty()).then_some("parted");
    for program in workload::programs(plan).chain(parted) {
        let version = version(&[program, "--version"]);
        tools.extend(version.map(|version| (program.to_string(), version)));
    }
    let layers = plan.contenders.iter().flat_map(|it| &it.layers);
    let kinds = layers.filter_map(|layer| layer::find(&layer.name));
    for program in kinds.filter_map(|kind| kind.programs.first()) {
        tools.extend(own_or_fetched(program, &[program, "--version"]));
    }
    let needed = plan.workloads.iter().flat_map(Workload::needed);
    let packages: BTreeSet<&str> = needed.filter_map(|(_, package)| package).collect();
    for package in packages {
        let version = tool::run_words(&["dpkg-query", "-W", "-f", "${Version}", package]);
        tools.extend(version.ok().map(|version| (package.to_string(), version)));
    }
    tools
}

/// A program with its version, as `argv` says it or of the tools that were fetched for guests.
fn own_or_fetched(program: &str, argv: &[&str]) -> Option<(String, String)> {
    let fetched = || toolbox::find(program)?.version();
    Some((program.into(), version(argv).or_else(fetched)?))
}

fn line_of(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_string())
}

/// The value of the first line that begins with `name`.
fn field_of(path: &str, name: &str, separator: char) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    let (_, value) = line.split_once(separator)?;
    Some(value.trim().trim_matches('"').to_string())
}

/// The file system that `path` lies on.
pub fn file_system_at(path: &Path) -> Option<String> {
    mount::holding(path).ok().flatten().map(|mount| mount.file_system)
}

/// Where `device`, a path without links, is mounted.
pub fn mounted_at(device: &Path) -> std::io::Result<Option<String>> {
    let mounts = mount::all(Path::new("/proc"))?;
    let is_its = |mount: &mount::Mount| {
        Path::new(&mount.source).canonicalize().is_ok_and(|source| source == device)
    };
    Ok(mounts.into_iter().find(is_its).map(|mount| mount.at))
}
