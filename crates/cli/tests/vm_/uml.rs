//! Place `uml`: guests that are processes. They take no QEMU, and a boot of each is a fraction of a
//! second. Where the kernel can't be fetched, the tests say so and are left out.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

use super::{as_nobody_with, failures, fetch_tools};
use crate::support::{Done, Left, Scene, Started, list, program, sample, text, tool, wait_for};

/// A cache of its own, since tests of users copy the other one.
pub fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("uml")
}

/// Fetched once; says why not.
pub fn is_there() -> bool {
    static FETCHED: OnceLock<bool> = OnceLock::new();
    *FETCHED.get_or_init(|| {
        let mut command = program(env!("CARGO_BIN_EXE_fsverdict"));
        command.args(["kernels", "get", "uml"]).env("XDG_CACHE_HOME", cache());
        let done = Started::new(command).wait();
        if done.code != Some(0) {
            eprintln!("left out: {}", done.stderr);
        }
        done.code == Some(0)
    })
}

pub fn started(scene: &Scene, words: &[&str]) -> Started {
    let mut command = scene.command(words);
    command.env("XDG_CACHE_HOME", cache());
    Started::new(command)
}

/// What a run says in which every trial was measured.
pub fn measured(scene: &Scene, words: &[&str]) -> Value {
    let document = started(scene, words).wait().exits(0).json();
    assert_eq!(failures(&document), [""; 0]);
    document
}

/// The program as a user without any right, who has the cache.
fn as_nobody(scene: &Scene, words: &[&str]) -> Done {
    as_nobody_with(&cache().join("fsverdict/uml"), "home/.cache/fsverdict", scene, words)
}

/// What is counted in a trial of ten files and a fsync each.
const COUNTS: [&str; 3] =
    ["fsync_device_writes", "fsync_device_write_bytes", "fsync_device_flushes"];

fn counts(trial: &Value) -> [f64; 3] {
    COUNTS.map(|name| sample(trial, name))
}

#[test]
#[ignore = "needs root, to become a user without rights: run ./test"]
fn a_user_counts_what_fsyncs_write_on_three_file_systems() {
    if !is_there() {
        return;
    }
    let scene = Scene::new();
    let words = ["run", "--place", "uml", "--fs", "ext4,xfs,btrfs", "--size", "512M"];
    let work = ["--rounds", "2", "--fsync-files", "files=10,repetitions=10"];
    let out = ["--output", "run", "--json", "-"];
    let document = as_nobody(&scene, &[&words[..], &work, &out].concat()).exits(0).json();
    assert_eq!(document["run"]["place"], "uml");
    let machine = text(&document["run"]["host"]["virtual machines"]);
    assert!(machine.starts_with("User Mode Linux, 1 processor, 1G"), "{machine}");
    assert_eq!(document["run"]["host"]["disks"], "through the host's page cache");
    let trials = list(&document["trials"]);
    assert_eq!((trials.len(), failures(&document).len()), (6, 0), "{document:#}");
    for trial in trials {
        let (guest, name) = (&trial["guest"], &trial["contender"]);
        assert_eq!((&guest["user_mode"], &guest["emulated"]), (&true.into(), &false.into()));
        assert_eq!(&trial["mounted"]["file_system"], name);
        assert_eq!(trial["disk"]["write_cache"], true);
        // Each round asks for the same, and each fsync for a flush at least. A thread of the
        // guest's kernel may write by the clock, and flush, during one of the ten.
        let [writes, bytes, flushes] = counts(trial);
        assert!(writes >= 1.0 && bytes >= 4096.0 && flushes >= 1.0, "{name}: {trial:#}");
        let twin =
            trials.iter().find(|it| it["contender"] == *name && it["round"] != trial["round"]);
        let of_twin = counts(twin.unwrap());
        assert!((flushes - of_twin[2]).abs() <= 0.2, "{name}: {flushes} and {of_twin:?}");
    }
    let findings = list(&document["findings"]);
    assert!(findings.iter().any(|it| it["audit"] == "A28"), "{findings:#?}");
    assert!(findings.iter().all(|it| it["audit"] != "A22"), "{findings:#?}");
    scene.assert_nothing_left();
}

