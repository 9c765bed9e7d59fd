//! What work leaves behind, and who can reach it: what a user of the machine could make of root's
//! files, and root of a user's.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use super::{failure, of, run_plan};
use crate::support::{Done, Scene, Started, program, tool};

fn plan(scene: &Scene, workload: &str) -> String {
    let text = format!(
        "bed = {{ size = \"64M\" }}\njudgement = {{ rounds = 1 }}\ncontender = [\n\
         {{ name = \"a\", file_system = \"ext4\", mount = [\"errors=remount-ro\"] }},\n\
         {{ name = \"b\", file_system = \"ext4\", mount = [\"errors=remount-ro\"] }}]\n\
         [[workload]]\nname = \"w\"\n{workload}\n"
    );
    scene.write("plan.toml", &text)
}

/// A line of the shell that waits for the file `go`, once it has done `first`.
fn waiting(scene: &Scene, first: &str) -> String {
    let go = scene.typed("flag/go");
    let ready = "touch here $FSVERDICT_RAW/ready";
    format!("command = '{first}; {ready}; while [ ! -e {go} ]; do sleep 0.01; done'")
}

/// Starts a run of `plan`, until its first trial is at work.
fn at_work(scene: &Scene, plan: &str) -> Started {
    fs::create_dir(scene.path("flag")).unwrap();
    // What the cell has of /tmp by an overlay does not show files that come later.
    let words = ["run", plan, "--output", "run", "--json", "-", "--writable", "flag"];
    let mut run = scene.start(&words);
    let left = scene.path("run/trials/1/raw/ready");
    run.reaches("the work", || left.exists());
    run
}

/// Whether a user of no rights can list that folder.
fn is_open_to_others(folder: &Path) -> bool {
    let mut list = program("setpriv");
    list.args(["--reuid=65534", "--regid=65534", "--clear-groups", "ls"]).arg(folder);
    list.output().unwrap().status.success()
}

