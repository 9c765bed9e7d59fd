//! A machine for each trial, without root or a spare disk: a QEMU microVM with any kernel
//! (`qemu.rs`), or a User Mode Linux ([`uml`]). Only how these are started differs, what they call
//! their disks, and what they can't have.
//!
//! The guest is fsverdict itself, as the first process ([`guest`]), in an initial file system that
//! is made of the host's own files (`host_files.rs`), or for other processors of what was fetched
//! for these ([`userland`]), and the kernel's modules (`modules.rs`). A trial goes in and its
//! record comes out as the same documents as everywhere, in archives on a disk of their own: that
//! needs no file system, no network and no serial console.

mod answers;
mod apt;
pub mod arch;
mod archive;
mod console;
mod disks;
mod elf;
mod error;
pub mod fetch;
mod full;
pub mod guest;
mod host_files;
mod hung;
mod image;
pub mod kernel;
pub mod kvm;
mod loading;
mod logged;
pub mod modules;
mod nodes;
pub mod openzfs;
mod qemu;
mod release;
mod shell;
pub mod toolbox;
mod tree;
pub mod uml;
pub mod userland;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use fsverdict_core::model::{
    self, Attachment, Bed, BedKind, Contender, Device, Guest, Limits, Outcome, Overdue, Plan,
    Record, Trial, TrialBed,
};
use fsverdict_core::run::{self, HostError, Place};

use crate::bed::{self, Like, Own};
use crate::file_system::{self, FileSystem};
use crate::layer;
use crate::machine::token::Token;
use crate::machine::within;
use crate::place::trial_process::{Event, Patience, Watch};
use crate::tool;
use crate::undo::{Journal, Undo};
pub use answers::answer;
use arch::Arch;
use archive::Archive;
use console::{Console, Mute, Silence};
pub use error::VmError;
use guest::{Answer, Job};
use host_files::HostFiles;
use kernel::{Kernel, Zfs};
use logged::Log;
pub use modules::CONTENTS;
use modules::{Bus, Modules};
use qemu::{Disk, DiskLog, Machine};
pub use shell::Terminal;
use userland::Userland;

/// The disk by which a trial goes in and its record comes out. A hole in a file: what is not
/// written takes no space.
const EXCHANGE_BYTES: u64 = 512 << 20;

/// What runs the guests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Runner {
    Qemu { kvm: bool },
    Uml,
}

impl Runner {
    fn of(plan: &Plan) -> Runner {
        match is_uml(plan) {
            true => Runner::Uml,
            false => Runner::Qemu { kvm: qemu::has_kvm() },
        }
    }

    fn argv(self, machine: &Machine) -> Vec<String> {
        match self {
            Runner::Qemu { .. } => machine.argv(),
            Runner::Uml => uml::argv(machine),
        }
    }

    /// What starts that command in the folder of the machine.
    fn prepare(self, machine: &Machine) -> io::Result<()> {
        match self {
            Runner::Qemu { .. } => Ok(()),
            Runner::Uml => uml::link(machine),
        }
    }

    /// KVM runs the host's own kind of instructions.
    fn has_kvm(self, arch: Arch) -> bool {
        self == Runner::Qemu { kvm: true } && arch == Arch::OWN
    }

    fn shown(self) -> (&'static str, &'static str) {
        match self {
            Runner::Qemu { kvm: true } => ("QEMU", ", KVM"),
            Runner::Qemu { kvm: false } => ("QEMU", EMULATED),
            Runner::Uml => ("User Mode Linux", ""),
        }
    }
}

/// The plan's trials run in User Mode Linux.
fn is_uml(plan: &Plan) -> bool {
    plan.place == Some(model::Place::Uml)
}

/// The kernels that can be meant by a contender of `plan` that has this name for it.
fn kernels(name: Option<&str>, plan: &Plan) -> Result<Vec<Kernel>, VmError> {
    if !is_uml(plan) {
        return kernel::named(name);
    }
    let all = uml::all();
    if all.is_empty() { Err(VmError::NoUml) } else { Ok(all) }
}

/// What contenders ask of their machines: those that ask for the same have the same archive.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Asked {
    /// The name that contenders have for the kernel.
    kernel: Option<String>,
    disks: Option<Attachment>,
}

impl Asked {
    fn by(contender: &Contender) -> Asked {
        Asked { kernel: contender.kernel.clone(), disks: contender.disks }
    }

