//! What is needed of the place where trials run, and what a place answers.
//!
//! Each part of a plan states its needs as values, and each place answers them: no names are
//! compared, and a need that no place meets is known before anything is written.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;

use super::{Bed, BedKind, Contender, ExtraProbe, Place, Work, Workload};

/// Something that is read during the timed parts of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it")]
pub enum ProbeKind {
    Cpu,
    Memory,
    Device,
    Pressure,
    Network,
    Heat,
    PageCache,
}

impl ProbeKind {
    /// All, in the order they are shown.
    pub const ALL: [ProbeKind; 7] = [
        ProbeKind::Cpu,
        ProbeKind::Memory,
        ProbeKind::Device,
        ProbeKind::Pressure,
        ProbeKind::Network,
        ProbeKind::Heat,
        ProbeKind::PageCache,
    ];

    /// What it reads, for users.
    fn name(self) -> &'static str {
        match self {
            ProbeKind::Cpu => "CPU time",
            ProbeKind::Memory => "dirty memory",
            ProbeKind::Device => "device counters",
            ProbeKind::Pressure => "pressure",
            ProbeKind::Network => "network counters",
            ProbeKind::Heat => "heat",
            ProbeKind::PageCache => "page cache",
        }
    }
}

/// Something that is needed of a place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// The rights of root.
    Root,
    /// To mount, in mount and PID namespaces of a trial's own.
    Namespaces,
    /// Files as block devices.
    LoopDevices,
    /// A disk beneath the images that says of itself what it is.
    Disk,
    /// Compressed memory as a block device.
    Zram,
    /// Free space for image files.
    Images {
        /// All of them together.
        bytes: u64,
    },
    /// Space on a disk or in a directory of the user's.
    Space {
        /// The device, or the directory.
        at: String,
        /// How much.
        bytes: u64,
    },
    /// Memory that is free.
    Memory {
        /// How much.
        bytes: u64,
    },
    /// To empty the page cache.
    DropCaches,
    /// To make and mount a file system, by its name.
    FileSystem(String),
    /// To partition a disk.
    Partitions,
    /// To make a layer below the file system, by its name.
    Layer(String),
    /// To hold devices down to limits.
    Limits,
    /// To hold down what a trial asks of a device that others use, too.
    OwnLimits,
    /// A link between server and clients.
    Link,
    /// A network interface, by its name.
    Interface(String),
    /// A program that fsverdict starts, from where system tools are.
    Tool(&'static str),
    /// A program that the work's commands start, found as its user's shell would; or a file, by
    /// its path.
    Program {
        /// Its name or path.
        name: String,
        /// The Debian package that brings it.
        package: Option<String>,
    },
    /// A directory of the user's.
    Directory(String),
    /// Something for a probe to read.
    Probe(ProbeKind),
    /// The kernel's block events.
    BlockEvents,
    /// A cgroup for each trial.
    Cgroups,
    /// The kernel's log.
    KernelLog,
    /// The program that is the virtual machine.
    Qemu,
    /// A kernel that it can boot: of that name, or any.
    Kernel(Option<String>),
    /// Virtual machines at the processor's own speed.
    Kvm,
    /// User Mode Linux: a kernel that is a process.
    Uml,
    /// Figures as PNG.
    Png,
}

impl Need {
    /// Its name in `doctor` and in `[sim] lacks`.
    pub fn name(&self) -> Cow<'_, str> {
        Cow::Borrowed(match self {
            Need::Root => "root",
            Need::Namespaces => "namespaces",
            Need::LoopDevices => "loop devices",
            Need::Disk => "disk beneath",
            Need::Zram => "zram",
            Need::Images { .. } => "space for images",
            Need::Space { at, .. } => return Cow::Owned(format!("space in {at}")),
            Need::Memory { .. } => "memory",
            Need::DropCaches => "drop caches",
            Need::FileSystem(name) | Need::Interface(name) => name,
            Need::Partitions => "partitions",
            Need::Layer(name) => return Cow::Owned(format!("layer {name}")),
            Need::Limits => "limits",
            Need::OwnLimits => "limits for the trial alone",
            Need::Link => "link",
            Need::Tool(name) => name,
            Need::Program { name, .. } => name,
            Need::Directory(path) => path,
            Need::Probe(kind) => kind.name(),
            Need::BlockEvents => "block events",
            Need::Cgroups => "trial cgroups",
            Need::KernelLog => "kernel log",
            Need::Qemu => "QEMU",
            Need::Kernel(None) => "kernels to boot",
            Need::Kernel(Some(name)) => return Cow::Owned(format!("kernel {name}")),
            Need::Kvm => "KVM",
            Need::Uml => "User Mode Linux",
            Need::Png => "figures as PNG",
        })
    }

    /// It is a program or file of the work's own.
    pub(super) fn is_program(&self) -> bool {
        matches!(self, Need::Program { .. })
    }
}

