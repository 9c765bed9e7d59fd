//! Runs that are interrupted, terminated, killed.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{Left, Scene, Started, list, text, tool, wait_for};

const DIRTY_BYTES: &str = "/proc/sys/vm/dirty_bytes";

const PLAN: &str = r#"
    bed = { size = "64M" }
    seed = 5
    judgement = { rounds = 3 }
    contender = [
        { name = "a", file_system = "ext4", sysctl = { "vm.dirty_bytes" = 50331648 } },
        { name = "b", file_system = "ext4", sysctl = { "vm.dirty_bytes" = 50331648 } },
    ]
    workload = [{ name = "work", command = '''seq 100000 > numbers
        case $FSVERDICT_RAW in */trials/HELD/*) until [ -e OPEN ]; do sleep 0.1; done ;; esac''' }]
"#;

fn dirty_bytes() -> String {
    fs::read_to_string(DIRTY_BYTES).unwrap().trim().into()
}

/// Starts a run, and waits until its trial `number` is at work, which goes on until [`let_go`].
fn started(scene: &Scene, number: u32) -> Started {
    let plan = PLAN.replace("HELD", &number.to_string()).replace("OPEN", &scene.typed("open"));
    let plan = scene.write("plan.toml", &plan);
    let mut run = scene.start(&["run", &plan, "--output", "run", "--writable", "."]);
    let at_work = scene.path(&format!("run/trials/{number}/raw/command.stdout"));
    run.reaches("a trial at work", || at_work.exists());
    run
}

/// Ends the work that waits for it.
fn let_go(scene: &Scene) {
    scene.write("open", "");
}

fn interrupted_by(signal: &str) {
    let scene = Scene::alone();
    let before = dirty_bytes();
    let run = started(&scene, 4);
    assert_eq!(dirty_bytes(), "50331648");
    run.signal(signal);
    let done = run.wait().exits(130);
    assert!(done.stdout.contains("The run ended because it was interrupted"), "{}", done.stdout);
    assert!(done.stdout.contains("Report: "), "{}", done.stdout);
    assert_eq!(dirty_bytes(), before);
    scene.assert_nothing_left();
    assert_eq!(scene.records("run").len(), 3, "the trial under way has no record");
    assert_eq!(scene.read_json("run/run.json")["stop"], "interrupted");
    assert!(scene.read("run/report.md").contains("its terminal ended the run"));
    resumes(&scene, 3);
}

