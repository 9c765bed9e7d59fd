//! Stops all processes of a trial while others have their turn: those of the work first, because a
//! stopped daemon would hold them up in the kernel.
//!
//! By signals, which every kernel has, and which reach processes in groups of their own, as fio's
//! jobs are. A cgroup of version 2 is not available everywhere, and the trial's own contains the
//! trial itself, too.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use super::processes::{descends, name_and_parent, numbers_in};
use crate::sys;

/// How often we look at processes that we have told to stop.
const PAUSE: Duration = Duration::from_micros(200);

/// How long a process may stay in the kernel, where it can't be stopped: for a device that answers
/// late.
const PATIENCE: Duration = Duration::from_secs(120);

/// Stops `work`, what it has started, and then all others of this PID namespace but us, and waits
/// until all of them stand still.
pub fn stand_still(work: u32) -> io::Result<()> {
    let began = Instant::now();
    loop {
        let moving: Vec<u32> = others().filter(|&process| moves(process)).collect();
        let (first, rest): (Vec<u32>, Vec<u32>) =
            moving.into_iter().partition(|&process| is_of(work, process));
        let next = if first.is_empty() { rest } else { first };
        if next.is_empty() {
            return Ok(());
        }
        // One that is gone stands still.
        next.iter().for_each(|&process| drop(sys::signal_other(process, libc::SIGSTOP)));
        if began.elapsed() > PATIENCE {
            return Err(io::Error::other(
                "a process of the work was in the kernel for 120 s: the device is too slow for a \
                 duet; leave out --duet",
            ));
        }
        std::thread::sleep(PAUSE);
    }
}

/// Has all of them go on, those of `work` last.
pub fn go_on(work: u32) {
    let (last, first): (Vec<u32>, Vec<u32>) = others().partition(|&process| is_of(work, process));
    for process in first.into_iter().chain(last) {
        let _ = sys::signal_other(process, libc::SIGCONT);
    }
}

/// All processes of the namespace but the first, which we are. None of them is awaited here: the
/// work's status is its own.
fn others() -> impl Iterator<Item = u32> {
    let is_ours = std::process::id() == 1;
    numbers_in(Path::new("/proc")).filter(move |&process| is_ours && process != 1)
}

fn is_of(work: u32, process: u32) -> bool {
    let parent = |process: u32| Some(name_and_parent(Path::new("/"), process)?.1);
    descends(process, parent, &BTreeSet::from([work]))
}

/// Any thread of it neither stands still nor has ended: the third field of proc_pid_stat(5). A
/// process is stopped thread by thread.
fn moves(process: u32) -> bool {
    let tasks = format!("/proc/{process}/task");
    numbers_in(Path::new(&tasks)).any(|task| {
        let text = fs::read_to_string(format!("{tasks}/{task}/stat")).unwrap_or_default();
        let state = text.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
        state.is_some_and(|state| !['T', 'Z', 'X'].contains(&state))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool;

    #[test]
    fn who_runs_moves_and_who_is_gone_does_not() {
        assert!(moves(std::process::id()));
        assert!(!moves(u32::MAX));
    }

    #[test]
    fn who_is_stopped_stands_still_until_it_goes_on() {
        let mut child = tool::command("sleep").unwrap().arg("1000").spawn().unwrap();
        let kill = format!("kill -$0 {}", child.id());
        let tell = |signal| tool::run_words(&["sh", "-c", &kill, signal]).unwrap();
        let becomes = |expected| {
            let began = Instant::now();
            while moves(child.id()) != expected && began.elapsed() < PATIENCE {
                std::thread::sleep(PAUSE);
            }
            moves(child.id()) == expected
        };
        assert!(becomes(true));
        tell("STOP");
        let has_stopped = becomes(false);
        tell("CONT");
        let goes_on = becomes(true);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!((has_stopped, goes_on), (true, true));
    }

    #[test]
    fn outside_a_namespace_of_our_own_nobody_is_stopped() {
        stand_still(1).unwrap();
        go_on(1);
        assert_eq!(others().count(), 0);
    }
}
