//! What a run is to do, as one TOML document.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::claim::Claim;
use super::near::{meant, with_near};
use super::{
    Above, Bytes, Contender, Disk, Fio, Limits, Percent, Published, Rounds, Span, Study, Timeouts,
    Workload,
};

/// What the file systems are made on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BedKind {
    /// An image file behind a loop device.
    #[default]
    Loop,
    /// Memory behind a loop device, or zram.
    Ram,
    /// Real disks or partitions.
    Device,
    /// Something already mounted; never formatted.
    Directory,
}

impl BedKind {
    /// The name in a plan and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            BedKind::Loop => "loop",
            BedKind::Ram => "ram",
            BedKind::Device => "device",
            BedKind::Directory => "directory",
        }
    }
}

/// The bed, as the plan describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Bed {
    /// What kind.
    pub kind: BedKind,
    /// Size of each image or memory device.
    pub size: Bytes,
    /// How many devices, on beds that make them. A file system that takes one gets the first.
    pub devices: u32,
    /// The folder for image files; the run's own folder where none is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dir: Option<String>,
    /// On bed `ram`: zram instead of a loop device on tmpfs.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub zram: bool,
    /// The devices, or the directory; a single one may be written as `path = "..."`.
    #[serde(alias = "path", deserialize_with = "one_or_several")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// The disk that it is to be like: `nvme`, `ssd`, `hdd`, `virtio`, or the path of one. Where
    /// none is named, images are like the disk that they lie on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub like: Option<String>,
    /// What every device is held down to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// Contenders have limits of their own: [`super::Plan::whole_bed`] says so.
    #[serde(skip)]
    pub limits_of_contenders: bool,
}

/// A text, or a list of texts.
fn one_or_several<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Texts {
        One(String),
        Several(Vec<String>),
    }
    Ok(match Texts::deserialize(from)? {
        Texts::One(text) => vec![text],
        Texts::Several(texts) => texts,
    })
}

impl Bed {
    /// How many devices a trial has at most.
    pub fn devices_of_trial(&self) -> usize {
        match self.kind {
            BedKind::Loop | BedKind::Ram => self.devices as usize,
            BedKind::Device => self.paths.len(),
            BedKind::Directory => 0,
        }
    }

    /// Its name on the command line.
    pub fn name(&self) -> &'static str {
        if self.zram { "ram:zram" } else { self.kind.name() }
    }

    /// Whether its devices are to be held down, for all contenders or for some.
    pub fn is_limited(&self) -> bool {
        self.limits.is_some() || self.limits_of_contenders
    }
}

impl Default for Bed {
    fn default() -> Self {
        Bed {
            kind: BedKind::Loop,
            size: Bytes(4 << 30),
            devices: 1,
            dir: None,
            zram: false,
            paths: Vec::new(),
            like: None,
            limits: None,
            limits_of_contenders: false,
        }
    }
}

/// Over which comparisons the error is shared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// Those of one workload.
    #[default]
    Workload,
    /// All of the run.
    Run,
}

/// How wide the interval of a comparison is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Intervals {
    /// By how the differences of the two scatter.
    #[default]
    Paired,
    /// By how all contenders scatter, when rounds and contenders are taken off.
    Pooled,
    /// By how the runs of each scatter, for they are of no rounds: files of others alone, never a
    /// run of our own.
    Unpaired,
}

impl Intervals {
    fn is_paired(&self) -> bool {
        *self == Intervals::Paired
    }
}

/// What is measured beside the contenders, to judge the measurement by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arm {
    /// The reference once more: whoever finds a difference between the two has measured something
    /// else.
    Duplicate,
    /// The fio jobs on the bed's bare device, without a file system: what the device can do.
    Raw,
}

/// How the run is judged, declared before its first trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Judgement {
    /// Differences smaller than this are trivial.
    pub margin: Percent,
    /// Chance that all intervals of a family hold the truth.
    pub confidence: Percent,
    /// Rounds at most. With `budget` alone the run is open-ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u32>,
    /// Time at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Span>,
    /// The contender the others are compared with; the first where none is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// Over which comparisons the error is shared.
    pub family: Family,
    /// How wide the intervals are.
    #[serde(skip_serializing_if = "Intervals::is_paired")]
    pub interval: Intervals,
    /// A contender that some other beats by more than the margin gets no more trials.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub race: bool,
    /// Each round holds all workloads and contenders until every comparison and claim is settled:
    /// what is weighed together has to be measured together.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub whole: bool,
    /// What is measured beside the contenders.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arms: Vec<Arm>,
}

/// Beyond it a run has been extended often enough: few rounds say nothing there.
const EXTENDED_MOST: f64 = 0.999;

/// Of a run that is one of several, and has its share of their error, more is asked.
const CONFIDENCE_MOST: f64 = 0.99999;

impl Judgement {
    /// Rounds at most where the plan names neither rounds nor a budget.
    pub const DEFAULT_ROUNDS: u32 = 12;

    /// The declared number of rounds; `None` where the run is open-ended.
    pub fn rounds(&self) -> Option<u32> {
        match (self.rounds, self.budget) {
            (None, None) => Some(Self::DEFAULT_ROUNDS),
            (rounds, _) => rounds,
        }
    }

