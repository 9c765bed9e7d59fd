//! A figure that is looked for in what a command prints: `--figure NAME=REGEX[:unit][:better]`.

use std::str::FromStr;

use regex_lite::Regex;

use super::figures::named;
use super::{Better, Sample, Unit};

/// Where a figure stands in what a command prints, and what it counts.
#[derive(Clone, Debug)]
pub struct Pattern {
    regex: Regex,
    unit: Unit,
    /// What the printed number is multiplied by to be in that unit.
    factor: f64,
    better: Better,
}

impl FromStr for Pattern {
    type Err = String;

    /// `REGEX[:unit][:better]`. What is neither a unit nor a direction is part of the expression.
    fn from_str(text: &str) -> Result<Pattern, String> {
        let mut regex = text;
        let better = last(&mut regex, |word| named(word).ok());
        let unit = last(&mut regex, unit_named);
        let (unit, factor) = unit.unwrap_or((Unit::Ratio, 1.0));
        let better = better.unwrap_or(match unit {
            Unit::Seconds | Unit::Nanoseconds | Unit::Bytes => Better::Lower,
            _ => Better::Higher,
        });
        if regex.is_empty() {
            return Err("has no expression".into());
        }
        // In lines: ^ and $ are a line's.
        let regex = Regex::new(&format!("(?m){regex}")).map_err(|error| error.to_string())?;
        Ok(Pattern { regex, unit, factor, better })
    }
}

impl Pattern {
    /// The figure where it stands last in `text`: its first group, or all that matches.
    ///
    /// # Errors
    /// Where nothing matches, or what matches is no number.
    pub fn read(&self, metric: &str, text: &str) -> Result<Sample, String> {
        let Some(found) = self.regex.captures_iter(text).last() else {
            let regex = &self.regex.as_str()["(?m)".len()..];
            return Err(format!("figure {metric}: nothing that the command printed is {regex:?}"));
        };
        let word = found.get(1).or_else(|| found.get(0)).map_or("", |it| it.as_str()).trim();
        match parsed(word).map(|value| value * self.factor) {
            Some(value) if value.is_finite() => Ok(self.of(metric, value)),
            _ => {
                Err(format!("figure {metric}: {word:?} is not a number: put it in a group, (...)"))
            }
        }
    }

    /// A figure of this kind.
    pub fn of(&self, metric: &str, value: f64) -> Sample {
        Sample { metric: metric.into(), value, unit: self.unit, better: self.better }
    }
}

/// The number that a text is. Commas are between thousands; `12,5` may be two numbers, or one of
/// another language.
pub fn parsed(word: &str) -> Option<f64> {
    let digits = word.trim_start_matches(['+', '-']);
    let whole = digits.split(['.', 'e', 'E']).next().unwrap_or_default();
    let mut groups = whole.split(',');
    let is_first = groups.next().is_some_and(|first| (1..=3).contains(&first.len()));
    let is_plain = whole.chars().all(|c| c.is_ascii_digit() || c == ',');
    if is_plain && is_first && groups.all(|group| group.len() == 3) {
        return word.replacen(',', "", whole.matches(',').count()).parse().ok();
    }
    word.parse().ok()
}

/// Takes what is after the last colon off `text`, if it can be read.
fn last<T>(text: &mut &str, read: fn(&str) -> Option<T>) -> Option<T> {
    let (rest, last) = text.rsplit_once(':')?;
    let found = read(last)?;
    *text = rest;
    Some(found)
}

/// A unit as documents name it or as programs print it, and how many of ours it is. kB is 1000
/// bytes and KiB 1024.
fn unit_named(word: &str) -> Option<(Unit, f64)> {
    if let Ok(unit) = named(word) {
        return Some((unit, 1.0));
    }
    Some(match word {
        "s" => (Unit::Seconds, 1.0),
        "ms" => (Unit::Nanoseconds, 1e6),
        "us" | "µs" => (Unit::Nanoseconds, 1e3),
        "ns" => (Unit::Nanoseconds, 1.0),
        "/s" => (Unit::PerSecond, 1.0),
        "%" => (Unit::Ratio, 0.01),
        _ => {
            let (amount, unit) = match word.strip_suffix("/s") {
                Some(amount) => (amount, Unit::BytesPerSecond),
                None => (word, Unit::Bytes),
            };
            match amount.strip_suffix("bit") {
                Some(prefix) if unit == Unit::BytesPerSecond => {
                    (Unit::BitsPerSecond, prefixed(prefix).filter(|_| !prefix.ends_with('i'))?)
                }
                _ => (unit, prefixed(amount.strip_suffix('B')?)?),
            }
        }
    })
}

