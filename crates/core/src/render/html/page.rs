//! A page: what all of them have.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::super::figure::STYLE;
use super::super::figure::palette::{DARK, LIGHT};
use super::super::text::visible;

const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";
const PAGE_STYLE: &str = include_str!("report.css");
const SCRIPT: &str = include_str!("report.js");

/// What a page is made of.
pub struct Page<'a> {
    pub title: &'a str,
    /// The program's version.
    pub version: &'a str,
    /// What stands above the title.
    pub above: String,
    /// In a sentence.
    pub answer: String,
    /// What stands below it, on the first screen.
    pub first: Markup,
    /// What is to be known beside it.
    pub facts: Vec<String>,
    /// The sections' places and names.
    pub contents: Vec<(String, String)>,
    pub main: Markup,
    pub footer: Markup,
}

impl Page<'_> {
    /// The whole page.
    pub fn text(&self) -> String {
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
                        (self.first)
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
        // A tab is markup to nobody, and a plan that is shown may need it.
        let page = page.into_string().replace('\t', "&#9;") + "\n";
        visible(&page).into_owned()
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
