//! A table of measurements as somebody published it: what was run, what each column is, and the
//! figures as printed.

use std::collections::BTreeMap;

use super::{Better, Bytes, Finding, Unit};

/// What a column's figures are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Reads and writes a second.
    Iops,
    /// Other operations a second: files, directories.
    Rate,
    /// Bytes a second.
    Bandwidth,
    /// The time of one operation, in seconds.
    Latency,
    /// The time of a piece of work, in seconds.
    Time,
    /// A number of operations.
    Count,
    /// Bytes.
    Bytes,
    /// A share of something, in percent.
    Share,
    /// Something that no audit knows.
    Other,
}

/// Which figure of many a column gives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Statistic {
    /// The arithmetic mean.
    Mean,
    /// The least.
    Least,
    /// The greatest.
    Greatest,
    /// The figure below which that share of them lies: 0.5 is the median.
    Quantile(f64),
    /// The standard deviation.
    Deviation,
}

/// Which operations a column counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// All, as the heading says or because it says nothing else.
    All,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its heading.
    pub heading: String,
    /// What its figures are.
    pub quantity: Quantity,
    /// Which figure of many; `None`: the heading does not say.
    pub statistic: Option<Statistic>,
    /// Which operations.
    pub part: Part,
    /// What the heading says besides statistic and unit, in lower case: "read latency".
    pub subject: String,
    /// What its figures are multiplied by to have them in the unit of [`Quantity`].
    pub scale: f64,
    /// Which direction is better, where the file says so.
    pub better: Option<Better>,
}

impl Column {
    /// Which direction is better: as the file says, or as usual for rates and times. `None`:
    /// unknown.
    pub fn better(&self) -> Option<Better> {
        self.better.or(match self.quantity {
            Quantity::Iops | Quantity::Rate | Quantity::Bandwidth => Some(Better::Higher),
            Quantity::Latency | Quantity::Time => Some(Better::Lower),
            Quantity::Count | Quantity::Bytes | Quantity::Share | Quantity::Other => None,
        })
    }

    /// The unit of its figures, once they are multiplied by the scale.
    pub fn unit(&self) -> Unit {
        match self.quantity {
            Quantity::Iops | Quantity::Rate => Unit::PerSecond,
            Quantity::Bandwidth => Unit::BytesPerSecond,
            Quantity::Latency | Quantity::Time => Unit::Seconds,
            Quantity::Count => Unit::Count,
            Quantity::Bytes => Unit::Bytes,
            Quantity::Share | Quantity::Other => Unit::Ratio,
        }
    }

    /// It gives a figure of the work, and not how that scatters or its least.
    pub fn is_figure(&self) -> bool {
        !matches!(self.statistic, Some(Statistic::Deviation | Statistic::Least))
    }

    /// Processor time, which is no part of elapsed time.
    pub fn is_processor(&self) -> bool {
        let mut words = self.subject.split(' ');
        words.any(|word| matches!(word, "user" | "system" | "sys" | "cpu"))
    }
}

/// A figure as printed. What it stands for lies within one unit of its last digit: some tools
/// round and some cut.
#[derive(Clone, Debug, PartialEq)]
pub struct Printed {
    /// As printed.
    pub text: String,
    /// Its value, in the unit of its column.
    pub value: f64,
    /// One unit of its last digit, or half a range of figures and that.
    pub step: f64,
    /// What stands behind a `±`: taken for the standard deviation of the runs, the reading that
    /// makes most of the figure.
    pub deviation: Option<f64>,
    /// What it is multiplied by instead of its column's scale, where it has a unit of its own.
    pub scale: Option<f64>,
}

impl Printed {
    /// Its value, in the unit of the column's quantity.
    pub fn in_unit_of(&self, column: &Column) -> f64 {
        self.value * self.scale.unwrap_or(column.scale)
    }
}

/// A row: what one contender reached.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// The contender; empty where only one thing was measured.
    pub contender: String,
    /// The round it is of, where the file has rounds.
    pub round: Option<u32>,
    /// A figure for each column, where there is one.
    pub cells: Vec<Option<Printed>>,
    /// The times of the single runs in seconds, where they are given.
    pub times_s: Vec<f64>,
}

/// The parameters of a job, as far as they are known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Job {
    /// fio ran it: what is not given has fio's defaults.
    pub is_fio: bool,
    /// `read`, `randwrite`, `randrw`.
    pub mode: Option<String>,
    /// Bytes of each operation, where all have the same.
    pub block_bytes: Option<u64>,
    /// How many tasks work at a time.
    pub jobs: Option<u32>,
    /// How many operations each keeps in flight.
    pub depth: Option<u32>,
    /// fio's engine.
    pub engine: Option<String>,
    /// Past the page cache.
    pub direct: Option<bool>,
    /// Bytes of each task's file.
    pub size_bytes: Option<u64>,
    /// Writes have to reach the device within the timed part.
    pub synced: Option<bool>,
    /// A new operation begins when one ends, and only then, for as long as the job runs.
    pub closed_loop: bool,
    /// For how many seconds it goes over its files again and again, where it does.
    pub lasts_s: Option<f64>,
    /// Only zeros are written.
    pub zeros: bool,
}

