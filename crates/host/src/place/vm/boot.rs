//! A trial in its machine: the machine's input, its boots, and its output.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufReader, BufWriter};
use std::path::Path;

use fsverdict_core::model::{Device, Trial};
use fsverdict_core::run::{self, HostError};

use super::archive::{self, Archive};
use super::bootable::{Asked, Bootable};
use super::bring::Brought;
use super::console::{self, Mute, Silence};
use super::guest::{self, Job};
use super::heard::Console;
use super::kernel::Kernel;
use super::logged::Log;
use super::modules::Bus;
use super::qemu::{Disk, DiskLog, Machine};
use super::runner::{Runner, limits, processors};
use super::{Terminal, Vm};
use crate::bed::Like;
use crate::place::trial_process::{Event, Patience};
use crate::tool;

/// The disk by which a trial goes in and its record comes out. A sparse file: what is not written
/// takes no space.
const EXCHANGE_BYTES: u64 = 512 << 20;

/// What came out of a machine, by name.
pub(super) type Files = BTreeMap<String, Vec<u8>>;

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

    /// Its kernel panicked before the trial.
    fn has_panicked_first(&self) -> bool {
        !self.has_begun && self.console.panic().is_some()
    }
}

impl Vm<'_> {
    fn disks(&self, exchange: &Path, trial: &Trial, log: Option<&Log>) -> Vec<Disk> {
        let bed_disk = |(number, device): (usize, &Device)| Disk {
            path: self.image_of(device),
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
    pub(super) fn is_direct(&self, device: &Device) -> bool {
        self.runner != Runner::Uml && can_be_direct(&self.image_of(device))
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
            processor: bootable.processor,
            parameters: &trial.contender.parameters,
            options: config.map_or(&[], |config| &config.qemu),
            has_terminal: false,
            is_untrusted: config.is_some_and(|config| config.untrusted),
        })
    }

    /// The kernel of `trial`, and the archive that is its root.
    pub(super) fn booted_by(&self, trial: &Trial) -> Result<(&Bootable, &Brought), HostError> {
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
        console::run_on_terminal(&self.runner.argv(&machine))
    }

    /// Runs the machine, whose consoles are kept in the folder `raw`, and gives the files that came
    /// out of it; and what went wrong before the trial began, where it did not when the machine was
    /// booted again. A busy host has emulated machines panic while they boot, and now and then one
    /// never begins.
    pub(super) fn boot(
        &mut self,
        trial: &Trial,
        raw: &Path,
        writes: Option<&Log>,
    ) -> Result<(Files, Option<String>), HostError> {
        let console = raw.join("console.log");
        let booted = self.boot_once(trial, &console, writes, !self.may_be_mute(trial));
        let panicked = match &booted {
            Ok(booted) => booted.console.panic().filter(|_| booted.has_panicked_first()),
            Err(error) => error.downcast_ref::<Mute>().map(ToString::to_string),
        };
        let mut booted = if panicked.is_some() {
            fs::rename(&console, console.with_file_name("console-of-panic.log"))?;
            self.boot_once(trial, &console, writes, false)?
        } else {
            booted?
        };
        let is_plain = booted.has_panicked_first() && self.use_plain_processor(trial);
        if is_plain {
            fs::rename(&console, console.with_file_name("console-of-processor.log"))?;
            let third = self.boot_once(trial, &console, writes, false);
            if third.as_ref().map_or(true, Booted::has_panicked_first) {
                self.use_processor(trial, None);
            }
            booted = third?;
        }
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
        if is_plain && !booted.has_begun {
            self.use_processor(trial, None);
        }
        let again = match (is_plain, &panicked) {
            (true, _) => ", several times, also on a plain processor",
            (false, Some(_)) => ", twice",
            (false, None) => "",
        };
        let kernel = self.prepared.kernels.get(&Asked::by(&trial.contender)).map(|it| &it.kernel);
        let bare = kernel.filter(|_| !booted.has_begun).and_then(Kernel::without_modules);
        let bare = bare.unwrap_or_default();
        Err(format!("the guest ended without an answer{again}: {}{bare}", booted.console.end())
            .into())
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

    /// If its kernel is tried on several buses, the trial's disks are on the bus where its guest
    /// reported `disks`: on an earlier one it may have sent us nothing.
    pub fn use_bus_of(&mut self, trial: &Trial, disks: &str) {
        let bus = Bus::tried_with(disks.split(',').next().unwrap_or_default());
        let buses = self.buses(trial);
        if let Some(at) = buses.iter().position(|it| Some(*it) == bus) {
            self.use_buses(trial, &buses[at..]);
        }
    }

    /// The trial's kernel has panicked again: from now on its processor is one that has no more
    /// than every kernel knows. `false` where that is its processor already, or where we don't
    /// choose it.
    pub fn use_plain_processor(&mut self, trial: &Trial) -> bool {
        let Ok((bootable, _)) = self.booted_by(trial) else { return false };
        let is_chosen = self
            .plan
            .vm
            .as_ref()
            .is_some_and(|vm| vm.qemu.iter().any(|it| ["-cpu", "--cpu"].contains(&&**it)));
        let is_ours = self.runner != Runner::Uml && !self.runner.has_kvm(bootable.kernel.arch);
        let plain = bootable.kernel.arch.plain_cpu();
        if plain == bootable.processor || !is_ours || is_chosen {
            return false;
        }
        self.use_processor(trial, plain);
        true
    }

    fn use_processor(&mut self, trial: &Trial, processor: Option<&'static str>) {
        if let Some(bootable) = self.prepared.kernels.get_mut(&Asked::by(&trial.contender)) {
            bootable.processor = processor;
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