/// The run goes on to its end, and the records it had are what they were.
fn resumes(scene: &Scene, had: usize) {
    let before = scene.records("run");
    let_go(scene);
    let done =
        scene.fsverdict(&["run", "--resume", "run", "--writable", ".", "--json", "-"]).exits(0);
    let document = done.json();
    let trials = list(&document["trials"]);
    assert_eq!(trials.len(), 6);
    assert_eq!(trials[..had], before[..had]);
    let mut keys: Vec<(u64, &str)> = trials
        .iter()
        .map(|trial| (trial["round"].as_u64().unwrap(), text(&trial["contender"])))
        .collect();
    keys.sort_unstable();
    assert_eq!(keys, [(1, "a"), (1, "b"), (2, "a"), (2, "b"), (3, "a"), (3, "b")]);
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn ctrl_c_ends_a_run_with_what_was_measured() {
    interrupted_by("INT");
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn sigterm_ends_a_run_with_what_was_measured() {
    interrupted_by("TERM");
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn the_end_of_the_terminal_ends_a_run_with_what_was_measured() {
    interrupted_by("HUP");
}

/// zram devices of this machine.
fn zrams() -> Vec<String> {
    let names = fs::read_dir("/sys/block").unwrap().map(|it| it.unwrap().file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("zram")).collect()
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_run_interrupted_while_it_adds_memory_devices_leaves_none() {
    let scene = Scene::alone();
    if !Path::new("/sys/class/zram-control/hot_add").exists() {
        println!("not tested: this kernel has no zram");
        return;
    }
    let before = zrams();
    for signal in ["INT", "HUP", "TERM"] {
        let words = ["run", "--fs", "ext4,ext4", "--bed", "ram:zram", "--size", "32M"];
        let more = ["--devices", "32", "--output", signal, "--", "true"];
        let mut run = scene.start(&[&words[..], &more].concat());
        run.reaches("a zram device", || zrams().len() > before.len());
        run.signal(signal);
        run.wait().exits(130);
        assert_eq!(zrams(), before, "after {signal}");
    }
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_run_interrupted_while_it_writes_its_image_leaves_nothing() {
    let scene = Scene::alone();
    let words = ["run", "--fs", "ext4,ext4", "--size", "1G", "--output", "run", "--", "true"];
    let mut run = scene.start(&words);
    run.reaches("the image", || !scene.images().is_empty());
    run.signal("INT");
    run.wait().exits(130);
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_killed_run_is_cleaned_up_and_resumed() {
    let scene = Scene::alone();
    let before = dirty_bytes();
    let run = started(&scene, 4);
    run.signal("KILL");
    assert_eq!(run.wait().code, None);
    // Its trial dies with it, and takes its mounts along.
    wait_for("the trial's end", || Left::of(&scene.path("")).processes.is_empty());
    let left = Left::of(&scene.path(""));
    let journals = left.journals.iter().filter(|path| path.extension().unwrap() == "jsonl");
    assert_eq!((left.mounts.len(), journals.count()), (0, 1), "{left:?}");
    assert_eq!(dirty_bytes(), "50331648", "nothing is left to be put back");

    scene.run("clean").exits(0).says("cleaned up after the run of");
    assert_eq!(dirty_bytes(), before);
    scene.assert_nothing_left();
    let records = scene.records("run");
    assert_eq!(records.len(), 3);
    assert!(records.iter().all(|record| record["outcome"] == "measured"));
    // It was killed, so it has no report; one can be made of what there is.
    assert!(!scene.path("run/report.md").exists());
    let report = scene.run("report run").exits(0).stdout;
    assert!(report.contains("The run has not ended"), "{report}");
    resumes(&scene, 3);
}

/// Kills the run, and waits until its trial is gone, which dies with it.
fn killed(scene: &Scene, run: Started) {
    run.signal("KILL");
    run.wait();
    wait_for("the trial's end", || Left::of(&scene.path("")).processes.is_empty());
}

/// What the queue of a loop device was told.
fn told(node: &str) -> Vec<String> {
    let files = ["scheduler", "nr_requests", "read_ahead_kb", "write_cache"];
    let path = |file| format!("/sys/block/{}/queue/{file}", node.trim_start_matches("/dev/"));
    files.map(|file| fs::read_to_string(path(file)).unwrap().trim().to_string()).into()
}

/// A loop device is another disk as soon as its file is gone, by the end of a killed run, too, and
/// keeps what it was told.
#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn the_loop_devices_of_a_killed_run_are_told_again_what_they_were() {
    let scene = Scene::alone();
    // Those that the run will get: the kernel works out read-ahead when there is a file.
    let attached = ["one", "two"].map(|name| {
        fs::File::create_new(scene.path(name)).unwrap().set_len(64 << 20).unwrap();
        let node = tool("losetup", &["--find", "--show", &scene.typed(name)]).unwrap();
        node.trim().to_string()
    });
    attached.iter().for_each(|node| drop(tool("losetup", &["--detach", node]).unwrap()));
    let before = attached.each_ref().map(|node| told(node));
    let same = "file_system = \"ext4\", limits = { iops = 4321 }, \
                queue = { write_cache = \"write through\", nr_requests = 48, read_ahead = 512 }";
    let plan = format!(
        r#"
        bed = {{ size = "64M", like = "hdd" }}
        judgement = {{ rounds = 1 }}
        contender = [{{ name = "a", {same} }}, {{ name = "b", {same} }}]
        workload = [{{ name = "work", command = "sleep 600" }}]
        "#
    );
    let plan = scene.write("plan.toml", &plan);
    let mut run = scene.start(&["run", &plan, "--output", "run"]);
    let at_work = scene.path("run/trials/1/raw/command.stdout");
    run.reaches("a trial at work", || at_work.exists());
    let its = &scene.read_json("run/trials/1/trial.json")["bed"]["devices"];
    let is_one = |it: &Value| attached.iter().any(|node| node == text(&it["path"]));
    let are_they = !list(its).is_empty() && list(its).iter().all(is_one);
    let its = its.to_string();
    killed(&scene, run);
    wait_for("the loop devices' end", || Left::of(&scene.path("")).loops.is_empty());
    if !are_they {
        println!("not tested: others have taken {attached:?} meanwhile, the run has {its}");
        scene.run("clean").exits(0);
        return;
    }
    let left = attached.each_ref().map(|node| told(node));
    assert!(left.iter().flatten().any(|it| it == "write through"), "{left:?}, once {before:?}");
    scene.run("clean").exits(0).says("cleaned up after the run of");
    assert_eq!(attached.each_ref().map(|node| told(node)), before);
    let rules = fs::read_to_string("/sys/fs/cgroup/blkio/blkio.throttle.write_iops_device");
    assert!(!rules.unwrap_or_default().contains(" 4321"), "a limit is left");
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn settings_of_a_killed_run_wait_until_no_other_changes_any() {
    let scene = Scene::alone();
    let before = dirty_bytes();
    let run = started(&scene, 2);
    killed(&scene, run);
    // As a run has it that lives.
    let right = fs::File::open("/run/fsverdict/settings.lock").unwrap();
    right.lock().unwrap();
    scene.run("clean").exits(1).says("clean when that has ended");
    assert_eq!(dirty_bytes(), "50331648", "the other may have changed it since");
    drop(right);
    scene.run("clean").exits(0).says("cleaned up after the run of");
    assert_eq!(dirty_bytes(), before);
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn what_a_killed_run_has_set_is_nobodys_original() {
    let scene = Scene::alone();
    let before = dirty_bytes();
    let run = started(&scene, 2);
    killed(&scene, run);
    let file = scene.write("sysctl.conf", "vm.dirty_bytes = 33554432\n");
    scene.fsverdict(&["check", &file]);
    assert_eq!(dirty_bytes(), before);
    let done = scene.run("clean").exits(0);
    assert!(done.stdout.contains("nothing to clean"), "{}", done.stdout);
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn the_next_run_cleans_up_after_a_killed_one() {
    let scene = Scene::alone();
    let before = dirty_bytes();
    let run = started(&scene, 2);
    killed(&scene, run);
    let next = ["run", "--place", "sim", "--fs", "ext4,xfs", "--output", "next", "--", "true"];
    scene.fsverdict(&next).exits(0).says("cleaned up after the run of");
    assert_eq!(dirty_bytes(), before);
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_living_run_is_left_alone() {
    let scene = Scene::alone();
    let run = started(&scene, 2);
    scene.run("clean run").exits(0);
    assert_eq!(dirty_bytes(), "50331648", "a living run's setting was put back");
    scene.run("run --resume run --writable .").exits(1).says("another process is running this run");
    let_go(&scene);
    run.wait().exits(0);
    assert_eq!(scene.records("run").len(), 6);
    assert!(Path::new(&scene.path("run/report.md")).exists());
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_trial_that_is_killed_loses_itself_alone() {
    let scene = Scene::alone();
    let run = started(&scene, 2);
    let trial = scene.typed("run/trials/2/trial.json");
    let is_trial = |number: &u32| {
        let text = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).replace('\0', " ");
        text.contains("fsverdict trial --in ") && text.contains(&trial) && !text.contains("unshare")
    };
    let numbers = Left::of(&scene.path("run/trials/2")).processes;
    let number = numbers.iter().find(|number| is_trial(number)).expect("no process is the trial");
    tool("kill", &["-KILL", &number.to_string()]).unwrap();
    let_go(&scene);
    let done = run.wait().exits(1);
    assert!(done.stdout.contains("1 trial failed: "), "{}", done.stdout);
    let records = scene.records("run");
    assert_eq!(records.len(), 6, "the run did not go on");
    let failed: Vec<_> = records.iter().filter(|r| r["outcome"] != "measured").collect();
    assert_eq!(failed.len(), 1, "{failed:#?}");
    assert_eq!(failed[0]["outcome"]["failed"]["step"], "trial");
    scene.assert_nothing_left();
}
