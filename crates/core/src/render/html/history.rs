//! The history of many runs as a page: what has changed first, then how every figure went.

use comfy_table::presets::NOTHING;
use maud::{Markup, html};

use super::super::figure::{Figure, Place, trends};
use super::super::grid::Grid;
use super::super::history::{
    RUNS_MIN, came, candidates, chance, day, is_drawn, is_still, last_run, name_of, news, runs,
    shifted, shown, together, trend, when, with,
};
use super::super::words::from_to;
use super::page::Page;
use super::parts;
use crate::model::{History, Past, Point, Series, Shift, Words, median, precise};

/// So many changes are named in the answer; more are counted.
const NAMED_MAX: usize = 3;

/// The whole page.
pub fn page(history: &History) -> String {
    let figures = trends(history);
    let (first, last) = (history.runs.first(), history.runs.last());
    let days = [first, last].map(|run| run.map_or("", day));
    let works = works(history);
    let works = || works.iter().enumerate();
    let contents = works().map(|(place, work)| (anchor(place), work.to_string()));
    let page = Page {
        title: &title(history),
        version: env!("CARGO_PKG_VERSION"),
        above: format!("fsverdict history, {} to {}", days[0], days[1]),
        answer: answer(history) + &news(history),
        first: html! {},
        facts: runs(&history.runs).lines().map(String::from).collect(),
        contents: [("changes".into(), "Changes".into())]
            .into_iter()
            .chain(contents)
            .chain([("runs".into(), "Runs".into())])
            .collect(),
        main: html! {
            section #changes { h2 { "Changes" } (changes(history)) }
            @for (place, name) in works() {
                section.far id=(anchor(place)) {
                    h2 { (name) }
                    @for figure in of_work(&figures, name) { (work(history, name, figure)) }
                    @let lone = lone(history, name);
                    @if !lone.is_empty() {
                        details {
                            summary { (lone.len()) " that one run alone holds" }
                            ul { @for line in &lone { li { (line) } } }
                        }
                    }
                }
            }
            section #runs {
                h2 { "Runs" }
                (parts::table("The runs in order of time", &each_run(history)))
            }
        },
        footer: html! { "fsverdict " (env!("CARGO_PKG_VERSION")) "." },
    };
    page.text()
}

fn title(history: &History) -> String {
    let count = history.runs.len();
    let works = works(history);
    let s = if count == 1 { "" } else { "s" };
    match works.as_slice() {
        [one] => format!("{one} over {count} run{s}"),
        several => format!("{} workloads over {count} run{s}", several.len()),
    }
}

/// The workloads' names, each once.
fn works(history: &History) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for series in &history.series {
        if !names.contains(&series.workload.as_str()) {
            names.push(&series.workload);
        }
    }
    names
}

fn of_work<'a>(figures: &'a [Figure], name: &str) -> impl Iterator<Item = &'a Figure> {
    let place = Place::Trend(name.into());
    figures.iter().filter(move |figure| figure.place == place)
}

/// Series of a single run: there is nothing to compare it with.
fn lone(history: &History, workload: &str) -> Vec<String> {
    let its = history.series.iter().filter(|it| it.workload == workload);
    let its = its.filter(|it| !is_drawn(history, it));
    let line = |series: &Series| match series.points.as_slice() {
        [only] => Some(format!(
            "{}, {}: {}, {}",
            series.metric,
            name_of(history, series),
            value(series, only),
            history.runs[only.run].run
        )),
        _ => None,
    };
    its.filter_map(line).collect()
}

fn anchor(place: usize) -> String {
    format!("work-{}", place + 1)
}

/// All changes, the largest first.
fn largest(history: &History) -> Vec<(&Series, &Shift)> {
    let of = |series| move |shift| (series, shift);
    let mut all: Vec<(&Series, &Shift)> =
        history.series.iter().flat_map(|series| series.shifts.iter().map(of(series))).collect();
    let size = |(_, shift): &(&Series, &Shift)| shift.ratio.ln().abs();
    all.sort_by(|one, other| size(other).total_cmp(&size(one)));
    all
}

