//! FixedTime: a command that runs for a time, whatever the file system does in it.
//!
//! The figure of such a benchmark is the work that was done, not the time (Gustafson, Rover, Elbert
//! and Carter, *The Design of a Scalable, Fixed-Time Computer Benchmark*, 1990; Lilja, *Measuring
//! Computer Performance*, 2000, chapter 7). By its time any two file systems would be *equivalent*.

use std::collections::BTreeMap;

use crate::judge::stopping::FIRST_LOOK;
use crate::judge::trials::Trials;
use crate::model::{Audit, Command, Finding, Plan, Severity, Span, Unit, Workload, median};

use super::case::bytes;
use super::pace::Pace;

/// The metrics of a command that follow from how long it took.
const OF_TIME: [&str; 3] = ["wall_time", "rate", "bandwidth"];

/// Times further apart than this tell contenders apart. `dbench -t 2` took 2.1 s and within 2% of
/// it, with its start and the removal of its files.
const SAME: f64 = 0.05;

/// So many times further than the times lie the amounts apart: work that is the same in each trial
/// takes longer where there is more of it.
const TIMES_FURTHER: f64 = 5.0;

/// Amounts closer than this are the same to the tool that counts them.
const AMOUNTS_DIFFER: f64 = 0.02;

/// Amounts of the same work differ from contender to contender, where one shares blocks or
/// compresses and is not asked to write, and from round to round, where the seed makes the files.
/// Else they don't.
const OWN_AMOUNTS_DIFFER: f64 = 0.005;

/// A program takes longer than the time it was given by this share and this much.
const LONGER: f64 = 1.02;
const LONGER_S: f64 = 0.1;

/// How closely it keeps to the time it was given.
const KEPT_TO: f64 = 0.01;

/// The trials of a workload, by contender, with their rounds.
struct Paces<'a>(Vec<Vec<(u32, &'a Pace)>>);

/// By what it is known how much trials did.
#[derive(Clone, Copy)]
enum Amount {
    Bytes,
    Done,
}

impl Amount {
    /// The logarithm of a trial's.
    fn ln(self, pace: &Pace) -> Option<f64> {
        match self {
            Amount::Bytes => pace.moved_bytes.map(|bytes| (bytes as f64).ln()),
            Amount::Done => pace.done.map(f64::ln),
        }
    }
}

/// What speaks against judging `workload` by its time.
pub fn finding(plan: &Plan, workload: &Workload, trials: &Trials) -> Option<Finding> {
    let command = workload.command.as_ref()?;
    let primary = workload.primary();
    let of_time = |metric: &String| OF_TIME.contains(&metric.as_str());
    if !primary.iter().any(of_time) {
        return None;
    }
    let paces = Paces::of(plan, workload, trials)?;
    let evidence = paces.whatever_was_done().or_else(|| paces.as_told(command))?;
    let is_all = primary.iter().all(of_time);
    Some(Finding {
        audit: Audit::FixedTime,
        severity: if is_all { Severity::Void } else { Severity::Warning },
        workload: Some(workload.name.clone()),
        contender: None,
        evidence,
        advice: paces.advice(),
    })
}

impl<'a> Paces<'a> {
    /// Those of all contenders, once each has as many as a verdict needs.
    fn of(plan: &Plan, workload: &Workload, trials: &'a Trials) -> Option<Paces<'a>> {
        let of = |name: &str| -> Vec<(u32, &'a Pace)> {
            let kept = trials.latest(&workload.name, name).iter();
            kept.filter_map(|(round, it)| Some((*round, it.pace.as_ref()?))).collect()
        };
        let all = plan.contenders.iter().map(|it| of(&it.name));
        let paces: Vec<Vec<(u32, &Pace)>> = all.filter(|paces| !paces.is_empty()).collect();
        let enough = |paces: &Vec<(u32, &Pace)>| paces.len() >= FIRST_LOOK as usize;
        (!paces.is_empty() && paces.iter().all(enough)).then_some(Paces(paces))
    }

    fn all(&self) -> impl Iterator<Item = &'a Pace> {
        self.0.iter().flatten().map(|(_, pace)| *pace)
    }

    /// How far all but an eighth of the times lie from their median.
    fn times_apart(&self) -> Option<f64> {
        apart([self.all().map(|pace| pace.work_s.ln())])
    }

    /// What all trials tell: amounts of two kinds don't compare.
    fn amount(&self) -> Option<Amount> {
        let known = |it: &Amount| self.all().all(|pace| it.ln(pace).is_some());
        [Amount::Bytes, Amount::Done].into_iter().find(known)
    }

    /// The same of the amounts.
    fn amounts_apart(&self) -> Option<f64> {
        let amount = self.amount()?;
        apart([self.all().filter_map(|it| amount.ln(it))])
    }

