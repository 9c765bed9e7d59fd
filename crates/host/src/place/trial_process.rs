//! The process of a trial: its command, where it mounts, and its messages.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use fsverdict_core::model::{Overdue, Timeouts};

use crate::machine::processes;
use crate::{sys, undo};

/// How often a waiting lab tells its watcher that time passes.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// What happens in the lab, for those who watch.
#[derive(Debug)]
pub enum Event<'a> {
    /// So many bytes of the bed's images are written, of so many.
    Writing(u64, u64),
    /// The trial has begun this step.
    Step(&'a str),
    /// A moment has passed.
    Tick,
}

/// Hears of events as they happen.
pub type Watch<'a> = Box<dyn FnMut(Event) + 'a>;

/// How long the processes of a trial that was killed are waited for.
const END_PATIENCE: Duration = Duration::from_secs(60);

/// A trial under way, and how long it may go on.
#[derive(Debug)]
pub(crate) struct Patience<'a> {
    timeouts: &'a Timeouts,
    began: Instant,
    /// Empty before the first.
    step: String,
    step_began: Instant,
}

impl<'a> Patience<'a> {
    /// With a trial that begins now.
    pub fn new(timeouts: &'a Timeouts) -> Patience<'a> {
        let now = Instant::now();
        Patience { timeouts, began: now, step: String::new(), step_began: now }
    }

    /// The trial has begun this step.
    pub fn step(&mut self, step: &str) {
        self.step = step.into();
        self.step_began = Instant::now();
    }

    /// Whether it may go on.
    pub fn check(&self) -> Result<(), Overdue> {
        let step = if self.step.is_empty() { "start" } else { &self.step };
        self.timeouts.check_time(step, self.step_began.elapsed(), self.began.elapsed())
    }
}

/// Ends a trial with all that it has started: whether all of that is gone. Its PID namespace ends
/// with the process that `child`, unshare(1), has started, which becomes a zombie or is gone when
/// all others are (kernel/pid_namespace.c, `zap_pid_ns_processes`). What is in the kernel at a
/// device that does not answer can't be ended.
pub(crate) fn end(child: &mut Child) -> std::io::Result<bool> {
    let root = Path::new("/");
    let is_its = |&process: &u32| processes::is_running_child(root, process, child.id());
    let first: Vec<u32> = processes::numbers_in(Path::new("/proc")).filter(is_its).collect();
    sys::kill_group(child.id());
    child.wait()?;
    let start = Instant::now();
    while first.iter().any(|&process| processes::is_running(root, process)) {
        if start.elapsed() > END_PATIENCE {
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(true)
}

/// The command that runs a trial: as root in a mount namespace of its own, so that its mounts go
/// with it, in a PID namespace of its own, so that whatever it starts goes with it too, and in an
/// IPC namespace of its own, so that no shared memory of a server stays (ipc_namespaces(7)).
/// What is unmounted outside goes from there, too.
pub fn trial_argv(input: &Path, output: &Path) -> Vec<String> {
    // util-linux unshare(1).
    const NAMESPACES: [&str; 10] = [
        "unshare",
        "--mount",
        "--propagation",
        "slave",
        "--pid",
        "--ipc",
        "--fork",
        "--kill-child=KILL",
        "--mount-proc",
        "--",
    ];
    let mut argv: Vec<String> = match sys::is_root() {
        true => NAMESPACES.map(String::from).to_vec(),
        false => Vec::new(),
    };
    argv.extend(bare_trial_argv(input, output));
    argv
}

/// The command that runs a trial in the namespaces that there are.
pub fn bare_trial_argv(input: &Path, output: &Path) -> Vec<String> {
    let program = std::env::current_exe().unwrap_or_else(|_| "fsverdict".into());
    let path = |path: &Path| path.display().to_string();
    let words = [path(&program), "trial".into(), "--in".into(), path(input)];
    words.into_iter().chain(["--out".into(), path(output)]).collect()
}

/// Where a trial's file system is mounted, in its own mount namespace: one place for all.
pub fn mount_point() -> PathBuf {
    undo::registry().join("mnt")
}

/// Where root's trial has its own folder, in its own mount namespace.
pub fn trial_point() -> PathBuf {
    undo::registry().join("trial")
}

/// The `/proc` of the whole machine, for the trial's standard input: it reads the clocks of the
/// kernel's threads there.
pub fn machines_proc() -> std::io::Result<Stdio> {
    Ok(File::open("/proc")?.into())
}
