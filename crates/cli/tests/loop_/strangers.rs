//! Attacks: journals, folders, documents and names that somebody else has made.

use std::fs;
use std::path::Path;

use super::{failure, of, run_plan};
use crate::support::{Left, Scene, Started, list, program, tool, wait_for};

const PRESSURE: &str = "/proc/sys/vm/vfs_cache_pressure";

/// A plan whose first contender changes a setting and never ends its work.
const PLAN: &str = r#"
    bed = { size = "64M" }
    judgement = { rounds = 1 }
    contender = [
        { name = "a", file_system = "ext4", sysctl = { "vm.vfs_cache_pressure" = 77 } },
        { name = "b", file_system = "ext4", sysctl = { "vm.vfs_cache_pressure" = 77 } },
    ]
    workload = [{ name = "work", command = "sleep 600" }]
"#;

fn pressure() -> String {
    fs::read_to_string(PRESSURE).unwrap().trim().into()
}

/// Starts a run in `folder`, and waits until its first trial is at work.
fn started(scene: &Scene, folder: &str) -> Started {
    let plan = scene.write("plan.toml", PLAN);
    let mut run = scene.start(&["run", &plan, "--output", folder]);
    let at_work = scene.path(&format!("{folder}/trials/1/raw/command.stdout"));
    run.reaches("a trial at work", || at_work.exists());
    run
}

/// Kills it, and waits until its trial is gone, too.
fn killed(scene: &Scene, folder: &str, run: Started) {
    run.signal("KILL");
    run.wait();
    let trials = scene.path(&format!("{folder}/trials"));
    wait_for("the trial's end", || Left::of(&trials).processes.is_empty());
}

/// A journal that would remove a file, remove a folder and write into another file.
fn forged(scene: &Scene, folder: &str) {
    fs::create_dir_all(scene.path("root/tree")).unwrap();
    for name in ["root/image", "root/tree/file", "root/knob"] {
        scene.write(name, "precious");
    }
    let [image, tree, knob] = ["root/image", "root/tree", "root/knob"].map(|it| scene.typed(it));
    let setting = |value: &str| serde_json::json!({ "path": knob, "value": value });
    let change = serde_json::json!({ "back": setting("EVIL"), "ours": setting("precious") });
    let lines = [
        serde_json::json!({ "bed": { "undo": "remove_image", "path": image } }),
        serde_json::json!({ "directory": tree }),
        serde_json::json!({ "settings": [change] }),
    ];
    fs::create_dir_all(scene.path(folder)).unwrap();
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    scene.write(&format!("{folder}/undo.jsonl"), &text);
    // Root's own journal of another time, put there by the owner of the folder.
    tool("chown", &["nobody", &scene.typed(folder)]).unwrap();
}

