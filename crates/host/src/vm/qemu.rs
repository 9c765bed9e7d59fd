//! QEMU: its command line, and its process from start to end.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use fsverdict_core::model::Limits;
use fsverdict_core::run::HostError;

use super::modules::Bus;
use super::{QEMU, kernel};
use crate::lab::{Event, TICK};
use crate::{doctor, sys, tool};

/// A guest is heard every few seconds ([`super::guest::BEAT`]): one that is silent for this long,
/// with all its processors busy with something else, hangs.
const SILENCE: Duration = Duration::from_secs(90);

/// So much of a console tells what went wrong.
const LINES_KEPT: usize = 12;

/// Kernel parameters (Documentation/admin-guide/kernel-parameters.txt). The machine ends when its
/// kernel restarts it, which takes no ACPI (`reboot=t`), and its kernel restarts it at once when it
/// panics. `edd=off`: without firmware that answers, looking for disks takes long.
pub const PARAMETERS: &str = "console=ttyS0 loglevel=4 rdinit=/init reboot=t panic=-1 oops=panic \
                              edd=off random.trust_cpu=on";

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
}

impl Machine<'_> {
    /// The command that starts it: the console on standard output, nothing else to be seen.
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
        option("-serial", "stdio".into());
        option("-kernel", kernel.to_string());
        option("-initrd", initrd.to_string());
        option("-append", PARAMETERS.into());
        for (index, disk) in self.disks.iter().enumerate() {
            option("-drive", disk.drive(index));
            option("-device", self.device(index));
        }
        argv
    }

    fn device(&self, index: usize) -> String {
        match self.bus {
            Bus::Virtio => format!("virtio-blk-pci,drive=disk{index}"),
            Bus::Ide => {
                format!("ide-hd,drive=disk{index},bus=ide.{},unit={}", index / 2, index % 2)
            }
        }
    }
}

impl Disk {
    /// qemu(1), `-drive`. A discard is no business of the host's: it would give blocks back.
    fn drive(&self, index: usize) -> String {
        // A comma in a path is written twice.
        let path = self.path.display().to_string().replace(',', ",,");
        let cache = match (self.scratch, self.direct) {
            (true, _) => "unsafe",
            (false, true) => "none",
            (false, false) => "writeback",
        };
        let mut drive =
            format!("if=none,id=disk{index},format=raw,file={path},cache={cache},discard=ignore");
        let Limits { iops, bandwidth } = self.limits.unwrap_or_default();
        for way in ["read", "write"] {
            drive += &iops.map_or(String::new(), |it| format!(",throttling.iops-{way}={it}"));
            let bytes = bandwidth.map(|it| it.0);
            drive += &bytes.map_or(String::new(), |it| format!(",throttling.bps-{way}={it}"));
        }
        drive
    }
}

/// Whether KVM can be used. Asking takes seconds where it hangs, so that the answer is kept for as
/// long as the host is up.
pub fn has_kvm() -> bool {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let (path, boot) = (kernel::cache().join("kvm"), boot.trim());
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    if let Some((of, answer)) = known.trim().split_once(' ')
        && of == boot
    {
        return answer == "yes";
    }
    let has = doctor::kvm().state == doctor::State::Yes;
    let answer = if has { "yes" } else { "no" };
    // Not keeping it costs a few seconds next time.
    let _ = std::fs::create_dir_all(kernel::cache());
    let _ = std::fs::write(&path, format!("{boot} {answer}\n"));
    has
}

/// What a guest said on its console, and how it ended.
#[derive(Debug, Default)]
pub struct Console {
    /// All of it.
    text: String,
}

impl Console {
    /// What went wrong, as its last lines tell it; a panic's own line before them.
    pub fn end(&self) -> String {
        let lines = self.text.lines().map(str::trim).filter(|line| !line.is_empty());
        let lines: Vec<&str> = lines.collect();
        let panic = lines.iter().find_map(|line| line.split_once("Kernel panic - "));
        let panic = panic.map_or(String::new(), |(_, why)| format!("the kernel panicked: {why}; "));
        match lines.split_at(lines.len().saturating_sub(LINES_KEPT)).1 {
            [] => "its console is empty".into(),
            last => format!("{panic}its console ends: {}", last.join(" | ")),
        }
    }
}

