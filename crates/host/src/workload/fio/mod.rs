//! A fio job: what it may be, and the commands that lay its files out and run it.

mod output;
mod turns;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fsverdict_core::model::{Device, Fio, Phase, PhaseRecord, fio_time_ms, meant};
use fsverdict_core::run::{HostError, Step};
use thiserror::Error;

use super::command::{self, Ready};
use super::engine::{Act, Engine, OVER, Scene, TimedPart, only_whole};
use super::relay::Relay;
use crate::machine::cell::{Cells, Ground};
use crate::sys;
use crate::tool::{self, ToolError};

/// fio reads a job in milliseconds.
const PARSE_LIMIT: Duration = Duration::from_secs(60);

/// Into so many windows a time-based run is divided: twelve batches of five.
const WINDOWS: u64 = 60;
/// A shorter window is one in which fio's own thread is late. (It makes up averages of half a
/// second in any case, so that asking for others costs its jobs nothing.)
const WINDOW_MS_LEAST: u64 = 100;
/// Where the job doesn't say how long it runs: fio's own default.
const WINDOW_MS_DEFAULT: u64 = 500;

/// A job that can't be run here.
#[derive(Debug, Error)]
enum FioError {
    #[error("job file {path}: {source}")]
    JobFile { path: String, source: std::io::Error },
    #[error(
        "the fio job names {option}={value}, outside the file system under test: give it a \
         relative path, or leave the line out"
    )]
    Outside { option: String, value: String },
}

impl Engine for Fio {
    fn check(&self) -> Result<(), HostError> {
        Ok(check(self)?)
    }

    fn refused(&self) -> Result<Option<String>, ToolError> {
        refused(self)
    }

    /// Job files; a job's own options name none that are not in the file system under test.
    fn files(&self) -> Vec<String> {
        let words = match self {
            Fio::File(path) => vec![path.clone()],
            Fio::Arguments(words) => words.clone(),
            Fio::Options(_) => Vec::new(),
        };
        words.into_iter().filter(|word| word.starts_with('/')).collect()
    }

    /// Only what is read must be there and cold: fio would lay it out itself, in its own time.
    fn lay_out(&self, scene: &Scene) -> Result<(), HostError> {
        check(self)?;
        if reads(self)? {
            command::ready(&fill_argv(self, scene), "fill", scene)?.run()?;
        }
        Ok(())
    }

    fn prepare<'a>(
        &'a self,
        phase: Phase,
        scene: &'a Scene,
    ) -> Result<Box<dyn TimedPart + 'a>, HostError> {
        only_whole(phase)?;
        check(self)?;
        let output = output_in(scene);
        let ready = Some(command::ready(&work_argv(self, scene), "fio", scene)?);
        Ok(match scene.relay {
            Some(relay) => Box::new(InTurns { ready, output, relay, devices: scene.devices }),
            None => Box::new(Whole { ready, output, window_ms: window_ms(self) }),
        })
    }

    fn dry(&self, step: Step, scene: &Scene) -> Result<Vec<Act>, HostError> {
        Ok(match step {
            Step::Fill if reads(self)? => vec![Act::Command(fill_argv(self, scene))],
            Step::Work(phase) => {
                only_whole(phase)?;
                check(self)?;
                vec![Act::Command(work_argv(self, scene))]
            }
            _ => Vec::new(),
        })
    }
}

/// The job, and where its result will be.
struct Whole {
    ready: Option<Ready>,
    output: PathBuf,
    window_ms: Option<u64>,
}

impl TimedPart for Whole {
    fn run(&mut self) -> Result<(), HostError> {
        Ok(self.ready.take().ok_or(OVER)?.run()?)
    }

    fn figures(&mut self, record: &mut PhaseRecord) -> Result<(), HostError> {
        output::parse(&self.output, self.window_ms)?.enter(record);
        Ok(())
    }
}

/// The same in turns.
struct InTurns<'a> {
    ready: Option<Ready>,
    output: PathBuf,
    relay: &'a Relay,
    devices: &'a [Device],
}

impl TimedPart for InTurns<'_> {
    fn run(&mut self) -> Result<(), HostError> {
        Ok(self.ready.take().ok_or(OVER)?.run_in_turns(self.relay, self.devices)?)
    }

    fn figures(&mut self, record: &mut PhaseRecord) -> Result<(), HostError> {
        output::parse(&self.output, None)?.enter(record);
        turns::enter(&output::log(&self.output, "clat"), self.relay.taken(), record)?;
        Ok(())
    }
}

