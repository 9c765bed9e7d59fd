//! What `fsverdict run` can be told on its command line.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::{Args, FromArgMatches, ValueEnum};
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter};
use fsverdict_core::model::{Above, Attachment, Bytes, Layer, Limits, Percent, Place, Span};
use fsverdict_host::bed::{Consent, Consents};

use crate::offers;
use crate::say::Look;
use crate::source::Loaded;
use crate::watch::Wish;

/// Whether what was measured is enough.
pub type Until = Box<dyn Fn(&Loaded) -> bool>;

const BED: &str = "The bed";
const WORK: &str = "The work";
const PLACE: &str = "The place";
const JUDGED: &str = "The verdict";
const TRIALS: &str = "The trials";
const RUN: &str = "The run";

/// What a run that was begun has in its plan, and no option changes.
pub const FIXED: [&str; 43] = [
    "plan",
    "study",
    "only",
    "scale",
    "fs",
    "bed",
    "like",
    "limits",
    "dir",
    "map",
    "size",
    "devices",
    "kernel",
    "zfs",
    "vm_append",
    "vm_memory",
    "disks",
    "layers",
    "above",
    "bring",
    "untrusted",
    "small_files",
    "fsync_files",
    "metadata",
    "tree",
    "probe",
    "setup",
    "prepare",
    "check",
    "cleanup",
    "warm",
    "operations",
    "figure",
    "primary",
    "reference",
    "duet",
    "trial_timeout",
    "step_timeout",
    "margin",
    "confidence",
    "seed",
    "output",
    "command",
];

/// Layers, the first next to the disk.
pub type Stack = Vec<Layer>;

/// What stands on one another, upon a file system.
pub type Standing = Vec<Above>;

