//! What the machine does meanwhile: CPU, devices, memory, pressure, network, heat.
//!
//! A [`Probe`] is opened before the timed part, started at its beginning and stopped at its end.
//! In between a thread of its own reads everything every 50 ms, for the timeline and the maxima;
//! the totals need only the first and the last reading, which the caller's thread takes itself.
//!
//! The probe runs on the machine it measures, so a reading is cheap: files stay open, one read
//! each, numbers are taken straight from the bytes, nothing is allocated. Each of the two threads
//! has files of its own, so that the last reading never waits for the sampler.
//!
//! One file for each reader, with the root of `/proc` and `/sys` injected, so that tests fake them.

mod applications;
mod arc;
mod btf;
mod cpu;
mod cpu_time;
mod device;
mod file;
mod heat;
mod instructions;
#[cfg(test)]
mod loop_tests;
mod memory;
mod network;
pub mod offered;
mod own;
mod page_cache;
mod pressure;
mod pulse;
mod refusals;
mod strangers;
#[cfg(test)]
mod tests;
mod timeline;
pub mod trace;
mod trouble;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fsverdict_core::model::{
    ArcTotals, CpuTotals, Device, ForeignTotals, MemoryTotals, NetworkTotals, OwnTotals,
    PageCacheTotals, PressureTotals, Totals,
};
use thiserror::Error;

pub use applications::{Applications, Shares};
pub use device::{DeviceReader, DeviceReading, Tracked};
pub use memory::MemoryReading;
pub use network::Interface;
pub use page_cache::{PageCache, PageCacheError};
pub use pulse::Pulse;
pub use refusals::{Refusals, RefusalsError};
pub use strangers::Others;
pub use timeline::Timeline;
pub use trouble::{LOG, Troubles, each_record, log_from_now};

use crate::sys;
use arc::ArcReader;
use cpu::CpuReader;
use cpu_time::{CpuClocks, KernelThreads};
use heat::{HeatReader, HeatReading};
use memory::MemoryReader;
use network::NetworkReader;
use own::OwnReader;
use pressure::PressureReader;
use timeline::Series;

/// A file that could not be read, or a thread that could not be started.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ProbeError {
    #[error("{} could not be read: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{} lacks {missing}", path.display())]
    Format { path: PathBuf, missing: &'static str },
    #[error("the sampler's thread could not be started: {0}")]
    Thread(io::Error),
    #[error("the counts of the page cache could not be read: {0}")]
    PageCache(io::Error),
}

/// Everything that is read, once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// When it was begun, since the phase's start.
    pub at_ns: u64,
    /// CPU time.
    pub cpu: CpuTotals,
    /// The devices under test; `None` where there are none.
    pub device: Option<DeviceReading>,
    /// Memory, as it is.
    pub memory: MemoryReading,
    /// Pressure; `None` where the kernel has no PSI.
    pub pressure: Option<PressureTotals>,
    /// The page cache; `None` where it is not watched.
    pub page_cache: Option<PageCacheTotals>,
    /// The network; `None` where it is not watched.
    pub network: Option<NetworkTotals>,
    /// Processes and threads started.
    pub processes_started: u64,
    /// Processes that wait for a disk, as it is.
    pub processes_blocked: u64,
    /// Their number, integrated over the series that the reading is part of.
    pub blocked_ns: u64,
}

impl Reading {
    /// Counters as they rose since `first`; time and gauges as they are.
    fn since(&self, first: &Reading) -> Reading {
        Reading {
            at_ns: self.at_ns,
            cpu: cpu::since(&self.cpu, &first.cpu),
            device: self.device.zip(first.device).map(|(now, then)| now.since(&then)),
            memory: self.memory,
            pressure: self.pressure.zip(first.pressure).map(|(a, b)| pressure::since(&a, &b)),
            page_cache: self
                .page_cache
                .zip(first.page_cache)
                .map(|(a, b)| page_cache::since(&a, &b)),
            network: self.network.zip(first.network).map(|(a, b)| network::since(&a, &b)),
            processes_started: self.processes_started.saturating_sub(first.processes_started),
            processes_blocked: self.processes_blocked,
            blocked_ns: self.blocked_ns.saturating_sub(first.blocked_ns),
        }
    }
}

