//! The verdicts of a run in one sentence.

use super::Report;
use crate::model::{Comparison, Verdict};

/// Verdicts as a sentence has them, what is good first.
const WORDS: [(Verdict, &str); 9] = [
    (Verdict::Faster, "better at"),
    (Verdict::FasterSizeOpen, "better, by an open amount, at"),
    (Verdict::TriviallyFaster, "better, but only trivially, at"),
    (Verdict::Equivalent, "equivalent at"),
    (Verdict::TriviallySlower, "worse, but only trivially, at"),
    (Verdict::SlowerSizeOpen, "worse, by an open amount, at"),
    (Verdict::Slower, "worse at"),
    (Verdict::Undecided, "undecided at"),
    (Verdict::Void, "void at"),
];

/// So many metrics are named; more are counted.
const NAMED_MAX: usize = 4;

/// What was found, of every contender, with the ratio where it is settled.
pub(super) fn answer(report: &Report) -> String {
    let reference = report.plan.reference();
    match report.comparisons {
        [] if report.plan.contenders.len() == 1 => {
            let works = report.plan.workloads.iter();
            works.flat_map(|it| report.sentences(it)).collect::<Vec<_>>().join(" ")
        }
        [] => "Nothing has been compared yet.".into(),
        [only] => report.sentence(only),
        _ => {
            let contenders = report.plan.contenders.iter().filter(|it| it.name != reference);
            let each = contenders.filter_map(|it| found(report, &it.name));
            format!("Against {reference}, {}.", each.collect::<Vec<_>>().join("; "))
        }
    }
}

/// "xfs is better at create_rate (1.20×) and undecided at read_rate".
fn found(report: &Report, contender: &str) -> Option<String> {
    let its: Vec<&Comparison> =
        report.comparisons.iter().filter(|it| it.contender == contender).collect();
    let group = |(verdict, words): (Verdict, &str)| {
        let alike: Vec<&&Comparison> = its.iter().filter(|it| it.verdict == verdict).collect();
        let named = match alike.len() {
            0 => return None,
            count if count == its.len() && count > NAMED_MAX => "everything".into(),
            count if count > NAMED_MAX => format!("{count} of {} metrics", its.len()),
            _ => listed(&alike.iter().map(|it| name(report, it)).collect::<Vec<_>>()),
        };
        Some(format!("{words} {named}"))
    };
    let groups: Vec<String> = WORDS.into_iter().filter_map(group).collect();
    (!groups.is_empty()).then(|| format!("{contender} is {}", joined(&groups)))
}

/// A metric, with its workload where there are several, and the ratio where that is settled.
fn name(report: &Report, comparison: &Comparison) -> String {
    let Comparison { workload, metric, verdict, ratio, .. } = comparison;
    let work = report.plan.workloads.iter().find(|it| it.name == *workload);
    let has_one = work.is_some_and(|work| work.primary().len() == 1);
    let name = match (report.plan.workloads.len(), has_one) {
        (1, _) => metric.clone(),
        (_, true) => workload.clone(),
        _ => format!("{workload}'s {metric}"),
    };
    match (verdict, ratio) {
        (Verdict::Faster | Verdict::Slower, Some(ratio)) => format!("{name} ({ratio:.2}×)"),
        _ => name,
    }
}

/// "a", "a and b", "a, b and c".
pub(super) fn listed(names: &[String]) -> String {
    match names {
        [names @ .., last] if !names.is_empty() => format!("{} and {last}", names.join(", ")),
        _ => names.concat(),
    }
}

/// [`listed`] of parts that have lists in them.
fn joined(parts: &[String]) -> String {
    match parts {
        [parts @ .., last] if !parts.is_empty() => format!("{}, and {last}", parts.join(", ")),
        _ => parts.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_read_as_sentences() {
        let words = |text: &str| text.split(' ').map(String::from).collect::<Vec<_>>();
        assert_eq!(listed(&words("a")), "a");
        assert_eq!(listed(&words("a b")), "a and b");
        assert_eq!(listed(&words("a b c")), "a, b and c");
        assert_eq!(joined(&words("a b c")), "a, b, and c");
        assert_eq!(listed(&[]), "");
    }
}
