//! CPU time against what is known of it: of work that burns as much as it is told, of a file system
//! whose threads work, and of a trial that has a cgroup of its own.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{of, printed, run_command, run_plan};
use crate::support::{Scene, Started, list, program, sample, text, tool};

/// Runs until its own clock shows so many nanoseconds, in the program or in the kernel, and prints
/// what it shows then.
const BURN: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

int main(int count, char **words) {
    static char buffer[1 << 16];
    int zeros = open("/dev/zero", O_RDONLY);
    long long end = atoll(words[2]);
    while (now() < end)
        for (volatile int i = 0; i < 1000; i++)
            if (words[1][0] == 'k' && i % 500 == 0 && read(zeros, buffer, sizeof buffer) < 0)
                return 1;
    printf("%lld\n", now());
    return count != 3;
}
"#;

pub fn burn(scene: &Scene) -> String {
    let (source, program) = (scene.write("burn.c", BURN), scene.typed("burn"));
    tool("cc", &["-O1", "-o", &program, &source]).unwrap();
    program
}

fn cpu_time<'a>(trial: &'a Value, key: &str) -> &'a Value {
    &trial["phases"][0]["totals"]["cpu_time"][key]
}

fn ns(trial: &Value, key: &str) -> u64 {
    cpu_time(trial, key).as_u64().unwrap_or_else(|| panic!("{key}: {trial:#}"))
}

/// All that was burnt is counted, and nothing twice: what a shell, its fork and our probes add is
/// less than the half of a second, also where a processor is slow.
#[track_caller]
fn assert_burnt(scene: &Scene, trial: &Value) {
    let burnt_ns: u64 = printed(scene, trial).lines().map(|it| it.parse::<u64>().unwrap()).sum();
    let work_ns = ns(trial, "work_ns");
    assert!((burnt_ns..2 * burnt_ns).contains(&work_ns), "{work_ns} of {burnt_ns}: {trial:#}");
    let all_s = (work_ns + ns(trial, "kernel_ns")) as f64 / 1e9;
    assert!((sample(trial, "cpu_time") - all_s).abs() < 1e-9, "{all_s}: {trial:#}");
}

