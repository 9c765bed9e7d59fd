//! What is known of a run at a moment: the news so far, folded.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fsverdict_core::campaign::{self, Open, Remaining, Tally};
use fsverdict_core::judge::Undecided;
use fsverdict_core::model::{Comparison, Finding, Key, Plan, Record, Run, Verdict};

use super::News;
use super::machine::Machine;
use crate::source::{Judged, Loaded};

/// What is known of a run.
#[derive(Debug)]
pub struct State {
    /// Its facts.
    pub run: Run,
    /// Its plan.
    pub plan: Plan,
    /// Its folder.
    pub folder: PathBuf,
    /// How far the bed's images are written, while they are: bytes done, of so many.
    pub writing: Option<(u64, u64)>,
    /// The trial under way.
    pub trial: Option<UnderWay>,
    /// The verdicts, as of the last look.
    pub comparisons: Vec<Comparison>,
    /// The claims that were undecided at the last look.
    undecided: Vec<Undecided>,
    /// The findings, as of the last look.
    pub findings: Vec<Finding>,
    /// What the last look brought that was not there before.
    pub fresh: Fresh,
    /// Processors and devices.
    pub machine: Machine,
    /// How many records there are.
    pub kept: u32,
    /// The trials, by workload and contender.
    trials: BTreeMap<(String, String), Trials>,
    tally: Tally,
    /// By workload: seconds in trials, and their number.
    walls: BTreeMap<String, (f64, u32)>,
    remaining: Vec<Remaining>,
    left: Left,
    left_since: Instant,
    before: Duration,
    since: Instant,
}

/// The trials of one contender in one workload. A run may have ten thousand.
#[derive(Debug, Default)]
struct Trials {
    /// Whether it was measured, by round; the last one if it was run again.
    measured: BTreeMap<u32, bool>,
    /// How many of these were measured, and how many failed.
    counts: [u32; 2],
}

/// A trial under way.
#[derive(Clone, Debug)]
pub struct UnderWay {
    /// Where it belongs.
    pub key: Key,
    /// The step it is at; empty before the first.
    pub step: String,
    /// When the step began.
    pub step_since: Instant,
}

/// News of a look at the records.
#[derive(Debug, Default)]
pub struct Fresh {
    /// Findings that were not there before, or were less grave.
    pub findings: Vec<Finding>,
    /// Comparisons whose verdict is another.
    pub verdicts: Vec<Comparison>,
}

/// How long the run may still take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Until everything is settled, as it looks now.
    pub likely: Option<Duration>,
    /// At most.
    pub at_most: Option<Duration>,
}

/// How a trial of the grid stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    /// It is under way.
    UnderWay,
    /// It was measured.
    Measured,
    /// It failed.
    Failed,
    /// It may still come.
    ToCome,
    /// It is not needed: the contender is settled or given up.
    Settled,
}

/// The verdict as it is news: what one round shows, void or not, the next may take back.
fn told(comparison: &Comparison) -> Verdict {
    if comparison.rounds < 2 { Verdict::Undecided } else { comparison.verdict }
}

impl State {
    /// A run that begins, or goes on from what was measured.
    pub fn new(folder: &Path, loaded: &Loaded, judged: &Judged) -> State {
        let now = Instant::now();
        let mut state = State {
            run: loaded.run.clone(),
            plan: loaded.plan.clone(),
            folder: folder.into(),
            writing: None,
            trial: None,
            comparisons: Vec::new(),
            undecided: Vec::new(),
            findings: Vec::new(),
            fresh: Fresh::default(),
            machine: Machine::default(),
            kept: 0,
            trials: BTreeMap::new(),
            tally: Tally::default(),
            walls: BTreeMap::new(),
            remaining: Vec::new(),
            left: Left::default(),
            left_since: now,
            before: Duration::from_secs_f64(loaded.run.elapsed_s.max(0.0)),
            since: now,
        };
        loaded.records.iter().for_each(|record| state.count(record));
        state.look(Some(judged));
        state.fresh = Fresh::default();
        state
    }

