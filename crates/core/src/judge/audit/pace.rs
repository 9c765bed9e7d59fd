//! How long a trial of a command took, and how much it did in that time.

use crate::model::{Phase, Record, Unit, Workload};

/// Less is what any program reads of itself and its libraries.
const LEAST_AMOUNT_BYTES: u64 = 1 << 20;

/// What a trial of a command tells of its time and of what it did in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Pace {
    /// What it took, without the closing sync.
    pub work_s: f64,
    /// What it did, where that is known.
    pub amount: Option<Amount>,
    /// The first rate that the command gave of itself.
    pub figure: Option<String>,
}

/// How much it did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// Bytes read and written by the command's processes.
    Bytes(u64),
    /// The command's own rate times its time.
    Done(f64),
}

impl Amount {
    /// Its logarithm.
    pub fn ln(self) -> f64 {
        match self {
            Amount::Bytes(bytes) => (bytes as f64).ln(),
            Amount::Done(done) => done.ln(),
        }
    }
}

impl Pace {
    /// That of a trial that ran whole.
    pub fn of(workload: &Workload, record: &Record) -> Option<Pace> {
        workload.command.as_ref()?;
        let phase = record.phases.iter().find(|phase| phase.phase == Phase::Whole)?;
        let work_s = phase.work_ns as f64 / 1e9;
        let is_rate = |unit| matches!(unit, Unit::PerSecond | Unit::BytesPerSecond);
        let rate = phase.samples.iter().find(|it| is_rate(it.unit) && it.value > 0.0);
        let read_bytes = phase.application_read_bytes.unwrap_or(0);
        let moved_bytes = read_bytes + phase.application_write_bytes.unwrap_or(0);
        let amount = match rate {
            _ if moved_bytes >= LEAST_AMOUNT_BYTES => Some(Amount::Bytes(moved_bytes)),
            rate => rate.map(|it| Amount::Done(it.value * work_s)),
        };
        let figure = rate.map(|it| it.metric.clone());
        (work_s > 0.0).then_some(Pace { work_s, amount, figure })
    }
}
