//! Published figures beside measured ones.

use crate::model::{Agreement, Beside, Comparison, Plan, Published, Verdict};

/// Every published figure of the plan's study but the reference's, beside the comparison that
/// answers it.
pub fn beside(plan: &Plan, comparisons: &[Comparison]) -> Vec<Beside> {
    let reference = plan.reference();
    let mut rows = Vec::new();
    for published in &plan.published {
        for contender in plan.contenders.iter().filter(|c| c.name != reference) {
            rows.extend(row(plan, published, &contender.name, comparisons));
        }
    }
    rows
}

fn row(
    plan: &Plan,
    published: &Published,
    contender: &str,
    comparisons: &[Comparison],
) -> Option<Beside> {
    let reference = plan.reference();
    let ratio = published.ratio(contender, reference)?;
    let measured = comparisons.iter().find(|c| {
        c.workload == published.workload
            && published.metric.as_ref() == Some(&c.metric)
            && c.contender == contender
    });
    let margin = 1.0 + plan.judgement.margin.0;
    let (agreement, why) = match (&published.not_comparable, measured) {
        (Some(why), _) => (Agreement::NotComparable, why.clone()),
        (None, None) => (Agreement::NotComparable, "it is not judged here".into()),
        (None, Some(comparison)) => compare(ratio, comparison, margin),
    };
    let word = match agreement {
        Agreement::Agrees => "agrees",
        Agreement::Differs => "differs",
        Agreement::NotComparable => "not comparable",
    };
    Some(Beside {
        workload: published.workload.clone(),
        column: published.column.clone(),
        contender: contender.into(),
        reference: reference.into(),
        printed: [*published.printed.get(contender)?, *published.printed.get(reference)?],
        published_ratio: ratio,
        measured: measured.and_then(|c| Some([c.ratio?, c.low, c.high?])),
        agreement,
        sentence: format!("{word}: {why}"),
    })
}

/// The rank that a ratio or a verdict gives the contender.
#[derive(Clone, Copy, PartialEq)]
enum Rank {
    Ahead,
    Alike,
    Behind,
}

impl Rank {
    fn word(self) -> &'static str {
        match self {
            Rank::Ahead => "ahead",
            Rank::Alike => "alike",
            Rank::Behind => "behind",
        }
    }
}

fn compare(published: f64, comparison: &Comparison, margin: f64) -> (Agreement, String) {
    let rank = match published {
        ratio if ratio > margin => Rank::Ahead,
        ratio if ratio < 1.0 / margin => Rank::Behind,
        _ => Rank::Alike,
    };
    let measured = match comparison.verdict {
        Verdict::Void => return (Agreement::NotComparable, "void here, see the findings".into()),
        Verdict::Undecided => return (Agreement::NotComparable, "undecided here".into()),
        Verdict::Faster | Verdict::FasterSizeOpen => Rank::Ahead,
        Verdict::Slower | Verdict::SlowerSizeOpen => Rank::Behind,
        Verdict::TriviallyFaster | Verdict::TriviallySlower | Verdict::Equivalent => Rank::Alike,
    };
    let within = published >= comparison.low && comparison.high.is_some_and(|h| published <= h);
    let text = match rank == measured {
        true => format!("{} in both", rank.word()),
        false => format!("{} as published, {} here", rank.word(), measured.word()),
    };
    match within || rank == measured {
        true if within => (Agreement::Agrees, format!("{text}, and the ratio fits the interval")),
        true => (Agreement::Agrees, format!("{text}, by another ratio")),
        false => (Agreement::Differs, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Better, Unit};

    fn measured(low: f64, high: f64, verdict: Verdict) -> Comparison {
        Comparison {
            workload: "w".into(),
            metric: "iops".into(),
            unit: Unit::PerSecond,
            better: Better::Higher,
            contender: "xfs".into(),
            reference: "ext4".into(),
            ratio: Some((low * high).sqrt()),
            low,
            high: Some(high),
            rounds: 8,
            verdict,
            median: None,
            reference_median: None,
            moved: false,
            sharing: 1,
            exact: false,
            outlying: Vec::new(),
            widened: None,
            visible: None,
            rounds_to_settle: None,
            seconds_to_settle: None,
            beaten_by: None,
            runs: None,
        }
    }

    #[test]
    fn rank_and_ratio_are_compared() {
        let of =
            |published, low, high, verdict| compare(published, &measured(low, high, verdict), 1.05);
        assert_eq!(of(0.775, 0.7, 0.8, Verdict::Slower).0, Agreement::Agrees);
        assert_eq!(of(0.775, 0.4, 0.5, Verdict::Slower).0, Agreement::Agrees);
        let (agreement, why) = of(0.775, 0.98, 1.02, Verdict::Equivalent);
        assert_eq!(agreement, Agreement::Differs);
        assert_eq!(why, "behind as published, alike here");
        assert_eq!(of(0.775, 0.5, 1.5, Verdict::Undecided).0, Agreement::NotComparable);
        assert_eq!(of(0.775, 0.7, 0.8, Verdict::Void).0, Agreement::NotComparable);
    }
}
