//! The parts that figures share: axes, legends, curves.

use maud::{Markup, html};

use super::super::Report;
use super::drawing::WIDTH;
use super::palette::{class, dashes};

/// Height of a line of text, in px.
pub(super) const LINE: f64 = 20.0;

/// How many letters of a figure's text stand beside each other on a phone: 358 px of 6.6 px.
const LETTERS: usize = 54;

/// A part of the width as SVG writes it.
pub(super) fn percent(share: f64) -> String {
    format!("{:.2}%", share * 100.0)
}

/// A contender's or an arm's place among the plan's contenders, which gives it colour and dashes;
/// arms come after all contenders.
pub(super) fn place(report: &Report, name: &str) -> usize {
    let contenders = &report.plan.contenders;
    contenders.iter().position(|contender| contender.name == name).unwrap_or(contenders.len())
}

/// A row's name to the left, what it says to the right; `top` of one line, or of two where they
/// are too long for a phone. How high that is.
pub(super) fn row_text(top: f64, name: &str, says: &str) -> (Markup, f64) {
    let is_long = name.chars().count() + says.chars().count() + 2 > LETTERS;
    let below = if is_long { LINE - 3.0 } else { 0.0 };
    let markup = html! {
        text x="0" y=(top + 14.0) { (name) }
        text.end.muted x="100%" y=(top + 14.0 + below) { (says) }
    };
    (markup, LINE + below)
}

/// Where an axis' mark has its text: at the figure's ends within it.
pub(super) fn anchor(share: f64) -> &'static str {
    match share {
        share if share < 0.1 => "start",
        share if share > 0.9 => "end",
        _ => "middle",
    }
}

/// Marks below a plot, each with its text, and lines upwards from them.
pub(super) fn marks(marks: &[(f64, String)], top: f64, bottom: f64) -> Markup {
    html! {
        g.marks {
            @for (share, text) in marks {
                line.grid x1=(percent(*share)) x2=(percent(*share)) y1=(top) y2=(bottom) {}
                text.mark x=(percent(*share)) y=(bottom + 15.0) text-anchor=(anchor(*share)) {
                    (text)
                }
            }
        }
    }
}

/// What an axis is of, below its marks, in a line of [`LINE`].
pub(super) fn axis(bottom: f64, text: &str) -> Markup {
    html! { text.mark x="50%" y=(bottom + 32.0) text-anchor="middle" { (text) } }
}

/// Names with the lines that stand for them, as many in a row as a phone has room for. How high
/// that is.
pub(super) fn legend(entries: &[(&str, usize)]) -> (Markup, f64) {
    let longest = entries.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let columns = (LETTERS / (longest + 6)).clamp(1, 4);
    let markup = html! {
        @for (index, (name, place)) in entries.iter().enumerate() {
            @let (row, column) = (index / columns, index % columns);
            @let y = row as f64 * LINE;
            svg x=(percent(column as f64 / columns as f64)) y=(y) width="25%" height=(LINE)
                overflow="visible" {
                line.curve.(class(*place)) x1="0" x2="26" y1="10" y2="10"
                    stroke-dasharray=(dashes(*place)) {}
                text x="32" y="14" { (name) }
            }
        }
    };
    (markup, entries.len().div_ceil(columns) as f64 * LINE)
}

/// A plot that is stretched to the figure's width, with coordinates from 0 to [`WIDTH`].
pub(super) fn stretched(top: f64, height: f64, inside: &Markup) -> Markup {
    html! {
        svg.plot x="0" y=(top) width="100%" height=(height) preserveAspectRatio="none"
            viewBox=(format!("0 0 {WIDTH} {height}")) { (inside) }
    }
}

/// A curve through `points`, each as shares of the width and, from the top, of `height`; broken
/// where there is none.
pub(super) fn curve(points: &[Option<(f64, f64)>], height: f64) -> String {
    let mut path = String::new();
    let mut command = 'M';
    for point in points {
        let Some((x, y)) = point else {
            command = 'M';
            continue;
        };
        path += &format!("{command}{:.1} {:.1}", x * WIDTH, y * height);
        // A lone point is a dot.
        path += if command == 'M' { "h.1" } else { "" };
        command = 'L';
    }
    path
}
