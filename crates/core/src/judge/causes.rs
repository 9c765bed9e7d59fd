//! Why one is slower, as far as counters tell: which costs are higher (METHODOLOGY, "Why one is
//! slower").

use std::collections::{BTreeMap, BTreeSet};

use super::bill::{Bill, Paid};
use super::compare::Judge;
use super::interval::Course;
use super::stopping::Rule;
use crate::model::{
    Cause, CausePart, Comparison, Cost, Per, Phase, Record, Verdict, Workload, median,
};

/// A difference below this share of all costs of the same kind explains nothing.
const WEIGHS: f64 = 0.1;
/// Kinds of blocks that say nothing.
const NAMELESS: [&str; 4] = ["free", "freed since", "unknown", "written again since"];
/// So many kinds of blocks are named.
const PARTS_MAX: usize = 3;

/// The bills of one contender, by round.
type Bills = BTreeMap<u32, Bill>;

/// For every comparison in which one is surely slower what it pays more of: what weighs most first.
pub fn causes(judge: &Judge, records: &[Record], comparisons: &[Comparison]) -> Vec<Cause> {
    comparisons.iter().flat_map(|it| of(judge, records, it).unwrap_or_default()).collect()
}

fn of(judge: &Judge, records: &[Record], comparison: &Comparison) -> Option<Vec<Cause>> {
    use Verdict::{Faster, FasterSizeOpen, Slower, SlowerSizeOpen};
    let Comparison { contender, reference, metric, .. } = comparison;
    let [slower, faster] = match comparison.verdict {
        Slower | SlowerSizeOpen => [contender, reference],
        Faster | FasterSizeOpen => [reference, contender],
        _ => return None,
    };
    let workload = judge.plan().workloads.iter().find(|it| it.name == comparison.workload)?;
    let phase = workload.phase_of(metric);
    let is_cost = ["cpu_", "device_", "trace_"].iter().any(|it| metric.contains(it));
    let distance = comparison.ratio?.ln().abs();
    // What one job of several paid is in no counter: theirs are of the whole trial.
    if is_cost || workload.job_of(metric).is_some() {
        return None;
    }
    let pairs = Pairs {
        rule: judge.rules_of(workload).apart(),
        bills: [slower, faster].map(|name| bills(records, workload, phase, name)),
    };
    let costs = pairs.costs().into_iter().filter_map(|cost| pairs.found(cost));
    let costs = costs.filter(|it| it.times().ln() * 2.0 >= distance);
    let cause = |found: Found| Cause {
        workload: comparison.workload.clone(),
        metric: metric.clone(),
        contender: contender.clone(),
        reference: reference.clone(),
        slower: slower.clone(),
        cost: found.cost,
        per: found.per,
        medians: found.medians,
        ratio: found.ratio,
        interval: found.interval,
        parts: if found.is_alike { pairs.parts(found.cost) } else { Vec::new() },
    };
    Some(apart(costs.collect()).into_iter().map(cause).collect())
}

/// The latest bill of each round.
fn bills(records: &[Record], workload: &Workload, phase: Phase, contender: &str) -> Bills {
    let is_its = |it: &&Record| {
        it.is_measured() && it.key.workload == workload.name && it.key.contender == contender
    };
    let bill = |it: &Record| Some((it.key.round, Bill::of(workload, phase, it)?));
    records.iter().filter(is_its).filter_map(bill).collect()
}

/// A cost in which the slower is ahead.
struct Found {
    cost: Cost,
    per: Per,
    medians: [f64; 2],
    ratio: Option<f64>,
    interval: Option<[f64; 2]>,
    /// It is for the same in all trials, as their parts are.
    is_alike: bool,
}

impl Found {
    /// How many times what the faster pays; of nothing that is infinite.
    fn times(&self) -> f64 {
        let [more, less] = self.medians;
        self.ratio.unwrap_or(more / less)
    }
}

/// The slower and the faster, in their rounds.
struct Pairs<'a> {
    rule: &'a Rule,
    bills: [Bills; 2],
}

