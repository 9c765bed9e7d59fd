//! Whether synced data survive a crash, on each contender: by what keeps the file system
//! consistent, by its settings, and by its flushes.

use super::audit::EARLY;
use super::audit::mounted::{Spared, Terms, counts_flushes, not_whole, waiting};
use crate::model::{
    Basis, Condition, DeviceTotals, Feature, Given, Plan, Record, Sync, Workload, median,
};

/// A trial ends with a sync of its file system, which flushes a few times. So many tell that a
/// program called fsync itself.
const FLUSHES_OF_FSYNCS: f64 = 20.0;
/// So many times as many on another are not just counted differently: a mirror flushes twice, and
/// one flush may serve several fsyncs.
const TIMES_MORE: f64 = 10.0;

/// Whether the file system has a journal or the like, and fsync flushes: no setting gives that up,
/// and if the device counts flushes, work that syncs made some. We look at the work with the most
/// flushes, because it waits for them, among the `workloads` that may sync and in which the
/// contender wrote, or else among all such: a sync of what was only read has nothing to flush.
pub(super) fn durability(plan: &Plan, records: &[Record], workloads: &[&str]) -> Vec<Condition> {
    let names = || plan.contenders.iter().map(|it| it.name.as_str());
    let flushes = |name: &str, workload: &str| {
        typical(records, name, workload, |record, device| {
            device.flushes.filter(|_| counts_flushes(record))
        })
    };
    let most = |workload: &str| names().filter_map(|it| flushes(it, workload)).fold(0.0, f64::max);
    let syncing = plan.workloads.iter().filter(|it| may_sync(it));
    let all: Vec<&str> = syncing.map(|it| it.name.as_str()).collect();
    let at_most = |name: &str, among: &[&str]| {
        let wrote = |it: &&str| {
            let bytes = typical(records, name, it, |_, device| Some(device.write_bytes));
            bytes.is_none_or(|bytes| bytes > 0.0)
        };
        let syncing = among.iter().rev().copied().filter(|it| all.contains(it));
        let with_writes = syncing.filter(wrote);
        with_writes.max_by(|a, b| most(a).total_cmp(&most(b))).map(String::from)
    };
    let terms = terms(plan, records);
    let spared = Spared::of(plan, &terms);
    let is_early = |place: usize| waiting(plan, &terms, &spared, place).is_some();
    let condition = |place: usize| {
        let name = &plan.contenders[place].name;
        let gives_up = spared.synced(place).map(Given::said);
        let gives_up = gives_up.or_else(|| not_whole(plan, &spared, place));
        let found = at_most(name, workloads).or_else(|| at_most(name, &all));
        let workload = found.as_deref().unwrap_or_default();
        let documented = |evidence: String| (true, Basis::Documented, evidence);
        let (met, basis, evidence) = match (gives_up, found.is_some()) {
            (Some(why), _) => (false, Basis::Documented, why),
            _ if is_early(place) => (false, Basis::Measured, EARLY.into()),
            (None, false) => documented(untaken("no work here synced what it wrote")),
            (None, true) => match flushed(workload, flushes(name, workload), most(workload)) {
                (Some(met), evidence) => (met, Basis::Measured, evidence),
                (None, evidence) => documented(evidence),
            },
        };
        let contender = name.clone();
        Condition { contender, feature: Feature::Durability, met, basis, evidence }
    };
    (0..plan.contenders.len()).map(condition).collect()
}

/// What the records say of the terms of each contender, in the plan's order.
fn terms(plan: &Plan, records: &[Record]) -> Vec<Terms> {
    let of = |name: &str| {
        let mut terms = Terms::default();
        let its = records.iter().filter(|record| record.key.contender == name);
        its.for_each(|record| terms.add(&Terms::of(record)));
        terms
    };
    plan.contenders.iter().map(|it| of(&it.name)).collect()
}

/// Nothing that is known speaks against it, but for what was measured.
fn untaken(but: &str) -> String {
    format!("no setting gives it up; {but}")
}

/// The work calls fsync or the like, or may: what a program does is unknown.
fn may_sync(workload: &Workload) -> bool {
    let syncs = |key: &&str| {
        let is_on = |value: &String| !["0", "none"].contains(&value.as_str());
        workload.fio_values(key).is_none_or(|values| values.iter().any(is_on))
    };
    if workload.fio.is_some() {
        return ["fsync", "fdatasync", "sync", "sync_file_range"].iter().any(syncs);
    }
    let at_end_alone = workload.small_files.as_ref().is_some_and(|it| it.sync != Sync::Each);
    !at_end_alone && workload.metadata.is_none() && workload.tree.is_none()
}

/// What a contender's flushes at a workload say, on which some contender made `most`: whether it is
/// durable, if they tell, and the evidence.
fn flushed(workload: &str, flushes: Option<f64>, most: f64) -> (Option<bool>, String) {
    let documented = |but: &str| (None, untaken(but));
    let syncs = most >= FLUSHES_OF_FSYNCS;
    let counted = |flushes: f64| {
        let es = if flushes == 1.0 { "" } else { "es" };
        format!("{flushes} flush{es} in the median trial of {workload}")
    };
    match flushes {
        Some(_) if !syncs => documented("no work here waited for flushes of its own"),
        Some(0.0) => (Some(false), format!("{workload} flushed nothing on it, and did on others")),
        Some(few) if few < FLUSHES_OF_FSYNCS && few * TIMES_MORE < most => {
            (Some(false), format!("{}, and {most} on another", counted(few)))
        }
        Some(few) if few < FLUSHES_OF_FSYNCS => {
            documented("too few flushes were seen on it to tell")
        }
        Some(flushes) => (Some(true), counted(flushes)),
        None if syncs => documented("flushes were not measured on it"),
        None => documented("the device counts no flushes"),
    }
}

/// The median of a count of the devices, over the contender's trials of a workload.
fn typical(
    records: &[Record],
    name: &str,
    workload: &str,
    count: impl Fn(&Record, &DeviceTotals) -> Option<u64>,
) -> Option<f64> {
    let its = records.iter().filter(|it| it.is_measured() && it.key.contender == name);
    let of_trial = |record: &Record| {
        let mut phases = record.phases.iter().map(|phase| phase.totals.device.as_ref()).peekable();
        phases.peek()?;
        phases.map(|device| Some(count(record, device?)? as f64)).sum()
    };
    median(its.filter(|it| it.key.workload == workload).filter_map(of_trial))
}
