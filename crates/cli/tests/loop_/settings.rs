//! Settings that are set for a trial, take, matter, and are put back; throttled devices.

use std::fs;

use super::{device, failure, of, printed, run_plan};
use crate::support::{Scene, list, sample, text, verdict};

const DIRTY: [&str; 4] =
    ["dirty_ratio", "dirty_bytes", "dirty_background_ratio", "dirty_background_bytes"];

fn sysctls() -> Vec<String> {
    DIRTY.map(|name| fs::read_to_string(format!("/proc/sys/vm/{name}")).unwrap()).into()
}

/// Prints the settings that the trial runs under.
const SHOW: &str = r#"
    device=$(awk '$2 == "/run/fsverdict/mnt" { print $1 }' /proc/mounts)
    cd "/sys/block/${device#/dev/}/queue"
    cat scheduler nr_requests read_ahead_kb
    cat /proc/sys/vm/dirty_ratio /proc/sys/vm/dirty_bytes /proc/sys/vm/dirty_background_bytes
"#;

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn settings_hold_during_a_trial_and_are_put_back_after_it() {
    let scene = Scene::alone();
    let before = sysctls();
    let plan = format!(
        r#"
        bed = {{ size = "64M" }}
        judgement = {{ rounds = 3 }}
        [[contender]]
        name = "plain"
        file_system = "ext4"
        [[contender]]
        name = "tuned"
        file_system = "ext4"
        queue = {{ scheduler = "mq-deadline", nr_requests = 48, read_ahead = 512 }}
        sysctl = {{ "vm.dirty_bytes" = 67108864, "vm.dirty_background_bytes" = 33554432 }}
        [[workload]]
        name = "show"
        command = '''{SHOW}'''
        "#
    );
    let document = run_plan(&scene, &plan).exits(0).json();
    for trial in of(&document, "tuned") {
        let shown = printed(&scene, trial);
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines[0].contains("[mq-deadline]"), "{shown}");
        assert_eq!(lines[1..], ["48", "512", "0", "67108864", "33554432"]);
    }
    let plain: Vec<String> =
        of(&document, "plain").iter().map(|trial| printed(&scene, trial)).collect();
    assert!(plain.iter().all(|shown| *shown == plain[0]), "not put back: {plain:#?}");
    assert!(!plain[0].contains("[mq-deadline]") && !plain[0].contains("67108864"), "{}", plain[0]);
    assert_eq!(sysctls(), before);
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_setting_that_does_not_take_fails_its_contender_alone() {
    let scene = Scene::alone();
    let before = sysctls();
    let plan = r#"
        bed = { size = "64M" }
        judgement = { rounds = 4 }
        [[contender]]
        name = "plain"
        file_system = "ext4"
        [[contender]]
        name = "wrong"
        file_system = "ext4"
        queue = { scheduler = "nonsense" }
        sysctl = { "vm.dirty_bytes" = 67108864 }
        [[contender]]
        name = "unknown"
        file_system = "ext4"
        sysctl = { "vm.no_such_knob" = 1 }
        [[contender]]
        name = "other"
        file_system = "ext4"
        [[workload]]
        name = "work"
        command = "seq 100000 > numbers"
    "#;
    let document = run_plan(&scene, plan).exits(1).json();
    for (contender, says) in [("wrong", "nonsense"), ("unknown", "no_such_knob")] {
        assert_eq!(of(&document, contender).len(), 2);
        for trial in of(&document, contender) {
            let (step, error) = failure(trial);
            assert!(step == "settings" && error.contains(says), "{step}: {error}");
        }
    }
    assert_eq!(verdict(&document, "other", "wall_time")["rounds"], 4);
    assert_eq!(sysctls(), before);
    scene.assert_nothing_left();
}

const LIMIT: u64 = 40;

