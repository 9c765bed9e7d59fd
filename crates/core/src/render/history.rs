//! Many runs over time, for a terminal and for programs.

use super::grid::Grid;
use super::json;
use super::paint::fitted;
use super::words::{counted, from_to, ratio as times};
use crate::model::{Difference, Fleet, FleetChange, History, Past, Point, Series, Shift, precise};
use comfy_table::presets::UTF8_BORDERS_ONLY;

/// Among fewer runs none shows a change: two on either side.
pub(super) const RUNS_MIN: usize = 4;

/// A history of one run is none: fewer are only listed.
const POINTS_MIN: usize = 2;

/// A figure of a series, for people: its own of the reference, a ratio of the others.
pub(super) fn shown(series: &Series, value: f64) -> String {
    if series.is_of_reference() { series.unit.format(value) } else { precise(value) }
}

/// For a terminal; ends with a line break.
pub fn history(history: &History) -> String {
    let mut out = format!("{}\n{}", answer(history), runs(&history.runs));
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
            let besides = trend(history, series).into_iter().chain(last_run(history, series));
            shifts.chain(besides).for_each(|line| out += &format!("  {line}\n"));
        }
        for fleet in history.fleets.iter().filter(|it| it.workload == workload) {
            together(fleet).iter().for_each(|line| out += &format!("  {line}\n"));
        }
    }
    fitted(&(out + &format!("\n{}\n", seen(history))))
}

/// So many figures are named in the answer; more are counted.
const NAMED_MAX: usize = 3;

/// How many figures changed, and which; and what the last run says that is no change yet.
fn answer(history: &History) -> String {
    let all = history.series.len();
    let changed: Vec<&Series> = history.series.iter().filter(|it| it.has_changed()).collect();
    let name = |it: &&Series| {
        let ratio = it.shifts.last().map(|shift| shift.ratio);
        let ratio = ratio.or(it.trend).or(it.unclear).unwrap_or(1.0);
        format!("{}'s {} of {} {}×", it.workload, it.metric, name_of(history, it), times(ratio))
    };
    let mut named: Vec<String> = changed.iter().take(NAMED_MAX).map(name).collect();
    let more = changed.len() - named.len();
    named.extend((more > 0).then(|| format!("{more} more")));
    let said = match named.is_empty() {
        true => format!("None of {} shows a change.", counted(all, "figure")),
        false => format!("{} of {all} figures changed: {}.", changed.len(), named.join("; ")),
    };
    said + &news(history)
}

/// How many figures stand out in the last run, or have no longer been measured: sentences to
/// follow others.
pub(super) fn news(history: &History) -> String {
    let of = |is: &dyn Fn(&Series) -> bool| history.series.iter().filter(|it| is(it)).count();
    let out = of(&|it| it.stands_out.is_some());
    let gone = of(&|it| it.gone_for() > 0);
    let mut news = String::new();
    if out > 0 {
        news += &format!(" At {} the last run stands out.", counted(out, "figure"));
    }
    if gone > 0 {
        news += &format!(
            " {} no longer measured.",
            match gone {
                1 => "1 figure is".into(),
                gone => format!("{gone} figures are"),
            }
        );
    }
    news
}

/// No change yet, but perhaps later: the last run stands out, or did not measure the figure.
pub(super) fn last_run(history: &History, series: &Series) -> Vec<String> {
    let what = format!("{}: {}", series.metric, name_of(history, series));
    let Some(last) = series.points.last().and_then(|it| history.runs.get(it.run)) else {
        return Vec::new();
    };
    let when = format!("{} ({})", when(&history.runs, last), last.run);
    let mut lines = Vec::new();
    if let Some(ratio) = series.stands_out {
        lines.push(format!(
            "{what} stands out in its last run, {when}: {} times as good as the middle of those \
             before; two in a row make a change.",
            times(ratio)
        ));
    }
    if series.gone_for() > 0 {
        let runs = counted(series.gone_for(), "run");
        lines.push(format!("{what} has not been measured since {when}: {runs} without it."));
    }
    lines
}

/// What the column of that name says.
fn seen(history: &History) -> String {
    let few = history.series.iter().any(is_too_short);
    let few = if few { "; too few: finding one takes 4 runs" } else { "" };
    let silent = history.series.iter().any(|it| is_still(it) && it.silent > 0);
    let silent = if silent { "; runs that are void there, or have a 0, say nothing" } else { "" };
    format!(
        "\"shows from\": if nothing else changed, a change of this size halfway would have been \
         found in 4 of 5 cases{few}{silent}."
    )
}

/// No change of it is known.
pub(super) fn is_still(series: &Series) -> bool {
    series.shifts.is_empty() && series.trend.is_none() && series.unclear.is_none()
}

