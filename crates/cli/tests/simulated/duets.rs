//! Duets on the simulated host.

use crate::support::{Scene, list, verdict};

const PLAN: &str = r#"
    place = "sim"
    rounds = "duet"
    seed = 5

    [[contender]]
    name = "plain"
    file_system = "ext4"

    [[contender]]
    name = "tuned"
    file_system = "xfs"

    [[workload]]
    name = "work"
    fio = { rw = "write", time_based = true, runtime = 5 }

    [judgement]
    rounds = 6
    arms = ["duplicate"]

    [sim]
    noise = 0.005
    speed = { tuned = 1.3 }
"#;

#[test]
fn a_duet_has_a_bed_for_each_and_a_verdict() {
    let scene = Scene::new();
    let document = super::run_plan(&scene, "run", PLAN);
    let verdict = verdict(&document, "tuned", "iops");
    assert_eq!(verdict["verdict"], "faster", "{verdict:#}");
    let ratio = verdict["ratio"].as_f64().unwrap();
    assert!((ratio / 1.3 - 1.0).abs() < 0.02, "{ratio}");
    for round in list(&document["trials"]).chunk_by(|a, b| a["round"] == b["round"]) {
        let counted: Vec<_> =
            round.iter().map(|trial| &trial["phases"][0]["turns"]["counted"]).collect();
        assert_eq!(counted.len(), 3);
        assert!(counted.iter().all(|it| it.is_array() && *it == counted[0]), "{counted:?}");
    }
    assert!(scene.read("run/report.md").contains(" in turns of 100 ms"));
    let plan = scene.read("run/plan.toml");
    assert!(plan.contains("rounds = \"duet\""), "{plan}");
}

#[test]
fn work_that_can_not_pause_is_refused_before_anything_is_made() {
    let scene = Scene::new();
    for work in ["true", "sysbench fileio --file-test-mode=rndrw run", "fio --rw=write --size=1m"] {
        let line = format!("run --place sim --duet --fs ext4,xfs --output run -- {work}");
        scene.run(&line).exits(2).says("a duet takes small_files, metadata, trees,");
    }
    assert!(!scene.path("run").exists());
    scene
        .run("run --place sim --duet --fs ext4,xfs --rounds 2 --output run --tree files=500")
        .exits(0);
    assert!(scene.read("run/report.md").contains("4 trials in turns, "));
}

#[test]
fn a_dry_duet_says_that_work_takes_turns() {
    let scene = Scene::new();
    let file = scene.write("plan.toml", &PLAN.replace("place = \"sim\"", "place = \"local\""));
    let said = scene.fsverdict(&["run", &file, "--dry-run"]).exits(0).stdout;
    assert!(said.contains("in turns of 100 ms"), "{said}");
    assert_eq!(said.matches("--runtime=15000ms").count(), 3, "{said}");
    assert_eq!(said.matches("--write_lat_log=").count(), 3, "{said}");
    for number in 0..3 {
        assert!(said.contains(&format!("/dev/loop{number} ")), "{said}");
    }
}

/// Whatever fails, nothing stays but what could not be removed.
#[test]
fn every_action_of_a_duet_may_fail() {
    let scene = Scene::new();
    for action in (1..=60).step_by(3) {
        let plan = PLAN.replace("[sim]", &format!("[sim]\nfail_at = {action}"));
        let file = scene.write("plan.toml", &plan.replace("rounds = 6", "rounds = 1"));
        let output = format!("run{action}");
        let done = scene.fsverdict(&["run", &file, "--output", &output]);
        assert!(!done.stderr.contains("panicked"), "{action}: {}", done.stderr);
        let is_its_removal = done.stderr.contains("removing the bed");
        assert_eq!(
            done.stderr.contains("left behind"),
            is_its_removal,
            "{action}: {}",
            done.stderr
        );
    }
}
