//! Records and verdicts as something to read: for a person at a terminal, as Markdown, as CSV and
//! JSON for programs. All of it can be remade from a run's folder. Names and messages go through
//! [`visible`] and its siblings.

mod across;
mod advice;
mod anatomy;
mod answer;
mod audited;
mod changed;
mod checked;
mod claims;
mod columns;
mod csv;
mod facts;
mod figure;
mod findings;
mod grid;
mod history;
mod html;
mod joined;
mod json;
mod markdown;
mod matrix;
mod next;
mod paint;
mod recommendation;
mod report;
mod reproduced;
mod screen;
mod sentence;
mod table;
mod terminal;
#[cfg(test)]
mod testing;
mod text;
mod ways;
mod why;
mod words;

pub use across::{across, across_json, across_markdown};
pub use advice::{Typed, advice, advice_json, advice_markdown};
pub use anatomy::anatomy;
pub use audited::{audited, audited_json, audited_markdown};
pub use changed::{answered_anew, failing, on_other_terms, perhaps, reference_moved};
pub use checked::{checked, checked_json};
pub use csv::{samples as samples_csv, samples_of_runs as joined_csv};
pub use figure::{Figure, blocks_figure, figures, joined_figure, order_figure, queue_figure};
pub use findings::headline;
pub use history::{history, history_json};
pub use html::{
    anatomy as anatomy_html, history as history_html, joined as joined_html, report as html,
};
pub use joined::{joined, joined_json, joined_markdown};
pub use json::document as json;
pub use markdown::report as markdown;
pub use next::{Kept, command, consents, doubt, is_hopeless, outlook, program};
pub use paint::{Painted, fitted, hanging};
pub use recommendation::{Recommendation, recommendation};
pub use report::Report;
pub use reproduced::{beforehand, reproduced, reproduced_soon};
pub use sentence::sentence;
pub use terminal::{answered, details};
pub use text::{one_line, visible};
pub use words::{from_to, test_name};
