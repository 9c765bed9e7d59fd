//! Duets: contenders of a round at once, their work in turns.

use std::fs;

use serde_json::Value;

use super::{failure, of, run_plan};
use crate::support::{Left, Scene, Started, list, program, sample, text, tool, wait_for};

const PLAN: &str = r#"
    rounds = "duet"
    seed = 5
    bed = { kind = "ram", size = "64M" }
    judgement = { rounds = 1 }
    contender = [
        { name = "a", file_system = "ext4" },
        { name = "b", file_system = "ext4", LIMITS },
    ]
    workload = [{ name = "work", fio = { rw = "randwrite", bs = "4k", size = "8M", direct = 1, \
     time_based = true, runtime = 3 } }]
"#;

fn numbers(turns: &Value, key: &str) -> Vec<u64> {
    list(&turns[key]).iter().map(|number| number.as_u64().unwrap()).collect()
}

fn plan(limits: &str) -> String {
    PLAN.replace(", LIMITS", limits).replace("\\\n", "")
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn contenders_take_turns_on_beds_of_their_own() {
    let scene = Scene::new();
    let document = run_plan(&scene, &plan("")).exits(0).json();
    let trials = list(&document["trials"]);
    assert_eq!(trials.len(), 2);
    let turns: Vec<&Value> = trials.iter().map(|trial| &trial["phases"][0]["turns"]).collect();
    let counted = &turns[0]["counted"];
    assert_eq!(*counted, turns[1]["counted"]);
    let [from, to] = [0, 1].map(|end| counted[end].as_u64().unwrap() as usize);
    assert!(to > from, "{counted}");
    for (trial, turns) in trials.iter().zip(&turns) {
        assert_eq!(trial["outcome"], "measured", "{trial:#}");
        let (lasted_ns, done) = (numbers(turns, "lasted_ns"), numbers(turns, "operations"));
        assert!(lasted_ns[..to].iter().all(|&ns| ns >= 100_000_000), "{lasted_ns:?}");
        let phase = &trial["phases"][0];
        assert_eq!(phase["work_ns"], lasted_ns.iter().sum::<u64>());
        assert_eq!(phase["operations"], done.iter().sum::<u64>());
        // No operation is under way but one, and each writes 4 KiB past the cache. What the kernel
        // books late is counted between the turns.
        let bytes = |name: &str| turns[name].as_u64().unwrap();
        let device = bytes("device_bytes") + bytes("between_bytes");
        assert!(device >= done[..to].iter().sum::<u64>() * 4096, "{turns:#}");
        assert!(bytes("device_bytes") > bytes("between_bytes"), "{turns:#}");
        assert!(turns["straddling"].as_u64().unwrap() <= done.len() as u64);
        assert!(sample(trial, "iops") > 0.0 && sample(trial, "write_latency_p50") > 0.0);
        let names = list(&trial["samples"]).iter().map(|it| text(&it["metric"]));
        assert_eq!(
            names.filter(|name| name.starts_with("cpu_time") || name.starts_with("fio_")).count(),
            0
        );
    }
    let [one, other] = [0, 1].map(|which: usize| numbers(turns[which], "places"));
    assert!((0..to).all(|cycle| one[cycle] + other[cycle] == 3), "{one:?} {other:?}");
    assert!([1, 2].iter().all(|place| one.contains(place)), "the order is drawn");
    let bed =
        |number: &str| scene.read_json(&format!("run/trials/{number}/trial.json"))["bed"].clone();
    assert_ne!(bed("1")["devices"], bed("2")["devices"]);
    assert!(scene.read("run/report.md").contains("2 trials in turns of 100 ms"));
    assert!(!scene.path("run/trials/1/alone.json").exists());
    scene.assert_nothing_left();
}

/// Work that fsverdict does by itself is shared out: each turn has as many of the repetitions.
#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn fsyncs_are_shared_out_among_the_turns() {
    let scene = Scene::new();
    let line = "run --duet --fs ext4,xfs --size 320M --rounds 2 --output run --json - \
                --fsync-files files=3,size=2k,repetitions=60";
    let done = scene.run(line).exits(0);
    let document = done.json();
    let trials = list(&document["trials"]);
    assert_eq!(trials.len(), 4);
    for trial in trials {
        assert_eq!(trial["outcome"], "measured", "{trial:#}");
        let phase = &trial["phases"][0];
        let turns = &phase["turns"];
        let lasted_ns = numbers(turns, "lasted_ns");
        assert_eq!(lasted_ns.len(), 20, "{turns:#}");
        assert_eq!(phase["work_ns"], lasted_ns.iter().sum::<u64>());
        assert!(turns["operations"].as_array().unwrap().is_empty() && turns["rate"].is_null());
        assert!(sample(trial, "fsync_latency_p50") > 0.0);
        assert!(sample(trial, "fsync_device_write_bytes") >= 2048.0, "of its own device");
        // A thread of the kernel may write between the turns; three fsyncs in each write more.
        let bytes = |name: &str| turns[name].as_u64().unwrap();
        assert!(bytes("device_bytes") > bytes("between_bytes"), "{turns:#}");
    }
    let places = |trial: &Value| numbers(&trial["phases"][0]["turns"], "places");
    let [one, other] = [places(&trials[0]), places(&trials[1])];
    assert!(one.iter().zip(&other).all(|(one, other)| one + other == 3), "{one:?} {other:?}");
    assert!(scene.read("run/report.md").contains("4 trials in turns, "));
    scene.assert_nothing_left();
}

