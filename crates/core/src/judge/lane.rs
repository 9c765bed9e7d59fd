//! Courses that go on from where they were left, as figures come.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::estimate::{Estimate, Paired};
use super::interval::{Course, Pooled};
use super::middle::Middle;
use super::pairs::{Pair, Series};
use super::shared::{RECENT, Recent, Shared};
use super::stopping::{PooledRules, Rule};

/// Rounds from one up to another.
type Rounds = (Bound<u32>, Bound<u32>);

/// How far some series have been read together.
///
/// Each round is read once, in order. Where a figure came late (a trial was run again, a run went
/// on from the middle of a round) all is read anew: that happens a few times in a run, and each
/// costs as much as the run has rounds.
#[derive(Debug, Default)]
struct Reader {
    after: Option<u32>,
    rewrites: u32,
}

impl Reader {
    /// The rounds since the last time, up to the last that all have reached; and whether all that
    /// was read before is void.
    fn next(&mut self, series: &[&Series]) -> (bool, Option<Rounds>) {
        let rewrites = series.iter().map(|it| it.rewrites()).sum();
        let last = series.iter().map(|it| it.last_round()).min().flatten();
        self.up_to(last, rewrites)
    }

    /// The same of two contenders in several metrics: up to the last round that both have reached
    /// in any of them, for a trial's figures come together.
    fn next_of_both(&mut self, metrics: &[[&Series; 2]]) -> (bool, Option<Rounds>) {
        let rewrites = metrics.iter().flatten().map(|it| it.rewrites()).sum();
        let reached = |side: usize| metrics.iter().map(|it| it[side].last_round()).max().flatten();
        self.up_to(reached(0).min(reached(1)), rewrites)
    }

    fn up_to(&mut self, last: Option<u32>, rewrites: u32) -> (bool, Option<Rounds>) {
        let is_anew = rewrites != self.rewrites;
        if is_anew {
            *self = Reader { after: None, rewrites };
        }
        let Some(last) = last.filter(|last| Some(*last) > self.after) else {
            return (is_anew, None);
        };
        let from = self.after.map_or(Bound::Unbounded, Bound::Excluded);
        self.after = Some(last);
        (is_anew, Some((from, Bound::Included(last))))
    }

    /// The new rounds that hold both.
    fn pairs(&mut self, series: [&Series; 2]) -> (bool, Vec<Pair>) {
        let (is_anew, range) = self.next(&series);
        let pairs = range.map(|range| series[0].pairs(series[1], range).collect());
        (is_anew, pairs.unwrap_or_default())
    }
}

/// The courses of a contender against another, in metrics that share an error. It is always asked
/// with the same series, rules and margin.
#[derive(Debug, Default)]
pub struct Lane {
    reader: Reader,
    metrics: Vec<Way>,
}

/// The course in one metric.
#[derive(Debug)]
struct Way {
    paired: Paired,
    course: Course,
    /// The rounds that were read.
    rounds: Vec<u32>,
}

impl Way {
    fn new() -> Way {
        Way { paired: Paired::default(), course: Course::BEGIN, rounds: Vec::new() }
    }

    /// Takes a round, if it holds both.
    fn take(&mut self, round: u32, series: [&Series; 2]) -> Option<Estimate> {
        let pair = series[0].pairs(series[1], round..=round).next()?;
        self.rounds.push(round);
        Some(self.paired.take(pair.difference))
    }

    fn recent(&self) -> Recent<'_> {
        let from = self.rounds.len().saturating_sub(RECENT);
        Recent { rounds: &self.rounds[from..], differences: self.paired.recent(RECENT) }
    }
}

impl Lane {
    /// The course of each metric, of all rounds that hold both.
    pub fn courses(
        &mut self,
        metrics: &[[&Series; 2]],
        rules: &Shared,
        margin: f64,
    ) -> Vec<Course> {
        let (is_anew, range) = self.reader.next_of_both(metrics);
        if is_anew {
            self.metrics.clear();
        }
        self.metrics.resize_with(metrics.len(), Way::new);
        let mut rounds = BTreeSet::new();
        if let Some(range) = range {
            metrics.iter().for_each(|it| rounds.extend(it[0].rounds(range)));
        }
        for round in rounds {
            self.take(round, metrics, rules, margin);
        }
        self.metrics.iter().map(|it| it.course).collect()
    }

    /// Each metric's interval is made by what is known of all of them after the round.
    fn take(&mut self, round: u32, metrics: &[[&Series; 2]], rules: &Shared, margin: f64) {
        let ways = self.metrics.iter_mut().zip(metrics);
        let estimates: Vec<_> = ways.map(|(way, series)| way.take(round, *series)).collect();
        let recent: Vec<Recent> = self.metrics.iter().map(Way::recent).collect();
        let rule = rules.rule(&recent);
        for (way, estimate) in self.metrics.iter_mut().zip(estimates) {
            estimate.into_iter().for_each(|it| way.course.take(it, rule, margin));
        }
    }

