//! What one timed part of one trial cost, each cost for the same amount of work.

use std::collections::BTreeMap;

use crate::model::{
    Cost, DeviceTotals, LEAST_AMOUNT_BYTES, Per, Phase, PhaseRecord, Record, Work, Workload,
};

/// What was paid of one cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paid {
    /// For what.
    pub per: Per,
    /// So much.
    pub value: f64,
    /// For what where not all trials have such an amount, and how often that has this amount.
    pub instead: (Per, f64),
    /// All that is paid in the same coin: of a flush all requests, of CPU time all time.
    pub of: f64,
    /// It can be why somebody is slow: of a device that had next to nothing to do it can't.
    pub weighs: bool,
}

/// The costs of a timed part.
#[derive(Clone, Debug, Default)]
pub struct Bill {
    /// What was paid of each.
    pub costs: BTreeMap<Cost, Paid>,
    /// What of them was for blocks of each name, divided as the whole is, where a log tells it.
    pub parts: BTreeMap<Cost, BTreeMap<String, f64>>,
}

impl Bill {
    /// That of a phase of a trial that ran whole, where all of it is of the same time.
    pub fn of(workload: &Workload, phase: Phase, record: &Record) -> Option<Bill> {
        let part = record.phases.iter().find(|it| it.phase == phase && !it.ramped)?;
        if let Ok(Work::FsyncFiles(_)) = workload.work() {
            return Some(of_fsyncs(record));
        }
        let mut bill = Bill::default();
        let (per, count) = amount(workload, part);
        if part.turns.is_none() {
            let cpu_ns = part.totals.cpu_ns() as f64;
            bill.put(Cost::CpuTime, per, cpu_ns / count, part.timed_s() * 1e9 / count);
        }
        let Some(device) = part.totals.device else { return Some(bill) };
        let weighs = is_busy(&device, part);
        let requests = device.reads + device.writes + device.flushes.unwrap_or(0);
        let moved = device.read_bytes + device.write_bytes;
        let is_work = |bytes: &u64| workload.command.is_none() || *bytes >= LEAST_AMOUNT_BYTES;
        let [read, written] =
            [part.read_bytes(), part.written_bytes()].map(|bytes| bytes.filter(is_work));
        for (cost, value, of, application) in [
            (Cost::Reads, Some(device.reads), requests, None),
            (Cost::Writes, Some(device.writes), requests, None),
            (Cost::Flushes, device.flushes, requests, None),
            (Cost::ReadBytes, Some(device.read_bytes), moved, read),
            (Cost::WrittenBytes, Some(device.write_bytes), moved, written),
        ] {
            let Some(value) = value else { continue };
            let instead = (per, application.map_or(1.0, |bytes| bytes as f64 / count));
            let (per, count) = match application {
                Some(bytes) => (Per::Byte, bytes as f64),
                None => (per, count),
            };
            let (value, of) = (value as f64 / count, of as f64 / count);
            bill.costs.insert(cost, Paid { per, value, instead, of, weighs });
            // A log's sums are of the whole trial.
            if phase == Phase::Whole {
                bill.parts.extend(parts(record, cost, count).map(|parts| (cost, parts)));
            }
        }
        Some(bill)
    }

    fn put(&mut self, cost: Cost, per: Per, value: f64, of: f64) {
        self.costs.insert(cost, Paid { per, value, instead: (per, 1.0), of, weighs: true });
    }
}

impl Paid {
    /// For what it is where not all trials have an amount.
    pub fn instead(self) -> Paid {
        let (per, times) = self.instead;
        Paid { per, value: self.value * times, of: self.of * times, ..self }
    }
}

/// What costs are divided by where it is not bytes, and how many of it there were.
fn amount(workload: &Workload, part: &PhaseRecord) -> (Per, f64) {
    let per = match workload.work() {
        Ok(Work::SmallFiles(_)) => Per::File,
        _ => Per::Operation,
    };
    match part.operations.filter(|operations| *operations > 0) {
        Some(operations) => (per, operations as f64),
        None => (Per::Trial, 1.0),
    }
}

