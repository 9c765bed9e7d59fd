//! A5 and A17: figures that can't be, and figures that are too coarse.

use crate::model::{PhaseRecord, Sample, Severity, Unit};

use super::case::{Case, Seen, most};

/// Where the clocks of tasks were not read, CPU time is in hundredths of a second (proc_stat(5),
/// USER_HZ); fio has its time in thousandths.
const CPU_UNIT_S: f64 = 0.01;
const FIO_UNIT_S: f64 = 0.001;

/// A figure of fewer units of its clock than this is known to 1% at best.
const FEWEST_UNITS: f64 = 100.0;

/// Histograms keep three figures; what they miss by that is no contradiction.
const ALLOWANCE: f64 = 1.01;

/// A5: quantiles that fall, that lie beyond the maximum, or that so few operations can't have
/// (Markov's inequality: a share 1 - q of all is at p_q or above, so that p_q <= mean / (1 - q));
/// more latencies than operations.
pub fn impossible_summary(case: &Case) -> Option<Seen> {
    let seen = |evidence| Seen { severity: Severity::Warning, figure: 1.0, evidence };
    let mut names: Vec<&str> = case.record.samples.iter().filter_map(latency_of).collect();
    names.dedup();
    let of_latency = names.into_iter().find_map(|name| contradiction(case, name));
    let counts = case.record.phases.iter().find_map(more_latencies_than_operations);
    of_latency.or(counts).map(seen)
}

/// The operation that a latency is of.
fn latency_of(sample: &Sample) -> Option<&str> {
    sample.metric.split_once("_latency_").map(|(operation, _)| operation)
}

fn contradiction(case: &Case, operation: &str) -> Option<String> {
    let figure = |name: &str| {
        case.record.sample(&format!("{operation}_latency_{name}")).map(|sample| sample.value)
    };
    let shown = |value: f64| Unit::Nanoseconds.format(value);
    let order = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999), ("max", 1.0)];
    let known: Vec<(&str, f64, f64)> =
        order.iter().filter_map(|&(name, q)| Some((name, q, figure(name)?))).collect();
    for pair in known.windows(2) {
        let ((lower, _, low), (upper, _, high)) = (pair[0], pair[1]);
        if low > high * ALLOWANCE {
            let (low, high) = (shown(low), shown(high));
            return Some(format!("{operation}: {lower} is {low} and {upper} {high}"));
        }
    }
    let mean = figure("mean")?;
    let beyond = known.iter().find(|(_, q, value)| value * (1.0 - q) > mean * ALLOWANCE)?;
    let (name, _, value) = beyond;
    Some(format!(
        "{operation}: {name} is {} and the mean {}, which so many slow operations do not allow",
        shown(*value),
        shown(mean)
    ))
}

/// Reads and writes have a latency each. fio alone: elsewhere what has a latency is not always
/// what is counted.
fn more_latencies_than_operations(phase: &PhaseRecord) -> Option<String> {
    phase.queue?;
    let operations = phase.operations?;
    let requests = ["read", "write"].iter().filter_map(|name| phase.histograms.get(*name));
    let latencies = requests.fold(0_u64, |all, it| all.saturating_add(it.count()));
    (latencies > operations).then(|| {
        let shown = |count: u64| Unit::Count.format(count as f64);
        format!("{} latencies of {} operations", shown(latencies), shown(operations))
    })
}

