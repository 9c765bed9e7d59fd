//! What `audit` noticed, for a terminal, as Markdown and as JSON.

use serde::Serialize;
use serde_json::{Map, Value};

use super::checked::wrapped;
use super::findings::kinds;
use super::json;
use super::text::{marked, marked_list, visible};
use super::words::counted;
use crate::model::{Audited, Finding, Severity};

/// How many findings, then those of a kind together, the gravest first; what was read as what in
/// the end, before the prompt.
pub fn audited(audited: &Audited) -> String {
    let mut out = format!("{}\n  {}\n", audited.title, sentence(&audited.findings));
    for kind in kinds(&audited.findings, &[]) {
        out += &match &kind.seen()[..] {
            [_] => format!("\n{}\n", wrapped(&kind.told(), 2)),
            several => {
                let line = |it: &String| format!("  {}\n", wrapped(it, 4));
                format!("\n{}:\n{}", kind.title(), several.iter().map(line).collect::<String>())
            }
        };
        out += &format!("  -> {}\n", wrapped(kind.advice(), 5));
    }
    out += "\n";
    preface(audited).iter().for_each(|line| out += &format!("{}\n", wrapped(line, 2)));
    out
}

/// The same as Markdown.
pub fn audited_markdown(audited: &Audited) -> String {
    let mut out = format!("# {}\n\n{}\n", marked(&audited.title), sentence(&audited.findings));
    for (place, kind) in kinds(&audited.findings, &[]).iter().enumerate() {
        out += if place == 0 { "\n" } else { "" };
        out += &match &kind.seen()[..] {
            [_] => format!("- **{}**\n", marked(&kind.told())),
            several => {
                let line = |it: &String| format!("  - {}\n", marked(it));
                let several: String = several.iter().map(line).collect();
                format!("- **{}**\n{several}\n", marked(&kind.title()))
            }
        };
        out += &format!("  {}\n", marked(kind.advice()));
    }
    out += &format!(
        "\n## What was read, and what was not audited\n\n{}",
        marked_list(&preface(audited))
    );
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
    lines.extend(audited.missing.iter().map(|gap| format!("not audited: {gap}")));
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
        not_audited: &audited.missing,
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
            missing: vec!["A8: no limits".into()],
            findings: vec![finding],
        }
    }

    #[test]
    fn the_count_stands_first_and_what_was_read_last() {
        let text = audited(&one());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..3], ["A comparison", "  1 finding: 1 warning.", ""]);
        assert!(text.contains(
            "\nwarning A18 (too few rounds), walk: each figure is of one run\n  -> repeat it\n"
        ));
        let read = "\n\ntaken for a table\njob walk: read\ncolumns: wall s = time\n";
        assert!(text.contains(read) && text.ends_with("\nnot audited: A8: no limits\n"), "{text}");
        let markdown = audited_markdown(&one());
        assert!(markdown.contains(
            "- **warning A18 (too few rounds), walk: each figure is of one run**\n  repeat it"
        ));
        let document: Value = serde_json::from_str(&audited_json(&one())).unwrap();
        assert_eq!(document["columns"]["wall s"], "time");
        assert_eq!(document["findings"][0]["audit"], "A18");
    }

    #[test]
    fn what_is_advised_for_several_is_said_once_and_the_gravest_first() {
        let mut many = one();
        let of = |severity, workload: &str, evidence: &str| Finding {
            severity,
            workload: Some(workload.into()),
            evidence: evidence.into(),
            ..many.findings[0].clone()
        };
        let found = [
            of(Severity::Warning, "find", "each figure is of one run"),
            of(Severity::Warning, "copy", "each figure is of two"),
            Finding { advice: "drop it".into(), ..of(Severity::Void, "walk", "it is none") },
        ];
        many.findings.extend(found);
        let text = audited(&many);
        let wanted = "void A18 (too few rounds), walk: it is none\n  -> drop it\n\nwarning A18 \
                      (too few rounds), 3 times:\n  walk and find: each figure is of one run\n  \
                      copy: each figure is of two\n  -> repeat it\n";
        assert!(text.contains(wanted), "{text}");
        let markdown = audited_markdown(&many);
        let wanted = "- **warning A18 (too few rounds), 3 times**\n  - walk and find: each figure \
                      is of one run\n  - copy: each figure is of two\n\n  repeat it\n";
        assert!(markdown.contains(wanted), "{markdown}");
    }
}
