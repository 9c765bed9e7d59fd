//! The words of the commands that make layers.

use fsverdict_core::model::{Bytes, Layer};

use crate::tool::Argv;

/// The command that takes from `device` what earlier trials have left: a layer's tool would find
/// its own there, and ask.
pub fn clear_argv(device: &str) -> Argv {
    words(&["wipefs", "--all", "--quiet", device])
}

/// A line for the shell.
pub(super) fn shell(line: &str) -> Argv {
    words(&["sh", "-c", line])
}

pub(super) fn words(words: &[&str]) -> Argv {
    words.iter().map(ToString::to_string).collect()
}

/// `words`, and `option=value` where that is set.
pub(super) fn with(mut argv: Argv, options: &[(&str, Option<String>)]) -> Argv {
    for (option, value) in options {
        argv.extend(value.as_ref().map(|value| format!("{option}={value}")));
    }
    argv
}

/// Nothing is asked for by name.
pub(super) fn nothing(_: &Layer) -> Vec<String> {
    Vec::new()
}

pub(super) fn bytes(value: &str) -> Option<u64> {
    value.parse::<Bytes>().ok().map(|bytes| bytes.0)
}

/// `8ms` or `1s`, up to a minute.
pub(super) fn milliseconds(value: &str) -> Option<u64> {
    let (number, factor) = match value.strip_suffix("ms") {
        Some(number) => (number, 1),
        None => (value.strip_suffix('s')?, 1000),
    };
    let is_number = !number.is_empty() && number.bytes().all(|it| it.is_ascii_digit());
    let time_ms = is_number.then(|| number.parse::<u64>().ok())??.checked_mul(factor)?;
    (time_ms <= 60_000).then_some(time_ms)
}
