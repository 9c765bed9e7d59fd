//! The judge: by what rules a plan's contenders are compared.

use std::collections::BTreeMap;

use crate::model::{Arm, Contender, Family, Finding, Intervals, Plan, Record, Severity, Workload};

use super::audit;
use super::shared::{PooledRules, Shared};
use super::stopping::Rule;

/// The judge of one plan: made once, asked after every round.
///
/// It holds the stopping rules. They do not depend on what is measured; the slow part of them, a
/// fraction of a second, is computed at the first look.
#[derive(Clone, Debug)]
pub struct Judge {
    plan: Plan,
    reference: usize,
    /// Differences of ln(goodness) smaller than this are trivial.
    margin: f64,
    /// By the number of comparisons that share the error, and how many of them are of two
    /// contenders at one work.
    rules: BTreeMap<[usize; 2], Shared>,
    /// The same, where the plan declares pooled intervals.
    pooled: BTreeMap<[usize; 2], PooledRules>,
    /// For every two contenders, where the plan declares a race.
    race: Option<Shared>,
    /// Of the duplicate, by the number of metrics that share its error.
    duplicate_rules: BTreeMap<usize, Shared>,
    /// Of the claims that no verdict compares, by how many of them share the error.
    claim_rules: BTreeMap<usize, Rule>,
}

impl Judge {
    /// The judge of `plan`, which has been checked.
    pub fn new(plan: &Plan) -> Judge {
        let mut rules = BTreeMap::new();
        for workload in &plan.workloads {
            let [sharing, metrics] = shares(plan, workload);
            let alpha = alpha(plan) * metrics as f64 / sharing as f64;
            rules.entry([sharing, metrics]).or_insert_with(|| shared(plan, alpha, metrics));
        }
        let contenders = plan.contenders.len();
        let of_all = |&[sharing, metrics]: &[usize; 2]| {
            let alpha = alpha(plan) * metrics as f64 / sharing as f64;
            let rounds = plan.judgement.rounds();
            ([sharing, metrics], PooledRules::new(alpha, metrics, rounds, contenders as u32))
        };
        let is_pooled = plan.judgement.interval == Intervals::Pooled && contenders > 1;
        let pairs = (contenders * (contenders - 1) / 2).max(1);
        let is_reference = |it: &Contender| it.name == plan.reference();
        Judge {
            plan: plan.clone(),
            reference: plan.contenders.iter().position(is_reference).unwrap_or(0),
            margin: plan.judgement.margin.0.ln_1p(),
            pooled: rules.keys().filter(|_| is_pooled).map(of_all).collect(),
            race: plan.judgement.race.then(|| shared(plan, alpha(plan) / pairs as f64, 1)),
            rules,
            duplicate_rules: duplicate_rules(plan),
            claim_rules: claim_rules(plan),
        }
    }

    /// The plan that is judged.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Differences of ln(goodness) smaller than this are trivial.
    pub(super) fn margin(&self) -> f64 {
        self.margin
    }

    /// The place of the reference among the plan's contenders.
    pub(super) fn reference(&self) -> usize {
        self.reference
    }

    /// How many comparisons share the error with one of the workload, itself counted.
    pub(super) fn sharing(&self, workload: &Workload) -> usize {
        sharing(&self.plan, workload)
    }

    /// The rules of the comparisons of two contenders at a workload.
    pub(super) fn rules_of(&self, workload: &Workload) -> &Shared {
        &self.rules[&shares(&self.plan, workload)]
    }

    /// The same, where the plan declares pooled intervals.
    pub(super) fn pooled_rules(&self, workload: &Workload) -> Option<&PooledRules> {
        self.pooled.get(&shares(&self.plan, workload))
    }

    /// The rule for every two contenders, where the plan declares a race.
    pub(super) fn race_rule(&self) -> Option<&Shared> {
        self.race.as_ref()
    }

    /// The chance that an interval of `workload` misses the truth, where runs are of no rounds.
    pub(super) fn unpaired_alpha(&self, workload: &Workload) -> Option<f64> {
        let is_unpaired = self.plan.judgement.interval == Intervals::Unpaired;
        is_unpaired.then(|| alpha(&self.plan) / sharing(&self.plan, workload) as f64)
    }

    /// The rules for the duplicate, by the number of metrics that share its error.
    pub(super) fn duplicate_rules(&self) -> &BTreeMap<usize, Shared> {
        &self.duplicate_rules
    }

