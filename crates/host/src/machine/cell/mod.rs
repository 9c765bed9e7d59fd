//! The cell: where the work of a trial runs. Its root shows the machine's files, but only what the
//! work is for can be written; there are no devices, and a process's powers as root end at the cell
//! (user_namespaces(7)). ARCHITECTURE.md says why it is made so.

mod mapped;
mod root;
mod starter;

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use fsverdict_core::model::Astray;
use thiserror::Error;

use crate::machine::keys;
use crate::sys::{self, Awaited, Holder, NewNamespace};
pub use root::private_folders;
use starter::Starter;

/// What a cell is made for.
#[derive(Clone, Debug, Default)]
pub struct Ground {
    /// The mount of the file system under test, where the trial has made one.
    pub bed: Option<PathBuf>,
    /// What may be written: folders.
    pub writable: Vec<PathBuf>,
    /// What the work names: the mounts that hold it are kept.
    pub named: Vec<PathBuf>,
    /// Files that must be there as they are: a network namespace to enter.
    pub kept: Vec<PathBuf>,
    /// Devices that may be opened.
    pub devices: Vec<PathBuf>,
    /// Folders that the work finds at paths of its own.
    pub mapped: Vec<Mapped>,
    /// Folders that others may not look into: they are shown with nothing in them but the path to
    /// what is mounted below. Nothing that the work leaves there can be reached from outside.
    pub shut: Vec<PathBuf>,
    /// A folder that may be written until the cells are sealed, and is only read from then on.
    pub kept_back: Option<PathBuf>,
    /// For tools that have some of our powers: they see no processes, because `/proc/PID/root` and
    /// `/proc/PID/fd` of another lead out (proc_pid_root(5)), and no terminal, because they are in
    /// our session.
    pub for_tools: bool,
}

/// A folder at a path of the work's own, which the machine need not have.
#[derive(Clone, Debug)]
pub struct Mapped {
    /// Where the work finds it.
    pub at: PathBuf,
    /// What is there: a folder, and a path below it. `None`: an empty folder.
    pub to: Option<[PathBuf; 2]>,
}

impl Ground {
    fn places(&self) -> impl Iterator<Item = &Path> {
        let own = self.writable.iter().chain(&self.named).chain(&self.kept);
        let own = own.chain(&self.kept_back);
        own.chain(self.mapped.iter().map(|it| &it.at)).map(PathBuf::as_path)
    }
}

/// Why there is no cell.
#[derive(Debug, Error)]
#[error("the work can't be confined: {what}: {source}")]
pub struct CellError {
    what: String,
    source: io::Error,
}

impl CellError {
    fn of(what: impl ToString) -> impl FnOnce(io::Error) -> CellError {
        move |source| CellError { what: what.to_string(), source }
    }
}

/// A cell. It is gone when this and the last process in it are.
#[derive(Debug)]
pub enum Cell {
    /// Root's.
    Namespaces(Namespaces),
    /// For a user, who may mount nothing: rules of Landlock.
    Rules(OwnedFd),
}

/// The namespaces of a cell.
#[derive(Debug)]
pub struct Namespaces {
    user: OwnedFd,
    mounts: OwnedFd,
    /// What is private in them.
    grown: root::Grown,
    /// Who starts its commands, if the kernel has rules for abstract sockets.
    starter: Option<Starter>,
    /// There are keys to keep from it.
    has_keys: bool,
}

impl Cell {
    /// What was written in it outside the writable folders. Rules refuse such writes.
    pub fn left(&self) -> Astray {
        match self {
            Cell::Namespaces(it) => it.grown.left(),
            Cell::Rules(_) => Astray::default(),
        }
    }

    /// Lets nothing more be written to the folder `kept_back`, by those that are in it already
    /// either; a user's commands that run already keep what they may.
    fn seal(&mut self, kept_back: &Path, ground: &Ground) -> Result<(), CellError> {
        let read_only = || CellError::of(format!("{} to be read alone", kept_back.display()));
        match self {
            Cell::Namespaces(it) => within(&it.mounts, || sys::make_read_only(kept_back))
                .and_then(|done| done)
                .map_err(read_only()),
            Cell::Rules(held) => {
                *held = rules(ground, true)?;
                Ok(())
            }
        }
    }