impl Job {
    /// It reads.
    pub fn reads(&self) -> bool {
        self.mode.as_ref().is_some_and(|mode| mode.contains("read") || mode.contains("rw"))
    }

    /// It writes.
    pub fn writes(&self) -> bool {
        let writes = |mode: &String| mode.contains("write") || mode.contains("rw");
        self.mode.as_ref().is_some_and(writes)
    }
}

/// One test of a table: a row for each contender, or for each run of one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Test {
    /// Its name.
    pub name: String,
    /// What was run.
    pub job: Job,
    /// What its columns are.
    pub columns: Vec<Column>,
    /// What was reached.
    pub rows: Vec<Row>,
    /// How often each figure was measured, where it is said.
    pub runs: Option<u32>,
    /// The bytes that the work moves.
    pub bytes: Option<u64>,
    /// How many files it is about.
    pub files: Option<u64>,
    /// The size of each.
    pub file_bytes: Option<u64>,
    /// What was done to the caches.
    pub cache: Option<String>,
    /// What is said of how it was done: commands and words.
    pub words: Vec<String>,
    /// The programs that its command starts, by their names.
    pub programs: Vec<String>,
    /// How many operations a column's figure is of, by heading.
    pub operations: BTreeMap<String, u64>,
    /// How many processes were started for them, by heading.
    pub processes: BTreeMap<String, u64>,
    /// The least time in seconds that the tool can tell from another, where that is more than a
    /// unit of the last digit.
    pub clock_s: Option<f64>,
}

/// What a device is specified for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// IOPS or bandwidth.
    pub quantity: Quantity,
    /// Of reads, of writes, or of all together.
    pub part: Part,
    /// Operations or bytes a second.
    pub value: f64,
}

/// What is known of the machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Machine {
    /// Its memory.
    pub memory: Option<Bytes>,
    /// What it is measured on, in words.
    pub device: Option<String>,
    /// What the device is specified for.
    pub limits: Vec<Limit>,
    /// The memory in which the device, or what stands before it, keeps data.
    pub device_cache: Option<Bytes>,
    /// Mount options, by contender.
    pub mount: BTreeMap<String, Vec<String>>,
    /// Kernels, by contender.
    pub kernel: BTreeMap<String, String>,
}

/// What a text concludes from the table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conclusion {
    /// The words.
    pub text: String,
    /// The test it is about; `None`: any.
    pub test: Option<String>,
    /// The contender it is about; `None`: any.
    pub contender: Option<String>,
    /// The contender it is compared with; `None`: any other.
    pub against: Option<String>,
    /// Figures of the text by the heading of the column that should hold them.
    pub figures: BTreeMap<String, Printed>,
    /// Changes (`+9%`, `6.9x`, `-3-5%`) by the heading of the column that they should follow from.
    pub changes: BTreeMap<String, StatedChange>,
    /// The headings of columns in which the contender is said to be better.
    pub better: Vec<String>,
    /// What each of these headings means.
    pub columns: BTreeMap<String, Column>,
}

impl Conclusion {
    /// There is something in it that can be held against the tables.
    pub fn says_something(&self) -> bool {
        !(self.figures.is_empty() && self.changes.is_empty() && self.better.is_empty())
    }
}

/// A change that a text states: a ratio, or a range of them.
#[derive(Clone, Debug, PartialEq)]
pub struct StatedChange {
    /// As printed.
    pub text: String,
    /// The ratios it allows, with a unit of the last digit to either side.
    pub ratios: (f64, f64),
    /// Those it would allow if it were rounded to tens, where it may be: `30%`.
    pub of_tens: Option<(f64, f64)>,
}

/// The test of a file whose rows name none: where people read, its figures' names are enough.
pub const NAMELESS: &str = "all rows";

/// What a file was read as.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Its title.
    pub title: String,
    /// What it was taken for: "a table", "JSON of fio-3.33".
    pub kind: String,
    /// What is known of the machine.
    pub machine: Machine,
    /// Somebody wrote it down from an article: its figures are what was printed.
    pub is_written: bool,
    /// Which of its columns were taken for what, and why.
    pub taken: Vec<(String, String)>,
    /// All of it comes from one process, which has drawn its luck once: its samples are no runs.
    pub one_process: bool,
    /// The tests.
    pub tests: Vec<Test>,
    /// What is concluded from them.
    pub claims: Vec<Conclusion>,
}

/// What `audit` says of a table or a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Audited {
    /// What was audited.
    pub title: String,
    /// What it was taken for.
    pub kind: String,
    /// The name of each job, and its parameters as they were understood.
    pub jobs: Vec<(String, String)>,
    /// Each heading with what it was taken for.
    pub columns: Vec<(String, String)>,
    /// What could not be audited, and what is missing for that.
    pub missing: Vec<String>,
    /// What was noticed.
    pub findings: Vec<Finding>,
}
