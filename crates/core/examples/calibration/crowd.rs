//! Campaigns of twelve contenders: what a race saves and what pooled intervals find.

use std::time::Duration;

use fsverdict_core::campaign::{Campaign, Next};
use fsverdict_core::judge::Judge;
use fsverdict_core::model::{Comparison, Draws, Plan, Sample, Unit, Verdict, derived_seed};

use crate::campaign::record;
use crate::{SAME, is_false};

const CONTENDERS: usize = 12;

/// Standard deviation of ln(time).
const NOISE: f64 = 0.03;

/// Who takes part: how many times as fast each is, after the reference and one other.
#[derive(Clone, Copy)]
struct Crowd {
    name: &'static str,
    second: f64,
    others: f64,
}

/// Nobody is better; one is, by just the margin, so that nobody is beaten by more; one is far
/// better, and the others are better than the reference by just the margin.
const CROWDS: [Crowd; 3] = [
    Crowd { name: "all alike", second: 1.0, others: 1.0 },
    Crowd { name: "one 5% faster", second: 1.05, others: 1.0 },
    Crowd { name: "one 30%, ten 5% faster", second: 1.3, others: 1.05 },
];

impl Crowd {
    fn speed(self, name: &str) -> f64 {
        match name {
            "c0" => 1.0,
            "c1" => self.second,
            _ => self.others,
        }
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
    wrongly_out: u32,
    any_false: u32,
}

impl Tally {
    fn add(&mut self, other: &Tally) {
        self.trials += other.trials;
        self.best_found += other.best_found;
        self.wrongly_out += other.wrongly_out;
        self.any_false += other.any_false;
    }
}

fn one_campaign(crowd: Crowd, plan: &Plan, judge: &Judge, number: u32, tally: &mut Tally) {
    let seed = derived_seed(number.into(), &["calibration", crowd.name], 0);
    let mut draws = Draws::new(seed);
    let mut campaign = Campaign::new(seed, judge);
    while let Next::Round(slots) = campaign.next(Duration::ZERO) {
        for slot in slots {
            let time_s = (NOISE * draws.normal()).exp() / crowd.speed(&slot.key.contender);
            let sample = Sample::lower("wall_time", time_s, Unit::Seconds);
            campaign.take(&record(campaign.taken() as u32 + 1, slot, sample));
        }
    }
    let comparisons = campaign.comparisons();
    let margin = plan.judgement.margin.0.ln_1p();
    let count = |is: bool| u32::from(is);
    let of_best = |it: &&Comparison| it.contender == "c1";
    let best = comparisons.iter().find(of_best).expect("it is in the plan");
    let wrong = |it: &Comparison| is_false(it.verdict, crowd.speed(&it.contender).ln(), margin);
    let wrongly_out = |it: &Comparison| {
        let lead = |by: &String| (crowd.speed(by) / crowd.speed(&it.contender)).ln();
        it.beaten_by.as_ref().is_some_and(|by| lead(by) < margin + SAME)
    };
    tally.trials += campaign.taken();
    tally.best_found += count(best.verdict == Verdict::Faster);
    tally.wrongly_out += count(comparisons.iter().any(wrongly_out));
    tally.any_false += count(comparisons.iter().any(wrong));
}

/// So many campaigns, on two threads.
fn tally(crowd: Crowd, judgement: &str, campaigns: u32) -> Tally {
    let plan = plan(judgement);
    let judge = Judge::new(&plan);
    let half = |first: u32| {
        let mut tally = Tally::default();
        for number in (first..campaigns).step_by(2) {
            one_campaign(crowd, &plan, &judge, number, &mut tally);
        }
        tally
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| half(1));
        let mut tally = half(0);
        tally.add(&other.join().expect("a campaign has no reason to panic"));
        tally
    })
}

/// The table, of so many campaigns a row.
pub fn print(campaigns: u32) {
    println!(
        "\nTwelve contenders with 3% plain noise ({campaigns} campaigns a row).\n\n\
         | contenders | judgement | trials | the second found *faster* | any put out wrongly | any \
         verdict false |\n| --- | --- | --- | --- | --- | --- |"
    );
    let judgements =
        [("as ever", ""), ("`race = true`", "race = true"), ("pooled", "interval = \"pooled\"")];
    for crowd in CROWDS {
        for (name, judgement) in judgements {
            let tally = tally(crowd, judgement, campaigns);
            let percent = |count: u32| f64::from(count) * 100.0 / f64::from(campaigns);
            println!(
                "| {} | {name} | {:.1} | {:.1}% | {:.1}% | {:.1}% |",
                crowd.name,
                tally.trials as f64 / f64::from(campaigns),
                percent(tally.best_found),
                percent(tally.wrongly_out),
                percent(tally.any_false)
            );
            eprintln!("{}, {name}", crowd.name);
        }
    }
}
