//! Campaigns of few rounds, which show least of noise that remembers.

use fsverdict_core::judge::Judge;
use fsverdict_core::model::{Comparison, Draws, Plan, Verdict, derived_seed};

use crate::campaign::{self, Noises};
use crate::noise::Noise;
use crate::{TRIALS, is_false};

/// How much of its noise a contender keeps from round to round.
const REMEMBERED: f64 = 0.5;

/// What may be false takes more campaigns: at 6% of so many times as many as make a figure.
const OF_FALSE: u32 = 5;

/// Campaigns of one kind, of so many rounds at most.
struct Kind {
    judge: Judge,
    rounds: u32,
    noise: Noise,
    deviation: f64,
    ratio: f64,
}

impl Kind {
    fn new(rounds: u32, noise: Noise, deviation: f64, ratio: f64) -> Kind {
        let text = format!("{}[judgement]\nrounds = {rounds}\n", campaign::PLAN);
        let judge = Judge::new(&Plan::parse(&text).expect("the plan is valid"));
        Kind { judge, rounds, noise, deviation, ratio }
    }

    /// Of how many of `campaigns` that is so. No two kinds share a draw.
    fn percent(&self, campaigns: u32, is_so: impl Fn(&Comparison) -> bool + Sync) -> String {
        let name = format!("{} {} {}", self.noise.name(), self.deviation, self.ratio);
        let said = |number: &u32| {
            let seed = derived_seed((*number).into(), &["few", &name], self.rounds);
            let series = self.noise.series(self.deviation, TRIALS, &mut Draws::new(seed));
            let (one, other) = series.split_at(TRIALS / 2);
            let noises = Noises::ByRound([one, other]);
            is_so(&campaign::run(&self.judge, seed, &noises, self.ratio).comparison)
        };
        let half = |first: u32| (first..campaigns).step_by(2).filter(said).count();
        let count = std::thread::scope(|scope| {
            let other = scope.spawn(|| half(1));
            half(0) + other.join().expect("a campaign has no reason to panic")
        });
        format!("{:.1}%", count as f64 * 100.0 / f64::from(campaigns))
    }
}

/// The table, of so many campaigns a figure, and more of those that may be false.
pub fn print(campaigns: u32) {
    let of_false = OF_FALSE * campaigns;
    println!(
        "\nFewer rounds ({campaigns} campaigns a figure, {of_false} of what is false): what is \
         false where nothing differs and each contender's noise remembers by half, and what is \
         found in plain noise.\n\n\
         | rounds | false, 10% noise | 3% | 1% | a true 10% in 10% plain noise | in 3% | \
         *equivalent* in 3% |\n|{}",
        " --- |".repeat(7)
    );
    for rounds in [4, 5, 6, 8, 10, 12] {
        let wrong = |deviation| {
            Kind::new(rounds, Noise::Remembering(REMEMBERED), deviation, 1.0)
                .percent(of_false, |said| is_false(said.verdict, 0.0, 1.05_f64.ln()))
        };
        let plain = |deviation, ratio| Kind::new(rounds, Noise::Plain, deviation, ratio);
        let found = |deviation| plain(deviation, 1.1).percent(campaigns, |said| said.low > 1.0);
        let equivalent =
            plain(0.03, 1.0).percent(campaigns, |said| said.verdict == Verdict::Equivalent);
        let all = [wrong(0.1), wrong(0.03), wrong(0.01), found(0.1), found(0.03), equivalent];
        println!("| {rounds} | {} |", all.join(" | "));
        eprintln!("{rounds} rounds");
    }
}
