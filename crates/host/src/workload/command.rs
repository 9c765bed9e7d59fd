//! Any command: the engine of a workload, and the untimed steps around one.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::ExitStatus;

use fsverdict_core::model::{self, Command, Device, Pattern, Phase, PhaseRecord, Sample, Workload};
use fsverdict_core::printed;
use fsverdict_core::run::{HostError, Step};
use thiserror::Error;

use super::engine::{Act, Engine, OVER, Scene, TimedPart, only_whole};
use super::left;
use super::printed::{Outputs, Printed};
use super::relay::Relay;
use crate::machine::cell::{CellError, Confined};
use crate::machine::processes::{ASIDE, Io};
use crate::sys::{self, Awaited};
use crate::tool;

/// A user's command that could not be run, or said that it failed.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum CommandError {
    #[error("{path}: {source}")]
    Output { path: String, source: std::io::Error },
    #[error("{command} could not be started: {source}")]
    Start { command: String, source: std::io::Error },
    #[error(
        "{command} could not be started: --map puts the work's own folder at {folders}, which \
         hides what this machine has there, such as the program or its interpreter: map a folder \
         without them"
    )]
    Hidden { command: String, folders: String },
    #[error("{command} in turns: {source}")]
    InTurns { command: String, source: std::io::Error },
    #[error(transparent)]
    Cell(#[from] CellError),
    #[error("{path} lacks the last {bytes} bytes: the program printed more than is kept")]
    TooMuch { path: String, bytes: u64 },
    #[error("{command} {}{said}{}", tool::ended(*status), advice(said))]
    Failed { command: String, status: ExitStatus, said: String },
}

/// What to do where a command was kept from writing: EROFS, as strerror(3) has it.
fn advice(said: &str) -> &'static str {
    match said.contains("Read-only file system") {
        true => " (work writes in its own folder: --writable DIR opens another)",
        false => "",
    }
}

/// A command with its output files open, so that starting it is all that is left to do.
#[derive(Debug)]
pub struct Ready {
    command: Confined,
    shown: String,
    /// Its outputs, with their files.
    stdout: (Printed, String),
    stderr: (Printed, String),
    /// The folders that are mapped, where there is such a program without them.
    hiding: Option<String>,
}

/// Prepares `argv` in `scene`; `name` names its output.
pub fn ready(argv: &[String], name: &str, scene: &Scene) -> Result<Ready, CommandError> {
    let open = |suffix: &str| {
        let name = format!("{name}.{suffix}");
        let path = scene.raw.join(&name);
        let shown = path.display().to_string();
        match created_anew(&path).and_then(Printed::into_file) {
            Ok((printed, writer)) => {
                scene.outputs.add(name, &printed);
                Ok(((printed, shown), writer))
            }
            Err(source) => Err(CommandError::Output { path: shown, source }),
        }
    };
    let (stdout, out) = open("stdout")?;
    let (stderr, errors) = open("stderr")?;
    let mut command = tool::users(argv);
    command.envs(scene.environment).stdout(out).stderr(errors);
    let command = match scene.cells {
        Some(cells) => cells.cell()?.command(command, &scene.directory)?,
        None => {
            command.current_dir(&scene.directory);
            command.into()
        }
    };
    let folders: Vec<&str> = scene.workload.map.keys().map(String::as_str).collect();
    let hiding = (!folders.is_empty() && tool::is_there(&argv[0])).then(|| folders.join(" or "));
    Ok(Ready { command, shown: shown(argv), stdout, stderr, hiding })
}

/// A file at `path` in the place of what may be there: the work can write in that folder, and might
/// have left a link to somewhere else.
pub fn created_anew(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => File::create_new(path),
    }
}

impl Ready {
    /// Runs it to its end; an exit status other than 0 is an error.
    pub fn run(self) -> Result<(), CommandError> {
        let hiding = self.hiding.clone();
        self.run_by(|command, shown| {
            let started = command.start().and_then(Awaited::wait_and_reap);
            let command = shown.to_string();
            started.map_err(|source| match hiding {
                Some(folders) if source.kind() == io::ErrorKind::NotFound => {
                    CommandError::Hidden { command, folders }
                }
                _ => CommandError::Start { command, source },
            })
        })
    }

