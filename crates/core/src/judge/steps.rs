//! What a figure did over nights: it stayed, it changed at once, or it changed steadily.
//!
//! The model: the nights between two changes have one level, about which they scatter. How much
//! nights differ without any cause is not known beforehand, so that it is estimated from the nights
//! themselves; what a night's own rounds leave open says how much it counts beside the others, its
//! weight being 1 / (tau^2 + v), with v the variance of its figure and tau^2 that between nights.
//!
//! Looked for is the stretch of nights, one from an end included, that stands out most from the
//! others: by the share of the squares that it explains (circular binary segmentation: Olshen and
//! others, Biostatistics 5, 2004). Its chance is that of a stretch as outstanding in normal noise,
//! simulated; of many nights, also in random orders of these, which costs no power there and holds
//! for any noise.
//!
//! With which night a change came is the posterior over all nights, for levels and variance unknown
//! and flat (Smith, Biometrika 62, 1975). The least set that holds 95% of it is given.

use std::collections::BTreeMap;
use std::ops::Range;

use super::student::{two_sided_quantile, two_sided_tail};
use crate::model::Draws;

/// The chance of a change that is found where there is none.
const LEVEL: f64 = 0.01;

/// The chance of a change that is called steady and came at once, or the other way round.
const KIND_LEVEL: f64 = 0.05;

/// What the sets of nights and the intervals of sizes hold.
const CONFIDENCE: f64 = 0.95;

/// Nights in a stretch, and before or after it if there are any, at least.
const NIGHTS_MIN: usize = 2;

/// Among fewer no change can be found.
pub const FEWEST: usize = 2 * NIGHTS_MIN;

/// From so many nights on random orders are many enough to tell.
const ORDERED_FROM: usize = 16;

/// Simulated series, and random orders.
const DRAWS: usize = 3_999;

/// Series that are simulated to tell steps from a line.
const KIND_DRAWS: usize = 499;

/// The standard normal quantile of four cases in five.
const FOUR_IN_FIVE: f64 = 0.841_621;

/// What one night says.
#[derive(Clone, Copy, Debug)]
pub struct Night {
    /// ln(goodness), or its difference to the reference's.
    pub value: f64,
    /// The variance of what it is the mean of, round by round.
    pub of_a_round: f64,
    /// So many rounds.
    pub rounds: u32,
}

/// A change at once.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The first night after it, as far as that can be told: the likeliest.
    pub place: usize,
    /// After less before, in ln units.
    pub size: f64,
    /// The interval of the size, if it came with that night.
    pub low: f64,
    /// Its other end.
    pub high: f64,
    /// The nights with one of which it came, with 95% confidence, in order.
    pub places: Vec<usize>,
    /// Nights before it, up to the change before.
    pub before: usize,
    /// Nights since, up to the next change.
    pub after: usize,
    /// The chance of a stretch that stands out as much where nothing changed.
    pub chance: f64,
}

/// What a figure did. Changes are in ln units.
#[derive(Clone, Debug, PartialEq)]
pub enum Course {
    /// Nothing shows. In the middle of the series a change of this size would have shown in four
    /// cases of five; `None` among too few nights for any.
    Still(Option<f64>),
    /// It changed at once, once or more.
    Stepped(Vec<Step>),
    /// It changed steadily: by so much from the first night to the last.
    Steadily(f64),
    /// It changed, but at once or steadily can't be told: by so much along a line.
    Unclear(f64),
}

/// The courses of several series: what is simulated for one serves the others.
#[derive(Debug, Default)]
pub struct Courses {
    /// By the number of nights: of each simulated series without a change how much its most
    /// outstanding stretch explains, in order.
    still: BTreeMap<usize, Vec<f64>>,
}

