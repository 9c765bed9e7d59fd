//! The table of a workload: a row for each metric and contender.

use comfy_table::{CellAlignment, Table};

use super::Report;
use crate::model::{Comparison, Phase, Record, Unit, Verdict, Workload, median};

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
pub(super) fn table(report: &Report, workload: &Workload, preset: &str) -> Table {
    let mut table = Table::new();
    table.load_preset(preset).set_header(HEADER);
    for metric in workload.primary() {
        for (place, contender) in report.plan.contenders.iter().enumerate() {
            let name = if place == 0 { metric.as_str() } else { "" };
            table.add_row(row(report, workload, &metric, name, &contender.name));
        }
        for arm in report.plan.arms(workload) {
            let mut row = row(report, workload, &metric, "", &arm.name);
            row[3..6].clone_from_slice(&["-".into(), "".into(), "arm".into()]);
            table.add_row(row);
        }
    }
    for column in [2, 3, 6, 7] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn row(
    report: &Report,
    workload: &Workload,
    metric: &str,
    name: &str,
    contender: &str,
) -> Vec<String> {
    let records: Vec<&Record> = report
        .records
        .iter()
        .filter(|r| r.key.workload == workload.name && r.key.contender == contender)
        .collect();
    let figure = |metric: &str| shown_median(&records, metric);
    let phase = prefix(workload, metric);
    let comparison = report
        .comparisons
        .iter()
        .find(|c| c.workload == workload.name && c.metric == metric && c.contender == contender);
    let [ratio, interval, verdict] = match comparison {
        Some(comparison) => judged(comparison),
        None => ["1".into(), "".into(), "reference".into()],
    };
    vec![
        name.into(),
        contender.into(),
        figure(metric),
        ratio,
        interval,
        verdict,
        figure(&format!("{phase}cpu_time")),
        figure(&format!("{phase}device_bytes_per_application_byte")),
    ]
}

/// What the metrics of the same phase as `metric` begin with.
fn prefix(workload: &Workload, metric: &str) -> String {
    let named = workload.phases().into_iter().map(Phase::name).filter(|name| !name.is_empty());
    named
        .map(|name| format!("{name}_"))
        .find(|prefix| metric.starts_with(prefix.as_str()))
        .unwrap_or_default()
}

/// What a study printed, beside what was measured.
pub(super) fn published(report: &Report, preset: &str) -> Table {
    let mut table = Table::new();
    table.load_preset(preset).set_header([
        "workload",
        "published column",
        "contender",
        "printed",
        "ratio",
        "measured",
        "",
    ]);
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
            .map_or("-".into(), |[ratio, low, high]| format!("{ratio:.3} ({low:.3} to {high:.3})"));
        let [printed, reference] = row.printed;
        table.add_row([
            workload.into(),
            column.into(),
            format!("{} to {}", row.contender, row.reference),
            format!("{printed} to {reference}"),
            format!("{:.3}", row.published_ratio),
            measured,
            row.sentence.clone(),
        ]);
    }
    table
}

fn judged(comparison: &Comparison) -> [String; 3] {
    let ratio = comparison.ratio.map_or("-".into(), |ratio| format!("{ratio:.3}"));
    let interval = match comparison.high {
        Some(high) => format!("{:.3} to {high:.3}", comparison.low),
        None => "-".into(),
    };
    let mark =
        if comparison.moved && comparison.verdict != Verdict::Void { " (moved)" } else { "" };
    [ratio, interval, format!("{}{mark}", comparison.verdict.label())]
}

/// The median of `metric` over the measured trials, in its unit.
fn shown_median(records: &[&Record], metric: &str) -> String {
    let samples: Vec<_> = records.iter().filter_map(|record| record.sample(metric)).collect();
    let unit = samples.first().map_or(Unit::Ratio, |sample| sample.unit);
    median(samples.iter().map(|sample| sample.value)).map_or("-".into(), |value| unit.format(value))
}