    /// The same in the turns that it has.
    pub fn run_in_turns(self, relay: &Relay, devices: &[Device]) -> Result<(), CommandError> {
        self.run_by(|command, shown| {
            let seen = relay.see_through(|| command.start(), devices);
            seen.map_err(|source| CommandError::InTurns { command: shown.into(), source })
        })
    }

    fn run_by(
        self,
        run: impl FnOnce(Confined, &str) -> Result<ExitStatus, CommandError>,
    ) -> Result<(), CommandError> {
        let Ready { command, shown, stdout, stderr, .. } = self;
        let status = run(command, &shown)?;
        for (printed, path) in [&stdout, &stderr] {
            let failed = |source| CommandError::Output { path: path.clone(), source };
            printed.take_in().map_err(failed)?;
        }
        if status.success() {
            return Ok(());
        }
        let said = last_line(&stderr.0.last());
        Err(CommandError::Failed { command: shown, status, said })
    }

    /// The same for one whose standard output is read: it has to be complete.
    pub fn run_whole(self) -> Result<(), CommandError> {
        let (printed, path) = self.stdout.clone();
        self.run()?;
        match printed.unkept_bytes() {
            0 => Ok(()),
            bytes => Err(CommandError::TooMuch { path, bytes }),
        }
    }
}

/// What a command's outputs are called.
const NAME: &str = "command";

/// The figures that a command has given of its own work: written to `written`, or printed. Known
/// programs' output is read only where the command has written no figures, because a script that
/// reads its program's output has written its own.
pub fn figures(
    workload: &Workload,
    raw: &Path,
    written: &Path,
    outputs: &Outputs,
) -> Result<Vec<Sample>, HostError> {
    let text = read_if_there(written)?;
    let figures = model::figures(&text);
    let mut figures = figures.map_err(|error| format!("{}: {error}", written.display()))?;
    if let Some((name, bytes)) = unkept(outputs) {
        // The last kept output is not its results.
        if workload.figures.is_empty() && not_given(workload, &figures).is_none() {
            return Ok(figures);
        }
        let path = raw.join(name).display().to_string();
        return Err(CommandError::TooMuch { path, bytes }.into());
    }
    let printed = printed_text(raw)?;
    if figures.is_empty() {
        figures = printed::read(&printed);
    }
    if let Some((metric, advice)) = not_given(workload, &figures) {
        return Err(format!("{metric} is to be judged, and was not printed: {advice}").into());
    }
    for (name, pattern) in &workload.figures {
        let found = pattern.parse::<Pattern>()?.read(name, &printed)?;
        figures.retain(|figure| figure.metric != *name);
        figures.push(found);
    }
    Ok(figures)
}

/// A known program's figure that is to be judged, is not among `figures` and is not looked for by
/// an expression of the user's; and what to do about it.
fn not_given<'a>(workload: &'a Workload, figures: &[Sample]) -> Option<(&'a String, &'static str)> {
    let is_open = |metric: &&String| {
        !workload.figures.contains_key(*metric) && figures.iter().all(|it| it.metric != **metric)
    };
    let mut open = workload.primary.iter().filter(is_open);
    open.find_map(|metric| Some((metric, printed::advice(metric)?)))
}

/// An output of the command that was not kept whole, and what it lacks.
fn unkept(outputs: &Outputs) -> Option<(String, u64)> {
    let is_its = |name: &str| name.strip_prefix(NAME).is_some_and(|rest| rest.starts_with('.'));
    outputs.unkept_bytes().into_iter().find(|(name, _)| is_its(name))
}

/// What it has printed, its standard output first. A line that is overwritten (by a carriage
/// return) ends there.
fn printed_text(raw: &Path) -> Result<String, HostError> {
    let mut printed = String::new();
    for suffix in ["stdout", "stderr"] {
        let text = read_if_there(&raw.join(format!("{NAME}.{suffix}")))?;
        printed.push_str(&text.replace('\r', "\n"));
        printed.push('\n');
    }
    Ok(printed)
}

/// The content of a file that the work may have written, or removed.
fn read_if_there(path: &Path) -> Result<String, HostError> {
    match left::read(path, left::TEXT_BYTES) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(format!("{}: {error}", path.display()).into()),
        Ok(text) => Ok(String::from_utf8_lossy(&text).into_owned()),
    }
}

