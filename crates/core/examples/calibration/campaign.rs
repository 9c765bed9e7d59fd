//! One simulated campaign, through the same code as a run's.

use std::time::Duration;

use fsverdict_core::campaign::{Campaign, Next, Slot};
use fsverdict_core::judge::Judge;
use fsverdict_core::model::{Comparison, Record, Sample, Unit};

/// The plan of every campaign: two contenders, all defaults, so that there are 12 rounds at most.
pub const PLAN: &str = r#"
    [[contender]]
    name = "a"
    [[contender]]
    name = "b"
    [[workload]]
    name = "work"
    command = "work"
    cache = "warm"
"#;

/// What a campaign ended with.
pub struct Ended {
    /// The verdict on b.
    pub comparison: Comparison,
    /// The verdict after ten rounds, or after all where there were fewer.
    pub after_ten: Comparison,
}

/// A measured trial of which one figure is known.
pub fn record(number: u32, slot: Slot, sample: Sample) -> Record {
    let record = Record::new(number, slot.key, slot.position, slot.seed);
    Record { samples: vec![sample], ..record }
}

/// The noise of trials, in ln units; it has to last for all rounds.
pub enum Noises<'a> {
    /// In the order of time.
    InTime(&'a [f64]),
    /// Round by round, of a and of b.
    ByRound([&'a [f64]; 2]),
}

impl Noises<'_> {
    fn of(&self, slot: &Slot, taken: usize) -> f64 {
        match self {
            Noises::InTime(noise) => noise[taken],
            Noises::ByRound(both) => {
                both[usize::from(slot.key.contender == "b")][slot.key.round as usize - 1]
            }
        }
    }
}

/// Runs a campaign whose trials scatter by `noise`, b being `ratio` times as fast as a.
pub fn run(judge: &Judge, seed: u64, noise: &Noises, ratio: f64) -> Ended {
    let mut records: Vec<Record> = Vec::new();
    let mut campaign = Campaign::new(seed, judge);
    while let Next::Round(slots) = campaign.next(Duration::ZERO) {
        for slot in slots {
            let speed = if slot.key.contender == "b" { ratio } else { 1.0 };
            let time_s = noise.of(&slot, records.len()).exp() / speed;
            let sample = Sample::lower("wall_time", time_s, Unit::Seconds);
            let record = record(records.len() as u32 + 1, slot, sample);
            campaign.take(&record);
            records.push(record);
        }
    }
    let verdict = |records: &[Record]| judge.comparisons(records).swap_remove(0);
    let comparison = verdict(&records);
    records.retain(|record| record.key.round <= 10);
    Ended { comparison, after_ten: verdict(&records) }
}
