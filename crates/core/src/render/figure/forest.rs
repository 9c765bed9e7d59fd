//! Every comparison as a ratio with its interval, beside the band of differences too small to
//! matter.

use maud::{Markup, html};

use super::super::Report;
use super::super::words::{self, Test};
use super::drawing::{Figure, Live, Place, named};
use super::palette;
use super::plot::{LINE, axis, marks, percent, place, row_text};
use super::scale::Scale;
use crate::model::{Comparison, Family, Joined, Percent, Verdict};

/// Height of the drawn part of a row, in px.
const TRACK: f64 = 16.0;
/// Beyond this factor an interval is cut off at the figure's edge: the others would vanish.
const FACTOR_MAX: f64 = 32.0;

/// One interval: what it is called, and its colour.
struct Row<'a> {
    name: &'a str,
    place: usize,
    comparison: &'a Comparison,
}

impl<'a> Row<'a> {
    /// A contender of the report's own run.
    fn of(report: &Report, comparison: &'a Comparison) -> Row<'a> {
        let name = comparison.contender.as_str();
        Row { name, place: place(report, name), comparison }
    }
}

/// Intervals that stand together.
struct Group<'a> {
    /// What they are of; empty if the group above has it.
    title: String,
    /// What that says of all of them, to the left and to the right.
    terms: Option<[String; 2]>,
    rows: Vec<Row<'a>>,
}

/// The figure, where anything was compared.
pub(super) fn figure(report: &Report) -> Option<Figure> {
    let shown: Vec<&Comparison> =
        report.comparisons.iter().filter(|comparison| comparison.ratio.is_some()).collect();
    let reference = &shown.first()?.reference;
    let same =
        |a: &&Comparison, b: &&Comparison| (&a.workload, &a.metric) == (&b.workload, &b.metric);
    let groups: Vec<Group> = shown
        .chunk_by(same)
        .map(|its| Group {
            title: title(report, its[0]),
            terms: None,
            rows: its.iter().map(|it| Row::of(report, it)).collect(),
        })
        .collect();
    let (drawing, height) = drawn(&groups, Some(report.plan.judgement.margin), reference);
    Some(Figure {
        name: named(&["verdicts"]),
        title: format!("How many times as good as {reference}"),
        caption: caption(report),
        place: Place::Verdicts,
        live: Live::Not,
        height,
        drawing,
    })
}

/// The same for several runs, those of one comparison below each other, if anything was compared.
pub fn joined(joined: &Joined, reports: &[Report]) -> Option<Figure> {
    let mut groups: Vec<Group> = Vec::new();
    let mut before = None;
    for verdict in &joined.verdicts {
        let its = joined.names.iter().zip(&verdict.runs).enumerate();
        let rows: Vec<Row> = its
            .filter_map(|(place, (name, comparison))| {
                let comparison = comparison.as_ref().filter(|it| it.ratio.is_some())?;
                Some(Row { name, place, comparison })
            })
            .collect();
        if rows.is_empty() {
            continue;
        }
        let of = (&verdict.workload, &verdict.metric);
        let is_new = before.replace(of) != Some(of);
        let name = || format!("{}: {}", of.0, words::figure(of.1));
        let title = if is_new { name() } else { String::new() };
        let alike = if verdict.unlike.is_empty() { "" } else { "not the same: see the table" };
        let terms = [format!("{} against {}", verdict.contender, verdict.reference), alike.into()];
        groups.push(Group { title, terms: Some(terms), rows });
    }
    let margins: Vec<Percent> = reports.iter().map(|it| it.plan.judgement.margin).collect();
    let margin = margins.first().copied().filter(|it| margins.iter().all(|other| other == it));
    let (drawing, height) = drawn(&groups, margin, "its reference");
    let band = match margin {
        Some(margin) => {
            format!(" In the grey band differences are under {margin}, too small to matter.")
        }
        None => String::new(),
    };
    (!groups.is_empty()).then(|| Figure {
        name: named(&["verdicts"]),
        title: "How many times as good as the reference of the same run".into(),
        caption: format!(
            "Ratio and interval of each comparison, run by run; to the right of 1 the contender is \
             better.{band} A filled mark is a settled verdict, a hollow one is open, a cross is \
             void. No rate or time of one run is set against another's."
        ),
        place: Place::Verdicts,
        live: Live::Not,
        height,
        drawing,
    })
}