impl Courses {
    /// What `nights` did; changes up to `margin` are trifles.
    pub fn of(&mut self, nights: &[Night], margin: f64) -> Course {
        if nights.len() < FEWEST {
            return Course::Still(None);
        }
        let values = Weighted::of(nights);
        let mut ends = Vec::new();
        let found = self.split(&values, 0, margin, &mut ends);
        let steps = steps(&values, &ends, margin);
        if !steps.is_empty() {
            return Course::Stepped(steps);
        }
        let line = values.line();
        let whole = line.slope * (values.len() - 1) as f64;
        if (found || values.slopes(line)) && whole.abs() > margin {
            return match Kinds::of(&values).steps_are_out() {
                true => Course::Steadily(whole),
                false => Course::Unclear(whole),
            };
        }
        Course::Still(Some(self.visible(&values)))
    }

    /// Adds the places from which on `values` are others, with their chances; `offset` is where
    /// they begin in the whole series. Says whether any stretch stood out.
    fn split(
        &mut self,
        values: &Weighted,
        offset: usize,
        margin: f64,
        ends: &mut Vec<(usize, f64)>,
    ) -> bool {
        let Some((stretch, explained)) = values.clearest() else { return false };
        let Some(chance) = self.chance(values, explained) else { return false };
        if values.stands_out_by(&stretch).abs() <= margin {
            return false;
        }
        if !Kinds::of(values).line_is_out() {
            return true;
        }
        let Range { start, end } = stretch;
        let inner = [start, end].into_iter().filter(|place| (1..values.len()).contains(place));
        ends.extend(inner.map(|place| (offset + place, chance)));
        for part in [0..start, start..end, end..values.len()] {
            self.split(&values.part(part.clone()), offset + part.start, margin, ends);
        }
        true
    }

    /// The chance of a stretch that explains as much where nothing changed, if it is under
    /// [`LEVEL`].
    fn chance(&mut self, values: &Weighted, explained: f64) -> Option<f64> {
        let still = self.still(values.len());
        let as_clear = still.len() - still.partition_point(|other| *other < explained - 1e-12);
        let chance = (1 + as_clear) as f64 / (1 + still.len()) as f64;
        if chance >= LEVEL {
            return None;
        }
        match values.len() < ORDERED_FROM {
            true => Some(chance),
            false => Some(chance.max(chance_in_any_order(values, explained)?)),
        }
    }

    fn still(&mut self, nights: usize) -> &[f64] {
        self.still.entry(nights).or_insert_with(|| {
            // The same nights have the same changes whenever they are asked for.
            let mut draws = Draws::new(nights as u64);
            let mut explained = || {
                let values = (0..nights).map(|_| draws.normal()).collect();
                Weighted::alike(values).clearest().map_or(0.0, |(_, explained)| explained)
            };
            let mut still: Vec<f64> = (0..DRAWS).map(|_| explained()).collect();
            still.sort_by(f64::total_cmp);
            still
        })
    }

    /// The size of a change in the middle that would have been found in four cases of five.
    fn visible(&mut self, values: &Weighted) -> f64 {
        let freedom = (values.len() - 2) as f64;
        let still = self.still(values.len());
        let explained = still[(still.len() as f64 * (1.0 - LEVEL)) as usize];
        let t = (explained / (1.0 - explained) * freedom).sqrt();
        // As the test has it, without any change.
        let deviation = (values.squares() / (freedom + 1.0)).sqrt();
        (t + FOUR_IN_FIVE) * deviation * (4.0 / values.len() as f64).sqrt()
    }
}

/// The share of random orders in which a stretch explains as much, if it is under [`LEVEL`].
fn chance_in_any_order(values: &Weighted, explained: f64) -> Option<f64> {
    let mut draws = Draws::new(values.len() as u64);
    let mut order: Vec<usize> = (0..values.len()).collect();
    let mut as_clear = 1;
    for _ in 0..DRAWS {
        draws.shuffle(&mut order);
        let other = values.in_order(&order).clearest().map_or(0.0, |(_, other)| other);
        as_clear += usize::from(other >= explained - 1e-12);
        if as_clear as f64 >= LEVEL * (1 + DRAWS) as f64 {
            return None;
        }
    }
    Some(as_clear as f64 / (1 + DRAWS) as f64)
}

