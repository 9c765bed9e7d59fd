//! DeviceBound where the run itself limits the device: contenders that all do as much as it allows.

use std::rc::Rc;

use crate::judge::kept::Kept;
use crate::judge::stopping::FIRST_LOOK;
use crate::judge::trials::Trials;
use crate::model::{
    Arm, Audit, Contender, Finding, Limits, Phase, Plan, Severity, Workload, median,
};

use super::case::prefix;
use super::limits::{Reached, said};

/// From this share of its limit on a device is at it.
const BOUND: f64 = 0.95;
/// Beyond this share the limit did not hold it. Held ones came to 1.10, because the first tenth of
/// a second's requests pass at once (docs/disks.md).
const NOT_HELD: f64 = 1.12;

const ADVICE: &str = "a tie here comes from the limit and is no win: compare the costs (device \
                      bytes per application byte, CPU time per operation)";

/// Notes on the timed parts in which the reference and others are at the limits that all of them
/// have. Where the bare device was measured under them, it says what the limit is.
pub fn findings(plan: &Plan, workload: &Workload, trials: &Trials) -> Vec<Finding> {
    if plan.arm(Arm::Raw).is_some() && workload.fio.is_some() {
        return Vec::new();
    }
    let its = |it: &Contender| it.limits.or(plan.bed.limits);
    let Some(limits) = plan.contender(plan.reference()).and_then(its) else { return Vec::new() };
    let alike: Vec<&Contender> =
        plan.contenders.iter().filter(|it| its(it) == Some(limits)).collect();
    let first = trials.latest(&workload.name, plan.reference()).values().next();
    let phases = first.into_iter().flat_map(|kept| kept.reached.iter().map(|it| it.phase));
    let of = |phase| {
        let share =
            |it: &Contender| share_of(trials.latest(&workload.name, &it.name).values(), phase);
        let at = alike.iter().filter_map(|it| Some((*it, share(it)?)));
        let bound: Vec<(&Contender, Reached)> = at.collect();
        let with_reference = bound.iter().any(|(it, _)| it.name == plan.reference());
        (bound.len() >= 2 && with_reference).then(|| Finding {
            audit: Audit::DeviceBound,
            severity: Severity::Note,
            workload: Some(workload.name.clone()),
            contender: None,
            evidence: format!(
                "{}they reach the run's own limits: {}",
                prefix(phase),
                shown(&bound, limits)
            ),
            advice: ADVICE.into(),
        })
    };
    phases.filter_map(of).collect()
}

/// How near the median trial came to a limit, that of the nearest trial; `None`: not near enough.
fn share_of<'a>(trials: impl Iterator<Item = &'a Rc<Kept>>, phase: Phase) -> Option<Reached> {
    let its = |kept: &'a Rc<Kept>| kept.reached.iter().find(|it| it.phase == phase);
    let reached: Vec<&Reached> = trials.filter_map(its).collect();
    let share = median(reached.iter().map(|it| it.share))?;
    let enough = reached.len() >= FIRST_LOOK as usize && (BOUND..=NOT_HELD).contains(&share);
    let nearest = reached.iter().max_by(|one, other| one.share.total_cmp(&other.share))?;
    enough.then_some(Reached { share, ..**nearest })
}

/// `ext4 1.008, xfs 1.003 of 8050 IOPS of writes`.
fn shown(bound: &[(&Contender, Reached)], limits: Limits) -> String {
    let of = |(place, limit): (usize, Option<String>)| {
        let its = bound.iter().filter(|(_, it)| it.limit == place);
        let its: Vec<String> =
            its.map(|(contender, it)| format!("{} {:.3}", contender.name, it.share)).collect();
        (!its.is_empty()).then_some(format!("{} of {}", its.join(", "), limit?))
    };
    let all: Vec<String> = said(limits).into_iter().enumerate().filter_map(of).collect();
    all.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Judge;
    use crate::judge::testing::{phase, plan, record};
    use crate::model::{DeviceTotals, PhaseRecord, Record, Totals};

    const PLAN: &str = "[[contender]]\nname = \"a\"\n[[contender]]\nname = \"b\"\n\
                        [[workload]]\nname = \"w\"\nfio = { rw = \"randwrite\" }\ncache = \"warm\"";

    /// Trials that each take 10 s by the tool and 11 in all, with so many writes a second.
    fn trials(rounds: u32, a_writes: u64, b_writes: u64) -> Vec<Record> {
        let trial = |round, name, writes: u64| {
            let (writes, write_bytes) = (writes * 10, writes * 40_960);
            let device = DeviceTotals { writes, write_bytes, ..DeviceTotals::default() };
            let totals = Totals { device: Some(device), ..Totals::default() };
            let (work_ns, tool_ns) = (11_000_000_000, Some(10_000_000_000));
            let phase = PhaseRecord { totals, work_ns, tool_ns, ..phase(Phase::Whole) };
            Record { phases: vec![phase], ..record(round, "w", name) }
        };
        (1..=rounds).flat_map(|it| [trial(it, "a", a_writes), trial(it, "b", b_writes)]).collect()
    }

    fn found(bed: &str, records: &[Record]) -> Vec<String> {
        let findings = Judge::new(&plan(&format!("{bed}\n{PLAN}"))).findings(records);
        let its = findings.into_iter().filter(|it| it.audit == Audit::DeviceBound);
        its.map(|it| it.evidence).collect()
    }

    #[test]
    fn a_tie_at_the_limit_that_the_run_sets_is_told() {
        let iops = "bed.limits = { iops = { write = 100 } }";
        let told = "they reach the run's own limits: a 1.000, b 0.960 of 100 IOPS of writes";
        assert_eq!(found(iops, &trials(4, 100, 96)), [told]);
        assert_eq!(found(iops, &trials(4, 100, 90)), [""; 0], "b is not at it");
        assert_eq!(found(iops, &trials(4, 90, 100)), [""; 0], "the reference is not at it");
        assert_eq!(found(iops, &trials(4, 100, 134)), [""; 0], "b was not held");
        assert_eq!(found(iops, &trials(3, 100, 100)), [""; 0], "three rounds decide nothing");
        assert_eq!(found("", &trials(4, 100, 100)), [""; 0], "there is no limit");
        let armed = format!("{iops}\njudgement.arms = [\"raw\"]");
        assert_eq!(found(&armed, &trials(4, 100, 100)), [""; 0], "the bare device would tell");
        let reads = "bed.limits = { iops = { read = 100 } }";
        assert_eq!(found(reads, &trials(4, 100, 100)), [""; 0], "none of writes");
        let bandwidth = "bed.limits = { bandwidth = \"400k\", iops = 1000 }";
        let told = found(bandwidth, &trials(4, 100, 100));
        assert!(told[0].ends_with("a 1.000, b 1.000 of 400 KiB/s of writes"), "{told:?}");
    }
}