impl Pairs<'_> {
    /// The rounds that hold both.
    fn each(&self) -> impl Iterator<Item = [&Bill; 2]> {
        let [slower, faster] = &self.bills;
        slower.iter().filter_map(|(round, bill)| Some([bill, faster.get(round)?]))
    }

    fn costs(&self) -> BTreeSet<Cost> {
        self.each().flat_map(|[slower, _]| slower.costs.keys().copied()).collect()
    }

    /// What is known of a cost, if the slower one's is higher by the judge's own interval, and by
    /// enough to matter.
    fn found(&self, cost: Cost) -> Option<Found> {
        let paid = |bills: [&Bill; 2]| {
            let [slower, faster] = bills.map(|bill| bill.costs.get(&cost).copied());
            Some([slower.filter(|it| it.weighs)?, faster?])
        };
        let mut paid: Vec<[Paid; 2]> = self.each().filter_map(paid).collect();
        let is_one = |paid: &[[Paid; 2]]| paid.iter().flatten().all(|it| it.per == paid[0][0].per);
        let is_alike = is_one(&paid);
        if !is_alike {
            paid.iter_mut().for_each(|both| *both = both.map(Paid::instead));
        }
        let per = paid.first()?[0].per;
        let values: Vec<[f64; 2]> = paid.iter().map(|it| it.map(|paid| paid.value)).collect();
        let [more, less] = medians(&values)?;
        let of = median(paid.iter().map(|[slower, _]| slower.of))?;
        if !is_one(&paid) || more - less < WEIGHS * of {
            return None;
        }
        let medians = [more, less];
        let found = Found { cost, per, medians, ratio: None, interval: None, is_alike };
        if values.iter().flatten().any(|value| *value <= 0.0) {
            return self.is_surely_more(&values).then_some(found);
        }
        let course = self.course(values.iter().map(|[more, less]| (more / less).ln()));
        let [low, high] = [course.interval.low, course.interval.high].map(f64::exp);
        let ratio = Some(course.estimate.exp());
        (low > 1.0).then_some(Found { ratio, interval: Some([low, high]), ..found })
    }

    fn course(&self, differences: impl Iterator<Item = f64>) -> Course {
        Course::of(&differences.collect::<Vec<_>>(), self.rule, 0.0)
    }

    /// A figure that may be zero has no logarithm: its differences are looked at as they are.
    fn is_surely_more(&self, values: &[[f64; 2]]) -> bool {
        self.course(values.iter().map(|[more, less]| more - less)).interval.low > 0.0
    }

    /// The kinds of blocks for which the slower pays more, most first.
    fn parts(&self, cost: Cost) -> Vec<CausePart> {
        let weighs = |bill: &Bill| bill.costs.get(&cost).is_some_and(|it| it.weighs);
        let its = self.each().filter(|[slower, _]| weighs(slower));
        let logs = its.filter_map(|[slower, faster]| {
            Some([slower.parts.get(&cost)?, faster.parts.get(&cost)?])
        });
        let logs: Vec<[&BTreeMap<String, f64>; 2]> = logs.collect();
        let names: BTreeSet<&String> = logs.iter().flat_map(|[slower, _]| slower.keys()).collect();
        let part = |what: &String| {
            let value = |log: &BTreeMap<String, f64>| log.get(what).copied().unwrap_or(0.0);
            let values: Vec<[f64; 2]> =
                logs.iter().map(|[slower, faster]| [value(slower), value(faster)]).collect();
            let medians = medians(&values)?;
            self.is_surely_more(&values).then(|| CausePart { what: what.clone(), medians })
        };
        let more = |part: &CausePart| part.medians[0] - part.medians[1];
        let mut parts: Vec<CausePart> = names.into_iter().filter_map(part).collect();
        let all: f64 = parts.iter().map(more).sum();
        parts.retain(|it| more(it) >= WEIGHS * all && !NAMELESS.contains(&it.what.as_str()));
        parts.sort_by(|one, other| more(other).total_cmp(&more(one)));
        parts.truncate(PARTS_MAX);
        parts
    }
}

fn medians(values: &[[f64; 2]]) -> Option<[f64; 2]> {
    let of = |side: usize| median(values.iter().map(|it| it[side]));
    Some([of(0)?, of(1)?])
}

/// For a cost that is counted in bytes and in requests, the one that differs more; the largest
/// difference first.
fn apart(mut found: Vec<Found>) -> Vec<Found> {
    found.sort_by(|one, other| other.times().total_cmp(&one.times()));
    let coin = |cost: Cost| match cost {
        Cost::WrittenBytes | Cost::Writes => 0,
        Cost::ReadBytes | Cost::Reads => 1,
        Cost::Flushes => 2,
        Cost::CpuTime => 3,
    };
    let mut seen = BTreeSet::new();
    found.retain(|it| seen.insert(coin(it.cost)));
    found
}

#[cfg(test)]
mod tests {
    use super::super::testing::{phase, plan, record};
    use super::*;
    use crate::model::{
        CpuClock, CpuTime, DeviceTotals, Jobs, PhaseRecord, Plan, Sample, Totals, Unit,
    };

