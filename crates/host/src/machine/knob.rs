//! What can be set: a knob by its name, and the file that it stands for.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use fsverdict_core::model::{module_file, sysctl_file};
use serde::{Deserialize, Serialize};

use super::plain;
use crate::sys;

pub(super) const READ_AHEAD: &str = "read_ahead_kb";

/// What the throttle holds down: a file of the blkio controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rate {
    ReadIops,
    WriteIops,
    ReadBps,
    WriteBps,
}

/// Something that can be set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Knob {
    /// A file below `/proc/sys`.
    Sysctl(PathBuf),
    /// A file below `/sys/module`.
    Module(PathBuf),
    /// A file below the queue of the device of that number.
    Queue {
        /// `[major, minor]`.
        device: [u32; 2],
        /// The file.
        file: PathBuf,
    },
    /// A rule of the throttle for the device of that number.
    Throttle {
        /// `[major, minor]`.
        device: [u32; 2],
        /// Which rule.
        rate: Rate,
    },
}

impl Knob {
    /// The sysctl that people call so: `vm.dirty_ratio`, `net/ipv4/conf/eth0.1/forwarding`.
    pub fn sysctl(name: &str) -> Knob {
        // A word that names no sysctl becomes one that the kernel does not have.
        Knob::Sysctl(sysctl_file(name).unwrap_or_else(|| name.into()).into())
    }

    /// The parameter of a module that people call so: `zfs.zfs_arc_max`.
    pub fn module(name: &str) -> Knob {
        // As above.
        Knob::Module(module_file(name).unwrap_or_else(|| name.into()).into())
    }

    /// A file of the queue of `device`. `read_ahead` is what people call it, `read_ahead_kb` what
    /// the kernel does.
    pub fn queue(device: [u32; 2], file: &str) -> Knob {
        let file = if file == "read_ahead" { READ_AHEAD } else { file };
        Knob::Queue { device, file: file.into() }
    }

    /// The folder that it does not leave, and the file below that.
    pub(super) fn place(&self, root: &Path) -> (PathBuf, PathBuf) {
        match self {
            Knob::Sysctl(file) => (root.join("proc/sys"), file.clone()),
            Knob::Module(file) => (root.join("sys/module"), file.clone()),
            Knob::Queue { device, file } => (queue_of(root, *device), file.clone()),
            Knob::Throttle { rate, .. } => (throttle_group(root), rate.file().into()),
        }
    }

    /// The number of the device that it belongs to; `None`: it is the machine's.
    pub fn device(&self) -> Option<[u32; 2]> {
        match self {
            Knob::Queue { device, .. } | Knob::Throttle { device, .. } => Some(*device),
            Knob::Sysctl(_) | Knob::Module(_) => None,
        }
    }

    /// The file of a queue that it is.
    pub(super) fn queue_file(&self) -> Option<&Path> {
        let Knob::Queue { file, .. } = self else { return None };
        Some(file)
    }

    /// It is there only while its scheduler is.
    pub(super) fn is_of_a_scheduler(&self) -> bool {
        self.queue_file().is_some_and(|file| file.starts_with("iosched"))
    }

    /// Which disk it is of now, where the kernel counts them.
    ///
    /// # Errors
    /// If that can't be read: the disk may still be the one it was.
    pub(super) fn disk(&self, root: &Path) -> io::Result<Option<u64>> {
        let Some([major, minor]) = self.device() else { return Ok(None) };
        let own = root.join(format!("sys/dev/block/{major}:{minor}"));
        let disk = if own.join("partition").try_exists()? { own.join("..") } else { own };
        let text = plain::text_if_there(&disk.join("diskseq"))?;
        Ok(text.and_then(|text| text.trim().parse().ok()))
    }

    /// Reading gives something else than was written: the throttle's rules, which are one line for
    /// each device. The line that begins with this word is the value; no line means 0.
    pub fn line(&self) -> Option<String> {
        match self {
            Knob::Throttle { device: [major, minor], .. } => Some(format!("{major}:{minor}")),
            _ => None,
        }
    }

    pub(super) fn open(&self, root: &Path, flags: i32) -> io::Result<File> {
        let (folder, file) = self.place(root);
        sys::open_beneath(File::open(folder)?.as_fd(), &file, flags, 0)
    }

    /// The kernel has it.
    pub fn exists(&self) -> bool {
        let open = self.open(Path::new("/"), libc::O_PATH);
        open.and_then(|file| file.metadata()).is_ok_and(|data| data.is_file())
    }

    /// The whole of what its file says.
    pub fn text(&self, root: &Path) -> io::Result<String> {
        let mut text = String::new();
        self.open(root, libc::O_RDONLY)?.read_to_string(&mut text)?;
        Ok(text)
    }
}

/// Its path, as people know it.
impl fmt::Display for Knob {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (folder, file) = self.place(Path::new("/"));
        write!(f, "{}/{}", folder.display(), file.display())
    }
}

impl Rate {
    pub(super) fn file(self) -> &'static str {
        match self {
            Rate::ReadIops => "blkio.throttle.read_iops_device",
            Rate::WriteIops => "blkio.throttle.write_iops_device",
            Rate::ReadBps => "blkio.throttle.read_bps_device",
            Rate::WriteBps => "blkio.throttle.write_bps_device",
        }
    }
}

/// A partition has no queue of its own: its disk's counts.
pub(super) fn disk_of(root: &Path, [major, minor]: [u32; 2]) -> PathBuf {
    let own = root.join(format!("sys/dev/block/{major}:{minor}"));
    if own.join("partition").exists() { own.join("..") } else { own }
}

pub(super) fn queue_of(root: &Path, device: [u32; 2]) -> PathBuf {
    disk_of(root, device).join("queue")
}

pub fn throttle_group(root: &Path) -> PathBuf {
    root.join("sys/fs/cgroup/blkio")
}
