//! sysbench's fileio test: its three commands.

mod output;

use std::path::PathBuf;

use fsverdict_core::model::{Phase, PhaseRecord, Sysbench};
use fsverdict_core::run::{HostError, Step};

use super::command::{self, Ready};
use super::engine::{Act, Engine, OVER, Scene, TimedPart, only_whole};

impl Engine for Sysbench {
    fn lay_out(&self, scene: &Scene) -> Result<(), HostError> {
        Ok(command::ready(&argv(self, "prepare", scene.seed), "fill", scene)?.run()?)
    }

    fn prepare<'a>(
        &'a self,
        phase: Phase,
        scene: &'a Scene,
    ) -> Result<Box<dyn TimedPart + 'a>, HostError> {
        only_whole(phase)?;
        let ready = command::ready(&argv(self, "run", scene.seed), "sysbench", scene)?;
        Ok(Box::new(Whole { ready: Some(ready), printed: scene.raw.join("sysbench.stdout") }))
    }

    fn clean_up(&self, scene: &Scene) -> Result<(), HostError> {
        let argv = argv(self, "cleanup", scene.seed);
        Ok(command::ready(&argv, "sysbench-cleanup", scene)?.run()?)
    }

    fn dry(&self, step: Step, scene: &Scene) -> Result<Vec<Act>, HostError> {
        let command = match step {
            Step::Fill => "prepare",
            Step::Work(phase) => only_whole(phase).map(|()| "run")?,
            Step::Cleanup => "cleanup",
            _ => return Ok(Vec::new()),
        };
        Ok(vec![Act::Command(argv(self, command, scene.seed))])
    }
}

/// The run, and where it prints.
struct Whole {
    ready: Option<Ready>,
    printed: PathBuf,
}

impl TimedPart for Whole {
    fn run(&mut self) -> Result<(), HostError> {
        Ok(self.ready.take().ok_or(OVER)?.run_whole()?)
    }

    fn figures(&mut self, record: &mut PhaseRecord) -> Result<(), HostError> {
        let result = output::parse(&self.printed)?;
        record.tool_ns = Some(result.tool_ns);
        record.operations = Some(result.operations);
        record.application_read_bytes = Some(result.read_bytes);
        record.application_write_bytes = Some(result.write_bytes);
        record.histograms = result.histograms;
        record.samples = result.samples;
        Ok(())
    }
}

/// The command line of `prepare`, `run` or `cleanup`. What the test itself gives comes after ours
/// and wins.
fn argv(test: &Sysbench, command: &str, seed: u64) -> Vec<String> {
    // sysbench keeps its seed in an int and takes 0 for the time of day.
    let seed = (seed % i32::MAX as u64) + 1;
    let ours = ["sysbench".to_string(), "fileio".into(), format!("--rand-seed={seed}")];
    let mut argv = Vec::from(ours);
    argv.push("--histogram=on".into());
    argv.extend(test.arguments());
    argv.push(command.into());
    argv
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tests_own_options_come_last() {
        let test = Sysbench::Arguments(vec!["--rand-seed=5".into()]);
        let argv = argv(&test, "run", 1 << 52).join(" ");
        assert_eq!(argv, "sysbench fileio --rand-seed=2097153 --histogram=on --rand-seed=5 run");
    }
}
