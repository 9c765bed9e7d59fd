//! What the audits noticed: findings of a kind together, counted, and first those that weaken the
//! answer most.

use std::cmp::Reverse;

use super::words::{counted, listed, without_huge_shares};
use crate::model::{Comparison, Finding, Severity};

/// So many kinds are shown at once; the others are folded away or counted.
pub(super) const OPEN_MAX: usize = 5;

/// Findings of one audit that advise the same.
#[derive(Debug)]
pub(super) struct Kind<'a> {
    pub findings: Vec<&'a Finding>,
    /// So many comparisons they concern, of so many.
    pub cells: (usize, usize),
}

impl Kind<'_> {
    /// How grave they are.
    pub fn severity(&self) -> Severity {
        self.findings[0].severity
    }

    /// What to do about them.
    pub fn advice(&self) -> &str {
        &self.findings[0].advice
    }

    /// What was seen where: places with the same evidence together.
    pub fn seen(&self) -> Vec<String> {
        let said = |(places, evidence): &(Vec<String>, String)| match listed(places) {
            everywhere if everywhere.is_empty() => evidence.clone(),
            places => format!("{places}: {evidence}"),
        };
        self.places().iter().map(said).collect()
    }

    /// All of it in a line.
    pub fn told(&self) -> String {
        let title = format!("{} {}", name(self.severity()), self.findings[0].audit.label());
        let is_of_all = self.places().iter().all(|(places, _)| listed(places).is_empty());
        let mark = if is_of_all { ':' } else { ',' };
        format!("{title}{mark} {}", self.seen().join("; "))
    }

    /// Where each thing was seen.
    fn places(&self) -> Vec<(Vec<String>, String)> {
        let mut seen: Vec<(Vec<String>, String)> = Vec::new();
        for (place, evidence) in self.findings.iter().map(|it| evidence(it)) {
            match seen.iter_mut().find(|(_, known)| *known == evidence) {
                Some((places, _)) => places.push(place),
                None => seen.push((vec![place], evidence)),
            }
        }
        seen
    }

    /// "warning A13 (others at work), 54 times, at 40 of 51 comparisons".
    pub fn title(&self) -> String {
        let name = format!("{} {}", name(self.severity()), self.findings[0].audit.label());
        let times = match self.findings.len() {
            1 => String::new(),
            times => format!(", {times} times"),
        };
        let cells = match self.cells {
            (_, 0) => String::new(),
            (1, 1) => ", at the one comparison".into(),
            (some, all) if some == all => format!(", at all {}", counted(all, "comparison")),
            (some, all) => format!(", at {some} of {}", counted(all, "comparison")),
        };
        format!("{name}{times}{cells}")
    }
}

/// A severity in a word.
pub(super) fn name(severity: Severity) -> &'static str {
    match severity {
        Severity::Void => "void",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

/// The contenders that were not measured on the terms of the others, and what that means: to be
/// read with the first ratio.
pub(super) fn unequal<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Option<String> {
    Some(format!("Not on equal terms: {}.", on_terms(findings)?))
}

/// The contenders on terms of their own, each with the reason: "c1 and c3 (no journal); c2 (no
/// flush)".
pub(super) fn on_terms<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Option<String> {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for finding in findings.into_iter().filter(|it| it.is_of_terms()) {
        let name = finding.contender.clone().unwrap_or_default();
        match reasons.iter_mut().find(|(reason, _)| *reason == finding.evidence) {
            Some((_, names)) => names.push(name),
            None => reasons.push((&finding.evidence, vec![name])),
        }
    }
    let said = |(reason, names): &(&str, Vec<String>)| format!("{} ({reason})", listed(names));
    let said: Vec<String> = reasons.iter().map(said).collect();
    (!said.is_empty()).then(|| said.join("; "))
}

/// A contender was not measured on the terms of the others, which may be why it is better.
pub(super) fn is_unequal(findings: &[Finding], contender: &str) -> bool {
    let is_its = |it: &&Finding| it.contender.as_deref() == Some(contender);
    findings.iter().filter(is_its).any(Finding::is_of_terms)
}

/// The kinds, the gravest first; among equals, unequal terms first; then the one that concerns most
/// comparisons, then the one noticed most often.
pub(super) fn kinds<'a>(findings: &'a [Finding], comparisons: &[Comparison]) -> Vec<Kind<'a>> {
    let mut kinds: Vec<Vec<&Finding>> = Vec::new();
    for finding in findings {
        let key = |it: &Finding| (it.audit, it.severity, it.advice.clone());
        match kinds.iter_mut().find(|kind| key(kind[0]) == key(finding)) {
            Some(kind) => kind.push(finding),
            None => kinds.push(vec![finding]),
        }
    }
    let of = |findings: Vec<&'a Finding>| {
        let concerned = |it: &&Comparison| findings.iter().any(|finding| concerns(finding, it));
        let some = comparisons.iter().filter(concerned).count();
        Kind { findings, cells: (some, comparisons.len()) }
    };
    let mut kinds: Vec<Kind> = kinds.into_iter().map(of).collect();
    kinds.sort_by_key(|kind| {
        let is_of_terms = kind.findings[0].is_of_terms();
        Reverse((kind.severity(), is_of_terms, kind.cells.0, kind.findings.len()))
    });
    kinds
}

