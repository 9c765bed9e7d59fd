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
    /// Normal, and one trial of twenty stalls: it is slower by ten standard deviations.
    Stalls,
    /// Normal, each contender's of a round being this share of its noise of the round before, and
    /// what is new: AR(1), of one variance throughout.
    Remembering(f64),
}

impl Noise {
    /// Its name in the table.
    pub fn name(self) -> String {
        match self {
            Noise::Plain => "plain".into(),
            Noise::Drift => "drift".into(),
            Noise::HeavyTails => "heavy tails".into(),
            Noise::Bursts => "bursts".into(),
            Noise::TwoModes => "two modes".into(),
            Noise::Stalls => "stalls".into(),
            Noise::Remembering(share) => format!("remembers {share}"),
        }
    }

    /// It is of each contender's own rounds: all of the first one's, then all of the other's.
    pub fn is_by_contender(self) -> bool {
        matches!(self, Noise::Remembering(_))
    }

    /// The noise of `length` trials in a row, in ln units, with standard deviation `deviation`
    /// before what makes it unpleasant is added.
    pub fn series(self, deviation: f64, length: usize, draws: &mut Draws) -> Vec<f64> {
        if let Noise::Remembering(share) = self {
            let half = || remembering(share, length / 2, draws);
            let both: Vec<f64> = std::iter::repeat_with(half).take(2).flatten().collect();
            return both.into_iter().map(|noise| deviation * noise).collect();
        }
        let direction = if draws.uniform() < 0.5 { -1.0 } else { 1.0 };
        let mut burst = false;
        let mut next = |place: usize| {
            let normal = draws.normal();
            normal_with(self, normal, direction * place as f64 / 10.0, &mut burst, draws)
        };
        (0..length).map(|place| deviation * next(place)).collect()
    }
}

/// AR(1) from its stationary state, with a variance of 1.
fn remembering(share: f64, length: usize, draws: &mut Draws) -> Vec<f64> {
    let mut noise = draws.normal();
    let mut next = || {
        let now = noise;
        noise = share * noise + (1.0 - share * share).sqrt() * draws.normal();
        now
    };
    (0..length).map(|_| next()).collect()
}

fn normal_with(
    noise: Noise,
    normal: f64,
    drifted: f64,
    burst: &mut bool,
    draws: &mut Draws,
) -> f64 {
    match noise {
        // The second is made by rounds, above.
        Noise::Plain | Noise::Remembering(_) => normal,
        Noise::Stalls => normal + if draws.uniform() < 0.05 { 10.0 } else { 0.0 },
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
