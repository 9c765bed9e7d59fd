//! FORMAT.md has the keys of the types that are read and written: all of them, and no others.
//!
//! The types are read from their source, with what serde's derive is told of them; the keys from
//! the page's plan and from the first column of its tables.

mod literals;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use fsverdict_core::model::Plan;
use syn::{Attribute, Field, Fields, GenericArgument, Item, PathArguments, Type};

/// What a type calls one of its fields, or an enum a variant that holds a struct.
#[derive(Clone, Debug, Default)]
struct Key {
    name: String,
    /// The type in it, without its `Option` or `Vec`; empty where that has no name.
    holds: String,
    /// A map: any name leads to what it holds.
    is_map: bool,
    /// The keys of what it holds stand among those beside it.
    is_flattened: bool,
}

/// The keys of the model's types, by the name of the type.
struct Types(BTreeMap<String, Vec<Key>>);

/// A type and one of its keys.
type Place = (String, String);

impl Types {
    fn of_model() -> Types {
        let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/src/model");
        let files = fs::read_dir(model).unwrap().map(|entry| entry.unwrap().path());
        let sources = files.filter(|file| file.extension().is_some_and(|ending| ending == "rs"));
        Types::parse(sources.map(|file| fs::read_to_string(file).unwrap()))
    }

    fn parse(sources: impl Iterator<Item = String>) -> Types {
        let mut types = BTreeMap::new();
        let mut enums = Vec::new();
        for item in sources.flat_map(|text| syn::parse_file(&text).unwrap().items) {
            match item {
                Item::Struct(it) => {
                    let keys = if is_text(&it.attrs) { Vec::new() } else { fields(&it.fields) };
                    types.insert(it.ident.to_string(), keys);
                }
                Item::Enum(it) => enums.push(it),
                _ => {}
            }
        }
        let structs: BTreeSet<String> = types.keys().cloned().collect();
        for it in enums {
            let variants = it.variants.iter().filter_map(|variant| {
                let held = variant.fields.iter().next()?;
                let name = variant.ident.to_string().to_lowercase();
                Some(Key { name, ..holding(&held.ty) })
            });
            let with_keys = variants.filter(|key| structs.contains(&key.holds)).collect();
            types.insert(it.ident.to_string(), with_keys);
        }
        Types(types)
    }

    fn keys(&self, of: &str) -> Vec<Key> {
        let own = self.0.get(of).cloned().unwrap_or_default().into_iter();
        let expanded =
            own.flat_map(|key| if key.is_flattened { self.keys(&key.holds) } else { vec![key] });
        expanded.collect()
    }

    /// The keys on the way of `path` (`phases.totals.cpu.user_ns`), from `root`. Where a key's type
    /// has none of its own, what follows is the value's.
    fn follow(&self, root: &str, path: &str) -> Result<Vec<Place>, String> {
        let mut of = root.to_string();
        let mut places = Vec::new();
        let mut names = path.split('.');
        while let Some(name) = names.next() {
            let keys = self.keys(&of);
            if keys.is_empty() {
                break;
            }
            let key = keys.into_iter().find(|key| key.name == name);
            let key = key.ok_or_else(|| format!("{path}: {of} has no {name}"))?;
            places.push((of, key.name));
            if key.is_map {
                names.next();
            }
            of = key.holds;
        }
        Ok(places)
    }

    /// Every key below `root`, but for those of the types in `elsewhere`.
    fn below(&self, root: &str, elsewhere: &[&str]) -> BTreeSet<Place> {
        let mut seen: BTreeSet<String> = elsewhere.iter().map(ToString::to_string).collect();
        let mut found = BTreeSet::new();
        let mut todo = vec![root.to_string()];
        while let Some(of) = todo.pop() {
            if seen.insert(of.clone()) {
                let keys = self.keys(&of);
                found.extend(keys.iter().map(|key| (of.clone(), key.name.clone())));
                todo.extend(keys.into_iter().map(|key| key.holds));
            }
        }
        found
    }

