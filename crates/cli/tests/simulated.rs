//! Whole runs on the simulated host: the campaign, the records, the verdicts, and every action
//! failed in turn.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;

use crate::support::{Scene, assert_same, list, text, verdict};

mod answers;
mod claims;
mod duets;
mod hostile;
pub mod joined;
mod limits;
mod memory;
mod packed;
pub mod past;
mod reproduced;

/// Three contenders, of which one has settings, so that setting them and putting them back are
/// among the actions. Each difference is so large that it is settled as soon as it can be.
const PLAN: &str = r#"
    place = "sim"
    seed = 11

    [bed]
    devices = 2

    [[contender]]
    name = "plain"
    file_system = "ext4"

    [[contender]]
    name = "tuned"
    file_system = "xfs"
    queue = { scheduler = "none", nr_requests = 64 }
    sysctl = { "vm.dirty_ratio" = 5 }

    [[contender]]
    name = "other"
    file_system = "btrfs"

    [[workload]]
    name = "work"
    setup = "seq 9 > in"
    prepare = "true"
    command = ["true"]
    check = "true"
    cleanup = "true"

    [judgement]
    rounds = 8

    [sim]
    noise = 0.005
    speed = { tuned = 2.0, other = 0.5 }
"#;

fn run_plan(scene: &Scene, name: &str, plan: &str) -> Value {
    let file = scene.write(&format!("{name}.toml"), plan);
    let output = scene.typed(name);
    scene.fsverdict(&["run", &file, "--output", &output, "--json", "-"]).exits(0).json()
}

/// The trials of a run but for what the wall clock says: order, seeds, samples.
fn trials(document: &Value) -> Vec<[Value; 6]> {
    let keys = ["round", "workload", "contender", "position", "seed", "samples"];
    list(&document["trials"]).iter().map(|trial| keys.map(|key| trial[key].clone())).collect()
}

fn order(document: &Value) -> Vec<(u64, String)> {
    let trials = list(&document["trials"]).iter();
    trials.map(|t| (t["round"].as_u64().unwrap(), text(&t["contender"]).to_string())).collect()
}

/// So much noise that nothing is ever settled: every round is whole.
fn noisy(seed: u64) -> String {
    PLAN.replace("noise = 0.005", "noise = 3.0").replace("seed = 11", &format!("seed = {seed}"))
}

#[test]
fn the_same_seed_gives_the_same_trials_and_another_seed_others() {
    let scene = Scene::new();
    let [first, again, other] = [("first", 5), ("again", 5), ("other", 6)]
        .map(|(name, seed)| run_plan(&scene, name, &noisy(seed)));
    assert_eq!(trials(&first), trials(&again));
    assert_ne!(order(&first), order(&other));
    let seeds = |document: &Value| -> BTreeSet<u64> {
        list(&document["trials"]).iter().map(|trial| trial["seed"].as_u64().unwrap()).collect()
    };
    assert!(seeds(&first).is_disjoint(&seeds(&other)), "the work must differ too");
    assert_same(&scene.read("first/samples.csv"), &scene.read("again/samples.csv"));
}

#[test]
fn what_cpu_and_device_did_is_a_table_and_samples() {
    let scene = Scene::new();
    run_plan(&scene, "run", PLAN);
    let report = scene.read("run/report.md");
    let (_, table) = report.split_once("What CPU and device did meanwhile:").unwrap();
    let lines: Vec<&str> = table.trim_start().lines().take(5).collect();
    assert!(lines[0].contains("CPU user") && lines[0].contains("device busy"), "{table}");
    assert!(!lines[0].contains("cache hits"), "nobody asked for it: {table}");
    assert!(lines[2..].iter().all(|line| line.contains("10.0%")), "{table}");
    let samples = scene.read("run/samples.csv");
    for metric in ["cpu_user_share", "device_utilisation", "device_write_await_ns"] {
        assert!(samples.contains(&format!(",{metric},")), "{metric}");
    }
}

