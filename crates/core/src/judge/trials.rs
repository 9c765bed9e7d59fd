//! The trials of a run as the judge keeps them, by workload and contender.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::kept::Kept;
use super::pairs::{Figure, NO_UNIT, Series, Which};
use crate::model::{Better, Phase, Unit};

/// The trials of a run.
#[derive(Debug, Default)]
pub struct Trials {
    works: BTreeMap<Rc<str>, Work>,
}

/// Those of one workload.
#[derive(Debug, Default)]
struct Work {
    /// What the metrics count, by the first record that has each.
    units: BTreeMap<Rc<str>, (Unit, Better)>,
    cells: BTreeMap<Rc<str>, Cell>,
}

/// Those of one contender in one workload.
#[derive(Debug, Default)]
struct Cell {
    /// The complete trials, by round; if some were run again, the latest.
    latest: BTreeMap<u32, Rc<Kept>>,
    /// By metric the figures of the latest trials, and those of the first where they are others.
    series: BTreeMap<Rc<str>, (Series, Option<Series>)>,
    /// By metric the rounds in which the latest figure is zero, which has no logarithm.
    zeros: BTreeMap<Rc<str>, BTreeSet<u32>>,
    /// Some trial that ran whole was run again.
    has_again: bool,
    /// The timed parts that were refused.
    refused: Vec<Phase>,
    /// How many ran whole, and what these took.
    took: (u64, u64),
}

/// None.
const NO_TRIALS: &BTreeMap<u32, Rc<Kept>> = &BTreeMap::new();

impl Trials {
    /// Takes one more trial; gives the one of the same round that it stands for from now on.
    pub fn take(&mut self, kept: &Rc<Kept>) -> Option<Rc<Kept>> {
        let work = self.works.entry(Rc::clone(&kept.workload)).or_default();
        for figure in kept.figures() {
            let unit = (figure.unit, figure.better);
            work.units.entry(Rc::clone(&figure.metric)).or_insert(unit);
        }
        work.cells.entry(Rc::clone(&kept.contender)).or_default().take(kept)
    }

    fn cell(&self, workload: &str, contender: &str) -> Option<&Cell> {
        self.works.get(workload)?.cells.get(contender)
    }

    /// The trials of one contender in one workload that ran whole, by round; where one was run
    /// again the later one counts.
    pub fn latest(&self, workload: &str, contender: &str) -> &BTreeMap<u32, Rc<Kept>> {
        self.cell(workload, contender).map_or(NO_TRIALS, |cell| &cell.latest)
    }

    /// The figures of one contender's metric. Where a later trial of a round lacks the figure, the
    /// one before it counts.
    pub fn series(&self, workload: &str, metric: &str, contender: &str, which: Which) -> &Series {
        let its = self.cell(workload, contender).and_then(|cell| cell.series.get(metric));
        match (its, which) {
            (None, _) => Series::EMPTY,
            (Some((_, Some(first))), Which::First) => first,
            (Some((latest, _)), _) => latest,
        }
    }

    /// Both contenders' figures.
    pub fn both(
        &self,
        workload: &str,
        metric: &str,
        names: [&str; 2],
        which: Which,
    ) -> [&Series; 2] {
        names.map(|name| self.series(workload, metric, name, which))
    }

    /// The differences of ln(goodness) of two contenders, round by round.
    pub fn differences(&self, workload: &str, metric: &str, names: [&str; 2]) -> Vec<f64> {
        let [one, other] = self.both(workload, metric, names, Which::Latest);
        one.pairs(other, ..).map(|pair| pair.difference).collect()
    }

    /// Whether in some round that holds figures of both one of them is zero: there is no ratio
    /// then, and the other rounds do not speak for all.
    pub fn have_zeros(&self, metric: &str, both: [(&str, &str); 2]) -> bool {
        let cells = both.map(|(workload, name)| self.cell(workload, name));
        let [Some(one), Some(other)] = cells else { return false };
        let beside = |one: &Cell, other: &Cell| {
            let zeros = one.zeros.get(metric).into_iter().flatten();
            zeros.into_iter().any(|round| other.has(metric, *round))
        };
        beside(one, other) || beside(other, one)
    }

    /// Some trial of the contender in the workload was run again.
    pub fn has_again(&self, workload: &str, contender: &str) -> bool {
        self.cell(workload, contender).is_some_and(|cell| cell.has_again)
    }

    /// Some trial of the contender in the workload was refused that timed part.
    pub fn refuses(&self, workload: &str, contender: &str, phase: Phase) -> bool {
        self.cell(workload, contender).is_some_and(|cell| cell.refused.contains(&phase))
    }

    /// What a trial of the contender in the workload takes on average, in seconds.
    pub fn seconds_of(&self, workload: &str, contender: &str) -> Option<f64> {
        let (trials, took_ns) = self.cell(workload, contender)?.took;
        (took_ns > 0).then(|| took_ns as f64 / trials as f64 / 1e9)
    }

    /// What the metric counts, by the first record that has it; a bare number where none has.
    pub fn unit_of(&self, workload: &str, metric: &str) -> (Unit, Better) {
        let unit = self.works.get(workload).and_then(|work| work.units.get(metric));
        unit.copied().unwrap_or(NO_UNIT)
    }
}

impl Cell {
    /// The round has a figure, be it zero.
    fn has(&self, metric: &str, round: u32) -> bool {
        self.zeros.get(metric).is_some_and(|zeros| zeros.contains(&round))
            || self.series.get(metric).is_some_and(|(latest, _)| latest.get(round).is_some())
    }

    fn take(&mut self, kept: &Rc<Kept>) -> Option<Rc<Kept>> {
        for phase in &kept.refused {
            if !self.refused.contains(phase) {
                self.refused.push(*phase);
            }
        }
        if !kept.is_measured {
            return None;
        }
        self.took = (self.took.0 + 1, self.took.1.saturating_add(kept.took_ns));
        let round = kept.round;
        let before = self.latest.insert(round, Rc::clone(kept));
        self.has_again |= before.is_some();
        for asked in kept.figures() {
            let zeros = self.zeros.entry(Rc::clone(&asked.metric)).or_default();
            match asked.value == 0.0 {
                true => zeros.insert(round),
                false => zeros.remove(&round),
            };
            let Some(goodness) = asked.goodness else { continue };
            let figure = Figure { value: asked.value, goodness };
            let (latest, first) = self.series.entry(Rc::clone(&asked.metric)).or_default();
            if before.is_some() {
                first.get_or_insert_with(|| latest.clone());
            } else if let Some(first) = first {
                first.put(round, figure);
            }
            latest.put(round, figure);
        }
        before
    }
}
