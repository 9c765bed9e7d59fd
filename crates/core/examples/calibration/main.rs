//! How good the judge is: simulated and resampled campaigns whose truth is known.
//!
//! `calibration CAMPAIGNS < SAMPLES` prints the tables of docs/validation.md, "Simulated
//! campaigns"; SAMPLES are the `samples.csv` of published runs, one after the other.
//! `bench/calibration` runs it. The same campaigns give the same tables on every machine.

mod campaign;
mod crowd;
mod few;
mod noise;
mod peers;
mod recorded;
mod together;

use fsverdict_core::judge::{Course, FIRST_LOOK, Interval, Judge, Rule, level_of_last_look};
use fsverdict_core::model::{Draws, Plan, Verdict, derived_seed};

use campaign::Noises;
use noise::Noise;
use peers::{RUNS, Says};

/// Trials that a campaign can take at most: twelve rounds of two.
const TRIALS: usize = 24;

/// Where the figures of a campaign come from.
#[derive(Clone, Copy)]
enum Source<'a> {
    /// Noise of this kind, with this standard deviation of ln(time).
    Simulated(Noise, f64),
    /// Drawn from what was recorded.
    Recorded(&'a [recorded::Pool]),
}

/// Campaigns of one kind.
struct Scenario<'a> {
    source: Source<'a>,
    /// How many times as fast b is.
    ratio: f64,
}

impl Scenario<'_> {
    fn name(&self) -> String {
        match self.source {
            Source::Simulated(noise, deviation) => {
                format!("{}, {:.0}%", noise.name(), deviation * 100.0)
            }
            Source::Recorded(_) => "recorded".into(),
        }
    }

    /// The noise of a and of b, where it is of each one's own rounds.
    fn by_round<'s>(&self, series: &'s [f64]) -> Option<[&'s [f64]; 2]> {
        match self.source {
            Source::Simulated(noise, _) if noise.is_by_contender() => {
                let (one, other) = series.split_at(series.len() / 2);
                Some([one, other])
            }
            _ => None,
        }
    }

    fn series(&self, draws: &mut Draws) -> Vec<f64> {
        match self.source {
            Source::Simulated(noise, deviation) => noise.series(deviation, TRIALS, draws),
            Source::Recorded(pools) => {
                recorded::series(&pools[draws.below(pools.len())], TRIALS, draws)
            }
        }
    }
}

/// Of how many campaigns something was so.
#[derive(Clone, Default)]
struct Tally {
    campaigns: u32,
    false_verdicts: u32,
    found: u32,
    found_in_ten: u32,
    full_size: u32,
    no_matter: u32,
    interval_misses: u32,
    rounds: u32,
    /// The sum of ln(ratio) as printed; and of those found *faster*.
    printed: f64,
    printed_faster: f64,
    /// hyperfine, Welch, benchstat, criterion: found, in the right direction where there is one.
    peers: [u32; 4],
    /// The same: the wrong one called faster.
    peers_wrong: [u32; 4],
}

impl Tally {
    fn add(&mut self, other: &Tally) {
        self.campaigns += other.campaigns;
        self.false_verdicts += other.false_verdicts;
        self.found += other.found;
        self.found_in_ten += other.found_in_ten;
        self.full_size += other.full_size;
        self.no_matter += other.no_matter;
        self.interval_misses += other.interval_misses;
        self.rounds += other.rounds;
        self.printed += other.printed;
        self.printed_faster += other.printed_faster;
        for place in 0..self.peers.len() {
            self.peers[place] += other.peers[place];
            self.peers_wrong[place] += other.peers_wrong[place];
        }
    }

    fn percent(&self, count: u32) -> String {
        format!("{:.1}%", f64::from(count) * 100.0 / f64::from(self.campaigns))
    }

    /// The geometric mean of the ratios as printed, and of those of *faster* alone.
    fn mean_ratios(&self) -> [String; 2] {
        let mean = |sum: f64, count: u32| match count {
            0 => "-".into(),
            _ => format!("{:.3}", (sum / f64::from(count)).exp()),
        };
        [mean(self.printed, self.campaigns), mean(self.printed_faster, self.full_size)]
    }

    fn mean_rounds(&self) -> String {
        format!("{:.1}", f64::from(self.rounds) / f64::from(self.campaigns))
    }
}

/// Ratios of just the margin are neither above nor below it, however their logarithms are rounded.
const SAME: f64 = 1e-9;

/// The verdict claims what is not so. `truth` and `margin` are in ln units.
fn is_false(verdict: Verdict, truth: f64, margin: f64) -> bool {
    match verdict {
        Verdict::Faster => truth < margin + SAME,
        Verdict::FasterSizeOpen => truth <= 0.0,
        Verdict::TriviallyFaster => truth <= 0.0 || truth > margin - SAME,
        Verdict::Equivalent => truth.abs() > margin - SAME,
        Verdict::Undecided | Verdict::Void => false,
        mirrored => is_false(mirrored.mirrored(), -truth, margin),
    }
}

