//! The one place that starts programs.
//!
//! System tools are looked for in fixed directories, not in `PATH`: as root, `PATH` may hold
//! anything, and as a user it lacks `/usr/sbin`, where mkfs lives. Only QEMU may also come from
//! `PATH`, for a user without privileges: users build it for themselves, and no guest has to find
//! it. A workload's own command is found as its user's shell would find it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use fsverdict_core::model;
use thiserror::Error;

use crate::sys::{self, Awaited};

/// Where the system's programs are.
pub const DIRECTORIES: [&str; 6] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// Which Debian package brings a program.
const PACKAGES: [(&str, &str); 73] = [
    ("apt-cache", "apt"),
    ("apt-get", "apt"),
    ("bcachefs", "bcachefs-tools"),
    ("bindfs", "bindfs"),
    ("blkid", "util-linux"),
    ("blockdev", "util-linux"),
    ("cat", "coreutils"),
    ("chroot", "coreutils"),
    ("cryptsetup", "cryptsetup-bin"),
    ("curl", "curl"),
    ("dd", "coreutils"),
    ("depmod", "kmod"),
    ("diod", "diod"),
    ("dmsetup", "dmsetup"),
    ("dpkg", "dpkg"),
    ("echo", "coreutils"),
    ("ethtool", "ethtool"),
    ("fio", "fio"),
    ("fusermount3", "fuse3"),
    ("gocryptfs", "gocryptfs"),
    ("integritysetup", "cryptsetup-bin"),
    ("ip", "iproute2"),
    ("ldd", "libc-bin"),
    ("losetup", "mount"),
    ("lvm", "lvm2"),
    ("make-bcache", "bcache-tools"),
    ("mdadm", "mdadm"),
    ("mergerfs", "mergerfs"),
    ("mkdir", "coreutils"),
    ("mkfs.bcachefs", "bcachefs-tools"),
    ("mkfs.btrfs", "btrfs-progs"),
    ("mkfs.erofs", "erofs-utils"),
    ("mkfs.exfat", "exfatprogs"),
    ("mkfs.ext2", "e2fsprogs"),
    ("mkfs.ext3", "e2fsprogs"),
    ("mkfs.ext4", "e2fsprogs"),
    ("mkfs.f2fs", "f2fs-tools"),
    ("mkfs.fat", "dosfstools"),
    ("mkfs.gfs2", "gfs2-utils"),
    ("mkfs.jfs", "jfsutils"),
    ("mkfs.nilfs2", "nilfs-tools"),
    ("mkfs.ocfs2", "ocfs2-tools"),
    ("mkfs.xfs", "xfsprogs"),
    ("mkntfs", "ntfs-3g"),
    ("mkreiserfs", "reiserfsprogs"),
    ("mksquashfs", "squashfs-tools"),
    ("mkudffs", "udftools"),
    ("mount", "mount"),
    ("nsenter", "util-linux"),
    ("ntfs-3g", "ntfs-3g"),
    ("parted", "parted"),
    ("partx", "util-linux"),
    ("qemu-system-aarch64", "qemu-system-arm"),
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("rsvg-convert", "librsvg2-bin"),
    ("rsync", "rsync"),
    ("sgdisk", "gdisk"),
    ("smbd", "samba"),
    ("strace", "strace"),
    ("swapon", "mount"),
    ("sysbench", "sysbench"),
    ("tc", "iproute2"),
    ("tune2fs", "e2fsprogs"),
    ("umount", "mount"),
    ("unshare", "util-linux"),
    ("vdoformat", "vdo"),
    ("vsftpd", "vsftpd"),
    ("wipefs", "util-linux"),
    ("xz", "xz-utils"),
    ("zfs-fuse", "zfs-fuse"),
    ("zpool", "zfsutils-linux"),
    ("zramctl", "util-linux"),
    ("zstd", "zstd"),
];

/// How QEMU's programs are called.
const EMULATORS: &str = "qemu-system-";

/// How long a system tool may take where no step of a trial says it.
const LIMIT: Duration = Duration::from_secs(600);
/// How long one that was killed is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// A program with its arguments.
pub type Argv = Vec<String>;