/// Compare file systems on your own work.
///
/// Each contender's file system is made afresh for every trial; the trials run in interleaved
/// rounds, in random order, until every comparison is settled or the rounds or the budget are
/// spent. The work runs in the mounted file system: name other files by absolute paths.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, help_template = examples_first())]
pub struct Arguments {
    /// A plan in TOML, or one of those that come with fsverdict: fsverdict list plans. Options on
    /// the command line take precedence.
    #[arg(value_name = "PLAN", add = ArgValueCompleter::new(offers::plans))]
    pub plan: Option<PathBuf>,
    /// A published study, to be run as it is described: fsverdict list studies.
    #[arg(
        long,
        value_name = "NAME",
        conflicts_with = "plan",
        add = ArgValueCandidates::new(offers::studies)
    )]
    pub study: Option<String>,
    /// Run this workload of the plan alone; give it again for each further one.
    #[arg(long, value_name = "NAME", help_heading = TRIALS)]
    pub only: Vec<String>,
    /// Multiply every size, count and time of the plan, by 1/16 or 0.1; stamped on the result.
    #[arg(long, value_name = "FACTOR", value_parser = scale, help_heading = TRIALS)]
    pub scale: Option<f64>,
    /// File systems to compare, in place of the plan's; the same one twice compares it with itself.
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME,...",
        add = ArgValueCandidates::new(offers::file_systems)
    )]
    pub fs: Vec<String>,
    /// The target: loop, ram, ram:zram, device:/dev/NAME[,...], or directory:PATH[,...] without
    /// --fs [default: the plan's, or loop].
    #[arg(long, help_heading = BED)]
    pub bed: Option<String>,
    /// The disk whose flags the bed has: nvme, ssd, hdd, virtio, or a path such as /dev/nvme0n1
    /// [default: the disk that holds the images].
    #[arg(long, value_name = "DISK", help_heading = BED)]
    pub like: Option<String>,
    /// Limits of the bed, like those of a cloud disk: iops=3000,bandwidth=125M, or by direction:
    /// read-iops, write-iops, read-bandwidth, write-bandwidth. Bandwidth is per second; k, M and G
    /// are powers of 1024.
    #[arg(long, value_name = "LIMIT,...", help_heading = BED)]
    pub limits: Option<Limits>,
    /// A device of bed `device` that may be erased, named again; with what it carries, if anything:
    /// /dev/sdb=gpt,ext4. Once for each device.
    #[arg(long, value_name = "PATH[=SIGNATURE,...]", help_heading = BED)]
    pub erase: Vec<Consent>,
    /// Erase data without a signature, too: archives, raw databases, encrypted disks.
    #[arg(long, help_heading = BED)]
    pub erase_data: bool,
    /// Where image files are made [default: the run's folder].
    #[arg(long, help_heading = BED)]
    pub dir: Option<PathBuf>,
    /// A folder outside the file system under test that the work may write to; may be given again.
    #[arg(long, value_name = "DIR", help_heading = WORK)]
    pub writable: Vec<PathBuf>,
    /// A folder that the work names by an absolute path, and where it lies in the work's own:
    /// /data=. or /srv/logs=logs; may be given again.
    #[arg(long, value_name = "PATH=PLACE", value_parser = map, help_heading = WORK)]
    pub map: Vec<(String, String)>,
    /// Size of each image, which is written full; in a duet each contender has one. k, M and G are
    /// powers of 1024 [default: 4G].
    #[arg(long, help_heading = BED)]
    pub size: Option<Bytes>,
    /// Devices to make, for file systems that take several [default: 1].
    #[arg(long, value_name = "N", help_heading = BED)]
    pub devices: Option<u32>,
    /// Who runs the trials: this machine, a virtual one for each, or a simulated one [default:
    /// this machine if it can, otherwise virtual ones].
    #[arg(long, value_enum, help_heading = PLACE)]
    pub place: Option<PlaceName>,
    /// A kernel to boot in place vm: a version, the path of a bzImage, or a kernel's tree that is
    /// built: ./linux; several are compared.
    #[arg(long, value_name = "KERNEL", help_heading = PLACE)]
    pub kernel: Vec<String>,
    /// Versions of OpenZFS to compare, each built for the kernel that --kernel names: 2.1,2.3,2.4;
    /// fsverdict kernels get 6.1 --with zfs=2.1,2.3,2.4.
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "VERSION,...",
        value_parser = openzfs_version,
        requires = "kernel",
        help_heading = PLACE
    )]
    pub zfs: Vec<String>,
    /// Words for the kernel's command line in place vm: mitigations=off.
    #[arg(long, value_name = "WORDS", allow_hyphen_values = true, help_heading = PLACE)]
    pub vm_append: Option<String>,
    /// Options for QEMU, after fsverdict's own: '-cpu qemu64'.
    #[arg(long, value_name = "WORDS", allow_hyphen_values = true, help_heading = PLACE)]
    pub vm_qemu: Option<String>,
    /// Memory of each virtual machine, besides what is brought along: 4G.
    #[arg(long, value_name = "SIZE", help_heading = PLACE)]
    pub vm_memory: Option<Bytes>,
    /// How a virtual machine's disks are attached: virtio-blk, virtio-scsi, nvme or ahci; several
    /// are compared [default: virtio-blk, or what the kernel has].
    #[arg(long, value_delimiter = ',', value_name = "NAME,...", help_heading = PLACE)]
    pub disks: Vec<Attachment>,
    /// What lies below the file systems, the first next to the disk: luks+raid1; none; several are
    /// compared: fsverdict list layers.
    #[arg(long, value_name = "LAYER+...", value_parser = Layer::parse_stack, help_heading = BED)]
    pub layers: Vec<Stack>,
    /// What stands on the file systems, the first next to them: overlay; gocryptfs:aessiv; none;
    /// several are compared: fsverdict list contenders.
    #[arg(
        long, value_name = "FS[:OPTION,...]+...", value_parser = Above::parse_stack,
        add = ArgValueCandidates::new(offers::above), help_heading = BED
    )]
    pub above: Vec<Standing>,
    /// A file or folder of this machine that a virtual one gets, besides those that commands name.
    #[arg(long, value_name = "PATH", help_heading = PLACE)]
    pub bring: Vec<PathBuf>,
    /// A stranger wrote the plan: run it in virtual machines that get nothing of this machine but
    /// what --bring names.
    #[arg(long, conflicts_with_all = ["resume", "erase", "writable"], help_heading = PLACE)]
    pub untrusted: bool,
    /// Many small files, natively: count=10000,size=1k,directories=1,threads=1,sync=end.
    #[arg(
        long, value_name = "KEY=VALUE,...", num_args = 0..=1, default_missing_value = "",
        help_heading = WORK
    )]
    pub small_files: Option<String>,
    /// Many files written and one synced: files=10,size=2k,repetitions=100,case=allocating,
    /// operation=fsync.
    #[arg(
        long, value_name = "KEY=VALUE,...", num_args = 0..=1, default_missing_value = "",
        help_heading = WORK
    )]
    pub fsync_files: Option<String>,
    /// Metadata operations, natively: directories=1000,files_per_directory=10,threads=1.
    #[arg(
        long, value_name = "KEY=VALUE,...", num_args = 0..=1, default_missing_value = "",
        help_heading = WORK
    )]
    pub metadata: Option<String>,
    /// A tree made, copied, walked, deleted: files=10000,mean_size=16k,threads=1,source=DIR.
    #[arg(
        long, value_name = "KEY=VALUE,...", num_args = 0..=1, default_missing_value = "",
        help_heading = WORK
    )]
    pub tree: Option<String>,
    /// Read this too during the timed parts. It costs the work something: fsverdict list probes.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAME,...", help_heading = TRIALS)]
    pub probe: Vec<ProbeName>,
    /// A line for the shell, before the remount, untimed.
    #[arg(long, value_name = "LINE", help_heading = WORK)]
    pub setup: Option<String>,
    /// A line for the shell, after the remount, untimed.
    #[arg(long, value_name = "LINE", help_heading = WORK)]
    pub prepare: Option<String>,
    /// A line for the shell, after the work, untimed: a status other than 0 fails the trial.
    #[arg(long, value_name = "LINE", help_heading = WORK)]
    pub check: Option<String>,
    /// A line for the shell, last of all, also after a failure.
    #[arg(long, value_name = "LINE", help_heading = WORK)]
    pub cleanup: Option<String>,
    /// Leave the caches as --prepare leaves them. The remount before that empties them, except on
    /// bed directory.
    #[arg(long, help_heading = WORK)]
    pub warm: bool,
    /// Operations the command does, to give it a rate.
    #[arg(long, value_name = "N", help_heading = WORK)]
    pub operations: Option<u64>,
    /// A figure to find in what the command prints, and to judge it by: the first group of the last
    /// match. A unit, and whether higher or lower is better, may follow.
    #[arg(
        long, value_name = "NAME=REGEX[:UNIT][:BETTER]", value_parser = figure,
        help_heading = JUDGED
    )]
    pub figure: Vec<(String, String)>,
    /// Metrics to judge, instead of the workload's own choice.
    #[arg(long, value_delimiter = ',', value_name = "METRIC,...", help_heading = JUDGED)]
    pub primary: Vec<String>,
    /// The contender the others are compared with [default: the first].
    #[arg(long, value_name = "NAME", help_heading = JUDGED)]
    pub reference: Option<String>,
    /// Run all contenders of a round at once, each on a bed of its own, in turns of 100 ms: noise
    /// then hits all alike. For native work, replays and fio jobs that run for a time, on beds loop
    /// and ram.
    #[arg(long)]
    pub duet: bool,
    /// Rounds at most [default: 12].
    #[arg(long, value_name = "N", help_heading = JUDGED)]
    pub rounds: Option<u32>,
    /// Time at most: 90s, 30m, 2h. Given alone, there is no limit on rounds.
    #[arg(long, value_name = "TIME", help_heading = JUDGED)]
    pub budget: Option<Span>,
    /// Longest time of a trial. One that takes longer is ended and fails; the run goes on
    /// [default: 2h; with --budget that time, at least 10m].
    #[arg(long, value_name = "TIME", help_heading = TRIALS)]
    pub trial_timeout: Option<Span>,
    /// Longest time of single steps: mkfs=2h,work=30m [default: FORMAT.md, `timeout`].
    #[arg(
        long, value_delimiter = ',', value_name = "STEP=TIME,...", value_parser = step_timeout,
        help_heading = TRIALS
    )]
    pub step_timeout: Vec<(String, Span)>,
    /// Differences smaller than this are trivial [default: 5%].
    #[arg(long, help_heading = JUDGED)]
    pub margin: Option<Percent>,
    /// Chance that all intervals of a workload hold [default: 95%].
    #[arg(long, help_heading = JUDGED)]
    pub confidence: Option<Percent>,
    /// Seed of the order and of the work; the same seed gives the same run.
    #[arg(long, help_heading = TRIALS)]
    pub seed: Option<u64>,
    /// Go on with a run that was interrupted or killed; with more --rounds or a longer --budget,
    /// also with one that has ended: its intervals then widen, from 95% to 97.5%, because it was
    /// looked at before.
    #[arg(
        long,
        value_name = "RUN",
        conflicts_with_all = FIXED,
        help_heading = RUN,
        add = ArgValueCandidates::new(offers::runs)
    )]
    pub resume: Option<PathBuf>,
    /// The run's folder [default: runs/TIME-NAME].
    #[arg(short, long, value_name = "DIR", help_heading = RUN)]
    pub output: Option<PathBuf>,
    /// Write the result as JSON; - for standard output.
    #[arg(long, value_name = "FILE", help_heading = RUN)]
    pub json: Option<PathBuf>,
    /// Print every command of the first round instead of running it.
    #[arg(long, help_heading = RUN)]
    pub dry_run: bool,
    #[command(flatten)]
    pub look: Look,
    #[command(flatten)]
    pub watching: Wish,
    /// The run ends as soon as that is so of what it has measured.
    #[arg(skip)]
    pub until: Option<Until>,
    /// The work: any command. fio, sysbench and other benchmarks are recognised, and their own
    /// figures kept.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

