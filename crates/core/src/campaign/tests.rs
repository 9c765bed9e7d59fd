//! A campaign that takes its records one by one gives the same answer as from all at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;
use std::time::Duration;

use proptest::prelude::*;

use super::slots::{slots, slots_of};
use super::tally::Tally;
use super::wanted::wanted;
use super::*;
use crate::judge::Side;
use crate::judge::plain;
use crate::judge::testing::{plan, record, run};
use crate::model::claim::{Answer, Answered};
use crate::model::{
    CacheState, Draws, Failure, Key, Outcome, Phase, Refused, Sample, Unit, Verdict,
};

/// [`Campaign::next`] by its definition: from all records anew.
fn plain_next(seed: u64, judge: &Judge, records: &[Record], spent: Duration) -> Next {
    let plan = judge.plan();
    let current = records.iter().map(|record| record.key.round).max().unwrap_or(1);
    let done: BTreeSet<&Key> = records.iter().map(|record| &record.key).collect();
    for round in [current, current + 1] {
        let or_budget = |slots| match over_budget(plan, round, spent) {
            true => Next::End(Stop::Budget),
            false => Next::Round(slots),
        };
        let again = plain_repeated(seed, judge, records);
        if round > current && !again.is_empty() {
            return or_budget(again);
        }
        if plan.judgement.rounds().is_some_and(|rounds| round > rounds) {
            return Next::End(Stop::Rounds);
        }
        let earlier = records.iter().filter(|record| record.key.round < round);
        let earlier: Vec<Record> = earlier.cloned().collect();
        let mut tally = Tally::default();
        earlier.iter().for_each(|it| tally.take_trial(&it.key, it.is_measured()));
        let comparisons = plain::comparisons(judge, &earlier);
        let claims = plain_undecided(judge, &earlier, &comparisons);
        let open = Open { comparisons: &comparisons, claims: &claims };
        let mut slots = match wanted(plan, open, &tally) {
            Ok(wanted) => slots(wanted, seed, round),
            Err(stop) => return Next::End(stop),
        };
        slots.retain(|slot| !done.contains(&slot.key));
        if !slots.is_empty() {
            return or_budget(slots);
        }
    }
    Next::End(Stop::Settled)
}

/// The undecided claims, by what the report of these records would say of them.
fn plain_undecided(
    judge: &Judge,
    records: &[Record],
    comparisons: &[Comparison],
) -> Vec<Undecided> {
    let (run, plan) = (run("run", &[]), judge.plan());
    let side = Side { run: &run, plan, records };
    let answers =
        Fold::of(judge, records).claims(side, comparisons, &plain::voiding(judge, records));
    let is_measured = |it: &&Answered| it.why != "no round has both yet";
    // That of extrapolations that lie apart.
    let is_hopeless = |it: &&Answered| {
        it.claim.to.is_some() && it.measured.is_some() && it.rounds_to_settle.is_none()
    };
    let open = answers.iter().filter(|it| it.answer == Answer::Undecided).filter(is_measured);
    let open = open.filter(|it| !is_hopeless(it));
    let undecided = |it: &Answered| {
        let entrants = it.claim.compared(plan).unwrap().entrants();
        // It is for a person who waits, not for choosing what to run next.
        Undecided { entrants, settled_after: None }
    };
    open.map(undecided).collect()
}

fn plain_repeated(seed: u64, judge: &Judge, records: &[Record]) -> Vec<Slot> {
    let plan = judge.plan();
    let void = plain::void_rounds(plan, records);
    let mut slots = Vec::new();
    for workload in &plan.workloads {
        let mut rounds: BTreeMap<u32, BTreeMap<&str, usize>> = BTreeMap::new();
        for key in records.iter().map(|it| &it.key).filter(|key| key.workload == workload.name) {
            *rounds.entry(key.round).or_default().entry(&key.contender).or_default() += 1;
        }
        let is_begun = |trials: &BTreeMap<&str, usize>| trials.values().any(|&count| count > 1);
        let is_void = |round: u32| void.contains(&(round, workload.name.clone()));
        let voided = rounds.keys().filter(|round| is_void(**round)).count();
        let mut left =
            REPEATS.saturating_sub(rounds.values().filter(|trials| is_begun(trials)).count());
        for (&round, trials) in &rounds {
            if !is_begun(trials) {
                if left == 0 || !is_void(round) || 2 * voided >= rounds.len() {
                    continue;
                }
                left -= 1;
            }
            let missing = trials.iter().filter(|(_, count)| **count == 1);
            let names: Vec<String> = missing.map(|(name, _)| name.to_string()).collect();
            let again = derived_seed(seed, &["again"], round);
            let mut more = slots_of(workload, names, again, seed, round);
            more.iter_mut().for_each(|slot| slot.position += slots.len() as u32);
            slots.extend(more);
        }
    }
    slots
}

