//! What is made of finished runs: `compare` and `advise`.

use serde_json::Value;

use super::run_plan;
use crate::support::{Done, Scene, list, one_line, text};

const PLAN: &str = r#"
    place = "sim"
    seed = 11

    [[contender]]
    name = "plain"
    file_system = "ext4"

    [[contender]]
    name = "tuned"
    file_system = "xfs"

    [[workload]]
    name = "work"
    command = ["true"]

    [judgement]
    rounds = 6
    reference = "plain"

    [sim]
    noise = 0.01
    speed = { tuned = 1.5 }
"#;

fn seeded(plan: &str, seed: u64) -> String {
    plan.replace("seed = 11", &format!("seed = {seed}"))
}

/// The plan in which what has been changed is a fifth slower.
fn slowed() -> String {
    seeded(PLAN, 12).replace("tuned = 1.5", "tuned = 1.2")
}

fn compare(scene: &Scene, options: &str) -> Done {
    scene.run(&format!("compare before after {options}"))
}

#[test]
fn the_same_again_is_never_worse() {
    let scene = Scene::new();
    for seed in 1..=8 {
        let [before, after] = [format!("before{seed}"), format!("after{seed}")];
        run_plan(&scene, &before, &seeded(PLAN, seed));
        run_plan(&scene, &after, &seeded(PLAN, seed + 100));
        let done = scene.run(&format!("compare {before} {after} --format json")).exits(0);
        let document = done.json();
        let change = &list(&document["changes"])[0];
        assert_ne!(change["verdict"], "slower");
        assert!(change["low"].as_f64() < change["high"].as_f64(), "{change}");
    }
}

#[test]
fn what_has_become_slower_ends_with_status_4() {
    let scene = Scene::new();
    run_plan(&scene, "before", PLAN);
    run_plan(&scene, "after", &slowed());
    let done = compare(&scene, "").exits(4);
    let says = "wall_time: relative to plain, tuned is slower than before, 0.8";
    assert!(done.stdout.contains(says), "{}", done.stdout);
    let itself = "The others themselves\n  work, wall_time: tuned ";
    assert!(done.stdout.contains(itself), "{}", done.stdout);
    assert!(done.stdout.contains("Measured apart: only ratios to plain"), "{}", done.stdout);
    let document = compare(&scene, "--format json").exits(4).json();
    let change = &list(&document["changes"])[0];
    let [low, high] = ["low", "high"].map(|key| change[key].as_f64().unwrap());
    assert!(low < 0.8 && 0.8 < high, "{change}");
    assert_eq!(document["measured"], "apart");
    // Looked at from the other side it has become faster.
    scene.run("compare after before").exits(0);
    let markdown = compare(&scene, "--format markdown --metric wall_time,cpu_time").exits(4);
    assert!(markdown.stdout.contains("| cpu_time "), "{}", markdown.stdout);
    // A margin of a half makes it a trifle.
    compare(&scene, "--margin 50%").exits(0);
    compare(&scene, "--margin 50% --fail-on any").exits(4);
}

/// Makes every trial of `contender` in the run `after` one that failed.
fn fail(scene: &Scene, contender: &str) {
    let records = scene.records("after");
    for record in records.iter().filter(|it| it["contender"] == contender) {
        let mut failed = record.clone();
        let failure = serde_json::json!({"step": "mount", "error": "mount: wrong fs type"});
        failed["outcome"] = serde_json::json!({ "failed": failure });
        failed["samples"] = Value::Array(Vec::new());
        let file = format!("after/trials/{}/record.json", record["number"]);
        scene.write(&file, &failed.to_string());
    }
}

#[test]
fn who_failed_does_not_pass_the_gate() {
    let scene = Scene::new();
    let third = "[[contender]]\n    name = \"third\"\n    file_system = \"btrfs\"\n\n    [[work";
    let plan = PLAN.replace("[[work", third);
    run_plan(&scene, "before", &plan);
    run_plan(&scene, "after", &seeded(&plan, 12));
    compare(&scene, "").exits(0);
    fail(&scene, "third");
    let says = "trials failed in the run: mount: wrong fs type";
    let done = compare(&scene, "").exits(1).says("fails: work, third: ").says(says);
    assert!(done.stdout.contains("Not measured\n  work, third: "), "{}", done.stdout);
    assert!(done.stdout.contains(says), "{}", done.stdout);
    compare(&scene, "--fail-on slower").exits(0);
    compare(&scene, "--fail-on slower,any,failed").exits(1);
}