    /// For a person.
    fn shown(&self) -> String {
        let name = self.kernel.as_deref().unwrap_or("of the guests");
        self.disks.map_or(name.into(), |disks| format!("{name}, {disks}"))
    }

    /// The fact of a run that tells the kernel's build.
    fn build_fact(&self) -> String {
        format!("{BUILD_OF}{}", self.shown())
    }

    /// Those contenders of `plan` that ask for it.
    fn contenders<'a>(&'a self, plan: &'a Plan) -> impl Iterator<Item = &'a Contender> {
        plan.contenders.iter().filter(move |it| Asked::by(it) == *self)
    }
}

/// A kernel that the plan names, ready to be booted.
#[derive(Debug)]
struct Bootable {
    kernel: Kernel,
    modules: Modules,
    /// What it may see its disks on, the one that is used first.
    buses: Vec<Bus>,
    /// A trial has ended of which nothing was heard.
    is_mute: bool,
}

impl Bootable {
    /// The one that is booted for what is `asked`.
    fn of(asked: &Asked, plan: &Plan) -> Result<Bootable, VmError> {
        Bootable::first(kernels(asked.kernel.as_deref(), plan)?, asked, plan)
    }

    /// A run that goes on has the kernel that it `had`, also where there is a newer one of that
    /// name by now.
    fn again(asked: &Asked, plan: &Plan, had: &Facts) -> Result<Bootable, VmError> {
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
        let (mut lack, mut with_daemon) = (None, None);
        for kernel in kernels {
            match Bootable::with(kernel, asked, plan) {
                Err(error) if error.is_of_one_kernel() => lack = lack.or(Some(error)),
                Ok(bootable) if bootable.needs_daemon(asked, plan) => {
                    with_daemon = with_daemon.or(Some(bootable));
                }
                other => return other,
            }
        }
        with_daemon.ok_or_else(|| lack.unwrap_or(VmError::NoKernelAtAll))
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
        // One of them is the exchange. What was chosen the plan has checked.
        buses.retain(|bus| disks < bus.disks_max() || asked.disks.is_some());
        if buses.is_empty() {
            return Err(VmError::TooManyDisks { release: release(), most: most - 1 });
        }
        let bootable = Bootable { kernel, modules, buses, is_mute: false };
        let mut its = plan.contenders.iter().filter(|it| it.kernel == asked.kernel);
        its.try_for_each(|contender| {
            bootable.check_file_system(contender)?;
            bootable.check_disks(contender)?;
            bootable.check_layers(contender)
        })?;
        Ok(bootable)
    }

    /// What it sees its disks on.
    fn bus(&self) -> Bus {
        self.buses.first().copied().unwrap_or(Bus::Virtio)
    }

    /// The contender's file system, as this kernel has it.
    fn file_system(&self, contender: &Contender) -> Option<&'static FileSystem> {
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
    fn zfs_of(&self, contender: &Contender) -> Option<&Zfs> {
        let is_its = self.file_system(contender)?.driver() == openzfs::DRIVER;
        self.kernel.zfs.as_ref().filter(|_| is_its)
    }

    /// The contender's file system, where its tools are the host's or those that were fetched for
    /// other processors, and did not come with the kernel.
    fn by_tools(&self, contender: &Contender) -> Option<&'static FileSystem> {
        self.file_system(contender).filter(|_| self.zfs_of(contender).is_none())
    }

    /// The contender's file system, where its tools are the host's.
    fn by_host(&self, contender: &Contender) -> Option<&'static FileSystem> {
        self.by_tools(contender).filter(|_| self.kernel.arch == Arch::OWN)
    }

    /// What a trial of `contender` needs of the kernel's modules.
    fn modules_for(&self, contender: &Contender) -> Vec<String> {
        let drivers = self.file_system(contender).into_iter().chain(above(contender));
        let drivers: Vec<&str> = drivers.flat_map(FileSystem::modules).collect();
        self.modules.for_contender(&drivers, contender)
    }

    /// The files of all modules that the contenders who ask for it need.
    fn files(&self, asked: &Asked, plan: &Plan) -> Vec<String> {
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
                    Bus::Ubd => VmError::NotInUml { release, name },
                    _ => VmError::NoFileSystem { release, arch, name },
                })
            }
            None => Ok(()),
        }
    }

    fn check_disks(&self, contender: &Contender) -> Result<(), VmError> {
        let Some(disks) = contender.disks else { return Ok(()) };
        match self.modules.lacks(disks.into()) {
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
                let (release, name) = (self.kernel.release.clone(), format!("layer {layer}"));
                Err(VmError::NotInUml { release, name })
            }
            Some((layer, module)) => {
                Err(VmError::NoLayer { release: self.kernel.release.clone(), layer, module })
            }
        }
    }
}

