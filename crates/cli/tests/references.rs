//! What the documents, the code and the messages refer to exists: pages, sections, audits.
//!
//! A section is named by its heading, as in `METHODOLOGY, "Arms"`, and never by a number: headings
//! have none.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The method's page holds rules and no more of them than one can read.
const METHODOLOGY_WORDS_MAX: usize = 4000;

/// A glossary of more words than that is none.
const GLOSSARY_WORDS_MAX: usize = 25;

/// The pages by the names that code and messages use.
const PAGES: [&str; 5] = ["METHODOLOGY", "FORMAT", "ARCHITECTURE", "README", "CHANGELOG"];

/// Folders and files with comments, beside `crates/`.
const COMMENTED: [&str; 7] = ["bench", "scripts", "plans", "studies", "uses", "quickstart", "test"];

/// All documents that people write, by their path from the root.
struct Documents(BTreeMap<String, Document>);

/// A document as far as others may refer to it.
struct Document {
    text: String,
    /// As they are written.
    headings: Vec<String>,
}

impl Document {
    fn new(text: &str) -> Document {
        let headings = prose(text).filter(|(_, line)| line.starts_with('#'));
        let title = |(_, line): (usize, &str)| line.trim_start_matches('#').trim().to_string();
        Document { text: text.into(), headings: headings.map(title).collect() }
    }

    /// The anchors of its headings, as GitHub makes them.
    fn anchors(&self) -> BTreeSet<String> {
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        let anchor = |heading: &String| {
            let kept = |c: &char| c.is_alphanumeric() || "-_ ".contains(*c);
            let plain: String = heading.to_lowercase().chars().filter(kept).collect();
            let anchor = plain.replace(' ', "-");
            let before = seen.entry(anchor.clone()).or_default();
            *before += 1;
            if *before == 1 { anchor } else { format!("{anchor}-{}", *before - 1) }
        };
        self.headings.iter().map(anchor).collect()
    }
}

/// The lines outside code blocks, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        !in_code && !fence
    })
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

impl Documents {
    fn read() -> Documents {
        let mut paths = vec!["record/README.md".to_string()];
        for folder in ["", "docs/", "docs/studies/"] {
            let entries = fs::read_dir(root().join(folder)).unwrap();
            let names = entries.map(|entry| entry.unwrap().file_name().display().to_string());
            paths.extend(
                names.filter(|name| name.ends_with(".md")).map(|it| folder.to_string() + &it),
            );
        }
        let read = |path: String| {
            let text = fs::read_to_string(root().join(&path)).unwrap();
            (path, Document::new(&text))
        };
        Documents(paths.into_iter().map(read).collect())
    }

    /// The links of a document that lead nowhere.
    fn broken_links(&self, path: &str) -> Vec<String> {
        let folder = Path::new(path).parent().unwrap();
        let is_broken = |target: &str| {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file = if file.is_empty() { path.into() } else { normal(&folder.join(file)) };
            let has_anchor = |page: &Document| page.anchors().contains(anchor);
            !root().join(&file).exists()
                || !anchor.is_empty() && !self.0.get(&file).is_some_and(has_anchor)
        };
        let found = links(&self.0[path].text).into_iter();
        let broken = found.filter(|(_, target)| is_broken(target));
        broken.map(|(line, target)| format!("{path}:{line}: {target}")).collect()
    }

    /// The references in a text that is no document and lead nowhere.
    fn broken_references(&self, text: &str) -> Vec<String> {
        let text = one_line(text);
        let mut broken = Vec::new();
        for (name, path) in self.names() {
            for (before, after) in around(&text, &name) {
                let inside = |c: char| c.is_alphanumeric() || "_/-.".contains(c);
                if before.ends_with(inside)
                    || after.starts_with(|c: char| c.is_alphanumeric() || c == '_')
                {
                    continue;
                }
                if let Some(said) =
                    self.broken_section(&path, after.strip_prefix(".md").unwrap_or(after))
                {
                    broken.push(format!("{name}{said}"));
                }
            }
        }
        for (_, after) in around(&text, "docs/") {
            let end = after.find(|c: char| !(c.is_alphanumeric() || "-_/.".contains(c)));
            let page =
                format!("docs/{}", after[..end.unwrap_or(after.len())].trim_end_matches('.'));
            if page.ends_with(".md") && !self.0.contains_key(&page) {
                broken.push(page);
            }
        }
        broken
    }

