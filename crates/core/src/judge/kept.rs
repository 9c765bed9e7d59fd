//! What the judge keeps of a record.

use super::audit::batches::Batches;
use super::audit::case::{Case, Seen};
use super::audit::mounted::Terms;
use super::audit::pace::Pace;
use super::audit::trial::AUDITS;
use crate::model::{Key, Phase, Plan, Record, Sample, Severity, Workload};

/// Metrics that are audited where they are not judged.
const AUDITED: [&str; 4] =
    ["iops", "fsync_latency_p50", "device_bytes_per_application_byte", "cpu_per_operation"];

/// What the judge keeps of a record: what it needs again, and no histograms.
#[derive(Debug)]
pub struct Kept {
    /// Its place among the records of the run, from 0.
    pub at: usize,
    /// Where the trial belongs.
    pub key: Key,
    /// Its place in its round.
    pub position: u32,
    /// It ran whole.
    pub is_measured: bool,
    /// What it took, all its steps.
    pub took_ns: u64,
    /// The figures that are judged or audited.
    samples: Vec<Sample>,
    /// The timed parts that the file system refused.
    pub refused: Vec<Phase>,
    /// What the audits of single trials saw, by their place in [`AUDITS`], in this order.
    pub seen: Vec<(usize, Seen)>,
    /// On what terms it ran.
    pub terms: Terms,
    /// Its rate over time, where that is known.
    pub batches: Option<Batches>,
    /// A command's time, and what it did in it.
    pub pace: Option<Pace>,
}

impl Kept {
    /// What is kept of `record`, a trial of `plan` and the one at place `at` of its records.
    pub fn of(plan: &Plan, record: &Record, at: usize) -> Kept {
        let key = record.key.clone();
        let workload = plan.workloads.iter().find(|it| it.name == key.workload);
        let primary = workload.map(Workload::primary).unwrap_or_default();
        let is_asked = |sample: &&Sample| {
            primary.contains(&sample.metric) || AUDITED.contains(&sample.metric.as_str())
        };
        let mut asked: Vec<Sample> = Vec::new();
        for sample in record.samples.iter().filter(is_asked) {
            if asked.iter().all(|it| it.metric != sample.metric) {
                asked.push(sample.clone());
            }
        }
        let pace = workload.and_then(|workload| Pace::of(workload, record));
        let case = workload.zip(plan.contender(&key.contender));
        let case = case.filter(|_| record.is_measured());
        let case = case.map(|(workload, it)| Case::new(plan, workload, it, record));
        let seen = |case: Case| {
            let seen = AUDITS.iter().map(|audit| (audit.test)(&case)).enumerate();
            seen.filter_map(|(place, seen)| Some((place, seen?))).collect()
        };
        Kept {
            at,
            key,
            position: record.position,
            is_measured: record.is_measured(),
            took_ns: record.steps.iter().map(|step| step.duration_ns).sum(),
            samples: asked,
            refused: record.refused.iter().map(|it| it.phase).collect(),
            seen: case.map(seen).unwrap_or_default(),
            terms: Terms::of(record),
            batches: Batches::of(record),
            pace,
        }
    }

    /// Its figures that are judged or audited.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// The figure of a metric that is judged or audited.
    pub fn sample(&self, metric: &str) -> Option<&Sample> {
        self.samples.iter().find(|sample| sample.metric == metric)
    }

    /// The audit that makes the trial void by itself, by its place in [`AUDITS`], and what it saw.
    pub fn void(&self) -> Option<(usize, &Seen)> {
        let mut seen = self.seen.iter().map(|(audit, seen)| (*audit, seen));
        seen.find(|(_, seen)| seen.severity == Severity::Void)
    }
}
