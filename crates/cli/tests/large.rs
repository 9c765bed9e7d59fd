//! Runs of a stranger whose counters are as large as is read at all: every sum of them is made
//! without wrapping round, which would be a wrong verdict.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

use fsverdict_core::campaign::Campaign;
use fsverdict_core::judge::{self, Asked, Fold, Judge, Side};
use fsverdict_core::model::{MOST, Percent, Plan, Record, Run, from_json};
use fsverdict_core::render::{self, Kept, Report};
use serde_json::Value;

use crate::support::{Scene, tool};

/// So many counters are made large at once.
const TOGETHER: usize = 8;

/// What tells trials apart, and measures nothing.
const NAMES: [&str; 5] = ["schema", "number", "round", "position", "seed"];

/// A run that was read, and the documents of its trials.
struct Published {
    run: Run,
    plan: Plan,
    rules: Judge,
    records: Vec<Value>,
}

impl Published {
    /// The first four rounds of a run in `record/`.
    fn of(scene: &Scene, name: &str) -> Published {
        let pack = format!("{}/../../record/{name}/run.tar.gz", env!("CARGO_MANIFEST_DIR"));
        tool("tar", &["-xzf", &pack, "-C", &scene.typed("")]).unwrap();
        let folder = fs::read_dir(scene.path("")).unwrap().next().unwrap().unwrap();
        let name = folder.file_name().into_string().unwrap();
        let plan = Plan::parse(&scene.read(&format!("{name}/plan.toml"))).unwrap();
        let mut records = scene.records(&name);
        records.sort_by_key(|record| record["number"].as_u64());
        records.truncate(4 * plan.contenders.len() * plan.workloads.len());
        let run = serde_json::from_str(&scene.read(&format!("{name}/run.json"))).unwrap();
        Published { run, rules: Judge::new(&plan), plan, records }
    }

    /// Judges the documents and shows them in every form, as reports do.
    fn is_judged(&self, documents: &[Value]) {
        let Published { run, plan, rules, .. } = self;
        let read = |document: &Value| from_json::<Record>(&document.to_string()).unwrap();
        let records: Vec<Record> = documents.iter().map(read).collect();
        let _ = Campaign::of(run.seed, rules, &records).next(Duration::ZERO);
        let mut fold = Fold::of(rules, &records);
        let (comparisons, findings) = (fold.comparisons(), fold.findings());
        let causes = judge::causes(rules, &records, &comparisons);
        let side = Side { run, plan, records: &records };
        let claims = fold.claims(side, &comparisons, &findings);
        judge::history(&[side, side, side], &[]).unwrap();
        let asked = Asked {
            metrics: Vec::new(),
            margin: Percent(0.05),
            regression: Percent(0.1),
            across_machines: false,
        };
        judge::across(side, side, &asked).unwrap();
        let (records, comparisons, causes) = (&records, &comparisons, &causes);
        let (claims, findings, published) = (&claims, &findings, &[]);
        let is_packed = false;
        let report = Report {
            run,
            plan,
            records,
            comparisons,
            causes,
            claims,
            findings,
            published,
            is_packed,
        };
        let kept = Kept { path: "run", is_packed: false };
        [false, true].iter().for_each(|all| drop(render::answered(&report, kept, *all)));
        render::details(&report);
        render::markdown(&report, None);
        render::json(&report);
        render::samples_csv(records);
        render::html(&report, &[]);
    }
}

/// The fields that hold integers, by their names from the document down.
fn fields(value: &Value, at: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(inner) => inner
            .iter()
            .filter(|(name, _)| !NAMES.contains(&name.as_str()))
            .for_each(|(name, inner)| fields(inner, &format!("{at}/{name}"), found)),
        Value::Array(inner) => inner.iter().for_each(|it| fields(it, at, found)),
        Value::Number(number) if number.is_u64() => drop(found.insert(at.to_string())),
        _ => {}
    }
}

/// Sets the integers of fields to what `value` has for them.
fn enlarge(document: &mut Value, at: &str, value: &dyn Fn(&str) -> Option<u64>) {
    match document {
        Value::Object(inner) => {
            for (name, inner) in inner.iter_mut().filter(|(it, _)| !NAMES.contains(&it.as_str())) {
                enlarge(inner, &format!("{at}/{name}"), value);
            }
        }
        Value::Array(inner) => inner.iter_mut().for_each(|it| enlarge(it, at, value)),
        Value::Number(number) if number.is_u64() => {
            if let Some(value) = value(at) {
                *document = value.into();
            }
        }
        _ => {}
    }
}

fn enlarged(records: &[Value], value: &dyn Fn(&str) -> Option<u64>) -> Vec<Value> {
    let mut records = records.to_vec();
    records.iter_mut().for_each(|record| enlarge(record, "", value));
    records
}

/// The most that a field of the records can hold: some have 32 bits.
fn most(records: &[Value], field: &str) -> u64 {
    let is_read = |it: &Value| from_json::<Record>(&it.to_string()).is_ok();
    let holds =
        |most: &u64| enlarged(records, &|it| (it == field).then_some(*most)).iter().all(is_read);
    let found = [MOST, u32::MAX.into()].into_iter().find(holds);
    found.unwrap_or_else(|| panic!("{field} holds neither"))
}

#[test]
fn counters_of_any_size_are_judged_without_wrapping_round() {
    for (name, in_parts) in [("2026-11-23-restic", true), ("2026-11-22-nvme-tuning", false)] {
        let published = Published::of(&Scene::new(), name);
        let records = &published.records;
        published.is_judged(records);
        let mut all = BTreeSet::new();
        records.iter().for_each(|record| fields(record, "", &mut all));
        assert!(all.len() > 40, "{all:?}");
        let of = |field: &String| (field.clone(), most(records, field));
        let most: BTreeMap<String, u64> = all.iter().map(of).collect();
        published.is_judged(&enlarged(records, &|it| most.get(it).copied()));
        // Some at a time, beside others as they were: each alone would take minutes.
        let parts = if in_parts { most.len() / TOGETHER + 1 } else { 0 };
        for part in 0..parts {
            let some: BTreeMap<&String, u64> =
                most.iter().skip(part).step_by(parts).map(|(it, value)| (it, *value)).collect();
            println!("{name}: {:?}", some.keys());
            published.is_judged(&enlarged(records, &|it| some.get(&it.to_string()).copied()));
        }
    }
}

#[test]
fn a_larger_counter_is_refused_by_its_name() {
    let scene = Scene::new();
    scene.run("run --place sim --fs ext4,xfs --rounds 2 --output run -- true").exits(0);
    let mut record = scene.read_json("run/trials/1/record.json");
    record["steps"][0]["duration_ns"] = u64::MAX.into();
    scene.write("run/trials/1/record.json", &record.to_string());
    let refused = [("report run", 1), ("compare run run", 1), ("advise run --for web", 1)];
    // A history leaves out what can't be read, and lacks a run then.
    for (command, code) in refused.into_iter().chain([("history run", 2)]) {
        let done = scene.run(command).exits(code).says("trials/1/record.json");
        done.says("duration_ns is 18446744073709551615: no figure of a trial is beyond");
    }
}
