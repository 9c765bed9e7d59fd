//! What the audits of single trials look at, and what they see in it.

use crate::model::{Contender, Phase, Plan, Record, Severity, Unit, Workload};

/// One trial with what it was a trial of.
pub struct Case<'a> {
    pub workload: &'a Workload,
    pub contender: &'a Contender,
    pub record: &'a Record,
    /// Its device was held down by us.
    pub limited: bool,
}

impl<'a> Case<'a> {
    /// The case of `record`, a trial of `plan`.
    pub fn new(
        plan: &Plan,
        workload: &'a Workload,
        contender: &'a Contender,
        record: &'a Record,
    ) -> Case<'a> {
        let limited = plan.bed.limits.is_some() || contender.limits.is_some();
        Case { workload, contender, record, limited }
    }
}

/// What an audit saw in one trial.
#[derive(Debug)]
pub struct Seen {
    pub severity: Severity,
    /// By which trials are put in order, to find the median one.
    pub figure: f64,
    /// What was seen, with its figures.
    pub evidence: String,
}

/// The mount options of a contender one by one: both `["a", "b"]` and `["a,b"]` are written.
pub fn options(contender: &Contender) -> impl Iterator<Item = &str> {
    contender.mount.iter().flat_map(|options| options.split(','))
}

pub fn least(seen: impl Iterator<Item = Seen>) -> Option<Seen> {
    seen.min_by(|one, other| one.figure.total_cmp(&other.figure))
}

pub fn most(seen: impl Iterator<Item = Seen>) -> Option<Seen> {
    seen.max_by(|one, other| one.figure.total_cmp(&other.figure))
}

pub fn prefix(phase: Phase) -> String {
    match phase.name() {
        "" => String::new(),
        name => format!("{name}: "),
    }
}

pub fn bytes(bytes: u64) -> String {
    Unit::Bytes.format(bytes as f64)
}

pub fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}
