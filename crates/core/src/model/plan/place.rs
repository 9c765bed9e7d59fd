//! What the place of a plan can't have.

use super::Plan;
use super::check::PlanError;
use crate::model::{BedKind, Contender, Place};

impl Plan {
    /// The place that the plan names or implies: a kernel of its own, and disks as one likes them,
    /// take a machine of their own.
    pub fn named_place(&self) -> Option<Place> {
        let takes_own = |it: &Contender| {
            let words = !it.parameters.is_empty();
            it.kernel.is_some() || it.disks.is_some() || words
        };
        self.place.or(self.contenders.iter().any(takes_own).then_some(Place::Vm))
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

    pub(super) fn check_place(&self) -> Result<(), PlanError> {
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

    /// What takes kernels of one's choice.
    fn check_kernels(&self) -> Result<(), PlanError> {
        let missing = self.contenders.iter().find_map(|it| match it {
            _ if it.kernel.is_some() => Some((it, "a kernel of its own")),
            _ if !it.parameters.is_empty() => Some((it, "parameters for its kernel")),
            _ if it.disks.is_some() => Some((it, "a choice of how its disks are attached")),
            _ => None,
        });
        match missing {
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
                "contender {:?} sets {knob}, which affects more than storage, can't be put back, \
                 or makes the machine panic: that takes a machine of its own, --place vm",
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
            "options for QEMU: a User Mode Linux takes none".into()
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
}

#[cfg(test)]
mod tests {
    use super::super::tests::PLAN;
    use super::*;

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
}