    /// Takes in what has happened.
    pub fn hear(&mut self, news: &News) {
        self.fresh = Fresh::default();
        match news {
            News::Begun => {}
            News::Writing(done, total) => self.writing = Some((*done, *total)),
            News::Trial(trial) => {
                self.writing = None;
                self.machine.look_at(&trial.bed.devices);
                self.trial = Some(UnderWay {
                    key: trial.key.clone(),
                    step: String::new(),
                    step_since: Instant::now(),
                });
            }
            News::Step(step) => {
                if let Some(trial) = &mut self.trial {
                    trial.step = step.to_string();
                    trial.step_since = Instant::now();
                }
                self.machine.beat();
            }
            News::Tick => self.machine.beat(),
            News::Kept(record, judged) => {
                self.count(record);
                self.trial = None;
                self.look(judged.as_ref());
            }
            News::Ended(_) => self.trial = None,
        }
    }

    fn count(&mut self, record: &Record) {
        self.kept += 1;
        self.tally.take_trial(&record.key, record.is_measured());
        let Key { round, workload, contender } = record.key.clone();
        let Trials { measured, counts } = self.trials.entry((workload, contender)).or_default();
        counts[usize::from(!record.is_measured())] += 1;
        if let Some(before) = measured.insert(round, record.is_measured()) {
            counts[usize::from(!before)] -= 1;
        }
        let (seconds, trials) = self.walls.entry(record.key.workload.clone()).or_default();
        // Those of a duet take their time together.
        let its = self.plan.workloads.iter().find(|it| it.name == record.key.workload);
        let at_once = its.map_or(1, |workload| self.plan.trials_at_once(workload));
        *seconds += record.wall_s() / f64::from(at_once);
        *trials += 1;
    }

    /// Takes in what the judge has seen, if it has looked; and how much is left.
    fn look(&mut self, judged: Option<&Judged>) {
        if let Some(Judged { comparisons, undecided, findings, .. }) = judged {
            let verdicts = comparisons.iter().filter(|it| self.verdict_before(it) != told(it));
            let findings_new = findings.iter().filter(|it| self.is_new(it));
            self.fresh = Fresh {
                findings: findings_new.cloned().collect(),
                verdicts: verdicts.cloned().collect(),
            };
            self.comparisons.clone_from(comparisons);
            self.undecided.clone_from(undecided);
            self.findings.clone_from(findings);
        }
        let open = Open { comparisons: &self.comparisons, claims: &self.undecided };
        self.remaining = campaign::remaining(&self.plan, open, &self.tally);
        self.left = self.left_now();
        self.left_since = Instant::now();
    }

    fn verdict_before(&self, comparison: &Comparison) -> Verdict {
        let same = |it: &&Comparison| {
            (&it.workload, &it.metric, &it.contender)
                == (&comparison.workload, &comparison.metric, &comparison.contender)
        };
        self.comparisons.iter().find(same).map_or(Verdict::Undecided, told)
    }

    /// Whether nothing as grave was found by that audit of the same before.
    fn is_new(&self, finding: &Finding) -> bool {
        let same = |it: &&Finding| {
            (it.audit, &it.workload, &it.contender)
                == (finding.audit, &finding.workload, &finding.contender)
        };
        !self.findings.iter().filter(same).any(|it| it.severity >= finding.severity)
    }

    /// The run's time so far, resumed parts added.
    pub fn gone(&self) -> Duration {
        self.before + self.since.elapsed()
    }

    /// The round under way, or the last one.
    pub fn round(&self) -> u32 {
        let under_way = self.trial.as_ref().map(|trial| trial.key.round);
        let last = |trials: &Trials| trials.measured.keys().next_back().copied();
        under_way.or_else(|| self.trials.values().filter_map(last).max()).unwrap_or(0)
    }

