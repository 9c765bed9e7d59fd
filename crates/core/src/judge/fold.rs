//! Records in, one by one; comparisons and findings out, after each.
//!
//! The cost of a record does not grow with the number before it: a [`Fold`] keeps of it what the
//! judge needs again ([`Kept`]), and every course of a comparison continues where it was
//! ([`lane`](super::lane)). At any time the answers are those of all records at once;
//! [`Judge::comparisons`] and [`Judge::findings`] are folds too.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::audit::{Audited, OverRounds};
use super::claims::{self, Undecided};
use super::compare::{Judge, voids};
use super::interval::Course;
use super::kept::{Common, Kept};
use super::lane::{Lane, Medians, Pooling};
use super::pairs::Which;
use super::stopping::FIRST_LOOK;
use super::terms::Side;
use super::unpaired;
use crate::model::claim::Answered;
use crate::model::{Audit, Comparison, Contender, Finding, Record, Verdict, Workload};

/// Up to so many rounds the audits that read all of them do so after each.
const ALWAYS: usize = 16;

/// The judge with the records so far.
#[derive(Debug)]
pub struct Fold<'a> {
    judge: &'a Judge,
    audited: Audited,
    lanes: BTreeMap<Asked, Lane>,
    medians: BTreeMap<Asked, Medians>,
    pooled: BTreeMap<(usize, Which), Pooling>,
    /// By the place of the workload: what the audits that read all rounds last said.
    over_rounds: Vec<Read>,
}

/// Which two are compared, in what, by what rule: workload, metric and contenders by their places.
/// A lane of the plan's comparisons is of all metrics, and stands at the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Asked {
    workload: usize,
    metric: usize,
    pair: [usize; 2],
    by: By,
}

/// By what rule two contenders are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum By {
    /// As a comparison of the plan.
    Plan(Which),
    /// As all pairs of a race.
    Race(Which),
}

/// What the audits that read all rounds said, and of how much.
#[derive(Debug, Default)]
struct Read {
    rounds: usize,
    taken: usize,
    said: OverRounds,
}

/// What is compared.
#[derive(Clone, Copy)]
struct Task<'t> {
    place: usize,
    workload: &'t Workload,
    metric: (usize, &'t str),
    contender: usize,
}

impl Judge {
    /// The comparisons of these records ([`Fold::comparisons`]).
    pub fn comparisons(&self, records: &[Record]) -> Vec<Comparison> {
        Fold::of(self, records).comparisons()
    }

    /// Everything the audits notice in `records`.
    pub fn findings(&self, records: &[Record]) -> Vec<Finding> {
        Fold::of(self, records).findings()
    }
}

