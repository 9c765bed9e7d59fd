//! QEMU: its command line.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use fsverdict_core::model::need::State;
use fsverdict_core::model::{self, Attachment, Limits};

use super::arch::Arch;
use super::error::VmError;
use super::kernel;
use super::kvm;
use super::modules::{Bus, ONE_PATH};
use crate::probe::trace::logged::MARKS_BYTES;
use crate::tool;

/// Kernel parameters (Documentation/admin-guide/kernel-parameters.txt), after its console. The
/// machine ends when its kernel restarts it, and its kernel restarts it at once when it panics. The
/// last word spares it the self-tests of the crypto code, a quarter of a boot under TCG.
const PARAMETERS: &str =
    "loglevel=4 rdinit=/init panic=-1 oops=panic random.trust_cpu=on cryptomgr.notests";

/// Those of x86-64. It restarts without ACPI (`reboot=t`). It does not try whether the timer
/// interrupts it within ten ticks (timer_irq_works in arch/x86/kernel/apic/io_apic.c): on a busy
/// host an emulated one does not, and the kernel panics; under KVM it leaves that out by itself.
/// The last words spare what a guest has no use for: the firmware's own list of disks, a keyboard
/// and a mouse.
const OF_X86: &str = "reboot=t no_timer_check edd=off i8042.nokbd i8042.noaux";

/// KFENCE changes the kernel's code ten times a second where it was built to (Linux 5.12 and later,
/// `CONFIG_KFENCE_STATIC_KEYS`): what that does to a processor that is emulated, `machine/alone.rs`
/// says.
const WITHOUT_KFENCE: &str = "kfence.sample_interval=0";

/// What QEMU may not do any more once it runs a stranger's plan (qemu(1), `-sandbox`): start
/// programs, get other rights, ask for more of the processors, and make obsolete system calls. Code
/// that breaks out of the guest has the rest.
const SANDBOX: &str = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny";

/// For a disk whose errors go to the guest.
const REPORTED: &str = ",werror=report,rerror=report";

/// A disk of the guest.
#[derive(Clone, Debug)]
pub struct Disk {
    /// The image.
    pub path: PathBuf,
    /// Past the host's page cache.
    pub direct: bool,
    /// The host need keep nothing of it: its flushes are not passed on.
    pub scratch: bool,
    /// The limits that QEMU holds it down to.
    pub limits: Option<Limits>,
    /// Whose blocks it has.
    pub like: Option<model::Disk>,
    /// Where its writes are logged. Behind its last byte, in the same log, the guest has a disk for
    /// marks, after all others.
    pub log: Option<DiskLog>,
}

/// The log of a disk's writes.
#[derive(Clone, Debug)]
pub struct DiskLog {
    /// Its file.
    pub path: PathBuf,
    /// What the guest has of the image.
    pub device_bytes: u64,
}

/// A machine to be started.
#[derive(Clone, Debug)]
pub struct Machine<'a> {
    /// The kernel's image.
    pub kernel: &'a Path,
    /// The archive that is its root.
    pub initrd: &'a Path,
    /// Its disks, in the order in which the guest sees them.
    pub disks: &'a [Disk],
    /// What it sees them on.
    pub bus: Bus,
    /// Its memory.
    pub memory_bytes: u64,
    /// Its processors.
    pub processors: u32,
    /// What kind these are.
    pub arch: Arch,
    /// KVM, otherwise TCG.
    pub kvm: bool,
    /// The processor to emulate instead of QEMU's most capable one.
    pub processor: Option<&'a str>,
    /// Of its kernel, after our own.
    pub parameters: &'a [String],
    /// More options, after all others.
    pub options: &'a [String],
    /// Its console is the terminal that we are typed at, where Ctrl-A, then X ends it.
    pub has_terminal: bool,
    /// It runs a stranger's plan.
    pub is_untrusted: bool,
}

