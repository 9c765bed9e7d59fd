//! `fsverdict for` on a directory that holds something, and what is told before the first trial.

use std::fs;

use super::run_command;
use crate::support::Scene;

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn one_recommendation_for_a_directory_that_stays_as_it_is() {
    let scene = Scene::alone();
    fs::create_dir(scene.path("srv")).unwrap();
    scene.write("srv/mine", "precious");
    let words = "--fs ext4,btrfs --size 320M --scale 0.02 --budget 20s --output run";
    let done = scene.run(&format!("for mail --on {} {words}", scene.typed("srv"))).exits(0);
    assert!(done.stderr.contains("removed at the end"), "{}", done.stderr);
    let first = done.stdout.lines().next().unwrap();
    let is_one = ["Take ", "Stay with ", "There is nothing to recommend yet."];
    assert!(is_one.iter().any(|begin| first.starts_with(begin)), "{}", done.stdout);
    if first.starts_with("Take ") {
        assert!(done.stdout.contains("mkfs."), "{}", done.stdout);
        assert!(done.stdout.contains("/etc/fstab"), "{}", done.stdout);
    }
    assert_eq!(fs::read_dir(scene.path("srv")).unwrap().count(), 1);
    assert_eq!(scene.read("srv/mine"), "precious");
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn an_image_too_small_and_too_many_files_are_told_at_once() {
    let scene = Scene::alone();
    let small = ["--fs", "ext4,xfs", "--size", "10M"];
    run_command(&scene, &small.join(" "), &["true"]).exits(2).says("a larger --size");
    let many = "run --fs ext4,xfs --size 1G --small-files count=1000000 --output run";
    scene.run(many).exits(2).says("and has 65536 inodes");
    assert!(!scene.path("run").exists());
    scene.assert_nothing_left();
}
