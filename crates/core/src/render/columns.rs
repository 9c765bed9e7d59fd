//! What each level of a second way, a layer or a kernel, changes: every file system against itself
//! in the reference's column. The intervals of two comparisons hold together, and so does that of
//! their difference, which reaches from the low end of one minus the high end of the other to the
//! high end of one minus the low end of the other.

use super::Report;
use super::findings::is_unequal;
use super::matrix::{Compared, Matrix, Tone};
use super::ways::{Ends, Ways, ends};
use super::words::{self, listed, quoted};

/// One file system at one test, in a column.
struct Change {
    row: usize,
    test: usize,
    tone: Tone,
    ratio: f64,
}

/// Sentences of what the columns change, the one that says the most first.
pub(super) fn heads(
    report: &Report,
    matrix: &Matrix,
    ways: &Ways,
    all: &[Compared],
) -> Vec<String> {
    let name = |place: &usize| report.plan.contenders[*place].name == report.plan.reference();
    let base = ways.places.iter().find_map(|row| row.iter().position(name)).unwrap_or(0);
    let of = |column| changes(report, ways, all, [column, base]);
    let others = (0..ways.columns.len()).filter(|it| *it != base);
    let changed: Vec<(usize, Vec<Change>)> = others.map(|it| (it, of(it))).collect();
    if changed.iter().all(|(_, its)| its.is_empty()) {
        return Vec::new();
    }
    let told = |is_named| {
        let mut clauses: Vec<((String, bool), Vec<String>)> = Vec::new();
        for (column, its) in &changed {
            let its_places = ways.places.iter().map(|row| row[*column]);
            let names = its_places.map(|place| report.plan.contenders[place].name.as_str());
            let is_unequal = names.into_iter().all(|it| is_unequal(report.findings, it));
            let clause = (clause(matrix, ways, its, is_named), is_unequal);
            let column = ways.columns[*column].clone();
            match clauses.iter_mut().find(|(said, _)| *said == clause) {
                Some((_, columns)) => columns.push(column),
                None => clauses.push((clause, vec![column])),
            }
        }
        let said = clauses.iter().map(|((clause, is_unequal), columns)| {
            let are = if columns.len() == 1 { "is" } else { "are each" };
            let terms = if *is_unequal { ", on unequal terms," } else { "" };
            format!("{}{terms} {are} {clause}", listed(columns))
        });
        let said: Vec<String> = said.collect();
        let base = &ways.columns[base];
        format!("Against {base} on the same {}, {}.", ways.first, said.join("; "))
    };
    [true, false].map(told).into()
}

/// The changes of each file system at each test, as far as both were measured.
fn changes(
    report: &Report,
    ways: &Ways,
    all: &[Compared],
    [column, base]: [usize; 2],
) -> Vec<Change> {
    let tests = all.iter().map(|(test, _)| test + 1).max().unwrap_or(0);
    let cell = |test: usize, place: usize| -> Option<(f64, Ends)> {
        let name = report.plan.contenders[place].name.as_str();
        if name == report.plan.reference() {
            return Some((1.0, [0.0; 2]));
        }
        let its = all.iter().find(|(at, it)| *at == test && it.contender == name);
        its.and_then(|(_, it)| Some((it.ratio?, ends(it))))
    };
    let margin = report.plan.judgement.margin.0.ln_1p();
    let each = (0..tests).flat_map(|test| (0..ways.rows.len()).map(move |row| (test, row)));
    let change = |(test, row): (usize, usize)| {
        let (one, [low, high]) = cell(test, ways.places[row][column])?;
        let (other, [its_low, its_high]) = cell(test, ways.places[row][base])?;
        let (low, high) = (low - its_high, high - its_low);
        let tone = if low > margin {
            Tone::Better
        } else if high < -margin {
            Tone::Worse
        } else if low > -margin && high < margin {
            Tone::Alike
        } else {
            Tone::Open
        };
        Some(Change { row, test, tone, ratio: one / other })
    };
    each.filter_map(change).collect()
}

