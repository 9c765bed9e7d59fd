//! Figures as printed.

use super::heading;
use crate::model::{Printed, Quantity, StatedChange, parsed};

/// A figure: `8,141`, `31.50`, `40.2k`, `97.75%`, `12.1 ± 1.4`, `12.1 ± 2%`, `2:02.55`. `None`: no
/// figure.
pub fn printed(text: &str) -> Option<Printed> {
    let text = text.trim();
    let split = ["±", "+/-", "+-"].iter().find_map(|mark| text.split_once(mark));
    let (figure, spread) = split.map_or((text, None), |(figure, spread)| (figure, Some(spread)));
    let (value, step) = plain(figure).or_else(|| clock(figure))?;
    let is_share = |text: &str| text.trim_end().ends_with('%');
    let deviation = match spread {
        // A share of the figure, unless that is one itself.
        Some(share) if is_share(share) && !is_share(figure) => {
            Some(plain(share)?.0 / 1e2 * value.abs())
        }
        Some(spread) => Some(plain(spread)?.0),
        None => None,
    };
    Some(Printed { text: text.into(), value, step, deviation, scale: None })
}

/// Value and step of a bare figure.
fn plain(text: &str) -> Option<(f64, f64)> {
    let bare = text.trim().trim_end_matches('%').trim_end().replace('_', "");
    let (digits, prefix) = match bare.chars().last()? {
        'k' | 'K' => (&bare[..bare.len() - 1], 1e3),
        'M' => (&bare[..bare.len() - 1], 1e6),
        'G' => (&bare[..bare.len() - 1], 1e9),
        _ => (bare.as_str(), 1.0),
    };
    // Ratios and squares of what anybody measures stay finite.
    let is_measured = |value: &f64| *value == 0.0 || (1e-100..1e100).contains(&value.abs());
    let value = parsed(digits).filter(is_measured)?;
    let (mantissa, exponent) = digits.split_once(['e', 'E']).unwrap_or((digits, "0"));
    let decimals = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let step = 10_f64.powi(exponent.parse::<i32>().ok()? - decimals as i32);
    Some((value * prefix, step * prefix))
}

/// Seconds of `32:06.78` and `1:02:03`, as time(1) prints them.
fn clock(text: &str) -> Option<(f64, f64)> {
    let (before, seconds) = text.trim().rsplit_once(':')?;
    let (seconds, step) = plain(seconds).filter(|(it, _)| (0.0..60.0).contains(it))?;
    let parts: Option<Vec<u32>> = before.split(':').map(|part| part.parse().ok()).collect();
    let minutes = parts.filter(|parts| parts.len() < 3)?;
    let minutes = minutes.into_iter().fold(0, |all, part| all * 60 + part);
    Some((f64::from(minutes) * 60.0 + seconds, step))
}

/// A rough figure is known to this share of it.
const ROUGHLY: f64 = 0.05;
/// A figure rounded to tens may be off by so much.
const HALF_OF_TEN: f64 = 5.0;

/// A figure as a text has it: with a unit of its own (`3.2 GB/s`), roughly (`~3200`), or a range
/// (`3-5 ms`), whose middle gives or takes half of it.
pub fn said(text: &str) -> Option<Printed> {
    let bare = without_about(text);
    let is_word =
        |(at, c): &(usize, char)| c.is_alphabetic() && bare[..*at].ends_with(char::is_whitespace);
    let word = bare.char_indices().find(is_word).map(|(at, _)| at);
    let unit_at = word.or_else(|| bare.find(char::is_alphabetic));
    let (number, unit) = bare.split_at(unit_at.unwrap_or(bare.len()));
    let known = heading::column(unit.trim());
    let (number, scale) = match known.quantity {
        // `40.2k` has a prefix and no unit.
        Quantity::Other => (bare, None),
        _ => (number, Some(known.scale)),
    };
    let range = number.trim().split_once(['-', '–']).filter(|(low, _)| !low.trim().is_empty());
    let figure = match range {
        Some((low, high)) => {
            let ((low, step), (high, other)) = (plain(low)?, plain(high)?);
            let (value, half) = (f64::midpoint(low, high), (high - low).abs() / 2.0);
            Printed { value, step: half + step.max(other), ..printed("0")? }
        }
        None => printed(number)?,
    };
    let is_rough = bare.len() < text.trim().len();
    let least = if is_rough { figure.value.abs() * ROUGHLY } else { 0.0 };
    Some(Printed { text: text.trim().into(), step: figure.step.max(least), scale, ..figure })
}

