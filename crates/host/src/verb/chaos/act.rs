//! A run of the program, watched by its news, and a fault injected into it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use fsverdict_core::run::HostError;
use serde_json::Value;

use super::ground::Ground;
use super::point::{Fault, Means, Point, SIGNALS, Victim, When};
use super::trace::{self, Counted};
use crate::machine::processes::{descends, name_and_parent, numbers_in};
use crate::sys;

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(2);
/// A run of a few seconds that is not done after this hangs, on a slow and busy machine, too.
const PATIENCE: Duration = Duration::from_secs(1800);
/// For so long what a run said is read when it is over, on a busy machine, unless it all has been.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// For so long a stopped run stays stopped.
const STOPPED: Duration = Duration::from_millis(50);

/// A run, ended.
#[derive(Debug)]
pub struct Ended {
    /// How; `None` if it had to be ended because it hung.
    pub status: Option<ExitStatus>,
    /// What it said to people.
    pub said: String,
    /// The steps of each trial.
    pub steps: BTreeMap<u32, Vec<String>>,
    /// The records whose trials had ended, byte for byte as they were then.
    pub records: BTreeMap<u32, Vec<u8>>,
    /// Whether the fault was done.
    pub is_hit: bool,
    /// The step that was under way then.
    pub step: String,
    /// From its start to its end.
    pub elapsed_ms: u64,
}

impl Ended {
    /// The exit status, where it ended by itself.
    pub fn code(&self) -> Option<i32> {
        self.status.and_then(|status| status.code())
    }

    /// The signal that ended it.
    pub fn signal(&self) -> Option<i32> {
        self.status.and_then(|status| status.signal())
    }
}

/// Runs the program to its end, without a fault.
pub fn run(ground: &Ground, before: &[String], words: &[&str]) -> Result<Ended, HostError> {
    Acting::start(ground, before, words, None)?.followed()
}

/// Runs it, and does the fault of `point`.
pub fn run_with(ground: &Ground, point: &Point, words: &[&str]) -> Result<Ended, HostError> {
    let before = match (&point.fault, &point.when) {
        (Fault::Call(what), When::Call(name, count)) => {
            let _ = fs::remove_file(ground.trace());
            trace::options(&ground.trace(), Some((name, what, *count)))
        }
        _ => Vec::new(),
    };
    Acting::start(ground, &before, words, Some(point))?.followed()
}

/// A run under way.
struct Acting<'a> {
    ground: &'a Ground,
    point: Option<&'a Point>,
    child: Child,
    start: Instant,
    news: Receiver<String>,
    trial: u32,
    calls: Counted,
    ended: Ended,
}

impl<'a> Acting<'a> {
    fn start(
        ground: &'a Ground,
        before: &[String],
        words: &[&str],
        point: Option<&'a Point>,
    ) -> Result<Self, HostError> {
        let mut command = ground.command(before, words)?;
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let (sender, news) = mpsc::channel();
        let stderr = child.stderr.take().ok_or("the run has no standard error")?;
        let listener = std::thread::Builder::new().spawn(move || pass_on(stderr, &sender));
        if let Err(error) = listener {
            child.kill()?;
            child.wait()?;
            return Err(error.into());
        }
        let ended = Ended {
            status: None,
            said: String::new(),
            steps: BTreeMap::new(),
            records: BTreeMap::new(),
            is_hit: false,
            step: String::new(),
            elapsed_ms: 0,
        };
        let start = Instant::now();
        let calls = Counted::default();
        Ok(Acting { ground, point, child, start, news, trial: 0, calls, ended })
    }

