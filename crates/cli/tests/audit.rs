//! `audit`: over the published tables, over the outputs of the real tools, over runs.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{Scene, Started, list, program, text};

const CLOUD_DISK: &str = "../../studies/cloud-disk.table.toml";

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path).canonicalize().unwrap()
}

/// Each finding as `warning A1 test, contender`.
fn findings(document: &Value) -> Vec<String> {
    let of = |finding: &Value| {
        let place: Vec<&str> =
            ["workload", "contender"].iter().filter_map(|key| finding[*key].as_str()).collect();
        let (severity, audit) = (text(&finding["severity"]), text(&finding["audit"]));
        format!("{severity} {audit} {}", place.join(", ")).trim_end().to_string()
    };
    list(&document["findings"]).iter().map(of).collect()
}

fn evidence(document: &Value) -> Vec<&str> {
    list(&document["findings"]).iter().map(|finding| text(&finding["evidence"])).collect()
}

#[test]
fn the_cloud_disk_study_has_these_faults_and_no_others() {
    let scene = Scene::new();
    let file = repository(CLOUD_DISK).display().to_string();
    let document = scene.fsverdict(&["audit", &file, "--format", "json"]).exits(0).json();
    let expected = [
        "note A8 sequential write",
        "warning A17 sequential write",
        "note A8 sequential read",
        "warning A17 sequential read",
        "note A8 random write",
        "warning A17 random write",
        "note A8 random read",
        "warning A17 random read",
        "warning A1 mixed read and write, ext4",
        "warning A1 mixed read and write, xfs",
        "warning A1 mixed read and write, btrfs",
        "warning A8 mixed read and write, btrfs",
        "note A8 mixed read and write",
        "void A10 small files",
        "warning A17 metadata",
        "void A10 metadata",
        "warning A18",
        "warning A5 random write, ext4",
        "warning A5 mixed read and write, btrfs",
        "warning A5 btrfs",
        "warning A5",
        "warning A5",
        "warning A5",
        "warning A5",
        "warning A5",
        "warning A5",
    ];
    assert_eq!(findings(&document), expected);
    let evidence = evidence(&document);
    for says in [
        "ext4, btrfs are at the device's limit of 8050 IOPS",
        "ext4, xfs, btrfs are at the device's limit of 150MiB/s",
        "total bandwidth MiB/s 22.9 is 0.729 of what follows from read IOPS 5625 and write IOPS",
        "create files/s: 10,000 processes for 10,000 operations, one every 3.05 ms to 3.11 ms",
        "each figure is of one run",
        "IOPS 8,141 is in no table, which has 8019",
        "+9% of total bandwidth MiB/s follows from no table; +13.1% over ext4",
    ] {
        assert!(evidence.iter().any(|it| it.contains(says)), "{says}: {evidence:#?}");
    }
    let unsaid =
        "A6, reads from cache: what was done to the caches is not stated (cache) (small files)";
    assert_eq!(document["not_audited"], Value::from(vec![unsaid]));
    assert_eq!(document["columns"]["read latency ms"], "read latency");
}

/// What docs/audits.md shows of it is what the program prints.
#[test]
fn the_shown_findings_are_those_printed() {
    let scene = Scene::new();
    let file = repository(CLOUD_DISK).display().to_string();
    let printed = scene.fsverdict(&["audit", &file]).exits(0).stdout;
    let document = fs::read_to_string(repository("../../docs/audits.md")).unwrap();
    let block = document.split("$ fsverdict audit studies/cloud-disk.table.toml\n").nth(1).unwrap();
    let shown: Vec<&str> =
        block.split("```").next().unwrap().lines().filter(|line| *line != "...").collect();
    assert!(shown.len() > 10, "{shown:?}");
    for line in shown {
        assert!(printed.lines().any(|it| it == line), "{line:?} is not in\n{printed}");
    }
}

#[test]
fn every_test_void_ends_with_5_and_a_wrong_file_with_2() {
    let scene = Scene::new();
    let table = "[[test]]\nname = \"w\"\nfiles = 100\nprocesses = { \"create files/s\" = 100 }\n\
                 columns = [\"create files/s\"]\next4 = [900]\n";
    scene.write("void.toml", table);
    scene.run("audit void.toml").exits(5);
    scene.write("wrong.toml", &table.replace("[900]", "[900, 1]"));
    scene.run("audit wrong.toml").exits(2).says("wrong.toml: line 6: ext4 has 2 figures for 1");
    scene.write("job.fio", "[global]\nrw=read\n");
    scene.run("audit job.fio").exits(2).says("neither a table in TOML");
    let plan = repository("../../studies/cloud-disk.toml").display().to_string();
    scene.run(&format!("audit {plan}")).exits(2).says("this is a plan");
    scene.run("audit gone.json").exits(1).says("gone.json: No such file");
    fs::create_dir(scene.path("empty")).unwrap();
    scene.run("audit empty").exits(1).says("is not the folder of a run");
}

