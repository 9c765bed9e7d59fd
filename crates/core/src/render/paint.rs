//! Text with colours for a terminal, in lines of at most 80 columns. What is shown stays readable
//! without colours: they only repeat what words and signs say.

use unicode_width::UnicodeWidthStr;

use super::text::visible;

/// A terminal's width that everybody has.
pub(super) const WIDTH: usize = 80;

/// What a piece of text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paint {
    Plain,
    Strong,
    Soft,
    Better,
    Worse,
    Void,
}

impl Paint {
    /// Its codes (ECMA-48, 8.3.117, "select graphic rendition"): blue-green and yellow, which most
    /// people can tell apart, as they can't green and red.
    fn codes(self) -> &'static str {
        match self {
            Paint::Plain => "",
            Paint::Strong => "1",
            Paint::Soft => "2",
            Paint::Better => "1;36",
            Paint::Worse => "1;33",
            Paint::Void => "31",
        }
    }
}

/// A text in pieces. Control characters of names in it are written out; its own colours are added
/// last, and only where they are asked for.
#[derive(Clone, Debug, Default)]
pub struct Painted(Vec<(Paint, String)>);

impl Painted {
    /// One more piece.
    pub(super) fn add(&mut self, paint: Paint, text: &str) {
        self.0.push((paint, visible(text).into_owned()));
    }

    /// The same in lines, each indented by `indent`.
    pub(super) fn add_wrapped(&mut self, paint: Paint, indent: usize, text: &str) {
        for line in wrapped(text, WIDTH - indent) {
            self.add(Paint::Plain, &" ".repeat(indent));
            self.add(paint, &line);
            self.add(Paint::Plain, "\n");
        }
    }

    /// A command on lines of its own, which a shell takes as one.
    pub(super) fn add_command(&mut self, indent: usize, words: &[String]) {
        let mut line = " ".repeat(indent);
        let mut lines = Vec::new();
        for word in words {
            let gap = usize::from(line.trim_start() != "");
            if gap > 0 && columns(&line) + gap + columns(word) + 2 > WIDTH {
                lines.push(format!("{line} \\"));
                line = " ".repeat(indent + 2);
            }
            if line.trim_start() != "" {
                line.push(' ');
            }
            line += word;
        }
        lines.push(line);
        for line in lines {
            self.add(Paint::Strong, &line);
            self.add(Paint::Plain, "\n");
        }
    }

    /// Without colours.
    pub fn plain(&self) -> String {
        self.0.iter().map(|(_, text)| text.as_str()).collect()
    }

    /// With colours, where they are wanted.
    pub fn text(&self, coloured: bool) -> String {
        if !coloured {
            return self.plain();
        }
        let piece = |(paint, text): &(Paint, String)| match paint.codes() {
            "" => text.clone(),
            codes => format!("\x1b[{codes}m{text}\x1b[0m"),
        };
        self.0.iter().map(piece).collect()
    }
}

/// How many columns a text takes.
pub(super) fn columns(text: &str) -> usize {
    text.width()
}

/// `text`, filled with blanks up to `width`.
pub(super) fn filled(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(columns(text))))
}

/// In lines of at most `width` columns, broken at blanks; a longer word is broken within.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for paragraph in text.split('\n') {
        let mut line = String::new();
        for word in paragraph.split(' ').flat_map(|word| pieces(word, width)) {
            let gap = usize::from(!line.is_empty());
            if columns(&line) + gap + columns(&word) > width {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line += &word;
        }
        lines.push(line);
    }
    lines
}

/// In lines that fit a terminal with so many blanks before all but the first, which begins there.
pub fn hanging(text: &str, indent: usize) -> String {
    let room = WIDTH.saturating_sub(indent).max(30);
    wrapped(text, room).join(&format!("\n{:indent$}", ""))
}

/// A text with its lines broken that are wider than a terminal, each indented as it was and a bit
/// more. Tables fit by themselves, and a command stays one line, to be copied.
pub fn fitted(text: &str) -> String {
    const WHOLE: [&str; 5] = ["│", "┌", "└", "╞", "fsverdict "];
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let inner = line.trim_start_matches(' ');
        let indent = line.len() - inner.len();
        if columns(line) <= WIDTH || WHOLE.iter().any(|it| inner.starts_with(it)) {
            out += &format!("{line}\n");
            continue;
        }
        for (at, part) in wrapped(inner, WIDTH - indent - 2).iter().enumerate() {
            let more = if at > 0 { 2 } else { 0 };
            out += &format!("{}{part}\n", " ".repeat(indent + more));
        }
    }
    out
}

/// A word in parts of at most `width` columns, broken behind a hyphen where there is one.
fn pieces(word: &str, width: usize) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut rest = word.to_string();
    while columns(&rest) > width {
        let fits = |at: usize| columns(&rest[..at]) <= width;
        let mut ends = rest.char_indices().map(|(at, c)| at + c.len_utf8());
        let is_end = |at: &usize| fits(*at) && rest[..*at].ends_with(['-', '/', '_']);
        let most = ends.clone().rfind(|at| fits(*at)).unwrap_or(rest.len());
        let end = ends.rfind(is_end).unwrap_or(most);
        let tail = rest.split_off(end);
        pieces.push(std::mem::replace(&mut rest, tail));
    }
    pieces.push(rest);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_no_wider_than_they_may_be() {
        assert_eq!(wrapped("a bb ccc dddd", 6), ["a bb", "ccc", "dddd"]);
        assert_eq!(wrapped("ext4-data-journal", 9), ["ext4-", "data-", "journal"]);
        assert_eq!(wrapped("0123456789", 4), ["0123", "4567", "89"]);
        assert_eq!(wrapped("日本語", 4), ["日本", "語"]);
        assert_eq!(wrapped("a\nb", 9), ["a", "b"]);
    }

    #[test]
    fn a_text_is_fitted_and_a_command_stays_one() {
        let long = "word ".repeat(30);
        let shown = fitted(&format!("  {long}\nshort\n"));
        assert!(shown.lines().all(|line| columns(line) <= WIDTH), "{shown}");
        assert!(shown.contains("\n    word") && shown.ends_with("\nshort\n"), "{shown}");
        let typed = format!("  fsverdict {long}\n");
        assert_eq!(fitted(&typed), typed);
        let mut painted = Painted::default();
        painted.add_command(4, &vec!["12345678901234567890".to_string(); 5]);
        let lines: Vec<String> = painted.plain().lines().map(String::from).collect();
        assert!(lines[0].starts_with("    1234") && lines[0].ends_with(" \\"), "{lines:?}");
        assert!(lines.len() == 2 && lines.iter().all(|line| columns(line) <= WIDTH));
    }

    #[test]
    fn colours_are_added_to_what_is_visible() {
        let mut painted = Painted::default();
        painted.add(Paint::Worse, "a\x1b[2J");
        painted.add(Paint::Plain, "b\n");
        assert_eq!(painted.plain(), "a\\u001b[2Jb\n");
        assert_eq!(painted.text(true), "\x1b[1;33ma\\u001b[2J\x1b[0mb\n");
        assert_eq!(painted.text(false), painted.plain());
    }
}
