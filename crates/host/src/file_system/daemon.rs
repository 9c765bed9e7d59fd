//! Starting the program that does a file system's work, within a trial.

use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use fsverdict_core::run::HostError;

use super::Daemon;
use crate::machine::mount::{self, Mount};
use crate::machine::plain;
use crate::tool;

const PATIENCE: Duration = Duration::from_secs(60);
/// The most that is read of what one says until it is ready.
const SAID_BYTES_MAX: usize = 64 << 10;
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
    let (mut child, said) = spawn(daemon.argv, log)?;
    wait(&mut child, daemon.argv[0], &said, || Ok(Path::new(daemon.socket).exists()))
}

/// Starts the program that mounts a file system at `at` and does its work, and waits until it is
/// mounted and the program `says` so, where it says anything. It ends when that is unmounted, and
/// with the trial's PID namespace at the latest.
pub fn serve(argv: &[String], says: &str, at: &str, log: &Path) -> Result<(), HostError> {
    let (mut child, said) = spawn(argv, log)?;
    wait(&mut child, &argv[0], &said, || {
        Ok(said.text()?.contains(says) && mount::at(at)?.is_some_and(|it| is_programs(&it)))
    })
}

/// Starts the program that gives out what is mounted afterwards, and waits until it listens at
/// `port`. It ends with the trial's PID namespace at the latest.
pub fn listen(argv: &[String], port: u16, log: &Path) -> Result<(), HostError> {
    let (mut child, said) = spawn(argv, log)?;
    let is_heard = || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
    wait(&mut child, &argv[0], &said, || Ok(is_heard()))
}

fn is_programs(mount: &Mount) -> bool {
    mount.file_system.starts_with("fuse")
}

/// What a program has said in a log, from where it began. The work may write to that folder: a file
/// of the log's name may be a pipe, or larger than memory.
struct Said {
    log: File,
    begin: u64,
}

impl Said {
    fn open(path: &Path) -> io::Result<Said> {
        let options = &mut File::options();
        let log = plain::open_among_others(path, options.create(true).read(true).append(true));
        let log = log.map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        })?;
        Ok(Said { begin: log.metadata()?.len(), log })
    }

    fn text(&self) -> io::Result<String> {
        let mut said = vec![0; SAID_BYTES_MAX];
        let bytes = self.log.read_at(&mut said, self.begin)?;
        Ok(String::from_utf8_lossy(&said[..bytes]).into_owned())
    }
}

/// Its input is empty, and what it says goes to `log`.
fn spawn(argv: &[impl AsRef<str>], log: &Path) -> Result<(Child, Said), HostError> {
    let said = Said::open(log)?;
    let mut command = tool::command(argv[0].as_ref())?;
    command.args(argv[1..].iter().map(AsRef::as_ref)).stdin(Stdio::null());
    let child = command.stdout(said.log.try_clone()?).stderr(said.log.try_clone()?).spawn()?;
    Ok((child, said))
}

fn wait(
    child: &mut Child,
    name: &str,
    said: &Said,
    is_ready: impl Fn() -> io::Result<bool>,
) -> Result<(), HostError> {
    let begin = Instant::now();
    while !is_ready()? {
        let said = || said.text().unwrap_or_default().trim().replace('\n', "; ");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_log_that_the_work_has_left_only_what_is_said_now_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        File::create(path("sparse")).unwrap().set_len(1 << 40).unwrap();
        let (mut child, said) = spawn(&["echo", "ready"], &path("sparse")).unwrap();
        child.wait().unwrap();
        assert_eq!(said.text().unwrap(), "ready\n");
        tool::run_words(&["mkfifo", &path("pipe").display().to_string()]).unwrap();
        assert!(spawn(&["echo", "ready"], &path("pipe")).is_err());
    }
}
