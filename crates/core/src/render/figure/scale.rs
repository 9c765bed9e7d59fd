//! From values to places on an axis, and the round values that are marked there.

use crate::model::Unit;

/// An axis: its ends, and whether equal steps are equal factors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    is_log: bool,
}

/// From this factor between the largest and the smallest value on, an axis is logarithmic.
const LOG_FROM: f64 = 20.0;

impl Scale {
    /// Equal steps are equal differences.
    pub fn linear(low: f64, high: f64) -> Scale {
        Scale { low, high, is_log: false }
    }

    /// Equal steps are equal factors. An axis begins above 0 and has an end: from 0 on there would
    /// be more powers of ten than anybody has time for.
    pub fn log(low: f64, high: f64) -> Scale {
        let high = high.clamp(f64::MIN_POSITIVE, 1e300);
        let low = low.max(high * 1e-12);
        Scale { low, high, is_log: true }
    }

    /// Holds all of `values` with some room beside them.
    pub fn around(values: impl Iterator<Item = f64>) -> Scale {
        let (low, high) = ends(values);
        if low > 0.0 && high / low >= LOG_FROM {
            return Scale::log(low / 1.2, high * 1.2);
        }
        let room = if high > low { (high - low) * 0.06 } else { high.abs().max(1e-12) * 0.1 };
        let low_with_room = if low >= 0.0 { (low - room).max(0.0) } else { low - room };
        Scale::linear(low_with_room, high + room)
    }

    /// Holds all of `values`, which are above 0, as factors; with some room.
    pub fn around_factors(values: impl Iterator<Item = f64>) -> Scale {
        let (low, high) = ends(values);
        Scale::log(low / 1.1, high * 1.1)
    }

    /// From 0 to a round value at `high` or above it, in `unit`.
    pub fn from_nought(high: f64, unit: Unit) -> Scale {
        if high <= 0.0 {
            return Scale::linear(0.0, 1.0);
        }
        let base = base(high, unit);
        Scale::linear(0.0, round_up(high / base) * base)
    }

    /// Where `value` is: 0 at the beginning, 1 at the end, and nowhere beyond.
    pub fn place(&self, value: f64) -> f64 {
        let (low, high, value) = match self.is_log {
            true => (self.low.ln(), self.high.ln(), value.max(f64::MIN_POSITIVE).ln()),
            false => (self.low, self.high, value),
        };
        ((value - low) / (high - low)).clamp(0.0, 1.0)
    }

    /// The beginning of the axis.
    pub fn low(&self) -> f64 {
        self.low
    }

    /// The end of the axis.
    pub fn high(&self) -> f64 {
        self.high
    }

    /// About `wanted` round values in `unit`.
    pub fn ticks(&self, wanted: usize, unit: Unit) -> Vec<f64> {
        if self.is_log { self.log_ticks(wanted) } else { self.linear_ticks(wanted, unit) }
    }

    fn linear_ticks(&self, wanted: usize, unit: Unit) -> Vec<f64> {
        let base = base(self.high, unit);
        let step = round_up((self.high - self.low) / base / wanted as f64) * base;
        let first = (self.low / step).ceil();
        let count = (self.high / step).floor() - first;
        (0..=count.max(0.0) as u32).map(|index| (first + f64::from(index)) * step).collect()
    }

    /// Powers of ten; where those are few, what is in between.
    fn log_ticks(&self, wanted: usize) -> Vec<f64> {
        let decades = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
        let within = |steps: &[f64]| -> Vec<f64> {
            let all = decades.clone().flat_map(|decade| steps.iter().map(move |s| (s, decade)));
            let values = all.map(|(step, decade)| step * 10f64.powi(decade));
            values.filter(|value| (self.low..=self.high).contains(value)).collect()
        };
        let finer = [&[1.0, 2.0, 5.0][..], &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0]];
        let mut ticks = within(&[1.0]);
        for steps in finer {
            if ticks.len() * 2 < wanted {
                ticks = within(steps);
            }
        }
        let every = ticks.len().div_ceil(wanted.max(1)).max(1);
        ticks.into_iter().step_by(every).collect()
    }

    /// Round ratios, 1 first, none nearer to another than `apart` of the axis.
    pub fn ratio_ticks(&self, apart: f64) -> Vec<f64> {
        const WANTED: [f64; 21] = [
            1.0, 0.5, 2.0, 0.25, 4.0, 0.1, 10.0, 0.8, 1.25, 0.67, 1.5, 0.9, 1.1, 0.95, 1.05, 0.33,
            3.0, 0.02, 50.0, 0.98, 1.02,
        ];
        let mut ticks: Vec<f64> = Vec::new();
        for tick in WANTED {
            let inside = tick > self.low && tick < self.high;
            let far = |it: &f64| (self.place(*it) - self.place(tick)).abs() >= apart;
            if inside && ticks.iter().all(far) {
                ticks.push(tick);
            }
        }
        ticks.sort_by(f64::total_cmp);
        ticks
    }
}

fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), it| (low.min(it), high.max(it)));
    if low <= high { (low, high) } else { (0.0, 1.0) }
}

/// What round values of that size are multiples of: of bytes the largest prefix.
fn base(size: f64, unit: Unit) -> f64 {
    match unit {
        Unit::Bytes | Unit::BytesPerSecond => {
            1024f64.powi((size.max(1.0).log2() / 10.0).floor() as i32)
        }
        _ => 1.0,
    }
}

/// The next of 1, 2 and 5 times a power of ten.
fn round_up(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let step = [1.0, 2.0, 5.0].into_iter().find(|step| value <= step * power * (1.0 + 1e-9));
    step.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_close(ticks: &[f64], expected: &[f64]) -> bool {
        let same = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-9 * b.abs().max(1e-12);
        ticks.len() == expected.len() && ticks.iter().zip(expected).all(same)
    }

    #[test]
    fn ticks_are_round_in_their_unit_and_inside() {
        let ticks = Scale::linear(10_312.0, 24_921.0).ticks(4, Unit::PerSecond);
        assert!(is_close(&ticks, &[15_000.0, 20_000.0]), "{ticks:?}");
        let mib = f64::from(1 << 20);
        let ticks = Scale::linear(0.0, 430.0 * mib).ticks(4, Unit::BytesPerSecond);
        assert!(is_close(&ticks, &[0.0, 200.0 * mib, 400.0 * mib]), "{ticks:?}");
        let ticks = Scale::log(2e3, 4e6).ticks(6, Unit::Nanoseconds);
        assert!(is_close(&ticks, &[1e4, 1e5, 1e6]), "{ticks:?}");
        let ticks = Scale::log(2e3, 4e4).ticks(6, Unit::Nanoseconds);
        assert!(is_close(&ticks, &[2e3, 5e3, 1e4, 2e4]), "{ticks:?}");
        assert!(Scale::log(1.0, 1e12).ticks(4, Unit::Nanoseconds).len() <= 4);
    }

    #[test]
    fn an_axis_of_factors_that_knows_no_value_has_few_ticks() {
        for scale in [
            Scale::around_factors([].into_iter()),
            Scale::around_factors([0.0, 3.0].into_iter()),
            Scale::log(1.0, f64::INFINITY),
        ] {
            assert!(scale.ticks(4, Unit::Nanoseconds).len() <= 4, "{scale:?}");
        }
    }

    #[test]
    fn ratios_have_a_mark_at_one_and_none_too_close() {
        let ticks = Scale::around_factors([0.379, 2.453].into_iter()).ratio_ticks(0.1);
        assert!(is_close(&ticks, &[0.5, 0.8, 1.0, 1.25, 2.0]), "{ticks:?}");
        let ticks = Scale::around_factors([0.98, 1.02].into_iter()).ratio_ticks(0.1);
        assert!(ticks.contains(&1.0) && ticks.contains(&1.05), "{ticks:?}");
    }

    #[test]
    fn every_value_has_its_place() {
        let scale = Scale::around([3.0, 5.0].into_iter());
        assert!(scale.place(3.0) > 0.0 && scale.place(5.0) < 1.0);
        assert!((scale.place(4.0) - 0.5).abs() < 1e-9);
        let scale = Scale::around([1.0, 100.0].into_iter());
        assert!((scale.place(10.0) - 0.5).abs() < 1e-9, "far apart: by factors");
        assert_eq!(scale.place(0.0), 0.0);
        let same = Scale::around([7.0, 7.0].into_iter());
        assert!((same.place(7.0) - 0.5).abs() < 1e-9);
        let none = Scale::around(std::iter::empty());
        assert!(none.place(0.5).is_finite());
        assert_eq!(Scale::from_nought(0.73, Unit::Ratio).high(), 1.0);
        assert_eq!(Scale::from_nought(3.0e6, Unit::Bytes).high(), 5.0 * f64::from(1 << 20));
        assert_eq!(Scale::from_nought(0.0, Unit::Bytes).high(), 1.0);
    }
}