    /// The amounts of each contender, in logarithms, less its median, with their rounds.
    fn own_amounts(&self) -> Option<Vec<Vec<(u32, f64)>>> {
        let amount = self.amount()?;
        let own = |paces: &Vec<(u32, &Pace)>| {
            let all = || paces.iter().filter_map(|(round, it)| Some((*round, amount.ln(it)?)));
            let middle = median(all().map(|(_, ln)| ln))?;
            Some(all().map(|(round, ln)| (round, ln - middle)).collect())
        };
        self.0.iter().map(own).collect()
    }

    /// How far all but an eighth of them lie from 0.
    fn own_amounts_apart(&self) -> Option<f64> {
        apart(self.own_amounts()?.iter().map(|own| own.iter().map(|(_, ln)| *ln)))
    }

    /// The same, less what the round has for all: with several contenders, its median.
    fn own_amounts_apart_in_rounds(&self) -> Option<f64> {
        let own = self.own_amounts()?;
        let [_, _, ..] = own.as_slice() else { return self.own_amounts_apart() };
        let mut by_round: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for (round, ln) in own.iter().flatten() {
            by_round.entry(*round).or_default().push(*ln);
        }
        let of_round = |round: &u32| median(by_round[round].iter().copied()).unwrap_or_default();
        apart(own.iter().map(|own| own.iter().map(|(round, ln)| ln - of_round(round))))
    }

    /// The times agree and the amounts don't.
    fn whatever_was_done(&self) -> Option<String> {
        let (times, amounts) = (self.times_apart()?, self.amounts_apart()?);
        let own = self.own_amounts_apart_in_rounds()?;
        let differ = amounts >= AMOUNTS_DIFFER && own >= OWN_AMOUNTS_DIFFER;
        let regardless = times <= SAME && amounts >= TIMES_FURTHER * times;
        let amount = self.amount()?;
        let [least, most] = ends(self.all().filter_map(|pace| amount.ln(pace)))?;
        let did = match amount {
            Amount::Bytes => {
                let [least, most] = [least, most].map(|ln| bytes(ln.exp().round() as u64));
                format!("{least} to {most} were read and written")
            }
            Amount::Done => format!("the most was {:.2} times the least", (most - least).exp()),
        };
        (differ && regardless).then(|| format!("{}, whatever was done in it: {did}", self.took()))
    }

    /// The times are what the command was told.
    fn as_told(&self, command: &Command) -> Option<String> {
        let middle = median(self.all().map(|pace| pace.work_s))?;
        let is_kept_to = |told: &f64| *told <= middle && middle <= told * LONGER + LONGER_S;
        let told = told_s(&command.argv()).into_iter().find(is_kept_to)?;
        // An amount that never varies is what was asked for, and the time a coincidence.
        let is_amount = self.own_amounts_apart().is_some_and(|own| own < OWN_AMOUNTS_DIFFER);
        let told = Unit::Seconds.format(told);
        (self.times_apart()? <= KEPT_TO && !is_amount)
            .then(|| format!("{}, as the command says: {told}", self.took()))
    }

    fn took(&self) -> String {
        let times = ends(self.all().map(|pace| pace.work_s)).unwrap_or_default();
        let [least, most] = times.map(|time| Unit::Seconds.format(time));
        match least == most {
            true => format!("all {} trials took {least}", self.all().count()),
            false => format!("all {} trials took {least} to {most}", self.all().count()),
        }
    }

    fn advice(&self) -> String {
        let known = self.all().find_map(|pace| pace.figure.as_ref());
        let how = match known {
            Some(figure) => format!("--primary {figure}"),
            None => "--figure NAME=REGEX finds it in what the command prints".into(),
        };
        format!("judge what it does in that time ({how}), or give it an amount of work to do")
    }
}

fn ends(values: impl Iterator<Item = f64>) -> Option<[f64; 2]> {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    Some([*sorted.first()?, *sorted.last()?])
}

/// How far all values but an eighth lie from the median of their group: a trial that stalled does
/// not count.
fn apart<V: IntoIterator<Item = f64>>(groups: impl IntoIterator<Item = V>) -> Option<f64> {
    let mut distances = Vec::new();
    for group in groups {
        let values: Vec<f64> = group.into_iter().collect();
        let middle = median(values.iter().copied())?;
        distances.extend(values.iter().map(|value| (value - middle).abs()));
    }
    distances.sort_by(f64::total_cmp);
    let last = distances.len().checked_sub(1)?;
    Some(distances[last - distances.len() / 8])
}