    const PLAN: &str = "[[contender]]\nname = \"a\"\n[[contender]]\nname = \"b\"\n\
                        [[workload]]\nname = \"w\"\ncommand = \"true\"\ncache = \"warm\"\n";

    /// A trial of so many seconds that flushed so often, wrote so much and took so much CPU time.
    fn trial(round: u32, name: &str, seconds: f64, costs: [u64; 3]) -> Record {
        let [flushes, write_bytes, cpu_ms] = costs;
        let device = DeviceTotals {
            devices: 1,
            flushes: Some(flushes),
            writes: 10,
            write_bytes,
            busy_ns: 500_000_000,
            ..DeviceTotals::default()
        };
        let cpu = CpuTime { work_ns: cpu_ms * 1_000_000, kernel_ns: 0, clock: CpuClock::Cgroup };
        let totals = Totals { device: Some(device), cpu_time: Some(cpu), ..Totals::default() };
        Record {
            phases: vec![PhaseRecord { totals, ..phase(Phase::Whole) }],
            samples: vec![Sample::lower("wall_time", seconds, Unit::Seconds)],
            ..record(round, "w", name)
        }
    }

    /// What a pays in each round.
    const OF_A: [u64; 3] = [10, 1 << 20, 100];

    /// The causes for rounds in which b takes twice the time of a, and b's costs in each round are
    /// `costs`.
    fn named(costs: impl Fn(u32) -> [u64; 3]) -> Vec<Cause> {
        named_in(&plan(PLAN), |round| [OF_A, costs(round)])
    }

    /// The same of both.
    fn named_in(plan: &Plan, costs: impl Fn(u32) -> [[u64; 3]; 2]) -> Vec<Cause> {
        let rounds = (1..=8).flat_map(|round| {
            let noise = 1.0 + f64::from(round % 3) / 100.0;
            let [of_a, of_b] = costs(round);
            [trial(round, "a", 1.0, of_a), trial(round, "b", 2.0 * noise, of_b)]
        });
        let records: Vec<Record> = rounds.collect();
        let judge = Judge::new(plan);
        let comparisons = judge.comparisons(&records);
        assert_eq!(comparisons[0].verdict, Verdict::Slower);
        causes(&judge, &records, &comparisons)
    }

    fn costs(causes: &[Cause]) -> Vec<Cost> {
        causes.iter().map(|cause| cause.cost).collect()
    }

    #[test]
    fn only_what_surely_differs_and_weighs_is_named() {
        let flushes = named(|_| [30, 1 << 20, 100]);
        assert_eq!(costs(&flushes), [Cost::Flushes]);
        assert_eq!((flushes[0].slower.as_str(), flushes[0].medians), ("b", [30.0, 10.0]));
        assert_eq!(costs(&named(|_| [5, 1 << 19, 50])), [], "the slower pays less of all");
        assert_eq!(costs(&named(|_| [12, 1 << 20, 100])), [], "too little for twice the time");
        let scattered = |round: u32| [if round.is_multiple_of(2) { 60 } else { 2 }, 1 << 20, 100];
        assert_eq!(costs(&named(scattered)), [], "its interval includes none");
        assert_eq!(costs(&named(|_| [10, 1 << 20, 105])), [], "5 ms of a second weigh nothing");
    }

    #[test]
    fn several_are_named_the_furthest_apart_first() {
        let several = named(|_| [10, 3 << 20, 500]);
        assert_eq!(costs(&several), [Cost::CpuTime, Cost::WrittenBytes]);
        let ratio = several[0].ratio.unwrap();
        assert!((ratio - 5.0).abs() < 1e-6, "{ratio}");
    }

    #[test]
    fn what_one_of_several_jobs_paid_is_not_known() {
        let mut plan = plan(PLAN);
        let costs = |_| [OF_A, [30, 1 << 20, 100]];
        assert_eq!(named_in(&plan, costs).len(), 1);
        let names = ["wall", "other"].map(String::from).to_vec();
        plan.workloads[0].jobs = Some(Jobs { names, together: true });
        assert_eq!(named_in(&plan, costs), [], "wall_time is that of the job wall");
    }

    #[test]
    fn a_cost_that_is_zero_in_one_round_is_measured_by_its_medians() {
        let with_none = |flushes, of_b| {
            let of_a = move |round| [if round == 1 { 0 } else { flushes }, 1 << 20, 100];
            costs(&named_in(&plan(PLAN), |round| [of_a(round), of_b]))
        };
        let weighs_little = [130, 1 << 20, 100];
        assert_eq!(with_none(100, weighs_little), [], "1.3 times are no cause of twice the time");
        let of_b = [30, 1 << 20, 500];
        assert_eq!(with_none(10, of_b), [Cost::CpuTime, Cost::Flushes], "5 times before 3 times");
    }

