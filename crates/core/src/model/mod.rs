//! The nouns: what is compared, what was measured, what was decided.

mod above;
mod across;
mod astray;
mod attachment;
mod bed;
mod bounded;
mod cause;
mod checked;
pub mod claim;
mod columns;
mod compared;
mod contender;
mod counted;
mod cpu;
mod disk;
mod duet;
mod figures;
mod finding;
mod fio_words;
mod fit;
mod given_up;
mod histogram;
mod history;
mod jobs;
mod joined;
mod judgement;
mod layer;
mod limits;
mod lines;
mod map;
mod native;
mod near;
pub mod need;
mod network;
mod partition;
mod pattern;
mod place;
mod plan;
mod precedent;
mod purpose;
mod queue;
mod rate;
mod record;
mod replay;
mod run;
mod sample;
mod scalar;
mod scale;
mod seed;
mod strangers;
mod study;
mod table;
mod timeline;
mod timeouts;
pub mod trace;
mod tree;
mod trial;
mod turns;
mod unit;
mod verdict;
mod words;
mod working_set;
mod workload;
mod zeros;

pub use above::Above;
pub use across::{
    Across, BASELINE, Change, ClaimChange, Difference, Gate, Incomparable, Measured, NotCompared,
    NotMeasured, OtherTerms, ReferenceChange, Voided,
};
pub use astray::{Astray, Forbidden};
pub use attachment::Attachment;
pub use bed::{Bed, BedKind};
pub use bounded::{MOST, from_json};
pub use cause::{Cause, CausePart, Cost, Per};
pub use checked::{Checked, Judged};
pub use columns::{SysstatColumn, blocked_column};
pub use compared::{Compared, Entrant, Growth, Unknown};
pub use contender::{Contender, WITHOUT_JOURNAL, module_file, sysctl_file};
pub use cpu::{CpuClock, CpuTime, CpuTotals};
pub use disk::{Choice, Disk, Probed, READ_AHEAD_BYTES, Reads, udev_rule};
pub use duet::fio_time_ms;
pub use figures::{FigureError, figures};
pub use finding::{Audit, Finding, Severity};
pub use fio_words::{plain_fio_words, program_of};
pub use fit::{LeftOut, Unmet, UnmetNeeds, Who, unmet_needs};
pub use given_up::{Given, GivenUp, Loses};
pub use histogram::Histogram;
pub use history::{Fleet, FleetChange, History, Past, Point, Series, Shift};
pub use jobs::{JobRecord, Jobs};
pub use joined::{Abreast, Accord, Joined, Term};
pub use judgement::{Arm, Family, Intervals, Judgement};
pub use layer::Layer;
pub use limits::{Counted, Each, Limits};
pub use map::{Map, is_mapped, is_of_kernel};
pub use native::{
    FILE_SIZE_MAX, FILES_MAX, FsyncCase, FsyncFiles, FsyncOperation, Metadata, MetadataOperation,
    Operation, SmallFiles, Sync,
};
pub use near::{guess, meant, near, with_near};
pub use need::Need;
pub use network::Network;
pub use partition::Partition;
pub use pattern::{Pattern, parsed};
pub use place::{Place, Sim, Vm};
pub use plan::{ExtraProbe, Plan, PlanError};
pub use precedent::{Precedent, Ruling};
pub use purpose::{
    Advice, Answer, Basis, Below, Condition, Feature, Lever, Missing, Purpose, PurposeError,
    Standing, Turn, Want, Weighed,
};
pub use queue::Queue;
pub use rate::{RateOverTime, Steady};
pub use record::{
    Application, ArcTotals, CacheState, DeviceTotals, Failure, ForeignTotals, Guest, HeatTotals,
    LEAST_AMOUNT_BYTES, MemoryTotals, Mounted, NO_FLUSHES_COUNTED, NetworkTotals, Outcome,
    PageCacheTotals, PhaseRecord, Quiet, Record, Refused, Room, StepTime, Totals, Trouble,
};
pub use replay::{
    Action, Call, Entry, Gave, Head, Laid, On, RECORDING, Recording, Replay, Replayed,
};
pub use run::{Run, SCHEMA};
pub use sample::{Better, Sample, as_metric, median, median_interval};
pub use scalar::Scalar;
pub use seed::{Draws, derived_seed};
pub use strangers::{OwnTotals, PressureTotals, Stranger, Strangers, WorkIo};
pub use study::{Agreement, Beside, Published, Study};
pub use table::{
    Audited, Column, Conclusion, Job, Limit, Machine, NAMELESS, Part, Printed, Quantity, Row,
    StatedChange, Statistic, Table, Test,
};
pub use timeline::{Gauge, Stretch, Timeline, TimelineError};
pub use timeouts::{Overdue, Timeouts};
pub use tree::{Reflink, Tree, TreeContent, TreePhase};
pub use trial::{Device, Key, Trial, TrialBed};
pub use turns::{Rounds, TURN, Turns};
pub use unit::{BitRate, Bytes, ParseError, Percent, Span, Unit, precise};
pub use verdict::{Comparison, Stop, Verdict};
pub use words::{Words, counted};
pub use working_set::{OverMemory, WorkingSet, share_of_memory};
pub use workload::{Cache, Command, Fio, Phase, Sysbench, Work, Workload, is_synchronous_engine};
pub use zeros::Zeros;
