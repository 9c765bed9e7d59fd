//! What limits work that comes in over a network, if it is not the file system.

use crate::model::{NetworkTotals, PhaseRecord, Severity, Unit};

use super::case::{Case, Seen, most};

/// At this share of what the link carries, the link is the limit: the file system could not have
/// been faster by more than a ninth. TCP's headers take 5% of a link with packets of 1500 bytes.
const LINK_SHARE: f64 = 0.9;

/// At this share of all processors' time there is none left to send, receive or store more.
const BUSY_SHARE: f64 = 0.9;

/// The link, or the processors, set the pace. Both are of the whole timed part, the closing syncfs
/// included: a file system that has to catch up then leaves them idle.
pub fn sets_the_pace(case: &Case) -> Option<Seen> {
    let phase = |phase: &PhaseRecord| {
        let network = phase.totals.network?;
        link(&network, phase).or_else(|| processors(case, &network, phase))
    };
    most(case.record.phases.iter().filter_map(phase))
}

/// The fuller of the two directions, in bits a second.
fn carried_bits_per_s(network: &NetworkTotals, phase: &PhaseRecord) -> f64 {
    network.received_bytes.max(network.sent_bytes) as f64 * 8.0 / phase.timed_s()
}

fn link(network: &NetworkTotals, phase: &PhaseRecord) -> Option<Seen> {
    let rate = network.rate_bits_per_s? as f64;
    let carried = carried_bits_per_s(network, phase);
    let share = carried / rate;
    (share >= LINK_SHARE).then(|| Seen {
        severity: Severity::Warning,
        figure: share,
        evidence: format!(
            "the link set the pace: it carried {} of its {} ({:.1}%)",
            Unit::BitsPerSecond.format(carried),
            Unit::BitsPerSecond.format(rate),
            share * 100.0
        ),
    })
}

fn processors(case: &Case, network: &NetworkTotals, phase: &PhaseRecord) -> Option<Seen> {
    let cpu = phase.totals.cpu;
    let busy = cpu.busy_ns() as f64 / cpu.all_ns() as f64;
    let whose = match case.workload.link() {
        Some(_) => "the processors, which clients and server share,",
        None => "the server's processors",
    };
    (busy >= BUSY_SHARE).then(|| Seen {
        severity: Severity::Warning,
        figure: busy,
        evidence: format!(
            "{whose} set the pace: they were busy for {:.1}% of the time, at {}",
            busy * 100.0,
            Unit::BitsPerSecond.format(carried_bits_per_s(network, phase)),
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::testing::{phase, plan, record};
    use crate::model::{CpuTotals, Phase, Record, Totals};

    /// Ten seconds in which so many MB came in over a link of 1 Gbit/s, with so much of two
    /// processors' time busy.
    fn upload(received_mb: u64, busy_s: u64) -> Record {
        let cpu = CpuTotals {
            user_ns: busy_s * 1_000_000_000,
            iowait_ns: (20 - busy_s) * 1_000_000_000,
            ..CpuTotals::default()
        };
        let network = NetworkTotals {
            received_bytes: received_mb * 1_000_000,
            rate_bits_per_s: Some(1_000_000_000),
            ..NetworkTotals::default()
        };
        let totals = Totals { cpu, network: Some(network), ..Totals::default() };
        let (work_ns, syncfs_ns) = (9_000_000_000, 1_000_000_000);
        let phases = vec![PhaseRecord { work_ns, syncfs_ns, totals, ..phase(Phase::Whole) }];
        Record { phases, ..record(1, "w", "a") }
    }

    fn seen_over(network: &str, record: &Record) -> Option<String> {
        let plan = plan(&format!(
            "[[contender]]\nname = \"a\"\n[[contender]]\nname = \"b\"\n[[workload]]\n\
             name = \"w\"\ncommand = \"receive\"\nnetwork = {network}"
        ));
        let case = Case::new(&plan, &plan.workloads[0], &plan.contenders[0], record);
        sets_the_pace(&case).map(|seen| seen.evidence)
    }

    fn seen(record: &Record) -> Option<String> {
        seen_over("{ rate = \"1G\" }", record)
    }

    #[test]
    fn a_full_link_sets_the_pace_and_one_with_room_does_not() {
        let full = "the link set the pace: it carried 952 Mbit/s of its 1.00 Gbit/s (95.2%)";
        assert_eq!(seen(&upload(1190, 5)).as_deref(), Some(full));
        assert_eq!(seen(&upload(1100, 5)), None, "88%");
    }

    #[test]
    fn busy_processors_set_the_pace_and_those_that_wait_for_the_disk_do_not() {
        let busy = seen(&upload(500, 19)).unwrap();
        let expected = "the processors, which clients and server share, set the pace: they were \
                        busy for 95.0% of the time, at 400 Mbit/s";
        assert_eq!(busy, expected);
        assert_eq!(seen(&upload(500, 17)), None, "85%");
        let outside = seen_over("{ interface = \"eth0\" }", &upload(500, 19)).unwrap();
        assert!(outside.starts_with("the server's processors set the pace"), "{outside}");
    }

    #[test]
    fn an_unlimited_link_and_work_without_one_are_left_alone() {
        let mut record = upload(1190, 5);
        let network = record.phases[0].totals.network.as_mut().unwrap();
        network.rate_bits_per_s = None;
        assert_eq!(seen(&record), None);
        let mut record = upload(1190, 19);
        record.phases[0].totals.network = None;
        assert_eq!(seen(&record), None);
    }
}
