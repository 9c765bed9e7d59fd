//! All of a plan that is the same for its machines, and what can be said before one runs.

use std::collections::{BTreeMap, BTreeSet};

use fsverdict_core::model::{Contender, Place, Plan};

use super::arch::Arch;
use super::bootable::{Asked, Bootable, above};
use super::error::VmError;
use super::facts::Facts;
use super::host_files::HostFiles;
use super::release::with_zfs;
use super::runner::is_uml;
use super::userland::Userland;
use super::{openzfs, qemu, uml};
use crate::file_system::{self, FileSystem};
use crate::tool;

/// Everything of a plan that is the same for all its trials.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) kernels: BTreeMap<Asked, Bootable>,
    /// What tells the modules of each from others of their names.
    pub(super) prints: BTreeMap<Asked, String>,
    /// For each kind of processors that the kernels have.
    pub(super) host_files: BTreeMap<Arch, HostFiles>,
}

impl Prepared {
    /// With `programs` besides what the trials need.
    pub(super) fn of(plan: &Plan, had: &Facts, programs: &[&str]) -> Result<Prepared, VmError> {
        if is_uml(plan) {
            // At least: what comes along is known when it is packed.
            uml::check_memory(plan.vm.clone().unwrap_or_default().memory.0)?;
        }
        let (mut kernels, mut prints) = (BTreeMap::new(), BTreeMap::new());
        for asked in plan.contenders.iter().map(Asked::by).collect::<BTreeSet<_>>() {
            let bootable = Bootable::again(&asked, plan, had)?;
            if !is_uml(plan) {
                let arch = bootable.kernel.arch;
                tool::command(arch.qemu())?;
                asked.disks.map_or(Ok(()), |disks| qemu::check_devices(arch, disks))?;
            }
            prints.insert(asked.clone(), bootable.modules.print(&bootable.files(&asked, plan))?);
            kernels.insert(asked, bootable);
        }
        let archs: BTreeSet<Arch> = kernels.values().map(|it| it.kernel.arch).collect();
        let files = |arch| Ok((arch, host_files(plan, &kernels, arch, programs)?));
        let host_files = archs.into_iter().map(files).collect::<Result<_, VmError>>()?;
        Ok(Prepared { kernels, prints, host_files })
    }
}

/// The host's files in the guests of contenders whose kernels are for `arch`.
fn host_files(
    plan: &Plan,
    kernels: &BTreeMap<Asked, Bootable>,
    arch: Arch,
    programs: &[&str],
) -> Result<HostFiles, VmError> {
    let mut its = plan.clone();
    its.contenders.retain(|it| kernels[&Asked::by(it)].kernel.arch == arch);
    let by_tools = its.contenders.iter().filter_map(|it| kernels[&Asked::by(it)].by_tools(it));
    let all = by_tools.chain(its.contenders.iter().flat_map(above));
    let userland = (arch != Arch::OWN).then(|| Userland::of(arch));
    HostFiles::of(&its, all, programs, userland)
}

/// The contenders' file systems as their kernels have them, where the host has their tools.
pub fn file_systems_by_host(plan: &Plan) -> Vec<&'static FileSystem> {
    let all = plan
        .contenders
        .iter()
        .filter_map(|it| Some((it, Bootable::of(&Asked::by(it), plan).ok()?)));
    let own: Vec<_> = all.filter(|(_, bootable)| bootable.kernel.arch == Arch::OWN).collect();
    let lowest = own.iter().filter_map(|(it, bootable)| bootable.by_host(it));
    lowest.chain(own.iter().flat_map(|(it, _)| above(it))).collect()
}

/// The contender's file system as its kernel has it; `None` where that is not there, unless it is
/// to be fetched with OpenZFS.
pub fn file_system(plan: &Plan, contender: &Contender) -> Option<&'static FileSystem> {
    let asked = Asked::by(contender);
    if let Ok(bootable) = Bootable::of(&asked, plan) {
        return bootable.file_system(contender);
    }
    let zfs = asked.kernel.as_deref().filter(|name| !name.contains('/')).and_then(with_zfs);
    zfs.and_then(|_| file_system::mounted_as(&contender.file_system, openzfs::DRIVER))
}

/// Checks that all that the plan's machines hold can be brought into them; changes nothing.
pub fn check(plan: &Plan) -> Result<(), VmError> {
    Prepared::of(plan, &Facts::new(), &[]).map(drop)
}

/// Says if place `uml` would give the plan the same as place `vm`, and sooner: for guests without
/// KVM, if only counts are judged.
pub fn hint(plan: &Plan) -> Option<&'static str> {
    let there = Plan { place: Some(Place::Uml), ..plan.clone() };
    let is_own = |it: &Contender| {
        Bootable::of(&Asked::by(it), plan).is_ok_and(|it| it.kernel.arch == Arch::OWN)
    };
    let fits = plan.judges_counts() && there.check().is_ok() && !qemu::has_kvm();
    let fits = fits && plan.contenders.iter().all(is_own);
    fits.then_some(
        "without KVM every instruction is emulated: --place uml gets these counts sooner, from a \
         Linux that runs as a process (fsverdict kernels get uml)",
    )
}
