//! What an engine is: one kind of work, from laying its files out to its figures.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fsverdict_core::model::{Device, Histogram, Jobs, Phase, PhaseRecord, Sample, Turns, Workload};
use fsverdict_core::run::{HostError, Step};

use super::printed::Outputs;
use super::relay::Relay;
use crate::machine::cell::Cells;
use crate::machine::marks::Marks;
use crate::tool::ToolError;

/// One kind of work. Each file of this folder has one, for its part of the plan.
///
/// The plan's part itself states what it needs ([`Workload::needs`]): a place is asked for that
/// before there is anything to run.
pub trait Engine {
    /// What is wrong with it as this workload's work, as far as that shows without its tool.
    fn check(&self, _workload: &Workload) -> Result<(), HostError> {
        Ok(())
    }

    /// Has its tool read it, as the work of this workload, and do nothing else.
    fn read(&self, _workload: &Workload) -> Result<Reading, ToolError> {
        Ok(Reading::Taken(Taken::default()))
    }

    /// Files that it reads outside the file system under test: a virtual machine has to have them.
    fn files(&self) -> Vec<String> {
        Vec::new()
    }

    /// It only reads what is laid out, or may do so, as far as that shows without its tool.
    fn only_reads(&self) -> bool {
        false
    }

    /// Lays out the files that the work finds there, before the caches are dropped.
    fn lay_out(&self, _scene: &Scene) -> Result<(), HostError> {
        Ok(())
    }

    /// Makes `phase` ready, so that nothing but the work itself is left to be timed.
    fn prepare<'a>(
        &'a self,
        phase: Phase,
        scene: &'a Scene,
    ) -> Result<Box<dyn TimedPart + 'a>, HostError>;

    /// Whether this error of a timed part says that the file system has nothing for it.
    fn is_refusal(&self, _error: &(dyn std::error::Error + 'static)) -> bool {
        false
    }

    /// Removes what the work leaves, where its tool has a command for that.
    fn clean_up(&self, _scene: &Scene) -> Result<(), HostError> {
        Ok(())
    }

    /// What it would do in `step`: for `--dry-run`.
    fn dry(&self, step: Step, scene: &Scene) -> Result<Vec<Act>, HostError>;
}

/// What a tool made of its work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// It takes it.
    Taken(Taken),
    /// It does not take it, and says why.
    Refused(String),
}

/// What a tool says of work that it takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// The jobs that it has, where it has several.
    pub jobs: Option<Jobs>,
    /// Bytes that its files take for certain.
    pub least_bytes: u64,
}

/// A part of the work that is ready to be timed. It is called once, and not once an operation.
pub trait TimedPart {
    /// The timed work: all of the part, and nothing else.
    fn run(&mut self) -> Result<(), HostError>;

    /// Checks what it did and enters its figures, after the clock has stopped.
    fn figures(&mut self, record: &mut PhaseRecord) -> Result<(), HostError>;
}

/// Where the work is done, and with what.
#[derive(Clone, Debug)]
pub struct Scene<'a> {
    /// The workload.
    pub workload: &'a Workload,
    /// The folder of the work: in the file system under test.
    pub directory: PathBuf,
    /// The bare device, where there is no file system.
    pub device: Option<&'a str>,
    /// The devices under test.
    pub devices: &'a [Device],
    /// The folder for what programs print: `NAME.stdout` and `NAME.stderr`.
    pub raw: &'a Path,
    /// The cells in which commands run; without, they run as we do.
    pub cells: Option<&'a Cells>,
    /// What commands print.
    pub outputs: &'a Outputs,
    /// The environment of commands.
    pub environment: &'a BTreeMap<String, String>,
    /// The same seed gives the same work.
    pub seed: u64,
    /// Servers do part of the work.
    pub has_servers: bool,
    /// The file system is a program's: the kernel does not count what is written to it as stored
    /// (proc_pid_io(5), write_bytes), but what the program writes itself.
    pub is_served: bool,
    /// Where the work takes turns with that of others.
    pub relay: Option<&'a Relay>,
    /// Where it says what it does, if requests are recorded.
    pub marks: Option<&'a Marks>,
}

/// What a native workload did in one timed part.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Done {
    /// What rates and costs count; `None` where the time is not that of the operations.
    pub operations: Option<u64>,
    /// Bytes read from files.
    pub application_read_bytes: u64,
    /// Bytes written to files.
    pub application_write_bytes: u64,
    /// Latencies, by operation.
    pub histograms: BTreeMap<String, Histogram>,
    /// Figures of its own.
    pub samples: Vec<Sample>,
    /// From the first thread's start to the last one's end; of work in turns, all of them.
    pub work_ns: u64,
    /// Its turns, where it took them with the other contenders of its round.
    pub turns: Option<Turns>,
}

impl Done {
    /// Enters it into the record of its phase.
    pub fn enter(self, record: &mut PhaseRecord) {
        record.work_ns = self.work_ns;
        record.operations = self.operations;
        record.application_read_bytes = Some(self.application_read_bytes);
        record.application_write_bytes = Some(self.application_write_bytes);
        record.histograms = self.histograms;
        record.samples = self.samples;
        record.turns = self.turns;
    }
}

/// Something an engine does, as `--dry-run` says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// A command is run in the work's folder.
    Command(Vec<String>),
    /// fsverdict does this by itself.
    Within(String),
}

/// A timed part that fsverdict does by itself. What `run` holds is dropped within it.
struct Native<Run> {
    run: Option<Run>,
    done: Done,
}

impl<Run, Fault> TimedPart for Native<Run>
where
    Run: FnOnce() -> Result<Done, Fault>,
    HostError: From<Fault>,
{
    fn run(&mut self) -> Result<(), HostError> {
        let run = self.run.take().ok_or(OVER)?;
        self.done = run()?;
        Ok(())
    }

    fn figures(&mut self, record: &mut PhaseRecord) -> Result<(), HostError> {
        std::mem::take(&mut self.done).enter(record);
        Ok(())
    }
}

/// What is said of a part that is to run again.
pub const OVER: &str = "this timed part is over: it runs once";

/// The part that `run` does, in one call.
pub fn native<'a, Fault>(
    run: impl FnOnce() -> Result<Done, Fault> + 'a,
) -> Result<Box<dyn TimedPart + 'a>, HostError>
where
    HostError: From<Fault>,
    Fault: 'a,
{
    Ok(Box::new(Native { run: Some(run), done: Done::default() }))
}

/// Refuses every phase but the whole, for work without parts.
pub fn only_whole(phase: Phase) -> Result<(), HostError> {
    if phase == Phase::Whole { Ok(()) } else { Err(no_phase(phase)) }
}

/// Says that the work has no such phase.
pub fn no_phase(phase: Phase) -> HostError {
    format!("the work has no phase {phase:?}").into()
}
