//! `samples.csv`: tidy, a row for each sample.

use super::text::csv_cell;
use crate::model::{Better, Record, Sample};

/// What each column is of.
const HEADER: [&str; 10] = [
    "trial",
    "round",
    "position",
    "workload",
    "contender",
    "seed",
    "metric",
    "value",
    "unit",
    "better",
];

/// All samples of all trials. Columns: trial, round, position, workload, contender, seed, metric,
/// value, unit, better.
pub fn samples(records: &[Record]) -> String {
    chosen(records, |_, _| true)
}

/// [`samples`] of several runs, with the run's name as the first column.
pub fn samples_of_runs(runs: &[(&str, &[Record])]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    // Writing to memory does not fail.
    let _ = writer.write_record(["run"].into_iter().chain(HEADER));
    for (run, records) in runs {
        for (record, sample) in
            records.iter().flat_map(|it| it.samples.iter().map(move |s| (it, s)))
        {
            let _ = writer.write_record([csv_cell(run)].into_iter().chain(row(record, sample)));
        }
    }
    text(writer)
}

/// [`samples`] that `wanted` wants.
pub(super) fn chosen(records: &[Record], wanted: impl Fn(&Record, &Sample) -> bool) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let _ = writer.write_record(HEADER);
    for record in records {
        for sample in record.samples.iter().filter(|sample| wanted(record, sample)) {
            let _ = writer.write_record(row(record, sample));
        }
    }
    text(writer)
}

fn text(writer: csv::Writer<Vec<u8>>) -> String {
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}

fn row(record: &Record, sample: &Sample) -> [String; 10] {
    let key = &record.key;
    let better = match sample.better {
        Better::Higher => "higher",
        Better::Lower => "lower",
    };
    [
        record.number.to_string(),
        key.round.to_string(),
        record.position.to_string(),
        csv_cell(&key.workload),
        csv_cell(&key.contender),
        record.seed.to_string(),
        csv_cell(&sample.metric),
        sample.value.to_string(),
        sample.unit.symbol().into(),
        better.into(),
    ]
}