/// What root's work may leave: programs that run as who owns them, and what is no file.
const LEAVES: &str = "cd $FSVERDICT_RAW && cp /bin/true own && chmod 6755 own && mkdir deep && \
    cp /bin/true deep/able && setcap cap_sys_admin+ep deep/able; chmod 3777 deep; mkfifo deep/pipe";

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn nothing_that_work_leaves_runs_as_somebody_else() {
    let scene = Scene::new();
    fs::set_permissions(scene.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    let file = plan(&scene, &waiting(&scene, LEAVES));
    let run = at_work(&scene, &file);
    let left = scene.path("run/trials/1/raw/deep/pipe");
    assert!(left.exists());
    let raw = scene.path("run/trials/1/raw");
    assert!(!is_open_to_others(&raw), "a set-user-ID file of the work's can be run meanwhile");
    scene.write("flag/go", "");
    run.wait().exits(0);
    let mode = |name: &str| fs::metadata(raw.join(name)).unwrap().permissions().mode();
    for name in ["own", "deep/able", "deep"] {
        assert_eq!(mode(name) & 0o7000, 0, "{name}");
    }
    assert_eq!(mode("own") & 0o777, 0o755, "the rest of its mode is gone");
    let able = raw.join("deep/able").display().to_string();
    assert_eq!(tool("getcap", &[&able]).unwrap_or_default().trim(), "");
    assert!(!left.exists(), "a pipe was left");
    assert!(is_open_to_others(&raw), "the run can't be read by its user");
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn who_exchanges_a_runs_folder_gets_nothing_written_elsewhere() {
    let scene = Scene::new();
    let file = plan(&scene, &waiting(&scene, "true"));
    let run = at_work(&scene, &file);
    // What its owner can do with what lies in a folder of his.
    fs::create_dir_all(scene.path("victim/trials/1/raw")).unwrap();
    fs::create_dir_all(scene.path("victim/trials/2/raw")).unwrap();
    fs::rename(scene.path("run"), scene.path("away")).unwrap();
    symlink(scene.path("victim"), scene.path("run")).unwrap();
    scene.write("flag/go", "");
    run.wait();
    let found = tool("find", &[&scene.typed("victim"), "-type", "f"]).unwrap();
    assert_eq!(found.trim(), "", "root wrote by way of a link");
    let trials = fs::read_dir(scene.path("victim/trials")).unwrap().count();
    assert_eq!(trials, 2, "root removed by way of a link");
    fs::remove_file(scene.path("run")).unwrap();
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn what_setup_keeps_is_only_read_afterwards() {
    let scene = Scene::new();
    let more = "! touch \"$FSVERDICT_CACHE/more\" && test -e \"$FSVERDICT_CACHE/made\"";
    let workload = format!(
        "setup = 'touch \"$FSVERDICT_CACHE/made\"'\nprepare = '{more}'\ncommand = '{more}'\n"
    );
    let file = plan(&scene, &workload);
    let mut command = scene.command(&["run", &file, "--output", "run"]);
    command.env("XDG_CACHE_HOME", scene.path("cache"));
    Started::new(command).wait().exits(0);
    let inputs = scene.path("cache/fsverdict/inputs");
    assert!(!is_open_to_others(&inputs), "what setup leaves there can be run by others");
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn the_bare_devices_job_reaches_no_other_disk_and_no_file() {
    let scene = Scene::new();
    let image = scene.typed("victim.disk");
    fs::File::create_new(&image).unwrap().set_len(1 << 20).unwrap();
    let node = tool("losetup", &["--find", "--show", &image]).unwrap().trim().to_string();
    let file = scene.typed("theirs");
    let line =
        format!("dd if=/dev/urandom of={node} count=1; touch {file}; cp {node} {file}; true");
    let text = format!(
        "bed = {{ size = \"64M\" }}\njudgement = {{ rounds = 1, arms = [\"raw\"] }}\n\
         contender = [{{ name = \"a\", file_system = \"ext4\" }}, \
         {{ name = \"b\", file_system = \"ext4\" }}]\n[[workload]]\nname = \"w\"\n\
         fio = {{ rw = \"write\", size = \"1m\", exec_prerun = \"{line}\" }}\n"
    );
    let document = run_plan(&scene, &text).exits(0).json();
    assert_eq!(of(&document, "raw device")[0]["outcome"], "measured");
    tool("sync", &[&node]).unwrap();
    assert!(fs::read(&image).unwrap().iter().all(|byte| *byte == 0), "the disk was written to");
    assert!(!scene.path("theirs").exists(), "a file was made");
    tool("losetup", &["--detach", &node]).unwrap();
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn what_the_kernel_says_where_it_lets_nothing_more_be_written_is_told() {
    let scene = Scene::new();
    let file = plan(&scene, &waiting(&scene, "true"));
    let run = at_work(&scene, &file);
    let trial = scene.read_json("run/trials/1/trial.json");
    let node = trial["bed"]["devices"][0]["path"].as_str().unwrap();
    // An error as one in the file system's structures, to which ext4 answers by errors=remount-ro
    // (Documentation/ABI/testing/sysfs-fs-ext4).
    fs::write(format!("/sys/fs/ext4/{}/trigger_fs_error", &node[5..]), "1").unwrap();
    scene.write("flag/go", "");
    let document = run.wait().json();
    let trial = of(&document, trial["contender"].as_str().unwrap())[0];
    let (_, error) = failure(trial);
    assert!(error.contains("Read-only file system"), "{error}");
    assert!(error.contains("the kernel says: EXT4-fs error"), "{error}");
    assert_eq!(trial["trouble"]["read_only"], true);
    scene.assert_nothing_left();
}

/// Tries settings of a file whose options name another disk and another file.
fn checked(scene: &Scene, text: &str) -> Done {
    let file = scene.write("settings", text);
    scene.fsverdict(&["check", &file])
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn what_is_checked_reaches_no_other_disk() {
    let scene = Scene::new();
    let image = scene.typed("victim.disk");
    fs::File::create_new(&image).unwrap().set_len(160 << 20).unwrap();
    let node = tool("losetup", &["--find", "--show", &image]).unwrap().trim().to_string();
    fs::create_dir(scene.path("theirs")).unwrap();
    let undo = scene.typed("theirs/undo");
    for text in [
        format!("mkfs.xfs -l logdev={node},size=64m /dev/sdx\n"),
        format!("mkfs.xfs -r rtdev={node} /dev/sdx\n"),
        format!("mkfs.ext4 -z {undo} /dev/sdx\n"),
        format!("mkfs.ext4 -z{undo} /dev/sdx\n"),
        format!("mkfs.ext4 -J device={node} /dev/sdx\n"),
        format!("tune2fs -z {undo} -c 5 /dev/sdx\n"),
        format!("/dev/sdx /mnt xfs logdev={node} 0 0\n"),
    ] {
        checked(&scene, &text);
        tool("sync", &[&node]).unwrap();
        let is_whole = fs::read(&image).unwrap().iter().all(|byte| *byte == 0);
        assert!(is_whole, "written to by: {text}");
        assert_eq!(fs::read_dir(scene.path("theirs")).unwrap().count(), 0, "made by: {text}");
    }
    tool("losetup", &["--detach", &node]).unwrap();
    scene.assert_nothing_left();
}

#[test]
fn options_that_panic_are_for_guests() {
    let scene = Scene::new();
    let plan = |contender: &str| {
        format!(
            "bed = {{ size = \"128M\" }}\njudgement = {{ rounds = 1 }}\ncontender = [\n\
             {{ name = \"plain\", file_system = \"ext4\" }},\n{{ name = \"odd\", {contender} }}]\n\
             [[workload]]\nname = \"seq\"\ncommand = \"seq 1000 > numbers\"\n"
        )
    };
    for contender in [
        "file_system = \"ext4\", mount = [\"noatime,errors=panic\"]",
        "file_system = \"btrfs\", mount = [\"fatal_errors=panic\"]",
    ] {
        run_plan(&scene, &plan(contender)).exits(2).says("machine panic");
        assert!(!scene.path("run").exists(), "{contender}");
    }
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn what_mkfs_writes_to_panic_is_not_mounted() {
    let scene = Scene::new();
    let text = "bed = { size = \"64M\" }\njudgement = { rounds = 1 }\ncontender = [\n\
         { name = \"plain\", file_system = \"ext4\" },\n\
         { name = \"odd\", file_system = \"ext4\", mkfs = [\"-qepanic\"] }]\n\
         [[workload]]\nname = \"seq\"\ncommand = \"seq 1000 > numbers\"\n";
    run_plan(&scene, text).exits(1);
    let records = scene.records("run");
    let odd = records.iter().find(|record| record["contender"] == "odd").unwrap();
    let error = odd["outcome"]["failed"]["error"].as_str().unwrap();
    assert!(error.contains("machine panic"), "{error}");
    scene.assert_nothing_left();
}
