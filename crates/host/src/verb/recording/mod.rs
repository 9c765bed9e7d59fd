//! Recording a command: what was there before it, strace(1) around it, its page faults, and what
//! it hands over by io_uring.

mod faults;
mod nameless;
mod rings;

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use fsverdict_core::model::{Laid, Recording};
use fsverdict_core::recording::{self, Found, Watch, text_of, time_ns};
use thiserror::Error;

use crate::machine::long_path::LongPath;
use crate::sys;
use crate::tool::{self, ToolError};
use faults::Seen;
pub use rings::Rings;

/// strace's options. It stops a thread only at the calls below (`--seccomp-bpf`), and reads names
/// of files whole, but no more data than an access control list of 16 entries has.
const OPTIONS: [&str; 11] = [
    "-f",
    "--seccomp-bpf",
    "-q",
    "-y",
    "-s",
    "132",
    "--signal=none",
    "--absolute-timestamps=format:unix,precision:ns",
    "--syscall-times=ns",
    "-e",
    // strace leaves out what it or the processor does not have.
    "trace=?open,?openat,?openat2,?creat,?close,?close_range,?read,?pread64,?readv,?preadv,\
     ?preadv2,?write,?pwrite64,?writev,?pwritev,?pwritev2,?lseek,?fsync,?fdatasync,?syncfs,?sync,\
     ?sync_file_range,?truncate,?ftruncate,?fallocate,?fadvise64,?readahead,?rename,?renameat,\
     ?renameat2,?unlink,?unlinkat,?mkdir,?mkdirat,?rmdir,?link,?linkat,?symlink,?symlinkat,?mknod,\
     ?mknodat,?bind,?stat,?lstat,?fstat,?newfstatat,?statx,?access,?faccessat,?faccessat2,\
     ?readlink,?readlinkat,?getdents,?getdents64,?chmod,?fchmod,?fchmodat,?fchmodat2,?chown,\
     ?lchown,?fchown,?fchownat,?utime,?utimes,?futimesat,?utimensat,?setxattr,?lsetxattr,\
     ?fsetxattr,?getxattr,?lgetxattr,?fgetxattr,?listxattr,?llistxattr,?flistxattr,?removexattr,\
     ?lremovexattr,?fremovexattr,?copy_file_range,?splice,?sendfile,?sendfile64,?ioctl,?mmap,\
     ?munmap,?mremap,?msync,?madvise,?mlock,?mlock2,?io_uring_setup,?io_uring_enter,?io_submit,\
     ?clone,?clone3,?fork,?vfork,?execve,?execveat,?wait4,?waitpid,?waitid,?chdir,?fchdir,?dup,\
     ?dup2,?dup3,?fcntl,?umask,?fcntl64,?stat64,?lstat64,?fstat64,?fstatat64,?truncate64,\
     ?ftruncate64,?utimensat_time64,?fadvise64_64,?mmap2,?chown32,?lchown32,?fchown32,?_llseek",
];

/// How long a trace of a second's work may take to start, on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why a command could not be recorded.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum NotRecorded {
    #[error("{0}")]
    Tool(#[from] ToolError),
    #[error("{0}: there is no such program")]
    NoProgram(String),
    #[error("{}: {source}", path.display())]
    Path { path: PathBuf, source: io::Error },
    #[error(
        "strace may not trace here: {0}; run it as root, or in a container with CAP_SYS_PTRACE"
    )]
    NotAllowed(String),
    #[error(
        "the command made no call on a file below {0}: name its data folder with --below, and use \
         a command that ends by itself"
    )]
    Nothing(String),
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> NotRecorded {
    move |source| NotRecorded::Path { path: path.into(), source }
}

/// What is to be recorded.
#[derive(Debug)]
pub struct Wanted<'a> {
    /// The command with its arguments.
    pub argv: &'a [String],
    /// The folders whose files count.
    pub below: &'a [PathBuf],
    /// Files keep their names.
    pub keep_names: bool,
    /// What becomes of io_uring.
    pub rings: Rings,
}

/// Runs the command in our working directory and records what it does below the folders; with how
/// it ended.
pub fn record(wanted: &Wanted) -> Result<(Recording, ExitStatus), NotRecorded> {
    tool::command("strace")?;
    let [program, ..] = wanted.argv else { return Err(NotRecorded::NoProgram(String::new())) };
    if !tool::is_there(program) {
        return Err(NotRecorded::NoProgram(program.clone()));
    }
    let working_directory = std::env::current_dir().map_err(at(Path::new(".")))?;
    let folders = folders(wanted.below, &working_directory)?;
    let trace = Trace::new()?;
    let tracer_ns = tried(&trace)?;
    let found = look_at_all(&folders, &trace)?;
    let shown: Vec<&str> = folders.iter().map(|(path, _)| path.as_str()).collect();
    let nothing = || NotRecorded::Nothing(shown.join(", "));
    let temporary = std::env::temp_dir();
    let seen = Seen::begin(&temporary);
    let mut watch = Watch::new(
        recording::Wanted {
            folders: folders.clone(),
            working_directory: text(working_directory),
            umask: umask(),
            keep_names: wanted.keep_names,
            tracer_ns,
            faults: seen.faults,
            page_bytes: sys::page_bytes(),
        },
        found,
    );
    let mut strace = tool::command("strace")?;
    strace.args(OPTIONS).arg("-o").arg(&trace.0).arg("--").args(wanted.argv);
    strace.stdin(Stdio::inherit());
    let start = |source| ToolError::Start { command: "strace".into(), source };
    let rings = wanted.rings.begin(&mut strace, &temporary).map_err(at(&temporary))?;
    let mut running = strace.spawn().map_err(start)?;
    let rings = rings.started(running.id()).map_err(at(&temporary))?;
    let status = running.wait().map_err(start)?;
    read(&mut watch, &trace, seen, rings).map_err(at(&temporary))?;
    let recording = watch.finish(look_at_all(&folders, &trace)?);
    match recording.calls.is_empty() {
        true => Err(nothing()),
        false => Ok((recording, status)),
    }
}

