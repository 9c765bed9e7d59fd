//! Where settings are tried: images without a name, behind loop devices as root, mounted in a
//! namespace of our own. All of it goes with the process, however that ends.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fsverdict_core::model::{Bytes, Device, DeviceTotals};

use super::target::{Target, USUAL_BYTES};
use crate::bed::LoopDevice;
use crate::file_system;
use crate::machine::cell::{self, CellError};
use crate::machine::folder;
use crate::machine::mount;
use crate::place::trial_process::mount_point;
use crate::probe::DeviceReader;
use crate::sys;
use crate::tool::{self, Answer, ToolError};

/// Images are sparse: a file system in one takes some tens of megabytes for a moment. If a
/// command's images take more than this together, they are emptied.
const ROOM_BYTES_MAX: u64 = 4 << 30;
/// How often an image is looked at while something is made in it.
const LOOK: Duration = Duration::from_millis(5);
/// Where tools run that are confined: there is nothing to be written, and little to be read.
const NOWHERE: &str = "/proc/self";
/// No tool may take longer: on an empty image they take milliseconds.
const LIMIT: Duration = Duration::from_secs(60);

/// Where settings are tried.
#[derive(Debug)]
pub struct Bench {
    /// Loop devices and mounts can be had.
    pub root: bool,
    /// What the settings are for.
    pub target: Target,
    /// Where images go.
    images: PathBuf,
    /// How much those of one command may take.
    room_bytes: u64,
    /// Where tools run that can't be confined: relative names that an option may hold lead nowhere.
    folder: PathBuf,
    /// As root: where images lie that tools find by their names.
    named: PathBuf,
    /// Where file systems are mounted.
    pub at: PathBuf,
}

impl Bench {
    /// To be called on a thread of its own: as root it gets its own mount namespace.
    pub fn new(images: &Path, target: Target) -> Result<Bench, String> {
        let root = sys::is_root();
        // Others need free space, too. If this is no folder, making an image gives a better error.
        let free_bytes = sys::free_bytes(images).unwrap_or(0);
        let room_bytes = ROOM_BYTES_MAX.min(free_bytes / 2);
        if !root {
            // Nobody can make a file there.
            let (folder, images) = ("/proc".into(), images.into());
            let (named, at) = (PathBuf::new(), PathBuf::new());
            return Ok(Bench { root, target, images, room_bytes, folder, named, at });
        }
        let base = mount_point();
        let failed = |error: io::Error| format!("making a place to try settings: {error}");
        fs::create_dir_all(&base).map_err(failed)?;
        sys::private_mounts().map_err(failed)?;
        let base_text = base.display().to_string();
        tool::run_words(&["mount", "-t", "tmpfs", "-o", "size=64m", "fsverdict", &base_text])
            .map_err(|error| error.to_string())?;
        let [folder, named, at] = ["empty", "named", "at"].map(|name| base.join(name));
        [&folder, &named, &at].into_iter().try_for_each(fs::create_dir).map_err(failed)?;
        Ok(Bench { root, target, images: images.into(), room_bytes, folder, named, at })
    }

    /// Runs a tool, with arguments of the file's, on `disks` and what is mounted, and gives its
    /// answer. As root it finds no other device, and can write nowhere else.
    pub fn ask(&self, argv: &[String], disks: &[Disk]) -> Result<Answer, ToolError> {
        tool::check_foreign(argv)?;
        if !self.root {
            return tool::ask(argv, &self.folder, LIMIT);
        }
        let devices: Vec<String> =
            disks.iter().filter(|it| it.device.is_some()).map(Disk::node).collect();
        let failed = |error: CellError| ToolError::Start {
            command: argv.join(" "),
            source: io::Error::other(error),
        };
        let folders = [self.named.as_path(), &self.at];
        cell::among_in(&devices, &folders, || tool::ask(argv, Path::new(NOWHERE), LIMIT))
            .map_err(failed)?
    }

    /// Runs mount(8) in our own mount namespace: none of its arguments names another device or a
    /// file.
    fn ask_mount(&self, argv: &[String]) -> Result<Answer, ToolError> {
        tool::ask(argv, &self.folder, LIMIT)
    }

    /// [`Self::ask`] for a tool that works on `disks`. On a large image it may write more than
    /// there is room for: filled images are emptied meanwhile, and what came of it does not
    /// count.
    pub fn ask_on(&self, argv: &[String], disks: &[Disk]) -> Asked {
        let (done, filled) = (AtomicBool::new(false), AtomicBool::new(false));
        let answer = std::thread::scope(|scope| {
            let watch = || {
                loop {
                    let is_last = done.load(Ordering::Relaxed);
                    if disks.iter().map(Disk::taken_bytes).sum::<u64>() > self.room_bytes {
                        filled.store(true, Ordering::Relaxed);
                        disks.iter().for_each(|disk| drop(disk.file.set_len(0)));
                    }
                    if is_last {
                        return;
                    }
                    std::thread::park_timeout(LOOK);
                }
            };
            let failed = |error| Refused::Unasked(format!("no thread can be started: {error}"));
            let watch = std::thread::Builder::new().spawn_scoped(scope, watch).map_err(failed)?;
            let answer = self.ask(argv, disks);
            done.store(true, Ordering::Relaxed);
            watch.thread().unpark();
            Ok(answer)
        })?;
        match filled.into_inner() {
            true => Err(Refused::Unasked(format!(
                "on a disk of that size it writes more than {}, for which this machine has no room",
                Bytes(self.room_bytes)
            ))),
            false => Ok(answer),
        }
    }

