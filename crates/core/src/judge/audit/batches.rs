//! A trial whose rate over time is known, in batches.

use crate::model::{RateOverTime, Record};

/// Fewer batches of a run say nothing of how they scatter.
const FEWEST_BATCHES: usize = 4;

/// One trial whose rate over time is known.
#[derive(Clone, Copy, Debug)]
pub struct Batches {
    /// How many there are.
    pub count: usize,
    /// Variance of their rate, relative to its mean.
    pub variance: f64,
    /// What a batch takes.
    pub batch_ns: f64,
    /// What the trial takes besides its run.
    pub beside_ns: f64,
}

impl Batches {
    /// Those of a trial; `None` where there are too few.
    pub fn of(record: &Record) -> Option<Batches> {
        let phase = record.phases.first()?;
        let course: &RateOverTime = phase.rate_over_time.as_ref()?;
        let batches = course.batches();
        let mean = batches.iter().sum::<f64>() / batches.len() as f64;
        let enough = batches.len() >= FEWEST_BATCHES && mean > 0.0;
        let all_ns = record.took_ns();
        enough.then(|| Batches {
            count: batches.len(),
            variance: variance(&batches) / (mean * mean),
            batch_ns: course.batch_ns() as f64,
            beside_ns: all_ns.saturating_sub(phase.work_ns) as f64,
        })
    }
}

/// The variance of values that are a sample.
pub fn variance(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64
}
