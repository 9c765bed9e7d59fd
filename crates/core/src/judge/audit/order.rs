//! A14: a trial's figure depends on its place in the round, or on the contender before it.

use std::collections::BTreeMap;

use crate::judge::stopping::FIRST_LOOK;
use crate::judge::trials::Trials;
use crate::model::{Audit, Draws, Finding, Plan, Severity, Workload};

/// Orders that are drawn beside the one that was.
const PERMUTATIONS: u32 = 1999;

/// The chance of so large an effect without any.
const LEVEL: f64 = 0.01;

/// A14 of one workload: at most one finding for each of its metrics.
pub fn findings<'a>(
    plan: &'a Plan,
    workload: &'a Workload,
    trials: &'a Trials,
) -> impl Iterator<Item = Finding> + 'a {
    workload.primary().into_iter().filter_map(move |metric| {
        let rounds = residuals(plan, workload, &metric, trials);
        let (what, chance) = effect(&rounds)?;
        Some(Finding {
            audit: Audit::A14,
            severity: Severity::Warning,
            workload: Some(workload.name.clone()),
            contender: None,
            evidence: format!(
                "{metric} depends on {what} (permutation test, p = {chance:.4}, {} rounds)",
                rounds.len()
            ),
            advice: "a trial affects the next, or the device had not come to rest: leave time \
                     between trials, or on bed device discard it between them"
                .into(),
        })
    })
}

/// One trial of a round.
#[derive(Clone, Debug, PartialEq)]
struct Trial {
    /// Its place among those of its workload, from 0.
    place: usize,
    /// The contender before it there, by number; 0: none.
    predecessor: usize,
    /// What is left of ln(goodness) without the effects of round and contender.
    residual: f64,
}

/// The residuals of rounds in which every contender was measured. Arms have a place in the order
/// but no figure.
fn residuals(plan: &Plan, workload: &Workload, metric: &str, trials: &Trials) -> Vec<Vec<Trial>> {
    let mut rounds: BTreeMap<u32, Vec<(u32, usize, Option<f64>)>> = BTreeMap::new();
    let arms = plan.arms(workload).into_iter().map(|arm| arm.name);
    let contenders = plan.contenders.iter().map(|contender| contender.name.clone());
    for (number, name) in (1..).zip(contenders.chain(arms)) {
        for (&round, kept) in trials.latest(&workload.name, &name) {
            let figure =
                (number <= plan.contenders.len()).then(|| kept.figure(metric)?.goodness).flatten();
            rounds.entry(round).or_default().push((kept.position, number, figure));
        }
    }
    let complete = |trials: &Vec<(u32, usize, Option<f64>)>| {
        trials.iter().filter(|trial| trial.2.is_some()).count() == plan.contenders.len()
    };
    let rounds: Vec<_> = rounds.into_values().filter(complete).collect();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let figures = |of: usize| -> Vec<f64> {
        rounds.iter().flatten().filter(|it| it.1 == of).filter_map(|it| it.2).collect()
    };
    let of_contender: Vec<f64> =
        (1..=plan.contenders.len()).map(|number| mean(&figures(number))).collect();
    let whole = mean(&of_contender);
    let left = |mut trials: Vec<(u32, usize, Option<f64>)>| {
        trials.sort_by_key(|trial| trial.0);
        let of_round = mean(&trials.iter().filter_map(|trial| trial.2).collect::<Vec<_>>());
        let followed = [0].into_iter().chain(trials.iter().map(|trial| trial.1));
        let trial = |((place, predecessor), it): ((usize, usize), &(u32, usize, Option<f64>))| {
            let residual = it.2? - of_round - of_contender[it.1 - 1] + whole;
            Some(Trial { place, predecessor, residual })
        };
        (0..).zip(followed).zip(&trials).filter_map(trial).collect()
    };
    rounds.into_iter().map(left).collect()
}

/// What the residuals depend on, and how rarely chance does that: they are shuffled within their
/// rounds, because the order of a round was drawn.
///
/// Drawing stops once so many orders show as much that neither effect can be rare any more: Besag
/// and Clifford, "Sequential Monte Carlo p-values" (Biometrika 78, 1991).
fn effect(rounds: &[Vec<Trial>]) -> Option<(&'static str, f64)> {
    /// Residuals of figures that never vary are rounding, which follows the contender.
    const ROUNDING: f64 = 1e-9;
    let is_still = rounds.iter().flatten().all(|trial| trial.residual.abs() < ROUNDING);
    if rounds.len() < FIRST_LOOK as usize || is_still {
        return None;
    }
    let mut flat = Flat::of(rounds);
    let seen = [flat.by_place(), flat.by_predecessor()];
    let chance = |count: u32| f64::from(count) / f64::from(PERMUTATIONS + 1);
    let mut at_least = [1; 2];
    let mut draws = Draws::new(0);
    for _ in 0..PERMUTATIONS {
        flat.shuffle(&mut draws);
        let drawn = [flat.by_place(), flat.by_predecessor()];
        for (count, (drawn, seen)) in at_least.iter_mut().zip(drawn.iter().zip(seen)) {
            // What differs by rounding alone is the same.
            *count += u32::from(*drawn >= seen * (1.0 - 1e-9));
        }
        if at_least.iter().all(|count| chance(*count) >= LEVEL) {
            return None;
        }
    }
    let what = match at_least.map(|count| chance(count) < LEVEL) {
        [true, true] => "its place in the round and the trial before it",
        [true, false] => "its place in the round",
        [false, true] => "the trial before it",
        [false, false] => return None,
    };
    Some((what, chance(at_least[0].min(at_least[1]))))
}

