//! A fio job: what it may be, and the commands that lay its files out and run it.

mod jobs;
mod output;
mod rates;
mod turns;

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fsverdict_core::model::{Device, Fio, Map, Phase, PhaseRecord, Workload, is_mapped, meant};
use fsverdict_core::run::{HostError, Step};
use thiserror::Error;

use super::command::{self, Ready};
use super::engine::{Act, Engine, OVER, Reading, Scene, Taken, TimedPart, only_whole};
use super::relay::Relay;
use crate::machine::cell::{self, Cells, Ground, Mapped};
use crate::sys;
use crate::tool::{self, Answer, ToolError};
use jobs::Job;

/// fio reads a job in milliseconds.
const PARSE_LIMIT: Duration = Duration::from_secs(60);

/// Options of jobs that name files and folders.
const PATHS: [&str; 3] = ["filename", "directory", "filename_format"];

/// Words of fio's command line by which it serves others, stays in the background, or writes where
/// no job tells (fio(1), "Command line options").
const NO_JOB: [&str; 10] = [
    "aux-path",
    "client",
    "daemonize",
    "inflate-log",
    "remote-config",
    "server",
    "trigger",
    "trigger-file",
    "trigger-remote",
    "trigger-timeout",
];

/// A longer file is no job.
const JOB_BYTES_MAX: u64 = 1 << 20;

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
    #[error("{0} is not a fio job: give a text file of at most 1 MiB")]
    NoJobFile(String),
    #[error("--{0} is not part of a fio job: leave it out")]
    NoJob(String),
    #[error(
        "the fio job names {option}={value}, outside the file system under test: give it a \
         relative path, leave the line out, or have it lie in the work's folder by \
         --map {folder}=."
    )]
    Outside { option: String, value: String, folder: String },
    #[error(
        "its jobs run one after the other, so it is unclear which to judge: name a metric, such as \
         {0}_iops"
    )]
    Unnamed(String),
}

/// An option that has a job write (fio(1), `readwrite`).
fn has_it_write((option, value): &(String, String)) -> bool {
    let value = value.split(':').next().unwrap_or_default();
    matches!(&**option, "rw" | "readwrite") && !matches!(value, "read" | "randread")
}

impl Engine for Fio {
    fn check(&self, workload: &Workload) -> Result<(), HostError> {
        Ok(check(self, &workload.map)?)
    }

    fn read(&self, workload: &Workload) -> Result<Reading, ToolError> {
        read(self, workload)
    }

    fn only_reads(&self) -> bool {
        // Its check says what can't be read.
        options(self).map_or(true, |options| !options.iter().any(has_it_write))
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

    /// Only what fio lays out must be there and cold: it would do so itself, in the timed part.
    fn lay_out(&self, scene: &Scene) -> Result<(), HostError> {
        if jobs::need_files(&jobs_in(self, scene)?) {
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
        let jobs = jobs_in(self, scene)?;
        check_named(&jobs, scene)?;
        let output = output_in(scene);
        let ready = Some(command::ready(&work_argv(self, &jobs, scene), "fio", scene)?);
        Ok(match scene.relay {
            Some(relay) => Box::new(InTurns { ready, output, jobs, relay, devices: scene.devices }),
            None => Box::new(Whole { ready, output, jobs }),
        })
    }

    fn dry(&self, step: Step, scene: &Scene) -> Result<Vec<Act>, HostError> {
        check(self, &scene.workload.map)?;
        // A plan is shown to find out whether it may be run: no fio reads the job for that.
        let jobs = jobs::written(options(self)?);
        Ok(match step {
            Step::Fill if jobs::need_files(&jobs) => {
                vec![Act::Command(fill_argv(self, scene))]
            }
            Step::Work(phase) => {
                only_whole(phase)?;
                vec![Act::Command(work_argv(self, &jobs, scene))]
            }
            _ => Vec::new(),
        })
    }
}

/// The job, and where its result will be.
struct Whole {
    ready: Option<Ready>,
    output: PathBuf,
    jobs: Vec<Job>,
}

impl TimedPart for Whole {
    fn run(&mut self) -> Result<(), HostError> {
        Ok(self.ready.take().ok_or(OVER)?.run()?)
    }

    fn figures(&mut self, record: &mut PhaseRecord) -> Result<(), HostError> {
        output::parse(&self.output, &self.jobs, window_ms(&self.jobs))?.enter(record);
        record.ramped = self.jobs.iter().any(Job::is_ramped);
        Ok(())
    }
}

/// The same in turns.
struct InTurns<'a> {
    ready: Option<Ready>,
    output: PathBuf,
    jobs: Vec<Job>,
    relay: &'a Relay,
    devices: &'a [Device],
}

impl TimedPart for InTurns<'_> {
    fn run(&mut self) -> Result<(), HostError> {
        Ok(self.ready.take().ok_or(OVER)?.run_in_turns(self.relay, self.devices)?)
    }

