//! A drawing: what it shows, and how it is put into a page or alone.

use maud::{Markup, PreEscaped, html};

use super::super::text::visible;
use super::palette::LIGHT;
use crate::model::Phase;

/// How wide a figure is that stands alone, in px.
pub(super) const WIDTH: f64 = 760.0;
/// The margin around it.
const MARGIN: f64 = 16.0;

/// The style of what figures are made of; the page has it too.
pub(in crate::render) const STYLE: &str = include_str!("figure.css");

/// What a figure is of, and so where a report has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::render) enum Place {
    /// All comparisons at a glance.
    Matrix,
    /// All comparisons.
    Verdicts,
    /// A metric of a workload, by its name, over many runs.
    Trend(String),
    /// A judged metric of a workload, by their names.
    Rounds { workload: String, metric: String },
    /// Latencies of a workload's timed part.
    Latency { workload: String, phase: Phase },
    /// What one operation of each contender wrote.
    Blocks,
    /// What one operation of a workload asked of the device.
    Order(String),
    /// The course of a workload's timed part.
    Timeline { workload: String, phase: Phase },
}

impl Place {
    /// It is to be explored on a screen, and says little on paper.
    fn is_explored(&self) -> bool {
        matches!(self, Place::Latency { .. } | Place::Timeline { .. })
    }

    /// The workload it is of; `None`: all.
    pub fn workload(&self) -> Option<&String> {
        match self {
            Place::Matrix | Place::Verdicts | Place::Blocks => None,
            Place::Trend(workload)
            | Place::Order(workload)
            | Place::Rounds { workload, .. }
            | Place::Latency { workload, .. }
            | Place::Timeline { workload, .. } => Some(workload),
        }
    }
}

/// How a script may bring a figure to life.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Live {
    /// All its numbers are written in it.
    Not,
    /// Dots with a text each.
    Dots,
    /// Curves with a text at each of equally spaced places.
    Curves,
    /// The same over so many seconds, to be zoomed.
    Seconds(f64),
}

/// A drawing with what it shows in words.
#[derive(Clone, Debug)]
pub struct Figure {
    /// What its file is called, without an ending; its own within a report.
    pub name: String,
    /// What it shows, in a line.
    pub title: String,
    /// A description with its figures, for readers who can't see the drawing.
    pub caption: String,
    pub(in crate::render) place: Place,
    pub(super) live: Live,
    /// In px.
    pub(super) height: f64,
    pub(super) drawing: Markup,
}

impl Figure {
    /// The figure as a file: light, with its title, 792 px wide.
    pub fn svg(&self) -> String {
        let (top, width) = (34.0, WIDTH + 2.0 * MARGIN);
        let height = self.height + top + MARGIN;
        let style = LIGHT.resolved(STYLE);
        let markup = html! {
            svg xmlns="http://www.w3.org/2000/svg" class="figure" role="img" width=(width)
                height=(height) viewBox=(format!("0 0 {width} {height}")) {
                title { (self.title) }
                desc { (self.caption) }
                style { (PreEscaped(style)) }
                rect width="100%" height="100%" fill=(LIGHT.page) {}
                text.strong x=(MARGIN) y="24" { (self.title) }
                svg x=(MARGIN) y=(top) width=(WIDTH) height=(self.height) { (self.drawing) }
            }
        };
        visible(&(markup.into_string() + "\n")).into_owned()
    }

    /// The figure in a page that has [`STYLE`].
    pub(in crate::render) fn inline(&self) -> Markup {
        let live = match self.live {
            Live::Not => None,
            Live::Dots => Some("dots"),
            Live::Curves => Some("curves"),
            Live::Seconds(_) => Some("seconds"),
        };
        let is_explored = self.place.is_explored();
        let seconds = match self.live {
            Live::Seconds(seconds) => Some(seconds),
            _ => None,
        };
        html! {
            @let id = format!("figure-{}", self.name);
            figure.far[is_explored] id=(id) data-live=[live] data-seconds=[seconds] {
                figcaption { strong { (self.title) } " " (self.caption) }
                div.drawing {
                    svg.figure role="img" aria-label=(self.title) width="100%"
                        height=(self.height) { (self.drawing) }
                }
            }
        }
    }
}

/// Words as a file's name: `small-files-create_rate`.
pub(super) fn named(words: &[&str]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = words.iter().filter(|word| !word.is_empty());
    let words = words.map(|word| word.replace(|c| !plain(c), "-").trim_matches('-').to_string());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_files() {
        assert_eq!(named(&["small files", "create_rate"]), "small-files-create_rate");
        assert_eq!(named(&["<b>/../x", "", "a b"]), "b-----x-a-b");
    }
}
