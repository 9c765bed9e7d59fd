//! The plan and the records so far give the next round, or the end.
//!
//! [`next_round`] is pure: the same plan, seed and records give the same answer, so that a run
//! can be resumed from its records alone and the whole loop runs on a simulated host.

mod remaining;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::judge::{FIRST_LOOK, Judge};
use crate::model::{
    Comparison, Draws, Intervals, Key, Plan, Record, Stop, Verdict, Workload, derived_seed,
};

pub use remaining::{Remaining, remaining};

/// A contender that has failed so often in a row at a workload is given up there: once can be an
/// accident, twice is not.
const FAILURES_TO_GIVE_UP: usize = 2;

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

/// The trials still missing from the round under way, those of a round that is to be run again, or
/// those of the next one.
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
        if round > current {
            let slots = repeated(plan, seed, judge, records);
            if !slots.is_empty() {
                return match over_budget(plan, round, spent) {
                    true => Next::End(Stop::Budget),
                    false => Next::Round(slots),
                };
            }
        }
        if plan.judgement.rounds().is_some_and(|rounds| round > rounds) {
            return Next::End(Stop::Rounds);
        }
        let before: Vec<Record> =
            records.iter().filter(|record| record.key.round < round).cloned().collect();
        let wanted = match wanted(plan, &judge.comparisons(&before), &before) {
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

/// What is still missing of the rounds that are run again, whole for their workload: those with a
/// void trial, once each, where most rounds of the workload have none and it was an accident.
fn repeated(plan: &Plan, seed: u64, judge: &Judge, records: &[Record]) -> Vec<Slot> {
    let void = judge.void_rounds(records);
    let mut slots = Vec::new();
    for workload in &plan.workloads {
        let mut rounds: BTreeMap<u32, BTreeMap<&str, usize>> = BTreeMap::new();
        for key in records.iter().map(|it| &it.key).filter(|key| key.workload == workload.name) {
            *rounds.entry(key.round).or_default().entry(&key.contender).or_default() += 1;
        }
        let is_begun = |trials: &BTreeMap<&str, usize>| trials.values().any(|&count| count > 1);
        let is_void = |round: u32| void.contains(&(round, workload.name.clone()));
        let voided = rounds.keys().filter(|round| is_void(**round)).count();
        let mut left =
            REPEATS.saturating_sub(rounds.values().filter(|trials| is_begun(trials)).count());
        for (&round, trials) in &rounds {
            if !is_begun(trials) {
                if left == 0 || !is_void(round) || 2 * voided >= rounds.len() {
                    continue;
                }
                left -= 1;
            }
            let missing = trials.iter().filter(|(_, count)| **count == 1);
            let names: Vec<String> = missing.map(|(name, _)| name.to_string()).collect();
            let again = derived_seed(seed, &["again"], round);
            let mut more = slots_of(workload, names, again, seed, round);
            more.iter_mut().for_each(|slot| slot.position += slots.len() as u32);
            slots.extend(more);
        }
    }
    slots
}

/// The contenders each workload still needs by the `comparisons` of the records, or why there is
/// none.
fn wanted<'a>(
    plan: &'a Plan,
    comparisons: &[Comparison],
    records: &[Record],
) -> Result<Vec<(&'a Workload, Vec<String>)>, Stop> {
    let mut failed = false;
    let mut wanted = Vec::new();
    for workload in &plan.workloads {
        let given_up = |contender: &str| gives_up(records, &workload.name, contender);
        if given_up(plan.reference()) {
            failed = true;
            continue;
        }
        let others = plan.contenders.iter().map(|contender| &contender.name);
        let mut contenders: Vec<String> =
            others.filter(|name| *name != plan.reference()).cloned().collect();
        let is_open = |name: &String| is_open(comparisons, &workload.name, name);
        let goes_on = contenders.iter().any(|name| is_open(name) && !given_up(name));
        // A pooled interval is of rounds that hold all of them.
        if plan.judgement.interval == Intervals::Paired || !goes_on {
            contenders.retain(is_open);
        }
        let before = contenders.len();
        contenders.retain(|contender| !given_up(contender));
        failed |= before > contenders.len();
        if !contenders.is_empty() {
            let leader = leader(comparisons, &workload.name).filter(|_| plan.judgement.race);
            let stays = |name: &String| !contenders.contains(name) && !given_up(name);
            contenders.extend(leader.filter(stays));
            contenders.push(plan.reference().into());
            let arms = plan.arms(workload).into_iter().map(|arm| arm.name);
            contenders.extend(arms.filter(|arm| !given_up(arm)));
            wanted.push((workload, contenders));
        }
    }
    match (wanted.is_empty(), failed) {
        (false, _) => Ok(wanted),
        (true, false) if comparisons.iter().any(|it| it.beaten_by.is_some()) => Err(Stop::Race),
        (true, false) => Err(Stop::Settled),
        (true, true) => Err(Stop::Failed),
    }
}

