//! A file as a block device, which ends with its last user: see loop(4).

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fsverdict_core::model::Device;

use super::block::Machine;
use super::error::{BedError, failed};
use super::{disk, own};
use crate::machine::token::Token;
use crate::sys;

/// How many devices may be snatched away by other processes before it is called an error.
const ATTEMPTS: u32 = 64;
/// How long a device is waited for: udev opens each new one for a moment.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// A loop device. It exists as long as this value or a mount of it: the kernel detaches it when its
/// last user is gone, even one that was killed. Children don't inherit it.
#[derive(Debug)]
pub struct LoopDevice {
    /// Never read: it is what keeps the device.
    open: File,
    /// That of its name. Its minor number is a multiple of it where `loop.max_part` is set.
    number: u32,
    device: Device,
    backing: PathBuf,
    direct_io: bool,
}

impl LoopDevice {
    /// Puts the file at `path` behind a free loop device.
    #[cfg(test)]
    pub fn attach(path: &Path, direct_io: bool) -> Result<LoopDevice, BedError> {
        let attaching = || format!("attaching {} to a loop device", path.display());
        let backing = fs::canonicalize(path).map_err(failed(attaching))?;
        let file = writable().open(&backing).map_err(failed(attaching))?;
        LoopDevice::of(&file, backing, direct_io, 0)
    }

    /// Puts an open file, which may have no name, behind a free loop device with blocks of
    /// `block_bytes`; 0: the smallest that it can have.
    pub fn attach_file(
        file: &File,
        direct_io: bool,
        block_bytes: u32,
    ) -> Result<LoopDevice, BedError> {
        let backing = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))
            .map_err(failed(|| "looking for an image's name"))?;
        LoopDevice::of(file, backing, direct_io, block_bytes)
    }

    /// Puts a free loop device upon the block device `lower`: its requests go there, past the page
    /// cache.
    pub(super) fn upon(lower: &Device) -> Result<LoopDevice, BedError> {
        let attaching = || format!("putting a loop device upon {}", lower.path);
        let file = writable().open(&lower.path).map_err(failed(attaching))?;
        // Smaller blocks could not go past the page cache, and of larger ones nobody asked for.
        let block_bytes = disk::says(lower.number)
            .and_then(|it| u32::try_from(it.logical_block_bytes).ok())
            .unwrap_or(0);
        let device = LoopDevice::of(&file, lower.path.as_str().into(), true, block_bytes)?;
        match device.direct_io {
            true => Ok(device),
            false => Err(failed(attaching)(io::Error::other(
                "the kernel gives it no direct I/O: leave out limits, or write --place vm",
            ))),
        }
    }

    fn of(
        file: &File,
        backing: PathBuf,
        direct_io: bool,
        block_bytes: u32,
    ) -> Result<LoopDevice, BedError> {
        let attaching = || format!("attaching {} to a loop device", backing.display());
        let (number, open) = configure(file, direct_io, block_bytes).map_err(failed(attaching))?;
        let node = PathBuf::from(format!("/dev/loop{number}"));
        let machine = Machine::real();
        let block = (machine.number_of)(&node).and_then(|number| machine.block(number));
        let unseen = || failed(attaching)(io::Error::other("it does not appear in /sys"));
        let device = block.ok_or_else(unseen)?.device();
        if Path::new(&device.path) != node {
            let text = format!("{} is {}", node.display(), device.path);
            return Err(failed(attaching)(io::Error::other(text)));
        }
        // The kernel falls back to buffered I/O without a word when the file can't do direct I/O.
        let flag = fs::read_to_string(folder(number).join("loop/dio")).unwrap_or_default();
        Ok(LoopDevice { open, number, device, backing, direct_io: flag.trim() == "1" })
    }

    /// That of its name.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The device.
    pub fn device(&self) -> Device {
        self.device.clone()
    }

    /// Whether it goes past the host's page cache, as the kernel says and not as it was asked for.
    pub fn direct_io(&self) -> bool {
        self.direct_io
    }

    /// Lets go of it, and waits until it is gone.
    pub fn detach(self) -> Result<(), BedError> {
        self.detach_within(PATIENCE)
    }

    pub(super) fn detach_within(self, patience: Duration) -> Result<(), BedError> {
        let LoopDevice { open, number, device, backing, .. } = self;
        drop(open);
        let holds = || backing_file(number).is_some_and(|file| is(&file, &backing));
        wait_for(patience, || !holds()).map_err(|()| BedError::Held { device: device.path })
    }
}

fn writable() -> OpenOptions {
    OpenOptions::new().read(true).write(true).to_owned()
}

fn configure(backing: &File, direct_io: bool, block_bytes: u32) -> io::Result<(u32, File)> {
    let control = writable().open("/dev/loop-control")?;
    let mut gone = None;
    for _ in 0..ATTEMPTS {
        let number = sys::loop_free_number(&control)?;
        let device = match writable().open(format!("/dev/loop{number}")) {
            // Another process that had it made has removed it meanwhile.
            Err(error) if is_gone(&error) => {
                gone = Some(error);
                continue;
            }
            device => device?,
        };
        match sys::loop_configure(&device, backing, direct_io, block_bytes) {
            Ok(()) => return Ok((number, device)),
            // Another process took it between the question and the answer.
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
            Err(error) => return Err(error),
        }
    }
    Err(gone.unwrap_or_else(|| io::Error::from_raw_os_error(libc::EBUSY)))
}

fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(|it| [libc::ENOENT, libc::ENXIO, libc::ENODEV].contains(&it))
}

fn folder(number: u32) -> PathBuf {
    format!("/sys/block/loop{number}").into()
}

/// The file behind the loop device, if there is one.
fn backing_file(number: u32) -> Option<String> {
    let text = fs::read_to_string(folder(number).join("loop/backing_file")).ok()?;
    Some(text.strip_suffix('\n').unwrap_or(&text).to_string())
}

/// The kernel marks a file that was removed meanwhile.
fn is(backing_file: &str, path: &Path) -> bool {
    let name = backing_file.strip_suffix(" (deleted)").unwrap_or(backing_file);
    Path::new(name) == path || Path::new(backing_file) == path
}

/// Waits until `done`, for [`PATIENCE`] at most.
pub(super) fn wait_until(done: impl FnMut() -> bool) -> Result<(), ()> {
    wait_for(PATIENCE, done)
}

/// Waits until `done`, for `patience` at most.
pub(super) fn wait_for(patience: Duration, mut done: impl FnMut() -> bool) -> Result<(), ()> {
    let start = Instant::now();
    while !done() {
        if start.elapsed() > patience {
            return Err(());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// The file is an image in our folder of that token, wherever it is and even if it is gone: nobody
/// else gives such names.
fn is_image_of(backing_file: &str, folder: &Token) -> bool {
    let name = backing_file.strip_suffix(" (deleted)").unwrap_or(backing_file);
    let parent = Path::new(name).parent().and_then(Path::file_name);
    parent.is_some_and(|parent| *parent == *own::name(folder))
}

/// The same, or it is a loop device upon such an image: more than two are not made.
fn lies_on_image_of(backing: &str, folder: &Token) -> bool {
    let below = || backing_file(number_of(backing)?);
    is_image_of(backing, folder) || below().is_some_and(|file| is_image_of(&file, folder))
}

/// The number of the loop device at that path, if it is one.
pub(super) fn number_of(node: &str) -> Option<u32> {
    node.strip_prefix("/dev/loop")?.parse().ok()
}

/// The loop devices upon files that are `ours`, those upon others of them first.
fn backed_by(ours: &dyn Fn(&str) -> bool) -> Vec<u32> {
    let folders = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let numbers = folders.filter_map(|folder| {
        folder.file_name().to_str()?.strip_prefix("loop")?.parse::<u32>().ok()
    });
    let of = |number: u32| Some((number, backing_file(number).filter(|file| ours(file))?));
    let mut found: Vec<(u32, String)> = numbers.filter_map(of).collect();
    found.sort_by_key(|(_, file)| number_of(file).is_none());
    found.into_iter().map(|(number, _)| number).collect()
}

/// Whether what was the loop device of a run with that folder is nobody else's now: it still has
/// its image, or no file, or a zram device, because nobody else puts loop devices on those.
pub(super) fn is_nobody_elses(number: u32, folder: &Token) -> bool {
    let is_ours = |file: &str| lies_on_image_of(file, folder) || file.starts_with("/dev/zram");
    backing_file(number).is_none_or(|file| is_ours(&file))
}

/// Detaches all loop devices upon images in our folder of that token, and no others.
pub(super) fn detach_all(folder: &Token) -> Result<(), BedError> {
    detach(&|file| lies_on_image_of(file, folder))
}

/// Detaches all loop devices upon the block device at `node`.
pub(super) fn detach_upon(node: &str) -> Result<(), BedError> {
    detach(&|file| file == node)
}

fn detach(ours: &dyn Fn(&str) -> bool) -> Result<(), BedError> {
    for number in backed_by(ours) {
        let node = format!("/dev/loop{number}");
        let detaching = || format!("detaching {node}");
        let device = File::open(&node).map_err(failed(detaching))?;
        // It may have been given to another file before it was opened here.
        if backing_file(number).is_some_and(|file| ours(&file))
            && sys::loop_backing(&device).map_err(failed(detaching))?.is_some()
        {
            sys::loop_clear(&device).map_err(failed(detaching))?;
        }
    }
    wait_until(|| backed_by(ours).is_empty()).map_err(|()| {
        let devices: Vec<String> =
            backed_by(ours).iter().map(|number| format!("/dev/loop{number}")).collect();
        BedError::Held { device: devices.join(", ") }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_file_is_known_by_its_name() {
        let path = Path::new("/run/a.img");
        assert!(is("/run/a.img", path));
        assert!(is("/run/a.img (deleted)", path));
        assert!(!is("/run/a.img2", path));
        assert!(is("/run/b (deleted)", Path::new("/run/b (deleted)")));
    }

    #[test]
    fn an_image_of_ours_is_known_by_its_folder() {
        let folder = Token::parse("0123456789abcdef").unwrap();
        assert!(is_image_of("/a/.fsverdict-0123456789abcdef/1.img", &folder));
        assert!(is_image_of("/b/.fsverdict-0123456789abcdef/1.img (deleted)", &folder));
        assert!(!is_image_of("/a/.fsverdict-0123456789abcdee/1.img", &folder));
        assert!(!is_image_of("/a/.fsverdict-0123456789abcdef/deep/1.img", &folder));
        assert!(!is_image_of("/a/1.img", &folder));
        assert_eq!([number_of("/dev/loop12"), number_of("/dev/loop1p2")], [Some(12), None]);
        assert!(!lies_on_image_of("/dev/zram0", &folder));
    }
}
