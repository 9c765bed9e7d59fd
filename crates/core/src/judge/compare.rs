//! Records in, comparisons out.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{
    Arm, Better, Comparison, Family, Finding, Plan, Record, Sample, Severity, Unit, Verdict,
    Workload, median,
};

use super::audit;
use super::interval::Course;
use super::stopping::Rule;

/// The judge of one plan: made once, asked after every round.
///
/// It holds the stopping rules, which take part of a second to make and depend on nothing that is
/// measured.
#[derive(Clone, Debug)]
pub struct Judge {
    plan: Plan,
    /// Differences of ln(goodness) smaller than this are trivial.
    margin: f64,
    /// By the number of comparisons that share the error.
    rules: BTreeMap<usize, Rule>,
    /// Of the duplicate, by the number of metrics that share its error.
    duplicate_rules: BTreeMap<usize, Rule>,
}

impl Judge {
    /// The judge of `plan`, which has been checked.
    pub fn new(plan: &Plan) -> Judge {
        let mut rules = BTreeMap::new();
        for workload in &plan.workloads {
            let sharing = sharing(plan, workload);
            rules.entry(sharing).or_insert_with(|| rule(plan, alpha(plan) / sharing as f64));
        }
        let margin = plan.judgement.margin.0.ln_1p();
        Judge { plan: plan.clone(), margin, rules, duplicate_rules: duplicate_rules(plan) }
    }

    /// The rounds, each with a workload's name, in which a trial was void by itself.
    pub fn void_rounds(&self, records: &[Record]) -> BTreeSet<(u32, String)> {
        audit::void_rounds(&self.plan, records)
    }

    /// Everything the audits notice in `records`.
    pub fn findings(&self, records: &[Record]) -> Vec<Finding> {
        let device = |workload: &Workload| &self.rules[&sharing(&self.plan, workload)];
        let rules = audit::Rules { duplicate: &self.duplicate_rules, device: &device };
        audit::findings(&self.plan, &rules, records)
    }

    /// Each contender but the reference against it, in each primary metric of each workload, in the
    /// order of the plan. All are there from the start: before its first look a comparison is
    /// undecided, before its first round it has no ratio. Where either of the two refuses the timed
    /// part that the metric is of, there is nothing to compare.
    ///
    /// A finding that voids a workload, or one of the two contenders in it, outranks the figures.
    pub fn comparisons(&self, records: &[Record]) -> Vec<Comparison> {
        let findings = audit::voiding(&self.plan, &self.duplicate_rules, records);
        let reference = self.plan.reference();
        let mut comparisons = Vec::new();
        for workload in &self.plan.workloads {
            for metric in workload.primary() {
                let phase = workload.phase_of(&metric);
                let refuses = |contender: &str| {
                    let mut its = records.iter().filter(|record| {
                        record.key.workload == workload.name && record.key.contender == contender
                    });
                    its.any(|record| record.refuses(phase))
                };
                let others = self.plan.contenders.iter().filter(|c| c.name != reference);
                for contender in others.filter(|c| !refuses(&c.name) && !refuses(reference)) {
                    let mut comparison = self.compare(workload, &metric, &contender.name, records);
                    let both = [contender.name.as_str(), reference];
                    if findings.iter().any(|finding| voids(finding, &workload.name, both)) {
                        comparison.verdict = Verdict::Void;
                        comparison.visible = None;
                    }
                    comparisons.push(comparison);
                }
            }
        }
        comparisons
    }

    /// How many verdicts the run carries, and how many false ones to expect at most: each family
    /// has the declared chance to hold any.
    pub fn expected_false(&self) -> (usize, f64) {
        let verdicts =
            self.plan.workloads.iter().map(|work| comparisons_of(&self.plan, work)).sum();
        let families = match self.plan.judgement.family {
            Family::Workload => self.plan.workloads.len(),
            Family::Run => 1,
        };
        (verdicts, families as f64 * alpha(&self.plan))
    }

