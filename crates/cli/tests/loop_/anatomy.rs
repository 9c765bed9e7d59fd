//! Every request of real fsyncs, recorded and named.

use std::fs;

use serde_json::Value;

use super::{of, run_plan};
use crate::support::{Left, Scene, Started, program, sample};

/// The lines of a trial's log.
fn log(scene: &Scene, trial: u32) -> Vec<Value> {
    let text = scene.read(&format!("run/trials/{trial}/trace.jsonl"));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The figure of a row of the table, and of how many fsyncs it is.
fn row<'a>(shown: &'a str, name: &str) -> Option<&'a str> {
    let line = shown.lines().find(|line| line.trim_start().starts_with(name))?;
    Some(line.trim_start()[name.len()..].trim())
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn an_fsync_of_one_of_ten_files_on_ext4_is_shown_in_full() {
    let scene = Scene::alone();
    let options = "anatomy --fs ext4 --size 64M --repetitions 5 --output run --figures figures";
    // An image of that size would have smaller blocks.
    let words = options.split(' ').chain(["--mkfs", "-b 4096"]).collect::<Vec<_>>();
    let shown = scene.fsverdict(&words).exits(0).stdout;
    let head = "fsync of 1 of 10 files, allocating, ext4 -b 4096: 5 fsyncs in 1 trial";
    assert!(shown.starts_with(head), "{shown}");
    assert_eq!(row(&shown, "blocks: data of the synced file"), Some("1  5 of 5"), "{shown}");
    let commit = row(&shown, "blocks: journal commit").unwrap();
    assert!(commit.starts_with("1 "), "{shown}");
    assert!(!shown.contains("unknown"), "{shown}");
    assert!(!shown.contains("The kernel lost"), "{shown}");
    assert!(shown.contains("  file 10, synced |1"), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    let lines = log(&scene, 1);
    assert_eq!(lines[0]["trace"], 2);
    assert_eq!(lines[0]["file_system"], "ext4");
    let marks = |word: &str| {
        let is_it = |line: &&Value| {
            line["mark"].as_str().is_some_and(|mark| mark.split(' ').next() == Some(word))
        };
        lines.iter().filter(is_it).count()
    };
    assert_eq!([marks("write"), marks("fsync"), marks("synced")], [50, 5, 5]);
    let flushes = lines.iter().filter(|line| line["op"] == "flush").count();
    assert!(flushes >= 5, "each fsync has one at least: {flushes}");
    let last = lines.last().unwrap();
    assert_eq!(last["items"], lines.len() as u64 - 2);
    let figures: Vec<_> = fs::read_dir(scene.path("figures")).unwrap().collect();
    assert_eq!(figures.len(), 2, "the order of an fsync, and the queue over time");
    let again = scene.fsverdict(&["anatomy", "run"]).exits(0).stdout;
    assert_eq!(again, shown[shown.len() - again.len()..]);
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn an_fdatasync_of_blocks_that_are_there_commits_nothing() {
    let scene = Scene::alone();
    let options = "anatomy --size 64M --repetitions 5 --output run --operation fdatasync";
    let words = options.split(' ').chain(["--case", "overwriting", "--mkfs", "-b 4096"]);
    let shown = scene.fsverdict(&words.collect::<Vec<_>>()).exits(0).stdout;
    let head = "fdatasync of 1 of 10 files, overwriting, ext4 -b 4096: 5 operations in 1 trial";
    assert!(shown.starts_with(head), "{shown}");
    let own = row(&shown, "blocks: data of the synced file").unwrap();
    assert!(own.starts_with("1 ") && own.ends_with(" 5 of 5"), "{shown}");
    // The first may commit: ext4_iget takes an inode as changed by what is under way.
    let commit = row(&shown, "blocks: journal commit");
    assert!(commit.is_none_or(|commit| commit.starts_with("0 ")), "{shown}");
    scene.assert_nothing_left();
}

/// Walks 30 directories of 30 files, and reads 1 MiB, from the disk.
const WALK: &str = r#"
probes = ["trace"]

[bed]
size = "320M"

[judgement]
rounds = 1

[[contender]]
name = "ext4"
file_system = "ext4"

[[contender]]
name = "xfs"
file_system = "xfs"

[[contender]]
name = "btrfs"
file_system = "btrfs"

[[workload]]
name = "walk"
setup = """
set -e
for i in $(seq 30); do mkdir $i; for j in $(seq 30); do echo $j > $i/$j; done; done
head -c 1M /dev/zero > large
"""
command = "find . -size +1M; cat large"
"#;

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn what_a_cold_walk_reads_is_named() {
    let scene = Scene::new();
    let document = run_plan(&scene, WALK).json();
    for (name, metadata) in [
        ("ext4", &["directory", "inodes"][..]),
        ("xfs", &["directory", "inodes"]),
        ("btrfs", &["subvolume_tree"]),
    ] {
        let trial = of(&document, name)[0];
        let bytes = |what: &str| sample(trial, &format!("trace_read_{what}_bytes"));
        assert_eq!(bytes("unknown"), 0.0, "{trial:#}");
        assert!(bytes("data") >= 1048576.0, "{trial:#}");
        for what in metadata {
            assert!(sample(trial, &format!("trace_reads_of_{what}")) > 0.0, "{trial:#}");
            assert!(sample(trial, &format!("trace_read_bytes_of_{what}")) > 0.0, "{trial:#}");
        }
        let lines = log(&scene, trial["number"].as_u64().unwrap() as u32);
        let reads = lines.iter().filter(|line| line["op"] == "read");
        let sectors: u64 = reads.map(|line| line["sectors"].as_u64().unwrap()).sum();
        let kinds = ["data", "journal", "metadata"].map(bytes).into_iter().sum::<f64>();
        assert_eq!(kinds, sectors as f64 * 512.0);
    }
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_recording_that_is_killed_leaves_an_instance_that_goes() {
    let scene = Scene::alone();
    let words = ["anatomy", "--size", "64M", "--output", "run", "--", "sh", "-c"];
    let work = "until [ -e nothing ]; do sleep 0.1; done";
    let mut run = scene.start(&[&words[..], &[work]].concat());
    let at_work = scene.path("run/trials/1/raw/command.stdout");
    run.reaches("a trial at work", || at_work.exists());
    run.signal("KILL");
    run.wait();
    let journals = Left::of(&scene.path("")).journals;
    let token = journals[0].file_stem().unwrap().to_str().unwrap();
    let instance = format!("fsverdict-{token}");
    assert!(instances().contains(&instance));
    scene.fsverdict(&["clean"]).exits(0);
    assert!(!instances().contains(&instance));
    scene.assert_nothing_left();
}

/// Those of the kernel, whosever.
fn instances() -> Vec<String> {
    let mut shell = program("unshare");
    let at = "/sys/kernel/tracing";
    shell.args(["--mount", "sh", "-c", &format!("mount -t tracefs t {at}; ls {at}/instances")]);
    let listed = Started::new(shell).wait().exits(0).stdout;
    listed.split_whitespace().map(String::from).collect()
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_run_without_a_recording_says_how_to_get_one() {
    let scene = Scene::alone();
    // It may be void on a busy machine, and is there all the same.
    super::run_command(&scene, "--fs ext4 --size 64M --rounds 1", &["true"]);
    let done = scene.fsverdict(&["anatomy", "run"]).exits(1);
    done.says("holds no recorded requests: record one by fsverdict run --probe trace");
    scene.assert_nothing_left();
}
