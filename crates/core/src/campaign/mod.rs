//! The plan and the records so far give the next round, or the end.
//!
//! [`next_round`] is pure: the same plan, seed and records give the same answer, so that a run
//! can be resumed from its records alone and the whole loop runs on a simulated host.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::judge::{FIRST_LOOK, Judge};
use crate::model::{Comparison, Draws, Key, Plan, Record, Stop, Verdict, Workload, derived_seed};

/// A contender that has failed so often in a row at a workload is given up there: once can be an
/// accident, twice is not.
const FAILURES_TO_GIVE_UP: usize = 2;

/// What comes next.
#[derive(Debug, PartialEq)]
pub enum Next {
    /// These trials, in this order.
    Round(Vec<Slot>),
    /// The run is over.
    End(Stop),
}

/// A trial that is to be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Where it belongs.
    pub key: Key,
    /// Its place in its round, from 1.
    pub position: u32,
    /// Seed of its work: the same for all contenders of the round.
    pub seed: u64,
}

/// The trials still missing from the round under way, or those of the next one.
///
/// `spent` is the time the run has taken so far.
pub fn next_round(
    plan: &Plan,
    seed: u64,
    judge: &Judge,
    records: &[Record],
    spent: Duration,
) -> Next {
    let current = records.iter().map(|record| record.key.round).max().unwrap_or(1);
    for round in [current, current + 1] {
        if plan.judgement.rounds().is_some_and(|rounds| round > rounds) {
            return Next::End(Stop::Rounds);
        }
        let before: Vec<Record> =
            records.iter().filter(|record| record.key.round < round).cloned().collect();
        let wanted = match open(plan, judge, &before) {
            Ok(wanted) => wanted,
            Err(stop) => return Next::End(stop),
        };
        let done: BTreeSet<&Key> = records.iter().map(|record| &record.key).collect();
        let mut slots = slots(wanted, seed, round);
        slots.retain(|slot| !done.contains(&slot.key));
        if slots.is_empty() {
            continue;
        }
        return match over_budget(plan, round, spent) {
            true => Next::End(Stop::Budget),
            false => Next::Round(slots),
        };
    }
    Next::End(Stop::Settled)
}

/// One more round as long as those before would go over the budget. The first is always run.
fn over_budget(plan: &Plan, round: u32, spent: Duration) -> bool {
    let done = round - 1;
    let Some(budget) = plan.judgement.budget else { return false };
    done > 0 && spent + spent / done > budget.0
}

/// The contenders each workload still needs, or why there is none.
fn open<'a>(
    plan: &'a Plan,
    judge: &Judge,
    records: &[Record],
) -> Result<Vec<(&'a Workload, Vec<String>)>, Stop> {
    let comparisons = judge.comparisons(records);
    let mut failed = false;
    let mut wanted = Vec::new();
    for workload in &plan.workloads {
        let given_up = |contender: &str| gives_up(records, &workload.name, contender);
        if given_up(plan.reference()) {
            failed = true;
            continue;
        }
        let mut contenders: Vec<String> = plan
            .contenders
            .iter()
            .filter(|contender| is_open(&comparisons, &workload.name, &contender.name))
            .map(|contender| contender.name.clone())
            .collect();
        let before = contenders.len();
        contenders.retain(|contender| !given_up(contender));
        failed |= before > contenders.len();
        if !contenders.is_empty() {
            contenders.push(plan.reference().into());
            let arms = plan.arms(workload).into_iter().map(|arm| arm.name);
            contenders.extend(arms.filter(|arm| !given_up(arm)));
            wanted.push((workload, contenders));
        }
    }
    match (wanted.is_empty(), failed) {
        (false, _) => Ok(wanted),
        (true, false) => Err(Stop::Settled),
        (true, true) => Err(Stop::Failed),
    }
}

/// A comparison is open until it is settled. Void is not believed before the first look: what
/// voids one trial may have been an accident.
fn is_open(comparisons: &[Comparison], workload: &str, contender: &str) -> bool {
    comparisons.iter().filter(|c| c.workload == workload && c.contender == contender).any(
        |comparison| match comparison.verdict {
            Verdict::Void => comparison.rounds < FIRST_LOOK,
            verdict => !verdict.is_settled(),
        },
    )
}

/// The contender's last trials of the workload all failed.
fn gives_up(records: &[Record], workload: &str, contender: &str) -> bool {
    let mut trials: Vec<&Record> = records
        .iter()
        .filter(|record| record.key.workload == workload && record.key.contender == contender)
        .collect();
    trials.sort_by_key(|record| record.key.round);
    trials.len() >= FAILURES_TO_GIVE_UP
        && trials.iter().rev().take(FAILURES_TO_GIVE_UP).all(|record| !record.is_measured())
}

/// The round's trials: the workloads in random order, in each its contenders in random order.
fn slots(wanted: Vec<(&Workload, Vec<String>)>, seed: u64, round: u32) -> Vec<Slot> {
    let mut wanted = wanted;
    Draws::new(derived_seed(seed, &["workloads"], round)).shuffle(&mut wanted);
    let mut slots = Vec::new();
    for (workload, mut contenders) in wanted {
        // By name first: the order must depend on the seed, not on how the list came about.
        contenders.sort();
        let order = derived_seed(seed, &["contenders", &workload.name], round);
        Draws::new(order).shuffle(&mut contenders);
        for contender in contenders {
            slots.push(Slot {
                key: Key { round, workload: workload.name.clone(), contender },
                position: slots.len() as u32 + 1,
                seed: derived_seed(seed, &["work", &workload.name], round),
            });
        }
    }
    slots
}
