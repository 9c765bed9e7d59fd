//! Several runs in one report: `report RUN RUN`.

use super::run_plan;
use crate::support::{Scene, list, text};

/// Runs `old` and `new`, on machines with other processors and kernels. `tuned` has turned round,
/// and is mounted in another way; `plain` is the reference of both.
pub fn two_machines(scene: &Scene) {
    for (name, speed, mount, kernel) in
        [("old", 1.3, "\"noatime\"", "6.1"), ("new", 0.7, "", "6.12")]
    {
        let plan = format!(
            "place = \"sim\"\nseed = 3\n[judgement]\nrounds = 4\n\
             [[contender]]\nname = \"plain\"\nfile_system = \"ext4\"\n\
             [[contender]]\nname = \"tuned\"\nfile_system = \"xfs\"\nmount = [{mount}]\n\
             [[contender]]\nname = \"other\"\nfile_system = \"btrfs\"\n\
             [[workload]]\nname = \"work\"\ncommand = \"cat a | wc\"\n\
             [sim]\nnoise = 0.01\nspeed = {{ tuned = {speed}, other = 0.5 }}\n"
        );
        run_plan(scene, name, &plan);
        let mut run = scene.read_json(&format!("{name}/run.json"));
        run["host"]["kernel"] = kernel.into();
        run["host"]["processor"] = format!("the {name} one").into();
        scene.write(&format!("{name}/run.json"), &run.to_string());
    }
}

/// A text for a terminal in one line.
fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn what_differs_stands_on_top_and_verdicts_side_by_side() {
    let scene = Scene::new();
    two_machines(&scene);
    let shown = scene.run("report old new").exits(0).stdout;
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines[0], "old and new side by side");
    assert!(lines[2].starts_with("2 comparisons with verdicts of more"), "{shown}");
    let shown = unwrapped(&shown);
    let answer = "2 comparisons with verdicts of more than one run: 1 with the same verdict, 1 \
                  in opposite directions. tuned against plain at work's wall_time: better in old, \
                  worse in new.";
    assert!(shown.contains(answer), "{shown}");
    let at = |text: &str| shown.find(text).unwrap_or_else(|| panic!("{text:?} is not in\n{shown}"));
    assert!(at("What is not the same") < at("the old one"));
    assert!(at("the old one") < at("terms are the same for all"));
    assert!(at("tuned: mount") < at("terms are the same for all"));
    assert!(at("terms are the same for all") < at("metric"));
    assert!(at("different things in the runs: tuned: mount") < at("opposed"));
    at("between runs they say nothing about each other");
    assert!(!shown.contains("These runs were not measured on equal terms"), "{shown}");
    let markdown = scene.run("report old new --format markdown").exits(0).stdout;
    for part in
        ["# old and new side by side\n", "<details><summary>", "| sim: speed", "cat a \\| wc"]
    {
        assert!(markdown.contains(part), "{part:?} is not in\n{markdown}");
    }
    let csv = scene.run("report old new --format csv").exits(0).stdout;
    assert!(csv.starts_with("run,trial,round,"), "{csv}");
    let of = |name: &str| csv.lines().filter(|line| line.starts_with(name)).count();
    let alone = scene.read("new/samples.csv").lines().count() - 1;
    assert_eq!((of("run,"), of("new,")), (1, alone));
}

#[test]
fn a_joined_document_keeps_runs_apart() {
    let scene = Scene::new();
    two_machines(&scene);
    let document = scene.run("report old new --format json").exits(0).json();
    assert_eq!((&document["schema"], &document["one_machine"]), (&1.into(), &false.into()));
    assert_eq!(list(&document["runs"]).len(), 2);
    let term = |what: &str| list(&document["terms"]).iter().find(|it| it["what"] == what).unwrap();
    assert_eq!(
        (&term("kernel")["equal"], &term("bed: size")["equal"]),
        (&false.into(), &true.into())
    );
    assert_eq!(list(&term("kernel")["values"]), ["6.1", "6.12"]);
    let verdicts = list(&document["verdicts"]);
    let tuned = verdicts.iter().find(|it| it["contender"] == "tuned").unwrap();
    assert_eq!(
        (text(&tuned["accord"]), list(&tuned["unlike"])),
        ("opposed", &["tuned: mount".into()][..])
    );
    let said: Vec<&str> = list(&tuned["runs"]).iter().map(|it| text(&it["verdict"])).collect();
    assert_eq!(said, ["faster", "slower"]);
    // Each run's own verdicts, as by itself.
    let alone = scene.run("report new --format json").exits(0).json();
    let own = list(&alone["verdicts"]).iter().find(|it| it["contender"] == "tuned").unwrap();
    assert_eq!(&tuned["runs"][1], own);
    scene.run("report old gone").exits(1).says("is not the folder of a run");
}

#[test]
fn unequal_terms_are_said_before_anything_else() {
    let scene = Scene::new();
    two_machines(&scene);
    let plan = scene.read("new/plan.toml");
    assert!(plan.contains("size = \"4G\""), "{plan}");
    scene.write("new/plan.toml", &plan.replace("size = \"4G\"", "size = \"1G\""));
    let shown = unwrapped(&scene.run("report old new").exits(0).stdout);
    let warning = "These runs were not measured on equal terms: the bed's size (4G, 1G).";
    assert!(shown.contains(warning), "{shown}");
    assert!(shown.find(warning) < shown.find("2 comparisons"), "{shown}");
    for format in ["html", "markdown"] {
        let shown = scene.run(&format!("report old new --format {format}")).exits(0).stdout;
        let places = ["not measured on equal terms", "2 comparisons"].map(|it| shown.find(it));
        assert!(places[0].is_some() && places[0] < places[1], "{shown}");
    }
}