    /// What a reference may call a page, and its path.
    fn names(&self) -> Vec<(String, String)> {
        let of_root = PAGES.map(|name| (name.to_string(), format!("{name}.md")));
        let below = self.0.keys().filter(|path| path.starts_with("docs/"));
        let below = below.map(|path| (path.trim_end_matches(".md").to_string(), path.clone()));
        of_root.into_iter().chain(below).collect()
    }

    /// What is wrong with the section that `after` names, the text behind a page's name.
    fn broken_section(&self, path: &str, after: &str) -> Option<String> {
        let numbered = ["'s section", ", section", " section"];
        if numbered.iter().any(|form| after.starts_with(form)) {
            return Some(format!("{}: by its heading, please", start(after)));
        }
        let section = after.strip_prefix(", \"")?.split('"').next()?;
        let known = self.0[path].headings.iter().any(|heading| heading == section);
        (!known).then(|| format!(", {section:?}: there is no such heading"))
    }
}

/// The targets of a document's links to files and headings, with their lines.
fn links(text: &str) -> Vec<(usize, String)> {
    let of_line = |(number, line): (usize, &str)| {
        let targets =
            line.split("](").skip(1).map(|rest| rest.split(')').next().unwrap().to_string());
        targets.map(|target| (number, target)).collect::<Vec<_>>()
    };
    let all = prose(text).flat_map(of_line);
    all.filter(|(_, target)| !target.contains("://") && !target.starts_with("mailto:")).collect()
}

/// `a/../b` as `b`.
fn normal(path: &Path) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.to_str().unwrap().split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.join("/")
}

/// Comments and strings go over several lines: without their marks, and as one line. `FORMAT` in
/// code, and not in a comment, is a constant.
fn one_line(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let line = line.trim();
        let marks = ["//!", "///", "//", "#!", "#"];
        match marks.iter().find_map(|mark| line.strip_prefix(mark)) {
            Some(comment) => comment.trim().to_string(),
            None => line.replace("FORMAT,", "").trim_end_matches('\\').trim_end().to_string(),
        }
    });
    lines.collect::<Vec<_>>().join(" ").replace("\\\"", "\"")
}

/// What stands before and after each place of `name` in `text`.
fn around<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
    text.match_indices(name).map(|(place, _)| (&text[..place], &text[place + name.len()..]))
}

fn start(text: &str) -> String {
    text.chars().take(24).collect()
}

