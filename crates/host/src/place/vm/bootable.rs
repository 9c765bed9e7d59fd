//! Which kernel is booted for what contenders ask of their machines.

use fsverdict_core::model::{Attachment, Contender, Plan};

use super::arch::Arch;
use super::error::VmError;
use super::facts::{BUILD_OF, Facts};
use super::kernel::{self, Kernel, Zfs};
use super::modules::{Bus, Modules};
use super::runner::is_uml;
use super::{openzfs, uml};
use crate::file_system::{self, FileSystem};
use crate::layer;

/// The kernels that can be meant by a contender of `plan` that has this name for it.
pub(super) fn kernels(name: Option<&str>, plan: &Plan) -> Result<Vec<Kernel>, VmError> {
    if !is_uml(plan) {
        return kernel::named(name);
    }
    let all = uml::all();
    if all.is_empty() { Err(VmError::NoUml) } else { Ok(all) }
}

/// What contenders ask of their machines: those that ask for the same have the same archive.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Asked {
    /// The name that contenders have for the kernel.
    pub(super) kernel: Option<String>,
    pub(super) disks: Option<Attachment>,
}

impl Asked {
    pub(super) fn by(contender: &Contender) -> Asked {
        Asked { kernel: contender.kernel.clone(), disks: contender.disks }
    }

    /// For a person.
    pub(super) fn shown(&self) -> String {
        let name = self.kernel.as_deref().unwrap_or("of the guests");
        self.disks.map_or(name.into(), |disks| format!("{name}, {disks}"))
    }

    /// The fact of a run that tells the kernel's build.
    pub(super) fn build_fact(&self) -> String {
        format!("{BUILD_OF}{}", self.shown())
    }

    /// Those contenders of `plan` that ask for it.
    pub(super) fn contenders<'a>(&'a self, plan: &'a Plan) -> impl Iterator<Item = &'a Contender> {
        plan.contenders.iter().filter(move |it| Asked::by(it) == *self)
    }
}

/// A kernel that the plan names, ready to be booted.
#[derive(Debug)]
pub(super) struct Bootable {
    pub(super) kernel: Kernel,
    pub(super) modules: Modules,
    /// The buses on which it may see its disks, beginning with the one in use.
    pub(super) buses: Vec<Bus>,
    /// A trial has ended without a word on the console.
    pub(super) is_mute: bool,
    /// The processor that QEMU emulates, if the kernel panics on its default.
    pub(super) processor: Option<&'static str>,
}

impl Bootable {
    /// The one that is booted for what is `asked`.
    pub(super) fn of(asked: &Asked, plan: &Plan) -> Result<Bootable, VmError> {
        Bootable::first(kernels(asked.kernel.as_deref(), plan)?, asked, plan)
    }

    /// A run that goes on has the kernel that it `had`, also where there is a newer one of that
    /// name by now.
    pub(super) fn again(asked: &Asked, plan: &Plan, had: &Facts) -> Result<Bootable, VmError> {
        let kernels = kernels(asked.kernel.as_deref(), plan)?;
        let had = had.get(&asked.build_fact());
        let former = kernels.iter().find(|kernel| had.is_some_and(|had| kernel.told() == *had));
        // Also where a daemon stood in for what a later one has by itself.
        let again = former.map(|kernel| Bootable::with(kernel.clone(), asked, plan));
        again.and_then(Result::ok).map_or_else(|| Bootable::first(kernels, asked, plan), Ok)
    }

    /// The first of `kernels` that has the file systems and the disks of all its contenders; one
    /// that has them all by itself before one where a daemon stands in.
    fn first(kernels: Vec<Kernel>, asked: &Asked, plan: &Plan) -> Result<Bootable, VmError> {
        let (mut unfit, mut with_daemon) = (None, None);
        for kernel in kernels {
            match Bootable::with(kernel, asked, plan) {
                Err(error) if error.is_of_one_kernel() => unfit = unfit.or(Some(error)),
                Ok(bootable) if bootable.needs_daemon(asked, plan) => {
                    with_daemon = with_daemon.or(Some(bootable));
                }
                other => return other,
            }
        }
        with_daemon.ok_or_else(|| unfit.unwrap_or(VmError::NoKernelAtAll))
    }

