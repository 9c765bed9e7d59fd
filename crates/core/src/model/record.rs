//! The document that comes out of `fsverdict trial`.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{
    Astray, Counted, CpuTime, CpuTotals, Disk, Forbidden, Histogram, JobRecord, Key, OwnTotals,
    Partition, Phase, PressureTotals, Probed, Queue, RateOverTime, Replayed, SCHEMA, Sample,
    Strangers, Turns, WorkIo, as_metric,
};

/// A program reads less of itself and its libraries, and says less of what it does.
pub const LEAST_AMOUNT_BYTES: u64 = 1 << 20;

/// How a trial ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It ran whole.
    Measured,
    /// A step could not be done; the trial has no samples.
    Failed(Failure),
}

/// What could not be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The step that failed, by its name.
    pub step: String,
    /// Why, whole: for a program its arguments, exit status and what it said.
    pub error: String,
    /// What could not be cleaned up afterwards, if anything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cleanup_errors: Vec<String>,
}

/// How long a step took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepTime {
    /// The step's name.
    pub step: String,
    /// Its time.
    pub duration_ns: u64,
}

/// How the kernel says the file system is mounted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mounted {
    /// The file system's type by `/proc/self/mountinfo`.
    pub file_system: String,
    /// The options in effect, those of the mount before those of the file system.
    pub options: Vec<String>,
    /// Options that were asked for and that the kernel does not show: it shows no defaults, so
    /// each is either one of them or was ignored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<String>,
    /// The version that its module says it is, where one does: OpenZFS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// How what stands on it is mounted, the first next to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub above: Vec<Mounted>,
}

/// What the page cache held around the drop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheState {
    /// Dirty and write-back bytes of the tested device or files just before the drop.
    pub dirty_bytes_before: u64,
    /// Bytes of them that were cached before the drop.
    pub cached_bytes_before: u64,
    /// Bytes of them still cached after it.
    pub cached_bytes_after: u64,
    /// The caches could be dropped at all: it takes root.
    pub dropped: bool,
}

/// A timed part that the file system has no such thing for: it does not fail the trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// Which part.
    pub phase: Phase,
    /// What the kernel said.
    pub why: String,
}

/// What went wrong beneath the work, whether it has noticed or not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Trouble {
    /// The kernel's own lines about the devices under test: the first of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kernel: Vec<String>,
    /// How many there were.
    pub kernel_lines: u64,
    /// What the kernel warned of, whatever it was about, in a machine of the trial's own: the first
    /// of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Errors that the file system has counted on its devices.
    pub errors: u64,
    /// The file system, mounted for writing, had become read-only.
    pub read_only: bool,
    /// No room was left after a timed part: what was free, and of how much.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full: Option<Room>,
}

/// The free space of a file system, for users without special rights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Room {
    pub free_bytes: u64,
    pub size_bytes: u64,
    /// Files that can still be made, where that is limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_files: Option<u64>,
}

impl Trouble {
    /// How many of the kernel's lines are kept.
    pub const LINES: usize = 5;

    /// There was none.
    pub fn is_none(&self) -> bool {
        *self == Trouble::default()
    }

    /// Data or metadata did not reach the device, or did not come back from it.
    pub fn is_loss(&self) -> bool {
        self.kernel_lines > 0 || self.errors > 0 || self.read_only
    }

    /// Adds what the kernel has warned of.
    pub fn warn(&mut self, line: String) {
        if self.warnings.len() < Self::LINES && !self.warnings.contains(&line) {
            self.warnings.push(line);
        }
    }

    /// Adds what the kernel has said.
    pub fn add(&mut self, line: String) {
        self.kernel_lines += 1;
        if self.kernel.len() < Self::LINES && !self.kernel.contains(&line) {
            self.kernel.push(line);
        }
    }
}

/// Whether the device had come to rest before the timed part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quiet {
    /// It was idle for the whole settling window.
    pub quiet: bool,
    /// How long that took.
    pub waited_ns: u64,
}

/// What the devices under test did, added up over them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "Documentation/admin-guide/iostats.rst has the words")]
#[serde(default)]
pub struct DeviceTotals {
    /// How many devices were added up; 0 in records that did not tell yet: one.
    pub devices: u64,
    pub reads: u64,
    pub reads_merged: u64,
    pub read_bytes: u64,
    pub read_ns: u64,
    pub writes: u64,
    pub writes_merged: u64,
    pub write_bytes: u64,
    pub write_ns: u64,
    pub discards: u64,
    pub discards_merged: u64,
    pub discard_bytes: u64,
    pub discard_ns: u64,
    /// `None` where nobody counts them: of partitions, of devices without a queue of requests
    /// (LVM, md, zram), before Linux 5.5. Older records have 0 there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flushes: Option<u64>,
    pub flush_ns: u64,
    /// Time in which at least one request was under way, added up over the devices.
    pub busy_ns: u64,
    /// Requests under way, integrated over time: divided by the time it is the mean queue.
    pub queue_ns: u64,
}