    /// The workload of the trial under way, or the first one that is not settled.
    pub fn workload(&self) -> &str {
        let under_way = self.trial.as_ref().map(|trial| trial.key.workload.as_str());
        let open = || self.remaining.first().map(|it| it.workload.as_str());
        let first = || self.plan.workloads.first().map(|it| it.name.as_str());
        under_way.or_else(open).or_else(first).unwrap_or_default()
    }

    /// Contenders and arms of a workload, in the order of the plan.
    pub fn contenders(&self, workload: &str) -> Vec<String> {
        let arms = self.plan.workloads.iter().find(|it| it.name == workload);
        let arms = arms.map(|it| self.plan.arms(it)).unwrap_or_default();
        let names = self.plan.contenders.iter().chain(&arms);
        names.map(|contender| contender.name.clone()).collect()
    }

    /// How a trial stands.
    pub fn cell(&self, key: &Key) -> Cell {
        let of = (key.workload.clone(), key.contender.clone());
        let measured = self.trials.get(&of).and_then(|trials| trials.measured.get(&key.round));
        match (&self.trial, measured) {
            (Some(trial), _) if trial.key == *key => Cell::UnderWay,
            (_, Some(true)) => Cell::Measured,
            (_, Some(false)) => Cell::Failed,
            _ if key.round < self.round() || self.is_settled(&key.workload, &key.contender) => {
                Cell::Settled
            }
            _ => Cell::ToCome,
        }
    }

    /// No more trials of the contender are needed.
    fn is_settled(&self, workload: &str, contender: &str) -> bool {
        let its = self.remaining.iter().find(|it| it.workload == workload);
        its.is_none_or(|it| !it.contenders.iter().any(|name| name == contender))
    }

    /// How many trials have been kept, by workload and contender: measured and failed ones.
    pub fn counts(&self) -> BTreeMap<(&str, &str), [u32; 2]> {
        self.trials
            .iter()
            .map(|(key, trials)| ((key.0.as_str(), key.1.as_str()), trials.counts))
            .collect()
    }

    /// How many trials there may be in all; `None` where the rounds are not limited.
    pub fn trials_at_most(&self) -> Option<u32> {
        let left: Option<u32> = self.remaining.iter().map(|it| it.trials_at_most).sum();
        left.map(|left| left + self.kept)
    }

    /// How long the run may still take.
    pub fn left(&self) -> Left {
        let passed = self.left_since.elapsed();
        let less = |left: Option<Duration>| left.map(|left| left.saturating_sub(passed));
        Left { likely: less(self.left.likely), at_most: less(self.left.at_most) }
    }

