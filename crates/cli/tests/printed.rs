//! Figures that commands print of their own work, on two directories, which needs no root.

use std::fs;

use serde_json::Value;

use crate::support::{Done, Scene, list, sample, text};

/// What dbench 4.00 printed.
const DBENCH: &str = include_str!("../../core/src/printed/kept/dbench.txt");

fn run(scene: &Scene, options: &[&str], line: &str) -> Done {
    for name in ["one", "two"] {
        fs::create_dir_all(scene.path(name)).unwrap();
    }
    let bed = format!("directory:{},{}", scene.typed("one"), scene.typed("two"));
    let words = ["run", "--bed", &bed, "--warm", "--rounds", "1", "--output", "run", "--json", "-"];
    scene.fsverdict(&[&words[..], options, &["--", "sh", "-c", line]].concat())
}

fn metrics(document: &Value) -> Vec<&str> {
    list(&document["verdicts"]).iter().map(|it| text(&it["metric"])).collect()
}

#[test]
fn a_figure_that_is_looked_for_is_judged() {
    let scene = Scene::new();
    let line = "printf 'rate: 9 MB/s\\rrate: 1%s.5 MB/s\\n' $FSVERDICT_ROUND; echo p99 7 us >&2";
    let looked_for = ["--figure", r"rate=^rate: (\S+) MB/s:MB/s", "--figure", r"p99=p99 (\d+):us"];
    let document = run(&scene, &looked_for, line).exits(0).json();
    assert_eq!(metrics(&document), ["p99", "rate"]);
    for trial in list(&document["trials"]) {
        assert_eq!(sample(trial, "rate"), 11.5e6);
        assert_eq!(sample(trial, "p99"), 7000.0);
    }
    assert_eq!(document["plan"]["workload"][0]["figures"]["p99"], r"p99 (\d+):us");
    let better = list(&document["verdicts"]).iter().map(|it| text(&it["better"]));
    assert_eq!(better.collect::<Vec<_>>(), ["lower", "higher"]);
}

#[test]
fn a_figure_that_is_not_printed_fails_the_trial_and_says_so() {
    let scene = Scene::new();
    let failed = run(&scene, &["--figure", r"rate=^rate: (\S+)"], "echo no rate").exits(1);
    let said = "figure rate: nothing that the command printed is \"^rate: (\\\\S+)\"";
    assert!(failed.stderr.contains(said) || failed.stdout.contains(said), "{failed:?}");
}

#[test]
fn a_known_program_is_read_from_within_a_script_and_judged_where_it_is_named() {
    let scene = Scene::new();
    let output = scene.write("dbench.txt", DBENCH);
    let by_time = run(&scene, &[], &format!("cat {output}")).exits(0).json();
    assert_eq!(metrics(&by_time), ["wall_time"]);
    assert_eq!(sample(&list(&by_time["trials"])[0], "dbench_throughput"), 357.259e6);
    fs::remove_dir_all(scene.path("run")).unwrap();
    let line = format!("dbench() {{ cat {output}; }}; dbench -t 2 2");
    let by_its_own = run(&scene, &[], &line).exits(0).json();
    assert_eq!(metrics(&by_its_own), ["dbench_throughput"]);
    fs::remove_dir_all(scene.path("run")).unwrap();
    let silent = run(&scene, &[], "dbench() { :; }; dbench -t 2 2").exits(1);
    let said = "dbench_throughput is to be judged, and was not printed: dbench knows it after";
    assert!(silent.stderr.contains(said) || silent.stdout.contains(said), "{silent:?}");
}
