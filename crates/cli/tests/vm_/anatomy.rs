//! What reaches a guest's disk, by both who record it: its own kernel, and QEMU outside.

use serde_json::Value;

use super::{as_root, kernels};
use crate::support::{Scene, Started, text};

/// What the work marked, and what the device was given meanwhile: writes, by place and length, and
/// flushes.
pub fn recorded(scene: &Scene, log: &str) -> Vec<String> {
    let lines = scene.read(&format!("run/trials/1/{log}"));
    let told = |line: &str| {
        let item: Value = serde_json::from_str(line).unwrap();
        match item["mark"].as_str() {
            Some(mark) => {
                let word = mark.split(' ').next().unwrap();
                ["write", "fsync", "synced"].contains(&word).then(|| mark.to_string())
            }
            None => match item["op"].as_str()? {
                op @ ("write" | "flush") => {
                    let [sector, sectors] = ["sector", "sectors"].map(|it| item[it].as_u64());
                    Some(format!("{op} {} {}", sector.unwrap_or(0), sectors.unwrap_or(0)))
                }
                _ => None,
            },
        }
    };
    lines.lines().filter_map(told).collect()
}

/// Those between an fsync's marks, fsync by fsync, in their order.
pub fn of_fsyncs(all: &[String]) -> Vec<Vec<String>> {
    let begins = |line: &&String| line.starts_with("fsync ");
    let fsyncs = all.iter().enumerate().filter(|(_, line)| begins(line));
    let until = |from: usize| {
        let own = all[from..].iter().take_while(|line| !line.starts_with("synced "));
        own.cloned().collect()
    };
    fsyncs.map(|(from, _)| until(from)).collect()
}

#[test]
#[ignore = "boots a virtual machine: run ./test"]
fn the_kernel_and_qemu_record_the_same_writes() {
    or_left_out!();
    let scene = Scene::new();
    let words = ["anatomy", "--kernel", kernels()[0], "--files", "3", "--repetitions", "4"];
    let words = [&words[..], &["--size", "64M", "--output", "run"]].concat();
    let shown = Started::new(as_root(&scene, &words)).wait().exits(0).stdout;
    assert!(shown.contains("data of the synced file"), "{shown}");
    let [kernels_own, outside] =
        ["trace.jsonl", "log_writes.jsonl"].map(|log| recorded(&scene, log));
    let fsyncs = of_fsyncs(&outside);
    assert_eq!(fsyncs, of_fsyncs(&kernels_own));
    assert_eq!(fsyncs.len(), 4);
    // Data, the journal, a flush, the commit, a flush.
    let flushes = |fsync: &Vec<String>| fsync.iter().filter(|it| it.starts_with("flush")).count();
    assert!(fsyncs.iter().all(|it| it.len() >= 6 && flushes(it) == 2), "{fsyncs:?}");
    let head: Value = serde_json::from_str(
        scene.read("run/trials/1/log_writes.jsonl").lines().next().unwrap_or_default(),
    )
    .unwrap();
    assert_eq!((text(&head["recorder"]), text(&head["phase"])), ("log_writes", ""));
    // All writes of the timed part, in whichever order; QEMU spares flushes that follow another.
    let writes = |all: Vec<String>| {
        let mut writes: Vec<String> = all.into_iter().filter(|it| it.contains("write")).collect();
        writes.sort();
        writes
    };
    assert_eq!(writes(outside), writes(kernels_own));
    scene.assert_nothing_left();
}
