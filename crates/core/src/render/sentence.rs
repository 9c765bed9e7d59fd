//! A verdict as a sentence.

use crate::model::{Comparison, Judgement, Percent, Unit, Verdict};

/// One comparison in words, with its interval, below its workload's name. It says only what the
/// interval carries.
pub fn sentence(comparison: &Comparison, judgement: &Judgement) -> String {
    let verdict = verdict(comparison, judgement);
    match &comparison.beaten_by {
        Some(by) => {
            let margin = judgement.margin;
            format!("{verdict} It is out of the race: {by} beats it by more than {margin}.")
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
    let times = format!("{ratio:.2} times as {}", praise(metric, comparison.unit));
    let evidence = evidence(comparison, judgement);
    match comparison.verdict {
        Verdict::Faster | Verdict::Slower => {
            let word = direction(comparison.verdict, metric, comparison.unit);
            format!("{metric}: {contender} is {word} than {reference}, {times} ({evidence}).")
        }
        Verdict::TriviallyFaster | Verdict::TriviallySlower => {
            let word = direction(comparison.verdict, metric, comparison.unit);
            format!(
                "{metric}: {contender} is {word} than {reference}, but by less than {margin}: \
                 {times} ({evidence})."
            )
        }
        Verdict::FasterSizeOpen | Verdict::SlowerSizeOpen => {
            let word = direction(comparison.verdict, metric, comparison.unit);
            format!(
                "{metric}: {contender} is {word} than {reference}, {times}; whether by more than \
                 {margin} is open ({evidence})."
            )
        }
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

/// What a ratio of this metric is a ratio of.
pub(super) fn praise(metric: &str, unit: Unit) -> &'static str {
    let is_cost = ["cpu", "bytes", "processes"].iter().any(|cost| metric.contains(cost));
    match unit {
        Unit::Seconds
        | Unit::Nanoseconds
        | Unit::PerSecond
        | Unit::BytesPerSecond
        | Unit::BitsPerSecond
            if !is_cost =>
        {
            "fast"
        }
        _ => "good",
    }
}

/// What is not fast is good.
pub(super) fn direction(verdict: Verdict, metric: &str, unit: Unit) -> &'static str {
    match (praise(metric, unit), verdict.is_better()) {
        ("fast", true) => "faster",
        ("fast", false) => "slower",
        (_, true) => "better",
        (_, false) => "worse",
    }
}

fn undecided(comparison: &Comparison, evidence: &str) -> String {
    let Comparison { contender, reference, metric, .. } = comparison;
    let visible = match comparison.visible {
        Some(ratio) if ratio < 2.0 => {
            format!("; a difference of {:.0}% would have been seen", (ratio - 1.0) * 100.0)
        }
        Some(_) => "; not even twice the speed would have been seen for certain".into(),
        None => String::new(),
    };
    format!("{metric}: no verdict on {contender} against {reference} ({evidence}){visible}.")
}

fn evidence(comparison: &Comparison, judgement: &Judgement) -> String {
    let interval = interval(judgement.confidence, comparison.low, comparison.high);
    match comparison.runs {
        Some([its, references]) => format!("{interval}, {its} against {references} runs"),
        None => format!("{interval}, {}", rounds(comparison.rounds)),
    }
}

/// The interval of a ratio, or that there is none.
pub(super) fn interval(confidence: Percent, low: f64, high: Option<f64>) -> String {
    match high {
        Some(high) => format!("{confidence} interval {low:.3} to {high:.3}"),
        None => "no interval yet".into(),
    }
}

/// So many rounds.
pub(super) fn rounds(rounds: u32) -> String {
    format!("{rounds} round{}", if rounds == 1 { "" } else { "s" })
}
