//! What goes wrong beneath the work: what the kernel says of the devices, the errors that their
//! file system counts, whether it has become read-only, and whether it is full. The work may have
//! ignored all of it.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use fsverdict_core::model::{Device, Room, Trouble};

use crate::machine::folder::entries;
use crate::machine::mount;
use crate::sys;

/// The kernel's log (Documentation/ABI/testing/dev-kmsg).
pub const LOG: &str = "/dev/kmsg";
/// A read of it gives one record, and needs room for all of that (kernel/printk/printk.c,
/// PRINTKRB_RECORD_MAX and its header).
const RECORD_BYTES: usize = 16 << 10;
/// KERN_ERR and KERN_WARNING (include/linux/kern_levels.h).
const ERROR: u32 = 3;
const WARNING: u32 = 4;
/// With less than this share of it free a file system is full.
const FULL: u64 = 1000;

/// The trouble of a trial's devices, from its beginning on.
#[derive(Debug)]
pub struct Troubles {
    root: PathBuf,
    /// From the trial's beginning on; none where we may not read it.
    log: Option<File>,
    devices: Vec<Device>,
    /// As the kernel calls them, and all that has stood on them so far.
    names: Vec<String>,
    /// The machine is the trial's own: whatever its kernel says is about the trial.
    whole: bool,
    /// Errors that their file system had counted before.
    counted: u64,
    trouble: Trouble,
}

impl Troubles {
    /// For these devices, from now on; for the whole machine, if it is the trial's own.
    pub fn of(root: &Path, devices: &[Device], whole: bool) -> Troubles {
        let mut names = Vec::new();
        devices.iter().for_each(|device| add_names(root, device, &mut names));
        Troubles {
            root: root.to_path_buf(),
            log: log_from_now().ok(),
            devices: devices.to_vec(),
            counted: counted(root, &names),
            names,
            whole,
            trouble: Trouble::default(),
        }
    }

    /// Looks at the file system that holds `directory`, which was mounted for writing.
    pub fn look(&mut self, directory: &Path) {
        // Partitions and layers were made meanwhile, and file systems are called after these.
        for device in &self.devices {
            add_names(&self.root, device, &mut self.names);
        }
        let now = counted(&self.root, &self.names).saturating_sub(self.counted);
        self.trouble.errors = self.trouble.errors.max(now);
        let mount = mount::holding(directory).ok().flatten();
        let is_read_only = |option: &String| ["ro", "emergency_ro"].contains(&option.as_str());
        self.trouble.read_only |= mount.is_some_and(|it| it.options.iter().any(is_read_only));
        if let Ok((free_bytes, size_bytes, free_files)) = sys::room(directory) {
            let is_full = free_bytes <= size_bytes / FULL || free_files == Some(0);
            let room = is_full.then_some(Room { free_bytes, size_bytes, free_files });
            self.trouble.full = self.trouble.full.or(room);
        }
    }

    /// What there was so far.
    pub fn so_far(&mut self) -> Trouble {
        let Troubles { log, names, whole, trouble, .. } = self;
        if let Some(log) = log {
            each_record(log, |record| take(trouble, record, names, *whole));
        }
        trouble.clone()
    }
}

/// Takes in what a record says of the devices, or of the whole machine.
fn take(trouble: &mut Trouble, record: &str, names: &[String], whole: bool) {
    let failed = |line: &&str| is_about(line, names) || whole && is_loss(line);
    match (error_of(record).filter(failed), warning_of(record).filter(|_| whole)) {
        (Some(line), _) => trouble.add(line.into()),
        (None, Some(line)) => trouble.warn(line.into()),
        (None, None) => {}
    }
}

/// A request failed, or a file system gave up writing, on a mapping or an array as well as on a
/// disk.
fn is_loss(line: &str) -> bool {
    let line = line.to_lowercase();
    ["i/o error", "io error", "remounting filesystem read-only", "lost async page write"]
        .iter()
        .any(|words| line.contains(words))
}

/// The line of a record by which the kernel says that it is not well: WARN_ON, BUG and oops
/// (kernel/panic.c, `__warn`; arch/x86/kernel/dumpstack.c, `__die_header`). A stalled processor is
/// the host's fault, and does not count.
fn warning_of(record: &str) -> Option<&str> {
    let line = by_kernel(record, WARNING)?;
    let begins = ["WARNING:", "BUG:", "Oops:", "general protection fault", "kernel BUG at"];
    let is_harmless = line.starts_with("BUG: workqueue lockup");
    (begins.iter().any(|words| line.starts_with(words)) && !is_harmless).then_some(line)
}

/// The line of a record of the kernel's own, of this level or a more serious one.
fn by_kernel(record: &str, level: u32) -> Option<&str> {
    let (head, text) = record.split_once(';')?;
    let priority: u32 = head.split(',').next()?.parse().ok()?;
    let is_kernels = priority >> 3 == 0 && priority & 7 <= level;
    text.lines().next().filter(|_| is_kernels)
}

