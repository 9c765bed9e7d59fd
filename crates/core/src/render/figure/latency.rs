//! Latencies: how long the slowest part of all operations took, and how that went over the rounds.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::super::{Report, table};
use super::drawing::{Figure, Live, Place, WIDTH, named};
use super::palette;
use super::plot::{LINE, axis, curve, legend, marks, percent, place, stretched};
use super::scale::Scale;
use crate::model::{Histogram, Phase, Record, Unit, Workload};

/// Height of the curves and of a contender's course over the rounds, in px.
const CURVES: f64 = 210.0;
const COURSE: f64 = 72.0;
/// At how many places a curve is drawn.
const POINTS: usize = 160;
/// A course has at most so many columns, each of a round or of several, and so many rows.
const COLUMNS_MAX: usize = 120;
const ROWS: usize = 36;
/// From these shares of a column's operations on a field is darker.
const SHADES: [f64; 5] = [0.0, 0.002, 0.01, 0.05, 0.2];

/// The latencies of one kind of operation: of each contender, round by round.
struct Latencies<'a> {
    operation: &'a str,
    phase: Phase,
    contenders: Vec<(String, Vec<&'a Histogram>)>,
}

impl Latencies<'_> {
    /// Some contender has done so many that a median can be given.
    fn has_quantiles(&self) -> bool {
        self.contenders.iter().any(|(_, all)| merged(all).quantile_ns(0.5).is_some())
    }
}

/// For each timed part and operation: percentiles, and the course over the rounds.
pub(super) fn figures(report: &Report, workload: &Workload) -> Vec<Figure> {
    let mut figures = Vec::new();
    for latencies in of(report, workload) {
        let place = Place::Latency { workload: workload.name.clone(), phase: latencies.phase };
        let figure = |(title, caption, kind, live, (height, drawing)): Parts| Figure {
            name: named(&[&workload.name, latencies.phase.name(), latencies.operation, kind]),
            title,
            caption,
            place: place.clone(),
            live,
            height,
            drawing,
        };
        if latencies.has_quantiles() {
            figures.push(figure(percentiles(report, &latencies)));
        }
        figures.push(figure(course(report, &latencies)));
    }
    figures
}

/// Title, caption, the end of the name, what a script may do, height and drawing.
type Parts = (String, String, &'static str, Live, (f64, Markup));

fn of<'a>(report: &Report<'a>, workload: &Workload) -> Vec<Latencies<'a>> {
    let mut all: Vec<Latencies> = Vec::new();
    let arms = report.plan.arms(workload).into_iter().map(|arm| arm.name);
    let names = report.plan.contenders.iter().map(|it| it.name.clone()).chain(arms);
    for name in names {
        for record in table::records(report, workload, &name) {
            for (phase, operation, histogram) in histograms(record) {
                let known = |it: &Latencies| it.operation == operation && it.phase == phase;
                let index = all.iter().position(known).unwrap_or_else(|| {
                    all.push(Latencies { operation, phase, contenders: Vec::new() });
                    all.len() - 1
                });
                let contenders = &mut all[index].contenders;
                match contenders.last_mut().filter(|(last, _)| *last == name) {
                    Some((_, histograms)) => histograms.push(histogram),
                    None => contenders.push((name.clone(), vec![histogram])),
                }
            }
        }
    }
    all
}

fn histograms(record: &Record) -> impl Iterator<Item = (Phase, &str, &Histogram)> {
    record.phases.iter().flat_map(|phase| {
        let histograms = phase.histograms.iter().filter(|(_, histogram)| histogram.count() > 0);
        histograms.map(move |(operation, histogram)| (phase.phase, operation.as_str(), histogram))
    })
}

/// All operations of a contender together.
fn merged(histograms: &[&Histogram]) -> Histogram {
    let mut buckets: BTreeMap<u64, u64> = BTreeMap::new();
    for &(upper_ns, operations) in histograms.iter().flat_map(|histogram| &histogram.buckets) {
        let count = buckets.entry(upper_ns).or_default();
        *count = count.saturating_add(operations);
    }
    Histogram {
        max_ns: histograms.iter().map(|it| it.max_ns).max().unwrap_or(0),
        sum_ns: histograms.iter().fold(0, |all, it| all.saturating_add(it.sum_ns)),
        buckets: buckets.into_iter().collect(),
    }
}

fn nanoseconds(ns: f64) -> String {
    Unit::Nanoseconds.format(ns)
}

/// "read", or "walk: list" where an operation is not its timed part's only one.
fn title(latencies: &Latencies) -> String {
    match latencies.phase.name() {
        "" => latencies.operation.into(),
        phase if phase == latencies.operation => phase.into(),
        phase => format!("{phase}: {}", latencies.operation),
    }
}

/// So many nines has the share of operations at `x` of the width; an axis ends at `nines`.
fn share_at(x: f64, nines: f64) -> f64 {
    1.0 - 10f64.powf(-x * nines)
}

