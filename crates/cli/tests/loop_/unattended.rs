//! Runs that nobody watches: steps that hang, commands that print without end, disks that fail.

use std::fs;
use std::os::unix::fs::FileTypeExt;

use serde_json::Value;

use super::{failure, of, run_command, run_plan};
use crate::support::{Scene, Started, list, text, tool};

/// Ends in `step` of each trial, in time, and goes on to the last of them.
fn is_ended_in(step: &str, options: &str, command: &[&str]) {
    let scene = Scene::new();
    let limit = format!("--size 64M --rounds 1 --step-timeout {step}=1s {options}");
    let document = run_command(&scene, &limit, command).exits(1).json();
    let trials = list(&document["trials"]);
    assert_eq!(trials.len(), 2, "the run did not go on");
    for trial in trials {
        let (failed, error) = failure(trial);
        assert_eq!(failed, step);
        assert!(error.starts_with("not done after 1s"), "{error}");
        assert!(error.ends_with(&format!("--step-timeout {step}=TIME allows more")), "{error}");
    }
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn work_that_hangs_is_ended_with_all_that_it_has_started() {
    let hangs = ["sh", "-c", "trap '' TERM HUP; setsid sleep 3000 & sleep 3000"];
    is_ended_in("work", "--fs ext4,ext4", &hangs);
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn who_waits_for_an_ended_server_waits_no_longer() {
    let scene = Scene::new();
    // Its parent is gone, so that it is the trial's to take away.
    let plan = r#"
        bed = { size = "64M" }
        judgement = { rounds = 1 }
        timeout = { trial = "2m" }
        [[contender]]
        name = "a"
        file_system = "ext4"
        [[contender]]
        name = "b"
        file_system = "ext4"
        [[workload]]
        name = "stopped"
        setup = """sh -c 'sleep 3000 & echo $! > pid'; exec sh -c "$STOP" """
        prepare = "sh -c 'sleep 3000 & echo $! > pid'"
        command = "true"
        cleanup = 'exec sh -c "$STOP"'
        environment.STOP = "kill $(cat pid); while kill -0 $(cat pid); do sleep 0.01; done 2> gone"
    "#;
    let document = run_plan(&scene, plan).exits(0).json();
    assert!(list(&document["trials"]).iter().all(|it| it["outcome"].get("failed").is_none()));
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_trial_that_was_ended_leaves_no_folder() {
    let scene = Scene::new();
    let folder = scene.typed("there");
    fs::create_dir(&folder).unwrap();
    let bed = format!("--bed directory:{folder} --step-timeout work=1s --warm");
    let document =
        run_command(&scene, &format!("{bed} --fs a,b --rounds 1"), &["sleep", "3000"]).json();
    assert!(list(&document["trials"]).iter().all(|trial| failure(trial).0 == "work"));
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_trial_that_was_ended_leaves_no_partition() {
    let scene = Scene::new();
    let plan = r#"
        bed = { size = "64M" }
        judgement = { rounds = 1 }
        timeout = { setup = "1s" }
        [[contender]]
        name = "in a partition"
        file_system = "ext4"
        partition = ["mklabel", "gpt", "mkpart", "p", "1MiB", "100%"]
        [[contender]]
        name = "whole"
        file_system = "ext4"
        [[workload]]
        name = "never"
        setup = "sleep 3000"
        command = "true"
    "#;
    let document = run_plan(&scene, plan).exits(1).json();
    let trials = list(&document["trials"]);
    assert_eq!(trials.len(), 2, "the run did not go on");
    assert!(trials.iter().all(|trial| failure(trial).0 == "setup"), "{trials:#?}");
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_trial_as_a_whole_is_ended_in_time() {
    let scene = Scene::new();
    let options = "--fs ext4,ext4 --size 64M --rounds 1 --trial-timeout 5s --budget 1h";
    let document = run_command(&scene, options, &["sleep", "3000"]).exits(1).json();
    for trial in list(&document["trials"]) {
        let error = failure(trial).1;
        let says = "the trial was not done after 5s, and ended with all that it had started: \
                    --trial-timeout TIME allows more";
        assert_eq!(error, says);
    }
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn what_is_printed_without_end_is_kept_to_its_cap_and_holds_nothing_up() {
    let scene = Scene::new();
    let work = "head -c 40M /dev/zero && echo done > there && cat there";
    let options = "--fs ext4,ext4 --size 64M --rounds 1";
    let document = run_command(&scene, options, &["sh", "-c", work]).json();
    let beyond = (40 << 20) + 5 - (16 << 20);
    for trial in list(&document["trials"]) {
        assert_eq!(trial["outcome"], "measured");
        assert_eq!(trial["unkept_bytes"]["command.stdout"], beyond);
        let kept = format!("run/trials/{}/raw/command.stdout", trial["number"]);
        assert_eq!(scene.path(&kept).metadata().unwrap().len(), 16 << 20);
        let written = trial["phases"][0]["application_write_bytes"].as_u64().unwrap();
        assert!(written < 1 << 20, "{written}: what it printed is no work");
    }
    let findings = list(&document["findings"]).iter();
    assert_eq!(findings.filter(|finding| finding["audit"] == "A27").count(), 2);
}

/// A disk in a file of the scene's.
fn disk(scene: &Scene) -> String {
    let file = scene.path("disk");
    fs::File::create_new(&file).unwrap().set_len(96 << 20).unwrap();
    let file = file.display().to_string();
    let node = tool("losetup", &["--find", "--show", &file]).unwrap().trim().to_string();
    assert!(fs::metadata(&node).unwrap().file_type().is_block_device(), "{node}");
    node
}

fn void_of<'a>(document: &'a Value, contender: &str) -> Option<&'a str> {
    let mut findings = list(&document["findings"]).iter();
    let found = findings.find(|it| it["audit"] == "A26" && it["contender"] == contender)?;
    assert_eq!(found["severity"], "void");
    Some(text(&found["evidence"]))
}

/// Starts a run of two trials of `line`, which does its work once there is a file `open`, and waits
/// until the first is at that.
fn waiting(scene: &Scene, options: &str, setup: Option<&str>, line: &str) -> Started {
    let line = format!("until [ -e {} ]; do sleep 0.1; done; {line}", scene.typed("open"));
    let fixed = "run --fs ext4,ext4 --rounds 1 --output run --json - --writable .";
    let mut words: Vec<&str> = fixed.split(' ').chain(options.split(' ')).collect();
    words.extend(setup.iter().flat_map(|setup| ["--setup", *setup]));
    let mut run = scene.start(&[&words[..], &["--", "sh", "-c", &line]].concat());
    let at_work = scene.path("run/trials/1/raw/command.stdout");
    run.reaches("a trial at work", || at_work.exists());
    run
}

/// Cuts the file behind the disk, so that reading beyond is an error (drivers/block/loop.c,
/// `lo_complete_rq`).
fn cut(scene: &Scene, bytes: u64) {
    let backing = fs::File::options().write(true).open(scene.path("disk")).unwrap();
    backing.set_len(bytes).unwrap();
}

/// The first trial's disk loses most of its blocks under the work, which does not mind.
#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn errors_that_the_work_swallows_make_its_trial_void_and_no_other() {
    let scene = Scene::new();
    let node = disk(&scene);
    let options = format!("--bed device:{node} --erase {node}");
    let setup = "head -c 64M /dev/urandom > f";
    let run = waiting(&scene, &options, Some(setup), "cat f > /dev/null || true");
    cut(&scene, 24 << 20);
    scene.write("open", "");
    let document = run.wait().json();
    tool("losetup", &["--detach", &node]).unwrap();

    let trials = list(&document["trials"]);
    let name = node.rsplit('/').next().unwrap();
    assert_eq!(trials[0]["outcome"], "measured", "{:#}", trials[0]["outcome"]);
    let lines = list(&trials[0]["trouble"]["kernel"]);
    assert!(text(&lines[0]).contains(&format!("dev {name}")), "{lines:?}");
    let struck = void_of(&document, text(&trials[0]["contender"])).unwrap();
    assert!(struck.starts_with(&format!("the kernel said \"{}\"", text(&lines[0]))), "{struck}");
    assert_eq!(trials[1]["outcome"], "measured");
    assert!(trials[1].get("trouble").is_none(), "{:#}", trials[1]);
    assert_eq!(void_of(&document, text(&trials[1]["contender"])), None);
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn lines_of_other_devices_are_not_charged_to_a_trial() {
    let scene = Scene::new();
    let node = disk(&scene);
    let run = waiting(&scene, "--size 64M", None, "true");
    cut(&scene, 4096);
    fs::read(&node).expect_err("the disk has lost its blocks");
    scene.write("open", "");
    let document = run.wait().exits(0).json();
    tool("losetup", &["--detach", &node]).unwrap();
    assert!(list(&document["trials"]).iter().all(|trial| trial.get("trouble").is_none()));
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_full_file_system_is_told_where_the_work_hides_it() {
    let scene = Scene::new();
    let work = "dd if=/dev/zero of=file bs=1M count=100 2> /dev/null || true";
    let options = "--fs ext4,ext4 --size 64M --rounds 1";
    let document = run_command(&scene, options, &["sh", "-c", work]).exits(0).json();
    for trial in [of(&document, "ext4")[0], of(&document, "ext4#2")[0]] {
        assert_eq!(trial["outcome"], "measured");
        assert_eq!(trial["trouble"]["full"]["free_bytes"], 0);
    }
    let findings = list(&document["findings"]);
    let told = findings.iter().find(|finding| finding["audit"] == "A26").unwrap();
    assert_eq!(told["severity"], "warning");
    assert!(text(&told["evidence"]).contains("writes may have failed (ENOSPC)"));
}