fn concerns(finding: &Finding, comparison: &Comparison) -> bool {
    let is = |named: &Option<String>, of: &[&String]| {
        named.as_ref().is_none_or(|name| of.contains(&name))
    };
    is(&finding.workload, &[&comparison.workload])
        && is(&finding.contender, &[&comparison.contender, &comparison.reference])
}

/// A finding in a line: what, where, with what evidence.
pub fn headline(finding: &Finding) -> String {
    let title = format!("{} {}", name(finding.severity), finding.audit.label());
    match evidence(finding) {
        (place, evidence) if place.is_empty() => format!("{title}: {evidence}"),
        (place, evidence) => format!("{title}, {place}: {evidence}"),
    }
}

/// Where something was noticed, and what.
fn evidence(finding: &Finding) -> (String, String) {
    let place = [&finding.workload, &finding.contender].into_iter().flatten();
    let place: Vec<&str> = place.map(String::as_str).collect();
    (place.join(", "), without_huge_shares(&finding.evidence))
}

/// The same without what its kind's title says.
pub(super) fn seen(finding: &Finding) -> String {
    match evidence(finding) {
        (place, evidence) if place.is_empty() => evidence,
        (place, evidence) => format!("{place}: {evidence}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::comparison;
    use super::*;
    use crate::model::{Audit, Verdict};

    fn finding(audit: Audit, severity: Severity, contender: &str) -> Finding {
        Finding {
            audit,
            severity,
            workload: Some("w".into()),
            contender: Some(contender.into()),
            evidence: "others moved 39941.1% of it".into(),
            advice: "more rounds".into(),
        }
    }

    #[test]
    fn findings_of_a_kind_stand_together_and_the_gravest_first() {
        let comparisons =
            ["c1", "c2"].map(|name| comparison("w", name, Verdict::Faster, 2.0)).to_vec();
        let findings = [
            finding(Audit::A19, Severity::Note, "c0"),
            finding(Audit::A18, Severity::Warning, "c1"),
            finding(Audit::A11, Severity::Warning, "c0"),
            finding(Audit::A18, Severity::Warning, "other"),
            finding(Audit::A18, Severity::Void, "c2"),
            finding(Audit::A13, Severity::Warning, "c0"),
            finding(Audit::A13, Severity::Warning, "c0"),
        ];
        let kinds = kinds(&findings, &comparisons);
        let titles: Vec<String> = kinds.iter().map(Kind::title).collect();
        assert_eq!(
            titles,
            [
                "void A18 (too few rounds), at 1 of 2 comparisons",
                "warning A13 (others at work), 2 times, at all 2 comparisons",
                "warning A11 (a slowed-down machine), at all 2 comparisons",
                "warning A18 (too few rounds), 2 times, at 1 of 2 comparisons",
                "note A19 (unequal terms), at all 2 comparisons",
            ]
        );
        let only = super::kinds(&findings[2..3], &comparisons[..1]);
        assert_eq!(only[0].title(), "warning A11 (a slowed-down machine), at the one comparison");
        assert_eq!(
            headline(&findings[0]),
            "note A19 (unequal terms), w, c0: others moved 399 times it"
        );
        assert_eq!(seen(&findings[0]), "w, c0: others moved 399 times it");
    }

    #[test]
    fn those_that_saw_the_same_are_told_once() {
        let of = |contender: &str, evidence: &str| Finding {
            evidence: evidence.into(),
            workload: None,
            ..finding(Audit::DiskFlag, Severity::Note, contender)
        };
        let findings = [of("c0", "it rotates"), of("c1", "it rotates"), of("c2", "it does not")];
        let kinds = kinds(&findings, &[]);
        let says = "note DiskFlag, c0 and c1: it rotates; c2: it does not";
        assert_eq!(kinds[0].told(), says);
        let one = [of("c0", "it rotates")];
        assert_eq!(super::kinds(&one, &[])[0].told(), headline(&one[0]));
        let all = [Finding { contender: None, ..of("", "it rotates") }];
        assert_eq!(super::kinds(&all, &[])[0].told(), headline(&all[0]));
    }

    #[test]
    fn who_was_measured_on_other_terms_stands_first_and_is_named_with_the_reason() {
        let comparisons = ["c1", "c2"].map(|name| comparison("w", name, Verdict::Faster, 2.0));
        let of = |contender: &str, evidence: &str| Finding {
            evidence: evidence.into(),
            ..finding(Audit::A19, Severity::Warning, contender)
        };
        let findings = [
            finding(Audit::A13, Severity::Warning, "c0"),
            of("c1", "no journal"),
            of("c2", "no flush"),
            of("c3", "no journal"),
            finding(Audit::A19, Severity::Note, "c4"),
        ];
        assert_eq!(kinds(&findings, &comparisons)[0].findings.len(), 3);
        let told = unequal(&findings).unwrap();
        assert_eq!(told, "Not on equal terms: c1 and c3 (no journal); c2 (no flush).");
        assert_eq!(unequal(&findings[..1]), None);
    }
}
