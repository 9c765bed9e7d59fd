//! QEMU: its command line, and its process from start to end.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use fsverdict_core::model::{self, Limits, Overdue};
use fsverdict_core::run::HostError;
use thiserror::Error;

use super::kernel;
use super::kvm::{self, QEMU};
use super::modules::Bus;
use crate::place::trial_process::{Event, TICK};
use crate::probe::trace::logged::MARKS_BYTES;
use crate::{sys, tool};

/// So much of a console tells what went wrong.
const LINES_KEPT: usize = 6;

/// As much of a console is kept: a guest may run what a stranger has written.
const LOG_BYTES_MAX: u64 = 64 << 20;
const TEXT_BYTES_MAX: usize = 1 << 20;

/// Kernel parameters (Documentation/admin-guide/kernel-parameters.txt). The machine ends when its
/// kernel restarts it, which takes no ACPI (`reboot=t`), and its kernel restarts it at once when it
/// panics. It does not try whether the timer interrupts it within ten ticks (timer_irq_works in
/// arch/x86/kernel/apic/io_apic.c): on a busy host an emulated one does not, and the kernel panics;
/// under KVM it leaves that out by itself. The last words spare what a guest has no use for: the
/// firmware's own list of disks, a keyboard and a mouse, and the self-tests of the crypto code, a
/// quarter of a boot under TCG.
pub const PARAMETERS: &str = "console=ttyS0 loglevel=4 rdinit=/init reboot=t panic=-1 oops=panic \
                              no_timer_check random.trust_cpu=on edd=off i8042.nokbd \
                              i8042.noaux cryptomgr.notests";

/// A disk of the guest.
#[derive(Clone, Debug)]
pub struct Disk {
    /// The image.
    pub path: PathBuf,
    /// Past the host's page cache.
    pub direct: bool,
    /// The host need keep nothing of it: its flushes are not passed on.
    pub scratch: bool,
    /// What it is held down to.
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
    /// The bzImage.
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
    /// KVM, otherwise TCG.
    pub kvm: bool,
    /// Of its kernel, after [`PARAMETERS`].
    pub parameters: &'a [String],
    /// More options, after all others.
    pub options: &'a [String],
    /// Its console is the terminal that we are typed at, where Ctrl-A, then X ends it.
    pub has_terminal: bool,
}

