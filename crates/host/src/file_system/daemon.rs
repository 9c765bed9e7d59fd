//! Starting the program that does a file system's work, within a trial.

use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use fsverdict_core::run::HostError;

use super::Daemon;
use crate::machine::mount::{self, Mount};
use crate::tool;

const PATIENCE: Duration = Duration::from_secs(60);
/// What the mounts that cover its folders are called in mountinfo.
pub const COVER: &str = "fsverdict";

/// The command that covers `folder` with an empty one.
pub fn cover_argv(folder: &str) -> [&str; 6] {
    ["mount", "-t", "tmpfs", COVER, folder, "-omode=0700"]
}

/// Starts it and waits until it is ready; what it says goes to `log`. It ends with the trial's PID
/// namespace at the latest.
pub fn start(daemon: &Daemon, log: &Path) -> Result<(), HostError> {
    // Anywhere else the covers would be over the machine's own folders.
    if std::process::id() != 1 {
        return Err(format!("{} needs a trial with namespaces of its own", daemon.argv[0]).into());
    }
    for folder in daemon.folders {
        fs::create_dir_all(folder)?;
        if mount::at(folder)?.is_none_or(|mount| mount.source != COVER) {
            tool::run_words(&cover_argv(folder))?;
        }
    }
    let _ = fs::remove_file(daemon.socket);
    let mut child = spawn(daemon.argv, log)?;
    wait(&mut child, daemon.argv[0], log, || Ok(Path::new(daemon.socket).exists()))
}

/// Starts the program that mounts a file system at `at` and does its work, and waits until it is
/// mounted and the program `says` so, where it says anything. It ends when that is unmounted, and
/// with the trial's PID namespace at the latest.
pub fn serve(argv: &[String], says: &str, at: &str, log: &Path) -> Result<(), HostError> {
    let before = fs::metadata(log).map_or(0, |it| it.len() as usize);
    let mut child = spawn(argv, log)?;
    wait(&mut child, &argv[0], log, || {
        let said = fs::read(log)?;
        let said = String::from_utf8_lossy(said.get(before..).unwrap_or_default());
        Ok(said.contains(says) && mount::at(at)?.is_some_and(|it| is_programs(&it)))
    })
}

/// Starts the program that gives out what is mounted afterwards, and waits until it listens at
/// `port`. It ends with the trial's PID namespace at the latest.
pub fn listen(argv: &[String], port: u16, log: &Path) -> Result<(), HostError> {
    let mut child = spawn(argv, log)?;
    let is_heard = || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
    wait(&mut child, &argv[0], log, || Ok(is_heard()))
}

fn is_programs(mount: &Mount) -> bool {
    mount.file_system.starts_with("fuse")
}

/// Its input is empty, and what it says goes to `log`.
fn spawn(argv: &[impl AsRef<str>], log: &Path) -> Result<Child, HostError> {
    let file =
        File::options().create(true).append(true).custom_flags(libc::O_NOFOLLOW).open(log)?;
    let mut command = tool::command(argv[0].as_ref())?;
    command.args(argv[1..].iter().map(AsRef::as_ref)).stdin(Stdio::null());
    Ok(command.stdout(file.try_clone()?).stderr(file).spawn()?)
}

fn wait(
    child: &mut Child,
    name: &str,
    log: &Path,
    is_ready: impl Fn() -> io::Result<bool>,
) -> Result<(), HostError> {
    let begin = Instant::now();
    while !is_ready()? {
        let said = || fs::read_to_string(log).unwrap_or_default().trim().replace('\n', "; ");
        if let Some(status) = child.try_wait()? {
            return Err(format!("{name} {}; it said: {:?}", tool::ended(status), said()).into());
        }
        if begin.elapsed() > PATIENCE {
            return Err(format!("{name} is not ready after {PATIENCE:?}: {}", said()).into());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}
