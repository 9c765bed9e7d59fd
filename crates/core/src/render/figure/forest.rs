//! Every comparison as a ratio with its interval, beside the band of differences too small to
//! matter.

use maud::{Markup, html};

use super::super::Report;
use super::plot::{LINE, marks, percent, place, row_text};
use super::scale::Scale;
use super::{Figure, Live, Place, named, palette};
use crate::model::{Comparison, Verdict};

/// Height of the drawn part of a row, in px.
const TRACK: f64 = 16.0;
/// Beyond this factor an interval is cut off at the figure's edge: the others would vanish.
const FACTOR_MAX: f64 = 32.0;

/// The figure, where anything was compared.
pub(super) fn figure(report: &Report) -> Option<Figure> {
    let shown: Vec<&Comparison> =
        report.comparisons.iter().filter(|comparison| comparison.ratio.is_some()).collect();
    let reference = &shown.first()?.reference;
    let scale = scale(report, &shown);
    let mut rows = Vec::new();
    let mut top = LINE;
    let same =
        |a: &&Comparison, b: &&Comparison| (&a.workload, &a.metric) == (&b.workload, &b.metric);
    for group in shown.chunk_by(same) {
        let title = title(report, group[0]);
        rows.push(html! { text.strong x="0" y=(top + 16.0) { (title) } });
        top += LINE + 6.0;
        for comparison in group {
            let (text, height) = row_text(top, &comparison.contender, &says(comparison));
            rows.push(text);
            rows.push(track(report, comparison, &scale, top + height + TRACK / 2.0));
            top += height + TRACK + 4.0;
        }
        top += 8.0;
    }
    let margin = 1.0 + report.plan.judgement.margin.0;
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
    };
    Some(Figure {
        name: named(&["verdicts"]),
        title: format!("How many times as good as {reference}"),
        caption: caption(report),
        place: Place::Verdicts,
        live: Live::Not,
        height: top + LINE,
        drawing,
    })
}

fn caption(report: &Report) -> String {
    let judgement = &report.plan.judgement;
    let mut text = format!(
        "Ratio and {} interval of each comparison; to the right of 1 the contender is better. In \
         the grey band differences are under {}, too small to matter. A filled mark is a settled \
         verdict, a hollow one is open, a cross is void.",
        judgement.confidence, judgement.margin
    );
    if report.comparisons.iter().any(|comparison| comparison.high.is_none()) {
        text += " A dotted line across stands where there is no interval yet.";
    }
    text
}

/// What is compared, by as few names as tell it.
fn title(report: &Report, comparison: &Comparison) -> String {
    match report.plan.workloads.len() {
        1 => comparison.metric.clone(),
        _ => format!("{}, {}", comparison.workload, comparison.metric),
    }
}

fn says(comparison: &Comparison) -> String {
    let ratio = comparison.ratio.unwrap_or(1.0);
    let label = comparison.verdict.label();
    match comparison.high {
        Some(high) => format!("{ratio:.3} ({:.3} to {high:.3}) {label}", comparison.low),
        None => format!("{ratio:.3}, {label}"),
    }
}

/// An axis on which 1, the margin and all intervals have their places.
fn scale(report: &Report, shown: &[&Comparison]) -> Scale {
    let margin = 1.0 + report.plan.judgement.margin.0;
    let ends = shown.iter().flat_map(|it| [it.ratio, Some(it.low), it.high]).flatten();
    let ends = ends.filter(|&it| it > 0.0).map(|it| it.clamp(1.0 / FACTOR_MAX, FACTOR_MAX));
    Scale::around_factors(ends.chain([1.0 / margin, margin]))
}

/// The interval as a line and the ratio as a mark on it.
fn track(report: &Report, comparison: &Comparison, scale: &Scale, y: f64) -> Markup {
    let ratio = scale.place(comparison.ratio.unwrap_or(1.0));
    let (from, to) = match comparison.high {
        Some(high) => (scale.place(comparison.low), scale.place(high)),
        None => (0.0, 1.0),
    };
    let colour = palette::class(place(report, &comparison.contender));
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