/// Whether a place can do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It can.
    Yes,
    /// It can, but for part of it.
    Partly,
    /// It can't.
    No,
    /// It could not be found out.
    Unknown,
}

/// What to do about something that is lacking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Run fsverdict as root.
    Sudo,
    /// Install a program.
    Install {
        /// Its name.
        program: String,
        /// The Debian package that brings it.
        package: String,
        /// What to do when it is installed, as the end of the sentence.
        then: &'static str,
    },
    /// Anything else, in words.
    Words(String),
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Remedy::Sudo => f.write_str("run it with sudo"),
            Remedy::Install { package, then, .. } => write!(f, "{}{then}", install(package)),
            Remedy::Words(words) => f.write_str(words),
        }
    }
}

/// The command that installs a package, or several.
pub fn install(packages: &str) -> String {
    format!("apt-get install {packages}")
}

/// What a place answers to a need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whether it can.
    pub state: State,
    /// What it has, or what is in the way.
    pub detail: String,
    /// What to do about it.
    pub remedy: Option<Remedy>,
}

impl Answer {
    fn new(state: State, detail: impl Into<String>) -> Answer {
        Answer { state, detail: detail.into(), remedy: None }
    }

    /// It can, as `detail` says.
    pub fn yes(detail: impl Into<String>) -> Answer {
        Answer::new(State::Yes, detail)
    }

    /// It can, but for what `detail` says.
    pub fn partly(detail: impl Into<String>) -> Answer {
        Answer::new(State::Partly, detail)
    }

    /// It can't, for `detail`.
    pub fn no(detail: impl Into<String>) -> Answer {
        Answer::new(State::No, detail)
    }

    /// It could not be found out, for `detail`.
    pub fn unknown(detail: impl Into<String>) -> Answer {
        Answer::new(State::Unknown, detail)
    }

    /// A program is not installed.
    pub fn not_installed(program: &str, package: Option<&str>) -> Answer {
        let remedy = package.map(|package| Remedy::Install {
            program: program.into(),
            package: package.into(),
            then: "",
        });
        Answer { remedy, ..Answer::no(format!("{program} is not installed")) }
    }

    /// It, with what to do about it in words.
    pub fn but(self, words: impl Into<String>) -> Answer {
        Answer { remedy: Some(Remedy::Words(words.into())), ..self }
    }

    /// It, where root could.
    pub fn but_root(self) -> Answer {
        Answer { remedy: Some(Remedy::Sudo), ..self }
    }

    /// It can, if only in part.
    pub fn is_able(&self) -> bool {
        matches!(self.state, State::Yes | State::Partly)
    }

    /// What is missing and what to do about it, in one line; nothing if nothing is.
    pub fn unmet(&self) -> Option<String> {
        let remedy = self.remedy.as_ref().map(|remedy| format!(": {remedy}")).unwrap_or_default();
        (!self.is_able()).then(|| format!("{}{remedy}", self.detail))
    }
}

/// A place that is asked what it can do, and each thing only once: an answer may take seconds.
pub struct Asked<'a> {
    ask: Box<dyn Fn(&Need) -> Answer + 'a>,
    known: RefCell<BTreeMap<Need, Answer>>,
}

impl<'a> Asked<'a> {
    /// A place that has not been asked anything yet.
    pub fn new(ask: impl Fn(&Need) -> Answer + 'a) -> Asked<'a> {
        Asked { ask: Box::new(ask), known: RefCell::default() }
    }

    /// Its answer.
    pub fn answer(&self, need: &Need) -> Answer {
        let known = self.known.borrow().get(need).cloned();
        known.unwrap_or_else(|| {
            let answer = (self.ask)(need);
            self.known.borrow_mut().insert(need.clone(), answer.clone());
            answer
        })
    }
}

impl fmt::Debug for Asked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asked").field("known", &self.known).finish_non_exhaustive()
    }
}