impl Machine<'_> {
    /// The command that starts it: its console on standard output, nothing else to be seen.
    pub fn argv(&self) -> Vec<String> {
        let memory = format!("{}M", self.memory_bytes.div_ceil(1 << 20));
        let accelerator = if self.kvm { "kvm" } else { "tcg,thread=multi" };
        let (kernel, initrd) = (self.kernel.display(), self.initrd.display());
        let mut argv =
            [QEMU, "-nodefaults", "-no-user-config", "-no-reboot"].map(String::from).to_vec();
        let mut option = |name: &str, value: String| argv.extend([name.to_string(), value]);
        // The oldest machine QEMU has: every kernel knows its disks and buses, and it boots as fast
        // as the others.
        option("-machine", "pc".into());
        option("-accel", accelerator.into());
        option("-cpu", "max".into());
        option("-smp", self.processors.to_string());
        option("-m", memory);
        option("-display", "none".into());
        option("-serial", if self.has_terminal { "mon:stdio" } else { "stdio" }.into());
        option("-kernel", kernel.to_string());
        option("-initrd", initrd.to_string());
        let words = std::iter::once(PARAMETERS).chain(self.parameters.iter().map(String::as_str));
        option("-append", words.collect::<Vec<_>>().join(" "));
        if self.bus == Bus::Ahci {
            option("-device", "ich9-ahci,id=ahci".into());
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

    /// What a guest wants zeroed it writes itself: see `bed/image.rs`, `write_out`.
    fn device(&self, index: usize, disk: &Disk) -> String {
        match self.bus {
            Bus::Virtio => {
                let (blocks, logged) = (disk.blocks(), disk.as_logged(",request-merging=off"));
                format!("virtio-blk-pci,drive=disk{index},write-zeroes=off{blocks}{logged}")
            }
            // Its blocks have 512 bytes, whatever is asked of it (hw/ide/ide-dev.c).
            Bus::Ide => {
                let (bus, unit, logged) = (index / 2, index % 2, disk.as_logged(""));
                format!("ide-hd,drive=disk{index},bus=ide.{bus},unit={unit}{logged}")
            }
            Bus::Ahci => {
                let logged = disk.as_logged("");
                format!("ide-hd,drive=disk{index},bus=ahci.{index}{logged}")
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

    /// What a device says whose image two disks write to. Requests that QEMU would merge reach the
    /// log in one piece that is as long as both, and fail in the guest.
    fn as_logged(&self, merging: &str) -> String {
        self.log.as_ref().map_or(String::new(), |_| format!(",share-rw=on{merging}"))
    }

    /// The same disk by way of blklogwrites (qemu(1), `-blockdev`; block/blklogwrites.c), which
    /// logs a request when it is done. The log's first sector counts its entries: it is written
    /// with each, for a guest may end without a flush.
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
        let Limits { iops, bandwidth } = self.limits.unwrap_or_default();
        let both = [("iops", iops), ("bps", bandwidth.map(|it| it.0))];
        let of = |way| {
            let said = both.iter().filter_map(|(what, limit)| Some((what, (*limit)?)));
            said.map(move |(what, limit)| format!(",{begin}{what}-{way}={limit}"))
        };
        ["read", "write"].into_iter().flat_map(of).collect()
    }
}

impl DiskLog {
    /// The disk of the marks.
    fn marks(&self, index: usize) -> String {
        let (from, bytes) = (self.device_bytes, MARKS_BYTES);
        format!("driver=raw,node-name=disk{index},offset={from},size={bytes},file=logged")
    }
}

/// Whether KVM can be used. Where there is none for this user that shows at once. Otherwise asking
/// takes seconds where it hangs, so that the answer is kept for as long as the host is up.
pub fn has_kvm() -> bool {
    if File::options().read(true).write(true).open("/dev/kvm").is_err() {
        return false;
    }
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let (path, boot) = (kernel::cache().join("kvm"), boot.trim());
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    if let Some((of, answer)) = known.trim().split_once(' ')
        && of == boot
    {
        return answer == "yes";
    }
    let has = kvm::check(Path::new("/")).is_able();
    let answer = if has { "yes" } else { "no" };
    // Not keeping it costs a few seconds next time.
    let _ = std::fs::create_dir_all(kernel::cache());
    let _ = std::fs::write(&path, format!("{boot} {answer}\n"));
    has
}

/// Runs the machine on our terminal to its end.
pub fn run_here(argv: &[String]) -> Result<(), HostError> {
    let mut command = tool::command(&argv[0])?;
    command.args(&argv[1..]).stdin(Stdio::inherit());
    sys::die_with_us(&mut command);
    match command.status()? {
        status if status.success() => Ok(()),
        status => Err(format!("QEMU {}", tool::ended(status)).into()),
    }
}

/// What a guest said on its console, and how it ended.
#[derive(Debug, Default)]
pub struct Console {
    /// The end of it.
    text: String,
    /// As much of that is told.
    told: usize,
    /// Bytes of all of it.
    bytes: u64,
}

impl Console {
    /// Something was heard of it.
    pub fn has_words(&self) -> bool {
        self.bytes > 0
    }

    /// Takes in what was said; gives the lines that are whole now.
    fn hear(&mut self, piece: &[u8]) -> Vec<String> {
        self.bytes += piece.len() as u64;
        self.text += &String::from_utf8_lossy(piece);
        let mut lines = Vec::new();
        while let Some(length) = self.text[self.told..].find('\n') {
            lines.push(self.text[self.told..self.told + length].trim().to_string());
            self.told += length + 1;
        }
        if self.text.len() > TEXT_BYTES_MAX {
            let mut end = self.text.len() - TEXT_BYTES_MAX / 2;
            while !self.text.is_char_boundary(end) {
                end += 1;
            }
            self.text.drain(..end);
            self.told = self.told.saturating_sub(end);
        }
        lines
    }

    fn lines(&self) -> impl Iterator<Item = &str> {
        self.text.lines().map(str::trim).filter(|line| !line.is_empty())
    }

    /// The line by which the kernel panicked, if it did.
    pub fn panic(&self) -> Option<String> {
        self.lines().find(|line| is_panic(line)).map(String::from)
    }

    /// What went wrong, as its last lines tell it: those before a panic, or before the end. A
    /// panic's registers stay in the log.
    pub fn end(&self) -> String {
        let mut lines: Vec<&str> = self.lines().collect();
        let panic = lines.iter().position(|line| is_panic(line));
        let what = match panic {
            Some(at) => {
                lines.truncate(at + 1);
                "the kernel panicked"
            }
            None => "its console ends",
        };
        match lines.split_at(lines.len().saturating_sub(LINES_KEPT)).1 {
            [] => "its console is empty".into(),
            last => format!("{what}: {}", last.join(" | ")),
        }
    }
}

fn is_panic(line: &str) -> bool {
    line.contains("Kernel panic - ")
}

/// Hears each whole line of a console, and that time passes; an error ends the machine.
type Watching<'a> = &'a mut dyn FnMut(Event) -> Result<(), HostError>;

/// How long a machine may be silent.
#[derive(Clone, Copy, Debug)]
pub struct Silence {
    /// Once it was heard of.
    pub later: Duration,
    /// Before that; `None` where its kernel may have no words for us.
    pub at_first: Option<Duration>,
}

/// Nothing was heard of a machine whose kernel has words for us.
#[derive(Debug, Error)]
#[error("nothing was heard of it for {} s", after.as_secs())]
pub struct Mute {
    after: Duration,
}

/// Runs the machine to its end. `log` gets its console, `watch` each whole line of it.
/// Fails when QEMU can't be started, when the guest is not heard of for as long as `silence` allows
/// (with [`Mute`] where it never was), when `interrupted` is set, and as `watch` does; the process
/// is gone in every case.
pub fn run(
    argv: &[String],
    log: &Path,
    silence: Silence,
    interrupted: &AtomicBool,
    watch: Watching,
) -> Result<Console, HostError> {
    let mut command = tool::command(&argv[0])?;
    let errors = log.with_extension("stderr");
    command.args(&argv[1..]).stdout(Stdio::piped()).stderr(File::create(&errors)?);
    sys::bind_to_us(&mut command);
    let mut child = command.spawn()?;
    let mut console = Console::default();
    let (file, ear) = (File::create(log)?, Ear { silence, interrupted, watch });
    let heard = ear.listen(&mut child, file, &mut console);
    if heard.is_err() {
        sys::kill_group(child.id());
    }
    let status = child.wait()?;
    heard.map_err(|error| match error.is::<Overdue>() || error.is::<Mute>() {
        true => error,
        false => format!("{error}; {}", console.end()).into(),
    })?;
    if status.success() {
        return Ok(console);
    }
    let said = std::fs::read_to_string(&errors).unwrap_or_default();
    Err(format!("QEMU {}: {}", tool::ended(status), said.trim()).into())
}

impl Silence {
    /// Whether a machine may be silent for so long.
    fn check(self, was_heard: bool, silent: Duration) -> Result<(), HostError> {
        match self.at_first.filter(|_| !was_heard) {
            Some(after) if silent > after => Err(Mute { after }.into()),
            _ if was_heard && silent > self.later => Err(format!(
                "the guest hangs: not heard of for {} s (--step-timeout silence=TIME waits longer)",
                self.later.as_secs()
            )
            .into()),
            _ => Ok(()),
        }
    }
}

/// What listens to a machine.
struct Ear<'a> {
    silence: Silence,
    interrupted: &'a AtomicBool,
    watch: Watching<'a>,
}

impl Ear<'_> {
    fn listen(
        self,
        child: &mut Child,
        mut log: File,
        console: &mut Console,
    ) -> Result<(), HostError> {
        let pieces = pieces(child)?;
        let (mut last, mut ticked) = (Instant::now(), Instant::now());
        loop {
            match pieces.recv_timeout(TICK) {
                Ok(piece) => {
                    last = Instant::now();
                    let room = LOG_BYTES_MAX.saturating_sub(console.bytes);
                    log.write_all(&piece[..piece.len().min(room as usize)])?;
                    let lines = console.hear(&piece);
                    lines.iter().try_for_each(|line| (self.watch)(Event::Step(line)))?;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            // A guest that never stops talking leaves no pause.
            if ticked.elapsed() >= TICK {
                (self.watch)(Event::Tick)?;
                ticked = Instant::now();
            }
            if self.interrupted.load(Ordering::Relaxed) {
                return Err("interrupted".into());
            }
            self.silence.check(console.has_words(), last.elapsed())?;
        }
    }
}

/// Reads the console beside us; the end of the process closes it.
fn pieces(child: &mut Child) -> Result<Receiver<Vec<u8>>, HostError> {
    let mut stdout = child.stdout.take().ok_or("QEMU has no output")?;
    let (sender, pieces) = mpsc::channel();
    std::thread::Builder::new().spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = stdout.read(&mut buffer) {
            if sender.send(buffer[..length].to_vec()).is_err() {
                return;
            }
        }
    })?;
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use fsverdict_core::model::Timeouts;

    use super::*;

    #[test]
    fn limits_and_caches_are_on_the_command_line() {
        let limits = Limits { iops: Some(100), bandwidth: Some(fsverdict_core::model::Bytes(5)) };
        let like = model::Disk::named("ssd");
        let limits = Some(limits);
        let disk =
            Disk { path: "/a,b".into(), direct: true, scratch: false, limits, like, log: None };
        assert_eq!(
            disk.drive(1),
            "if=none,id=disk1,format=raw,file=/a,,b,cache=none,discard=ignore,\
             throttling.iops-read=100,throttling.bps-read=5,throttling.iops-write=100,\
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
            kvm: false,
            parameters: &["mitigations=off".into()],
            options: &["-cpu".into(), "qemu64".into()],
            has_terminal: false,
        };
        let ahci = Machine { bus: Bus::Ahci, ..machine.clone() }.argv().join(" ");
        assert!(ahci.contains("-device ich9-ahci,id=ahci -drive"), "{ahci}");
        assert!(ahci.contains("-device ide-hd,drive=disk1,bus=ahci.1"), "{ahci}");
        let typed_at = Machine { has_terminal: true, ..machine.clone() }.argv().join(" ");
        assert!(typed_at.contains(" -serial mon:stdio "), "{typed_at}");
        let line = machine.argv().join(" ");
        assert!(line.contains(" -serial stdio "), "{line}");
        assert!(line.contains("cryptomgr.notests mitigations=off -drive "), "{line}");
        assert!(line.ends_with(" -cpu qemu64"), "{line}");
        assert!(line.contains("-accel tcg,thread=multi -cpu max -smp 2 -m 1025M"), "{line}");
        assert!(line.contains("cache=unsafe,discard=ignore -device ide-hd,drive=disk0"), "{line}");
        assert!(line.contains("-device ide-hd,drive=disk1,bus=ide.0,unit=1"), "{line}");
    }

    #[test]
    fn a_silent_guest_is_ended_and_what_it_said_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("console.log");
        let mut said = Vec::new();
        let mut watch = |event: Event| {
            if let Event::Step(line) = event {
                said.push(line.to_string());
            }
            Ok(())
        };
        let mut boot = |line: &str, silence_ms: u64, stop: bool| {
            let argv = ["sh", "-c", line].map(String::from);
            let later = Duration::from_millis(silence_ms);
            let silence = Silence { later, at_first: None };
            run(&argv, &log, silence, &AtomicBool::new(stop), &mut watch)
        };
        // As long as a shell may take to say two words, on a machine that is busy.
        let error = boot("echo one; printf two; sleep 600", 5000, false).unwrap_err().to_string();
        assert_eq!(
            error,
            "the guest hangs: not heard of for 5 s (--step-timeout \
            silence=TIME waits longer); its console ends: one | two"
        );
        let error = boot("sleep 600", 600_000, true).unwrap_err().to_string();
        assert!(error.starts_with("interrupted"), "{error}");
        let error = boot("echo no such disk >&2; exit 1", 600_000, false).unwrap_err().to_string();
        assert_eq!(error, "QEMU failed with exit status 1: no such disk");
        boot("echo three", 600_000, false).unwrap();
        assert_eq!(said, ["one", "three"]);
        assert_eq!(std::fs::read_to_string(log).unwrap(), "three\n");
    }

    #[test]
    fn a_guest_of_which_nothing_was_ever_heard_is_told_from_one_that_hangs() {
        let second = Duration::from_secs(1);
        let talks = Silence { later: 9 * second, at_first: Some(5 * second) };
        let mute = talks.check(false, 6 * second).unwrap_err();
        assert!(mute.is::<Mute>());
        assert_eq!(mute.to_string(), "nothing was heard of it for 5 s");
        assert!(talks.check(false, 5 * second).is_ok() && talks.check(true, 6 * second).is_ok());
        assert!(talks.check(true, 10 * second).unwrap_err().to_string().contains("hangs"));
        let may_be_mute = Silence { at_first: None, ..talks };
        assert!(may_be_mute.check(false, 3600 * second).is_ok());
        let folder = tempfile::tempdir().unwrap();
        let (log, never) = (folder.path().join("console.log"), AtomicBool::new(false));
        let argv = ["sh", "-c", "sleep 600"].map(String::from);
        let silence = Silence { at_first: Some(Duration::ZERO), ..talks };
        let error = run(&argv, &log, silence, &never, &mut |_| Ok(())).unwrap_err();
        assert!(error.is::<Mute>(), "{error}");
    }

    #[test]
    fn a_guest_that_never_stops_talking_is_ended_in_time_and_little_of_it_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let timeouts = Timeouts::default().within(None);
        let hour = Duration::from_secs(3600);
        let mut ticks = 0;
        let mut watch = |_: Event| {
            ticks += 1;
            Ok(timeouts.check_time("work", hour, ticks * hour)?)
        };
        let argv = ["sh", "-c", "yes no line ends here | tr -d '\\n'"].map(String::from);
        let (log, never) = (folder.path().join("console.log"), AtomicBool::new(false));
        let silence = Silence { later: hour, at_first: None };
        let error = run(&argv, &log, silence, &never, &mut watch).unwrap_err();
        assert_eq!(error.downcast_ref::<Overdue>().unwrap().step, "work");
        let mut console = Console::default();
        for piece in 0..3000 {
            let lines = console.hear(format!("{piece}{}ä\n", "x".repeat(1000)).as_bytes());
            assert_eq!(lines.len(), 1, "{piece}");
        }
        assert!(console.text.len() <= TEXT_BYTES_MAX && console.bytes > 3_000_000);
    }

    #[test]
    fn the_end_of_a_console_names_the_panic() {
        let text = |lines: &[&str]| Console { text: lines.join("\r\n"), ..Console::default() };
        let lines = ["[ 1.0] one", "", "[ 1.1] Kernel panic - not syncing: VFS", "RAX: 0", "end"];
        assert_eq!(
            text(&lines).end(),
            "the kernel panicked: [ 1.0] one | [ 1.1] Kernel panic - not syncing: VFS"
        );
        let many = ["a", "b", "c", "d", "e", "f", "g"];
        assert_eq!(text(&many).end(), "its console ends: b | c | d | e | f | g");
        assert_eq!(Console::default().end(), "its console is empty");
        assert_eq!(text(&lines).panic().unwrap(), "[ 1.1] Kernel panic - not syncing: VFS");
        assert_eq!(text(&many).panic(), None);
    }
}