#[test]
fn what_is_open_passes_only_where_that_is_allowed_and_says_what_it_would_miss() {
    let scene = Scene::new();
    let noisy = PLAN.replace("noise = 0.01", "noise = 0.2");
    run_plan(&scene, "before", &noisy);
    run_plan(&scene, "after", &seeded(&noisy, 12));
    let done = compare(&scene, "").exits(0);
    let sentence = "this pair of runs would miss a regression of 10% in 9";
    assert!(done.stdout.contains(sentence), "{}", done.stdout);
    let needed = " rounds each would show them equivalent";
    assert!(one_line(&done.stdout).contains(needed), "{}", done.stdout);
    // The answer comes first, with what would not have been seen.
    let answer = "Passes (slower, failed, lost, terms). after against before 1 of 1 is undecided. \
                  plain itself is ";
    assert!(one_line(&done.stdout).starts_with(answer), "{}", done.stdout);
    let missed = "At 1 of 1 these runs would probably have missed a regression of 10%.";
    assert!(one_line(&done.stdout).contains(missed), "{}", done.stdout);
    let warning = "warning: at 1 of 1 figures a regression of 10% would probably have been missed";
    let done = done.says(warning);
    let possible = "fails: work, wall_time: tuned may be worse by 10% or more (";
    compare(&scene, "--fail-on slower,possible").exits(4).says(possible);
    let reference = "The reference itself\n  work, wall_time: plain ";
    assert!(done.stdout.contains(reference), "{}", done.stdout);
    compare(&scene, "--fail-on undecided").exits(4).says("no verdict on tuned");
    // A verdict that says more is no miss, whatever the chance of one was.
    run_plan(&scene, "calm", PLAN);
    run_plan(&scene, "again", PLAN);
    let same = scene.run("compare calm again --regression 6%").exits(0);
    let answer = "1 of 1 is within 5% of before relative to plain. Measured apart";
    assert!(one_line(&same.stdout).contains(answer), "{}", same.stdout);
    let same = scene.run("compare calm again --regression 6% --format json").exits(0).json();
    assert!(list(&same["changes"])[0]["missed"].as_f64() > Some(0.5), "{same}");
    compare(&scene, "--regression 3%").exits(2).says("is a trifle at a margin of 5%");
    compare(&scene, "--regression 400%").exits(2).says("a percentage");
    let document = compare(&scene, "--regression 95% --format json").exits(0).json();
    let change = &list(&document["changes"])[0];
    assert!(change["missed"].as_f64() < Some(0.5), "{change}");
    assert_eq!(document["regression"], "95%");
}

#[test]
fn another_machine_is_compared_only_where_that_is_meant() {
    let scene = Scene::new();
    run_plan(&scene, "before", PLAN);
    run_plan(&scene, "after", &seeded(PLAN, 12));
    for (name, processor) in [("before", "Xeon"), ("after", "EPYC")] {
        let mut run = scene.read_json(&format!("{name}/run.json"));
        run["host"]["processor"] = processor.into();
        scene.write(&format!("{name}/run.json"), &run.to_string());
    }
    let says = "processor is Xeon in the baseline and EPYC in the run; give --across-machines";
    compare(&scene, "").exits(2).says(says);
    let done = compare(&scene, "--across-machines").exits(0);
    let says = "processor: Xeon in the baseline, EPYC in the run";
    assert!(done.stdout.contains(says), "{}", done.stdout);
}

#[test]
fn a_slower_machine_is_no_slower_contender() {
    let scene = Scene::new();
    let plan = |factor: f64| {
        let speeds = format!("speed = {{ plain = {factor}, tuned = {} }}", 1.5 * factor);
        PLAN.replace("speed = { tuned = 1.5 }", &speeds).replace("0.01", "0.001")
    };
    run_plan(&scene, "before", &plan(1.0));
    // Of the simulated machine the speed is a setting: the record alone says what was measured.
    run_plan(&scene, "after", &seeded(&plan(0.5), 12));
    compare(&scene, "").exits(2).says("no contender \"plain\" with the run's settings");
    let plan = scene.read("after/plan.toml").replace("plain = 0.5", "plain = 1.0");
    scene.write("after/plan.toml", &plan);
    let done = compare(&scene, "").exits(0);
    assert!(done.stdout.contains("tuned is as before"), "{}", done.stdout);
    let says = "1 of 1 is within 5% of before relative to plain. plain itself is 0.50 times as \
                fast as before at 1 of 1 figures.";
    assert!(one_line(&done.stdout).contains(says), "{}", done.stdout);
    let done = compare(&scene, "--fail-on slower,reference").exits(4);
    done.says("fails: work, wall_time: plain ");
    scene.run("compare after before --fail-on reference").exits(0);
}