    /// The rule for the claims of that workload that no verdict compares. There are some.
    pub(super) fn claim_rule(&self, workload: &str) -> &Rule {
        &self.claim_rules[&self.plan.claims_sharing(workload)]
    }
}

/// The rule by which the plan's rounds are looked at, for that chance of ever missing the truth.
pub(super) fn rule(plan: &Plan, alpha: f64) -> Rule {
    match plan.judgement.rounds() {
        Some(rounds) => Rule::capped(alpha, rounds),
        None => Rule::open_ended(alpha),
    }
}

/// The rules for claims that no verdict compares, by how many of them share the error.
fn claim_rules(plan: &Plan) -> BTreeMap<usize, Rule> {
    let mut rules = BTreeMap::new();
    for workload in &plan.workloads {
        let sharing = plan.claims_sharing(&workload.name);
        if sharing > 0 {
            let new = || rule(plan, alpha(plan) / sharing as f64);
            rules.entry(sharing).or_insert_with(new);
        }
    }
    rules
}

/// The same of so many metrics, for that chance of ever missing any of their truths.
pub(super) fn shared(plan: &Plan, alpha: f64, metrics: usize) -> Shared {
    Shared::new(alpha, metrics, plan.judgement.rounds())
}

/// The findings that make workloads of `plan` void, for callers that do not need its verdicts.
pub(super) fn void(plan: &Plan, records: &[Record]) -> Vec<Finding> {
    audit::Audited::of(plan, records).voiding(plan, &duplicate_rules(plan))
}

/// The same, and on what terms contenders were measured.
pub(super) fn noticed(plan: &Plan, records: &[Record]) -> Vec<Finding> {
    let mut audited = audit::Audited::of(plan, records);
    let mut findings = audited.voiding(plan, &duplicate_rules(plan));
    findings.extend(audited.of_terms(plan));
    findings
}

