//! Nights of several machines as one: what all of them say of a figure together.
//!
//! Each machine has a level of its own, and each day one that all have in common: value = machine +
//! day + noise, by least squares (two-way analysis of variance without interaction). The days are
//! then judged like the nights of one machine, by [`steps`](super::steps). That needs machines with
//! common days, however indirectly: machines that no day links have no common scale.
//!
//! How large a change is may differ between machines. Each machine's own is one draw from all
//! machines there might be: random effects (DerSimonian and Laird, Controlled Clinical Trials 7,
//! 1986), with the interval of Hartung and Knapp (Statistics in Medicine 20, 2001), which allows
//! for how little few machines tell of their spread, and is never narrower than without it (Roever,
//! Knapp and Friede, BMC Medical Research Methodology 15, 2015).

use super::nights::Night;
use super::student::two_sided_quantile;

/// Rounds of the fit; each brings it closer by a factor.
const FITS: usize = 500;

/// A night of one of the machines.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// The machine, by its place.
    pub machine: usize,
    /// The day, by its place.
    pub day: usize,
    /// What it says.
    pub night: Night,
}

/// What all machines say of each day, about the mean of all. `None` where they are not linked by
/// days that they have in common.
pub fn days(seen: &[Seen], machines: usize, days: usize) -> Option<Vec<Night>> {
    if !are_linked(seen, machines) {
        return None;
    }
    let mut levels = vec![0.0; machines];
    let mut values = vec![0.0; days];
    for _ in 0..FITS {
        values = means(days, seen.iter().map(|it| (it.day, it.night.value - levels[it.machine])));
        levels =
            means(machines, seen.iter().map(|it| (it.machine, it.night.value - values[it.day])));
    }
    let variances = means(days, seen.iter().map(|it| (it.day, it.night.of_a_round)));
    let night = |(day, (value, of_a_round))| Night {
        value,
        of_a_round,
        rounds: seen.iter().filter(|it| it.day == day).map(|it| it.night.rounds).sum(),
    };
    Some(values.into_iter().zip(variances).enumerate().map(night).collect())
}

/// The mean for each of so many places.
fn means(places: usize, values: impl Iterator<Item = (usize, f64)>) -> Vec<f64> {
    let mut sums = vec![(0.0, 0.0); places];
    for (place, value) in values {
        sums[place] = (sums[place].0 + value, sums[place].1 + 1.0);
    }
    sums.into_iter().map(|(sum, count): (f64, f64)| sum / count.max(1.0)).collect()
}

/// From the first machine all others are reached by days in common.
fn are_linked(seen: &[Seen], machines: usize) -> bool {
    let mut reached = vec![false; machines];
    if let Some(first) = reached.first_mut() {
        *first = true;
    }
    for _ in 0..machines {
        let days: Vec<usize> =
            seen.iter().filter(|it| reached[it.machine]).map(|it| it.day).collect();
        for it in seen.iter().filter(|it| days.contains(&it.day)) {
            reached[it.machine] = true;
        }
    }
    reached.into_iter().all(|it| it)
}

/// A change as one machine has it, with the variance of that.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect {
    /// In ln units.
    pub size: f64,
    /// Its squared standard error.
    pub variance: f64,
}

/// A change as each machine has it that has two nights on either side of `place`, a day.
pub fn effects(seen: &[Seen], machines: usize, place: usize) -> Vec<Effect> {
    let of = |machine: usize| {
        let its = seen.iter().filter(|it| it.machine == machine);
        let (before, after): (Vec<&Seen>, Vec<&Seen>) = its.partition(|it| it.day < place);
        let sides = [before, after].map(|side| side.iter().map(|it| it.night.value).collect());
        effect(&sides)
    };
    (0..machines).filter_map(of).collect()
}

fn effect(sides: &[Vec<f64>; 2]) -> Option<Effect> {
    if sides.iter().any(|side| side.len() < 2) {
        return None;
    }
    let counts = sides.each_ref().map(|side| side.len() as f64);
    let means = sides.each_ref().map(|side| side.iter().sum::<f64>() / side.len() as f64);
    let about = |(side, mean): (&Vec<f64>, f64)| -> f64 {
        side.iter().map(|value| (value - mean).powi(2)).sum()
    };
    let squares: f64 = sides.iter().zip(means).map(about).sum();
    let of_a_night = squares / (counts[0] + counts[1] - 2.0);
    let variance = of_a_night * (1.0 / counts[0] + 1.0 / counts[1]);
    Some(Effect { size: means[1] - means[0], variance: variance.max(1e-18) })
}

