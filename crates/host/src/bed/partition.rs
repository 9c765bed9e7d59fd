//! A contender's partition: made by parted before the file system, taken away after it.
//!
//! parted tells the kernel of its partitions itself (BLKPG, include/uapi/linux/blkpg.h), and
//! devtmpfs makes their nodes: neither needs udev. Loop devices have their partitions scanned, so
//! that these go with the device (drivers/block/loop.c, `__loop_clr_fd`).

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fsverdict_core::model::{Device, Partition};
use thiserror::Error;

use super::loop_device::{PATIENCE, wait_for};
use crate::machine::cell::{self, CellError};
use crate::tool::{self, Answer, Argv, ToolError};

/// On an empty disk parted takes milliseconds.
const LIMIT: Duration = Duration::from_secs(60);

/// A partition that did not come about.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum PartitionError {
    #[error("{0}")]
    Tool(#[from] ToolError),
    #[error("{0}")]
    Cell(#[from] CellError),
    #[error("{command} failed: {said}")]
    Refused { command: String, said: String },
    #[error(
        "{command} made {count} partitions, where the file system needs one and the first: {said}"
    )]
    Count { command: String, count: usize, said: String },
    #[error("{path} can't be told from /sys: {source}")]
    Unseen { path: String, source: std::io::Error },
}

/// The node of the first partition of the disk at `disk`: the kernel puts a p after a digit
/// (block/partitions/core.c, `add_partition`).
pub fn node(disk: &str) -> String {
    let p = if disk.ends_with(|last: char| last.is_ascii_digit()) { "p" } else { "" };
    format!("{disk}{p}1")
}

/// The command that partitions `disk` with parted's own words.
pub fn make_argv(words: &[String], disk: &str) -> Argv {
    let parted = ["parted", "--script", "--", disk].map(String::from);
    parted.into_iter().chain(words.iter().cloned()).collect()
}

/// The command that takes the table away, and the partitions with it.
pub fn remove_argv(disk: &str) -> Argv {
    ["wipefs", "--all", "--quiet", disk].map(String::from).to_vec()
}

/// Partitions each of `devices`. Where it is `confined` parted finds the one disk alone, whatever
/// its words name: they are the plan's.
///
/// # Errors
/// When parted refuses the words, or something else than one partition comes out. An unknown
/// command of parted's is no failure to parted: it shows its usage and makes nothing.
pub fn make(
    words: &[String],
    devices: &[Device],
    confined: bool,
) -> Result<Vec<Partition>, PartitionError> {
    devices.iter().map(|device| make_one(words, device, confined)).collect()
}

fn make_one(
    words: &[String],
    device: &Device,
    confined: bool,
) -> Result<Partition, PartitionError> {
    let argv = make_argv(words, &device.path);
    let ask = || tool::ask(&argv, Path::new("/"), LIMIT);
    let answer = match confined {
        true => cell::among(&[&device.path], ask)??,
        false => ask()?,
    };
    let (command, said) = (tool::shown(&argv), said(&answer));
    if !answer.status.success() {
        return Err(PartitionError::Refused { command, said });
    }
    let folders = of(device);
    let path = node(&device.path);
    match folders.as_slice() {
        [one] if Path::new(&path).exists() => Ok(Partition {
            path,
            // In units of 512 bytes, whatever the device's block:
            // Documentation/ABI/stable/sysfs-block.
            start_bytes: number(&one.join("start"))? * 512,
            physical_bytes: number(&one.join("../queue/physical_block_size"))?,
            optimal_bytes: number(&one.join("../queue/optimal_io_size"))?,
        }),
        others => Err(PartitionError::Count { command, count: others.len(), said }),
    }
}

/// Removes the partitions of `devices`, if there are any. Waits for a process that examines one for
/// a moment, or still unmounts a copy of its mount.
pub fn remove(devices: &[Device]) -> Result<(), ToolError> {
    devices.iter().try_for_each(|device| {
        let mut removed = Ok(());
        let _ = wait_for(PATIENCE, || {
            removed = tool::run(&remove_argv(&device.path)).map(drop);
            !matches!(&removed, Err(error) if error.is_busy())
        });
        removed
    })
}

/// The folders in `/sys` of the device's partitions.
fn of(device: &Device) -> Vec<PathBuf> {
    let [major, minor] = device.number;
    let folder = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).unwrap_or_default();
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| path.join("partition").exists()).collect()
}

fn number(path: &Path) -> Result<u64, PartitionError> {
    let unseen = |source| PartitionError::Unseen { path: path.display().to_string(), source };
    let text = fs::read_to_string(path).map_err(unseen)?;
    text.trim().parse().map_err(|_| unseen(std::io::Error::other(text.trim().to_string())))
}

/// What parted said, without its complaint that there is no udev. Of its usage the first line.
fn said(answer: &Answer) -> String {
    let text = format!("{}\n{}", answer.stderr, answer.stdout);
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.contains("udevadm"));
    lines.take(2).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_is_called_as_the_kernel_calls_it() {
        assert_eq!(node("/dev/sdb"), "/dev/sdb1");
        assert_eq!(node("/dev/loop12"), "/dev/loop12p1");
        assert_eq!(node("/dev/nvme0n1"), "/dev/nvme0n1p1");
    }

    #[test]
    fn places_may_be_negative() {
        let words = ["mkpart", "p", "1MiB", "-1MiB"].map(String::from);
        assert_eq!(
            make_argv(&words, "/dev/sdb").join(" "),
            "parted --script -- /dev/sdb mkpart p 1MiB -1MiB"
        );
    }
}
