//! Other programs: what each process of the machine has run, fetched and stored, before the timed
//! part and after it (proc_pid_stat(5), proc_pid_io(5)).
//!
//! A process that begins and ends in between shows in its parent, which has waited for it; if the
//! parent has ended too, in the parent's parent. One that nobody waits for is missed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use fsverdict_core::model::{Stranger, Strangers, WorkIo};

use crate::machine::processes::{Io, Stat, descends, numbers_in};
use crate::sys;

/// How many are named.
const NAMED: usize = 5;

/// What lies between the lab and a trial: unshare(1), which waits for it.
const BETWEEN: &str = "unshare";

/// What a process has done so far, with its children that have ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Done {
    ticks: u64,
    read_bytes: u64,
    write_bytes: u64,
}

impl Done {
    fn plus(self, more: Done) -> Done {
        Done {
            ticks: self.ticks + more.ticks,
            read_bytes: self.read_bytes + more.read_bytes,
            write_bytes: self.write_bytes + more.write_bytes,
        }
    }

    fn less(self, part: Done) -> Done {
        Done {
            ticks: self.ticks.saturating_sub(part.ticks),
            read_bytes: self.read_bytes.saturating_sub(part.read_bytes),
            write_bytes: self.write_bytes.saturating_sub(part.write_bytes),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Process {
    name: String,
    parent: u32,
    /// When it began: another with its number did at another time.
    began: u64,
    done: Done,
}

impl Process {
    /// The process in this folder; `None` where it is gone, or a thread of the kernel.
    fn at(folder: &Path) -> Option<Process> {
        let stat = Stat::read(folder).filter(|stat| !stat.is_kernels())?;
        let ticks = (14..=17).map(|field| stat.field(field)).sum::<Option<u64>>()?;
        // Another user's can't be read.
        let io = Io::read(&folder.join("io")).unwrap_or_default();
        let done = Done {
            ticks,
            read_bytes: io.fetched_bytes,
            write_bytes: io.stored_bytes.saturating_sub(io.cancelled_bytes),
        };
        let (parent, began) = (stat.parent()?, stat.began()?);
        Some(Process { name: stat.name, parent, began, done })
    }
}

/// All processes at one time.
type Processes = BTreeMap<u32, Process>;

fn all(proc: &Path) -> Processes {
    let process = |number: u32| Some((number, Process::at(&proc.join(number.to_string()))?));
    numbers_in(proc).filter_map(process).collect()
}

/// What each has done since `first`. What an ended process had done before `first` is subtracted
/// from its nearest living ancestor, which now has it.
fn since(first: &Processes, last: &Processes) -> BTreeMap<u32, Done> {
    let same = |number: &u32| {
        let (then, now) = (first.get(number)?, last.get(number)?);
        (then.began == now.began).then_some(then)
    };
    let mut passed: BTreeMap<u32, Done> = BTreeMap::new();
    for (number, now) in last {
        let before = same(number).map_or(Done::default(), |then| then.done);
        passed.insert(*number, now.done.less(before));
    }
    for (_, gone) in first.iter().filter(|(number, _)| same(number).is_none()) {
        let mut above = gone.parent;
        // Numbers that were used again could lead round for ever.
        for _ in 0..first.len() {
            match first.get(&above).filter(|_| same(&above).is_none()) {
                Some(ended) => above = ended.parent,
                None => break,
            }
        }
        if let Some(done) = passed.get_mut(&above) {
            *done = done.less(gone.done);
        }
    }
    passed
}

/// All that run on the machine, as they were at first.
#[derive(Debug)]
pub struct Others {
    /// The `/proc` of the whole machine.
    proc: PathBuf,
    /// We, by the number that we have there.
    us: u32,
    first: Processes,
}

impl Others {
    /// Looks at all of `proc` for the first time; `None` where we are not in it.
    pub fn look(proc: &Path) -> Option<Others> {
        let us = fs::read_link(proc.join("self")).ok()?.to_str()?.parse().ok()?;
        let first = all(proc);
        first.contains_key(&us).then(|| Others { proc: proc.into(), us, first })
    }

    /// Looks for a last time: what others did since, and what we and our descendants did.
    pub fn passed(self) -> (Strangers, WorkIo) {
        let last = all(&self.proc);
        let parent = |process: u32| last.get(&process).map(|it| it.parent);
        let trial = BTreeSet::from([self.us]);
        let lab = BTreeSet::from([lab(&last, self.us)]);
        let (mut work, mut others) = (WorkIo::default(), BTreeMap::<&str, Done>::new());
        for (number, done) in since(&self.first, &last) {
            if descends(number, parent, &trial) {
                work.read_bytes += done.read_bytes;
                work.write_bytes += done.write_bytes;
            } else if !descends(number, parent, &lab) {
                let sum = others.entry(&last[&number].name).or_default();
                *sum = sum.plus(done);
            }
        }
        (strangers(&others), work)
    }
}

/// The process that started the trial `us`, through unshare(1) or not: the lab.
fn lab(all: &Processes, us: u32) -> u32 {
    let parent = |process: u32| all.get(&process).map_or(0, |it| it.parent);
    let above = parent(us);
    match all.get(&above) {
        Some(between) if between.name == BETWEEN => between.parent,
        _ => above,
    }
}

fn strangers(by_name: &BTreeMap<&str, Done>) -> Strangers {
    let tick_ns = 1_000_000_000 / sys::ticks_per_second();
    let all = by_name.values().fold(Done::default(), |sum, done| sum.plus(*done));
    let bytes = |done: &Done| done.read_bytes + done.write_bytes;
    let mut names: Vec<(&str, Done)> = by_name.iter().map(|(name, done)| (*name, *done)).collect();
    names.sort_by_key(|(_, done)| std::cmp::Reverse(bytes(done)));
    let moved: BTreeSet<&str> = names.iter().take(NAMED).map(|(name, _)| *name).collect();
    names.sort_by_key(|(_, done)| std::cmp::Reverse(done.ticks));
    let ran: BTreeSet<&str> = names.iter().take(NAMED).map(|(name, _)| *name).collect();
    names.retain(|(name, done)| {
        *done != Done::default() && (moved.contains(name) || ran.contains(name))
    });
    let named = |(name, done): (&str, Done)| Stranger {
        name: name.into(),
        cpu_ns: done.ticks * tick_ns,
        read_bytes: done.read_bytes,
        write_bytes: done.write_bytes,
    };
    Strangers {
        cpu_ns: all.ticks * tick_ns,
        read_bytes: all.read_bytes,
        write_bytes: all.write_bytes,
        most: names.into_iter().map(named).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake;
    use super::*;

    const KERNEL_THREAD: u64 = 0x0020_0000;

    /// A process that has run for so many ticks and fetched so many bytes.
    fn process(
        tree: &tempfile::TempDir,
        (number, name, parent): (u32, &str, u32),
        flags: u64,
        [ticks, read_bytes]: [u64; 2],
    ) {
        let (head, tail) =
            (format!("{number} ({name}) S {parent}"), format!("20 0 1 0 {number}7 0"));
        let stat = format!("{head} 1 1 0 -1 {flags} 0 0 0 0 {ticks} 0 0 0 {tail}");
        fake::write(tree, &format!("{number}/stat"), &stat);
        let io = format!(
            "rchar: 0\nwchar: 0\nsyscr: 0\nsyscw: 0\nread_bytes: {read_bytes}\nwrite_bytes: 8192\n\
             cancelled_write_bytes: 4096\n"
        );
        fake::write(tree, &format!("{number}/io"), &io);
    }

    /// A shell with a compiler, a lab with its trial and the work, and a thread of the kernel.
    fn machine() -> tempfile::TempDir {
        let tree = fake::tree(&[]);
        process(&tree, (1, "init", 0), 0, [50, 0]);
        process(&tree, (5, "kworker", 2), KERNEL_THREAD, [70, 0]);
        process(&tree, (10, "a (shell) ", 1), 0, [20, 0]);
        process(&tree, (11, "cc1", 10), 0, [300, 1000]);
        process(&tree, (20, "fsverdict", 10), 0, [40, 0]);
        process(&tree, (21, "unshare", 20), 0, [0, 0]);
        process(&tree, (22, "fsverdict", 21), 0, [9, 100]);
        process(&tree, (23, "fio", 22), 0, [9, 500]);
        std::os::unix::fs::symlink("22", tree.path().join("self")).unwrap();
        tree
    }

    #[test]
    fn strangers_are_neither_the_trial_nor_the_lab_nor_the_kernel() {
        let tree = machine();
        let others = Others::look(tree.path()).unwrap();
        process(&tree, (5, "kworker", 2), KERNEL_THREAD, [700, 0]);
        process(&tree, (11, "cc1", 10), 0, [330, 5096]);
        process(&tree, (20, "fsverdict", 10), 0, [90, 700]);
        process(&tree, (22, "fsverdict", 21), 0, [90, 200]);
        process(&tree, (23, "fio", 22), 0, [90, 8500]);
        process(&tree, (24, "sync", 20), 0, [7, 7]);
        process(&tree, (30, "cc1", 10), 0, [2, 4]);
        let (strangers, work) = others.passed();
        assert_eq!(work, WorkIo { read_bytes: 8100, write_bytes: 0 });
        let tick_ns = 1_000_000_000 / sys::ticks_per_second();
        let (cpu_ns, read_bytes) = (32 * tick_ns, 4096 + 4);
        assert_eq!((strangers.cpu_ns, strangers.read_bytes), (cpu_ns, read_bytes));
        let cc1 = Stranger { name: "cc1".into(), cpu_ns, read_bytes, write_bytes: 4096 };
        assert_eq!(strangers.most, [cc1]);
    }

    #[test]
    fn what_has_ended_is_its_parents_and_counts_once() {
        let tree = machine();
        let others = Others::look(tree.path()).unwrap();
        // The shell has waited for the compiler, which ran for 10 more, and for another that began
        // and ended meanwhile and ran for 5. Its number is somebody else's by now.
        process(&tree, (10, "a (shell) ", 1), 0, [20 + 310 + 5, 1000 + 96]);
        process(&tree, (11, "ld", 10), 0, [3, 0]);
        let stat = fs::read_to_string(tree.path().join("11/stat")).unwrap().replace(" 117 ", " 9 ");
        fake::write(&tree, "11/stat", &stat);
        let (strangers, _) = others.passed();
        let tick_ns = 1_000_000_000 / sys::ticks_per_second();
        assert_eq!((strangers.cpu_ns, strangers.read_bytes), (18 * tick_ns, 96));
        let by_cpu = strangers.by(|it| it.cpu_ns);
        assert_eq!(by_cpu, [("a (shell) ", 15 * tick_ns), ("ld", 3 * tick_ns)]);
    }

    #[test]
    fn who_is_not_in_it_sees_nobody() {
        let tree = machine();
        fs::remove_file(tree.path().join("self")).unwrap();
        assert!(Others::look(tree.path()).is_none());
    }

    #[test]
    fn of_this_machine_we_are_one() {
        let others = Others::look(Path::new("/proc")).unwrap();
        assert_eq!(others.us, std::process::id());
        others.passed();
    }
}
