//! Whether what was synced is there after a crash, on each contender: by what keeps the file system
//! whole, by its mount options, and by what was flushed.

use super::audit::mounted::{Terms, counts_flushes, declared_without_flush};
use crate::model::{
    Basis, Condition, Contender, DeviceTotals, Feature, Plan, Record, Sync, Workload, median,
};

/// A trial ends with a sync of its file system, which flushes a few times. So many tell that a
/// program called fsync itself.
const FLUSHES_OF_FSYNCS: f64 = 20.0;

/// Whether the file system has a journal or the like, and fsync flushes: no mount option takes that
/// away, and where the device counts flushes, work that syncs made some. Looked at is the work that
/// flushes the most, for it waits for them, among the `workloads` that may sync and at which the
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
    let sparing = |contender: &Contender| {
        let its = records.iter().filter(|record| record.key.contender == contender.name);
        let seen = || its.map(Terms::of).find_map(|terms| terms.without_flush);
        declared_without_flush(contender).or_else(seen)
    };
    let condition = |contender: &Contender| {
        let name = &contender.name;
        let found = at_most(name, workloads).or_else(|| at_most(name, &all));
        let workload = found.as_deref().unwrap_or_default();
        let syncs = most(workload) >= FLUSHES_OF_FSYNCS;
        let (met, evidence) = flushed(workload, flushes(name, workload), syncs);
        let (met, basis, evidence) = match sparing(contender) {
            Some(option) => (false, Basis::Documented, format!("{option}: fsync does not flush")),
            None if !contender.keeps_journal() => {
                let why = "no journal: a crash can damage the file system, and what it holds";
                (false, Basis::Documented, why.into())
            }
            None if found.is_none() => {
                let why = "no mount option takes it away; no work here synced what it wrote";
                (true, Basis::Documented, why.into())
            }
            None => match met {
                Some(met) => (met, Basis::Measured, evidence),
                None => (true, Basis::Documented, evidence),
            },
        };
        Condition { contender: name.clone(), feature: Feature::Durability, met, basis, evidence }
    };
    plan.contenders.iter().map(condition).collect()
}

/// The work calls fsync or the like, or may: of what a program does nothing is known.
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

/// What a contender's flushes at a workload say, which `syncs` on some: whether it is durable, if
/// they tell, and the evidence.
fn flushed(workload: &str, flushes: Option<f64>, syncs: bool) -> (Option<bool>, String) {
    let documented = |but: &str| (None, format!("no mount option takes it away; {but}"));
    match flushes {
        Some(_) if !syncs => documented("no work here waited for flushes of its own"),
        Some(few) if few > 0.0 && few < FLUSHES_OF_FSYNCS => {
            documented("too few flushes were seen on it to tell")
        }
        Some(0.0) => (Some(false), format!("{workload} flushed nothing on it, and did on others")),
        Some(flushes) => {
            let es = if flushes == 1.0 { "" } else { "es" };
            (Some(true), format!("{flushes} flush{es} in the median trial of {workload}"))
        }
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
