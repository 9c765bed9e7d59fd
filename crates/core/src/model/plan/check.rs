//! What is wrong with a plan, as far as that shows without a machine.

use std::collections::BTreeSet;

use thiserror::Error;

use super::Plan;
use crate::model::near::{meant, with_near};
use crate::model::workload::check_environment;
use crate::model::{
    Above, Arm, Bed, BedKind, Bytes, Contender, Disk, Fio, Intervals, Judgement, Workload,
};

/// A run that is one of several, with its share of their error, needs more.
const CONFIDENCE_MOST: f64 = 0.99999;

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
            check_environment(&contender.environment)
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

    fn check_published(&self) -> Result<(), PlanError> {
        let known = |name: &str| self.workloads.iter().any(|workload| workload.name == name);
        match self.published.iter().find(|published| !known(&published.workload)) {
            Some(published) => {
                let name = &published.workload;
                Err(PlanError::Invalid(format!(
                    "published figures of {name:?}, which is not a workload"
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
            "bed directory can't be like another disk: its file systems were made and mounted by \
             what their own disk says; leave --like out"
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
        _ if !contender.partition.is_empty() => "also a partition: leave one of the two out",
        _ => return Ok(()),
    };
    Err(PlanError::Invalid(format!("contender {:?} has layers, and {why}", contender.name)))
}

/// A stacked file system needs one below that is made and mounted for it.
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
    use super::super::tests::PLAN;
    use super::*;

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
        assert!(layered("partition = [\"mklabel\"]\n").contains("also a partition"));
        assert!(wrong("mkfs = [", "layers = [\"LUKS\"]\nmkfs = [").contains("is not a layer"));
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