/// Among so few runs none shows a change: it takes two on either side.
fn is_too_short(series: &Series) -> bool {
    is_still(series) && series.visible.is_none() && series.points.len() < RUNS_MIN
}

/// The least change that a series without one would have shown.
pub(super) fn shows_from(series: &Series) -> String {
    let percent = |times: f64| format!("{:.0}%", ((times - 1.0) * 100.0).max(1.0));
    let silent = || format!("{} of {} void or 0", series.silent, series.points.len());
    match series.visible {
        Some(times) if series.silent > 0 => format!("{}; {}", percent(times), silent()),
        Some(times) => percent(times),
        None if is_still(series) && series.silent > 0 => silent(),
        None if is_too_short(series) => "too few".into(),
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
        let ratio = |point: &Point| point.ratio.map_or("-".into(), precise);
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

/// The last runs as bars: the ratios, or the medians of the reference; a dot where a run lacks it.
fn line(series: &Series) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    const GAP: char = '·';
    let figure = |point: &Point| (point.run, Some(point.ratio.unwrap_or(point.median)));
    let mut runs: Vec<(usize, Option<f64>)> = series.points.iter().map(figure).collect();
    runs.extend(series.gaps.iter().map(|run| (*run, None)));
    runs.sort_by_key(|(run, _)| *run);
    let shown = &runs[runs.len().saturating_sub(LINE_WIDTH)..];
    let values = || shown.iter().filter_map(|(_, value)| *value);
    let low = values().fold(f64::INFINITY, f64::min);
    let high = values().fold(f64::NEG_INFINITY, f64::max);
    let bar = |value: f64| {
        let share = if high > low { (value - low) / (high - low) } else { 0.5 };
        BARS[(share * 7.0).round() as usize]
    };
    shown.iter().map(|(_, value)| value.map_or(GAP, bar)).collect()
}

/// What has changed: `kernel (6.1 before, 6.12 then)`.
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
        (none, _) if none.is_empty() => {
            "it is open which of them brought it, so no cause is named".into()
        }
        (differences, 0 | 1) => format!("with it came: {differences}"),
        (differences, _) => format!("with each of them came: {differences}"),
    }
}

