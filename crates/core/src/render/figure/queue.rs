//! How many requests the device had, over the time of a timed part, by what they do.

use maud::html;

use super::super::anatomy::{op_name, time};
use super::drawing::{Figure, Live, Place, named};
use super::palette;
use super::plot::{LINE, axis, curve, legend, marks, percent, stretched};
use super::scale::Scale;
use crate::model::Unit;
use crate::model::trace::{Columns, Op, Traced};

/// Height of the plot, in px.
const PLOT: f64 = 160.0;
/// Parts of the time, a pixel or more each.
const PARTS: usize = 380;

/// The figure of a workload's first trial on a contender; `None` where the recorder told no times.
pub fn figure(traced: &Traced) -> Option<Figure> {
    let Traced { workload, contender, account, .. } = traced;
    let mean = account.queue.mean()?;
    let course = account.queue.course(PARTS);
    let elapsed_ns = course.elapsed_ns;
    let high = course.depths.values().flatten().copied().fold(0.0, f64::max);
    let scale = Scale::from_nought(high, Unit::Count);
    let entries: Vec<_> = course.depths.keys().map(|op| (op_name(*op), colour(*op))).collect();
    let (legend, height) = legend(&entries);
    let (top, bottom) = (height + LINE, height + LINE + PLOT);
    let end_ns = elapsed_ns.max(1) as f64;
    let of = match account.queue.parts() {
        1 => String::new(),
        parts => format!(" Over all {parts} timed parts:"),
    };
    let ticks = Scale::linear(0.0, end_ns).ticks(5, Unit::Nanoseconds);
    let tick = |ns: &f64| (ns / end_ns, Unit::Nanoseconds.format(*ns));
    let ticks: Vec<(f64, String)> = ticks.iter().map(tick).collect();
    let curves = html! {
        @for (op, depths) in &course.depths {
            @let points = points(depths, &course, &scale);
            path.curve.(palette::class(colour(*op))) d=(curve(&points, PLOT))
                stroke-dasharray=(palette::dashes(colour(*op))) {}
        }
    };
    let drawing = html! {
        (legend)
        (marks(&ticks, top, bottom))
        text.mark.end x="100%" y=(top - 4.0) { (format!("{} at once", scale.high())) }
        line.grid x1="0" x2=(percent(1.0)) y1=(top) y2=(top) {}
        line.grid x1="0" x2=(percent(1.0)) y1=(bottom) y2=(bottom) {}
        (stretched(top, PLOT, &curves))
        (axis(bottom, "since the first request of the timed part"))
    };
    Some(Figure {
        name: named(&[workload, contender, "queue"]),
        title: format!("{workload}, {contender}: requests at the device"),
        caption: format!(
            "The first timed part, from its first request to the end of its last, {}, in parts of \
             {}: average requests at the device.{of} It had {mean:.2} on average while it had \
             any, and {} at most.",
            time(elapsed_ns),
            time(course.column_ns),
            account.queue.most
        ),
        place: Place::Order(workload.clone()),
        live: Live::Not,
        height: bottom + 2.0 * LINE,
        drawing,
    })
}

/// The colour that it has in the picture of one operation, too.
fn colour(op: Op) -> usize {
    match op {
        Op::Write => 0,
        Op::Flush => 3,
        Op::Read => 4,
        Op::Discard => 2,
        Op::Other => 6,
    }
}

fn points(depths: &[f64], course: &Columns, scale: &Scale) -> Vec<Option<(f64, f64)>> {
    let [column, all] = [course.column_ns, course.elapsed_ns.max(1)].map(|ns| ns as f64);
    let at = |(index, depth): (usize, &f64)| {
        let begin = index as f64 * column;
        let middle = f64::midpoint(begin, (begin + column).min(all));
        Some((middle / all, 1.0 - scale.place(*depth)))
    };
    depths.iter().enumerate().map(at).collect()
}
