//! ZFS where a daemon does its work: what belongs to it is not the work's, and goes with the trial.

use std::fs;

use super::{of, run_plan};
use crate::support::{Scene, Started, list, sample, text, wait_for};

const PLAN: &str = r#"
    bed = { size = "128M", devices = 3 }
    seed = 5
    judgement = { rounds = 1 }
    contender = [
        { name = "mirror", file_system = "zfs", mkfs = ["-O", "compression=on", "mirror"] },
        { name = "raidz", file_system = "zfs", mkfs = ["raidz"], mount = ["noatime"] },
        { name = "btrfs", file_system = "btrfs", mkfs = ["-d", "raid1", "-m", "raid1"] },
    ]
    workload = [{ name = "work", command = "seq 300000 > numbers; SLEEP" }]
"#;

/// Where ZFS is the kernel's own, or not to be had, these tests are not about this machine.
fn has_zfs_fuse(scene: &Scene) -> bool {
    let listed = scene.fsverdict(&["list", "contenders"]).exits(0).stdout;
    let (is_made, missing) = listed.split_once("\nMissing here:\n").unwrap_or((&listed, ""));
    let is_missing = missing.lines().any(|line| line.trim_start().starts_with("zfs "));
    let ready = is_made.contains("zfs-fuse") && !is_missing;
    if !ready {
        println!("not tested: zfs-fuse is not what makes ZFS here");
    }
    ready
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn mirrors_and_raid_z_are_contenders_and_the_daemon_is_none_of_the_work() {
    let scene = Scene::alone();
    if !has_zfs_fuse(&scene) {
        return;
    }
    let plan = PLAN.replace("SLEEP", "sleep 100 &");
    let document = run_plan(&scene, &plan).exits(0).json();
    for name in ["mirror", "raidz"] {
        let trial = of(&document, name)[0];
        assert_eq!(text(&trial["mounted"]["file_system"]), "fuse.zfs");
        let phase = &trial["phases"][0];
        assert_eq!(phase["processes_left"], 1, "the work's sleep, and not the daemon");
        // A shell, seq and sleep; of the daemon's more than a hundred threads those few that came
        // and went meanwhile, which nothing tells from the work's own.
        assert!(sample(trial, "processes_started") <= 20.0, "{trial}");
        assert!(
            trial["caches"][0]["cached_bytes_after"].as_u64().is_some_and(|it| it <= 64 << 10),
            "{trial}"
        );
    }
    let made = |trial: &str| scene.read(&format!("run/trials/{trial}/raw/daemon.log"));
    let numbers = list(&document["trials"]).iter().filter(|it| it["contender"] != "btrfs");
    numbers.for_each(|trial| assert!(!made(&trial["number"].to_string()).contains("rror")));
    assert!(scene.read("run/run.json").contains("zfs-fuse"));
    let report = scene.read("run/report.md");
    assert!(report.contains("mounted as `fuse.zfs`"));
    let terms = "mirror and raidz (zfs-fuse, an old ZFS in a daemon";
    assert!(report.contains(terms), "{report}");
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn attributes_that_a_file_system_does_not_have_fail_no_trial() {
    let scene = Scene::alone();
    if !has_zfs_fuse(&scene) {
        return;
    }
    let work = "metadata = { directories = 20 } }]";
    let plan = PLAN.replace("command = \"seq 300000 > numbers; SLEEP\" }]", work);
    assert!(plan.contains(work));
    let document = run_plan(&scene, &plan).exits(0).json();
    for name in ["mirror", "raidz"] {
        let refused = list(&of(&document, name)[0]["refused"]);
        assert_eq!((refused.len(), text(&refused[0]["phase"]["metadata"])), (1, "setxattr"));
        assert!(sample(of(&document, name)[0], "delete_rate") > 0.0);
    }
    // The reference is one of those that refuse: there is nothing to compare with.
    let of_attributes = |it: &&serde_json::Value| it["metric"] == "setxattr_rate";
    assert_eq!(list(&document["verdicts"]).iter().filter(of_attributes).count(), 0);
    let said = "work, mirror: the file system has no setxattr";
    assert!(scene.read("run/report.md").contains(said));
    scene.assert_nothing_left();
}

/// Daemons of this machine, as the kernel numbers them, that have a pool on a device of the scene.
fn daemons(scene: &Scene) -> Vec<String> {
    let images = scene.typed("run");
    let loops = fs::read_dir("/sys/block").unwrap().flatten().filter(|entry| {
        let file = fs::read_to_string(entry.path().join("loop/backing_file"));
        file.is_ok_and(|file| file.starts_with(&images))
    });
    let pools: Vec<String> =
        loops.map(|entry| format!(" fsverdict-{}-", entry.file_name().display())).collect();
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let has_pool = |path: &std::path::PathBuf| {
        let mounts = fs::read_to_string(path.join("mountinfo")).unwrap_or_default();
        let name = fs::read_to_string(path.join("comm")).unwrap_or_default();
        name.trim() == "zfs-fuse" && pools.iter().any(|pool| mounts.contains(pool))
    };
    processes.filter(has_pool).map(|path| path.display().to_string()).collect()
}

/// A run whose trial has its daemon at work, then ended by a signal.
fn ended_by(signal: &str, code: Option<i32>) {
    let scene = Scene::alone();
    if !has_zfs_fuse(&scene) {
        return;
    }
    let plan = scene.write("plan.toml", &PLAN.replace("SLEEP", "sleep 100"));
    let mut run: Started = scene.start(&["run", &plan, "--output", "run"]);
    run.reaches("a daemon at work", || !daemons(&scene).is_empty());
    let working = daemons(&scene);
    run.signal(signal);
    assert_eq!(run.wait().code, code);
    wait_for("the daemon's end", || !working.iter().any(|path| fs::exists(path).unwrap()));
    scene.fsverdict(&["clean"]).exits(0);
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn ctrl_c_ends_the_daemon_too() {
    ended_by("INT", Some(130));
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_kill_ends_the_daemon_too() {
    ended_by("KILL", None);
}
