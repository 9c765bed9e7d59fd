//! The timed part of a trial: the work and the sync that closes it, between the first and the last
//! reading of the probes.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write, stderr};
use std::path::Path;
use std::time::Duration;

use fsverdict_core::model::{ExtraProbe, Phase, PhaseRecord, Trial};
use fsverdict_core::render::one_line;
use fsverdict_core::run::HostError;

use super::mounting::Closing;
use super::site::cached;
use crate::bed;
use crate::machine::mount;
use crate::machine::processes::Processes;
use crate::place::link;
use crate::probe::{Applications, Others, PageCache, PageCacheError, Probe, Shares, Timeline};
use crate::sys;

/// A timed part up to this long keeps its timeline at full resolution; a longer one halves it.
const TIMELINE: Duration = Duration::from_secs(3600);

/// The `/proc` of the whole machine, which the lab gives to the trial as its standard input: that
/// of its own PID namespace shows no thread of the kernel.
const MACHINES_PROC: &str = "/proc/self/fd/0";

/// One timed part: which, of what, and how it is closed.
#[derive(Debug)]
pub struct Part<'a> {
    pub trial: &'a Trial,
    pub phase: Phase,
    pub closing: &'a Closing,
    pub processes: &'a Processes,
}

/// Times one part of a trial after the other.
#[derive(Debug, Default)]
pub struct Timing {
    series_begun: bool,
}

impl Timing {
    /// Runs `work` as that part.
    pub fn timed(
        &mut self,
        part: &Part,
        work: impl FnOnce() -> Result<(), HostError>,
    ) -> Result<PhaseRecord, HostError> {
        let &Part { trial, phase, closing, processes } = part;
        let root = Path::new("/");
        let interface = link::interface(root, &trial.workload);
        let probe = Probe::open(root, &trial.bed.devices, TIMELINE)?;
        let probe = probe.with_page_cache(page_cache(trial));
        let probe = probe.with_cpu_clocks(root, Path::new(MACHINES_PROC));
        // In turns the others of the duet would be strangers on the disk beneath.
        let disks = match trial.in_turns {
            true => Vec::new(),
            false => bed::disks_beneath(&trial.bed.devices),
        };
        let probe = probe.with_beneath(root, &disks)?;
        let probe = probe.with_network(root, interface.as_ref())?;
        let servers = processes.has_servers().then(|| processes.servers());
        let watching = servers.map(|servers| Applications::watch(root, servers)).transpose()?;
        let others = Others::look(Path::new(MACHINES_PROC));
        let running = probe.start()?;
        let residents = processes.resident_threads();
        let last_pid = last_pid();
        let start_ns = sys::monotonic_ns();
        let result = work();
        let worked_ns = sys::monotonic_ns();
        let synced = closing.sync();
        let end_ns = sys::monotonic_ns();
        let own = own_processes(last_pid);
        let (mut totals, timeline) = running.stop()?;
        let (strangers, work_io) = others.map(Others::passed).unzip();
        totals.work_io = work_io;
        let applications = watching.map(Applications::stop);
        if let Some((own, of)) = own {
            // The one that commits is ours and not the work's, and so are threads of a daemon.
            let grown = processes.resident_threads().difference(&residents).count() as u64;
            let own = own.saturating_sub(grown + closing.programs());
            totals.processes_started = unwrapped(own, of, totals.processes_started);
        }
        let written = self.write_series(phase, &timeline, applications.as_ref(), trial);
        // Why the work failed comes before what could not be written of it.
        result?;
        synced?;
        written?;
        Ok(PhaseRecord {
            peaks: timeline.peaks(),
            applications: applications.map(|shares| shares.last()).unwrap_or_default(),
            strangers,
            totals,
            ..PhaseRecord::new(phase, worked_ns - start_ns, end_ns - worked_ns)
        })
    }

    fn write_series(
        &mut self,
        phase: Phase,
        timeline: &Timeline,
        applications: Option<&Shares>,
        trial: &Trial,
    ) -> Result<(), HostError> {
        let series = Path::new(&trial.series);
        let (phase, header) = (phase.name(), !self.series_begun);
        append(series, |out| timeline.write_csv(out, phase, header))?;
        let seconds = series.with_file_name("per_second.csv");
        append(&seconds, |out| timeline.write_seconds(out, phase, header))?;
        if let Some(applications) = applications {
            let rows = series.with_file_name("applications.csv");
            append(&rows, |out| applications.write_csv(out, phase, header))?;
        }
        self.series_begun = true;
        Ok(())
    }
}

/// Adds rows to the file at `path`, all of them: an error says that the disk is full.
fn append(
    path: &Path,
    rows: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), HostError> {
    let written = sys::append(path).map(BufWriter::new).and_then(|mut out| {
        rows(&mut out)?;
        out.flush()
    });
    written.map_err(|error| format!("writing {}: {error}", path.display()).into())
}

/// The page cache of what the trial has mounted now, if that is asked for. Where it can't be
/// watched, the record has none, and the trial's standard error the reason.
fn page_cache(trial: &Trial) -> Option<PageCache> {
    trial.probes.contains(&ExtraProbe::PageCache).then_some(())?;
    let mount = mount::holding(Path::new(&cached(trial))).ok()??;
    let watched = PageCache::watch(Path::new("/"), mount.number);
    let told = |error: &PageCacheError| {
        let text = format!("the page cache can't be watched: {error}");
        // Nothing hangs on its being read.
        let _ = writeln!(stderr(), "{}", one_line(&text));
    };
    watched.inspect_err(told).ok()
}

/// The number of the process or thread that was started last in our PID namespace, which is the
/// last field of proc_loadavg(5); `None` where we share a namespace with the whole machine.
fn last_pid() -> Option<u64> {
    let text = (std::process::id() == 1).then(|| fs::read_to_string("/proc/loadavg").ok())??;
    text.split_whitespace().last()?.parse().ok()
}

/// Processes and threads started in our PID namespace since `before`, modulo the second number:
/// numbers begin again at 300 when they reach pid_max (kernel/pid.c, RESERVED_PIDS).
fn own_processes(before: Option<u64>) -> Option<(u64, u64)> {
    let (before, after) = (before?, last_pid()?);
    let limit = fs::read_to_string("/proc/sys/kernel/pid_max").ok()?.trim().parse::<u64>().ok()?;
    let numbers = limit.checked_sub(300).filter(|&numbers| numbers > 0)?;
    Some(((after + numbers).checked_sub(before)? % numbers, numbers))
}

/// Our own count, known modulo `of`: the largest that the whole system's count allows. This leaves
/// out what other programs start meanwhile, unless it is as much as `of`.
fn unwrapped(own: u64, of: u64, of_system: u64) -> u64 {
    own + of_system.saturating_sub(own) / of * of
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_programs_processes_are_left_out_and_a_wrap_is_not() {
        assert_eq!(unwrapped(10_001, 32_468, 10_254), 10_001);
        assert_eq!(unwrapped(5_000, 32_468, 37_500), 37_468);
        assert_eq!(unwrapped(3, 32_468, 1), 3);
        assert_eq!(last_pid(), None, "a test shares its PID namespace");
    }

    /// See full(4): rows that only the buffer takes are lost when it is let go of.
    #[test]
    fn rows_that_a_full_disk_does_not_take_are_an_error() {
        let error = append(Path::new("/dev/full"), |out| out.write_all(b"phase\n")).unwrap_err();
        assert_eq!(error.to_string(), "writing /dev/full: No space left on device (os error 28)");
    }
}