    /// `command` within, in `directory`, to be started under the same rules as all others of it.
    pub fn command(&self, mut command: Command, directory: &Path) -> Result<Confined, CellError> {
        let starter = match self {
            Cell::Namespaces(it) => {
                it.enter(&mut command, None, directory).map_err(CellError::of("a command"))?;
                it.starter.clone()
            }
            Cell::Rules(_) => {
                self.confine(&mut command, directory)?;
                None
            }
        };
        Ok(Confined { command, starter })
    }

    /// Has `command` run within, in `directory`: a tool that is none of the work's, under rules of
    /// its own.
    pub fn confine(&self, command: &mut Command, directory: &Path) -> Result<(), CellError> {
        let confined = match self {
            Cell::Namespaces(it) => {
                // Not every kernel has them.
                let rules = sys::rules_of_sockets().ok();
                it.enter(command, rules.as_ref().map(AsFd::as_fd), directory)
            }
            Cell::Rules(rules) => {
                command.current_dir(directory);
                sys::start_under(command, rules.as_fd())
            }
        };
        confined.map_err(CellError::of("a command"))
    }
}

impl Namespaces {
    /// Has `command` start in them, in `directory`, under Landlock's `rules`.
    fn enter(
        &self,
        command: &mut Command,
        rules: Option<BorrowedFd<'_>>,
        directory: &Path,
    ) -> io::Result<()> {
        sys::start_within(command, self.user.as_fd(), self.mounts.as_fd(), rules, directory)?;
        // Where users of the machine have keys that could be taken: a filter of system calls would
        // make all work slower by some percent, for nothing where there are none.
        if self.has_keys {
            sys::start_without_keys(command);
        }
        Ok(())
    }
}

/// A command of the work, ready to be started.
#[derive(Debug)]
pub struct Confined {
    command: Command,
    starter: Option<Starter>,
}

impl Confined {
    /// Starts it.
    pub fn start(mut self) -> io::Result<Awaited> {
        match &self.starter {
            Some(starter) => starter.start(self.command),
            None => Awaited::start(&mut self.command),
        }
    }
}

/// One that no cell keeps, where there can be none.
impl From<Command> for Confined {
    fn from(command: Command) -> Confined {
        Confined { command, starter: None }
    }
}

/// Makes the cell of `ground`, as one of the user namespace `user`.
pub fn make(ground: &Ground, user: &OwnedFd, is_sealed: bool) -> Result<Cell, CellError> {
    let thread_failed = || CellError::of("a thread")(io::Error::other("it did not end well"));
    let home = File::open("/proc/self/ns/mnt").map_err(CellError::of("/proc/self/ns/mnt"))?;
    // Not every kernel has them.
    let starter = sys::rules_of_sockets().ok().map(Starter::new).transpose();
    let starter = starter.map_err(CellError::of("Landlock"))?;
    // The thread gets mounts of its own, and a root of its own.
    std::thread::scope(|scope| {
        let make = || {
            let grown = root::grow(ground, is_sealed)?;
            let holder = Holder::new(Some(user.as_fd()), NewNamespace::Mounts)
                .map_err(CellError::of("a mount namespace"))?;
            let mounts = opened(&holder, NewNamespace::Mounts)?;
            // Its memory goes while we do the rest; no work begins before it has ended.
            holder.end();
            let user = user.try_clone().map_err(CellError::of("its user namespace"))?;
            sys::enter_mounts(home.as_fd()).map_err(CellError::of("the way back"))?;
            let has_keys = keys::are_in_reach();
            Ok(Cell::Namespaces(Namespaces { user, mounts, grown, starter, has_keys }))
        };
        let made = std::thread::Builder::new().spawn_scoped(scope, make);
        let made = made.map_err(CellError::of("a thread"))?;
        made.join().unwrap_or_else(|_| Err(thread_failed()))
    })
}

/// Nodes that tools of file systems tell the kernel by, where there are such.
const CONTROLS: [&str; 1] = ["/dev/btrfs-control"];

/// In [`among`]: a file that can be made there, in memory.
pub const IMAGE: &str = "/dev/shm/image";

