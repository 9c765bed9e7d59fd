//! Options of a program, each suboption by itself, so that they can be tried one by one.

use std::fmt;

use super::device::is_device;

/// One option, or one of the comma-separated suboptions of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Suboptions of one list share a number.
    pub group: usize,
    /// `-l`, `--nodesize`, or nothing for an argument without one.
    pub flag: String,
    /// The value is written right behind the flag: `-b4096`, `--nodesize=16k`.
    pub attached: bool,
    /// The suboption or the value.
    pub value: Option<String>,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&words(&self.flag, self.attached, self.value.as_deref()).join(" "))
    }
}

impl Choice {
    /// The suboption's name: `logbsize` of `-l logbsize=256k`, `-F` of `-F`.
    pub fn key(&self) -> &str {
        let value = self.value.as_deref().unwrap_or(&self.flag);
        value.split('=').next().unwrap_or(value)
    }
}

/// The options among `words`; those words that are neither options nor their values; and the
/// devices.
///
/// It is not known here which options take a value: a word after an option that neither looks like
/// an option nor names a device is taken for its value. An unset variable stands for a device only
/// if none follows.
pub fn choices(words: &[String]) -> (Vec<Choice>, Vec<String>, Vec<String>) {
    let (mut choices, mut devices, mut rest) = (Vec::new(), Vec::new(), Vec::new());
    let last_device = words.iter().rposition(|word| is_device(word)).unwrap_or(0);
    let mut words = words.iter().enumerate().peekable();
    while let Some((group, word)) = words.next() {
        let is_option = word.len() > 1 && word.starts_with('-');
        if !is_option && is_device(word) && devices_may_follow(&rest) {
            devices.push(word.clone());
        } else if !is_option {
            rest.push(word.clone());
        } else if let Some((flag, value)) = attached(word) {
            choices.extend(split(group, flag, true, Some(value)));
        } else {
            let stands_for_value =
                |place, next: &str| next.starts_with('$') && place < last_device && !is_bare(word);
            let is_value = |(place, next): &(usize, &String)| {
                !next.starts_with('-') && (!is_device(next) || stands_for_value(*place, next))
            };
            let value = words.next_if(is_value).map(|(_, next)| next.as_str());
            choices.extend(split(group, word, false, value));
        }
    }
    // `mkfs.xfs -f nvme0n1` and `mkfs.xfs -f disk.img`: the last word is the device, even where
    // it was taken for the value of the option before it.
    if devices.is_empty() {
        match (rest.pop(), choices.last_mut()) {
            (Some(word), _) => devices.push(word),
            (None, Some(last)) if !last.attached => devices.extend(last.value.take()),
            _ => {}
        }
    }
    (choices, devices, rest)
}

/// Options without a value of every program that makes file systems.
fn is_bare(flag: &str) -> bool {
    flag.starts_with("--") || ["-f", "-F", "-q", "-K", "-v", "-V"].contains(&flag)
}

/// `word` holds something that only running the script would tell.
pub fn is_unknown(word: &str) -> bool {
    word.contains(['$', '`'])
}

/// What follows a size or a command is no device any more.
fn devices_may_follow(rest: &[String]) -> bool {
    rest.is_empty()
}

fn attached(word: &str) -> Option<(&str, &str)> {
    if word.starts_with("--") {
        return word.split_once('=');
    }
    (word.len() > 2 && word.is_ascii()).then(|| word.split_at(2))
}

fn split(group: usize, flag: &str, attached: bool, value: Option<&str>) -> Vec<Choice> {
    let choice = |value: Option<&str>| Choice {
        group,
        flag: flag.into(),
        attached,
        value: value.map(Into::into),
    };
    match value {
        None => vec![choice(None)],
        Some(list) => list.split(',').filter(|v| !v.is_empty()).map(|v| choice(Some(v))).collect(),
    }
}

fn words(flag: &str, attached: bool, value: Option<&str>) -> Vec<String> {
    match value {
        None => vec![flag.into()],
        Some(value) if flag.is_empty() => vec![value.into()],
        Some(value) if attached && flag.starts_with("--") => vec![format!("{flag}={value}")],
        Some(value) if attached => vec![format!("{flag}{value}")],
        Some(value) => vec![flag.into(), value.into()],
    }
}

/// The words of `choices`, with those of one list in one list again.
pub fn argv(choices: &[Choice]) -> Vec<String> {
    let lists = choices.chunk_by(|a, b| a.group == b.group && a.flag == b.flag);
    lists
        .flat_map(|list| {
            let values: Vec<&str> = list.iter().filter_map(|c| c.value.as_deref()).collect();
            let value = (!values.is_empty()).then(|| values.join(","));
            words(&list[0].flag, list[0].attached, value.as_deref())
        })
        .collect()
}
