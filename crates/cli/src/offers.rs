//! What a shell offers where a name is to be typed.

use std::ffi::OsStr;
use std::fs;

use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter};
use fsverdict_host::file_system::{self, FileSystem};

use crate::{shipped, uses};

fn offered<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<CompletionCandidate> {
    names.into_iter().map(CompletionCandidate::new).collect()
}

/// File systems that are made on devices.
pub fn file_systems() -> Vec<CompletionCandidate> {
    named(|known| !known.is_upon)
}

/// File systems that stand on others.
pub fn above() -> Vec<CompletionCandidate> {
    named(|known| known.is_upon)
}

fn named(is_meant: impl Fn(&FileSystem) -> bool) -> Vec<CompletionCandidate> {
    let meant = file_system::ALL.into_iter().filter(|known| is_meant(known));
    offered(meant.map(|known| known.name))
}

/// Plans that come along, and files.
pub fn plans(typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed_text = typed.to_string_lossy();
    let names = shipped::PLANS.iter().map(|(name, _)| *name);
    let mut plans = offered(names.filter(|name| name.starts_with(&*typed_text)));
    plans.extend(PathCompleter::file().complete(typed));
    plans
}

/// Studies that come along.
pub fn studies() -> Vec<CompletionCandidate> {
    offered(shipped::STUDIES.map(|(name, _)| name))
}

/// The shipped uses, and the plans, which are uses too.
pub fn uses() -> Vec<CompletionCandidate> {
    offered(uses::names())
}

/// All that `fsverdict show` shows.
pub fn shown() -> Vec<CompletionCandidate> {
    let plans = shipped::PLANS.iter().chain(&shipped::STUDIES).chain(&uses::ALL);
    offered(plans.map(|(name, _)| *name))
}

/// The folders of runs below this one.
pub fn runs() -> Vec<CompletionCandidate> {
    let entries = fs::read_dir("runs").into_iter().flatten().flatten();
    let runs = entries.filter(|entry| entry.path().join("run.json").exists());
    runs.map(|entry| CompletionCandidate::new(entry.path().into_os_string())).collect()
}

/// Runs, by their folders or packed.
pub fn runs_and_files(typed: &OsStr) -> Vec<CompletionCandidate> {
    let begun = |it: &CompletionCandidate| {
        it.get_value().to_string_lossy().starts_with(&*typed.to_string_lossy())
    };
    let mut all: Vec<CompletionCandidate> = runs().into_iter().filter(begun).collect();
    if all.is_empty() {
        all = PathCompleter::any().complete(typed);
    }
    all
}
