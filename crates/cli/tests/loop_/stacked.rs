//! File systems that stand on others: overlays, and programs behind FUSE.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde_json::Value;

use super::{of, printed, run_command, run_plan};
use crate::support::{Scene, Started, list, sample, text, wait_for};

/// What stands on another here, of those that have programs; the others are named.
fn there<'a>(wanted: &[&'a str]) -> Vec<&'a str> {
    let is_there = |name: &&&str| {
        let program = name.split(':').next().unwrap_or(name);
        let is = program == "overlay" || fs::exists(format!("/usr/bin/{program}")).unwrap();
        if !is {
            println!("not tested: {program} is not installed");
        }
        is
    };
    wanted.iter().filter(is_there).copied().collect()
}

fn findings<'a>(document: &'a Value, audit: &str) -> Vec<&'a Value> {
    list(&document["findings"]).iter().filter(|it| it["audit"] == audit).collect()
}

/// How many flushes the timed part of a contender's first trial had, and bytes written.
fn device(document: &Value, contender: &str) -> [u64; 2] {
    let device = &of(document, contender)[0]["phases"][0]["totals"]["device"];
    ["flushes", "write_bytes"].map(|name| device[name].as_u64().unwrap())
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn what_stands_on_a_file_system_is_compared_with_it_alone() {
    let scene = Scene::alone();
    let stacks = there(&["bindfs", "gocryptfs", "mergerfs", "overlay", "overlay:volatile"]);
    let above = stacks.iter().flat_map(|stack| ["--above", stack]);
    let above: Vec<&str> = ["--above", "none"].into_iter().chain(above).collect();
    // A file that is synced, and 4 MiB that are not.
    let work = "dd if=/dev/urandom of=a bs=4k count=1 conv=fsync status=none; \
                head -c 4M /dev/urandom >b";
    let options =
        format!("--fs ext4 --size 128M --rounds 2 --primary wall_time {}", above.join(" "));
    let document = run_command(&scene, &options, &["sh", "-c", work]).exits(0).json();
    for stack in ["none"].iter().chain(&stacks) {
        let name = format!("ext4 under {stack}");
        let trials = of(&document, &name);
        assert_eq!(trials.len(), 2, "{name}: {document:#}");
        let mounted = &trials[0]["mounted"];
        assert_eq!(text(&mounted["file_system"]), "ext4");
        let kind = mounted["above"][0]["file_system"].as_str().unwrap_or("none");
        let program = stack.split(':').next().unwrap_or(stack);
        assert!(kind == program || kind.ends_with(program) || kind == "fuse", "{name}: {kind}");
        // What is written is on the device when the timed part is over, synced or not.
        let [flushes, bytes] = device(&document, &name);
        assert!(flushes >= 1 && bytes >= (4 << 20), "{name}: {flushes} flushes, {bytes} B");
        assert_eq!(trials[0]["phases"][0]["processes_left"].as_u64().unwrap_or(0), 0, "{name}");
        assert!(
            trials[0]["caches"][0]["cached_bytes_after"].as_u64().is_some_and(|it| it <= 64 << 10),
            "{name}"
        );
        // dd, head, cat, grep, sh: neither a daemon nor its threads.
        assert!(sample(trials[0], "processes_started") <= 20.0, "{}", trials[0]);
    }
    let spared = findings(&document, "A19");
    let spared: Vec<&str> = spared.iter().map(|it| text(&it["contender"])).collect();
    assert_eq!(spared, ["ext4 under overlay:volatile"]);
    for silent in ["A6", "A9", "A25", "A26"] {
        assert_eq!(findings(&document, silent), [&Value::Null; 0], "{document:#}");
    }
    let report = scene.read("run/report.md");
    assert!(report.contains("ext4, under `overlay:volatile`"), "{report}");
    assert!(report.contains("; above it: `overlay rw,"), "{report}");
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn what_is_prepared_lies_in_the_lower_layer_and_the_first_write_copies_it_up() {
    let scene = Scene::alone();
    let contender = |name: &str, kind: &str, more: &str| {
        format!("{{ name = \"{name}\", file_system = \"{kind}\", above = [\"overlay{more}\"] }}")
    };
    let contenders = [
        contender("image", "ext4", ""),
        contender("meta", "ext4", ":metacopy=on"),
        contender("own", "ext4", ":prepared=upper"),
        contender("clone", "xfs", ""),
    ];
    let plan = format!(
        "bed.size = \"400M\"\njudgement.rounds = 1\ncontender = [{}]\n\
         workload = [{{ name = \"w\", setup = \"head -c 8M /dev/zero | tr '\\\\0' x >file\", \
         command = \"chmod 600 file; stat -c %s file\", check = \"test -s file\" }}]",
        contenders.join(", ")
    );
    let document = run_plan(&scene, &plan).exits(0).json();
    let written = |name: &str| device(&document, name)[1];
    assert!(written("image") >= 8 << 20, "it was copied up: {}", written("image"));
    assert!(written("meta") < 4 << 20, "only its attributes were: {}", written("meta"));
    assert!(written("own") < 4 << 20, "it was there: {}", written("own"));
    assert!(written("clone") < 4 << 20, "its blocks are shared: {}", written("clone"));
    for name in ["image", "meta", "own", "clone"] {
        assert_eq!(printed(&scene, of(&document, name)[0]).trim(), "8388608");
    }
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn native_work_and_fio_run_on_what_stands_on_another() {
    let scene = Scene::alone();
    let stacks = there(&["overlay", "gocryptfs"]);
    let contender = |stack: &&str| {
        format!("{{ name = \"{stack}\", file_system = \"btrfs\", above = [\"{stack}\"] }}")
    };
    let contenders: Vec<String> = stacks.iter().map(contender).collect();
    let plan = format!(
        "bed.size = \"256M\"\njudgement.rounds = 1\ncontender = [{}]\nworkload = [\
         {{ name = \"files\", small_files = {{ count = 200 }} }}, \
         {{ name = \"tree\", tree = {{ files = 100 }} }}, \
         {{ name = \"metadata\", metadata = {{ directories = 20 }} }}, \
         {{ name = \"fsyncs\", fsync_files = {{ files = 5, repetitions = 5 }} }}, \
         {{ name = \"fio\", fio = {{ rw = \"randrw\", size = \"4M\", end_fsync = 1 }} }}]",
        contenders.join(", ")
    );
    let document = run_plan(&scene, &plan).exits(0).json();
    let trials = list(&document["trials"]);
    assert_eq!(trials.len(), 5 * stacks.len());
    assert!(trials.iter().all(|it| it["outcome"] == "measured"), "{document:#}");
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn what_can_not_stand_is_refused_before_anything_is_made() {
    let scene = Scene::alone();
    for (options, says) in [
        ("--fs overlay", "overlay stands on another file system: name that"),
        ("--fs ext4 --above xfs", "xfs is made on devices, and stands on no other"),
        ("--fs vfat --above overlay", "the kernel refuses it"),
        ("--fs ext4 --above overlay:lowerdir=x", "it takes no lowerdir=x here"),
        ("--fs ext4 --above gocryptfs:extpass=x", "it takes no extpass=x here"),
        ("--fs ext4 --above overlaid", "no file system is called \"overlaid\""),
    ] {
        let words: Vec<&str> = options.split(' ').chain(["--", "true"]).collect();
        let words = [&["run", "--output", "run"][..], &words].concat();
        let said = scene.fsverdict(&words).exits(2).stderr;
        assert!(said.contains(says), "{options}: {said}");
        assert!(!scene.path("run").exists(), "{options}");
    }
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn what_can_only_be_read_is_read_and_work_that_writes_is_refused() {
    let scene = Scene::alone();
    let is_there = |(_, program): &(&str, &str)| fs::exists(format!("/usr/bin/{program}")).unwrap();
    let names = [("erofs", "mkfs.erofs"), ("squashfs", "mksquashfs")].into_iter().filter(is_there);
    let names: Vec<&str> = names.map(|(name, _)| name).collect();
    let contender = |name: &str| format!("{{ name = \"{name}\", file_system = \"{name}\" }}");
    let contenders: Vec<String> = names.iter().copied().chain(["ext4"]).map(contender).collect();
    let plan = format!(
        "bed.size = \"128M\"\njudgement.rounds = 2\ncontender = [{}]\nworkload = [\
         {{ name = \"command\", setup = \"seq 200000 >numbers\", \
         command = \"sha256sum numbers\" }}, \
         {{ name = \"fio\", fio = {{ rw = \"randread\", size = \"4M\" }} }}]",
        contenders.join(", ")
    );
    let document = run_plan(&scene, &plan).exits(0).json();
    let trials = list(&document["trials"]);
    assert!(trials.iter().all(|it| it["outcome"] == "measured"), "{document:#}");
    let sums: Vec<String> = names
        .iter()
        .chain(&["ext4"])
        .map(|name| of(&document, name).into_iter().find(|it| it["workload"] == "command").unwrap())
        .map(|trial| printed(&scene, trial))
        .collect();
    assert!(sums.iter().all(|sum| *sum == sums[0] && sum.len() > 64), "{sums:?}");
    for trial in trials.iter().filter(|it| it["contender"] != "ext4") {
        assert_eq!(trial["mounted"]["file_system"], trial["contender"]);
        let read = &trial["phases"][0]["totals"]["device"]["read_bytes"];
        assert!(read.as_u64().unwrap() > 0, "nothing of it was cached: {trial:#}");
    }
    // It is no trouble to be read only, and what is compressed is less to read.
    for silent in ["A6", "A26"] {
        assert_eq!(findings(&document, silent), [&Value::Null; 0], "{document:#}");
    }
    for (work, exits) in [("--small-files", 2), ("-- fio --name=x --rw=randrw --size=1M", 2)] {
        let words = ["run --fs erofs --output other", work].join(" ");
        let words: Vec<&str> = words.split(' ').collect();
        let said = scene.fsverdict(&words).exits(exits).stderr;
        assert!(said.contains("\"erofs\" can only be read, and workload"), "{said}");
    }
    scene.assert_nothing_left();
}

/// Processes of this machine that are called so and serve what a run of the scene mounted.
fn servers(scene: &Scene, name: &str) -> Vec<String> {
    // By the file that their output goes to: its path is another in the trial's own mounts.
    let identity = |path: &Path| fs::metadata(path).map(|it| (it.dev(), it.ino())).ok();
    let logs = fs::read_dir(scene.path("run/trials/1/raw")).into_iter().flatten().flatten();
    let logs: Vec<_> = logs.filter_map(|entry| identity(&entry.path())).collect();
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let is_its = |path: &std::path::PathBuf| {
        let comm = fs::read_to_string(path.join("comm")).unwrap_or_default();
        comm.trim() == name && identity(&path.join("fd/1")).is_some_and(|it| logs.contains(&it))
    };
    processes.filter(is_its).map(|path| path.display().to_string()).collect()
}

/// A run whose trial has a program that serves it, then ended by a signal.
fn ended_by(signal: &str, code: Option<i32>) {
    let scene = Scene::alone();
    if there(&["bindfs"]).is_empty() {
        return;
    }
    let plan = "bed.size = \"64M\"\njudgement.rounds = 1\n\
                contender = [{ name = \"c\", file_system = \"ext4\", above = [\"bindfs\"] }]\n\
                workload = [{ name = \"w\", command = \"sleep 1000\" }]";
    let plan = scene.write("plan.toml", plan);
    let mut run: Started = scene.start(&["run", &plan, "--output", "run"]);
    run.reaches("bindfs at work", || !servers(&scene, "bindfs").is_empty());
    let working = servers(&scene, "bindfs");
    run.signal(signal);
    assert_eq!(run.wait().code, code);
    wait_for("its end", || !working.iter().any(|path| fs::exists(path).unwrap()));
    scene.fsverdict(&["clean"]).exits(0);
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn ctrl_c_ends_the_program_that_serves_it() {
    ended_by("INT", Some(130));
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_kill_ends_the_program_that_serves_it() {
    ended_by("KILL", None);
}