/// The changes at these places, each looked at again between its neighbours, without trifles.
fn steps(values: &Weighted, ends: &[(usize, f64)], margin: f64) -> Vec<Step> {
    let mut found: Vec<(usize, f64)> = ends.to_vec();
    found.sort_by_key(|(place, _)| *place);
    found.dedup_by_key(|(place, _)| *place);
    let bounds: Vec<usize> = found.iter().map(|it| it.0).chain([values.len()]).collect();
    let mut steps: Vec<Step> = Vec::new();
    let mut begin = 0;
    for (&(_, chance), &end) in found.iter().zip(&bounds[1..]) {
        let part = values.part(begin..end);
        let places = likeliest(&part);
        let Some(&(place, _)) = places.first() else { continue };
        let (size, half_width) = part.size(place);
        if size.abs() <= margin {
            continue;
        }
        let mut set: Vec<usize> = places.iter().map(|(place, _)| begin + place).collect();
        set.sort_unstable();
        steps.push(Step {
            place: begin + place,
            size,
            low: size - half_width,
            high: size + half_width,
            places: set,
            before: place,
            after: part.len() - place,
            chance,
        });
        begin += place;
    }
    steps
}

/// The likeliest places of one change among `values`, with their shares of the posterior, until they
/// hold [`CONFIDENCE`] of it.
fn likeliest(values: &Weighted) -> Vec<(usize, f64)> {
    let freedom = values.len().saturating_sub(2) as f64;
    let all = values.weight(0..values.len());
    let log_density = |place: usize| {
        let [one, other] = [0..place, place..values.len()];
        let squares = values.squares_of(one.clone()) + values.squares_of(other.clone());
        let spread = values.weight(one) * values.weight(other) / all;
        -0.5 * freedom * squares.max(SQUARES_MIN).ln() - 0.5 * spread.ln()
    };
    let logs: Vec<f64> = (1..values.len()).map(log_density).collect();
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let densities = logs.iter().map(|log| (log - most).exp());
    let sum: f64 = densities.clone().sum();
    let mut places: Vec<(usize, f64)> = (1..).zip(densities.map(|it| it / sum)).collect();
    places.sort_by(|one, other| other.1.total_cmp(&one.1));
    let mut held = 0.0;
    let needed = places.iter().take_while(|(_, share)| {
        let lacks = held < CONFIDENCE;
        held += share;
        lacks
    });
    let needed = needed.count();
    places.truncate(needed);
    places
}

/// No figure is known better: the squares of nights that are all the same.
const SQUARES_MIN: f64 = 1e-18;

/// Steps and a line as explanations of the same nights: whether either is ruled out by series
/// simulated under it.
struct Kinds<'a> {
    values: &'a Weighted,
    line: Line,
    for_steps: ForSteps,
}

/// How much better steps explain nights than a line does: ln of the squares that the line leaves
/// over those that are left by the stretch that explains most, and by two steps of any size.
#[derive(Clone, Copy, Debug)]
struct ForSteps {
    by_a_stretch: f64,
    by_two: f64,
}

