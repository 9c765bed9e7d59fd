//! How a metric went over many runs: a row for each series, with its changes and, below all rows,
//! the kernel and the version that each run had.

use maud::{Markup, html};

use super::super::history::{day, is_drawn, name_of, shown, when};
use super::super::words::from_to;
use super::drawing::{Figure, Live, Place, WIDTH, named};
use super::palette;
use super::plot::{LINE, marks, percent, row_text, stretched};
use super::scale::Scale;
use crate::model::{History, Past, Point, Series, Unit, Verdict, median, precise};

/// Height of a row's drawn part, in px.
const PANEL: f64 = 84.0;
/// Kept free at its top and bottom, so that dots are whole.
const ROOM: f64 = 5.0;
/// Above a row with changes, for their numbers.
const NUMBERS: f64 = 16.0;
/// Height of a strip, and of its name above it.
const STRIP: [f64; 2] = [20.0, 18.0];
/// The part of the width that runs have; the rest has room for the marks of the axis.
const SHARE: f64 = 0.88;
/// So wide a figure is on a phone, in letters.
const LETTERS: f64 = 54.0;
/// From so many runs on dots are drawn small.
const MANY: usize = 150;
/// An axis shows at least so much to either side of the middle, so that noise looks like noise.
const SPAN_MIN: f64 = 0.1;
/// Beyond this factor from the outermost dots an interval is cut off.
const BEYOND_MAX: f64 = 1.3;