/// The times that a command line gives, in seconds: `60s`, `-t 2`, `-T2`, `--time=10`, `sleep 5`.
fn told_s(argv: &[String]) -> Vec<f64> {
    let words = argv.iter().flat_map(|word| word.split_whitespace());
    let words: Vec<&str> = words.map(|word| word.trim_matches(['\'', '"', ';'])).collect();
    let seconds = |text: &str| text.parse::<f64>().ok().filter(|seconds| *seconds > 0.0);
    let spoken = |text: &str| Some(text.parse::<Span>().ok()?.0.as_secs_f64());
    let mut told = Vec::new();
    for (place, word) in words.iter().enumerate() {
        let before = place.checked_sub(1).map_or("", |before| words[before]);
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, value),
            // `-t2`, which is no long option.
            None if !word.starts_with("--") && is_short(word.get(..2).unwrap_or_default()) => {
                (&word[..2], &word[2..])
            }
            None => (before, *word),
        };
        let in_seconds = || seconds(value).filter(|_| is_of_time(name));
        told.extend(spoken(value).or_else(in_seconds));
    }
    told
}

/// Options that many benchmarks have for their time: dbench and stress-ng `-t`, pgbench `-T`,
/// IOR `-D`, mdtest `-W`.
fn is_short(option: &str) -> bool {
    ["-t", "-T", "-D", "-W", "-d", "-w"].contains(&option)
}