/// A comparison is open until it is settled, or its contender out of the race. Void is not believed
/// before the first look: what voids one trial may have been an accident.
fn is_open(comparisons: &[Comparison], workload: &str, contender: &str) -> bool {
    comparisons.iter().filter(|c| c.workload == workload && c.contender == contender).any(
        |comparison| match comparison.verdict {
            Verdict::Void => comparison.rounds < FIRST_LOOK,
            verdict => !verdict.is_settled() && comparison.beaten_by.is_none(),
        },
    )
}

/// The contender that is furthest ahead of the reference. In a race it stays though it is settled:
/// it is the one that puts others out.
fn leader(comparisons: &[Comparison], workload: &str) -> Option<String> {
    let ahead = |it: &&Comparison| it.workload == workload && it.ratio > Some(1.0);
    let ratio = |it: &Comparison| it.ratio.unwrap_or(0.0);
    let its = comparisons.iter().filter(ahead);
    let first = its.max_by(|one, other| ratio(one).total_cmp(&ratio(other)))?;
    Some(first.contender.clone())
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
    for (workload, contenders) in wanted {
        let mut more = slots_of(workload, contenders, seed, seed, round);
        more.iter_mut().for_each(|slot| slot.position += slots.len() as u32);
        slots.extend(more);
    }
    slots
}

/// The trials of one workload in a round, in an order drawn from `order_seed`.
fn slots_of(
    workload: &Workload,
    mut contenders: Vec<String>,
    order_seed: u64,
    seed: u64,
    round: u32,
) -> Vec<Slot> {
    // By name first: the order must depend on the seed, not on how the list came about.
    contenders.sort();
    let order = derived_seed(order_seed, &["contenders", &workload.name], round);
    Draws::new(order).shuffle(&mut contenders);
    let slot = |(position, contender): (u32, String)| Slot {
        key: Key { round, workload: workload.name.clone(), contender },
        position,
        seed: derived_seed(seed, &["work", &workload.name], round),
    };
    (1..).zip(contenders).map(slot).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::testing::{plan, record};
    use crate::model::CacheState;

    /// Rounds of a and b, whose caches were cold but for the trials of b named.
    fn records(rounds: u32, void: &[u32]) -> Vec<Record> {
        let trial = |round: u32, name: &str| {
            let dropped = name == "a" || !void.contains(&round);
            let caches = vec![CacheState { dropped, ..CacheState::default() }];
            Record { caches, ..record(round, "w", name) }
        };
        (1..=rounds).flat_map(|round| [trial(round, "a"), trial(round, "b")]).collect()
    }

    fn next(records: &[Record]) -> Vec<(u32, String)> {
        let plan = plan(
            "[[contender]]\nname = \"a\"\n[[contender]]\nname = \"b\"\n\
             [[workload]]\nname = \"w\"\ncommand = \"true\"\n[judgement]\nrounds = 6",
        );
        match next_round(&plan, 1, &Judge::new(&plan), records, Duration::ZERO) {
            Next::Round(slots) => {
                let mut trials: Vec<_> =
                    slots.into_iter().map(|slot| (slot.key.round, slot.key.contender)).collect();
                trials.sort();
                trials
            }
            Next::End(_) => Vec::new(),
        }
    }

    fn both(round: u32) -> Vec<(u32, String)> {
        vec![(round, "a".into()), (round, "b".into())]
    }

    #[test]
    fn a_round_with_a_void_trial_is_run_again_whole_and_once() {
        assert_eq!(next(&records(3, &[])), both(4));
        assert_eq!(next(&records(1, &[1])), both(2), "one of one may be the rule");
        let mut run = records(3, &[2]);
        assert_eq!(next(&run), both(2));
        run.push(record(2, "w", "b"));
        assert_eq!(next(&run), both(2)[..1], "an interrupted repetition goes on");
        run.push(record(2, "w", "a"));
        assert_eq!(next(&run), both(4));
        run.last_mut().unwrap().caches = vec![CacheState::default()];
        assert_eq!(next(&run), both(4), "it is not run a third time");
    }

    #[test]
    fn what_is_void_most_of_the_time_is_not_run_again() {
        assert_eq!(next(&records(4, &[1, 2])), both(5));
        assert_eq!(next(&records(6, &[6])), both(6), "also after the last round");
        assert_eq!(next(&records(6, &[])), []);
    }
}
