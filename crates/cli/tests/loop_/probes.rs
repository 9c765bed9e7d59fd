//! What is read during the work of a real run.

use super::{of, run_command};
use crate::support::{Scene, list, sample};

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn the_page_cache_is_watched_when_it_is_asked_for() {
    const PAGES: u64 = 245;
    let scene = Scene::alone();
    let probes = scene.run("list probes").exits(0).stdout;
    let missing = probes.split_once("Missing here:").map_or("", |(_, missing)| missing);
    if missing.contains(" page-cache ") {
        println!("not tested: {missing}");
        return;
    }
    let mut words = vec!["run", "--fs", "ext4,xfs", "--size", "320M", "--rounds", "1"];
    words.extend(["--output", "run", "--json", "-", "--probe", "page-cache"]);
    words.extend(["--setup", "head -c 1000001 /dev/zero > f"]);
    words.extend(["--", "sh", "-c", "cat f f; sleep 1.7"]);
    let document = scene.fsverdict(&words).exits(0).json();
    for trial in list(&document["trials"]) {
        let pages = &trial["phases"][0]["totals"]["page_cache"];
        assert_eq!(pages["looked_up"], 2 * PAGES, "read cold, and again warm: {trial:#}");
        assert_eq!(pages["missed"], PAGES);
        assert!((sample(trial, "page_cache_hit_share") - 0.5).abs() < 1e-9);
    }
    assert!(scene.read("run/report.md").contains("cache hits"));
    let seconds = scene.read("run/trials/1/per_second.csv");
    let mut lines = seconds.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().unwrap();
    let column = header.iter().position(|name| *name == "page_cache_misses_per_s").unwrap();
    let rows: Vec<Vec<&str>> = lines.collect();
    // The last is all sleep; before it one or two have the reading, on a slow machine.
    let missed: Vec<f64> = rows.iter().map(|row| row[column].parse().unwrap()).collect();
    let (last, before) = missed.split_last().unwrap();
    assert!(*last == 0.0 && before.iter().any(|missed| *missed > 0.0), "{seconds}");
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn what_is_not_asked_for_is_not_known() {
    let scene = Scene::new();
    let options = "--fs ext4,ext4 --size 64M --rounds 1";
    let document = run_command(&scene, options, &["sleep", "0.2"]).exits(0).json();
    for trial in of(&document, "ext4") {
        assert!(trial["phases"][0]["totals"].get("page_cache").is_none(), "{trial:#}");
        assert!(sample(trial, "cpu_idle_share") <= 1.0);
    }
    assert!(!scene.read("run/report.md").contains("cache hits"));
    scene.assert_nothing_left();
}
