//! What `history` and `compare` make of runs whose truth is known.
//!
//! `nights history COUNT` makes COUNT series of each kind and prints a line for each: the kind, the
//! nights that begin a new level, each night's ratio, and what `history` says. `nights compare
//! COUNT` makes as many pairs of runs and prints the table. `bench/nights` puts both into the
//! validation.

use fsverdict_core::judge::{Asked, Judge, Side, across, history};
use fsverdict_core::model::{
    Draws, Key, Percent, Place, Plan, Record, Run, SCHEMA, Sample, Series, Unit, Verdict,
};

const PLAN: &str = "[[contender]]\nname = \"reference\"\n[[contender]]\nname = \"it\"\n\
                    [[workload]]\nname = \"work\"\ncommand = \"true\"\ncache = \"warm\"\n";

/// A kind of series.
struct Kind {
    name: &'static str,
    nights: usize,
    /// ln of how much longer the contender takes.
    level: fn(usize) -> f64,
    /// Standard deviation of ln(ratio) from night to night.
    noise: f64,
    /// Student's t of three degrees of freedom instead of normal.
    heavy: bool,
    /// The nights that begin a new level.
    truth: &'static [usize],
}

const STEADY: f64 = 0.02;
const LARGE: f64 = 0.207;
const SMALL: f64 = 0.0953;

const KINDS: [Kind; 13] = [
    Kind { name: "nothing, 2%", level: |_| 0.0, ..NOTHING },
    Kind { name: "nothing, 5%", noise: 0.05, ..NOTHING },
    Kind { name: "nothing, heavy tails, 2%", heavy: true, ..NOTHING },
    Kind { name: "nothing, 30 nights, 2%", nights: 30, ..NOTHING },
    Kind { name: "steadily 1% a night, 2%", level: |night| 0.01 * night as f64, ..NOTHING },
    Kind { name: "steadily 2% a night, 2%", level: |night| STEADY * night as f64, ..NOTHING },
    Kind {
        name: "steadily 1% a night, 30 nights, 2%",
        nights: 30,
        level: |night| 0.01 * night as f64,
        ..NOTHING
    },
    Kind {
        name: "23% after 7 of 12, 2%",
        level: |night| if night < 7 { 0.0 } else { LARGE },
        truth: &[7],
        ..NOTHING
    },
    Kind {
        name: "23% after 10 of 12, 2%",
        level: |night| if night < 10 { 0.0 } else { LARGE },
        truth: &[10],
        ..NOTHING
    },
    Kind {
        name: "23% after 7 of 12, heavy tails, 2%",
        heavy: true,
        level: |night| if night < 7 { 0.0 } else { LARGE },
        truth: &[7],
        ..NOTHING
    },
    Kind {
        name: "10% after 7 of 12, 1%",
        noise: 0.01,
        level: |night| if night < 7 { 0.0 } else { SMALL },
        truth: &[7],
        ..NOTHING
    },
    Kind {
        name: "10% after 7 of 12, 2%",
        level: |night| if night < 7 { 0.0 } else { SMALL },
        truth: &[7],
        ..NOTHING
    },
    Kind {
        name: "23% from 8 to 16 of 24, 2%",
        nights: 24,
        level: |night| if (8..16).contains(&night) { LARGE } else { 0.0 },
        truth: &[8, 16],
        ..NOTHING
    },
];

const NOTHING: Kind =
    Kind { name: "", nights: 12, level: |_| 0.0, noise: 0.02, heavy: false, truth: &[] };

/// Rounds of a night, and the noise of ln(time) from trial to trial.
const ROUNDS: u32 = 6;
const OF_TRIALS: f64 = 0.01;