const CONTENDERS: &str = "[[contender]]\nname = \"a\"\n[[contender]]\nname = \"b\"\n\
                          [[contender]]\nname = \"c\"\n";
const WORK: &str = "[[workload]]\nname = \"v\"\ncommand = \"true\"\noperations = 100\n";
/// More of that.
const MORE: &str = "[[workload]]\nname = \"u\"\ncommand = \"true\"\noperations = 1000\n";
const JOB: &str = "[[workload]]\nname = \"w\"\nprimary = [\"iops\", \"cpu_per_operation\"]\n\
                   fio = { rw = \"randread\", ioengine = \"libaio\", iodepth = 4 }\n";

const CLAIMS: &str = r#"
    [[claim]]
    text = "1"
    contender = "b"
    workload = "v"
    times = 1.2
    [[claim]]
    text = "2"
    contender = "b"
    against = "c"
    workload = "v"
    is = "equal"
    [[claim]]
    text = "3"
    not_measurable = "no"
    [[claim]]
    text = "4"
    contender = "c"
    workload = "w"
    metric = "wall_time"
    is = "worse"
    [[claim]]
    text = "5"
    contender = "a"
    workload = "w"
    than = "v"
    metric = "wall_time"
    at_most = 2
    [[claim]]
    text = "6"
    contender = "b"
    growth = ["v", "u"]
    to = 2000
    is = "better"
"#;

/// Judges of every kind there is, some of them with claims; those without an end need no
/// simulation.
static JUDGES: LazyLock<Vec<Judge>> = LazyLock::new(|| {
    let judgements = [
        "rounds = 6",
        "budget = \"1000h\"\nrace = true",
        "budget = \"1000h\"\ninterval = \"pooled\"",
        "budget = \"1000h\"\narms = [\"duplicate\", \"raw\"]\nfamily = \"run\"",
        "rounds = 6\ninterval = \"pooled\"\narms = [\"duplicate\"]",
        "budget = \"1000h\"\nreference = \"b\"\nrace = true\narms = [\"raw\"]",
    ];
    let judge = |(place, judgement)| {
        let (claims, more) = if place < 3 || place == 4 { (CLAIMS, MORE) } else { ("", "") };
        let text = format!("{claims}{CONTENDERS}{WORK}{more}{JOB}[judgement]\n{judgement}\n");
        Judge::new(&plan(&text))
    };
    judgements.into_iter().enumerate().map(judge).collect()
});

/// What may become of a trial, of a hundred.
#[derive(Clone, Copy, Debug)]
struct Luck {
    fails: usize,
    void: usize,
    omits: usize,
    refuses: usize,
    noise: f64,
    /// How many times as good each further contender is.
    step: f64,
}

fn luck() -> impl Strategy<Value = Luck> {
    let often = || prop::sample::select(vec![0, 0, 5, 20, 60]);
    let noise = prop::sample::select(vec![0.0, 0.01, 0.05, 0.3]);
    let step = prop::sample::select(vec![1.0, 1.03, 1.2]);
    let refuses = prop::sample::select(vec![0, 0, 0, 1]);
    (often(), often(), often(), refuses, noise, step).prop_map(
        |(fails, void, omits, refuses, noise, step)| Luck {
            fails,
            void,
            omits,
            refuses,
            noise,
            step,
        },
    )
}

