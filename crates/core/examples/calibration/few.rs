//! Campaigns of few rounds, which show least of noise that remembers.

use fsverdict_core::judge::Judge;
use fsverdict_core::model::{Draws, Plan, Verdict, derived_seed};

use crate::campaign::{self, Noises};
use crate::noise::Noise;
use crate::{TRIALS, is_false};

/// How much of its noise a contender keeps from round to round.
const REMEMBERED: f64 = 0.5;

/// Of how many campaigns something was so.
#[derive(Default)]
struct Tally {
    wrong: u32,
    found: u32,
    equivalent: u32,
}

/// So many campaigns of one kind.
fn tally(judge: &Judge, noise: Noise, deviation: f64, ratio: f64, campaigns: u32) -> Tally {
    let mut tally = Tally::default();
    for number in 0..campaigns {
        let seed = derived_seed(number.into(), &["few", &noise.name()], 0);
        let series = noise.series(deviation, TRIALS, &mut Draws::new(seed));
        let (one, other) = series.split_at(TRIALS / 2);
        let said = campaign::run(judge, seed, &Noises::ByRound([one, other]), ratio).comparison;
        tally.wrong += u32::from(is_false(said.verdict, ratio.ln(), 1.05_f64.ln()));
        tally.found += u32::from(said.low > 1.0);
        tally.equivalent += u32::from(said.verdict == Verdict::Equivalent);
    }
    tally
}

/// The table, of so many campaigns a figure.
pub fn print(campaigns: u32) {
    println!(
        "\nFewer rounds ({campaigns} campaigns a figure): what is false where nothing differs and \
         each contender's noise remembers by half, and what is found in plain noise.\n\n\
         | rounds | false, 10% noise | 3% | 1% | a true 10% in 10% plain noise | in 3% | \
         *equivalent* in 3% |\n|{}",
        " --- |".repeat(7)
    );
    for rounds in [4, 5, 6, 8, 10, 12] {
        let text = format!("{}[judgement]\nrounds = {rounds}\n", campaign::PLAN);
        let judge = Judge::new(&Plan::parse(&text).expect("the plan is valid"));
        let percent = |count: u32| format!("{:.1}%", f64::from(count * 100) / f64::from(campaigns));
        let of = |noise, deviation, ratio| tally(&judge, noise, deviation, ratio, campaigns);
        let wrong = |sd| percent(of(Noise::Remembering(REMEMBERED), sd, 1.0).wrong);
        let found = |sd| percent(of(Noise::Plain, sd, 1.1).found);
        let equivalent = percent(of(Noise::Plain, 0.03, 1.0).equivalent);
        let all = [wrong(0.1), wrong(0.03), wrong(0.01), found(0.1), found(0.03), equivalent];
        println!("| {rounds} | {} |", all.join(" | "));
        eprintln!("{rounds} rounds");
    }
}