fn run(number: usize) -> Run {
    Run {
        schema: SCHEMA,
        program_version: "1".into(),
        name: format!("night {number}"),
        command: Vec::new(),
        started: format!("2026-01-01T00:{number:02}:00Z"),
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

fn timed(round: u32, contender: &str, seconds: f64) -> Record {
    let key = Key { round, workload: "work".into(), contender: contender.into() };
    let samples = vec![Sample::lower("wall_time", seconds, Unit::Seconds)];
    Record { samples, ..Record::new(round, key, 1, 1) }
}

/// A round in which the contender takes exp(`level`) times as long, give or take.
fn round(number: u32, level: f64, noise: f64, draws: &mut Draws) -> [Record; 2] {
    let mut seconds = |level: f64| (level + noise * draws.normal()).exp();
    [timed(number, "reference", seconds(0.0)), timed(number, "it", seconds(level))]
}

fn scatter(kind: &Kind, draws: &mut Draws) -> f64 {
    let normal = draws.normal();
    match kind.heavy {
        // As wide as the normal: the variance is 3.
        true => {
            let squares: f64 = (0..3).map(|_| draws.normal().powi(2)).sum();
            normal / (squares / 3.0).sqrt() / 3_f64.sqrt()
        }
        false => normal,
    }
}

/// What is said: `steps 7 | 6 7 8`, `steadily`, `open` or `nothing`.
fn said(series: &Series) -> String {
    if !series.shifts.is_empty() {
        let set =
            |runs: &[usize]| runs.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        let sets: Vec<String> = series.shifts.iter().map(|shift| set(&shift.runs)).collect();
        return format!("steps {}", sets.join(" | "));
    }
    match (series.trend, series.unclear) {
        (Some(_), _) => "steadily".into(),
        (None, Some(_)) => "open".into(),
        (None, None) => "nothing".into(),
    }
}

fn series(kind: &Kind, plan: &Plan, draws: &mut Draws) -> String {
    let mut nights = Vec::new();
    for number in 0..kind.nights {
        let level = (kind.level)(number) + kind.noise * scatter(kind, draws);
        let rounds = (1..=ROUNDS).flat_map(|it| round(it, level, OF_TRIALS, draws));
        let records: Vec<Record> = rounds.collect();
        nights.push((run(number), records));
    }
    let side = |it| {
        let (run, records): &(Run, Vec<Record>) = it;
        Side { run, plan, records }
    };
    let sides: Vec<Side> = nights.iter().map(side).collect();
    let history = history(&sides, &[]).expect("no metric is asked for");
    let its = history.series.iter().find(|it| it.contender == "it").expect("it was measured");
    let ratios = its.points.iter().filter_map(|point| point.ratio);
    let ratios: Vec<String> = ratios.map(|ratio| format!("{ratio:.6}")).collect();
    let truth: Vec<String> = kind.truth.iter().map(ToString::to_string).collect();
    format!("{}\t{}\t{}\t{}", kind.name, truth.join(" "), ratios.join(" "), said(its))
}

/// A run as fsverdict makes one: it ends when its verdict is settled.
fn stopped(judge: &Judge, level: f64, noise: f64, draws: &mut Draws) -> Vec<Record> {
    let mut records = Vec::new();
    for number in 1..=12 {
        records.extend(round(number, level, noise, draws));
        if judge.comparisons(&records)[0].verdict.is_settled() {
            break;
        }
    }
    records
}

/// A row of the table: what is said of pairs of runs.
fn pairs(plan: &Plan, noise: f64, change: f64, count: usize) -> String {
    let judge = Judge::new(plan);
    let asked = Asked {
        metrics: Vec::new(),
        margin: Percent(0.05),
        regression: Percent(0.1),
        across_machines: false,
    };
    let runs = [run(0), run(1)];
    let mut draws = Draws::new(3);
    // Equivalent, slower at all, slower by more than the margin, open, missed, misses expected.
    let mut counts = [0.0; 6];
    for _ in 0..count {
        let level = 0.1 * draws.normal();
        let all = [level, level + change].map(|it| stopped(&judge, it, noise, &mut draws));
        let side = |it: usize| Side { run: &runs[it], plan, records: &all[it] };
        let found = across(side(0), side(1), &asked).expect("the two are alike");
        let its = &found.changes[0];
        let truth = (-change).exp();
        let misses = truth < its.low || its.high.is_some_and(|high| high < truth);
        let is = [
            its.verdict == Verdict::Equivalent,
            its.verdict.is_worse(),
            its.verdict == Verdict::Slower,
            its.verdict == Verdict::Undecided,
            misses,
        ];
        counts.iter_mut().zip(is).for_each(|(count, is)| *count += f64::from(u8::from(is)));
        counts[5] += its.missed.unwrap_or(1.0);
    }
    let shares = counts.map(|it| format!("{:.1}%", it * 100.0 / count as f64));
    let percent = (change.exp() - 1.0) * 100.0;
    format!("| {:.0}% | {percent:.0}% | {} |", noise * 100.0, shares.join(" | "))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let usage = "usage: nights history|compare COUNT";
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next().ok_or(usage)?;
    let count: usize = arguments.next().ok_or(usage)?.parse()?;
    let plan = Plan::parse(PLAN)?;
    match what.as_str() {
        "history" => {
            let mut draws = Draws::new(1);
            for kind in &KINDS {
                (0..count).for_each(|_| println!("{}", series(kind, &plan, &mut draws)));
            }
        }
        "compare" => {
            for noise in [0.01, 0.03, 0.06] {
                for change in [0.0, 0.05_f64.ln_1p(), SMALL, LARGE] {
                    println!("{}", pairs(&plan, noise, change, count));
                }
            }
        }
        _ => return Err(usage.into()),
    }
    Ok(())
}