    fn compare(
        &self,
        workload: &Workload,
        metric: &str,
        contender: &str,
        records: &[Record],
    ) -> Comparison {
        let reference = self.plan.reference();
        let figures = pairs(records, &workload.name, metric, contender, reference);
        let differences: Vec<f64> = figures.iter().map(|pair| pair.difference).collect();
        let rule = &self.rules[&sharing(&self.plan, workload)];
        let course = Course::of(&differences, rule, self.margin);
        // Where rounds were run again, what is said has to hold without that too.
        let course = match first_trials(records) {
            None => course,
            Some(first) => {
                let first = pairs(&first, &workload.name, metric, contender, reference);
                let differences: Vec<f64> = first.iter().map(|pair| pair.difference).collect();
                course.or(&Course::of(&differences, rule, self.margin), self.margin)
            }
        };
        let (unit, better) = unit_of(records, &workload.name, metric);
        let high = course.interval.high.exp();
        let visible = course.visible().filter(|_| course.verdict == Verdict::Undecided);
        Comparison {
            workload: workload.name.clone(),
            metric: metric.into(),
            unit,
            better,
            contender: contender.into(),
            reference: reference.into(),
            ratio: (course.rounds > 0).then(|| course.estimate.exp()),
            low: course.interval.low.exp(),
            high: high.is_finite().then_some(high),
            rounds: course.rounds,
            verdict: course.verdict,
            median: median(figures.iter().map(|pair| pair.contender)),
            reference_median: median(figures.iter().map(|pair| pair.reference)),
            moved: course.moved,
            visible: visible.map(f64::exp),
        }
    }
}

/// The rule by which the plan's rounds are looked at, for that chance of ever missing the truth.
pub(super) fn rule(plan: &Plan, alpha: f64) -> Rule {
    match plan.judgement.rounds() {
        Some(rounds) => Rule::capped(alpha, rounds),
        None => Rule::open_ended(alpha),
    }
}

/// What makes workloads of `plan` void, for those who do not need its verdicts.
pub(super) fn void(plan: &Plan, records: &[Record]) -> Vec<Finding> {
    audit::voiding(plan, &duplicate_rules(plan), records)
}

/// The rules for the duplicate, by the number of metrics that share its error.
fn duplicate_rules(plan: &Plan) -> BTreeMap<usize, Rule> {
    let mut rules = BTreeMap::new();
    let workloads = plan.workloads.iter();
    for workload in workloads.filter(|_| plan.judgement.arms.contains(&Arm::Duplicate)) {
        let metrics = workload.primary().len();
        let alpha = audit::DUPLICATE_ALPHA / metrics as f64;
        rules.entry(metrics).or_insert_with(|| rule(plan, alpha));
    }
    rules
}

/// The chance that a family holds a false verdict.
pub(super) fn alpha(plan: &Plan) -> f64 {
    1.0 - plan.judgement.confidence.0
}

/// The primary comparisons of one workload.
fn comparisons_of(plan: &Plan, workload: &Workload) -> usize {
    (plan.contenders.len() - 1) * workload.primary().len()
}

/// How many comparisons share the error with one of `workload`, itself counted.
fn sharing(plan: &Plan, workload: &Workload) -> usize {
    match plan.judgement.family {
        Family::Workload => comparisons_of(plan, workload),
        Family::Run => plan.workloads.iter().map(|work| comparisons_of(plan, work)).sum(),
    }
}

/// Whether `finding` takes the ground from a comparison of two contenders in a workload.
pub(super) fn voids(finding: &Finding, workload: &str, contenders: [&str; 2]) -> bool {
    let covers = |finding: &Option<String>, name| finding.as_ref().is_none_or(|it| it == name);
    finding.severity == Severity::Void
        && covers(&finding.workload, workload)
        && contenders.iter().any(|name| covers(&finding.contender, name))
}

/// One round in which both were measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pair {
    /// The contender's raw value.
    contender: f64,
    /// The reference's raw value.
    reference: f64,
    /// ln(goodness) of the contender less that of the reference.
    pub(super) difference: f64,
}

/// The rounds that hold a figure of `metric` of both, in order. Where a trial was run again the
/// later record counts.
pub(super) fn pairs(
    records: &[Record],
    workload: &str,
    metric: &str,
    contender: &str,
    reference: &str,
) -> Vec<Pair> {
    let figures = |name: &str| -> BTreeMap<u32, (f64, f64)> {
        let of_it = |record: &&Record| {
            record.is_measured() && record.key.workload == workload && record.key.contender == name
        };
        let figure = |record: &Record| {
            let sample = record.sample(metric)?;
            Some((record.key.round, (sample.value, sample.goodness()?)))
        };
        records.iter().filter(of_it).filter_map(figure).collect()
    };
    let references = figures(reference);
    let pair = |(round, (contender, goodness)): (u32, (f64, f64))| {
        let &(reference, reference_goodness) = references.get(&round)?;
        Some(Pair { contender, reference, difference: goodness - reference_goodness })
    };
    figures(contender).into_iter().filter_map(pair).collect()
}

/// The records without the trials that were run again; `None` where none was.
fn first_trials(records: &[Record]) -> Option<Vec<Record>> {
    let mut seen = BTreeSet::new();
    let mut first: Vec<&Record> = records.iter().collect();
    first.retain(|record| !record.is_measured() || seen.insert(&record.key));
    (first.len() < records.len()).then(|| first.into_iter().cloned().collect())
}

