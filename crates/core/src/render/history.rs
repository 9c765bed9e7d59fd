//! Many runs over time, for a terminal and for programs.

use super::grid::Grid;
use super::json;
use super::paint::fitted;
use crate::model::{Difference, Fleet, FleetChange, History, Past, Point, Series, Shift};
use comfy_table::presets::UTF8_BORDERS_ONLY;

/// A history of one run is none: fewer are only listed.
const POINTS_MIN: usize = 2;

/// For a terminal; ends with a line break.
pub fn history(history: &History) -> String {
    let mut out = runs(&history.runs);
    let mut workloads: Vec<&str> = Vec::new();
    for series in &history.series {
        if !workloads.contains(&series.workload.as_str()) {
            workloads.push(&series.workload);
        }
    }
    for workload in workloads {
        let its: Vec<&Series> =
            history.series.iter().filter(|it| it.workload == workload).collect();
        out += &format!("\n{workload}\n{}\n", table(history, &its));
        for series in its {
            let shifts = series.shifts.iter().map(|shift| shifted(history, series, shift));
            shifts.chain(trend(history, series)).for_each(|line| out += &format!("  {line}\n"));
        }
        for fleet in history.fleets.iter().filter(|it| it.workload == workload) {
            together(fleet).iter().for_each(|line| out += &format!("  {line}\n"));
        }
    }
    fitted(&(out + &format!("\n{}\n", seen(history))))
}

/// What the column of that name says.
fn seen(history: &History) -> String {
    let few = history.series.iter().any(|it| is_still(it) && it.visible.is_none());
    let few = if few { "; too few: among fewer than 4 runs none can be found" } else { "" };
    format!(
        "\"shows from\": where nothing has changed, a change of so much halfway would have been \
         found in 4 cases of 5{few}."
    )
}

fn is_still(series: &Series) -> bool {
    series.shifts.is_empty() && series.trend.is_none() && series.unclear.is_none()
}

/// The least change that a series without one would have shown.
pub(super) fn shows_from(series: &Series) -> String {
    match series.visible {
        Some(times) => format!("{:.0}%", ((times - 1.0) * 100.0).max(1.0)),
        None if is_still(series) => "too few".into(),
        None => String::new(),
    }
}

/// As a JSON document; ends with a line break.
pub fn history_json(history: &History) -> String {
    json::stamped(history)
}

/// The day of a run.
pub(super) fn day(run: &Past) -> &str {
    run.started.split('T').next().unwrap_or_default()
}

/// The day of a run among others; the time where all are of one day.
pub(super) fn when(runs: &[Past], run: &Past) -> String {
    let mut others = runs.iter().filter(|other| day(other) != day(run));
    match (others.next(), run.started.get(11..16)) {
        (None, Some(time)) if runs.len() > 1 => time.into(),
        _ => day(run).into(),
    }
}

/// What a series is of: `xfs against ext4`, `ext4 on Xeon`. Those of other work, settings or beds
/// can't be compared with one another: each is named after its first run, `ext4 (as in monday)`.
pub(super) fn name_of(history: &History, series: &Series) -> String {
    let name = match series.is_of_reference() {
        true => series.contender.clone(),
        false => format!("{} against {}", series.contender, series.reference),
    };
    marked(history, series, name)
}

/// It is held by several runs: a dot alone shows nothing, unless there is but one run.
pub(super) fn is_drawn(history: &History, series: &Series) -> bool {
    series.points.len() > 1 || history.runs.len() < 2
}

/// `name` with what tells the series from others of that name.
fn marked(history: &History, series: &Series, name: String) -> String {
    let machine = series.machine.as_ref().map(|it| format!(" on {it}")).unwrap_or_default();
    name + &machine + &variant(history, series)
}

/// The first run of those that a series can be compared in, where there are others.
fn variant(history: &History, series: &Series) -> String {
    let of = |it: &Series| {
        let Series { workload, metric, contender, reference, machine, .. } = it;
        [workload, metric, contender, reference]
            .map(String::clone)
            .into_iter()
            .chain(machine.clone())
    };
    let has_others = history.series.iter().filter(|it| of(it).eq(of(series))).count() > 1;
    let first = series.points.first().and_then(|point| history.runs.get(point.run));
    match first.filter(|_| has_others) {
        Some(run) => format!(" (as in {})", run.run),
        None => String::new(),
    }
}