/// The trials of all rounds, one after the other.
struct Flat {
    /// How many each round holds.
    lengths: Vec<usize>,
    /// How far each is from the middle of its round.
    places: Vec<f64>,
    predecessors: Vec<usize>,
    residuals: Vec<f64>,
    /// Sum and number of the residuals by predecessor.
    groups: Vec<(f64, f64)>,
}

impl Flat {
    fn of(rounds: &[Vec<Trial>]) -> Flat {
        let trials = || rounds.iter().flatten();
        let from_middle = |round: &Vec<Trial>| {
            let middle = round.iter().map(|it| it.place as f64).sum::<f64>() / round.len() as f64;
            round.iter().map(|it| it.place as f64 - middle).collect::<Vec<f64>>()
        };
        let predecessors: Vec<usize> = trials().map(|trial| trial.predecessor).collect();
        let groups = predecessors.iter().max().map_or(0, |last| last + 1);
        Flat {
            lengths: rounds.iter().map(Vec::len).collect(),
            places: rounds.iter().flat_map(from_middle).collect(),
            predecessors,
            residuals: trials().map(|trial| trial.residual).collect(),
            groups: vec![(0.0, 0.0); groups],
        }
    }

    /// Puts the residuals of each round in another order.
    fn shuffle(&mut self, draws: &mut Draws) {
        let mut rest = self.residuals.as_mut_slice();
        for length in &self.lengths {
            let (round, others) = rest.split_at_mut(*length);
            draws.shuffle(round);
            rest = others;
        }
    }

    /// How strongly the residuals go with the place in the round.
    fn by_place(&self) -> f64 {
        let both = self.residuals.iter().zip(&self.places);
        both.map(|(residual, place)| residual * place).sum::<f64>().abs()
    }

    /// How far apart the means are, grouped by a trial's predecessor.
    fn by_predecessor(&mut self) -> f64 {
        self.groups.fill((0.0, 0.0));
        for (residual, predecessor) in self.residuals.iter().zip(&self.predecessors) {
            let (sum, count) = &mut self.groups[*predecessor];
            *sum += residual;
            *count += 1.0;
        }
        let known = self.groups.iter().filter(|(_, count)| *count > 0.0);
        known.map(|(sum, count)| sum * sum / count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::audit::Audited;
    use crate::judge::testing::{plan, record};
    use crate::model::{Record, Sample, Unit};

    /// Twelve rounds of three contenders in an order drawn from `seed`; a trial takes longer by
    /// `late` for each one before it, and by `after_c` after c.
    fn records(seed: u64, late: f64, after_c: f64) -> Vec<Record> {
        let mut draws = Draws::new(seed);
        let mut records = Vec::new();
        for round in 1..=12 {
            let mut names = ["a", "b", "c"];
            draws.shuffle(&mut names);
            for (place, name) in names.into_iter().enumerate() {
                let follows_c = place > 0 && names[place - 1] == "c";
                let slower = late * place as f64 + if follows_c { after_c } else { 0.0 };
                let seconds = (0.02 * draws.normal() + slower).exp();
                let samples = vec![Sample::lower("wall_time", seconds, Unit::Seconds)];
                let position = place as u32 + 1;
                records.push(Record { samples, position, ..record(round, "w", name) });
            }
        }
        records
    }

    fn found(records: &[Record]) -> Option<String> {
        let plan = plan(
            "[[contender]]\nname = \"a\"\n[[contender]]\nname = \"b\"\n\
             [[contender]]\nname = \"c\"\n[[workload]]\nname = \"w\"\ncommand = \"true\"",
        );
        let audited = Audited::of(&plan, records);
        let mut findings = findings(&plan, &plan.workloads[0], audited.trials());
        findings.next().map(|finding| finding.evidence)
    }

    #[test]
    fn a14_sees_what_comes_of_the_order_alone() {
        let place = found(&records(1, 0.03, 0.0)).unwrap();
        assert!(place.contains("its place in the round"), "{place}");
        let after = found(&records(1, 0.0, 0.1)).unwrap();
        assert!(after.contains("the trial before it"), "{after}");
        assert_eq!(found(&records(1, 0.03, 0.0)[..9]), None, "three rounds tell nothing");
    }

    #[test]
    fn a14_takes_no_rounding_for_an_effect() {
        let mut counts = records(1, 0.0, 0.0);
        for record in &mut counts {
            let flushes = if record.key.contender == "a" { 20.0 } else { 30.0 };
            record.samples = vec![Sample::lower("wall_time", flushes, Unit::Seconds)];
            record.position = 1 + u32::from(record.key.contender.as_bytes()[0] - b'a');
        }
        assert_eq!(found(&counts), None, "the same in every round, in the same order");
    }

    /// Two tests at 1% each: of a hundred runs without an effect at most some two show one.
    #[test]
    fn a14_is_silent_where_the_order_is_nothing() {
        let shown = (0..100).filter(|seed| found(&records(*seed, 0.0, 0.0)).is_some()).count();
        assert!(shown <= 7, "{shown} of 100");
    }
}
