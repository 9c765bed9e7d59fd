//! The words of findings.

use fsverdict_core::model::{Checked, Judged};
use fsverdict_core::script::Choice;

use super::sort::{Change, Fate};

/// At most so many changes are reported.
const TOLD: usize = 3;

/// The finding for an option by its fate. `maker` is what makes the result, for sentences.
pub fn of(blank: &Checked, choice: &Choice, fate: &Fate, maker: &str) -> Checked {
    let (state, said) = match fate {
        Fate::Refused(text) => (Judged::Invalid, Some(text.clone())),
        Fate::Untried(text) => (Judged::NotTried, Some(text.clone())),
        Fate::Changes(changes) => (Judged::Ok, Some(told(changes, choice))),
        Fate::Needed => (Judged::Ok, Some("the other options need it".into())),
        Fate::Default => (
            Judged::Redundant,
            Some("makes no difference: without it the result is the same".into()),
        ),
        Fate::Overridden(by) => (Judged::NoEffect, Some(overridden(by.as_deref()))),
        Fate::Ignored => {
            let text =
                format!("{maker} takes it, but neither it nor its opposite changes anything");
            (Judged::NoEffect, Some(text))
        }
    };
    Checked { setting: choice.to_string(), state, said, ..blank.clone() }
}

fn overridden(by: Option<&str>) -> String {
    match by {
        Some(by) => format!("makes no difference beside {by}, which implies or overrides it"),
        None => "makes no difference beside the other options".into(),
    }
}

/// It names a file or another device, which is not touched.
pub fn elsewhere(blank: &Checked, choice: &Choice) -> Checked {
    untried(blank, choice, "it names another device or a file, which is not touched")
}

/// Only running the script would tell what it is.
pub fn unknown(blank: &Checked, setting: &str) -> Checked {
    let said = Some("the file does not say what it stands for".into());
    Checked { setting: setting.into(), state: Judged::NotTried, said, ..blank.clone() }
}

/// The option's name was refused, not its value: it may belong somewhere else.
pub fn is_unknown(said: &str) -> bool {
    let said = said.to_lowercase();
    ["unknown", "bad option", "unrecognized", "unrecognised", "invalid filesystem option"]
        .iter()
        .any(|words| said.contains(words))
}

/// It could not be tried.
pub fn untried(blank: &Checked, choice: &Choice, why: &str) -> Checked {
    let (setting, said) = (choice.to_string(), Some(why.to_string()));
    Checked { setting, state: Judged::NotTried, said, ..blank.clone() }
}

/// What changes: the first few, and first those that have the option's words in them.
fn told(changes: &[Change], choice: &Choice) -> String {
    let value = choice.value.as_deref().unwrap_or("").trim_start_matches('^');
    let words: Vec<&str> = value.split(['=', '_', '-']).filter(|word| word.len() > 2).collect();
    let names = |change: &&Change| {
        let all = [Some(&change.name), change.from.as_ref(), change.to.as_ref()];
        words.iter().any(|word| all.iter().flatten().any(|text| text.to_lowercase().contains(word)))
    };
    let mut sorted: Vec<&Change> = changes.iter().collect();
    sorted.sort_by_key(|change| !names(change));
    let mut texts: Vec<String> = sorted.into_iter().take(TOLD).map(change).collect();
    if changes.len() > TOLD {
        texts.push(format!("and {} more", changes.len() - TOLD));
    }
    texts.join("; ")
}

fn change(change: &Change) -> String {
    let name = &change.name;
    match (change.from.as_deref(), change.to.as_deref()) {
        (None, Some("")) => format!("the kernel shows {name}"),
        (Some(""), None) => format!("the kernel no longer shows {name}"),
        (None, Some(to)) => format!("{name}: {to}"),
        (Some(from), Some(to)) => words(name, from, to),
        (Some(from), None) => format!("{name}: no longer {from}"),
        (None, None) => name.clone(),
    }
}

/// Of lists only the words that come and go.
fn words(name: &str, from: &str, to: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (from.split(' ').collect(), to.split(' ').collect());
    if old.len() < 4 || new.len() < 4 {
        return format!("{name}: {from} -> {to}");
    }
    let gone = old.iter().filter(|word| !new.contains(word)).map(|word| format!("-{word}"));
    let come = new.iter().filter(|word| !old.contains(word)).map(|word| format!("+{word}"));
    format!("{name}: {}", come.chain(gone).collect::<Vec<_>>().join(" "))
}