/// A trial of `key` with some luck.
fn trial(key: Key, position: u32, number: u32, luck: Luck, draws: &mut Draws) -> Record {
    let speed = match key.contender.as_str() {
        "b" => luck.step,
        "c" => luck.step * luck.step,
        _ => 1.0,
    };
    let mut happens = |percent: usize| draws.below(100) < percent;
    let (fails, void) = (happens(luck.fails), happens(luck.void));
    let (omits, refuses) = (happens(luck.omits), happens(luck.refuses));
    let rate = 100.0 * speed * (luck.noise * draws.normal()).exp();
    let is_nought = omits && number.is_multiple_of(2);
    let rate = if is_nought { 0.0 } else { rate };
    let mut samples = vec![
        Sample::lower("wall_time", 100.0 / rate, Unit::Seconds),
        Sample::higher("iops", rate, Unit::PerSecond),
        Sample::lower("cpu_per_operation", 5e5 / rate, Unit::Nanoseconds),
        Sample::lower("fsync_latency_p50", 1e6, Unit::Nanoseconds),
    ];
    samples.retain(|_| !omits || is_nought);
    let kept_bytes = if void { 1 << (21 + draws.below(4)) } else { 0 };
    let cold = CacheState { dropped: true, cached_bytes_after: kept_bytes, ..Default::default() };
    let failure = |error: &str| {
        let (step, cleanup_errors) = ("work".to_string(), Vec::new());
        Outcome::Failed(Failure { step, error: error.into(), cleanup_errors })
    };
    let refused = Refused { phase: Phase::Whole, why: "no".into() };
    let Key { round, workload, contender } = key;
    let trial = Record {
        number,
        position,
        caches: vec![cold],
        refused: if refuses { vec![refused] } else { Vec::new() },
        ..record(round, &workload, &contender)
    };
    match fails {
        true => Record { outcome: failure("no"), ..trial },
        false => Record { samples, ..trial },
    }
}

/// What the campaign says after these records is what they say all at once.
fn assert_same(campaign: &mut Campaign, judge: &Judge, records: &[Record]) -> Next {
    let spent = Duration::from_secs(records.len() as u64);
    let comparisons = campaign.comparisons();
    // NaN is no number that equals itself, and none is to come out.
    assert_eq!(comparisons, plain::comparisons(judge, records));
    let findings = campaign.all.fold.findings();
    assert_eq!(findings, judge.findings(records));
    let voiding = plain::voiding(judge, records);
    let its: Vec<_> = findings.iter().filter(|it| voiding.contains(it)).cloned().collect();
    assert_eq!(its, voiding);
    let next = campaign.next(spent);
    assert_eq!(next, plain_next(campaign.seed, judge, records, spent));
    assert_eq!(next, next_round(campaign.seed, judge, records, spent));
    next
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Runs as they come, with failures, voids and rounds that are run again; each is looked at
    /// after some of its trials only, as a run that was interrupted and went on.
    #[test]
    fn a_run_is_judged_alike_one_by_one_and_at_once(
        kind in 0..6usize,
        luck in luck(),
        seed in 0..1_000_000u64,
        looks in 1..9usize,
    ) {
        let judge = &JUDGES[kind];
        let mut draws = Draws::new(seed);
        let mut campaign = Campaign::new(seed, judge);
        let mut records: Vec<Record> = Vec::new();
        while let Next::Round(slots) = assert_same(&mut campaign, judge, &records) {
            for slot in slots {
                let number = records.len() as u32 + 1;
                let record = trial(slot.key, slot.position, number, luck, &mut draws);
                campaign.take(&record);
                records.push(record);
                if draws.below(20) < looks {
                    assert_same(&mut campaign, judge, &records);
                }
            }
            if records.len() > 120 {
                break;
            }
        }
    }

    /// Records in any order at all, as no run makes them.
    #[test]
    fn any_records_are_judged_alike_one_by_one_and_at_once(
        kind in 0..6usize,
        luck in luck(),
        seed in 0..1_000_000u64,
        count in 0..60u32,
    ) {
        let judge = &JUDGES[kind];
        let mut draws = Draws::new(seed);
        let mut campaign = Campaign::new(seed, judge);
        let mut records: Vec<Record> = Vec::new();
        let names = ["a", "b", "c", "a again", "raw device", "nobody"];
        for number in 1..=count {
            let key = Key {
                round: 1 + draws.below(6) as u32,
                workload: ["v", "w", "w", "x"][draws.below(4)].into(),
                contender: names[draws.below(names.len())].into(),
            };
            let record = trial(key, 1 + draws.below(4) as u32, number, luck, &mut draws);
            campaign.take(&record);
            records.push(record);
            if draws.below(4) == 0 {
                assert_same(&mut campaign, judge, &records);
            }
        }
        assert_same(&mut campaign, judge, &records);
    }
}