fn percentiles(report: &Report, latencies: &Latencies) -> Parts {
    let whole: Vec<(&str, Histogram)> =
        latencies.contenders.iter().map(|(name, all)| (name.as_str(), merged(all))).collect();
    let most = whole.iter().map(|(_, it)| it.count()).max().unwrap_or(0);
    // As far as thirty operations lie beyond (`Histogram::quantile_ns`).
    let nines = (most as f64 / 30.0).log10().max(0.5);
    let points = |histogram: &Histogram| -> Vec<Option<u64>> {
        let at = |index: usize| index as f64 / (POINTS - 1) as f64;
        (0..POINTS).map(|index| histogram.quantile_ns(share_at(at(index), nines))).collect()
    };
    let curves: Vec<_> = whole.iter().map(|(name, it)| (*name, points(it))).collect();
    let known = curves.iter().flat_map(|(_, points)| points).flatten();
    let scale = Scale::around_factors(known.map(|&ns| ns.max(1) as f64));
    let entries: Vec<_> = curves.iter().map(|(name, _)| (*name, place(report, name))).collect();
    let (legend, top) = legend(&entries);
    let top = top + 8.0;
    let inside = html! {
        @for (name, points) in &curves { (line(report, name, points, nines, &scale)) }
    };
    let drawing = html! {
        (legend)
        (levels(&scale, 5, top, CURVES, &|tick| is_free_on_the_left(&curves, &scale, tick)))
        (marks(&share_marks(nines), top, top + CURVES))
        (stretched(top, CURVES, &inside))
        (axis(top + CURVES, "share of all operations that ended within that latency"))
    };
    let caption = format!(
        "The latency within which each share of all operations ended, over all rounds; lower is \
         better. A curve ends where fewer than 30 operations lie beyond. {}",
        quantiles(&whole)
    );
    let title = format!("Latency of {}", title(latencies));
    (title, caption, "latency", Live::Curves, (top + CURVES + 2.0 * LINE, drawing))
}

fn quantiles(whole: &[(&str, Histogram)]) -> String {
    let shown = |(name, histogram): &(&str, Histogram)| {
        let quantile = |(name, q)| Some((name, histogram.quantile_ns(q)? as f64));
        let known = [("median", 0.5), ("99%", 0.99)].into_iter().filter_map(quantile);
        let known = known.map(|(name, ns)| format!("{name} {}", nanoseconds(ns)));
        let max = format!("longest {}", nanoseconds(histogram.max_ns as f64));
        format!("{name}: {}", known.chain([max]).collect::<Vec<_>>().join(", "))
    };
    whole.iter().map(shown).collect::<Vec<_>>().join("; ") + "."
}

fn line(report: &Report, name: &str, points: &[Option<u64>], nines: f64, scale: &Scale) -> Markup {
    let x = |index: usize| index as f64 / (POINTS - 1) as f64;
    let known = |(index, ns): (usize, &Option<u64>)| {
        ns.map(|ns| (x(index), 1.0 - scale.place(ns.max(1) as f64)))
    };
    let path = curve(&points.iter().enumerate().map(known).collect::<Vec<_>>(), CURVES);
    let said = points.iter().enumerate().map(|(index, ns)| {
        let share = shown_share(share_at(x(index), nines), nines);
        ns.map(|ns| format!("{share} within {}", nanoseconds(ns as f64))).unwrap_or_default()
    });
    let shown = said.collect::<Vec<_>>().join("|");
    let place = place(report, name);
    html! {
        path.curve.(palette::class(place)) stroke-dasharray=(palette::dashes(place)) d=(path)
            data-name=(name) data-shown=(shown) {}
    }
}

/// A share with as many decimals as tell the last one before all from all.
fn shown_share(share: f64, nines: f64) -> String {
    let decimals = (nines - 2.0).ceil().max(3.0) as usize;
    format!("{:.decimals$}%", share * 100.0)
}

/// Shares that are marked, as far as the axis goes.
fn share_marks(nines: f64) -> Vec<(f64, String)> {
    let marks = [0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999_999];
    let place = |share: f64| -(1.0 - share).log10() / nines;
    let inside = marks.into_iter().filter(|&share| place(share) < 1.0);
    let shown = inside.map(|share| (place(share), format!("{}%", round(share * 100.0))));
    shown.collect()
}

fn round(percentage: f64) -> f64 {
    (percentage * 1e4).round() / 1e4
}

/// Whether a mark's text at the left end is farther from all curves than at the right.
fn is_free_on_the_left(curves: &[(&str, Vec<Option<u64>>)], scale: &Scale, tick: f64) -> bool {
    const END: usize = POINTS / 8;
    // The middle of the text, which stands on its line.
    let text = scale.place(tick) + 8.0 / CURVES;
    let room = |range: std::ops::Range<usize>| {
        let near = curves.iter().flat_map(|(_, points)| &points[range.clone()]).flatten();
        let away = near.map(|&ns| (scale.place(ns.max(1) as f64) - text).abs());
        away.fold(f64::INFINITY, f64::min)
    };
    room(0..END) > room(POINTS - END..POINTS)
}

