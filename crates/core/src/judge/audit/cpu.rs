//! A13: other programs had the processors. A17: CPU time by the clocks of its tasks contradicts
//! that of the whole machine by its ticks.

use crate::model::{CpuTime, CpuTotals, PhaseRecord, Severity, Strangers, Unit};

use super::case::{Case, Seen, most, named, percent, prefix};

/// A13's advice where others had the processors.
pub const OTHERS_ADVICE: &str = "stop other programs meanwhile; CPU time leaves them out, elapsed \
                                 time does not";

/// A17's advice where the ticks miss what the clocks count.
pub const TICKS_ADVICE: &str = "cpu_time is right, because it comes from clocks; do not trust \
                                shares of processors or cpu_*_ns in series.csv here: the ticks \
                                came too seldom, or in step with the work";

/// What others may take of all processors' time.
const SHARE: f64 = 0.05;

/// The CPU time of a process comes in hundredths of a second: less than ten of them can't be told
/// from the begun hundredths of many processes.
const OTHERS_S: f64 = 0.1;

/// The share of its time that others may cost the work: less does not matter.
const WAITED: f64 = 0.01;

/// Ticks are samples: the task that runs when one comes is charged for all of it. Less than this
/// may be chance.
const TICKS_S: f64 = 0.1;

/// No machine has worked this many times its ticks, if they come as they should.
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

/// A13: other programs had the processors. What that did to the work is what ranks it: a note where
/// it took nothing from it.
pub fn others_at_work(case: &Case) -> Option<Seen> {
    let phase = |phase: &PhaseRecord| {
        let others = phase.strangers.as_ref()?;
        // They are looked at just before and just after, and the processors within.
        let share = (others.cpu_ns as f64 / phase.totals.cpu.all_ns().max(1) as f64).min(1.0);
        (share > SHARE && seconds(others.cpu_ns) > OTHERS_S).then(|| {
            let waited = waited(phase, others);
            let costs = waited.is_none_or(|waited| waited >= WAITED);
            let effect = waited.map_or(String::new(), |waited| match costs {
                true => format!("; it cost the work up to {} of its time", percent(waited)),
                false => "; the work hardly waited for a processor".into(),
            });
            let by_name = others.by(|it| it.cpu_ns);
            let shown = |ns| Unit::Seconds.format(seconds(ns));
            Seen {
                severity: if costs { Severity::Warning } else { Severity::Note },
                figure: waited.unwrap_or(share),
                evidence: format!(
                    "{}other programs had {} of all processors' time meanwhile{}{effect}",
                    prefix(phase.phase),
                    percent(share),
                    named(&by_name, others.cpu_ns, shown),
                ),
            }
        })
    };
    most(case.record.phases.iter().filter_map(phase))
}