/// Each timed part has turns of its own, and a workload may be left out of the duet.
#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn files_metadata_and_trees_take_turns_part_by_part_and_a_command_does_not() {
    let scene = Scene::new();
    let plan = r#"
        rounds = "duet"
        bed = { kind = "ram", size = "64M" }
        judgement = { rounds = 1 }
        contender = [{ name = "a", file_system = "ext4" }, { name = "b", file_system = "ext4" }]
        workload = [
            { name = "files", small_files = { count = 210, directories = 3, threads = 2 } },
            { name = "metadata", metadata = { directories = 50, files_per_directory = 3 } },
            { name = "tree", tree = { files = 400, mean_size = "4k", threads = 2 } },
            { name = "alone", rounds = "trials", command = "echo done > it; sync it" },
        ]
    "#;
    let document = run_plan(&scene, plan).exits(0).json();
    let trials = list(&document["trials"]);
    assert_eq!(trials.len(), 8);
    for trial in trials {
        assert_eq!(trial["outcome"], "measured", "{trial:#}");
        let phases = list(&trial["phases"]);
        if trial["workload"] == "alone" {
            assert!(phases[0]["turns"].is_null() && sample(trial, "cpu_time") > 0.0, "{trial:#}");
            continue;
        }
        assert!(phases.len() >= 5, "{trial:#}");
        for phase in phases {
            let turns = &phase["turns"];
            let (lasted_ns, done) = (numbers(turns, "lasted_ns"), numbers(turns, "operations"));
            assert_eq!((lasted_ns.len(), done.len()), (20, 20), "{turns:#}");
            assert_eq!(phase["work_ns"], lasted_ns.iter().sum::<u64>());
            assert_eq!(phase["operations"], done.iter().sum::<u64>());
            assert_eq!(turns["counted"], serde_json::json!([0, 20]), "all cycles are whole");
            assert!(turns["rate"].as_f64().unwrap() > 0.0);
        }
        let (first, rate) = match text(&trial["workload"]) {
            "files" => (210, "read_rate"),
            "metadata" => (50, "rename_rate"),
            _ => (439, "stat_rate"),
        };
        assert_eq!(phases[0]["operations"], first, "{trial:#}");
        assert!(sample(trial, rate) > 0.0);
    }
    let beds =
        |number: u32| scene.read_json(&format!("run/trials/{number}/trial.json"))["bed"].clone();
    assert!((1..=8).all(|number| list(&beds(number)["devices"]).len() == 1));
    assert!(scene.read("run/report.md").contains("8 trials partly in turns, "));
    scene.assert_nothing_left();
}

/// No file system of this kernel refuses a part of the work. So strace has the kernel say to one
/// trial, which waits for it, that attributes are not supported.
#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_part_that_one_refuses_is_the_others_alone() {
    let scene = Scene::new();
    let plan = r#"
        rounds = "duet"
        bed = { kind = "ram", size = "320M" }
        judgement = { rounds = 1 }
        contender = [{ name = "a", file_system = "ext4" }, { name = "b", file_system = "xfs" }]
        [[workload]]
        name = "work"
        setup = "test $(stat --file-system --format %T .) != xfs || kill -STOP $$"
        metadata = { directories = 30, files_per_directory = 2 }
    "#;
    let file = scene.write("plan.toml", plan);
    let mut run = scene.start(&["run", &file, "--output", "run", "--json", "-"]);
    let its_trial = format!("^[^ ]*fsverdict trial --in {}/trials/", scene.typed("run"));
    let found = |words: &[&str]| tool("pgrep", words).ok().map(|said| said.trim().to_string());
    let mut waiting = None;
    run.reaches("the trial on XFS to stand still before its work", || {
        let trials = found(&["--full", &its_trial]).unwrap_or_default();
        waiting = trials.lines().find_map(|trial| {
            let shell = found(&["--parent", trial, "--runstates", "T"])?;
            Some((trial.to_string(), shell))
        });
        waiting.is_some()
    });
    let (trial, shell) = waiting.unwrap();
    let said = scene.path("strace.stderr");
    let refusing = "inject=lsetxattr:error=EOPNOTSUPP";
    let mut strace = program("strace");
    strace.args(["--follow-forks", "--trace=lsetxattr", "-e", refusing, "--attach", &trial]);
    strace.args(["--output", "/dev/null"]).stderr(std::fs::File::create(&said).unwrap());
    let strace = Started::telling(strace);
    wait_for("strace", || std::fs::read_to_string(&said).unwrap().contains("attached"));
    tool("kill", &["-CONT", &shell]).unwrap();

    let document = run.wait().exits(0).json();
    strace.wait();
    for (name, refused, parts) in [("a", 0, 8), ("b", 1, 7)] {
        let trial = of(&document, name)[0];
        assert_eq!(trial["outcome"], "measured", "{trial:#}");
        let (of_trial, phases) = (trial["refused"].as_array(), list(&trial["phases"]));
        let of_trial = of_trial.map_or(&[][..], Vec::as_slice);
        assert_eq!((of_trial.len(), phases.len()), (refused, parts), "{trial:#}");
        assert!(of_trial.iter().all(|it| it["phase"]["metadata"] == "setxattr"));
        for phase in phases {
            assert_eq!(numbers(&phase["turns"], "lasted_ns").len(), 20, "{phase:#}");
        }
        assert!(sample(trial, "delete_rate") > 0.0, "the part after it");
    }
    let verdicts = list(&document["verdicts"]);
    assert!(verdicts.iter().any(|it| it["metric"] == "delete_rate"));
    assert!(verdicts.iter().all(|it| it["metric"] != "setxattr_rate"));
    assert!(scene.read("run/report.md").contains("work, b: the file system has no setxattr"));
    scene.assert_nothing_left();
}