impl Arguments {
    /// Nothing says what to run.
    pub fn is_bare(&self) -> bool {
        let named = [self.plan.is_some(), self.study.is_some(), self.resume.is_some()];
        let native = [&self.small_files, &self.fsync_files, &self.metadata, &self.tree];
        let typed = self.command.len() + self.fs.len() + native.iter().copied().flatten().count();
        !named.contains(&true) && typed == 0 && self.bed.is_none() && self.kernel.is_empty()
    }

    /// All that may be erased.
    pub fn consents(&self) -> Consents {
        Consents { named: self.erase.clone(), data: self.erase_data }
    }

    /// `fsverdict run PLAN --output FOLDER`, with what may be erased.
    pub fn of_plan(plan: &Path, folder: &Path, erase: &Consents) -> Result<Self, clap::Error> {
        let mut arguments = Self::of_words(&[plan.as_os_str()], folder)?;
        (arguments.erase, arguments.erase_data) = (erase.named.clone(), erase.data);
        Ok(arguments)
    }

    /// `fsverdict run --study NAME --output FOLDER`.
    pub fn of_study(name: &str, folder: &Path) -> Result<Self, clap::Error> {
        Self::of_words(&["--study".as_ref(), name.as_ref()], folder)
    }

    fn of_words(words: &[&OsStr], folder: &Path) -> Result<Self, clap::Error> {
        let output = ["--output".as_ref(), folder.as_os_str()];
        let words = ["run".as_ref()].into_iter().chain(words.iter().copied()).chain(output);
        let typed = Self::augment_args(clap::Command::default()).try_get_matches_from(words)?;
        Self::from_arg_matches(&typed)
    }
}