/// The text without what says that it is roughly so.
fn without_about(text: &str) -> &str {
    let bare = text.trim().trim_start_matches(['~', '≈']).trim_start();
    ["about ", "around ", "ca. ", "circa "]
        .iter()
        .find_map(|it| bare.strip_prefix(it))
        .unwrap_or(bare)
}

/// A figure that a program wrote in full, known to `step`.
pub fn exact(value: f64, step: f64) -> Printed {
    Printed { text: format!("{value}"), value, step, deviation: None, scale: None }
}

/// A figure that a program wrote in full, in binary.
pub fn whole(value: f64) -> Printed {
    exact(value, value.abs() * 1e-9 + 1e-12)
}

/// A change: `6.9x`, `3-4x`, `more than 2x`, `+9%`, `-12%`, `30-50%`, `~10-15%`, `up to 40%`,
/// `-3-5%` (the sign is of both ends).
pub fn change(text: &str) -> Option<StatedChange> {
    let text = text.trim();
    let begins = |words: &[&str]| words.iter().find_map(|it| text.strip_prefix(it));
    let (bare, at_least, at_most) =
        match (begins(&["more than ", "over ", ">"]), begins(&["up to ", "<"])) {
            (Some(bare), _) => (bare, true, false),
            (_, Some(bare)) => (bare, false, true),
            _ => (text, false, false),
        };
    let exactly = without_about(bare);
    let is_rough = exactly.len() < bare.len();
    // A change that is at least so large goes on away from 1; at most, from there back to 1.
    let bounded = |(one, other): (f64, f64)| {
        let away = if one.max(other) > 1.0 { f64::INFINITY } else { 0.0 };
        match (at_least, at_most) {
            (true, _) => (one.min(away), other.max(away)),
            (_, true) => (one.min(1.0), other.max(1.0)),
            _ => (one, other),
        }
    };
    let share = if is_rough { ROUGHLY } else { 0.0 };
    let rounded = ratios(exactly, share, HALF_OF_TEN).filter(|_| is_of_tens(exactly)).map(bounded);
    Some(StatedChange {
        text: text.into(),
        ratios: match rounded.filter(|_| is_rough) {
            Some(rounded) => rounded,
            None => bounded(ratios(exactly, share, 0.0)?),
        },
        of_tens: rounded,
    })
}

/// A change such as `+30%`, which may have been rounded to tens.
fn is_of_tens(change: &str) -> bool {
    let percent = change.strip_suffix('%').and_then(|it| plain(it.trim_start_matches(['+', '−'])));
    percent.is_some_and(|(value, step)| value != 0.0 && value % 10.0 == 0.0 && step == 1.0)
}