/// Dirty and write-back memory of the whole system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct MemoryTotals {
    pub dirty_bytes_start: u64,
    pub dirty_bytes_end: u64,
    pub dirty_bytes_max: u64,
    pub writeback_bytes_max: u64,
}

/// Pages of files that reads looked up in the page cache (METHODOLOGY, "The page cache").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageCacheTotals {
    /// Pages that were asked for.
    pub looked_up: u64,
    /// Pages that reads had brought in, those read ahead too.
    pub missed: u64,
}

impl PageCacheTotals {
    /// Pages that were there.
    pub fn found(&self) -> u64 {
        self.looked_up.saturating_sub(self.missed)
    }
}

/// What moved on the disks that the devices under test are parts of or images on, less what moved
/// on the devices themselves: what others did there, and what the file system that holds an image
/// writes by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct ForeignTotals {
    pub read_bytes: u64,
    pub write_bytes: u64,
}

/// Traffic on the network interface that the work comes in by, headers of the link included
/// (/proc/net/dev of proc_pid_net(5)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct NetworkTotals {
    pub received_bytes: u64,
    pub received_packets: u64,
    pub received_dropped: u64,
    pub sent_bytes: u64,
    pub sent_packets: u64,
    pub sent_dropped: u64,
    /// What the link carries in each direction, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bits_per_s: Option<u64>,
}

/// What heat did, as far as the machine tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeatTotals {
    /// How often a processor was slowed down: the largest increase of any counter; each processor
    /// has one for its core and one for its package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_throttles: Option<u64>,
    /// A drive's own temperature alarm was on, before the work or after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drive_alarm: Option<bool>,
    /// The higher of the hottest drive's temperatures before the work and after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drive_celsius: Option<i64>,
}

/// What the cache of the kernel's own ZFS did (the ARC; OpenZFS, module/os/linux/zfs/arc_os.c and
/// `arcstats` of module/zfs/arc.c).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArcTotals {
    /// Blocks that were asked for and found there.
    pub hits: u64,
    /// Blocks that were asked for and not found there.
    pub misses: u64,
    /// The most that it may hold, at the end: `c_max`.
    pub max_bytes: u64,
}

/// What one application read from disks and stored for them, its children included, as Netdata's
/// app.disk_physical_io counts it (proc_pid_io(5)).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Application {
    /// The server's program, or `work`.
    pub name: String,
    /// Bytes fetched from disks.
    pub read_bytes: u64,
    /// Bytes of the page cache made dirty, and written past it.
    pub write_bytes: u64,
}

impl Application {
    /// The name of all that belongs to no server.
    pub const WORK: &str = "work";

    /// The metric of `what` it did, its name written as metrics are.
    pub fn metric(&self, what: &str) -> String {
        format!("application_{}_{what}", as_metric(&self.name))
    }
}

/// What the probes saw during one timed part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// CPU time of the whole machine, in the kernel's ticks.
    pub cpu: CpuTotals,
    /// CPU time of the work and of the kernel's threads, where their clocks could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_time: Option<CpuTime>,
    /// The devices under test; `None` where they are not known (a directory on a network, say).
    pub device: Option<DeviceTotals>,
    /// Others on the disk that the devices under test lie on, where they lie on one that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign: Option<ForeignTotals>,
    /// The work on all disks, where its processes tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_io: Option<WorkIo>,
    /// Dirty memory.
    pub memory: MemoryTotals,
    /// Pressure, where the kernel has PSI.
    pub pressure: Option<PressureTotals>,
    /// Of the trial's own cgroup, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<OwnTotals>,
    /// The page cache, where the plan asks for it and the kernel tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_cache: Option<PageCacheTotals>,
    /// The cache of the kernel's own ZFS, where that is loaded: of all its pools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arc: Option<ArcTotals>,
    /// The network, where the work comes in over one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkTotals>,
    /// Heat, where the machine tells anything of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heat: Option<HeatTotals>,
    /// Processes that wait for a disk, integrated over time: divided by the time it is their mean
    /// number. Those that the kernel holds up because too much is dirty are among them.
    #[serde(default)]
    pub blocked_ns: u64,
    /// Processes and threads started: by the work, where the trial has a PID namespace of its own,
    /// else system-wide.
    pub processes_started: u64,
}

