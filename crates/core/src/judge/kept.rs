//! What the judge keeps of a record.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::audit::batches::Batches;
use super::audit::case::{Case, Seen};
use super::audit::limits::{Reached, reached};
use super::audit::mounted::Terms;
use super::audit::pace::Pace;
use super::audit::queue::Depth;
use super::audit::trial::{AUDITS, DevicesPart};
use crate::model::{Better, Phase, Plan, Record, Sample, Severity, Unit, Workload};

/// Metrics that are audited where they are not judged.
const AUDITED: [&str; 4] =
    ["iops", "fsync_latency_p50", "device_bytes_per_application_byte", "cpu_per_operation"];

/// What many records of a run have in common, once.
#[derive(Debug, Default)]
pub struct Common {
    names: BTreeSet<Rc<str>>,
    terms: Option<Rc<Terms>>,
}

impl Common {
    fn name(&mut self, name: &str) -> Rc<str> {
        if let Some(known) = self.names.get(name) {
            return Rc::clone(known);
        }
        let new: Rc<str> = name.into();
        self.names.insert(Rc::clone(&new));
        new
    }

    /// As those of the record before, where they are the same.
    fn terms(&mut self, terms: Terms) -> Rc<Terms> {
        let same = self.terms.take().filter(|before| **before == terms);
        Rc::clone(self.terms.insert(same.unwrap_or_else(|| Rc::new(terms))))
    }
}

/// A figure that is judged, audited or claimed.
#[derive(Clone, Debug)]
pub struct Asked {
    /// As the sample's.
    pub metric: Rc<str>,
    /// As the sample's.
    pub value: f64,
    /// As the sample's.
    pub unit: Unit,
    /// As the sample's.
    pub better: Better,
    /// ln(goodness) ([`Sample::goodness`]).
    pub goodness: Option<f64>,
}

/// What the judge keeps of a record: what it needs again, and no histograms.
#[derive(Debug)]
pub struct Kept {
    /// Its place among the records of the run, from 0.
    pub at: usize,
    /// Its round, from 1.
    pub round: u32,
    /// The workload's name.
    pub workload: Rc<str>,
    /// The contender's name.
    pub contender: Rc<str>,
    /// Its place in its round.
    pub position: u32,
    /// It ran whole.
    pub is_measured: bool,
    /// What it took, all its steps.
    pub took_ns: u64,
    /// The figures that are judged, audited or claimed.
    figures: Box<[Asked]>,
    /// The timed parts that the file system refused.
    pub refused: Vec<Phase>,
    /// What the audits of single trials saw, by their place in [`AUDITS`], in this order.
    pub seen: Vec<(usize, Seen)>,
    /// How much of a command's work reached the device.
    pub part: DevicesPart,
    /// On what terms it ran.
    pub terms: Rc<Terms>,
    /// Its rate over time, where that is known.
    pub batches: Option<Batches>,
    /// A command's time, and what it did in it.
    pub pace: Option<Pace>,
    /// The requests it had under way, where it went past the page cache.
    pub depth: Option<Depth>,
    /// How near its timed parts came to its limits.
    pub reached: Vec<Reached>,
}

impl Kept {
    /// What is kept of `record`, a trial of `plan`; `at` is its place among the records.
    pub fn of(plan: &Plan, record: &Record, at: usize, common: &mut Common) -> Kept {
        let key = &record.key;
        let workload = plan.workloads.iter().find(|it| it.name == key.workload);
        let primary = workload.map(Workload::primary).unwrap_or_default();
        let claimed = plan.claimed_metrics(&key.workload);
        let is_asked = |sample: &&Sample| {
            primary.contains(&sample.metric)
                || AUDITED.contains(&sample.metric.as_str())
                || claimed.contains(&sample.metric)
        };
        let mut figures: Vec<Asked> = Vec::new();
        for sample in record.samples.iter().filter(is_asked) {
            if figures.iter().all(|it| *it.metric != *sample.metric) {
                let &Sample { value, unit, better, .. } = sample;
                let (metric, goodness) = (common.name(&sample.metric), sample.goodness());
                figures.push(Asked { metric, value, unit, better, goodness });
            }
        }
        let pace = workload.and_then(|workload| Pace::of(workload, record));
        let case = workload.zip(plan.contender(&key.contender));
        let case = case.filter(|_| record.is_measured());
        let case = case.map(|(workload, it)| Case::new(plan, workload, it, record));
        let part = case.as_ref().map(DevicesPart::of).unwrap_or_default();
        let depth = case.as_ref().and_then(Depth::of);
        let reached = case.as_ref().map(reached).unwrap_or_default();
        let seen = |case: Case| {
            let seen = AUDITS.iter().map(|audit| (audit.test)(&case)).enumerate();
            seen.filter_map(|(place, seen)| Some((place, seen?))).collect()
        };
        Kept {
            at,
            round: key.round,
            workload: common.name(&key.workload),
            contender: common.name(&key.contender),
            position: record.position,
            is_measured: record.is_measured(),
            took_ns: record.took_ns(),
            figures: figures.into(),
            refused: record.refused.iter().map(|it| it.phase).collect(),
            seen: case.map(seen).unwrap_or_default(),
            part,
            terms: common.terms(Terms::of(record)),
            batches: Batches::of(record),
            pace,
            depth,
            reached,
        }
    }

    /// Its figures that are judged, audited or claimed.
    pub fn figures(&self) -> &[Asked] {
        &self.figures
    }

    /// The figure of a metric that is judged, audited or claimed.
    pub fn figure(&self, metric: &str) -> Option<&Asked> {
        self.figures.iter().find(|it| *it.metric == *metric)
    }

    /// The audit that makes the trial void by itself, by its place in [`AUDITS`], and what it saw.
    pub fn void(&self) -> Option<(usize, &Seen)> {
        let mut seen = self.seen.iter().map(|(audit, seen)| (*audit, seen));
        seen.find(|(_, seen)| seen.severity == Severity::Void)
    }
}