/// "worse at 4 of 9 (0.52-0.67×)"; one that is alone is named where that is asked for.
fn clause(matrix: &Matrix, ways: &Ways, all: &[Change], is_named: bool) -> String {
    let total = all.len();
    let ratio = |it: &Change| words::ratio_by(it.ratio, matrix.margin);
    let part = |(tone, word): (Tone, &str)| {
        let mut its: Vec<&Change> = all.iter().filter(|it| it.tone == tone).collect();
        its.sort_by(|one, other| one.ratio.total_cmp(&other.ratio));
        let (first, last) = (its.first()?, its.last()?);
        let span = match (ratio(first), ratio(last)) {
            (one, other) if one == other => one,
            (one, other) => format!("{one}-{other}"),
        };
        let place = match its.as_slice() {
            [only] if is_named => {
                let doing = quoted(&matrix.tests[only.test].doing);
                let is_open = all.iter().any(|it| it.tone == Tone::Open);
                let alone = if is_open { format!(", 1 of {total}") } else { " alone".into() };
                format!("{doing} on {}{alone}", ways.rows[only.row])
            }
            its => format!("{} of {total}", its.len()),
        };
        Some(format!("{word} at {place} ({span}×)"))
    };
    let parts = [(Tone::Better, "better"), (Tone::Worse, "worse")];
    let parts: Vec<String> = parts.into_iter().filter_map(part).collect();
    match parts.is_empty() {
        false => parts.join(" and "),
        true if all.iter().all(|it| it.tone == Tone::Alike) => {
            format!("within {} at all {total}", matrix.margin)
        }
        true => format!("open or within {} at all {total}", matrix.margin),
    }
}

#[cfg(test)]
mod tests {
    use super::super::answer::answer;
    use super::super::testing::{comparison, report, run};
    use super::*;
    use crate::model::{Audit, Comparison, Finding, Plan, Severity, Verdict};

    /// ext4 and xfs on `none` and on two layers; given are the ratios to ext4 on none.
    fn answered(luks: [f64; 2], raid1: [f64; 2], xfs: f64) -> String {
        answered_of(luks, raid1, xfs, &[])
    }

    /// Where these were measured on other terms.
    fn answered_of(luks: [f64; 2], raid1: [f64; 2], xfs: f64, unequal: &[&str]) -> String {
        let mut text = String::new();
        for system in ["ext4", "xfs"] {
            for (layer, list) in [("none", ""), ("luks", "\"luks\""), ("raid1", "\"raid1\"")] {
                text += &format!(
                    "[[contender]]\nname = \"{system} on {layer}\"\nfile_system = \"{system}\"\n\
                     layers = [{list}]\n"
                );
            }
        }
        text += "[bed]\nkind = \"loop\"\nsize = \"1G\"\ndevices = 2\n";
        text += "[[workload]]\nname = \"copies\"\ncommand = \"x\"\n";
        let of = |name: &str, ratio: f64| Comparison {
            low: ratio * 0.99,
            high: Some(ratio * 1.01),
            ..comparison("copies", name, Verdict::Slower, ratio)
        };
        let all = vec![
            of("ext4 on luks", luks[0]),
            of("ext4 on raid1", raid1[0]),
            of("xfs on none", xfs),
            of("xfs on luks", xfs * luks[1]),
            of("xfs on raid1", xfs * raid1[1]),
        ];
        let made = (Plan::parse(&text).unwrap(), run(), all);
        let finding = |name: &&str| Finding {
            audit: Audit::A19,
            severity: Severity::Warning,
            workload: None,
            contender: Some(name.to_string()),
            evidence: String::new(),
            advice: String::new(),
        };
        let findings: Vec<Finding> = unequal.iter().map(finding).collect();
        let report = Report { findings: &findings, ..report(&made) };
        answer(&report, &Matrix::of(&report))
    }

    #[test]
    fn each_file_system_is_compared_with_itself_on_the_other_layers() {
        let said = answered([1.0, 0.8], [0.5, 0.5], 3.0);
        let head = "Against none on the same file system, luks is worse at copies on xfs alone \
                    (0.80×); raid1 is worse at 2 of 2 (0.50×). ";
        assert!(said.starts_with(head), "{said}");
        let said = answered([0.7, 0.8], [0.5, 1.3], 3.0);
        let head = "luks is worse at 2 of 2 (0.70-0.80×); raid1 is better at copies on xfs alone \
                    (1.30×) and worse at copies on ext4 alone (0.50×).";
        assert!(said.contains(head), "{said}");
        let both = ["ext4 on luks", "xfs on luks"];
        let said = answered_of([1.3, 1.4], [0.5, 0.5], 3.0, &both);
        assert!(said.contains("luks, on unequal terms, is better at 2 of 2"), "{said}");
        let said = answered_of([1.3, 1.4], [0.5, 0.5], 3.0, &both[..1]);
        assert!(said.contains("luks is better at 2 of 2"), "not all of it: {said}");
        // What is open is not "alone".
        let said = answered([1.04, 0.8], [0.5, 0.5], 3.0);
        assert!(said.contains("luks is worse at copies on xfs, 1 of 2 (0.80×)"), "{said}");
        let alike = answered([1.0, 1.0], [1.0, 1.0], 3.0);
        let head =
            "Against none on the same file system, luks and raid1 are each within 5% at all 2.";
        assert!(alike.starts_with(head), "{alike}");
        // 1.04 is within 5%, and its interval is not.
        let open = answered([1.04, 1.0], [1.0, 1.0], 3.0);
        assert!(open.contains("luks is open or within 5% at all 2; raid1 is within"), "{open}");
    }
}
