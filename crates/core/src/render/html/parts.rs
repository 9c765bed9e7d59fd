//! Sections that are lists and tables.

use comfy_table::presets::NOTHING;
use maud::{Markup, html};

use super::super::findings::{Kind, OPEN_MAX, kinds, name, seen};
use super::super::grid::Grid;
use super::super::{Report, facts, table as tables};

/// Names of rows that are no longer stay on one line.
const SHORT: usize = 16;

/// A table with its headings as a screen reader wants them: what a row is of stands in its first
/// cell, over all rows that leave theirs empty.
pub(super) fn table(caption: &str, table: &Grid) -> Markup {
    let (header, rows) = (table.header(), table.rows());
    let is_number = |column: usize| column > 0 && rows.iter().all(|row| is_figure(&row[column]));
    let numbers: Vec<bool> = (0..header.len()).map(is_number).collect();
    let spans = spans(&rows);
    let short = rows.iter().flat_map(|row| row.first()).all(|it| it.chars().count() <= SHORT);
    html! {
        div.scroll role="region" tabindex="0" aria-label=(caption) {
            table {
                caption { (caption) }
                thead { tr {
                    @for (name, number) in header.iter().zip(&numbers) {
                        th class=[number.then_some("number")] scope="col" { (name) }
                    }
                } }
                tbody {
                    @for (row, span) in rows.iter().zip(spans) { tr {
                        @if let (Some(first), true) = (row.first(), span > 0) {
                            @let rows = (span > 1).then_some(span);
                            th.whole[short] scope="row" rowspan=[rows] { (first) }
                        }
                        @for (cell, number) in row.iter().zip(&numbers).skip(1) {
                            td class=[number.then_some("number")] { (cell) }
                        }
                    } }
                }
            }
        }
    }
}

/// How many rows each first cell stands for; 0 where one above it does.
fn spans(rows: &[Vec<String>]) -> Vec<usize> {
    let is_empty = |row: &Vec<String>| row.first().is_none_or(String::is_empty);
    let span = |(place, row): (usize, &Vec<String>)| match place > 0 && is_empty(row) {
        true => 0,
        false => 1 + rows[place + 1..].iter().take_while(|row| is_empty(row)).count(),
    };
    rows.iter().enumerate().map(span).collect()
}

/// It is a figure, with or without a unit, or there is none.
fn is_figure(cell: &str) -> bool {
    cell.is_empty() || cell == "-" || cell.starts_with(|c: char| c.is_ascii_digit())
}

/// The section of what the audits noticed.
pub(super) fn findings(report: &Report) -> Markup {
    html! { section #findings { h2 { "Findings" } (noticed(report)) } }
}

/// What the audits noticed, kind by kind, the gravest first; those beyond the first few are folded.
pub(super) fn noticed(report: &Report) -> Markup {
    let kinds = kinds(report.findings, report.comparisons);
    let (open, folded) = kinds.split_at(OPEN_MAX.min(kinds.len()));
    html! {
        @if kinds.is_empty() { p { "None of the audits noticed anything." } }
        @for kind in open { (noticed_kind(kind)) }
        @if !folded.is_empty() {
            details {
                summary { (folded.len()) " more" }
                @for kind in folded { (noticed_kind(kind)) }
            }
        }
    }
}

fn noticed_kind(kind: &Kind) -> Markup {
    let severity = name(kind.severity());
    let title = kind.title();
    let rest = &kind.findings[1..];
    html! {
        div.finding.(severity) {
            p {
                span.badge { (severity) } " "
                strong { (title.strip_prefix(severity).unwrap_or(&title).trim_start()) }
            }
            p.evidence { (seen(kind.findings[0])) }
            @if !rest.is_empty() {
                details {
                    summary { (rest.len()) " more like it" }
                    ul { @for finding in rest { li { (seen(finding)) } } }
                }
            }
            p { (kind.advice()) }
        }
    }
}

/// What a study printed, and how large its working sets are.
pub(super) fn published(report: &Report) -> Markup {
    let study = report.plan.study.as_ref();
    let title = study.map_or("The study", |study| study.title.as_str());
    let sets = !report.working_sets().is_empty();
    html! {
        @if !report.published.is_empty() {
            section #published {
                h2 { (title) ", as published, and here" (facts::scale(report)) }
                p {
                    "Ratios are of goodness. Only rank and ratio are compared: rates of two \
                     machines say nothing about each other."
                }
                (table("As published, and here", &tables::published(report, NOTHING)))
            }
        }
        @if sets {
            section #sets {
                h2 { "Working sets" (facts::scale(report)) }
                (table("Working sets over memory", &tables::working_sets(report, NOTHING)))
            }
        }
    }
}

/// What was left out, and what could not be measured.
pub(super) fn missing(report: &Report) -> Markup {
    let lists = [
        ("left-out", "Left out", report.left_out()),
        ("failures", "Not measured", facts::failures(report)),
    ];
    html! {
        @for (id, title, lines) in lists.iter().filter(|(_, _, lines)| !lines.is_empty()) {
            section id=(id) {
                h2 { (title) }
                ul { @for line in lines { li { (line) } } }
            }
        }
    }
}

/// What was read of files of others, and what of it was taken for what.
pub(super) fn read(report: &Report) -> Markup {
    html! {
        section #machine {
            h2 { "What was read" }
            dl { @for (what, value) in &report.run.read { dt { (what) } dd { (value) } } }
        }
    }
}

/// The machine's facts and the tools' versions.
pub(super) fn machine(report: &Report) -> Markup {
    html! {
        section #machine {
            h2 { "Machine" }
            dl {
                @for (fact, value) in report.run.host.iter().chain(&report.run.tools) {
                    dt { (fact) }
                    dd { (value) }
                }
                dt { "bed" }
                dd { (facts::bed(report)) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_headings_for_columns_and_rows() {
        let mut made = Grid::new(NOTHING, ["metric", "contender", "median"]);
        made.add(["rate", "<script>", "12/s"]);
        made.add(["", "xfs", "-"]);
        made.add(["time", "xfs", "3 s"]);
        let html = table("a & b", &made).into_string();
        for part in [
            "<caption>a &amp; b</caption>",
            "<th class=\"number\" scope=\"col\">median</th>",
            "<th class=\"whole\" scope=\"row\" rowspan=\"2\">rate</th><td>&lt;script&gt;</td>",
            "<tr><td>xfs</td><td class=\"number\">-</td></tr>",
            "<th class=\"whole\" scope=\"row\">time</th>",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
    }
}
