//! Comments that say the opposite of what they stand above.

/// Words that say that something is not to be, and those that say that it is.
const OFF: [&str; 10] = [
    "disable",
    "disables",
    "disabled",
    "disabling",
    "turn off",
    "turns off",
    "switch off",
    "without",
    "avoid",
    "deactivate",
];
const ON: [&str; 8] =
    ["enable", "enables", "enabled", "enabling", "turn on", "turns on", "switch on", "activate"];

/// What ends the words that a comment's verb is about.
const ENDS: [&str; 17] = [
    "and", "as", "because", "but", "by", "during", "for", "here", "if", "in", "now", "on", "or",
    "since", "so", "to", "when",
];

/// Other names of what settings are called.
const NAMES: [(&str, &str); 5] = [
    ("access times", "atime"),
    ("access time", "atime"),
    ("write barriers", "barrier"),
    ("copy on write", "datacow"),
    ("readahead", "read ahead"),
];

/// What `comment` says against `setting` (`-E lazy_itable_init=1`, `scheduler = none`), if it says
/// to turn on what is turned off, or the reverse. A comment that is not fully understood says
/// nothing.
pub fn contradiction(comment: &str, setting: &str) -> Option<String> {
    let (key, is_on) = direction(setting);
    let mut text = comment.to_lowercase();
    for (name, is) in NAMES {
        text = text.replace(name, is);
    }
    let clauses = text.split(['.', ',', ';', ':', '(', ')', '\n']);
    clauses.into_iter().find_map(|clause| {
        let (verb, wants_on, rest) = verb(clause)?;
        let subject: Vec<&str> = rest
            .split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|word| !["", "the", "all", "any", "a"].contains(word))
            .take_while(|word| !ENDS.contains(word))
            .collect();
        let same = means(&subject, &key)?;
        let (turned_on, told) = (is_on == same, format!("{verb} {}", subject.join(" ")));
        let does = if turned_on { "on" } else { "off" };
        (turned_on != wants_on).then(|| {
            format!("its comment says {told:?}, and it turns that {does}: one of them is wrong")
        })
    })
}

/// The first verb of a clause, what it wants, and the words after it.
fn verb(clause: &str) -> Option<(&'static str, bool, &str)> {
    let verbs = OFF.iter().map(|verb| (*verb, false)).chain(ON.iter().map(|verb| (*verb, true)));
    let found = verbs.filter_map(|(verb, on)| {
        let place = clause.match_indices(verb).map(|(place, _)| place).find(|&place| {
            let edge = |c: Option<char>| c.is_none_or(|c| !c.is_ascii_alphanumeric());
            edge(clause[..place].chars().next_back())
                && edge(clause[place + verb.len()..].chars().next())
        })?;
        // "don't disable" is beyond us.
        let negated = ["not ", "n't ", "never "].iter().any(|no| clause[..place].ends_with(no));
        (!negated).then_some((place, verb, on))
    });
    let (place, verb, on) = found.min_by_key(|(place, ..)| *place)?;
    Some((verb, on, &clause[place + verb.len()..]))
}

/// The setting's name, and whether it turns that on: `^name`, `name=0` and the like do not.
fn direction(setting: &str) -> (String, bool) {
    let text = setting.split_once(' ').filter(|(flag, _)| flag.starts_with('-'));
    let text = text.map_or(setting, |(_, text)| text).trim().to_lowercase();
    let (key, value) = text.split_once('=').unwrap_or((&text, ""));
    let (key, negated) = match key.trim().strip_prefix('^') {
        Some(key) => (key, true),
        None => (key.trim(), false),
    };
    let off = ["0", "off", "no", "false", "none", "never", "disabled", "write through", "n"];
    (key.into(), !negated && !off.contains(&value.trim()))
}

/// Whether the words are the name `key` (true), or what it negates (false): `atime` of `noatime`.
fn means(subject: &[&str], key: &str) -> Option<bool> {
    let parts: Vec<&str> = key.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let is = |word: &&str, part: &str| {
        *word == part
            || word.strip_suffix('s') == Some(part)
            || (part.len() >= 4 && word.starts_with(part))
    };
    let all = |parts: &[&str]| subject.iter().all(|word| parts.iter().any(|part| is(word, part)));
    if subject.is_empty() {
        return None;
    }
    if all(&parts) {
        return Some(true);
    }
    let bare: Vec<&str> =
        parts.iter().map(|part| part.strip_prefix("no").unwrap_or(part)).collect();
    (bare != parts && all(&bare)).then_some(false)
}

#[cfg(test)]
mod tests {
    use super::contradiction;

    #[test]
    fn a_comment_that_says_the_opposite_is_told() {
        for (comment, setting) in [
            ("disable lazy init", "-E lazy_itable_init=1"),
            ("Disable lazy initialization, for steady figures.", "-E lazy_itable_init=1"),
            ("enable barriers", "-o nobarrier"),
            ("turn off the journal", "-O has_journal"),
            ("enable the journal", "-O ^has_journal"),
            ("we disable access times here", "-o atime"),
            ("enable access times", "-o noatime"),
            ("disable readahead", "read_ahead_kb = 4096"),
            ("enable the write cache", "write_cache = write through"),
        ] {
            let said = contradiction(comment, setting);
            assert!(said.is_some_and(|said| said.contains("one of them is wrong")), "{comment}");
        }
    }

    #[test]
    fn a_comment_that_agrees_or_is_about_something_else_says_nothing() {
        for (comment, setting) in [
            ("disable lazy init", "-E lazy_itable_init=0"),
            ("disable access times", "-o noatime"),
            ("enable noatime", "-o noatime"),
            ("disable barriers", "-o nobarrier"),
            ("disable journal checksums", "-o journal_async_commit"),
            ("don't disable barriers", "-o barrier=1"),
            ("disable the journal", "-L data"),
            ("disable", "-o discard"),
            ("no trim: the weekly timer does it", "-o nodiscard"),
            ("", "-o discard"),
            ("\u{e9} disable \u{e9}", "-o x"),
        ] {
            assert_eq!(contradiction(comment, setting), None, "{comment}: {setting}");
        }
    }
}