/// The audits that a text names: `A7`, not part of another word.
fn audits_named(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    let is_audit = |word: &&str| {
        let number = word.strip_prefix('A').unwrap_or_default();
        (1..=2).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    words.filter(is_audit).map(String::from).collect()
}

/// Everything with comments and messages: its path, and its text.
fn commented() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut paths: Vec<PathBuf> = COMMENTED.map(|it| root().join(it)).into();
    paths.push(root().join("crates"));
    while let Some(path) = paths.pop() {
        if path.is_dir() {
            paths.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else if let Ok(text) = fs::read_to_string(&path) {
            let path = path.strip_prefix(root()).unwrap().display().to_string();
            found.push((path, text));
        }
    }
    assert!(found.len() > 200, "only {} files were found", found.len());
    found
}

#[track_caller]
fn assert_none(what: &str, found: &[String]) {
    assert!(found.is_empty(), "{what}:\n{}", found.join("\n"));
}

#[test]
fn links_in_documents_lead_somewhere() {
    let documents = Documents::read();
    let all: usize = documents.0.values().map(|page| links(&page.text).len()).sum();
    assert!(all > 50, "only {all} links were found");
    let broken: Vec<String> =
        documents.0.keys().flat_map(|it| documents.broken_links(it)).collect();
    assert_none("links that lead nowhere", &broken);
}

#[test]
fn references_in_code_and_messages_lead_somewhere() {
    let documents = Documents::read();
    let of = |(path, text): &(String, String)| {
        let broken = documents.broken_references(text).into_iter();
        broken.map(|it| format!("{path}: {it}")).collect::<Vec<_>>()
    };
    let sources = commented();
    assert_none("references that lead nowhere", &sources.iter().flat_map(of).collect::<Vec<_>>());
    let pages = documents.0.iter().map(|(path, page)| (path.clone(), page.text.clone()));
    assert_none("in documents", &pages.collect::<Vec<_>>().iter().flat_map(of).collect::<Vec<_>>());
}

#[test]
fn every_audit_that_is_named_is_documented() {
    let documents = Documents::read();
    let page = &documents.0["docs/audits.md"];
    let described: BTreeSet<String> =
        page.headings.iter().flat_map(|it| audits_named(it)).collect();
    let pages = documents.0.iter().map(|(path, page)| (path.clone(), page.text.clone()));
    for (path, text) in commented().into_iter().chain(pages) {
        let unknown: Vec<String> = audits_named(&text).difference(&described).cloned().collect();
        assert!(unknown.is_empty(), "{path} names {unknown:?}, docs/audits.md does not");
    }
    let source = fs::read_to_string(root().join("crates/core/src/model/finding.rs")).unwrap();
    let audits = source.split("pub enum Audit {").nth(1).unwrap().split('}').next().unwrap();
    let variants = audits.lines().map(|line| line.trim().trim_end_matches(','));
    for audit in variants.filter(|it| it.starts_with(char::is_uppercase)) {
        assert!(page.text.contains(&format!("\n| [{audit}](#")), "{audit} is not in the list");
    }
}

#[test]
fn the_method_is_short_enough_to_be_read() {
    let words = Documents::read().0["METHODOLOGY.md"].text.split_whitespace().count();
    assert!(words <= METHODOLOGY_WORDS_MAX, "METHODOLOGY.md has {words} words");
}

#[test]
fn the_glossary_is_short_enough_to_be_known() {
    let text = &Documents::read().0["ARCHITECTURE.md"].text;
    let words = text.split("\n## Words\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = words.lines().filter(|line| line.starts_with("| ")).count() - 2;
    assert!((10..=GLOSSARY_WORDS_MAX).contains(&rows), "the glossary has {rows} words");
}

/// Documents with two pages, one of which links to the other.
fn two_pages(links: &str) -> Documents {
    let pages = [
        ("METHODOLOGY.md", "# Method\n## Rounds, not runs\n## Arms\n"),
        (
            "docs/audits.md",
            "# Audits\n```\n# no heading\n```\n## A7 `cold` runs\n## Arms\n## Arms\n",
        ),
        ("docs/report.md", links),
    ];
    Documents(pages.map(|(path, text)| (path.into(), Document::new(text))).into())
}

#[test]
fn a_planted_link_is_found() {
    let fine = "[a](../METHODOLOGY.md#rounds-not-runs) [b](audits.md#a7-cold-runs)\n\
                [c](audits.md#arms-1) [d](#here) [e](https://example.org/x#y)\n# Here\n\
                ```\n[f](gone.md)\n```\n";
    assert_eq!(two_pages(fine).broken_links("docs/report.md"), Vec::<String>::new());
    let planted = "[a](METHODOLOGY.md)\n[b](../METHODOLOGY.md#runs) [c](audits.md#no-heading)";
    let found = two_pages(planted).broken_links("docs/report.md");
    let expected = ["1: METHODOLOGY.md", "2: ../METHODOLOGY.md#runs", "2: audits.md#no-heading"];
    assert_eq!(found, expected.map(|it| format!("docs/report.md:{it}")));
}

#[test]
fn a_planted_reference_is_found() {
    let documents = two_pages("# Report");
    // In pieces: this file is looked through as well.
    let page = ["METHODO", "LOGY"].concat();
    let audits = ["docs/", "audits.md"].concat();
    let fine = [
        format!("/// As {page}, \"Rounds,\n    /// not runs\", has it; {page}.md says more."),
        format!("bail!(\"see {page} ({audits}, \\\"Arms\\\") \\\n   or NOT{page}, section 7\")"),
    ];
    for text in fine {
        assert_eq!(documents.broken_references(&text), Vec::<String>::new(), "{text}");
    }
    for planted in [
        format!("//! The audits of {page}, section\n//! 7."),
        format!("{page}'s sections 3 to 5"),
        format!("# ({page}.md, \"Rounds\")"),
        format!("{audits}, \"A8\""),
        ["docs/", "gone.md"].concat(),
    ] {
        assert_eq!(documents.broken_references(&planted).len(), 1, "{planted}");
    }
}

#[test]
fn audits_are_told_from_other_words() {
    let named = audits_named("A7, note A22 (A9); A4x, BA5, A123, AB, A_1");
    assert_eq!(named, ["A22", "A7", "A9"].map(String::from).into());
}
