//! The nouns: what is compared, what was measured, what was decided.

mod checked;
mod contender;
mod finding;
mod histogram;
mod native;
mod plan;
mod record;
mod run;
mod sample;
mod scale;
mod seed;
mod study;
mod trial;
mod unit;
mod verdict;
mod workload;

pub use checked::{Checked, Judged};
pub use contender::{Contender, Limits, Scalar};
pub use finding::{Audit, Finding, Severity};
pub use histogram::Histogram;
pub use native::{
    FILE_SIZE_MAX, FILES_MAX, FsyncCase, FsyncFiles, Metadata, MetadataOperation, Operation,
    SmallFiles, Sync,
};
pub use plan::{Bed, BedKind, Family, Judgement, Place, Plan, PlanError, Sim, Vm};
pub use record::{
    CacheState, CpuTotals, DeviceTotals, Failure, Guest, MemoryTotals, Mounted, Outcome,
    PhaseRecord, PressureTotals, Quiet, Record, StepTime, Totals,
};
pub use run::Run;
pub use sample::{Better, Sample, median};
pub use seed::{Draws, derived_seed};
pub use study::{Agreement, Beside, Published, Study};
pub use trial::{Device, Key, Trial, TrialBed};
pub use unit::{Bytes, ParseError, Percent, Span, Unit};
pub use verdict::{Comparison, Stop, Verdict};
pub use workload::{Cache, Command, Fio, Phase, Sysbench, Work, Workload};

/// Version of every document fsverdict writes: plan, trial, record, run and report.
/// It rises when an old reader would misread a new document; new optional fields leave it alone.
pub const SCHEMA: u32 = 1;
