//! Measurements that deserve a finding, and get it.

use serde_json::Value;

use super::{of, run_plan};
use crate::support::{Scene, list, text, verdict};

/// The findings of an audit.
fn found<'a>(document: &'a Value, audit: &str) -> Vec<&'a Value> {
    list(&document["findings"]).iter().filter(|it| it["audit"] == audit).collect()
}

/// Two alike on a small bed, with more of the plan.
fn alike(scene: &Scene, more: &str) -> Value {
    let contender =
        |name: &str| format!("[[contender]]\nname = \"{name}\"\nfile_system = \"ext4\"\n");
    let plan = format!("bed.size = \"64M\"\n{}{}{more}", contender("one"), contender("other"));
    run_plan(scene, &plan).json()
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_tie_at_the_rate_of_the_bare_device_is_the_device_s() {
    let scene = Scene::alone();
    let document = alike(
        &scene,
        r#"
        [bed.limits]
        iops = 1000
        [judgement]
        rounds = 4
        arms = ["raw"]
        [[workload]]
        name = "read"
        [workload.fio]
        rw = "randread"
        size = "4m"
        direct = 1
        ioengine = "libaio"
        iodepth = 4
        runtime = 1
        time_based = true
        "#,
    );
    let bare = of(&document, "raw device");
    assert_eq!(bare.len(), 4);
    for trial in bare {
        assert_eq!(trial["outcome"], "measured");
        assert_eq!(trial["mounted"], Value::Null);
        let reads = trial["phases"][0]["totals"]["device"]["reads"].as_u64().unwrap();
        assert!((800..1300).contains(&reads), "{trial:#}");
        assert_eq!(trial["phases"][0]["queue"]["declared"], 4.0);
    }
    let bound = found(&document, "DeviceBound");
    assert_eq!(bound.len(), 1, "{:#}", document["findings"]);
    assert!(
        text(&bound[0]["evidence"]).contains("one 0.9")
            || text(&bound[0]["evidence"]).contains("one 1.0")
    );
    for silent in ["A4", "A8"] {
        assert_eq!(found(&document, silent), [&Value::Null; 0]);
    }
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_duplicate_that_is_held_up_voids_the_workload() {
    let scene = Scene::alone();
    let document = alike(
        &scene,
        r#"
        [judgement]
        rounds = 4
        arms = ["duplicate"]
        [[workload]]
        name = "wait"
        command = 'case $FSVERDICT_CONTENDER in *again) sleep 0.4 ;; *) sleep 0.2 ;; esac'
        "#,
    );
    let differs = found(&document, "A15");
    assert_eq!((differs.len(), text(&differs[0]["severity"])), (1, "void"));
    assert_eq!(verdict(&document, "other", "wall_time")["verdict"], "void");
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn work_that_takes_longer_each_round_drifts() {
    let scene = Scene::alone();
    let document = alike(
        &scene,
        r#"
        [judgement]
        rounds = 6
        margin = "0.01%"
        [[workload]]
        name = "wait"
        command = 'sleep 0.$((FSVERDICT_ROUND + 1))'
        "#,
    );
    let drifted: Vec<&str> =
        found(&document, "A12").iter().map(|it| text(&it["contender"])).collect();
    assert_eq!(drifted, ["one", "other"]);
    scene.assert_nothing_left();
}

/// ext4 takes direct writes beyond the end of a file one by one, for each changes its size.
#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_depth_that_the_device_never_sees_is_noticed() {
    let scene = Scene::alone();
    let document = alike(
        &scene,
        r#"
        [judgement]
        rounds = 1
        [[workload]]
        name = "append"
        [workload.fio]
        rw = "write"
        size = "8m"
        direct = 1
        ioengine = "libaio"
        iodepth = 16
        fallocate = "none"
        "#,
    );
    let unseen = found(&document, "A4");
    assert_eq!(unseen.len(), 2, "{:#}", document["findings"]);
    assert!(text(&unseen[0]["evidence"]).contains("of the 16 that were asked for"));
    scene.assert_nothing_left();
}
