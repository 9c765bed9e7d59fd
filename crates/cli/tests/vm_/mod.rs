//! Whole runs in virtual machines, with kernels that are fetched as a user fetches them. Where QEMU
//! or a kernel is not to be had, they say so and are left out.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

use crate::support::{Done, Left, Scene, Started, list, program, sample, text, tool, wait_for};

/// What is fetched: Debian 12's kernel, and an older one to compare it with.
const KERNELS: [&str; 2] = ["6.1", "5.10"];

/// The cache of all these tests, kept with what cargo builds.
fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache")
}

/// The kernels that are there, of [`KERNELS`]; fetched once.
fn kernels() -> &'static [&'static str] {
    static FETCHED: OnceLock<Vec<&str>> = OnceLock::new();
    FETCHED.get_or_init(|| {
        let get = |name: &&&str| {
            let mut command = program(env!("CARGO_BIN_EXE_fsverdict"));
            command.args(["kernels", "get", name]).env("XDG_CACHE_HOME", cache());
            let done = Started::new(command).wait();
            if done.code != Some(0) {
                eprintln!("no kernel {name}: {}", done.stderr);
            }
            done.code == Some(0)
        };
        KERNELS.iter().filter(get).copied().collect()
    })
}

/// The folder of Debian's full kernel, which has what its cloud kernels leave out; fetched into a
/// cache of its own, since tests of users copy the other one.
fn full_kernel() -> Option<PathBuf> {
    let mut command = program(env!("CARGO_BIN_EXE_fsverdict"));
    command.args(["kernels", "get", KERNELS[0], "--flavour", "amd64"]);
    command.env("XDG_CACHE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("full-kernel"));
    let done = Started::new(command).wait();
    if done.code != Some(0) {
        eprintln!("no full kernel {}: {}", KERNELS[0], done.stderr);
        return None;
    }
    let image = done.stdout.trim().split_once(' ').unwrap().1;
    Path::new(image).ancestors().nth(2).map(PathBuf::from)
}

/// The image of a kernel in its folder.
fn image_in(folder: &Path) -> String {
    let release = folder.file_name().unwrap().to_str().unwrap();
    folder.join(format!("boot/vmlinuz-{release}")).display().to_string()
}

/// Why no machine can be booted here, if none can.
fn missing() -> Option<&'static str> {
    if tool("which", &["qemu-system-x86_64"]).is_err() {
        return Some("qemu-system-x86_64 is not installed");
    }
    kernels().is_empty().then_some("no kernel can be fetched")
}

/// Says why a test is left out, if it is.
macro_rules! or_left_out {
    () => {
        if let Some(missing) = crate::vm_::missing() {
            eprintln!("left out: {missing}");
            return;
        }
    };
}

mod anatomy;
mod arm64;
mod boots;
mod cgroups;
// After the macro, which it uses.
mod disks;
mod layers;
mod served;
mod tree;
mod uml;
mod untrusted;
mod zfs;

fn as_root(scene: &Scene, words: &[&str]) -> Command {
    let mut command = scene.command(words);
    command.env("XDG_CACHE_HOME", cache());
    command
}

/// What the script `name` says when it is typed into the shell in a guest.
fn said_in_guest(scene: &Scene, mut shell: Command, name: &str) -> String {
    let said = || String::from_utf8_lossy(&fs::read(scene.path("said")).unwrap()).into_owned();
    shell.stdin(Stdio::piped()).stdout(File::create(scene.path("said")).unwrap());
    shell.stderr(File::create(scene.path("stderr")).unwrap());
    let mut shell = Started::silent(shell);
    shell.reaches("the shell's prompt", || said().contains("guest:"));
    let line = format!("sh {} 2>&1; echo THE \"END\"\r", scene.typed(name));
    shell.typed(line.as_bytes());
    shell.reaches("the end of it", || said().contains("\nTHE END\r\n"));
    shell.typed(b"exit\r");
    shell.wait().exits(0);
    said().replace('\r', "")
}

/// Programs for guests, fetched into that cache once; says why not, where no network brings them.
fn fetch_tools(cache: &Path, packages: &[&str]) -> Option<Done> {
    let mut command = program(env!("CARGO_BIN_EXE_fsverdict"));
    command.args(["kernels", "tools"]).args(packages).env("XDG_CACHE_HOME", cache);
    let done = Started::new(command).wait();
    if done.code != Some(0) {
        eprintln!("left out: no {}: {}", packages.join(", "), done.stderr);
    }
    (done.code == Some(0)).then_some(done)
}