/// The file systems that stand on the contender's own.
fn above(contender: &Contender) -> impl Iterator<Item = &'static FileSystem> {
    contender.above.iter().filter_map(|it| file_system::find(&it.name))
}

/// Everything of a plan that is the same for all its trials.
#[derive(Debug)]
struct Prepared {
    kernels: BTreeMap<Asked, Bootable>,
    /// What tells the modules of each from others of their names.
    prints: BTreeMap<Asked, String>,
    /// For each kind of processors that the kernels have.
    host_files: BTreeMap<Arch, HostFiles>,
}

impl Prepared {
    /// With `programs` besides what the trials need.
    fn of(plan: &Plan, had: &Facts, programs: &[&str]) -> Result<Prepared, VmError> {
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

/// What those contenders' guests have of the host whose kernels are for `arch`.
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

/// The contender's file system as its kernel has it; `None` where that is not there.
pub fn file_system(plan: &Plan, contender: &Contender) -> Option<&'static FileSystem> {
    Bootable::of(&Asked::by(contender), plan).ok()?.file_system(contender)
}

/// Checks that all that the plan's machines hold can be brought into them; changes nothing.
pub fn check(plan: &Plan) -> Result<(), VmError> {
    Prepared::of(plan, &Facts::new(), &[]).map(drop)
}

/// Where the plan's trials would be in place `uml` what they are in place `vm`, and sooner, says
/// so: guests without KVM, of which nothing is judged but what is counted.
pub fn hint(plan: &Plan) -> Option<&'static str> {
    let there = Plan { place: Some(model::Place::Uml), ..plan.clone() };
    let is_own = |it: &Contender| {
        Bootable::of(&Asked::by(it), plan).is_ok_and(|it| it.kernel.arch == Arch::OWN)
    };
    let fits = plan.judges_counts() && there.check().is_ok() && !qemu::has_kvm();
    let fits = fits && plan.contenders.iter().all(is_own);
    fits.then_some(
        "without KVM every instruction is emulated: --place uml has such counts in less time, by a \
         Linux that is a process (fsverdict kernels get uml)",
    )
}

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
        parameters: &trial.contender.parameters,
        options: &config.qemu,
        has_terminal: false,
        is_untrusted: config.untrusted,
    };
    Ok(runner.argv(&machine))
}

/// What that one of a trial's disks is held down to: a cache for slow disks is fast.
fn limits(plan: &Plan, trial: &Trial, number: usize) -> Option<Limits> {
    let is_fast = layer::is_fast(&trial.contender.layers, number, trial.bed.devices.len());
    trial.contender.limits.or(plan.bed.limits).filter(|_| !is_fast)
}

fn processors(plan: &Plan) -> u32 {
    plan.vm.clone().unwrap_or_default().processors_at(plan.place.unwrap_or(model::Place::Vm))
}

/// What a run says of its machine, each by its name.
pub type Facts = BTreeMap<String, String>;

/// The name of the fact that tells what runs the guests.
pub const MACHINES: &str = "virtual machines";

/// What ends that fact where their processors are emulated.
pub const EMULATED: &str = ", emulated by TCG";

/// What begins the name of the fact by which a kernel is known again, wherever it lies.
pub const BUILD_OF: &str = "build of kernel ";

/// Begins the name of the fact which programs guests with other processors have.
pub const PROGRAMS_FOR: &str = "programs for ";

/// What begins the name of the fact by which the modules are known again that it was given.
pub const MODULES_OF: &str = "modules of kernel ";

/// What a machine boots, as it was when the run began: a tree may be built again meanwhile.
struct Brought {
    image: PathBuf,
    initrd: PathBuf,
}

/// Virtual machines as the place of a run.
pub struct Vm<'a> {
    folder: PathBuf,
    plan: Plan,
    interrupted: Arc<AtomicBool>,
    watch: Watch<'a>,
    journal: Option<Journal>,
    prepared: Prepared,
    made: Option<bed::Made>,
    /// The bed could neither be made nor taken back whole: the journal knows of the rest.
    is_half_made: bool,
    /// The folder for what the machines need, which goes when the run is over.
    own: Option<Own>,
    brought: BTreeMap<Asked, Brought>,
    runner: Runner,
}