fn one_campaign(plan: &Plan, judge: &Judge, scenario: &Scenario, number: u32, tally: &mut Tally) {
    let seed = derived_seed(number.into(), &["calibration", &scenario.name()], 0);
    let mut draws = Draws::new(seed);
    let series = scenario.series(&mut draws);
    let by_round = scenario.by_round(&series);
    let noises = by_round.map_or(Noises::InTime(&series), Noises::ByRound);
    let ended = campaign::run(judge, seed, &noises, scenario.ratio);
    let (comparison, ten) = (&ended.comparison, &ended.after_ten);
    let high = comparison.high.unwrap_or(f64::INFINITY);
    let truth = scenario.ratio;
    let margin = plan.judgement.margin.0.ln_1p();
    let verdict = comparison.verdict;
    let small = [Verdict::Equivalent, Verdict::TriviallyFaster, Verdict::TriviallySlower];
    let count = |is: bool| u32::from(is);
    tally.campaigns += 1;
    tally.false_verdicts += count(is_false(verdict, truth.ln(), margin));
    tally.found += count(comparison.low > 1.0);
    tally.found_in_ten += count(ten.low > 1.0);
    tally.full_size += count(verdict == Verdict::Faster);
    tally.no_matter += count(small.contains(&verdict));
    tally.interval_misses += count(comparison.low > truth || high < truth);
    tally.rounds += comparison.rounds;
    let printed = comparison.ratio.unwrap_or(1.0).ln();
    tally.printed += printed;
    tally.printed_faster += if verdict == Verdict::Faster { printed } else { 0.0 };
    let [one, other] = by_round.unwrap_or([&series, &series[RUNS..]]);
    let first: Vec<f64> = one[..RUNS].iter().map(|noise| noise.exp()).collect();
    let second: Vec<f64> = other[..RUNS].iter().map(|noise| noise.exp() / scenario.ratio).collect();
    let said = [
        peers::hyperfine(&first, &second),
        peers::welch(&first, &second),
        peers::benchstat(&first, &second),
        peers::criterion(&first, &second, &mut draws),
    ];
    for (place, said) in said.into_iter().enumerate() {
        tally.peers[place] += count(said == Says::Faster);
        tally.peers_wrong[place] += count(said == Says::Slower);
    }
}

/// All campaigns of a scenario, on two threads.
fn tally(plan: &Plan, judge: &Judge, scenario: &Scenario, campaigns: u32) -> Tally {
    let half = |first: u32| {
        let mut tally = Tally::default();
        for number in (first..campaigns).step_by(2) {
            one_campaign(plan, judge, scenario, number, &mut tally);
        }
        tally
    };
    let halves = std::thread::scope(|scope| {
        let other = scope.spawn(|| half(1));
        let mut tally = half(0);
        tally.add(&other.join().expect("a campaign has no reason to panic"));
        tally
    });
    eprintln!("{} x{}", scenario.name(), scenario.ratio);
    halves
}

fn simulated<'a>(noise: Noise, deviation: f64, ratio: f64) -> Scenario<'a> {
    Scenario { source: Source::Simulated(noise, deviation), ratio }
}

const DEVIATIONS: [f64; 4] = [0.01, 0.03, 0.10, 0.15];
const UNPLEASANT: [Noise; 5] =
    [Noise::Drift, Noise::HeavyTails, Noise::Bursts, Noise::TwoModes, Noise::Stalls];

/// How much of their noise contenders keep from round to round: what breaks the rule that rounds
/// are independent.
const REMEMBERED: [f64; 2] = [0.5, 0.8];

fn alike(pools: &[recorded::Pool]) -> Vec<Scenario<'_>> {
    let mut scenarios = Vec::from(DEVIATIONS.map(|sd| simulated(Noise::Plain, sd, 1.0)));
    for noise in UNPLEASANT {
        scenarios.extend([0.01, 0.03, 0.10].map(|sd| simulated(noise, sd, 1.0)));
    }
    scenarios.push(Scenario { source: Source::Recorded(pools), ratio: 1.0 });
    scenarios
}

fn remembering() -> Vec<Scenario<'static>> {
    let mut scenarios = Vec::new();
    for share in REMEMBERED {
        let of = |sd| simulated(Noise::Remembering(share), sd, 1.0);
        scenarios.extend([0.01, 0.03, 0.10].map(of));
    }
    scenarios
}

fn planted(pools: &[recorded::Pool]) -> Vec<Scenario<'_>> {
    let mut scenarios = Vec::new();
    for deviation in DEVIATIONS {
        let of = |ratio| simulated(Noise::Plain, deviation, ratio);
        scenarios.extend([1.02, 1.05, 1.08, 1.10, 1.30].map(of));
    }
    scenarios.extend(UNPLEASANT.map(|noise| simulated(noise, 0.03, 1.10)));
    let recorded = |ratio| Scenario { source: Source::Recorded(pools), ratio };
    scenarios.extend([1.05, 1.10, 1.30].map(recorded));
    scenarios
}

