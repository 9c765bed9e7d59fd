//! Whether KVM works. `/dev/kvm` alone tells nothing: inside some virtual machines it is there, but
//! each of the guest's instructions is emulated, and a kernel does not boot in any useful time. So
//! a guest of 512 bytes counts: with hardware support, or in QEMU's own emulation, it takes a
//! fraction of a second; if every instruction traps, minutes.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use fsverdict_core::model::need::Answer;

use super::arch::Arch;
use crate::machine::answers::{closed, nameless_file};
use crate::{sys, tool};

/// Start of QEMU and firmware 0.2 s, counting 0.1 s; there is room for a slow machine.
const LIMIT: Duration = Duration::from_secs(10);
/// The program, for guests of this machine's kind.
pub const QEMU: &str = Arch::OWN.qemu();
const POLL: Duration = Duration::from_millis(10);
const SECTOR_BYTES: usize = 512;
/// What the guest writes to the port of isa-debug-exit.
const REPORTED: u8 = 0x10;
/// hw/misc/debugexit.c of QEMU: `exit((val << 1) | 1)`.
const EXPECTED_STATUS: i32 = (REPORTED as i32) << 1 | 1;

/// The guest: real mode, as the firmware starts it at 0x7c00, then 32-bit protected mode.
const CODE: [u8; 0x29] = [
    0xfa, // cli
    0x31, 0xc0, // xor ax, ax
    0x8e, 0xd8, // mov ds, ax
    0x0f, 0x01, 0x16, 0x40, 0x7c, // lgdt [0x7c40]
    0x0f, 0x20, 0xc0, // mov eax, cr0
    0x0c, 0x01, // or al, 1: protected mode
    0x0f, 0x22, 0xc0, // mov cr0, eax
    0xea, 0x17, 0x7c, 0x08, 0x00, // jmp 8:0x7c17, the next one, by the code segment below
    0xb9, 0x00, 0xe1, 0xf5, 0x05, // mov ecx, 100,000,000
    0x49, // dec ecx
    0x75, 0xfd, // jnz to the dec
    0x66, 0xba, 0x01, 0x05, // mov dx, 0x501
    0xb0, REPORTED, // mov al, REPORTED
    0xee,     // out dx, al
    0xf4,     // hlt
    0xeb, 0xfd, // jmp to the hlt
];
/// The segments: none, and code over all 4 GiB. Intel SDM volume 3, 3.4.5.
const SEGMENTS_AT: usize = 0x30;
const SEGMENTS: [u64; 2] = [0, 0x00cf_9a00_0000_ffff];
/// What lgdt loads: the table's last byte and its address.
const TABLE_AT: usize = 0x40;
const TABLE: [u8; 6] = [15, 0, 0x30, 0x7c, 0, 0];

fn boot_sector() -> [u8; SECTOR_BYTES] {
    let mut sector = [0; SECTOR_BYTES];
    let mut put = |at: usize, bytes: &[u8]| sector[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &CODE);
    put(SEGMENTS_AT, &SEGMENTS[0].to_le_bytes());
    put(SEGMENTS_AT + 8, &SEGMENTS[1].to_le_bytes());
    put(TABLE_AT, &TABLE);
    // By this the firmware knows a sector that can be booted.
    put(SECTOR_BYTES - 2, &[0x55, 0xaa]);
    sector
}

/// Whether KVM works, found out by booting: seconds, where it does not.
pub fn check(root: &Path) -> Answer {
    if !cfg!(target_arch = "x86_64") {
        return Answer::unknown("the guest that would tell is for x86-64");
    }
    if let Err(error) = OpenOptions::new().read(true).write(true).open(root.join("dev/kvm")) {
        return match error.kind() {
            io::ErrorKind::PermissionDenied => {
                Answer::no("/dev/kvm is not for this user").but("add the user to the group kvm")
            }
            _ => closed(
                "/dev/kvm",
                &error,
                "turn virtualisation on in the firmware, or nested virtualisation on the host",
            ),
        };
    }
    if tool::find(QEMU).is_none() {
        return Answer::unknown("needs QEMU: /dev/kvm exists, but only a guest tells if it works")
            .but("install QEMU and ask again");
    }
    match boot("kvm", &boot_sector(), LIMIT) {
        Ok(end) => judged(&end),
        Err(error) => Answer::unknown(format!("QEMU could not be tried: {error}")),
    }
}

/// How a guest ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// It did what it was to do.
    Done(Duration),
    /// It did not, within this time.
    Hung(Duration),
    /// QEMU ended otherwise, saying this.
    Failed(ExitStatus, String),
}

