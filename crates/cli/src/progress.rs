//! The progress bar of a run: round, contender, step, time gone, time left at most.

use std::time::{Duration, Instant};

use fsverdict_core::model::{Key, Plan, Record};
use indicatif::{ProgressBar, ProgressStyle};

/// The bar. Without a terminal nothing is drawn.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    /// The run's time when the trial began, and when that was.
    before: Duration,
    since: Instant,
    trial: String,
    step: String,
    left_at_most: Option<Duration>,
}

impl Progress {
    /// A bar that counts from now.
    pub fn new() -> Self {
        let bar = ProgressBar::new(1);
        let style = ProgressStyle::with_template("{bar:24} {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Progress {
            bar,
            before: Duration::ZERO,
            since: Instant::now(),
            trial: String::new(),
            step: String::new(),
            left_at_most: None,
        }
    }

    /// The images of the bed are being written.
    pub fn writing(&self, done_bytes: u64, total_bytes: u64) {
        self.bar.set_length(total_bytes);
        self.bar.set_position(done_bytes);
        self.bar.set_message(format!("writing the image, {} MiB", done_bytes >> 20));
    }

    /// A trial begins.
    pub fn trial(&mut self, key: &Key, plan: &Plan, records: &[Record], spent: Duration) {
        let at_most = trials_at_most(plan).map(|at_most| at_most.max(records.len() as u64 + 1));
        self.left_at_most = left_at_most(plan, at_most, records.len() as u64, spent);
        match at_most {
            Some(at_most) => {
                self.bar.set_length(at_most);
                self.bar.set_position(records.len() as u64);
            }
            None => {
                let budget = plan.judgement.budget.map_or(1, |budget| budget.0.as_secs());
                self.bar.set_length(budget);
                self.bar.set_position(spent.as_secs().min(budget));
            }
        }
        let rounds = plan.judgement.rounds().map_or(String::new(), |rounds| format!("/{rounds}"));
        self.trial = format!("round {}{rounds}, {}", key.round, key.contender);
        self.before = spent;
        self.since = Instant::now();
        self.step("");
    }

    /// The trial is at this step.
    pub fn step(&mut self, step: &str) {
        self.step = step.into();
        self.tick();
    }

    /// A moment has passed.
    pub fn tick(&self) {
        let gone = self.since.elapsed();
        let left = match self.left_at_most {
            Some(left) => format!(", {} left at most", clock(left.saturating_sub(gone))),
            None => String::new(),
        };
        let colon = if self.step.is_empty() { "" } else { ": " };
        let (trial, step) = (&self.trial, &self.step);
        let gone = clock(self.before + gone);
        self.bar.set_message(format!("{trial}{colon}{step}, {gone} gone{left}"));
    }

    /// The bar goes away, so that what follows stands alone.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds / 3600 {
        0 => format!("{}:{:02}", seconds / 60, seconds % 60),
        hours => format!("{hours}:{:02}:{:02}", seconds / 60 % 60, seconds % 60),
    }
}

fn trials_at_most(plan: &Plan) -> Option<u64> {
    let rounds = u64::from(plan.judgement.rounds()?);
    let arms: usize = plan.workloads.iter().map(|workload| plan.arms(workload).len()).sum();
    Some(rounds * (plan.contenders.len() * plan.workloads.len() + arms) as u64)
}

/// By the mean trial so far; never more than the budget leaves.
fn left_at_most(
    plan: &Plan,
    trials_at_most: Option<u64>,
    done: u64,
    spent: Duration,
) -> Option<Duration> {
    let of_budget = plan.judgement.budget.map(|budget| budget.0.saturating_sub(spent));
    let of_rounds = match (trials_at_most, u32::try_from(done)) {
        (Some(at_most), Ok(trials)) if trials > 0 => {
            Some(spent / trials * u32::try_from(at_most - done).unwrap_or(u32::MAX))
        }
        _ => None,
    };
    match (of_budget, of_rounds) {
        (Some(budget), Some(rounds)) => Some(budget.min(rounds)),
        (budget, rounds) => budget.or(rounds),
    }
}
