//! Plans and records for the judge's tests.

use std::collections::BTreeMap;

use crate::model::{Key, Phase, PhaseRecord, Place, Plan, Record, Run, SCHEMA};

/// The plan of that text, checked.
pub fn plan(text: &str) -> Plan {
    Plan::parse(text).expect("the test's plan is valid")
}

/// A measured trial without further details.
pub fn record(round: u32, workload: &str, contender: &str) -> Record {
    Record::new(1, Key { round, workload: workload.into(), contender: contender.into() }, 1, 1)
}

/// A run on a machine of these facts.
pub fn run(name: &str, host: &[(&str, &str)]) -> Run {
    let text = |&(fact, value): &(&str, &str)| (fact.to_string(), value.to_string());
    Run {
        schema: SCHEMA,
        program_version: "1".into(),
        name: name.into(),
        command: Vec::new(),
        started: String::new(),
        seed: 1,
        place: Place::Sim,
        host: host.iter().map(text).collect(),
        memory_bytes: None,
        tools: BTreeMap::new(),
        left_out: Vec::new(),
        read: Vec::new(),
        stop: None,
        elapsed_s: 0.0,
    }
}

/// A timed part of one second, without further details.
pub fn phase(phase: Phase) -> PhaseRecord {
    PhaseRecord::new(phase, 1_000_000_000, 0)
}
