//! The matrix as a figure of its own, to paste into a post; and an interval as a cell has it.

use maud::{Markup, html};

use super::super::Report;
use super::super::answer::answer;
use super::super::facts::title;
use super::super::findings::unequal;
use super::super::matrix::{Cell, Group, Matrix, Row, Tone, sign};
use super::super::paint::wrapped;
use super::super::words;
use super::drawing::{Figure, Live, Place, WIDTH, named};
use super::plot::percent;
use super::scale::Scale;
use crate::model::Comparison;

/// Beyond this factor an interval is cut off at the cell's edge: the others would vanish.
const FACTOR_MAX: f64 = 8.0;
/// So many contenders have room for their intervals as lines.
pub(in crate::render) const TRACKS_MAX: usize = 4;
/// So many stand beside each other where there are none.
const ACROSS_MAX: usize = 8;
/// Widths of the first two columns and of a letter, and heights of lines and rows, in px.
const NAME: f64 = 186.0;
const REFERENCE: f64 = 84.0;
const LETTER: f64 = 7.2;
const LINE: f64 = 18.0;
const ROW: f64 = 28.0;

/// The axis that all cells share.
#[derive(Debug)]
pub(in crate::render) struct Ruler {
    scale: Scale,
    margin: f64,
}

impl Ruler {
    /// The axis of a matrix' intervals.
    pub fn of(matrix: &Matrix) -> Ruler {
        let margin = 1.0 + matrix.margin.0;
        let ends = matrix.judged().flat_map(|(_, it)| [it.ratio, Some(it.low), it.high]).flatten();
        let ends = ends.filter(|&it| it > 0.0).map(|it| it.clamp(1.0 / FACTOR_MAX, FACTOR_MAX));
        Ruler { scale: Scale::around_factors(ends.chain([1.0 / margin, margin])), margin }
    }

    /// What is to be known to read it.
    pub fn said(&self, matrix: &Matrix) -> String {
        let [low, high] = [self.scale.low(), self.scale.high()].map(words::ratio);
        format!("line: interval, grey band: ±{}, from {low} to {high}", matrix.margin)
    }

    /// The interval as a line and the ratio as a dot upon it, beside the band of what is too small
    /// to matter; 20 px high.
    pub fn track(&self, comparison: &Comparison) -> Markup {
        let [from, to] = [1.0 / self.margin, self.margin].map(|it| self.scale.place(it));
        let ratio = comparison.ratio.map(|ratio| self.scale.place(ratio));
        let ends =
            comparison.high.map(|high| [comparison.low, high].map(|it| self.scale.place(it)));
        let is_open = !comparison.verdict.is_settled();
        html! {
            rect.band x=(percent(from)) width=(percent(to - from)) y="2" height="16" {}
            @if let Some([low, high]) = ends {
                line.interval x1=(percent(low)) x2=(percent(high)) y1="10" y2="10" {}
            }
            @if let Some(ratio) = ratio {
                circle.estimate.hollow[is_open] cx=(percent(ratio)) cy="10" r="4.2" {}
            }
        }
    }
}

/// The figure, where there is anything to compare.
pub(super) fn figure(report: &Report) -> Option<Figure> {
    let matrix = Matrix::of(report);
    matrix.judged().next()?;
    let terms = unequal(report.findings).into_iter();
    let answer = [answer(report, &matrix)].into_iter().chain(terms).collect::<Vec<_>>().join(" ");
    let ruler = Ruler::of(&matrix);
    let mut parts = Vec::new();
    let mut top = 0.0;
    text_lines(&mut parts, &mut top, &answer, "");
    top += 8.0;
    let count = matrix.columns.len();
    let across = if count <= TRACKS_MAX { count } else { ACROSS_MAX };
    for (block, columns) in matrix.columns.chunks(across).enumerate() {
        let width = (WIDTH - NAME - REFERENCE) / columns.len().max(across.min(count)) as f64;
        let drawing = Drawing { matrix: &matrix, ruler: &ruler, width, from: block * across };
        drawing.block(&mut parts, &mut top, columns);
        top += 10.0;
    }
    let mut legend = matrix.legend();
    if count <= TRACKS_MAX {
        legend.push(ruler.said(&matrix));
    }
    text_lines(&mut parts, &mut top, &legend.join(";  "), "muted");
    Some(Figure {
        name: named(&["matrix"]),
        title: title(report),
        caption: format!("{answer} A cell: the ratio to {} and its interval.", matrix.reference),
        place: Place::Matrix,
        live: Live::Not,
        height: top,
        drawing: html! { @for part in &parts { (part) } },
    })
}

/// A text in as many lines as it takes.
fn text_lines(parts: &mut Vec<Markup>, top: &mut f64, text: &str, class: &str) {
    for line in wrapped(text, (WIDTH / LETTER) as usize) {
        *top += LINE;
        parts.push(html! { text class=(class) x="0" y=(*top - 4.0) { (line) } });
    }
}

