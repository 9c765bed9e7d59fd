//! The processes of a trial's own PID namespace, in which the trial is the first: those that
//! belong to its file system, those that serve its work, and all others, which its work has
//! started.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use crate::sys;

/// Who belongs to the file system: the daemon that is one, the cleaner of NILFS2.
#[derive(Debug, Default)]
pub struct Processes {
    residents: BTreeSet<u32>,
    /// Left running by what goes before the work: a database's server.
    servers: BTreeSet<u32>,
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

    /// Those that are there now, and do not belong to the file system, serve the work.
    pub fn settle_servers(&mut self) {
        self.servers = self.left();
    }

    /// Something serves the work.
    pub fn has_servers(&self) -> bool {
        !self.servers.is_empty()
    }

    /// How many the work has left running, those aside that serve it and what these have started;
    /// none where the trial has no namespace of its own.
    pub fn strangers(&self) -> u32 {
        let left = self.left().into_iter();
        left.filter(|&process| !descends(process, parent, &self.servers)).count() as u32
    }

    fn left(&self) -> BTreeSet<u32> {
        others().difference(&self.residents).copied().collect()
    }

    /// Ends all but those who belong to the file system.
    pub fn end_strangers(&mut self) {
        self.servers.clear();
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

/// `process` is one of `ancestors`, or was started by one, or by one that was.
fn descends(
    mut process: u32,
    parent: impl Fn(u32) -> Option<u32>,
    ancestors: &BTreeSet<u32>,
) -> bool {
    while !ancestors.contains(&process) {
        match parent(process) {
            Some(above) if above > 1 => process = above,
            _ => return false,
        }
    }
    true
}

/// Who has started `process`: the fourth field of proc_pid_stat(5), after a name that may hold
/// anything, between parentheses.
fn parent(process: u32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    text.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// The entries of `directory` that are numbers; none where it is gone.
fn numbers_in(directory: &str) -> impl Iterator<Item = u32> + use<> {
    let names = fs::read_dir(directory).into_iter().flatten().flatten().map(|e| e.file_name());
    names.filter_map(|name| name.to_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_starts_is_the_servers() {
        let parent =
            |process: u32| [None, None, Some(1), Some(2), Some(3), Some(1)][process as usize];
        let of = |server| (2..6).filter(move |&it| descends(it, parent, &BTreeSet::from([server])));
        assert_eq!(of(2).collect::<Vec<_>>(), [2, 3, 4]);
        assert_eq!(of(5).collect::<Vec<_>>(), [5]);
        assert!(!descends(4, |_| None, &BTreeSet::from([2])), "it is gone");
    }

    #[test]
    fn our_parent_is_the_one_the_system_says() {
        assert_eq!(parent(std::process::id()), Some(std::os::unix::process::parent_id()));
    }
}
