//! How much of a run is still to come: for a person who waits, not for choosing what to run next.

use crate::judge::{FIRST_LOOK, Undecided};
use crate::model::{Comparison, Plan, Workload};

use super::tally::Tally;
use super::wanted::{Open, wanted};

/// What is still to come of one workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remaining {
    /// The workload's name.
    pub workload: String,
    /// Contenders and arms that take part in further rounds.
    pub contenders: Vec<String>,
    /// Trials at most; `None` where the rounds are not limited.
    pub trials_at_most: Option<u32>,
    /// Trials until every comparison and claim is settled, as it looks now; `None` before the first
    /// look.
    pub trials_likely: Option<u32>,
}

/// What is still to come of each workload that is not settled yet, by what is `open` after
/// `tally`'s trials.
pub fn remaining(plan: &Plan, open: Open, tally: &Tally) -> Vec<Remaining> {
    let Ok(wanted) = wanted(plan, open, tally) else { return Vec::new() };
    let of = |(workload, contenders): (&Workload, Vec<String>)| {
        let last = tally.of(&workload.name).and_then(|trials| trials.rounds.last_key_value());
        let round = last.map_or(0, |(round, _)| *round);
        let in_round = last.map(|(_, trials)| trials);
        let count = |name: &String| in_round?.get(name.as_str()).copied();
        let done = contenders.iter().filter_map(count).map(|count| count as usize).sum();
        let a_round = contenders.len();
        // For the round under way only the missing trials.
        let under_way = if round > 0 { a_round.saturating_sub(done) } else { 0 };
        let trials = |last: u32| {
            let more = last.saturating_sub(round) as usize * a_round;
            u32::try_from(more + under_way).unwrap_or(u32::MAX)
        };
        let rounds = plan.judgement.rounds();
        let likely = likely_rounds(plan, open, tally, workload);
        Remaining {
            workload: workload.name.clone(),
            contenders,
            trials_at_most: rounds.map(trials),
            trials_likely: likely.map(|likely| trials(rounds.map_or(likely, |it| it.min(likely)))),
        }
    };
    wanted.into_iter().map(of).collect()
}

/// The round after which all comparisons and claims of the workload are settled, as it looks now.
fn likely_rounds(plan: &Plan, open: Open, tally: &Tally, workload: &Workload) -> Option<u32> {
    let is_its = |claim: &&Undecided| claim.entrants.iter().any(|(work, _)| *work == workload.name);
    let claims = open.answerable(plan, tally).filter(is_its).map(|claim| claim.settled_after);
    let its = open.comparisons.iter().filter(|it| it.workload == workload.name);
    let verdicts = its.filter(|it| !it.verdict.is_settled()).map(Comparison::settled_after);
    let rounds = claims.chain(verdicts).map(|after| Some(after?.max(FIRST_LOOK)));
    rounds.collect::<Option<Vec<u32>>>()?.into_iter().max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::Campaign;
    use crate::judge::Judge;
    use crate::judge::testing::{plan, record};
    use crate::model::{Record, Sample, Unit, Verdict};

    const PLAN: &str = "[[contender]]\nname = \"a\"\n[[contender]]\nname = \"b\"\n\
                        [[contender]]\nname = \"c\"\n\
                        [[workload]]\nname = \"w\"\ncommand = \"true\"\ncache = \"warm\"\n";

    /// So many rounds, in which b takes half of a's time and c, noisily, about the same.
    fn records(rounds: u32) -> Vec<Record> {
        let timed = |round: u32, name: &str| {
            let noise = f64::from(round * 7 % 5) / 10.0;
            let seconds = match name {
                "b" => 0.5,
                "c" => 0.75 + noise,
                _ => 1.0,
            };
            let samples = vec![Sample::lower("wall_time", seconds, Unit::Seconds)];
            Record { samples, ..record(round, "w", name) }
        };
        (1..=rounds).flat_map(|round| ["a", "b", "c"].map(|name| timed(round, name))).collect()
    }

    fn left(plan: &Plan, records: &[Record]) -> Vec<Remaining> {
        let judge = Judge::new(plan);
        let mut tally = Tally::default();
        records.iter().for_each(|it| tally.take_trial(&it.key, it.is_measured()));
        let mut campaign = Campaign::of(1, &judge, records);
        let comparisons = campaign.comparisons();
        let claims = campaign.undecided_claims(&comparisons);
        remaining(plan, Open { comparisons: &comparisons, claims: &claims }, &tally)
    }

    #[test]
    fn before_the_first_trial_all_may_come() {
        let left = left(&plan(&format!("{PLAN}[judgement]\nrounds = 8")), &[]);
        assert_eq!((left[0].trials_at_most, left[0].trials_likely), (Some(24), None));
    }

    #[test]
    fn what_is_settled_and_what_is_done_counts_no_more() {
        let plan = plan(&format!("{PLAN}[judgement]\nrounds = 8"));
        let mut measured = records(4);
        let verdict = Judge::new(&plan).comparisons(&measured)[0].verdict;
        assert_eq!(verdict, Verdict::Faster, "b is settled at the first look");
        let after = left(&plan, &measured);
        assert_eq!(after[0].contenders, ["c", "a"]);
        assert_eq!(after[0].trials_at_most, Some(2 * 4));
        assert!(after[0].trials_likely <= after[0].trials_at_most, "{after:?}");
        measured.push(record(5, "w", "a"));
        assert_eq!(left(&plan, &measured)[0].trials_at_most, Some(2 * 3 + 1));
    }

    #[test]
    fn an_open_end_has_no_most_and_a_settled_run_nothing_left() {
        let open = plan(&format!("{PLAN}[judgement]\nbudget = \"10m\""));
        assert_eq!(left(&open, &records(4))[0].trials_at_most, None);
        let two = PLAN.replace("[[contender]]\nname = \"c\"\n", "");
        let two = plan(&format!("{two}[judgement]\nrounds = 8"));
        let mut settled = records(4);
        settled.retain(|record| record.key.contender != "c");
        assert_eq!(left(&two, &settled), []);
    }
}
