//! Many runs over time.

use serde::Serialize;

use super::{Better, Difference, Place, Unit, Verdict};

/// Runs in the order of time, and what each figure did over them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct History {
    /// The runs.
    pub runs: Vec<Past>,
    /// The figures: one series for each that is the same work on the same bed all along.
    pub series: Vec<Series>,
    /// Where the runs are of several machines: what these say together of each figure.
    pub fleets: Vec<Fleet>,
}

/// One of the runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Past {
    /// Its name.
    pub run: String,
    /// When it began: RFC 3339, UTC.
    pub started: String,
    /// Its machine's kernel, where it is known.
    pub kernel: Option<String>,
    /// Its machine's processor, where it is known.
    pub processor: Option<String>,
    /// The version of fsverdict.
    pub program_version: String,
    /// Who ran the trials.
    pub place: Place,
    /// What has changed of machine, tools and version since the run before on that machine.
    pub differences: Vec<Difference>,
}

/// One metric of one contender over the runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// The workload's name.
    pub workload: String,
    /// The metric's name.
    pub metric: String,
    /// The metric's unit.
    pub unit: Unit,
    /// Which direction of the metric is better; every ratio is of goodness all the same.
    pub better: Better,
    /// The contender.
    pub contender: String,
    /// What it was compared with in each run; itself for the reference's own figures.
    pub reference: String,
    /// Which of several that share these names and the machine and are of other work, settings or
    /// beds, or count CPU time in another way, from 1.
    pub variant: u32,
    /// The machine, where the runs are of several.
    pub machine: Option<String>,
    /// The runs that hold it, in order of time.
    pub points: Vec<Point>,
    /// How many of them say nothing: they are void, or have a 0 and so no ratio.
    pub silent: u32,
    /// The runs since its first whose plans have it, and that did not measure it: the contender
    /// failed. Places in [`History::runs`].
    pub gaps: Vec<usize>,
    /// If no change is known and the last run stands out more than runs without a change usually
    /// do: how many times as good it is as the middle of those before. One run is no change.
    pub stands_out: Option<f64>,
    /// The runs with which it changed.
    pub shifts: Vec<Shift>,
    /// Where it did not change at once but steadily: goodness in the last run over that in the
    /// first, along the trend.
    pub trend: Option<f64>,
    /// The same where it changed, and at once or steadily can't be told.
    pub unclear: Option<f64>,
    /// Where nothing shows: a change so many times would have been found in four cases of five,
    /// halfway; `None` also among too few runs for any.
    pub visible: Option<f64>,
}

impl Series {
    /// It is the reference's own: nothing divides out what the machine was like.
    pub fn is_of_reference(&self) -> bool {
        self.contender == self.reference
    }

    /// It changed, at once or steadily.
    pub fn has_changed(&self) -> bool {
        !self.shifts.is_empty() || self.trend.is_some() || self.unclear.is_some()
    }

    /// The runs at the end that did not measure it.
    pub fn gone_for(&self) -> usize {
        let last = self.points.last().map_or(0, |point| point.run);
        self.gaps.iter().filter(|run| **run > last).count()
    }
}

/// What one run says of a series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// The run's place in [`History::runs`], from 0.
    pub run: usize,
    /// Median of the raw values, in the series' unit.
    pub median: f64,
    /// Goodness over the reference's; `None` for the reference itself.
    pub ratio: Option<f64>,
    /// Lower end of the interval of `ratio`; 0 while it is unbounded.
    pub low: f64,
    /// Upper end of the interval of `ratio`; `None` while it is unbounded.
    pub high: Option<f64>,
    /// Rounds that hold it.
    pub rounds: u32,
    /// The verdict; `None` for the reference itself.
    pub verdict: Option<Verdict>,
}

/// A change that stays.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shift {
    /// The first run after it, by its place in [`History::runs`]: the likeliest.
    pub run: usize,
    /// The runs it may have come with, with 95% confidence, in order of time.
    pub runs: Vec<usize>,
    /// Goodness after over before, each the mean of the runs up to the next shift: below 1, it
    /// has become worse.
    pub ratio: f64,
    /// Lower end of the 95% interval of `ratio`.
    pub low: f64,
    /// Its upper end; `None` while it is unbounded.
    pub high: Option<f64>,
    /// The runs before it, up to the shift before.
    pub runs_before: u32,
    /// The runs since, up to the next shift.
    pub runs_after: u32,
    /// The chance of runs that stand out as much where nothing changed.
    pub chance: f64,
    /// What else changed with it: kernel, tools, versions. If it may have come with several runs,
    /// what changed with each of them.
    pub differences: Vec<Difference>,
}

/// One metric of one contender on several machines, each with a level of its own, day by day.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fleet {
    /// The workload's name.
    pub workload: String,
    /// The metric's name.
    pub metric: String,
    /// The contender.
    pub contender: String,
    /// What it was compared with in each run; itself for the reference's own figures.
    pub reference: String,
    /// The machines.
    pub machines: Vec<String>,
    /// The days that any of them has, in order.
    pub days: Vec<String>,
    /// The days with which it changed.
    pub changes: Vec<FleetChange>,
    /// As of a [`Series`].
    pub trend: Option<f64>,
    /// As of a [`Series`].
    pub unclear: Option<f64>,
    /// As of a [`Series`].
    pub visible: Option<f64>,
}

/// A change that several machines have together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FleetChange {
    /// The first day after it: the likeliest.
    pub day: String,
    /// The days it may have come on, with 95% confidence.
    pub days: Vec<String>,
    /// Goodness after over before: the mean for all machines, of which these are a sample.
    pub ratio: f64,
    /// Lower end of the 95% interval of `ratio`.
    pub low: f64,
    /// Its upper end; `None` where fewer than two machines tell.
    pub high: Option<f64>,
    /// The machines that tell: with two runs on either side.
    pub machines: u32,
    /// How far machines differ in it: the standard deviation of ln(ratio), as a factor.
    pub spread: f64,
    /// The chance of days that stand out as much where nothing changed.
    pub chance: f64,
}
