//! A verdict as a sentence.

use std::collections::BTreeMap;

use super::words::{beyond, counted, from_to};
use crate::model::{
    Comparison, Judgement, Percent, Record, Sample, Verdict, median, median_interval, precise,
};

/// One comparison in words, with its interval, below its workload's name. It says only what the
/// interval carries.
pub fn sentence(comparison: &Comparison, judgement: &Judgement) -> String {
    let verdict = verdict(comparison, judgement);
    match &comparison.beaten_by {
        Some(by) => {
            let margin = judgement.margin;
            format!("{verdict} It gets no more trials: {by} beats it by more than {margin}.")
        }
        None => verdict,
    }
}

fn verdict(comparison: &Comparison, judgement: &Judgement) -> String {
    let Comparison { contender, reference, metric, .. } = comparison;
    let margin = judgement.margin;
    let Some(ratio) = comparison.ratio else {
        let never = match comparison.runs {
            Some(_) => "not both measured",
            None => "never measured in one round",
        };
        return format!("{metric}: {contender} and {reference} were {never}.");
    };
    let words = comparison.words();
    let (than, times) = (words.than(comparison.verdict), words.times(ratio));
    let evidence = evidence(comparison, judgement);
    match comparison.verdict {
        Verdict::Faster | Verdict::Slower => {
            format!("{metric}: {contender} {than} {reference}, {times} ({evidence}).")
        }
        Verdict::TriviallyFaster | Verdict::TriviallySlower => format!(
            "{metric}: {contender} {than} {reference}, but by less than {margin}: {times} \
             ({evidence})."
        ),
        Verdict::FasterSizeOpen | Verdict::SlowerSizeOpen => format!(
            "{metric}: {contender} {than} {reference}, {times}; whether by more than {margin} is \
             open ({evidence}){}.",
            to_settle(comparison)
        ),
        Verdict::Equivalent => format!(
            "{metric}: {contender} and {reference} are equivalent, any difference is under \
             {margin} ({evidence})."
        ),
        Verdict::Undecided => undecided(comparison, &evidence),
        Verdict::Void => format!(
            "{metric}: void, this did not measure {contender} against {reference}; see the \
             findings."
        ),
    }
}

fn undecided(comparison: &Comparison, evidence: &str) -> String {
    let Comparison { contender, reference, metric, .. } = comparison;
    let visible = match comparison.visible {
        Some(ratio) if ratio < 2.0 => {
            // One that isn't 1 is not shown as 1.
            let shown = [2, 3, 4, 5].map(|decimals| format!("{ratio:.decimals$}"));
            let shown = shown.into_iter().find(|it| it.parse() != Ok(1.0));
            let shown = shown.unwrap_or_else(|| "1.00001".into());
            format!("; four of five such runs would have shown a ratio of {shown}")
        }
        Some(_) => "; more than one of five such runs would have missed a factor of two".into(),
        None => String::new(),
    };
    let more = to_settle(comparison);
    format!("{metric}: no verdict on {contender} against {reference} ({evidence}){visible}{more}.")
}

/// What would probably settle it, where that is known.
fn to_settle(comparison: &Comparison) -> String {
    let Some(more) = comparison.rounds_to_settle else { return String::new() };
    let what = match comparison.runs {
        Some(_) => format!("{} of each", counted(more as usize, "run")),
        None => rounds(more),
    };
    format!("; some {what} more would probably decide")
}

fn evidence(comparison: &Comparison, judgement: &Judgement) -> String {
    /// Less is what chance makes of independent rounds.
    const WIDE: f64 = 2.0;
    let Comparison { low, high, sharing, .. } = *comparison;
    let mut evidence = match (comparison.exact, comparison.ratio) {
        (true, Some(ratio)) => format!("exactly {} in every trial", precise(ratio)),
        _ => interval(judgement.confidence, sharing, low, high),
    };
    evidence += &match comparison.runs {
        Some([its, references]) => format!(", {its} against {references} runs"),
        None => format!(", {}", rounds(comparison.rounds)),
    };
    evidence += &outlying(&comparison.outlying);
    if let Some(widened) = comparison.widened.filter(|widened| *widened >= WIDE) {
        let because = "because each round resembles the one before";
        evidence += &format!("; {widened:.1} times as wide as usual, {because}");
    }
    evidence
}

/// After the number of rounds: which of them are set aside.
pub(super) fn outlying(rounds: &[u32]) -> String {
    match rounds {
        [] => String::new(),
        [round] => format!("; round {round} is an outlier"),
        several => {
            let names: Vec<String> = several.iter().map(ToString::to_string).collect();
            format!("; rounds {} are outliers", names.join(", "))
        }
    }
}