/// The program as a user without any right, with a home of his own in which the kernels are.
fn as_nobody(scene: &Scene, words: &[&str]) -> Done {
    as_nobody_with(&cache().join("fsverdict"), "home/.cache", scene, words)
}

/// The same, with the folder `from` copied into the one below the scene.
fn as_nobody_with(from: &Path, below: &str, scene: &Scene, words: &[&str]) -> Done {
    if !scene.path(below).exists() {
        fs::create_dir_all(scene.path(below)).unwrap();
        tool("cp", &["-r", &from.display().to_string(), &scene.typed(below)]).unwrap();
    }
    Started::new(scene.as_nobody(words)).wait()
}

fn failures(document: &Value) -> Vec<&str> {
    let failed = list(&document["trials"]).iter().map(|trial| &trial["outcome"]["failed"]["error"]);
    failed.filter_map(Value::as_str).collect()
}

#[test]
#[ignore = "needs root, to become a user without rights: run ./test"]
fn without_rights_a_virtual_machine_is_chosen_and_any_command_runs_in_it() {
    or_left_out!();
    let scene = Scene::new();
    let line = "cp -a /usr/share/doc/apt . && seq 3 >numbers && cat numbers && uname -r";
    let words = ["run", "--fs", "ext4,ext4", "--size", "64M", "--rounds", "1", "--output", "run"];
    // Their programs come along, too.
    let beside = ["--check", "tac numbers && rm numbers", "--cleanup", "expr 1 + 1"];
    let words = [&words[..], &beside, &["--json", "-", "--", "sh", "-c", line]].concat();
    let done = as_nobody(&scene, &words).exits(0);
    let says = "each trial runs in a virtual machine, since this machine lacks something: bed loop \
                needs root: ";
    let done = done.says(says);
    let document = done.json();
    assert_eq!(document["run"]["place"], "vm");
    for trial in list(&document["trials"]) {
        assert_eq!(trial["mounted"]["file_system"], "ext4");
        let kernel = text(&trial["guest"]["kernel"]);
        let printed = scene.read(&format!("run/trials/{}/raw/command.stdout", trial["number"]));
        assert_eq!(printed, format!("1\n2\n3\n{kernel}\n"), "not the guest's kernel");
        let cpu_time = &trial["phases"][0]["totals"]["cpu_time"];
        assert!(cpu_time["work_ns"].as_u64() > Some(0), "{trial:#}");
        assert!(cpu_time["kernel_ns"].as_u64() > Some(0), "not the guest's threads: {trial:#}");
        assert!(!scene.read(&format!("run/trials/{}/series.csv", trial["number"])).is_empty());
    }
    let emulated = list(&document["trials"]).iter().any(|it| it["guest"]["emulated"] == true);
    let findings = list(&document["findings"]);
    assert_eq!(findings.iter().any(|it| it["audit"] == "A22"), emulated, "{findings:#?}");
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root, to become a user without rights: run ./test"]
fn kernels_are_compared_under_limits_and_settings_of_their_own() {
    or_left_out!();
    let scene = Scene::new();
    let contender = |name: &str, kernel: &str, ratio: u32| {
        format!(
            "[[contender]]\nname = \"{name}\"\nfile_system = \"xfs\"\nkernel = \"{kernel}\"\n\
             queue = {{ nr_requests = 32 }}\nsysctl = {{ \"vm.dirty_ratio\" = {ratio} }}\n\
             parameters = [\"fsverdict.ratio={ratio}\"]\n"
        )
    };
    let (one, other) = (kernels()[0], kernels()[kernels().len() - 1]);
    let plan = format!(
        "[bed]\nsize = \"320M\"\nlimits = {{ iops = 40 }}\n{}{}[[workload]]\nname = \"writes\"\n\
         setup = \"cat /sys/block/vdb/queue/nr_requests /proc/sys/vm/dirty_ratio /proc/cmdline\"\n\
         fio = {{ rw = \"randwrite\", bs = \"4k\", size = \"240k\", direct = 1 }}\n\
         [judgement]\nrounds = 1\n",
        contender("one", one, 7),
        contender("other", other, 9)
    );
    scene.write("plan.toml", &plan);
    let words = ["run", "plan.toml", "--output", "run", "--json", "-"];
    let document = as_nobody(&scene, &words).exits(0).json();
    for trial in list(&document["trials"]) {
        let (name, kernel) = if trial["contender"] == "one" { ("7", one) } else { ("9", other) };
        assert!(text(&trial["guest"]["kernel"]).starts_with(kernel), "{}", trial["guest"]);
        let set = scene.read(&format!("run/trials/{}/raw/setup.stdout", trial["number"]));
        assert!(set.starts_with(&format!("32\n{name}\n")), "{set}");
        assert!(set.trim_end().ends_with(&format!(" fsverdict.ratio={name}")), "{set}");
        // QEMU lets a tenth of a second's worth pass at once.
        let iops = sample(trial, "iops");
        assert!((0.0..60.0).contains(&iops), "{iops} a second, of 40");
    }
    let verdicts = list(&document["verdicts"]);
    assert_eq!((&verdicts[0]["contender"], &verdicts[0]["rounds"]), (&"other".into(), &1.into()));
    scene.assert_nothing_left();
}

/// A recording of two calls: a file is opened, and written to by another thread.
const RECORDING: &str = concat!(
    r#"{"recording":1,"names_kept":false,"threads":2,"handles":1,"paths":2,"entries":1,"calls":2,"#,
    r#""elapsed_ns":9800,"tracer_ns":31000,"left_out":{}}
"0/aaa"
"0"
{"path":1,"directory":{"mode":493}}
{"thread":0,"do":{"open":{"path":0,"flags":"O_WRONLY|O_CREAT","mode":420,"handle":0}},"gave":3}
{"thread":1,"waits":[[0,1]],"do":{"pwrite":{"handle":0,"bytes":8192,"place":0}},"gave":8192}
"#
);

/// The image of `kernel` beside a list of its modules that has no virtio.
fn without_virtio(scene: &Scene, kernel: &Path) -> String {
    let release = kernel.file_name().unwrap().to_str().unwrap();
    let modules = scene.path("lib/modules").join(release);
    let from = kernel.join("lib/modules").join(release);
    fs::create_dir_all(&modules).unwrap();
    symlink(from.join("kernel"), modules.join("kernel")).unwrap();
    for name in ["modules.dep", "modules.builtin"] {
        let list = fs::read_to_string(from.join(name)).unwrap();
        let list: Vec<&str> = list.lines().filter(|line| !line.contains("virtio")).collect();
        fs::write(modules.join(name), list.join("\n") + "\n").unwrap();
    }
    fs::copy(image_in(kernel), scene.path("vmlinuz")).unwrap();
    scene.typed("vmlinuz")
}

#[test]
#[ignore = "boots virtual machines: run ./test"]
fn a_recording_is_replayed_on_file_systems_of_the_full_kernel_also_on_ide_disks() {
    or_left_out!();
    let Some(full) = full_kernel() else { return };
    let Some(_) = fetch_tools(&cache(), &["exfatprogs", "reiserfsprogs"]) else { return };
    let scene = Scene::new();
    scene.write("one.calls", RECORDING);
    let kernel = |name: &str, path: &str| {
        format!("[[contender]]\nname = \"{name}\"\nfile_system = \"{name}\"\nkernel = \"{path}\"\n")
    };
    let release = full.file_name().unwrap().to_str().unwrap();
    let image = image_in(&full);
    let contenders = [
        kernel("exfat", &image),
        kernel("reiserfs", &image),
        kernel("nilfs2", &image),
        kernel("jfs", &without_virtio(&scene, &full)),
        kernel("zfs", &image),
    ];
    let plan = format!(
        "bed = {{ size = \"160M\" }}\njudgement = {{ rounds = 1 }}\n{}[[workload]]\n\
         name = \"replay\"\nsetup = \"ls /sys/block\"\nreplay = {{ recording = \"one.calls\" }}\n",
        contenders.concat()
    );
    scene.write("plan.toml", &plan);
    let words = ["run", "plan.toml", "--place", "vm", "--output", "run", "--json", "-"];
    let document = Started::new(as_root(&scene, &words)).wait().exits(0).json();
    assert_eq!(list(&document["trials"]).len(), 5);
    for trial in list(&document["trials"]) {
        let name = text(&trial["contender"]);
        // Debian's kernels leave ZFS to zfs-fuse.
        let mounted_as = if name == "zfs" { "fuse.zfs" } else { name };
        assert_eq!(trial["mounted"]["file_system"], mounted_as);
        assert_eq!(trial["guest"]["kernel"], release);
        assert_eq!(trial["phases"][0]["operations"], 2);
        assert!(sample(trial, "device_write_bytes") >= 8192.0, "{name}");
        let disks = scene.read(&format!("run/trials/{}/raw/setup.stdout", trial["number"]));
        let bed = if name == "jfs" { "sdb" } else { "vdb" };
        assert!(disks.lines().any(|disk| disk == bed), "{name}: {disks}");
    }
    scene.assert_nothing_left();
}

#[test]
#[ignore = "fetches kernels: run ./test"]
fn of_the_kernels_of_a_version_one_that_has_the_file_systems_is_taken() {
    or_left_out!();
    let (Some(full), Some(version)) = (full_kernel(), kernels().first()) else { return };
    let scene = Scene::new();
    let fetched = scene.path("cache/fsverdict/kernels");
    fs::create_dir_all(&fetched).unwrap();
    let others = fs::read_dir(cache().join("fsverdict/kernels")).unwrap();
    for folder in others.map(|entry| entry.unwrap().path()).chain([full.clone()]) {
        symlink(&folder, fetched.join(folder.file_name().unwrap())).unwrap();
    }
    let booted = |file_systems: &str| {
        let words = ["run", "--dry-run", "--place", "vm", "--kernel", version, "--fs"];
        let mut command = scene.command(&[&words[..], &[file_systems, "--", "true"]].concat());
        command.env("XDG_CACHE_HOME", scene.path("cache"));
        let said = Started::new(command).wait().exits(0).stdout;
        said.lines().find_map(|line| Some(line.split_once(" -kernel ")?.1.to_string())).unwrap()
    };
    assert!(booted("ext4,xfs").contains("-cloud-amd64 "));
    assert!(booted("ext4,jfs").starts_with(&format!("{}/boot/", full.display())));
}

#[test]
#[ignore = "boots virtual machines: run ./test"]
fn a_guest_that_panics_loses_its_trial_alone_and_says_why() {
    or_left_out!();
    let scene = Scene::new();
    // The work may not set the kernel; the plan may, to panic when memory runs out.
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
        command = "[ $FSVERDICT_CONTENDER = whole ] || head -c 64G /dev/zero | tail"
        "#,
    );
    let words = ["run", &plan, "--place", "vm", "--kernel", kernels()[0]];
    let words = [&words[..], &["--output", "run", "--json", "-"]].concat();
    let done = Started::new(as_root(&scene, &words)).wait().exits(1);
    let document = done.json();
    let errors = failures(&document);
    assert_eq!((errors.len(), list(&document["trials"]).len()), (1, 2), "{errors:?}");
    assert!(errors[0].contains("the kernel panicked: "), "{errors:?}");
    let why = "Kernel panic - not syncing: Out of memory: compulsory panic_on_oom is enabled";
    assert!(errors[0].contains(why), "{errors:?}");
    scene.assert_nothing_left();
}

