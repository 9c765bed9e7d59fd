//! Requests that blktrace recorded, from the files that it left.

use std::fs::{self, File};
use std::io::{self, BufReader};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use fsverdict_core::model::trace::{Entry, Item};
use fsverdict_core::trace::{self, Assembler, BlktraceError, Event, EventKind, Missing};

use super::name::Names;
use super::{TraceError, at};
use crate::sys;

/// The text between a recording's name and a processor's number.
const MIDDLE: &str = ".blktrace.";

/// What is known of a recording when it has been read.
#[derive(Debug)]
pub struct Told {
    /// What is missing from it.
    pub missing: Missing,
    /// Why the blocks' kinds were not looked up.
    pub unnamed: Option<String>,
}

/// Hands over the requests of the recording `name`, which is what blkparse -i takes, one of its
/// files, or a file that blkparse -d wrote. Blocks are named by the file system on `disk`, which is
/// not mounted: a whole disk, its partition, or an image of the whole disk.
pub fn read(
    name: &Path,
    disk: Option<&Path>,
    each: &mut dyn FnMut(Item) -> io::Result<()>,
) -> Result<Told, TraceError> {
    let files = files(name).map_err(at(name))?;
    disk.map_or(Ok(()), unheld)?;
    let mut devices: Vec<u32> = Vec::new();
    events(&files, &mut |event| {
        if let EventKind::Queue(block) | EventKind::Issue(block) = &event.kind
            && !devices.contains(&block.dev)
        {
            devices.push(block.dev);
        }
        Ok(())
    })?;
    let mut names = match (disk, devices.as_slice()) {
        (None, _) => Names::none("--disk names the file system's device"),
        (Some(disk), [_]) => Names::on(&disk.display().to_string()),
        (Some(_), devices) => {
            let many = devices.len();
            Names::none(&format!(
                "with {many} devices, which file a request is of is not found out"
            ))
        }
    };
    let first = disk.and_then(first_sector).unwrap_or(0);
    if names.why_none().is_none() {
        items(&files, &devices, &mut |mut item| {
            within(&mut item, first, &mut |entry| names.hear(entry));
            Ok(())
        })?;
        names.begin();
    }
    let missing = items(&files, &devices, &mut |mut item| {
        within(&mut item, first, &mut |entry| names.name(entry, None));
        each(item)
    })?;
    Ok(Told { missing, unnamed: names.why_none() })
}

/// Fails if the kernel holds the device: a mounted file system changes while it is read, and blocks
/// would get wrong names. For a block device O_EXCL fails with EBUSY then, also for a disk with a
/// mounted partition (open(2); block/bdev.c, `bd_prepare_to_claim`).
fn unheld(disk: &Path) -> Result<(), TraceError> {
    if sys::block_number(disk).map_err(at(disk))?.is_none() {
        return Ok(());
    }
    let opened = fs::OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(disk);
    match opened {
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
            Err(TraceError::InUse(disk.into()))
        }
        opened => opened.map(drop).map_err(at(disk)),
    }
}

/// The files of a recording, in the order of processors.
fn files(name: &Path) -> io::Result<Vec<PathBuf>> {
    let typed = name.file_name().unwrap_or_default().to_string_lossy();
    let base = match typed.rsplit_once(MIDDLE) {
        Some((base, number)) if number.parse::<u32>().is_ok() => base,
        _ => typed.as_ref(),
    };
    let folder = name.parent().filter(|folder| *folder != Path::new(""));
    let mut files = Vec::new();
    for entry in fs::read_dir(folder.unwrap_or(Path::new(".")))? {
        let entry = entry?;
        let file = entry.file_name();
        let rest = file.to_str().and_then(|file| file.strip_prefix(base)?.strip_prefix(MIDDLE));
        let processor = rest.and_then(|number| number.parse::<u32>().ok());
        files.extend(processor.map(|processor| (processor, entry.path())));
    }
    files.sort();
    match files.is_empty() {
        true => Ok(vec![name.into()]),
        false => Ok(files.into_iter().map(|(_, path)| path).collect()),
    }
}

fn events(
    files: &[PathBuf],
    each: &mut dyn FnMut(Event) -> io::Result<()>,
) -> Result<Missing, TraceError> {
    let mut readers = Vec::new();
    for path in files {
        readers.push(BufReader::new(File::open(path).map_err(at(path))?));
    }
    trace::blktrace(readers, each).map_err(|error| match error {
        BlktraceError::Read(source) => TraceError::Decode(source),
        strange => TraceError::Blktrace(strange),
    })
}

/// Hands over the log, item by item.
fn items(
    files: &[PathBuf],
    devices: &[u32],
    each: &mut dyn FnMut(Item) -> io::Result<()>,
) -> Result<Missing, TraceError> {
    // include/linux/kdev_t.h: MINORBITS is 20.
    let numbers: Vec<[u32; 2]> = devices.iter().map(|dev| [dev >> 20, dev & 0xf_ffff]).collect();
    let mut assembler = Assembler::new(&numbers);
    let missing = events(files, &mut |event| assembler.take(event).try_for_each(&mut *each))?;
    assembler.finish().try_for_each(each).map_err(TraceError::Decode)?;
    Ok(missing)
}

/// Where on its disk a partition begins: in recordings sectors are the disk's.
fn first_sector(disk: &Path) -> Option<u64> {
    let [major, minor] = sys::block_number(disk).ok()??;
    let start = fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/start"));
    start.ok()?.trim().parse().ok()
}

/// Does something with a request, its sectors counted from `first`; what lies before is not of the
/// file system.
fn within(item: &mut Item, first: u64, each: &mut dyn FnMut(&mut Entry)) {
    let Item::Entry(entry) = item else { return };
    let Some(sector) = entry.sector.checked_sub(first) else { return };
    let on_disk = std::mem::replace(&mut entry.sector, sector);
    each(entry);
    entry.sector = on_disk;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_is_all_the_files_of_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let of = ["sda.blktrace.10", "sda.blktrace.2", "sda.blktrace.x", "sdab.blktrace.0", "dump"];
        of.iter().for_each(|name| fs::write(folder.path().join(name), "").unwrap());
        let found = |name: &str| {
            let files = files(&folder.path().join(name)).unwrap();
            let names = files.iter().map(|path| path.file_name().unwrap().to_str().unwrap());
            names.map(String::from).collect::<Vec<_>>()
        };
        assert_eq!(found("sda"), ["sda.blktrace.2", "sda.blktrace.10"]);
        assert_eq!(found("sda.blktrace.2"), found("sda"));
        assert_eq!(found("dump"), ["dump"]);
        let read = |name: &str| read(&folder.path().join(name), None, &mut |_| Ok(())).unwrap_err();
        let error = read("nothing").to_string();
        assert!(error.ends_with("nothing: No such file or directory (os error 2)"), "{error}");
    }
}