/// Has `tools` run where they find no device but `devices`, and can write nowhere else: what a plan
/// has for their command lines may name other disks and files. Of our powers they have those that
/// their work takes ([`sys::fence`]), and their mounts are gone when they are done.
pub fn among<T: Send>(
    devices: &[impl AsRef<Path>],
    tools: impl FnOnce() -> T + Send,
) -> Result<T, CellError> {
    among_in(devices, &[], tools)
}

/// [`among`], where they can write to these folders, too.
pub fn among_in<T: Send>(
    devices: &[impl AsRef<Path>],
    folders: &[&Path],
    tools: impl FnOnce() -> T + Send,
) -> Result<T, CellError> {
    let writable = folders.iter().map(|it| it.to_path_buf()).collect();
    let controls = CONTROLS.iter().map(PathBuf::from).filter(|path| path.exists());
    let devices = devices.iter().map(|path| path.as_ref().to_owned()).chain(controls).collect();
    let ground = Ground { devices, writable, for_tools: true, ..Ground::default() };
    let failed = || Err(CellError::of("a thread")(io::Error::other("it did not end well")));
    std::thread::scope(|scope| {
        // The thread gets mounts of its own, and a root of its own; both go with it.
        let confined = || {
            // What the new root has open is closed before the thread has open files of its own.
            root::grow(&ground, true).map(drop)?;
            sys::keep_open_files().map_err(CellError::of("open files"))?;
            sys::fence().map_err(CellError::of("tools"))?;
            Ok(tools())
        };
        let thread = std::thread::Builder::new().spawn_scoped(scope, confined);
        thread.map_err(CellError::of("a thread"))?.join().unwrap_or_else(|_| failed())
    })
}

/// Does `work` in that mount namespace, on a thread of its own.
fn within<T: Send>(mounts: &OwnedFd, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let enter = || sys::enter_mounts_alone(mounts.as_fd()).map(|()| work());
        let thread = std::thread::Builder::new().spawn_scoped(scope, enter)?;
        thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread did not end well")))
    })
}

fn rules(ground: &Ground, is_sealed: bool) -> Result<OwnedFd, CellError> {
    if let Some(Mapped { at, .. }) = ground.mapped.first() {
        let refused = io::Error::new(io::ErrorKind::PermissionDenied, "mapping it needs root");
        return Err(CellError::of(at.display())(refused));
    }
    let kept_back = ground.kept_back.iter().filter(|_| !is_sealed);
    let folders: Vec<&Path> =
        ground.writable.iter().chain(kept_back).map(PathBuf::as_path).collect();
    sys::rules(&folders).map_err(CellError::of("Landlock"))
}

/// Whether work that we start can be confined: an error says why not.
pub fn is_possible() -> Result<(), CellError> {
    match sys::is_root() {
        true => users().map(drop),
        false => rules(&Ground::default(), true).map(drop),
    }
}

/// Why daemons' sockets can be reached by their paths in root's cells, where they can: there are no
/// overlays. A user's work can reach what its user can.
pub fn why_sockets_are_in_reach() -> Option<io::Error> {
    if !sys::is_root() {
        return None;
    }
    let failed = || Err(io::Error::other("it did not end well"));
    let thread = std::thread::Builder::new().spawn(root::try_overlay);
    thread.and_then(|thread| thread.join().unwrap_or_else(|_| failed())).err()
}

/// A user namespace with the users and groups that we know, by the same numbers. Power in it is
/// power over nothing outside it.
pub fn users() -> Result<OwnedFd, CellError> {
    sys::lift_limits();
    let holder =
        Holder::new(None, NewNamespace::User).map_err(CellError::of("a user namespace"))?;
    for map in ["uid_map", "gid_map"] {
        let same = fs::read_to_string(format!("/proc/self/{map}")).map(|text| identity(&text));
        let there = format!("/proc/{}/{map}", holder.id());
        same.and_then(|same| fs::write(&there, same)).map_err(CellError::of(there))?;
    }
    opened(&holder, NewNamespace::User)
}

/// A new network that belongs to `user`.
pub fn network(user: Option<&OwnedFd>) -> Result<OwnedFd, CellError> {
    let holder = Holder::new(user.map(AsFd::as_fd), NewNamespace::Network)
        .map_err(CellError::of("a network namespace"))?;
    opened(&holder, NewNamespace::Network)
}

