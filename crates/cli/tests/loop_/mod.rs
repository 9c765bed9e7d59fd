//! Whole runs on this machine: loop devices upon images of their own, real mkfs, mounts, work.

mod anatomy;
mod applications;
mod audits;
mod beds;
mod blocks;
mod cells;
mod chaos;
mod checked;
mod confined;
mod cpu;
mod duets;
mod escapes;
mod guard;
mod interrupted;
mod network;
mod others;
mod packages;
mod partitions;
mod printed;
mod probes;
mod recommended;
mod remains;
mod replays;
mod runs;
mod settings;
mod stacked;
mod strangers;
mod unattended;
mod words;
mod workloads;
mod zfs;

use serde_json::Value;

use crate::support::{Done, Scene, list};

/// Runs a plan, written as TOML, in `run`.
fn run_plan(scene: &Scene, plan: &str) -> Done {
    let file = scene.write("plan.toml", plan);
    scene.fsverdict(&["run", &file, "--output", "run", "--json", "-"])
}

/// Runs `fsverdict run OPTIONS -- COMMAND` in `run`; options are split at spaces.
fn run_command(scene: &Scene, options: &str, command: &[&str]) -> Done {
    let mut words = vec!["run", "--output", "run", "--json", "-"];
    words.extend(options.split(' ').filter(|word| !word.is_empty()));
    words.push("--");
    words.extend(command);
    scene.fsverdict(&words)
}

/// The trials of a contender.
fn of<'a>(document: &'a Value, contender: &str) -> Vec<&'a Value> {
    let trials = list(&document["trials"]).iter();
    trials.filter(|trial| trial["contender"] == contender).collect()
}

/// What the work of a trial printed.
fn printed(scene: &Scene, trial: &Value) -> String {
    scene.read(&format!("run/trials/{}/raw/command.stdout", trial["number"]))
}

/// A figure that the probes read in a phase.
fn device(trial: &Value, phase: usize, counter: &str) -> u64 {
    trial["phases"][phase]["totals"]["device"][counter].as_u64().unwrap()
}

/// Why the trial failed: the step and the error.
fn failure(trial: &Value) -> (&str, &str) {
    let failed = &trial["outcome"]["failed"];
    let text = |key: &str| failed[key].as_str().unwrap_or_else(|| panic!("{trial:#}"));
    (text("step"), text("error"))
}