#[test]
#[ignore = "boots virtual machines: run ./test"]
fn one_can_look_around_in_the_machine_of_a_trial_that_failed() {
    or_left_out!();
    let scene = Scene::new();
    let words = ["run", "--place", "vm", "--kernel", kernels()[0], "--fs", "ext4", "--size", "64M"];
    let work = ["--rounds", "1", "--output", "run", "--", "sh", "-c", "echo kept > it; exit 3"];
    Started::new(as_root(&scene, &[&words[..], &work].concat())).wait().exits(1);
    let before = scene.read("run/trials/1/record.json");
    let mut shell = as_root(&scene, &["vm", "shell", "run"]);
    let said = || String::from_utf8_lossy(&fs::read(scene.path("said")).unwrap()).into_owned();
    shell.stdin(Stdio::piped()).stdout(fs::File::create(scene.path("said")).unwrap());
    shell.stderr(fs::File::create(scene.path("stderr")).unwrap());
    let mut shell = Started::silent(shell);
    shell.reaches("the shell's prompt", || said().contains("guest:"));
    shell.typed(b"mount -t ext4 /dev/vdb /fsverdict/mnt; cat $(find /fsverdict/mnt -name it)\r");
    shell.reaches("what was kept", || said().contains("\nkept\r\n"));
    shell.typed(b"exit\r");
    shell.wait().exits(0);
    for words in ["Trial 1 has failed at work: ", "exit status 3", "Its disks: /dev/vdb"] {
        assert!(said().contains(words), "{words}: {}", said());
    }
    assert_eq!(scene.read("run/trials/1/record.json"), before, "the run stays as it is");
    scene.run("vm shell run --trial 9").exits(1).says("trials/9/trial.json");
    scene.run("run --place sim --fs ext4,xfs --rounds 1 --output sim -- true");
    scene.run("vm shell sim").exits(2).says("its trials had no virtual machines");
    scene.assert_nothing_left();
}

