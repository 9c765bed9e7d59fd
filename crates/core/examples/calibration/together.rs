//! Runs of three metrics that go together: what it costs that they share an error.

use fsverdict_core::campaign::Slot;
use fsverdict_core::judge::{Asked, Judge, Side, across};
use fsverdict_core::model::{
    Draws, Key, Percent, Place, Plan, Record, Run, SCHEMA, Sample, Unit, Verdict, derived_seed,
};

use crate::campaign::record;
use crate::is_false;

/// Standard deviation of ln(figure).
const NOISE: f64 = 0.1;

/// How many times as fast the second is where something differs.
const FASTER: f64 = 1.2;

const METRICS: [&str; 3] = ["one", "two", "three"];

/// What is judged.
#[derive(Clone, Copy, PartialEq)]
enum How {
    /// Two contenders of one run.
    Paired,
    /// Four contenders of one run, by what scatters in all of them.
    Pooled,
    /// Two runs of two contenders.
    Compare,
}

impl How {
    fn name(self) -> &'static str {
        match self {
            How::Paired => "one run",
            How::Pooled => "pooled, four contenders",
            How::Compare => "`compare`, two runs",
        }
    }

    fn contenders(self) -> &'static [&'static str] {
        if self == How::Pooled { &["a", "b", "c", "d"] } else { &["a", "b"] }
    }
}

/// What is said of one metric: ratio's interval, and verdict.
type Said = ([f64; 2], Verdict);

/// How the three are judged.
struct Judges {
    how: How,
    /// As metrics of one work.
    together: Judge,
    /// As if they knew nothing of one another: each of a work of its own, with one error for all.
    apart: Judge,
    /// The first of them alone.
    alone: Judge,
}

impl Judges {
    fn new(how: How, rounds: u32) -> Judges {
        let work = |name: &str, primary: &[&str]| {
            format!(
                "[[workload]]\nname = \"{name}\"\ncommand = \"work\"\ncache = \"warm\"\nprimary = \
                 {primary:?}\n"
            )
        };
        let judge = |works: String, more: &str| {
            let contender = |name: &&str| format!("[[contender]]\nname = \"{name}\"\n");
            let contenders: String = how.contenders().iter().map(contender).collect();
            let interval = if how == How::Pooled { "pooled" } else { "paired" };
            let judgement = format!("rounds = {rounds}\ninterval = \"{interval}\"\n{more}");
            let text = format!("{contenders}{works}[judgement]\n{judgement}");
            Judge::new(&Plan::parse(&text).expect("the plan is valid"))
        };
        let each: String = METRICS.iter().map(|metric| work(metric, &[metric])).collect();
        Judges {
            how,
            together: judge(work("one", &METRICS), ""),
            apart: judge(each, "family = \"run\""),
            alone: judge(work("one", &METRICS[..1]), ""),
        }
    }

    /// What is said of b, metric by metric, where it is `ratio` times as fast in the run, or in the
    /// second run.
    fn said(&self, judge: &Judge, made: Made, ratio: f64, is_apart: bool) -> Vec<Said> {
        let contenders = self.how.contenders();
        let records = |ratio, run| records(contenders, made, ratio, run, is_apart);
        if self.how != How::Compare {
            let all = judge.comparisons(&records(ratio, 0)).into_iter();
            let its = all.filter(|it| it.contender == "b");
            let high = |high: Option<f64>| high.unwrap_or(f64::INFINITY);
            return its.map(|it| ([it.low, high(it.high)], it.verdict)).collect();
        }
        let (run, both) = (run(), [records(1.0, 0), records(ratio, 1)]);
        let side = |at: usize| Side { run: &run, plan: judge.plan(), records: &both[at] };
        let asked = Asked {
            metrics: Vec::new(),
            margin: Percent(0.05),
            regression: Percent(0.1),
            across_machines: false,
        };
        let across = across(side(0), side(1), &asked).expect("the two are alike");
        let high = |high: Option<f64>| high.unwrap_or(f64::INFINITY);
        across.changes.into_iter().map(|it| ([it.low, high(it.high)], it.verdict)).collect()
    }
}

