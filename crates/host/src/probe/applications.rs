//! Disk I/O by application, which Netdata's `app.disk_physical_io` charts: proc_pid_io(5) of the
//! servers of a trial, each with the processes it has started, and of all others together. A
//! process's I/O is added to its parent's once the parent has waited for it; an orphan becomes a
//! child of the trial, and is recognised by its name.
//!
//! It looks at every process of the trial's PID namespace once a second, from a thread of its own,
//! which may allocate: the sampler's readings do not wait for it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fsverdict_core::model::Application;

use super::ProbeError;
use crate::machine::processes::{Io, is_running, name_and_parent, numbers_in};
use crate::sys::Counting;

const PERIOD: Duration = Duration::from_secs(1);

/// A wait for a server's end is no longer than this.
const PAUSE: Duration = Duration::from_millis(10);

/// What all applications have read and stored so far, at one time since the start.
type Reading = (u64, Vec<Application>);

/// By a family's first process: the application, and what the family has read and stored; for one
/// that is gone, what was seen last.
type Known = BTreeMap<u32, (String, [u64; 2])>;

/// The processes of the trial, as families: the trial's own children with all they have started.
#[derive(Debug)]
struct Families {
    /// Where `proc` is; `/` but in tests.
    root: PathBuf,
    /// What the servers are called.
    servers: BTreeSet<String>,
    known: Known,
}

impl Families {
    /// Looks at all processes but the first, which is the trial. Gives those that had ended before
    /// they were looked at: no more is to be known of them.
    fn look(&mut self) -> Vec<u32> {
        let (mut seen, mut ended) = (Known::new(), Vec::new());
        for process in numbers_in(&self.root.join("proc")).filter(|&process| process != 1) {
            if !is_running(&self.root, process) {
                ended.push(process);
            }
            let Some((first, name)) = self.first_of_family(process) else { continue };
            let io = Io::read(&self.root.join(format!("proc/{process}/io"))).unwrap_or_default();
            let stored_bytes = io.stored_bytes.saturating_sub(io.cancelled_bytes);
            let (_, bytes) = seen.entry(first).or_insert((name, [0; 2]));
            bytes[0] += io.fetched_bytes;
            bytes[1] += stored_bytes;
        }
        self.known.append(&mut seen);
        ended
    }

    /// The ancestor that is a child of the trial, and what application it is.
    fn first_of_family(&self, mut process: u32) -> Option<(u32, String)> {
        loop {
            match name_and_parent(&self.root, process)? {
                // A process that came in from outside has no parent here (0).
                (name, 0 | 1) => {
                    let serves = self.servers.contains(&name);
                    return Some((process, if serves { name } else { Application::WORK.into() }));
                }
                (_, parent) => process = parent,
            }
        }
    }

    /// What the applications have read and stored since `start`.
    fn since(&self, start: &Known) -> Vec<Application> {
        let mut applications: BTreeMap<&str, [u64; 2]> = BTreeMap::new();
        for (first, (name, bytes)) in &self.known {
            let before = start.get(first).map_or([0; 2], |(_, bytes)| *bytes);
            let sum = applications.entry(name).or_default();
            for (sum, (now, then)) in sum.iter_mut().zip(bytes.iter().zip(before)) {
                *sum += now.saturating_sub(then);
            }
        }
        let named = |(name, [read_bytes, write_bytes]): (&str, [u64; 2])| Application {
            name: name.into(),
            read_bytes,
            write_bytes,
        };
        applications.into_iter().map(named).collect()
    }
}

/// A thread that looks at the processes, until it is stopped.
#[derive(Debug)]
pub struct Applications {
    stop: Sender<()>,
    thread: JoinHandle<Vec<Reading>>,
}

impl Applications {
    /// Begins to look; `servers` are the processes that serve the work.
    pub fn watch(root: &Path, servers: &BTreeSet<u32>) -> Result<Applications, ProbeError> {
        let name = |&process: &u32| Some(name_and_parent(root, process)?.0);
        let servers = servers.iter().filter_map(name).collect();
        let mut families = Families { root: root.into(), servers, known: Known::new() };
        families.look();
        let (stop, stopped) = channel();
        let counting = Counting::new();
        let thread = std::thread::Builder::new()
            .name("applications".into())
            .spawn(move || readings(families, &stopped, &counting))
            .map_err(ProbeError::Thread)?;
        Ok(Applications { stop, thread })
    }

