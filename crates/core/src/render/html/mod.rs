//! Pages: one file each that needs nothing else, to be sent round. The answer comes first.
//!
//! Everything is in the page when it opens, figures too; the script only adds what a pointer or a
//! key asks for. All text goes through maud, which escapes it; nothing is fetched, and the page's
//! own policy (Content-Security-Policy) would forbid it.

mod history;
mod joined;
mod parts;
mod report;
mod settings;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::figure::STYLE;
use super::figure::palette::{DARK, LIGHT};

pub use history::page as history;
pub use joined::page as joined;
pub use report::page as report;

const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";
const PAGE_STYLE: &str = include_str!("report.css");
const SCRIPT: &str = include_str!("report.js");

/// What a page is made of.
struct Page<'a> {
    title: &'a str,
    /// Of the program.
    version: &'a str,
    /// What stands above the title.
    above: String,
    /// In a sentence.
    answer: String,
    /// What is to be known beside it.
    facts: Vec<String>,
    /// The sections' places and names.
    contents: Vec<(String, String)>,
    main: Markup,
    footer: Markup,
}

impl Page<'_> {
    /// The whole page.
    fn text(&self) -> String {
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    meta http-equiv="Content-Security-Policy" content=(POLICY);
                    meta name="generator" content={ "fsverdict " (self.version) };
                    title { (self.title) }
                    style { (PreEscaped(style())) }
                }
                body {
                    a.skip href="#answer" { "Skip to the answer" }
                    header {
                        p.above { (self.above) }
                        h1 { (self.title) }
                        p #answer.answer { (self.answer) }
                        @for fact in &self.facts { p.facts { (fact) } }
                    }
                    nav aria-label="Contents" {
                        ul {
                            @for (place, name) in &self.contents {
                                li { a href={ "#" (place) } { (name) } }
                            }
                        }
                    }
                    main { (self.main) }
                    footer { (self.footer) }
                    script { (PreEscaped(SCRIPT)) }
                }
            }
        };
        page.into_string() + "\n"
    }
}

fn style() -> String {
    let (light, dark) = (LIGHT.properties(), DARK.properties());
    format!(
        ":root{{color-scheme:light dark;{light}}}\
         @media (prefers-color-scheme:dark){{:root{{{dark}}}}}\
         @media print{{:root{{color-scheme:light;{light}}}}}\n{STYLE}{PAGE_STYLE}"
    )
}