/// The campaigns above hold what they are meant to hold.
#[test]
fn the_campaigns_repeat_rounds_give_up_race_and_settle() {
    let (mut again, mut stops, mut verdicts) = (0, BTreeSet::new(), BTreeSet::new());
    for seed in 0..40 {
        let judge = &JUDGES[seed as usize % JUDGES.len()];
        let of = [5, 60][seed as usize % 2];
        let luck = Luck { fails: of, void: 5, omits: 5, refuses: 0, noise: 0.02, step: 1.2 };
        let mut draws = Draws::new(seed);
        let mut campaign = Campaign::new(seed, judge);
        let stop = loop {
            match campaign.next(Duration::ZERO) {
                Next::End(stop) => break format!("{stop:?}"),
                Next::Round(_) if campaign.taken() > 120 => break "long".into(),
                Next::Round(slots) => slots.into_iter().for_each(|slot| {
                    let number = campaign.taken() as u32 + 1;
                    let record = trial(slot.key, slot.position, number, luck, &mut draws);
                    campaign.take(&record);
                }),
            }
        };
        let works = ["v", "w"].into_iter().filter_map(|it| campaign.all.tally.of(it));
        again += works.map(|trials| trials.again.len()).sum::<usize>();
        stops.insert(stop);
        let settled = |it: Comparison| format!("{:?}", it.verdict);
        verdicts.extend(campaign.comparisons().into_iter().map(settled));
    }
    assert!(again > 5, "{again} rounds were run again");
    assert!(stops.contains("Failed") && stops.contains("Settled"), "{stops:?}");
    let seen = [Verdict::Faster, Verdict::Undecided, Verdict::Void].map(|it| format!("{it:?}"));
    assert!(seen.iter().all(|it| verdicts.contains(it)), "{verdicts:?}");
}

/// Rounds of a and b, whose caches were cold but for the trials of b named.
fn records(rounds: u32, void: &[u32]) -> Vec<Record> {
    let trial = |round: u32, name: &str| {
        let dropped = name == "a" || !void.contains(&round);
        let caches = vec![CacheState { dropped, ..CacheState::default() }];
        Record { caches, ..record(round, "w", name) }
    };
    (1..=rounds).flat_map(|round| [trial(round, "a"), trial(round, "b")]).collect()
}

fn next(records: &[Record]) -> Vec<(u32, String)> {
    let plan = plan(
        "[[contender]]\nname = \"a\"\n[[contender]]\nname = \"b\"\n\
         [[workload]]\nname = \"w\"\ncommand = \"true\"\n[judgement]\nrounds = 6",
    );
    match next_round(1, &Judge::new(&plan), records, Duration::ZERO) {
        Next::Round(slots) => {
            let mut trials: Vec<_> =
                slots.into_iter().map(|slot| (slot.key.round, slot.key.contender)).collect();
            trials.sort();
            trials
        }
        Next::End(_) => Vec::new(),
    }
}

fn both(round: u32) -> Vec<(u32, String)> {
    vec![(round, "a".into()), (round, "b".into())]
}

#[test]
fn a_round_with_a_void_trial_is_run_again_whole_and_once() {
    assert_eq!(next(&records(3, &[])), both(4));
    assert_eq!(next(&records(1, &[1])), both(2), "one of one may be the rule");
    let mut run = records(3, &[2]);
    assert_eq!(next(&run), both(2));
    run.push(record(2, "w", "b"));
    assert_eq!(next(&run), both(2)[..1], "an interrupted repetition goes on");
    run.push(record(2, "w", "a"));
    assert_eq!(next(&run), both(4));
    run.last_mut().unwrap().caches = vec![CacheState::default()];
    assert_eq!(next(&run), both(4), "it is not run a third time");
}

#[test]
fn what_is_void_most_of_the_time_is_not_run_again() {
    assert_eq!(next(&records(4, &[1, 2])), both(5));
    assert_eq!(next(&records(6, &[6])), both(6), "also after the last round");
    assert_eq!(next(&records(6, &[])), []);
}

