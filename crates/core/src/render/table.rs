//! The table of a workload: a row for each metric and contender.

use std::collections::{BTreeMap, BTreeSet};

use super::Report;
use super::grid::Grid;
use super::words::{from_to, listed};
use crate::model::{
    Application, Bytes, Comparison, Phase, Record, Sample, Unit, Verdict, Workload, median,
    precise, share_of_memory,
};

const HEADER: [&str; 8] = [
    "metric",
    "contender",
    "median",
    "ratio",
    "interval",
    "verdict",
    "CPU",
    "device B per application B",
];

/// The table of `workload`, drawn in `preset`.
pub(super) fn table(report: &Report, workload: &Workload, preset: &str) -> Grid {
    let mut table = Grid::new(preset, HEADER);
    for metric in workload.primary().into_iter().chain(given(report, workload)) {
        for (place, contender) in report.plan.contenders.iter().enumerate() {
            let name = if place == 0 { metric.as_str() } else { "" };
            table.add(row(report, workload, &metric, name, &contender.name));
        }
        for arm in report.plan.arms(workload) {
            let mut row = row(report, workload, &metric, "", &arm.name);
            row[3..6].clone_from_slice(&["-".into(), "".into(), "arm".into()]);
            table.add(row);
        }
    }
    table.right([2, 3, 6, 7]);
    table
}

/// Columns of the table of what CPU and device did, with the metrics they show.
const MEANWHILE: [(&str, &str); 10] = [
    ("CPU user", "cpu_user_share"),
    ("system", "cpu_system_share"),
    ("iowait", "cpu_iowait_share"),
    ("steal", "cpu_steal_share"),
    ("device busy", "device_utilisation"),
    ("queue", "device_queue_depth_mean"),
    ("per read", "device_read_await_ns"),
    ("per write", "device_write_await_ns"),
    ("per flush", "device_flush_await_ns"),
    ("cache hits", "page_cache_hit_share"),
];

/// The same of what came in over a network at its peak, what the device made of it on average and
/// at its peak, and what had piled up meanwhile.
const NETWORK: [(&str, &str); 8] = [
    ("received at most", "network_received_bits_per_s_peak"),
    ("of the link", "network_received_share_peak"),
    ("packets", "network_received_packets_per_s_peak"),
    ("written", "device_write_bytes_per_s"),
    ("at most", "device_write_bytes_per_s_peak"),
    ("queue", "device_queue_depth_mean_peak"),
    ("dirty", "dirty_bytes_max"),
    ("blocked", "processes_blocked_mean"),
];

/// What was seen during `workload` beside its figures: tables with their titles.
pub(super) fn meanwhile(
    report: &Report,
    workload: &Workload,
    preset: &str,
) -> Vec<(&'static str, Grid)> {
    let owned = |columns: &[(&str, &str)]| -> Columns {
        columns.iter().map(|(header, metric)| (header.to_string(), metric.to_string())).collect()
    };
    let mut tables = vec![("What CPU and device did meanwhile", owned(&MEANWHILE))];
    if workload.network.is_some() {
        let columns = [owned(&NETWORK), applications(report, workload)].concat();
        tables.push(("What came in over the network, and what became of it", columns));
    }
    let drawn = |(title, columns): (&'static str, Columns)| {
        Some((title, seen(report, workload, &columns, preset)?))
    };
    tables.into_iter().filter_map(drawn).collect()
}

/// Headers, and the metrics below them.
type Columns = Vec<(String, String)>;

/// What each server stored.
fn applications(report: &Report, workload: &Workload) -> Columns {
    let phases = report.trials(workload).flat_map(|record| &record.phases);
    let all = phases.flat_map(|phase| &phase.applications);
    let mut columns = Columns::new();
    for application in all.filter(|application| application.name != Application::WORK) {
        let column = (format!("{} wrote", application.name), application.metric("write_bytes"));
        if !columns.contains(&column) {
            columns.push(column);
        }
    }
    columns
}