/// What the metric counts, by the first record that has it; a bare number where none has.
pub(super) fn unit_of(records: &[Record], workload: &str, metric: &str) -> (Unit, Better) {
    let mut of_it = records.iter().filter(|record| record.key.workload == workload);
    let known = |sample: &Sample| (sample.unit, sample.better);
    let unknown = (Unit::Ratio, Better::Higher);
    of_it.find_map(|record| record.sample(metric)).map_or(unknown, known)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::{plan, record};
    use super::*;
    use crate::model::{MetadataOperation, Phase, Refused};

    const PLAN: &str = r#"
        [[contender]]
        name = "a"
        [[contender]]
        name = "b"
        [[contender]]
        name = "c"
        [[workload]]
        name = "unpack"
        command = "tar xf source.tar"
        cache = "warm"
        [[workload]]
        name = "write"
        fio = { rw = "randwrite" }
        primary = ["iops", "cpu_per_operation"]
        cache = "warm"
    "#;

    fn timed(round: u32, contender: &str, seconds: f64) -> Record {
        let samples = vec![Sample::lower("wall_time", seconds, Unit::Seconds)];
        Record { samples, ..record(round, "unpack", contender) }
    }

    /// Twelve rounds with some noise; b takes `times` of a's time.
    fn rounds(times: f64) -> Vec<Record> {
        (1..=12)
            .flat_map(|round| {
                let noise = 1.0 + f64::from(round * 7 % 5) / 1000.0;
                [timed(round, "a", 2.0), timed(round, "b", 2.0 * times * noise)]
            })
            .collect()
    }

    #[test]
    fn what_either_of_two_refuses_is_not_compared() {
        let text = PLAN.replace("command = \"tar xf source.tar\"", "metadata = {}");
        let plan = plan(&text);
        let judge = Judge::new(&plan);
        let compared = |refusing: &str| {
            let phase = Phase::Metadata(MetadataOperation::Setxattr);
            let refused = vec![Refused { phase, why: "no".into() }];
            let records = [Record { refused, ..record(1, "unpack", refusing) }];
            let its = |c: &Comparison| c.metric == "setxattr_rate";
            let comparisons = judge.comparisons(&records);
            assert_eq!(comparisons.iter().filter(|c| c.metric == "chmod_rate").count(), 2);
            comparisons.iter().filter(|c| its(c)).map(|c| c.contender.clone()).collect::<Vec<_>>()
        };
        assert_eq!(compared("b"), ["c"]);
        assert_eq!(compared("a"), [""; 0], "the reference itself");
    }

    #[test]
    fn every_comparison_is_there_from_the_start() {
        let judge = Judge::new(&plan(PLAN));
        let names: Vec<_> = judge
            .comparisons(&[])
            .iter()
            .map(|c| format!("{} {} {}", c.workload, c.metric, c.contender))
            .collect();
        assert_eq!(
            names,
            [
                "unpack wall_time b",
                "unpack wall_time c",
                "write iops b",
                "write iops c",
                "write cpu_per_operation b",
                "write cpu_per_operation c",
            ]
        );
        let first = &judge.comparisons(&[])[0];
        assert_eq!((first.ratio, first.low, first.high, first.rounds), (None, 0.0, None, 0));
        assert_eq!(first.verdict, Verdict::Undecided);
    }

    #[test]
    fn a_shorter_time_is_faster_and_the_ratio_is_of_goodness() {
        let judge = Judge::new(&plan(PLAN));
        let compared = &judge.comparisons(&rounds(0.5))[0];
        assert_eq!(compared.verdict, Verdict::Faster);
        assert!((compared.ratio.unwrap() - 2.0).abs() < 0.01);
        assert!(compared.low > 1.9 && compared.high.unwrap() < 2.1);
        assert_eq!((compared.rounds, compared.unit), (12, Unit::Seconds));
        assert_eq!(compared.reference_median, Some(2.0));
        assert!((compared.median.unwrap() - 1.0).abs() < 0.01);
    }

    #[test]
    fn only_rounds_that_hold_both_count_and_a_rerun_replaces_its_trial() {
        let judge = Judge::new(&plan(PLAN));
        let mut records = rounds(1.0);
        records.retain(|record| record.key.round != 3 || record.key.contender == "a");
        records.push(timed(4, "b", 1.0));
        records.push(timed(5, "b", 0.0));
        let pairs = pairs(&records, "unpack", "wall_time", "b", "a");
        assert_eq!(pairs.len(), 11);
        assert!((pairs[2].difference - 2_f64.ln()).abs() < 1e-12);
        assert_eq!(judge.comparisons(&records)[0].rounds, 11);
    }

    #[test]
    fn the_error_is_shared_over_the_family() {
        let of_workload = Judge::new(&plan(PLAN));
        assert_eq!(of_workload.rules.keys().copied().collect::<Vec<_>>(), [2, 4]);
        let (verdicts, expected) = of_workload.expected_false();
        assert!(verdicts == 6 && (expected - 0.1).abs() < 1e-12);
        let of_run = Judge::new(&plan(&format!("{PLAN}\n[judgement]\nfamily = \"run\"")));
        assert_eq!(of_run.rules.keys().copied().collect::<Vec<_>>(), [6]);
        assert!((of_run.expected_false().1 - 0.05).abs() < 1e-12);
    }

    #[test]
    fn an_undecided_comparison_says_what_could_have_been_seen() {
        let judge = Judge::new(&plan(PLAN));
        let noisy = |round: u32| 2.0 * if round.is_multiple_of(2) { 1.3 } else { 0.8 };
        let records: Vec<Record> = (1..=12)
            .flat_map(|round| [timed(round, "a", 2.0), timed(round, "b", noisy(round))])
            .collect();
        let compared = &judge.comparisons(&records)[0];
        assert_eq!(compared.verdict, Verdict::Undecided);
        assert!((1.1..1.6).contains(&compared.visible.unwrap()), "{compared:?}");
        assert_eq!(judge.comparisons(&rounds(0.5))[0].visible, None);
    }

    #[test]
    fn a_verdict_survives_the_trials_that_were_run_again_or_is_none() {
        let judge = Judge::new(&plan(PLAN));
        let verdict = |records: &[Record]| judge.comparisons(records)[0].verdict;
        let mut alike = rounds(0.5);
        alike.extend([timed(3, "a", 2.0), timed(3, "b", 1.0)]);
        assert_eq!(verdict(&alike), Verdict::Faster);
        let mut hopeful = rounds(1.001);
        let again = (1..=6).flat_map(|round| [timed(round, "a", 2.0), timed(round, "b", 1.5)]);
        hopeful.extend(again);
        let compared = &judge.comparisons(&hopeful)[0];
        assert_eq!(compared.verdict, Verdict::Undecided, "{compared:?}");
        assert!(compared.low < 1.0 && compared.high.unwrap() > 1.1, "{compared:?}");
    }

    #[test]
    fn names_are_nothing_but_names() {
        let before = Judge::new(&plan(PLAN)).comparisons(&rounds(0.9));
        for names in [["b", "a", "c"], ["c", "b", "a"], ["z", "x", "y"]] {
            let mut other = plan(PLAN);
            let renamed = |name: &str| names[(name.as_bytes()[0] - b'a') as usize].to_string();
            other.contenders.iter_mut().for_each(|it| it.name = renamed(&it.name));
            let mut records = rounds(0.9);
            records.iter_mut().for_each(|it| it.key.contender = renamed(&it.key.contender));
            let mut after = Judge::new(&other).comparisons(&records);
            for (after, before) in after.iter_mut().zip(&before) {
                assert_eq!(after.contender, renamed(&before.contender));
                after.contender.clone_from(&before.contender);
                after.reference.clone_from(&before.reference);
            }
            assert_eq!(after, before);
        }
    }

    #[test]
    fn a_void_reference_voids_every_comparison_with_it() {
        let judge = Judge::new(&plan(&PLAN.replace("cache = \"warm\"", "")));
        let mut records = rounds(0.5);
        for record in records.iter_mut().filter(|record| record.key.contender == "a") {
            record.caches = vec![Default::default()];
        }
        let verdicts: Vec<_> = judge.comparisons(&records).iter().map(|c| c.verdict).collect();
        assert_eq!(verdicts[..2], [Verdict::Void; 2]);
        assert_eq!(verdicts[2..], [Verdict::Undecided; 4]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// A slower disk, or other units, change no ratio.
        #[test]
        fn scaling_all_figures_changes_nothing(
            times in prop::sample::select(vec![0.7, 0.97, 1.0, 1.2]),
            scale in 0.001..1000.0f64,
        ) {
            static JUDGE: std::sync::LazyLock<Judge> =
                std::sync::LazyLock::new(|| Judge::new(&plan(PLAN)));
            let records = rounds(times);
            let mut scaled = records.clone();
            scaled.iter_mut().for_each(|record| record.samples[0].value *= scale);
            let (before, after) = (&JUDGE.comparisons(&records)[0], &JUDGE.comparisons(&scaled)[0]);
            prop_assert_eq!(before.verdict, after.verdict);
            prop_assert!((before.low - after.low).abs() < 1e-9);
            prop_assert!((before.high.unwrap() - after.high.unwrap()).abs() < 1e-9);
        }
    }
}
