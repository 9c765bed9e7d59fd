//! One operation: a row for each file, one each for journal, metadata and flushes; time goes from
//! left to right.

use maud::{Markup, html};

use super::super::anatomy::{Lane, blocks, lanes, noun, time};
use super::drawing::{Figure, Live, Place, named};
use super::palette;
use super::plot::{LINE, axis, marks, percent};
use super::scale::Scale;
use crate::model::Unit;
use crate::model::trace::{Entry, Operation, Traced};

/// Where the rows begin, after their names.
const LEFT: f64 = 0.17;
/// A row's height, and that of what stands in it, in px.
const ROW: f64 = 24.0;
const BAR: f64 = 14.0;
/// Anything shorter would not be visible.
const SHORTEST: f64 = 0.004;

/// The figure of the fsync that most of a workload's are like; `None` where there is none, or
/// where the recorder told no times.
pub fn figure(traced: &Traced) -> Option<Figure> {
    let Traced { workload, contender, fsyncs, .. } = traced;
    let (operation, like_it) = fsyncs.typical()?;
    if operation.latency_ns() == 0 {
        return None;
    }
    let (noun, lanes) = (noun(traced), lanes(operation));
    let scale = Scale::linear(0.0, operation.latency_ns().max(1) as f64);
    let bottom = lanes.len() as f64 * ROW;
    let place = |value: f64| LEFT + (1.0 - LEFT) * scale.place(value);
    let ticks = scale.ticks(5, Unit::Nanoseconds);
    let ticks: Vec<(f64, String)> =
        ticks.iter().map(|tick| (place(*tick), Unit::Nanoseconds.format(*tick))).collect();
    let drawing = html! {
        (marks(&ticks, 0.0, bottom))
        @for (number, lane) in lanes.iter().enumerate() {
            (row(operation, lane, number, &place))
        }
        (axis(bottom, &format!("since the {noun} began; a bar is a request, from its start at the \
                                device to its end")))
    };
    let count = fsyncs.operations;
    Some(Figure {
        name: named(&[workload, contender, "order"]),
        title: format!("{workload}, {contender}: one {noun}"),
        caption: format!(
            "Of {count} {noun}s {like_it} wrote the same; one of them with middle latency: {} \
             requests in {}.",
            operation.entries.len(),
            time(operation.latency_ns())
        ),
        place: Place::Order(workload.clone()),
        live: Live::Not,
        height: bottom + 2.0 * LINE,
        drawing,
    })
}

fn row(operation: &Operation, lane: &Lane, number: usize, place: &impl Fn(f64) -> f64) -> Markup {
    let top = number as f64 * ROW;
    let colour = palette::class(lane.colour);
    let bars = lane.marks.iter().filter_map(|mark| {
        let entry = operation.entries.get(mark.request)?;
        let (begin, end) = ends(operation, entry)?;
        let (begin, end) = (place(begin), place(end));
        let told = match mark.bytes {
            0 => "flush".to_string(),
            bytes => format!("{} blocks", blocks(bytes)),
        };
        Some((begin, (end - begin).max(SHORTEST), told))
    });
    html! {
        line.grid x1="0" x2="100%" y1=(top + ROW) y2=(top + ROW) {}
        text x="0" y=(top + 16.0) { (lane.name) }
        @for (begin, width, told) in bars {
            rect.heat.(colour) x=(percent(begin)) width=(percent(width)) y=(top + (ROW - BAR) / 2.0)
                height=(BAR) { title { (told) } }
        }
    }
}

/// From when to when the device had the request, since the operation began.
fn ends(operation: &Operation, entry: &Entry) -> Option<(f64, f64)> {
    let since = |at: u64| at.saturating_sub(operation.begin_ns) as f64;
    let begin = entry.issue_ns.or(entry.complete_ns)?;
    let end = entry.complete_ns.unwrap_or(operation.end_ns);
    Some((since(begin), since(end)))
}