#[test]
fn every_round_holds_every_contender_once_in_an_order_of_its_own() {
    let scene = Scene::new();
    let document = run_plan(&scene, "run", &noisy(5));
    let mut rounds: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for (round, contender) in order(&document) {
        rounds.entry(round).or_default().push(contender);
    }
    assert_eq!(rounds.keys().copied().collect::<Vec<_>>(), (1..=8).collect::<Vec<_>>());
    for contenders in rounds.values() {
        let mut sorted = contenders.clone();
        sorted.sort();
        assert_eq!(sorted, ["other", "plain", "tuned"]);
    }
    let orders: BTreeSet<&Vec<String>> = rounds.values().collect();
    assert!(orders.len() >= 3, "{orders:?}");
    for trials in list(&document["trials"]).chunk_by(|a, b| a["round"] == b["round"]) {
        assert!(trials.iter().all(|trial| trial["seed"] == trials[0]["seed"]), "unequal work");
        let positions: Vec<_> = trials.iter().map(|trial| trial["position"].as_u64()).collect();
        assert_eq!(positions, [Some(1), Some(2), Some(3)]);
    }
}

#[test]
fn workloads_take_turns_within_a_round() {
    let scene = Scene::new();
    let second = "\n[[workload]]\nname = \"files\"\nsmall_files = { count = 1000 }\n[judgement]";
    let document = run_plan(&scene, "run", &noisy(5).replace("[judgement]", second));
    let workloads = list(&document["trials"]).chunk_by(|a, b| a["workload"] == b["workload"]);
    let first_of_round: BTreeSet<&str> = list(&document["trials"])
        .chunk_by(|a, b| a["round"] == b["round"])
        .map(|round| text(&round[0]["workload"]))
        .collect();
    assert_eq!(first_of_round, BTreeSet::from(["files", "work"]), "always in the same order");
    assert!(workloads.count() >= 8, "a round must hold all of its workloads");
    assert_eq!(list(&document["trials"]).len(), 8 * 2 * 3);
    let rates = ["create", "stat", "read", "rename", "delete"];
    for rate in rates {
        verdict(&document, "tuned", &format!("{rate}_rate"));
    }
}

#[test]
fn what_is_faster_is_found_faster_by_as_much_as_it_is() {
    let scene = Scene::new();
    let plan = PLAN.replace("tuned = 2.0, other = 0.5", "tuned = 1.3, other = 0.8");
    let document = run_plan(&scene, "run", &plan);
    for (contender, expected, truth) in [("tuned", "faster", 1.3), ("other", "slower", 0.8)] {
        let verdict = verdict(&document, contender, "wall_time");
        assert_eq!(verdict["verdict"], expected);
        assert_eq!(verdict["reference"], "plain");
        let [low, ratio, high] =
            ["low", "ratio", "high"].map(|key| verdict[key].as_f64().unwrap() / truth);
        assert!(low < ratio && ratio < high, "{verdict}");
        assert!((0.98..1.02).contains(&ratio), "{verdict}");
        assert!((0.85..1.15).contains(&low) && (0.85..1.15).contains(&high), "{verdict}");
    }
    assert_eq!(document["run"]["stop"], "settled");
    assert!(list(&document["trials"]).len() < 8 * 3, "it went on after all was settled");
}

#[test]
fn equals_are_never_faster_or_slower() {
    let scene = Scene::new();
    for seed in 1..=20 {
        let (seed, output) = (seed.to_string(), scene.typed(&format!("run{seed}")));
        let mut line = vec!["run", "--place", "sim", "--fs", "ext4,ext4,xfs", "--rounds", "8"];
        line.extend(["--seed", &seed, "--output", &output, "--json", "-", "--", "true"]);
        let document = scene.fsverdict(&line).exits(0).json();
        for contender in ["ext4#2", "xfs"] {
            let verdict = verdict(&document, contender, "wall_time");
            let said = text(&verdict["verdict"]);
            assert!(!["faster", "slower", "void"].contains(&said), "seed {seed}: {verdict}");
            assert!(verdict["rounds"].as_u64() >= Some(4), "{verdict}");
        }
    }
}