#[test]
fn who_is_alone_is_measured_to_the_last_round() {
    let alone = "[[contender]]\nname = \"a\"\n[[workload]]\nname = \"w\"\ncommand = \"true\"\n\
                 [judgement]\nrounds = 6";
    let judge = Judge::new(&plan(alone));
    let mut campaign = Campaign::new(1, &judge);
    while let Next::Round(slots) = campaign.next(Duration::ZERO) {
        for Slot { key, .. } in slots {
            assert_eq!(key.contender, "a");
            campaign.take(&record(key.round, "w", "a"));
        }
    }
    assert_eq!(campaign.taken(), 6);
    assert_eq!(campaign.next(Duration::ZERO), Next::End(Stop::Rounds));
}

/// Who is measured in the fifth round of a plan with these claims: after four b is surely faster,
/// and its processor time is not known to differ.
fn fifth(claims: &str) -> Vec<String> {
    let plan = plan(&format!(
        "contender = [{{ name = \"a\" }}, {{ name = \"b\" }}]\n{claims}\n\
         workload = [\n{{ name = \"v\", command = \"true\" }},\n\
         {{ name = \"w\", command = \"true\" }}\n]"
    ));
    let trial = |round: u32, workload, contender, seconds: f64| {
        let wave = if round.is_multiple_of(2) { 1.3 } else { 1.0 };
        let cpu = if contender == "a" { 1.0 } else { wave };
        let samples = vec![
            Sample::lower("wall_time", seconds, Unit::Seconds),
            Sample::lower("cpu_time", cpu, Unit::Seconds),
        ];
        Record { samples, ..record(round, workload, contender) }
    };
    let round = |round| {
        [("v", "a", 1.0), ("v", "b", 0.5), ("w", "a", 1.0), ("w", "b", 0.5)]
            .map(|(workload, contender, seconds)| trial(round, workload, contender, seconds))
    };
    let records: Vec<Record> = (1..=4).flat_map(round).collect();
    match next_round(1, &Judge::new(&plan), &records, Duration::ZERO) {
        Next::Round(slots) => {
            let names = slots.into_iter().map(|it| it.key.workload + " " + &it.key.contender);
            names.collect::<BTreeSet<_>>().into_iter().collect()
        }
        Next::End(stop) => vec![format!("{stop:?}")],
    }
}

/// Whether after four rounds of so many another one follows, where b takes half of a's time, by
/// `scatter` more in every other round.
fn goes_on(rounds: u32, scatter: f64) -> bool {
    let plan = plan(&format!(
        "contender = [{{ name = \"a\" }}, {{ name = \"b\" }}]\n\
         judgement = {{ rounds = {rounds} }}\nworkload = [{{ name = \"w\", command = \"true\" }}]"
    ));
    let trial = |round, contender, seconds| {
        let samples = vec![Sample::lower("wall_time", seconds, Unit::Seconds)];
        Record { samples, ..record(round, "w", contender) }
    };
    let round = |round: u32| {
        let of_b = if round.is_multiple_of(2) { 0.5 + 0.5 * scatter } else { 0.5 };
        [trial(round, "a", 1.0), trial(round, "b", of_b)]
    };
    let records: Vec<Record> = (1..=4).flat_map(round).collect();
    matches!(next_round(1, &Judge::new(&plan), &records, Duration::ZERO), Next::Round(_))
}

#[test]
fn a_large_difference_is_measured_in_the_last_round_to_know_how_large() {
    assert!(goes_on(5, 0.02), "faster, but by how much is hardly known a round before the last");
    assert!(!goes_on(5, 0.0), "it is the same in every round");
    assert!(!goes_on(5, 0.0005), "it is known to within the margin");
    assert!(!goes_on(6, 0.02), "it is hardly known either, and two are left");
}

