//! Prepared workers, all started at once.

use std::io;
use std::sync::RwLock;
use std::thread;

use crate::sys;

/// Why the workers did not do their work.
#[derive(Debug)]
pub enum Failed<F> {
    /// A thread could not be started.
    Thread(io::Error),
    /// The first worker, in order, that failed, and why.
    Work(F),
}

/// Has every worker do `work` on a thread of its own, and gives them back with the time from the
/// first one's start to the last one's end. A lone one works on the caller's: while a process has
/// several threads, each call on a descriptor counts that it is in use.
pub fn at_once<W: Send, F: Send>(
    mut workers: Vec<W>,
    work: impl Fn(&mut W) -> Result<(), F> + Sync,
) -> Result<(Vec<W>, u64), Failed<F>> {
    if let [lone] = workers.as_mut_slice() {
        let start_ns = sys::monotonic_ns();
        work(lone).map_err(Failed::Work)?;
        return Ok((workers, sys::monotonic_ns() - start_ns));
    }
    // Held until every thread exists. If one can't be started, those that were find it closed.
    let gate = RwLock::new(false);
    let stint = |mut worker: W| {
        if !gate.read().is_ok_and(|open| *open) {
            return Ok((worker, [0, 0]));
        }
        let start_ns = sys::monotonic_ns();
        work(&mut worker).map(|()| (worker, [start_ns, sys::monotonic_ns()]))
    };
    let stints = thread::scope(|scope| {
        let mut open = gate.write().expect("nobody else holds it yet");
        let mut threads = Vec::with_capacity(workers.len());
        for worker in workers {
            let builder = thread::Builder::new().name("workload".into());
            let stint = &stint;
            let thread = builder.spawn_scoped(scope, move || stint(worker));
            threads.push(thread.map_err(Failed::Thread)?);
        }
        *open = true;
        drop(open);
        let stints = threads.into_iter().map(|thread| match thread.join() {
            Ok(stint) => stint.map_err(Failed::Work),
            Err(panic) => std::panic::resume_unwind(panic),
        });
        stints.collect::<Result<Vec<_>, _>>()
    })?;
    let start_ns = stints.iter().map(|(_, [start_ns, _])| *start_ns).min().unwrap_or(0);
    let end_ns = stints.iter().map(|(_, [_, end_ns])| *end_ns).max().unwrap_or(0);
    Ok((stints.into_iter().map(|(worker, _)| worker).collect(), end_ns - start_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_come_back_in_order_with_what_they_did() {
        let double = |number: &mut u64| {
            *number *= 2;
            Ok::<_, ()>(())
        };
        let (workers, _) = at_once((1..=5).collect(), double).unwrap();
        assert_eq!(workers, [2, 4, 6, 8, 10]);
    }

    #[test]
    fn the_first_failure_in_order_is_told() {
        let odd = |number: &mut u64| if number.is_multiple_of(2) { Ok(()) } else { Err(*number) };
        let Err(Failed::Work(failed)) = at_once(vec![2, 3, 4, 5], odd) else { panic!() };
        assert_eq!(failed, 3);
    }
}
