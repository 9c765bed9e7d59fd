//! Quantities as people write them (`4G`, `90s`, `5%`) and as a table shows them.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use thiserror::Error;

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Seconds of time.
    Seconds,
    /// Nanoseconds of time.
    Nanoseconds,
    /// Bytes.
    Bytes,
    /// Bytes a second.
    BytesPerSecond,
    /// Bits a second, of a network.
    BitsPerSecond,
    /// Operations a second.
    PerSecond,
    /// A number of things.
    Count,
    /// A number without a unit.
    Ratio,
}

impl Unit {
    /// The unit's symbol, as a column of raw values names it.
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::Seconds => "s",
            Unit::Nanoseconds => "ns",
            Unit::Bytes => "B",
            Unit::BytesPerSecond => "B/s",
            Unit::BitsPerSecond => "bit/s",
            Unit::PerSecond => "1/s",
            Unit::Count | Unit::Ratio => "",
        }
    }

    /// It is a time, or a rate, which is so much in a time.
    pub fn is_of_time(self) -> bool {
        match self {
            Unit::Seconds | Unit::Nanoseconds | Unit::PerSecond => true,
            Unit::BytesPerSecond | Unit::BitsPerSecond => true,
            Unit::Bytes | Unit::Count | Unit::Ratio => false,
        }
    }

    /// `value`, in this unit, for a person: three significant figures and a prefix.
    /// Bytes are IEC (1 KiB is 1024 bytes), bits are SI (1 kbit is 1000 bits).
    pub fn format(self, value: f64) -> String {
        match self {
            Unit::Seconds => seconds(value),
            Unit::Nanoseconds => seconds(value / 1e9),
            Unit::Bytes => iec(value, ""),
            Unit::BytesPerSecond => iec(value, "/s"),
            Unit::BitsPerSecond => si(value, "bit/s"),
            Unit::PerSecond => format!("{}/s", thousands(value)),
            Unit::Count => thousands(value),
            Unit::Ratio => three(value),
        }
    }
}

fn seconds(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude == 0.0 {
        return "0 s".into();
    }
    let (scaled, unit) = if magnitude >= 0.9995 {
        (value, "s")
    } else if magnitude >= 0.9995e-3 {
        (value * 1e3, "ms")
    } else if magnitude >= 0.9995e-6 {
        (value * 1e6, "µs")
    } else {
        (value * 1e9, "ns")
    };
    format!("{} {unit}", three(scaled))
}

fn iec(value: f64, per: &str) -> String {
    const PREFIX: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut scaled = value;
    let mut step = 0;
    while scaled.abs() >= 1023.5 && step + 1 < PREFIX.len() {
        scaled /= 1024.0;
        step += 1;
    }
    let digits = if step == 0 { format!("{scaled:.0}") } else { three(scaled) };
    format!("{digits} {}{per}", PREFIX[step])
}

fn si(value: f64, unit: &str) -> String {
    let prefixes = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    match prefixes.iter().find(|(factor, _)| value.abs() >= 0.9995 * factor) {
        Some((factor, prefix)) => format!("{} {prefix}{unit}", three(value / factor)),
        None => format!("{value:.0} {unit}"),
    }
}

/// Whole numbers from 1,000 up with separators, smaller ones to three figures.
fn thousands(value: f64) -> String {
    if value.abs() < 999.5 {
        return three(value);
    }
    let digits = format!("{:.0}", value.abs());
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if value < 0.0 { format!("-{grouped}") } else { grouped }
}

/// A ratio with its interval's digits: three decimals, and below a tenth three figures.
pub fn precise(ratio: f64) -> String {
    format!("{ratio:.*}", decimals(ratio, 3))
}

/// Three decimals, and below a tenth as many as it takes for so many figures.
fn decimals(value: f64, figures: i32) -> usize {
    /// Nothing smaller is measured.
    const MOST: i32 = 12;
    match value.abs() {
        small if small > 0.0 && small < 0.1 => {
            (figures - 1 - small.log10().floor() as i32).clamp(3, MOST) as usize
        }
        _ => 3,
    }
}