/// One timed part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseRecord {
    /// Which part.
    pub phase: Phase,
    /// Time of the work itself.
    pub work_ns: u64,
    /// Time of the closing syncfs: the timed part is both.
    pub syncfs_ns: u64,
    /// The tool's own time for its work, where it says one: fio's runtime leaves its start and
    /// layout out. `None`: `work_ns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_ns: Option<u64>,
    /// Operations done, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<u64>,
    /// Bytes the application asked to have read, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application_read_bytes: Option<u64>,
    /// Bytes the application asked to have written, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application_write_bytes: Option<u64>,
    /// The work went on for a while before its tool counted anything (fio's `ramp_time`). The
    /// machine's counters have that, and so nothing of them is divided by the tool's figures.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ramped: bool,
    /// The requests under way, where the tool tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// Its jobs, where it has several. If they did not all run at once, the timed part itself has
    /// bytes only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<JobRecord>,
    /// What a replay leaves out of the recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replayed: Option<Replayed>,
    /// The rate window by window, of time-based work whose tool tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_over_time: Option<RateOverTime>,
    /// Its turns, where it took them with the other contenders of its round. All times and rates
    /// are those of its turns then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<Turns>,
    /// Processes the work had left running when it ended; they were killed.
    #[serde(default)]
    pub processes_left: u32,
    /// What the probes saw.
    pub totals: Totals,
    /// The highest second of what shows a peak.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peaks: Vec<Sample>,
    /// Disk I/O by application, where servers do the work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub applications: Vec<Application>,
    /// Other programs, where they can be seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strangers: Option<Strangers>,
    /// Latencies by kind of operation.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub histograms: BTreeMap<String, Histogram>,
    /// Figures of the tool's own: those that are judged and those that are only kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<Sample>,
}

impl PhaseRecord {
    /// A timed part without further details yet.
    pub fn new(phase: Phase, work_ns: u64, syncfs_ns: u64) -> PhaseRecord {
        PhaseRecord {
            phase,
            work_ns,
            syncfs_ns,
            tool_ns: None,
            operations: None,
            application_read_bytes: None,
            application_write_bytes: None,
            ramped: false,
            queue: None,
            jobs: Vec::new(),
            replayed: None,
            rate_over_time: None,
            turns: None,
            processes_left: 0,
            totals: Totals::default(),
            peaks: Vec::new(),
            applications: Vec::new(),
            strangers: None,
            histograms: BTreeMap::new(),
            samples: Vec::new(),
        }
    }

    /// The timed part: the work and its closing syncfs, in seconds.
    pub fn timed_s(&self) -> f64 {
        (self.work_ns + self.syncfs_ns) as f64 / 1e9
    }

    /// What rates divide by: the tool's own time where it has one, and the closing syncfs.
    pub fn rated_s(&self) -> f64 {
        (self.tool_ns.unwrap_or(self.work_ns) + self.syncfs_ns) as f64 / 1e9
    }

    /// What rates are multiplied by: the rate of the steady part, or that of turns which were
    /// paired with those of others, over the whole run's.
    pub fn judged_share(&self) -> f64 {
        let whole = self.operations.unwrap_or(0) as f64 / (self.work_ns as f64 / 1e9);
        match self.turns.as_ref().and_then(|turns| turns.rate) {
            Some(paired) if whole > 0.0 => paired / whole,
            _ => self.rate_over_time.as_ref().map_or(1.0, RateOverTime::steady_share),
        }
    }

    /// Bytes the application asked to have written, where writing is part of the work: a command
    /// that reads says a line or two about it, which count too.
    pub fn written_bytes(&self) -> Option<u64> {
        let read_bytes = self.application_read_bytes.unwrap_or(0);
        self.application_write_bytes.filter(|&bytes| bytes > 0 && bytes >= read_bytes / 100)
    }

    /// Bytes the application asked to have read, where reading is part of the work.
    pub fn read_bytes(&self) -> Option<u64> {
        let written_bytes = self.application_write_bytes.unwrap_or(0);
        self.application_read_bytes.filter(|&bytes| bytes > 0 && bytes >= written_bytes / 100)
    }

    /// Device bytes per application byte, and whether they are bytes written: of the written ones
    /// where the work writes, else of those read; of at least `least_bytes`. `None` where either is
    /// unknown, or they are not of the same time.
    pub fn device_bytes_per_application_byte(&self, least_bytes: u64) -> Option<(f64, bool)> {
        let device = self.totals.device.filter(|_| !self.ramped)?;
        let ratio = |device: u64, application: Option<u64>| match application {
            Some(bytes) if bytes >= least_bytes.max(1) => Some(device as f64 / bytes as f64),
            _ => None,
        };
        ratio(device.write_bytes, self.written_bytes()).map(|written| (written, true)).or_else(
            || ratio(device.read_bytes, self.application_read_bytes).map(|read| (read, false)),
        )
    }
}

