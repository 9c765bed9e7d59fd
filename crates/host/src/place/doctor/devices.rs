//! Block devices as the trials need them: files and memory as devices, and limits on them.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fsverdict_core::model::need::Answer;
use fsverdict_core::model::udev_rule;

use crate::bed::Seen;
use crate::machine::answers::{closed, nameless_file};
use crate::machine::cgroup::Hierarchy;
use crate::machine::mount::is_module;
use crate::machine::throttle::Means;
use crate::sys;

/// How long the kernel may take to let go of a loop device; udev opens each new one for a moment.
const DETACH_PATIENCE: Duration = Duration::from_secs(30);

/// Files as block devices, found out with one that has no name.
pub(super) fn loop_devices(folder: &Path) -> Answer {
    const CONTROL: &str = "/dev/loop-control";
    let control = match OpenOptions::new().read(true).write(true).open(CONTROL) {
        Ok(control) => control,
        Err(error) => return closed(CONTROL, &error, "modprobe loop"),
    };
    let file = match nameless_file(folder) {
        Ok(file) => file,
        Err(error) => {
            let path = folder.display();
            return Answer::unknown(format!("no file to try them with in {path}: {error}"));
        }
    };
    match attach_for_a_moment(&control, &file) {
        Ok(true) => Answer::yes("with direct I/O to files of this folder"),
        Ok(false) => Answer::partly("without direct I/O to files of this folder")
            .but("for images that go past the page cache choose another --dir"),
        // Another process took the device between the kernel's answer and our use of it.
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
            Answer::unknown("another process was faster to take the free one: ask again")
        }
        Err(error) => Answer::no(format!("a file can't be attached: {error}"))
            .but("run it outside the container, or give the container the devices"),
    }
}

/// What the disk beneath images in `folder` says of itself, and whether it answers so.
pub(super) fn disk(folder: &Path) -> Answer {
    match Seen::beneath(folder) {
        Some(seen) => says(&seen),
        None => Answer::unknown("can't tell which disk would hold images made here"),
    }
}

pub(super) fn says(seen: &Seen) -> Answer {
    let Seen { path, disk, reads } = seen;
    if let Some(reads) = seen.contradicts_itself() {
        let said = format!("{path} says that it rotates, but {reads}; beds here don't repeat it");
        return Answer::partly(said).but(format!(
            "for the disk itself: {} in /etc/udev/rules.d/99-rotational.rules",
            udev_rule(path)
        ));
    }
    let answers = reads
        .map_or("it could not be read to see how it answers".into(), |reads| reads.to_string());
    Answer::yes(format!("{path}: {disk}; {answers}"))
}

/// Whether `file` could be attached with direct I/O. Asking the kernel for a free device makes one
/// where there is none: that one is removed again.
fn attach_for_a_moment(control: &File, file: &File) -> io::Result<bool> {
    const FILE_BYTES: u64 = 1 << 20;
    file.set_len(FILE_BYTES)?;
    let before = loop_names();
    let number = sys::loop_free_number(control)?;
    let result = attached_directly(number, file);
    if !before.contains(&format!("loop{number}")) {
        // If another process has taken it meanwhile, it stays: the kernel removes none that is in
        // use.
        let _ = sys::loop_remove(control, number);
    }
    result
}

pub(super) fn loop_names() -> BTreeSet<String> {
    let entries = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

fn attached_directly(number: u32, file: &File) -> io::Result<bool> {
    let device = OpenOptions::new().read(true).write(true).open(format!("/dev/loop{number}"))?;
    sys::loop_configure(&device, file, true, 0)?;
    let folder = PathBuf::from(format!("/sys/block/loop{number}/loop"));
    // The kernel falls back to buffered I/O without a word when the file can't do direct I/O.
    let direct = fs::read_to_string(folder.join("dio")).unwrap_or_default();
    drop(device);
    let begin = Instant::now();
    while folder.join("backing_file").exists() && begin.elapsed() < DETACH_PATIENCE {
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(direct.trim() == "1")
}

/// Compressed memory as a block device.
pub(super) fn zram(root: &Path) -> Answer {
    let control = root.join("sys/class/zram-control/hot_add");
    // Reading it would make a device; opening it does not.
    match File::open(&control) {
        Ok(_) => Answer::yes("for --bed ram:zram"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => match is_module("zram") {
            true => Answer::no("this kernel has no zram yet").but("modprobe zram"),
            false => Answer::no("this kernel has no zram")
                .but("--bed ram works without; zram needs a kernel with CONFIG_ZRAM"),
        },
        Err(error) => closed("/sys/class/zram-control/hot_add", &error, "modprobe zram"),
    }
}

/// Limits bind the trial alone. Those of version 1 bind everybody who uses the device.
pub(super) fn own_limits(root: &Path) -> Answer {
    let instead = "take bed loop or ram, whose images nobody else uses";
    match Means::of(root) {
        Ok(Means::Root) => {
            Answer::no("cgroup v1 would limit everybody on that disk".to_owned()).but(instead)
        }
        Ok(Means::Own) | Err(_) => limits(root),
    }
}

/// Limits are set where this machine has a throttle, and may be written to.
pub(super) fn limits(root: &Path) -> Answer {
    let instead = "write --place vm: QEMU limits its disks; runs without limits need none";
    let (file, detail) = match Means::of(root) {
        Err(error) => return Answer::no(error.to_string()).but(instead),
        Ok(Means::Root) => (
            Some(root.join("sys/fs/cgroup/blkio/blkio.throttle.read_iops_device")),
            "blkio of cgroup v1, for every process; counts requests and flushes, on disks bios",
        ),
        Ok(Means::Own) => (
            Hierarchy::Unified.at(root).map(|at| at.join("cgroup.subtree_control")),
            "io.max of cgroup v2, for the trial's own; counts requests, on disks bios",
        ),
    };
    match OpenOptions::new().write(true).open(file.unwrap_or_default()) {
        Ok(_) => Answer::yes(detail),
        Err(error) => closed("/sys/fs/cgroup", &error, instead),
    }
}
