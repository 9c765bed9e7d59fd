//! A run of ten thousand trials and a million readings, written as `fsverdict run` would have.

use std::fmt::Write as _;
use std::fs;

use serde_json::{Value, json};

use crate::support::{Scene, list, text};

const ROUNDS: u32 = 1000;
const READINGS: u64 = 100;
const CONTENDERS: u32 = 5;
const WORKLOADS: u32 = 2;
/// Every contender and workload in every round.
pub const TRIALS: u32 = ROUNDS * CONTENDERS * WORKLOADS;

fn plan() -> String {
    let mut plan = "place = \"sim\"\nseed = 5\n[judgement]\nrounds = 1000\n".to_string();
    for name in ["ext4", "xfs", "btrfs", "f2fs", "jfs"] {
        let _ = write!(plan, "[[contender]]\nname = \"{name}\"\nfile_system = \"{name}\"\n");
    }
    for name in ["database", "mail"] {
        let _ = write!(plan, "[[workload]]\nname = \"{name}\"\ncommand = \"true\"\n");
    }
    plan
}

/// Numbers between 0 and 1 that are the same each time (Knuth's MMIX generator).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Writes it into the scene's folder `name`: a simulated round, a thousand times, with noise.
pub fn write(scene: &Scene, name: &str) {
    scene.write("plan.toml", &plan());
    let first = ["run", "plan.toml", "--rounds", "4", "--output", name];
    scene.fsverdict(&first).exits(0);
    scene.write(&format!("{name}/plan.toml"), &plan());
    let models: Vec<Value> =
        scene.records(name).into_iter().filter(|it| it["round"] == 1).collect();
    assert_eq!(models.len() as u32, CONTENDERS * WORKLOADS);
    let mut numbers = Numbers(7);
    let mut number = 0;
    for round in 1..=ROUNDS {
        for model in &models {
            number += 1;
            let folder = scene.path(&format!("{name}/trials/{number}"));
            fs::create_dir_all(&folder).unwrap();
            let record = trial(model, number, round, &mut numbers);
            fs::write(folder.join("record.json"), record.to_string()).unwrap();
            let fast = text(&record["contender"]).len() as f64;
            fs::write(folder.join("series.csv"), series(fast, &mut numbers)).unwrap();
        }
    }
    assert_eq!(number, TRIALS);
}

fn trial(model: &Value, number: u32, round: u32, numbers: &mut Numbers) -> Value {
    let mut record = model.clone();
    record["number"] = number.into();
    record["round"] = round.into();
    let noise = 0.9 + 0.2 * numbers.next();
    for sample in record["samples"].as_array_mut().unwrap() {
        sample["value"] = (sample["value"].as_f64().unwrap() * noise).into();
    }
    let buckets: Vec<Value> = (0..80)
        .map(|step| json!([(20_000.0 * noise * 1.1f64.powi(step)) as u64, 2000 / (step + 1)]))
        .collect();
    let sum: u64 = buckets.iter().map(|it| list(it)[1].as_u64().unwrap() * 30_000).sum();
    let max = buckets[79][0].clone();
    record["phases"][0]["histograms"] =
        json!({ "operation": { "max_ns": max, "sum_ns": sum, "buckets": buckets } });
    record
}

fn series(fast: f64, numbers: &mut Numbers) -> String {
    let mut text =
        "phase,time_ns,cpu_user_ns,cpu_system_ns,cpu_iowait_ns,cpu_steal_ns,cpu_idle_ns,\
                    device_read_bytes,device_write_bytes,device_flushes,device_queue_ns,\
                    dirty_bytes\n"
            .to_string();
    let mut sums = [0.0; 5];
    for index in 0..READINGS {
        let wave = 1.0 + (index as f64 / 9.0).sin();
        let row = [2e7 * numbers.next(), 8e7, 4e6 * wave, 9e6 * fast * numbers.next(), 2e8 * wave];
        let [busy, idle, read, written, queue] = sums.map(|sum: f64| sum as u64);
        let dirty = (1e8 * wave) as u64;
        let _ = writeln!(
            text,
            ",{},{busy},0,0,0,{idle},{read},{written},{index},{queue},{dirty}",
            index * 50_000_000
        );
        sums.iter_mut().zip(row).for_each(|(sum, more)| *sum += more);
    }
    text
}
