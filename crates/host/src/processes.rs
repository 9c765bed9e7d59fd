//! The processes of a trial's own PID namespace, in which the trial is the first: those that
//! belong to its file system, and all others, which its work has started.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use crate::sys;

/// Who belongs to the file system: the daemon that is one, the cleaner of NILFS2.
#[derive(Debug, Default)]
pub struct Processes {
    residents: BTreeSet<u32>,
}

impl Processes {
    /// Those that are there now belong to the file system: nothing else has been started yet.
    pub fn settle_in(&mut self) {
        self.residents = others();
    }

    /// The threads of those who belong to the file system.
    pub fn resident_threads(&self) -> BTreeSet<u32> {
        self.residents
            .iter()
            .flat_map(|process| numbers_in(&format!("/proc/{process}/task")))
            .collect()
    }

    /// How many the work has left running; none where the trial has no namespace of its own.
    pub fn strangers(&self) -> u32 {
        self.left().len() as u32
    }

    fn left(&self) -> BTreeSet<u32> {
        others().difference(&self.residents).copied().collect()
    }

    /// Ends what the work has left running.
    pub fn end_strangers(&self) {
        until_none(|| {
            let left = self.left();
            left.iter().for_each(|&process| sys::kill_other(process));
            left.is_empty()
        });
    }

    /// Ends all there are: what belonged to the file system has nothing to do any more.
    pub fn end_all(&mut self) {
        self.residents.clear();
        until_none(|| {
            let left = !others().is_empty();
            !left || sys::kill_all_others().is_err()
        });
    }
}

/// Killed is not gone: a moment later they hold nothing any more.
fn until_none(mut none_is_left: impl FnMut() -> bool) {
    const PAUSE: Duration = Duration::from_millis(1);
    for _ in 0..1000 {
        if none_is_left() {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

/// All processes of the namespace but the first, which we are.
fn others() -> BTreeSet<u32> {
    if std::process::id() != 1 {
        return BTreeSet::new();
    }
    sys::reap();
    numbers_in("/proc").filter(|&process| process != 1).collect()
}

/// The entries of `directory` that are numbers; none where it is gone.
fn numbers_in(directory: &str) -> impl Iterator<Item = u32> + use<> {
    let names = fs::read_dir(directory).into_iter().flatten().flatten().map(|e| e.file_name());
    names.filter_map(|name| name.to_str()?.parse().ok())
}