impl<'a> Kinds<'a> {
    fn of(values: &'a Weighted) -> Kinds<'a> {
        Kinds { line: values.line(), for_steps: values.for_steps(), values }
    }

    /// A line seldom looks as much like steps, by one of the two measures, which share the chance.
    fn line_is_out(&self) -> bool {
        let places = 0..self.values.len();
        let levels: Vec<f64> = places.map(|it| self.line.at(it)).collect();
        let seen = self.for_steps;
        let simulated = self.simulated(&levels);
        let share = |is: &dyn Fn(&ForSteps) -> bool| share(&simulated, is);
        share(&|it| it.by_a_stretch >= seen.by_a_stretch) < KIND_LEVEL / 2.0
            || share(&|it| it.by_two >= seen.by_two) < KIND_LEVEL / 2.0
    }

    /// Steps seldom look as much like a line.
    fn steps_are_out(&self) -> bool {
        let Some((stretch, _)) = self.values.clearest() else { return false };
        let inside = self.values.mean(&stretch);
        let outside = inside - self.values.stands_out_by(&stretch);
        let level = |place: usize| if stretch.contains(&place) { inside } else { outside };
        let levels: Vec<f64> = (0..self.values.len()).map(level).collect();
        let seen = self.for_steps.by_two;
        share(&self.simulated(&levels), &|it| it.by_two <= seen) < KIND_LEVEL
    }

    /// The same of series about `levels`, with as much noise as is left of these.
    fn simulated(&self, levels: &[f64]) -> Vec<ForSteps> {
        let values = self.values;
        let left = values.values.iter().zip(levels).zip(&values.weights);
        let left: f64 = left.map(|((value, level), w)| w * (value - level).powi(2)).sum();
        let deviation = (left / (values.len() - 2) as f64).sqrt();
        let mut draws = Draws::new(values.len() as u64);
        let mut simulated = || {
            let night = |(level, w): (&f64, &f64)| level + deviation * draws.normal() / w.sqrt();
            let simulated = levels.iter().zip(&values.weights).map(night).collect();
            Weighted::new(simulated, values.weights.clone()).for_steps()
        };
        (0..KIND_DRAWS).map(|_| simulated()).collect()
    }
}

/// The share of simulated series for which `is` holds, the true one among them.
fn share(simulated: &[ForSteps], is: &dyn Fn(&ForSteps) -> bool) -> f64 {
    let count = simulated.iter().filter(|it| is(it)).count();
    (1 + count) as f64 / (1 + simulated.len()) as f64
}

/// A straight line over the places.
#[derive(Clone, Copy, Debug)]
struct Line {
    middle: f64,
    mean: f64,
    slope: f64,
}

impl Line {
    fn at(self, place: usize) -> f64 {
        self.mean + self.slope * (place as f64 - self.middle)
    }
}

/// Values with weights, and the sums over the first so many of them.
#[derive(Clone, Debug)]
struct Weighted {
    values: Vec<f64>,
    weights: Vec<f64>,
    /// Of weights, weighted values and weighted squares.
    sums: Vec<[f64; 3]>,
}

impl Weighted {
    /// The nights, about their mean; the weights are 1 on average.
    fn of(nights: &[Night]) -> Weighted {
        let variances = variances(nights);
        let between = between(nights, &variances);
        let weights: Vec<f64> =
            variances.iter().map(|it| 1.0 / (between + it).max(SQUARES_MIN)).collect();
        let mean = weights.iter().sum::<f64>() / weights.len() as f64;
        let weights = weights.iter().map(|it| it / mean).collect();
        let values: Vec<f64> = nights.iter().map(|night| night.value).collect();
        Weighted::new(values, weights)
    }

    fn alike(values: Vec<f64>) -> Weighted {
        let weights = vec![1.0; values.len()];
        Weighted::new(values, weights)
    }

    fn new(values: Vec<f64>, weights: Vec<f64>) -> Weighted {
        // About a middle, so that no digits are lost.
        let middle = values.iter().sum::<f64>() / values.len().max(1) as f64;
        let values: Vec<f64> = values.iter().map(|value| value - middle).collect();
        let mut sum = [0.0; 3];
        let mut sums = vec![sum];
        for (value, w) in values.iter().zip(&weights) {
            sum = [sum[0] + w, sum[1] + w * value, sum[2] + w * value * value];
            sums.push(sum);
        }
        Weighted { values, weights, sums }
    }

    fn len(&self) -> usize {
        self.values.len()
    }

    fn part(&self, range: Range<usize>) -> Weighted {
        Weighted::new(self.values[range.clone()].to_vec(), self.weights[range].to_vec())
    }