    /// A fresh disk of the usual size: as root a block device, else a file.
    pub fn disk(&self) -> Result<Disk, String> {
        self.disk_of(USUAL_BYTES)
    }

    /// A fresh disk of a size.
    pub fn disk_of(&self, size_bytes: u64) -> Result<Disk, String> {
        Disk::new(&self.images, size_bytes, self.root)
    }

    /// A fresh disk that is a file even for root: the kernel keeps no partitions of it.
    pub fn file(&self) -> Result<Disk, String> {
        let size_bytes = self.target.size_bytes.unwrap_or(USUAL_BYTES);
        match self.root {
            true => Disk::named(&self.named, size_bytes),
            false => Disk::new(&self.images, size_bytes, false),
        }
    }

    /// Mounts `node` with the words of mount(8) in `options`.
    pub fn mount(&self, node: &str, kind: &str, options: &[String]) -> Result<Mounted, Refused> {
        let is_known = mount::takes_device(kind);
        let refused = || format!("{kind} is not a file system that is mounted from a disk");
        is_known.then_some(()).ok_or_else(|| Refused::Unasked(refused()))?;
        file_system::check_options(options).map_err(Refused::Unasked)?;
        if let Some(option) = file_system::panics(kind, &[], options) {
            let why = format!("{option} would have this machine panic at an error");
            return Err(Refused::Unasked(why));
        }
        let log = KernelLog::open();
        let at = self.at.display().to_string();
        // -i: no helper of mount's is started.
        let mut argv: Vec<String> = ["mount", "-i", "-t", kind].map(String::from).to_vec();
        if !options.is_empty() {
            argv.extend(["-o".into(), options.join(",")]);
        }
        argv.extend([node.into(), at.clone()]);
        let answer = self.ask_mount(&argv).map_err(|error| Refused::Unasked(error.to_string()))?;
        let log = log.map(|log| log.since(node, kind)).unwrap_or_default();
        if answer.status.success() {
            return Ok(Mounted { at: self.at.clone(), log });
        }
        let text = match log.as_slice() {
            [] => format!("mount: {:?}", answer.stderr.lines().next().unwrap_or("").trim()),
            log => format!("the kernel: {:?}", log.join("; ")),
        };
        Err(Refused::Said(text.replace(node, "DEVICE").replace(&at, "PLACE")))
    }
}

/// A tool's answer, or why it was stopped.
pub type Asked = Result<Result<Answer, ToolError>, Refused>;

/// Why something did not come about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The tool or the kernel refused it, with these words.
    Said(String),
    /// It could not even be asked.
    Unasked(String),
}

/// A disk that nobody else knows.
#[derive(Debug)]
pub struct Disk {
    device: Option<LoopDevice>,
    file: File,
    /// Where the file is by a name, which nobody else sees either.
    name: Option<PathBuf>,
}

impl Disk {
    fn new(images: &Path, size_bytes: u64, as_device: bool) -> Result<Disk, String> {
        let failed = |error: io::Error| format!("an image in {}: {error}", images.display());
        let file = nameless(images).map_err(failed)?;
        file.set_len(size_bytes).map_err(failed)?;
        let device = match as_device {
            true => {
                Some(LoopDevice::attach_file(&file, false, 0).map_err(|error| error.to_string())?)
            }
            false => None,
        };
        Ok(Disk { device, file, name: None })
    }

    /// A file with a name in `folder`.
    fn named(folder: &Path, size_bytes: u64) -> Result<Disk, String> {
        let failed = |error: io::Error| format!("an image in {}: {error}", folder.display());
        let mut names = (0..).map(|number: u32| folder.join(number.to_string()));
        let name = names.find(|name| !name.exists()).unwrap_or_default();
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).mode(0o600).open(&name);
        let file = file.map_err(failed)?;
        file.set_len(size_bytes).map_err(failed)?;
        Ok(Disk { device: None, file, name: Some(name) })
    }

    /// What it takes of the disk that it is on.
    fn taken_bytes(&self) -> u64 {
        self.file.metadata().map_or(0, |data| data.blocks() * 512)
    }

    /// Its path, for tools.
    pub fn node(&self) -> String {
        match (&self.device, &self.name) {
            (Some(device), _) => device.device().path,
            (None, Some(name)) => name.display().to_string(),
            // The file has no name; its descriptor has.
            (None, None) => {
                let us = folder::us().unwrap_or_default();
                format!("{}/fd/{}", us.display(), self.file.as_raw_fd())
            }
        }
    }

    /// The block device.
    pub fn device(&self) -> Option<Device> {
        self.device.as_ref().map(LoopDevice::device)
    }

    /// The number in the loop device's name.
    pub fn number(&self) -> Option<u32> {
        self.device.as_ref().map(LoopDevice::number)
    }

    /// What `work` has the device do. Nothing is known of a file.
    pub fn during<T>(&self, work: impl FnOnce() -> T) -> (T, Option<DeviceTotals>) {
        self.until(work, |_| true, Duration::ZERO)
    }

    /// What `work` has the device do, until `enough` of it was seen or `patience` is over: a
    /// kernel's worker may do it later.
    pub fn until<T>(
        &self,
        work: impl FnOnce() -> T,
        enough: impl Fn(&DeviceTotals) -> bool,
        patience: Duration,
    ) -> (T, Option<DeviceTotals>) {
        let devices: Vec<Device> = self.device().into_iter().collect();
        let open = || DeviceReader::open(Path::new("/"), &devices).ok();
        let mut reader = if devices.is_empty() { None } else { open() };
        let first = reader.as_mut().and_then(|reader| reader.read().ok());
        let done = work();
        let end = Instant::now() + patience;
        let mut seen = || {
            let last = reader.as_mut()?.read().ok()?;
            Some(last.since(first.as_ref()?).totals)
        };
        let mut totals = seen();
        while totals.as_ref().is_some_and(|totals| !enough(totals)) && Instant::now() < end {
            thread::sleep(Duration::from_millis(20));
            totals = seen();
        }
        (done, totals)
    }
}

