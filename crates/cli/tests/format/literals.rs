//! FORMAT.md against what is read and written by names in the code, without a derive of serde's.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::{Types, assert_same, of_tables, of_toml, section};

/// What is compiled into the product of a file below `crates/`: tests stand last.
fn product(path: &str) -> String {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let text = fs::read_to_string(crates.join(path)).unwrap();
    text.split("\n#[cfg(test)]\nmod tests").next().unwrap().to_string()
}

/// Every text that stands in the code, also in what macros are given.
fn texts(tokens: TokenStream) -> BTreeSet<String> {
    let texts = tokens.into_iter().flat_map(|token| match token {
        TokenTree::Literal(it) => {
            let text: Option<syn::LitStr> = syn::parse_str(&it.to_string()).ok();
            text.map(|it| it.value()).into_iter().collect()
        }
        TokenTree::Group(group) => texts(group.stream()),
        _ => BTreeSet::new(),
    });
    texts.collect()
}

/// The texts in the constant or function of that name.
fn texts_of(product: &str, name: &str) -> BTreeSet<String> {
    let tokens: Vec<TokenTree> = product.parse::<TokenStream>().unwrap().into_iter().collect();
    let words: Vec<String> = tokens.iter().map(ToString::to_string).collect();
    let is_it = |pair: &[String]| ["const", "fn"].contains(&&*pair[0]) && pair[1] == name;
    let begin = words.windows(2).position(is_it).unwrap_or_else(|| panic!("{name} is gone"));
    let ends = |token: &TokenTree| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        other => other.to_string() == ";",
    };
    let length = tokens[begin..].iter().position(ends).unwrap();
    texts(tokens[begin..=begin + length].iter().cloned().collect())
}

/// What stands between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The names that only one of the two has.
fn differing(code: &BTreeSet<String>, page: &BTreeSet<String>) -> Vec<String> {
    let undocumented = code.difference(page).map(|it| format!("{it} is not documented"));
    undocumented.chain(page.difference(code).map(|it| format!("the code has no {it}"))).collect()
}

/// Names of families, of which the page may leave out how those before began.
fn families(section: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for row in section.lines().filter(|line| line.starts_with("| `fsverdict_")) {
        let mut begin = String::new();
        for name in quoted(row.split('|').nth(1).unwrap()) {
            if let Some(rest) = name.strip_prefix("fsverdict_") {
                begin = format!("fsverdict_{}", rest.split('_').next().unwrap());
            }
            let whole = if name.starts_with('_') { begin.clone() + name } else { name.into() };
            // The kind of a family ends its samples' name, and is no part of its own.
            let own = whole.strip_suffix("_info").or_else(|| whole.strip_suffix("_total"));
            found.insert(own.unwrap_or(&whole).to_string());
        }
    }
    found
}

#[test]
fn metrics_have_the_documented_families_and_labels() {
    let section = section("## Metrics");
    let source = product("cli/src/watch/metrics/mod.rs");
    let all = texts(source.parse().unwrap());
    let units = texts_of(&source, "base_unit");
    let begun = all.iter().filter(|text| text.starts_with("fsverdict_"));
    let named = begun.flat_map(|text| match text.strip_suffix("{unit}") {
        Some(begin) => units.iter().map(|unit| format!("{begin}{unit}")).collect(),
        None => vec![text.clone()],
    });
    assert_same(&differing(&named.collect(), &families(&section)));
    let rows = section.lines().filter(|line| line.starts_with("| `fsverdict_"));
    let labels = rows.flat_map(|row| quoted(row.split('|').nth(2).unwrap()));
    let strange = labels.filter(|label| !all.contains(*label)).map(String::from);
    assert_same(&strange.collect::<Vec<_>>());
}

#[test]
fn the_log_of_requests_has_the_documented_keys() {
    let section = section("### `trace.jsonl`");
    let log = "struct Log { #[serde(flatten)] head: Head, #[serde(flatten)] entry: Entry,
                            #[serde(flatten)] mark: Mark, #[serde(flatten)] lost: Lost,
                            #[serde(flatten)] end: End }";
    let files = ["core/src/trace/file.rs", "core/src/model/trace/mod.rs"].map(product);
    let types = Types::parse(files.into_iter().chain([log.to_string()]));
    assert_same(&types.drift("Log", &["Device"], &of_tables(&section)));
}

#[test]
fn a_table_of_an_article_has_the_documented_keys() {
    let section = section("## A table");
    let is_key = |c: char| c.is_ascii_lowercase() || c == '_';
    let all = texts(product("core/src/published/written.rs").parse().unwrap());
    let read: BTreeSet<&String> = all.iter().filter(|text| text.chars().all(is_key)).collect();
    let words: BTreeSet<&str> = section.split(|c| !is_key(c)).collect();
    let unnamed = read.iter().filter(|key| !words.contains(key.as_str()));
    assert_same(&unnamed.map(|key| format!("{key} is not documented")).collect::<Vec<_>>());

    let block = section.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let mut documented = Vec::new();
    of_toml(&toml::from_str(block).unwrap(), "", &mut documented);
    // Contenders are keys as well, and below some keys stand names of one's own.
    let own = |path: &str| {
        path.split('.').count() > 2 || path.ends_with(".ext4") || path.ends_with(".xfs")
    };
    let keys = documented.iter().filter(|path| !own(path));
    let keys: Vec<String> = keys.map(|path| path.rsplit('.').next().unwrap().into()).collect();
    assert!(keys.len() > 25, "{keys:?}");
    let strange = keys.iter().filter(|key| !read.contains(key));
    assert_same(&strange.map(|key| format!("the code has no {key}")).collect::<Vec<_>>());
}

#[test]
fn a_packed_run_holds_the_documented_files() {
    let source = product("cli/src/source.rs");
    let of_trial = texts_of(&source, "OF_TRIAL").into_iter().map(|it| format!("trials/N/{it}"));
    let held = texts_of(&source, "OF_RUN").into_iter().chain(of_trial).collect();
    let (folder, pack) = (section("## A run's folder"), section("## A packed run"));
    let rows = folder.split("\n### ").next().unwrap().lines();
    let names = rows.filter(|row| row.starts_with("| `")).filter_map(|row| quoted(row).next());
    let left_out: BTreeSet<&str> = quoted(pack.split("\n### ").next().unwrap()).collect();
    let file = |name: &str| name.rsplit('/').next().unwrap().to_string();
    let documented =
        names.filter(|name| !name.ends_with('/') && !left_out.contains(file(name).as_str()));
    assert_same(&differing(&held, &documented.map(String::from).collect()));
}
