//! What one operation of each contender wrote, all of them at a glance: a bar each, by what the
//! blocks are. For kernels this is one plot over their versions.

use maud::{Markup, html};

use super::super::anatomy::{all_written, blocks, flushes, flushes_shown, written};
use super::drawing::{Figure, Live, Place};
use super::palette;
use super::plot::{LINE, percent, row_text};
use super::scale::Scale;
use crate::model::FsyncOperation;
use crate::model::trace::{Operation, Traced};

/// A bar's height, in px, and the room below it.
const BAR: f64 = 10.0;
const GAP: f64 = 8.0;
/// What the parts of a bar are, as [`written`] has them, and their colours.
const PARTS: [(&str, usize); 4] = [
    ("data of the synced file", 0),
    ("data of others", 4),
    ("journal", 1),
    ("the rest, in its place", 2),
];

/// The figure; `None` where there are not several to be seen beside each other.
pub fn figure(traced: &[Traced]) -> Option<Figure> {
    let all: Vec<(&Traced, &Operation)> =
        traced.iter().filter_map(|it| Some((it, it.fsyncs.typical()?.0))).collect();
    if all.len() < 2 {
        return None;
    }
    let are_fsyncs = traced.iter().all(|it| it.operation == FsyncOperation::Fsync);
    let (key, mut top) = key(are_fsyncs);
    let mut panels = Vec::new();
    for its in all.chunk_by(|(one, _), (next, _)| one.workload == next.workload) {
        let (panel, height) = panel(its, top + GAP);
        panels.push(panel);
        top += GAP + height;
    }
    Some(Figure {
        name: "blocks".into(),
        title: "What most operations wrote, in blocks of 4 KiB".into(),
        caption:
            "Only operations whose blocks could all be named. Each workload has its own scale."
                .into(),
        place: Place::Blocks,
        live: Live::Not,
        height: top,
        drawing: html! { (key) @for panel in &panels { (panel) } },
    })
}

/// Which colour is what: two beside each other.
fn key(are_fsyncs: bool) -> (Markup, f64) {
    let shown = |name: &'static str| match name {
        // A file that is renamed need not be synced.
        name if name == PARTS[0].0 && !are_fsyncs => "data of the file itself",
        name => name,
    };
    let markup = html! {
        @for (index, (name, colour)) in PARTS.iter().enumerate() {
            @let (x, y) = ((index % 2) as f64 / 2.0, (index / 2) as f64 * LINE);
            svg x=(percent(x)) y=(y) width="50%" height=(LINE) overflow="visible" {
                rect.heat.(palette::class(*colour)) x="0" y="4" width="20" height=(BAR) {}
                text x="26" y="14" { (shown(name)) }
            }
        }
    };
    (markup, PARTS.len().div_ceil(2) as f64 * LINE)
}

/// A workload's bars; and how high that is.
fn panel(its: &[(&Traced, &Operation)], top: f64) -> (Markup, f64) {
    let most = its.iter().map(|(_, operation)| all_written(operation)).max().unwrap_or(0);
    let scale = Scale::linear(0.0, most.max(1) as f64);
    let mut y = top + LINE;
    let mut rows = Vec::new();
    for (traced, operation) in its {
        let all = blocks(all_written(operation));
        let says = format!("{all} blocks, {}", flushes_shown(flushes(operation)));
        let (text, height) = row_text(y, &traced.contender, &says);
        rows.push(html! { (text) (bar(operation, y + height, &scale)) });
        y += height + BAR + GAP;
    }
    let markup = html! {
        text.strong x="0" y=(top + 14.0) { (its[0].0.workload) }
        @for row in &rows { (row) }
    };
    (markup, y - top)
}

fn bar(operation: &Operation, y: f64, scale: &Scale) -> Markup {
    let mut end = 0;
    let parts = written(operation).into_iter().zip(PARTS).map(|(bytes, (name, colour))| {
        let from = scale.place(end as f64);
        end += bytes;
        (from, scale.place(end as f64) - from, format!("{name}: {} blocks", blocks(bytes)), colour)
    });
    html! {
        @for (from, width, told, colour) in parts.filter(|(_, width, ..)| *width > 0.0) {
            rect.heat.(palette::class(colour)) x=(percent(from)) width=(percent(width)) y=(y)
                height=(BAR) { title { (told) } }
        }
    }
}
