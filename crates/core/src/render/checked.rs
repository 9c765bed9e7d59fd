//! What `check` found, for a terminal and as JSON.

use serde::Serialize;

use super::json;
use super::paint;
use super::words::counted;
use crate::model::{Checked, Judged};

/// States in the order of the closing sentence: the gravest first.
const STATES: [Judged; 7] = [
    Judged::Invalid,
    Judged::Unsafe,
    Judged::NoEffect,
    Judged::Doubtful,
    Judged::Redundant,
    Judged::Ok,
    Judged::NotTried,
];

/// Each line with its settings beneath, and a sentence that counts them.
pub fn checked(checked: &[Checked], other_lines: usize) -> String {
    let width = checked.iter().map(|it| it.setting.chars().count()).max().unwrap_or(0).min(28);
    let mut out = String::new();
    for line in checked.chunk_by(|a, b| a.line == b.line && a.command == b.command) {
        out += &format!("line {}: {}\n", line[0].line, line[0].command);
        for it in line {
            out += &entry(it, width);
        }
        out += "\n";
    }
    out + &format!("{}\n", sentence(checked, other_lines))
}

fn entry(it: &Checked, width: usize) -> String {
    let head = format!("  {:9}  {:width$}", it.state.label(), it.setting);
    let said = it.said.as_deref().unwrap_or("");
    let indent = width + 15;
    let first = match (said, it.setting.chars().count() > width) {
        ("", _) => head.trim_end().to_string(),
        (said, false) => format!("{head}  {}", wrapped(said, indent)),
        (said, true) => format!("{head}\n{:indent$}{}", "", wrapped(said, indent)),
    };
    let advice = it.advice.as_ref();
    let advice = advice
        .map(|a| format!("{:indent$}-> {}\n", "", wrapped(a, indent + 3)))
        .unwrap_or_default();
    format!("{first}\n{advice}")
}

/// Broken at words, so that a line with its indentation stays within 80 columns.
pub(super) fn wrapped(text: &str, indent: usize) -> String {
    let room = 80_usize.saturating_sub(indent).max(30);
    paint::wrapped(text, room).join(&format!("\n{:indent$}", ""))
}

fn sentence(checked: &[Checked], other_lines: usize) -> String {
    let count = |state| checked.iter().filter(|it| it.state == state).count();
    let counts: Vec<String> = STATES
        .iter()
        .filter(|state| count(**state) > 0)
        .map(|state| format!("{} {}", count(*state), state.label()))
        .collect();
    let settings = counted(checked.len(), "setting");
    let rest = match other_lines {
        0 => String::new(),
        1 => " 1 line is not a setting.".into(),
        n => format!(" {n} lines are not settings."),
    };
    match checked.is_empty() {
        true => format!("No settings found.{rest}"),
        false => format!("{settings}: {}.{rest}", counts.join(", ")),
    }
}

#[derive(Serialize)]
struct Document<'a> {
    settings: &'a [Checked],
    other_lines: usize,
}

/// `schema`, `settings[]` and `other_lines`; ends with a line break.
pub fn checked_json(checked: &[Checked], other_lines: usize) -> String {
    json::stamped(&Document { settings: checked, other_lines })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(state: Judged) -> Checked {
        Checked {
            line: 3,
            command: "mkfs.xfs -l logbsize=256k DEV".into(),
            setting: "-l logbsize=256k".into(),
            state,
            said: Some("mkfs.xfs: \"unknown option\"".into()),
            advice: Some("it is a mount option".into()),
        }
    }

    #[test]
    fn a_line_has_its_settings_beneath_and_a_sentence_counts_them() {
        let text = checked(&[one(Judged::Invalid), one(Judged::Ok)], 2);
        assert!(
            text.starts_with("line 3: mkfs.xfs -l logbsize=256k DEV\n  invalid    -l"),
            "{text}"
        );
        assert!(
            text.contains("\n                               -> it is a mount option\n"),
            "{text}"
        );
        assert!(
            text.ends_with("2 settings: 1 invalid, 1 ok. 2 lines are not settings.\n"),
            "{text}"
        );
        assert_eq!(checked(&[], 1), "No settings found. 1 line is not a setting.\n");
    }

    #[test]
    fn long_text_is_broken_at_words() {
        let it = Checked { said: Some("word ".repeat(60)), ..one(Judged::Ok) };
        assert!(checked(&[it], 0).lines().all(|line| line.len() <= 80));
    }
}
