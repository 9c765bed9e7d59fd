//! The crates that the program is made of: how many there are, and what each of those that are
//! asked for costs, as ARCHITECTURE.md tells.
//!
//! Counted are crates, by name and version, in a build for Linux on x86-64: our own, the libraries,
//! and the procedural macros with what they are made of, but not what only build scripts or tests
//! need. A crate is made of itself and all below it, and brings what would be gone without it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Started, assert_same, program};

/// Set, the table is written anew: `FSVERDICT_RENEW=1 cargo test -p fsverdict crates`.
const RENEW: &str = "FSVERDICT_RENEW";

/// There is a reason for each of them, and somebody has to read it.
const MOST: usize = 90;

const BEGIN: &str = "<!-- crates -->\n";
const END: &str = "<!-- end of crates -->";
const HEADER: &str =
    "\n| crate | made of | brings | of lines | gives |\n| --- | --: | --: | --: | --- |\n";

/// A crate's name and version.
type Crate = (String, String);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn is_ours((name, _): &Crate) -> bool {
    name.starts_with("fsverdict")
}

/// Which crates each crate is built with.
struct Tree(BTreeMap<Crate, BTreeSet<Crate>>);

impl Tree {
    /// Cargo's.
    fn of_program() -> Tree {
        let mut cargo = program(env!("CARGO"));
        cargo.args(["tree", "--locked", "--offline", "--package", "fsverdict"]);
        cargo.args(["--edges", "normal", "--target", "x86_64-unknown-linux-gnu"]);
        cargo.args(["--no-dedupe", "--prefix", "depth"]).current_dir(root());
        Tree::parse(&Started::new(cargo).wait().exits(0).stdout)
    }

    /// Lines like `2clap_derive v4.6.7 (proc-macro)`, where 2 is the depth.
    fn parse(text: &str) -> Tree {
        let mut tree = Tree(BTreeMap::new());
        let mut above: Vec<Crate> = Vec::new();
        for line in text.lines().filter(|line| !line.is_empty()) {
            let digits = line.find(|char: char| !char.is_ascii_digit()).unwrap();
            let mut words = line[digits..].split(' ');
            let name = words.next().unwrap().to_string();
            let version = words.next().unwrap().trim_start_matches('v').to_string();
            let found = (name, version);
            above.truncate(line[..digits].parse().unwrap());
            if let Some(parent) = above.last() {
                tree.0.get_mut(parent).unwrap().insert(found.clone());
            }
            tree.0.entry(found.clone()).or_default();
            above.push(found);
        }
        tree
    }

    /// Those of others that we ask for.
    fn direct(&self) -> BTreeSet<&Crate> {
        let ours = self.0.iter().filter(|(name, _)| is_ours(name));
        ours.flat_map(|(_, needs)| needs).filter(|needed| !is_ours(needed)).collect()
    }

    fn named(&self, name: &str) -> &Crate {
        self.0.keys().find(|it| it.0 == name).unwrap()
    }

    /// What `top` is made of, when we do not ask for `without`.
    fn made_of(&self, top: &Crate, without: Option<&Crate>) -> BTreeSet<&Crate> {
        let mut found = BTreeSet::new();
        let mut open = vec![self.0.get_key_value(top).unwrap().0];
        while let Some(next) = open.pop() {
            if found.insert(next) {
                let needs = self.0[next].iter();
                open.extend(needs.filter(|needed| !(is_ours(next) && Some(*needed) == without)));
            }
        }
        found
    }
}

/// The lines of Rust below a crate's `src`, where Cargo has unpacked it.
fn lines((name, version): &Crate) -> usize {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.unwrap_or_else(|| Path::new(&std::env::var_os("HOME").unwrap()).join(".cargo"));
    let registries = fs::read_dir(home.join("registry/src")).unwrap();
    let of_crate = |registry: PathBuf| registry.join(format!("{name}-{version}/src"));
    let mut folders = registries.map(|entry| of_crate(entry.unwrap().path()));
    let folder = folders.find(|folder| folder.exists());
    let mut open = vec![folder.unwrap_or_else(|| panic!("{name} {version} is not unpacked"))];
    let mut lines = 0;
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            lines += fs::read(path).unwrap().iter().filter(|byte| **byte == b'\n').count();
        }
    }
    lines
}

/// A row for each crate that we ask for, the dearest first; what it gives is told by hand.
fn table(tree: &Tree, before: &str) -> String {
    let top = tree.named("fsverdict");
    let all = tree.made_of(top, None);
    let mut rows: Vec<(usize, usize, usize, &str)> = Vec::new();
    for direct in tree.direct() {
        let rest = tree.made_of(top, Some(direct));
        let brings = all.difference(&rest);
        let lines: usize = brings.clone().map(|it| lines(it)).sum();
        let made_of = tree.made_of(direct, None).len();
        rows.push((brings.count(), lines, made_of, &direct.0));
    }
    rows.sort_by(|a, b| b.cmp(a));
    let gives = |name: &str| {
        let row = before.lines().find(|line| line.starts_with(&format!("| {name} |")));
        row.map_or("", |row| row.trim_end_matches(" |").rsplit("| ").next().unwrap()).to_string()
    };
    let rows = rows.iter().map(|(brings, lines, made_of, name)| {
        let lines = *lines as f64 / 1000.0;
        format!("| {name} | {made_of} | {brings} | {lines:.1}k | {} |\n", gives(name))
    });
    let asked_for = rows.len();
    let rows: String = rows.collect();
    let (all, ours) = (all.len(), all.iter().filter(|it| is_ours(it)).count());
    format!(
        "{HEADER}{rows}\n{all} crates in all: {ours} of ours, {asked_for} that these ask for, and \
         what those are made of.\n\n"
    )
}

#[test]
fn crates_are_few_and_each_is_accounted_for() {
    let tree = Tree::of_program();
    let count = tree.made_of(tree.named("fsverdict"), None).len();
    assert!(count <= MOST, "{count} crates, where {MOST} are to do");
    let path = root().join("ARCHITECTURE.md");
    let text = fs::read_to_string(&path).unwrap();
    let (head, rest) = text.split_once(BEGIN).expect("the mark of the table");
    let (before, tail) = rest.split_once(END).expect("the end of the table");
    let table = table(&tree, before);
    if std::env::var_os(RENEW).is_some() {
        fs::write(path, format!("{head}{BEGIN}{table}{END}{tail}")).unwrap();
    } else {
        println!("{RENEW}=1 writes the figures anew");
        assert_same(&table, before);
    }
    assert!(!table.contains("|  |"), "what does it give? {table}");
}

#[test]
fn a_crate_brings_what_nothing_else_needs() {
    let tree = Tree::parse(
        "0fsverdict v0.1.0 (/here)\n1a v1.0.0\n2shared v1.0.0\n2only_a v1.0.0 (proc-macro)\n\
         1b v1.0.0\n2shared v1.0.0\n2c v2.0.0\n1c v2.0.0\n",
    );
    let top = tree.named("fsverdict");
    let all = tree.made_of(top, None);
    let brings = |name: &str| {
        let rest = tree.made_of(top, Some(tree.named(name)));
        all.difference(&rest).map(|it| it.0.as_str()).collect::<Vec<_>>()
    };
    assert_eq!((all.len(), tree.direct().len()), (6, 3));
    assert_eq!(tree.made_of(tree.named("b"), None).len(), 3);
    assert_eq!(brings("a"), ["a", "only_a"]);
    assert_eq!(brings("b"), ["b"]);
    assert_eq!(brings("c"), [""; 0], "b needs it too");
}