/// A program that could not do its work.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ToolError {
    #[error("{program} is not installed{}", hint(program))]
    Missing { program: String },
    #[error("{command} could not be started: {source}")]
    Start { command: String, source: std::io::Error },
    #[error("{command} {}{}", ended(*status), said(stdout, stderr))]
    Failed { command: String, status: ExitStatus, stdout: String, stderr: String },
    #[error("{command} was not done after {} s", limit.as_secs())]
    Slow { command: String, limit: Duration },
    #[error("{command} printed more than {} MiB, which is no answer", ANSWER_BYTES_MAX >> 20)]
    TooMuch { command: String },
    #[error("{program} is a script, and its shell might run a part of {word:?}: it is not started")]
    Script { program: String, word: String },
}

fn hint(program: &str) -> String {
    package(program).map(|name| format!(": apt-get install {name}")).unwrap_or_default()
}

/// The Debian package that brings `program`, where it is one of the tools used here.
pub fn package(program: &str) -> Option<&'static str> {
    PACKAGES.iter().find(|(known, _)| *known == program).map(|(_, package)| *package)
}

/// How a program ended, as the end of a sentence.
pub fn ended(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("failed with exit status {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "ended in an unknown way".into(),
    }
}

/// The beginning of what a program said, standard error before standard output: mkfs says what is
/// wrong first and how it is used after that, which is left out.
fn said(stdout: &str, stderr: &str) -> String {
    let text = if stderr.trim().is_empty() { stdout } else { stderr };
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let usage = |line: &&str| line.to_lowercase().starts_with("usage:");
    let end = lines.iter().skip(1).position(usage).map_or(lines.len(), |place| place + 1);
    let head = &lines[..end.min(3)];
    if head.is_empty() { String::new() } else { format!(": {}", head.join("; ")) }
}

/// Where a system tool is; `None` if it is not installed.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").filter(|_| !sys::is_root());
    find_also_in(program, &path.unwrap_or_default())
}

/// [`find`], with the `PATH` of a user without rights, or an empty one.
fn find_also_in(program: &str, path: &OsStr) -> Option<PathBuf> {
    if program.contains('/') {
        return Path::new(program).exists().then(|| program.into());
    }
    let users = std::env::split_paths(path)
        .filter(|folder| folder.is_absolute() && program.starts_with(EMULATORS));
    let folders = DIRECTORIES.iter().map(PathBuf::from).chain(users);
    folders.map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// What a workload needs is there: a file by its path, or a program where system tools are or
/// where `PATH` leads its user's shell.
pub fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    find(program).is_some() || std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

/// What a workload's need may be found as: `A|B` is the one or the other, and `*` for a folder in a
/// path the one of the highest version that has the rest.
pub fn needed(need: &str) -> impl Iterator<Item = String> {
    need.split('|').map(|path| newest(path).unwrap_or_else(|| path.into()))
}

/// [`needed`], for programs that have `root` as `/`.
pub fn needed_below(root: &Path, need: &str) -> impl Iterator<Item = String> {
    let root = root.display().to_string();
    need.split('|').map(move |path| {
        let found = newest(&format!("{root}{path}"));
        let below = found.and_then(|it| Some(it.strip_prefix(&root)?.to_string()));
        below.unwrap_or_else(|| path.into())
    })
}

fn newest(path: &str) -> Option<String> {
    let (folder, rest) = path.split_once("/*/")?;
    let version = |name: &String| -> Vec<u64> {
        name.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
    };
    let entries = std::fs::read_dir(folder).ok()?.flatten();
    let names = entries.map(|entry| entry.file_name().display().to_string());
    let found = names.filter(|name| Path::new(folder).join(name).join(rest).exists());
    let name = found.max_by_key(version)?;
    Some(format!("{folder}/{name}/{rest}"))
}

/// Nothing of `argv`, which others wrote, is run but the system's own program: it has no path, and
/// where it is a script, its arguments mean nothing to a shell. xfs_admin has its own go through
/// `eval`.
pub fn check_foreign(argv: &[String]) -> Result<(), ToolError> {
    let (program, arguments) = (argv[0].clone(), &argv[1..]);
    let path = find(&program).filter(|_| !program.contains('/'));
    let Some(path) = path else { return Err(ToolError::Missing { program }) };
    let mut start = [0; 2];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut start));
    // What can't be read is taken for a script.
    if read.is_ok() && &start != b"#!" {
        return Ok(());
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "._:=^,/-".contains(c);
    match arguments.iter().find(|word| word.is_empty() || !word.chars().all(plain)) {
        Some(word) => Err(ToolError::Script { program, word: word.clone() }),
        None => Ok(()),
    }
}

