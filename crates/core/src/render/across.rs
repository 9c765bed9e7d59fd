//! A run against its baseline, for a terminal, for the summary of a CI job, and for programs.

use comfy_table::presets::{ASCII_MARKDOWN, UTF8_BORDERS_ONLY};

use super::changed::{answer, answered_anew, gated, label, of_itself, reference_moved, sentence};
use super::grid::Grid;
use super::json;
use super::paint::fitted;
use super::text::{marked, marked_list, visible};
use super::words::{counted, from_to};
use crate::model::{
    Across, BASELINE, Change, ClaimChange, Measured, ReferenceChange, Verdict, precise,
};

/// Of more figures only what is worse or void is shown, unless all are asked for.
const SHOWN_MAX: usize = 12;

/// For a terminal; ends with a line break. `all`: every figure is shown, however many they are.
pub fn across(across: &Across, all: bool) -> String {
    let mut out = gated(across).map_or(String::new(), |it| it + "\n");
    out += &format!("{} against {}\n{}\n", across.run, across.baseline, answer(across));
    out += &format!("{}\n", terms(across));
    for Part { title, changes, is_whole } in parts(across, all) {
        let table = table(across, &changes, is_whole, UTF8_BORDERS_ONLY);
        out += &format!("\n{title}\n{table}\n");
        for change in changes {
            out += &format!("  {}\n", told(across, change, is_whole));
        }
    }
    out += &hidden(across, all).map_or(String::new(), |it| format!("\n{it}\n"));
    for (title, lines) in lists(across, all) {
        if !lines.is_empty() {
            out += &format!("\n{title}\n  {}\n", lines.join("\n  "));
        }
    }
    fitted(&out)
}

/// As Markdown; ends with a line break.
pub fn across_markdown(across: &Across, all: bool) -> String {
    let mut out = format!("# {} against {}\n\n", marked(&across.run), marked(&across.baseline));
    let gate = gated(across).map(|it| format!("**{}**\n\n", marked(&it)));
    out += &gate.unwrap_or_default();
    out += &format!("**{}** {}\n", marked(&answer(across)), marked(&terms(across)));
    for Part { title, changes, is_whole } in parts(across, all) {
        let table = table(across, &changes, is_whole, ASCII_MARKDOWN);
        out += &format!("\n## {}\n\n{table}\n\n", marked(&title));
        for change in changes {
            out += &format!("- {}\n", marked(&told(across, change, is_whole)));
        }
    }
    out += &hidden(across, all).map_or(String::new(), |it| format!("\n{}\n", marked(&it)));
    for (title, lines) in lists(across, all) {
        if !lines.is_empty() {
            out += &format!("\n## {title}\n\n{}", marked_list(&lines));
        }
    }
    visible(&out).into_owned()
}

/// A table with its sentences.
struct Part<'a> {
    title: String,
    changes: Vec<&'a Change>,
    /// It is all of one workload, which is the title; otherwise a choice of all.
    is_whole: bool,
}

fn is_brief(across: &Across, all: bool) -> bool {
    !all && across.changes.len() > SHOWN_MAX
}

/// One for each workload; if there are many figures, a single one of those that are worse or void.
fn parts(across: &Across, all: bool) -> Vec<Part<'_>> {
    if is_brief(across, all) {
        let changes: Vec<&Change> = across.changes.iter().filter(|it| is_grave(it)).collect();
        let part = Part { title: "Worse or void".into(), changes, is_whole: false };
        return if part.changes.is_empty() { Vec::new() } else { vec![part] };
    }
    let mut parts: Vec<Part> = Vec::new();
    for change in &across.changes {
        match parts.iter_mut().find(|it| it.title == change.workload) {
            Some(part) => part.changes.push(change),
            None => parts.push(Part {
                title: change.workload.clone(),
                changes: vec![change],
                is_whole: true,
            }),
        }
    }
    parts
}

fn is_grave(change: &Change) -> bool {
    matches!(change.verdict, Verdict::Slower | Verdict::SlowerSizeOpen | Verdict::Void)
}

/// How many figures are not shown.
fn hidden(across: &Across, all: bool) -> Option<String> {
    let hidden = across.count(|it| !is_grave(it));
    is_brief(across, all)
        .then(|| format!("{} not shown here: --verbose shows all.", counted(hidden, "figure")))
}

fn told(across: &Across, change: &Change, is_whole: bool) -> String {
    let sentence = sentence(across, change);
    if is_whole { sentence } else { format!("{}, {sentence}", change.workload) }
}