/// The least and the greatest ratio; each end is known to a unit of its last digit, to `share` of
/// it and to `within`, whichever is most.
fn ratios(text: &str, share: f64, within: f64) -> Option<(f64, f64)> {
    let range = |text: &str| {
        let (low, high) = text.split_once(['-', '–']).unwrap_or((text, text));
        let slack = |text: &str| {
            let (value, step) = plain(text)?;
            Some((value, step.max(value.abs() * share).max(within)))
        };
        let ((low, below), (high, above)) = (slack(low)?, slack(high)?);
        Some((low - below, high + above))
    };
    if let Some(times) = text.strip_suffix(['x', '×']).or_else(|| text.strip_suffix(" times")) {
        return range(times.trim());
    }
    let bare = text.strip_suffix('%')?.trim();
    let (sign, bare) = match bare.strip_prefix(['-', '−']) {
        Some(rest) => (-1.0, rest),
        None => (1.0, bare.strip_prefix('+').unwrap_or(bare)),
    };
    let (low, high) = range(bare)?;
    let [one, other] = [low, high].map(|it| 1.0 + sign * it / 1e2);
    Some((one.min(other), one.max(other)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_known_to_its_last_digit() {
        let read = |text| printed(text).map(|it| (it.value, it.step));
        assert_eq!(read("8,141"), Some((8141.0, 1.0)));
        assert_eq!(read("31.50"), Some((31.5, 0.01)));
        assert_eq!(read(" 97.75 %"), Some((97.75, 0.01)));
        assert_eq!(read("40.2k"), Some((40_200.0, 100.0)));
        assert_eq!(read("1.5e-3"), Some((0.0015, 1e-4)));
        assert_eq!(["-", "", "n/a", "fast", "inf", "k", "1e300"].map(read), [None; 7]);
    }

    #[test]
    fn a_comma_stands_between_thousands_or_makes_no_figure() {
        let read = |text| printed(text).map(|it| it.value);
        assert_eq!(["-1,234,567.5", "12,345k"].map(read), [Some(-1_234_567.5), Some(12_345e3)]);
        let wrong = ["12,5", "0,75", "1234,567", "1,23,456", "1,2345", ",123", "1.234,567", "1,"];
        assert_eq!(wrong.map(read), [None; 8]);
        assert_eq!(said("12,5 ms"), None);
    }

    #[test]
    fn a_change_is_a_ratio_or_a_range_of_them() {
        let read = |text| {
            let (low, high) = change(text).unwrap().ratios;
            [low, high].map(|it| (it * 1e4).round() / 1e4)
        };
        assert_eq!(read("6.9x"), [6.8, 7.0]);
        assert_eq!(read("+9%"), [1.08, 1.1]);
        assert_eq!(read("-12%"), [0.87, 0.89]);
        assert_eq!(read("-3-5%"), [0.94, 0.98]);
        assert_eq!(read("30-50%"), [1.29, 1.51]);
        assert_eq!([change("9"), change("a lot"), change("%")], [None, None, None]);
        assert_eq!([read("3-4x"), read("~3-4 times")], [[2.0, 5.0]; 2]);
        assert_eq!(read("~10-15%"), [1.09, 1.16]);
        assert_eq!(read("about -12%"), [0.87, 0.89]);
        assert_eq!([read("~30%"), read("about -30%")], [[1.25, 1.35], [0.65, 0.75]]);
        assert_eq!(
            [read("~100%"), read("~40x"), read("~32%")],
            [[1.95, 2.05], [38.0, 42.0], [1.304, 1.336]]
        );
        assert_eq!(read("+30%"), [1.29, 1.31]);
        let of_tens = |text| change(text).unwrap().of_tens;
        assert_eq!(of_tens("+30%"), Some((1.25, 1.35)));
        assert_eq!(["+31%", "30.0%", "30x", "30-50%"].map(of_tens), [None; 4]);
        assert_eq!(read("up to 40%"), [1.0, 1.41]);
        assert_eq!(change("more than 2x").unwrap().ratios, (1.0, f64::INFINITY));
        assert_eq!(change("more than -20%").unwrap().ratios.0, 0.0);
    }

    #[test]
    fn a_figure_of_a_text_may_have_a_unit_be_rough_or_a_range() {
        let read = |text| said(text).map(|it| (it.value, (it.step * 1e9).round() / 1e9, it.scale));
        assert_eq!(read("3.2 GB/s"), Some((3.2, 0.1, Some(1e9))));
        assert_eq!(read("~3.2"), Some((3.2, 0.16, None)));
        assert_eq!(read("12-15 ms"), Some((13.5, 2.5, Some(1e-3))));
        assert_eq!(read("8,141"), Some((8141.0, 1.0, None)));
        assert_eq!(read("40.2k"), Some((40_200.0, 100.0, None)));
        assert_eq!(read("150k IOPS"), Some((150_000.0, 1000.0, Some(1.0))));
        assert_eq!(["fast", "", "-", "GB/s"].map(read), [None; 4]);
    }

    #[test]
    fn a_spread_and_a_time_on_the_clock_are_read() {
        let read = |text| printed(text).map(|it| (it.value, it.deviation));
        for text in ["12.1 ± 1.4", "12.1 +- 1.4", "12.1+/-1.4"] {
            assert_eq!(read(text), Some((12.1, Some(1.4))));
        }
        assert_eq!(read("3200 ± 2%"), Some((3200.0, Some(64.0))));
        assert_eq!(read("97% ± 2 %"), Some((97.0, Some(2.0))));
        assert_eq!(read("2:02.55"), Some((122.55, None)));
        assert_eq!(read("1:00:01"), Some((3601.0, None)));
        assert_eq!([read("12.1 ± "), read("2:62"), read("a:1")], [None; 3]);
    }
}
