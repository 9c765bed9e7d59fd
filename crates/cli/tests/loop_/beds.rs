//! What the file systems are made on: memory, several devices, directories.

use std::path::Path;

use serde_json::Value;

use super::{device, run_command, run_plan};
use crate::support::{Scene, list, sample, text};

const MIB: u64 = 1 << 20;

fn run_on(scene: &Scene, bed: &str, name: &str) -> Value {
    let mut words =
        vec!["run", "--fs", "ext4,xfs", "--size", "320M", "--rounds", "1", "--bed", bed];
    words.extend(["--output", name, "--json", "-", "--", "sh", "-c", "seq 300000 > numbers"]);
    scene.fsverdict(&words).exits(0).json()
}

fn node(scene: &Scene, name: &str) -> String {
    let trial = scene.read_json(&format!("{name}/trials/1/trial.json"));
    text(&trial["bed"]["devices"][0]["path"]).into()
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn memory_is_a_bed_and_is_given_back() {
    let scene = Scene::alone();
    let document = run_on(&scene, "ram", "loop");
    for trial in list(&document["trials"]) {
        assert!(device(trial, 0, "write_bytes") > MIB && sample(trial, "wall_time") > 0.0);
    }
    assert!(node(&scene, "loop").starts_with("/dev/loop"));
    let lab = scene.read_json("loop/trials/1/trial.json")["bed"]["lab"].clone();
    let own = format!("/dev/shm/.fsverdict-{}", text(&lab));
    assert!(!Path::new(&own).exists(), "{own}");
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn zram_is_a_bed_and_is_given_back() {
    if !Path::new("/sys/class/zram-control").exists() {
        let scene = Scene::alone();
        let done = run_command(&scene, "--fs ext4,ext4 --size 64M --bed ram:zram", &["true"]);
        done.exits(1).says("this kernel has no zram");
        return;
    }
    let scene = Scene::alone();
    let document = run_on(&scene, "ram:zram", "zram");
    for trial in list(&document["trials"]) {
        assert!(device(trial, 0, "write_bytes") > MIB && sample(trial, "wall_time") > 0.0);
    }
    let node = node(&scene, "zram");
    assert!(node.starts_with("/dev/zram"), "{node}");
    assert!(!Path::new(&node).exists(), "{node} is still there");
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_file_system_takes_several_devices_if_it_can() {
    let scene = Scene::new();
    let plan = r#"
        bed = { size = "200M", devices = 2 }
        judgement = { rounds = 1 }
        [[contender]]
        name = "one"
        file_system = "ext4"
        [[contender]]
        name = "two"
        file_system = "btrfs"
        mkfs = ["-d", "raid1", "-m", "raid1"]
        [[workload]]
        name = "write"
        command = "dd if=/dev/urandom of=f bs=1M count=16; df --output=size -B1 . | tail -n 1"
    "#;
    let document = run_plan(&scene, plan).exits(0).json();
    for trial in list(&document["trials"]) {
        let written = device(trial, 0, "write_bytes");
        let copies = if trial["contender"] == "two" { 2 } else { 1 };
        assert!(written >= copies * 16 * MIB, "{written} of {copies} copies");
        assert!(written < (copies + 1) * 16 * MIB, "{written} of {copies} copies");
        let size: u64 = super::printed(&scene, trial).trim().parse().unwrap();
        assert!(size < 201 * MIB, "{size}: the devices were strung together");
    }
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn btrfs_chooses_by_what_the_bed_says_and_a_finding_tells() {
    let scene = Scene::alone();
    for (like, rotates) in [("hdd", true), ("ssd", false)] {
        let mut words = vec!["run", "--fs", "btrfs,ext4", "--size", "200M", "--rounds", "1"];
        words.extend([
            "--bed", "ram", "--like", like, "--output", like, "--json", "-", "--", "true",
        ]);
        let document = scene.fsverdict(&words).exits(0).json();
        for trial in list(&document["trials"]) {
            assert_eq!(trial["disk"]["rotational"], rotates, "{like}: {trial:#}");
        }
        let btrfs = super::of(&document, "btrfs")[0];
        let has_ssd = list(&btrfs["mounted"]["options"]).iter().any(|option| option == "ssd");
        assert_eq!(has_ssd, !rotates, "{like}: {:#}", btrfs["mounted"]);
        assert!(text(&document["run"]["host"]["bed is like"]).starts_with(like));
        let flags = list(&document["findings"]).iter().filter(|it| it["audit"] == "DiskFlag");
        // Before Linux 6.6 memory can't be read past the page cache, so that nothing is probed.
        let expected = if rotates && btrfs["probed"].is_object() { 2 } else { 0 };
        assert_eq!(flags.count(), expected, "{like}: {:#}", document["findings"]);
    }
    scene.assert_nothing_left();
}
