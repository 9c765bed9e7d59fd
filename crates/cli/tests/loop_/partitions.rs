//! Contenders that have the bed's device partitioned: real parted, real loop devices.

use super::{failure, of, run_plan};
use crate::support::{Scene, list, sample, text, tool};

const PLAN: &str = r#"
    seed = 5
    bed = { size = "64M" }
    judgement = { rounds = 2 }
    contender = [
        { name = "whole", file_system = "ext4" },
        { name = "aligned", file_system = "ext4", partition = ["mklabel", "gpt", "mkpart", "p",
            "1MiB", "100%"] },
        { name = "misaligned", file_system = "ext4", partition = ["mklabel", "gpt", "mkpart", "p",
            "2049s", "100%"] },
    ]
    workload = [{ name = "work", command = "seq 100000 > numbers; sync numbers" }]
"#;

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_misaligned_partition_runs_beside_an_aligned_one_and_the_whole_device() {
    let scene = Scene::new();
    let document = run_plan(&scene, PLAN).exits(0).json();
    for (contender, start_bytes) in [("aligned", 2048 * 512), ("misaligned", 2049 * 512)] {
        for trial in of(&document, contender) {
            assert_eq!(trial["partitions"][0]["start_bytes"], start_bytes, "{trial}");
            // A partition counts no flushes: they are the disk's.
            assert!(sample(trial, "device_flushes") >= 1.0, "{trial}");
            assert!(sample(trial, "device_write_bytes") >= 500_000.0, "{trial}");
            // udev may look at the device meanwhile.
            assert!(
                trial["caches"][0]["cached_bytes_after"].as_u64().is_some_and(|it| it <= 64 << 10),
                "{trial}"
            );
        }
    }
    assert!(of(&document, "whole").iter().all(|trial| trial.get("partitions").is_none()));
    let noted: Vec<_> =
        list(&document["findings"]).iter().filter(|it| it["audit"] == "A19").collect();
    assert_eq!(noted.len(), 1, "{noted:?}");
    assert_eq!(noted[0]["contender"], "misaligned");
    assert!(text(&noted[0]["evidence"]).contains("begins at 1049088 B"));
    assert!(scene.read("run/report.md").contains("its partition begins at 1048576 B"));
    assert!(document["run"]["tools"]["parted"].is_string());
    scene.assert_nothing_left();
    let partition = text(&of(&document, "aligned")[0]["partitions"][0]["path"]);
    assert!(!std::path::Path::new(partition).exists(), "{partition} is left behind");
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn what_parted_refuses_is_said_in_its_words() {
    let scene = Scene::new();
    for (from, to, says) in [
        (
            "\"gpt\", \"mkpart\", \"p\",\n            \"1MiB\"",
            "\"gpd\", \"1MiB\"",
            "disk label type",
        ),
        ("\"mkpart\", \"p\",\n            \"1MiB\"", "\"mkprt\", \"1MiB\"", "Usage: parted"),
    ] {
        assert!(PLAN.contains(from));
        let document = run_plan(&scene, &PLAN.replacen(from, to, 1)).exits(1).json();
        let (step, error) = failure(of(&document, "aligned")[0]);
        assert!(step == "partition" && error.contains(says), "{step}: {error}");
        assert!(error.contains("parted --script") && !error.contains("udevadm"), "{error}");
        assert_eq!(of(&document, "misaligned").len(), 2, "the others go on");
        std::fs::remove_dir_all(scene.path("run")).unwrap();
        scene.assert_nothing_left();
    }
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_partition_is_not_partitioned_and_a_disk_is_once_it_is_named() {
    let scene = Scene::new();
    let image = scene.typed("disk.raw");
    tool("truncate", &["--size=64M", &image]).unwrap();
    let disk = tool("losetup", &["--find", "--show", "--partscan", &image]).unwrap();
    let disk = disk.trim();
    let run = |path: &str, erase: &str| {
        let bed = format!("{{ kind = \"device\", path = \"{path}\" }}");
        let plan = scene.write("plan.toml", &PLAN.replace("{ size = \"64M\" }", &bed));
        scene.fsverdict(&["run", &plan, "--output", "run", "--json", "-", "--erase", erase])
    };
    run(disk, "/dev/null").exits(3).says("would be erased");
    let document = run(disk, disk).exits(0).json();
    assert!(list(&document["trials"]).iter().all(|trial| trial["outcome"] == "measured"));
    let words = ["--script", "--", disk, "mklabel", "gpt", "mkpart", "p", "1MiB", "100%"];
    tool("parted", &words).unwrap();
    let part = format!("{disk}p1");
    run(&part, &part).exits(2).says("is a partition itself: give the whole disk");
    tool("wipefs", &["--all", disk]).unwrap();
    tool("losetup", &["--detach", disk]).unwrap();
}