/// The lists below the verdicts, each with its title.
fn lists(across: &Across, all: bool) -> [(&'static str, Vec<String>); 7] {
    let mut references = Vec::new();
    let mut themselves = Vec::new();
    if !is_brief(across, all) {
        let moved: Vec<&ReferenceChange> = across.references_moved().collect();
        references.extend(moved.iter().map(|it| reference_moved(it)));
        let rest = across.references.iter().filter(|it| it.ratio.is_some()).count() - moved.len();
        references.extend((rest > 0).then(|| {
            let others = if moved.is_empty() { "figure" } else { "other figure" };
            format!("{} within {} of the baseline", counted(rest, others), across.margin)
        }));
        themselves.extend(across.changes.iter().filter_map(of_itself));
    }
    let left_out = |lost: bool| {
        let its = across.left_out.iter().filter(|it| it.lost == lost);
        its.map(ToString::to_string).collect()
    };
    [
        ("The baseline's claims", claims(across)),
        ("Not measured", across.not_measured.iter().map(ToString::to_string).collect()),
        ("Lost: judged in the baseline, and not now", left_out(true)),
        ("The reference itself", references),
        ("The others themselves", themselves),
        ("Not alike", differences(across)),
        ("Left out", left_out(false)),
    ]
}

/// The claims that the run answers differently; those that are refuted now come first.
fn claims(across: &Across) -> Vec<String> {
    let (changed, same): (Vec<&ClaimChange>, Vec<_>) =
        across.claims.iter().partition(|it| it.is_news());
    let (refuted, others): (Vec<&ClaimChange>, Vec<_>) =
        changed.into_iter().partition(|it| it.refuted);
    let mut lines: Vec<String> = refuted.into_iter().chain(others).map(answered_anew).collect();
    lines.extend((!same.is_empty()).then(|| {
        let (has, it) = if same.len() == 1 { ("has", "it") } else { ("have", "they") };
        format!("{} {has} the answer that {it} had", counted(same.len(), "claim"))
    }));
    lines
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

fn table(across: &Across, changes: &[&Change], is_whole: bool, preset: &str) -> Grid {
    let apart = across.measured == Measured::Apart;
    let is_wide = apart && is_whole;
    let misses_any = is_wide && changes.iter().any(|it| misses(across, it).is_some());
    let text = |cells: &[&str]| cells.iter().map(ToString::to_string).collect::<Vec<_>>();
    let mut header = if is_whole { Vec::new() } else { text(&["workload"]) };
    header.extend(text(&["metric", "contender"]));
    header.extend(text(if is_wide { &["baseline ratio", "ratio now"] } else { &[] }));
    header.extend(text(&["change", "interval"]));
    header.extend(misses_any.then(|| format!("would miss {}", across.regression)));
    header.extend(text(&["verdict"]));
    let mut table = Grid::new(preset, header);
    for change in changes {
        let ratio = |ratio: Option<f64>| ratio.map_or("-".into(), precise);
        let mut cells = if is_whole { Vec::new() } else { vec![change.workload.clone()] };
        cells.extend([change.metric.clone(), change.contender.clone()]);
        if is_wide {
            cells.extend([change.baseline_ratio, change.run_ratio].map(ratio));
        }
        cells.extend([ratio(change.ratio), interval(change)]);
        let missed = || misses(across, change).unwrap_or_else(|| "-".into());
        cells.extend(misses_any.then(missed));
        cells.push(label(across, change));
        table.add(cells);
    }
    table.right(if is_wide {
        2..5
    } else if is_whole {
        2..3
    } else {
        3..4
    });
    table
}

fn interval(change: &Change) -> String {
    match change.high {
        Some(high) => from_to(change.low, high, precise),
        None => "-".into(),
    }
}

/// How often such runs overlook a regression; not asked if there is a verdict, or if the interval
/// excludes a regression.
fn misses(across: &Across, change: &Change) -> Option<String> {
    let is_open = change.verdict == Verdict::Undecided && !change.excludes(across.regression);
    let chance = change.missed.filter(|_| is_open)?;
    Some(format!("in {:.0}%", chance * 100.0))
}

fn differences(across: &Across) -> Vec<String> {
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".into());
    let line = |it: &crate::model::Difference| {
        format!("{}: {} in the baseline, {} in the run", it.what, text(&it.baseline), text(&it.run))
    };
    across.differences.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{apart, change};
    use super::*;

    #[test]
    fn of_many_figures_what_is_worse_or_lost_is_shown_and_the_rest_counted() {
        let mut changes = vec![change(Verdict::Equivalent, 1.0); SHOWN_MAX];
        changes.push(change(Verdict::Slower, 0.8));
        let many = apart(changes.clone(), 1.0);
        let shown = across(&many, false);
        assert!(shown.contains("\nWorse or void\n"), "{shown}");
        assert!(shown.contains("12 figures not shown here: --verbose shows all."), "{shown}");
        assert_eq!(shown.matches("relative to a, b is").count(), 1, "{shown}");
        let all = across(&many, true);
        assert!(!all.contains("--verbose") && !all.contains("Worse or void"), "{all}");
        assert_eq!(all.matches(": relative to a, b is").count(), 13, "{all}");
        let few = across(&apart(changes[1..].to_vec(), 1.0), false);
        assert!(!few.contains("--verbose"), "{few}");
        let mut open = change(Verdict::Undecided, 1.0);
        open.missed = Some(0.56);
        assert!(!few.contains("miss"), "{few}");
        let open = across_markdown(&apart(vec![open, changes[0].clone()], 1.0), false);
        assert!(open.contains("| would miss 10% |") && open.contains("| in 56% "), "{open}");
        let markdown = across_markdown(&many, false);
        assert!(markdown.contains("## Worse or void\n\n| workload |"), "{markdown}");
    }
}