fn judged(end: &End) -> Answer {
    let advice = "QEMU works without it (-accel tcg), only slower";
    match end {
        End::Done(took) => {
            Answer::yes(format!("a guest counted to 100,000,000 in {:.1} s", took.as_secs_f64()))
        }
        End::Hung(limit) => Answer::no(format!(
            "/dev/kvm exists, but a guest that needs 0.3 s was not done after {:.0} s",
            limit.as_secs_f64()
        ))
        .but(advice),
        End::Failed(status, said) => {
            let said = said.lines().next().unwrap_or("it said nothing");
            Answer::no(format!("QEMU {}: {said}", tool::ended(*status))).but(advice)
        }
    }
}

/// Boots `sector`. QEMU is gone when this returns, and when we are killed.
fn boot(accelerator: &str, sector: &[u8], limit: Duration) -> io::Result<End> {
    let begin = Instant::now();
    let mut child = start(accelerator, disk(sector)?)?;
    let ended = wait(&mut child, begin + limit);
    if !matches!(ended, Ok(Some(_))) {
        sys::kill_group(child.id());
        child.wait()?;
    }
    let Some(status) = ended? else { return Ok(End::Hung(limit)) };
    if status.code() == Some(EXPECTED_STATUS) && status.signal().is_none() {
        return Ok(End::Done(begin.elapsed()));
    }
    let mut said = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        stderr.read_to_string(&mut said)?;
    }
    Ok(End::Failed(status, said))
}

/// The guest's disk: a file in memory without a name.
fn disk(sector: &[u8]) -> io::Result<File> {
    let in_memory = nameless_file(Path::new("/dev/shm"));
    let mut file = in_memory.or_else(|_| nameless_file(&std::env::temp_dir()))?;
    file.write_all(sector)?;
    Ok(file)
}

fn start(accelerator: &str, disk: File) -> io::Result<Child> {
    const ARGUMENTS: [&str; 12] = [
        "-machine",
        "pc",
        "-m",
        "16",
        "-display",
        "none",
        "-nodefaults",
        "-no-reboot",
        "-device",
        "isa-debug-exit,iobase=0x501,iosize=1",
        "-drive",
        "file=/proc/self/fd/0,format=raw",
    ];
    let mut command = tool::command(QEMU).map_err(io::Error::other)?;
    command.args(["-accel", accelerator]).args(ARGUMENTS);
    command.stdin(disk).stdout(Stdio::null()).stderr(Stdio::piped());
    sys::bind_to_us(&mut command);
    command.spawn()
}

/// The child's exit status; none if it goes on beyond `deadline`.
fn wait(child: &mut Child, deadline: Instant) -> io::Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
        std::thread::sleep(POLL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guest_is_one_bootable_sector() {
        let sector = boot_sector();
        assert_eq!(sector.len(), 512);
        assert_eq!(sector[510..], [0x55, 0xaa]);
        // The far jump leads to what follows it, lgdt to the table, the table to the segments.
        assert_eq!(sector[0x12..0x17], [0xea, 0x17, 0x7c, 0x08, 0x00]);
        assert_eq!(sector[0x08..0x0a], [0x40, 0x7c]);
        assert_eq!(sector[0x40..0x46], [15, 0, 0x30, 0x7c, 0, 0]);
        assert_eq!(u32::from_le_bytes(sector[0x18..0x1c].try_into().unwrap()), 100_000_000);
        assert_eq!(sector[0x38..0x40], 0x00cf_9a00_0000_ffff_u64.to_le_bytes());
    }

    /// That the guest is right: QEMU's own emulation needs neither rights nor hardware.
    #[test]
    fn vm_the_guest_ends_as_expected_and_one_that_hangs_is_killed() {
        if tool::find(QEMU).is_none() {
            println!("skipped: {QEMU} is not installed");
            return;
        }
        let end = boot("tcg", &boot_sector(), Duration::from_secs(300)).unwrap();
        assert!(matches!(end, End::Done(_)), "{end:?}");

        let mut stuck = boot_sector();
        stuck[..2].copy_from_slice(&[0xeb, 0xfe]); // jmp to itself
        let limit = Duration::from_millis(500);
        assert_eq!(boot("tcg", &stuck, limit).unwrap(), End::Hung(limit));

        let end = boot("nosuch", &boot_sector(), Duration::from_secs(300)).unwrap();
        assert!(matches!(&end, End::Failed(_, said) if said.contains("nosuch")), "{end:?}");
    }
}
