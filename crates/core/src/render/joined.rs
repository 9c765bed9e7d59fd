//! Several runs in one report. What differs between runs is on top; below are the verdicts of each
//! run on its own contenders, side by side. Text, Markdown and HTML show the same parts.

use std::collections::BTreeSet;

use comfy_table::presets::{ASCII_MARKDOWN, UTF8_BORDERS_ONLY};
use serde::Serialize;

use super::figure::Figure;
use super::grid::Grid;
use super::paint::fitted;
use super::text::{marked, marked_list, visible};
use super::words::listed;
use super::{Report, facts, json, markdown, table, terminal};
use crate::model::{Abreast, Accord, Comparison, Finding, Joined, Run, Term, Verdict, Workload};

/// A column of a terminal's table is no wider: commands may be.
const VALUE_MAX: u16 = 36;

/// Something that a section has in it.
pub(super) enum Part {
    /// A sentence.
    Says(String),
    /// One that a reader must not miss.
    Warns(String),
    /// Lines of one kind.
    List(Vec<String>),
    /// A table, and what it is of.
    Grid(String, Grid),
    /// A table of what few want to see.
    Folded(String, Grid),
    /// What the audits noticed of a run, by its place.
    Findings(usize),
    /// The ratios as a figure.
    Forest,
}

/// A part of the report with a title.
pub(super) struct Section {
    pub title: String,
    pub parts: Vec<Part>,
}

/// What it is called: the question that all runs ask, or their names.
pub(super) fn title(joined: &Joined, reports: &[Report]) -> String {
    let asked: BTreeSet<&str> = reports.iter().map(|it| it.plan.question.as_str()).collect();
    match asked.into_iter().collect::<Vec<_>>()[..] {
        [question] if !question.is_empty() => question.into(),
        _ => format!("{} side by side", listed(&joined.names)),
    }
}

/// A line for each run: when and how it went.
pub(super) fn heads(joined: &Joined, reports: &[Report]) -> Vec<String> {
    let head = |(name, report): (&String, &Report)| {
        format!("{name}, {}: {}", day(&report.run.started), facts::ending(report))
    };
    joined.names.iter().zip(reports).map(head).collect()
}

/// The day of an RFC 3339 time.
pub(super) fn day(started: &str) -> &str {
    started.get(..10).unwrap_or_default()
}

/// Whether the verdicts go together, in a sentence or two; where ratios have too little in common
/// for that, this comes first.
pub(super) fn answer(joined: &Joined) -> String {
    let warning = warning(joined).map(|text| text + " ").unwrap_or_default();
    warning + &together(joined)
}

fn together(joined: &Joined) -> String {
    let of = |accord| joined.verdicts.iter().filter(move |it| it.accord == accord);
    let [same, size, mixed] =
        [Accord::Same, Accord::OtherSize, Accord::Mixed].map(|accord| of(accord).count());
    let opposed: Vec<String> = of(Accord::Opposed).map(|it| turned(joined, it)).collect();
    let all = same + size + mixed + opposed.len();
    if all == 0 {
        return "No comparison has a verdict in two of these runs: there is nothing to compare."
            .into();
    }
    let s = if all == 1 { "" } else { "s" };
    let mut parts = vec![format!("{same} with the same verdict")];
    parts.extend((size > 0).then(|| format!("{size} in the same direction by another size")));
    if mixed > 0 {
        parts.push(format!("{mixed} where the verdicts differ"));
    }
    let count = opposed.len();
    parts.extend((count > 0).then(|| format!("{count} in opposite directions")));
    let turned = match opposed.as_slice() {
        [] => String::new(),
        opposed => format!(" {}.", opposed.join("; ")),
    };
    let parts = parts.join(", ");
    let open = match joined.verdicts.iter().filter(|it| is_open(it)).count() {
        0 => String::new(),
        1 => " 1 more has a verdict in one run at most.".into(),
        open => format!(" {open} more have a verdict in one run at most."),
    };
    format!("{all} comparison{s} with verdicts of more than one run: {parts}.{turned}{open}")
}

/// On which unequal terms they were measured.
fn warning(joined: &Joined) -> Option<String> {
    let each = joined.unlike.iter().map(|Term { what, values, .. }| {
        let values: Vec<&str> = values.iter().flatten().map(String::as_str).collect();
        format!("{what} ({})", values.join(", "))
    });
    let each: Vec<String> = each.collect();
    (!each.is_empty()).then(|| {
        format!(
            "These runs were not measured on equal terms: {}. Even ratios differ in meaning; read \
             each run by itself.",
            each.join(", ")
        )
    })
}

