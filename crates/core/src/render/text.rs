//! Names and messages as they may be shown. They come from plans, runs, tables and programs, which
//! may be a stranger's: what they hold must neither control a terminal, nor be a command to a
//! browser or a spreadsheet, nor look like something else.

use std::borrow::Cow;
use std::fmt::Write;

/// With what can't be seen, or changes what stands around it, written as JSON escapes it, `\u001b`:
/// control characters but line feeds, and characters that turn the direction of writing or have no
/// width. Every text that leaves for a terminal or a report goes through this as a whole; a JSON
/// document stays the same document.
pub fn visible(text: &str) -> Cow<'_, str> {
    let is_hidden = |c: char| c != '\n' && is_hidden(c);
    match text.contains(is_hidden) {
        false => Cow::Borrowed(text),
        true => Cow::Owned(written_out(text, is_hidden)),
    }
}

/// [`visible`] on one line.
pub fn one_line(text: &str) -> String {
    written_out(text, is_hidden)
}

/// Control characters (Unicode's Cc), separators of lines, marks and controls of direction
/// (Unicode Standard Annex 9, 2), what has no width or is left blank, selectors of variants, and
/// tags (Default_Ignorable_Code_Point, Unicode Standard 5.21).
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

fn written_out(text: &str, is_hidden: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if !is_hidden(c) => out.push(c),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    // Writing to memory does not fail.
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out
}

/// As a text in a cell of CSV. A spreadsheet takes one that begins so for a formula (OWASP, "CSV
/// Injection"); an apostrophe makes it a text.
pub(super) fn csv_cell(text: &str) -> String {
    const FORMULA: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];
    let line = one_line(text);
    match line.trim_start().starts_with(FORMULA) {
        true => format!("'{line}"),
        false => line,
    }
}

/// As a line of Markdown in which nothing is markup (CommonMark 0.31, 2.4 and 6; GitHub's, 6.5 and
/// 6.9): HTML, links, addresses, images, code, emphasis and what is struck out are not, nor what
/// would begin a heading or a list.
pub(super) fn marked(text: &str) -> String {
    let text = marked_cell(text);
    let escape = if text.starts_with(['#', '+', '-', '=']) { "\\" } else { "" };
    format!("{escape}{text}")
}

/// The same within a line.
pub(super) fn marked_cell(text: &str) -> String {
    let text = one_line(&text.trim().replace('\n', " "));
    let mut out = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        let (before, after) = (&text[..at], &text[at + c.len_utf8()..]);
        match c {
            // Within a word it is no emphasis.
            '_' if before.ends_with(char::is_alphanumeric)
                && after.starts_with(char::is_alphanumeric) =>
            {
                out.push(c);
            }
            // What would be a link by itself.
            '/' if before.ends_with(':') && after.starts_with('/') => out.push_str("\\/"),
            '.' if before.to_ascii_lowercase().ends_with("www") => out.push_str("\\."),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '|' | '`' | '*' | '_' | '~' | '[' | ']' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}

/// A list in Markdown of what [`marked`] makes of each.
pub(super) fn marked_list(lines: &[String]) -> String {
    lines.iter().map(|line| format!("- {}\n", marked(line))).collect()
}

/// As code within a line of Markdown: between more backticks than it has in a row.
pub(super) fn marked_code(text: &str) -> String {
    let line = one_line(&text.replace('\n', " "));
    let ticks = "`".repeat(backticks(&line) + 1);
    let needs_gap = line.is_empty() || line.starts_with('`') || line.ends_with('`');
    let gap = if needs_gap { " " } else { "" };
    format!("{ticks}{gap}{line}{gap}{ticks}")
}

/// As lines of a shell's code in Markdown.
pub(super) fn marked_lines(text: &str) -> String {
    let ticks = "`".repeat((backticks(text) + 1).max(3));
    format!("{ticks}sh\n{}\n{ticks}\n", visible(&text.trim_end().replace('\t', "    ")))
}

/// The most backticks in a row.
fn backticks(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_written_out() {
        assert_eq!(visible("a\n\tb\r\x1b[2J\x7f\u{9b}"), "a\n\\tb\\r\\u001b[2J\\u007f\\u009b");
        assert_eq!(visible("gp\u{202e}fdp.exe\u{2069}\u{200b}\u{61c}"), {
            "gp\\u202efdp.exe\\u2069\\u200b\\u061c"
        });
        let blank = "\u{ad}\u{34f}\u{115f}\u{1160}\u{17b4}\u{3164}\u{fe0f}\u{ffa0}\u{e0100}";
        assert!(visible(&format!("ext4{blank}")).is_ascii());
        assert_eq!(one_line("a\nb"), "a\\nb");
        assert!(matches!(visible("größer, 2.00× ▁█ 日本語\n"), Cow::Borrowed(_)));
        let hostile = "x\u{1}\u{202e}\u{e0041}\u{85}";
        let document = serde_json::to_string(hostile).unwrap();
        let shown = visible(&document);
        assert!(shown.is_ascii(), "{shown}");
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), hostile);
    }

    #[test]
    fn a_text_in_csv_is_no_formula() {
        for text in ["=1+1", "+1", "-1", "@SUM(A1)", " =1", "＝1"] {
            assert_eq!(csv_cell(text), format!("'{text}"));
        }
        assert_eq!(csv_cell("\t=1\r"), "\\t=1\\r");
        assert_eq!(csv_cell("a=b"), "a=b");
    }

    #[test]
    fn a_text_in_markdown_is_no_markup() {
        assert_eq!(marked("<b>R&D</b>"), "&lt;b&gt;R&amp;D&lt;/b&gt;");
        assert_eq!(
            marked("![x](http://y) `c` *e* a|b"),
            "!\\[x\\](http:\\//y) \\`c\\` \\*e\\* a\\|b"
        );
        assert_eq!(marked("a\n# b\x1b"), "a # b\\\\u001b");
        assert_eq!(marked("\\[x](y)"), "\\\\\\[x\\](y)", "a backslash frees no bracket");
        assert_eq!((marked("# b"), marked_cell("-")), ("\\# b".into(), "-".into()));
        assert_eq!(marked("wall_time"), "wall_time");
        assert_eq!(marked("__new__ _a a_"), "\\_\\_new\\_\\_ \\_a a\\_");
        assert_eq!(marked("~~x~~"), "\\~\\~x\\~\\~");
        assert_eq!(marked("see WWW.x.y"), "see WWW\\.x.y");
    }

    #[test]
    fn code_in_markdown_does_not_end_before_its_end() {
        assert_eq!(marked_code("a b"), "`a b`");
        assert_eq!(marked_code("a`b``<c>"), "```a`b``<c>```");
        assert_eq!(marked_code("`a`"), "`` `a` ``");
        assert_eq!(marked_code(""), "`  `", "two in a row would begin another code");
        assert_eq!(marked_lines("x\n```\n<script>\n"), "````sh\nx\n```\n<script>\n````\n");
    }
}
