//! A run against its baseline, for a terminal, for the summary of a CI job, and for programs.

use comfy_table::presets::{ASCII_MARKDOWN, UTF8_BORDERS_ONLY};

use super::grid::Grid;
use super::json;
use super::paint::fitted;
use super::sentence::{interval, rounds};
use super::text::{marked, marked_list, visible};
use super::words::{counted, from_to, listed};
use crate::model::{
    Across, BASELINE, Change, Measured, Percent, ReferenceChange, Unit, Verdict, Words, precise,
};

/// For a terminal; ends with a line break.
pub fn across(across: &Across) -> String {
    let mut out = format!("{} against {}\n{}\n", across.run, across.baseline, answer(across));
    out += &format!("{}\n", terms(across));
    for workload in workloads(across) {
        out += &format!("\n{workload}\n{}\n", table(across, workload, UTF8_BORDERS_ONLY));
        for change in of(across, workload) {
            out += &format!("  {}\n", sentence(across, change));
        }
    }
    for (title, lines) in lists(across) {
        if !lines.is_empty() {
            out += &format!("\n{title}\n  {}\n", lines.join("\n  "));
        }
    }
    fitted(&out)
}

/// As Markdown; ends with a line break.
pub fn across_markdown(across: &Across) -> String {
    let mut out = format!(
        "# {} against {}\n\n**{}** {}\n",
        marked(&across.run),
        marked(&across.baseline),
        marked(&answer(across)),
        marked(&terms(across))
    );
    for workload in workloads(across) {
        let table = table(across, workload, ASCII_MARKDOWN);
        out += &format!("\n## {}\n\n{table}\n\n", marked(workload));
        for change in of(across, workload) {
            out += &format!("- {}\n", marked(&sentence(across, change)));
        }
    }
    for (title, lines) in lists(across) {
        if !lines.is_empty() {
            out += &format!("\n## {title}\n\n{}", marked_list(&lines));
        }
    }
    visible(&out).into_owned()
}

/// So many of what is worse are named.
const NAMED_MAX: usize = 3;

/// How many changed which way, what is worse by name, and how much would not have been seen.
fn answer(across: &Across) -> String {
    use Verdict::{Slower, SlowerSizeOpen, Undecided, Void};
    let all = &across.changes;
    let of = |is: &dyn Fn(Verdict) -> bool| -> Vec<&Change> {
        all.iter().filter(|it| is(it.verdict)).collect()
    };
    let is_better = |it: Verdict| matches!(it, Verdict::Faster | Verdict::FasterSizeOpen);
    let is_open = |it: Verdict| matches!(it, Undecided | Void);
    let is_worse = |it: Verdict| matches!(it, Slower | SlowerSizeOpen);
    let within = format!("within {} of before", across.margin);
    let open_size = format!("worse, but perhaps by less than {}", across.margin);
    let parts = [
        (of(&|it| it == Slower), "worse", true),
        (of(&|it| it == SlowerSizeOpen), open_size.as_str(), true),
        (of(&is_better), "better", false),
        (of(&|it| !is_better(it) && !is_open(it) && !is_worse(it)), within.as_str(), false),
        (of(&|it| it == Undecided), "undecided", false),
        (of(&|it| it == Void), "void", false),
    ];
    let mut said: Vec<String> = Vec::new();
    for (its, what, is_named) in parts.iter().filter(|(its, ..)| !its.is_empty()) {
        let count = its.len();
        let of = if said.is_empty() { format!(" of {}", all.len()) } else { String::new() };
        let are = if count == 1 { "is" } else { "are" };
        let names = if *is_named { format!(" ({})", named(its)) } else { String::new() };
        said.push(format!("{count}{of} {are} {what}{names}"));
    }
    let lost = across.not_measured.len() + across.left_out.len();
    said.extend((lost > 0).then(|| format!("{lost} could not be compared")));
    if said.is_empty() {
        return "Nothing was compared.".into();
    }
    // An interval that says more has excluded it.
    let missed =
        |it: &&Change| it.verdict == Undecided && it.missed.is_some_and(|chance| chance > 0.5);
    let unseen = match all.iter().filter(missed).count() {
        0 => String::new(),
        count => format!(
            " At {count} of {} these runs would probably have missed a regression of {}.",
            all.len(),
            across.regression
        ),
    };
    format!("{}.{unseen}", said.join(", "))
}

/// "btrfs at mixed's iops, xfs at build's wall_time and 2 more".
fn named(changes: &[&Change]) -> String {
    let shown = if changes.len() > NAMED_MAX + 1 { NAMED_MAX } else { changes.len() };
    let name = |it: &&Change| format!("{} at {}'s {}", it.contender, it.workload, it.metric);
    let mut names: Vec<String> = changes[..shown].iter().map(name).collect();
    names.extend((shown < changes.len()).then(|| format!("{} more", changes.len() - shown)));
    listed(&names)
}

