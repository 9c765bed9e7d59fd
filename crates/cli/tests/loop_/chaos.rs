//! The program's own campaign of faults: a few points of each kind, and the table of promises.

use crate::support::{Done, Scene, Started, program};

/// The promises that every point puts to the test.
const OF_EACH: [&str; 7] = [
    "after clean: no process is left",
    "after clean: nothing is mounted",
    "after clean: no loop or zram device is left",
    "after clean: no image, folder or journal of ours is left",
    "after clean: sysctls, queues, limits, traces, control groups are as before",
    "after clean: no socket, network interface or shared memory is left",
    "other disks and files are as they were",
];

fn campaign(scene: &Scene, words: &[&str]) -> Done {
    let dir = scene.typed("");
    scene.fsverdict(&[&["selftest", "--seed", "7", "--dir", &dir], words].concat())
}

/// How often a promise was tried, and held.
#[track_caller]
fn of(table: &str, promise: &str) -> [u32; 2] {
    let row = table.lines().find(|line| line.starts_with(&format!("| {promise} ")));
    let row = row.unwrap_or_else(|| panic!("no row for {promise:?} in\n{table}"));
    let mut cells = row.split('|').skip(2).map(|cell| cell.trim().parse().unwrap());
    [cells.next().unwrap(), cells.next().unwrap()]
}

#[track_caller]
fn all_held(scene: &Scene, done: &Done, points: u32) {
    for promise in OF_EACH {
        assert_eq!(of(&done.stdout, promise), [points, points], "{promise}\n{}", done.stdout);
    }
    assert!(!done.stdout.contains("did not hold"), "{}", done.stdout);
    assert!(!done.stdout.contains("left out"), "{}", done.stdout);
    scene.assert_nothing_left();
    assert_eq!(std::fs::read_dir(scene.path("")).unwrap().count(), 0, "its folder is left");
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn every_kind_of_fault_is_survived() {
    let scene = Scene::new();
    let points = [
        "loop/command/KILL:lab@2.7",
        "loop/command/INT:lab@2.3",
        "loop/command/TERM:lab@2.11",
        "loop/command/HUP:lab@2.1",
        "sim/command/INT:lab@0ms",
        "loop/command/QUIT:lab@2.9",
        "loop/command/STOP:lab@2.4",
        "loop/command/KILL:trial@2.2",
        "loop/command/FULL@2.5",
        "loop/command/EIO@mount:9",
        "loop/command/ENOSPC@mkdirat:1",
        "loop/command/KILL@openat2:2",
        // A process or a thread that can't be started.
        "loop/command/EIO@clone3:6",
        "loop/command/EIO@clone3:9",
        "loop/command/EIO@clone3:18",
        "loop/fio/KILL:lab@2.9",
        "loop/server/KILL:work@2.13",
        "partitions/command/KILL:lab@2.1",
        "device/command/KILL:lab@2.2",
        "directory/command/INT:lab@2.7",
        "ram/command/KILL:lab@2.2",
        // At the limit, and when it is in force.
        "limits/command/KILL:lab@2.8",
        "limits/command/KILL:trial@2.9",
        "trace/command/KILL:lab@2.8",
        "trace/command/KILL:trial@2.9",
        "sim/command/KILL@openat2:2",
        "sim/command/EIO@write:3",
    ];
    let words: Vec<&str> = points.iter().flat_map(|point| ["--point", point]).collect();
    let done = campaign(&scene, &words).exits(0);
    all_held(&scene, &done, points.len() as u32);
    for (promise, fewest) in [
        ("a run that ends by itself leaves nothing; no clean is needed", 5),
        ("the records of ended trials are unchanged, byte for byte", 10),
        ("a resumed run has the trials of an unbroken one, in the same order", 12),
        ("and the same figures, where work is counted or simulated", 8),
        ("it ends with a documented exit status, without a panic", points.len() as u32),
    ] {
        let [tried, held] = of(&done.stdout, promise);
        assert!(tried == held && tried >= fewest, "{promise}: {tried}\n{}", done.stdout);
    }
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn points_are_drawn_from_a_seed() {
    let scene = Scene::new();
    let words = ["--points", "6", "--point", "loop/command", "--point", "sim/command"];
    let done = campaign(&scene, &words).exits(0);
    all_held(&scene, &done, 6);
    assert!(done.stdout.contains("6 points") && done.stdout.contains("seed 7"), "{}", done.stdout);
}

/// It has more points than can be tried in that time: only the time can end it.
#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_campaign_by_time_ends_and_tries_something_in_the_shortest() {
    let scene = Scene::new();
    let points = ["--point", "sim/command/INT:lab@0ms"].repeat(1000);
    let done = campaign(&scene, &[&["--chaos", "0.01"], &points[..]].concat()).exits(0);
    let [tried, _] = of(&done.stdout, OF_EACH[0]);
    assert!(tried < 1000, "{}", done.stdout);
    all_held(&scene, &done, tried);
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_scene_that_the_machine_has_not_is_left_out_and_says_why() {
    let scene = Scene::new();
    let dir = scene.typed("");
    let words = ["selftest", "--seed", "7", "--dir", &dir, "--point", "uml/command"];
    let mut command = scene.command(&words);
    command.env("XDG_CACHE_HOME", scene.path("cache"));
    let done = Started::new(command).wait().exits(1);
    let why = "left out: uml/command: its run failed: ";
    let told = done.stdout.lines().find_map(|line| line.strip_prefix(why));
    assert!(told.is_some_and(|told| told.contains("kernels get")), "{}", done.stdout);
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_folder_without_room_is_refused() {
    let scene = Scene::new();
    let dir = scene.typed("");
    let words = format!(
        "mount -t tmpfs -o size=16M none {dir} && exec {} selftest --points 1 --dir {dir}",
        env!("CARGO_BIN_EXE_fsverdict")
    );
    let mut command = program("unshare");
    command.args(["--mount", "sh", "-c", &words]);
    let done = Started::new(command).wait().exits(1);
    done.says("a campaign needs ").says("free: name another folder with --dir");
    scene.assert_nothing_left();
}

#[test]
fn a_point_that_is_none_is_refused() {
    let scene = Scene::new();
    scene.run("selftest --points 1 --dir /dev/shm").exits(2).says("has a /dev/shm of its own");
    let done = scene.run("selftest --point loop/command/KILL:nobody@2.7").exits(2);
    done.says("no point; write BED/WORK or BED/WORK/FAULT@WHEN");
}
