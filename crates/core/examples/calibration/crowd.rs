//! Campaigns of twelve contenders: what a race saves and what pooled intervals find.

use std::time::Duration;

use fsverdict_core::campaign::{Next, next_round};
use fsverdict_core::judge::Judge;
use fsverdict_core::model::{Comparison, Draws, Plan, Record, Sample, Unit, Verdict, derived_seed};

use crate::campaign::record;
use crate::is_false;

const CONTENDERS: usize = 12;

/// Standard deviation of ln(time).
const NOISE: f64 = 0.03;

/// How many times as fast the contenders are: the reference, one that is far better, and ten that
/// are better by just the margin.
fn speed(name: &str) -> f64 {
    match name {
        "c0" => 1.0,
        "c1" => 1.3,
        _ => 1.05,
    }
}

/// The plan, with what is declared of its judgement.
fn plan(judgement: &str) -> Plan {
    let contender = |number: usize| format!("[[contender]]\nname = \"c{number}\"\n");
    let contenders: String = (0..CONTENDERS).map(contender).collect();
    let work = "[[workload]]\nname = \"work\"\ncommand = \"work\"\ncache = \"warm\"\n";
    let text = format!("{contenders}{work}[judgement]\n{judgement}");
    Plan::parse(&text).expect("the plan is valid")
}

/// What became of some campaigns.
#[derive(Default)]
struct Tally {
    trials: usize,
    best_found: u32,
    best_lost: u32,
    any_false: u32,
}

impl Tally {
    fn add(&mut self, other: &Tally) {
        self.trials += other.trials;
        self.best_found += other.best_found;
        self.best_lost += other.best_lost;
        self.any_false += other.any_false;
    }
}

fn one_campaign(plan: &Plan, judge: &Judge, number: u32, tally: &mut Tally) {
    let seed = derived_seed(number.into(), &["calibration", "crowd"], 0);
    let mut draws = Draws::new(seed);
    let mut records: Vec<Record> = Vec::new();
    while let Next::Round(slots) = next_round(plan, seed, judge, &records, Duration::ZERO) {
        for slot in slots {
            let time_s = (NOISE * draws.normal()).exp() / speed(&slot.key.contender);
            let sample = Sample::lower("wall_time", time_s, Unit::Seconds);
            records.push(record(records.len() as u32 + 1, slot, sample));
        }
    }
    let comparisons = judge.comparisons(&records);
    let margin = plan.judgement.margin.0.ln_1p();
    let count = |is: bool| u32::from(is);
    let of_best = |it: &&Comparison| it.contender == "c1";
    let best = comparisons.iter().find(of_best).expect("it is in the plan");
    let wrong = comparisons.iter().any(|it| {
        let truth = speed(&it.contender).ln();
        is_false(it.verdict, truth, margin)
    });
    tally.trials += records.len();
    tally.best_found += count(best.verdict == Verdict::Faster);
    tally.best_lost += count(best.beaten_by.is_some());
    tally.any_false += count(wrong);
}

/// The table, of so many campaigns a row.
pub fn print(campaigns: u32) {
    println!(
        "\nTwelve contenders: ten are 5% faster than the reference, one 30%, with 3% plain noise \
         ({campaigns} campaigns a row).\n\n\
         | judgement | trials | the best found *faster* | the best out of the race | any verdict \
         false |\n| --- | --- | --- | --- | --- |"
    );
    for (name, judgement) in
        [("as ever", ""), ("`race = true`", "race = true"), ("pooled", "interval = \"pooled\"")]
    {
        let plan = plan(judgement);
        let judge = Judge::new(&plan);
        let half = |first: u32| {
            let mut tally = Tally::default();
            for number in (first..campaigns).step_by(2) {
                one_campaign(&plan, &judge, number, &mut tally);
            }
            tally
        };
        let tally = std::thread::scope(|scope| {
            let other = scope.spawn(|| half(1));
            let mut tally = half(0);
            tally.add(&other.join().expect("a campaign has no reason to panic"));
            tally
        });
        let percent = |count: u32| f64::from(count) * 100.0 / f64::from(campaigns);
        println!(
            "| {name} | {:.1} | {:.1}% | {:.1}% | {:.1}% |",
            tally.trials as f64 / f64::from(campaigns),
            percent(tally.best_found),
            percent(tally.best_lost),
            percent(tally.any_false)
        );
        eprintln!("twelve, {name}");
    }
}
