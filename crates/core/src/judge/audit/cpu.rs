//! A13 and A17: CPU time by the clocks of its tasks beside that of the whole machine by its ticks.

use crate::model::{CpuTime, CpuTotals, PhaseRecord, Severity, Unit};

use super::case::{Case, Seen, most, percent, prefix};

/// A13's advice where others had the processors.
pub const OTHERS_ADVICE: &str = "stop whatever else runs meanwhile; CPU time leaves others out, \
                                 the time of the work does not";

/// A17's advice where the ticks miss what the clocks count.
pub const TICKS_ADVICE: &str = "nothing for cpu_time, which is by the clocks; do not trust shares \
                                of processors, nor cpu_*_ns in series.csv, here: the ticks came \
                                too seldom, or in step with the work";

/// What others may take of all processors' time, interrupts included.
const SHARE: f64 = 0.05;

/// Ticks are drawn, not counted: whoever runs when one comes has it all. Less than this is not told
/// from that.
const TICKS_S: f64 = 0.1;

/// So much more than its ticks a machine has never worked, where they come as they should.
const BEYOND_TICKS: f64 = 1.5;

fn seen_in(case: &Case, test: fn(CpuTotals, CpuTime, &str) -> Option<Seen>) -> Option<Seen> {
    let phase = |phase: &PhaseRecord| {
        let totals = phase.totals;
        test(totals.cpu, totals.cpu_time?, &prefix(phase.phase))
    };
    most(case.record.phases.iter().filter_map(phase))
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// A13: the machine was busy with more than the work and the kernel's threads.
pub fn others_at_work(case: &Case) -> Option<Seen> {
    seen_in(case, |machine, own, phase| {
        let others_ns = machine.busy_ns().saturating_sub(own.ns());
        let share = others_ns as f64 / machine.all_ns() as f64;
        (share > SHARE && seconds(others_ns) > TICKS_S).then(|| Seen {
            severity: Severity::Warning,
            figure: share,
            evidence: format!(
                "{phase}others, and interrupts, had {} of all processors' time meanwhile",
                percent(share)
            ),
        })
    })
}

/// A17: the two contradict each other the other way round.
pub fn ticks_missed(case: &Case) -> Option<Seen> {
    seen_in(case, |machine, own, phase| {
        let (own_s, machine_s) = (seconds(own.ns()), seconds(machine.busy_ns()));
        (own_s > machine_s * BEYOND_TICKS + TICKS_S).then(|| Seen {
            severity: Severity::Note,
            figure: own_s - machine_s,
            evidence: format!(
                "{phase}work and kernel ran for {} by their clocks, the whole machine for {} by \
                 its ticks",
                Unit::Seconds.format(own_s),
                Unit::Seconds.format(machine_s)
            ),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::testing::{phase, plan, record};
    use crate::model::{CpuClock, Phase, Record, Totals};

    /// Times in ms: of the work, the kernel, the machine when busy, and all there was.
    fn seen(test: fn(&Case) -> Option<Seen>, times: Option<[u64; 2]>, machine: [u64; 2]) -> String {
        let plan = plan(
            "[[contender]]\nname = \"a\"\n[[contender]]\nname = \"b\"\n\
             [[workload]]\nname = \"w\"\ncommand = \"work\"",
        );
        let [busy, all] = machine.map(|ms| ms * 1_000_000);
        let cpu = CpuTotals { user_ns: busy, idle_ns: all - busy, ..CpuTotals::default() };
        let cpu_time = times.map(|times| {
            let [work_ns, kernel_ns] = times.map(|ms| ms * 1_000_000);
            CpuTime { work_ns, kernel_ns, clock: CpuClock::Cgroup }
        });
        let totals = Totals { cpu, cpu_time, ..Totals::default() };
        let phases = vec![PhaseRecord { totals, ..phase(Phase::Whole) }];
        let record = &Record { phases, ..record(1, "w", "a") };
        let case = Case::new(&plan, &plan.workloads[0], &plan.contenders[0], record);
        test(&case).map(|seen| seen.evidence).unwrap_or_default()
    }

    #[test]
    fn a13_others_had_the_processors() {
        let seen = |times, machine| seen(others_at_work, times, machine);
        assert_eq!(seen(None, [4000, 4000]), "", "no clock was read");
        assert_eq!(seen(Some([700, 300]), [1180, 4000]), "", "4.5% are others'");
        let evidence = "others, and interrupts, had 25.0% of all processors' time meanwhile";
        assert_eq!(seen(Some([700, 300]), [2000, 4000]), evidence);
        assert_eq!(seen(Some([3, 1]), [90, 100]), "", "too short for ticks");
        assert_eq!(seen(Some([3, 1]), [0, 100]), "");
    }

    #[test]
    fn a17_the_ticks_may_differ_but_not_by_so_much() {
        let seen = |times, machine| seen(ticks_missed, times, machine);
        assert_eq!(seen(None, [10, 4000]), "");
        assert_eq!(seen(Some([1200, 390]), [1000, 4000]), "");
        let evidence = "work and kernel ran for 1.61 s by their clocks, the whole machine for \
                        1.00 s by its ticks";
        assert_eq!(seen(Some([1200, 410]), [1000, 4000]), evidence);
        assert_eq!(seen(Some([90, 5]), [0, 4000]), "", "ten ticks may all have missed it");
    }
}