/// A figure for each metric of each workload, in the history's order.
pub(in super::super) fn figures(history: &History) -> Vec<Figure> {
    let mut kinds: Vec<(&str, &str)> = Vec::new();
    for series in history.series.iter().filter(|it| is_drawn(history, it)) {
        let kind = (series.workload.as_str(), series.metric.as_str());
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let mut figures: Vec<Figure> =
        kinds.into_iter().map(|(workload, metric)| figure(history, workload, metric)).collect();
    super::number(&mut figures);
    figures
}

fn figure(history: &History, workload: &str, metric: &str) -> Figure {
    let is_its =
        |it: &&Series| it.workload == workload && it.metric == metric && is_drawn(history, it);
    let mut rows = Vec::new();
    let mut top = 0.0;
    let mut number = 0;
    for (place, series) in history.series.iter().filter(is_its).enumerate() {
        let (text, height) = row_text(top, &name_of(history, series), &says(series));
        rows.push(text);
        top += height + if series.shifts.is_empty() { 0.0 } else { NUMBERS };
        rows.push(row(history, series, place, top, number));
        number += series.shifts.len();
        top += PANEL + 10.0;
    }
    let bottom = top;
    for (name, values) in told(history) {
        if values.windows(2).any(|pair| pair[0] != pair[1]) {
            rows.push(strip(name, &values, top));
            top += STRIP[0] + STRIP[1] + 4.0;
        }
    }
    let drawing = html! {
        (marks(&dates(&history.runs), 0.0, top))
        @for row in &rows { (row) }
    };
    Figure {
        name: named(&[workload, metric, "history"]),
        title: format!("{metric} over {} run{}", history.runs.len(), s(history.runs.len())),
        caption: caption(history, top > bottom),
        place: Place::Trend(workload.into()),
        live: Live::Dots,
        height: top + LINE,
        drawing,
    }
}

fn s(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// What each run had: kernel, version, processor.
fn told(history: &History) -> [(&'static str, Vec<&str>); 3] {
    let each = |value: fn(&Past) -> Option<&str>| {
        history.runs.iter().map(|run| value(run).unwrap_or("not known")).collect()
    };
    [
        ("kernel", each(|run| run.kernel.as_deref())),
        ("fsverdict", each(|run| Some(&run.program_version))),
        ("processor", each(|run| run.processor.as_deref())),
    ]
}

fn caption(history: &History, has_strips: bool) -> String {
    let mut caption = "A dot is a run. Runs stand in the order of time, equally far apart. A \
                       contender's dot is its ratio to the reference of the same run, above 1 is \
                       better, and the bar is the interval; the reference's dot is its median. \
                       Each row has an axis of its own; a line stands at the median between two \
                       changes."
        .to_string();
    if history.series.iter().any(|series| !series.shifts.is_empty()) {
        caption += " A dashed line is a change, with its number below.";
    }
    if history.series.iter().flat_map(|it| &it.points).any(is_void) {
        caption += " A cross is void.";
    }
    let [kernels, versions, processors] = told(history).map(|(_, values)| values);
    if processors.windows(2).any(|pair| pair[0] != pair[1]) {
        caption += " The machines differ: their medians can't be compared.";
    }
    if !has_strips {
        let (kernel, version) = (kernels[0], versions[0]);
        caption += &format!(" All runs had kernel {kernel} and fsverdict {version}.");
    }
    caption
}

fn is_void(point: &Point) -> bool {
    point.verdict == Some(Verdict::Void)
}

/// What is drawn of a run: the ratio, of the reference its median.
fn figure_of(point: &Point) -> f64 {
    point.ratio.unwrap_or(point.median)
}

fn says(series: &Series) -> String {
    let ends = [series.points.first(), series.points.last()].map(|it| it.map(figure_of));
    match ends {
        [Some(first), Some(last)] if series.points.len() > 1 => {
            format!("first {}, last {}", shown(series, first), shown(series, last))
        }
        [Some(only), _] => shown(series, only),
        _ => String::new(),
    }
}

/// Where a run's part of the width begins.
fn begin(run: usize, runs: usize) -> f64 {
    run as f64 / runs as f64 * SHARE
}

/// The middle of a run's part of the width.
fn at(run: usize, runs: usize) -> f64 {
    (run as f64 + 0.5) / runs as f64 * SHARE
}

/// Dots, intervals, medians and changes of one series.
fn row(history: &History, series: &Series, place: usize, top: f64, number: usize) -> Markup {
    let runs = history.runs.len();
    let scale = scale(series);
    let height = |value: f64| ROOM + (1.0 - scale.place(value)) * (PANEL - 2.0 * ROOM);
    let colour = palette::class(place);
    let mut dots = String::new();
    let mut bars = String::new();
    for point in &series.points {
        let x = at(point.run, runs) * WIDTH;
        // A line without length is a dot: its caps are round.
        dots += &format!("M{x:.1} {:.1}h.01", height(figure_of(point)));
        if let (Some(_), Some(high)) = (point.ratio, point.high) {
            bars += &format!("M{x:.1} {:.1}V{:.1}", height(point.low), height(high));
        }
    }
    let said: Vec<String> =
        series.points.iter().map(|it| said(series, it, &history.runs[it.run])).collect();
    let is_many = runs > MANY;
    let inside = html! {
        path.whisker.(colour) d=(bars) {}
        path.step d=(steps(series, runs, &height)) {}
        path.dots.(colour).many[is_many] d=(dots) data-name=(name_of(history, series))
            data-shown=(said.join("|")) {}
    };
    html! {
        (levels(series, &scale, top, &height))
        (stretched(top, PANEL, &inside))
        @for point in series.points.iter().filter(|point| is_void(point)) {
            svg.(colour) x=(percent(at(point.run, runs))) y=(top + height(figure_of(point)))
                overflow="visible" { path.curve d="M-6-6L6 6M-6 6L6-6" {} }
        }
        @for (number, shift) in (number + 1..).zip(&series.shifts) {
            @let x = percent(begin(shift.run, runs));
            line.shift x1=(x) x2=(x) y1=(top) y2=(top + PANEL) {}
            text.strong x=(x) y=(top - 3.0) text-anchor="middle" { (number) }
        }
    }
}

/// An axis that holds the dots, and of the intervals what is not far away.
fn scale(series: &Series) -> Scale {
    let values = || series.points.iter().map(figure_of);
    let low = values().fold(f64::INFINITY, f64::min) / BEYOND_MAX;
    let high = values().fold(f64::NEG_INFINITY, f64::max) * BEYOND_MAX;
    let known = series.points.iter().filter(|point| point.ratio.is_some() && point.high.is_some());
    let ends = known.flat_map(|point| [Some(point.low), point.high]).flatten();
    let ends = ends.map(|end| end.clamp(low, high));
    let middle = median(values()).unwrap_or(1.0);
    let room = [middle * (1.0 - SPAN_MIN), middle * (1.0 + SPAN_MIN)];
    Scale::around(values().chain(ends).chain(room))
}

/// Round values with a line each, and a stronger one at 1.
fn levels(series: &Series, scale: &Scale, top: f64, height: &impl Fn(f64) -> f64) -> Markup {
    let unit = if series.is_of_reference() { series.unit } else { Unit::Ratio };
    html! {
        line.grid x1="0" x2="100%" y1=(top) y2=(top) {}
        line.grid x1="0" x2="100%" y1=(top + PANEL) y2=(top + PANEL) {}
        @for tick in scale.ticks(4, unit) {
            @let y = top + height(tick);
            @let is_one = !series.is_of_reference() && (tick - 1.0).abs() < 1e-9;
            line.grid.unity[is_one] x1="0" x2="100%" y1=(y) y2=(y) {}
            @if y - top > 12.0 {
                text.mark.end x="100%" y=(y - 3.0) { (unit.format(tick)) }
            }
        }
    }
}

/// The medians of the runs between two changes.
fn steps(series: &Series, runs: usize, height: &impl Fn(f64) -> f64) -> String {
    let shifts = series.shifts.iter().map(|shift| shift.run);
    let ends: Vec<usize> = [0].into_iter().chain(shifts).chain([runs]).collect();
    let mut path = String::new();
    for pair in ends.windows(2) {
        let its = series.points.iter().filter(|it| (pair[0]..pair[1]).contains(&it.run));
        let its: Vec<&Point> = its.filter(|point| !is_void(point)).collect();
        let (Some(first), Some(last)) = (its.first(), its.last()) else { continue };
        let Some(middle) = median(its.iter().map(|point| figure_of(point))) else { continue };
        let [from, to] = [first.run, last.run + 1].map(|run| begin(run, runs) * WIDTH);
        path += &format!("M{from:.1} {:.1}H{to:.1}", height(middle));
    }
    path
}

/// What a dot says.
fn said(series: &Series, point: &Point, run: &Past) -> String {
    let kernel = run.kernel.as_deref().unwrap_or("not known");
    let value = shown(series, figure_of(point));
    let interval = match (point.ratio, point.high) {
        (Some(_), Some(high)) => format!(" ({})", from_to(point.low, high, precise)),
        _ => String::new(),
    };
    let verdict = point.verdict.map_or(String::new(), |it| format!(", {}", it.label()));
    let Past { run: name, program_version, .. } = run;
    format!(
        "{value}{interval}{verdict}; {} {name}, kernel {kernel}, fsverdict {program_version}",
        day(run)
    )
    .replace('|', "/")
}

/// What each run had, as stretches of the same, each with its name where it has room.
fn strip(name: &str, values: &[&str], top: f64) -> Markup {
    let mut from = 0;
    let stretches = values.chunk_by(|one, other| one == other).map(|stretch| {
        from += stretch.len();
        (from - stretch.len(), stretch.len(), stretch[0])
    });
    html! {
        text.mark x="0" y=(top + STRIP[0] - 5.0) { (name) }
        @for (index, (from, length, value)) in stretches.enumerate() {
            @let (x, width) = (begin(from, values.len()), begin(length, values.len()));
            rect.stretch.other[index % 2 == 1] x=(percent(x)) width=(percent(width))
                y=(top + STRIP[0]) height=(STRIP[1]) { title { (name) " " (value) } }
            @if (value.chars().count() + 1) as f64 <= width * LETTERS {
                text.mark x=(percent(x)) dx="4" y=(top + STRIP[0] + 13.0) { (value) }
            }
        }
    }
}

/// A few of the runs, with their days; with their times where all are of one day.
fn dates(runs: &[Past]) -> Vec<(f64, String)> {
    const WANTED: usize = 3;
    let count = runs.len().min(WANTED);
    let last = runs.len().saturating_sub(1);
    let chosen = (0..count).map(|it| if count < 2 { 0 } else { it * last / (count - 1) });
    chosen.map(|run| (at(run, runs.len()), when(runs, &runs[run]))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Better, Place, Shift};

    fn run(day: u32) -> Past {
        Past {
            run: format!("run {day}"),
            started: format!("2026-03-{day:02}T01:02:03Z"),
            kernel: Some(if day < 3 { "6.1" } else { "6.12" }.into()),
            processor: None,
            program_version: "1".into(),
            place: Place::Sim,
            differences: Vec::new(),
        }
    }

    /// Four runs; the last two are slower, the second is void.
    fn history() -> History {
        let point = |(run, ratio): (usize, f64)| Point {
            run,
            median: 3.0,
            ratio: Some(ratio),
            low: ratio * 0.9,
            high: (run != 2).then_some(ratio * 1.1),
            rounds: 4,
            verdict: Some(if run == 1 { Verdict::Void } else { Verdict::Faster }),
        };
        let shift = Shift {
            run: 2,
            runs: vec![2],
            ratio: 0.8,
            low: 0.75,
            high: Some(0.85),
            runs_before: 2,
            runs_after: 2,
            chance: 0.001,
            differences: Vec::new(),
        };
        let series = Series {
            workload: "a b".into(),
            metric: "wall_time".into(),
            unit: Unit::Seconds,
            better: Better::Lower,
            contender: "<new>".into(),
            reference: "old".into(),
            variant: 1,
            machine: None,
            points: [1.5, 7.0, 1.2, 1.2].into_iter().enumerate().map(point).collect(),
            silent: 0,
            gaps: Vec::new(),
            stands_out: None,
            shifts: vec![shift],
            trend: None,
            unclear: None,
            visible: None,
        };
        History { runs: (1..=4).map(run).collect(), series: vec![series], fleets: Vec::new() }
    }

    #[test]
    fn a_change_stands_between_the_runs_and_the_medians_beside_it() {
        let history = history();
        let series = &history.series[0];
        let path = steps(series, 4, &|value| value * 10.0);
        assert_eq!(path, "M0.0 15.0H167.2M334.4 12.0H668.8", "void runs have no say");
        let [figure] = &figures(&history)[..] else { panic!() };
        assert_eq!(figure.name, "a-b-wall_time-history");
        let svg = figure.svg();
        for part in [
            "x1=\"44.00%\" x2=\"44.00%\"",
            ">1</text>",
            "<title>kernel 6.12</title>",
            "data-name=\"&lt;new&gt; against old\"",
            "1.200 (1.080 to 1.320), faster; 2026-03-04 run 4, kernel 6.12, fsverdict 1",
            "1.200, faster; 2026-03-03",
        ] {
            assert!(svg.contains(part), "{part}: {svg}");
        }
        assert!(!svg.contains(">fsverdict</text>"), "what is the same all along has no strip");
        assert_eq!(svg.matches("M-6-6L6 6").count(), 1);
    }

    #[test]
    fn a_history_of_one_run_is_drawn_too() {
        let mut history = history();
        history.runs.truncate(1);
        history.series[0].points.truncate(1);
        history.series[0].shifts.clear();
        let [figure] = &figures(&history)[..] else { panic!() };
        assert_eq!(figure.title, "wall_time over 1 run");
        assert!(figure.caption.ends_with("kernel 6.1 and fsverdict 1."), "{}", figure.caption);
        assert!(!figure.svg().contains("NaN"));
    }

    #[test]
    fn few_dates_are_marked_from_the_first_to_the_last() {
        let runs: Vec<Past> = (1..=10).map(run).collect();
        let days: Vec<_> = dates(&runs).into_iter().map(|(_, day)| day).collect();
        assert_eq!(days, ["2026-03-01", "2026-03-05", "2026-03-10"]);
        assert_eq!(dates(&[run(1), run(1)])[1].1, "01:02");
        assert!(dates(&[]).is_empty());
    }
}
