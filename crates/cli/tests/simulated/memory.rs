//! What a long run keeps in memory.

use std::fs;
use std::path::Path;

use crate::support::{Scene, wait_for};

/// What a trial may add. The judge keeps its figures, which is about one KiB; its record, with
/// histograms, is ten times as large as this.
const MOST_BYTES: u64 = 4096;

fn plan() -> String {
    let contender =
        |name: char| format!("[[contender]]\nname = \"{name}\"\nfile_system = \"ext4\"\n");
    let contenders: String = ('a'..='j').map(contender).collect();
    format!(
        "place = \"sim\"\nseed = 1\njudgement = {{ rounds = 1000 }}\nsim = {{ noise = 3.0 }}\n\
         {contenders}[[workload]]\nname = \"files\"\nsmall_files = {{}}\n"
    )
}

/// What a process has allocated and touched, by proc_pid_status(5): pages of files, as of the
/// program itself, come and go with what the machine has free.
fn resident_bytes(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[test]
fn a_run_keeps_no_records() {
    let scene = Scene::new();
    scene.write("plan.toml", &plan());
    let words = ["run", "plan.toml", "--output", "run", "--progress", "none"];
    let run = scene.start(&words);
    let after = |trial: u64| {
        let record = scene.path(&format!("run/trials/{trial}/record.json"));
        wait_for("a trial", || Path::new(&record).exists());
        resident_bytes(run.id())
    };
    let (first, last) = (200, 1200);
    let at_first = after(first);
    let grown = after(last).saturating_sub(at_first);
    assert!(grown < (last - first) * MOST_BYTES, "{} bytes a trial", grown / (last - first));
}
