//! The plan and the records so far give the next round, or the end.
//!
//! [`next_round`] is pure: the same plan, seed and records give the same answer, so that a run can
//! be resumed from its records alone and the whole loop runs on a simulated host. A [`Campaign`]
//! gives that answer after each record without reading the earlier ones again.

mod remaining;
mod slots;
mod tally;
#[cfg(test)]
mod tests;
mod wanted;

use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use crate::judge::{Common, Fold, Judge, Kept, Undecided};
use crate::model::{Comparison, Finding, Plan, Record, Stop, derived_seed};

use slots::{slots, slots_of};
use wanted::wanted;

pub use remaining::{Remaining, remaining};
pub use slots::Slot;
pub use tally::Tally;
pub use wanted::Open;

/// So many rounds of a workload are run again at most: what happens more often is no accident.
const REPEATS: usize = 3;

/// What comes next.
#[derive(Debug, PartialEq)]
pub enum Next {
    /// These trials, in this order.
    Round(Vec<Slot>),
    /// The run is over.
    End(Stop),
}

/// [`Campaign::next`] of these records.
pub fn next_round(seed: u64, judge: &Judge, records: &[Record], spent: Duration) -> Next {
    Campaign::of(seed, judge, records).next(spent)
}

/// A run's records so far, and what follows from them.
///
/// What it holds is a function of the plan, the seed and the records it has taken.
#[derive(Debug)]
pub struct Campaign<'a> {
    judge: &'a Judge,
    seed: u64,
    all: Stage<'a>,
    /// Without those of the last round.
    before: Stage<'a>,
    /// Those of the last round.
    last: Vec<Rc<Kept>>,
    common: Common,
    /// The last round.
    round: u32,
}

/// Some of a run's trials, judged and counted.
#[derive(Debug)]
struct Stage<'a> {
    fold: Fold<'a>,
    tally: Tally,
}

impl<'a> Stage<'a> {
    fn new(judge: &'a Judge) -> Stage<'a> {
        Stage { fold: Fold::new(judge), tally: Tally::default() }
    }

    fn take(&mut self, kept: &Rc<Kept>) {
        self.fold.take(kept);
        let names = [&*kept.workload, &*kept.contender];
        self.tally.take(kept.round, names, kept.is_measured);
    }
}

impl<'a> Campaign<'a> {
    /// Before the first trial.
    pub fn new(seed: u64, judge: &'a Judge) -> Campaign<'a> {
        let (all, before) = (Stage::new(judge), Stage::new(judge));
        let common = Common::default();
        Campaign { judge, seed, all, before, last: Vec::new(), common, round: 1 }
    }

    /// After these trials.
    pub fn of(seed: u64, judge: &'a Judge, records: &[Record]) -> Campaign<'a> {
        let mut campaign = Campaign::new(seed, judge);
        records.iter().for_each(|record| campaign.take(record));
        campaign
    }

    /// Takes the record of one more trial. Each comes once, in the order in which they were made.
    pub fn take(&mut self, record: &Record) {
        let (plan, at) = (self.judge.plan(), self.all.fold.taken());
        let kept = Rc::new(Kept::of(plan, record, at, &mut self.common));
        let round = kept.round;
        if round > self.round {
            self.last.drain(..).for_each(|kept| self.before.take(&kept));
            self.round = round;
        }
        if round < self.round {
            self.before.take(&kept);
        } else {
            self.last.push(Rc::clone(&kept));
        }
        self.all.take(&kept);
        let parts = self.before.fold.taken() + self.last.len();
        assert_eq!(parts, self.all.fold.taken(), "a record is of the last round or before it");
        assert!(self.last.iter().all(|it| it.round == self.round), "one round is the last");
    }

    /// How many records were taken.
    pub fn taken(&self) -> usize {
        self.all.fold.taken()
    }

    /// The verdicts ([`Fold::comparisons`]).
    pub fn comparisons(&mut self) -> Vec<Comparison> {
        self.all.fold.comparisons()
    }

    /// The claims that are undecided by these verdicts ([`Fold::undecided_claims`]).
    pub fn undecided_claims(&mut self, comparisons: &[Comparison]) -> Vec<Undecided> {
        self.all.fold.undecided_claims(comparisons)
    }

    /// What the audits notice while the run goes on ([`Fold::findings_meanwhile`]).
    pub fn findings_meanwhile(&mut self) -> Vec<Finding> {
        self.all.fold.findings_meanwhile()
    }

    /// The trials still missing from the round under way, those of a round that is to be run again,
    /// or those of the next one.
    ///
    /// `spent` is the time the run has taken so far.
    pub fn next(&mut self, spent: Duration) -> Next {
        let plan = self.judge.plan();
        let or_budget = |round, slots| match over_budget(plan, round, spent) {
            true => Next::End(Stop::Budget),
            false => Next::Round(slots),
        };
        for round in [self.round, self.round + 1] {
            if round > self.round {
                let slots = self.repeated();
                if !slots.is_empty() {
                    return or_budget(round, slots);
                }
            }
            if plan.judgement.rounds().is_some_and(|rounds| round > rounds) {
                return Next::End(Stop::Rounds);
            }
            let earlier = if round > self.round { &mut self.all } else { &mut self.before };
            let comparisons = earlier.fold.comparisons();
            let claims = earlier.fold.undecided_claims(&comparisons);
            let open = Open { comparisons: &comparisons, claims: &claims };
            let wanted = match wanted(plan, open, &earlier.tally) {
                Ok(wanted) => wanted,
                Err(stop) => return Next::End(stop),
            };
            let mut slots = slots(wanted, self.seed, round);
            let done = &self.all.tally;
            slots.retain(|Slot { key, .. }| !done.has(&key.workload, key.round, &key.contender));
            if !slots.is_empty() {
                return or_budget(round, slots);
            }
        }
        Next::End(Stop::Settled)
    }

    /// What is still missing of the rounds that are run again, complete for their workload: rounds
    /// with a void trial, once each, if most rounds of the workload have none, so that it was an
    /// accident.
    fn repeated(&self) -> Vec<Slot> {
        let mut slots: Vec<Slot> = Vec::new();
        for (place, workload) in self.judge.plan().workloads.iter().enumerate() {
            let Some(trials) = self.all.tally.of(&workload.name) else { continue };
            let void = self.all.fold.void_rounds(place);
            let is_accident = 2 * void.len() < trials.rounds.len();
            let left = if is_accident { REPEATS.saturating_sub(trials.again.len()) } else { 0 };
            let more = void.filter(|round| !trials.again.contains(round)).take(left);
            let rounds: BTreeSet<u32> = trials.again.iter().copied().chain(more).collect();
            for round in rounds {
                let missing = trials.rounds[&round].iter().filter(|(_, count)| **count == 1);
                let names: Vec<String> = missing.map(|(name, _)| name.to_string()).collect();
                let again = derived_seed(self.seed, &["again"], round);
                let mut more = slots_of(workload, names, again, self.seed, round);
                more.iter_mut().for_each(|slot| slot.position += slots.len() as u32);
                slots.extend(more);
            }
        }
        slots
    }
}

/// One more round as long as those before would go over the budget. The first is always run.
fn over_budget(plan: &Plan, round: u32, spent: Duration) -> bool {
    let done = round - 1;
    let Some(budget) = plan.judgement.budget else { return false };
    done > 0 && spent + spent / done > budget.0
}