impl Bed {
    /// What it takes to make it.
    pub fn needs(&self) -> Vec<Need> {
        let bytes = self.size.0.saturating_mul(self.devices.into());
        let of_kind = match self.kind {
            BedKind::Loop => {
                let at = self.dir.clone();
                let space = at.map_or(Need::Images { bytes }, |at| Need::Space { at, bytes });
                vec![Need::LoopDevices, space]
            }
            // A loop device upon it has limits count requests.
            BedKind::Ram if self.zram && self.is_limited() => vec![Need::Zram, Need::LoopDevices],
            BedKind::Ram if self.zram => vec![Need::Zram],
            BedKind::Ram => vec![Need::LoopDevices, Need::Memory { bytes }],
            BedKind::Device | BedKind::Directory => Vec::new(),
        };
        let to_mount = [Need::Root, Need::Namespaces];
        let mounts = to_mount.into_iter().filter(|_| self.kind != BedKind::Directory);
        mounts.chain(of_kind).chain(self.need_of_limits()).collect()
    }

    /// What its limits need, if it has any. Those of a directory's disk are not to bind others.
    pub(super) fn need_of_limits(&self) -> Option<Need> {
        match self.kind {
            BedKind::Directory => self.is_limited().then_some(Need::OwnLimits),
            _ => self.limits.map(|_| Need::Limits),
        }
    }
}

impl Contender {
    /// What it takes to make and mount it with its settings.
    pub fn needs(&self) -> Vec<Need> {
        let is_named = !self.file_system.is_empty() && !self.is_raw();
        let file_system = is_named.then(|| Need::FileSystem(self.file_system.clone()));
        let partitions = (!self.partition.is_empty()).then_some(Need::Partitions);
        let sets = [&self.queue, &self.sysctl, &self.module].iter().any(|it| !it.is_empty());
        let limits = self.limits.map(|_| Need::Limits);
        let kernel = self.kernel.clone().map(|name| Need::Kernel(Some(name)));
        let all = [kernel, file_system, partitions, sets.then_some(Need::Root), limits];
        let layers = self.layers.iter().map(|layer| Need::Layer(layer.name.clone()));
        let above = self.above.iter().map(|it| Need::FileSystem(it.name.clone()));
        all.into_iter().flatten().chain(layers).chain(above).collect()
    }
}

impl Workload {
    /// The program that does the work, besides the workload's own commands.
    pub fn tool(&self) -> Option<&'static str> {
        match self.work() {
            Ok(Work::Fio(_)) => Some("fio"),
            Ok(Work::Sysbench(_)) => Some("sysbench"),
            _ => None,
        }
    }

    /// What it takes to run it.
    pub fn needs(&self) -> Vec<Need> {
        let tool = self.tool().map(Need::Tool);
        let own = self.needed().map(|(name, package)| Need::Program {
            name: name.into(),
            package: package.map(Into::into),
        });
        let network = self.network.as_ref().map(|network| match &network.interface {
            None => Need::Link,
            Some(name) => Need::Interface(name.clone()),
        });
        let source = self.tree.as_ref().and_then(|tree| tree.source.clone());
        // A folder is mapped by a mount.
        let mounts = [Need::Root, Need::Namespaces].into_iter().filter(|_| !self.map.is_empty());
        let all = tool.into_iter().chain(own).chain(network);
        all.chain(source.map(Need::Directory)).chain(mounts).collect()
    }
}

impl ExtraProbe {
    /// What it takes to read it. Trials go on without.
    pub fn need(self) -> Need {
        match self {
            ExtraProbe::PageCache => Need::Probe(ProbeKind::PageCache),
            ExtraProbe::Trace => Need::BlockEvents,
        }
    }
}

