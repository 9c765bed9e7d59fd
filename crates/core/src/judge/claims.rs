//! What a run says of the claims in its plan: one rule, from the intervals of the verdicts.
//!
//! The intervals of a workload hold together with the declared confidence, whoever reads them for
//! whatever purpose. So claims share the error of the verdicts, and take none of their own. What no
//! verdict compares, another metric, two works or two contenders beside the reference, has an
//! interval of its own, and such claims of one workload share one more error.

use super::compare::{Judge, voids};
use super::interval::{Course, Interval};
use super::not_measured::failures;
use super::terms::Side;
use super::trials::{Trials, Which};
use crate::model::claim::{Answer, Answered, Claim, Claimed, Way};
use crate::model::{Compared, Comparison, Finding, Percent, Plan, Record, Unknown};

/// Every claim of the plan with its answer, in the plan's order: `trials` are those of `side`.
pub(super) fn claims(
    judge: &Judge,
    side: Side,
    comparisons: &[Comparison],
    findings: &[Finding],
    trials: &Trials,
) -> Vec<Answered> {
    let court = Court { judge, comparisons, findings, trials };
    side.plan.claims.iter().map(|claim| court.answered(side, claim)).collect()
}

/// A work, and a contender that does it, by their names.
pub type Part = (String, String);

/// A claim that is undecided, while a run goes on.
#[derive(Clone, Debug, PartialEq)]
pub struct Undecided {
    /// Who is compared: a round that holds both tells more.
    pub parts: [Part; 2],
    /// After so many rounds it is probably decided; `None` where none or very many would do.
    pub settled_after: Option<u32>,
}

/// The claims that are undecided. One whose direction is known is answered: its exact size would
/// keep most runs going to their end.
pub(super) fn undecided(
    judge: &Judge,
    comparisons: &[Comparison],
    findings: &[Finding],
    trials: &Trials,
) -> Vec<Undecided> {
    let (plan, margin) = (judge.plan(), judge.plan().judgement.margin);
    let court = Court { judge, comparisons, findings, trials };
    let undecided = |claim: &Claim| {
        let measured = court.measured(claim).ok()??;
        let claimed = claim.claimed(margin);
        if answer(claimed, measured, margin).0 != Answer::Undecided {
            return None;
        }
        let Compared { workload, than, contender, against, .. } = claim.compared(plan).ok()?;
        let more = rounds_to_settle(claimed, measured, margin);
        Some(Undecided {
            parts: [(workload, contender), (than, against)]
                .map(|(work, name)| (work.name.clone(), name.to_string())),
            settled_after: more.map(|more| measured.rounds + more),
        })
    };
    plan.claims.iter().filter_map(undecided).collect()
}

/// All that answers are taken from.
struct Court<'a> {
    judge: &'a Judge,
    comparisons: &'a [Comparison],
    findings: &'a [Finding],
    trials: &'a Trials,
}

/// A ratio, the ends of its interval, and the rounds behind it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Measured {
    ratio: f64,
    low: f64,
    high: f64,
    rounds: u32,
}

impl Measured {
    /// `None` before the first round that holds both.
    fn of(comparison: &Comparison) -> Option<Measured> {
        let Comparison { ratio, low, high, rounds, .. } = *comparison;
        Some(Measured { ratio: ratio?, low, high: high.unwrap_or(f64::INFINITY), rounds })
    }

    /// The same of what no verdict compares.
    fn of_course(course: &Course) -> Option<Measured> {
        let Interval { low, high } = course.interval;
        let (ratio, rounds) = (course.estimate.exp(), course.rounds);
        (rounds > 0).then(|| Measured { ratio, low: low.exp(), high: high.exp(), rounds })
    }

    /// Of the other contender against this one.
    fn mirrored(self) -> Measured {
        let Measured { ratio, low, high, rounds } = self;
        Measured { ratio: 1.0 / ratio, low: 1.0 / high, high: 1.0 / low, rounds }
    }

    /// The same after so many rounds, if the ratio is the one estimated: the interval shrinks with
    /// the square root of their number.
    fn after(self, rounds: u32) -> Measured {
        let shrunk = (f64::from(self.rounds) / f64::from(rounds)).sqrt();
        let end = |end: f64| self.ratio * (end / self.ratio).powf(shrunk);
        Measured { low: end(self.low), high: end(self.high), rounds, ..self }
    }
}

/// Ratios that differ by less are the same.
const EXACT: f64 = 1.0 + 1e-8;