#[test]
fn a_run_that_is_resumed_measures_what_it_would_have_measured() {
    let scene = Scene::new();
    let whole = run_plan(&scene, "whole", &noisy(5));
    // Cut at the end of a round, within one, and at its very beginning.
    for keep in [15, 10, 0] {
        let name = format!("cut{keep}");
        run_plan(&scene, &name, &noisy(5));
        for number in keep + 1..=24 {
            fs::remove_dir_all(scene.path(&format!("{name}/trials/{number}"))).unwrap();
        }
        // A trial that was killed has a folder without a record.
        fs::create_dir(scene.path(&format!("{name}/trials/{}", keep + 1))).unwrap();
        let resumed = scene.fsverdict(&["run", "--resume", &scene.typed(&name), "--json", "-"]);
        let resumed = resumed.exits(0).json();
        assert_eq!(trials(&resumed), trials(&whole), "after {keep} trials");
        assert_eq!(resumed["verdicts"], whole["verdicts"]);
        assert_eq!(scene.records(&name).len(), 24);
    }
}

#[test]
fn resuming_a_finished_run_measures_nothing_more() {
    let scene = Scene::new();
    let whole = run_plan(&scene, "run", PLAN);
    let again = scene.fsverdict(&["run", "--resume", &scene.typed("run"), "--json", "-"]);
    let again = again.exits(0).json();
    assert_eq!(again["trials"], whole["trials"]);
    assert_eq!(again["run"]["stop"], whole["run"]["stop"]);
}

#[test]
fn a_budget_alone_ends_the_run() {
    let scene = Scene::new();
    let plan = noisy(5).replace("rounds = 8", "budget = \"1s\"");
    let document = run_plan(&scene, "run", &plan);
    assert_eq!(document["run"]["stop"], "budget");
}

/// A run of which one action failed.
struct Broken {
    number: u64,
    /// What the action was: `mkfs`; empty where none failed.
    action: String,
    stderr: String,
    document: Option<Value>,
}

impl Broken {
    fn run(scene: &Scene, number: u64, for_good: bool) -> Broken {
        let plan = format!("{PLAN}\nfail_at = {number}\nfail_for_good = {for_good}");
        let file = scene.write("plan.toml", &plan);
        let output = scene.typed("broken");
        let done = scene.fsverdict(&["run", &file, "--output", &output, "--json", "-"]);
        let measured = fs::remove_dir_all(output).is_ok();
        let mark = format!("simulated failure of action {number}: ");
        let found = done.stderr.split_once(&mark).map(|(_, rest)| {
            let end = |c: char| !(c.is_ascii_lowercase() || c == ' ');
            rest.split(end).next().unwrap_or_default().trim().to_string()
        });
        let action = found.unwrap_or_default();
        let code = i32::from(!action.is_empty());
        assert_eq!(done.code, Some(code), "action {number}: {}", done.stderr);
        assert!(!done.stderr.contains("panicked"), "{}", done.stderr);
        let document = (!done.stdout.is_empty()).then(|| done.json());
        assert_eq!(document.is_some(), measured, "a folder without a record: {}", done.stderr);
        Broken { number, action, stderr: done.stderr, document }
    }

    fn document(&self) -> &Value {
        self.document.as_ref().unwrap_or_else(|| panic!("no report: {}", self.stderr))
    }

    fn failed(&self) -> Vec<&Value> {
        let Some(document) = &self.document else { return Vec::new() };
        let trials = list(&document["trials"]).iter();
        trials.filter(|trial| trial["outcome"]["failed"].is_object()).collect()
    }

    /// The first failed trial, whose record must say which step it was and why.
    fn failure(&self) -> &Value {
        let trial = *self.failed().first().unwrap_or_else(|| panic!("{self:?}"));
        let failure = &trial["outcome"]["failed"];
        let error = text(&failure["error"]);
        let says = format!("simulated failure of action {}: {}", self.number, self.action);
        assert!(error.contains(&says), "{failure}");
        let step = match self.action.as_str() {
            "set" => "settings",
            "start trial" => "trial",
            "restore" => "restore settings",
            step => step,
        };
        assert_eq!(failure["step"], step, "{self:?}");
        assert_eq!(list(&trial["samples"]).len(), 0, "half a measurement is none");
        trial
    }

    fn says(&self, words: &str) {
        assert!(self.stderr.contains(words), "{self:?}");
    }

    /// The verdicts on those contenders are what they are without any failure.
    fn has_verdicts(&self, contenders: &[&str]) {
        for contender in contenders {
            let expected = if *contender == "tuned" { "faster" } else { "slower" };
            let verdict = verdict(self.document(), contender, "wall_time");
            assert_eq!(verdict["verdict"], expected, "{self:?}");
        }
    }
}

