//! The terms that runs were measured on: machine, tools, plan, and which of them differ between
//! runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;

use crate::model::{Bed, BedKind, Difference, Plan, Record, Run, Term, Workload};

type Values = BTreeMap<String, String>;

/// One of several runs.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// Its facts.
    pub run: &'a Run,
    /// Its plan.
    pub plan: &'a Plan,
    /// Its records.
    pub records: &'a [Record],
}

/// What differs between two runs, whether or not they can be compared. Differences in the work are
/// listed with what is left out because of them.
pub(super) fn differences(baseline: Side, run: Side) -> Vec<Difference> {
    let sides = [baseline, run];
    let mut terms = facts(&sides);
    terms.extend(of_plan(&sides, "bed", |plan| Some(&plan.bed)));
    terms.extend(of_plan(&sides, "judgement", |plan| Some(&plan.judgement)));
    terms.extend(contenders(&sides));
    unequal(terms)
}

/// What differs between two runs in the machine, its tools and the version.
pub(super) fn other_facts(before: Side, run: Side) -> Vec<Difference> {
    unequal(facts(&[before, run]))
}

fn unequal(terms: Vec<Term>) -> Vec<Difference> {
    let difference = |Term { what, mut values, .. }: Term| {
        let run = values.pop().flatten();
        Difference { what, baseline: values.pop().flatten(), run }
    };
    terms.into_iter().filter(|term| !term.equal).map(difference).collect()
}

/// Everything that may differ between runs: machine, tools, version, and the plan.
pub(super) fn all(sides: &[Side]) -> Vec<Term> {
    let head = |side: &Side| {
        let mut head = scalars(side.plan);
        head.retain(|key, _| ["question", "scale", "probes"].contains(&key.as_str()));
        head.insert("place".into(), text(&side.run.place));
        head.extend(side.plan.study.iter().map(|study| ("study".into(), study.title.clone())));
        Some(head)
    };
    let mut terms = facts(sides);
    terms.extend(key_by_key("", &sides.iter().map(head).collect::<Vec<_>>()));
    terms.extend(of_plan(sides, "bed", |plan| Some(&plan.bed)));
    terms.extend(of_plan(sides, "judgement", |plan| Some(&plan.judgement)));
    terms.extend(of_plan(sides, "vm", |plan| plan.vm.as_ref()));
    terms.extend(of_plan(sides, "sim", |plan| plan.sim.as_ref()));
    terms.extend(contenders(sides));
    let names = |plan: &Plan| plan.workloads.iter().map(|it| it.name.clone()).collect();
    terms.extend(members(sides, "workload", names, |plan, name| {
        plan.workloads.iter().find(|it| it.name == name).map(values)
    }));
    terms
}

/// Whether these runs were made on one machine, with one device; not, on one kernel.
pub(super) fn on_one_machine(sides: &[Side]) -> bool {
    const SOFTWARE: [&str; 3] = ["kernel", "distribution", "bed is like"];
    let machine = of_runs(sides, |run| &run.host);
    // What a guest booted, and the modules that its contenders need.
    let is_of_guests = |what: &str| {
        ["kernel ", "build of kernel ", "modules of kernel "].iter().any(|it| what.starts_with(it))
    };
    machine.iter().all(|term| {
        let what = term.what.as_str();
        term.equal || SOFTWARE.contains(&what) || is_of_guests(what)
    })
}

/// What makes another machine of one: its architecture and its processor.
const MACHINE: [&str; 2] = ["machine", "processor"];

/// The facts that distinguish machines.
pub(super) fn machine(run: &Run) -> [Option<&String>; 2] {
    MACHINE.map(|fact| run.host.get(fact))
}

/// What distinguishes the machines of two runs, if anything does. A fact that a run does not know
/// is no difference.
pub(super) fn other_machine(before: &Run, run: &Run) -> Option<&'static str> {
    let [known, now] = [before, run].map(machine);
    let differ = |place: &usize| {
        let both = known[*place].zip(now[*place]);
        both.is_some_and(|(before, now)| before != now)
    };
    (0..MACHINE.len()).find(differ).map(|place| MACHINE[place])
}

