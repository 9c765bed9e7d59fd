//! Every request of the devices, as the kernel's block events tell it.
//!
//! A thread takes the pages of each processor's buffer as they fill, and puts them into a file as
//! they are: decoding takes longer, and is done when the work is over. It wakes when a buffer is
//! half full (`buffer_percent`), and ten times a second.

pub mod blktrace;
pub mod logged;
#[cfg(test)]
mod loop_tests;
mod name;

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use fsverdict_core::model::Device;
use fsverdict_core::model::trace::{Account, Item};
use fsverdict_core::trace::file::{Head, Recorder, VERSION, Writer};
use fsverdict_core::trace::{self, Assembler, BlktraceError, FormatError, Formats, LogWritesError};
use thiserror::Error;

use crate::machine::processes::ASIDE;
use crate::machine::token::Token;
use crate::machine::tracing::Instance;
use crate::sys;

/// How long the thread sleeps at most.
const PAUSE_MS: u16 = 100;

/// Without these there is nothing to tell.
const NEEDED: [&str; 3] =
    ["block/block_bio_queue", "block/block_rq_issue", "block/block_rq_complete"];
/// What file systems say of themselves: a kernel without one has no such event.
const WELCOME: [&str; 4] = [
    "ext4/ext4_sync_file_enter",
    "ext4/ext4_sync_file_exit",
    "jbd2/jbd2_start_commit",
    "jbd2/jbd2_end_commit",
];
/// What marks are written as.
const MARK: &str = "ftrace/print";

/// Why requests can't be recorded.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum TraceError {
    #[error("the kernel has no events of requests to give: {0}")]
    Tracefs(io::Error),
    #[error("{0}")]
    Format(#[from] FormatError),
    #[error("there is no device whose requests could be told from others'")]
    NoDevice,
    #[error("{0} is a partition: events are of whole disks; name the disk")]
    Partition(String),
    #[error(
        "{} is in use, and what its blocks are may change meanwhile: unmount it, or leave --disk \
         out",
        .0.display()
    )]
    InUse(PathBuf),
    #[error("{0} is not the name of a run")]
    Run(String),
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("what the work does could not be written down: {0}")]
    Marks(io::Error),
    #[error("the log of writes: {0}")]
    Log(#[from] LogWritesError),
    #[error("{0}")]
    Blktrace(BlktraceError),
    #[error("the recorder's thread: {0}")]
    Thread(io::Error),
    #[error("what was recorded could not be decoded: {0}")]
    Decode(io::Error),
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> TraceError {
    move |source| TraceError::File { path: path.into(), source }
}

/// How the kernel writes what it records.
#[derive(Debug)]
struct Language {
    formats: Formats,
    page_bytes: usize,
}

impl Language {
    fn of(instance: &Instance) -> Result<Language, TraceError> {
        let header = instance.read("events/header_page").map_err(TraceError::Tracefs)?;
        let names = NEEDED.iter().chain(&WELCOME).chain([&MARK]);
        let texts: Vec<String> =
            names.filter_map(|name| instance.read(&format!("events/{name}/format")).ok()).collect();
        Ok(Language {
            formats: Formats::of(texts.iter().map(String::as_str))?,
            page_bytes: trace::page_bytes(&header)?,
        })
    }
}

/// What is recorded while the work goes on.
#[derive(Debug)]
pub struct Tracer {
    // In this order they are let go of: an instance whose files are open can't be removed.
    stop: Stop,
    instance: Instance,
    thread: JoinHandle<io::Result<()>>,
    devices: Vec<Device>,
    language: Language,
    spools: Vec<File>,
    processors: Vec<String>,
}

/// Tells the thread to stop when this is gone.
#[derive(Debug)]
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

impl Tracer {
    /// Begins to record the requests of `devices`, for the run of that name. What is recorded goes
    /// into files of `folder`.
    pub fn begin(run: &str, devices: &[Device], folder: &Path) -> Result<Tracer, TraceError> {
        if devices.is_empty() {
            return Err(TraceError::NoDevice);
        }
        for device in devices {
            let [major, minor] = device.number;
            if Path::new(&format!("/sys/dev/block/{major}:{minor}/partition")).exists() {
                return Err(TraceError::Partition(device.path.clone()));
            }
        }
        let run = Token::parse(run).ok_or_else(|| TraceError::Run(run.into()))?;
        let instance = Instance::make(&run).map_err(TraceError::Tracefs)?;
        let language = Language::of(&instance)?;
        let filter = filter(devices);
        instance.record(&NEEDED, &WELCOME, &filter).map_err(TraceError::Tracefs)?;
        let stop = Stop(Arc::new(AtomicBool::new(false)));
        let (mut spools, mut processors, mut drains) = (Vec::new(), Vec::new(), Vec::new());
        for (processor, buffer) in instance.buffers().map_err(TraceError::Tracefs)? {
            let path = folder.join(format!("trace.{processor}"));
            let (spool, writer) = spool(&path).map_err(at(&path))?;
            drains.push((buffer, BufWriter::new(Spool(writer))));
            spools.push(spool);
            processors.push(processor);
        }
        let (page_bytes, is_over) = (language.page_bytes, Arc::clone(&stop.0));
        let thread = std::thread::Builder::new()
            .name("trace".into())
            .spawn(move || drain(drains, page_bytes, &is_over))
            .map_err(TraceError::Thread)?;
        let devices = devices.to_vec();
        Ok(Tracer { stop, instance, thread, devices, language, spools, processors })
    }

    /// Where the work says what it does, in the kernel's trace.
    pub fn marker(&self) -> Result<File, TraceError> {
        self.instance.marker().map_err(TraceError::Tracefs)
    }

    /// Ends it, when all that was asked for is done.
    pub fn end(self) -> Result<Traced, TraceError> {
        let Tracer { stop, instance, thread, devices, language, spools, processors } = self;
        // Whatever comes of the former, the thread is to let go of the instance's files.
        let stopped = instance.stop().map_err(TraceError::Tracefs);
        drop(stop);
        let drained = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        stopped.and(drained.map_err(TraceError::Thread))?;
        let lost = processors.iter().map(|processor| instance.lost_events(processor));
        let lost_events = lost.sum::<io::Result<u64>>().map_err(TraceError::Tracefs)?;
        Ok(Traced { devices, language, spools, lost_events })
    }
}

/// `dev == 7340033 || dev == 7340034`: include/linux/kdev_t.h, MKDEV.
fn filter(devices: &[Device]) -> String {
    let one = |device: &Device| {
        let [major, minor] = device.number;
        format!("dev == {}", major << 20 | minor)
    };
    devices.iter().map(one).collect::<Vec<_>>().join(" || ")
}

/// A file of pages, and where they are written. It has a name no longer: the next timed part has
/// one of its own, and nothing of it stays when we are killed.
fn spool(path: &Path) -> io::Result<(File, File)> {
    let mut options = File::options();
    let spool = options.read(true).write(true).create(true).truncate(true).open(path)?;
    fs::remove_file(path)?;
    let writer = spool.try_clone()?;
    Ok((spool, writer))
}

/// Where pages are written: none of it is the work's.
struct Spool(File);

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).inspect(|count| ASIDE.written(*count))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The thread: takes what there is in the buffers until it is to stop, and then once more.
fn drain(
    mut drains: Vec<(File, BufWriter<Spool>)>,
    page_bytes: usize,
    stopping: &AtomicBool,
) -> io::Result<()> {
    let mut page = vec![0; page_bytes];
    loop {
        let is_last = stopping.load(Ordering::Acquire);
        for (buffer, spool) in &mut drains {
            take(buffer, &mut page, spool)?;
        }
        if is_last {
            return drains.iter_mut().try_for_each(|(_, spool)| spool.flush());
        }
        let buffers: Vec<&File> = drains.iter().map(|(buffer, _)| buffer).collect();
        sys::wait_for_any(&buffers, PAUSE_MS)?;
    }
}

