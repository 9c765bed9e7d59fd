//! The figures of a trial, from what its timed parts recorded.

use crate::model::{
    Better, Histogram, JobRecord, LEAST_AMOUNT_BYTES, PhaseRecord, Sample, SysstatColumn, Totals,
    Unit, Workload, blocked_column,
};

/// Quantiles that are kept, where the histogram holds enough operations.
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)];

/// All figures of a trial. The metrics of a phase begin with its name.
pub(super) fn samples(workload: &Workload, phases: &[PhaseRecord]) -> Vec<Sample> {
    let mut samples = Vec::new();
    for phase in phases {
        let prefix = phase.phase.prefix();
        let named = |metric: &str| format!("{prefix}{metric}");
        samples.push(Sample::lower(named("wall_time"), phase.timed_s(), Unit::Seconds));
        samples.extend(
            rates(workload, phase)
                .map(|(metric, value, unit)| Sample::higher(named(metric), value, unit)),
        );
        samples.extend(
            costs(workload, phase)
                .map(|(metric, value, unit)| Sample::lower(named(metric), value, unit)),
        );
        samples.extend(
            meanwhile(phase)
                .into_iter()
                .map(|sample| Sample { metric: named(&sample.metric), ..sample }),
        );
        samples.extend(
            by_application(phase).map(|sample| Sample { metric: named(&sample.metric), ..sample }),
        );
        for (operation, histogram) in &phase.histograms {
            samples.extend(latencies(operation, histogram));
        }
        samples.extend(phase.samples.iter().cloned());
        samples.extend(phase.jobs.iter().flat_map(|job| of_job(job, phase.syncfs_ns)));
    }
    samples
}

/// The figures of one job of several: those that the work would have if it were alone.
fn of_job(job: &JobRecord, syncfs_ns: u64) -> impl Iterator<Item = Sample> {
    let seconds = job.rated_s(syncfs_ns);
    let bytes = job.application_read_bytes + job.application_write_bytes;
    let iops = Sample::higher("iops", job.operations as f64 / seconds, Unit::PerSecond);
    let bandwidth = Sample::higher("bandwidth", bytes as f64 / seconds, Unit::BytesPerSecond);
    let rates = [(iops, job.operations > 0), (bandwidth, bytes > 0)];
    let rates =
        rates.into_iter().filter(move |(_, done)| *done && seconds > 0.0).map(|(rate, _)| rate);
    let latencies = job.histograms.iter().flat_map(|(operation, it)| latencies(operation, it));
    let own = job.samples.iter().cloned();
    let named = |it: Sample| Sample { metric: format!("{}_{}", job.name, it.metric), ..it };
    rates.chain(latencies).chain(own).map(named)
}

/// What is wrong with the figures that a command gives itself: one that fsverdict measures, or a
/// missing one that is judged.
pub(super) fn wrong(workload: &Workload, samples: &[Sample]) -> Option<String> {
    workload.command.as_ref()?;
    let metrics: Vec<&str> = samples.iter().map(|sample| sample.metric.as_str()).collect();
    for (place, metric) in metrics.iter().enumerate() {
        if metrics[..place].contains(metric) {
            return Some(format!("{metric} is measured by fsverdict: give it another name"));
        }
    }
    let missing = workload.primary().into_iter().find(|it| !metrics.contains(&it.as_str()))?;
    let known = metrics.join(", ");
    Some(format!(
        "{missing} is to be judged, and neither measured, printed nor given in \
         $FSVERDICT_FIGURES; there are {known}"
    ))
}