/// The facts of a run, which say nothing here.
fn run() -> Run {
    Run {
        schema: SCHEMA,
        program_version: "1".into(),
        name: "run".into(),
        command: Vec::new(),
        started: "2026-01-01T00:00:00Z".into(),
        seed: 1,
        place: Place::Sim,
        host: Default::default(),
        memory_bytes: None,
        tools: Default::default(),
        left_out: Vec::new(),
        read: Vec::new(),
        stop: None,
        elapsed_s: 0.0,
    }
}

/// Figures: of so many rounds, with that correlation of the metrics, from that seed.
#[derive(Clone, Copy)]
struct Made {
    rounds: u32,
    correlation: f64,
    seed: u64,
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

/// The records of a run, by its number, together or apart.
fn records(contenders: &[&str], made: Made, ratio: f64, run: u64, is_apart: bool) -> Vec<Record> {
    let mut draws = Draws::new(made.seed ^ run);
    let mut records = Vec::new();
    for round in 1..=made.rounds {
        for (position, &contender) in (1..).zip(contenders) {
            let speed = if contender == "b" { ratio } else { 1.0 };
            let common = made.correlation.sqrt() * draws.normal();
            let own = (1.0 - made.correlation).sqrt();
            let figures = METRICS.map(|_| (NOISE * (common + own * draws.normal())).exp() / speed);
            let key = Key { round, workload: "one".into(), contender: contender.into() };
            records.extend(trial(key, position, &figures, is_apart));
        }
    }
    records
}

fn one_run(judges: &Judges, made: Made, tally: &mut Tally) {
    let width = |([low, high], _): &Said| (high / low).ln();
    for (at, (judge, is_apart)) in
        [(&judges.together, false), (&judges.apart, true)].into_iter().enumerate()
    {
        let said = |ratio| judges.said(judge, made, ratio, is_apart);
        let (alike, faster) = (said(1.0), said(FASTER));
        let wrong = |(_, verdict): &Said| is_false(*verdict, 0.0, 1.05_f64.ln());
        tally.any_false[at] += u32::from(alike.iter().any(wrong));
        tally.found[at] += u32::from(faster[0].0[0] > 1.0);
        tally.widths[at] += width(&faster[0]);
        assert_ne!(faster[0].1, Verdict::Void, "nothing speaks against it");
    }
    tally.widths[2] += width(&judges.said(&judges.alone, made, FASTER, false)[0]);
}

/// A row of so many runs.
fn row(judges: &Judges, rounds: u32, correlation: f64, runs: u32) -> String {
    let mut tally = Tally::default();
    for number in 0..runs {
        let seed = derived_seed(number.into(), &["together"], rounds);
        one_run(judges, Made { rounds, correlation, seed }, &mut tally);
    }
    let percent = |count: u32| f64::from(count) * 100.0 / f64::from(runs);
    let times = |at: usize| tally.widths[at] / tally.widths[2];
    format!(
        "| {rounds} | {correlation} | {:.1}% | {:.1}% | {:.2} | {:.2} | {:.1}% | {:.1}% |",
        percent(tally.any_false[0]),
        percent(tally.any_false[1]),
        times(0),
        times(1),
        percent(tally.found[0]),
        percent(tally.found[1])
    )
}

/// The table, of so many runs a row.
pub fn print(runs: u32) {
    println!(
        "\nThree metrics of one work, which have so much in common, with 10% plain noise ({runs} \
         runs a row, none of which stops early). Beside it what the same figures would cost if \
         each counted for itself.\n\n\
         | judged | rounds | correlation | any of three false | apart | interval beside one \
         metric's | apart | a true 20% found | apart |\n|{}",
        " --- |".repeat(9)
    );
    for (how, correlations) in [
        (How::Paired, &[0.0, 0.5, 0.8, 0.95, 0.99][..]),
        (How::Pooled, &[0.0, 0.95]),
        (How::Compare, &[0.0, 0.95]),
    ] {
        for rounds in [4, 12] {
            let judges = Judges::new(how, rounds);
            for correlation in correlations {
                println!("| {} {}", how.name(), row(&judges, rounds, *correlation, runs));
            }
            eprintln!("three metrics, {}, {rounds} rounds", how.name());
        }
    }
}