fn output_in(scene: &Scene) -> PathBuf {
    scene.raw.join("fio.json")
}

/// The command that runs the job: in the file system, or on the bare device.
fn work_argv(fio: &Fio, scene: &Scene) -> Vec<String> {
    let (name, output) = (&scene.workload.name, output_in(scene));
    let logs = match scene.relay {
        Some(_) => turns::logs(&output),
        None => rate_logs(fio, &output),
    };
    let argv = argv(fio, name, scene.seed, &output, logs);
    match scene.device {
        Some(device) => on_device(argv, device),
        None => argv,
    }
}

/// The command that lays out the job's files and does nothing else.
fn fill_argv(fio: &Fio, scene: &Scene) -> Vec<String> {
    let mut argv = own_arguments(scene.seed, &scene.raw.join("fill.json"));
    argv.push("--create_only=1".into());
    argv.extend(fio.arguments(&scene.workload.name));
    argv
}

/// The options of a job, as far as they can be seen: those on the command line and those in job
/// files, in order, with several jobs run together. A section of a file begins with its `name`.
fn options(fio: &Fio) -> Result<Vec<(String, String)>, FioError> {
    let mut options = Vec::new();
    let mut arguments = fio.arguments("job").into_iter();
    while let Some(argument) = arguments.next() {
        match argument.trim_start_matches('-').split_once('=') {
            Some((option, value)) if argument.starts_with('-') => {
                options.push((option.into(), value.into()));
            }
            _ if argument.starts_with('-') => {
                // `--rw randread`: the value is the next word, unless that is an option too.
                let option = argument.trim_start_matches('-').to_string();
                let takes_value = ["directory", "filename", "rw", "readwrite", "name"];
                let value = takes_value.contains(&option.as_str()).then(|| arguments.next());
                options.push((option, value.flatten().unwrap_or_default()));
            }
            _ => options.extend(job_file(&argument)?),
        }
    }
    Ok(options)
}

fn job_file(path: &str) -> Result<Vec<(String, String)>, FioError> {
    let text = fs::read_to_string(path)
        .map_err(|source| FioError::JobFile { path: path.into(), source })?;
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';']));
    Ok(lines
        .filter(|line| !line.is_empty())
        .map(|line| match line.strip_prefix('[') {
            Some(section) => ("name", section.trim_end_matches(']')),
            None => line.split_once('=').unwrap_or((line, "")),
        })
        .map(|(option, value)| (option.trim().into(), value.trim().into()))
        .collect())
}

/// Refuses a job that would leave the file system under test: an absolute path in it may be a
/// disk with somebody's data.
fn check(fio: &Fio) -> Result<(), FioError> {
    for (option, value) in options(fio)? {
        let names_paths = matches!(option.as_str(), "filename" | "directory" | "filename_format");
        let leaves = value.split(':').any(|path| path.starts_with('/') || path.contains(".."));
        if names_paths && leaves {
            return Err(FioError::Outside { option, value });
        }
    }
    Ok(())
}

/// The job reads, so that its files must be there and cold before it starts.
fn reads(fio: &Fio) -> Result<bool, FioError> {
    let is_mode = |option: &str| matches!(option, "rw" | "readwrite");
    // Without one, fio reads: "read" is the default of rw.
    let modes: Vec<String> =
        options(fio)?.into_iter().filter(|(o, _)| is_mode(o)).map(|(_, mode)| mode).collect();
    Ok(modes.is_empty() || modes.iter().any(|mode| mode.contains("read") || mode.contains("rw")))
}

/// The command that runs the job, with its result in `output`, and `logs` beside it. A `randseed`
/// of the job's own comes after ours and wins.
fn argv(fio: &Fio, name: &str, seed: u64, output: &Path, logs: Vec<String>) -> Vec<String> {
    let own = own_arguments(seed, output).into_iter();
    own.chain(logs).chain(fio.arguments(name)).collect()
}

/// The rate over time of time-based jobs.
fn rate_logs(fio: &Fio, output: &Path) -> Vec<String> {
    let logs = |window_ms: u64| {
        vec![
            format!("--write_iops_log={}", output.with_extension("").display()),
            format!("--log_avg_msec={window_ms}"),
            "--per_job_logs=0".into(),
            "--log_unix_epoch=1".into(),
        ]
    };
    window_ms(fio).map(logs).unwrap_or_default()
}

/// What every job gets.
fn own_arguments(seed: u64, output: &Path) -> Vec<String> {
    vec![
        "fio".to_string(),
        "--output-format=json+".into(),
        format!("--output={}", output.display()),
        format!("--randseed={seed}"),
    ]
}