/// One reader of each kind, with files and buffers of its own.
#[derive(Debug)]
struct Readers {
    cpu: CpuReader,
    device: Option<DeviceReader>,
    memory: MemoryReader,
    pressure: Option<PressureReader>,
    page_cache: Option<PageCache>,
    network: Option<NetworkReader>,
}

impl Readers {
    fn open(root: &Path, devices: &[Device]) -> Result<Self, ProbeError> {
        let device = match devices {
            [] => None,
            _ => Some(DeviceReader::open(root, devices)?),
        };
        Ok(Readers {
            cpu: CpuReader::open(root, sys::ticks_per_second())?,
            device,
            memory: MemoryReader::open(root)?,
            pressure: PressureReader::open(root),
            page_cache: None,
            network: None,
        })
    }

    /// Reads everything: the device, which matters most, nearest to the time that is noted.
    fn read(&mut self, origin: Instant) -> Result<Reading, ProbeError> {
        let at_ns = origin.elapsed().as_nanos() as u64;
        let device = self.device.as_mut().map(DeviceReader::read).transpose()?;
        let cpu = self.cpu.read()?;
        Ok(Reading {
            at_ns,
            cpu: cpu.totals,
            device,
            memory: self.memory.read()?,
            pressure: self.pressure.as_mut().map(PressureReader::read).transpose()?,
            page_cache: self.page_cache.as_mut().map(PageCache::read).transpose()?,
            network: self.network.as_mut().map(NetworkReader::read).transpose()?,
            processes_started: cpu.processes_started,
            processes_blocked: cpu.processes_blocked,
            blocked_ns: 0,
        })
    }
}

/// Everything open and allocated, ready to start.
#[derive(Debug)]
pub struct Probe {
    own: Readers,
    samplers: Readers,
    /// Of the disks beneath the devices, for the totals alone.
    beneath: Option<DeviceReader>,
    /// The same.
    clocks: Option<CpuClocks>,
    /// The same.
    cgroup: Option<OwnReader>,
    /// For the totals alone, too.
    heat: Option<HeatReader>,
    /// The same.
    arc: Option<ArcReader>,
    series: Series,
}

impl Probe {
    /// Opens the files of the machine and of `devices` under `root` (`/`, except in tests), for a
    /// phase that should end within `time_limit`. If it takes longer, the timeline becomes coarser.
    pub fn open(root: &Path, devices: &[Device], time_limit: Duration) -> Result<Self, ProbeError> {
        Ok(Probe {
            own: Readers::open(root, devices)?,
            samplers: Readers::open(root, devices)?,
            beneath: None,
            clocks: None,
            cgroup: OwnReader::open(root),
            heat: HeatReader::open(root, devices),
            arc: ArcReader::open(root),
            series: Series::for_time(time_limit),
        })
    }

    /// Reads the page cache too, as `watched` counts it.
    pub fn with_page_cache(mut self, watched: Option<PageCache>) -> Self {
        self.own.page_cache.clone_from(&watched);
        self.samplers.page_cache = watched;
        self
    }

    /// Reads the disks that the devices lie on, too, to tell what others do there, and how hot it
    /// is.
    pub fn with_beneath(mut self, root: &Path, disks: &[Device]) -> Result<Self, ProbeError> {
        if !disks.is_empty() {
            self.beneath = Some(DeviceReader::open(root, disks)?);
            self.heat = HeatReader::open(root, disks);
        }
        Ok(self)
    }

    /// Reads the clocks of our processes and of the kernel's threads, too: these are in
    /// `machines_proc`, the `/proc` of the whole machine.
    pub fn with_cpu_clocks(mut self, root: &Path, machines_proc: &Path) -> Self {
        self.clocks = CpuClocks::open(root, machines_proc);
        self
    }

