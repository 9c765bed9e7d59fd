//! The figures of a trial, from what its timed parts recorded.

use crate::model::{Better, Column, Histogram, PhaseRecord, Sample, Totals, Unit, Workload};

/// Quantiles that are kept, where the histogram holds enough operations.
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)];

/// All figures of a trial. The metrics of a phase begin with its name.
pub(super) fn samples(workload: &Workload, phases: &[PhaseRecord]) -> Vec<Sample> {
    let mut samples = Vec::new();
    for phase in phases {
        let prefix = match phase.phase.name() {
            "" => String::new(),
            name => format!("{name}_"),
        };
        let named = |metric: &str| format!("{prefix}{metric}");
        samples.push(Sample::lower(named("wall_time"), phase.timed_s(), Unit::Seconds));
        samples.extend(
            rates(workload, phase)
                .map(|(metric, value, unit)| Sample::higher(named(metric), value, unit)),
        );
        samples.extend(
            costs(phase).map(|(metric, value, unit)| Sample::lower(named(metric), value, unit)),
        );
        samples.extend(
            meanwhile(phase).map(|sample| Sample { metric: named(&sample.metric), ..sample }),
        );
        for (operation, histogram) in &phase.histograms {
            samples.extend(latencies(operation, histogram));
        }
        samples.extend(phase.samples.iter().cloned());
    }
    samples
}

type Figure = (&'static str, f64, Unit);

/// Work divided by the time until it was durable.
fn rates(workload: &Workload, phase: &PhaseRecord) -> impl Iterator<Item = Figure> {
    let has_requests = matches!(workload.work(), Ok(work) if work.has_requests());
    let seconds = phase.rated_s();
    let rate = phase.operations.map(|operations| {
        let metric = if has_requests { "iops" } else { "rate" };
        (metric, operations as f64 / seconds, Unit::PerSecond)
    });
    let bytes = match has_requests {
        true => {
            phase.application_read_bytes.unwrap_or(0) + phase.application_write_bytes.unwrap_or(0)
        }
        // What a command moves it says itself.
        false => workload.bytes.map_or(0, |bytes| bytes.0),
    };
    let bandwidth =
        (bytes > 0).then(|| ("bandwidth", bytes as f64 / seconds, Unit::BytesPerSecond));
    rate.into_iter().chain(bandwidth)
}

/// What the work cost the machine.
fn costs(phase: &PhaseRecord) -> impl Iterator<Item = Figure> {
    let totals = &phase.totals;
    let mut costs = vec![
        ("syncfs_time", phase.syncfs_ns as f64 / 1e9, Unit::Seconds),
        ("cpu_time", totals.cpu.busy_ns() as f64 / 1e9, Unit::Seconds),
        ("processes_started", totals.processes_started as f64, Unit::Count),
    ];
    if let Some(device) = totals.device {
        costs.push(("device_read_bytes", device.read_bytes as f64, Unit::Bytes));
        costs.push(("device_write_bytes", device.write_bytes as f64, Unit::Bytes));
        costs.push(("device_flushes", device.flushes as f64, Unit::Count));
    }
    if let Some((ratio, _)) = phase.device_bytes_per_application_byte() {
        costs.push(("device_bytes_per_application_byte", ratio, Unit::Ratio));
    }
    if let Some(operations) = phase.operations.filter(|&operations| operations > 0) {
        let each = |total: u64| total as f64 / operations as f64;
        costs.push(("cpu_per_operation", each(totals.cpu.busy_ns()), Unit::Nanoseconds));
        costs.push(("processes_per_operation", each(totals.processes_started), Unit::Ratio));
    }
    costs.into_iter()
}

/// What CPU, device and page cache did meanwhile, as iostat and sar show it. Better is what leaves
/// more room: of the device more done, in less time and with less in the queue; of the CPU more
/// idle; of the page cache more found.
fn meanwhile(phase: &PhaseRecord) -> impl Iterator<Item = Sample> {
    let Totals { cpu, device, page_cache, .. } = &phase.totals;
    let mut columns = Vec::from(cpu.columns());
    columns.extend(device.iter().flat_map(|device| device.columns(phase.timed_s())));
    columns.extend(page_cache.iter().flat_map(|pages| pages.columns(phase.timed_s())));
    columns.into_iter().filter_map(|Column { name, value, unit }| {
        let more = (name.ends_with("_per_s") && name != "page_cache_misses_per_s")
            || ["cpu_idle_share", "page_cache_hit_share"].contains(&name);
        let better = if more { Better::Higher } else { Better::Lower };
        Some(Sample { metric: name.into(), value: value?, unit, better })
    })
}

fn latencies(operation: &str, histogram: &Histogram) -> impl Iterator<Item = Sample> {
    let sample = |name: &str, value_ns: f64| Sample {
        metric: format!("{operation}_latency_{name}"),
        value: value_ns,
        unit: Unit::Nanoseconds,
        better: Better::Lower,
    };
    let mut samples: Vec<Sample> = QUANTILES
        .iter()
        .filter_map(|&(name, q)| Some(sample(name, histogram.quantile_ns(q)? as f64)))
        .collect();
    samples.extend(histogram.mean_ns().map(|mean_ns| sample("mean", mean_ns)));
    samples.push(sample("max", histogram.max_ns as f64));
    samples.into_iter()
}
