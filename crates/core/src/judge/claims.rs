//! What a run says of the claims in its plan: one rule, from the intervals of the verdicts.
//!
//! The intervals of a workload hold together with the declared confidence, whatever they are used
//! for. So claims share the error of the verdicts, and take none of their own. What no verdict
//! compares, another metric, two workloads or two contenders besides the reference, has an interval
//! of its own, and such claims of one workload share one more error.

use std::collections::{BTreeMap, BTreeSet};

use super::audit::guests;
use super::compare::{Judge, voids};
use super::growth;
use super::interval::{Course, Interval};
use super::not_measured::failures;
use super::pairs::Which;
use super::terms::Side;
use super::trials::Trials;
use crate::model::claim::{Answer, Answered, Claim, Claimed, Way};
use crate::model::{
    Better, Compared, Comparison, Entrant, Finding, Growth, Percent, Plan, Record, Unit, Unknown,
    Zeros,
};

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

/// A claim that is undecided, while a run goes on.
#[derive(Clone, Debug, PartialEq)]
pub struct Undecided {
    /// Who is compared: a round that holds all tells more.
    pub entrants: BTreeSet<Entrant>,
    /// After so many rounds it is probably decided; `None` where none or very many would do.
    pub settled_after: Option<u32>,
}

/// The claims that are undecided. One whose direction is known is answered: its exact size would
/// keep most runs going to their end. A claim is given up if its extrapolations are so far apart
/// that no rounds would decide it.
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
        let compared = claim.compared(plan).ok()?;
        let more = rounds_to_settle(claimed, measured, margin);
        if compared.growth.is_some() && measured.high.is_finite() && more.is_none() {
            return None;
        }
        let entrants = compared.entrants();
        Some(Undecided { entrants, settled_after: more.map(|more| measured.rounds + more) })
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
    /// The interval's ends after very many rounds: the ratio, unless it is extrapolated.
    comes_to: [f64; 2],
}

impl Measured {
    /// `None` before the first round that holds both.
    fn of(comparison: &Comparison) -> Option<Measured> {
        let Comparison { ratio, low, high, rounds, .. } = *comparison;
        let (ratio, high) = (ratio?, high.unwrap_or(f64::INFINITY));
        Some(Measured { ratio, low, high, rounds, comes_to: [ratio; 2] })
    }

    /// The same of what no verdict compares.
    fn of_course(course: &Course) -> Option<Measured> {
        let Interval { low, high } = course.interval;
        let (ratio, rounds) = (course.estimate.exp(), course.rounds);
        let [low, high] = [low, high].map(f64::exp);
        (rounds > 0).then_some(Measured { ratio, low, high, rounds, comes_to: [ratio; 2] })
    }

    /// What holds for both: the hull of their intervals.
    fn or(self, other: Measured) -> Measured {
        let [one, two] = [self, other].map(|it| it.comes_to);
        let comes_to = [one[0].min(two[0]), one[1].max(two[1])];
        let (low, high) = (self.low.min(other.low), self.high.max(other.high));
        Measured { low, high, comes_to, ..self }
    }

    /// The measurement from the other contender's side.
    fn mirrored(self) -> Measured {
        let Measured { ratio, low, high, rounds, comes_to: [least, most] } = self;
        let comes_to = [1.0 / most, 1.0 / least];
        Measured { ratio: 1.0 / ratio, low: 1.0 / high, high: 1.0 / low, rounds, comes_to }
    }

    /// The same after so many rounds, if the ratio is the one estimated: the interval shrinks with
    /// the square root of their number.
    fn after(self, rounds: u32) -> Measured {
        let shrunk = (f64::from(self.rounds) / f64::from(rounds)).sqrt();
        let end = |to: f64, end: f64| to * (end / to).powf(shrunk);
        let [least, most] = self.comes_to;
        Measured { low: end(least, self.low), high: end(most, self.high), rounds, ..self }
    }
}

/// Ratios that differ by less are the same.
const EXACT: f64 = 1.0 + 1e-8;

