//! Figures of real trials, to draw campaigns from.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::Read;

use fsverdict_core::model::Draws;

/// Fewer trials than this show nothing of their distribution.
const FEWEST: usize = 8;

/// ln(figure) of the trials of one contender in one metric, about their mean.
pub type Pool = Vec<f64>;

/// The pools in `samples.csv` files one after the other: each rate and time of work that was
/// measured in eight trials or more. Contenders of different runs are kept apart by the order in
/// which their trials appear.
pub fn pools(samples: impl Read) -> Result<Vec<Pool>, Box<dyn Error>> {
    let mut reader = csv::Reader::from_reader(samples);
    let mut figures: BTreeMap<(u32, String, String), Vec<f64>> = BTreeMap::new();
    let mut run = 0;
    for row in reader.records() {
        let row = row?;
        let field = |place: usize| row.get(place).unwrap_or_default().to_string();
        if field(0) == "trial" {
            run += 1;
            continue;
        }
        let (contender, metric) = (format!("{} {}", field(3), field(4)), field(6));
        let judged = ["iops", "wall_time"].contains(&metric.as_str()) || metric.ends_with("_rate");
        let value: f64 = field(7).parse()?;
        if judged && value > 0.0 {
            figures.entry((run, contender, metric)).or_default().push(value.ln());
        }
    }
    let centred = |values: Vec<f64>| {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        values.into_iter().map(|value| value - mean).collect()
    };
    let pools: Vec<Pool> =
        figures.into_values().filter(|values| values.len() >= FEWEST).map(centred).collect();
    match pools.is_empty() {
        true => Err(format!("no metric was recorded in {FEWEST} trials or more").into()),
        false => Ok(pools),
    }
}

/// A series of `length` trials, each drawn from the pool anew.
pub fn series(pool: &Pool, length: usize, draws: &mut Draws) -> Vec<f64> {
    (0..length).map(|_| pool[draws.below(pool.len())]).collect()
}