fn is_untouched(scene: &Scene) {
    for name in ["root/image", "root/tree/file", "root/knob"] {
        assert!(scene.path(name).exists(), "{name} was removed");
        assert_eq!(scene.read(name), "precious", "{name} was overwritten");
    }
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_folder_put_in_the_place_of_a_run_is_not_believed() {
    let scene = Scene::alone();
    let before = pressure();
    let run = started(&scene, "run");
    killed(&scene, "run", run);
    fs::rename(scene.path("run"), scene.path("away")).unwrap();
    forged(&scene, "run");
    scene.run("clean").exits(0);
    is_untouched(&scene);
    scene.run("clean run").exits(0);
    is_untouched(&scene);
    assert_eq!(pressure(), before, "the true journal is lost");
    // The run's own images have moved along with it: their names tell.
    scene.run("clean away").exits(0);
    is_untouched(&scene);
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_strangers_run_is_neither_cleaned_nor_resumed_by_its_own_journal() {
    let scene = Scene::alone();
    forged(&scene, "run");
    scene.run("clean run").exits(0);
    is_untouched(&scene);
    let next = ["run", "--place", "sim", "--fs", "ext4,xfs", "--output", "next", "--", "true"];
    scene.fsverdict(&next).exits(0);
    is_untouched(&scene);
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_run_whose_folder_was_removed_is_put_back_all_the_same() {
    let scene = Scene::alone();
    let before = pressure();
    let run = started(&scene, "run");
    killed(&scene, "run", run);
    assert_eq!(pressure(), "77");
    fs::remove_dir_all(scene.path("run")).unwrap();
    scene.run("clean").exits(0).says("cleaned up after the run of");
    assert_eq!(pressure(), before);
    scene.assert_nothing_left();
}

/// Without settings, because two of these may not be under way at once.
fn quietly_started(scene: &Scene, folder: &str) -> Started {
    let plan = PLAN.replace(", sysctl = { \"vm.vfs_cache_pressure\" = 77 }", "");
    let plan = scene.write("quiet.toml", &plan);
    let mut run = scene.start(&["run", &plan, "--output", folder]);
    let at_work = scene.path(&format!("{folder}/trials/1/raw/command.stdout"));
    run.reaches("a trial at work", || at_work.exists());
    run
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn runs_whose_paths_look_alike_are_both_cleaned_up() {
    let scene = Scene::alone();
    fs::create_dir(scene.path("p")).unwrap();
    let runs = ["p_q", "p/q"].map(|folder| (folder, quietly_started(&scene, folder)));
    for (folder, run) in runs {
        killed(&scene, folder, run);
    }
    scene.run("clean").exits(0).says("p_q").says("p/q");
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_path_of_four_thousand_characters_is_a_path() {
    let scene = Scene::new();
    let mut folder = scene.path("deep");
    while folder.as_os_str().len() < 3800 {
        folder.push("d".repeat(150));
    }
    folder.push("e".repeat(3999 - folder.as_os_str().len()));
    assert_eq!(folder.as_os_str().len(), 4000);
    let folder = folder.to_str().unwrap();
    let words = ["run", "--fs", "ext4,ext4", "--size", "64M", "--rounds", "1", "--output", folder];
    scene.fsverdict(&[&words[..], &["--", "true"]].concat()).exits(0);
    scene.assert_nothing_left();
}

/// Bed `directory` upon `shared`, in a run's folder of its own.
fn on_directory<'a>(folder: &'a str, at: &'a str, line: &'a str) -> Vec<&'a str> {
    let words = ["run", "--warm", "--rounds", "1", "--output", folder, "--bed", at];
    // The work is to see what the test writes meanwhile.
    [&words[..], &["--writable", ".", "--", "sh", "-c", line]].concat()
}

#[test]
fn a_folder_that_is_called_like_one_of_ours_stays() {
    let scene = Scene::alone();
    fs::create_dir_all(scene.path("one/.fsverdict-work")).unwrap();
    fs::create_dir_all(scene.path("two/.fsverdict-0123456789abcdef")).unwrap();
    let precious = ["one/.fsverdict-work/thesis", "two/.fsverdict-0123456789abcdef/thesis"];
    for name in precious {
        scene.write(name, "precious");
    }
    let bed = format!("directory:{},{}", scene.typed("one"), scene.typed("two"));
    scene.fsverdict(&on_directory("run", &bed, "seq 1000 > numbers")).exits(0);
    scene.run("clean one two").exits(0);
    for name in precious {
        assert!(scene.path(name).exists(), "{name} was removed");
    }
    for name in ["one", "two"] {
        assert_eq!(fs::read_dir(scene.path(name)).unwrap().count(), 1);
    }
    scene.assert_nothing_left();
}

#[test]
fn two_runs_in_one_directory_leave_each_other_alone() {
    let scene = Scene::alone();
    fs::create_dir(scene.path("shared")).unwrap();
    let bed = format!("directory:{0},{0}/", scene.typed("shared"));
    let stay = "echo here > mine; while [ ! -e \"$GO\" ]; do sleep 0.01; done; cat mine";
    let stay = stay.replace("$GO", &scene.typed("go"));
    let mut first = scene.start(&on_directory("first", &bed, &stay));
    let at_work = scene.path("first/trials/1/raw/command.stdout");
    first.reaches("the first run's work", || at_work.exists());
    scene.fsverdict(&on_directory("second", &bed, "echo other > mine")).exits(0);
    scene.write("go", "");
    first.wait().exits(0);
    assert_eq!(scene.records("first").len(), 2);
    assert_eq!(fs::read_dir(scene.path("shared")).unwrap().count(), 0);
    scene.assert_nothing_left();
}

#[test]
fn an_interrupted_run_in_directories_leaves_nothing_there_and_is_resumed() {
    let scene = Scene::alone();
    for name in ["one", "two"] {
        fs::create_dir(scene.path(name)).unwrap();
    }
    let bed = format!("directory:{},{}", scene.typed("one"), scene.typed("two"));
    let go = scene.typed("go");
    let work =
        format!("head -c 5M /dev/zero > data; echo; while [ ! -e '{go}' ]; do sleep 0.01; done");
    let mut run = scene.start(&on_directory("run", &bed, &work));
    let at_work = scene.path("run/trials/1/raw/command.stdout");
    run.reaches("the work", || fs::metadata(&at_work).is_ok_and(|data| data.len() > 0));
    run.signal("INT");
    run.wait().exits(130);
    // The kernel ends what the trial has started, a moment after the trial.
    wait_for("the work's end", || Left::of(&scene.path("")).processes.is_empty());
    for name in ["one", "two"] {
        assert_eq!(fs::read_dir(scene.path(name)).unwrap().count(), 0, "{name} is not empty");
    }
    scene.assert_nothing_left();

    let mut run = scene.start(&on_directory("other", &bed, &work));
    let at_work = scene.path("other/trials/1/raw/command.stdout");
    run.reaches("the work", || fs::metadata(&at_work).is_ok_and(|data| data.len() > 0));
    run.signal("KILL");
    run.wait();
    wait_for("the trial's end", || Left::of(&scene.path("other/trials")).processes.is_empty());
    scene.write("go", "");
    scene.run("run --resume other --writable .").exits(0);
    assert_eq!(scene.records("other").len(), 2);
    for name in ["one", "two"] {
        assert_eq!(fs::read_dir(scene.path(name)).unwrap().count(), 0, "{name} is not empty");
    }
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_sysctl_stays_below_its_folder_and_may_have_several_numbers() {
    let scene = Scene::alone();
    let file = tempfile::NamedTempFile::new_in("/tmp").unwrap();
    fs::write(file.path(), "precious").unwrap();
    let name = file.path().file_name().unwrap().to_str().unwrap().to_string();
    let numbers = || fs::read_to_string("/proc/sys/net/ipv4/tcp_rmem").unwrap();
    let before = numbers();
    let plan = |sysctl: &str| {
        format!(
            r#"
            bed = {{ size = "64M" }}
            judgement = {{ rounds = 1 }}
            contender = [
                {{ name = "plain", file_system = "ext4" }},
                {{ name = "odd", file_system = "ext4", sysctl = {{ {sysctl} }} }},
            ]
            workload = [{{ name = "work", command = "cat /proc/sys/net/ipv4/tcp_rmem" }}]
            "#
        )
    };
    let plain = name.trim_start_matches('.');
    fs::rename(file.path(), Path::new("/tmp").join(plain)).unwrap();
    for odd in [format!(".tmp.{plain}"), format!("..tmp.{plain}"), format!("//tmp/{plain}")] {
        let _ = fs::remove_dir_all(scene.path("run"));
        let done = run_plan(&scene, &plan(&format!("{odd:?} = \"HELLO\"")));
        let text = fs::read_to_string(Path::new("/tmp").join(plain)).unwrap();
        assert_eq!(text, "precious", "{odd}");
        assert_ne!(done.code, Some(0), "{odd}");
    }
    fs::rename(Path::new("/tmp").join(plain), file.path()).unwrap();
    let _ = fs::remove_dir_all(scene.path("run"));
    let document =
        run_plan(&scene, &plan("\"net.ipv4.tcp_rmem\" = \"4096 87380 6291000\"")).exits(0).json();
    let shown = super::printed(&scene, of(&document, "odd")[0]);
    assert_eq!(shown.split_whitespace().collect::<Vec<_>>(), ["4096", "87380", "6291000"]);
    assert_eq!(numbers(), before);
    scene.assert_nothing_left();
}

/// A loop device of the test's own with that file behind it.
struct Disk(String);

impl Disk {
    fn new(scene: &Scene, name: &str, size: u64) -> Disk {
        fs::File::create_new(scene.path(name)).unwrap().set_len(size).unwrap();
        Disk::over(&scene.typed(name))
    }

    fn over(file: &str) -> Disk {
        Disk(tool("losetup", &["--find", "--show", file]).unwrap().trim().to_string())
    }

    fn kind(&self) -> String {
        let words = ["--no-act", "--noheadings", "--output", "TYPE,LABEL", &self.0];
        tool("wipefs", &words).unwrap().trim().to_string()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = tool("losetup", &["--detach", &self.0]);
    }
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_stored_document_formats_nothing() {
    let scene = Scene::alone();
    let words = ["run", "--fs", "ext4,ext4", "--size", "64M", "--rounds", "1", "--output", "run"];
    scene.fsverdict(&[&words[..], &["--", "true"]].concat()).exits(0);
    let mut document = scene.read_json("run/trials/1/trial.json");
    let disk = Disk::new(&scene, "disk", 96 << 20);
    tool("mkfs.ext4", &["-q", "-L", "PRECIOUS", &disk.0]).unwrap();
    let before = disk.kind();
    let exact = tool("lsblk", &["-bdno", "MAJ:MIN,SIZE", &disk.0]).unwrap();
    let numbers: Vec<u64> =
        exact.split([' ', ':']).filter_map(|word| word.trim().parse().ok()).collect();
    // At the path of a device that the run had; then with number and size of the device there now.
    document["bed"]["devices"][0]["path"] = disk.0.as_str().into();
    for exact in [false, true] {
        if exact {
            document["bed"]["devices"][0]["number"] = serde_json::json!([numbers[0], numbers[1]]);
            document["bed"]["devices"][0]["size_bytes"] = numbers[2].into();
        }
        scene.write("trial.json", &document.to_string());
        let unshare = ["--mount", "--pid", "--fork", "--mount-proc", "--"];
        let mut command = program("unshare");
        command.args(unshare).arg(env!("CARGO_BIN_EXE_fsverdict"));
        command.args(["trial", "--in", &scene.typed("trial.json")]);
        command.args(["--out", &scene.typed("record.json")]);
        let done = Started::new(command).wait();
        assert_eq!(disk.kind(), before, "the disk was formatted: {}", done.stderr);
        let done = done.exits(3).says("no running fsverdict has given this document out");
        assert!(!scene.path("record.json").exists(), "{}", done.stdout);
    }
    drop(disk);
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_device_that_changes_under_a_run_is_not_formatted() {
    let scene = Scene::alone();
    let plan = scene.write(
        "plan.toml",
        &format!(
            r#"
            bed = {{ kind = "device", paths = ["DEVICE"] }}
            judgement = {{ rounds = 1 }}
            [[contender]]
            name = "a"
            file_system = "ext4"
            [[contender]]
            name = "b"
            file_system = "ext4"
            [[workload]]
            name = "work"
            command = "true"
            cleanup = "touch '{0}'; while [ ! -e '{1}' ]; do sleep 0.01; done"
            "#,
            scene.typed("reached"),
            scene.typed("go"),
        ),
    );
    let disk = Disk::new(&scene, "disk", 96 << 20);
    scene.write("plan.toml", &fs::read_to_string(&plan).unwrap().replace("DEVICE", &disk.0));
    let words = ["run", &plan, "--erase", &disk.0, "--output", "run", "--writable", "."];
    let mut run = scene.start(&[&words[..], &["--json", "-"]].concat());
    run.reaches("the first trial", || scene.path("reached").exists());
    // The node stands for another disk from now on.
    let other = Disk::new(&scene, "other", 96 << 20);
    tool("mkfs.ext4", &["-q", "-L", "PRECIOUS", &other.0]).unwrap();
    let before = other.kind();
    let aside = format!("{}.aside", disk.0);
    fs::rename(&disk.0, &aside).unwrap();
    let number = tool("lsblk", &["-dno", "MAJ:MIN", &other.0]).unwrap();
    let (major, minor) = number.trim().split_once(':').unwrap();
    let made = tool("mknod", &[&disk.0, "b", major, minor]);
    scene.write("go", "");
    let done = run.wait();
    fs::rename(&aside, &disk.0).unwrap();
    made.unwrap();
    assert_eq!(other.kind(), before, "another disk was formatted: {}", done.stderr);
    let document = done.exits(1).json();
    let failed = list(&document["trials"]).iter().filter(|it| it["outcome"] != "measured");
    let whys: Vec<String> = failed.map(|it| failure(it).1.to_string()).collect();
    assert!(!whys.is_empty() && whys.iter().all(|why| why.contains(&disk.0)), "{whys:?}");
    drop((disk, other));
    scene.assert_nothing_left();
}