#[test]
fn a_run_is_audited_from_its_folder_again() {
    let scene = Scene::new();
    scene.run(
        "run --place sim --fs ext4,xfs --rounds 3 --seed 1 --output run --json run.json -- true",
    );
    let again = scene.run("audit run --format json").exits(0).json();
    assert_eq!(again["findings"], scene.read_json("run.json")["findings"]);
    assert!(!list(&again["findings"]).is_empty(), "three rounds are too few for an interval");
    assert_eq!(again["taken_for"], "a run of 6 trials");
    let markdown = scene.run("audit run --format markdown").exits(0).stdout;
    assert!(markdown.contains("\n- **warning A18 "), "{markdown}");
}

/// Runs a program of the machine in the scene's folder; false if it is not installed.
fn runs(scene: &Scene, name: &str, arguments: &[&str]) -> bool {
    let installed = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(name).exists()));
    if !installed {
        return false;
    }
    let mut command = program(name);
    command.args(arguments).current_dir(scene.path(""));
    let done = Started::new(command).wait();
    assert_eq!(done.code, Some(0), "{name}: {}", done.stderr);
    true
}

#[test]
fn what_fio_itself_prints_contradicts_nothing() {
    let scene = Scene::new();
    let job = ["--name=job", "--rw=randrw", "--bs=4k", "--size=4m", "--runtime=1", "--time_based"];
    let queue = ["--ioengine=libaio", "--iodepth=8", "--numjobs=2", "--group_reporting"];
    for format in ["json", "json+"] {
        let format = format!("--output-format={format}");
        let arguments = [&job[..], &queue, &[&format, "--output=fio.json"]].concat();
        if !runs(&scene, "fio", &arguments) {
            return;
        }
        let line = "audit fio.json --memory 1G --format json --device-iops 10";
        let document = scene.run(line).exits(0).json();
        assert!(text(&document["taken_for"]).starts_with("JSON of fio-"));
        let described = "randrw, blocks of 4k, 2 tasks, depth 8, libaio, buffered";
        assert_eq!(document["jobs"]["job"], described);
        let found: Vec<String> = findings(&document);
        // A busy machine may keep fio from filling its queue.
        let found: Vec<&str> =
            found.iter().map(String::as_str).filter(|it| !it.contains("A2")).collect();
        assert_eq!(
            found,
            ["warning A8 job", "warning A6 job", "warning A9 job", "warning A18 job"]
        );
    }
    let changed = scene.read("fio.json").replacen("\"bs\" : \"4k\"", "\"bs\" : \"8k\"", 1);
    scene.write("fio.json", &changed);
    let document = scene.run("audit fio.json --format json").exits(0).json();
    assert!(findings(&document).contains(&"warning A1 job".into()), "{document}");
}

#[test]
fn what_hyperfine_itself_prints_contradicts_nothing() {
    let scene = Scene::new();
    let options = ["--runs=4", "--export-json=h.json", "--export-csv=h.csv", "--style=none"];
    if !runs(&scene, "hyperfine", &[&options[..], &["sleep 0.02", "true"]].concat()) {
        return;
    }
    for file in ["h.json", "h.csv"] {
        let document = scene.run(&format!("audit {file} --format json")).exits(0).json();
        assert!(text(&document["taken_for"]).contains("of hyperfine: 2 tests"));
        // What else is found, of clocks and of runs that differ, is up to how busy the machine is.
        let found = findings(&document);
        assert!(found.iter().all(|it| !it.contains(" A5 ")), "{file}: {found:?}");
    }
    let mut changed = scene.read_json("h.json");
    changed["results"][0]["mean"] = Value::from(0.5);
    scene.write("h.json", &changed.to_string());
    let document = scene.run("audit h.json --format json").exits(0).json();
    let found = findings(&document);
    assert!(found.contains(&"warning A5 sleep 0.02".into()), "{found:?}");
}
