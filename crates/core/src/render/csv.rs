//! `samples.csv`: tidy, a row for each sample.

use crate::model::{Record, Sample};

/// All samples of all trials. Columns: trial, round, position, workload, contender, seed, metric,
/// value, unit, better.
pub fn samples(records: &[Record]) -> String {
    chosen(records, |_, _| true)
}

/// [`samples`] that `wanted` wants.
pub(super) fn chosen(records: &[Record], wanted: impl Fn(&Record, &Sample) -> bool) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let header = [
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
    // Writing to memory does not fail.
    let _ = writer.write_record(header);
    for record in records {
        let key = &record.key;
        for sample in record.samples.iter().filter(|sample| wanted(record, sample)) {
            let better = match sample.better {
                crate::model::Better::Higher => "higher",
                crate::model::Better::Lower => "lower",
            };
            let _ = writer.write_record([
                &record.number.to_string(),
                &key.round.to_string(),
                &record.position.to_string(),
                &key.workload,
                &key.contender,
                &record.seed.to_string(),
                &sample.metric,
                &sample.value.to_string(),
                sample.unit.symbol(),
                better,
            ]);
        }
    }
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}