    /// What is wrong with `documented`, the keys of `root` that a page has.
    fn drift(&self, root: &str, elsewhere: &[&str], documented: &[String]) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut missing = self.below(root, elsewhere);
        for path in documented {
            match self.follow(root, path) {
                Ok(places) => places.iter().for_each(|place| _ = missing.remove(place)),
                Err(said) => wrong.push(said),
            }
        }
        wrong.extend(missing.iter().map(|(of, key)| format!("{of}'s {key} is not documented")));
        wrong
    }
}

/// The keys of a struct.
fn fields(fields: &Fields) -> Vec<Key> {
    let key = |field: &Field| {
        let mut key = Key { name: field.ident.as_ref()?.to_string(), ..holding(&field.ty) };
        let is_skipped = told_serde(&field.attrs, &mut key);
        (!is_skipped).then_some(key)
    };
    fields.iter().filter_map(key).collect()
}

/// It is written as a text, and has no keys there.
fn is_text(attributes: &[Attribute]) -> bool {
    attributes.iter().filter(|it| it.path().is_ident("serde")).any(|attribute| {
        let told = attribute.meta.require_list().map(|list| list.tokens.to_string());
        told.is_ok_and(|told| told.contains("into = \"String\""))
    })
}

/// Takes from a field's attributes what changes its key. True where the field is left out.
fn told_serde(attributes: &[Attribute], key: &mut Key) -> bool {
    let mut is_skipped = false;
    for attribute in attributes.iter().filter(|it| it.path().is_ident("serde")) {
        let told = attribute.parse_nested_meta(|meta| {
            is_skipped |= meta.path.is_ident("skip");
            key.is_flattened |= meta.path.is_ident("flatten");
            if let Ok(value) = meta.value() {
                let text: syn::LitStr = value.parse()?;
                if meta.path.is_ident("rename") {
                    key.name = text.value();
                }
            }
            Ok(())
        });
        told.unwrap();
    }
    is_skipped
}

/// A key without a name, by the type in it.
fn holding(of: &Type) -> Key {
    let Type::Path(path) = of else { return Key::default() };
    let last = path.path.segments.last().unwrap();
    let name = last.ident.to_string();
    let PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return Key { holds: name, ..Key::default() };
    };
    let Some(GenericArgument::Type(inner)) = arguments.args.last() else { return Key::default() };
    Key { is_map: name == "BTreeMap", ..holding(inner) }
}

/// A section of FORMAT.md, with those below it; `heading` with its marks.
fn section(heading: &str) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../FORMAT.md");
    let text = fs::read_to_string(page).unwrap();
    let begin = format!("\n{heading}\n");
    let (_, section) = text.split_once(&begin).unwrap_or_else(|| panic!("no {heading}"));
    let level = heading.split(' ').next().unwrap().len();
    let ends = (1..=level).filter_map(|level| section.find(&format!("\n{} ", "#".repeat(level))));
    section[..ends.min().unwrap_or(section.len())].to_string()
}

/// The keys in the first columns of a section's tables: `a.b`, and `.c` beside it for `a.c`. A
/// heading "key of `a`" stands before all of its table.
fn of_tables(section: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut prefix = String::new();
    for line in section.lines().filter(|line| line.starts_with("| ")) {
        let cell = line.split('|').nth(1).unwrap().trim();
        let words: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
        if cell.starts_with("key") {
            prefix = words.first().map_or(String::new(), |of| format!("{of}."));
            continue;
        }
        for word in words {
            let path = match (word.strip_prefix('.'), found.last()) {
                (Some(beside), Some(last)) => {
                    let (folder, _) = last.rsplit_once('.').unwrap();
                    format!("{folder}.{beside}")
                }
                _ => format!("{prefix}{word}"),
            };
            found.push(path);
        }
    }
    found
}

/// The keys of a plan as it is written.
fn of_toml(value: &toml::Value, path: &str, found: &mut Vec<String>) {
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table {
                let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                of_toml(value, &below, found);
                found.push(below);
            }
        }
        toml::Value::Array(values) => values.iter().for_each(|value| of_toml(value, path, found)),
        _ => {}
    }
}