#[test]
fn only_like_is_compared_with_like() {
    let scene = Scene::new();
    run_plan(&scene, "before", PLAN);
    for (from, to, says) in [
        ("[\"true\"]", "[\"false\"]", "it is other work: work: command was [\"true\"]"),
        ("name = \"work\"", "name = \"play\"", "play: the baseline does not hold it"),
        ("\"tuned\"", "\"other\"", "work, other: the baseline does not hold it"),
        ("file_system = \"ext4\"", "file_system = \"ext3\"", "or give --rerun"),
        ("[judgement]", "[bed]\nsize = \"1G\"\n[judgement]", "the bed's size is 4G in the"),
    ] {
        let name = format!("after-{}", says.len());
        run_plan(&scene, &name, &PLAN.replace(from, to));
        scene.run(&format!("compare before {name}")).exits(2).says(says);
    }
    run_plan(&scene, "after", &PLAN.replace("\"xfs\"", "\"xfs\"\nmount = [\"noatime\"]"));
    let done = compare(&scene, "").exits(0);
    let says = "tuned: mount: nothing in the baseline, [\"noatime\"] in the run";
    assert!(done.stdout.contains(says), "{}", done.stdout);
    scene.run("compare before gone").exits(1).says("holds no run.json");
    compare(&scene, "--metric iops").exits(2).says("no run measured \"iops\"");
    let typo = compare(&scene, "--metric wal_time,cpu_time").exits(2);
    typo.says("no run measured \"wal_time\": did you mean wall_time?");
    scene.run("compare after after").exits(2).says("both are one run: after, started ");
}

/// Whoever changes the settings in question can't choose by what they are judged.
#[test]
fn the_change_does_not_set_its_own_margin() {
    let scene = Scene::new();
    run_plan(&scene, "before", PLAN);
    run_plan(&scene, "after", &slowed().replace("rounds = 6", "rounds = 6\nmargin = \"50%\""));
    let done = compare(&scene, "").exits(4);
    let says = "Judged by the baseline's plan: a margin of 5% (50% in the run's).";
    assert!(one_line(&done.stdout).contains(says), "{}", done.stdout);
    compare(&scene, "--margin 50%").exits(0);
    // Another figure to be judged by is no way out either.
    let other = "command = [\"true\"]\nprimary = [\"cpu_time\"]";
    run_plan(&scene, "other", &slowed().replace("command = [\"true\"]", other));
    scene.run("compare before other").exits(4).says("tuned is slower than before");
    let anew = scene.run("compare before after --rerun --output new --format json");
    assert_eq!(anew.exits(4).json()["margin"], "5%");
}

#[test]
fn what_disappears_does_not_pass_the_gate() {
    let scene = Scene::new();
    let third = "[[contender]]\n    name = \"third\"\n    file_system = \"btrfs\"\n\n    [[work";
    run_plan(&scene, "before", &PLAN.replace("[[work", third));
    run_plan(&scene, "after", &seeded(PLAN, 12));
    let done = compare(&scene, "").exits(4).says("fails: work, third: the run does not hold it");
    let answer = "Fails: work, third: the run does not hold it. after against before 1 of 2 is \
                  lost, 1 is within 5% of before relative to plain.";
    assert!(one_line(&done.stdout).starts_with(answer), "{}", done.stdout);
    let markdown = compare(&scene, "--format markdown").exits(4).stdout;
    let first = "# after against before\n\n**Fails: work, third: the run does not hold it.**\n";
    assert!(markdown.starts_with(first), "{markdown}");
    let gate = compare(&scene, "--format json").exits(4).json()["gate"].clone();
    assert_eq!((&gate["status"], list(&gate["fails"]).len()), (&4.into(), 1), "{gate}");
    assert_eq!(list(&gate["on"]), ["slower", "failed", "lost", "terms"]);
    compare(&scene, "--fail-on slower,failed").exits(0);
}