/// Places by the names they have on the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum PlaceName {
    #[value(alias = "here")]
    Local,
    Vm,
    Uml,
    Sim,
}

impl From<PlaceName> for Place {
    fn from(name: PlaceName) -> Place {
        match name {
            PlaceName::Local => Place::Local,
            PlaceName::Vm => Place::Vm,
            PlaceName::Uml => Place::Uml,
            PlaceName::Sim => Place::Sim,
        }
    }
}

/// Probes that are to be asked for, by the names they have on the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ProbeName {
    PageCache,
    Trace,
}

/// `STEP=TIME`. Which steps there are the plan knows.
fn step_timeout(text: &str) -> Result<(String, Span), String> {
    let (step, limit) = text.split_once('=').ok_or("write STEP=TIME")?;
    let limit = limit.parse::<Span>().map_err(|error| error.to_string())?;
    Ok((step.into(), limit))
}

/// `2.3`, `2.3.9`.
pub fn openzfs_version(text: &str) -> Result<String, String> {
    let is_version = text.starts_with(|c: char| c.is_ascii_digit());
    if is_version { Ok(text.into()) } else { Err("write a version of OpenZFS: 2.3".into()) }
}

/// `NAME=REGEX`. What it says the workload checks.
fn figure(text: &str) -> Result<(String, String), String> {
    let (name, pattern) = text.split_once('=').ok_or("write NAME=REGEX[:UNIT][:BETTER]")?;
    Ok((name.into(), pattern.into()))
}