#[test]
fn rounds_go_on_for_an_undecided_claim() {
    let claim = |rest: &str| fifth(&format!("claim = [{{ text = \"so\", {rest} }}]"));
    assert_eq!(fifth(""), ["Settled"]);
    let of_cpu = "contender = \"b\", workload = \"w\", metric = \"cpu_time\"";
    assert_eq!(claim(&format!("{of_cpu}, is = \"worse\"")), ["w a", "w b"]);
    assert_eq!(claim(&format!("{of_cpu}, at_least = 300")), ["Settled"], "it does not hold");
    let of_works = "contender = \"b\", workload = \"w\", than = \"v\", metric = \"cpu_time\"";
    assert_eq!(claim(&format!("{of_works}, is = \"equal\"")), ["Settled"], "it holds");
    let of_both = "contender = \"b\", workload = \"w\", than = \"v\", against = \"a\"";
    let open = claim(&format!("{of_both}, metric = \"cpu_time\", is = \"equal\""));
    assert_eq!(open, ["v a", "w a", "w b"]);
    assert_eq!(claim("not_measurable = \"no\""), ["Settled"]);
    let missing = "contender = \"b\", workload = \"w\", metric = \"iops\", is = \"worse\"";
    assert_eq!(claim(missing), ["Settled"], "more rounds would not have it either");
}

#[test]
fn a_claim_keeps_nobody_whose_partner_is_given_up_and_all_where_intervals_are_pooled() {
    let part = |work: &str, name: &str| (work.to_string(), name.to_string());
    let next = |judgement: &str, entrants: [(String, String); 2], fails: &[&str]| {
        let plan = plan(&format!(
            "contender = [{{ name = \"a\" }}, {{ name = \"b\" }}]\n{judgement}\n\
             [[workload]]\nname = \"v\"\ncommand = \"true\"\n\
             [[workload]]\nname = \"w\"\ncommand = \"true\"\n"
        ));
        let mut tally = Tally::default();
        for round in 1..=4 {
            for trial in ["v a", "v b", "w a", "w b"] {
                let (work, name) = trial.split_once(' ').unwrap();
                tally.take(round, [work, name], round < 3 || !fails.contains(&trial));
            }
        }
        let claims = [Undecided { entrants: entrants.into(), settled_after: None }];
        match wanted(&plan, Open { comparisons: &[], claims: &claims }, &tally) {
            Ok(wanted) => {
                let all = wanted.into_iter().flat_map(|(work, names)| {
                    names.into_iter().map(|name| format!("{} {name}", work.name))
                });
                all.collect::<BTreeSet<_>>().into_iter().collect()
            }
            Err(stop) => vec![format!("{stop:?}")],
        }
    };
    let of_both = || [part("w", "b"), part("v", "a")];
    assert_eq!(next("", of_both(), &[]), ["v a", "w a", "w b"]);
    assert_eq!(next("", of_both(), &["w b"]), ["Settled"]);
    assert_eq!(next("", of_both(), &["v a"]), ["Failed"]);
    let of_reference = || [part("w", "a"), part("v", "a")];
    assert_eq!(next("", of_reference(), &["v b"]), ["v a", "w a"]);
    let pooled = "judgement = { interval = \"pooled\" }";
    assert_eq!(next(pooled, of_reference(), &[]), ["v a", "v b", "w a", "w b"]);
}

#[test]
fn whole_rounds_keep_what_is_settled_until_all_is() {
    let next = |judgement: &str| {
        let plan = plan(&format!(
            "contender = [{{ name = \"a\" }}, {{ name = \"b\" }}]\n{judgement}\n\
             [[workload]]\nname = \"sure\"\ncommand = \"true\"\n\
             [[workload]]\nname = \"open\"\ncommand = \"true\"\n"
        ));
        let mut records = Vec::new();
        for round in 1..=8 {
            let wave: f64 = if round % 2 == 0 { 3.0 } else { 0.3 };
            for (workload, contender, seconds) in
                [("sure", "a", 1.0), ("sure", "b", 2.0), ("open", "a", 1.0), ("open", "b", wave)]
            {
                let samples = vec![Sample::lower("wall_time", seconds, Unit::Seconds)];
                records.push(Record { samples, ..record(round, workload, contender) });
            }
        }
        match next_round(1, &Judge::new(&plan), &records, Duration::ZERO) {
            Next::Round(slots) => {
                slots.into_iter().map(|slot| slot.key.workload).collect::<BTreeSet<_>>().len()
            }
            end => panic!("{end:?}"),
        }
    };
    assert_eq!((next(""), next("judgement = { whole = true }")), (1, 2));
}