/// A system tool, ready to be given arguments and started.
pub fn command(program: &str) -> Result<Command, ToolError> {
    let path = find(program).ok_or_else(|| ToolError::Missing { program: program.into() })?;
    let mut command = new(path);
    command.stdin(Stdio::null());
    if program == "sh" {
        // What a line of ours names is looked for where we look ourselves.
        command.env("PATH", DIRECTORIES.join(":"));
    }
    Ok(command)
}

/// A workload's program, found through `PATH` as its user's shell would find it.
pub fn users(argv: &[String]) -> Command {
    let mut command = new(&argv[0]);
    command.args(&argv[1..]).stdin(Stdio::null());
    command
}

#[expect(clippy::disallowed_methods, reason = "this is that one place")]
fn new(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}

/// Runs a system tool to its end, for ten minutes at most; gives its standard output.
pub fn run(argv: &[String]) -> Result<String, ToolError> {
    let Answer { status, stdout, stderr } = ask_where(argv, LIMIT, |_| Ok(()))?;
    match status.success() {
        true => Ok(stdout),
        false => Err(ToolError::Failed { command: shown(argv), status, stdout, stderr }),
    }
}

/// What `command` prints, to its end. The standard library's own way to get it panics where a pipe
/// can't be read.
fn output(command: &mut Command) -> std::io::Result<Output> {
    let mut child = Awaited::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()))?;
    let stderr = reader(child.stderr.take()).inspect_err(|_| {
        let _ = child.kill().and_then(|()| child.wait());
    })?;
    let stdout = all_of(child.stdout.take());
    let status = child.wait()?;
    Ok(Output { status, stdout: stdout?, stderr: read(stderr)? })
}

/// Output is at most this long: a decompressed module is the longest, and a stranger's can be
/// endless.
const OUTPUT_BYTES_MAX: u64 = 512 << 20;

/// Where it is more the pipe is closed, which ends the program.
fn all_of(pipe: Option<impl Read>) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    pipe.map_or(Ok(0), |pipe| pipe.take(OUTPUT_BYTES_MAX + 1).read_to_end(&mut bytes))?;
    match bytes.len() as u64 > OUTPUT_BYTES_MAX {
        true => Err(std::io::Error::other("it prints more than 512 MiB")),
        false => Ok(bytes),
    }
}

impl ToolError {
    /// The tool found its device held by somebody else, which its status does not tell apart: as
    /// strerror(3) says EBUSY in English.
    pub fn is_busy(&self) -> bool {
        let says = |said: &str| said.contains("Device or resource busy");
        matches!(self, ToolError::Failed { stderr, .. } if says(stderr))
    }
}

/// Runs one after the other, for as long as the step of the trial may take; gives their standard
/// output together.
pub fn run_all(commands: &[Vec<String>]) -> Result<String, ToolError> {
    commands.iter().map(|argv| Ok(String::from_utf8_lossy(&bytes(argv)?).into_owned())).collect()
}

/// Runs a system tool that prints no text to its end.
pub fn bytes(argv: &[String]) -> Result<Vec<u8>, ToolError> {
    let mut command = command(&argv[0])?;
    command.args(&argv[1..]);
    let output =
        output(&mut command).map_err(|source| ToolError::Start { command: shown(argv), source })?;
    succeeded(argv, &output)?;
    Ok(output.stdout)
}

/// [`run`] of words that need no owning.
pub fn run_words(argv: &[&str]) -> Result<String, ToolError> {
    run(&argv.iter().map(|&word| word.to_string()).collect::<Vec<_>>())
}

/// `argv` as one would type it.
pub fn shown(argv: &[String]) -> String {
    model::Command::Argv(argv.to_vec()).to_string()
}

/// No answer is longer: endless output would fill the memory.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// A program's answer, whether it succeeded or not.
#[derive(Debug)]
pub struct Answer {
    /// How it ended.
    pub status: ExitStatus,
    /// What it printed.
    pub stdout: String,
    /// What it complained about.
    pub stderr: String,
}

/// Runs a system tool in `folder` and gives its answer, in English. One that is not done within
/// `limit` is killed, with all that it has started.
pub fn ask(argv: &[String], folder: &Path, limit: Duration) -> Result<Answer, ToolError> {
    ask_where(argv, limit, |command| {
        command.current_dir(folder);
        Ok(())
    })
}

