//! A6 and A9 of commands, over contenders: the same work reached the device of one contender, and
//! not that of another.
//!
//! It is unknown where a command reads, or what it deletes before that reaches the device, so that
//! a single trial only warns. If the same work moved all it asked for with another contender, that
//! can't explain it: zeros were compressed away, or a cache answered. That holds for each pair with
//! such a contender, even if neither device had a part.

use std::ops::RangeInclusive;

use crate::judge::kept::Kept;
use crate::judge::stopping::FIRST_LOOK;
use crate::judge::trials::Trials;
use crate::model::{Audit, Finding, Plan, Severity, Workload, median};

use super::case::percent;
use super::trial::{DevicesPart, SYNC_ADVICE};

/// A device with less than this share of the bytes had no part in the work. Most users' data don't
/// compress that well: lz4 makes 1/2.1 of the Silesia corpus, and zstd -1 1/2.9 (zstd's README).
const SPARED: f64 = 0.05;

/// A device with as much of them did the work: mirrors write up to four copies. With more it moved
/// something else, too.
const WORKED: RangeInclusive<f64> = 0.5..=4.0;

const READ_ADVICE: &str = "drop the caches, and read data that don't compress and are not zeros; \
                           or, to measure memory, declare cache = \"warm\" and read the data in \
                           prepare";

/// One way that bytes go.
struct Way {
    audit: Audit,
    share: fn(&DevicesPart) -> Option<f64>,
    said: &'static str,
    advice: &'static str,
}

const WAYS: [Way; 2] = [
    Way {
        audit: Audit::A6,
        share: |part| part.read,
        said: "the device gave {} of what was read",
        advice: READ_ADVICE,
    },
    Way {
        audit: Audit::A9,
        share: |part| part.written,
        said: "the device took {} of what was written",
        advice: SYNC_ADVICE,
    },
];

/// What speaks against comparing contenders whose device had no part in `workload` with the others.
pub fn findings(plan: &Plan, workload: &Workload, trials: &Trials) -> Vec<Finding> {
    let mut findings = Vec::new();
    if workload.command.is_none() {
        return findings;
    }
    for way in &WAYS {
        let share_of = |kept: &Kept| (way.share)(&kept.part);
        let share = |name: &str| {
            let latest = trials.latest(&workload.name, name).values();
            let shares: Vec<f64> = latest.filter_map(|kept| share_of(kept)).collect();
            median(shares.iter().copied()).filter(|_| shares.len() >= FIRST_LOOK as usize)
        };
        let shares = plan.contenders.iter().filter_map(|it| Some((&it.name, share(&it.name)?)));
        let shares: Vec<(&String, f64)> = shares.collect();
        let worked = shares.iter().find(|(_, share)| WORKED.contains(share));
        let Some((worked, its)) = worked else { continue };
        let spared = shares.iter().filter(|(_, share)| *share < SPARED);
        findings.extend(spared.map(|(contender, share)| Finding {
            audit: way.audit,
            severity: Severity::Void,
            workload: Some(workload.name.clone()),
            contender: Some(contender.to_string()),
            evidence: format!(
                "{}, and with {worked} {}",
                way.said.replace("{}", &percent(*share)),
                percent(*its)
            ),
            advice: way.advice.into(),
        }));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::audit::Audited;
    use crate::judge::testing::{phase, plan, record};
    use crate::model::{DeviceTotals, Phase, PhaseRecord, Record, Totals};

    const MIB: u64 = 1 << 20;

    fn of(mount: &str, work: &str) -> Plan {
        plan(&format!(
            "[[contender]]\nname = \"a\"\n[[contender]]\nname = \"b\"\nmount = [{mount}]\n\
             [[workload]]\nname = \"w\"\n{work}"
        ))
    }

    /// Trials that read, or write, 100 MiB, of which the device has so many.
    fn trials(rounds: u32, reads: bool, a_mib: u64, b_mib: u64) -> Vec<Record> {
        let trial = |round, name, mib: u64| {
            let asked = Some(100 * MIB);
            let (read, write) = if reads { (mib, 0) } else { (0, mib) };
            let device = DeviceTotals {
                read_bytes: read * MIB,
                write_bytes: write * MIB,
                ..DeviceTotals::default()
            };
            let phase = PhaseRecord {
                application_read_bytes: asked.filter(|_| reads),
                application_write_bytes: asked.filter(|_| !reads),
                totals: Totals { device: Some(device), ..Totals::default() },
                ..phase(Phase::Whole)
            };
            Record { phases: vec![phase], ..record(round, "w", name) }
        };
        (1..=rounds).flat_map(|it| [trial(it, "a", a_mib), trial(it, "b", b_mib)]).collect()
    }

    fn found(plan: &Plan, records: &[Record]) -> Vec<Finding> {
        Audited::of(plan, records).voiding(plan, &std::collections::BTreeMap::new())
    }

    #[test]
    fn a_device_that_was_spared_where_another_worked_makes_the_work_void() {
        for (reads, audit, verb) in [(true, Audit::A6, "gave"), (false, Audit::A9, "took")] {
            let plan = of("", "command = \"work\"");
            let seen = found(&plan, &trials(4, reads, 99, 1));
            assert_eq!(seen.len(), 1, "said once: {seen:?}");
            assert_eq!((seen[0].audit, seen[0].severity), (audit, Severity::Void));
            assert_eq!(seen[0].contender.as_deref(), Some("b"));
            assert!(seen[0].evidence.contains(&format!("the device {verb} 1.0% of what was")));
            assert!(seen[0].evidence.ends_with(", and with a 99.0%"), "{}", seen[0].evidence);
            let mut little = trials(4, reads, 99, 1);
            for phase in little.iter_mut().flat_map(|record| &mut record.phases) {
                let less = |bytes: &mut Option<u64>| *bytes = bytes.map(|it| it / 100);
                less(&mut phase.application_read_bytes);
                less(&mut phase.application_write_bytes);
            }
            assert!(found(&plan, &little).iter().all(|it| it.severity < Severity::Void));
        }
    }

    #[test]
    fn what_all_devices_are_spared_alike_or_is_little_less_only_warns() {
        let plan = of("", "command = \"work\"");
        let worst_of = |plan: &Plan, records: &[Record]| {
            found(plan, records).iter().map(|it| it.severity).max()
        };
        let worst = |records: &[Record]| worst_of(&plan, records);
        for (a, b) in [(1, 1), (40, 1), (99, 20), (450, 1)] {
            assert_eq!(worst(&trials(4, true, a, b)), Some(Severity::Warning), "{a} {b}");
        }
        assert_eq!(worst(&trials(3, true, 99, 1)), Some(Severity::Warning), "too few to say");
        assert_eq!(worst(&trials(4, true, 99, 98)), None);
        // The user has asked for it, or for memory.
        let compressed = of("\"compress=zstd\"", "command = \"work\"");
        assert_eq!(found(&compressed, &trials(4, false, 99, 1)), []);
        let replayed = of("", "replay = { recording = \"a.calls\" }");
        assert_eq!(worst_of(&replayed, &trials(4, false, 99, 1)), Some(Severity::Warning));
        let warm = of("", "command = \"work\"\ncache = \"warm\"");
        assert_eq!(found(&warm, &trials(4, true, 99, 1)), []);
    }
}
