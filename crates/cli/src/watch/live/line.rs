//! A line of the view: parts, each plain or set apart.

use console::{StyledObject, style, truncate_str};
use fsverdict_core::render;

/// A line, with the terminal's sequences for its styles in it.
#[derive(Clone, Debug, Default)]
pub struct Line(String);

impl Line {
    /// Goes on with `text`.
    pub fn plain(self, text: &str) -> Line {
        self.add(text, |text| text)
    }

    /// Goes on with `text` in bold.
    pub fn bold(self, text: &str) -> Line {
        self.add(text, StyledObject::bold)
    }

    /// Goes on with `text`, fainter.
    pub fn dim(self, text: &str) -> Line {
        self.add(text, StyledObject::dim)
    }

    /// Goes on with `text`, its colours swapped.
    pub fn reversed(self, text: &str) -> Line {
        self.add(text, StyledObject::reverse)
    }

    /// As much of it as fits into `width` columns.
    pub fn cut(&self, width: usize) -> String {
        truncate_str(&self.0, width, "").into_owned()
    }

    /// Names and messages come from elsewhere: nothing in them controls the terminal. The
    /// styles are no colours, so `NO_COLOR` does not turn them off.
    fn add(mut self, text: &str, look: fn(StyledObject<String>) -> StyledObject<String>) -> Line {
        self.0.push_str(&look(style(render::one_line(text))).force_styling(true).to_string());
        self
    }
}