/// Three significant figures, without an exponent; below a tenth two at least.
fn three(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude == 0.0 {
        "0".into()
    } else if magnitude >= 99.95 {
        format!("{value:.0}")
    } else if magnitude >= 9.995 {
        format!("{value:.1}")
    } else if magnitude >= 0.995 {
        format!("{value:.2}")
    } else {
        format!("{value:.*}", decimals(value, 2))
    }
}

/// A quantity that could not be read.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{text:?} is not {wanted}")]
pub struct ParseError {
    text: String,
    wanted: &'static str,
}

impl ParseError {
    fn new(text: &str, wanted: &'static str) -> Self {
        ParseError { text: text.into(), wanted }
    }
}

/// Splits `text` into its number and what follows it.
fn number(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let value: f64 = text[..end].parse().ok()?;
    Some((value, text[end..].trim()))
}

/// A size in bytes, written as `4k`, `1M`, `2GiB`; the prefixes are powers of 1024.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

impl Bytes {
    /// To three figures, for people: `1.50 KiB`.
    #[expect(clippy::cast_precision_loss, reason = "it is shown to three figures")]
    pub fn rounded(self) -> String {
        Unit::Bytes.format(self.0 as f64)
    }
}

impl std::str::FromStr for Bytes {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let wrong = || ParseError::new(text, "a size: write 4k, 1M or 2G");
        let (value, suffix) = number(text).ok_or_else(wrong)?;
        let shift = match suffix.to_ascii_lowercase().as_str() {
            "" | "b" => 0,
            "k" | "kib" => 10,
            "m" | "mib" => 20,
            "g" | "gib" => 30,
            "t" | "tib" => 40,
            _ => return Err(wrong()),
        };
        let bytes = value * (1u64 << shift) as f64;
        if bytes.is_finite() && bytes < 9e18 { Ok(Bytes(bytes as u64)) } else { Err(wrong()) }
    }
}

impl fmt::Display for Bytes {
    /// The largest prefix that leaves a whole number, so that it reads back as the same size.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (shift, prefix) in [(40, "T"), (30, "G"), (20, "M"), (10, "k")] {
            if self.0 > 0 && self.0.is_multiple_of(1 << shift) {
                return write!(f, "{}{prefix}", self.0 >> shift);
            }
        }
        write!(f, "{}", self.0)
    }
}

/// Bits a second, written as `100M`, `2.5G` or `1Gbit/s`; the prefixes are powers of 1000, as of
/// any network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BitRate(pub u64);

impl std::str::FromStr for BitRate {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let wrong = || ParseError::new(text, "a number of bits a second: write 100M, 1G or 20G");
        let (value, suffix) = number(text).ok_or_else(wrong)?;
        let prefix = suffix.strip_suffix("bit/s").unwrap_or(suffix);
        let factor = match prefix.to_ascii_lowercase().as_str() {
            "" => 1.0,
            "k" => 1e3,
            "m" => 1e6,
            "g" => 1e9,
            _ => return Err(wrong()),
        };
        let bits = value * factor;
        if bits < 9e18 { Ok(BitRate(bits.round() as u64)) } else { Err(wrong()) }
    }
}

impl fmt::Display for BitRate {
    /// The largest prefix that leaves a whole number, so that it reads back as the same rate.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (factor, prefix) in [(1_000_000_000, "G"), (1_000_000, "M"), (1000, "k")] {
            if self.0 > 0 && self.0.is_multiple_of(factor) {
                return write!(f, "{}{prefix}", self.0 / factor);
            }
        }
        write!(f, "{}", self.0)
    }
}

/// A length of time, written as `90s`, `10m`, `1h` or `500ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

impl std::str::FromStr for Span {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let wrong = || ParseError::new(text, "a time: write 90s, 10m or 1h");
        let (value, suffix) = number(text).ok_or_else(wrong)?;
        let scale = match suffix {
            "ms" => 1e-3,
            "s" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            _ => return Err(wrong()),
        };
        Duration::try_from_secs_f64(value * scale).map(Span).map_err(|_| wrong())
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.0.as_millis();
        match ms {
            _ if ms > 0 && ms.is_multiple_of(3_600_000) => write!(f, "{}h", ms / 3_600_000),
            _ if ms > 0 && ms.is_multiple_of(60_000) => write!(f, "{}m", ms / 60_000),
            _ if ms.is_multiple_of(1000) => write!(f, "{}s", ms / 1000),
            _ => write!(f, "{ms}ms"),
        }
    }
}