/// `k`, `M`, `Ki`: how many it stands for.
fn prefixed(prefix: &str) -> Option<f64> {
    let (letter, base) = match prefix.strip_suffix('i') {
        Some(letter) => (letter, 1024_f64),
        None => (prefix, 1000.0),
    };
    let power = match letter {
        "" if base == 1000.0 => 0,
        "k" | "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        _ => return None,
    };
    Some(base.powi(power))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pattern: &str, text: &str) -> Result<Sample, String> {
        pattern.parse::<Pattern>()?.read("x", text)
    }

    #[test]
    fn a_figure_is_the_first_group_of_the_last_match() {
        let text = "rate: 5 MB/s\nrate: 1,234.5 MB/s\np99 latency: 17 us\n";
        let rate = Sample::higher("x", 1_234.5e6, Unit::BytesPerSecond);
        assert_eq!(read("^rate: (\\S+):MB/s", text), Ok(rate.clone()));
        let slower = Sample { better: Better::Lower, ..rate };
        assert_eq!(read("^rate: (\\S+):MB/s:lower", text), Ok(slower));
        // A colon of the expression's own, and no group.
        assert_eq!(read("latency: (\\d+) us", text), Ok(Sample::higher("x", 17.0, Unit::Ratio)));
        assert_eq!(read("latency: (\\d+):us", text).unwrap().better, Better::Lower);
        assert_eq!(read("\\d+$:count:lower", "a\n7\nb"), Ok(Sample::lower("x", 7.0, Unit::Count)));
    }

    #[test]
    fn commas_are_between_thousands_and_nowhere_else() {
        let of = |text: &str| read("^(\\S+)$", text).map(|it| it.value);
        assert_eq!(of("1,234"), Ok(1_234.0));
        assert_eq!(of("1,234e3"), Ok(1_234e3));
        assert_eq!(of("-12,345,678.25"), Ok(-12_345_678.25));
        assert_eq!(of("1234567.5e3"), Ok(1_234_567_500.0));
        for text in ["12,5", "1,23,456", "1234,567", "1.5,000", "1,0e5", ",500", "5,"] {
            let error = of(text).unwrap_err();
            assert!(error.contains(&format!("{text:?} is not a number")), "{error}");
        }
    }

    #[test]
    fn units_are_those_that_programs_print() {
        for (unit, expected) in [
            ("ms", (Unit::Nanoseconds, 1e6)),
            ("/s", (Unit::PerSecond, 1.0)),
            ("KiB/s", (Unit::BytesPerSecond, 1024.0)),
            ("kB", (Unit::Bytes, 1000.0)),
            ("GB/s", (Unit::BytesPerSecond, 1e9)),
            ("Mbit/s", (Unit::BitsPerSecond, 1e6)),
            ("B/s", (Unit::BytesPerSecond, 1.0)),
            ("%", (Unit::Ratio, 0.01)),
            ("per_second", (Unit::PerSecond, 1.0)),
        ] {
            assert_eq!(unit_named(unit), Some(expected), "{unit}");
        }
        for word in ["m", "i/s", "iB", "Mibit/s", "furlongs", "", "MB/sec"] {
            assert_eq!(unit_named(word), None, "{word}");
        }
    }

    #[test]
    fn what_is_no_figure_says_why() {
        for (pattern, says) in [
            ("ops (\\d+):count", "nothing that the command printed is \"ops (\\\\d+)\""),
            ("rate: (\\S+) (", "without closing"),
            ("rate", "\"rate\" is not a number: put it in a group"),
            ("\\S+$:MB/s", "\"1e308\" is not a number: put it in a group"),
            (":MB/s", "has no expression"),
        ] {
            let error = read(pattern, "rate: 5\nmore: 1e308").unwrap_err();
            assert!(error.contains(says), "{pattern}: {error}");
        }
    }
}
