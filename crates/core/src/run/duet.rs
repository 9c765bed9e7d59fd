//! The trials of a duet: who has which turn, and what their turns come to in pairs (after Bulej et
//! al., "Duet Benchmarking: Improving Measurement Accuracy in the Cloud", ICPE '20).

use super::sample::samples;
use super::{Step, host};
use crate::model::{Draws, Failure, Phase, Record, Trial, Turns, derived_seed};

/// Cycle after cycle, in each of which every contender has one turn: their places in an order that
/// is drawn. Without end.
#[derive(Debug)]
pub struct Cycles {
    draws: Draws,
    order: Vec<usize>,
}

impl Cycles {
    /// Those of a round's trials, of which one is given.
    pub fn new(trial: &Trial, contenders: usize) -> Cycles {
        let words = ["turns", &trial.key.workload];
        let draws = Draws::new(derived_seed(trial.seed, &words, trial.key.round));
        Cycles { draws, order: (0..contenders).collect() }
    }
}

impl Iterator for Cycles {
    type Item = Vec<usize>;

    fn next(&mut self) -> Option<Vec<usize>> {
        self.draws.shuffle(&mut self.order);
        Some(self.order.clone())
    }
}

/// Gives the records of a duet the figures by which they are judged. A trial that failed has none,
/// and the others are paired without it. Work that is shared out among its turns has the same in
/// each, and needs no rate.
pub(super) fn pair(trials: &[Trial], records: &mut [Record]) {
    let mut turns: Vec<&mut Turns> = records
        .iter_mut()
        .filter(|record| record.is_measured())
        .flat_map(|record| &mut record.phases)
        .filter_map(|phase| phase.turns.as_mut())
        .filter(|turns| !turns.operations.is_empty())
        .collect();
    if turns.is_empty() {
        return;
    }
    let paired = Turns::pair(&mut turns);
    for (record, trial) in records.iter_mut().zip(trials).filter(|(it, _)| it.is_measured()) {
        match &paired {
            Ok(()) => record.samples = samples(&trial.workload, &record.phases),
            Err(why) => {
                let (step, error) = (Step::Work(Phase::Whole).to_string(), why.clone());
                host::fail(record, Failure { step, error, cleanup_errors: Vec::new() });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{BedKind, Workload};
    use crate::run::sim::example_trial;

    #[test]
    fn each_cycle_has_everybody_once_in_an_order_that_the_seed_draws() {
        let trial = example_trial(BedKind::Loop, Workload::default());
        let drawn = |trial: &Trial| Cycles::new(trial, 3).take(600).collect::<Vec<_>>();
        let cycles = drawn(&trial);
        assert_eq!(cycles, drawn(&trial));
        assert_ne!(cycles, drawn(&Trial { seed: 8, ..trial.clone() }));
        let all_are_there = |cycle: &Vec<usize>| (0..3).all(|place| cycle.contains(&place));
        assert!(cycles.iter().all(all_are_there));
        let first = |who: usize| cycles.iter().filter(|cycle| cycle[0] == who).count();
        assert!((0..3).all(|who| first(who) > 150), "each of them begins now and then");
    }
}