/// By what CPU time was counted: see [`Totals::cpu_time`](crate::model::Totals).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CpuBy {
    /// The kernel's ticks in which any processor of the machine was busy, for any process.
    Ticks,
    /// The scheduler's clocks of the work and of the kernel's threads.
    Clocks,
}

impl fmt::Display for CpuBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CpuBy::Ticks => "ticks of the whole machine",
            CpuBy::Clocks => "the clocks of the work and of the kernel's threads",
        })
    }
}

/// By what `metric` was counted in these records, if it is one of CPU time. Older records, and
/// those of a container that hides the kernel's threads, know ticks alone; one such is enough.
pub(super) fn cpu_by(records: &[Record], workload: &str, metric: &str) -> Option<CpuBy> {
    let is_cpu = ["cpu_time", "cpu_per_operation"].iter().any(|it| metric.ends_with(it));
    let its = |record: &&Record| {
        record.is_measured() && record.key.workload == workload && record.sample(metric).is_some()
    };
    let phases = records.iter().filter(its).flat_map(|record| &record.phases);
    let by = phases.map(|phase| match phase.totals.cpu_time {
        Some(_) => CpuBy::Clocks,
        None => CpuBy::Ticks,
    });
    by.min().filter(|_| is_cpu)
}

/// What makes even the ratios of runs mean something else.
const CONDITIONS: [&str; 9] = [
    "the place",
    "the kind of bed",
    "the bed's size",
    "the number of devices",
    "what the bed is made of",
    "the bed's limits",
    "what its limits counted",
    "whether the bed's disk says that it rotates",
    "how a round's trials go",
];

/// How the trials of its rounds go.
fn order(plan: &Plan) -> &'static str {
    match (plan.is_duet(), plan.workloads.iter().all(|it| plan.takes_turns(it))) {
        (true, true) => "in turns",
        (true, false) => "partly in turns",
        (false, _) => "one after the other",
    }
}

/// The [`CONDITIONS`] of all runs.
pub(super) fn conditions(sides: &[Side]) -> Vec<Term> {
    let of = |side: &Side| {
        let bed = &side.plan.bed;
        // Sizes and numbers are those of beds that are made.
        let made = |what: String| if is_made(bed) { what } else { "its own".into() };
        [
            Some(text(&side.run.place)),
            Some(bed.kind.name().into()),
            Some(made(bed.size.to_string())),
            Some(made(bed.devices.to_string())),
            Some(if bed.zram { "zram" } else { "a loop device" }.into()),
            Some(bed.limits.map_or("none".into(), |limits| limits.to_string())),
            side.plan.limits_counted(side.records).map(|counted| counted.to_string()),
            rotation(side.records).map(Into::into),
            Some(order(side.plan).into()),
        ]
    };
    let each: Vec<[Option<String>; 9]> = sides.iter().map(of).collect();
    let term = |(place, what): (usize, &str)| {
        let values: Vec<_> = each.iter().map(|values| values[place].clone()).collect();
        // What older records do not tell makes no difference.
        let known: BTreeSet<&String> = values.iter().flatten().collect();
        let equal = known.len() < 2;
        Term { what: what.into(), values, equal }
    };
    CONDITIONS.into_iter().enumerate().map(term).collect()
}

/// Whether the disk said that it rotates, by the first record that tells.
fn rotation(records: &[Record]) -> Option<&'static str> {
    let rotational = records.iter().find_map(|it| Some(it.disk.as_ref()?.rotational))?;
    Some(if rotational { "it does" } else { "it does not" })
}

/// What the workload of one name does in each of the runs that have it.
pub(super) fn of_work(works: &[Option<&Workload>]) -> Vec<Term> {
    let name = works.iter().flatten().next().map_or("", |work| &work.name);
    let alone = |work: &Workload| values(&work.alone());
    key_by_key(name, &works.iter().map(|work| work.map(alone)).collect::<Vec<_>>())
}

/// What the settings of a contender are in each of the runs that hold it.
pub(super) fn of_contender(sides: &[Side], name: &str) -> Vec<Term> {
    let settings = |side: &Side| side.plan.contender(name).map(values);
    key_by_key(name, &sides.iter().map(settings).collect::<Vec<_>>())
}