impl<'a> Fold<'a> {
    /// Before the first record.
    pub fn new(judge: &'a Judge) -> Fold<'a> {
        let over_rounds = judge.plan().workloads.iter().map(|_| Read::default()).collect();
        Fold {
            judge,
            audited: Audited::new(judge.plan()),
            lanes: BTreeMap::new(),
            medians: BTreeMap::new(),
            pooled: BTreeMap::new(),
            over_rounds,
        }
    }

    /// All of these records.
    pub fn of(judge: &'a Judge, records: &[Record]) -> Fold<'a> {
        let mut fold = Fold::new(judge);
        let mut common = Common::default();
        for (at, record) in records.iter().enumerate() {
            fold.take(&Rc::new(Kept::of(judge.plan(), record, at, &mut common)));
        }
        fold
    }

    /// Takes one more record. Each comes once, in the order in which they were made.
    pub(crate) fn take(&mut self, kept: &Rc<Kept>) {
        self.audited.take(self.judge.plan(), kept);
    }

    /// How many records were taken.
    pub fn taken(&self) -> usize {
        self.audited.taken()
    }

    /// The rounds in which a trial of the workload, by its place in the plan, was void by itself,
    /// in order.
    pub fn void_rounds(&self, workload: usize) -> impl ExactSizeIterator<Item = u32> {
        self.audited.void_rounds(workload).keys().copied()
    }

    /// Each contender but the reference against it, in each primary metric of each workload, in the
    /// order of the plan. All are there from the start: before its first look a comparison is
    /// undecided, before its first round it has no ratio. Where either of the two refuses the timed
    /// part that the metric is of, there is nothing to compare.
    ///
    /// A finding that voids a workload, or one of the two contenders in it, outranks the figures.
    pub fn comparisons(&mut self) -> Vec<Comparison> {
        let judge = self.judge;
        let (plan, reference) = (judge.plan(), judge.plan().reference());
        let findings = self.audited.voiding(plan, judge.duplicate_rules());
        let mut comparisons = Vec::new();
        for (place, workload) in plan.workloads.iter().enumerate() {
            for (number, metric) in workload.primary().iter().enumerate() {
                let phase = workload.phase_of(metric);
                let refuses =
                    |name: &str| self.audited.trials().refuses(&workload.name, name, phase);
                let is_compared =
                    |name: &str| name != reference && !refuses(name) && !refuses(reference);
                let contenders = plan.contenders.iter().enumerate();
                let its: Vec<usize> = contenders
                    .filter(|(_, it)| is_compared(&it.name))
                    .map(|(contender, _)| contender)
                    .collect();
                for contender in its {
                    let task = Task { place, workload, metric: (number, metric), contender };
                    comparisons.push(self.judged(task, &findings));
                }
            }
        }
        comparisons
    }

    /// The plan's claims that are undecided, by these comparisons, which are its own.
    pub fn undecided_claims(&mut self, comparisons: &[Comparison]) -> Vec<Undecided> {
        let judge = self.judge;
        if judge.plan().claims.is_empty() {
            return Vec::new();
        }
        let findings = self.audited.voiding(judge.plan(), judge.duplicate_rules());
        claims::undecided(judge, comparisons, &findings, self.audited.trials())
    }

    /// Every claim of the plan with its answer, in the plan's order. `side` is the run whose
    /// records were all taken; comparisons and findings are its own.
    pub fn claims(
        &self,
        side: Side,
        comparisons: &[Comparison],
        findings: &[Finding],
    ) -> Vec<Answered> {
        claims::claims(self.judge, side, comparisons, findings, self.audited.trials())
    }

    /// One comparison, with what outranks its figures.
    fn judged(&mut self, task: Task, findings: &[Finding]) -> Comparison {
        let mut comparison = self.compare(task);
        let both = [comparison.contender.as_str(), comparison.reference.as_str()];
        if findings.iter().any(|finding| voids(finding, &task.workload.name, both)) {
            comparison.verdict = Verdict::Void;
            comparison.visible = None;
            (comparison.rounds_to_settle, comparison.seconds_to_settle) = (None, None);
        }
        if !comparison.verdict.is_settled() {
            comparison.beaten_by = self.beaten_by(task, findings);
        }
        comparison
    }

    /// One comparison by its figures alone.
    fn compare(&mut self, task: Task) -> Comparison {
        let (judge, reference) = (self.judge, self.judge.reference());
        let Task { workload, metric: (number, metric), contender, place } = task;
        let names = [contender, reference].map(|it| judge.plan().contenders[it].name.as_str());
        let have_zeros = self.have_zeros(task, names);
        let course = match have_zeros {
            true => Course::BEGIN,
            false => self.course_with_again(task),
        };
        let trials = self.audited.trials();
        let (unit, better) = trials.unit_of(&workload.name, metric);
        let by = By::Plan(Which::Latest);
        let asked = Asked { workload: place, metric: number, pair: [contender, reference], by };
        let both = trials.both(&workload.name, metric, names, Which::Latest);
        let is_unpaired = judge.unpaired_alpha(workload).is_some();
        let medians = self.medians.entry(asked).or_default();
        let ([median, reference_median], runs) = match is_unpaired {
            true => {
                let (medians, runs) = unpaired::medians(both);
                (medians, Some(runs))
            }
            false if have_zeros => ([None; 2], None),
            false => (medians.of(both), None),
        };
        let exact = !is_unpaired && course.rounds >= FIRST_LOOK && medians.are_constant();
        let seconds = names.iter().map(|name| trials.seconds_of(&workload.name, name));
        let seconds: Option<f64> = seconds.sum();
        let lane = self.lanes.get(&Asked { metric: 0, ..asked }).filter(|_| !have_zeros);
        let outlying = lane.map_or(Vec::new(), |lane| lane.outlying(number));
        let high = course.interval.high.exp();
        let rounds_to_settle =
            course.rounds_to_settle(judge.margin()).filter(|_| !course.verdict.is_settled());
        let visible = course.visible().filter(|_| course.verdict == Verdict::Undecided);
        Comparison {
            workload: workload.name.clone(),
            metric: metric.into(),
            unit,
            better,
            contender: names[0].into(),
            reference: names[1].into(),
            ratio: (course.rounds > 0).then(|| course.estimate.exp()),
            low: course.interval.low.exp(),
            high: high.is_finite().then_some(high),
            rounds: course.rounds,
            runs,
            verdict: course.verdict,
            median,
            reference_median,
            moved: course.moved,
            sharing: judge.sharing(workload) as u32,
            exact,
            outlying,
            widened: Some(course.widened).filter(|widened| *widened > 1.0),
            visible: visible.map(f64::exp),
            rounds_to_settle,
            seconds_to_settle: rounds_to_settle.and_then(|it| Some(f64::from(it) * seconds?)),
            beaten_by: None,
        }
    }

    /// Figures of the two are zero, so that there is no ratio: rounds without a zero would speak
    /// only for themselves. Files of others have no rounds.
    fn have_zeros(&self, task: Task, names: [&str; 2]) -> bool {
        let both = names.map(|name| (task.workload.name.as_str(), name));
        self.judge.unpaired_alpha(task.workload).is_none()
            && self.audited.trials().have_zeros(task.metric.1, both)
    }

    /// The course of one comparison. Where rounds were run again, what is said has to hold without
    /// that too.
    fn course_with_again(&mut self, task: Task) -> Course {
        let plan = self.judge.plan();
        let trials = self.audited.trials();
        let has_again =
            plan.contenders.iter().any(|it| trials.has_again(&task.workload.name, &it.name));
        let latest = self.course(task, Which::Latest);
        match has_again {
            false => latest,
            true => latest.or(&self.course(task, Which::First), self.judge.margin()),
        }
    }

    /// The course of one comparison by its latest or its first trials.
    fn course(&mut self, task: Task, which: Which) -> Course {
        let (judge, reference) = (self.judge, self.judge.reference());
        let Task { workload, metric: (number, metric), contender, place } = task;
        let pair = [contender, reference];
        let (trials, plan) = (self.audited.trials(), judge.plan());
        if let Some(alpha) = judge.unpaired_alpha(workload) {
            let names = pair.map(|it| plan.contenders[it].name.as_str());
            let both = trials.both(&workload.name, metric, names, which);
            return unpaired::course(both, alpha, judge.margin());
        }
        let metrics = workload.primary();
        let Some(rules) = judge.pooled_rules(workload) else {
            let asked = Asked { workload: place, metric: 0, pair, by: By::Plan(which) };
            let names = pair.map(|it| plan.contenders[it].name.as_str());
            let both = metrics.iter().map(|it| trials.both(&workload.name, it, names, which));
            let both: Vec<_> = both.collect();
            let lane = self.lanes.entry(asked).or_default();
            let rules = judge.rules_of(workload);
            return lane.courses(&both, rules, judge.margin())[number];
        };
        let series = |metric: &String| {
            let of = |it: &Contender| trials.series(&workload.name, metric, &it.name, which);
            plan.contenders.iter().map(of).collect()
        };
        let series: Vec<Vec<_>> = metrics.iter().map(series).collect();
        let pooling = self.pooled.entry((place, which)).or_default();
        pooling.course(&series, number, pair, rules, judge.margin()).unwrap_or(Course::BEGIN)
    }

    /// In a race, who beats the contender at the workload: by more than the margin, in each metric
    /// that is judged.
    ///
    /// The intervals of all pairs hold together, as those of `advise` do: with the declared
    /// confidence nobody is wrongly called beaten. All of several metrics must be won, which takes
    /// no further share of the error. If rounds were run again, it must also hold as if they had
    /// not been.
    fn beaten_by(&mut self, task: Task, findings: &[Finding]) -> Option<String> {
        let (rule, margin) = (self.judge.race_rule()?, self.judge.margin());
        let Task { workload, contender, place, .. } = task;
        let contenders = &self.judge.plan().contenders;
        let metrics = workload.primary();
        let trials = self.audited.trials();
        for (other, it) in contenders.iter().enumerate().filter(|(other, _)| *other != contender) {
            let names = [it.name.as_str(), contenders[contender].name.as_str()];
            let lanes = &mut self.lanes;
            let beats = metrics.iter().enumerate().all(|(metric, name)| {
                if trials.have_zeros(name, names.map(|it| (workload.name.as_str(), it))) {
                    return false;
                }
                let mut course = |which| {
                    let (pair, by) = ([other, contender], By::Race(which));
                    let asked = Asked { workload: place, metric, pair, by };
                    let both = trials.both(&workload.name, name, names, which);
                    lanes.entry(asked).or_default().courses(&[both], rule, margin)[0]
                };
                let [latest, first] = [Which::Latest, Which::First].map(&mut course);
                latest.or(&first, margin).verdict == Verdict::Faster
            });
            if beats && !findings.iter().any(|finding| voids(finding, &workload.name, names)) {
                return Some(it.name.clone());
            }
        }
        None
    }

    /// Everything the audits notice. Some of them read all rounds of a workload: use
    /// [`Fold::findings_meanwhile`] after each round.
    pub fn findings(&mut self) -> Vec<Finding> {
        (0..self.over_rounds.len()).for_each(|workload| self.read_rounds(workload));
        self.all_findings()
    }

    /// What the audits notice while a run goes on: those that read all rounds of a workload do so
    /// after each of the first sixteen, and then whenever a quarter more have come. So they read
    /// each round some five times in a run, however long it is; and findings that can make a
    /// verdict void are always up to date. Too few rounds are reported at the end.
    pub fn findings_meanwhile(&mut self) -> Vec<Finding> {
        for workload in 0..self.over_rounds.len() {
            let rounds = self.rounds(workload);
            if rounds <= ALWAYS || 4 * rounds >= 5 * self.over_rounds[workload].rounds {
                self.read_rounds(workload);
            }
        }
        let mut findings = self.all_findings();
        // Every run has few rounds at first.
        findings.retain(|finding| finding.audit != Audit::A18);
        findings
    }

    fn all_findings(&mut self) -> Vec<Finding> {
        let plan = self.judge.plan();
        let mut findings = self.audited.of_terms(plan);
        findings.extend(self.audited.voiding(plan, self.judge.duplicate_rules()));
        let said = || self.over_rounds.iter().map(|read| &read.said);
        findings.extend(said().flat_map(|said| &said.findings).cloned());
        findings.extend(said().filter_map(|said| said.length.clone()));
        findings
    }

    /// How many rounds hold the most frequent contender of the workload.
    fn rounds(&self, workload: usize) -> usize {
        let plan = self.judge.plan();
        let name = &plan.workloads[workload].name;
        let trials = self.audited.trials();
        let rounds = plan.contenders.iter().map(|it| trials.latest(name, &it.name).len());
        rounds.max().unwrap_or(0)
    }

    /// Has the audits read all rounds of the workload, unless nothing has come since they did.
    fn read_rounds(&mut self, workload: usize) {
        let (rounds, taken) = (self.rounds(workload), self.audited.taken());
        if self.over_rounds[workload].taken == taken {
            return;
        }
        let plan = self.judge.plan();
        let its = &plan.workloads[workload];
        let said = self.audited.over_rounds(plan, its, self.judge.rules_of(its).apart());
        self.over_rounds[workload] = Read { rounds, taken, said };
    }
}
