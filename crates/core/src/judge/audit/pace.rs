//! How long a trial of a command took, and how much it did in that time.

use crate::model::{LEAST_AMOUNT_BYTES, Phase, Record, Unit, Workload};

/// What a trial of a command tells of its time and of what it did in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Pace {
    /// What it took, without the closing sync.
    pub work_s: f64,
    /// Bytes read and written by the command's processes, where they are of the work.
    pub moved_bytes: Option<u64>,
    /// The command's own rate times its time, if it gave a single rate: each of several may be of a
    /// part of the time.
    pub done: Option<f64>,
    /// The first rate that the command gave of itself.
    pub figure: Option<String>,
}

impl Pace {
    /// That of a trial that ran whole.
    pub fn of(workload: &Workload, record: &Record) -> Option<Pace> {
        workload.command.as_ref()?;
        let phase = record.phases.iter().find(|phase| phase.phase == Phase::Whole)?;
        let work_s = phase.work_ns as f64 / 1e9;
        let is_rate = |unit| matches!(unit, Unit::PerSecond | Unit::BytesPerSecond);
        let mut rates = phase.samples.iter().filter(|it| is_rate(it.unit));
        let first = rates.next();
        let only = first.filter(|it| it.value > 0.0 && rates.next().is_none());
        let read_bytes = phase.application_read_bytes.unwrap_or(0);
        let moved_bytes = read_bytes + phase.application_write_bytes.unwrap_or(0);
        (work_s > 0.0).then(|| Pace {
            work_s,
            moved_bytes: Some(moved_bytes).filter(|bytes| *bytes >= LEAST_AMOUNT_BYTES),
            done: only.map(|it| it.value * work_s),
            figure: first.map(|it| it.metric.clone()),
        })
    }
}
