//! The turns of work that alternates with that of others, and their ratios in pairs.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How long a turn is. Noise of a shared machine lasts longer than that, starting and stopping
/// processes takes less.
pub const TURN: Duration = Duration::from_millis(100);

/// So many operations at least are taken together: the logarithm of a count of n is too small by
/// 1/(2n) of its variance over its mean, and more so for the slower of two.
const OPERATIONS_LEAST: u64 = 100;

/// How the trials of a round go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rounds {
    /// One after the other.
    #[default]
    Trials,
    /// All at once, their work in turns.
    Duet,
}

impl Rounds {
    pub(super) fn are_of_trials(&self) -> bool {
        *self == Rounds::Trials
    }
}

/// The turns of one contender's work. Each cycle has one turn of each contender.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Turns {
    /// How long each was, from the signal to go on until all of its processes stood still.
    pub lasted_ns: Vec<u64>,
    /// The operations that were done in each.
    pub operations: Vec<u64>,
    /// Its place in each cycle, from 1.
    pub places: Vec<u32>,
    /// Operations that were under way when a turn ended. No histogram has them.
    pub straddling: u64,
    /// What its devices moved in its turns.
    pub device_bytes: u64,
    /// What its devices moved between its turns.
    pub between_bytes: u64,
    /// How long they were busy between its turns; older records don't tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between_busy_ns: Option<u64>,
    /// The cycles that count, from the first to before the second: all work was under way in them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<[usize; 2]>,
    /// The rate that is judged, in operations a second: the geometric mean over these cycles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
}

impl Turns {
    /// All of its turns together.
    pub fn all_ns(&self) -> u64 {
        self.lasted_ns.iter().sum()
    }

    /// The same, with so many operations in each: work that was shared out among its turns has no
    /// cycle that is not whole.
    #[must_use]
    pub fn of_whole_cycles(self, operations: Vec<u64>) -> Turns {
        Turns { counted: Some([0, operations.len()]), operations, ..self }
    }

    /// What its devices moved between its turns, of all that they moved.
    pub fn leaked_share(&self) -> f64 {
        self.between_bytes as f64 / (self.between_bytes + self.device_bytes).max(1) as f64
    }

    /// How long they were busy for that, as a share of its turns: at most so much faster it looks,
    /// and so much slower others. All of it where that is not known.
    pub fn leaked_time(&self) -> f64 {
        self.between_busy_ns.map_or(1.0, |ns| ns as f64 / self.all_ns().max(1) as f64)
    }

    /// Gives each of `all` the rate by which it is judged. The mean over cycles of ln(ratio) is the
    /// difference of two such rates' logarithms, for any two. Cycles in which a contender did
    /// little are joined with those that follow.
    pub fn pair(all: &mut [&mut Turns]) -> Result<(), String> {
        let [from, to] = whole_cycles(all);
        if to <= from {
            return Err("no cycle of turns was complete for all: give a longer runtime".into());
        }
        let spans = spans(all, from, to);
        let rate = |turns: &Turns| {
            let of = |&[from, to]: &[usize; 2]| {
                let done: u64 = turns.operations[from..to].iter().sum();
                let ns: u64 = turns.lasted_ns[from..to].iter().sum();
                (done as f64 / (ns as f64 / 1e9)).ln()
            };
            (spans.iter().map(of).sum::<f64>() / spans.len() as f64).exp()
        };
        let rates: Vec<f64> = all.iter().map(|turns| rate(turns)).collect();
        if rates.iter().any(|&rate| rate <= 0.0) {
            return Err("a contender did nothing in its turns: give it a longer runtime".into());
        }
        for (turns, rate) in all.iter_mut().zip(rates) {
            (turns.counted, turns.rate) = (Some([from, to]), Some(rate));
        }
        Ok(())
    }
}

/// The cycles, from the first to before the second, in which all were at work all the time.
fn whole_cycles(all: &[&mut Turns]) -> [usize; 2] {
    let known: Vec<[usize; 2]> = all.iter().filter_map(|turns| turns.counted).collect();
    if known.len() == all.len() && known.iter().all(|it| *it == known[0]) {
        return known.first().copied().unwrap_or_default();
    }
    let start = all.iter().filter_map(|it| it.operations.iter().position(|&done| done > 0));
    // The one in which the last has begun is not whole.
    let from = start.max().map_or(0, |last| last + 1);
    // In the last one of each its work has ended.
    let to = all.iter().map(|it| it.operations.len()).min().unwrap_or(0).saturating_sub(1);
    [from, to]
}