    #[test]
    fn where_blocks_are_known_those_that_are_more_are_named() {
        let with = |record: Record, log_bytes: f64, data_bytes: f64| {
            let sample = |name: &str, value| Sample::lower(name, value, Unit::Bytes);
            let mut samples = record.samples.clone();
            samples.push(sample("trace_writes", 1.0));
            // Of none there is no sample.
            samples.extend((log_bytes > 0.0).then(|| sample("trace_bytes_of_log_tree", log_bytes)));
            samples.push(sample("trace_bytes_of_data", data_bytes));
            Record { samples, ..record }
        };
        let rounds = (1..=8).flat_map(|round| {
            let a = trial(round, "a", 1.0, [10, 1 << 20, 100]);
            let b = trial(round, "b", 2.0, [10, 4 << 20, 100]);
            [with(a, 0.0, 1e6), with(b, 3e6, 1e6)]
        });
        let records: Vec<Record> = rounds.collect();
        let judge = Judge::new(&plan(PLAN));
        let causes = causes(&judge, &records, &judge.comparisons(&records));
        assert_eq!(costs(&causes), [Cost::WrittenBytes]);
        let part = CausePart { what: "log tree".into(), medians: [3e6, 0.0] };
        assert_eq!(causes[0].parts, [part]);
    }

    #[test]
    fn the_faster_may_have_none_of_what_the_slower_reads() {
        let with = |record: Record, reads: f64| {
            let mut record = record;
            let device = record.phases[0].totals.device.as_mut().unwrap();
            device.reads = reads as u64;
            let sample = |name: &str, value| Sample::lower(name, value, Unit::Count);
            record.samples.push(sample("trace_reads", reads));
            record.samples.extend((reads > 0.0).then(|| sample("trace_reads_of_directory", 450.0)));
            record.samples.extend((reads > 0.0).then(|| sample("trace_reads_of_free", 50.0)));
            record
        };
        let rounds = (1..=8).flat_map(|round| {
            let [a, b] = [1.0, 2.0].map(|s| trial(round, if s > 1.5 { "b" } else { "a" }, s, OF_A));
            [with(a, 0.0), with(b, 500.0)]
        });
        let records: Vec<Record> = rounds.collect();
        let judge = Judge::new(&plan(PLAN));
        let causes = causes(&judge, &records, &judge.comparisons(&records));
        assert_eq!(costs(&causes), [Cost::Reads]);
        let part = CausePart { what: "directory".into(), medians: [450.0, 0.0] };
        assert_eq!(causes[0].parts, [part], "what is free says nothing");
    }

    /// The faster may hardly use the device at all: that is why it is the faster.
    #[test]
    fn only_the_slower_has_to_keep_the_device_busy() {
        let judge = Judge::new(&plan(PLAN));
        let named = |[of_a, of_b]: [u64; 2]| {
            let busy = |mut record: Record, busy_ns| {
                record.phases[0].totals.device.as_mut().unwrap().busy_ns = busy_ns;
                record
            };
            let rounds = (1..=8).flat_map(|round| {
                let a = trial(round, "a", 1.0, [10, 1 << 20, 100]);
                let b = trial(round, "b", 2.0, [10, 8 << 20, 100]);
                [busy(a, of_a), busy(b, of_b)]
            });
            let records: Vec<Record> = rounds.collect();
            costs(&causes(&judge, &records, &judge.comparisons(&records)))
        };
        assert_eq!(named([10_000_000, 500_000_000]), [Cost::WrittenBytes]);
        assert_eq!(named([500_000_000, 10_000_000]), []);
    }

    #[test]
    fn where_some_trials_have_no_amount_all_are_judged_without() {
        let with = |mut record: Record, application_bytes: u64| {
            record.phases[0].application_write_bytes = Some(application_bytes);
            record
        };
        let rounds = (1..=8).flat_map(|round| {
            let a = trial(round, "a", 1.0, OF_A);
            let b = trial(round, "b", 2.0, [10, 8 << 20, 100]);
            [with(a, (1 << 20) - u64::from(round == 3)), with(b, 1 << 20)]
        });
        let records: Vec<Record> = rounds.collect();
        let judge = Judge::new(&plan(PLAN));
        let causes = causes(&judge, &records, &judge.comparisons(&records));
        assert_eq!(costs(&causes), [Cost::WrittenBytes]);
        assert_eq!((causes[0].per, causes[0].medians), (Per::Trial, [8388608.0, 1048576.0]));
    }
}
