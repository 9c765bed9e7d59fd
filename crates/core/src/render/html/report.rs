//! `report.html`: a run's report.

use maud::{Markup, html};

use super::super::answer::answer;
use super::super::figure::{Figure, Place, figures};
use super::super::matrix::Matrix;
use super::super::words::Test;
use super::super::{Report, claims, csv, facts, table};
use super::page::Page;
use super::{matrix, parts, settings};
use crate::model::{Command, Phase, Timeline, Workload};
use comfy_table::presets::NOTHING;

/// The whole page.
pub fn page(report: &Report, timelines: &[Timeline]) -> String {
    let figures = figures(report, timelines);
    let run = report.run;
    let asked = Matrix::of(report);
    let claims_lead = claims::lead(report.claims);
    let answered = Some(answer(report, &asked));
    let said = [claims::tally(report.claims), answered].into_iter().flatten();
    let said: Vec<String> = if claims_lead { said.collect() } else { said.rev().collect() };
    let page = Page {
        title: &facts::title(report),
        version: &run.program_version,
        above: format!("fsverdict, {}", run.started.get(..10).unwrap_or_default()),
        answer: said.join(" "),
        first: html! {
            @if claims_lead { (claimed(report)) }
            (matrix::first(report, &asked))
            @if !claims_lead { (claimed(report)) }
        },
        facts: machine(report).into_iter().chain([facts::ending(report)]).collect(),
        contents: contents(report),
        main: main(report, &asked, &figures),
        footer: html! {
            "fsverdict " (run.program_version) ", run " (run.name)
            ", started " time { (run.started) } "."
        },
    };
    page.text()
}

/// What is claimed, with the answers.
fn claimed(report: &Report) -> Markup {
    html! {
        @if !report.claims.is_empty() {
            div #claims {
                (parts::table("Claims and answers", &claims::table(report, NOTHING)))
                p { (claims::RATIOS_OF_TABLE) }
            }
        }
    }
}

/// What the reader has to know of the machine, in a line.
fn machine(report: &Report) -> Option<String> {
    let fact = |name: &str| report.run.host.get(name).cloned();
    let processors = match (fact("processors"), fact("processor")) {
        (Some(count), Some(model)) => Some(format!("{count} × {model}")),
        (count, model) => model.or(count.map(|count| format!("{count} processors"))),
    };
    let memory = fact("memory").map(|memory| format!("{memory} of memory"));
    let kernel = fact("kernel").map(|kernel| format!("Linux {kernel}"));
    let bed = fact("image files on").map(|on| format!("image files on {on}"));
    let known = [processors, memory, kernel, fact("distribution"), bed.or(fact("devices"))];
    let known: Vec<String> = known.into_iter().flatten().collect();
    (!known.is_empty()).then(|| known.join(" · "))
}

/// A workload's place in the page.
fn anchor(report: &Report, workload: &Workload) -> String {
    let place = report.plan.workloads.iter().position(|it| it.name == workload.name);
    format!("work-{}", place.unwrap_or(0) + 1)
}

fn contents(report: &Report) -> Vec<(String, String)> {
    let fixed = |(place, name): (&str, &str)| (place.to_string(), name.to_string());
    let works = report.plan.workloads.iter();
    let works = works.map(|workload| (anchor(report, workload), workload.name.clone()));
    let first = [("findings", "Findings"), ("verdicts", "Verdicts")].map(fixed);
    let own = [("settings", "Settings"), ("machine", "Machine"), ("again", "Run it again")];
    let read = [("machine", "What was read"), ("again", "Judge it again")];
    let last = if report.is_read() { read.as_slice() } else { &own };
    first.into_iter().chain(works).chain(last.iter().copied().map(fixed)).collect()
}

fn main(report: &Report, asked: &Matrix, figures: &[Figure]) -> Markup {
    let verdicts = figures.iter().find(|figure| figure.place == Place::Verdicts);
    html! {
        (parts::findings(report))
        section #verdicts {
            h2 { "Verdicts" }
            @if let Some(figure) = verdicts { (figure.inline()) }
            @else if report.plan.contenders.len() == 1 {
                p { "A single contender has nothing to be compared with." }
            } @else { p { "No round has held two contenders of one workload yet." } }
        }
        @for workload in &report.plan.workloads { (work(report, asked, workload, figures)) }
        (parts::published(report))
        @if !report.is_read() { (settings::section(report)) }
        (parts::missing(report))
        @if report.is_read() { (parts::read(report)) } @else { (parts::machine(report)) }
        (again(report))
    }
}

