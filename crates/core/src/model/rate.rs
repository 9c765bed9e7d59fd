//! The rate of time-based work over its time, and from when on it was steady.

use serde::{Deserialize, Serialize};

/// Parts of a run that the test for a steady state compares.
const FIFTHS: usize = 5;

/// Windows that make a batch (MSER-5).
const BATCH: usize = 5;

/// Fewer batches are too few to cut something off and to keep something, and so short that they
/// show how the device is throttled.
const FEWEST_BATCHES: usize = 5;

/// Whether the rate of a run was steady.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Steady {
    /// From its beginning on.
    Throughout,
    /// After a beginning that is cut off.
    AfterCut,
    /// Never for long enough.
    #[default]
    Never,
}

/// The rate of a time-based run, window by window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RateOverTime {
    /// The length of a window.
    pub window_ns: u64,
    /// Operations a second in each window, in order.
    pub rates_per_s: Vec<f64>,
    /// Whether it was steady.
    pub steady: Steady,
    /// So many windows at the beginning are cut off.
    pub cut: usize,
}

impl RateOverTime {
    /// The rate in these windows, and whether it is steady: SNIA's test holds for the fifths of the
    /// run, or for those of what MSER-5 leaves of it. `None` where there are fewer than 25 windows.
    pub fn new(window_ns: u64, rates_per_s: Vec<f64>) -> Option<RateOverTime> {
        let flat_from = |cut: &usize| fifths(&rates_per_s[*cut..]).is_some_and(is_flat);
        if rates_per_s.len() < FEWEST_BATCHES * BATCH {
            return None;
        }
        let (steady, cut) = match (fifths(&rates_per_s)?, start_of_steady_part(&rates_per_s)) {
            (fifths, _) if is_flat(fifths) => (Steady::Throughout, 0),
            (_, Some(cut)) if flat_from(&cut) => (Steady::AfterCut, cut),
            _ => (Steady::Never, 0),
        };
        Some(RateOverTime { window_ns, rates_per_s, steady, cut })
    }

    /// The mean rate of the steady part over that of the whole run: 1 where nothing is cut off.
    pub fn steady_share(&self) -> f64 {
        let whole = mean(&self.rates_per_s);
        match self.rates_per_s.get(self.cut..) {
            Some(steady) if self.cut > 0 && !steady.is_empty() && whole > 0.0 => {
                mean(steady) / whole
            }
            _ => 1.0,
        }
    }

    /// The mean rates of the five fifths of the run.
    pub fn fifths(&self) -> Option<[f64; FIFTHS]> {
        fifths(&self.rates_per_s)
    }

    /// The mean rates of what is not cut off, in batches of five windows: batches depend on one
    /// another far less than windows do.
    pub fn batches(&self) -> Vec<f64> {
        batches(self.rates_per_s.get(self.cut..).unwrap_or_default())
    }