#[track_caller]
fn assert_same(wrong: &[String]) {
    assert!(wrong.is_empty(), "FORMAT.md and the types differ:\n{}", wrong.join("\n"));
}

#[test]
fn a_plan_has_the_documented_keys() {
    let section = section("## A plan");
    let block = section.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let plan: Result<Plan, _> = toml::from_str(block);
    plan.unwrap_or_else(|error| panic!("the plan in FORMAT.md can't be read: {error}"));
    let mut documented = Vec::new();
    of_toml(&toml::from_str(block).unwrap(), "", &mut documented);
    let claims = self::section("### Claims");
    documented.extend(of_tables(claims.split("\n| answer ").next().unwrap()));
    assert_same(&Types::of_model().drift("Plan", &[], &documented));
}

#[test]
fn trials_records_and_runs_have_the_documented_keys() {
    let types = Types::of_model();
    for (heading, root, elsewhere) in [
        ("## A trial", "Trial", &["Workload", "Contender", "Limits", "Probed"][..]),
        ("## A record", "Record", &[]),
        ("### run.json", "Run", &[]),
    ] {
        let documented = of_tables(&section(heading));
        assert!(documented.len() > 10, "{heading} has {documented:?}");
        assert_same(&types.drift(root, elsewhere, &documented));
    }
}

/// These sections are sentences, with values and names among the keys: that every key is there is
/// what can be checked.
#[test]
fn every_key_of_the_other_documents_is_named() {
    let types = Types::of_model();
    for (heading, roots) in [
        ("## A result", &["Comparison", "Cause", "CausePart", "Finding", "Beside"][..]),
        ("## A recording", &["Head", "Entry", "Call"]),
        ("## A run against its baseline", &["Across", "Change", "NotCompared", "Difference"]),
        ("## Several runs", &["Joined", "Term", "Abreast"]),
        ("## A history", &["History", "Past", "Series", "Point", "Shift"]),
        ("## A use", &["Purpose", "Want", "Advice", "Condition", "Weighed", "Missing", "Turn"]),
        ("## Checked settings", &["Checked"]),
    ] {
        let section = section(heading);
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let words: BTreeSet<&str> = section.split(|c| !is_word(c)).collect();
        let keys = roots.iter().flat_map(|root| {
            let keys = types.keys(root);
            assert!(!keys.is_empty(), "{root} is gone");
            keys.into_iter().map(move |key| format!("{root}'s {}", key.name))
        });
        let unnamed = keys.filter(|key| !words.contains(key.rsplit(' ').next().unwrap()));
        let unnamed: Vec<String> = unnamed.map(|key| format!("{heading}: {key}")).collect();
        assert_same(&unnamed);
    }
}

#[test]
fn drift_is_found_in_either_direction() {
    let source = "
        struct Record { #[serde(flatten)] key: Key, outcome: Outcome, #[serde(skip)] own: u8,
                        phases: Vec<Phase> }
        struct Key { #[serde(default, rename = \"round\")] number: u32 }
        enum Outcome { Measured, Failed(Failure) }
        struct Failure { step: String }
        struct Phase { histograms: BTreeMap<String, Histogram>, kind: Option<Kind> }
        struct Histogram { max_ns: u64, sum_ns: u64 }
        enum Kind { One(u8), Two }";
    let types = Types::parse([source.to_string()].into_iter());
    let page = "| key | what |\n| --- | --- |\n\
                | `round` | `number` |\n\
                | `outcome.failed.step` | |\n\
                | key of `phases` | what |\n\
                | `histograms.NAME.max_ns`, `.sum_ns` | |\n\
                | `kind` | |";
    let documented = of_tables(page);
    assert_eq!(types.drift("Record", &[], &documented), Vec::<String>::new());
    let missing = types.drift("Record", &[], &documented[1..]);
    assert_eq!(missing, ["Record's round is not documented"]);
    let planted = of_tables(&page.replace(".sum_ns", ".sum_s"));
    let wrong = types.drift("Record", &[], &planted);
    let said = "phases.histograms.NAME.sum_s: Histogram has no sum_s";
    assert_eq!(wrong, [said, "Histogram's sum_ns is not documented"]);
}