/// Spans of cycles, as short as possible, in each of which every contender has done enough. Cycles
/// left over at the end belong to the last one.
fn spans(all: &[&mut Turns], from: usize, to: usize) -> Vec<[usize; 2]> {
    let mut spans = Vec::new();
    let mut start = from;
    for end in from + 1..=to {
        let done = |turns: &&mut Turns| turns.operations[start..end].iter().sum::<u64>();
        if all.iter().map(done).min() >= Some(OPERATIONS_LEAST) {
            spans.push([start, end]);
            start = end;
        }
    }
    match spans.last_mut() {
        Some(last) => last[1] = to,
        None => spans.push([from, to]),
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Draws;

    fn turns(operations: &[u64]) -> Turns {
        let lasted_ns = vec![TURN.as_nanos() as u64; operations.len()];
        Turns { lasted_ns, operations: operations.into(), ..Turns::default() }
    }

    fn rates(all: &mut [Turns]) -> Result<Vec<f64>, String> {
        Turns::pair(&mut all.iter_mut().collect::<Vec<_>>())?;
        Ok(all.iter().map(|it| it.rate.unwrap()).collect())
    }

    #[test]
    fn only_cycles_count_in_which_all_are_at_work() {
        let one = turns(&[0, 9, 300, 300, 300, 300, 300, 300]);
        let other = turns(&[5, 700, 600, 600, 600, 600, 600, 20]);
        let mut both = [one, other];
        let rates = rates(&mut both).unwrap();
        assert_eq!(both[0].counted, Some([2, 7]));
        assert!((rates[0] - 3000.0).abs() < 1e-6 && (rates[1] - 6000.0).abs() < 1e-6, "{rates:?}");
    }

    #[test]
    fn all_cycles_of_work_that_is_shared_out_count() {
        let shared = |lasted_ns: &[u64]| {
            let turns = Turns { lasted_ns: lasted_ns.into(), ..Turns::default() };
            turns.of_whole_cycles(vec![250; lasted_ns.len()])
        };
        let ms = 1_000_000;
        // A stall of the machine in one turn of one contender weighs as one of many.
        let mut both = [shared(&[10 * ms; 4]), shared(&[20 * ms, 20 * ms, 320 * ms, 20 * ms])];
        let rates = rates(&mut both).unwrap();
        assert!((rates[0] - 25_000.0).abs() < 1e-6, "{rates:?}");
        assert!((rates[1] - 12_500.0 / 2.0).abs() < 1e-6, "{rates:?}");
        assert_eq!(both[1].counted, Some([0, 4]));
    }

    #[test]
    fn what_slows_both_down_cancels() {
        let mut draws = Draws::new(5);
        let common: Vec<f64> = (0..400).map(|_| 1000.0 * (0.5 * draws.normal()).exp()).collect();
        let of = |speed: f64| common.iter().map(|rate| (rate * speed) as u64).collect::<Vec<_>>();
        let rates = rates(&mut [turns(&of(1.0)), turns(&of(1.3)), turns(&of(1.0))]).unwrap();
        assert!((rates[1] / rates[0] - 1.3).abs() < 0.003, "{rates:?}");
        assert_eq!(rates[0], rates[2]);
    }

    #[test]
    fn turns_of_few_operations_are_taken_together() {
        let few: Vec<u64> = (0..100).map(|cycle| cycle % 3).collect();
        let many = vec![50; 100];
        let rates = rates(&mut [turns(&few), turns(&many)]).unwrap();
        assert!((rates[0] - 10.0).abs() < 0.2, "{rates:?}");
        assert!((rates[1] - 500.0).abs() < 1e-6);
        let mut all = [turns(&[60; 9]), turns(&[50; 9])];
        let all: Vec<&mut Turns> = all.iter_mut().collect();
        assert_eq!(spans(&all, 0, 9), [[0, 2], [2, 4], [4, 6], [6, 9]]);
    }

    #[test]
    fn too_little_has_no_rate() {
        let short = rates(&mut [turns(&[1; 2]), turns(&[1; 9])]).unwrap_err();
        assert!(short.starts_with("no cycle of turns was complete"), "{short}");
        let idle = [turns(&[9; 12]), turns(&[&[9][..], &[0; 11]].concat())];
        assert!(rates(&mut idle.clone()).unwrap_err().contains("did nothing"));
        assert_eq!(rates(&mut [turns(&[]), turns(&[])]).unwrap_err(), short);
    }

    #[test]
    fn what_moves_between_the_turns_has_leaked() {
        let one = Turns { device_bytes: 970, between_bytes: 30, ..turns(&[9; 2]) };
        assert!((one.leaked_share() - 0.03).abs() < 1e-12);
        assert_eq!(one.leaked_time(), 1.0, "it is not known");
        let short = Turns { between_busy_ns: Some(2_000_000), ..one };
        assert!((short.leaked_time() - 0.01).abs() < 1e-12);
        assert_eq!(Turns::default().leaked_share(), 0.0);
    }
}