impl<'a> Vm<'a> {
    /// The machines of the run in `folder`, with the kernels that it `had` where it goes on. Fails
    /// when another process runs it, and when the plan can't be run in machines here.
    pub fn new(
        folder: &Path,
        plan: &Plan,
        had: &Facts,
        interrupted: Arc<AtomicBool>,
        watch: Watch<'a>,
    ) -> Result<Self, HostError> {
        Vm::with(folder, plan, Prepared::of(plan, had, &[])?, interrupted, watch)
    }

    /// [`Vm::new`], in whose machines one can look around.
    pub fn to_look_around(
        folder: &Path,
        plan: &Plan,
        had: &Facts,
        interrupted: Arc<AtomicBool>,
        watch: Watch<'a>,
    ) -> Result<Self, HostError> {
        let prepared = Prepared::of(plan, had, &shell::PROGRAMS)?;
        Vm::with(folder, plan, prepared, interrupted, watch)
    }

    fn with(
        folder: &Path,
        plan: &Plan,
        prepared: Prepared,
        interrupted: Arc<AtomicBool>,
        watch: Watch<'a>,
    ) -> Result<Self, HostError> {
        let journal = Some(Journal::open(Some(folder))?);
        Ok(Vm {
            folder: folder.canonicalize()?,
            plan: plan.clone(),
            interrupted,
            watch,
            journal,
            prepared,
            made: None,
            is_half_made: false,
            own: None,
            brought: BTreeMap::new(),
            runner: Runner::of(plan),
        })
    }

    fn own_folder(&self) -> Result<&Path, HostError> {
        Ok(self.own.as_ref().map(Own::path).ok_or("the bed is not made")?)
    }

    /// Each kernel with its disks, and an archive for it: the host's files, ourselves, and the
    /// modules of all contenders.
    fn bring_kernels(&mut self) -> Result<(), HostError> {
        let mut all_files = BTreeMap::new();
        for (arch, files) in mem::take(&mut self.prepared.host_files) {
            all_files.insert(arch, files.with_ourselves(within::PROGRAM)?);
        }
        for (index, (asked, bootable)) in self.prepared.kernels.iter().enumerate() {
            let image = self.image(index, &bootable.kernel)?;
            let initrd = self.own_folder()?.join(format!("{index}.cpio"));
            let mut archive = Archive::new(BufWriter::new(File::create(&initrd)?));
            for folder in ["fsverdict", "fsverdict/modules", "dev"] {
                archive.directory(folder, 0o755)?;
            }
            // The kernel opens it for its first process before anything is mounted; where there is
            // no console, that process opens the other in its place.
            archive.device("dev/console", [5, 1])?;
            archive.device("dev/null", [1, 3])?;
            let (host_files, ourselves) = &all_files[&bootable.kernel.arch];
            archive.bytes(&ourselves.name, 0o755, &ourselves.content)?;
            archive.link(guest::INIT.trim_start_matches('/'), Path::new(within::PROGRAM))?;
            host_files.pack(&mut archive)?;
            let files = bootable.files(asked, &self.plan);
            pack_modules(&mut archive, bootable, &files)?;
            if self.prepared.prints[asked] != bootable.modules.print(&files)? {
                let kernel = asked.shown();
                return Err(format!("kernel {kernel}: {BEING_BUILT}").into());
            }
            if let Some(zfs) = asked.contenders(&self.plan).find_map(|it| bootable.zfs_of(it)) {
                openzfs::pack(zfs, &mut archive)?;
            }
            archive.finish()?;
            if self.runner == Runner::Uml {
                uml::check_memory(self.memory_bytes(&initrd)?)?;
            }
            self.brought.insert(asked.clone(), Brought { image, initrd });
        }
        let files = all_files.into_iter().map(|(arch, (files, _))| (arch, files));
        self.prepared.host_files = files.collect();
        Ok(())
    }

    /// The kernel's own image; a copy where it may be built again. A User Mode Linux lies beside
    /// what it needs, and is never built.
    fn image(&self, index: usize, kernel: &Kernel) -> Result<PathBuf, HostError> {
        if self.runner == Runner::Uml {
            return Ok(kernel.image.clone());
        }
        let copy = self.own_folder()?.join(format!("{index}.kernel"));
        let image = kernel.image.display();
        fs::copy(&kernel.image, &copy).map_err(|error| format!("copying {image}: {error}"))?;
        if !kernel.is_that_of(&copy) {
            return Err(format!("{image}: {BEING_BUILT}").into());
        }
        Ok(copy)
    }

