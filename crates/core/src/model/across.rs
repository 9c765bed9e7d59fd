//! A run beside an earlier one.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{Better, Comparison, Contender, Percent, Plan, Unit, Verdict};

/// What the baseline's contender is called where both are measured anew, before its own name.
pub const BASELINE: &str = "baseline:";

/// Something that is not the same for both runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// What: `kernel`, `xfs: mkfs`.
    pub what: String,
    /// How it was for the baseline; `None` where there was no such thing.
    pub baseline: Option<String>,
    /// How it was for the run.
    pub run: Option<String>,
}

/// What could not be compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotCompared {
    /// The workload.
    pub workload: String,
    /// The contender; `None`: all of them.
    pub contender: Option<String>,
    /// The metric; `None`: all of them.
    pub metric: Option<String>,
    /// Why, as the end of a sentence.
    pub why: String,
}

/// Who could not be measured, as the gate has to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotMeasured {
    /// The workload.
    pub workload: String,
    /// The contender.
    pub contender: String,
    /// What was wrong, as the end of a sentence.
    pub why: String,
}

/// What the reference itself took in two runs. That is no verdict: the hour is in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReferenceChange {
    /// The workload's name.
    pub workload: String,
    /// The metric's name.
    pub metric: String,
    /// The metric's unit.
    pub unit: Unit,
    /// Which way is better.
    pub better: Better,
    /// The reference.
    pub reference: String,
    /// Median of the raw values in the baseline.
    pub baseline: f64,
    /// Median of the raw values in the run.
    pub run: f64,
    /// Goodness in the run over that in the baseline.
    pub ratio: Option<f64>,
}

/// How one contender has changed in one metric of one workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
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
    /// What it was compared with in each of two runs; its own baseline in one run.
    pub reference: String,
    /// Medians of the contender's own raw values in the baseline and in the run; `None` in one run.
    #[serde(default)]
    pub medians: Option<[f64; 2]>,
    /// Goodness of the contender over the reference in the baseline; `None` in one run.
    pub baseline_ratio: Option<f64>,
    /// Goodness of the contender over the reference in the run.
    pub run_ratio: Option<f64>,
    /// Now over before: below 1, it has become worse. `None` before the first round that holds
    /// both.
    pub ratio: Option<f64>,
    /// Lower end of the interval of `ratio`; 0 while it is unbounded.
    pub low: f64,
    /// Upper end of the interval of `ratio`; `None` while it is unbounded.
    pub high: Option<f64>,
    /// The interval is that of two one-sided tests, which say *equivalent*: it misses twice as
    /// often as the others, on one side or the other.
    #[serde(default)]
    pub is_one_sided: bool,
    /// Rounds of the baseline that count.
    pub baseline_rounds: u32,
    /// Rounds of the run that count.
    pub rounds: u32,
    /// So many changes share the error, this one counted.
    #[serde(default)]
    pub sharing: u32,
    /// The verdict on the change.
    pub verdict: Verdict,
    /// The chance that two such runs don't show a regression of [`Across::regression`] to be one of
    /// more than the margin. `None` in one run.
    #[serde(default)]
    pub missed: Option<f64>,
    /// Where the verdict is open: rounds that each run would need to be called equivalent in four
    /// cases of five, if nothing has changed.
    #[serde(default)]
    pub rounds_needed: Option<u32>,
    /// The effect moved during one of the runs, so that the change holds with a reservation.
    pub moved: bool,
}

impl From<&Comparison> for Change {
    /// The change that a run of both shows.
    fn from(compared: &Comparison) -> Change {
        Change {
            workload: compared.workload.clone(),
            metric: compared.metric.clone(),
            unit: compared.unit,
            better: compared.better,
            contender: compared.contender.clone(),
            reference: compared.reference.clone(),
            medians: None,
            baseline_ratio: None,
            run_ratio: compared.ratio,
            ratio: compared.ratio,
            low: compared.low,
            high: compared.high,
            is_one_sided: false,
            baseline_rounds: compared.rounds,
            rounds: compared.rounds,
            sharing: compared.sharing,
            verdict: compared.verdict,
            missed: None,
            rounds_needed: None,
            moved: compared.moved,
        }
    }
}

/// How the two sides were measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measured {
    /// Each in a run of its own: only ratios to a reference that both hold are compared.
    Apart,
    /// Anew, in interleaved rounds.
    Together,
}

/// A run against its baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Across {
    /// Name of the baseline.
    pub baseline: String,
    /// Name of the run.
    pub run: String,
    /// How they were measured.
    pub measured: Measured,
    /// Differences smaller than this are trivial.
    pub margin: Percent,
    /// The smallest regression that had better be found.
    pub regression: Percent,
    /// Chance that all intervals of a workload hold.
    pub confidence: Percent,
    /// What is not the same for both.
    pub differences: Vec<Difference>,
    /// Who failed, or has too few rounds.
    #[serde(default)]
    pub not_measured: Vec<NotMeasured>,
    /// What could not be compared.
    pub left_out: Vec<NotCompared>,
    /// What the reference itself took; nothing in one run.
    #[serde(default)]
    pub references: Vec<ReferenceChange>,
    /// What was compared.
    pub changes: Vec<Change>,
}