/// A second of work, by two processes at once and one that has ended before.
fn second_of_work(burn: &str) -> String {
    format!("{burn} user 300000000; {burn} kernel 400000000 & {burn} user 300000000; wait")
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn cpu_time_is_what_the_work_has_burnt() {
    let scene = Scene::alone();
    let work = second_of_work(&burn(&scene));
    let options = "--fs ext4,ext4 --size 64M --rounds 1";
    let document = run_command(&scene, options, &["sh", "-c", &work]).exits(0).json();
    for trial in list(&document["trials"]) {
        assert_eq!(cpu_time(trial, "clock"), "cgroup", "{trial:#}");
        assert_burnt(&scene, trial);
        // Nobody works for longer than there was time; each column is cut to ticks. Where these
        // came too seldom, as on some virtual machines, the run says so itself.
        if list(&document["findings"]).iter().any(|it| it["audit"] == "A17") {
            continue;
        }
        let machine = trial["phases"][0]["totals"]["cpu"].as_object().unwrap();
        let columns = ["user_ns", "system_ns", "iowait_ns", "steal_ns", "idle_ns"];
        let all_ns: u64 = columns.iter().map(|column| machine[*column].as_u64().unwrap()).sum();
        assert!(ns(trial, "work_ns") < all_ns + 100_000_000, "{trial:#}");
    }
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn less_than_a_tick_of_cpu_time_is_measured() {
    let scene = Scene::alone();
    let burn = burn(&scene);
    let options = "--fs ext4,xfs --size 320M --rounds 1";
    let document = run_command(&scene, options, &[&burn, "user", "1000000"]).exits(0).json();
    for trial in list(&document["trials"]) {
        let burnt_ns: u64 = printed(&scene, trial).trim().parse().unwrap();
        assert!(ns(trial, "work_ns") >= burnt_ns, "{trial:#}");
    }
    scene.assert_nothing_left();
}

/// Btrfs compresses in workers of the kernel: the process that writes has next to nothing of it.
#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn what_the_kernels_threads_do_for_a_file_system_is_counted() {
    let scene = Scene::alone();
    let plan = r#"
        bed = { size = "320M" }
        judgement = { rounds = 1 }
        contender = [
            { name = "plain", file_system = "btrfs" },
            { name = "compressing", file_system = "btrfs", mount = ["compress-force=zstd:15"] },
        ]
        workload = [{ name = "write", command = "seq 4000000 > numbers" }]
    "#;
    let document = run_plan(&scene, plan).exits(0).json();
    let [plain, compressing] = ["plain", "compressing"].map(|name| of(&document, name)[0]);
    let kernel_ns = ns(compressing, "kernel_ns");
    assert!(kernel_ns > ns(compressing, "work_ns"), "{compressing:#}");
    assert!(kernel_ns > ns(plain, "kernel_ns"), "{kernel_ns}: {plain:#}");
    assert!(sample(compressing, "cpu_time") > kernel_ns as f64 / 1e9);
    scene.assert_nothing_left();
}

/// A cgroup of the test's own, removed with it.
struct Cgroup(PathBuf);

impl Cgroup {
    /// In each hierarchy of this machine that tells CPU time: v1's cpuacct, v2.
    fn of_each_kind() -> Vec<Cgroup> {
        let hierarchies = ["cpuacct", "unified", ""].map(|it| Path::new("/sys/fs/cgroup").join(it));
        let there = hierarchies.into_iter().filter(|it| it.join("cgroup.procs").exists());
        let name = format!("fsverdict-trial-test-{}", std::process::id());
        let made = there.map(|hierarchy| Cgroup(hierarchy.join(&name)));
        made.inspect(|cgroup| fs::create_dir(&cgroup.0).unwrap()).collect()
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_cgroup_of_the_trials_own_is_the_clock() {
    let scene = Scene::alone();
    let burn = burn(&scene);
    // A shell that waits for its children twice: of those that have ended while it still runs, its
    // own clock knows hundredths of a second. What is left running ends with the trial.
    let burnt = second_of_work(&burn);
    let work = format!("sh -c '{burnt}; exit'; cat /proc/self/cgroup >&2; setsid sleep 1000 &");
    let cgroups = Cgroup::of_each_kind();
    assert!(!cgroups.is_empty(), "this machine has no cgroups");
    for cgroup in cgroups {
        let script = "echo $$ > \"$0/cgroup.procs\" && exec \"$@\"";
        let mut command = program("sh");
        command.args(["-c", script, &cgroup.0.display().to_string()]);
        command.arg(env!("CARGO_BIN_EXE_fsverdict"));
        command.args(["run", "--fs", "ext4,ext4", "--size", "64M", "--rounds", "1"]);
        command.args(["--output", "run", "--json", "-", "--", "sh", "-c", &work]);
        command.current_dir(scene.path(""));
        let document = Started::new(command).wait().exits(0).json();
        let ours = cgroup.0.file_name().unwrap().display();
        for trial in list(&document["trials"]) {
            assert_eq!(text(cpu_time(trial, "clock")), "cgroup", "{}", cgroup.0.display());
            assert_burnt(&scene, trial);
            // It lies within ours, and is the trial's alone.
            let number = &trial["number"];
            let said = scene.read(&format!("run/trials/{number}/raw/command.stderr"));
            let within = said.lines().filter(|line| line.contains(&format!("{ours}/")));
            let names: Vec<&str> = within.filter_map(|line| line.rsplit('/').next()).collect();
            let is_its = |name: &&str| {
                name.starts_with("fsverdict-trial-") && name.ends_with(&format!("-{number}"))
            };
            assert!(!names.is_empty() && names.iter().all(is_its), "{said}");
            assert_eq!(trial["phases"][0]["processes_left"], 1, "{trial:#}");
        }
        fs::remove_dir_all(scene.path("run")).unwrap();
    }
    scene.assert_nothing_left();
}