/// A17: a judged figure under a hundred units of the clock that it comes from.
pub fn clock_too_coarse(case: &Case) -> Option<Seen> {
    let primary = case.workload.primary();
    let phase = |phase: &PhaseRecord| {
        let judges = |what: &str| {
            let prefix = phase.phase.prefix();
            primary.iter().any(|metric| {
                metric.strip_prefix(&prefix).is_some_and(|metric| metric.starts_with(what))
            })
        };
        let in_ticks = phase.totals.cpu_time.is_none();
        let cpu_s = phase.totals.cpu.busy_ns() as f64 / 1e9;
        let of_fio = phase.tool_ns.filter(|_| phase.queue.is_some());
        let shortest = phase.jobs.iter().map(|job| job.tool_ns).filter(|ns| *ns > 0).min();
        let tool_s = shortest.or(of_fio).map(|ns| ns as f64 / 1e9);
        let cpu_is_coarse = in_ticks && cpu_s < FEWEST_UNITS * CPU_UNIT_S;
        let (what, units, unit_s) = if judges("cpu_") && cpu_is_coarse {
            ("CPU time", cpu_s / CPU_UNIT_S, CPU_UNIT_S)
        } else if let Some(tool_s) = tool_s.filter(|tool_s| *tool_s < FEWEST_UNITS * FIO_UNIT_S) {
            ("fio's time", tool_s / FIO_UNIT_S, FIO_UNIT_S)
        } else {
            return None;
        };
        let (units, unit) = (units.round(), Unit::Seconds.format(unit_s));
        let evidence = format!("{what} is {units:.0} of its clock's units of {unit}");
        Some(Seen { severity: Severity::Warning, figure: units, evidence })
    };
    most(case.record.phases.iter().filter_map(phase))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::testing::{phase, plan, record};
    use crate::model::{CpuTime, CpuTotals, Histogram, Phase, Queue, Record, Totals};

    fn seen(test: fn(&Case) -> Option<Seen>, primary: &str, record: &Record) -> Option<String> {
        let plan = plan(&format!(
            "[[contender]]\nname = \"a\"\n[[contender]]\nname = \"b\"\n\
             [[workload]]\nname = \"w\"\nfio = {{ rw = \"read\" }}\nprimary = [\"{primary}\"]"
        ));
        let case = Case::new(&plan, &plan.workloads[0], &plan.contenders[0], record);
        test(&case).map(|seen| seen.evidence)
    }

    fn latencies(figures: &[(&str, f64)]) -> Record {
        let sample = |(name, value): &(&str, f64)| {
            Sample::lower(format!("read_latency_{name}"), *value, Unit::Nanoseconds)
        };
        Record { samples: figures.iter().map(sample).collect(), ..record(1, "w", "a") }
    }

    #[test]
    fn a5_a_summary_contradicts_itself() {
        let seen = |figures: &[(&str, f64)]| seen(impossible_summary, "iops", &latencies(figures));
        let right = [("p50", 1e3), ("p99", 5e4), ("mean", 2e3), ("max", 6e4)];
        assert_eq!(seen(&right), None);
        assert_eq!(
            seen(&[("p50", 1e3), ("p99", 9e2), ("mean", 1e3)]).as_deref(),
            Some("read: p50 is 1.00 µs and p99 900 ns")
        );
        assert!(seen(&[("p99", 5e4), ("max", 4e4)]).unwrap().contains("max 40.0 µs"));
        assert!(seen(&[("p50", 3e3), ("mean", 1e3)]).unwrap().contains("do not allow"));
        assert_eq!(seen(&[("mean", 1e3)]), None);
    }

    #[test]
    fn a5_there_are_as_many_latencies_as_operations() {
        let with = |latencies: u64| {
            let histogram = Histogram { max_ns: 9, sum_ns: 9, buckets: vec![(9, latencies)] };
            let phases = vec![PhaseRecord {
                operations: Some(100),
                queue: Some(Queue::default()),
                histograms: [("read".to_string(), histogram)].into(),
                ..phase(Phase::Whole)
            }];
            Record { phases, ..record(1, "w", "a") }
        };
        assert_eq!(seen(impossible_summary, "iops", &with(100)), None);
        let evidence = seen(impossible_summary, "iops", &with(101));
        assert_eq!(evidence.as_deref(), Some("101 latencies of 100 operations"));
    }

    #[test]
    fn a17_a_judged_figure_has_a_hundred_units_of_its_clock() {
        let with = |tool_ms: u64, cpu_ms: u64| {
            let cpu = CpuTotals { system_ns: cpu_ms * 1_000_000, ..CpuTotals::default() };
            let phases = vec![PhaseRecord {
                tool_ns: Some(tool_ms * 1_000_000),
                queue: Some(Queue::default()),
                totals: Totals { cpu, ..Totals::default() },
                ..phase(Phase::Whole)
            }];
            Record { phases, ..record(1, "w", "a") }
        };
        let seen = |primary, record: Record| seen(clock_too_coarse, primary, &record);
        assert_eq!(seen("iops", with(100, 50)), None, "CPU time is not judged");
        let coarse = seen("iops", with(99, 5000));
        assert_eq!(coarse.as_deref(), Some("fio's time is 99 of its clock's units of 1.00 ms"));
        assert!(seen("cpu_per_operation", with(500, 120)).unwrap().starts_with("CPU time is 12"));
        assert_eq!(seen("cpu_time", with(500, 1000)), None);
        let mut by_clocks = with(500, 120);
        by_clocks.phases[0].totals.cpu_time = Some(CpuTime::default());
        assert_eq!(seen("cpu_time", by_clocks), None, "they count nanoseconds");
    }
}
