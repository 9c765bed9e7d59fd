//! A5: a figure of the conclusion that the tables don't hold.

use super::cells::{Cell, Cells};
use super::reach::Reach;
use crate::model::{Audit, Claim, Claimed, Finding, Printed, Severity, Test};

/// How many figures are shown instead.
const SHOWN: usize = 3;

/// What of `claim` the tests do not hold; one finding for all of it.
pub fn finding(claim: &Claim, tests: &[Test]) -> Option<Finding> {
    let figures = claim.figures.iter();
    let mut missing: Vec<String> = figures
        .filter_map(|(heading, figure)| figure_lacks(claim, tests, heading, figure))
        .collect();
    let changes = claim.changes.iter();
    missing.extend(changes.filter_map(|(heading, it)| change_lacks(claim, tests, heading, it)));
    (!missing.is_empty()).then(|| Finding {
        audit: Audit::A5,
        severity: Severity::Warning,
        workload: claim.test.clone(),
        contender: claim.contender.clone(),
        evidence: format!("\"{}\": {}", claim.text, missing.join("; ")),
        advice: "ask where the figure comes from: it does not follow from what was measured".into(),
    })
}

/// The figures below `heading` that the claim may be about, test by test.
fn columns<'a>(claim: &Claim, tests: &'a [Test], heading: &str) -> Vec<Vec<(&'a str, Cell<'a>)>> {
    let about = |test: &&Test| claim.test.as_ref().is_none_or(|name| *name == test.name);
    let cells = |test: &'a Test| {
        let below = Cells::of(test).filter_map(|cells| {
            let mut all = cells.all();
            Some((cells.row.contender.as_str(), all.find(|it| it.column.heading == heading)?))
        });
        below.collect::<Vec<_>>()
    };
    tests.iter().filter(about).map(cells).filter(|cells| !cells.is_empty()).collect()
}

fn is_about(claim: &Claim, contender: &str) -> bool {
    claim.contender.as_ref().is_none_or(|name| name == contender)
}

fn figure_lacks(claim: &Claim, tests: &[Test], heading: &str, figure: &Printed) -> Option<String> {
    let columns = columns(claim, tests, heading);
    let cells = || columns.iter().flatten().filter(|(name, _)| is_about(claim, name));
    let holds = |(_, cell): &(&str, Cell)| !Reach::of(figure, cell.column).misses(cell.reach());
    if cells().any(holds) {
        return None;
    }
    let instead: Vec<String> =
        cells().take(SHOWN).map(|(_, cell)| cell.figure.text.clone()).collect();
    let dots = if cells().count() > SHOWN { ", ..." } else { "" };
    Some(match instead.is_empty() {
        true => format!("no table has {heading}"),
        false => format!(
            "{heading} {} is in no table, which {} {}{dots}",
            figure.text,
            if instead.len() == 1 { "has" } else { "have" },
            instead.join(", ")
        ),
    })
}

fn change_lacks(claim: &Claim, tests: &[Test], heading: &str, change: &Claimed) -> Option<String> {
    let columns = columns(claim, tests, heading);
    let mut instead = Vec::new();
    for column in &columns {
        for (contender, cell) in column.iter().filter(|(name, _)| is_about(claim, name)) {
            let is_other =
                |name: &str| claim.against.as_ref().map_or(name != *contender, |it| it == name);
            for (other, base) in column.iter().filter(|(name, _)| is_other(name)) {
                let ratio = cell.reach().over(base.reach());
                if ratio.low <= change.ratios.1 && change.ratios.0 <= ratio.high {
                    return None;
                }
                let printed = cell.figure.value / base.figure.value;
                instead.push(format!("{:+.1}% over {other}", (printed - 1.0) * 1e2));
            }
        }
    }
    let dots = if instead.len() > SHOWN { ", ..." } else { "" };
    instead.truncate(SHOWN);
    Some(match instead.is_empty() {
        true => format!("no table has {heading}"),
        false => format!(
            "{} of {heading} follows from no table; {}{dots}",
            change.text,
            instead.join(", ")
        ),
    })
}