/// The device had something to do for a tenth of the time at least: what it was given can weigh.
/// A flush is in no counter of busy time (block/blk-flush.c accounts it apart).
fn is_busy(device: &DeviceTotals, part: &PhaseRecord) -> bool {
    const WEIGHS: f64 = 0.1;
    let busy_ns = (device.busy_ns + device.flush_ns) as f64 / device.devices.max(1) as f64;
    busy_ns >= WEIGHS * part.timed_s() * 1e9
}

/// The fsyncs of workload `fsync_files` alone, which counts what each gave the device.
fn of_fsyncs(record: &Record) -> Bill {
    let mut bill = Bill::default();
    let value = |metric: &str| record.sample(metric).map(|sample| sample.value);
    let [writes, bytes, flushes] =
        ["fsync_device_writes", "fsync_device_write_bytes", "fsync_device_flushes"].map(value);
    let requests = writes.unwrap_or(0.0) + flushes.unwrap_or(0.0);
    for (cost, value, of) in [
        (Cost::Writes, writes, requests),
        (Cost::WrittenBytes, bytes, bytes.unwrap_or(0.0)),
        (Cost::Flushes, flushes, requests),
    ] {
        if let Some(value) = value {
            bill.put(cost, Per::Fsync, value, of);
        }
    }
    bill
}

/// What the trial's log adds up to, kind by kind; `None` where it tells nothing of such requests.
fn parts(record: &Record, cost: Cost, count: f64) -> Option<BTreeMap<String, f64>> {
    let begin = cost.by_block()?;
    let part = |(metric, value): (&str, f64)| {
        Some((metric.strip_prefix(begin)?.replace('_', " "), value / count))
    };
    let samples = record.samples.iter().map(|it| (it.metric.as_str(), it.value));
    let parts: BTreeMap<String, f64> = samples.filter_map(part).collect();
    let had = |metric: &str| record.sample(metric).map(|it| it.value);
    let is_told = match cost {
        Cost::WrittenBytes => had("trace_writes").is_some(),
        // Earlier programs had bytes of each kind alone.
        Cost::Writes => had("trace_writes") == Some(0.0) || !parts.is_empty(),
        _ => had("trace_reads").is_some(),
    };
    is_told.then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{phase, plan, record};
    use super::*;
    use crate::model::Totals;

    /// What the device paid `cost` for in a trial of `work` that asked to have so much read and
    /// written.
    fn per(cost: Cost, work: &str, read_bytes: u64, written_bytes: u64) -> Per {
        let device = DeviceTotals {
            devices: 1,
            reads: 100,
            read_bytes: 64 << 20,
            busy_ns: 1 << 40,
            ..DeviceTotals::default()
        };
        let part = PhaseRecord {
            totals: Totals { device: Some(device), ..Totals::default() },
            application_read_bytes: Some(read_bytes),
            application_write_bytes: Some(written_bytes),
            ..phase(Phase::Whole)
        };
        let plan =
            plan(&format!("[[contender]]\nname = \"a\"\n[[workload]]\nname = \"w\"\n{work}\n"));
        let record = Record { phases: vec![part], ..record(1, "w", "a") };
        let bill = Bill::of(&plan.workloads[0], Phase::Whole, &record).unwrap();
        bill.costs[&cost].per
    }

    #[test]
    fn what_a_program_reads_and_says_of_itself_is_not_what_the_device_works_for() {
        let command = "command = \"rm -rf tree\"";
        let read_per = |work, read, written| per(Cost::ReadBytes, work, read, written);
        assert_eq!(read_per(command, 20_000, 0), Per::Trial);
        assert_eq!(read_per(command, 64 << 20, 0), Per::Byte);
        assert_eq!(read_per(command, 2 << 20, 300 << 20), Per::Trial, "it writes");
        let fio = "fio = [\"--rw=randread\", \"--size=64k\"]";
        assert_eq!(read_per(fio, 20_000, 0), Per::Byte, "no program's own");
        assert_eq!(read_per(fio, 0, 0), Per::Trial);
        let written_per = |work, read, written| per(Cost::WrittenBytes, work, read, written);
        assert_eq!(written_per(command, 20_000, 2_000), Per::Trial);
        assert_eq!(written_per(command, 20_000, 2 << 20), Per::Byte);
    }
}