/// Has the watch read all lines, those of io_uring at their places, and the page faults before
/// each.
fn read(watch: &mut Watch, trace: &Trace, seen: Seen, rings: rings::Seen) -> io::Result<()> {
    let (mut faults, lost) = seen.end()?;
    watch.lost_faults(lost);
    let mut rings = rings.end()?;
    watch.lost_requests(rings.lost());
    trace.each_line(|line| {
        watch.foresee(line);
        Ok(())
    })?;
    trace.each_line(|line| {
        let at_ns = time_ns(line).unwrap_or(0);
        while let Some(line) = rings.before(at_ns)? {
            faults.told(time_ns(&line).unwrap_or(0), watch)?;
            watch.read(&line);
        }
        faults.told(at_ns, watch)?;
        if !rings.have(line) {
            watch.read(line);
        }
        Ok(())
    })
}

/// The file of a trace, which goes with this.
struct Trace(PathBuf);

impl Trace {
    /// Among the temporary files, so that the command does not meet it. Nobody else may read it:
    /// strace writes the beginnings of data there.
    fn new() -> Result<Trace, NotRecorded> {
        let folder = std::env::temp_dir();
        let path = folder.join(format!("fsverdict-{}.strace", std::process::id()));
        let path = std::path::absolute(&path).map_err(at(&path))?;
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        options.open(&path).map_err(at(&path))?;
        Ok(Trace(path))
    }

