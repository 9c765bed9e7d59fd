//! dbench, which runs for a time: judged by its own figure, and void by its time.

use super::{of, run_command};
use crate::support::{Scene, list, sample, text, verdict};

const WORK: [&str; 4] = ["dbench", "-t", "2", "2"];

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn dbench_is_judged_by_its_throughput() {
    let scene = Scene::new();
    let options = "--fs ext4,btrfs --size 256M --rounds 4";
    let command = [&["env", "LC_ALL=C"], &WORK[..]].concat();
    let document = run_command(&scene, options, &command).exits(0).json();
    let judged = verdict(&document, "btrfs", "dbench_throughput");
    assert_eq!((text(&judged["unit"]), text(&judged["better"])), ("bytes_per_second", "higher"));
    assert!(judged["ratio"].is_number(), "{judged:#}");
    assert_eq!(list(&document["verdicts"]).len(), 1, "by nothing else");
    for trial in list(&document["trials"]) {
        assert!(sample(trial, "dbench_throughput") > 0.0);
        let number = trial["number"].as_u64().unwrap();
        let said = scene.read(&format!("run/trials/{number}/raw/command.stdout"));
        // On a busy machine it may come to none.
        if said.lines().any(|line| line.trim_start().starts_with("Flush ")) {
            assert!(sample(trial, "dbench_flush_latency_mean") > 0.0);
        }
    }
    let findings = list(&document["findings"]).iter();
    assert!(findings.into_iter().all(|it| it["audit"] != "FixedTime"));
    scene.assert_nothing_left();
}

/// Where a busy machine stretches the times, they tell contenders apart.
#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn dbench_by_its_time_is_void() {
    let scene = Scene::new();
    let options = "--fs ext4,btrfs --size 256M --rounds 4 --primary wall_time";
    let done = run_command(&scene, options, &WORK);
    let document = done.json();
    let found = list(&document["findings"]).iter().find(|it| it["audit"] == "FixedTime");
    let trials = ["ext4", "btrfs"].map(|name| of(&document, name)).concat();
    let mut times: Vec<f64> =
        trials.iter().map(|it| it["phases"][0]["work_ns"].as_f64().unwrap()).collect();
    times.sort_by(f64::total_cmp);
    let Some(found) = found else {
        assert!(times[times.len() - 1] / times[0] > 1.02, "{times:?}");
        scene.assert_nothing_left();
        return;
    };
    assert_eq!(found["severity"], "void");
    assert!(text(&found["advice"]).contains("--primary dbench_throughput"), "{found:#}");
    assert_eq!(verdict(&document, "btrfs", "wall_time")["verdict"], "void");
    assert_eq!(done.code, Some(5), "every workload is void");
    scene.assert_nothing_left();
}