/// [`ask`], where `place` says.
pub fn ask_where(
    argv: &[String],
    limit: Duration,
    place: impl FnOnce(&mut Command) -> std::io::Result<()>,
) -> Result<Answer, ToolError> {
    let start = |source| ToolError::Start { command: shown(argv), source };
    let mut command = command(&argv[0])?;
    command.args(&argv[1..]).env("LC_ALL", "C");
    place(&mut command).map_err(start)?;
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    sys::bind_to_us(&mut command);
    let mut child = Awaited::start(&mut command).map_err(start)?;
    let stdout = capped(child.stdout.take());
    let both = stdout.and_then(|stdout| Ok((stdout, capped(child.stderr.take())?)));
    let (stdout, stderr) = both.map_err(|source| {
        sys::kill_group(child.id());
        let _ = child.wait();
        start(source)
    })?;
    // After a kill another process may hold the pipes for ever.
    let Some(status) = wait(&mut child, limit, &mut |_| {}).map_err(start)? else {
        return Err(ToolError::Slow { command: shown(argv), limit });
    };
    let (stdout, stderr) = (read(stdout).map_err(start)?, read(stderr).map_err(start)?);
    if stdout.len().max(stderr.len()) as u64 > ANSWER_BYTES_MAX {
        return Err(ToolError::TooMuch { command: shown(argv) });
    }
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(Answer { status, stdout: text(stdout), stderr: text(stderr) })
}

/// Runs a system tool that takes long, with all that it says in `log`, and with nothing open that
/// was left to us; `tick` hears meanwhile how
/// long it has been running. One that is not done within `limit` is killed.
pub fn logged(
    argv: &[String],
    log: File,
    limit: Duration,
    tick: &mut dyn FnMut(Duration),
) -> Result<ExitStatus, ToolError> {
    let start = |source| ToolError::Start { command: shown(argv), source };
    let mut command = command(&argv[0])?;
    command.args(&argv[1..]).env("LC_ALL", "C").current_dir("/");
    command.stdout(log.try_clone().map_err(start)?).stderr(log);
    sys::start_with_nothing_open(&mut command);
    sys::bind_to_us(&mut command);
    let mut child = Awaited::start(&mut command).map_err(start)?;
    let status = wait(&mut child, limit, tick).map_err(start)?;
    status.ok_or_else(|| ToolError::Slow { command: argv[0].clone(), limit })
}

type Reader = std::thread::JoinHandle<std::io::Result<Vec<u8>>>;

/// Reads a pipe to its end beside us, so that a program that says much is not held up.
fn reader(pipe: Option<impl Read + Send + 'static>) -> std::io::Result<Reader> {
    std::thread::Builder::new().spawn(move || all_of(pipe))
}

/// The same, up to one byte more than the longest answer. Then the pipe is closed: a program that
/// prints more does not block, SIGPIPE ends it.
fn capped(pipe: Option<impl Read + Send + 'static>) -> std::io::Result<Reader> {
    reader(pipe.map(|pipe| pipe.take(ANSWER_BYTES_MAX + 1)))
}

fn read(reader: Reader) -> std::io::Result<Vec<u8>> {
    reader.join().map_err(|_| std::io::Error::other("reading it ended"))?
}

/// `None` if it had to be killed.
fn wait(
    child: &mut Child,
    limit: Duration,
    tick: &mut dyn FnMut(Duration),
) -> std::io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        tick(start.elapsed());
        if start.elapsed() > limit {
            sys::kill_group(child.id());
            // The kernel may not let go of one that waits for a disk.
            let killed = Instant::now();
            while child.try_wait()?.is_none() && killed.elapsed() < PATIENCE {
                std::thread::sleep(Duration::from_millis(1));
            }
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn succeeded(argv: &[String], output: &Output) -> Result<String, ToolError> {
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(stdout);
    }
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(ToolError::Failed { command: shown(argv), status: output.status, stdout, stderr })
}

/// The version that a command prints, on whichever output: the first line.
pub fn version(argv: &[&str]) -> Option<String> {
    let output = output(command(argv[0]).ok()?.args(&argv[1..])).ok()?;
    let said = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    String::from_utf8_lossy(&said).lines().next().map(|line| line.trim().to_string())
}