    /// By the mean trial of each workload so far, and what passes around the trials; never more
    /// than the budget leaves.
    fn left_now(&self) -> Left {
        let gone = self.gone();
        let budget = self.plan.judgement.budget.map(|budget| budget.0.saturating_sub(gone));
        let (seconds, trials) =
            self.walls.values().fold((0.0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
        if trials == 0 || seconds <= 0.0 {
            return Left { likely: None, at_most: budget };
        }
        let around = gone.as_secs_f64() / seconds;
        let time = |trials_of: &dyn Fn(&Remaining) -> Option<u32>| -> Option<Duration> {
            let of = |it: &Remaining| {
                let (seconds, trials) =
                    self.walls.get(&it.workload).copied().unwrap_or((seconds, trials));
                Some(f64::from(trials_of(it)?) * seconds / f64::from(trials) * around)
            };
            let left: Option<f64> = self.remaining.iter().map(of).sum();
            left.and_then(|left| Duration::try_from_secs_f64(left).ok())
        };
        let within = |left: Duration| budget.map_or(left, |budget| budget.min(left));
        let likely = time(&|it| it.trials_likely).map(within);
        let at_most = time(&|it| it.trials_at_most).map(within).or(budget);
        Left { likely, at_most }
    }
}

/// A time of the run: `1:05`, `2:00:00`.
pub fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds / 3600 {
        0 => format!("{}:{:02}", seconds / 60, seconds % 60),
        hours => format!("{hours}:{:02}:{:02}", seconds / 60 % 60, seconds % 60),
    }
}

/// The time left, as the end of a line; empty where nothing is known of it.
pub fn left_text(left: Left) -> String {
    let likely = left.likely.map(|left| format!(", about {} to the verdict", clock(left)));
    let at_most = left.at_most.map(|left| format!(", {} left at most", clock(left)));
    likely.into_iter().chain(at_most).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{PLAN, failed, judged, loaded, measured, trial};
    use super::*;

    fn key(round: u32, contender: &str) -> Key {
        Key { round, workload: "work".into(), contender: contender.into() }
    }

    #[test]
    fn the_grid_follows_the_trials() {
        let loaded = loaded(PLAN, Vec::new());
        let mut state = State::new(Path::new("run"), &loaded, &judged(&loaded.plan, &[]));
        assert_eq!(state.cell(&key(1, "b")), Cell::ToCome);
        let (one, other) = (measured(1, "a", 1.0), failed(1, "b"));
        state.hear(&News::Trial(&trial(&loaded.plan, 1, "a")));
        assert_eq!(state.cell(&key(1, "a")), Cell::UnderWay);
        state.hear(&News::Kept(&one, None));
        state.hear(&News::Kept(&other, None));
        assert_eq!(state.cell(&key(1, "a")), Cell::Measured);
        assert_eq!(state.cell(&key(1, "b")), Cell::Failed);
        assert_eq!(state.cell(&key(2, "b")), Cell::ToCome);
        assert_eq!(state.counts()[&("work", "b")], [0, 1]);
    }

    #[test]
    fn a_look_tells_what_is_new_once() {
        let records: Vec<Record> = (1..=6)
            .flat_map(|round| [measured(round, "a", 2.0), measured(round, "b", 1.0)])
            .collect();
        let loaded = loaded(PLAN, Vec::new());
        let mut state = State::new(Path::new("run"), &loaded, &judged(&loaded.plan, &[]));
        state.hear(&News::Kept(records.last().unwrap(), Some(judged(&loaded.plan, &records))));
        assert_eq!(state.fresh.verdicts[0].verdict, Verdict::Faster);
        assert_eq!(state.cell(&key(7, "b")), Cell::Settled);
        assert_eq!(state.cell(&key(7, "a")), Cell::Settled, "the reference is not needed either");
        state.hear(&News::Kept(records.last().unwrap(), Some(judged(&loaded.plan, &records))));
        assert!(state.fresh.verdicts.is_empty() && state.fresh.findings.is_empty());
    }

    #[test]
    fn the_time_left_is_that_of_the_trials_left() {
        let plan = format!("{PLAN}[judgement]\nrounds = 8\n");
        let records: Vec<Record> =
            (1..=2).flat_map(|round| ["a", "b"].map(|name| measured(round, name, 1.0))).collect();
        let mut loaded = loaded(&plan, records);
        // Four trials of a second each took eight: a second of each passes around it.
        loaded.run.elapsed_s = 8.0;
        let state = State::new(Path::new("run"), &loaded, &judged(&loaded.plan, &[]));
        let left = state.left().at_most.unwrap();
        assert!((23..=25).contains(&left.as_secs()), "12 trials are left: {left:?}");
        assert_eq!(state.trials_at_most(), Some(16));
        loaded.plan.judgement.budget = Some("20s".parse().unwrap());
        let state = State::new(Path::new("run"), &loaded, &judged(&loaded.plan, &[]));
        assert!(state.left().at_most <= Some(Duration::from_secs(12)));
    }

    #[test]
    fn times_are_short() {
        assert_eq!(clock(Duration::from_secs(65)), "1:05");
        assert_eq!(clock(Duration::from_secs(7200)), "2:00:00");
        let left = Left { likely: Some(Duration::from_secs(9)), at_most: None };
        assert_eq!(left_text(left), ", about 0:09 to the verdict");
    }
}
