//! Which trials there have been, and how the last ones ended.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::model::Key;

/// A contender that has failed so often in a row at a workload is given up there: once can be an
/// accident, twice is not.
const FAILURES_TO_GIVE_UP: usize = 2;

/// The trials so far.
#[derive(Debug, Default)]
pub struct Tally {
    works: BTreeMap<String, Trials>,
    taken: usize,
}

/// Those of one workload.
#[derive(Debug, Default)]
pub(super) struct Trials {
    /// By round and contender, how many.
    pub rounds: BTreeMap<u32, BTreeMap<Rc<str>, u32>>,
    /// The rounds that hold more than one of some contender: they are run again.
    pub again: BTreeSet<u32>,
    /// The last trials of each contender, in order.
    ends: BTreeMap<Rc<str>, Vec<End>>,
}

/// Whether a trial ran whole, behind its round and its number among all that were counted.
type End = ((u32, usize), bool);

impl Tally {
    /// Counts one more trial; `is_measured`: it ran whole.
    pub fn take_trial(&mut self, key: &Key, is_measured: bool) {
        self.take(key.round, [&key.workload, &key.contender], is_measured);
    }

    /// The same of a workload and a contender by their names.
    pub(super) fn take(&mut self, round: u32, [workload, contender]: [&str; 2], is_measured: bool) {
        self.taken += 1;
        let end = ((round, self.taken), is_measured);
        self.works.entry(workload.into()).or_default().take(contender, end);
    }

    /// The trials of a workload, if there are any.
    pub(super) fn of(&self, workload: &str) -> Option<&Trials> {
        self.works.get(workload)
    }

    /// The contender has a trial in that round of the workload.
    pub(super) fn has(&self, workload: &str, round: u32, contender: &str) -> bool {
        let trials = self.of(workload).and_then(|trials| trials.rounds.get(&round));
        trials.is_some_and(|trials| trials.contains_key(contender))
    }

    /// The contender's last trials of the workload all failed.
    pub(super) fn gives_up(&self, workload: &str, contender: &str) -> bool {
        let ends = self.of(workload).and_then(|trials| trials.ends.get(contender));
        ends.is_some_and(|ends| {
            ends.len() == FAILURES_TO_GIVE_UP && ends.iter().all(|(_, is_measured)| !is_measured)
        })
    }
}

impl Trials {
    fn take(&mut self, contender: &str, end: End) {
        let ((round, _), _) = end;
        // Each name is held once, however many rounds there are.
        let known = self.ends.get_key_value(contender).map(|(name, _)| Rc::clone(name));
        let name = known.unwrap_or_else(|| contender.into());
        let count = self.rounds.entry(round).or_default().entry(Rc::clone(&name)).or_default();
        *count += 1;
        if *count > 1 {
            self.again.insert(round);
        }
        let ends = self.ends.entry(name).or_default();
        ends.push(end);
        ends.sort_unstable();
        let superfluous = ends.len().saturating_sub(FAILURES_TO_GIVE_UP);
        ends.drain(..superfluous);
        assert!(self.again.len() <= self.rounds.len(), "what is run again has been run");
    }
}
