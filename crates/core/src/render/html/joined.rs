//! Several runs as one page: on what terms each was measured, and what each says.

use comfy_table::presets::NOTHING;
use maud::{Markup, html};

use super::super::Report;
use super::super::figure::{Figure, joined_figure};
use super::super::joined::{NEXT, Part, Section, answer, day, heads, sections, title};
use super::page::Page;
use super::parts;
use crate::model::{Command, Joined};

/// The whole page.
pub fn page(joined: &Joined, reports: &[Report]) -> String {
    let figure = joined_figure(joined, reports);
    let sections = sections(joined, reports, NOTHING);
    let anchor = |place: usize| format!("part-{}", place + 1);
    let named = sections.iter().enumerate();
    let mut contents: Vec<(String, String)> =
        named.map(|(place, section)| (anchor(place), section.title.clone())).collect();
    contents.push(("again".into(), "Run them again".into()));
    let days: Vec<&str> = reports.iter().map(|report| day(&report.run.started)).collect();
    let [first, last] = [days.iter().min(), days.iter().max()].map(|it| it.copied().unwrap_or(""));
    let page = Page {
        title: &title(joined, reports),
        version: env!("CARGO_PKG_VERSION"),
        above: match first == last {
            true => format!("fsverdict, {} runs, {first}", reports.len()),
            false => format!("fsverdict, {} runs, {first} to {last}", reports.len()),
        },
        answer: answer(joined),
        first: html! {},
        facts: heads(joined, reports),
        contents,
        main: html! {
            @for (place, Section { title, parts }) in sections.iter().enumerate() {
                section id=(anchor(place)) {
                    h2 { (title) }
                    @for part in parts { (drawn(part, reports, figure.as_ref())) }
                }
            }
            (again(joined, reports))
        },
        footer: html! { "fsverdict " (env!("CARGO_PKG_VERSION")) "." },
    };
    page.text()
}

fn drawn(part: &Part, reports: &[Report], figure: Option<&Figure>) -> Markup {
    html! {
        @match part {
            Part::Says(text) => { p { (text) } }
            Part::Warns(text) => {
                div.finding.warning {
                    p { span.badge.warning { "warning" } " " span.evidence { (text) } }
                }
            }
            Part::List(lines) => { ul { @for line in lines { li { (line) } } } }
            Part::Grid(caption, table) => { (parts::table(caption, table)) }
            Part::Folded(summary, table) => {
                details { summary { (summary) } (parts::table(summary, table)) }
            }
            Part::Findings(run) => { (parts::noticed(&reports[*run])) }
            Part::Forest => {
                @match figure {
                    Some(figure) => { (figure.inline()) }
                    None => { p { "No round of any run has held two contenders yet." } }
                }
            }
        }
    }
}

/// How each was started.
fn again(joined: &Joined, reports: &[Report]) -> Markup {
    html! {
        section #again {
            h2 { "Run them again" }
            @for (name, report) in joined.names.iter().zip(reports) {
                h3 { (name) }
                pre { (Command::Argv(report.run.command.clone()).to_string()) }
                details {
                    summary { "plan.toml" }
                    pre { (toml::to_string(report.plan).unwrap_or_default()) }
                }
            }
            p { (NEXT) }
        }
    }
}