impl Machine<'_> {
    /// The command that starts it: its console on standard output, nothing else to be seen.
    pub fn argv(&self) -> Vec<String> {
        let memory = format!("{}M", self.memory_bytes.div_ceil(1 << 20));
        let accelerator = if self.kvm { "kvm" } else { "tcg,thread=multi" };
        let (kernel, initrd) = (self.kernel.display(), self.initrd.display());
        let program = self.arch.qemu();
        let mut argv =
            [program, "-nodefaults", "-no-user-config", "-no-reboot"].map(String::from).to_vec();
        let mut option = |name: &str, value: String| argv.extend([name.to_string(), value]);
        option("-machine", self.arch.machine().into());
        option("-accel", accelerator.into());
        option("-cpu", self.processor.unwrap_or_else(|| self.arch.cpu(self.kvm)).into());
        option("-smp", self.processors.to_string());
        option("-m", memory);
        option("-display", "none".into());
        option("-serial", if self.has_terminal { "mon:stdio" } else { "stdio" }.into());
        option("-kernel", kernel.to_string());
        option("-initrd", initrd.to_string());
        option("-append", self.words());
        if self.is_untrusted {
            option("-sandbox", SANDBOX.into());
        }
        if let Some(controller) = controller(self.bus) {
            option("-device", controller.into());
        }
        for (index, disk) in self.disks.iter().enumerate() {
            match &disk.log {
                None => option("-drive", disk.drive(index)),
                Some(log) => disk.logged(index, log, &mut option),
            }
            option("-device", self.device(index, disk));
        }
        if let Some((disk, log)) = self.disks.iter().find_map(|it| Some((it, it.log.as_ref()?))) {
            let index = self.disks.len();
            option("-blockdev", log.marks(index));
            option("-device", self.device(index, disk));
        }
        argv.extend_from_slice(self.options);
        argv
    }

    /// What the kernel gets on its command line.
    fn words(&self) -> String {
        let (module, parameter) = ONE_PATH;
        // For a driver that is built in.
        let own = (self.bus == Bus::Nvme)
            .then(|| format!("{module}.{}", parameter.to_str().unwrap_or_default()));
        let without_kfence = (!self.kvm).then(|| WITHOUT_KFENCE.to_string());
        let console = format!("console={}", self.arch.console());
        let of_arch = (self.arch == Arch::X86).then(|| OF_X86.to_string());
        let words = [console, PARAMETERS.into()].into_iter().chain(of_arch);
        let words = words.chain(without_kfence).chain(own);
        words.chain(self.parameters.iter().cloned()).collect::<Vec<_>>().join(" ")
    }

    /// What fails on the host fails in the guest: by itself QEMU stops the machine when a write
    /// finds the host's disk full (qemu(1), `werror`). NVMe drives have no such option, and always
    /// report (hw/nvme/ctrl.c, `nvme_aio_err`).
    ///
    /// A guest writes its zeros itself: see `bed/image.rs`, `write_out`. Linux 5.1 and later sends
    /// a drive with Intel's number no Write Zeroes (drivers/nvme/host/pci.c,
    /// `NVME_QUIRK_DISABLE_WRITE_ZEROES`), the guest sets SCSI disks (`disks.rs`), and SATA disks
    /// have no such command.
    fn device(&self, index: usize, disk: &Disk) -> String {
        match self.bus {
            Bus::Virtio => {
                let (blocks, logged) = (disk.blocks(), disk.as_logged(",request-merging=off"));
                format!(
                    "virtio-blk-pci,drive=disk{index},write-zeroes=off{REPORTED}{blocks}{logged}"
                )
            }
            Bus::VirtioScsi => {
                let (blocks, logged) = (disk.blocks(), disk.as_logged(""));
                format!(
                    "scsi-hd,drive=disk{index},bus=scsi.0,scsi-id={index}{REPORTED}{blocks}{logged}"
                )
            }
            // Each drive has to have a serial number.
            Bus::Nvme => {
                let (blocks, logged) = (disk.blocks(), disk.as_logged(""));
                format!("nvme,drive=disk{index},serial={index},use-intel-id=on{blocks}{logged}")
            }
            // Its blocks have 512 bytes, whatever is asked of it (hw/ide/ide-dev.c).
            Bus::Ide => {
                let (bus, unit, logged) = (index / 2, index % 2, disk.as_logged(""));
                format!("ide-hd,drive=disk{index},bus=ide.{bus},unit={unit}{REPORTED}{logged}")
            }
            // A User Mode Linux has none of QEMU's devices.
            Bus::Ubd => String::new(),
            Bus::Ahci => {
                let logged = disk.as_logged("");
                format!("ide-hd,drive=disk{index},bus=ahci.{index}{REPORTED}{logged}")
            }
        }
    }
}