/// The rules for the duplicate, by the number of metrics that share its error.
pub(super) fn duplicate_rules(plan: &Plan) -> BTreeMap<usize, Shared> {
    let mut rules = BTreeMap::new();
    let workloads = plan.workloads.iter();
    for workload in workloads.filter(|_| plan.judgement.arms.contains(&Arm::Duplicate)) {
        let metrics = workload.primary().len();
        rules.entry(metrics).or_insert_with(|| shared(plan, audit::DUPLICATE_ALPHA, metrics));
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

/// How many comparisons share the error with one of `workload`, itself counted; one where a
/// contender is alone and there is none.
pub(super) fn sharing(plan: &Plan, workload: &Workload) -> usize {
    let all = match plan.judgement.family {
        Family::Workload => comparisons_of(plan, workload),
        Family::Run => plan.workloads.iter().map(|work| comparisons_of(plan, work)).sum(),
    };
    all.max(1)
}

/// How many comparisons share the error with one of `workload`, and how many of them are of the
/// same two contenders at it.
fn shares(plan: &Plan, workload: &Workload) -> [usize; 2] {
    let sharing = sharing(plan, workload);
    [sharing, workload.primary().len().clamp(1, sharing)]
}

/// Whether `finding` takes the ground from a comparison of two contenders in a workload.
pub(super) fn voids(finding: &Finding, workload: &str, contenders: [&str; 2]) -> bool {
    let covers = |finding: &Option<String>, name| finding.as_ref().is_none_or(|it| it == name);
    finding.severity == Severity::Void
        && covers(&finding.workload, workload)
        && contenders.iter().any(|name| covers(&finding.contender, name))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::{plan, record};
    use super::*;
    use crate::judge::pairs::pairs;
    use crate::model::{
        Comparison, MetadataOperation, Phase, Refused, Sample, StepTime, Unit, Verdict,
    };

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
    fn who_is_alone_is_compared_with_nobody() {
        let alone = PLAN.replace("[[contender]]\n        name = \"b\"", "");
        let alone = alone.replace("[[contender]]\n        name = \"c\"", "");
        let judge = Judge::new(&plan(&alone));
        assert_eq!(judge.comparisons(&rounds(1.0)), []);
    }

    #[test]
    fn a_count_that_never_varies_is_exact() {
        let judge = Judge::new(&plan(PLAN));
        let mut records: Vec<Record> =
            (1..=6).flat_map(|round| [timed(round, "a", 2.0), timed(round, "b", 2.5)]).collect();
        let of = |records: &[Record]| judge.comparisons(records)[0].clone();
        assert!(of(&records).exact && !of(&records[..6]).exact, "three rounds are no look");
        let compared = of(&records);
        assert!((compared.ratio.unwrap() - 0.8).abs() < 1e-12);
        assert_eq!((compared.verdict, compared.sharing), (Verdict::Slower, 2));
        records[5].samples[0].value *= 1.001;
        assert!(!of(&records).exact);
    }

    #[test]
    fn a_comparison_names_the_rounds_that_outlie_and_what_would_settle_it() {
        let judge = Judge::new(&plan(PLAN));
        let mut records = rounds(1.2);
        records[7].samples[0].value *= 3.0;
        let stalled = &judge.comparisons(&records)[0];
        assert_eq!((stalled.outlying.as_slice(), stalled.verdict), (&[4][..], Verdict::Slower));
        assert_eq!((stalled.rounds_to_settle, stalled.visible), (None, None));
        let noisy = |round: u32| 2.0 * if round.is_multiple_of(2) { 1.3 } else { 0.8 };
        let step = |record| {
            let steps = vec![StepTime { step: "work".into(), duration_ns: 3_000_000_000 }];
            Record { steps, ..record }
        };
        let open: Vec<Record> = (1..=12)
            .flat_map(|round| [timed(round, "a", 2.0), timed(round, "b", noisy(round))].map(step))
            .collect();
        let open = &judge.comparisons(&open)[0];
        let more = open.rounds_to_settle.unwrap();
        assert!(more > 12, "{open:?}");
        assert_eq!(open.seconds_to_settle, Some(6.0 * f64::from(more)));
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
        records.push(record(5, "unpack", "b"));
        let pairs = pairs(&records, "unpack", "wall_time", "b", "a");
        assert_eq!(pairs.len(), 11);
        assert!((pairs[2].difference - 2_f64.ln()).abs() < 1e-12);
        assert_eq!(judge.comparisons(&records)[0].rounds, 11);
    }

    #[test]
    fn the_error_is_shared_over_the_family() {
        let of_workload = Judge::new(&plan(PLAN));
        assert_eq!(of_workload.rules.keys().copied().collect::<Vec<_>>(), [[2, 1], [4, 2]]);
        let of_run = Judge::new(&plan(&format!("{PLAN}\n[judgement]\nfamily = \"run\"")));
        assert_eq!(of_run.rules.keys().copied().collect::<Vec<_>>(), [[6, 1], [6, 2]]);
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

    /// Twelve rounds of three contenders; the middle one is `times` as good as the others; the
    /// second metric scatters more.
    fn of_three(times: f64) -> Vec<Record> {
        let trial = |round: u32, place: u32| {
            let noise = 1.0 + f64::from((round * 7 + place * 3) % 5) / 1000.0;
            let rate = noise * if place == 1 { 1000.0 * times } else { 1000.0 };
            let samples = vec![
                Sample::higher("iops", rate, Unit::PerSecond),
                Sample::lower("cpu_per_operation", 5000.0 / rate, Unit::Nanoseconds),
            ];
            let name = ["a", "b", "c"][place as usize];
            Record { samples, ..record(round, "write", name) }
        };
        (1..=12).flat_map(|round| (0..3).map(move |place| trial(round, place))).collect()
    }

    #[test]
    fn a_race_is_lost_to_who_is_better_in_all_that_is_judged() {
        let beaten = |records: &[Record], race: bool| {
            let judge = Judge::new(&plan(&format!("{PLAN}\n[judgement]\nrace = {race}")));
            let mut its = judge.comparisons(records);
            its.retain(|it| it.workload == "write" && it.contender == "c");
            its.into_iter().map(|it| (it.verdict, it.beaten_by)).collect::<Vec<_>>()
        };
        // c against a is near the margin, so that it is open.
        let mut records = of_three(2.0);
        for record in records.iter_mut().filter(|it| it.key.contender == "c") {
            let scatter = if record.key.round % 2 == 0 { 1.03 } else { 1.07 };
            record.samples.iter_mut().for_each(|it| match it.unit {
                Unit::PerSecond => it.value *= scatter,
                _ => it.value /= scatter,
            });
        }
        let open = (Verdict::FasterSizeOpen, Some("b".to_string()));
        assert_eq!(beaten(&records, true), [open.clone(), open]);
        assert!(beaten(&records, false).iter().all(|it| it.1.is_none()));
        for record in records.iter_mut().filter(|it| it.key.contender == "b") {
            record.samples[1].value *= 2.0;
        }
        assert!(beaten(&records, true).iter().all(|it| it.1.is_none()), "in one of the two only");
    }

    #[test]
    fn pooled_intervals_are_of_rounds_that_are_complete() {
        let pooled = Judge::new(&plan(&format!("{PLAN}\n[judgement]\ninterval = \"pooled\"")));
        let rounds = |records: &[Record]| {
            let its = pooled.comparisons(records).into_iter().filter(|it| it.metric == "iops");
            its.map(|it| (it.contender, it.rounds)).collect::<Vec<_>>()
        };
        let of = |b, c| vec![("b".to_string(), b), ("c".to_string(), c)];
        let mut records = of_three(1.3);
        assert_eq!(rounds(&records), of(12, 12));
        let compared = &pooled.comparisons(&records)[2];
        assert_eq!((compared.metric.as_str(), compared.verdict), ("iops", Verdict::Faster));
        assert!((compared.ratio.unwrap() - 1.3).abs() < 0.01);
        records.retain(|it| it.key.contender != "c" || it.key.round != 5);
        assert_eq!(rounds(&records), of(11, 11));
        records.retain(|it| it.key.contender != "c" || it.key.round < 3);
        assert_eq!(rounds(&records), of(12, 0), "who fails most of the time has no part in it");
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

    /// As it was found: a is 2 in each of nine rounds, b 0 in five and 4 in four; by these four b
    /// was half as sparing, exactly and in every trial.
    #[test]
    fn what_rounds_without_a_zero_say_is_not_said_of_all() {
        let of_round = |round: u32| {
            let of_b = if round.is_multiple_of(2) { 4.0 } else { 0.0 };
            [timed(round, "a", 2.0), timed(round, "b", of_b), timed(round, "c", 3.0)]
        };
        let records: Vec<Record> = (1..=9).flat_map(of_round).collect();
        let judge = Judge::new(&plan(PLAN));
        let comparisons = judge.comparisons(&records);
        let [b, c] = &comparisons[..2] else { panic!("{comparisons:?}") };
        assert_eq!((b.verdict, b.ratio, b.exact), (Verdict::Undecided, None, false), "{b:?}");
        assert_eq!((b.high, b.rounds_to_settle, b.visible), (None, None, None));
        assert_eq!(comparisons, crate::judge::plain::comparisons(&judge, &records));
        assert!(c.exact && c.verdict == Verdict::Slower, "{c:?}");
        // A trial that is run again counts by its later figure.
        let again = (1..=9).step_by(2).map(|round| timed(round, "b", 4.0));
        let records: Vec<Record> = records.into_iter().chain(again).collect();
        let comparisons = judge.comparisons(&records);
        assert_eq!(comparisons[0].ratio, Some(0.5), "{:?}", comparisons[0]);
        assert_eq!(comparisons, crate::judge::plain::comparisons(&judge, &records));
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

        /// However the contenders are called, and in whatever order their names are.
        #[test]
        fn names_are_nothing_but_names(
            judgement in prop::sample::select(vec!["", "race = true", "interval = \"pooled\""]),
            names in Just(["a", "b", "c", "z"]).prop_shuffle(),
            (times, better) in (0.8..1.2f64, 0.8..1.3f64),
        ) {
            let plan = plan(&format!("{PLAN}\n[judgement]\n{judgement}"));
            let mut records = rounds(times);
            records.extend(of_three(better));
            let before = Judge::new(&plan).comparisons(&records);
            let renamed = |name: &str| names[(name.as_bytes()[0] - b'a') as usize].to_string();
            let mut other = plan.clone();
            other.contenders.iter_mut().for_each(|it| it.name = renamed(&it.name));
            records.iter_mut().for_each(|it| it.key.contender = renamed(&it.key.contender));
            let after = Judge::new(&other).comparisons(&records);
            let expected = before.into_iter().map(|it| Comparison {
                contender: renamed(&it.contender),
                reference: renamed(&it.reference),
                beaten_by: it.beaten_by.as_deref().map(renamed),
                ..it
            });
            prop_assert_eq!(after, expected.collect::<Vec<_>>());
        }
    }
}