    /// The time that a batch of [`RateOverTime::batches`] takes.
    pub fn batch_ns(&self) -> u64 {
        BATCH as u64 * self.window_ns
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The means of fifths as equal as can be.
fn fifths(rates: &[f64]) -> Option<[f64; FIFTHS]> {
    let bound = |fifth: usize| fifth * rates.len() / FIFTHS;
    let of = |fifth: usize| mean(&rates[bound(fifth)..bound(fifth + 1)]);
    (rates.len() >= FIFTHS).then(|| std::array::from_fn(of))
}

/// SNIA's test of five values in a row (SSS PTS 2.0.2, "Steady State"): they lie within 20% of
/// their mean, and the straight line through them rises or falls by 10% of it at most.
fn is_flat(values: [f64; FIFTHS]) -> bool {
    let mean = mean(&values);
    let most = values.into_iter().fold(f64::NEG_INFINITY, f64::max);
    let least = values.into_iter().fold(f64::INFINITY, f64::min);
    // Of least squares: the places -2 to 2 have a sum of squares of 10.
    let slope = (-2..).zip(values).map(|(place, value)| f64::from(place) * value).sum::<f64>();
    most - least <= 0.2 * mean && 4.0 * (slope / 10.0).abs() <= 0.1 * mean
}

/// The means of batches of five, without what is left over at the beginning.
fn batches(rates: &[f64]) -> Vec<f64> {
    rates[rates.len() % BATCH..].chunks(BATCH).map(mean).collect()
}

/// How many windows at the beginning to cut off, by MSER-5 (White, Cobb and Spratt, "A comparison
/// of five steady-state truncation heuristics for simulation", WSC 2000): what is left has the
/// least squared standard error of its mean, of batches of five.
///
/// `None` where that is nothing, or half of the run or more: then what is left may be anything.
fn start_of_steady_part(rates: &[f64]) -> Option<usize> {
    let batches = batches(rates);
    let half = batches.len() / 2;
    let mut errors = vec![0.0; batches.len()];
    // From the end on, each by the one behind it: a day has 172,800 of them.
    let (mut mean, mut squares) = (0.0, 0.0);
    for (left, (value, error)) in (1_u32..).zip(batches.iter().zip(&mut errors).rev()) {
        let off = value - mean;
        mean += off / f64::from(left);
        squares += off * (value - mean);
        *error = squares / f64::from(left).powi(2);
    }
    let best = (0..=half).min_by(|one, other| errors[*one].total_cmp(&errors[*other]))?;
    (1..half).contains(&best).then(|| rates.len() % BATCH + BATCH * best)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Draws;

    fn of(count: usize, rate: impl Fn(usize) -> f64) -> RateOverTime {
        let rates = (0..count).map(rate).collect();
        RateOverTime::new(100_000_000, rates).unwrap()
    }

    #[test]
    fn the_table_of_the_specification_is_flat_to_its_edges() {
        assert!(is_flat([100.0; 5]));
        assert!(is_flat([100.0, 110.0, 90.0, 110.0, 90.0]), "a range of 20%");
        assert!(!is_flat([100.0, 111.0, 90.0, 111.0, 90.0]));
        assert!(is_flat([95.1, 97.5, 100.0, 102.5, 104.9]), "a rise of just 10%");
        assert!(!is_flat([94.8, 97.4, 100.0, 102.6, 105.2]));
        assert!(!is_flat([100.0, 100.0, 0.0, 100.0, 100.0]));
    }

    #[test]
    fn a_burst_at_the_beginning_is_cut_off() {
        let burst = of(60, |place| if place < 20 { 3000.0 } else { 500.0 });
        assert_eq!((burst.steady, burst.cut), (Steady::AfterCut, 20));
        assert!((burst.steady_share() - 500.0 / (80_000.0 / 60.0)).abs() < 1e-9);
        assert_eq!(burst.batches(), [500.0; 8]);
        let odd = of(63, |place| if place < 23 { 3000.0 } else { 500.0 });
        assert_eq!(odd.cut, 23);
    }

    /// To add up each part's squares anew would take minutes.
    #[test]
    fn a_day_is_cut_as_an_hour_is() {
        for windows in [36_000, 864_000] {
            let day = of(windows, |place| if place < 10_000 { 3000.0 } else { 500.0 });
            assert_eq!(start_of_steady_part(&day.rates_per_s), Some(10_000));
        }
    }

    #[test]
    fn what_is_flat_is_kept_whole() {
        let flat = of(60, |place| 1000.0 + (place % 3) as f64);
        assert_eq!((flat.steady, flat.steady_share()), (Steady::Throughout, 1.0));
        assert_eq!(of(25, |_| 1000.0).steady, Steady::Throughout);
        assert_eq!(RateOverTime::new(1, vec![1.0; 24]), None, "too few to tell");
    }

    #[test]
    fn what_never_settles_is_not_cut() {
        for falling in [
            of(60, |place| 2000.0 - 30.0 * place as f64),
            of(60, |place| match place {
                0..45 => 1000.0,
                _ => 3000.0,
            }),
        ] {
            assert_eq!((falling.steady, falling.steady_share()), (Steady::Never, 1.0));
        }
    }

    /// Windows that scatter by 10%, without any transient; and by 30%, where there is no steady
    /// state by the specification: what is cut off then changes the mean by chance alone.
    #[test]
    fn noise_is_seldom_taken_for_a_transient() {
        let mut draws = Draws::new(3);
        let mut trial = |deviation: f64| {
            let rates = (0..60).map(|_| 1000.0 * (deviation * draws.normal()).exp()).collect();
            RateOverTime::new(1, rates).unwrap()
        };
        let calm = (0..400).filter(|_| trial(0.1).steady == Steady::Throughout).count();
        assert!(calm > 380, "{calm} of 400");
        let shares = (0..400).map(|_| trial(0.3).steady_share()).sum::<f64>() / 400.0;
        assert!((shares - 1.0).abs() < 0.01, "{shares}");
    }
}
