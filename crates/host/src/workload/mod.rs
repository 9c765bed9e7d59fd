//! What is run on a file system, and what running it brought.

pub mod command;
mod content;
pub mod file_tree;
pub mod fio;
pub mod fsync_files;
pub mod metadata;
pub mod replay;
pub mod small_files;
pub mod sysbench;
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use fsverdict_core::model::{Histogram, PhaseRecord, Plan, Sample, Workload};
use thiserror::Error;

/// The overflow user and group, who own nothing (Documentation/admin-guide/sysctl/fs.rst).
pub const NOBODY: (u32, u32) = (65534, 65534);

/// The start of 2001, in seconds since 1970.
pub const YEAR_2001_S: i64 = 978_307_200;

/// The programs that the plan's workloads need besides their own commands.
pub fn programs(plan: &Plan) -> impl Iterator<Item = &'static str> {
    let needed: BTreeSet<&str> = plan.workloads.iter().filter_map(Workload::program).collect();
    needed.into_iter()
}

/// What a native workload did in one timed part.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Done {
    /// What rates and costs count; `None` where the time is not that of the operations.
    pub operations: Option<u64>,
    /// Bytes read from files.
    pub application_read_bytes: u64,
    /// Bytes written to files.
    pub application_write_bytes: u64,
    /// Latencies, by operation.
    pub histograms: BTreeMap<String, Histogram>,
    /// Figures of its own.
    pub samples: Vec<Sample>,
    /// From the first thread's start to the last one's end.
    pub work_ns: u64,
}

impl Done {
    /// Enters it into the record of its phase.
    pub fn enter(self, record: &mut PhaseRecord) {
        record.work_ns = self.work_ns;
        record.operations = self.operations;
        record.application_read_bytes = Some(self.application_read_bytes);
        record.application_write_bytes = Some(self.application_write_bytes);
        record.histograms = self.histograms;
        record.samples = self.samples;
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
