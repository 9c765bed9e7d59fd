//! How the figures of simulated trials scatter, one after the other in time.

use fsverdict_core::model::Draws;

/// A kind of noise of ln(time).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Noise {
    /// Independent and normal.
    Plain,
    /// Normal, on a machine that becomes slower or faster steadily: by two standard deviations
    /// within twenty trials.
    Drift,
    /// Independent, Student's t of three degrees of freedom, scaled to the same deviation.
    HeavyTails,
    /// Normal, and in one trial of twenty something begins that slows it and the next down by four
    /// standard deviations; it ends after each with a chance of a third.
    Bursts,
    /// Normal around two places: three trials of ten are slower by five standard deviations.
    TwoModes,
}

impl Noise {
    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Noise::Plain => "plain",
            Noise::Drift => "drift",
            Noise::HeavyTails => "heavy tails",
            Noise::Bursts => "bursts",
            Noise::TwoModes => "two modes",
        }
    }

    /// The noise of `length` trials in a row, in ln units, with standard deviation `deviation`
    /// before what makes it unpleasant is added.
    pub fn series(self, deviation: f64, length: usize, draws: &mut Draws) -> Vec<f64> {
        let direction = if draws.uniform() < 0.5 { -1.0 } else { 1.0 };
        let mut burst = false;
        let mut next = |place: usize| {
            let normal = draws.normal();
            normal_with(self, normal, direction * place as f64 / 10.0, &mut burst, draws)
        };
        (0..length).map(|place| deviation * next(place)).collect()
    }
}

fn normal_with(
    noise: Noise,
    normal: f64,
    drifted: f64,
    burst: &mut bool,
    draws: &mut Draws,
) -> f64 {
    match noise {
        Noise::Plain => normal,
        Noise::Drift => normal + drifted,
        Noise::HeavyTails => {
            let squares: f64 = (0..3).map(|_| draws.normal().powi(2)).sum();
            // t = z / sqrt(squares / 3), and t of three degrees of freedom has a variance of 3.
            normal / squares.sqrt()
        }
        Noise::Bursts => {
            *burst = draws.uniform() < if *burst { 2.0 / 3.0 } else { 0.05 };
            normal + if *burst { 4.0 } else { 0.0 }
        }
        Noise::TwoModes => normal + if draws.uniform() < 0.3 { 5.0 } else { 0.0 },
    }
}