/// What stands below the verdicts, each with its title.
fn lists(across: &Across) -> [(&'static str, Vec<String>); 5] {
    let moved: Vec<&ReferenceChange> = across.references_moved().collect();
    let mut references: Vec<String> = moved.iter().map(|it| reference_moved(it)).collect();
    let rest = across.references.iter().filter(|it| it.ratio.is_some()).count() - moved.len();
    references.extend((rest > 0).then(|| {
        let others = if moved.is_empty() { "figure" } else { "other figure" };
        format!("{} within {} of the baseline", counted(rest, others), across.margin)
    }));
    [
        ("Not measured", across.not_measured.iter().map(ToString::to_string).collect()),
        ("The reference itself", references),
        ("The others themselves", across.changes.iter().filter_map(of_itself).collect()),
        ("Not alike", differences(across)),
        ("Left out", left_out(across)),
    ]
}

/// What the reference took where it moved beyond the margin: no verdict, for the hour is in it.
pub fn reference_moved(it: &ReferenceChange) -> String {
    let words = Words::of(&it.metric, it.unit, it.better);
    let took = took(it.unit, &words, [it.baseline, it.run], it.ratio);
    let ReferenceChange { workload, metric, reference, .. } = it;
    format!(
        "{workload}, {metric}: {reference} {took}; another hour may be why, and others that \
         changed beside it may be as they were"
    )
}

/// What a contender took itself that changed beside the reference, likewise no verdict.
fn of_itself(it: &Change) -> Option<String> {
    use Verdict::{Faster, FasterSizeOpen, Slower, SlowerSizeOpen};
    let differs = [Faster, FasterSizeOpen, Slower, SlowerSizeOpen].contains(&it.verdict);
    let medians = it.medians.filter(|_| differs)?;
    let words = Words::of(&it.metric, it.unit, it.better);
    let took = took(it.unit, &words, medians, it.better.ratio(medians[1], medians[0]));
    Some(format!("{}, {}: {} {took}", it.workload, it.metric, it.contender))
}

/// Medians of the baseline and the run, and how many times as good the latter is.
fn took(unit: Unit, words: &Words, medians: [f64; 2], ratio: Option<f64>) -> String {
    let [before, now] = medians.map(|value| unit.format(value));
    let times = ratio.map_or(String::new(), |ratio| format!(", {}", words.times(ratio)));
    format!("{before} in the baseline, {now} in the run{times}")
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
    let header = header.chain(["change", "interval"].map(String::from));
    let misses = apart.then(|| format!("misses {}", across.regression));
    let header = header.chain(misses).chain(["verdict".to_string()]);
    let mut table = Grid::new(preset, header);
    for change in of(across, workload) {
        let ratio = |ratio: Option<f64>| ratio.map_or("-".into(), precise);
        let ratios = [change.baseline_ratio, change.run_ratio];
        let cells = [change.metric.clone(), change.contender.clone()].into_iter();
        let cells = cells.chain(ratios.into_iter().filter(|_| apart).map(ratio));
        let interval = match change.high {
            Some(high) => from_to(change.low, high, precise),
            None => "-".into(),
        };
        let moved = change.moved && change.verdict != Verdict::Void;
        let mark = if moved { " (moved)" } else { "" };
        let label = Words::of(&change.metric, change.unit, change.better).label(change.verdict);
        let verdict = format!("{label}{mark}");
        let cells = cells.chain([ratio(change.ratio), interval]);
        let misses = change.missed.map_or("-".into(), |chance| format!("{:.0}%", chance * 100.0));
        table.add(cells.chain(apart.then_some(misses)).chain([verdict]));
    }
    table.right(if apart { 2..5 } else { 2..3 });
    table
}

/// A change in words. It says only what the interval carries.
fn sentence(across: &Across, change: &Change) -> String {
    let Change { metric, reference, .. } = change;
    let (margin, contender) = (across.margin, across.whose(change));
    let Some(ratio) = change.ratio else {
        let name = &change.contender;
        return format!(
            "{metric}: there is no ratio of {name} and {reference}: they were never measured in \
             one round, or a figure of theirs is 0."
        );
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
            let (name, power) = (&change.contender, power(across, change));
            format!("{metric}: no verdict on {name} ({evidence}){power}.")
        }
        Verdict::Void => format!(
            "{metric}: void, one of the runs did not measure {} against {reference}; see the \
             findings of its report.",
            change.contender
        ),
    }
}

/// What two runs apart would have shown, and what they would need.
fn power(across: &Across, change: &Change) -> String {
    let mut text = String::new();
    if let Some(missed) = change.missed {
        let percent = missed * 100.0;
        text += &format!(
            "; this pair of runs would miss a regression of {} in {percent:.0}% of cases",
            across.regression
        );
    }
    if let Some(rounds) = change.rounds_needed {
        text += &format!(
            "; to be called equivalent, if nothing has changed, it takes some {rounds} rounds each"
        );
    }
    text
}

fn evidence(across: &Across, change: &Change) -> String {
    let sides = if change.is_one_sided { 2.0 } else { 1.0 };
    let confidence = Percent(1.0 - sides * (1.0 - across.confidence.0));
    let interval = interval(confidence, change.sharing, change.low, change.high);
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