impl std::fmt::Debug for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "action {}, {:?}: {}", self.number, self.action, self.stderr)
    }
}

/// Fails every action of the first round in turn, and with `to_the_end` every seventh of those
/// after it, which are the same once more, and the last ones of the run. Something is left, and
/// said to be, exactly where what failed is one of `can_leave`. `check` hears of each run; gives
/// what the actions were.
fn fail_each(
    for_good: bool,
    to_the_end: bool,
    can_leave: [&str; 2],
    check: impl Fn(&Broken),
) -> BTreeSet<String> {
    let scene = Scene::new();
    let mut actions = BTreeSet::new();
    let mut fails = |number: u64| {
        let broken = Broken::run(&scene, number, for_good);
        if broken.action.is_empty() {
            assert!(number > 100, "only {number} actions");
            assert!(broken.failed().is_empty());
            broken.has_verdicts(&["tuned", "other"]);
            return false;
        }
        let left = broken.stderr.contains("left behind: ");
        assert_eq!(left, can_leave.contains(&broken.action.as_str()), "{broken:?}");
        check(&broken);
        actions.insert(broken.action);
        true
    };
    (1..=FIRST_ROUND).for_each(|number| assert!(fails(number)));
    if to_the_end {
        let mut last = FIRST_ROUND;
        while fails(last + 7) {
            last += 7;
        }
        let _ = (last + 1..last + 7).try_for_each(|number| fails(number).then_some(()));
    }
    actions
}

/// Making the bed takes four actions, a trial 16, and 22 with its settings.
const FIRST_ROUND: u64 = 4 + 16 + 22 + 16;

/// All kinds of actions that a run consists of.
const ACTIONS: [&str; 19] = [
    "attach",
    "check",
    "cleanup",
    "detach",
    "drop caches",
    "figures",
    "make image",
    "mkfs",
    "mount",
    "prepare",
    "remove image",
    "restore",
    "set",
    "settle",
    "setup",
    "start trial",
    "sync",
    "unmount",
    "work",
];

#[test]
fn any_one_action_may_fail() {
    // Whatever else fails once is undone after all.
    let can_leave = ["detach", "remove image"];
    let actions = fail_each(false, true, can_leave, |broken| match broken.action.as_str() {
        "make image" | "attach" => {
            assert!(broken.document.is_none(), "{broken:?}");
        }
        "detach" | "remove image" => {
            assert!(broken.failed().is_empty());
            broken.says("removing the bed: fsverdict clean tries again");
            broken.has_verdicts(&["tuned", "other"]);
        }
        // The next trial would run under settings that are not its own: the run ends.
        "restore" => {
            let trial = broken.failure();
            assert_eq!(trial["contender"], "tuned");
            let last = list(&broken.document()["trials"]).last();
            assert_eq!(last, Some(trial), "{broken:?}");
        }
        _ => {
            let trial = broken.failure();
            assert_eq!(trial["outcome"]["failed"].get("cleanup_errors"), None);
            assert_eq!(broken.failed().len(), 1, "{broken:?}");
            broken.has_verdicts(&["tuned", "other"]);
            broken.says("1 trial failed: ");
        }
    });
    assert_eq!(actions.iter().map(String::as_str).collect::<Vec<_>>(), ACTIONS);
}

#[test]
fn what_the_work_has_started_is_stopped_wherever_the_trial_fails() {
    // The steps of a trial, and whether cleanup follows where one fails.
    let steps = [
        ("mkfs", false),
        ("mount", false),
        ("setup", true),
        ("sync", true),
        ("unmount", false),
        ("drop caches", false),
        ("mount", false),
        ("prepare", true),
        ("sync", true),
        ("settle", true),
        ("work", true),
        ("check", true),
        ("figures", true),
    ];
    let scene = Scene::new();
    let runs = (1..60).map(|number| Broken::run(&scene, number, false));
    let trials = runs.skip_while(|broken| broken.action != "mkfs").take(steps.len());
    for ((step, cleaned), broken) in steps.into_iter().zip(trials) {
        assert_eq!(broken.action, step);
        let names = list(&broken.failure()["steps"]).iter().map(|step| text(&step["step"]));
        let expected: Vec<&str> = if cleaned { vec![step, "cleanup"] } else { vec![step] };
        let last: Vec<&str> = names.skip_while(|name| *name != step).collect();
        assert!(last.ends_with(&expected), "{step}: {last:?}");
    }
}

