//! A11, heat: processors or drives that slow down to stay cool measure the temperature of their
//! room.

use crate::model::{HeatTotals, PhaseRecord, Severity};

use super::case::{Case, Seen, most, prefix};

pub const ADVICE: &str = "cool it better, or let it rest between the trials; limit processors and \
                          device to what they can sustain (cpupower frequency-set, bed.limits)";

/// A processor was slowed down for heat, or a drive's own temperature alarm was on.
pub fn slowed_down(case: &Case) -> Option<Seen> {
    let phase = |phase: &PhaseRecord| {
        let heat = phase.totals.heat?;
        processor(&heat, phase).or_else(|| drive(&heat, phase))
    };
    most(case.record.phases.iter().filter_map(phase))
}

fn processor(heat: &HeatTotals, phase: &PhaseRecord) -> Option<Seen> {
    let times = heat.cpu_throttles.filter(|&times| times > 0)?;
    let often = if times == 1 { "once".into() } else { format!("{times} times") };
    Some(Seen {
        severity: Severity::Warning,
        figure: times as f64,
        evidence: format!("{}a processor was slowed down for heat {often}", prefix(phase.phase)),
    })
}

fn drive(heat: &HeatTotals, phase: &PhaseRecord) -> Option<Seen> {
    heat.drive_alarm.filter(|&alarm| alarm)?;
    let at = heat.drive_celsius.map(|celsius| format!(", at {celsius} °C"));
    Some(Seen {
        severity: Severity::Warning,
        figure: 0.0,
        evidence: format!(
            "{}a drive's own temperature alarm was on{}",
            prefix(phase.phase),
            at.unwrap_or_default()
        ),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::judge::audit::Audited;
    use crate::judge::testing::{phase, plan, record};
    use crate::model::{Audit, Phase, Record, Totals};

    /// What A11 says of three trials with this heat.
    fn seen(heat: Option<HeatTotals>) -> Vec<String> {
        let plan = plan(
            "[[contender]]\nname = \"a\"\n[[contender]]\nname = \"b\"\n[[workload]]\nname = \"w\"\n\
             command = \"x\"\n",
        );
        let totals = Totals { heat, ..Totals::default() };
        let phases = vec![PhaseRecord { totals, ..phase(Phase::Whole) }];
        let trial = |round| Record { phases: phases.clone(), ..record(round, "w", "a") };
        let records: Vec<Record> = (1..=3).map(trial).collect();
        let found = Audited::of(&plan, &records).voiding(&plan, &BTreeMap::new()).into_iter();
        let found = found.filter(|finding| finding.audit == Audit::A11);
        found.map(|it| format!("{:?}: {}", it.severity, it.evidence)).collect()
    }

    #[test]
    fn a_processor_slowed_down_and_a_drives_alarm_are_warnings() {
        let hot = |cpu_throttles, drive_alarm| {
            let cpu_throttles = Some(cpu_throttles);
            seen(Some(HeatTotals { cpu_throttles, drive_alarm, drive_celsius: Some(84) }))
        };
        let processor = "Warning: a processor was slowed down for heat";
        assert_eq!(hot(12, Some(true)), [format!("{processor} 12 times; in 3 of 3 trials")]);
        assert_eq!(hot(1, None), [format!("{processor} once; in 3 of 3 trials")]);
        let drive = "Warning: a drive's own temperature alarm was on, at 84 °C; in 3 of 3 trials";
        assert_eq!(hot(0, Some(true)), [drive]);
    }

    #[test]
    fn a_cool_machine_and_one_that_does_not_tell_are_left_alone() {
        let cool = HeatTotals {
            cpu_throttles: Some(0),
            drive_alarm: Some(false),
            drive_celsius: Some(69),
        };
        assert_eq!(seen(Some(cool)), [""; 0]);
        assert_eq!(seen(Some(HeatTotals::default())), [""; 0]);
        assert_eq!(seen(None), [""; 0]);
    }
}