fn print_alike(plan: &Plan, judge: &Judge, pools: &[recorded::Pool], campaigns: u32) {
    println!(
        "Nothing differs ({campaigns} campaigns a row): how often each rule says that something \
         does.\n\n\
         | noise | fsverdict | rounds | equivalent | hyperfine ± | hyperfine Welch | benchstat | \
         criterion |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |"
    );
    let mut all = Tally::default();
    let row = |name: &str, tally: &Tally| {
        let peers: Vec<String> = (0..tally.peers.len())
            .map(|place| tally.percent(tally.peers[place] + tally.peers_wrong[place]))
            .collect();
        println!(
            "| {name} | {} | {} | {} | {} |",
            tally.percent(tally.false_verdicts),
            tally.mean_rounds(),
            tally.percent(tally.no_matter),
            peers.join(" | ")
        );
    };
    for scenario in alike(pools) {
        let tally = tally(plan, judge, &scenario, campaigns);
        row(&scenario.name(), &tally);
        all.add(&tally);
    }
    row("all", &all);
    for scenario in remembering() {
        row(&scenario.name(), &tally(plan, judge, &scenario, campaigns));
    }
}

fn print_planted(plan: &Plan, judge: &Judge, pools: &[recorded::Pool], campaigns: u32) {
    println!(
        "\nThe second is faster: how often that is found (the interval leaves out 1), and what \
         is false.\n\n\
         | noise | faster by | found | by round 10 | *faster* | too small to matter | false | \
         interval misses | rounds | ratio | of *faster* | hyperfine ± | hyperfine Welch | \
         benchstat | criterion |\n|{}",
        " --- |".repeat(15)
    );
    for scenario in planted(pools) {
        let tally = tally(plan, judge, &scenario, campaigns);
        let own = [
            tally.found,
            tally.found_in_ten,
            tally.full_size,
            tally.no_matter,
            tally.false_verdicts,
            tally.interval_misses,
        ];
        println!(
            "| {} | {:.0}% | {} | {} | {} | {} |",
            scenario.name(),
            (scenario.ratio - 1.0) * 100.0,
            own.map(|count| tally.percent(count)).join(" | "),
            tally.mean_rounds(),
            tally.mean_ratios().join(" | "),
            tally.peers.map(|count| tally.percent(count)).join(" | ")
        );
    }
}

/// The levels of each look, and what they come to in campaigns that they were not derived from.
fn print_levels() {
    const CAMPAIGNS: u32 = 100_000;
    println!(
        "\nThe level a′ of the last look, and how often any look then misses ({CAMPAIGNS} other \
         campaigns).\n\n\
         | rounds | α | a′ | misses | misses / α |\n\
         | --- | --- | --- | --- | --- |"
    );
    for (alpha, shown) in [(0.05, "5%"), (0.05 / 3.0, "5%/3"), (0.05 / 10.0, "5%/10")] {
        for rounds in [6, 8, 12, 20] {
            let missed = ever_missed(&Rule::capped(alpha, rounds), rounds, CAMPAIGNS);
            println!(
                "| {rounds} | {shown} | {:.5} | {:.3}% | {:.2} |",
                level_of_last_look(alpha, rounds),
                missed * 100.0,
                missed / alpha
            );
        }
    }
}

/// The share of `campaigns` of normal differences around zero in which some look leaves zero out.
fn ever_missed(rule: &Rule, rounds: u32, campaigns: u32) -> f64 {
    let one = |draws: &mut Draws| {
        let differences: Vec<f64> = (0..rounds).map(|_| draws.normal()).collect();
        let misses = |rounds: usize| {
            let Interval { low, high } = Course::of(&differences[..rounds], rule, 0.0).interval;
            low > 0.0 || high < 0.0
        };
        (FIRST_LOOK..=rounds).any(|rounds| misses(rounds as usize))
    };
    let half = |seed| {
        let mut draws = Draws::new(seed);
        (0..campaigns / 2).filter(|_| one(&mut draws)).count()
    };
    let missed = std::thread::scope(|scope| {
        let other = scope.spawn(|| half(11));
        half(12) + other.join().expect("a draw has no reason to panic")
    });
    missed as f64 / f64::from(campaigns)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let usage = "usage: calibration CAMPAIGNS < SAMPLES";
    let campaigns: u32 = std::env::args().nth(1).ok_or(usage)?.parse()?;
    let pools = recorded::pools(std::io::stdin())?;
    let plan = Plan::parse(campaign::PLAN)?;
    let judge = Judge::new(&plan);
    print_alike(&plan, &judge, &pools, campaigns);
    print_planted(&plan, &judge, &pools, campaigns);
    print_levels();
    few::print(5 * campaigns);
    together::print(campaigns);
    crowd::print(campaigns / 4);
    Ok(())
}
