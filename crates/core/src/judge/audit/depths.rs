//! A4 if a limit holds requests back before the device's counters see them: a single depth says
//! nothing then, but a comparison of two contenders' does.

use std::rc::Rc;

use crate::judge::kept::Kept;
use crate::judge::trials::Trials;
use crate::model::{Audit, Contender, Finding, Plan, Severity, Workload, median};

use super::queue::Depth;

/// A device queue below this share of another's, at one depth and under one limit, is of other
/// requests than those that were asked for.
const SHARE: f64 = 0.1;

const ADVICE: &str = "its direct I/O did not go to the device directly: don't take a queue depth \
                      or a device latency from its figures";

/// A4 of the contenders whose device had far fewer requests under way than another's.
pub fn findings(plan: &Plan, workload: &Workload, trials: &Trials) -> Vec<Finding> {
    let depth = |it: &Contender| {
        let kept = trials.latest(&workload.name, &it.name).values();
        let its: Vec<Depth> = kept.filter_map(|it: &Rc<Kept>| it.depth).collect();
        let seen = median(its.iter().map(|it| it.seen))?;
        Some(Depth { seen, ..its[0] })
    };
    let limits = |it: &Contender| it.limits.or(plan.bed.limits);
    let held = plan.contenders.iter().filter(|it| limits(it).is_some());
    let all: Vec<(&Contender, Depth)> = held.filter_map(|it| Some((it, depth(it)?))).collect();
    let of = |(contender, its): &(&Contender, Depth)| {
        let alike = all.iter().filter(|(other, depth)| {
            limits(other) == limits(contender) && depth.declared == its.declared
        });
        let (deepest, its_depth) = alike.max_by(|one, it| one.1.seen.total_cmp(&it.1.seen))?;
        let why = match its.is_buffered {
            true => {
                "; Btrfs of Linux 6.14 to 7.2 writes files with checksums through the page cache"
            }
            false => "",
        };
        // With one request at a time, or if no contender had any under way, none took another way.
        let is_deep = its.declared > 1.0 && its_depth.seen >= 1.0;
        (is_deep && its.seen < SHARE * its_depth.seen).then(|| Finding {
            audit: Audit::A4,
            severity: Severity::Warning,
            workload: Some(workload.name.clone()),
            contender: Some(contender.name.clone()),
            evidence: format!(
                "the device had {:.2} requests under way on average, and {:.0} with {}, of the \
                 {:.0} that were asked for{why}",
                its.seen, its_depth.seen, deepest.name, its.declared
            ),
            advice: ADVICE.into(),
        })
    };
    all.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Judge;
    use crate::judge::testing::{phase, plan, record};
    use crate::model::{DeviceTotals, Guest, Mounted, Phase, PhaseRecord, Queue, Record, Totals};

    fn trial(name: &str, requests: f64) -> Record {
        let queue = Some(Queue { declared: 256.0, direct: true, ..Queue::default() });
        let queue_ns = (requests * 1e9) as u64;
        let device = DeviceTotals { queue_ns, ..DeviceTotals::default() };
        let totals = Totals { device: Some(device), ..Totals::default() };
        let application_write_bytes = Some(9);
        let whole = PhaseRecord { queue, totals, application_write_bytes, ..phase(Phase::Whole) };
        let mounted = Some(Mounted { file_system: name.into(), ..Mounted::default() });
        Record { phases: vec![whole], mounted, ..record(1, "w", name) }
    }

    fn found(bed: &str, records: &[Record]) -> Vec<Finding> {
        let plan = plan(&format!(
            "{bed}\n[[contender]]\nname = \"ext4\"\n[[contender]]\nname = \"btrfs\"\n\
             [[workload]]\nname = \"w\"\nfio = {{ rw = \"randwrite\", direct = 1 }}"
        ));
        let mut findings = Judge::new(&plan).findings(records);
        findings.retain(|it| it.audit == Audit::A4);
        findings
    }

    #[test]
    fn a_queue_that_is_a_tenth_of_anothers_under_one_limit_is_noticed() {
        let limited = "bed.limits = { iops = 8050 }";
        let records = [trial("ext4", 116.0), trial("btrfs", 3.56)];
        let seen = found(limited, &records);
        assert_eq!((seen.len(), seen[0].contender.as_deref()), (1, Some("btrfs")));
        let evidence = "the device had 3.56 requests under way on average, and 116 with ext4, of \
                        the 256 that were asked for; Btrfs of Linux 6.14 to 7.2 writes files with \
                        checksums through the page cache";
        assert_eq!(seen[0].evidence, evidence);
        let guest = Some(Guest { kernel: "6.12.1-amd64".into(), ..Guest::default() });
        let older = records.clone().map(|it| Record { guest: guest.clone(), ..it });
        assert!(found(limited, &older)[0].evidence.ends_with("asked for"));
        assert_eq!(found(limited, &[trial("ext4", 116.0), trial("btrfs", 12.0)]), []);
        assert_eq!(
            found(limited, &[trial("ext4", 0.45), trial("btrfs", 0.03)]),
            [],
            "none had any"
        );
        let mut single = records.clone();
        for queue in single.iter_mut().flat_map(|it| &mut it.phases[0].queue) {
            queue.declared = 1.0;
        }
        assert_eq!(found(limited, &single), [], "one at a time goes no other way");
        let low = [trial("ext4", 3.0), trial("btrfs", 3.56)];
        assert_eq!(found(limited, &low), [], "the limit holds both back");
    }
}
