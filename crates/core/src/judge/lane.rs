//! Courses that go on from where they were left, as figures come.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::estimate::{Estimate, Paired};
use super::interval::{Course, Pooled};
use super::middle::Middle;
use super::pairs::{Pair, Series, Which};
use super::shared::{PooledRules, RECENT, Recent, Shared};
use crate::model::Record;

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

    /// The same of contenders in several metrics: up to the last round that all have reached in any
    /// of them, because a trial's figures come together.
    fn next_of_all<'a, S: AsRef<[&'a Series]>>(&mut self, metrics: &[S]) -> (bool, Option<Rounds>) {
        let all = || metrics.iter().map(AsRef::as_ref);
        let rewrites = all().flatten().map(|it| it.rewrites()).sum();
        let reached = |side: usize| all().map(|it| it[side].last_round()).max().flatten();
        let sides = all().next().map_or(0, <[_]>::len);
        self.up_to((0..sides).map(reached).min().flatten(), rewrites)
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
    /// That of two contenders in these metrics of a workload, of all records.
    pub fn of(
        records: &[Record],
        workload: &str,
        metrics: &[&str],
        names: [&str; 2],
        (rules, margin): (&Shared, f64),
        which: Which,
    ) -> Lane {
        let series =
            |metric: &&str| names.map(|it| Series::of(records, workload, metric, it, which));
        let all: Vec<[Series; 2]> = metrics.iter().map(series).collect();
        let both: Vec<[&Series; 2]> = all.iter().map(|[one, other]| [one, other]).collect();
        let mut lane = Lane::default();
        lane.courses(&both, rules, margin);
        lane
    }

    /// The course of the metric at that place.
    pub fn course(&self, metric: usize) -> Course {
        self.metrics[metric].course
    }

    /// The last rounds of each metric.
    pub fn recent(&self) -> Vec<Recent<'_>> {
        self.metrics.iter().map(Way::recent).collect()
    }

    /// The course of each metric, of all rounds that hold both.
    pub fn courses(
        &mut self,
        metrics: &[[&Series; 2]],
        rules: &Shared,
        margin: f64,
    ) -> Vec<Course> {
        let (is_anew, range) = self.reader.next_of_all(metrics);
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
        let rule = rules.rule(&self.recent());
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

/// The courses of contenders against the reference by what scatters in all of them, in metrics that
/// share an error.
///
/// They are of the rounds that hold a figure of every contender that has one in half of the rounds
/// or more. A contender that fails more often is left out, or no round might count again; in
/// another metric, of a timed part that it does not refuse, it may take part.
#[derive(Debug, Default)]
pub struct Pooling {
    /// Of each metric.
    seen: Vec<Seen>,
    /// By the contenders that take part, and the metrics.
    lanes: BTreeMap<[Vec<usize>; 2], PooledLane>,
}

/// The rounds in which anyone has a figure of a metric.
#[derive(Debug, Default)]
struct Seen {
    rounds: BTreeSet<u32>,
    read: Vec<Reader>,
}

impl Seen {
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

/// The metrics in which the same contenders have a part.
#[derive(Debug)]
struct PooledLane {
    reader: Reader,
    rules: Shared,
    metrics: Vec<PooledWay>,
}

/// The courses in one metric.
#[derive(Debug)]
struct PooledWay {
    pooled: Pooled,
    /// Of each that has a part, against the reference.
    against: Vec<Way>,
}

impl PooledWay {
    fn new(contenders: usize) -> PooledWay {
        let against = (0..contenders).map(|_| Way::new()).collect();
        PooledWay { pooled: Pooled::new(contenders), against }
    }

    /// Takes a round, if it holds all: the estimate of each against the reference.
    fn take(&mut self, round: u32, series: &[&Series], reference: usize) -> Option<Vec<Estimate>> {
        let goodness = |it: &&Series| it.get(round).map(|it| it.goodness);
        let figures: Vec<f64> = series.iter().map(goodness).collect::<Option<_>>()?;
        self.pooled.take(&figures);
        let of = |(place, way): (usize, &mut Way)| {
            way.rounds.push(round);
            let own = way.paired.take(figures[place] - figures[reference]);
            remembering(self.pooled.difference([place, reference]), own)
        };
        Some(self.against.iter_mut().enumerate().map(of).collect())
    }
}

impl Pooling {
    /// The course of `contender` against `reference` in the metric at place `number`. Each of
    /// `metrics` has a series of every contender of the plan. `None` where one of the two has no
    /// part.
    pub fn course(
        &mut self,
        metrics: &[Vec<&Series>],
        number: usize,
        [contender, reference]: [usize; 2],
        rules: &PooledRules,
        margin: f64,
    ) -> Option<Course> {
        self.seen.resize_with(metrics.len(), Seen::default);
        let seen = self.seen.iter_mut().zip(metrics);
        let taking_part: Vec<_> = seen.map(|(seen, series)| seen.taking_part(series)).collect();
        let its = &taking_part[number];
        let at = |place: usize| its.binary_search(&place).ok();
        let (one, other) = (at(contender)?, at(reference)?);
        let alike: Vec<usize> =
            (0..metrics.len()).filter(|metric| taking_part[*metric] == *its).collect();
        let of_those =
            |metric: &usize| its.iter().map(|place| metrics[*metric][*place]).collect::<Vec<_>>();
        let series: Vec<Vec<&Series>> = alike.iter().map(of_those).collect();
        let way = alike.binary_search(&number).ok()?;
        let lane = self.lanes.entry([its.clone(), alike]).or_insert_with(|| PooledLane {
            reader: Reader::default(),
            rules: rules.of(its.len()).clone(),
            metrics: Vec::new(),
        });
        lane.catch_up(&series, other, margin);
        Some(lane.metrics[way].against[one].course)
    }
}

impl PooledLane {
    /// `metrics` are the series of those that have a part.
    fn catch_up(&mut self, metrics: &[Vec<&Series>], reference: usize, margin: f64) {
        let contenders = metrics[0].len();
        let (is_anew, range) = self.reader.next_of_all(metrics);
        if is_anew {
            self.metrics.clear();
        }
        self.metrics.resize_with(metrics.len(), || PooledWay::new(contenders));
        let mut rounds = BTreeSet::new();
        if let Some(range) = range {
            metrics.iter().for_each(|it| rounds.extend(it[reference].rounds(range)));
        }
        for round in rounds {
            let ways = self.metrics.iter_mut().zip(metrics);
            let estimates: Vec<_> =
                ways.map(|(way, series)| way.take(round, series, reference)).collect();
            for place in (0..contenders).filter(|place| *place != reference) {
                self.look(place, &estimates, margin);
            }
        }
    }

    /// The intervals of one contender are made by what is known of all its metrics.
    fn look(&mut self, place: usize, estimates: &[Option<Vec<Estimate>>], margin: f64) {
        let recent: Vec<_> = self.metrics.iter().map(|it| it.against[place].recent()).collect();
        let rule = self.rules.rule(&recent);
        for (way, estimates) in self.metrics.iter_mut().zip(estimates) {
            if let Some(estimates) = estimates {
                way.against[place].course.take(estimates[place], rule, margin);
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

#[cfg(test)]
mod tests {
    use super::super::pairs::Figure;
    use super::super::shared::testing::round;
    use super::super::stopping::Normals;
    use super::*;

    /// The share of runs of four contenders in which any pooled interval of the first against the
    /// second misses in any of three metrics, and the last width as a share of that of metrics
    /// which count for themselves.
    fn missed(correlation: f64, rounds: u32) -> (f64, f64) {
        const RUNS: u32 = 2_000;
        const CONTENDERS: usize = 4;
        let rules = PooledRules::new(0.05, 3, Some(rounds), CONTENDERS as u32);
        let apart = rules.of(CONTENDERS).apart();
        let mut normals = Normals::seeded(0);
        let (mut missed, mut width) = (0, 0.0);
        for _ in 0..RUNS {
            let mut series: Vec<Vec<Series>> = Vec::new();
            series.resize_with(3, || (0..CONTENDERS).map(|_| Series::default()).collect());
            let (mut pooling, mut misses) = (Pooling::default(), false);
            for n in 1..=rounds {
                for contender in 0..CONTENDERS {
                    let drawn = round(3, correlation, &mut normals);
                    for (metric, goodness) in series.iter_mut().zip(drawn) {
                        metric[contender].put(n, Figure { value: goodness.exp(), goodness });
                    }
                }
                let all: Vec<Vec<&Series>> = series.iter().map(|it| it.iter().collect()).collect();
                let mut course = |metric| {
                    pooling.course(&all, metric, [0, 1], &rules, 0.05).expect("all are there")
                };
                let courses = [0, 1, 2].map(&mut course);
                misses |= courses.iter().any(|it| it.interval.low > 0.0 || it.interval.high < 0.0);
                if n == rounds {
                    let Course { interval, standard_error, .. } = courses[0];
                    let half = (interval.high - interval.low) / 2.0;
                    width += half / apart.half_width(n, standard_error);
                }
            }
            missed += u32::from(misses);
        }
        (f64::from(missed) / f64::from(RUNS), width / f64::from(RUNS))
    }

    /// Standard error of the shares: 0.4 points.
    #[test]
    fn pooled_intervals_hold_together_whatever_the_metrics_have_in_common() {
        for rounds in [4, 12] {
            for (correlation, narrower) in [(0.0, 1.001), (0.95, 0.95)] {
                let (missed, width) = missed(correlation, rounds);
                assert!((0.005..0.045).contains(&missed), "{rounds}, {correlation}: {missed}");
                assert!(width < narrower, "{rounds}, {correlation}: {width}");
            }
        }
    }
}
