//! The process of a trial: its command, where it mounts, and what is heard of it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::{sys, undo};

/// How often a waiting lab tells its watcher that time passes.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// What happens in the lab, for whoever watches.
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
    let program = std::env::current_exe().unwrap_or_else(|_| "fsverdict".into());
    let mut argv: Vec<String> = match sys::is_root() {
        true => NAMESPACES.map(String::from).to_vec(),
        false => Vec::new(),
    };
    let path = |path: &Path| path.display().to_string();
    argv.extend([path(&program), "trial".into(), "--in".into(), path(input)]);
    argv.extend(["--out".into(), path(output)]);
    argv
}

/// Where a trial's file system is mounted, in its own mount namespace: one place for all.
pub fn mount_point() -> PathBuf {
    undo::registry().join("mnt")
}

/// The `/proc` of the whole machine, for the trial's standard input: it reads the clocks of the
/// kernel's threads there.
pub fn machines_proc() -> std::io::Result<Stdio> {
    Ok(File::open("/proc")?.into())
}