#[test]
fn speed_that_was_bought_with_the_journal_does_not_pass_the_gate() {
    let scene = Scene::new();
    let plan = PLAN.replace("\"xfs\"", "\"ext4\"");
    let bare = "\"tuned\"\n    mkfs = [\"-O\", \"^has_journal\"]";
    let faster = seeded(&plan, 12).replace("name = \"tuned\"", &format!("name = {bare}"));
    run_plan(&scene, "before", &plan);
    run_plan(&scene, "after", &faster.replace("tuned = 1.5", "tuned = 3.0"));
    let why = "fails: on other terms than before: tuned (^has_journal: without a journal ";
    let done = compare(&scene, "").exits(4).says(why);
    let says = "1 of 1 is better. But now on other terms than before: tuned (^has_journal";
    assert!(one_line(&done.stdout).contains(says), "{}", done.stdout);
    compare(&scene, "--fail-on slower,failed,lost").exits(0);
    let terms = compare(&scene, "--format json").exits(4).json()["terms"].clone();
    assert_eq!((list(&terms["now"]).len(), list(&terms["before"]).len()), (1, 0), "{terms}");
    let back = scene.run("compare after before --fail-on terms").exits(0).stdout;
    assert!(one_line(&back).contains("The baseline was on other terms: tuned (^has"), "{back}");
}

#[test]
fn anew_each_is_measured_against_what_it_was() {
    let scene = Scene::new();
    run_plan(&scene, "before", PLAN);
    run_plan(&scene, "after", &slowed().replace("\"xfs\"", "\"xfs\"\nmount = [\"noatime\"]"));
    let done = compare(&scene, "--rerun --output new --format json").exits(4);
    let document = done.json();
    let change = &list(&document["changes"])[0];
    assert_eq!(document["measured"], "together");
    assert_eq!(
        (text(&change["contender"]), text(&change["reference"])),
        ("tuned", "baseline:tuned")
    );
    assert_eq!(list(&document["changes"]).len(), 1, "plain has not changed");
    assert!(change["rounds"].as_u64() >= Some(4), "{change}");
    let records = scene.records("new/tuned");
    let names: Vec<&str> = records[..2].iter().map(|it| text(&it["contender"])).collect();
    assert!(names.contains(&"tuned") && names.contains(&"baseline:tuned"), "{names:?}");
    assert!(scene.read("new/tuned/report.md").contains("baseline:tuned"));
    // The same again is measured too, and said to be that.
    compare(&scene, "--rerun --output again").exits(4);
    let same = scene.run("compare before before --rerun --output same").exits(0);
    same.says("the machine against itself");
    assert_eq!(scene.read("same/tuned/plan.toml").matches("[[contender]]").count(), 2);
    compare(&scene, "--output x").exits(2).says("--rerun");
    scene.assert_nothing_left();
}

#[test]
fn a_gate_is_shut_where_too_little_was_measured_anew_or_nothing_compared() {
    let scene = Scene::new();
    run_plan(&scene, "before", PLAN);
    let few = PLAN.replace("rounds = 6", "rounds = 3");
    scene.write("few.toml", &few);
    scene.run("run few.toml --output few").exits(0);
    let done = scene.run("compare before few --rerun --output new").exits(1);
    done.says("are needed of each");
    scene.run("compare before few --rerun --output again --fail-on slower").exits(0);
    let other = PLAN.replace("[judgement]", &format!("{}\n[judgement]", other_work()));
    run_plan(&scene, "more", &other);
    scene.run("compare before more").exits(0);
    let done = scene.run("compare before more --fail-on undecided").exits(4);
    done.says("fails: other: the baseline does not hold it");
}

fn other_work() -> &'static str {
    "[[workload]]\nname = \"other\"\ncommand = [\"true\"]"
}

/// A use of its own: two wants, of which the contenders take one each.
fn purpose(writes: f64) -> String {
    format!(
        "name = \"mine\"\nneeds = [\"durability\"]\n[[workload]]\nname = \"a\"\ncommand = \"x\"\n\
         [[workload]]\nname = \"b\"\ncommand = \"y\"\n[[want]]\nwhat = \"a's time\"\n\
         workload = \"a\"\nmetric = \"wall_time\"\nweight = 1\n[[want]]\nwhat = \"b's time\"\n\
         workload = \"b\"\nmetric = \"wall_time\"\nweight = {writes}\n"
    )
}