    /// Looks for a last time.
    pub fn stop(self) -> Shares {
        drop(self.stop);
        Shares(self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    }
}

/// The thread: a reading each second and one at the end, when the other end of `stopped` is gone.
/// Servers that have ended in between are counted and taken away at once.
fn readings(mut families: Families, stopped: &Receiver<()>, counting: &Counting) -> Vec<Reading> {
    let origin = Instant::now();
    let start = families.known.clone();
    let mut readings = vec![(0, families.since(&start))];
    let mut due = origin + PERIOD;
    loop {
        let wait = due.saturating_duration_since(Instant::now());
        let told = stopped.recv_timeout(wait.min(PAUSE));
        let over = !matches!(told, Err(RecvTimeoutError::Timeout));
        let is_due = over || Instant::now() >= due;
        if !is_due && !counting.has_ended() {
            continue;
        }
        families.look().into_iter().for_each(|process| counting.is_counted(process));
        if !is_due {
            continue;
        }
        readings.push((origin.elapsed().as_nanos() as u64, families.since(&start)));
        if over {
            return readings;
        }
        due = (due + PERIOD).max(Instant::now());
    }
}

/// What each application did over the time.
#[derive(Debug)]
pub struct Shares(Vec<Reading>);

impl Shares {
    /// All of it.
    pub fn last(&self) -> Vec<Application> {
        self.0.last().map(|(_, applications)| applications.clone()).unwrap_or_default()
    }

    /// Writes a row for each reading and application, what it did since the start. `header`: writes
    /// the columns' names first.
    pub fn write_csv(&self, out: &mut impl Write, phase: &str, header: bool) -> io::Result<()> {
        if header {
            writeln!(out, "phase,time_ns,application,read_bytes,write_bytes")?;
        }
        for (time_ns, applications) in &self.0 {
            for Application { name, read_bytes, write_bytes } in applications {
                let name = name.replace([',', '\n'], " ");
                writeln!(out, "{phase},{time_ns},{name},{read_bytes},{write_bytes}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake;
    use super::*;

    /// A process that has fetched and stored so many bytes.
    fn process(tree: &tempfile::TempDir, number: u32, name: &str, parent: u32, bytes: [u64; 2]) {
        let [fetched, stored] = bytes;
        let stat = format!("{number} ({name}) S {parent} 0\n");
        fake::write(tree, &format!("proc/{number}/stat"), &stat);
        let io = format!(
            "rchar: 9\nwchar: 9\nsyscr: 9\nsyscw: 9\nread_bytes: {fetched}\nwrite_bytes: {stored}\n\
             cancelled_write_bytes: 0\n"
        );
        fake::write(tree, &format!("proc/{number}/io"), &io);
    }

    fn families(tree: &tempfile::TempDir) -> Families {
        let (root, servers) = (tree.path().into(), BTreeSet::from(["ftpd: (x) ".to_string()]));
        Families { root, servers, known: Known::new() }
    }

    fn named(name: &str, read_bytes: u64, write_bytes: u64) -> Application {
        Application { name: name.into(), read_bytes, write_bytes }
    }

    #[test]
    fn what_a_server_starts_is_the_servers_and_the_trial_is_nobodys() {
        let tree = fake::tree(&[]);
        process(&tree, 1, "fsverdict", 0, [500, 500]);
        process(&tree, 7, "ftpd: (x) ", 1, [10, 100]);
        process(&tree, 9, "session", 7, [0, 40]);
        process(&tree, 12, "sh", 1, [3, 0]);
        let mut families = families(&tree);
        families.look();
        let all = families.since(&Known::new());
        assert_eq!(all, [named("ftpd: (x) ", 10, 140), named("work", 3, 0)]);
        let start = families.known.clone();
        // A session ends, and what it did is its parent's; another begins.
        std::fs::remove_dir_all(tree.path().join("proc/9")).unwrap();
        process(&tree, 7, "ftpd: (x) ", 1, [10, 160]);
        process(&tree, 15, "ftpd: (x) ", 7, [1, 1]);
        families.look();
        assert_eq!(families.since(&start), [named("ftpd: (x) ", 1, 21), named("work", 0, 0)]);
        // Its parent does not wait for it, and ends.
        process(&tree, 15, "ftpd: (x) ", 1, [1, 5]);
        families.look();
        assert_eq!(families.since(&start), [named("ftpd: (x) ", 1, 25), named("work", 0, 0)]);
    }

    #[test]
    fn what_is_gone_keeps_what_it_did() {
        let tree = fake::tree(&[]);
        process(&tree, 12, "sh", 1, [0, 50]);
        let mut families = families(&tree);
        families.look();
        std::fs::remove_dir_all(tree.path().join("proc/12")).unwrap();
        process(&tree, 13, "sh", 1, [0, 5]);
        families.look();
        assert_eq!(families.since(&Known::new()), [named("work", 0, 55)]);
    }

    #[test]
    fn it_looks_at_the_end_and_writes_a_row_for_each() {
        let tree = fake::tree(&[]);
        process(&tree, 7, "ftpd", 1, [0, 100]);
        let watching = Applications::watch(tree.path(), &BTreeSet::from([7])).unwrap();
        process(&tree, 7, "ftpd", 1, [0, 4196]);
        let shares = watching.stop();
        assert_eq!(shares.last(), [named("ftpd", 0, 4096)]);
        let mut out = Vec::new();
        shares.write_csv(&mut out, "", true).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "phase,time_ns,application,read_bytes,write_bytes");
        assert_eq!(lines[1], ",0,ftpd,0,0");
        assert!(lines.last().unwrap().ends_with(",ftpd,0,4096"), "{text}");
    }
}
