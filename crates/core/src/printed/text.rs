//! Reading what is printed for people.

use regex_lite::Regex;

use crate::model::{Sample, Unit};

pub const MIB: f64 = 1_048_576.0;
pub const KIB: f64 = 1024.0;
pub const MB: f64 = 1e6;
/// A millisecond, in nanoseconds.
pub const MS_NS: f64 = 1e6;

/// What the groups of an expression hold, match by match; `^` and `$` are a line's. A group that
/// takes no part is empty.
pub fn groups<'t, const N: usize>(text: &'t str, expression: &str) -> Vec<[&'t str; N]> {
    let Ok(regex) = Regex::new(&format!("(?m){expression}")) else { return Vec::new() };
    let group = |found: &regex_lite::Captures<'t>, number| {
        found.get(number).map_or("", |group| group.as_str())
    };
    let found = regex.captures_iter(text);
    found.map(|found| std::array::from_fn(|place| group(&found, place + 1))).collect()
}

/// A printed number.
pub fn number(word: &str) -> Option<f64> {
    word.trim().parse().ok().filter(|value: &f64| value.is_finite())
}

/// The number in the first group of the last match.
pub fn last_number(text: &str, expression: &str) -> Option<f64> {
    let [word] = groups::<1>(text, expression).pop()?;
    number(word)
}

/// A time of so many `unit_ns`, where less is better.
pub fn latency(metric: impl Into<String>, value: f64, unit_ns: f64) -> Sample {
    Sample::lower(metric, (value * unit_ns).round(), Unit::Nanoseconds)
}

pub fn bandwidth(metric: impl Into<String>, bytes_per_s: f64) -> Sample {
    Sample::higher(metric, bytes_per_s, Unit::BytesPerSecond)
}

pub fn rate(metric: impl Into<String>, per_s: f64) -> Sample {
    Sample::higher(metric, per_s, Unit::PerSecond)
}

/// A command line's words, as they stand between spaces.
#[cfg(test)]
pub fn words(line: &str) -> Vec<String> {
    line.split(' ').map(String::from).collect()
}

#[cfg(test)]
pub fn figure(samples: &[Sample], metric: &str) -> Option<f64> {
    samples.iter().find(|sample| sample.metric == metric).map(|sample| sample.value)
}