    fn in_order(&self, order: &[usize]) -> Weighted {
        let of = |all: &[f64]| order.iter().map(|&place| all[place]).collect();
        Weighted::new(of(&self.values), of(&self.weights))
    }

    fn sum(&self, range: &Range<usize>) -> [f64; 3] {
        let (from, to) = (self.sums[range.start], self.sums[range.end]);
        [to[0] - from[0], to[1] - from[1], to[2] - from[2]]
    }

    fn weight(&self, range: Range<usize>) -> f64 {
        self.sum(&range)[0]
    }

    fn mean(&self, range: &Range<usize>) -> f64 {
        let [weight, values, _] = self.sum(range);
        values / weight
    }

    /// Weighted squares about the mean.
    fn squares_of(&self, range: Range<usize>) -> f64 {
        let [weight, values, squares] = self.sum(&range);
        (squares - values * values / weight).max(0.0)
    }

    fn squares(&self) -> f64 {
        self.squares_of(0..self.len())
    }

    /// The mean of a stretch less that of all others.
    fn stands_out_by(&self, stretch: &Range<usize>) -> f64 {
        let [weight, values, _] = self.sum(stretch);
        let [all, of_all, _] = self.sums[self.len()];
        values / weight - (of_all - values) / (all - weight)
    }

    /// The stretch that explains most of the squares, and the share that it explains. `None` of too
    /// few nights, or of nights that are all the same.
    fn clearest(&self) -> Option<(Range<usize>, f64)> {
        let count = self.len();
        let squares = self.squares();
        if squares <= SQUARES_MIN {
            return None;
        }
        let all = self.sums[count];
        let is_end = |place: usize| {
            place == 0
                || place == count
                || (NIGHTS_MIN..=count.saturating_sub(NIGHTS_MIN)).contains(&place)
        };
        let mut best: Option<(Range<usize>, f64)> = None;
        for start in (0..count).filter(|&start| is_end(start)) {
            let from = self.sums[start];
            let most = count.min(start + count.saturating_sub(NIGHTS_MIN));
            for end in (start + NIGHTS_MIN..=most).filter(|&end| is_end(end)) {
                let (weight, values) = (self.sums[end][0] - from[0], self.sums[end][1] - from[1]);
                let out_by = values / weight - (all[1] - values) / (all[0] - weight);
                let explained = out_by * out_by * weight * (all[0] - weight) / all[0] / squares;
                if best.as_ref().is_none_or(|(_, other)| explained > *other) {
                    best = Some((start..end, explained));
                }
            }
        }
        best
    }

    /// See [`ForSteps`].
    fn for_steps(&self) -> ForSteps {
        let of_line = self.squares_about(self.line()).max(SQUARES_MIN).ln();
        let mut of_two = f64::INFINITY;
        let last = self.len() - NIGHTS_MIN;
        for one in NIGHTS_MIN..=last {
            let before = self.squares_of(0..one);
            of_two = of_two.min(before + self.squares_of(one..self.len()));
            for other in one + NIGHTS_MIN..=last {
                let inner = self.squares_of(one..other);
                of_two = of_two.min(before + inner + self.squares_of(other..self.len()));
            }
        }
        let explained = self.clearest().map_or(0.0, |(_, explained)| explained);
        let of_stretch = self.squares() * (1.0 - explained);
        ForSteps {
            by_a_stretch: of_line - of_stretch.max(SQUARES_MIN).ln(),
            by_two: of_line - of_two.max(SQUARES_MIN).ln(),
        }
    }

    /// The straight line with the least weighted squares.
    fn line(&self) -> Line {
        let weight = self.sums[self.len()][0];
        let places = || self.weights.iter().zip(0..).map(|(w, place)| (w, f64::from(place)));
        let middle = places().map(|(w, place)| w * place).sum::<f64>() / weight;
        let mean = self.mean(&(0..self.len()));
        let spread: f64 = places().map(|(w, place)| w * (place - middle).powi(2)).sum();
        let along = places().zip(&self.values);
        let along: f64 = along.map(|((w, place), value)| w * (place - middle) * value).sum();
        Line { middle, mean, slope: along / spread }
    }