/// The windows in which the rate of a time-based job is looked at; `None` where not all of it is
/// one, or where it has logs of its own.
fn window_ms(fio: &Fio) -> Option<u64> {
    const LOGS: [&str; 5] =
        ["write_iops_log", "log_avg_msec", "per_job_logs", "log_unix_epoch", "iopsavgtime"];
    let options = options(fio).ok()?;
    let has_logs = options.iter().any(|(option, _)| LOGS.contains(&option.as_str()));
    if has_logs || !is_time_based(&options) {
        return None;
    }
    let times = options.iter().filter(|(option, _)| matches!(&**option, "runtime" | "timeout"));
    let longest_ms = times.filter_map(|(_, time)| fio_time_ms(time)).max();
    Some(longest_ms.map_or(WINDOW_MS_DEFAULT, |ms| (ms / WINDOWS).max(WINDOW_MS_LEAST)))
}

/// None of the jobs ends when its work is done. (fio's output does not repeat options without a
/// value, as `time_based` is usually written.)
fn is_time_based(options: &[(String, String)]) -> bool {
    let (mut global, mut jobs) = (false, Vec::new());
    let mut job: Option<usize> = None;
    for (option, value) in options {
        match (option.as_str(), job) {
            ("name", _) if value == "global" => job = None,
            ("name", _) => {
                job = Some(jobs.len());
                jobs.push(global);
            }
            ("time_based", Some(job)) => jobs[job] = value != "0",
            ("time_based", None) => global = value != "0",
            _ => {}
        }
    }
    !jobs.is_empty() && !jobs.contains(&false)
}

/// Lets fio write nothing while it reads a job. Who is not root can do no more than its user.
fn confine(fio: &Fio, command: &mut std::process::Command) -> io::Result<()> {
    let folder = Path::new("/");
    if !sys::is_root() {
        command.current_dir(folder);
        return Ok(());
    }
    let named = fio.files().into_iter().map(PathBuf::from).collect();
    let cells = Cells::new(Ground { named, ..Ground::default() });
    let confined = cells.cell().and_then(|cell| cell.confine(command, folder));
    confined.map_err(io::Error::other)
}

/// Has fio read the job and do nothing else; its complaint, if it has one. Where an engine is
/// unknown, with the nearest of those that fio has.
fn refused(fio: &Fio) -> Result<Option<String>, ToolError> {
    let ask = |words: &[String]| {
        let argv: Vec<String> = std::iter::once("fio".into()).chain(words.to_vec()).collect();
        tool::ask_where(&argv, PARSE_LIMIT, |command| confine(fio, command))
    };
    let words: Vec<String> =
        std::iter::once("--parse-only".into()).chain(fio.arguments("job")).collect();
    let answer = ask(&words)?;
    if answer.status.success() {
        return Ok(None);
    }
    // It says most things twice.
    let mut lines: Vec<&str> = answer.stderr.lines().filter(|line| !line.is_empty()).collect();
    lines.dedup();
    let said = lines.into_iter().take(2).collect::<Vec<_>>().join("; ");
    let engine = said.split_once("engine ").and_then(|(_, rest)| rest.split_once(" not loadable"));
    let refuses = "fio refuses the job";
    let Some((engine, _)) = engine else { return Ok(Some(format!("{refuses}: {said}"))) };
    let listed = ask(&["--enghelp".into()])?.stdout;
    let meant = meant(engine, listed.lines().skip(1).map(str::trim).filter(|it| !it.is_empty()));
    Ok(Some(format!("{refuses}: {said}; {meant}")))
}

