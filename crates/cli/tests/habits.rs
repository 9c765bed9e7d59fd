//! What a user's slips lead to, and what is said before the first trial.

use std::fs;

use serde_json::Value;

use crate::support::{Scene, list, one_line, text};

const PLAN: &str = r#"
    place = "sim"
    seed = 3
    contender = [
        { name = "ext4", file_system = "ext4" },
        { name = "xfs", file_system = "xfs" },
    ]
    [[workload]]
    name = "work"
    command = ["true"]
    [judgement]
    rounds = 3
"#;

#[test]
fn a_metric_that_no_trial_has_is_refused_before_the_first() {
    let scene = Scene::new();
    let run = |line: &str| scene.run(&format!("run --place sim --fs ext4,xfs {line}")).exits(2);
    run("--small-files --primary creat_rate").says("did you mean create_rate");
    run("--primary wall_tme -- true").says("did you mean wall_time?");
    run("--dry-run --primary iop -- fio --rw=read --size=1m").says("did you mean iops?");
    assert!(!scene.path("runs").exists());
}

#[test]
fn names_are_seen_through_and_a_bare_run_shows_examples() {
    let scene = Scene::new();
    scene.run("run mariad").exits(2).says("did you mean mariadb?");
    scene.run("run cloud-disk").exits(2).says("fsverdict run --study cloud-disk");
    assert!(scene.run("for").exits(2).stderr.contains("for mail --on"));
    let bare = scene.run("run").exits(2).stderr;
    assert_eq!(bare.matches("  sudo fsverdict run ").count(), 3, "{bare}");
    scene.run("show nothing").exits(2).says("fsverdict list plans, studies or uses shows");
    scene.run("show mariad").exits(2).says("did you mean mariadb?");
    for name in ["postgresql", "cloud-disk", "mail"] {
        let shown = scene.run(&format!("show {name}")).exits(0).stdout;
        scene.write("mine.toml", &shown);
        assert!(shown.contains("[[workload]]"), "{shown}");
    }
}

/// But for commands and paths, which are copied whole.
#[test]
fn what_the_machine_can_do_fits_a_terminal() {
    let scene = Scene::new();
    for command in ["doctor", "kernels list", "list contenders", "list plans"] {
        let shown = scene.run(command).exits(0).stdout;
        let wide = |line: &&str| {
            let inner = line.trim_start();
            line.chars().count() > 80 && !["-> ", "image "].iter().any(|it| inner.starts_with(it))
        };
        assert_eq!(shown.lines().find(wide), None, "{command}");
    }
}

#[test]
fn a_run_is_extended_and_says_what_that_costs() {
    let scene = Scene::new();
    scene.write("plan.toml", PLAN);
    scene.run("run plan.toml --output run").exits(0);
    scene.run("run --resume run --rounds 2").exits(2).says("declared with 3 rounds: give it more");
    scene.run("run --resume run --seed 4").exits(2).says("cannot be used with");
    scene.run("run --resume run --rounds 5").exits(0).says("rounds raised from 3 to 5");
    let rounds = || scene.records("run").iter().map(|it| it["round"].as_u64()).max().flatten();
    assert_eq!(rounds(), Some(5));
    assert!(scene.read("run/plan.toml").contains("confidence = \"97.5%\""));
    scene.run("run --resume run --budget 1h").exits(0);
    assert_eq!(rounds(), Some(5), "a budget alone adds no rounds");
    for more in 6..=9 {
        scene.run(&format!("run --resume run --rounds {more}")).exits(0);
    }
    let refused = scene.run("run --resume run --rounds 10").exits(2);
    refused.says("is judged at 99.84375% already: begin another");
    assert_eq!(rounds(), Some(9));
    let all = scene.read("run/run.json");
    assert!(all.contains("from 3 to 5") && all.contains("from 8 to 9"), "{all}");
}

#[test]
fn nothing_that_is_there_is_written_over() {
    let scene = Scene::new();
    scene.write("plan.toml", PLAN);
    scene.run("run plan.toml --output run").exits(0);
    scene.run("advise run --for mail --plan plan.toml").exits(1).says("plan.toml is there already");
    assert_eq!(scene.read("plan.toml"), PLAN);
    scene.run("run plan.toml --output .").exits(1).says("holds plan.toml already");
    assert_eq!(scene.read("plan.toml"), PLAN);
    assert!(!scene.path("trials").exists());
    fs::create_dir(scene.path("other")).unwrap();
    scene.write("other/mine", "precious");
    scene.run("run plan.toml --output other").exits(0);
    assert_eq!(scene.read("other/mine"), "precious");
}

