//! Why one is slower, below the answer: the costs that it surely pays more of, for each contender.

use super::Report;
use super::answer::distance;
use super::matrix::Matrix;
use super::words::{Test, listed, quoted};
use crate::model::{Cause, CausePart, Comparison, Cost, Per, Unit};

/// So many contenders are spoken of, those that differ most.
const CONTENDERS_MAX: usize = 3;
/// So many costs are named of each.
const COSTS_MAX: usize = 2;

/// In a sentence; `None` where counters tell of no cause.
pub(super) fn why(report: &Report, matrix: &Matrix) -> Option<String> {
    let mut told: Vec<&Comparison> = Vec::new();
    let mut explained: Vec<&Comparison> =
        report.comparisons.iter().filter(|it| causes(report, it).next().is_some()).collect();
    explained.sort_by(|one, other| distance(other).total_cmp(&distance(one)));
    for comparison in explained {
        if told.iter().all(|it| it.contender != comparison.contender) {
            told.push(comparison);
        }
    }
    told.truncate(CONTENDERS_MAX);
    let mut sentences: Vec<String> = Vec::new();
    let mut before = None;
    for comparison in told {
        let place = place(matrix, comparison);
        let said = sentence(report, comparison);
        // Where the one before was, too, is said once.
        sentences.push(match &place {
            Some(place) if before.as_ref() != Some(place) => format!("at {place}, {said}"),
            _ => said,
        });
        before = place;
    }
    (!sentences.is_empty()).then(|| format!("Probably why: {}.", sentences.join("; ")))
}

fn causes<'a>(
    report: &Report<'a>,
    comparison: &'a Comparison,
) -> impl Iterator<Item = &'a Cause> + use<'a> {
    report.causes.iter().filter(move |it| {
        (&it.workload, &it.metric, &it.contender)
            == (&comparison.workload, &comparison.metric, &comparison.contender)
    })
}

/// The test, where there are several.
fn place(matrix: &Matrix, comparison: &Comparison) -> Option<String> {
    let is_its = |it: &&Test| {
        (it.workload, &it.metric) == (comparison.workload.as_str(), &comparison.metric)
    };
    let test = matrix.tests.iter().find(is_its).filter(|_| matrix.tests.len() > 1);
    test.map(|test| quoted(&test.doing))
}

/// "xfs takes 34.5 µs of CPU time for each file, ext4 17.8 µs".
fn sentence(report: &Report, comparison: &Comparison) -> String {
    let causes: Vec<&Cause> = causes(report, comparison).take(COSTS_MAX).collect();
    let Comparison { contender, reference, .. } = comparison;
    let slower = &causes[0].slower;
    let faster = if slower == contender { reference } else { contender };
    let clauses: Vec<String> = causes.iter().map(|cause| clause(cause, faster)).collect();
    format!("{slower} {}", clauses.join(", and "))
}

/// "writes 37 bytes for each byte (21 log tree, 12 inodes), ext4 4.6".
fn clause(cause: &Cause, faster: &str) -> String {
    let [more, less] = cause.medians.map(|value| amount(cause, value));
    let does = match cause.cost {
        Cost::WrittenBytes => "writes",
        Cost::ReadBytes => "reads",
        Cost::Writes | Cost::Reads => "gives the device",
        Cost::Flushes => "flushes",
        Cost::CpuTime => "takes",
    };
    let what = match (cause.cost, cause.per) {
        (Cost::WrittenBytes | Cost::ReadBytes, Per::Byte) => " bytes",
        (Cost::Writes, _) => " writes",
        (Cost::Reads, _) => " reads",
        (Cost::CpuTime, _) => " of CPU time",
        _ => "",
    };
    let per = match cause.per {
        Per::Byte => " for each byte",
        Per::File => " for each file",
        Per::Fsync => " for each fsync",
        Per::Operation => " for each operation",
        Per::Trial => "",
    };
    format!("{does} {more}{what}{per}{}, {faster} {less}", parts(cause))
}

