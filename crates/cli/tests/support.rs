//! Runs the program in a folder of its own, reads what it left there, and sees to it that nothing
//! else is left: no loop device, mount, process or journal.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::time::{Duration, Instant};

use serde_json::Value;

/// The machine, which all tests of this process share.
static MACHINE: Mutex<Shared> = Mutex::new(Shared::NEW);
static CHANGED: Condvar = Condvar::new();

/// How long the program is waited for before a test calls it stuck.
const PATIENCE: Duration = Duration::from_secs(1800);

/// How long the output of a stuck program, once killed, may be held open by what it has started.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// Says for what each process of a stuck program waits, and what its guests said last.
const STANDING: &str = r"
of() { for it in $(cat /proc/$1/task/*/children); do echo $it; of $it; done; }
cd /proc/$1/cwd
for process in $1 $(of $1); do
    tr '\0' ' ' < /proc/$process/cmdline | cut -c 1-300
    for thread in /proc/$process/task/*; do
        echo $(cat $thread/comm $thread/wchan)
    done | sort | uniq -c
done 2> /dev/null
find . -name console.log -exec tail -n 30 {} +
";

/// How long a detached loop device may be held open by somebody else.
const LAZY_DETACH: Duration = Duration::from_secs(20);

/// Who has the machine.
struct Shared {
    /// Tests that run beside others.
    among: usize,
    is_alone: bool,
}

impl Shared {
    const NEW: Shared = Shared { among: 0, is_alone: false };
}

/// How many tests run beside each other.
fn at_once() -> usize {
    let set = std::env::var("FSVERDICT_TESTS_AT_ONCE").ok().and_then(|it| it.parse().ok());
    set.unwrap_or(usize::MAX).max(1)
}

/// Holds the machine for a test: in this process, and against other test runs on it by a lock on
/// the folder of temporary files, which leaves nothing behind.
struct Guard {
    is_alone: bool,
    folder: File,
}

impl Guard {
    fn among() -> Guard {
        let folder = folder();
        shared(|it| it.is_alone || it.among >= at_once()).among += 1;
        let guard = Guard { is_alone: false, folder };
        guard.folder.lock_shared().unwrap();
        guard
    }

    /// It waits until no other test runs, and holds up none that is still to begin: processors
    /// would idle until the longest is over. Where there are threads for all that wait
    /// (`scripts/run-test`), these come last, one after the other.
    fn alone() -> Guard {
        let folder = folder();
        shared(|it| it.is_alone || it.among > 0).is_alone = true;
        let guard = Guard { is_alone: true, folder };
        guard.folder.lock().unwrap();
        guard
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut machine = shared(|_| false);
        match self.is_alone {
            true => machine.is_alone = false,
            false => machine.among -= 1,
        }
        CHANGED.notify_all();
    }
}

/// What other test runs hold, too.
fn folder() -> File {
    File::open(std::env::temp_dir()).unwrap()
}

/// The machine, once it is not so any more. A test that panicked has let go of it all the same.
fn shared(is_so: impl FnMut(&mut Shared) -> bool) -> MutexGuard<'static, Shared> {
    let machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    CHANGED.wait_while(machine, is_so).unwrap_or_else(PoisonError::into_inner)
}

/// A folder to run the program in. All that the program left goes with it, also when the test
/// panics.
pub struct Scene {
    folder: tempfile::TempDir,
    before: Knobs,
    _guard: Guard,
}

impl Scene {
    /// For a test that says nothing of how fast, busy or empty the machine is, and changes nothing
    /// but what it has made: others run beside it.
    pub fn new() -> Scene {
        Scene::with(Guard::among())
    }

    /// For a test that has the machine to itself: it measures it, changes settings that all share,
    /// or leaves a killed run that the next one on the machine would clean up after.
    pub fn alone() -> Scene {
        Scene::with(Guard::alone())
    }

    fn with(guard: Guard) -> Scene {
        there_before();
        let folder = tempfile::Builder::new().prefix("fsverdict-test-").tempdir().unwrap();
        Scene { folder, before: Knobs::now(), _guard: guard }
    }

    /// The folder, or what is called `name` in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    /// [`Scene::path`] as it would be typed.
    pub fn typed(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Writes a file into the folder.
    pub fn write(&self, name: &str, text: &str) -> String {
        fs::write(self.path(name), text).unwrap();
        self.typed(name)
    }

    /// Reads a file of the folder.
    pub fn read(&self, name: &str) -> String {
        let path = self.path(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Reads a JSON document of the folder.
    pub fn read_json(&self, name: &str) -> Value {
        serde_json::from_str(&self.read(name)).unwrap()
    }

    /// The program with these arguments, not started yet.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = program(env!("CARGO_BIN_EXE_fsverdict"));
        command.args(arguments).current_dir(self.folder.path());
        command
    }

    /// The program as a user without any right, who owns the scene; the home and the runtime folder
    /// are in it: what another run of the same user has left is not met here.
    pub fn as_nobody(&self, arguments: &[&str]) -> Command {
        assert!(is_root(), "only root becomes somebody else");
        let copy = self.path("fsverdict");
        if !copy.exists() {
            // By another program: one that is open to be written can't be executed, and what a test
            // beside begins has our open files until it is another program (execve(2)).
            tool("cp", &[env!("CARGO_BIN_EXE_fsverdict"), &self.typed("fsverdict")]).unwrap();
            fs::set_permissions(self.path(""), fs::Permissions::from_mode(0o755)).unwrap();
            for folder in ["home", "runtime"] {
                fs::create_dir_all(self.path(folder)).unwrap();
            }
            tool("chown", &["-R", "65534:65534", &self.typed("")]).unwrap();
        }
        let mut command = program("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(copy);
        command.args(arguments).current_dir(self.path("")).env_clear();
        command.env("HOME", self.path("home")).env("PATH", "/usr/bin:/bin");
        command.env("XDG_RUNTIME_DIR", self.path("runtime"));
        command
    }

    /// Runs the program to its end.
    pub fn fsverdict(&self, arguments: &[&str]) -> Done {
        Started::new(self.command(arguments)).wait()
    }

    /// [`Scene::fsverdict`], the arguments split at spaces.
    pub fn run(&self, line: &str) -> Done {
        self.fsverdict(&line.split_whitespace().collect::<Vec<_>>())
    }

    /// Starts the program in the background.
    pub fn start(&self, arguments: &[&str]) -> Started {
        Started::new(self.command(arguments))
    }

    /// The records of the run in `folder`, by number.
    pub fn records(&self, folder: &str) -> Vec<Value> {
        let entries = fs::read_dir(self.path(folder).join("trials")).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path().join("record.json"));
        let texts = paths.filter_map(|path| fs::read_to_string(path).ok());
        let mut records: Vec<Value> =
            texts.map(|text| serde_json::from_str(&text).unwrap()).collect();
        records.sort_by_key(|record| record["number"].as_u64());
        records
    }

    /// Fails when the program left anything on the machine.
    #[track_caller]
    pub fn assert_nothing_left(&self) {
        // A loop device that was detached goes when the last one closes it (loop(4), lazily since
        // Linux 3.7), and tools of tests beside this one look at all devices there are. Cgroups of
        // a campaign on this machine, whose registry is its own, go when it cleans up.
        let start = Instant::now();
        let mut left = Left::of(&self.path(""));
        while !(left.loops.is_empty() && left.cgroups.is_empty())
            && left.mounts.is_empty()
            && start.elapsed() < LAZY_DETACH
        {
            std::thread::sleep(Duration::from_millis(50));
            let before = left.cgroups;
            left = Left::of(&self.path(""));
            left.cgroups.retain(|it| before.contains(it));
        }
        assert!(left.is_nothing(), "left behind: {left:?}");
        assert_eq!(self.images(), [""; 0], "images left behind");
    }

    /// Images and marks of ours in the folder.
    pub fn images(&self) -> Vec<String> {
        let is_ours = |path: &String| path.ends_with(".img") || path.ends_with("mark.json");
        files_below(&self.path("")).into_iter().filter(is_ours).collect()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        Left::of_folder(&self.path("")).remove();
        if std::thread::panicking() {
            self.before.put_back();
        }
    }
}

const THROTTLES: [&str; 4] =
    ["read_iops_device", "write_iops_device", "read_bps_device", "write_bps_device"];

/// The settings of the whole machine that tests have the program change.
struct Knobs(Vec<(PathBuf, String)>);

impl Knobs {
    fn now() -> Knobs {
        let names = ["dirty_ratio", "dirty_bytes"].into_iter();
        let names = names.chain(["dirty_background_ratio", "dirty_background_bytes"]);
        let names = names.chain(["vfs_cache_pressure"]);
        let paths = names.map(|name| Path::new("/proc/sys/vm").join(name));
        Knobs(
            paths.filter_map(|path| Some((path.clone(), fs::read_to_string(path).ok()?))).collect(),
        )
    }

    /// Puts them back after a test that failed, perhaps because the program had not.
    fn put_back(&self) {
        // Of a ratio and its bytes one is 0; it becomes that when the other is set.
        for (path, value) in self.0.iter().filter(|(_, value)| value.trim() != "0") {
            let _ = fs::write(path, value);
        }
        for name in THROTTLES {
            let path = format!("/sys/fs/cgroup/blkio/blkio.throttle.{name}");
            for rule in fs::read_to_string(&path).unwrap_or_default().lines() {
                let device = rule.split(' ').next().unwrap_or_default();
                let number = device.strip_prefix("7:").unwrap_or("none");
                let is_used = format!("/sys/block/loop{number}/loop/backing_file");
                // A rule for a loop device that nobody has is left over.
                if number != "none" && !Path::new(&is_used).exists() {
                    let _ = fs::write(&path, format!("{device} 0"));
                }
            }
        }
    }
}

fn files_below(folder: &Path) -> Vec<String> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => files.extend(files_below(&entry.path())),
            _ => files.push(entry.path().display().to_string()),
        }
    }
    files
}

/// What is there on the machine because of a folder.
#[derive(Debug)]
pub struct Left {
    /// Nodes of loop devices with a file of the folder behind them.
    pub loops: Vec<String>,
    /// Mount points below the folder, or of one of those devices.
    pub mounts: Vec<String>,
    /// Processes that name the folder in their arguments or in their environment, or work in it.
    pub processes: Vec<u32>,
    /// Journals of runs in the folder.
    pub journals: Vec<PathBuf>,
    /// Cgroups of trials, whosever, whose run has no journal that would have them removed.
    pub cgroups: Vec<PathBuf>,
}

impl Left {
    /// What is there now because of `folder`.
    pub fn of(folder: &Path) -> Left {
        Left { cgroups: cgroups(), ..Left::of_folder(folder) }
    }

    /// The same without cgroups, of which nothing says whose they are.
    pub fn of_folder(folder: &Path) -> Left {
        let prefix = folder.display().to_string();
        let loops = loop_devices(&prefix);
        let mounts = mounts(&prefix, &loops);
        let (processes, journals) = (processes(&prefix), journals(folder));
        Left { mounts, loops, processes, journals, cgroups: Vec::new() }
    }

    /// There is nothing.
    pub fn is_nothing(&self) -> bool {
        self.loops.is_empty()
            && self.mounts.is_empty()
            && self.processes.is_empty()
            && self.journals.is_empty()
            && self.cgroups.is_empty()
    }

    /// Removes it, as well as may be.
    fn remove(&self) {
        for process in &self.processes {
            let _ = tool("kill", &["-KILL", &process.to_string()]);
        }
        for mount in self.mounts.iter().rev() {
            let _ = tool("umount", &["--lazy", mount]);
        }
        for node in &self.loops {
            let _ = tool("losetup", &["--detach", node]);
        }
        for journal in &self.journals {
            journal.file_stem().and_then(|token| token.to_str()).iter().for_each(|it| ungroup(it));
            let _ = fs::remove_file(journal);
        }
    }
}

/// Removes the cgroups of the trials of a run, once its processes, which were killed, are gone.
fn ungroup(token: &str) {
    let name = format!("fsverdict-trial-{token}-");
    let is_its = |path: &PathBuf| {
        path.file_name().and_then(|it| it.to_str()).is_some_and(|it| it.starts_with(&name))
    };
    for _ in 0..100 {
        let its: Vec<PathBuf> =
            folders_below(Path::new("/sys/fs/cgroup")).into_iter().filter(is_its).collect();
        if its.iter().rev().map(fs::remove_dir).all(|removed| removed.is_ok()) {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Those upon others come first, as they must go first.
fn loop_devices(prefix: &str) -> Vec<String> {
    let mut nodes = Vec::new();
    for entry in fs::read_dir("/sys/block").into_iter().flatten().flatten() {
        let backing = fs::read_to_string(entry.path().join("loop/backing_file"));
        if backing.is_ok_and(|file| file.starts_with(prefix)) {
            let node = format!("/dev/{}", entry.file_name().display());
            nodes.splice(0..0, loop_devices(&format!("{node}\n")));
            nodes.push(node);
        }
    }
    nodes
}

fn mounts(prefix: &str, loops: &[String]) -> Vec<String> {
    let text = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mounts = text.lines().filter_map(|line| {
        let mut words = line.split(' ');
        Some((words.next()?.to_string(), words.next()?.to_string()))
    });
    let ours = mounts.filter(|(source, at)| at.starts_with(prefix) || loops.contains(source));
    ours.map(|(_, at)| at).collect()
}

fn processes(prefix: &str) -> Vec<u32> {
    let names =
        fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.file_name());
    let numbers = names.filter_map(|name| name.to_str()?.parse::<u32>().ok());
    numbers
        .filter(|&number| number != std::process::id())
        .filter(|number| {
            let of = |file: &str| PathBuf::from(format!("/proc/{number}/{file}"));
            let is_named = ["cmdline", "environ"].iter().any(|file| {
                let text = fs::read(of(file)).unwrap_or_default();
                String::from_utf8_lossy(&text).contains(prefix)
            });
            is_named || fs::read_link(of("cwd")).is_ok_and(|at| at.starts_with(prefix))
        })
        .collect()
}

/// Journals in the registries that root and other users have, with what stands beside them.
fn journals(folder: &Path) -> Vec<PathBuf> {
    let own = folder.join("runtime/fsverdict");
    let mut registries = vec![PathBuf::from("/run/fsverdict"), own];
    let temporary = fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten();
    registries.extend(temporary.map(|entry| entry.path()).filter(|path| {
        path.file_name().is_some_and(|name| {
            let digits = name.to_str().and_then(|name| name.strip_prefix("fsverdict-"));
            digits.is_some_and(|digits| digits.parse::<u32>().is_ok())
        })
    }));
    let folders = registries.iter().map(|registry| registry.join("journals"));
    let entries = folders.flat_map(fs::read_dir).flatten().flatten().map(|entry| entry.path());
    let run = |path: &PathBuf| {
        let text = fs::read_to_string(path.with_extension("jsonl")).ok()?;
        let head: Value = serde_json::from_str(text.lines().next()?).ok()?;
        Some(PathBuf::from(head["run"].as_str()?))
    };
    entries.filter(|path| run(path).is_some_and(|run| run.starts_with(folder))).collect()
}

/// Cgroups of trials that no journal speaks of when the first test begins. All containers of a
/// machine see its cgroups, but each has journals of its own: these are of a run in another one, or
/// of one in a container that is gone.
fn there_before() -> &'static [PathBuf] {
    static THERE: OnceLock<Vec<PathBuf>> = OnceLock::new();
    THERE.get_or_init(without_journal)
}

/// Cgroups of trials that no journal speaks of, and that stay: those of a campaign of faults beside
/// us, which keeps its journals elsewhere, go with its trials.
fn cgroups() -> Vec<PathBuf> {
    let mut left = without_journal();
    left.retain(|it| !there_before().contains(it));
    let until = Instant::now() + Duration::from_secs(120);
    while !left.is_empty() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(100));
        let now = without_journal();
        left.retain(|it| now.contains(it));
    }
    left
}

/// A run removes its cgroups before it closes its journal.
fn without_journal() -> Vec<PathBuf> {
    let is_lost = |folder: &PathBuf| {
        let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let token = name.strip_prefix("fsverdict-trial-").and_then(|it| it.split('-').next());
        let journal = |token| format!("/run/fsverdict/journals/{token}.jsonl");
        // Those of tests hold the cgroups of trials.
        token.is_some_and(|token| token.len() == 16 && !Path::new(&journal(token)).exists())
            // It may have been removed meanwhile.
            && folder.exists()
    };
    folders_below(Path::new("/sys/fs/cgroup")).into_iter().filter(is_lost).collect()
}

fn folders_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let below = folders.flat_map(|entry| {
        let path = entry.path();
        [vec![path.clone()], folders_below(&path)].concat()
    });
    below.collect()
}

/// Runs a tool of the system; gives its standard output, or what it said.
pub fn tool(name: &str, arguments: &[&str]) -> Result<String, String> {
    let output = program(name).args(arguments).output();
    let output = output.map_err(|error| format!("{name}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() { Ok(printed) } else { Err(format!("{name}: {said}{printed}")) }
}

/// A program to be given arguments and started. What it says is in English everywhere.
#[expect(clippy::disallowed_methods, reason = "the tests start the product and look around it")]
pub fn program(name: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(name);
    command.stdin(Stdio::null()).env("LC_ALL", "C.UTF-8").env_remove("LANGUAGE");
    command
}

/// Prose as one line: where its lines are broken depends on the figures in it.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The effective user is root.
pub fn is_root() -> bool {
    tool("id", &["-u"]).is_ok_and(|number| number.trim() == "0")
}

/// The program, running.
pub struct Started(Option<Child>);

impl Started {
    /// Starts `command`.
    pub fn new(mut command: Command) -> Started {
        command.stderr(Stdio::piped());
        Started::telling(command)
    }

    /// Starts `command`, whose standard error goes where it was told to.
    pub fn telling(mut command: Command) -> Started {
        command.stdout(Stdio::piped());
        Started(Some(command.spawn().unwrap()))
    }

    /// Starts `command`, all of whose output goes where it was told to.
    pub fn silent(mut command: Command) -> Started {
        Started(Some(command.spawn().unwrap()))
    }

    /// Types something, where its input is a pipe.
    pub fn typed(&mut self, bytes: &[u8]) {
        let input = self.0.as_mut().unwrap().stdin.as_mut().unwrap();
        input.write_all(bytes).unwrap();
        input.flush().unwrap();
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.0.as_ref().unwrap().id()
    }

    /// Sends it a signal: `INT`.
    pub fn signal(&self, name: &str) {
        tool("kill", &[&format!("-{name}"), &self.id().to_string()]).unwrap();
    }

    /// Waits until it has brought about `condition`; fails at once where it has ended instead.
    #[track_caller]
    pub fn reaches(&mut self, what: &str, mut condition: impl FnMut() -> bool) {
        wait_for(what, || {
            let has_ended = self.0.as_mut().unwrap().try_wait().unwrap().is_some();
            let is_so = condition();
            if has_ended && !is_so {
                let Done { code, stdout, stderr } = Started(self.0.take()).wait();
                panic!("it ended before {what}, with {code:?}: {stdout}{stderr}");
            }
            is_so
        });
    }

    /// Waits until it has ended; kills it when it does not.
    #[track_caller]
    pub fn wait(mut self) -> Done {
        let mut child = self.0.take().unwrap();
        // Read beside waiting: a full pipe would stop it.
        let out = in_background(child.stdout.take());
        let err = in_background(child.stderr.take());
        let start = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if start.elapsed() > PATIENCE {
                let where_it_stands = tool("sh", &["-c", STANDING, "sh", &child.id().to_string()]);
                let _ = child.kill();
                let _ = child.wait();
                let said = [out, err].map(|pipe| pipe.recv_timeout(LAST_WORDS).unwrap_or_default());
                let said = said.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
                panic!("still running after {PATIENCE:?}: {said:?}\n{}", where_it_stands.unwrap());
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let [stdout, stderr] = [out, err].map(|pipe| pipe.recv().unwrap());
        Done::of(&Output { status, stdout, stderr })
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// All that comes out of `pipe`, once it is closed.
fn in_background(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    let read = move || {
        let mut bytes = Vec::new();
        let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
        let _ = sender.send(bytes);
    };
    std::thread::Builder::new().spawn(read).unwrap();
    receiver
}

/// Waits until `condition`, which something else brings about.
#[track_caller]
pub fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Unmounts. Tried again while the file system is busy: a process that a test beside this one
/// begins has this one's open files until it is another program.
pub fn unmount(at: &str) {
    wait_for("the file system to be unmounted", || tool("umount", &[at]).is_ok());
}

/// The program, ended.
#[derive(Debug)]
pub struct Done {
    /// Its exit status; `None` when a signal ended it.
    pub code: Option<i32>,
    /// What it printed.
    pub stdout: String,
    /// What it said on standard error.
    pub stderr: String,
}

impl Done {
    fn of(output: &Output) -> Done {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Done {
            code: output.status.code(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }

    /// Fails unless it ended with this exit status.
    #[track_caller]
    pub fn exits(self, code: i32) -> Done {
        assert_eq!(self.code, Some(code), "{}\n{}", self.stdout, self.stderr);
        self
    }

    /// Fails unless standard error holds `words`.
    #[track_caller]
    pub fn says(self, words: &str) -> Done {
        assert!(self.stderr.contains(words), "{words:?} is not in: {}", self.stderr);
        self
    }

    /// The lines on standard error, but for the one about other runs on the machine.
    pub fn said(&self) -> Vec<&str> {
        let lines = self.stderr.lines();
        lines.filter(|line| !line.contains("another run is under way")).collect()
    }

    /// Standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}\n{}", self.stdout, self.stderr))
    }
}

/// The verdict on `contender` in `metric`, in a document of `--json`.
#[track_caller]
pub fn verdict<'a>(document: &'a Value, contender: &str, metric: &str) -> &'a Value {
    let verdicts = document["verdicts"].as_array().unwrap();
    let found = verdicts.iter().find(|v| v["contender"] == contender && v["metric"] == metric);
    found.unwrap_or_else(|| panic!("no verdict on {metric} of {contender}: {verdicts:#?}"))
}

/// The value of a trial's sample.
#[track_caller]
pub fn sample(trial: &Value, metric: &str) -> f64 {
    let samples = trial["samples"].as_array().unwrap();
    let found = samples.iter().find(|sample| sample["metric"] == metric);
    let sample = found.unwrap_or_else(|| panic!("no sample {metric} in {samples:#?}"));
    sample["value"].as_f64().unwrap()
}

/// The items of a JSON list.
#[track_caller]
pub fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("no list: {value}"))
}

/// A JSON text.
#[track_caller]
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

/// Fails where two texts differ, at their first line that does: whole they would fill pages.
#[track_caller]
pub fn assert_same(one: &str, other: &str) {
    let differ = one.lines().zip(other.lines()).find(|(one, other)| one != other);
    assert_eq!(differ, None);
    assert_eq!(one.lines().count(), other.lines().count());
}
