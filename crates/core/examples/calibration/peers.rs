//! What other tools would say of the same times: each rule as the tool's own source has it.
//!
//! All of them get ten runs of the one, then ten of the other, as their manuals do it.

use std::sync::OnceLock;

use fsverdict_core::judge::two_sided_tail;
use fsverdict_core::model::Draws;

/// Runs of each.
pub const RUNS: usize = 10;

/// The error that the tools allow themselves by default.
const ALPHA: f64 = 0.05;

/// What a rule says of the second against the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Says {
    Nothing,
    Faster,
    Slower,
}

impl Says {
    fn when(different: bool, ratio_of_speed: f64) -> Says {
        match (different, ratio_of_speed > 1.0) {
            (false, _) => Says::Nothing,
            (true, true) => Says::Faster,
            (true, false) => Says::Slower,
        }
    }
}

fn mean(times: &[f64]) -> f64 {
    times.iter().sum::<f64>() / times.len() as f64
}

fn variance(times: &[f64]) -> f64 {
    let mean = mean(times);
    times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / (times.len() - 1) as f64
}

/// hyperfine's closing lines: "A ran 1.10 ± 0.05 times faster than B", where the deviation of the
/// ratio is propagated from those of the times (src/benchmark/relative_speed.rs). It names a
/// winner each time; a difference is taken as found here when the ratio less its deviation is
/// above 1.
pub fn hyperfine(first: &[f64], second: &[f64]) -> Says {
    let (one, other) = (mean(first), mean(second));
    let ratio = one.max(other) / one.min(other);
    let relative = variance(first) / one.powi(2) + variance(second) / other.powi(2);
    Says::when(ratio - ratio * relative.sqrt() > 1.0, one / other)
}

/// What hyperfine offers beside it for the purpose (scripts/welch_ttest.py): Welch's t test,
/// different where p < 0.05.
pub fn welch(first: &[f64], second: &[f64]) -> Says {
    let n = RUNS as f64;
    let (one, other) = (variance(first) / n, variance(second) / n);
    let freedom = (one + other).powi(2) / ((one.powi(2) + other.powi(2)) / (n - 1.0));
    let t = welch_t(first, second).abs();
    Says::when(two_sided_tail(t, freedom) < ALPHA, mean(first) / mean(second))
}

fn welch_t(first: &[f64], second: &[f64]) -> f64 {
    let error = variance(first) / first.len() as f64 + variance(second) / second.len() as f64;
    (mean(first) - mean(second)) / error.sqrt()
}

/// benchstat's default (benchmath/anone.go): a Mann-Whitney U test, exact for samples of this
/// size, and a difference where p < 0.05.
pub fn benchstat(first: &[f64], second: &[f64]) -> Says {
    let later = |time: &f64| second.iter().filter(|other| *other < time).count();
    let wins: usize = first.iter().map(later).sum();
    let ways = mann_whitney();
    let at_most = |u: usize| ways[..=u].iter().sum::<f64>();
    let p = 2.0 * at_most(wins.min(RUNS * RUNS - wins));
    Says::when(p < ALPHA, if 2 * wins > RUNS * RUNS { 2.0 } else { 0.5 })
}

/// The chance of each U for two samples of [`RUNS`] without ties, by Mann and Whitney's recurrence
/// (1947).
fn mann_whitney() -> &'static [f64] {
    static WAYS: OnceLock<Vec<f64>> = OnceLock::new();
    WAYS.get_or_init(|| {
        // ways[m][n][u]: orders of m and n values in which u pairs are the wrong way round.
        let mut ways = vec![vec![vec![0.0; RUNS * RUNS + 1]; RUNS + 1]; RUNS + 1];
        for m in 0..=RUNS {
            for n in 0..=RUNS {
                for u in 0..=m * n {
                    let with_first_last = if m > 0 && u >= n { ways[m - 1][n][u - n] } else { 0.0 };
                    let with_second_last = if n > 0 { ways[m][n - 1][u] } else { 0.0 };
                    let start = if m + n == 0 { 1.0 } else { 0.0 };
                    ways[m][n][u] = start + with_first_last + with_second_last;
                }
            }
        }
        let all: f64 = ways[RUNS][RUNS].iter().sum();
        ways[RUNS][RUNS].iter().map(|orders| orders / all).collect()
    })
}

/// criterion's comparison (src/analysis/compare.rs, src/report.rs): the t statistic against its
/// bootstrapped distribution, p < 0.05, and the 95% bootstrap interval of the change of the mean
/// beyond a noise threshold of 1%. With a thousand resamples, where criterion takes a hundred
/// thousand.
pub fn criterion(first: &[f64], second: &[f64], draws: &mut Draws) -> Says {
    const RESAMPLES: usize = 1000;
    const NOISE_THRESHOLD: f64 = 0.01;
    let all = [first, second].concat();
    let t = welch_t(first, second);
    let below = (0..RESAMPLES)
        .filter(|_| welch_t(&resampled(&all, draws), &resampled(&all, draws)) < t)
        .count();
    let p = 2.0 * below.min(RESAMPLES - below) as f64 / RESAMPLES as f64;
    if p >= ALPHA {
        return Says::Nothing;
    }
    let change =
        |draws: &mut Draws| mean(&resampled(second, draws)) / mean(&resampled(first, draws)) - 1.0;
    let mut changes: Vec<f64> = (0..RESAMPLES).map(|_| change(draws)).collect();
    changes.sort_by(f64::total_cmp);
    let tail = (RESAMPLES as f64 * ALPHA / 2.0) as usize;
    let (low, high) = (changes[tail], changes[RESAMPLES - 1 - tail]);
    if high < -NOISE_THRESHOLD {
        Says::Faster
    } else if low > NOISE_THRESHOLD {
        Says::Slower
    } else {
        Says::Nothing
    }
}

fn resampled(times: &[f64], draws: &mut Draws) -> [f64; RUNS] {
    std::array::from_fn(|_| times[draws.below(times.len())])
}