/// The interval of a ratio with what it holds for, or that there is none.
pub(super) fn interval(confidence: Percent, sharing: u32, low: f64, high: Option<f64>) -> String {
    let Some(high) = high else { return "no interval yet".into() };
    let ends = from_to(low, high, precise);
    match sharing {
        _ if beyond(low, high) == [true, true] => format!("so few rounds say nothing: {ends}"),
        0..=1 => format!("{confidence} interval {ends}"),
        all => format!("interval {ends}, {confidence} for all {all} together"),
    }
}

/// The figures of a contender that is compared with none.
pub(super) fn alone(
    contender: &str,
    metric: &str,
    trials: &[&Record],
    confidence: Percent,
) -> String {
    // If a trial was run again the later record counts.
    let is_its = |it: &&Record| it.is_measured() && it.key.contender == contender;
    let measured = trials.iter().copied().filter(is_its);
    let figures: BTreeMap<u32, &Sample> =
        measured.filter_map(|it| Some((it.key.round, it.sample(metric)?))).collect();
    let values = || figures.values().map(|sample| sample.value);
    let Some((middle, sample)) = median(values()).zip(figures.values().next()) else {
        return format!("{metric}: {contender} was never measured.");
    };
    let shown = |value| sample.unit.format(value);
    let interval = match median_interval(values(), confidence.0) {
        Some([low, high]) => {
            format!("{confidence} interval {} to {}", shown(low), shown(high))
        }
        None => "too few rounds for an interval".into(),
    };
    let rounds = rounds(figures.len() as u32);
    format!(
        "{metric}: the median of {contender} is {} ({interval}, {rounds}); there is nothing to \
         compare it with.",
        shown(middle)
    )
}

