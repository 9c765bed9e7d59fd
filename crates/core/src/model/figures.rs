//! Figures that a command gives of its own work: a text with one on each line.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error, StrDeserializer};
use thiserror::Error;

use super::{Sample, Unit};

/// A line that is not a figure.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("line {line}: {text:?} is not a figure: {wrong}")]
pub struct FigureError {
    /// Its number, from 1.
    line: usize,
    text: String,
    wrong: String,
}

/// The figures in `text`: each line holds metric, value, unit and better, between spaces, as
/// `transactions_per_s 812.4 per_second higher`. Empty lines and those that begin with `#` are
/// skipped.
pub fn figures(text: &str) -> Result<Vec<Sample>, FigureError> {
    let mut known = BTreeSet::new();
    let mut figures = Vec::new();
    for (place, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |wrong| FigureError { line: place + 1, text: line.into(), wrong };
        let figure = figure(line).map_err(wrong)?;
        if !known.insert(figure.metric.clone()) {
            return Err(wrong(format!("{} was given before", figure.metric)));
        }
        figures.push(figure);
    }
    Ok(figures)
}

fn figure(line: &str) -> Result<Sample, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [metric, value, unit, better] = words[..] else {
        return Err("write METRIC VALUE UNIT BETTER, with spaces between them".into());
    };
    if !is_metric(metric) {
        return Err(format!("{metric:?} is not a metric: write it in a-z, 0-9 and _"));
    }
    let value = match value.parse::<f64>() {
        Ok(value) if value.is_finite() => value,
        _ => return Err(format!("{value:?} is not a number")),
    };
    Ok(Sample { metric: metric.into(), value, unit: named::<Unit>(unit)?, better: named(better)? })
}

/// It can be a metric's name.
pub(super) fn is_metric(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    !name.is_empty() && name.chars().all(is_part)
}

/// The variant of that name, as documents write it; otherwise which there are.
pub(super) fn named<'de, T: Deserialize<'de>>(name: &'de str) -> Result<T, String> {
    let name: StrDeserializer<'de, Error> = name.into_deserializer();
    T::deserialize(name).map_err(|error: Error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_a_line() {
        let text =
            "# pgbench\n\ntransactions_per_s 812.4 per_second higher\nwal 5e6  bytes lower\n";
        let expected = [
            Sample::higher("transactions_per_s", 812.4, Unit::PerSecond),
            Sample::lower("wal", 5e6, Unit::Bytes),
        ];
        assert_eq!(figures(text), Ok(expected.into()));
        assert_eq!(figures(""), Ok(Vec::new()));
    }

    #[test]
    fn what_is_no_figure_says_where_and_why() {
        for (line, says) in [
            ("rate 5 per_second", "line 2: \"rate 5 per_second\" is not a figure: write METRIC"),
            ("rate 5 per_second higher !", "write METRIC VALUE UNIT BETTER"),
            ("Rate 5 per_second higher", "\"Rate\" is not a metric"),
            ("rate 5/s per_second higher", "\"5/s\" is not a number"),
            ("rate nan per_second higher", "\"nan\" is not a number"),
            ("rate 5 per_minute higher", "unknown variant `per_minute`, expected one of `seconds`"),
            ("rate 5 per_second more", "unknown variant `more`, expected `higher` or `lower`"),
            ("ok 5 count lower", "ok was given before"),
        ] {
            let error = figures(&format!("ok 1 count lower\n{line}\n")).unwrap_err().to_string();
            assert!(error.contains(says), "{line}: {error}");
        }
    }
}
