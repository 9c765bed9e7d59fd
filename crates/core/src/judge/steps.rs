//! What a figure did over nights: it stayed, it changed at once, or it changed steadily.
//!
//! The model: the nights between two changes have one level, about which they scatter
//! ([`nights`](super::nights)).
//!
//! We look for the stretch of nights, perhaps from an end, that stands out most from the others, by
//! the share of the squares that it explains (circular binary segmentation: Olshen and others,
//! Biostatistics 5, 2004). Its chance is that of a stretch as outstanding in normal noise, by
//! simulation; with many nights, also in random orders of them, which costs no power then and holds
//! for any noise.
//!
//! The night that a change came with is given by the posterior over all nights, with flat priors
//! for levels and variance (Smith, Biometrika 62, 1975): the smallest set that holds 95% of it.

use std::collections::BTreeMap;
use std::ops::Range;

use super::nights::{ForSteps, Line, NIGHTS_MIN, Night, SQUARES_MIN, Weighted};
use super::student::{two_sided_quantile, two_sided_tail};
use crate::model::{Draws, median};

/// The chance of a change that is found where there is none.
const LEVEL: f64 = 0.01;

/// The chance of a change that is called steady and came at once, or the other way round.
const KIND_LEVEL: f64 = 0.05;

/// What the sets of nights and the intervals of sizes hold.
const CONFIDENCE: f64 = 0.95;

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
    /// The nights it may have come with, with 95% confidence, in order.
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
    /// By the number of nights: how much the most outstanding stretch of each simulated series
    /// without a change explains, in order.
    still: BTreeMap<usize, Vec<f64>>,
    /// By the number of nights before the last one: how far that is from their middle in one of a
    /// hundred simulated series without a change, in their deviations.
    far: BTreeMap<usize, f64>,
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
        if (found || slopes(&values, line)) && whole.abs() > margin {
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
                let values: Vec<f64> = (0..nights).map(|_| draws.normal()).collect();
                Weighted::alike(&values).clearest().map_or(0.0, |(_, explained)| explained)
            };
            let mut still: Vec<f64> = (0..DRAWS).map(|_| explained()).collect();
            still.sort_by(f64::total_cmp);
            still
        })
    }

    /// How far the last night is from the middle of those before, in ln units, where it stands out:
    /// beyond the margin, and so far as in one of a hundred series without a change. One night is
    /// no change, and two are one.
    pub fn last_stands_out(&mut self, nights: &[Night], margin: f64) -> Option<f64> {
        let (last, before) = nights.split_last()?;
        if before.len() < FEWEST {
            return None;
        }
        let values: Vec<f64> = before.iter().map(|night| night.value).collect();
        let (middle, deviation) = robust(&values);
        // What its own rounds leave open is no more than luck either.
        let own = (last.of_a_round / f64::from(last.rounds)).sqrt();
        let away = last.value - middle;
        let far = self.far(before.len()) * deviation.max(own);
        (away.abs() > margin && away.abs() > far).then_some(away)
    }

    fn far(&mut self, before: usize) -> f64 {
        *self.far.entry(before).or_insert_with(|| {
            let mut draws = Draws::new(before as u64);
            let mut away = || {
                let values: Vec<f64> = (0..before).map(|_| draws.normal()).collect();
                let (middle, deviation) = robust(&values);
                (draws.normal() - middle).abs() / deviation
            };
            let mut all: Vec<f64> = (0..DRAWS).map(|_| away()).collect();
            all.sort_by(f64::total_cmp);
            all[(all.len() as f64 * (1.0 - LEVEL)) as usize]
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

/// The median, and how far values are from it, as a normal standard deviation: by their median
/// too, so that one far out is nothing to either.
fn robust(values: &[f64]) -> (f64, f64) {
    /// A normal standard deviation over the median distance.
    const NORMAL: f64 = 1.482_602;
    let middle = median(values.iter().copied()).unwrap_or(0.0);
    let distance = median(values.iter().map(|value| (value - middle).abs())).unwrap_or(0.0);
    (middle, (NORMAL * distance).max(SQUARES_MIN.sqrt()))
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
        let (size, half_width) = size(&part, place);
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

/// The likeliest places of one change among `values`, with their shares of the posterior, until
/// they hold [`CONFIDENCE`] of it.
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
        let is_open = held < CONFIDENCE;
        held += share;
        is_open
    });
    let needed = needed.count();
    places.truncate(needed);
    places
}

/// In noise a line is seldom as steep.
fn slopes(values: &Weighted, line: Line) -> bool {
    let freedom = (values.len() - 2) as f64;
    let left = values.squares_about(line);
    let t_squared = (values.squares() - left).max(0.0) / (left.max(SQUARES_MIN) / freedom);
    two_sided_tail(t_squared.sqrt(), freedom) < LEVEL
}

/// How much the values from `place` on are above those before, and half the width of its
/// interval.
fn size(values: &Weighted, place: usize) -> (f64, f64) {
    let [one, other] = [0..place, place..values.len()];
    let size = values.mean(&other) - values.mean(&one);
    let freedom = values.len().saturating_sub(2) as f64;
    if freedom < 1.0 {
        return (size, f64::INFINITY);
    }
    let squares = values.squares_of(one.clone()) + values.squares_of(other.clone());
    let error = squares / freedom * (1.0 / values.weight(one) + 1.0 / values.weight(other));
    (size, two_sided_quantile(1.0 - CONFIDENCE, freedom) * error.sqrt())
}

/// Steps and a line as explanations of the same nights: whether either is ruled out by series
/// simulated under it.
struct Kinds<'a> {
    values: &'a Weighted,
    line: Line,
    for_steps: ForSteps,
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

    /// The same for series around `levels`, with as much noise as these leave.
    fn simulated(&self, levels: &[f64]) -> Vec<ForSteps> {
        let values = self.values;
        let left = values.values.iter().zip(levels).zip(&values.weights);
        let left: f64 = left.map(|((value, level), w)| w * (value - level).powi(2)).sum();
        let deviation = (left / (values.len() - 2) as f64).sqrt();
        let mut draws = Draws::new(values.len() as u64);
        let mut simulated = || {
            let night = |(level, w): (&f64, &f64)| level + deviation * draws.normal() / w.sqrt();
            let simulated: Vec<f64> = levels.iter().zip(&values.weights).map(night).collect();
            Weighted::new(&simulated, values.weights.clone()).for_steps()
        };
        (0..KIND_DRAWS).map(|_| simulated()).collect()
    }
}