    /// Declares more rounds, or more time, for a run that was begun. What is wrong with that is
    /// the end of a sentence; what it costs, if anything, one.
    ///
    /// More rounds are another look at the same data, of which the declared rule knew nothing: half
    /// of the error is left for it. More time is none.
    pub fn extend(
        &mut self,
        rounds: Option<u32>,
        budget: Option<Span>,
    ) -> Result<Option<String>, String> {
        let Some(declared) = self.rounds() else {
            if rounds.is_some() {
                return Err("is open-ended: give it a longer --budget".into());
            }
            self.budget = budget.or(self.budget);
            return Ok(None);
        };
        let rounds = rounds.unwrap_or(declared);
        if rounds < declared {
            return Err(format!("was declared with {declared} rounds: give it more"));
        }
        let confidence = match rounds == declared {
            true => self.confidence,
            false => Percent(f64::midpoint(1.0, self.confidence.0)),
        };
        if rounds > declared && confidence.0 > EXTENDED_MOST {
            return Err(format!("is judged at {} already: begin another", self.confidence));
        }
        // Where there was no budget the run is still capped by its rounds.
        self.rounds = Some(rounds);
        self.budget = budget.or(self.budget);
        if rounds == declared {
            return Ok(None);
        }
        self.confidence = confidence;
        Ok(Some(format!(
            "rounds raised from {declared} to {rounds} after a look: half of the error is left, \
             confidence {}",
            self.confidence
        )))
    }
}

impl Default for Judgement {
    fn default() -> Self {
        Judgement {
            margin: Percent(0.05),
            confidence: Percent(0.95),
            rounds: None,
            budget: None,
            reference: None,
            family: Family::Workload,
            interval: Intervals::Paired,
            race: false,
            whole: false,
            arms: Vec::new(),
        }
    }
}

/// The simulated host: how fast its file systems are and what goes wrong on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sim {
    /// Standard deviation of ln(time) from trial to trial.
    pub noise: f64,
    /// Speed by contender; 1 where none is given.
    pub speed: std::collections::BTreeMap<String, f64>,
    /// The action that fails, counted from 1 over the whole run; 0: none.
    pub fail_at: u64,
    /// What it lacks: file systems and programs by name, and `limits`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lacks: Vec<String>,
    /// Its memory, where it matters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Bytes>,
    /// From `fail_at` on every action of that kind on that contender fails, not this one alone.
    pub fail_for_good: bool,
}

impl Default for Sim {
    fn default() -> Self {
        Sim {
            noise: 0.01,
            speed: Default::default(),
            fail_at: 0,
            lacks: Vec::new(),
            memory: None,
            fail_for_good: false,
        }
    }
}

/// Who runs the trials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// This machine.
    #[default]
    #[serde(alias = "here")]
    Local,
    /// A QEMU microVM for each trial.
    Vm,
    /// A User Mode Linux for each trial: a kernel that is a process of this machine's.
    Uml,
    /// The simulated host.
    Sim,
}

impl Place {
    /// The name in a plan and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Place::Local => "local",
            Place::Vm => "vm",
            Place::Uml => "uml",
            Place::Sim => "sim",
        }
    }

    /// Each trial has a machine of its own there.
    pub fn has_guests(self) -> bool {
        matches!(self, Place::Vm | Place::Uml)
    }
}

/// A probe that costs the work something, so that it is to be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExtraProbe {
    /// Pages that reads find in the page cache, and those that they don't.
    PageCache,
    /// Each request of the devices, in order, with what it writes.
    Trace,
}

/// The virtual machines of places `vm` and `uml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Vm {
    /// Memory for the kernel and the work; what is brought along comes on top.
    pub memory: Bytes,
    /// Processors of each machine, otherwise two; a User Mode Linux has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processors: Option<u32>,
    /// Files and folders of the host that the work needs, at the same paths, besides those that
    /// its commands name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bring: Vec<String>,
    /// Options for QEMU after our own; of one that is given twice it takes the last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub qemu: Vec<String>,
    /// A stranger wrote the plan: of the host's files its machines get those of `bring`, and what
    /// they themselves need.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub untrusted: bool,
}

impl Vm {
    /// What the machines of a stranger's plan may have of the host.
    pub fn given(&self) -> Option<&[String]> {
        self.untrusted.then_some(&*self.bring)
    }

    /// How many processors a machine of that place has.
    pub fn processors_at(&self, place: Place) -> u32 {
        self.processors.unwrap_or(if place == Place::Uml { 1 } else { 2 })
    }
}

impl Default for Vm {
    fn default() -> Self {
        let (bring, qemu) = (Vec::new(), Vec::new());
        Vm { memory: Bytes(1 << 30), processors: None, bring, qemu, untrusted: false }
    }
}

/// The name of the bare device at twice the depth.
const DEEP: &str = "raw device at twice the depth";