    /// What is brought along lies in the guest's memory, twice while the kernel unpacks it.
    fn memory_bytes(&self, initrd: &Path) -> io::Result<u64> {
        const UNIT_BYTES: u64 = 64 << 20;
        let memory = self.plan.vm.clone().unwrap_or_default().memory;
        let brought = fs::metadata(initrd)?.len().next_multiple_of(UNIT_BYTES);
        Ok(memory.0 + 2 * brought)
    }

    fn disks(&self, exchange: &Path, trial: &Trial, log: Option<&Log>) -> Vec<Disk> {
        let bed_disk = |(number, device): (usize, &Device)| Disk {
            path: PathBuf::from(&device.path),
            direct: self.is_direct(device),
            scratch: false,
            limits: limits(&self.plan, trial, number),
            like: self.like().map(|like| like.disk.clone()),
            log: log
                .map(|log| DiskLog { path: log.path().into(), device_bytes: device.size_bytes }),
        };
        std::iter::once(Disk::exchange(exchange))
            .chain(trial.bed.devices.iter().enumerate().map(bed_disk))
            .collect()
    }

    /// It is read and written past the host's page cache.
    fn is_direct(&self, device: &Device) -> bool {
        self.runner != Runner::Uml && can_be_direct(Path::new(&device.path))
    }

    /// The disk that those of the guests are to be like.
    fn like(&self) -> Option<&Like> {
        self.made.as_ref()?.like.as_ref()
    }

    fn job(&self, trial: &Trial, bootable: &Bootable, log: Option<&Log>) -> Job {
        Job {
            trial: trial.clone(),
            modules: bootable.modules_for(&trial.contender),
            driver: bootable
                .file_system(&trial.contender)
                .map_or_else(String::new, |it| bootable.modules.with_driver(it.module())),
            path: guest_path(self.plan.vm.as_ref().is_some_and(|vm| vm.untrusted)),
            disks: trial.bed.devices.len(),
            emulated: self.runner != Runner::Uml && !self.runner.has_kvm(bootable.kernel.arch),
            version: guest::VERSION.into(),
            user_mode: self.runner == Runner::Uml,
            has_marks: log.is_some(),
            like: self.like().cloned(),
            shell: None,
        }
    }

