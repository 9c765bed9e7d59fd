//! The trials of a round, in an order drawn from the run's seed.

use crate::model::{Draws, Key, Workload, derived_seed};

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

/// The round's trials: the workloads in random order, in each its contenders in random order.
pub fn slots(wanted: Vec<(&Workload, Vec<String>)>, seed: u64, round: u32) -> Vec<Slot> {
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
pub fn slots_of(
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
