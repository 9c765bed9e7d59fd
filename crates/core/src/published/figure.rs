//! Figures as printed.

use crate::model::{Claimed, Printed};

/// A figure: `8,141`, `31.50`, `40.2k`, `97.75%`. `None`: no figure.
pub fn printed(text: &str) -> Option<Printed> {
    let text = text.trim();
    let bare = text.trim_end_matches('%').trim_end().replace([',', '_'], "");
    let (digits, prefix) = match bare.chars().last()? {
        'k' | 'K' => (&bare[..bare.len() - 1], 1e3),
        'M' => (&bare[..bare.len() - 1], 1e6),
        'G' => (&bare[..bare.len() - 1], 1e9),
        _ => (bare.as_str(), 1.0),
    };
    let value: f64 = digits.parse().ok().filter(|value: &f64| value.is_finite())?;
    let (mantissa, exponent) = digits.split_once(['e', 'E']).unwrap_or((digits, "0"));
    let decimals = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let step = 10_f64.powi(exponent.parse::<i32>().ok()? - decimals as i32);
    Some(Printed { text: text.into(), value: value * prefix, step: step * prefix })
}

/// A figure that a program wrote in full, known to `step`.
pub fn exact(value: f64, step: f64) -> Printed {
    Printed { text: format!("{value}"), value, step }
}

/// A figure that a program wrote in full, in binary.
pub fn whole(value: f64) -> Printed {
    exact(value, value.abs() * 1e-9 + 1e-12)
}

/// A change: `6.9x`, `+9%`, `-12%`, `30-50%`, `-3-5%` (the sign is of both ends).
pub fn change(text: &str) -> Option<Claimed> {
    let text = text.trim();
    if let Some(times) = text.strip_suffix(['x', '×']) {
        let times = printed(times)?;
        let ratios = (times.value - times.step, times.value + times.step);
        return Some(Claimed { text: text.into(), ratios });
    }
    let bare = text.strip_suffix('%')?.trim();
    let (sign, bare) = match bare.strip_prefix(['-', '−']) {
        Some(rest) => (-1.0, rest),
        None => (1.0, bare.strip_prefix('+').unwrap_or(bare)),
    };
    let (low, high) = bare.split_once(['-', '–']).unwrap_or((bare, bare));
    let (low, high) = (printed(low)?, printed(high)?);
    let [one, other] =
        [low.value - low.step, high.value + high.step].map(|it| 1.0 + sign * it / 1e2);
    Some(Claimed { text: text.into(), ratios: (one.min(other), one.max(other)) })
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
        assert_eq!(["-", "", "n/a", "fast", "inf", "k"].map(read), [None; 6]);
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
    }
}