impl Disk {
    /// The one by which a trial goes in and its record comes out.
    pub fn exchange(path: &Path) -> Disk {
        Disk {
            path: path.into(),
            direct: false,
            scratch: true,
            limits: None,
            like: None,
            log: None,
        }
    }

    /// QEMU takes powers of two up to 2 MiB (hw/core/qdev-properties-system.c,
    /// `check_block_size`), and images of whole blocks: ours have blocks of 4 KiB.
    fn blocks(&self) -> String {
        let takes = |bytes: u64| bytes.is_power_of_two() && (512..=4096).contains(&bytes);
        let Some(like) = &self.like else { return String::new() };
        let (logical, physical) = (like.logical_block_bytes, like.physical_block_bytes);
        match takes(logical) && takes(physical) && logical <= physical {
            true => format!(",logical_block_size={logical},physical_block_size={physical}"),
            false => String::new(),
        }
    }

    /// Options of a device whose image two disks write to. Requests that QEMU merges would reach
    /// the log in one piece as long as both, and fail in the guest.
    fn as_logged(&self, merging: &str) -> String {
        self.log.as_ref().map_or(String::new(), |_| format!(",share-rw=on{merging}"))
    }

    /// The same disk by way of blklogwrites (qemu(1), `-blockdev`; block/blklogwrites.c), which
    /// logs a request when it is done. The log's first sector counts its entries: it is written
    /// with each, because a guest may end without a flush.
    fn logged(&self, index: usize, log: &DiskLog, option: &mut impl FnMut(&str, String)) {
        let name = |path: &Path| path.display().to_string().replace(',', ",,");
        let (image, file) = (name(&self.path), name(&log.path));
        let direct = if self.direct { "on" } else { "off" };
        let bytes = log.device_bytes;
        let limits = self.limits("x-");
        option("-object", format!("throttle-group,id=limits{index}{limits}"));
        option(
            "-blockdev",
            format!(
                "driver=blklogwrites,node-name=logged,log-super-update-interval=1,\
                 file.driver=file,file.filename={image},file.cache.direct={direct},\
                 log.driver=file,log.filename={file}"
            ),
        );
        option(
            "-blockdev",
            format!(
                "driver=throttle,node-name=disk{index},throttle-group=limits{index},\
                 file.driver=raw,file.size={bytes},file.file=logged"
            ),
        );
    }

    /// qemu(1), `-drive`. A discard is no business of the host's: it would give blocks back.
    fn drive(&self, index: usize) -> String {
        // A comma in a path is written twice.
        let path = self.path.display().to_string().replace(',', ",,");
        let cache = match (self.scratch, self.direct) {
            (true, _) => "unsafe",
            (false, true) => "none",
            (false, false) => "writeback",
        };
        let limits = self.limits("throttling.");
        format!(
            "if=none,id=disk{index},format=raw,file={path},cache={cache},discard=ignore{limits}"
        )
    }

    /// What it is held down to, as options that begin so.
    fn limits(&self, begin: &str) -> String {
        let limits = self.limits.unwrap_or_default();
        let of = |(what, ways): (&str, [Option<u64>; 2])| -> String {
            let said = ["read", "write"].into_iter().zip(ways);
            let said = said.filter_map(|(way, limit)| Some((way, limit?)));
            said.map(|(way, limit)| format!(",{begin}{what}-{way}={limit}")).collect()
        };
        [("iops", limits.operations()), ("bps", limits.bytes())].map(of).concat()
    }
}