/// Columns beside each other.
struct Drawing<'a> {
    matrix: &'a Matrix<'a>,
    ruler: &'a Ruler,
    /// The width of a column of cells, in px.
    width: f64,
    /// The first of them.
    from: usize,
}

impl Drawing<'_> {
    fn block(&self, parts: &mut Vec<Markup>, top: &mut f64, columns: &[String]) {
        self.header(parts, top, columns);
        for group in &self.matrix.groups {
            if let Some(title) = &group.title {
                *top += LINE + 4.0;
                parts.push(html! { text.strong x="0" y=(*top - 4.0) { (title) } });
                if let Some(figure) = &group.reference {
                    let said = format!("{}: {figure}", self.matrix.reference);
                    parts.push(html! { text.muted.end x="100%" y=(*top - 4.0) { (said) } });
                }
            }
            for row in &group.rows {
                self.row(parts, top, group, row, columns.len());
            }
        }
    }

    fn header(&self, parts: &mut Vec<Markup>, top: &mut f64, columns: &[String]) {
        let letters = |width: f64| ((width - 8.0) / LETTER).max(4.0) as usize;
        let names: Vec<Vec<String>> =
            columns.iter().map(|name| wrapped(name, letters(self.width))).collect();
        let has_reference = self.matrix.ways.is_none();
        let reference = if has_reference { self.matrix.reference } else { "" };
        let reference = wrapped(reference, letters(REFERENCE));
        let height = names.iter().chain([&reference]).map(Vec::len).max().unwrap_or(1);
        for at in 0..height {
            *top += LINE;
            if let Some(line) = reference.get(at) {
                let x = NAME + REFERENCE - 14.0;
                parts.push(html! { text.strong.end x=(x) y=(*top - 4.0) { (line) } });
            }
            for (place, name) in names.iter().enumerate() {
                let x = self.left(place) + 6.0;
                if let Some(line) = name.get(at) {
                    parts.push(html! { text.strong x=(x) y=(*top - 4.0) { (line) } });
                }
            }
        }
        parts.push(html! { line.unity x1="0" x2="100%" y1=(*top + 2.0) y2=(*top + 2.0) {} });
        *top += 4.0;
    }

    fn left(&self, place: usize) -> f64 {
        NAME + REFERENCE + place as f64 * self.width
    }

    fn row(&self, parts: &mut Vec<Markup>, top: &mut f64, group: &Group, row: &Row, across: usize) {
        let indent = if group.title.is_some() { 14.0 } else { 0.0 };
        let names = wrapped(&row.name, ((NAME - indent) / LETTER) as usize);
        let height = ROW.max(names.len() as f64 * LINE + 8.0);
        let middle = *top + height / 2.0;
        let first = middle + 4.5 - (names.len() as f64 - 1.0) * LINE / 2.0;
        for (at, line) in names.iter().enumerate() {
            parts.push(html! { text x=(indent) y=(first + at as f64 * LINE) { (line) } });
        }
        if let Some(figure) = &row.reference {
            let x = NAME + REFERENCE - 14.0;
            parts.push(html! { text.muted.end x=(x) y=(middle + 4.5) { (figure) } });
        }
        for place in 0..across {
            parts.push(self.cell(&row.cells[self.from + place], self.left(place), middle));
        }
        *top += height;
        parts.push(html! { line.grid x1="0" x2="100%" y1=(*top) y2=(*top) {} });
    }

    fn cell(&self, cell: &Cell, x: f64, middle: f64) -> Markup {
        let (y, width) = (middle - 11.0, self.width - 4.0);
        let comparison = match cell {
            Cell::Judged(comparison) => comparison,
            Cell::Reference => return html! { text.muted x=(x + 6.0) y=(middle + 4.5) { "1" } },
            Cell::Empty(why) => {
                return html! { text.muted x=(x + 6.0) y=(middle + 4.5) { (why) } };
            }
        };
        let (sign, tone) = sign(comparison.verdict);
        let ratio = comparison.ratio.map_or("-".into(), words::ratio);
        let is_wide = self.matrix.columns.len() <= TRACKS_MAX;
        html! {
            g.(tone.name()) {
                rect.ground x=(x) y=(y) width=(width) height="22" rx="4" {}
                text x=(x + 6.0) y=(middle + 4.5) { (sign) }
                text.strong x=(x + 24.0) y=(middle + 4.5) { (ratio) }
                @if is_wide && tone != Tone::Void {
                    svg x=(x + 68.0) y=(middle - 10.0) width=(width - 76.0) height="20" {
                        (self.ruler.track(comparison))
                    }
                }
            }
        }
    }
}
