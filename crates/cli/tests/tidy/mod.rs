//! The rules of the source that the compiler does not hold.

mod imports;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};

const LONGEST_FUNCTION: usize = 70;
const WIDEST_LINE: usize = 100;

/// A source file: its path below `crates/`, and its text.
struct Source {
    path: String,
    text: String,
}

impl Source {
    /// What is compiled into the product: up to the unit tests, which stand last.
    fn product(&self) -> &str {
        let tests = ["\n#[cfg(test)]\nmod tests {", "\n    #[cfg(test)]\n    mod tests {"];
        let end = tests.iter().filter_map(|mark| self.text.find(mark)).min();
        &self.text[..end.unwrap_or(self.text.len())]
    }

    fn is_in(&self, folder: &str) -> bool {
        self.path.starts_with(folder)
    }

    fn is_test(&self) -> bool {
        let name = Path::new(&self.path).file_stem().unwrap();
        self.path.contains("/tests/") || name == "tests" || name == "loop_tests"
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn sources() -> Vec<Source> {
    let crates = root().join("crates");
    let mut sources = Vec::new();
    let mut folders = vec![crates.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let path = path.strip_prefix(&crates).unwrap().display().to_string();
                sources.push(Source { path, text });
            }
        }
    }
    assert!(sources.len() > 50, "only {} files were found", sources.len());
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    sources
}

/// Code without comments: what stands after `//` on a line. Good enough for what is looked for.
fn code(line: &str) -> &str {
    line.split("//").next().unwrap_or_default()
}

/// Every place where `is_wrong` says so, as `path:line: text`.
fn places(sources: &[Source], is_wrong: impl Fn(&Source, &str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources {
        for (place, line) in source.text.lines().enumerate() {
            if is_wrong(source, line) {
                found.push(format!("{}:{}: {}", source.path, place + 1, line.trim()));
            }
        }
    }
    found
}

#[track_caller]
fn assert_none(what: &str, found: &[String]) {
    assert!(found.is_empty(), "{what}:\n{}", found.join("\n"));
}

/// The modules of core that `text` imports: `model` of `use crate::model::X`.
fn imported(text: &str) -> Vec<String> {
    let paths = text.lines().map(code).flat_map(|line| line.split("crate::").skip(1));
    paths
        .map(|rest| rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap().into())
        .collect()
}

#[test]
fn verbs_of_core_import_nouns_only() {
    let mut checked = 0;
    for source in sources().iter().filter(|source| source.is_in("core/src/")) {
        let module = source.path.trim_start_matches("core/src/");
        let Some((verb, _)) = module.split_once('/') else { continue };
        for import in imported(source.product()) {
            checked += 1;
            let allowed = match verb {
                "model" => import == "model",
                "campaign" => ["campaign", "model", "judge"].contains(&import.as_str()),
                // A line for the shell is taken apart as a script's is.
                "printed" => ["printed", "model", "script"].contains(&import.as_str()),
                // What a command started shows as it does for what it prints.
                "published" => ["published", "model", "printed"].contains(&import.as_str()),
                verb => import == verb || import == "model",
            };
            assert!(allowed, "{} imports {import}: {verb} may not", source.path);
        }
    }
    assert!(checked > 10, "only {checked} imports were found");
}

#[test]
fn files_import_each_other_in_no_circle() {
    let sources = sources();
    for (name, least) in [("statistics", 2), ("core", 50), ("host", 50), ("cli", 50)] {
        let arrows = imports::arrows(name, &sources);
        assert!(arrows.len() > least, "only {} arrows were found in {name}", arrows.len());
        assert_none(&format!("an import circle in {name}"), &imports::circles(&arrows));
        let rooms = imports::between_rooms(&arrows);
        assert_none(&format!("a circle of {name}'s folders"), &imports::circles(&rooms));
    }
}

/// What each wing of host may use, by ARCHITECTURE's table.
type Wings = BTreeMap<String, Vec<String>>;

/// Reads the table from below: what a row may use stands under it.
fn wings(page: &str) -> Wings {
    let mut wings = Wings::new();
    for row in page.lines().filter(|line| line.starts_with("| `host/src/")).rev() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let may_use: Vec<String> = match cells[3] {
            "all below" => wings.keys().cloned().collect(),
            "nothing of ours" => Vec::new(),
            list => list.split(", ").map(String::from).collect(),
        };
        let strange = may_use.iter().find(|name| !wings.contains_key(*name));
        assert_eq!(strange, None, "it stands on no row below: {row}");
        let path = cells[1].trim_matches('`').trim_start_matches("host/src/");
        let names = path.trim_end_matches('/').trim_end_matches(".rs").trim_matches(['{', '}']);
        wings.extend(names.split(',').map(|name| (name.to_string(), may_use.clone())));
    }
    wings
}