/// A run of two workloads; in b's records the contenders have exchanged their figures.
fn run_of_two(scene: &Scene) -> Value {
    let two = "[[workload]]\nname = \"b\"\ncommand = [\"true\"]\n\n    [judgement]";
    let plan = PLAN.replace("name = \"work\"", "name = \"a\"").replace("[judgement]", two);
    let plan = plan.replace("0.01", "0.003");
    let document = run_plan(scene, "run", &plan);
    for record in list(&document["trials"]).iter().filter(|it| it["workload"] == "b") {
        let other = match text(&record["contender"]) {
            "plain" => "tuned",
            _ => "plain",
        };
        let mut changed = record.clone();
        changed["contender"] = other.into();
        let file = format!("run/trials/{}/record.json", record["number"]);
        scene.write(&file, &changed.to_string());
    }
    document
}

#[test]
fn weights_flip_the_advice() {
    let scene = Scene::new();
    run_of_two(&scene);
    for (weight, best) in [(0.1, "tuned"), (10.0, "plain")] {
        let file = scene.write("use.toml", &purpose(weight));
        let done = scene.run(&format!("advise run --use {file} --format json")).exits(0);
        let advice = done.json();
        assert_eq!(advice["answer"]["best"], best, "{}", advice["answer"]);
        let standing = &list(&advice["standings"])[0];
        assert_eq!(standing["contender"], best);
        assert!(standing["low"].as_f64() > Some(1.2), "{standing}");
        let turn = &list(&advice["turns"])[0];
        assert_ne!(turn["contender"], best);
        let done = scene.run(&format!("advise run --use {file}")).exits(0);
        let says = format!("{best} is the best here for mine as the run “run” measured it.");
        assert!(done.stdout.contains(&says), "{}", done.stdout);
        assert!(done.stdout.contains("would lead if"), "{}", done.stdout);
    }
    // Weighed alike, what each has over the other cancels.
    let file = scene.write("use.toml", &purpose(1.0));
    let advice = scene.run(&format!("advise run --use {file} --format json")).exits(0).json();
    assert_eq!(list(&advice["answer"]["even"]).len(), 2, "{}", advice["answer"]);
}

#[test]
fn conditions_are_documented_or_measured_and_no_speed_makes_up_for_them() {
    let scene = Scene::new();
    run_of_two(&scene);
    let file = scene.write("use.toml", &purpose(0.1));
    let need = |features: &str| {
        let line = format!("advise run --use {file} --need {features} --format json");
        scene.run(&line).exits(0).json()
    };
    let advice = need("reflink");
    assert_eq!(advice["answer"]["only"], "tuned", "{advice}");
    let basis = |feature: &str| {
        let conditions = list(&advice["conditions"]).iter();
        let found = conditions.clone().find(|it| it["feature"] == feature);
        text(&found.unwrap()["basis"]).to_string()
    };
    assert_eq!(
        (basis("durability").as_str(), basis("reflink").as_str()),
        ("measured", "documented")
    );
    assert_eq!(need("snapshots")["answer"], "nobody");
    scene.run("advise run --for mail --need speed").exits(2).says("there are durability");
}

#[test]
fn what_the_run_left_open_is_listed_and_planned() {
    let scene = Scene::new();
    run_plan(&scene, "run", PLAN);
    let done = scene.run("advise run --for mail --plan mail.toml").exits(0);
    let before = scene.run("advise run --for mail").exits(0).stdout;
    let says = "fsverdict advise run --for mail --plan mail.toml";
    assert!(before.contains(says), "{before}");
    let says = "No advice on mail yet: the run “run” did not measure what decides: mails \
                delivered, each synced.";
    let flat = done.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains(says), "{}", done.stdout);
    assert!(flat.contains("mails delivered, each synced, weight 3"), "{}", done.stdout);
    let says = "Written: mail.toml. Now: fsverdict run mail.toml";
    assert!(flat.contains(says) && !flat.contains("--plan"), "{}", done.stdout);
    scene.run("run mail.toml --output mail").exits(0);
    let done = scene.run("advise mail --for mail").exits(0);
    assert!(done.stdout.contains("tuned is the best here for mail as"), "{}", done.stdout);
    assert!(!done.stdout.contains("Not measured"), "{}", done.stdout);
    let done = scene.run("advise mail --for containers --format markdown").exits(0);
    assert!(done.stdout.contains("did not measure what decides: layers"), "{}", done.stdout);
    let done = scene.run("advise mail --for web").exits(0);
    assert!(done.stdout.contains("by a weight of 4 of 6"), "{}", done.stdout);
    scene.run("advise mail --for games").exits(2).says("no use is called \"games\"");
    scene.run("advise mail").exits(2).says("--for <USE>");
    let file = scene.write("use.toml", &purpose(-1.0));
    scene.run(&format!("advise mail --use {file}")).exits(2).says("give it one above 0");
}