/// Unmounts, for a test: tried again while the file system is busy, as a process that a test beside
/// it begins has this one's open files until it is another program.
#[cfg(test)]
pub fn unmount(at: &str) {
    let start = Instant::now();
    while let Err(error) = run_words(&["umount", at]) {
        assert!(start.elapsed() < Duration::from_secs(300), "{error}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_without_end_is_refused() {
        for line in ["yes", "yes >&2"] {
            let words = ["sh", "-c", line].map(String::from);
            let refused = ask(&words, Path::new("/"), Duration::from_secs(600)).unwrap_err();
            assert!(matches!(refused, ToolError::TooMuch { .. }), "{refused}");
        }
    }

    #[test]
    fn of_what_lies_on_the_path_only_a_qemu_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let own = |name: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, "").unwrap();
            path
        };
        let (qemu, mkfs) = ("qemu-system-none", "mkfs.none");
        let (path, _) = (own(qemu), own(mkfs));
        let of = folder.path().as_os_str();
        assert_eq!(find_also_in(qemu, of), Some(path));
        assert_eq!(find_also_in(mkfs, of), None, "as root it may be anybody's");
        assert_eq!(find_also_in(qemu, OsStr::new("")), None);
        assert_eq!(find_also_in(qemu, OsStr::new("relative")), None);
        assert_eq!(find_also_in("mount", of), find("mount"), "the system's come first");
    }

    /// ldd is a script of bash on every Debian, mount is none.
    #[test]
    fn a_script_gets_nothing_that_its_shell_could_run() {
        let check = |words: &[&str]| {
            check_foreign(&words.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        for word in ["x';cd;id>pwned;#", "$(id)", "`id`", "a b", "a\nb", "\"", "*"] {
            let refused = check(&["ldd", "-L", word]).unwrap_err();
            assert!(matches!(refused, ToolError::Script { .. }), "{word}: {refused}");
            check(&["mount", "-L", word]).unwrap();
        }
        check(&["ldd", "-L", "data-1.2", "-O", "bigtime=1,inobtcount=1", "/dev/loop0"]).unwrap();
        let path = find("mount").unwrap().display().to_string();
        assert!(matches!(check(&[path.as_str()]), Err(ToolError::Missing { .. })));
    }

    #[test]
    fn of_several_versions_the_newest_that_has_the_program_is_needed() {
        let folder = tempfile::tempdir().unwrap();
        for version in ["9.6", "15", "100"] {
            std::fs::create_dir_all(folder.path().join(version).join("bin")).unwrap();
        }
        for version in ["9.6", "15"] {
            std::fs::write(folder.path().join(version).join("bin/initdb"), "").unwrap();
        }
        let folder = folder.path().display();
        let needed: Vec<String> = needed(&format!("{folder}/*/bin/initdb|initdb")).collect();
        assert_eq!(needed, [format!("{folder}/15/bin/initdb"), "initdb".into()]);
    }

    #[test]
    fn a_failure_names_the_command_its_status_and_what_it_said() {
        let error = run_words(&["sh", "-c", "echo no space >&2; exit 3"]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "sh -c 'echo no space >&2; exit 3' failed with exit status 3: no space"
        );
    }

    #[test]
    fn a_program_that_is_not_done_in_time_is_killed_with_its_children() {
        let argv = ["sh", "-c", "sleep 600 & sleep 600"].map(String::from);
        let start = Instant::now();
        let error = ask(&argv, Path::new("/"), Duration::from_millis(50)).unwrap_err();
        assert!(matches!(error, ToolError::Slow { .. }), "{error}");
        assert!(start.elapsed() < Duration::from_secs(300), "the children hold the pipes");
        let argv = ["sh", "-c", "echo out; echo err >&2; exit 3"].map(String::from);
        let answer = ask(&argv, Path::new("/"), Duration::from_secs(300)).unwrap();
        assert_eq!((answer.stdout.as_str(), answer.stderr.as_str()), ("out\n", "err\n"));
        assert_eq!(answer.status.code(), Some(3));
    }

    #[test]
    fn what_a_long_one_says_is_in_its_log_while_it_runs() {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let script =
            format!("echo one; while [ -s {} ]; do sleep 0.01; done; exit 3", path.display());
        let argv = ["sh".to_string(), "-c".into(), script];
        let mut seen = String::new();
        let mut tick = |_| {
            if seen.is_empty() {
                seen = std::fs::read_to_string(&path).unwrap();
            } else {
                File::create(&path).unwrap();
            }
        };
        let limit = Duration::from_secs(1800);
        let status = logged(&argv, File::create(&path).unwrap(), limit, &mut tick).unwrap();
        assert_eq!((status.code(), seen.as_str()), (Some(3), "one\n"));
    }

    #[test]
    fn a_missing_tool_says_what_to_install() {
        let error = ToolError::Missing { program: "mkfs.xfs".into() }.to_string();
        assert_eq!(error, "mkfs.xfs is not installed: apt-get install xfsprogs");
    }
}