    /// The rounds of the metric at that place that outlie, in order.
    pub fn outlying(&self, metric: usize) -> Vec<u32> {
        let Some(way) = self.metrics.get(metric) else { return Vec::new() };
        way.paired.outlying().into_iter().map(|place| way.rounds[place]).collect()
    }
}

/// The medians of two contenders, over the rounds that hold both.
#[derive(Debug, Default)]
pub struct Medians {
    reader: Reader,
    middles: [Middle; 2],
}

impl Medians {
    /// Both medians.
    pub fn of(&mut self, series: [&Series; 2]) -> [Option<f64>; 2] {
        let (is_anew, pairs) = self.reader.pairs(series);
        if is_anew {
            self.middles = Default::default();
        }
        for pair in pairs {
            self.middles[0].put(pair.contender, pair.round);
            self.middles[1].put(pair.reference, pair.round);
        }
        [self.middles[0].median(), self.middles[1].median()]
    }

    /// Each of the two has had one value only.
    pub fn are_constant(&self) -> bool {
        self.middles.iter().all(Middle::is_constant)
    }
}

/// The courses of one metric's contenders against the reference by what scatters in all of them.
///
/// They are of the rounds that hold a figure of every contender that has one in half of the rounds
/// or more. Who fails more often has no part in it, lest a round never count again.
#[derive(Debug, Default)]
pub struct Pooling {
    rounds: BTreeSet<u32>,
    read: Vec<Reader>,
    /// By who has a part.
    lanes: BTreeMap<Vec<usize>, PooledLane>,
}

#[derive(Debug)]
struct PooledLane {
    reader: Reader,
    rule: Rule,
    pooled: Pooled,
    /// Of each that has a part, against the reference.
    against: Vec<(Paired, Course)>,
}

impl Pooling {
    /// The course of `contender` against `reference`, which are places in `series`: one series for
    /// each contender of the plan. `None` where one of the two has no part.
    pub fn course(
        &mut self,
        series: &[&Series],
        [contender, reference]: [usize; 2],
        rules: &PooledRules,
        margin: f64,
    ) -> Option<Course> {
        let taking_part = self.taking_part(series);
        let at = |place: usize| taking_part.binary_search(&place).ok();
        let (one, other) = (at(contender)?, at(reference)?);
        let series: Vec<&Series> = taking_part.iter().map(|place| series[*place]).collect();
        let count = taking_part.len();
        let lane = self.lanes.entry(taking_part).or_insert_with(|| PooledLane {
            reader: Reader::default(),
            rule: rules.of(count as u32),
            pooled: Pooled::new(count),
            against: vec![(Paired::default(), Course::BEGIN); count],
        });
        lane.catch_up(&series, other, margin);
        Some(lane.against[one].1)
    }

    /// The places of those that have a figure in half of the rounds or more, in order.
    fn taking_part(&mut self, series: &[&Series]) -> Vec<usize> {
        self.read.resize_with(series.len(), Reader::default);
        for (reader, series) in self.read.iter_mut().zip(series) {
            let (_, range) = reader.next(&[series]);
            self.rounds.extend(range.into_iter().flat_map(|range| series.rounds(range)));
        }
        let rounds = self.rounds.len();
        let is_part = |place: &usize| series[*place].len() * 2 >= rounds;
        (0..series.len()).filter(is_part).collect()
    }
}

impl PooledLane {
    fn catch_up(&mut self, series: &[&Series], reference: usize, margin: f64) {
        let (is_anew, range) = self.reader.next(series);
        if is_anew {
            self.pooled = Pooled::new(series.len());
            self.against.fill((Paired::default(), Course::BEGIN));
        }
        let rounds = range.into_iter().flat_map(|range| series[0].rounds(range));
        let goodness = |round| move |it: &&Series| it.get(round).map(|it| it.goodness);
        for figures in rounds.filter_map(|it| series.iter().map(goodness(it)).collect()) {
            let figures: Vec<f64> = figures;
            self.pooled.take(&figures);
            for (place, (paired, course)) in self.against.iter_mut().enumerate() {
                let own = paired.take(figures[place] - figures[reference]);
                let pooled = self.pooled.difference([place, reference]);
                course.take(remembering(pooled, own), &self.rule, margin);
            }
        }
    }
}

/// A pooled estimate, as wide for noise that remembers as that of the two alone; it is not narrower
/// where they go to and fro.
pub fn remembering(pooled: Estimate, own: Estimate) -> Estimate {
    let widened = own.widened.max(1.0);
    Estimate { standard_error: pooled.standard_error * widened, widened, ..pooled }
}