    fn figures(&mut self, record: &mut PhaseRecord) -> Result<(), HostError> {
        output::parse(&self.output, &self.jobs, None)?.enter(record);
        // Of jobs that take their turns together the log tells together.
        record.jobs.clear();
        turns::enter(&output::log(&self.output, "clat"), self.relay.taken(), record)?;
        Ok(())
    }
}

fn output_in(scene: &Scene) -> PathBuf {
    scene.raw.join("fio.json")
}

/// The command that runs the job: in the file system, or on the bare device.
fn work_argv(fio: &Fio, jobs: &[Job], scene: &Scene) -> Vec<String> {
    let (name, output) = (&scene.workload.name, output_in(scene));
    let logs = match scene.relay {
        Some(_) => turns::logs(&output),
        None => rate_logs(jobs, &output),
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
    let failed = |source| FioError::JobFile { path: path.into(), source };
    let known = fs::metadata(path).map_err(failed)?;
    if !known.is_file() || known.len() > JOB_BYTES_MAX {
        return Err(FioError::NoJobFile(path.into()));
    }
    let mut text = String::new();
    let file = fs::File::open(path).map_err(failed)?;
    file.take(JOB_BYTES_MAX).read_to_string(&mut text).map_err(failed)?;
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

/// Refuses a job that would leave the file system under test, as far as its own text tells: an
/// absolute path in it may be a disk with somebody's data.
fn check(fio: &Fio, map: &Map) -> Result<(), FioError> {
    let options = options(fio)?;
    // fio takes the beginning of an option for all of it (getopt_long(3)).
    let is_no_job = |(option, _): &&(String, String)| {
        NO_JOB.iter().any(|word| option.len() > 1 && word.starts_with(option.as_str()))
    };
    if let Some((option, _)) = options.iter().find(is_no_job) {
        return Err(FioError::NoJob(option.clone()));
    }
    check_inside(map, options.iter().map(|(option, value)| (option.as_str(), value.as_str())))
}

/// The same, by what fio took the job for.
fn check_jobs(map: &Map, jobs: &[Job]) -> Result<(), FioError> {
    let named = |job| PATHS.iter().filter_map(move |name| Some((*name, Job::text(job, name)?)));
    check_inside(map, jobs.iter().flat_map(named))
}

fn check_inside<'a>(
    map: &Map,
    options: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<(), FioError> {
    let leaves =
        |path: &&str| path.contains("..") || path.starts_with('/') && !is_mapped(map, path);
    let paths = options.into_iter().filter(|(option, _)| PATHS.contains(option));
    let mut outside =
        paths.filter_map(|(option, value)| Some((option, value, value.split(':').find(leaves)?)));
    let Some((option, value, path)) = outside.next() else { return Ok(()) };
    let folder = match option {
        "directory" => path,
        _ => path.rsplit_once('/').map_or("", |(folder, _)| folder),
    };
    let folder = if folder.starts_with('/') { folder } else { "/data" };
    let [option, value, folder] = [option, value, folder].map(String::from);
    Err(FioError::Outside { option, value, folder })
}

/// Work that is judged by a rate that its jobs don't have together fails before it begins. (What a
/// stranger wrote, only its trial's fio has read.)
fn check_named(jobs: &[Job], scene: &Scene) -> Result<(), FioError> {
    let Workload { jobs: known, primary, .. } = scene.workload;
    let is_judged = scene.device.is_none() && scene.relay.is_none();
    match jobs::parts(jobs).filter(|parts| !parts.together && is_judged) {
        Some(parts) if known.is_none() && primary.is_empty() => {
            Err(FioError::Unnamed(parts.names[0].clone()))
        }
        _ => Ok(()),
    }
}

/// The command that runs the job, with its result in `output`, and `logs` beside it. A `randseed`
/// of the job's own comes after ours and wins.
fn argv(fio: &Fio, name: &str, seed: u64, output: &Path, logs: Vec<String>) -> Vec<String> {
    let own = own_arguments(seed, output).into_iter();
    own.chain(logs).chain(fio.arguments(name)).collect()
}

/// The rate over time of time-based jobs.
fn rate_logs(jobs: &[Job], output: &Path) -> Vec<String> {
    let logs = |window_ms: u64| {
        vec![
            format!("--write_iops_log={}", output.with_extension("").display()),
            format!("--log_avg_msec={window_ms}"),
            "--per_job_logs=0".into(),
            "--log_unix_epoch=1".into(),
        ]
    };
    window_ms(jobs).map(logs).unwrap_or_default()
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

/// The windows in which the rate of time-based jobs is looked at; `None` where not all of them are
/// that, or run at once, or where one has logs of its own: options of ours would change those.
fn window_ms(jobs: &[Job]) -> Option<u64> {
    let has_rate = |job: &Job| job.is_on("time_based") && !job.has_logs();
    if jobs.is_empty() || !jobs::run_at_once(jobs) || !jobs.iter().all(has_rate) {
        return None;
    }
    let longest_us = jobs.iter().filter_map(|job| job.number("runtime")).max();
    let window = |us: i64| (us.unsigned_abs() / 1000 / WINDOWS).max(WINDOW_MS_LEAST);
    Some(longest_us.map_or(WINDOW_MS_DEFAULT, window))
}

/// Lets fio write nothing while it reads a job. Where a user's kernel can't see to that, it can do
/// no more than its user.
fn confine(fio: &Fio, map: &Map, command: &mut std::process::Command) -> io::Result<()> {
    let folder = Path::new("/");
    if !sys::is_root() && cell::is_possible().is_err() {
        command.current_dir(folder);
        return Ok(());
    }
    let named = fio.files().into_iter().map(PathBuf::from).collect();
    // Folders that the job names are there when it is run: fio looks for them.
    let mapped = map.keys().map(|at| Mapped { at: at.into(), to: None }).collect();
    let cells = Cells::new(Ground { named, mapped, ..Ground::default() });
    let confined = cells.cell().and_then(|cell| cell.confine(command, folder));
    confined.map_err(io::Error::other)
}

/// The job as fio reads it where it is run.
fn jobs_in(fio: &Fio, scene: &Scene) -> Result<Vec<Job>, HostError> {
    let argv = jobs::argv(fio, &scene.workload.name);
    let answer = tool::ask_where(&argv, PARSE_LIMIT, |command| {
        command.envs(scene.environment);
        match scene.cells {
            Some(cells) => cells
                .cell()
                .and_then(|cell| cell.confine(command, &scene.directory))
                .map_err(io::Error::other),
            None => {
                command.current_dir(&scene.directory);
                Ok(())
            }
        }
    })?;
    understood(fio, &scene.workload.map, &answer)
}

/// The jobs of fio's answer; its complaint, or ours, is the error.
fn understood(fio: &Fio, map: &Map, answer: &Answer) -> Result<Vec<Job>, HostError> {
    if !answer.status.success() {
        return Err(complaint(&answer.stderr).into());
    }
    let jobs = jobs::read(&answer.stdout, &fio.files())?;
    check_jobs(map, &jobs)?;
    Ok(jobs)
}

/// The same before there is anything to run it on; fio's complaint, if it has one.
fn jobs_outside(fio: &Fio, workload: &Workload) -> Result<Result<Vec<Job>, String>, ToolError> {
    let variables = || workload.environment.iter().map(|(name, it)| (name, it.to_string()));
    let answer = tool::ask_where(&jobs::argv(fio, &workload.name), PARSE_LIMIT, |command| {
        command.envs(variables());
        confine(fio, &workload.map, command)
    })?;
    Ok(understood(fio, &workload.map, &answer).map_err(|error| error.to_string()))
}

/// Has fio read the job and do nothing else. Where an engine is unknown, with the nearest of those
/// that fio has.
fn read(fio: &Fio, workload: &Workload) -> Result<Reading, ToolError> {
    if !workload.map.is_empty() && !sys::is_root() {
        // Only the machine that runs it can have such folders.
        return Ok(Reading::Taken(Taken::default()));
    }
    let said = match jobs_outside(fio, workload)? {
        Ok(jobs) => match unknown_engine(fio, &jobs)? {
            None => {
                let least_bytes = jobs::least_bytes(&jobs);
                return Ok(Reading::Taken(Taken { jobs: jobs::parts(&jobs), least_bytes }));
            }
            Some(said) => said,
        },
        Err(said) => said,
    };
    let engine = said.split_once("engine ").and_then(|(_, rest)| rest.split_once(" not loadable"));
    let Some((engine, _)) = engine else { return Ok(Reading::Refused(said)) };
    let listed = help(fio, "--enghelp".into())?.stdout;
    let meant = meant(engine, listed.lines().skip(1).map(str::trim).filter(|it| !it.is_empty()));
    Ok(Reading::Refused(format!("{said}; {meant}")))
}

/// fio's complaint about an engine that it does not have: reading a job file alone, it takes any.
fn unknown_engine(fio: &Fio, jobs: &[Job]) -> Result<Option<String>, ToolError> {
    let named: BTreeSet<&str> = jobs.iter().filter_map(|job| job.text("ioengine")).collect();
    for engine in named {
        let said = help(fio, format!("--enghelp={engine}"))?.stderr;
        if said.contains("not loadable") {
            return Ok(Some(complaint(&said)));
        }
    }
    Ok(None)
}

fn help(fio: &Fio, asked: String) -> Result<Answer, ToolError> {
    tool::ask_where(&["fio".into(), asked], PARSE_LIMIT, |command| {
        confine(fio, &Map::new(), command)
    })
}

/// What fio has against the job. It says most things twice.
fn complaint(stderr: &str) -> String {
    let mut lines: Vec<&str> = stderr.lines().filter(|line| !line.is_empty()).collect();
    lines.dedup();
    format!("fio refuses the job: {}", lines.into_iter().take(2).collect::<Vec<_>>().join("; "))
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

    fn checked(arguments: &[&str]) -> Result<(), FioError> {
        check(&typed(arguments), &Map::new())
    }

    #[test]
    fn a_job_that_leaves_the_file_system_is_refused() {
        for bad in ["--filename=/dev/sdb", "--directory=/mnt/x", "--filename=a:/b"] {
            assert!(matches!(checked(&["--rw=write", bad]), Err(FioError::Outside { .. })));
        }
        checked(&["--rw=write", "--filename=a:b", "--size=1g"]).unwrap();
        let error = checked(&["--filename", "/dev/sdb"]).unwrap_err();
        assert!(error.to_string().contains("/dev/sdb"));
    }

    #[test]
    fn a_job_may_name_what_is_mapped_and_nothing_beside_it() {
        let map = Map::from([("/data".into(), ".".into())]);
        let told = |words: &[&str]| check(&typed(words), &map).err().map(|it| it.to_string());
        assert_eq!(told(&["--directory=/data", "--filename=/data/a:b:/data/c"]), None);
        for bad in ["--filename=/data/a:/data2/b", "--directory=/data/../etc", "--filename=/etc"] {
            assert!(told(&[bad]).is_some(), "{bad}");
        }
        let said = told(&["--filename=/srv/db/log"]).unwrap();
        assert!(said.ends_with("by --map /srv/db=."), "{said}");
    }

    #[test]
    fn a_job_file_is_looked_into() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.fio");
        fs::write(&path, "[global]\nbs=4k\n; rw=read\n[a]\nrw = randwrite\n").unwrap();
        let fio = Fio::File(path.display().to_string());
        check(&fio, &Map::new()).unwrap();
        fs::write(&path, "[a]\nrw=randrw\ndirectory=/srv\n").unwrap();
        assert!(check(&fio, &Map::new()).is_err());
        assert!(matches!(checked(&["gone.fio"]), Err(FioError::JobFile { .. })));
    }

    #[test]
    fn what_is_no_job_is_refused_before_fio_sees_it() {
        for bad in
            ["--server", "--serv=ip:127.0.0.1,1", "--daemonize=pid", "--client=a", "--trig=x"]
        {
            let refused = checked(&["--name=a", bad]);
            assert!(matches!(refused, Err(FioError::NoJob(_))), "{bad}: {refused:?}");
        }
        assert!(matches!(checked(&["/dev/zero"]), Err(FioError::NoJobFile(_))));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.fio").display().to_string();
        fs::write(&path, "x".repeat(2 << 20)).unwrap();
        assert!(matches!(check(&Fio::File(path), &Map::new()), Err(FioError::NoJobFile(_))));
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
        let jobs = |jobs: &[&str]| {
            let begin = |name: &str| {
                format!("parse 1 dup options\nparse 1 handle_option=name, ptr={name}\n")
            };
            let option = |word: &str| {
                let (name, value) = word.split_once('=').unwrap_or((word, "(null)"));
                format!("parse 1 handle_option={name}, ptr={value}\nparse 1 ret=0, out={value}\n")
            };
            let of_job = |it: &&str| begin("w") + &it.split(' ').map(option).collect::<String>();
            jobs::read(&jobs.iter().map(of_job).collect::<String>(), &[]).unwrap()
        };
        let logs = |options: &str| rate_logs(&jobs(&[options]), Path::new("raw/fio.json"));
        assert_eq!(
            logs("runtime=20000000 time_based"),
            [
                "--write_iops_log=raw/fio",
                "--log_avg_msec=333",
                "--per_job_logs=0",
                "--log_unix_epoch=1"
            ]
        );
        assert_eq!(output::log(Path::new("raw/fio.json"), "iops"), Path::new("raw/fio_iops.log"));
        assert_eq!(logs("runtime=20000000"), [""; 0]);
        assert_eq!(logs("time_based=0 runtime=20000000"), [""; 0]);
        for own in ["write_lat_log=x", "write_bw_log=x", "log_avg_msec=5", "per_job_logs=1"] {
            assert_eq!(logs(&format!("time_based runtime=20000000 {own}")), [""; 0], "{own}");
        }
        let window = |it: &[&str]| window_ms(&jobs(it));
        assert_eq!(window(&["time_based runtime=1000000"]), Some(100));
        assert_eq!(window(&["time_based"]), Some(500));
        let [timed, long] = ["time_based runtime=1000000", "time_based runtime=12000000"];
        assert_eq!(window(&[timed, long]), Some(200));
        assert_eq!(window(&[timed, "runtime=12000000"]), None, "one ends with its work");
        assert_eq!(window(&[timed, &format!("stonewall {long}")]), None, "not at once");
    }
}