/// What a run is to do, complete: `plan.toml` of a run can be run again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// What the run is to answer, in the user's words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub question: String,
    /// Who runs the trials; where none is named, this machine if it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// What sizes, counts and times have been multiplied by, if by anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<f64>,
    /// Seed of the order and of the work; drawn afresh where none is given, and recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Whether the trials of a round come one after the other or take turns.
    #[serde(default, skip_serializing_if = "Rounds::are_of_trials")]
    pub rounds: Rounds,
    /// What is read during the timed parts besides what always is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<ExtraProbe>,
    /// Folders outside the file system under test that the work may write to; the command line has
    /// to name them, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writable: Vec<String>,
    /// What the file systems are made on.
    #[serde(default)]
    pub bed: Bed,
    /// How the run is judged.
    #[serde(default)]
    pub judgement: Judgement,
    /// How long a trial and its steps may take, where it is not the default.
    #[serde(default, rename = "timeout", skip_serializing_if = "Timeouts::is_empty")]
    pub timeouts: Timeouts,
    /// The simulated host, for place `sim`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sim: Option<Sim>,
    /// The virtual machines, for place `vm`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vm: Option<Vm>,
    /// What is compared.
    #[serde(default, rename = "contender")]
    pub contenders: Vec<Contender>,
    /// The work.
    #[serde(default, rename = "workload")]
    pub workloads: Vec<Workload>,
    /// The study that this plan reproduces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub study: Option<Study>,
    /// What the study printed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<Published>,
    /// What is claimed of the contenders, by the study or by the plan's own author.
    #[serde(default, rename = "claim", skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
}

