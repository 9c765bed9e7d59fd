//! A run's report for a terminal of 80 columns: the answer, and what it is based on.

use comfy_table::presets::UTF8_BORDERS_ONLY;

use super::answer::answer;
use super::facts::{ending, failures, scale, title};
use super::findings::{Kind, OPEN_MAX, kinds, seen, unequal};
use super::matrix::Matrix;
use super::next::{Kept, Step, command, steps};
use super::paint::{Paint, Painted, fitted};
use super::why::why;
use super::{Report, claims, screen, table};
use crate::model::{Comparison, Finding};

/// How many findings of a kind a terminal is filled with; the report has all.
const ALIKE_MAX: usize = 3;

/// Blanks before what stands below the title.
const INDENT: usize = 2;

/// A run's answer, as its last words: what was asked, what was found, and what to do next;
/// `all`: every row, too.
pub fn answered(report: &Report, kept: Kept, all: bool) -> Painted {
    let matrix = Matrix::of(report);
    let mut out = Painted::default();
    if report.is_read() {
        out.add(Paint::Plain, &fitted(&format!("{}\n", read(report))));
    }
    out.add_wrapped(Paint::Plain, 0, &title(report));
    out.add(Paint::Plain, "\n");
    let claims_lead = claims::lead(report.claims);
    if claims_lead {
        claims::draw(&mut out, report.claims);
    }
    out.add_wrapped(Paint::Strong, INDENT, &answer(report, &matrix));
    for line in [unequal(report.findings), why(report, &matrix)].into_iter().flatten() {
        out.add_wrapped(Paint::Plain, INDENT, &line);
    }
    out.add(Paint::Plain, "\n");
    screen::draw(&mut out, &matrix, all);
    out.add(Paint::Plain, "\n");
    let mut legend = matrix.legend();
    if !all {
        legend.extend(matrix.legend_of_folded());
    }
    if !legend.is_empty() {
        out.add_wrapped(Paint::Soft, INDENT, &legend.join(";  "));
    }
    if !claims_lead && !report.claims.is_empty() {
        out.add(Paint::Plain, "\n");
        claims::draw(&mut out, report.claims);
    }
    out.add_wrapped(Paint::Soft, INDENT, &ending(report));
    for Step { text, command } in steps(report, kept) {
        out.add(Paint::Plain, "\n");
        out.add_wrapped(Paint::Plain, INDENT, &text);
        if !command.is_empty() {
            out.add_command(2 * INDENT, &command);
        }
    }
    if !all && !report.is_read() {
        out.add(Paint::Plain, "\n");
        out.add_wrapped(Paint::Plain, INDENT, "All tables, intervals in words and findings:");
        out.add_command(2 * INDENT, &command(&["fsverdict", "report", kept.path, "-v"]));
    }
    out
}

/// What stands behind the answer: all tables, sentences and findings.
pub fn details(report: &Report) -> Painted {
    let mut out = String::new();
    for workload in &report.plan.workloads {
        out += &format!("\n{}\n", workload.name);
        out += &format!("{}\n", table::table(report, workload, UTF8_BORDERS_ONLY));
        for sentence in report.sentences(workload) {
            out += &format!("  {sentence}\n");
        }
        for (title, table) in table::meanwhile(report, workload, UTF8_BORDERS_ONLY) {
            out += &format!("\n{title}\n{table}\n");
        }
    }
    if !report.claims.is_empty() {
        out += &format!("\nClaims\n{}\n", claims::table(report, UTF8_BORDERS_ONLY));
    }
    if !report.published.is_empty() {
        let table = table::published(report, UTF8_BORDERS_ONLY);
        out += &format!("\nAs published, and here{}\n{table}\n", scale(report));
    }
    if !report.working_sets().is_empty() {
        let table = table::working_sets(report, UTF8_BORDERS_ONLY);
        out += &format!("\nWorking sets{}\n{table}\n", scale(report));
    }
    for contender in &report.plan.contenders {
        if let Some(name) = report.known_as(contender) {
            out += &format!("\n{}: what was measured is {name}\n", contender.name);
        }
    }
    let left_out = report.left_out();
    if !left_out.is_empty() {
        out += &format!("\nLeft out\n  {}\n", left_out.join("\n  "));
    }
    let failures: Vec<String> = failures(report);
    if !failures.is_empty() {
        out += &format!("\nNot measured\n  {}\n", failures.join("\n  "));
    }
    if !report.findings.is_empty() {
        out += &format!("\nFindings\n{}", noticed(report.findings, report.comparisons));
    }
    let mut painted = Painted::default();
    painted.add(Paint::Plain, &fitted(&out));
    painted
}

/// So many files are named; more are counted.
const FILES_MAX: usize = 4;

/// What was read from others' files.
fn read(report: &Report) -> String {
    let (files, rest): (Vec<_>, Vec<_>) =
        report.run.read.iter().partition(|(what, _)| what == "file");
    let shown = if files.len() > FILES_MAX + 1 { FILES_MAX } else { files.len() };
    let mut lines: Vec<String> =
        files[..shown].iter().map(|(_, it)| format!("file: {it}\n")).collect();
    if shown < files.len() {
        lines.push(format!("      and {} more\n", files.len() - shown));
    }
    lines.extend(rest.iter().map(|(what, value)| format!("{what}: {value}\n")));
    lines.concat()
}

/// What the audits noticed, kind by kind.
pub(super) fn noticed(findings: &[Finding], comparisons: &[Comparison]) -> String {
    let mut out = String::new();
    let kinds = kinds(findings, comparisons);
    for kind in kinds.iter().take(OPEN_MAX) {
        out += &format!("  {}\n", kind.title());
        let shown =
            if kind.findings.len() > ALIKE_MAX + 1 { ALIKE_MAX } else { kind.findings.len() };
        for finding in &kind.findings[..shown] {
            out += &format!("    {}\n", seen(finding));
        }
        if shown < kind.findings.len() {
            out += &format!(
                "    and {} more like these: see the report\n",
                kind.findings.len() - shown
            );
        }
        out += &format!("    {}\n", kind.advice());
    }
    if kinds.len() > OPEN_MAX {
        let more: Vec<String> = kinds[OPEN_MAX..].iter().map(Kind::title).collect();
        out += &format!("  {} more: {}\n", more.len(), more.join("; "));
    }
    out
}
