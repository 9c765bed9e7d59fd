//! What runs the guests, and what it learns of a plan.

use std::io;

use fsverdict_core::model::{Limits, Place, Plan, Trial};

use super::arch::Arch;
use super::facts::EMULATED;
use super::qemu::{self, Machine};
use super::uml;
use crate::layer;

/// What runs the guests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Runner {
    Qemu { kvm: bool },
    Uml,
}

impl Runner {
    pub(super) fn of(plan: &Plan) -> Runner {
        match is_uml(plan) {
            true => Runner::Uml,
            false => Runner::Qemu { kvm: qemu::has_kvm() },
        }
    }

    pub(super) fn argv(self, machine: &Machine) -> Vec<String> {
        match self {
            Runner::Qemu { .. } => machine.argv(),
            Runner::Uml => uml::argv(machine),
        }
    }

    /// What starts that command in the folder of the machine.
    pub(super) fn prepare(self, machine: &Machine) -> io::Result<()> {
        match self {
            Runner::Qemu { .. } => Ok(()),
            Runner::Uml => uml::link(machine),
        }
    }

    /// KVM runs the host's own kind of instructions.
    pub(super) fn has_kvm(self, arch: Arch) -> bool {
        self == Runner::Qemu { kvm: true } && arch == Arch::OWN
    }

    pub(super) fn shown(self) -> (&'static str, &'static str) {
        match self {
            Runner::Qemu { kvm: true } => ("QEMU", ", KVM"),
            Runner::Qemu { kvm: false } => ("QEMU", EMULATED),
            Runner::Uml => ("User Mode Linux", ""),
        }
    }
}

/// The plan's trials run in User Mode Linux.
pub(super) fn is_uml(plan: &Plan) -> bool {
    plan.place == Some(Place::Uml)
}

/// What that one of a trial's disks is held down to: a cache for slow disks is fast.
pub(super) fn limits(plan: &Plan, trial: &Trial, number: usize) -> Option<Limits> {
    let is_fast = layer::is_fast(&trial.contender.layers, number, trial.bed.devices.len());
    trial.contender.limits.or(plan.bed.limits).filter(|_| !is_fast)
}

pub(super) fn processors(plan: &Plan) -> u32 {
    plan.vm.clone().unwrap_or_default().processors_at(plan.place.unwrap_or(Place::Vm))
}
