//! What limits counted: a run goes on only as it began, and two runs are compared only where it is
//! the same.

use std::fs;

use super::{PLAN, list, run_plan, text};
use crate::support::Scene;

fn limited() -> String {
    PLAN.replace("devices = 2", "devices = 2\nlimits = { iops = 100 }")
}

/// Makes of the run one of a version that did not tell what its limits counted: bios.
fn age(scene: &Scene, run: &str) {
    for number in 1..=scene.records(run).len() {
        let path = scene.path(&format!("{run}/trials/{number}/record.json"));
        let record = fs::read_to_string(&path).unwrap();
        let older = record.replace("\"limits_count\":\"requests\",", "");
        assert_ne!(older, record, "a record tells");
        fs::write(path, older).unwrap();
    }
}

#[test]
fn a_run_whose_limits_counted_bios_goes_on_no_more() {
    let scene = Scene::new();
    let document = run_plan(&scene, "run", &limited());
    let counted = list(&document["trials"]).iter().map(|it| text(&it["limits_count"]));
    assert!(counted.into_iter().all(|it| it == "requests"), "{document:#}");
    scene.run("run --resume run").exits(0);
    age(&scene, "run");
    for command in ["run --resume run", "run --resume run --rounds 9 --dry-run"] {
        let refused = scene.run(command).exits(2);
        let says = "the run's limits counted bios in the rounds so far, and now count requests. \
                    New rounds would not match these: begin anew with fsverdict run run/plan.toml";
        refused.says(says);
    }
    let trials = scene.records("run").len();
    assert_eq!(trials, list(&document["trials"]).len(), "nothing was measured");
    // Without limits on operations nothing was counted.
    run_plan(&scene, "free", PLAN);
    assert!(!scene.read("free/trials/1/record.json").contains("limits_count"));
    scene.run("run --resume free").exits(0);
}

#[test]
fn a_dry_run_of_one_that_goes_on_leaves_its_trials() {
    let scene = Scene::new();
    run_plan(&scene, "settled", PLAN);
    let line = "run --resume settled --rounds 99 --dry-run";
    let said = scene.run(line).exits(0).stdout;
    assert!(said.contains("# nothing more would be measured: every comparison was"), "{said}");
    // So much noise leaves it open.
    run_plan(&scene, "run", &PLAN.replace("noise = 0.005", "noise = 2.0"));
    let before = scene.records("run");
    let said = scene.run("run --resume run --rounds 99 --dry-run").exits(0).stdout;
    let next = before.last().unwrap()["round"].as_u64().unwrap() + 1;
    assert!(said.contains(&format!("# round {next}: ")), "{said}");
    assert_eq!(scene.records("run"), before);
}

#[test]
fn what_json_is_written_to_stays_what_it_is() {
    let scene = Scene::new();
    scene.write("plan.toml", PLAN);
    scene.write("there.json", "former");
    std::os::unix::fs::symlink("there.json", scene.path("link.json")).unwrap();
    scene.run("run plan.toml --output one --json link.json").exits(0);
    assert!(scene.path("link.json").is_symlink());
    assert!(scene.read("there.json").starts_with("{\n"));
    // The text follows on the same stream.
    let said = scene.run("run plan.toml --output two --json /dev/stdout").exits(0).stdout;
    assert!(said.contains("\n{\n  \"schema\": "), "{said}");
    assert!(std::path::Path::new("/dev/stdout").is_symlink());
    for wrong in ["gone/x.json", "."] {
        scene
            .run(&format!("run plan.toml --output three --json {wrong}"))
            .exits(1)
            .says("writing ");
        assert!(!scene.path("three").exists(), "before the first trial");
    }
}

#[test]
fn runs_whose_limits_counted_different_things_are_not_compared() {
    let scene = Scene::new();
    run_plan(&scene, "before", &limited());
    run_plan(&scene, "after", &limited());
    scene.run("compare before after").exits(0);
    age(&scene, "before");
    let says = "what its limits counted is bios in the baseline and requests in the run";
    scene.run("compare before after").exits(2).says(says);
}