/// Names as long as people make them, and many of them.
fn wide_plan() -> String {
    let mut plan = "place = \"sim\"\nseed = 7\n".to_string();
    for name in ["ext4", "xfs, with a name that has many words", "btrfs-with-hyphens-in-it", "zfs"]
    {
        plan += &format!("[[contender]]\nname = \"{name}\"\nfile_system = \"ext4\"\n");
    }
    for name in ["copy the whole tree of sources that everybody has", "small files"] {
        let work = if name == "small files" { "small_files = {}" } else { "command = \"true\"" };
        plan += &format!("[[workload]]\nname = \"{name}\"\n{work}\n");
    }
    plan + "[judgement]\nrounds = 6\n[sim]\nspeed = { zfs = 0.5 }\n"
}

#[test]
fn a_terminal_of_80_columns_shows_all_of_it() {
    let scene = Scene::new();
    let file = scene.write("plan.toml", &wide_plan());
    let ran = scene.fsverdict(&["run", &file, "--output", "run", "-v"]).exits(0).stdout;
    let short = scene.run("report run").exits(0).stdout;
    let long = scene.run("report run -v").exits(0).stdout;
    for text in [&ran, &short, &long] {
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
    let is_answer = |line: &&str| line.starts_with("  Against ext4, ");
    let at = short.lines().position(|line| is_answer(&line)).unwrap();
    assert!(at < 4, "the answer comes first:\n{short}");
    let answer = short.lines().nth(at).unwrap();
    assert!(ran.contains(answer) && long.contains("│metric    contender "), "{ran}");
    let end: Vec<&str> = ran.trim_end().lines().rev().take(45).collect();
    assert!(end.contains(&answer), "the answer is not among the last lines:\n{ran}");
    assert!(end[0].starts_with("Report: "), "{}", end[0]);
}

#[test]
fn colours_are_as_they_are_wanted_and_repeat_what_signs_say() {
    let scene = Scene::new();
    run_plan(&scene, "run", PLAN);
    let plain = scene.run("report run").exits(0).stdout;
    assert!(!plain.contains('\u{1b}') && plain.contains("▲"), "{plain}");
    let coloured = scene.run("report run --color always").exits(0).stdout;
    assert!(coloured.contains("\u{1b}[1;36m▲"), "{coloured}");
    let mut bare = String::new();
    for part in coloured.split('\u{1b}') {
        let text = part.split_once('m').filter(|_| part.starts_with('['));
        bare += text.map_or(part, |(_, text)| text);
    }
    assert_eq!(bare, plain);
    assert_eq!(scene.run("report run --color never").exits(0).stdout, plain);
    scene.run("report run --color pink").exits(2).says("pink");
}

#[test]
fn every_format_says_alike_why_one_is_slower() {
    let scene = Scene::new();
    run_plan(&scene, "run", PLAN);
    let report = |format: &str| {
        let text = scene.run(&format!("report run --format {format}")).exits(0).stdout;
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let document = scene.run("report run --format json").exits(0).json();
    let [cause] = list(&document["causes"]) else { panic!("{}", document["causes"]) };
    assert_eq!((text(&cause["slower"]), text(&cause["cost"])), ("plain", "cpu_time"));
    let ratio = cause["ratio"].as_f64().unwrap();
    let [low, high] = [0, 1].map(|end| cause["interval"][end].as_f64().unwrap());
    assert!(1.0 < low && low < ratio && ratio < high, "{cause}");
    for format in ["text", "markdown", "html"] {
        let said = report(format);
        let from = said.find("Probably why: plain takes ").unwrap_or_else(|| panic!("{said}"));
        let clause: String = said[from..].chars().take(100).collect();
        assert!(clause.contains("µs of CPU time for each operation, tuned "), "{clause}");
    }
    let equal = PLAN.replace("tuned = 1.5", "tuned = 1.0");
    run_plan(&scene, "equal", &equal);
    let document = scene.run("report equal --format json").exits(0).json();
    assert!(document.get("causes").is_none(), "{document}");
}
