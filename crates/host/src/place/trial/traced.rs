//! The requests of a trial's timed parts: recorded where the plan asks for it, and written into the
//! trial's folder once the file system is unmounted, because then its devices tell what they hold.

use std::io::{Write, stderr};
use std::path::{Path, PathBuf};

use fsverdict_core::model::trace::Account;
use fsverdict_core::model::{BedKind, ExtraProbe, Phase, Sample, Trial};
use fsverdict_core::render::one_line;

use crate::machine::marks::Marks;
use crate::probe::trace::{TraceError, Traced, Tracer, logged};

/// The file of a trial's log.
fn log_of(trial: &Trial) -> PathBuf {
    Path::new(&trial.series).with_file_name("trace.jsonl")
}

/// What is recorded during a timed part: by this kernel's events, by the log of our disks' writes,
/// or by both.
#[derive(Debug)]
pub struct Tracing {
    // Let go of before the instance whose file it has.
    /// Where the work says what it does.
    pub marks: Marks,
    tracer: Option<Tracer>,
}

/// Begins to record, if that is asked for. Where it can't be, the trial has no log, and its
/// standard error the reason.
pub fn begin(trial: &Trial, phase: Phase) -> Option<Tracing> {
    trial.probes.contains(&ExtraProbe::Trace).then_some(())?;
    let log = log_of(trial);
    let folder = log.parent().unwrap_or(Path::new("."));
    let tracer = told(Tracer::begin(&trial.bed.lab, &trial.bed.devices, folder));
    let trace = tracer.as_ref().and_then(|tracer| told(tracer.marker()));
    let disk = Some(Path::new(&trial.bed.marks)).filter(|disk| !disk.as_os_str().is_empty());
    let marks = told(Marks::new(trace, disk).map_err(TraceError::Marks))?;
    told(said(&marks, logged::BEGIN, phase));
    Some(Tracing { marks, tracer })
}

fn said(marks: &Marks, word: &str, phase: Phase) -> Result<(), TraceError> {
    let text = format!("{word}{}", phase.name());
    marks.on_disk(text.as_bytes()).map_err(TraceError::Marks)
}

fn told<T>(result: Result<T, TraceError>) -> Option<T> {
    let tell = |error: &TraceError| {
        let text = format!("the requests can't be recorded: {error}");
        // Nothing hangs on its being read.
        let _ = writeln!(stderr(), "{}", one_line(&text));
    };
    result.inspect_err(tell).ok()
}

/// What was recorded and is not written yet.
#[derive(Debug, Default)]
pub struct Traces(Vec<(Phase, Traced)>);

impl Traces {
    /// Ends a trace, and keeps it until the file system is unmounted.
    pub fn keep(&mut self, tracing: Option<Tracing>, phase: Phase) {
        let Some(Tracing { marks, tracer }) = tracing else { return };
        told(said(&marks, logged::END, phase));
        drop(marks);
        let ended = tracer.and_then(|tracer| told(tracer.end()));
        self.0.extend(ended.map(|traced| (phase, traced)));
    }

    /// Writes all of them. If there was one timed part since the last time, returns its account as
    /// figures; with several nothing tells which part they belong to.
    pub fn write(&mut self, trial: &Trial) -> Vec<Sample> {
        // A directory's file system is mounted on, and a bare device has none; below layers its
        // blocks lie elsewhere.
        let file_system = match trial.bed.kind {
            BedKind::Directory => "",
            _ => trial.contender.on_disks(),
        };
        let write = |(phase, traced): (Phase, Traced)| {
            told(traced.write(phase.name(), file_system, &log_of(trial)))
        };
        let is_alone = self.0.len() == 1;
        let accounts: Vec<Account> = self.0.drain(..).filter_map(write).collect();
        match accounts.as_slice() {
            [account] if is_alone => account.samples(true, &trial.workload.primary()),
            _ => Vec::new(),
        }
    }
}