#[test]
fn a_commands_own_figures_are_judged_like_any_other() {
    let scene = Scene::new();
    let primary = "command = [\"true\"]\n    primary = [\"events_per_s\", \"event_latency\"]";
    let plan = PLAN.replace("command = [\"true\"]", primary);
    let document = run_plan(&scene, "run", &plan);
    for metric in ["events_per_s", "event_latency"] {
        assert_eq!(verdict(&document, "tuned", metric)["verdict"], "faster");
        assert_eq!(verdict(&document, "other", metric)["verdict"], "slower");
    }
    let samples = scene.read("run/samples.csv");
    assert!(samples.contains(",event_latency,") && samples.contains(",ns,lower"), "{samples}");
    assert!(scene.read("run/report.md").contains("| events_per_s "));
}

#[test]
fn a_contender_that_fails_for_good_is_given_up_and_the_others_go_on() {
    // The bed and the first round, in which every kind of action is done for every contender.
    let can_leave = ["restore", "unmount"];
    let actions = fail_each(true, false, can_leave, |broken| match broken.action.as_str() {
        "make image" | "attach" => assert!(broken.document.is_none(), "{broken:?}"),
        // What stays mounted or set would be part of the next measurement.
        "restore" | "unmount" => {
            let trial = broken.failure();
            let errors = list(&trial["outcome"]["failed"]["cleanup_errors"]);
            assert!(!errors.is_empty());
            broken.says("; and then: ");
            assert_eq!(list(&broken.document()["trials"]).last(), Some(trial), "{broken:?}");
        }
        _ => {
            let name = &broken.failure()["contender"];
            let failed = broken.failed();
            assert_eq!(failed.len(), 2, "{broken:?}");
            assert!(failed.iter().all(|trial| trial["contender"] == *name), "{broken:?}");
            if name != "plain" {
                let others: Vec<&str> =
                    ["tuned", "other"].into_iter().filter(|other| name != other).collect();
                broken.has_verdicts(&others);
            }
        }
    });
    let missing: Vec<_> = ACTIONS.into_iter().filter(|action| !actions.contains(*action)).collect();
    assert_eq!(missing, ["detach", "remove image"], "those come last");
}

#[test]
fn a_reference_that_fails_for_good_ends_the_run() {
    let scene = Scene::new();
    let found = (1..60)
        .map(|number| Broken::run(&scene, number, true))
        .find(|broken| broken.action == "mkfs" && broken.failure()["contender"] == "plain");
    let broken = found.unwrap();
    assert_eq!(broken.document()["run"]["stop"], "failed");
    broken.says("fewer than two contenders could be measured");
}

/// A study with more than the simulated machine has.
fn study(without: &str) -> String {
    let more = "\n[[workload]]\nname = \"job\"\nfio = { rw = \"read\", size = \"8G\" }\n";
    let study = "\n[study]\ntitle = \"A study\"\nmemory = \"2G\"\n[[published]]\n\
                 workload = \"job\"\ncolumn = \"IOPS\"\nbetter = \"higher\"\n\
                 printed = { plain = 1, tuned = 2 }\n";
    let sim = format!("[sim]\nmemory = \"32G\"\nlacks = [{without}]");
    PLAN.replace("[judgement]", &format!("{more}[judgement]")).replace("[sim]", &sim) + study
}

#[test]
fn a_study_runs_without_what_the_machine_has_not_and_lists_it() {
    let scene = Scene::new();
    let document = run_plan(&scene, "whole", &study(""));
    assert_eq!(list(&document["published"]).len(), 1);
    assert!(document["run"].get("left_out").is_none());
    let warned = list(&document["findings"]).iter().find(|it| it["audit"] == "A21").unwrap();
    assert_eq!((text(&warned["workload"]), text(&warned["severity"])), ("job", "warning"));

    let document = run_plan(&scene, "part", &study("\"ext4\", \"fio\""));
    let left_out = list(&document["run"]["left_out"]).iter();
    let left_out: Vec<_> = left_out.map(|it| (text(&it["what"]), text(&it["name"]))).collect();
    assert_eq!(left_out, [("contender", "plain"), ("workload", "job")]);
    assert!(list(&document["verdicts"]).iter().all(|it| it["reference"] == "tuned"));
    assert!(list(&document["trials"]).iter().all(|it| it["workload"] == "work"));
    let report = scene.read("part/report.md");
    let said = "- contender plain: the simulated machine has no ext4; the others are compared \
                with tuned\n- workload job: the simulated machine has no fio\n";
    assert!(report.contains(said), "{report}");
    let again = scene.run("run part/plan.toml --output again --json -").exits(0);
    assert_eq!(trials(&again.json()), trials(&document), "what is left is a plan of its own");
}