type Figure = (&'static str, f64, Unit);

/// Work divided by the time until it was durable; of time-based work that was steady only after
/// a while, at the rate of its steady part; of work in turns at that of the turns.
fn rates(workload: &Workload, phase: &PhaseRecord) -> impl Iterator<Item = Figure> {
    let has_requests = matches!(workload.work(), Ok(work) if work.has_requests());
    let seconds = phase.rated_s() / phase.judged_share();
    let rate = phase.operations.map(|operations| {
        let metric = if has_requests { "iops" } else { "rate" };
        (metric, operations as f64 / seconds, Unit::PerSecond)
    });
    let requested =
        phase.application_read_bytes.unwrap_or(0) + phase.application_write_bytes.unwrap_or(0);
    // What a command is said to read or write; its processes' I/O is not all on its files.
    let said = workload.command.as_ref().and(workload.bytes).map(|bytes| bytes.0);
    let bandwidth = said
        .or((has_requests && phase.operations.is_some()).then_some(requested))
        .filter(|&bytes| bytes > 0)
        .map(|bytes| ("bandwidth", bytes as f64 / seconds, Unit::BytesPerSecond));
    rate.into_iter().chain(bandwidth)
}

/// What the work cost the machine.
fn costs(workload: &Workload, phase: &PhaseRecord) -> impl Iterator<Item = Figure> {
    let totals = &phase.totals;
    let mut costs = vec![
        ("syncfs_time", phase.syncfs_ns as f64 / 1e9, Unit::Seconds),
        ("processes_started", totals.processes_started as f64, Unit::Count),
    ];
    // In turns the kernel's threads work for all contenders, and so do the machine's processors.
    let cpu_ns = phase.turns.is_none().then(|| totals.cpu_ns());
    costs.extend(cpu_ns.map(|ns| ("cpu_time", ns as f64 / 1e9, Unit::Seconds)));
    if let Some(device) = totals.device {
        costs.push(("device_read_bytes", device.read_bytes as f64, Unit::Bytes));
        costs.push(("device_write_bytes", device.write_bytes as f64, Unit::Bytes));
        let flushes = device.flushes.map(|count| ("device_flushes", count as f64, Unit::Count));
        costs.extend(flushes);
    }
    // For a command that prints a line or two it would be the amount of its output.
    let least_bytes = workload.command.as_ref().map_or(0, |_| LEAST_AMOUNT_BYTES);
    if let Some((ratio, _)) = phase.device_bytes_per_application_byte(least_bytes) {
        costs.push(("device_bytes_per_application_byte", ratio, Unit::Ratio));
    }
    let operations = phase.operations.filter(|&operations| operations > 0 && !phase.ramped);
    if let Some(operations) = operations {
        let each = |total: u64| total as f64 / operations as f64;
        costs.extend(cpu_ns.map(|ns| ("cpu_per_operation", each(ns), Unit::Nanoseconds)));
        costs.push(("processes_per_operation", each(totals.processes_started), Unit::Ratio));
    }
    costs.into_iter()
}

/// What CPU, device, page cache and network did meanwhile, as iostat and sar show it, and what was
/// dirty. Better is what leaves more room: for the device more done, in less time and with a
/// shorter queue; for the CPU more idle; for the page cache more hits; for the network more
/// carried.
fn meanwhile(phase: &PhaseRecord) -> Vec<Sample> {
    let Totals { cpu, device, page_cache, network, memory, blocked_ns, .. } = &phase.totals;
    let timed_s = phase.timed_s();
    let of_device = device.iter().flat_map(|device| device.columns(timed_s));
    // In turns all contenders share the rest of the machine.
    if phase.turns.is_some() {
        return of_device.filter_map(SysstatColumn::sample).collect();
    }
    let mut columns = Vec::from(cpu.columns());
    columns.push(blocked_column(*blocked_ns, timed_s));
    columns.extend(of_device);
    columns.extend(page_cache.iter().flat_map(|pages| pages.columns(timed_s)));
    columns.extend(network.iter().flat_map(|network| network.columns(timed_s)));
    let samples = columns.into_iter().filter_map(SysstatColumn::sample);
    let dirty = Sample::lower("dirty_bytes_max", memory.dirty_bytes_max as f64, Unit::Bytes);
    samples.chain([dirty]).chain(phase.peaks.iter().cloned()).collect()
}

/// What each application read from disks and stored for them.
fn by_application(phase: &PhaseRecord) -> impl Iterator<Item = Sample> {
    phase.applications.iter().flat_map(|it| {
        let sample = |what, bytes: u64| Sample::lower(it.metric(what), bytes as f64, Unit::Bytes);
        [sample("read_bytes", it.read_bytes), sample("write_bytes", it.write_bytes)]
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Application, Bytes, Command, DeviceTotals, NetworkTotals, Phase, Turns};

    fn phase(samples: Vec<Sample>) -> PhaseRecord {
        PhaseRecord {
            application_write_bytes: Some(7),
            samples,
            ..PhaseRecord::new(Phase::Whole, 1_500_000_000, 500_000_000)
        }
    }

    fn command() -> Workload {
        Workload { command: Some(Command::Shell("work".into())), ..Workload::default() }
    }

    #[test]
    fn a_command_has_the_bandwidth_of_the_bytes_it_is_said_to_have() {
        let bandwidth = |workload: &Workload| {
            let samples = samples(workload, &[phase(Vec::new())]);
            samples.iter().find(|sample| sample.metric == "bandwidth").map(|sample| sample.value)
        };
        assert_eq!(bandwidth(&command()), None);
        assert_eq!(bandwidth(&Workload { bytes: Some(Bytes(4000)), ..command() }), Some(2000.0));
    }

    #[test]
    fn each_job_has_its_own_rates_and_nothing_is_added_up() {
        let job = |name: &str, operations: u64, synced: bool| JobRecord {
            name: name.into(),
            tool_ns: 2_000_000_000,
            synced,
            operations,
            application_read_bytes: operations * 4096,
            ..JobRecord::default()
        };
        let jobs = vec![job("first", 5000, false), job("second", 1000, true)];
        let fio = Some(crate::model::Fio::File("job.fio".into()));
        let workload = Workload { fio, ..Workload::default() };
        let samples = samples(&workload, &[PhaseRecord { jobs, ..phase(Vec::new()) }]);
        let value = |metric: &str| {
            samples.iter().find(|sample| sample.metric == metric).map(|sample| sample.value)
        };
        assert_eq!(value("first_iops"), Some(2500.0), "the syncfs is not its own");
        assert_eq!(value("second_iops"), Some(400.0), "500 ms of syncfs are its own");
        assert_eq!(value("first_bandwidth"), Some(2500.0 * 4096.0));
        assert_eq!((value("iops"), value("bandwidth")), (None, None));
    }

    #[test]
    fn what_came_in_and_who_wrote_it_are_figures() {
        let network = Some(NetworkTotals { received_bytes: 1000, ..NetworkTotals::default() });
        let peak = Sample::higher("device_write_bytes_per_s_peak", 9.0, Unit::BytesPerSecond);
        let server = Application { name: "smbd/0".into(), read_bytes: 1, write_bytes: 4096 };
        let phase = PhaseRecord {
            totals: Totals { network, blocked_ns: 500_000_000, ..Totals::default() },
            peaks: vec![peak],
            applications: vec![server],
            ..phase(Vec::new())
        };
        let samples = samples(&command(), &[phase]);
        let expected = [
            ("network_received_bits_per_s", 4000.0, Better::Higher),
            ("network_received_drops_per_s", 0.0, Better::Lower),
            ("processes_blocked_mean", 0.25, Better::Lower),
            ("dirty_bytes_max", 0.0, Better::Lower),
            ("device_write_bytes_per_s_peak", 9.0, Better::Higher),
            ("application_smbd_0_write_bytes", 4096.0, Better::Lower),
        ];
        for (metric, value, better) in expected {
            let sample = samples.iter().find(|sample| sample.metric == metric);
            let sample = sample.unwrap_or_else(|| panic!("{metric}"));
            assert_eq!((sample.value, sample.better), (value, better), "{metric}");
        }
        let share = samples.iter().find(|sample| sample.metric == "network_received_share");
        assert_eq!(share, None, "the link's rate is not known");
    }

    #[test]
    fn what_nobody_counts_is_no_figure() {
        let of = |told: &str| {
            let device = Some(serde_json::from_str::<DeviceTotals>(told).unwrap());
            let totals = Totals { device, ..Totals::default() };
            let samples = samples(&command(), &[PhaseRecord { totals, ..phase(Vec::new()) }]);
            let metrics = samples.into_iter().map(|it| it.metric);
            metrics.filter(|it| it.starts_with("device_flush")).collect::<Vec<_>>()
        };
        assert_eq!(of(r#"{"writes":9}"#), [""; 0]);
        assert_eq!(of(r#"{"writes":9,"flushes":0}"#), ["device_flushes", "device_flushes_per_s"]);
        let uncounted = DeviceTotals::default();
        assert!(!serde_json::to_string(&uncounted).unwrap().contains("flushes"));
    }

    #[test]
    fn what_is_not_of_the_same_time_is_not_divided() {
        let device = Some(DeviceTotals { write_bytes: 14, ..DeviceTotals::default() });
        let fio = Some(crate::model::Fio::File("job.fio".into()));
        let workload = Workload { fio, ..Workload::default() };
        let of = |ramped| {
            let totals = Totals { device, ..Totals::default() };
            let part = PhaseRecord { ramped, totals, operations: Some(7), ..phase(Vec::new()) };
            let samples = samples(&workload, &[part]).into_iter();
            samples.map(|it| it.metric).collect::<Vec<_>>()
        };
        let of_both =
            ["device_bytes_per_application_byte", "cpu_per_operation", "processes_per_operation"];
        let (whole, ramped) = (of(false), of(true));
        let left: Vec<_> = whole.iter().filter(|it| !of_both.contains(&it.as_str())).collect();
        assert_eq!(left.len() + of_both.len(), whole.len());
        assert_eq!(ramped.iter().collect::<Vec<_>>(), left);
        assert!(ramped.contains(&"iops".into()) && ramped.contains(&"device_write_bytes".into()));
    }

    #[test]
    fn in_turns_only_the_device_is_a_contenders_own() {
        let device = Some(DeviceTotals { writes: 9, ..DeviceTotals::default() });
        let mut phase = PhaseRecord {
            totals: Totals { device, ..Totals::default() },
            peaks: vec![Sample::higher("device_write_bytes_per_s_peak", 9.0, Unit::BytesPerSecond)],
            ..phase(Vec::new())
        };
        let metrics = |phase: &PhaseRecord| {
            meanwhile(phase).into_iter().map(|it| it.metric).collect::<Vec<_>>()
        };
        let is_of_device = |it: &String| it.starts_with("device_") && !it.ends_with("_peak");
        assert!(!metrics(&phase).iter().all(is_of_device));
        phase.turns = Some(Turns::default());
        let told = metrics(&phase);
        assert!(told.contains(&"device_writes_per_s".into()) && told.iter().all(is_of_device));
    }

    #[test]
    fn a_commands_own_figures_are_new_and_those_it_is_judged_by() {
        let wrong_of = |workload: &Workload, metric: &str| {
            let own = Sample::higher(metric, 5.0, Unit::PerSecond);
            wrong(workload, &samples(workload, &[phase(vec![own])]))
        };
        let judged = Workload { primary: vec!["events".into()], ..command() };
        assert_eq!(wrong_of(&judged, "events"), None);
        assert_eq!(wrong_of(&command(), "events"), None, "wall_time is judged");
        let missing = wrong_of(&judged, "event").unwrap();
        assert!(missing.starts_with("events is to be judged"), "{missing}");
        assert!(missing.ends_with(", event"), "{missing}");
        let twice = wrong_of(&command(), "wall_time").unwrap();
        assert!(twice.starts_with("wall_time is measured by fsverdict"), "{twice}");
    }
}