/// Adds what the kernel calls the device, its partitions, and all that stands on these.
fn add_names(root: &Path, device: &Device, names: &mut Vec<String>) {
    let [major, minor] = device.number;
    let folder = fs::canonicalize(root.join(format!("sys/dev/block/{major}:{minor}")));
    let mut open = vec![folder.unwrap_or_else(|_| PathBuf::from(&device.path))];
    while let Some(folder) = open.pop() {
        let partitions = entries(&folder).filter(|it| it.join("partition").exists());
        // Links to the mappings and arrays (block/holder.c).
        let holders = entries(folder.join("holders")).filter_map(|it| fs::canonicalize(it).ok());
        open.extend(partitions.chain(holders));
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !names.contains(&name) {
            names.push(name);
        }
    }
}

/// The kernel's log from now on.
pub fn log_from_now() -> io::Result<File> {
    let mut log = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(LOG)?;
    log.seek(SeekFrom::End(0))?;
    Ok(log)
}

/// Hands over each record that has come since.
pub fn each_record(log: &mut impl Read, mut hear: impl FnMut(&str)) {
    let mut buffer = [0; RECORD_BYTES];
    loop {
        match log.read(&mut buffer) {
            Ok(0) => return,
            Ok(length) => hear(&String::from_utf8_lossy(&buffer[..length])),
            // Some were written over before we came to them.
            Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// The line of a record (`3,1206,98721,-;I/O error, ...`), if the kernel itself says that something
/// failed. What a device can't do at all is no failure, because mkfs asks it to write zeros; nor is
/// a warning that a feature is new (fs/xfs/xfs_message.c of older kernels, at KERN_ALERT).
fn error_of(record: &str) -> Option<&str> {
    let line = by_kernel(record, WARNING)?;
    let fails = by_kernel(record, ERROR).is_some() || line.to_lowercase().contains("error");
    let is_harmless =
        line.starts_with("operation not supported error") || line.contains("EXPERIMENTAL");
    (fails && !is_harmless).then_some(line)
}

/// The line names one of the devices, or a part of one.
fn is_about(line: &str, names: &[String]) -> bool {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    let mut words = line.split(|c| !part_of_word(c));
    words.any(|word| names.iter().any(|name| is_of(word, name)))
}

fn is_of(word: &str, name: &str) -> bool {
    let Some(rest) = word.strip_prefix(name) else { return false };
    // If a disk's name ends in a digit, its partitions have a `p` before theirs.
    let number = match name.ends_with(|c: char| c.is_ascii_digit()) {
        true => rest.strip_prefix('p').unwrap_or_default(),
        false => rest,
    };
    rest.is_empty() || !number.is_empty() && number.chars().all(|c| c.is_ascii_digit())
}

/// Errors that the file systems on these devices have counted: ext4's of its superblock
/// (Documentation/ABI/testing/sysfs-fs-ext4), Btrfs' of each device (`error_stats`, Linux 5.14).
fn counted(root: &Path, names: &[String]) -> u64 {
    let number = |text: &str| text.trim().parse::<u64>().unwrap_or(0);
    let of_ext4 = |name: &String| {
        let path = root.join(format!("sys/fs/ext4/{name}/errors_count"));
        number(&fs::read_to_string(path).unwrap_or_default())
    };
    let has_one = |at: &PathBuf| names.iter().any(|name| at.join("devices").join(name).exists());
    let of_btrfs = entries(root.join("sys/fs/btrfs")).filter(has_one);
    let devices = of_btrfs.flat_map(|at| entries(at.join("devinfo")));
    let stats = devices.map(|it| fs::read_to_string(it.join("error_stats")));
    let of_stats = |text: String| -> u64 {
        text.lines().filter_map(|line| line.split_whitespace().nth(1)).map(number).sum()
    };
    names.iter().map(of_ext4).sum::<u64>() + stats.flatten().map(of_stats).sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_what_the_kernel_says_failed() {
        let io = "3,1206,987,-;I/O error, dev loop0, sector 8 op 0x1:(WRITE)\n SUBSYSTEM=block\n";
        assert_eq!(error_of(io), Some("I/O error, dev loop0, sector 8 op 0x1:(WRITE)"));
        assert_eq!(error_of("6,7,8,-;EXT4-fs (loop0): mounted filesystem"), None);
        assert_eq!(error_of("4,7,8,-;EXT4-fs (loop0): warning: maximal mount count"), None);
        let lost = "BTRFS warning (device loop0): lost page write due to IO error on /dev/loop0";
        assert_eq!(error_of(&format!("4,7,8,-;{lost}")), Some(lost));
        assert_eq!(error_of("11,7,8,-;I/O error, dev loop0"), None, "a program wrote that");
        let zeros = "3,7,8,-;operation not supported error, dev loop0, sector 0 op WRITE_ZEROES";
        assert_eq!(error_of(zeros), None);
    }

    #[test]
    fn lines_of_other_devices_are_not_charged() {
        let names = ["loop1", "sdb", "dm-1"].map(String::from);
        let is_about = |line: &str| super::is_about(line, &names);
        for line in [
            "Buffer I/O error on dev loop1, logical block 5, lost async page write",
            "EXT4-fs (loop1): Remounting filesystem read-only",
            "BTRFS error (device loop1 state EA): bdev /dev/loop1 errs: wr 1",
            "XFS (sdb3): log I/O error -5",
            "I/O error, dev loop1p2, sector 9",
            "XFS (dm-1): metadata I/O error",
        ] {
            assert!(is_about(line), "{line}");
        }
        for line in ["dev loop12, sector 1", "XFS (sdba)", "XFS (dm-11)", "sector loop", "sd"] {
            assert!(!is_about(line), "{line}");
        }
    }

    #[test]
    fn in_a_machine_of_its_own_all_losses_count_and_warnings_are_told() {
        let records = [
            "3,1,2,-;I/O error, dev dm-3, sector 8 op 0x1:(WRITE)\n",
            "4,1,2,-;WARNING: CPU: 1 PID: 77 at fs/inode.c:9 x+0x1/0x2\n",
            "1,1,2,-;BUG: kernel NULL pointer dereference, address: 0\n",
            "3,1,2,-;rcu: INFO: rcu_preempt self-detected stall on CPU\n",
            "0,1,2,-;watchdog: BUG: soft lockup - CPU#0 stuck for 22s!\n",
            "12,1,2,-;WARNING: a program wrote that\n",
            "6,1,2,-;EXT4-fs (dm-3): mounted filesystem\n",
        ];
        let taken = |whole: bool| {
            let mut trouble = Trouble::default();
            records.iter().for_each(|it| take(&mut trouble, it, &["vdb".into()], whole));
            (trouble.kernel_lines, trouble.warnings)
        };
        assert_eq!(taken(false), (0, Vec::new()));
        let (lost, warned) = taken(true);
        assert_eq!((lost, warned.len()), (1, 2));
        assert!(warned[0].starts_with("WARNING:") && warned[1].starts_with("BUG: kernel"));
    }

    #[test]
    fn the_log_is_read_on_where_some_of_it_was_written_over() {
        struct Log(Vec<io::Result<&'static str>>);
        impl Read for Log {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let text = if self.0.is_empty() { Ok("") } else { self.0.remove(0) }?;
                buffer[..text.len()].copy_from_slice(text.as_bytes());
                Ok(text.len())
            }
        }
        let over = io::Error::from_raw_os_error(libc::EPIPE);
        let mut heard = String::new();
        each_record(&mut Log(vec![Ok("one "), Err(over), Ok("two")]), |it| heard += it);
        assert_eq!(heard, "one two");
    }

    #[test]
    fn file_systems_count_their_own_errors() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join("sys/fs").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("ext4/loop1/errors_count", "2\n");
        write("ext4/loop2/errors_count", "9\n");
        for (uuid, device) in [("a", "loop1"), ("b", "loop2")] {
            write(&format!("btrfs/{uuid}/devices/{device}"), "");
            let stats = "write_errs 3\nread_errs 0\nflush_errs 1\n";
            write(&format!("btrfs/{uuid}/devinfo/1/error_stats"), stats);
        }
        assert_eq!(counted(root.path(), &["loop1".into()]), 6);
        assert_eq!(counted(root.path(), &["loop3".into()]), 0);
    }

    #[test]
    fn what_stands_on_the_devices_is_theirs() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join("sys").join(path);
        let blocks = "devices/virtual/block";
        let folder = |path: &str| fs::create_dir_all(at(path)).unwrap();
        let link = |from: &str, to: &str| std::os::unix::fs::symlink(at(from), at(to)).unwrap();
        folder(&format!("{blocks}/loop3/holders"));
        folder("dev/block");
        link(&format!("{blocks}/loop3"), "dev/block/7:3");
        let device = Device { path: "/dev/loop3".into(), number: [7, 3], size_bytes: 0 };
        let mut troubles = Troubles::of(root.path(), &[device], false);
        assert_eq!(troubles.names, ["loop3"]);
        // As sysfs has a partition that an array is upon, with a mapping above.
        folder(&format!("{blocks}/loop3/loop3p1/holders"));
        fs::write(at(&format!("{blocks}/loop3/loop3p1/partition")), "1\n").unwrap();
        for (below, above) in [("loop3/loop3p1", "md127"), ("md127", "dm-0")] {
            folder(&format!("{blocks}/{above}/holders"));
            link(&format!("{blocks}/{above}"), &format!("{blocks}/{below}/holders/{above}"));
        }
        folder("fs/ext4/dm-0");
        fs::write(at("fs/ext4/dm-0/errors_count"), "2\n").unwrap();
        troubles.look(root.path());
        assert_eq!(troubles.names, ["loop3", "loop3p1", "md127", "dm-0"]);
        assert_eq!(troubles.trouble.errors, 2);
        assert!(is_about("Buffer I/O error on dev dm-0, logical block 5", &troubles.names));
        assert!(!is_about("Buffer I/O error on dev dm-1, logical block 5", &troubles.names));
    }
}