/// Runs the machine to its end. `log` gets its console, `watch` each whole line of it.
/// Fails when QEMU can't be started, when the guest hangs, and when `interrupted` is set; the
/// process is gone in every case.
pub fn run(
    argv: &[String],
    log: &Path,
    interrupted: &AtomicBool,
    watch: &mut dyn FnMut(Event),
) -> Result<Console, HostError> {
    let mut command = tool::command(&argv[0])?;
    let errors = log.with_extension("stderr");
    command.args(&argv[1..]).stdout(Stdio::piped()).stderr(File::create(&errors)?);
    sys::bind_to_us(&mut command);
    let mut child = command.spawn()?;
    let mut console = Console::default();
    let heard = listen(&mut child, File::create(log)?, &mut console, interrupted, watch);
    if heard.is_err() {
        sys::kill_group(child.id());
    }
    let status = child.wait()?;
    heard.map_err(|error| format!("{error}; {}", console.end()))?;
    if status.success() {
        return Ok(console);
    }
    let said = std::fs::read_to_string(&errors).unwrap_or_default();
    Err(format!("QEMU {}: {}", tool::ended(status), said.trim()).into())
}

fn listen(
    child: &mut Child,
    mut log: File,
    console: &mut Console,
    interrupted: &AtomicBool,
    watch: &mut dyn FnMut(Event),
) -> Result<(), HostError> {
    let pieces = pieces(child)?;
    let mut last = Instant::now();
    let mut shown = 0;
    loop {
        match pieces.recv_timeout(TICK) {
            Ok(piece) => {
                last = Instant::now();
                log.write_all(&piece)?;
                console.text += &String::from_utf8_lossy(&piece);
                while let Some(length) = console.text[shown..].find('\n') {
                    watch(Event::Step(console.text[shown..shown + length].trim()));
                    shown += length + 1;
                }
            }
            Err(RecvTimeoutError::Timeout) => watch(Event::Tick),
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
        if interrupted.load(Ordering::Relaxed) {
            return Err("interrupted".into());
        }
        if last.elapsed() > SILENCE {
            return Err(format!("the guest hangs: not heard of for {} s", SILENCE.as_secs()).into());
        }
    }
}

/// Reads the console beside us; the end of the process closes it.
fn pieces(child: &mut Child) -> Result<Receiver<Vec<u8>>, HostError> {
    let mut stdout = child.stdout.take().ok_or("QEMU has no output")?;
    let (sender, pieces) = mpsc::channel();
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = stdout.read(&mut buffer) {
            if sender.send(buffer[..length].to_vec()).is_err() {
                return;
            }
        }
    });
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_and_caches_are_on_the_command_line() {
        let limits = Limits { iops: Some(100), bandwidth: Some(fsverdict_core::model::Bytes(5)) };
        let disk = Disk { path: "/a,b".into(), direct: true, scratch: false, limits: Some(limits) };
        assert_eq!(
            disk.drive(1),
            "if=none,id=disk1,format=raw,file=/a,,b,cache=none,discard=ignore,\
             throttling.iops-read=100,throttling.bps-read=5,throttling.iops-write=100,\
             throttling.bps-write=5"
        );
        let disks = [Disk { scratch: true, limits: None, ..disk.clone() }, disk];
        let machine = Machine {
            kernel: Path::new("/k"),
            initrd: Path::new("/i"),
            disks: &disks,
            bus: Bus::Ide,
            memory_bytes: (1 << 30) + 1,
            processors: 2,
            kvm: false,
        };
        let line = machine.argv().join(" ");
        assert!(line.contains("-accel tcg,thread=multi -cpu max -smp 2 -m 1025M"), "{line}");
        assert!(line.contains("cache=unsafe,discard=ignore -device ide-hd,drive=disk0"), "{line}");
        assert!(line.contains("-device ide-hd,drive=disk1,bus=ide.0,unit=1"), "{line}");
    }

    #[test]
    fn the_end_of_a_console_names_the_panic() {
        let lines: Vec<String> = (0..30).map(|number| format!("line {number}\r")).collect();
        let text = format!("[ 1.0] Kernel panic - not syncing: VFS\n{}\n", lines.join("\n"));
        let end = Console { text }.end();
        assert!(
            end.starts_with("the kernel panicked: not syncing: VFS; its console ends: line 18 |")
        );
        assert!(end.ends_with("line 29"), "{end}");
        assert_eq!(Console::default().end(), "its console is empty");
    }
}