/// Runs dsync writes on a contender held down to [`LIMIT`] operations a second and on one that
/// is not, or on one mounted with `sync`.
fn slowed(scene: &Scene, how: &str, work: &str) -> serde_json::Value {
    let plan = format!(
        r#"
        bed = {{ size = "64M" }}
        judgement = {{ rounds = 4 }}
        [[contender]]
        name = "plain"
        file_system = "ext4"
        [[contender]]
        name = "slowed"
        file_system = "ext4"
        {how}
        [[workload]]
        name = "work"
        command = "{work}"
        "#
    );
    run_plan(scene, &plan).exits(0).json()
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_throttled_contender_is_slower_by_as_much_as_it_is_throttled() {
    let scene = Scene::alone();
    // The work sees no control groups: what the rule does is what shows.
    let work = "dd if=/dev/zero of=f bs=4k count=20 oflag=dsync";
    let document = slowed(&scene, &format!("limits = {{ iops = {LIMIT} }}"), work);
    for trial in of(&document, "slowed") {
        // The rule counts requests as the device gets them, of which the work waits for all.
        let requests = device(trial, 0, "writes");
        let (time_s, expected_s) = (sample(trial, "wall_time"), requests as f64 / LIMIT as f64);
        assert!(time_s > 0.85 * expected_s, "{time_s} s for {requests}");
    }
    let counted = text(&document["run"]["host"]["limits"]);
    assert!(counted.starts_with("cgroups: operations are requests"), "{counted}");
    let verdict = verdict(&document, "slowed", "wall_time");
    let figure = |key: &str| verdict[key].as_f64().unwrap();
    assert!(figure("low") <= figure("ratio") && figure("ratio") <= figure("high"), "{verdict}");
    // The rule makes 20 synced writes last a second. A machine that others keep busy may be as slow
    // without it, now and then: four rounds decide nothing there.
    let seconds = |it: &str| of(&document, it).into_iter().map(|it| sample(it, "wall_time"));
    let (plain, least) = (seconds("plain"), seconds("slowed").fold(f64::MAX, f64::min));
    if plain.fold(0.0, f64::max) < least / 2.0 {
        assert!(figure("ratio") < 0.5, "{verdict}");
    }
    assert!(["slower", "undecided"].contains(&text(&verdict["verdict"])), "{verdict}");
    // Of the device below the trial's there is a rule no more.
    for kind in ["read_iops", "write_iops", "read_bps", "write_bps"] {
        let path = format!("/sys/fs/cgroup/blkio/blkio.throttle.{kind}_device");
        // Control groups of version 2 have no such file, and no such rule of the whole machine.
        let left = fs::read_to_string(path).unwrap_or_default();
        let is_ours = |line: &str| line.starts_with("7:") && line.ends_with(&format!(" {LIMIT}"));
        assert!(!left.lines().any(is_ours), "{kind}: {left}");
    }
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn the_mount_option_sync_writes_each_write() {
    let scene = Scene::new();
    let work = "dd if=/dev/zero of=f bs=4k count=1000";
    let document = slowed(&scene, "mount = [\"sync\"]", work);
    let requests = |contender: &str| -> Vec<u64> {
        let trials = of(&document, contender).into_iter();
        trials.map(|it| device(it, 0, "writes") + device(it, 0, "writes_merged")).collect()
    };
    let (plain, synced) = (requests("plain"), requests("slowed"));
    assert!(synced.iter().all(|&requests| requests >= 1000), "{synced:?}");
    assert!(plain.iter().all(|&requests| requests < 1000), "{plain:?}");
    assert_ne!(verdict(&document, "slowed", "wall_time")["verdict"], "faster");
    let options = &of(&document, "slowed")[0]["mounted"]["options"];
    assert!(list(options).iter().any(|option| text(option) == "sync"), "{options}");
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn two_runs_share_no_sysctl_and_that_is_said_before_the_first_trial() {
    let scene = Scene::alone();
    let plan = |set: &str, work: &str| {
        format!(
            r#"
            bed = {{ size = "64M" }}
            judgement = {{ rounds = 1 }}
            contender = [
                {{ name = "plain", file_system = "ext4" }},
                {{ name = "set", file_system = "ext4", {set} }},
            ]
            [[workload]]
            name = "work"
            command = "{work}"
            "#
        )
    };
    let sysctl = "sysctl = { \"vm.vfs_cache_pressure\" = 77 }";
    let first = scene.write("first.toml", &plan(sysctl, "echo at work; sleep 3600"));
    let mut first = scene.start(&["run", &first, "--output", "first"]);
    let at_work = scene.path("first/trials/1/raw/command.stdout");
    first.reaches("a trial at work", || at_work.exists());

    let second = scene.write("second.toml", &plan(sysctl, "true"));
    scene.fsverdict(&["run", &second, "--output", "second"]).exits(1).says("wait for its end");
    assert!(!scene.path("second/trials").exists(), "a trial was begun");
    // What belongs to the run's own devices is nobody else's.
    let queue = scene.write("queue.toml", &plan("queue = { read_ahead = 512 }", "true"));
    scene.fsverdict(&["run", &queue, "--output", "queue"]).exits(0);

    first.signal("INT");
    first.wait();
    scene.assert_nothing_left();
}
