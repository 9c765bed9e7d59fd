//! Which column of a CSV holds what.

use csv::StringRecord;

use super::error::{TableError, wrong};
use super::{figure, heading};
use crate::model::{Column, Quantity};

const CONTENDER: [&str; 4] = ["contender", "file_system", "filesystem", "fs"];
const TEST: [&str; 5] = ["test", "workload", "command", "job", "benchmark"];
const ROUND: [&str; 7] = ["round", "run", "repetition", "rep", "iteration", "pass", "trial"];
/// What says nothing of the work.
const SIDE: [&str; 4] = ["position", "seed", "order", "timestamp"];
/// Parameters of the job, by fio's name and others'.
const PARAMETERS: [(&str, &[&str]); 8] = [
    ("bs", &["bs", "block_size", "blocksize"]),
    ("numjobs", &["jobs", "numjobs", "threads"]),
    ("iodepth", &["depth", "iodepth", "queue_depth"]),
    ("ioengine", &["engine", "ioengine"]),
    ("direct", &["direct"]),
    ("rw", &["rw", "mode"]),
    ("size", &["size"]),
    ("end_fsync", &["end_fsync", "fsync"]),
];

/// Columns that somebody names, where the CSV's own names don't tell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Columns {
    /// The one with the contender.
    pub contender: Option<String>,
    /// The one with the round.
    pub round: Option<String>,
    /// Those that are judged.
    pub metrics: Vec<String>,
}

/// Which column holds what, by their numbers.
#[derive(Debug, Default)]
pub struct Places {
    pub contender: Option<usize>,
    pub test: Option<usize>,
    pub round: Option<usize>,
    pub runs: Option<usize>,
    /// With a row for each figure: its metric, value, unit and direction.
    pub long: Option<Long>,
    pub parameters: Vec<(usize, &'static str)>,
    pub figures: Vec<(usize, Column)>,
    /// What was taken for what, and why.
    pub taken: Vec<(String, String)>,
}

/// A row for each figure.
#[derive(Clone, Copy, Debug)]
pub struct Long {
    pub metric: usize,
    pub value: usize,
    pub unit: Option<usize>,
    pub better: Option<usize>,
}

impl Places {
    /// Those of `header`; `named` gives the heading that a name stands for.
    pub fn of(
        header: &StringRecord,
        rows: &[StringRecord],
        columns: &Columns,
        named: impl Fn(&str) -> String,
    ) -> Result<Places, TableError> {
        let lower: Vec<String> = header.iter().map(str::to_lowercase).collect();
        let find =
            |names: &[&str]| names.iter().find_map(|name| lower.iter().position(|it| it == name));
        let mut places = Places {
            test: find(&TEST),
            runs: find(&["runs"]),
            long: long(&find),
            ..Places::default()
        };
        let parameters = PARAMETERS.iter();
        places.parameters =
            parameters.filter_map(|(option, names)| Some((find(names)?, *option))).collect();
        places.round = places.chosen(header, "round", columns.round.as_deref(), find(&ROUND))?;
        let by_name = find(&CONTENDER);
        let contender = columns.contender.as_deref();
        places.contender = places.chosen(header, "contender", contender, by_name)?;
        if places.contender.is_none() {
            places.contender = places.only_text(header, rows);
        }
        for metric in &columns.metrics {
            if places.long.is_none() {
                position(header, "metric", metric)?;
            }
        }
        let others = header.iter().enumerate().filter(|(place, _)| !places.knows(*place));
        let others = others.filter(|(place, _)| !SIDE.contains(&lower[*place].as_str()));
        places.figures = others.map(|(at, name)| (at, heading::column(&named(name)))).collect();
        Ok(places)
    }

    /// Some column is a figure, or could be one of some contender.
    pub fn has_figures(&self, columns: &Columns) -> bool {
        let known = self.figures.iter().any(|(_, column)| column.quantity != Quantity::Other);
        known || self.long.is_some() || !columns.metrics.is_empty() || self.contender.is_some()
    }

    fn knows(&self, place: usize) -> bool {
        let long = self.long.map(|it| [Some(it.metric), Some(it.value), it.unit, it.better]);
        let own = [self.contender, self.test, self.round, self.runs];
        own.contains(&Some(place))
            || long.is_some_and(|long| long.contains(&Some(place)))
            || self.parameters.iter().any(|(other, _)| *other == place)
    }

    /// The column that is named, else the one that is found by its name.
    fn chosen(
        &mut self,
        header: &StringRecord,
        what: &str,
        named: Option<&str>,
        found: Option<usize>,
    ) -> Result<Option<usize>, TableError> {
        let (place, why) = match named {
            Some(name) => (Some(position(header, what, name)?), "as asked"),
            None => (found, "by its name"),
        };
        if let Some(name) = place.and_then(|at| header.get(at)) {
            self.taken.push((what.into(), format!("column {name}, {why}")));
        }
        Ok(place)
    }

    /// The one column whose texts are no figures and come more than once: the contenders.
    fn only_text(&mut self, header: &StringRecord, rows: &[StringRecord]) -> Option<usize> {
        let is_names = |place: &usize| {
            let mut texts: Vec<&str> = rows.iter().filter_map(|row| row.get(*place)).collect();
            let is_text = texts.iter().all(|it| !it.is_empty() && figure::printed(it).is_none());
            texts.sort_unstable();
            texts.dedup();
            is_text && texts.len() > 1 && texts.len() * 2 <= rows.len()
        };
        let mut found = (0..header.len()).filter(|it| !self.knows(*it)).filter(is_names);
        let (Some(place), None) = (found.next(), found.next()) else { return None };
        let name = header.get(place).unwrap_or_default();
        let why = "the only one whose names repeat";
        self.taken.push(("contender".into(), format!("column {name}, {why}")));
        Some(place)
    }
}

fn long(find: &dyn Fn(&[&str]) -> Option<usize>) -> Option<Long> {
    let (metric, value) = (find(&["metric"])?, find(&["value"])?);
    Some(Long { metric, value, unit: find(&["unit"]), better: find(&["better"]) })
}

fn position(header: &StringRecord, what: &str, name: &str) -> Result<usize, TableError> {
    let place = header.iter().position(|it| it == name);
    let names = || header.iter().collect::<Vec<_>>().join(", ");
    place.ok_or_else(|| wrong(format!("no column {name:?} for the {what}: there are {}", names())))
}
