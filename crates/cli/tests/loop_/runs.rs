//! The run as a newcomer types it.

use std::fs;

use super::{device, failure, of, printed, run_command, run_plan};
use crate::support::{Scene, list, sample, text, verdict};

/// A tree of files of many sizes; gives its bytes.
fn tree(scene: &Scene) -> u64 {
    let mut bytes = 0;
    for folder in 0..10 {
        let path = scene.path(&format!("tree/{folder}"));
        fs::create_dir_all(&path).unwrap();
        for file in 0..40_usize {
            let size = 100 << (file % 10);
            let content: Vec<u8> = (0..size).map(|at| (at * 31 + file + folder) as u8).collect();
            fs::write(path.join(file.to_string()), content).unwrap();
            bytes += size as u64;
        }
    }
    bytes
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn three_file_systems_are_compared_on_real_work() {
    let scene = Scene::new();
    let bytes = tree(&scene);
    let source = scene.typed("tree");
    let options = "--fs ext4,xfs,btrfs --size 320M --rounds 4";
    let document = run_command(&scene, options, &["cp", "-a", &source, "."]).exits(0).json();
    for contender in ["xfs", "btrfs"] {
        let verdict = verdict(&document, contender, "wall_time");
        let figure = |key: &str| verdict[key].as_f64().unwrap_or_else(|| panic!("{verdict}"));
        assert!(figure("low") <= figure("ratio") && figure("ratio") <= figure("high"), "{verdict}");
        assert_eq!(verdict["rounds"], 4);
    }
    for contender in ["ext4", "xfs", "btrfs"] {
        assert_eq!(of(&document, contender).len(), 4);
        for trial in of(&document, contender) {
            assert_eq!(trial["mounted"]["file_system"], contender);
        }
    }
    for trial in list(&document["trials"]) {
        assert_eq!(trial["outcome"], "measured");
        assert!(device(trial, 0, "write_bytes") >= bytes, "{trial:#}");
        assert!(device(trial, 0, "read_bytes") < bytes, "the tree is not on the device: {trial:#}");
        assert!(sample(trial, "cpu_time") > 0.0 && sample(trial, "wall_time") > 0.0);
        let phase = &trial["phases"][0];
        let written = phase["application_write_bytes"].as_u64().unwrap();
        // cp clones and copies within the kernel where it can: write(2) sees only the rest.
        assert!(written < 2 * bytes, "{written} of {bytes}");
        assert_eq!(trial["caches"][0]["dropped"], true);
        // udev may look at the device meanwhile.
        assert!(
            trial["caches"][0]["cached_bytes_after"].as_u64().is_some_and(|it| it <= 64 << 10),
            "{trial:#}"
        );
        assert_eq!(trial["settled"][0]["quiet"], true);
        let folder = format!("run/trials/{}", trial["number"]);
        assert!(scene.read(&format!("{folder}/series.csv")).lines().count() >= 2);
        for file in ["command.stdout", "command.stderr", "mkfs.stdout", "trial.stderr"] {
            scene.read(&format!("{folder}/raw/{file}"));
        }
        assert_eq!(scene.read_json(&format!("{folder}/record.json")), *trial);
    }
    for tool in ["mkfs.ext4", "mkfs.xfs", "mkfs.btrfs"] {
        assert!(!text(&document["run"]["tools"][tool]).is_empty());
    }
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_file_system_is_compared_with_itself() {
    let scene = Scene::new();
    tree(&scene);
    let source = scene.typed("tree");
    let options = "--fs ext4,ext4 --size 128M --rounds 6";
    let document = run_command(&scene, options, &["cp", "-a", &source, "."]).exits(0).json();
    let verdict = verdict(&document, "ext4#2", "wall_time");
    assert_eq!(verdict["reference"], "ext4");
    // What others do on the machine may fall on one of the two in every round, and then a verdict
    // stands before the sixth: how seldom, is shown on simulated ones.
    let (judged, run) = (verdict["rounds"].as_u64().unwrap(), list(&document["trials"]).len() / 2);
    assert!((1..=run as u64).contains(&judged) && run <= 6, "{judged} of {run}: {verdict}");
    assert_ne!(verdict["verdict"], "void", "{verdict}");
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn setup_and_prepare_run_before_the_work_and_are_not_timed() {
    let scene = Scene::new();
    let mut words = vec!["run", "--fs", "ext4,ext4", "--size", "64M", "--rounds", "1"];
    words.extend(["--output", "run", "--json", "-", "--setup", "sleep 0.4; seq 9 > in"]);
    words.extend(["--prepare", "sleep 0.4; sort -r in > prepared", "--", "cat", "prepared"]);
    let document = scene.fsverdict(&words).exits(0).json();
    for trial in list(&document["trials"]) {
        assert!(printed(&scene, trial).starts_with("9\n8\n"));
        let step_s = |name: &str| {
            let mut steps = list(&trial["steps"]).iter();
            let step = steps.find(|step| step["step"] == name).unwrap();
            step["duration_ns"].as_f64().unwrap() / 1e9
        };
        assert!(step_s("setup") >= 0.4 && step_s("prepare") >= 0.4, "{trial:#}");
        assert!(sample(trial, "wall_time") <= step_s("work"), "{trial:#}");
    }
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_command_that_fails_is_named_with_what_it_said() {
    let scene = Scene::new();
    let command = ["sh", "-c", "echo disk on fire >&2; exit 9"];
    let done = run_command(&scene, "--fs ext4,ext4 --size 64M", &command).exits(1);
    let document = done.says("failed with exit status 9: disk on fire").json();
    let trials = list(&document["trials"]);
    assert_eq!(trials.len(), 4, "it goes on after two failures");
    for trial in trials {
        let (step, error) = failure(trial);
        assert_eq!(step, "work");
        assert!(error.ends_with("failed with exit status 9: disk on fire"), "{error}");
        assert!(error.starts_with("sh -c "), "{error}");
    }
    assert_eq!(document["run"]["stop"], "failed");
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_failing_setup_or_prepare_fails_the_trial() {
    for step in ["setup", "prepare"] {
        let scene = Scene::new();
        let options = format!("--fs ext4,ext4 --size 64M --rounds 1 --{step} false");
        let document = run_command(&scene, &options, &["true"]).exits(1).json();
        assert_eq!(failure(&document["trials"][0]).0, step);
        scene.assert_nothing_left();
    }
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn what_the_work_leaves_running_is_ended_and_counted() {
    let scene = Scene::new();
    let command = ["sh", "-c", "sleep 1000 & exec setsid --wait sh -c 'sleep 1000 &'"];
    let options = "--fs ext4,ext4 --size 64M --rounds 1";
    let document = run_command(&scene, options, &command).exits(0).json();
    for trial in list(&document["trials"]) {
        assert_eq!(trial["phases"][0]["processes_left"], 2, "{trial:#}");
    }
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_full_file_system_is_a_failed_trial() {
    let scene = Scene::new();
    let command = ["dd", "if=/dev/zero", "of=f", "bs=1M", "count=100"];
    let options = "--fs ext4,ext4 --size 64M --rounds 1";
    let document = run_command(&scene, options, &command).exits(1).json();
    for trial in list(&document["trials"]) {
        let (step, error) = failure(trial);
        assert_eq!(step, "work");
        assert!(error.contains("exit status 1"), "{error}");
        let said = scene.read(&format!("run/trials/{}/raw/command.stderr", trial["number"]));
        assert!(said.contains("No space left on device"), "{said}");
    }
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn no_room_for_the_image_is_said_before_anything_is_made() {
    let scene = Scene::new();
    let done = run_command(&scene, "--fs ext4,ext4 --size 100000G", &["true"]).exits(1);
    done.says("free, the image needs")
        .says("choose another --dir, a smaller --size or, for a study, a smaller --scale");
    assert!(!scene.path("run").exists());
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_contender_that_can_not_be_made_does_not_stop_the_others() {
    let scene = Scene::new();
    let plan = r#"
        bed = { size = "64M" }
        judgement = { rounds = 4 }
        [[contender]]
        name = "plain"
        file_system = "ext4"
        [[contender]]
        name = "wrong mkfs"
        file_system = "ext4"
        mkfs = ["-O", "no_such_feature"]
        [[contender]]
        name = "wrong mount"
        file_system = "ext4"
        mount = ["no_such_option"]
        [[contender]]
        name = "other"
        file_system = "ext4"
        mkfs = ["-b", "1024"]
        mount = ["noatime"]
        [[workload]]
        name = "work"
        command = "seq 100000 > numbers"
    "#;
    let document = run_plan(&scene, plan).exits(1).json();
    for (contender, step, says) in
        [("wrong mkfs", "mkfs", "no_such_feature"), ("wrong mount", "mount", "no_such_option")]
    {
        let trials = of(&document, contender);
        assert_eq!(trials.len(), 2, "given up after two failures");
        for trial in trials {
            let (failed, error) = failure(trial);
            assert!(failed == step && error.contains(says), "{failed}: {error}");
        }
    }
    assert_eq!(verdict(&document, "other", "wall_time")["rounds"], 4);
    let options = &of(&document, "other")[0]["mounted"]["options"];
    assert!(list(options).iter().any(|option| option == "noatime"), "{options}");
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_study_runs_on_the_file_systems_that_the_machine_has() {
    let scene = Scene::new();
    let names = ["ext4", "ext3", "f2fs", "nilfs2", "jfs", "bcachefs"];
    let contenders = names.map(|name| format!("{{ name = \"{name}\", file_system = \"{name}\" }}"));
    let own = format!(
        "bed = {{ size = \"128M\" }}\njudgement = {{ rounds = 1 }}\n\
         contender = [{}]\nworkload = [{{ name = \"work\", command = \"true\" }}]\n",
        contenders.join(", ")
    );
    let document = run_plan(&scene, &format!("{own}study = {{ title = \"A study\" }}"));
    let document = document.exits(0).json();
    let left_out = document["run"]["left_out"].as_array().cloned().unwrap_or_default();
    let is_left = |name: &str| left_out.iter().any(|it| it["name"] == name);
    for name in names {
        assert_eq!(of(&document, name).len(), usize::from(!is_left(name)), "{name}");
    }
    scene.assert_nothing_left();
    if left_out.is_empty() {
        println!("not tested: this machine has all of {names:?}");
        return;
    }
    std::fs::remove_dir_all(scene.path("run")).unwrap();
    let why = left_out[0]["why"].as_str().unwrap();
    run_plan(&scene, &own).exits(1).says(why);
    assert!(!scene.path("run").exists(), "a plan of one's own fails before anything is made");
}