impl Place {
    /// What it takes to run anything there.
    pub fn needs(self) -> Vec<Need> {
        match self {
            Place::Local | Place::Sim => Vec::new(),
            Place::Vm => vec![Need::Qemu, Need::Kernel(None)],
            Place::Uml => vec![Need::Uml],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(text: &str) -> Workload {
        toml::from_str(&format!("name = \"work\"\n{text}")).unwrap()
    }

    fn names(needs: &[Need]) -> Vec<String> {
        needs.iter().map(|need| need.name().into_owned()).collect()
    }

    #[test]
    fn a_workload_needs_its_tool_its_programs_and_its_network() {
        let job = workload("fio = { rw = \"read\" }\nneeds = [\"git:git\", \"/srv/x\"]");
        assert_eq!(names(&job.needs()), ["fio", "git", "/srv/x"]);
        let git = Need::Program { name: "git".into(), package: Some("git".into()) };
        assert_eq!(job.needs()[1], git);
        let linked = workload("command = \"true\"\nnetwork = {}");
        assert_eq!(linked.needs(), [Need::Link]);
        let outside = workload("command = \"true\"\nnetwork = { interface = \"eth0\" }");
        assert_eq!(outside.needs(), [Need::Interface("eth0".into())]);
        let mapped = workload("command = \"true\"\nmap = { \"/data\" = \".\" }");
        assert_eq!(mapped.needs(), [Need::Root, Need::Namespaces]);
        let copied = workload("tree = { source = \"/srv\" }");
        assert_eq!(copied.needs(), [Need::Directory("/srv".into())]);
        assert_eq!(workload("small_files = {}").needs(), []);
    }

    #[test]
    fn a_bed_needs_what_it_is_made_of() {
        let bed = |text: &str| names(&toml::from_str::<Bed>(text).unwrap().needs());
        let of = |more: &[&str]| {
            let mounts = ["root", "namespaces"];
            mounts.iter().chain(more).map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(bed(""), of(&["loop devices", "space for images"]));
        assert_eq!(bed("dir = \"/srv\""), of(&["loop devices", "space in /srv"]));
        assert_eq!(bed("kind = \"ram\""), of(&["loop devices", "memory"]));
        assert_eq!(bed("kind = \"ram\"\nzram = true"), of(&["zram"]));
        assert_eq!(bed("kind = \"device\"\nlimits = { iops = 9 }"), of(&["limits"]));
        let directory = bed("kind = \"directory\"\nlimits = { iops = 9 }");
        assert_eq!(directory, ["limits for the trial alone"]);
        assert_eq!(bed("kind = \"directory\""), [""; 0]);
        let both = toml::from_str::<Bed>("size = \"2G\"\ndevices = 3").unwrap();
        assert!(both.needs().contains(&Need::Images { bytes: 6 << 30 }));
    }

    #[test]
    fn a_contender_needs_its_file_system_and_what_its_settings_take() {
        let of = |text: &str| {
            let contender: Contender = toml::from_str(&format!("name = \"c\"\n{text}")).unwrap();
            names(&contender.needs())
        };
        assert_eq!(of(""), [""; 0]);
        assert_eq!(of("file_system = \"raw\""), [""; 0]);
        let whole = "file_system = \"xfs\"\nkernel = \"6.1\"\nlimits = {}\n\
                     partition = [\"mklabel\"]\nsysctl = { \"vm.swappiness\" = 1 }";
        assert_eq!(of(whole), ["kernel 6.1", "xfs", "partitions", "root", "limits"]);
    }

    #[test]
    fn a_place_is_asked_once() {
        let count = RefCell::new(0);
        let asked = Asked::new(|_| {
            *count.borrow_mut() += 1;
            Answer::partly("in part")
        });
        assert_eq!(asked.answer(&Need::Link), asked.answer(&Need::Link));
        assert_eq!(*count.borrow(), 1);
        asked.answer(&Need::Kvm);
        assert_eq!(*count.borrow(), 2);
    }

    #[test]
    fn an_answer_says_what_is_missing_and_what_to_do() {
        let unmet = |answer: Answer| answer.unmet().unwrap();
        assert_eq!(unmet(Answer::not_installed("git", None)), "git is not installed");
        let install = "git is not installed: apt-get install git";
        assert_eq!(unmet(Answer::not_installed("git", Some("git"))), install);
        assert_eq!(unmet(Answer::no("no").but_root()), "no: run it with sudo");
        assert_eq!(unmet(Answer::unknown("?").but("ask again")), "?: ask again");
        assert_eq!(Answer::partly("half").but("more").unmet(), None);
    }
}
