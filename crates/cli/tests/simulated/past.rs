//! Many runs over time: `history`.

use super::run_plan;
use crate::support::{Scene, list, text};

/// Runs a day apart; from the seventh on with another kernel, and `tuned` slower.
pub fn nightly(scene: &Scene, runs: u32) {
    for number in 1..=runs {
        let tuned = if number <= 6 { 1.5 } else { 1.2 };
        let plan = format!(
            "place = \"sim\"\nseed = {number}\n[judgement]\nrounds = 4\n\
             [[contender]]\nname = \"plain\"\nfile_system = \"ext4\"\n\
             [[contender]]\nname = \"tuned\"\nfile_system = \"xfs\"\n\
             [[workload]]\nname = \"work\"\ncommand = [\"true\"]\n\
             [sim]\nnoise = 0.01\nspeed = {{ tuned = {tuned} }}\n"
        );
        let name = format!("nightly/2026/{number}");
        std::fs::create_dir_all(scene.path("nightly/2026")).unwrap();
        run_plan(scene, &name, &plan);
        let mut run = scene.read_json(&format!("{name}/run.json"));
        run["started"] = format!("2026-03-{number:02}T01:00:00Z").into();
        run["host"]["kernel"] = if number <= 6 { "6.1" } else { "6.12" }.into();
        scene.write(&format!("{name}/run.json"), &run.to_string());
    }
}

#[test]
fn a_change_is_found_with_the_run_and_the_kernel_it_came_with() {
    let scene = Scene::new();
    nightly(&scene, 12);
    let document = scene.run("history nightly --format json").exits(0).json();
    assert_eq!(document["schema"], 1);
    let runs = list(&document["runs"]);
    assert_eq!((runs.len(), &runs[6]["run"]), (12, &"7".into()), "in order of time");
    let series = list(&document["series"]);
    let [plain, tuned] = series else { panic!("{series:#?}") };
    assert_eq!((text(&plain["contender"]), list(&plain["shifts"]).len()), ("plain", 0));
    let [shift] = list(&tuned["shifts"]) else { panic!("{tuned:#}") };
    assert_eq!((&shift["run"], &shift["runs_before"]), (&6.into(), &6.into()));
    assert_eq!(list(&shift["runs"]), [6], "its night is known");
    let ratio = shift["ratio"].as_f64().unwrap();
    assert!((ratio - 0.8).abs() < 0.02, "{shift}");
    let kernel = &list(&shift["differences"])[0];
    assert_eq!((text(&kernel["what"]), text(&kernel["run"])), ("kernel", "6.12"));
    let points = list(&tuned["points"]);
    assert!(points.iter().all(|point| point["low"].as_f64() < point["ratio"].as_f64()));

    let shown = scene.run("history nightly").exits(0).stdout;
    let answer = "1 of 2 figures changed: work's wall_time of tuned against plain 0.8";
    assert!(shown.starts_with(answer), "{shown}");
    assert!(shown.contains("\n12 runs from 2026-03-01 to 2026-03-12\n"), "{shown}");
    assert!(shown.contains("kernel 6.1, 6.12"), "{shown}");
    let sentence = "wall_time: tuned against plain has been worse since 2026-03-07 (7), 0.8";
    let whole = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(whole.contains(sentence), "{shown}");
    assert!(whole.contains("with it came: kernel (6.1 before, 6.12 then)."), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    let html = scene.run("history nightly --format html").exits(0).stdout;
    for part in [
        "<h1>work over 12 runs</h1>",
        "tuned against plain has been worse at wall_time since 2026-03-07 (0.80×).",
        "kernel (6.1 before, 6.12 then)",
        "<title>kernel 6.12</title>",
        "scope=\"row\">6.12</th>",
    ] {
        assert!(html.contains(part), "{part} is not in\n{html}");
    }
    let news = list(&runs[6]["differences"]);
    assert_eq!((news.len(), text(&news[0]["what"])), (1, "kernel"));
    let other = scene.run("history nightly --metric cpu_time").exits(0).stdout;
    assert!(other.contains("cpu_time") && !other.contains("wall_time"), "{other}");
}

#[test]
fn what_is_no_run_is_left_out_or_refused() {
    let scene = Scene::new();
    scene.run("history gone").exits(1).says("gone: No such file");
    std::fs::create_dir(scene.path("empty")).unwrap();
    scene.run("history empty").exits(2).says("empty holds no run that measured something");
    nightly(&scene, 2);
    std::fs::create_dir_all(scene.path("nightly/broken")).unwrap();
    scene.write("nightly/broken/run.json", "{");
    let done = scene.run("history nightly").exits(0).says("left out: ").says("broken/run.json");
    assert!(done.stdout.contains("\n2 runs from"), "{}", done.stdout);
    let one = scene.run("history nightly/2026/1").exits(0).stdout;
    assert!(one.contains("\n1 run from 2026-03-01"), "{one}");
    let typo = scene.run("history nightly --metric wal_time").exits(2);
    typo.says("no run measured \"wal_time\": did you mean wall_time?");
    let html = scene.run("history nightly/2026/1 --format html").exits(0).stdout;
    assert!(html.contains("No change shows; finding one takes 4 runs"), "{html}");
}