/// Several runs compare the two, and fewer than two have a verdict yet.
fn is_open(row: &Abreast) -> bool {
    let has = |it: &&Comparison| it.verdict != Verdict::Void;
    row.accord == Accord::Alone && row.runs.iter().flatten().filter(has).count() > 1
}

/// "xfs against ext4 at unpack's wall_time: better in one, worse in two".
fn turned(joined: &Joined, row: &Abreast) -> String {
    let runs = |says: fn(Verdict) -> bool| {
        let its = joined.names.iter().zip(&row.runs);
        let its = its.filter(|(_, it)| it.as_ref().is_some_and(|it| says(it.verdict)));
        listed(&its.map(|(name, _)| name.clone()).collect::<Vec<_>>())
    };
    let Abreast { workload, metric, contender, reference, .. } = row;
    format!(
        "{contender} against {reference} at {workload}'s {metric}: better in {}, worse in {}",
        runs(Verdict::is_better),
        runs(Verdict::is_worse)
    )
}

/// All sections, tables drawn in `preset`.
pub(super) fn sections(joined: &Joined, reports: &[Report], preset: &str) -> Vec<Section> {
    let mut sections = vec![terms(joined, preset)];
    let forest = vec![Part::Forest];
    sections.push(Section { title: "Verdicts".into(), parts: forest });
    let mut names: Vec<&str> = Vec::new();
    for row in &joined.verdicts {
        if !names.contains(&row.workload.as_str()) {
            names.push(&row.workload);
        }
    }
    sections.extend(names.into_iter().map(|name| work(joined, reports, name, preset)));
    for (place, (name, report)) in joined.names.iter().zip(reports).enumerate() {
        let mut parts = vec![Part::Findings(place)];
        let lost = facts::failures(report).into_iter();
        let lost: Vec<String> = lost.map(|it| format!("not measured: {it}")).collect();
        let out = report.left_out().into_iter().map(|it| format!("left out: {it}"));
        let lines: Vec<String> = lost.into_iter().chain(out).collect();
        parts.extend((!lines.is_empty()).then_some(Part::List(lines)));
        sections.push(Section { title: format!("Findings of {name}"), parts });
    }
    sections
}

/// What is not the same for all.
fn terms(joined: &Joined, preset: &str) -> Section {
    let (equal, different): (Vec<&Term>, Vec<&Term>) =
        joined.terms.iter().partition(|term| term.equal);
    let mut parts = Vec::new();
    if different.is_empty() {
        parts.push(Part::Says("No known difference: these runs repeat each other.".into()));
    } else {
        let mut table =
            grid(preset, ["term".into()].into_iter().chain(joined.names.iter().cloned()));
        for Term { what, values, .. } in different {
            let values = values.iter().map(|it| it.as_deref().unwrap_or("-"));
            table.add([what.as_str()].into_iter().chain(values));
        }
        parts.push(Part::Grid("What is not the same for all runs".into(), table));
    }
    let mut table = grid(preset, ["term", "in all runs"].map(String::from));
    for Term { what, values, .. } in &equal {
        let value = values.iter().flatten().next().map_or("-", String::as_str);
        table.add([what.as_str(), value]);
    }
    let summary = format!("{} terms are the same for all", equal.len());
    parts.push(Part::Folded(summary, table));
    Section { title: "What is not the same".into(), parts }
}

/// One workload: the verdicts side by side, and the medians, which are another matter.
fn work(joined: &Joined, reports: &[Report], name: &str, preset: &str) -> Section {
    let rows: Vec<&Abreast> = joined.verdicts.iter().filter(|it| it.workload == name).collect();
    let unlike: BTreeSet<&str> =
        rows.iter().flat_map(|row| &row.unlike).map(String::as_str).collect();
    let mut parts = Vec::new();
    if !unlike.is_empty() {
        let unlike = unlike.into_iter().collect::<Vec<_>>().join(", ");
        parts.push(Part::Warns(format!(
            "These names stand for different things in the runs: {unlike}. See the table above."
        )));
    }
    parts.push(Part::Grid(
        format!("{name}: verdicts side by side"),
        side_by_side(joined, &rows, preset),
    ));
    parts.push(Part::Says(match (joined.one_machine, joined.unlike.is_empty()) {
        (true, true) => "Medians of the raw values. The runs were measured apart: \
                         the hours differ, too."
            .into(),
        (true, false) => "Medians of the raw values. The runs were not measured on equal terms: \
                          between runs they say nothing about each other."
            .into(),
        (false, _) => "Medians of the raw values. The machines or their devices differ: between \
                       runs they say nothing about each other."
            .into(),
    }));
    parts.push(Part::Grid(format!("{name}: medians"), medians(joined, reports, name, preset)));
    Section { title: name.into(), parts }
}

