//! The report at the end of a run, for a terminal.

use std::collections::BTreeSet;

use comfy_table::presets::UTF8_BORDERS_ONLY;

use super::{Report, table};
use crate::model::{
    Comparison, Family, Finding, Judgement, Key, Outcome, Percent, Severity, Verdict,
};

/// Tables, sentences and findings; ends with a line break. No colours: it reads the same in a log.
pub fn report(report: &Report) -> String {
    let mut out = String::new();
    out += &read(report);
    for workload in &report.plan.workloads {
        out += &format!("\n{}\n", workload.name);
        out += &format!("{}\n", table::table(report, workload, UTF8_BORDERS_ONLY));
        for sentence in report.sentences(workload) {
            out += &format!("  {sentence}\n");
        }
        for (title, table) in table::meanwhile(report, workload, UTF8_BORDERS_ONLY) {
            out += &format!("\n{title}\n{table}\n");
        }
    }
    if !report.published.is_empty() {
        let table = table::published(report, UTF8_BORDERS_ONLY);
        out += &format!("\nAs published, and here{}\n{table}\n", scale(report));
    }
    if !report.working_sets().is_empty() {
        let table = table::working_sets(report, UTF8_BORDERS_ONLY);
        out += &format!("\nWorking sets{}\n{table}\n", scale(report));
    }
    for contender in &report.plan.contenders {
        if let Some(name) = report.other_name(contender) {
            out += &format!("\n{}: what was measured is {name}\n", contender.name);
        }
    }
    let left_out = report.left_out();
    if !left_out.is_empty() {
        out += &format!("\nLeft out\n  {}\n", left_out.join("\n  "));
    }
    let failures: Vec<String> = failures(report);
    if !failures.is_empty() {
        out += &format!("\nNot measured\n  {}\n", failures.join("\n  "));
    }
    if !report.findings.is_empty() {
        out += &format!("\nFindings\n{}", findings(report.findings));
    }
    out + &format!("\n{}\n", ending(report))
}

/// So many files are named; more are counted.
const FILES_MAX: usize = 4;

/// What was read of files of others.
fn read(report: &Report) -> String {
    let (files, rest): (Vec<_>, Vec<_>) =
        report.run.read.iter().partition(|(what, _)| what == "file");
    let shown = if files.len() > FILES_MAX + 1 { FILES_MAX } else { files.len() };
    let mut lines: Vec<String> =
        files[..shown].iter().map(|(_, it)| format!("file: {it}\n")).collect();
    if shown < files.len() {
        lines.push(format!("      and {} more\n", files.len() - shown));
    }
    lines.extend(rest.iter().map(|(what, value)| format!("{what}: {value}\n")));
    lines.concat()
}

/// What the audits noticed.
pub(super) fn findings(findings: &[Finding]) -> String {
    let mut out = String::new();
    for alike in alike(findings) {
        let shown = if alike.len() > ALIKE_MAX + 1 { ALIKE_MAX } else { alike.len() };
        for finding in &alike[..shown] {
            out += &format!("  {}\n", headline(finding));
        }
        if shown < alike.len() {
            out += &format!("  and {} more like these: see the report\n", alike.len() - shown);
        }
        out += &format!("    {}\n", alike[0].advice);
    }
    out
}

/// The stamp of a run whose sizes are not those of its plan.
pub(super) fn scale(report: &Report) -> String {
    match report.plan.scale {
        Some(scale) if scale < 1.0 => format!(", at 1/{:.3} of the plan's size", 1.0 / scale),
        Some(scale) => format!(", at {scale} times the plan's size"),
        None => String::new(),
    }
    .replace(".000 ", " ")
}

/// How many findings of a kind a terminal is filled with; the report has all.
const ALIKE_MAX: usize = 3;

/// Findings by what they advise, each kind where its first one stands.
pub(super) fn alike(findings: &[Finding]) -> Vec<Vec<&Finding>> {
    let mut kinds: Vec<Vec<&Finding>> = Vec::new();
    for finding in findings {
        let key = |it: &Finding| (it.audit, it.severity, it.advice.clone());
        match kinds.iter_mut().find(|kind| key(kind[0]) == key(finding)) {
            Some(kind) => kind.push(finding),
            None => kinds.push(vec![finding]),
        }
    }
    kinds
}

