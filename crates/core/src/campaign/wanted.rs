//! Who still takes part: what the verdicts so far leave open.

use std::collections::BTreeSet;

use crate::judge::{FIRST_LOOK, Part};
use crate::model::{Comparison, Intervals, Plan, Stop, Verdict, Workload};

use super::tally::Tally;

/// What the trials so far leave open.
#[derive(Clone, Copy, Debug)]
pub struct Open<'o> {
    /// The verdicts.
    pub comparisons: &'o [Comparison],
    /// Who takes part in the claims that have no answer yet.
    pub claimed: &'o BTreeSet<Part>,
}

/// The contenders each workload still needs by what is `open`, or why there is none.
pub fn wanted<'a>(
    plan: &'a Plan,
    open: Open,
    tally: &Tally,
) -> Result<Vec<(&'a Workload, Vec<String>)>, Stop> {
    let Open { comparisons, claimed } = open;
    let mut failed = false;
    let mut wanted = Vec::new();
    let keeps_all = plan.judgement.whole && is_any_open(plan, open, tally);
    for workload in &plan.workloads {
        let given_up = |contender: &str| tally.gives_up(&workload.name, contender);
        if given_up(plan.reference()) {
            failed = true;
            continue;
        }
        let others = plan.contenders.iter().map(|contender| &contender.name);
        let mut contenders: Vec<String> =
            others.filter(|name| *name != plan.reference()).cloned().collect();
        let is_open = |name: &String| open.has(&workload.name, name);
        let goes_on = contenders.iter().any(|name| is_open(name) && !given_up(name));
        // A pooled interval is of rounds that hold all of them.
        let is_pooled = plan.judgement.interval != Intervals::Paired && goes_on;
        if !keeps_all && !is_pooled {
            contenders.retain(is_open);
        }
        let before = contenders.len();
        contenders.retain(|contender| !given_up(contender));
        failed |= before > contenders.len();
        // One that is alone is measured to the end: nothing about it is ever settled.
        let reference = (workload.name.clone(), plan.reference().to_string());
        let is_claimed = claimed.contains(&reference);
        if !contenders.is_empty() || is_claimed || plan.contenders.len() == 1 {
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

/// Somebody who is still measured has an open comparison at some workload.
fn is_any_open(plan: &Plan, open: Open, tally: &Tally) -> bool {
    plan.workloads.iter().any(|workload| {
        let goes_on = |name: &str| !tally.gives_up(&workload.name, name);
        let mut names = plan.contenders.iter().map(|contender| contender.name.as_str());
        goes_on(plan.reference())
            && names.any(|name| goes_on(name) && open.has(&workload.name, name))
    })
}

impl Open<'_> {
    /// A comparison or a claim of the contender at the workload is open.
    fn has(self, workload: &str, contender: &str) -> bool {
        let part = (workload.to_string(), contender.to_string());
        self.claimed.contains(&part) || is_open(self.comparisons, workload, contender)
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
