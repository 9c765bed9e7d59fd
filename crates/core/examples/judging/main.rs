//! What the judge costs: a simulated campaign of a given size, judged round by round as a run does.
//!
//! `judging KIND TRIALS` goes on until so many trials have been judged, and prints how many; who
//! runs it takes the time. `bench/judge` fits what that grows with.

use std::time::Duration;

use fsverdict_core::campaign::{Campaign, Next, Slot};
use fsverdict_core::judge::{Fold, Judge};
use fsverdict_core::model::{
    CacheState, Draws, Phase, PhaseRecord, Plan, RateOverTime, Record, Sample, StepTime, Unit,
};

/// The standard deviation of ln(rate): so large that nothing is settled before the end.
const NOISE: f64 = 2.0;

/// What of the trials goes wrong, in a thousand.
const VOID: usize = 2;

/// So many contenders and workloads, and what is declared of the judgement.
struct Kind {
    name: &'static str,
    contenders: usize,
    workloads: usize,
    judgement: &'static str,
}

const KINDS: [Kind; 5] = [
    Kind { name: "6x3", contenders: 6, workloads: 3, judgement: "" },
    Kind { name: "2x1", contenders: 2, workloads: 1, judgement: "" },
    Kind {
        name: "arms",
        contenders: 4,
        workloads: 2,
        judgement: "arms = [\"duplicate\", \"raw\"]",
    },
    Kind { name: "race", contenders: 12, workloads: 1, judgement: "race = true" },
    Kind { name: "pooled", contenders: 6, workloads: 3, judgement: "interval = \"pooled\"" },
];

impl Kind {
    fn plan(&self) -> Plan {
        let contender = |number: usize| format!("[[contender]]\nname = \"c{number}\"\n");
        let workload = |number: usize| {
            format!("[[workload]]\nname = \"w{number}\"\nfio = {{ rw = \"randread\" }}\n")
        };
        let contenders: String = (0..self.contenders).map(contender).collect();
        let workloads: String = (0..self.workloads).map(workload).collect();
        let judgement = format!("[judgement]\nbudget = \"100000h\"\n{}\n", self.judgement);
        Plan::parse(&format!("{contenders}{workloads}{judgement}")).expect("the plan is valid")
    }
}

/// A measured trial, with a second of steady work.
fn trial(number: u32, slot: Slot, draws: &mut Draws) -> Record {
    let rate = 1000.0 * (NOISE * draws.normal()).exp();
    let is_void = draws.below(1000) < VOID;
    let rate_over_time =
        RateOverTime { window_ns: 50_000_000, rates_per_s: vec![rate; 20], ..Default::default() };
    let phase = PhaseRecord {
        operations: Some(rate as u64),
        rate_over_time: Some(rate_over_time),
        ..PhaseRecord::new(Phase::Whole, 1_000_000_000, 0)
    };
    let samples = vec![
        Sample::higher("iops", rate, Unit::PerSecond),
        Sample::lower("cpu_per_operation", 5e6 / rate, Unit::Nanoseconds),
    ];
    Record {
        steps: vec![StepTime { step: "work".into(), duration_ns: 1_500_000_000 }],
        caches: vec![CacheState { dropped: !is_void, ..CacheState::default() }],
        phases: vec![phase],
        samples,
        ..Record::new(number, slot.key, slot.position, slot.seed)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let usage = "usage: judging KIND TRIALS";
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().ok_or(usage)?;
    let trials: usize = arguments.next().ok_or(usage)?.parse()?;
    let kind = KINDS.iter().find(|kind| kind.name == name).ok_or(usage)?;
    let judge = Judge::new(&kind.plan());
    let mut draws = Draws::new(1);
    let mut campaign = Campaign::new(1, &judge);
    let mut records = Vec::new();
    while records.len() < trials {
        let Next::Round(slots) = campaign.next(Duration::ZERO) else {
            return Err("the campaign ended by itself".into());
        };
        let mut slots = slots.into_iter().peekable();
        while let Some(slot) = slots.next() {
            let workload = slot.key.workload.clone();
            let record = trial(records.len() as u32 + 1, slot, &mut draws);
            campaign.take(&record);
            records.push(record);
            // As the run does, for who watches it.
            if slots.peek().is_none_or(|next| next.key.workload != workload) {
                campaign.comparisons();
                campaign.findings_meanwhile();
            }
        }
    }
    // And once more whole, for the report.
    let mut fold = Fold::of(&judge, &records);
    let (comparisons, findings) = (fold.comparisons().len(), fold.findings().len());
    println!("{} trials, {comparisons} comparisons, {findings} findings", records.len());
    Ok(())
}