#[test]
fn a_study_of_which_too_little_is_left_is_refused_and_so_is_a_plan_of_ones_own_for_anything() {
    let scene = Scene::new();
    scene.write("little.toml", &study("\"ext4\", \"xfs\""));
    let done = scene.run("run little.toml --output little").exits(1);
    done.says("left out: contender plain:").says("too little of the study can run here");
    assert!(!scene.path("little").exists());
    let own = study("\"ext4\"");
    let (own, _) = own.split_once("[study]").unwrap();
    scene.write("own.toml", own);
    let done = scene.run("run own.toml --output own").exits(1);
    done.says("contender \"plain\": the simulated machine has no ext4");
    assert!(!scene.path("own").exists());
}

#[test]
fn what_a_study_judges_is_measured() {
    let scene = Scene::new();
    let output = scene.typed("run");
    let line =
        format!("run --study block-volume --place sim --rounds 4 --output {output} --json -");
    let document = scene.run(&line).exits(0).json();
    let judged = |it: &&Value| text(&it["metric"]) == "bandwidth" && it["ratio"].is_f64();
    assert_eq!(list(&document["verdicts"]).iter().filter(judged).count(), 9 * 3, "dd, upload");
    let published: Vec<_> = list(&document["published"]).iter().map(|it| &it["column"]).collect();
    assert_eq!(published.len(), 3, "XFS's uploads: {published:?}");
    let report = scene.read("run/report.md");
    assert!(
        report.contains("\n| dd, write 4K: ext4 is faster than XFS, on the whole (dd)"),
        "{report}"
    );
    assert!(report.contains("\n- bed: loop, 20GiB\n- fsverdict "), "{report}");
}

#[test]
fn uploads_need_room_and_a_link() {
    let scene = Scene::new();
    let done = scene.run("run upload --place sim --size 1G").exits(2);
    done.says("workload \"upload\" needs a bed of 5G, this one has 1G: give it --size 5G");
    let document = scene.run("run upload --place sim --rounds 4 --output run --json -").exits(0);
    assert_eq!(list(&document.json()["verdicts"]).len(), 2);
    let plan = include_str!("../../../plans/upload.toml");
    let study = "[study]\ntitle = \"Uploads\"\n[sim]\nlacks = [\"link\"]\n";
    scene.write("study.toml", &format!("{plan}\n{study}"));
    let done = scene.run("run study.toml --place sim --output lacking").exits(1);
    done.says("left out: workload upload: the simulated machine has no link");
}

#[test]
fn arms_take_part_in_every_round_and_have_no_verdict() {
    let scene = Scene::new();
    let plan = r#"
        place = "sim"
        seed = 3
        [sim]
        noise = 0.002
        speed = { plain = 0.98, other = 0.98, "plain again" = 0.98, "raw device" = 1.0 }
        [judgement]
        rounds = 8
        arms = ["duplicate", "raw"]
        [[contender]]
        name = "plain"
        file_system = "ext4"
        [[contender]]
        name = "other"
        file_system = "xfs"
        [[workload]]
        name = "write"
        fio = { rw = "randwrite" }
        "#;
    let document = run_plan(&scene, "run", plan);
    let rounds = order(&document).last().unwrap().0;
    for arm in ["plain again", "raw device"] {
        let trials = order(&document).iter().filter(|(_, name)| name == arm).count();
        assert_eq!(trials as u64, rounds);
    }
    let verdicts = list(&document["verdicts"]);
    assert_eq!(verdicts.len(), 1);
    assert_eq!(verdicts[0]["contender"], "other");
    let audits: Vec<&str> =
        list(&document["findings"]).iter().map(|finding| text(&finding["audit"])).collect();
    assert_eq!(audits, ["DeviceBound"]);
}

