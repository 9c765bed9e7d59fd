//! Which contenders still take part: what the verdicts so far leave open.

use std::collections::BTreeSet;

use crate::judge::{FIRST_LOOK, Undecided};
use crate::model::{Comparison, Entrant, Intervals, Plan, Stop, Verdict, Workload};

use super::tally::Tally;

/// What the trials so far leave open.
#[derive(Clone, Copy, Debug)]
pub struct Open<'o> {
    /// The verdicts.
    pub comparisons: &'o [Comparison],
    /// The claims that are undecided.
    pub claims: &'o [Undecided],
}

/// The contenders each workload still needs by what is `open`, or why there is none.
pub fn wanted<'a>(
    plan: &'a Plan,
    open: Open,
    tally: &Tally,
) -> Result<Vec<(&'a Workload, Vec<String>)>, Stop> {
    let comparisons = open.comparisons;
    let claims = open.answerable(plan, tally);
    let claimed: BTreeSet<&Entrant> = claims.flat_map(|claim| &claim.entrants).collect();
    let has = |workload: &str, name: &str| {
        claimed.contains(&(workload.to_string(), name.to_string()))
            || is_open(plan, comparisons, workload, name)
    };
    let mut failed = false;
    let mut wanted = Vec::new();
    let keeps_all = plan.judgement.whole && is_any_open(plan, has, tally);
    for workload in &plan.workloads {
        let given_up = |contender: &str| tally.gives_up(&workload.name, contender);
        if given_up(plan.reference()) {
            failed = true;
            continue;
        }
        let others = plan.contenders.iter().map(|contender| &contender.name);
        let mut contenders: Vec<String> =
            others.filter(|name| *name != plan.reference()).cloned().collect();
        let is_open = |name: &String| has(&workload.name, name);
        let is_claimed = claimed.contains(&(workload.name.clone(), plan.reference().into()));
        let goes_on = is_claimed || contenders.iter().any(|name| is_open(name) && !given_up(name));
        // A pooled interval is of rounds that hold all of them.
        let is_pooled = plan.judgement.interval != Intervals::Paired && goes_on;
        if !keeps_all && !is_pooled {
            contenders.retain(is_open);
        }
        let before = contenders.len();
        contenders.retain(|contender| !given_up(contender));
        failed |= before > contenders.len();
        // One that is alone is measured to the end: nothing about it is ever settled.
        if !contenders.is_empty() || is_claimed || plan.contenders.len() == 1 {
            let races = plan.judgement.race && !contenders.is_empty();
            let leader = leader(comparisons, &workload.name).filter(|_| races);
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

/// A contender that is still measured has an open comparison at some workload.
fn is_any_open(plan: &Plan, has: impl Fn(&str, &str) -> bool, tally: &Tally) -> bool {
    plan.workloads.iter().any(|workload| {
        let goes_on = |name: &str| !tally.gives_up(&workload.name, name);
        let mut names = plan.contenders.iter().map(|contender| contender.name.as_str());
        goes_on(plan.reference()) && names.any(|name| goes_on(name) && has(&workload.name, name))
    })
}

impl<'o> Open<'o> {
    /// The undecided claims that further rounds can answer: none of their contenders is given up or
    /// beaten.
    pub fn answerable(self, plan: &Plan, tally: &Tally) -> impl Iterator<Item = &'o Undecided> {
        let is_out = move |(workload, name): &Entrant| {
            let is_beaten = |it: &Comparison| {
                it.workload == *workload && it.contender == *name && it.beaten_by.is_some()
            };
            tally.gives_up(workload, name)
                || tally.gives_up(workload, plan.reference())
                || self.comparisons.iter().any(is_beaten)
        };
        self.claims.iter().filter(move |claim| !claim.entrants.iter().any(&is_out))
    }
}

/// A comparison is open until it is settled, or its contender out of the race. Void is not believed
/// before the first look: what voids one trial may have been an accident.
fn is_open(plan: &Plan, comparisons: &[Comparison], workload: &str, contender: &str) -> bool {
    let its = |it: &&Comparison| it.workload == workload && it.contender == contender;
    comparisons.iter().filter(its).any(|comparison| match comparison.verdict {
        Verdict::Void => comparison.rounds < FIRST_LOOK,
        verdict => {
            let goes_on = !verdict.is_settled() || gains_by_the_last(plan, comparison);
            goes_on && comparison.beaten_by.is_none()
        }
    })
}

/// The last round alone is left, and by how much one is better is not known to within the margin.
/// Of five rounds the fourth look has a 125th of the last one's level, and a far wider interval
/// (METHODOLOGY, "When to stop").
fn gains_by_the_last(plan: &Plan, comparison: &Comparison) -> bool {
    let judgement = &plan.judgement;
    let is_next = judgement.rounds().is_some_and(|all| comparison.rounds + 1 == all);
    let is_large = matches!(comparison.verdict, Verdict::Faster | Verdict::Slower);
    let within = (1.0 + judgement.margin.0).powi(2);
    let is_wide = comparison.high.is_none_or(|high| high > within * comparison.low);
    is_next && is_large && is_wide
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