/// Two values as texts.
pub(super) fn both(values: Vec<Option<String>>) -> [String; 2] {
    let mut texts = values.into_iter().map(|value| value.unwrap_or_else(|| "nothing".into()));
    [texts.next().unwrap_or_default(), texts.next().unwrap_or_default()]
}

/// Machine, tools and version.
fn facts(sides: &[Side]) -> Vec<Term> {
    let version = |side: &Side| {
        Some(Values::from([("fsverdict".to_string(), side.run.program_version.clone())]))
    };
    let mut terms = key_by_key("", &sides.iter().map(version).collect::<Vec<_>>());
    terms.extend(of_runs(sides, |run| &run.host));
    terms.extend(of_runs(sides, |run| &run.tools));
    terms
}

fn of_runs(sides: &[Side], facts: fn(&Run) -> &Values) -> Vec<Term> {
    let mut terms =
        key_by_key("", &sides.iter().map(|side| Some(facts(side.run).clone())).collect::<Vec<_>>());
    // Which loop devices were free is chance.
    let made = sides.iter().all(|side| is_made(&side.plan.bed));
    terms.retain(|term| !made || term.what != "devices");
    terms
}

fn is_made(bed: &Bed) -> bool {
    matches!(bed.kind, BedKind::Loop | BedKind::Ram)
}

fn of_plan<T: Serialize>(
    sides: &[Side],
    name: &str,
    part: impl for<'a> Fn(&'a Plan) -> Option<&'a T>,
) -> Vec<Term> {
    key_by_key(name, &sides.iter().map(|side| part(side.plan).map(values)).collect::<Vec<_>>())
}

fn contenders(sides: &[Side]) -> Vec<Term> {
    let names = |plan: &Plan| plan.contenders.iter().map(|it| it.name.clone()).collect();
    members(sides, "contender", names, |plan, name| plan.contender(name).map(values))
}

/// The parts of plans that have names: which plan lacks one, and how those that have it differ.
fn members(
    sides: &[Side],
    kind: &str,
    names: impl Fn(&Plan) -> Vec<String>,
    find: impl Fn(&Plan, &str) -> Option<Values>,
) -> Vec<Term> {
    let mut terms = Vec::new();
    let all: BTreeSet<String> = sides.iter().flat_map(|side| names(side.plan)).collect();
    for name in all {
        let its: Vec<Option<Values>> = sides.iter().map(|side| find(side.plan, &name)).collect();
        if its.iter().any(Option::is_none) {
            let measured = |it: &Option<Values>| it.as_ref().map(|_| "measured".to_string());
            let values = its.iter().map(measured).collect();
            terms.push(Term { what: format!("{kind} {name}"), values, equal: false });
        }
        terms.extend(key_by_key(&name, &its));
    }
    terms
}

/// Key by key; sides without values are ignored in the comparison.
fn key_by_key(name: &str, sides: &[Option<Values>]) -> Vec<Term> {
    let keys: BTreeSet<&String> = sides.iter().flatten().flat_map(Values::keys).collect();
    let term = |key: &String| {
        let value = |its: &Values| its.get(key).cloned();
        let values: Vec<Option<String>> =
            sides.iter().map(|its| its.as_ref().and_then(value)).collect();
        let held: BTreeSet<Option<String>> = sides.iter().flatten().map(value).collect();
        let what = if name.is_empty() { key.clone() } else { format!("{name}: {key}") };
        Term { what, values, equal: held.len() < 2 }
    };
    keys.into_iter().map(term).collect()
}

/// What is set in a part of a plan, by key, but for its name.
fn values<T: Serialize>(part: &T) -> Values {
    let mut values = scalars(part);
    values.remove("name");
    values
}

fn scalars<T: Serialize>(part: &T) -> Values {
    let set = toml::Table::try_from(part).unwrap_or_default();
    set.into_iter().map(|(key, value)| (key, text(&value))).collect()
}

/// A text as it is, anything else as a plan has it.
fn text<T: Serialize>(value: &T) -> String {
    match toml::Value::try_from(value) {
        Ok(toml::Value::String(text)) => text,
        Ok(value) => value.to_string(),
        Err(_) => String::new(),
    }
}
