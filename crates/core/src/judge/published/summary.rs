//! A5: summaries that no set of figures has. A17: figures too coarse to compare.

use super::cells::{Cell, Cells, shown};
use super::found::found;
use super::reach::Reach;
use super::spread::{Spread, spread};
use crate::model::{Audit, Finding, Part, Quantity, Severity, Statistic, Test, Unit, median};

/// A figure of fewer units than this hides differences of a percent.
const UNITS: f64 = 100.0;
/// A deviation is known to its own last digit, which is within this share of it.
const DEVIATION_TOLERANCE: f64 = 0.05;
/// So far may a summary be from that of its runs, relatively: both are written in full.
const RUNS_TOLERANCE: f64 = 1e-6;

/// What they find in one test.
pub fn findings(test: &Test) -> Vec<Finding> {
    let mut findings = Vec::new();
    for cells in Cells::of(test) {
        let mut evidence = orders(cells);
        evidence.extend(totals(cells));
        evidence.extend(rates_over_time(cells));
        evidence.extend(parts_of_time(cells));
        evidence.extend(runs(cells));
        findings.extend(evidence.into_iter().map(|evidence| {
            let kind = (Audit::A5, Severity::Warning);
            let advice = "take the figures from the tool's own output again";
            found(test, &cells.row.contender, kind, evidence, advice)
        }));
    }
    findings.extend(Cells::of(test).flat_map(wide));
    findings.extend(coarse(test));
    findings
}

/// Deviations of runs that no figures of at least 0 can have: for n with mean m the largest is m
/// √n, with all but one 0. One above the mean is possible, but hardly meant. The scatter of single
/// latencies within a run shows neither, nor do a tool's own counts.
fn wide(cells: Cells) -> Vec<Finding> {
    if cells.test.clock_s.is_some() {
        return Vec::new();
    }
    let of = |cell: Cell| {
        let Spread { mean, deviation, is_own } = spread(cells, &cell.column.heading)?;
        let is_of_runs = is_own || cell.column.quantity != Quantity::Latency;
        let is_mean = matches!(cell.column.statistic, None | Some(Statistic::Mean));
        let is_judged = is_mean && cell.column.better().is_some();
        let deviation = deviation.filter(|it| is_judged && is_of_runs && *it > mean)?;
        let scale = cell.figure.scale.unwrap_or(cell.column.scale);
        let shown = match is_own {
            true => cell.shown(),
            false => {
                let deviation = Unit::Count.format(deviation / scale);
                format!("{} and a deviation of {deviation}", cell.shown())
            }
        };
        let runs = cells.test.runs.filter(|runs| *runs > 1);
        let most = runs.map(|runs| (runs, cell.reach().high * f64::from(runs).sqrt()));
        let beyond = |(_, most): &(u32, f64)| deviation * (1.0 - DEVIATION_TOLERANCE) > *most;
        let (severity, evidence) = match most.filter(beyond) {
            Some((runs, most)) => {
                let most = Unit::Count.format(most / scale);
                let why = format!("{runs} runs that can't be below 0 scatter by {most} at most");
                (Severity::Warning, format!("{shown}: {why}"))
            }
            None => (Severity::Note, format!("{shown}: the runs scatter by more than their mean")),
        };
        let advice = "look for one run that stalled or failed, or for a spread in another unit";
        Some(found(cells.test, &cells.row.contender, (Audit::A5, severity), evidence, advice))
    };
    cells.all().filter_map(of).collect()
}

/// The rank of a statistic among those that must not fall.
fn rank(statistic: Statistic) -> Option<f64> {
    match statistic {
        Statistic::Least => Some(0.0),
        Statistic::Quantile(share) => Some(share),
        Statistic::Greatest => Some(1.0),
        Statistic::Mean | Statistic::Deviation => None,
    }
}