/// An interval's answer to a claim; true: more rounds could change it.
///
/// A claim of a direction holds where its size is within the interval's reach and beyond the
/// margin; its direction alone where that much is known and no more. It does not hold where the
/// interval has nothing of its size, also while the direction is open.
fn answer(claimed: Claimed, measured: Measured, margin: Percent) -> (Answer, bool) {
    let Measured { low, high, .. } = measured;
    let wide = 1.0 + margin.0;
    // A figure that never varies has an interval of almost no width (interval.rs).
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
        let missing = || claim.compared(plan).map(|compared| no_ratio(side, &compared));
        let measured = match self.measured(claim) {
            Ok(Some(measured)) => {
                return extrapolated(settled(blank, claimed, measured, plan), plan);
            }
            Ok(None) => self
                .of_zeros(side, claim, claimed)
                .or_else(|| missing().ok())
                .unwrap_or((Answer::NotMeasurableHere, String::new())),
            Err(answered) => answered,
        };
        let (answer, why) = measured;
        Answered { answer, open: answer == Answer::Undecided, why, ..blank }
    }

    /// The answer for zeros, which have no ratio: only the direction, if one of the two has 0 in
    /// every round and the other surely more.
    fn of_zeros(&self, side: Side, claim: &Claim, claimed: Claimed) -> Option<(Answer, String)> {
        let compared = claim.compared(self.judge.plan()).ok()?;
        let Compared { workload, than, metric, contender, against, growth } = &compared;
        let both = [(workload.name.as_str(), *contender), (than.name.as_str(), *against)];
        let zeros = Zeros::of(side.records, metric, both).filter(|_| growth.is_none())?;
        let why =
            zeros.said(both.map(|(work, name)| if contender == against { work } else { name }));
        let rule = match compared.is_extra(self.judge.plan().reference()) {
            true => self.judge.claim_rule(&workload.name),
            false => self.judge.rules_of(workload).apart(),
        };
        let course = zeros.differences().map(|it| Course::of(&it, rule, 0.0));
        let more = course.filter(|it| it.interval.low > 0.0 || it.interval.high < 0.0);
        let Some(more) = more.map(|it| it.interval.low > 0.0) else {
            let said = || (Answer::NotMeasurableHere, format!("{why}: there is no ratio"));
            return side.run.stop.map(|_| said());
        };
        let (_, better) = self.trials.unit_of(&workload.name, metric);
        let is_better = more == (better == Better::Higher);
        let answer = match claimed.way {
            Way::Better if is_better => Answer::HoldsInDirection,
            Way::Worse if !is_better => Answer::HoldsInDirection,
            _ => Answer::DoesNotHold,
        };
        Some((answer, format!("{why}: the direction is certain, and there is no ratio")))
    }

    /// What was measured for a claim, if anything was; or, if it can't be answered, its answer, and
    /// why.
    fn measured(&self, claim: &Claim) -> Result<Option<Measured>, (Answer, String)> {
        if let Some(why) = &claim.not_measurable {
            return Err((Answer::NotMeasurableHere, why.clone()));
        }
        let plan = self.judge.plan();
        let unmeasured = |unknown: Unknown| (Answer::NotMeasurableHere, unknown.to_string());
        let compared = claim.compared(plan).map_err(unmeasured)?;
        if let Some(flaw) = compared.growth.as_ref().and_then(Growth::flaw) {
            return Err((Answer::NotMeasurableHere, format!("at this scale it {flaw}")));
        }
        if let Some(audit) = self.audit(&compared) {
            return Err((Answer::MeasuredSomethingElse, audit));
        }
        Ok(match &compared.growth {
            Some(growth) => self.grown(&compared, growth),
            None if compared.is_extra(plan.reference()) => self.extra(&compared),
            None => self.judged(&compared),
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
        let Compared { workload, than, metric, contender, against, .. } = compared;
        let both = [(workload.name.as_str(), *contender), (than.name.as_str(), *against)];
        if self.trials.have_zeros(metric, both) {
            return None;
        }
        self.of_rounds(compared, |which| {
            let [one, other] =
                both.map(|(work, name)| self.trials.series(work, metric, name, which));
            one.pairs(other, ..).map(|pair| pair.difference).collect()
        })
    }

    /// By the lines through the ratios of works that grow: what holds for each.
    fn grown(&self, compared: &Compared, growth: &Growth) -> Option<Measured> {
        let Compared { metric, contender, against, .. } = compared;
        let works = &growth.works;
        let have_zeros = |work: &str| {
            let both = [*contender, *against].map(|name| (work, name));
            self.trials.have_zeros(metric, both)
        };
        if works.iter().any(|(work, _)| have_zeros(&work.name)) {
            return None;
        }
        let ratios = |which| {
            let rounds = works.iter().map(|(work, _)| {
                let both = [*contender, *against];
                let [one, other] = self.trials.both(&work.name, metric, both, which);
                one.pairs(other, ..).map(|pair| (pair.round, pair.difference)).collect()
            });
            rounds.collect::<Vec<BTreeMap<u32, f64>>>()
        };
        let counts: Vec<f64> = works.iter().map(|(_, count)| *count as f64).collect();
        let lines = growth::lines(&counts, growth.to as f64);
        let along = |line: &Vec<f64>| {
            self.of_rounds(compared, |which| growth::extrapolated(&ratios(which), line))
        };
        lines.iter().map(along).reduce(|one, other| Some(one?.or(other?)))?
    }

    /// By these differences of ln(goodness), of one round after the other.
    fn of_rounds(
        &self,
        compared: &Compared,
        differences: impl Fn(Which) -> Vec<f64>,
    ) -> Option<Measured> {
        let rule = self.judge.claim_rule(&compared.workload.name);
        let margin = self.judge.margin();
        let course = |which| Course::of(&differences(which), rule, margin);
        let latest = course(Which::Latest);
        // Where rounds were run again, what is said has to hold without that too.
        let mut entrants = compared.entrants().into_iter();
        let has_again = entrants.any(|(work, name)| self.trials.has_again(&work, &name));
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

    /// The finding that voids it, if one does: also that times are those of a virtual machine.
    fn audit(&self, compared: &Compared) -> Option<String> {
        let entrants = compared.entrants();
        let all: Vec<(&str, &str)> =
            entrants.iter().map(|(work, name)| (work.as_str(), name.as_str())).collect();
        let of_times = guests::of_times(self.judge.plan(), self.trials, &all, &compared.metric);
        let voids =
            |it: &&Finding| entrants.iter().any(|(work, name)| voids(it, work, [name.as_str(); 2]));
        let finding = self.findings.iter().find(voids).cloned().or(of_times)?;
        Some(format!("{:?}: {}", finding.audit, finding.evidence))
    }
}

/// Why there is no ratio of the two.
fn no_ratio(side: Side, compared: &Compared) -> (Answer, String) {
    let Compared { workload, metric, .. } = compared;
    let records = side.records;
    let entrants = compared.entrants();
    let failed = |(work, name): &Entrant| {
        let (count, trials, error) = failures(records, work, name)?;
        let all = count == trials;
        let at = if compared.growth.is_some() { format!(" at {work}") } else { String::new() };
        all.then(|| format!("all {trials} trials of {name}{at} failed: {error}"))
    };
    let refused = |(work, name): &Entrant| {
        let phase = workload.phase_of(metric);
        let its = |it: &&Record| it.key.workload == *work && it.key.contender == *name;
        let mut refused = records.iter().filter(its).flat_map(|it| &it.refused);
        refused.find(|it| it.phase == phase).map(|_| format!("{name} has no {}", phase.name()))
    };
    let why = entrants.iter().find_map(failed).or_else(|| entrants.iter().find_map(refused));
    match (why, side.run.stop) {
        (Some(why), _) => (Answer::NotMeasurableHere, why),
        (None, Some(_)) => (Answer::NotMeasurableHere, format!("no round has {metric} of both")),
        (None, None) => (Answer::Undecided, "no round has both yet".into()),
    }
}

/// Says of an answer beyond what was measured that it is one.
fn extrapolated(answered: Answered, plan: &Plan) -> Answered {
    let compared = answered.claim.compared(plan).ok();
    let Some(Growth { works, to }) = compared.and_then(|it| it.growth) else { return answered };
    let most = works.last().map_or(0, |(_, count)| *count);
    let [most, to] = [most, to].map(|count| Unit::Count.format(count as f64));
    let why = format!(
        "extrapolated from {most} to {to}, assuming a power law or no further growth: {}",
        answered.why
    );
    Answered { why, ..answered }
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
            "the interval excludes the claimed size".into()
        }
        Answer::HoldsInDirection => "the size is open".into(),
        Answer::DoesNotHold if open => {
            "the interval excludes the claimed size; the direction is open".into()
        }
        Answer::DoesNotHold if claimed.excludes(low, high) => {
            "the interval excludes the claim".into()
        }
        Answer::DoesNotHold => format!("no difference in that direction reaches {margin}"),
        Answer::TooSmallToMatter if claimed.excludes(low, high) => {
            format!("any difference is under {margin}, and not the claimed one")
        }
        Answer::TooSmallToMatter => format!("any difference is under {margin}"),
        _ => "the interval fits the claim only in part".into(),
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
    use crate::model::{Failure, Outcome, Sample, Stop, Verdict};

    const MARGIN: Percent = Percent(0.05);

    fn claimed(text: &str) -> Claimed {
        let claim: Claim = toml::from_str(&format!("text = \"x\"\n{text}")).unwrap();
        claim.claimed(MARGIN)
    }

    fn measured(ratio: f64, low: f64, high: f64) -> Measured {
        Measured { ratio, low, high, rounds: 6, comes_to: [ratio; 2] }
    }

    fn said(text: &str, low: f64, high: f64) -> (Answer, bool) {
        answer(claimed(text), measured((low * high).sqrt(), low, high), MARGIN)
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
    fn zeros_tell_the_direction_or_are_counted() {
        let of = |is: &str| format!("contender = \"b\"\nworkload = \"w\"\nis = \"{is}\"");
        let texts = ["better", "worse", "equal"].map(of);
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let zero = |rounds: u32| {
            move |record: &mut Record| {
                let is_zero = record.key.contender == "b" && record.key.round <= rounds;
                let value = if is_zero { 0.0 } else { 1.0 + f64::from(record.key.round % 3) };
                let is_its = record.key.contender == "b" || rounds == 12;
                record.samples = match is_its {
                    true => vec![Sample::lower("wall_time", value, Unit::Seconds)],
                    false => vec![Sample::lower("wall_time", 0.0, Unit::Seconds)],
                };
            }
        };
        let apart = answers(&texts, zero(12));
        let said: Vec<Answer> = apart.iter().map(|it| it.answer).collect();
        use Answer::{DoesNotHold, HoldsInDirection, NotMeasurableHere};
        assert_eq!(said, [HoldsInDirection, DoesNotHold, DoesNotHold]);
        let why = "b was 0 in 12 of 12 rounds, a in none: the direction is certain, and there is \
                   no ratio";
        assert_eq!(apart[0].why, why);
        let some = answers(&texts[..1], zero(5)).remove(0);
        assert_eq!(some.answer, NotMeasurableHere);
        assert_eq!(some.why, "b was 0 in 5 of 12 rounds, a in 12: there is no ratio");
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

    /// The answers after twelve rounds, in which a contender takes so many seconds of time, give or
    /// take a percent, and so many of the processor's for a work.
    fn after_twelve(plan: &Plan, takes: impl Fn(&str, &str) -> (f64, f64)) -> Vec<Answered> {
        let trial = |round: u32, work: &str, name: &str| {
            let noise = 1.0 + f64::from((round * 7 + name.len() as u32) % 5) / 500.0;
            let (seconds, cpu) = takes(work, name);
            let samples = vec![
                Sample::lower("wall_time", noise * seconds, Unit::Seconds),
                Sample::lower("cpu_time", cpu, Unit::Seconds),
            ];
            Record { samples, ..record(round, work, name) }
        };
        let mut records = Vec::new();
        for (round, work) in (1..=12).flat_map(|it| plan.workloads.iter().map(move |w| (it, w))) {
            let names = plan.contenders.iter();
            records.extend(names.map(|contender| trial(round, &work.name, &contender.name)));
        }
        let mut run = run("run", &[]);
        run.stop = Some(Stop::Rounds);
        let side = Side { run: &run, plan, records: &records };
        let judge = Judge::new(plan);
        let mut fold = Fold::of(&judge, &records);
        let comparisons = fold.comparisons();
        fold.claims(side, &comparisons, &[])
    }

    #[test]
    fn what_grows_is_extrapolated() {
        let work = |name: &str, operations: u32| {
            format!(
                "[[workload]]\nname = \"{name}\"\ncommand = \"true\"\ncache = \"warm\"\n\
                 operations = {operations}\n"
            )
        };
        let claim = |rest: &str| {
            let growth = "growth = [\"few\", \"more\", \"most\"]\nto = 10000000";
            format!("[[claim]]\ntext = \"x\"\ncontender = \"b\"\n{growth}\n{rest}\n")
        };
        let text = [
            "[[contender]]\nname = \"a\"\n[[contender]]\nname = \"b\"\n".into(),
            work("few", 1000) + &work("more", 10_000) + &work("most", 100_000),
            claim("times = 5") + &claim("metric = \"cpu_time\"\nis = \"better\""),
        ];
        let plan = plan(&text.concat());
        let answers = after_twelve(&plan, |work, name| {
            let count = [("few", 1e3), ("more", 1e4), ("most", 1e5)];
            let count: f64 = count.iter().find(|it| it.0 == work).unwrap().1;
            // b's time is n^0.9. A part of its processor's time does not grow: it is soon lost.
            let cpu = if name == "b" { 0.1 * count + 1000.0 } else { 0.1 * count };
            (count.powf(if name == "b" { 0.9 } else { 1.0 }), cpu)
        });
        let [time, cpu] = &answers[..] else { panic!("{answers:?}") };
        assert_eq!(time.answer, Answer::HoldsInDirection, "{time:?}");
        let begin = "extrapolated from 100,000 to 10,000,000, assuming a power law";
        assert!(time.why.starts_with(begin), "{time:?}");
        // 10^0.7, or as at the largest work, 10^0.5.
        let [ratio, low, high] = time.measured.unwrap();
        assert!((ratio - 10f64.powf(0.7)).abs() < 0.1 && ratio <= high && high < 5.2, "{time:?}");
        assert!(low <= 10f64.sqrt() + 1e-9 && low > 3.1, "{time:?}");
        // In truth it is 0.999 there. Both lines are above that by far, but the growth may end, and
        // no number of rounds would settle that.
        let [_, low, high] = cpu.measured.unwrap();
        assert!(low < 0.91 && high > 3.0, "{cpu:?}");
        assert_eq!((cpu.answer, cpu.rounds_to_settle), (Answer::Undecided, None), "{cpu:?}");
    }

    #[test]
    fn what_no_verdict_compares_has_an_interval_of_its_own() {
        let other = "[[workload]]\nname = \"v\"\ncommand = \"true\"\ncache = \"warm\"\n";
        let of_works = "contender = \"b\"\nworkload = \"v\"\nthan = \"w\"\ntimes = 0.5";
        let of_metric = "contender = \"b\"\nworkload = \"w\"\nmetric = \"cpu_time\"\ntimes = 2";
        let missing = "contender = \"b\"\nworkload = \"w\"\nmetric = \"iops\"\ntimes = 2";
        let claims = [other.to_string()].into_iter().chain(
            [of_works, of_metric, missing].map(|it| format!("[[claim]]\ntext = \"x\"\n{it}\n")),
        );
        let plan = plan(&format!("{PLAN}{}", claims.collect::<String>()));
        let answers = after_twelve(&plan, |work, name| {
            let cpu = if name == "b" { 0.5 } else { 1.0 };
            (if work == "v" { 2.0 } else { 1.0 }, cpu)
        });
        let said: Vec<_> = answers.iter().map(|it| (it.answer, it.why.as_str())).collect();
        assert_eq!(said[..2], [(Answer::Holds, "the whole interval is within what is claimed"); 2]);
        assert_eq!(said[2], (Answer::NotMeasurableHere, "no round has iops of both"));
    }

    #[test]
    fn what_was_not_measured_says_what_was_missing() {
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
        let open = measured(1.1, 0.9, 1.1 * 1.1 / 0.9);
        let better = claimed("is = \"better\"");
        let more = rounds_to_settle(better, open, MARGIN).unwrap();
        assert!(!answer(better, open.after(6 + more), MARGIN).1);
        assert!(answer(better, open.after(5 + more), MARGIN).1);
        let at_its_edge = measured(1.05, 0.9, 1.05 * 1.05 / 0.9);
        assert_eq!(rounds_to_settle(better, at_its_edge, MARGIN), None);
        let unbounded = Measured { low: 0.0, high: f64::INFINITY, ..open };
        assert_eq!(rounds_to_settle(better, unbounded, MARGIN), None);
    }

    #[test]
    fn two_lines_that_part_don_t_come_together_with_more_rounds() {
        let both = measured(1.2, 1.1, 1.3).or(measured(0.9, 0.8, 1.0));
        assert_eq!((both.ratio, both.low, both.high), (1.2, 0.8, 1.3));
        let after = both.after(1_000_000);
        assert!(after.low > 0.89 && after.low < 0.9 && after.high > 1.2, "{after:?}");
        assert_eq!(rounds_to_settle(claimed("is = \"better\""), both, MARGIN), None);
        let mirrored = both.mirrored();
        assert_eq!(mirrored.comes_to, [1.0 / 1.2, 1.0 / 0.9]);
        assert_eq!([mirrored.low, mirrored.high], [1.0 / 1.3, 1.0 / 0.8]);
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