/// What this machine has no driver for, with the package of its mkfs; whether an fsync flushes, and
/// whether an overlay stands on it.
const OTHERS: [(&str, &str, bool, bool); 7] = [
    ("vfat", "dosfstools", true, false),
    ("udf", "udftools", true, true),
    ("gfs2", "gfs2-utils", true, false),
    ("ocfs2", "ocfs2-tools", false, false),
    ("jfs", "jfsutils", false, true),
    ("f2fs", "f2fs-tools", true, true),
    ("nilfs2", "nilfs-tools", true, true),
];

#[test]
#[ignore = "fetches a kernel and tools, once: run ./test"]
fn file_systems_that_a_machine_has_not_are_measured_in_it() {
    if !is_there() {
        return;
    }
    let Some(_) = fetch_tools(&cache(), &OTHERS.map(|(_, package, ..)| package)) else { return };
    let scene = Scene::new();
    let work = ["--fsync-files", "files=3,repetitions=4", "--output", "run", "--json", "-"];
    let place = ["run", "--place", "uml", "--size", "256M", "--rounds", "1", "--fs"];
    for (name, ..) in OTHERS.iter().filter(|(.., carries)| !carries) {
        let words = [&place[..], &[name, "--above", "overlay"], &work].concat();
        let says = format!("overlay can't be mounted on {name}");
        started(&scene, &words).wait().exits(2).says(&says);
    }
    // One of each kind alone, and under an overlay where it carries one.
    let mut contenders = String::new();
    for (name, _, _, carries) in OTHERS {
        let mut add = |name: &str, more: &str| {
            contenders += &format!("[[contender]]\nname = \"{name}\"\n{more}\n");
        };
        let of = format!("file_system = \"{name}\"");
        add(name, &of);
        if carries {
            add(&format!("{name} under it"), &format!("{of}\nabove = [\"overlay\"]"));
        }
    }
    let plan = format!(
        "place = \"uml\"\nbed = {{ size = \"256M\" }}\njudgement = {{ rounds = 1 }}\n{contenders}\
         [[workload]]\nname = \"w\"\nfsync_files = {{ files = 3, repetitions = 4 }}\n"
    );
    let plan = scene.write("plan.toml", &plan);
    let words = ["run", &plan, "--place", "uml", "--output", "run", "--json", "-"];
    let document = measured(&scene, &words);
    for (name, _, flushes, carries) in OTHERS {
        let of = |contender: &str| {
            let mut trials = list(&document["trials"]).iter();
            trials.find(|it| it["contender"] == contender).unwrap()
        };
        let trial = of(name);
        assert_eq!(trial["mounted"]["file_system"], name);
        assert!(sample(trial, "fsync_device_write_bytes") > 0.0, "{name}");
        // One of a thread of the kernel's may fall among them.
        let count = sample(trial, "fsync_device_flushes");
        assert!(if flushes { count > 0.0 } else { count < 1.0 }, "{name}: {count}");
        if carries {
            let under = of(&format!("{name} under it"));
            assert_eq!(under["mounted"]["above"][0]["file_system"], "overlay", "{under:#}");
        }
    }
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root, and fetches a kernel: run ./test"]
fn runs_in_it_that_are_broken_leave_nothing_and_go_on() {
    if !is_there() {
        return;
    }
    let scene = Scene::new();
    let mut points = vec!["uml/command/KILL:lab@2.6", "uml/command/KILL:machine@2.8"];
    // What makes its layers.
    if ["/usr/sbin/dmsetup", "/sbin/dmsetup"].iter().any(|it| Path::new(it).exists()) {
        points.push("uml-layers/command/KILL:machine@2.3");
    }
    let dir = scene.typed("");
    let mut words = vec!["selftest", "--seed", "7", "--dir", &dir];
    words.extend(points.iter().flat_map(|point| ["--point", point]));
    let done = started(&scene, &words).wait().exits(0);
    let all = format!("{} points, of which 0 met nothing", points.len());
    assert!(done.stdout.contains(&all), "{}", done.stdout);
    scene.assert_nothing_left();
}

#[test]
#[ignore = "fetches a kernel: run ./test"]
fn modules_and_settings_come_along_by_any_path() {
    if !is_there() {
        return;
    }
    let scene = Scene::new();
    // Its paths have what a User Mode Linux would take for two of them.
    let plan = scene.write(
        "plan.toml",
        r#"
        bed = { size = "128M", dir = "of, two: parts", devices = 2 }
        judgement = { rounds = 1 }
        contender = [
            { name = "f2fs", file_system = "f2fs", queue = { nr_requests = 32 } },
            { name = "ext4", file_system = "ext4", sysctl = { "vm.vfs_cache_pressure" = 77 } },
        ]
        [[workload]]
        name = "work"
        setup = "cat /sys/block/ubdb/queue/nr_requests /sys/block/ubdb/queue/scheduler"
        command = "cat /proc/sys/vm/vfs_cache_pressure /sys/block/ubdb/size; nproc"
        "#,
    );
    fs::create_dir(scene.path("of, two: parts")).unwrap();
    let words = ["run", &plan, "--place", "uml", "--output", "a, run: of mine", "--json", "-"];
    let done = started(&scene, &words).wait();
    if tool("which", &["mkfs.f2fs"]).is_err() {
        done.exits(1).says("apt-get install f2fs-tools");
        return;
    }
    let document = done.exits(0).json();
    assert_eq!(list(&document["trials"]).len(), 2);
    for trial in list(&document["trials"]) {
        let at = format!("a, run: of mine/trials/{}/raw", trial["number"]);
        let printed = ["setup", "command"].map(|it| scene.read(&format!("{at}/{it}.stdout")));
        let printed = printed.concat();
        let is_f2fs = trial["contender"] == "f2fs";
        assert_eq!(&trial["mounted"]["file_system"], &trial["contender"]);
        let lines: Vec<&str> = printed.lines().collect();
        assert!(lines[1].starts_with("[none]"), "{printed}");
        assert_eq!((lines[0] == "32", lines[2] == "77"), (is_f2fs, !is_f2fs), "{printed}");
        assert_eq!((lines[3], lines[4]), ("262144", "1"), "{printed}");
        let untold = list(&trial["guest"]["lacks"]);
        assert!(untold.iter().any(|it| text(it).contains("pressure")), "{untold:?}");
    }
    scene.assert_nothing_left();
}

#[test]
#[ignore = "fetches a kernel: run ./test"]
fn what_scripts_start_and_interpreters_read_comes_along() {
    if !is_there() {
        return;
    }
    let scene = Scene::new();
    let script = "#!/bin/sh\nset -e\nperl -MPOSIX -e 'print floor(2.5)'\nseq 9 | tac > numbers\n";
    fs::write(scene.path("script"), script).unwrap();
    tool("chmod", &["755", scene.path("script").to_str().unwrap()]).unwrap();
    let words = ["run", "--place", "uml", "--fs", "ext4", "--size", "128M", "--rounds", "1"];
    let its = scene.path("script").display().to_string();
    let output = ["--output", "run", "--json", "-", "--", &its];
    measured(&scene, &[&words[..], &output].concat());
    assert_eq!(scene.read("run/trials/1/raw/command.stdout"), "2");
    // A plan of many programs, some in its environment.
    let plan = ["run", "distribution", "--place", "uml", "--fs", "ext4", "--rounds", "1"];
    let output = ["--scale", "1/50", "--output", "plan", "--json", "-"];
    measured(&scene, &[&plan[..], &output].concat());
    // What can't be known is told.
    let words = ["run", "--place", "uml", "--fs", "ext4", "--size", "128M", "--rounds", "1"];
    let work = ["--output", "lacks", "--", "sh", "-c", "$(echo ta)c /dev/null"];
    let done = started(&scene, &[&words[..], &work].concat()).wait();
    let shown: Vec<&str> = done.stdout.split_whitespace().collect();
    assert!(shown.join(" ").contains("names, and --bring PATH adds others."), "{}", done.stdout);
    scene.assert_nothing_left();
}

#[test]
#[ignore = "fetches a kernel: run ./test"]
fn an_fsync_takes_what_a_layer_makes_it_wait() {
    if !is_there() {
        return;
    }
    if tool("which", &["dmsetup"]).is_err() {
        eprintln!("left out: dmsetup is not installed");
        return;
    }
    let scene = Scene::new();
    let words = ["run", "--place", "uml", "--fs", "ext4", "--size", "128M", "--rounds", "1"];
    let delay = "delay:flush=300ms,write=200ms";
    let work = ["--layers", delay, "--fsync-files", "files=2,repetitions=3"];
    let words = [&words[..], &work, &["--output", "run", "--json", "-"]].concat();
    let document = started(&scene, &words).wait().exits(0).json();
    let trial = &list(&document["trials"])[0];
    let told = text(&list(&trial["layers"])[0]);
    assert!(told.ends_with(" 0 0 98:16 0 200 98:16 0 300"), "{told}");
    // Its data, its journal, a flush and the commit wait for each other; the clock's tick, by which
    // each is counted, is 10 ms.
    let latency_ns = sample(trial, "fsync_latency_mean");
    assert!(latency_ns >= 4.0 * 190e6, "{latency_ns}: {trial:#}");
    let findings = list(&document["findings"]);
    let a28 = findings.iter().find(|it| it["audit"] == "A28").unwrap();
    assert!(text(&a28["evidence"]).contains("as long as the layer delay makes them"), "{a28:#}");
    scene.assert_nothing_left();
}

#[test]
#[ignore = "fetches a kernel: run ./test"]
fn what_it_can_not_do_is_said_before_the_first_trial() {
    if !is_there() {
        return;
    }
    let scene = Scene::new();
    let refused = |plan: &str, words: &[&str], says: &str| {
        let contender = |it| format!("[[contender]]\nname = \"{it}\"\nfile_system = \"ext4\"\n");
        let work = "[[workload]]\nname = \"w\"\ncommand = \"true\"\n";
        let text = format!("\n{}{}{work}", contender("a"), contender("b"));
        scene.write("plan.toml", &format!("{plan}{text}"));
        let words = [&["run", "plan.toml", "--place", "uml", "--output", "run"], words].concat();
        let done = started(&scene, &words).wait();
        assert!([Some(1), Some(2)].contains(&done.code), "{says}");
        done.says(says);
        assert!(!scene.path("run").exists(), "{says}");
    };
    refused("", &["--kernel", "6.1"], "has a kernel of its own: that takes --place vm");
    refused("", &["--vm-append", "quiet"], "has parameters for its kernel: that takes --place vm");
    refused("", &["--vm-qemu", "-cpu max"], "options for QEMU: a User Mode Linux takes none");
    refused("", &["--untrusted"], "runs in virtual machines of QEMU: leave --place out");
    refused("", &["--devices", "8"], "8 devices: a User Mode Linux has room for 7");
    refused("vm = { processors = 2 }", &[], "2 processors: a User Mode Linux has one: write");
    refused("bed = { limits = { iops = 9 } }", &[], "does not limit its disks");
    refused("vm = { memory = \"9000G\" }", &[], "/dev/shm has ");
    // All there is, whatever others have of it now: there is none for what comes along.
    let (_, all_bytes, _) = fsverdict_host::sys::room("/dev/shm".as_ref()).unwrap();
    let all = format!("vm = {{ memory = \"{}M\" }}", all_bytes >> 20);
    refused(&all, &[], "/dev/shm has ");
    let words = ["run", "--place", "uml", "--fs", "ext4,bcachefs", "--output", "run", "--", "true"];
    started(&scene, &words).wait().exits(1).says("has no bcachefs: write --place vm");
    let other = if cfg!(target_arch = "x86_64") { "arm64" } else { "amd64" };
    let done = started(&scene, &["kernels", "get", "uml", "--arch", other]).wait().exits(2);
    done.says("leave --arch out");
    let listed = started(&scene, &["kernels", "list"]).wait().exits(0).stdout;
    assert!(listed.contains(" for place uml\n  has    ext4, xfs, btrfs"), "{listed}");
    // It boots here, or says why not in a sentence.
    let doctor = started(&scene, &["doctor"]).wait().stdout;
    let row = doctor.lines().find(|line| line.contains("User Mode Linux")).unwrap();
    assert!(row.contains("Linux 7"), "{row}");
    assert!(!cache().join("fsverdict/uml/new").exists(), "nothing is half unpacked");
}

#[test]
fn one_that_is_not_fetched_is_named_with_the_way_to_it() {
    let scene = Scene::new();
    let of = |words: &[&str]| {
        let mut command = scene.command(words);
        command.env("XDG_CACHE_HOME", scene.path("cache"));
        Started::new(command).wait()
    };
    let words = ["run", "--place", "uml", "--fs", "ext4,ext4", "--", "true"];
    of(&words).exits(1).says("it is not fetched: fsverdict kernels get uml");
    let dry = [&words[..4], &["ext4,xfs", "--dry-run", "--", "true"]].concat();
    let said = of(&dry).exits(0).stdout;
    assert!(said.contains("ln -s RUN/0.img RUN/vm/disk1"), "{said}");
    assert!(said.contains(" ubd0t=disk0 ubd1t=disk1 seccomp=on "), "{said}");
    assert!(said.contains("mkfs.ext4") && said.contains(" /dev/ubdb"), "{said}");
}

fn is_kernel(number: &u32) -> bool {
    let name = fs::read_to_string(format!("/proc/{number}/comm")).unwrap_or_default();
    name.trim() == "linux"
}

fn within_processes_of_its_own(command: &Command) -> Command {
    let mut within = program("unshare");
    within.args(["--pid", "--fork"]).arg(command.get_program()).args(command.get_args());
    within.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    within.current_dir(command.get_current_dir().unwrap());
    within
}

/// `/proc` shows the processes of another namespace there, and calls us by another number.
#[test]
#[ignore = "needs root, and fetches a kernel: run ./test"]
fn a_namespace_of_processes_needs_no_proc_of_its_own() {
    if !is_there() {
        return;
    }
    let scene = Scene::new();
    let mut command = scene.command(&["run", "--place", "uml", "--fs", "ext4", "--size", "64M"]);
    command.args(["--rounds", "1", "--output", "run", "--", "true"]);
    command.env("XDG_CACHE_HOME", cache());
    Started::new(within_processes_of_its_own(&command)).wait().exits(0);
    scene.assert_nothing_left();
}

/// What the owner of a folder can do with what lies in it, while root's machines boot.
#[test]
#[ignore = "fetches a kernel: run ./test"]
fn who_exchanges_a_runs_folder_gets_no_machines_files_written_elsewhere() {
    if !is_there() {
        return;
    }
    let scene = Scene::new();
    let theirs = scene.write("theirs", "theirs");
    let words = ["run", "--place", "uml", "--fs", "ext4,ext4", "--size", "64M", "--rounds", "2"];
    let mut run = started(&scene, &[&words[..], &["--output", "run", "--", "true"]].concat());
    run.reaches("the guest", || Left::of(&scene.path("")).processes.iter().any(is_kernel));
    let entries = fs::read_dir(scene.path("run")).unwrap().map(|it| it.unwrap().file_name());
    let names = entries.map(|it| it.display().to_string());
    let own: Vec<String> = names.filter(|it| it.starts_with(".fsverdict-")).collect();
    assert!(!own.is_empty());
    for name in own {
        fs::create_dir_all(scene.path("victim").join(&name)).unwrap();
        for file in ["exchange", "0.cpio", "1.img"] {
            symlink(&theirs, scene.path("victim").join(&name).join(file)).unwrap();
        }
    }
    fs::rename(scene.path("run"), scene.path("away")).unwrap();
    symlink(scene.path("victim"), scene.path("run")).unwrap();
    run.wait();
    assert!(scene.path("away/trials/2/record.json").exists(), "no machine was booted after that");
    assert_eq!(scene.read("theirs"), "theirs", "root wrote by way of a link");
    let found = tool("find", &[&scene.typed("victim"), "-type", "f"]).unwrap();
    assert_eq!(found.trim(), "", "root wrote into another folder");
    fs::remove_file(scene.path("run")).unwrap();
    fs::remove_dir_all(scene.path("victim")).unwrap();
    scene.assert_nothing_left();
}

#[test]
#[ignore = "fetches a kernel: run ./test"]
fn a_kill_and_a_panic_leave_nothing_of_it() {
    if !is_there() {
        return;
    }
    let scene = Scene::alone();
    let words = ["run", "--place", "uml", "--fs", "ext4,ext4", "--size", "64M", "--output"];
    let runs_guest = || Left::of(&scene.path("")).processes.iter().any(is_kernel);
    for (signal, code) in [("INT", Some(130)), ("KILL", None)] {
        let words = [&words[..], &[signal, "--", "sleep", "60"]].concat();
        let mut run = started(&scene, &words);
        run.reaches("the guest", runs_guest);
        run.signal(signal);
        assert_eq!(run.wait().code, code);
        wait_for("the guest's end", || Left::of(&scene.path("")).processes.is_empty());
    }
    scene.run("clean").exits(0).says("cleaned up after the run of");
    let plan = scene.write(
        "plan.toml",
        r#"
        bed = { size = "64M" }
        vm = { memory = "256M" }
        judgement = { rounds = 1 }
        contender = [
            { name = "whole", file_system = "ext4" },
            { name = "broken", file_system = "ext4", sysctl = { "vm.panic_on_oom" = 2 } },
        ]
        [[workload]]
        name = "work"
        command = "[ $FSVERDICT_CONTENDER = whole ] || dd if=/dev/zero of=/dev/null bs=350M"
        "#,
    );
    let words = ["run", &plan, "--place", "uml", "--output", "two", "--json", "-"];
    let document = started(&scene, &words).wait().exits(1).json();
    let errors = failures(&document);
    assert_eq!((errors.len(), list(&document["trials"]).len()), (1, 2), "{errors:?}");
    assert!(errors[0].contains("the kernel panicked: "), "{errors:?}");
    assert!(errors[0].contains("compulsory panic_on_oom is enabled"), "{errors:?}");
    scene.assert_nothing_left();
}

#[test]
#[ignore = "fetches a kernel: run ./test"]
fn one_can_look_around_in_it() {
    if !is_there() {
        return;
    }
    let scene = Scene::new();
    let words = ["run", "--place", "uml", "--fs", "ext4", "--size", "64M", "--rounds", "1"];
    let work = ["--output", "run", "--", "sh", "-c", "echo kept > it; exit 3"];
    started(&scene, &[&words[..], &work].concat()).wait().exits(1);
    let mut shell = scene.command(&["vm", "shell", "run", "--place", "uml"]);
    let said = || String::from_utf8_lossy(&fs::read(scene.path("said")).unwrap()).into_owned();
    shell.env("XDG_CACHE_HOME", cache()).stdin(Stdio::piped());
    shell.stdout(fs::File::create(scene.path("said")).unwrap());
    shell.stderr(fs::File::create(scene.path("stderr")).unwrap());
    let mut shell = Started::silent(shell);
    shell.reaches("the shell's prompt", || said().contains("guest:"));
    shell.typed(b"mount -t ext4 /dev/ubdb /fsverdict/mnt; cat $(find /fsverdict/mnt -name it)\r");
    shell.reaches("what was kept", || said().contains("\nkept\r\n"));
    shell.typed(b"exit\r");
    shell.wait().exits(0);
    // Its kernel is a process of this machine's, which the work may take over.
    scene.run("vm shell run").exits(2).says("allow it with --place uml");
    assert!(said().contains("Trial 1 has failed at work: "), "{}", said());
    scene.assert_nothing_left();
}