/// `PATH=PLACE`. What it says the workload checks.
fn map(text: &str) -> Result<(String, String), String> {
    let (path, place) = text.rsplit_once('=').ok_or("write PATH=PLACE, such as /data=.")?;
    Ok((path.trim_end_matches('/').into(), place.trim_end_matches('/').into()))
}

/// A factor, or a fraction such as 1/10.
pub fn scale(text: &str) -> Result<f64, String> {
    let (over, under) = text.split_once('/').unwrap_or((text, "1"));
    let number = |text: &str| text.trim().parse::<f64>().ok();
    match number(over).zip(number(under)).map(|(over, under)| over / under) {
        Some(scale) if scale.is_finite() && scale > 0.0 => Ok(scale),
        _ => Err("write 0.1 or 1/10".into()),
    }
}

/// The first of the examples, for those who have typed nothing else.
pub const FIRST: &str = "\
Examples:
  sudo fsverdict run --fs ext4,xfs,btrfs -- cp -a /usr/share/doc .
  sudo fsverdict run --fs ext4,xfs -- fio /srv/jobs/database.fio
  sudo fsverdict run postgresql";

const EXAMPLES: &str = "\
Examples:
  sudo fsverdict run --fs ext4,xfs,btrfs -- cp -a /usr/share/doc .
  sudo fsverdict run --fs ext4,xfs -- fio /srv/jobs/database.fio
  sudo fsverdict run postgresql
  sudo fsverdict run --fs ext4,xfs --setup 'tar xf /srv/tree.tar' -- rm -rf tree
  sudo fsverdict run --fs ext4,xfs,btrfs --small-files count=10000,size=1k
  fsverdict run --kernel 5.10 --kernel 6.12 --fs ext4,xfs --size 1G --fsync-files files=10
  sudo fsverdict run --bed device:/dev/sdb --erase /dev/sdb --fs ext4,xfs -- COMMAND";

/// The examples lead the help: the options are long.
fn examples_first() -> String {
    let before = "{about-with-newline}\n{usage-heading} {usage}";
    format!("{before}\n\n{EXAMPLES}\n\n{{all-args}}")
}
