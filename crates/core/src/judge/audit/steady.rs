//! A24: time-based work that was not steady, or not from its beginning on.

use crate::model::{PhaseRecord, RateOverTime, Severity, Steady, Unit};

use super::case::{Case, Seen, most};

/// A24's advice where there was no steady state.
pub const NEVER_ADVICE: &str = "the figure is the mean of a changing rate: let it run longer \
                                (runtime), or skip the start (fio's ramp_time, which gives no \
                                costs per byte and operation), until bursts, caches and \
                                allocation no longer matter";

/// A24's advice where there was one.
pub const CUT_ADVICE: &str = "no action: the judged rate covers only the rest; fio's own figures, \
                              latencies and costs cover the whole run";

/// A24: the rate never settled.
pub fn never(case: &Case) -> Option<Seen> {
    over_time(case, Steady::Never, |course| {
        let fifths = course.fifths()?;
        let least = fifths.into_iter().fold(f64::INFINITY, f64::min);
        let greatest = fifths.into_iter().fold(0.0, f64::max);
        let shown = |rate| Unit::PerSecond.format(rate);
        let of_run = Unit::Nanoseconds.format(duration_ns(course, course.rates_per_s.len()));
        Some(Seen {
            severity: Severity::Warning,
            figure: greatest / least.max(f64::MIN_POSITIVE),
            evidence: format!(
                "no steady state in {of_run}: the rate was {} in one fifth of it and {} in another",
                shown(least),
                shown(greatest)
            ),
        })
    })
}

/// A24: a beginning was cut off.
pub fn cut(case: &Case) -> Option<Seen> {
    over_time(case, Steady::AfterCut, |course| {
        let of = |ns: f64| Unit::Nanoseconds.format(ns);
        let windows = course.rates_per_s.len();
        Some(Seen {
            severity: Severity::Note,
            figure: course.cut as f64,
            evidence: format!(
                "the first {} of {} are cut off: after that the rate was steady, at {:.2} of the \
                 mean of all",
                of(duration_ns(course, course.cut)),
                of(duration_ns(course, windows)),
                course.steady_share()
            ),
        })
    })
}

fn duration_ns(course: &RateOverTime, windows: usize) -> f64 {
    course.window_ns as f64 * windows as f64
}

fn over_time(
    case: &Case,
    steady: Steady,
    seen: impl Fn(&RateOverTime) -> Option<Seen>,
) -> Option<Seen> {
    let courses = case.record.phases.iter().filter_map(|PhaseRecord { rate_over_time, .. }| {
        rate_over_time.as_ref().filter(|course| course.steady == steady)
    });
    most(courses.filter_map(seen))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::testing::{phase, plan, record};
    use crate::model::{Phase, Record};

    fn seen(test: fn(&Case) -> Option<Seen>, rates: &[(usize, f64)]) -> Option<String> {
        let plan = plan(
            "[[contender]]\nname = \"a\"\n[[contender]]\nname = \"b\"\n\
             [[workload]]\nname = \"w\"\nfio = { rw = \"randread\" }",
        );
        let rates = rates.iter().flat_map(|&(count, rate)| vec![rate; count]).collect();
        let rate_over_time = RateOverTime::new(500_000_000, rates);
        let phases = vec![PhaseRecord { rate_over_time, ..phase(Phase::Whole) }];
        let record = &Record { phases, ..record(1, "w", "a") };
        let case = Case::new(&plan, &plan.workloads[0], &plan.contenders[0], record);
        test(&case).map(|seen| seen.evidence)
    }

    #[test]
    fn a24_tells_a_cut_from_none() {
        let late = [(45, 1000.0), (15, 3000.0)];
        let evidence = "no steady state in 30.0 s: the rate was 1,000/s in one fifth of it and \
                        3,000/s in another";
        assert_eq!(seen(never, &late).as_deref(), Some(evidence));
        assert_eq!(seen(cut, &late), None);
        let burst = [(15, 3000.0), (45, 1000.0)];
        let evidence = "the first 7.50 s of 30.0 s are cut off: after that the rate was steady, \
                        at 0.67 of the mean of all";
        assert_eq!(seen(cut, &burst).as_deref(), Some(evidence));
        assert_eq!(seen(never, &burst), None);
        assert_eq!((seen(never, &[(60, 5.0)]), seen(cut, &[(60, 5.0)])), (None, None));
    }
}
