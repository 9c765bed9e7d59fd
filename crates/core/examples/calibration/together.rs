//! Runs of three metrics that go together: what it costs that they share an error.

use fsverdict_core::campaign::Slot;
use fsverdict_core::judge::Judge;
use fsverdict_core::model::{
    Comparison, Draws, Key, Plan, Record, Sample, Unit, Verdict, derived_seed,
};

use crate::campaign::record;
use crate::is_false;

/// Standard deviation of ln(figure).
const NOISE: f64 = 0.1;

/// How many times as fast the second is where something differs.
const FASTER: f64 = 1.2;

const METRICS: [&str; 3] = ["one", "two", "three"];

/// How the three are judged.
struct Judges {
    /// As metrics of one work.
    together: Judge,
    /// As if they knew nothing of one another: each of a work of its own, with one error for all.
    apart: Judge,
    /// The first of them alone.
    alone: Judge,
}

impl Judges {
    fn new(rounds: u32) -> Judges {
        let work = |name: &str, primary: &[&str]| {
            format!(
                "[[workload]]\nname = \"{name}\"\ncommand = \"work\"\ncache = \"warm\"\nprimary = \
                 {primary:?}\n"
            )
        };
        let judge = |works: String, more: &str| {
            let contenders = "[[contender]]\nname = \"a\"\n[[contender]]\nname = \"b\"\n";
            let text = format!("{contenders}{works}[judgement]\nrounds = {rounds}\n{more}");
            Judge::new(&Plan::parse(&text).expect("the plan is valid"))
        };
        let each: String = METRICS.iter().map(|metric| work(metric, &[metric])).collect();
        Judges {
            together: judge(work("one", &METRICS), ""),
            apart: judge(each, "family = \"run\""),
            alone: judge(work("one", &METRICS[..1]), ""),
        }
    }
}

/// Of how many runs something was so, together and apart.
#[derive(Default)]
struct Tally {
    any_false: [u32; 2],
    found: [u32; 2],
    /// The sum of the first metric's ln(high / low), and of the same alone.
    widths: [f64; 3],
}

/// One trial's figures, all in one record, or each in one of its work.
fn trial(key: Key, position: u32, figures: &[f64], is_apart: bool) -> Vec<Record> {
    let sample = |(metric, figure): (&&str, &f64)| Sample::lower(*metric, *figure, Unit::Seconds);
    let samples = METRICS.iter().zip(figures).map(sample);
    let of = |key: Key, samples| Record {
        samples,
        ..record(1, Slot { key, position, seed: 0 }, Sample::lower("", 1.0, Unit::Seconds))
    };
    match is_apart {
        false => vec![of(key, samples.collect())],
        true => samples
            .map(|it| of(Key { workload: it.metric.clone(), ..key.clone() }, vec![it]))
            .collect(),
    }
}

/// The records of so many rounds, together or apart.
fn records(rounds: u32, correlation: f64, ratio: f64, seed: u64, is_apart: bool) -> Vec<Record> {
    let mut draws = Draws::new(seed);
    let mut records = Vec::new();
    for round in 1..=rounds {
        for (position, contender) in (1..).zip(["a", "b"]) {
            let speed = if contender == "b" { ratio } else { 1.0 };
            let common = correlation.sqrt() * draws.normal();
            let own = (1.0 - correlation).sqrt();
            let figures = METRICS.map(|_| (NOISE * (common + own * draws.normal())).exp() / speed);
            let key = Key { round, workload: "one".into(), contender: contender.into() };
            records.extend(trial(key, position, &figures, is_apart));
        }
    }
    records
}

fn one_run(judges: &Judges, [rounds, number]: [u32; 2], correlation: f64, tally: &mut Tally) {
    let seed = derived_seed(number.into(), &["together"], rounds);
    let width = |it: &Comparison| it.high.map_or(f64::INFINITY, |high| (high / it.low).ln());
    for (at, (judge, is_apart)) in
        [(&judges.together, false), (&judges.apart, true)].into_iter().enumerate()
    {
        let compared =
            |ratio| judge.comparisons(&records(rounds, correlation, ratio, seed, is_apart));
        let (alike, faster) = (compared(1.0), compared(FASTER));
        let wrong = |it: &Comparison| is_false(it.verdict, 0.0, 1.05_f64.ln());
        tally.any_false[at] += u32::from(alike.iter().any(wrong));
        tally.found[at] += u32::from(faster[0].low > 1.0);
        tally.widths[at] += width(&faster[0]);
        assert_ne!(faster[0].verdict, Verdict::Void, "nothing speaks against it");
    }
    let alone = judges.alone.comparisons(&records(rounds, correlation, FASTER, seed, false));
    tally.widths[2] += width(&alone[0]);
}

/// The table, of so many runs a row.
pub fn print(runs: u32) {
    println!(
        "\nThree metrics of one work, which have so much in common, with 10% plain noise ({runs} \
         runs a row, none of which stops early). Beside it what the same figures would cost if \
         each counted for itself.\n\n\
         | rounds | correlation | any of three false | apart | interval beside one metric's | \
         apart | a true 20% found | apart |\n|{}",
        " --- |".repeat(8)
    );
    for rounds in [4, 12] {
        let judges = Judges::new(rounds);
        for correlation in [0.0, 0.5, 0.8, 0.95, 0.99] {
            let mut tally = Tally::default();
            (0..runs).for_each(|it| one_run(&judges, [rounds, it], correlation, &mut tally));
            let percent = |count: u32| f64::from(count) * 100.0 / f64::from(runs);
            let times = |at: usize| tally.widths[at] / tally.widths[2];
            println!(
                "| {rounds} | {correlation} | {:.1}% | {:.1}% | {:.2} | {:.2} | {:.1}% | {:.1}% |",
                percent(tally.any_false[0]),
                percent(tally.any_false[1]),
                times(0),
                times(1),
                percent(tally.found[0]),
                percent(tally.found[1])
            );
        }
        eprintln!("three metrics, {rounds} rounds");
    }
}