#[test]
#[ignore = "boots virtual machines: run ./test"]
fn ctrl_c_and_a_kill_end_the_machine_too() {
    or_left_out!();
    let scene = Scene::alone();
    let words = ["run", "--place", "vm", "--kernel", kernels()[0], "--fs", "ext4,ext4"];
    let more = ["--size", "64M", "--output", "run", "--", "sleep", "60"];
    let words = [&words[..], &more].concat();
    // The one that has the run's disks, and none that is asked what it can do.
    let is_qemu = |number: &u32| {
        let comm = fs::read(format!("/proc/{number}/comm")).unwrap_or_default();
        let open = fs::read_dir(format!("/proc/{number}/fd")).into_iter().flatten().flatten();
        let mut open = open.filter_map(|it| fs::read_link(it.path()).ok());
        comm.starts_with(b"qemu-system") && open.any(|it| it.starts_with(scene.path("run")))
    };
    let runs_guest = || Left::of(&scene.path("")).processes.iter().any(is_qemu);
    for (signal, code) in [("INT", Some(130)), ("KILL", None)] {
        let mut run = Started::new(as_root(&scene, &words));
        run.reaches("the guest", runs_guest);
        run.signal(signal);
        assert_eq!(run.wait().code, code);
        wait_for("the guest's end", || Left::of(&scene.path("")).processes.is_empty());
    }
    scene.run("clean").exits(0).says("cleaned up after the run of");
    assert!(!scene.path("run/vm").exists());
    scene.assert_nothing_left();
}

