//! The trials of a duet: which trial has which turn, and the ratios of turns in pairs (after Bulej
//! et al., "Duet Benchmarking: Improving Measurement Accuracy in the Cloud", ICPE '20).

use super::sample::samples;
use super::{Step, host};
use crate::model::{Draws, Failure, Phase, Record, Trial, Turns, derived_seed};

/// Endless cycles; in each every contender has one turn: their places in a drawn order.
#[derive(Debug)]
pub struct Cycles {
    draws: Draws,
    order: Vec<usize>,
}

impl Cycles {
    /// Those of a round, of which `trial` is one trial.
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

/// Gives the records of a duet the figures by which they are judged, timed part by timed part. A
/// trial that failed has none, and the others are paired without it.
pub(super) fn pair(trials: &[Trial], records: &mut [Record]) {
    let Some(trial) = trials.first() else { return };
    let paired: Result<bool, (Phase, String)> =
        trial.workload.phases().into_iter().try_fold(false, |any, phase| {
            let mut turns = turns_of(phase, records);
            let paired = (!turns.is_empty()).then(|| Turns::pair(&mut turns)).transpose();
            paired.map(|it| any || it.is_some()).map_err(|why| (phase, why))
        });
    for (record, trial) in records.iter_mut().zip(trials).filter(|(it, _)| it.is_measured()) {
        match &paired {
            Ok(false) => {}
            Ok(true) => record.samples = samples(&trial.workload, &record.phases),
            Err((phase, why)) => {
                let (step, error) = (Step::Work(*phase).to_string(), why.clone());
                host::fail(record, Failure { step, error, cleanup_errors: Vec::new() });
            }
        }
    }
}

/// The turns of that part, of all that was measured. Work that counts no operations has none: it is
/// judged by its latencies.
fn turns_of(phase: Phase, records: &mut [Record]) -> Vec<&mut Turns> {
    let measured = records.iter_mut().filter(|record| record.is_measured());
    let parts = measured.flat_map(|record| &mut record.phases).filter(|it| it.phase == phase);
    let turns = parts.filter_map(|part| part.turns.as_mut());
    turns.filter(|turns| !turns.operations.is_empty()).collect()
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
