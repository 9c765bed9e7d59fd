//! Leak: what one contender's device does in the turns of the others.

use crate::model::{PhaseRecord, Severity};

use super::case::{Case, Seen, bytes, most, percent, prefix};

/// The advice.
pub const ADVICE: &str = "have the work end each operation on the device (fdatasync = 1, direct = \
                          1), or leave out rounds = \"duet\": a file system that writes later \
                          can't be measured in turns";

/// From this share on it is part of what is compared.
const LEAKED: f64 = 0.02;

/// A file system's superblock, and the times of a file: no turn is the slower for it.
const OWN_BYTES: u64 = 1 << 20;

/// The device was at work while the contender stood still: that is in the turns of the others, and
/// not in its own. What took it less than the same share of the contender's time changes no ratio
/// by more.
pub fn between_turns(case: &Case) -> Option<Seen> {
    let phase = |phase: &PhaseRecord| {
        let turns = phase.turns.as_ref()?;
        let share = turns.leaked_share();
        let is_much = share > LEAKED && turns.between_bytes > OWN_BYTES;
        (is_much && turns.leaked_time() > LEAKED).then(|| Seen {
            severity: Severity::Void,
            figure: share,
            evidence: format!(
                "{}{} of the {} that its device moved ({}) came while the contender stood still, \
                 in the turns of others",
                prefix(phase.phase),
                bytes(turns.between_bytes),
                bytes(turns.between_bytes + turns.device_bytes),
                percent(share)
            ),
        })
    };
    most(case.record.phases.iter().filter_map(phase))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::testing::{phase, plan, record};
    use crate::model::{Phase, Record, Turns};

    const MIB: u64 = 1 << 20;

    /// Of turns of one second.
    fn seen(in_mib: u64, between_mib: u64, busy_ms: Option<u64>) -> Option<(Severity, String)> {
        let plan = plan(
            "[[contender]]\nname = \"a\"\n[[contender]]\nname = \"b\"\n\
             [[workload]]\nname = \"w\"\ncommand = \"work\"",
        );
        let (device_bytes, between_bytes) = (in_mib * MIB, between_mib * MIB);
        let turns = Some(Turns {
            device_bytes,
            between_bytes,
            between_busy_ns: busy_ms.map(|ms| ms * 1_000_000),
            lasted_ns: vec![100_000_000; 10],
            ..Turns::default()
        });
        let phases = vec![PhaseRecord { turns, ..phase(Phase::Whole) }];
        let record = &Record { phases, ..record(1, "w", "a") };
        let case = Case::new(&plan, &plan.workloads[0], &plan.contenders[0], record);
        between_turns(&case).map(|seen| (seen.severity, seen.evidence))
    }

    #[test]
    fn what_a_device_does_in_the_turns_of_others_voids() {
        assert_eq!(seen(980, 20, None), None);
        assert_eq!(seen(0, 1, None), None, "so little disturbs nobody");
        let said = "30.0 MiB of the 1000 MiB that its device moved (3.0%) came while the \
                    contender stood still, in the turns of others";
        assert_eq!(seen(970, 30, None), Some((Severity::Void, said.into())));
        assert_eq!(seen(970, 30, Some(30)), Some((Severity::Void, said.into())));
        assert_eq!(seen(970, 30, Some(10)), None, "it was there at once");
    }
}