/// What the machines' changes are together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Together {
    /// In ln units.
    pub size: f64,
    /// Half the width of the 95% interval; infinite where a single machine tells.
    pub half_width: f64,
    /// The standard deviation between machines.
    pub between: f64,
}

/// The mean for all machines, of which these are a sample. `None` for none.
pub fn together(effects: &[Effect]) -> Option<Together> {
    let freedom = effects.len().checked_sub(1)? as f64;
    let weighted = |between: f64| {
        let weights: Vec<f64> = effects.iter().map(|it| 1.0 / (it.variance + between)).collect();
        let sum: f64 = weights.iter().sum();
        let size = effects.iter().zip(&weights).map(|(it, w)| w * it.size).sum::<f64>() / sum;
        let spread = effects.iter().zip(&weights).map(|(it, w)| w * (it.size - size).powi(2));
        let squares: f64 = weights.iter().map(|w| w * w).sum();
        (size, spread.sum::<f64>(), sum, squares)
    };
    let (size, spread, sum, squares) = weighted(0.0);
    if freedom < 1.0 {
        return Some(Together { size, half_width: f64::INFINITY, between: 0.0 });
    }
    let between = ((spread - freedom) / (sum - squares / sum)).max(0.0);
    let (size, spread, sum, _) = weighted(between);
    let error = ((spread / freedom).max(1.0) / sum).sqrt();
    let half_width = two_sided_quantile(0.05, freedom) * error;
    Some(Together { size, half_width, between: between.sqrt() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Draws;

    fn seen(machine: usize, day: usize, value: f64) -> Seen {
        Seen { machine, day, night: Night { value, of_a_round: 1e-4, rounds: 4 } }
    }

    #[test]
    fn levels_of_machines_are_no_change_even_where_days_are_missing() {
        let level = [0.0, 0.5, -0.3];
        let step = |day: usize| if day < 7 { 0.0 } else { -0.2 };
        let has = |machine: usize, day: usize| match machine {
            0 => true,
            1 => day < 9,
            _ => day > 4,
        };
        let all = (0..3).flat_map(|machine| (0..12).map(move |day| (machine, day)));
        let its = all.filter(|&(machine, day)| has(machine, day));
        let its: Vec<Seen> = its.map(|(m, day)| seen(m, day, level[m] + step(day))).collect();
        let days = days(&its, 3, 12).unwrap();
        for day in 1..12 {
            let moved = days[day].value - days[day - 1].value;
            let truth = step(day) - step(day - 1);
            assert!((moved - truth).abs() < 1e-6, "{day}: {moved}");
        }
        assert_eq!((days[0].rounds, days[8].rounds), (8, 12));
        let effects = effects(&its, 3, 7);
        assert!(effects.iter().all(|it| (it.size + 0.2).abs() < 1e-9), "{effects:?}");
    }

    #[test]
    fn machines_without_a_day_in_common_are_not_one_series() {
        let one_after_the_other = [seen(0, 0, 1.0), seen(0, 1, 1.0), seen(1, 2, 2.0)];
        assert!(days(&one_after_the_other, 2, 3).is_none());
    }

    /// By hand: Q is 2, so that the variance between is 0.01, each weight 50, and the error 0.1.
    #[test]
    fn two_machines_are_known_with_one_degree_of_freedom() {
        let of = |size: f64| Effect { size, variance: 0.01 };
        let found = together(&[of(0.1), of(0.3)]).unwrap();
        assert!((found.size - 0.2).abs() < 1e-12 && (found.between - 0.1).abs() < 1e-12);
        assert!((found.half_width - 1.2706).abs() < 1e-4, "{found:?}");
        assert_eq!(together(&[]), None);
        assert_eq!(together(&[of(0.1)]).unwrap().half_width, f64::INFINITY);
    }

    #[test]
    fn the_interval_holds_the_mean_of_all_machines_as_often_as_it_says() {
        let mut draws = Draws::new(4);
        let mut held = 0;
        for _ in 0..1000 {
            let effects: Vec<Effect> = (0..4)
                .map(|_| Effect {
                    size: 0.1 * draws.normal() + 0.05 * draws.normal(),
                    variance: 0.0025,
                })
                .collect();
            let found = together(&effects).unwrap();
            held += u32::from(found.size.abs() < found.half_width);
        }
        assert!(held > 930, "{held} of 1000");
    }
}