    /// The machine of `trial`, with these disks.
    fn machine<'b>(
        &'b self,
        trial: &'b Trial,
        disks: &'b [Disk],
    ) -> Result<Machine<'b>, HostError> {
        let (bootable, Brought { image, initrd }) = self.booted_by(trial)?;
        let config = self.plan.vm.as_ref();
        Ok(Machine {
            kernel: image,
            initrd,
            disks,
            bus: bootable.bus(),
            memory_bytes: self.memory_bytes(initrd)?,
            processors: processors(&self.plan),
            arch: bootable.kernel.arch,
            kvm: self.runner.has_kvm(bootable.kernel.arch),
            parameters: &trial.contender.parameters,
            options: config.map_or(&[], |config| &config.qemu),
            has_terminal: false,
            is_untrusted: config.is_some_and(|config| config.untrusted),
        })
    }

    /// The kernel of `trial`, and the archive that is its root.
    fn booted_by(&self, trial: &Trial) -> Result<(&Bootable, &Brought), HostError> {
        let asked = Asked::by(&trial.contender);
        let bootable = self.prepared.kernels.get(&asked);
        Ok(bootable.zip(self.brought.get(&asked)).ok_or("the bed is not made")?)
    }

    /// Runs `trial` once more in its machine, whose console is our terminal, and then a shell: the
    /// machine ends with that, and nothing comes out of it.
    pub fn shell(&self, trial: &Trial, terminal: &Terminal) -> Result<(), HostError> {
        let exchange = self.own_folder()?.join("exchange");
        let job = self.job(trial, self.booted_by(trial)?.0, None);
        write_job(&exchange, &Job { shell: Some(terminal.clone()), ..job })?;
        let disks = self.disks(&exchange, trial, None);
        let machine = self.machine(trial, &disks)?;
        let machine = Machine { has_terminal: true, ..machine };
        self.runner.prepare(&machine)?;
        console::run_here(&self.runner.argv(&machine))
    }

    /// Runs the machine and gives the files that came out of it; and what went wrong before the
    /// trial began, where it did not when the machine was booted again. A busy host has emulated
    /// machines panic while they boot, and now and then one never begins.
    fn boot(
        &mut self,
        trial: &Trial,
        writes: Option<&Log>,
    ) -> Result<(Files, Option<String>), HostError> {
        let console = Path::new(&trial.raw).join("console.log");
        let booted = self.boot_once(trial, &console, writes, !self.may_be_mute(trial));
        let panicked = match &booted {
            Ok(booted) => booted.console.panic().filter(|_| !booted.has_begun),
            Err(error) => error.downcast_ref::<Mute>().map(ToString::to_string),
        };
        let mut booted = if panicked.is_some() {
            fs::rename(&console, console.with_file_name("console-of-panic.log"))?;
            self.boot_once(trial, &console, writes, false)?
        } else {
            booted?
        };
        let buses = self.buses(trial);
        for tried in 1..buses.len() {
            if booted.has_answered() || booted.has_begun {
                break;
            }
            self.use_buses(trial, &buses[tried..]);
            fs::rename(&console, console.with_file_name(format!("console-of-bus-{tried}.log")))?;
            booted = self.boot_once(trial, &console, writes, false)?;
        }
        if booted.has_answered() {
            let all = self.buses(trial);
            self.use_buses(trial, all.get(..1).unwrap_or_default());
            self.note_words(trial, booted.console.has_words());
            return Ok((booted.files, panicked));
        }
        // It may be another fault, of this trial alone: the next one is to have the choice again.
        self.use_buses(trial, &buses);
        let twice = if panicked.is_some() { ", twice" } else { "" };
        let kernel = self.prepared.kernels.get(&Asked::by(&trial.contender)).map(|it| &it.kernel);
        let bare = kernel.filter(|_| !booted.has_begun).and_then(Kernel::without_modules);
        let bare = bare.unwrap_or_default();
        Err(format!("the guest ended without an answer{twice}: {}{bare}", booted.console.end())
            .into())
    }

    /// Why there is no answer. How long a step took is known by its own kind of error.
    fn explained(&self, error: HostError) -> HostError {
        match error.is::<Overdue>() {
            true => error,
            false => full::explained(error.to_string(), &self.folder).into(),
        }
    }

    /// The buses on which the trial's kernel may see its disks.
    fn buses(&self, trial: &Trial) -> Vec<Bus> {
        let bootable = self.prepared.kernels.get(&Asked::by(&trial.contender));
        bootable.map_or_else(Vec::new, |it| it.buses.clone())
    }

    /// The trial's kernel may say nothing, as far as is known: it has before.
    fn may_be_mute(&self, trial: &Trial) -> bool {
        self.prepared.kernels.get(&Asked::by(&trial.contender)).is_some_and(|it| it.is_mute)
    }

    /// What the trial's kernel is known by from now on: old ones may have no serial port.
    fn note_words(&mut self, trial: &Trial, has_words: bool) {
        if let Some(bootable) = self.prepared.kernels.get_mut(&Asked::by(&trial.contender)) {
            bootable.is_mute = !has_words;
        }
    }

    /// The disks of the trial's kernel are on the first of these from now on.
    fn use_buses(&mut self, trial: &Trial, buses: &[Bus]) {
        if let Some(bootable) = self.prepared.kernels.get_mut(&Asked::by(&trial.contender)) {
            bootable.buses = buses.to_vec();
        }
    }

    /// One boot, with its console in the file `console`. It is soon given up where nothing is heard
    /// of it and `has_words`.
    fn boot_once(
        &mut self,
        trial: &Trial,
        console: &Path,
        log: Option<&Log>,
        has_words: bool,
    ) -> Result<Booted, HostError> {
        let exchange = self.own_folder()?.join("exchange");
        write_job(&exchange, &self.job(trial, self.booted_by(trial)?.0, log))?;
        let disks = self.disks(&exchange, trial, log);
        let machine = self.machine(trial, &disks)?;
        self.runner.prepare(&machine)?;
        let argv = self.runner.argv(&machine);
        let steps: Vec<String> = run::steps(trial).iter().map(ToString::to_string).collect();
        (self.watch)(Event::Step("boot"));
        let mut patience = Patience::new(&trial.timeouts);
        patience.step("boot");
        let mut has_begun = false;
        let mut watch = |event: Event| {
            match event {
                Event::Step(line) if !steps.iter().any(|step| step == line) => {}
                event => {
                    if let Event::Step(step) = event {
                        has_begun = true;
                        patience.step(step);
                    }
                    (self.watch)(event);
                }
            }
            log.map_or(Ok(()), Log::check)?;
            Ok(patience.check()?)
        };
        let later = trial.timeouts.silence();
        let silence = Silence { later, at_first: has_words.then_some(later) };
        let console = console::run(&argv, console, silence, &self.interrupted, &mut watch)?;
        let files = archive::files(BufReader::new(File::open(&exchange)?)).unwrap_or_default();
        Ok(Booted { files, console, has_begun })
    }
}

