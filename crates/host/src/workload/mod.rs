//! Work on a file system, and its results: each kind of work has an engine, in a file of its own.

pub mod command;
mod directories;
pub mod engine;
mod file_tree;
mod fio;
mod fsync_files;
mod left;
mod metadata;
pub mod printed;
mod random_bytes;
pub mod relay;
mod replay;
pub mod small_files;
mod sysbench;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use fsverdict_core::model::{Plan, Work, Workload};
use thiserror::Error;

use engine::Engine;

/// The overflow user and group, who own nothing (Documentation/admin-guide/sysctl/fs.rst).
pub const NOBODY: (u32, u32) = (65534, 65534);

/// The start of 2001, in seconds since 1970.
pub const YEAR_2001_S: i64 = 978_307_200;

/// The programs that the plan's workloads need besides their own commands.
pub fn programs(plan: &Plan) -> impl Iterator<Item = &'static str> {
    let needed: BTreeSet<&str> = plan.workloads.iter().filter_map(Workload::tool).collect();
    needed.into_iter()
}

/// The engine of this work. Only this function knows which engine does which kind of work.
pub fn engine(work: Work<'_>) -> &dyn Engine {
    match work {
        Work::Command(command) => command,
        Work::Fio(job) => job,
        Work::SmallFiles(files) => files,
        Work::FsyncFiles(files) => files,
        Work::Metadata(metadata) => metadata,
        Work::Tree(tree) => tree,
        Work::Sysbench(test) => test,
        Work::Replay(replay) => replay,
    }
}

/// Something native work met that it could not do.
#[derive(Debug, Error)]
#[error("{action} {}: {source}", path.display())]
pub struct PathError {
    /// What was to be done, as a verb.
    pub action: &'static str,
    /// To what.
    pub path: PathBuf,
    /// What the kernel said.
    pub source: io::Error,
}

impl PathError {
    /// That `action` on `path` failed, once it has.
    pub fn of(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> PathError {
        move |source| PathError { action, path: path.into(), source }
    }
}

#[cfg(test)]
mod tests;