    /// Reads a network interface too, of the network namespace that we are in.
    pub fn with_network(
        mut self,
        root: &Path,
        interface: Option<&Interface>,
    ) -> Result<Self, ProbeError> {
        for readers in [&mut self.own, &mut self.samplers] {
            readers.network =
                interface.map(|interface| NetworkReader::open(root, interface)).transpose()?;
        }
        Ok(self)
    }

    /// Takes the first reading, with which the phase begins, and lets the sampler go on from it.
    pub fn start(self) -> Result<Running, ProbeError> {
        let Probe { mut own, samplers, mut beneath, clocks, cgroup, heat, arc, series } = self;
        let stopping = Arc::new(AtomicBool::new(false));
        let (wake, woken) = channel();
        // Before the first reading, or else the thread's own start would count as a process.
        let thread = std::thread::Builder::new()
            .name("probe".into())
            .spawn({
                let stopping = Arc::clone(&stopping);
                move || sample(samplers, series, &woken, &stopping)
            })
            .map_err(ProbeError::Thread)?;
        let heat = heat.map(|reader| {
            let first = reader.read();
            (reader, first)
        });
        let arc = arc.and_then(|reader| {
            let first = reader.read()?;
            Some((reader, first))
        });
        let cgroup = cgroup.map(|mut reader| {
            let first = reader.first();
            (reader, first)
        });
        let (clocks, kernel) = clocks.map(CpuClocks::start).unzip();
        let origin = Instant::now();
        let first_beneath = beneath.as_mut().map(DeviceReader::read).transpose()?;
        let first = own.read(origin)?;
        // Fails only if the thread is gone, which joining it will tell.
        let _ = wake.send(Start { origin, first, kernel });
        let beneath = beneath.zip(first_beneath);
        Ok(Running {
            own,
            beneath,
            clocks,
            cgroup,
            heat,
            arc,
            origin,
            first,
            stopping,
            wake,
            thread,
        })
    }
}

/// What the sampler needs to begin.
struct Start {
    origin: Instant,
    first: Reading,
    kernel: Option<KernelThreads>,
}

/// What it hands back.
type Sampled = (Series, Option<KernelThreads>);

/// The sampler's thread: reads until the other end of `woken` is dropped.
fn sample(
    mut readers: Readers,
    mut series: Series,
    woken: &Receiver<Start>,
    stopping: &AtomicBool,
) -> Result<Sampled, ProbeError> {
    let Ok(Start { origin, first, mut kernel }) = woken.recv() else { return Ok((series, None)) };
    series.push(first);
    let mut due = origin + series.period();
    loop {
        let wait = due.saturating_duration_since(Instant::now());
        if matches!(woken.recv_timeout(wait), Err(RecvTimeoutError::Disconnected)) {
            return Ok((series, kernel));
        }
        let reading = readers.read(origin)?;
        // One that was under way when the last was taken may be the later of the two.
        if stopping.load(Ordering::Acquire) {
            return Ok((series, kernel));
        }
        series.push(reading);
        kernel.iter_mut().for_each(KernelThreads::look_now_and_then);
        due = next_due(due, series.period());
    }
}

/// When to read next: readings that came too late to be taken are left out, not made up for.
fn next_due(due: Instant, period: Duration) -> Instant {
    let next = due + period;
    let now = Instant::now();
    if next > now { next } else { now + period }
}

/// A probe at work. Dropped instead of stopped, it ends its thread and tells nothing.
#[derive(Debug)]
pub struct Running {
    own: Readers,
    /// With the first reading.
    beneath: Option<(DeviceReader, DeviceReading)>,
    clocks: Option<cpu_time::Started>,
    /// With the first reading.
    cgroup: Option<(OwnReader, OwnTotals)>,
    /// The same.
    heat: Option<(HeatReader, HeatReading)>,
    /// The same.
    arc: Option<(ArcReader, ArcTotals)>,
    origin: Instant,
    first: Reading,
    stopping: Arc<AtomicBool>,
    wake: Sender<Start>,
    thread: JoinHandle<Result<Sampled, ProbeError>>,
}