/// One workload: its table, its verdicts, then test by test every trial, the latencies and the
/// course of time.
fn work(report: &Report, asked: &Matrix, workload: &Workload, figures: &[Figure]) -> Markup {
    let name = &workload.name;
    let table = table::table(report, workload, NOTHING);
    let tests = asked.tests.iter().enumerate().filter(|(_, test)| test.workload == name);
    let tests: Vec<(usize, &Test)> = tests.collect();
    let phase = |test: &Test| workload.phase_of(&test.metric);
    let judged: Vec<Phase> = tests.iter().map(|(_, test)| phase(test)).collect();
    let others = workload.phases().into_iter().filter(|it| !judged.contains(it));
    let others: Vec<&Figure> = others.flat_map(|it| of_phase(figures, name, it)).collect();
    html! {
        section.far id=(anchor(report, workload)) {
            h2 { (name) }
            @if let Some(command) = &workload.command {
                pre { (command.to_string().trim_end()) }
            }
            (parts::table(&format!("{name}: medians and verdicts"), &table))
            details {
                summary { "The verdicts in words" }
                ul { @for sentence in report.sentences(workload) { li { (sentence) } } }
            }
            @for its in tests.chunk_by(|(_, one), (_, next)| phase(one) == phase(next)) {
                @for (place, test) in its {
                    h3 id=(matrix::anchor(*place)) { (test.full) }
                    @for figure in of_test(figures, test) { (figure.inline()) }
                }
                @for figure in of_phase(figures, name, phase(its[0].1)) { (figure.inline()) }
            }
            @if !others.is_empty() {
                details {
                    summary { "What is not judged: " (others.len()) " figures" }
                    @for figure in &others { (figure.inline()) }
                }
            }
            @for (title, table) in table::meanwhile(report, workload, NOTHING) {
                h3 { (title) }
                (parts::table(&format!("{name}: {title}"), &table))
            }
        }
    }
}

/// Every trial of a test.
fn of_test<'a>(figures: &'a [Figure], test: &Test) -> impl Iterator<Item = &'a Figure> {
    let place = Place::Rounds { workload: test.workload.into(), metric: test.metric.clone() };
    figures.iter().filter(move |figure| figure.place == place)
}

/// Latencies and course of a timed part.
fn of_phase<'a>(figures: &'a [Figure], name: &str, phase: Phase) -> Vec<&'a Figure> {
    let workload = || name.to_string();
    let places = [
        Place::Latency { workload: workload(), phase },
        Place::Timeline { workload: workload(), phase },
    ];
    figures.iter().filter(|figure| places.contains(&figure.place)).collect()
}

/// How to run it again, and the values themselves.
fn again(report: &Report) -> Markup {
    let judged = |metric: &str, workload: &str| {
        let work = report.plan.workloads.iter().find(|it| it.name == workload);
        work.is_some_and(|work| work.primary().iter().any(|primary| primary == metric))
    };
    let values = csv::chosen(report.records, |it, sample| judged(&sample.metric, &it.key.workload));
    let plan = toml::to_string(report.plan).unwrap_or_default();
    let file = format!("{}.csv", report.run.name);
    let started = Command::Argv(report.run.command.clone()).to_string();
    if report.is_read() {
        return html! {
            section #again {
                h2 { "Judge it again" }
                pre { (started) }
                h3 { "The values" }
                p {
                    "Every judged value is in this page. "
                    button type="button" data-file=(file) hidden { "Save them as CSV" }
                }
                template { (values) }
            }
        };
    }
    html! {
        section #again {
            h2 { "Run it again" }
            p { "The run was started with" }
            pre { (started) }
            p {
                "The same seed gives the same order and the same work: " (report.run.seed) ". The \
                 whole plan, for " code { "fsverdict run plan.toml" } ":"
            }
            details { summary { "plan.toml" } pre { (plan) } }
            h3 { "The values" }
            p {
                "Every judged value of every trial is in this page. "
                // Without the script it would do nothing.
                button type="button" data-file=(file) hidden { "Save them as CSV" }
                " All samples, timelines and each tool's own output are in the run's folder, \
                 beside this file: "
                a href="samples.csv" { "samples.csv" } ", " a href="trials" { "trials" } ", "
                a href="run.json" { "run.json" } "."
            }
            template { (values) }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::super::testing::{grid, report as reported};
    use super::*;
    use crate::model::Verdict;

    fn shown(columns: usize) -> String {
        let made = grid(&[vec![(Verdict::Faster, 1.5); columns]]);
        page(&reported(&made), &[])
    }

    #[test]
    fn each_place_of_a_page_has_a_name_of_its_own() {
        let page = shown(1);
        let mut seen = BTreeSet::new();
        let ids = page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next());
        let twice: Vec<&str> = ids.filter(|id| !seen.insert(*id)).collect();
        assert!(twice.is_empty() && seen.contains("figure-verdicts"), "{twice:?} {seen:?}");
    }

    /// A narrow screen has no room for the track, and no other place for the interval.
    #[test]
    fn a_cell_has_its_interval_in_figures_whether_or_not_it_is_drawn() {
        let drawn = shown(1);
        assert!(
            drawn.contains("<svg class=\"track\"") && drawn.contains("<small class=\"beside\"")
        );
        assert!(drawn.contains("<span class=\"ruler\">"));
        let many = shown(12);
        let is_there = many.contains(">1.35-1.65</small>");
        assert!(!many.contains("<svg class=\"track\"") && !many.contains("beside\"") && is_there);
    }

    #[test]
    fn what_only_the_script_can_do_is_not_offered_without_it() {
        let page = shown(1);
        let button = page.split("<button").find(|it| it.contains("data-file=")).unwrap_or_default();
        let tag = button.split('>').next().unwrap_or_default();
        assert!(tag.ends_with(" hidden"), "{tag}");
    }
}