    fn with(kernel: Kernel, asked: &Asked, plan: &Plan) -> Result<Bootable, VmError> {
        let bed = plan.bed.devices as usize;
        let disks = asked.contenders(plan).map(|it| it.devices_of(bed)).max().unwrap_or(bed);
        let modules = Modules::of(&kernel)?;
        let release = || kernel.release.clone();
        let mut buses = match asked.disks.map(Bus::from) {
            _ if is_uml(plan) => vec![Bus::Ubd],
            Some(chosen) => vec![chosen],
            None => modules.buses(),
        };
        // That machine has no such controller.
        buses.retain(|bus| kernel.arch != Arch::Arm64 || *bus != Bus::Ide);
        let Some(most) = buses.iter().map(|bus| bus.disks_max()).max() else {
            return Err(VmError::NoDisks { release: release() });
        };
        // One of them is the exchange. The plan's check covers a chosen bus.
        buses.retain(|bus| disks < bus.disks_max() || asked.disks.is_some());
        if buses.is_empty() {
            return Err(VmError::TooManyDisks { release: release(), most: most - 1 });
        }
        let bootable = Bootable { kernel, modules, buses, is_mute: false, processor: None };
        let mut its = plan.contenders.iter().filter(|it| it.kernel == asked.kernel);
        its.try_for_each(|contender| {
            bootable.check_file_system(contender)?;
            bootable.check_disks(contender)?;
            bootable.check_layers(contender)
        })?;
        Ok(bootable)
    }

    /// The bus on which it sees its disks.
    pub(super) fn bus(&self) -> Bus {
        self.buses.first().copied().unwrap_or(Bus::Virtio)
    }

    /// The contender's file system, as this kernel has it.
    pub(super) fn file_system(&self, contender: &Contender) -> Option<&'static FileSystem> {
        let known = file_system::ALL.iter().find(|known| known.name == contender.file_system)?;
        Some(known.of_kernel(|driver| self.modules.has(driver) != Some(false)))
    }

    /// A daemon does the work of a file system that this kernel lacks.
    fn needs_daemon(&self, asked: &Asked, plan: &Plan) -> bool {
        let mut its = plan.contenders.iter().filter(|it| it.kernel == asked.kernel);
        its.any(|it| self.file_system(it).is_some_and(|known| known.daemon.is_some()))
    }

    /// The OpenZFS that was built for it, where that makes the contender's file system: its tools
    /// come with it, and not from the host.
    pub(super) fn zfs_of(&self, contender: &Contender) -> Option<&Zfs> {
        let is_its = self.file_system(contender)?.driver() == openzfs::DRIVER;
        self.kernel.zfs.as_ref().filter(|_| is_its)
    }

    /// The contender's file system, where its tools are the host's or those that were fetched for
    /// other processors, and did not come with the kernel.
    pub(super) fn by_tools(&self, contender: &Contender) -> Option<&'static FileSystem> {
        self.file_system(contender).filter(|_| self.zfs_of(contender).is_none())
    }

    /// The contender's file system, where its tools are the host's.
    pub(super) fn by_host(&self, contender: &Contender) -> Option<&'static FileSystem> {
        self.by_tools(contender).filter(|_| self.kernel.arch == Arch::OWN)
    }

    /// What a trial of `contender` needs of the kernel's modules.
    pub(super) fn modules_for(&self, contender: &Contender) -> Vec<String> {
        let drivers = self.file_system(contender).into_iter().chain(above(contender));
        let drivers: Vec<&str> = drivers.flat_map(FileSystem::modules).collect();
        self.modules.for_contender(&drivers, contender)
    }

    /// The files of all modules that the contenders who ask for it need.
    pub(super) fn files(&self, asked: &Asked, plan: &Plan) -> Vec<String> {
        let mut files = self.modules.for_disks(self.bus());
        files.extend(asked.contenders(plan).flat_map(|it| self.modules_for(it)));
        files.sort();
        files.dedup();
        files
    }

    fn check_file_system(&self, contender: &Contender) -> Result<(), VmError> {
        let known = self.file_system(contender).into_iter().chain(above(contender));
        let mut modules = known.flat_map(FileSystem::modules);
        match modules.find(|it| self.modules.has(it) == Some(false)) {
            Some(module) => {
                let (release, name) = (self.kernel.release.clone(), module.to_string());
                let arch = self.kernel.arch;
                Err(match self.bus() {
                    Bus::Ubd => VmError::NotInUml { name: self.kernel.name(), what: name },
                    _ => VmError::NoFileSystem { release, arch, name },
                })
            }
            None => Ok(()),
        }
    }

    fn check_disks(&self, contender: &Contender) -> Result<(), VmError> {
        let Some(disks) = contender.disks else { return Ok(()) };
        match self.modules.missing_for(disks.into()) {
            Some(driver) => {
                let (release, arch) = (self.kernel.release.clone(), self.kernel.arch);
                Err(VmError::NoDriver { release, arch, driver, disks })
            }
            None => Ok(()),
        }
    }

    fn check_layers(&self, contender: &Contender) -> Result<(), VmError> {
        let kinds = contender.layers.iter().filter_map(|layer| layer::find(&layer.name));
        let mut pairs = kinds.flat_map(|kind| kind.modules.iter().map(move |it| (kind.name, it)));
        match pairs.find(|(_, module)| self.modules.has(module) == Some(false)) {
            None => Ok(()),
            Some((layer, _)) if self.bus() == Bus::Ubd => {
                Err(VmError::NoLayerInUml { name: self.kernel.name(), layer })
            }
            Some((layer, module)) => {
                Err(VmError::NoLayer { release: self.kernel.release.clone(), layer, module })
            }
        }
    }
}

