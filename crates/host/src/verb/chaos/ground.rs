//! Where a campaign takes place: namespaces, a disk and a registry of its own, and somebody else's
//! disk and file beside them. All of it ends with its process, except zram devices.

use std::fs::{self, File};
use std::io::{self, Seek, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use fsverdict_core::run::HostError;

use super::scene::RECORDING;
use crate::bed::LoopDevice;
use crate::{sys, tool, undo};

const MIB: u64 = 1 << 20;
/// The disk on which the runs' folders and images lie.
const DISK_BYTES: u64 = 384 * MIB;
/// Memory for beds in memory, or for a kernel that is a process.
const MEMORY: &str = "size=320m,mode=1777";
const BED_BYTES: u64 = 20 * MIB;
/// Devices in compressed memory belong to the whole machine: a campaign knows its own by an odd
/// size, which another's has not.
const ZRAM_STEP_BYTES: u64 = 4096;
const ZRAM_SIZES: u64 = 1021;
/// Likewise limits: a campaign recognises its own by an odd number of requests, more than any run
/// of a second makes.
const IOPS: u64 = 200_000;
/// The image behind the disk that must not be touched.
const STRANGER: &str = "own/stranger.img";
const STRANGERS_BYTES: usize = 1 << 20;
/// Left free by a disk that is full, so that not even a name fits.
const CHUNK_BYTES: u64 = 64 << 10;

/// The program `words[0]`, with its arguments, as the first process of namespaces of its own: all
/// that is mounted, started, opened to a network or shared in memory there ends with it.
pub fn start_within(words: &[String]) -> Result<Child, HostError> {
    // util-linux unshare(1).
    let mut command = tool::command("unshare")?;
    command.args(["--mount", "--pid", "--ipc", "--net", "--uts", "--fork", "--kill-child=KILL"]);
    command.args(["--mount-proc", "--"]).args(words);
    Ok(command.spawn()?)
}

/// The folder has room for the disk and for a copy of this program.
fn check_space(folder: &Path) -> Result<(), HostError> {
    let needed_bytes = DISK_BYTES + fs::metadata("/proc/self/exe")?.len();
    let free_bytes = sys::free_bytes(folder)?;
    if free_bytes >= needed_bytes {
        return Ok(());
    }
    let parent = folder.parent().unwrap_or(folder).display();
    Err(format!(
        "a campaign needs {} MiB, and {parent} has {} free: name another folder with --dir",
        needed_bytes.div_ceil(MIB),
        free_bytes / MIB
    )
    .into())
}

/// The place, made.
#[derive(Debug)]
pub struct Ground {
    /// A copy of this program, which no build replaces meanwhile.
    program: PathBuf,
    folder: PathBuf,
    /// The node of the disk that runs may erase, and what keeps it attached.
    device: (String, File),
    /// Somebody else's disk, which stays attached.
    _stranger: File,
    zram_bytes: u64,
    iops: u64,
}

impl Ground {
    /// Makes it in `folder`, in a mount namespace of this process alone.
    pub fn new(folder: &Path, seed: u64) -> Result<Ground, HostError> {
        let folder = folder.canonicalize()?;
        check_space(&folder)?;
        let program = folder.join("fsverdict");
        fs::copy("/proc/self/exe", &program)?;
        tool::run_words(&["ip", "link", "set", "lo", "up"])?;
        fs::create_dir_all(undo::registry())?;
        let registry = undo::registry().display().to_string();
        tool::run_words(&["mount", "-t", "tmpfs", "-o", "mode=755", "none", &registry])?;
        tool::run_words(&["mount", "-t", "tmpfs", "-o", MEMORY, "none", "/dev/shm"])?;
        let disk = folder.join("disk");
        mount_disk(&folder, &disk)?;
        for name in ["one", "two", "tmp", "own"] {
            fs::create_dir(disk.join(name))?;
        }
        fs::write(disk.join("recording.calls"), RECORDING)?;
        let device = attached(&disk.join("own/device.img"), &vec![0; BED_BYTES as usize])?;
        let (_, stranger) = attached(&disk.join(STRANGER), &[b's'; STRANGERS_BYTES])?;
        fs::write(disk.join("one/stranger"), "precious")?;
        let own = 1 + seed % ZRAM_SIZES;
        let (zram_bytes, iops) = (BED_BYTES + ZRAM_STEP_BYTES * own, IOPS + own);
        Ok(Ground { program, folder, device, _stranger: stranger, zram_bytes, iops })
    }

    /// The disk of the runs.
    pub fn disk(&self) -> PathBuf {
        self.folder.join("disk")
    }

    /// The size of beds in compressed memory.
    pub fn zram_bytes(&self) -> u64 {
        self.zram_bytes
    }

    /// How many requests a second limits let through.
    pub fn iops(&self) -> u64 {
        self.iops
    }

    /// The run's folder.
    pub fn run(&self) -> PathBuf {
        self.disk().join("run")
    }

    /// What strace writes.
    pub fn trace(&self) -> PathBuf {
        self.folder.join("trace")
    }

    /// The node of the disk that runs may erase.
    pub fn device(&self) -> String {
        self.device.0.clone()
    }

    /// The campaign is asked to stop.
    pub fn is_stopped(&self) -> bool {
        self.folder.join(super::STOP).exists()
    }

    /// The program with these arguments, after `before`, in the runs' own process group.
    pub fn command(&self, before: &[String], words: &[&str]) -> Result<Command, HostError> {
        let mut argv = before.to_vec();
        argv.push(self.program.display().to_string());
        argv.extend(words.iter().map(ToString::to_string));
        let mut command = match before.first() {
            Some(program) => tool::command(program)?,
            None => tool::users(&argv),
        };
        if !before.is_empty() {
            command.args(&argv[1..]);
        }
        command.current_dir(self.disk()).env("TMPDIR", self.disk().join("tmp"));
        sys::bind_to_us(&mut command);
        Ok(command)
    }

    /// Writes the disk full.
    pub fn fill(&self) -> io::Result<()> {
        let mut file = File::create(self.disk().join("ballast"))?;
        let free_bytes = sys::free_bytes(&self.disk())?.saturating_sub(CHUNK_BYTES);
        if free_bytes > 0 {
            // What can't be reserved is written below.
            let _ = sys::allocate(&file, free_bytes);
        }
        file.seek(io::SeekFrom::End(0))?;
        while file.write_all(&[0; 4096]).is_ok() {}
        Ok(())
    }

    /// Makes it as it was before a run: empty, and the device without a signature where it is used.
    pub fn clear(&self, with_device: bool) -> Result<(), HostError> {
        self.make_room()?;
        if self.run().exists() {
            fs::remove_dir_all(self.run())?;
        }
        if !with_device {
            return Ok(());
        }
        let node = File::options().write(true).open(self.device())?;
        node.write_all_at(&vec![0; BED_BYTES as usize], 0)?;
        Ok(node.sync_all()?)
    }

    /// Takes back what [`Ground::fill`] wrote.
    pub fn make_room(&self) -> io::Result<()> {
        match fs::remove_file(self.disk().join("ballast")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// What of somebody else's has changed.
    pub fn strangers_harm(&self) -> Option<String> {
        let image = fs::read(self.disk().join(STRANGER));
        if !image.is_ok_and(|bytes| bytes == [b's'; STRANGERS_BYTES]) {
            return Some("somebody else's disk was written to".into());
        }
        let file = fs::read_to_string(self.disk().join("one/stranger"));
        (!file.is_ok_and(|text| text == "precious"))
            .then(|| "somebody else's file was written to".into())
    }
}

/// A file system on an image without a name, which goes with the last mount namespace it is in.
fn mount_disk(folder: &Path, disk: &Path) -> Result<(), HostError> {
    let image = folder.join("disk.img");
    File::create(&image)?.set_len(DISK_BYTES)?;
    let (path, at) = (image.display().to_string(), disk.display().to_string());
    tool::run_words(&["mkfs.ext4", "-q", "-F", "-m", "0", &path])?;
    fs::create_dir(disk)?;
    tool::run_words(&["mount", "-o", "loop", &path, &at])?;
    Ok(fs::remove_file(image)?)
}

/// A file behind a loop device: its node, and what keeps it attached, which is open for reading
/// alone: nothing that is open for writing may be erased.
fn attached(image: &Path, bytes: &[u8]) -> Result<(String, File), HostError> {
    fs::write(image, bytes)?;
    let file = File::options().read(true).write(true).open(image)?;
    let device = LoopDevice::attach_file(&file, false, 0)?;
    let node = device.device().path;
    let held = File::open(&node)?;
    Ok((node, held))
}
