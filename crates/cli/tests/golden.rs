//! Help of every command, as files; and the man pages and completions that come from the same
//! definition.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Scene, Started, assert_same, program};

/// Set, the files are written anew instead of compared:
/// `FSVERDICT_RENEW=1 cargo test -p fsverdict golden`.
const RENEW: &str = "FSVERDICT_RENEW";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// The help of the program and of every command below it, by the words that lead there.
fn helps(scene: &Scene) -> BTreeMap<Vec<String>, String> {
    let mut helps = BTreeMap::new();
    let mut open = vec![Vec::new()];
    while let Some(words) = open.pop() {
        let mut command = program(env!("CARGO_BIN_EXE_fsverdict"));
        command.args(&words).arg("--help").current_dir(scene.path("")).env("COLUMNS", "100");
        let help = Started::new(command).wait().exits(0).stdout;
        // clap fills empty lines of an option's text up to its column.
        let help: String = help.lines().map(|line| line.trim_end().to_string() + "\n").collect();
        for name in commands(&help) {
            open.push([words.clone(), vec![name.to_string()]].concat());
        }
        helps.insert(words, help);
    }
    helps
}

/// The commands that a help lists: clap's own list, or the groups of the program's.
fn commands(help: &str) -> impl Iterator<Item = &str> {
    let has_groups = help.contains("\nMeasure:\n");
    let after = if has_groups { "Measure:" } else { "Commands:" };
    let listed = help.lines().skip_while(move |line| *line != after).skip(1);
    let listed = listed.take_while(
        move |line| {
            if has_groups { *line != "Options:" } else { !line.is_empty() }
        },
    );
    let names = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help")
}

fn file_name(words: &[String]) -> String {
    let words: Vec<&str> = ["fsverdict"].into_iter().chain(words.iter().map(|it| &**it)).collect();
    format!("{}.txt", words.join("-"))
}

#[test]
fn golden_help_is_what_it_was() {
    let scene = Scene::new();
    let helps = helps(&scene);
    assert!(helps.len() > 12, "{:?}", helps.keys());
    if std::env::var_os(RENEW).is_some() {
        let _ = fs::remove_dir_all(folder());
        fs::create_dir_all(folder()).unwrap();
        for (words, help) in &helps {
            fs::write(folder().join(file_name(words)), help).unwrap();
        }
    }
    let mut names: Vec<String> = helps.keys().map(|words| file_name(words)).collect();
    names.sort();
    let files = fs::read_dir(folder()).unwrap();
    let mut files: Vec<String> =
        files.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    files.sort();
    assert_eq!(names, files, "commands and files; {RENEW}=1 writes them anew");
    for (words, help) in &helps {
        let file = fs::read_to_string(folder().join(file_name(words))).unwrap();
        println!("{}: {RENEW}=1 writes it anew", file_name(words));
        assert_same(help, &file);
    }
}

#[test]
fn every_command_has_a_man_page_with_its_options() {
    let scene = Scene::new();
    scene.run("man pages/man1").exits(0);
    for words in helps(&scene).keys() {
        let name = file_name(words).replace(".txt", ".1");
        let page = scene.read(&format!("pages/man1/{name}"));
        assert!(page.contains(".SH SYNOPSIS"), "{name}");
    }
    let run = scene.read("pages/man1/fsverdict-run.1");
    for option in ["\\-\\-erase", "\\-\\-progress", "\\-\\-metrics", "Examples:"] {
        assert!(run.contains(option), "{option} is not in\n{run}");
    }
    scene.write("file", "");
    scene.run("man file/man1").exits(1).says("writing manual pages into file/man1: ");
}

#[test]
fn bash_completes_commands_options_and_names() {
    let scene = Scene::new();
    scene.write("completions", &scene.run("completions bash").exits(0).stdout);
    fs::create_dir_all(scene.path("runs/mine")).unwrap();
    scene.write("runs/mine/run.json", "{}");
    let folder = Path::new(env!("CARGO_BIN_EXE_fsverdict")).parent().unwrap().display();
    let complete = |words: &str| {
        // As bash does it: the words, the place of the one that is typed, and its function.
        let line = format!(
            "PATH={folder}:$PATH; . ./completions; COMP_TYPE=9; COMP_WORDS=({words}); \
             COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             asked=$(complete -p fsverdict | sed 's/.*-F //; s/ .*//'); \
             $asked fsverdict \"${{COMP_WORDS[-1]}}\" \"${{COMP_WORDS[-2]}}\"; \
             echo \"${{COMPREPLY[@]}}\""
        );
        let mut shell = program("bash");
        shell.args(["-c", &line]).current_dir(scene.path(""));
        Started::new(shell).wait().exits(0).stdout.trim().to_string()
    };
    assert_eq!(complete("fsverdict his"), "history");
    assert_eq!(complete("fsverdict run --metr"), "--metrics");
    assert_eq!(complete("fsverdict run --progress pl"), "plain");
    assert_eq!(complete("fsverdict run --fs btr"), "btrfs");
    assert_eq!(complete("fsverdict run mari"), "mariadb");
    assert_eq!(complete("fsverdict run --resume runs/m"), "runs/mine");
    assert_eq!(complete("fsverdict advise --for mai"), "mail");
    assert_eq!(complete("fsverdict show cloud"), "cloud-disk");
    for shell in ["zsh", "fish"] {
        let script = scene.run(&format!("completions {shell}")).exits(0).stdout;
        assert!(script.contains("COMPLETE") && script.contains("fsverdict"), "{script}");
    }
    scene.run("completions tcsh").exits(2).says("'tcsh' for '<SHELL>'");
}