/// What an interval says of what is claimed; true: more rounds could change it.
///
/// A claim of a direction holds where its size is within the interval's reach and beyond the
/// margin; its direction alone where that much is known and no more. It does not hold where the
/// interval has nothing of its size, also while the direction is open.
fn answer(claimed: Claimed, measured: Measured, margin: Percent) -> (Answer, bool) {
    let Measured { low, high, .. } = measured;
    let wide = 1.0 + margin.0;
    // A figure that never varies has an interval of a breadth that is none (interval.rs).
    let is_within = claimed.low <= low * EXACT && high <= claimed.high * EXACT;
    let is_without = claimed.excludes(low, high);
    match claimed.way {
        Way::Worse => answer(claimed.mirrored(), measured.mirrored(), margin),
        Way::Equal if is_within => (Answer::Holds, false),
        Way::Equal if is_without => (Answer::DoesNotHold, false),
        Way::Equal => (Answer::Undecided, true),
        Way::Better if 1.0 / wide < low && high < wide => (Answer::TooSmallToMatter, false),
        Way::Better if low > wide && is_within => (Answer::Holds, false),
        Way::Better if low > wide && is_without => (Answer::HoldsInDirection, false),
        Way::Better if low > 1.0 => (Answer::HoldsInDirection, true),
        Way::Better if high < wide => (Answer::DoesNotHold, false),
        Way::Better if is_without => (Answer::DoesNotHold, true),
        Way::Better => (Answer::Undecided, true),
    }
}

/// About so many rounds more give an answer that none would change.
fn rounds_to_settle(claimed: Claimed, measured: Measured, margin: Percent) -> Option<u32> {
    /// Who would need more does better to change something.
    const MOST: u32 = 10_000;
    let is_open = |rounds: u32| answer(claimed, measured.after(rounds), margin).1;
    if measured.high.is_infinite() || measured.low <= 0.0 || is_open(MOST) {
        return None;
    }
    let (mut open, mut settled) = (measured.rounds, MOST);
    while settled - open > 1 {
        let middle = u32::midpoint(open, settled);
        *(if is_open(middle) { &mut open } else { &mut settled }) = middle;
    }
    Some(settled - measured.rounds)
}

impl Court<'_> {
    fn answered(&self, side: Side, claim: &Claim) -> Answered {
        let plan = self.judge.plan();
        let claimed = claim.claimed(plan.judgement.margin);
        let ends = [Some(claimed.low), Some(claimed.high)];
        let has_size = claim.not_measurable.is_none();
        let ends = ends.map(|end| end.filter(|it| has_size && *it > 0.0 && it.is_finite()));
        let blank = Answered {
            claim: claim.clone(),
            answer: Answer::NotMeasurableHere,
            open: false,
            claimed: ends,
            measured: None,
            why: String::new(),
            rounds_to_settle: None,
        };
        let lacking = || claim.compared(plan).map(|compared| lack(side, &compared));
        let measured = match self.measured(claim) {
            Ok(Some(measured)) => return settled(blank, claimed, measured, plan),
            Ok(None) => lacking().unwrap_or((Answer::NotMeasurableHere, String::new())),
            Err(answered) => answered,
        };
        let (answer, why) = measured;
        Answered { answer, open: answer == Answer::Undecided, why, ..blank }
    }

    /// What was measured for a claim, if something was; or what keeps it from being answered: its
    /// answer, and why.
    fn measured(&self, claim: &Claim) -> Result<Option<Measured>, (Answer, String)> {
        if let Some(why) = &claim.not_measurable {
            return Err((Answer::NotMeasurableHere, why.clone()));
        }
        let plan = self.judge.plan();
        let lacks = |unknown: Unknown| (Answer::NotMeasurableHere, unknown.to_string());
        let compared = claim.compared(plan).map_err(lacks)?;
        if let Some(audit) = self.audit(&compared) {
            return Err((Answer::MeasuredSomethingElse, audit));
        }
        Ok(match compared.is_extra(plan.reference()) {
            true => self.extra(&compared),
            false => self.judged(&compared),
        })
    }

    /// By a verdict's interval.
    fn judged(&self, compared: &Compared) -> Option<Measured> {
        let of = |name: &str| Measured::of(self.comparison(compared, name)?);
        match compared.against == self.judge.plan().reference() {
            true => of(compared.contender),
            false => of(compared.against).map(Measured::mirrored),
        }
    }

    /// By an interval of its own.
    fn extra(&self, compared: &Compared) -> Option<Measured> {
        let Compared { workload, than, metric, contender, against } = compared;
        let both = [(workload.name.as_str(), *contender), (than.name.as_str(), *against)];
        let (rule, margin) = (self.judge.claim_rule(&workload.name), self.judge.margin());
        let course = |which| {
            let [one, other] =
                both.map(|(work, name)| self.trials.series(work, metric, name, which));
            let pairs = one.pairs(other, ..);
            Course::of(&pairs.map(|pair| pair.difference).collect::<Vec<_>>(), rule, margin)
        };
        let latest = course(Which::Latest);
        // Where rounds were run again, what is said has to hold without that too.
        let has_again = both.iter().any(|(work, name)| self.trials.has_again(work, name));
        Measured::of_course(&match has_again {
            false => latest,
            true => latest.or(&course(Which::First), margin),
        })
    }

    fn comparison(&self, compared: &Compared, contender: &str) -> Option<&Comparison> {
        self.comparisons.iter().find(|it| {
            it.workload == compared.workload.name
                && it.metric == compared.metric
                && it.contender == contender
        })
    }

    /// The finding that voids it, if one does.
    fn audit(&self, compared: &Compared) -> Option<String> {
        let Compared { workload, than, contender, against, .. } = compared;
        let voids = |it: &&Finding| {
            voids(it, &workload.name, [contender; 2]) || voids(it, &than.name, [against; 2])
        };
        let finding = self.findings.iter().find(voids)?;
        Some(format!("{:?}: {}", finding.audit, finding.evidence))
    }
}