fn architecture() -> String {
    fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap()
}

#[test]
fn the_table_of_wings_has_all_rooms_of_host_and_no_others() {
    let sources = sources();
    let its = sources.iter().filter(|source| source.is_in("host/src/"));
    let rooms: BTreeSet<&str> = its.map(|source| imports::room(&source.path)).collect();
    let wings = wings(&architecture());
    let named: BTreeSet<&str> = wings.keys().map(String::as_str).chain(["lib"]).collect();
    assert_eq!(rooms, named);
}

/// The arrows between rooms that no wing allows.
fn against_the_wings(rooms: &imports::Arrows) -> Vec<String> {
    let wings = wings(&architecture());
    let wrong = rooms
        .iter()
        .filter(|((from, to), _)| wings.get(from).is_none_or(|may_use| !may_use.contains(to)));
    wrong.map(|((from, to), names)| format!("{from} -> {to}: {names:?}")).collect()
}

#[test]
fn arrows_of_host_go_down_from_wing_to_wing() {
    let rooms = imports::between_rooms(&imports::arrows("host", &sources()));
    assert_none("an arrow against the wings", &against_the_wings(&rooms));
}

/// That the two tests above see what they look for.
#[test]
fn a_planted_circle_and_a_planted_arrow_are_seen() {
    let file = |path: &str, text: &str| Source { path: path.into(), text: text.into() };
    let seen = |sources: &[Source]| {
        let arrows = imports::arrows("host", sources);
        (imports::circles(&arrows), against_the_wings(&imports::between_rooms(&arrows)))
    };
    let mut files = [
        file("host/src/lib.rs", "mod bed;\nmod sys;"),
        file(
            "host/src/bed/mod.rs",
            "mod disk;\nmod image;\npub use image::Image;\npub struct Bed;",
        ),
        file("host/src/bed/image.rs", "use super::Bed;\npub struct Image(Bed);"),
        file(
            "host/src/bed/disk.rs",
            "use crate::bed;\npub fn new() { bed::Image; crate::sys::f() }",
        ),
        file("host/src/sys.rs", "pub fn f() {}"),
    ];
    assert_eq!(seen(&files), (Vec::new(), Vec::new()), "a face hands out what its files define");

    files[2].text += "\nfn of() -> u8 { super::disk::new() }";
    let (found, wrong) = seen(&files);
    let circle = [
        "host/src/bed/disk.rs -> host/src/bed/image.rs: bed::Image",
        "host/src/bed/image.rs -> host/src/bed/disk.rs: super::disk::new()",
    ];
    assert_eq!((found, wrong), (circle.map(String::from).to_vec(), Vec::new()));

    files[2].text = "use super::Bed;\npub struct Image(Bed);\nfn of() { super::ask() }".into();
    files[1].text += "\npub fn ask() {}\nfn image() -> image::Image { loop {} }";
    let (found, _) = seen(&files);
    let circle = [
        "host/src/bed/image.rs -> host/src/bed/mod.rs: Bed, super::Bed, super::ask()",
        "host/src/bed/mod.rs -> host/src/bed/image.rs: image::Image",
    ];
    assert_eq!(found, circle, "a folder's functions are no vocabulary");

    files[4].text = "pub fn f() { println!(\"{}\", crate::bed::Image::SIZE) }".into();
    let (_, wrong) = seen(&files);
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    assert!(wrong[0].starts_with("sys -> bed: "), "{wrong:?}");

    let stricter = architecture().replace("| machine, tool, sys |", "| tool, sys |");
    assert!(wings(&stricter)["bed"].iter().all(|name| name != "machine"), "the table is read");
}

#[test]
fn core_touches_no_machine() {
    let sources = sources();
    let forbidden =
        ["std::fs", "std::process", "std::net", "std::env", "Instant::now", "SystemTime"];
    let product: Vec<Source> = sources
        .into_iter()
        .filter(|source| source.is_in("core/src/") && !source.is_test())
        .map(|source| Source { text: source.product().into(), ..source })
        .collect();
    let found = places(&product, |_, line| forbidden.iter().any(|word| code(line).contains(word)));
    assert_none("core is pure", &found);
}

#[test]
fn unsafe_code_is_in_one_place_and_says_why_it_is_sound() {
    let word = ["uns", "afe "].concat();
    let sources = sources();
    // As code: what `check` finds may be called so, too.
    let openers = ["{", "fn ", "impl ", "impl<", "extern ", "trait "];
    let is_unsafe = |line: &str| {
        let mut after = code(line).split(&word).skip(1);
        after.any(|rest| openers.iter().any(|opener| rest.starts_with(opener)))
    };
    let elsewhere =
        places(&sources, |source, line| is_unsafe(line) && !source.is_in("host/src/sys"));
    assert_none("it belongs into host/src/sys", &elsewhere);
    let mut blocks = 0;
    for source in sources.iter().filter(|source| source.is_in("host/src/sys")) {
        let lines: Vec<&str> = source.text.lines().collect();
        for (place, line) in lines.iter().enumerate().filter(|(_, line)| is_unsafe(line)) {
            blocks += 1;
            let above = &lines[place.saturating_sub(8)..place];
            let says = above.iter().any(|line| line.contains("SAFETY: "));
            assert!(says, "{}:{}: no SAFETY comment: {line}", source.path, place + 1);
        }
    }
    assert!(blocks > 5, "only {blocks} blocks were found");
}

