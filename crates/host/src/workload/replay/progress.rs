//! How far each thread of a replay has come, and waiting for it.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// One thread's calls that are done. It takes no lock and makes no call to the kernel unless
/// somebody waits.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicU64,
    waiting: AtomicU32,
    gate: Mutex<()>,
    more: Condvar,
}

impl Progress {
    /// One more call is done.
    #[inline]
    pub fn advance(&self) {
        // A waiter says so before it looks at the count, and we count before we look for waiters:
        // one of the two sees the other.
        self.done.fetch_add(1, Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) > 0 {
            drop(self.gate.lock().unwrap_or_else(PoisonError::into_inner));
            self.more.notify_all();
        }
    }

    /// Returns once that many calls are done.
    #[inline]
    pub fn wait_for(&self, calls: u64) {
        if self.done.load(Ordering::SeqCst) < calls {
            self.wait(calls);
        }
    }

    #[cold]
    fn wait(&self, calls: u64) {
        let mut gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        self.waiting.fetch_add(1, Ordering::SeqCst);
        while self.done.load(Ordering::SeqCst) < calls {
            gate = self.more.wait(gate).unwrap_or_else(PoisonError::into_inner);
        }
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_take_turns() {
        const TURNS: u64 = 2000;
        let [one, other] = [Progress::default(), Progress::default()];
        let (one, other) = (&one, &other);
        let last = AtomicU64::new(0);
        let play = |own: &Progress, before: &Progress, lead: u64| {
            for turn in 0..TURNS {
                before.wait_for(turn + lead);
                let place = 2 * turn + lead;
                assert_eq!(last.swap(place, Ordering::Relaxed), place.saturating_sub(1));
                own.advance();
            }
        };
        let play = &play;
        std::thread::scope(|scope| {
            for (own, before, lead) in [(one, other, 0), (other, one, 1)] {
                let play = move || play(own, before, lead);
                std::thread::Builder::new().spawn_scoped(scope, play).unwrap();
            }
        });
    }
}
