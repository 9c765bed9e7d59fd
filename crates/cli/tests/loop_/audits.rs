//! Measurements that deserve a finding, and get it.

use serde_json::Value;

use super::{of, run_plan};
use crate::support::{Scene, list, sample, text, verdict};

/// The findings of an audit.
fn found<'a>(document: &'a Value, audit: &str) -> Vec<&'a Value> {
    list(&document["findings"]).iter().filter(|it| it["audit"] == audit).collect()
}

/// Two alike on a small bed, with more of the plan.
fn alike(scene: &Scene, more: &str) -> Value {
    let contender =
        |name: &str| format!("[[contender]]\nname = \"{name}\"\nfile_system = \"ext4\"\n");
    let plan = format!("bed.size = \"64M\"\n{}{}{more}", contender("one"), contender("other"));
    run_plan(scene, &plan).json()
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_tie_at_the_rate_of_the_bare_device_is_the_device_s() {
    let scene = Scene::alone();
    let document = alike(
        &scene,
        r#"
        [bed.limits]
        iops = 1000
        [judgement]
        rounds = 4
        arms = ["raw"]
        [[workload]]
        name = "read"
        [workload.fio]
        rw = "randread"
        size = "4m"
        direct = 1
        ioengine = "libaio"
        iodepth = 4
        runtime = 2
        time_based = true
        "#,
    );
    let bare = of(&document, "raw device");
    assert_eq!(bare.len(), 4);
    for trial in bare {
        assert_eq!(trial["outcome"], "measured");
        assert_eq!(trial["mounted"], Value::Null);
        let reads = trial["phases"][0]["totals"]["device"]["reads"].as_u64().unwrap();
        assert!((1600..2600).contains(&reads), "{trial:#}");
        assert_eq!(trial["phases"][0]["queue"]["declared"], 4.0);
    }
    let bound = found(&document, "DeviceBound");
    assert_eq!(bound.len(), 1, "{:#}", document["findings"]);
    assert!(
        text(&bound[0]["evidence"]).contains("one 0.9")
            || text(&bound[0]["evidence"]).contains("one 1.0")
    );
    assert!(text(&bound[0]["evidence"]).contains("; at twice the depth it does "));
    let deep = of(&document, "raw device at twice the depth");
    assert_eq!((deep.len(), &deep[0]["phases"][0]["queue"]["declared"]), (4, &8.0.into()));
    for silent in ["A4", "A8"] {
        assert_eq!(found(&document, silent), [&Value::Null; 0]);
    }
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_duplicate_that_is_held_up_voids_the_workload() {
    let scene = Scene::alone();
    let document = alike(
        &scene,
        r#"
        [judgement]
        rounds = 4
        arms = ["duplicate"]
        [[workload]]
        name = "wait"
        command = 'case $FSVERDICT_CONTENDER in *again) sleep 0.4 ;; *) sleep 0.2 ;; esac'
        "#,
    );
    let differs = found(&document, "A15");
    assert_eq!((differs.len(), text(&differs[0]["severity"])), (1, "void"));
    assert_eq!(verdict(&document, "other", "wall_time")["verdict"], "void");
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn work_that_takes_longer_each_round_drifts() {
    let scene = Scene::alone();
    let document = alike(
        &scene,
        r#"
        [judgement]
        rounds = 6
        margin = "0.01%"
        [[workload]]
        name = "wait"
        command = 'sleep 0.$((FSVERDICT_ROUND + 1))'
        "#,
    );
    let drifted: Vec<&str> =
        found(&document, "A12").iter().map(|it| text(&it["contender"])).collect();
    assert_eq!(drifted, ["one", "other"]);
    scene.assert_nothing_left();
}

/// A second job that ends after a quarter of the time: at first there are 2,500 operations a
/// second, then 500. Where it begins after three quarters, there is no steady state.
#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_beginning_that_is_not_steady_is_cut_off() {
    let scene = Scene::alone();
    let job = |rate: u32, runtime: u32, delay: u32| {
        format!(
            "\"--name=j{rate}\", \"--rw=randread\", \"--ioengine=null\", \"--size=4m\", \
             \"--rate_iops={rate}\", \"--time_based\", \"--runtime={runtime}\", \
             \"--startdelay={delay}\""
        )
    };
    let workload = |name: &str, second: String| {
        let first = job(500, 4, 0);
        format!("[[workload]]\nname = \"{name}\"\ncache = \"warm\"\nfio = [{first}, {second}]\n")
    };
    let (burst, late) = (workload("burst", job(2000, 1, 0)), workload("late", job(2001, 1, 3)));
    let document = alike(&scene, &format!("[judgement]\nrounds = 1\n{burst}{late}"));
    for trial in list(&document["trials"]) {
        let course = &trial["phases"][0]["rate_over_time"];
        let rates: Vec<f64> =
            list(&course["rates_per_s"]).iter().map(|it| it.as_f64().unwrap()).collect();
        assert!((37..=41).contains(&rates.len()), "{course:#}");
        let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64;
        let of_tool = trial["phases"][0]["operations"].as_f64().unwrap() / 4.0;
        assert!((mean(&rates) / of_tool - 1.0).abs() < 0.1, "{of_tool}: {course:#}");
        let (first, last) = (mean(&rates[..9]), mean(&rates[rates.len() - 8..]));
        match text(&trial["workload"]) {
            "burst" => assert!(first > 2.0 * last, "{course:#}"),
            _ => assert!(last > 2.0 * first && course["steady"] == "never", "{course:#}"),
        }
        // On a machine that others keep busy the rest is not steady either.
        let ns = |key: &str| trial["phases"][0][key].as_f64().unwrap();
        let iops = sample(trial, "iops") * (1.0 + ns("syncfs_ns") / ns("tool_ns"));
        match course["steady"] == "after_cut" {
            true => assert!((430.0..560.0).contains(&iops), "{iops}: {course:#}"),
            false => assert!(iops > 1.2 * 500.0, "{iops}: {course:#}"),
        }
    }
    let noticed = found(&document, "A24");
    assert_eq!(noticed.len(), 4, "one for each contender in each of the two: {noticed:#?}");
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn another_writer_on_the_same_disk_is_noticed() {
    let scene = Scene::alone();
    let document = alike(
        &scene,
        r#"
        [judgement]
        rounds = 1
        [[workload]]
        name = "beside"
        command = '''
        head -c 8M /dev/urandom > own
        dd if=/dev/zero of=$FSVERDICT_RAW/other bs=1M count=48 oflag=direct status=none
        rm $FSVERDICT_RAW/other'''
        "#,
    );
    if list(&document["trials"])[0]["phases"][0]["totals"]["foreign"].is_null() {
        println!("the image is cached, or lies on no disk: there is nothing to see");
        return;
    }
    let others = found(&document, "A13");
    let named: Vec<&str> = others.iter().map(|it| text(&it["contender"])).collect();
    assert_eq!(named, ["one", "other"], "{:#}", document["findings"]);
    for trial in list(&document["trials"]) {
        let foreign = &trial["phases"][0]["totals"]["foreign"];
        assert!(foreign["write_bytes"].as_u64().unwrap() >= 48 << 20, "{foreign}");
    }
    let options = "--bed ram --fs ext4,ext4 --size 64M --rounds 1";
    let memory = scene.run(&format!("run --output memory --json - {options} -- true"));
    for trial in list(&memory.exits(0).json()["trials"]) {
        assert!(trial["phases"][0]["totals"].get("foreign").is_none(), "{trial:#}");
    }
    scene.assert_nothing_left();
}

/// ext4 takes direct writes beyond the end of a file one by one, for each changes its size.
#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_depth_that_the_device_never_sees_is_noticed() {
    let scene = Scene::alone();
    let document = alike(
        &scene,
        r#"
        [judgement]
        rounds = 1
        [[workload]]
        name = "append"
        [workload.fio]
        rw = "write"
        size = "8m"
        direct = 1
        ioengine = "libaio"
        iodepth = 16
        fallocate = "none"
        "#,
    );
    let unseen = found(&document, "A4");
    assert_eq!(unseen.len(), 2, "{:#}", document["findings"]);
    assert!(text(&unseen[0]["evidence"]).contains("of the 16 that were asked for"));
    scene.assert_nothing_left();
}
