//! The machine of a trial as a dry run shows it.

use fsverdict_core::model::{self, BedKind, Plan, Trial};
use fsverdict_core::run::HostError;

use super::arch;
use super::bootable::{Asked, Bootable};
use super::modules::Bus;
use super::qemu::{Disk, Machine};
use super::runner::{Runner, is_uml, limits, processors};

/// The command that would boot the machine of `trial`; kernels that are not there are imagined.
pub fn imagined(plan: &Plan, trial: &Trial) -> Result<Vec<String>, HostError> {
    let asked = Asked::by(&trial.contender);
    let bootable = Bootable::of(&asked, plan);
    let arch = bootable.as_ref().map_or_else(
        |_| arch::split(asked.kernel.as_deref().unwrap_or_default()).1,
        |it| it.kernel.arch,
    );
    let image = match &bootable {
        Ok(bootable) => bootable.kernel.image.clone(),
        Err(_) if is_uml(plan) => "linux".into(),
        Err(_) => format!("vmlinuz-{}", asked.kernel.as_deref().unwrap_or("RELEASE")).into(),
    };
    let (config, runner) = (plan.vm.clone().unwrap_or_default(), Runner::of(plan));
    let bed = (0..trial.bed.devices.len()).map(|number| Disk {
        path: format!("RUN/{number}.img").into(),
        direct: plan.bed.kind == BedKind::Loop,
        scratch: false,
        limits: limits(plan, trial, number),
        like: plan.bed.like.as_deref().and_then(model::Disk::named),
        log: None,
    });
    let disks: Vec<Disk> =
        std::iter::once(Disk::exchange("RUN/vm/exchange".as_ref())).chain(bed).collect();
    let machine = Machine {
        kernel: &image,
        initrd: "RUN/vm/0.cpio".as_ref(),
        disks: &disks,
        bus: bootable.map_or_else(|_| asked.disks.map_or(Bus::Virtio, Bus::from), |it| it.bus()),
        memory_bytes: config.memory.0,
        processors: processors(plan),
        arch,
        kvm: runner.has_kvm(arch),
        processor: None,
        parameters: &trial.contender.parameters,
        options: &config.qemu,
        has_terminal: false,
        is_untrusted: config.untrusted,
    };
    Ok(runner.argv(&machine))
}