/// How many runs, from when to when, of which versions and kernels: two lines.
pub(super) fn runs(runs: &[Past]) -> String {
    let (Some(first), Some(last)) = (runs.first(), runs.last()) else { return String::new() };
    let each = |name: fn(&Past) -> Option<&str>| {
        let mut names: Vec<&str> = Vec::new();
        for name in runs.iter().filter_map(name).filter(|name| !name.is_empty()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names.join(", ")
    };
    let count = match runs.len() {
        1 => "1 run".to_string(),
        count => format!("{count} runs"),
    };
    let (versions, kernels) =
        (each(|run| Some(&run.program_version)), each(|run| run.kernel.as_deref()));
    format!(
        "{count} from {} to {}\nfsverdict {versions}; kernel {}\n",
        day(first),
        day(last),
        if kernels.is_empty() { "not known" } else { &kernels }
    )
}

fn table(history: &History, series: &[&Series]) -> Grid {
    let header = [
        "metric",
        "contender",
        "runs",
        "first",
        "last",
        "ratio first",
        "ratio last",
        "shows from",
        "",
    ];
    let mut table = Grid::new(UTF8_BORDERS_ONLY, header);
    for series in series {
        let name = marked(history, series, series.contender.clone());
        let (Some(first), Some(last)) = (series.points.first(), series.points.last()) else {
            continue;
        };
        let ratio = |point: &Point| point.ratio.map_or("-".into(), |ratio| format!("{ratio:.3}"));
        table.add([
            series.metric.clone(),
            name,
            series.points.len().to_string(),
            series.unit.format(first.median),
            series.unit.format(last.median),
            ratio(first),
            ratio(last),
            shows_from(series),
            if series.points.len() < POINTS_MIN { String::new() } else { line(series) },
        ]);
    }
    table.right(2..8);
    table
}

/// The widest picture of a series.
const LINE_WIDTH: usize = 30;

/// The last runs as bars: the ratios, or the medians of the reference.
fn line(series: &Series) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let skipped = series.points.len().saturating_sub(LINE_WIDTH);
    let figure = |point: &Point| point.ratio.unwrap_or(point.median);
    let values: Vec<f64> = series.points.iter().skip(skipped).map(figure).collect();
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let bar = |value: &f64| {
        let share = if high > low { (value - low) / (high - low) } else { 0.5 };
        BARS[(share * 7.0).round() as usize]
    };
    values.iter().map(bar).collect()
}

/// What is not what it was: `kernel (6.1 before, 6.12 then)`.
pub(super) fn came(differences: &[Difference]) -> String {
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".into());
    let each = differences
        .iter()
        .map(|it| format!("{} ({} before, {} then)", it.what, text(&it.baseline), text(&it.run)));
    each.collect::<Vec<_>>().join("; ")
}

/// What came with a shift, as the end of a sentence. Where it may have come with one of several
/// runs, nothing that came with only some of them is blamed.
pub(super) fn with(shift: &Shift) -> String {
    match (came(&shift.differences), shift.runs.len()) {
        (none, 0 | 1) if none.is_empty() => "no other difference is known".into(),
        (none, _) if none.is_empty() => "with which of them is open, so no cause is named".into(),
        (differences, 0 | 1) => format!("with it came: {differences}"),
        (differences, _) => format!("with each of them came: {differences}"),
    }
}

/// The runs with one of which a shift came, where that is open.
pub(super) fn candidates(history: &History, shift: &Shift) -> Option<String> {
    /// So many are named; of more, the first and the last.
    const NAMED_MAX: usize = 4;
    let name = |run: &usize| {
        let run = &history.runs[*run];
        format!("{} ({})", when(&history.runs, run), run.run)
    };
    let runs = &shift.runs;
    match runs.as_slice() {
        [] | [_] => None,
        [first, .., last] if runs.len() > NAMED_MAX => {
            Some(format!("one of {} runs from {} to {}", runs.len(), name(first), name(last)))
        }
        few => Some(format!("one of {}", few.iter().map(name).collect::<Vec<_>>().join(", "))),
    }
}

