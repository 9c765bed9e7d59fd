//! Work that says for itself how it went: its figures, its check, its servers; and the plans of
//! databases and other applications, each made tiny.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{failure, printed, run_command, run_plan};
use crate::support::{Scene, Started, list, sample, text, verdict};

/// Two contenders alike and a workload.
fn plan(workload: &str) -> String {
    format!(
        r#"
        bed = {{ size = "64M" }}
        judgement = {{ rounds = 4 }}
        contender = [
            {{ name = "a", file_system = "ext4" }},
            {{ name = "b", file_system = "ext4", environment = {{ SPEED = 20 }} }},
        ]
        [[workload]]
        name = "work"
        {workload}
        "#
    )
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn figures_are_the_works_own_and_settings_reach_it() {
    let scene = Scene::new();
    let work = r#"
        environment = { SPEED = 10, UNIT = "per_second" }
        primary = ["events_per_s"]
        command = 'echo "events_per_s $SPEED.5 $UNIT higher" > "$FSVERDICT_FIGURES"'
        check = 'echo "log 4096 bytes lower" >> "$FSVERDICT_FIGURES"'
    "#;
    let document = run_plan(&scene, &plan(work)).exits(0).json();
    let found = verdict(&document, "b", "events_per_s");
    assert_eq!((&found["verdict"], &found["unit"]), (&"faster".into(), &"per_second".into()));
    for trial in list(&document["trials"]) {
        let fast = trial["contender"] == "b";
        let [events, log] = ["events_per_s", "log"].map(|metric| sample(trial, metric));
        assert_eq!((events, log), (if fast { 20.5 } else { 10.5 }, 4096.0), "{trial:#}");
    }
    let report = scene.read("run/report.md");
    assert!(report.contains("4.00 KiB") && report.contains("not judged"), "{report}");
    assert!(report.contains("SPEED = 20"), "{report}");
    assert!(scene.read("run/samples.csv").contains(",log,4096,B,lower"));
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_figure_that_is_none_and_one_that_is_missing_fail_the_trial() {
    let scene = Scene::new();
    for (command, says) in [
        ("echo events 5 > $FSVERDICT_FIGURES", "raw/figures: line 1: \"events 5\" is not a figure"),
        (
            "true",
            "events is to be judged, and neither measured, printed nor given in $FSVERDICT_FIGURES",
        ),
        ("echo wall_time 5 seconds lower > $FSVERDICT_FIGURES", "wall_time is measured by"),
    ] {
        let options = "--fs ext4,ext4 --size 64M --rounds 1 --primary events";
        let document = run_command(&scene, options, &["sh", "-c", command]).exits(1).json();
        for trial in list(&document["trials"]) {
            let (step, error) = failure(trial);
            assert!(step == "figures" && error.contains(says), "{step}: {error}");
            assert_eq!(list(&trial["samples"]).len(), 0);
        }
        fs::remove_dir_all(scene.path("run")).unwrap();
    }
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn work_whose_result_is_wrong_is_not_measured() {
    let scene = Scene::new();
    let work = r#"
        command = "echo 41 > result"
        check = """
[ "$(cat result)" = 42 ] || { echo "the result is $(cat result)" >&2; exit 3; }
"""
        cleanup = "cat result"
    "#;
    let done = run_plan(&scene, &plan(work)).exits(1);
    let document = done.says("failed with exit status 3: the result is 41").json();
    for trial in list(&document["trials"]) {
        assert_eq!(failure(trial).0, "check");
        let raw = format!("run/trials/{}/raw/cleanup.stdout", trial["number"]);
        assert_eq!(scene.read(&raw), "41\n", "cleanup comes after a failure, too");
    }
    scene.assert_nothing_left();
}

/// A server with a child, and work that leaves a process of its own.
const SERVED: &str = r#"
    prepare = '''setsid sh -c 'sleep 1000 & echo $$ > server; exec sleep 1000' &
        until [ -s server ]; do sleep 0.1; done'''
    command = "kill -0 $(cat server); sleep 1000 & echo served"
    cleanup = "kill $(cat server); echo stopped"
"#;

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_server_is_not_what_the_work_has_left_and_is_stopped_in_the_end() {
    let scene = Scene::new();
    let document = run_plan(&scene, &plan(SERVED)).exits(0).json();
    for trial in list(&document["trials"]) {
        let phase = &trial["phases"][0];
        assert_eq!(phase["processes_left"], 1, "the work's sleep alone: {trial:#}");
        assert_eq!(phase["application_write_bytes"], Value::Null, "a server writes, too");
        assert_eq!(printed(&scene, trial), "served\n");
        let raw = format!("run/trials/{}/raw/cleanup.stdout", trial["number"]);
        assert_eq!(scene.read(&raw), "stopped\n");
    }
    scene.assert_nothing_left();
}

/// Runs a plan of those that come along, changed, for one round; gives its trials.
fn tiny(scene: &Scene, name: &str, changes: &[(&str, &str)]) -> Vec<Value> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut plan = fs::read_to_string(root.join(format!("plans/{name}.toml"))).unwrap();
    for (from, to) in changes {
        assert!(plan.contains(from), "{name} has no {from}");
        plan = plan.replace(from, to);
    }
    let file = scene.write("plan.toml", &plan);
    let options = ["--fs", "ext4,btrfs", "--size", "512M", "--rounds", "1", "--json", "-"];
    let words = [&["run", file.as_str(), "--output", "run"], &options[..]].concat();
    let mut command = scene.command(&words);
    command.env("XDG_CACHE_HOME", scene.path("cache"));
    let document = Started::new(command).wait().exits(0).json();
    scene.assert_nothing_left();
    list(&document["trials"]).to_vec()
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn postgresql_is_measured_and_its_balances_agree() {
    let scene = Scene::new();
    let changes = [
        ("needs_bytes = \"2G\"\n", ""),
        ("PGBENCH_SCALE = 20", "PGBENCH_SCALE = 1"),
        ("operations = 32000", "operations = 3200"),
    ];
    for trial in tiny(&scene, "postgresql", &changes) {
        let [p50, p99] =
            ["p50", "p99"].map(|q| sample(&trial, &format!("transaction_latency_{q}")));
        assert!(0.0 < p50 && p50 <= p99, "{trial:#}");
        assert!(
            sample(&trial, "transactions_per_s") > sample(&trial, "rate"),
            "its start is left out"
        );
        assert!(sample(&trial, "wal_bytes") > 100.0 * 3200.0);
        assert!(sample(&trial, "device_flushes") > 0.0, "not durable: {trial:#}");
        assert_eq!(trial["phases"][0]["processes_left"], 0);
    }
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn mariadb_is_measured_and_its_tables_are_whole() {
    let scene = Scene::new();
    let changes = [
        ("needs_bytes = \"1G\"\n", ""),
        ("ROWS = 25000", "ROWS = 1000"),
        ("operations = 8000", "operations = 800"),
    ];
    for trial in tiny(&scene, "mariadb", &changes) {
        let [p50, p95] =
            ["p50", "p95"].map(|q| sample(&trial, &format!("transaction_latency_{q}")));
        assert!(0.0 < p50 && p50 <= p95, "{trial:#}");
        assert!(sample(&trial, "transactions_per_s") > 0.0);
        assert!(sample(&trial, "innodb_log_bytes") > 100.0 * 800.0);
        assert_eq!(trial["phases"][0]["processes_left"], 0);
    }
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn both_databases_are_measured_at_a_scale_that_has_no_quantile() {
    let scene = Scene::new();
    for (name, rows) in
        [("postgresql", ("SCALE = 20", "SCALE = 1")), ("mariadb", ("25000", "1000"))]
    {
        let shown = scene.run(&format!("show {name}")).exits(0).stdout;
        scene.write("plan.toml", &shown.replace(rows.0, rows.1));
        let words = "--scale 0.002 --fs ext4,btrfs --rounds 1 --json -";
        let done = scene.run(&format!("run plan.toml {words} --output {name}")).exits(0);
        assert!(sample(&list(&done.json()["trials"])[0], "transactions_per_s") > 0.0);
    }
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn sqlite_is_measured_and_its_rows_are_there() {
    let scene = Scene::new();
    let changes = [
        ("operations = 2000", "operations = 100"),
        ("operations = 10000", "operations = 500"),
        ("ROWS = 350000", "ROWS = 20000"),
    ];
    let trials = tiny(&scene, "sqlite", &changes);
    assert_eq!(trials.len(), 4);
    for trial in trials {
        assert!(sample(&trial, "rate") > 0.0);
        let durable = text(&trial["workload"]) == "durable transactions";
        assert!(!durable || sample(&trial, "device_flushes") >= 100.0, "not durable: {trial:#}");
    }
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_source_tree_is_unpacked_cloned_built_installed_and_layered() {
    let scene = Scene::new();
    let tree = scene.path("tree/tools/lib/greeting");
    fs::create_dir_all(&tree).unwrap();
    for folder in ["include", "kernel", "lib"] {
        fs::create_dir(scene.path("tree").join(folder)).unwrap();
        for number in 0..50 {
            let file = scene.path("tree").join(folder).join(format!("{number}.c"));
            fs::write(file, format!("int f{number}(void) {{ return {number}; }}\n")).unwrap();
        }
    }
    fs::write(tree.join("Makefile"), "greeting.o: greeting.c\n\tcc -c greeting.c\n").unwrap();
    fs::write(tree.join("greeting.c"), "int greeting(void) { return 1; }\n").unwrap();
    let source = scene.typed("tree.tar.xz");
    let folder = scene.typed("");
    crate::support::tool("tar", &["-C", &folder, "-cJf", &source, "tree"]).unwrap();
    let changes = [
        ("needs_bytes = \"2G\"\n", ""),
        ("/usr/src/linux-source-6.1.tar.xz", source.as_str()),
        ("api subcmd perf", "greeting"),
    ];
    for trial in tiny(&scene, "unpack-and-build", &changes) {
        for part in ["unpack", "clone", "build", "package", "layer", "delete"] {
            assert!(sample(&trial, &format!("{part}_time")) > 0.0);
        }
    }
    let mut inputs = fs::read_dir(scene.path("cache/fsverdict/inputs")).unwrap();
    let made = inputs.next().unwrap().unwrap().path().join("files");
    assert_eq!(fs::read_to_string(made).unwrap(), "152\n");
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn streams_are_read_and_written_at_once() {
    let scene = Scene::new();
    let changes = [
        ("needs_bytes = \"3G\"\n", ""),
        ("needs_bytes = \"1G\"\n", ""),
        ("size = \"128M\"", "size = \"8M\""),
        ("--size=128M", "--size=8M"),
        ("size = \"8M\", numjobs = 64", "size = \"1M\", numjobs = 64"),
    ];
    let trials = tiny(&scene, "streams", &changes);
    let both = trials.iter().filter(|trial| text(&trial["workload"]).contains("writers and"));
    for trial in both {
        assert!(sample(trial, "fio_read_bandwidth") > 0.0);
        assert!(sample(trial, "fio_write_bandwidth") > 0.0);
        assert_eq!(trial["phases"][0]["application_write_bytes"], 64 << 20);
    }
}
