//! `fsverdict for` on a directory that holds something, and what is told before the first trial.

use std::fs;

use super::run_command;
use crate::support::{Scene, one_line, tool};

/// The first line is an answer of one kind or another; what is to be taken has its lines.
fn is_recommendation(text: &str, erases: &str) {
    let first = text.lines().next().unwrap();
    let is_one =
        ["Take ", "Stay with ", "The choice is yours.", "There is nothing to recommend yet."];
    assert!(is_one.iter().any(|begin| first.starts_with(begin)), "{text}");
    if first.starts_with("Take ") {
        for words in ["mkfs.", "/etc/fstab", &format!("# erases {erases}")] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn one_recommendation_for_a_directory_that_stays_as_it_is() {
    let scene = Scene::new();
    fs::create_dir(scene.path("srv")).unwrap();
    scene.write("srv/mine", "precious");
    let words = "--fs ext4,btrfs --size 320M --scale 0.02 --budget 20s --output run";
    let done = scene.run(&format!("for mail --on {} {words}", scene.typed("srv"))).exits(0);
    let before = one_line(&done.stderr);
    assert!(before.contains("removed at the end; nothing else"), "{before}");
    let each = "made on 2 images of 320M, 640M together, in /";
    assert!(before.contains(each), "{before}");
    is_recommendation(&done.stdout, "DEVICE");
    assert_eq!(fs::read_dir(scene.path("srv")).unwrap().count(), 1);
    assert_eq!(scene.read("srv/mine"), "precious");
    let erase = format!("for mail --on {} --erase /dev/sdb", scene.typed("srv"));
    scene.run(&erase).exits(2).says("is a directory");
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn one_recommendation_for_a_device_that_is_erased() {
    // What it mounts and lets go of would be held by copies of it in the trials of tests beside.
    let scene = Scene::alone();
    fs::File::create_new(scene.path("disk")).unwrap().set_len(320 << 20).unwrap();
    let node = tool("losetup", &["--find", "--show", &scene.typed("disk")]).unwrap();
    let node = node.trim();
    let words = "--fs ext4,btrfs --scale 0.02 --budget 20s --output run";
    let line = format!("for mail --on {node} {words}");
    scene.run(&line).exits(2).says(&format!("--erase {node}"));
    scene.run(&format!("{line} --erase {node} --size 1G")).exits(2).says("leave it out");
    scene.run(&format!("{line} --erase /dev/no-such-disk")).exits(3).says("--erase");
    assert!(!scene.path("run").exists());

    let done = scene.run(&format!("{line} --erase {node}")).exits(0);
    assert!(done.stderr.contains(&format!("{node} itself, which is ERASED")), "{}", done.stderr);
    is_recommendation(&done.stdout, node);
    let on = done.stdout.lines().find(|line| line.contains("--resume"));
    assert!(on.is_none_or(|line| line.contains(&format!(" --erase {node}"))), "{}", done.stdout);
    let trial = scene.read_json("run/trials/1/trial.json");
    assert_eq!(trial["bed"]["devices"][0]["path"], node);

    tool("mkfs.ext4", &["-q", "-F", node]).unwrap();
    fs::create_dir(scene.path("mounted")).unwrap();
    tool("mount", &[node, &scene.typed("mounted")]).unwrap();
    scene.run(&format!("{line} --erase {node}=ext4")).exits(2).says("is mounted at");
    tool("umount", &[&scene.typed("mounted")]).unwrap();
    tool("losetup", &["--detach", node]).unwrap();
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn an_image_too_small_and_too_many_files_are_told_at_once() {
    let scene = Scene::new();
    let small = ["--fs", "ext4,xfs", "--size", "10M"];
    run_command(&scene, &small.join(" "), &["true"]).exits(2).says("a larger --size");
    let many = "run --fs ext4,xfs --size 1G --small-files count=1000000 --output run";
    scene.run(many).exits(2).says("and has 65536 inodes");
    // By fio's own reading of a job file.
    scene.write("large.fio", "[global]\nsize=2g\n[write]\nrw=write\n[read]\nstonewall\nrw=read\n");
    let large = "run --fs ext4,xfs --size 1G --output run -- fio large.fio";
    scene.run(large).exits(2).says("which is to hold 4G, and has 1G: give a larger --size");
    assert!(!scene.path("run").exists());
    scene.assert_nothing_left();
}