/// The kinds of blocks that it reads or writes more of.
fn parts(cause: &Cause) -> String {
    let part = |it: &CausePart| format!("{} of {}", amount(cause, it.medians[0]), it.what);
    let parts: Vec<String> = cause.parts.iter().map(part).collect();
    if parts.is_empty() { String::new() } else { format!(" ({})", listed(&parts)) }
}

fn amount(cause: &Cause, value: f64) -> String {
    match (cause.cost, cause.per) {
        (Cost::Flushes, _) => times(value),
        (_, Per::Byte) => Unit::Ratio.format(value),
        _ if value == 0.0 => "none".into(),
        (cost, _) => cost.unit().format(value),
    }
}

/// How often: counts that are nearly whole are said as whole ones, but never is none at all.
fn times(value: f64) -> String {
    match (value.round(), (value - value.round()).abs() < 0.005) {
        _ if value == 0.0 => "never".into(),
        _ if value < 0.001 => "less than 0.001 times".into(),
        (1.0, true) => "once".into(),
        (2.0, true) => "twice".into(),
        _ => format!("{} times", Unit::Count.format(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{grid, report};
    use super::*;
    use crate::model::Verdict;

    fn cause(test: &str, contender: &str, cost: Cost, per: Per, medians: [f64; 2]) -> Cause {
        Cause {
            workload: test.into(),
            metric: "wall_time".into(),
            contender: contender.into(),
            reference: "c0".into(),
            slower: contender.into(),
            cost,
            per,
            medians,
            ratio: Some(medians[0] / medians[1]),
            interval: None,
            parts: Vec::new(),
        }
    }

    fn said(rows: &[Vec<(Verdict, f64)>], causes: &[Cause]) -> Option<String> {
        let made = grid(rows);
        let report = Report { causes, ..report(&made) };
        why(&report, &Matrix::of(&report))
    }

    #[test]
    fn each_contender_has_a_sentence_on_the_test_where_it_differs_most() {
        use Verdict::Slower;
        let log = CausePart { what: "log tree".into(), medians: [21.0, 0.0] };
        let written = cause("t1", "c1", Cost::WrittenBytes, Per::Byte, [37.0, 4.6]);
        let causes = [
            cause("t0", "c1", Cost::Flushes, Per::Fsync, [2.0, 1.0]),
            Cause { parts: vec![log], ..written },
            cause("t1", "c1", Cost::CpuTime, Per::File, [34_500.0, 17_800.0]),
            cause("t0", "c2", Cost::Flushes, Per::Fsync, [2.0, 1.0]),
        ];
        let rows = [vec![(Slower, 0.8), (Slower, 0.5)], vec![(Slower, 0.4), (Slower, 0.9)]];
        assert_eq!(
            said(&rows, &causes).unwrap(),
            "Probably why: at t1, c1 writes 37.0 bytes for each byte (21.0 of log tree), c0 4.60, \
             and takes 34.5 µs of CPU time for each file, c0 17.8 µs; at t0, c2 flushes twice for \
             each fsync, c0 once."
        );
        assert_eq!(said(&rows, &[]), None);
        let both =
            ["c1", "c2"].map(|name| cause("t0", name, Cost::Flushes, Per::Fsync, [2.0, 1.0]));
        let once = "at t0, c2 flushes twice for each fsync, c0 once; c1 flushes twice";
        assert!(said(&rows, &both).unwrap().contains(once), "{:?}", said(&rows, &both));
        let alone = [vec![(Slower, 0.5)]];
        let requests = [cause("t0", "c1", Cost::Writes, Per::Trial, [2400.0, 0.0])];
        let one = "Probably why: c1 gives the device 2,400 writes, c0 none.";
        assert_eq!(said(&alone, &requests).unwrap(), one);
    }

    #[test]
    fn whole_counts_are_words_and_others_figures() {
        let said = [0.0, 1e-4, 0.004, 1.001, 2.0, 2.4, 12.0].map(times);
        let few = ["never", "less than 0.001 times", "0.0040 times", "once", "twice"];
        assert_eq!(said[..5], few);
        assert_eq!(said[5..], ["2.40 times", "12.0 times"]);
    }
}