/// A plan that can't be run, and what to do about it.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum PlanError {
    #[error("{}", with_near(&.0.to_string()))]
    Syntax(#[from] toml::de::Error),
    #[error("a plan needs {wanted}; it has {got}")]
    TooFew { wanted: &'static str, got: usize },
    #[error("two {what}s are named {name:?}: give each its own name")]
    SameName { what: &'static str, name: String },
    #[error("{0}")]
    Workload(String),
    #[error("reference {name:?} is none of the contenders; {meant}")]
    Reference { name: String, meant: String },
    #[error("{0}")]
    Invalid(String),
}

impl Plan {
    /// Reads a plan, and checks what can be checked without a machine.
    pub fn parse(text: &str) -> Result<Plan, PlanError> {
        let plan: Plan = toml::from_str(text)?;
        plan.check()?;
        Ok(plan)
    }

    /// Checks what can be checked without a machine.
    pub fn check(&self) -> Result<(), PlanError> {
        let (least, wanted) = match self.study {
            Some(_) => (2, "two contenders or more, to compare"),
            None => (1, "a contender, or several to compare"),
        };
        if self.contenders.len() < least {
            return Err(PlanError::TooFew { wanted, got: self.contenders.len() });
        }
        if self.workloads.is_empty() {
            return Err(PlanError::TooFew { wanted: "a workload", got: 0 });
        }
        check_nul(self)?;
        unique("contender", self.contenders.iter().map(|contender| &contender.name))?;
        unique("workload", self.workloads.iter().map(|workload| &workload.name))?;
        for workload in &self.workloads {
            workload.work().map_err(PlanError::Workload)?;
        }
        for contender in &self.contenders {
            super::workload::check_environment(&contender.environment)
                .and_then(|()| contender.check_knobs())
                .and_then(|()| contender.limits.unwrap_or_default().check())
                .map_err(|wrong| {
                    PlanError::Invalid(format!("contender {:?} {wrong}", contender.name))
                })?;
        }
        self.timeouts.check().map_err(PlanError::Invalid)?;
        self.check_published()?;
        self.check_reference()?;
        self.check_judgement()?;
        self.check_arms()?;
        self.check_bed()?;
        self.check_claims().map_err(PlanError::Invalid)?;
        self.check_duet().map_err(PlanError::Invalid)
    }

    /// The contender the others are compared with. The plan has been checked.
    pub fn reference(&self) -> &str {
        self.judgement.reference.as_deref().unwrap_or(&self.contenders[0].name)
    }

    /// How long a trial and its steps may take.
    pub fn timeouts(&self) -> Timeouts {
        self.timeouts.within(self.judgement.budget)
    }

    /// The contender of that name.
    pub fn contender(&self, name: &str) -> Option<&Contender> {
        self.contenders.iter().find(|contender| contender.name == name)
    }

    /// What `arm` measures, under the reference's settings, if the plan has it.
    pub fn arm(&self, arm: Arm) -> Option<Contender> {
        let reference = self.contender(self.reference())?;
        self.judgement.arms.contains(&arm).then(|| match arm {
            Arm::Duplicate => {
                Contender { name: format!("{} again", reference.name), ..reference.clone() }
            }
            Arm::Raw => Contender {
                name: "raw device".into(),
                file_system: Contender::RAW.into(),
                mkfs: Vec::new(),
                mount: Vec::new(),
                layers: Vec::new(),
                above: Vec::new(),
                ..reference.clone()
            },
        })
    }

    /// The arms of `workload`: the bare device has no files, so that it takes nothing but fio jobs.
    pub fn arms(&self, workload: &Workload) -> Vec<Contender> {
        let raw = self.arm(Arm::Raw).filter(|_| workload.fio.is_some());
        let arms = self.arm(Arm::Duplicate).into_iter().chain(raw);
        arms.chain(self.deep_arm(workload)).collect()
    }

    /// The bare device at twice the depth, beside the one at the depth of `workload`, where that
    /// depth counts for anything.
    pub fn deep_arm(&self, workload: &Workload) -> Option<Contender> {
        workload.at_twice_the_depth()?;
        Some(Contender { name: DEEP.into(), ..self.arm(Arm::Raw)? })
    }

    /// The work of `workload` as the contender or arm of that name does it.
    pub fn work_of(&self, workload: &Workload, contender: &str) -> Workload {
        let deep = self.deep_arm(workload).filter(|arm| arm.name == contender);
        deep.and_then(|_| workload.at_twice_the_depth()).unwrap_or_else(|| workload.clone())
    }

    fn check_published(&self) -> Result<(), PlanError> {
        let known = |name: &str| self.workloads.iter().any(|workload| workload.name == name);
        match self.published.iter().find(|published| !known(&published.workload)) {
            Some(published) => {
                let name = &published.workload;
                Err(PlanError::Invalid(format!(
                    "published figures of {name:?}, which is no workload"
                )))
            }
            None => Ok(()),
        }
    }

    fn check_reference(&self) -> Result<(), PlanError> {
        let name = self.reference();
        if self.contender(name).is_some() {
            return Ok(());
        }
        let meant = meant(name, self.contenders.iter().map(|c| c.name.as_str()));
        Err(PlanError::Reference { name: name.into(), meant })
    }

    fn check_judgement(&self) -> Result<(), PlanError> {
        let Judgement { margin, confidence, rounds, .. } = &self.judgement;
        let invalid = |text: String| Err(PlanError::Invalid(text));
        if !(margin.0 > 0.0 && margin.0 <= 0.5) {
            return invalid(format!("margin {margin} is not between 0% and 50%"));
        }
        if !(0.5..=CONFIDENCE_MOST).contains(&confidence.0) {
            return invalid(format!("confidence {confidence} is not between 50% and 99.999%"));
        }
        if self.judgement.race && self.judgement.whole {
            return invalid("race takes contenders out of the rounds, and whole keeps them".into());
        }
        if self.judgement.race && self.judgement.interval == Intervals::Pooled {
            return invalid(
                "race takes contenders out of the rounds, and interval = \"pooled\" needs all of \
                 them in every round: leave one of the two out"
                    .into(),
            );
        }
        if self.judgement.interval == Intervals::Unpaired {
            return invalid(
                "interval = \"unpaired\" is for files of others: a run has rounds".into(),
            );
        }
        match rounds {
            Some(0) => invalid("rounds = 0 measures nothing".into()),
            Some(rounds) if *rounds > 1000 => invalid(format!("{rounds} rounds are over 1000")),
            _ => Ok(()),
        }
    }

    fn check_arms(&self) -> Result<(), PlanError> {
        let invalid = |text: String| Err(PlanError::Invalid(text));
        let deep = self.workloads.iter().filter_map(|workload| self.deep_arm(workload));
        let arms = [Arm::Duplicate, Arm::Raw].into_iter().filter_map(|arm| self.arm(arm));
        for arm in arms.chain(deep) {
            if self.contender(&arm.name).is_some() {
                return invalid(format!(
                    "{:?} is the name of an arm: rename the contender",
                    arm.name
                ));
            }
        }
        if !self.judgement.arms.contains(&Arm::Raw) {
            return Ok(());
        }
        if self.bed.kind == BedKind::Directory {
            return invalid("arm raw writes to the bare device, and bed directory has none".into());
        }
        let jobs: Vec<&Fio> = self.workloads.iter().filter_map(|work| work.fio.as_ref()).collect();
        let is_file = |job: &&Fio| job.arguments("job").iter().any(|word| !word.starts_with('-'));
        match (jobs.is_empty(), jobs.iter().any(is_file)) {
            (true, _) => {
                invalid("arm raw needs a fio workload: nothing else runs on a device".into())
            }
            (_, true) => invalid(
                "arm raw needs each fio job as options, fio = { rw = \"randwrite\", ... } or \
                 --option=value: it can't change the file names in a job file"
                    .into(),
            ),
            _ => Ok(()),
        }
    }

    /// The place that the plan names or implies: a kernel of its own, and disks as one likes them,
    /// take a machine of their own.
    pub fn named_place(&self) -> Option<Place> {
        let takes_own = |it: &Contender| {
            let words = !it.parameters.is_empty();
            it.kernel.is_some() || it.disks.is_some() || words
        };
        self.place.or(self.contenders.iter().any(takes_own).then_some(Place::Vm))
    }

    /// What `--erase` is to be told where trials have run on devices already: each with the file
    /// systems that they leave, by the names that blkid(8) has for them.
    pub fn to_erase_again(&self) -> Vec<String> {
        if self.bed.kind != BedKind::Device {
            return Vec::new();
        }
        let names = self.contenders.iter().map(|it| match it.on_disks() {
            "zfs" => "zfs_member",
            name => name,
        });
        let names: BTreeSet<&str> = names.filter(|name| !name.is_empty()).collect();
        let names = names.into_iter().collect::<Vec<_>>().join(",");
        let named = |path: &String| match names.as_str() {
            "" => path.clone(),
            names => format!("{path}={names}"),
        };
        self.bed.paths.iter().map(named).collect()
    }

    fn check_place(&self) -> Result<(), PlanError> {
        let place = self.named_place().unwrap_or_default();
        if place != Place::Vm {
            self.check_kernels()?;
        }
        match place {
            Place::Local => self.check_settings(),
            Place::Sim => Ok(()),
            Place::Uml => self.check_uml().and_then(|()| self.check_guests()),
            Place::Vm => self.check_guests(),
        }
    }

    /// All that is judged are requests, bytes and flushes of the device: they are the same on
    /// processors of any speed.
    pub fn judges_counts(&self) -> bool {
        const COUNTS: [&str; 5] = [
            "device_writes",
            "device_write_bytes",
            "device_reads",
            "device_read_bytes",
            "device_flushes",
        ];
        let is_count = |name: &String| COUNTS.iter().any(|it| name.ends_with(it));
        self.workloads.iter().all(|it| it.primary().iter().all(is_count))
    }

    /// What takes kernels of one's choice.
    fn check_kernels(&self) -> Result<(), PlanError> {
        let lacking = self.contenders.iter().find_map(|it| match it {
            _ if it.kernel.is_some() => Some((it, "a kernel of its own")),
            _ if !it.parameters.is_empty() => Some((it, "parameters for its kernel")),
            _ if it.disks.is_some() => Some((it, "a choice of how its disks are attached")),
            _ => None,
        });
        match lacking {
            None => Ok(()),
            Some((contender, what)) => Err(PlanError::Invalid(format!(
                "contender {:?} has {what}: that takes --place vm",
                contender.name
            ))),
        }
    }

    /// What takes a machine of one's own.
    fn check_settings(&self) -> Result<(), PlanError> {
        let mut knobs = self.contenders.iter().filter_map(|it| Some((it, it.beyond_storage()?)));
        match knobs.next() {
            None => Ok(()),
            Some((contender, knob)) => Err(PlanError::Invalid(format!(
                "contender {:?} sets {knob}, which is more than storage, or can't be put back: \
                 that takes a machine of its own, --place vm",
                contender.name
            ))),
        }
    }

    fn check_guests(&self) -> Result<(), PlanError> {
        let invalid = |text: String| Err(PlanError::Invalid(text));
        let vm = self.vm.clone().unwrap_or_default();
        let (memory, processors) = (vm.memory, vm.processors_at(Place::Vm));
        if memory.0 < 64 << 20 {
            return invalid(format!("a virtual machine with {memory} of memory boots no kernel"));
        }
        if !(1..=64).contains(&processors) {
            return invalid(format!("{processors} processors: a virtual machine has 1 to 64"));
        }
        if let Some(workload) = self.workloads.iter().find(|it| it.network.is_some()) {
            return invalid(format!(
                "workload {:?} has a network, which virtual machines don't have: write --place \
                 local",
                workload.name
            ));
        }
        match self.bed.kind {
            BedKind::Loop | BedKind::Ram if !self.bed.zram => self.check_attachments(),
            _ => invalid(format!(
                "bed {} can't be given to a virtual machine: write --bed loop or --bed ram",
                self.bed.name()
            )),
        }
    }

    /// Each contender's disks find room where they are to be attached.
    fn check_attachments(&self) -> Result<(), PlanError> {
        let chosen = self.contenders.iter().filter_map(|it| Some((it, it.disks?)));
        for (contender, attachment) in chosen {
            let devices = contender.devices_of(self.bed.devices as usize);
            let most = attachment.disks_max();
            if devices > most as usize {
                return Err(PlanError::Invalid(format!(
                    "contender {:?} has {devices} devices: as {attachment} disks a virtual \
                     machine has room for {most}",
                    contender.name
                )));
            }
        }
        Ok(())
    }

    /// What a User Mode Linux can't have, and other virtual machines can.
    fn check_uml(&self) -> Result<(), PlanError> {
        // The first disk is the one by which a trial goes in (ubd_kern.c, MAX_DEV).
        const DISKS_MAX: u32 = 7;
        let vm = self.vm.clone().unwrap_or_default();
        let refused = if let Some(several @ 2..) = vm.processors {
            format!("{several} processors: a User Mode Linux has one")
        } else if !vm.qemu.is_empty() {
            "options for QEMU: a User Mode Linux is none".into()
        } else if self.bed.devices > DISKS_MAX {
            format!("{} devices: a User Mode Linux has room for {DISKS_MAX}", self.bed.devices)
        } else if vm.untrusted {
            // The kernel says so of itself (linux.uml --help, seccomp=).
            "an untrusted plan: what runs in a User Mode Linux can write to the memory of its \
             kernel, a process of this machine's"
                .into()
        } else {
            return Ok(());
        };
        Err(PlanError::Invalid(format!("{refused}: write --place vm")))
    }

    fn check_bed(&self) -> Result<(), PlanError> {
        self.check_place()?;
        let bed = &self.bed;
        let invalid = |text: String| Err(PlanError::Invalid(text));
        check_like(bed)?;
        let limits = bed.limits.unwrap_or_default().check();
        limits.map_err(|wrong| PlanError::Invalid(format!("the bed {wrong}")))?;
        if matches!(bed.kind, BedKind::Loop | BedKind::Ram) {
            self.contenders.iter().try_for_each(|contender| check_discard(contender, bed.kind))?;
            self.workloads.iter().try_for_each(|workload| check_size(workload, bed.size))?;
        }
        self.contenders.iter().try_for_each(check_partition)?;
        self.contenders.iter().try_for_each(|contender| check_layers(contender, bed.kind))?;
        self.contenders.iter().try_for_each(|contender| check_above(contender, bed.kind))?;
        self.contenders.iter().try_for_each(|contender| check_devices(contender, bed))?;
        match bed.kind {
            BedKind::Device if bed.paths.is_empty() => {
                invalid("bed device needs a path: --bed device:/dev/sdb".into())
            }
            BedKind::Loop | BedKind::Ram if !(1..=64).contains(&bed.devices) => {
                invalid(format!("a bed of {} devices: 1 to 64 can be made", bed.devices))
            }
            BedKind::Directory => self.contenders.iter().try_for_each(|contender| {
                if contender.path.is_none() && bed.paths.is_empty() {
                    return invalid(format!("contender {:?} needs a path", contender.name));
                }
                let Contender { name, partition, mkfs, mount, .. } = contender;
                if !(partition.is_empty() && mkfs.is_empty() && mount.is_empty()) {
                    return invalid(format!(
                        "contender {name:?} has partition, mkfs or mount options, but a directory \
                         is neither partitioned nor formatted nor mounted"
                    ));
                }
                Ok(())
            }),
            _ => Ok(()),
        }
    }
}

/// No command, option or path can hold a NUL character, which execve(2) and open(2) take for their
/// end.
fn check_nul(plan: &Plan) -> Result<(), PlanError> {
    let value = serde_json::to_value(plan).map_err(|it| PlanError::Invalid(it.to_string()))?;
    match with_nul(&value) {
        Some(text) => Err(PlanError::Invalid(format!("{text:?} holds a NUL character"))),
        None => Ok(()),
    }
}

/// The first text within `value`, a name or not, that has a NUL character.
fn with_nul(value: &serde_json::Value) -> Option<&str> {
    let has_nul = |text: &&str| text.contains('\0');
    match value {
        serde_json::Value::String(text) => Some(text.as_str()).filter(has_nul),
        serde_json::Value::Array(values) => values.iter().find_map(with_nul),
        serde_json::Value::Object(fields) => {
            let names = fields.keys().map(String::as_str).find(has_nul);
            names.or_else(|| fields.values().find_map(with_nul))
        }
        _ => None,
    }
}

/// A discard gives blocks of the image back to the host, which the next trial has to allocate
/// again: it would measure the host (METHODOLOGY, "One observation is one trial").
fn check_discard(contender: &Contender, kind: BedKind) -> Result<(), PlanError> {
    let discards = |word: &&str| *word == "discard" || word.starts_with("discard=");
    let mount = contender.mount.iter().flat_map(|options| options.split(','));
    // mke2fs takes them as `-E discard` and as `-Ediscard`.
    let mkfs = contender.mkfs.iter().flat_map(|word| word.trim_start_matches("-E").split(','));
    match mount.chain(mkfs).find(discards) {
        None => Ok(()),
        Some(option) => Err(PlanError::Invalid(format!(
            "contender {:?} has {option}, which gives blocks of the bed back to the host: on bed \
             {} the next trial would measure how the host allocates them again; leave it out, or \
             measure it on bed device",
            contender.name,
            kind.name()
        ))),
    }
}

/// What is mounted already has chosen by what its disk says of itself.
fn check_like(bed: &Bed) -> Result<(), PlanError> {
    match &bed.like {
        Some(_) if bed.kind == BedKind::Directory => Err(PlanError::Invalid(
            "bed directory can't be like another disk: its file systems have been made and mounted \
             by what theirs says of itself; leave --like out"
                .into(),
        )),
        Some(like) => Disk::check_like(like).map_err(PlanError::Invalid),
        None => Ok(()),
    }
}

/// parted gets the bed's device and no other.
fn check_partition(contender: &Contender) -> Result<(), PlanError> {
    let other = contender.partition.iter().find(|word| word.contains('/') || *word == "select");
    match other {
        None => Ok(()),
        Some(word) => Err(PlanError::Invalid(format!(
            "contender {:?} has {word:?} among parted's words, which are for the bed's own device: \
             leave it out",
            contender.name
        ))),
    }
}

/// Layers are made on whole devices, for a file system.
fn check_layers(contender: &Contender, kind: BedKind) -> Result<(), PlanError> {
    if contender.layers.is_empty() {
        return Ok(());
    }
    let why = match kind {
        BedKind::Directory => "a directory is mounted already: leave them out",
        _ if contender.is_raw() => "no file system for them: leave them out",
        _ if !contender.partition.is_empty() => "a partition, too: leave out either",
        _ => return Ok(()),
    };
    Err(PlanError::Invalid(format!("contender {:?} has layers, and {why}", contender.name)))
}

/// What stands on a file system stands on one that is made and mounted for it.
fn check_above(contender: &Contender, kind: BedKind) -> Result<(), PlanError> {
    let shown = Above::stack(&contender.above);
    let why = match kind {
        _ if contender.above.is_empty() => return Ok(()),
        BedKind::Directory => "a directory is mounted already",
        _ if contender.is_raw() => "the bare device has no file system",
        _ => return Ok(()),
    };
    let name = &contender.name;
    Err(PlanError::Invalid(format!(
        "contender {name:?} has {shown} above, and {why}: leave it out"
    )))
}

/// A contender gets some of the bed's devices.
fn check_devices(contender: &Contender, bed: &Bed) -> Result<(), PlanError> {
    let there = bed.devices_of_trial();
    match contender.devices {
        Some(devices) if !(1..=there).contains(&(devices as usize)) => {
            Err(PlanError::Invalid(format!(
                "contender {:?} has devices = {devices}, of the {there} that the bed has",
                contender.name
            )))
        }
        _ => Ok(()),
    }
}

/// A bed of `size` holds what `workload` needs.
fn check_size(workload: &Workload, size: Bytes) -> Result<(), PlanError> {
    match workload.needs_bytes {
        Some(needed) if needed > size => Err(PlanError::Invalid(format!(
            "workload {:?} needs a bed of {needed}, this one has {size}: give it --size {needed}",
            workload.name
        ))),
        _ => Ok(()),
    }
}

fn unique<'a>(
    what: &'static str,
    names: impl Iterator<Item = &'a String>,
) -> Result<(), PlanError> {
    let mut seen = BTreeSet::new();
    for name in names {
        if name.is_empty() {
            return Err(PlanError::Invalid(format!("a {what} has no name")));
        }
        if !seen.insert(name) {
            return Err(PlanError::SameName { what, name: name.clone() });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = r#"
        [[contender]]
        name = "xfs"
        file_system = "xfs"

        [[contender]]
        name = "xfs-log-256m"
        file_system = "xfs"
        mkfs = ["-l", "size=256m"]
        queue = { scheduler = "none", nr_requests = 64 }
        sysctl = { "vm.dirty_background_ratio" = 5 }

        [[workload]]
        name = "unpack"
        command = ["tar", "xf", "/srv/source.tar"]
    "#;

    #[test]
    fn place_uml_takes_what_a_linux_that_is_a_process_can_have() {
        let plan = |text: &str, contender: &str| {
            Plan::parse(&format!(
                "place = \"uml\"\n{text}\n[[contender]]\nname = \"a\"\nfile_system = \"ext4\"\n\
                 {contender}\n[[contender]]\nname = \"b\"\nfile_system = \"xfs\"\n[[workload]]\n\
                 name = \"w\"\nfsync_files = {{ files = 1 }}\n"
            ))
        };
        let refused = |text: &str, contender: &str| plan(text, contender).unwrap_err().to_string();
        plan("", "layers = [\"luks\"]\nsysctl = { \"kernel.pid_max\" = 4321 }").unwrap();
        let by_kernel = refused("", "kernel = \"6.1\"");
        assert!(by_kernel.ends_with("\"a\" has a kernel of its own: that takes --place vm"));
        // It would open any file of the host by `ubd7=/dev/sda`.
        let by_words = refused("", "parameters = [\"quiet\"]");
        assert!(by_words.ends_with("has parameters for its kernel: that takes --place vm"));
        let says = "2 processors: a User Mode Linux has one: write --place vm";
        assert!(refused("vm = { processors = 2 }", "").ends_with(says));
        assert!(refused("vm = { untrusted = true }", "").contains("an untrusted plan: "));
        assert!(refused("bed = { devices = 8 }", "").contains("has room for 7"));
        assert!(refused("bed = { kind = \"device\" }", "").contains("to a virtual machine"));
        let mut counted = plan("vm = { processors = 1 }", "").unwrap();
        assert!(!counted.judges_counts());
        let counts = ["fsync_device_flushes", "fsync_device_write_bytes"];
        counted.workloads[0].primary = counts.map(String::from).to_vec();
        assert!(counted.judges_counts());
    }

    #[test]
    fn disks_are_attached_to_virtual_machines_of_qemu_as_far_as_there_is_room() {
        let plan = |place: &str, bed: &str, disks: &str| {
            let contender = format!("mkfs = [\"-l\", \"size=256m\"]\ndisks = \"{disks}\"");
            let text = PLAN.replace("mkfs = [\"-l\", \"size=256m\"]", &contender);
            Plan::parse(&format!("{place}\nbed = {{ {bed} }}\n{text}"))
        };
        assert_eq!(plan("", "", "nvme").unwrap().named_place(), Some(Place::Vm));
        let refused =
            |place: &str, bed: &str, disks: &str| plan(place, bed, disks).unwrap_err().to_string();
        let says = "\"xfs-log-256m\" has a choice of how its disks are attached: that takes \
                    --place vm";
        for place in ["local", "uml", "sim"] {
            assert!(
                refused(&format!("place = \"{place}\""), "", "ahci").ends_with(says),
                "{place}"
            );
        }
        plan("", "devices = 5", "ahci").unwrap();
        let says = "has 6 devices: as ahci disks a virtual machine has room for 5";
        assert!(refused("", "devices = 6", "ahci").ends_with(says));
        assert!(refused("", "", "nvm").ends_with("did you mean nvme?"));
    }

    #[test]
    fn a_plan_survives_writing_and_reading() {
        let plan = Plan::parse(PLAN).unwrap();
        assert_eq!(plan.reference(), "xfs");
        assert_eq!(plan.judgement.rounds(), Some(12));
        let again = Plan::parse(&toml::to_string(&plan).unwrap()).unwrap();
        assert_eq!(plan, again);
        let bed = format!("[bed]\nkind = \"device\"\npath = \"/dev/sdb\"\n{PLAN}");
        assert_eq!(Plan::parse(&bed).unwrap().bed.paths, ["/dev/sdb"]);
    }

    #[test]
    fn the_bare_device_is_tried_at_twice_the_depth_where_that_counts() {
        let plan = |fio: &str| {
            let job = PLAN.replace("command = [\"tar\", \"xf\", \"/srv/source.tar\"]", fio);
            Plan::parse(&format!("{job}\n[judgement]\narms = [\"raw\"]")).unwrap()
        };
        let asynchronous = plan("fio = { rw = \"read\", ioengine = \"libaio\", iodepth = 16 }");
        let workload = &asynchronous.workloads[0];
        let names: Vec<String> =
            asynchronous.arms(workload).into_iter().map(|arm| arm.name).collect();
        assert_eq!(names, ["raw device", DEEP]);
        let depth = |name: &str| asynchronous.work_of(workload, name).fio_values("iodepth");
        assert_eq!(depth(DEEP), Some(vec!["32".into()]));
        assert_eq!(depth("raw device"), Some(vec!["16".into()]));
        let synchronous = plan("fio = { rw = \"read\", iodepth = 16 }");
        assert_eq!(synchronous.arms(&synchronous.workloads[0]).len(), 1);
    }

    #[test]
    fn a_wrong_plan_says_what_is_wrong() {
        let wrong =
            |from: &str, to: &str| Plan::parse(&PLAN.replace(from, to)).unwrap_err().to_string();
        assert!(wrong("\"xfs-log-256m\"", "\"xfs\"").contains("own name"));
        assert!(wrong("command =", "comand =").contains("comand"));
        assert!(wrong("command = [\"tar\", \"xf\", \"/srv/source.tar\"]", "").contains("exactly"));
        assert!(Plan::parse("").unwrap_err().to_string().contains("a contender, or"));
        assert!(wrong("size=256m", "size=\\u0000").contains("\"size=\\0\" holds a NUL character"));
        let mount = |option: &str| {
            wrong("mkfs = [\"-l\", \"size=256m\"]", &format!("mount = [\"noatime,{option}\"]"))
        };
        assert!(mount("discard").contains("measure how the host allocates"));
        assert!(mount("discard=async").contains("discard=async"));
        assert!(wrong("\"-l\", \"size=256m\"", "\"-E\", \"stride=4,discard\"").contains("discard"));
        Plan::parse(&PLAN.replace("\"size=256m\"]", "\"size=256m\"]\nmount = [\"nodiscard\"]"))
            .unwrap();
        let partition =
            |words: &str| wrong("mkfs = [", &format!("partition = [{words}]\nmkfs = ["));
        assert!(partition("\"mklabel\", \"gpt\", \"select\"").contains("bed's own device"));
        assert!(partition("\"mklabel\", \"gpt\", \"/dev/sda\"").contains("\"/dev/sda\""));
        let layered =
            |more: &str| wrong("mkfs = [", &format!("layers = [\"luks\"]\n{more}mkfs = ["));
        assert!(layered("partition = [\"mklabel\"]\n").contains("a partition, too"));
        assert!(wrong("mkfs = [", "layers = [\"LUKS\"]\nmkfs = [").contains("is no layer"));
        let devices = |count: u32| wrong("mkfs = [", &format!("devices = {count}\nmkfs = ["));
        assert!(devices(2).contains("has devices = 2, of the 1 that the bed has"));
        assert!(devices(0).contains("has devices = 0"));
        let directory = PLAN.replace("mkfs = [\"-l\", \"size=256m\"]", "partition = [\"x\"]");
        let bed = "[bed]\nkind = \"directory\"\npath = \"/mnt\"\n";
        let refused = Plan::parse(&format!("{bed}{directory}")).unwrap_err().to_string();
        assert!(refused.contains("a directory is neither partitioned"), "{refused}");
        assert!(wrong("\"unpack\"", "\"unpack\"\nneeds_bytes = \"5G\"").contains("--size 5G"));
        let like = |bed: &str| {
            let plan =
                format!("[bed]\n{bed}\n{}", PLAN.replace("mkfs = [\"-l\", \"size=256m\"]", ""));
            Plan::parse(&plan).map_err(|error| error.to_string())
        };
        assert_eq!(like("like = \"ssd\"").unwrap().bed.like.as_deref(), Some("ssd"));
        assert!(like("like = \"nvm\"").unwrap_err().contains("did you mean nvme?"));
        let mounted = like("kind = \"directory\"\npath = \"/mnt\"\nlike = \"ssd\"").unwrap_err();
        assert!(mounted.contains("leave --like out"), "{mounted}");
        let network = PLAN.replace("\"unpack\"", "\"unpack\"\nnetwork = {}");
        Plan::parse(&network).unwrap();
        let in_machine = Plan::parse(&format!("place = \"vm\"\n{network}")).unwrap_err();
        assert!(in_machine.to_string().contains("has a network"), "{in_machine}");
        let environment = "queue = { scheduler";
        let own = "environment = { FSVERDICT_RAW = 1 }\nqueue = { scheduler";
        assert!(wrong(environment, own).contains("\"xfs-log-256m\" sets FSVERDICT_RAW"));
        let both = format!("{PLAN}\n[judgement]\nrace = true\ninterval = \"pooled\"");
        assert!(Plan::parse(&both).unwrap_err().to_string().contains("leave one of the two out"));
        let reference = format!("{PLAN}\n[judgement]\nreference = \"zfs\"");
        assert!(Plan::parse(&reference).unwrap_err().to_string().contains("mean xfs?"));
    }
}