    /// In noise a line is seldom as steep.
    fn slopes(&self, line: Line) -> bool {
        let freedom = (self.len() - 2) as f64;
        let left = self.squares_about(line);
        let t_squared = (self.squares() - left).max(0.0) / (left.max(SQUARES_MIN) / freedom);
        two_sided_tail(t_squared.sqrt(), freedom) < LEVEL
    }

    fn squares_about(&self, line: Line) -> f64 {
        let left = |place: usize| self.values[place] - line.at(place);
        (0..self.len()).map(|place| self.weights[place] * left(place).powi(2)).sum()
    }

    /// How much the values from `place` on are above those before, and half the width of its
    /// interval.
    fn size(&self, place: usize) -> (f64, f64) {
        let [one, other] = [0..place, place..self.len()];
        let size = self.mean(&other) - self.mean(&one);
        let freedom = self.len().saturating_sub(2) as f64;
        if freedom < 1.0 {
            return (size, f64::INFINITY);
        }
        let squares = self.squares_of(one.clone()) + self.squares_of(other.clone());
        let error = squares / freedom * (1.0 / self.weight(one) + 1.0 / self.weight(other));
        (size, two_sided_quantile(1.0 - CONFIDENCE, freedom) * error.sqrt())
    }
}

/// The variance of each night's figure. That of few rounds is badly known, so that all nights lend
/// each other some (Smyth, Statistical Applications in Genetics and Molecular Biology 3, 2004; with
/// the weight of the others declared).
fn variances(nights: &[Night]) -> Vec<f64> {
    const OTHERS: f64 = 4.0;
    let known = nights.iter().filter(|night| night.rounds > 1);
    let common = middle(known.map(|night| night.of_a_round).collect());
    let variance = |night: &Night| {
        let freedom = f64::from(night.rounds.saturating_sub(1));
        let of_a_round = (OTHERS * common + freedom * night.of_a_round) / (OTHERS + freedom);
        of_a_round / f64::from(night.rounds.max(1))
    };
    nights.iter().map(variance).collect()
}

/// The variance between nights: by the median of the squares of successive differences, in which a
/// change counts once, less what the nights' own variances explain.
fn between(nights: &[Night], variances: &[f64]) -> f64 {
    /// The median of chi squared with one degree of freedom.
    const MEDIAN: f64 = 0.454_94;
    let squares = nights.windows(2).map(|pair| (pair[1].value - pair[0].value).powi(2));
    let of_both = middle(squares.collect()) / MEDIAN;
    (of_both / 2.0 - middle(variances.to_vec())).max(0.0)
}

fn middle(values: Vec<f64>) -> f64 {
    crate::model::median(values).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARGIN: f64 = 0.048_79;

    /// Twelve nights of eight rounds, unless told otherwise.
    struct Made {
        nights: usize,
        /// Of a night, in ln units.
        noise: f64,
        /// The level of each night.
        level: fn(usize) -> f64,
    }

    impl Made {
        fn nights(&self, draws: &mut Draws) -> Vec<Night> {
            let night = |place: usize| Night {
                value: (self.level)(place) + self.noise * draws.normal(),
                of_a_round: (self.noise / 2.0).powi(2),
                rounds: 8,
            };
            (0..self.nights).map(night).collect()
        }

        /// Of so many series, the courses.
        fn courses(&self, count: usize) -> Vec<Course> {
            let (mut draws, mut courses) = (Draws::new(9), Courses::default());
            let mut course = || courses.of(&self.nights(&mut draws), MARGIN);
            (0..count).map(|_| course()).collect()
        }
    }

    /// Steps after the places given, the sets of which hold them.
    fn right(course: &Course, places: &[usize]) -> bool {
        let Course::Stepped(steps) = course else { return false };
        steps.len() == places.len()
            && steps.iter().zip(places).all(|(step, place)| step.places.contains(place))
    }

    #[test]
    fn a_step_is_found_with_its_night_near_either_end_too() {
        for (level, place) in [
            ((|night| if night < 7 { 0.0 } else { 0.207 }) as fn(usize) -> f64, 7),
            (|night| if night < 10 { 0.0 } else { 0.207 }, 10),
            (|night| if night < 2 { 0.0 } else { -0.207 }, 2),
        ] {
            let found = Made { nights: 12, noise: 0.02, level }.courses(60);
            let count = found.iter().filter(|it| right(it, &[place])).count();
            assert!(count >= 57, "{count} of 60 at {place}: {found:?}");
        }
    }

    #[test]
    fn nothing_and_what_is_steady_are_no_steps() {
        let stepped = |it: &&Course| matches!(it, Course::Stepped(_));
        for level in [(|_| 0.0) as fn(usize) -> f64, |night| night as f64 * 0.01] {
            let found = Made { nights: 12, noise: 0.02, level }.courses(120);
            let count = found.iter().filter(stepped).count();
            assert!(count <= 6, "{count} of 120");
        }
        let steep = Made { nights: 12, noise: 0.01, level: |night| night as f64 * 0.03 };
        let found = steep.courses(20);
        assert!(found.iter().all(|it| matches!(it, Course::Steadily(_))), "{found:?}");
    }

    #[test]
    fn the_set_of_nights_is_wide_where_the_change_is_small() {
        let small = Made { nights: 30, noise: 0.03, level: |it| if it < 15 { 0.0 } else { 0.1 } };
        let found = small.courses(40);
        let steps = found.iter().filter_map(|it| match it {
            Course::Stepped(steps) => Some(steps),
            _ => None,
        });
        let sizes: Vec<usize> = steps.flatten().map(|step| step.places.len()).collect();
        assert!(sizes.iter().filter(|it| **it > 1).count() > sizes.len() / 4, "{sizes:?}");
        assert!(sizes.len() >= 25, "{found:?}");
    }

    #[test]
    fn a_night_that_is_badly_known_counts_less() {
        let quiet = Night { value: 0.0, of_a_round: 1e-4, rounds: 12 };
        let mut nights = vec![quiet; 11];
        nights.push(Night { of_a_round: 0.04, rounds: 2, ..quiet });
        let weights = Weighted::of(&nights).weights;
        assert!(weights[11] < 0.3 && weights[0] > 1.0, "{weights:?}");
        assert!((weights.iter().sum::<f64>() - 12.0).abs() < 1e-9);
    }

    #[test]
    fn many_nights_are_held_against_their_own_orders_too() {
        // One night far out would explain much of normal noise.
        let mut values = vec![0.0; 30];
        values.iter_mut().zip(0..).for_each(|(it, place)| *it = f64::from(place * 7 % 5) / 500.0);
        values[28] = 0.4;
        values[29] = 0.3;
        let values = Weighted::alike(values);
        let (stretch, explained) = values.clearest().unwrap();
        assert!([stretch.start, stretch.end].contains(&28), "{stretch:?}");
        assert_eq!(chance_in_any_order(&values, explained), None);
    }

    #[test]
    fn nights_that_are_all_the_same_are_still() {
        let night = Night { value: 0.3, of_a_round: 0.0, rounds: 4 };
        let course = |nights: &[Night]| Courses::default().of(nights, MARGIN);
        assert_eq!(course(&[night; 3]), Course::Still(None));
        let Course::Still(Some(visible)) = course(&[night; 12]) else { panic!() };
        assert!(visible < 1e-6, "{visible}");
        let exact: Vec<Night> =
            (0..12).map(|it| Night { value: f64::from(it / 6), ..night }).collect();
        assert!(right(&course(&exact), &[6]));
    }
}