/// The file systems that stand on the contender's own.
pub(super) fn above(contender: &Contender) -> impl Iterator<Item = &'static FileSystem> {
    contender.above.iter().filter_map(|it| file_system::find(&it.name))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// A kernel whose modules have this list, or none.
    fn kernel(folder: &Path, release: &str, list: Option<&str>) -> Kernel {
        let modules = folder.join(release);
        fs::create_dir(&modules).unwrap();
        list.into_iter().for_each(|list| fs::write(modules.join("modules.dep"), list).unwrap());
        Kernel {
            image: folder.join("vmlinuz"),
            arch: Arch::OWN,
            release: release.into(),
            build: String::new(),
            modules: Some(modules),
            zfs: None,
        }
    }

    #[test]
    fn a_kernel_that_is_not_whole_hides_no_other_of_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let plan = "[[contender]]\nname = \"ext4\"\nfile_system = \"ext4\"\n\
                    [[workload]]\nname = \"w\"\ncommand = \"true\"\n";
        let plan = Plan::parse(plan).unwrap();
        let asked = Asked::by(&plan.contenders[0]);
        let unpacked = kernel(folder.path(), "6.1.0-9", None);
        let without_disks = kernel(folder.path(), "6.1.0-8", Some("kernel/fs/ext4/ext4.ko:\n"));
        let list = "kernel/virtio_pci.ko:\nkernel/virtio_blk.ko:\nkernel/ext4.ko:\n";
        let whole = kernel(folder.path(), "6.1.0-7", Some(list));
        let first = |kernels: &[&Kernel]| {
            Bootable::first(kernels.iter().map(|&it| it.clone()).collect(), &asked, &plan)
        };
        let found = first(&[&unpacked, &without_disks, &whole]).unwrap();
        assert_eq!(found.kernel.release, "6.1.0-7");
        let none = first(&[&unpacked, &without_disks]).unwrap_err().to_string();
        assert!(none.contains("has no list of what its modules need"), "{none}");
    }
}
