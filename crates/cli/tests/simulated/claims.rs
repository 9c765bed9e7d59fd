//! Claims of a plan: refused where they are of nothing, answered by the run, a gate for CI.

use super::run_plan;
use crate::support::{Scene, list, one_line, text};

const PLAN: &str = r#"
    place = "sim"
    seed = 11

    [[contender]]
    name = "plain"
    file_system = "ext4"

    [[contender]]
    name = "tuned"
    file_system = "xfs"

    [[contender]]
    name = "same"
    file_system = "ext4"

    [[contender]]
    name = "cached"
    file_system = "btrfs"

    [[workload]]
    name = "work"
    command = ["true"]

    [judgement]
    rounds = 6

    [sim]
    noise = 0.005
    speed = { tuned = 1.5, same = 0.98, cached = 2.0 }
"#;

/// A claim of `contender` at the plan's one work.
fn claim(name: &str, contender: &str, size: &str) -> String {
    format!(
        "\n[[claim]]\ntext = \"{name}\"\ncontender = \"{contender}\"\nworkload = \"work\"\n{size}\n"
    )
}

/// One claim for each answer, which is its text.
fn claims() -> String {
    [
        claim("holds", "tuned", "is = \"better\""),
        claim("holds-in-direction", "tuned", "at_least = 3"),
        claim("does-not-hold", "tuned", "is = \"worse\""),
        claim("too-small-to-matter", "same", "is = \"worse\""),
        claim("undecided", "same", "at_least = 0.98"),
        claim("measured-something-else", "cached", "is = \"better\""),
        "\n[[claim]]\ntext = \"not-measurable-here\"\nnot_measurable = \"no work does so\"\n"
            .into(),
    ]
    .concat()
}

/// Makes every trial of `contender` one that began with warm caches.
fn warm(scene: &Scene, contender: &str) {
    for mut record in scene.records("run").into_iter().filter(|it| it["contender"] == contender) {
        record["caches"] = serde_json::json!([{
            "dirty_bytes_before": 0, "cached_bytes_before": 0, "cached_bytes_after": 0,
            "dropped": false
        }]);
        scene.write(&format!("run/trials/{}/record.json", record["number"]), &record.to_string());
    }
}

#[test]
fn a_run_gives_each_of_the_seven_answers() {
    let scene = Scene::new();
    run_plan(&scene, "run", &format!("{PLAN}{}", claims()));
    warm(&scene, "cached");
    let document = scene.run("report run --format json").exits(0).json();
    let answered = list(&document["claims"]);
    assert_eq!(answered.len(), 7);
    for it in answered {
        assert_eq!(it["answer"], it["text"], "{it}");
    }
    assert!(text(&answered[5]["why"]).starts_with("A7: the caches could not be dropped"));
    let counted = "1 of 7 claims holds, 1 in direction, 1 does not, in 1 the difference is \
                   too small to matter";
    for format in ["text", "markdown", "html"] {
        let shown = scene.run(&format!("report run --format {format}")).exits(0).stdout;
        let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        let (tally, answer) = (flat.find(counted).unwrap(), flat.find("Against plain").unwrap());
        assert!(tally < answer, "the claims lead in {format}");
        assert!(shown.contains("not-measurable-here"), "{format}");
    }
    let details = scene.run("report run -v").exits(0).stdout;
    assert!(details.contains("\nClaims\n"), "{details}");
}

#[test]
fn a_claim_that_does_not_hold_shuts_the_gate() {
    let scene = Scene::new();
    run_plan(&scene, "run", &format!("{PLAN}{}", claim("costs little", "same", "at_least = 0.9")));
    scene.run("report run --fail-on claim,undecided").exits(0);
    scene.write("other.toml", &claim("is slow", "tuned", "is = \"worse\""));
    let done = scene.run("report run --claims other.toml --fail-on claim").exits(4);
    done.says("fails: does not hold: is slow");
    scene.run("report run --claims other.toml").exits(0);
    scene.run("report run --claims other.toml --fail-on undecided").exits(0);
    scene.write("gone.toml", &claim("of nobody", "zfs", "is = \"better\""));
    let gone = scene.run("report run --claims gone.toml --fail-on claim,undecided").exits(4);
    gone.says("fails: not measurable here: of nobody");
    scene.write("none.toml", PLAN);
    scene.run("report run --claims none.toml").exits(2).says("none.toml claims nothing");
    let unknown = scene.run("report run --claims cloud-disc").exits(2);
    unknown
        .says("no study, no plan and no file is called \"cloud-disc\"; did you mean cloud-disk?");
    run_plan(&scene, "bare", PLAN);
    scene.run("report run bare --claims other.toml").exits(2).says("--claims answers for one run");
    scene.run("report bare --fail-on claim").exits(2).says("--fail-on needs claims");
}

