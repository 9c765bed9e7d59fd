//! The guard before a real disk, for which a loop device stands in.

use std::fs;

use super::of;
use crate::support::{Done, Scene, Started, tool, wait_for};

/// A disk of the test's own. It goes with the scene.
struct Disk<'a> {
    scene: &'a Scene,
    node: String,
}

impl<'a> Disk<'a> {
    fn new(scene: &'a Scene) -> Disk<'a> {
        let file = scene.path("disk");
        fs::File::create_new(&file).unwrap().set_len(96 << 20).unwrap();
        let file = file.display().to_string();
        let node = tool("losetup", &["--find", "--show", &file]).unwrap().trim().to_string();
        assert!(node.starts_with("/dev/loop"), "{node}");
        Disk { scene, node }
    }

    fn kind(&self) -> String {
        tool("wipefs", &["--no-act", "--noheadings", "--output", "TYPE", &self.node]).unwrap()
    }

    /// Compares two ext4 on the disk, with these `--erase`.
    fn run(&self, erase: &[&str]) -> Done {
        let erase: Vec<&str> = erase.iter().flat_map(|path| ["--erase", path]).collect();
        self.run_with(&erase)
    }

    fn run_with(&self, options: &[&str]) -> Done {
        let bed = format!("device:{}", self.node);
        let mut words = vec!["run", "--fs", "ext4,ext4", "--bed", &bed, "--rounds", "1"];
        words.extend(["--output", "run", "--json", "-"]);
        words.extend(options);
        words.extend(["--", "sh", "-c", "seq 100000 > numbers"]);
        self.scene.fsverdict(&words)
    }

    fn refuses(&self, erase: &[&str], says: &str) {
        let before = self.kind();
        self.run(erase).exits(3).says(says);
        assert_eq!(self.kind(), before, "a refused disk was changed");
        assert!(!self.scene.path("run").exists());
    }
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_disk_is_erased_only_with_its_owners_word() {
    // What it mounts and lets go of would be held by copies of it in the trials of tests beside.
    let scene = Scene::alone();
    let disk = Disk::new(&scene);
    let node = disk.node.as_str();
    disk.refuses(&[], &format!("say so by --erase {node}"));
    disk.refuses(&["/dev/no-such-disk"], &format!("say so by --erase {node}"));
    tool("mkfs.ext4", &["-q", "-L", "photos", node]).unwrap();
    disk.refuses(&[node], "carries ext4 (label photos)");
    disk.refuses(&[&format!("{node}=xfs")], &format!("--erase {node}=ext4"));
    let at = scene.typed("mounted");
    fs::create_dir(&at).unwrap();
    tool("mount", &[node, &at]).unwrap();
    disk.refuses(&[&format!("{node}=ext4")], "is in use: ");
    tool("umount", &[&at]).unwrap();

    let document = disk.run(&[&format!("{node}=ext4")]).exits(0).json();
    for name in ["ext4", "ext4#2"] {
        assert_eq!(of(&document, name)[0]["outcome"], "measured");
    }
    let trial = scene.read_json("run/trials/1/trial.json");
    assert_eq!(trial["bed"]["devices"][0]["path"], node);
    assert_eq!(disk.kind().trim(), "ext4");
    let label = tool("blkid", &["-s", "LABEL", "-o", "value", node]).unwrap_or_default();
    assert_eq!(label.trim(), "", "the old file system is still there");
    tool("losetup", &["--detach", node]).expect("the run has detached somebody's disk");
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_dry_run_on_a_disk_touches_nothing() {
    let scene = Scene::new();
    let disk = Disk::new(&scene);
    tool("mkfs.xfs", &["-q", "--unsupported", &disk.node])
        .or_else(|_| tool("mkfs.ext4", &["-q", &disk.node]))
        .unwrap();
    let before = fs::read(scene.path("disk")).unwrap();
    let bed = format!("device:{}", disk.node);
    let words = ["run", "--dry-run", "--fs", "ext4,xfs", "--bed", &bed, "--", "true"];
    let said = scene.fsverdict(&words).exits(0).stdout;
    assert!(said.contains(&format!("lazy_journal_init=0 {}", disk.node)), "{said}");
    assert!(fs::read(scene.path("disk")).unwrap() == before, "the disk was changed");
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn data_without_a_signature_is_not_erased() {
    let scene = Scene::new();
    let disk = Disk::new(&scene);
    let node = disk.node.as_str();
    let write = |at_bytes: u64, bytes: &[u8]| {
        use std::os::unix::fs::FileExt;
        fs::File::options().write(true).open(node).unwrap().write_all_at(bytes, at_bytes).unwrap();
    };
    // A tar archive of one file, a database's pages in the midst of it, and what looks like noise.
    let folder = scene.typed("");
    scene.write("thesis", &"precious ".repeat(1000));
    tool("tar", &["-cf", node, "-C", &folder, "thesis"]).unwrap();
    disk.refuses(&[node], "--erase-data");
    write(0, &vec![0; 1 << 20]);
    write(40 << 20, &b"page".repeat(2 << 20));
    disk.refuses(&[node], "--erase-data");
    write(40 << 20, &vec![0; 8 << 20]);
    let noise: Vec<u8> =
        (0..1 << 20).map(|at: u32| (at.wrapping_mul(2654435761) >> 13) as u8).collect();
    write(95 << 20, &noise);
    disk.refuses(&[node], "--erase-data");
    let before = disk.kind();
    disk.run_with(&["--erase", node, "--erase-data"]).exits(0);
    assert_ne!(disk.kind(), before);
    tool("losetup", &["--detach", node]).unwrap();
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn what_lies_in_partitions_that_the_kernel_does_not_know_must_be_named() {
    let scene = Scene::new();
    let disk = Disk::new(&scene);
    let node = disk.node.as_str();
    let words = "mklabel gpt mkpart p 1MiB 41MiB mkpart p 48MiB 88MiB";
    let words: Vec<&str> = ["--script", node].into_iter().chain(words.split(' ')).collect();
    tool("parted", &words).unwrap();
    tool("partx", &["--delete", node]).unwrap();
    let part = |start_mib: u32| {
        let offset = format!("{}", start_mib << 20);
        let file = scene.typed("disk");
        let words = ["--find", "--show", "--offset", &offset, "--sizelimit", "41943040", &file];
        tool("losetup", &words).unwrap().trim().to_string()
    };
    let second = part(48);
    tool("mkfs.ext4", &["-q", "-L", "photos", &second]).unwrap();
    tool("losetup", &["--detach", &second]).unwrap();
    disk.refuses(&[&format!("{node}=gpt")], "carries ext4 (label photos)");
    // The first partition is plain dm-crypt, say.
    let first = part(1);
    fs::write(&first, vec![0xA5; 1 << 20]).unwrap();
    tool("losetup", &["--detach", &first]).unwrap();
    disk.refuses(&[&format!("{node}=gpt,ext4")], "--erase-data");
    disk.run_with(&["--erase", &format!("{node}=gpt,ext4"), "--erase-data"]).exits(0);
    tool("losetup", &["--detach", node]).unwrap();
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn what_lies_in_a_table_within_a_partition_must_be_named() {
    let scene = Scene::new();
    let disk = Disk::new(&scene);
    let node = disk.node.as_str();
    let part = |start_mib: u32, size_mib: u32| {
        let [offset, size] = [start_mib, size_mib].map(|it| format!("{}", it << 20));
        let file = scene.typed("disk");
        let words = ["--find", "--show", "--offset", &offset, "--sizelimit", &size, &file];
        tool("losetup", &words).unwrap().trim().to_string()
    };
    let table = |node: &str, words: &str| {
        let words: Vec<&str> = ["--script", node].into_iter().chain(words.split(' ')).collect();
        tool("parted", &words).unwrap();
        let _ = tool("partx", &["--delete", node]);
    };
    let photos = |start_mib: u32, size_mib: u32| {
        let inner = part(start_mib, size_mib);
        tool("mkfs.ext4", &["-q", "-L", "photos", &inner]).unwrap();
        tool("losetup", &["--detach", &inner]).unwrap();
    };
    // A whole disk, say a virtual machine's, in a partition: table within table.
    for inner in ["gpt", "msdos"] {
        tool("wipefs", &["--all", node]).unwrap();
        table(node, "mklabel gpt mkpart p 1MiB 81MiB");
        let outer = part(1, 80);
        let kind = if inner == "gpt" { "mkpart p" } else { "mkpart primary" };
        table(&outer, &format!("mklabel {inner} {kind} 1MiB 41MiB"));
        tool("losetup", &["--detach", &outer]).unwrap();
        photos(2, 40);
        disk.refuses(&[&format!("{node}=gpt,dos")], "carries ext4 (label photos)");
    }
    // Logical partitions of a disk in a partition.
    tool("wipefs", &["--all", node]).unwrap();
    table(node, "mklabel gpt mkpart p 1MiB 81MiB");
    let outer = part(1, 80);
    let words = "mklabel msdos mkpart extended 1MiB 79MiB mkpart logical 2MiB 22MiB \
                 mkpart logical 23MiB 43MiB mkpart logical 44MiB 74MiB";
    table(&outer, words);
    tool("losetup", &["--detach", &outer]).unwrap();
    photos(45, 30);
    disk.refuses(&[&format!("{node}=gpt,dos")], "carries ext4 (label photos)");
    disk.run_with(&["--erase", &format!("{node}=gpt,dos,ext4"), "--erase-data"]).exits(0);
    fs::remove_dir_all(scene.path("run")).unwrap();
    // Of a disk with logical partitions the tables are explained as ever.
    tool("blkdiscard", &["--force", node]).unwrap();
    table(node, words);
    photos(44, 30);
    disk.refuses(&[&format!("{node}=dos")], "carries ext4 (label photos)");
    disk.run(&[&format!("{node}=dos,ext4")]).exits(0);
    tool("losetup", &["--detach", node]).unwrap();
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn other_ways_to_the_same_bytes_are_seen() {
    let scene = Scene::new();
    let disk = Disk::new(&scene);
    let node = disk.node.as_str();
    let number = fs::read_to_string(format!("/sys/block/{}/dev", &node[5..])).unwrap();
    let (major, minor) = number.trim().split_once(':').unwrap();
    // Another loop device over the same file, by another of its names.
    fs::hard_link(scene.path("disk"), scene.path("alias")).unwrap();
    let attach =
        |file: &str| tool("losetup", &["--find", "--show", file]).unwrap().trim().to_string();
    let second = attach(&scene.typed("alias"));
    disk.refuses(&[node], &format!("is held by {}", &second[5..]));
    tool("losetup", &["--detach", &second]).unwrap();
    // A loop device upon another node of the same device, which is gone by now.
    let twin = scene.typed("twin");
    tool("mknod", &[&twin, "b", major, minor]).unwrap();
    let upper = attach(&twin);
    fs::remove_file(&twin).unwrap();
    disk.refuses(&[node], &format!("is held by {}", &upper[5..]));
    tool("losetup", &["--detach", &upper]).unwrap();
    // A program that writes through a node outside /dev, also when that is gone.
    tool("mknod", &[&twin, "b", major, minor]).unwrap();
    let mut writer = crate::support::program("sh");
    writer.args(["-c", "exec 3<>\"$0\"; rm \"$0\"; exec sleep 600", &twin]);
    let mut writer = writer.spawn().unwrap();
    wait_for("the writer", || !scene.path("twin").exists());
    disk.refuses(&[node], "is open for writing by s");
    writer.kill().unwrap();
    writer.wait().unwrap();
    tool("losetup", &["--detach", node]).unwrap();
}

/// A run on the disk whose first trial is being cleared away, until there is a file `go`.
fn in_its_first_trial(scene: &Scene, node: &str) -> Started {
    let (at, go) = (scene.typed("at"), scene.typed("go"));
    let line = format!("touch '{at}'; while [ ! -e '{go}' ]; do sleep 0.01; done");
    let bed = format!("device:{node}");
    let words = ["run", "--fs", "ext4,ext4", "--bed", &bed, "--rounds", "1", "--erase", node];
    let words = [&words[..], &["--output", "long", "--json", "-", "--writable", "."]].concat();
    let mut run = scene.start(&[&words[..], &["--cleanup", &line, "--", "true"]].concat());
    run.reaches("the first trial", || scene.path("at").exists());
    run
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_device_is_locked_while_it_is_measured_and_named_once() {
    let scene = Scene::new();
    let disk = Disk::new(&scene);
    let node = disk.node.as_str();
    // Not mounted any more, and held all the same.
    let long = in_its_first_trial(&scene, node);
    disk.refuses(&[&format!("{node}=ext4")], "is another run's: wait for its end");
    scene.write("go", "");
    long.wait().exits(0);
    let twice = format!("device:{node},{node}");
    let words = ["run", "--fs", "ext4,ext4", "--bed", &twice, "--erase-data"];
    let erase = format!("{node}=ext4");
    let words = [&words[..], &["--erase", &erase, "--output", "run", "--", "true"]].concat();
    scene.fsverdict(&words).exits(3).says("share bytes: name each disk once");
    tool("losetup", &["--detach", node]).unwrap();
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn who_writes_to_the_disk_between_two_trials_is_noticed() {
    let scene = Scene::new();
    let disk = Disk::new(&scene);
    let node = disk.node.as_str();
    let run = in_its_first_trial(&scene, node);
    tool("mkfs.ext4", &["-q", "-F", node]).unwrap_err();
    // It asks nobody, and keeps the disk open until the second trial would begin.
    let mut writer = crate::support::program("sh");
    writer.args(["-c", "exec 3<>\"$0\"; touch \"$1\"; exec sleep 600", node]);
    let mut writer = writer.arg(scene.path("writes")).spawn().unwrap();
    wait_for("the writer", || scene.path("writes").exists());
    scene.write("go", "");
    let done = run.wait();
    writer.kill().unwrap();
    writer.wait().unwrap();
    let said = format!("{}{}", done.stdout, done.stderr);
    assert_ne!(done.code, Some(0), "{said}");
    assert!(said.contains("is open for writing by s"), "{said}");
    tool("losetup", &["--detach", node]).unwrap();
    scene.assert_nothing_left();
}
