//! The matrix on a page: the first that one sees of a report.

use maud::{Markup, html};

use super::super::Report;
use super::super::figure::{Ruler, TRACKS_MAX};
use super::super::findings::unequal;
use super::super::matrix::{Cell, Group, Matrix, Row, said, sign, tally};
use super::super::next::{self, Kept, Step};
use super::super::why::why;
use super::super::words;

/// Why, the matrix with its legend, and what to do next.
pub(super) fn first(report: &Report, matrix: &Matrix) -> Markup {
    let ruler = (matrix.columns.len() <= TRACKS_MAX).then(|| Ruler::of(matrix));
    html! {
        @if let Some(terms) = unequal(report.findings) { p { (terms) } }
        @if let Some(why) = why(report, matrix) { p.why { (why) } }
        div #matrix.scroll role="region" tabindex="0" aria-label="The matrix" {
            table.matrix.narrow[ruler.is_none()] {
                caption { "Each contender against " (matrix.reference) ", test by test" }
                (header(matrix))
                @for group in &matrix.groups { (body(matrix, group, ruler.as_ref())) }
            }
        }
        p.legend {
            @for part in matrix.legend() { span { (part) } }
            @if let Some(folded) = matrix.legend_of_folded() { span { (folded) } }
            @if let Some(ruler) = &ruler { span.ruler { (ruler.said(matrix)) } }
        }
        (steps(report))
    }
}

fn header(matrix: &Matrix) -> Markup {
    html! {
        thead { tr {
            th scope="col" { (matrix.corner) }
            @match &matrix.ways {
                None => { th.reference scope="col" { (matrix.reference) } },
                Some(_) => {},
            }
            @for name in &matrix.columns {
                th scope="col" {
                    @match &matrix.ways {
                        Some(ways) => { (ways.second) " " (name) },
                        None => { (name) },
                    }
                }
            }
        } }
    }
}

fn body(matrix: &Matrix, group: &Group, ruler: Option<&Ruler>) -> Markup {
    let is_folded = matrix.is_folded(group);
    let columns = matrix.columns.len();
    let before = if matrix.ways.is_some() { 1 } else { 2 };
    html! {
        tbody.folded[is_folded] {
            @if let Some(title) = &group.title {
                tr.group {
                    @if is_folded {
                        th scope="rowgroup" colspan=(before) {
                            label {
                                input type="checkbox" aria-label={ "show all of " (title) };
                                (title) " " span.count {
                                    (group.rows.len()) " "
                                    (matrix.ways.as_ref().map_or("test", |ways| ways.first)) "s"
                                }
                            }
                        }
                        @for column in 0..columns { td.tally { (tallied(group, column)) } }
                    } @else {
                        th scope="rowgroup" colspan=(columns + before) {
                            (title)
                            @if let Some(figure) = &group.reference {
                                " " span.count { (matrix.reference) ": " (figure) }
                            }
                        }
                    }
                }
            }
            @for row in &group.rows { (drawn(matrix, group, row, ruler)) }
        }
    }
}

fn tallied(group: &Group, column: usize) -> Markup {
    html! {
        @for (sign, tone, count) in tally(group, column) {
            span class=(tone.name()) { (sign) (count) } " "
        }
    }
}

fn drawn(matrix: &Matrix, group: &Group, row: &Row, ruler: Option<&Ruler>) -> Markup {
    html! {
        tr.sub[group.title.is_some()] {
            th scope="row" { a href={ "#" (anchor(row.test)) } { (row.name) } }
            @if matrix.ways.is_none() {
                td.reference { (row.reference.as_deref().unwrap_or("-")) }
            }
            @for cell in &row.cells {
                td { (shown(matrix, row.test, cell, ruler)) }
            }
        }
    }
}

/// Where a test's distribution and timeline are.
pub(super) fn anchor(test: usize) -> String {
    format!("test-{}", test + 1)
}

fn shown(matrix: &Matrix, test: usize, cell: &Cell, ruler: Option<&Ruler>) -> Markup {
    let comparison = match cell {
        Cell::Judged(comparison) => comparison,
        Cell::Reference => return html! { span.cell.reference { "reference" } },
        Cell::Empty(why) => return html! { span.cell.reference { (why) } },
    };
    let (sign, tone) = sign(comparison.verdict);
    let name = &matrix.tests[test].full;
    let label = format!("{}, {name}: {}", comparison.contender, said(comparison));
    html! {
        a.cell.(tone.name()) href={ "#" (anchor(test)) } title=(label) aria-label=(label) {
            i { (sign) }
            b { (comparison.ratio.map_or("-".into(), words::ratio)) }
            @if let Some(ruler) = ruler {
                svg.track aria-hidden="true" width="100%" height="20" { (ruler.track(comparison)) }
            }
            // Beside a track it is for narrow screens, which have no room for that.
            @if let Some(high) = comparison.high {
                small.beside[ruler.is_some()] { (words::span(comparison.low, high)) }
            }
        }
    }
}

/// What to do next.
fn steps(report: &Report) -> Markup {
    let steps = next::steps(report, Kept { path: &report.run.name, is_packed: report.is_packed });
    html! {
        @if !steps.is_empty() {
            div.next {
                @for Step { text, command } in &steps {
                    p {
                        (text)
                        @if !command.is_empty() { " " code { (command.join(" ")) } }
                    }
                }
            }
        }
    }
}