/// The share of simulated series for which `is` holds, the true one among them.
fn share(simulated: &[ForSteps], is: &dyn Fn(&ForSteps) -> bool) -> f64 {
    let count = simulated.iter().filter(|it| is(it)).count();
    (1 + count) as f64 / (1 + simulated.len()) as f64
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

    /// There is a step for each of `places`, and its set holds that place.
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
    fn many_nights_are_held_against_their_own_orders_too() {
        // One night far out would explain much of normal noise.
        let mut values = vec![0.0; 30];
        values.iter_mut().zip(0..).for_each(|(it, place)| *it = f64::from(place * 7 % 5) / 500.0);
        values[28] = 0.4;
        values[29] = 0.3;
        let values = Weighted::alike(&values);
        let (stretch, explained) = values.clearest().unwrap();
        assert!([stretch.start, stretch.end].contains(&28), "{stretch:?}");
        assert_eq!(chance_in_any_order(&values, explained), None);
    }

    #[test]
    fn a_last_night_stands_out_seldom_by_luck_and_always_by_a_third() {
        let share = |drop: f64, before: usize| {
            let (mut draws, mut courses) = (Draws::new(5), Courses::default());
            let made = Made { nights: before + 1, noise: 0.02, level: |_| 0.0 };
            let mut stands_out = || {
                let mut nights = made.nights(&mut draws);
                nights[before].value -= drop;
                courses.last_stands_out(&nights, 0.0).is_some()
            };
            (0..1000).filter(|_| stands_out()).count()
        };
        assert!(share(0.0, 5) <= 20 && share(0.0, 12) <= 20);
        assert!(share(0.4, 12) >= 990);
        assert_eq!(share(9.0, 3), 0, "too few");
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