/// The virtual machine that a trial ran in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guest {
    /// Its kernel's release.
    pub kernel: String,
    /// Every instruction was emulated, for want of KVM.
    pub emulated: bool,
    /// Its kernel was a process of the host's (User Mode Linux).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub user_mode: bool,
    /// From its start to the trial's.
    pub boot_ns: u64,
    /// Which driver its disks have, and what they call themselves: `nvme, QEMU NVMe Ctrl`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub disks: String,
    /// How its kernel had panicked when it was booted before, where this was not the first time, or
    /// that it printed nothing then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub panicked: Option<String>,
    /// The processor that QEMU emulated, if the kernel had panicked on the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor: Option<String>,
    /// What its kernel can't tell, a sentence each, and that its processor is another.
    #[serde(default, rename = "lacks", skip_serializing_if = "Vec::is_empty")]
    pub untold: Vec<String>,
    /// Its kernel counts flushes, as those of Linux 5.5 and later do; older records don't tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flushes_counted: Option<bool>,
}

/// What is said of a kernel that counts no flushes, in older records too: of one that counts
/// discards (Linux 4.18), and of one that counts neither.
pub const NO_FLUSHES_COUNTED: [&str; 2] = [
    "/proc/diskstats, with discards; flushes need Linux 5.5",
    "/proc/diskstats; discards need Linux 4.18, flushes 5.5",
];

impl Guest {
    /// Its kernel counts flushes. In older records others say that they counted 0.
    pub fn counts_flushes(&self) -> bool {
        let is_said_not_to =
            || self.untold.iter().any(|it| NO_FLUSHES_COUNTED.contains(&it.as_str()));
        self.flushes_counted.unwrap_or_else(|| !is_said_not_to())
    }
}

/// One trial, as it went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`super::SCHEMA`].
    pub schema: u32,
    /// The trial's number within the run.
    pub number: u32,
    /// Where it belongs.
    #[serde(flatten)]
    pub key: Key,
    /// Its place among the trials of its round.
    pub position: u32,
    /// Seed of the work.
    pub seed: u64,
    /// Which contender and which workload it was, whole.
    pub outcome: Outcome,
    /// The machine it ran in, in place `vm`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<Guest>,
    /// Every step with its time, in order, those of the clean-up too.
    pub steps: Vec<StepTime>,
    /// The partitions it was made on, where its contender has the devices partitioned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partitions: Vec<Partition>,
    /// The layers below it, as their own tools describe them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<String>,
    /// What the disk under test said of itself when the file system was made; the first of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<Disk>,
    /// What limits counted, on a bed that might have some: [`Record::limits_counted`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits_count: Option<Counted>,
    /// What was found out of the bed's disk before the first trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probed: Option<Probed>,
    /// How it was mounted for the timed part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mounted: Option<Mounted>,
    /// The caches around each drop.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caches: Vec<CacheState>,
    /// The device's rest before each timed part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settled: Vec<Quiet>,
    /// Timed parts that the file system refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Refused>,
    /// What the work left where it was not to write, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub astray: Option<Astray>,
    /// Writes that the kernel refused the work, where that was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forbidden: Option<Forbidden>,
    /// What went wrong beneath the work, if anything.
    #[serde(default, skip_serializing_if = "Trouble::is_none")]
    pub trouble: Trouble,
    /// By the name of a file in `raw/`: bytes that were printed and are not in it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unkept_bytes: BTreeMap<String, u64>,
    /// The timed parts.
    pub phases: Vec<PhaseRecord>,
    /// All figures, by metric.
    pub samples: Vec<Sample>,
}

impl Record {
    /// A measured trial without further details yet.
    pub fn new(number: u32, key: Key, position: u32, seed: u64) -> Record {
        Record {
            schema: SCHEMA,
            number,
            key,
            position,
            seed,
            outcome: Outcome::Measured,
            guest: None,
            steps: Vec::new(),
            partitions: Vec::new(),
            layers: Vec::new(),
            disk: None,
            limits_count: None,
            probed: None,
            mounted: None,
            caches: Vec::new(),
            settled: Vec::new(),
            refused: Vec::new(),
            astray: None,
            forbidden: None,
            trouble: Trouble::default(),
            unkept_bytes: BTreeMap::new(),
            phases: Vec::new(),
            samples: Vec::new(),
        }
    }