/// The baseline's claims, whatever the run's own plan claims.
#[test]
fn compare_answers_the_claims_of_the_baseline_by_both_runs() {
    let scene = Scene::new();
    let claimed = |plan: &str, least: &str| {
        let fast = claim("is fast", "tuned", least);
        format!("{plan}{fast}{}", claim("is as good", "same", "at_least = 0.9"))
    };
    run_plan(&scene, "before", &claimed(PLAN, "at_least = 1.3"));
    let slowed = PLAN.replace("seed = 11", "seed = 12").replace("tuned = 1.5", "tuned = 1.2");
    run_plan(&scene, "after", &claimed(&slowed, "at_least = 1.1"));
    scene.run("compare before after --fail-on failed").exits(0);
    let fails = "fails: “is fast”: holds in the baseline, holds in direction now: the interval ex";
    let done = scene.run("compare before after --fail-on claim").exits(4).says(fails);
    let says = "1 of 2 claims is refuted now; the baseline did not refute it.";
    assert!(one_line(&done.stdout).contains(says), "{}", done.stdout);
    let listed = "The baseline's claims\n  “is fast”: holds in the baseline, holds in dir";
    assert!(done.stdout.contains(listed), "{}", done.stdout);
    assert!(done.stdout.contains("\n  1 claim has the answer that it had\n"), "{}", done.stdout);
    let document = scene.run("compare before after --format json").exits(4).json();
    let [fast, same] = list(&document["claims"]) else { panic!("{document:#}") };
    assert_eq!((&fast["refuted"], &same["refuted"]), (&true.into(), &false.into()));
    assert_eq!((&same["baseline"], &same["run"]), (&"holds".into(), &"holds".into()));
    // Refuted before and after, it is no news.
    let slow = |seed: &str| slowed.replace("seed = 12", seed);
    run_plan(&scene, "slow", &claimed(&slow("seed = 14"), "at_least = 1.3"));
    run_plan(&scene, "slow-again", &claimed(&slow("seed = 15"), "at_least = 1.3"));
    let done = scene.run("compare slow slow-again --fail-on claim").exits(0);
    assert!(done.stdout.contains("\n  2 claims have the answer that they had\n"));
    // Nobody is there any more of whom it is claimed.
    let gone = PLAN.replace("name = \"same\"", "name = \"other\"").replace("same = 0.98, ", "");
    run_plan(&scene, "gone", &gone.replace("seed = 11", "seed = 13"));
    scene.run("compare before gone --fail-on claim").exits(0);
    let gone = scene.run("compare before gone --fail-on undecided").exits(4);
    gone.says("fails: “is as good”: holds in the baseline, not measurable here now: ");
    // Without claims it would be a gate that is never shut.
    run_plan(&scene, "bare", PLAN);
    scene.run("compare bare after --fail-on claim").exits(2).says("needs claims, and the baseline");
    let anew = scene.run("compare before after --rerun --fail-on claim").exits(2);
    anew.says("measured anew, there is no earlier answer");
}

#[test]
fn a_claim_is_of_the_reference_it_was_written_against() {
    let scene = Scene::new();
    scene.write("plan.toml", &format!("{PLAN}{}", claim("as fast", "same", "at_least = 0.9")));
    let of = |options: &str| {
        let line = format!("run plan.toml {options} --json -");
        scene.run(&line).exits(0).json()["claims"][0].clone()
    };
    let mut other = of("--reference tuned --output other");
    assert_eq!(other["against"], "plain");
    // Against the run's own reference, which is half as fast again, it is 0.65.
    let ratio = other["measured"][0].as_f64().unwrap();
    assert!((0.9..1.1).contains(&ratio), "{other:#}");
    scene.write("claim.toml", &format!("{PLAN}{}", claim("as fast", "same", "at_least = 0.9")));
    let anew = scene.run("report other --claims claim.toml --format json").exits(0).json();
    // Of another plan's claim the metric is named, which the run may not be judged by.
    other["metric"] = "wall_time".into();
    assert_eq!(anew["claims"][0], other);
}

#[test]
fn a_claim_of_what_is_not_there_is_refused_before_the_first_trial() {
    let scene = Scene::new();
    let refused = |claim: &str, says: &str| {
        scene.write("plan.toml", &format!("{PLAN}{claim}"));
        scene.run("run plan.toml --output run").exits(2).says(says);
        assert!(!scene.path("run").exists());
    };
    refused(
        &claim("x", "tund", "is = \"better\""),
        "contender \"tund\", which is not in the plan; did",
    );
    let other = claim("x", "tuned", "is = \"better\"").replace("\"work\"", "\"wrk\"");
    refused(&other, "workload \"wrk\", which is not in the plan; did you mean work?");
    refused(
        &claim("x", "tuned", "is = \"better\"\nmetric = \"wal_time\""),
        "no metric \"wal_time\"",
    );
    refused(&claim("x", "tuned", ""), "must say once how the two compare");
    // What the command line leaves out is said, and the rest is run.
    scene.write("plan.toml", &format!("{PLAN}{}", claims()));
    let done = scene.run("run plan.toml --fs ext4,xfs --output less --json -").exits(0);
    let document = done.json();
    let whys: Vec<_> = list(&document["claims"]).iter().map(|it| text(&it["why"])).collect();
    assert_eq!(whys[0], "the run has no contender tuned");
}

/// Two builds as two works of one run, as docs/ci.md has it.
#[test]
fn the_recipe_for_ones_own_code_is_a_gate() {
    let page = include_str!("../../../../docs/ci.md");
    let plan = page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let line = page.lines().find(|line| line.starts_with("fsverdict report gate")).unwrap();
    let line = line.strip_prefix("fsverdict ").unwrap();
    let scene = Scene::new();
    let plan = format!("place = \"sim\"\nseed = 3\n{plan}");
    run_plan(&scene, "gate", &plan);
    scene.run(line).exits(0);
    let scene = Scene::new();
    run_plan(&scene, "gate", &plan.replace("at_least = 0.95", "at_least = 1.2"));
    scene.run(line).exits(4);
}