    fn each_line(&self, mut see: impl FnMut(&str) -> io::Result<()>) -> io::Result<()> {
        let mut file = BufReader::new(File::open(&self.0)?);
        let mut line = Vec::new();
        while file.read_until(b'\n', &mut line)? > 0 {
            see(String::from_utf8_lossy(&line).trim_end_matches('\n'))?;
            line.clear();
        }
        Ok(())
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// What strace adds between two calls; an error where it may not trace.
fn tried(trace: &Trace) -> Result<u64, NotRecorded> {
    let words = ["--", "dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=2000", "status=none"];
    let mut argv = vec!["strace".to_string()];
    argv.extend(OPTIONS.map(String::from));
    argv.extend(["-o".into(), trace.0.display().to_string()]);
    argv.extend(words.map(String::from));
    let answer = tool::ask(&argv, Path::new("/"), PATIENCE)?;
    if !answer.status.success() {
        let said = answer.stderr.lines().next().unwrap_or("it does not say why");
        let said = said.trim_start_matches("strace: ").to_string();
        return Err(NotRecorded::NotAllowed(said));
    }
    let mut lines = Vec::new();
    let kept = trace.each_line(|line| {
        lines.push(line.to_string());
        Ok(())
    });
    kept.map_err(at(&trace.0))?;
    Ok(recording::tracer_ns(lines.iter().map(String::as_str)).unwrap_or(0))
}

/// Every path by which a command may name a folder, with the folder's number: its real path, and as
/// it was typed. A folder within another gets that one's number.
fn folders(
    below: &[PathBuf],
    working_directory: &Path,
) -> Result<Vec<(String, usize)>, NotRecorded> {
    let mut real = Vec::new();
    for path in below {
        let canonical = fs::canonicalize(path).map_err(at(path))?;
        if !canonical.is_dir() {
            return Err(at(path)(io::ErrorKind::NotADirectory.into()));
        }
        real.push((canonical, working_directory.join(path)));
    }
    let all: Vec<PathBuf> = real.iter().map(|(canonical, _)| canonical.clone()).collect();
    let is_within = |path: &Path| all.iter().any(|it| it != path && path.starts_with(it));
    real.retain(|(canonical, _)| !is_within(canonical));
    real.dedup_by(|one, other| one.0 == other.0);
    let numbered = (0..).zip(real).flat_map(|(number, (canonical, typed))| {
        let mut paths = vec![text(canonical), text(typed)];
        paths.dedup();
        paths.into_iter().map(move |path| (path, number))
    });
    Ok(numbered.collect())
}

/// Ours, with which the command begins (proc_pid_status(5), since Linux 4.7).
fn umask() -> u32 {
    const USUAL: u32 = 0o022;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let umask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    umask.and_then(|octal| u32::from_str_radix(octal.trim(), 8).ok()).unwrap_or(USUAL)
}

/// No part of the path is a link.
fn is_real(path: &str) -> bool {
    fs::canonicalize(path).is_ok_and(|real| real == Path::new(path))
}

fn text(path: PathBuf) -> String {
    text_of(path.into_os_string().into_vec())
}

/// The content of the folders, except the trace; a folder that is gone has none.
fn look_at_all(folders: &[(String, usize)], trace: &Trace) -> Result<Vec<Found>, NotRecorded> {
    let (mut found, mut seen) = (Vec::new(), None);
    for (path, number) in folders.iter().filter(|(path, _)| is_real(path)) {
        // One of a folder's several paths is enough.
        if seen.replace(*number) != Some(*number) {
            look(Path::new(path), &mut found)?;
        }
    }
    let own = text(fs::canonicalize(&trace.0).map_err(at(&trace.0))?);
    found.retain(|it| it.path != own);
    Ok(found)
}

/// The content of a folder, with itself, parents first. What goes meanwhile counts as not there.
fn look(folder: &Path, found: &mut Vec<Found>) -> Result<(), NotRecorded> {
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let near = LongPath::open(&folder).map_err(at(&folder))?;
        let status = fs::symlink_metadata(near.path()).map_err(at(&folder))?;
        let what = Laid::Directory { mode: status.mode() & 0o7777 };
        found.push(Found { path: text(folder.clone()), what, identity: None });
        for entry in fs::read_dir(near.path()).map_err(at(&folder))?.flatten() {
            let Ok(status) = entry.metadata() else { continue };
            let path = folder.join(entry.file_name());
            if status.is_dir() {
                folders.push(path);
                continue;
            }
            let identity = (status.nlink() > 1).then(|| (status.dev(), status.ino()));
            let what = LongPath::open(&path).and_then(|near| found_there(near.path(), &status));
            if let Ok(what) = what {
                found.push(Found { path: text(path), what, identity });
            }
        }
    }
    Ok(())
}

fn found_there(path: &Path, status: &fs::Metadata) -> io::Result<Laid> {
    let kind = status.file_type();
    Ok(if kind.is_symlink() {
        Laid::Link { target: text(fs::read_link(path)?) }
    } else if kind.is_fifo() || kind.is_socket() || kind.is_char_device() || kind.is_block_device()
    {
        Laid::Special {}
    } else {
        let has_holes = status.blocks() * 512 < status.len();
        let data = if has_holes { data(path)? } else { Vec::new() };
        Laid::File { bytes: status.len(), mode: status.mode() & 0o7777, data }
    })
}

/// Where a file is no hole, from begin to end; a file that is all holes has none of no length.
fn data(path: &Path) -> io::Result<Vec<(u64, u64)>> {
    let file = File::open(path)?;
    let mut parts = Vec::new();
    let mut place = 0;
    while let Some((begin, end)) = sys::next_data(file.as_fd(), place)? {
        parts.push((begin, end));
        place = end;
    }
    if parts.is_empty() {
        parts.push((0, 0));
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn all_there_is_is_found_with_holes_and_second_names() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir(root.join("d")).unwrap();
        fs::write(root.join("d/f"), [1; 5000]).unwrap();
        fs::hard_link(root.join("d/f"), root.join("same")).unwrap();
        symlink("d/f", root.join("link")).unwrap();
        File::create(root.join("hole")).unwrap().set_len(1 << 20).unwrap();
        let mut found = Vec::new();
        look(&root, &mut found).unwrap();
        let of = |name: &str| {
            let path = root.join(name).display().to_string();
            found.iter().find(|it| it.path == path).unwrap_or_else(|| panic!("{name}: {found:?}"))
        };
        assert_eq!(found.len(), 6);
        assert_eq!(found[0].path, root.display().to_string());
        assert_eq!(of("link").what, Laid::Link { target: "d/f".into() });
        assert!(of("same").identity.is_some() && of("same").identity == of("d/f").identity);
        let Laid::File { bytes, data, .. } = &of("hole").what else { panic!("a file") };
        assert_eq!((*bytes, data.as_slice()), (1 << 20, &[(0, 0)][..]));
        let Laid::File { bytes, data, .. } = &of("same").what else { panic!("a file") };
        assert_eq!((*bytes, data.len()), (5000, 0));
    }

    #[test]
    fn a_folder_has_a_number_by_all_its_names() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::create_dir(root.join("c")).unwrap();
        symlink("c", root.join("l")).unwrap();
        let below = ["a", "a/b", "l"].map(|name| root.join(name));
        let shown = |name: &str| root.join(name).display().to_string();
        let expected = [(shown("a"), 0), (shown("c"), 1), (shown("l"), 1)];
        assert_eq!(folders(&below, &root).unwrap(), expected);
        let error = folders(&[root.join("none")], &root).unwrap_err().to_string();
        assert!(error.contains("none: No such file"), "{error}");
    }
}