fn nameless(folder: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    match options.clone().custom_flags(libc::O_TMPFILE).open(folder) {
        // overlayfs before Linux 6.3: it has a name for a moment.
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
            let path = folder.join(format!("fsverdict-check-{}.img", std::process::id()));
            let file = options.create_new(true).open(&path)?;
            fs::remove_file(&path)?;
            Ok(file)
        }
        done => done,
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Waits until it is gone, so that nothing is left when the program ends.
        let _ = self.device.take().map(LoopDevice::detach);
        let _ = self.name.take().map(fs::remove_file);
    }
}

/// A mounted file system; dropping it unmounts it.
#[derive(Debug)]
pub struct Mounted {
    /// Where.
    pub at: PathBuf,
    /// What the kernel said while it was mounted.
    pub log: Vec<String>,
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let at = self.at.display().to_string();
        if tool::run_words(&["umount", &at]).is_err() {
            let _ = tool::run_words(&["umount", "-l", &at]);
        }
    }
}

/// The kernel's log from now on: mount(2) gives a number, the reason stands there.
struct KernelLog(File);

impl KernelLog {
    fn open() -> Option<KernelLog> {
        use std::io::{Seek, SeekFrom};
        let mut options = OpenOptions::new();
        let mut file = options.read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg").ok()?;
        file.seek(SeekFrom::End(0)).ok()?;
        Some(KernelLog(file))
    }

    /// What the kernel has said since about that device or kind of file system.
    fn since(mut self, node: &str, kind: &str) -> Vec<String> {
        use std::io::Read;
        let name = node.trim_start_matches("/dev/");
        let mut lines = Vec::new();
        let mut record = vec![0; 8192];
        // Each read gives one record; at the end EAGAIN (Documentation/ABI/testing/dev-kmsg).
        while let Ok(count @ 1..) = self.0.read(&mut record) {
            let text = String::from_utf8_lossy(&record[..count]).into_owned();
            let message = text.split_once(';').map_or("", |(_, rest)| rest);
            let message = message.lines().next().unwrap_or("");
            let named = message.to_lowercase().starts_with(kind) || message.contains(name);
            if named && !is_chatter(message) {
                lines.push(message.replace(&format!(" ({name})"), "").replace(name, "DEVICE"));
            }
        }
        lines.dedup();
        lines
    }
}

/// What file systems say of each mount.
fn is_chatter(message: &str) -> bool {
    const CHATTER: [&str; 11] = [
        "ounted filesystem",
        "ounting filesystem",
        "ounting V",
        "Ending clean mount",
        "first mount of",
        "checksum algorithm",
        "checking UUID tree",
        "free space tree",
        "scanned by",
        "open_ctree failed",
        "last unmount of",
    ];
    CHATTER.iter().any(|words| message.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two that would fit one by one.
    #[test]
    fn images_that_are_filled_together_are_emptied() {
        let folder = tempfile::tempdir().unwrap();
        let disk = |bytes: usize| {
            let disk = Disk::new(folder.path(), 16 << 20, false).unwrap();
            std::io::Write::write_all(&mut &disk.file, &vec![1; bytes]).unwrap();
            disk.file.sync_all().unwrap();
            disk
        };
        let bench = Bench {
            root: false,
            target: Target::default(),
            images: folder.path().into(),
            room_bytes: 6 << 20,
            folder: "/proc".into(),
            named: PathBuf::new(),
            at: PathBuf::new(),
        };
        let ask = |disks: &[Disk]| bench.ask_on(&["true".into()], disks);
        assert!(ask(&[disk(4 << 20)]).is_ok());
        let disks = [disk(4 << 20), disk(4 << 20)];
        assert!(matches!(ask(&disks), Err(Refused::Unasked(_))));
        assert!(disks.iter().all(|disk| disk.taken_bytes() == 0));
    }
}