/// Why there is no ratio of the two.
fn lack(side: Side, compared: &Compared) -> (Answer, String) {
    let Compared { workload, than, metric, contender, against } = compared;
    let records = side.records;
    let both = [(&workload.name, *contender), (&than.name, *against)];
    let failed = |(work, name): &(&String, &str)| {
        let (count, trials, error) = failures(records, work, name)?;
        let all = count == trials;
        all.then(|| format!("all {trials} trials of {name} failed: {error}"))
    };
    let refused = |(work, name): &(&String, &str)| {
        let phase = workload.phase_of(metric);
        let its = |it: &&Record| it.key.workload == **work && it.key.contender == *name;
        let mut refused = records.iter().filter(its).flat_map(|it| &it.refused);
        refused.find(|it| it.phase == phase).map(|_| format!("{name} has no {}", phase.name()))
    };
    let why = both.iter().find_map(failed).or_else(|| both.iter().find_map(refused));
    match (why, side.run.stop) {
        (Some(why), _) => (Answer::NotMeasurableHere, why),
        (None, Some(_)) => (Answer::NotMeasurableHere, format!("no round has {metric} of both")),
        (None, None) => (Answer::Undecided, "no round has both yet".into()),
    }
}

/// The answer by what was measured.
fn settled(blank: Answered, claimed: Claimed, measured: Measured, plan: &Plan) -> Answered {
    let margin = plan.judgement.margin;
    let (answer, open) = answer(claimed, measured, margin);
    let Measured { ratio, low, high, .. } = measured;
    let more = open.then(|| rounds_to_settle(claimed, measured, margin)).flatten();
    let why = match answer {
        Answer::Holds => "the whole interval is within what is claimed".into(),
        Answer::HoldsInDirection if claimed.excludes(low, high) => {
            "the interval excludes the size that is claimed".into()
        }
        Answer::HoldsInDirection => "by how much is open".into(),
        Answer::DoesNotHold if open => {
            "the interval excludes the size that is claimed; its direction is open".into()
        }
        Answer::DoesNotHold if claimed.excludes(low, high) => "the interval excludes it".into(),
        Answer::DoesNotHold => format!("no difference in that direction reaches {margin}"),
        Answer::TooSmallToMatter if claimed.excludes(low, high) => {
            format!("any difference is under {margin}, and not the one that is claimed")
        }
        Answer::TooSmallToMatter => format!("any difference is under {margin}"),
        _ => "the interval has what is claimed and what is not".into(),
    };
    let measured = high.is_finite().then_some([ratio, low, high]);
    Answered { answer, open, measured, why, rounds_to_settle: more, ..blank }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::{plan, record, run};
    use super::super::{Fold, Judge};
    use super::*;
    use crate::model::{Failure, Outcome, Sample, Stop, Unit, Verdict};

    const MARGIN: Percent = Percent(0.05);

    fn claimed(text: &str) -> Claimed {
        let claim: Claim = toml::from_str(&format!("text = \"x\"\n{text}")).unwrap();
        claim.claimed(MARGIN)
    }

    fn said(text: &str, low: f64, high: f64) -> (Answer, bool) {
        let measured = Measured { ratio: (low * high).sqrt(), low, high, rounds: 6 };
        answer(claimed(text), measured, MARGIN)
    }

    #[test]
    fn each_answer_has_its_intervals() {
        use Answer::{DoesNotHold, Holds, HoldsInDirection, TooSmallToMatter, Undecided};
        for (claim, low, high, answer, open) in [
            ("is = \"better\"", 1.1, 1.3, Holds, false),
            ("is = \"better\"", 1.01, 1.3, HoldsInDirection, true),
            ("is = \"better\"", 1.01, 1.04, TooSmallToMatter, false),
            ("is = \"better\"", 0.96, 1.04, TooSmallToMatter, false),
            ("is = \"better\"", 0.7, 0.9, DoesNotHold, false),
            ("is = \"better\"", 0.9, 1.04, DoesNotHold, false),
            ("is = \"better\"", 0.9, 1.1, Undecided, true),
            ("is = \"worse\"", 0.7, 0.9, Holds, false),
            ("is = \"worse\"", 0.7, 0.99, HoldsInDirection, true),
            ("is = \"worse\"", 1.1, 1.2, DoesNotHold, false),
            ("times = 2", 1.95, 2.05, Holds, false),
            ("times = 2", 1.5, 2.05, HoldsInDirection, true),
            ("times = 2", 1.2, 1.5, HoldsInDirection, false),
            ("times = 2", 0.9, 1.5, DoesNotHold, true),
            ("times = 0.78", 0.93, 1.1, DoesNotHold, true),
            ("times = 2", 0.9, 2.5, Undecided, true),
            ("at_least = 1.1", 1.02, 1.08, HoldsInDirection, true),
            ("at_least = 1", 0.98, 1.03, Undecided, true),
            ("at_least = 1", 1.0, 1.03, Holds, false),
            ("at_least = 1", 0.9, 0.98, DoesNotHold, false),
            ("at_most = 1", 0.97, 0.99, Holds, false),
            ("at_least = 2", 2.5, 9.0, Holds, false),
            ("times = [0.6, 0.8]", 0.62, 0.79, Holds, false),
            ("times = [0.6, 0.8]", 0.2, 0.3, HoldsInDirection, false),
            ("is = \"equal\"", 0.96, 1.04, Holds, false),
            ("is = \"equal\"", 1.06, 1.2, DoesNotHold, false),
            ("is = \"equal\"", 0.9, 1.01, Undecided, true),
            ("at_least = 0.98", 0.99, 1.5, Holds, false),
            ("at_least = 0.98", 0.5, 0.97, DoesNotHold, false),
            ("at_least = 0.98", 0.97, 1.01, Undecided, true),
        ] {
            assert_eq!(said(claim, low, high), (answer, open), "{claim}: {low} to {high}");
        }
    }

    const PLAN: &str = "[[contender]]\nname = \"a\"\n[[contender]]\nname = \"b\"\n\
                        [[contender]]\nname = \"c\"\n\
                        [[workload]]\nname = \"w\"\ncommand = \"true\"\ncache = \"warm\"\n";

    /// What the judge says of these claims after rounds in which b takes half of a's time, and c
    /// twice of it, give or take a percent.
    fn answers(claims: &[&str], change: impl Fn(&mut Record)) -> Vec<Answered> {
        let claims: String =
            claims.iter().map(|it| format!("[[claim]]\ntext = \"x\"\n{it}\n")).collect();
        let plan = plan(&format!("{PLAN}{claims}"));
        let trial = |round: u32, place: usize| {
            let noise = 1.0 + f64::from((round * 7 + 3 * place as u32) % 5) / 500.0;
            let seconds = [1.0, 0.5, 2.0][place] * noise;
            let samples = vec![Sample::lower("wall_time", seconds, Unit::Seconds)];
            let mut record = Record { samples, ..record(round, "w", ["a", "b", "c"][place]) };
            change(&mut record);
            record
        };
        let rounds = (1..=12).flat_map(|round| (0..3).map(move |place| (round, place)));
        let records: Vec<Record> = rounds.map(|(round, place)| trial(round, place)).collect();
        let judge = Judge::new(&plan);
        let mut run = run("run", &[]);
        run.stop = Some(Stop::Rounds);
        let side = Side { run: &run, plan: &plan, records: &records };
        let mut fold = Fold::of(&judge, &records);
        let (comparisons, findings) = (fold.comparisons(), fold.findings());
        fold.claims(side, &comparisons, &findings)
    }

    #[test]
    fn contenders_are_compared_whichever_is_the_reference() {
        let of = |contender: &str, against: &str, times: f64| {
            format!(
                "contender = \"{contender}\"\nagainst = \"{against}\"\nworkload = \"w\"\n\
                 times = {times}"
            )
        };
        let texts = [of("b", "a", 2.0), of("a", "b", 0.5), of("b", "c", 4.0), of("c", "b", 0.25)];
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        for answered in answers(&texts, |_| ()) {
            assert_eq!(answered.answer, Answer::Holds, "{answered:?}");
        }
        let wrong = answers(&[&of("b", "c", 0.25)], |_| ());
        assert_eq!(wrong[0].answer, Answer::DoesNotHold);
    }

    #[test]
    fn what_never_varies_is_at_least_and_at_most_what_it_is() {
        let of = |bound: &str| format!("contender = \"b\"\nworkload = \"w\"\n{bound} = 1");
        let texts = [of("at_least"), of("at_most")];
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let same = |record: &mut Record| {
            record.samples = vec![Sample::lower("wall_time", 1.0, Unit::Seconds)];
        };
        for answered in answers(&texts, same) {
            assert_eq!(answered.answer, Answer::Holds, "{answered:?}");
        }
    }

    #[test]
    fn what_no_verdict_compares_has_an_interval_of_its_own() {
        let other = "[[workload]]\nname = \"v\"\ncommand = \"true\"\ncache = \"warm\"\n";
        let of_works = "contender = \"b\"\nworkload = \"v\"\nthan = \"w\"\ntimes = 0.5";
        let of_metric = "contender = \"b\"\nworkload = \"w\"\nmetric = \"cpu_time\"\ntimes = 2";
        let lacking = "contender = \"b\"\nworkload = \"w\"\nmetric = \"iops\"\ntimes = 2";
        let claims = [other.to_string()].into_iter().chain(
            [of_works, of_metric, lacking].map(|it| format!("[[claim]]\ntext = \"x\"\n{it}\n")),
        );
        let plan = plan(&format!("{PLAN}{}", claims.collect::<String>()));
        let trial = |round: u32, work: &str, name: &str| {
            let noise = 1.0 + f64::from((round * 7 + name.len() as u32) % 5) / 500.0;
            let seconds = noise * if work == "v" { 2.0 } else { 1.0 };
            let cpu = if name == "b" { 0.5 } else { 1.0 };
            let samples = vec![
                Sample::lower("wall_time", seconds, Unit::Seconds),
                Sample::lower("cpu_time", cpu, Unit::Seconds),
            ];
            Record { samples, ..record(round, work, name) }
        };
        let mut records = Vec::new();
        for (round, work) in (1..=12).flat_map(|round| ["w", "v"].map(|work| (round, work))) {
            records.extend(["a", "b", "c"].map(|name| trial(round, work, name)));
        }
        let mut run = run("run", &[]);
        run.stop = Some(Stop::Rounds);
        let side = Side { run: &run, plan: &plan, records: &records };
        let judge = Judge::new(&plan);
        let mut fold = Fold::of(&judge, &records);
        let comparisons = fold.comparisons();
        let answers = fold.claims(side, &comparisons, &[]);
        let said: Vec<_> = answers.iter().map(|it| (it.answer, it.why.as_str())).collect();
        assert_eq!(said[..2], [(Answer::Holds, "the whole interval is within what is claimed"); 2]);
        assert_eq!(said[2], (Answer::NotMeasurableHere, "no round has iops of both"));
    }

    #[test]
    fn what_was_not_measured_says_what_was_lacking() {
        let claim = "contender = \"b\"\nworkload = \"w\"\nis = \"better\"";
        let failed = |record: &mut Record| {
            if record.key.contender == "b" {
                let failure = Failure {
                    step: "mkfs".into(),
                    error: "no room".into(),
                    cleanup_errors: Vec::new(),
                };
                record.outcome = Outcome::Failed(failure);
            }
        };
        let its = &answers(&[claim], failed)[0];
        assert_eq!(its.answer, Answer::NotMeasurableHere);
        assert_eq!(its.why, "all 12 trials of b failed: no room");
        let its = &answers(&["not_measurable = \"no work here does so\""], |_| ())[0];
        assert_eq!((its.answer, its.why.as_str()), {
            (Answer::NotMeasurableHere, "no work here does so")
        });
        assert_eq!((its.claimed, its.open), ([None; 2], false));
    }

    #[test]
    fn an_open_answer_says_how_many_rounds_would_settle_it() {
        let open = Measured { ratio: 1.1, low: 0.9, high: 1.1 * 1.1 / 0.9, rounds: 6 };
        let better = claimed("is = \"better\"");
        let more = rounds_to_settle(better, open, MARGIN).unwrap();
        assert!(!answer(better, open.after(6 + more), MARGIN).1);
        assert!(answer(better, open.after(5 + more), MARGIN).1);
        let at_its_edge = Measured { ratio: 1.05, low: 0.9, high: 1.05 * 1.05 / 0.9, rounds: 6 };
        assert_eq!(rounds_to_settle(better, at_its_edge, MARGIN), None);
        let unbounded = Measured { low: 0.0, high: f64::INFINITY, ..open };
        assert_eq!(rounds_to_settle(better, unbounded, MARGIN), None);
    }

    fn is_yes((answer, open): (Answer, bool)) -> bool {
        answer == Answer::Holds || (answer == Answer::HoldsInDirection && !open)
    }

    /// While its direction is open, what does not hold may still hold in direction.
    fn is_no((answer, open): (Answer, bool)) -> bool {
        matches!(answer, Answer::DoesNotHold | Answer::TooSmallToMatter) && !open
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        /// A claim of a direction alone says what the verdict of the same interval says.
        #[test]
        fn a_direction_is_answered_as_the_verdict_is(low in -0.3..0.3f64, width in 0.0..0.3f64) {
            let interval = Interval { low, high: low + width };
            let verdict = interval.verdict(MARGIN.0.ln_1p());
            let (answer, open) = said("is = \"better\"", low.exp(), interval.high.exp());
            let expected = match verdict {
                Verdict::Faster => Answer::Holds,
                Verdict::FasterSizeOpen => Answer::HoldsInDirection,
                Verdict::TriviallyFaster | Verdict::TriviallySlower | Verdict::Equivalent => {
                    Answer::TooSmallToMatter
                }
                Verdict::Slower | Verdict::SlowerSizeOpen => Answer::DoesNotHold,
                _ if interval.high < MARGIN.0.ln_1p() => Answer::DoesNotHold,
                _ => Answer::Undecided,
            };
            prop_assert_eq!(answer, expected);
            prop_assert!(!open || !verdict.is_settled());
        }

        /// A narrower interval never takes back what was settled, and the mirrored claim of the
        /// mirrored interval has the same answer.
        #[test]
        fn answers_do_not_contradict_each_other(
            ends in prop::array::uniform4(0.3..3.0f64),
            (one, other) in (0.3..3.0f64, 0.3..3.0f64),
            way in 0..6usize,
        ) {
            let mut ends = ends;
            ends.sort_by(f64::total_cmp);
            let [low, inner_low, inner_high, high] = ends;
            let (least, most) = (one.min(other), one.max(other));
            let pairs: [(String, String); 6] = [
                ("is = \"better\"".into(), "is = \"worse\"".into()),
                ("is = \"equal\"".into(), "is = \"equal\"".into()),
                (format!("times = {one:?}"), format!("times = {:?}", 1.0 / one)),
                (
                    format!("times = [{least:?}, {most:?}]"),
                    format!("times = [{:?}, {:?}]", 1.0 / most, 1.0 / least),
                ),
                (format!("at_least = {one:?}"), format!("at_most = {:?}", 1.0 / one)),
                (format!("at_most = {one:?}"), format!("at_least = {:?}", 1.0 / one)),
            ];
            let (claim, mirror) = &pairs[way];
            let (wide, narrow) = (said(claim, low, high), said(claim, inner_low, inner_high));
            prop_assert!(!(is_yes(wide) && is_no(narrow)), "{wide:?} {narrow:?}");
            prop_assert!(!(is_no(wide) && is_yes(narrow)), "{wide:?} {narrow:?}");
            if !wide.1 && wide.0 != Answer::DoesNotHold {
                prop_assert_eq!(wide, narrow);
            }
            let ratios = [1.0 / high, 1.0 / low];
            prop_assert_eq!(said(mirror, ratios[0], ratios[1]), wide, "{} {}", claim, mirror);
        }
    }
}