#[test]
fn from_a_use_and_a_place_to_one_recommendation_on_a_screen() {
    let scene = Scene::new();
    let words = "--place sim --fs ext4,xfs --budget 40s --output run";
    let done = scene.run(&format!("for mail --on . {words}")).exits(0);
    let before = one_line(&done.stderr);
    for part in ["mail on .", "compared ext4, xfs", "removed at the end", "40s at most"] {
        assert!(before.contains(part), "{part} is not in\n{before}");
    }
    assert!(done.stdout.contains("Take ") || done.stdout.contains("Stay with "), "{}", done.stdout);
    // It ends when that is known, and not when each of the four figures is.
    assert_eq!(scene.read_json("run/run.json")["stop"], "decided");
    assert!(!done.stdout.contains("# go on"), "{}", done.stdout);
    let said = one_line(&done.stdout);
    assert!(said.contains("95% interval") && said.contains("by weight:"), "{}", done.stdout);
    assert!(done.stdout.contains("fsverdict advise run --for mail"), "{}", done.stdout);
    assert!(done.stdout.lines().count() <= 30, "{}", done.stdout);
    let records: Vec<Value> = scene.records("run");
    assert!(records.iter().any(|it| text(&it["workload"]) == "deliveries"));
    // Of a plan with layers those on the bare disk, unless others are asked for.
    for (asked, names) in [("", "none"), ("--layers luks", "luks")] {
        let layers = scene.run(&format!("for layers --on . {asked} --dry-run")).exits(0);
        let said = one_line(&layers.stderr);
        let all = ["ext4", "xfs", "btrfs"].map(|it| format!("{it} on {names}")).join(", ");
        assert!(said.contains(&format!("compared {all} by")), "{said}");
        assert!(said.contains(&format!("comparing only those on {names}:")), "{said}");
    }
    let none = scene.run("for layers --on . --layers raid5 --dry-run").exits(2);
    none.says("no contender is on layers raid5: write --layers none or --layers luks");
    // A plan is a use, too.
    let advice = scene.run("for sqlite --on . --place sim --fs ext4,xfs --budget 40s").exits(0);
    assert!(one_line(&advice.stdout).contains("for sqlite"), "{}", advice.stdout);
    scene.run("for databse --on .").exits(2).says("did you mean database?");
    scene.run("for mail --on nowhere").exits(2).says("--on nowhere: No such file");
    scene.run("for mail --on run/run.json").exits(2).says("give a directory or a device");
    let only_said = scene.run("for mail --on . --dry-run").exits(0);
    assert_eq!(only_said.stdout, "");
    let document = scene.run("advise run --for mail --format json").exits(0).json();
    assert!(list(&document["missing"]).is_empty(), "{document}");
}

/// A command stays on a line of its own, to be copied.
#[test]
fn nothing_but_a_command_is_wider_than_a_terminal() {
    let scene = Scene::new();
    let run = "run --place sim --fs ext4,xfs,btrfs --rounds 6 --small-files sync=each";
    for name in ["a", "b"] {
        scene.run(&format!("{run} --output {name}")).exits(0);
    }
    for words in [
        "compare a b --fail-on slower",
        "advise a --for mail",
        "advise a --for database",
        "report a b",
        "history .",
        "judge a/samples.csv",
        "audit a",
        "for mail --on . --dry-run",
        "reproduce cloud-disk --dry-run",
    ] {
        let done = scene.run(words);
        for line in done.stdout.lines().chain(done.stderr.lines()) {
            let is_command = line.trim_start().starts_with("fsverdict ");
            assert!(line.chars().count() <= 80 || is_command, "{words}: {line}");
        }
    }
    let wrong = scene.run("judge a/samples.csv --metric wall_time").exits(2).stderr;
    assert!(wrong.contains("create_wall_time") && wrong.len() < 1000, "{wrong}");
}