/// So many rounds.
pub(super) fn rounds(rounds: u32) -> String {
    counted(rounds, "round")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::judge::Judge;
    use crate::judge::testing::{plan, record};
    use crate::model::{Plan, Unit};

    const PLAN: &str = "[[contender]]\nname = \"a\"\n[[contender]]\nname = \"b\"\n\
                        [[workload]]\nname = \"w\"\ncommand = \"true\"\ncache = \"warm\"\n";

    /// Rounds in which b takes these times of what a takes.
    fn judged(plan: &Plan, times: &[f64]) -> (Comparison, String) {
        let trial = |round: usize, name: &str, seconds| {
            let samples = vec![Sample::lower("wall_time", seconds, Unit::Seconds)];
            Record { samples, ..record(round as u32 + 1, "w", name) }
        };
        let round =
            |(round, times): (usize, &f64)| [trial(round, "a", 1.0), trial(round, "b", *times)];
        let records: Vec<Record> = times.iter().enumerate().flat_map(round).collect();
        let comparison = Judge::new(plan).comparisons(&records).swap_remove(0);
        let sentence = sentence(&comparison, &plan.judgement);
        (comparison, sentence)
    }

    #[test]
    fn what_was_set_aside_and_what_more_would_take_is_said() {
        let plan = plan(PLAN);
        let quiet = [0.80, 0.81, 0.79, 0.80, 0.81, 0.80, 0.79, 9.0];
        let (_, sentence) = judged(&plan, &quiet);
        assert!(sentence.contains("8 rounds; round 8 is an outlier"), "{sentence}");
        let (_, exact) = judged(&plan, &[0.8; 5]);
        assert_eq!(
            exact,
            "wall_time: b is faster than a, 1.250 times as fast (exactly 1.250 in every trial, \
             5 rounds)."
        );
        let (_, open) = judged(&plan, &[1.2, 0.8, 1.1, 0.9, 1.2, 0.8, 1.1, 0.9]);
        assert!(open.contains("; four of five such runs would have shown a ratio of "), "{open}");
        assert!(open.ends_with("rounds more would probably decide."), "{open}");
    }

    #[test]
    fn what_would_have_been_seen_is_a_ratio_and_never_1() {
        let judgement = Judgement::default();
        let (open, _) = judged(&plan(PLAN), &[1.2, 0.8, 1.1, 0.9, 1.2, 0.8, 1.1, 0.9]);
        let said = |visible| {
            let it = Comparison { visible: Some(visible), ..open.clone() };
            sentence(&it, &judgement)
        };
        assert!(said(1.3).contains("would have shown a ratio of 1.30;"), "{}", said(1.3));
        assert!(said(1.004).contains("shown a ratio of 1.004;"), "{}", said(1.004));
        let far = "; more than one of five such runs would have missed a factor of two";
        assert!(said(3.0).contains(far), "{}", said(3.0));
    }

    #[test]
    fn a_ratio_of_little_has_figures_too() {
        assert_eq!(
            interval(Percent(0.95), 1, 0.0016, Some(0.0018)),
            "95% interval 0.00160 to 0.00180"
        );
        let (_, exact) = judged(&plan(PLAN), &[3000.0; 5]);
        assert!(exact.contains("0.000333 times as fast (exactly 0.000333 in every"), "{exact}");
    }

    #[test]
    fn an_interval_says_for_how_many_it_holds() {
        let all = Percent(0.95);
        assert_eq!(interval(all, 1, 0.5, Some(2.0)), "95% interval 0.500 to 2.000");
        let shared = "interval 0.500 to 2.000, 95% for all 14 together";
        assert_eq!(interval(all, 14, 0.5, Some(2.0)), shared);
        let wide = "95% interval 0.900 to over 1,000";
        assert_eq!(interval(all, 1, 0.9, Some(1e31)), wide);
        let nothing = "so few rounds say nothing: under 0.001 to over 1,000";
        assert_eq!(interval(all, 14, 1e-19, Some(1e31)), nothing);
    }

    #[test]
    fn who_is_alone_has_a_median_and_its_interval() {
        let trial = |round: u32| {
            let samples = vec![Sample::lower("wall_time", f64::from(round), Unit::Seconds)];
            Record { samples, ..record(round, "w", "a") }
        };
        let records: Vec<Record> = (1..=12).map(trial).collect();
        let trials: Vec<&Record> = records.iter().collect();
        let said = alone("a", "wall_time", &trials, Percent(0.95));
        let shown = |seconds| Unit::Seconds.format(seconds);
        assert!(said.contains(&format!("is {} (95% interval", shown(6.5))), "{said}");
        assert!(said.contains(&format!("{} to {}, 12 rounds)", shown(3.0), shown(10.0))), "{said}");
        let few = alone("a", "wall_time", &trials[..4], Percent(0.95));
        assert!(few.contains("too few rounds"), "{few}");
        assert!(alone("a", "iops", &trials, Percent(0.95)).contains("never measured"));
    }

    /// What the sentence claims.
    fn claims(sentence: &str) -> Verdict {
        let says = |part: &str| sentence.contains(part);
        match () {
            () if says("no verdict") => Verdict::Undecided,
            () if says("equivalent") => Verdict::Equivalent,
            () if says("faster") && says("by less than") => Verdict::TriviallyFaster,
            () if says("slower") && says("by less than") => Verdict::TriviallySlower,
            () if says("faster") && says("is open") => Verdict::FasterSizeOpen,
            () if says("slower") && says("is open") => Verdict::SlowerSizeOpen,
            () if says("faster") => Verdict::Faster,
            () => Verdict::Slower,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        /// As printed: the ratio lies in the interval, the verdict is what the interval says, and
        /// the sentence says the verdict.
        #[test]
        fn a_sentence_says_one_thing(
            size in prop::sample::select(vec![0.8, 0.96, 1.0, 1.05, 1.2]),
            noise in prop::sample::select(vec![0.0, 0.003, 0.03, 0.3]),
            draws in prop::collection::vec(-1.0..1.0f64, 1..12),
            stall in (0..12usize, 0.2..20.0f64),
        ) {
            static PLANNED: std::sync::LazyLock<Plan> = std::sync::LazyLock::new(|| plan(PLAN));
            let mut times: Vec<f64> = draws.iter().map(|it| size * (noise * it).exp()).collect();
            if let Some(time) = times.get_mut(stall.0) {
                *time *= stall.1;
            }
            let (comparison, sentence) = judged(&PLANNED, &times);
            prop_assert_eq!(claims(&sentence), comparison.verdict, "{}", sentence);
            let printed = |value: f64| precise(value).parse::<f64>().unwrap();
            let (ratio, low) = (printed(comparison.ratio.unwrap()), printed(comparison.low));
            prop_assert!(low <= ratio, "{}", sentence);
            prop_assert!(comparison.high.is_none_or(|high| ratio <= printed(high)), "{}", sentence);
            let longest = sentence.split(' ').map(str::len).max();
            prop_assert!(longest < Some(16), "{}", sentence);
            let said = format!("{} times as fast", precise(comparison.ratio.unwrap()));
            let claims_ratio = comparison.verdict != Verdict::Undecided
                && comparison.verdict != Verdict::Equivalent;
            prop_assert_eq!(sentence.contains(&said), claims_ratio, "{}", sentence);
        }
    }
}