impl DiskLog {
    /// The disk of the marks.
    fn marks(&self, index: usize) -> String {
        let (from, bytes) = (self.device_bytes, MARKS_BYTES);
        format!("driver=raw,node-name=disk{index},offset={from},size={bytes},file=logged")
    }
}

/// What the disks of that bus hang on, where that is one for all.
fn controller(bus: Bus) -> Option<&'static str> {
    match bus {
        Bus::Ahci => Some("ich9-ahci,id=ahci"),
        Bus::VirtioScsi => Some("virtio-scsi-pci,id=scsi"),
        Bus::Virtio | Bus::Nvme | Bus::Ide | Bus::Ubd => None,
    }
}

/// Whether the QEMU that is installed has what attaches disks so. Which devices it has is chosen
/// when it is built.
pub fn check_devices(arch: Arch, disks: Attachment) -> Result<(), VmError> {
    // Without a machine some of its programs tell of none.
    let words = [arch.qemu(), "-machine", arch.machine(), "-device", "help"];
    let said = tool::run_words(&words)?;
    let needed: &[&'static str] = match disks {
        Attachment::VirtioBlk => &["virtio-blk-pci"],
        Attachment::VirtioScsi => &["virtio-scsi-pci", "scsi-hd"],
        Attachment::Nvme => &["nvme"],
        Attachment::Ahci => &["ich9-ahci", "ide-hd"],
    };
    match missing(&said, needed) {
        Some(device) => Err(VmError::NoDevice { device, disks }),
        None => Ok(()),
    }
}