/// Statistics of the same thing, two at a time: least, quantiles and greatest in this order, the
/// mean between least and greatest and not below (1 - q) times a quantile (Markov), and no further
/// from the median than a standard deviation (Hotelling and Solomons, 1932).
fn orders(cells: Cells) -> Vec<String> {
    let summarised: Vec<(Cell, Statistic)> =
        cells.all().filter_map(|cell| Some((cell, cell.column.statistic?))).collect();
    let mut wrong = Vec::new();
    for (low, low_is) in &summarised {
        for (high, high_is) in &summarised {
            let (one, other) = (&low.column, &high.column);
            let alike = one.subject == other.subject && one.quantity == other.quantity;
            if alike && !may_stand(&(*low, *low_is), &(*high, *high_is)) {
                wrong.push(format!("{} can't be with {}", low.shown(), high.shown()));
            }
        }
    }
    wrong.extend(mean_and_median(&summarised));
    wrong
}

fn may_stand((low, low_is): &(Cell, Statistic), (high, high_is): &(Cell, Statistic)) -> bool {
    use Statistic::{Greatest, Least, Mean, Quantile};
    let (one, other) = (low.reach(), high.reach());
    match (low_is, high_is) {
        (Least, Mean) | (Mean, Greatest) => !other.is_below(one),
        (Mean, Quantile(share)) => {
            // No more than mean / (1 - q) can have a share of 1 - q above it.
            let most = one.high / (1.0 - share);
            !Reach::exactly(most).is_below(other)
        }
        _ => match (rank(*low_is), rank(*high_is)) {
            (Some(lower), Some(higher)) if lower < higher => !other.is_below(one),
            _ => true,
        },
    }
}

fn mean_and_median(summarised: &[(Cell, Statistic)]) -> Option<String> {
    let find = |wanted: Statistic, subject: &str| {
        let is = |(cell, it): &&(Cell, Statistic)| *it == wanted && cell.column.subject == subject;
        summarised.iter().find(is).map(|(cell, _)| *cell)
    };
    summarised.iter().filter(|(_, it)| *it == Statistic::Deviation).find_map(|(deviation, _)| {
        let subject = &deviation.column.subject;
        let mean = find(Statistic::Mean, subject)?;
        let median = find(Statistic::Quantile(0.5), subject)?;
        let (one, other) = (mean.reach(), median.reach());
        let apart = (one.low - other.high).max(other.low - one.high);
        let far = Reach::exactly(deviation.reach().high).is_below(Reach::exactly(apart.max(0.0)));
        far.then(|| format!("{} can't be with {}", shown(&[mean, median]), deviation.shown()))
    })
}

/// The total that is printed is that of reads and writes together.
fn totals(cells: Cells) -> Vec<String> {
    let quantities = [Quantity::Iops, Quantity::Bandwidth];
    let of = |quantity| {
        let whole = cells.plain(quantity, Part::All)?;
        let parts = [cells.plain(quantity, Part::Read)?, cells.plain(quantity, Part::Write)?];
        let sum = parts[0].reach() + parts[1].reach();
        sum.misses(whole.reach())
            .then(|| format!("{} is not {} together", whole.shown(), shown(&parts)))
    };
    quantities.into_iter().filter_map(of).collect()
}

/// Operations and bytes are their rates times the time.
fn rates_over_time(cells: Cells) -> Vec<String> {
    let mut wrong = Vec::new();
    for part in [Part::Read, Part::Write, Part::All] {
        let runtime = cells.all().find(|cell| {
            let is_time = cell.column.quantity == Quantity::Time;
            is_time && cell.column.part == part && cell.column.subject.ends_with("runtime")
        });
        let pairs = [(Quantity::Iops, Quantity::Count), (Quantity::Bandwidth, Quantity::Bytes)];
        for (rate, amount) in pairs {
            let figures = (runtime, cells.plain(rate, part), cells.plain(amount, part));
            let (Some(time), Some(rate), Some(amount)) = figures else { continue };
            if (rate.reach() * time.reach()).misses(amount.reach()) {
                let over = shown(&[rate, time]);
                wrong.push(format!("{} is not {over} multiplied", amount.shown()));
            }
        }
    }
    wrong
}