/// The groups below each other, and how high that is.
fn drawn(groups: &[Group], margin: Option<Percent>, reference: &str) -> (Markup, f64) {
    let margin = 1.0 + margin.map_or(0.0, |margin| margin.0);
    let scale = scale(margin, groups);
    let mut rows = Vec::new();
    let mut top = LINE;
    for group in groups {
        if !group.title.is_empty() {
            rows.push(html! { text.strong x="0" y=(top + 16.0) { (group.title) } });
            top += LINE + 6.0;
        }
        if let Some([what, alike]) = &group.terms {
            let (text, height) = row_text(top, what, alike);
            rows.push(text);
            top += height + 4.0;
        }
        for row in &group.rows {
            let (text, height) = row_text(top, row.name, &says(row.comparison));
            rows.push(text);
            rows.push(track(row, &scale, top + height + TRACK / 2.0));
            top += height + TRACK + 4.0;
        }
        top += 8.0;
    }
    let (from, to) = (scale.place(1.0 / margin), scale.place(margin));
    let ticks = scale.ratio_ticks(0.11);
    let ticks: Vec<_> = ticks.iter().map(|tick| (scale.place(*tick), tick.to_string())).collect();
    let one = percent(scale.place(1.0));
    let drawing = html! {
        rect.band x=(percent(from)) width=(percent(to - from)) y=(LINE) height=(top - LINE) {}
        (marks(&ticks, LINE, top))
        line.unity x1=(one) x2=(one) y1=(LINE) y2=(top) {}
        text.muted x="0" y="13" { "← worse than " (reference) }
        text.muted.end x="100%" y="13" { "better →" }
        @for row in &rows { (row) }
        (axis(top, &format!("times as good as {reference}")))
    };
    (drawing, top + 2.0 * LINE)
}

fn caption(report: &Report) -> String {
    let judgement = &report.plan.judgement;
    let family = match judgement.family {
        Family::Workload => "workload",
        Family::Run => "run",
    };
    let mut text = format!(
        "Ratio and interval of each comparison ({} for all of a {} together); to the right of 1 \
         the contender is better. In the grey band differences are under {}, too small to \
         matter. A filled mark is a settled verdict, a hollow one is open, a cross is void.",
        judgement.confidence, family, judgement.margin
    );
    if report.comparisons.iter().any(|comparison| comparison.high.is_none()) {
        text += " A dotted line across stands where there is no interval yet.";
    }
    text
}

/// What is compared.
fn title(report: &Report, comparison: &Comparison) -> String {
    let tests = words::tests(report.plan);
    let of = |it: &&Test| it.workload == comparison.workload && it.metric == comparison.metric;
    tests.iter().find(of).map_or_else(|| comparison.metric.clone(), |it| it.full.clone())
}

fn says(comparison: &Comparison) -> String {
    let ratio = comparison.ratio.unwrap_or(1.0);
    let label = comparison.label();
    match comparison.high {
        Some(_) if comparison.exact => format!("{} exactly, {label}", words::ratio(ratio)),
        Some(high) => {
            let ends = words::from_to(comparison.low, high, words::ratio);
            format!("{} ({ends}) {label}", words::ratio(ratio))
        }
        None => format!("{}, {label}", words::ratio(ratio)),
    }
}

/// An axis on which 1, the margin and all intervals have their places.
fn scale(margin: f64, groups: &[Group]) -> Scale {
    let shown = groups.iter().flat_map(|group| &group.rows).map(|row| row.comparison);
    let ends = shown.flat_map(|it| [it.ratio, Some(it.low), it.high]).flatten();
    let ends = ends.filter(|&it| it > 0.0).map(|it| it.clamp(1.0 / FACTOR_MAX, FACTOR_MAX));
    Scale::around_factors(ends.chain([1.0 / margin, margin]))
}

/// The interval as a line and the ratio as a mark on it.
fn track(row: &Row, scale: &Scale, y: f64) -> Markup {
    let comparison = row.comparison;
    let ratio = scale.place(comparison.ratio.unwrap_or(1.0));
    let (from, to) = match comparison.high {
        Some(high) => (scale.place(comparison.low), scale.place(high)),
        None => (0.0, 1.0),
    };
    let colour = palette::class(row.place);
    let is_open = comparison.high.is_none();
    html! {
        line.interval.(colour).open[is_open] x1=(percent(from)) x2=(percent(to)) y1=(y) y2=(y) {}
        // A place of its own, so that the mark's form is in px.
        svg.(colour) x=(percent(ratio)) y=(y) overflow="visible" {
            @match comparison.verdict {
                Verdict::Void => { path.curve d="M-6-6L6 6M-6 6L6-6" {} }
                verdict if verdict.is_settled() => { circle.estimate r="5.5" {} }
                _ => { circle.estimate.hollow r="5.5" {} }
            }
        }
    }
}
