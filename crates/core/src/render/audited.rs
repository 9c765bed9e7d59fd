//! What `audit` noticed, for a terminal, as Markdown and as JSON.

use serde::Serialize;
use serde_json::{Map, Value};

use super::checked::wrapped;
use super::findings::headline;
use super::json;
use super::text::{marked, marked_list, visible};
use super::words::counted;
use crate::model::{Audited, Finding, Severity};

/// What was read as what, the findings, and a sentence that counts them.
pub fn audited(audited: &Audited) -> String {
    let mut out = format!("{}\n", audited.title);
    for line in preface(audited) {
        out += &format!("  {}\n", wrapped(&line, 4));
    }
    for finding in &audited.findings {
        out += &format!("\n{}\n", wrapped(&headline(finding), 2));
        out += &format!("  -> {}\n", wrapped(&finding.advice, 5));
    }
    out + &format!("\n{}\n", sentence(&audited.findings))
}

/// The same as Markdown.
pub fn audited_markdown(audited: &Audited) -> String {
    let mut out = format!("# {}\n\n{}", marked(&audited.title), marked_list(&preface(audited)));
    out += &format!("\n## Findings\n\n{}\n", sentence(&audited.findings));
    for (place, finding) in audited.findings.iter().enumerate() {
        let gap = if place == 0 { "\n" } else { "" };
        let (headline, advice) = (marked(&headline(finding)), marked(&finding.advice));
        out += &format!("{gap}- **{headline}**\n  {advice}\n");
    }
    visible(&out).into_owned()
}

/// What it was taken for, so that a misunderstanding shows.
fn preface(audited: &Audited) -> Vec<String> {
    let mut lines = vec![format!("taken for {}", audited.kind)];
    lines.extend(audited.jobs.iter().map(|(name, job)| format!("job {name}: {job}")));
    if !audited.columns.is_empty() {
        let of = |(heading, meaning): &(String, String)| format!("{heading} = {meaning}");
        let columns: Vec<String> = audited.columns.iter().map(of).collect();
        lines.push(format!("columns: {}", columns.join("; ")));
    }
    lines.extend(audited.lacking.iter().map(|lacks| format!("not audited: {lacks}")));
    lines
}

fn sentence(findings: &[Finding]) -> String {
    let count = |severity, noun| {
        let count = findings.iter().filter(|finding| finding.severity == severity).count();
        (count > 0).then(|| match severity {
            Severity::Void => format!("{count} {noun}"),
            _ => counted(count, noun),
        })
    };
    let kinds =
        [(Severity::Void, "void"), (Severity::Warning, "warning"), (Severity::Note, "note")];
    let counts: Vec<String> = kinds.into_iter().filter_map(|(it, noun)| count(it, noun)).collect();
    match counts.is_empty() {
        true => "None of the audits noticed anything.".into(),
        false => format!("{}: {}.", counted(findings.len(), "finding"), counts.join(", ")),
    }
}

#[derive(Serialize)]
struct Document<'a> {
    title: &'a str,
    taken_for: &'a str,
    jobs: Map<String, Value>,
    columns: Map<String, Value>,
    not_audited: &'a [String],
    findings: &'a [Finding],
}

/// `schema`, `title`, `taken_for`, `jobs`, `columns`, `not_audited[]` and `findings[]`; ends with a
/// line break.
pub fn audited_json(audited: &Audited) -> String {
    let map = |pairs: &[(String, String)]| {
        let pairs = pairs.iter().map(|(name, meaning)| (name.clone(), meaning.as_str().into()));
        pairs.collect::<Map<String, Value>>()
    };
    json::stamped(&Document {
        title: &audited.title,
        taken_for: &audited.kind,
        jobs: map(&audited.jobs),
        columns: map(&audited.columns),
        not_audited: &audited.lacking,
        findings: &audited.findings,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Audit;

    fn one() -> Audited {
        let finding = Finding {
            audit: Audit::A18,
            severity: Severity::Warning,
            workload: Some("walk".into()),
            contender: None,
            evidence: "each figure is of one run".into(),
            advice: "repeat it".into(),
        };
        Audited {
            title: "A comparison".into(),
            kind: "a table".into(),
            jobs: vec![("walk".into(), "read".into())],
            columns: vec![("wall s".into(), "time".into())],
            lacking: vec!["A8: no limits".into()],
            findings: vec![finding],
        }
    }

    #[test]
    fn what_was_read_stands_before_what_was_found() {
        let text = audited(&one());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..3], ["A comparison", "  taken for a table", "  job walk: read"]);
        assert!(text.contains(
            "\nwarning A18 (too few rounds), walk: each figure is of one run\n  -> repeat it\n"
        ));
        assert!(text.ends_with("\n1 finding: 1 warning.\n"), "{text}");
        let markdown = audited_markdown(&one());
        assert!(markdown.contains(
            "- **warning A18 (too few rounds), walk: each figure is of one run**\n  repeat it"
        ));
        let document: Value = serde_json::from_str(&audited_json(&one())).unwrap();
        assert_eq!(document["columns"]["wall s"], "time");
        assert_eq!(document["findings"][0]["audit"], "A18");
    }
}
