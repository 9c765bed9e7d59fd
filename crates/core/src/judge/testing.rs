//! Plans and records for the judge's tests.

use crate::model::{Key, Outcome, Phase, PhaseRecord, Plan, Record, SCHEMA, Totals};

/// The plan of that text, checked.
pub fn plan(text: &str) -> Plan {
    Plan::parse(text).expect("the test's plan is valid")
}

/// A measured trial of which nothing further is known.
pub fn record(round: u32, workload: &str, contender: &str) -> Record {
    Record {
        schema: SCHEMA,
        number: 1,
        key: Key { round, workload: workload.into(), contender: contender.into() },
        position: 1,
        seed: 1,
        outcome: Outcome::Measured,
        guest: None,
        steps: Vec::new(),
        partitions: Vec::new(),
        mounted: None,
        caches: Vec::new(),
        settled: Vec::new(),
        refused: Vec::new(),
        phases: Vec::new(),
        samples: Vec::new(),
    }
}

/// A timed part of one second of which nothing further is known.
pub fn phase(phase: Phase) -> PhaseRecord {
    PhaseRecord {
        phase,
        work_ns: 1_000_000_000,
        syncfs_ns: 0,
        tool_ns: None,
        operations: None,
        application_read_bytes: None,
        application_write_bytes: None,
        queue: None,
        rate_over_time: None,
        processes_left: 0,
        totals: Totals::default(),
        peaks: Vec::new(),
        applications: Vec::new(),
        histograms: Default::default(),
        samples: Vec::new(),
    }
}