/// The runs that a shift may have come with, if there are several.
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
        Some(runs) => format!("became {word} with {runs} (95% confidence):"),
        None => format!("has been {word} since {} ({}),", day(run), run.run),
    };
    let interval = match shift.high {
        Some(high) => format!("95% interval {}, ", from_to(shift.low, high, times)),
        None => String::new(),
    };
    format!(
        "{metric}: {what} {since} {} times as good as it was ({interval}{} runs before, {} since, \
         chance {}); {}.",
        times(shift.ratio),
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
    let course = became(fleet.trend, fleet.unclear, &format!("{} days", days.len()));
    let mut lines: Vec<String> = course.map(|it| format!("{head} {it}.")).into_iter().collect();
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
        [] | [_] => format!("has been {word} since {},", change.day),
        [first, .., last] => format!(
            "became {word} on one of {} days from {first} to {last} (95% confidence):",
            change.days.len()
        ),
    };
    let interval = match change.high {
        Some(high) => format!(
            "95% interval {}, by {} machines, which differ by {:.0}%",
            from_to(change.low, high, times),
            change.machines,
            (change.spread - 1.0) * 100.0
        ),
        None => format!(
            "no interval: it takes two machines with runs before and after, not {}",
            change.machines
        ),
    };
    format!(
        "{head} {since} {} times as good as it was ({interval}, chance {}).",
        times(change.ratio),
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

/// A trend in words, or a change that may be none.
pub(super) fn trend(history: &History, series: &Series) -> Option<String> {
    let course = became(series.trend, series.unclear, &format!("{} runs", series.points.len()))?;
    Some(format!("{}: {} {course}.", series.metric, name_of(history, series)))
}

/// How it went `over` all, if steadily, or perhaps so. A ratio is of goodness: below 1 for a longer
/// time.
fn became(steadily: Option<f64>, unclear: Option<f64>, over: &str) -> Option<String> {
    let ratio = steadily.or(unclear)?;
    let word = if ratio < 1.0 { "worse" } else { "better" };
    let so_good = format!("{} times as good over {over}", times(ratio));
    Some(match steadily {
        Some(_) => format!("became {word} steadily, {so_good}"),
        None => format!("became {word}, {so_good}; too few to tell whether at once or steadily"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Better, Place, Unit};

    /// The time of a reference, over so many runs.
    fn series(count: usize) -> Series {
        let point = |run| Point {
            run,
            median: 10.0,
            ratio: None,
            low: 0.0,
            high: None,
            rounds: 4,
            verdict: None,
        };
        Series {
            workload: "w".into(),
            metric: "wall_time".into(),
            unit: Unit::Seconds,
            better: Better::Lower,
            contender: "ext4".into(),
            reference: "ext4".into(),
            variant: 1,
            machine: None,
            points: (0..count).map(point).collect(),
            silent: 0,
            gaps: Vec::new(),
            stands_out: None,
            shifts: Vec::new(),
            trend: None,
            unclear: None,
            visible: None,
        }
    }

    fn of(series: &Series) -> History {
        let run = |day: usize| Past {
            run: format!("run{day}"),
            started: format!("2026-03-{day:02}T01:02:03Z"),
            kernel: None,
            processor: None,
            program_version: "1".into(),
            place: Place::Sim,
            differences: Vec::new(),
        };
        let runs = (1..=series.points.len()).map(run).collect();
        History { runs, series: vec![series.clone()], fleets: Vec::new() }
    }

    /// From 10 s to 12.5 s: of the time, 0.80 times would be false.
    #[test]
    fn a_ratio_is_of_goodness_and_says_so() {
        let shift = |runs: Vec<usize>| Shift {
            run: 4,
            runs,
            ratio: 0.8,
            low: 0.75,
            high: Some(0.85),
            runs_before: 4,
            runs_after: 4,
            chance: 0.004,
            differences: Vec::new(),
        };
        let mut it = series(8);
        let said = |it: &Series, shift: Shift| shifted(&of(it), it, &shift);
        assert_eq!(
            said(&it, shift(vec![4])),
            "wall_time: ext4 itself, or the machine, has been worse since 2026-03-05 (run5), 0.80 \
             times as good as it was (95% interval 0.75 to 0.85, 4 runs before, 4 since, chance \
             0.4%); no other difference is known."
        );
        let open = said(&it, shift(vec![3, 4]));
        let says = "became worse with one of 2026-03-04 (run4), 2026-03-05 (run5) (95% \
                    confidence): 0.80 times as good as it was (";
        assert!(open.contains(says), "{open}");
        it.trend = Some(0.8);
        let steadily = "wall_time: ext4 became worse steadily, 0.80 times as good over 8 runs.";
        assert_eq!(trend(&of(&it), &it).as_deref(), Some(steadily));
        (it.trend, it.unclear) = (None, Some(1.25));
        let unclear = "wall_time: ext4 became better, 1.25 times as good over 8 runs; too few to \
                       tell whether at once or steadily.";
        assert_eq!(trend(&of(&it), &it).as_deref(), Some(unclear));
    }

    #[test]
    fn what_changed_is_said_first_and_what_the_last_run_left_out() {
        let mut it = series(8);
        assert_eq!(answer(&of(&it)), "None of 1 figure shows a change.");
        it.stands_out = Some(0.667);
        let said = last_run(&of(&it), &it);
        let says = "wall_time: ext4 stands out in its last run, 2026-03-08 (run8): 0.67 times as \
                    good as the middle of those before; two in a row make a change.";
        assert_eq!(said, [says]);
        assert!(history(&of(&it)).starts_with("None of 1 figure shows a change"));
        assert!(answer(&of(&it)).ends_with(" At 1 figure the last run stands out."));
        let all = of(&it);
        it.stands_out = None;
        it.points.truncate(5);
        it.points.remove(2);
        it.gaps = vec![2, 5, 6, 7];
        let gone = History { series: vec![it.clone()], ..all };
        let says = "wall_time: ext4 has not been measured since 2026-03-05 (run5): 3 runs without \
                    it.";
        assert_eq!(last_run(&gone, &it), [says]);
        assert_eq!(line(&it), "▅▅·▅▅···");
        assert!(answer(&gone).ends_with(" 1 figure is no longer measured."));
        it.trend = Some(0.8);
        let changed = History { series: vec![it], ..gone };
        assert!(
            answer(&changed).starts_with("1 of 1 figures changed: w's wall_time of ext4 0.80×.")
        );
    }

    #[test]
    fn runs_that_say_nothing_are_not_called_too_few() {
        let mut it = series(3);
        assert_eq!(shows_from(&it), "too few");
        assert!(seen(&of(&it)).contains("too few: "));
        it = Series { silent: 5, ..series(8) };
        assert_eq!(shows_from(&it), "5 of 8 void or 0");
        let said = seen(&of(&it));
        assert!(!said.contains("too few: ") && said.contains("say nothing"), "{said}");
        let page = super::super::html::history(&of(&it));
        assert!(page.contains("No figure can be followed"), "{page}");
        it.visible = Some(1.08);
        assert_eq!(shows_from(&it), "8%; 5 of 8 void or 0");
    }
}