impl Engine for Command {
    fn only_reads(&self) -> bool {
        true
    }

    fn prepare<'a>(
        &'a self,
        phase: Phase,
        scene: &'a Scene,
    ) -> Result<Box<dyn TimedPart + 'a>, HostError> {
        only_whole(phase)?;
        let ready = Some(ready(&self.argv(), NAME, scene)?);
        Ok(Box::new(Whole { ready, scene, before: so_far(scene), after: None }))
    }

    fn dry(&self, step: Step, _scene: &Scene) -> Result<Vec<Act>, HostError> {
        let Step::Work(phase) = step else { return Ok(Vec::new()) };
        only_whole(phase)?;
        Ok(vec![Act::Command(self.argv())])
    }
}

/// The command, and what this process and its awaited children had read and written before and
/// after it.
struct Whole<'a> {
    ready: Option<Ready>,
    scene: &'a Scene<'a>,
    before: Option<Io>,
    after: Option<Io>,
}

fn so_far(scene: &Scene) -> Option<Io> {
    let (read_bytes, written_bytes) = scene.outputs.moved_bytes();
    let [read_aside, written_aside] = ASIDE.so_far();
    let all = Io::read(Path::new("/proc/self/io"))?;
    // All of it lies in the trial's folder.
    let in_memory = sys::is_in_memory(scene.raw);
    Some(all.less(read_bytes + read_aside, written_bytes + written_aside, in_memory))
}

impl TimedPart for Whole<'_> {
    fn run(&mut self) -> Result<(), HostError> {
        self.ready.take().ok_or(OVER)?.run()?;
        self.after = so_far(self.scene);
        Ok(())
    }

    fn figures(&mut self, record: &mut PhaseRecord) -> Result<(), HostError> {
        record.operations = self.scene.workload.operations;
        // What a server reads and writes for the work is not done by its processes, and what a
        // program writes as its file system must not count as theirs.
        if let (Some(before), Some(after), false) =
            (&self.before, &self.after, self.scene.has_servers || self.scene.is_served)
        {
            let read_bytes = after.passed_read_bytes.saturating_sub(before.passed_read_bytes);
            record.application_read_bytes = Some(read_bytes);
            record.application_write_bytes = Some(after.written_since(before));
        }
        Ok(())
    }
}

/// `argv` in a line: a script of several is not repeated where it fails.
fn shown(argv: &[String]) -> String {
    match argv.iter().any(|word| word.trim().contains('\n')) {
        true => "the script".into(),
        false => tool::shown(argv).replace('\n', " "),
    }
}