/// What came out of a machine, by name.
type Files = BTreeMap<String, Vec<u8>>;

/// A machine that has ended.
struct Booted {
    files: Files,
    console: Console,
    /// It came as far as the trial.
    has_begun: bool,
}

impl Booted {
    fn has_answered(&self) -> bool {
        self.files.contains_key(guest::ANSWER)
    }
}

const BEING_BUILT: &str = "it is being built again: begin when that is done";

/// The modules of a kernel that any of its contenders needs, of those files.
fn pack_modules<W: Write>(
    archive: &mut Archive<W>,
    bootable: &Bootable,
    files: &[String],
) -> Result<(), HostError> {
    let first = bootable.modules.for_disks(bootable.bus());
    let name = guest::FIRST_MODULES.trim_start_matches('/');
    archive.bytes(name, 0o644, first.join("\n").as_bytes())?;
    let mut folders: Vec<&Path> =
        files.iter().flat_map(|file| Path::new(file).ancestors().skip(1)).collect();
    folders.sort();
    folders.dedup();
    let modules = guest::MODULES.trim_start_matches('/');
    for folder in folders.into_iter().filter(|folder| *folder != Path::new("")) {
        archive.directory(&format!("{modules}/{}", folder.display()), 0o755)?;
    }
    for file in files {
        let content = bootable.modules.content(file)?;
        archive.bytes(&format!("{modules}/{file}"), 0o644, &content)?;
    }
    Ok(())
}

/// The user's own, unless that is no business of the plan's, and where system tools are.
fn guest_path(is_untrusted: bool) -> String {
    let usual = tool::DIRECTORIES.join(":");
    let own = std::env::var("PATH").ok().filter(|_| !is_untrusted);
    own.map_or(usual.clone(), |path| format!("{path}:{usual}"))
}

fn write_job(exchange: &Path, job: &Job) -> Result<(), HostError> {
    let file = File::create(exchange)?;
    file.set_len(EXCHANGE_BYTES)?;
    let mut archive = Archive::new(BufWriter::new(file));
    archive.bytes(guest::JOB, 0o644, &serde_json::to_vec(job)?)?;
    archive.finish()?;
    Ok(())
}

/// Whether the file can be opened past the page cache: not every file system can (open(2)).
fn can_be_direct(path: &Path) -> bool {
    use std::os::unix::fs::OpenOptionsExt;
    File::options().read(true).custom_flags(libc::O_DIRECT).open(path).is_ok()
}