fn side_by_side(joined: &Joined, rows: &[&Abreast], preset: &str) -> Grid {
    let fixed = ["metric", "contender", "against"].map(String::from).into_iter();
    let header = fixed.chain(joined.names.iter().cloned()).chain(["together".into()]);
    let mut table = grid(preset, header);
    let mut before = "";
    for row in rows {
        let metric = if row.metric == before { "" } else { &row.metric };
        before = &row.metric;
        let cells = row.runs.iter().map(|it| it.as_ref().map_or("-".into(), |it| cell(it, preset)));
        let cells: Vec<String> = cells.collect();
        let together = match row.accord {
            Accord::Alone => "",
            Accord::Same => "same verdict",
            Accord::OtherSize => "same way, other size",
            Accord::Mixed => "differ",
            Accord::Opposed => "opposed",
        };
        let fixed = [metric, &row.contender, &row.reference];
        let cells = cells.iter().map(String::as_str);
        table.add(fixed.into_iter().chain(cells).chain([together]));
    }
    table
}

/// Ratio, interval and verdict; below each other where a cell may have two lines.
fn cell(comparison: &Comparison, preset: &str) -> String {
    let [ratio, interval, verdict] = table::judged(comparison);
    match (interval.as_str(), preset) {
        ("-", _) => format!("{ratio} {verdict}"),
        (_, ASCII_MARKDOWN) => format!("{ratio} ({interval}) {verdict}"),
        _ => format!("{ratio} {verdict}\n{interval}"),
    }
}

/// A row for each metric and contender of any run.
fn medians(joined: &Joined, reports: &[Report], name: &str, preset: &str) -> Grid {
    let fixed = ["metric", "contender"].map(String::from).into_iter();
    let mut table = grid(preset, fixed.chain(joined.names.iter().cloned()));
    let works: Vec<Option<&Workload>> = reports
        .iter()
        .map(|report| report.plan.workloads.iter().find(|work| work.name == name))
        .collect();
    let metrics = once(works.iter().flatten().flat_map(|work| work.primary()));
    let names = reports.iter().flat_map(|report| &report.plan.contenders);
    let contenders = once(names.map(|contender| contender.name.clone()));
    for metric in &metrics {
        let mut shown_metric = metric.as_str();
        for contender in &contenders {
            let median = |(report, work): (&Report, &Option<&Workload>)| {
                let records = table::records(report, (*work)?, contender);
                table::metric_median(&records, metric)
            };
            let medians = reports.iter().zip(&works).map(median);
            let cells: Vec<String> = medians
                .map(|it| it.map_or("-".into(), |(value, unit)| table::shown(metric, unit, value)))
                .collect();
            if cells.iter().all(|cell| cell == "-") {
                continue;
            }
            let fixed = [shown_metric, contender.as_str()];
            table.add(fixed.into_iter().chain(cells.iter().map(String::as_str)));
            shown_metric = "";
        }
    }
    table.right(2..table.width);
    table
}

/// Each once, where it comes first.
fn once(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut known = Vec::new();
    for name in names {
        if !known.contains(&name) {
            known.push(name);
        }
    }
    known
}

fn grid(preset: &str, header: impl IntoIterator<Item = String>) -> Grid {
    let mut grid = Grid::new(preset, header);
    if preset == UTF8_BORDERS_ONLY {
        grid.narrow(VALUE_MAX);
    }
    grid
}

/// What helps to go on.
pub(super) const NEXT: &str = "To see whether a ratio changed between two comparable runs: \
                               fsverdict compare. To see all of one run: fsverdict report RUN.";

/// For a terminal; ends with a line break.
pub fn joined(joined: &Joined, reports: &[Report]) -> String {
    let mut out = format!("{}\n\n{}\n", title(joined, reports), answer(joined));
    out += &format!("  {}\n", heads(joined, reports).join("\n  "));
    for Section { title, parts } in sections(joined, reports, UTF8_BORDERS_ONLY) {
        let text: String = parts.iter().map(|part| plain(part, reports)).collect();
        if !text.is_empty() {
            out += &format!("\n{title}\n{text}");
        }
    }
    fitted(&(out + &format!("\n{NEXT}\n")))
}

