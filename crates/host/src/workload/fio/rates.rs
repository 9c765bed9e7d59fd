//! The rate of time-based jobs over time, from fio's log of it.

use std::collections::BTreeMap;

/// More windows than any job has: a day of those of 100 ms.
const WINDOWS_MAX: u64 = 864_000;

/// Operations a second in windows of `window_ms`, all jobs and directions added up, from a log of
/// averages (fio(1), "LOG FILE FORMATS": time in milliseconds, value, direction), one job after the
/// other.
///
/// A line tells of the time since the one before it, or of its own window where that is further
/// away: of a window without an operation fio writes no line (stat.c, `__add_samples`). Lines come
/// when fio's thread gets to it, so that they are laid out over windows of their own.
pub fn rates(log: &str, window_ms: u64) -> Vec<f64> {
    let mut spans: Vec<(u64, u64, u64)> = Vec::new();
    let (mut last_ms, mut of_direction) = (0, BTreeMap::new());
    for line in log.lines() {
        let mut fields = line.split(',').map(|field| field.trim().parse::<u64>().ok());
        let mut next = || fields.next().flatten();
        let (Some(to_ms), Some(rate), Some(direction)) = (next(), next(), next()) else { continue };
        if to_ms < last_ms {
            of_direction.clear();
        }
        last_ms = to_ms;
        let before = of_direction.insert(direction, to_ms).unwrap_or(0);
        let near = (to_ms - before).saturating_mul(2) <= 3 * window_ms;
        spans.push((if near { before } else { to_ms.saturating_sub(window_ms) }, to_ms, rate));
    }
    let begin_ms = spans.iter().map(|span| span.0).min().unwrap_or(0);
    let end_ms = spans.iter().map(|span| span.1).max().unwrap_or(0);
    // The last window may end a moment early.
    let windows = (end_ms - begin_ms).saturating_add(window_ms / 20) / window_ms;
    // The work may have written there.
    if windows > WINDOWS_MAX {
        return Vec::new();
    }
    let mut operations = vec![0.0; windows as usize];
    for (from_ms, to_ms, rate) in spans {
        let [first, last] = [from_ms, to_ms].map(|ms| (ms - begin_ms) / window_ms);
        for (place, sum) in (first..=last).zip(operations.iter_mut().skip(first as usize)) {
            let start_ms = begin_ms + place * window_ms;
            let over_ms = to_ms.min(start_ms.saturating_add(window_ms));
            let shared_ms = over_ms.saturating_sub(from_ms.max(start_ms));
            *sum += rate as f64 * shared_ms as f64;
        }
    }
    operations.into_iter().map(|sum| sum / window_ms as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_and_directions_are_added_up_in_windows() {
        let log = |lines: &[(u64, u64, u64)]| {
            let line = |&(ms, rate, direction): &(u64, u64, u64)| {
                format!("{}, {rate}, {direction}, 0, 0, 0\n", 1_795_000_000_000 + ms)
            };
            rates(&lines.iter().map(line).collect::<String>(), 100)
        };
        let first = [(100, 30, 0), (100, 10, 1), (200, 50, 0), (200, 10, 1)];
        assert_eq!(log(&first), [40.0, 60.0]);
        let second = [(100, 5, 0), (199, 5, 0)];
        let both = log(&[first.as_slice(), &second].concat());
        assert!((both[0] - 45.0).abs() < 0.1 && (both[1] - 65.0).abs() < 0.1, "{both:?}");
        assert_eq!(log(&[(100, 30, 0), (400, 30, 0)]), [30.0, 0.0, 0.0, 30.0], "it stood still");
        assert_eq!(log(&[(100, 30, 0), (240, 10, 0)]), [30.0, 10.0], "fio was late");
        assert_eq!(log(&[(100, 30, 0), (250, 20, 0), (350, 20, 0)]), [30.0, 20.0, 20.0]);
        assert_eq!(rates("", 100), [0.0; 0]);
        assert_eq!(rates("100, 7, 0, 0, 0\n200, 8, 0, 0, 0\n", 100), [7.0, 8.0]);
    }

    #[test]
    fn times_that_no_clock_has_are_borne() {
        let last = u64::MAX;
        assert_eq!(rates(&format!("0, 1, 0\n{last}, 1, 0\n"), 100), [0.0; 0]);
        assert_eq!(rates(&format!("{}, 1, 0\n{last}, 1, 0\n", last - 95), 100).len(), 2);
    }
}