/// A row for each of the phases and contenders. Columns without values in any trial are left out;
/// `None` if no trial has any, as those of older versions.
fn seen(
    report: &Report,
    workload: &Workload,
    columns: &[(String, String)],
    preset: &str,
) -> Option<Grid> {
    let phases = workload.phases().into_iter();
    let named = workload.phases() != [Phase::Whole];
    let told = columns.iter().filter(|(_, metric)| {
        let mut names = phases.clone().map(|phase| phase.prefix() + metric);
        names.any(|name| report.trials(workload).any(|it| it.sample(&name).is_some()))
    });
    let told: Vec<_> = told.collect();
    let head = ["part", "contender"].into_iter().skip((!named).into());
    let header = head.clone().chain(told.iter().map(|(header, _)| header.as_str()));
    let mut table = Grid::new(preset, header);
    table.right(head.count()..table.width);
    for phase in phases {
        for (place, contender) in report.plan.contenders.iter().enumerate() {
            let records = records(report, workload, &contender.name);
            let name = named.then(|| if place == 0 { phase.name() } else { "" }.to_string());
            let metric = |metric: &str| phase.prefix() + metric;
            let cells = told.iter().map(|(_, it)| shown_share(&records, &metric(it)));
            table.add(name.into_iter().chain([contender.name.clone()]).chain(cells));
        }
    }
    (!told.is_empty()).then_some(table)
}

/// The median, of a share as a percentage.
fn shown_share(records: &[&Record], metric: &str) -> String {
    metric_median(records, metric).map_or("-".into(), |(value, unit)| shown(metric, unit, value))
}

/// It is shown as a percentage.
fn is_share(metric: &str) -> bool {
    let metric = metric.strip_suffix("_peak").unwrap_or(metric);
    metric.ends_with("_share") || metric.ends_with("_utilisation")
}

/// A figure for a person, a share as a percentage.
pub(super) fn shown(metric: &str, unit: Unit, value: f64) -> String {
    match is_share(metric) {
        true => format!("{:.1}%", value * 100.0),
        false => unit.format(value),
    }
}

/// The records of one contender's trials of `workload`.
pub(super) fn records<'a>(
    report: &Report<'a>,
    workload: &Workload,
    contender: &str,
) -> Vec<&'a Record> {
    let its = |r: &&Record| r.key.workload == workload.name && r.key.contender == contender;
    report.records.iter().filter(its).collect()
}

/// What a command gives of its own work and is not judged by, in the order it gives it.
fn given(report: &Report, workload: &Workload) -> Vec<String> {
    let primary = workload.primary();
    let own =
        report.trials(workload).flat_map(|record| &record.phases).flat_map(|phase| &phase.samples);
    let mut given = Vec::new();
    for figure in own.filter(|_| workload.command.is_some()) {
        if !primary.contains(&figure.metric) && !given.contains(&figure.metric) {
            given.push(figure.metric.clone());
        }
    }
    given
}

fn row(
    report: &Report,
    workload: &Workload,
    metric: &str,
    name: &str,
    contender: &str,
) -> Vec<String> {
    let records = records(report, workload, contender);
    let figure = |metric: &str| shown_median(&records, metric);
    let prefix = workload.phase_of(metric).prefix();
    let comparison = report
        .comparisons
        .iter()
        .find(|c| c.workload == workload.name && c.metric == metric && c.contender == contender);
    let is_judged = workload.primary().iter().any(|primary| primary == metric);
    let [ratio, interval, verdict] = match comparison {
        Some(comparison) => judged(comparison),
        None if records.iter().any(|record| record.refuses(workload.phase_of(metric))) => {
            ["-".into(), "-".into(), "refused".into()]
        }
        None if !is_judged => ["".into(), "".into(), "not judged".into()],
        None if contender == report.plan.reference() => ["1".into(), "".into(), "reference".into()],
        None => ["-".into(), "-".into(), "".into()],
    };
    let cost = |name: &str| match is_judged {
        true => figure(&format!("{prefix}{name}")),
        false => String::new(),
    };
    vec![
        name.into(),
        contender.into(),
        figure(metric),
        ratio,
        interval,
        verdict,
        cost("cpu_time"),
        cost("device_bytes_per_application_byte"),
    ]
}

/// What each workload goes over, as a part of memory here and in the study.
pub(super) fn working_sets(report: &Report, preset: &str) -> Grid {
    let header = ["workload", "working set", "of memory here", "study's set", "of its memory", ""];
    let mut table = Grid::new(preset, header);
    let bytes = |bytes: Bytes| Unit::Bytes.format(bytes.0 as f64);
    for set in report.working_sets() {
        let cache = match set.local.buffered {
            true => String::new(),
            false => past_memory(report, &set.workload),
        };
        let study = set.study.map(|(set, share)| [bytes(set), share_of_memory(share)]);
        let [study, of_its_memory] = study.unwrap_or(["-".into(), "-".into()]);
        table.add([
            set.workload,
            bytes(set.local.bytes),
            set.share.map_or("-".into(), share_of_memory),
            study,
            of_its_memory,
            cache,
        ]);
    }
    table.right(1..5);
    table
}