fn plain(part: &Part, reports: &[Report]) -> String {
    match part {
        Part::Says(text) => format!("  {text}\n"),
        Part::Warns(text) => format!("  warning: {text}\n"),
        Part::Folded(text, _) => format!("  {text}\n"),
        Part::List(lines) => format!("  {}\n", lines.join("\n  ")),
        Part::Grid(_, table) => format!("{table}\n"),
        Part::Findings(run) => {
            let report = &reports[*run];
            terminal::noticed(report.findings, report.comparisons)
        }
        Part::Forest => String::new(),
    }
}

/// As Markdown; `shown`: with this figure, that is an SVG file in that folder.
pub fn joined_markdown(
    joined: &Joined,
    reports: &[Report],
    shown: Option<(&[Figure], &str)>,
) -> String {
    let (title, answer) = (title(joined, reports), answer(joined));
    let mut out = format!("# {}\n\n{}\n\n", marked(&title), marked(&answer));
    out += &marked_list(&heads(joined, reports));
    for Section { title, parts } in sections(joined, reports, ASCII_MARKDOWN) {
        let drawn = |part: &Part| match part {
            Part::Says(text) => format!("\n{}\n", marked(text)),
            Part::Warns(text) => format!("\n**{}**\n", marked(text)),
            Part::Folded(text, table) => {
                let summary = marked(text);
                format!("\n<details><summary>{summary}</summary>\n\n{table}\n\n</details>\n")
            }
            Part::List(lines) => format!("\n{}", marked_list(lines)),
            Part::Grid(_, table) => format!("\n{table}\n"),
            Part::Findings(run) => {
                let report = &reports[*run];
                format!("\n{}", markdown::noticed(report.findings, report.comparisons))
            }
            Part::Forest => shown.map_or(String::new(), |(figures, folder)| {
                figures.iter().map(|figure| markdown::image(figure, folder)).collect()
            }),
        };
        let text: String = parts.iter().map(drawn).collect();
        if !text.is_empty() {
            out += &format!("\n## {}\n{text}", marked(&title));
        }
    }
    visible(&(out + &format!("\n{NEXT}\n"))).into_owned()
}

#[derive(Serialize)]
struct Document<'a> {
    runs: Vec<OfRun<'a>>,
    #[serde(flatten)]
    joined: &'a Joined,
}

#[derive(Serialize)]
struct OfRun<'a> {
    run: &'a Run,
    trials: usize,
    failed: usize,
    findings: &'a [Finding],
}

impl<'a> OfRun<'a> {
    fn new(report: &Report<'a>) -> OfRun<'a> {
        OfRun {
            run: report.run,
            trials: report.records.len(),
            failed: report.failures().count(),
            findings: report.findings,
        }
    }
}

/// As a JSON document; ends with a line break.
pub fn joined_json(joined: &Joined, reports: &[Report]) -> String {
    json::stamped(&Document { runs: reports.iter().map(OfRun::new).collect(), joined })
}

#[cfg(test)]
mod tests {
    use super::super::testing::comparison;
    use super::*;
    use crate::model::{Better, Unit};

    #[test]
    fn what_is_open_is_no_verdict_that_runs_share() {
        use Verdict::{Faster, Undecided};
        let row = |runs: Vec<Option<Comparison>>| Abreast {
            workload: "w".into(),
            metric: "wall_time".into(),
            unit: Unit::Seconds,
            better: Better::Lower,
            contender: "b".into(),
            reference: "a".into(),
            unlike: Vec::new(),
            accord: Accord::of(runs.iter().flatten()),
            runs,
        };
        let runs = |verdicts: &[Verdict; 2]| {
            verdicts.map(|it| Some(comparison("w", "b", it, 1.2))).to_vec()
        };
        let said = |rows: &[[Verdict; 2]]| {
            answer(&Joined {
                names: ["one", "two"].map(String::from).to_vec(),
                terms: Vec::new(),
                unlike: Vec::new(),
                one_machine: true,
                verdicts: rows.iter().map(|it| row(runs(it))).collect(),
            })
        };
        let none = "No comparison has a verdict in two of these runs: there is nothing to compare.";
        assert_eq!(said(&[[Undecided; 2]]), none);
        assert_eq!(
            said(&[[Faster; 2], [Undecided; 2], [Undecided, Faster]]),
            "1 comparison with verdicts of more than one run: 1 with the same verdict. 2 more \
             have a verdict in one run at most."
        );
    }
}