/// The command that runs the job of `argv` on the bare `device`, in as many bytes of it as its
/// files would have. Its own file names are left out; ours comes before the first `--name`, where
/// it holds for all jobs (fio(1), "Job file format": options before the first job are global).
fn on_device(argv: Vec<String>, device: &str) -> Vec<String> {
    const NAMES: [&str; 5] =
        ["filename", "filename_format", "directory", "nrfiles", "file_service_type"];
    let option = |word: &str| {
        let word = word.trim_start_matches('-');
        word.split('=').next().unwrap_or_default().to_string()
    };
    let mut kept = Vec::new();
    let mut words = argv.into_iter().peekable();
    while let Some(word) = words.next() {
        let names_files = word.starts_with("--") && NAMES.contains(&option(&word).as_str());
        if !names_files {
            kept.push(word);
        } else if !word.contains('=') {
            words.next_if(|next| !next.starts_with("--"));
        }
    }
    let mut ours = vec![format!("--filename={device}")];
    // Jobs that run at once have a file each: here each has a part of the device.
    let size = kept.iter().find_map(|word| word.strip_prefix("--size="));
    ours.extend(size.filter(|it| !it.ends_with('%')).map(|it| format!("--offset_increment={it}")));
    kept.splice(4..4, ours);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(arguments: &[&str]) -> Fio {
        Fio::Arguments(arguments.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_job_that_leaves_the_file_system_is_refused() {
        for bad in ["--filename=/dev/sdb", "--directory=/mnt/x", "--filename=a:/b"] {
            assert!(matches!(check(&typed(&["--rw=write", bad])), Err(FioError::Outside { .. })));
        }
        check(&typed(&["--rw=write", "--filename=a:b", "--size=1g"])).unwrap();
        let error = check(&typed(&["--filename", "/dev/sdb"])).unwrap_err();
        assert!(error.to_string().contains("/dev/sdb"));
    }

    #[test]
    fn a_job_file_is_looked_into() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.fio");
        fs::write(&path, "[global]\nbs=4k\n; rw=read\n[a]\nrw = randwrite\n").unwrap();
        let fio = Fio::File(path.display().to_string());
        check(&fio).unwrap();
        assert!(!reads(&fio).unwrap());
        fs::write(&path, "[a]\nrw=randrw\ndirectory=/srv\n").unwrap();
        assert!(reads(&fio).unwrap());
        assert!(check(&fio).is_err());
        assert!(matches!(check(&typed(&["gone.fio"])), Err(FioError::JobFile { .. })));
    }

    #[test]
    fn a_job_on_the_bare_device_names_nothing_else() {
        let raw = |words: &[&str]| {
            let argv = argv(&typed(words), "w", 7, Path::new("out"), Vec::new());
            let argv = on_device(argv, "/dev/loop9");
            argv[4..].join(" ")
        };
        assert_eq!(
            raw(&["--name=w", "--filename=a", "--size=1m", "--directory", "d", "--numjobs=2"]),
            "--filename=/dev/loop9 --offset_increment=1m --name=w --size=1m --numjobs=2"
        );
        assert_eq!(raw(&["--name=a", "--rw=read"]), "--filename=/dev/loop9 --name=a --rw=read");
        let two = raw(&["--name=a", "--filename=x", "--name=b", "--filename=y", "--size=50%"]);
        assert_eq!(two, "--filename=/dev/loop9 --name=a --name=b --size=50%");
    }

    #[test]
    fn the_rate_over_time_is_asked_for_where_a_job_is_time_based() {
        let logs = |words: &[&str]| rate_logs(&typed(words), Path::new("raw/fio.json"));
        assert_eq!(
            logs(&["--name=w", "--runtime=20", "--time_based"]),
            [
                "--write_iops_log=raw/fio",
                "--log_avg_msec=333",
                "--per_job_logs=0",
                "--log_unix_epoch=1"
            ]
        );
        assert_eq!(output::log(Path::new("raw/fio.json"), "iops"), Path::new("raw/fio_iops.log"));
        assert_eq!(logs(&["--name=w", "--runtime=20"]), [""; 0]);
        assert_eq!(logs(&["--name=w", "--time_based=0", "--runtime=20"]), [""; 0]);
        let window = |runtime: &str| {
            window_ms(&typed(&["--name=w", "--time_based=1", &format!("--runtime={runtime}")]))
        };
        let windows = ["1", "12s", "500ms", "2m", "1:00"].map(window);
        assert_eq!(windows, [100, 200, 100, 2000, 500].map(Some));
        assert_eq!(window_ms(&typed(&["--name=w", "--time_based", "--log_avg_msec=5"])), None);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.fio");
        let of_file = |text: &str| {
            fs::write(&path, text).unwrap();
            window_ms(&Fio::File(path.display().to_string()))
        };
        assert_eq!(of_file("[a]\ntime_based\nruntime=12\n"), Some(200));
        assert_eq!(of_file("[global]\ntime_based=1\nruntime=12\n[a]\n[b]\nruntime=1"), Some(200));
        assert_eq!(of_file("[a]\ntime_based\nruntime=12\n[b]\nruntime=12\n"), None);
        let second = ["--name=a", "--time_based", "--runtime=6", "--name=b", "--runtime=6"];
        assert_eq!(window_ms(&typed(&second)), None, "one of the two ends with its work");
    }
}