fn is_of_time(name: &str) -> bool {
    let name = name.rsplit('/').next().unwrap_or(name);
    let words = ["time", "duration", "seconds", "secs"];
    is_short(name) || name == "sleep" || words.iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::audit::Audited;
    use crate::judge::testing::{plan, record};
    use crate::model::{Phase, PhaseRecord, Record, Sample};

    fn of(command: &str, more: &str) -> Plan {
        plan(&format!(
            "[[contender]]\nname = \"a\"\n[[contender]]\nname = \"b\"\n\
             [[workload]]\nname = \"w\"\ncommand = \"{command}\"\n{more}"
        ))
    }

    /// A trial of so many seconds and bytes.
    fn trial(round: u32, contender: &str, work_s: f64, bytes: f64) -> Record {
        let phase = PhaseRecord {
            application_write_bytes: Some(bytes as u64),
            ..PhaseRecord::new(Phase::Whole, (work_s * 1e9) as u64, 1_000_000)
        };
        Record { phases: vec![phase], ..record(round, "w", contender) }
    }

    /// Four rounds: what each contender takes and does, times what the rounds differ by. The
    /// amounts of b differ by the square.
    fn rounds(of_a: (f64, f64), of_b: (f64, f64), time: [f64; 4], amount: [f64; 4]) -> Vec<Record> {
        let of = |round: usize| {
            let trial = |name, (work_s, bytes), more: f64| {
                trial(round as u32 + 1, name, work_s * time[round], bytes * more)
            };
            [trial("a", of_a, amount[round]), trial("b", of_b, amount[round].powi(2))]
        };
        (0..4).flat_map(of).collect()
    }

    fn found(plan: &Plan, records: &[Record]) -> Option<Finding> {
        finding(plan, &plan.workloads[0], Audited::of(plan, records).trials())
    }

    const STEADY: [f64; 4] = [1.0, 1.001, 0.999, 1.002];
    const NOISY: [f64; 4] = [1.0, 1.08, 0.94, 1.03];
    const ALIKE: [f64; 4] = [1.0; 4];

    #[test]
    fn a_time_that_is_the_same_whatever_is_done_in_it_is_void() {
        let dbench = of("dbench -t 2 2", "");
        let seen = found(&dbench, &rounds((2.12, 8e8), (2.1, 4e8), STEADY, NOISY)).unwrap();
        assert_eq!((seen.audit, seen.severity), (Audit::FixedTime, Severity::Void));
        let expected = "all 8 trials took 2.10 s to 2.12 s, whatever was done in it: 337 MiB to \
                        824 MiB were read and written";
        assert_eq!(seen.evidence, expected);
        assert!(seen.advice.contains("--figure NAME=REGEX"), "{}", seen.advice);
        // Contenders that are as fast as each other.
        assert!(found(&dbench, &rounds((2.1, 8e8), (2.1, 8e8), STEADY, NOISY)).is_some());
        // Fewer trials than a verdict needs.
        let records = rounds((2.1, 8e8), (2.1, 4e8), STEADY, NOISY);
        assert_eq!(found(&dbench, &records[..6]), None);
    }

    #[test]
    fn work_of_a_fixed_amount_is_judged_by_its_time() {
        let copy = of("cp -a /srv/tree .", "");
        // The same file system twice, on a machine as quiet as can be.
        assert_eq!(found(&copy, &rounds((2.1, 8e8), (2.1, 8e8), STEADY, ALIKE)), None);
        // The amount is the round's, and the time goes with it, or does not.
        for time in [NOISY, STEADY] {
            let mut records = rounds((2.1, 8e8), (2.2, 8e8), time, ALIKE);
            for record in &mut records {
                let bytes = 8e8 * NOISY[record.key.round as usize - 1];
                record.phases[0].application_write_bytes = Some(bytes as u64);
            }
            assert_eq!(found(&copy, &records), None);
        }
        // One that is settled early has no part in later rounds, whatever the others' amounts are.
        let at = |round, name, bytes| trial(round, name, 2.1 * STEADY[round as usize % 4], bytes);
        let all = (1..=12).flat_map(|round| [at(round, "a", 8e8), at(round, "c", 4e8)]);
        let records: Vec<Record> = all.chain((1..=4).map(|round| at(round, "b", 8e8))).collect();
        let names = ["a", "b", "c"].map(|it| format!("[[contender]]\nname = \"{it}\"\n")).concat();
        let work = "[[workload]]\nname = \"w\"\ncommand = \"cp -a /srv/tree .\"\n";
        let three = plan(&(names + work));
        assert_eq!(found(&three, &records), None);
        // Shared blocks are written by one of them alone.
        assert_eq!(found(&copy, &rounds((2.1, 8e8), (2.1, 2e8), STEADY, ALIKE)), None);
        // Times that tell contenders apart.
        assert_eq!(found(&copy, &rounds((2.1, 8e8), (2.6, 4e8), STEADY, NOISY)), None);
        // As long as a number of threads, by chance.
        let build = of("make -j 2 -t 2", "");
        assert_eq!(found(&build, &rounds((2.01, 8e8), (2.01, 8e8), STEADY, ALIKE)), None);
    }

    #[test]
    fn a_time_that_the_command_line_gives_is_void_where_no_amount_is_known() {
        let small = |work_s| rounds((work_s, 1e4), (work_s, 1e4), STEADY, ALIKE);
        let told = |command: &str, work_s| found(&of(command, ""), &small(work_s));
        let seen = told("stress-ng --dentry 2 --timeout 2", 2.03).unwrap();
        let expected = "all 8 trials took 2.03 s, as the command says: 2.00 s";
        assert_eq!(seen.evidence, expected);
        for command in ["sleep 2", "x -t2", "x --time=2", "x 2s", "sh -c 'x -T 2'", "x runtime=2"] {
            assert!(told(command, 2.03).is_some(), "{command}");
        }
        assert_eq!(told("find . -maxdepth 2", 2.03), None, "not a time");
        assert_eq!(told("sleep 2", 2.5), None, "something else takes time, too");
        assert_eq!(told("sleep 3", 2.03), None);
    }

    /// Trials that print a rate, which differs from contender to contender and round to round.
    fn with_rate(mut records: Vec<Record>) -> Vec<Record> {
        for record in &mut records {
            let noise = NOISY[record.key.round as usize - 1];
            let rate = if record.key.contender == "a" { 9e6 * noise } else { 5e6 / noise };
            let sample = Sample::higher("dbench_throughput", rate, Unit::BytesPerSecond);
            record.phases[0].samples.push(sample);
        }
        records
    }

    #[test]
    fn an_amount_is_known_where_all_trials_tell_the_same_one() {
        let script = of("./bench.sh", "");
        let small = || rounds((2.1, 1e4), (2.1, 1e4), STEADY, ALIKE);
        assert!(found(&script, &with_rate(small())).is_some());
        assert_eq!(found(&script, &with_rate(with_rate(small()))), None, "each is of a part");
        let mut one_silent = with_rate(small());
        one_silent[0].phases[0].samples.clear();
        assert_eq!(found(&script, &one_silent), None);
        let some_bytes = rounds((2.1, 1e4), (2.1, 9e6), STEADY, ALIKE);
        assert_eq!(found(&script, &some_bytes), None, "bytes of b alone");
        // No mixture: b's bytes and a's rate are amounts of two kinds.
        let mut mixed = some_bytes;
        for record in mixed.iter_mut().filter(|it| it.key.contender == "a") {
            record.phases[0].samples.push(Sample::higher("x", 5e9, Unit::BytesPerSecond));
        }
        assert_eq!(found(&script, &mixed), None);
    }

    #[test]
    fn a_figure_of_its_own_is_named_and_judged_instead() {
        let records = with_rate(rounds((2.1, 1e4), (2.1, 1e4), STEADY, ALIKE));
        let by_time = found(&of("./bench.sh", ""), &records).unwrap();
        assert!(by_time.advice.contains("--primary dbench_throughput"), "{}", by_time.advice);
        assert!(by_time.evidence.ends_with("the most was 2.10 times the least"), "{by_time:?}");
        let judged = of("./bench.sh", "primary = [\"dbench_throughput\"]");
        assert_eq!(found(&judged, &records), None);
        let both = of("./bench.sh", "primary = [\"dbench_throughput\", \"wall_time\"]");
        assert_eq!(found(&both, &records).unwrap().severity, Severity::Warning);
    }
}