/// A finding's first line: what, where, with what evidence.
pub(super) fn headline(finding: &Finding) -> String {
    let severity = match finding.severity {
        Severity::Void => "void",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    let place: Vec<&str> =
        [&finding.workload, &finding.contender].into_iter().flatten().map(String::as_str).collect();
    let place = if place.is_empty() { String::new() } else { format!(" {}:", place.join(", ")) };
    format!("{severity} {:?}{place} {}", finding.audit, finding.evidence)
}

/// The failed trials, those that failed alike in one line: which, at what step, why, and what was
/// left behind.
pub(super) fn failures(report: &Report) -> Vec<String> {
    let mut alike: Vec<(String, Vec<String>)> = Vec::new();
    for record in report.failures() {
        let Outcome::Failed(failure) = &record.outcome else { continue };
        let left = match failure.cleanup_errors.as_slice() {
            [] => String::new(),
            errors => format!("; and could not be cleaned up: {}", errors.join("; ")),
        };
        let Key { round, workload, contender } = &record.key;
        let what = format!("{workload}, {contender}: {}: {}{left}", failure.step, failure.error);
        match alike.iter_mut().find(|(known, _)| *known == what) {
            Some((_, rounds)) => rounds.push(round.to_string()),
            None => alike.push((what, vec![round.to_string()])),
        }
    }
    let line = |(what, rounds): (String, Vec<String>)| {
        let s = if rounds.len() == 1 { "" } else { "s" };
        format!("{what} (round{s} {})", rounds.join(", "))
    };
    alike.into_iter().map(line).collect()
}

/// How the run ended.
pub(super) fn ending(report: &Report) -> String {
    let rounds = report.rounds();
    let trials = report.records.len();
    let seconds = report.run.elapsed_s;
    let why = match report.run.stop {
        Some(stop) => format!("The run ended because {}", stop.because()),
        None => "The run has not ended".into(),
    };
    let s = if rounds == 1 { "" } else { "s" };
    if report.is_read() {
        let files = report.run.read.iter().filter(|(what, _)| what == "file").count();
        let of = if files == 1 { "1 file".into() } else { format!("{files} files") };
        return format!("Read from {of}: {trials} runs.{}", at_stake(report));
    }
    let seed = report.run.seed;
    format!(
        "{why}: {rounds} round{s}, {trials} trials, {seconds:.0} s, seed {seed}.{}",
        at_stake(report)
    )
}

/// How many verdicts the run carries, and how many false ones its confidence allows for. The
/// confidence holds for all verdicts of a family together, so that what is expected is a number of
/// families. Without an interval there is no verdict.
fn at_stake(report: &Report) -> String {
    let has_interval = |it: &&Comparison| it.verdict != Verdict::Void && it.high.is_some();
    let verdicts = report.comparisons.iter().filter(has_interval);
    let workloads: BTreeSet<&str> = verdicts.clone().map(|it| it.workload.as_str()).collect();
    let Judgement { family, confidence, .. } = &report.plan.judgement;
    let families = match family {
        Family::Workload => workloads.len(),
        Family::Run => workloads.len().min(1),
    };
    carried(verdicts.count(), workloads.len(), families, Percent(1.0 - confidence.0))
}

/// `count` verdicts on `workloads`, in families each of which allows for `error`.
fn carried(count: usize, workloads: usize, families: usize, error: Percent) -> String {
    let s = |count: usize| if count == 1 { "" } else { "s" };
    let carried =
        format!(" It carries {count} verdict{} on {workloads} workload{}.", s(count), s(workloads));
    match (count, families) {
        (0, _) => String::new(),
        (1, _) => format!("{carried} The chance that it is false is at most {error}."),
        (_, 1) => format!("{carried} The chance that any is false is at most {error}."),
        _ => format!(
            "{carried} For each workload the chance that any is false is at most {error}: expect \
             false verdicts on at most {:.2} workloads.",
            families as f64 * error.0
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Audit;

    #[test]
    fn the_chance_of_a_false_verdict_is_said() {
        let said = |count, workloads, families| carried(count, workloads, families, Percent(0.05));
        assert_eq!(said(0, 0, 0), "");
        let one = " It carries 1 verdict on 1 workload. The chance that it is false is at most 5%.";
        assert_eq!(said(1, 1, 1), one);
        let of_the_run = "4 verdicts on 2 workloads. The chance that any is false is at most 5%.";
        assert!(said(4, 2, 1).ends_with(of_the_run), "{}", said(4, 2, 1));
        let several = said(12, 7, 7);
        assert!(several.ends_with("expect false verdicts on at most 0.35 workloads."), "{several}");
    }

    #[test]
    fn findings_of_a_kind_stand_together() {
        let finding = |audit, severity, advice: &str| Finding {
            audit,
            severity,
            workload: None,
            contender: None,
            evidence: String::new(),
            advice: advice.into(),
        };
        let findings = [
            finding(Audit::A18, Severity::Warning, "more rounds"),
            finding(Audit::A19, Severity::Note, "look"),
            finding(Audit::A18, Severity::Warning, "more rounds"),
            finding(Audit::A18, Severity::Void, "more rounds"),
        ];
        let counts: Vec<usize> = alike(&findings).iter().map(Vec::len).collect();
        assert_eq!(counts, [2, 1, 1]);
    }
}
