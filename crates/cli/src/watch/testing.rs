//! A small run, for the tests of those who listen to it.

use std::path::Path;

use fsverdict_core::judge::{Fold, Judge};
use fsverdict_core::model::{
    Failure, Histogram, Key, Outcome, Phase, PhaseRecord, Place, Plan, Record, Run, SCHEMA, Sample,
    StepTime, Trial, TrialBed, Unit,
};

use super::state::State;
use crate::source::{Judged, Loaded};

/// Two contenders and one workload.
pub const PLAN: &str = "place = \"sim\"\n\
                        [[contender]]\nname = \"a\"\nfile_system = \"ext4\"\n\
                        [[contender]]\nname = \"b\"\nfile_system = \"xfs\"\n\
                        [[workload]]\nname = \"work\"\ncommand = \"true\"\ncache = \"warm\"\n";

/// A run of `plan` with these records.
pub fn loaded(plan: &str, records: Vec<Record>) -> Loaded {
    let run = Run {
        schema: SCHEMA,
        program_version: "0.1.0".into(),
        name: "a run".into(),
        command: vec!["fsverdict".into()],
        started: "2026-01-01T00:00:00Z".into(),
        seed: 1,
        place: Place::Sim,
        host: [].into(),
        memory_bytes: None,
        tools: [].into(),
        left_out: Vec::new(),
        read: Vec::new(),
        stop: None,
        elapsed_s: 0.0,
    };
    Loaded { run, plan: Plan::parse(plan).unwrap(), records }
}

/// What the judge says.
pub fn judged(plan: &Plan, records: &[Record]) -> Judged {
    let judge = Judge::new(plan);
    let (comparisons, findings) = (judge.comparisons(records), judge.findings(records));
    let (causes, published, claims) = (Vec::new(), Vec::new(), Vec::new());
    let undecided = Fold::of(&judge, records).undecided_claims(&comparisons);
    Judged { comparisons, undecided, causes, findings, published, claims }
}

/// The state of a run of `plan` that begins.
pub fn begun(plan: &str) -> State {
    let loaded = loaded(plan, Vec::new());
    State::new(Path::new("run"), &loaded, &judged(&loaded.plan, &[]))
}

/// So many rounds, in which b takes half the time of a, with some noise.
pub fn rounds(rounds: u32) -> Vec<Record> {
    let noise = |round: u32| 1.0 + f64::from(round * 7 % 5) / 1000.0;
    (1..=rounds)
        .flat_map(|round| [measured(round, "a", 2.0), measured(round, "b", noise(round))])
        .collect()
}

/// A trial that took so long.
pub fn measured(round: u32, contender: &str, seconds: f64) -> Record {
    let duration_ns = (seconds * 1e9) as u64;
    let histogram = Histogram {
        max_ns: 3_000_000,
        sum_ns: 5_000_000,
        buckets: vec![(1_000, 10), (2_000_000, 1), (3_000_000, 1)],
    };
    let phase = PhaseRecord {
        histograms: [("write".to_string(), histogram)].into(),
        ..PhaseRecord::new(Phase::Whole, duration_ns, 0)
    };
    let key = Key { round, workload: "work".into(), contender: contender.into() };
    Record {
        steps: vec![StepTime { step: "work".into(), duration_ns }],
        phases: vec![phase],
        samples: vec![Sample::lower("wall_time", seconds, Unit::Seconds)],
        ..Record::new(round, key, 1, 1)
    }
}

/// A trial that failed.
pub fn failed(round: u32, contender: &str) -> Record {
    let failure = Failure {
        step: "mkfs".into(),
        error: "no space\nat all".into(),
        cleanup_errors: Vec::new(),
    };
    let outcome = Outcome::Failed(failure);
    Record { outcome, phases: Vec::new(), samples: Vec::new(), ..measured(round, contender, 1.0) }
}

/// The document of a trial.
pub fn trial(plan: &Plan, round: u32, contender: &str) -> Trial {
    Trial {
        schema: SCHEMA,
        number: round,
        key: Key { round, workload: "work".into(), contender: contender.into() },
        position: 1,
        seed: 1,
        workload: plan.workloads[0].clone(),
        contender: plan.contender(contender).unwrap().clone(),
        bed: TrialBed::default(),
        in_turns: false,
        probes: Vec::new(),
        writable: Vec::new(),
        timeouts: plan.timeouts(),
        directory: String::new(),
        raw: String::new(),
        series: String::new(),
    }
}