fn opened(holder: &Holder, what: NewNamespace) -> Result<OwnedFd, CellError> {
    let path = format!("/proc/{}/ns/{}", holder.id(), what.file());
    File::open(&path).map(OwnedFd::from).map_err(CellError::of(path))
}

/// Each number that `map` knows, as itself: /proc/self/uid_map has "inside, outside, count".
fn identity(map: &str) -> String {
    let mut lines = String::new();
    for line in map.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [inside, _, count] = words[..] {
            lines += &format!("{inside} {inside} {count}\n");
        }
    }
    lines
}

/// The cells of a trial: one at a time, made when it is first asked for.
#[derive(Debug)]
pub struct Cells {
    ground: Ground,
    user: OnceLock<OwnedFd>,
    cell: OnceLock<Cell>,
    is_sealed: bool,
}

impl Cells {
    /// Cells on this ground.
    pub fn new(ground: Ground) -> Cells {
        Cells { ground, user: OnceLock::new(), cell: OnceLock::new(), is_sealed: false }
    }

    /// The user namespace that all of them share.
    pub fn user(&self) -> Result<&OwnedFd, CellError> {
        if let Some(user) = self.user.get() {
            return Ok(user);
        }
        let made = users()?;
        Ok(self.user.get_or_init(|| made))
    }

    /// The cell of now.
    pub fn cell(&self) -> Result<&Cell, CellError> {
        if let Some(cell) = self.cell.get() {
            return Ok(cell);
        }
        let made = match sys::is_root() {
            true => make(&self.ground, self.user()?, self.is_sealed)?,
            false => Cell::Rules(rules(&self.ground, self.is_sealed)?),
        };
        Ok(self.cell.get_or_init(|| made))
    }

    /// From now on the folder that is kept back is only read: in this cell, and in those to come.
    pub fn seal(&mut self) -> Result<(), CellError> {
        self.is_sealed = true;
        match (self.cell.get_mut(), &self.ground.kept_back) {
            (Some(cell), Some(kept_back)) => cell.seal(kept_back, &self.ground),
            _ => Ok(()),
        }
    }

    /// Leaves the current cell, which goes with its last process. Returns what is left in it.
    pub fn leave(&mut self) -> Astray {
        self.cell.take().map(|cell| cell.left()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::tool;

    #[test]
    #[ignore = "needs root: run ./test"]
    fn sockets_are_out_of_reach_where_the_kernel_has_overlays() {
        let file_systems = std::fs::read_to_string("/proc/filesystems").unwrap();
        let mounts = || std::fs::read_to_string("/proc/self/mounts").unwrap();
        let root_is_one = mounts().lines().any(|line| line.starts_with("overlay / "));
        if let Some(why) = why_sockets_are_in_reach() {
            assert!(root_is_one || !file_systems.contains("\toverlay\n"), "{why}");
        }
        assert!(!mounts().contains(" /sys/kernel tmpfs "), "it was not tried elsewhere");
    }

    #[test]
    #[ignore = "needs root: run ./test"]
    fn tools_that_end_leave_nothing_open() {
        let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
        let before = open();
        for _ in 0..200 {
            among(&[""; 0], || ()).unwrap();
        }
        // Other tests open files, too, but not so many at a time.
        let after = open();
        assert!(after < before + 150, "{before} files were open, and {after} are");
    }

    #[test]
    #[ignore = "needs root: run ./test"]
    fn a_confined_tool_has_a_session_of_its_own() {
        let cells = Cells::new(Ground::default());
        let words = ["sh", "-c", "cut -d ' ' -f 1,5,6 /proc/$$/stat"].map(String::from);
        let answer = tool::ask_where(&words, Duration::from_secs(600), |command| {
            let confined = cells.cell().and_then(|cell| cell.confine(command, Path::new("/")));
            confined.map_err(io::Error::other)
        });
        // Its number, group and session: proc_pid_stat(5).
        let said = answer.unwrap().stdout;
        let numbers: Vec<&str> = said.split_whitespace().collect();
        assert!(numbers.len() == 3 && numbers.iter().all(|it| *it == numbers[0]), "{said}");
    }
}