/// A share, written as `5%` and held as 0.05.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Percent(pub f64);

impl std::str::FromStr for Percent {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match number(text) {
            Some((value, "%")) if value <= 100.0 => Ok(Percent(value / 100.0)),
            _ => Err(ParseError::new(text, "a percentage: write 5%")),
        }
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Seven decimals hide the error of dividing by 100 and multiplying again.
        let text = format!("{:.7}", self.0 * 100.0);
        write!(f, "{}%", text.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// Reads and writes a quantity as its text; a bare number is taken where the text form takes one.
macro_rules! as_text {
    ($($name:ident),*) => {$(
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let scalar = super::Scalar::deserialize(deserializer)?;
                scalar.to_string().parse().map_err(de::Error::custom)
            }
        }
    )*};
}
as_text!(Bytes, BitRate, Span, Percent);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_times_and_shares_read_as_written() {
        assert_eq!("4k".parse(), Ok(Bytes(4096)));
        assert_eq!("1.5G".parse(), Ok(Bytes(3 << 29)));
        assert_eq!("512".parse(), Ok(Bytes(512)));
        assert_eq!("90s".parse(), Ok(Span(Duration::from_secs(90))));
        assert_eq!("10m".parse(), Ok(Span(Duration::from_secs(600))));
        assert_eq!("5%".parse(), Ok(Percent(0.05)));
        assert_eq!("2.5G".parse(), Ok(BitRate(2_500_000_000)));
        assert_eq!("100Mbit/s".parse(), Ok(BitRate(100_000_000)));
        assert!("1GB/s".parse::<BitRate>().is_err());
        assert!("5".parse::<Percent>().is_err());
        assert!("10".parse::<Span>().is_err());
        assert!("4 furlongs".parse::<Bytes>().is_err());
    }

    #[test]
    fn what_is_shown_reads_back() {
        for bytes in [0, 1, 4096, 5 << 20, 3 << 30, 1 << 40, 1_000_000] {
            assert_eq!(Bytes(bytes).to_string().parse(), Ok(Bytes(bytes)));
        }
        for bits in [0, 1, 1000, 100_000_000, 2_500_000_000, 20_000_000_000] {
            assert_eq!(BitRate(bits).to_string().parse(), Ok(BitRate(bits)));
        }
        for ms in [0, 1, 999, 1000, 90_000, 3_600_000] {
            let span = Span(Duration::from_millis(ms));
            assert_eq!(span.to_string().parse(), Ok(span));
        }
        assert_eq!(Percent(0.05).to_string(), "5%");
        assert_eq!(Percent(0.125).to_string(), "12.5%");
    }

    #[test]
    fn figures_are_shown_to_three_places() {
        assert_eq!(Unit::Seconds.format(0.01234), "12.3 ms");
        assert_eq!(Unit::Seconds.format(0.9999), "1.00 s");
        assert_eq!(Unit::Nanoseconds.format(431.0), "431 ns");
        assert_eq!(Unit::PerSecond.format(17_234.4), "17,234/s");
        assert_eq!(Unit::PerSecond.format(999.7), "1,000/s");
        assert_eq!(Unit::Bytes.format(1536.0), "1.50 KiB");
        assert_eq!(Unit::BytesPerSecond.format(158e6), "151 MiB/s");
        assert_eq!(Unit::BitsPerSecond.format(941.4e6), "941 Mbit/s");
        assert_eq!(Unit::BitsPerSecond.format(20e9), "20.0 Gbit/s");
        assert_eq!(Unit::BitsPerSecond.format(12.0), "12 bit/s");
        let counts = [0.5, 0.091, 0.0091, 0.000_333, 0.0].map(|it| Unit::Count.format(it));
        assert_eq!(counts, ["0.500", "0.091", "0.0091", "0.00033", "0"]);
        let ratios = [1.25, 0.1, 0.0512, 0.0017, 1.0 / 3000.0, 0.0].map(precise);
        assert_eq!(ratios, ["1.250", "0.100", "0.0512", "0.00170", "0.000333", "0.000"]);
    }
}