/// Direct work, and whose writes of it take the page cache all the same.
fn past_memory(report: &Report, workload: &str) -> String {
    let kernel = report.run.host.get("kernel").map(String::as_str);
    let buffers = |record: &&Record| {
        let writes = record.phases.iter().any(|phase| phase.written_bytes().is_some());
        record.key.workload == workload && writes && record.buffers_direct_writes(kernel)
    };
    let names: BTreeSet<String> =
        report.records.iter().filter(buffers).map(|it| it.key.contender.clone()).collect();
    let names: Vec<String> = names.into_iter().collect();
    match names.is_empty() {
        true => "direct: goes past memory".into(),
        false => format!("direct: goes past memory, but for writes of {}", listed(&names)),
    }
}

/// What a study printed, beside what was measured.
pub(super) fn published(report: &Report, preset: &str) -> Grid {
    let header = ["workload", "published column", "contender", "printed", "ratio", "measured", ""];
    let mut table = Grid::new(preset, header);
    let mut before = ("", "");
    for row in report.published {
        let new = (row.workload.as_str(), row.column.as_str());
        let [workload, column] = match before {
            same if same == new => ["", ""],
            (workload, _) if workload == new.0 => ["", new.1],
            _ => [new.0, new.1],
        };
        before = new;
        let measured = row
            .measured
            .map(|[ratio, low, high]| (precise(ratio), from_to(low, high, precise)))
            .map_or("-".into(), |(ratio, ends)| format!("{ratio} ({ends})"));
        let [printed, reference] = row.printed;
        table.add([
            workload.into(),
            column.into(),
            format!("{} to {}", row.contender, row.reference),
            format!("{printed} to {reference}"),
            precise(row.published_ratio),
            measured,
            row.sentence.clone(),
        ]);
    }
    table
}

/// Ratio, interval and verdict.
pub(super) fn judged(comparison: &Comparison) -> [String; 3] {
    let ratio = comparison.ratio.map_or("-".into(), precise);
    let interval = match comparison.high {
        Some(_) if comparison.exact => "exact".into(),
        Some(high) => from_to(comparison.low, high, precise),
        None => "-".into(),
    };
    let mark =
        if comparison.moved && comparison.verdict != Verdict::Void { " (moved)" } else { "" };
    [ratio, interval, format!("{}{mark}", comparison.label())]
}

/// The median of `metric` over the measured trials, in its unit.
fn shown_median(records: &[&Record], metric: &str) -> String {
    metric_median(records, metric).map_or("-".into(), |(value, unit)| unit.format(value))
}

/// The median over one contender's measured trials, with its unit. If a trial was run again the
/// later record counts.
pub(super) fn metric_median(records: &[&Record], metric: &str) -> Option<(f64, Unit)> {
    let sample = |record: &&Record| Some((record.key.round, record.sample(metric)?.clone()));
    let samples: BTreeMap<u32, Sample> = records.iter().filter_map(sample).collect();
    let unit = samples.values().next()?.unit;
    Some((median(samples.values().map(|sample| sample.value))?, unit))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{grid, report};
    use super::*;
    use crate::judge::testing::{phase, record};
    use crate::model::{Mounted, PhaseRecord};

    #[test]
    fn writes_that_take_the_page_cache_all_the_same_are_named() {
        let whole = grid(&[vec![(Verdict::Faster, 1.1)]]);
        let said = |file_system: &str, written: Option<u64>| {
            let phases =
                vec![PhaseRecord { application_write_bytes: written, ..phase(Phase::Whole) }];
            let mounted = Mounted { file_system: file_system.into(), ..Mounted::default() };
            let records = [Record { phases, mounted: Some(mounted), ..record(1, "t0", "c1") }];
            past_memory(&Report { records: &records, ..report(&whole) }, "t0")
        };
        assert_eq!(said("btrfs", Some(9)), "direct: goes past memory, but for writes of c1");
        for (file_system, written) in [("btrfs", None), ("ext4", Some(9))] {
            assert_eq!(said(file_system, written), "direct: goes past memory");
        }
    }
}