    /// The figure of `metric`, if the trial has one.
    pub fn sample(&self, metric: &str) -> Option<&Sample> {
        self.samples.iter().find(|sample| sample.metric == metric)
    }

    /// What its limits counted, if it had any. Older records do not tell: this machine's limits
    /// counted bios then, and a guest's requests.
    pub fn limits_counted(&self) -> Counted {
        let before = match &self.guest {
            Some(_) => Counted::Requests,
            None => Counted::Bios,
        };
        self.limits_count.unwrap_or(before)
    }

    /// Its direct writes go through the page cache all the same: Btrfs's data with checksums, by
    /// its own kernel or the host's; if neither is known, it may be one of these.
    pub fn buffers_direct_writes(&self, host_kernel: Option<&str>) -> bool {
        let Some(mounted) = &self.mounted else { return false };
        let is_plain = |option: &String| matches!(option.as_str(), "nodatasum" | "nodatacow");
        let kernel = self.guest.as_ref().map(|guest| guest.kernel.as_str()).or(host_kernel);
        let is_another = kernel.and_then(version).is_some_and(|it| !BTRFS_BUFFERS.contains(&it));
        mounted.file_system == "btrfs" && !mounted.options.iter().any(is_plain) && !is_another
    }

    /// The file system refused that part.
    pub fn refuses(&self, phase: Phase) -> bool {
        self.refused.iter().any(|refused| refused.phase == phase)
    }

    /// It ran whole.
    pub fn is_measured(&self) -> bool {
        self.outcome == Outcome::Measured
    }

    /// The time of all steps together, as far as it can be told.
    pub fn took_ns(&self) -> u64 {
        self.steps.iter().fold(0, |all, step| all.saturating_add(step.duration_ns))
    }

    /// The same in seconds.
    pub fn wall_s(&self) -> f64 {
        self.took_ns() as f64 / 1e9
    }
}

/// The versions of Linux whose Btrfs writes the data of files with checksums through the page
/// cache, O_DIRECT or not: from 968f19c5b1b7, "btrfs: always fallback to buffered write if the
/// inode requires checksum", to e9b7b9d9e78e of August 2026, "btrfs: use IOMAP_DIO_BOUNCE flag
/// instead of falling back to buffered IO", which no version before 7.3 can have.
const BTRFS_BUFFERS: Range<(u32, u32)> = (6, 14)..(7, 3);

/// The first two numbers of a kernel's release.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

impl Totals {
    /// The processors' time that the timed part cost. Where the clocks could not be read, and in
    /// older records, that is the whole machine's busy time.
    pub fn cpu_ns(&self) -> u64 {
        self.cpu_time.map_or(self.cpu.busy_ns(), |time| time.ns())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::CpuClock;

    #[test]
    fn btrfs_buffers_direct_writes_of_data_with_checksums_by_a_recent_kernel() {
        let of = |file_system: &str, option: &str, kernel| {
            let options = vec!["rw".into(), option.into()];
            let mounted =
                Mounted { file_system: file_system.into(), options, ..Mounted::default() };
            let key = Key { round: 1, workload: "w".into(), contender: "c".into() };
            let record = Record { mounted: Some(mounted), ..Record::new(1, key, 1, 1) };
            record.buffers_direct_writes(kernel)
        };
        assert!(of("btrfs", "noatime", Some("6.14.0-rc1")) && of("btrfs", "noatime", None));
        assert!(of("btrfs", "noatime", Some("7.2.4")));
        for other in ["6.1.0-41-amd64", "6.13.12", "7.3.0"] {
            assert!(!of("btrfs", "noatime", Some(other)), "{other}");
        }
        assert!(!of("btrfs", "nodatasum", None) && !of("ext4", "noatime", None));
    }

    #[test]
    fn a_record_without_the_clocks_has_the_machines_busy_time() {
        let cpu = CpuTotals { user_ns: 10_000_000, ..CpuTotals::default() };
        let old = Totals { cpu, ..Totals::default() };
        let text = serde_json::to_string(&old).unwrap();
        assert!(!text.contains("cpu_time"), "{text}");
        assert_eq!(serde_json::from_str::<Totals>(&text).unwrap().cpu_ns(), 10_000_000);
        let time = CpuTime { work_ns: 700, kernel_ns: 7, clock: CpuClock::Cgroup };
        let new = Totals { cpu_time: Some(time), ..old };
        let text = serde_json::to_string(&new).unwrap();
        assert!(text.contains(r#""cpu_time":{"work_ns":700,"kernel_ns":7,"clock":"cgroup"}"#));
        assert_eq!(serde_json::from_str::<Totals>(&text).unwrap().cpu_ns(), 707);
    }
}
