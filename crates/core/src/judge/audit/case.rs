//! What the audits of single trials look at, and what they see in it.

use crate::model::{Contender, Limits, Phase, Plan, Record, Severity, Unit, Workload};

/// One trial with what it was a trial of.
pub struct Case<'a> {
    pub workload: &'a Workload,
    pub contender: &'a Contender,
    pub record: &'a Record,
    /// What its device was held down to.
    pub limits: Option<Limits>,
}

impl<'a> Case<'a> {
    /// The case of `record`, a trial of `plan`.
    pub fn new(
        plan: &Plan,
        workload: &'a Workload,
        contender: &'a Contender,
        record: &'a Record,
    ) -> Case<'a> {
        Case { workload, contender, record, limits: contender.limits.or(plan.bed.limits) }
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

/// Programs with what each of them did, in parentheses; all together did `all`. Empty if none is
/// known.
pub fn named(most: &[(&str, u64)], all: u64, shown: fn(u64) -> String) -> String {
    const SHOWN: usize = 3;
    let most = &most[..most.len().min(SHOWN)];
    let rest = all.saturating_sub(most.iter().map(|(_, much)| much).sum());
    let rest = Some(("others", rest)).filter(|(_, rest)| *rest > 0 && !most.is_empty());
    let all = most.iter().copied().chain(rest);
    let parts: Vec<String> = all.map(|(name, much)| format!("{name} {}", shown(much))).collect();
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) }
}