fn last_line(text: &str) -> String {
    let line = text.lines().rev().find(|line| !line.trim().is_empty());
    line.map(|line| format!(": {line}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Write;

    use super::*;

    fn run(argv: &[&str]) -> (Result<(), CommandError>, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let environment = BTreeMap::from([("FSVERDICT_SEED".to_string(), "7".to_string())]);
        let argv: Vec<String> = argv.iter().map(ToString::to_string).collect();
        let scene = Scene {
            workload: &Workload::default(),
            directory: folder.path().into(),
            device: None,
            devices: &[],
            raw: folder.path(),
            cells: None,
            outputs: &Outputs::default(),
            environment: &environment,
            seed: 7,
            has_servers: false,
            is_served: false,
            relay: None,
            marks: None,
        };
        let result = ready(&argv, "command", &scene).and_then(Ready::run);
        (result, folder)
    }

    #[test]
    fn what_it_has_written_comes_before_what_it_has_printed() {
        let folder = tempfile::tempdir().unwrap();
        let (raw, written) = (folder.path(), folder.path().join("figures"));
        let looked_for = BTreeMap::from([("last".to_string(), "^done (\\d+):count".to_string())]);
        let searched = Workload { figures: looked_for, ..Workload::default() };
        let metrics = |workload: &Workload| -> Vec<String> {
            let found = figures(workload, raw, &written, &Outputs::default()).unwrap();
            found.into_iter().map(|it| format!("{} {}", it.metric, it.value)).collect()
        };
        assert_eq!(metrics(&Workload::default()), [""; 0], "nothing was printed");
        assert!(figures(&searched, raw, &written, &Outputs::default()).is_err());
        fs::write(raw.join("command.stdout"), "done 1\rdone 2\rdone 30").unwrap();
        fs::write(raw.join("command.stderr"), "tps = 5.5\n").unwrap();
        assert_eq!(metrics(&Workload::default()), ["pgbench_transactions 5.5"]);
        assert_eq!(metrics(&searched), ["pgbench_transactions 5.5", "last 30"]);
        fs::write(&written, "mine 7 count lower\n").unwrap();
        assert_eq!(metrics(&searched), ["mine 7", "last 30"]);
    }

    /// Judged by `primary`, with an expression for each of `looked_for`.
    fn judged_by(primary: &str, looked_for: &[&str]) -> Workload {
        let found = |name: &&str| (name.to_string(), "(\\d+) ops:/s".to_string());
        Workload {
            primary: vec![primary.into()],
            figures: looked_for.iter().map(found).collect(),
            ..Workload::default()
        }
    }

    #[test]
    fn a_known_programs_figure_may_be_looked_for_in_another_way() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("command.stdout"), "7 ops\n").unwrap();
        let read = |workload: &Workload| {
            figures(workload, folder.path(), &folder.path().join("figures"), &Outputs::default())
        };
        let found = read(&judged_by("ior_ops", &["ior_ops"])).unwrap();
        assert_eq!((found[0].metric.as_str(), found[0].value), ("ior_ops", 7.0));
        let error = read(&judged_by("ior_ops", &["other"])).unwrap_err().to_string();
        assert!(error.contains("ior_ops is to be judged, and was not printed"), "{error}");
    }

    #[test]
    fn of_an_output_that_was_cut_no_figure_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let (raw, written) = (folder.path(), folder.path().join("figures"));
        let path = raw.join("command.stdout");
        fs::write(&path, "tps = 5.5\n7 ops\n").unwrap();
        // A file that takes nothing more lacks all that is printed.
        let full = File::options().write(true).open("/dev/full").unwrap();
        let (printed, mut writer) = Printed::into_file(full).unwrap();
        writer.write_all(b"9 ops\n").unwrap();
        assert!(printed.take_in().is_err());
        let outputs = Outputs::default();
        outputs.add("prepare.stdout".into(), &printed);
        let read = |workload: &Workload| figures(workload, raw, &written, &outputs);
        assert_eq!(read(&judged_by("x", &["x"])).unwrap().len(), 2, "another step's");
        outputs.add("command.stdout".into(), &printed);
        for workload in [judged_by("x", &["x"]), judged_by("pgbench_transactions", &[])] {
            let error = read(&workload).unwrap_err().to_string();
            assert!(error.contains("command.stdout lacks the last 6 bytes"), "{error}");
        }
        assert_eq!(read(&Workload::default()).unwrap(), [], "none is wanted");
        fs::write(&written, "pgbench_transactions 7 per_second higher\n").unwrap();
        assert_eq!(read(&judged_by("pgbench_transactions", &[])).unwrap().len(), 1);
    }

    #[test]
    fn it_runs_in_its_directory_with_the_trials_environment() {
        let (result, folder) = run(&["sh", "-c", "echo $FSVERDICT_SEED > seed; echo done"]);
        result.unwrap();
        assert_eq!(fs::read_to_string(folder.path().join("seed")).unwrap(), "7\n");
        assert_eq!(fs::read_to_string(folder.path().join("command.stdout")).unwrap(), "done\n");
    }

    #[test]
    fn a_failure_carries_the_last_thing_it_said() {
        let (result, _folder) = run(&["sh", "-c", "echo disk on fire >&2; exit 9"]);
        let error = result.unwrap_err().to_string();
        assert!(error.ends_with("failed with exit status 9: disk on fire"), "{error}");
        let (result, _folder) = run(&["sh", "-c", "set -e\nfalse\n"]);
        assert_eq!(result.unwrap_err().to_string(), "the script failed with exit status 1");
        let (result, _folder) = run(&["no-such-program"]);
        assert!(result.unwrap_err().to_string().contains("could not be started"));
    }
}