/// What has changed, the largest first.
fn answer(history: &History) -> String {
    let shifts = largest(history);
    let count = history.runs.len();
    let unclear = history.series.iter().filter(|series| series.unclear.is_some()).count();
    let silent = history.series.iter().filter(|it| is_still(it) && it.silent > 0).count();
    let besides = match silent {
        0 => String::new(),
        _ => format!(
            " Of {silent} of {} figures less is known: they have runs that are void or have a 0.",
            history.series.len()
        ),
    };
    if shifts.is_empty() {
        let steady = history.series.iter().filter(|series| series.trend.is_some()).count();
        return match (steady, unclear) {
            (0, 0) if count < RUNS_MIN => format!(
                "No change shows; finding one takes {RUNS_MIN} runs, two on either side of it."
            ),
            (0, 0) if silent > 0 && silent == history.series.len() => {
                "No figure can be followed: each has runs that are void or have a 0.".into()
            }
            (0, 0) => {
                format!("No figure shows a change in {count} runs.{besides}")
            }
            (0, open) => {
                format!("Figures that changed, at once or steadily: {open}. More runs would tell.")
            }
            (some, 0) => format!("No figure has changed at once, and {some} steadily."),
            (some, open) => format!(
                "Figures that changed steadily: {some}; at once or steadily: {open}. More runs \
                 would tell."
            ),
        };
    }
    let several = works(history).len() > 1;
    let named = shifts.iter().take(NAMED_MAX).map(|(series, shift)| {
        let what = match series.is_of_reference() {
            true => format!("{}, or the machine,", series.contender),
            false => name_of(history, series),
        };
        let word = if shift.ratio < 1.0 { "worse" } else { "better" };
        let of = if several { format!("{}'s ", series.workload) } else { String::new() };
        let since = when(&history.runs, &history.runs[shift.run]);
        let metric = &series.metric;
        format!("{what} has been {word} at {of}{metric} since {since} ({:.2}×)", shift.ratio)
    });
    let named: Vec<String> = named.collect();
    let more = match shifts.len() - named.len() {
        0 => String::new(),
        1 => "; one more change is below".into(),
        more => format!("; {more} more changes are below"),
    };
    format!("{}{more}.", named.join("; "))
}

/// Every change as a row, in the order of the figures below; and the steady trends.
fn changes(history: &History) -> Markup {
    let mut table = Grid::new(
        NOTHING,
        ["since", "run", "what", "times as good", "chance", "what came with it"],
    );
    let all = history.series.iter().flat_map(|it| it.shifts.iter().map(move |shift| (it, shift)));
    for (series, shift) in all {
        let run = &history.runs[shift.run];
        let several = candidates(history, shift);
        table.add([
            several.as_ref().map_or(day(run).into(), |_| format!("{}?", day(run))),
            several.unwrap_or(run.run.clone()),
            format!("{}, {}: {}", series.workload, series.metric, name_of(history, series)),
            precise(shift.ratio),
            chance(shift),
            with(shift),
        ]);
    }
    let besides = |it| trend(history, it).into_iter().chain(last_run(history, it));
    let trends: Vec<String> = history.series.iter().flat_map(besides).collect();
    html! {
        @if table.rows().is_empty() { p { "No change stands out." } }
        @else {
            p {
                "What came with a change may be its cause, or not. Chance: how often runs stand \
                 out as much where nothing changed."
            }
            (parts::table("Changes, and what came with them", &table))
        }
        @if !trends.is_empty() { ul { @for trend in &trends { li { (trend) } } } }
        @if !history.fleets.is_empty() {
            ul { @for line in history.fleets.iter().flat_map(together) { li { (line) } } }
        }
    }
}