/// Two runs that can't be compared, and what to do about it.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Incomparable {
    #[error(
        "the runs are not alike: {what} is {baseline} in the baseline and {run} in the run; \
         {remedy}"
    )]
    Unlike { what: String, baseline: String, run: String, remedy: &'static str },
    #[error(
        "the runs are of two machines: {what} is {baseline} in the baseline and {run} in the run; \
         give --across-machines where that is meant, or --rerun"
    )]
    Machines { what: String, baseline: String, run: String },
    #[error(
        "the baseline has no contender {reference:?} with the run's settings, so the two runs have \
         no reference in common; run both with the same --reference, or give --rerun"
    )]
    Reference { reference: String },
    #[error("the runs have no contender of the same name")]
    NoContender,
    #[error("{}", nothing(left_out))]
    Nothing { left_out: Vec<NotCompared> },
}

fn nothing(left_out: &[NotCompared]) -> String {
    let mut text = "nothing can be compared".to_string();
    for left_out in left_out {
        text += &format!("\n  {left_out}");
    }
    text + "\nrun the baseline's plan again (fsverdict run BASELINE/plan.toml), or give --rerun"
}

impl fmt::Display for NotMeasured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NotMeasured { workload, contender, why } = self;
        write!(f, "{workload}, {contender}: {why}")
    }
}

impl fmt::Display for NotCompared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.workload)?;
        for part in [&self.contender, &self.metric].into_iter().flatten() {
            write!(f, ", {part}")?;
        }
        write!(f, ": {}", self.why)
    }
}

impl Across {
    /// Of whom a change is told: runs apart know a contender beside the reference alone.
    pub fn whose(&self, change: &Change) -> String {
        match self.measured {
            Measured::Apart => format!("beside {}, {}", change.reference, change.contender),
            Measured::Together => change.contender.clone(),
        }
    }

    /// Where the reference itself moved beyond the margin: others then differ from before beside
    /// it, and may be what they were.
    pub fn references_moved(&self) -> impl Iterator<Item = &ReferenceChange> {
        let margin = self.margin.0.ln_1p();
        let moved = move |it: &&ReferenceChange| it.ratio.is_some_and(|it| it.ln().abs() > margin);
        self.references.iter().filter(moved)
    }
}

impl Plan {
    /// The contenders that this plan and `baseline` both name, those with other settings only
    /// where there are any: the others would be compared with themselves.
    pub fn changed_since(&self, baseline: &Plan) -> Vec<&Contender> {
        let known = |it: &&Contender| baseline.contender(&it.name).is_some();
        let shared: Vec<&Contender> = self.contenders.iter().filter(known).collect();
        let changed = |it: &&Contender| !self.has_same(baseline, &it.name);
        match shared.iter().any(&changed) {
            true => shared.into_iter().filter(changed).collect(),
            false => shared,
        }
    }

    /// Both plans hold the contender of that name, with the same settings.
    pub fn has_same(&self, other: &Plan, name: &str) -> bool {
        self.contender(name).is_some()
            && self.contender(name) == other.contender(name)
            && self.simulated_speed(name) == other.simulated_speed(name)
    }

    fn simulated_speed(&self, name: &str) -> Option<f64> {
        self.sim.as_ref()?.speed.get(name).copied()
    }

    /// This plan with nothing but the contender `name` and what it was in `baseline`, which is the
    /// reference. `sharing` such runs share the error.
    pub fn against_baseline(&self, baseline: &Plan, name: &str, sharing: usize) -> Option<Plan> {
        let before =
            Contender { name: format!("{BASELINE}{name}"), ..baseline.contender(name)?.clone() };
        let mut plan = self.clone();
        plan.contenders = vec![before, self.contender(name)?.clone()];
        let before = &plan.contenders[0].name;
        plan.judgement.reference = Some(before.clone());
        let error = (1.0 - plan.judgement.confidence.0) / sharing as f64;
        plan.judgement.confidence = Percent(1.0 - error);
        plan.study = None;
        plan.published.clear();
        plan.claims.clear();
        if let (Some(sim), Some(speed)) = (&mut plan.sim, baseline.simulated_speed(name)) {
            sim.speed.insert(before.clone(), speed);
        }
        Some(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(mkfs: &str) -> Plan {
        let text = format!(
            "[[contender]]\nname = \"a\"\nfile_system = \"ext4\"\n[[contender]]\nname = \"b\"\n\
             file_system = \"xfs\"\nmkfs = [{mkfs}]\n[[workload]]\nname = \"w\"\ncommand = \"x\"\n"
        );
        Plan::parse(&text).unwrap()
    }

    #[test]
    fn what_has_changed_is_measured_against_what_it_was() {
        let (before, now) = (plan(""), plan("\"-f\""));
        let names = |it: Vec<&Contender>| it.iter().map(|c| c.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(now.changed_since(&before)), ["b"]);
        assert_eq!(names(now.changed_since(&now)), ["a", "b"]);
        let rerun = now.against_baseline(&before, "b", 2).unwrap();
        rerun.check().unwrap();
        assert_eq!(rerun.reference(), "baseline:b");
        assert_eq!(rerun.contenders[0].mkfs, [""; 0]);
        assert_eq!(rerun.contenders[1], now.contenders[1]);
        assert!((rerun.judgement.confidence.0 - 0.975).abs() < 1e-12);
        assert_eq!(now.against_baseline(&before, "c", 1), None);
        let many = now.against_baseline(&before, "b", 100).unwrap();
        assert!(
            (many.judgement.confidence.0 - 0.9995).abs() < 1e-12,
            "none has more than its share"
        );
        many.check().unwrap();
        let too_many = now.against_baseline(&before, "b", 10_000).unwrap();
        assert!(too_many.check().unwrap_err().to_string().contains("99.999%"));
    }
}