/// Each read gives a page, whole, however few events it has (`tracing_buffers_read`).
fn take(buffer: &mut File, page: &mut [u8], spool: &mut impl Write) -> io::Result<()> {
    loop {
        match buffer.read(page) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                ASIDE.read(count);
                page[count..].fill(0);
                spool.write_all(page)?;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// What was recorded, as the kernel wrote it.
#[derive(Debug)]
pub struct Traced {
    devices: Vec<Device>,
    language: Language,
    spools: Vec<File>,
    lost_events: u64,
}

impl Traced {
    /// Decodes it, names what each request writes, and adds it to the trial's log. The file system
    /// is unmounted, so that all of it is on its devices. Gives what it adds up to.
    pub fn write(&self, phase: &str, file_system: &str, out: &Path) -> Result<Account, TraceError> {
        let log = File::options().create(true).append(true).open(out).map_err(at(out))?;
        let mut names = name::Names::of(file_system, &self.devices);
        self.each(&mut |item| {
            if let Item::Entry(entry) = &item {
                names.hear(entry);
            }
            Ok(())
        })?;
        names.begin();
        let head = Head {
            trace: VERSION,
            recorder: Recorder::Tracefs,
            phase: phase.into(),
            file_system: file_system.into(),
            devices: self.devices.clone(),
            unnamed: names.why_none(),
        };
        let mut account = Account::default();
        let mut writer = Writer::new(BufWriter::new(log), &head).map_err(at(out))?;
        self.each(&mut |mut item| {
            if let Item::Entry(entry) = &mut item {
                names.name(entry, None);
                account.take(entry);
            }
            writer.item(&item)
        })?;
        writer.finish(self.lost_events).map_err(at(out))?;
        Ok(account)
    }

    /// Hands over the log, item by item.
    fn each(&self, each: &mut dyn FnMut(Item) -> io::Result<()>) -> Result<(), TraceError> {
        let mut readers = Vec::new();
        for mut spool in &self.spools {
            spool.rewind().map_err(TraceError::Decode)?;
            readers.push(BufReader::new(spool));
        }
        let numbers: Vec<[u32; 2]> = self.devices.iter().map(|device| device.number).collect();
        let mut assembler = Assembler::new(&numbers);
        let Language { formats, page_bytes } = &self.language;
        let merged = trace::merge(readers, *page_bytes, formats, &mut |event| {
            assembler.take(event).try_for_each(&mut *each)
        });
        let ended = merged.and_then(|()| assembler.finish().try_for_each(each));
        ended.map_err(TraceError::Decode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_timed_part_has_pages_of_its_own_and_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let spools = ["first", "second"].map(|text| {
            let (spool, mut writer) = spool(&folder.path().join("trace.cpu0")).unwrap();
            writer.write_all(text.as_bytes()).unwrap();
            spool
        });
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let read = |mut spool: &File| {
            spool.rewind().unwrap();
            io::read_to_string(spool).unwrap()
        };
        assert_eq!(spools.each_ref().map(read), ["first", "second"]);
        assert_eq!(read(&spools[0]), "first", "it is read twice");
    }
}