/// The name of the function that is declared on that line, if one is.
fn declared(line: &str) -> Option<&str> {
    let mut rest = line.trim_start();
    loop {
        if let Some(named) = rest.strip_prefix("fn ") {
            return named.split(['(', '<']).next();
        }
        let (first, next) = rest.split_once(if rest.starts_with("pub(") { ") " } else { " " })?;
        let qualifies = ["pub", "const", "async", "unsafe", "extern"].contains(&first);
        // The ABI stands behind `extern`.
        if !(qualifies || first.starts_with("pub(") || first.starts_with('"')) {
            return None;
        }
        rest = next;
    }
}

/// A function's name and length, by rustfmt's layout: it ends at the brace as far left as itself.
fn functions(text: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut functions = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let Some(name) = declared(line) else { continue };
        let end = format!("{}}}", &line[..line.len() - line.trim_start().len()]);
        // One of a trait may have no body.
        let signature = lines[start..].iter().find(|line| line.ends_with(['{', ';', '}']));
        if signature.is_some_and(|line| line.ends_with(';')) {
            continue;
        }
        let length = lines[start..].iter().position(|line| **line == end);
        functions.extend(length.map(|length| (name.to_string(), length + 1)));
    }
    functions
}

#[test]
fn a_function_fits_a_screen() {
    let sources = sources();
    let functions: Vec<(String, usize)> = sources
        .iter()
        .flat_map(|source| {
            let named = functions(&source.text).into_iter();
            named.map(|(name, length)| (format!("{}: {name}", source.path), length))
        })
        .collect();
    assert!(functions.len() > 300, "only {} functions were found", functions.len());
    let long = functions.iter().filter(|(_, length)| *length > LONGEST_FUNCTION);
    let long: Vec<String> = long.map(|(name, length)| format!("{name}, {length} lines")).collect();
    assert_none("functions that fit no screen", &long);
}

#[test]
fn lines_are_short_and_nothing_is_left_for_later() {
    let sources = sources();
    let wide = places(&sources, |_, line| line.chars().count() > WIDEST_LINE);
    assert_none("lines that are too wide", &wide);
    let words = [["FIX", "ME"].concat(), ["TO", "DO"].concat(), ["to", "do!("].concat()];
    let later = places(&sources, |_, line| words.iter().any(|word| line.contains(word)));
    assert_none("work that is not done", &later);
    let spaces = places(&sources, |_, line| line.ends_with(' ') || line.contains('\t'));
    assert_none("tabs, or spaces at the end of a line", &spaces);
}

#[test]
fn programs_are_started_in_one_place() {
    let found = places(&sources(), |source, line| {
        let starts = code(line).contains("Command::new(");
        starts && source.path != "host/src/tool.rs" && !source.is_test()
    });
    assert_none("tool.rs is the one place that starts programs", &found);
}

#[test]
fn what_is_shown_leaves_in_one_place() {
    // What completions prints is the program's own, tabs included.
    let places_of_it = ["cli/src/say.rs", "cli/src/cmd/completions.rs"];
    let ways = ["println!(", "print!(", "stdout()"];
    let found = places(&sources(), |source, line| {
        let shows = source.is_in("cli/src/") && ways.iter().any(|way| code(line).contains(way));
        shows && !places_of_it.contains(&source.path.as_str())
    });
    assert_none("say.rs is the one place that prints", &found);
    let found = places(&sources(), |source, line| {
        let draws = source.is_in("core/src/render/") && code(line).contains("Table::new(");
        draws && source.path != "core/src/render/grid.rs"
    });
    assert_none("a table of a report is a Grid", &found);
}

#[test]
fn which_work_is_which_engines_is_told_in_one_place() {
    let found = places(&sources(), |source, line| {
        let tells = source.is_in("host/src/") && code(line).contains("Work::");
        tells && source.path != "host/src/workload/mod.rs" && !source.is_test()
    });
    assert_none("ask the engine: host/src/workload/engine.rs", &found);
}

/// Words that names had, and that told nobody what was meant: `unmet`, `missing` and `local` do.
const GIVEN_UP: [&str; 7] = ["lack", "lacks", "lacking", "here", "luggage", "deed", "hand"];

