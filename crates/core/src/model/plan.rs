//! What a run is to do, as one TOML document.

mod check;
mod place;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::claim::Claim;
use super::{
    Arm, Bed, BedKind, Contender, Judgement, Layer, Place, Published, Rounds, Sim, Study, Timeouts,
    Vm, Workload,
};
pub use check::PlanError;

/// The name of the bare device at twice the depth.
const DEEP: &str = "raw device at twice the depth";

/// A probe that costs the work something, so that it is to be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExtraProbe {
    /// Pages that reads find in the page cache, and those that they don't.
    PageCache,
    /// Each request of the devices, in order, with what it writes.
    Trace,
}

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

impl Plan {
    /// Nobody but the file system of `contender` uses the disks that it is on: what a layer does
    /// afterwards, such as a cache that writes back, or a server, is no matter of the work's.
    pub fn owns_disks(&self, contender: &Contender) -> bool {
        let is_bare = contender.layers.iter().all(Layer::is_disk) && contender.above.is_empty();
        is_bare && self.bed.kind != BedKind::Directory
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

    /// What lies below its contenders, each stack once: first the bare disk, if one has that. It is
    /// the one on which file systems are chosen where no other is named.
    pub fn stacks(&self) -> Vec<String> {
        let mut stacks: Vec<String> = Vec::new();
        for stack in self.contenders.iter().map(Contender::stack) {
            if !stacks.contains(&stack) {
                stacks.push(stack);
            }
        }
        stacks.sort_by_key(|stack| stack != Layer::NONE);
        stacks
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

    /// What devices are held down to, a sentence for the bed and for each contender with limits of
    /// its own.
    pub fn held_down(&self) -> Vec<String> {
        let of_bed = self.bed.limits.map(|it| format!("each device is limited to {it}"));
        let of_contender = |it: &Contender| {
            Some(format!("each device of {} is limited to {}", it.name, it.limits?))
        };
        of_bed.into_iter().chain(self.contenders.iter().filter_map(of_contender)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) const PLAN: &str = r#"
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
    fn what_devices_are_held_down_to_is_said() {
        assert_eq!(Plan::parse(PLAN).unwrap().held_down(), [""; 0]);
        let own = PLAN.replacen("name = \"xfs\"", "name = \"xfs\"\nlimits = { iops = 9 }", 1);
        let plan = Plan::parse(&format!("bed.limits = {{ bandwidth = \"4M\" }}\n{own}")).unwrap();
        let said = ["each device is limited to 4MiB/s", "each device of xfs is limited to 9 IOPS"];
        assert_eq!(plan.held_down(), said);
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
}
