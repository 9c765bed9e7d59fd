//! `report.html`: a run's report.

use maud::{Markup, html};

use super::super::answer::answer;
use super::super::figure::{Figure, Place, figures};
use super::super::{Report, csv, markdown, table, terminal};
use super::page::Page;
use super::{parts, settings};
use crate::model::{Command, Timeline, Workload};
use comfy_table::presets::NOTHING;

/// The whole page.
pub fn page(report: &Report, timelines: &[Timeline]) -> String {
    let figures = figures(report, timelines);
    let run = report.run;
    let page = Page {
        title: &markdown::title(report),
        version: &run.program_version,
        above: format!("fsverdict, {}", run.started.get(..10).unwrap_or_default()),
        answer: answer(report),
        facts: machine(report).into_iter().chain([terminal::ending(report)]).collect(),
        contents: contents(report),
        main: main(report, &figures),
        footer: html! {
            "fsverdict " (run.program_version) ", run " (run.name)
            ", started " time { (run.started) } "."
        },
    };
    page.text()
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
    let first = [("verdicts", "Verdicts"), ("findings", "Findings")].map(fixed);
    let own = [("settings", "Settings"), ("machine", "Machine"), ("again", "Run it again")];
    let read = [("machine", "What was read"), ("again", "Judge it again")];
    let last = if report.is_read() { read.as_slice() } else { &own };
    first.into_iter().chain(works).chain(last.iter().copied().map(fixed)).collect()
}

fn main(report: &Report, figures: &[Figure]) -> Markup {
    let verdicts = figures.iter().find(|figure| figure.place == Place::Verdicts);
    html! {
        section #verdicts {
            h2 { "Verdicts" }
            @if let Some(figure) = verdicts { (figure.inline()) }
            @else if report.plan.contenders.len() == 1 {
                p { "One contender is compared with nobody." }
            } @else { p { "No round has held two contenders of one workload yet." } }
        }
        (parts::findings(report))
        @for workload in &report.plan.workloads { (work(report, workload, figures)) }
        (parts::published(report))
        @if !report.is_read() { (settings::section(report)) }
        (parts::lacking(report))
        @if report.is_read() { (parts::read(report)) } @else { (parts::machine(report)) }
        (again(report))
    }
}

/// One workload: its table, its verdicts, its figures.
fn work(report: &Report, workload: &Workload, figures: &[Figure]) -> Markup {
    let name = &workload.name;
    let rounds = figures.iter().filter(|it| it.place == Place::Rounds(name.clone()));
    let latency = |judged| Place::Latency { workload: name.clone(), judged };
    let course = |judged| Place::Timeline { workload: name.clone(), judged };
    let table = table::table(report, workload, NOTHING);
    html! {
        section.far id=(anchor(report, workload)) {
            h2 { (name) }
            @if let Some(command) = &workload.command {
                pre { (command.to_string().trim_end()) }
            }
            (parts::table(&format!("{name}: medians and verdicts"), &table))
            ul { @for sentence in report.sentences(workload) { li { (sentence) } } }
            @for figure in rounds { (figure.inline()) }
            (chapter("Latency", figures, latency))
            (chapter("The course of time", figures, course))
            @for (title, table) in table::meanwhile(report, workload, NOTHING) {
                h3 { (title) }
                (parts::table(&format!("{name}: {title}"), &table))
            }
        }
    }
}

/// Figures of judged parts, and the others to be opened.
fn chapter(title: &str, figures: &[Figure], place: impl Fn(bool) -> Place) -> Markup {
    let of = |judged| {
        let place = place(judged);
        figures.iter().filter(move |figure| figure.place == place).collect::<Vec<_>>()
    };
    let (judged, others) = (of(true), of(false));
    html! {
        @if !(judged.is_empty() && others.is_empty()) { h3 { (title) } }
        @for figure in &judged { (figure.inline()) }
        @if !others.is_empty() {
            details {
                summary { (title) " of what is not judged: " (others.len()) " figures" }
                @for figure in &others { (figure.inline()) }
            }
        }
    }
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
                    "Every judged value is in this page: "
                    button type="button" data-file=(file) { "save them as CSV" }
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
                "Every judged value of every trial is in this page: "
                button type="button" data-file=(file) { "save them as CSV" }
                " All samples, timelines and each tool's own output are in the run's folder, \
                 beside this file: "
                a href="samples.csv" { "samples.csv" } ", " a href="trials" { "trials" } ", "
                a href="run.json" { "run.json" } "."
            }
            template { (values) }
        }
    }
}
