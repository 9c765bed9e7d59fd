//! What a job did in each of its turns, from fio's own log of each operation.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use fsverdict_core::model::PhaseRecord;
use fsverdict_core::run::HostError;

use super::super::left;
use super::super::relay::Taken;
use crate::timing::Latencies;

/// fio's log says milliseconds, cut off.
const CLOCK_MS: u64 = 1;

/// Has fio write down when each operation was done, and how long it took, by the time of day. Of
/// its three logs one is enough; each takes memory for each operation.
pub fn logs(output: &Path) -> Vec<String> {
    vec![
        format!("--write_lat_log={}", output.with_extension("").display()),
        "--disable_slat=1".into(),
        "--disable_lat=1".into(),
        "--per_job_logs=0".into(),
        "--log_unix_epoch=1".into(),
    ]
}

/// Enters what the log says of the turns into `record`, whose times and figures are those of its
/// turns from then on. fio's own rates are left out: its clock went on between them.
pub fn enter(log: &Path, taken: Taken, record: &mut PhaseRecord) -> Result<(), HostError> {
    let file = left::open(log).map_err(|error| format!("fio's log {}: {error}", log.display()))?;
    let file = BufReader::new(file.take(left::LOG_BYTES));
    let counted = Counted::read(file, &taken.spans_ms)?;
    // A line for each operation: a minute's may be larger than all else that the run keeps.
    fs::remove_file(log)?;
    let mut turns = taken.turns;
    turns.straddling = counted.straddling;
    turns.operations = counted.operations;
    (record.work_ns, record.tool_ns) = (turns.all_ns(), None);
    record.operations = Some(turns.operations.iter().sum());
    let named = |(direction, latencies): (&u64, &Latencies)| {
        // fio(1), "LOG FILE FORMATS": 2 is a trim.
        let name = ["read", "write"].get(usize::try_from(*direction).ok()?)?;
        Some((name.to_string(), latencies.to_model()))
    };
    record.histograms = counted.latencies.iter().filter_map(named).collect();
    record.turns = Some(turns);
    (record.queue, record.rate_over_time) = (None, None);
    record.samples.clear();
    Ok(())
}

/// The operations of each turn.
#[derive(Debug, Default)]
struct Counted {
    operations: Vec<u64>,
    /// Those whose time holds a stop.
    straddling: u64,
    /// Of the others, by direction.
    latencies: BTreeMap<u64, Latencies>,
}

impl Counted {
    /// From a log of completion latencies (fio(1), "LOG FILE FORMATS": time in milliseconds,
    /// latency in nanoseconds, direction), in whatever order, of turns that began and ended then.
    ///
    /// An operation belongs to the turn in which fio saw that it was done. fio sees nothing while
    /// it is stopped, so an operation lies outside the turns only by the difference of two clocks.
    fn read(log: impl BufRead, spans_ms: &[[u64; 2]]) -> Result<Counted, HostError> {
        let mut counted = Counted { operations: vec![0; spans_ms.len()], ..Counted::default() };
        for line in log.lines() {
            let line = line?;
            let mut fields = line.split(',').map(|field| field.trim().parse::<u64>().ok());
            let mut next = || fields.next().flatten();
            let (Some(done_ms), Some(latency_ns), Some(direction)) = (next(), next(), next())
            else {
                continue;
            };
            let Some(place) = nearest(spans_ms, done_ms) else { continue };
            counted.operations[place] += 1;
            let began_ms = done_ms.saturating_sub(latency_ns / 1_000_000);
            if place > 0 && began_ms + CLOCK_MS < spans_ms[place][0] {
                counted.straddling += 1;
            } else {
                counted.latencies.entry(direction).or_default().record(latency_ns);
            }
        }
        Ok(counted)
    }
}

/// The place of the turn that `time_ms` lies in, or next to.
fn nearest(spans_ms: &[[u64; 2]], time_ms: u64) -> Option<usize> {
    let after = spans_ms.partition_point(|span| span[0] <= time_ms);
    let Some(before) = after.checked_sub(1) else { return (!spans_ms.is_empty()).then_some(0) };
    let past_ms = time_ms.saturating_sub(spans_ms[before][1]);
    let is_nearer = |span: &[u64; 2]| span[0] - time_ms < past_ms;
    Some(if spans_ms.get(after).is_some_and(is_nearer) { after } else { before })
}

#[cfg(test)]
mod tests {
    use fsverdict_core::model::{Phase, Turns};

    use super::*;

    const SPANS: [[u64; 2]; 3] = [[1000, 1100], [1200, 1300], [1450, 1550]];

    #[test]
    fn an_operation_is_of_the_turn_in_which_it_was_seen_to_be_done() {
        let places = [900, 1000, 1100, 1149, 1151, 1199, 1300, 1374, 1376, 1600];
        let places = places.map(|ms| nearest(&SPANS, ms).unwrap());
        assert_eq!(places, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2]);
        assert_eq!(nearest(&[], 7), None);
    }

    #[test]
    fn what_holds_a_stop_has_no_latency() {
        let log = "1050, 500000, 1, 4096, 0, 0\n1099, 500000, 1, 4096, 0, 0\n\
                   1201, 90000000, 1, 4096, 0, 0\n1250, 700000, 0, 4096, 0, 0\nnonsense\n";
        let counted = Counted::read(log.as_bytes(), &SPANS).unwrap();
        assert_eq!((counted.operations, counted.straddling), (vec![2, 2, 0], 1));
        let counts = counted.latencies.values().map(Latencies::count).collect::<Vec<_>>();
        assert_eq!(counts, [1, 2], "by direction");
    }

    #[test]
    fn a_record_in_turns_has_the_times_of_its_turns() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fio_clat.log");
        fs::write(&path, "1050, 500000, 1, 4096, 0, 0\n1250, 500000, 1, 4096, 0, 0\n").unwrap();
        let turns = Turns { lasted_ns: vec![100, 110, 120], ..Turns::default() };
        let taken = Taken { turns, spans_ms: SPANS.to_vec() };
        let mut record = PhaseRecord::new(Phase::Whole, 9_000, 50);
        enter(&path, taken, &mut record).unwrap();
        assert_eq!((record.work_ns, record.operations), (330, Some(2)));
        assert_eq!(record.turns.unwrap().operations, [1, 1, 0]);
        assert_eq!(record.histograms["write"].count(), 2);
    }
}