/// Which of those devices QEMU does not tell of: `name "nvme", bus PCI, desc "..."`.
fn missing(said: &str, needed: &[&'static str]) -> Option<&'static str> {
    let has = |device: &str| {
        let begin = format!("name \"{device}\"");
        said.lines().any(|line| line.starts_with(&begin))
    };
    needed.iter().copied().find(|device| !has(device))
}

/// A KVM that did not work is tried again after this long: on a busy host a guest may hang that
/// would have run.
const NO_LASTS: Duration = Duration::from_secs(3600);

/// Whether KVM can be used. Where there is none for this user that shows at once. Otherwise asking
/// takes seconds where it hangs, so that the answer is kept: that it works for as long as the host
/// is up.
pub fn has_kvm() -> bool {
    if File::options().read(true).write(true).open("/dev/kvm").is_err() {
        return false;
    }
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    kept(&kernel::cache().join("kvm"), boot.trim(), || kvm::check(Path::new("/")).state)
}

/// The answer kept at `path` for this boot of the host, else that of `ask`. A failure to ask is not
/// kept.
fn kept(path: &Path, boot: &str, ask: impl FnOnce() -> State) -> bool {
    let known = fs::read_to_string(path).unwrap_or_default();
    let age = fs::metadata(path).and_then(|data| data.modified()).ok();
    let age = age.and_then(|at| SystemTime::now().duration_since(at).ok());
    match known.trim().split_once(' ') {
        Some((of, "yes")) if of == boot => return true,
        Some((of, "no")) if of == boot && age.is_some_and(|age| age < NO_LASTS) => return false,
        _ => {}
    }
    let answer = match ask() {
        State::Yes | State::Partly => "yes",
        State::No => "no",
        State::Unknown => return false,
    };
    // Not keeping it costs a few seconds next time.
    let _ = path.parent().map(fs::create_dir_all);
    let _ = fs::write(path, format!("{boot} {answer}\n"));
    answer == "yes"
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use fsverdict_core::model::Each;

    use super::*;

    #[test]
    fn limits_and_caches_are_on_the_command_line() {
        let iops = Each::Apart { read: Some(100), write: Some(50) };
        let bandwidth = Each::Alike(fsverdict_core::model::Bytes(5));
        let limits = Limits { iops: Some(iops), bandwidth: Some(bandwidth) };
        let like = model::Disk::named("ssd");
        let limits = Some(limits);
        let disk =
            Disk { path: "/a,b".into(), direct: true, scratch: false, limits, like, log: None };
        assert_eq!(
            disk.drive(1),
            "if=none,id=disk1,format=raw,file=/a,,b,cache=none,discard=ignore,\
             throttling.iops-read=100,throttling.iops-write=50,throttling.bps-read=5,\
             throttling.bps-write=5"
        );
        assert_eq!(disk.blocks(), ",logical_block_size=512,physical_block_size=4096");
        let disks = [Disk { scratch: true, limits: None, ..disk.clone() }, disk];
        let machine = Machine {
            kernel: Path::new("/k"),
            initrd: Path::new("/i"),
            disks: &disks,
            bus: Bus::Ide,
            memory_bytes: (1 << 30) + 1,
            processors: 2,
            arch: Arch::X86,
            kvm: false,
            processor: None,
            parameters: &["mitigations=off".into()],
            options: &["-cpu".into(), "qemu64".into()],
            has_terminal: false,
            is_untrusted: false,
        };
        let on = |bus: Bus| Machine { bus, ..machine.clone() }.argv().join(" ");
        let has = |line: &str, words: &str| assert!(line.contains(words), "{words}: {line}");
        let ahci = on(Bus::Ahci);
        has(&ahci, "-device ich9-ahci,id=ahci -drive");
        has(&ahci, "-device ide-hd,drive=disk1,bus=ahci.1,werror=report,rerror=report");
        let blocks = "logical_block_size=512,physical_block_size=4096";
        let scsi = on(Bus::VirtioScsi);
        assert!(scsi.contains("-device virtio-scsi-pci,id=scsi -drive"), "{scsi}");
        let disk = format!("-device scsi-hd,drive=disk1,bus=scsi.0,scsi-id=1{REPORTED},{blocks}");
        assert!(scsi.contains(&disk), "{scsi}");
        let nvme = on(Bus::Nvme);
        let disk = format!("-device nvme,drive=disk1,serial=1,use-intel-id=on,{blocks}");
        assert!(nvme.contains(&disk), "{nvme}");
        let without_kfence = format!("i8042.noaux {WITHOUT_KFENCE}");
        let words = format!("{without_kfence} nvme_core.multipath=N mitigations=off");
        assert!(nvme.contains(&words), "{nvme}");
        let typed_at = Machine { has_terminal: true, ..machine.clone() }.argv().join(" ");
        assert!(typed_at.contains(" -serial mon:stdio "), "{typed_at}");
        let arm = Machine { arch: Arch::Arm64, bus: Bus::Virtio, ..machine.clone() }.argv();
        assert_eq!(arm[0], "qemu-system-aarch64");
        let arm = arm.join(" ");
        has(&arm, " -machine virt -accel tcg,thread=multi -cpu max,pauth-impdef=on ");
        let words = format!(" console=ttyAMA0 {PARAMETERS} {WITHOUT_KFENCE} mitigations=off ");
        assert!(arm.contains(&words), "{arm}");
        let line = machine.argv().join(" ");
        assert!(line.contains(" -serial stdio "), "{line}");
        assert!(line.contains(&format!("{without_kfence} mitigations=off -drive ")), "{line}");
        assert!(line.ends_with(" -cpu qemu64"), "{line}");
        assert!(line.contains("-accel tcg,thread=multi -cpu max -smp 2 -m 1025M"), "{line}");
        assert!(line.contains("cache=unsafe,discard=ignore -device ide-hd,drive=disk0"), "{line}");
        has(&line, "-device ide-hd,drive=disk1,bus=ide.0,unit=1,werror=report");
        let plain = Machine { processor: Some("qemu64"), ..machine.clone() }.argv().join(" ");
        has(&plain, "-accel tcg,thread=multi -cpu qemu64 -smp 2");
    }

    #[test]
    fn a_recording_hangs_on_any_bus_with_its_marks_behind_the_disks() {
        let log = Some(DiskLog { path: "/log".into(), device_bytes: 4096 });
        let disks = [Disk::exchange("/x".as_ref()), Disk { log, ..Disk::exchange("/y".as_ref()) }];
        for (bus, marks) in [
            (Bus::Nvme, "nvme,drive=disk2,serial=2,use-intel-id=on,share-rw=on"),
            (Bus::VirtioScsi, "bus=scsi.0,scsi-id=2,werror=report,rerror=report,share-rw=on"),
            (Bus::Ahci, "ide-hd,drive=disk2,bus=ahci.2,werror=report,rerror=report,share-rw=on"),
        ] {
            let machine = Machine {
                kernel: Path::new("/k"),
                initrd: Path::new("/i"),
                disks: &disks,
                bus,
                memory_bytes: 1 << 30,
                processors: 1,
                arch: Arch::X86,
                kvm: false,
                processor: None,
                parameters: &[],
                options: &[],
                has_terminal: false,
                is_untrusted: bus == Bus::Nvme,
            };
            let line = machine.argv().join(" ");
            assert!(line.ends_with(marks), "{line}");
            assert!(line.contains("driver=blklogwrites,node-name=logged"), "{line}");
            let sandbox = format!(" -sandbox {SANDBOX} ");
            assert_eq!(line.contains(&sandbox), machine.is_untrusted, "{line}");
        }
    }

    /// A migration to a program starts that: by the monitor, as who breaks out could by himself.
    #[test]
    #[ignore = "needs QEMU: run ./test"]
    fn a_machine_that_runs_a_strangers_plan_starts_no_program() {
        const QEMU: &str = Arch::X86.qemu();
        if !tool::is_there(QEMU) {
            eprintln!("left out: {QEMU} is not installed");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let migrates = |name: &str, more: &str| {
            let made = folder.path().join(name);
            let line = format!(
                "printf 'migrate -d \"exec:cat >{}\"\\ninfo status\\nquit\\n' | {QEMU} \
                 -S -nodefaults -display none -monitor stdio -machine none {more} >/dev/null",
                made.display()
            );
            (tool::run_words(&["sh", "-c", &line]), made)
        };
        let (ended, made) = migrates("escaped", &format!("-sandbox {SANDBOX}"));
        let error = ended.expect_err("the kernel ends it").to_string();
        // 128 and SIGSYS, as the shell says it.
        assert!(error.contains("exit status 159"), "{error}");
        assert!(!made.exists());
        // One that is told to end while it migrates may abort.
        let (_, made) = migrates("allowed", "");
        let start = Instant::now();
        while !made.exists() {
            assert!(start.elapsed() < Duration::from_secs(600), "nothing was tried");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn that_kvm_works_is_kept_and_that_it_does_not_for_an_hour() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cache/kvm");
        let unasked = || panic!("the answer is kept");
        assert!(!kept(&path, "one", || State::Unknown));
        assert!(!path.exists(), "what could not be asked is not kept");
        assert!(!kept(&path, "one", || State::No));
        assert!(!kept(&path, "one", unasked));
        let set = |age: Duration| {
            let file = File::options().write(true).open(&path).unwrap();
            file.set_modified(SystemTime::now() - age).unwrap();
        };
        set(2 * NO_LASTS);
        assert!(kept(&path, "one", || State::Yes), "the host is not as busy any more");
        set(2 * NO_LASTS);
        assert!(kept(&path, "one", unasked));
        assert!(!kept(&path, "two", || State::No), "another boot of the host");
    }

    #[test]
    fn a_device_that_qemu_does_not_tell_of_is_missing() {
        let said = "Storage devices:\nname \"nvme\", bus PCI, desc \"Non-Volatile\"\n\
                    name \"nvme-ns\", bus nvme-bus\nname \"ide-hd\", bus IDE\n";
        assert_eq!(missing(said, &["nvme"]), None);
        assert_eq!(missing(said, &["ich9-ahci", "ide-hd"]), Some("ich9-ahci"));
        assert_eq!(missing(said, &["scsi-hd"]), Some("scsi-hd"));
    }
}