#[test]
fn an_arm_that_can_not_be_is_refused() {
    let scene = Scene::new();
    let refused = |more: &str, says: &str| {
        let plan = format!("{PLAN}\n{more}").replace("rounds = 8", "rounds = 8\narms = [\"raw\"]");
        let file = scene.write("plan.toml", &plan);
        scene.fsverdict(&["run", &file]).exits(2).says(says);
    };
    refused("", "arm raw needs a fio workload");
    let job = "[[workload]]\nname = \"job\"\nfio = \"some/job.fio\"";
    refused(job, "arm raw needs each fio job as options");
}

/// Twelve contenders: the reference, ten that are some 5% faster, so that whether it matters stays
/// open, and one that is far better than all of them.
fn crowd(judgement: &str) -> String {
    let names: Vec<String> = (0..12).map(|number| format!("c{number}")).collect();
    let contenders: String = names
        .iter()
        .map(|name| format!("[[contender]]\nname = \"{name}\"\nfile_system = \"ext4\"\n"))
        .collect();
    let speed = |(number, name): (usize, &String)| match number {
        0 => format!("{name} = 1.0"),
        7 => format!("{name} = 1.8"),
        _ => format!("{name} = 1.05"),
    };
    let speeds: Vec<String> = names.iter().enumerate().map(speed).collect();
    format!(
        "place = \"sim\"\nseed = 3\n{contenders}\
         [[workload]]\nname = \"work\"\ncommand = [\"true\"]\n\
         [sim]\nnoise = 0.02\nspeed = {{ {} }}\n[judgement]\nrounds = 16\n{judgement}\n",
        speeds.join(", ")
    )
}

#[test]
fn a_race_spends_no_trials_on_the_hopeless_and_keeps_the_best() {
    let scene = Scene::new();
    let [all, race] = [("all", ""), ("race", "race = true")]
        .map(|(name, judgement)| run_plan(&scene, name, &crowd(judgement)));
    let count = |document: &Value| list(&document["trials"]).len();
    println!("{} trials, {} in a race", count(&all), count(&race));
    assert!(count(&race) * 3 < count(&all) * 2, "{} of {}", count(&race), count(&all));
    for document in [&all, &race] {
        let best = verdict(document, "c7", "wall_time");
        assert_eq!(best["verdict"], "faster");
        assert!(best.get("beaten_by").is_none(), "{best}");
    }
    assert_eq!(race["run"]["stop"], "race");
    let beaten = verdict(&race, "c3", "wall_time");
    assert_eq!(beaten["beaten_by"], "c7");
    assert!(beaten["rounds"].as_u64() < Some(16), "{beaten}");
    assert!(["undecided", "faster-size-open"].contains(&text(&beaten["verdict"])), "{beaten}");
    let report = scene.read("race/report.md");
    assert!(report.contains("It gets no more trials: c7 beats it by more than 5%."), "{report}");
    // The first rounds are the same trials: intervals know nothing of the race.
    let first = |document: &Value| order(document).into_iter().take(48).collect::<Vec<_>>();
    assert_eq!(first(&all), first(&race));
}

#[test]
fn pooled_intervals_keep_everyone_in_every_round() {
    let scene = Scene::new();
    let noise = |judgement: &str| crowd(judgement).replace("seed = 3", "seed = 4");
    let pooled = run_plan(&scene, "pooled", &noise("interval = \"pooled\""));
    let paired = run_plan(&scene, "paired", &noise(""));
    let mut rounds: BTreeMap<u64, usize> = BTreeMap::new();
    order(&pooled).into_iter().for_each(|(round, _)| *rounds.entry(round).or_default() += 1);
    assert!(rounds.values().all(|count| *count == 12), "{rounds:?}");
    let width = |document: &Value| {
        let of = |it: &Value| (it["high"].as_f64().unwrap() / it["low"].as_f64().unwrap()).ln();
        list(&document["verdicts"]).iter().map(of).sum::<f64>()
    };
    assert!(width(&pooled) < 0.8 * width(&paired), "{} {}", width(&pooled), width(&paired));
}