/// One metric: its figure, its changes in words, and its values as tables.
fn work(history: &History, workload: &str, figure: &Figure) -> Markup {
    let metric = figure.title.split(" over ").next().unwrap_or_default();
    let its =
        |it: &&Series| it.workload == workload && it.metric == metric && is_drawn(history, it);
    let its: Vec<&Series> = history.series.iter().filter(its).collect();
    let sentences: Vec<String> = its
        .iter()
        .flat_map(|series| series.shifts.iter().map(|shift| shifted(history, series, shift)))
        .collect();
    html! {
        (figure.inline())
        @if !sentences.is_empty() { ol { @for sentence in &sentences { li { (sentence) } } } }
        (parts::table(&format!("{metric} by kernel and version"), &stretches(history, &its)))
        details {
            summary { (metric) " of each run" }
            (parts::table(&format!("{metric} of each run"), &values(history, &its)))
        }
    }
}

/// Names of columns, one for each series.
fn columns(history: &History, series: &[&Series]) -> Vec<String> {
    series.iter().map(|it| name_of(history, it)).collect()
}

/// A row for each stretch of runs of one kernel and version, with the medians of what they say.
fn stretches(history: &History, series: &[&Series]) -> Grid {
    let header = ["kernel", "fsverdict", "from", "to", "runs"].map(String::from);
    let mut table = Grid::new(NOTHING, header.into_iter().chain(columns(history, series)));
    let same = |one: &Past, other: &Past| {
        (&one.kernel, &one.program_version) == (&other.kernel, &other.program_version)
    };
    let mut begin = 0;
    for stretch in history.runs.chunk_by(same) {
        let runs = begin..begin + stretch.len();
        begin = runs.end;
        let (first, last) = (&stretch[0], &stretch[stretch.len() - 1]);
        let fixed = [
            first.kernel.clone().unwrap_or_else(|| "not known".into()),
            first.program_version.clone(),
            when(&history.runs, first),
            when(&history.runs, last),
            stretch.len().to_string(),
        ];
        let middle = |series: &&Series| {
            let its = series.points.iter().filter(|point| runs.contains(&point.run));
            let values = its.map(|point| point.ratio.unwrap_or(point.median));
            median(values).map_or("-".into(), |value| shown(series, value))
        };
        table.add(fixed.into_iter().chain(series.iter().map(middle)));
    }
    table
}

/// A row for each run, with what it says of each series.
fn values(history: &History, series: &[&Series]) -> Grid {
    let header = ["run", "begun"].map(String::from);
    let mut table = Grid::new(NOTHING, header.into_iter().chain(columns(history, series)));
    for (place, run) in history.runs.iter().enumerate() {
        let of = |series: &&Series| {
            let point = series.points.iter().find(|point| point.run == place);
            point.map_or("-".into(), |point| value(series, point))
        };
        let its: Vec<String> = series.iter().map(of).collect();
        if its.iter().any(|value| value != "-") {
            table.add([run.run.clone(), run.started.clone()].into_iter().chain(its));
        }
    }
    table
}

fn value(series: &Series, point: &Point) -> String {
    let words = Words::of(&series.metric, series.unit, series.better);
    let verdict = point.verdict.map_or(String::new(), |verdict| words.label(verdict));
    match (point.ratio, point.high) {
        (Some(ratio), Some(high)) => {
            let ends = from_to(point.low, high, precise);
            format!("{} ({ends}) {verdict}", precise(ratio))
        }
        (Some(ratio), None) => format!("{} {verdict}", precise(ratio)),
        _ => shown(series, point.median),
    }
}

/// Every run with what is not what it was for the one before.
fn each_run(history: &History) -> Grid {
    let header = ["run", "begun", "kernel", "fsverdict", "what is new since the run before"];
    let mut table = Grid::new(NOTHING, header);
    for run in &history.runs {
        table.add([
            run.run.clone(),
            run.started.clone(),
            run.kernel.clone().unwrap_or_else(|| "not known".into()),
            run.program_version.clone(),
            came(&run.differences),
        ]);
    }
    table
}