/// The share of the timed part that others can have cost: how long some task (of the work, if its
/// cgroup tells) waited for a processor, but no longer than the others ran
/// (Documentation/accounting/psi.rst, "some").
fn waited(phase: &PhaseRecord, others: &Strangers) -> Option<f64> {
    let totals = &phase.totals;
    let own = totals.own.and_then(|own| own.pressure);
    let waited_ns = own.or(totals.pressure)?.cpu_some_ns.min(others.cpu_ns);
    Some((seconds(waited_ns) / phase.timed_s()).min(1.0))
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
    use crate::model::{CpuClock, OwnTotals, Phase, PressureTotals, Record, Stranger, Totals};

    /// Times in ms: of the work, the kernel, the machine when busy, and all there was.
    fn ticks(times: Option<[u64; 2]>, machine: [u64; 2]) -> Totals {
        let [busy, all] = machine.map(|ms| ms * 1_000_000);
        let cpu = CpuTotals { user_ns: busy, idle_ns: all - busy, ..CpuTotals::default() };
        let cpu_time = times.map(|times| {
            let [work_ns, kernel_ns] = times.map(|ms| ms * 1_000_000);
            CpuTime { work_ns, kernel_ns, clock: CpuClock::Cgroup }
        });
        Totals { cpu, cpu_time, ..Totals::default() }
    }

    fn seen(test: fn(&Case) -> Option<Seen>, phase: PhaseRecord) -> Option<(Severity, String)> {
        let plan = plan(
            "[[contender]]\nname = \"a\"\n[[contender]]\nname = \"b\"\n\
             [[workload]]\nname = \"w\"\ncommand = \"work\"",
        );
        let record = &Record { phases: vec![phase], ..record(1, "w", "a") };
        let case = Case::new(&plan, &plan.workloads[0], &plan.contenders[0], record);
        test(&case).map(|seen| (seen.severity, seen.evidence))
    }

    /// Two seconds on two processors, beside others who ran for so many ms; some task waited for
    /// so many, and of the work one, where that is known.
    fn beside(others_ms: &[(&str, u64)], waited_ms: Option<u64>, own_ms: Option<u64>) -> String {
        let mut strangers = Strangers::default();
        for &(name, ms) in others_ms {
            let cpu_ns = ms * 1_000_000;
            strangers.cpu_ns += cpu_ns;
            let name = name.to_string();
            strangers.most.push(Stranger { name, cpu_ns, ..Stranger::default() });
        }
        let pressure =
            |ms: u64| PressureTotals { cpu_some_ns: ms * 1_000_000, ..Default::default() };
        let mut totals = ticks(None, [4000, 4000]);
        totals.pressure = waited_ms.map(pressure);
        let own = own_ms.map(pressure);
        totals.own = Some(OwnTotals { pressure: own, ..OwnTotals::default() });
        let mut phase = PhaseRecord { totals, ..phase(Phase::Whole) };
        (phase.work_ns, phase.syncfs_ns) = (1_500_000_000, 500_000_000);
        phase.strangers = Some(strangers);
        let seen = seen(others_at_work, phase);
        seen.map_or(String::new(), |(severity, evidence)| format!("{severity:?}: {evidence}"))
    }

    #[test]
    fn a13_others_had_the_processors() {
        let unknown = PhaseRecord { totals: ticks(None, [4000, 4000]), ..phase(Phase::Whole) };
        assert_eq!(seen(others_at_work, unknown), None, "nobody can be seen");
        assert_eq!(beside(&[], Some(2000), None), "", "the machine's own interrupts");
        assert_eq!(beside(&[("cc1", 190)], Some(2000), None), "", "4.75% are others'");
        let of = "other programs had 25.0% of all processors' time meanwhile (rustc 700 ms, cc1 \
                  200 ms, ld 60.0 ms, others 40.0 ms)";
        let others = [("cc1", 200), ("ld", 60), ("rustc", 700), ("as", 40)];
        assert_eq!(beside(&others, None, None), format!("Warning: {of}"));
        let costs = format!("Warning: {of}; it cost the work up to 50.0% of its time");
        assert_eq!(beside(&others, Some(1800), None), costs, "no longer than they ran");
        let costs = format!("Warning: {of}; it cost the work up to 12.0% of its time");
        assert_eq!(beside(&others, Some(1800), Some(240)), costs, "the work alone counts");
        let idle = format!("Note: {of}; the work hardly waited for a processor");
        assert_eq!(beside(&others, Some(1800), Some(3)), idle);
    }

    #[test]
    fn a17_the_ticks_may_differ_but_not_by_so_much() {
        let seen = |times, machine| {
            let phase = PhaseRecord { totals: ticks(times, machine), ..phase(Phase::Whole) };
            seen(ticks_missed, phase).map(|seen| seen.1).unwrap_or_default()
        };
        assert_eq!(seen(None, [10, 4000]), "");
        assert_eq!(seen(Some([1200, 390]), [1000, 4000]), "");
        let evidence = "work and kernel ran for 1.61 s by their clocks, the whole machine for \
                        1.00 s by its ticks";
        assert_eq!(seen(Some([1200, 410]), [1000, 4000]), evidence);
        assert_eq!(seen(Some([90, 5]), [0, 4000]), "", "ten ticks may all have missed it");
    }
}