/// A shift in words, with what came with it.
pub(super) fn shifted(history: &History, series: &Series, shift: &Shift) -> String {
    let Series { metric, contender, .. } = series;
    let run = &history.runs[shift.run];
    let word = if shift.ratio < 1.0 { "worse" } else { "better" };
    let what = match series.is_of_reference() {
        true => format!("{contender} itself, or the machine,"),
        false => name_of(history, series),
    };
    let since = match candidates(history, shift) {
        Some(runs) => format!("{runs}, with 95% confidence"),
        None => format!("{} ({})", day(run), run.run),
    };
    let interval = match shift.high {
        Some(high) => format!("95% interval {:.2} to {high:.2}, ", shift.low),
        None => String::new(),
    };
    format!(
        "{metric}: {what} is {word} since {since}, {:.2} times what it was ({interval}{} runs \
         before, {} since, chance {}); {}.",
        shift.ratio,
        shift.runs_before,
        shift.runs_after,
        chance(shift),
        with(shift)
    )
}

/// What several machines say together, in words.
pub(super) fn together(fleet: &Fleet) -> Vec<String> {
    let Fleet { metric, contender, reference, machines, days, .. } = fleet;
    let what = match contender == reference {
        true => contender.clone(),
        false => format!("{contender} against {reference}"),
    };
    let head = format!("{metric}, {} machines together: {what}", machines.len());
    let open = [(fleet.trend, "steadily"), (fleet.unclear, "at once or steadily")];
    let open = open.into_iter().filter_map(|(times, how)| Some((times?, how)));
    let mut lines: Vec<String> = open
        .map(|(times, how)| {
            format!("{head} changed {how}, {times:.2} times over {} days.", days.len())
        })
        .collect();
    if let Some(visible) = fleet.visible {
        let percent = (visible - 1.0) * 100.0;
        lines.push(format!(
            "{head} shows no change; one of {percent:.0}% halfway would have shown."
        ));
    }
    lines.extend(fleet.changes.iter().map(|change| of_fleet(&head, change)));
    lines
}

fn of_fleet(head: &str, change: &FleetChange) -> String {
    let word = if change.ratio < 1.0 { "worse" } else { "better" };
    let since = match change.days.as_slice() {
        [] | [_] => change.day.clone(),
        [first, .., last] => {
            format!("one of {} days from {first} to {last}, with 95% confidence", change.days.len())
        }
    };
    let interval = match change.high {
        Some(high) => format!(
            "95% interval {:.2} to {high:.2}, {} machines tell, which differ by {:.0}% in it",
            change.low,
            change.machines,
            (change.spread - 1.0) * 100.0
        ),
        None => format!(
            "no interval, for it takes two machines that tell, and there is {}",
            change.machines
        ),
    };
    format!(
        "{head} is {word} since {since}, {:.2} times what it was ({interval}, chance {}).",
        change.ratio,
        percent_of(change.chance)
    )
}

/// The chance of a shift, for a person.
pub(super) fn chance(shift: &Shift) -> String {
    percent_of(shift.chance)
}

fn percent_of(chance: f64) -> String {
    match chance {
        small if small < 0.001 => "under 0.1%".into(),
        chance => format!("{:.1}%", chance * 100.0),
    }
}

/// A trend in words, or a change of which it is open whether it is one.
pub(super) fn trend(history: &History, series: &Series) -> Option<String> {
    let Series { metric, points, .. } = series;
    let (times, how) = match (series.trend, series.unclear) {
        (Some(times), _) => (times, "became W steadily"),
        (None, Some(times)) => (times, "became W, at once or steadily: too few runs to tell"),
        (None, None) => return None,
    };
    let how = how.replace('W', if times < 1.0 { "worse" } else { "better" });
    let (name, count) = (name_of(history, series), points.len());
    Some(format!("{metric}: {name} {how}, {times:.2} times over {count} runs."))
}