#[test]
fn what_place_vm_has_not_is_said_with_the_way_out() {
    let scene = Scene::new();
    let run = |words: &[&str], path: &str| {
        let words =
            [&["run", "--place", "vm", "--fs", "ext4,ext4"], words, &["--", "true"]].concat();
        let mut command = scene.command(&words);
        command.env("XDG_CACHE_HOME", scene.path("cache")).env("PATH", path);
        Started::new(command).wait().exits(1)
    };
    let path = std::env::var("PATH").unwrap();
    let has_qemu = tool("which", &["qemu-system-x86_64"]).is_ok();
    let file = scene.write("bzImage", "no kernel");
    if has_qemu {
        run(&["--kernel", "1.2"], &path).says("no kernel 1.2 here: fsverdict kernels get 1.2");
        run(&["--kernel", &file], &path).says("it is not a bzImage");
    } else {
        run(&["--kernel", "1.2"], &path).says("apt-get install qemu-system-x86");
    }
    assert!(!scene.path("runs").exists());
}

#[test]
fn a_dry_run_shows_the_machine_and_the_trial_in_it() {
    let scene = Scene::new();
    symlink(cache(), scene.path("cache")).unwrap();
    let words = ["run", "--dry-run", "--kernel", "9.9", "--fs", "ext4,xfs", "--", "true"];
    let mut command = scene.command(&words);
    command.env("XDG_CACHE_HOME", scene.path("cache"));
    let said = Started::new(command).wait().exits(0).stdout;
    assert!(said.contains("qemu-system-x86_64 -nodefaults"), "{said}");
    assert!(said.contains("-kernel vmlinuz-9.9 -initrd RUN/vm/0.cpio"), "{said}");
    assert!(said.contains("mkfs.ext4"), "{said}");
    assert!(said.contains(" /dev/vdb"), "{said}");
    assert!(!said.contains("losetup"), "{said}");
}
