//! A run beside an earlier one.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::claim::{Answer, Answered};
use super::{Better, Comparison, Contender, Finding, Percent, Plan, Unit, Verdict, Workload};

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
    /// So many figures it would have been.
    #[serde(default)]
    pub figures: u32,
    /// The baseline judged it: what disappears is nothing that was found to be as good as before.
    #[serde(default)]
    pub lost: bool,
    /// Why, as the end of a sentence.
    pub why: String,
}

/// On what other terms contenders were measured that both runs hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OtherTerms {
    /// In the run, and not in the baseline.
    pub now: Vec<Finding>,
    /// In the baseline, and not in the run.
    pub before: Vec<Finding>,
}

/// What makes a change void.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Voided {
    /// It is the run that measured something else; otherwise the baseline did.
    pub by_run: bool,
    /// What was noticed.
    pub finding: Finding,
}

/// What a gate makes of a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gate {
    /// The exit status.
    pub status: u8,
    /// What shuts it, as it was asked for: `slower`, `failed`.
    pub on: Vec<String>,
    /// What shut it, each as a sentence without its end; none where it is open.
    pub fails: Vec<String>,
}

/// A contender that could not be measured: the gate has to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotMeasured {
    /// The workload.
    pub workload: String,
    /// The contender.
    pub contender: String,
    /// What was wrong, as the end of a sentence.
    pub why: String,
}

/// What two runs say of a claim in the baseline's plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClaimChange {
    /// The claim, in its own words.
    pub text: String,
    /// What the baseline says of it.
    pub baseline: Answer,
    /// What the run says of it.
    pub run: Answer,
    /// The run refutes it, and the baseline did not.
    pub refuted: bool,
    /// The run neither shows nor refutes it, and the baseline did.
    pub unanswered: bool,
    /// Why the run says so.
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
    /// Why it is void, if it is; `None` in one run, whose own report says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voided: Option<Voided>,
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
            voided: None,
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
    /// What a gate makes of it, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<Gate>,
    /// What to know before anything else: sentences.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Contenders on other terms than before.
    #[serde(default)]
    pub terms: OtherTerms,
    /// What is not the same for both.
    pub differences: Vec<Difference>,
    /// Contenders that failed, or have too few rounds.
    #[serde(default)]
    pub not_measured: Vec<NotMeasured>,
    /// What could not be compared.
    pub left_out: Vec<NotCompared>,
    /// What the reference itself took; nothing in one run.
    #[serde(default)]
    pub references: Vec<ReferenceChange>,
    /// What both say of the claims in the baseline's plan; nothing in one run.
    #[serde(default)]
    pub claims: Vec<ClaimChange>,
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
    #[error("no run measured {metric:?}: {meant}")]
    Metric { metric: String, meant: String },
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

impl ClaimChange {
    /// The change of one claim, as both answer it.
    pub fn of(baseline: &Answered, run: Answered) -> ClaimChange {
        ClaimChange {
            baseline: baseline.answer,
            run: run.answer,
            refuted: run.is_refuted() && !baseline.is_refuted(),
            unanswered: run.is_unanswered() && !baseline.is_unanswered(),
            why: run.why,
            text: run.claim.text,
        }
    }

    /// The run says something else of it: another answer, or of its size.
    pub fn is_news(&self) -> bool {
        self.baseline != self.run || self.refuted || self.unanswered
    }
}

impl Change {
    /// Both runs have the rounds that an interval takes.
    pub fn has_interval(&self) -> bool {
        self.high.is_some()
    }

    /// Its interval rules out a regression of that size.
    pub fn excludes(&self, regression: Percent) -> bool {
        self.verdict != Verdict::Void && self.low > 1.0 / (1.0 + regression.0)
    }

    /// It is void, though the baseline was not.
    pub fn is_lost(&self) -> bool {
        self.voided.as_ref().is_some_and(|it| it.by_run)
    }

    /// How many times as good the contender itself is as before, whatever the reference did. That
    /// is no verdict: the hour is in it.
    pub fn of_itself(&self) -> Option<f64> {
        let [before, now] = self.medians?;
        self.better.ratio(now, before)
    }
}