/// The parts of a piece of work take its total time: seconds, and rates whose operations are known.
fn parts_of_time(cells: Cells) -> Option<String> {
    let is_time = |cell: &Cell| cell.column.quantity == Quantity::Time;
    let total = cells.all().find(|cell| is_time(cell) && cell.column.subject == "total")?;
    let mut sum = Reach::exactly(0.0);
    let mut parts = Vec::new();
    for cell in cells.all().filter(|cell| cell.column.heading != total.column.heading) {
        sum = sum
            + match (cell.column.quantity, cell.column.statistic) {
                (Quantity::Time, None) if cell.column.is_processor() => continue,
                (Quantity::Time, None) => cell.reach(),
                (Quantity::Rate, None) => {
                    let operations = *cells.test.operations.get(&cell.column.heading)?;
                    Reach::exactly(operations as f64).over(cell.reach())
                }
                _ => continue,
            };
        parts.push(cell);
    }
    let known = parts.len() > 1;
    (known && sum.misses(total.reach())).then(|| {
        let middle = (sum.low + sum.high) / 2.0;
        format!("{} is not what its parts take together, {middle:.2} s", total.shown())
    })
}

/// Mean, median, least and greatest are those of the runs.
fn runs(cells: Cells) -> Vec<String> {
    let times_s = &cells.row.times_s;
    let Some(middle) = median(times_s.iter().copied()) else { return Vec::new() };
    let count = times_s.len() as f64;
    let of = |statistic| match statistic {
        Statistic::Mean => Some(times_s.iter().sum::<f64>() / count),
        Statistic::Least => times_s.iter().copied().reduce(f64::min),
        Statistic::Greatest => times_s.iter().copied().reduce(f64::max),
        Statistic::Quantile(0.5) => Some(middle),
        _ => None,
    };
    let wrong = |cell: Cell| {
        let expected = of(cell.column.statistic?)?;
        let off = (cell.figure.value - expected).abs() > RUNS_TOLERANCE * expected.abs() + 1e-9;
        off.then(|| format!("{} is not that of the {count} runs, {expected}", cell.shown()))
    };
    cells.all().filter_map(wrong).collect()
}

/// A17: fewer than a hundred units of the last digit, or of the tool's clock.
fn coarse(test: &Test) -> Option<Finding> {
    let mut seen: Vec<(&str, f64, String)> = Vec::new();
    for cells in Cells::of(test) {
        for cell in cells.all().filter(|cell| is_compared(*cell, test.clock_s.is_some())) {
            let step = match (cell.column.quantity, test.clock_s) {
                (Quantity::Time, Some(clock_s)) => clock_s / cell.column.scale,
                _ => cell.figure.step,
            };
            let units = cell.figure.value / step;
            if units < UNITS * (1.0 - 1e-9) {
                let heading = cell.column.heading.as_str();
                let text = cell.shown();
                match seen.iter_mut().find(|(known, ..)| *known == heading) {
                    Some(known) if known.1 <= units => {}
                    Some(known) => *known = (heading, units, text),
                    None => seen.push((heading, units, text)),
                }
            }
        }
    }
    let shown: Vec<String> =
        seen.iter().map(|(_, units, text)| format!("{text} has {units:.0}")).collect();
    let clock = if test.clock_s.is_some() { "the tool's clock" } else { "the last digit" };
    let evidence = format!("units of {clock}: {}", shown.join(", "));
    let advice = "measure more work, or print more digits: of n units a difference of 1/n can't be \
                  seen";
    (!seen.is_empty()).then(|| found(test, "", (Audit::A17, Severity::Warning), evidence, advice))
}

/// A figure that contenders are compared by. In a tool's full output these are only its times: the
/// rest follows from them.
fn is_compared(cell: Cell, by_clock: bool) -> bool {
    let column = cell.column;
    let is_whole = matches!(column.statistic, None | Some(Statistic::Mean));
    match column.quantity {
        Quantity::Time if by_clock => is_whole && !cell.column.is_processor(),
        Quantity::Count | Quantity::Bytes | Quantity::Other => false,
        _ => {
            !by_clock && !matches!(column.statistic, Some(Statistic::Deviation | Statistic::Least))
        }
    }
}
