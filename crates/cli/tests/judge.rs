//! `judge`: over the outputs of the real tools and over CSVs, in every form a report has.

use std::fs;

use serde_json::Value;

use crate::support::{Scene, Started, list, program, text};

/// Rounds of two, of which one takes 0.9 of the other's time.
fn rounds() -> String {
    let mut csv = "fs,round,untar_s\n".to_string();
    for round in 1..=6 {
        let noise = 1.0 + 0.2 * f64::from(round % 3);
        csv += &format!("ext4,{round},{:.3}\nxfs,{round},{:.3}\n", 10.0 * noise, 9.0 * noise);
    }
    csv
}

#[test]
fn a_csv_of_rounds_gets_the_reports_of_a_run() {
    let scene = Scene::new();
    scene.write("rounds.csv", &rounds());
    let text = scene.run("judge rounds.csv").exits(0).stdout;
    for says in [
        "file: rounds.csv\ncontender: column fs, by its name\nround: column round, by its name\n",
        "judged: untar_s: less is better, a time by its unit\n",
        "Against ext4, xfs is better at untar s (1.11×).",
        "Read from 1 file: 12 runs. It gives 1 verdict on 1 workload.",
    ] {
        assert!(text.contains(says), "{says:?} is not in\n{text}");
    }
    let markdown = scene.run("judge rounds.csv --format markdown").exits(0).stdout;
    assert!(markdown.contains("## What was read\n\n- file: rounds.csv\n"), "{markdown}");
    assert!(!markdown.contains("bed: "), "nobody knows the bed: {markdown}");
    let html = scene.run("judge rounds.csv --format html").exits(0).stdout;
    assert!(html.contains("What was read") && html.contains("Judge it again"));
    assert!(!html.contains("Run it again"));
    let csv = scene.run("judge rounds.csv --format csv").exits(0).stdout;
    assert_eq!(csv.lines().count(), 13);
    scene.write("again.csv", &csv);
    let document = scene.run("judge again.csv --format json").exits(0).json();
    let verdict = &document["verdicts"][0];
    assert_eq!((text_of(verdict, "verdict"), &verdict["rounds"]), ("faster", &Value::from(6)));
    assert_eq!(list(&document["trials"]).len(), 12);
    let lower = scene.run("judge rounds.csv --reference xfs --format json").exits(0).json();
    assert_eq!(text_of(&lower["verdicts"][0], "verdict"), "slower");
}

fn text_of<'a>(value: &'a Value, key: &str) -> &'a str {
    text(&value[key])
}

#[test]
fn a_wrong_file_or_nothing_to_compare_is_one_line_and_2() {
    let scene = Scene::new();
    scene.write("rounds.csv", &rounds());
    scene.write("notes.txt", "hello\nworld\n");
    scene.run("judge notes.txt").exits(2).says("notes.txt: this is neither a table in TOML");
    scene.run("judge gone.csv").exits(1).says("gone.csv: No such file");
    scene.run("judge rounds.csv --contender who").exits(2).says("no column \"who\"");
    scene.run("judge rounds.csv --reference zfs").exits(2).says("no contender is \"zfs\"");
    scene.write("one.csv", "fs,wall_s\next4,1\next4,2\n");
    scene.run("judge one.csv").exits(2).says("all runs are of one contender");
    scene.run("judge rounds.csv --metric speed").exits(2).says("no column \"speed\"");
}

/// Runs a program of the machine in the scene's folder; false if it is not installed.
fn runs(scene: &Scene, name: &str, arguments: &[&str]) -> bool {
    let installed = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(name).exists()));
    if installed {
        let mut command = program(name);
        command.args(arguments).current_dir(scene.path(""));
        let done = Started::new(command).wait();
        assert_eq!(done.code, Some(0), "{name}: {}", done.stderr);
    }
    installed
}

#[test]
fn many_outputs_of_fio_are_rounds_of_their_contenders() {
    let scene = Scene::new();
    for round in 1..=4 {
        for contender in ["a", "b"] {
            let output = format!("--output={contender}-{round}.json");
            let job = ["--name=job", "--rw=write", "--bs=4k", "--size=16m", "--ioengine=psync"];
            let rest = ["--end_fsync=1", "--output-format=json", &output];
            if !runs(&scene, "fio", &[&job[..], &rest].concat()) {
                return;
            }
        }
    }
    let files: Vec<String> =
        (1..=4).flat_map(|round| ["a", "b"].map(|it| format!("{it}-{round}.json"))).collect();
    let line = format!("judge {} --format json", files.join(" "));
    let document = scene.run(&line).exits(0).json();
    let verdict = &document["verdicts"][0];
    assert_eq!((text_of(verdict, "metric"), &verdict["rounds"]), ("write IOPS", &Value::from(4)));
    assert_eq!(text_of(verdict, "reference"), "a");
    let named = scene.run("judge x=a-1.json y=b-1.json --format json").exits(0).json();
    assert_eq!(text_of(&named["verdicts"][0], "contender"), "y");
    assert_eq!(text_of(&named["verdicts"][0], "verdict"), "undecided");
    let changed = scene.read("b-1.json").replacen("\"bs\" : \"4k\"", "\"bs\" : \"8k\"", 1);
    fs::write(scene.path("b-1.json"), changed).unwrap();
    scene.run(&line).exits(2).says("job is not the same work for all");
}

#[test]
fn the_commands_of_hyperfine_are_contenders() {
    let scene = Scene::new();
    let options = ["--shell=none", "--runs=4", "--export-json=h.json", "--style=none"];
    let commands = ["--command-name=ext4", "sleep 0.02", "--command-name=xfs", "sleep 0.1"];
    if !runs(&scene, "hyperfine", &[&options[..], &commands].concat()) {
        return;
    }
    let document = scene.run("judge h.json --format json").exits(0).json();
    let verdict = &document["verdicts"][0];
    assert_eq!((text_of(verdict, "reference"), text_of(verdict, "contender")), ("ext4", "xfs"));
    assert_eq!(verdict["runs"], Value::from(vec![4, 4]));
    let audits: Vec<&str> =
        list(&document["findings"]).iter().map(|it| text_of(it, "audit")).collect();
    assert!(audits.contains(&"A14"), "not in rounds: {audits:?}");
}