    /// Hears its news, does the fault when its time has come, and waits for the end.
    fn followed(mut self) -> Result<Ended, HostError> {
        loop {
            match self.news.recv_timeout(PAUSE) {
                Ok(line) => self.hear(&line),
                // Whatever holds the pipe yet: the run itself is over.
                Err(_) if self.is_over()? => break,
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(PAUSE),
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.act_in_time()?;
            if self.start.elapsed() > PATIENCE {
                sys::kill_group(self.child.id());
                self.child.wait()?;
                self.ended.said += "it hung, and was killed";
                break;
            }
        }
        self.ended.elapsed_ms = self.start.elapsed().as_millis() as u64;
        // The last words of a run tell why it ended early; another holder of the pipe may keep it
        // open.
        self.point = None;
        let end = Instant::now() + LAST_WORDS;
        while let Ok(line) = self.news.recv_timeout(end.saturating_duration_since(Instant::now())) {
            self.hear(&line);
        }
        Ok(self.ended)
    }

    fn is_over(&mut self) -> Result<bool, HostError> {
        self.ended.status = self.child.try_wait()?;
        Ok(self.ended.status.is_some())
    }

    fn hear(&mut self, line: &str) {
        let Ok(news) = serde_json::from_str::<Value>(line) else {
            self.ended.said += &format!("{line}\n");
            return;
        };
        let number = || u32::try_from(news["number"].as_u64().unwrap_or(0)).unwrap_or(0);
        match news["event"].as_str() {
            Some("trial") => self.trial = number(),
            Some("record") => {
                let path = self.ground.run().join(format!("trials/{}/record.json", number()));
                self.ended.records.extend(fs::read(path).ok().map(|bytes| (number(), bytes)));
            }
            Some("step") => {
                let step = news["step"].as_str().unwrap_or_default().to_string();
                self.ended.steps.entry(self.trial).or_default().push(step.clone());
                if !self.ended.is_hit {
                    self.ended.step = step;
                }
                if self.point.is_some_and(|point| point.when == self.now()) {
                    self.act();
                }
            }
            Some("remark") => {
                self.ended.said += &format!("{}\n", news["text"].as_str().unwrap_or_default());
            }
            _ => {}
        }
    }

    /// The step that is under way.
    fn now(&self) -> When {
        let steps = self.ended.steps.get(&self.trial).map_or(0, Vec::len);
        When::Step(self.trial, steps as u32)
    }

    /// Faults that no news of a step triggers: at a moment, as soon as the step's first process has
    /// begun, or by strace, which then detaches from all that it traces. One fault is enough.
    fn act_in_time(&mut self) -> Result<(), HostError> {
        let Some(point) = self.point.filter(|_| !self.ended.is_hit) else { return Ok(()) };
        match &point.when {
            When::Moment(ms) if self.start.elapsed().as_millis() >= u128::from(*ms) => self.act(),
            When::Step(..) if self.now() == point.when => self.act(),
            When::Call(call, count)
                if self.calls.has_reached(&self.ground.trace(), call, *count) =>
            {
                self.ended.is_hit = true;
                let tracer = others().into_iter().find(|it| name(*it) == "strace");
                tracer.map_or(Ok(()), |tracer| sys::signal_other(tracer, libc::SIGTERM))?;
            }
            _ => {}
        }
        Ok(())
    }

    fn act(&mut self) {
        let Some(point) = self.point.filter(|_| !self.ended.is_hit) else { return };
        self.ended.is_hit = match &point.fault {
            Fault::Full => self.ground.fill().is_ok(),
            Fault::Signal(which, victim) => {
                let victims = self.victims(*victim);
                let (_, number, means) = SIGNALS[*which];
                for victim in &victims {
                    // One that is gone has ended by itself.
                    let _ = sys::signal_other(*victim, number);
                    if means == Means::Pause {
                        std::thread::sleep(STOPPED);
                        let _ = sys::signal_other(*victim, libc::SIGCONT);
                    }
                }
                !victims.is_empty()
            }
            Fault::Call(_) => false,
        };
    }

    fn victims(&self, victim: Victim) -> Vec<u32> {
        let lab = self.child.id();
        let processes = others();
        let trial = processes.iter().copied().find(|it| is_trial(*it));
        let parent = |process: u32| Some(name_and_parent(Path::new("/"), process)?.1);
        match victim {
            Victim::Lab => vec![lab],
            Victim::Trial => trial.into_iter().collect(),
            Victim::Work => {
                let trials = BTreeSet::from_iter(trial);
                let below = |it: &u32| Some(*it) != trial && descends(*it, parent, &trials);
                processes.into_iter().filter(below).collect()
            }
            Victim::Machine => processes.into_iter().filter(|it| is_machine(&name(*it))).collect(),
        }
    }
}

fn pass_on(stderr: impl Read, news: &mpsc::Sender<String>) {
    for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
        if news.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
            return;
        }
    }
}

fn others() -> BTreeSet<u32> {
    numbers_in(Path::new("/proc")).filter(|number| *number != 1).collect()
}

fn name(process: u32) -> String {
    name_and_parent(Path::new("/"), process).map_or(String::new(), |(name, _)| name)
}

/// The process of that name is QEMU's, or a User Mode Linux.
fn is_machine(name: &str) -> bool {
    name.starts_with("qemu") || name == "linux"
}

/// The process is `fsverdict trial`, and not what started it in its namespaces.
fn is_trial(process: u32) -> bool {
    let text = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let words: Vec<&[u8]> = text.split(|byte| *byte == 0).collect();
    words.get(1) == Some(&b"trial".as_slice()) && words.get(2) == Some(&b"--in".as_slice())
}
