//! A1: figures that follow from one another and don't.

use super::cells::{Cell, Cells, shown};
use super::found::found;
use super::reach::Reach;
use crate::model::{Audit, Finding, Part, Quantity, Severity, Test};

/// Ratios that show one unit under the name of another (1024 and 1000), once or more often.
const MIXED: [(f64, &str); 3] =
    [(1.024, "kB and KiB"), (1.024 * 1.024, "MB and MiB"), (1.024 * 1.024 * 1.024, "GB and GiB")];

/// Factors that show another unit than the heading's: that of bits is also between MB and MiB.
const SLIPS: [(f64, &str); 3] =
    [(8.0, "bits?"), (8.0 / (1.024 * 1.024), "bits?"), (1000.0, "thousands?")];
/// Between figures that are printed with few digits, such a factor is so near.
const SLIP_NEAR: f64 = 0.02;

/// What a ratio that should be 1 may come from.
pub fn slip(ratio: f64) -> Option<&'static str> {
    let is = |factor: f64| (ratio / factor - 1.0).abs() < SLIP_NEAR;
    SLIPS.iter().find(|(factor, _)| is(*factor) || is(1.0 / factor)).map(|(_, unit)| *unit)
}

/// Bandwidth is IOPS times the block size: of reads, of writes, and of both.
pub fn findings(test: &Test) -> Vec<Finding> {
    let Some(block_bytes) = test.job.block_bytes else { return Vec::new() };
    let mut findings = Vec::new();
    for cells in Cells::of(test) {
        let pair = |part| {
            let one = |quantity| cells.plain(quantity, part).map(|cell| (cell.reach(), vec![cell]));
            Some((one(Quantity::Bandwidth)?, one(Quantity::Iops)?))
        };
        let both = || Some((cells.total(Quantity::Bandwidth)?, cells.total_iops()?));
        let pairs = [pair(Part::Read), pair(Part::Write), both()].into_iter().flatten();
        let evidence = pairs.filter_map(|(bandwidth, iops)| disagree(block_bytes, bandwidth, iops));
        let mut evidence: Vec<(String, Severity, &str)> = evidence.collect();
        evidence.dedup();
        findings.extend(evidence.into_iter().map(|(evidence, severity, advice)| {
            found(test, &cells.row.contender, (Audit::A1, severity), evidence, advice)
        }));
    }
    findings
}

const ADVICE: &str = "take both from the tool's own output again; until then believe neither";
/// What to do where figures agree in another unit.
pub const SLIP_ADVICE: &str = "ask for the unit: the figures may agree in another than the \
                               heading's";
/// Figures that are so near each other are of one measurement.
const NEAR: f64 = 0.05;
const SMALL: &str = "one of the two is rounded twice, or of another stretch of time: a \
                     difference as small as this means nothing";

fn disagree(
    block_bytes: u64,
    (bandwidth, of_bandwidth): (Reach, Vec<Cell>),
    (iops, of_iops): (Reach, Vec<Cell>),
) -> Option<(String, Severity, &'static str)> {
    let follows = iops * Reach::exactly(block_bytes as f64);
    if !bandwidth.misses(follows) {
        return None;
    }
    let ratio = bandwidth.over(follows);
    let is = |factor: f64| ratio.low <= factor && factor <= ratio.high;
    let mixed = MIXED.iter().find(|(factor, _)| is(*factor) || is(1.0 / factor));
    let middle = bandwidth.middle() / follows.middle();
    let slip = slip(middle);
    let unit = match (mixed, slip) {
        (Some((_, units)), _) => format!(": {units} are mixed"),
        (None, Some(unit)) => format!(": {unit}"),
        (None, None) => String::new(),
    };
    let evidence = format!(
        "{} is {middle:.3} of what follows from {} in blocks of {block_bytes} bytes{unit}",
        shown(&of_bandwidth),
        shown(&of_iops),
    );
    Some(match mixed {
        None if (middle - 1.0).abs() < NEAR => (evidence, Severity::Note, SMALL),
        None if slip.is_some() => (evidence, Severity::Warning, SLIP_ADVICE),
        _ => (evidence, Severity::Warning, ADVICE),
    })
}