impl Place for Vm<'_> {
    fn make_bed(&mut self, bed: &Bed) -> Result<TrialBed, HostError> {
        let (folder, interrupted) = (self.folder.clone(), Arc::clone(&self.interrupted));
        let journal = self.journal.as_mut().ok_or("the journal is closed")?;
        let mut before = |undo: &bed::Undo| journal.before(&Undo::Bed(undo.clone()));
        self.own = Some(bed::own_folder(&folder, &Token::random()?, 0o700, &mut before)?);
        // Before the images, which take minutes: what is booted is what was found.
        self.bring_kernels()?;
        let Vm { watch, journal, is_half_made, .. } = self;
        let journal = journal.as_mut().ok_or("the journal is closed")?;
        let token = journal.token().clone();
        let total_bytes = bed.size.0.saturating_mul(bed.devices.into());
        let mut before = |undo: &bed::Undo| journal.before(&Undo::Bed(undo.clone()));
        let mut progress = |bytes: u64| {
            watch(Event::Writing(bytes, total_bytes));
            match interrupted.load(std::sync::atomic::Ordering::Relaxed) {
                true => Err(io::Error::other("interrupted")),
                false => Ok(()),
            }
        };
        let made = bed::make_images(bed, &folder, &token, &mut before, &mut progress)
            .inspect_err(|error| *is_half_made = error.is_half_made())?;
        let (devices, probed) = (made.devices.clone(), made.probed.clone());
        self.made = Some(made);
        // QEMU holds the disks down to their limits.
        let (kind, lab) = (bed.kind, token.to_string());
        let limits_count = bed.limits_count(self.plan.place.unwrap_or(model::Place::Vm));
        Ok(TrialBed { kind, devices, limits_count, probed, lab, ..TrialBed::default() })
    }

    /// The guest sets them, before each trial: nothing of the host is changed.
    fn apply(&mut self, _contender: &Contender, _bed: &TrialBed) -> Result<(), HostError> {
        Ok(())
    }

    fn run_trial(&mut self, trial: &Trial) -> Result<Record, HostError> {
        let folder = Path::new(&trial.raw).parent().ok_or("the trial has no folder")?.to_owned();
        fs::create_dir_all(&trial.raw)?;
        fs::write(folder.join("trial.json"), serde_json::to_string_pretty(trial)?)?;
        let log = match self.runner {
            Runner::Qemu { .. } => Log::of(trial, self.own_folder()?)?,
            Runner::Uml => None,
        };
        let booted = self.boot(trial, log.as_ref());
        let (mut files, panicked) = booted.map_err(|error| self.explained(error))?;
        let answer = files.remove(guest::ANSWER).unwrap_or_default();
        let Answer { guest, error } = serde_json::from_slice(&answer)?;
        let record = files.remove("record.json");
        archive::unpack(&files, &folder)?;
        if let Some(error) = error {
            return Err(format!("Linux {}: {error}", guest.kernel).into());
        }
        let record = record.ok_or("the guest brought no record")?;
        let guest = Guest { panicked, ..guest };
        let mut record =
            Record { guest: Some(guest), ..model::from_json(str::from_utf8(&record)?)? };
        if let Outcome::Failed(failure) = &mut record.outcome {
            failure.error = full::explained(mem::take(&mut failure.error), &self.folder);
        }
        log.map_or(Ok(()), |log| log.write(trial, &folder, &mut record))?;
        let beside = folder.join("record.new");
        let mut file = File::create(&beside)?;
        writeln!(file, "{}", serde_json::to_string(&record)?)?;
        file.sync_all()?;
        fs::rename(&beside, folder.join("record.json"))?;
        Ok(record)
    }

    fn restore(&mut self) -> Result<(), HostError> {
        Ok(())
    }

    fn remove_bed(&mut self) -> Result<(), HostError> {
        if let Some(made) = self.made.take() {
            made.remove()?;
        }
        if let Some(own) = self.own.take() {
            own.remove()?;
        }
        if !self.is_half_made
            && let Some(journal) = self.journal.take()
        {
            journal.close()?;
        }
        Ok(())
    }

    fn bed_facts(&self) -> Vec<(String, String)> {
        let config = self.plan.vm.clone().unwrap_or_default();
        let processors = match processors(&self.plan) {
            1 => "1 processor".to_string(),
            several => format!("{several} processors"),
        };
        let (runner, how) = self.runner.shown();
        let machine = format!("{runner}, {processors}, {}{how}", config.memory);
        let mut facts = vec![(MACHINES.to_string(), machine)];
        let mut images = self.made.iter().flat_map(|made| &made.devices);
        let how = match images.all(|device| self.is_direct(device)) {
            true => "direct I/O",
            false => "through the host's page cache",
        };
        facts.push(("disks".into(), how.into()));
        let like = self.made.as_ref().and_then(bed::Made::like);
        facts.extend(like.map(|like| ("bed is like".into(), like)));
        let others = self.prepared.host_files.values().filter_map(HostFiles::userland);
        let of = |its: &Userland| format!("{PROGRAMS_FOR}{}", its.arch().shown());
        facts.extend(others.map(|its| (of(its), its.told())));
        for (asked, bootable) in &self.prepared.kernels {
            let kernel = &bootable.kernel;
            let disks = match bootable.buses.as_slice() {
                [bus] => bus.shown(),
                [] => "",
                // What this kernel has is known when it has been booted.
                [..] => ", virtio disks, or IDE or SATA where it sees none",
            };
            let (release, zfs) = (&kernel.release, kernel.its_zfs());
            let arch = match kernel.arch {
                Arch::OWN => String::new(),
                other => format!(" for {}, emulated", other.shown()),
            };
            let text = format!("Linux {release}{arch}{zfs} ({}){disks}", kernel.image.display());
            facts.push((format!("kernel {}", asked.shown()), text));
            facts.push((asked.build_fact(), kernel.told()));
            let print = self.prepared.prints[asked].clone();
            facts.push((format!("{MODULES_OF}{}", asked.shown()), print));
        }
        facts
    }

    fn left(&self) -> Vec<String> {
        let journal = self.journal.iter();
        journal.map(|journal| format!("what {} lists", journal.path().display())).collect()
    }
}

#[cfg(test)]
mod tests {
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