/// A duet while the test reads what it can of the second one's device. Gives that one's turns, and
/// what is said of a leak.
fn read_by_another(scene: &Scene) -> (Value, Option<Value>) {
    let file = scene.write("plan.toml", &plan(""));
    let _ = fs::remove_dir_all(scene.path("run"));
    let mut run = scene.start(&["run", &file, "--output", "run", "--json", "-"]);
    let raw = |number: u32, name: &str| scene.path(&format!("run/trials/{number}/raw/{name}"));
    run.reaches("both at work", || raw(1, "fio.stdout").exists() && raw(2, "fio.stdout").exists());
    let trial = scene.read_json("run/trials/2/trial.json");
    let device = format!("if={}", text(&trial["bed"]["devices"][0]["path"]));
    while !scene.path("run/trials/2/series.csv").exists() {
        tool("dd", &[&device, "of=/dev/null", "bs=1M", "count=64", "iflag=direct"]).unwrap();
    }
    let document = run.wait().json();
    let mut findings = list(&document["findings"]).iter();
    let leak = findings.find(|it| it["audit"] == "Leak").cloned();
    let turns = &of(&document, text(&trial["contender"]))[0]["phases"][0]["turns"];
    (turns.clone(), leak)
}

/// What a device does while its contender stands still, whoever has it do so: here the test reads.
/// On a busy machine it may come to read too little to matter, and tries again.
#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn what_works_on_between_its_turns_is_void() {
    let scene = Scene::alone();
    let mut told = (0..8).map(|_| read_by_another(&scene));
    let (turns, leak) = told.find(|(_, leak)| leak.is_some()).expect("it leaks in some try");
    let leak = leak.unwrap();
    assert!(turns["between_bytes"].as_u64().unwrap() > 1 << 20, "{turns:#}");
    assert_eq!(leak["severity"], "void");
    assert!(text(&leak["evidence"]).contains("while the contender stood still"), "{leak:#}");
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn one_that_fails_leaves_the_other_its_turns() {
    let scene = Scene::new();
    let wrong = plan(", mkfs = [\"-O\", \"no_such_feature\"]");
    let document = run_plan(&scene, &wrong).exits(1).json();
    assert_eq!(of(&document, "b")[0]["outcome"]["failed"]["step"], "mkfs");
    let whole = of(&document, "a")[0];
    assert_eq!(whole["outcome"], "measured", "{whole:#}");
    assert!(sample(whole, "iops") > 0.0);
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_duet_that_is_killed_or_interrupted_leaves_nobody_standing_still() {
    let scene = Scene::alone();
    let file = scene.write("plan.toml", &plan("").replace("runtime = 3", "runtime = 1000"));
    for (signal, code) in [("INT", Some(130)), ("KILL", None)] {
        let mut run = scene.start(&["run", &file, "--output", signal]);
        let log = |number: u32| scene.path(&format!("{signal}/trials/{number}/raw/fio.stdout"));
        run.reaches("both at work", || log(1).exists() && log(2).exists());
        run.signal(signal);
        assert_eq!(run.wait().code, code);
        wait_for("the end of both", || Left::of(&scene.path("")).processes.is_empty());
        scene.run("clean").exits(0);
        scene.assert_nothing_left();
    }
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn one_that_takes_too_long_ends_its_duet() {
    let scene = Scene::new();
    let late = plan("").replace("runtime = 3", "runtime = 1000");
    let document = run_plan(&scene, &format!("timeout.work = \"2s\"\n{late}")).exits(1).json();
    let failed: Vec<(&str, &str)> = list(&document["trials"]).iter().map(failure).collect();
    assert_eq!(failed.len(), 2);
    let is_late = |(step, why): &&(&str, &str)| *step == "work" && why.contains("--step-timeout");
    assert!(failed.iter().any(|it| is_late(&it)), "{failed:?}");
    assert!(failed.iter().any(|it| it.1.starts_with("another trial of its duet")), "{failed:?}");
    scene.assert_nothing_left();
}