/// The names in `tokens` that have such a word, by itself or between underscores.
fn given_up(tokens: TokenStream) -> Vec<String> {
    let named = tokens.into_iter().flat_map(|token| match token {
        TokenTree::Ident(ident) => {
            let name = ident.to_string();
            let has_one = name.split('_').any(|word| GIVEN_UP.contains(&word));
            has_one.then_some(name).into_iter().collect()
        }
        TokenTree::Group(group) => given_up(group.stream()),
        _ => Vec::new(),
    });
    named.collect()
}

#[test]
fn names_have_no_word_that_was_given_up() {
    let mut found = Vec::new();
    for source in sources() {
        let names = given_up(source.text.parse().unwrap());
        found.extend(names.into_iter().map(|name| format!("{}: {name}", source.path)));
    }
    assert_none("names that tell nobody what is meant", &found);
    let planted =
        "/// What is lacking here.\nfn lack(not_here: u8) { there(\"here\", by_hand, adhere) }";
    assert_eq!(given_up(planted.parse().unwrap()), ["lack", "not_here", "by_hand"]);
}

#[test]
fn every_file_says_what_it_is_for() {
    let sources = sources();
    let silent = sources.iter().filter(|source| !source.text.starts_with("//! "));
    let silent: Vec<String> = silent.map(|source| source.path.clone()).collect();
    assert_none("files without a header", &silent);
    let stubs: Vec<String> = sources
        .iter()
        .filter(|source| source.text.lines().next().is_some_and(|line| line.len() < 12))
        .map(|source| source.path.clone())
        .collect();
    assert_none("files whose header says nothing", &stubs);
}

#[test]
fn everything_comes_from_the_public_registry() {
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let comes_from = lock.lines().filter_map(|line| line.strip_prefix("source = "));
    let public = "\"registry+https://github.com/rust-lang/crates.io-index\"";
    assert!(comes_from.clone().count() > 20);
    assert_eq!(comes_from.filter(|source| *source != public).collect::<Vec<_>>(), [""; 0]);
    let mut texts = sources();
    for name in ["Cargo.toml", "quickstart", "test", "scripts/prepare", "README.md"] {
        let text = fs::read_to_string(root().join(name)).unwrap_or_default();
        texts.push(Source { path: name.into(), text });
    }
    let names = [["artif", "actory"].concat(), ["/wo", "rk/"].concat()];
    let found = places(&texts, |_, line| names.iter().any(|name| line.contains(name)));
    assert_none("names that mean something on one machine only", &found);
}

#[test]
fn the_rules_see_what_they_look_for() {
    assert_eq!(imported("use crate::model::X;\nlet y = crate::judge::median(&z);").len(), 2);
    let text = "    fn long() {\n        x();\n    }\n\npub fn next() -> u8 {\n    1\n}\n";
    assert_eq!(functions(text), [("long".to_string(), 3), ("next".to_string(), 3)]);
    assert_eq!(
        functions("trait It {\n    fn of(\n        &self,\n    ) -> u8;\n\n    x\n    }\n}\n"),
        []
    );
    for before in [
        "",
        "pub ",
        "pub(in crate::a) ",
        "const ",
        "pub const ",
        "async ",
        concat!("pub uns", "afe "),
        concat!("pub(super) const uns", "afe extern \"C\" "),
        "extern \"C\" ",
    ] {
        let text = format!("{before}fn it<T>(of: T) {{\n    x();\n}}\n");
        assert_eq!(functions(&text), [("it".to_string(), 3)], "{text}");
    }
    for other in ["extern \"C\" {\n}", "const FN: fn (u8) = it;\n}", "pub struct It {\n}"] {
        assert_eq!(functions(other), [], "{other}");
    }
    let source =
        Source { path: "core/src/a.rs".into(), text: "x\n#[cfg(test)]\nmod tests {".into() };
    assert_eq!(source.product(), "x");
}

/// Else a test that was renamed would silently be left out, or not be.
#[test]
fn the_tests_that_the_quick_tier_names_are_there() {
    let script = fs::read_to_string(root().join("test")).unwrap();
    let names: Vec<&str> = script
        .lines()
        .filter_map(|line| line.strip_prefix("    "))
        .filter(|line| line.contains("::") && !line.contains(' '))
        .collect();
    assert!(names.len() > 5, "{names:?}");
    let sources = sources();
    for name in names {
        let (modules, test) = name.rsplit_once("::").unwrap();
        let file = format!("cli/tests/{}", modules.replace("::", "/"));
        let paths = [format!("{file}.rs"), format!("{file}/mod.rs")];
        let its = sources.iter().find(|source| paths.contains(&source.path));
        let its = its.unwrap_or_else(|| panic!("{name}: neither of {paths:?}"));
        assert!(its.text.contains(&format!("\nfn {test}() {{")), "./test names {name}");
    }
}
