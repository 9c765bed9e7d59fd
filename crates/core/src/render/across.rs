//! A run against its baseline, for a terminal, for the summary of a CI job, and for programs.

use comfy_table::presets::{ASCII_MARKDOWN, UTF8_BORDERS_ONLY};

use super::grid::Grid;
use super::json;
use super::sentence::{interval, rounds};
use super::text::{marked, marked_list, visible};
use crate::model::{Across, BASELINE, Change, Measured, Verdict, Words};

/// For a terminal; ends with a line break.
pub fn across(across: &Across) -> String {
    let mut out = format!("{} against {}\n{}\n", across.run, across.baseline, terms(across));
    for workload in workloads(across) {
        out += &format!("\n{workload}\n{}\n", table(across, workload, UTF8_BORDERS_ONLY));
        for change in of(across, workload) {
            out += &format!("  {}\n", sentence(across, change));
        }
    }
    for (title, lines) in [("Not alike", differences(across)), ("Left out", left_out(across))] {
        if !lines.is_empty() {
            out += &format!("\n{title}\n  {}\n", lines.join("\n  "));
        }
    }
    out
}

/// As Markdown; ends with a line break.
pub fn across_markdown(across: &Across) -> String {
    let mut out = format!(
        "# {} against {}\n\n{}\n",
        marked(&across.run),
        marked(&across.baseline),
        marked(&terms(across))
    );
    for workload in workloads(across) {
        let table = table(across, workload, ASCII_MARKDOWN);
        out += &format!("\n## {}\n\n{table}\n\n", marked(workload));
        for change in of(across, workload) {
            out += &format!("- {}\n", marked(&sentence(across, change)));
        }
    }
    for (title, lines) in [("Not alike", differences(across)), ("Left out", left_out(across))] {
        if !lines.is_empty() {
            out += &format!("\n## {title}\n\n{}", marked_list(&lines));
        }
    }
    visible(&out).into_owned()
}

/// As a JSON document; ends with a line break.
pub fn across_json(across: &Across) -> String {
    json::stamped(across)
}

fn terms(across: &Across) -> String {
    let reference = across.changes.first().map_or("", |change| change.reference.as_str());
    match across.measured {
        Measured::Apart => format!(
            "Measured apart: only ratios to {reference} are compared. What makes {reference} and \
             the others slower alike is not seen."
        ),
        Measured::Together => {
            format!("Measured anew, each interleaved with what it was ({BASELINE}NAME).")
        }
    }
}

/// The compared workloads, in order.
fn workloads(across: &Across) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for change in &across.changes {
        if !names.contains(&change.workload.as_str()) {
            names.push(&change.workload);
        }
    }
    names
}

fn of<'a>(across: &'a Across, workload: &'a str) -> impl Iterator<Item = &'a Change> {
    across.changes.iter().filter(move |change| change.workload == workload)
}

fn table(across: &Across, workload: &str, preset: &str) -> Grid {
    let apart = across.measured == Measured::Apart;
    let ratios = ["baseline ratio", "ratio now"];
    let ratios = ratios.into_iter().filter(|_| apart).map(String::from);
    let header = ["metric", "contender"].map(String::from).into_iter().chain(ratios);
    let header = header.chain(["change", "interval", "verdict"].map(String::from));
    let mut table = Grid::new(preset, header);
    for change in of(across, workload) {
        let ratio = |ratio: Option<f64>| ratio.map_or("-".into(), |ratio| format!("{ratio:.3}"));
        let ratios = [change.baseline_ratio, change.run_ratio];
        let cells = [change.metric.clone(), change.contender.clone()].into_iter();
        let cells = cells.chain(ratios.into_iter().filter(|_| apart).map(ratio));
        let interval = match change.high {
            Some(high) => format!("{:.3} to {high:.3}", change.low),
            None => "-".into(),
        };
        let moved = change.moved && change.verdict != Verdict::Void;
        let mark = if moved { " (moved)" } else { "" };
        let label = Words::of(&change.metric, change.unit, change.better).label(change.verdict);
        let verdict = format!("{label}{mark}");
        table.add(cells.chain([ratio(change.ratio), interval, verdict]));
    }
    table.right(if apart { 2..5 } else { 2..3 });
    table
}

/// A change in words. It says only what the interval carries.
fn sentence(across: &Across, change: &Change) -> String {
    let Change { metric, contender, reference, .. } = change;
    let margin = across.margin;
    let Some(ratio) = change.ratio else {
        return format!("{metric}: {contender} and {reference} were never measured in one round.");
    };
    let words = Words::of(metric, change.unit, change.better);
    let times = words.times(ratio);
    let evidence = evidence(across, change);
    let than = words.than(change.verdict);
    match change.verdict {
        Verdict::Faster | Verdict::Slower => {
            format!("{metric}: {contender} {than} before, {times} ({evidence}).")
        }
        Verdict::TriviallyFaster | Verdict::TriviallySlower => format!(
            "{metric}: {contender} {than} before, but by less than {margin}: {times} \
             ({evidence})."
        ),
        Verdict::FasterSizeOpen | Verdict::SlowerSizeOpen => format!(
            "{metric}: {contender} {than} before, {times}; whether by more than {margin} \
             is open ({evidence})."
        ),
        Verdict::Equivalent => format!(
            "{metric}: {contender} is what it was, any change is under {margin} ({evidence})."
        ),
        Verdict::Undecided => {
            let visible = match change.high {
                Some(high) => {
                    let percent = ((high / change.low).sqrt() - 1.0) * 100.0;
                    format!("; a change of {percent:.0}% would have been seen")
                }
                None => String::new(),
            };
            format!("{metric}: no verdict on {contender} ({evidence}){visible}.")
        }
        Verdict::Void => format!(
            "{metric}: void, one of the runs did not measure {contender} against {reference}; see \
             the findings of its report."
        ),
    }
}

fn evidence(across: &Across, change: &Change) -> String {
    let interval = interval(across.confidence, change.sharing, change.low, change.high);
    match across.measured {
        Measured::Together => format!("{interval}, {}", rounds(change.rounds)),
        Measured::Apart => format!(
            "{interval}, {} and {}, each against {}",
            change.baseline_rounds,
            rounds(change.rounds),
            change.reference
        ),
    }
}

fn differences(across: &Across) -> Vec<String> {
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".into());
    let line = |it: &crate::model::Difference| {
        format!("{}: {} in the baseline, {} in the run", it.what, text(&it.baseline), text(&it.run))
    };
    across.differences.iter().map(line).collect()
}

fn left_out(across: &Across) -> Vec<String> {
    across.left_out.iter().map(ToString::to_string).collect()
}