impl Running {
    /// Takes the last reading, with which the phase ends, and then ends the sampler.
    pub fn stop(self) -> Result<(Totals, Timeline), ProbeError> {
        let Running { mut own, beneath, clocks, cgroup, heat, arc, origin, first, .. } = self;
        self.stopping.store(true, Ordering::Release);
        let last = own.read(origin);
        let work = clocks.map(|clocks| (clocks.work_ns(), clocks));
        let disks =
            beneath.map(|(mut reader, first)| Ok::<_, ProbeError>(reader.read()?.since(&first)));
        let cgroup = cgroup.map(|(mut reader, first)| reader.since(&first));
        let heat = heat.map(|(reader, first)| reader.read().since(&first));
        let arc = arc.and_then(|(reader, first)| Some(arc::since(&reader.read()?, &first)));
        drop(self.wake);
        let sampled = self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let (series, kernel) = sampled?;
        let last = series.integrated(last?);
        let peak = series.peak().max(last.memory);
        let tracked = own.device.as_ref().map(DeviceReader::tracked);
        let timeline = Timeline::new(series, &first, last, tracked);
        let mut totals = totals(&first, &last, peak);
        totals.foreign = disks.transpose()?.zip(totals.device).map(|(disks, own)| ForeignTotals {
            read_bytes: disks.totals.read_bytes.saturating_sub(own.read_bytes),
            write_bytes: disks.totals.write_bytes.saturating_sub(own.write_bytes),
        });
        (totals.own, totals.heat, totals.arc) = (cgroup, heat, arc);
        let both = work.zip(kernel);
        totals.cpu_time =
            both.map(|((work_ns, clocks), mut kernel)| clocks.time(work_ns, &mut kernel));
        Ok((totals, timeline))
    }
}

fn totals(first: &Reading, last: &Reading, peak: MemoryReading) -> Totals {
    let passed = last.since(first);
    Totals {
        cpu: passed.cpu,
        cpu_time: None,
        device: passed.device.map(|device| device.totals),
        foreign: None,
        work_io: None,
        memory: MemoryTotals {
            dirty_bytes_start: first.memory.dirty_bytes,
            dirty_bytes_end: last.memory.dirty_bytes,
            dirty_bytes_max: peak.dirty_bytes,
            writeback_bytes_max: peak.writeback_bytes,
        },
        pressure: passed.pressure,
        own: None,
        page_cache: passed.page_cache,
        arc: None,
        network: passed.network,
        heat: None,
        blocked_ns: passed.blocked_ns,
        processes_started: passed.processes_started,
    }
}

/// A faked `/proc` and `/sys`.
#[cfg(test)]
mod fake {
    use std::fs;
    use std::hint::black_box;
    use std::os::unix::fs::FileExt;

    use fsverdict_core::model::Device;
    use tempfile::TempDir;

    use crate::sys;

    /// A folder with these files.
    pub fn tree(files: &[(&str, &str)]) -> TempDir {
        let tree = tempfile::tempdir().unwrap();
        for (path, text) in files {
            write(&tree, path, text);
        }
        tree
    }

    /// Writes one file anew, in place: readers have it open, and never see it empty.
    pub fn write(tree: &TempDir, path: &str, text: &str) {
        let path = tree.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let file = fs::File::options().create(true).truncate(false).write(true).open(path);
        let file = file.unwrap();
        file.write_all_at(text.as_bytes(), 0).unwrap();
        file.set_len(text.len() as u64).unwrap();
    }

    /// Runs until this thread has had so much of a processor, however long that takes.
    pub fn spin(time_ns: u64) {
        let begin_ns = sys::thread_cpu_ns();
        while sys::thread_cpu_ns() < begin_ns + time_ns {
            black_box(begin_ns);
        }
    }

    pub fn devices(numbers: &[[u32; 2]]) -> Vec<Device> {
        let device = |&number| Device { path: "/dev/fake".into(), number, size_bytes: 1 << 30 };
        numbers.iter().map(device).collect()
    }
}