/// Lines across at about `wanted` round latencies, each with its text upon it if there is room, at
/// the end where `is_left` has it.
fn levels(
    scale: &Scale,
    wanted: usize,
    top: f64,
    height: f64,
    is_left: &dyn Fn(f64) -> bool,
) -> Markup {
    html! {
        @for tick in scale.ticks(wanted, Unit::Nanoseconds) {
            @let y = top + (1.0 - scale.place(tick)) * height;
            line.grid x1="0" x2="100%" y1=(y) y2=(y) {}
            @if y - top > 14.0 {
                @let (x, anchor) = if is_left(tick) { ("0", "start") } else { ("100%", "end") };
                text.mark x=(x) text-anchor=(anchor) y=(y - 3.0) { (nanoseconds(tick)) }
            }
        }
    }
}

fn course(report: &Report, latencies: &Latencies) -> Parts {
    let all = || latencies.contenders.iter().flat_map(|(_, histograms)| histograms);
    let buckets = || all().flat_map(|histogram| &histogram.buckets);
    let scale = Scale::around_factors(buckets().map(|&(upper_ns, _)| upper_ns.max(1) as f64));
    let mut drawn = Vec::new();
    let mut top = 0.0;
    let mut together = 1;
    for (name, histograms) in &latencies.contenders {
        together = together.max(histograms.len().div_ceil(COLUMNS_MAX));
        let colour = palette::class(place(report, name));
        let fields = html! { g.(colour) { (fields(histograms, &scale)) } };
        drawn.push(html! {
            text x="0" y=(top + 14.0) { (name) }
            (stretched(top + LINE, COURSE, &fields))
            (levels(&scale, 3, top + LINE, COURSE, &|_| false))
            line.grid x1="0" x2=(percent(1.0)) y1=(top + LINE + COURSE) y2=(top + LINE + COURSE) {}
        });
        top += LINE + COURSE + 10.0;
    }
    let drawing = html! {
        @for part in &drawn { (part) }
        (axis(top - LINE, "trials in their order"))
    };
    let columns = match together {
        1 => "A column is a trial".to_string(),
        _ => format!("A column is up to {together} trials"),
    };
    let caption = format!(
        "{columns}, from the first to the last; the darker, the more of its operations took that \
         long."
    );
    let title = format!("Latency of {}, over the rounds", title(latencies));
    (title, caption, "latency-rounds", Live::Not, (top + LINE, drawing))
}

/// Fields of a shade are one path: a rectangle for each share of a column's operations.
fn fields(histograms: &[&Histogram], scale: &Scale) -> Markup {
    let together = histograms.len().div_ceil(COLUMNS_MAX);
    let columns: Vec<_> = histograms.chunks(together).collect();
    let (width, height) = (WIDTH / columns.len() as f64, COURSE / ROWS as f64);
    let mut paths = SHADES.map(|_| String::new());
    for (index, column) in columns.iter().enumerate() {
        let mut counts = [0u64; ROWS];
        for &(upper_ns, operations) in column.iter().flat_map(|histogram| &histogram.buckets) {
            let row = (scale.place(upper_ns.max(1) as f64) * ROWS as f64) as usize;
            let count = &mut counts[row.min(ROWS - 1)];
            *count = count.saturating_add(operations);
        }
        let whole = counts.iter().fold(0_u64, |all, count| all.saturating_add(*count));
        for (row, count) in counts.into_iter().enumerate().filter(|(_, count)| *count > 0) {
            let share = count as f64 / whole as f64;
            let shade = SHADES.iter().rposition(|from| share > *from).unwrap_or(0);
            let (x, y) = (index as f64 * width, COURSE - (row + 1) as f64 * height);
            paths[shade] += &format!("M{x:.1} {y:.1}h{width:.1}v{height:.1}h-{width:.1}z");
        }
    }
    html! {
        @for (shade, path) in (1..).zip(&paths) {
            @if !path.is_empty() { path.heat.{ "h" (shade) } d=(path) {} }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_of_rounds_add_up() {
        let one = Histogram { max_ns: 30, sum_ns: 70, buckets: vec![(20, 2), (30, 1)] };
        let other = Histogram { max_ns: 40, sum_ns: 60, buckets: vec![(20, 1), (40, 1)] };
        let whole = merged(&[&one, &other]);
        assert_eq!(whole.buckets, [(20, 3), (30, 1), (40, 1)]);
        assert_eq!((whole.max_ns, whole.sum_ns, whole.count()), (40, 130, 5));
    }

    #[test]
    fn the_last_share_is_not_all() {
        assert_eq!(shown_share(share_at(1.0, 6.0), 6.0), "99.9999%");
        assert_eq!(shown_share(share_at(1.0, 5.3), 5.3), "99.9995%");
        assert_eq!(shown_share(share_at(0.5, 2.0), 2.0), "90.000%");
    }

    #[test]
    fn shares_are_marked_as_far_as_they_are_known() {
        let texts =
            |nines| share_marks(nines).into_iter().map(|(_, text)| text).collect::<Vec<_>>();
        assert_eq!(texts(2.5), ["50%", "90%", "99%"]);
        assert_eq!(texts(0.5), ["50%"]);
        assert!((share_at(0.5, 2.0) - 0.9).abs() < 1e-12);
    }
}
