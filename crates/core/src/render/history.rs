//! Many runs over time, for a terminal and for programs.

use super::grid::Grid;
use super::json;
use super::paint::fitted;
use crate::model::{Difference, History, Past, Point, Series, Shift};
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
            shifts.chain(trend(series)).for_each(|line| out += &format!("  {line}\n"));
        }
    }
    fitted(&out)
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

/// What a series is of: `xfs against ext4`, `ext4`. Those of other work, settings or beds can't be
/// compared with one another: each is named after its first run, `ext4 (as in nightly-07)`.
pub(super) fn name_of(history: &History, series: &Series) -> String {
    let name = match series.is_of_reference() {
        true => series.contender.clone(),
        false => format!("{} against {}", series.contender, series.reference),
    };
    name + &variant(history, series)
}

/// It is held by several runs: a dot alone shows nothing, unless there is but one run.
pub(super) fn is_drawn(history: &History, series: &Series) -> bool {
    series.points.len() > 1 || history.runs.len() < 2
}

/// The first run of those that a series can be compared in, where there are others.
fn variant(history: &History, series: &Series) -> String {
    let of = |it: &Series| {
        (it.workload.clone(), it.metric.clone(), it.contender.clone(), it.reference.clone())
    };
    let has_others = history.series.iter().filter(|it| of(it) == of(series)).count() > 1;
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
    let header = ["metric", "contender", "runs", "first", "last", "ratio first", "ratio last", ""];
    let mut table = Grid::new(UTF8_BORDERS_ONLY, header);
    for series in series {
        let name = series.contender.clone() + &variant(history, series);
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
            if series.points.len() < POINTS_MIN { String::new() } else { line(series) },
        ]);
    }
    table.right(2..7);
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

/// What is not what it was for the run before: `kernel (6.1 before, 6.12 then)`.
pub(super) fn came(differences: &[Difference]) -> String {
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".into());
    let each = differences
        .iter()
        .map(|it| format!("{} ({} before, {} then)", it.what, text(&it.baseline), text(&it.run)));
    each.collect::<Vec<_>>().join("; ")
}

/// A shift in words, with what came with it.
pub(super) fn shifted(history: &History, series: &Series, shift: &Shift) -> String {
    let Series { metric, contender, reference, .. } = series;
    let run = &history.runs[shift.run];
    let word = if shift.ratio < 1.0 { "worse" } else { "better" };
    let what = match series.is_of_reference() {
        true => format!("{contender} itself, or the machine,"),
        false => format!("{contender} against {reference}"),
    };
    let with = match came(&shift.differences) {
        none if none.is_empty() => "no other difference is known".to_string(),
        differences => format!("with it came: {differences}"),
    };
    format!(
        "{metric}: {what} is {word} since {} ({}), {:.2} times what it was ({} runs before, {} \
         since, chance {}); {with}.",
        day(run),
        run.run,
        shift.ratio,
        shift.runs_before,
        shift.runs_after,
        chance(shift)
    )
}

/// The chance of a shift, for a person.
pub(super) fn chance(shift: &Shift) -> String {
    match shift.chance {
        small if small < 0.001 => "under 0.1%".into(),
        chance => format!("{:.1}%", chance * 100.0),
    }
}

/// A steady trend in words, where there is one.
pub(super) fn trend(series: &Series) -> Option<String> {
    let Series { metric, contender, points, .. } = series;
    let times = series.trend?;
    let word = if times < 1.0 { "worse" } else { "better" };
    let count = points.len();
    Some(format!(
        "{metric}: {contender} became {word} steadily, {times:.2} times over {count} runs."
    ))
}