impl Across {
    /// Names what changed: runs measured apart know a contender only relative to the reference.
    pub fn whose(&self, change: &Change) -> String {
        match self.measured {
            Measured::Apart => format!("relative to {}, {}", change.reference, change.contender),
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

    /// How many times as good as before the reference and the contender are, each by itself, where
    /// it is the reference that moved: beyond the margin, and the contender not the way that the
    /// change has.
    pub fn moved_instead(&self, change: &Change) -> Option<[f64; 2]> {
        let margin = self.margin.0.ln_1p();
        let is_its = |it: &&ReferenceChange| {
            (&it.workload, &it.metric) == (&change.workload, &change.metric)
        };
        let reference = self.references.iter().find(is_its)?.ratio?;
        let own = change.of_itself()?;
        // In the direction of the change.
        let way = match change.verdict {
            verdict if verdict.is_worse() => -1.0,
            verdict if verdict.is_better() => 1.0,
            _ => return None,
        };
        let is_so = -way * reference.ln() > margin && way * own.ln() < margin;
        is_so.then_some([reference, own])
    }

    /// A regression would probably have been overlooked, and nothing rules one out.
    pub fn is_blind(&self, change: &Change) -> bool {
        change.verdict == Verdict::Undecided
            && change.missed.is_some_and(|chance| chance > 0.5)
            && !change.excludes(self.regression)
    }

    /// What was compared, by these.
    pub fn count(&self, is: impl Fn(&Change) -> bool) -> usize {
        self.changes.iter().filter(|it| is(it)).count()
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

    /// This plan, judged as `baseline` declares it: otherwise an author who changes the margin, or
    /// the judged figures, together with the settings would judge their own change.
    #[must_use]
    pub fn judged_as(&self, baseline: &Plan) -> Plan {
        let mut plan = self.clone();
        let Plan { judgement, .. } = baseline;
        plan.judgement.margin = judgement.margin;
        plan.judgement.confidence = judgement.confidence;
        plan.judgement.family = judgement.family;
        let reference = baseline.reference();
        if self.reference() != reference && self.has_same(baseline, reference) {
            plan.judgement.reference = Some(reference.into());
        }
        for workload in &mut plan.workloads {
            let is_its = |it: &&Workload| it.is_same_work(workload);
            if let Some(before) = baseline.workloads.iter().find(is_its) {
                workload.primary.clone_from(&before.primary);
            }
        }
        plan
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

impl Workload {
    /// It is the same work, though perhaps another figure of it is judged.
    pub fn is_same_work(&self, other: &Workload) -> bool {
        self.alone() == other.alone()
    }

    /// What is done, without what is judged of it and what must be there for it.
    pub fn alone(&self) -> Workload {
        let (primary, needs, reads) = Default::default();
        Workload { primary, needs, reads, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_must_be_there_for_work_and_what_is_judged_make_it_no_other() {
        let work = Workload { name: "w".into(), operations: Some(9), ..Workload::default() };
        let (needs, reads) = (vec!["tar".into()], vec!["/srv/tree".into()]);
        let primary = vec!["wall_time".into()];
        let elsewhere = Workload { needs, reads, primary, ..work.clone() };
        assert!(work.is_same_work(&elsewhere));
        assert!(!work.is_same_work(&Workload { operations: Some(8), ..elsewhere }));
    }

    fn plan(mkfs: &str) -> Plan {
        let text = format!(
            "[[contender]]\nname = \"a\"\nfile_system = \"ext4\"\n[[contender]]\nname = \"b\"\n\
             file_system = \"xfs\"\nmkfs = [{mkfs}]\n[[workload]]\nname = \"w\"\ncommand = \"x\"\n"
        );
        Plan::parse(&text).unwrap()
    }

    #[test]
    fn who_changes_the_margin_is_judged_by_the_one_before() {
        let judged = |margin: &str, primary: &str| {
            let text = "[[contender]]\nname = \"a\"\n[[workload]]\nname = \"w\"\ncommand = \"x\"\n";
            let text = format!("{text}primary = [{primary}]\n[judgement]\nmargin = \"{margin}\"");
            Plan::parse(&text).unwrap()
        };
        let (before, now) = (judged("5%", "\"wall_time\""), judged("50%", "\"cpu_time\""));
        assert_eq!(now.judged_as(&before), before);
        let mut other = now.clone();
        other.workloads[0].name = "v".into();
        assert_eq!(other.judged_as(&before).workloads, other.workloads, "of other work, its own");
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
