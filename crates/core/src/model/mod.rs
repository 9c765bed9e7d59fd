//! The nouns: what is compared, what was measured, what was decided.

mod across;
mod checked;
mod columns;
mod contender;
mod figures;
mod finding;
mod histogram;
mod history;
mod joined;
mod lack;
mod native;
mod near;
mod network;
mod partition;
mod plan;
mod purpose;
mod rate;
mod record;
mod replay;
mod run;
mod sample;
mod scale;
mod seed;
mod study;
mod table;
mod timeline;
mod tree;
mod trial;
mod unit;
mod verdict;
mod working_set;
mod workload;

pub use across::{Across, BASELINE, Change, Difference, Incomparable, Measured, NotCompared};
pub use checked::{Checked, Judged};
pub use columns::{SysstatColumn, blocked_column};
pub use contender::{Contender, Limits, Scalar, sysctl_file};
pub use figures::{FigureError, figures};
pub use finding::{Audit, Finding, Severity};
pub use histogram::Histogram;
pub use history::{History, Past, Point, Series, Shift};
pub use joined::{Abreast, Accord, Joined, Term};
pub use lack::{LeftOut, Need};
pub use native::{
    FILE_SIZE_MAX, FILES_MAX, FsyncCase, FsyncFiles, Metadata, MetadataOperation, Operation,
    SmallFiles, Sync,
};
pub use near::{meant, near, with_near};
pub use network::Network;
pub use partition::Partition;
pub use plan::{
    Arm, Bed, BedKind, ExtraProbe, Family, Intervals, Judgement, Place, Plan, PlanError, Sim, Vm,
};
pub use purpose::{
    Advice, Answer, Basis, Condition, Feature, Lever, Missing, Purpose, PurposeError, Standing,
    Turn, Want, Weighed,
};
pub use rate::{RateOverTime, Steady};
pub use record::{
    Application, CacheState, CpuTotals, DeviceTotals, Failure, ForeignTotals, Guest, HeatTotals,
    MemoryTotals, Mounted, NetworkTotals, Outcome, PageCacheTotals, PhaseRecord, PressureTotals,
    Queue, Quiet, Record, Refused, StepTime, Totals,
};
pub use replay::{Action, Call, Entry, Gave, Head, Laid, On, RECORDING, Recording, Replay};
pub use run::Run;
pub use sample::{Better, Sample, median};
pub use seed::{Draws, derived_seed};
pub use study::{Agreement, Beside, Published, Study};
pub use table::{
    Audited, Claim, Claimed, Column, Job, Machine, Part, Printed, Quantity, Row, Statistic, Table,
    Test,
};
pub use timeline::{Gauge, Stretch, Timeline, TimelineError};
pub use tree::{Reflink, Tree, TreeContent, TreePhase};
pub use trial::{Device, Key, Trial, TrialBed};
pub use unit::{BitRate, Bytes, ParseError, Percent, Span, Unit};
pub use verdict::{Comparison, Stop, Verdict};
pub use working_set::{OverMemory, WorkingSet, share_of_memory};
pub use workload::{Cache, Command, Fio, Phase, Sysbench, Work, Workload, is_synchronous_engine};

/// Version of every document fsverdict writes: plan, trial, record, run and report.
/// It rises when an old reader would misread a new document; new optional fields leave it alone.
pub const SCHEMA: u32 = 1;
